"""Functional calls on the emulated cuda module's two devices: where results are, and gradients."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from fakecuda import on_devices

import baracuda as bc
import baracuda.functional as F

PLACES = ("cuda:0", "cuda:1")
X = np.linspace(-3, 3, 24, dtype=np.float32).reshape(4, 6)
WANT = F.swiglu(X)


def host(t: bc.Tensor) -> np.ndarray[Any, Any]:
    return t.to("cpu").numpy()


@on_devices
def test_functional_results_are_on_the_arguments_device() -> None:
    F.swiglu(X)
    for place in (*PLACES, "cpu", *PLACES):
        y = F.swiglu(bc.asarray(X, device=place))
        assert type(y) is bc.Tensor
        assert (y.device, y.shape) == (place, (4, 3))
        assert np.allclose(host(y), WANT, rtol=1e-6)
    view = bc.asarray(np.ascontiguousarray(X.T), device="cuda:1").transpose()
    assert np.allclose(host(F.swiglu(view)), WANT, rtol=1e-6)


@on_devices
def test_out_is_written_where_it_lies() -> None:
    x, out = bc.asarray(X, device="cuda:1"), bc.zeros((4, 6), device="cuda:1")
    assert F.neg(x, out=out) is out
    assert (host(out) == -X).all()
    with pytest.raises(bc.InvalidProblemError, match="out: got cuda:0, want cuda:1"):
        F.neg(x, out=bc.zeros((4, 6), device="cuda:0"))


@on_devices
def test_gradients_on_a_device() -> None:
    x = bc.asarray(X, device="cuda:1")
    y, pull = bc.vjp(F.swiglu, x)
    dy = np.linspace(1, 2, 12, dtype=np.float32).reshape(4, 3)
    dx = pull(bc.asarray(dy, device="cuda:1"))
    dx = dx[0] if isinstance(dx, tuple) else dx
    assert (y.device, dx.device) == ("cuda:1", "cuda:1")
    _, pull_here = bc.vjp(F.swiglu, X)
    want = pull_here(dy)
    want = want[0] if isinstance(want, tuple) else want
    assert np.allclose(host(dx), want, rtol=1e-5, atol=1e-6)


@on_devices
@pytest.mark.parametrize("place", PLACES)
def test_functions_of_several_plans(place: str) -> None:
    """In a thread, whose scratch goes with it."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(_check_functions_of_several_plans, place).result()


def _check_functions_of_several_plans(place: str) -> None:
    a, b, c = (np.arange(n * m, dtype=np.float32).reshape(n, m) % 5 for n, m in ((3, 4), (4, 5), (5, 3)))
    here = [bc.asarray(x, device=place) for x in (a, b, c)]
    y, pull = bc.vjp(F.einsum, "ij,jk,ki->ik", *here)
    _, pull_on_cpu = bc.vjp(F.einsum, "ij,jk,ki->ik", a, b, c)
    assert y.device == place and np.array_equal(host(y), np.einsum("ij,jk,ki->ik", a, b, c))
    for got, want in zip(pull(y), pull_on_cpu(host(y)), strict=True):
        assert got.device == place and np.array_equal(host(got), want)
    with pytest.raises(bc.BaracudaError, match="cpu"):
        F.einsum("ij,jk", here[0], b)
