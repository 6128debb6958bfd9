"""bc.Engine: the bits of bc.functional, with every byte counted, limits that change nothing, and failures that leave nothing."""

from __future__ import annotations

import gc
import logging
import os
import threading
from typing import Any

import numpy as np
import pytest
import torch
from differential import calls, functions

import baracuda as bc
import baracuda.functional as F
from baracuda import testing
from conftest import FULL, SEED
from test_graph import dense, numbers
from test_infer import NEEDS_DATA

CALLS = 10 if FULL else 1
RNG = np.random.default_rng(SEED)
X, W = RNG.normal(size=(8, 64)).astype(np.float32), RNG.normal(size=(64, 10)).astype(np.float32)


def tensors_of(value: Any) -> list[bc.Tensor]:
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in tensors_of(v)]
    return [value] if isinstance(value, bc.Tensor) else []


def equal(got: Any, want: Any) -> None:
    """Equal bits; what is a tensor of any framework there is a bc.Tensor here."""
    if isinstance(want, (list, tuple)):
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            equal(a, b)
    elif hasattr(want, "__dlpack__") and not isinstance(want, np.generic):
        assert isinstance(got, bc.Tensor) and tuple(got.shape) == tuple(want.shape)
        np.testing.assert_array_equal(numbers(got), numbers(want))
    else:
        assert got == want or got is want


@pytest.mark.parametrize("name", sorted({*functions.names()} - NEEDS_DATA))
def test_every_function_gives_the_bits_of_its_call(name: str) -> None:
    """And what it returns is counted while it lives; nothing is after that."""
    engine, done = bc.Engine(), 0
    for number in range(10 * CALLS):
        call = calls.make(name, (SEED, number))
        args, kwargs = call.arguments(calls.ours(call))
        args, kwargs = dense(args), {k: dense(v) for k, v in kwargs.items() if k != "out"}
        try:
            want = getattr(F, name)(*args, **kwargs)
        except (bc.BaracudaError, TypeError) as error:
            with pytest.raises(type(error)):
                getattr(engine.F, name)(*args, **kwargs)
            continue
        got = getattr(engine.F, name)(*args, **kwargs)
        equal(got, want)
        own = {t.address: t.nbytes for t in tensors_of(got)}
        assert engine.memory.allocated <= sum(own.values()) or name.endswith("_copy")
        del got
        assert engine.memory.allocated == 0
        if (done := done + 1) == CALLS:
            return
    assert done, "no call was accepted"


def test_a_tracker_by_itself() -> None:
    tracker = bc.MemoryTracker(100)
    tracker.alloc(60)
    with pytest.raises(bc.MemoryLimitError, match="50 bytes beside the 60 in use pass the limit of 100"):
        tracker.alloc(50)
    assert (tracker.allocated, tracker.peak, tracker.refused, tracker.limit) == (60, 60, 1, 100)
    tracker.alloc(40)
    tracker.free(100)
    assert (tracker.allocated, tracker.peak, tracker.allocations) == (0, 100, 2)
    with pytest.raises(bc.InvalidProblemError, match="free: got 1 bytes, want at most the 0 in use"):
        tracker.free(1)
    for wrong in (-1, True, 1.5, "2", 1 << 70):
        with pytest.raises(bc.InvalidProblemError, match="a number of bytes"):
            tracker.alloc(wrong)  # type: ignore[arg-type]
    tracker.limit = None
    tracker.alloc(1 << 62)
    assert tracker.limit is None and bc.MemoryTracker().limit is None
    tracker.reset_peak()
    assert tracker.peak == tracker.allocated == 1 << 62


