"""Functions of single elements give each element the same bits in a tensor of any length: vectors, their ends, scalars.

The rows that `verify` computes alone are few; a compiler that contracts a product in one copy of a loop and not in
another shows in one value of a hundred.
"""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import pairwise

import numpy as np
import pytest

from baracuda.choose.plan import plan
from baracuda.choose.sku import PlanPreference
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.spec import IN, Descriptor
from baracuda.prove.batches import same_bits
from baracuda.prove.reference import Case, reference_module
from baracuda.prove.verify import candidates, execute
from conftest import FULL

FAMILIES = {"unary", "binary", "ternary", "gated"}
PIECES = 1024 if FULL else 128
LONGEST = 38  # more than two vectors of the narrowest element


def sized(desc: Descriptor, count: int) -> Descriptor:
    """The problem with tensors of one axis."""
    shapes = [f.name for f in fields(desc) if f.name.endswith("shape") and getattr(desc, f.name) is not None]
    return replace(desc, **dict.fromkeys(shapes, (count,)))


def lengthened(case: Case, count: int, rng: np.random.Generator) -> Case | None:
    """The case's problem with other values, around 1 and far from it; None where elements are not each other's only need."""
    try:
        desc = sized(case.descriptor, count)
        present = desc.signature().present
    except InvalidProblemError:
        return None
    tensors = {}
    for p in present:
        if p.shapes != ((count,),):
            return None
        if p.role != IN:
            continue
        if p.element.is_float:
            spread = rng.integers(-20, 21, count) * (rng.random(count) < 0.25)
            tensors[p.name] = rng.standard_normal(count) * np.exp2(spread)
        else:
            tensors[p.name] = rng.integers(0, 2, count)
    return replace(case, descriptor=desc, tensors=tensors)


def piece(case: Case, first: int, last: int) -> Case:
    tensors = {name: value[first:last] for name, value in case.tensors.items()}
    return replace(case, descriptor=sized(case.descriptor, last - first), tensors=tensors)


def test_an_element_has_the_same_bits_at_any_place(
    op: str, direction: str, element: Element, rng: np.random.Generator
) -> None:
    if not element.is_float:
        pytest.skip("integers are exact")
    cuts = np.concatenate([[0], np.cumsum(rng.integers(1, LONGEST, PIECES))])
    cases = reference_module(op).cases(op, direction, element, rng)
    kinds = {}  # one problem of each set of attributes
    for found in (lengthened(c, int(cuts[-1]), rng) for c in cases if c.descriptor.family in FAMILIES):
        if found is not None:
            kinds.setdefault(repr(found.descriptor), found)
    ran = 0
    for case in kinds.values():
        for variant in candidates(op, direction, element):
            preference = PlanPreference(sku=variant)
            if not type(case.descriptor).plan_class.query(case.descriptor, "cpu", preference):
                continue
            made = plan(case.descriptor, preference=preference)
            if not made.precision_guarantee.batch_invariant:
                continue
            whole = execute(case, made).outputs
            ran += 1
            for first, last in pairwise(cuts):
                part = piece(case, int(first), int(last))
                alone = execute(part, plan(part.descriptor, preference=preference)).outputs
                for name, value in alone.items():
                    assert same_bits(value, whole[name][first:last]), (case.descriptor, variant, name, first, last)
    if not ran:
        pytest.skip(f"{op} is no function of single elements of {element}")
