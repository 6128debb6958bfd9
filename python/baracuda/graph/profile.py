"""Where a graph's time goes: each launch by itself, in the order in which they run."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from html import escape
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any

from baracuda import _core
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.sizes import SizeExpr
from baracuda.graph.lower import memory_of
from baracuda.graph.nodes import Draw, Launch, Slot, View
from baracuda.memory.stream import Event, Stream
from baracuda.memory.views import contiguous_strides

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from baracuda.graph.execution import ExecutionPlan


@dataclass(frozen=True, slots=True)
class Timed:
    """One launch.

    Attributes:
        node: Index of the graph's node; -1 for copies of results.
        name: The node's.
        sku: The kernel.
        microseconds: Median of the runs.
        bytes: That it reads and writes, at least.
    """

    node: int
    name: str
    sku: str
    microseconds: float
    bytes: int


@dataclass(frozen=True, slots=True)
class Profile:
    """Times of all launches of a run; `print` it, or look at `to_svg()`."""

    launches: tuple[Timed, ...]

    @property
    def microseconds(self) -> float:
        """Of all launches together."""
        return sum(t.microseconds for t in self.launches)

    def __str__(self) -> str:
        whole = self.microseconds or 1.0
        lines = [f"{'node':>5} {'us':>10} {'share':>6} {'GB/s':>7}  kernel"]
        for t in self.launches:
            rate = t.bytes / t.microseconds / 1e3 if t.microseconds else 0.0
            node = str(t.node) if t.node >= 0 else ""
            lines.append(
                f"{node:>5} {t.microseconds:>10.1f} {t.microseconds / whole:>6.1%} {rate:>7.1f}  {t.name}: {t.sku}"
            )
        return "\n".join([*lines, f"{'':5} {self.microseconds:>10.1f}  {len(self.launches)} launches"])

    def to_svg(self) -> str:
        """A picture: all launches side by side, as wide as they take long; below them the nodes that they belong to."""
        wide, whole = 1000.0, self.microseconds or 1.0
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide + 20:.0f}" height="90" font-family="Helvetica, Arial, '
            'sans-serif" font-size="11">',
            f'<rect width="{wide + 20:.0f}" height="90" fill="#fff"/>',
        ]
        nodes: list[tuple[int, str, float, float]] = []
        x = 10.0
        for t in self.launches:
            width = wide * t.microseconds / whole
            lines += _box(
                x,
                12,
                width,
                f"{t.sku.split('.')[0]} {t.microseconds:.1f} us",
                f"{t.sku}: {t.microseconds:.2f} us",
                "#f4c95d",
            )
            if nodes and nodes[-1][0] == t.node:
                nodes[-1] = (t.node, nodes[-1][1], nodes[-1][2], nodes[-1][3] + width)
            else:
                nodes.append((t.node, t.name, x, width))
            x += width
        for node, name, start, width in nodes:
            lines += _box(start, 48, width, f"{node} {name}" if node >= 0 else name, name, "#dceefb")
        return "\n".join([*lines, "</svg>"])

    _repr_svg_ = to_svg  # what notebooks show


def _box(x: float, y: float, width: float, text: str, title: str, fill: str) -> list[str]:
    shown = text[: int(width / 6.5)]
    return [
        f'<g><title>{escape(title)}</title><rect x="{x:.2f}" y="{y:.0f}" width="{width:.2f}" height="30" fill="{fill}" stroke="#456"/>',
        f'<text x="{x + 4:.2f}" y="{y + 19:.0f}">{escape(shown)}</text></g>',
    ]


def profiled(plan: ExecutionPlan, given: Sequence[Any], runs: int) -> Profile:
    """Runs every launch by itself, with memory of its own for each value, and times it."""
    stream = None if plan.device == "cpu" else Stream(plan.device)
    memory = _Memory(plan, given)
    bound = [memory.bound(launch, stream) for launch in plan._lowered.launches]
    measure = _by_clock if stream is None else partial(_by_events, stream)
    times: list[list[float]] = []
    for _ in range(runs):
        memory.restore()
        times.append(measure(bound))
    timed = []
    for launch, found in zip(plan._lowered.launches, zip(*times, strict=True), strict=True):
        size = sum(memory.size(v) for v in launch.tensors)
        name = plan._nodes.get(launch.node, "copy of a result")
        timed.append(Timed(launch.node, name, launch.plan.sku.name, median(found), size))
    return Profile(tuple(timed))


def _by_clock(calls: Sequence[Callable[[], Any]]) -> list[float]:
    """Microseconds of each call, which is done when it returns."""
    found = []
    for call in calls:
        start = time.perf_counter()
        call()
        found.append((time.perf_counter() - start) * 1e6)
    return found


def _by_events(stream: Stream, calls: Sequence[Callable[[], Any]]) -> list[float]:
    """Microseconds of what each call gives to a stream, between events before and behind it."""
    events = [Event(stream.device) for _ in range(len(calls) + 1)]
    events[0].record(stream)
    for call, behind in zip(calls, events[1:], strict=True):
        call()
        behind.record(stream)
    stream.synchronize()  # tells what kernels have found, too
    return [start.elapsed_time(end) * 1e3 for start, end in pairwise(events)]


class _Memory:
    """All values of one run: copies of what it is given and of what was captured, and new memory."""

    def __init__(self, plan: ExecutionPlan, given: Sequence[Any]) -> None:
        self.device = plan.device
        self.sizes: dict[str, int] = {}
        self.roots: dict[Slot, Any] = {}
        self.sources: list[tuple[Any, Any]] = []
        known = [(slot, _core.borrow(value)) for slot, value in zip(plan._leaves, given, strict=True)]
        for slot, seen in known:
            self._read_sizes(slot, seen)
        for slot, seen in known:
            self._check(slot, seen)
            self._copied(slot, seen)
        for launch in plan._lowered.launches:
            for v in (*launch.reads, *launch.writes):
                if v.slot in self.roots:
                    continue
                if v.slot.kind == "constant":
                    self._copied(v.slot, memory_of(v.slot, self.device))
                else:
                    self.roots[v.slot] = self._empty(self.at(v.slot.count), v.slot.element)

    def _empty(self, count: int, element: Any) -> Any:
        return _core.empty((count,), element, device=self.device)

    def _read_sizes(self, slot: Slot, seen: Any) -> None:
        """Takes the sizes that are a `bc.Dim` itself from an argument."""
        if len(seen.shape) != len(slot.shape):
            raise InvalidProblemError(f"{slot.name}: got rank {len(seen.shape)}, want {len(slot.shape)}.")
        for size, n in zip(slot.shape, seen.shape, strict=True):
            if isinstance(size, SizeExpr) and size.divisor == 1 and list(size.terms.values()) == [1]:
                ((key, _),) = size.terms.items()
                if len(key) == 1:
                    self.sizes.setdefault(key[0], n)

    def _check(self, slot: Slot, seen: Any) -> None:
        """Refuses an argument that `run` would refuse: the copies are as large as the graph says."""
        want = tuple(map(self.at, slot.shape))
        got = tuple(seen.shape), str(seen.element), seen.device
        if got != (want, str(slot.element), self.device):
            raise InvalidProblemError(
                f"{slot.name}: got {got[1]}{list(got[0])} on {got[2]}, want {slot.element}{list(want)} on {self.device}."
            )
        for size in slot.shape:
            for name, most in getattr(size, "most", {}).items():  # where it follows a bc.Dim
                if self.sizes[name] > most:
                    raise InvalidProblemError(f"{slot.name}: got {name} = {self.sizes[name]}, want at most {most}.")

    def _copied(self, slot: Slot, value: Any) -> None:
        made = self._empty(self.at(slot.count), slot.element)
        shape = tuple(value.shape)
        seen = _core.view_of(made, 0, shape, slot_strides(slot, shape), int(slot.element))
        self.roots[slot] = made
        self.sources.append((seen, value))

    def restore(self) -> None:
        """What the arguments and captured tensors held."""
        from baracuda.ops.layout.layout import copy

        for seen, value in self.sources:
            copy(value, out=seen)

    def at(self, size: Any) -> Any:
        """A size of this run; any other number as it is."""
        return size.at(self.sizes) if isinstance(size, SizeExpr) else size

    def size(self, v: View) -> int:
        """Bytes of a view."""
        return int(self.at(v.numel)) * v.element.nbytes

    def _seen(self, v: View) -> Any:
        shape, strides = tuple(map(self.at, v.shape)), tuple(map(self.at, v.strides))
        return _core.view_of(self.roots[v.slot], self.at(v.offset), shape, strides, int(v.element))

    def bound(self, launch: Launch, stream: Stream | None) -> Any:
        """The launch as a call without arguments."""
        given = launch.arguments(self._seen, lambda n: 0 if isinstance(n, Draw) else self.at(n))
        if launch.plan.workspace_size:
            given["workspace"] = self._empty(launch.plan.workspace_size, "u8")
        return launch.plan.bind(**given, stream=stream)


def slot_strides(slot: Slot, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of a leaf in memory of its own."""
    fixed = all(isinstance(s, int) for s in slot.strides)
    return tuple(slot.strides) if fixed and slot.kind == "leaf" else contiguous_strides(shape)
