"""A model of who owns what, driven by hypothesis: memory lives exactly as long as someone uses it, whatever comes."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from ownership import (
    ADD,
    CAT,
    COLUMNS,
    KINDS,
    PLANS,
    ROWS,
    Block,
    Bound,
    Once,
    Thing,
    arguments,
    attempt,
    compute,
    fresh,
    holds,
    references,
    take,
    together,
    wrong,
)

import baracuda as bc
import baracuda.functional as F
from conftest import FULL, SEED

pytestmark = pytest.mark.timeout(3600 if FULL else 300)

GATHER = bc.GatherPlan.select(
    bc.GatherDescriptor((4, COLUMNS), (4, COLUMNS), 0), preference=bc.PlanPreference(threads=1)
)
BEYOND = np.full((4, COLUMNS), 9)
EXAMPLES, STEPS = (400, 60) if FULL else (40, 40)
# In CI a failure is shown as it was found: to make it smaller takes minutes.
PHASES = [Phase.generate, Phase.shrink] if FULL else [Phase.generate]
TUNED = settings(
    max_examples=EXAMPLES,
    stateful_step_count=STEPS,
    deadline=None,
    database=None,
    phases=PHASES,
    suppress_health_check=list(HealthCheck),
)
PICK = st.integers(0, 2**16)
MANY = 3  # threads


class Lifetimes(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.pool: list[Thing] = []
        self.bounds: list[Bound] = []
        self.blocks: list[Block] = []
        self.generator, self.offset = bc.Generator(SEED), 0
        self.threads = bc.get_num_threads()
        self.plans = [sys.getrefcount(p) for p in ROWS]

    @initialize(values=st.lists(st.integers(-9, 9), min_size=5, max_size=5))
    def begin(self, values: list[int]) -> None:
        for k, (kind, rows) in enumerate((("torch", 8), ("np", 4), ("ours", 8), ("torch", 4), ("np", 4))):
            self.add(fresh(kind, rows, values[k]))
        self.add(fresh("versioned", 4, 1))
        self.keep(ADD, [self.pool[k] for k in (3, 1, 4)])

    def add(self, thing: Thing) -> Thing:
        if thing.block and thing.block not in self.blocks:
            self.blocks.append(thing.block)
        self.pool.append(thing)
        if len(self.pool) > 12:
            del self.pool[0]
        return thing

    def pin(self, t: Thing) -> None:
        """torch's own capsules do not keep the memory of a tensor that is given another."""
        t.pinned = t.block.pinned = True  # type: ignore[union-attr]
        t.block.fixed |= t.kind == "np" and t.root  # type: ignore[union-attr]

    def pick(self, n: int, fits: Callable[[Thing], bool] = lambda t: True) -> Thing | None:
        found = [t for t in self.pool if fits(t)]
        return found[n % len(found)] if found else None

    def choose(self, plan: Any, picks: list[int]) -> list[Thing] | None:
        """Tensors of a call: mostly of the right shape, sometimes any."""
        got = [
            self.pick(n // 8, lambda t, r=r, n=n: n % 8 == 0 or t.rows == r)
            for n, r in zip(picks, ROWS[plan], strict=True)
        ]
        return None if None in got else got  # type: ignore[return-value]

    def keep(self, plan: Any, args: list[Thing]) -> None:
        reals = [t.real for t in args]
        taken, codes = take(args)
        codes = codes or wrong(plan, taken)
        bound = attempt(lambda: plan.bind(*arguments(plan, reals)), codes)
        if bound is not None:
            del self.bounds[: len(self.bounds) - 3]
            self.bounds.append(Bound(plan, bound, taken))

    # --- objects come and go --------------------------------------------------------------------------------------------

    @rule(kind=st.sampled_from(KINDS), rows=st.sampled_from((4, 4, 8)), value=st.integers(-9, 9))
    def make(self, kind: str, rows: int, value: int) -> None:
        self.add(fresh(kind, rows, value))

    @rule(n=PICK, row=st.integers(0, 4))
    def view(self, n: int, row: int) -> None:
        if t := self.pick(n, lambda t: t.kind != "capsule" and t.rows == 8):
            t.block.fixed |= t.kind == "np" and t.root  # type: ignore[union-attr]
            if t.kind == "torch":  # its own views would also hold the tensor that they are of
                start = t.real.storage_offset() + row * COLUMNS
                real = t.real.new_empty(0).set_(t.real.untyped_storage(), start, (4, COLUMNS))
            else:
                real = t.real[row : row + 4]
            self.add(Thing(t.kind, real, t.block, t.row + row, 4, t.writes, kept=t.kept))

    @rule(n=PICK, versioned=st.booleans())
    def export(self, n: int, versioned: bool) -> None:
        if t := self.pick(n, lambda t: t.kind != "capsule" and (versioned or t.writes)):
            capsule = t.real.__dlpack__(**({"max_version": (1, 0)} if versioned else {}))
            self.pin(t)
            self.add(Thing("capsule", capsule, t.block, t.row, t.rows, t.writes and versioned, kept=t.kept))

    @rule(n=PICK, by=st.sampled_from(("ours", "ours", "torch", "np")))
    def consume(self, n: int, by: str) -> None:
        """A capsule's memory goes to a new owner."""
        t = self.pick(n, lambda t: t.kind == "capsule" and (by == "ours" or t.block is not None))
        if t is None:
            return
        taken, codes = take([t])
        consumers = {
            "ours": bc.from_dlpack,
            "torch": torch.utils.dlpack.from_dlpack,
            "np": lambda c: np.from_dlpack(Once(c)),
        }
        got = attempt(lambda: consumers[by](t.real), codes)
        if got is not None:
            taken[0].kind, taken[0].real = by, got
            taken[0].writes = by == "torch" or (got.flags.writeable if by == "np" else taken[0].writes)
            self.add(taken[0])

    @rule(n=PICK, by=st.sampled_from(("ours", "np")))
    def borrow(self, n: int, by: str) -> None:
        if t := self.pick(n, lambda t: t.kind in ("ours", "np", "torch")):
            real = bc.from_dlpack(t.real) if by == "ours" else np.from_dlpack(t.real)
            if by == "ours":
                t.block.fixed |= t.kind == "torch" or t.root  # type: ignore[union-attr]
            else:
                self.pin(t)
            kept = t.kept
            if by == "ours" and t.kind == "torch":
                t.now = t.now or [t.block]  # type: ignore[list-item]
                kept = [*kept, t.now]
            writes = real.flags.writeable if by == "np" else not real.read_only
            self.add(Thing(by, real, t.block, t.row, t.rows, writes, kept=kept))

    @rule(n=PICK)
    def drop(self, n: int) -> None:
        if self.pool:
            del self.pool[n % len(self.pool)]

    @rule(n=PICK)
    def unbind(self, n: int) -> None:
        if self.bounds:
            del self.bounds[n % len(self.bounds)]

    @rule(n=PICK, value=st.integers(-9, 9))
    def write(self, n: int, value: int) -> None:
        """What is written through one object is seen through all others."""
        if t := self.pick(n, lambda t: t.kind in ("np", "torch") and t.writes):
            t.real[1] = value
            t.want[1] = value

    @rule(n=PICK, value=st.integers(-9, 9), how=st.sampled_from(("data", "set_", "grow", "empty")))
    def move(self, n: int, value: int, how: str) -> None:
        """A torch tensor, or a storage, is given other memory."""
        if t := self.pick(n, lambda t: t.kind == "torch"):
            self.move_torch(t, value, how)

    def move_torch(self, t: Thing, value: int, how: str) -> None:
        block = t.block
        assert block is not None
        if how in ("data", "set_"):
            if t.pinned:
                return
            other = fresh("torch", t.rows, value)
            self.blocks.append(other.block)  # type: ignore[arg-type]
            if how == "data":
                t.real.data = other.real
            else:
                t.real.set_(other.real)
            t.block, t.row = other.block, 0
            t.now[:] = [other.block for _ in t.now]  # type: ignore[misc]
            return
        storage = t.real.untyped_storage()
        if block.pinned and not block.fixed:
            return
        if block.fixed:
            with pytest.raises(RuntimeError, match="resiz"):
                storage.resize_(storage.nbytes() + 4096)
        else:
            storage.resize_(storage.nbytes() + 4096 if how == "grow" else 0)
            block.epoch += 1
            if how == "empty":
                block.emptied = True
                self.pool = [t for t in self.pool if t.block is not block]

    @rule(n=PICK)
    def resize(self, n: int) -> None:
        """A NumPy array that nothing but bound plans knows; never back to a size that it had."""
        others = [t for t in self.things() if t.kind == "np"]
        if t := self.pick(n, lambda t: t.kind == "np" and t.root and not t.block.fixed):  # type: ignore[union-attr]
            if sum(o.block is t.block for o in others) > 1:
                return
            t.real.resize((t.rows + 4, COLUMNS), refcheck=False)
            t.rows += 4
            t.block = Block(t.real.copy(), fixed=False)
            self.blocks.append(t.block)

    # --- calls ----------------------------------------------------------------------------------------------------------

    @rule(op=st.sampled_from(list(PLANS)), picks=st.lists(PICK, min_size=3, max_size=3))
    def bind(self, op: str, picks: list[int]) -> None:
        plan = PLANS[op]
        if args := self.choose(plan, picks):
            self.keep(plan, args)

    @rule(op=st.sampled_from(list(PLANS)), picks=st.lists(PICK, min_size=3, max_size=3), asks=st.booleans())
    def run(self, op: str, picks: list[int], asks: bool) -> None:
        plan = PLANS[op]
        args = self.choose(plan, picks)
        if args is None:
            return
        reals = [t.real for t in args]
        if asks:  # consumes nothing
            used = any(t.kind == "capsule" and t.block is None for t in args)
            assert bool(plan.can_implement(*arguments(plan, reals))) == (not used and not wrong(plan, args))
        taken, codes = take(args)
        codes = codes or wrong(plan, taken)
        if attempt(lambda: plan.run(*arguments(plan, reals)), codes) is not None:
            compute(plan, taken)

    @rule(picks=st.lists(PICK, min_size=2, max_size=2))
    def function(self, picks: list[int]) -> None:
        args = [self.pick(n, lambda t: t.rows == 4) for n in picks]
        if None in args:
            return
        reals = [t.real for t in args]  # type: ignore[union-attr]
        taken, codes = take(args)  # type: ignore[arg-type]
        got = attempt(lambda: F.add(*reals), codes)
        assert got is None or holds(got, taken[0].want + taken[1].want)

    @precondition(lambda self: self.bounds)
    @rule(n=PICK, threads=st.booleans(), keeps=st.booleans())
    def call(self, n: int, threads: bool, keeps: bool) -> None:
        b = self.bounds[n % len(self.bounds)]
        y, moved = b.args[-1], b.moved()
        version = y.real._version if y.kind == "torch" else 0
        if threads:
            codes = together(*[b.real] * MANY)
            assert set(codes) <= {"busy", "moved" if moved else ""} and set(codes) != {"busy"}, codes
            times = codes.count("")
        else:
            got = attempt(b.real, {"moved"} if moved else set())
            times = int(got is not None)
            if got is not None and y.real is None:  # a capsule was given
                y.real = got
            assert got is None or got is y.real
            if keeps and got is not None and y not in self.pool:
                self.add(y)
        for _ in range(times):
            compute(b.plan, b.args)
        assert y.kind != "torch" or (y.real._version > version) == (times > 0)

    @precondition(lambda self: self.bounds)
    @rule(n=PICK, which=st.sets(st.integers(0, 1)), picks=st.lists(PICK, min_size=3, max_size=3))
    def rebind(self, n: int, which: set[int], picks: list[int]) -> None:
        """Of some arguments, or of none, which takes their memory as it is now."""
        b = self.bounds[n % len(self.bounds)]
        args = self.choose(b.plan, picks)
        if args is None:
            return
        names, slots = (("tensors", "y"), [(0, 1), (2,)]) if b.plan is CAT else (("a", "y"), [(0,), (2,)])
        new = [i for k in sorted(which) for i in slots[k]]
        given = {names[k]: [args[i].real for i in slots[k]] for k in which}
        taken, codes = take([args[i] for i in new])
        mixed = list(b.args)
        for i, t in zip(new, taken, strict=False):
            mixed[i] = t
        codes = codes or wrong(b.plan, mixed)
        given = {k: v if len(v) == 2 else v[0] for k, v in given.items()}
        if attempt(lambda: b.real.rebind(**given), codes) is not None:
            self.bounds[self.bounds.index(b)] = Bound(b.plan, b.real, mixed)

    @precondition(lambda self: any(b.plan is ADD for b in self.bounds))
    @rule(n=PICK, m=PICK, act=st.sampled_from(("call", "rebind", "collect", "drop", "move")))
    def rebind_to_a_producer(self, n: int, m: int, act: str) -> None:
        """Whose code uses the bound plan, drops its arguments, or moves them."""
        adds = [b for b in self.bounds if b.plan is ADD]
        b, t = adds[n % len(adds)], self.pick(m, lambda t: t.kind == "ours")
        if t is None:
            return
        inner, victim = [], next((a for a in b.args[1:] if a.kind == "torch"), None)
        mixed = [Thing("producer", None, t.block, t.row, t.rows, t.writes), *b.args[1:]]
        codes = wrong(ADD, mixed)
        if t.rows != ROWS[ADD][0]:  # is seen before the memory of those that stay
            codes.add("shape")

        def acts() -> None:
            if act in ("call", "rebind"):
                try:
                    b.real() if act == "call" else b.real.rebind()
                except bc.BaracudaError as e:
                    inner.append(e.code)
            elif act == "drop":
                self.pool.clear()
            elif act == "move" and victim and not codes and not victim.pinned:
                self.move_torch(victim, 3, "data")
                codes.add("moved")
            gc.collect()

        mixed[0].real = Once(t.real, acts)
        try:
            b.real.rebind(a=mixed[0].real)
        except bc.BaracudaError as e:
            assert e.code in codes, e
        else:
            assert not codes
            self.bounds[self.bounds.index(b)] = Bound(ADD, b.real, mixed)
        assert inner == (["busy"] if act in ("call", "rebind") else [])

    @precondition(lambda self: any(b.plan is ADD for b in self.bounds))
    @rule(n=PICK, pick=PICK, value=st.integers(-9, 9))
    def threads_that_rebind(self, n: int, pick: int, value: int) -> None:
        adds = [b for b in self.bounds if b.plan is ADD]
        b = adds[n % len(adds)]
        choices = [fresh("np", 4, value), fresh("torch", 4, value), fresh("versioned", 4, value)]
        codes = together(*(lambda t=t: b.real.rebind(a=t.real) for t in choices))  # type: ignore[misc]
        assert set(codes) <= {"", "busy", *wrong(ADD, [choices[0], *b.args[1:]])}, codes
        capsule = choices[2].block
        assert capsule is not None
        capsule.consumed = codes[2] != "busy"
        self.blocks.append(capsule)
        last = self.add(choices[pick % 2])
        mixed = [last, *b.args[1:]]
        if attempt(lambda: b.real.rebind(a=last.real), wrong(ADD, mixed)) is not None:
            self.bounds[self.bounds.index(b)] = Bound(ADD, b.real, mixed)

    @rule(n=PICK)
    def error_in_the_data(self, n: int) -> None:
        """Nothing is written, nothing is kept; autograd is told nevertheless."""
        y = self.pick(n, lambda t: t.kind in ("torch", "np") and t.rows == 4 and t.writes)
        if y is None:
            return
        version = y.real._version if y.kind == "torch" else 0
        with pytest.raises(bc.IndexOutOfRangeError):
            GATHER.run(np.ones((4, COLUMNS), np.float32), BEYOND, y.real)
        assert y.kind != "torch" or y.real._version > version

    @rule(n=st.integers(1, 40), how=st.sampled_from(("draw", "refused", "threads")))
    def draw(self, n: int, how: str) -> None:
        half = np.full(n, 0.5, np.float32)
        blocks = -(-n // 4)
        if how == "refused":
            with pytest.raises(bc.BaracudaError):
                F.bernoulli(half, generator=self.generator, out=np.zeros(n + 1, np.float32))
            return
        if how == "threads":
            assert together(*[lambda: F.bernoulli(half, generator=self.generator)] * MANY) == [""] * MANY
            self.offset += MANY * blocks
            return
        got = F.bernoulli(half, generator=self.generator)
        assert got.tobytes() == F.bernoulli(half, generator=bc.Generator(SEED, self.offset)).tobytes()
        self.offset += blocks

    # --- what must hold -------------------------------------------------------------------------------------------------

    def things(self) -> list[Thing]:
        return list({id(t): t for t in (*self.pool, *(t for b in self.bounds for t in b.args))}.values())

    @invariant()
    def memory_lives_as_long_as_it_is_used(self) -> None:
        gc.collect()
        used = {id(block) for t in self.things() for block in (t.block, *(now for (now,) in t.kept))}
        used |= {id(a) for b in self.bounds for a, _ in b.anchors}
        for block in self.blocks:
            if block.counted:
                want = int(block.consumed and id(block) not in used)
                assert block.counted.deleted == want, f"deleted {block.counted.deleted} times, want {want}"
            elif block.lives:
                assert block.lives() == (id(block) in used), "freed too early" if id(block) in used else "never freed"
        self.blocks = [b for b in self.blocks if id(b) in used]

    @invariant()
    def values_are_the_model_s(self) -> None:
        for t in self.things():
            if t.real is not None and t.kind in ("np", "torch", "ours") and not t.block.emptied:  # type: ignore[union-attr]
                assert holds(t.real, t.want), t.kind

    @invariant()
    def settings_stay(self) -> None:
        assert bc.get_num_threads() == self.threads
        assert self.generator.get_state() == (SEED, self.offset)

    def teardown(self) -> None:
        roots = [t.real for t in self.things() if t.root and t.kind != "capsule"]
        self.pool.clear()
        self.bounds.clear()
        if sys.exc_info()[0]:
            return  # what failed holds references
        gc.collect()
        assert references(roots) <= references([np.zeros(1), torch.zeros(1), bc.zeros((1,))])
        del roots
        self.memory_lives_as_long_as_it_is_used()
        assert [sys.getrefcount(p) for p in ROWS] == self.plans


def test_lifetimes_follow_the_model() -> None:
    run_state_machine_as_test(seed(SEED)(Lifetimes), settings=TUNED)
