"""Some work for the Metal backend on the fake, and the fixture of tests that leave nothing behind."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from fakemetal import live, problems

import baracuda as bc

X = np.linspace(-2, 3, 6 * 64, dtype=np.float32).reshape(6, 64)


@pytest.fixture
def no_metal_leaks() -> Iterator[None]:
    def settle() -> None:
        gc.collect()
        bc.Device("metal").synchronize()

    whole()  # what is made once for the life of the process
    settle()
    before = live()
    assert problems() == ""
    yield
    settle()
    assert live() == before
    assert problems() == "", "Metal was misused"


def swiglu(x: Any) -> Any:
    value, gate = x[:, : x.shape[1] // 2].astype(np.float64), x[:, x.shape[1] // 2 :].astype(np.float64)
    return value * gate / (1 + np.exp(-gate))


def same(got: bc.Tensor, want: Any) -> None:
    np.testing.assert_allclose(got.to("cpu").numpy(), want, rtol=1e-6, atol=1e-6)


def run(x: Any, y: bc.Tensor, stream: bc.Stream | None = None) -> None:
    """Launches it, without memory of its own."""
    shape = (*y.shape[:-1], 2 * y.shape[-1])
    bc.plan(bc.GatedActivationDescriptor("swiglu", shape), device="metal").run(x=x, y=y, stream=stream)


def whole() -> None:
    """A bit of everything: each call of Metal's that can fail, does so here at some time."""
    stream = bc.Stream("metal")
    event = bc.Event("metal")
    x = bc.asarray(X, device="metal")
    y, z = bc.empty((6, 32), device="metal"), bc.zeros((6, 16), device="metal")
    run(x, y, stream)
    event.record(stream)
    bc.Stream("metal", non_blocking=True).wait(event)
    run(y, z)
    event.synchronize()
    stream.synchronize()
    same(z, swiglu(swiglu(X)))
