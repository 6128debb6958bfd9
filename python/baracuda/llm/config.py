"""The sizes and numbers of a model, from a file's metadata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import sqrt
from typing import Any

from baracuda.describe.errors import UnsupportedError
from baracuda.llm.architectures import Architecture, architecture_of
from baracuda.llm.metadata import Metadata

# Entries that would make another model of it; what they are where they change nothing.
_CHANGES: dict[str, tuple[Any, ...]] = {
    "logit_scale": (1.0, 0.0), "residual_scale": (1.0, 0.0), "embedding_scale": (1.0, 0.0), "attention.scale": (0.0,),
    "attention.clamp_kqv": (0.0,), "attention.max_alibi_bias": (0.0,), "attention.causal": (True,),
    "attention.temperature_length": (0,), "attention.temperature_scale": (0.0,), "use_parallel_residual": (False,),
    "expert_shared_count": (0,), "expert_weights_scale": (1.0, 0.0), "expert_gating_func": (0, 1),
    "leading_dense_block_count": (0,), "rope.scaling.yarn_log_multiplier": (0.0,), "interleave_moe_layer_step": (0, 1),
}  # fmt: skip
_MOST_LAYERS = 4096


@dataclass(frozen=True, slots=True)
class RopeConfig:
    """Rotary embeddings.

    Attributes:
        dim: How many elements of a head are turned.
        base: theta.
        local_base: That of layers with a window.
        scaling: What `bc.rope_frequencies` takes; None for none. Layers with a local base have none.
        original: Tokens that the model was trained with before its context was stretched.
        attention_factor: What cosines and sines are multiplied by where the file has factors of the frequencies.
    """

    dim: int
    base: float
    local_base: float
    scaling: Mapping[str, Any] | None
    original: int
    attention_factor: float


@dataclass(frozen=True, slots=True)
class Config:
    """A model's sizes and numbers.

    Attributes:
        name: Of the architecture.
        kind: Its row.
        context: Tokens that the model was trained with.
        width: Of the residual stream.
        layers: How many.
        heads: Of queries.
        kv_heads: Of keys and values.
        key_dim: Elements of a query's and a key's head.
        value_dim: Those of a value's.
        hidden: Of the feed-forward; of one expert's.
        eps: Of the norms.
        window: Keys that a layer with a window sees, the token's own among them; 0: no layer has one.
        period: Of so many layers the last one sees all keys, the others a window; 1: every layer has the window.
        score_scale: What scores are multiplied by.
        attention_softcap: c of c tanh(score / c); 0: none.
        logit_softcap: The same of logits.
        experts: How many a layer has; 0: its feed-forward is one.
        used: Experts of each token.
        rope: Rotary embeddings.
    """

    name: str
    kind: Architecture
    context: int
    width: int
    layers: int
    heads: int
    kv_heads: int
    key_dim: int
    value_dim: int
    hidden: int
    eps: float
    window: int
    period: int
    score_scale: float
    attention_softcap: float
    logit_softcap: float
    experts: int
    used: int
    rope: RopeConfig = field(repr=False)

    @classmethod
    def of(cls, metadata: Metadata) -> Config:
        """Reads and checks all of it.

        Raises:
            UnsupportedError: The architecture is none that is known, or a variant of one.
            InvalidProblemError: An entry is missing, or no such number.
        """
        name = metadata.text("general.architecture")
        kind = architecture_of(metadata.path, name)
        m = metadata.within(f"{name}.")
        _refuse_variants(m)
        width, heads = m.whole("embedding_length"), m.whole("attention.head_count")
        kv_heads = m.whole("attention.head_count_kv", heads)
        key_dim = m.whole("attention.key_length", width // heads, most=2**16)
        layers = m.whole("block_count", most=_MOST_LAYERS)
        if heads % kv_heads:
            raise m.wrong("attention.head_count_kv", str(kv_heads), f"a number that divides the {heads} heads")
        if key_dim < 1:
            raise m.wrong("attention.head_count", str(heads), f"at most the width, {width}")
        experts = m.whole("expert_count", 0, least=0, most=2**16) if kind.experts else 0
        if name.endswith("moe") and not experts:
            raise m.wrong("expert_count", str(experts), "the number of experts, 1 or more")
        hidden = m.whole("expert_feed_forward_length", None) if experts else None
        context, window = (
            m.whole("context_length", 2048),
            m.whole("attention.sliding_window", kind.window_size, least=0),
        )
        if window and not kind.window:  # up to so many tokens the window, whichever layers have it, changes nothing
            context, window = min(context, window), 0
        return cls(
            name=name, kind=kind, context=context, width=width, layers=layers, heads=heads,
            kv_heads=kv_heads, key_dim=key_dim, value_dim=m.whole("attention.value_length", key_dim, most=2**16),
            hidden=hidden or m.whole("feed_forward_length"), eps=m.number("attention.layer_norm_rms_epsilon"),
            window=window, period=m.whole("attention.sliding_window_pattern", kind.window, least=0) or 1,
            score_scale=1 / sqrt(width / heads if layers in kind.wide_layers else key_dim),
            attention_softcap=m.number("attn_logit_softcapping", kind.attention_softcap, above=-1.0),
            logit_softcap=m.number("final_logit_softcapping", kind.logit_softcap, above=-1.0),
            experts=experts, used=m.whole("expert_used_count", most=experts) if experts else 0,
            rope=_rope(m, kind, key_dim),
        )  # fmt: skip

    def windowed(self, layer: int) -> bool:
        """Whether a layer sees a window of keys alone."""
        return self.window > 0 and (self.period == 1 or layer % self.period != self.period - 1)


def _refuse_variants(m: Metadata) -> None:
    """Models that are computed otherwise than their architecture's row says, which would be wrong without a word."""
    for key, harmless in _CHANGES.items():
        value = m.entries.get(m.prefix + key, harmless[0])
        if value not in harmless:
            raise UnsupportedError(
                f"{m.path!r}: metadata {m.prefix + key!r} is {value!r}, which the decoder does not do; "
                f"it computes models that do not have the entry."
            )


