"""Attention over a paged key-value cache. Kernels in csrc/ops/attention, reference in attention_paged_ref.py."""

from __future__ import annotations

from typing import Any

from baracuda.call.op import Arg, Call, NotDifferentiable, Op, Recipe, function
from baracuda.describe.dims import Dim, Shape, largest, shape_text
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError, UnsupportedError
from baracuda.describe.spec import Descriptor, Param, Signature, descriptor, frame, output, tensor
from baracuda.ops.attention.scores import CausalAlignment, Scored, check_options


@frame
class Paged(Descriptor):
    """What attention and append say of a cache."""

    __slots__ = ()
    k_pages_shape: Shape
    v_pages_shape: Shape

    def check_pages(self, element: Element, index_element: Element, cached: Element | None) -> None:
        """The cache, and the elements that it goes with."""
        k, v = self.k_pages_shape, self.v_pages_shape
        if len(k) != 4 or isinstance(k[1], Dim) or isinstance(k[2], Dim) or isinstance(k[3], Dim) or k[1] < 1:
            raise self.wrong("k_pages_shape", k, "[pages, page size above 0, kv heads, dim], ints but for the pages")
        if len(v) != 4 or v[:3] != k[:3] or isinstance(v[3], Dim):
            raise self.wrong("v_pages_shape", v, f"the pages, page size and heads {shape_text(k[:3])} of k_pages_shape")
        if index_element not in (Element.I32, Element.I64):
            raise self.wrong("index_element", str(index_element), "i32 or i64")
        if cached not in (None, Element.F8E4M3, Element.I8):
            raise self.wrong("cache_element", str(cached), "None for pages of `element`, or codes: f8e4m3 or i8")
        if cached is not None and element is Element.F64:
            raise self.wrong("cache_element", str(cached), "None for f64")

    def check_table(self, table: Shape) -> None:
        """Which pages sequences have."""
        if len(table) != 2:
            raise self.wrong("table_shape", table, "(sequences, most pages of a sequence)")

    def scales(self, cached: Element | None) -> tuple[Param, ...]:
        """What the codes of each head are multiplied by."""
        heads, there = self.k_pages_shape[2:3], cached is not None
        return tuple(tensor(n, heads, Element.F32, present=there) for n in ("k_scale", "v_scale"))


