"""Reference of sparsemax and entmax-1.5: the exact thresholds from sorted rows, in extended precision."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from baracuda.describe.elements import Element
from baracuda.ops.softmax.softmax_ref import SHAPES
from baracuda.ops.softmax.sparse import SparseSoftmaxBackwardDescriptor, SparseSoftmaxDescriptor
from baracuda.prove.reference import Array, Case, Expected


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Softmax's shapes; few and many values above the threshold, ties; rows of infinities, NaN."""
    for i, (shape, axis) in enumerate(SHAPES):
        x = rng.normal(0, (3, 0.3, 0.01)[i % 3], shape)
        yield _case(op, direction, element, axis, np.round(x * 8) / 8 if i % 4 == 3 else x, rng)
    x = rng.normal(0, 1, (6, 70))
    x[0, :], x[1, 3], x[2, 5], x[3, ::2], x[4] = -np.inf, np.nan, np.inf, -np.inf, np.linspace(-300, 300, 70)
    for axis in (0, 1):
        special = _case(op, direction, element, axis, x, rng)
        special.note, special.exact_gradient = "special values", False
        yield special


def _case(op: str, direction: str, element: Element, axis: int, x: Array, rng: np.random.Generator) -> Case:
    forward = Case(SparseSoftmaxDescriptor(op, x.shape, axis, element), {"x": x})
    if direction == "forward":
        return forward
    y = reference(forward)["y"].value
    return Case(SparseSoftmaxBackwardDescriptor(op, x.shape, axis, element), {"dy": rng.normal(size=x.shape), "y": y})


def _threshold(z: Array, squared: bool) -> Any:
    """The threshold of one row, whose largest is 0: the support is the longest prefix of the sorted row that lies above its own."""
    ordered = np.sort(z)[::-1]
    count = np.arange(1, z.size + 1)
    with np.errstate(invalid="ignore"):
        sums = np.cumsum(ordered)
        if squared:
            mean = sums / count
            spread = np.cumsum(ordered**2) - mean * sums
            t = mean - np.sqrt(np.maximum((1 - spread) / count, 0))
            support = int((ordered >= t).cumprod().sum())
        else:
            t = (sums - 1) / count
            support = int((ordered > t).cumprod().sum())
    return t[max(support, 1) - 1]


def reference(case: Case) -> dict[str, Expected]:
    """Outputs in float64."""
    desc: Any = case.descriptor
    squared = desc.kind == "entmax15"
    shape, axis = desc.shape or (1,), desc.axis if desc.shape else 0
    wide = {k: np.asarray(v, np.longdouble).reshape(shape) for k, v in case.tensors.items()}
    terms = max(int(shape[axis]), 1)
    with np.errstate(all="ignore"):
        if isinstance(desc, SparseSoftmaxDescriptor):
            value = np.zeros(shape)
            rows, to = np.moveaxis(wide["x"], axis, -1), np.moveaxis(value, axis, -1)
            for i in np.ndindex(rows.shape[:-1] if rows.size else (0,)):
                z = (rows[i] - rows[i].max()) / (2 if squared else 1)
                above = np.full(z.shape, np.nan) if np.isnan(z).any() else np.maximum(z - _threshold(z, squared), 0)
                to[i] = above**2 if squared else above
            return {"y": Expected(value.reshape(desc.shape), np.ones(desc.shape), terms)}
        dy, y = wide["dy"], wide["y"]
        s = np.sqrt(y) if squared else np.where(y > 0, 1, y * 0)
        total = s.sum(axis, keepdims=True)
        value = s * (dy - (s * dy).sum(axis, keepdims=True) / total)
        size = (s * np.abs(dy)).sum(axis, keepdims=True)
        magnitude, reach = s * (np.abs(dy) + size / total), np.broadcast_to(np.abs(dy).sum(axis, keepdims=True), shape)
    found, size, reach = (np.asarray(v, np.float64).reshape(desc.shape) for v in (value, magnitude, reach))
    return {"dx": Expected(found, size, terms, reach)}


def forward_of(case: Case) -> Case:
    """The forward case of a backward one: an x with this result, whose threshold is 0."""
    d: Any = case.descriptor
    y = case.tensors["y"]
    x = np.where(y > 0, 2 * np.sqrt(y) if d.kind == "entmax15" else y, -1.0)
    return Case(SparseSoftmaxDescriptor(d.kind, d.shape, d.axis, Element.F64), {"x": x})
