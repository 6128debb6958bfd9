"""Plans shared by threads; results that do not depend on how many threads there are."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest
from calls import call_of, directions, valid_call

import baracuda as bc
from baracuda import _core

OPS = pytest.mark.parametrize(("op", "direction"), directions())


def outputs(call: Any) -> list[bytes]:
    parts = [call.args[p.name] if p.variadic else [call.args[p.name]] for p in call.outputs]
    return [a.tobytes() for part in parts for a in part]


def together(work: Any, n: int = 8) -> None:
    """Runs work(i) in n threads that start at once; errors are raised here."""
    errors: list[BaseException] = []
    gate = threading.Barrier(n)

    def body(i: int) -> None:
        gate.wait()
        try:
            work(i)
        except BaseException as e:
            errors.append(e)

    threads = [threading.Thread(target=body, args=(i,)) for i in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if errors:
        raise errors[0]


@OPS
def test_eight_threads_share_a_plan(op: str, direction: str) -> None:
    call = valid_call(op, direction)
    call.run()
    want = outputs(call)

    def work(i: int) -> None:
        for _ in range(5):
            mine = call_of(call.case, call.plan)
            mine.run()
            assert outputs(mine) == want, f"thread {i} got other bits"

    together(work)


@OPS
def test_bits_do_not_depend_on_the_number_of_threads(op: str, direction: str) -> None:
    call = valid_call(op, direction)
    if not call.plan.precision_guarantee.thread_invariant:
        pytest.skip("this row does not promise it")
    call.run()
    want = outputs(call)
    before = bc.get_num_threads()
    try:
        for n in (1, 2, 3, 8):
            bc.set_num_threads(n)
            mine = call_of(call.case, call.plan)
            mine.run()
            assert outputs(mine) == want, f"{n} threads gave other bits"
    finally:
        bc.set_num_threads(before)
    for n in (1, 2, 5):
        made = call.case.descriptor.plan_class.select(
            call.case.descriptor, preference=bc.PlanPreference(sku=call.plan.sku.variant, threads=n)
        )
        mine = call_of(call.case, made)
        mine.run()
        assert outputs(mine) == want


def test_large_calls_from_threads_at_once() -> None:
    made = bc.plan(bc.GatedActivationDescriptor("swiglu", (64, 4096)))
    x = np.random.default_rng(0).normal(size=(64, 4096)).astype(np.float32)
    want = made.run(x, np.zeros((64, 2048), np.float32)).tobytes()

    def work(i: int) -> None:
        y = np.zeros((64, 2048), np.float32)
        for _ in range(20):
            assert made.run(x, y).tobytes() == want

    together(work)


def test_selecting_from_threads_at_once() -> None:
    def work(i: int) -> None:
        for n in range(20):
            desc = bc.GatedActivationDescriptor("swiglu", (i + 1, 2 * n + 2))
            made = bc.plan(desc)
            made.run(np.ones(desc.input_shape, np.float32), np.zeros(desc.output_shape(), np.float32))
            assert bc.GatedActivationPlan.query(desc)

    together(work)


def test_errors_in_one_thread_leave_the_others_alone() -> None:
    made = bc.plan(bc.GatedActivationDescriptor("swiglu", (4, 8)))
    x = np.ones((4, 8), np.float32)
    want = made.run(x, np.zeros((4, 4), np.float32)).tobytes()

    def work(i: int) -> None:
        y = np.zeros((4, 4), np.float32)
        for _ in range(300):
            if i % 2:
                with pytest.raises(bc.InvalidProblemError):
                    made.run(y, y)
            else:
                assert made.run(x, y).tobytes() == want

    together(work)


def test_wrong_thread_counts() -> None:
    for bad in (-1, 10**9):
        try:
            bc.set_num_threads(bad)
        except (ValueError, bc.BaracudaError):
            continue
        assert 1 <= bc.get_num_threads() <= 10**5
    bc.set_num_threads(2)
    assert _core.num_threads() >= 1


SHARED = """
import os, numpy as np
from pathlib import Path
from baracuda import functional as F

def busy():
    tasks = [p.read_text().rpartition(")")[2].split() for p in Path("/proc/self/task").glob("*/stat")]
    return sorted(int(t[11]) + int(t[12]) for t in tasks)

a, b = np.ones(1 << 20, np.float32), np.ones(1 << 20, np.float32)
for _ in range(10000):
    for _ in range(20):
        F.pow(a, b, out=a)
    if busy()[-1] >= 20:  # ticks of a hundredth of a second
        break
print(*busy())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_large_work_is_shared_by_threads() -> None:
    """Where two threads may run, two have worked when one has worked for long."""
    env = os.environ | {"BARACUDA_NUM_THREADS": "2", "BARACUDA_PACE_THREADS": "0"}
    done = subprocess.run(
        [sys.executable, "-c", SHARED], env=env, capture_output=True, text=True, check=True, timeout=120
    )
    ticks = [int(n) for n in done.stdout.split()]
    assert len(ticks) >= 2 and ticks[-2] * 8 >= ticks[-1], ticks
