"""Distributions of random numbers against scipy's: moments, both tails, and how many different numbers a tail has."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, sqrt
from typing import Any

import numpy as np
import pytest

import baracuda as bc
import baracuda.functional as F

st = pytest.importorskip("scipy.stats")

N = 1 << 18
Draw = Callable[..., Any]


def _normal_of(mean: float, std: float, a: float, b: float) -> tuple[Draw, Any]:
    """trunc_normal_ and what it is."""
    dist = st.truncnorm((a - mean) / std, (b - mean) / std, mean, std)
    return (lambda y, **g: F.trunc_normal_(y, mean, std, a, b, **g)), dist


# What fills an array, and its distribution.
SMOOTH: dict[str, tuple[Draw, Any]] = {
    "uniform": (lambda y, **g: F.uniform_(y, -3.0, 5.0, **g), st.uniform(-3, 8)),
    "normal": (lambda y, **g: F.normal_(y, 2.0, 3.0, **g), st.norm(2, 3)),
    "exponential": (lambda y, **g: F.exponential_(y, 1.5, **g), st.expon(0, 1 / 1.5)),
    "cauchy": (lambda y, **g: F.cauchy_(y, -2.0, 0.5, **g), st.cauchy(-2, 0.5)),
    "laplace": (lambda y, **g: F.laplace_(y, 1.0, 0.5, **g), st.laplace(1, 0.5)),
    "log_normal": (lambda y, **g: F.log_normal_(y, 0.5, 0.7, **g), st.lognorm(0.7, 0, np.exp(0.5))),
    **{f"gamma {k}": (lambda y, k=k, **g: F.gamma_(y, k, 2.0, **g), st.gamma(k, 0, 0.5)) for k in (0.05, 0.3, 1.0, 2.5, 40.0)},
    **{
        f"beta {p} {q}": (lambda y, p=p, q=q, **g: F.beta_(y, p, q, **g), st.beta(p, q))
        for p, q in ((0.5, 0.5), (2.0, 5.0), (30.0, 0.4), (1.0, 1.0))
    },
    "truncated": _normal_of(1, 2, -0.5, 4),
    "truncated to one side": _normal_of(0, 1, -0.5, inf),
    "truncated from 1.9": _normal_of(0, 1, 1.9, inf),
    "truncated from 2": _normal_of(0, 1, 2, inf),
    "truncated 3 to 4": _normal_of(0, 1, 3, 4),
    "truncated 5 to 5.5": _normal_of(0, 1, 5, 5.5),
    "truncated 8 to 10": _normal_of(0, 1, 8, 10),
    "truncated below": _normal_of(5, 0.5, -3, 0),
    "truncated 30 away": _normal_of(-30, 1, 0, 1),
}  # fmt: skip
COUNTS: dict[str, tuple[Draw, Any]] = {
    **{f"geometric {p}": (lambda y, p=p, **g: F.geometric_(y, p, **g), st.geom(p)) for p in (0.9, 0.3, 0.01)},
    **{f"poisson {r}": (lambda y, r=r, **g: F.poisson_(y, r, **g), st.poisson(r)) for r in (0.1, 3.0, 12.0, 200.0)},
    **{
        f"binomial {n} {p}": (lambda y, n=n, p=p, **g: F.binomial_(y, n, p, **g), st.binom(n, p))
        for n, p in ((10, 0.3), (1000, 0.002), (500, 0.7))
    },
    "bernoulli": (lambda y, **g: F.bernoulli_(y, 0.3, **g), st.bernoulli(0.3)),
}


def _within(got: float, want: float, deviation: float, what: str) -> None:
    assert abs(got - want) <= 6 * deviation, f"{what}: {got}, want {want} +- {deviation}"


def _check_moments(x: np.ndarray, dist: Any, coarse: float) -> None:
    mean, variance, kurtosis = (float(v) for v in dist.stats("mvk"))
    if not np.isfinite(mean):
        return
    _within(x.mean(), mean, sqrt(variance / N) + coarse * abs(mean), "mean")
    if np.isfinite(kurtosis):
        _within(x.var(), variance, variance * sqrt(max(kurtosis + 2, 0) / N) + coarse * variance, "variance")


@pytest.mark.parametrize("element", ["f4", "f8"])
@pytest.mark.parametrize("name", SMOOTH)
def test_moments_and_tails(name: str, element: str) -> None:
    draw, dist = SMOOTH[name]
    x = draw(np.empty(N, element), generator=bc.Generator(11)).astype(np.float64)
    assert np.isfinite(x).all()
    _check_moments(x, dist, np.finfo(element).eps)
    for share in (1e-1, 1e-2, 1e-3, 1e-4):
        deviation = sqrt(share * (1 - share) / N)
        for q, what in ((dist.ppf(share), "lower"), (dist.isf(share), "upper")):
            at = np.asarray(q).astype(element)
            # What lies up to half a unit above the quantile is rounded to it.
            low, high = (float(dist.cdf(float(at) + k * float(np.spacing(at)))) for k in (0, 1))
            found = (x <= at).mean()
            assert low - 6 * deviation <= found <= high + 6 * deviation, (
                f"{what} {share}: {found}, want {low} to {high}"
            )
    # The tails alone, each by its own distribution (Kolmogorov's bound for 1e-6).
    low, high = np.sort(x[x < dist.ppf(0.01)]), np.sort(-x[x > dist.isf(0.01)])
    for part, share in ((low, dist.cdf), (high, lambda v: dist.sf(-v))):
        spacing = np.spacing(np.abs(part).astype(element)).astype(np.float64)
        ends = [share(part + k * spacing) / 0.01 for k in (-1, 1)]
        places = (np.arange(part.size) + 0.5) / part.size
        distance = max((ends[0] - places).max(), (places - ends[1]).max(), 0) if part.size else 0
        # How many there are depends on how the quantile is rounded, too, which is looked at above.
        assert distance < 2.7 / sqrt(max(part.size, 1)) + abs(part.size / (0.01 * N) - 1), distance
    # 24 bits are drawn for f32: of so many numbers few are the same, unless the element has no more there.
    spacing = np.spacing(np.abs(np.quantile(x, [0.1, 0.9])).max().astype(element))
    few = min(N / 2, 0.2 * (np.quantile(x, 0.9) - np.quantile(x, 0.1)) / float(spacing))
    assert len(np.unique(x)) >= few, f"{len(np.unique(x))} different numbers, want {few}"


@pytest.mark.parametrize("element", ["f4", "f8", "i4", "i8"])
@pytest.mark.parametrize("name", COUNTS)
def test_counts(name: str, element: str) -> None:
    draw, dist = COUNTS[name]
    x = draw(np.empty(N, element), generator=bc.Generator(12)).astype(np.float64)
    _check_moments(x, dist, 1e-6)
    values = np.unique(x)
    wanted, found = dist.pmf(values), np.array([(x == v).mean() for v in values])
    assert (wanted > 0).all()
    z = (found - wanted) / np.sqrt(np.maximum(wanted * (1 - wanted), 1 / N) / N)
    assert np.abs(z).max() < 7, (values[np.abs(z).argmax()], z)
    for share in (1e-2, 1e-3, 1e-4):
        for at in (dist.ppf(share), dist.isf(share)):
            want = float(dist.cdf(at))
            _within((x <= at).mean(), want, sqrt(max(want * (1 - want), 1 / N) / N), f"up to {at}")
