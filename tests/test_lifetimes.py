"""Who owns what: storages that move beneath bound plans, capsules that are used up, one call at a time."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
import torch
from capsules import NAMES, Counted, capsule_name
from imports import PLAN, WANT, N, X, out

import baracuda as bc
import baracuda.functional as F

pytestmark = pytest.mark.timeout(300)

CAT = bc.plan(bc.CatDescriptor(((4, N), (4, N)), axis=1))
BIG = 1 << 20


def tensor(shape: tuple[int, ...] = (4, 2 * N)) -> torch.Tensor:
    return torch.ones(shape)


# --- memory that moves ------------------------------------------------------------------------------------------------


def shrink_and_grow(t: torch.Tensor) -> None:
    """The storage comes back where it was, with fewer bytes."""
    storage = t.untyped_storage()
    storage.resize_(4)
    storage.resize_(8)


TORCH: dict[str, Callable[[torch.Tensor], Any]] = {
    "data": lambda t: setattr(t, "data", torch.zeros(1)),
    "data of the same size": lambda t: setattr(t, "data", torch.zeros_like(t)),
    "set_": lambda t: t.set_(torch.zeros(3)),
    "resize_ to more": lambda t: t.resize_(BIG),
    "storage of nothing": lambda t: t.untyped_storage().resize_(0),
    "storage of less": shrink_and_grow,
    "storage of more": lambda t: t.untyped_storage().resize_(BIG),
    "shared memory": lambda t: t.share_memory_(),
    "swapped": lambda t: torch.utils.swap_tensors(t, torch.zeros(5)),
}
NUMPY: dict[str, Callable[[np.ndarray], Any]] = {
    "resize to more": lambda a: a.resize(BIG, refcheck=False),
    "resize to less": lambda a: a.resize(1, refcheck=False),
}
ROLES = ("x", "y", "a member", "a number", "the workspace")
MOVES = [
    (kind, how, role)
    for kind, moves in (("torch", TORCH), ("numpy", NUMPY))
    for how in moves
    for role in ROLES
    if (kind, role) != ("numpy", "the workspace")  # NumPy's memory is not aligned for it
    and (how, role) not in (("resize to less", "a number"), ("storage of less", "a number"))  # it has one element
]


def bind(role: str, make: Callable[[tuple[int, ...]], Any]) -> tuple[Any, Any, str]:
    """A bound plan, the tensor that plays the role, and the argument's name."""
    if role == "a member":
        parts = [make((4, N)), make((4, N))]
        return CAT.bind(parts, np.zeros((4, 2 * N), np.float32)), parts[1], CAT.arguments[0]
    if role == "a number":
        plan = bc.plan(bc.UnaryDescriptor("leaky_relu", (4, N)))
        t = make(())
        return plan.bind(out(), out(), t), t, plan.arguments[-1]
    if role == "the workspace":
        plan = bc.plan(bc.MatmulDescriptor((64, 64), (64, 64)))
        t = make((plan.workspace_size // 4 + 16,))
        tensors = [np.ones((64, 64), np.float32) for _ in range(3)]
        return plan.bind(*tensors, workspace=t), t, "workspace"
    tensors = {"x": make((4, 2 * N)), "y": make((4, N))}
    return PLAN.bind(**tensors), tensors[role], role


@pytest.mark.parametrize(("kind", "how", "role"), MOVES)
def test_memory_that_moves_is_found(kind: str, how: str, role: str) -> None:
    make = tensor if kind == "torch" else lambda shape: np.ones(shape, np.float32)
    bound, t, name = bind(role, make)
    bound()
    (TORCH if kind == "torch" else NUMPY)[how](t)
    junk = [torch.full((n,), 7.0) for n in range(1, 60)]  # takes the memory that was freed
    with pytest.raises(bc.InvalidProblemError, match="rebind") as caught:
        bound()
    assert caught.value.code == "moved"
    assert caught.value.refusals[0].field.startswith(name)
    assert all((j == 7).all() for j in junk), "another tensor's memory was written to"


def test_a_moved_tensor_can_be_bound_again() -> None:
    x, y = torch.from_numpy(X.copy()), tensor((4, N))
    bound = PLAN.bind(x, y)
    x.data = torch.from_numpy(X.copy())
    with pytest.raises(bc.InvalidProblemError):
        bound()
    assert bound.rebind(x=x)() is y
    np.testing.assert_allclose(y, WANT, rtol=1e-5)
    y.data = torch.zeros(4, N)
    bound.rebind()
    assert bound() is y
    np.testing.assert_allclose(y, WANT, rtol=1e-5)


def test_torch_tensors_behind_ours_keep_their_memory() -> None:
    for move in (TORCH["data"], TORCH["set_"]):
        t = torch.from_numpy(X.copy()).clone()
        ours = bc.from_dlpack(t)
        move(t)
        gc.collect()
        junk = [torch.full(X.shape, 7.0) for _ in range(50)]
        np.testing.assert_allclose(ours.numpy(), X)
        del junk
    t = torch.from_numpy(X.copy()).clone()
    ours = bc.from_dlpack(t)
    for move in ("resize_ to more", "storage of nothing", "storage of more"):
        with pytest.raises(RuntimeError, match="resiz"):
            TORCH[move](t)
    np.testing.assert_allclose(ours.numpy(), X)


class Mover:
    """Resizes another argument while it is asked for its own memory."""

    def __init__(self, array: np.ndarray, victim: Any) -> None:
        self.array, self.victim = array, victim

    def __dlpack__(self, **kwargs: Any) -> Any:
        if isinstance(self.victim, torch.Tensor):
            self.victim.resize_(BIG).fill_(3)
        else:
            self.victim.resize(BIG, refcheck=False)
        return self.array.__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


@pytest.mark.parametrize("kind", ["torch", "numpy"])
@pytest.mark.parametrize("door", ["run", "bind", "function", "out of a function", "list"])
def test_arguments_that_move_others_while_they_are_read(kind: str, door: str) -> None:
    def fresh(shape: tuple[int, ...]) -> Any:
        return tensor(shape) if kind == "torch" else np.ones(shape, np.float32)

    first = fresh((4, N) if door != "run" and door != "bind" else (4, 2 * N))
    mover = Mover(np.ones((4, N), np.float32), first)
    calls: dict[str, Callable[[], Any]] = {
        "run": lambda: PLAN.run(first, mover), "bind": lambda: PLAN.bind(first, mover),
        "function": lambda: F.add(first, mover), "out of a function": lambda: F.exp(first, out=mover),
        "list": lambda: CAT.run([first, mover], out()),
    }  # fmt: skip
    for _ in range(2):  # as a miss, and as a hit
        with pytest.raises(bc.BaracudaError):
            calls[door]()


# --- capsules -----------------------------------------------------------------------------------------------------------


def doors() -> dict[str, Callable[[Any], Any]]:
    """Every way to hand a capsule in; what is returned is what holds the memory."""
    half = np.ones((4, N), np.float32)
    return {
        "run": lambda c: PLAN.run(c, out()) is None,
        "run refused": lambda c: PLAN.run(c, np.zeros(3, np.float32)),
        "bind": lambda c: PLAN.bind(c, out()),
        "bind refused": lambda c: PLAN.bind(c, np.zeros(3, np.float32)),
        "rebind": lambda c: PLAN.bind(X.copy(), out()).rebind(x=c),
        "producer rebound": lambda c: PLAN.bind(X.copy(), out()).rebind(x=Once(c)),
        "rebind refused": lambda c: PLAN.bind(X.copy(), out()).rebind(x=c, nonsense=1),
        "from_dlpack": bc.from_dlpack,
        "a view": lambda c: bc.from_dlpack(c)[1:],
        "numpy": lambda c: bc.from_dlpack(c).numpy(),
        "function": lambda c: F.swiglu(c) is None,
        "function hit": lambda c: (F.swiglu(bc.asarray(X)), F.swiglu(c)) is None,
        "function refused": lambda c: F.swiglu(c, dim=9),
        "list": lambda c: F.cat([half, c], 1) is None,
        "list refused": lambda c: F.cat([c, np.zeros(3, np.float32)], 1),
        "producer": lambda c: PLAN.run(Once(c), out()) is None,
        "producer bound": lambda c: PLAN.bind(Once(c), out()),
        "producer borrowed": lambda c: bc.from_dlpack(Once(c)),
    }


class Once:
    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


@pytest.mark.parametrize("versioned", [True, False])
@pytest.mark.parametrize("door", list(doors()))
def test_a_capsule_is_consumed_once_and_deleted_once(door: str, versioned: bool) -> None:
    made = Counted(X, versioned)
    capsule = made.capsule()
    assert PLAN.can_implement(capsule, out())
    assert capsule_name(capsule) == NAMES[versioned], "a question consumes nothing"
    held = None
    try:
        held = doors()[door](capsule)
    except bc.BaracudaError:
        assert "refused" in door
    else:
        assert "refused" not in door
    if door != "rebind refused":
        assert capsule_name(capsule) == b"used_" + NAMES[versioned]
        assert made.deleted == (1 if held is None or held is False else 0)
        for again in ("run", "bind", "from_dlpack", "function", "list", "producer", "rebind"):
            with pytest.raises(bc.InvalidProblemError, match="once") as caught:
                doors()[again](capsule)
            assert caught.value.code == "capsule"
        for consumer in (np.from_dlpack, torch.from_dlpack):
            with pytest.raises((ValueError, RuntimeError, TypeError, AttributeError)):
                consumer(Once(capsule))
    else:
        doors()["from_dlpack"](capsule)
    assert made.deleted == (1 if held is None or held is False else 0)
    del held
    gc.collect()
    assert made.deleted == 1
    del capsule
    gc.collect()
    assert made.deleted == 1


def test_capsules_that_others_consumed_are_refused() -> None:
    for consumer in (torch.utils.dlpack.from_dlpack, torch.from_dlpack):
        capsule = Counted(X).capsule()
        kept = consumer(capsule)
        for door in ("run", "bind", "from_dlpack", "function", "list"):
            with pytest.raises(bc.InvalidProblemError, match="once"):
                doors()[door](capsule)
        assert not PLAN.can_implement(capsule, out())
        np.testing.assert_allclose(kept, X)


def test_one_capsule_twice_in_one_call() -> None:
    for call in (lambda c: F.cat([c, c]), lambda c: CAT.run([c, c], out()), lambda c: F.add(c, c)):
        made = Counted(X[:, :N])
        with pytest.raises(bc.InvalidProblemError, match="once"):
            call(made.capsule())
        gc.collect()
        assert made.deleted == 1


def test_capsules_of_a_bound_plan_survive_a_rebind() -> None:
    x, y = Counted(X), Counted(np.zeros((4, N), np.float32))
    bound = PLAN.bind(x.capsule(), y.capsule())
    first = bound()
    np.testing.assert_allclose(np.from_dlpack(first), WANT, rtol=1e-5)
    other = X.copy()
    bound.rebind(x=other)
    gc.collect()
    assert (x.deleted, y.deleted) == (1, 0)
    assert bound() is first
    del bound, first
    gc.collect()
    assert (x.deleted, y.deleted) == (1, 1)


def test_a_capsule_that_cannot_be_read_stays_the_caller_s() -> None:
    made = Counted(X)
    made.managed.tensor.bits = 24
    capsule = made.capsule()
    for door in ("run", "bind", "from_dlpack", "function"):
        with pytest.raises(bc.InvalidProblemError):
            doors()[door](capsule)
    assert (capsule_name(capsule), made.deleted) == (NAMES[True], 0)


def test_threads_that_come_with_one_capsule() -> None:
    for _ in range(50):
        made = Counted(X)
        capsule, gate, won = made.capsule(), threading.Barrier(4), []

        def take(capsule: Any = capsule, gate: Any = gate, won: Any = won) -> None:
            gate.wait()
            with suppress(bc.InvalidProblemError):
                won.append(bc.from_dlpack(capsule))

        together(take)
        assert len(won) == 1
        won.clear()
        gc.collect()
        assert made.deleted == 1


# --- one call at a time -------------------------------------------------------------------------------------------------


def together(*work: Callable[[], None]) -> None:
    """Each in a thread; one alone in four."""
    errors: list[BaseException] = []

    def body(f: Callable[[], None]) -> None:
        try:
            f()
        except BaseException as e:
            errors.append(e)

    threads = [threading.Thread(target=body, args=(f,), daemon=True) for f in (work if len(work) > 1 else work * 4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(120)
        assert not t.is_alive(), "a thread hangs"
    if errors:
        raise errors[0]


@pytest.mark.parametrize("rows", [4, 2048])  # with the interpreter held, and without
def test_calls_and_rebinds_from_threads_at_once(rows: int) -> None:
    plan = bc.plan(bc.GatedActivationDescriptor("swiglu", (rows, 64)))
    bound = plan.bind(np.ones((rows, 64), np.float32), np.zeros((rows, 32), np.float32))

    def work() -> None:
        for k in range(150):
            try:
                if k % 3:
                    bound()
                else:
                    bound.rebind(x=torch.ones(rows, 64), y=bc.zeros((rows, 32)))
            except bc.InvalidProblemError as e:
                assert e.code == "busy"

    together(work)
    x, y = np.ones((rows, 64), np.float32), np.zeros((rows, 32), np.float32)
    assert bound.rebind(x=x, y=y)() is y and (y == plan.run(x, np.zeros_like(y))).all()


class Calls:
    """Does something with a bound plan while the plan is being bound anew."""

    def __init__(self, act: Callable[[], Any]) -> None:
        self.act, self.codes = act, []

    def __dlpack__(self, **kwargs: Any) -> Any:
        try:
            self.act()
        except bc.BaracudaError as e:
            self.codes.append(e.code)
        return X.copy().__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def test_a_bound_plan_is_not_used_while_it_is_bound_anew() -> None:
    y = out()
    bound = PLAN.bind(X.copy(), y)
    for act in (bound, bound.rebind, lambda: bound.rebind(x=X.copy())):
        inner = Calls(act)
        bound.rebind(x=inner)
        assert inner.codes == ["busy"]
    with pytest.raises(bc.InvalidProblemError):
        bound.rebind(x=Calls(bound), y=X)
    assert bound() is y, "after an error it is free again"
    np.testing.assert_allclose(y, WANT, rtol=1e-5)


def test_what_a_rebind_lets_go_of_may_use_the_bound_plan() -> None:
    y, seen = out(), []
    old = np.ones((4, 2 * N), np.float32)
    bound = PLAN.bind(old, y)
    weakref.finalize(old, lambda: seen.append(bound().tobytes()))
    del old
    bound.rebind(x=X.copy())
    assert len(seen) == 1
    np.testing.assert_allclose(np.frombuffer(seen[0], np.float32).reshape(y.shape), WANT, rtol=1e-5)


def test_rebind_keeps_what_it_does_not_replace() -> None:
    parts = [np.full((4, N), k, np.float32) for k in (1, 2)]
    first = np.zeros((4, 2 * N), np.float32)
    x, y, z = (weakref.ref(p) for p in (*parts, first))
    bound = CAT.bind(parts, first)
    del parts, first
    for _ in range(20):
        bound.rebind(y=np.zeros((4, 2 * N), np.float32))
        gc.collect()
        assert x() is not None and y() is not None and z() is None
        got = bound()
        assert (got[:, :N] == 1).all() and (got[:, N:] == 2).all()
    last = out()
    held, kept = PLAN.bind(np.ones((4, 2 * N), np.float32), last), weakref.ref(last)
    del last
    for _ in range(20):
        held.rebind(x=X.copy())
        gc.collect()
        assert kept() is not None
        np.testing.assert_allclose(held(), WANT, rtol=1e-5)


# --- what is left behind after errors -----------------------------------------------------------------------------------


@pytest.mark.parametrize("door", ["run", "bound", "function"])
def test_version_counters_after_an_error_in_the_data(door: str) -> None:
    plan = bc.plan(bc.GatherDescriptor((4, 3), (2, 3), 0))
    y, bad = torch.zeros(2, 3), np.array([[0, 1, 2], [3, 99, 0]])
    x = np.ones((4, 3), np.float32)
    calls: dict[str, Callable[[], Any]] = {
        "run": lambda: plan.run(x, bad, y),
        "bound": lambda: plan.bind(x, bad, y)(),
        "function": lambda: F.gather(torch.ones(4, 3), 0, torch.from_numpy(bad), out=y),
    }
    before = y._version
    with pytest.raises(bc.IndexOutOfRangeError):
        calls[door]()
    assert y._version > before, "autograd must know that the output may have been written to"


@pytest.mark.parametrize("door", ["run", "bound", "error"])
def test_the_thread_limit_of_a_plan_ends_with_its_call(door: str) -> None:
    before = bc.get_num_threads()
    bc.set_num_threads(4)
    try:
        only = bc.PlanPreference(threads=1)
        x = np.ones((256, 512), np.float32)
        if door == "error":
            plan = bc.GatherPlan.select(bc.GatherDescriptor((4, 3), (2, 3), 0), preference=only)
            with pytest.raises(bc.IndexOutOfRangeError):
                plan.run(np.ones((4, 3), np.float32), np.full((2, 3), 99), np.zeros((2, 3), np.float32))
        else:
            plan = bc.GatedActivationPlan.select(bc.GatedActivationDescriptor("swiglu", x.shape), preference=only)
            y = np.zeros((256, 256), np.float32)
            (plan.bind(x, y) if door == "bound" else lambda: plan.run(x, y))()
        assert bc.get_num_threads() == 4
    finally:
        bc.set_num_threads(before)
