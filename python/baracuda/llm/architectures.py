"""Which architectures there are: each is a row of what sets it apart, over one decoder."""

from __future__ import annotations

from dataclasses import dataclass

from baracuda.describe.errors import UnsupportedError


@dataclass(frozen=True, slots=True)
class Architecture:
    """What the layers of an architecture are made of, beside what a file's metadata says.

    Attributes:
        activation: Of the feed-forward's gate: "silu" or "gelu" (by tanh).
        interleaved: Whether rotary embeddings turn neighbours, (2i, 2i + 1), and not halves, (i, i + dim / 2).
        scaled_embedding: Whether embeddings are multiplied by sqrt(width).
        post_norms: Whether what attention and feed-forward give is normalised before it is added.
        head_norms: Whether queries and keys are normalised head by head.
        joined: Whether query, key and value are one matrix, and gate and up another one.
        experts: Whether the feed-forward may be experts, of which each token uses some.
        window: Which layers see a window of keys alone: of so many layers the last one sees all keys. 0: all layers do; 1: none.
        window_size: Keys that such a window has, where a file says nothing; 0: then no layer has one.
        local_base: The rotary base of layers with a window; None: that of the others.
        attention_softcap: Of the scores, where a file says nothing; 0: none.
        logit_softcap: The same of the logits.
        wide_layers: Numbers of layers of models whose queries are scaled by the width of a head as it would be without
            `key_length`: width / heads.
    """

    activation: str = "silu"
    interleaved: bool = False
    scaled_embedding: bool = False
    post_norms: bool = False
    head_norms: bool = False
    joined: bool = False
    experts: bool = False
    window: int = 0
    window_size: int = 0
    local_base: float | None = None
    attention_softcap: float = 0.0
    logit_softcap: float = 0.0
    wide_layers: tuple[int, ...] = ()


ARCHITECTURES = {
    "llama": Architecture(interleaved=True, experts=True),  # Mistral and Mixtral, too
    "qwen2": Architecture(),
    "qwen3": Architecture(head_norms=True),
    "qwen3moe": Architecture(head_norms=True, experts=True),
    "phi3": Architecture(joined=True, window=1),
    "gemma": Architecture(activation="gelu", scaled_embedding=True),
    "gemma2": Architecture(
        activation="gelu", scaled_embedding=True, post_norms=True, window=2, window_size=4096, attention_softcap=50.0, logit_softcap=30.0,
        wide_layers=(46,),
    ),
    "gemma3": Architecture(
        activation="gelu", scaled_embedding=True, post_norms=True, head_norms=True, window=6, local_base=1e4,
        wide_layers=(62,),
    ),
}  # fmt: skip

# What further architectures need that the decoder has not: the end of the message that refuses them.
_LACKING = {
    "gemma3n": "per-layer embeddings and AltUp", "deepseek2": "latent attention (MLA)", "mamba": "state-space layers",
    "mamba2": "state-space layers", "jamba": "state-space layers", "rwkv6": "recurrent layers", "rwkv7": "recurrent layers",
    "qwen2moe": "shared experts", "qwen2vl": "rotary embeddings of three axes", "qwen3next": "linear attention",
    "gpt-oss": "attention sinks and clamped experts", "llama4": "chunked attention and shared experts",
    "gpt2": "learned positions and layer norms", "gptneox": "parallel residuals and layer norms", "falcon": "layer norms",
    "bert": "an encoder's attention", "nomic-bert": "an encoder's attention", "t5": "an encoder and a decoder",
    "command-r": "parallel residuals and layer norms", "cohere2": "parallel residuals and layer norms",
    "phi2": "parallel residuals and layer norms", "stablelm": "layer norms", "starcoder2": "layer norms",
    "olmo": "layer norms without weights", "olmo2": "norms of whole queries and keys", "granite": "scaled residuals",
    "minicpm": "scaled residuals", "smollm3": "layers without rotary embeddings", "clip": "a vision encoder",
}  # fmt: skip


def architecture_of(path: str, name: str) -> Architecture:
    """The row of an architecture.

    Raises:
        UnsupportedError: There is none; the message says which there are, and what is missing.
    """
    if name in ARCHITECTURES:
        return ARCHITECTURES[name]
    lacking = f" It needs {_LACKING[name]}, which the decoder does not have." if name in _LACKING else ""
    raise UnsupportedError(
        f"{path!r}: general.architecture: got {name!r}, want one of {', '.join(ARCHITECTURES)}.{lacking}"
    )
