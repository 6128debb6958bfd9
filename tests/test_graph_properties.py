"""Random graphs of up to 200 nodes: whatever passes and memory limits do, the bits are those of the calls one by one, and a
failure anywhere leaves nothing behind."""

from __future__ import annotations

import gc
import resource
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import baracuda as bc
import baracuda.functional as F
from baracuda import testing
from baracuda.graph.passes import PASSES
from conftest import FULL, SEED
from test_graph import RNG, own_numbers, same  # noqa: F401

NODES = 200
TUNED = settings(max_examples=50 if FULL else 8, deadline=None, suppress_health_check=list(HealthCheck))
ROWS, WIDE = 8, 16


def squashed(x: Any) -> Any:
    return F.clamp(x, -2.0, 2.0)


UNARY: tuple[Callable[[Any], Any], ...] = (
    F.exp, F.relu, F.neg, F.tanh, F.copy, F.abs, F.sigmoid, F.gelu, F.silu, F.square, lambda x: F.softmax(x, 1), lambda x: F.cumsum(x, 0),
    lambda x: F.cast(F.cast(x, "f16"), "f32"), lambda x: F.rms_norm(x, (WIDE,)), lambda x: F.flip(x, (1,)), lambda x: F.sort(x, 1)[0],
)  # fmt: skip
BINARY: tuple[Callable[[Any, Any], Any], ...] = (F.add, F.sub, F.mul, F.maximum, F.minimum, F.atan2)


