"""Facts of the embedding family's functions; prove/facts.py says what they are."""

from __future__ import annotations

import numpy as np

from baracuda.prove.draws import Arguments, Draws
from baracuda.prove.facts import INNER, LAYER, TARGET, Facts, because, call, floats


def _looked_up(d: Draws) -> Arguments:
    width = d.between(1, min(1024, d.count))
    rows = max(1, d.count // width)
    return {"input": d.indices(d.shape(1, 2, max(1, d.between(1, rows))), rows), "weight": d.floats((rows, width))}


FACTS = Facts(
    category="embedding",
    samples={
        "embedding_bag_backward": call(floats(2, 6), TARGET, LAYER, np.array([0, 2])),
    },
    drawn={
        "embedding": "embedding",
        "embedding_bag": "embedding",
    },
    alone=because(INNER, "embedding_bag_forward"),
    partly={
        "nn.functional.embedding": "no max_norm, scale_grad_by_freq or sparse",
        "nn.functional.embedding_bag": "no max_norm, scale_grad_by_freq or sparse",
    },
    sweep={
        "embedding_bag": lambda d: {
            "input": d.indices((d.between(1, 2000), d.between(1, 50)), rows := d.between(2, 1e5)),
            "weight": d.floats((rows, d.between(1, min(1024, max(1, d.count // rows))))),
            "mode": d.pick("sum", "sum", "mean", "max"),
        },
        "embedding": _looked_up,
    },
)
