"""Float64 reference of attention_merge.

With w = exp(-|lse_a - lse_b|) the weights are 1 / (1 + w) and w / (1 + w). The difference rounds by |d| / 2 eps, exp adds
2, so w has a relative error of (|d| / 2 + 2) eps, which moves either weight by that times their product; what follows
are a sum, a quotient, two products and a sum, 3 eps of the weighted parts:

    |dout| <= 3 (p_a |a| + p_b |b|) + p_a p_b (|a| + |b|) (|d| / 2 + 2)
    |dlse| <= |lse| + w (|d| / 2 + 4)
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from baracuda.elements import Element
from baracuda.ops.attention_merge import AttentionMergeDescriptor
from baracuda.reference import Case, Expected, round_to, to_reference


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Close and far lse, parts without a key, equal and infinite lse, odd sizes, no columns, one row, nothing."""
    for shape, size in (
        ((2, 3, 5, 8), 1.0),
        ((1, 2, 37, 33), 30.0),
        ((7,), 1.0),
        ((4, 1), 3.0),
        ((3, 0), 1.0),
        ((0, 4), 1.0),
    ):
        a, b = (to_reference(round_to(rng.normal(0, 1, shape), element)) for _ in range(2))
        desc = AttentionMergeDescriptor(shape, element)
        stored = desc.signature()["lse"].element
        la, lb = (to_reference(round_to(rng.normal(0, size, shape[:-1]), stored)) for _ in range(2))
        if la.ndim > 1:
            for n, (left, right) in enumerate(((-np.inf, 1), (2, -np.inf), (-np.inf, -np.inf), (3, 3), (np.inf, 1))):
                la.flat[n], lb.flat[n] = left, right
        yield Case(desc, {"out_a": a, "lse_a": la, "out_b": b, "lse_b": lb})


def reference(case: Case) -> dict[str, Expected]:
    """Outputs in float64."""
    a, b, la, lb = (np.asarray(case.tensors[n], np.float64) for n in ("out_a", "out_b", "lse_a", "lse_b"))
    with np.errstate(all="ignore"):
        d = np.where(la == lb, 0, np.abs(la - lb))
        w = np.exp(-d)
        d = np.where(np.isinf(d), 0, d)  # then w is 0
        lse = np.maximum(la, lb) + np.log1p(w)
        large, small = 1 / (1 + w), w / (1 + w)
        pa = np.where(np.isneginf(la), 0, np.where(la < lb, small, large))[..., None]
        pb = np.where(np.isneginf(lb), 0, np.where(la < lb, large, small))[..., None]
        out = pa * a + pb * b
    terms = pa * np.abs(a) + pb * np.abs(b)
    moved = pa * pb * (np.abs(a) + np.abs(b)) * (d[..., None] / 2 + 2)
    lse_terms = np.where(np.isinf(lse), 0, np.abs(lse)) + w * (d / 2 + 4)
    return {"out": Expected(out, terms + moved, 2), "lse": Expected(lse, lse_terms, 2)}
