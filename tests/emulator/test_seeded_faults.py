"""Faults that real kernels have had, sown into our own: the generated tests' check finds each on the emulator."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from faults import ANY_WARPS, FAULTS, LIBRARY_FAULTS, TEXT_FAULTS
from faulty import TEXT, Fault, flattened, module, outcome

from emulator import build as emulator

unable = pytest.mark.skipif(bool(emulator.unable()), reason=emulator.unable())

ALL = [*FAULTS, *LIBRARY_FAULTS, *TEXT_FAULTS]
SOUND = [
    Fault("as it is", *key[:3], test=key[3], element=key[4], backend=key[5])
    for key in dict.fromkeys((f.family, f.op, f.direction, f.test, f.element, f.backend) for f in ALL)
]
SOUND.append(Fault("blocks of any number of warps", "softmax", "softmax", also=(ANY_WARPS,)))


@cache
def text_of(family: str) -> str:
    return flattened(family)


@pytest.mark.parametrize("op", sorted({f.op for f in ALL}))
def test_every_fault_has_its_place(op: str, tmp_path: Path) -> None:
    """Whoever changes a passage hears of its faults at once, not when chance draws them."""
    lost = []
    for fault in [f for f in (*ALL, *SOUND) if f.op == op]:
        try:
            fault.apply(tmp_path)
            if fault.file == TEXT:
                fault.changed(TEXT, text_of(fault.family))
        except AssertionError as error:
            lost.append(f"{fault.backend}: {fault.name}: {error}")
    assert not lost, "bring these of faults.py to the sources as they are:\n" + "\n".join(lost)


def needs_module(fault: Fault) -> None:
    if fault.backend == "metal" and (why := emulator.unable_metal()):
        pytest.skip(why)


@unable
@pytest.mark.drawn(4)  # each compiles a kernel
@pytest.mark.parametrize("fault", ALL, ids=lambda f: f"{f.backend}-{f.op}-{f.name}")
def test_a_fault_is_found(fault: Fault, tmp_path: Path) -> None:
    needs_module(fault)
    found = outcome(fault, module(fault, tmp_path))
    assert re.search(fault.says, found), found[-3000:]


@unable
@pytest.mark.drawn(4)
@pytest.mark.parametrize("sound", SOUND, ids=lambda f: f"{f.backend}-{f.op}-{f.direction}-{f.test or f.name}")
def test_without_a_fault_nothing_is_found(sound: Fault, tmp_path: Path) -> None:
    needs_module(sound)
    found = outcome(sound, module(sound, tmp_path))
    passed = r"^\d+ passed(, \d+ deselected)? in" if sound.test else r"^kept [1-9]"
    assert re.search(passed, found, re.M), found[-3000:]
