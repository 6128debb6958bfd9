"""The cases that are too large for the generated tests on the emulator, once each: rows cut into strips, large tiles,
blocks that take several rows."""

from __future__ import annotations

import emulated
import numpy as np
import pytest

from baracuda import _index
from baracuda.choose.plan import plan
from baracuda.choose.sku import PlanPreference, rows
from baracuda.describe.elements import Element
from baracuda.prove.reference import reference_module
from baracuda.prove.verify import Report, compare, count_elements, execute

MOST_ELEMENTS, MOST_CASES = 2_000_000, 4
ITEMS = sorted(
    {
        (r["backend"], r["op"], r["direction"], r["variant"])
        for r in rows()
        if r["backend"] in emulated.BACKENDS and r["op"] in _index.OPS and int(Element.F32) in r["elements"]
    }
)


@pytest.mark.parametrize(("backend", "op", "direction", "variant"), ITEMS, ids=["-".join(t) for t in ITEMS])
def test_large_cases(backend: str, op: str, direction: str, variant: str) -> None:
    if not emulated.module_of(backend):
        pytest.skip("needs the emulator: python tests/harness/emulator/build.py race pytest FILE")
    device, limit, report = emulated.device_of(backend), PlanPreference(sku=variant), Report("", "")
    for case in reference_module(op).cases(op, direction, Element.F32, np.random.default_rng(4)):
        if report.cases == MOST_CASES or not emulated.MOST_ELEMENTS < count_elements(case) <= MOST_ELEMENTS:
            continue
        if not type(case.descriptor).plan_class.query(case.descriptor, device, limit):
            continue
        made = plan(case.descriptor, device, limit)
        report.cases += 1
        compare(case, execute(case, made, "aligned"), made, report, f"{made.sku} {case.note} {case.descriptor}")
    assert not report.problems, "\n".join(report.problems[:10])
