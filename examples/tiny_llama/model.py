"""A byte-level Llama: RMSNorm, RoPE, grouped-query attention, SwiGLU, tied embedding. Every tensor operation is a plan."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

import numpy as np
from program import Program
from storage import Array, Storage

import baracuda as bc

HOST = Storage()
Steps: TypeAlias = Program | bc.ProgramBuilder  # what takes down launches: over arrays, or over values of a bc.Program


@dataclass(frozen=True)
class Config:
    """Sizes of the model."""

    d_model: int = 256
    layers: int = 4
    heads: int = 8
    kv_heads: int = 2
    hidden: int = 688
    vocab: int = 256
    context: int = 256
    rope_base: float = 10000.0
    eps: float = 1e-5
    element: str = "f32"

    @property
    def head_dim(self) -> int:
        """Width of one head."""
        return self.d_model // self.heads

    @property
    def qkv(self) -> int:
        """Width of the joint projection to queries, keys and values."""
        return (self.heads + 2 * self.kv_heads) * self.head_dim

    @property
    def dtype(self) -> Any:
        """NumPy's dtype of the parameters."""
        return bc.Element.coerce(self.element).numpy

    @property
    def statistic(self) -> Any:
        """NumPy's dtype of saved statistics and moments."""
        return np.float64 if self.element == "f64" else np.float32


def parameter_shapes(c: Config) -> dict[str, tuple[int, ...]]:
    """Names and shapes of all parameters; matrices are [in, out]."""
    shapes: dict[str, tuple[int, ...]] = {"embedding": (c.vocab, c.d_model)}
    for i in range(c.layers):
        shapes |= {
            f"layers.{i}.attention_norm": (c.d_model,),
            f"layers.{i}.qkv": (c.d_model, c.qkv),
            f"layers.{i}.out": (c.d_model, c.d_model),
            f"layers.{i}.mlp_norm": (c.d_model,),
            f"layers.{i}.gate_up": (c.d_model, 2 * c.hidden),
            f"layers.{i}.down": (c.hidden, c.d_model),
        }
    shapes["norm"] = (c.d_model,)
    return shapes


def initialise(c: Config, seed: int, store: Storage = HOST) -> dict[str, Array]:
    """Normal weights (output projections scaled by 1/sqrt(2 layers)), norms of one."""
    parameters: dict[str, Array] = {}
    offset = 0
    for name, shape in parameter_shapes(c).items():
        parameters[name] = store.empty(shape, c.dtype)
        if len(shape) == 1:
            bc.plan(bc.FillDescriptor(shape, c.element), device=store.device).run(y=parameters[name], value=1.0)
            continue
        std = 0.02 / (2 * c.layers) ** 0.5 if name.endswith(("out", "down")) else 0.02
        draw = bc.plan(bc.RandomDescriptor("normal", shape, c.element), device=store.device)
        draw.run(y=parameters[name], std=std, seed=seed, offset=offset)
        offset += prod(shape)
    return parameters


