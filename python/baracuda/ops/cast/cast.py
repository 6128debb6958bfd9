"""Element conversion. Kernels in csrc/ops/cast, reference in cast_ref.py."""

from __future__ import annotations

from typing import Any

from baracuda.call.op import Arg, Call, NotDifferentiable, Op, Recipe, function
from baracuda.describe.dims import Shape
from baracuda.describe.elements import Element
from baracuda.describe.order import SAME
from baracuda.describe.spec import Descriptor, Signature, descriptor, output, tensor


@descriptor(family="cast", op="cast", result_order=SAME)
class CastDescriptor(Descriptor):
    """y = x in another element: floats round to nearest even once, float to integer truncates, integers wrap, bool is x != 0.

    NaN stays NaN. A float that the integer element cannot hold, and NaN, give an unspecified integer, as in torch.

    Args:
        shape: Shape of x and y, rank 0-8.
        input_element: Element of x: bool, any integer, f8e4m3, f8e5m2, f16, bf16, f32 or f64.
        output_element: Element of y, from the same list.
        saturate: What is beyond an 8-bit float's range, infinity too, becomes its largest number; otherwise infinity
            (f8e5m2) or NaN (f8e4m3, which has no infinity). Numbers of y's own element stay as they are.
    """

    shape: Shape
    input_element: Element
    output_element: Element
    saturate: bool = True

    def signature(self) -> Signature:
        return Signature(tensor("x", self.shape, self.input_element), output("y", self.shape, self.output_element))

    def primary_element(self) -> Element:
        return self.input_element

    def aux_element(self) -> Element:
        return self.output_element


OPS = (
    Op(
        "cast",
        CastDescriptor,
        NotDifferentiable("a change of storage; the gradient is cast back"),
        "y = x in another element",
    ),
)


@function(tensors="input")
def cast(call: Call, input: Arg, dtype: Any, *, out: Arg | None = None) -> Recipe:
    """`input` in another element, as torch.Tensor.to(dtype); `dtype` is an element name or any framework's dtype.

    8-bit floats overflow as in torch: f8e4m3 to its largest number, f8e5m2 to infinity.
    """
    target = Element.coerce(dtype, "cast: dtype")
    return call(CastDescriptor(input.shape, input.element, target, saturate=target is Element.F8E4M3), x=input)


@cast.vjp
def _cast_vjp(input: Any, dtype: Any) -> tuple[Any, Any]:
    before = input.dtype
    return cast(input, dtype), lambda dy: cast(dy, before)
