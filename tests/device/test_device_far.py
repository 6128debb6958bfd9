"""Elements 2^32 and more apart: every SKU of a GPU on tensors that are mostly holes, in the emulator's memory."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np
import pytest

import baracuda as bc
from baracuda import _index
from baracuda.choose.plan import Plan, plan
from baracuda.choose.sku import PlanPreference, rows
from baracuda.describe.dims import largest
from baracuda.describe.elements import Element
from baracuda.describe.spec import INOUT, OUT
from baracuda.memory.tensor import from_pointer
from baracuda.prove.reference import Case, reference_module, round_to
from baracuda.prove.verify import Outcome, Report, compare

STEP = (1 << 32) + 64  # elements; wrapped to 32 bits it is a place that is there, too
MOST_MEMORY = 1 << 42
ITEMS = sorted(
    {(r["backend"], r["op"], r["direction"]) for r in rows() if r["backend"] != "cpu" and r["op"] in _index.OPS}
)


class Far:
    """A tensor whose steps along one dimension are STEP elements."""

    def __init__(self, shape: tuple[int, ...], element: Element, device: str, values: Any = None) -> None:
        sizes = [(n if n > 1 else 1 << 40, d) for d, n in enumerate(shape)]
        self.dim = min(sizes)[1] if sizes else -1
        rest = shape[: self.dim] + shape[self.dim + 1 :] if shape else ()
        parts = shape[self.dim] if shape else 1
        strides = [prod(rest[i + 1 :]) for i in range(len(rest))]
        if shape:
            strides.insert(self.dim, STEP)
        room = STEP * (max(parts, 1) - 1) + prod(rest) + 16
        self.base = bc.empty(room * element.nbytes, "u8", device=device)
        at = [self.base.address + i * STEP * element.nbytes for i in range(parts)]
        self.parts = [from_pointer(a, rest, element, device=device, owner=self.base) for a in at]
        self.view = from_pointer(self.base.address, shape, element, tuple(strides), device, owner=self.base)
        for i, part in enumerate(self.parts):
            if values is not None:
                wanted = round_to(values, element)
                part.copy_from(np.array(np.take(wanted, i, self.dim) if shape else wanted, order="C"))

    def fetch(self) -> Any:
        """The values."""
        found = [part.to("cpu").numpy() for part in self.parts]
        return np.stack(found, self.dim) if self.dim >= 0 else found[0]


def memory_of(case: Case) -> int:
    """Bytes of a case's tensors, with their holes."""
    total = 0
    for p in case.descriptor.signature().present:
        for shape in p.shapes:
            sizes = [n for n in map(largest, shape) if n > 1]
            total += STEP * min(sizes, default=1) * p.element.nbytes
    return total


def usable(backend: str, op: str, direction: str, device: str) -> Iterator[tuple[Case, Plan]]:
    """Small cases of every row of an op, and plans for them."""
    found = [r for r in rows() if (r["backend"], r["op"], r["direction"]) == (backend, op, direction)]
    for row in found:
        element = Element.F32 if Element.F32 in row["elements"] else Element(row["elements"][0])
        limit, taken = PlanPreference(sku=row["variant"]), 0
        for case in reference_module(op).cases(op, direction, element, np.random.default_rng(3)):
            shapes = [s for p in case.descriptor.signature().present for s in p.shapes]
            counts = [prod(map(largest, s)) for s in shapes]
            if taken == 2 or not 0 < min(counts) <= max(counts) <= 4096 or memory_of(case) > MOST_MEMORY:
                continue
            if max(map(len, shapes)) > 1 and type(case.descriptor).plan_class.query(case.descriptor, device, limit):
                taken += 1
                yield case, plan(case.descriptor, device, limit)


def run(case: Case, made: Plan) -> Outcome | None:
    """Runs a case on tensors with holes; None where the row wants contiguous ones."""
    fars: dict[str, list[Far]] = {}
    call: dict[str, Any] = dict(case.scalars)
    for p in made.signature.present:
        values: Any = [None] * len(p.shapes) if p.role == OUT else case.tensors[p.name]
        values = values if p.variadic or p.role == OUT else [values]
        shapes = [tuple(map(largest, s)) for s in p.shapes]
        fars[p.name] = [Far(s, p.element, made.device, v) for s, v in zip(shapes, values, strict=True)]
        call[p.name] = [f.view for f in fars[p.name]] if p.variadic else fars[p.name][0].view
    if made.workspace_size:
        call["workspace"] = bc.empty(made.workspace_size, "u8", device=made.device)
    if not made.can_implement(**call):
        return None
    made.run(**call)
    bc.Device(made.device).check()
    outputs = {p.name: [f.fetch() for f in fars[p.name]] for p in made.signature.present if p.role in (OUT, INOUT)}
    return Outcome({p.name: outputs[p.name] if p.variadic else outputs[p.name][0] for p in made.signature.outputs}, {})


@pytest.fixture
def roomy(backend: str) -> Iterator[str]:
    """A device with more memory than there is."""
    path = os.environ.get(f"BARACUDA_{backend.upper()}_MODULE", "")
    if "emulated" not in path:
        pytest.skip("needs the emulator: python tests/harness/emulator/build.py plain pytest FILE")
    library = ctypes.CDLL(path)
    library.bcu_emulator_memory.argtypes = [ctypes.c_int64]
    library.bcu_emulator_memory(2 * MOST_MEMORY)
    yield backend
    library.bcu_emulator_memory(0)


@pytest.mark.parametrize(("backend", "op", "direction"), ITEMS, ids=["-".join(t) for t in ITEMS])
def test_elements_far_apart(backend: str, op: str, direction: str, roomy: str) -> None:
    ran, report = 0, Report("", "")
    for case, made in usable(backend, op, direction, roomy):
        outcome = run(case, made)
        if outcome:
            ran += 1
            compare(case, outcome, made, report, f"{made.sku} {case.note} {case.descriptor}")
    assert not report.problems, "\n".join(report.problems[:10])
    if not ran:
        pytest.skip("takes no tensors with holes")
