"""An operand that is one value along a run gives the bits that it gives written out, whichever path takes it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import baracuda.functional as F

# Few rows; rows shorter than a vector, than two lines, of odd and of even lengths; rows that are cut; results that are streamed.
SHAPES = [(3, 5), (64, 64), (2000, 3), (900, 17), (700, 32), (300, 100), (40, 1024), (3, 70001), (2100, 4100)]
FUNCTIONS = (F.add, F.sub, F.mul, F.div, F.maximum, F.lt)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("element", ["f4", "f8", "f2", "i4"])
def test_columns_rows_and_numbers(shape: tuple[int, int], element: str, rng: np.random.Generator) -> None:
    x = (rng.standard_normal(shape) * 9).astype(element)
    others = [(rng.standard_normal(s) * 9).astype(element) for s in ((shape[0], 1), (1, shape[1]), (1, 1))]
    for f in FUNCTIONS if x.size < 1e6 else FUNCTIONS[:2]:
        for other in others:
            whole = np.ascontiguousarray(np.broadcast_to(other, shape))
            for got, want in ((f(x, other), f(x, whole)), (f(other, x), f(whole, x))):
                assert np.array_equal(got, want, equal_nan=True), (f.__name__, other.shape)
        column, row = others[:2]
        want = f(
            np.ascontiguousarray(np.broadcast_to(column, shape)), np.ascontiguousarray(np.broadcast_to(row, shape))
        )
        assert np.array_equal(f(column, row), want, equal_nan=True), f.__name__


def test_channels_of_turned_images(rng: np.random.Generator) -> None:
    x, channel = rng.standard_normal((3, 5, 7, 9)).astype("f4"), rng.standard_normal((5, 1, 1)).astype("f4")
    whole = np.ascontiguousarray(np.broadcast_to(channel, x.shape))
    for order in ((0, 1, 2, 3), (3, 2, 1, 0), (1, 3, 0, 2)):
        turned, beside = x.transpose(order), np.broadcast_to(channel, x.shape).transpose(order)
        assert np.array_equal(F.mul(turned, beside), F.mul(turned, whole.transpose(order)))
        assert np.array_equal(F.sub(beside, turned[::-1]), F.sub(whole.transpose(order), turned[::-1]))


HALF_FUNCTIONS = (F.add, F.sub, F.mul, F.div, F.maximum, F.minimum, F.fmax, F.fmin)


@pytest.mark.parametrize("element", [torch.bfloat16, torch.float16], ids=str)
def test_many_halves_give_the_bits_of_few(element: torch.dtype, rng: np.random.Generator) -> None:
    """Many halves take loops of their own, few go through buffers of floats."""
    rows, columns = 70, 131
    special = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1e-40, -1e-7, 6e4, 1e38])
    a, b, column, row = (
        torch.from_numpy(np.where(rng.random(s) < 0.2, rng.choice(special, s), 3 * rng.standard_normal(s))).to(element)
        for s in ((rows, columns), (rows, columns), (rows, 1), (1, columns))
    )

    def bits(x: torch.Tensor) -> torch.Tensor:
        return torch.where(x.isnan(), torch.nan, x).view(torch.int16)

    for f in HALF_FUNCTIONS:
        operands: list[tuple[Any, Any]] = [
            (a, b),
            (a, column),
            (column, a),
            (a, row),
            (row, a),
            (a[:, ::2], b[:, ::2]),
            (a, a),
        ]
        if f in HALF_FUNCTIONS[:4]:
            operands += [(a, 0.1), (a, float("nan"))]
        for x in operands:
            parts = [
                f(*(v[i : i + 1] if len(getattr(v, "shape", ())) and len(v) == rows else v for v in x))
                for i in range(rows)
            ]
            assert torch.equal(bits(f(*x)), bits(torch.cat(parts))), f.__name__
