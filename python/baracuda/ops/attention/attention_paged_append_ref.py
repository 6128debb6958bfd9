"""Reference of appending to a paged cache: a copy, or the codes of quantize_linear."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from baracuda.describe.elements import Element
from baracuda.ops.attention.attention_paged_append import PagedAppendDescriptor, PagedAppendSlotsDescriptor
from baracuda.ops.attention.attention_paged_ref import codes, scales_of, table_of
from baracuda.ops.quant.scaled_ref import coded
from baracuda.prove.reference import Array, Case, Expected, round_to, to_reference

# heads, dim, dim of v, page size, lengths, new tokens, packed
_APPEND: tuple[tuple[int, int, int, int, tuple[int, ...], tuple[int, ...], bool], ...] = (
    (2, 8, 4, 4, (3, 0, 9), (2, 2, 2), False),
    (1, 1, 3, 1, (0, 5), (1, 1), False),
    (3, 17, 17, 16, (15, 0, 7), (1, 0, 40), True),
    (2, 4, 4, 5, (3, 4), (0, 0), False),
    (2, 4, 4, 5, (), (), True),
)
# heads, dim, dim of v, pages, page size, slots
_SLOTS: tuple[tuple[int, int, int, int, int, tuple[int, ...]], ...] = (
    (2, 8, 4, 3, 7, (20, -1, 0, 6, 7, 13)),
    (3, 17, 33, 40, 1, (39, 3, -1, -1, 0)),
    (1, 1, 1, 2, 16, (31,)),
    (2, 4, 4, 0, 4, (-1, -1)),
    (2, 4, 4, 2, 4, ()),
)


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Full and partial pages, one line a page, no tokens, tokens without a slot; copies and codes."""
    del direction
    kinds = (None,) if element is Element.F64 else (None, Element.I8, Element.F8E4M3)
    for cached in kinds:
        yield from (_by_table if op == "paged_append" else _by_slots)(element, cached, rng)


def _tensors(desc: Any, rng: np.random.Generator) -> dict[str, Any]:
    made: dict[str, Any] = {
        n: to_reference(round_to(rng.normal(0, 1, getattr(desc, f"{n}_shape")), desc.element)) for n in "kv"
    }
    for n in ("k_pages", "v_pages"):
        shape = getattr(desc, f"{n}_shape")
        if desc.cache_element is None:
            made[n] = to_reference(round_to(rng.normal(0, 1, shape), desc.element))
        else:
            made[n] = codes(rng, desc.cache_element, shape)
    if desc.cache_element is not None:
        made |= scales_of(rng, desc.k_pages_shape[2], desc.cache_element)
        for n in "kv":  # beyond the codes, and what has none
            if made[n].size > 5:
                made[n].flat[:5] = (60.0, -60.0, 0.0, np.nan, np.inf)
    return made


def _by_table(element: Element, cached: Element | None, rng: np.random.Generator) -> Iterator[Case]:
    for heads, d, dv, size, lengths, new, packed in _APPEND:
        table, pages = table_of(rng, tuple(n + m for n, m in zip(lengths, new, strict=True)), size, shared=False)
        tokens = [sum(new)] if packed else [len(new), new[0]]
        cache = (pages, size, heads)
        desc = PagedAppendDescriptor(
            (*cache, d), (*cache, dv), table.shape, (*tokens, heads, d), (*tokens, heads, dv), element,
            Element.I64 if packed else Element.I32, cached,
        )  # fmt: skip
        tensors = _tensors(desc, rng)
        if packed:
            tensors["cu_seq"] = np.cumsum([0, *new])
        yield Case(desc, tensors | {"page_table": table, "kv_len": np.array(lengths, np.int64)})


def _by_slots(element: Element, cached: Element | None, rng: np.random.Generator) -> Iterator[Case]:
    for heads, d, dv, pages, size, slots in _SLOTS:
        cache, tokens = (pages, size, heads), len(slots)
        desc = PagedAppendSlotsDescriptor(
            (*cache, d), (*cache, dv), (tokens, heads, d), (tokens, heads, dv), element,
            Element.I64 if size == 1 else Element.I32, cached,
        )  # fmt: skip
        yield Case(desc, _tensors(desc, rng) | {"slots": np.array(slots, np.int64)})


def _places(case: Case) -> tuple[Array, Array, Array]:
    """Of all tokens, as if packed: which, and the page and line of each."""
    d, t = case.descriptor, case.tensors
    size = d.k_pages_shape[1]  # type: ignore[attr-defined]
    if isinstance(d, PagedAppendSlotsDescriptor):
        tokens = np.flatnonzero(t["slots"] >= 0)
        at = t["slots"][tokens]
        return tokens, at // size, at % size
    assert isinstance(d, PagedAppendDescriptor)
    ends = t["cu_seq"] if d.packed else np.arange(len(t["kv_len"]) + 1) * t["k"].shape[1]
    owner = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
    at = t["kv_len"][owner] + np.arange(len(owner)) - ends[owner]
    return np.arange(len(owner)), t["page_table"][owner, at // size], at % size


def reference(case: Case) -> dict[str, Expected]:
    """The pages afterwards."""
    d: Any = case.descriptor
    tokens, page, line = _places(case)
    results = {}
    for name in "kv":
        pages, x = case.tensors[f"{name}_pages"].copy(), np.asarray(case.tensors[name])
        x = x.reshape(int(np.prod(x.shape[:-2])), *x.shape[-2:])
        if d.cache_element is not None:
            scale = np.broadcast_to(case.tensors[f"{name}_scale"].astype(np.float32)[:, None], x.shape)
            with np.errstate(all="ignore"):
                x = coded(
                    x.astype(np.float32),
                    scale,
                    np.zeros(x.shape, np.float32),
                    d.cache_element,
                    (-128, 127),
                    saturate=True,
                )
        pages[page, line] = x[tokens]
        results[f"{name}_pages"] = Expected(pages)
    return results
