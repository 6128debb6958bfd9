"""Empty tensors and rank 0 in every argument of every plan, with the strides that their producers give them: results are the
reference's, whatever memory held before, or the problem is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from calls import directions, elements_of
from emptied import emptied

import baracuda as bc
from baracuda.dims import largest
from baracuda.elements import Element
from baracuda.plan import plan
from baracuda.reference import LARGEST, Case, reference_module
from baracuda.sku import PlanPreference
from baracuda.verify import FILLS, Report, candidates, compare, count_elements, execute, expect
from conftest import FULL

# Layouts in which an empty tensor has torch's strides, NumPy's, those of a slice of something larger, negative ones.
LAYOUTS = ("contiguous", "dense", "sliced", "negative")
LARGEST_CASE = 20_000  # elements of a case that problems are made from
SUMS_OF_NOTHING, OTHERS = 30, 5  # problems per op that are run without BARACUDA_FULL=1


def makes_something(case: Case) -> bool:
    """Whether an output has elements although an input has none: what nobody writes would show."""
    signature = case.descriptor.signature()
    outputs = {p.name for p in signature.outputs}

    def empty(shape: Any) -> bool:
        return any(largest(n) == 0 for n in shape)

    inputs = [s for p in signature.present if p.name not in outputs for s in p.shapes]
    return any(map(empty, inputs)) and not all(empty(s) for p in signature.outputs for s in p.shapes)


def problems(op: str, direction: str, element: Element, rng: np.random.Generator) -> list[Case]:
    found: dict[Any, Case] = {}
    for case in reference_module(op).cases(op, direction, element, rng):
        if count_elements(case) <= LARGEST_CASE:
            found |= {made.descriptor: made for made in emptied(case)}
    if FULL:
        return list(found.values())
    telling = [c for c in found.values() if makes_something(c)]
    others = [c for c in found.values() if not makes_something(c)]
    kept = []
    for some, most in ((telling, SUMS_OF_NOTHING), (others, OTHERS)):
        kept += [some[i] for i in rng.permutation(len(some))[:most]]
    return kept


def in_range(case: Case, expected: dict[str, Any]) -> bool:
    """Whether the results are numbers that elements hold: parts of saved statistics may make them anything."""
    element = case.descriptor.primary_element()
    most = LARGEST.get(element.compute if element.is_float else element, np.inf)
    every = [e for found in expected.values() for e in (found if isinstance(found, list) else [found])]
    values = [np.abs(np.asarray(e.value, np.longdouble)) for e in every]
    return not any(((v > most) & np.isfinite(v)).any() for v in values)


def check(case: Case, variant: str, layout: str, fill: int) -> list[str]:
    """What is wrong with a row's answer to a problem, if it takes it."""
    preference = PlanPreference(sku=variant)
    if not type(case.descriptor).plan_class.query(case.descriptor, "cpu", preference):
        return []
    made = plan(case.descriptor, "cpu", preference)
    report = Report(variant, "")
    label = f"{case.descriptor} by {variant}, {layout}, memory full of {fill:#04x}"
    try:
        outcome = execute(case, made, layout, fill=fill)
    except bc.BaracudaError:  # an index into what is empty now, above all
        return []
    expected = expect(case)
    if in_range(case, expected):
        compare(case, outcome, made, report, label, expected)
    return report.problems


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # references divide by 0 terms
@pytest.mark.parametrize(("op", "direction"), directions(), ids=["-".join(t) for t in directions()])
def test_empties_and_rank_0(op: str, direction: str, rng: np.random.Generator) -> None:
    wrong = []
    elements = elements_of(op, direction)
    for element in elements if FULL else elements[:1]:
        for case in problems(op, direction, element, rng):
            for variant in candidates(op, direction, element):
                for layout in LAYOUTS if FULL else [str(rng.choice(LAYOUTS[:2]))]:
                    wrong += check(case, variant, layout, int(rng.choice(FILLS)))
    assert not wrong, "\n".join(wrong[:20])
