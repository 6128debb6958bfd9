"""Traced functions on the emulated devices: the results of their calls there, from captured tensors and gradients, too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fakecuda import on_devices

import baracuda as bc
import baracuda.functional as F

RNG = np.random.default_rng(3)
X, W = RNG.normal(size=(6, 16)).astype(np.float32), RNG.normal(size=(16, 5)).astype(np.float32)
T = np.arange(6) % 5


def host(t: Any) -> np.ndarray[Any, Any]:
    return t.to("cpu").numpy()


@on_devices
@pytest.mark.parametrize("place", ["cuda:0", "cuda:1"])
def test_a_traced_function_gives_what_its_calls_give(place: str) -> None:
    x, w, bias = (bc.asarray(a, device=place) for a in (X, W, np.ones(5, np.float32)))

    def f(x: Any, w: Any) -> Any:
        h = F.tanh(F.matmul(x, w))
        return F.softmax(F.add(h, F.mul(bias, 3.0)), 1), h[1:3], bc.zeros((2, 3), device=place)

    graph = bc.trace(f, x, w)
    plan, frozen = graph.compile(), graph.compile(frozen=True)
    assert plan.device == place and frozen.launches == plan.launches - 1
    for got, fixed, want in zip(plan.run(x, w), frozen.run(x, w), f(x, w), strict=True):
        assert got.device == fixed.device == place
        np.testing.assert_array_equal(host(got), host(F.copy(want)))
        np.testing.assert_array_equal(host(fixed), host(got))


@on_devices
def test_gradients_and_lengths() -> None:
    def loss(x: Any, w: Any, t: Any) -> Any:
        return F.cross_entropy(F.matmul(F.relu(x), w), t)

    n = bc.Dim("n", max=40)
    specs = [bc.TensorSpec(s, e, device="cuda:0") for s, e in (((n, 16), "f32"), ((16, 5), "f32"), ((n,), "i64"))]
    graph = bc.trace(loss, *specs)
    plan = graph.grad(graph.results, graph.tensors[:2]).compile()
    here = bc.trace(loss, X, W, T)
    want = here.grad(here.results, here.tensors[:2]).compile().run(X, W, T)
    value, (dx, dw) = plan.run(*(bc.asarray(a, device="cuda:0") for a in (X, W, T)))
    for got, wanted in ((value, want[0]), (dx, want[1][0]), (dw, want[1][1])):
        np.testing.assert_allclose(host(got), wanted, rtol=1e-5, atol=1e-6)


@on_devices
def test_tensors_of_two_devices_are_refused() -> None:
    x, w = bc.asarray(X, device="cuda:0"), bc.asarray(W, device="cuda:1")
    with pytest.raises(bc.InvalidProblemError, match="trace: got tensors on cuda:0, cuda:1"):
        bc.trace(F.matmul, x, w)
    with pytest.raises(bc.InvalidProblemError, match="profile: got a graph on cuda:0"):
        bc.trace(F.exp, x).compile().profile(x)
