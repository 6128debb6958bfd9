"""The fake CUDA runtime's controls: the emulated module is one library, opened by baracuda and by its path here."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

MODULE = os.environ.get("BARACUDA_CUDA_MODULE", "")
needs_emulator = pytest.mark.skipif(
    "emulated" not in MODULE,
    reason="needs BARACUDA_CUDA_MODULE: python tests/harness/emulator/build.py plain pytest tests/device/test_device.py",
)


@dataclass(frozen=True)
class Live:
    """What exists on all devices."""

    allocations: int
    bytes: int
    streams: int
    events: int
    graphs: int
    pending: int


def on_devices(test: Any) -> Any:
    """For tests that use the emulated devices: skipped without them, and nothing may stay behind on a device."""
    return pytest.mark.usefixtures("no_leaks")(needs_emulator(test))


def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(MODULE)
    library.bcu_fake_cuda_calls.restype = ctypes.c_int64
    library.bcu_fake_cuda_calls.argtypes = [ctypes.c_char_p]
    library.bcu_fake_cuda_fail.argtypes = [ctypes.c_char_p]
    library.bcu_fake_cuda_stream.restype = ctypes.c_void_p
    library.bcu_fake_cuda_destroy_stream.argtypes = [ctypes.c_void_p]
    library.bcu_fake_cuda_capture.argtypes = [ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32]
    return library


def live() -> Live:
    """What exists now: allocations, their bytes, streams, events, graphs, and operations that nobody has waited for."""
    out = (ctypes.c_int64 * 6)()
    _library().bcu_fake_cuda_live(out)
    return Live(*out)


def calls(api: str) -> int:
    """How often a function of the runtime was called."""
    return int(_library().bcu_fake_cuda_calls(api.encode()))


@contextmanager
def failing(wanted: str) -> Iterator[None]:
    """Makes calls fail, such as "cudaMalloc:1" (the next) or "cudaMemcpyAsync:2" (the one after)."""
    library = _library()
    library.bcu_fake_cuda_fail(wanted.encode())
    try:
        yield
    finally:
        library.bcu_fake_cuda_fail(b"")


@contextmanager
def raw_stream(device: int, *, non_blocking: bool = True) -> Iterator[int]:
    """A stream that another library made, as its handle."""
    library = _library()
    handle = int(library.bcu_fake_cuda_stream(device, int(non_blocking)))
    try:
        yield handle
    finally:
        library.bcu_fake_cuda_destroy_stream(handle)


def current_device() -> int:
    """The device that the calling thread uses."""
    return int(_library().bcu_fake_cuda_current_device())


@contextmanager
def using_device(device: int) -> Iterator[None]:
    """Makes a device the calling thread's, as its own CUDA code would; it must still be that in the end."""
    before = current_device()
    assert _library().bcu_fake_cuda_set_device(device) == 0
    yield
    assert current_device() == device, "a call of baracuda left another device behind"
    assert _library().bcu_fake_cuda_set_device(before) == 0


GLOBAL, THREAD_LOCAL, RELAXED = 0, 1, 2


@contextmanager
def raw_capture(handle: int, mode: int = GLOBAL) -> Iterator[list[int]]:
    """A stream that another library captures, as torch.cuda.graph does; the list gets CUDA's code of the end."""
    library, ended = _library(), []
    assert library.bcu_fake_cuda_capture(handle, mode, 0) == 0
    try:
        yield ended
    finally:
        ended.append(library.bcu_fake_cuda_capture(handle, mode, 1))
