"""What is measured: a case, its two sides, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from baracuda.choose.plan import Plan


@dataclass(frozen=True, slots=True)
class Statement:
    """A Python statement to time, with the names in it. Timed by `timeit`, so that no frame of ours is added.

    `clock` is wall time; `time.thread_time` for calls that run on one thread and wait for nothing, where another
    process that takes the CPU should not count.
    """

    text: str
    names: dict[str, Any]
    clock: Callable[[], float] = perf_counter

    @classmethod
    def call(cls, fn: Callable[[], object]) -> Statement:
        """The statement that calls `fn`."""
        return cls("f()", {"f": fn})


@dataclass(frozen=True, slots=True)
class Sides:
    """Both sides of a case, with their data.

    Attributes:
        ours: Our call.
        peer: The peer's; None where there is nothing like it.
        plans: Plans whose guarantees are re-proved before the row counts.
        results: Runs both sides once and gives (ours, peer) as lists of arrays, to see that they compute the same.
    """

    ours: Statement
    peer: Statement | None
    plans: Sequence[Plan] = ()
    results: Callable[[], tuple[list[Any], list[Any]]] | None = None

    @classmethod
    def calls(
        cls,
        ours: Callable[[], object],
        peer: Callable[[], Any],
        made: Plan,
        written: Callable[[], list[Any]] | None = None,
    ) -> Sides:
        """Two calls; `written` gives what ours has written, which must be what the peer returns."""

        def results() -> tuple[list[Any], list[Any]]:
            assert written is not None
            ours()
            theirs = peer()
            return written(), list(theirs) if isinstance(theirs, (list, tuple)) else [theirs]

        return cls(Statement.call(ours), Statement.call(peer), (made,), results if written is not None else None)


@dataclass(frozen=True, slots=True)
class Case:
    """One row of the table.

    Attributes:
        name: What is done; unique together with element.
        family: Family of the op, for --filter.
        element: Element of the data.
        shape: Sizes, for people.
        peer: The peer's call, for people.
        build: Makes the data and both sides; called when the case's turn comes.
        bytes: Bytes that one call must at least move: every input once, every output once.
        flops: Floating point operations that one call needs; an exp or a division counts as one.
        ceiling: Name of the measured ceiling that bounds it; "" for none.
        required: Ratio to the peer that is the least to reach.
        goal: Ratio to the peer that is aimed at.
        goal_ns: For call overheads: nanoseconds that are aimed at, or a function that gives them.
        tokens: For models: tokens per call.
    """

    name: str
    family: str
    element: str
    shape: str
    peer: str
    build: Callable[[], Sides]
    bytes: float = 0.0
    flops: float = 0.0
    ceiling: str = ""
    required: float | None = None
    goal: float | None = None
    goal_ns: float | Callable[[], float] | None = None
    tokens: int = 0

    @property
    def key(self) -> str:
        """Name and element."""
        return f"{self.name} {self.element}"


@dataclass(slots=True)
class Row:
    """A case's result, as it goes into the JSON file. Times are seconds per call.

    Attributes:
        status: "measured", "skipped" (the op is not in this build), "broken" (a guarantee is not kept, or the two sides
            disagree: the times do not count) or "error".
        reason: Why it is not "measured".
        ratio: Median over the runs of peer time / our time, with its quartiles.
        met: Whether the median reaches 0.95 of the goal; None without a goal.
        met_required: The same for the required ratio.
        load: One-minute load average when the row was done.
        pairs: How many pairs of runs were made; those that count are the least disturbed ones.
        switches: Involuntary context switches during the runs that count: other processes wanted the CPU.
        faults: Page faults during the runs that count, (ours, peer): allocation cost that should be 0.
    """

    name: str
    family: str
    element: str
    shape: str
    peer: str
    status: str = "measured"
    reason: str = ""
    skus: list[str] = field(default_factory=list)
    ours: dict[str, Any] | None = None
    theirs: dict[str, Any] | None = None
    ratio: dict[str, float] | None = None
    required: float | None = None
    goal: float | None = None
    goal_ns: float | None = None
    met: bool | None = None
    met_required: bool | None = None
    bytes: float = 0.0
    flops: float = 0.0
    tokens: int = 0
    ceiling: dict[str, Any] | None = None
    load: float = 0.0
    pairs: int = 0
    switches: int = 0
    faults: tuple[int, int] = (0, 0)
