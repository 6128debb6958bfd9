"""Float64 reference of a paged cache: each sequence's keys gathered from its pages, by the reference of attention."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from baracuda.describe.elements import Element
from baracuda.ops.attention import attention_ref
from baracuda.ops.attention.attention import AttentionDescriptor
from baracuda.ops.attention.attention_paged import PagedAttentionDescriptor
from baracuda.prove.narrow import numbers
from baracuda.prove.reference import Array, Case, Expected, round_to, to_reference

# Numbers of this share of the element's exponents are promised: products of products of larger ones may not fit.
EXPONENTS = 0.25

# heads, kv heads, queries (of each where they are packed), dim, dim of v, page size, lengths, options
_SMALL: tuple[tuple[int, int, int | tuple[int, ...], int, int, int, tuple[int, ...], dict[str, Any]], ...] = (
    (2, 1, 1, 8, 8, 16, (7, 0, 40, 16), {}),
    (4, 2, 1, 17, 9, 1, (3, 70), {"index_element": Element.I64}),
    (4, 2, 3, 8, 4, 7, (300, 2, 65), {"causal": True}),
    (6, 2, 2, 16, 20, 64, (600, 519), {"softcap": 2.0, "alibi_shape": (6,), "causal": True}),
    (2, 2, 1, 8, 8, 16, (700, 5, 300), {"window_left": 40}),
    (4, 2, 40, 8, 8, 7, (90, 20), {"causal": True, "window_left": 30, "alibi_shape": (2, 4)}),
    (2, 1, 5, 4, 4, 3, (9, 30), {"window_left": 4, "window_right": 2}),
    (4, 2, (1, 30, 0, 5), 8, 4, 7, (300, 45, 9, 5), {"causal": True}),
    (4, 2, (2, 1), 16, 20, 16, (600, 300), {"causal": True, "max_q": 2, "sinks": True, "window_left": 400}),
    (
        2,
        1,
        (40, 3),
        8,
        8,
        5,
        (20, 90),
        {"softcap": 2.0, "alibi_shape": (2, 2), "sinks": True, "causal": True, "max_q": 50},
    ),
    (2, 2, 1, 8, 8, 16, (700, 5, 0), {"sinks": True, "index_element": Element.I64}),
    (2, 1, 20, 8, 8, 16, (70, 5), {"sinks": True}),
    (2, 1, (0, 0), 4, 4, 2, (3, 0), {}),
    (2, 1, (), 4, 4, 2, (), {}),
    (4, 2, 1, 16, 20, 7, (300, 0, 600), {"cache_element": Element.I8}),
    (4, 2, (3, 40), 17, 9, 16, (5, 90), {"cache_element": Element.F8E4M3, "causal": True, "sinks": True}),
    (2, 2, 30, 8, 8, 5, (40, 33), {"cache_element": Element.I8, "softcap": 2.0, "window_left": 20}),
    (2, 1, (1, 1), 8, 8, 16, (300, 2), {"cache_element": Element.F8E4M3, "max_q": 1}),
    (1, 1, 1, 4, 4, 2, (), {}),
    (2, 1, 0, 4, 4, 2, (3,), {}),
    (2, 2, 1, 4, 4, 2, (0, 0), {}),
)


def table_of(rng: np.random.Generator, lengths: tuple[int, ...], size: int, shared: bool) -> tuple[Array, int]:
    """Pages out of order, -1 where there is none; and how many pages there are. shared: the first of all sequences."""
    used = [-(-n // size) for n in lengths]
    order = rng.permutation(sum(used) + 1)
    table = np.full((len(lengths), max(used, default=0) + 1), -1)
    at = 0
    for b, n in enumerate(used):
        table[b, :n] = order[at : at + n]
        at += n
        if shared and n > 1:
            table[b, 0] = order[0]
    return table, len(order)


def codes(rng: np.random.Generator, element: Element, shape: Any) -> Array:
    """Codes of a cache, as numbers."""
    if element is Element.I8:
        return np.asarray(rng.integers(-128, 128, shape))
    every = numbers(element)
    return np.asarray(rng.choice(every[np.isfinite(every) & (np.abs(every) < 100)], shape))


def scales_of(rng: np.random.Generator, heads: int, element: Element) -> dict[str, Array]:
    """Scales of heads' codes."""
    low, high = (0.01, 0.03) if element is Element.I8 else (0.02, 0.2)
    return {n: to_reference(rng.uniform(low, high, heads).astype(np.float32)) for n in ("k_scale", "v_scale")}


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Full and partial pages, shared ones, pages of one line, no keys, windows, caps, ALiBi, many queries, nothing."""
    del op, direction
    for heads, kv_heads, queries, d, dv, size, lengths, options in _SMALL:
        if element is Element.F64 and "cache_element" in options:
            continue
        table, pages = table_of(rng, lengths, size, shared=True)
        packed = isinstance(queries, tuple)
        lead = (sum(queries),) if packed else (len(lengths), queries)  # type: ignore[arg-type]
        desc = PagedAttentionDescriptor(
            (pages, size, kv_heads, d), (pages, size, kv_heads, dv), table.shape, (*lead, heads, d),
            element=element, save_lse=True, **options,
        )  # fmt: skip
        shapes: dict[str, Any] = {"q": desc.q_shape, "k_pages": desc.k_pages_shape, "v_pages": desc.v_pages_shape}
        tensors = {n: to_reference(round_to(rng.normal(0, 1, s), element)) for n, s in shapes.items()}
        if desc.cache_element is not None:
            tensors |= {n: codes(rng, desc.cache_element, shapes[n]) for n in ("k_pages", "v_pages")}
            tensors |= scales_of(rng, kv_heads, desc.cache_element)
        if desc.alibi_shape is not None:
            tensors["alibi"] = to_reference(round_to(rng.uniform(0.01, 0.5, options["alibi_shape"]), desc.lse_element))
        if packed:
            tensors["cu_seq_q"] = np.cumsum([0, *queries])  # type: ignore[misc]
        if desc.sinks:
            tensors["sinks"] = to_reference(round_to(rng.normal(0, 2, heads), desc.lse_element))
        yield Case(desc, tensors | {"page_table": table, "kv_len": np.array(lengths, np.int64)})


def _gathered(case: Case, name: str, b: int) -> Array:
    """A sequence's keys or values, [kv heads, keys, dim]."""
    pages, n = case.tensors[name], int(case.tensors["kv_len"][b])
    where = np.arange(n)
    lines: Array = pages[case.tensors["page_table"][b, where // pages.shape[1]], where % pages.shape[1]]
    scale = case.tensors.get(f"{name[0]}_scale")
    lines = lines if scale is None else lines * np.asarray(scale, np.float64)[:, None]
    return lines.swapaxes(0, 1)


def _own(case: Case, b: int) -> Any:
    """Where a sequence's queries are."""
    cu = case.tensors.get("cu_seq_q")
    return b if cu is None else slice(int(cu[b]), int(cu[b + 1]))


def _sequence(case: Case, b: int) -> Case:
    d, t = case.descriptor, case.tensors
    assert isinstance(d, PagedAttentionDescriptor)
    tensors = {n: _gathered(case, f"{n}_pages", b)[None] for n in "kv"}
    tensors["q"] = t["q"][_own(case, b)].swapaxes(0, 1)[None]
    if d.sinks:
        tensors["sinks"] = t["sinks"]
    alibi = d.alibi_shape and d.alibi_shape[-1:]
    if alibi is not None:
        tensors["alibi"] = t["alibi"] if t["alibi"].ndim == 1 else t["alibi"][b]
    shapes: Any = {f"{n}_shape": tensors[n].shape for n in "qkv"}
    desc = AttentionDescriptor(
        **shapes, causal=d.causal, element=d.element, window_left=d.window_left, window_right=d.window_right,
        softcap=d.softcap, alibi_shape=alibi, sinks=d.sinks,
    )  # fmt: skip
    return Case(desc, tensors, case.scalars)


def _attention(case: Case) -> dict[str, Expected]:
    d = case.descriptor
    assert isinstance(d, PagedAttentionDescriptor)
    shapes: dict[str, Any] = {"out": d.out_shape, "lse": d.lse_shape}
    sequences = range(len(case.tensors["kv_len"]) if 0 not in d.lse_shape else 0)
    found = [attention_ref.reference(_sequence(case, b)) for b in sequences]
    results = {}
    for name, shape in shapes.items():
        terms = max((x[name].terms for x in found), default=1)
        value, size, far = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        for b, x in enumerate(found):
            y = x[name].value[0], np.sqrt(x[name].terms / terms) * x[name].magnitude[0], x[name].reach[0]
            at = _own(case, b)
            if name == "lse":
                at = (slice(None), at) if d.packed else at
            value[at], size[at], far[at] = (z.swapaxes(0, 1) for z in y) if name == "out" else y
        results[name] = Expected(value, size, terms, far)
    return results


def reference(case: Case) -> dict[str, Expected]:
    """Outputs in float64."""
    return _attention(case)
