"""Float64 reference of elements written and folded by index."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from baracuda.describe.elements import Element
from baracuda.ops.indexing.indexing_ref import indices, places
from baracuda.ops.indexing.scatter import (
    IndexAddDescriptor,
    IndexCopyDescriptor,
    IndexFillDescriptor,
    ScatterDescriptor,
    ScatterReduceDescriptor,
    ScatterReduction,
)
from baracuda.ops.layout.layout_ref import values
from baracuda.prove.reference import Array, Case, Expected

# shape of x, shape of index, axis, element of index
_SCATTERS: list[tuple[tuple[int, ...], tuple[int, ...], int, Element]] = [
    ((5,), (3,), 0, Element.I64),
    ((), (), 0, Element.I64),
    ((4, 6), (4, 9), 1, Element.I32),
    ((4, 6), (3, 5), 0, Element.U32),
    ((3, 40, 33), (2, 70, 30), 1, Element.I64),
    ((2, 3, 2, 1, 2, 3, 2, 4), (2, 3, 1, 1, 2, 7, 2, 3), 5, Element.I64),
    ((300, 70), (1, 70), 0, Element.I64),
    ((2, 5), (2, 3000), -1, Element.I32),
    ((3, 0), (3, 0), 0, Element.I64),
    ((3, 4), (0, 4), 1, Element.I64),
]
_SLICES: list[tuple[tuple[int, ...], tuple[int, ...], int, Element]] = [
    ((5,), (3,), 0, Element.I64),
    ((), (1,), 0, Element.I64),
    ((4, 6), (), 1, Element.I32),
    ((40, 70), (90,), 0, Element.U32),
    ((40, 70), (33,), 1, Element.I64),
    ((2, 3, 2, 1, 2, 3, 2, 4), (4,), 5, Element.I64),
    ((50, 4, 16), (300,), 0, Element.I64),
    ((3, 2), (2600,), 0, Element.I64),
    ((3, 0), (2,), 0, Element.I64),
    ((3, 4), (0,), 1, Element.I64),
]


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Ranks 0 to 8, every index element and mode, with and without x itself, many duplicates, empty tensors."""
    del direction

    def draw(shape: tuple[int, ...]) -> Array:
        # Small numbers, so that long products and sums stay in range; integers wrap anyway.
        return (
            rng.uniform(0.5, 1.5, shape) * rng.choice([-1, 1], shape)
            if element.is_float
            else values(element, shape, rng)
        )

    if op in ("scatter", "scatter_reduce"):
        for i, (shape, index, axis, e) in enumerate(_SCATTERS):
            tensors = {"x": draw(shape), "index": indices(rng, _limit(shape, axis), index, False)}
            if op == "scatter":
                yield Case(ScatterDescriptor(shape, index, axis, element, e), tensors | {"source": draw(index)})
                value = Case(ScatterDescriptor(shape, index, axis, element, e, False), tensors, {"value": i % 2})
                yield value
                continue
            for mode in ScatterReduction:
                if mode is ScatterReduction.MEAN and element is Element.BOOL:
                    continue
                for self_too in (True, False):
                    desc = ScatterReduceDescriptor(shape, index, axis, element, e, mode, self_too)
                    yield Case(desc, tensors | {"source": draw(index)})
        return
    for i, (shape, index, axis, e) in enumerate(_SLICES):
        wrap = op == "index_fill" and e is not Element.U32
        tensors = {"x": draw(shape), "index": indices(rng, _limit(shape, axis), index, wrap)}
        if op == "index_fill":
            yield Case(IndexFillDescriptor(shape, index, axis, element, e), tensors, {"value": i % 2})
        elif op == "index_copy":
            made = IndexCopyDescriptor(shape, index, axis, element, e)
            yield Case(made, tensors | {"source": draw(made.slices_shape())})  # type: ignore[arg-type]
        else:
            add = IndexAddDescriptor(shape, index, axis, element, e)
            alpha = (1, 3, -0.3)[i % 3] if element.is_float else (1, 3)[i % 2]
            yield Case(add, tensors | {"source": draw(add.slices_shape())}, {"alpha": alpha})  # type: ignore[arg-type]


