"""Counts and histograms: against torch, and what the generated tests do not reach."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import baracuda as bc
import baracuda.functional as F


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.uint8], ids=str)
def test_counts_as_torch(dtype: torch.dtype) -> None:
    rng = torch.Generator().manual_seed(0)
    for n, most, least in ((0, 1, 0), (0, 1, 5), (1, 1, 0), (1000, 9, 0), (1000, 200, 300), (40, 120, 3)):
        x = torch.randint(0, most, (n,), generator=rng).to(dtype)
        for given in (x, x.flip(0), torch.stack([x, x], 1)[:, 1]):
            assert torch.equal(F.bincount(given, minlength=least), torch.bincount(given, minlength=least))
        for weights in (torch.rand(n, generator=rng), torch.arange(n), torch.rand(n, generator=rng).double()):
            got, want = F.bincount(x, weights, least), torch.bincount(x, weights, least)
            assert got.dtype == want.dtype and torch.allclose(got, want.to(got.dtype), atol=1e-5)


@pytest.mark.parametrize("most", [70000, (1 << 20) + 7, 3 << 20])
def test_many_bins(most: int) -> None:
    """More than are tried first; tables of threads; one table for all."""
    x = np.random.default_rng(0).integers(0, most, 30000)
    x[7] = most - 1
    assert np.array_equal(F.bincount(x), np.bincount(x))


def test_what_is_no_number_of_a_bin_is_refused() -> None:
    with pytest.raises(bc.IndexOutOfRangeError, match="got index -3 at element 1"):
        F.bincount(np.array([0, -3, 2]))
    for wrong, word in (
        ((np.ones(3, np.float32),), "input: got f32"),
        ((np.ones((2, 2), np.int64),), "of rank 1"),
        ((np.ones(3, np.int64), np.ones(2)), "weights: got shape"),
        ((np.ones(3, np.int64), None, -1), "minlength: got -1"),
    ):
        with pytest.raises(bc.InvalidProblemError, match=word):
            F.bincount(*wrong)


def test_a_plan_leaves_out_what_has_no_bin_and_says_how_many_are_needed() -> None:
    made = bc.plan(bc.BincountDescriptor((5,), 3))
    y, size = np.zeros(3, np.int64), np.zeros((), np.int64)
    made.run(np.array([2, 9, 0, 2, 3]), y, size, workspace=bc.empty(made.workspace_size, "u8"))
    assert y.tolist() == [1, 0, 2] and size == 10


LIMITS: list[dict[str, Any]] = [{}, {"bins": 7}, {"bins": 7, "min": -1, "max": 1}, {"bins": 3, "min": 2, "max": 2}]


@pytest.mark.parametrize("options", LIMITS, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_histc_as_torch(options: dict[str, Any], dtype: torch.dtype) -> None:
    x = torch.randn(3000, generator=torch.Generator().manual_seed(0), dtype=dtype)
    for given in (x, x.reshape(30, 100).T, torch.full((4,), 2.0, dtype=dtype), x[:0]):
        assert torch.equal(F.histc(given, **options), torch.histc(given, **options))
    if "min" in options and options["min"] < options["max"]:
        x[::7], x[1] = torch.nan, torch.inf
        assert torch.equal(F.histc(x, **options), torch.histc(x, **options))


def test_histogram_as_torch() -> None:
    rng = torch.Generator().manual_seed(0)
    x, weight = torch.randn(20, 50, generator=rng), torch.rand(20, 50, generator=rng)
    edges = torch.tensor([-1.0, 0.0, 0.0, 0.5, 3.0])
    for bins in (1, 9, edges):
        for w in (None, weight):
            for density in (False, True):
                got = F.histogram(x, bins, weight=w, density=density)
                want = torch.histogram(x, bins, weight=w, density=density)
                assert all(torch.allclose(a, b, rtol=1e-5, equal_nan=True) for a, b in zip(got, want, strict=True))
    got, want = F.histogram(x, 5, range=(-1, 1)), torch.histogram(x, 5, range=(-1.0, 1.0))
    assert torch.equal(got[0], want[0]) and torch.allclose(got[1], want[1])


def test_refused_histograms() -> None:
    x = np.ones(3, np.float32)
    for call, word in (
        (lambda: F.histc(np.ones(3, np.int64)), "input: got element i64"),
        (lambda: F.histc(x, 0), "bins: got 0"),
        (lambda: F.histc(x, 3, 2, 1), "bins from 2.0 to 1.0"),
        (lambda: F.histc(np.float32([1, np.inf])), "want finite ones"),
        (lambda: F.histogram(x, np.ones(3)), "bins: got f64"),
        (lambda: F.histogram(x, 3, weight=np.ones(2, np.float32)), "weight: want f32"),
        (lambda: F.histogramdd(np.ones((2, 9), np.float32), 1), "input: got 9 coordinates, want at most 8"),
    ):
        with pytest.raises(bc.InvalidProblemError, match=word):
            call()


@pytest.mark.parametrize("edges", [[3, 2, 1], [0, np.nan, 1], [0, 1, np.nan], [0, 2, 1.5]])
def test_edges_of_grids_rise(edges: list[float]) -> None:
    x = np.ones((4, 2), np.float32)
    with pytest.raises(bc.InvalidProblemError, match=r"bins\[1\]: got edges that fall, or NaN"):
        F.histogramdd(x, [np.float32([0, 1, 2]), np.float32(edges)])
    found, _ = F.histogramdd(x, [np.float32([0, 1, 2]), np.float32([0, 1, 1])])
    assert found.sum() == 4
