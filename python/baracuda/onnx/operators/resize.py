"""Resize as a problem of `resize` or `resize_nearest`: where results lie is said in fractions."""

from __future__ import annotations

from fractions import Fraction
from math import floor, lcm
from typing import Any

import baracuda as bc
from baracuda.onnx.call import Call
from baracuda.onnx.operators.table import operator

# What is added to a position before it is rounded down.
ROUNDED = {"floor": Fraction(0), "round_prefer_ceil": Fraction(1, 2)}


def _fraction(x: float) -> Fraction:
    return Fraction(x).limit_denominator(10**6)


def _scales(c: Call, places: list[int], scales: int, sizes: int) -> tuple[list[int], list[Fraction]]:
    """Results along each axis, and how much longer it becomes; of the inputs at these places."""
    axes = [int(a) % len(places) for a in c.get("axes") or range(len(places))]
    factors, results = [Fraction(1)] * len(places), list(places)
    rates = [float(s) for s in c.array(scales).reshape(-1)] if c.has(scales) else c.get("scales") or []
    if len(rates):
        for a, s in zip(axes, rates, strict=True):
            if s != 1:  # an axis that keeps its size may be open
                factors[a] = _fraction(s)
                results[a] = floor(places[a] * factors[a])
        return results, factors
    if not c.has(sizes):
        c.wrong("neither scales nor sizes", "one of them")
    wanted = c.ints(sizes)
    given = [Fraction(1) if n == places[a] else Fraction(n, places[a]) for a, n in zip(axes, wanted, strict=True)]
    policy = c.get("keep_aspect_ratio_policy", "stretch")
    if policy != "stretch":
        one = min(given) if policy == "not_larger" else max(given)
        given, wanted = [one] * len(axes), [floor(one * places[a] + Fraction(1, 2)) for a in axes]
    for a, s, n in zip(axes, given, wanted, strict=True):
        factors[a], results[a] = s, n
    return results, factors


def _line(c: Call, mode: str, place: int, result: int, factor: Fraction) -> tuple[Fraction, Fraction]:
    """The position of the first result, and how far apart results are."""
    half = 1 / factor / 2 - Fraction(1, 2)
    if mode == "align_corners":
        length = factor * place
        return Fraction(0), Fraction(place - 1) / (length - 1) if length != 1 else Fraction(0)
    if mode == "asymmetric":
        return Fraction(0), 1 / factor
    if mode == "half_pixel_symmetric":
        return Fraction(place, 2) * (1 - Fraction(result) / (factor * place)) + half, 1 / factor
    if mode == "half_pixel":
        return half, 1 / factor
    if mode == "pytorch_half_pixel":
        return (half, 1 / factor) if result > 1 else (Fraction(0), Fraction(0))
    c.refuse(f"coordinate_transformation_mode={mode!r}", "one without regions")


@operator("Resize")
def _resize(c: Call, x: Any, *_: Any) -> Any:
    """Before opset 11: of scales alone, from corner to corner without the last."""
    if c.opset < 11:
        return resized(c, x, 1, 9, "asymmetric", "floor")
    how = c.get("coordinate_transformation_mode", "half_pixel")
    return resized(c, x, 2, 3, how, c.get("nearest_mode", "round_prefer_floor"))


@operator("Upsample")
def _upsample(c: Call, x: Any, *_: Any) -> Any:
    return resized(c, x, 1, 9, "asymmetric", "floor")


def resized(c: Call, x: Any, scales: int, sizes: int, how: str, rule: str) -> Any:
    """By a plan: `interpolate` has torch's modes only."""
    results, factors = _scales(c, list(x.shape), scales, sizes)
    if x.ndim < 3 or x.ndim > 5 or results[:2] != list(x.shape[:2]) or c.get("antialias", 0):
        got = "antialias=1" if c.get("antialias", 0) else f"{list(x.shape)} to {results}"
        c.refuse(got, "an image with a batch and channels in front, which keep their size, and no antialias")
    kind, outside = c.get("mode", "nearest"), bool(c.get("exclude_outside", 0))
    if outside and min(factors) < 1:
        c.refuse("exclude_outside=1 of a smaller image", "a larger one")
    start, step, den = [], [], []
    for place, result, factor in zip(x.shape[2:], results[2:], factors[2:], strict=True):
        first, apart = _line(c, how, place, result, factor)
        parts = lcm(2, first.denominator, apart.denominator)
        shift = 0
        if kind == "nearest":
            up = 1 - Fraction(1, parts)  # rounds up what is not whole
            add = ROUNDED[rule] if rule in ROUNDED else up - (Fraction(1, 2) if rule == "round_prefer_floor" else 0)
            shift = int(add * parts)
        start.append(int(first * parts) + shift)
        step.append(int(apart * parts))
        den.append(parts)
    where = (x.shape, tuple(results[2:]), tuple(start), tuple(step), tuple(den))
    if kind == "nearest":
        desc: Any = bc.ResizeNearestDescriptor(*where, element=x.element)
    else:
        a = float(c.get("cubic_coeff_a", -0.75))
        desc = bc.ResizeDescriptor(*where, cubic=kind == "cubic", antialias=outside, a=a, element=x.element)
    made, y = bc.plan(desc), bc.empty(results, x.element)
    made.run(x=x, y=y, workspace=bc.empty(made.workspace_size, "u8"))
    return y
