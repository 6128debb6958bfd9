"""bc.functional inside of torch.compile and jax's transformations: an opaque call or a refusal that says what to do."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from children import run_alone

import baracuda as bc
import baracuda.functional as F

# A function of one plan, one of several, and a plain one.
TRACED: dict[str, Callable[[Any], Any]] = {
    "softmax": lambda x: F.softmax(x, -1),
    "einsum": lambda x: F.einsum("ij,kj->ik", x, x),
    "nonzero": lambda x: F.nonzero(x),
    "cat": lambda x: F.cat([x, x]),
}


@pytest.mark.parametrize("name", TRACED)
def test_jax_is_refused_by_name(name: str) -> None:
    jax = pytest.importorskip("jax")
    x = jax.numpy.ones((3, 4))
    for transform in (jax.jit, jax.vmap, jax.grad, lambda f: lambda x: jax.eval_shape(f, x)):
        with pytest.raises(
            bc.InvalidProblemError, match=rf"{name}\(\): .*a traced value of jax.*pure_callback.*infer"
        ) as told:
            transform(TRACED[name])(x[None] if transform is jax.vmap else x)
        assert told.value.code == "null_data"


def test_jax_callbacks() -> None:
    jax = pytest.importorskip("jax")
    x = jax.numpy.arange(12.0).reshape(3, 4)

    @jax.jit
    def call(x: Any) -> Any:
        return jax.pure_callback(lambda a: np.asarray(F.softmax(a, -1)), jax.ShapeDtypeStruct(x.shape, x.dtype), 2 * x)

    np.testing.assert_array_equal(call(x), F.softmax(2 * x, -1))


COMPILED = """
import warnings
warnings.simplefilter("error")
import torch
from torch._dynamo.convert_frame import register_bytecode_hook
from test_tracing import TRACED

frames = []
register_bytecode_hook(lambda code, new: frames.append(code.co_filename))
x, y = torch.randn(3, 4), torch.randn(3, 4)
for name, traced in TRACED.items():
    def model(x):
        return traced(2 * x) + 1

    for fullgraph in (True, False):  # the first loads the function
        torch._dynamo.reset()
        frames.clear()
        compiled = torch.compile(model, backend="eager", fullgraph=fullgraph)
        try:
            assert torch.equal(compiled(x), model(x)) and torch.equal(compiled(y), model(y))
            assert compiled(y[:2]).shape == model(y[:2]).shape  # a new shape: found out while the compiler watches
            assert not fullgraph and frames and not [f for f in frames if "/baracuda/" in f], (name, frames)
        except torch._dynamo.exc.Unsupported as error:
            assert fullgraph and not frames and "does not know how to trace" in str(error), (name, error)
    print(name)
assert torch.equal(torch.compile(torch.exp, backend="eager")(x), x.exp())
"""


def test_torch_compile_never_looks_inside() -> None:
    """Without fullgraph the call is carried out as it is, and with it refused by torch."""
    here = Path(__file__).parent
    where = f"import sys; sys.path[:0] = [{str(here)!r}, {str(here / 'harness')!r}]"
    assert run_alone(where + COMPILED).split() == [*TRACED]


def test_functions_kept_out_with_torch_compiler_disable() -> None:
    softmax = torch.compiler.disable(F.softmax)
    x = torch.randn(3, 4)
    assert torch.equal(torch.compile(lambda x: softmax(x, -1) * 2, backend="eager")(x), F.softmax(x, -1) * 2)


def test_the_compiler_watches_again_after_an_error() -> None:
    seen: list[str] = []

    def backend(graph: Any, inputs: Any) -> Any:
        seen.append("graph")
        return graph.forward

    def model(x: torch.Tensor) -> torch.Tensor:
        try:
            x = F.nonzero(x, wrong=1)
        except TypeError:
            x = x + 1
        return after(x)

    def after(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    torch._dynamo.reset()
    assert torch.equal(torch.compile(model, backend=backend)(torch.ones(3)), torch.full((3,), 4.0))
    assert seen


@pytest.mark.parametrize("name", TRACED)
def test_fake_tensors_are_refused(name: str) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        x = torch.ones(3, 4)
        with pytest.raises(
            bc.InvalidProblemError, match=r"a fake torch tensor.*torch\.compiler\.disable.*infer"
        ) as told:
            TRACED[name](x)
    assert told.value.code == "null_data"


def test_the_first_tensor_may_come_while_others_are_fake() -> None:
    """What is asked of torch once is not asked of fake tensors."""
    run_alone(
        """
import warnings
warnings.simplefilter("error")
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from baracuda.memory import _torch
import baracuda.functional as F
x = torch.ones(3)
with FakeTensorMode():
    assert _torch.native_functions() is not None and _torch.scalar_types()
    F.exp(x)
assert type(F.exp(x)) is torch.Tensor
"""
    )


def test_functions_are_picklable() -> None:
    for name in (*TRACED, "matmul", "zeros"):
        assert pickle.loads(pickle.dumps(getattr(F, name))) is getattr(F, name)
