"""Moments of numbers that lie far from 0: functions made of several steps keep the promise of `var`, and no less than torch does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import baracuda as bc
import baracuda.functional as F

Array = np.ndarray
MASK = np.random.default_rng(2).random((6, 700)) < 0.7


def _masked(x: Array, how: Callable[..., Any]) -> Array:
    return np.array([how(row[kept], ddof=1) for row, kept in zip(x, MASK, strict=True)])


def _weighted(x: Array) -> Array:
    return np.cov(x, fweights=1 + np.arange(x.shape[1]) % 3)


# Ours of an array and of its dtype's module, and the same in f64.
CALLS: dict[str, tuple[Callable[[Array], Any], Callable[[Array], Array]]] = {
    "var": (lambda x: F.var(x, 1), lambda x: x.var(1, ddof=1)),
    "var over columns": (lambda x: F.var(np.ascontiguousarray(x.T), 0), lambda x: x.var(1, ddof=1)),
    "std": (lambda x: F.std(x, 1), lambda x: x.std(1, ddof=1)),
    "cov": (F.cov, np.cov),
    "cov with weights": (lambda x: F.cov(x, fweights=1 + np.arange(x.shape[1]) % 3), _weighted),
    "corrcoef": (F.corrcoef, np.corrcoef),
    "masked.var": (lambda x: F.masked.var(x, 1, mask=MASK), lambda x: _masked(x, np.var)),
    "masked.std": (lambda x: F.masked.std(x, 1, mask=MASK), lambda x: _masked(x, np.std)),
    "masked.var of all": (lambda x: F.masked.var(x, 1), lambda x: x.var(1, ddof=1)),
    "masked.std of all": (lambda x: F.masked.std(x, 1), lambda x: x.std(1, ddof=1)),
}


def _allowed(n: int) -> float:
    promised = bc.plan(bc.VarianceDescriptor("var", (n,))).precision_guarantee
    assert promised.bound == "sum"
    return float(promised.c * np.finfo(np.float32).eps * np.sqrt(n))


@pytest.mark.parametrize("far", [0.0, 1e3, -1e5, 1e6, 1e7])
@pytest.mark.parametrize("name", CALLS)
def test_distance_from_zero_costs_nothing(name: str, far: float, rng: np.random.Generator) -> None:
    ours, wide = CALLS[name]
    x = (rng.normal(0, 1, MASK.shape) + far).astype(np.float32)
    want = wide(x.astype(np.float64))
    error = np.abs(np.asarray(ours(x), np.float64) - want).max() / np.abs(want).max()
    assert error <= _allowed(x.shape[1]), f"{error}"


@pytest.mark.parametrize("far", [0.0, 1e6, 1e7])
@pytest.mark.parametrize("axis", [0, 1])
def test_gradients_far_from_zero(axis: int, far: float, rng: np.random.Generator) -> None:
    x = (rng.normal(0, 1, (300, 70)) + far).astype(np.float32)
    n = x.shape[axis]
    for name in ("var", "std", "var_mean", "std_mean"):
        y, pull = bc.vjp(getattr(F, name), x, axis)
        dys = [np.ones_like(v) for v in (y if isinstance(y, tuple) else (y,))]
        leaf = torch.from_numpy(x).double().requires_grad_()
        made = getattr(torch, name)(leaf, axis)
        for v in made if isinstance(made, tuple) else (made,):
            v.sum().backward(retain_graph=True)
        want = leaf.grad.numpy()
        error = np.abs(pull(*dys) - want).max() / np.abs(want).max()
        assert error <= _allowed(n), f"{name} {error}"


def test_equal_values_have_no_variance(rng: np.random.Generator) -> None:
    for shape in ((70, 5), (3000, 20), (66000, 2)):
        for value in (0.1, -3e7, 1e-3):
            x = np.full(shape, value, np.float32)
            for y in (F.var(x, 0), F.std(x, 0), F.var(np.ascontiguousarray(x.T), 1), F.var(x), F.var(x[:, 0])):
                assert not np.any(y), (shape, value)
