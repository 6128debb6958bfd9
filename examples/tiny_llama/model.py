"""A byte-level Llama of bc.functional: RMSNorm, RoPE, grouped-query attention, SwiGLU, tied embedding."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any

import numpy as np
from storage import Array, Storage

import baracuda as bc
import baracuda.functional as F

HOST = Storage()


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


@dataclass(frozen=True)
class Cache:
    """Keys and values of the tokens so far, and where the next one goes: both numbers are 0-d arrays, read at launch."""

    keys: Array
    values: Array
    position: Array
    filled: Array


def cache_shape(c: Config, batch: int) -> tuple[int, ...]:
    """Of the keys, and of the values."""
    return c.layers, batch, c.kv_heads, c.context, c.head_dim


def empty_cache(c: Config, batch: int, store: Storage = HOST) -> Cache:
    """One that holds nothing."""
    keys, values = (store.zeros(cache_shape(c, batch), c.dtype) for _ in range(2))
    return Cache(keys, values, store.scalar(0), store.scalar(1))


def forward(
    c: Config, w: dict[str, Array], ids: Array, tables: tuple[Array, Array], held: Cache | None = None
) -> Array:
    """Logits [tokens, vocab] of ids [batch, length]; of the next token of each row only, where a cache is held."""
    batch, length = ids.shape
    width = (c.d_model,)
    stream = rows_of(w["embedding"], ids).reshape(batch * length, c.d_model)
    x = F.rms_norm(stream, width, w["layers.0.attention_norm"], c.eps)
    for i in range(c.layers):
        name = f"layers.{i}."
        joint = product(x, w[name + "qkv"]).reshape(batch, length, -1, c.head_dim)
        attended = attention(c, i, joint.transpose(0, 2, 1, 3), tables, held)
        update = product(attended.reshape(batch * length, c.d_model), w[name + "out"])
        x, stream = F.add_rms_norm(stream, update, width, w[name + "mlp_norm"], c.eps)
        update = product(F.silu_and_mul(product(x, w[name + "gate_up"])), w[name + "down"])
        following = w["norm"] if i + 1 == c.layers else w[f"layers.{i + 1}.attention_norm"]
        x, stream = F.add_rms_norm(stream, update, width, following, c.eps)
    head = w["embedding"]  # its blocks are [out, in] as it is
    return product(x, head if isinstance(head, bc.GgufTensor) else head.T)


def product(x: Array, weight: Array) -> Array:
    """The product of x with a weight [in, out], or one [out, in] in GGUF's blocks: then x is rounded to 8-bit integers, as in ggml."""
    if isinstance(weight, bc.GgufTensor):
        return F.quant_matmul(x, weight.data, weight.format, quantize_input=True)
    return F.matmul(x, weight)


def rows_of(table: Array, ids: Array) -> Array:
    """The embeddings of ids."""
    if isinstance(table, bc.GgufTensor):
        return F.quant_embedding(table.data, ids, table.format)
    return F.embedding(ids, table)


def attention(c: Config, i: int, joint: Array, tables: tuple[Array, Array], held: Cache | None) -> Array:
    """[batch, length, heads, head_dim] of the joint queries, keys and values [batch, heads, length, head_dim]."""
    split = c.heads, c.heads + c.kv_heads
    q, k, v = joint[:, : split[0]], joint[:, split[0] : split[1]], joint[:, split[1] :]
    if held is None:
        q, k = (F.rope(x, *tables) for x in (q, k))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return F.copy(y.transpose(0, 2, 1, 3))
    return cached_attention(c, i, (q, k, v), tables, held)


@cache
def kernel(device: str, descriptor: Any, *args: Any, **options: Any) -> bc.Plan:
    """The plan of a descriptor of these arguments, chosen once."""
    return bc.plan(descriptor(*args, **options), device=device)


def cached_attention(
    c: Config, i: int, qkv: tuple[Array, Array, Array], tables: tuple[Array, Array], held: Cache
) -> Array:
    """Appends a token's keys and values to layer i of the cache and attends to what it holds: by plans, which write in place."""
    q, k, v = qkv
    rows, device = tables[0].shape[0], q.device
    for x in (q, k):
        rope = kernel(device, bc.RopeDescriptor, x.shape, rows, element=c.element)
        rope.run(x=x, cos=tables[0], sin=tables[1], y=x, position=held.position)
    keys, values = held.keys[i], held.values[i]
    append = kernel(device, bc.KvCacheAppendDescriptor, keys.shape, k.shape, element=c.element)
    append.run(cache=keys, x=k, position=held.position)
    append.run(cache=values, x=v, position=held.position)
    batch, _, length, _ = q.shape
    out = bc.empty((batch, length, c.heads, c.head_dim), c.element, device=device)
    lse = bc.empty((batch, c.heads, length), c.statistic, device=device)
    shapes = q.shape, keys.shape, values.shape
    attend = kernel(device, bc.AttentionDescriptor, *shapes, causal=True, element=c.element)
    workspace = bc.empty(attend.workspace_size, "u8", device=device) if attend.workspace_size else None
    attend.run(
        q=q, k=keys, v=values, out=out.permute(0, 2, 1, 3), lse=lse, scale=c.head_dim**-0.5, kv_len=held.filled,
        workspace=workspace,
    )  # fmt: skip
    return out
