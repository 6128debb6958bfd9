"""Small language models with random weights, written as GGUF files: every architecture, with what varies within it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gguf
import numpy as np

import baracuda as bc

VOCABULARY, WIDTH, LAYERS, HEADS, KV_HEADS, HIDDEN = 97, 64, 3, 4, 2, 96
HEAD = 16


@dataclass
class Model:
    """A file, and what is in it.

    Attributes:
        metadata: Its entries.
        values: Its tensors in f64, blocks decoded by the `gguf` package.
    """

    path: Path
    metadata: dict[str, Any]
    values: dict[str, np.ndarray] = field(repr=False)

    @property
    def name(self) -> str:
        return str(self.metadata["general.architecture"])

    def says(self, key: str, default: Any = None) -> Any:
        return self.metadata.get(f"{self.name}.{key}", default)


def sizes(name: str, **changed: Any) -> dict[str, Any]:
    """The metadata of an architecture, with some of it changed; None leaves an entry out."""
    own: dict[str, dict[str, Any]] = {
        "gemma2": {"attention.sliding_window": 5, "attn_logit_softcapping": 4.0, "final_logit_softcapping": 3.0},
        "gemma3": {"attention.sliding_window": 5, "attention.sliding_window_pattern": 2, "rope.freq_base": 1e5},
        "phi3": {"attention.sliding_window": 9, "rope.dimension_count": 12},
        "qwen3moe": {"expert_count": 6, "expert_used_count": 2, "expert_feed_forward_length": 32},
    }
    found = {
        "context_length": 64, "embedding_length": WIDTH, "block_count": LAYERS, "feed_forward_length": HIDDEN,
        "attention.head_count": HEADS, "attention.head_count_kv": KV_HEADS, "attention.layer_norm_rms_epsilon": 1e-5,
        "attention.key_length": HEAD, "attention.value_length": HEAD, "rope.freq_base": 1e4,
    } | own.get(name, {}) | changed  # fmt: skip
    return {"general.architecture": name} | {f"{name}.{k}": v for k, v in found.items() if v is not None}


def shapes(metadata: dict[str, Any], *, tied: bool, biases: bool) -> dict[str, tuple[int, ...]]:
    """The tensors that files of an architecture have."""
    name = metadata["general.architecture"]
    m = {k.removeprefix(f"{name}."): v for k, v in metadata.items()}
    width, heads, kv_heads = m["embedding_length"], m["attention.head_count"], m["attention.head_count_kv"]
    dim, value_dim = m["attention.key_length"], m["attention.value_length"]
    hidden, experts = m["feed_forward_length"], m.get("expert_count", 0)
    layer: dict[str, tuple[int, ...]] = {"attn_norm.weight": (width,), "ffn_norm.weight": (width,)}
    parts = {"q": heads * dim, "k": kv_heads * dim, "v": kv_heads * value_dim}
    parts = {"qkv": sum(parts.values())} if name == "phi3" else parts
    layer |= {f"attn_{p}.weight": (size, width) for p, size in parts.items()}
    if biases:
        layer |= {f"attn_{p}.bias": (size,) for p, size in parts.items()}
    layer["attn_output.weight"] = (width, heads * value_dim)
    if name in ("qwen3", "qwen3moe", "gemma3"):
        layer |= {"attn_q_norm.weight": (dim,), "attn_k_norm.weight": (dim,)}
    if name in ("gemma2", "gemma3"):
        layer |= {"post_attention_norm.weight": (width,), "post_ffw_norm.weight": (width,)}
    if experts:
        hidden = m.get("expert_feed_forward_length", hidden)
        layer["ffn_gate_inp.weight"] = (experts, width)
        layer |= {f"ffn_{p}_exps.weight": (experts, hidden, width) for p in ("gate", "up")}
        layer["ffn_down_exps.weight"] = (experts, width, hidden)
    elif name == "phi3":
        layer |= {"ffn_up.weight": (2 * hidden, width), "ffn_down.weight": (width, hidden)}
    else:
        layer |= {f"ffn_{p}.weight": (hidden, width) for p in ("gate", "up")} | {"ffn_down.weight": (width, hidden)}
    whole = {f"blk.{i}.{k}": v for i in range(m["block_count"]) for k, v in layer.items()}
    whole |= {"token_embd.weight": (VOCABULARY, width), "output_norm.weight": (width,)}
    return whole if tied else whole | {"output.weight": (VOCABULARY, width)}


def written(
    path: Path, rng: np.random.Generator, name: str, *, form: str | None = None, tied: bool = False, biases: bool = False,
    extra: dict[str, np.ndarray] | None = None, metadata: dict[str, Any] | None = None, **changed: Any,
) -> Model:  # fmt: skip
    """Writes a model of random weights.

    Args:
        form: Of the matrices: a block format, "f16", or None for f32.
        extra: Further tensors.
        metadata: Further entries, as of a tokenizer.
        **changed: Entries of the architecture, dots as two underscores.
    """
    said = sizes(name, **{k.replace("__", "."): v for k, v in changed.items()})
    tensors: dict[str, Any] = {}
    for tensor, shape in shapes(said, tied=tied, biases=biases).items():
        x = rng.standard_normal(shape).astype(np.float32)
        if len(shape) == 1:
            tensors[tensor] = (1 + 0.2 * x if "norm" in tensor else 0.3 * x).astype(np.float32)
            continue
        x *= np.float32(1.5 / np.sqrt(shape[-1]))
        tensors[tensor] = x.astype(np.float16) if form == "f16" else x if form is None else blocks(x, form)
    said = said | (metadata or {})
    bc.save_gguf(path, tensors | (extra or {}), said)
    return Model(path, said, values(path))


def blocks(x: np.ndarray, form: str) -> bc.GgufTensor:
    import baracuda.functional as F

    return bc.GgufTensor(F.quantize(x, form), x.shape, form)


def values(path: Path) -> dict[str, np.ndarray]:
    """The tensors of a file in f64, by the `gguf` package."""
    found = {}
    for t in gguf.GGUFReader(str(path)).tensors:
        shape = tuple(int(s) for s in t.shape[::-1])
        found[t.name] = gguf.dequantize(t.data, t.tensor_type).astype(np.float64).reshape(shape)
    return found
