"""Facts of the norm family's functions; prove/facts.py says what they are."""

from __future__ import annotations

import numpy as np

from baracuda.prove.draws import Arguments, Draws
from baracuda.prove.facts import IMAGE, INNER, OWN, ROWS, SCALES, Facts, W, X, because, call, floats, ramp
from baracuda.prove.rules import planes


def _rows(d: Draws) -> Arguments:
    """Of the last dimension, now and then of the last two; with weight, mostly."""
    width = d.between(1, min(1e6, d.count))
    shape = (*d.split(d.count / width, d.pick(1, 1, 2)), width)
    over = shape[-2:] if len(shape) > 2 and d.chance(0.15) else shape[-1:]
    given: Arguments = {"input": d.floats(shape), "normalized_shape": over}
    for name in ("weight", "bias") if d.name == "layer_norm" else ("weight",):
        given |= {name: d.floats(over, plain=True)} if d.chance(0.75) else {}
    return given


def _groups(d: Draws) -> Arguments:
    batch, channels, extents = planes(d, d.pick(0, 1, 2, 2))
    groups = d.pick(1, 2, 3, 4, 8, 32)
    channels = max(1, channels // groups) * groups
    given: Arguments = {"input": d.floats((batch, channels, *extents)), "num_groups": groups}
    affine = d.chance(0.75)
    return given | ({n: d.floats((channels,), plain=True) for n in ("weight", "bias")} if affine else {})


FACTS = Facts(
    category="normalization",
    samples={
        "add_rms_norm": call(X, X, (6,), W),
        "add_rms_norm_backward": call(X, X, X, (6,), W, ROWS),
        "batch_norm_backward": call(IMAGE, IMAGE, W[:3], W[:3], W[3:]),
        "layer_norm_backward": call(X, X, (6,), W, ROWS, ROWS, True),
        "layer_norm_quantize": call(X, W, W, dtype="f8e4m3", scale=0.1),
        "local_response_norm": call(floats(2, 3, 4), 2),
        "native_batch_norm": call(IMAGE, W[:3], W[3:], None, None, True, 0.1, 1e-5),
        "rms_norm_add_backward": call(X, X, (6,), W, ROWS),
        "rms_norm_quantize": call(X, W, residual=X[::-1], group=3),
    },
    steps={
        "group_norm": [call(ramp(2, 3, 4).transpose(0, 2, 1), 2, ramp(4), ramp(4))],
        "instance_norm": [call(ramp(2, 3, 4))],
        "instance_norm_forward": [call(ramp(2, 3, 4))],
        "local_response_norm": [call(ramp(2, 3, 4).astype(np.float16), 2)],
        "native_batch_norm": [call(ramp(2, 3, 4), None, None, ramp(3), ramp(3), t, 0.1, 1e-5) for t in (True, False)],
    },
    drawn={
        "layer_norm": "norms",
        "norm": "norms",
    },
    sampled=("response_norm",),
    alone=because(
        SCALES,
        "rms_norm_quantize layer_norm_quantize",
    )
    | because(OWN, "add_rms_norm add_rms_norm_forward rms_norm_add rms_norm_add_forward")
    | because(
        "updates running statistics; compared on torch's samples, and with its gradients in tests/ops",
        "batch_norm batch_norm_forward instance_norm instance_norm_forward native_batch_norm",
    )
    | because(INNER, "layer_norm_forward rms_norm_forward"),
    partly={
        "nn.functional.local_response_norm": "no integers",
        "nn.functional.batch_norm.without_cudnn": "no samples on a cpu",
    },
    sweep={
        "layer_norm": _rows,
        "rms_norm": _rows,
        "group_norm": _groups,
        "local_response_norm": lambda d: {
            "input": d.floats((made := planes(d, 2))[:2] + made[2]),
            "size": d.pick(3, 5),
        },
    },
)