def _rope(m: Metadata, kind: Architecture, key_dim: int) -> RopeConfig:
    dim = m.whole("rope.dimension_count", key_dim, least=2)
    if dim % 2 or dim > key_dim:
        raise m.wrong("rope.dimension_count", str(dim), f"an even number of at most {key_dim}, the elements of a head")
    base = m.number("rope.freq_base", 1e6 if kind.local_base else 1e4)
    original = m.whole("rope.scaling.original_context_length", m.whole("context_length", 2048))
    attention_factor = m.number("rope.scaling.attn_factor", 1.0)
    return RopeConfig(
        dim, base, m.number("rope.freq_base_swa", kind.local_base or base), _scaling(m, original, attention_factor), original,
        attention_factor,
    )  # fmt: skip


def _scaling(m: Metadata, original: int, attention_factor: float) -> dict[str, Any] | None:
    """How frequencies are scaled, beside factors that a tensor of the file has."""
    factor = m.number("rope.scaling.factor", None) or m.number("rope.scale_linear", None)
    kind = m.text("rope.scaling.type", "linear" if factor else "none")
    if kind == "yarn":
        from math import log

        factor = factor or 1.0
        return {
            "rope_type": "yarn", "factor": factor, "original_max_position_embeddings": original,
            "beta_fast": m.number("rope.scaling.yarn_beta_fast", 32.0), "beta_slow": m.number("rope.scaling.yarn_beta_slow", 1.0),
            "attention_factor": attention_factor * (0.1 * log(factor) + 1.0 if factor > 1 else 1.0),
        }  # fmt: skip
    if kind == "linear":
        return {"rope_type": "linear", "factor": factor or 1.0}
    if kind in ("none", "longrope"):  # whose factors are a tensor
        return None
    raise UnsupportedError(
        f"{m.path!r}: metadata {m.prefix}rope.scaling.type: got {kind!r}, want none, linear, yarn or longrope."
    )
