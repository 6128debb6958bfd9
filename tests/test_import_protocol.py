"""DLPack as any producer may speak it, and what importing leaves behind: nothing."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from capsules import DLTensor, Versioned, new_capsule
from imports import PLAN, N, X, accepted, out, refused, refused_as_output

import baracuda as bc
import baracuda.functional as F
from baracuda import _core

# --- the protocol itself ----------------------------------------------------------------------------------------------


class Producer:
    """Hands on another tensor's capsules, in any broken way."""

    def __init__(self, make: Any) -> None:
        self.make = make

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self.make(**kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


class Legacy:
    """A producer from before DLPack 1.0."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, stream: Any = None) -> Any:
        return self.array.__dlpack__()


capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
capsule_pointer.restype, capsule_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
rename_capsule = ctypes.pythonapi.PyCapsule_SetName
rename_capsule.restype, rename_capsule.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]
NAME, OTHER = b"dltensor_versioned", b"something"
CONSUMED = b"used_dltensor_versioned"


def test_capsules() -> None:
    accepted(Producer(lambda **k: X.__dlpack__(**k)))
    accepted(Legacy(X))
    refused_as_output("read_only", Legacy(out()))
    accepted(X.__dlpack__(max_version=(1, 0)), lambda: X.__dlpack__(max_version=(1, 0)))
    capsule = X.__dlpack__(max_version=(1, 0))
    rename_capsule(capsule, CONSUMED)
    assert "consumed" in str(refused("capsule", capsule))
    rename_capsule(capsule, OTHER)
    assert "something" in str(refused("capsule", capsule))
    rename_capsule(capsule, NAME)
    assert PLAN.can_implement(capsule, out())
    version = ctypes.c_uint32.from_address(capsule_pointer(capsule, NAME))
    version.value = 2
    assert "major version" in str(refused("capsule", capsule))
    version.value = 1
    refused("capsule", Producer(lambda **k: 5))
    refused("capsule", Producer(lambda **k: None))


def test_producers_that_raise() -> None:
    def fail(error: BaseException) -> Any:
        def make(**kwargs: Any) -> Any:
            raise error

        return make

    for error in (BufferError("no"), RuntimeError("broken"), TypeError("odd"), ValueError()):
        text = str(refused("capsule", Producer(fail(error))))
        assert type(error).__name__ in text
        assert not PLAN.can_implement(Producer(fail(error)), out())
    with pytest.raises(KeyboardInterrupt):
        PLAN.run(Producer(fail(KeyboardInterrupt())), out())
    with pytest.raises(KeyboardInterrupt):
        PLAN.can_implement(Producer(fail(KeyboardInterrupt())), out())


HELD: list[Any] = []


def handmade(**changes: Any) -> Any:
    shape = (ctypes.c_int64 * 16)(*changes.pop("shape", (4, 2 * N)))
    strides = changes.pop("strides", None)
    steps = (ctypes.c_int64 * 16)(*strides) if strides else None
    v = Versioned(1, 0, None, None, 0)
    v.tensor = DLTensor(X.ctypes.data, (ctypes.c_int32 * 2)(1, 0), 2, 2, 32, 1, shape, steps, 0)
    for name, value in changes.items():
        setattr(v.tensor, name, value)
    HELD.append((v, shape, steps))
    return new_capsule(ctypes.addressof(v), NAME, None)


def test_handmade_dlpack() -> None:
    for changes in ({}, {"strides": (2 * N, 1)}, {"data": X.ctypes.data - 8, "byte_offset": 8}):
        accepted(handmade(**changes), lambda changes=changes: handmade(**changes))
    refused("rank", lambda: handmade(ndim=-1))
    refused("rank", lambda: handmade(ndim=9))
    refused("element", lambda: handmade(lanes=4))
    refused("element", lambda: handmade(bits=24))
    refused("element", lambda: handmade(code=3))
    refused("device", lambda: handmade(device=(ctypes.c_int32 * 2)(14, 0)))
    refused("device", lambda: handmade(device=(ctypes.c_int32 * 2)(2, 0)))
    refused("null_data", lambda: handmade(data=None))
    refused("shape", lambda: handmade(shape=(-4, 2 * N)))
    refused("shape", lambda: handmade(shape=(2**40, 2**40)))
    refused("strides", lambda: handmade(strides=(2**62, 1)))
    refused("strides", lambda: handmade(strides=(-(2**63), 1)))


# --- references -------------------------------------------------------------------------------------------------------


def every_path() -> dict[str, Any]:
    x, y, t = X.copy(), out(), torch.from_numpy(X.copy())
    ty, own, legacy = torch.zeros(4, N), bc.asarray(X), Legacy(X.copy())
    grad = torch.zeros(4, 2 * N, requires_grad=True)
    sub = torch.from_numpy(X.copy()).as_subclass(type("Sub", (torch.Tensor,), {}))
    masked, swapped = np.ma.masked_array(X), X.astype(">f4")
    broken = Producer(lambda **k: 5)
    bound = PLAN.bind(x, y)

    def fails(call: Any) -> Any:
        def attempt() -> None:
            try:
                call()
            except bc.BaracudaError:
                return
            raise AssertionError("accepted")

        return attempt

    return {
        "run numpy": lambda: PLAN.run(x, y), "run keyword": lambda: PLAN.run(x=x, out=y), "run torch": lambda: PLAN.run(t, ty),
        "run own": lambda: PLAN.run(own, y), "run legacy": lambda: PLAN.run(legacy, y), "run subclass": lambda: PLAN.run(sub, y),
        "run shape": fails(lambda: PLAN.run(y, y)), "run missing": fails(lambda: PLAN.run(x)), "run grad": fails(lambda: PLAN.run(grad, y)),
        "run masked": fails(lambda: PLAN.run(masked, y)), "run swapped": fails(lambda: PLAN.run(swapped, y)),
        "run broken": fails(lambda: PLAN.run(broken, y)), "run unknown": fails(lambda: PLAN.run(x, y, nonsense=1)),
        "run none": fails(lambda: PLAN.run(None, y)), "run stream": fails(lambda: PLAN.run(x, y, stream=0)),
        "can": lambda: PLAN.can_implement(x, y), "cannot": lambda: PLAN.can_implement(y, x), "spec": lambda: PLAN.can_implement(bc.TensorSpec((4, 2 * N)), y),
        "bind": lambda: PLAN.bind(x, y)(), "bind legacy": lambda: PLAN.bind(legacy, y), "rebind": lambda: bound.rebind(x=x)(),
        "rebind fails": fails(lambda: bound.rebind(x=y)), "rebind unknown": fails(lambda: bound.rebind(nonsense=y)),
        "F numpy": lambda: F.swiglu(x), "F torch": lambda: F.swiglu(t), "F own": lambda: F.swiglu(own), "F fails": fails(lambda: F.swiglu(masked)),
        "F shape": fails(lambda: F.swiglu(x[:, :3])), "F grad": fails(lambda: F.swiglu(grad)), "export": lambda: np.from_dlpack(own),
        "borrow": lambda: bc.from_dlpack(t), "legacy export": lambda: own.__dlpack__(), "slice": lambda: own[1:],
    }  # fmt: skip


@pytest.mark.parametrize("path", list(every_path()))
def test_nothing_leaks(path: str) -> None:
    call = every_path()[path]
    held = [c.cell_contents for c in call.__closure__ or ()]
    inner = [c.cell_contents for h in held if callable(h) and getattr(h, "__closure__", None) for c in h.__closure__]
    objects = [o for o in (*held, *inner) if not callable(o)] + [PLAN, np.dtype(np.float32), None, torch.float32]

    def loop(n: int) -> None:
        for _ in range(n):
            call()

    loop(50)
    gc.collect()
    before = [sys.getrefcount(o) for o in objects]
    blocks = sys.getallocatedblocks()
    loop(1000)
    gc.collect()
    grown = [(type(o).__name__, sys.getrefcount(o) - b) for o, b in zip(objects, before, strict=True)]
    assert not [g for g in grown if abs(g[1]) > 50], f"reference counts moved: {grown}"
    assert sys.getallocatedblocks() - blocks < 500, "memory blocks stay behind"


@pytest.mark.skipif(
    os.environ.get("BARACUDA_SANITIZER") is not None, reason="a sanitizer keeps what was freed for a while"
)
def test_memory_stays_the_same_over_all_paths() -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1])

    if not Path("/proc/self/statm").exists():
        pytest.skip("needs /proc")
    paths = every_path().values()

    def loop(n: int) -> None:
        for _ in range(n):
            for call in paths:
                call()

    loop(100)
    gc.collect()
    before = resident()
    loop(300)
    gc.collect()
    pages = resident() - before
    assert pages < 200, f"{pages} pages more after 300 rounds"


def test_bound_plans_hold_their_tensors() -> None:
    x, y = X.copy(), out()
    counts = sys.getrefcount(x), sys.getrefcount(y)
    bound = PLAN.bind(x, y)
    assert sys.getrefcount(x) > counts[0] and sys.getrefcount(y) > counts[1]
    bound.rebind(x=X.copy())
    assert sys.getrefcount(x) == counts[0], "rebind lets go of what it replaces"
    del bound
    gc.collect()
    assert (sys.getrefcount(x), sys.getrefcount(y)) == counts


def test_describe_and_overlap_refuse_what_run_refuses() -> None:
    for bad in (None, "x", np.ma.masked_array(X)):
        with pytest.raises(bc.InvalidProblemError):
            _core.describe(bad)
        with pytest.raises(bc.InvalidProblemError):
            _core.overlap(X, bad)
