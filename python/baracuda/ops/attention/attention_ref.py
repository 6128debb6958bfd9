"""Float64 reference of attention.

How the error bounds come about, in units of the accumulator's eps, for one query with scores s_j, P_j = exp(s_j - lse):

A score is a sum of D products, of q that was scaled and rounded once: |ds_j| <= sqrt(D) * scale * sum_d |q_d k_jd|. The
difference to the highest score (or to lse) rounds once more, at most |s_j - lse| eps, and so does adding a mask; exp
adds 2. Together they are the conditioning a_j = sqrt(D) * scale * sum_d |q_d k_jd| + |s_j - lse| + |mask_j| + 2. It is
a relative error of P_j, so

    out = sum_j P_j v_j / sum_j P_j:  |dout| <= sum_j P_j |v_j| (a_j + sum_i P_i a_i) + sqrt(K) sum_j P_j |v_j|
    lse:                              |dlse| <= sum_j P_j a_j + sqrt(K) + |lse|
    dS_j = P_j (dP_j - delta):        |d dS_j| <= e_j = P_j (sqrt(Dv) + a_j) (sum |dout v_j| + sum |dout out|)
    dq = scale sum_j dS_j k_j:        |ddq| <= scale sum_j e_j |k_j| + sqrt(K) scale sum_j P_j (...) |k_j|

and dk, dv alike with sums over the queries. A softcap c of a score s gives c t, t = tanh(s / c): its roundings add at
most 4 |c t| to a_j, which the slope 1 - t^2 does not raise; dS has that slope as a factor, whose own error is
2 |t| ((1 - t^2) a_j / c + 4). ALiBi adds three roundings of what it takes from a score. Dropout's factors
multiply P_j in the sums that v and dout are in, and dP: two roundings more. A sink is one more score, of conditioning
|sink - lse| + 2, in the sums of P_i a_i; its gradient -sum exp(sink - lse) delta has an error of
P_sink (sqrt(Dv) + |sink - lse| + 4) sum |dout out| in each of its terms. A `sum` bound multiplies the
magnitude by sqrt(K), so the parts without it are divided by that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from baracuda.describe.elements import Element
from baracuda.ops.attention.attention import AttentionBackwardDescriptor, AttentionDescriptor
from baracuda.ops.attention.scores import CausalAlignment
from baracuda.ops.random.dropout_ref import mask
from baracuda.prove.reference import LARGEST, Array, Case, Expected, epsilon, round_to, to_reference

# Numbers of this share of the element's exponents are promised: products of products of larger ones may not fit.
EXPONENTS = 0.25

# batch, heads, kv heads, queries, keys, dim, dim of v, causal, options
_SMALL: tuple[tuple[int, int, int, int, int, int, int, bool, dict[str, Any]], ...] = (
    (1, 1, 1, 1, 1, 1, 1, False, {}),
    (2, 4, 2, 5, 7, 8, 8, True, {}),
    (2, 4, 2, 9, 5, 3, 6, True, {}),
    (1, 6, 3, 7, 5, 5, 4, True, {"align": CausalAlignment.TOP_LEFT}),
    (2, 2, 2, 33, 70, 17, 9, False, {"kv_len": 66}),
    (1, 4, 1, 40, 40, 16, 16, True, {"scale": 0.7}),
    (1, 4, 2, 34, 65, 8, 8, False, {"mask": (1, 4, 34, 65), "mask_element": Element.BOOL}),
    (2, 2, 1, 6, 9, 8, 8, False, {"mask": (6, 9), "mask_element": Element.F32}),
    (2, 2, 1, 20, 9, 8, 8, True, {"mask": (2, 1, 1, 9), "mask_element": Element.BOOL, "kv_len": 8}),
    (2, 4, 2, 1, 600, 20, 12, False, {"kv_len": 519}),
    (1, 8, 1, 1, 40, 4, 4, False, {"kv_len": 0}),
    (1, 2, 2, 3, 300, 66, 34, True, {"kv_len": 290}),
    (1, 3, 3, 150, 150, 12, 40, True, {}),
    (1, 1, 1, 33, 2100, 4, 4, True, {}),
    (2, 4, 2, 33, 70, 16, 16, True, {}),
    (1, 2, 2, 41, 24, 16, 32, True, {"align": CausalAlignment.TOP_LEFT}),
    (1, 2, 1, 24, 40, 8, 8, False, {}),
    (0, 2, 1, 4, 4, 4, 4, False, {}),
    (1, 2, 1, 0, 4, 4, 4, True, {}),
    (1, 2, 1, 4, 0, 4, 4, False, {}),
    (2, 2, 1, 40, 150, 8, 8, True, {"window": (10, -1), "softcap": 1.5, "alibi": (2, 2)}),
    (1, 4, 2, 30, 80, 8, 12, False, {"window": (25, 3), "align": CausalAlignment.TOP_LEFT, "alibi": (4,)}),
    (1, 2, 1, 40, 24, 8, 8, False, {"window": (-1, 2), "softcap": 2.0, "mask": (40, 24), "mask_element": Element.F32}),
    (2, 4, 2, 2, 600, 8, 8, True, {"window": (300, -1), "alibi": (4,), "softcap": 3.0, "kv_len": 590}),
    (1, 2, 2, 3, 300, 8, 4, False, {"window": (0, 0), "align": CausalAlignment.TOP_LEFT}),
    (2, 4, 2, 37, 71, 8, 8, True, {"dropout_p": 0.3, "seed": 2**63 + 5, "offset": 2**64 - 9}),
    (2, 2, 1, 1, 603, 8, 4, False, {"dropout_p": 0.9, "seed": 3, "offset": 10**12, "kv_len": 601}),
    (1, 2, 2, 5, 9, 4, 4, False, {"dropout_p": 1.0, "seed": 1, "offset": 0}),
    (2, 4, 2, 5, 40, 8, 8, True, {"sinks": (0.5, -np.inf, 3.0, -40.0)}),
    (1, 2, 1, 1, 600, 8, 4, False, {"sinks": (1.5, -2.0), "kv_len": 590}),
    (1, 2, 2, 2, 7, 8, 4, False, {"sinks": (1.0, -1.0), "kv_len": 0}),
    (2, 2, 1, 40, 25, 8, 8, True, {"sinks": (0.0, 9.0), "softcap": 2.0, "alibi": (2,), "window": (12, -1)}),
    (1, 2, 1, 70, 90, 8, 8, False, {"sinks": (2.0, 1.0), "mask": (70, 90), "dropout_p": 0.2, "seed": 4}),
    (0, 2, 1, 4, 4, 4, 4, False, {"sinks": (1.0, 2.0)}),
    (2, 2, 1, 0, 4, 4, 4, False, {"sinks": (1.0, 2.0)}),
    (1, 2, 1, 70, 40, 8, 8, False, {"dropout_p": 0.25, "seed": 7, "softcap": 2.0, "window": (9, 9), "alibi": (2,)}),
)


_SCALARS = ("scale", "kv_len", "dropout_p", "seed", "offset")


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Grouped heads, both diagonals, masks, kv_len, decoding, block edges, empty sizes, large scores, windows, caps, ALiBi."""
    del op
    for b, h, hkv, sq, sk, d, dv, causal, options in _SMALL:
        yield _case(direction, element, (b, h, sq, d), (b, hkv, sk, d), (b, hkv, sk, dv), causal, options, rng)
    large = _case(direction, element, (1, 2, 40, 16), (1, 1, 40, 16), (1, 1, 40, 8), True, {"size": 30.0}, rng)
    large.note, large.exact_gradient = "large scores", False
    yield large


