"""Appending to a paged key-value cache. Kernels in csrc/ops/attention, reference in attention_paged_append_ref.py."""

from __future__ import annotations

from baracuda.call.op import Arg, Call, Op, Recipe, function
from baracuda.describe.dims import Dim, Shape, largest, shape_text
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.spec import Param, Signature, descriptor, inout, tensor
from baracuda.ops.attention.attention_paged import CACHE, Paged, check_lengths, check_packed, codes_of


class _Appended(Paged):
    """What has new keys and values."""

    __slots__ = ()
    k_shape: Shape
    v_shape: Shape
    element: Element
    cache_element: Element | None

    def check_new(self, leading: tuple[str, ...]) -> None:
        """New keys and values fit each other, and the pages."""
        for field, pages in (("k_shape", self.k_pages_shape), ("v_shape", self.v_pages_shape)):
            shape, want = getattr(self, field), " or ".join(f"[{x}, {pages[2]}, {pages[3]}]" for x in leading)
            if shape[-2:] != pages[2:] or len(shape) not in (3, 4)[: len(leading)]:
                raise self.wrong(field, shape, want)
        if self.v_shape[:-1] != self.k_shape[:-1]:
            raise self.wrong("v_shape", self.v_shape, f"the tokens {shape_text(self.k_shape[:-1])} of k_shape")

    def new(self) -> tuple[Param, Param]:
        """New keys and values."""
        return tensor("k", self.k_shape, self.element), tensor("v", self.v_shape, self.element)

    def written(self) -> tuple[Param, ...]:
        """Scales of codes, and the pages."""
        kept = self.cache_element or self.element
        pages = inout("k_pages", self.k_pages_shape, kept), inout("v_pages", self.v_pages_shape, kept)
        return (*self.scales(self.cache_element), *pages)

    def aux_element(self) -> Element | None:
        return self.cache_element


@descriptor(family="attention", op="paged_append")
class PagedAppendDescriptor(_Appended):
    """New keys and values of each sequence, written into the pages of a cache behind the kv_len[b] that are there.

    New token t of sequence b gets position p = kv_len[b] + t: line p % size of page page_table[b, p // size]. kv_len is
    as before the call; the caller adds the new tokens to it afterwards. A copy: exact. With a `cache_element`, what is
    written are codes, bit for bit those of quantize_linear: the nearest to x / scale of x's head, ties to even, saturated.

    Errors: before anything is written on the CPU, IndexOutOfRangeError for a length below 0 or for which the table has
    no room, for an entry that is written to and names no page, and for cu_seq that does not begin with 0, falls or does
    not end with the total. Entries of other positions are not looked at. Two new tokens must not have the same place:
    sequences may share pages that are only read.

    Args:
        k_pages_shape: [pages, page size, Hkv, D].
        v_pages_shape: [pages, page size, Hkv, Dv].
        table_shape: (B, most pages of a sequence).
        k_shape: [B, tokens, Hkv, D]; or packed, [total, Hkv, D] with a tensor cu_seq (B + 1,) that says where each
            sequence's tokens begin, and the total.
        v_shape: The same with Dv.
        element: f16, bf16, f32 or f64.
        index_element: Of page_table, kv_len and cu_seq: i32 or i64.
        cache_element: Of codes in the pages, f8e4m3 or i8, with f32 tensors k_scale and v_scale (Hkv,); None: pages are of
            `element`, a copy.
    """

    table_shape: Shape
    k_shape: Shape
    v_shape: Shape
    element: Element = Element.F32
    index_element: Element = Element.I32
    cache_element: Element | None = None

    def validate(self) -> None:
        self.check_pages(self.element, self.index_element, self.cache_element)
        self.check_table(self.table_shape)
        batch = self.table_shape[0]
        self.check_new(("packed total", f"{batch}, tokens"))
        if not self.packed and self.k_shape[0] != batch:
            raise self.wrong("k_shape", self.k_shape, f"the {batch} sequences of table_shape")
        if self.packed and isinstance(batch, Dim):
            raise self.wrong("table_shape", self.table_shape, "an int as the number of packed sequences")

    @property
    def packed(self) -> bool:
        """Whether the new tokens lie one behind the other."""
        return len(self.k_shape) == 3

    def signature(self) -> Signature:
        index, batch = self.index_element, self.table_shape[0]
        places = (largest(batch) + 1,) if self.packed else ()
        return Signature(
            *self.new(),
            tensor("page_table", self.table_shape, index),
            tensor("kv_len", (batch,), index),
            tensor("cu_seq", places, index, present=self.packed),
            *self.written(),
        )


