"""Sparsemax and entmax-1.5: what they are the best of, their gradients by torch's autograd of sorted rows, long rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import baracuda as bc
import baracuda.functional as F

torch = pytest.importorskip("torch")


def _sorted(x: Any, squared: bool) -> Any:
    """By torch's sort, along the last axis, differentiable."""
    z = x / 2 if squared else x
    top = torch.sort(z, descending=True).values
    k = torch.arange(1, z.shape[-1] + 1, dtype=x.dtype)
    sums = top.cumsum(-1)
    if squared:
        mean, mean_square = sums / k, (top**2).cumsum(-1) / k
        t = mean - torch.clamp(1 / k - (mean_square - mean**2), min=0).sqrt()
        count = (t <= top).sum(-1, keepdim=True)
    else:
        t = (sums - 1) / k
        count = (t < top).sum(-1, keepdim=True)
    above = torch.clamp(z - t.gather(-1, count - 1), min=0)
    return above**2 if squared else above


@pytest.mark.parametrize("name", ["sparsemax", "entmax15"])
@pytest.mark.parametrize("width", [1, 2, 33, 1000, 9001])
@pytest.mark.parametrize("spread", [0.05, 1.0, 20.0])
def test_values_and_gradients_are_those_of_sorted_rows(name: str, width: int, spread: float) -> None:
    rng = np.random.default_rng(width)
    x = rng.normal(0, spread, (3, width))
    want_of = torch.tensor(x, requires_grad=True)
    want = _sorted(want_of, name == "entmax15")
    dy = rng.normal(size=x.shape)
    want.backward(torch.tensor(dy))
    y, pull = bc.vjp(getattr(F, name), x)
    np.testing.assert_allclose(y, want.detach().numpy(), rtol=0, atol=1e-12)
    np.testing.assert_allclose(y.sum(-1), 1, rtol=1e-12)
    np.testing.assert_allclose(pull(dy), want_of.grad.numpy(), rtol=1e-6, atol=1e-9)
    narrow = getattr(F, name)(x.astype(np.float32))
    np.testing.assert_allclose(narrow, want.detach().numpy(), rtol=0, atol=3e-6)


def test_known_rows() -> None:
    np.testing.assert_allclose(F.sparsemax(np.array([0.5, 0.25, -3.0])), [0.625, 0.375, 0.0])
    np.testing.assert_array_equal(F.sparsemax(np.array([5.0, 1.0, 2.0], np.float32)), [1, 0, 0])
    np.testing.assert_allclose(F.entmax15(np.zeros(4)), np.full(4, 0.25))
    np.testing.assert_array_equal(F.sparsemax(np.array([-np.inf, 0.0])), [0, 1])
    assert np.isnan(F.entmax15(np.array([np.nan, 0.0]))).all() and np.isnan(F.sparsemax(np.full(2, -np.inf))).all()


def test_the_axis_may_be_any() -> None:
    x = np.random.default_rng(1).normal(size=(4, 5, 6)).astype(np.float32)
    for fn in (F.sparsemax, F.entmax15):
        np.testing.assert_array_equal(fn(x, 1), fn(np.ascontiguousarray(x.swapaxes(1, 2))).swapaxes(1, 2))
        assert fn(np.zeros((0, 3), np.float32)).shape == (0, 3) and fn(np.array(3.0)) == 1


@pytest.mark.parametrize("name", ["sparsemax", "entmax15"])
def test_steps_end_on_rows_that_are_hard(name: str) -> None:
    """Long flat rows, geometric ones, ties and steps of one unit in the last place."""
    rows = [
        np.zeros(100_000), -np.arange(100_000) * 1e-6, -(2.0 ** -np.arange(60.0)), np.repeat([0.0, -1e-7], 5000),
        -np.geomspace(1e-30, 1.0, 5000), 1e30 + np.zeros(9), np.array([0.0, -1.0, -2.0]),
    ]  # fmt: skip
    for x in rows:
        for dtype, room in ((np.float64, 1e-11), (np.float32, 2e-3)):
            assert abs(getattr(F, name)(x.astype(dtype)).astype(np.float64).sum() - 1) < room, (x[:3], dtype)
