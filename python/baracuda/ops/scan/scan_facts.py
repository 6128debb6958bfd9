"""Facts of the scan family's functions; prove/facts.py says what they are."""

from __future__ import annotations

from baracuda.prove.facts import Facts
from baracuda.prove.rules import along

FACTS = Facts(
    category="scan",
    drawn={
        "scan": "along",
    },
    sampled=("running",),
    sweep={
        "scan": along(),
        "running": along(),
    },
)
