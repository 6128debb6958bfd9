"""Facts of the optim family's functions; prove/facts.py says what they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from baracuda.prove.facts import ONE, ROWS, STATE, Facts, W, X, because, call, floats, ramp


def lists(count: int) -> list[list[np.ndarray[Any, Any]]]:
    """Parameters, gradients and so on, each a list of two tensors."""
    return [[np.abs(floats(3, 2)), np.abs(floats(5))] for _ in range(count)]


FACTS = Facts(
    samples={
        "adadelta_": call(*lists(4)),
        "adafactor_": call([X], [X], [ROWS * 0], [floats(1, 6) * 0], [None], step=2),
        "adagrad_": call(*lists(3), step=1),
        "adam_": call(*lists(4), step=1),
        "adamax_": call(*lists(4), step=1),
        "adamw_": call(*lists(5), step=1, amsgrad=True),
        "clip_grads_with_norm_": call([X.copy(), W.copy()], 1.0, ONE),
        "lamb_": call(*lists(4), step=3),
        "lion_": call(*lists(3)),
        "muon_": call(X, X[::-1], X * 0, ns_steps=2),
        "nadam_": call(*lists(4), step=1, mu_product=0.5),
        "radam_": call(*lists(4), step=1),
        "rmsprop_": call(*lists(5), momentum=0.5),
        "unscale_grads_": call([X, W], np.zeros((), "f4"), 0.5),
        "update_scale_": call(np.ones((), "f4"), np.zeros((), "i4"), np.zeros((), "f4")),
    },
    steps={
        "adafactor_": [
            call(
                ramp(3, 2),
                ramp(3, 2),
                ramp(3, 1),
                ramp(1, 2),
                [None],
                step=np.array(3),
                lr=np.array(0.1),
                maximize=True,
            ),
            call(ramp(3), ramp(3), [None], [None], ramp(3), step=1, weight_decay=0.1),
        ],
        "clip_grad_norm_": [call([ramp(3), ramp(2, 2)], 1.0)],
        "lamb_": [
            call(ramp(3), ramp(3), ramp(3), abs(ramp(3)), step=np.array(3), weight_decay=0.1),
            call(ramp(3).astype("f2"), ramp(3).astype("f2"), ramp(3), abs(ramp(3)), step=3),
        ],
        "muon_": [
            call(ramp(3, 2), ramp(3, 2), ramp(3, 2), lr=np.float32(0.1) * np.ones((), "f4")),
            call(ramp(3, 2), ramp(3, 2), ramp(3, 2), nesterov=False),
        ],
        "unscale_grads_": [call([ramp(3), ramp(2)], np.zeros((), "f4"), 0.5)],
        "update_scale_": [call(np.ones((), "f4"), np.zeros((), "i4"), np.zeros((), "f4"))],
    },
    alone=because(
        STATE,
        "adam_ adamw_ sgd_ clip_grad_norm_ clip_grad_value_ adagrad_ rmsprop_ adadelta_ adamax_ nadam_ radam_ lion_ "
        "lamb_ muon_ adafactor_ unscale_grads_ update_scale_ clip_grads_with_norm_ get_total_norm",
    ),
)
