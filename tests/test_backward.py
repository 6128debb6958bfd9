"""The reference's gradients agree with differences of the forward reference; kernels are held to the reference elsewhere."""

from __future__ import annotations

import numpy as np

from baracuda.describe.elements import Element
from baracuda.prove.reference import reference_module
from baracuda.prove.verify import gradient_error, rounded


def test_reference_gradient_by_differences(op: str, direction: str, element: Element, rng: np.random.Generator) -> None:
    checked = 0
    for case in reference_module(op).cases(op, direction, element, rng):
        if not case.exact_gradient or element is not Element.F64:
            continue
        for name, error in gradient_error(rounded(case), rng):
            checked += 1
            assert error < 1e-6, f"{case.descriptor} {name}: differs from central differences by {error:.2e}"
    assert checked or element is not Element.F64 or not hasattr(reference_module(op), "forward_of"), (
        f"{op}: no gradient was checked"
    )


test_reference_gradient_by_differences.directions = ("backward",)
