"""Attention of packed sequences of any lengths. Kernels in csrc/ops/attention, reference in attention_varlen_ref.py."""

from __future__ import annotations

from typing import Any

from baracuda.call.op import Arg, Call, Op, Recipe, function
from baracuda.describe.dims import Dim, Shape, largest, shape_text
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError, UnsupportedError
from baracuda.describe.spec import Param, Signature, descriptor, frame, output, tensor
from baracuda.ops.attention.scores import CausalAlignment, Scored, check_options, with_sinks


@frame
class _Packed(Scored):
    """Fields and checks that forward and backward share."""

    __slots__ = ()
    q_shape: Shape
    k_shape: Shape
    v_shape: Shape
    cu_shape: Shape
    max_q: int
    max_k: int
    causal: bool = False
    causal_alignment: CausalAlignment = CausalAlignment.BOTTOM_RIGHT
    element: Element = Element.F32
    index_element: Element = Element.I32
    window_left: int = -1
    window_right: int = -1
    softcap: float = 0.0
    alibi_shape: Shape | None = None
    sinks: bool = False

    def validate(self) -> None:
        for field in ("q_shape", "k_shape", "v_shape"):
            if len(getattr(self, field)) != 3:
                raise self.wrong(field, getattr(self, field), "three dimensions [total, heads, dim]")
        q, k, v = self.q_shape, self.k_shape, self.v_shape
        if k[2] != q[2]:
            raise self.wrong("k_shape", k, f"the dim {q[2]} of q_shape")
        if v[:2] != k[:2]:
            raise self.wrong("v_shape", v, f"the total and heads {shape_text(k[:2])} of k_shape")
        if any(isinstance(x, Dim) for x in (*q[1:], *k[1:], v[2])):
            raise self.wrong("q_shape", q, "ints as heads and dims of q_shape, k_shape and v_shape")
        heads, kv_heads = largest(q[1]), largest(k[1])
        if heads != kv_heads and (kv_heads == 0 or heads % kv_heads):
            raise self.wrong("k_shape", k, f"a number of heads that divides the {heads} heads of q_shape")
        if len(self.cu_shape) != 1 or isinstance(self.cu_shape[0], Dim) or self.cu_shape[0] < 1:
            raise self.wrong("cu_shape", self.cu_shape, "(sequences + 1,)")
        if self.index_element not in (Element.I32, Element.I64):
            raise self.wrong("index_element", str(self.index_element), "i32 or i64")
        for field in ("max_q", "max_k"):
            if getattr(self, field) < 0:
                raise self.wrong(field, getattr(self, field), "the largest length of a sequence")
        self.check_scores(self.cu_shape[0] - 1, heads)

    @property
    def out_shape(self) -> Shape:
        """Shape of the result."""
        return (*self.q_shape[:2], self.v_shape[2])

    @property
    def lse_shape(self) -> Shape:
        """Shape of the saved logarithms: heads first, as in flash-attention."""
        return (self.q_shape[1], self.q_shape[0])

    def inputs(self) -> tuple[Param, ...]:
        """What forward and backward read alike."""
        e = self.element
        return (
            tensor("q", self.q_shape, e),
            tensor("k", self.k_shape, e),
            tensor("v", self.v_shape, e),
            tensor("cu_seq_q", self.cu_shape, self.index_element),
            tensor("cu_seq_k", self.cu_shape, self.index_element),
            self.alibi(),
            self.sink_logits(self.q_shape[1]),
        )

    def aux_element(self) -> Element | None:
        return None


@descriptor(family="attention", op="varlen_attn", enums={"causal_alignment": CausalAlignment})
class VarlenAttentionDescriptor(_Packed):
    """Attention of sequences that lie one behind the other: sequence b has queries cu_seq_q[b] to cu_seq_q[b + 1].

    Each sequence is what AttentionDescriptor makes of it alone, bit for bit on the CPU: windows, softcap, ALiBi, grouped
    heads and the causal diagonal, which ends at its last query and key. Sequences may be empty. Both cu_seq begin with 0,
    do not fall and end with the total; no sequence is longer than `max_q` and `max_k`: otherwise IndexOutOfRangeError,
    before anything is written on the CPU.

    Args:
        q_shape: [total queries, H, D].
        k_shape: [total keys, Hkv, D]; H is a multiple of Hkv.
        v_shape: [total keys, Hkv, Dv].
        cu_shape: (sequences + 1,), the shape of cu_seq_q and cu_seq_k.
        max_q: The largest number of queries of a sequence.
        max_k: The largest number of keys of a sequence.
        causal: Whether a query uses no key after its own.
        causal_alignment: Which key is its own; see CausalAlignment.
        element: f16, bf16, f32 or f64.
        index_element: Of cu_seq_q and cu_seq_k: i32 or i64.
        window_left: As in AttentionDescriptor.
        window_right: As in AttentionDescriptor.
        softcap: As in AttentionDescriptor.
        alibi_shape: (H,) or (sequences, H) for slopes; None for none.
        sinks: As in AttentionDescriptor.
        save_lse: Whether lse [H, total queries] is written; the backward needs it.
    """

    save_lse: bool = True

    def signature(self) -> Signature:
        return Signature(
            *self.inputs(),
            output("out", self.out_shape, self.element),
            output("lse", self.lse_shape, self.lse_element, present=self.save_lse),
            self.scale(self.q_shape[2]),
        )


