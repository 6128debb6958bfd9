"""Norms of vectors by torch.linalg's name, and vectors over their norms, made of `norm`."""

from __future__ import annotations

from typing import Any

from baracuda import functional as F
from baracuda.call.compose import Composer, Value, composed, of_elements
from baracuda.call.inline import pulled_through
from baracuda.call.op import Arg, Call, Recipe, function
from baracuda.call.steps import made_of
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.ops.reduce.reduce import Axes, axes_of
from baracuda.ops.reduce.variance import VectorNormDescriptor, norm_backward

OPS = ()


@made_of("cast norm")
@function(tensors="x")
def vector_norm(
    call: Call,
    x: Arg,
    ord: float = 2,
    dim: Axes = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
    out: Arg | None = None,
) -> Recipe:
    """(sum |x|^ord)^(1/ord) over `dim` (all axes by default), as torch.linalg.vector_norm, of x cast to `dtype`."""
    element = x.element if dtype is None else Element.coerce(dtype, "dtype")
    if not element.is_float:
        raise InvalidProblemError(f"vector_norm: x: got element {element}, want a float element. Cast it first.")
    desc = VectorNormDescriptor(x.shape, axes_of(dim), keepdim, element, float(ord))
    return of_elements(call, desc, None, x=x)


@vector_norm.vjp
def _vector_norm_vjp(
    x: Any, ord: float = 2, dim: Axes = None, keepdim: bool = False, *, dtype: Any = None
) -> tuple[Any, Any]:
    y = vector_norm(x, ord, dim, keepdim, dtype=dtype)

    def pull(dy: Any) -> Any:
        if y.dtype == x.dtype:
            return norm_backward(dy, x, y, ord, dim, keepdim)
        return F.cast(norm_backward(dy, F.cast(x, y.dtype), y, ord, dim, keepdim), x.dtype)

    return y, pull


@pulled_through
@made_of("cast clamp div norm")
@composed(tensors="input")
def normalize(c: Composer, input: Value, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, out: Any = None) -> Value:
    """Values over max(norm(input, p) along `dim`, eps), as torch's normalize; of halves in f32, rounded once."""
    x = c.wide(input)
    made: Value = c.cast(c.of(F.div, x, c.of(F.clamp, c.of(F.norm, x, p, dim, True), eps)), input.element)
    return made
