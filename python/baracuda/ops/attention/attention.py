"""Scaled dot product attention. Kernels: csrc/ops/attention; reference: attention_ref.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from baracuda import _core
from baracuda.call.op import Arg, Call, Op, Recipe, function
from baracuda.describe.dims import Dim, Shape, largest, shape_text
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError, UnsupportedError
from baracuda.describe.sizes import SizeExpr, product
from baracuda.describe.spec import (
    Param,
    ScalarParam,
    Signature,
    descriptor,
    frame,
    output,
    scalar,
    tensor,
)
from baracuda.memory.generator import chosen
from baracuda.ops.attention.scores import CausalAlignment, Scored, check_options, with_sinks

T = TypeVar("T")


def _blocks(rows: Shape, keys: Shape) -> SizeExpr:
    """What dropout takes of its generator: a number for each weight."""
    return product((*rows, *keys)).ceil(4)


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
    dropout: bool = False
    sinks: bool = False

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
            self.sink_logits(self.q_shape[1]),
        )

    def scalars(self) -> tuple[ScalarParam, ...]:
        """The numbers given to `run`."""
        return (
            self.scale(self.q_shape[3]),
            scalar("kv_len", "int", -1),
            scalar("dropout_p", default=0.5, present=self.dropout),
            scalar("seed", "unsigned", present=self.dropout),
            scalar("offset", "unsigned", 0, present=self.dropout),
        )

    def blocks(self) -> SizeExpr:
        """What dropout takes of its generator."""
        return _blocks(self.q_shape[:3], self.k_shape[2:3])


_FLOATS = (Element.F16, Element.BF16, Element.F32, Element.F64)


@descriptor(family="attention", op="scaled_dot_product_attention", enums={"causal_alignment": CausalAlignment})
class AttentionDescriptor(_Attention):
    """out = softmax(scale * q @ k^T + mask) @ v, lse = logsumexp(scale * q @ k^T + mask), without a matrix of scores.

    Scores may be capped (`softcap`), fall with the distance (`alibi_shape`) and be limited to a window of keys around
    the query's own; whole blocks of keys outside are not computed. The own key of query i is i + kv_len - Sq (bottom
    right, as in flash-attention) or i (top left). Query head h uses kv head h // (H / Hkv). A query that may use no key
    gives zeros and lse = -inf. With `sinks`, a logit of each head joins the sum of exponentials that its weights are divided by,
    out = sum_j exp(s_j) v_j / (exp(sink) + sum_j exp(s_j)), and lse is the logarithm of that sum: merged with parts that have no
    sink (attention_merge) it counts once. A NaN in a key or value that a query may not use (beyond `kv_len`, after the causal
    diagonal, outside the window) does not reach it (rows named "cudnn" keep that for `kv_len` only); one that a mask
    takes out does, as in torch. Packed layouts are views: any strides.

    Scalars: `scale` (1/sqrt(D) by default) and `kv_len`, how many of the Sk keys are valid (-1: all); the others are
    not read. One plan serves every `kv_len`. Halves and f32 accumulate in f32, f64 in f64; lse is f32, or f64 for f64.

    With `dropout` there are three more: `dropout_p` in [0, 1], `seed` and `offset`. The weight of (b, h, q, k) becomes 0
    where op dropout, given the same three, drops element ((b * H + h) * Sq + q) * Sk + k; all others are divided by
    1 - dropout_p. lse is that of all weights. The backward makes the same choice again, so that nothing is saved.

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
        dropout: Whether weights are dropped.
        sinks: Whether there is a tensor `sinks` (H,), of lse's element.
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
    dk = scale * dS^T @ q, dq = scale * dS @ k; the heads of a group are summed into their
    kv head. With dropout, dP and (in dv) P are multiplied by its factors. P is computed block
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
        dropout: As in the forward; `dropout_p`, `seed` and `offset` are to be those of the forward.
        sinks: As in the forward; then there is dsinks = -sum over a head's queries of exp(sink - lse) rowsum(dout * out).
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
            self.sink_gradients(self.q_shape[1]),
            *self.scalars(),
        )


