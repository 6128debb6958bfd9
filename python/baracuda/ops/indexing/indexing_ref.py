"""Float64 reference of elements collected by index and of their gradients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from baracuda.describe.elements import Element
from baracuda.ops.indexing.indexing import (
    GatherBackwardDescriptor,
    GatherDescriptor,
    IndexSelectBackwardDescriptor,
    IndexSelectDescriptor,
    TakeBackwardDescriptor,
    TakeDescriptor,
)
from baracuda.ops.layout.layout_ref import values
from baracuda.prove.reference import Array, Case, Expected

# shape of x, shape of index, axis, element of index, wrap
_GATHERS: list[tuple[tuple[int, ...], tuple[int, ...], int, Element, bool]] = [
    ((5,), (3,), 0, Element.I64, False),
    ((), (), 0, Element.I64, True),
    ((4, 6), (4, 9), 1, Element.I32, True),
    ((4, 6), (3, 5), 0, Element.U32, False),
    ((3, 40, 33), (2, 70, 30), 1, Element.I64, True),
    ((2, 3, 2, 1, 2, 3, 2, 4), (2, 3, 1, 1, 2, 7, 2, 3), 5, Element.I64, False),
    ((300, 70), (1, 70), 0, Element.I64, False),
    ((2, 5), (2, 40000), -1, Element.I32, False),
    ((3, 0), (3, 0), 0, Element.I64, False),
    ((3, 4), (0, 4), 1, Element.I64, False),
]
_SELECTS: list[tuple[tuple[int, ...], tuple[int, ...], int, Element, bool]] = [
    ((5,), (3,), 0, Element.I64, False),
    ((), (1,), 0, Element.I64, True),
    ((4, 6), (), 1, Element.I32, True),
    ((40, 70), (90,), 0, Element.U32, False),
    ((40, 70), (33,), 1, Element.I64, True),
    ((2, 3, 2, 1, 2, 3, 2, 4), (4,), 5, Element.I64, False),
    ((50, 4, 16), (300,), 0, Element.I64, False),
    ((3, 2), (2600,), 0, Element.I64, False),
    ((3, 0), (2,), 0, Element.I64, False),
    ((3, 4), (0,), 1, Element.I64, False),
]
_TAKES: list[tuple[tuple[int, ...], tuple[int, ...], Element]] = [
    ((5,), (3,), Element.I64),
    ((), (2, 2), Element.I64),
    ((4, 6), (), Element.I32),
    ((3, 40, 33), (7, 300), Element.I64),
    ((3, 1), (2600,), Element.I64),
    ((2, 3, 2, 1, 2, 3, 2, 4), (2, 1, 3, 1, 2, 1, 2, 5), Element.I64),
    ((20, 3), (0, 3), Element.U32),
]


def indices(rng: np.random.Generator, limit: int, shape: tuple[int, ...], wrap: bool) -> Array:
    """Random indices, both ends among them."""
    found = np.asarray(rng.integers(-limit if wrap else 0, max(limit, 1), shape))
    if found.size > 1:
        found.reshape(-1)[0] = -limit if wrap else 0
        found.reshape(-1)[-1] = limit - 1
    return found


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Ranks 0 to 8, every index element, negative indices, many duplicates, empty tensors."""
    descriptors: list[Any] = []
    if op == "take":
        take = TakeDescriptor if direction == "forward" else TakeBackwardDescriptor
        descriptors += [take(shape, index, element, e) for shape, index, e in _TAKES]
    elif op == "gather":
        gather = GatherDescriptor if direction == "forward" else GatherBackwardDescriptor
        descriptors += [gather(s, i, a, element, e, wrap) for s, i, a, e, wrap in _GATHERS]
    else:
        select = IndexSelectDescriptor if direction == "forward" else IndexSelectBackwardDescriptor
        descriptors += [select(s, i, a, element, e, wrap) for s, i, a, e, wrap in _SELECTS]
    for desc in descriptors:
        limit = int(np.prod(desc.shape)) if op == "take" else desc.shape[desc.axis] if desc.shape else 1
        wrap = desc.attributes()["wrap"] == 1 and desc.index_element is not Element.U32
        tensors = {"index": indices(rng, limit, desc.index_shape, wrap)}
        if direction == "forward":
            yield Case(desc, {"x": values(element, desc.shape, rng)} | tensors)
        else:
            yield Case(desc, {"dy": rng.normal(size=desc.result_shape())} | tensors)


def places(shape: tuple[int, ...], index: Array, axis: int, along: bool) -> Any:
    """What x[...] is given so that it has the elements at `index`."""
    if not shape:
        return ()
    wrapped = index % max(shape[axis], 1)
    if along:
        return (slice(None),) * axis + (wrapped.reshape(-1),)
    grid = list(np.ogrid[tuple(slice(n) for n in index.shape)])
    grid[axis] = wrapped
    return tuple(grid)


def reference(case: Case) -> dict[str, Expected]:
    """NumPy's indexing; gradients by adding up at the same places."""
    desc: Any = case.descriptor
    index = np.asarray(case.tensors["index"]).astype(np.int64)
    shape, flat = desc.result_shape(), isinstance(desc, (TakeDescriptor, TakeBackwardDescriptor))
    size = (int(np.prod(desc.shape)),) if flat else desc.shape  # take sees one row
    along = flat or isinstance(desc, (IndexSelectDescriptor, IndexSelectBackwardDescriptor))
    at = places(size, index, 0 if flat else desc.axis, along)
    if "x" in case.tensors:
        return {"y": Expected(np.asarray(case.tensors["x"]).reshape(size)[at].reshape(shape))}
    dy = np.asarray(case.tensors["dy"])
    sums = []
    for term in (dy, np.abs(dy)):
        dx = np.zeros(size, np.longdouble)
        if size:
            np.add.at(dx, at, term.reshape(-1) if flat else term.reshape(dx[at].shape))
        else:
            dx += term.sum(dtype=np.longdouble)
        sums.append(dx.reshape(desc.shape))
    return {"dx": Expected(sums[0], sums[1])}


def forward_of(case: Case) -> Case:
    """The forward case of a gradient."""
    desc: Any = case.descriptor
    forwards: dict[Any, Any] = {
        TakeBackwardDescriptor: TakeDescriptor,
        GatherBackwardDescriptor: GatherDescriptor,
        IndexSelectBackwardDescriptor: IndexSelectDescriptor,
    }
    forward = forwards[type(desc)]
    x = np.random.default_rng(3).normal(size=desc.shape)
    made = forward(**{name: getattr(desc, name) for name in desc.__dataclass_fields__})
    return Case(made, {"x": x, "index": case.tensors["index"]})
