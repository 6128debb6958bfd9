"""Reference of copies and fills."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from baracuda.elements import Element
from baracuda.ops.layout import CopyDescriptor, FillDescriptor
from baracuda.reference import Array, Case, Expected

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


def _values(element: Element, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
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
    for shape in SHAPES:
        if op == "copy":
            yield Case(CopyDescriptor(shape, element), {"x": _values(element, shape, rng)})
            continue
        values: list[float | int] = [0, 1, 7]
        if element.is_float:
            values = [0.0, -0.1, 1e30, np.inf, np.nan]
        elif element.is_integer:
            info = np.iinfo(element.numpy)
            values += [int(info.max), int(info.min)]
        for value in values:
            yield Case(FillDescriptor(shape, element), {}, {"value": value})


def reference(case: Case) -> dict[str, Expected]:
    """The same numbers."""
    desc = case.descriptor
    if isinstance(desc, CopyDescriptor):
        return {"y": Expected(np.asarray(case.tensors["x"]))}
    assert isinstance(desc, FillDescriptor)
    value = case.scalars["value"]
    if desc.element.is_float:
        return {"y": Expected(np.full(desc.shape, value, np.longdouble))}
    return {"y": Expected(np.full(desc.shape, value, desc.element.numpy))}
