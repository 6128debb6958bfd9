"""Facts of the binary family's functions; prove/facts.py says what they are."""

from __future__ import annotations

import numpy as np

from baracuda.prove.facts import Facts, X, call, ones, ramp

FACTS = Facts(
    category="binary_elementwise",
    samples={
        "logspace": call(0, 2, 5),
        "mvlgamma": call(X, 2),
    },
    steps={
        "clamp_max": [call(ramp(3), 0.5)],
        "clamp_min": [call(ramp(3), 0.5)],
        "cumulative_trapezoid": [call(ramp(2, 3).astype(np.float16))],
        "isin": [call(ones(3), ones(2), invert=True)],
        "isreal": [call(ramp(3)), call(ramp(3).astype(np.complex64))],
        "trapezoid": [call(ramp(2, 3).astype(np.float16))],
        "trapz": [call(ramp(2, 3).astype(np.float16))],
    },
    drawn={
        "binary": "binary",
    },
    sampled=("arithmetic",),
)
