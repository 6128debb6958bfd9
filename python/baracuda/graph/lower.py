"""From a graph's launches to a Program: which memory is an argument, and which is planned."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import Any

from baracuda import _core
from baracuda.call.program import Program, ProgramBuilder
from baracuda.call.program_values import Value
from baracuda.choose.plan import plan
from baracuda.graph.decisions import Condition
from baracuda.graph.nodes import Draw, Launch, Slot, View
from baracuda.graph.symbols import as_dim
from baracuda.memory.views import contiguous_strides, is_contiguous


@dataclass(frozen=True, slots=True)
class Lowered:
    """A program with what its arguments and results are.

    Attributes:
        program: Takes the leaves, then captured tensors that are written, then results.
        hidden: Those captured tensors.
        results: Where each result of the graph is: ("made", number among the program's results), ("leaf", number), or
            ("held", tensor).
        launches: Of each step, with copies of results behind.
        handed_out: Temporaries that are results.
        weights: Bytes of captured tensors.
    """

    program: Program
    hidden: tuple[Any, ...]
    results: tuple[tuple[str, Any], ...]
    launches: tuple[Launch, ...]
    handed_out: frozenset[Slot]
    weights: int


class Lowering:
    """One graph's slots as values of a program that is being built."""

    def __init__(self, device: str, launches: list[Launch], leaves: list[Slot], draws: list[Draw]) -> None:
        self.device, self.launches, self.leaves = device, list(launches), leaves
        self.written = {v.slot for launch in launches for v in launch.writes}
        self.used = self.written | {v.slot for launch in launches for v in launch.reads}
        self.builder = ProgramBuilder(device)
        self.values: dict[Slot, Value] = {}
        self.made = 0  # results that are the program's outputs
        self.random = self.builder.generator() if draws else None
        self.draws = [self.random.reserve(draw.blocks) for draw in draws] if self.random else []
        for slot in leaves:
            make = self.builder.inout if slot in self.written else self.builder.input
            self.values[slot] = make(slot.name, slot.shape, slot.element, slot.strides)

    def lower(self, results: list[View | Any], conditions: Iterable[Condition] = ()) -> Lowered:
        """The program that makes these results, at sizes that meet the conditions."""
        for condition in conditions:
            self.builder.require(condition.size, condition.want)
        hidden, weights = [], 0
        for slot in sorted(self.used, key=lambda s: s.number):
            if slot.kind == "constant":
                held = memory_of(slot, self.device)
                weights += slot.nbytes
                if slot in self.written:
                    self.values[slot] = self.builder.inout(slot.name, slot.shape, slot.element)
                    hidden.append(held)
                else:
                    self.values[slot] = self.builder.constant(held, slot.name)
        given = set(self.values)
        found = [self._result(x) for x in results]
        made = frozenset(self.values.keys() - given)
        for slot in self.used - self.values.keys():
            self.values[slot] = self.builder.scratch((slot.count,), slot.element, slot.name)
        for launch in self.launches:
            numbers = [self._number(launch, i) for i in range(len(launch.numbers))]
            self.builder.append(launch.plan, [self._value(v) for v in launch.tensors], numbers)
        return Lowered(self.builder.build(), tuple(hidden), tuple(found), tuple(self.launches), made, weights)

    def _result(self, x: View | Any) -> tuple[str, Any]:
        if not isinstance(x, View):
            return "held", x
        if x.slot.kind == "leaf" and x.slot in self.written and x.shape == x.slot.shape and x.strides == x.slot.strides:
            return "leaf", self.leaves.index(x.slot)
        whole = x.slot.kind == "temporary" and x.slot not in self.values and x.slot in self.written
        whole = whole and x.numel == prod(x.slot.shape) and x.offset == 0 and is_contiguous(x.shape, x.strides)
        number, self.made = self.made, self.made + 1
        if whole and x.element is x.slot.element:
            self.values[x.slot] = self.builder.output(f"result{number}", x.shape, x.element)
        else:
            self._copied(x, f"result{number}")
        return "made", number

    def _copied(self, x: View, name: str) -> None:
        """A result that is a view, a leaf, or one that is returned already: copied to memory of its own."""
        from baracuda.ops.layout.layout import CopyDescriptor

        strides = contiguous_strides(x.shape)
        slot = Slot(-1, "temporary", name, x.element, x.shape, strides)
        self.values[slot] = self.builder.output(name, x.shape, x.element)
        self.used.add(x.slot)
        shape = tuple(as_dim("a result", "its shape", n) for n in x.shape)
        copy = plan(CopyDescriptor(shape, x.element), self.device)
        self.launches.append(Launch(copy, (x, View(slot, 0, x.shape, strides, x.element)), ()))

    def _value(self, view: View) -> Value:
        return self.values[view.slot].as_strided(view.shape, view.strides, view.offset, view.element)

    def _number(self, launch: Launch, at: int) -> Any:
        given = launch.numbers[at]
        if isinstance(given, View):
            return self._value(given)
        if isinstance(given, Draw):
            return self.draws[given.index]
        drawn = any(isinstance(n, Draw) for n in launch.numbers)
        if drawn and self.random and launch.plan.signature.numbers[at].name == "seed":
            return self.random.seed
        return given


def memory_of(slot: Slot, device: str) -> Any:
    """A captured tensor's memory, from its first to its last element."""
    if slot.nbytes == 0:
        return _core.empty((0,), slot.element, device=device)
    return _core.from_pointer(slot.address, slot.shape, slot.element, None, device, slot.nbytes, slot.held)
