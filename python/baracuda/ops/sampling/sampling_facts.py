"""Facts of the sampling family's functions; prove/facts.py says what they are."""

from __future__ import annotations

import numpy as np

from baracuda.prove.facts import RANDOM, Facts, X, because, call, floats, ramp

FACTS = Facts(
    category="random",
    samples={
        "sample_tokens": call(X, 0.7, 3, 0.9, counts=np.ones((4, 6), np.int32), mask=X > -1),
        "verify_draft": call(np.abs(floats(2, 3, 5)), np.ones((2, 3), np.int64), np.abs(floats(2, 4, 5))),
        "verify_tree": call(np.ones((2, 3), np.int64), np.zeros((2, 3), np.int64), np.abs(floats(2, 4, 5))),
    },
    steps={
        "categorical": [call(ramp(2, 3, 4).astype(np.float64))],
    },
    alone=because(RANDOM, "sample_tokens verify_draft verify_tree categorical")
    | because("of transformers; compared with what its warpers keep in tests/ops", "filter_logits"),
)
