"""A paged cache beyond the generated tests: the same bits as over gathered keys, appending, bad tables, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import baracuda as bc
import baracuda.functional as F
from baracuda.prove.reference import Array

torch = pytest.importorskip("torch")
LENGTHS = (0, 1, 37, 300, 64, 555)
ELEMENTS = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16}
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "causal": {"window_size": (-1, 0)},
    "all": {"window_size": (50, 0), "softcap": 1.5, "alibi_slopes": torch.tensor([0.1, 0.2, 0.3, 0.4])},
}


def table_of(size: int, order: str) -> tuple[Any, int]:
    """A page table for LENGTHS, and how many pages it needs. Sequences 3 and 5 share their first page."""
    used = [-(-n // size) for n in LENGTHS]
    pages = np.arange(sum(used)) if order == "in order" else np.random.default_rng(1).permutation(sum(used))
    table = np.full((len(used), max(used) + 2), 1 << 30)
    for b, n in enumerate(used):
        table[b, :n] = pages[sum(used[:b]) : sum(used[: b + 1])]
    if order == "shared":
        table[5, 0] = table[3, 0]
    return torch.from_numpy(table.astype(np.int32)), sum(used)


def cache_of(pages: int, size: int, layout: str, dtype: Any) -> Any:
    """Keys [pages, size, 2, 16] and values [pages, size, 2, 24], the parts of larger tensors."""
    if layout == "dense":
        return [torch.randn(pages, size, 2, d).to(dtype) for d in (16, 24)]
    if layout == "heads first":
        return [torch.randn(pages, 2, size, d).to(dtype).transpose(1, 2) for d in (16, 24)]
    both = torch.randn(pages, 2, size, 2, 50).to(dtype)
    return both[:, 0, :, :, :16], both[:, 1, :, :, 1:49:2]


def alone(query: Any, key: Any, value: Any, options: dict[str, Any]) -> Any:
    """A sequence's queries [Sq, H, D] against its keys laid one behind the other."""
    rest = {n: v for n, v in options.items() if n != "window_size"}
    window = options.get("window_size", (-1, -1))
    args = [x.transpose(0, 1)[None] for x in (query, key, value)]
    out, lse = F.scaled_dot_product_attention_forward(
        *args, enable_gqa=True, window=window, causal_alignment="bottom_right", **rest
    )
    return out[0].transpose(0, 1), lse[0]


