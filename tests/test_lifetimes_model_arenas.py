"""A model of memory that is used again: arenas, pools, pins, floors and limits, with a shadow owner for each byte.

At every step a collection may come in the midst of what is done, and its finalisers allocate, pin, give back and ask, too.
"""

from __future__ import annotations

import gc
import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

import baracuda as bc
import baracuda.functional as F
from conftest import FULL, SEED

pytestmark = pytest.mark.timeout(3600 if FULL else 300)

EXAMPLES, STEPS = (600, 60) if FULL else (150, 40)
TUNED = settings(
    max_examples=EXAMPLES,
    stateful_step_count=STEPS,
    deadline=None,
    database=None,
    phases=[Phase.generate, Phase.shrink] if FULL else [Phase.generate],
    suppress_health_check=list(HealthCheck),
)
PICK = st.integers(0, 2**16)
SHAPES = st.sampled_from([(), (0,), (3,), (16,), (40,), (5, 7), (2, 3, 4), (17, 8)])
ELEMENTS = st.sampled_from(["u8", "f16", "f32", "f64", "c128"])
VIEWS: dict[str, Callable[[Any], Any]] = {
    "every other": lambda x: x[::2],
    "backwards": lambda x: x[::-1],
    "one": lambda x: x[-1:],
    "transposed": lambda x: x.T,
    "expanded": lambda x: x[None].expand((4, *x.shape)),
    "none": lambda x: x[:0],
}


def array_of(t: bc.Tensor) -> np.ndarray:
    return np.from_dlpack(t)


def bounds_of(t: bc.Tensor) -> tuple[int, int]:
    """From the first byte to behind the last, as NumPy finds them."""
    if t.numel == 0:
        return t.address, t.address
    return np.lib.array_utils.byte_bounds(array_of(t))


