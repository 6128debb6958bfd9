"""Scaled dot product attention and its key-value cache. Kernels: csrc/ops/attention; reference: attention_ref.py."""

from __future__ import annotations

from enum import Enum
from math import sqrt
from typing import Any

from baracuda.call.op import Arg, Call, NotDifferentiable, Op, Recipe, function
from baracuda.describe.dims import Dim, Shape, largest, shape_text
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError, UnsupportedError
from baracuda.describe.spec import (
    Descriptor,
    Param,
    ScalarParam,
    Signature,
    descriptor,
    frame,
    inout,
    output,
    scalar,
    tensor,
)


class CausalAlignment(Enum):
    """Where the causal diagonal lies when there are more keys than queries, or fewer.

    BOTTOM_RIGHT: the last query uses all valid keys, as a decoding model needs. TOP_LEFT: query i uses keys 0 to i, as
    torch's `is_causal`.
    """

    BOTTOM_RIGHT = "bottom_right"
    TOP_LEFT = "top_left"

    def __int__(self) -> int:
        return int(self is CausalAlignment.TOP_LEFT)


class Scored(Descriptor):
    """What descriptors of attention have in common about scores. Their fields stand in each, in its own order."""

    __slots__ = ()
    causal: bool
    element: Element
    window_left: int
    window_right: int
    softcap: float
    alibi_shape: Shape | None

    def check_scores(self, batch: int | Dim, heads: int | Dim) -> None:
        """The fields of windows, softcaps and slopes."""
        for field in ("window_left", "window_right"):
            if getattr(self, field) < -1:
                raise self.wrong(field, getattr(self, field), "a number of keys, or -1 for no end on that side")
        if self.softcap and not 1e-30 <= self.softcap <= 1e30:
            raise self.wrong("softcap", self.softcap, "0.0 for none, or a number from 1e-30 to 1e30")
        if self.alibi_shape not in (None, (heads,), (batch, heads)):
            raise self.wrong("alibi_shape", self.alibi_shape, f"({heads},) or ({batch}, {heads}): slopes of heads")

    @property
    def lse_element(self) -> Element:
        """Element of the logarithms of sums of exponentials, and of alibi's slopes."""
        return Element.F64 if self.element is Element.F64 else Element.F32

    def alibi(self) -> Param:
        """Slopes of heads, where there are any."""
        return tensor("alibi", self.alibi_shape or (), self.lse_element, present=self.alibi_shape is not None)

    def scale(self, dim: int | Dim) -> ScalarParam:
        """What scores are multiplied by: 1/sqrt(dim) by default."""
        d = largest(dim)
        return scalar("scale", "float", 1 / sqrt(d) if d else 1.0)


def check_options(name: str, field: str, window: object, alibi: Arg | None, element: Element) -> None:
    """What a function is given as a window and as slopes."""
    if not isinstance(window, (tuple, list)) or len(window) != 2:
        raise InvalidProblemError(f"{name}: {field}: got {window!r}, want (left, right): two ints, -1 for no end.")
    want = Element.F64 if element is Element.F64 else Element.F32
    if alibi is not None and alibi.element is not want:
        raise InvalidProblemError(f"{name}: alibi_slopes: got {alibi.element}, want {want} for {element}. Cast it.")


