"""Facts of the reduce family's functions; prove/facts.py says what they are."""

from __future__ import annotations

from baracuda.prove.draws import Arguments, Draws, Rule
from baracuda.prove.facts import OWN, ROWS, Facts, X, because, call, ramp
from baracuda.prove.rules import alike, along, reduction, whole


def _mostly(value: float) -> Rule:
    """A reduction of numbers that are all the same, so that none may stop early."""

    def rule(d: Draws) -> Arguments:
        shape, dim = d.along()
        given: Arguments = {"input": d.tensor(shape, (value, value))}
        return given if d.chance(0.2) else given | {"dim": dim}

    return rule


def _pairs(d: Draws) -> Arguments:
    shape, dim = d.along()
    more = {"dim": dim} if d.name == "cosine_similarity" else {}
    return {"x1": d.floats(shape), "x2": d.floats(shape)} | more


def _clouds(d: Draws) -> Arguments:
    """Two sets of points, whose distances are about as many as the draw's elements."""
    width = d.between(1, 256)
    rows, columns = (min(n, max(1, d.count // width)) for n in d.split(min(d.count, 1e9 / width), 2))
    return {"x1": d.floats((rows, width)), "x2": d.floats((columns, width))}


def _masked(d: Draws) -> Arguments:
    shape, dim = d.along()
    if d.name == "masked_logaddexp":
        return {n: d.floats(shape) for n in ("input", "other")} | {
            n: d.mask(shape) for n in ("input_mask", "other_mask")
        }
    order = {"ord": 2.0} if d.name in ("masked_norm", "masked_normalize") else {}
    more = {"unbiased": True} if d.name in ("masked_std", "masked_var") else {}
    return {"input": d.floats(shape)} | order | {"dim": dim, "mask": d.mask(shape)} | more


FACTS = Facts(
    category="reduction",
    samples={
        "masked_normalize": call(X, 2.0, 1, mask=X > 0),
        "renorm": call(X, 2.0, 0, 1.0),
        "weight_norm": call(X, ROWS),
    },
    steps={
        "cdist": [call(ramp(30, 2), ramp(30, 2))],
        "vector_norm": [call(ramp(3), dtype="f64")],
        "weight_norm": [call(ramp(3, 4), ramp(3, 1)), call(ramp(3), ramp(3))],
    },
    drawn={
        "extrema": "extrema",
        "reduce": "reduce",
        "variance": "statistics",
        "vector_norm": "statistics",
    },
    sampled=(
        "distances",
        "masked",
    ),
    alone=because(OWN, "sum_to"),
    partly={
        "norm.nuc": "needs singular values",
        "linalg.matrix_norm": "needs singular values",
    },
    peers={"weight_norm": lambda torch: torch._weight_norm},
    sweep={
        "reduce": reduction(several=True),
        "all": _mostly(1.0),
        "any": _mostly(0.0),
        "prod": reduction(),
        "logsumexp": reduction(whole=False),
        "trace": whole(low=2, high=2),
        "extrema": reduction(),
        "variance": reduction(least=2, repeated=False),
        "norm": reduction(),
        "cosine_similarity": _pairs,
        "pairwise_distance": _pairs,
        "vector_norm": reduction(several=True),
        "normalize": along(),
        "masked": _masked,
        "cdist": _clouds,
        "pdist": lambda d: {"input": d.floats((d.between(2, 400), d.between(1, 200)), plain=True)},
        "dist": alike(),
        "matrix_norm": lambda d: {"A": d.floats(d.shape(2, 4))},
        "renorm": lambda d: {"input": d.floats(d.shape(2, 4)), "p": 2.0, "dim": 0, "maxnorm": 1.0},
        "weight_norm": lambda d: {
            "v": d.floats(v := d.shape(2, 4)),
            "g": d.floats((v[0], *(1,) * (len(v) - 1)), plain=True),
        },
    },
)
