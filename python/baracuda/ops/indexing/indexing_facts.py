"""Facts of the indexing family's functions; prove/facts.py says what they are."""

from __future__ import annotations

import math

import numpy as np

from baracuda.prove.draws import Arguments, Array, Draws
from baracuda.prove.facts import LONG, ROWS, TARGET, Facts, W, X, call, ones, ramp


def _rows_of(d: Draws) -> Arguments:
    """Entries along a dimension, fewer or more than there are."""
    shape, dim = d.along()
    index = d.indices((d.between(1, 2 * shape[dim]),), shape[dim])
    if d.name == "index":
        return {"input": d.tensor(shape), "indices": (*(None,) * dim, index)}
    return {"input": d.tensor(shape), "dim": dim, "index": index}


def _rows_put(d: Draws) -> Arguments:
    shape = d.shape()
    some = d.between(1, shape[0])
    given: Arguments = {"input": d.tensor(shape), "indices": (d.indices((some,), shape[0], "order"),)}
    return given | {"values": d.tensor((some, *shape[1:]), plain=True), "accumulate": d.chance(0.5)}


def _gathered(d: Draws) -> Arguments:
    shape, dim = d.along()
    index = d.indices((*shape[:dim], d.between(1, shape[dim]), *shape[dim + 1 :]), shape[dim])
    if d.name == "gather":
        return {"input": d.tensor(shape), "dim": dim, "index": index}
    return {"input": d.tensor(shape), "indices": index, "dim": dim}


def _scattered(d: Draws) -> Arguments:
    """Into a table, a part of it or much of it; places that are written differ."""
    shape, dim = d.along()
    adds = d.name in ("index_add", "scatter_add", "scatter_reduce", "index_reduce")
    some = d.between(1, shape[dim])
    source = (*shape[:dim], some, *shape[dim + 1 :])
    rows = d.name.startswith("index")
    index = d.indices((some,) if rows else source, shape[dim], "index" if adds else "order", 0 if rows else dim)
    given: Arguments = {"input": d.tensor(shape), "dim": dim, "index": index}
    if d.name == "index_fill":
        return given | {"value": 2}
    given["source" if rows else "src"] = d.tensor(source, plain=d.chance(0.5))
    return given | ({"reduce": d.pick("prod", "mean", "amax", "amin")} if d.name.endswith("reduce") else {})


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
    peers={
        "index": lambda torch: lambda input, indices: input[tuple(slice(None) if i is None else i for i in indices)],
    },
    sweep={
        "argwhere": lambda d: {"input": d.tensor(d.shape(), d.pick("sparse", "normal"))},
        "nonzero": lambda d: {"input": d.tensor(d.shape(), d.pick("sparse", "normal"))},
        "nonzero_static": lambda d: {"input": d.tensor(d.shape(), "sparse"), "size": d.between(1, d.count)},
        "masked_select": lambda d: {"input": d.tensor(shape := d.shape()), "mask": d.mask(shape)},
        "one_hot": lambda d: {
            "tensor": d.indices(d.shape(1, 3, max(1.0, d.count / 100)), classes := d.between(1, 200)),
            "num_classes": classes,
        },
        "put": lambda d: {
            "input": d.tensor(shape := d.shape()),
            "index": d.indices((n := d.between(1, d.count),), math.prod(shape), "order"),
            "source": d.tensor((min(n, math.prod(shape)),), plain=True),
        },
        "bincount": lambda d: {"input": d.indices((d.count,), d.between(1, 1e6))},
        "histc": lambda d: {"input": d.floats(d.shape()), "bins": d.between(1, 1000), "min": -3, "max": 3},
        "histogram": lambda d: {"input": d.floats(d.shape()), "bins": d.between(1, 1000)},
        "histogramdd": lambda d: {"input": d.floats((max(1, d.count // 3), 3)), "bins": (d.pick(4, 20),) * 3},
        "index": _rows_of,
        "index_put": _rows_put,
        "segment_reduce": lambda d: {
            "data": d.floats((max(4, n := d.count // (width := d.between(1, 256))), width)),
            "reduce": d.pick("sum", "mean", "max"),
            "lengths": Array((4,), "i64", values=(max(1, n // 4),) * 2),
            "unsafe": True,
        },
        "masked_fill": lambda d: {"input": d.tensor(shape := d.shape()), "mask": d.mask(d.part(shape)), "value": 2},
        "masked_scatter": lambda d: {
            "input": d.tensor(shape := d.shape()),
            "mask": d.mask(shape),
            "source": d.tensor(shape, plain=True),
        },
        "gather": _gathered,
        "take_along_dim": _gathered,
        "index_select": _rows_of,
        "take": lambda d: {"input": d.tensor(shape := d.shape()), "index": d.indices((d.count,), math.prod(shape))},
        "scatter": _scattered,
        "index_reduce": _scattered,
    },
)
