"""Facts of the loss family's functions; prove/facts.py says what they are."""

from __future__ import annotations

import numpy as np

from baracuda.prove.draws import Arguments, Array, Draws
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
from baracuda.prove.rules import products


def _reduced(d: Draws) -> Arguments:
    return {"reduction": d.pick("mean", "mean", "sum", "none")}


def _pointwise(d: Draws) -> Arguments:
    """Tensors of one shape: probabilities where they are wanted, -1 and 1 where signs are."""
    shape = d.shape()
    unit = (0.01, 0.99)
    given: Arguments = {}
    for name in d.parameters:
        kind = unit if d.name == "binary_cross_entropy" or name in ("target", "var") else "normal"
        given[name] = d.floats(shape, kind)
    return given | _reduced(d)


def _classes(d: Draws) -> Arguments:
    classes = d.between(2, min(1e5, max(2, d.count)))
    rows = max(1, d.count // classes)
    return {"input": d.floats((rows, classes)), "target": d.indices((rows,), classes)} | _reduced(d)


def _rows(d: Draws) -> Arguments:
    width = d.between(1, min(1000, d.count))
    rows = max(1, d.count // width)
    given: Arguments = {n: d.floats((rows, width)) for n in d.parameters if n != "target"}
    return (
        given
        | ({"target": d.floats((rows,), (1.0, 1.0), plain=True)} if "target" in d.parameters else {})
        | _reduced(d)
    )


def _ctc(d: Draws) -> Arguments:
    steps, batch, classes = d.between(8, 200), d.between(1, 16), d.between(2, 200)
    length = steps // 4
    lengths = {
        n: Array((batch,), "i64", values=(k, k)) for n, k in (("input_lengths", steps), ("target_lengths", length))
    }
    scores = d.floats((steps, batch, classes), (-6.0, -4.0), plain=True)
    return {"log_probs": scores, "targets": Array((batch, length), "i64", values=(1, classes))} | lengths


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
    sweep={
        "pointwise_loss": _pointwise,
        "loss": _classes,
        "nll_loss": _classes,
        "linear_cross_entropy": lambda d: {
            "input": d.floats((p := products(d, 1e9))[:2]),
            "linear_weight": d.floats((p[2], p[1]), plain=True),
            "target": d.indices(p[:1], p[2]),
        },
        "ctc_loss": _ctc,
        "margin_losses": _pointwise,
        "multi_margin_loss": _classes,
        "multilabel_margin_loss": lambda d: {
            "input": d.floats(p := (d.between(1, 200), d.between(2, 200))),
            "target": d.indices(p, p[1]),
        },
        "cosine_embedding_loss": _rows,
        "triplet_margin_loss": _rows,
        "triplet_margin_with_distance_loss": _rows,
    },
)
