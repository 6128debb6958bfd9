"""Facts of the ternary family's functions; prove/facts.py says what they are."""

from __future__ import annotations

from baracuda.prove.facts import Facts, X, call

FACTS = Facts(
    category="ternary_elementwise",
    samples={
        "clamp_backward": call(X, X, 0.0, 1.0),
    },
    drawn={
        "ternary": "ternary",
    },
)