def interpreted(script: bytes, x: Any, w: Any, square: Any) -> Any:
    """What a script of four bytes an instruction computes from an argument, one that it may write, and a captured matrix."""
    known = [x, w, F.copy(w)]
    for i in range(0, len(script) - 3, 4):
        what, a, b, c = script[i : i + 4]
        p, q = known[a % len(known)], known[b % len(known)]
        what %= 16
        if what < 5:
            known.append(UNARY[c % len(UNARY)](squashed(p)))
        elif what < 8:
            known.append(BINARY[c % len(BINARY)](p, squashed(q)))
        elif what == 8:
            known.append(F.matmul(squashed(p), square))
        elif what == 9 and p is not x:
            BINARY[c % len(BINARY)](squashed(p), q, out=p)
        elif what == 10 and p is not x:
            F.neg(p[2:6], out=p[2:6])
        elif what == 11:
            known.append(F.cat([p[: c % ROWS], q[c % ROWS :]], 0))
        elif what == 12:
            known.append(F.copy(p.T).T)
        elif what == 13:
            known.append(F.add(p, F.mean(q, c % 2, True)))
        elif what == 14:
            known.append(F.where(F.gt(p, q), p, q[c % ROWS]))
        else:
            known.append(F.tanh(F.copy(p).reshape(WIDE, ROWS)).reshape(ROWS, WIDE))
    return known[-1], known[-2][2:], known[len(known) // 2]


@given(
    script=st.binary(min_size=4, max_size=4 * NODES),
    passes=st.sets(st.sampled_from(sorted(PASSES))),
    share=st.floats(0, 1.2),
    frozen=st.booleans(),
)
@example(np.random.default_rng(SEED).bytes(4 * NODES), set(PASSES), 0.5, False)
@example(np.random.default_rng(SEED + 1).bytes(4 * NODES), set(PASSES), 0.9, True)
@TUNED
def test_random_graphs(script: bytes, passes: set[str], share: float, frozen: bool) -> None:
    """Any passes, and scratch of any share of what is planned without a limit."""
    rng = np.random.default_rng([SEED, len(script)])
    x, w = (rng.normal(size=(ROWS, WIDE)).astype(np.float32) for _ in range(2))
    square = rng.normal(size=(WIDE, WIDE)).astype(np.float32) / 4
    graph = bc.trace(lambda x, w: interpreted(script, x, w, square), x, w)
    written = w.copy()
    want = interpreted(script, x, written, square)
    plan = graph.compile(passes=sorted(passes), frozen=frozen)
    memory = plan.memory
    assert memory.lower_bound <= memory.planned <= memory.unplanned
    plans = [plan]
    try:
        limited = graph.compile(passes=sorted(passes), memory_limit=int(share * memory.planned))
        assert limited.memory.planned <= share * memory.planned
        plans.append(limited)
    except bc.MemoryLimitError as error:
        assert share < 1 and "want at least" in str(error)
    for one in plans:
        for _ in range(2):  # scratch is used again
            now = w.copy()
            same(one.run(x, now), want)
            same(now, written)


@given(script=st.binary(min_size=4, max_size=4 * 60), sizes=st.lists(st.integers(1, 40), min_size=1, max_size=4))
@TUNED
def test_random_graphs_of_any_length(script: bytes, sizes: list[int]) -> None:
    """A size that is a Dim: one graph for all lengths. Its kernels may be others than a fixed size's, so f64 leaves room."""
    square = np.random.default_rng(SEED).normal(size=(WIDE, WIDE)) / 4

    def f(x: Any) -> Any:
        known = [x, F.copy(x)]
        for i in range(0, len(script) - 3, 4):
            what, a, b, c = script[i : i + 4]
            p, q = known[a % len(known)], known[b % len(known)]
            what %= 4
            if what == 0:
                known.append(UNARY[c % 10](squashed(p)))
            elif what == 1:
                known.append(BINARY[c % 5](p, squashed(q)))
            elif what == 2:
                known.append(F.matmul(F.softmax(F.matmul(squashed(p), squashed(q).T), -1), q))
            else:
                known.append(F.matmul(squashed(p), square))
        return known[-1], F.sum(known[len(known) // 2], 0)

    plan = bc.trace(f, bc.TensorSpec((bc.Dim("n", max=40), WIDE), "f64")).compile()
    for n in sizes:
        x = np.random.default_rng(n).normal(size=(n, WIDE))
        for got, want in zip(plan.run(x), f(x), strict=True):
            assert got.shape == want.shape
            np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6 * np.abs(want).max())


def training_step(x: Any, w: Any, m: Any, v: Any, step: Any, target: Any) -> Any:
    y, pull = bc.vjp(F.matmul, x, w)
    loss, pull_loss = bc.vjp(F.cross_entropy, y, target)
    _, dw = pull(pull_loss(F.ones_like(loss)))
    F.clip_grad_norm_([dw], 1.0)
    F.adamw_([w], [dw], [m], [v], step=step, lr=0.1)
    return loss, F.softmax(y, 1)


@pytest.mark.parametrize("kind", ["alloc", "launch"])
def test_a_failure_anywhere_in_a_traced_step(kind: str) -> None:
    """Its k-th allocation fails: nothing was written. Its k-th launch: what is only read was not, and the next run is right."""
    x, w = RNG.normal(size=(8, 64)).astype(np.float32), RNG.normal(size=(64, 10)).astype(np.float32)
    start = [x, w, np.zeros_like(w), np.zeros_like(w), np.array(1), np.arange(8) % 10]
    engine = bc.Engine()
    state = [engine.upload(a) for a in start]
    written = slice(1, 4)

    def restored() -> None:
        for t, a in zip(state, start, strict=True):
            t.copy_from(a)

    plan = bc.trace(training_step, *state).compile(passes=())
    with engine:
        want = [t.numpy().copy() for t in plan.run(*state)]
    after = [t.numpy().copy() for t in state[written]]
    held, failures = engine.memory.allocated, 0
    for k in range(60):
        restored()
        plan.program.trim()  # so that the scratch is an allocation, too
        with testing.fail(after=k, on=kind) as asked:  # type: ignore[arg-type]
            try:
                with engine:
                    plan.run(*state)
            except bc.DeviceError as error:
                assert error.code == ("device_memory" if kind == "alloc" else "launch_failed")
                assert kind == "alloc" or f"step {k} " in str(error)
        gc.collect()
        assert engine.memory.allocated == held
        if not asked.happened:
            break
        failures += 1
        for i, (t, a) in enumerate(zip(state, start, strict=True)):
            if kind == "alloc" or not 1 <= i < 4:
                np.testing.assert_array_equal(t.numpy(), a)
        restored()
        with engine:
            same([t.numpy() for t in plan.run(*state)], want)
        same([t.numpy() for t in state[written]], after)
    assert failures == (plan.launches if kind == "launch" else 3), "two results and the scratch"


@pytest.mark.parametrize("draws", [False, True])
def test_replays_of_every_kind_do_not_grow(draws: bool) -> None:
    """Lengths that change, results that are made, arguments that are written, numbers that are drawn."""
    n = bc.Dim("n", max=64)
    bias = RNG.normal(size=WIDE).astype(np.float32)

    def f(x: Any, w: Any) -> Any:
        h = F.add(F.matmul(F.dropout(x, 0.5) if draws else x, w), bias)
        F.mul(w, 0.999, out=w)
        return F.softmax(h, 1), F.sum(h, 0)

    plan = bc.trace(f, bc.TensorSpec((n, WIDE)), bc.TensorSpec((WIDE, WIDE))).compile()
    w = RNG.normal(size=(WIDE, WIDE)).astype(np.float32)
    xs = [RNG.normal(size=(rows, WIDE)).astype(np.float32) for rows in (1, 5, 64, 17)]
    for i in range(2000):
        plan.run(xs[i % 4], w)
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for i in range(100_000 if FULL else 8_000):
        plan.run(xs[i % 4], w)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 4096  # KiB
