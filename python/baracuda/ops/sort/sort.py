"""Sorting along an axis. Kernels in csrc/ops/sort, reference in sort_ref.py."""

from __future__ import annotations

from typing import Any

from baracuda.call.compose import Composer, Value, composed
from baracuda.call.op import Arg, Call, Function, Op, Recipe, function
from baracuda.call.steps import made_of
from baracuda.describe.dims import Shape
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.order import as_one
from baracuda.describe.spec import Descriptor, Signature, descriptor, output, tensor
from baracuda.ops.indexing.indexing import GatherBackwardDescriptor, GatherDescriptor, gather_backward


@descriptor(family="sort", op="sort", result_order=as_one("x"))
class SortDescriptor(Descriptor):
    """values = x sorted along an axis, indices = where along it they were.

    Stable: of values that tie, the one at the smaller position comes first. NaN is larger than every number, and all NaN
    tie; so do -0 and 0.

    Args:
        shape: Shape of x, values and indices, rank 0-8.
        axis: The axis; negative counts from the end.
        descending: Whether the largest come first.
        element: Any real element or bool. indices are i64.
    """

    shape: Shape
    axis: int = -1
    descending: bool = False
    element: Element = Element.F32
    axis_of = "shape"

    def signature(self) -> Signature:
        return Signature(
            tensor("x", self.shape, self.element),
            output("values", self.shape, self.element),
            output("indices", self.shape, Element.I64),
        )


OPS = (
    Op(
        "sort",
        SortDescriptor,
        GatherBackwardDescriptor,
        "values, indices = x sorted along an axis; stable, NaN above every number",
    ),
)


@function(tensors="input")
def sort(call: Call, input: Arg, dim: int = -1, descending: bool = False, stable: bool = False) -> Recipe:
    """(values, indices) of `input` sorted along `dim`, as torch.sort; always stable, so `stable` changes nothing."""
    del stable
    return call(SortDescriptor(input.shape, dim, descending, input.element), x=input)


def pulled_from_positions(fn: Function) -> None:
    """Makes the gradient of a function that yields (values, indices) along `dim`: dvalues go to where values were."""

    @fn.vjp
    def rule(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        call = fn.__signature__.bind(*args, **kwargs)
        call.apply_defaults()
        found, input, dim = fn(*args, **kwargs), call.arguments["input"], call.arguments["dim"]
        shape = tuple(input.shape)

        def pull(dy: Any) -> Any:
            return gather_backward(dy[0] if isinstance(dy, tuple) else dy, found[1], shape, dim)

        return found, pull


pulled_from_positions(sort)


@made_of("sort")
@composed(tensors="input")
def argsort(c: Composer, input: Value, dim: int = -1, descending: bool = False, *, stable: bool = False) -> Value:
    """Positions that sort `input` along `dim`, as torch.argsort (i64); always stable, so `stable` changes nothing."""
    del stable
    found: Value = c(SortDescriptor(input.shape, dim, descending, input.element), x=input)[1]
    return found


@made_of("sort")
@composed(tensors="input")
def msort(c: Composer, input: Value, *, out: Any = None) -> Value:
    """`input` sorted along its first dimension, as torch.msort."""
    found: Value = c(SortDescriptor(input.shape, 0, False, input.element), x=input)[0]
    return found


@made_of("sort gather")
@composed(tensors="keys")
def lexsort(c: Composer, *keys: Value, dim: int = -1) -> Value:
    """Positions that sort by several keys along `dim`, as numpy.lexsort: by the last one, where that ties by the one before.

    Args:
        *keys: Tensors of one shape, or a list of them, of whatever elements; NaN above every number.
        dim: The dimension.

    Raises:
        InvalidProblemError: If shapes differ.
    """
    order: Value | None = None
    for key in keys:
        if key.shape != keys[0].shape:
            raise InvalidProblemError(f"keys: got shapes {keys[0].shape} and {key.shape}, want one shape.")
        if order is not None:
            desc = GatherDescriptor(key.shape, key.shape, dim, key.element)
            key = c(desc, x=key, index=order)
        found = c(SortDescriptor(key.shape, dim, False, key.element), x=key)[1]
        if order is not None:
            found = c(GatherDescriptor(key.shape, key.shape, dim, Element.I64), x=order, index=found)
        order = found
    assert order is not None
    return order
