"""Float64 reference of attention_merge.

With w = exp(-|lse_a - lse_b|) the weights are 1 / (1 + w) and w / (1 + w). The difference rounds by |d| / 2 eps, exp adds
2, so w has a relative error of (|d| / 2 + 2) eps, which moves either weight by that times their product; what follows
are a sum, a quotient, two products and a sum, 3 eps of the weighted parts:

    |dout| <= 3 (p_a |a| + p_b |b|) + p_a p_b (|a| + |b|) (|d| / 2 + 2)
    |dlse| <= |lse| + w (|d| / 2 + 4)

In the gradient dout_a = p_a dout moves by p_a p_b (|d| / 2 + 2) |dout| with its weight. dlse_a is p_a dlse, likewise, and
p_a p_b times a sum S over D terms dout (a - b), whose weights' product has an error of at most (|d| / 2 + 5) eps:

    |d dlse_a| <= p_a |dlse| (3 + p_b (|d| / 2 + 2)) + p_a p_b sum |dout| (|a| + |b|) (sqrt(D) + |d| / 2 + 5)
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from baracuda.describe.elements import Element
from baracuda.ops.attention.attention_merge import AttentionMergeBackwardDescriptor, AttentionMergeDescriptor
from baracuda.prove.reference import Case, Expected, round_to, to_reference

# Numbers of this share of the element's exponents are promised: products of products of larger ones may not fit.
EXPONENTS = 0.25


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
        special = la.ndim > 1
        if special:
            for n, (left, right) in enumerate(((-np.inf, 1), (2, -np.inf), (-np.inf, -np.inf), (3, 3), (np.inf, 1))):
                la.flat[n], lb.flat[n] = left, right
        tensors = {"out_a": a, "lse_a": la, "out_b": b, "lse_b": lb}
        if direction == "forward":
            yield Case(desc, tensors)
            continue
        tensors["dout"] = to_reference(round_to(rng.normal(0, 1, shape), element))
        tensors["dlse"] = to_reference(round_to(rng.normal(0, 1, shape[:-1]), stored))
        yield Case(desc.backward(), tensors, exact_gradient=not special)


def _backward(case: Case) -> dict[str, Expected]:
    names = ("out_a", "out_b", "lse_a", "lse_b", "dout", "dlse")
    a, b, la, lb, dout, dlse = (np.asarray(case.tensors[n], np.float64) for n in names)
    with np.errstate(all="ignore"):
        d = np.where(la == lb, 0, np.abs(la - lb))
        w = np.exp(-d)
        d = np.where(np.isinf(d), 0, d)  # then w is 0
        large, small = 1 / (1 + w), w / (1 + w)
        parts = {"a": np.where(la < lb, small, large), "b": np.where(la < lb, large, small)}
        parts = {n: np.where(np.isneginf(x), 0, parts[n]) for n, x in (("a", la), ("b", lb))}
        both = parts["a"] * parts["b"]
        cross = np.where(both == 0, 0, both * (dout * (a - b)).sum(-1))
        size = both * (np.abs(dout) * (np.abs(a) + np.abs(b))).sum(-1)
    # A weight may be lost before a sum multiplies it.
    lost = 1 + np.abs(dlse) + (np.abs(dout) * (np.abs(a) + np.abs(b))).sum(-1)
    columns, results = max(dout.shape[-1], 1), {}
    for name, sign, other in (("a", 1, "b"), ("b", -1, "a")):
        p, moved = parts[name], parts[other] * (d / 2 + 2)
        out = p[..., None] * dout
        results[f"dout_{name}"] = Expected(out, np.abs(out) * (1 + moved[..., None]), 2)
        terms = p * np.abs(dlse) * (1 + (3 + moved) / np.sqrt(columns)) + size * (1 + (d / 2 + 5) / np.sqrt(columns))
        results[f"dlse_{name}"] = Expected(p * dlse + sign * cross, terms, columns, lost=lost)
    return results


def reference(case: Case) -> dict[str, Expected]:
    """Outputs in float64."""
    if isinstance(case.descriptor, AttentionMergeBackwardDescriptor):
        return _backward(case)
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


def forward_of(case: Case) -> Case:
    """The forward case of a backward one."""
    d = case.descriptor
    assert isinstance(d, AttentionMergeBackwardDescriptor)
    tensors = {n: v for n, v in case.tensors.items() if n not in ("dout", "dlse")}
    return Case(AttentionMergeDescriptor(d.shape, Element.F64), tensors)
