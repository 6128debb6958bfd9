"""Reference of resizing: a matrix for each axis, from the definition in exact fractions."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from math import ceil, floor, prod
from typing import Any

import numpy as np

from baracuda.describe.elements import Element
from baracuda.ops.image.resize import ResizeDescriptor, ResizeNearestDescriptor
from baracuda.prove.reference import Array, Case, Expected

FORWARD: dict[str, Any] = {"resize": ResizeDescriptor, "resize_nearest": ResizeNearestDescriptor}

# Shapes with output_size, start, step, den: twice and half as large, aligned corners, ratios of odd numbers, one place or
# result, rows longer than a line on either side, positions far outside, all results at one place.
_CASES: list[tuple[Any, ...]] = [
    ((1, 1, 1), (1,), (0,), (1,), (1,)),
    ((2, 3, 17), (34,), (-1,), (2,), (4,)),
    ((2, 3, 18), (9,), (1,), (4,), (2,)),
    ((1, 2, 5), (13,), (0,), (1,), (3,)),
    ((1, 2, 1100), (2500,), (-14,), (11,), (25,)),
    ((1, 1, 2500), (1030,), (147,), (500,), (206,)),
    ((2, 1, 3), (1,), (2,), (6,), (2,)),
    ((1, 2, 1), (700,), (-3,), (1,), (5,)),
    ((1, 2, 6), (9,), (-30,), (9,), (4,)),
    ((1, 1, 5), (4,), (7,), (0,), (2,)),
    ((2, 3, 7, 9), (14, 18), (-1, -1), (2, 2), (4, 4)),
    ((2, 3, 8, 9), (5, 17), (3, -4), (8, 9), (5, 17)),
    ((1, 20, 6, 5), (3, 11), (1, -3), (4, 5), (2, 11)),
    ((1, 2, 40, 41), (3, 2), (37, 39), (80, 82), (6, 4)),
    ((0, 3, 5, 5), (2, 10), (0, 0), (2, 1), (1, 2)),
    ((2, 2, 4, 5, 6), (8, 5, 3), (-1, 0, 1), (2, 1, 4), (4, 1, 2)),
    ((1, 33, 3, 4, 4), (2, 6, 8), (0, 0, 0), (2, 3, 3), (1, 5, 7)),
]
_FIELDS = ("input_shape", "output_size", "start", "step", "den", "rounded", "cubic", "antialias", "a")


def _options(op: str) -> tuple[dict[str, Any], ...]:
    if op == "resize_nearest":
        return ({}, {"rounded": True})
    return ({}, {"cubic": True}, {"antialias": True}, {"cubic": True, "antialias": True, "a": -0.5})


def _descriptors(op: str, element: Element) -> Iterator[Any]:
    for more in _options(op):
        for shape, size, start, step, den in _CASES:
            if more.get("rounded"):
                fine = tuple(1 << (n - 1).bit_length() for n in den)
                start, step, den = tuple(abs(n) for n in start), step, fine
            yield FORWARD[op](shape, size, start, step, den, **more, element=element)


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """All of _CASES with every filter, NaN and infinities."""
    for desc in _descriptors(op, element):
        yield _case(desc, direction, _values(desc, element), "")
    if not element.is_float or direction == "backward":
        return
    for more in _options(op)[:2]:
        desc = FORWARD[op]((2, 3, 6, 7), (12, 7), (-1, 0), (2, 1), (4, 1), element=element) if not more else None
        if desc is None:
            continue
        x = rng.normal(size=desc.input_shape)
        x[0, 0, 2, 3], x[1, 2, 4, 1], x[1, 0, 0] = np.nan, np.inf, -np.inf
        yield _case(desc, direction, x, "special values")


def _values(desc: Any, element: Element) -> Array:
    """Numbers that are all different, always the same ones of a shape."""
    n = prod(desc.input_shape)
    x = np.random.default_rng(n).permutation(n).reshape(desc.input_shape)
    return (
        (x - n // 2) / 64 if element.is_float else (x % 251 - 100 * (element.numpy.kind == "i")).astype(element.numpy)
    )


def _case(desc: Any, direction: str, x: Array, note: str) -> Case:
    if direction == "forward":
        return Case(desc, {"x": x}, note=note, exact_gradient=not note)
    return Case(desc.backward(), {"dy": np.random.default_rng(5).normal(size=desc.result_shape())}, note=note)


def _filter(t: Fraction, cubic: bool, a: Fraction) -> Fraction:
    if not cubic:
        return max(1 - t, Fraction(0))
    if t <= 1:
        return (a + 2) * t**3 - (a + 3) * t**2 + 1
    return a * (t**3 - 5 * t**2 + 8 * t - 4) if t < 2 else Fraction(0)


@cache
def _taps(desc: Any, axis: int) -> list[list[tuple[int, Fraction]]]:
    """What each result takes: places and weights."""
    size, den = desc.input_shape[2 + axis], desc.den[axis]
    found = []
    for o in range(desc.output_size[axis]):
        top = desc.start[axis] + o * desc.step[axis]
        at = Fraction(top, den)
        if desc.op == "resize_nearest":
            place = floor(float(np.float32(top) / np.float32(den)) if desc.rounded else at)
            found.append([(min(max(place, 0), size - 1), Fraction(1))])
            continue
        wide = max(Fraction(1), Fraction(desc.step[axis], den)) if desc.antialias else Fraction(1)
        reach = wide * (2 if desc.cubic else 1)
        if desc.antialias:
            places = range(max(floor(at - reach) + 1, 0), min(ceil(at + reach), size))
            weights = [_filter(abs(p - at) / wide, desc.cubic, Fraction(desc.a)) for p in places]
            total = sum(weights) or Fraction(1)
            found.append([(p, w / total) for p, w in zip(places, weights, strict=True)])
            continue
        at = at if desc.cubic else min(max(at, Fraction(0)), Fraction(size - 1))
        first = floor(at) - desc.cubic
        around = range(first, first + (4 if desc.cubic else 2))
        found.append([(min(max(p, 0), size - 1), _filter(abs(p - at), desc.cubic, Fraction(desc.a))) for p in around])
    return found


def _along(x: Array, taps: list[list[tuple[int, Fraction]]], axis: int, size: int, back: bool, plain: bool) -> Array:
    """The sums of one axis, of numbers or of their sizes; back from results to places."""
    moved = np.moveaxis(x, axis, 0)
    made = np.zeros((size if back else len(taps), *moved.shape[1:]), np.longdouble)
    for k in range(max(len(t) for t in taps)):
        o = np.array([o for o, t in enumerate(taps) if k < len(t)])
        place = np.array([taps[i][k][0] for i in o])
        weight = np.array(
            [np.longdouble(w.numerator) / np.longdouble(w.denominator) for w in (taps[i][k][1] for i in o)]
        )
        weight = (weight if plain else np.abs(weight)).reshape(-1, *(1,) * (x.ndim - 1))
        if back:
            np.add.at(made, place, weight * moved[o])
        else:
            made[o] += weight * moved[place]
    return np.moveaxis(made, 0, axis)


def _terms(taps: list[list[tuple[int, Fraction]]], size: int, back: bool) -> int:
    if not back:
        return max(len(t) for t in taps)
    counts = [0] * size
    for taken in taps:
        for place, _ in taken:
            counts[place] += 1
    return max(counts)


def reference(case: Case) -> dict[str, Expected]:
    """Results and gradients by the definition."""
    desc: Any = case.descriptor
    back = desc.direction == "backward"
    given = case.tensors["dy" if back else "x"]
    plain = forward_of(case).descriptor  # found once for all elements
    taps = [_taps(plain, i) for i in range(len(desc.input_shape) - 2)]
    if desc.op == "resize_nearest" and not back:
        y = given
        for i, t in enumerate(taps):
            y = np.take(y, [taken[0][0] for taken in t], axis=2 + i)
        return {"y": Expected(y)}
    value, size, terms = given.astype(np.longdouble), np.abs(given).astype(np.longdouble), 1
    with np.errstate(all="ignore"):
        for i in reversed(range(len(taps))):
            n = desc.input_shape[2 + i]
            value = _along(value, taps[i], 2 + i, n, back, True)
            size = _along(size, taps[i], 2 + i, n, back, False)
            terms *= _terms(taps[i], n, back)
        found, magnitude = value.astype(np.float64), size.astype(np.float64)
    return {"dx" if back else "y": Expected(found, magnitude, max(1, terms))}


def forward_of(case: Case) -> Case:
    """The forward case of a gradient."""
    desc: Any = case.descriptor
    made = FORWARD[desc.op](**{n: getattr(desc, n) for n in _FIELDS if hasattr(desc, n)}, element=Element.F64)
    return Case(made, {"x": _values(made, Element.F64)})
