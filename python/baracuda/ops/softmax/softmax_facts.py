"""Facts of the softmax family's functions; prove/facts.py says what they are."""

from __future__ import annotations

from baracuda.prove.facts import OWN, Facts, because, call, ramp
from baracuda.prove.rules import along

FACTS = Facts(
    category="softmax",
    steps={
        "softmin": [call(ramp(3), 0, dtype="f64")],
    },
    drawn={
        "softmax": "along",
    },
    alone=because(OWN, "scaled_softmax sparsemax entmax15"),
    sweep={
        "softmax": along(),
    },
)
