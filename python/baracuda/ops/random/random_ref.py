"""Reference of the random fills: Philox4x32-10 in NumPy integers, and the documented mapping step by step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from baracuda.describe.elements import Element
from baracuda.ops.random.random import RandomDescriptor
from baracuda.prove.reference import Array, Case, Expected, round_to, to_reference

_MASK = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


def philox(counter: tuple[Array, ...], key: tuple[int, int]) -> tuple[Array, ...]:
    """Philox4x32-10 of 32-bit words held in uint64 arrays; word 0 is the lowest."""
    c0, c1, c2, c3 = (np.asarray(c, np.uint64) for c in counter)
    k0, k1 = key
    for _ in range(10):
        p0, p1 = np.uint64(0xD2511F53) * c0, np.uint64(0xCD9E8D57) * c2
        c0, c1, c2, c3 = (p1 >> _HALF) ^ c1 ^ np.uint64(k0), p1 & _MASK, (p0 >> _HALF) ^ c3 ^ np.uint64(k1), p0 & _MASK
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c0, c1, c2, c3


def words(seed: int, offset: int, blocks: int) -> tuple[Array, ...]:
    """The four words of each of a draw's blocks."""
    counter = np.arange(blocks, dtype=np.uint64) + np.uint64(offset)  # wraps
    zero = np.zeros_like(counter)
    return philox((counter & _MASK, counter >> _HALF, zero, zero), (seed & 0xFFFFFFFF, seed >> 32))


_CASES: list[tuple[tuple[int, ...], int, int]] = [
    ((5,), 0, 0),
    ((), 1, 2),
    ((3, 0, 2), 1, 2),
    ((1030,), 123456789012345678, 2**32 - 100),
    ((7, 300), 2**64 - 1, 2**64 - 50),
    ((2, 1, 3, 2, 5, 2, 3, 4), 42, 10**12),
    ((70000,), 7, 0),
]
_SCALARS: dict[str, list[tuple[float, float]]] = {
    "uniform": [(0.0, 1.0), (-1.0, 1.0), (0.3, 5.7), (1.0, 2.0), (-3.1, 2.9), (1000.0, 1000.5), (2.0, 2.0)],
    "normal": [(0.0, 1.0), (3.0, 0.5), (-1.0, 0.0), (0.0, 1e-3), (100.0, 20.0), (0.0, 1.0), (0.0, 1.0)],
}


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Sizes around the kernels' groups; keys and counters that wrap; intervals that rounding could leave."""
    del direction, rng
    first, second = ("low", "high") if op == "uniform" else ("mean", "std")
    for (shape, seed, offset), (a, b) in zip(_CASES, _SCALARS[op], strict=True):
        yield Case(RandomDescriptor(op, shape, element), {}, {first: a, second: b, "seed": seed, "offset": offset})


def reference(case: Case) -> dict[str, Expected]:
    """The outputs: uniforms exactly, before the rounding to the stored element; normals in long double."""
    desc, s = case.descriptor, case.scalars
    assert isinstance(desc, RandomDescriptor)
    shape = desc.signature()["y"].shape
    n = int(np.prod(shape))
    double = desc.element is Element.F64
    w = words(int(s["seed"]), int(s["offset"]), -(-n // (2 if double else 4)))
    if desc.kind == "uniform":
        return {"y": Expected(_uniform(w, double, desc.element, s["low"], s["high"])[:n].reshape(shape))}
    z = _normal(w, double)[:n].reshape(shape)
    y = (s["mean"] + s["std"] * z).astype(np.float64)
    return {"y": Expected(y, (abs(s["mean"]) + s["std"] * np.abs(z)).astype(np.float64))}


def _interleave(*parts: Array) -> Array:
    return np.stack(parts, 1).reshape(-1)


def _shift(w: Array, bits: int) -> Array:
    return w >> np.uint64(bits)


def _uniform(w: tuple[Array, ...], double: bool, element: Element, low: float, high: float) -> Array:
    u_hi: Array
    u_lo: Array
    s_hi: Any
    s_lo: Any
    start: Any
    if double:
        top, rest = _interleave(_shift(w[1], 6), _shift(w[3], 6)), _interleave(_shift(w[0], 5), _shift(w[2], 5))
        u_hi, u_lo = top * 2.0**-26, rest * 2.0**-53
        bits = (np.float64(high - low).view(np.uint64) + np.uint64(1 << 26)) & ~np.uint64((1 << 27) - 1)
        s_hi, s_lo, start = bits.view(np.float64), high - low - bits.view(np.float64), np.float64(low)
    else:
        all_words = _interleave(*w)
        u_hi = _shift(all_words, 20).astype(np.float32) * np.float32(2.0**-12)
        u_lo = (_shift(all_words, 8) & np.uint64(0xFFF)).astype(np.float32) * np.float32(2.0**-24)
        span, start = np.float32(high - low), np.float32(low)
        s_hi = ((span.view(np.uint32) + np.uint32(1 << 11)) & ~np.uint32((1 << 12) - 1)).view(np.float32)
        s_lo = span - s_hi
    y = start + (u_hi * s_hi + (u_hi * s_lo + (u_lo * s_hi + u_lo * s_lo)))
    bottom, top_value = _least_not_below(low, element), _greatest_below(high, element)
    y = np.full_like(y, start) if top_value < bottom else np.clip(y, bottom, top_value)
    return np.asarray(y, np.float64)


def _neighbours(x: float, element: Element) -> list[float]:
    """Values of an element around x, in order."""
    with np.errstate(over="ignore"):
        step = (
            max(abs(x) * 2.0**-6, 1e-7)
            if element.is_half
            else abs(np.spacing(round_to(np.array(x), element)).astype(np.float64))
        )
        near = round_to(np.linspace(x - 2 * step, x + 2 * step, 4097 if element.is_half else 17), element)
    return sorted(set(to_reference(near).tolist()))


def _greatest_below(x: float, element: Element) -> float:
    return max(v for v in _neighbours(x, element) if v < x)


def _least_not_below(x: float, element: Element) -> float:
    return min(v for v in _neighbours(x, element) if v >= x)


def _normal(w: tuple[Array, ...], double: bool) -> Array:
    L = np.longdouble
    if double:
        v = (_shift(w[1], 6).astype(L) * 2**27 + _shift(w[0], 5) + 1) / L(2) ** 53
        return _interleave(*_box_muller(v, (_shift(w[3], 0).astype(L) * 2**21 + _shift(w[2], 11)) / L(2) ** 53))
    parts: list[Array] = []
    for k in (0, 2):
        v = _shift(w[k], 1).astype(np.float32) * np.float32(2.0**-31) + np.float32(2.0**-32)
        parts += _box_muller(v.astype(L), w[k + 1].astype(L) / L(2) ** 32)
    return _interleave(*parts)


def _box_muller(v: Array, turns: Array) -> tuple[Array, Array]:
    pi = np.longdouble("3.14159265358979323846264338327950288")
    quarter = np.round(turns * 4)
    x = (turns * 4 - quarter) * pi / 2
    c, s, q, r = np.cos(x), np.sin(x), quarter.astype(int) % 4, np.sqrt(-2 * np.log(v))
    return r * np.choose(q, [c, -s, -c, s]), r * np.choose(q, [s, c, -s, -c])