@frame
class _Attention(Scored):
    """Fields and checks that forward and backward share."""

    __slots__ = ()
    q_shape: Shape
    k_shape: Shape
    v_shape: Shape
    causal: bool = False
    causal_alignment: CausalAlignment = CausalAlignment.BOTTOM_RIGHT
    mask_shape: Shape | None = None
    mask_element: Element = Element.BOOL
    element: Element = Element.F32
    window_left: int = -1
    window_right: int = -1
    softcap: float = 0.0
    alibi_shape: Shape | None = None

    def validate(self) -> None:
        for field in ("q_shape", "k_shape", "v_shape"):
            shape = getattr(self, field)
            if len(shape) != 4:
                raise self.wrong(field, shape, "four dimensions [batch, heads, sequence, dim]")
        q, k, v = self.q_shape, self.k_shape, self.v_shape
        if (k[0], k[3]) != (q[0], q[3]):
            raise self.wrong("k_shape", k, f"the batch {q[0]} and the dim {q[3]} of q_shape")
        if v[:3] != k[:3]:
            raise self.wrong("v_shape", v, f"the batch, heads and sequence {shape_text(k[:3])} of k_shape")
        if isinstance(q[3], Dim) or isinstance(v[3], Dim):
            raise self.wrong("q_shape", q, "an int as the last dimension of q_shape, k_shape and v_shape")
        heads, kv_heads = largest(q[1]), largest(k[1])
        if q[1] != k[1] and (isinstance(q[1], Dim) or isinstance(k[1], Dim) or kv_heads == 0 or heads % kv_heads):
            raise self.wrong("k_shape", k, f"a number of heads that divides the {q[1]} heads of q_shape")
        if self.mask_shape is not None:
            self._check_mask(self.mask_shape)
        self.check_scores(q[0], q[1])

    def _check_mask(self, mask: Shape) -> None:
        full = (self.q_shape[0], self.q_shape[1], self.q_shape[2], self.k_shape[2])
        if len(mask) > 4 or any(m not in (1, f) for m, f in zip(mask[::-1], full[::-1], strict=False)):
            raise self.wrong("mask_shape", mask, f"a shape that broadcasts to {shape_text(full)}")
        if self.mask_element is not Element.BOOL and self.mask_element not in _FLOATS:
            raise self.wrong(
                "mask_element",
                str(self.mask_element),
                "bool (True keeps a key), or f16, bf16, f32, f64 (added to the scores)",
            )

    @property
    def out_shape(self) -> Shape:
        """Shape of the result."""
        return (*self.q_shape[:3], self.v_shape[3])

    def inputs(self) -> tuple[Param, ...]:
        """What forward and backward read alike."""
        e = self.element
        return (
            tensor("q", self.q_shape, e),
            tensor("k", self.k_shape, e),
            tensor("v", self.v_shape, e),
            tensor("mask", self.mask_shape or (), self.mask_element, present=self.mask_shape is not None),
            self.alibi(),
        )

    def scalars(self) -> tuple[ScalarParam, ScalarParam]:
        """The numbers given to `run`."""
        return self.scale(self.q_shape[3]), scalar("kv_len", "int", -1)


_FLOATS = (Element.F16, Element.BF16, Element.F32, Element.F64)


@descriptor(family="attention", op="scaled_dot_product_attention", enums={"causal_alignment": CausalAlignment})
class AttentionDescriptor(_Attention):
    """out = softmax(scale * q @ k^T + mask) @ v, lse = logsumexp(scale * q @ k^T + mask), without a matrix of scores.

    Scores may be capped (`softcap`), fall with the distance (`alibi_shape`) and be limited to a window of keys around
    the query's own; whole blocks of keys outside are not computed. The own key of query i is i + kv_len - Sq (bottom
    right, as in flash-attention) or i (top left). Query head h uses kv head h // (H / Hkv). A query that may use no key
    gives zeros and lse = -inf. A NaN in a key or value that a query may not use (beyond `kv_len`, after the causal
    diagonal, outside the window) does not reach it (rows named "cudnn" keep that for `kv_len` only); one that a mask
    takes out does, as in torch. Packed layouts are views: any strides.

    Scalars: `scale` (1/sqrt(D) by default) and `kv_len`, how many of the Sk keys are valid (-1: all); the others are
    not read. One plan serves every `kv_len`. Halves and f32 accumulate in f32, f64 in f64; lse is f32, or f64 for f64.

    Errors: |err| is within the SKU's bound with K = Sk and terms p_j |v_j|, grown by what a rounding of the scores does
    to them; see attention_ref. Deterministic; the bits depend on neither batch nor threads.

    On cuda, the rows named "cudnn" carry out contiguous f16 and bf16 calls (16-byte aligned, `scale` a positive number,
    all keys valid) by cuDNN, and all other calls of the same plan by the portable bodies; their bits may depend on the
    batch. The graph is built by select.

    Args:
        q_shape: [B, H, Sq, D].
        k_shape: [B, Hkv, Sk, D]; H is a multiple of Hkv.
        v_shape: [B, Hkv, Sk, Dv].
        causal: Whether a query uses no key after it.
        causal_alignment: Which key is its own; see CausalAlignment.
        mask_shape: Shape of a mask that broadcasts to [B, H, Sq, Sk]; None for no mask.
        mask_element: bool (True keeps a key) or a float element (added to the scores).
        element: f16, bf16, f32 or f64.
        window_left: How many keys before its own a query uses, -1 for all. Its own key is as `causal_alignment` says.
        window_right: How many keys after its own a query uses, -1 for all; with `causal` none.
        softcap: c > 0 makes scores c * tanh(score / c), after the scale and before alibi and mask; 0.0: as they are.
        alibi_shape: (H,) or (B, H) for slopes of the heads, of lse's element: a key n places from a query's own gets
            -slope * n added to its score. None for none.
        save_lse: Whether lse is written; the backward needs it.
    """

    save_lse: bool = True

    def signature(self) -> Signature:
        return Signature(
            *self.inputs(),
            output("out", self.out_shape, self.element),
            output("lse", self.q_shape[:3], self.lse_element, present=self.save_lse),
            *self.scalars(),
        )


