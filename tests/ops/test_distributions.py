"""Random numbers of further distributions: their distribution functions, elements, layouts, generators, refusals."""

from __future__ import annotations

from collections.abc import Callable
from math import erf, exp, log, pi, sqrt
from typing import Any

import numpy as np
import pytest

import baracuda as bc
import baracuda.functional as F

Draw = Callable[..., Any]


def _normal(x: float) -> float:
    return 0.5 + 0.5 * erf(x / sqrt(2))


def _truncated(x: float) -> float:
    low, high = _normal((-0.5 - 1) / 2), _normal((4 - 1) / 2)
    return (_normal((x - 1) / 2) - low) / (high - low)


# What fills, and the share of numbers up to x.
DRAWS: dict[str, tuple[Draw, Callable[[float], float]]] = {
    "exponential": (lambda y, **g: F.exponential_(y, 1.5, **g), lambda x: 1 - exp(-1.5 * x)),
    "cauchy": (lambda y, **g: F.cauchy_(y, -2.0, 0.5, **g), lambda x: 0.5 + np.arctan((x + 2) / 0.5) / pi),
    "log_normal": (lambda y, **g: F.log_normal_(y, 0.5, 0.7, **g), lambda x: _normal((log(x) - 0.5) / 0.7)),
    "laplace": (
        lambda y, **g: F.laplace_(y, 1.0, 0.5, **g),
        lambda x: 0.5 + 0.5 * np.sign(x - 1) * (1 - exp(-abs(x - 1) / 0.5)),
    ),
    "trunc_normal": (lambda y, **g: F.trunc_normal_(y, 1.0, 2.0, -0.5, 4.0, **g), _truncated),
}


@pytest.mark.parametrize("element", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("name", DRAWS)
def test_the_distribution_is_the_one_named(name: str, element: str) -> None:
    draw, share = DRAWS[name]
    n = 40_000
    y = np.empty(n, bc.Element.coerce(element).numpy)
    assert draw(y, generator=bc.Generator(5)) is y
    x = np.sort(y.astype(np.float64))
    found = np.array([share(v) for v in x[::50]])
    # Kolmogorov's bound for a probability of 1e-6, and half a unit of numbers that are rounded.
    rounding = {"f16": 2.0**-11, "bf16": 2.0**-8}.get(element, 0.0)
    distance = np.abs(found - (np.arange(n)[::50] + 0.5) / n).max()
    assert distance < 2.7 / sqrt(n) + 2 * rounding, distance
    assert np.isfinite(x).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int32, np.float16])
@pytest.mark.parametrize("p", [0.2, 0.8])
def test_tries_until_a_success(dtype: type, p: float) -> None:
    n = 40_000
    y = F.geometric_(np.empty(n, dtype), p, generator=bc.Generator(6))
    assert y.dtype == dtype and y.min() == 1
    for k in range(1, 6):
        want = (1 - p) ** (k - 1) * p
        assert abs((y == k).mean() - want) < 5 * sqrt(want * (1 - want) / n)


def test_all_layouts_and_kinds_have_the_same_numbers() -> None:
    torch = pytest.importorskip("torch")
    for draw, _ in DRAWS.values():
        want = draw(np.empty((6, 5), np.float32), generator=bc.Generator(9, 3))
        turned = np.empty((5, 12), np.float32).T[::-2]
        np.testing.assert_array_equal(draw(turned, generator=bc.Generator(9, 3)), want)
        np.testing.assert_array_equal(draw(torch.empty(6, 5), generator=bc.Generator(9, 3)).numpy(), want)
        np.testing.assert_array_equal(draw(bc.empty((6, 5)), generator=bc.Generator(9, 3)).numpy(), want)
        half = draw(np.empty((6, 5), np.float16), generator=bc.Generator(9, 3))
        np.testing.assert_array_equal(half, want.astype(np.float16))
        assert draw(np.empty((0, 3), np.float32)).shape == (0, 3)


def test_the_default_generator_goes_on() -> None:
    bc.manual_seed(3)
    first = F.exponential_(np.empty(8, np.float32))
    second = F.exponential_(np.empty(8, np.float32))
    bc.manual_seed(3)
    np.testing.assert_array_equal(F.exponential_(np.empty(16, np.float32)), np.concatenate((first, second)))


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda y: F.exponential_(y, 0.0), "lambd: got 0.0"),
        (lambda y: F.exponential_(y, float("nan")), "lambd"),
        (lambda y: F.cauchy_(y, 0.0, -1.0), "sigma"),
        (lambda y: F.log_normal_(y, 0.0, 0.0), "std"),
        (lambda y: F.laplace_(y, 0.0, -1.0), "scale"),
        (lambda y: F.geometric_(y, 1.0), "p: got 1.0"),
        (lambda y: F.trunc_normal_(y, b=-3.0), "b: got -3.0"),
        (lambda y: F.trunc_normal_(y, a=1e200, b=2e200), "a: got 1e"),
        (lambda y: F.exponential_(y.astype(np.int64)), "input: got i64"),
    ],
)
def test_wrong_numbers_are_refused(call: Any, word: str) -> None:
    y = np.full(3, 7, np.float32)
    with pytest.raises(bc.InvalidProblemError, match=word):
        call(y)
    assert (y == 7).all()