def rope_tables(c: Config, store: Storage = HOST) -> tuple[Array, Array]:
    """Cos and sin of every position's angles."""
    shape = (c.context, c.head_dim // 2)
    cos, sin = store.empty(shape, c.dtype), store.empty(shape, c.dtype)
    bc.plan(bc.RopeTableDescriptor(shape, c.element), device=store.device).run(cos=cos, sin=sin, base=c.rope_base)
    return cos, sin


class Activations:
    """Arrays of one forward pass over [batch, length] tokens; those that the backward pass needs are kept per layer."""

    def __init__(self, c: Config, batch: int, length: int, *, keep: bool, store: Storage = HOST) -> None:
        self.c, self.batch, self.length, self.store = c, batch, length, store
        tokens = batch * length
        self.ids = store.zeros((batch, length), np.int64)
        self._layers = c.layers if keep else 1
        self.inputs = [self._empty(tokens, c.d_model) for _ in range(c.layers + 1)]
        self.normed = self._per_layer(tokens, c.d_model)
        self.rstd = [store.empty((tokens, 1), c.statistic) for _ in range(c.layers + 1)]
        self.qkv = self._per_layer(tokens, c.qkv)
        self.attended = self._per_layer(tokens, c.d_model)
        self.lse = [store.empty((batch, c.heads, length), c.statistic) for _ in range(c.layers)]
        self.middle = self._per_layer(tokens, c.d_model)
        self.middle_normed = self._per_layer(tokens, c.d_model)
        self.middle_rstd = [store.empty((tokens, 1), c.statistic) for _ in range(c.layers)]
        self.gate_up = self._per_layer(tokens, 2 * c.hidden)
        self.activated = self._per_layer(tokens, c.hidden)
        self.update = self._empty(tokens, c.d_model)
        self.final = self._empty(tokens, c.d_model)
        self.logits = self._empty(tokens, c.vocab)

    def _empty(self, *shape: int) -> Array:
        return self.store.empty(shape, self.c.dtype)

    def _per_layer(self, *shape: int) -> list[Array]:
        arrays = [self._empty(*shape) for _ in range(self._layers)]
        return [arrays[i % self._layers] for i in range(self.c.layers)]

    def heads(self, joint: Array) -> tuple[Array, Array, Array]:
        """q, k and v as [batch, heads, length, head_dim] views of the joint projection."""
        c = self.c
        split = joint.reshape(self.batch, self.length, c.heads + 2 * c.kv_heads, c.head_dim).transpose(0, 2, 1, 3)
        return split[:, : c.heads], split[:, c.heads : c.heads + c.kv_heads], split[:, c.heads + c.kv_heads :]

    def by_head(self, flat: Array) -> Array:
        """[tokens, d_model] as a [batch, heads, length, head_dim] view."""
        return flat.reshape(self.batch, self.length, self.c.heads, self.c.head_dim).transpose(0, 2, 1, 3)


class Cache:
    """Keys and values of the tokens so far, and where the next one goes: both numbers are read at launch."""

    def __init__(self, c: Config, batch: int, store: Storage = HOST) -> None:
        shape = (c.layers, batch, c.kv_heads, c.context, c.head_dim)
        self.keys, self.values = store.zeros(shape, c.dtype), store.zeros(shape, c.dtype)
        self.position, self.filled = store.scalar(0), store.scalar(1)


def matmul(p: Steps, a: Array, b: Array, out: Array, element: str) -> None:
    """Out = a @ b; transposes are views."""
    p.add(bc.MatmulDescriptor(a.shape, b.shape, element), a=a, b=b, out=out)


def forward(
    c: Config, w: dict[str, Array], a: Activations, tables: tuple[Array, Array], p: Steps, cache: Cache | None = None
) -> None:
    """Appends the forward pass up to the logits; with a cache, of the next token only."""
    tokens, e = a.batch * a.length, c.element
    flat = (tokens, c.d_model)
    norm = bc.RmsNormDescriptor(flat, (c.d_model,), e)
    fused = bc.AddRmsNormDescriptor(flat, (c.d_model,), e)
    stream = a.inputs[0]
    p.add(
        bc.EmbeddingDescriptor(w["embedding"].shape, (a.batch, a.length), e, "i64"),
        ids=a.ids, weight=w["embedding"], y=stream.reshape(a.batch, a.length, c.d_model),
    )  # fmt: skip
    p.add(norm, x=stream, weight=w["layers.0.attention_norm"], y=a.normed[0], rstd=a.rstd[0], eps=c.eps)
    for i in range(c.layers):
        name = f"layers.{i}."
        matmul(p, a.normed[i], w[name + "qkv"], a.qkv[i], c.element)
        attention(p, c, a, i, tables, cache)
        matmul(p, a.attended[i], w[name + "out"], a.update, c.element)
        p.add(
            fused, x=a.inputs[i], residual=a.update, weight=w[name + "mlp_norm"], y=a.middle_normed[i],
            sum=a.middle[i], rstd=a.middle_rstd[i], eps=c.eps,
        )  # fmt: skip
        matmul(p, a.middle_normed[i], w[name + "gate_up"], a.gate_up[i], c.element)
        gated = bc.GatedActivationDescriptor("swiglu", (tokens, 2 * c.hidden), -1, e, "first")
        p.add(gated, x=a.gate_up[i], y=a.activated[i])
        matmul(p, a.activated[i], w[name + "down"], a.update, c.element)
        last = i + 1 == c.layers
        following = w["norm"] if last else w[f"layers.{i + 1}.attention_norm"]
        p.add(
            fused, x=a.middle[i], residual=a.update, weight=following, y=a.final if last else a.normed[i + 1],
            sum=a.inputs[i + 1], rstd=a.rstd[i + 1], eps=c.eps,
        )  # fmt: skip
    matmul(p, a.final, w["embedding"].transpose(), a.logits, c.element)


def attention(p: Steps, c: Config, a: Activations, i: int, tables: tuple[Array, Array], cache: Cache | None) -> None:
    """Rotates q and k in place and attends; with a cache, appends k and v to it and attends to what it holds."""
    q, k, v = a.heads(a.qkv[i])
    position = cache.position if cache else 0
    for x in (q, k):
        rope = bc.RopeDescriptor(x.shape, tables[0].shape[0], element=c.element)
        p.add(rope, x=x, cos=tables[0], sin=tables[1], y=x, position=position)
    scale = c.head_dim**-0.5
    if cache is None:
        desc = bc.AttentionDescriptor(q.shape, k.shape, v.shape, causal=True, element=c.element)
        p.add(desc, q=q, k=k, v=v, out=a.by_head(a.attended[i]), lse=a.lse[i], scale=scale, kv_len=a.length)
        return
    for kept, new in ((cache.keys[i], k), (cache.values[i], v)):
        p.add(
            bc.KvCacheAppendDescriptor(kept.shape, new.shape, element=c.element),
            cache=kept,
            x=new,
            position=cache.position,
        )
    desc = bc.AttentionDescriptor(q.shape, cache.keys[i].shape, cache.values[i].shape, causal=True, element=c.element)
    p.add(
        desc, q=q, k=cache.keys[i], v=cache.values[i], out=a.by_head(a.attended[i]), lse=a.lse[i], scale=scale,
        kv_len=cache.filled,
    )  # fmt: skip


class Gradients:
    """Gradient arrays, and the scratch arrays of the backward pass."""

    def __init__(self, c: Config, w: dict[str, Array], a: Activations) -> None:
        def like(array: Array) -> Array:
            return a.store.empty(array.shape, c.dtype)

        self.of = {name: a.store.zeros(value.shape, c.dtype) for name, value in w.items()}
        self.logits = like(a.logits)
        self.stream = [like(a.update) for _ in range(2)]
        self.normed, self.attended = like(a.update), like(a.update)
        self.activated, self.gate_up, self.qkv = like(a.activated[0]), like(a.gate_up[0]), like(a.qkv[0])


def backward(c: Config, w: dict[str, Array], a: Activations, g: Gradients, tables: tuple[Array, Array]) -> Program:
    """Gradients of all parameters from the gradient of the logits."""
    p = Program(a.store.device)
    tokens, e = a.batch * a.length, c.element
    fused = bc.AddRmsNormBackwardDescriptor((tokens, c.d_model), (c.d_model,), e)
    first = bc.AddRmsNormBackwardDescriptor((tokens, c.d_model), (c.d_model,), e, dsum=False)
    matmul(p, g.logits, w["embedding"], g.normed, c.element)
    matmul(p, g.logits.transpose(), a.final, g.of["embedding"], c.element)
    down, up = g.stream
    p.add(
        first,
        dy=g.normed,
        sum=a.inputs[c.layers],
        weight=w["norm"],
        rstd=a.rstd[c.layers],
        dx=down,
        dweight=g.of["norm"],
    )
    for i in reversed(range(c.layers)):
        name = f"layers.{i}."
        matmul(p, down, w[name + "down"].transpose(), g.activated, c.element)
        matmul(p, a.activated[i].transpose(), down, g.of[name + "down"], c.element)
        gated = bc.GatedActivationBackwardDescriptor("swiglu", (tokens, 2 * c.hidden), -1, e, "first")
        p.add(gated, dy=g.activated, x=a.gate_up[i], dx=g.gate_up)
        matmul(p, g.gate_up, w[name + "gate_up"].transpose(), g.normed, c.element)
        matmul(p, a.middle_normed[i].transpose(), g.gate_up, g.of[name + "gate_up"], c.element)
        p.add(
            fused, dy=g.normed, dsum=down, sum=a.middle[i], weight=w[name + "mlp_norm"], rstd=a.middle_rstd[i], dx=up,
            dweight=g.of[name + "mlp_norm"],
        )  # fmt: skip
        matmul(p, up, w[name + "out"].transpose(), g.attended, c.element)
        matmul(p, a.attended[i].transpose(), up, g.of[name + "out"], c.element)
        attention_backward(p, c, a, g, i, tables)
        matmul(p, g.qkv, w[name + "qkv"].transpose(), g.normed, c.element)
        matmul(p, a.normed[i].transpose(), g.qkv, g.of[name + "qkv"], c.element)
        p.add(
            fused, dy=g.normed, dsum=up, sum=a.inputs[i], weight=w[name + "attention_norm"], rstd=a.rstd[i], dx=down,
            dweight=g.of[name + "attention_norm"],
        )  # fmt: skip
    desc = bc.EmbeddingBackwardDescriptor(w["embedding"].shape, a.ids.shape, e, "i64", accumulate=True)
    p.add(desc, dy=down.reshape(a.batch, a.length, c.d_model), ids=a.ids, dweight=g.of["embedding"])
    return p


def attention_backward(
    p: Program, c: Config, a: Activations, g: Gradients, i: int, tables: tuple[Array, Array]
) -> None:
    """Gradients of q, k and v, rotated back in place."""
    q, k, v = a.heads(a.qkv[i])
    dq, dk, dv = a.heads(g.qkv)
    desc = bc.AttentionBackwardDescriptor(q.shape, k.shape, v.shape, causal=True, element=c.element)
    p.add(
        desc, dout=a.by_head(g.attended), q=q, k=k, v=v, out=a.by_head(a.attended[i]), lse=a.lse[i], dq=dq, dk=dk, dv=dv,
        scale=c.head_dim**-0.5, kv_len=a.length,
    )  # fmt: skip
    for x in (dq, dk):
        rope = bc.RopeBackwardDescriptor(x.shape, tables[0].shape[0], element=c.element)
        p.add(rope, dy=x, cos=tables[0], sin=tables[1], dx=x, position=0)
