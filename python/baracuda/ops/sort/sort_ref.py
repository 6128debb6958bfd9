"""Reference of sorting: NumPy's stable sort of keys in which every NaN is the same."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from baracuda.describe.elements import Element
from baracuda.ops.layout.layout_ref import values
from baracuda.ops.sort.sort import SortDescriptor
from baracuda.prove.reference import Array, Case, Expected

# Shapes with the axis: short lines of each way of sorting, and long ones, which threads share.
SHAPES: list[tuple[tuple[int, ...], int]] = [
    ((), 0), ((1,), 0), ((17,), 0), ((5, 7), 1), ((70, 3), 0), ((4, 60, 6), 1), ((3, 300), 1), ((2, 2500), -1),
    ((2, 3, 1, 2, 3, 2, 1, 4), 4), ((9, 130), 0), ((3, 5000), 1), ((65600,), 0), ((2, 65537), 1),
    ((0, 5), 0), ((5, 0), 0), ((1, 6), 0),
]  # fmt: skip


def special(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Few values, so that they tie: NaN, infinities and zeros of both signs among them."""
    return rng.choice(np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 6e-8]), shape)


def inputs(element: Element, rng: np.random.Generator) -> Iterator[tuple[Array, int, str]]:
    """Values with the axis, and what is special about them."""
    for shape, axis in SHAPES:
        yield values(element, shape, rng), axis, ""
    for shape, axis in (((6, 40), 1), ((33, 7), 0), ((65541,), 0)):
        if element.is_float:
            yield special(rng, shape), axis, "special values"
        else:
            yield rng.integers(0, 2 if element is Element.BOOL else 5, shape), axis, "ties"
    yield np.zeros((1, 65536), bool if element is Element.BOOL else np.int8), 1, "all the same"
    if not element.is_float and element is not Element.BOOL:
        yield np.sort(rng.integers(0, 100, (2, 3000))), 1, "sorted before"


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Ranks 0 to 8, every place of the axis, long lines, ties, NaN, infinities and zeros of both signs."""
    for i, (x, axis, note) in enumerate(inputs(element, rng)):
        yield Case(SortDescriptor(x.shape, axis, bool(i % 2), element), {"x": x}, note=note)


def positions(x: Array, axis: int, descending: bool) -> Array:
    """Where a stable sort takes each place from; NaN are the largest, and tie."""
    if x.ndim == 0:
        return np.zeros((), np.int64)
    _, order = np.unique(x, return_inverse=True)  # equal_nan: one number for all NaN
    order = order.reshape(x.shape).astype(np.int64)
    return np.argsort(-order if descending else order, axis=axis, kind="stable")


def reference(case: Case) -> dict[str, Expected]:
    """Values and where they were."""
    desc, x = case.descriptor, np.asarray(case.tensors["x"])
    assert isinstance(desc, SortDescriptor)
    at = positions(x, desc.axis, desc.descending)
    found = x if x.ndim == 0 else np.take_along_axis(x, at, desc.axis)
    return {"values": Expected(found), "indices": Expected(at)}
