"""bc.grad and bc.jit of tensors on devices: gradients lie there, and are those of the cpu."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import baracuda as bc
import baracuda.functional as F
from baracuda.memory.device import Device

RNG = np.random.default_rng(7)
PARAMS = {"w": RNG.normal(size=(6, 5)).astype(np.float32), "b": RNG.normal(size=5).astype(np.float32)}
X, TARGET = RNG.normal(size=(4, 6)).astype(np.float32), np.array([0, 4, 2, 1])


@pytest.fixture(params=["cuda", "metal"])
def place(request: pytest.FixtureRequest) -> str:
    if not Device(request.param).usable:
        pytest.skip(f"{request.param}: {Device(request.param).reason}")
    return str(request.param)


def loss(params: Any, x: Any, target: Any) -> Any:
    """With views, a value that is used twice, and parts of one tensor."""
    h = F.tanh(F.matmul(x, params["w"]) + params["b"])
    return F.cross_entropy(h * params["b"][None, :] + h[:, ::-1], target) + F.sum(h[1:] * h[:-1])


def test_gradients_are_those_of_the_cpu(place: str) -> None:
    value, want = bc.value_and_grad(loss)(PARAMS, X, TARGET)
    on = {k: bc.asarray(v, device=place) for k, v in PARAMS.items()}
    given = bc.asarray(X, device=place), bc.asarray(TARGET, device=place)
    for step in (bc.value_and_grad(loss), bc.jit(bc.value_and_grad(loss))):
        for _ in range(2):
            got, gradients = step(on, *given)
            bc.synchronize(place)
            assert got.device.startswith(place) and all(g.device.startswith(place) for g in gradients.values())
            np.testing.assert_allclose(got.to("cpu").numpy(), value, rtol=1e-5)
            for k, g in gradients.items():
                np.testing.assert_allclose(g.to("cpu").numpy(), want[k], rtol=1e-4, atol=1e-5)


def test_numbers_of_a_jitted_call_go_to_the_device(place: str) -> None:
    x = bc.asarray(X, device=place)
    fast = bc.jit(lambda x, rate: x * rate)
    for rate in (0.5, 2.0):
        np.testing.assert_allclose(fast(x, rate).to("cpu").numpy(), X * np.float32(rate), rtol=1e-6)
    assert fast.cache_size == 1
