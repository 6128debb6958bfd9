"""Reference of GGUF's blocks, in NumPy: bytes to values, and values to bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from baracuda.describe.elements import Element
from baracuda.ops.quant.quant import BlockFormat, DequantizeDescriptor, QuantizeDescriptor
from baracuda.ops.quant.quant_grids_ref import steps_of_grids
from baracuda.ops.quant.quant_k_ref import encoded_k
from baracuda.prove.reference import Array, Case, Expected

_PLAIN = (BlockFormat.Q4_0, BlockFormat.Q4_1, BlockFormat.Q5_0, BlockFormat.Q5_1, BlockFormat.Q8_0)
_ROWS: tuple[tuple[int, ...], ...] = ((), (7,), (3, 0), (2, 1, 3, 2, 1, 2, 2), (0, 2))
_CODES = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113])
_FLOATS = np.array([0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12])


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """All formats; ranks 1 to 8, one block and many, none; scales that are NaN, infinite, subnormal, 0."""
    for f in BlockFormat:
        if op == "quantize" and not f.written:
            continue
        shapes = [(*rows, f.block_values * n) for n, rows in enumerate(_ROWS, 1)]
        for shape in (*shapes, (3, 0), (2, 2304)):
            if op == "quantize":
                yield Case(
                    QuantizeDescriptor(shape, f, element),
                    {"x": rng.normal(0, 1, shape) * 10.0 ** rng.uniform(-3, 3, (*shape[:-1], 1))},
                )
            else:
                desc = DequantizeDescriptor(shape, f, element)
                yield Case(desc, {"x": blocks_with_scales(f, desc.signature()["x"].shape, rng)})
        if op == "quantize":
            x = np.repeat(_special(rng), f.block_values // 32, -1)
            yield Case(QuantizeDescriptor(x.shape, f, element), {"x": x}, note="special values")
            continue
        desc = DequantizeDescriptor((40, f.block_values), f, element)
        yield Case(desc, {"x": rng.integers(0, 256, (40, f.block_bytes))}, note="any bytes")


def blocks_with_scales(f: BlockFormat, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Bytes whose scales are numbers of ordinary size."""
    x = rng.integers(0, 256, shape)
    blocks = x.reshape(-1, f.block_bytes)
    if f is BlockFormat.MXFP4:
        blocks[:, 0] = rng.integers(118, 130, len(blocks))
    elif f is BlockFormat.Q8_K:
        blocks[:, :4] = rng.normal(0, 0.01, (len(blocks), 1)).astype(np.float32).view(np.uint8)
    else:
        if f is BlockFormat.IQ1_M:  # a half in the upper 4 bits of 4 words
            half = rng.normal(0, 0.01, len(blocks)).astype(np.float16).view(np.uint16).astype(np.int64)
            for k in range(4):
                blocks[:, 49 + 2 * k] = (blocks[:, 49 + 2 * k] & 15) | (half >> 4 * k & 15) << 4
            return x
        for at in _SCALES.get(f, (0,)):
            blocks[:, at : at + 2] = rng.normal(0, 0.01, (len(blocks), 1)).astype(np.float16).view(np.uint8)
    return x


# Where halves lie, if not at the beginning alone.
_SCALES = {
    BlockFormat.Q4_1: (0, 2), BlockFormat.Q5_1: (0, 2), BlockFormat.Q4_K: (0, 2), BlockFormat.Q5_K: (0, 2),
    BlockFormat.Q2_K: (80, 82), BlockFormat.Q3_K: (108,), BlockFormat.Q6_K: (208,),
    BlockFormat.TQ1_0: (52,), BlockFormat.TQ2_0: (64,),
}  # fmt: skip


def _special(rng: np.random.Generator) -> Array:
    """Rows of two blocks: zeros, ties, the same number everywhere, NaN, infinities, numbers beyond f16's scales, tiny ones."""
    x = rng.normal(0, 1, (9, 64))
    x[0], x[0, 5] = 0, -0.0
    x[1] = np.arange(64) % 32 / 2 - 8
    x[2] = 0.3
    x[3, 40], x[4, 3], x[5, 7], x[5, 50] = np.nan, np.inf, -np.inf, np.inf
    x[6] *= 3e4
    x[7] *= 1e-7
    x[8, :32], x[8, 32:] = np.where(np.arange(32) % 2, 1, -1), np.arange(32) - 127
    return x


def reference(case: Case) -> dict[str, Expected]:
    """Bytes, or the numbers that they stand for."""
    desc, x = case.descriptor, np.asarray(case.tensors["x"])
    assert isinstance(desc, (QuantizeDescriptor, DequantizeDescriptor))
    f = desc.format
    with np.errstate(all="ignore"):
        if isinstance(desc, QuantizeDescriptor):
            return {"y": Expected(encoded(x, f))}
        return {"y": Expected(decoded(x, f))}


