"""The first of a line, and the one at a place of its order. Kernels in csrc/ops/sort, reference in selection_ref.py."""

from __future__ import annotations

from typing import Any

import baracuda.functional as F
from baracuda.call.compose import Composed, Composer, Value, composed
from baracuda.call.op import Arg, Call, Function, Op, Recipe, function
from baracuda.call.steps import made_of
from baracuda.describe.dims import Shape, Size
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.spec import Descriptor, Kinded, Signature, descriptor, output, tensor
from baracuda.ops.indexing.indexing import GatherBackwardDescriptor, gather_backward
from baracuda.ops.sort.sort import pulled_from_positions


@descriptor(family="sort", op="topk")
class TopkDescriptor(Descriptor):
    """values = the k largest (or smallest) of x along an axis in their order, indices = where along it they were.

    The first k of what `sort` gives: of values that tie those at smaller positions, NaN above every number.

    Args:
        shape: Shape of x, rank 0-8.
        k: How many, at most the axis' size.
        axis: The axis; negative counts from the end.
        largest: Whether the largest are wanted, not the smallest.
        element: Any real element or bool. indices are i64.
    """

    shape: Shape
    k: Size
    axis: int = -1
    largest: bool = True
    element: Element = Element.F32
    axis_of = "shape"

    def validate(self) -> None:
        if isinstance(self.k, int) and self.k < 0:
            raise self.wrong("k", self.k, "at least 0")
        if not self.shape and self.k != 1:
            raise self.wrong("k", self.k, "1 for a tensor of rank 0")
        if self.shape and isinstance(self.k, int) and isinstance(n := self.shape[self.axis], int) and self.k > n:
            raise self.wrong("k", self.k, f"at most {n}, the size of the axis")

    def signature(self) -> Signature:
        made = tuple(self.k if d == self.axis else n for d, n in enumerate(self.shape))
        x = tensor("x", self.shape, self.element)
        return Signature(x, output("values", made, self.element), output("indices", made, Element.I64))

    def attributes(self) -> dict[str, int | float]:
        return {"axis": self.axis, "largest": int(self.largest)}


@descriptor(family="sort", kinds=("kthvalue", "median", "nanmedian"))
class RankDescriptor(Kinded):
    """values = the one of x along an axis at a place of its order, indices = where along it that was.

    kthvalue: the k-th smallest, NaN above every number. median: the lower one of two in the middle; the first NaN where
    there is any. nanmedian: that of the numbers alone; NaN where there are none. An empty axis is refused.

    Args:
        kind: "kthvalue", "median" or "nanmedian".
        shape: Shape of x, rank 0-8.
        axis: The axis; negative counts from the end.
        keepdim: Whether it stays, with size 1.
        k: Of kthvalue, from 1 on.
        element: Any real element or bool. indices are i64.
    """

    shape: Shape
    axis: int = -1
    keepdim: bool = False
    k: int = 0
    element: Element = Element.F32
    axis_of = "shape"

    def validate(self) -> None:
        n = self.shape[self.axis] if self.shape else 1
        if self.kind == "kthvalue" and (self.k < 1 or (isinstance(n, int) and self.k > n > 0)):
            raise self.wrong("k", self.k, f"1 to {n}, a place along the axis")
        if self.kind != "kthvalue" and self.k:
            raise self.wrong("k", self.k, "0: the middle is wanted")

    def signature(self) -> Signature:
        made = tuple(1 if d == self.axis else n for d, n in enumerate(self.shape) if self.keepdim or d != self.axis)
        x = tensor("x", self.shape, self.element)
        return Signature(x, output("values", made, self.element), output("indices", made, Element.I64))

    def attributes(self) -> dict[str, int | float]:
        return {"axis": self.axis, "keepdim": int(self.keepdim), "k": self.k}


OPS = (
    Op(
        "topk", TopkDescriptor, GatherBackwardDescriptor, "values, indices = the k largest of x along an axis, in order"
    ),
    Op("kthvalue", RankDescriptor, GatherBackwardDescriptor, "values, indices = the k-th smallest of x along an axis"),
    Op("median", RankDescriptor, GatherBackwardDescriptor, "values, indices = the lower median of x along an axis"),
    Op("nanmedian", RankDescriptor, GatherBackwardDescriptor, "values, indices = the lower median of the numbers in x"),
)


@function(tensors="input")
def topk(
    call: Call, input: Arg, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> Recipe:  # torch's name
    """(values, indices) of the `k` largest along `dim`, as torch.topk; in order, whatever `sorted` says."""
    del sorted
    return call(TopkDescriptor(input.shape, k, dim, largest, input.element), x=input)


pulled_from_positions(topk)


@function(tensors="input")
def kthvalue(call: Call, input: Arg, k: int, dim: int = -1, keepdim: bool = False) -> Recipe:
    """(values, indices) of the `k`-th smallest along `dim`, as torch.kthvalue; of ties by position."""
    return call(RankDescriptor("kthvalue", input.shape, dim, keepdim, k, input.element), x=input)


def pulled_from_places(fn: Function) -> None:
    """The gradient of a function that folds an axis: to the place, or, of all elements, shared among those that tie."""

    @fn.vjp
    def rule(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        call = fn.__signature__.bind(*args, **kwargs)
        call.apply_defaults()
        found, given = fn(*args, **kwargs), call.arguments
        input, dim = given["input"], given["dim"]
        shape = tuple(input.shape)
        if dim is None:
            return found, lambda dy: F.amax_backward(dy, input, found)

        def pull(dy: Any) -> Any:
            values, index = dy[0] if isinstance(dy, tuple) else dy, found[1]
            if shape and not given["keepdim"]:
                kept = (*shape[: dim % len(shape)], 1, *shape[dim % len(shape) + 1 :])
                values, index = values.reshape(kept), index.reshape(kept)
            return gather_backward(values, index, shape, dim)

        return found, pull


pulled_from_places(kthvalue)


def _median(kind: str, about: str) -> Composed:
    def median(c: Composer, input: Value, dim: int | None = None, keepdim: bool = False) -> Any:
        if dim is not None:
            return c(RankDescriptor(kind, input.shape, dim, keepdim, 0, input.element), x=input)
        row = c.reshape(input, (-1,)) if input.rank != 1 else input
        if not row.shape[0]:
            raise InvalidProblemError("input: got no elements, want at least one: nothing has no median.")
        return c(RankDescriptor(kind, row.shape, 0, False, 0, row.element), x=row)[0]

    median.__name__ = kind
    median.__doc__ = f"The lower median {about}: of all elements, or (values, indices) along `dim`, as torch.{kind}."
    made = made_of(kind)(composed(tensors="input")(median))
    pulled_from_places(made)
    return made


median = _median("median", "of `input`, NaN where there is any")
nanmedian = _median("nanmedian", "of the numbers in `input`")