@descriptor(gradient_of=AttentionDescriptor)
class AttentionBackwardDescriptor(_Attention):
    """Gradients of attention with respect to q, k and v, from out and lse of the forward.

    With P = exp(scores - lse), dP = dout @ v^T and dS = P * (dP - rowsum(dout * out)): dv = P^T @ dout,
    dk = scale * dS^T @ q, dq = scale * dS @ k; the heads of a group are summed into their kv head. P is computed block
    by block, never as a whole; with a softcap dS is also multiplied by its slope 1 - tanh^2. Keys beyond `kv_len` get
    zeros. The mask and alibi's slopes have no gradient here. Sums have a fixed order:
    deterministic, and the bits depend on neither batch nor threads.

    Args:
        q_shape: [B, H, Sq, D].
        k_shape: [B, Hkv, Sk, D].
        v_shape: [B, Hkv, Sk, Dv].
        causal: As in the forward.
        causal_alignment: As in the forward.
        mask_shape: As in the forward.
        mask_element: As in the forward.
        element: f16, bf16, f32 or f64.
        window_left: As in the forward.
        window_right: As in the forward.
        softcap: As in the forward.
        alibi_shape: As in the forward.
    """

    def signature(self) -> Signature:
        e = self.element
        return Signature(
            tensor("dout", self.out_shape, e),
            *self.inputs(),
            tensor("out", self.out_shape, e),
            tensor("lse", self.q_shape[:3], self.lse_element),
            output("dq", self.q_shape, e),
            output("dk", self.k_shape, e),
            output("dv", self.v_shape, e),
            *self.scalars(),
        )


@descriptor(family="attention", op="kv_cache_append")
class KvCacheAppendDescriptor(Descriptor):
    """cache[b, :, p : p + S] = x[b], where p is `position`, or positions[b].

    The position is checked before anything is written: IndexOutOfRangeError when p < 0 or p + S > Smax. A copy: exact.
    The scalar `position` may be a 0-d tensor, so that one plan serves a whole decoding loop.

    Args:
        cache_shape: [B, Hkv, Smax, D].
        x_shape: [B, Hkv, S, D].
        positions_shape: (B,) for a position per batch entry in a tensor; None for the scalar.
        positions_element: i64 or i32.
        element: f16, bf16, f32 or f64.
    """

    cache_shape: Shape
    x_shape: Shape
    positions_shape: Shape | None = None
    positions_element: Element = Element.I64
    element: Element = Element.F32

    def validate(self) -> None:
        cache, x = self.cache_shape, self.x_shape
        if len(cache) != 4:
            raise self.wrong("cache_shape", cache, "four dimensions [batch, kv heads, longest sequence, dim]")
        if len(x) != 4 or (x[0], x[1], x[3]) != (cache[0], cache[1], cache[3]):
            raise self.wrong("x_shape", x, f"[{cache[0]}, {cache[1]}, new positions, {cache[3]}]")
        if self.positions_shape is not None and self.positions_shape != (cache[0],):
            raise self.wrong("positions_shape", self.positions_shape, f"({cache[0]},): one position per batch entry")
        if self.positions_element not in (Element.I64, Element.I32):
            raise self.wrong("positions_element", str(self.positions_element), "i64 or i32")

    def signature(self) -> Signature:
        positions = self.positions_shape
        return Signature(
            tensor("x", self.x_shape, self.element),
            tensor("positions", positions or (), self.positions_element, present=positions is not None),
            inout("cache", self.cache_shape, self.element),
            scalar("position", "int", 0),
        )


