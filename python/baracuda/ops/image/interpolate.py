"""Functions of resizing; their descriptors are in resize.py."""

from __future__ import annotations

from fractions import Fraction
from math import floor, isfinite, lcm
from typing import Any

import numpy as np

from baracuda.call.compose import Composer, Value, composed, refuse_tensors
from baracuda.call.inline import pulled_through
from baracuda.call.op import Arg, Call, Op, Recipe, function
from baracuda.call.steps import made_of
from baracuda.describe.dims import shape_text
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.options import integers
from baracuda.ops.image.resize import ResizeDescriptor, ResizeNearestDescriptor
from baracuda.ops.pool.pool import AdaptiveAvgPoolDescriptor

OPS: tuple[Op, ...] = ()

_RANKS = {"linear": (3,), "bilinear": (4,), "bicubic": (4,), "trilinear": (5,)}
_MODES = ("nearest", "nearest-exact", "area", *_RANKS)
_FINEST = 2**24


def _factors(scale_factor: Any, axes: int) -> tuple[float, ...]:
    """How many times larger each axis becomes."""
    given = scale_factor if isinstance(scale_factor, (tuple, list)) else (scale_factor,) * axes
    if len(given) != axes or any(isinstance(f, (bool, str)) or not hasattr(f, "__float__") for f in given):
        raise InvalidProblemError(
            f"scale_factor: got {scale_factor!r}, want a number, or {axes} of them, one per axis."
        )
    factors = tuple(float(f) for f in given)
    if any(not isfinite(f) or f <= 0 for f in factors):
        raise InvalidProblemError(f"scale_factor: got {scale_factor!r}, want numbers above 0.")
    return factors


def _sizes(places: tuple[int, ...], size: Any, scale_factor: Any) -> tuple[tuple[int, ...], tuple[float, ...] | None]:
    """Results along each axis, and the factors that they follow from, if they do."""
    refuse_tensors("size", size)
    refuse_tensors("scale_factor", scale_factor)
    if (size is None) == (scale_factor is None):
        raise InvalidProblemError("size: want either it or scale_factor, not both, not neither.")
    if size is None:
        factors = _factors(scale_factor, len(places))
        return tuple(floor(n * f) for n, f in zip(places, factors, strict=True)), factors
    numbers = integers("size", (size,) if hasattr(size, "__index__") else size)
    if isinstance(size, bool) or len(numbers) not in (1, len(places)):
        raise InvalidProblemError(f"size: got {size!r}, want an int, or {len(places)} of them, one per axis.")
    return (numbers * len(places) if len(numbers) == 1 else numbers), None


def _nearest(place: int, result: int, factor: float | None, exact: bool) -> tuple[int, int, int]:
    """The rule of torch, whose ratio is a number of f32: a fraction over a power of 2."""
    ratio = np.float32(1.0 / factor if factor else np.float32(place) / np.float32(result))
    top, bottom = float(ratio).as_integer_ratio()
    return (top, 2 * top, 2 * bottom) if exact else (0, top, bottom)


def _ratio(place: int, result: int, factor: float | None, align: bool) -> Fraction:
    """How far apart results are, in places."""
    if align:
        return Fraction(place - 1, result - 1) if result > 1 else Fraction(0)
    return 1 / Fraction(factor).limit_denominator(_FINEST) if factor else Fraction(place, result)


def _positions(ratio: Fraction, corner: bool) -> tuple[int, int, int]:
    """Start, step and parts of a place; from the corner of the first place, or from its middle as the results' are."""
    start = Fraction(0) if corner else (ratio - 1) / 2
    den = lcm(start.denominator, ratio.denominator)
    return int(start * den), int(ratio * den), den


