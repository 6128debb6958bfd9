"""Softmax: what the generated tests do not reach."""

from __future__ import annotations

import numpy as np
import pytest

import baracuda as bc
import baracuda.functional as F
from baracuda.ops.softmax import SoftmaxDescriptor


@pytest.mark.parametrize("length", [2049, 4096, 4097, 100003])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_long_rows_sum_to_one(length: int, dtype: type) -> None:
    x = np.random.default_rng(0).normal(0, 5, (2, length)).astype(dtype)
    y = np.asarray(F.softmax(x, 1), np.float64)
    assert np.allclose(y.sum(1), 1, rtol=0, atol=1e-3 if dtype == np.float16 else 1e-6)
    wide = x.astype(np.float64)
    e = np.exp(wide - wide.max(1, keepdims=True))
    assert np.allclose(y, e / e.sum(1, keepdims=True), rtol=np.finfo(dtype).eps + 1e-5, atol=1e-7)


@pytest.mark.parametrize("length", [70, 5000])
@pytest.mark.parametrize("axis", [0, 1])
def test_in_place_gives_the_same_bits(length: int, axis: int) -> None:
    x = np.random.default_rng(0).normal(0, 5, (length, 33)).astype(np.float32)
    x = x if axis == 0 else np.ascontiguousarray(x.T)
    plan = bc.plan(SoftmaxDescriptor("softmax", x.shape, axis))
    y = np.empty_like(x)
    plan.run(x=x, y=y)
    plan.run(x=x, y=x)
    assert np.array_equal(x, y)


def test_rows_do_not_depend_on_their_neighbours() -> None:
    x = np.random.default_rng(0).normal(0, 5, (5, 700)).astype(np.float32)
    alone = np.concatenate([F.softmax(x[i : i + 1], 1) for i in range(5)])
    assert np.array_equal(F.softmax(x, 1), alone)


def test_log_softmax_is_accurate_where_the_probability_is_close_to_one() -> None:
    x = np.array([[0.0, -12.0, -13.0]], np.float32)
    exact = -np.log1p(np.exp(-12.0) + np.exp(-13.0))
    assert abs(float(F.log_softmax(x, 1)[0, 0]) - exact) < 1e-7