OPS = (
    Op(
        "scaled_dot_product_attention",
        AttentionDescriptor,
        AttentionBackwardDescriptor,
        "out = softmax(scale * q @ k^T + mask) @ v, with grouped heads, causal masks and a key-value cache",
    ),
    Op(
        "kv_cache_append",
        KvCacheAppendDescriptor,
        NotDifferentiable("a cache serves generation, which is not differentiated"),
        "cache[:, :, position : position + S] = x",
    ),
)


def _heads(x: Arg) -> Arg:
    """With batch and head dimensions: [S, D] and [B, S, D] become rank 4."""
    if not 2 <= x.rank <= 4:
        raise UnsupportedError(
            f"scaled_dot_product_attention: got rank {x.rank} for {x.name}, want 2 to 4. Merge the leading dimensions."
        )
    while x.rank < 4:
        x = x.insert(1 if x.rank == 3 else 0)
    return x


def _scores(
    window: tuple[int, int], softcap: float, alibi: Arg | None, alignment: str, element: Element
) -> dict[str, Any]:
    """The fields of what torch's function has no parameters for."""
    check_options("scaled_dot_product_attention", "window", window, alibi, element)
    return {
        "window_left": window[0],
        "window_right": window[1],
        "softcap": softcap,
        "alibi_shape": None if alibi is None else alibi.shape,
        "causal_alignment": alignment,
    }


def _problem(
    q: Arg, k: Arg, v: Arg, mask: Arg | None, dropout_p: float, is_causal: bool, enable_gqa: bool
) -> dict[str, Any]:
    """The other fields that forward and backward descriptors share, with torch's rules."""
    name = "scaled_dot_product_attention"
    if dropout_p:
        raise UnsupportedError(
            f"{name}: got dropout_p={dropout_p}, want 0.0. Dropout inside attention is not built; drop its output."
        )
    if mask is not None and is_causal:
        raise UnsupportedError(
            f"{name}: got both attn_mask and is_causal=True, want one of them. Put the causal part into the mask."
        )
    if q.shape[1] != k.shape[1] and not enable_gqa:
        raise UnsupportedError(
            f"{name}: got {q.shape[1]} query heads and {k.shape[1]} kv heads. Pass enable_gqa=True for grouped heads."
        )
    shape, element = (None, Element.BOOL) if mask is None else (mask.shape, mask.element)
    return {
        "q_shape": q.shape,
        "k_shape": k.shape,
        "v_shape": v.shape,
        "causal": bool(is_causal),
        "mask_shape": shape,
        "mask_element": element,
        "element": q.element,
    }


def _attend(
    call: Call,
    query: Arg,
    key: Arg,
    value: Arg,
    mask: Arg | None,
    dropout_p: float,
    is_causal: bool,
    scale: Arg | None,
    enable_gqa: bool,
    window: tuple[int, int],
    softcap: float,
    alibi: Arg | None,
    alignment: str,
    save: bool,
) -> Recipe:
    q, k, v = _heads(query), _heads(key), _heads(value)
    problem = _problem(q, k, v, mask, dropout_p, is_causal, enable_gqa)
    desc = AttentionDescriptor(**problem, **_scores(window, softcap, alibi, alignment, q.element), save_lse=save)
    out = (*query.shape[:-1], value.shape[-1])
    dims = q.dims or (0, 1, 2, 3)
    views = {"out": (out, dims), "lse": (out[:-1], dims[:3])} if query.rank < 4 else None
    return call(desc, views=views, q=q, k=k, v=v, mask=mask, alibi=alibi, scale=scale)


