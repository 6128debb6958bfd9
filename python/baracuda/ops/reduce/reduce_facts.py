"""Facts of the reduce family's functions; prove/facts.py says what they are."""

from __future__ import annotations

from baracuda.prove.facts import OWN, ROWS, Facts, X, because, call, ramp

FACTS = Facts(
    category="reduction",
    samples={
        "masked_normalize": call(X, 2.0, 1, mask=X > 0),
        "renorm": call(X, 2.0, 0, 1.0),
        "weight_norm": call(X, ROWS),
    },
    steps={
        "cdist": [call(ramp(30, 2), ramp(30, 2))],
        "vector_norm": [call(ramp(3), dtype="f64")],
        "weight_norm": [call(ramp(3, 4), ramp(3, 1)), call(ramp(3), ramp(3))],
    },
    drawn={
        "extrema": "extrema",
        "reduce": "reduce",
        "variance": "statistics",
        "vector_norm": "statistics",
    },
    sampled=(
        "distances",
        "masked",
    ),
    alone=because(OWN, "sum_to"),
    partly={
        "norm.nuc": "needs singular values",
        "linalg.matrix_norm": "needs singular values",
    },
)
