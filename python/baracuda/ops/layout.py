"""Data movement: copies between any strides, and fills. Kernels in csrc/ops/layout, reference in layout_ref.py."""

from __future__ import annotations

from typing import Any

from baracuda.dims import Shape
from baracuda.elements import Element
from baracuda.op import Arg, Call, NotDifferentiable, Op, Recipe, function
from baracuda.spec import Descriptor, Signature, descriptor, output, scalar, tensor


@descriptor(family="layout", op="copy")
class CopyDescriptor(Descriptor):
    """y = x, bit for bit, from any strides to any strides: also contiguous() and permute, given a permuted view.

    Args:
        shape: Shape of x and y, rank 0-8. x may be a broadcast view (zero strides).
        element: Any element of 1, 2, 4, 8 or 16 bytes, complex and fp8 included.
    """

    shape: Shape
    element: Element = Element.F32

    def signature(self) -> Signature:
        return Signature(tensor("x", self.shape, self.element), output("y", self.shape, self.element))


@descriptor(family="layout", op="fill")
class FillDescriptor(Descriptor):
    """y = value, rounded to y's element as cast does; value is a number given to run.

    Args:
        shape: Shape of y, rank 0-8.
        element: bool, any integer, f16, bf16, f32 or f64. For integers the value must be an integer.
    """

    shape: Shape
    element: Element = Element.F32

    def signature(self) -> Signature:
        kind = (
            "float"
            if self.element.is_float or self.element is Element.BOOL
            else "unsigned"
            if self.element in _UNSIGNED
            else "int"
        )
        return Signature(output("y", self.shape, self.element), scalar("value", kind))


_UNSIGNED = (Element.U8, Element.U16, Element.U32, Element.U64)
OPS = (
    Op(
        "copy",
        CopyDescriptor,
        NotDifferentiable("a copy of its input; the gradient is dy itself"),
        "y = x, between any strides",
    ),
    Op("fill", FillDescriptor, NotDifferentiable("does not depend on a tensor"), "y = value"),
)


@function(tensors="input")
def copy(call: Call, input: Arg, *, out: Arg | None = None) -> Recipe:
    """`input` in contiguous memory of its own, or in `out` whatever its strides, as torch.Tensor.copy_."""
    return call(CopyDescriptor(input.shape, input.element), x=input)


@copy.vjp
def _copy_vjp(input: Any) -> tuple[Any, Any]:
    return copy(input), lambda dy: dy


@function(tensors="input", scalars="fill_value")
def full_like(call: Call, input: Arg, fill_value: Any) -> Recipe:
    """A tensor of the shape and element of `input`, filled with one value, as torch.full_like."""
    return call(FillDescriptor(input.shape, input.element), value=fill_value)


@function(tensors="input")
def zeros_like(call: Call, input: Arg) -> Recipe:
    """Zeros of the shape and element of `input`, as torch.zeros_like."""
    return call(FillDescriptor(input.shape, input.element), value=0)


@function(tensors="input")
def ones_like(call: Call, input: Arg) -> Recipe:
    """Ones of the shape and element of `input`, as torch.ones_like."""
    return call(FillDescriptor(input.shape, input.element), value=1)
