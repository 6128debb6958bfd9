"""Fractional max pooling: torch's results for the same random numbers, with gradients, and the errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import baracuda as bc
import baracuda.functional as F

NN = torch.nn.functional


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("axes", "lead"), [(2, (2, 3)), (2, (3,)), (3, (2, 2)), (3, (2,))])
def test_as_torch(axes: int, lead: tuple[int, ...], dtype: Any) -> None:
    torch.manual_seed(axes)
    ours, theirs = (getattr(room, f"fractional_max_pool{axes}d") for room in (F, NN))
    spatial = (9, 12, 7)[:axes]
    # Of three axes torch refuses windows that leave no choice.
    for kernel, size in ((2, (4, 5, 3)), ((3, 1, 2), (1, 11, 2)), (1, (8, 11, 6)), ((2, 3, 3), (7, 2, 1))):
        kernel, size = kernel if isinstance(kernel, int) else kernel[:axes], size[:axes]
        x = torch.randn(*lead, *spatial, dtype=dtype)
        u = torch.rand(lead[0] if len(lead) == 2 else 1, lead[-1], axes, dtype=dtype)
        given = x.clone().requires_grad_(True)
        want, places = theirs(given, kernel, size, return_indices=True, _random_samples=u)
        got = ours(x, kernel, size, return_indices=True, _random_samples=u)
        assert torch.equal(got[0], want.detach()) and torch.equal(got[1], places)
        dy = torch.randn_like(want)
        want.backward(dy)
        y, pull = bc.vjp(ours, x, kernel, size, _random_samples=u)
        assert torch.equal(y, want.detach())
        torch.testing.assert_close(pull(dy), given.grad)


def test_sizes_by_ratio_and_own_numbers() -> None:
    x = np.random.default_rng(0).normal(size=(2, 3, 10, 11)).astype(np.float32)
    bc.manual_seed(1)
    y, places = F.fractional_max_pool2d(x, 2, output_ratio=(0.5, 0.7), return_indices=True)
    assert y.shape == (2, 3, 5, 7)
    assert np.array_equal(np.take_along_axis(x.reshape(2, 3, -1), places.reshape(2, 3, -1), 2), y.reshape(2, 3, -1))
    assert len(np.unique(places[0, 0])) < 36 and F.fractional_max_pool2d(x, 3, output_ratio=0.5).shape == (2, 3, 5, 5)
    assert F.fractional_max_pool2d(x.astype(np.float16), 2, 4).dtype == np.float16
    high = F.fractional_max_pool2d(x, 2, 4, _random_samples=np.full((2, 3, 2), 1e9, np.float32))
    assert np.isfinite(high).all()  # numbers that are none of [0, 1) stay inside the plane


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda x: F.fractional_max_pool2d(x, 2), "output_size"),
        (lambda x: F.fractional_max_pool2d(x, 2, 3, 0.5), "output_size"),
        (lambda x: F.fractional_max_pool2d(x, 2, 6), "at most 5"),
        (lambda x: F.fractional_max_pool2d(x, 2, 0), "at least 1"),
        (lambda x: F.fractional_max_pool2d(x, 2, output_ratio=1.0), "output_ratio"),
        (lambda x: F.fractional_max_pool2d(x[0, 0], 2, 3), "input"),
        (lambda x: F.fractional_max_pool2d(x.astype(np.int32), 2, 3), "float"),
        (lambda x: F.fractional_max_pool2d(x, 2, 3, _random_samples=np.ones((1, 2, 2))), "_random_samples"),
        (lambda x: F.fractional_max_pool3d(x[0], 2, 3), "input"),
    ],
)
def test_errors_say_what_is_wrong(call: Any, what: str) -> None:
    with pytest.raises(bc.InvalidProblemError, match=what):
        call(np.ones((1, 2, 6, 6), np.float32))
