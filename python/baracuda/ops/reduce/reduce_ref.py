"""Reference of the reductions: NumPy in extended precision."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from baracuda.describe.dims import largest
from baracuda.describe.elements import Element
from baracuda.ops.reduce.reduce import (
    ReduceBackwardDescriptor,
    ReduceDescriptor,
    SumToBackwardDescriptor,
    SumToDescriptor,
    TraceBackwardDescriptor,
    TraceDescriptor,
)
from baracuda.prove.reference import Array, Case, Expected

# Shapes with the axes that are folded. The large ones are cut into strips, along rows and along columns.
SHAPES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((), ()), ((1,), (0,)), ((17,), (0,)), ((5, 7), ()), ((3, 70), (1,)), ((70, 3), (0,)), ((33, 130), (0, 1)),
    ((4, 5, 6), (0, 2)), ((4, 5, 6), (1,)), ((2, 3, 1, 2, 3, 2, 1, 4), (1, 3, 4, 7)), ((2, 1030), (1,)),
    ((260, 40), (0,)), ((90, 4), (1,)),
    ((2, 40000), (1,)), ((40000, 2), (0,)), ((700, 130), (0,)), ((70001,), (0,)), ((0, 5), (1,)),
]  # fmt: skip
EMPTY: list[tuple[tuple[int, ...], tuple[int, ...]]] = [((0, 5), (0,)), ((3, 0), (0, 1)), ((0,), (0,))]
SUM_TO: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((3,), (3,)), ((4, 5), (5,)), ((4, 5), (4, 1)), ((4, 5), ()), ((2, 3, 4), (3, 1)), ((2, 3, 4), (1, 3, 4)),
    ((300, 301), (301,)), ((300, 301), (300, 1)), ((0, 5), (1, 5)), ((2, 2, 3, 1, 2, 3, 2, 2), (2, 3, 1, 2, 1, 2, 1)),
]  # fmt: skip


def _values(shape: tuple[int, ...], element: Element, rng: np.random.Generator) -> Array:
    if element.is_float:
        return rng.normal(0, 2, shape)
    if element is Element.BOOL:
        return rng.random(shape) < 0.5
    info = np.iinfo(element.numpy)
    return rng.integers(info.min, info.max, shape, element.numpy, endpoint=True)


TRACES = [(3, 3), (5, 70), (300, 40), (1, 1), (0, 4)]
NEAR_ONE = {"prod"}  # products of many values leave every range otherwise


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Ranks 0 to 8, any axes, sizes 0 and 1, long axes, ties, NaN and infinities."""
    if op == "sum_to":
        for shape, target in SUM_TO:
            if direction == "forward":
                yield Case(SumToDescriptor(shape, target, element), {"x": _values(shape, element, rng)})
            else:
                yield Case(SumToBackwardDescriptor(shape, target, element), {"dy": _values(target, element, rng)})
        return
    if op == "trace":
        for shape in TRACES:
            if direction == "forward":
                yield Case(TraceDescriptor(shape, element), {"x": _values(shape, element, rng)})
            else:
                yield Case(TraceBackwardDescriptor(shape, element), {"dy": np.asarray(-1.25)})
        return
    for i, (shape, axes) in enumerate(SHAPES + ([] if op in ("amax", "amin") else EMPTY)):
        x = _values(shape, element, rng)
        if op in NEAR_ONE and element.is_float:
            x = 1 + x / max(8.0, _count(x, axes))
        if op == "all":
            x = np.where(rng.random(shape) < 0.5 / max(1, _count(x, axes)), np.zeros_like(x), np.abs(x) + 1)
        if op == "any":
            x = np.where(rng.random(shape) < 0.7 / max(1, _count(x, axes)), x, np.zeros_like(x))
        yield _case(op, direction, element, axes, bool(i % 2), x)
    few = rng.integers(0, 3, (6, 300))
    for axis in (0, 1):
        tied = _case(op, direction, element, (axis,), False, few.astype(bool) if element is Element.BOOL else few)
        tied.note, tied.exact_gradient = "ties", op not in ("amax", "amin")
        yield tied
    if element.is_float:
        x = rng.normal(0, 1, (6, 70))
        x[1, 3], x[2, 5], x[3, 7], x[4] = np.nan, np.inf, -np.inf, -np.inf
        for axis in (0, 1):
            special = _case(op, direction, element, (axis,), True, x)
            special.note, special.exact_gradient = "special values", False
            yield special


