"""Faults that real kernels have had, sown into our own: the generated tests' check finds each on the emulator."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from faulty import Fault, module, outcome

from emulator import build as emulator

pytestmark = pytest.mark.skipif(bool(emulator.unable()), reason=emulator.unable())

FAULTS = [
    Fault(
        "the last element is left out", "gated", "swiglu", "forward",
        "simt/map.h", "at < p.count; at += step) element", "at + 1 < p.count; at += step) element", "error is",
    ),
    Fault(
        "packs that are not aligned", "gated", "swiglu", "backward",
        "simt/map_launch.h", "% word != 0) return false;\n      for", "% 4 != 0) return false;\n      for", "MISALIGNED",
    ),
    Fault(
        "offsets of 32 bits", "gated", "swiglu", "forward",
        "simt/map_launch.h", "wide |= reach >= kReach", "wide |= reach < 0", "error is|OUT OF BOUNDS", far=True,
    ),
]  # fmt: skip
SOUND = [
    Fault("as it is", *key[:3], far=key[3])
    for key in dict.fromkeys((f.family, f.op, f.direction, f.far) for f in FAULTS)
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f"{f.op}-{f.name}")
def test_a_fault_is_found(fault: Fault, tmp_path: Path) -> None:
    found = outcome(fault, module(fault, tmp_path))
    assert re.search(fault.says, found), found[-3000:]


@pytest.mark.parametrize("sound", SOUND, ids=lambda f: f"{f.op}-{f.direction}")
def test_without_a_fault_nothing_is_found(sound: Fault, tmp_path: Path) -> None:
    found = outcome(sound, module(sound, tmp_path))
    assert re.search(r"^1 passed" if sound.far else r"^kept [1-9]", found, re.M), found[-3000:]