@descriptor(family="attention", op="paged_attention")
class PagedAttentionDescriptor(Paged, Scored):
    """Attention of the new queries of each sequence over the pages of a cache.

    Sequence b has kv_len[b] keys; key n is line n % size of page page_table[b, n // size]. Its queries are its last
    positions: the own key of query i is i + kv_len[b] - Sq. Packed queries lie one behind the other, from cu_seq_q[b] to
    cu_seq_q[b + 1]: any number of each sequence, so that chunks of prompts and new tokens share a call.
    Each sequence is what AttentionDescriptor makes of its keys laid one behind the other, bit for bit on the CPU: windows,
    softcap, ALiBi, grouped heads, sinks, zeros and lse = -inf for a query without keys. Keys are split into chunks of 256
    that threads share. Sequences may share pages.

    With a `cache_element` the pages hold codes, and key and value are codes times k_scale and v_scale of their head, which is
    done as they are read: scores are of q * (scale * k_scale), rounded once, and results are multiplied by v_scale.

    Errors: before anything is written on the CPU, IndexOutOfRangeError for a length below 0 or above what the table has
    room for, for an entry that names no page, and for cu_seq_q that does not begin with 0, falls, has more than max_q queries
    of a sequence or does not end with the total. Entries behind a sequence's last key, and in front of the window of
    its first query, are not looked at: any number may stand there.

    Args:
        q_shape: [B, Sq, H, D]; or packed, [total, H, D] with a tensor cu_seq_q (B + 1,).
        k_pages_shape: [pages, page size, Hkv, D]; H is a multiple of Hkv.
        v_pages_shape: [pages, page size, Hkv, Dv].
        table_shape: (B, most pages of a sequence).
        causal: Whether a query uses no key after its own.
        element: f16, bf16, f32 or f64.
        index_element: Of page_table, kv_len and cu_seq_q: i32 or i64.
        window_left: As in AttentionDescriptor.
        window_right: As in AttentionDescriptor.
        softcap: As in AttentionDescriptor.
        alibi_shape: (H,) or (B, H) for slopes; None for none.
        save_lse: Whether lse [B, H, Sq] is written; [H, total] of packed queries.
        sinks: As in AttentionDescriptor.
        max_q: The largest number of packed queries of a sequence, which GPUs spread work by; -1: as many as there are.
        cache_element: Of codes in the pages, f8e4m3 or i8, with f32 tensors k_scale and v_scale (Hkv,); None: pages are of
            `element`.
    """

    table_shape: Shape
    q_shape: Shape
    causal: bool = False
    element: Element = Element.F32
    index_element: Element = Element.I32
    window_left: int = -1
    window_right: int = -1
    softcap: float = 0.0
    alibi_shape: Shape | None = None
    save_lse: bool = False
    sinks: bool = False
    max_q: int = -1
    cache_element: Element | None = None

    def validate(self) -> None:
        self.check_pages(self.element, self.index_element, self.cache_element)
        self.check_table(self.table_shape)
        q, k, batch = self.q_shape, self.k_pages_shape, self.table_shape[0]
        if len(q) not in (3, 4) or isinstance(q[-2], Dim) or q[-1] != k[3]:
            want = f"[batch, queries, heads, {k[3]}], or packed [total, heads, {k[3]}], the heads an int"
            raise self.wrong("q_shape", q, want)
        if self.packed and isinstance(batch, Dim):
            raise self.wrong("table_shape", self.table_shape, "an int as the number of sequences of packed queries")
        if not -1 <= self.max_q < (2**31 if self.packed else 0):
            raise self.wrong("max_q", self.max_q, "the largest number of packed queries of a sequence, or -1")
        heads, kv_heads = largest(q[-2]), largest(k[2])
        if heads != kv_heads and (kv_heads == 0 or heads % kv_heads):
            raise self.wrong("k_pages_shape", k, f"a number of heads that divides the {heads} heads of q_shape")
        if not self.packed and batch != q[0]:
            raise self.wrong("table_shape", self.table_shape, f"({q[0]}, most pages of a sequence)")
        self.check_scores(batch, heads)

    @property
    def packed(self) -> bool:
        """Whether the queries lie one behind the other."""
        return len(self.q_shape) == 3

    @property
    def causal_alignment(self) -> CausalAlignment:
        """A sequence's queries are its last positions."""
        return CausalAlignment.BOTTOM_RIGHT

    @property
    def out_shape(self) -> Shape:
        """Shape of the result."""
        return (*self.q_shape[:-1], self.v_pages_shape[3])

    @property
    def lse_shape(self) -> Shape:
        """Shape of the logarithms of the sums of exponentials, as AttentionDescriptor's."""
        *batch, queries, heads, _ = self.q_shape
        return (*batch, heads, queries)

    def signature(self) -> Signature:
        e, kept = self.element, self.cache_element or self.element
        places = (largest(self.table_shape[0]) + 1,) if self.packed else ()
        return Signature(
            tensor("q", self.q_shape, e),
            tensor("k_pages", self.k_pages_shape, kept),
            tensor("v_pages", self.v_pages_shape, kept),
            tensor("page_table", self.table_shape, self.index_element),
            tensor("kv_len", self.table_shape[:1], self.index_element),
            tensor("cu_seq_q", places, self.index_element, present=self.packed),
            self.alibi(),
            self.sink_logits(self.q_shape[-2]),
            *self.scales(self.cache_element),
            output("out", self.out_shape, e),
            output("lse", self.lse_shape, self.lse_element, present=self.save_lse),
            self.scale(self.q_shape[-1]),
        )

    def aux_element(self) -> Element | None:
        return self.cache_element


CACHE = NotDifferentiable("a cache serves generation, which is not differentiated")
OPS = (
    Op(
        "paged_attention",
        PagedAttentionDescriptor,
        CACHE,
        "out = softmax(scale * q @ k^T) @ v of new queries over the pages of a key-value cache",
    ),
)


_NAME = "paged_attention"


def _heads_match(pages: Arg, other: Arg, enable_gqa: bool) -> None:
    if other.rank >= 3 and pages.rank == 4 and other.shape[-2] != pages.shape[2] and not enable_gqa:
        raise UnsupportedError(
            f"{_NAME}: got {other.shape[-2]} query heads and {pages.shape[2]} kv heads. "
            "Pass enable_gqa=True for grouped heads."
        )