def _case(
    direction: str,
    element: Element,
    q: Any,
    k: Any,
    v: Any,
    causal: bool,
    options: dict[str, Any],
    rng: np.random.Generator,
) -> Case:
    align, mask_element = options.get("align", CausalAlignment.BOTTOM_RIGHT), options.get("mask_element", Element.BOOL)
    left, right = options.get("window", (-1, -1))
    forward = AttentionDescriptor(
        q, k, v, causal, align, options.get("mask"), mask_element, element, left, right, options.get("softcap", 0.0),
        options.get("alibi"), "dropout_p" in options, "sinks" in options,
    )  # fmt: skip
    size = options.get("size", 1.0)
    tensors = {n: to_reference(round_to(rng.normal(0, size, s), element)) for n, s in (("q", q), ("k", k), ("v", v))}
    if forward.mask_shape is not None:
        added = rng.normal(0, 1, options["mask"])
        tensors["mask"] = (
            added > -0.5
            if forward.mask_element is Element.BOOL
            else to_reference(round_to(added, forward.mask_element))
        )
    if forward.alibi_shape is not None:
        tensors["alibi"] = to_reference(round_to(rng.uniform(0.01, 0.5, options["alibi"]), forward.lse_element))
    if forward.sinks:
        tensors["sinks"] = np.array(options["sinks"])
    scalars: dict[str, float | int] = {n: options[n] for n in _SCALARS if n in options}
    case = Case(forward, tensors, scalars)
    if direction == "forward":
        return case
    saved = reference(case)
    tensors |= {
        "dout": rng.normal(0, 1, saved["out"].value.shape),
        "out": saved["out"].value,
        "lse": saved["lse"].value,
    }
    return Case(forward.backward(), tensors, scalars)


