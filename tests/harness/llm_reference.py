"""What a language model computes, in f64 and NumPy alone, one token's row after the other: written from the models' papers."""

from __future__ import annotations

import math

import numpy as np
from llm_models import Model

Array = np.ndarray


def _norm(x: Array, weight: Array, eps: float) -> Array:
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * weight


def _angles(model: Model, windowed: bool, tokens: int, context: int) -> tuple[Array, Array]:
    """cos and sin of each token's pairs."""
    dim = model.says("rope.dimension_count", model.says("attention.key_length"))
    local = model.name == "gemma3" and windowed
    base = model.says("rope.freq_base_swa", 1e4) if local else model.says("rope.freq_base")
    f = base ** (-np.arange(0, dim, 2) / dim)
    scale = 1.0
    if not local:
        f, scale = _scaled(model, f, dim, base)
        longer = context > model.says("rope.scaling.original_context_length", model.says("context_length"))
        for name in ("rope_freqs.weight", f"rope_factors_{'long' if longer else 'short'}.weight"):
            if name in model.values:
                f, scale = f / model.values[name], model.says("rope.scaling.attn_factor", 1.0)
    angles = np.arange(tokens)[:, None] * f
    return np.cos(angles) * scale, np.sin(angles) * scale


def _scaled(model: Model, f: Array, dim: int, base: float) -> tuple[Array, float]:
    kind, factor = model.says("rope.scaling.type"), model.says("rope.scaling.factor", 1.0)
    if kind == "linear":
        return f / factor, 1.0
    if kind != "yarn":
        return f, 1.0
    original = model.says("rope.scaling.original_context_length")

    def pair(turns: float) -> float:
        return dim * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(base))

    low, high = max(math.floor(pair(32)), 0), min(math.ceil(pair(1)), dim - 1)
    ramp = np.clip((np.arange(dim // 2) - low) / max(high - low, 0.001), 0, 1)
    return f / factor * ramp + f * (1 - ramp), 0.1 * math.log(factor) + 1


def _turned(x: Array, cos: Array, sin: Array, interleaved: bool) -> Array:
    """x (tokens, heads, dim); what lies behind the tables' pairs stays."""
    pairs = cos.shape[1]
    out = x.copy()
    a = x[..., 0 : 2 * pairs : 2] if interleaved else x[..., :pairs]
    b = x[..., 1 : 2 * pairs : 2] if interleaved else x[..., pairs : 2 * pairs]
    first, second = (
        (slice(0, 2 * pairs, 2), slice(1, 2 * pairs, 2)) if interleaved else (slice(pairs), slice(pairs, 2 * pairs))
    )
    out[..., first] = a * cos[:, None] - b * sin[:, None]
    out[..., second] = a * sin[:, None] + b * cos[:, None]
    return out


def _act(name: str, x: Array) -> Array:
    if name.startswith("gemma"):
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return x / (1 + np.exp(-x))


def _softmax(x: Array) -> Array:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def windowed(model: Model, layer: int) -> bool:
    period = model.says("attention.sliding_window_pattern", {"gemma2": 2, "gemma3": 6, "phi3": 1}.get(model.name))
    return period is not None and (period == 1 or layer % period != period - 1)


def _attention(model: Model, layer: int, x: Array, context: int) -> Array:
    v, tokens, name = model.values, len(x), f"blk.{layer}.attn_"
    heads, kv_heads = model.says("attention.head_count"), model.says("attention.head_count_kv")
    dim, value_dim = model.says("attention.key_length"), model.says("attention.value_length")

    def into(part: str) -> Array:
        return x @ v[f"{name}{part}.weight"].T + v.get(f"{name}{part}.bias", 0.0)

    joined = [heads * dim, (heads + kv_heads) * dim]
    made = np.split(into("qkv"), joined, -1) if model.name == "phi3" else [into(p) for p in "qkv"]
    q, k = made[0].reshape(tokens, heads, dim), made[1].reshape(tokens, kv_heads, dim)
    values = made[2].reshape(tokens, kv_heads, value_dim)
    if f"{name}q_norm.weight" in v:
        eps = model.says("attention.layer_norm_rms_epsilon")
        q, k = _norm(q, v[f"{name}q_norm.weight"], eps), _norm(k, v[f"{name}k_norm.weight"], eps)
    turns = _angles(model, windowed(model, layer), tokens, context)
    q, k = (_turned(t, *turns, model.name == "llama") for t in (q, k))
    cap = model.says("attn_logit_softcapping", 0.0)
    window = model.says("attention.sliding_window") if windowed(model, layer) else None
    out = np.zeros((tokens, heads, value_dim))
    for i in range(tokens):
        first = 0 if window is None else max(0, i - window + 1)
        for h in range(heads):
            shared = h // (heads // kv_heads)
            scores = k[first : i + 1, shared] @ q[i, h] / math.sqrt(dim)
            scores = cap * np.tanh(scores / cap) if cap else scores
            out[i, h] = _softmax(scores) @ values[first : i + 1, shared]
    return out.reshape(tokens, -1) @ v[f"{name}output.weight"].T


def _feed_forward(model: Model, layer: int, x: Array) -> Array:
    v, name = model.values, f"blk.{layer}.ffn_"
    if f"{name}gate_inp.weight" in v:
        out = np.zeros_like(x)
        for i, row in enumerate(x):
            scores = v[f"{name}gate_inp.weight"] @ row
            best = np.argsort(-scores)[: model.says("expert_used_count")]
            for share, e in zip(_softmax(scores[best]), best, strict=True):
                gate, up, down = (v[f"{name}{p}_exps.weight"][e] for p in ("gate", "up", "down"))
                out[i] += share * (down @ (_act(model.name, gate @ row) * (up @ row)))
        return out
    if model.name == "phi3":
        gate, up = np.split(x @ v[f"{name}up.weight"].T, 2, -1)
    else:
        gate, up = (x @ v[f"{name}{p}.weight"].T for p in ("gate", "up"))
    return (_act(model.name, gate) * up) @ v[f"{name}down.weight"].T


def logits(model: Model, ids: list[int], context: int | None = None) -> Array:
    """(tokens, vocabulary): behind each token."""
    v, eps = model.values, model.says("attention.layer_norm_rms_epsilon")
    context = context or model.says("context_length")
    x = v["token_embd.weight"][ids]
    if model.name.startswith("gemma"):
        x = x * math.sqrt(x.shape[1])
    for i in range(model.says("block_count")):
        for part, norm, post in (
            (_attention, "attn_norm", "post_attention_norm"),
            (_feed_forward, "ffn_norm", "post_ffw_norm"),
        ):
            h = _norm(x, v[f"blk.{i}.{norm}.weight"], eps)
            y = part(model, i, h, context) if part is _attention else part(model, i, h)
            x = x + (_norm(y, v[f"blk.{i}.{post}.weight"], eps) if f"blk.{i}.{post}.weight" in v else y)
    y = _norm(x, v["output_norm.weight"], eps) @ v.get("output.weight", v["token_embd.weight"]).T
    cap = model.says("final_logit_softcapping", 0.0)
    return cap * np.tanh(y / cap) if cap else y
