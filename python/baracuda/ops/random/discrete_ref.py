"""Reference of random integers, coin tosses, permutations and samples: the documented mapping in Python's integers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from baracuda.describe.elements import Element
from baracuda.ops.random.discrete import (
    BernoulliDescriptor,
    MultinomialDescriptor,
    RandintDescriptor,
    RandpermDescriptor,
)
from baracuda.ops.random.random_ref import philox, words
from baracuda.prove.reference import Array, Case, Expected

_SHAPES: list[tuple[int, ...]] = [(5,), (), (3, 0, 2), (1030,), (7, 300), (2, 1, 3, 2, 5, 2, 3, 4), (70000,)]
_SEEDS = [(0, 0), (1, 2), (123456789012345678, 2**32 - 100), (2**64 - 1, 2**64 - 50), (7, 10**12)]
_ROWS: list[tuple[tuple[int, ...], int]] = [
    ((5,), 3), ((1,), 1), ((3, 700), 40), ((4, 256), 256), ((2, 1025), 0), ((0, 4), 2), ((2, 5000), 300),
]  # fmt: skip


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Sizes around the kernels' groups; keys and counters that wrap; ends of ranges; rows with zeros."""
    del direction
    if op == "multinomial":
        yield from _samples(element, rng)
        return
    if op == "randperm":
        for i, n in enumerate((0, 1, 2, 3, 4, 5, 16, 100, 1000, 1025, 5000)):
            if n <= (127 if element is Element.I8 else 255 if element in (Element.U8, Element.BF16) else 2047):
                yield Case(RandpermDescriptor(n, element), {}, _seed(i))
        return
    for i, shape in enumerate(_SHAPES):
        if op == "randint":
            low, high = _range(element, i)
            yield Case(RandintDescriptor(shape, element), {}, {"low": low, "high": high} | _seed(i))
            continue
        yield Case(BernoulliDescriptor(shape, element), {}, {"p": (0.3, 0.0, 1.0, 1e-3)[i % 4]} | _seed(i))
        p = np.asarray(rng.uniform(0, 1, shape))
        if p.size > 4:
            p.reshape(-1)[:4] = [0, 1, 2.0**-30, 1 - 2.0**-11]
        for given in (Element.F32, Element.F64, Element.BF16)[: 3 if i < 4 else 1]:
            yield Case(BernoulliDescriptor(shape, element, given), {"p": p}, _seed(i))


def _seed(i: int) -> dict[str, float | int]:
    return dict(zip(("seed", "offset"), _SEEDS[i % len(_SEEDS)], strict=True))


def _range(element: Element, i: int) -> tuple[int, int]:
    if element is Element.BOOL:
        return 0, 2
    if element is Element.I64:
        return ((0, 10), (-5, 6), (-(2**63), 2**63 - 1), (0, 3 * 2**61), (7, 8))[i % 5]
    return (0, 100 + i) if str(element)[0] == "u" else (-20, 100 + i)


def _samples(element: Element, rng: np.random.Generator) -> Iterator[Case]:
    for i, (shape, samples) in enumerate(_ROWS):
        for replacement in (True, False):
            p = np.asarray(rng.uniform(0.01, 1, shape))
            if shape[-1] > 300:
                p[..., 2::3], p[..., 1] = 0.0, 50.0
                p[..., 5:200:7] = 1e-6
            yield Case(MultinomialDescriptor(shape, samples, replacement, element), {"p": p}, _seed(i))