@dataclass(eq=False)
class Arena:
    real: bc.TensorArena
    poison: bool
    floor: int = 0
    used: int = 0
    pins: list[tuple[bc.Tensor, int]] = field(default_factory=list)  # what unpin takes, and where its bytes end

    @property
    def base(self) -> int:
        return int(self.real._block.address)

    def least(self, to: int) -> int:
        """Where a reset ends."""
        return min(self.used, -(-max([to, self.floor, *(end for _, end in self.pins)]) // 64) * 64)


@dataclass(eq=False)
class Root:
    """Memory that one tensor and its views own, with what it must hold."""

    real: bc.Tensor
    want: np.ndarray
    arena: Arena | None = None
    pool: bool = False
    views: list[bc.Tensor] = field(default_factory=list)

    @property
    def start(self) -> int:
        return int(self.real.address)

    @property
    def end(self) -> int:
        return self.start + int(self.real.nbytes)


class Cycle:
    """Garbage that only a collection finds."""

    def __init__(self, held: Any, act: Callable[[], None]) -> None:
        self.itself, self.held, self.act = self, held, act

    def __del__(self) -> None:
        self.act()


@contextmanager
def collected(after: int, garbage: Callable[[], None]) -> Iterator[None]:
    """Has a collection come with the `after`-th object that is made inside, which finds the garbage."""
    before = gc.get_threshold()
    gc.disable()
    gc.collect(1)  # what is older is no garbage
    garbage()
    kept = [[] for _ in range(50)]  # so that the count is above 0 for what follows
    made = gc.get_count()[0] - 1  # but for the tuple of counts
    gc.set_threshold(made + after - 1, 10**6, 10**6)
    gc.enable()
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.collect(1)
        del kept


class Memory(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.serial = itertools.count(1)
        self.engine = bc.Engine(arena=4096)
        self.arenas = [Arena(self.engine.arena, False), Arena(bc.TensorArena("5KiB", poison=True), True)]  # type: ignore[arg-type]
        self.pool = bc.TensorPool()
        self.roots: list[Root] = []
        self.contexts: list[tuple[Any, str, Any]] = []
        self.pending: list[tuple[bc.Tensor, bool]] = []  # what finalisers made, and whether of the pool

    # --- what comes in the midst of a step

    def garbage(self, kind: str) -> None:
        held = None
        with suppress(bc.MemoryLimitError):
            held = bc.empty((3,)) if kind == "drop" else None
        acts: dict[str, Callable[[], Any]] = {
            "nothing": lambda: None,
            "drop": lambda: None,
            "make": lambda: self.pending.append((bc.empty((2, 3)), False)),
            "acquire": lambda: self.pending.append((self.pool.acquire((5,)), True)),
            "acquire and release": lambda: self.pool.release(self.pool.acquire((16,))),
            "ask": lambda: (
                self.engine.memory.alive(),
                self.engine.stats(),
                len(self.pool),
                [a.real.pinned_bytes for a in self.arenas],
            ),
        }

        def act() -> None:
            with suppress(bc.MemoryLimitError):
                acts[kind]()

        Cycle(held, act)

    def during(self, call: Callable[[], Any], kind: str, after: int) -> Any:
        """What a call returns in whose midst garbage is collected; None where a limit refused it."""
        try:
            with collected(after, lambda: self.garbage(kind)):
                got = call()
        except bc.MemoryLimitError:
            got = None
        for real, pooled in self.pending:
            self.keep(real, pooled)
        self.pending.clear()
        self.look()
        return got

    def look(self) -> None:
        for a in self.arenas:
            a.used = a.real.used

    def keep(self, real: bc.Tensor, pooled: bool = False) -> Root:
        """A new tensor: where it lies, and what it holds from now on."""
        inside = [a for a in self.arenas if a.base <= real.address < a.base + a.real.size and real.nbytes]
        root = Root(
            real, np.full(real.nbytes, next(self.serial) % 251, np.uint8), inside[0] if inside else None, pooled
        )
        assert not pooled or not inside, "the pool keeps memory of an arena"
        for other in self.roots:
            apart = root.end <= other.start or other.end <= root.start
            assert apart or not (root.real.nbytes and other.real.nbytes), "two tensors that are alive share memory"
        self.roots.append(root)
        if root.real.nbytes:
            array_of(real).reshape(-1).view(np.uint8)[...] = root.want
        self.look()
        return root

    # --- steps

    how = st.sampled_from(["make", "make", "make", "drop", "acquire", "acquire and release", "ask"])
    when = st.sampled_from([1, 1, 1, 2, 3, 5, 8])

    @initialize(n=st.integers(0, 2), shapes=st.lists(SHAPES, max_size=3))
    def begin(self, n: int, shapes: Any) -> None:
        self.enter(n, "step" if n == 2 else "use")
        for shape in shapes:
            self.keep(bc.empty(shape))

    @rule(shape=SHAPES, element=ELEMENTS, how=how, when=when)
    def make(self, shape: Any, element: str, how: str, when: int) -> None:
        real = self.during(lambda: bc.empty(shape, element), how, when)
        if real is not None:
            self.keep(real)

    @rule(n=PICK, how=how, when=when)
    def function(self, n: int, how: str, when: int) -> None:
        found = [r for r in self.roots if r.real.element is bc.Element.U8]
        if found:
            x = found[n % len(found)].real
            real = self.during(lambda: F.add(x, x), how, when)
            if real is not None:
                self.keep(real)

    @rule(n=PICK, shapes=st.lists(SHAPES, min_size=1, max_size=4), element=ELEMENTS, how=how, when=when)
    def make_in(self, n: int, shapes: Any, element: str, how: str, when: int) -> None:
        arena = self.arenas[n % len(self.arenas)].real
        for shape in shapes:
            real = self.during(lambda shape=shape: arena.empty(shape, element), how, when)
            if real is not None:
                self.keep(real)

    @rule(size=st.sampled_from([64, 500, 1024]), poison=st.booleans(), how=how, when=when)
    def another_arena(self, size: int, poison: bool, how: str, when: int) -> None:
        if len(self.arenas) > 3:
            return
        real = self.during(lambda: bc.TensorArena(size, poison=poison), how, when)
        if real is not None:
            base = real._block.address
            for a in self.arenas:
                assert not a.base - size < base < a.base + a.real.size, "an arena lies in another"
            self.arenas.append(Arena(real, poison))

    @rule(shape=SHAPES, element=ELEMENTS, how=how, when=when)
    def acquire(self, shape: Any, element: str, how: str, when: int) -> None:
        real = self.during(lambda: self.pool.acquire(shape, element), how, when)
        if real is not None:
            assert not array_of(real).any()
            self.keep(real, pooled=True)

    @rule(n=PICK, how=how, when=when)
    def release(self, n: int, how: str, when: int) -> None:
        if found := [r for r in self.roots if r.pool]:
            root = found[n % len(found)]
            self.roots.remove(root)
            self.during(lambda: self.pool.release(root.real), how, when)

    @rule(n=PICK, way=st.sampled_from(list(VIEWS)))
    def view(self, n: int, way: str) -> None:
        if found := [r for r in self.roots if r.real.ndim]:
            root = found[n % len(found)]
            root.views.append(VIEWS[way](root.real))

    @rule(n=PICK, way=st.sampled_from(["all", *VIEWS]), how=how, when=when)
    def pin(self, n: int, way: str, how: str, when: int) -> None:
        if found := [r for r in self.roots if r.arena and r.real.ndim]:
            root = found[n % len(found)]
            t, arena = VIEWS.get(way, lambda x: x)(root.real), root.arena
            assert arena is not None
            self.during(lambda: arena.real.pin(t), how, when)
            arena.pins.append((t, bounds_of(t)[1] - arena.base))

    @rule(n=PICK, m=PICK)
    def unpin(self, n: int, m: int) -> None:
        if found := [a for a in self.arenas if a.pins]:
            arena = found[n % len(found)]
            arena.real.unpin(arena.pins.pop(m % len(arena.pins))[0])

    @rule(n=PICK, part=st.floats(0, 1))
    def set_floor(self, n: int, part: float) -> None:
        arena = self.arenas[n % len(self.arenas)]
        arena.floor = at = int(arena.used * part)
        arena.real.set_floor(at)

    @rule(n=PICK, part=st.sampled_from([0, 0, 0.2, 0.5, 0.9]), how=how, when=when)
    def reset(self, n: int, part: float, how: str, when: int) -> None:
        arenas = [a for a in self.arenas if a.pins] or self.arenas
        arena = arenas[n % len(arenas)]
        to = int(arena.used * part)
        if how in ("make", "acquire"):
            how = "ask"  # what is made in the midst of a reset is gone or not
        least = arena.least(to)
        self.forget(arena, least)
        assert self.during(lambda: arena.real.reset(to), how, when) == least == arena.real.used

    def forget(self, arena: Arena, to: int) -> None:
        self.roots = [r for r in self.roots if r.arena is not arena or r.end <= arena.base + to]

    @rule(which=st.sampled_from(["alive", "stats", "tensors", "pool"]), when=when)
    def ask(self, which: str, when: int) -> None:
        """While a tensor that is counted goes."""
        m = self.engine.memory
        asked: dict[str, Callable[[], Any]] = {
            "alive": m.alive,
            "stats": self.engine.stats,
            "tensors": lambda: m.tensors,
            "pool": lambda: len(self.pool),
        }
        with self.engine:
            self.during(asked[which], "drop", when)

    @rule(limit=st.sampled_from([None, None, 0, 1000, 5000, 9000]))
    def limit(self, limit: int | None) -> None:
        self.engine.memory.limit = limit
        assert self.engine.memory.limit == limit == self.engine.stats().limit

    @rule(n=PICK, kind=st.sampled_from(["use", "engine", "step"]))
    def enter(self, n: int, kind: str) -> None:
        if len(self.contexts) > 4:
            return
        arena = self.arenas[0] if kind == "step" else self.arenas[n % len(self.arenas)]
        context: Any = self.engine if kind == "engine" else self.engine.step() if kind == "step" else arena.real.use()
        context.__enter__()
        self.contexts.append((context, kind, arena.used))

    @rule()
    def leave(self) -> None:
        if not self.contexts:
            return
        context, kind, mark = self.contexts.pop()
        if kind == "step":
            arena = self.arenas[0]
            least = arena.least(min(mark, arena.used))
            self.forget(arena, least)
            context.__exit__(None, None, None)
            assert arena.real.used == least
            return self.look()
        context.__exit__(None, None, None)

    @rule(n=PICK)
    def drop(self, n: int) -> None:
        if len(self.roots) > 8 and not (root := self.roots[n % len(self.roots)]).pool:
            self.roots.remove(root)

    # --- what must hold

    @invariant()
    def each_byte_holds_what_its_owner_wrote(self) -> None:
        for r in self.roots:
            if r.real.nbytes:
                got = array_of(r.real).reshape(-1).view(np.uint8)
                assert (got == r.want).all(), f"{r.real} was overwritten"

    @invariant()
    def limits_hold_and_counts_are_those_of_tensors(self) -> None:
        m = self.engine.memory
        alive = m.alive()
        assert m.tensors == len(alive) == self.engine.stats().tensors
        assert m.allocated == sum(n for *_, n in alive)

    @invariant()
    def arenas_are_where_the_model_is(self) -> None:
        for a in self.arenas:
            assert a.real.used == a.used and 0 <= a.real.floor - a.floor < 64
            assert a.real.mark() % 64 == 0 or a.used == a.real.size, "the next tensor is not aligned"

    def teardown(self) -> None:
        for context, *_ in reversed(self.contexts):
            context.__exit__(None, None, None)


def test_memory_that_is_used_again_follows_the_model() -> None:
    run_state_machine_as_test(seed(SEED)(Memory), settings=TUNED)


@pytest.mark.parametrize("after", range(1, 5))
def test_an_arena_that_goes_while_a_tensor_is_made_in_it(after: int) -> None:
    """The context that it was entered by is garbage, and ends in the midst of the allocation."""

    def garbage() -> None:
        context = bc.TensorArena(4096).use()
        context.__enter__()
        Cycle(context, lambda: None)

    with collected(after, garbage):
        made = [bc.empty((4,)) for _ in range(4)]
    for i, t in enumerate(made):
        array_of(t)[...] = i
    others = [bc.empty((4,)) for _ in range(8)]
    for t in others:
        array_of(t)[...] = -1
    assert [array_of(t).tolist() for t in made] == [[i] * 4 for i in range(4)]


def test_threads_that_share_a_pool() -> None:
    pool, errors = bc.TensorPool(), []

    def work(value: int) -> None:
        try:
            for i in range(1000):
                t = pool.acquire((i % 40 + 1,))
                array_of(t)[...] = value
                assert (array_of(t) == value).all()
                pool.release(t)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors and not pool._lent and len(pool) <= 4 * 40
