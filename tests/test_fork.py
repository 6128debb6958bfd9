"""Processes made by fork and spawn after plans have run."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys

import numpy as np
import pytest

import baracuda as bc
import baracuda.functional as F

if not hasattr(os, "fork"):
    pytest.skip("needs fork", allow_module_level=True)

# Python, and jax where another test loaded it, warn of any fork beside threads; these children run baracuda only.
pytestmark = [
    pytest.mark.filterwarnings("ignore:This process:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning"),
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


def answer(want: bytes) -> bool:
    return expected() == want


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(method: str) -> None:
    if method not in multiprocessing.get_all_start_methods() or "pytest_cov" in sys.modules:
        pytest.skip(f"no {method} here")
    want = expected()
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map_async(answer, [want] * 4).get(timeout=120) == [True] * 4


def test_plans_travel_to_other_processes() -> None:
    made = bc.plan(bc.GatedActivationDescriptor("swiglu", (4, 8)))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        got = pool.apply_async(run_plan, (made, X[:4, :8].copy())).get(timeout=120)
    assert got.tobytes() == made.run(X[:4, :8].copy(), np.zeros((4, 4), np.float32)).tobytes()


def run_plan(made: bc.Plan, x: np.ndarray) -> np.ndarray:
    return made.run(x, np.zeros((4, 4), np.float32))