def codes_of(
    name: str, element: Element, k_pages: Arg, v_pages: Arg, k_scale: Arg | None, v_scale: Arg | None
) -> tuple[Element | None, Arg | None, Arg | None]:
    """The element of a cache's codes, None for none, and their scales for each head."""
    codes = None if k_pages.element is element else k_pages.element
    if codes not in (None, Element.F8E4M3, Element.I8):
        want = f"{element}, the element of the call, or codes: f8e4m3 or i8"
        raise InvalidProblemError(f"{name}: {k_pages.name}: got {codes}, want {want}.")
    scales = []
    for scale, pages in ((k_scale, k_pages), (v_scale, v_pages)):
        if pages.element is not k_pages.element:
            raise InvalidProblemError(f"{name}: {pages.name}: got {pages.element}, want {k_pages.element} as the keys.")
        field = "k_scale" if pages is k_pages else "v_scale"
        want = f"f32 of shape () or ({pages.shape[2]},), for codes in f8e4m3 or i8" if pages.rank == 4 else "f32"
        if (scale is None) != (codes is None):
            got = "None" if scale is None else "a tensor"
            raise InvalidProblemError(
                f"{name}: {field}: got {got} for {pages.name} in {pages.element}, want "
                f"{'None, as for any cache in the element of the call' if codes is None else want}."
            )
        if scale is None or pages.rank != 4:
            scales.append(scale)
            continue
        if scale.element is not Element.F32 or scale.shape not in ((), (1,), (pages.shape[2],)):
            raise InvalidProblemError(
                f"{name}: {field}: got {scale.element} of shape {shape_text(scale.shape)}, want {want}."
            )
        whole = scale if scale.rank else scale.insert(0)
        scales.append(whole if whole.shape == pages.shape[2:3] else whole.fit(pages.shape[2:3]))
    return codes, scales[0], scales[1]


def check_lengths(name: str, kv_len: Arg, table: Arg) -> None:
    """Whether lengths and table go together."""
    if kv_len.shape != table.shape[:1] or kv_len.element is not table.element:
        raise InvalidProblemError(
            f"{name}: kv_len: got {kv_len.element} of shape {shape_text(kv_len.shape)}, want {table.element} of shape "
            f"{shape_text(table.shape[:1])}, as page_table is {table.element} of shape {shape_text(table.shape)}."
        )


def check_packed(name: str, field: str, starts: Arg | None, x: Arg, packed: str, other: str) -> None:
    """Whether a tensor of packed lines comes with their places, and only such a one."""
    if (starts is not None) != (x.rank == 3):
        raise InvalidProblemError(
            f"{name}: {field}: got {'None' if starts is None else 'a tensor'} for {x.name} of shape "
            f"{shape_text(x.shape)}, want {'(sequences + 1,)' if starts is None else 'None'}: packed {packed} with {field}, "
            f"others {other} without."
        )


def _attend(
    call: Call,
    query: Arg,
    key_pages: Arg,
    value_pages: Arg,
    page_table: Arg,
    kv_len: Arg,
    cu_seq_q: Arg | None,
    max_q: int | None,
    scale: Arg | None,
    window: tuple[int, int],
    enable_gqa: bool,
    softcap: float,
    sinks: Arg | None,
    alibi: Arg | None,
    k_scale: Arg | None,
    v_scale: Arg | None,
    save: bool,
) -> Recipe:
    _heads_match(key_pages, query, enable_gqa)
    check_options(_NAME, "window_size", window, alibi, sinks, query.element)
    check_lengths(_NAME, kv_len, page_table)
    shapes = "queries are [total, heads, dim]", "[batch, queries, heads, dim]"
    check_packed(_NAME, "cu_seq_q", cu_seq_q, query, *shapes)
    codes, k_scale, v_scale = codes_of(_NAME, query.element, key_pages, value_pages, k_scale, v_scale)
    desc = PagedAttentionDescriptor(
        key_pages.shape,
        value_pages.shape,
        page_table.shape,
        query.shape,
        element=query.element,
        index_element=page_table.element,
        window_left=window[0],
        window_right=window[1],
        softcap=softcap,
        alibi_shape=None if alibi is None else alibi.shape,
        save_lse=save,
        sinks=sinks is not None,
        max_q=-1 if max_q is None else max_q,
        cache_element=codes,
    )
    given: dict[str, Any] = {"q": query, "k_pages": key_pages, "v_pages": value_pages, "alibi": alibi, "sinks": sinks}
    given |= {"k_scale": k_scale, "v_scale": v_scale}
    return call(desc, **given, page_table=page_table, kv_len=kv_len, cu_seq_q=cu_seq_q, scale=scale)


