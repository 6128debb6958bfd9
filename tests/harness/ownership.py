"""What the model of the lifetimes knows: memory, the objects that show it, and what a call does to them."""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from capsules import Counted
from torch.multiprocessing.reductions import StorageWeakRef

import baracuda as bc

COLUMNS = 1500  # a call of ADD then gives the interpreter to other threads while it computes
ADD = bc.plan(bc.BinaryDescriptor("add", (4, COLUMNS), (4, COLUMNS)))
CAT = bc.plan(bc.CatDescriptor(((4, COLUMNS), (4, COLUMNS)), axis=0))
PLANS = {"add": ADD, "cat": CAT}
ROWS = {ADD: (4, 4, 4), CAT: (4, 4, 8)}  # of a call's tensors, the output last


@dataclass(eq=False)
class Block:
    """Memory: what it must hold, and whether it is there still, where that can be seen."""

    want: np.ndarray
    lives: Callable[[], bool] | None = None
    fixed: bool = True  # torch refuses to resize a storage that others may know
    epoch: int = 0  # how often it was resized
    emptied: bool = False
    pinned: bool = False
    counted: Counted | None = None
    consumed: bool = False


@dataclass(eq=False)
class Thing:
    """A Python object that shows some rows of a block; a capsule that was used shows none."""

    kind: str
    real: Any
    block: Block | None
    row: int = 0
    rows: int = 4
    writes: bool = True
    root: bool = False
    pinned: bool = False
    # What is alive through this besides its block: the blocks that torch tensors have now which it was borrowed from.
    kept: list[list[Block]] = field(default_factory=list)
    # Of a torch tensor: its block in a list, which its borrowers have among `kept`.
    now: list[Block] = field(default_factory=list)

    @property
    def want(self) -> np.ndarray:
        assert self.block is not None
        return self.block.want[self.row : self.row + self.rows]

    def place(self) -> tuple[Block | None, int, int]:
        return self.block, self.row, self.row + self.rows

    def overlaps(self, other: Thing) -> bool:
        return self.block is other.block and self.row < other.row + other.rows and other.row < self.row + self.rows


@dataclass(eq=False)
class Bound:
    plan: Any
    real: Any
    args: list[Thing]
    anchors: list[tuple[Block | None, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.anchors = [(t.block, t.block.epoch if t.block else 0) for t in self.args]

    def moved(self) -> bool:
        return any(
            (t.block, t.block.epoch if t.block else 0) != a for t, a in zip(self.args, self.anchors, strict=True)
        )


class Once:
    """A producer that does something before it hands its tensor out for the first time."""

    def __init__(self, real: Any, act: Callable[[], Any] | None = None) -> None:
        self.real, self.act = real, act

    def __dlpack__(self, **kwargs: Any) -> Any:
        act, self.act = self.act, None
        if act:
            act()
        return self.real.__dlpack__(**kwargs) if hasattr(self.real, "__dlpack__") else self.real

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def holds(real: Any, want: np.ndarray) -> bool:
    if isinstance(real, torch.Tensor):
        return torch.equal(real, torch.from_numpy(want))
    return np.array_equal(np.from_dlpack(real), want)


def compute(plan: Any, args: list[Thing]) -> None:
    a, b, y = args
    y.want[...] = a.want + b.want if plan is ADD else np.concatenate([a.want, b.want])


def arguments(plan: Any, args: Iterable[Any]) -> tuple[Any, ...]:
    a, b, y = args
    return (a, b, y) if plan is ADD else ([a, b], y)


def wrong(plan: Any, args: list[Thing]) -> set[str]:
    """The codes by which these tensors may be refused; none when they must not be."""
    *inputs, y = args
    if any(t.block and t.block.emptied for t in args):
        return {"null_data"}
    codes = {"shape"} if tuple(t.rows for t in args) != ROWS[plan] else set()
    if not y.writes:
        codes.add("read_only")
    if any(t.overlaps(y) and (plan is CAT or t.place() != y.place()) for t in inputs):
        codes.add("overlap")
    return codes


def take(args: list[Thing]) -> tuple[list[Thing], set[str]]:
    """What a call holds of its arguments: capsules are consumed in turn, up to one that was used."""
    taken = []
    for t in args:
        if t.kind == "capsule":
            if t.block is None:
                return taken, {"capsule"}
            owner = Thing("ours", None, t.block, t.row, t.rows, t.writes, kept=t.kept)
            t.block.consumed, t.block = True, None
            t = owner
        taken.append(t)
    return taken, set()


def attempt(call: Callable[[], Any], codes: set[str]) -> Any:
    """What the call returns; None where it was refused, as it had to be."""
    try:
        got = call()
    except bc.BaracudaError as e:
        assert e.code in codes, f"{e.code}, want one of {sorted(codes)}: {e}"
        return None
    assert not codes, f"not refused, want one of {sorted(codes)}"
    return got


def together(*work: Callable[[], Any]) -> list[str]:
    """Each in a thread of its own, at once: the codes of their errors, "" for none."""
    gate, codes, errors = threading.Barrier(len(work)), [""] * len(work), []

    def body(k: int) -> None:
        try:
            gate.wait()
            work[k]()
        except bc.BaracudaError as e:
            codes[k] = e.code
        except BaseException as e:
            errors.append(e)

    threads = [threading.Thread(target=body, args=(k,), daemon=True) for k in range(len(work))]
    for t in threads:
        t.start()
    for t in threads:
        t.join(120)
        assert not t.is_alive(), "a thread hangs"
    if errors:
        raise errors[0]
    return codes


# --- objects ------------------------------------------------------------------------------------------------------------


def references(things: list[Any]) -> set[int]:
    return {sys.getrefcount(t) for t in things}


def is_there(reference: weakref.ref[Any]) -> Callable[[], bool]:
    return lambda: reference() is not None


def fresh(kind: str, rows: int, value: int) -> Thing:
    want = np.arange(rows * COLUMNS, dtype=np.float32).reshape(rows, COLUMNS) % 31 + value
    real = want.copy()
    if kind == "torch":
        made = torch.tensor(want.tolist())  # not from NumPy: torch does not resize that
        storage = StorageWeakRef(made.untyped_storage())
        return Thing(kind, made, Block(want, lambda: not storage.expired(), fixed=False), rows=rows, root=True)
    if kind == "np":
        return Thing(kind, real, Block(want, is_there(weakref.ref(real))), rows=rows, root=True)
    if kind == "resizable":  # by NumPy's rule, an array without weak references
        return Thing("np", real, Block(want, fixed=False), rows=rows, root=True)
    if kind == "ours":
        made = bc.from_pointer(real.ctypes.data, real.shape, "f32", owner=real)
        return Thing(kind, made, Block(want, is_there(weakref.ref(real))), rows=rows, root=True)
    counted = Counted(want, kind == "versioned")
    block = Block(want, lambda: counted.deleted == 0, counted=counted)
    return Thing("capsule", counted.capsule(), block, rows=rows, writes=kind == "versioned")


KINDS = ("torch", "torch", "np", "resizable", "ours", "versioned", "legacy")
