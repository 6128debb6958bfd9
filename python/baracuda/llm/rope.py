"""Tables of rotary embeddings: the file's scaling, and the factors that its tensors have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import baracuda as bc
from baracuda.describe.errors import InvalidProblemError
from baracuda.llm.config import Config

Array = Any
Tables = tuple[Array, Array]


def _factors(path: str, tensors: Mapping[Any, Any], config: Config, context: int) -> Array | None:
    """What frequencies are divided by, for a context of so many tokens: of Llama 3, or LongRoPE's two lists."""
    longer = "long" if context > config.rope.original else "short"
    name = next((n for n in ("rope_freqs.weight", f"rope_factors_{longer}.weight") if n in tensors), None)
    if name is None:
        return None
    held, pairs = tensors[name], config.rope.dim // 2
    values = held.data
    if held.format is not None or values.dtype != np.float32 or values.shape != (pairs,) or not (values > 0).all():
        got = f"{held.format or values.dtype} of shape {held.shape}"
        raise InvalidProblemError(f"{path!r}: tensor {name!r}: got {got}, want {pairs} f32 numbers above 0.")
    return values.astype(np.float64)


def tables_of(path: str, tensors: Mapping[Any, Any], config: Config, context: int) -> tuple[Tables, Tables]:
    """(cos, sin), each (context, dim / 2), of layers that see all keys, and of those with a window."""
    rope, factors = config.rope, _factors(path, tensors, config, context)
    frequencies, attention_factor = bc.rope_frequencies(rope.dim, rope.base, rope.scaling)
    if factors is not None:
        frequencies, attention_factor = frequencies / factors, attention_factor * rope.attention_factor
    whole = _turned(frequencies, attention_factor, context)
    if config.kind.local_base is None:
        return whole, whole
    return whole, _turned(bc.rope_frequencies(rope.dim, rope.local_base)[0], 1.0, context)


def _turned(frequencies: Array, factor: float, context: int) -> Tables:
    """In f64, rounded once."""
    angles = np.arange(context)[:, None] * frequencies
    return (np.cos(angles) * factor).astype(np.float32), (np.sin(angles) * factor).astype(np.float32)