@descriptor(gradient_of=VarlenAttentionDescriptor)
class VarlenAttentionBackwardDescriptor(_Packed):
    """Gradients with respect to q, k and v of packed sequences, each as AttentionBackwardDescriptor's.

    Args:
        q_shape: [total queries, H, D].
        k_shape: [total keys, Hkv, D].
        v_shape: [total keys, Hkv, Dv].
        cu_shape: As in the forward.
        max_q: As in the forward.
        max_k: As in the forward.
        causal: As in the forward.
        causal_alignment: As in the forward.
        element: f16, bf16, f32 or f64.
        index_element: As in the forward.
        window_left: As in the forward.
        window_right: As in the forward.
        softcap: As in the forward.
        alibi_shape: As in the forward.
        sinks: As in AttentionBackwardDescriptor.
    """

    def signature(self) -> Signature:
        e = self.element
        return Signature(
            tensor("dout", self.out_shape, e),
            *self.inputs(),
            tensor("out", self.out_shape, e),
            tensor("lse", self.lse_shape, self.lse_element),
            output("dq", self.q_shape, e),
            output("dk", self.k_shape, e),
            output("dv", self.v_shape, e),
            self.sink_gradients(self.q_shape[1]),
            self.scale(self.q_shape[2]),
        )


OPS = (
    Op(
        "varlen_attn",
        VarlenAttentionDescriptor,
        VarlenAttentionBackwardDescriptor,
        "out = softmax(scale * q @ k^T) @ v of packed sequences of any lengths",
    ),
)


def _fields(
    query: Arg,
    key: Arg,
    value: Arg,
    cu_q: Arg,
    cu_k: Arg,
    alibi: Arg | None,
    sinks: Arg | None,
    window: tuple[int, int],
    *,
    enable_gqa: bool,
    **rest: Any,
) -> dict[str, Any]:
    """Fields of both descriptors."""
    if query.rank == 3 and key.rank == 3 and query.shape[1] != key.shape[1] and not enable_gqa:
        raise UnsupportedError(
            f"varlen_attn: got {query.shape[1]} query heads and {key.shape[1]} kv heads. "
            "Pass enable_gqa=True for grouped heads."
        )
    check_options("varlen_attn", "window_size", window, alibi, sinks, query.element)
    if cu_q.shape != cu_k.shape or cu_q.element is not cu_k.element:
        raise InvalidProblemError(
            f"varlen_attn: cu_seq_k: got {cu_k.element} of shape {shape_text(cu_k.shape)}, want {cu_q.element} of shape "
            f"{shape_text(cu_q.shape)}, as cu_seq_q."
        )
    return rest | {
        "q_shape": query.shape,
        "k_shape": key.shape,
        "v_shape": value.shape,
        "cu_shape": cu_q.shape,
        "element": query.element,
        "index_element": cu_q.element,
        "window_left": window[0],
        "window_right": window[1],
        "alibi_shape": None if alibi is None else alibi.shape,
        "sinks": sinks is not None,
    }


_TENSORS = "query key value cu_seq_q cu_seq_k sinks alibi_slopes"


@function(tensors=_TENSORS, scalars="scale")
def varlen_attn_forward(
    call: Call,
    query: Arg,
    key: Arg,
    value: Arg,
    cu_seq_q: Arg,
    cu_seq_k: Arg,
    max_q: int,
    max_k: int,
    *,
    scale: Arg | None = None,
    window_size: tuple[int, int] = (-1, -1),
    enable_gqa: bool = False,
    softcap: float = 0.0,
    sinks: Arg | None = None,
    alibi_slopes: Arg | None = None,
    causal_alignment: str = "bottom_right",
) -> Recipe:
    """varlen_attn that returns (out, lse), for the backward; lse is [H, total queries]."""
    fields = _fields(
        query, key, value, cu_seq_q, cu_seq_k, alibi_slopes, sinks, window_size, max_q=max_q, max_k=max_k,
        softcap=softcap, causal_alignment=causal_alignment, enable_gqa=enable_gqa,
    )  # fmt: skip
    given: dict[str, Any] = {"q": query, "k": key, "v": value, "cu_seq_q": cu_seq_q, "cu_seq_k": cu_seq_k}
    return call(VarlenAttentionDescriptor(**fields), **given, alibi=alibi_slopes, sinks=sinks, scale=scale)


