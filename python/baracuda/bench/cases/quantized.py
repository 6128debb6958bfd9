"""Quantized weights, activations and caches, beside what torch makes of the same codes."""

# torch's stubs are not fought here.
# mypy: disable-error-code="misc, arg-type"
from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F

import baracuda as bc
from baracuda import functional
from baracuda.bench.case import Case, Sides, Statement
from baracuda.bench.cases._tools import SIZE, Add, bind, collector, noise, plan, space, there
from baracuda.ops.quant.quant import format_of

_ROTATED = 4  # weights that are gone through in turn, so that none stays in the cache
_BITS = {"q4_0": 4.5, "q4_k": 4.5, "q6_k": 6.5625, "q8_0": 8.5}  # of a value


def _blocks(kind: str, element: str, rows: int, n: int) -> Sides:
    x = noise(rows, n, element=element)
    weights = [functional.quantize(noise(n, n, seed=i + 1), kind) for i in range(_ROTATED)]
    values = [functional.dequantize(w, kind).to(x.dtype) for w in weights]
    ys, zs = ([space(rows, n, element=element) for _ in weights] for _ in range(2))
    made = plan(bc.QuantMatmulDescriptor((rows, n), (n, n), format_of("bench", kind), element))
    bound = [bind(made, x=x, w=w, y=y) for w, y in zip(weights, ys, strict=True)]

    def ours() -> None:
        for call in bound:
            call()

    def peer() -> list[torch.Tensor]:
        for w, z in zip(values, zs, strict=True):
            torch.mm(x, w.T, out=z)
        return zs

    return Sides.calls(ours, peer, made, lambda: ys)


def _linear(rows: int, n: int) -> Sides:
    x, y = noise(rows, n, element="bf16"), space(rows, n, element="bf16")
    w, scale = functional.dynamic_quantize(noise(n, n, seed=1), (1, -1))
    made = plan(bc.QuantLinearDescriptor((rows, n), (n, n), (n, 1), "bf16"))
    rounded = scale.flatten().to(x.dtype)
    ours = bind(made, x=x, w=w, scale=scale, y=y)
    return Sides.calls(ours, lambda: torch._weight_int8pack_mm(x, w, rounded), made, lambda: [y])


def _nvfp4_quantize(rows: int, columns: int) -> Sides:
    x = noise(rows, columns)
    between = there(torch.tensor([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0]))
    codes = there(torch.zeros(rows, columns, dtype=torch.int32))
    sized, negative = torch.empty_like(x), there(torch.zeros(rows, columns, dtype=torch.bool))

    def peer() -> list[torch.Tensor]:
        of_all = x.abs().amax() / 2688
        blocks = x.view(rows, -1, 16)
        scale = (blocks.abs().amax(-1) / 6 / of_all).to(torch.float8_e4m3fn)
        torch.div(blocks, (scale.float() * of_all)[..., None], out=sized.view_as(blocks))
        torch.signbit(sized, out=negative)
        torch.bucketize(sized.abs_(), between, out_int32=True, out=codes)
        codes.add_(negative, alpha=8)
        return [codes[:, ::2] | codes[:, 1::2] << 4, scale.float(), of_all]

    def results() -> tuple[list[Any], list[Any]]:  # codes differ where torch takes a tie up
        mine, theirs = functional.nvfp4_quantize(x), peer()
        return [mine[1].float(), mine[2]], theirs[1:]

    return Sides(Statement.call(lambda: functional.nvfp4_quantize(x)), Statement.call(peer), (), results)


