"""Facts of the cast family's functions; prove/facts.py says what they are."""

from __future__ import annotations

import numpy as np

from baracuda.prove.draws import BYTES, Dtype
from baracuda.prove.facts import OWN, Facts, because, call

FACTS = Facts(
    category="unary_elementwise",
    samples={
        "unpack_int4": call(np.arange(6, dtype=np.uint8).reshape(2, 3)),
    },
    drawn={
        "cast": "cast",
    },
    peers={
        "cast": lambda torch: lambda input, dtype: input.to(dtype),
    },
    alone=because(OWN, "pack_int4 unpack_int4"),
    sweep={
        "cast": lambda d: {"input": d.tensor(d.shape(), (0.0, 100.0)), "dtype": Dtype(d.pick(*BYTES))},
    },
)
