"""Sizes at and beside every threshold that kernels export, with values that uncompensated sums lose."""

from __future__ import annotations

import numpy as np
import pytest

from baracuda import _core
from baracuda.choose.plan import plan
from baracuda.choose.sku import PlanPreference
from baracuda.describe.elements import Element
from baracuda.describe.errors import BaracudaError
from baracuda.prove.reference import reference_module
from baracuda.prove.straddle import straddling, thresholds
from baracuda.prove.verify import Report, candidates, compare, count_elements, execute, expect
from conftest import FULL, SEED

MOST = 1 << 18 if FULL else 1 << 14
CASES = 40 if FULL else 1
# Without BARACUDA_FULL families that export thresholds, and the elements of which sums are computed.
FAMILIES = {family for family, _, _ in _core.thresholds()} - {""}
ELEMENTS = {Element.F32, Element.F64}


def test_kernels_export_their_thresholds() -> None:
    found = _core.thresholds()
    assert {"attention", "embedding", "matmul", "reduce", "scan"} <= {family for family, _, _ in found}
    assert all(value > 0 for _, _, value in found)
    assert set(thresholds("matmul")) > set(thresholds(""))


def test_sizes_beside_thresholds(op: str, direction: str, element: Element, rng: np.random.Generator) -> None:
    module = reference_module(op)
    if not FULL and element not in ELEMENTS:
        pytest.skip("BARACUDA_FULL takes all elements")
    given = [
        c
        for c in module.cases(op, direction, element, np.random.default_rng(SEED))
        if 0 < count_elements(c) <= 4096 and (FULL or c.descriptor.family in FAMILIES)
    ]
    variants = candidates(op, direction, element)
    if not given or not variants:
        pytest.skip(
            f"no row of {op} for {element} runs at this machine's level, or there are no small cases or thresholds"
        )
    report = Report(op, "")
    for number in rng.permutation(len(given))[:CASES]:
        once = list(straddling(given[number], MOST, rng))
        twice = [c for at in rng.permutation(len(once))[:1] for c in straddling(once[at], MOST, rng)]
        for case in once + twice:
            variant, layout = str(rng.choice(variants)), str(rng.choice(["contiguous", "transposed", "sliced"]))
            preference = PlanPreference(sku=variant)
            if not type(case.descriptor).plan_class.query(case.descriptor, "cpu", preference):
                continue
            made = plan(case.descriptor, preference=preference)
            try:
                expected = expect(case)
                outcome = execute(case, made, layout)
            except (BaracudaError, ValueError, IndexError):
                continue  # longer or shorter, its data are no problem of the op
            compare(case, outcome, made, report, f"{case.note} {case.descriptor}, {layout}", expected)
    assert report.ok, "\n".join(report.problems[:20])
