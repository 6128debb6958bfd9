"""Whose memory a bc.Tensor shows: owners, views that keep it, the pool of host memory, and addresses that move."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest
import torch
from imports import PLAN, WANT, N, X, out

import baracuda as bc
import baracuda.functional as F
from baracuda import _core

SHAPE = (4, 2 * N)


class Owner:
    """Holds memory, and can be part of a cycle."""

    def __init__(self, shape: tuple[int, ...] = SHAPE) -> None:
        self.array = np.ones(shape, np.float32)
        self.other: Any = None

    def tensor(self) -> bc.Tensor:
        return bc.from_pointer(self.array.ctypes.data, self.array.shape, "f32", owner=self)


# --- owners -----------------------------------------------------------------------------------------------------------


def test_views_arrays_and_exports_keep_the_owner() -> None:
    for use in (
        lambda t: t[1:], lambda t: t.T.reshape(2, N, 4), lambda t: t.numpy(), lambda t: np.from_dlpack(t.T), lambda t: t.__dlpack__(),
        lambda t: bc.from_dlpack(t), lambda t: torch.from_dlpack(t[0]), lambda t: memoryview(t.numpy()), lambda t: list(t)[2],
        lambda t: bc.from_pointer(t.address, (1,), "f32", owner=t), lambda t: PLAN.bind(t, out()),
    ):  # fmt: skip
        owner = Owner()
        gone = weakref.ref(owner)
        user = use(owner.tensor())
        del owner
        gc.collect()
        assert gone() is not None
        del user
        gc.collect()
        assert gone() is None


@pytest.mark.parametrize("view", [False, True])
def test_cycles_through_a_tensor_are_found(view: bool) -> None:
    owner = Owner()
    gone = weakref.ref(owner)
    owner.other = owner.tensor()[1:].T if view else owner.tensor()
    del owner
    assert gone() is not None
    gc.collect()
    assert gone() is None


def test_what_cannot_be_in_a_cycle_is_no_work_for_the_collector() -> None:
    t = bc.empty((4,))
    assert not gc.is_tracked(t) and not gc.is_tracked(t[1:])
    tracked = bc.from_pointer(t.address, (4,), "f32", owner=[t])
    assert gc.is_tracked(tracked) and gc.is_tracked(tracked[1:])


def test_a_long_chain_of_owners_ends() -> None:
    t = bc.zeros((1,))
    for _ in range(200_000):
        t = bc.from_pointer(t.address, (1,), "f32", owner=t)
    assert t.item() == 0
    held: Any = t
    for _ in range(200_000):
        held = bc.from_pointer(t.address, (1,), "f32", owner=(held,))
    del held, t


# --- the pool ---------------------------------------------------------------------------------------------------------


def test_memory_comes_back_from_the_pool_and_is_aligned() -> None:
    for nbytes in (0, 1, 63, 64, 65, 256, 257, 320, 321, 1000, 4097, 2**18 - 1, 2**18, 2**18 + 1, 2**20 + 1, 2**23):
        t = bc.empty((nbytes,), "u8")
        assert t.address % 64 == 0
        t.numpy()[...] = 7
        address, kept = t.address, _core.pooled_bytes()
        del t
        if nbytes <= 2**18:
            grown = _core.pooled_bytes() - kept
            assert grown == 0 or nbytes <= grown <= max(64, nbytes * 5 // 4 + 64)
            assert grown == 0 or bc.empty((nbytes,), "u8").address == address
        else:
            assert _core.pooled_bytes() == kept, "large memory goes back to the system"


def test_the_pool_is_bounded() -> None:
    for nbytes in (64, 3000, 2**18):
        held = [bc.empty((nbytes,), "u8") for _ in range(4 * 2**20 // nbytes)]
        before = _core.pooled_bytes()
        del held
        assert _core.pooled_bytes() - before <= 2**20
    assert _core.pooled_bytes() <= 44 * 2**20


def test_a_view_keeps_memory_from_the_pool() -> None:
    t = bc.empty((16,))
    view, address = t[3:], t.address
    del t
    assert all(bc.empty((16,)).address != address for _ in range(10))
    assert view.address == address + 12


def test_threads_share_the_pool() -> None:
    failed: list[str] = []
    queue: list[bc.Tensor] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        mine: list[tuple[bc.Tensor, int]] = []
        for i in range(3000):
            t = bc.empty((int(rng.integers(1, 400)),), "i32")
            mark = seed * 10_000 + i
            t.numpy()[...] = mark
            mine.append((t[::-1], mark))
            queue.append(t)
            if len(mine) > 20:
                view, mark = mine.pop(int(rng.integers(20)))
                if not (view.numpy() == mark).all():
                    failed.append(f"{seed}: {mark}")
            if len(queue) > 30:
                queue.pop()  # which another thread has made

    threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 5)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed


# --- rebase -----------------------------------------------------------------------------------------------------------


def at(array: np.ndarray[Any, Any]) -> bc.Tensor:
    return bc.from_pointer(array.ctypes.data, array.shape, "f32")


def test_a_tensor_moves_to_another_address() -> None:
    a, b = np.ones(SHAPE, np.float32), np.full(SHAPE, 2, np.float32)
    t = at(a)
    assert t.rebase(b.ctypes.data) is t
    assert t.address == b.ctypes.data
    assert t[1, 1].item() == 2 and F.sum(t).item() == b.sum()
    assert t.rebase(a.ctypes.data)[0, 0].item() == 1


def test_what_else_shows_the_memory_is_in_the_way() -> None:
    a, b = np.ones(SHAPE, np.float32), np.zeros(SHAPE, np.float32)
    t = at(a)
    for use in (
        lambda: t[1:], lambda: t.T[0], lambda: t.numpy(), lambda: t.numpy()[1:], lambda: np.asarray(t), lambda: t.__dlpack__(),
        lambda: np.from_dlpack(t), lambda: torch.from_dlpack(t), lambda: bc.from_dlpack(t), lambda: iter(t),
        lambda: bc.from_pointer(t.address, (1,), "f32", owner=t), lambda: PLAN.bind(t[:], out()),
    ):  # fmt: skip
        user = use()
        with pytest.raises(bc.InvalidProblemError, match=r"rebase: got a tensor whose memory \d+ views"):
            t.rebase(b.ctypes.data)
        assert t.address == a.ctypes.data
        del user
        assert t.rebase(a.ctypes.data) is t


def test_memory_that_somebody_owns_stays() -> None:
    owner = Owner()
    frozen = bc.from_dlpack(owner.array)
    for t in (bc.empty(SHAPE), owner.tensor(), frozen, at(owner.array)[1:], bc.asarray(X), at(owner.array).T):
        with pytest.raises(bc.InvalidProblemError, match="one that from_pointer made without an owner"):
            t.rebase(owner.array.ctypes.data)
    for wrong in (0, -1, 2**63, True, "x", 1.5, None):
        with pytest.raises(bc.InvalidProblemError, match="the address of the first element"):
            at(owner.array).rebase(wrong)  # type: ignore[arg-type]
    assert bc.from_pointer(0, (0, 3), "f32").rebase(0).address == 0


@pytest.mark.parametrize("role", ["x", "y", "a member", "a number", "the workspace"])
def test_bound_plans_find_tensors_that_moved(role: str) -> None:
    memory = [np.ones((64, 64), np.float32) for _ in range(4)]
    space = bc.empty((2**20,), "u8")
    t = at(memory[0][:4, :6].copy() if role in "xy" else memory[0])
    if role == "x":
        bound, name = bc.plan(bc.UnaryDescriptor("neg", (4, 6))).bind(t, bc.empty((4, 6))), "x"
    elif role == "y":
        bound, name = bc.plan(bc.UnaryDescriptor("neg", (4, 6))).bind(bc.zeros((4, 6)), t), "y"
    elif role == "a member":
        plan = bc.plan(bc.CatDescriptor(((64, 64), (64, 64)), axis=1))
        bound, name = plan.bind([memory[1], t], bc.empty((64, 128))), plan.arguments[0]
    elif role == "a number":
        t, plan = bc.from_pointer(memory[0].ctypes.data, (), "f32"), bc.plan(bc.UnaryDescriptor("leaky_relu", (4, N)))
        bound, name = plan.bind(out(), out(), t), plan.arguments[-1]
    else:
        plan = bc.plan(bc.MatmulDescriptor((64, 64), (64, 64)))
        t = bc.from_pointer(space.address, (plan.workspace_size + 64,), "u8")
        bound, name = plan.bind(*memory[1:], workspace=t), "workspace"
    bound()
    before = t.address
    t.rebase(before + 2**12)
    with pytest.raises(bc.InvalidProblemError, match="rebind") as caught:
        bound()
    assert caught.value.code == "moved"
    assert caught.value.refusals[0].field.startswith(name)
    t.rebase(before)
    bound()


def test_a_moved_tensor_can_be_bound_again() -> None:
    first, second, y = X.copy(), X.copy(), bc.zeros((4, N))
    t = at(first)
    bound = PLAN.bind(t, y)
    first[:] = 0
    t.rebase(second.ctypes.data)
    with pytest.raises(bc.InvalidProblemError):
        bound()
    assert bound.rebind()() is y
    np.testing.assert_allclose(y.numpy(), WANT, rtol=1e-5)


@pytest.mark.parametrize("door", ["run", "function"])
def test_a_tensor_that_moves_while_others_are_read(door: str) -> None:
    first, second = np.zeros((4, N), np.float32), np.ones((4, N), np.float32)

    class Mover:
        def __dlpack__(self, **kwargs: Any) -> Any:
            t.rebase(second.ctypes.data)
            return np.zeros((4, N), np.float32).__dlpack__(**kwargs)

        def __dlpack_device__(self) -> tuple[int, int]:
            return 1, 0

    plan = bc.plan(bc.BinaryDescriptor("add", (4, N), (4, N)))
    for _ in range(2):
        t, y = at(first), np.full((4, N), 7, np.float32)
        got = plan.run(t, Mover(), y) if door == "run" else F.add(t, Mover())
        assert np.asarray(got).min() == 1, "the sum is of the memory before the move"


def test_threads_never_see_half_a_move() -> None:
    a, b = np.zeros((64,), np.float32), np.ones((64,), np.float32)
    t, stop = at(a), threading.Event()
    failed: list[str] = []

    def look() -> None:
        while not stop.is_set():
            view = t[3:]
            address = view.address
            if address not in (a.ctypes.data + 12, b.ctypes.data + 12) or t.address + 12 != address:
                failed.append("the tensor moved beneath a view")

    threads = [threading.Thread(target=look) for _ in range(2)]
    for thread in threads:
        thread.start()
    moved = 0
    for i in range(3000):
        try:
            t.rebase((b, a)[i % 2].ctypes.data)
            moved += 1
        except bc.InvalidProblemError:
            pass
    stop.set()
    for thread in threads:
        thread.join()
    assert not failed
    assert t.rebase(a.ctypes.data).address == a.ctypes.data