def _case(op: str, direction: str, element: Element, axes: tuple[int, ...], keepdim: bool, x: Array) -> Case:
    if direction == "forward":
        return Case(ReduceDescriptor(op, x.shape, axes, keepdim, element), {"x": x})
    desc = ReduceBackwardDescriptor(op, x.shape, axes, keepdim, element)
    dy = np.resize(np.array([0.5, -1.25, 3.0, 2.0, -0.75]), desc.signature()["dy"].shape)
    if op in ("sum", "mean"):
        return Case(desc, {"dy": dy})
    if op in ("nansum", "nanmean"):
        return Case(desc, {"dy": dy, "x": x})
    forward = Case(ReduceDescriptor(op, x.shape, axes, keepdim, element), {"x": x})
    return Case(desc, {"dy": dy, "x": x, "y": reference(forward)["y"].value})


def reference(case: Case) -> dict[str, Expected]:
    """Outputs from sums in extended precision."""
    desc = case.descriptor
    with np.errstate(all="ignore"):
        if isinstance(desc, TraceDescriptor):
            return {"y": _trace(case.tensors["x"], desc.element)}
        if isinstance(desc, TraceBackwardDescriptor):
            return {
                "dx": Expected(np.eye(largest(desc.input_shape[0]), largest(desc.input_shape[1])) * case.tensors["dy"])
            }
        if isinstance(desc, SumToDescriptor):
            return {"y": _sum_to(case.tensors["x"], desc)}
        if isinstance(desc, SumToBackwardDescriptor):
            return {"dx": Expected(np.broadcast_to(case.tensors["dy"], tuple(map(largest, desc.input_shape))))}
        if isinstance(desc, ReduceDescriptor):
            return {"y": _reduce(case.tensors["x"], desc)}
        assert isinstance(desc, ReduceBackwardDescriptor)
        return {"dx": _spread(case, desc)}


def _reduce(x: Array, desc: ReduceDescriptor) -> Expected:
    axes, keep, kind = desc.axes, desc.keepdim, desc.kind
    if kind in ("amax", "amin"):
        return Expected((np.max if kind == "amax" else np.min)(x, axis=axes, keepdims=keep))
    if kind in ("count_nonzero", "any", "all"):
        fold: Any = {"count_nonzero": np.sum, "any": np.any, "all": np.all}[kind]
        return Expected(np.asarray(fold(x != 0, axis=axes, keepdims=keep), desc.signature()["y"].element.numpy))
    if not desc.element.is_float:
        fold = np.sum if kind == "sum" else np.prod
        return Expected(fold(x.astype(np.int64), axis=axes, keepdims=keep))
    terms = _count(x, axes)
    wide = x.astype(np.longdouble)
    if kind == "prod":
        value = np.prod(wide, axis=axes, keepdims=keep)
        return _expected(value, np.abs(value) * np.sqrt(max(terms, 1)), terms)
    if kind == "logsumexp":
        return _expected(*_logsumexp(wide, axes, keep), terms)
    if kind in ("nansum", "nanmean"):
        wide = np.where(np.isnan(wide), np.longdouble(0), wide)
    total = np.sum(wide, axis=axes, keepdims=keep)
    size = np.sum(np.abs(wide), axis=axes, keepdims=keep)
    by: Any = np.longdouble(terms)
    if kind == "nanmean":
        by = np.sum(~np.isnan(x), axis=axes, keepdims=keep).astype(np.longdouble)
    if kind in ("sum", "nansum"):
        return _expected(total, size, terms)
    mean = _expected(total / by, size / by, terms)
    mean.reach = np.asarray(size, np.float64)
    return mean


def _expected(value: Any, magnitude: Any, terms: int) -> Expected:
    return Expected(np.asarray(value, np.float64), np.asarray(magnitude, np.float64), max(terms, 1))


def _logsumexp(x: Array, axes: tuple[int, ...] | None, keep: bool) -> tuple[Array, Array]:
    """The result, and what its error is in units of: that of x - max grows with it, weighted by the terms."""
    top = np.max(x, axis=axes, keepdims=True, initial=-np.inf)
    below = x - np.where(np.isfinite(top), top, 0)
    terms = np.exp(below)
    total = np.sum(terms, axis=axes, keepdims=True)
    spread = np.sum(np.where(terms > 0, terms * np.abs(below), 0), axis=axes, keepdims=True) / total
    value = np.where(np.isfinite(top), top, 0) + np.log(total)
    shape = np.sum(x, axis=axes, keepdims=keep).shape
    return value.reshape(shape), (np.abs(value) + spread + 1).reshape(shape)


