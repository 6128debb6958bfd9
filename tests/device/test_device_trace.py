"""Traced functions on the emulated devices: the results of their calls there, from captured tensors and gradients, too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fakecuda import on_devices
from fakemetal import needs_emulator as with_metal

import baracuda as bc
import baracuda.functional as F

RNG = np.random.default_rng(3)
X, W = RNG.normal(size=(6, 16)).astype(np.float32), RNG.normal(size=(16, 5)).astype(np.float32)
T = np.arange(6) % 5
PLACES = ("cuda:0", "cuda:1")


def host(t: Any) -> np.ndarray[Any, Any]:
    return t.to("cpu").numpy()


@on_devices
@pytest.mark.parametrize("place", PLACES)
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


def check_profile(place: str) -> None:
    x, w, counts = (bc.asarray(a, device=place) for a in (X, W, np.zeros(5, np.float32)))

    def f(x: Any, w: Any) -> Any:
        y = F.softmax(F.matmul(x, w), 1)
        F.add(w, 1.0, out=w)
        F.add(counts, 1.0, out=counts)
        return F.add(y, counts), y[1:3]

    plan = bc.trace(f, x, w).compile(passes=("dead",))
    found = plan.profile(x, w, runs=3)
    assert [t.name for t in found.launches] == ["matmul", "softmax", "add", "add", "add", "copy of a result"]
    assert all(t.microseconds > 0 and f".{place.split(':')[0]}." in t.sku for t in found.launches)
    assert found.launches[0].bytes == 4 * (X.size + W.size + 6 * 5)
    np.testing.assert_array_equal(host(w), W)
    np.testing.assert_array_equal(host(counts), 0)
    with pytest.raises(bc.InvalidProblemError, match=rf"x: got f32\[6, 16\] on cpu, want f32\[6, 16\] on {place}"):
        plan.profile(X, w)


@on_devices
@pytest.mark.parametrize("place", PLACES)
def test_profile_times_launches_by_events(place: str) -> None:
    """On copies: of arguments that are written, and of what was captured."""
    check_profile(place)


@with_metal
def test_profile_times_launches_of_metal() -> None:
    check_profile("metal")


@on_devices
def test_profile_tells_what_a_kernel_finds() -> None:
    table, ids = bc.asarray(W, device="cuda:1"), bc.asarray(np.array([0, 16]), device="cuda:1")
    plan = bc.trace(lambda i, t: F.exp(F.embedding(i, t)), ids, table).compile()
    with pytest.raises(bc.IndexOutOfRangeError, match="got index 16 at element 1"):
        plan.profile(ids, table, runs=2)
    bc.synchronize("cuda:1")  # it is told once
    ids.copy_from(np.array([0, 15]))
    assert len(plan.profile(ids, table, runs=1).launches) == 2