def encoded(x: Array, f: BlockFormat) -> Array:
    """The bytes of blocks."""
    if f is BlockFormat.MXFP4:
        return _mxfp4(x.astype(np.float32).reshape(-1, 32)).reshape(*x.shape[:-1], x.shape[-1] // 32 * f.block_bytes)
    if f not in _PLAIN:
        return encoded_k(x, f)
    blocks = x.astype(np.float32).reshape(-1, 32)
    if f is BlockFormat.Q8_0:
        d = np.abs(_largest(blocks)) / np.float32(127)
        v = np.nan_to_num(blocks * _inverse(d), nan=0, posinf=127, neginf=-127)
        whole = np.trunc(v)
        codes = np.clip(whole + np.sign(v) * (np.abs(v - whole) >= 0.5), -127, 127).astype(np.int8).view(np.uint8)
        made = [_half(d), codes]
    elif f in (BlockFormat.Q4_0, BlockFormat.Q5_0):
        middle = 8 if f is BlockFormat.Q4_0 else 16
        d = _largest(blocks) / np.float32(-middle)
        v = blocks * _inverse(d) + np.float32(middle + 0.5)
        made = [_half(d), *_packed(np.where(np.isnan(v), middle, np.clip(v, 0, 2 * middle - 1)), middle == 16)]
    else:
        most = 15 if f is BlockFormat.Q4_1 else 31
        low, high = (_where(blocks, np.argmin), _where(blocks, np.argmax))
        d = (high - low) / np.float32(most)
        v = (blocks - low) * _inverse(d) + np.float32(0.5)
        made = [_half(d), _half(low), *_packed(np.where(np.isnan(v), 0, np.clip(v, 0, most)), most == 31)]
    return np.concatenate(made, -1).reshape(*x.shape[:-1], x.shape[-1] // 32 * f.block_bytes)


def _mxfp4(blocks: Array) -> Array:
    blocks = np.nan_to_num(blocks, nan=0, posinf=np.inf, neginf=-np.inf)
    most = np.abs(blocks).max(-1, keepdims=True)
    log = np.log2(most.astype(np.float64)).astype(np.float32)
    e = np.where(most > 0, np.clip(np.floor(log) + 125, 0, 253), 0)
    middles = np.array([0.5, 1.5, 2.5, 3.5, 5, 7, 10], np.float32) * (2.0 ** (e[..., None] - 128)).astype(np.float32)
    codes = (np.abs(blocks)[..., None] > middles).sum(-1)
    codes += 8 * ((codes > 0) & (blocks < 0))
    return np.concatenate([e.astype(np.uint8), *_packed(codes, False)], -1)


def _where(x: Array, find: Callable[..., Any]) -> Array:
    return np.take_along_axis(x, find(x, -1)[:, None], -1)


def _largest(x: Array) -> Array:
    return np.take_along_axis(x, np.argmax(np.abs(x), -1)[:, None], -1)


def _inverse(d: Array) -> Array:
    return np.where(d == 0, np.float32(0), np.float32(1) / d)


def _half(x: Array) -> Array:
    h = x.astype(np.float16)
    h[np.isnan(h)] = np.array(0x7E00, np.uint16).view(np.float16)
    return h.view(np.uint8)


def _packed(codes: Array, fifth: bool) -> Iterator[Array]:
    q = codes.astype(np.uint8)
    if fifth:
        yield np.packbits(q >> 4, -1, "little")
    yield (q[:, :16] & 15) | (q[:, 16:] & 15) << 4


def decoded(x: Array, f: BlockFormat) -> Array:
    """The values of blocks, in float64 rounded to f32 once."""
    steps, lows = parts(x, f)
    values: Array = (steps + lows).astype(np.float32).astype(np.float64)
    return values


def parts(x: Array, f: BlockFormat) -> tuple[Array, Array]:
    """Integers times their scales, and what is added to them: the values of blocks in two terms."""
    blocks = np.ascontiguousarray(x.astype(np.uint8)).reshape(-1, f.block_bytes)
    steps = _STEPS[f](blocks)
    lows = _LOWS[f](blocks) if f in _LOWS else np.zeros(())
    shape = (*x.shape[:-1], x.shape[-1] // f.block_bytes * f.block_values)
    return steps.reshape(shape), np.broadcast_to(lows, steps.shape).reshape(shape)


def _scale(b: Array, at: int = 0, kind: type = np.float16) -> Array:
    size = np.dtype(kind).itemsize
    return np.ascontiguousarray(b[:, at : at + size]).view(kind).astype(np.float64)


def _bits(b: Array, width: int, run: int) -> Array:
    """Integers of `width` bits: the lowest bits of `run` bytes, then the next ones, then the next bytes."""
    shifts = np.arange(0, 8, width, dtype=np.uint8)[:, None]
    bits = b.reshape(len(b), b.shape[1] // run, 1, run) >> shifts & (2**width - 1)
    made: Array = bits.reshape(len(b), b.shape[1] * 8 // width).astype(np.int64)
    return made


def _signed(b: Array) -> Array:
    return np.ascontiguousarray(b).view(np.int8).astype(np.int64)


def _each(scales: Array, count: int) -> Array:
    return np.repeat(scales, count, -1)


def _q3_k(b: Array) -> Array:
    scales = _bits(b[:, 96:104], 4, 8) + 16 * _bits(b[:, 104:108], 2, 4) - 32
    values: Array = _scale(b, 108) * _each(scales, 16) * (_bits(b[:, 32:96], 2, 32) + 4 * _bits(b[:, :32], 1, 32) - 4)
    return values


def _q6_k(b: Array) -> Array:
    q = _bits(b[:, :128], 4, 64) + 16 * _bits(b[:, 128:192], 2, 32) - 32
    values: Array = _scale(b, 208) * _each(_signed(b[:, 192:208]), 16) * q
    return values


def _six_bits(b: Array) -> tuple[Array, Array]:
    """Scales and minima of 6 bits for groups of 32."""
    s = b[:, 4:16].astype(np.int64)
    scales = np.concatenate([s[:, :4] & 63, (s[:, 8:] & 15) | s[:, :4] >> 6 << 4], -1)
    lows = np.concatenate([s[:, 4:8] & 63, s[:, 8:] >> 4 | s[:, 4:8] >> 6 << 4], -1)
    return _each(scales, 32), _each(lows, 32)


def _digits(b: Array) -> Array:
    """-1, 0 or 1: five digits to the base 3 of bytes that are numbers below 1, and four of the last four."""
    runs = ((b[:, :32], 5), (b[:, 32:48], 5), (b[:, 48:52], 4))
    found = [((x.astype(np.int64) * 3**place & 255) * 3 >> 8) - 1 for x, count in runs for place in range(count)]
    return np.concatenate(found, -1)


_STEPS: dict[BlockFormat, Callable[[Array], Array]] = {
    BlockFormat.Q4_0: lambda b: _scale(b) * (_bits(b[:, 2:], 4, 16) - 8),
    BlockFormat.Q4_1: lambda b: _scale(b) * _bits(b[:, 4:], 4, 16),
    BlockFormat.Q5_0: lambda b: _scale(b) * (_bits(b[:, 6:], 4, 16) + 16 * _fifth(b[:, 2:6]) - 16),
    BlockFormat.Q5_1: lambda b: _scale(b) * (_bits(b[:, 8:], 4, 16) + 16 * _fifth(b[:, 4:8])),
    BlockFormat.Q8_0: lambda b: _scale(b) * _signed(b[:, 2:]),
    BlockFormat.Q2_K: lambda b: _scale(b, 80) * _each(b[:, :16] & 15, 16) * _bits(b[:, 16:80], 2, 32),
    BlockFormat.Q3_K: _q3_k,
    BlockFormat.Q4_K: lambda b: _scale(b) * _six_bits(b)[0] * _bits(b[:, 16:], 4, 32),
    BlockFormat.Q5_K: lambda b: (
        _scale(b) * _six_bits(b)[0] * (_bits(b[:, 48:], 4, 32) + 16 * _bits(b[:, 16:48], 1, 32))
    ),
    BlockFormat.Q6_K: _q6_k,
    BlockFormat.Q8_K: lambda b: _scale(b, 0, np.float32) * _signed(b[:, 4:260]),
    BlockFormat.IQ4_NL: lambda b: _scale(b) * _CODES[_bits(b[:, 2:], 4, 16)],
    BlockFormat.IQ4_XS: lambda b: (
        _scale(b)
        * _each((_bits(b[:, 4:8], 4, 1) | _bits(b[:, 2:4], 2, 1) << 4) - 32, 32)
        * _CODES[_bits(b[:, 8:], 4, 16)]
    ),
    BlockFormat.TQ1_0: lambda b: _scale(b, 52) * _digits(b),
    BlockFormat.TQ2_0: lambda b: _scale(b, 64) * (_bits(b[:, :64], 2, 32) - 1),
    **steps_of_grids(),
    BlockFormat.MXFP4: lambda b: 2.0 ** (b[:, :1].astype(np.float64) - 128) * _FLOATS[_bits(b[:, 1:], 4, 16)],
}
_LOWS: dict[BlockFormat, Callable[[Array], Array]] = {
    BlockFormat.Q4_1: lambda b: _scale(b, 2),
    BlockFormat.Q5_1: lambda b: _scale(b, 2),
    BlockFormat.Q2_K: lambda b: -_scale(b, 82) * _each(b[:, :16] >> 4, 16),
    BlockFormat.Q4_K: lambda b: -_scale(b, 2) * _six_bits(b)[1],
    BlockFormat.Q5_K: lambda b: -_scale(b, 2) * _six_bits(b)[1],
}


def _fifth(b: Array) -> Array:
    return np.unpackbits(b, axis=-1, bitorder="little").astype(np.int64)
