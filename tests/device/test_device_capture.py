"""Compiled graphs captured on a device: one launch a run, updated in place where pointers, numbers or sizes change, and
launched one by one, with the reason, where that is not possible. On the emulated cuda module, whose runtime refuses what
CUDA refuses; launches that wait keep what they were given, as CUDA's do."""

from __future__ import annotations

import gc
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakecuda import calls, failing, live, on_devices, raw_stream

import baracuda as bc
import baracuda.functional as F
from baracuda import testing

PLACE = "cuda:1"
RNG = np.random.default_rng(5)
X, W = RNG.normal(size=(6, 16)).astype(np.float32), RNG.normal(size=(16, 5)).astype(np.float32)

# What capturing, updating and launching a graph calls.
CAPTURING = [
    "cudaStreamCreateWithFlags", "cudaStreamIsCapturing", "cudaStreamBeginCapture", "cudaLaunchKernel",
    "cudaStreamEndCapture", "cudaGraphGetNodes", "cudaGraphCreate", "cudaGraphAddChildGraphNode",
    "cudaGraphInstantiateWithFlags", "cudaGraphExecChildGraphNodeSetParams", "cudaGraphLaunch",
]  # fmt: skip


def host(t: Any) -> np.ndarray[Any, Any]:
    return t.to("cpu").numpy()


def there(*arrays: Any) -> list[Any]:
    return [bc.asarray(a, device=PLACE) for a in arrays]


def f(x: Any, w: Any) -> Any:
    return F.softmax(F.tanh(F.matmul(x, w)), 1)


def counts(plan: Any) -> tuple[int, int, int]:
    return plan.capture.graphs, plan.capture.updated, plan.capture.replays


@on_devices
def test_a_graph_is_captured_once_and_launched_as_one() -> None:
    x, w = there(X, W)
    plan = bc.trace(f, x, w).compile()
    out, want = bc.empty((6, 5), device=PLACE), host(f(x, w))
    assert not plan.capture and "first run" in plan.capture.reason
    plan.run(x, w, out=out)
    assert not plan.capture and "launched one by one" in plan.explain()
    for k in range(1, 4):
        out.copy_from(np.zeros((6, 5), np.float32))
        launches, before = calls("cudaLaunchKernel"), calls("cudaGraphLaunch")
        assert plan.run(x, w, out=out) is out
        np.testing.assert_array_equal(host(out), want)
        assert plan.capture and counts(plan) == (1, 0, k)
        assert calls("cudaGraphLaunch") == before + 1
        assert calls("cudaLaunchKernel") - launches == (plan.launches if k == 1 else 0), "only the capture launches"
    assert "captured 1 times, replayed 3 times" in plan.explain()


@on_devices
def test_what_changes_is_updated_in_place() -> None:
    """Pointers of arguments and results: the launches that see them, and no others."""
    x, w = there(X, W)
    plan = bc.trace(f, x, w).compile()
    made = [plan.run(x, w) for _ in range(2)]
    for k, seed in enumerate(range(4), 1):
        a = np.random.default_rng(seed).normal(size=X.shape).astype(np.float32)
        (other,) = there(a)
        made.append(plan.run(other, w))
        np.testing.assert_array_equal(host(made[-1]), host(f(other, w)))
        assert counts(plan) == (1, 2 * k, k + 1), "the product, which sees x, and the softmax, whose result is new"
    np.testing.assert_array_equal(host(made[0]), host(f(x, w)))
    assert len({t.address for t in made}) == len(made)


@on_devices
def test_launches_that_wait_keep_what_they_were_given() -> None:
    stream = bc.Stream(PLACE, non_blocking=True)
    (w,) = there(W)
    xs = there(*(X + i for i in range(5)))
    plan = bc.trace(f, xs[0], w).compile()
    bc.synchronize(PLACE)
    got = [plan.run(x, w, stream=stream) for x in xs]
    assert live().pending and counts(plan)[2] == 4
    stream.synchronize()
    for x, y in zip(xs, got, strict=True):
        np.testing.assert_array_equal(host(y), host(f(x, w)))


@on_devices
def test_numbers_and_random_state() -> None:
    builder = bc.ProgramBuilder(device=PLACE)
    x, y = builder.input("x", (4, 6)), builder.output("y", (4, 6))
    scale = builder.scalar("scale")
    t = builder.add(bc.UnaryDescriptor("exp", (4, 6)), x=x)
    made = bc.plan(bc.FillDescriptor((4, 6)), PLACE)
    filled = builder.add(made, value=scale)
    builder.add(bc.BinaryDescriptor("mul", (4, 6), (4, 6)), a=t, b=filled, y=y)
    program = builder.build()
    program.capture(True)
    data = RNG.normal(size=(4, 6)).astype(np.float32)
    (x0,), out = there(data), bc.empty((4, 6), device=PLACE)
    for scale_now in (1.0, 1.0, 2.5, 2.5, -3.0):
        program.run(x0, out, scale_now)
        np.testing.assert_allclose(host(out), np.exp(data) * np.float32(scale_now), rtol=1e-5)
    assert program.graphs == (1, 2, 4, "")

    plan = bc.trace(lambda x: F.dropout(F.exp(x), 0.5), x0).compile()
    ours, eager = bc.Generator(3), bc.Generator(3)
    for _ in range(4):
        np.testing.assert_array_equal(
            host(plan.run(x0, generator=ours)), host(F.dropout(F.exp(x0), 0.5, generator=eager))
        )
    assert plan.capture and counts(plan)[0] == 1


