"""Operators on quantized values."""

from __future__ import annotations

from typing import Any

import baracuda as bc
from baracuda import Element
from baracuda import functional as F
from baracuda.onnx.call import Call, Known
from baracuda.onnx.operators.table import cast, element_of, operator
from baracuda.onnx.operators.windows import requantized

NARROW = {Element.S4: Element.I8, Element.U4: Element.U8}  # codes of 4 bits, as bytes of one each
CODES = (*NARROW, Element.I8, Element.U8, Element.I16, Element.U16)


def element(value: Any) -> Any:
    """The element of an input that is given as it is."""
    return Element.coerce(value.array.dtype) if isinstance(value, Known) else value.element


def codes(c: Call, i: int) -> Any:
    """An input as codes; those of 4 bits one to a byte."""
    value = c.values[i]
    try:
        kind = element(value)
    except bc.InvalidProblemError:
        c.refuse(f"codes of {value.array.dtype}", "an element that kernels here take", code="element")
    if isinstance(value, Known):
        return Known(value.array.astype(NARROW[kind].numpy)).tensor if kind in NARROW else value.tensor
    return value


def _zero(c: Call, kind: Element) -> Any:
    return cast(codes(c, 2), "i32") if c.has(2) and kind in CODES else None


@operator("QuantizeLinear", "com.microsoft.QuantizeLinear", raw=True)
def _quantize(c: Call, x: Any, scale: Any, zero: Any = None) -> Any:
    x, scale = (v.tensor if isinstance(v, Known) else v for v in (x, scale))
    kind = Element.U8
    if zero is not None:
        codes(c, 2)
        kind = element(zero)
    elif c.get("output_dtype", 0):
        kind = element_of(c, c.get("output_dtype"))
    if x.element not in (Element.F32, Element.F16, Element.BF16):
        c.refuse(f"an input of {x.element}", "f32, f16 or bf16", code="element")
    y = F.quantize_linear(x, scale, _zero(c, kind), kind, c.get("axis", 1), saturate=bool(c.get("saturate", 1)))
    if kind not in NARROW:
        return y
    wide = F.unpack_int4(y, kind, NARROW[kind], x.shape[-1])
    try:
        return Known(wide.numpy().astype(kind.numpy))
    except BufferError:
        c.refuse("codes of 4 bits in a compiled graph", "run() without compile()", code="element")


@operator("DequantizeLinear", "com.microsoft.DequantizeLinear", raw=True)
def _dequantize(c: Call, x: Any, scale: Any, zero: Any = None) -> Any:
    packed, scale = codes(c, 0), scale.tensor if isinstance(scale, Known) else scale
    kind = element(x)
    if kind is Element.I32:
        wide = cast(packed, "f64")
        axis = c.get("axis", 1) % max(x.ndim if not isinstance(x, Known) else x.array.ndim, 1)
        each = scale if scale.numel == 1 else scale.reshape(*(-1 if d == axis else 1 for d in range(wide.ndim)))
        return cast(F.mul(wide, cast(each.reshape() if scale.numel == 1 else each, "f64")), scale.element)
    if kind not in CODES and not str(kind).startswith("f8"):
        c.refuse(f"codes of {kind}", "one of 4, 8 or 16 bits, or i32", code="element")
    return F.dequantize_linear(packed, scale, _zero(c, kind), c.get("axis", 1), scale.element)


@operator("DynamicQuantizeLinear")
def _dynamic(c: Call, x: Any) -> Any:
    y, scale, zero = F.dynamic_quantize(x, None, "u8", symmetric=False)
    return y, scale.reshape(), cast(zero.reshape(), "u8")


def _columns_zero(x: Any, zero: Any, of_rows: bool) -> Any:
    """Integers less their zeros, which may belong to each row of the left or to each column of the right."""
    wide = cast(x, "f64")
    if zero is None:
        return wide
    zero = cast(zero, "f64")
    if zero.ndim == 1 and zero.shape[0] > 1 and of_rows:
        zero = zero.unsqueeze(1)
    return F.sub(wide, zero.reshape() if zero.numel == 1 else zero)


@operator("MatMulInteger")
def whole_product(c: Call, a: Any, b: Any, a_zero: Any = None, b_zero: Any = None) -> Any:
    """A product of integers less their zeros, which f64 holds."""
    return cast(F.matmul(_columns_zero(a, a_zero, True), _columns_zero(b, b_zero, False)), "i32")


@operator("QLinearMatMul")
def _quantized_product(c: Call, a: Any, ra: Any, za: Any, b: Any, rb: Any, zb: Any, ry: Any, zy: Any) -> Any:
    whole = whole_product(c, a, b, za, zb)
    ra = ra.unsqueeze(1) if ra.ndim == 1 and ra.shape[0] > 1 else ra
    rate = F.div(F.mul(cast(ra, "f32"), cast(rb, "f32")), cast(ry, "f32"))
    return requantized(F.mul(cast(whole, "f32"), rate.reshape() if rate.numel == 1 else rate), zy)
