"""Every SKU of a GPU keeps its promise: on the emulator (`python tests/harness/emulator/build.py race pytest FILE`), or
on a device where there is one. As test_guarantee.py does for the cpu."""

from __future__ import annotations

import emulated
import numpy as np
import pytest

from baracuda.describe.elements import Element
from baracuda.memory.device import Device
from baracuda.prove.layouts import LAYOUTS
from baracuda.prove.verify import candidates, verify
from conftest import FULL, SEED


def layouts_for(rng: np.random.Generator) -> tuple[str, ...]:
    others = [n for n in LAYOUTS if n != "contiguous"]
    return ("contiguous", *(others if FULL else rng.choice(others, 2, replace=False).tolist()))


def test_sku_keeps_its_guarantee(
    backend: str, op: str, direction: str, element: Element, rng: np.random.Generator
) -> None:
    if not Device(backend).usable:
        pytest.skip(f"{backend}: {Device(backend).reason}")
    device, on_emulator = emulated.device_of(backend), bool(emulated.module_of(backend))
    found = candidates(op, direction, element, device)
    assert found or not on_emulator, "the emulator is of every architecture"
    problems = []
    for variant in found:
        most = emulated.MOST_ELEMENTS if on_emulator and not FULL else None
        report = verify(
            op, direction, element, variant, layouts_for(rng), SEED, device,
            most_elements=most, settings=emulated.settings(backend, SEED),
        )  # fmt: skip
        assert report.cases, f"no case of {op} {direction} {element} is accepted by {variant}"
        problems += [f"{report.sku}: {p}" for p in report.problems]
    assert not problems, "\n".join(problems[:20])
