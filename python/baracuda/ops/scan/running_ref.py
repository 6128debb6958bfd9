"""Reference of running extremes and logarithms of running sums of exponentials."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from baracuda.describe.dims import largest
from baracuda.describe.elements import Element
from baracuda.ops.layout.layout_ref import values
from baracuda.ops.scan.running import (
    CumulativeExtremeDescriptor,
    LogCumSumExpBackwardDescriptor,
    LogCumSumExpDescriptor,
)
from baracuda.ops.scan.scan_ref import SHAPES
from baracuda.ops.sort.sort_ref import special
from baracuda.prove.reference import Array, Case, Expected


def _inputs(op: str, element: Element, rng: np.random.Generator) -> Iterator[tuple[Array, int, str]]:
    """Values with the axis, and what is special about them."""
    for shape, axis in SHAPES:
        yield values(element, shape, rng) if op != "logcumsumexp" else rng.normal(0, 3, shape), axis, ""
    for shape, axis in (((6, 40), 1), ((33, 20), 0), ((2, 2100), 1)):
        if element.is_float:
            yield special(rng, shape), axis, "special values"
            some = np.where(rng.random(shape) < 0.02, special(rng, shape), rng.normal(0, 3, shape))
            yield some, axis, "few special values"
        else:
            yield rng.integers(0, 2 if element is Element.BOOL else 5, shape), axis, "ties"
    if op == "logcumsumexp":
        rising = np.linspace(-60, 60, 1500).reshape(1, -1).repeat(2, 0)
        rising[1] = -rising[1]
        yield rising, 1, "every value the largest so far, or none but the first"
        yield np.ascontiguousarray(rising.T.repeat(20, 1)), 0, "the same side by side"
        yield np.full((2, 300), -np.inf), 1, "nothing"


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Ranks 0 to 8, every place of the axis, lines longer than a tile, ties, NaN and infinities."""
    for x, axis, note in _inputs(op, element, rng):
        if op != "logcumsumexp":
            yield Case(CumulativeExtremeDescriptor(op, x.shape, axis, element), {"x": x}, note=note)
            continue
        forward = Case(LogCumSumExpDescriptor(x.shape, axis, element), {"x": x}, note=note)
        if direction == "forward":
            yield forward
            continue
        given = {"dy": rng.normal(size=x.shape), "x": x, "y": reference(forward)["y"].value}
        desc = LogCumSumExpBackwardDescriptor(x.shape, axis, element)
        yield Case(desc, given, note=note, exact_gradient=not note)


def _places(x: Array, axis: int, sign: int) -> Array:
    """Where the extreme of what came so far was last; NaN counts most."""
    _, order = np.unique(x, return_inverse=True)  # equal_nan: one number for all NaN, above every other
    rank = order.reshape(x.shape).astype(np.int64)
    rank = np.where(x != x, x.size, sign * rank)
    at = np.broadcast_to(
        np.arange(x.shape[axis]).reshape([-1 if d == axis % x.ndim else 1 for d in range(x.ndim)]), x.shape
    )
    best = np.maximum.accumulate(rank, axis)
    return np.maximum.accumulate(np.where(rank == best, at, 0), axis)


def _log_sums(x: Array, axis: int) -> tuple[Array, Array]:
    """The result, and what its error is in units of: that of a difference from the largest grows with it."""
    wide = x.astype(np.longdouble)
    value = np.logaddexp.accumulate(wide, axis)
    # A NaN stays, which ends what an infinity began.
    nan = np.logical_or.accumulate(x != x, axis)
    value = np.where(nan, np.nan, value)
    finite = np.where(np.isfinite(value), value, 0)
    weights = np.cumsum(np.where(np.isfinite(wide), np.exp(np.minimum(wide, 11000)), 0), axis)
    spread = np.cumsum(np.where(np.isfinite(wide), np.exp(np.minimum(wide, 11000)) * np.abs(wide), 0), axis)
    mean = np.where(weights > 0, spread / np.where(weights > 0, weights, 1), 0)
    return value, np.abs(finite) * 2 + mean + 1


def _gradient(dy: Array, x: Array, y: Array) -> tuple[Array, Array, Array]:
    """Of lines along the last axis: value, size, and what is formed on the way where y does not rise."""

    def run(terms: Array) -> Array:
        total = np.zeros(terms.shape, np.longdouble)
        so_far = np.zeros(terms.shape[:-1], np.longdouble)
        for i in reversed(range(terms.shape[-1])):
            if i + 1 < terms.shape[-1]:
                so_far = so_far * _raised(y[..., i], y[..., i + 1])
            so_far = so_far + terms[..., i]
            total[..., i] = so_far * _raised(x[..., i], y[..., i])
        return total

    finite = [np.where(np.isfinite(v), v, 0) for v in (x, y)]
    sizes = 1 + np.abs(finite[0]) + np.max(np.abs(finite[1]), -1, keepdims=True, initial=0)
    falls = np.max(np.maximum.accumulate(finite[1], -1) - finite[1], -1, keepdims=True, initial=0)
    reach = np.maximum(np.exp(falls) * np.sum(np.abs(dy) + 1, -1, keepdims=True), _raised(x, y))
    return run(dy), run(np.abs(dy)) * sizes, reach


def _raised(a: Array, b: Array) -> Array:
    """exp(a - b), 1 where both are the same infinity."""
    return np.exp(np.where(a == b, 0, a - b))


def reference(case: Case) -> dict[str, Expected]:
    """Outputs in extended precision."""
    desc = case.descriptor
    assert isinstance(desc, CumulativeExtremeDescriptor | LogCumSumExpDescriptor | LogCumSumExpBackwardDescriptor)
    shape = tuple(map(largest, desc.shape))
    t = {k: np.atleast_1d(np.asarray(v)) for k, v in case.tensors.items()}
    terms = shape[desc.axis] if shape else 1
    with np.errstate(all="ignore"):
        if isinstance(desc, CumulativeExtremeDescriptor):
            at = (
                _places(t["x"], desc.axis, 1 if desc.kind == "cummax" else -1)
                if t["x"].size
                else np.zeros(shape, np.int64)
            )
            values_there = np.take_along_axis(t["x"], at, desc.axis)
            return {"values": Expected(values_there.reshape(shape)), "indices": Expected(at.reshape(shape))}
        if isinstance(desc, LogCumSumExpDescriptor):
            found = _log_sums(t["x"], desc.axis)
            value, size = (np.asarray(v, np.float64).reshape(shape) for v in found)
            return {"y": Expected(value, size, max(terms, 1))}
        lines = [np.moveaxis(t[k], desc.axis, -1).astype(np.longdouble) for k in ("dy", "x", "y")]
        made = (np.moveaxis(v, -1, desc.axis) for v in _gradient(*lines))
        value, size, reach = (np.asarray(v, np.float64).reshape(shape) for v in made)
    return {"dx": Expected(value, size, max(terms, 1), reach=reach)}


def forward_of(case: Case) -> Case:
    """The forward case of a backward one."""
    d = case.descriptor
    assert isinstance(d, LogCumSumExpBackwardDescriptor)
    return Case(LogCumSumExpDescriptor(d.shape, d.axis, Element.F64), {"x": case.tensors["x"]})
