"""Sparsemax and entmax-1.5 over one axis. Kernels in csrc/ops/softmax, reference in sparse_ref.py."""

from __future__ import annotations

from baracuda.call.op import Arg, Call, Op, Recipe, function
from baracuda.describe.dims import Shape
from baracuda.describe.elements import Element
from baracuda.describe.spec import Kinded, Signature, descriptor, frame, output, tensor


@frame
class _Sparse(Kinded):
    """Fields that forward and backward share."""

    __slots__ = ()
    shape: Shape
    axis: int = -1
    element: Element = Element.F32
    axis_of = "shape"


@descriptor(family="softmax", kinds=("sparsemax", "entmax15"))
class SparseSoftmaxDescriptor(_Sparse):
    """y = max(x - t, 0) along an axis, or max(x / 2 - t, 0)^2 for entmax15, t such that y adds up to 1.

    Sparsemax (Martins and Astudillo, 2016) and 1.5-entmax (Peters et al., 2019): many results are 0 exactly. t is found by
    Newton's steps from below, each over what lies above it, to the last bit that sums in the compute element tell. A slice with a
    NaN or +inf, or of -inf only, is NaN. y may be the same view as x.

    Args:
        kind: "sparsemax" or "entmax15".
        shape: Shape of x and y, rank 0-8.
        axis: The axis; negative counts from the end.
        element: f16, bf16, f32 or f64.
    """

    def signature(self) -> Signature:
        return Signature(tensor("x", self.shape, self.element), output("y", self.shape, self.element))


@descriptor(gradient_of=SparseSoftmaxDescriptor)
class SparseSoftmaxBackwardDescriptor(_Sparse):
    """dx = s (dy - sum(s dy) / sum(s)), s = 1 where y is above 0, else 0; for entmax15 s = sqrt(y). From the saved result y.

    dx may be the same view as dy or y.

    Args:
        kind: "sparsemax" or "entmax15".
        shape: Shape of dy, y and dx.
        axis: The axis.
        element: f16, bf16, f32 or f64.
    """

    def signature(self) -> Signature:
        e = self.element
        return Signature(tensor("dy", self.shape, e), tensor("y", self.shape, e), output("dx", self.shape, e))


OPS = (
    Op("sparsemax", SparseSoftmaxDescriptor, SparseSoftmaxBackwardDescriptor, "y = max(x - t, 0), which adds up to 1"),
    Op(
        "entmax15",
        SparseSoftmaxDescriptor,
        SparseSoftmaxBackwardDescriptor,
        "y = max(x / 2 - t, 0)^2, which adds up to 1",
    ),
)


@function(tensors="input")
def sparsemax(call: Call, input: Arg, dim: int = -1, *, out: Arg | None = None) -> Recipe:
    """The point nearest to `input` of those that are not negative and add up to 1 along `dim`: max(input - t, 0)."""
    return call(SparseSoftmaxDescriptor("sparsemax", input.shape, dim, input.element), x=input)


@function(tensors="dy result")
def sparsemax_backward(call: Call, dy: Arg, result: Arg, dim: int = -1) -> Recipe:
    """Gradient of sparsemax, from its result."""
    return call(SparseSoftmaxBackwardDescriptor("sparsemax", result.shape, dim, result.element), dy=dy, y=result)


@function(tensors="input")
def entmax15(call: Call, input: Arg, dim: int = -1, *, out: Arg | None = None) -> Recipe:
    """max(input / 2 - t, 0)^2, which adds up to 1 along `dim`: 1.5-entmax, between softmax and sparsemax."""
    return call(SparseSoftmaxDescriptor("entmax15", input.shape, dim, input.element), x=input)


@function(tensors="dy result")
def entmax15_backward(call: Call, dy: Arg, result: Arg, dim: int = -1) -> Recipe:
    """Gradient of entmax15, from its result."""
    return call(SparseSoftmaxBackwardDescriptor("entmax15", result.shape, dim, result.element), dy=dy, y=result)


sparsemax.pulled_by(sparsemax_backward)
entmax15.pulled_by(entmax15_backward)
