"""Float64 reference of rope_append: the rotation of rope_ref.py, and copies to the rows that positions name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from baracuda.describe.elements import Element
from baracuda.ops.rope.rope import RopeLayout
from baracuda.ops.rope.rope_append import RopeAppendDescriptor
from baracuda.ops.rope.rope_ref import rotate
from baracuda.prove.reference import Array, Case, Expected

# Shape of q, heads of k, rows of the caches, last dimension of v, rotated elements (None: all), form of the positions.
_SHAPES: tuple[tuple[tuple[int, int, int, int], int, int, int, int | None, str | None], ...] = (
    ((1, 8, 1, 32), 2, 40, 32, None, None),
    ((2, 4, 3, 10), 2, 9, 7, 6, "batch"),
    ((2, 2, 5, 64), 2, 14, 64, None, "seq"),
    ((3, 3, 1, 6), 1, 20, 6, 4, "batch"),
    ((1, 1, 2, 1101), 1, 4, 3, 1100, None),
    ((2, 3, 4, 2), 3, 11, 1, 0, None),
    ((2, 2, 0, 4), 1, 6, 4, None, None),
    ((0, 2, 3, 4), 1, 6, 4, None, None),
)


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Both layouts, partial rotation, grouped heads, all forms of positions, caches longer and shorter than the tables."""
    for i, shapes in enumerate(_SHAPES):
        yield _case(element, *shapes, i, rng)
        yield _case(element, *shapes, i + 1, rng)


def _case(
    element: Element,
    q: tuple[int, int, int, int],
    kv_heads: int,
    cache_rows: int,
    v_dim: int,
    rotary: int | None,
    kind: str | None,
    i: int,
    rng: np.random.Generator,
) -> Case:
    forms: dict[str | None, tuple[int, ...] | None]
    forms = {None: None, "seq": q[2:3], "batch": (q[0], q[2])}
    positions, rows = forms[kind], q[2] + 9
    layout, index = list(RopeLayout)[i % 2], Element.I32 if i % 3 else Element.I64
    table = Element.F16 if i == 5 else None
    desc = RopeAppendDescriptor(q, rows, rotary, layout, positions, index, table, element, kv_heads, cache_rows, v_dim)
    angle = rng.uniform(0, 6.3, (rows, (q[3] if rotary is None else rotary) // 2))
    tensors: dict[str, Array] = {"cos": np.cos(angle), "sin": np.sin(angle)}
    for p in desc.signature().present:
        if p.name not in ("cos", "sin", "positions"):
            tensors[p.name] = rng.normal(0, 2, p.shape)
    most = min(rows, cache_rows)
    if positions is not None:  # each row of a sequence its own
        each = [rng.permutation(most)[: q[2]] for _ in range(positions[0] if kind == "batch" else 1)]
        tensors["positions"] = np.array(each, np.int64).reshape(positions)
    return Case(desc, tensors, {} if positions else {"position": min(i, most - q[2])})


def reference(case: Case) -> dict[str, Expected]:
    """Outputs in float64."""
    d: Any = case.descriptor
    assert isinstance(d, RopeAppendDescriptor)
    q, k, v = (np.asarray(case.tensors[n], np.float64) for n in "qkv")
    batch, _, seq, _ = q.shape
    if d.positions_shape is None:
        at = np.arange(seq) + int(case.scalars.get("position", 0))
    else:
        at = np.asarray(case.tensors["positions"], np.int64)
    at = np.broadcast_to(at, (batch, seq))
    found = {"q": Expected(*rotate(d, case, q, 1.0), 2)}
    for name, (value, size) in {"k_cache": rotate(d, case, k, 1.0), "v_cache": (v, np.zeros_like(v))}.items():
        cache = np.asarray(case.tensors[name], np.float64).copy()
        sizes = np.zeros_like(cache)
        for b in range(batch):
            cache[b][:, at[b]], sizes[b][:, at[b]] = value[b], size[b]
        found[name] = Expected(cache, sizes, 2)
    return found
