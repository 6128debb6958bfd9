"""Facts of the norm family's functions; prove/facts.py says what they are."""

from __future__ import annotations

import numpy as np

from baracuda.prove.facts import IMAGE, INNER, OWN, ROWS, SCALES, Facts, W, X, because, call, floats, ramp

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
)
