"""Norms whose results are codes. Kernels in csrc/ops/norm, reference in norm_quantize_ref.py."""

from __future__ import annotations

from typing import Any

from baracuda.call.op import Arg, Call, Op, Recipe, function
from baracuda.describe.dims import Shape
from baracuda.describe.elements import Element
from baracuda.describe.spec import Kinded, Signature, descriptor, output, scalar, tensor
from baracuda.ops.quant.epilogue import WHOLE, check_codes, code_of, coded, coded_params

KINDS = ("rms_norm_quantize", "layer_norm_quantize")


@descriptor(family="norm", kinds=KINDS)
class NormQuantizeDescriptor(Kinded):
    """y = the codes of rms_norm or layer_norm over the last dimension of x, or of sum = x + residual, rounded to its element.

    A scale is given (one f32, and codes are those of quantize_linear), or found for each row or group of a row as
    dynamic_quantize does: scale = max(abs(values)) / most, where `most` is 127, 448 (f8e4m3) or 57344 (f8e5m2). Codes are of the
    values in f32, which are not rounded to the element of x before: a code is the nearest one to value / scale for values and
    scale within their bound, so that it is at most one off where that lies between two. A row with NaN has the scale NaN
    and in integers codes of 0; zeros have the scale 0. sum may be the same view as x or residual.

    Args:
        kind: "rms_norm_quantize" or "layer_norm_quantize".
        input_shape: Shape of x, residual, y and sum, rank 1-8.
        element: Of x, residual, weight, bias and sum: f16, bf16 or f32.
        code_element: Of y: i8, f8e4m3 or f8e5m2.
        weight: Whether there is a weight.
        bias: Whether there is a bias.
        residual: Whether there is a residual, and so a sum.
        given: Whether the scale is given.
        group: How many values along the last dimension share a scale; None: all of a row. scale is (..., K / group), or (..., 1).
        weight_offset: What is added to every weight.
    """

    input_shape: Shape
    element: Element = Element.F32
    code_element: Element = Element.I8
    weight: bool = True
    bias: bool = False
    residual: bool = False
    given: bool = False
    group: int | None = None
    weight_offset: float = 0.0

    def validate(self) -> None:
        check_codes(self, self.input_shape, self.element, self.code_element, self.group, self.given)
        if self.weight_offset and not self.weight:
            raise self.wrong("weight_offset", self.weight_offset, "0 without a weight")

    def attributes(self) -> dict[str, int | float]:
        return {"group": self.group or 0, "weight_offset": float(self.weight_offset)}

    def signature(self) -> Signature:
        last = self.input_shape[-1:]
        return Signature(
            tensor("x", self.input_shape, self.element),
            tensor("residual", self.input_shape, self.element, present=self.residual),
            tensor("weight", last, self.element, present=self.weight),
            tensor("bias", last, self.element, present=self.bias),
            *coded_params(self.input_shape, self.code_element, self.group, self.given),
            output("sum", self.input_shape, self.element, present=self.residual),
            scalar("eps", default=1e-5),
        )

    def aux_element(self) -> Element:
        return self.code_element


OPS = (
    Op("rms_norm_quantize", NormQuantizeDescriptor, WHOLE, "codes of rms_norm, with a scale given or found"),
    Op("layer_norm_quantize", NormQuantizeDescriptor, WHOLE, "codes of layer_norm, with a scale given or found"),
)


def _coded(
    call: Call, kind: str, x: Arg, tensors: dict[str, Arg | None], eps: Any, dtype: Any, scale: Arg | None,
    group: int | None, offset: float = 0.0,
) -> Recipe:  # fmt: skip
    desc = NormQuantizeDescriptor(
        kind, x.shape, x.element, code_of(kind, dtype), **{n: t is not None for n, t in tensors.items()},
        given=scale is not None, group=group, weight_offset=offset,
    )  # fmt: skip
    return coded(call, desc, scale, x=x, **tensors, eps=eps)


@function(tensors="input weight residual scale", scalars="eps")
def rms_norm_quantize(
    call: Call,
    input: Arg,
    weight: Arg | None = None,
    eps: Arg | None = None,
    dtype: Any = "i8",
    *,
    residual: Arg | None = None,
    scale: Arg | None = None,
    group: int | None = None,
    weight_offset: float = 0.0,
) -> Recipe:
    """Codes of rms_norm over the last dimension of `input`, or of `input + residual`, in one pass: no values are written.

    Args:
        input: f32, f16 or bf16 (..., K).
        weight: (K,) of the same element.
        eps: Added to the mean of squares; torch's default, 2**-23.
        dtype: "i8", "f8e4m3" or "f8e5m2".
        residual: Added before the norm, like `input`; the sum, rounded to the element, is a result then.
        scale: One for all, as `quantize_linear` takes it; otherwise scales are found as `dynamic_quantize` does.
        group: How many values along the last dimension share a scale; None: all of a row.
        weight_offset: As in `rms_norm`.

    Returns:
        The codes, and the scales (f32, (..., 1) or (..., K / group)) if they are found, and the sum if there is a residual.
    """
    tensors = {"weight": weight, "residual": residual}
    least = 2.0**-23 if eps is None else eps
    return _coded(call, "rms_norm_quantize", input, tensors, least, dtype, scale, group, weight_offset)


@function(tensors="input weight bias residual scale", scalars="eps")
def layer_norm_quantize(
    call: Call,
    input: Arg,
    weight: Arg | None = None,
    bias: Arg | None = None,
    eps: Arg | float = 1e-5,
    dtype: Any = "i8",
    *,
    residual: Arg | None = None,
    scale: Arg | None = None,
    group: int | None = None,
) -> Recipe:
    """Codes of layer_norm over the last dimension of `input`, or of `input + residual`, in one pass: no values are written.

    Args:
        input: f32, f16 or bf16 (..., K).
        weight: (K,) of the same element.
        bias: (K,) of the same element.
        eps: Added to the variance.
        dtype: "i8", "f8e4m3" or "f8e5m2".
        residual: Added before the norm, like `input`; the sum, rounded to the element, is a result then.
        scale: One for all, as `quantize_linear` takes it; otherwise scales are found as `dynamic_quantize` does.
        group: How many values along the last dimension share a scale; None: all of a row.

    Returns:
        The codes, and the scales (f32, (..., 1) or (..., K / group)) if they are found, and the sum if there is a residual.
    """
    tensors = {"weight": weight, "bias": bias, "residual": residual}
    return _coded(call, "layer_norm_quantize", input, tensors, eps, dtype, scale, group)