def _trace(x: Array, element: Element) -> Expected:
    if not element.is_float:
        return Expected(np.trace(x.astype(np.int64)))
    terms = np.diagonal(x).astype(np.longdouble)
    return _expected(np.sum(terms), np.sum(np.abs(terms)), terms.size)


def _count(x: Array, axes: tuple[int, ...] | None) -> int:
    return int(np.prod([x.shape[a] for a in axes or ()], dtype=np.int64))


def _sum_to(x: Array, desc: SumToDescriptor) -> Expected:
    target = desc.target_shape
    lead = x.ndim - len(target)
    axes = tuple(i for i in range(x.ndim) if i < lead or (target[i - lead] == 1 and x.shape[i] != 1))
    wide = x.astype(np.longdouble)
    value, size = (np.sum(v, axis=axes, keepdims=True).reshape(target) for v in (wide, np.abs(wide)))
    return Expected(np.asarray(value, np.float64), np.asarray(size, np.float64), max(_count(x, axes), 1))


def _spread(case: Case, desc: ReduceBackwardDescriptor) -> Expected:
    shape = tuple(map(largest, desc.input_shape))
    kept = tuple(1 if i in (desc.axes or ()) else s for i, s in enumerate(shape))
    dy: Array = np.broadcast_to(case.tensors["dy"].reshape(kept), shape)
    if desc.kind == "sum":
        return Expected(dy)
    if desc.kind == "mean":
        return Expected(np.asarray(dy / _count(dy, desc.axes), np.float64))
    x = case.tensors["x"]
    if desc.kind in ("nansum", "nanmean"):
        numbers = ~np.isnan(x)
        count = np.sum(numbers, axis=desc.axes, keepdims=True) if desc.kind == "nanmean" else 1
        return Expected(np.asarray(np.where(numbers, dy / count, 0.0)))
    if desc.kind == "prod":
        value = dy * _others(x.astype(np.longdouble), desc.axes)
        return _expected(value, np.abs(value) * np.sqrt(max(_count(x, desc.axes), 1)), _count(x, desc.axes))
    y = case.tensors["y"].reshape(kept)
    if desc.kind == "logsumexp":
        # An infinite result is shared evenly by the elements that equal it.
        count = np.sum(x == y, axis=desc.axes, keepdims=True)
        shared = np.where(x == y, dy / count.astype(np.longdouble), 0)
        apart = np.where(np.isinf(y), 0, x - y).astype(np.longdouble)
        value = np.where(np.isinf(y), shared, dy * np.exp(apart))
        return _expected(value, np.abs(value) * (1 + np.abs(apart)), 1)
    equal = x == y
    count = np.sum(equal, axis=desc.axes, keepdims=True)
    return Expected(np.asarray(np.where(equal, dy / count, 0.0 / count)))


def _others(x: Array, axes: tuple[int, ...] | None) -> Array:
    """For each element the product of the others."""
    zeros = np.sum(x == 0, axis=axes, keepdims=True)
    rest = np.prod(np.where(x == 0, 1, x), axis=axes, keepdims=True)
    own = np.where(x == 0, rest, rest / np.where(x == 0, 1, x))
    return np.asarray(own * np.where(zeros > (x == 0), 0, 1))


def forward_of(case: Case) -> Case:
    """The forward case of a backward one."""
    d = case.descriptor
    assert isinstance(d, ReduceBackwardDescriptor | SumToBackwardDescriptor | TraceBackwardDescriptor)
    x = case.tensors["x"] if "x" in case.tensors else np.ones(tuple(map(largest, d.input_shape)))
    if isinstance(d, SumToBackwardDescriptor):
        return Case(SumToDescriptor(d.input_shape, d.target_shape, Element.F64), {"x": x})
    if isinstance(d, TraceBackwardDescriptor):
        return Case(TraceDescriptor(d.input_shape, Element.F64), {"x": x})
    return Case(ReduceDescriptor(d.kind, d.input_shape, d.axes, d.keepdim, Element.F64), {"x": x})
