"""Softmax and log_softmax over one axis, also of scaled and masked values. Kernels in csrc/ops/softmax, reference in softmax_ref.py."""

from __future__ import annotations

from typing import Any

from baracuda.call.compose import of_elements
from baracuda.call.op import Arg, Call, Op, Recipe, function
from baracuda.call.steps import made_of
from baracuda.describe.dims import Shape, shape_text
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.spec import Descriptor, Kinded, Signature, descriptor, frame, output, scalar, tensor
from baracuda.ops.cast.cast import cast

KINDS = ("softmax", "log_softmax")


@frame
class _Softmax(Descriptor):
    """Fields that all share."""

    __slots__ = ()
    shape: Shape
    axis: int = -1
    element: Element = Element.F32
    axis_of = "shape"


@descriptor(family="softmax", kinds=KINDS)
class SoftmaxDescriptor(_Softmax, Kinded):
    """y = exp(x - max) / sum(exp(x - max)) along an axis, or its logarithm (x - max) - log(sum).

    A slice with a NaN or +inf, or of -inf only, is NaN, as in torch. y may be the same view as x.

    Args:
        kind: "softmax" or "log_softmax".
        shape: Shape of x and y, rank 0-8; a 0-d tensor counts as having one element along its axis.
        axis: The axis; negative counts from the end.
        element: f16, bf16, f32 or f64.
    """

    def signature(self) -> Signature:
        return Signature(tensor("x", self.shape, self.element), output("y", self.shape, self.element))


@descriptor(gradient_of=SoftmaxDescriptor)
class SoftmaxBackwardDescriptor(_Softmax, Kinded):
    """dx = y (dy - sum(y dy)), and dy - exp(y) sum(dy) for log_softmax, from the saved result y.

    dx may be the same view as dy or y.

    Args:
        kind: "softmax" or "log_softmax".
        shape: Shape of dy, y and dx.
        axis: The axis.
        element: f16, bf16, f32 or f64.
    """

    def signature(self) -> Signature:
        e = self.element
        return Signature(tensor("dy", self.shape, e), tensor("y", self.shape, e), output("dx", self.shape, e))


@descriptor(family="softmax", op="scaled_softmax")
class ScaledSoftmaxDescriptor(_Softmax):
    """y = softmax(scale x) along an axis, of the elements that a mask keeps; the others are 0.

    `scale` is a scalar, 1 unless given; -1 gives softmin. A slice of which the mask keeps nothing is 0. y may be the same
    view as x.

    Args:
        shape: Shape of x and y, rank 0-8.
        axis: The axis; negative counts from the end.
        element: f16, bf16, f32 or f64.
        mask_shape: Shape of the mask (bool, true keeps), which broadcasts to `shape`; None: no mask.
    """

    mask_shape: Shape | None = None

    def validate(self) -> None:
        if self.mask_shape is None:
            return
        lead = len(self.shape) - len(self.mask_shape)
        if lead < 0 or any(m not in (1, s) for m, s in zip(self.mask_shape, self.shape[lead:], strict=True)):
            raise self.wrong("mask_shape", self.mask_shape, f"a shape that broadcasts to {shape_text(self.shape)}")

    def signature(self) -> Signature:
        return Signature(
            tensor("x", self.shape, self.element),
            tensor("mask", self.mask_shape or (), Element.BOOL, present=self.mask_shape is not None),
            output("y", self.shape, self.element),
            scalar("scale", default=1.0),
        )


@descriptor(gradient_of=ScaledSoftmaxDescriptor)
class ScaledSoftmaxBackwardDescriptor(_Softmax):
    """dx = scale y (dy - sum(y dy)) from the saved result y, which is 0 where the mask kept nothing.

    dx may be the same view as dy or y.

    Args:
        shape: Shape of dy, y and dx.
        axis: The axis.
        element: f16, bf16, f32 or f64.
    """

    def signature(self) -> Signature:
        e = self.element
        given = (tensor("dy", self.shape, e), tensor("y", self.shape, e))
        return Signature(*given, output("dx", self.shape, e), scalar("scale", default=1.0))


