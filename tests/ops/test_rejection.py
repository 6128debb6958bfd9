"""Gamma, beta, Poisson and binomial numbers: their distributions, ends of parameters, layouts, and refusals."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
import torch

import baracuda as bc
import baracuda.functional as F
from baracuda.ops.random.rejection import RejectionDescriptor
from baracuda.ops.random.rejection_ref import cases, reference

N = 40000
DTYPES = ["f4", "f8"]


def _drawn(fn: Any, *parameters: float, dtype: str = "f8", n: int = N) -> Any:
    given = [np.broadcast_to(np.asarray(p, dtype), (n,)) for p in parameters]
    return fn(*given, generator=bc.Generator(seed=11)).astype(np.float64)


def _farthest(x: Any, below: Callable[[Any], Any]) -> float:
    """The largest distance between the share of numbers up to some of them and what the distribution says there."""
    ordered = np.sort(x)
    at = np.unique(np.linspace(0, len(x) - 1, 60).astype(int))
    return max(abs(np.searchsorted(ordered, ordered[i], "right") / len(x) - float(below(ordered[i]))) for i in at)


LIMIT = 2.2 / N**0.5  # of 10^4 right samples one is farther away (Kolmogorov)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [0.03, 0.4, 1.0, 1.7, 30.0, 2e5])
def test_gamma(shape: float, dtype: str) -> None:
    x = _drawn(F.gamma, shape, dtype=dtype)
    own, least = float(np.asarray(shape, dtype)), 2.0**-150 if dtype == "f4" else 0  # what f32 holds no less than
    assert _farthest(x, lambda v: mpmath.gammainc(own, 0, max(v, least), regularized=True)) < LIMIT
    assert abs(x.mean() - own) < 5 * (own / N) ** 0.5
    assert abs(x.var() / own - 1) < 5 * ((2 + 6 / own) / N) ** 0.5


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("a", "b"), [(0.05, 0.07), (0.5, 0.5), (1, 3), (20, 0.6), (300, 200)])
def test_beta(a: float, b: float, dtype: str) -> None:
    x = _drawn(F.beta, a, b, dtype=dtype)
    assert ((x >= 0) & (x <= 1)).all()
    assert _farthest(x[(x > 0) & (x < 1)], lambda v: _within(x, a, b, v)) < LIMIT
    assert abs(x.mean() - a / (a + b)) < 5 * (a * b / (a + b) ** 2 / (a + b + 1) / N) ** 0.5


def _within(x: Any, a: float, b: float, v: float) -> Any:
    """Of what is neither 0 nor 1, which f32 cannot tell from its neighbours."""
    low = np.mean(x == 0)
    share = 1 - low - np.mean(x == 1)
    return (mpmath.betainc(a, b, 0, v, regularized=True) - low) / share


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rate", [0.02, 0.9, 7.0, 9.99, 10.0, 13.0, 80.0, 1e4, 1e7])
def test_poisson(rate: float, dtype: str) -> None:
    x = _drawn(F.poisson, rate, dtype=dtype)
    own = float(np.asarray(rate, dtype))
    assert (x == np.floor(x)).all() and (x >= 0).all()
    assert _farthest(x, lambda k: mpmath.gammainc(k + 1, own, mpmath.inf, regularized=True)) < LIMIT
    assert abs(x.mean() - own) < 5 * (own / N) ** 0.5
    assert abs(x.var() / own - 1) < 5 * ((2 + 1 / own) / N) ** 0.5


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("n", "p"),
    [(1, 0.3), (20, 0.02), (20, 0.5), (24, 0.5), (30, 0.97), (1000, 0.2), (1000, 0.999), (10**6, 0.25), (10**6, 1e-6)],
)
def test_binomial(n: int, p: float, dtype: str) -> None:
    x = _drawn(F.binomial, n, p, dtype=dtype)
    own = float(np.asarray(p, dtype))
    assert (x == np.floor(x)).all() and (x >= 0).all() and (x <= n).all()
    mean, variance = n * own, n * own * (1 - own)

    def below(k: float) -> Any:
        if variance > 1e4:
            return mpmath.ncdf((k + 0.5 - mean) / variance**0.5)
        return 1 if k >= n else mpmath.betainc(n - k, k + 1, 0, 1 - own, regularized=True)

    assert _farthest(x, below) < LIMIT
    assert abs(x.mean() - mean) < 5 * (variance / N) ** 0.5
    assert abs(x.var() / variance - 1) < 5 * ((2 + 1 / variance) / N) ** 0.5


@pytest.mark.parametrize("dtype", DTYPES)
def test_ends(dtype: str) -> None:
    for fn, given, value in (
        (F.gamma, (0,), 0), (F.poisson, (0,), 0), (F.binomial, (0, 0.3), 0), (F.binomial, (9, 0), 0), (F.binomial, (9, 1), 9),
        (F.binomial, (9.9, 1), 9), (F.beta, (0, 2), 0), (F.beta, (2, 0), 1),
    ):  # fmt: skip
        assert (_drawn(fn, *given, dtype=dtype, n=50) == value).all()
    assert np.isnan(_drawn(F.beta, 0, 0, dtype=dtype, n=3)).all()
    tiny = float(np.finfo(dtype).smallest_subnormal)
    for a, b in ((tiny, tiny), (8 * tiny, 8 * tiny), (tiny, 3 * tiny), (tiny, 0), (0, tiny), (tiny, 1), (1, tiny)):
        x = _drawn(F.beta, a, b, dtype=dtype, n=4000)
        assert set(x) <= {0, 1} and abs(x.mean() - float(Fraction(a) / (Fraction(a) + Fraction(b)))) < 0.04
    assert not _drawn(F.gamma, tiny, dtype=dtype, n=50).any() and not _drawn(F.poisson, tiny, dtype=dtype, n=50).any()
    assert not _drawn(F.binomial, 1e6, tiny, dtype=dtype, n=50).any()
    for large in (1e12, 1e30):
        assert np.allclose(_drawn(F.gamma, large, dtype=dtype, n=50), large, rtol=1e-4)
        assert np.allclose(_drawn(F.poisson, large, dtype=dtype, n=50), large, rtol=1e-4)
        assert np.allclose(_drawn(F.binomial, large, 0.25, dtype=dtype, n=50), large / 4, rtol=1e-4)


def test_layouts_and_places() -> None:
    """Numbers belong to places: whatever the strides, and however many come behind."""
    rates = np.random.default_rng(0).uniform(0, 30, (6, 50)).astype(np.float32)
    want = F.poisson(rates, generator=bc.Generator(seed=3))
    turned = np.ascontiguousarray(rates.T).T
    assert np.array_equal(F.poisson(turned, generator=bc.Generator(seed=3)), want)
    assert np.array_equal(F.poisson(rates[:2], generator=bc.Generator(seed=3)), want[:2])
    same = F.binomial(np.float32([20]), np.float32([[0.3], [0.6]]), generator=bc.Generator(seed=3))
    assert same.shape == (2, 1)
    generator = bc.Generator(seed=3)
    F.poisson(rates, generator=generator)
    assert generator.get_state() == (3, 300)
    for threads in (1, 2):
        bc.set_num_threads(threads)
        try:
            assert np.array_equal(F.poisson(rates, bc.Generator(seed=3)), want)
        finally:
            bc.set_num_threads(0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_in_place(dtype: Any) -> None:
    y = torch.empty(7, 3, dtype=dtype)
    assert F.gamma_(y, 3.0, 2.0, generator=bc.Generator(seed=1)) is y and (y > 0).all()
    assert torch.equal(
        F.gamma_(torch.empty_like(y), torch.full((3,), 3, dtype=dtype), 2.0, generator=bc.Generator(seed=1)), y
    )
    assert ((F.beta_(y, 2.0, 0.5) > 0) & (y <= 1)).all()
    assert (F.poisson_(y, 4.0) == y.floor()).all() and (F.binomial_(y, 12, 0.5) <= 12).all()
    whole = np.zeros(100, np.int64)
    assert F.poisson_(whole, 50.0) is whole and 40 < whole.mean() < 60
    assert F.binomial_(np.zeros(100, np.uint8), 200, 0.9).max() <= 200


def test_rates_of_gamma() -> None:
    """Each element of the shape that concentration and rate have together is drawn for itself."""
    a, rates = np.full(3, 2.0), np.array([[1.0], [2.0], [8.0]])
    want = F.gamma(np.full((3, 3), 2.0), generator=bc.Generator(seed=5)) / rates
    assert np.array_equal(F.gamma(a, rates, generator=bc.Generator(seed=5)), want)
    assert np.array_equal(F.gamma(2, np.tile(rates, 3), generator=bc.Generator(seed=5)), want)
    assert np.array_equal(F.gamma_(np.empty((3, 3)), a, rates, generator=bc.Generator(seed=5)), want)
    own = np.tile(rates, 3)
    assert F.gamma_(own, a, own, generator=bc.Generator(seed=5)) is own and np.array_equal(own, want)
    for rate in (np.float32(2), np.int64(2), 2):
        assert np.array_equal(F.gamma(a, rate, generator=bc.Generator(seed=5)) * 2, want[0])


@pytest.mark.parametrize(
    ("call", "error", "what"),
    [
        (lambda x: F.poisson(-x), bc.ValueOutOfRangeError, "rate: got -1"),
        (lambda x: F.poisson(x * np.float32(np.nan)), bc.ValueOutOfRangeError, "nan"),
        (lambda x: F.gamma(x * np.float32(np.inf)), bc.ValueOutOfRangeError, "inf"),
        (lambda x: F.beta(x, -x), bc.ValueOutOfRangeError, "concentration0"),
        (lambda x: F.binomial(x, 2 * x), bc.ValueOutOfRangeError, "prob: got 2"),
        (lambda x: F.binomial(x, x.astype(np.float64)), bc.InvalidProblemError, "prob: got f64"),
        (lambda x: F.binomial(3, 0.5), bc.InvalidProblemError, "count"),
        (lambda x: F.poisson(np.arange(3)), bc.InvalidProblemError, "want floats"),
        (lambda x: F.gamma_(np.arange(3), 1.0), bc.InvalidProblemError, "input: got i64"),
        (lambda x: F.poisson_(x, np.ones((2, 4), np.float32)), bc.InvalidProblemError, "rate: got shape"),
        (lambda x: F.poisson_(x, "3"), bc.InvalidProblemError, "rate: got str"),
        (lambda x: F.gamma(x, -1.0), bc.InvalidProblemError, "rate: got -1.0, want a finite number above 0"),
        (lambda x: F.gamma_(x, 1.0, float("nan")), bc.InvalidProblemError, "rate: got nan"),
        (lambda x: F.gamma_(x, 1.0, True), bc.InvalidProblemError, "rate: got True"),
        (lambda x: F.gamma_(x, 1.0, None), bc.InvalidProblemError, "rate: got None"),
        (lambda x: F.gamma_(x, 1.0, np.ones(3, np.float32)), bc.InvalidProblemError, "rate: got shapes"),
        (lambda x: F.gamma_(x, 1.0, np.ones(4)), bc.InvalidProblemError, "rate: got f64, want f32"),
        (lambda x: F.gamma_(x, 1.0, x[::-1]), bc.InvalidProblemError, "overlaps"),
    ],
)
def test_errors_say_what_is_wrong(call: Any, error: Any, what: str) -> None:
    x = np.ones(4, np.float32)
    with pytest.raises(error, match=what):
        call(x)
    assert (x == 1).all()


def test_few_elements_are_left_to_rounding() -> None:
    """What the reference expects nothing of, because a comparison is too near, is rare."""
    for op in ("gamma", "beta", "poisson", "binomial"):
        for element in (bc.Element.F32, bc.Element.F64):
            found = [reference(c)["y"].reach for c in cases(op, "forward", element, np.random.default_rng(0))]
            unsure = sum(np.isinf(r).sum() for r in found) / sum(r.size for r in found)
            assert unsure < (0.05 if element is bc.Element.F32 else 0.01), (op, element, unsure)
    assert RejectionDescriptor("gamma", (2, 3)).blocks().at({}) == 6


@pytest.mark.parametrize("dtype", ["u1", "i1", "u2", "i2", "i4", "u4", "i8", "u8"])
def test_integers_take_their_largest_number_where_more_is_drawn(dtype: str) -> None:
    y, most = np.empty(5, dtype), np.iinfo(dtype).max
    assert (F.poisson_(y, 1e25) >= most - most // 2**50).all()
    if most < 2**31:
        assert (F.binomial_(y, 2.0**32, 1.0) == most).all() and (F.geometric_(y, 1e-18) == most).all()
    assert (F.binomial_(y, 100, 1.0) == 100).all()
