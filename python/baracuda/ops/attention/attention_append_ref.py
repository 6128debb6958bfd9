"""Reference of the key-value cache: a copy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from baracuda.describe.dims import largest
from baracuda.describe.elements import Element
from baracuda.ops.attention.attention_append import KvCacheAppendDescriptor
from baracuda.prove.reference import Array, Case, Expected


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """One position and one per batch entry; to the end; nothing."""
    del op, direction
    for cache, n, positions, scalars in (
        ((2, 3, 10, 4), 2, None, {"position": 8}),
        ((2, 3, 10, 4), 1, (2,), {}),
        ((1, 1, 5, 1), 5, None, {}),
        ((3, 2, 6, 70), 0, (3,), {}),
    ):
        desc = KvCacheAppendDescriptor(
            cache, (*cache[:2], n, cache[3]), positions, Element.I32 if n else Element.I64, element
        )
        tensors: dict[str, Array] = {"cache": rng.normal(0, 1, cache), "x": rng.normal(0, 1, (*cache[:2], n, cache[3]))}
        if positions:
            tensors["positions"] = rng.integers(0, cache[2] - n + 1, positions)
        yield Case(desc, tensors, dict(scalars))


def reference(case: Case) -> dict[str, Expected]:
    """The cache afterwards."""
    d = case.descriptor
    assert isinstance(d, KvCacheAppendDescriptor)
    cache, x = case.tensors["cache"].copy(), case.tensors["x"]
    for b in range(largest(d.cache_shape[0])):
        at = (
            int(case.tensors["positions"][b]) if d.positions_shape is not None else int(case.scalars.get("position", 0))
        )
        cache[b, :, at : at + x.shape[2]] = x[b]
    return {"cache": Expected(cache)}
