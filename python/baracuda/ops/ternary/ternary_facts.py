"""Facts of the ternary family's functions; prove/facts.py says what they are."""

from __future__ import annotations

from baracuda.prove.facts import Facts, X, call
from baracuda.prove.rules import elementwise

FACTS = Facts(
    category="ternary_elementwise",
    samples={
        "clamp_backward": call(X, X, 0.0, 1.0),
    },
    drawn={
        "ternary": "ternary",
    },
    sweep={
        "ternary": elementwise({"tensor2": (0.5, 2.0), "weight": (0.0, 1.0)}),
        "clamp": elementwise(min=-0.5, max=0.5),
        "clip": elementwise(min=-0.5, max=0.5),
        "where": lambda d: {
            "condition": d.mask(d.part(shape := d.shape())),
            "input": d.tensor(shape),
            "other": d.tensor(d.part(shape)),
        },
    },
)
