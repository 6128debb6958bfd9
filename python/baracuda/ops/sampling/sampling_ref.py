"""Reference of drawing from logits: the documented mapping in NumPy's f32 and Python's integers, with whole rows sorted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from baracuda.describe.elements import Element
from baracuda.ops.random.discrete_ref import below
from baracuda.ops.sampling.sampling import CONTROLS, FilterLogitsDescriptor, SampleTokensDescriptor
from baracuda.prove.reference import Array, Case, Expected

COEFFICIENTS = (0x000E2A0A, 0x0051B598, 0x027A171F, 0x0E34488D, 0x3D7FAAF2, 0xB17215AF)
_OCTAVE, _NEVER = 2**24, 62 * 2**24

_NUMBERS: list[dict[str, float]] = [
    {},
    {"top_k": 5},
    {"top_p": 0.9, "temperature": 0.7},
    {"min_p": 0.05, "temperature": 1.3},
    {"typical_p": 0.6},
    {"top_k": 40, "top_p": 0.75, "min_p": 0.01, "typical_p": 0.9, "temperature": 2.0},
    {"temperature": 0.0, "top_p": 0.5},
    {"repetition": 1.3, "presence": 0.25, "frequency": 0.1, "top_p": 0.999},
    {"top_p": 0.0, "temperature": 1e-3},
    {"min_p": 1.0, "temperature": 1e30},
]
_SHAPES: list[tuple[int, ...]] = [
    (7,),
    (3, 1),
    (4, 700),
    (0, 5),
    (2, 513),
    (1, 3000),
    (5, 33),
    (6, 64),
    (2, 4097),
    (3, 600),
]


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Each control alone and all together; ties; rows that are flat, steep and masked; numbers for each row."""
    del direction
    for i, (shape, numbers) in enumerate(zip(_SHAPES, _NUMBERS, strict=True)):
        logits = rng.normal(0, (1, 4, 0.1)[i % 3], shape)
        if i % 2 and shape[-1] > 30:
            logits = np.round(logits * 4) / 4
            logits[..., 3:9] = -np.inf
        counted, masked, per_row = bool(i % 3 == 1), (None, shape[-1:], shape)[i % 3], i % 4 == 2
        tensors: dict[str, Any] = {"logits": logits}
        if counted:
            tensors["counts"] = np.where(rng.random(shape) < 0.5, 0, rng.integers(-2, 9000, shape))
        if masked is not None:
            tensors["mask"] = rng.random(masked) < 0.8
            tensors["mask"][..., -1:] = True
        scalars = CONTROLS | numbers
        if per_row:
            table = np.tile(np.array(list(scalars.values())), (*shape[:-1], 1))
            table[..., -1, 0] = 1.0
            tensors["controls"], scalars = table, {}
        fields = (shape, element, counted, masked, per_row)
        if op == "filter_logits":
            yield Case(FilterLogitsDescriptor(*fields, bool(i % 2)), tensors, scalars)
            yield Case(FilterLogitsDescriptor(*fields, not i % 2), tensors, scalars)
            continue
        seeds: dict[str, float] = {"seed": (2**64 - 1, 7)[i % 2], "offset": (3, 2**64 - 2)[i % 2]}
        yield Case(SampleTokensDescriptor(*fields, None), tensors, scalars | seeds)
        yield Case(SampleTokensDescriptor(*fields, (5, 0, 2)[i % 3]), tensors, scalars | seeds)


def penalised(z: Array, counts: Array, repetition: float, presence: float, frequency: float) -> Array:
    """Logits, f32, less what their tokens are due for having been seen."""
    n = np.minimum(counts, 0xFFFFFF).astype(np.int64)
    r, f = np.float32(repetition), np.float32(frequency)
    bits = f.view(np.uint32) + np.uint32(1 << 11)
    upper = (bits & np.uint32(0xFFFFF000)).view(np.float32)
    lower = f - upper
    above, below_it = (n & 0xFFF000).astype(np.float32), (n & 0xFFF).astype(np.float32)
    with np.errstate(all="ignore"):
        often = upper * above + (upper * below_it + (lower * above + lower * below_it))
        divided = z / np.where(z > 0, r, np.float32(1) / r)
        return np.where(n > 0, (divided - often) - np.float32(presence), z).astype(np.float32)


def distances(z: Array, temperature: float) -> Array:
    """2**-24 octaves below the largest."""
    with np.errstate(all="ignore"):
        per = np.float32(24204406.0) / np.float32(temperature)
        if not np.isfinite(per):
            per = np.float32(24204406.0)
        far = (z.max() - z) * per
        return np.where(far < _NEVER, np.trunc(np.where(far < _NEVER, far, 0)), _NEVER).astype(np.uint64)