OPS = (
    Op(
        "scaled_dot_product_attention",
        AttentionDescriptor,
        AttentionBackwardDescriptor,
        "out = softmax(scale * q @ k^T + mask) @ v, with grouped heads, causal masks and a key-value cache",
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
    window: tuple[int, int], softcap: float, sinks: Arg | None, alibi: Arg | None, alignment: str, element: Element
) -> dict[str, Any]:
    """The fields of what torch's function has no parameters for."""
    check_options("scaled_dot_product_attention", "window", window, alibi, sinks, element)
    return {
        "window_left": window[0],
        "window_right": window[1],
        "softcap": softcap,
        "alibi_shape": None if alibi is None else alibi.shape,
        "sinks": sinks is not None,
        "causal_alignment": alignment,
    }


def _problem(
    q: Arg, k: Arg, v: Arg, mask: Arg | None, dropout_p: float, is_causal: bool, enable_gqa: bool
) -> dict[str, Any]:
    """The other fields that forward and backward descriptors share, with torch's rules."""
    name = "scaled_dot_product_attention"
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
        "dropout": _drops(dropout_p),
    }


def _drops(p: object) -> bool:
    """Whether weights are dropped with this probability."""
    if isinstance(p, bool) or not isinstance(p, (int, float)) or not 0 <= p <= 1:
        raise InvalidProblemError(f"dropout_p: got {p!r}, want a number from 0 to 1.")
    return p > 0


def _state(dropout_p: float, seed: Arg | None, offset: Arg | None) -> dict[str, Any]:
    """Dropout's numbers, where there is one."""
    if dropout_p and seed is None:
        raise InvalidProblemError("seed: got None, want the generator's seed: dropout's weights are made from it.")
    return {"dropout_p": dropout_p, "seed": seed, "offset": offset} if dropout_p else {}


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
    sinks: Arg | None,
    alibi: Arg | None,
    alignment: str,
    state: dict[str, Any],
    save: bool,
) -> Recipe:
    q, k, v = _heads(query), _heads(key), _heads(value)
    problem = _problem(q, k, v, mask, dropout_p, is_causal, enable_gqa)
    desc = AttentionDescriptor(**problem, **_scores(window, softcap, sinks, alibi, alignment, q.element), save_lse=save)
    out = (*query.shape[:-1], value.shape[-1])
    dims = q.dims or (0, 1, 2, 3)
    views = {"out": (out, dims), "lse": (out[:-1], dims[:3])} if query.rank < 4 else None
    return call(desc, views=views, q=q, k=k, v=v, mask=mask, alibi=alibi, sinks=sinks, scale=scale, **state)


@function(tensors="query key value attn_mask sinks alibi_slopes", scalars="scale")
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
    sinks: Arg | None = None,
    alibi_slopes: Arg | None = None,
    causal_alignment: str = "top_left",
    generator: Any = None,
) -> Recipe:
    """softmax(scale * query @ key^T + mask) @ value, as torch.nn.functional.scaled_dot_product_attention.

    What torch's has no parameters for is in keywords, with the meaning that it has in flash-attention.

    Args:
        query: [..., H, Sq, D], rank 2 to 4.
        key: [..., Hkv, Sk, D].
        value: [..., Hkv, Sk, Dv].
        attn_mask: Boolean (True keeps a key) or additive; broadcasts to [B, H, Sq, Sk].
        dropout_p: Probability that a weight becomes 0; the others are divided by 1 - dropout_p. The weights dropped are
            not torch's, but the same on every backend and for every layout; see AttentionDescriptor.
        is_causal: Query i uses no key after its own, which is key i (torch's top-left alignment).
        scale: 1/sqrt(D) by default.
        enable_gqa: Allows fewer kv heads than query heads.
        window: (left, right): how many keys before and after its own a query uses; -1 for all of a side.
        softcap: c > 0: scores become c * tanh(score / c), before ALiBi and the mask.
        sinks: (H,), f32 (f64 for f64): a logit of each head that weights are divided by with those of its keys, as in gpt-oss.
        alibi_slopes: (H,) or (B, H), f32 (f64 for f64): scores fall by slope * |distance| from the query's own key.
        causal_alignment: "bottom_right": query i's own key is i + Sk - Sq, as in flash-attention.
        generator: A bc.Generator for dropout; by default the one that `bc.manual_seed` seeds.

    Returns:
        [..., H, Sq, Dv]. A query that may use no key gives zeros.
    """
    return _attend(
        call, query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa, window, softcap, sinks,
        alibi_slopes, causal_alignment, {}, save=False,
    )  # fmt: skip


