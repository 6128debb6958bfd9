"""F.x.infer: the shapes and elements that the call itself gives, structure and refusals included, without data."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from differential import calls, functions

import baracuda as bc
import baracuda.functional as F
from baracuda import _core
from baracuda.describe.elements import Element
from baracuda.memory.tensor import unbacked
from baracuda.prove.facts import collected
from conftest import FULL, SEED
from test_empties_functional import _made, arguments

SAMPLES = collected("samples")

COMPARED = 40 if FULL else 5  # calls of each function
TRIES = 3000 if FULL else 300
NEEDS_DATA = {"nonzero", "argwhere", "masked_select", "one_hot", "repeat_interleave"}
NEEDS_DATA |= {"nms", "batched_nms", "unique", "unique_consecutive"}
NEEDS_DATA |= {"allclose", "bincount", "equal", "tril_indices", "triu_indices"}
S = bc.TensorSpec
BY_DATA = object()
COPIES: Callable[[np.ndarray], Any] = np.copy


def kind(value: Any) -> Any:
    """Shape and element of every tensor, in the structure that holds them."""
    if isinstance(value, (list, tuple)):
        return type(value), [kind(v) for v in value]
    if isinstance(value, bc.TensorSpec):
        return value.shape, value.element
    if hasattr(value, "__dlpack__"):
        return tuple(value.shape), value.element if isinstance(value, bc.Tensor) else Element.coerce(value.dtype)
    return value


def outcome(call: Callable[[], Any]) -> Any:
    """What a call gives, or the error's type; BY_DATA where only data tells."""
    try:
        return kind(call())
    except (bc.IndexOutOfRangeError, bc.IntegerDivisionError, bc.ValueOutOfRangeError):
        return BY_DATA
    except (bc.BaracudaError, TypeError) as error:
        if "depends on values" in str(error):
            return BY_DATA
        return type(error)


def compare(name: str, args: Callable[[], tuple[list[Any], dict[str, Any]]]) -> str:
    """Calls a function and infers the call; what they did alike, or an empty text where data alone decides."""
    function = getattr(F, name)
    (given, named), (again, renamed) = args(), args()
    found, shapes = outcome(lambda: function(*given, **named)), outcome(lambda: function.infer(*again, **renamed))
    if found is BY_DATA or shapes is BY_DATA:
        assert found is BY_DATA or name in NEEDS_DATA, f"{name}: {args()}"
        return ""
    assert shapes == found, f"{name}: {args()}"
    return "refused" if isinstance(found, type) else "same"


@pytest.mark.parametrize("name", functions.names())
def test_shapes_are_those_of_the_call(name: str) -> None:
    done = []
    for number in range(4 * COMPARED):
        call = calls.make(name, (SEED, number))
        done.append(compare(name, lambda call=call: call.arguments(calls.ours(call))))  # type: ignore[misc]
        if done.count("same") >= COMPARED:
            break
    assert "same" in done or name in NEEDS_DATA, done


@pytest.mark.parametrize("name", sorted({*dir(F)} - {*functions.names()} - NEEDS_DATA))
def test_shapes_of_gradients_and_our_own_functions(name: str) -> None:
    if name in SAMPLES:
        args, kwargs = SAMPLES[name]
        copy = lambda: (_made([*args], COPIES), dict(kwargs))  # noqa: E731
        assert compare(name, copy) == "same"
        return
    rng = np.random.default_rng([SEED, *name.encode()])
    done = []
    for _ in range(TRIES):
        given = arguments(rng, name)
        if given is not None:
            done.append(compare(name, lambda given=given: (_made(given, COPIES), {})))  # type: ignore[misc]
        if done.count("same") >= 3:
            return
    assert "same" in done, f"no call of {name} was accepted: add one to python/baracuda/ops/*/*_facts.py"


def test_every_kind_of_shape() -> None:
    want = S((3, 5), "bf16")
    x, y = S((3, 4), "bf16"), S((4, 5), "bf16")
    meta = [torch.empty(s.shape, dtype=torch.bfloat16, device="meta", requires_grad=True) for s in (x, y)]
    assert F.matmul.infer(x, y) == F.matmul.infer(*meta) == want
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        assert F.matmul.infer(*(torch.empty(s.shape, dtype=torch.bfloat16) for s in (x, y))) == want
    jax = pytest.importorskip("jax")
    assert F.matmul.infer(*(jax.ShapeDtypeStruct(s.shape, jax.numpy.bfloat16) for s in (x, y))) == want
    real = [bc.empty(s.shape, "bf16") for s in (x, y)]
    assert F.matmul.infer(*real) == want and F.matmul.infer(x, real[1]) == want


