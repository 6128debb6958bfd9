"""The fake Metal's controls: the emulated module is one library, opened by baracuda and by its path here."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from capsules import Counted

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
    library.bcu_fake_metal_buffer.restype = library.bcu_fake_metal_contents.restype = ctypes.c_void_p
    library.bcu_fake_metal_buffer.argtypes = [ctypes.c_int64, ctypes.c_int32, ctypes.c_uint64]
    library.bcu_fake_metal_copy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
    for name in ("contents", "release"):
        getattr(library, f"bcu_fake_metal_{name}").argtypes = [ctypes.c_void_p]
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


def copy_in(queue: int | None, source: Producer, to: Producer) -> None:
    """Commits a host's own copy between two buffers, in a queue."""
    _library().bcu_fake_metal_copy(queue, source.handle, to.handle, source.memory.nbytes)


def on_metal(test: Any) -> Any:
    """For tests of the runtime on the fake: skipped without it, and nothing may stay behind or have been misused."""
    return pytest.mark.usefixtures("no_metal_leaks")(needs_emulator(test))


class Producer(Counted):
    """Another library's tensor on the fake: f32 numbers in a buffer of its own, `before` bytes behind its start.

    With a handle, it is another name for a buffer that is somebody else's.
    """

    def __init__(
        self, array: Any, before: int = 0, shared: bool = True, registry: int = 0, handle: int | None = None
    ) -> None:
        super().__init__(array)
        made = handle or _library().bcu_fake_metal_buffer(before + self.memory.nbytes + 24, shared, registry)
        self.handle, self.before, self.owns = made, before, not handle
        tensor = self.managed.tensor
        tensor.data, tensor.byte_offset, tensor.device[0] = self.handle, before, 8
        if shared and self.owns:
            self.numbers()[...] = self.memory

    def numbers(self) -> Any:
        """Where the host sees them, in a buffer that is shared; nothing is waited for."""
        at = _library().bcu_fake_metal_contents(self.handle) + self.before
        return np.frombuffer((ctypes.c_char * self.memory.nbytes).from_address(at), np.float32).reshape(
            self.memory.shape
        )

    def _delete(self, address: int) -> None:
        super()._delete(address)
        if self.owns:
            self.release()

    def release(self) -> None:
        """Lets go of the buffer, as the deleter does."""
        _library().bcu_fake_metal_release(self.handle)

    def __dlpack__(self, **_: object) -> Any:
        return self.capsule()

    def __dlpack_device__(self) -> tuple[int, int]:
        return 8, 0


def buffer_numbers(handle: int, offset: int, count: int) -> Any:
    """What a consumer sees that is given a buffer by DLPack."""
    at = _library().bcu_fake_metal_contents(handle) + offset
    return np.frombuffer((ctypes.c_char * (4 * count)).from_address(at), np.float32)
