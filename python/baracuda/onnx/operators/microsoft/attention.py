"""Attention of transformers, as ONNX Runtime's optimizers write it."""

from __future__ import annotations

import itertools
from math import inf
from typing import Any

from baracuda import functional as F
from baracuda.onnx.call import Call
from baracuda.onnx.operators.recurrent import join_heads, split_heads
from baracuda.onnx.operators.table import arange, cast, operator, reshaped, swapped, zeros


def attend(c: Call, q: Any, k: Any, v: Any, biases: list[Any], past: int | None) -> Any:
    """Softmax(q k / sqrt(d) + biases) v of heads; causal behind `past` keys, unless that is None."""
    scale = c.get("scale", 0.0) or None
    if past is not None:
        if not biases and past == 0 and q.shape[2] == k.shape[2]:
            return F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=scale)
        rows, columns = q.shape[2], k.shape[2]
        seen = F.le(arange(columns), F.add(arange(rows), past).unsqueeze(1))
        biases = [*biases, cast(F.where(seen, 0.0, -inf), q.element)]
    bias = None
    for one in biases:
        bias = one if bias is None else F.add(bias, one)
    return F.scaled_dot_product_attention(q, k, v, bias, scale=scale)


def padding_bias(c: Call, mask: Any, columns: int, element: Any) -> Any:
    """What a mask of keys adds to scores: of tokens (batch, keys), of scores (batch, queries, keys), or lengths (batch,)."""
    if mask.ndim == 1:
        on = F.lt(arange(columns), mask.unsqueeze(1))
    elif mask.ndim in (2, 3):
        on = F.ne(mask, 0)
    else:
        c.refuse(f"a mask of {mask.ndim} dimensions", "lengths, a mask of tokens, or one of scores")
    on = on.unsqueeze(1).unsqueeze(1) if on.ndim == 2 else on.unsqueeze(1)
    least = c.get("mask_filter_value", -10000.0)
    return cast(F.where(on, 0.0, max(least, -65504.0) if element.is_half else least), element)


def _heads_of(x: Any, heads: int) -> Any:
    return x if x.ndim == 4 else split_heads(x, heads)


