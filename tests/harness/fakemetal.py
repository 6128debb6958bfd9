"""The fake Metal's controls: the emulated module is one library, opened by baracuda and by its path here."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

MODULE = os.environ.get("BARACUDA_METAL_MODULE", "")
needs_emulator = pytest.mark.skipif(
    "emulated" not in MODULE,
    reason="needs BARACUDA_METAL_MODULE: python tests/harness/emulator/build.py plain pytest tests/device/test_device_metal.py",
)
CLASSES = ("FakeBuffer", "FakeEvent", "FakeQueue", "FakeCommands", "FakeEncoder", "FakeArchive", "FakeFunction")


def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(MODULE)
    for name in ("calls", "live"):
        function = getattr(library, f"bcu_fake_metal_{name}")
        function.restype, function.argtypes = ctypes.c_int64, [ctypes.c_char_p]
    library.bcu_fake_metal_fail.argtypes = [ctypes.c_char_p]
    library.bcu_fake_metal_problems.restype = ctypes.c_char_p
    return library


def live() -> dict[str, int]:
    """How many objects there are of each class that a process makes more of as it goes on."""
    library = _library()
    return {name: int(library.bcu_fake_metal_live(name.encode())) for name in CLASSES}


def calls(selector: str) -> int:
    """How often a method was called, by the first part of its selector."""
    return int(_library().bcu_fake_metal_calls(selector.encode()))


def problems() -> str:
    """What was done wrong since the last call."""
    return str(_library().bcu_fake_metal_problems().decode())


@contextmanager
def failing(wanted: str) -> Iterator[None]:
    """Makes calls fail, such as "newBufferWithLength:1" (the next) or "execution:2" (the command buffer after the next)."""
    library = _library()
    library.bcu_fake_metal_fail(wanted.encode())
    try:
        yield
    finally:
        library.bcu_fake_metal_fail(b"")


@contextmanager
def removed() -> Iterator[None]:
    """The device is gone for as long as this lasts."""
    library = _library()
    library.bcu_fake_metal_remove(1)
    try:
        yield
    finally:
        library.bcu_fake_metal_remove(0)


def on_metal(test: Any) -> Any:
    """For tests of the runtime on the fake: skipped without it, and nothing may stay behind or have been misused."""
    return pytest.mark.usefixtures("no_metal_leaks")(needs_emulator(test))
