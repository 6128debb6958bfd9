"""Running extremes and logarithms of running sums: against torch, and what the generated tests do not reach."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import baracuda as bc
import baracuda.functional as F

SHAPES = [((5, 7), 1), ((50, 70), 0), ((3000,), 0), ((3, 2500), 1), ((40, 5, 6), 1), ((), 0), ((0, 3), 1), ((3, 0), 1)]


@pytest.mark.parametrize("name", ["cummax", "cummin"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.uint8], ids=str)
def test_extremes_as_torch(name: str, dtype: torch.dtype) -> None:
    rng = torch.Generator().manual_seed(0)
    for shape, dim in SHAPES:
        x = (torch.rand(shape, generator=rng) * 9).to(dtype)  # integers tie
        if dtype.is_floating_point:
            x = torch.where(torch.rand(shape, generator=rng) < 0.01, torch.nan, x).to(dtype)
        got, want = getattr(F, name)(x, dim), getattr(torch, name)(x, dim)
        assert torch.equal(got[0].nan_to_num(-1), want[0].nan_to_num(-1)) and torch.equal(got[1], want[1])


@pytest.mark.parametrize("name", ["cummax", "cummin"])
def test_extremes_from_the_end(name: str) -> None:
    rng = np.random.default_rng(0)
    for shape, dim in SHAPES:
        x = np.asarray(rng.integers(0, 6, shape), np.float64)
        if x.size > 50:
            x.reshape(-1)[::37] = np.nan
        turned = np.flip(x, dim) if shape else x
        values, indices = getattr(F, name)(turned, dim)
        got = getattr(F, name)(x, dim, reverse=True)
        want = (values, (shape[dim] - 1 if shape else 0) - indices)
        for a, b in zip(got, want, strict=True):
            assert np.array_equal(a, np.flip(b, dim) if shape else b, equal_nan=a.dtype.kind == "f")
        if x.size and not np.isnan(x).any():
            _, pull = bc.vjp(getattr(F, name), x, dim, reverse=True)
            dy = rng.normal(size=shape)
            dx = np.zeros_like(x)
            if shape:
                np.put_along_axis(dx, got[1], 0, dim)
                for at in np.ndindex(shape):
                    to = list(at)
                    to[dim] = got[1][at]
                    dx[tuple(to)] += dy[at]
                np.testing.assert_allclose(pull(dy), dx, atol=1e-12)


@pytest.mark.parametrize("name", ["cummax", "cummin", "logcumsumexp"])
def test_gradients_as_torch(name: str) -> None:
    rng = torch.Generator().manual_seed(1)
    for shape, dim in SHAPES:
        x = torch.randn(shape, generator=rng, dtype=torch.float64)
        leaf, dy = x.clone().requires_grad_(True), torch.randn(shape, generator=rng, dtype=torch.float64)
        y = getattr(torch, name)(leaf, dim)
        (y if name == "logcumsumexp" else y[0]).backward(dy)
        _, pull = bc.vjp(getattr(F, name), x, dim)
        assert torch.allclose(pull(dy), leaf.grad, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("shape", [(3, 2000), (2000, 30)])
def test_sums_of_what_overflows_and_what_vanishes(shape: tuple[int, int]) -> None:
    dim = int(np.argmax(shape))
    x = torch.linspace(-2000, 2000, 2000, dtype=torch.float32)
    x = (x if dim == 1 else x[:, None]).expand(shape)
    for given in (x, -x, x.flip(dim), torch.full(shape, -torch.inf)):
        got, want = F.logcumsumexp(given, dim), torch.logcumsumexp(given.double(), dim)
        assert torch.allclose(got.double(), want, rtol=2e-7, atol=0), "an exponential left the range"
    _, pull = bc.vjp(F.logcumsumexp, x, dim)
    assert torch.isfinite(pull(torch.ones(shape))).all()


def test_no_value_so_far_is_no_number_in_the_gradient() -> None:
    """exp(-inf - -inf) is taken as one: what comes behind has none of it."""
    x = np.array([-np.inf, -np.inf, 1.0, 2.0])
    _, pull = bc.vjp(F.logcumsumexp, x, 0)
    want = np.exp(1 - np.log(np.exp(1) + np.exp(2)))
    np.testing.assert_allclose(pull(np.ones(4))[2:], [1 + want, 1 - want], rtol=1e-14)
    assert np.isfinite(pull(np.ones(4))).all()


def test_integers_are_refused() -> None:
    with pytest.raises(bc.InvalidProblemError, match="input: got element i64"):
        F.logcumsumexp(np.arange(3), 0)
