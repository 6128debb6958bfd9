"""Paged caches of codes, and slots: quantize_linear's codes, attention over what they stand for, torch's, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import baracuda as bc
import baracuda.functional as F

torch = pytest.importorskip("torch")
CODES = {"i8": torch.int8, "f8e4m3": torch.float8_e4m3fn}
DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


def cache(codes: str, pages: int = 5, size: int = 4) -> list[Any]:
    return [torch.zeros(pages, size, 2, d, dtype=CODES[codes]) for d in (16, 24)]


def scales(per_head: bool) -> dict[str, Any]:
    found = {"k_scale": torch.tensor([0.02, 0.05]), "v_scale": torch.tensor([0.03, 0.01])}
    return found if per_head else {n: x[0] for n, x in found.items()}


def coded(x: Any, scale: Any, codes: str) -> Any:
    """Of [tokens, heads, dim]."""
    return F.quantize_linear(x, scale, dtype=codes, axis=1 if scale.ndim else None)


def numbers(x: Any) -> Any:
    return x.view(torch.uint8)


@pytest.mark.parametrize("per_head", [True, False])
@pytest.mark.parametrize("element", list(DTYPES))
@pytest.mark.parametrize("codes", list(CODES))
def test_what_is_appended_is_quantized(codes: str, element: str, per_head: bool) -> None:
    torch.manual_seed(0)
    new = [torch.randn(7, 2, d).to(DTYPES[element]) * 3 for d in (16, 24)]
    new[0][0, 0, :3] = torch.tensor([torch.nan, torch.inf, -0.0])
    unit = scales(per_head)
    want = [coded(x, s, codes) for x, s in zip(new, unit.values(), strict=True)]
    table, slots = torch.tensor([[3, 1], [0, -1]]), torch.tensor([12, 13, 14, 15, 4, 0, 1])
    by_table, by_slots, apart = cache(codes), cache(codes), cache(codes)
    F.paged_append_(*new, *by_table, table, torch.tensor([0, 0]), torch.tensor([0, 5, 7]), **unit)
    F.paged_append_slots_(*new, *by_slots, slots, **unit)
    strided = [x.transpose(0, 1).contiguous().transpose(0, 1) for x in new]
    F.paged_append_slots_(*strided, *apart, slots.int(), **unit)
    for pages, x in zip(by_table, want, strict=True):
        assert torch.equal(numbers(pages).view(20, *pages.shape[2:])[slots], numbers(x))
    for pages, others, more in zip(by_table, by_slots, apart, strict=True):
        assert torch.equal(numbers(pages), numbers(others))
        assert torch.equal(numbers(pages), numbers(more))


@pytest.mark.parametrize("per_head", [True, False])
@pytest.mark.parametrize("queries", [1, 40])
@pytest.mark.parametrize("codes", list(CODES))
def test_attention_is_that_over_what_codes_stand_for(codes: str, queries: int, per_head: bool) -> None:
    torch.manual_seed(0)
    pages, unit, size = cache(codes, 40, 16), scales(per_head), 16
    for part in pages:
        part.copy_(torch.randint(-100, 100, part.shape) / (1 if codes == "i8" else 8))
    table, kv_len = torch.randperm(40).view(1, 40), torch.tensor([611])
    q = torch.randn(1, queries, 4, 16)
    options: dict[str, Any] = {"enable_gqa": True, "window_size": (-1, 0)}
    got, lse = F.paged_attention_forward(q, *pages, table, kv_len, **options, **unit)
    plain = [x.float() * s.reshape(-1, 1) for x, s in zip(pages, unit.values(), strict=True)]
    want, want_lse = F.paged_attention_forward(q, *plain, table, kv_len, **options)
    torch.testing.assert_close(got, want, atol=2e-5, rtol=2e-5)
    torch.testing.assert_close(lse, want_lse, atol=2e-5, rtol=2e-5)
    assert size * 40 > 611


def test_slots() -> None:
    """Any order, -1 for none; what has no slot stays as it was."""
    new = [np.random.default_rng(0).standard_normal((5, 2, d)).astype(np.float32) for d in (8, 4)]
    pages = [np.full((3, 4, 2, d), 7, np.float32) for d in (8, 4)]
    slots = np.array([11, -1, 0, 6, -1])
    assert F.paged_append_slots_(*new, *pages, slots) is None
    for part, x in zip(pages, new, strict=True):
        flat = part.reshape(12, *x.shape[1:])
        np.testing.assert_array_equal(flat[[11, 0, 6]], x[[0, 2, 3]])
        assert (np.delete(flat, [11, 0, 6], 0) == 7).all()


@pytest.mark.parametrize("slot", [-2, 12, 1 << 40, -(1 << 62)])
def test_bad_slots_are_told_before_anything_is_written(slot: int) -> None:
    pages, new = [np.full((3, 4, 2, 8), 7, np.float32) for _ in range(2)], np.ones((2, 2, 8), np.float32)
    with pytest.raises(
        bc.IndexOutOfRangeError, match=rf"slot_mapping: got slot {slot} at element 1, want -1 <= slot < 12"
    ):
        F.paged_append_slots_(new, new, *pages, np.array([0, slot]))
    assert all((x == 7).all() for x in pages)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"k_scale": None}, "k_scale"),
        ({"v_scale": torch.ones(3)}, "v_scale"),
        ({"k_scale": torch.ones(2, dtype=torch.float64)}, "k_scale"),
        ({"key_pages": torch.zeros(5, 4, 2, 16)}, "value_pages|k_scale"),
        ({"key_pages": torch.zeros(5, 4, 2, 16, dtype=torch.uint8)}, "key_pages: got u8"),
        ({"slot_mapping": torch.zeros(3, dtype=torch.int32)}, "slot_mapping"),
        ({"slot_mapping": torch.zeros(2)}, "index_element"),
        ({"key": torch.zeros(2, 3, 16)}, "key: got"),
    ],
)
def test_appending_refuses(change: dict[str, Any], text: str) -> None:
    pages = cache("i8")
    given: dict[str, Any] = {
        "key": torch.ones(2, 2, 16), "value": torch.ones(2, 2, 24), "key_pages": pages[0], "value_pages": pages[1],
        "slot_mapping": torch.tensor([0, 3]), **scales(True),
    }  # fmt: skip
    F.paged_append_slots_(**given)
    with pytest.raises(bc.InvalidProblemError, match=text):
        F.paged_append_slots_(**given | change)


def test_scales_without_codes_are_refused() -> None:
    pages, q = torch.zeros(2, 4, 1, 8), torch.zeros(1, 1, 1, 8)
    table, kv_len = torch.zeros(1, 1, dtype=torch.int32), torch.ones(1, dtype=torch.int32)
    with pytest.raises(bc.InvalidProblemError, match="key_pages: got f32, want f16, the element of the call, or codes"):
        F.paged_attention(q.half(), pages, pages, table, kv_len)
    with pytest.raises(bc.InvalidProblemError, match="k_scale"):
        F.paged_attention(q, pages, pages, table, kv_len, k_scale=torch.ones(1))
    with pytest.raises(bc.InvalidProblemError, match="cache_element"):
        bc.PagedAttentionDescriptor((2, 4, 1, 8), (2, 4, 1, 8), (1, 1), (1, 1, 1, 8), cache_element="f16")
    with pytest.raises(bc.InvalidProblemError, match="cache_element"):
        bc.PagedAttentionDescriptor((2, 4, 1, 8), (2, 4, 1, 8), (1, 1), (1, 1, 1, 8), element="f64", cache_element="i8")
