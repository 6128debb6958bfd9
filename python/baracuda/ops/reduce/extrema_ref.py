"""Reference of extrema with positions and of aminmax: comparisons alone, so NumPy is exact."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from baracuda.describe.dims import largest
from baracuda.describe.elements import Element
from baracuda.ops.reduce.extrema import (
    ArgReduceDescriptor,
    IndexedExtremumBackwardDescriptor,
    IndexedExtremumDescriptor,
    MinMaxBackwardDescriptor,
    MinMaxDescriptor,
)
from baracuda.ops.reduce.reduce_ref import SHAPES, _values
from baracuda.prove.reference import Array, Case, Expected

LINES = [(shape, axes[0] if axes else 0) for shape, axes in SHAPES if len(axes) < 2]


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Ranks 0 to 8, any axes, long axes, ties, NaN and infinities."""
    for i, (shape, axes) in enumerate(SHAPES):
        if op in ("max", "min") and len(axes) > 1:
            continue
        yield _case(op, direction, element, axes, bool(i % 2), _values(shape, element, rng))
    few = rng.integers(0, 3, (6, 300))
    for axis in (0, 1):
        tied = _case(op, direction, element, (axis,), False, few.astype(bool) if element is Element.BOOL else few)
        tied.note, tied.exact_gradient = "ties", False
        yield tied
    if element.is_float:
        x = rng.normal(0, 1, (6, 70))
        x[1, 3], x[1, 40], x[2, 5], x[3, 7], x[4] = np.nan, np.nan, np.inf, -np.inf, -np.inf
        for axis in (0, 1):
            special = _case(op, direction, element, (axis,), True, x)
            special.note, special.exact_gradient = "special values", False
            yield special


def _case(op: str, direction: str, element: Element, axes: tuple[int, ...], keepdim: bool, x: Array) -> Case:
    index = Element.I32 if keepdim else Element.I64
    axis = axes[0] if len(axes) == 1 else None
    if op in ("argmax", "argmin"):
        return Case(ArgReduceDescriptor(op, x.shape, axis, keepdim, element, index), {"x": x})
    if op in ("max", "min"):
        line = axis if axis is not None else (0 if x.ndim else -1)
        forward = Case(IndexedExtremumDescriptor(op, x.shape, line, keepdim, element, index), {"x": x})
        if direction == "forward":
            return forward
        found = reference(forward)["indices"].value
        dvalues = np.resize(np.array([0.5, -1.25, 3.0, 2.0]), found.shape)
        desc = IndexedExtremumBackwardDescriptor(op, x.shape, line, keepdim, element, index)
        return Case(desc, {"dvalues": dvalues, "indices": found})
    if direction == "forward":
        return Case(MinMaxDescriptor(x.shape, axes, keepdim, element), {"x": x})
    low, high = (f(x, axis=axes, keepdims=keepdim) for f in (np.min, np.max))
    dmin, dmax = (np.resize(np.array(v), low.shape) for v in ([0.5, -1.25, 3.0], [2.0, -0.75]))
    given = {"dmin": dmin, "dmax": dmax, "x": x, "min": low, "max": high}
    return Case(MinMaxBackwardDescriptor(x.shape, axes, keepdim, element), given)


def reference(case: Case) -> dict[str, Expected]:
    """Outputs; positions by NumPy's rule, which is torch's: the first, and NaN before all."""
    desc = case.descriptor
    with np.errstate(all="ignore"):
        if isinstance(desc, ArgReduceDescriptor):
            find = np.argmax if desc.kind == "argmax" else np.argmin
            return {"y": Expected(find(case.tensors["x"], axis=desc.axis, keepdims=desc.keepdim))}
        if isinstance(desc, IndexedExtremumDescriptor):
            return _indexed(case.tensors["x"], desc)
        if isinstance(desc, IndexedExtremumBackwardDescriptor):
            return {"dx": Expected(_placed(case, desc))}
        if isinstance(desc, MinMaxDescriptor):
            x = case.tensors["x"]
            how: dict[str, Any] = {"axis": desc.axes, "keepdims": desc.keepdim}
            return {"min": Expected(np.min(x, **how)), "max": Expected(np.max(x, **how))}
        assert isinstance(desc, MinMaxBackwardDescriptor)
        return {"dx": Expected(_shared(case, desc))}


def _indexed(x: Array, desc: IndexedExtremumDescriptor) -> dict[str, Expected]:
    if x.ndim == 0:
        return {"values": Expected(x), "indices": Expected(np.zeros((), np.int64))}
    find = np.argmax if desc.kind == "max" else np.argmin
    at = find(x, axis=desc.axis, keepdims=True)
    found, shape = np.take_along_axis(x, at, desc.axis), desc.signature()["values"].shape
    return {"values": Expected(found.reshape(shape)), "indices": Expected(at.reshape(shape))}


def _placed(case: Case, desc: IndexedExtremumBackwardDescriptor) -> Array:
    shape = tuple(map(largest, desc.input_shape))
    if not shape:
        return np.asarray(case.tensors["dvalues"])
    kept = tuple(1 if i == desc.axis else s for i, s in enumerate(shape))
    dx = np.zeros(shape)
    np.put_along_axis(dx, case.tensors["indices"].reshape(kept), case.tensors["dvalues"].reshape(kept), desc.axis)
    return dx


def _shared(case: Case, desc: MinMaxBackwardDescriptor) -> Array:
    shape = tuple(map(largest, desc.input_shape))
    kept = tuple(1 if i in (desc.axes or ()) else s for i, s in enumerate(shape))
    total = np.zeros(shape)
    for name in ("min", "max"):
        equal = case.tensors["x"] == case.tensors[name].reshape(kept)
        count = np.sum(equal, axis=desc.axes, keepdims=True)
        total = total + np.where(equal, case.tensors["d" + name].reshape(kept) / count, 0.0 / count)
    return total


def forward_of(case: Case) -> Case:
    """The forward case of a backward one."""
    d = case.descriptor
    assert isinstance(d, MinMaxBackwardDescriptor | IndexedExtremumBackwardDescriptor)
    if isinstance(d, MinMaxBackwardDescriptor):
        return Case(MinMaxDescriptor(d.input_shape, d.axes, d.keepdim, Element.F64), {"x": case.tensors["x"]})
    # Any x whose extrema lie at the given positions.
    shape = tuple(map(largest, d.input_shape))
    x = np.sin(np.arange(np.prod(shape, dtype=np.int64))).reshape(shape)
    peaks = IndexedExtremumBackwardDescriptor(d.kind, d.input_shape, d.axis, d.keepdim, Element.F64)
    given = {**case.tensors, "dvalues": np.full(case.tensors["dvalues"].shape, 10.0 if d.kind == "max" else -10.0)}
    forward = IndexedExtremumDescriptor(d.kind, d.input_shape, d.axis, d.keepdim, Element.F64)
    return Case(forward, {"x": x + _placed(Case(peaks, given), peaks)})
