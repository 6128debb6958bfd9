"""Folds of outputs that lie side by side: every width of element, few columns, short rows, extents of 1, many rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import baracuda as bc
import baracuda.functional as F

ELEMENTS = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "?"]
# Shape and axis: tails of vectors, positions abreast, runs of a tile, rows of a few values, strips, more rows than a byte
# counts.
PROBLEMS = [
    ((1, 300), 0), ((77, 1, 3), 1), ((70, 1), 1), ((1000, 2), 1), ((333, 3), 1), ((41, 5, 3), 1), ((129, 16), 1),
    ((90, 37), 1), ((31, 1031), 0), ((300, 65), 0), ((1000, 5), 0), ((5, 700, 3), 1), ((3, 260, 7, 2), 1),
    ((3001, 40), 0), ((40001, 3), 0), ((2, 66000), 0), ((3, 30001), 1), ((513, 64, 2), 1),
]  # fmt: skip


def values(element: str, shape: tuple[int, ...]) -> Any:
    rng = np.random.default_rng(len(shape) * 1000 + shape[-1])
    if element == "?":
        return rng.random(shape) < rng.choice([0.01, 0.5, 0.999], size=shape[-1])
    if element[0] == "f":
        x = rng.integers(-40, 40, shape).astype(element)
        x[rng.random(shape) < 0.002] = np.nan
        x[rng.random(shape) < 0.01] = -0.0
        return x
    low, high = np.iinfo(element).min, np.iinfo(element).max
    x = rng.integers(max(low, -9), 9, shape).astype(element)
    x[rng.random(shape) < 0.01], x[rng.random(shape) < 0.01] = low, high
    return x


def layouts(x: Any) -> list[Any]:
    if x.size > 20000:
        return [x]
    wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
    wide[..., ::2] = x
    return [x, wide[..., ::2], np.ascontiguousarray(x.T).T, np.ascontiguousarray(x[::-1])[::-1]]


@pytest.mark.parametrize("element", ELEMENTS)
def test_exact_folds(element: str) -> None:
    for shape, axis in PROBLEMS:
        dense = values(element, shape)
        for k, x in enumerate(layouts(dense)):
            where = f"{shape} axis {axis} layout {k}"
            np.testing.assert_array_equal(F.amax(x, axis), dense.max(axis), where)
            np.testing.assert_array_equal(F.amin(x, axis), dense.min(axis), where)
            np.testing.assert_array_equal(F.any(x, axis), dense.any(axis), where)
            np.testing.assert_array_equal(F.all(x, axis), dense.all(axis), where)
            np.testing.assert_array_equal(F.count_nonzero(x, axis), np.count_nonzero(dense, axis), where)
            for name in ("argmax", "argmin"):
                np.testing.assert_array_equal(getattr(F, name)(x, axis), getattr(np, name)(dense, axis), where)
            for name in ("max", "min"):
                found, place = getattr(F, name)(x, axis)
                np.testing.assert_array_equal(found, getattr(dense, name)(axis), where)
                np.testing.assert_array_equal(place, getattr(np, f"arg{name}")(dense, axis), where)


@pytest.mark.parametrize("element", ["f2", "f4", "f8"])
def test_rounded_folds(element: str) -> None:
    for shape, axis in PROBLEMS:
        loose = 16 * float(np.finfo(element).eps) * (1 if element == "f2" else shape[axis] ** 0.5)
        rng = np.random.default_rng(shape[-1])
        dense = (1 + rng.uniform(-1, 1, shape) / shape[axis]).astype(element)
        wide = dense.astype("f8")
        for x in layouts(dense):
            for got, want in (
                (F.sum(x, axis), wide.sum(axis)),
                (F.prod(x, axis), wide.prod(axis)),
                (F.nanmean(x, axis), wide.mean(axis)),
                (F.logsumexp(x, axis), np.log(np.exp(wide).sum(axis))),
            ):
                np.testing.assert_allclose(got, want, rtol=loose, atol=loose, err_msg=f"{shape} axis {axis}")


def test_numbers_are_counted_by_their_bits() -> None:
    x = np.array([[0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1, 5e-324]])
    for element in ("f2", "f4", "f8"):
        y = x.astype(element)
        np.testing.assert_array_equal(F.count_nonzero(y, 0), np.count_nonzero(y, 0))
        np.testing.assert_array_equal(F.any(y, 0), y.any(0))
        np.testing.assert_array_equal(np.isnan(F.nanmean(y, 0)), np.isnan(y[0]))


@pytest.mark.parametrize("shape", [(70000, 3), (3, 40001, 2), (900, 1031)])
def test_places_do_not_depend_on_threads(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(5).integers(0, 3, shape).astype(np.int8)
    axis, before, found = len(shape) - 2, bc.get_num_threads(), set()
    try:
        for n in (1, 2, 3):
            bc.set_num_threads(n)
            found.add(F.argmax(x, axis).tobytes())
    finally:
        bc.set_num_threads(before)
    assert len(found) == 1