def reference(case: Case) -> dict[str, Expected]:
    """The outputs, exactly."""
    desc: Any = case.descriptor
    seed, offset = int(case.scalars["seed"]), int(case.scalars["offset"])
    if isinstance(desc, RandpermDescriptor):
        return {"y": Expected(_permutation(desc.n, seed, offset))}
    if isinstance(desc, MultinomialDescriptor):
        return {"y": Expected(_categories(desc, case.tensors["p"], seed, offset))}
    shape = desc.shape
    n = int(np.prod(shape))
    if isinstance(desc, RandintDescriptor):
        low, high = int(case.scalars["low"]), int(case.scalars["high"])
        y: Array = np.array([low + v for v in below(seed, offset, n, high - low)], np.int64).reshape(shape)
        return {"y": Expected(_as(y, desc.element))}
    wide = desc.aux_element() is Element.F64
    p = np.broadcast_to(case.tensors["p"] if desc.p_element else np.float32(case.scalars["p"]), shape)
    if wide and not desc.p_element:
        p = np.broadcast_to(np.float64(case.scalars["p"]), shape)
    drawn = wide_words(seed, offset, n) if wide else np.stack(words(seed, offset, -(-n // 4)), 1).reshape(-1)[:n]
    unit = 2**64 if wide else 2**32
    heads = [int(w) < _ceil(float(q), unit) for w, q in zip(drawn, p.reshape(-1), strict=True)]
    return {"y": Expected(_as(np.array(heads, np.int64).reshape(shape), desc.element))}


def _as(y: Array, element: Element) -> Array:
    return y.astype(np.float64) if element.is_float else y.astype(element.numpy)


def _ceil(p: float, unit: int) -> int:
    top, bottom = p.as_integer_ratio()
    scaled: int = -(-top * unit // bottom)
    return scaled


def wide_words(seed: int, offset: int, n: int) -> Array:
    """64 bits for each of n elements: two for a block."""
    w = words(seed, offset, -(-n // 2))
    pairs = np.stack((w[1] << np.uint64(32) | w[0], w[3] << np.uint64(32) | w[2]), 1)
    return pairs.reshape(-1)[:n]


def below(seed: int, offset: int, count: int, n: int) -> list[int]:
    """`count` numbers below n, each with the same probability."""
    found = []
    for i, first in enumerate(wide_words(seed, offset, count)):
        x, tries = int(first), 0
        while x * n % 2**64 < 2**64 % n:
            tries += 1
            counter = (offset + i // 2) % 2**64
            key = (seed & 0xFFFFFFFF, seed >> 32)
            w = [
                int(v) for v in philox(tuple(np.array(c) for c in (counter & 0xFFFFFFFF, counter >> 32, tries, 0)), key)
            ]
            x = w[3] << 32 | w[2] if i % 2 else w[1] << 32 | w[0]
        found.append(x * n >> 64)
    return found


def _permutation(n: int, seed: int, offset: int) -> Array:
    keys = [int(k) for k in np.stack(words(seed, offset, 6), 1).reshape(-1)]
    coin = int(words(seed, offset, 7)[0][6]) & 1
    bits = 2
    while 2**bits < 2 * n:
        bits += 1
    left_bits, right_bits = bits // 2, bits - bits // 2

    def mixed(v: int, key: int) -> int:
        v = (v ^ key) * 0x9E3779B1 & 0xFFFFFFFF
        v = (v ^ v >> 16) * 0x85EBCA6B & 0xFFFFFFFF
        v = (v ^ v >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
        return v ^ v >> 16

    def once(i: int) -> int:
        i = i ^ coin if i < 2 else i
        left, right = i >> right_bits, i & (2**right_bits - 1)
        for k in range(0, 24, 2):
            left ^= mixed(right, keys[k]) & (2**left_bits - 1)
            right ^= mixed(left, keys[k + 1]) & (2**right_bits - 1)
        return int(left << right_bits | right)

    y = []
    for i in range(n):
        v = once(i)
        while v >= n:
            v = once(v)
        y.append(v)
    return np.array(y, np.int64)


def weights(p: Array, double: bool) -> list[int]:
    """Probabilities of a row as integers."""
    bits = 62
    while bits > 1 and 2 ** (62 - bits) < len(p):
        bits -= 1
    digits, least = (53, -1074) if double else (24, -149)
    parts = [float(v).as_integer_ratio() for v in p]
    units = [top * 2**-least // bottom for top, bottom in parts]  # multiples of the least number
    exponents = [max(u.bit_length() - digits, 0) for u in units]
    most = max(exponents, default=0)
    found = []
    for u, e in zip(units, exponents, strict=True):
        up = bits - digits - (most - e)
        m = u >> e
        found.append(m << up if up >= 0 else (m + (1 << (-up - 1))) >> -up if up >= -62 else 0)
    return found


def _categories(desc: MultinomialDescriptor, p: Array, seed: int, offset: int) -> Array:
    rows = p.reshape(int(np.prod(p.shape[:-1])), p.shape[-1])
    y = np.zeros((len(rows), desc.samples), np.int64)
    for r, row in enumerate(rows):
        q = np.array(weights(row, desc.element is Element.F64), np.uint64)
        for j in range(desc.samples):
            index = r * desc.samples + j
            ends = np.cumsum(q)
            drawn = _at(seed, offset, index, int(ends[-1]))
            y[r, j] = np.searchsorted(ends, np.uint64(drawn), side="right")
            if not desc.replacement:
                q[y[r, j]] = 0
    return y.reshape((*p.shape[:-1], desc.samples))


def _at(seed: int, offset: int, index: int, n: int) -> int:
    return below(seed, (offset + index // 2) % 2**64, index % 2 + 1, n)[index % 2]
