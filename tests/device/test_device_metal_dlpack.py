"""Metal's buffers by DLPack, both ways: a producer and a consumer of the tests' own on the fake."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from capsules import Versioned
from fakemetal import Producer, buffer_numbers, live, needs_emulator, on_metal
from metal_work import X, no_metal_leaks, run, same, swiglu  # noqa: F401

import baracuda as bc
import baracuda.functional as F

pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def tensor_in(capsule: Any) -> Any:
    """The DLTensor of a capsule that stays whose it is."""
    return Versioned.from_address(pointer_of(capsule, b"dltensor_versioned")).tensor


@on_metal
@pytest.mark.parametrize("before", [0, 8, 4096])
@pytest.mark.parametrize("shared", [True, False])
def test_another_librarys_buffer_is_read_and_written_where_it_is(before: int, shared: bool) -> None:
    x, y = Producer(X, before, shared), Producer(np.zeros((6, 32)), before, shared)
    mine, theirs = bc.from_dlpack(x), bc.from_dlpack(y)
    assert mine.device == "metal" and mine.shape == (6, 64) and not mine.read_only
    if not shared:
        mine.copy_from(X)
    count = live()["FakeBuffer"]
    run(mine, theirs)
    assert live()["FakeBuffer"] == count, "nothing is copied"
    same(theirs, swiglu(X))
    if shared:
        np.testing.assert_allclose(y.numbers(), swiglu(X), rtol=1e-6, atol=1e-6)
    del mine, theirs
    gc.collect()
    assert (x.deleted, y.deleted) == (1, 1)


@on_metal
def test_arguments_of_calls_are_used_for_that_call() -> None:
    x, y = Producer(X, 16), Producer(np.zeros((6, 32)), 32)
    plan = bc.plan(bc.GatedActivationDescriptor("swiglu", X.shape), device="metal")
    assert plan.can_implement(x=bc.from_dlpack(x), y=bc.empty((6, 32), device="metal"))
    x = Producer(X, 16)
    plan.run(x=x, y=y)
    assert (x.deleted, y.deleted) == (1, 1)
    same(F.swiglu(Producer(X, 24)), swiglu(X))
    z = bc.empty((6, 32), device="metal")
    bound = plan.bind(x=Producer(X, 40), y=z)
    bound()
    same(z, swiglu(X))
    del bound


@on_metal
def test_a_buffer_that_comes_again_remembers_the_work_that_uses_it() -> None:
    y = Producer(np.zeros((6, 32)), 8)
    again = Producer(np.zeros((6, 32)), 8, handle=y.handle)
    held = bc.from_dlpack(again)
    run(bc.asarray(X, device="metal"), bc.from_dlpack(y))  # gone, when work under way writes to it
    gc.collect()
    same(held, swiglu(X))
    np.testing.assert_allclose(again.numbers(), swiglu(X), rtol=1e-6, atol=1e-6)


@on_metal
@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        (lambda t: setattr(t, "data", None), bc.InvalidProblemError, "no buffer"),
        (lambda t: setattr(t, "data", t.data + 12), bc.InvalidProblemError, "offsets belong into byte_offset"),
        (lambda t: setattr(t, "byte_offset", 56), bc.BufferTooSmallError, "reaches out of its buffer"),
        (lambda t: t.shape.__setitem__(0, 7), bc.BufferTooSmallError, "reaches out of its buffer of 1576 bytes"),
    ],
)
def test_what_is_no_memory_of_a_buffer_is_refused(change: Any, error: type[Exception], says: str) -> None:
    x = Producer(X, 16)
    change(x.managed.tensor)
    with pytest.raises(error, match=says):
        bc.from_dlpack(x)
    assert x.deleted == 0, "it stays the producer's"
    x.release()


@on_metal
def test_a_buffer_of_another_device_is_refused() -> None:
    x = Producer(X, registry=7)
    with pytest.raises(bc.InvalidProblemError, match="another Metal device"):
        bc.from_dlpack(x)
    x.release()


@on_metal
def test_exports_name_the_buffer_and_the_offset() -> None:
    x = bc.asarray(X, device="metal")
    assert x.__dlpack_device__() == (8, 0)
    capsule, part = x.__dlpack__(max_version=(1, 0)), x[2:, 3:].__dlpack__(max_version=(1, 0))
    whole_tensor, part_tensor = tensor_in(capsule), tensor_in(part)
    assert whole_tensor.data == part_tensor.data != x.address
    assert (whole_tensor.byte_offset, part_tensor.byte_offset) == (0, 4 * (2 * 64 + 3))
    assert list(part_tensor.shape[:2]) == [4, 61] and list(part_tensor.strides[:2]) == [64, 1]
    np.testing.assert_array_equal(buffer_numbers(whole_tensor.data, 0, X.size), X.ravel())
    np.testing.assert_array_equal(buffer_numbers(part_tensor.data, part_tensor.byte_offset, 61), X[2, 3:])


@on_metal
def test_exports_wait_for_the_work_that_writes_them() -> None:
    y = bc.empty((6, 32), device="metal")
    run(bc.asarray(X, device="metal"), y)
    out = tensor_in(capsule := y.__dlpack__(max_version=(1, 0)))
    got = buffer_numbers(out.data, out.byte_offset, 6 * 32).reshape(6, 32)
    np.testing.assert_allclose(got, swiglu(X), rtol=1e-6, atol=1e-6)
    del capsule


@on_metal
def test_our_own_tensors_go_there_and_back() -> None:
    x = bc.asarray(X, device="metal")
    twin = bc.from_dlpack(x[1:, ::2].__dlpack__(max_version=(1, 0)))
    address, x = x.address, None
    gc.collect()
    assert twin.address == address + 4 * 64
    np.testing.assert_array_equal(twin.to("cpu").numpy(), X[1:, ::2])
    empty = bc.empty((0, 3), device="metal")
    assert bc.from_dlpack(empty.__dlpack__(max_version=(1, 0))).shape == (0, 3)


POOLED = """
import gc
import numpy as np
import baracuda as bc
from fakemetal import live
x = bc.asarray(np.ones((300, 300), np.float32), device="metal")
capsule = x.__dlpack__(max_version=(1, 0))
before = live()["FakeBuffer"]
del x, capsule
gc.collect()
bc.Device("metal").synchronize()
print(before - live()["FakeBuffer"])
"""


@needs_emulator
def test_what_others_had_is_not_given_again() -> None:
    """Their work may still read it, of which nobody tells us."""
    env = os.environ | {"BARACUDA_METAL_POOL_BYTES": ""}
    env["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parents[1] / "harness"), env.get("PYTHONPATH", "")])
    done = subprocess.run([sys.executable, "-c", POOLED], env=env, capture_output=True, text=True, check=False)
    assert done.stdout == "1\n", done.stdout + done.stderr[-2000:]