def gathered(pages: Any, row: Any, n: int) -> Any:
    at = torch.arange(n)
    return pages[row[at // pages.shape[1]].long(), at % pages.shape[1]]


@pytest.mark.parametrize("layout", ["dense", "heads first", "strided"])
@pytest.mark.parametrize("size", [1, 7, 16, 256])
@pytest.mark.parametrize("element", list(ELEMENTS))
def test_bits_are_those_over_gathered_keys(element: str, size: int, layout: str) -> None:
    dtype = ELEMENTS[element]
    torch.manual_seed(0)
    for order in ("in order", "shuffled", "shared"):
        table, count = table_of(size, order)
        pages = cache_of(count, size, layout, dtype)
        kv_len = torch.tensor(LENGTHS, dtype=torch.int32)
        for queries, (how, options) in zip((1, 3, 40), OPTIONS.items(), strict=True):
            if element == "f64" and how == "all":
                options = options | {"alibi_slopes": options["alibi_slopes"].double()}
            q = torch.randn(len(LENGTHS), queries, 4, 16).to(dtype)
            out, lse = F.paged_attention_forward(q, *pages, table, kv_len, enable_gqa=True, **options)
            assert torch.equal(out, F.paged_attention(q, *pages, table, kv_len, enable_gqa=True, **options))
            for b, n in enumerate(LENGTHS):
                want, want_lse = alone(q[b], *(gathered(x, table[b], n) for x in pages), options)
                assert torch.equal(out[b], want), (order, how, b)
                assert torch.equal(lse[b], want_lse), (order, how, b)


def test_lines_that_are_not_used_are_not_looked_at() -> None:
    """NaN behind the last key, in front of the window, and in pages that no sequence has."""
    table, count = table_of(16, "shuffled")
    clean = cache_of(count, 16, "dense", torch.float32)
    pages = [torch.full_like(x, torch.nan) for x in clean]
    table = table.clone()
    for b, n in enumerate(LENGTHS):
        for at in range(max(n - 21, 0), n):
            place = (table[b, at // 16], at % 16)
            for x, y in zip(pages, clean, strict=True):
                x[place] = y[place]
    kv_len, q = torch.tensor(LENGTHS, dtype=torch.int32), torch.randn(len(LENGTHS), 1, 4, 16)
    want = F.paged_attention(q, *clean, table, kv_len, enable_gqa=True, window_size=(20, 0))
    gone = table.clone()
    for b, n in enumerate(LENGTHS):
        gone[b, : max(n - 21, 0) // 16] = -1
    for given in (table, gone):
        got = F.paged_attention(q, *pages, given, kv_len, enable_gqa=True, window_size=(20, 0))
        torch.testing.assert_close(got, want, atol=0, rtol=0)


def test_a_decoding_loop() -> None:
    """Prompts of several lengths packed, then tokens one by one: what attention over the whole of them gives."""
    torch.manual_seed(0)
    size, prompts, steps = 4, (5, 0, 9), 6
    kv_len = torch.zeros(3, dtype=torch.int64)
    table = torch.randperm(15).view(3, 5)
    pages = [torch.full((15, size, 2, d), torch.nan) for d in (16, 8)]
    keys, values = ([torch.randn(n + steps, 2, d) for n in prompts] for d in (16, 8))
    new = [torch.cat([x[:n] for x, n in zip(part, prompts, strict=True)]) for part in (keys, values)]
    assert F.paged_append_(*new, *pages, table, kv_len, torch.tensor(np.cumsum([0, *prompts]))) is None
    kv_len += torch.tensor(prompts)
    for step in range(steps):
        new = [
            torch.stack([x[n + step] for x, n in zip(part, prompts, strict=True)])[:, None] for part in (keys, values)
        ]
        F.paged_append_(*new, *pages, table, kv_len)
        kv_len += 1
        q = torch.randn(3, 1, 4, 16)
        out = F.paged_attention(q, *pages, table, kv_len, enable_gqa=True)
        for b in range(3):
            n = int(kv_len[b])
            assert torch.equal(out[b], alone(q[b], keys[b][:n], values[b][:n], {})[0])
    written = sum(-(-(n + steps) // size) for n in prompts)
    assert sum(bool(x.isnan().all()) for x in pages[0]) == 15 - written


@pytest.mark.parametrize("element", ["f32", "bf16"])
@pytest.mark.parametrize("most", [None, 40])
def test_packed_queries_are_as_if_alone(element: str, most: int | None) -> None:
    """Prompts' chunks, single tokens and none at all in one call, bit for bit; more queries than keys, too."""
    dtype, counts = ELEMENTS[element], (3, 1, 0, 40, 17, 1)
    torch.manual_seed(0)
    for order in ("in order", "shuffled", "shared"):
        table, count = table_of(16, order)
        pages, kv_len = cache_of(count, 16, "dense", dtype), torch.tensor(LENGTHS, dtype=torch.int32)
        cu = torch.tensor(np.cumsum([0, *counts]), dtype=torch.int32)
        for options in (*OPTIONS.values(), {"window_size": (-1, 0), "sinks": torch.randn(4)}):
            q = torch.randn(62, 4, 16).to(dtype)
            got = F.paged_attention_forward(
                q, *pages, table, kv_len, cu_seq_q=cu, max_q=most, enable_gqa=True, **options
            )
            for b, n in enumerate(LENGTHS):
                at = slice(int(cu[b]), int(cu[b + 1]))
                if at.start < at.stop:
                    want = alone(q[at], *(gathered(x, table[b], n) for x in pages), options)
                    assert torch.equal(got[0][at], want[0]), (order, b)
                    assert torch.equal(got[1][:, at], want[1]), (order, b)


@pytest.mark.parametrize(
    ("cu", "most", "value"),
    [([1, 2, 4], None, 1), ([0, 3, 2], None, 2), ([0, 2, 5], None, 5), ([0, 2, 3], None, 3), ([0, 3, 4], 2, 3)],
)
def test_places_of_packed_queries_are_checked(cu: list[int], most: int | None, value: int) -> None:
    given = arguments() | {"query": np.ones((4, 4, 8), np.float32), "cu_seq_q": np.array(cu, np.int32)}
    with pytest.raises(bc.IndexOutOfRangeError, match=rf"cu_seq_q.*{value}"):
        F.paged_attention(**given, max_q=most, enable_gqa=True)


def test_parts_of_a_cache_merge() -> None:
    """A prefix that all sequences share, once, and their own keys: attention_merge of both."""
    table, count = table_of(16, "shuffled")
    pages = cache_of(count, 16, "dense", torch.float64)
    q, kv_len = torch.randn(6, 1, 4, 16, dtype=torch.float64), torch.tensor(LENGTHS, dtype=torch.int32)
    want = F.paged_attention_forward(q, *pages, table, kv_len, enable_gqa=True)
    front = F.paged_attention_forward(q, *pages, table, kv_len.clamp(max=48), enable_gqa=True)
    back = F.paged_attention_forward(q, *pages, table[:, 3:], (kv_len - 48).clamp(min=0), enable_gqa=True)
    rows = [x if i else x.transpose(1, 2).contiguous() for part in (front, back) for i, x in enumerate(part)]
    out, lse = F.attention_merge(*rows)
    torch.testing.assert_close(out.transpose(1, 2), want[0], atol=1e-14, rtol=1e-14)
    torch.testing.assert_close(lse, want[1], atol=1e-14, rtol=1e-14)


def arguments() -> dict[str, Array]:
    table = np.array([[2, 0, 9], [1, -1, -1]], np.int32)
    return {
        "query": np.ones((2, 1, 4, 8), np.float32),
        "key_pages": np.ones((3, 4, 2, 8), np.float32),
        "value_pages": np.ones((3, 4, 2, 8), np.float32),
        "page_table": table,
        "kv_len": np.array([7, 3], np.int32),
    }


@pytest.mark.parametrize(
    ("table", "lengths", "name", "value"),
    [
        ([[2, 3, 0], [1, 0, 0]], [7, 3], "page_table", 3),
        ([[2, -1, 0], [1, 0, 0]], [7, 3], "page_table", -1),
        ([[2, 1, 0], [1 << 30, 0, 0]], [7, 3], "page_table", 1 << 30),
        ([[2, 1, 0], [1, 0, 0]], [13, 3], "kv_len", 13),
        ([[2, 1, 0], [1, 0, 0]], [7, -1], "kv_len", -1),
        ([[2, 1, 0], [1, 0, 0]], [7, -(1 << 31)], "kv_len", -(1 << 31)),
    ],
)
def test_bad_tables_are_told_before_anything_is_written(table: Any, lengths: Any, name: str, value: int) -> None:
    given = arguments() | {"page_table": np.array(table, np.int32), "kv_len": np.array(lengths, np.int32)}
    desc = bc.PagedAttentionDescriptor((3, 4, 2, 8), (3, 4, 2, 8), (2, 3), (2, 1, 4, 8))
    plan, out = bc.plan(desc), np.full((2, 1, 4, 8), 7, np.float32)
    tensors = (given[n] for n in ("query", "key_pages", "value_pages", "page_table", "kv_len"))
    with pytest.raises(bc.IndexOutOfRangeError, match=rf"{name}.*{value}"):
        plan.run(*tensors, out=out, workspace=bc.empty(plan.workspace_size, "u8"))
    assert (out == 7).all()
    new = np.ones((2, 1, 2, 8), np.float32)
    if name == "kv_len" or lengths[0] == 7:
        pages = [np.full((3, 4, 2, 8), 7, np.float32) for _ in range(2)]
        with pytest.raises(bc.IndexOutOfRangeError, match=rf"{name}.*{value}"):
            F.paged_append_(new, new, *pages, given["page_table"], given["kv_len"])
        assert all((x == 7).all() for x in pages)


@pytest.mark.parametrize("cu", [[1, 2, 4], [0, 3, 2], [0, 2, 5], [0, 2, 3], [0, -1, 4], [0, 9, 4]])
def test_places_of_packed_tokens_are_checked(cu: list[int]) -> None:
    given = arguments()
    new, pages = np.ones((4, 2, 8), np.float32), [np.full((3, 4, 2, 8), 7, np.float32) for _ in range(2)]
    with pytest.raises(bc.IndexOutOfRangeError, match="cu_seq"):
        F.paged_append_(new, new, *pages, given["page_table"], np.zeros(2, np.int32), np.array(cu, np.int32))
    assert all((x == 7).all() for x in pages)


def test_no_room_for_new_tokens() -> None:
    given = arguments()
    new, pages = np.ones((2, 13, 2, 8), np.float32), [given["key_pages"], given["value_pages"]]
    with pytest.raises(bc.IndexOutOfRangeError, match="kv_len"):
        F.paged_append_(new, new, *pages, given["page_table"], np.zeros(2, np.int32))


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"query": np.ones((2, 1, 3, 8), np.float32)}, bc.InvalidProblemError, "k_pages_shape"),
        ({"query": np.ones((2, 1, 4, 7), np.float32)}, bc.InvalidProblemError, "query: got"),
        ({"query": np.ones((3, 1, 4, 8), np.float32)}, bc.InvalidProblemError, "table_shape"),
        ({"query": np.ones((2, 4, 8), np.float32)}, bc.InvalidProblemError, "cu_seq_q"),
        ({"cu_seq_q": np.zeros(3, np.int32)}, bc.InvalidProblemError, "cu_seq_q"),
        ({"max_q": 3}, bc.InvalidProblemError, "max_q"),
        ({"sinks": np.ones(4)}, bc.InvalidProblemError, "sinks"),
        ({"sinks": np.ones(3, np.float32)}, bc.InvalidProblemError, "sinks"),
        ({"enable_gqa": False}, bc.UnsupportedError, "enable_gqa"),
        ({"key_pages": np.ones((3, 2, 8), np.float32)}, bc.InvalidProblemError, "k_pages_shape"),
        ({"key_pages": np.ones((3, 0, 2, 8), np.float32)}, bc.InvalidProblemError, "k_pages_shape"),
        ({"value_pages": np.ones((3, 4, 1, 8), np.float32)}, bc.InvalidProblemError, "v_pages_shape"),
        ({"value_pages": np.ones((3, 4, 2, 8))}, bc.InvalidProblemError, "value_pages|v_pages"),
        ({"page_table": np.zeros(2, np.int32)}, bc.InvalidProblemError, "table_shape"),
        (
            {"page_table": np.zeros((2, 3), np.float32), "kv_len": np.zeros(2, np.float32)},
            bc.InvalidProblemError,
            "index",
        ),
        ({"kv_len": np.zeros(2, np.int64)}, bc.InvalidProblemError, "kv_len"),
        ({"kv_len": np.zeros(3, np.int32)}, bc.InvalidProblemError, "kv_len"),
        ({"window_size": 4}, bc.InvalidProblemError, "window_size"),
        ({"window_size": (-2, 0)}, bc.InvalidProblemError, "window_left"),
        ({"softcap": -1.0}, bc.InvalidProblemError, "softcap"),
        ({"alibi_slopes": np.ones(4)}, bc.InvalidProblemError, "alibi_slopes"),
        ({"alibi_slopes": np.ones(3, np.float32)}, bc.InvalidProblemError, "alibi"),
    ],
)
def test_attention_refuses(change: dict[str, Any], error: type[Exception], text: str) -> None:
    given: dict[str, Any] = arguments() | {"enable_gqa": True}
    assert F.paged_attention(**given).shape == (2, 1, 4, 8)
    with pytest.raises(error, match=text):
        F.paged_attention(**given | change)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"key": np.ones((2, 1, 2, 7), np.float32)}, "key: got"),
        ({"key": np.ones((3, 1, 2, 8), np.float32)}, "value: got .* of key"),
        ({"value": np.ones((2, 2, 2, 8), np.float32)}, "value: got .* of key"),
        ({"value": np.ones((2, 1, 2, 8))}, "value|v:"),
        ({"key": np.ones((2, 2, 8), np.float32)}, "cu_seq"),
        ({"cu_seq": np.zeros(3, np.int32)}, "cu_seq"),
        ({"kv_len": np.zeros(1, np.int32)}, "kv_len"),
    ],
)
def test_append_refuses(change: dict[str, Any], text: str) -> None:
    given: dict[str, Any] = arguments()
    del given["query"]
    given |= {"key": np.ones((2, 1, 2, 8), np.float32), "value": np.ones((2, 1, 2, 8), np.float32)}
    F.paged_append_(**given)
    with pytest.raises(bc.InvalidProblemError, match=text):
        F.paged_append_(**given | change)


def test_pages_that_may_not_be_written() -> None:
    given = arguments()
    del given["query"]
    given["key_pages"].flags.writeable = False
    with pytest.raises(bc.BaracudaError, match=r"key_pages|k_pages"):
        F.paged_append_(key=np.ones((2, 1, 2, 8), np.float32), value=np.ones((2, 1, 2, 8), np.float32), **given)