@on_devices
def test_sizes_change_in_place() -> None:
    n = bc.Dim("n", max=70)
    plan = bc.trace(f, bc.TensorSpec((n, 16), device=PLACE), bc.TensorSpec((16, 5), device=PLACE)).compile()
    (w,) = there(W)
    for rows in (3, 3, 70, 1, 64, 70, 0, 5, 5):
        a = RNG.normal(size=(rows, 16)).astype(np.float32)
        (x,) = there(a)
        np.testing.assert_array_equal(host(plan.run(x, w)), host(f(x, w)))
    made, updated, replays = counts(plan)
    # Without rows nothing is launched: a graph of its own, as is the next one.
    assert plan.capture and made == 3 and replays == 8 and updated >= 3 * 4


@on_devices
def test_a_graph_that_changes_all_the_time_is_given_up() -> None:
    n = bc.Dim("n", max=8)
    plan = bc.trace(F.exp, bc.TensorSpec((n, 16), device=PLACE)).compile()
    for i in range(40):
        a = RNG.normal(size=(i % 2 * 3, 16)).astype(np.float32)
        (x,) = there(a)
        np.testing.assert_array_equal(host(plan.run(x)), host(F.exp(x)))
    assert not plan.capture and "change from run to run" in plan.explain() and plan.capture.graphs == 16


@on_devices
def test_threads_have_graphs_of_their_own() -> None:
    (w,) = there(W)
    plan = bc.trace(f, *there(X, W)).compile()
    inputs = there(*(X + i for i in range(3)))
    want = [host(f(x, w)) for x in inputs]
    wrong: list[int] = []
    barrier = threading.Barrier(3)

    def work(i: int) -> None:
        stream = bc.Stream(PLACE, non_blocking=True)
        for _ in range(10):
            barrier.wait()
            y = plan.run(inputs[i], w, stream=stream)
            stream.synchronize()
            if not np.array_equal(host(y), want[i]):
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong and plan.capture and counts(plan)[0] == 3 and counts(plan)[2] == 27


@on_devices
@pytest.mark.parametrize("capture", [True, False])
def test_streams_have_scratch_of_their_own(capture: bool) -> None:
    """What one stream has not done yet, another one's run does not write over."""
    first, second = (bc.Stream(PLACE, non_blocking=True) for _ in range(2))
    a, b, w = there(X, X * 3, W)
    plan = bc.trace(f, a, w).compile(capture=capture)
    for _ in range(3):
        bc.synchronize(PLACE)
        y = plan.run(a, w, stream=first)
        for _ in range(3):  # it gets on by one launch for each question
            first.query()
            z = plan.run(b, w, stream=second)
            second.synchronize()
        first.synchronize()
        np.testing.assert_array_equal(host(y), host(f(a, w)))
        np.testing.assert_array_equal(host(z), host(f(b, w)))
    assert bool(plan.capture) == capture


@on_devices
def test_a_bound_plan() -> None:
    x, w = there(X, W)
    out, stream = bc.empty((6, 5), device=PLACE), bc.Stream(PLACE, non_blocking=True)
    plan = bc.trace(f, x, w).compile()
    bc.synchronize(PLACE)
    bound = plan.bind(x, w, out=out, stream=stream)
    for k in range(4):
        x.copy_from(X + k)
        bound()
        stream.synchronize()
        np.testing.assert_array_equal(host(out), host(f(x, w)))
    assert counts(plan) == (1, 0, 3)


@on_devices
def test_within_a_capture_of_the_callers() -> None:
    """The steps become part of that graph, and are launched one by one into it."""
    x, w = there(X, W)
    out, stream = bc.empty((6, 5), device=PLACE), bc.Stream(PLACE, non_blocking=True)
    plan = bc.trace(f, x, w).compile()
    for _ in range(2):
        plan.run(x, w, out=out, stream=stream)
    with stream.capture() as graph:
        plan.run(x, w, out=out, stream=stream)
    assert graph.nodes == plan.launches and counts(plan)[2] == 1
    x.copy_from(X * 2)
    graph.launch()
    stream.synchronize()
    np.testing.assert_array_equal(host(out), host(f(x, w)))
    with raw_stream(1) as handle:
        plan.run(x, w, out=out, stream=handle)
        bc.synchronize(PLACE)
        np.testing.assert_array_equal(host(out), host(f(x, w)))


