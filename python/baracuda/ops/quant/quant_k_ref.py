"""Values to the K formats, IQ4_NL, IQ4_XS and the TQ formats in NumPy, in the kernels' steps of f32."""

from __future__ import annotations

from typing import Any

import numpy as np

from baracuda.ops.quant.quant import BlockFormat
from baracuda.prove.reference import Array

_CODES = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.float32)
_F = np.float32


def encoded_k(x: Array, f: BlockFormat) -> Array:
    """The bytes of blocks of a format that is written."""
    blocks = x.astype(_F).reshape(-1, f.block_values)
    made = {
        BlockFormat.Q2_K: _q2_k, BlockFormat.Q3_K: _q3_k, BlockFormat.Q4_K: _q4_k, BlockFormat.Q5_K: _q5_k,
        BlockFormat.Q6_K: _q6_k, BlockFormat.Q8_K: _q8_k, BlockFormat.IQ4_NL: _iq4_nl, BlockFormat.IQ4_XS: _iq4_xs,
        BlockFormat.TQ1_0: _tq1_0, BlockFormat.TQ2_0: _tq2_0,
    }[f](blocks)  # fmt: skip
    return np.concatenate(made, -1).reshape(*x.shape[:-1], x.shape[-1] // f.block_values * f.block_bytes)


def _largest(x: Array) -> Array:
    """The first of those of the largest size along the last axis, NaN where one is."""
    return np.take_along_axis(x, np.argmax(np.abs(x), -1)[..., None], -1)


def _inverse(d: Array) -> Array:
    return np.where(d == 0, _F(0), _F(1) / d)


def _half(x: Array) -> Array:
    h = x.astype(np.float16)
    h[np.isnan(h)] = np.array(0x7E00, np.uint16).view(np.float16)
    return h.view(np.uint8)


def _as_half(x: Array) -> Array:
    return x.astype(np.float16).astype(_F)


def _above(v: Array, most: int) -> Array:
    code = np.floor(np.abs(v) + _F(0.5))
    return np.where(np.isnan(code), 0, np.minimum(code, most)).astype(np.int64)


def _around(v: Array, middle: int) -> Array:
    shift = _F(middle + 0.5)
    code = np.where(v < 0, shift - np.abs(v), shift + np.abs(v))
    return np.trunc(np.where(np.isnan(code), middle, np.clip(code, 0, 2 * middle - 1))).astype(np.int64)


def _above_scales(x: Array, groups: int, most_code: int, most_scale: int) -> tuple[Array, Array, Array, Array, Array]:
    """Scales and minima as integers, what they are multiplied by, and the codes."""
    parts = x.reshape(len(x), groups, 256 // groups)
    least, most = parts.min(-1), parts.max(-1)  # NaN where one is
    low = np.where(least > 0, _F(0), least)
    steps, depths = (most - low) / _F(most_code), -low
    d, m = np.abs(_largest(steps)) / _F(most_scale), np.abs(_largest(depths)) / _F(most_scale)
    scales, lows = _above(steps * _inverse(d), most_scale), _above(depths * _inverse(m), most_scale)
    over = parts + (_as_half(m) * lows.astype(_F))[..., None]
    by = _inverse(_as_half(d) * scales.astype(_F))[..., None]
    codes = _above(np.where(over < 0, _F(0), over) * by, most_code)
    return scales, lows, d, m, codes.reshape(x.shape)


def _around_scales(x: Array, middle: int, most_scale: int) -> tuple[Array, Array, Array]:
    parts = x.reshape(len(x), 16, 16)
    steps = _largest(parts)[..., 0] / _F(-middle)
    d = _largest(steps) / _F(-most_scale)
    scales = _around(steps * _inverse(d), most_scale) - most_scale
    by = _inverse(_as_half(d) * scales.astype(_F))[..., None]
    return scales, d, _around(parts * by, middle).reshape(x.shape)


def _packed(codes: Array, width: int, run: int) -> Array:
    """Bytes whose lowest bits are those of the first `run` codes, then the next ones."""
    bytes_ = codes.shape[1] * width // 8
    parts = codes.reshape(len(codes), bytes_ // run, 8 // width, run)
    shifts = np.arange(0, 8, width)[:, None]
    made: Array = (parts << shifts).sum(-2).astype(np.uint8).reshape(len(codes), bytes_)
    return made


def _bytes(x: Array) -> Array:
    return x.astype(np.uint8)


def _q2_k(x: Array) -> list[Array]:
    scales, lows, d, m, codes = _above_scales(x, 16, 3, 15)
    return [_bytes(scales | lows << 4), _packed(codes, 2, 32), _half(d), _half(m)]


def _q3_k(x: Array) -> list[Array]:
    scales, d, codes = _around_scales(x, 4, 32)
    s = scales + 32
    lower = _bytes((s[:, :8] & 15) | (s[:, 8:] & 15) << 4)
    return [_packed(codes >> 2, 1, 32), _packed(codes & 3, 2, 32), lower, _packed(s >> 4, 2, 4), _half(d)]


def _six_bits(scales: Array, lows: Array) -> Array:
    s, m = scales, lows
    parts = [s[:, :4] | s[:, 4:] >> 4 << 6, m[:, :4] | m[:, 4:] >> 4 << 6, (s[:, 4:] & 15) | (m[:, 4:] & 15) << 4]
    return _bytes(np.concatenate(parts, -1))


def _q4_k(x: Array) -> list[Array]:
    scales, lows, d, m, codes = _above_scales(x, 8, 15, 63)
    return [_half(d), _half(m), _six_bits(scales, lows), _packed(codes, 4, 32)]


def _q5_k(x: Array) -> list[Array]:
    scales, lows, d, m, codes = _above_scales(x, 8, 31, 63)
    return [_half(d), _half(m), _six_bits(scales, lows), _packed(codes >> 4, 1, 32), _packed(codes & 15, 4, 32)]


def _q6_k(x: Array) -> list[Array]:
    scales, d, codes = _around_scales(x, 32, 128)
    return [_packed(codes & 15, 4, 64), _packed(codes >> 4, 2, 32), _bytes(scales & 255), _half(d)]


def _q8_k(x: Array) -> list[Array]:
    most = _largest(x)
    by = np.where(most == 0, _F(0), _F(-127) / most)
    d = np.where(most == 0, _F(0), _F(1) / by)
    v = np.rint(x * by)
    codes = np.where(np.isnan(v), 0, np.clip(v, -127, 127)).astype(np.int64)
    sums = codes.reshape(len(x), 16, 16).sum(-1).astype(np.int16)
    return [d.view(np.uint8), codes.astype(np.int8).view(np.uint8), sums.view(np.uint8)]


def _nearest_codes(v: Array) -> Array:
    middles: Any = (_CODES[:-1] + _CODES[1:]) / 2
    codes: Array = (v[..., None] >= middles).sum(-1)
    return codes


def _iq4_nl(x: Array) -> list[Array]:
    d = _largest(x) / _F(-127)
    return [_half(d + (d - d)), _packed(_nearest_codes(x * _inverse(d)), 4, 16)]


def _iq4_xs(x: Array) -> list[Array]:
    parts = x.reshape(len(x), 8, 32)
    steps = _largest(parts)[..., 0] / _F(-127)
    d = _largest(steps) / _F(-32)
    s = _around(steps * _inverse(d), 32)
    by = _inverse(_as_half(d) * (s - 32).astype(_F))[..., None]
    upper = (s >> 4 << 2 * np.arange(8)).sum(-1, keepdims=True).astype(np.uint16).view(np.uint8)
    lower = _bytes((s[:, ::2] & 15) | (s[:, 1::2] & 15) << 4)
    return [_half(d + (d - d)), upper, lower, _packed(_nearest_codes(parts * by).reshape(x.shape), 4, 16)]


def _thirds(x: Array) -> tuple[Array, Array]:
    """0, 1 or 2 for -1, 0 and 1, and the scale."""
    d = np.abs(_largest(x))
    v = x * _inverse(d)
    return np.where(np.abs(v) >= 0.5, np.where(v < 0, 0, 2), 1), d


def _tq1_0(x: Array) -> list[Array]:
    q, d = _thirds(x)
    made = []
    for first, run, count in ((0, 32, 5), (160, 16, 5), (240, 4, 4)):
        digits = q[:, first : first + run * count].reshape(len(x), count, run)
        number = (digits * 3 ** np.arange(4, 4 - count, -1)[:, None]).sum(1)
        made.append(_bytes((number * 256 + 242) // 243))
    return [*made, _half(d)]


def _tq2_0(x: Array) -> list[Array]:
    q, d = _thirds(x)
    return [_packed(q, 2, 32), _half(d)]
