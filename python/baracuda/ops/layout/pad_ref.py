"""Reference of padding and repeating."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from baracuda.describe.elements import Element
from baracuda.ops.layout.layout_ref import values
from baracuda.ops.layout.pad import (
    PadBackwardDescriptor,
    PadDescriptor,
    PadMode,
    RepeatBackwardDescriptor,
    RepeatDescriptor,
)
from baracuda.prove.reference import Array, Case, Expected

# shape, low, high; those that all modes take come first
_PADS: list[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]] = [
    ((), (), ()),
    ((5,), (2,), (4,)),
    ((5,), (-1,), (2,)),
    ((6,), (3,), (-2,)),
    ((4, 7), (1, -2), (0, 3)),
    ((3, 2, 30), (0, 1, 20), (2, 1, 29)),
    ((2, 3, 2, 1, 2, 3, 2, 4), (0, 1, 0, 0, 1, 2, 0, 3), (1, 0, 0, 0, 0, 1, 1, 2)),
    ((20, 1100), (2, 5), (3, 1090)),
    ((0, 4), (0, 1), (0, 2)),
    ((4, 3), (-2, 0), (-2, 2)),
]
_CONSTANT = [((5,), (7,), (12,)), ((0, 3), (1, 1), (2, 0)), ((1, 4), (3, 0), (0, -4)), ((3,), (-3,), (5,))]
_REPLICATE = [((5,), (7,), (12,)), ((1, 3), (4, 0), (70, 9)), ((1,), (2100,), (1,))]
_REPEATS: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((), (3,)),
    ((), ()),
    ((5,), (4,)),
    ((4, 3), (2, 3)),
    ((4, 3), (2, 1, 5)),
    ((1, 33), (40, 1)),
    ((3, 0), (2, 2)),
    ((3, 2), (0, 2)),
    ((2, 1, 2, 2, 1, 2, 2, 3), (2, 3, 1, 2, 1, 2, 2, 2)),
    ((30, 50), (3, 4)),
    ((1100,), (3,)),
]


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Ranks 0 to 8, cut, padded and empty axes, all modes; a fill with zero, a whole and a fractional number."""
    for desc in _descriptors(op, direction, element):
        if isinstance(desc, (PadBackwardDescriptor, RepeatBackwardDescriptor)):
            yield Case(desc, {"dy": rng.normal(size=desc.signature()["dy"].shape)})
            continue
        scalars: dict[str, Any] = {}
        if isinstance(desc, PadDescriptor) and desc.mode is PadMode.CONSTANT:
            scalars["value"] = (0, 1, -2.5)[len(desc.shape) % 3] if element.is_float else len(desc.shape) % 2
        yield Case(desc, {"x": values(element, desc.signature()["x"].shape, rng)}, scalars)


def _descriptors(op: str, direction: str, element: Element) -> Iterator[Any]:
    if op == "repeat":
        for shape, repeats in _REPEATS:
            for each in (False, True):
                cls = RepeatDescriptor if direction == "forward" else RepeatBackwardDescriptor
                yield cls(shape, repeats, each, element)
        return
    for mode in PadMode:
        more = {PadMode.CONSTANT: _CONSTANT, PadMode.REPLICATE: _REPLICATE}.get(mode, [])
        for shape, low, high in [*_PADS, *more]:
            pad = PadDescriptor if direction == "forward" else PadBackwardDescriptor
            yield pad(shape, low, high, mode, element)


def _sources(given: Any) -> list[Array]:
    """For each axis of y the position in x that its elements come from; -1: none."""
    desc: Any = given
    if isinstance(given, (RepeatDescriptor, RepeatBackwardDescriptor)):
        sizes = (1,) * (len(desc.repeats) - len(desc.shape)) + desc.shape
        make = np.repeat if desc.each else np.tile
        return [make(np.arange(n), k) for n, k in zip(sizes, desc.repeats, strict=True)]
    found = []
    for n, low, high in zip(desc.shape, desc.low, desc.high, strict=True):
        kept = np.arange(max(-low, 0), n + min(high, 0))
        widths = (max(low, 0), max(high, 0))
        if desc.mode is PadMode.CONSTANT:
            found.append(np.pad(kept, widths, constant_values=-1))
        elif not len(kept):
            found.append(kept)
        else:
            name: Any = {PadMode.REFLECT: "reflect", PadMode.REPLICATE: "edge", PadMode.CIRCULAR: "wrap"}[desc.mode]
            found.append(np.pad(kept, widths, mode=name))
    return found


def reference(case: Case) -> dict[str, Expected]:
    """Results by index arithmetic; dx by adding dy up where it came from."""
    desc: Any = case.descriptor
    sources = _sources(desc)
    inside = np.ones((), bool)
    for axis, source in enumerate(sources):
        inside = inside & (source >= 0).reshape([-1 if i == axis else 1 for i in range(len(sources))])
    at = np.ix_(*[np.maximum(s, 0) for s in sources]) if sources else ()
    if "x" in case.tensors:
        x = np.asarray(case.tensors["x"]).reshape(_wide(desc, len(sources)))
        fill = np.asarray(case.scalars.get("value", 0)).astype(x.dtype)
        y = np.full([len(s) for s in sources], fill, x.dtype)
        if x.size and y.size:
            y = np.where(inside, x[at], fill)
        return {"y": Expected(y)}
    dy = np.asarray(case.tensors["dy"])
    sums = []
    for term in (dy, np.abs(dy)):
        dx = np.zeros(_wide(desc, len(sources)), np.longdouble)
        if dx.size:
            np.add.at(dx, at, np.where(inside, term, 0.0))
        sums.append(dx.reshape(desc.shape))
    return {"dx": Expected(sums[0], sums[1])}


def _wide(desc: Any, rank: int) -> tuple[int, ...]:
    return (1,) * (rank - len(desc.shape)) + tuple(desc.shape)


def forward_of(case: Case) -> Case:
    """The forward case of a gradient."""
    desc: Any = case.descriptor
    x = np.random.default_rng(3).normal(size=desc.shape)
    if isinstance(desc, RepeatBackwardDescriptor):
        return Case(RepeatDescriptor(desc.shape, desc.repeats, desc.each, desc.element), {"x": x})
    scalars = {"value": 0.0} if desc.mode is PadMode.CONSTANT else {}
    return Case(PadDescriptor(desc.shape, desc.low, desc.high, desc.mode, desc.element), {"x": x}, scalars)
