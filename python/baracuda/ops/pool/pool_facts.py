"""Facts of the pool family's functions; prove/facts.py says what they are."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from baracuda.prove.draws import Arguments, Draws
from baracuda.prove.facts import IMAGE, Call, Facts, because, call, floats, ramp
from baracuda.prove.rules import planes


def _samples(axes: int) -> dict[str, Call]:
    """Pooling over so many axes, and its gradients."""
    x, y = floats(2, 3, *(5,) * axes), floats(2, 3, *(2,) * axes)
    indices = np.zeros(y.shape, np.int64)
    made: dict[str, Call] = {}
    for kind in ("max_pool", "avg_pool", "adaptive_max_pool", "adaptive_avg_pool"):
        given: tuple[Any, ...] = (y, indices) if "max" in kind else (y,)
        made[f"{kind}{axes}d"], made[f"{kind}{axes}d_backward"] = call(x, 2), call(*given, x.shape, 2)
    made[f"lp_pool{axes}d"], made[f"max_unpool{axes}d"] = call(x, 2.0, 2), call(y, indices, 2)
    return made


def _scaled(d: Draws) -> Arguments:
    """Windows of 2 or 3 over planes of many sizes, or planes of 1 to 7."""
    axes = int(d.name[-2])
    batch, channels, extents = planes(d, axes)
    x, kernel = d.floats((batch, channels, *extents)), d.pick(2, 2, 3)
    if "adaptive" in d.name:
        return {"input": x, "output_size": d.pick(1, 2, 5, 7) if axes == 1 else (d.pick(1, 1, 2, 5, 7),) * axes}
    if "unpool" in d.name:
        places = d.indices(x.shape, 2**axes * math.prod(extents), "places", dim=-axes)
        return {"input": x, "indices": places, "kernel_size": 2}
    more: Arguments = {"norm_type": 2.0} if d.name.startswith("lp") else {}
    more |= {"kernel_size": kernel, "stride": d.pick(1, 2, 2, kernel)}
    more |= {"padding": 1} if kernel == 3 and not d.name.startswith("lp") else {}
    return {"input": x} | more | ({"return_indices": True} if d.name.startswith("max") and d.chance(0.3) else {})


FACTS = Facts(
    category="pooling",
    samples=_samples(1)
    | _samples(2)
    | _samples(3)
    | {
        "fractional_max_pool2d": call(IMAGE, 2, 2),
        "fractional_max_pool3d": call(floats(1, 2, 4, 4, 4), 2, 2),
    },
    steps={
        "adaptive_avg_pool1d_backward": [call(ramp(2, 3, 2), (2, 3, 5), 2)],
        "adaptive_avg_pool2d_backward": [call(ramp(1, 3, 2, 2), (1, 3, 5, 4), 2)],
        "adaptive_avg_pool3d_backward": [call(ramp(1, 2, 2, 2, 1), (1, 2, 5, 4, 3), (2, 2, 1))],
        "adaptive_max_pool1d_backward": [call(ramp(2, 3, 2), np.zeros((2, 3, 2), np.int64), (2, 3, 5), 2)],
        "adaptive_max_pool2d_backward": [call(ramp(1, 3, 2, 2), np.zeros((1, 3, 2, 2), np.int64), (1, 3, 5, 4), 2)],
        "adaptive_max_pool3d_backward": [
            call(ramp(1, 2, 2, 2, 1), np.zeros((1, 2, 2, 2, 1), np.int64), (1, 2, 5, 4, 3), (2, 2, 1))
        ],
        "avg_pool1d_backward": [call(ramp(2, 3, 2), (2, 3, 5), 2)],
        "avg_pool2d_backward": [call(ramp(1, 3, 2, 2), (1, 3, 5, 4), 2)],
        "avg_pool3d_backward": [call(ramp(1, 2, 2, 2, 1), (1, 2, 5, 4, 3), 2)],
        "fractional_max_pool2d": [call(ramp(1, 2, 5, 5).astype(np.float16), 2, (3, 1))],
        "fractional_max_pool3d": [call(ramp(1, 2, 5, 5, 5), 2, 3)],
        "lp_pool1d": [call(ramp(2, 3, 5), 2.0, 2), call(ramp(2, 3, 5).astype(np.float16), 2.0, 2)],
        "lp_pool2d": [call(ramp(2, 3, 5, 4), 2.0, 2), call(ramp(2, 3, 5, 4).astype(np.float16), 2.0, 2)],
        "lp_pool3d": [call(ramp(2, 3, 5, 4, 3), 2.0, 2), call(ramp(2, 3, 5, 4, 3).astype(np.float16), 2.0, 2)],
        "max_pool1d_backward": [call(ramp(2, 3, 2), np.zeros((2, 3, 2), np.int64), (2, 3, 5), 2)],
        "max_pool2d_backward": [call(ramp(1, 3, 2, 2), np.zeros((1, 3, 2, 2), np.int64), (1, 3, 5, 4), 2)],
        "max_pool3d_backward": [call(ramp(1, 2, 2, 2, 1), np.zeros((1, 2, 2, 2, 1), np.int64), (1, 2, 5, 4, 3), 2)],
    },
    sampled=("pooling",),
    alone=because(
        "draws numbers; compared with torch on the same ones in tests/ops",
        "fractional_max_pool2d fractional_max_pool3d",
    ),
    partly={
        "nn.functional.avg_pool1d": "no integers",
        "nn.functional.avg_pool2d": "no integers",
        "nn.functional.avg_pool3d": "no integers",
    },
    sweep={
        "pooling": _scaled,
    },
)
