"""Reference of copies, fills and sequences."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from baracuda.describe.elements import Element
from baracuda.ops.layout.layout import (
    ArangeDescriptor,
    CopyDescriptor,
    EyeDescriptor,
    FillDescriptor,
    LinspaceDescriptor,
)
from baracuda.prove.reference import Array, Case, Expected

SHAPES: list[tuple[int, ...]] = [
    (),
    (1,),
    (0,),
    (3, 0, 2),
    (17,),
    (5, 33),
    (70, 129),
    (3, 40, 50),
    (6, 5, 4, 20),
    (2, 3, 1, 2, 4, 1, 3, 2),
    (4097,),
    (2, 1500),
]


def values(element: Element, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Values that use the whole range of an element."""
    if element in (Element.C64, Element.C128):
        return rng.normal(size=shape) + 1j * rng.normal(size=shape)
    if element is Element.BOOL:
        return rng.integers(0, 2, shape).astype(bool)
    if element.is_integer:
        info = np.iinfo(element.numpy)
        return rng.integers(info.min, info.max, shape, dtype=element.numpy, endpoint=True)
    return rng.normal(0, 4, shape)


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Ranks 0 to 8 and sizes around the tiles' own; fills with zero, small, fractional and large values."""
    if op in ("arange", "linspace", "eye"):
        yield from _sequences(op, element)
        return
    for shape in SHAPES:
        if op == "copy":
            yield Case(CopyDescriptor(shape, element), {"x": values(element, shape, rng)})
            continue
        numbers: list[float | int] = [0, 1, 7]
        if element.is_float:
            numbers = [0.0, -0.1, 1e30, np.inf, np.nan]
        elif element.is_integer:
            info = np.iinfo(element.numpy)
            numbers += [int(info.max), int(info.min)]
        for value in numbers:
            yield Case(FillDescriptor(shape, element), {}, {"value": value})


def _sequences(op: str, element: Element) -> Iterator[Case]:
    if op == "eye":
        for rows, columns in ((0, 3), (1, 1), (5, 3), (3, 5), (70, 70)):
            yield Case(EyeDescriptor((rows, columns), element), {})
        return
    numbers: list[tuple[float, float]] = [(0, 1), (-3, 2), (100, -3)]
    if element.is_float:
        numbers += [(0.1, 0.7), (-2.5, 1e-3)]
    for start, other in numbers:
        if op == "linspace":
            for size in (0, 1, 2, 5, 1030, 70000):
                yield Case(LinspaceDescriptor(size, element), {}, {"start": start, "end": other})
            continue
        for shape in SHAPES if element is not Element.F16 else SHAPES[:6]:
            yield Case(ArangeDescriptor(shape, element), {}, {"start": start, "step": other})


def reference(case: Case) -> dict[str, Expected]:
    """The same numbers."""
    desc = case.descriptor
    if isinstance(desc, CopyDescriptor):
        return {"y": Expected(np.asarray(case.tensors["x"]))}
    if isinstance(desc, EyeDescriptor):
        return {"y": Expected(np.eye(*desc.signature()["y"].shape))}
    if isinstance(desc, (ArangeDescriptor, LinspaceDescriptor)):
        return {"y": _sequence(desc, case.scalars)}
    assert isinstance(desc, FillDescriptor)
    value = case.scalars["value"]
    if desc.element.is_float:
        return {"y": Expected(np.full(desc.shape, value, np.longdouble))}
    return {"y": Expected(np.full(desc.shape, value, desc.element.numpy))}


def _sequence(desc: ArangeDescriptor | LinspaceDescriptor, numbers: dict[str, float | int]) -> Expected:
    shape = desc.signature()["y"].shape
    i, first = np.arange(int(np.prod(shape))).reshape(shape), numbers["start"]
    if not desc.element.is_float:
        with np.errstate(over="ignore"):
            return Expected((first + i * numbers["step"]).astype(desc.element.numpy))
    exact = i.astype(np.longdouble)
    if isinstance(desc, ArangeDescriptor):
        way = exact * np.longdouble(numbers["step"])
    else:
        way = exact * ((np.longdouble(numbers["end"]) - first) / max(i.size - 1, 1))
    ends = abs(first) + np.abs(way) if isinstance(desc, ArangeDescriptor) else abs(first) + abs(numbers["end"])
    return Expected((first + way).astype(np.float64), np.broadcast_to(np.asarray(ends, np.float64), shape), 2)
