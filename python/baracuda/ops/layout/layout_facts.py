"""Facts of the layout family's functions; prove/facts.py says what they are."""

from __future__ import annotations

import numpy as np

from baracuda.prove.draws import Arguments, Draws, Dtype
from baracuda.prove.facts import Facts, W, X, call, floats, ramp
from baracuda.prove.rules import planes, whole


def _images(d: Draws) -> Arguments:
    batch, channels, extents = planes(d, 2)
    name = {"channel_shuffle": "groups", "pixel_shuffle": "upscale_factor", "pixel_unshuffle": "downscale_factor"}[
        d.name
    ]
    if d.name == "pixel_unshuffle":
        extents = tuple(max(1, n // 2) * 2 for n in extents)
    return {"input": d.tensor((batch, max(1, channels // 4) * 4, *extents)), name: 2}


def _slice(d: Draws) -> Arguments:
    shape, dim = d.along(least=2)
    half = shape[dim] // 2
    source = (*shape[:dim], half, *shape[dim + 1 :])
    return {"input": d.tensor(shape), "src": d.tensor(source), "dim": dim, "start": 1, "end": half + 1}


def _parts(d: Draws) -> Arguments:
    """Two to five tensors of about the same size; also very short rows."""
    parts = d.pick(2, 2, 3, 5)
    d.count = max(1, d.count // parts)
    shape, dim = d.along()
    if d.name == "stack":
        return {"tensors": [d.tensor(shape) for _ in range(parts)], "dim": d.pick(dim, len(shape))}
    other = (*shape[:dim], max(1, shape[dim] - 1), *shape[dim + 1 :])
    return {"tensors": [d.tensor(shape if i % 2 == 0 else other) for i in range(parts)], "dim": dim}


def _stacked(d: Draws) -> Arguments:
    shape = d.shape(1, 3, d.count / 3)
    return {"*tensors": [[d.tensor(shape) for _ in range(3)]]}


def _times(d: Draws, rank: int) -> tuple[int, ...]:
    return tuple(d.pick(1, 1, 2, 3) for _ in range(rank))


def _padded(d: Draws) -> Arguments:
    mode = d.pick("constant", "constant", "reflect", "replicate", "circular")
    width = d.pick(1, 1, 2)
    if mode == "constant":
        return {"input": d.tensor(d.shape(width)), "pad": tuple(d.pick(0, 1, 1, 3) for _ in range(2 * width))}
    batch, channels, extents = planes(d, width)
    return {"input": d.floats((batch, channels, *extents)), "pad": (1, 2) * width, "mode": mode}


def _repeated(d: Draws) -> Arguments:
    shape, dim = d.along()
    if d.chance(0.5):
        return {"input": d.tensor(shape), "repeats": d.pick(1, 2, 3), "dim": dim}
    return {"input": d.tensor(shape), "repeats": d.indices((shape[dim],), 3), "dim": dim}


FACTS = Facts(
    category="shape_layout",
    samples={
        "channel_shuffle": call(floats(2, 6, 3, 2), 3),
        "constant_pad_nd": call(X, (1, 2), 0.5),
        "narrow_copy": call(X, 1, 2, 3),
        "pad_backward": call(floats(4, 9), (4, 6), (1, 2)),
        "pixel_shuffle": call(floats(2, 8, 3, 2), 2),
        "pixel_unshuffle": call(floats(2, 4, 6), 2),
        "select_scatter": call(X, W, 0, 2),
        "split_copy": call(X, 4, 1),
        "split_with_sizes_copy": call(X, (1, 3), 0),
        "transpose_copy": call(X, 0, 1),
        "unfold_copy": call(X, 1, 3, 2),
    },
    steps={
        "diag_embed_backward": [call(ramp(2, 3, 3))],
        "diagonal_backward": [call(ramp(2), (2, 3))],
        "repeat_interleave": [call(ramp(3), np.array([2, 0, 1], np.int32), output_size=3)],
        "split_copy": [call(ramp(5), 2)],
        "triu_indices": [call(7, 9)],
    },
    drawn={
        "arrange": "arrange",
        "join": "join",
        "layout": "layout",
        "pad": "pad",
    },
    sampled=(
        "joined",
        "copies",
    ),
    peers={
        "copy": lambda torch: torch.clone,
        "repeat": lambda torch: lambda input, repeats: input.repeat(repeats),
    },
    sweep={
        "diag": lambda d: {"input": d.tensor((max(1, round(d.count**0.5)),) * d.pick(1, 2))},
        "diag_embed": lambda d: {"input": d.tensor(d.split(d.count**0.6, d.pick(1, 2)))},
        "flip": lambda d: {"input": d.tensor((made := d.along())[0]), "dims": (made[1],)},
        "roll": lambda d: {
            "input": d.tensor((made := d.along(least=2))[0]),
            "shifts": made[0][made[1]] // 2,
            "dims": made[1],
        },
        "slice_scatter": _slice,
        "tril": whole(low=2, high=4),
        "triu": whole(low=2, high=4),
        "copies": whole(),
        "channel_shuffle": _images,
        "constant_pad_nd": lambda d: {"input": d.tensor(d.shape()), "pad_": (1, 2)},
        "expand_copy": lambda d: {"input": d.tensor((1, *(p := d.split(d.count, 2))[1:])), "size": p},
        "narrow_copy": lambda d: {
            "input": d.tensor((made := d.along(least=3))[0]),
            "dim": made[1],
            "start": 1,
            "length": made[0][made[1]] // 2,
        },
        "permute_copy": lambda d: {
            "input": d.tensor(shape := d.shape()),
            "dims": tuple(int(i) for i in d.rng.permutation(len(shape))),
        },
        "pixel_shuffle": _images,
        "pixel_unshuffle": _images,
        "split_copy": lambda d: {
            "input": d.tensor((made := d.along())[0]),
            "split_size": (made[0][made[1]] + 3) // 4,
            "dim": made[1],
        },
        "split_with_sizes_copy": lambda d: {
            "input": d.tensor((made := d.along(least=3))[0]),
            "split_sizes": (2, made[0][made[1]] - 2),
            "dim": made[1],
        },
        "t_copy": whole(low=2, high=2),
        "transpose_copy": lambda d: {"input": d.tensor(d.shape(2)), "dim0": 0, "dim1": d.pick(1, -1)},
        "unbind_copy": lambda d: {"input": d.tensor((d.between(1, 20), *d.split(d.count / 8, 2)))},
        "unfold_copy": lambda d: {
            "input": d.tensor((made := d.along(least=4))[0]),
            "dimension": made[1],
            "size": 3,
            "step": 2,
        },
        "unsqueeze_copy": lambda d: {"input": d.tensor(d.shape(1, 4)), "dim": 0},
        "view_copy": lambda d: {"input": d.tensor(d.shape(), plain=True), "size": (-1,)},
        "join": _parts,
        "stack": _parts,
        **dict.fromkeys(("atleast_1d", "atleast_2d", "atleast_3d"), lambda d: {"*tensors": [d.tensor(d.shape(1, 2))]}),
        **dict.fromkeys(("column_stack", "dstack", "hstack", "row_stack", "vstack"), _stacked),
        "block_diag": lambda d: {"*tensors": [d.tensor(d.split(d.count**0.5, 2)) for _ in range(3)]},
        "cartesian_prod": lambda d: {"*tensors": [d.tensor((n,)) for n in d.split(d.count / 2, 2)]},
        "diagflat": lambda d: {"input": d.tensor(d.split(d.count**0.5, 2))},
        "diagonal_copy": whole(low=2, high=3),
        "linalg_diagonal": whole(low=2, high=3),
        "diagonal_scatter": lambda d: {
            "input": d.tensor(p := d.split(d.count, 2)),
            "src": d.tensor((min(p),), plain=True),
        },
        "fliplr": whole(low=2, high=4),
        "flipud": whole(low=1, high=4),
        "meshgrid": lambda d: {"*tensors": [d.tensor((n,)) for n in d.split(d.count / 2, 2)], "indexing": "ij"},
        "rot90": lambda d: {"input": d.tensor(d.shape(2, 3)), "k": d.pick(1, 2, 3), "dims": (0, 1)},
        "select_scatter": lambda d: {
            "input": d.tensor((made := d.along())[0]),
            "src": d.tensor((*made[0][: made[1]], *made[0][made[1] + 1 :]), plain=True),
            "dim": made[1],
            "index": 0,
        },
        **dict.fromkeys(
            ("tril_indices", "triu_indices"), lambda d: dict(zip(("row", "col"), d.split(d.count / 8, 2), strict=True))
        ),
        "layout": whole(),
        "arange": lambda d: {"start": 0, "end": d.count, "step": 1, "dtype": Dtype(d.element)},
        "linspace": lambda d: {"start": 0.0, "end": 1.0, "steps": d.count, "dtype": Dtype(d.element)},
        "eye": lambda d: {"n": max(1, round(d.count**0.5)), "dtype": Dtype(d.element)},
        "full": lambda d: {"size": d.shape(), "fill_value": 1, "dtype": Dtype(d.element)},
        "full_like": whole(fill_value=1),
        **dict.fromkeys(("ones", "zeros"), lambda d: {"*size": list(d.shape()), "dtype": Dtype(d.element)}),
        "pad": _padded,
        "repeat": lambda d: {"input": d.tensor(p := d.shape(1, 4, d.count / 4)), "repeats": _times(d, len(p))},
        "tile": lambda d: {"input": d.tensor(p := d.shape(1, 4, d.count / 4)), "dims": _times(d, len(p))},
        "repeat_interleave": _repeated,
    },
)
