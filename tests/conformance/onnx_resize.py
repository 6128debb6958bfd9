"""ONNX's Resize as a problem of `resize` or `resize_nearest`: where results lie is said in fractions."""

from __future__ import annotations

from fractions import Fraction
from math import floor, lcm
from typing import Any

import numpy as np
from onnx_cases import NO_OPTION, NodeCase, NotRun

import baracuda as bc

# What is added to a position before it is rounded down.
ROUNDED = {"floor": Fraction(0), "round_prefer_ceil": Fraction(1, 2)}


def _fraction(x: Any) -> Fraction:
    return Fraction(float(x)).limit_denominator(10**6)


def _scales(c: NodeCase, places: list[int], scales: Any, sizes: Any) -> tuple[list[int], list[Fraction]]:
    """Results along each axis, and how much longer it becomes."""
    axes = [int(a) for a in c.get("axes", range(len(places)))]
    factors, results = [Fraction(1)] * len(places), list(places)
    if scales is not None and np.asarray(scales).size:
        for a, s in zip(axes, np.asarray(scales).reshape(-1), strict=True):
            factors[a] = _fraction(s)
            results[a] = floor(places[a] * factors[a])
        return results, factors
    wanted = [int(n) for n in np.asarray(sizes).reshape(-1)]
    given = [Fraction(n, places[a]) for a, n in zip(axes, wanted, strict=True)]
    policy = c.get("keep_aspect_ratio_policy", "stretch")
    if policy != "stretch":
        one = min(given) if policy == "not_larger" else max(given)
        given, wanted = [one] * len(axes), [floor(one * places[a] + Fraction(1, 2)) for a in axes]
    for a, s, n in zip(axes, given, wanted, strict=True):
        factors[a], results[a] = s, n
    return results, factors


def _line(mode: str, place: int, result: int, factor: Fraction) -> tuple[Fraction, Fraction]:
    """The position of the first result, and how far apart results are."""
    half = 1 / factor / 2 - Fraction(1, 2)
    if mode == "align_corners":
        length = factor * place
        return Fraction(0), Fraction(place - 1) / (length - 1) if length != 1 else Fraction(0)
    if mode == "asymmetric":
        return Fraction(0), 1 / factor
    if mode == "half_pixel_symmetric":
        return Fraction(place, 2) * (1 - Fraction(result) / (factor * place)) + half, 1 / factor
    if mode == "half_pixel" or (mode == "pytorch_half_pixel" and result > 1):
        return half, 1 / factor
    raise NotRun(NO_OPTION)


def resize(F: Any, c: NodeCase, x: Any, roi: Any = None, scales: Any = None, sizes: Any = None) -> Any:
    """By a plan: bc.functional has torch's modes only."""
    results, factors = _scales(c, list(x.shape), scales, sizes)
    if x.ndim != 4 or results[:2] != list(x.shape[:2]) or c.get("antialias", 0):
        raise NotRun(NO_OPTION)
    how, kind = c.get("coordinate_transformation_mode", "half_pixel"), c.get("mode", "nearest")
    outside = bool(c.get("exclude_outside", 0))
    if outside and min(factors) < 1:
        raise NotRun(NO_OPTION)
    lines = [_line(how, *t) for t in zip(x.shape[2:], results[2:], factors[2:], strict=True)]
    start, step, den = [], [], []
    for first, apart in lines:
        parts = lcm(2, first.denominator, apart.denominator)
        shift = 0
        if kind == "nearest":
            rule = c.get("nearest_mode", "round_prefer_floor")
            up = 1 - Fraction(1, parts)  # rounds up what is not whole
            add = ROUNDED[rule] if rule in ROUNDED else up - (Fraction(1, 2) if rule == "round_prefer_floor" else 0)
            shift = int(add * parts)
        start.append(int(first * parts) + shift)
        step.append(int(apart * parts))
        den.append(parts)
    where = (x.shape, tuple(results[2:]), tuple(start), tuple(step), tuple(den))
    if kind == "nearest":
        desc: Any = bc.ResizeNearestDescriptor(*where, element=x.dtype)
    else:
        a = float(c.get("cubic_coeff_a", -0.75))
        desc = bc.ResizeDescriptor(*where, cubic=kind == "cubic", antialias=outside, a=a, element=x.dtype)
    made, y = bc.plan(desc), np.empty(results, x.dtype)
    F.used.add("interpolate")
    made.run(x=x, y=y, workspace=bc.empty(made.workspace_size, "u8"))
    return y
