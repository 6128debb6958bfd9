"""Failures on purpose: what bc.testing.fail asks for happens once, changes nothing, and the next call works."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from fakecuda import MODULE, calls

import baracuda as bc
import baracuda.functional as F

PLACES = ["cpu", *(["cuda:0", "cuda:1"] if "emulated" in MODULE else [])]
DESC = bc.GatedActivationDescriptor("swiglu", (4, 6))
X = np.linspace(-3, 3, 24, dtype=np.float32).reshape(4, 6)


def host(t: bc.Tensor) -> np.ndarray[Any, Any]:
    return t.to("cpu").numpy()


class Ready:
    def __init__(self, place: str) -> None:
        self.place = place
        self.plan = bc.plan(DESC, place)
        self.x, self.y = bc.asarray(X, device=place), bc.zeros((4, 3), device=place)

    def ways(self) -> list[Callable[[], object]]:
        """Every way to launch, each of which launches once."""
        bound = self.plan.bind(self.x, self.y)
        return [lambda: self.plan.run(self.x, self.y), bound, lambda: F.swiglu(self.x)]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("after", [0, 1, 3])
def test_a_launch_fails_once(place: str, after: int) -> None:
    r = Ready(place)
    for call in r.ways():
        call()
        r.y.copy_from(np.full((4, 3), 7, np.float32))
        with bc.testing.fail(after=after) as asked:
            for _ in range(after):
                call()
            r.y.copy_from(np.full((4, 3), 7, np.float32))
            launched = calls("cudaLaunchKernel") if place != "cpu" else 0
            with pytest.raises(bc.DeviceError, match=r"bc\.testing\.fail asked for") as caught:
                call()
            if place != "cpu":
                assert calls("cudaLaunchKernel") == launched
            assert (host(r.y) == 7).all()
            call()
        assert asked.happened
        assert (caught.value.code, caught.value.refusals[0].field) == ("launch_failed", place)
        call()
    assert np.allclose(host(F.swiglu(r.x)), F.swiglu(X), rtol=1e-6)


@pytest.mark.parametrize("place", PLACES)
def test_an_allocation_fails_once(place: str) -> None:
    x = bc.asarray(X, device=place)
    F.swiglu(x)
    makes = [
        lambda: bc.empty((4, 6), device=place),
        lambda: bc.zeros(3, "i64", device=place),
        lambda: bc.asarray(X, device=place),
        lambda: F.swiglu(x),
    ]
    for make in makes:
        with (
            bc.testing.fail(on="alloc") as asked,
            pytest.raises(bc.DeviceMemoryError, match=r"bc\.testing\.fail asked for") as caught,
        ):
            make()
        assert asked.happened
        assert isinstance(caught.value, MemoryError)
        assert caught.value.code == "device_memory"
        assert caught.value.refusals[0].field in (place, "cpu")
        with bc.testing.fail(after=1, on="alloc"):
            bc.empty(3)
            with pytest.raises(bc.DeviceMemoryError):
                make()
            make()


def test_workspaces_are_allocations_too() -> None:
    """A function's workspace, which is one per thread: on a new thread it has to be made."""
    x = np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32)
    needing = next((f for f in (F.matmul, F.softmax) if _workspace_of(f, x)), None)
    assert needing, "no function that is tried here needs a workspace"
    seen: list[str] = []

    def work() -> None:
        with bc.testing.fail(on="alloc") as asked:
            try:
                needing(*([x, x] if needing is F.matmul else [x, -1]))
            except bc.DeviceMemoryError as e:
                seen.append(str(e))
        seen.append(str(asked.happened))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert len(seen) == 2 and seen[1] == "True"


def _workspace_of(function: Any, x: np.ndarray[Any, Any]) -> int:
    if function is F.matmul:
        return bc.plan(bc.MatmulDescriptor(x.shape, x.shape)).workspace_size
    return bc.plan(bc.SoftmaxDescriptor("softmax", x.shape)).workspace_size


def test_what_does_not_happen_is_said() -> None:
    r = Ready("cpu")
    with bc.testing.fail(after=5) as asked:
        r.plan.run(r.x, r.y)
    assert not asked.happened
    for _ in range(8):
        r.plan.run(r.x, r.y)
    with pytest.raises(RuntimeError, match="mine"), bc.testing.fail(after=5):
        raise RuntimeError("mine")
    r.plan.run(r.x, r.y)


def test_one_failure_of_a_kind_at_a_time() -> None:
    r = Ready("cpu")
    with bc.testing.fail(after=1) as outer, bc.testing.fail(on="alloc") as other:
        with pytest.raises(bc.InvalidProblemError, match="at a time"), bc.testing.fail(after=9):
            pass
        with pytest.raises(bc.DeviceMemoryError):
            bc.empty(3)
        r.plan.run(r.x, r.y)
        with pytest.raises(bc.DeviceError):
            r.plan.run(r.x, r.y)
    assert outer.happened and other.happened


@pytest.mark.parametrize("bad", [{"on": "copy"}, {"after": -1}, {"after": True}, {"after": 1.0}, {"after": 2**62}])
def test_arguments_are_checked(bad: dict[str, Any]) -> None:
    with pytest.raises(bc.InvalidProblemError, match=next(iter(bad))), bc.testing.fail(**bad):
        pass


def test_one_thread_meets_it() -> None:
    r = Ready("cpu")
    failed: list[int] = []

    def work() -> None:
        y = np.empty((4, 3), np.float32)
        for i in range(200):
            try:
                r.plan.run(X, y)
            except bc.DeviceError:
                failed.append(i)

    threads = [threading.Thread(target=work) for _ in range(4)]
    with bc.testing.fail(after=300) as asked:
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert asked.happened
    assert len(failed) == 1


FAR = 2**45  # elements: more than an address space has
LARGE: dict[str, Callable[[Any], object]] = {
    "one plan": lambda make: F.pad(make([1.0, 2.0]), (FAR, 0)),
    "sized by data": lambda make: F.repeat_interleave(make([1.0, 2.0]), make(np.array([FAR, 1]))),
    "a plan of a composite": lambda make: F.one_hot(make(np.array([0, 1])), FAR),
    "several plans": lambda make: F.matmul(
        as_strided(make([1.0]), (2**22, 1), (0, 0)), as_strided(make([1.0]), (1, 2**23), (0, 0))
    ),
    "no tensor": lambda make: F.full((FAR,), 1.0),
    "random": lambda make: F.normal(size=(FAR,)),
}


def as_strided(x: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    return np.lib.stride_tricks.as_strided(x, shape, strides) if isinstance(x, np.ndarray) else x.expand(shape)


@pytest.mark.parametrize("make", [np.asarray, torch.as_tensor], ids=["numpy", "torch"])
@pytest.mark.parametrize("what", LARGE)
def test_results_that_no_memory_holds_are_our_error(what: str, make: Any) -> None:
    """Whoever allocates them: NumPy has a MemoryError for it, torch a RuntimeError."""
    with pytest.raises(bc.DeviceMemoryError, match="no memory") as caught:
        LARGE[what](make)
    assert caught.value.code == "device_memory"
    assert str(FAR)[:4] in str(caught.value) or "4194304" in str(caught.value), "the shape is not named"
