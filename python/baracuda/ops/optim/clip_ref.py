"""Float64 reference of gradient clipping, with sums in extended precision."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from baracuda.describe.elements import Element
from baracuda.ops.optim.clip import ClipGradsWithNormDescriptor, ClipGradValueDescriptor, TotalNormDescriptor
from baracuda.ops.optim.optim_ref import SHAPES
from baracuda.prove.reference import Array, Case, Expected

_POWERS = (2.0, 1.0, np.inf, 3.0, 0.5)
_SPECIAL = ([1.0, -0.0, -2.0, 3.0], [1.0, np.inf, 2.0, 0.0], [np.nan, 1.0, np.inf, 2.0])


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Lists of one to 600 tensors, some empty or 0-d; every kind of norm; clipped and not; NaN and infinities."""
    del direction
    for i, shapes in enumerate(SHAPES):
        values = [np.asarray(rng.normal(0, 1, s)) for s in shapes]
        yield from _cases(op, shapes, element, values, i)
    for i, row in enumerate(_SPECIAL):
        for case in _cases(op, ((4,), (2, 0)), element, [np.array(row), np.zeros((2, 0))], i):
            case.note = "special values"
            yield case
    yield from _cases(op, ((0,),), element, [np.zeros(0)], 0)


def _cases(op: str, shapes: Any, element: Element, values: list[Array], i: int) -> Iterator[Case]:
    if op == "get_total_norm":
        for p in _POWERS if len(values) < 100 else (_POWERS[i % 5],):
            yield Case(TotalNormDescriptor(shapes, element, p), {"tensors": values})
    elif op == "clip_grads_with_norm":
        norm = np.sqrt(sum(np.sum(np.square(v)) for v in values))
        for most in (0.5, 1e9):
            given = {"grads": values, "total_norm": np.asarray(norm)}
            yield Case(ClipGradsWithNormDescriptor(shapes, element), given, {"max_norm": most})
    else:
        yield Case(ClipGradValueDescriptor(shapes, element), {"grads": values}, {"clip_value": 0.75 if i % 2 else 0.5})


def reference(case: Case) -> dict[str, Any]:
    """Outputs in float64: one per tensor of the list, or the norm."""
    desc, s = case.descriptor, case.scalars
    with np.errstate(all="ignore"):
        if isinstance(desc, TotalNormDescriptor):
            return {"total_norm": _norm(np.concatenate([v.reshape(-1) for v in case.tensors["tensors"]]), desc.p)}
        grads = case.tensors["grads"]
        if isinstance(desc, ClipGradValueDescriptor):
            return {"grads": [Expected(np.clip(g, -s["clip_value"], s["clip_value"])) for g in grads]}
        share = s["max_norm"] / (float(case.tensors["total_norm"]) + 1e-6)
        return {"grads": [Expected(g * np.minimum(share, 1.0)) for g in grads]}


def _norm(x: Array, p: float) -> Expected:
    x = np.abs(x.astype(np.longdouble))
    if np.isinf(p):
        return Expected(np.asarray(np.max(x, initial=0.0), np.float64))
    powers = np.sum(x**p)
    norm = np.asarray(powers ** np.longdouble(1 / p), np.float64)
    # A relative error e of the sum is one of e / p of its root; one of the exponent counts by the logarithm.
    worse = 1.0 if p in (1.0, 2.0) else 1.0 + np.abs(np.log(np.where(norm > 0, norm, 1.0)))
    found = Expected(norm, norm * max(1.0, 1 / p) * worse, max(x.size, 1))
    if p not in (1.0, 2.0):
        lost = x.size * norm / (p * powers) if powers > 0 else 0
        found.reach, found.lost = np.asarray(powers, np.float64), np.asarray(1 + lost, np.float64)
    return found