def test_gumbel_noise_draws_in_proportion_to_softmax() -> None:
    logits = np.array([0.5, -1.0, 2.0, 0.0, -30.0], np.float32)
    rows = np.broadcast_to(logits, (40_000, 5))
    y = F.gumbel_softmax(rows, tau=0.3, hard=True, generator=bc.Generator(3))
    assert set(np.unique(y)) == {0.0, 1.0} and (y.sum(1) == 1).all()
    want = np.exp(logits) / np.exp(logits).sum()
    assert (np.abs(y.mean(0) - want) < 5 * np.sqrt(want * (1 - want) / len(y)) + 1e-9).all()
    soft = F.gumbel_softmax(rows, tau=0.3, generator=bc.Generator(3))
    np.testing.assert_array_equal(soft.argmax(1), y.argmax(1))


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_gradients_of_gumbel_softmax_are_those_of_the_soft_result(dtype: type, hard: bool) -> None:
    rng = np.random.default_rng(1)
    x, dy = (rng.normal(size=(3, 7)).astype(dtype) for _ in range(2))
    _, pull = bc.vjp(F.gumbel_softmax, x, 0.7, hard, dim=0, generator=bc.Generator(2))
    soft = F.gumbel_softmax(x, 0.7, dim=0, generator=bc.Generator(2)).astype(np.float64)
    want = soft * (dy - (soft * dy).sum(0)) / 0.7
    found = pull(dy)
    assert found.dtype == dtype
    np.testing.assert_allclose(
        found, want, rtol=1e-2 if dtype is np.float16 else 2e-5, atol=1e-3 if dtype is np.float16 else 1e-6
    )


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_the_largest_with_noise_is_drawn_in_proportion_to_softmax(dtype: type) -> None:
    logits = np.array([0.5, -1.0, 2.0, 0.0, -np.inf, 1.0], dtype)
    y = F.gumbel_max(np.broadcast_to(logits, (40_000, 6)), 1.5, generator=bc.Generator(8))
    assert y.dtype == np.int64
    want = np.exp(logits.astype(np.float64) / 1.5)
    want /= want.sum()
    found = np.bincount(y, minlength=6) / len(y)
    assert (np.abs(found - want) < 5 * np.sqrt(want * (1 - want) / len(y)) + 1e-12).all()
    with pytest.raises(bc.InvalidProblemError, match="temperature"):
        F.gumbel_max(logits, 0.0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_extreme_temperatures(dtype: type) -> None:
    """Logits over a temperature may be beyond the element, where the largest would be no better than others."""
    logits = np.random.default_rng(2).normal(0, 1, (50, 40)).astype(dtype)
    logits[:, 3], logits[:, 5] = 0, np.finfo(dtype).max
    logits[:, 2] = np.nextafter(logits[:, 5], dtype(0))
    for temperature in (5e-324, 1e-40, 1e-6):
        np.testing.assert_array_equal(F.gumbel_max(logits[:, 6:], temperature), logits[:, 6:].argmax(1))
        np.testing.assert_array_equal(F.gumbel_max(logits, temperature), 5)
    even = np.bincount(
        F.gumbel_max(np.tile(logits[:1, 6:10], (20_000, 1)), 1e30, generator=bc.Generator(1)), minlength=4
    )
    assert (np.abs(even / 20_000 - 0.25) < 0.02).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_categories_are_drawn_in_proportion_to_softmax(dtype: type) -> None:
    logits = np.random.default_rng(3).normal(0, 1, (2, 3, 7)).astype(dtype)
    y = F.categorical(logits, 20_000, generator=bc.Generator(8))
    assert y.shape == (2, 3, 20_000)
    p = np.exp(logits.astype(np.float64))
    p /= p.sum(-1, keepdims=True)
    for i in np.ndindex(2, 3):
        found = np.bincount(y[i], minlength=7) / 20_000
        assert (np.abs(found - p[i]) < 5 * np.sqrt(p[i] * (1 - p[i]) / 20_000)).all()
    assert F.categorical(logits, generator=bc.Generator(8)).shape == (2, 3)
    assert F.categorical(logits[0, 0], generator=bc.Generator(8)).shape == ()
    with pytest.raises(bc.InvalidProblemError, match="logits"):
        F.categorical(np.arange(3))


def test_no_noise_is_infinite() -> None:
    y = F.gumbel_softmax(np.zeros(1 << 25, np.float32), generator=bc.Generator(0))
    assert np.isfinite(y).all()


def test_wrong_temperatures_are_refused() -> None:
    for tau in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(bc.InvalidProblemError, match="tau"):
            F.gumbel_softmax(np.zeros(3, np.float32), tau)
    with pytest.raises(bc.InvalidProblemError, match="logits"):
        F.gumbel_softmax(np.zeros(3, np.int64))


@pytest.mark.parametrize(
    ("fn", "what"), [(F.laplace_, "loc"), (F.cauchy_, "median"), (F.log_normal_, "mean"), (F.trunc_normal_, "mean")]
)
def test_centres_are_finite(fn: Any, what: str) -> None:
    for wrong in (float("nan"), float("inf")):
        y = np.ones(4, np.float32)
        with pytest.raises(bc.InvalidProblemError, match=f"{what}: got {wrong}, want a finite number"):
            fn(y, wrong)
        assert (y == 1).all()
