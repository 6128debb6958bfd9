"""bc.functional: results of the arguments' kind, the remembered path equal to the first one, keys, out=, errors."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

import baracuda as bc
import baracuda.functional as F
from baracuda import _core

X = np.random.default_rng(2).normal(size=(3, 8)).astype(np.float32)
UNARY = [
    n
    for n in ("exp", "tanh", "relu", "silu", "gelu", "sigmoid", "abs", "neg", "sin", "swiglu", "softmax")
    if n in dir(F)
]
BINARY = [n for n in ("add", "sub", "mul", "div", "maximum") if n in dir(F)]
ARGS: dict[str, tuple[Any, ...]] = {"softmax": (-1,)}


def numbers(value: Any) -> np.ndarray:
    if isinstance(value, torch.Tensor):
        return value.detach().to(torch.float64).numpy()
    return np.asarray(value.numpy() if isinstance(value, bc.Tensor) else value).astype(np.float64)


@pytest.mark.parametrize("name", UNARY)
def test_results_are_of_the_arguments_kind(name: str) -> None:
    fn, rest = getattr(F, name), ARGS.get(name, ())
    want = numbers(fn(X, *rest))
    kinds: dict[str, Callable[[], Any]] = {
        "numpy": lambda: X,
        "torch": lambda: torch.from_numpy(X),
        "own": lambda: bc.asarray(X),
    }
    jax = pytest.importorskip("jax")
    kinds["jax"] = lambda: jax.numpy.asarray(X)
    for kind, make in kinds.items():
        for _ in range(2):  # first the call that plans, then the remembered one
            got = fn(make(), *rest)
            assert isinstance(got, type(make())), kind
            assert numbers(got).tobytes() == want.tobytes(), kind


def test_results_for_subclasses() -> None:
    class Sub(torch.Tensor):
        pass

    assert isinstance(F.exp(torch.from_numpy(X).as_subclass(Sub)), torch.Tensor)
    assert isinstance(F.exp(torch.nn.Parameter(torch.from_numpy(X), requires_grad=False)), torch.Tensor)

    class Mine(np.ndarray):
        pass

    assert isinstance(F.exp(X.view(Mine)), np.ndarray)
    half = F.exp(X.astype(ml_dtypes.bfloat16))
    assert half.dtype == ml_dtypes.bfloat16
    assert F.exp(torch.from_numpy(X).bfloat16()).dtype == torch.bfloat16


def test_jax_halves_and_views() -> None:
    jax = pytest.importorskip("jax")
    x = jax.numpy.asarray(X).astype(jax.numpy.bfloat16)
    got = F.matmul(x[0], x.T)
    assert got.dtype == jax.numpy.bfloat16 and got.shape == (3,)
    np.testing.assert_allclose(numbers(got), numbers(x[0]) @ numbers(x.T), rtol=0.02, atol=0.05)
    with pytest.raises(bc.InvalidProblemError) as caught:
        F.add(x, x, out=x)
    assert caught.value.code == "read_only"


@pytest.mark.parametrize("name", BINARY)
def test_numpy_scalars_are_numbers(name: str) -> None:
    fn = getattr(F, name)
    for scalar, plain in (
        (np.float32(2.5), 2.5),
        (np.float64(2.5), 2.5),
        (np.float16(2.5), 2.5),
        (ml_dtypes.bfloat16(2.5), 2.5),
        (np.longdouble(2.5), 2.5),
        (np.int64(2), 2),
        (np.uint8(2), 2),
        (np.bool_(True), True),
    ):
        if isinstance(plain, bool) and name == "sub":
            continue  # as torch, which refuses to subtract bools
        for _ in range(2):
            got, want = fn(X, scalar), fn(X, plain)
            assert got.dtype == want.dtype == np.float32
            assert got.tobytes() == want.tobytes(), repr(scalar)
    with pytest.raises(bc.InvalidProblemError, match="other"):
        fn(X, np.complex64(1j))
    with pytest.raises(bc.InvalidProblemError, match="other"):
        fn(X, np.str_("2"))


@pytest.mark.parametrize("name", BINARY)
def test_a_remembered_call_uses_its_own_numbers(name: str) -> None:
    fn, reference = getattr(F, name), getattr(torch, name)
    for value in (2.0, 3.0, -1.5, 0.5, 2, 3, 7):
        other = torch.tensor(value) if name == "maximum" else value
        if name == "maximum" and isinstance(value, int):
            continue
        want = reference(torch.from_numpy(X).double(), other)
        np.testing.assert_allclose(fn(X, value), want.numpy(), rtol=1e-6, err_msg=f"{name} {value}")


def test_powers_by_number() -> None:
    for p in (2, 3, 0.5, -1, 2.0, 0, 1):
        np.testing.assert_allclose(F.pow(np.abs(X), p), np.abs(X.astype(np.float64)) ** p, rtol=1e-6, err_msg=f"{p}")


def test_keys_distinguish_what_changes_the_result() -> None:
    ints = np.arange(-3, 3)
    results = [F.add(ints, v) for v in (1, 1.0, True)]
    assert [r.dtype for r in results] == [np.dtype(np.int64), np.dtype(np.float32), np.dtype(np.int64)]
    assert [r.dtype for r in [F.add(ints, v) for v in (1, 1.0, True)]] == [r.dtype for r in results]
    for axis in (0, 1, -1):
        np.testing.assert_allclose(F.sum(X, axis), X.sum(axis), rtol=1e-5)
        np.testing.assert_allclose(F.softmax(X, axis).sum(axis), 1, rtol=1e-5)
    assert F.sum(X, 1).shape == (3,) and F.sum(X, 1, keepdim=True).shape == (3, 1)
    assert F.sum(X, (0, 1)).shape == () and F.sum(X, [0, 1]).shape == ()
    assert F.sum(X, np.int64(1)).shape == (3,)
    for dtype in (np.float32, np.float64, np.float16):
        assert F.exp(X.astype(dtype)).dtype == dtype
    assert F.exp(X[:1]).shape == (1, 8) and F.exp(X[:2]).shape == (2, 8)
    assert F.exp(X.reshape(8, 3)).shape == (8, 3) and F.exp(X.reshape(-1)).shape == (24,)


def test_layouts_do_not_change_results() -> None:
    want = F.exp(X).tobytes()
    wide = np.zeros((6, 16), np.float32)
    wide[::2, ::2] = X
    for view in (X, np.asfortranarray(X), wide[::2, ::2], X[::-1][::-1]):
        assert F.exp(view).tobytes() == want


def test_objects_without_a_value_are_not_remembered() -> None:
    """Two axes objects that may live at the same address must not be taken for each other."""

    class Axis:
        def __init__(self, axis: int) -> None:
            self.axis = axis

        def __index__(self) -> int:
            return self.axis

    before = F.sum._cache_size
    for i in range(200):
        axis = i % 2
        assert F.sum(X, Axis(axis)).shape == ((8,), (3,))[axis]
    assert F.sum._cache_size == before


def test_the_cache_is_bounded() -> None:
    before = F.neg._cache_size
    for n in range(1, 5200):
        F.neg(np.zeros(n, np.int8) if n < 4 else np.zeros((n, 0), np.int8))
    assert F.neg._cache_size <= 4096
    assert F.neg._cache_size != before
    for i in range(50):  # numbers never make entries of their own
        F.add(X, float(i))
    size = F.add._cache_size
    for i in range(50):
        F.add(X, float(i) + 0.5)
        F.add(X, np.float64(i))
    assert F.add._cache_size == size


@pytest.mark.parametrize(
    "dtype",
    [bc.Element.F64, np.float64, np.dtype(np.float64), torch.float64, "float64"],
    ids=lambda d: type(d).__name__,
)
def test_calls_with_a_dtype_are_kept(dtype: object) -> None:
    """Whatever names the element lasts as long as the process, and stands in the key of the call."""
    before = F.cast._cache_size
    for rows in (2, 3, 2, 3):
        assert F.cast(np.zeros((rows, 41, len(type(dtype).__name__)), np.float32), dtype).dtype == np.float64
    assert F.cast._cache_size == before + 2


@pytest.mark.parametrize("name", BINARY)
def test_out(name: str) -> None:
    fn = getattr(F, name)
    want = fn(X, X)
    for make in (np.zeros_like, lambda x: torch.zeros(x.shape), lambda x: bc.zeros(x.shape)):
        out = make(X)
        for _ in range(2):
            assert fn(X, X, out=out) is out
            assert numbers(out).tobytes() == numbers(want).tobytes()
    y = torch.zeros(X.shape)
    version = y._version
    fn(torch.from_numpy(X), torch.from_numpy(X), out=y)
    assert y._version == version + 1
    in_place = X.copy()
    fn(in_place, X, out=in_place)
    assert in_place.tobytes() == want.tobytes()
    for bad in (np.zeros((3, 7), np.float32), np.zeros((3, 8), np.int32), np.zeros((8,), np.float32)):
        before = bad.tobytes()
        with pytest.raises(bc.InvalidProblemError, match=rf"{name}\(\): out: got"):
            fn(X, X, out=bad)
        assert bad.tobytes() == before


def test_errors_name_the_functions_own_parameters() -> None:
    masked = np.ma.masked_array(X)
    with pytest.raises(bc.InvalidProblemError, match=r"^swiglu\(\): input: got a masked array"):
        F.swiglu(masked)
    with pytest.raises(bc.InvalidProblemError, match=r"^add\(\): other: got"):
        F.add(X, X.astype(">f4"))
    with pytest.raises(TypeError, match=r"swiglu\(\) misses its argument 'input'"):
        F.swiglu()
    with pytest.raises(TypeError, match="unexpected keyword argument 'nonsense'"):
        F.swiglu(X, nonsense=1)
    with pytest.raises(TypeError, match="twice"):
        F.swiglu(X, input=X)
    with pytest.raises(TypeError, match="positional"):
        F.swiglu(X, -1, 3, 4)
    with pytest.raises(bc.InvalidProblemError):
        F.swiglu(X, 5)
    with pytest.raises(bc.InvalidProblemError, match="at least one tensor"):
        F.exp(2.0)
    weight, ids = X, np.array([0, 9])
    with pytest.raises(bc.IndexOutOfRangeError, match=r"embedding\(\): input: got index 9"):
        F.embedding(ids, weight)


_FIRST = (0, 0, None, None, None)
_WRONG_ORDERS: tuple[object, ...] = (
    3,
    (np.empty, (1, 2, 3)),
    (np.empty, 0, False, ((0, 7, None, None, None),)),  # no argument
    (np.empty, 0, False, ((2, 0, None, None, None),)),  # a result
    (np.empty, 9, False, (_FIRST,)),
    (np.empty, 0, False, (_FIRST,) * 9),
    (np.empty, 0, False, 3),
)


def test_recipes_that_reach_outside_are_refused() -> None:
    made = bc.plan(bc.GatedActivationDescriptor("swiglu", (3, 8)))
    good = (
        made,
        ((0, 0, None, None, None), (2, 0, None, None, None)),
        ((np.empty, ((3, 4), np.float32), None, -1, None, None),),
        (0,),
        False,
        None,
    )
    last = (made, ((0, 0, None, None, None), (4, 0, None, None, None)), good[2][:0], (), False, None)
    for change in (
        {1: ((0, 7, None, None, None), (2, 0, None, None, None))},
        {1: ((0, -1, None, None, None), (2, 0, None, None, None))},
        {1: ((0, 0, None, None, None), (2, 5, None, None, None))},
        {1: ((0, 0, None, None, None),)},
        {1: ((0, 0, None, (0,) * 9, None), (2, 0, None, None, None))},
        {1: ((0, 0, None, (0, 1), (3,)), (2, 0, None, None, None))},
        {1: ((0, 0, None, (0, 1), 3), (2, 0, None, None, None))},
        {1: ((0, 0, None, (0, -2), (3, 8)), (2, 0, None, None, None))},
        {1: ((3, 0, 0, None, None), (2, 0, None, None, None))},
        {2: ((np.empty, ((3, 4), np.float32), None, 1, None, None),)},
        *({2: ((*good[2][0][:-1], order),)} for order in _WRONG_ORDERS),
        {0: 3},
        {3: (4,)},
        {3: ("x",)},
        {5: ((1,), 0, 9, print, last)},  # of one result
        {5: ((0,), 0, 9, print, last)},  # which is no count
        {5: ((), 0, 9, print, (made, (*last[1][:1], (4, 1, None, None, None)), *last[2:]))},
        {5: ((), 0, 9, print, (*last[:2], ((np.empty, ((3,), np.float32), None, -3, None, None),), *last[3:]))},
        {2: good[2] * 24, 5: ((), 0, 9, print, last)},
    ):
        recipe = tuple(change.get(i, part) for i, part in enumerate(good))
        broken = _core.Function(lambda values, r=recipe: (r, None), (("x", 0, False, False, None, ()),))
        with pytest.raises((ValueError, TypeError)):
            broken(X)
    b = bc.ProgramBuilder()
    b.add(bc.UnaryDescriptor("neg", (3, 8)), x=b.input("x", (3, 8)), y=b.output("y", (3, 8)))
    program, into = b.build(), (2, 0, None, None, None)
    made = ((np.empty, ((3, 8), np.float32), None, -1, None, None),)
    for source in ((1, 0, X, None, None), (0, 3, None, None, None), (2, 4, None, None, None)):
        broken = _core.Function(
            lambda values, s=source: ((program, (s, into), made, (0,), False, None), None),
            (("x", 0, False, False, None, ()),),
        )
        with pytest.raises(ValueError, match="do not exist"):
            broken(X)
    listed = _core.Function(
        lambda values: ((program, ((3, 0, 7, None, None), into), made, (0,), False, None), None),
        (("x", 4, False, False, None, ()),),
    )
    with pytest.raises(ValueError, match="a member that its list does not have"):
        listed([X])
    more = (good[0], ((0, 0, None, (0, 1), (4, 8)), good[1][1]), *good[2:])  # than there is: what there is
    for recipe in (good, more):
        right = _core.Function(lambda values, r=recipe: (r, None), (("x", 0, False, False, None, ()),))
        assert right(X).tobytes() == F.swiglu(X).tobytes()
    row = bc.plan(bc.GatedActivationDescriptor("swiglu", (1, 8)))  # of a vector: -1 puts a dimension in front
    recipe = (
        row,
        ((0, 0, None, (-1, 0), None), good[1][1]),
        ((np.empty, ((1, 4), np.float32), None, -1, None, None),),
        (0,),
        False,
        None,
    )
    right = _core.Function(lambda values: (recipe, None), (("x", 0, False, False, None, ()),))
    assert right(X[0]).tobytes() == F.swiglu(X[:1]).tobytes()


SAMPLES: dict[str, Callable[[], tuple[tuple[Any, ...], Callable[..., Any]]]] = {
    "exp": lambda: ((X,), torch.exp),
    "tanh": lambda: ((X,), torch.tanh),
    "sigmoid": lambda: ((X,), torch.sigmoid),
    "relu": lambda: ((X,), torch.relu),
    "silu": lambda: ((X,), torch.nn.functional.silu),
    "gelu": lambda: ((X,), torch.nn.functional.gelu),
    "softplus": lambda: ((X,), torch.nn.functional.softplus),
    "sqrt": lambda: ((np.abs(X) + 0.5,), torch.sqrt),
    "log": lambda: ((np.abs(X) + 0.5,), torch.log),
    "sin": lambda: ((X,), torch.sin),
    "glu": lambda: ((X,), torch.nn.functional.glu),
    "swiglu": lambda: ((X,), lambda x: x[:, :4] * torch.nn.functional.silu(x[:, 4:])),
    "silu_and_mul": lambda: ((X,), lambda x: torch.nn.functional.silu(x[:, :4]) * x[:, 4:]),
    "add": lambda: ((X, X[:1]), torch.add),
    "sub": lambda: ((X, X[:, :1]), torch.sub),
    "mul": lambda: ((X, X[0]), torch.mul),
    "div": lambda: ((X, np.abs(X) + 1), torch.div),
    "maximum": lambda: ((X, X[::-1].copy()), torch.maximum),
    "softmax": lambda: ((X, -1), lambda x: torch.softmax(x, -1)),
    "log_softmax": lambda: ((X, -1), lambda x: torch.log_softmax(x, -1)),
    "sum": lambda: ((X, 1), lambda x: x.sum(1)),
    "mean": lambda: ((X, 0), lambda x: x.mean(0)),
    "amax": lambda: ((X, 1), lambda x: x.amax(1)),
    "matmul": lambda: ((X, X.T.copy()), torch.matmul),
}


@pytest.mark.parametrize("name", [n for n in SAMPLES if n in dir(F)])
def test_gradients_agree_with_torch(name: str) -> None:
    args, reference = SAMPLES[name]()
    args = tuple(a.astype(np.float64) if isinstance(a, np.ndarray) else a for a in args)
    y, pull = bc.vjp(getattr(F, name), *args)
    leaves = [torch.from_numpy(a).requires_grad_() for a in args if isinstance(a, np.ndarray)]
    want = reference(*leaves)
    np.testing.assert_allclose(y, want.detach().numpy(), rtol=1e-12, atol=1e-14)
    dy = np.random.default_rng(3).normal(size=y.shape)
    want.backward(torch.from_numpy(dy))
    got = pull(dy)
    for mine, leaf in zip(got if isinstance(got, tuple) else (got,), leaves, strict=True):
        np.testing.assert_allclose(mine, leaf.grad.numpy(), rtol=1e-10, atol=1e-12)


def test_functions_without_a_gradient_say_so() -> None:
    with pytest.raises(bc.InvalidProblemError, match="no gradient"):
        bc.vjp(F.argmax, X)


def test_calls_from_threads_give_the_same_bits() -> None:
    want = {n: (F.exp(X[: n + 1]).tobytes(), F.add(X, float(n)).tobytes()) for n in range(3)}
    wrong: list[Any] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(300):
            n = int(rng.integers(3))
            if (F.exp(X[: n + 1]).tobytes(), F.add(X, float(n)).tobytes()) != want[n]:
                wrong.append(n)
            F.neg(np.zeros((int(rng.integers(1, 3000)), 0), np.int16))  # planning at the same time

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong


@pytest.mark.parametrize("name", dir(F))
def test_docstrings_describe_each_argument(name: str) -> None:
    function = getattr(F, name)
    parameters = inspect.signature(function).parameters
    lines = function.__doc__.splitlines()
    assert not parameters or "Args:" in lines, "no section on the arguments"
    said = {line.strip().lstrip("*").partition(":")[0] for line in lines if line.startswith("    ") and ":" in line}
    assert parameters.keys() <= {name.strip() for names in said for name in names.split(",")}
