"""Reference of values that are kept once: runs of equal neighbours, after a stable sort where all are compared."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from baracuda.describe.elements import Element
from baracuda.ops.layout.layout_ref import values
from baracuda.ops.sort.sort_ref import positions, special
from baracuda.ops.sort.unique import UniqueDescriptor
from baracuda.prove.reference import Array, Case, Expected

# Lengths of each way of sorting, and of several chunks; how many different values there are; capacities.
_LINES: list[tuple[int, int, int]] = [
    (0, 1, 0), (0, 1, 3), (1, 1, 1), (17, 4, 17), (40, 1000, 40), (300, 3, 2), (300, 3, 0), (2500, 100, 2500),
    (5000, 2, 9), (16385, 4000, 16385), (33000, 1, 33000), (65600, 90, 100),
]  # fmt: skip


def _inputs(element: Element, rng: np.random.Generator) -> Iterator[tuple[Array, int, str]]:
    for n, many, capacity in _LINES:
        some = values(element, (many,), rng)
        yield some[np.sort(rng.integers(0, many, n)) if n % 2 else rng.integers(0, many, n)], capacity, ""
    if element.is_float:
        yield special(rng, (700,)), 700, "special values"
        yield np.sort(special(rng, (17000,))), 17000, "special values in order"


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Short and long lines; few, many and equal values; in order and not; NaN and zeros of both signs; every choice of results."""
    for i, (x, capacity, note) in enumerate(_inputs(element, rng)):
        indices, inverse, counts = (bool((7 - i) & bit) for bit in (1, 2, 4))
        desc = UniqueDescriptor(op, len(x), capacity, indices, inverse, counts, element)
        yield Case(desc, {"x": x}, note=note)


def reference(case: Case) -> dict[str, Expected]:
    """By comparing neighbours."""
    desc, x = case.descriptor, np.asarray(case.tensors["x"])
    assert isinstance(desc, UniqueDescriptor)
    order = positions(x, 0, False) if desc.kind == "unique" else np.arange(len(x))
    ordered = x[order]
    begins = np.ones(len(x), bool)
    begins[1:] = ordered[1:] != ordered[:-1]
    starts = np.flatnonzero(begins)
    inverse = np.empty(len(x), np.int64)
    inverse[order] = np.cumsum(begins) - 1
    found = {
        "values": ordered[starts],
        "indices": order[starts],
        "counts": np.diff(starts, append=len(x)),
    }
    made: dict[str, Expected] = {}
    for p in desc.signature().outputs:
        if p.name in found:
            full = np.zeros(p.shape, found[p.name].dtype)
            n = min(len(full), len(starts))
            full[:n] = found[p.name][:n]
            made[p.name] = Expected(full)
    if desc.has_inverse:
        made["inverse"] = Expected(inverse)
    return made | {"count": Expected(np.int64(len(starts)))}
