"""Facts of the matmul family's functions; prove/facts.py says what they are."""

from __future__ import annotations

import numpy as np

from baracuda.prove.draws import Arguments, Array, Draws, Shape, parameters
from baracuda.prove.facts import CODES, LAYER, LONG, ONE, OWN, Facts, X, because, call, floats, ones, ramp
from baracuda.prove.rules import products


def _product(d: Draws) -> Arguments:
    """A product of matrices, of batches of them, or with a vector; now and then an operand is given transposed."""
    batch = d.between(1, min(256, max(1.0, d.count / 64))) if "bmm" in d.name or d.chance(0.25) else 1
    d.count = max(1, d.count // batch)
    m, k, n = products(d, 2e9 / batch)

    def matrix(*shape: int) -> Array:
        if d.chance(0.25):
            return Array(shape, d.element, "permuted", order=(*range(len(shape) - 2), len(shape) - 1, len(shape) - 2))
        return d.tensor(shape)

    lead: Shape = (batch,) if batch > 1 or "bmm" in d.name else ()
    if d.name in ("dot", "vdot"):
        return {name: d.tensor((d.count * batch,)) for name in d.parameters}
    if d.name in ("mv", "addmv"):
        pair = (d.tensor(p := d.split(d.count * batch, 2)), d.tensor(p[1:], plain=True))
        return dict(zip(d.parameters, (d.tensor(p[:1]), *pair)[-len(d.parameters) :], strict=True))
    if d.name == "linear":
        given: Arguments = {"input": d.tensor((*lead, m, k)), "weight": matrix(n, k)}
        return given | ({"bias": d.tensor((n,), plain=True)} if d.chance(0.6) else {})
    if d.name in ("mm", "addmm"):
        lead = ()
    added = {"addmm": (n,) if d.chance(0.5) else (m, n), "addbmm": (m, n), "baddbmm": (batch, m, n)}.get(d.name, ())
    pair = (matrix(*lead, m, k), matrix(*lead, k, n) if d.name != "matmul" or d.chance(0.5) else matrix(k, n))
    return dict(zip(d.parameters, (d.tensor(added), *pair)[-len(d.parameters) :], strict=True))


def _contraction(d: Draws) -> Arguments:
    m, k, n = products(d, 1e9)
    batch = d.between(1, 8)
    equation, first, second = d.pick(
        ("ij,jk->ik", (m, k), (k, n)),
        ("ij,kj->ik", (m, k), (n, k)),
        ("bij,bjk->bik", (batch, m, k), (batch, k, n)),
        ("ibj,kbj->bik", (m, batch, k), (n, batch, k)),
        ("ij,ij->i", (m, k), (m, k)),
        ("ij,j->i", (m, k), (k,)),
    )
    return {"equation": equation, "*operands": [d.tensor(first), d.tensor(second)]}


def _chain(d: Draws) -> list[Array]:
    m, k, n = products(d, 1e9)
    return [d.tensor((m, k)), d.tensor((k, n)), d.tensor((n, d.between(1, m)))]


def _bilinear(d: Draws) -> Arguments:
    rows, one, two, out = (d.between(1, n) for n in (2000, 64, 64, 64))
    return {
        "input1": d.floats((rows, one)),
        "input2": d.floats((rows, two)),
        "weight": d.floats((out, one, two), plain=True),
    }


def _cross(d: Draws) -> Arguments:
    before, after = d.split(d.count / 3, 2)
    shape, dim = d.pick(((before, 3, after), 1), ((before, after, 3), 2), ((3, before, after), 0))
    names = list(parameters(d.name))[:2]
    return {n: d.tensor(shape) for n in names} | {"dim": dim}


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
    sweep={
        "einsum": _contraction,
        "chain_matmul": lambda d: {"*matrices": _chain(d)},
        "multi_dot": lambda d: {"*tensors": [_chain(d)]},
        "inner": lambda d: {"input": d.tensor((p := products(d))[:2]), "other": d.tensor((p[2], p[1]))},
        "tensordot": lambda d: {"a": d.tensor((p := products(d))[:2]), "b": d.tensor(p[1:]), "dims": 1},
        "matmul": _product,
        "addbmm": _product,
        "products": lambda d: dict(
            zip(d.parameters, map(d.tensor, (((p := d.split(d.count, 2))[0],), (p[1],))), strict=True)
        ),
        "addr": lambda d: {
            "input": d.tensor(p := d.split(d.count, 2)),
            "vec1": d.tensor(p[:1]),
            "vec2": d.tensor(p[1:]),
        },
        "kron": lambda d: {"input": d.tensor(d.split(d.count**0.5, 2)), "other": d.tensor(d.split(d.count**0.5, 2))},
        "bilinear": _bilinear,
        "corrcoef": lambda d: {"input": d.floats(products(d)[:2])},
        "cov": lambda d: {"input": d.floats(products(d)[:2])},
        "cross": _cross,
        "linalg_cross": _cross,
        "linalg_vander": lambda d: {"x": d.tensor((d.between(1, d.count),), (-1.0, 1.0)), "N": d.between(1, 100)},
        "vander": lambda d: {"x": d.tensor((d.between(1, d.count),), (-1.0, 1.0)), "N": d.between(1, 100)},
        "matrix_power": lambda d: {
            "A": d.floats((n := max(1, min(1000, int(d.count**0.5))), n), (-0.1, 0.1)),
            "n": d.pick(2, 3, 4),
        },
        "vecdot": lambda d: {"x": d.tensor((made := d.along())[0]), "y": d.tensor(made[0]), "dim": made[1]},
    },
)