@descriptor(family="attention", op="paged_append_slots")
class PagedAppendSlotsDescriptor(_Appended):
    """New keys and values, each written to the place in a paged cache that its slot says, as vLLM's reshape_and_cache.

    Slot s is line s % size of page s // size; -1: the token is left out. A copy: exact; codes with a `cache_element`, as in
    PagedAppendDescriptor.

    Errors: before anything is written on the CPU, IndexOutOfRangeError for a slot below -1 or behind the last page. Two
    tokens must not have the same slot.

    Args:
        k_pages_shape: [pages, page size, Hkv, D].
        v_pages_shape: [pages, page size, Hkv, Dv].
        k_shape: [tokens, Hkv, D].
        v_shape: [tokens, Hkv, Dv].
        element: f16, bf16, f32 or f64.
        index_element: Of slots (tokens,): i32 or i64.
        cache_element: As in PagedAppendDescriptor.
    """

    k_shape: Shape
    v_shape: Shape
    element: Element = Element.F32
    index_element: Element = Element.I32
    cache_element: Element | None = None

    def validate(self) -> None:
        self.check_pages(self.element, self.index_element, self.cache_element)
        self.check_new(("tokens",))

    def signature(self) -> Signature:
        return Signature(*self.new(), tensor("slots", self.k_shape[:1], self.index_element), *self.written())


OPS = (
    Op(
        "paged_append",
        PagedAppendDescriptor,
        CACHE,
        "pages[table[b, p // size], p % size] = x[b, t] with p = kv_len[b] + t, for keys and values",
    ),
    Op(
        "paged_append_slots",
        PagedAppendSlotsDescriptor,
        CACHE,
        "pages[slots[t] // size, slots[t] % size] = x[t], for keys and values",
    ),
)


@function(tensors="key value key_pages value_pages page_table kv_len cu_seq k_scale v_scale")
def paged_append_(
    call: Call,
    key: Arg,
    value: Arg,
    key_pages: Arg,
    value_pages: Arg,
    page_table: Arg,
    kv_len: Arg,
    cu_seq: Arg | None = None,
    *,
    k_scale: Arg | None = None,
    v_scale: Arg | None = None,
) -> Recipe:
    """Writes new keys and values into the pages of a cache, in place, behind the kv_len[b] positions of each sequence.

    Token t of sequence b gets position p = kv_len[b] + t, which is line p % page_size of page
    page_table[b, p // page_size]: the table of flash_attn_with_kvcache, as FlashInfer's batch_indices and positions, which it
    says without work on the host; paged_append_slots_ takes a place per token. kv_len is as before the call and stays so: add
    the tokens to it for paged_attention.

    Args:
        key: [B, tokens, Hkv, D]; with `cu_seq` [total, Hkv, D].
        value: The same with Dv.
        key_pages: [pages, page size, Hkv, D]; written to.
        value_pages: [pages, page size, Hkv, Dv]; written to.
        page_table: (B, most pages of a sequence), i32 or i64.
        kv_len: (B,), as page_table: how many positions each sequence has.
        cu_seq: (B + 1,), as page_table: where each sequence's new tokens begin, and the total.
        k_scale: () or (Hkv,), f32, where key_pages are f8e4m3 or i8: codes of key / k_scale are written.
        v_scale: The same of values.
    """
    check_lengths("paged_append_", kv_len, page_table)
    shapes = "tokens are [total, heads, dim]", "[batch, tokens, heads, dim]"
    check_packed("paged_append_", "cu_seq", cu_seq, key, *shapes)
    codes, k_scale, v_scale = codes_of("paged_append_", key.element, key_pages, value_pages, k_scale, v_scale)
    desc = PagedAppendDescriptor(
        key_pages.shape, value_pages.shape, page_table.shape, key.shape, value.shape, key.element, page_table.element, codes
    )  # fmt: skip
    return call(
        desc, k=key, v=value, page_table=page_table, kv_len=kv_len, cu_seq=cu_seq, k_scale=k_scale, v_scale=v_scale,
        k_pages=key_pages, v_pages=value_pages,
    )  # fmt: skip


@function(tensors="key value key_pages value_pages slot_mapping k_scale v_scale")
def paged_append_slots_(
    call: Call,
    key: Arg,
    value: Arg,
    key_pages: Arg,
    value_pages: Arg,
    slot_mapping: Arg,
    *,
    k_scale: Arg | None = None,
    v_scale: Arg | None = None,
) -> Recipe:
    """Writes new keys and values to slots of a paged cache, in place, as vLLM's reshape_and_cache_flash.

    Args:
        key: [tokens, Hkv, D].
        value: [tokens, Hkv, Dv].
        key_pages: [pages, page size, Hkv, D]; written to.
        value_pages: [pages, page size, Hkv, Dv]; written to.
        slot_mapping: (tokens,), i32 or i64: token t goes to line slot % page_size of page slot // page_size; -1: nowhere.
        k_scale: () or (Hkv,), f32, where key_pages are f8e4m3 or i8: codes of key / k_scale are written.
        v_scale: The same of values.
    """
    name = "paged_append_slots_"
    codes, k_scale, v_scale = codes_of(name, key.element, key_pages, value_pages, k_scale, v_scale)
    if slot_mapping.shape != key.shape[:1]:
        raise InvalidProblemError(
            f"{name}: slot_mapping: got shape {shape_text(slot_mapping.shape)}, want {shape_text(key.shape[:1])}, a slot for "
            "each token of key."
        )
    desc = PagedAppendSlotsDescriptor(
        key_pages.shape, value_pages.shape, key.shape, value.shape, key.element, slot_mapping.element, codes
    )
    return call(
        desc,
        k=key,
        v=value,
        slots=slot_mapping,
        k_scale=k_scale,
        v_scale=v_scale,
        k_pages=key_pages,
        v_pages=value_pages,
    )
