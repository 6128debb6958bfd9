"""One decoder for all architectures: tokens of any number of sequences, packed one behind the other, over a paged cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import baracuda.functional as F
from baracuda.llm.config import Config
from baracuda.llm.rope import Tables
from baracuda.llm.weights import Array, Matrix, Weights


@dataclass(frozen=True, slots=True)
class Packed:
    """Where the tokens of a call belong: n of them, of B sequences.

    Attributes:
        positions: (n,), i64: of each token in its sequence.
        starts: (B + 1,), i32: where each sequence's tokens begin, and n.
        past: (B,), i32: tokens that each sequence has in the cache.
        filled: (B,), i32: the same with those of the call.
        pages: (B, most pages of a sequence), i32: which pages of the cache are whose.
    """

    positions: Array
    starts: Array
    past: Array
    filled: Array
    pages: Array


class Attention:
    """Queries of new tokens over the keys of their sequences."""

    def __init__(self, c: Config, w: Weights, layer: int) -> None:
        name = f"blk.{layer}.attn_"
        self.config = c
        self.window = (c.window - 1 if c.windowed(layer) else -1, 0)
        sizes = c.heads * c.key_dim, c.kv_heads * c.key_dim, c.kv_heads * c.value_dim
        parts = (("qkv", sum(sizes)),) if c.kind.joined else tuple(zip("qkv", sizes, strict=True))
        self.into: list[tuple[Matrix, Array | None]] = [
            (w.matrix(f"{name}{part}.weight", size, c.width), w.vector_if(f"{name}{part}.bias", size))
            for part, size in parts
        ]
        self.ends = sizes[0], sizes[0] + sizes[1]
        self.out = w.matrix(f"{name}output.weight", c.width, c.heads * c.value_dim)
        self.out_bias = w.vector_if(f"{name}output.bias", c.width)
        self.norms: tuple[Array, Array] | None = None
        if c.kind.head_norms:
            self.norms = (w.vector(f"{name}q_norm.weight", c.key_dim), w.vector(f"{name}k_norm.weight", c.key_dim))

    def __call__(self, x: Array, tables: Tables, keys: Array, values: Array, at: Packed) -> Array:
        """The tokens, (n, width) -> (n, width); their keys and values are put into the cache."""
        c, n = self.config, x.shape[0]
        made = [matrix(x, bias) for matrix, bias in self.into]
        if c.kind.joined:
            first, second = self.ends
            made = [made[0][:, :first], made[0][:, first:second], made[0][:, second:]]
        q, k = made[0].reshape(n, c.heads, c.key_dim), made[1].reshape(n, c.kv_heads, c.key_dim)
        q, k = self._turned(q, k, tables, at.positions)
        v = made[2].reshape(n, c.kv_heads, c.value_dim)
        F.paged_append_(k, v, keys, values, at.pages, at.past, at.starts)
        y = F.paged_attention(
            q, keys, values, at.pages, at.filled, cu_seq_q=at.starts, scale=c.score_scale, window_size=self.window,
            enable_gqa=True, softcap=c.attention_softcap,
        )  # fmt: skip
        return self.out(y.reshape(n, c.heads * c.value_dim), self.out_bias)

    def _turned(self, q: Array, k: Array, tables: Tables, positions: Array) -> tuple[Array, Array]:
        """With rotary embeddings, and normalised before where heads are."""
        c = self.config
        q, k = q.transpose(1, 0, 2), k.transpose(1, 0, 2)
        options = {"positions": positions, "rotary_dim": c.rope.dim, "interleaved": c.kind.interleaved}
        if self.norms:
            q, k = F.qk_norm_rope(q, k, *self.norms, *tables, c.eps, **options)
        else:
            q, k = F.rope(q, *tables, **options), F.rope(k, *tables, **options)
        return q.transpose(1, 0, 2), k.transpose(1, 0, 2)


def _activated(kind: str, gate: Array, up: Array) -> Array:
    act = F.silu(gate) if kind == "silu" else F.gelu(gate, approximate="tanh")
    return F.mul(act, up)


class FeedForward:
    """down(act(gate(x)) * up(x))."""

    def __init__(self, c: Config, w: Weights, layer: int) -> None:
        name = f"blk.{layer}.ffn_"
        self.config = c
        parts = (("up", 2 * c.hidden),) if c.kind.joined else (("gate", c.hidden), ("up", c.hidden))
        self.into = [
            (w.matrix(f"{name}{part}.weight", size, c.width), w.vector_if(f"{name}{part}.bias", size))
            for part, size in parts
        ]
        self.down = w.matrix(f"{name}down.weight", c.width, c.hidden)
        self.down_bias = w.vector_if(f"{name}down.bias", c.width)

    def __call__(self, x: Array) -> Array:
        """Rows (n, width) -> (n, width)."""
        made = [matrix(x, bias) for matrix, bias in self.into]
        if self.config.kind.joined:
            made = [made[0][:, : self.config.hidden], made[0][:, self.config.hidden :]]
        return self.down(_activated(self.config.kind.activation, *made), self.down_bias)


class Experts:
    """The sum of some feed-forwards of many, which a router chooses for each token, by the softmax of their scores."""

    def __init__(self, c: Config, w: Weights, layer: int) -> None:
        name = f"blk.{layer}.ffn_"
        self.config = c
        self.router = w.matrix(f"{name}gate_inp.weight", c.experts, c.width)
        self.gate = w.matrix(f"{name}gate_exps.weight", c.experts, c.hidden, c.width)
        self.up = w.matrix(f"{name}up_exps.weight", c.experts, c.hidden, c.width)
        self.down = w.matrix(f"{name}down_exps.weight", c.experts, c.width, c.hidden)

    def __call__(self, x: Array) -> Array:
        """Rows (n, width) -> (n, width)."""
        c, n = self.config, x.shape[0]
        scores, ids = F.topk(self.router(x), c.used)
        shares = F.softmax(scores, -1).reshape(n, 1, c.used)
        row = x.reshape(n, 1, c.width)
        hidden = _activated(c.kind.activation, self.gate.of_experts(row, ids), self.up.of_experts(row, ids))
        return F.matmul(shares, self.down.of_experts(hidden, ids)).reshape(n, c.width)


class Layer:
    """Attention, then the feed-forward, each added to the stream."""

    def __init__(self, c: Config, w: Weights, layer: int) -> None:
        name = f"blk.{layer}."
        self.config = c
        self.windowed = c.windowed(layer)
        self.attention_norm = w.vector(f"{name}attn_norm.weight", c.width)
        self.attention = Attention(c, w, layer)
        self.norm = w.vector(f"{name}ffn_norm.weight", c.width)
        self.feed_forward = Experts(c, w, layer) if c.experts else FeedForward(c, w, layer)
        self.post_norms: list[Array] = []
        if c.kind.post_norms:
            self.post_norms = [w.vector(f"{name}{n}.weight", c.width) for n in ("post_attention_norm", "post_ffw_norm")]

    def __call__(self, stream: Array, tables: Tables, keys: Array, values: Array, at: Packed) -> Array:
        """The stream (n, width) behind the layer."""
        c = self.config
        y = self.attention(F.rms_norm(stream, (c.width,), self.attention_norm, c.eps), tables, keys, values, at)
        stream = self._added(y, stream, 0)
        y = self.feed_forward(F.rms_norm(stream, (c.width,), self.norm, c.eps))
        return self._added(y, stream, 1)

    def _added(self, y: Array, stream: Array, which: int) -> Array:
        if self.post_norms:
            return F.rms_norm_add(y, stream, (self.config.width,), self.post_norms[which], self.config.eps)
        return F.add(stream, y)


class Decoder:
    """A model's weights, and what it computes with them.

    Attributes:
        config: Sizes and numbers.
        vocabulary: How many tokens there are.
    """

    def __init__(self, c: Config, w: Weights) -> None:
        self.config, self.vocabulary = c, w.vocabulary(c.width)
        self.embedding = w.matrix("token_embd.weight", self.vocabulary, c.width)
        self.layers = [Layer(c, w, i) for i in range(c.layers)]
        self.norm = w.vector("output_norm.weight", c.width)
        self.head = self.embedding
        if w.has("output.weight"):
            self.head = w.matrix("output.weight", self.vocabulary, c.width)
        self.head_bias = w.vector_if("output.bias", self.vocabulary)
        w.refuse_others()

    def __call__(
        self, ids: Array, rows: Array, keys: Array, values: Array, at: Packed, tables: Sequence[Tables]
    ) -> Array:
        """Logits behind some of the tokens; keys and values of all of them are put into the cache.

        Args:
            ids: (n,), i32: the tokens.
            rows: (r,), i32: behind which of them logits are wanted.
            keys: (layers, pages, page size, kv_heads, key_dim); written to.
            values: The same with value_dim.
            at: Where the tokens belong.
            tables: Rotary embeddings: of layers that see all keys, and of those with a window.

        Returns:
            (r, vocabulary), f32.
        """
        c = self.config
        stream = self.embedding.rows(ids)
        if c.kind.scaled_embedding:
            stream = F.mul(stream, sqrt(c.width))
        for i, layer in enumerate(self.layers):
            stream = layer(stream, tables[layer.windowed], keys[i], values[i], at)
        last = F.index_select(stream, 0, rows)
        logits = self.head(F.rms_norm(last, (c.width,), self.norm, c.eps), self.head_bias)
        if c.logit_softcap:
            logits = F.mul(F.tanh(F.mul(logits, 1 / c.logit_softcap)), c.logit_softcap)
        return logits
