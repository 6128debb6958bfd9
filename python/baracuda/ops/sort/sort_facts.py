"""Facts of the sort family's functions; prove/facts.py says what they are."""

from __future__ import annotations

from baracuda.prove.facts import Facts, call, ones, ramp

FACTS = Facts(
    category="sorting",
    steps={
        "lexsort": [call(ramp(3), ones(3))],
        "nanquantile": [call(ramp(4), 0.3, interpolation="nearest")],
        "quantile": [call(ramp(4), 0.3, interpolation="nearest")],
    },
    sampled=(
        "sort",
        "selection",
        "quantile",
        "mode",
        "unique",
        "search",
    ),
    partly={
        "kthvalue": "which of equal elements",
        "topk": "which of equal elements",
        "mode": "which of equal elements",
        "searchsorted": "numbers in the place of tensors",
    },
)