@function(tensors=_TENSORS, scalars="scale")
def varlen_attn(
    call: Call,
    query: Arg,
    key: Arg,
    value: Arg,
    cu_seq_q: Arg,
    cu_seq_k: Arg,
    max_q: int,
    max_k: int,
    *,
    scale: Arg | None = None,
    window_size: tuple[int, int] = (-1, -1),
    enable_gqa: bool = False,
    softcap: float = 0.0,
    sinks: Arg | None = None,
    alibi_slopes: Arg | None = None,
    causal_alignment: str = "bottom_right",
) -> Recipe:
    """Attention of packed sequences, as torch.nn.attention.varlen.varlen_attn and flash_attn_varlen_func.

    Args:
        query: [total queries, H, D].
        key: [total keys, Hkv, D].
        value: [total keys, Hkv, Dv].
        cu_seq_q: (sequences + 1,), i32 or i64: where each sequence's queries begin, and the total.
        cu_seq_k: The same of the keys.
        max_q: The largest number of queries of a sequence.
        max_k: The largest number of keys of a sequence.
        scale: 1/sqrt(D) by default.
        window_size: (left, right): how many keys before and after its own a query uses; -1 for all of a side, so that
            (-1, 0) is causal.
        enable_gqa: Allows fewer kv heads than query heads.
        softcap: c > 0: scores become c * tanh(score / c).
        sinks: (H,), f32 (f64 for f64): logits of the heads, as in scaled_dot_product_attention.
        alibi_slopes: (H,) or (sequences, H), f32 (f64 for f64).
        causal_alignment: "bottom_right": a sequence's last query and key belong together; "top_left": its first ones.

    Returns:
        [total queries, H, Dv].
    """
    fields = _fields(
        query, key, value, cu_seq_q, cu_seq_k, alibi_slopes, sinks, window_size, max_q=max_q, max_k=max_k,
        softcap=softcap, causal_alignment=causal_alignment, enable_gqa=enable_gqa,
    )  # fmt: skip
    given: dict[str, Any] = {"q": query, "k": key, "v": value, "cu_seq_q": cu_seq_q, "cu_seq_k": cu_seq_k}
    return call(
        VarlenAttentionDescriptor(**fields, save_lse=False), **given, alibi=alibi_slopes, sinks=sinks, scale=scale
    )


@function(tensors="dout query key value out_saved lse cu_seq_q cu_seq_k sinks alibi_slopes", scalars="scale")
def varlen_attn_backward(
    call: Call,
    dout: Arg,
    query: Arg,
    key: Arg,
    value: Arg,
    out_saved: Arg,
    lse: Arg,
    cu_seq_q: Arg,
    cu_seq_k: Arg,
    max_q: int,
    max_k: int,
    *,
    scale: Arg | None = None,
    window_size: tuple[int, int] = (-1, -1),
    enable_gqa: bool = False,
    softcap: float = 0.0,
    sinks: Arg | None = None,
    alibi_slopes: Arg | None = None,
    causal_alignment: str = "bottom_right",
) -> Recipe:
    """Gradients (dquery, dkey, dvalue) of varlen_attn, from what varlen_attn_forward returned; with sinks dsinks, too."""
    fields = _fields(
        query, key, value, cu_seq_q, cu_seq_k, alibi_slopes, sinks, window_size, max_q=max_q, max_k=max_k,
        softcap=softcap, causal_alignment=causal_alignment, enable_gqa=enable_gqa,
    )  # fmt: skip
    given: dict[str, Any] = {"q": query, "k": key, "v": value, "cu_seq_q": cu_seq_q, "cu_seq_k": cu_seq_k}
    given |= {"dout": dout, "out": out_saved, "lse": lse, "alibi": alibi_slopes, "sinks": sinks}
    return call(VarlenAttentionBackwardDescriptor(**fields), **given, scale=scale)


varlen_attn.pulled_by(varlen_attn_backward, "out_saved lse", with_sinks, varlen_attn_forward)
varlen_attn.without_gradient("alibi_slopes")