@function(tensors="query key value attn_mask sinks alibi_slopes", scalars="scale seed offset")
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
    sinks: Arg | None = None,
    alibi_slopes: Arg | None = None,
    causal_alignment: str = "top_left",
    seed: Arg | None = None,
    offset: Arg | None = None,
) -> Recipe:
    """scaled_dot_product_attention that returns (out, lse), for the backward; dropout is that of `seed` and `offset`."""
    return _attend(
        call, query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa, window, softcap, sinks,
        alibi_slopes, causal_alignment, _state(dropout_p, seed, offset), save=True,
    )  # fmt: skip


@function(tensors="dout query key value out_saved lse attn_mask sinks alibi_slopes", scalars="scale seed offset")
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
    sinks: Arg | None = None,
    alibi_slopes: Arg | None = None,
    causal_alignment: str = "top_left",
    seed: Arg | None = None,
    offset: Arg | None = None,
) -> Recipe:
    """Gradients (dquery, dkey, dvalue) of scaled_dot_product_attention, from what the forward returned, and was given.

    With sinks also dsinks.
    """
    q, k, v, dy, y = _heads(query), _heads(key), _heads(value), _heads(dout), _heads(out_saved)
    problem = _problem(q, k, v, attn_mask, dropout_p, is_causal, enable_gqa)
    problem |= _scores(window, softcap, sinks, alibi_slopes, causal_alignment, q.element)
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
        "sinks": sinks,
        "out": y,
        "lse": saved,
    }
    return call(desc, views=views, **given, scale=scale, **_state(dropout_p, seed, offset))


scaled_dot_product_attention.pulled_by(
    scaled_dot_product_attention_backward, "out_saved lse", with_sinks, scaled_dot_product_attention_forward
)
scaled_dot_product_attention.without_gradient("attn_mask alibi_slopes")
_vjp_without_dropout = cast(Any, scaled_dot_product_attention.vjp_rule)
_own = scaled_dot_product_attention.__signature__


def _drawn(given: dict[str, Any], use: Callable[[dict[str, Any]], T]) -> T:
    """Takes what dropout needs of the generator; `use` is given all that the forward takes."""
    generator = chosen(given.pop("generator"))
    query, key = (_core.describe(given[name])[0] for name in ("query", "key"))
    blocks = _blocks(query[:-1], key[-2:-1]).at({})  # whatever their ranks: the function refuses those
    return generator.draw(blocks, lambda seed, offset: use(given | {"seed": seed, "offset": offset}))


def _dropped(*values: Any) -> Any:
    given = dict(zip(_own.parameters, values, strict=True))
    if not (isinstance(given["dropout_p"], (int, float)) and given["dropout_p"] > 0):
        if given["generator"] is None:
            return NotImplemented
        return scaled_dot_product_attention(**given | {"generator": None})
    return _drawn(given, lambda all_of_it: scaled_dot_product_attention_forward(**all_of_it)[0])


scaled_dot_product_attention.or_else(_dropped)


@scaled_dot_product_attention.vjp
def _attention_vjp(*args: Any, **kwargs: Any) -> tuple[Any, Callable[..., Any]]:
    bound = _own.bind(*args, **kwargs)
    bound.apply_defaults()
    given = dict(bound.arguments)
    if not given["dropout_p"]:
        del given["generator"]
        return cast(tuple[Any, Callable[..., Any]], _vjp_without_dropout(**given))

    def forward(all_of_it: dict[str, Any]) -> tuple[Any, Callable[..., Any]]:
        out, lse = scaled_dot_product_attention_forward(**all_of_it)
        saved = all_of_it | {"out_saved": out, "lse": lse}
        return out, lambda dout: with_sinks(scaled_dot_product_attention_backward(dout=dout, **saved), all_of_it)

    return _drawn(given, forward)
