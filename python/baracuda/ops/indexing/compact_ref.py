"""Reference of what keeps elements in order, and of one-hot rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from baracuda.describe.elements import Element
from baracuda.ops.indexing.compact import MaskedSelectDescriptor, NonzeroDescriptor, OneHotDescriptor
from baracuda.ops.indexing.indexing_ref import indices
from baracuda.ops.layout.layout_ref import values
from baracuda.prove.reference import Array, Case, Expected

# shape, capacity
_KEPT: list[tuple[tuple[int, ...], int]] = [
    ((7,), 7),
    ((), 1),
    ((3, 0), 2),
    ((40, 33), 1320),
    ((40, 33), 100),
    ((40, 33), 0),
    ((2, 3, 2, 1, 2, 3, 2, 4), 500),
    ((3, 12000), 36000),
    ((2100,), 2100),
]
# shape of index, classes, element of index
_CLASSES: list[tuple[tuple[int, ...], int, Element]] = [
    ((5,), 4, Element.I64),
    ((), 3, Element.I32),
    ((2, 3, 2, 1, 2, 1, 2), 7, Element.U32),
    ((70, 3), 130, Element.I64),
    ((0, 3), 2, Element.I64),
    ((300,), 1, Element.I64),
]


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Ranks 0 to 8; nothing, some and everything kept; capacities that are too small and too large."""
    del direction
    if op == "one_hot":
        for shape, classes, index in _CLASSES:
            made = OneHotDescriptor(shape, classes, element, index)
            yield Case(made, {"index": indices(rng, classes, shape, False)})
        return
    for i, (shape, capacity) in enumerate(_KEPT):
        for share in (0.0, 0.3, 1.0):
            mask = rng.random(shape) < share
            x = values(element, shape, rng)
            if op == "masked_select":
                yield Case(MaskedSelectDescriptor(shape, capacity, element), {"mask": mask, "x": x})
                continue
            kept: Array = np.where(mask, x, np.zeros((), x.dtype))
            if element.is_float and i == 0:
                kept = np.array([0.0, -0.0, np.nan, 1.0, -np.inf, 0.0, 6e-8])
            yield Case(NonzeroDescriptor(shape, capacity, element), {"x": kept})


def reference(case: Case) -> dict[str, Expected]:
    """NumPy's own."""
    desc = case.descriptor
    if isinstance(desc, OneHotDescriptor):
        index = np.asarray(case.tensors["index"]).astype(np.int64)
        return {"y": Expected((index[..., None] == np.arange(desc.signature()["y"].shape[-1])).astype(np.int64))}
    x = np.asarray(case.tensors["x"])
    if isinstance(desc, MaskedSelectDescriptor):
        found: Array = x[np.asarray(case.tensors["mask"]).astype(bool)]
    else:
        assert isinstance(desc, NonzeroDescriptor)
        found = np.argwhere(x != 0) if x.ndim else np.zeros((int(x != 0), 0), np.int64)
    y = np.zeros(desc.signature()["y"].shape, found.dtype)
    n = min(len(found), len(y))
    y[:n] = found[:n]
    return {"y": Expected(y), "count": Expected(np.int64(len(found)))}
