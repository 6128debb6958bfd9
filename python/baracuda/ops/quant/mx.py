"""The MX formats of OCP: small floats or integers with a power of two for each 32 of them. No kernels of their own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

from baracuda.call.compose import Composer, Value, composed
from baracuda.call.steps import made_of
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.ops.cast.cast import CastDescriptor
from baracuda.ops.quant.scaled import CODED

OPS = ()
_BLOCK = 32
_NAN = 255  # the scale that is none


@dataclass(frozen=True, slots=True)
class _Format:
    """Bits of significand, the exponents of the least and of the largest normal number, and that number; how codes are held."""

    mantissa: int
    least: int
    most: int
    largest: float
    held: Element = Element.U8
    packed: bool = False

    @property
    def sign(self) -> float:
        """What a code below zero is more than that of its size."""
        return 8.0 if self.packed else 32.0


_FORMATS = {
    "mxfp8_e4m3": _Format(3, -6, 8, 448.0, Element.F8E4M3),
    "mxfp8_e5m2": _Format(2, -14, 15, 57344.0, Element.F8E5M2),
    "mxfp6_e2m3": _Format(3, 0, 2, 7.5),
    "mxfp6_e3m2": _Format(2, -2, 4, 28.0),
    "mxfp4": _Format(1, 0, 2, 6.0, packed=True),
    "mxint8": _Format(6, 0, 0, 127 / 64, Element.I8),
}


def _format(name: str, given: Any) -> _Format:
    if given in _FORMATS:
        return _FORMATS[given]
    raise InvalidProblemError(f"{name}: format: got {given!r}, want one of {', '.join(_FORMATS)}.")


def _scaled(c: Composer, x: Value, exponent: Value, sign: float) -> Value:
    """An x times 2 to the power of sign (exponent - 127), rounded once at most, for exponents from 0 to 254."""
    from baracuda import functional as F

    low = c.of(F.floor, c.of(F.mul, exponent, 0.5))
    for part in (c.of(F.sub, low, 63.0), c.of(F.sub, c.of(F.sub, exponent, low), 64.0)):
        x = c.of(F.mul, x, c.of(F.exp2, c.of(F.mul, part, sign)))  # of a whole number exp2 is exact
    return x


def _exponent(c: Composer, size: Value) -> Value:
    """The floor of the logarithm to base 2 of numbers that are not negative, at least -127."""
    from baracuda import functional as F

    near = c.of(F.clamp, c.of(F.floor, c.of(F.log2, size)), -127.0, 127.0)
    over = c.cast(c.of(F.gt, c.of(F.exp2, near), size), Element.F32)
    under = c.cast(c.of(F.le, c.of(F.exp2, c.of(F.add, near, 1.0)), size), Element.F32)
    made: Value = c.of(F.clamp, c.of(F.sub, c.of(F.add, near, under), over), -127.0, None)
    return made


def _codes(c: Composer, v: Value, f: _Format) -> Value:
    """The nearest codes, ties to even, at most the largest."""
    from baracuda import functional as F

    if f.held is Element.I8:
        return c.cast(c.of(F.clamp, c.of(F.round, c.of(F.mul, v, 64.0)), -127.0, 127.0), Element.I8)
    if f.held is not Element.U8:
        made: Value = c(CastDescriptor(v.shape, Element.F32, f.held, saturate=True), x=v)
        return made
    size = c.of(F.clamp, c.of(F.abs, v), None, f.largest)
    reached = [c.cast(c.of(F.ge, size, 2.0**e), Element.F32) for e in range(f.least + 1, f.most + 1)]
    binade = reduce(lambda a, b: c.of(F.add, a, b), reached)
    steps = c.of(F.round, c.of(F.mul, size, c.of(F.exp2, c.of(F.rsub, binade, float(f.mantissa - f.least)))))
    code = c.of(F.add, steps, c.of(F.mul, binade, float(1 << f.mantissa)))
    below = c.of(F.where, c.of(F.signbit, v), c.of(F.add, code, f.sign), code)
    if not f.packed:
        return c.cast(below, Element.U8)
    packed: Value = c.of(F.pack_int4, below, "u4")
    return packed


def _numbers(c: Composer, codes: Value, f: _Format) -> Value:
    """What codes stand for, in f32."""
    from baracuda import functional as F

    if f.held is not Element.U8:
        v = c.cast(codes, Element.F32)
        return c.of(F.mul, v, 2.0**-6) if f.held is Element.I8 else v
    whole = c.of(F.unpack_int4, codes, "u4", "f32") if f.packed else c.cast(codes, Element.F32)
    below = c.of(F.ge, whole, f.sign)
    size = c.of(F.where, below, c.of(F.sub, whole, f.sign), whole)
    # What is subnormal lies in the first binade.
    above = c.of(F.clamp, c.of(F.sub, c.of(F.floor, c.of(F.mul, size, 2.0**-f.mantissa)), 1.0), 0.0, None)
    digits = c.of(F.sub, size, c.of(F.mul, above, float(1 << f.mantissa)))
    v = c.of(F.mul, digits, c.of(F.exp2, c.of(F.add, above, float(f.least - f.mantissa))))
    made: Value = c.of(F.where, below, c.of(F.neg, v), v)
    return made


@made_of("cast abs amax log2 floor exp2 gt le ge lt add sub mul clamp where round signbit pack_int4")
@composed(tensors="input")
def mx_quantize(c: Composer, input: Value, format: str = "mxfp8_e4m3") -> tuple[Value, Value]:
    """Values as codes with a scale for each 32 of them, a power of two: the MX formats of OCP's specification 1.0.

    A block's scale is 2^(floor(log2(max(abs(block)))) - e), e being the exponent of the format's largest number, but no less than
    2^-127; codes are the nearest to value / scale, ties to even, at most the largest. A block with NaN or an infinity has the scale NaN.

    Args:
        input: f32, f16 or bf16 (..., K), K a multiple of 32.
        format: "mxfp8_e4m3", "mxfp8_e5m2", "mxfp6_e2m3", "mxfp6_e3m2", "mxfp4" or "mxint8".

    Returns:
        Codes (..., K): f8e4m3, f8e5m2, i8 in units of 1/64, or bytes (u8) with a 6-bit float in the low bits of each; of mxfp4
        (..., K / 2) bytes of two codes, the first in the low half. Scales (..., K / 32) as bytes (u8): 2^(byte - 127), 255 for NaN.
    """
    from baracuda import functional as F

    f = _format("mx_quantize", format)
    if input.rank == 0 or input.element not in CODED or input.shape[-1] % _BLOCK:
        want = f"f32, f16 or bf16 whose last size is a multiple of {_BLOCK}"
        raise InvalidProblemError(f"mx_quantize: input: got {input.element} {input.shape}, want {want}.")
    shape = (*input.shape[:-1], input.shape[-1] // _BLOCK)
    blocks = c.reshape(c.cast(input, Element.F32), (*shape, _BLOCK))
    most = c.of(F.amax, c.of(F.abs, blocks), -1)
    good = c.of(F.lt, most, float("inf"))
    found = _exponent(c, c.of(F.where, good, most, 0.0))
    scale = c.of(F.clamp, c.of(F.add, found, 127.0 - f.most), 0.0, None)
    v = _scaled(c, blocks, c.reshape(scale, (*shape, 1)), -1.0)
    v = c.of(F.where, c.reshape(good, (*shape, 1)), v, 0.0)
    scale = c.of(F.where, good, scale, float(_NAN))
    codes = _codes(c, c.reshape(v, input.shape), f)
    return codes, c.cast(scale, Element.U8)


@made_of("cast floor exp2 add sub mul clamp eq ge neg where unpack_int4")
@composed(tensors="input scale")
def mx_dequantize(c: Composer, input: Value, scale: Value, format: str = "mxfp8_e4m3", dtype: Any = "f32") -> Value:
    """The values of an MX format: each code's number times its block's scale, rounded to f32, then to `dtype`.

    Args:
        input: Codes, as mx_quantize makes them.
        scale: Bytes (u8) (..., K / 32).
        format: As in mx_quantize.
        dtype: Element of the values: f32, f16 or bf16.

    Returns:
        (..., K) values.
    """
    from baracuda import functional as F

    f = _format("mx_dequantize", format)
    block = _BLOCK // 2 if f.packed else _BLOCK
    if input.rank == 0 or input.element is not f.held or input.shape[-1] % block:
        got = f"got {input.element} {input.shape}"
        raise InvalidProblemError(
            f"mx_dequantize: input: {got}, want {f.held} whose last size is a multiple of {block}."
        )
    shape = (*input.shape[:-1], input.shape[-1] // block)
    if scale.shape != shape or scale.element is not Element.U8:
        raise InvalidProblemError(f"mx_dequantize: scale: got {scale.element} {scale.shape}, want u8 {shape}.")
    element = Element.coerce(dtype, "mx_dequantize: dtype")
    if element not in CODED:
        raise InvalidProblemError(f"mx_dequantize: dtype: got {element}, want f32, f16 or bf16.")
    blocks = c.reshape(_numbers(c, input, f), (*shape, _BLOCK))
    whole = c.reshape(c.cast(scale, Element.F32), (*shape, 1))
    y = _scaled(c, blocks, c.of(F.clamp, whole, None, 254.0), 1.0)
    y = c.of(F.where, c.of(F.eq, whole, float(_NAN)), float("nan"), y)
    return c.cast(c.reshape(y, (*shape[:-1], shape[-1] * _BLOCK)), element)