@function(tensors="query key value attn_mask alibi_slopes", scalars="scale")
def scaled_dot_product_attention(
    call: Call,
    query: Arg,
    key: Arg,
    value: Arg,
    attn_mask: Arg | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: Arg | None = None,
    enable_gqa: bool = False,
    *,
    window: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: Arg | None = None,
    causal_alignment: str = "top_left",
) -> Recipe:
    """softmax(scale * query @ key^T + mask) @ value, as torch.nn.functional.scaled_dot_product_attention.

    What torch's has no parameters for is in keywords, with the meaning that it has in flash-attention.

    Args:
        query: [..., H, Sq, D], rank 2 to 4.
        key: [..., Hkv, Sk, D].
        value: [..., Hkv, Sk, Dv].
        attn_mask: Boolean (True keeps a key) or additive; broadcasts to [B, H, Sq, Sk].
        dropout_p: Only 0.0.
        is_causal: Query i uses no key after its own, which is key i (torch's top-left alignment).
        scale: 1/sqrt(D) by default.
        enable_gqa: Allows fewer kv heads than query heads.
        window: (left, right): how many keys before and after its own a query uses; -1 for all of a side.
        softcap: c > 0: scores become c * tanh(score / c), before ALiBi and the mask.
        alibi_slopes: (H,) or (B, H), f32 (f64 for f64): scores fall by slope * |distance| from the query's own key.
        causal_alignment: "bottom_right": query i's own key is i + Sk - Sq, as in flash-attention.

    Returns:
        [..., H, Sq, Dv]. A query that may use no key gives zeros.
    """
    return _attend(
        call, query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa, window, softcap, alibi_slopes,
        causal_alignment, save=False,
    )  # fmt: skip


@function(tensors="query key value attn_mask alibi_slopes", scalars="scale")
def scaled_dot_product_attention_forward(
    call: Call,
    query: Arg,
    key: Arg,
    value: Arg,
    attn_mask: Arg | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: Arg | None = None,
    enable_gqa: bool = False,
    *,
    window: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: Arg | None = None,
    causal_alignment: str = "top_left",
) -> Recipe:
    """scaled_dot_product_attention that returns (out, lse), for the backward."""
    return _attend(
        call, query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa, window, softcap, alibi_slopes,
        causal_alignment, save=True,
    )  # fmt: skip


@function(tensors="dout query key value out_saved lse attn_mask alibi_slopes", scalars="scale")
def scaled_dot_product_attention_backward(
    call: Call,
    dout: Arg,
    query: Arg,
    key: Arg,
    value: Arg,
    out_saved: Arg,
    lse: Arg,
    attn_mask: Arg | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: Arg | None = None,
    enable_gqa: bool = False,
    *,
    window: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: Arg | None = None,
    causal_alignment: str = "top_left",
) -> Recipe:
    """Gradients (dquery, dkey, dvalue) of scaled_dot_product_attention, from what the forward returned."""
    q, k, v, dy, y = _heads(query), _heads(key), _heads(value), _heads(dout), _heads(out_saved)
    problem = _problem(q, k, v, attn_mask, dropout_p, is_causal, enable_gqa)
    problem |= _scores(window, softcap, alibi_slopes, causal_alignment, q.element)
    desc = AttentionBackwardDescriptor(**problem)
    saved = lse
    while saved.rank < 3:
        saved = saved.insert(1 if saved.rank == 2 else 0)
    views = {
        "d" + n: (a.shape, v4.dims) for n, a, v4 in (("q", query, q), ("k", key, k), ("v", value, v)) if v4.dims
    } or None
    given: dict[str, Any] = {
        "dout": dy,
        "q": q,
        "k": k,
        "v": v,
        "mask": attn_mask,
        "alibi": alibi_slopes,
        "out": y,
        "lse": saved,
    }
    return call(desc, views=views, **given, scale=scale)


scaled_dot_product_attention.pulled_by(
    scaled_dot_product_attention_backward, "out_saved lse", forward=scaled_dot_product_attention_forward
)
