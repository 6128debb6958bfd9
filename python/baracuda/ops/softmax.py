"""Softmax and log_softmax over one axis. Kernels in csrc/ops/softmax, reference in softmax_ref.py."""

from __future__ import annotations

from typing import Any

from baracuda.dims import Shape, check_axis
from baracuda.elements import Element
from baracuda.op import Arg, Call, Op, Recipe, function
from baracuda.spec import Descriptor, Signature, descriptor, output, tensor

KINDS = ("softmax", "log_softmax")


class _Softmax(Descriptor):
    """Fields and checks that forward and backward share."""

    __slots__ = ()
    shape: Shape
    axis: int

    def validate(self) -> None:
        object.__setattr__(self, "axis", check_axis(self.axis, len(self.shape), f"{type(self).__name__}.axis"))

    def attributes(self) -> tuple[int, ...]:
        return (self.axis,)


@descriptor(family="softmax", kinds=KINDS)
class SoftmaxDescriptor(_Softmax):
    """y = exp(x - max) / sum(exp(x - max)) along an axis, or its logarithm (x - max) - log(sum).

    A slice with a NaN or +inf, or of -inf only, is NaN, as in torch. y may be the same view as x.

    Args:
        kind: "softmax" or "log_softmax".
        shape: Shape of x and y, rank 0-8; a 0-d tensor counts as having one element along its axis.
        axis: The axis; negative counts from the end.
        element: f16, bf16, f32 or f64.
    """

    kind: str
    shape: Shape
    axis: int = -1
    element: Element = Element.F32

    def signature(self) -> Signature:
        return Signature(tensor("x", self.shape, self.element), output("y", self.shape, self.element))

    def backward(self) -> SoftmaxBackwardDescriptor:
        """The gradient's descriptor."""
        return SoftmaxBackwardDescriptor(self.kind, self.shape, self.axis, self.element)


@descriptor(family="softmax", direction="backward", kinds=KINDS)
class SoftmaxBackwardDescriptor(_Softmax):
    """dx = y (dy - sum(y dy)), and dy - exp(y) sum(dy) for log_softmax, from the saved result y.

    dx may be the same view as dy or y.

    Args:
        kind: "softmax" or "log_softmax".
        shape: Shape of dy, y and dx.
        axis: The axis.
        element: f16, bf16, f32 or f64.
    """

    kind: str
    shape: Shape
    axis: int = -1
    element: Element = Element.F32

    def signature(self) -> Signature:
        e = self.element
        return Signature(tensor("dy", self.shape, e), tensor("y", self.shape, e), output("dx", self.shape, e))


OPS = (
    Op("softmax", SoftmaxDescriptor, SoftmaxBackwardDescriptor, "y = exp(x - max) / sum(exp(x - max))"),
    Op("log_softmax", SoftmaxDescriptor, SoftmaxBackwardDescriptor, "y = x - max - log(sum(exp(x - max)))"),
)


@function(tensors="input")
def softmax(call: Call, input: Arg, dim: int, *, out: Arg | None = None) -> Recipe:
    """exp(input) / sum(exp(input)) along `dim`, as torch.softmax."""
    return call(SoftmaxDescriptor("softmax", input.shape, dim, input.element), x=input)


@function(tensors="dy result")
def softmax_backward(call: Call, dy: Arg, result: Arg, dim: int) -> Recipe:
    """Gradient of softmax, from its result."""
    return call(SoftmaxBackwardDescriptor("softmax", result.shape, dim, result.element), dy=dy, y=result)


@function(tensors="input")
def log_softmax(call: Call, input: Arg, dim: int, *, out: Arg | None = None) -> Recipe:
    """log(softmax(input)) along `dim`, as torch.log_softmax."""
    return call(SoftmaxDescriptor("log_softmax", input.shape, dim, input.element), x=input)


@function(tensors="dy result")
def log_softmax_backward(call: Call, dy: Arg, result: Arg, dim: int) -> Recipe:
    """Gradient of log_softmax, from its result."""
    return call(SoftmaxBackwardDescriptor("log_softmax", result.shape, dim, result.element), dy=dy, y=result)


@softmax.vjp
def _softmax_vjp(input: Any, dim: int) -> tuple[Any, Any]:
    y = softmax(input, dim)
    return y, lambda dy: softmax_backward(dy, y, dim)


@log_softmax.vjp
def _log_softmax_vjp(input: Any, dim: int) -> tuple[Any, Any]:
    y = log_softmax(input, dim)
    return y, lambda dy: log_softmax_backward(dy, y, dim)
