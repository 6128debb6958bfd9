"""Float64 reference of attention of packed sequences: each by the reference of attention."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from baracuda.describe.elements import Element
from baracuda.ops.attention import attention_ref
from baracuda.ops.attention.attention import AttentionBackwardDescriptor, AttentionDescriptor
from baracuda.ops.attention.attention_varlen import VarlenAttentionBackwardDescriptor, VarlenAttentionDescriptor
from baracuda.ops.attention.scores import CausalAlignment
from baracuda.prove.reference import Array, Case, Expected, round_to, to_reference

# Numbers of this share of the element's exponents are promised: products of products of larger ones may not fit.
EXPONENTS = 0.25

# heads, kv heads, dim, dim of v, lengths of queries, of keys, options
_SMALL: tuple[tuple[int, int, int, int, tuple[int, ...], tuple[int, ...], dict[str, Any]], ...] = (
    (2, 1, 8, 8, (5, 0, 70, 1), (7, 3, 66, 0), {"causal": True}),
    (2, 2, 5, 3, (3, 20), (90, 20), {"index_element": Element.I64}),
    (2, 1, 8, 4, (40, 35), (40, 80), {"causal": True, "window_left": 12, "softcap": 2.0, "alibi_shape": (2, 2)}),
    (4, 2, 4, 4, (9, 2), (5, 300), {"window_left": 6, "window_right": 2, "causal_alignment": CausalAlignment.TOP_LEFT}),
    (4, 2, 8, 4, (1, 1, 0, 1), (300, 5, 4, 700), {"causal": True, "window_left": 320, "alibi_shape": (4,)}),
    (2, 1, 20, 36, (2, 1), (600, 257), {"causal": True, "index_element": Element.I64}),
    (2, 1, 8, 4, (40, 0, 2), (33, 5, 600), {"causal": True, "sinks": True}),
    (2, 2, 8, 4, (1, 1), (300, 0), {"sinks": True, "softcap": 2.0}),
    (2, 1, 4, 4, (), (), {"sinks": True}),
    (1, 1, 4, 4, (0, 0), (0, 4), {}),
    (1, 1, 4, 4, (), (), {}),
)


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Empty and long sequences, grouped heads, windows, caps, ALiBi, few queries, no sequence."""
    for heads, kv_heads, d, dv, q_len, k_len, options in _SMALL:
        shapes = (sum(q_len), heads, d), (sum(k_len), kv_heads, d), (sum(k_len), kv_heads, dv)
        most = max(q_len, default=0), max(k_len, default=0)
        desc = VarlenAttentionDescriptor(*shapes, (len(q_len) + 1,), *most, element=element, **options)
        tensors = {n: to_reference(round_to(rng.normal(0, 1, s), element)) for n, s in zip("qkv", shapes, strict=True)}
        tensors["cu_seq_q"], tensors["cu_seq_k"] = (np.cumsum([0, *n]) for n in (q_len, k_len))
        if desc.alibi_shape is not None:
            tensors["alibi"] = to_reference(round_to(rng.uniform(0.01, 0.5, options["alibi_shape"]), desc.lse_element))
        if desc.sinks:
            tensors["sinks"] = to_reference(round_to(rng.normal(0, 2, heads), desc.lse_element))
        case = Case(desc, tensors)
        if direction == "backward":
            saved = reference(case)
            tensors |= {n: saved[n].value for n in ("out", "lse")} | {
                "dout": rng.normal(0, 1, saved["out"].value.shape)
            }
            case = Case(desc.backward(), tensors)
        yield case


_SHARED = ("causal", "causal_alignment", "element", "window_left", "window_right", "softcap")


def _sequence(case: Case, b: int) -> tuple[Case, slice, slice]:
    """A sequence as a case of attention, and where it lies among queries and keys."""
    d, t = case.descriptor, case.tensors
    assert isinstance(d, (VarlenAttentionDescriptor, VarlenAttentionBackwardDescriptor))
    q, k = (slice(*(int(x) for x in t[n][b : b + 2])) for n in ("cu_seq_q", "cu_seq_k"))
    tensors = {
        n: t[n][at].swapaxes(0, 1)[None] for n, at in (("q", q), ("k", k), ("v", k), ("dout", q), ("out", q)) if n in t
    }
    if "lse" in t:
        tensors["lse"] = t["lse"][None, :, q]
    alibi = d.alibi_shape and d.alibi_shape[-1:]
    if alibi is not None:
        tensors["alibi"] = t["alibi"] if t["alibi"].ndim == 1 else t["alibi"][b]
    sinks = {}
    if d.sinks and "lse" not in t:  # which gradients know by lse
        tensors["sinks"], sinks = t["sinks"], {"sinks": True}
    kind: Any = AttentionDescriptor if isinstance(d, VarlenAttentionDescriptor) else AttentionBackwardDescriptor
    shapes = {n + "_shape": tensors[n].shape for n in "qkv"}
    shared = {n: getattr(d, n) for n in _SHARED}
    return Case(kind(**shapes, **shared, **sinks, alibi_shape=alibi), tensors, case.scalars), q, k


def reference(case: Case) -> dict[str, Expected]:
    """Outputs in float64."""
    d = case.descriptor
    assert isinstance(d, (VarlenAttentionDescriptor, VarlenAttentionBackwardDescriptor))
    backward = isinstance(d, VarlenAttentionBackwardDescriptor)
    shapes: dict[str, Any] = (
        {"dq": d.q_shape, "dk": d.k_shape, "dv": d.v_shape} if backward else {"out": d.out_shape, "lse": d.lse_shape}
    )
    values = {n: np.zeros(s) for n, s in shapes.items()}
    sizes, terms = {n: np.zeros(s) for n, s in shapes.items()}, dict.fromkeys(shapes, 1)
    far = {n: np.zeros(s) for n, s in shapes.items()}
    parts: list[tuple[str, Any, Expected]] = []
    for b in range(len(case.tensors["cu_seq_q"]) - 1):
        piece, q, k = _sequence(case, b)
        for name, expected in attention_ref.reference(piece).items():
            terms[name] = max(terms[name], expected.terms)
            parts.append((name, k if name in ("dk", "dv") else q, expected))
    for name, at, expected in parts:
        share = np.sqrt(expected.terms / terms[name])
        to: Array
        for to, x in (
            (values[name], expected.value), (sizes[name], share * expected.magnitude), (far[name], expected.reach)
        ):  # fmt: skip
            if name == "lse":
                to[:, at] = x[0]
            else:
                to[at] = x[0].swapaxes(0, 1)
    found = {n: Expected(values[n], sizes[n], terms[n], far[n]) for n in shapes}
    if backward and d.sinks:
        t = case.tensors
        dout, out = (np.asarray(t[n], np.float64).swapaxes(0, 1)[None] for n in ("dout", "out"))
        found["dsinks"] = attention_ref.sink_gradients(dout, out, t["lse"][None], np.asarray(t["sinks"], np.float64))
    return found


def forward_of(case: Case) -> Case:
    """The forward case of a backward one."""
    d = case.descriptor
    assert isinstance(d, VarlenAttentionBackwardDescriptor)
    fields = {n: getattr(d, n) for n in VarlenAttentionBackwardDescriptor.__dataclass_fields__}
    desc = VarlenAttentionDescriptor(**fields | {"element": Element.F64})
    return Case(desc, {n: v for n, v in case.tensors.items() if n not in ("dout", "out", "lse")}, case.scalars)