def test_threads_share_a_limit() -> None:
    """Whoever comes first gets the bytes; the count is right whatever happens at once."""
    engine = bc.Engine(memory_limit=40 * 4096)
    kept: list[Any] = []
    refused = 0

    def work(seed: int) -> None:
        nonlocal refused
        rng, mine = np.random.default_rng(seed), []
        for _ in range(300):
            try:
                mine.append(engine.F.zeros((int(rng.integers(1, 9)) * 128,)))
            except bc.MemoryLimitError:
                refused += 1
                del mine[: len(mine) // 2]
        kept.append(mine)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert refused and engine.memory.allocated == sum(t.nbytes for mine in kept for t in mine)
    assert engine.memory.peak <= 40 * 4096 and engine.stats().tensors == sum(map(len, kept))
    kept.clear()
    assert engine.memory.allocated == 0


def test_over_the_limit_nothing_changes_and_later_calls_work() -> None:
    engine = bc.Engine(memory_limit="64 KiB")
    x = engine.upload(RNG.normal(size=(64, 64)).astype(np.float32))
    before, bytes_before = x.numpy().copy(), engine.memory.allocated
    with pytest.raises(bc.MemoryLimitError, match="pass the limit of 65536") as caught:
        engine.F.cat([x] * 4, 0)
    assert isinstance(caught.value, MemoryError) and caught.value.refusals[0].code == "device_memory"
    del caught
    gc.collect()
    assert engine.memory.allocated == bytes_before and engine.stats().refused == 1
    np.testing.assert_array_equal(x.numpy(), before)
    engine.F.relu(x, out=x)
    equal(engine.F.exp(x), F.exp(x))
    y = x[1:3]
    assert engine.memory.allocated == bytes_before, "a view has no memory of its own"
    del x
    assert engine.memory.allocated == bytes_before, "and keeps that which it shows"
    del y
    assert engine.memory.allocated == 0
    engine.memory.limit = 1 << 20
    assert engine.F.zeros((64, 1024)).nbytes == 1 << 18


def test_workspaces_count_while_a_call_runs() -> None:
    engine, x = bc.Engine(), RNG.normal(size=(64, 256)).astype(np.float32)
    y = engine.F.einsum("ij,kj,ij->ik", x, x, x)  # several launches, with 64 kB in between
    assert engine.memory.allocated == y.nbytes and engine.memory.peak >= y.nbytes + x.nbytes
    engine.memory.limit = 2 * y.nbytes + x.nbytes // 2
    with pytest.raises(bc.MemoryLimitError, match="pass the limit of 65536"):
        engine.F.einsum("ij,kj,ij->ik", x, x, x)
    assert engine.memory.allocated == y.nbytes
    engine.memory.limit = None
    equal(engine.F.einsum("ij,kj,ij->ik", x, x, x), F.einsum("ij,kj,ij->ik", x, x, x))


@pytest.mark.parametrize("size", ["2GB", "GiB", "-1", -1, True, 1.5, None, "1.2.3MiB"])
def test_sizes_that_are_none(size: Any) -> None:
    with pytest.raises(bc.InvalidProblemError, match=r"nbytes: got .*'2GiB'"):
        bc.TensorArena(size)


def test_an_arena_is_emptied_at_once() -> None:
    arena = bc.TensorArena("64KiB", poison=True)
    weights = arena.empty((10,))
    weights.copy_from(np.arange(10, dtype=np.float32))
    arena.set_floor()
    mark = arena.mark()
    assert (arena.used, mark, arena.size) == (64, 64, 65536)
    with arena.use():
        x = bc.from_dlpack(X)
        y = F.exp(bc.empty((8, 64)).copy_from(x))
    inside = range(arena._block.address, arena._block.address + arena.size)
    assert y.address in inside and y.address % 64 == 0 and x.address not in inside
    equal(y, F.exp(X))
    kept = arena.empty((3, 5), "f64")
    kept.copy_from(np.ones((3, 5)))
    arena.pin(kept)
    arena.pin(kept)
    assert arena.pinned_bytes == 120
    behind = arena.empty((4,), "i64")
    arena.reset(mark)
    assert arena.used > mark and behind.tolist() == [-1] * 4, "poisoned"
    np.testing.assert_array_equal(kept.numpy(), np.ones((3, 5)))
    arena.unpin(kept)
    arena.reset()
    np.testing.assert_array_equal(kept.numpy(), np.ones((3, 5)))
    arena.unpin(kept)
    assert arena.reset() == arena.used == 64
    assert np.isnan(y.numpy()).all() and np.isnan(kept.numpy()).all(), "who reads after a reset finds NaN"
    assert np.isnan(F.sum(y).item())
    np.testing.assert_array_equal(weights.numpy(), np.arange(10))
    for wrong, given, why in (
        (arena.reset, 65, "reset: got 65"),
        (arena.set_floor, 65, "set_floor: got 65"),
        (arena.unpin, weights, "not pinned"),
        (arena.pin, bc.zeros(3), "not in the arena"),
        (arena.pin, y, "not in the arena"),
    ):
        with pytest.raises(bc.InvalidProblemError, match=why):
            wrong(given)
    del wrong
    del arena
    np.testing.assert_array_equal(weights.numpy(), np.arange(10))  # its tensors keep the block


def test_what_does_not_fit_in_an_arena() -> None:
    arena = bc.TensorArena(1000)
    with arena.use():
        a, b, c = bc.empty(200), bc.empty(100), bc.empty(0)
    assert arena.used == arena.mark() == 832 and arena.overflows == 1 and arena.peak == 832
    assert b.address not in range(arena._block.address, arena._block.address + 1000)
    assert c.numel == 0 and a.address == arena._block.address
    with arena.use():
        d = bc.empty(42)
    assert arena.used == 1000 and d.address + d.nbytes <= arena._block.address + 1000
    assert bc.empty(1).address not in range(arena._block.address, arena._block.address + 1000)


def test_steps_of_an_engine() -> None:
    """Forward, loss and gradients in the arena; what they leave behind is nothing, and what is pinned stays."""
    engine = bc.Engine(memory_limit="1MiB", arena="256KiB")
    w = engine.upload(W)
    for _ in range(4):
        with engine.step():
            y, pull = bc.vjp(engine.F.matmul, X, w)
            _, dw = pull(F.ones_like(y))
            engine.F.sub(w, engine.F.mul(dw, 0.1), out=w)
            assert engine.stats().arena_used > 0
        assert engine.stats().arena_used == 0
    want = W.copy()
    for _ in range(4):
        want -= np.float32(0.1) * F.matmul(X.T, np.ones((8, 10), np.float32))
    np.testing.assert_allclose(w.numpy(), want, rtol=1e-5, atol=1e-6)
    assert engine.stats().tensors == 2 and engine.stats().arena_overflows == 0
    with pytest.raises(bc.InvalidProblemError, match="step: got an engine without an arena"), bc.Engine().step():
        pass


def test_a_pool() -> None:
    pool = bc.TensorPool()
    for n, want in (
        (0, 64),
        (1, 64),
        (64, 64),
        (65, 80),
        (80, 80),
        (129, 160),
        (1024, 1024),
        (1025, 1280),
        (1281, 1536),
    ):
        assert pool.class_of(n) == want
    a = pool.acquire((5, 7), "f64")
    assert a.numpy().tolist() == np.zeros((5, 7)).tolist()
    a.copy_from(np.ones((5, 7)))
    where = a.address
    pool.release(a)
    assert len(pool) == 1
    b = pool.acquire((70,), "f32")
    assert b.address == where and not b.numpy().any() and len(pool) == 0
    for wrong in (a, bc.zeros(3)):
        with pytest.raises(bc.InvalidProblemError, match="release: got a tensor that acquire did not give"):
            pool.release(wrong)
    pool.release(b)
    pool.clear()
    assert len(pool) == 0
    held = [pool.acquire((n,)) for n in range(30)]
    assert len({t.address for t in held}) == 30
    for t in held:
        pool.release(t)
    assert len(pool) == 30


def training_step(e: bc.Engine, w: bc.Tensor, m: bc.Tensor, v: bc.Tensor, target: Any) -> float:
    y, pull = bc.vjp(F.matmul, bc.asarray(X), w)
    loss, pull_loss = bc.vjp(F.cross_entropy, y, target)
    _, dw = pull(pull_loss(F.ones_like(loss)))
    e.F.clip_grad_norm_([dw], 1.0)
    e.F.adamw_([w], [dw], [m], [v], step=1, lr=0.1)
    return float(loss)


@pytest.mark.parametrize("kind", ["alloc", "launch"])
def test_a_failure_anywhere_leaves_nothing_behind(kind: str) -> None:
    """The k-th allocation or launch of a training step fails: each tensor is as it was or as it shall be, and the next one works."""
    engine, target = bc.Engine(arena=None), bc.asarray(np.arange(8) % 10)
    state = [engine.upload(a) for a in (W, np.zeros_like(W), np.zeros_like(W))]
    with engine:
        want_loss = training_step(engine, *state, target)
    want = [t.numpy().copy() for t in state]
    held, failures = engine.memory.allocated, 0
    start = [W, np.zeros_like(W), np.zeros_like(W)]
    for k in range(60):
        for t, a in zip(state, start, strict=True):
            t.copy_from(a)
        with testing.fail(after=k, on=kind) as asked:
            try:
                with engine:
                    training_step(engine, *state, target)
            except bc.DeviceError as error:
                assert error.code == ("device_memory" if kind == "alloc" else "launch_failed")
        gc.collect()
        assert engine.memory.allocated == held
        if not asked.happened:
            break
        failures += 1
        for t, before, after in zip(state, start, want, strict=True):
            assert any(np.array_equal(t.numpy(), a) for a in (before, after))
        for t, a in zip(state, start, strict=True):
            t.copy_from(a)
        with engine:
            assert training_step(engine, *state, target) == want_loss
        for t, after in zip(state, want, strict=True):
            np.testing.assert_array_equal(t.numpy(), after)
    assert failures > 3 and not asked.happened


def test_inside_of_an_engine_everything_is_its_own() -> None:
    engine, other = bc.Engine(memory_limit=1 << 16), bc.Engine()
    run = bc.trace(lambda x, w: F.softmax(F.matmul(x, w), 1), bc.TensorSpec((8, 64)), bc.TensorSpec((64, 10))).compile()
    x, w = bc.asarray(X), bc.asarray(W)
    with engine:
        y = run.run(x, w)
        with other:
            z = bc.zeros((4, 4))
        t = bc.empty((2, 2))
        with pytest.raises(bc.MemoryLimitError):
            bc.empty(1 << 20)
    assert engine.memory.allocated == y.nbytes + t.nbytes and other.memory.allocated == z.nbytes
    assert bc.zeros(5).nbytes and engine.stats().tensors == 2
    seen: list[int] = []
    with engine:
        thread = threading.Thread(target=lambda: seen.append(bc.empty(100).nbytes))
        thread.start()
        thread.join()
    assert seen == [400] and engine.stats().tensors == 2, "another thread is not inside"
    with pytest.raises(RuntimeError), engine:
        raise RuntimeError
    assert bc.empty(7).nbytes == 28 and engine.stats().tensors == 2


def test_gradients_are_the_engines() -> None:
    engine, w = bc.Engine(), torch.tensor(W)
    y, pull = bc.vjp(engine.F.matmul, X, w)
    dx, dw = pull(torch.ones(8, 10))
    equal((y, dx, dw), (F.matmul(X, W), *bc.vjp(F.matmul, X, W)[1](np.ones((8, 10), np.float32))))
    assert engine.memory.allocated == y.nbytes + dx.nbytes + dw.nbytes
    with pytest.raises(bc.InvalidProblemError, match="vjp: argmax has no gradient"):
        bc.vjp(engine.F.argmax, X)
    graph = bc.trace(lambda x: engine.F.softmax(engine.F.exp(x), -1), X)
    np.testing.assert_array_equal(graph.compile().run(X), F.softmax(F.exp(X), -1))


def test_arguments_of_any_framework_and_results_of_one() -> None:
    engine = bc.Engine()
    for x in (X, torch.tensor(X), bc.asarray(X), X[::2], torch.tensor(X).T):
        equal(engine.F.exp(x), np.asarray(F.exp(np.asarray(x))))
    out = np.empty_like(X)
    assert engine.F.exp(X, out=out) is out
    np.testing.assert_array_equal(out, F.exp(X))
    assert engine.F.cat([X, torch.tensor(X)], 0).shape == (16, 64)
    assert engine.F.arange(5).device == "cpu" and isinstance(engine.F.rand(3, dtype="f64"), bc.Tensor)
    with pytest.raises(AttributeError, match=r"no function 'softmx'.*did you mean 'softmax'"):
        engine.F.softmx  # noqa: B018
    assert {"softmax", "matmul"} <= set(dir(engine.F)) and "softmax" in repr(engine.F.softmax)
    assert list(engine.F.softmax.__signature__.parameters) == list(F.softmax.__signature__.parameters)


def test_products_of_another_element() -> None:
    for name in ("f16", "bf16"):
        engine = bc.Engine(compute=name)
        y = engine.F.matmul(X, W)
        want = F.cast(F.matmul(F.cast(X, name), F.cast(W, name)), "f32")
        assert y.element is bc.Element.F32
        np.testing.assert_array_equal(y.numpy(), want)
        np.testing.assert_array_equal(engine.F.exp(X).numpy(), F.exp(X))
        assert engine.F.matmul(X.astype(np.float64), W.astype(np.float64)).element is bc.Element.F64
    for name in ("f8e4m3", "f8e5m2", "f16", "bf16"):  # weights, beside operands of f32
        engine, narrow = bc.Engine(), F.cast(bc.asarray(W), name)
        weights = engine.upload_weights({"w": W}, name)
        wide = F.cast(narrow, "f32")
        np.testing.assert_array_equal(engine.F.matmul(X, weights["w"]).numpy(), F.matmul(X, wide.numpy()))
        np.testing.assert_array_equal(
            engine.F.linear(X, weights["w"].T).numpy(), F.linear(X, F.cast(narrow.T, "f32").numpy())
        )
        half = bc.Engine(compute="bf16").F.matmul(X, weights["w"])
        want = F.cast(F.matmul(F.cast(bc.asarray(X), "bf16"), F.cast(narrow, "bf16")), "f32")
        np.testing.assert_array_equal(half.numpy(), want.numpy())
        with pytest.raises(bc.InvalidProblemError, match="want one element for all"):
            F.matmul(bc.asarray(X), narrow)
    for wrong in ("f64", "i32"):
        with pytest.raises(bc.InvalidProblemError, match="compute: got"):
            bc.Engine(compute=wrong)


def test_hooks_stats_and_closing(caplog: pytest.LogCaptureFixture) -> None:
    engine = bc.Engine(memory_limit="1MiB")
    seen: list[tuple[str, tuple[int, ...]]] = []
    remove = engine.add_hook(lambda name, seconds, result: seen.append((name, result.shape)) if seconds > 0 else None)
    y = engine.F.softmax(engine.F.matmul(X, W), -1)
    remove()
    engine.F.exp(X)
    assert seen == [("matmul", (8, 10)), ("softmax", (8, 10))]
    stats = engine.stats()
    assert (
        stats.allocated == y.nbytes and stats.peak > stats.allocated and stats.limit == 1 << 20 and stats.tensors == 1
    )
    with caplog.at_level(logging.WARNING, "baracuda.engine"):
        alive = engine.close()
    assert alive and alive.bytes == 320 and "f32[8, 10]: 320 bytes" in str(alive) and "closed" in repr(engine)
    assert y.numpy().sum() == pytest.approx(8)
    for call in (lambda: engine.F.exp(X), engine.__enter__, engine.step().__enter__):
        with pytest.raises(bc.InvalidProblemError, match=r"got (a closed|an engine without)"):
            call()
    del y
    assert not engine.close() and engine.memory.allocated == 0
    with pytest.raises(bc.InvalidProblemError, match="on_no_memory: got 'gpu'"):
        bc.Engine(on_no_memory="gpu")  # type: ignore[arg-type]


@pytest.mark.skipif("BARACUDA_SANITIZER" in os.environ, reason="a sanitizer keeps what was freed for a while")
def test_many_steps_leave_nothing_behind() -> None:
    import resource

    engine = bc.Engine(memory_limit="4MiB", arena="1MiB")
    for _ in range(200):
        with engine.step():
            engine.F.softmax(engine.F.matmul(X, W), -1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(20_000 if FULL else 4_000):
        with engine.step():
            engine.F.softmax(engine.F.matmul(X, W), -1)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 4096  # KiB
    assert engine.stats().tensors == 1
