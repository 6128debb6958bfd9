"""What was compiled, what torch ran in the place of baracuda, why, and what it cost."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field


@dataclass(slots=True)
class Fallback:
    """An overload that torch runs between partitions.

    Attributes:
        op: Its name.
        why: Why baracuda does not: of the last such node.
        nodes: In how many places of all graphs.
        calls: How often it ran.
        seconds: How long that took in all.
    """

    op: str
    why: str
    nodes: int = 0
    calls: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class Report:
    """What `torch.compile(backend="baracuda")` has done in this process.

    Attributes:
        graphs: Graphs that torch handed over: forward, backward and inference ones each.
        sizes: Of graphs with open sizes, for how many sizes they were compiled.
        nodes: Calls in all of them.
        partitions: Programs that they became.
        launches: Kernels of one run of each of these.
        runs: Runs of programs.
        seconds: How long these took in all.
        lowering: How long making them took.
        fallbacks: What torch runs, by overload.
        whole: Why graphs run in torch as a whole, and how many do.
        closed: Why graphs with open sizes cannot be one program for all of them, and how many cannot.
        relaid: Arguments that came with other strides than were promised, and were copied.
        refused: Runs of programs that were refused, with the last reason: torch ran their nodes.
    """

    graphs: int = 0
    sizes: int = 0
    nodes: int = 0
    partitions: int = 0
    launches: int = 0
    runs: int = 0
    seconds: float = 0.0
    lowering: float = 0.0
    fallbacks: dict[str, Fallback] = field(default_factory=dict)
    whole: dict[str, int] = field(default_factory=dict)
    closed: dict[str, int] = field(default_factory=dict)
    relaid: int = 0
    refused: dict[str, int] = field(default_factory=dict)

    def fallback(self, op: str, why: str) -> Fallback:
        """The entry of an overload, with one node more."""
        found = self.fallbacks.setdefault(op, Fallback(op, why))
        found.why = why
        found.nodes += 1
        return found

    def __str__(self) -> str:
        """A table for people."""
        lines = [
            f"{self.graphs} graphs of {self.nodes} calls: {self.partitions} programs of {self.launches} launches, made in "
            f"{self.lowering * 1e3:.0f} ms; {self.runs} runs, {self.seconds * 1e3:.1f} ms"
        ]
        if self.sizes:
            lines.append(f"graphs with open sizes were compiled for {self.sizes} sizes")
        lines += [f"no program of open sizes ({count}): {why}" for why, count in self.closed.items()]
        lines += [f"run by torch as a whole ({count}): {why}" for why, count in self.whole.items()]
        lines += [f"programs refused at a run ({count}): {why}" for why, count in self.refused.items()]
        if self.relaid:
            lines.append(f"{self.relaid} arguments were copied, because they had other strides")
        if self.fallbacks:
            lines += ["", "torch ran:", "| op | nodes | calls | ms | why |", "|---|--:|--:|--:|---|"]
            ordered = sorted(self.fallbacks.values(), key=lambda f: (-f.seconds, f.op))
            lines += [f"| {f.op} | {f.nodes} | {f.calls} | {f.seconds * 1e3:.2f} | {f.why} |" for f in ordered]
        return "\n".join(lines)


_current = Report()
_lock = threading.Lock()


def current() -> Report:
    """The report that is being written."""
    return _current


def report(*, reset: bool = False) -> Report:
    """What was compiled and run since the start, or since the last `reset`.

    `print` shows it as a table.

    Args:
        reset: Begin a new one behind it. What is compiled already goes on counting in the old one's fallbacks.

    Returns:
        The report; runs go on writing it until a new one is begun.
    """
    global _current
    with _lock:
        found = _current
        if reset:
            _current = Report()
    return found