class _Parts:
    """Scores, P and their conditioning of a case, in float64; K and V repeated for the heads of a group."""

    def __init__(self, case: Case, lse: Array | None) -> None:
        d = case.descriptor
        assert isinstance(d, (AttentionDescriptor, AttentionBackwardDescriptor))
        t = case.tensors
        self.q, k, v = (np.asarray(t[n], np.float64) for n in "qkv")
        self.group = self.q.shape[1] // k.shape[1] if k.shape[1] else 1
        dim, s_k, s_q = self.q.shape[3], k.shape[2], self.q.shape[2]
        self.scale = case.scalars.get("scale", 1 / np.sqrt(dim) if dim else 1.0)
        self.kv_len = int(case.scalars.get("kv_len", -1))
        self.kv_len = s_k if self.kv_len == -1 else self.kv_len
        self.k, self.v = (np.repeat(x[:, :, : self.kv_len], self.group, 1) for x in (k, v))
        scores = self.scale * (self.q @ self.k.swapaxes(2, 3))
        self.condition = 2 + np.sqrt(dim) * abs(self.scale) * (np.abs(self.q) @ np.abs(self.k).swapaxes(2, 3))
        self.slopes = np.ones_like(scores)
        self.bend = np.zeros_like(scores)  # of the slopes, per unit of the scores' conditioning
        if d.softcap:
            bent = np.tanh(scores / d.softcap)
            scores, self.slopes = d.softcap * bent, 1 - bent * bent
            self.bend = 2 * np.abs(bent) * (self.slopes * self.condition / d.softcap + 4)
            self.condition = self.condition + 4 * np.abs(scores)
        self.kept = np.ones_like(scores)  # what dropout multiplies weights by: rounded, and a product
        if d.dropout:
            p = float(case.scalars["dropout_p"])
            kept = mask((*self.q.shape[:3], s_k), p, int(case.scalars["seed"]), int(case.scalars.get("offset", 0)))
            self.kept = np.where(kept[..., : self.kv_len], 1 / (1 - p) if p < 1 else 0.0, 0.0)
            self.condition = self.condition + 2
        own = np.arange(float(s_q))[:, None] + (
            self.kv_len - s_q if d.causal_alignment is CausalAlignment.BOTTOM_RIGHT else 0
        )
        distance = np.arange(self.kv_len) - own
        if d.alibi_shape is not None:
            fall = np.broadcast_to(np.asarray(case.tensors["alibi"], np.float64), self.q.shape[:2])[
                ..., None, None
            ] * np.abs(distance)
            scores, self.condition = scores - fall, self.condition + 3 * np.abs(fall)
        if d.mask_shape is not None:
            added = np.asarray(t["mask"])
            added = np.where(added, 0.0, -np.inf) if d.mask_element is Element.BOOL else added
            added = np.broadcast_to(added, (*self.q.shape[:3], s_k))[..., : self.kv_len]
            scores = scores + added
            self.condition = self.condition + np.where(np.isinf(added), 0, np.abs(added))
        right = 0 if d.causal else d.window_right
        if right >= 0:
            scores = np.where(distance <= right, scores, -np.inf)
        if d.window_left >= 0:
            scores = np.where(distance >= -d.window_left, scores, -np.inf)
        sinks = np.asarray(t["sinks"], np.float64)[:, None] if d.sinks else np.full((1, 1), -np.inf)
        if lse is None:
            top = np.maximum(np.max(scores, -1, initial=-np.inf), sinks)
            base = np.where(np.isinf(top), 0, top)
            total = np.exp(scores - base[..., None]).sum(-1) + np.exp(sinks - base)
            self.lse = np.where(total > 0, base + np.log(np.where(total > 0, total, 1)), -np.inf)
        else:
            self.lse = np.asarray(lse, np.float64)
        # Bounds count a score's error as a relative one of its probability, which holds while it is small.
        spread = np.where(np.isinf(scores), 0, self.condition).max(-1, initial=0)
        far = spread * epsilon(d.element.compute) > 2.0**-4
        self.reach = np.where(far, 2 * LARGEST[d.element.compute], 0.0)
        shifted = scores - np.where(np.isinf(self.lse), 0, self.lse)[..., None]
        self.p = np.exp(shifted)
        self.condition = np.where(
            np.isinf(shifted), 0, self.condition + np.abs(np.where(np.isinf(shifted), 0, shifted))
        )
        gap = np.where(np.isneginf(sinks), 0, np.where(np.isinf(self.lse), 0, self.lse) - sinks)
        self.sink_share = np.where(np.isneginf(sinks), 0, np.exp(-gap)) * (np.abs(gap) + 2)


