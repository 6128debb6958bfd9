"""Which rows the generated device tests run, and the emulator's controls: a module of a backend is opened by its path."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from baracuda import _core, _index
from baracuda.choose.plan import Request, judge
from baracuda.choose.sku import PlanPreference, rows
from baracuda.describe.elements import Element
from baracuda.memory.device import Device
from baracuda.prove.reference import reference_module
from baracuda.prove.verify import count_elements

BACKENDS = ("cuda", "metal")
Item = tuple[str, str, str, Element]  # backend, op, direction, element
# Larger cases are left to BARACUDA_FULL=1: the emulator runs some hundred thousand elements per second.
MOST_ELEMENTS = 40_000
HALVES = (Element.F16, Element.BF16)


def module_of(backend: str) -> str:
    """The path of the emulated module that is this backend's; empty where there is none."""
    path = os.environ.get(f"BARACUDA_{backend.upper()}_MODULE", "")
    return path if "emulated" in path else ""


def device_of(backend: str) -> str:
    """The device that its tests use: of two cuda devices the second one, so that nothing may forget which it is."""
    return f"cuda:{_core.device_count(1) - 1}" if backend == "cuda" else backend


def chosen(row: Mapping[str, Any], full: bool, seed: int) -> list[Element]:
    """The elements that a row is run with: f32 and one half type, or one element where there are none of those; all of
    them with `full`, and on a device, where a run costs little."""
    elements = [Element(e) for e in row["elements"]]
    if full or (not module_of(row["backend"]) and Device(row["backend"]).usable):
        return elements
    rng = np.random.default_rng([seed, *f"{row['op']} {row['direction']} {row['variant']}".encode()])
    halves = [e for e in elements if e in HALVES]
    taken = [Element.F32] if Element.F32 in elements else []
    taken += [halves[rng.integers(len(halves))]] if halves else []
    return taken or [elements[rng.integers(len(elements))]]


def items(full: bool, seed: int) -> list[Item]:
    """(backend, op, direction, element) of every row of a GPU."""
    found = set()
    for row in rows():
        if row["backend"] in BACKENDS and row["op"] in _index.OPS:
            found |= {(row["backend"], row["op"], row["direction"], e) for e in chosen(row, full, seed)}
    return sorted(found, key=lambda t: (t[:3], int(t[3])))


def is_run(row: Mapping[str, Any], full: bool, seed: int) -> bool:
    """Whether some case of those that the generated test runs is one for this very row, were its device here."""
    for element in chosen(row, full, seed):
        rng = np.random.default_rng(seed)
        for case in reference_module(row["op"]).cases(row["op"], row["direction"], element, rng):
            request = Request.of(
                case.descriptor.signature(), row["backend"], PlanPreference(sku=row["variant"]), None, 0
            )
            judged = judge(case.descriptor, request)
            for candidate in judged:
                reasons = {r.code for r in candidate.support.refusals} - {"not_built", "no_device"}
                if candidate.row == row["index"] and not reasons and count_elements(case) <= MOST_ELEMENTS:
                    return True
    return False


@contextmanager
def schedule(backend: str, name: str) -> Iterator[None]:
    """Runs threads and blocks in another order: "reverse" or "random:SEED"."""
    library = ctypes.CDLL(module_of(backend))
    library.bcu_emulator_schedule.argtypes = [ctypes.c_char_p]
    assert library.bcu_emulator_schedule(name.encode()), name
    try:
        yield
    finally:
        library.bcu_emulator_schedule(b"forward")


def settings(backend: str, seed: int) -> dict[str, Callable[[], object]]:
    """Surroundings that must not change a bit: on the emulator the order of threads and blocks."""
    if not module_of(backend):
        return {}
    return {f"schedule {name}": partial(schedule, backend, name) for name in ("reverse", f"random:{seed}")}
