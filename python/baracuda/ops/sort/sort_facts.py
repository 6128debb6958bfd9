"""Facts of the sort family's functions; prove/facts.py says what they are."""

from __future__ import annotations

from baracuda.prove.draws import Arguments, Draws
from baracuda.prove.facts import Facts, call, ones, ramp
from baracuda.prove.rules import along


def _some(d: Draws) -> Arguments:
    """So many of the sorted along a dimension, or the one at that place."""
    shape, dim = d.along()
    return {"input": d.tensor(shape), "k": d.between(1, shape[dim]), "dim": dim}


FACTS = Facts(
    category="sorting",
    steps={
        "lexsort": [call(ramp(3), ones(3))],
        "nanquantile": [call(ramp(4), 0.3, interpolation="nearest")],
        "quantile": [call(ramp(4), 0.3, interpolation="nearest")],
    },
    sampled=(
        "sort",
        "selection",
        "quantile",
        "mode",
        "unique",
        "search",
    ),
    partly={
        "kthvalue": "which of equal elements",
        "topk": "which of equal elements",
        "mode": "which of equal elements",
        "searchsorted": "numbers in the place of tensors",
    },
    sweep={
        "sort": along(),
        "msort": lambda d: {"input": d.tensor(d.along()[0])},
        "selection": along(),
        "kthvalue": _some,
        "topk": _some,
        "mode": along(),
        "quantile": lambda d: {
            "input": d.tensor((made := d.along())[0], element=d.pick("f32", "f64")),
            "q": 0.3,
            "dim": made[1],
        },
        "unique": lambda d: {"input": d.tensor(d.shape(), (0.0, float(d.between(1, d.count))))},
        "unique_consecutive": lambda d: {"input": d.tensor(d.shape(), (0.0, float(d.between(1, 10))))},
        "bucketize": lambda d: {
            "input": d.tensor(d.shape()),
            "boundaries": d.tensor((d.between(1, 1e5),), "rising", plain=True),
        },
        "searchsorted": lambda d: {
            "sorted_sequence": d.tensor((d.between(1, 1e6),), "rising", plain=True),
            "input": d.tensor(d.shape()),
        },
    },
)