def _limit(shape: tuple[int, ...], axis: int) -> int:
    return shape[axis] if shape else 1


def reference(case: Case) -> dict[str, Expected]:
    """Element by element, in the order of positions."""
    desc: Any = case.descriptor
    x, index = np.asarray(case.tensors["x"]), np.asarray(case.tensors["index"]).astype(np.int64)
    vector = isinstance(desc, (IndexCopyDescriptor, IndexAddDescriptor, IndexFillDescriptor))
    at = places(desc.shape, index, desc.axis, vector)
    shape = desc.index_shape if not (vector and desc.shape) else desc.slices_shape()
    target = np.arange(x.size).reshape(x.shape)[at]
    target = np.broadcast_to(target.reshape(shape) if desc.shape else target, shape)
    order = np.arange(target.size)
    if desc.shape:  # positions along the axis come one after the other
        order = np.moveaxis(order.reshape(shape), desc.axis, 0).reshape(-1)
    target = target.reshape(-1)[order]
    if "source" in case.tensors:
        source = np.asarray(case.tensors["source"]).reshape(-1)[order]
    else:
        source = np.full(target.shape, case.scalars["value"]).astype(x.dtype)
    if isinstance(desc, ScatterReduceDescriptor):
        return {"y": _folded(x, target, source, desc.mode, desc.include_self)}
    if isinstance(desc, IndexAddDescriptor):
        alpha = case.scalars["alpha"]
        scaled = source * alpha if x.dtype.kind == "f" else source.astype(object) * alpha if x.dtype != bool else source
        return {"y": _folded(x, target, scaled, ScatterReduction.SUM, True)}
    y = x.copy().reshape(-1)
    for place, value in zip(target, source, strict=True):
        y[place] = value
    return {"y": Expected(y.reshape(x.shape))}


def _folded(x: Array, target: Array, source: Array, mode: ScatterReduction, include_self: bool) -> Expected:
    groups: dict[int, list[Any]] = {}
    for place, value in zip(target.tolist(), source, strict=True):
        groups.setdefault(place, []).append(value)
    floats = x.dtype.kind == "f"
    y = x.reshape(-1).astype(np.longdouble if floats else object)
    size = np.abs(y) if floats else None
    most = 1
    for place, terms in groups.items():
        numbers: list[Any] = [np.longdouble(t) if floats else int(t) for t in terms]
        if include_self:
            numbers.insert(0, y[place] if floats else int(y[place]))
        y[place] = _fold(numbers, mode, x.dtype.kind)
        most = max(most, len(numbers))
        if size is not None:
            spread = sum(abs(n) for n in numbers)
            size[place] = {"sum": spread, "mean": spread / len(numbers)}.get(mode.value, abs(y[place]))
    if floats:
        return Expected(y.reshape(x.shape), np.asarray(size, np.float64).reshape(x.shape))
    if x.dtype == bool:
        return Expected(y.astype(bool).reshape(x.shape))
    bits = 8 * x.dtype.itemsize
    wrapped = [int(v) % 2**bits for v in y]
    return Expected(np.array(wrapped, f"u{x.dtype.itemsize}").view(x.dtype).reshape(x.shape))


def _fold(numbers: list[Any], mode: ScatterReduction, kind: str) -> Any:
    if mode is ScatterReduction.AMAX:
        return max(numbers)
    if mode is ScatterReduction.AMIN:
        return min(numbers)
    if mode is ScatterReduction.PROD:
        made: Any = 1
        for n in numbers:
            made = made * n
        return made
    total = sum(numbers[1:], numbers[0])
    if mode is ScatterReduction.SUM or kind == "f":
        return total if mode is ScatterReduction.SUM else total / len(numbers)
    wrapped = total % 2**64  # kernels add up in 64 bits
    return (wrapped - 2**64 if kind == "i" and wrapped >= 2**63 else wrapped) // len(numbers)
