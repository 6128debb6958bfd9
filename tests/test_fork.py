"""Processes made by fork and spawn after plans have run."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import signal
import sys
import threading
from typing import Any

import numpy as np
import pytest
from children import run_alone

import baracuda as bc
import baracuda.functional as F
from baracuda.memory import generator

if not hasattr(os, "fork"):
    pytest.skip("needs fork", allow_module_level=True)

# Python, and jax where another test loaded it, warn of any fork beside threads; these children run baracuda only.
pytestmark = [
    pytest.mark.filterwarnings("ignore:This process:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning"),
    pytest.mark.timeout(240),
]

X = np.random.default_rng(0).normal(size=(64, 4096)).astype(np.float32)


def expected() -> bytes:
    """Large enough for several threads."""
    made = bc.plan(bc.GatedActivationDescriptor("swiglu", X.shape))
    return made.run(X, np.zeros((64, 2048), np.float32)).tobytes()


def in_child(check: object) -> int:
    """The child's exit status: 0 when check() returned; a child that hangs is ended after a minute."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            faulthandler.register(signal.SIGALRM, chain=True)  # shows the stacks, then ends the child
            signal.alarm(60)
            check()  # type: ignore[operator]
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_forked_child_runs_plans() -> None:
    made = bc.plan(bc.GatedActivationDescriptor("swiglu", X.shape))
    y = np.zeros((64, 2048), np.float32)
    want = made.run(X, y).tobytes()
    bound = made.bind(X, y)

    def check() -> None:
        assert made.run(X, y).tobytes() == want
        y[:] = 0
        assert bound().tobytes() == want
        assert F.swiglu(X).tobytes() == want
        assert expected() == want
        with pytest.raises(bc.InvalidProblemError):
            made.run(y, y)

    assert in_child(check) == 0
    assert made.run(X, y).tobytes() == want, "the parent goes on"

    def again() -> None:
        assert in_child(check) == 0

    assert in_child(again) == 0


IMPORTS = """
import importlib.machinery, os, signal, threading
import numpy as np, baracuda.functional as F

begun, go = threading.Event(), threading.Event()
plain = importlib.machinery.SourceFileLoader.exec_module

def slow(self, module):
    if module.__name__ == "baracuda.ops.scan.scan" and threading.current_thread() is not threading.main_thread():
        begun.set(), go.wait()
    plain(self, module)

importlib.machinery.SourceFileLoader.exec_module = slow
thread = threading.Thread(target=lambda: F.cumsum(np.ones(3), 0))
thread.start(), begun.wait()
pid = os.fork()
if pid == 0:
    signal.alarm(60)
    assert F.cumsum(np.ones(3), 0).tolist() == [1, 2, 3]
    os._exit(0)
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
go.set(), thread.join()
assert F.cumsum(np.ones(3), 0).tolist() == [1, 2, 3], "the parent goes on"
raise SystemExit(status)
"""
SUB_INTERPRETER = """
import sys
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
made = interpreters.create()
try:
    error = interpreters.exec(made, "import baracuda") if hasattr(interpreters, "exec") else (
        interpreters.run_string(made, "import baracuda"))
except Exception as e:
    error = e
assert error is not None and "interpreter" in str(error), error
import baracuda
"""


@pytest.mark.parametrize("code", [IMPORTS, SUB_INTERPRETER], ids=["imports of other threads", "sub-interpreters"])
def test_imports_that_must_not_hang(code: str) -> None:
    run_alone(code)


def test_a_forked_child_draws_random_numbers() -> None:
    """Also when a thread of the parent was at it."""
    stop = threading.Event()

    def draw() -> None:
        while not stop.is_set():
            generator.default_generator.take(1)

    thread = threading.Thread(target=draw)
    thread.start()
    try:
        for _ in range(20):
            assert in_child(lambda: F.bernoulli(np.full(3, 0.5, np.float32))) == 0
        with generator._held:  # a lock that another thread held
            holder = in_child(lambda: together(lambda: F.bernoulli(np.full(3, 0.5, np.float32))))
        assert holder == 0
    finally:
        stop.set()
        thread.join()


def together(work: Any) -> None:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(50)
    assert not thread.is_alive()


def answer(want: bytes) -> bool:
    return expected() == want


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(method: str) -> None:
    if method not in multiprocessing.get_all_start_methods() or "pytest_cov" in sys.modules:
        pytest.skip(f"no {method} here")
    want = expected()
    with multiprocessing.get_context(method).Pool(2, signal.alarm, (100,)) as pool:
        assert pool.map_async(answer, [want] * 4).get(timeout=120) == [True] * 4


def test_plans_travel_to_other_processes() -> None:
    made = bc.plan(bc.GatedActivationDescriptor("swiglu", (4, 8)))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        got = pool.apply_async(run_plan, (made, X[:4, :8].copy())).get(timeout=120)
    assert got.tobytes() == made.run(X[:4, :8].copy(), np.zeros((4, 4), np.float32)).tobytes()


def run_plan(made: bc.Plan, x: np.ndarray) -> np.ndarray:
    return made.run(x, np.zeros((4, 4), np.float32))
