"""Reference of counts: NumPy's, by bins that are found as the compute element has it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from baracuda.describe.elements import Element
from baracuda.ops.indexing.counting import BincountDescriptor, HistcDescriptor
from baracuda.prove.reference import Array, Case, Expected

# Shapes with numbers of bins: few, a table for each thread, and more than that.
SHAPES: list[tuple[tuple[int, ...], int]] = [
    ((7,), 7), ((), 1), ((0,), 3), ((40, 33), 5), ((2, 3, 2, 1, 2, 3, 2, 4), 17), ((3, 12000), 1), ((70000,), 4000),
    ((9000,), 5000), ((5, 0, 2), 0), ((2500,), (1 << 20) + 3),
]  # fmt: skip
_INDICES = (Element.I64, Element.I32, Element.U8, Element.I8, Element.U16, Element.I16, Element.U32, Element.U64)


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Ranks 0 to 8, few bins and many, one for all, values beside the limits, at them, and NaN."""
    for i, (shape, bins) in enumerate(SHAPES):
        if op == "bincount":
            for index in (_INDICES[i % len(_INDICES)], Element.I64):
                most = min(bins + 3 * (i % 2), np.iinfo(index.numpy).max)
                given = rng.integers(0, max(most, 1), shape)
                yield Case(BincountDescriptor(shape, bins, index), {"index": given})
            continue
        x = rng.normal(0, 2, shape)
        if x.size > 20:
            x.reshape(-1)[:9] = (np.nan, np.inf, -np.inf, -3, 5, 1, 0, -0.0, 1e-7)
        yield Case(HistcDescriptor(shape, bins, element), {"x": x}, {"low": -3.0, "high": 5.0})
    if op == "bincount":
        yield Case(BincountDescriptor((50000,), 9), {"index": np.full(50000, 4)}, note="all the same")


def reference(case: Case) -> dict[str, Expected]:
    """Counts."""
    desc = case.descriptor
    if isinstance(desc, BincountDescriptor):
        index: Array = np.asarray(case.tensors["index"]).reshape(-1).astype(np.int64)
        bins, size = int(desc.bins), int(index.max(initial=-1)) + 1  # type: ignore[arg-type]
        return {"y": Expected(np.bincount(index[index < bins], minlength=bins)), "size": Expected(np.int64(size))}
    assert isinstance(desc, HistcDescriptor)
    bins, kind = int(desc.bins), desc.element.compute.numpy  # type: ignore[arg-type]
    x = np.asarray(case.tensors["x"]).reshape(-1).astype(kind)
    low, high = (kind.type(case.scalars[n]) for n in ("low", "high"))
    x = x[(x >= low) & (x <= high) & (bins > 0)]
    at = np.minimum((x - low) * kind.type(bins) / (high - low), bins - 1).astype(np.int64)
    return {"y": Expected(np.bincount(at, minlength=bins).astype(np.float64))}
