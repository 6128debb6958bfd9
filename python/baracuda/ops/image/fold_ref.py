"""Reference of fold: each tap of all windows added to its places."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod
from typing import Any

import numpy as np

from baracuda.describe.elements import Element
from baracuda.ops.image.fold import FoldDescriptor
from baracuda.prove.reference import Array, Case, Expected

# Fields by their order.
_CASES: tuple[Any, ...] = (
    ((1, 1, 1), (1,)),
    ((2, 3, 11), (3,), (2,), (1,), (2,), (2,)),
    ((1, 2, 2500), (5,), (1,), (2,), (2,)),
    ((1, 1, 1100), (7,), (3,), (0,), (4,), (11,)),
    ((1, 1, 700), (300,), (1,), (20,), (30,)),
    ((2, 3, 5, 7), (3, 2), (1, 1), (1, 0), (1, 1)),
    ((1, 4, 6, 8), (2, 2), (2, 2)),
    ((2, 1, 9, 10), (2, 3), (3, 2), (2, 1), (0, 5), (2, 3)),
    ((1, 1, 4, 4), (2, 2), (5, 5)),
    ((0, 2, 4, 5), (2, 2)),
    ((2, 0, 4, 5), (2, 2)),
    ((2, 2, 4, 5, 6), (2, 3, 2), (1, 2, 2), (1, 0, 1), (0, 1, 1), (2, 1, 1)),
)
_FIELDS = ("image_shape", "kernel", "stride", "low", "high", "dilation")


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """All of _CASES, NaN and infinities."""
    desc: Any
    for fields in _CASES:
        desc = FoldDescriptor(**dict(zip(_FIELDS, fields, strict=False)), element=element)
        yield Case(desc, {"x": rng.normal(size=desc.columns_shape())})
    desc = FoldDescriptor((1, 2, 5, 5), (2, 2), element=element)
    x = rng.normal(size=desc.columns_shape())
    x[0, 0, 3], x[0, 5, 2], x[0, 7, 9] = np.nan, np.inf, -np.inf
    yield Case(desc, {"x": x}, note="special values")


def _places(desc: Any, axis: int, tap: int) -> Array:
    places: Array = np.arange(desc.windows()[axis]) * desc.stride[axis] - desc.low[axis] + tap * desc.dilation[axis]
    return places


def reference(case: Case) -> dict[str, Expected]:
    """Sums by the definition."""
    desc: Any = case.descriptor
    n, channels, *size = desc.image_shape
    x = case.tensors["x"].astype(np.longdouble).reshape(n, channels, prod(desc.kernel), *desc.windows())
    y, most, terms = np.zeros((n, channels, *size), np.longdouble), np.zeros((n, channels, *size)), np.zeros(size, int)
    with np.errstate(all="ignore"):
        for i, taps in enumerate(product(*map(range, desc.kernel))):
            lines = [_places(desc, axis, t) for axis, t in enumerate(taps)]
            within = [np.flatnonzero((at >= 0) & (at < m)) for at, m in zip(lines, size, strict=True)]
            to: Any = np.ix_(*(at[ok] for at, ok in zip(lines, within, strict=True)))
            given = x[:, :, i][(..., *np.ix_(*within))]
            y[(..., *to)] += given
            most[(..., *to)] += np.abs(given).astype(np.float64)
            terms[to] += 1
    return {"y": Expected(y.astype(np.float64), most, int(terms.max(initial=1)))}
