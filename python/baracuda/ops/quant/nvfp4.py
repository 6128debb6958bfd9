"""NVFP4: 4-bit floats with an 8-bit float for each 16 of them and one f32 for all. No kernels of their own."""

from __future__ import annotations

from typing import Any

from baracuda.call.compose import Composer, Value, composed
from baracuda.call.steps import made_of
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.ops.layout.layout import FillDescriptor
from baracuda.ops.quant.scaled import CODED

OPS = ()
_BLOCK = 16
_MOST = 448.0 * 6.0  # the largest scale times the largest value


def _global(c: Composer, x: Value) -> Value:
    """The scale with which the largest value has the largest code and scale; 1 for zeros, what is not finite, and nothing."""
    from baracuda import functional as F

    if 0 in x.shape:
        one: Value = c(FillDescriptor((), Element.F32), value=1.0)
        return one
    found = c.of(F.div, c.of(F.amax, c.of(F.abs, x)), _MOST)
    good = c.of(F.logical_and, c.of(F.gt, found, 0.0), c.of(F.lt, found, float("inf")))
    made: Value = c.of(F.where, good, found, 1.0)
    return made


def _code(c: Composer, v: Value) -> Value:
    """The nearest of 0, 1/2, 1, 3/2, 2, 3, 4 and 6, ties to the even code, as a number of 0 to 15."""
    from baracuda import functional as F

    a = c.of(F.clamp, c.of(F.abs, v), None, 6.0)
    low = c.of(F.round, c.of(F.mul, a, 2.0))
    middle = c.of(F.add, c.of(F.round, a), 2.0)
    high = c.of(F.add, c.of(F.round, c.of(F.mul, a, 0.5)), 4.0)
    size = c.of(F.where, c.of(F.lt, a, 2.0), low, c.of(F.where, c.of(F.lt, a, 4.0), middle, high))
    made: Value = c.of(F.where, c.of(F.signbit, v), c.of(F.add, size, 8.0), size)
    return made


@made_of(
    "fill cast abs amax div gt lt logical_and where quantize_linear dequantize_linear copy clamp mul round add signbit pack_int4"
)
@composed(tensors="input global_scale")
def nvfp4_quantize(c: Composer, input: Value, global_scale: Value | None = None) -> tuple[Value, Value, Value]:
    """Values as NVFP4: codes of 4-bit floats (e2m1), f8e4m3 scales of 16 values each, and a scale for all.

    A block's scale is the f8e4m3 that is nearest to max(abs(block)) / 6 / global_scale, at most 448; codes are the nearest to
    value / (scale global_scale), ties to even, at most 6. In f32, each operation rounded. A block with NaN or an infinity reads
    as NaN; one whose scale is 0, as 0.

    Args:
        input: f32, f16 or bf16 (..., K), K a multiple of 16.
        global_scale: f32 of no dimensions; max(abs(input)) / 2688 by default.

    Returns:
        Bytes (..., K / 2) of two codes, the first in the low half; scales (..., K / 16) in f8e4m3; the scale for all.
    """
    from baracuda import functional as F

    if input.rank == 0 or input.element not in CODED or input.shape[-1] % _BLOCK:
        want = f"f32, f16 or bf16 whose last size is a multiple of {_BLOCK}"
        raise InvalidProblemError(f"nvfp4_quantize: input: got {input.element} {input.shape}, want {want}.")
    if global_scale is not None and (global_scale.shape != () or global_scale.element is not Element.F32):
        got = f"got {global_scale.element} {global_scale.shape}"
        raise InvalidProblemError(f"nvfp4_quantize: global_scale: {got}, want f32 without dimensions.")
    x = c.cast(input, Element.F32)
    whole = _global(c, x) if global_scale is None else c.copy(global_scale)
    shape = (*input.shape[:-1], input.shape[-1] // _BLOCK)
    blocks = c.reshape(x, (*shape, _BLOCK))
    most = c.of(F.div, c.of(F.amax, c.of(F.abs, blocks), -1), 6.0)
    # Of an infinity the scale would be the largest one, which hides it.
    most = c.of(F.where, c.of(F.lt, most, float("inf")), most, float("nan"))
    scales = c.of(F.quantize_linear, most, whole, None, "f8e4m3")
    each = c.reshape(c.of(F.dequantize_linear, scales, whole), (*shape, 1))
    v = c.of(F.where, c.of(F.gt, each, 0.0), c.of(F.div, blocks, each), 0.0)
    codes = c.of(F.pack_int4, c.reshape(_code(c, v), input.shape), "u4")
    return codes, scales, whole


@made_of("unpack_int4 ge lt sub mul where neg dequantize_linear cast")
@composed(tensors="input scale global_scale")
def nvfp4_dequantize(c: Composer, input: Value, scale: Value, global_scale: Value, dtype: Any = "f32") -> Value:
    """The values of NVFP4: of each code its number times (scale global_scale), in f32, then rounded to `dtype`.

    Args:
        input: Bytes (u8) (..., K / 2), as nvfp4_quantize makes them.
        scale: f8e4m3 (..., K / 16).
        global_scale: f32 of no dimensions.
        dtype: Element of the values: f32, f16 or bf16.

    Returns:
        (..., K) values.
    """
    from baracuda import functional as F

    if input.rank == 0 or input.element is not Element.U8 or input.shape[-1] % (_BLOCK // 2):
        got = f"got {input.element} {input.shape}"
        raise InvalidProblemError(f"nvfp4_dequantize: input: {got}, want u8 whose last size is a multiple of 8.")
    shape = (*input.shape[:-1], input.shape[-1] * 2 // _BLOCK)
    if scale.shape != shape or scale.element is not Element.F8E4M3:
        raise InvalidProblemError(f"nvfp4_dequantize: scale: got {scale.element} {scale.shape}, want f8e4m3 {shape}.")
    if global_scale.shape != () or global_scale.element is not Element.F32:
        got = f"got {global_scale.element} {global_scale.shape}"
        raise InvalidProblemError(f"nvfp4_dequantize: global_scale: {got}, want f32 without dimensions.")
    element = Element.coerce(dtype, "nvfp4_dequantize: dtype")
    if element not in CODED:
        raise InvalidProblemError(f"nvfp4_dequantize: dtype: got {element}, want f32, f16 or bf16.")
    code = c.of(F.unpack_int4, input, "u4", "f32")
    below = c.of(F.ge, code, 8.0)
    a = c.of(F.where, below, c.of(F.sub, code, 8.0), code)
    high = c.of(F.where, c.of(F.lt, a, 6.0), c.of(F.sub, a, 2.0), c.of(F.sub, c.of(F.mul, a, 2.0), 8.0))
    size = c.of(F.where, c.of(F.lt, a, 4.0), c.of(F.mul, a, 0.5), high)
    v = c.of(F.where, below, c.of(F.neg, size), size)
    each = c.reshape(c.of(F.dequantize_linear, scale, global_scale), (*shape, 1))
    y = c.of(F.mul, c.reshape(v, (*shape, _BLOCK)), each)
    return c.cast(c.reshape(y, (*shape[:-1], input.shape[-1] * 2)), element)
