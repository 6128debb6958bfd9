"""Engines on the emulated devices: counted and limited memory, arenas with poison, and calls that fall back on the cpu."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest
from fakecuda import failing, on_devices

import baracuda as bc
import baracuda.functional as F

RNG = np.random.default_rng(7)
X, W = RNG.normal(size=(8, 32)).astype(np.float32), RNG.normal(size=(32, 5)).astype(np.float32)


def host(t: Any) -> np.ndarray[Any, Any]:
    return t.to("cpu").numpy()


@on_devices
def test_counted_limited_and_in_an_arena() -> None:
    engine = bc.Engine("cuda:1", memory_limit=64 << 10, arena=16 << 10)
    x, w = engine.upload(X), engine.upload(W)
    assert x.device == "cuda:1" and engine.memory.allocated == (16 << 10) + X.nbytes + W.nbytes
    y = engine.F.softmax(engine.F.matmul(x, w), -1)
    np.testing.assert_allclose(engine.download(y), F.softmax(F.matmul(X, W), -1), rtol=1e-5, atol=1e-6)
    before = engine.memory.allocated
    with pytest.raises(bc.MemoryLimitError, match=r"cuda:1: 65536 bytes beside the \d+ in use pass the limit of 65536"):
        engine.F.zeros((16384,))
    assert engine.memory.allocated == before and engine.F.arange(4).device == "cuda:1"
    with engine.step():
        engine.F.exp(x)
        assert engine.stats().arena_used == X.nbytes
    assert engine.stats().arena_used == 0
    engine.sync()
    del x, w, y
    assert engine.memory.allocated == 16 << 10 and not engine.close() and engine.memory.allocated == 0


@on_devices
def test_poison_in_an_arena() -> None:
    arena = bc.TensorArena(4096, "cuda:0", poison=True)
    x = arena.empty((8, 32))
    x.copy_from(X)
    np.testing.assert_array_equal(host(x), X)
    arena.reset()
    bc.synchronize("cuda:0")
    assert np.isnan(host(x)).all() and arena.device == "cuda:0"
    pool = bc.TensorPool("cuda:0")
    t = pool.acquire((3, 4))
    assert t.device == "cuda:0" and not host(t).any()


@on_devices
def test_without_memory_a_call_runs_on_the_cpu_where_asked(caplog: pytest.LogCaptureFixture) -> None:
    engine = bc.Engine("cuda:0", on_no_memory="cpu")
    x, w = engine.upload(X), engine.upload(W)
    with failing("cudaMalloc:1"), caplog.at_level(logging.WARNING, "baracuda.engine"):
        y = engine.F.matmul(x, w)
    assert y.device == "cpu" and engine.stats().fallbacks == 1 and "matmul runs on the cpu" in caplog.text
    np.testing.assert_array_equal(y.numpy(), F.matmul(X, W))
    z = engine.F.softmax(y, -1)  # goes on where the engine is
    assert z.device == "cuda:0" and engine.stats().fallbacks == 1
    with failing("cudaMalloc:1"):
        made = engine.F.ones((3,))
    assert made.device == "cpu" and engine.stats().fallbacks == 2
    out = engine.upload(X)
    strict = bc.Engine("cuda:0")
    with failing("cudaMalloc:1"), pytest.raises(bc.DeviceMemoryError):
        strict.F.matmul(x, w)
    assert strict.memory.allocated == 0 and strict.stats().fallbacks == 0
    engine.F.exp(x, out=out)
    np.testing.assert_allclose(host(out), np.exp(X), rtol=1e-5)
    with pytest.raises(bc.InvalidProblemError):
        strict.F.matmul(X, w)  # nothing is copied behind the caller's back
