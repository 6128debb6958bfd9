"""Where values belong in sorted sequences. Kernels in csrc/ops/sort, reference in search_ref.py."""

from __future__ import annotations

from typing import Any

from baracuda.call.compose import Composer, Value, composed
from baracuda.call.op import NotDifferentiable, Op
from baracuda.call.steps import made_of
from baracuda.describe.dims import Shape
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.spec import Descriptor, Signature, descriptor, output, tensor
from baracuda.ops.indexing.indexing import GatherDescriptor


@descriptor(family="sort", op="searchsorted")
class SearchsortedDescriptor(Descriptor):
    """y = how many elements of a sorted sequence come before each of values: those below it or, with right, not above it.

    In the order of `sort`: NaN above every number, zeros of both signs the same. What a sequence gives that is not
    sorted, is a number from 0 to its size.

    Args:
        sequence_shape: Shape of the sequences, which lie along the last dimension; one of rank 1 is for all values.
        shape: Shape of values and y, rank 0-8; where there are several sequences, as they are, but for the last dimension.
        right: Whether what ties comes before.
        element: Any real element or bool.
        index_element: Of y: i64 or i32.
    """

    sequence_shape: Shape
    shape: Shape
    right: bool = False
    element: Element = Element.F32
    index_element: Element = Element.I64

    def validate(self) -> None:
        rank = len(self.sequence_shape)
        if rank == 0:
            raise self.wrong("sequence_shape", self.sequence_shape, "at least one dimension")
        if rank > 1 and (len(self.shape) != rank or self.shape[:-1] != self.sequence_shape[:-1]):
            raise self.wrong("shape", self.shape, f"{self.sequence_shape[:-1]} and any last dimension")

    def signature(self) -> Signature:
        return Signature(
            tensor("sequence", self.sequence_shape, self.element),
            tensor("values", self.shape, self.element),
            output("y", self.shape, self.index_element),
        )

    def attributes(self) -> dict[str, int | float]:
        return {"right": int(self.right)}


OPS = (
    Op(
        "searchsorted",
        SearchsortedDescriptor,
        NotDifferentiable("the result is made of positions, not of values"),
        "y = how many elements of a sorted sequence are below each value",
    ),
)


def _right(right: bool, side: str | None) -> bool:
    if side not in (None, "left", "right"):
        raise InvalidProblemError(f'side: got {side!r}, want "left" or "right".')
    if side == "left" and right:
        raise InvalidProblemError('side: got "left" beside right=True. Leave out one of them.')
    return right or side == "right"


def _found(c: Composer, sequence: Value, values: Value, right: bool, out_int32: bool) -> Value:
    if sequence.element is not values.element:
        raise InvalidProblemError(
            f"input: got element {values.element}, want {sequence.element}, as the sorted sequence has. Cast one."
        )
    index = Element.I32 if out_int32 else Element.I64
    desc = SearchsortedDescriptor(sequence.shape, values.shape, right, values.element, index)
    made: Value = c(desc, sequence=sequence, values=values)
    return made


@made_of("searchsorted gather")
@composed(tensors="sorted_sequence input sorter")
def searchsorted(
    c: Composer,
    sorted_sequence: Value,
    input: Value,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Value | None = None,
    out: Any = None,
) -> Value:
    """Where in `sorted_sequence` each of `input` belongs, as torch.searchsorted; NaN belongs behind every number.

    `sorter` gives the positions that sort the sequence, as argsort does, where it is not sorted itself.
    """
    if sorter is not None:
        if sorter.shape != sorted_sequence.shape or sorter.element is not Element.I64:
            got = f"{sorter.element} of shape {sorter.shape}"
            raise InvalidProblemError(f"sorter: got {got}, want i64 of shape {sorted_sequence.shape}.")
        desc = GatherDescriptor(sorted_sequence.shape, sorter.shape, -1, sorted_sequence.element)
        sorted_sequence = c(desc, x=sorted_sequence, index=sorter)
    return _found(c, sorted_sequence, input, _right(right, side), out_int32)


@made_of("searchsorted")
@composed(tensors="input boundaries")
def bucketize(
    c: Composer, input: Value, boundaries: Value, *, out_int32: bool = False, right: bool = False, out: Any = None
) -> Value:
    """Between which of the sorted `boundaries` each of `input` lies, as torch.bucketize."""
    if boundaries.rank != 1:
        raise InvalidProblemError(f"boundaries: got shape {boundaries.shape}, want one dimension.")
    return _found(c, boundaries, input, right, out_int32)
