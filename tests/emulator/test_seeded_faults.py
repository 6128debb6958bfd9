"""Faults that real kernels have had, sown into our own: the generated tests' check finds each on the emulator."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from faults import FAULTS
from faulty import Fault, module, outcome

from emulator import build as emulator

pytestmark = pytest.mark.skipif(bool(emulator.unable()), reason=emulator.unable())

SOUND = [
    Fault("as it is", *key[:3], test=key[3])
    for key in dict.fromkeys((f.family, f.op, f.direction, f.test) for f in FAULTS)
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f"{f.op}-{f.name}")
def test_a_fault_is_found(fault: Fault, tmp_path: Path) -> None:
    found = outcome(fault, module(fault, tmp_path))
    assert re.search(fault.says, found), found[-3000:]


@pytest.mark.parametrize("sound", SOUND, ids=lambda f: f"{f.op}-{f.direction}-{f.test}")
def test_without_a_fault_nothing_is_found(sound: Fault, tmp_path: Path) -> None:
    found = outcome(sound, module(sound, tmp_path))
    assert re.search(r"^1 passed" if sound.test else r"^kept [1-9]", found, re.M), found[-3000:]