@operator("com.microsoft.Attention")
def _attention(
    c: Call, x: Any, w: Any, bias: Any = None, mask: Any = None, past: Any = None, more: Any = None, *rest: Any
) -> Any:
    """One product for queries, keys and values; and the keys and values for the next call."""
    if any(r is not None for r in rest) or c.get("do_rotary", 0) or c.get("past_present_share_buffer", 0):
        c.refuse("do_rotary or a shared buffer for the past", "neither")
    heads, sizes = c.get("num_heads"), list(c.get("qkv_hidden_sizes") or [w.shape[1] // 3] * 3)
    rows = F.linear(x, w.T, bias)
    cuts = [0, sizes[0], sizes[0] + sizes[1], sum(sizes)]
    q, k, v = (split_heads(rows[:, :, a:b], heads) for a, b in itertools.pairwise(cuts))
    before = 0
    if past is not None:
        before = past.shape[3]
        k, v = F.cat([past[0], k], 2), F.cat([past[1], v], 2)
    if mask is not None and mask.ndim == 1 and mask.shape[0] != x.shape[0]:
        c.refuse("a mask of starts and ends", "lengths, or a mask of tokens")
    biases = [] if mask is None else [padding_bias(c, mask, k.shape[2], q.element)]
    biases += [] if more is None else [more]
    y = attend(c, q, k, v, biases, before if c.get("unidirectional", 0) else None)
    return join_heads(y), F.stack([k, v], 0) if c.wants(1) else None


@operator("com.microsoft.MultiHeadAttention")
def _multi_head(
    c: Call, q: Any, k: Any = None, v: Any = None, bias: Any = None, mask: Any = None, more: Any = None,
    past_k: Any = None, past_v: Any = None, *rest: Any,
) -> Any:  # fmt: skip
    if k is None or v is None or k.ndim == 5 or any(r is not None for r in rest):
        c.refuse("packed queries, keys and values, or a shared buffer for the past", "them apart")
    heads = c.get("num_heads")
    if bias is not None:
        own, theirs = q.shape[-1], k.shape[-1] if k.ndim == 3 else k.shape[1] * k.shape[3]
        q = F.add(q, bias[:own])
        if k.ndim == 3:
            k, v = F.add(k, bias[own : own + theirs]), F.add(v, bias[own + theirs :])
    q, k, v = (_heads_of(t, heads) for t in (q, k, v))
    before = 0
    if past_k is not None:
        before = past_k.shape[2]
        k, v = F.cat([past_k, k], 2), F.cat([past_v, v], 2)
    biases = [] if mask is None else [padding_bias(c, mask, k.shape[2], q.element)]
    biases += [] if more is None else [more]
    y = attend(c, q, k, v, biases, before if c.get("unidirectional", 0) else None)
    present = tuple(F.copy(t) if c.wants(i) else None for i, t in ((1, k), (2, v)))
    return join_heads(y), *present


@operator("com.microsoft.RotaryEmbedding")
def _rotary(c: Call, x: Any, places: Any, cos: Any, sin: Any) -> Any:
    if c.get("scale", 1.0) != 1 or c.get("is_packed_batching", 0):
        c.refuse("a scale or packed batches", "neither")
    dim = c.get("rotary_embedding_dim", 0)
    heads = c.get("num_heads", 0) or (x.shape[-1] // (dim or 2 * cos.shape[1]) if x.ndim == 3 else 0)
    seen = _heads_of(x, heads)
    batch, tokens = seen.shape[0], seen.shape[2]
    if places.numel == 1 and places.ndim == 1:  # where the first token stands
        places = F.add(arange(tokens), places)
        places = places.unsqueeze(0).broadcast_to(batch, tokens)
    y = F.rope(
        seen, cos, sin, positions=cast(places, "i64"), rotary_dim=dim or None, interleaved=bool(c.get("interleaved", 0))
    )
    return y if x.ndim == 4 else join_heads(y)


@operator("com.microsoft.GroupQueryAttention")
def _grouped(
    c: Call, q: Any, k: Any, v: Any, past_k: Any, past_v: Any, last: Any, total: Any, cos: Any = None, sin: Any = None,
    *rest: Any,
) -> Any:  # fmt: skip
    """Causal attention over a cache: each batch has its own length, of which `last` is one less."""
    heads, own = c.get("num_heads"), c.get("kv_num_heads")
    if any(r is not None for r in rest) or c.get("smooth_softmax", 0) > 0:
        c.refuse("positions, biases or sinks as inputs, or smooth_softmax", "none of these")
    if k is None:  # packed
        dim = q.shape[2] // (heads + 2 * own)
        cuts = [0, heads * dim, (heads + own) * dim, (heads + 2 * own) * dim]
        q, k, v = (q[:, :, a:b] for a, b in itertools.pairwise(cuts))
    q, k, v = split_heads(q, heads), split_heads(k, own), split_heads(v, own)
    batch, tokens, held = q.shape[0], q.shape[2], 0 if past_k is None else past_k.shape[2]
    whole = c.number(6)
    lengths = F.add(cast(reshaped(last, (batch,)), "i64"), 1)
    first = zeros((batch,), dtype="i64") if whole == tokens else F.sub(lengths, tokens)
    places = F.add(first.unsqueeze(1), arange(tokens))
    if c.get("do_rotary", 0):
        turned = bool(c.get("rotary_interleaved", 0))
        q, k = (F.rope(t, cos, sin, positions=places, rotary_dim=2 * cos.shape[1], interleaved=turned) for t in (q, k))
    size = max(held, whole)
    k, v = (_appended(p, t, places, size) for p, t in ((past_k, k), (past_v, v)))
    return join_heads(_over_cache(c, q, k, v, places)), k, v


def _appended(past: Any, new: Any, places: Any, size: int) -> Any:
    """The cache with new rows at their places."""
    batch, heads, tokens, dim = new.shape
    if past is None:
        room = zeros((batch, heads, size, dim), dtype=new.element)
    else:
        room = F.pad(past, (0, 0, 0, size - past.shape[2])) if size > past.shape[2] else past
    at = reshaped(places, (batch, 1, tokens, 1)).broadcast_to(batch, heads, tokens, dim)
    return F.scatter(room, 2, F.copy(at), new)


def _over_cache(c: Call, q: Any, k: Any, v: Any, places: Any) -> Any:
    """Attention of queries at their places over all keys up to there, or those of a window."""
    keys, window = arange(k.shape[2]), c.get("local_window_size", -1)
    ahead = F.sub(keys, reshaped(places, (places.shape[0], 1, places.shape[1], 1)))
    seen = F.le(ahead, 0)
    if window > 0:
        seen = F.logical_and(seen, F.gt(ahead, -window))
    bias = cast(F.where(seen, 0.0, -inf), q.element)
    scale, cap = c.get("scale", 0.0) or None, c.get("softcap", 0.0)
    grouped = q.shape[1] != k.shape[1]
    if not cap:
        return F.scaled_dot_product_attention(q, k, v, bias, scale=scale, enable_gqa=grouped)
    if grouped:
        k, v = (F.repeat_interleave(t, q.shape[1] // t.shape[1], 1) for t in (k, v))
    scores = F.mul(F.matmul(q, swapped(k, 2, 3)), scale or q.shape[3] ** -0.5)
    scores = F.mul(F.tanh(F.div(scores, cap)), cap)
    return F.matmul(F.softmax(F.add(scores, bias), -1), v)
