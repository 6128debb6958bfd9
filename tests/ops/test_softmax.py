"""Softmax: what the generated tests do not reach."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import baracuda as bc
import baracuda.functional as F
from baracuda.ops.softmax.softmax import SoftmaxDescriptor


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


def test_softmin_and_scaled_softmax_as_torch() -> None:
    x = torch.from_numpy(np.random.default_rng(0).normal(0, 3, (4, 5, 6)))
    for dim in (0, 1, -1):
        assert torch.allclose(F.softmin(x, dim), torch.nn.functional.softmin(x, dim), rtol=1e-12)
        leaf = x.clone().requires_grad_(True)
        y = torch.softmax(leaf * 0.25, dim)
        y.backward(x)
        got, pull = bc.vjp(F.scaled_softmax, x, dim, 0.25)
        assert torch.allclose(got, y, rtol=1e-12) and torch.allclose(pull(x), leaf.grad, rtol=1e-10, atol=1e-14)


def test_a_mask_leaves_elements_out_and_an_empty_slice_is_zero() -> None:
    x, keep = torch.randn(3, 7), torch.rand(3, 7) < 0.5
    keep[0], keep[1, 2] = False, True
    got, want = F.scaled_softmax(x, 1, 2.0, keep), torch.softmax((2 * x).masked_fill(~keep, -torch.inf), 1)
    assert (got[0] == 0).all() and torch.allclose(got[1:], want[1:].nan_to_num(0))
    with pytest.raises(bc.InvalidProblemError, match="broadcasts"):
        F.scaled_softmax(x, 1, 1.0, keep.T.contiguous())
    with pytest.raises(bc.InvalidProblemError, match="want bool"):
        F.scaled_softmax(x, 1, 1.0, x)
