"""An MLP-mixer for 8 x 8 pictures, written with `bc.functional` alone: it knows nothing of graphs."""

from __future__ import annotations

from typing import Any

import numpy as np

import baracuda.functional as F

PATCH, PATCHES, PIXELS = 2, 16, 4  # 16 patches of 2 x 2 pixels
SHAPE = (PATCHES, PIXELS)
WIDTH, TOKENS, CHANNELS, BLOCKS, CLASSES = 48, 32, 96, 3, 10

Parameters = dict[str, Any]


def inputs(pictures: np.ndarray) -> np.ndarray:
    """Pictures [n, 8, 8] as patches [n, 16, 4], around 0."""
    n = len(pictures)
    split = pictures.reshape(n, 4, PATCH, 4, PATCH).transpose(0, 1, 3, 2, 4)
    return np.ascontiguousarray(split.reshape(n, PATCHES, PIXELS) / 8 - 1, np.float32)


def vary(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Patches for training: as they are."""
    return x


def parameters(rng: np.random.Generator) -> Parameters:
    """Matrices [out, in] with variance 2 / in, vectors of zeros, and ones for norms."""
    made: Parameters = {}

    def linear(name: str, n_in: int, n_out: int) -> None:
        made[f"{name}.weight"] = (rng.standard_normal((n_out, n_in)) * (2 / n_in) ** 0.5).astype(np.float32)
        made[f"{name}.bias"] = np.zeros(n_out, np.float32)

    linear("embed", PIXELS, WIDTH)
    for i in range(BLOCKS):
        for norm in ("tokens", "channels"):
            made[f"{i}.{norm}.scale"], made[f"{i}.{norm}.shift"] = (
                np.ones(WIDTH, np.float32),
                np.zeros(WIDTH, np.float32),
            )
        linear(f"{i}.tokens.up", PATCHES, TOKENS)
        linear(f"{i}.tokens.down", TOKENS, PATCHES)
        linear(f"{i}.channels.up", WIDTH, CHANNELS)
        linear(f"{i}.channels.down", CHANNELS, WIDTH)
    linear("head", WIDTH, CLASSES)
    return made


def state() -> Parameters:
    """Nothing but the parameters changes in training."""
    return {}


def logits(p: Parameters, running: Parameters, x: Any, training: bool = False) -> Any:
    """Scores of the ten digits for patches [n, 16, 4]."""

    def linear(name: str, value: Any) -> Any:
        return F.linear(value, p[f"{name}.weight"], p[f"{name}.bias"])

    def mlp(name: str, value: Any) -> Any:
        return linear(f"{name}.down", F.gelu(linear(f"{name}.up", value)))

    def normed(name: str, value: Any) -> Any:
        return F.layer_norm(value, (WIDTH,), p[f"{name}.scale"], p[f"{name}.shift"])

    h = linear("embed", x)
    for i in range(BLOCKS):
        mixed = mlp(f"{i}.tokens", normed(f"{i}.tokens", h).mT)
        h = F.add(h, mixed.mT)
        h = F.add(h, mlp(f"{i}.channels", normed(f"{i}.channels", h)))
    return linear("head", F.mean(h, 1))
