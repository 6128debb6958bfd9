"""Facts of the indexing family's functions; prove/facts.py says what they are."""

from __future__ import annotations

import numpy as np

from baracuda.prove.facts import LONG, ROWS, TARGET, Facts, W, X, call, ones, ramp

FACTS = Facts(
    category="indexing",
    samples={
        "histogramdd": call(X[:, :2], [np.sort(W[:3]), np.sort(W)]),
        "index": call(X, (TARGET, None)),
        "index_put": call(X, (TARGET, None), ROWS),
        "index_put_": call(X.copy(), (None, TARGET), ROWS, True),
        "segment_max": call(X, TARGET, 3),
        "segment_mean": call(X, TARGET, 3),
        "segment_min": call(X, TARGET, 3),
        "segment_prod": call(X, TARGET, 3),
        "segment_reduce": call(X, "sum", lengths=TARGET, unsafe=True),
        "segment_softmax": call(X, TARGET, 3),
        "segment_sum": call(X, TARGET, 3),
    },
    steps={
        "gather_nd": [call(ramp(2, 3).T, LONG[:, :2] * 0)],
        "histogramdd": [
            call(ramp(4, 2), 3, density=True),
            call(ramp(4, 2), [ramp(3), ramp(4)]),
            call(ramp(4, 2), [3, 2], weight=ramp(4)),
        ],
        "index": [
            call(ramp(3, 2), (ones(2), ones(2))),
            call(ramp(3, 2), (ramp(3) > 0,)),
            call(ramp(3, 2), (None, ones(2))),
        ],
        "index_put": [
            call(ramp(3, 2), (ones(2), ones(2)), ramp(2)),
            call(ramp(3, 2), (ramp(3) > 0,), ramp(2).T[:1], True),
            call(ramp(3, 2), (None, ones(2)), ramp(1)),
        ],
        "index_put_": [
            call(ramp(3, 2), (ones(2), ones(2)), ramp(2)),
            call(ramp(3, 2), (ramp(3) > 0,), ramp(2).T[:1], True),
        ],
        "masked_scatter_backward": [call(ramp(2, 3), ramp(2, 3), ramp(2, 3) > 0, ramp(6))],
        "put": [call(ramp(2, 3).T, LONG[0] * 0, ramp(4))],
        "scatter_nd": [call(ramp(3, 2).T, np.zeros((3, 2), np.int64), ramp(3), r) for r in (None, "sum", "amax")],
        "segment_max": [call(ramp(3, 2).astype(np.float16), LONG[0, :3])],
        "segment_mean": [call(ramp(3, 2).astype(np.float16), LONG[0, :3])],
        "segment_min": [call(ramp(3, 2).astype(np.float16), LONG[0, :3])],
        "segment_prod": [call(ramp(3, 2).astype(np.float16), LONG[0, :3])],
        "segment_reduce": [
            call(ramp(4, 2).astype(np.float16), "mean", lengths=LONG[0], initial=0.5),
            call(ramp(3, 4), "max", offsets=LONG * [0, 1, 2, 4], axis=1),
        ],
        "segment_softmax": [call(ramp(3, 2).astype(np.float16), LONG[0, :3])],
        "segment_sum": [call(ramp(3, 2).astype(np.float16), LONG[0, :3])],
        "take_along_dim_backward": [
            call(ramp(2, 1), ramp(2, 3), np.zeros((2, 1), np.int64), 1),
            call(ramp(2, 2), ramp(1, 3), np.zeros((2, 2), np.int64), 1),
            call(ramp(2), ramp(2, 3), np.zeros(2, np.int64)),
        ],
    },
    drawn={
        "compact": "compact",
        "index_reduce": "masked",
        "indexing": "indexing",
        "scatter": "scatter",
    },
    sampled=(
        "counting",
        "coordinates",
        "index_put",
        "segments",
    ),
    partly={
        "gather": "an empty index of another rank",
        "scatter": "numbers that are folded",
        "histogramdd": "edges that fall",
    },
)
