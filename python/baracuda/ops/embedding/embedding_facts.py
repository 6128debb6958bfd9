"""Facts of the embedding family's functions; prove/facts.py says what they are."""

from __future__ import annotations

import numpy as np

from baracuda.prove.facts import INNER, LAYER, TARGET, Facts, because, call, floats

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
)
