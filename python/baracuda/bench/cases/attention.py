"""Attention forward and backward, decoding from dense and paged caches, rotary embedding."""

# torch's stubs are not fought here.
# mypy: disable-error-code="misc, arg-type"
from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F

import baracuda as bc
from baracuda.bench.case import Case, Sides
from baracuda.bench.cases._tools import SIZE, Add, bind, collector, noise, plan, space, there, wide


def _heads(element: str, queries: int, keys: int, heads: int, kv_heads: int, dim: int) -> tuple[torch.Tensor, ...]:
    return (
        noise(1, heads, queries, dim, element=element),
        noise(1, kv_heads, keys, dim, element=element, seed=1),
        noise(1, kv_heads, keys, dim, element=element, seed=2),
    )


def _attention(element: str, queries: int, keys: int, *, causal: bool) -> Sides:
    q, k, v = _heads(element, queries, keys, 8, 2, 64)
    y = torch.zeros_like(q)
    made = plan(bc.AttentionDescriptor(tuple(q.shape), tuple(k.shape), tuple(v.shape), causal, element=element))
    ours = bind(made, q=q, k=k, v=v, out=y, lse=wide(1, 8, queries))
    return Sides.calls(
        ours, lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True), made, lambda: [y]
    )


def _window(element: str, n: int) -> Sides:
    q, k, v = _heads(element, n, n, 8, 2, 64)
    y, left, at = torch.zeros_like(q), n // 8, torch.arange(n)
    shapes = (tuple(q.shape), tuple(k.shape), tuple(v.shape))
    made = plan(bc.AttentionDescriptor(*shapes, True, window_left=left, save_lse=False, element=element))
    mask = there((at[:, None] >= at) & (at[:, None] - at <= left))
    return Sides.calls(
        bind(made, q=q, k=k, v=v, out=y),
        lambda: F.scaled_dot_product_attention(q, k, v, mask, enable_gqa=True),
        made,
        lambda: [y],
    )


def _packed(element: str, lengths: tuple[int, ...]) -> Sides:
    total = sum(lengths)
    q, k, v = (noise(total, heads, 64, element=element, seed=seed) for heads, seed in ((8, 1), (2, 2), (2, 3)))
    y, places = torch.zeros_like(q), torch.tensor([0, *lengths]).cumsum(0)
    cu, most = there(places.to(torch.int32)), max(lengths)
    shapes = (tuple(q.shape), tuple(k.shape), tuple(v.shape), tuple(cu.shape), most, most)
    made = plan(bc.VarlenAttentionDescriptor(*shapes, causal=True, save_lse=False, element=element))
    parts = [[x[a:b].transpose(0, 1) for x in (q, k, v)] for a, b in pairwise(places.tolist())]

    def peer() -> torch.Tensor:
        each = (F.scaled_dot_product_attention(*part, is_causal=True, enable_gqa=True) for part in parts)
        return torch.cat([y.transpose(0, 1) for y in each])

    return Sides.calls(bind(made, q=q, k=k, v=v, cu_seq_q=cu, cu_seq_k=cu, out=y), peer, made, lambda: [y])


def _merge(element: str, rows: int) -> Sides:
    a, b = (noise(rows, 64, element=element, seed=seed) for seed in (1, 2))
    la, lb = (wide(rows).copy_(noise(rows, seed=seed)) for seed in (3, 4))
    y, lse = torch.zeros_like(a), wide(rows)
    made = plan(bc.AttentionMergeDescriptor((rows, 64), element))

    def peer() -> torch.Tensor:
        total = torch.logaddexp(la, lb)
        return (a * (la - total).exp()[:, None] + b * (lb - total).exp()[:, None]).to(a.dtype)

    return Sides.calls(bind(made, out_a=a, lse_a=la, out_b=b, lse_b=lb, out=y, lse=lse), peer, made, lambda: [y])