def _attention(case: Case) -> dict[str, Expected]:
    parts = _Parts(case, None)
    p, v, keys = parts.p, parts.v, max(parts.kv_len, 1)
    mean = (p * parts.condition).sum(-1, keepdims=True) + parts.sink_share[..., None]
    weights = p * parts.kept * (1 + (parts.condition + mean) / np.sqrt(keys))
    lse_size = 1 + (np.abs(np.where(np.isinf(parts.lse), 0, parts.lse)) + mean[..., 0]) / np.sqrt(keys)
    far = np.broadcast_to(parts.reach[..., None], (*parts.reach.shape, v.shape[3]))
    return {
        "out": Expected(np.where(far, 0, (p * parts.kept) @ v), weights @ np.abs(v), keys, far),
        "lse": Expected(parts.lse, lse_size, keys, parts.reach),
    }


def sink_gradients(dout: Array, out: Array, lse: Array, sinks: Array) -> Expected:
    """Of [B, H, S, Dv], [B, H, S] and [H]: -sum exp(sink - lse) rowsum(dout out)."""
    gap = np.where(np.isneginf(sinks)[:, None], -np.inf, sinks[:, None] - np.where(np.isneginf(lse), 0, lse))
    weights, far = np.exp(gap), np.abs(np.where(np.isinf(gap), 0, gap))
    terms = max(lse.shape[0] * lse.shape[2], 1)
    size = weights * np.abs(dout * out).sum(-1) * (1 + (np.sqrt(max(out.shape[3], 1)) + far + 4) / np.sqrt(terms))
    value = -(weights * (dout * out).sum(-1)).sum((0, 2))
    return Expected(value, size.sum((0, 2)), terms, lost=1 + terms + np.abs(dout * out).sum((0, 2, 3)))


def _attention_backward(case: Case) -> dict[str, Expected]:
    t = case.tensors
    dout, out = np.asarray(t["dout"], np.float64), np.asarray(t["out"], np.float64)
    parts = _Parts(case, t["lse"])
    p, q, k, v, group = parts.p, parts.q, parts.k, parts.v, parts.group
    size = parts.kept * (np.abs(dout) @ np.abs(v).swapaxes(2, 3)) + (np.abs(dout) * np.abs(out)).sum(-1, keepdims=True)
    ds = p * (parts.kept * (dout @ v.swapaxes(2, 3)) - (dout * out).sum(-1, keepdims=True)) * parts.slopes
    error = p * size * ((np.sqrt(max(v.shape[3], 1)) + parts.condition) * parts.slopes + parts.bend)
    used = p * parts.kept
    keys, rows, scale = max(parts.kv_len, 1), max(q.shape[2] * group, 1), abs(parts.scale)

    def per_kv_head(x: Array, like: Array) -> Array:
        full = np.zeros(like.shape)
        b, hkv, _, d = like.shape
        if full.size:
            full[:, :, : parts.kv_len] = x.reshape(b, hkv, group, parts.kv_len, d).sum(2)
        return full

    def over_rows(x: Array, y: Array, like: Array) -> Array:
        return per_kv_head(x.swapaxes(2, 3) @ y, like)

    far = parts.reach[..., None] + np.zeros_like(q)
    heads = parts.reach.max((1, 2), initial=0)[:, None, None, None]
    found = {
        "dq": Expected(parts.scale * (ds @ k), scale * ((p * size + error / np.sqrt(keys)) @ np.abs(k)), keys, far),
        "dk": Expected(
            parts.scale * over_rows(ds, q, t["k"]),
            scale * over_rows(p * size + error / np.sqrt(rows), np.abs(q), t["k"]),
            rows,
        ),
        "dv": Expected(
            over_rows(used, dout, t["v"]),
            over_rows(used * (1 + parts.condition / np.sqrt(rows)), np.abs(dout), t["v"]),
            rows,
        ),
    }
    for name in ("dk", "dv"):
        found[name].reach = heads + np.zeros_like(found[name].value)
    if case.descriptor.sinks:  # type: ignore[attr-defined]
        found["dsinks"] = sink_gradients(dout, out, parts.lse, np.asarray(t["sinks"], np.float64))
    return found


def reference(case: Case) -> dict[str, Expected]:
    """Outputs in float64."""
    with np.errstate(all="ignore"):
        return _attention(case) if isinstance(case.descriptor, AttentionDescriptor) else _attention_backward(case)


def forward_of(case: Case) -> Case:
    """The forward case of a backward one."""
    d = case.descriptor
    assert isinstance(d, AttentionBackwardDescriptor)
    desc = AttentionDescriptor(
        d.q_shape, d.k_shape, d.v_shape, d.causal, d.causal_alignment, d.mask_shape, d.mask_element, Element.F64,
        d.window_left, d.window_right, d.softcap, d.alibi_shape, d.dropout, d.sinks,
    )  # fmt: skip
    return Case(desc, {n: v for n, v in case.tensors.items() if n not in ("dout", "out", "lse")}, case.scalars)
