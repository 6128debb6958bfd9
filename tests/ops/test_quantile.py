"""Quantiles against torch's in f64; where infinities tie, against the value itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import baracuda as bc
import baracuda.functional as F
from baracuda.ops.sort.quantile import INTERPOLATIONS, MOST_NARROW

QS = (0.0, 0.25, 0.3333, 1.0, torch.tensor([0, 0.1, 0.5, 0.77, 1]), torch.tensor(0.4))


def values(dtype: torch.dtype) -> torch.Tensor:
    """With NaN in one row, nothing else in another, and infinities that no quantile lies between."""
    x = torch.randn(3, 7, 5, generator=torch.Generator().manual_seed(2), dtype=dtype)
    x[0, 2, 1] = torch.nan
    x[1, :, 2] = torch.nan
    return x


@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
@pytest.mark.parametrize("interpolation", INTERPOLATIONS)
@pytest.mark.parametrize("q", QS, ids=str)
def test_as_torch(name: str, interpolation: str, q: Any) -> None:
    for dtype, rtol in ((torch.float32, 2e-6), (torch.float64, 1e-14)):
        x = values(dtype)
        given = q.to(dtype) if isinstance(q, torch.Tensor) else q
        for part in (x, x.transpose(0, 2), x[:, ::2], x[0, 0]):
            for dim, keepdim in ((None, False), (None, True), (0, False), (-1, True)):
                want = getattr(torch, name)(part, given, dim, keepdim, interpolation=interpolation)
                got = getattr(F, name)(part, given, dim, keepdim, interpolation=interpolation)
                torch.testing.assert_close(got, want, rtol=rtol, atol=rtol, equal_nan=True)


def test_rank_0_and_no_lines() -> None:
    for x in (torch.tensor(3.0), torch.empty(0, 4)):
        for q in (0.5, torch.tensor([0.1, 0.2])):
            for dim in (-1, None) if x.numel() else (-1,):
                got = F.quantile(x, q, dim, True)
                want = torch.quantile(x, q, dim, True) if x.numel() else torch.quantile(torch.ones(1, 4), q, dim, True)
                assert got.shape == (want.shape if x.numel() else (*want.shape[:-2], 0, 1))
                assert x.numel() == 0 or torch.equal(got, want)


def test_infinities_that_tie_are_the_result() -> None:
    x = np.array([1, np.inf, np.inf, -np.inf], np.float32)
    assert F.quantile(x, 1.0) == np.inf and F.quantile(x, 0.0) == -np.inf
    assert np.isnan(F.quantile(np.append(x, np.float32(np.nan)), 0.5))
    assert F.nanquantile(np.append(x, np.float32(np.nan)), 1.0) == np.inf


def test_places_of_many_values_are_exact() -> None:
    n = MOST_NARROW * 20 + 3  # f32 cannot count them
    x = np.arange(n, dtype=np.float32) % 4096
    want = np.quantile(np.sort(x), 0.7, method="lower")
    assert F.quantile(x, 0.7, interpolation="lower") == want
    x = np.arange(n, dtype=np.float64)
    assert F.quantile(x, 0.3) == pytest.approx(0.3 * (n - 1), rel=1e-14)


@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
@pytest.mark.parametrize("q", [0.3, torch.tensor([0.1, 0.6])], ids=str)
def test_gradients(name: str, q: Any) -> None:
    x = torch.randn(4, 6, generator=torch.Generator().manual_seed(3)).requires_grad_()
    want = getattr(torch, name)(x, q, 1)
    dy = torch.randn(want.shape, generator=torch.Generator().manual_seed(4))
    want.backward(dy)
    got, pull = bc.vjp(getattr(F, name), x.detach(), q, 1)
    torch.testing.assert_close(got, want.detach())
    gradients = pull(dy)
    torch.testing.assert_close(gradients[0] if isinstance(gradients, tuple) else gradients, x.grad)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: F.quantile(x, -0.5, 0), "index"),
        (lambda x: F.quantile(x, np.array([0.1, 2], np.float32)), "index"),
        (lambda x: F.quantile(x[:0], 0.5, 0), "input: got no elements"),
        (lambda x: F.quantile(x, 0.5, 3), "dim: got 3"),
        (lambda x: F.quantile(x.astype(np.float16), 0.5), "input: got element f16, want f32 or f64"),
        (lambda x: F.quantile(x, np.array([0.5])), "q: got f64 .* want a number, or f32"),
        (lambda x: F.quantile(x, [0.1, 0.2]), "q: got an object of type list, want a number"),
        (lambda x: F.quantile(x, None), "q: got an object of type NoneType"),
        (lambda x: F.quantile(3.0, x[0]), "input: got an object of type float, want a tensor"),
        (lambda x: F.nanquantile(x, 0.5, interpolation="cubic"), "interpolation: got 'cubic'"),
    ],
)
def test_refusals(call: Any, text: str) -> None:
    with pytest.raises(bc.BaracudaError, match=text):
        call(np.ones((3, 4), np.float32))
