"""Every SKU keeps its promise: errors against the float64 reference in several layouts, bits, bytes around."""

from __future__ import annotations

import numpy as np
import pytest

from baracuda.describe.elements import Element
from baracuda.prove.layouts import LAYOUTS
from baracuda.prove.verify import candidates, verify
from conftest import FULL, SEED


def layouts_for(rng: np.random.Generator) -> tuple[str, ...]:
    if FULL:
        return tuple(LAYOUTS)
    others = [n for n in LAYOUTS if n != "contiguous"]
    return ("contiguous", *rng.choice(others, 2, replace=False).tolist())


def test_sku_keeps_its_guarantee(op: str, direction: str, element: Element, rng: np.random.Generator) -> None:
    problems, checked = [], 0
    for variant in candidates(op, direction, element):
        amount = {} if FULL else {"stretched": 3}
        amount["batched"] = 1000 if FULL else 1
        report = verify(op, direction, element, variant, layouts_for(rng), seed=SEED, **amount)
        checked += report.cases
        problems += [f"{report.sku}: {p}" for p in report.problems]
    if not candidates(op, direction, element):
        pytest.skip(f"no row of {op} for {element} runs at this machine's level")
    assert checked, f"no case of {op} {direction} {element} is accepted by any of its rows"
    assert not problems, "\n".join(problems[:20])
