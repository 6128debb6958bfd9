"""Facts of the matmul family's functions; prove/facts.py says what they are."""

from __future__ import annotations

import numpy as np

from baracuda.prove.facts import CODES, LAYER, LONG, ONE, OWN, Facts, X, because, call, floats, ones, ramp

FACTS = Facts(
    category="gemm",
    samples={
        "bilinear": call(floats(4, 3), floats(4, 2), floats(5, 3, 2), floats(5)),
        "einsum_backward": call(floats(4, 3), "ij,kj->ik", X, LAYER),
        "int_mm": call(CODES, CODES.T),
        "scaled_matmul": call(CODES, CODES.T, ONE, ONE, out_dtype="f16"),
    },
    steps={
        "chain_matmul": [call(ones(2, 3), LONG)],
        "chain_matmul_backward": [
            call(ramp(2, 5), ramp(2, 1), ramp(1, 1), ramp(1, 5)),
            call(ramp(2, 5), ramp(2, 3), ramp(3, 4), ramp(4, 5)),
        ],
        "einsum": [call("ij,jk->ik", ones(2, 3), LONG)],
        "einsum_backward": [
            call(ramp(2), "ij,k->i", ramp(2, 3), ramp(4)),
            call(ramp(3), "ii->i", ramp(3, 3)),
            call(ramp(2), "ij,ij->i", ramp(2, 3), ramp(2, 3).astype(np.float16)),
        ],
        "inner": [call(ones(2, 3), LONG.T)],
        "inner_backward": [
            call(ramp(2, 2, 2, 2).transpose(0, 2, 1, 3), ramp(2, 2, 3), ramp(2, 2, 3)),
            call(ramp(2, 3), ramp(2, 3), ramp().astype(np.float16)),
        ],
        "int_mm": [call(np.ones((17, 32), np.int8), np.ones((32, 8), np.int8))],
        "kron_backward": [
            call(ramp(4, 6), ramp(2, 3), ramp(2, 2)),
            call(ramp(1, 2), ramp(1, 1), ramp(1, 2)),
            call(ramp(4, 6), ramp(2, 3).astype(np.float16), ramp(2, 2)),
        ],
        "linear_backward": [
            call(ramp(2, 4), ramp(2, 3), ramp(4, 3)),
            call(ramp(2, 4), ramp(2, 3), ramp(4, 3), ramp(4)),
        ],
        "matmul_backward": [call(ramp(2, 4), ramp(2, 3), ramp(3, 4)), call(ramp(5, 2, 4), ramp(2, 3), ramp(5, 3, 4))],
        "tensordot": [call(ones(2, 3), LONG, 1)],
        "tensordot_backward": [
            call(ramp(2, 4), ramp(2, 3), ramp(3, 4), 1),
            call(ramp(2, 3, 4), ramp(2, 3).astype(np.float16), ramp(4), 0),
        ],
        "vander": [call(ramp(3)), call(ones(3).astype(np.int8), 1)],
    },
    drawn={
        "einsum": "contractions",
        "matmul": "matmul",
        "products": "products",
    },
    sampled=("linear_algebra",),
    alone=because(OWN, "int_mm scaled_matmul"),
    partly={
        "addmv": "alpha and beta of integers have to be integers",
        "addbmm": "alpha and beta of integers have to be integers",
        "baddbmm": "alpha and beta of integers have to be integers",
        "linalg.matrix_power": "negative powers need inverses",
    },
)