_TENSORS = "query key_pages value_pages page_table kv_len cu_seq_q sinks alibi_slopes k_scale v_scale"


@function(tensors=_TENSORS, scalars="scale")
def paged_attention(
    call: Call,
    query: Arg,
    key_pages: Arg,
    value_pages: Arg,
    page_table: Arg,
    kv_len: Arg,
    *,
    cu_seq_q: Arg | None = None,
    max_q: int | None = None,
    scale: Arg | None = None,
    window_size: tuple[int, int] = (-1, -1),
    enable_gqa: bool = False,
    softcap: float = 0.0,
    sinks: Arg | None = None,
    alibi_slopes: Arg | None = None,
    k_scale: Arg | None = None,
    v_scale: Arg | None = None,
) -> Recipe:
    """Attention of each sequence's last queries over the pages of a key-value cache, as flash_attn_with_kvcache.

    softmax(scale * query @ key^T) @ value, where key n of sequence b is line n % page_size of page
    page_table[b, n // page_size]. The layouts are those of torch's varlen_attn with a block_table and of flash-attention.
    Entries of the table that are not used may be any number. With `cu_seq_q` each sequence has its own number of queries,
    as in flash_attn_varlen_func with a block_table: chunks of prompts and new tokens in one call.

    Args:
        query: [B, Sq, H, D]: the last Sq positions of each sequence, one for decoding; with `cu_seq_q` [total, H, D].
        key_pages: [pages, page size, Hkv, D].
        value_pages: [pages, page size, Hkv, Dv].
        page_table: (B, most pages of a sequence), i32 or i64.
        kv_len: (B,), as page_table: how many keys each sequence has, those of the queries among them.
        cu_seq_q: (B + 1,), as page_table: where each sequence's queries begin, and the total.
        max_q: The largest number of queries of a sequence; GPUs waste less work where they know it.
        scale: 1/sqrt(D) by default.
        window_size: (left, right): how many keys before and after its own a query uses; -1 for all of a side, so that
            (-1, 0) is causal. The last query's own key is the last key.
        enable_gqa: Allows fewer kv heads than query heads.
        softcap: c > 0: scores become c * tanh(score / c).
        sinks: (H,), f32 (f64 for f64): logits of the heads, as in scaled_dot_product_attention.
        alibi_slopes: (H,) or (B, H), f32 (f64 for f64).
        k_scale: () or (Hkv,), f32: what the codes of key_pages in f8e4m3 or i8 are multiplied by; None where they are of the
            query's element.
        v_scale: The same of value_pages.

    Returns:
        [B, Sq, H, Dv], or [total, H, Dv]. A query without keys gives zeros.
    """
    return _attend(
        call, query, key_pages, value_pages, page_table, kv_len, cu_seq_q, max_q, scale, window_size, enable_gqa,
        softcap, sinks, alibi_slopes, k_scale, v_scale, save=False,
    )  # fmt: skip


@function(tensors=_TENSORS, scalars="scale")
def paged_attention_forward(
    call: Call,
    query: Arg,
    key_pages: Arg,
    value_pages: Arg,
    page_table: Arg,
    kv_len: Arg,
    *,
    cu_seq_q: Arg | None = None,
    max_q: int | None = None,
    scale: Arg | None = None,
    window_size: tuple[int, int] = (-1, -1),
    enable_gqa: bool = False,
    softcap: float = 0.0,
    sinks: Arg | None = None,
    alibi_slopes: Arg | None = None,
    k_scale: Arg | None = None,
    v_scale: Arg | None = None,
) -> Recipe:
    """paged_attention that returns (out, lse), for attention_merge; lse is [B, H, Sq], or [H, total]."""
    return _attend(
        call, query, key_pages, value_pages, page_table, kv_len, cu_seq_q, max_q, scale, window_size, enable_gqa,
        softcap, sinks, alibi_slopes, k_scale, v_scale, save=True,
    )  # fmt: skip