def weights(q: Array) -> Array:
    """2**-q, as integers whose largest has 62 - ceil(log2(tokens)) bits."""
    bits, word = 62, np.uint64(32)
    while bits > 1 and 2 ** (62 - bits) < q.size:
        bits -= 1
    u = np.uint64(0xFFFFFFFF) - (q % np.uint64(_OCTAVE) << np.uint64(8))
    p = np.full_like(u, COEFFICIENTS[0])
    for c in COEFFICIENTS[1:]:
        p = np.uint64(c) + (p * u >> word)
    w: Array = (np.uint64(2**32) + (p * u >> word)) << np.uint64(bits - 33) >> q // np.uint64(_OCTAVE)
    return w


def _share(total: int, p: float) -> int:
    top, bottom = float(np.float32(p)).as_integer_ratio()
    unit = -(-top * 2**32 // bottom)
    return max(-(-total * unit // 2**32), 1)


def _first(order: Array, w: Array, target: int) -> Array:
    """The fewest first tokens of an order whose weights add up to the target."""
    return order[: int(np.searchsorted(np.cumsum(w[order]), np.uint64(target))) + 1]


def kept(z: Array, c: dict[str, float]) -> tuple[Array, Array]:
    """The tokens of a row that are kept, in the order in which they are drawn, and the weights of all."""
    q = distances(z, c["temperature"])
    w = weights(q)
    order = np.lexsort((np.arange(z.size), -z))
    with np.errstate(all="ignore"):
        greedy = not np.float32(24204406.0) / np.float32(c["temperature"]) < np.inf
    k = 1 if greedy else int(c["top_k"])
    order = order[:k] if k > 0 else order
    if c["top_p"] < 1:
        order = _first(order, w, _share(int(w[order].sum()), c["top_p"]))
    if c["min_p"] > 0:
        order = order[w[order] >= _share(int(w.max()), c["min_p"])]
    if c["typical_p"] < 1:
        total = int(w[order].sum())
        mean = sum(int(a) * int(b) for a, b in zip(w[order], q[order], strict=True)) // total
        off = np.abs(q[order].astype(np.int64) - mean) * 2 + (q[order].astype(np.int64) > mean)
        order = _first(order[np.lexsort((order, off))], w, _share(total, c["typical_p"]))
    return order, w


def _rows(case: Case) -> Iterator[tuple[Array, dict[str, float]]]:
    """The logits of each row as they are drawn from, and its numbers."""
    desc: Any = case.descriptor
    t = case.tensors
    z = np.asarray(t["logits"], np.float32).reshape(-1, desc.shape[-1]) if desc.shape[-1] else np.zeros((0, 0))
    shape = z.shape
    counts = np.broadcast_to(t["counts"], desc.shape).reshape(shape) if desc.counted else np.zeros(shape, np.int64)
    mask = np.ones(desc.shape, bool) if desc.mask_shape is None else np.broadcast_to(t["mask"], desc.shape)
    table = np.asarray(t["controls"], np.float32).reshape(-1, len(CONTROLS)) if desc.per_row else None
    for r in range(len(z)):
        c = (
            {n: case.scalars[n] for n in CONTROLS}
            if table is None
            else dict(zip(CONTROLS, table[r].tolist(), strict=True))
        )
        row = penalised(z[r], counts[r], c["repetition"], c["presence"], c["frequency"])
        yield np.where(mask.reshape(shape)[r], row, np.float32(-np.inf)), c


def reference(case: Case) -> dict[str, Expected]:
    """The tokens, or what is kept."""
    desc: Any = case.descriptor
    if isinstance(desc, FilterLogitsDescriptor):
        shape: Any = desc.shape
        y = np.zeros((int(np.prod(shape[:-1])), shape[-1]))
        for r, (z, c) in enumerate(_rows(case)):
            order, w = kept(z, c)
            if desc.probabilities:
                y[r, order] = w[order] / float(w[order].sum())
            else:
                y[r] = -np.inf
                y[r, order] = z[order]
        return {"y": Expected(y.reshape(shape))}
    samples = 1 if desc.samples is None else desc.samples
    seed, offset = int(case.scalars["seed"]), int(case.scalars["offset"])
    drawn = []
    for r, (z, c) in enumerate(_rows(case)):
        order, w = kept(z, c)
        ends = np.cumsum(w[order])
        for j in range(samples):
            at = r * samples + j
            u = below(seed, (offset + at // 2) % 2**64, at % 2 + 1, int(ends[-1]))[at % 2]
            drawn.append(order[np.searchsorted(ends, np.uint64(u), side="right")])
    return {"y": Expected(np.array(drawn, np.int64).reshape(desc.signature()["y"].shape))}