@on_devices
@pytest.mark.parametrize("api", CAPTURING)
def test_what_cannot_be_captured_is_launched_one_by_one(api: str) -> None:
    """Each function of the runtime fails once: the run gives its numbers, and the reason is told."""
    x, w = there(X, W)
    out, stream = bc.empty((6, 5), device=PLACE), bc.Stream(PLACE)
    plan = bc.trace(f, x, w).compile()
    for _ in range(2 if "SetParams" in api else 1):
        plan.run(x, w, out=out, stream=stream)
    given = there(X + 1)[0]
    want = host(f(given, w))
    before = live()
    with failing(f"{api}:1"):
        plan.run(given, w, out=out, stream=stream)
    np.testing.assert_array_equal(host(out), want)
    assert not plan.capture and (api in plan.capture.reason or "kernel launch" in plan.capture.reason)
    assert f"launched one by one: {plan.capture.reason}" in plan.explain()
    assert live().graphs <= before.graphs + 2 and live().allocations == before.allocations
    for shift in (2, 3):
        x.copy_from(X + shift)
        plan.run(x, w, out=out, stream=stream)
        np.testing.assert_array_equal(host(out), host(f(x, w)))


@on_devices
def test_launches_that_fail_are_errors_of_their_step() -> None:
    """`bc.testing.fail` counts launches of a captured graph as of any other."""
    x, w = there(X, W)
    plan = bc.trace(f, x, w).compile(passes=())
    for _ in range(3):
        plan.run(x, w)
    for k in range(plan.launches):
        with testing.fail(after=k, on="launch") as asked, pytest.raises(bc.DeviceError, match=f"step {k} ") as caught:
            plan.run(x, w)
        assert asked.happened and caught.value.code == "launch_failed"
        np.testing.assert_array_equal(host(plan.run(x, w)), host(f(x, w)))
    assert plan.capture


@on_devices
def test_what_kernels_find_names_the_step() -> None:
    table, good, bad = there(W, np.array([0, 15]), np.array([1, 16]))
    plan = bc.trace(
        lambda table, a, b: F.add(F.embedding(a, table), F.embedding(b, table)), table, good, good
    ).compile()
    for a, b, step in ((good, good, None), (good, good, None), (good, bad, 1), (bad, good, 0), (good, good, None)):
        plan.run(table, a, b)
        if step is None:
            bc.synchronize(PLACE)
            continue
        with pytest.raises(bc.IndexOutOfRangeError, match=rf"step {step} of Program.*got index 16"):
            bc.synchronize(PLACE)
    assert plan.capture and counts(plan)[0] == 1


@on_devices
def test_graphs_go_with_their_plans() -> None:
    before = live()
    x, w = there(X, W)
    plan = bc.trace(f, x, w).compile()
    bound = plan.bind(x, w, out=bc.empty((6, 5), device=PLACE))
    for _ in range(3):
        bound()
        plan.run(x, w)
    assert live().graphs == before.graphs + 4, "two graphs, each with what it was made of"
    plan.program.trim()
    assert live().graphs == before.graphs + 2
    del bound, plan, x, w
    gc.collect()
    bc.synchronize(PLACE)
    assert live() == before


@on_devices
def test_capture_may_be_turned_off() -> None:
    x, w = there(X, W)
    plan = bc.trace(f, x, w).compile(capture=False)
    for _ in range(3):
        plan.run(x, w)
    assert not plan.capture and plan.capture.reason == "nobody asked for capture" and counts(plan) == (0, 0, 0)
    plan.set_capture(True)
    for _ in range(3):
        plan.run(x, w)
    assert plan.capture and counts(plan)[2] == 2
    here = bc.trace(f, X, W).compile()
    here.run(X, W)
    assert here.capture.reason == "the cpu has no graphs" and "one by one" not in here.explain()


@on_devices
def test_saved_and_loaded_on_the_device(tmp_path: Path) -> None:
    """Captured tensors, read and written ones, go to the host and back."""
    x, bias, counts = there(X, np.ones(16, np.float32), np.zeros(3, np.float32))

    def kept(x: Any) -> Any:
        F.add(counts, 1.0, out=counts)
        return F.softmax(F.add(F.exp(x), bias), 1), F.copy(counts)

    plan = bc.trace(kept, x).compile()
    plan.save(tmp_path / "saved")
    again = bc.ExecutionPlan.load(tmp_path / "saved")
    for k in range(1, 4):
        got, seen = again.run(x)
        np.testing.assert_array_equal(host(got), host(plan.run(x)[0]))
        np.testing.assert_array_equal(host(seen), np.full(3, k))
    assert again.device == PLACE and again.capture
