"""Facts of the loss family's functions; prove/facts.py says what they are."""

from __future__ import annotations

import numpy as np

from baracuda.prove.facts import (
    INNER,
    LAYER,
    LONG,
    LSE,
    ONE,
    OWN,
    TARGET,
    Facts,
    W,
    X,
    because,
    call,
    floats,
    ones,
    ramp,
)

FACTS = Facts(
    category="loss",
    samples={
        "ctc_loss": call(floats(5, 2, 4), TARGET.reshape(2, 2), np.array([5, 4]), np.array([2, 1])),
        "ctc_loss_backward": call(LSE[:2], floats(5, 2, 4), TARGET.reshape(2, 2), np.array([5, 4]), np.array([2, 1])),
        "js_div": call(X, X[::-1]),
        "linear_cross_entropy_backward": call(ONE, X, LAYER, TARGET, LSE),
        "linear_cross_entropy_forward": call(X, LAYER, TARGET),
        "linear_cross_entropy_fused": call(X, LAYER, TARGET),
        "preference_loss": call(W, W[::-1], W * 2, W),
        "tv_distance": call(X, X[::-1], "none"),
    },
    steps={
        "gaussian_nll_loss": [call(ramp(3), ramp(3), ramp(3), reduction="sum")],
        "js_div": [call(ramp(2, 3), ramp(2, 3), reduction=r) for r in ("mean", "sum", "batchmean")],
        "linear_cross_entropy_fused": [call(ramp(4, 8), ramp(6, 8), np.arange(4))],
        "multi_margin_loss": [call(ramp(2, 3), np.zeros(2, np.int32), 2, weight=ramp(3), reduction="sum")],
        "multilabel_margin_loss": [call(ramp(2, 3), -ones(2, 3), reduction="sum")],
        "multilabel_soft_margin_loss": [call(ramp(2, 3), ramp(2, 3), reduction="sum")],
        "preference_loss": [
            *(
                call(*map(ramp, (3, 3, 3, 3)), form=f, reduction=r)
                for f, r in (("hinge", "sum"), ("ipo", "mean"), ("sigmoid", "batchmean"))
            ),
            call(ramp(3), ramp(3), label_smoothing=0.1),
        ],
        "triplet_margin_with_distance_loss": [
            call(ramp(2, 3), ramp(2, 3), ramp(2, 3), swap=True),
            call(ones(2, 3), LONG[:2, :3], ramp(2, 3), reduction="sum"),
        ],
        "tv_distance": [call(ramp(2, 3), ramp(2, 3), r) for r in ("mean", "sum", "batchmean")],
    },
    drawn={
        "linear_cross_entropy": "class_loss",
        "loss": "class_loss",
        "nll_loss": "class_loss",
        "pointwise_loss": "pointwise_loss",
    },
    sampled=(
        "ctc",
        "margin_losses",
    ),
    alone=because(OWN, "cross_entropy_fused")
    | because("compared with formulas in tests/ops", "js_div tv_distance preference_loss")
    | because(INNER, "cross_entropy_forward linear_cross_entropy_forward linear_cross_entropy_fused"),
)