OPS = (
    Op("softmax", SoftmaxDescriptor, SoftmaxBackwardDescriptor, "y = exp(x - max) / sum(exp(x - max))"),
    Op("log_softmax", SoftmaxDescriptor, SoftmaxBackwardDescriptor, "y = x - max - log(sum(exp(x - max)))"),
    Op("scaled_softmax", ScaledSoftmaxDescriptor, ScaledSoftmaxBackwardDescriptor, "y = softmax(scale x) where mask"),
)


def _asked(input: Arg, dtype: Any) -> Element:
    return input.element if dtype is None else Element.coerce(dtype, "dtype")


@function(tensors="input")
def softmax(call: Call, input: Arg, dim: int, *, dtype: Any = None, out: Arg | None = None) -> Recipe:
    """exp(input) / sum(exp(input)) along `dim`, as torch.softmax; of `input` cast to `dtype`, if it is given."""
    return of_elements(call, SoftmaxDescriptor("softmax", input.shape, dim, _asked(input, dtype)), x=input)


@function(tensors="dy result input")
def softmax_backward(call: Call, dy: Arg, result: Arg, dim: int, input: Arg | None = None) -> Recipe:
    """Gradient of softmax, from its result; of the element of `input`, if it is given."""
    to = None if input is None else input.element
    desc = SoftmaxBackwardDescriptor("softmax", result.shape, dim, result.element)
    return of_elements(call, desc, to, dy=dy, y=result)


@function(tensors="input")
def log_softmax(call: Call, input: Arg, dim: int, *, dtype: Any = None, out: Arg | None = None) -> Recipe:
    """log(softmax(input)) along `dim`, as torch.log_softmax; of `input` cast to `dtype`, if it is given."""
    return of_elements(call, SoftmaxDescriptor("log_softmax", input.shape, dim, _asked(input, dtype)), x=input)


@function(tensors="dy result input")
def log_softmax_backward(call: Call, dy: Arg, result: Arg, dim: int, input: Arg | None = None) -> Recipe:
    """Gradient of log_softmax, from its result; of the element of `input`, if it is given."""
    to = None if input is None else input.element
    desc = SoftmaxBackwardDescriptor("log_softmax", result.shape, dim, result.element)
    return of_elements(call, desc, to, dy=dy, y=result)


@function(tensors="input mask")
def scaled_softmax(
    call: Call, input: Arg, dim: int, scale: float = 1.0, mask: Arg | None = None, *, out: Arg | None = None
) -> Recipe:
    """softmax(scale * input) along `dim` of the elements where `mask` (bool) is true; the others are 0."""
    if mask is not None and mask.element is not Element.BOOL:
        raise InvalidProblemError(f"scaled_softmax: mask: got element {mask.element}, want bool.")
    desc = ScaledSoftmaxDescriptor(input.shape, dim, input.element, None if mask is None else mask.shape)
    return call(desc, x=input, mask=mask, scale=float(scale))


@function(tensors="dy result")
def scaled_softmax_backward(call: Call, dy: Arg, result: Arg, dim: int, scale: float = 1.0) -> Recipe:
    """Gradient of scaled_softmax, from its result."""
    desc = ScaledSoftmaxBackwardDescriptor(result.shape, dim, result.element)
    return call(desc, dy=dy, y=result, scale=float(scale))


@made_of("cast scaled_softmax")
@function(tensors="input")
def softmin(call: Call, input: Arg, dim: int, *, dtype: Any = None) -> Recipe:
    """softmax(-input) along `dim`, as torch's softmin: a plan of scaled_softmax with the scale -1; cast to `dtype` before."""
    element = _asked(input, dtype)
    desc = ScaledSoftmaxDescriptor(input.shape, dim, element)
    if element is input.element:
        return call(desc, x=input, scale=-1.0)
    return call.steps(lambda c, x: c(desc, x=c.cast(x, element), scale=-1.0), input)


@softmin.vjp
def _softmin_vjp(input: Any, dim: int, *, dtype: Any = None) -> tuple[Any, Any]:
    y = softmin(input, dim, dtype=dtype)

    def pull(dy: Any) -> Any:
        dx = scaled_softmax_backward(dy, y, dim, -1.0)
        return dx if y.dtype == input.dtype else cast(dx, input.dtype)

    return y, pull


softmax.pulled_by(softmax_backward)
log_softmax.pulled_by(log_softmax_backward)
scaled_softmax.pulled_by(scaled_softmax_backward)
scaled_softmax.without_gradient("mask")