def _described(
    shape: tuple[int, ...],
    element: Any,
    size: Any,
    scale_factor: Any,
    mode: str,
    align: Any,
    again: Any,
    antialias: bool,
) -> Any:
    """What `interpolate` asks for an input of this shape."""
    _check(shape, mode, align, antialias)
    places = shape[2:]
    results, factors = _sizes(places, size, scale_factor)
    if again and factors is None:
        raise InvalidProblemError("recompute_scale_factor: got True, want None with a size.")
    if any(n < 1 for n in (*places, *results)):
        raise InvalidProblemError(
            f"size: got {shape_text(places)} to {shape_text(results)}, want at least 1 along each axis."
        )
    if mode == "area":
        return AdaptiveAvgPoolDescriptor(shape, results, element)
    used = factors if factors and not again else (None,) * len(places)
    triples = list(zip(places, results, used, strict=True))
    if mode.startswith("nearest"):
        start, step, den = zip(*(_nearest(*t, exact=mode != "nearest") for t in triples), strict=True)
        return ResizeNearestDescriptor(shape, results, start, step, den, rounded=True, element=element)
    corner = bool(align) and not antialias
    start, step, den = zip(*(_positions(_ratio(*t, align=bool(align)), corner) for t in triples), strict=True)
    a = -0.5 if antialias else -0.75
    return ResizeDescriptor(shape, results, start, step, den, mode == "bicubic", antialias, a, element)


def _check(shape: tuple[int, ...], mode: str, align: Any, antialias: bool) -> None:
    if mode not in _MODES:
        raise InvalidProblemError(f"mode: got {mode!r}, want one of {', '.join(_MODES)}.")
    ranks = _RANKS.get(mode, (3, 4, 5))
    if len(shape) not in ranks:
        want = " or ".join(str(n) for n in ranks)
        raise InvalidProblemError(f"input: got shape {shape_text(shape)}, want {want} dimensions for mode {mode!r}.")
    if align is not None and mode not in _RANKS:
        raise InvalidProblemError(f"align_corners: got {align!r}, want None for mode {mode!r}.")
    if antialias and mode not in ("bilinear", "bicubic"):
        raise InvalidProblemError(f"antialias: got True for mode {mode!r}, want bilinear or bicubic.")


@made_of("resize resize_nearest adaptive_avg_pool")
@function(tensors="input")
def interpolate(
    call: Call,
    input: Arg,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Recipe:
    """The axes behind batch and channels made longer or shorter, as torch.nn.functional.interpolate.

    Places of results are exact fractions, but for nearest ones, which are found in f32 as torch's are. A `scale_factor` is
    taken as the nearest fraction whose denominator is at most 2^24.
    """
    given = (size, scale_factor, mode, align_corners, recompute_scale_factor, antialias)
    return call(_described(input.shape, input.element, *given), x=input)


@made_of("resize_backward resize_nearest_backward adaptive_avg_pool_backward")
@function(tensors="dy")
def interpolate_backward(
    call: Call,
    dy: Arg,
    shape: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Recipe:
    """Gradient of interpolate by its input of this shape."""
    given = (size, scale_factor, mode, align_corners, recompute_scale_factor, antialias)
    return call(_described(integers("shape", shape), dy.element, *given).backward(), dy=dy)


interpolate.pulled_by(interpolate_backward)


@pulled_through
@made_of("resize resize_nearest adaptive_avg_pool")
@composed(tensors="input")
def upsample(
    c: Composer,
    input: Value,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Value:
    """`interpolate` by its older name, as torch.nn.functional.upsample."""
    made: Value = c.of(interpolate, input, size, scale_factor, mode, align_corners)
    return made


@pulled_through
@made_of("resize_nearest")
@composed(tensors="input")
def upsample_nearest(c: Composer, input: Value, size: Any = None, scale_factor: Any = None) -> Value:
    """`interpolate` with mode "nearest", as torch.nn.functional.upsample_nearest."""
    made: Value = c.of(interpolate, input, size, scale_factor)
    return made


@pulled_through
@made_of("resize")
@composed(tensors="input")
def upsample_bilinear(c: Composer, input: Value, size: Any = None, scale_factor: Any = None) -> Value:
    """`interpolate` with mode "bilinear" and aligned corners, as torch.nn.functional.upsample_bilinear."""
    made: Value = c.of(interpolate, input, size, scale_factor, "bilinear", True)
    return made