def _merge_backward(element: str, rows: int) -> Sides:
    a, b, dy = (noise(rows, 64, element=element, seed=seed) for seed in (1, 2, 3))
    la, lb, dl = (wide(rows).copy_(noise(rows, seed=seed)) for seed in (4, 5, 6))
    da, db, dla, dlb = torch.zeros_like(a), torch.zeros_like(b), wide(rows), wide(rows)
    made = plan(bc.AttentionMergeBackwardDescriptor((rows, 64), element))
    leaves = [x.detach().requires_grad_() for x in (a, la, b, lb)]
    total = torch.logaddexp(leaves[1], leaves[3])
    out = leaves[0] * (leaves[1] - total).exp()[:, None] + leaves[2] * (leaves[3] - total).exp()[:, None]
    results = (out.to(a.dtype), total)

    def peer() -> Any:
        return torch.autograd.grad(results, leaves, (dy, dl), retain_graph=True)

    given = {"dout": dy, "dlse": dl, "out_a": a, "lse_a": la, "out_b": b, "lse_b": lb}
    ours = bind(made, **given, dout_a=da, dlse_a=dla, dout_b=db, dlse_b=dlb)
    return Sides.calls(ours, peer, made, lambda: [da, dla, db, dlb])


def _paged(element: str, lengths: list[int], size: int) -> Sides:
    batch, most = len(lengths), -(-max(lengths) // size)
    q = noise(batch, 1, 8, 64, element=element)
    k, v = (noise(batch * most, size, 2, 64, element=element, seed=seed) for seed in (1, 2))
    order = torch.randperm(batch * most, generator=torch.Generator().manual_seed(3))
    table, kv_len = there(order.view(batch, most).int()), there(torch.tensor(lengths, dtype=torch.int32))
    y, flat = torch.zeros_like(q), table.flatten()
    mask = (torch.arange(most * size, device=q.device) < kv_len[:, None])[:, None, None]
    shapes = (tuple(k.shape), tuple(v.shape), tuple(table.shape), tuple(q.shape))
    made = plan(bc.PagedAttentionDescriptor(*shapes, element=element))
    gathered = [space(*x.shape, element=element) for x in (k, v)]

    def peer() -> torch.Tensor:
        for pages, rows in zip((k, v), gathered, strict=True):
            torch.index_select(pages, 0, flat, out=rows)
        keys, values = (x.view(batch, most * size, 2, 64).transpose(1, 2) for x in gathered)
        out = F.scaled_dot_product_attention(q.transpose(1, 2), keys, values, attn_mask=mask, enable_gqa=True)
        return out.transpose(1, 2)

    ours = bind(made, q=q, k_pages=k, v_pages=v, page_table=table, kv_len=kv_len, out=y)
    return Sides.calls(ours, peer, made, lambda: [y])


def _paged_append(element: str, lengths: list[int], size: int) -> Sides:
    batch, most = len(lengths), -(-(max(lengths) + 1) // size)
    k, v = (noise(batch, 1, 8, 128, element=element, seed=seed) for seed in (1, 2))
    ours, theirs = ([space(batch * most, size, 8, 128, element=element) for _ in range(2)] for _ in range(2))
    order = torch.randperm(batch * most, generator=torch.Generator().manual_seed(3)).view(batch, most)
    kv_len = torch.tensor(lengths)
    page, line = there(order.gather(1, (kv_len // size)[:, None])[:, 0]), there(kv_len % size)
    made = plan(bc.PagedAppendDescriptor(*(tuple(x.shape) for x in (*ours, order, k, v)), element=element))

    def peer() -> list[torch.Tensor]:
        for pages, x in zip(theirs, (k, v), strict=True):
            pages.index_put_((page, line), x[:, 0])
        return theirs

    places = {"page_table": there(order.int()), "kv_len": there(kv_len.int())}
    return Sides.calls(bind(made, k=k, v=v, **places, k_pages=ours[0], v_pages=ours[1]), peer, made, lambda: ours)


def _attention_backward(element: str, n: int) -> Sides:
    q, k, v = _heads(element, n, n, 8, 2, 64)
    y, dy, lse = torch.zeros_like(q), noise(*q.shape, element=element, seed=3), wide(1, 8, n)
    shapes = (tuple(q.shape), tuple(k.shape), tuple(v.shape))
    bind(plan(bc.AttentionDescriptor(*shapes, True, element=element)), q=q, k=k, v=v, out=y, lse=lse)()
    gradients = [torch.zeros_like(t) for t in (q, k, v)]
    made = plan(bc.AttentionBackwardDescriptor(*shapes, True, element=element))
    names = dict(zip(("dq", "dk", "dv"), gradients, strict=True))
    ours = bind(made, dout=dy, q=q, k=k, v=v, out=y, lse=lse, **names)
    leaves = [t.clone().requires_grad_() for t in (q, k, v)]
    result = F.scaled_dot_product_attention(*leaves, is_causal=True, enable_gqa=True)

    def peer() -> list[torch.Tensor]:
        return list(torch.autograd.grad(result, leaves, dy, retain_graph=True))

    return Sides.calls(ours, peer, made, lambda: gradients)


def _rope(element: str, heads: int, length: int, dim: int) -> Sides:
    x, y = noise(1, heads, length, dim, element=element), space(1, heads, length, dim, element=element)
    angles = there(torch.outer(torch.arange(length), 10000.0 ** -(torch.arange(0, dim, 2) / dim)))
    cos, sin = angles.cos(), angles.sin()
    c, s = cos.to(x.dtype), sin.to(x.dtype)
    made = plan(bc.RopeDescriptor(tuple(x.shape), length, element=element))

    def peer() -> torch.Tensor:
        a, b = x.chunk(2, dim=-1)
        return torch.cat((a * c - b * s, b * c + a * s), dim=-1)

    return Sides.calls(bind(made, x=x, cos=cos, sin=sin, y=y), peer, made, lambda: [y])


def _norm_rope(element: str, heads: int, length: int, dim: int) -> Sides:
    x, y = noise(1, heads, length, dim, element=element), space(1, heads, length, dim, element=element)
    w = noise(dim, element=element)
    angles = there(torch.outer(torch.arange(length), 10000.0 ** -(torch.arange(0, dim, 2) / dim)))
    cos, sin = angles.cos(), angles.sin()
    c, s = cos.to(x.dtype), sin.to(x.dtype)
    made = plan(bc.RmsNormRopeDescriptor(tuple(x.shape), length, element=element, save=False))

    def peer() -> torch.Tensor:
        a, b = torch.nn.functional.rms_norm(x, (dim,), w, 1e-5).chunk(2, dim=-1)
        return torch.cat((a * c - b * s, b * c + a * s), dim=-1)

    return Sides.calls(bind(made, x=x, weight=w, cos=cos, sin=sin, y=y, eps=1e-5), peer, made, lambda: [y])


def _dense_cases(add: Add, e: str, quick: bool) -> None:
    size, half, n = SIZE[e], e == "bf16", 64 if quick else 2048
    pairs, qkv = 8 * n * n / 2 * 64, (8 + 2 + 2) * n * 64 * size
    add("attention causal forward", "attention", e, (8, n, 64), partial(_attention, e, n, n, causal=True),
        "scaled_dot_product_attention(enable_gqa)", bytes=qkv + 8 * n * 64 * size, flops=4 * pairs, ceiling=e,
        required=1.3 if half else 1.0, goal=3 if half else 1.5)  # fmt: skip
    add("attention in a window", "attention", e, (8, n, 64), partial(_window, e, n),
        "scaled_dot_product_attention(attn_mask)", bytes=qkv + 8 * n * 64 * size, flops=pairs, ceiling=e,
        required=3.0)  # fmt: skip
    add("attention causal backward", "attention", e, (8, n, 64), partial(_attention_backward, e, n),
        "autograd of scaled_dot_product_attention", bytes=2 * qkv + 2 * 8 * n * 64 * size, flops=10 * pairs,
        ceiling=e, required=0.8, goal=1.5 if half else 1.2)  # fmt: skip
    add("decode 1 query", "attention", e, (8, 1, n, 64), partial(_attention, e, 1, n, causal=False),
        "scaled_dot_product_attention(enable_gqa)", bytes=4 * n * 64 * size, flops=4 * 8 * n * 64,
        ceiling="read_l3",
        required=16 if half else 2.1, goal=25 if half else 2.5)  # fmt: skip


def _partial_cases(add: Add, e: str, quick: bool) -> None:
    size = SIZE[e]
    lengths = (20, 5, 40) if quick else (800, 100, 3, 400, 900, 250)
    total, used = sum(lengths), 4 * sum(x * x for x in lengths) * 64
    add("attention of packed sequences", "attention", e, (total, 8, 64), partial(_packed, e, lengths),
        "scaled_dot_product_attention of each and cat", bytes=20 * total * 64 * size, flops=4 * used, ceiling=e,
        required=1.0)  # fmt: skip
    rows = 64 if quick else 8 * 2048
    add("attention_merge", "attention", e, (rows, 64), partial(_merge, e, rows), "logaddexp, exp and products",
        bytes=3 * rows * (64 * size + 4), flops=3 * rows * 64, ceiling="memory", required=2.0)  # fmt: skip
    add("attention_merge backward", "attention", e, (rows, 64), partial(_merge_backward, e, rows),
        "autograd of logaddexp, exp and products", bytes=rows * (5 * 64 * size + 20), flops=5 * rows * 64,
        ceiling="memory", required=2.0)  # fmt: skip


def _cache_cases(add: Add, e: str, quick: bool) -> None:
    size = SIZE[e]
    cached = [20, 1, 47] if quick else list(range(1100, 2048, 119))
    keys = sum(cached) * 2 * 64
    add("decode over a paged cache", "attention", e, (len(cached), 8, max(cached), 64),
        partial(_paged, e, cached, 16), "index_select out=, scaled_dot_product_attention(attn_mask, enable_gqa)",
        bytes=2 * keys * size, flops=4 * keys * 4, ceiling="memory", required=2.0)  # fmt: skip
    cached = [20, 1, 47] if quick else list(range(100, 2100, 32))
    add("append to a paged cache", "attention", e, (len(cached), 8, 128), partial(_paged_append, e, cached, 16),
        "index_put_ of keys and of values", bytes=4 * len(cached) * 8 * 128 * size, ceiling="memory",
        required=1.0)  # fmt: skip


def _rope_cases(add: Add, e: str, quick: bool) -> None:
    size, half = SIZE[e], e == "bf16"
    heads, length, dim = (4, 32, 64) if quick else (32, 2048, 128)
    numel = heads * length * dim
    add("rope", "rope", e, (heads, length, dim), partial(_rope, e, heads, length, dim), "chunk, products and cat",
        bytes=2 * numel * size, flops=3 * numel, ceiling="memory", required=1 if half else 2, goal=4)  # fmt: skip
    add("rms_norm_rope", "rope", e, (heads, length, dim), partial(_norm_rope, e, heads, length, dim),
        "rms_norm, chunk, products and cat", bytes=2 * numel * size, flops=7 * numel, ceiling="memory",
        required=None, goal=None)  # fmt: skip


def cases(quick: bool) -> list[Case]:
    """Attention and rope of the speed table, and what else there is of them."""
    out, add = collector()

    for e in ("f32", "bf16"):
        for of in (_dense_cases, _partial_cases, _cache_cases, _rope_cases):
            of(add, e, quick)
    return out
