"""A small executor: plans bound to their arrays once, then replayed. This is how an integrator drives baracuda."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any

import baracuda as bc


@dataclass(slots=True)
class Step:
    """One launch: a plan with its arguments, its bound call, and the time it has taken."""

    plan: bc.Plan
    arguments: dict[str, Any]
    call: Any = None
    calls: int = 0
    nanoseconds: int = 0


class Program:
    """A list of launches over fixed arrays. Numbers that change between runs are 0-d arrays, read at launch."""

    def __init__(self, device: str = "cpu") -> None:
        self.device = device
        self.steps: list[Step] = []
        self._plans: dict[Any, bc.Plan] = {}
        self._workspace: Any = None

    def add(self, desc: Any, **arguments: Any) -> None:
        """Appends a launch; equal descriptors share one plan."""
        plan = self._plans.get(desc)
        if plan is None:
            plan = self._plans[desc] = bc.plan(desc, device=self.device)
        self.steps.append(Step(plan, arguments))

    def compile(self) -> Program:
        """Allocates one workspace for all launches and binds them."""
        size = max((s.plan.workspace_size for s in self.steps), default=0)
        self._workspace = bc.empty(max(size, 1), "u8", device=self.device)
        for step in self.steps:
            workspace = self._workspace if step.plan.workspace_size else None
            step.call = step.plan.bind(**step.arguments, workspace=workspace)
        return self

    def run(self) -> None:
        """Replays all launches."""
        for step in self.steps:
            begin = perf_counter_ns()
            step.call()
            step.nanoseconds += perf_counter_ns() - begin
            step.calls += 1

    @property
    def plans(self) -> int:
        """Number of different plans."""
        return len(self._plans)


def profile(programs: Iterable[Program]) -> list[tuple[str, int, float]]:
    """(SKU, calls, milliseconds) per kernel, the slowest first."""
    found: dict[str, list[float]] = {}
    for program in programs:
        for step in program.steps:
            entry = found.setdefault(step.plan.sku.name, [0, 0])
            entry[0] += step.calls
            entry[1] += step.nanoseconds / 1e6
    rows = [(name, int(calls), ms) for name, (calls, ms) in found.items() if calls]
    return sorted(rows, key=lambda r: -r[2])
