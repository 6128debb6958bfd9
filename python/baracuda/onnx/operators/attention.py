"""Attention, and positions of its queries and keys."""

from __future__ import annotations

from math import inf
from typing import Any

from baracuda import functional as F
from baracuda.onnx.call import Call
from baracuda.onnx.operators.recurrent import join_heads, split_heads
from baracuda.onnx.operators.table import arange, cast, element_of, operator, reshaped, swapped


@operator("RotaryEmbedding")
def _rope(c: Call, x: Any, cos: Any, sin: Any, positions: Any = None) -> Any:
    if positions is None:  # of each token its own row
        positions = arange(cos.shape[0] * cos.shape[1]).reshape(*cos.shape[:2])
        cos, sin = (reshaped(t, (-1, t.shape[2])) for t in (cos, sin))
    seen = x if x.ndim == 4 else split_heads(x, c.get("num_heads", 0))
    dim = c.get("rotary_embedding_dim", 0) or None
    y = F.rope(seen, cos, sin, positions=positions, rotary_dim=dim, interleaved=bool(c.get("interleaved", 0)))
    return y if x.ndim == 4 else join_heads(y)


def with_mask(mask: Any, columns: int, element: Any) -> Any:
    """What a mask adds to scores: -inf where it is false; keys that it says nothing of are not seen."""
    behind = columns - mask.shape[-1]
    if mask.element.is_float:
        mask = cast(mask, element)
        return F.pad(mask, (0, behind), "constant", -inf) if behind else mask
    mask = F.pad(mask, (0, behind)) if behind else mask
    return cast(F.where(mask, 0.0, -inf), element)


def _seen(c: Call, rows: int, columns: int, offset: Any, used: Any) -> Any:
    """Which keys each query may see, where something limits that; else None. Queries begin `offset` behind the keys."""
    keys, queries = arange(columns), arange(rows).unsqueeze(1)
    if isinstance(offset, int):
        ahead = F.sub(keys, F.add(queries, offset))
    else:
        ahead = F.sub(keys, F.add(queries, reshaped(cast(offset, "i64"), (-1, 1, 1, 1))))
    low, high = c.get("left_window_size", -1), c.get("right_window_size", -1)
    limits = []
    if c.get("is_causal", 0):
        limits.append(F.le(ahead, 0))
    if low >= 0:
        limits.append(F.ge(ahead, -low))
    if high >= 0:
        limits.append(F.le(ahead, high))
    if used is not None:
        limits.append(F.lt(keys, reshaped(cast(used, "i64"), (-1, 1, 1, 1))))
    found = None
    for limit in limits:
        found = limit if found is None else F.logical_and(found, limit)
    return found


def _steps(c: Call, q: Any, k: Any, v: Any, mask: Any, past: int | None, used: Any) -> Any:
    """The result and the scores that are asked for, by products and a softmax."""
    element, rows, columns = q.element, q.shape[2], k.shape[2]
    if q.shape[1] != k.shape[1]:
        k, v = (F.repeat_interleave(x, q.shape[1] // k.shape[1], 1) for x in (k, v))
    half = float(element.numpy.type((c.get("scale") or q.shape[3] ** -0.5) ** 0.5))
    scores = F.matmul(F.mul(q, half), swapped(F.mul(k, half), 2, 3))
    if cap := c.get("softcap", 0.0):
        scores = F.mul(F.tanh(F.div(scores, cap)), cap)
    offset = past if past is not None else 0 if used is None else F.sub(used, rows)
    biases = [] if mask is None else [with_mask(mask, columns, element)]
    seen = _seen(c, rows, columns, offset, used)
    if seen is not None:
        biases.append(cast(F.where(seen, 0.0, -inf), element))
    biased, bias = scores, None
    for one in biases:
        bias = one if bias is None else F.add(bias, one)
    biased = scores if bias is None else F.add(scores, bias)
    kind = c.get("softmax_precision")
    weights = F.softmax(biased if kind is None else cast(biased, element_of(c, kind)), -1)
    if bias is not None:  # queries that see nothing
        weights = F.where(F.eq(F.amax(bias, -1, True), -inf), 0.0, weights)
    shown = {2: biased, 3: weights}.get(c.get("qk_matmul_output_mode", 0), scores)
    return F.matmul(cast(weights, element), v), cast(shown, element)


@operator("Attention")
def _attention(c: Call, q: Any, k: Any, v: Any, *rest: Any) -> Any:
    mask, past_k, past_v, used = (*rest, None, None, None, None)[:4]
    flat = q.ndim == 3
    if flat:
        heads = c.get("q_num_heads"), c.get("kv_num_heads"), c.get("kv_num_heads")
        q, k, v = (split_heads(x, h) for x, h in zip((q, k, v), heads, strict=True))
    if past_k is not None:
        k, v = F.cat([past_k, k], 2), F.cat([past_v, v], 2)
    causal, scores = bool(c.get("is_causal", 0)), None
    options = ("softcap", "softmax_precision", "left_window_size", "right_window_size")
    other = used is not None or c.wants(3) or any(c.get(o, 0) not in (0, 0.0, -1) for o in options)
    other |= causal and (past_k is not None or mask is not None)
    if other or (mask is not None and mask.shape[-1] != k.shape[2]):
        y, scores = _steps(c, q, k, v, mask, None if past_k is None else past_k.shape[2], used)
    else:
        grouped = q.shape[1] != k.shape[1]
        y = F.scaled_dot_product_attention(q, k, v, mask, is_causal=causal, scale=c.get("scale"), enable_gqa=grouped)
    y = join_heads(y) if flat else y
    present = tuple(F.copy(x) if c.wants(i) else x for i, x in ((1, k), (2, v)))
    return y, *present, scores


@operator("ai.onnx.preview.FlexAttention")
def _flex_attention(c: Call, q: Any, k: Any, v: Any) -> Any:
    """Products and a softmax, with functions of scores and of weights between them."""
    if q.shape[1] != k.shape[1]:
        k, v = (F.repeat_interleave(x, q.shape[1] // k.shape[1], 1) for x in (k, v))
    kind = q.element
    q, k, v = (cast(x, "f32") if x.element.is_half else x for x in (q, k, v))
    scores = F.mul(F.matmul(q, swapped(k, 2, 3)), c.get("scale") or q.shape[3] ** -0.5)
    scores = c.get("score_mod")(scores)[0] if c.get("score_mod") else scores
    weights = F.softmax(scores, -1)
    weights = c.get("prob_mod")(weights)[0] if c.get("prob_mod") else weights
    return cast(F.matmul(weights, v), kind)
