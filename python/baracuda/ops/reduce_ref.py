"""Reference of the reductions: NumPy in extended precision."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from baracuda.dims import largest
from baracuda.elements import Element
from baracuda.ops.reduce import (
    ArgReduceDescriptor,
    ReduceBackwardDescriptor,
    ReduceDescriptor,
    SumToBackwardDescriptor,
    SumToDescriptor,
)
from baracuda.reference import Array, Case, Expected

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


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Ranks 0 to 8, any axes, sizes 0 and 1, long axes, ties, NaN and infinities."""
    if op == "sum_to":
        for shape, target in SUM_TO:
            if direction == "forward":
                yield Case(SumToDescriptor(shape, target, element), {"x": _values(shape, element, rng)})
            else:
                yield Case(SumToBackwardDescriptor(shape, target, element), {"dy": _values(target, element, rng)})
        return
    for i, (shape, axes) in enumerate(SHAPES + (EMPTY if op in ("sum", "mean") else [])):
        yield _case(op, direction, element, axes, bool(i % 2), _values(shape, element, rng))
    few = rng.integers(0, 3, (6, 300))
    for axis in (0, 1):
        tied = _case(op, direction, element, (axis,), False, few.astype(bool) if element is Element.BOOL else few)
        tied.note, tied.exact_gradient = "ties", op in ("sum", "mean")
        yield tied
    if element.is_float:
        x = rng.normal(0, 1, (6, 70))
        x[1, 3], x[2, 5], x[3, 7], x[4] = np.nan, np.inf, -np.inf, -np.inf
        for axis in (0, 1):
            special = _case(op, direction, element, (axis,), True, x)
            special.note, special.exact_gradient = "special values", False
            yield special


def _case(op: str, direction: str, element: Element, axes: tuple[int, ...], keepdim: bool, x: Array) -> Case:
    if op in ("argmax", "argmin"):
        index = Element.I32 if keepdim else Element.I64
        axis = axes[0] if len(axes) == 1 else None
        return Case(ArgReduceDescriptor(op, x.shape, axis, keepdim, element, index), {"x": x})
    if direction == "forward":
        return Case(ReduceDescriptor(op, x.shape, axes, keepdim, element), {"x": x})
    desc = ReduceBackwardDescriptor(op, x.shape, axes, keepdim, element)
    dy = np.resize(np.array([0.5, -1.25, 3.0, 2.0, -0.75]), desc.signature()["dy"].shape)
    if op in ("sum", "mean"):
        return Case(desc, {"dy": dy})
    return Case(desc, {"dy": dy, "x": x, "y": (np.max if op == "amax" else np.min)(x, axis=axes, keepdims=keepdim)})


def reference(case: Case) -> dict[str, Expected]:
    """Outputs from sums in extended precision."""
    desc = case.descriptor
    with np.errstate(all="ignore"):
        if isinstance(desc, ArgReduceDescriptor):
            find = np.argmax if desc.kind == "argmax" else np.argmin
            return {"y": Expected(find(case.tensors["x"], axis=desc.axis, keepdims=desc.keepdim))}
        if isinstance(desc, SumToDescriptor):
            return {"y": _sum_to(case.tensors["x"], desc)}
        if isinstance(desc, SumToBackwardDescriptor):
            return {"dx": Expected(np.broadcast_to(case.tensors["dy"], tuple(map(largest, desc.input_shape))))}
        if isinstance(desc, ReduceDescriptor):
            return {"y": _reduce(case.tensors["x"], desc)}
        assert isinstance(desc, ReduceBackwardDescriptor)
        return {"dx": Expected(_spread(case, desc))}


def _reduce(x: Array, desc: ReduceDescriptor) -> Expected:
    axes, keep = desc.axes, desc.keepdim
    if desc.kind in ("amax", "amin"):
        return Expected((np.max if desc.kind == "amax" else np.min)(x, axis=axes, keepdims=keep))
    if not desc.element.is_float:
        return Expected(np.sum(x.astype(np.int64), axis=axes, keepdims=keep))
    terms = _count(x, axes)
    wide = x.astype(np.longdouble)
    scale = np.longdouble(1) if desc.kind == "sum" else np.longdouble(1) / np.longdouble(terms)
    total = np.sum(wide, axis=axes, keepdims=keep)
    value = total if desc.kind == "sum" else total / np.longdouble(terms)
    size = np.sum(np.abs(wide), axis=axes, keepdims=keep) * scale
    return Expected(np.asarray(value, np.float64), np.asarray(size, np.float64), max(terms, 1))


def _count(x: Array, axes: tuple[int, ...] | None) -> int:
    return int(np.prod([x.shape[a] for a in axes or ()], dtype=np.int64))


def _sum_to(x: Array, desc: SumToDescriptor) -> Expected:
    target = desc.target_shape
    lead = x.ndim - len(target)
    axes = tuple(i for i in range(x.ndim) if i < lead or (target[i - lead] == 1 and x.shape[i] != 1))
    wide = x.astype(np.longdouble)
    value, size = (np.sum(v, axis=axes, keepdims=True).reshape(target) for v in (wide, np.abs(wide)))
    return Expected(np.asarray(value, np.float64), np.asarray(size, np.float64), max(_count(x, axes), 1))


def _spread(case: Case, desc: ReduceBackwardDescriptor) -> Array:
    shape = tuple(map(largest, desc.input_shape))
    kept = tuple(1 if i in (desc.axes or ()) else s for i, s in enumerate(shape))
    dy: Array = np.broadcast_to(case.tensors["dy"].reshape(kept), shape)
    if desc.kind == "sum":
        return dy
    if desc.kind == "mean":
        return np.asarray(dy / _count(dy, desc.axes), np.float64)
    equal = case.tensors["x"] == case.tensors["y"].reshape(kept)
    count = np.sum(equal, axis=desc.axes, keepdims=True)
    return np.asarray(np.where(equal, dy / count, 0.0 / count))


def forward_of(case: Case) -> Case:
    """The forward case of a backward one."""
    d = case.descriptor
    if isinstance(d, SumToBackwardDescriptor):
        forward = SumToDescriptor(d.input_shape, d.target_shape, Element.F64)
        return Case(forward, {"x": np.ones(tuple(map(largest, d.input_shape)))})
    assert isinstance(d, ReduceBackwardDescriptor)
    x = case.tensors["x"] if "x" in case.tensors else np.ones(tuple(map(largest, d.input_shape)))
    return Case(ReduceDescriptor(d.kind, d.input_shape, d.axes, d.keepdim, Element.F64), {"x": x})
