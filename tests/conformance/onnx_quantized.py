"""ONNX's operators on quantized values."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx_cases import NodeCase, NotRun

from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError

NO_ELEMENT = "of elements that no kernel here takes"
_INT4 = (Element.S4, Element.U4)
_FLOATS = (Element.F32, Element.F16, Element.BF16)


def _code(case: NodeCase, zero: Any) -> tuple[Element, Any]:
    """The element of codes, and NumPy's of it: the zero point's, or what the node says."""
    import onnx

    dtype = np.dtype(np.uint8) if zero is None else zero.dtype
    if zero is None and case.get("output_dtype", 0):
        dtype = onnx.helper.tensor_dtype_to_np_dtype(case.get("output_dtype"))
    try:
        return Element.coerce(dtype), dtype
    except InvalidProblemError:
        raise NotRun(NO_ELEMENT) from None


def _zero(zero: Any, code: Element) -> Any:
    if zero is None or code not in (*_INT4, Element.I8, Element.U8, Element.I16, Element.U16):
        return None
    return zero.astype(np.int32)


def _quantize(F: Any, c: NodeCase, x: Any, scale: Any, zero: Any = None) -> Any:
    code, dtype = _code(c, zero)
    if Element.coerce(x.dtype) not in _FLOATS:
        raise NotRun(NO_ELEMENT)
    y = F.quantize_linear(x, scale, _zero(zero, code), code, c.get("axis", 1), saturate=bool(c.get("saturate", 1)))
    if code not in _INT4:
        return y
    return F.unpack_int4(y, code, "i8" if code is Element.S4 else "u8", x.shape[-1]).astype(dtype)


def _dequantize(F: Any, c: NodeCase, x: Any, scale: Any, zero: Any = None) -> Any:
    code = Element.coerce(x.dtype)
    zero = _zero(zero, code)
    if code in _INT4:
        x = x.astype(np.int8 if code is Element.S4 else np.uint8)
    elif code is Element.I32:
        raise NotRun(NO_ELEMENT)
    return F.dequantize_linear(x, scale, zero, c.get("axis", 1), Element.coerce(scale.dtype))


def _dynamic(F: Any, c: NodeCase, x: Any) -> Any:
    y, scale, zero = F.dynamic_quantize(x, None, "u8", symmetric=False)
    return y, scale.reshape(()), zero.reshape(()).astype(np.uint8)


CALLS = {"QuantizeLinear": _quantize, "DequantizeLinear": _dequantize, "DynamicQuantizeLinear": _dynamic}
