"""Reference of parts of an order: of all of it, as sort_ref.py has it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from baracuda.describe.dims import largest
from baracuda.describe.elements import Element
from baracuda.ops.sort.selection import RankDescriptor, TopkDescriptor
from baracuda.ops.sort.sort_ref import inputs, positions
from baracuda.prove.reference import Case, Expected


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """The lines of sort's cases; few and many of short ones, and places at both ends and in the middle."""
    for i, (x, axis, note) in enumerate(inputs(element, rng)):
        n = x.shape[axis] if x.ndim else 1
        if op == "topk":
            some = {n // 130} if x.size > 10000 else {0, min(3, n), n // 130, n}
            for k in sorted(some) if x.ndim else [1]:
                yield Case(TopkDescriptor(x.shape, k, axis, bool(i % 2), element), {"x": x}, note=note)
        elif n and op == "kthvalue":
            for k in [(n + 2) // 3] if x.size > 10000 else sorted({1, (n + 2) // 3, n}):
                yield Case(RankDescriptor(op, x.shape, axis, bool(i % 2), k, element), {"x": x}, note=note)
        elif n:
            yield Case(RankDescriptor(op, x.shape, axis, bool(i % 2), 0, element), {"x": x}, note=note)


def reference(case: Case) -> dict[str, Expected]:
    """Values and where they were."""
    desc, given = case.descriptor, np.asarray(case.tensors["x"])
    assert isinstance(desc, TopkDescriptor | RankDescriptor)
    axis, x = desc.axis, given.reshape(given.shape or (1,))
    at = positions(x, axis, isinstance(desc, TopkDescriptor) and desc.largest)
    if isinstance(desc, TopkDescriptor):
        at = np.take(at, np.arange(largest(desc.k)), axis)
    else:
        n: int = x.shape[axis]
        nans = np.isnan(x).sum(axis, keepdims=True) if x.dtype.kind == "f" else np.zeros_like(at.take([0], axis))
        if desc.kind == "kthvalue":
            place = np.full_like(nans, desc.k - 1)
        elif desc.kind == "median":
            place = np.where(nans > 0, n - nans, (n - 1) // 2)
        else:
            place = np.where(nans == n, 0, (n - nans - 1) // 2)
        at = np.take_along_axis(at, place, axis)
    shape = desc.signature()["values"].shape
    found = np.take_along_axis(x, at, axis)
    return {"values": Expected(found.reshape(shape)), "indices": Expected(at.reshape(shape))}