def test_shapes_in_eval_shape() -> None:
    jax = pytest.importorskip("jax")

    def softmax(x: Any) -> Any:
        spec = F.softmax.infer(x, -1)
        return jax.pure_callback(lambda a: F.softmax(a, -1), jax.ShapeDtypeStruct(spec.shape, spec.element.numpy), x)

    x = jax.numpy.arange(12.0).reshape(3, 4)
    assert jax.eval_shape(softmax, x).shape == (3, 4)
    np.testing.assert_array_equal(jax.jit(softmax)(x), F.softmax(x, -1))


def test_memory_is_not_touched_and_none_is_taken() -> None:
    x = np.full((4, 4), 3.0, np.float32)
    assert F.normal_.infer(x) == S((4, 4)) and F.adamw_.infer([x], [x.copy()], [x.copy()], [x.copy()], step=1) is None
    assert (x == 3).all()
    huge = S((1 << 20, 1 << 20))
    assert F.exp.infer(huge) == huge and F.zeros.infer(1 << 20, 1 << 20) == huge
    with bc.testing.fail(on="alloc") as alloc, bc.testing.fail(on="launch") as launch:
        assert F.matmul.infer(huge, huge) == huge
        F.scaled_dot_product_attention_backward.infer(*(S((1, 8, 1 << 16, 64)),) * 5, S((1, 8, 1 << 16)))
    assert not alloc.happened and not launch.happened


def test_generators_stand_still() -> None:
    generator = bc.Generator(seed=5)
    assert F.dropout.infer(S((8, 8)), generator=generator) == S((8, 8))
    assert F.randperm.infer(9, generator=generator) == S((9,), "i64")
    assert generator.get_state() == (5, 0)


@pytest.mark.parametrize("name", sorted(NEEDS_DATA))
def test_what_depends_on_data_says_so(name: str) -> None:
    x = S((5,), "i64")
    of_two: dict[str, tuple[Any, ...]] = {"allclose": (x, x), "equal": (x, x), "repeat_interleave": (x, x)}
    indices = {"tril_indices": (3, 4), "triu_indices": (3, 4)}
    boxes = {"nms": (S((5, 4)), S((5,)), 0.5), "batched_nms": (S((5, 4)), S((5,)), S((5,), "i64"), 0.5)}
    args = (of_two | indices | boxes | {"masked_select": (S((5,)), S((5,), "bool"))}).get(name, (x,))
    with pytest.raises(bc.InvalidProblemError, match=rf"{name}\.infer\(\): .* depends on values") as told:
        getattr(F, name).infer(*args)
    assert told.value.code == "null_data"
    if name == "repeat_interleave":
        for repeats in (x, S((1,), "i64"), S((), "i32")):
            assert F.repeat_interleave.infer(S((5, 2)), repeats, 0, output_size=10) == S((10, 2))
    if name == "one_hot":
        assert F.one_hot.infer(x, 7) == S((5, 7), "i64")


def test_a_shape_is_no_tensor_elsewhere() -> None:
    """A call after infer finds no trace of it, and shapes stay out of calls, plans and NumPy."""
    shape = unbacked((3, 4), "f32")
    x = bc.zeros((3, 4))
    for first in (F.exp.infer, F.exp):  # whichever plans it
        F.exp._forget()
        first(x)
        assert F.exp.infer(x) == S((3, 4))
        assert np.array_equal(F.exp(x).numpy(), np.ones((3, 4)))
        with pytest.raises(bc.InvalidProblemError, match="a shape without memory") as told:
            F.exp(shape)
        assert told.value.code == "null_data"
    plan = bc.plan(bc.UnaryDescriptor("exp", (3, 4)))
    for use in (
        lambda: plan.run(shape, x),
        lambda: plan.bind(shape, x),
        shape.numpy,
        shape[0, :1].item,
        lambda: shape.copy_from(x),
    ):
        with pytest.raises(bc.InvalidProblemError, match="without memory"):
            use()
    assert not _core.inferring()
    with pytest.raises(bc.InvalidProblemError, match="exp"):
        F.exp.infer("text")
    assert not _core.inferring(), "also after an error"


def test_devices_that_are_not_here() -> None:
    """The cpu stands in: shapes are known where the model is written."""
    for device in ("cuda:3", "metal"):
        if not bc.Device(device).usable:
            x = S((2, 3), "f16", device=device)
            assert F.add.infer(x, x) == S((2, 3), "f16", device=device)


def test_every_function_has_it() -> None:
    for name in dir(F):
        assert callable(getattr(F, name).infer), name
        assert inspect.signature(getattr(F, name)) is not None
