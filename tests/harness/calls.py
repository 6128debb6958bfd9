"""A valid call of every op and direction, made from the first usable case of its reference; tests then break it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import baracuda as bc
from baracuda import _index
from baracuda.choose.plan import Plan, plan
from baracuda.choose.sku import PlanPreference, rows
from baracuda.describe.elements import Element
from baracuda.describe.spec import INOUT, Param
from baracuda.prove.reference import Case, reference_module, round_to
from baracuda.prove.verify import candidates


@dataclass
class ValidCall:
    """Arguments that a plan's run accepts."""

    plan: Plan
    case: Case
    args: dict[str, Any]
    workspace: Any

    @property
    def tensors(self) -> list[Param]:
        return list(self.plan.signature.present)

    @property
    def outputs(self) -> list[Param]:
        return list(self.plan.signature.outputs)

    def run(self, **changes: Any) -> Any:
        return self.plan.run(**({"workspace": self.workspace} | self.args | changes))

    def check(self, **changes: Any) -> Any:
        return self.plan.can_implement(**({"workspace": self.workspace} | self.args | changes))

    def bytes(self) -> dict[str, list[bytes]]:
        """What every tensor holds, to see afterwards that nothing was written."""
        found = {}
        for p in self.tensors:
            value = self.args[p.name]
            found[p.name] = [v.tobytes() for v in value] if p.variadic else [value.tobytes()]
        return found


def directions() -> list[tuple[str, str]]:
    """Every (op, direction) with a cpu row that runs here and a spec."""
    found = {(r["op"], r["direction"]): None for r in rows() if r["backend"] == "cpu" and r["op"] in _index.OPS}
    return sorted(found)


def elements_of(op: str, direction: str) -> list[Element]:
    """Elements that some cpu row takes, the ordinary one first."""
    found = {
        Element(e)
        for r in rows()
        if (r["op"], r["direction"], r["backend"]) == (op, direction, "cpu")
        for e in r["elements"]
    }
    return sorted(found, key=lambda e: (e is not Element.F32, not e.is_float, int(e)))


def cases_of(op: str, direction: str, element: Element, most_elements: int = 1 << 14) -> list[Case]:
    """Cases of a size that tests can afford, none empty."""
    found = []
    for case in reference_module(op).cases(op, direction, element, np.random.default_rng(5)):
        sizes = [int(np.prod(s, dtype=np.int64)) for p in case.descriptor.signature().present for s in p.shapes]
        if sizes and min(sizes) > 0 and max(sizes) <= most_elements:
            found.append(case)
    return found


def call_of(case: Case, made: Plan | None = None) -> ValidCall:
    """Fresh contiguous arrays for a case; outputs hold a pattern."""
    made = made or plan(case.descriptor)
    args: dict[str, Any] = {}
    for p in made.signature.present:
        parts = []
        for i, shape in enumerate(p.shapes):
            raw = np.full((*shape, p.element.numpy.itemsize), 0xA5, np.uint8)
            array = np.ndarray(shape, p.element.numpy, raw)
            if p.role == 0 or p.role == INOUT:
                values = case.tensors[p.name][i] if p.variadic else case.tensors[p.name]
                array[...] = round_to(values, p.element)
            parts.append(array)
        args[p.name] = parts if p.variadic else parts[0]
    workspace = bc.empty(made.workspace_size, "u8") if made.workspace_size else None
    return ValidCall(made, case, args | case.scalars, workspace)


def valid_call(op: str, direction: str) -> ValidCall:
    """A valid call of the op's ordinary element: of the first few cases the one of highest rank, then largest."""

    def weight(case: Case) -> tuple[int, int]:
        shapes = [s for p in case.descriptor.signature().present for s in p.shapes]
        return max(map(len, shapes)), sum(int(np.prod(s)) for s in shapes)

    for element in elements_of(op, direction):
        if not candidates(op, direction, element):
            continue
        found = cases_of(op, direction, element)
        usable = [c for c in found[:8] if type(c.descriptor).plan_class.query(c.descriptor)]
        if usable:
            return call_of(max(usable, key=weight))
    raise AssertionError(f"{op} {direction}: no case can be run here")


def preference_for(variant: str) -> PlanPreference:
    """Insists on one row."""
    return PlanPreference(sku=variant)