def _nvfp4_dequantize(rows: int, columns: int) -> Sides:
    codes, scale, of_all = functional.nvfp4_quantize(noise(rows, columns))
    sizes = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
    pairs = [(a, b) for b in (*sizes, *(-s for s in sizes)) for a in (*sizes, *(-s for s in sizes))]
    table = there(torch.tensor(pairs))  # of a byte
    found, y = there(torch.zeros(rows * columns // 2, 2)), space(rows, columns)

    def peer() -> torch.Tensor:
        torch.index_select(table, 0, codes.flatten().int(), out=found)
        torch.mul(found.view(rows, -1, 16), (scale.float() * of_all)[..., None], out=y.view(rows, -1, 16))
        return y

    def ours() -> torch.Tensor:
        made: torch.Tensor = functional.nvfp4_dequantize(codes, scale, of_all)
        return made

    return Sides(Statement.call(ours), Statement.call(peer), (), lambda: ([ours()], [peer()]))


def _pages(batch: int, most: int, size: int, element: str) -> tuple[torch.Tensor, ...]:
    k, v = (noise(batch * most, size, 2, 64, element=element, seed=seed) for seed in (1, 2))
    order = torch.randperm(batch * most, generator=torch.Generator().manual_seed(3))
    return k, v, there(order.view(batch, most).int())


def _packed(element: str, queries: list[int], lengths: list[int], size: int) -> Sides:
    batch, most, total = len(lengths), -(-max(lengths) // size), sum(queries)
    k, v, table = _pages(batch, most, size, element)
    q, y, z = noise(total, 8, 64, element=element), *(space(total, 8, 64, element=element) for _ in range(2))
    places = torch.tensor([0, *queries]).cumsum(0)
    shapes = (tuple(k.shape), tuple(v.shape), tuple(table.shape), tuple(q.shape))
    made = plan(bc.PagedAttentionDescriptor(*shapes, causal=True, element=element, max_q=max(queries)))
    given = {"page_table": table, "kv_len": there(torch.tensor(lengths).int()), "cu_seq_q": there(places.int())}
    gathered = [space(*x.shape, element=element) for x in (k, v)]
    masks = [
        there(torch.arange(n) <= torch.arange(m)[:, None] + (n - m)) for m, n in zip(queries, lengths, strict=True)
    ]

    def peer() -> torch.Tensor:
        for pages, rows in zip((k, v), gathered, strict=True):
            torch.index_select(pages, 0, table.flatten(), out=rows)
        keys, values = (x.view(batch, most * size, 2, 64).transpose(1, 2) for x in gathered)
        for b, (begin, end) in enumerate(pairwise(places.tolist())):
            own = (x[b : b + 1, :, : lengths[b]] for x in (keys, values))
            one = q[None, begin:end].transpose(1, 2)
            made = F.scaled_dot_product_attention(one, *own, attn_mask=masks[b], enable_gqa=True)
            z[begin:end] = made[0].transpose(0, 1)
        return z

    return Sides.calls(bind(made, q=q, k_pages=k, v_pages=v, **given, out=y), peer, made, lambda: [y])


def _coded(code: str, lengths: list[int], size: int) -> Sides:
    batch, most = len(lengths), -(-max(lengths) // size)
    *values, table = _pages(batch, most, size, "f32")
    q, y = noise(batch, 1, 8, 64), space(batch, 1, 8, 64)
    dtype, largest = (torch.int8, 127) if code == "i8" else (torch.float8_e4m3fn, 448)
    scales = [x.abs().amax((0, 1, 3)) / largest for x in values]
    pages = [(x / s[:, None]).round().to(dtype) for x, s in zip(values, scales, strict=True)]
    kv_len = there(torch.tensor(lengths).int())
    mask = (torch.arange(most * size, device=q.device) < kv_len[:, None])[:, None, None]
    shapes = (tuple(pages[0].shape), tuple(pages[1].shape), tuple(table.shape), tuple(q.shape))
    made = plan(bc.PagedAttentionDescriptor(*shapes, cache_element="i8" if code == "i8" else "f8e4m3"))
    codes = [there(torch.zeros(x.shape, dtype=torch.int8)) for x in values]
    gathered = [space(*x.shape) for x in values]

    def peer() -> torch.Tensor:
        for at in range(2):
            torch.index_select(pages[at].view(torch.int8), 0, table.flatten(), out=codes[at])
            gathered[at].copy_(codes[at].view(dtype)).mul_(scales[at][:, None])
        keys, values = (x.view(batch, most * size, 2, 64).transpose(1, 2) for x in gathered)
        out = F.scaled_dot_product_attention(q.transpose(1, 2), keys, values, attn_mask=mask, enable_gqa=True)
        return out.transpose(1, 2)

    given = {"k_pages": pages[0], "v_pages": pages[1], "k_scale": scales[0], "v_scale": scales[1]}
    ours = bind(made, q=q, **given, page_table=table, kv_len=kv_len, out=y)
    return Sides.calls(ours, peer, made, lambda: [y])


def _weight_cases(add: Add, quick: bool) -> None:
    n = 256 if quick else 4096
    for kind, bits in _BITS.items():
        add(f"{kind} weight times one row", "quant", "f32", (1, n, n), partial(_blocks, kind, "f32", 1, n),
            f"mm out= of f32, {_ROTATED} weights", bytes=_ROTATED * n * n * bits / 8, flops=_ROTATED * 2 * n * n,
            ceiling="read")  # fmt: skip
    for rows in (64, 512):
        add(f"q4_0 weight times {rows} rows", "quant", "bf16", (rows, n, n), partial(_blocks, "q4_0", "bf16", rows, n),
            f"mm out= of bf16, {_ROTATED} weights", bytes=_ROTATED * (n * n * 4.5 / 8 + 4 * rows * n),
            flops=_ROTATED * 2 * rows * n * n, ceiling="bf16")  # fmt: skip
    for rows in (1, 64):
        add(f"quant_linear int8, {rows} rows", "quant", "bf16", (rows, n, n), partial(_linear, rows, n),
            "_weight_int8pack_mm", bytes=n * n + 4 * rows * n, flops=2 * rows * n * n, ceiling="read")  # fmt: skip
    m, k = (16, 64) if quick else (2048, 4096)
    add("nvfp4_quantize", "quant", "f32", (m, k), partial(_nvfp4_quantize, m, k), "amax, div, bucketize out=",
        bytes=4.5625 * m * k, ceiling="memory")  # fmt: skip
    add("nvfp4_dequantize", "quant", "f32", (m, k), partial(_nvfp4_dequantize, m, k), "index_select, mul out=",
        bytes=4.5625 * m * k, ceiling="memory")  # fmt: skip


def _cache_cases(add: Add, quick: bool) -> None:
    queries, cached = ([5, 1, 9], [20, 1, 47]) if quick else ([1, 1, 300, 1, 64, 1], list(range(1100, 1814, 119)))
    keys = sum(m * n for m, n in zip(queries, cached, strict=True))
    for e in ("f32", "bf16"):
        add("packed queries over a paged cache", "attention", e, (sum(queries), 8, max(cached), 64),
            partial(_packed, e, queries, cached, 16), "index_select out=, scaled_dot_product_attention of each",
            bytes=SIZE[e] * (2 * sum(cached) * 128 + 2 * sum(queries) * 512), flops=4 * keys * 512, ceiling=e)  # fmt: skip
    cached = [20, 1, 47] if quick else list(range(1100, 2048, 119))
    for code in ("i8", "f8e4m3"):
        add(f"decode over a paged cache of {code}", "attention", "f32", (len(cached), 8, max(cached), 64),
            partial(_coded, code, cached, 16), "index_select out=, copy_, mul_, scaled_dot_product_attention",
            bytes=2 * sum(cached) * 128, flops=4 * sum(cached) * 512, ceiling="memory")  # fmt: skip


def cases(quick: bool) -> list[Case]:
    """Products with quantized weights, NVFP4, and attention over caches of codes and of packed queries."""
    out, add = collector()
    _weight_cases(add, quick)
    _cache_cases(add, quick)
    return out
