"""A small convolutional network for 8 x 8 pictures: convolutions, batch norms with running statistics, and pooling."""

from __future__ import annotations

from typing import Any

import numpy as np

import baracuda.functional as F

SHAPE = (1, 8, 8)
WIDTHS = (32, 64, 96)  # channels behind each convolution
CLASSES = 10
FORGET = 0.1  # share of a batch's statistics in the running ones

Parameters = dict[str, Any]


def inputs(pictures: np.ndarray) -> np.ndarray:
    """Pictures [n, 8, 8] as images of one channel, around 0."""
    return np.ascontiguousarray(pictures[:, None] / 8 - 1, np.float32)


def vary(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Images for training: each moved by at most a pixel along each axis."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-1)
    windows = np.lib.stride_tricks.sliding_window_view(padded, SHAPE[1:], (2, 3))
    down, right = rng.integers(0, 3, (2, len(x)))
    return np.ascontiguousarray(windows[np.arange(len(x)), :, down, right])


def parameters(rng: np.random.Generator) -> Parameters:
    """Filters [out, in, 3, 3] with variance 2 / (9 in); norms begin as the identity."""
    made: Parameters = {}
    for i, (n_in, n_out) in enumerate(zip((1, *WIDTHS), WIDTHS, strict=False)):
        made[f"{i}.filter"] = (rng.standard_normal((n_out, n_in, 3, 3)) * (2 / (9 * n_in)) ** 0.5).astype(np.float32)
        made[f"{i}.scale"], made[f"{i}.shift"] = np.ones(n_out, np.float32), np.zeros(n_out, np.float32)
    made["head.weight"] = (rng.standard_normal((CLASSES, WIDTHS[-1])) * WIDTHS[-1] ** -0.5).astype(np.float32)
    made["head.bias"] = np.zeros(CLASSES, np.float32)
    return made


def state() -> Parameters:
    """The running means and variances, which training changes in place."""
    return {
        f"{i}.{what}": make(n, np.float32)
        for i, n in enumerate(WIDTHS)
        for what, make in (("mean", np.zeros), ("variance", np.ones))
    }


def logits(p: Parameters, running: Parameters, x: Any, training: bool = False) -> Any:
    """Scores of the ten digits for images [n, 1, 8, 8]."""
    for i in range(len(WIDTHS)):
        x = F.conv2d(x, p[f"{i}.filter"], padding=1)
        x = F.batch_norm(
            x, running[f"{i}.mean"], running[f"{i}.variance"], p[f"{i}.scale"], p[f"{i}.shift"], training, FORGET
        )
        x = F.relu(x)
        if i == 1:
            x = F.max_pool2d(x, 2)
    return F.linear(F.mean(x, (2, 3)), p["head.weight"], p["head.bias"])
