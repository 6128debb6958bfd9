"""The Metal backend's own code on a fake Metal: streams, events, memory, the status word, and whatever can fail."""

from __future__ import annotations

import gc
import json
import mmap
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakemetal import calls, failing, live, needs_emulator, on_metal, removed
from metal_work import X, no_metal_leaks, run, same, swiglu, whole  # noqa: F401

import baracuda as bc
import baracuda.functional as F

# --- order ----------------------------------------------------------------------------------------------------------


@on_metal
def test_nothing_is_done_before_somebody_waits() -> None:
    stream = bc.Stream("metal", non_blocking=True)
    x, y = bc.asarray(X, device="metal"), bc.empty((6, 32), device="metal")
    before = calls("dispatchThreadgroups"), calls("commit")
    run(x, y, stream)
    assert (calls("dispatchThreadgroups"), calls("commit")) == (before[0] + 1, before[1]), "it is batched"
    assert not stream.query(), "and begun by a question"
    assert calls("commit") == before[1] + 1
    stream.synchronize()
    assert stream.query()
    same(y, swiglu(X))


@on_metal
def test_launches_share_command_buffers() -> None:
    x, y = bc.asarray(X, device="metal"), bc.empty((6, 32), device="metal")
    bc.Device("metal").synchronize()
    before = calls("commit")
    for _ in range(130):
        run(x, y)
    assert calls("commit") - before == 2, "64 launches each; the rest waits"
    same(y, swiglu(X))


@on_metal
@pytest.mark.parametrize("non_blocking", [False, True])
def test_events_order_streams(non_blocking: bool) -> None:
    one, two = (bc.Stream("metal", non_blocking=non_blocking) for _ in range(2))
    x, y, z = bc.asarray(X, device="metal"), bc.empty((6, 32), device="metal"), bc.empty((6, 16), device="metal")
    event = bc.Event("metal")
    run(x, y, one)
    event.record(one)
    two.wait(event)
    run(y, z, two)
    two.synchronize()
    same(z, swiglu(swiglu(X)))


@on_metal
def test_a_blocking_stream_and_the_default_one_wait_for_each_other() -> None:
    stream = bc.Stream("metal")
    x, y = bc.asarray(X, device="metal"), bc.empty((6, 32), device="metal")
    z, w = bc.empty((6, 16), device="metal"), bc.empty((6, 8), device="metal")
    run(x, y)
    run(y, z, stream)
    run(z, w)
    same(w, swiglu(swiglu(swiglu(X))))


@on_metal
def test_events_measure_time() -> None:
    start, end = bc.Event("metal"), bc.Event("metal")
    x, y = bc.asarray(X, device="metal"), bc.empty((6, 32), device="metal")
    start.record()
    for _ in range(5):
        run(x, y)
    end.record()
    end.synchronize()
    assert start.query() and end.query()
    assert 5 <= start.elapsed_time(end) < 50


@on_metal
def test_a_stream_may_go_with_its_work_under_way() -> None:
    x, y = bc.asarray(X, device="metal"), bc.empty((6, 32), device="metal")
    stream = bc.Stream("metal", non_blocking=True)
    run(x, y, stream)
    del stream
    gc.collect()
    same(y, swiglu(X))


@on_metal
def test_copies_wait_for_the_work_that_uses_their_memory() -> None:
    stream = bc.Stream("metal", non_blocking=True)
    x, y = bc.asarray(X, device="metal"), bc.empty((6, 32), device="metal")
    run(x, y, stream)
    x.copy_from(np.zeros_like(X))  # read by what is under way
    same(y, swiglu(X))
    twin = bc.zeros((6, 32), device="metal")
    twin.copy_from(y)
    same(twin, swiglu(X))


# --- memory ---------------------------------------------------------------------------------------------------------


@on_metal
def test_memory_goes_when_nothing_uses_it() -> None:
    before = live()["FakeBuffer"]
    x = bc.asarray(X, device="metal")
    y = F.swiglu(x)
    assert live()["FakeBuffer"] == before + 2
    del x
    gc.collect()
    assert live()["FakeBuffer"] == before + 2, "a launch that is under way reads it"
    same(y, swiglu(X))
    del y
    bc.Device("metal").synchronize()
    assert live()["FakeBuffer"] == before


@on_metal
def test_no_memory_left() -> None:
    with failing("newBufferWithLength:1"), pytest.raises(bc.DeviceMemoryError, match="buffer of 1536 bytes"):
        bc.asarray(X, device="metal")


@on_metal
def test_pages_of_the_host_are_used_where_they_are() -> None:
    memory = np.frombuffer(mmap.mmap(-1, 4096), np.float32)
    memory[: X.size] = X.ravel()
    y = np.frombuffer(mmap.mmap(-1, 3 * 4096), np.float32)[: 6 * 32].reshape(6, 32)
    before = calls("newBufferWithLength")
    x, out = (bc.from_dlpack(a, device="metal", copy=False) for a in (memory[: X.size].reshape(6, 64), y))
    run(x, out)
    bc.synchronize("metal")
    assert calls("newBufferWithLength") == before, "nothing is copied"
    np.testing.assert_allclose(y, swiglu(X), rtol=1e-6, atol=1e-6)
    part = bc.from_dlpack(memory[: X.size].reshape(6, 64).T, device="metal")  # the same pages once more
    np.testing.assert_array_equal(part.to("cpu").numpy(), X.T)


@on_metal
def test_pages_stay_until_the_work_that_uses_them_is_done() -> None:
    y = np.frombuffer(mmap.mmap(-1, 4096), np.float32)[: 6 * 32].reshape(6, 32)
    out = bc.from_dlpack(y, device="metal", copy=False)
    run(bc.asarray(X, device="metal"), out)
    del out  # waits
    np.testing.assert_allclose(y, swiglu(X), rtol=1e-6, atol=1e-6)


@on_metal
def test_memory_that_cannot_be_shared_is_copied() -> None:
    memory = np.frombuffer(mmap.mmap(-1, 8192), np.float32)
    odd = memory[1 : X.size + 1].reshape(6, 64)
    odd[...] = X
    copied = bc.from_dlpack(odd, device="metal")
    odd[...] = 0
    np.testing.assert_array_equal(copied.to("cpu").numpy(), X)
    with pytest.raises(bc.InvalidProblemError, match="is not the beginning of a page"):
        bc.from_dlpack(odd, device="metal", copy=False)
    whole_pages = memory[: X.size].reshape(6, 64)
    whole_pages[...] = X
    with failing("newBufferWithBytesNoCopy:1"):
        same(bc.from_dlpack(whole_pages, device="metal"), X)
    with failing("newBufferWithBytesNoCopy:1"), pytest.raises(bc.InvalidProblemError, match="Metal makes no buffer"):
        bc.from_dlpack(whole_pages, device="metal", copy=False)
    fresh = bc.from_dlpack(whole_pages, device="metal", copy=True)
    whole_pages[...] = 0
    same(fresh, X)
    assert bc.from_dlpack(np.zeros((0, 3), np.float32), device="metal").shape == (0, 3)
    with pytest.raises(bc.InvalidProblemError, match="memory of its own"):
        bc.from_dlpack(fresh, device="cpu", copy=False)


# --- runs of graphs -------------------------------------------------------------------------------------------------


def steps(x: Any) -> Any:
    for _ in range(70):
        x = F.softmax(x, -1)
    return x


@on_metal
def test_a_run_of_a_graph_is_one_command_buffer() -> None:
    compiled = bc.trace(steps, bc.TensorSpec((6, 64), device="metal")).compile(capture=True)
    assert compiled.launches == 70, "more than a batch"
    plain = bc.trace(steps, bc.TensorSpec((6, 64), device="metal")).compile(capture=False)
    x = bc.asarray(X, device="metal")
    y, z = (bc.empty(X.shape, device="metal") for _ in range(2))
    y.copy_from(x)  # in a command buffer that is open
    bc.synchronize("metal")
    for k in range(3):
        before = calls("commit"), calls("dispatchThreadgroups")
        compiled.run(x, out=y)
        assert (calls("commit") - before[0], calls("dispatchThreadgroups") - before[1]) == (1, 70)
        assert compiled.capture and compiled.capture.replays == k + 1
    before = calls("commit")
    plain.run(x, out=z)
    bc.synchronize("metal")
    assert calls("commit") - before == 2, "a batch, and the rest"
    assert plain.capture.reason == "nobody asked for capture"
    np.testing.assert_array_equal(y.to("cpu").numpy(), z.to("cpu").numpy())


@on_metal
def test_a_run_that_fails_leaves_the_next_one_whole() -> None:
    compiled = bc.trace(steps, bc.TensorSpec((6, 64), device="metal")).compile(capture=True)
    x, y = bc.asarray(X, device="metal"), bc.empty(X.shape, device="metal")
    with failing("commandBuffer:1"), pytest.raises(bc.DeviceError, match="no command buffer"):
        compiled.run(x, out=y)
    compiled.run(x, out=y)
    assert compiled.capture


@on_metal
def test_memory_of_no_buffer_is_told_by_the_argument() -> None:
    host = np.zeros((6, 64), np.float32)
    lost = bc.from_pointer(host.ctypes.data, (6, 64), "f32", device="metal")
    with pytest.raises(bc.DeviceError, match=r"x: .*gated_swiglu_forward: 0x[0-9a-f]+ is no memory of this device"):
        run(lost, bc.empty((6, 32), device="metal"))


# --- what fails -----------------------------------------------------------------------------------------------------


SELECTORS = (
    "newBufferWithLength",
    "newCommandQueue",
    "newSharedEvent",
    "commandBuffer",
    "computeCommandEncoder",
    "blitCommandEncoder",
    "execution",
)


@on_metal
@pytest.mark.parametrize("selector", SELECTORS)
def test_every_call_may_fail(selector: str) -> None:
    """At the k-th, for every k: an error says what failed, and nothing is left behind or broken."""
    whole()
    raised = 0
    for k in range(1, 40):
        before = calls(selector)
        with failing(f"{selector}:{k}"):
            try:
                whole()
            except (bc.DeviceError, bc.DeviceMemoryError) as e:
                raised += 1
                assert str(e)
        done = calls(selector) - before
        gc.collect()
        try:
            bc.Device("metal").synchronize()
        except bc.DeviceError as e:  # of work that nobody waited for
            assert "a failure that a test asked for" in str(e)
            raised += 1
        whole()
        if done < k:
            break
    else:
        pytest.fail("it is called again and again")
    assert raised == k - 1, "each failure is told, once"


@on_metal
def test_a_command_buffers_failure_is_told_in_metals_words() -> None:
    x = bc.asarray(X, device="metal")
    with failing("execution:1"):
        y = F.swiglu(x)
        with pytest.raises(bc.DeviceError, match=r"a failure that a test asked for \(MTLFakeErrorDomain 1\)"):
            y.to("cpu")
    same(F.swiglu(x), swiglu(X))


@on_metal
def test_a_device_that_is_removed() -> None:
    x = bc.asarray(X, device="metal")
    y = F.swiglu(x)
    with removed():
        with pytest.raises(bc.DeviceError, match=r"removed \(MTLFakeErrorDomain 11\)"):
            y.to("cpu")
        with pytest.raises(bc.DeviceError, match="no command buffer"):
            run(x, y)
        with pytest.raises((bc.DeviceError, bc.DeviceMemoryError)):
            bc.asarray(X, device="metal")
        with pytest.raises(bc.DeviceError, match="command queue"):
            bc.Stream("metal")
    same(F.swiglu(x), swiglu(X))


# --- other devices, in processes of their own -----------------------------------------------------------------------

SELECTED = """
import json
import baracuda as bc
from fakemetal import calls
names = "newLibraryWithSource", "newComputePipelineStateWithDescriptor", "dispatchThreadgroups"
before = [calls(n) for n in names]
plan = bc.plan(bc.GatedActivationDescriptor("swiglu", (6, 64)), device="metal")
selected = [calls(n) for n in names]
x, y = bc.zeros((6, 64), device="metal"), bc.empty((6, 32), device="metal")
plan.run(x=x, y=y)
bc.synchronize("metal")
print(json.dumps([before, selected, [calls(n) for n in names]]))
"""

WORK = """
import json
import numpy as np
import baracuda as bc, baracuda.functional as F
from fakemetal import calls, live, problems
X = np.linspace(-2, 3, 6 * 64, dtype=np.float32).reshape(6, 64)
out = {"usable": bc.Device("metal").usable, "reason": bc.Device("metal").reason}
if out["usable"]:
    try:
        for _ in range(3):
            x = bc.asarray(X, device="metal")
            y = F.swiglu(x)
            twin = bc.zeros((6, 32), device="metal")
            twin.copy_from(y)
            out["y"] = twin.to("cpu").numpy().tolist()
            del x, y, twin
    except bc.DeviceError as e:
        out["error"] = str(e)
    out["problems"] = problems()
    out["calls"] = {n: calls(n) for n in ("newBufferWithLength", "newLibraryWithSource", "serializeToURL",
                                          "found in an archive", "copyFromBuffer", "blitCommandEncoder")}
print(json.dumps(out))
"""


def told_by(work: str, **settings: str) -> Any:
    env = os.environ | settings
    env["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parents[1] / "harness"), env.get("PYTHONPATH", "")])
    done = subprocess.run([sys.executable, "-c", work], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def in_process(**settings: str) -> dict[str, Any]:
    found: dict[str, Any] = told_by(WORK, **settings)
    if "y" in found:
        np.testing.assert_allclose(found["y"], swiglu(X), rtol=1e-6, atol=1e-6)
        assert found["problems"] == ""
    return found


@needs_emulator
def test_kernels_are_compiled_when_a_plan_is_selected() -> None:
    before, selected, after = told_by(SELECTED)
    assert (before, selected, after) == ([0, 0, 0], [1, 1, 0], [1, 1, 1])


@needs_emulator
def test_the_pool_gives_memory_again() -> None:
    pooled = in_process(BARACUDA_METAL_POOL_BYTES="")
    plain = in_process()
    assert pooled["y"] == plain["y"]
    assert plain["calls"]["newBufferWithLength"] - pooled["calls"]["newBufferWithLength"] == 6


@needs_emulator
def test_memory_that_the_host_cannot_reach() -> None:
    """Private buffers, filled and read by copies from and to buffers that both reach."""
    found = in_process(BARACUDA_FAKE_METAL_UNIFIED="0")
    assert found["calls"]["blitCommandEncoder"] >= 3 * 4


@needs_emulator
def test_what_was_compiled_is_kept_on_disk(tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "deep"
    first = in_process(BARACUDA_CACHE_DIR=str(folder))["calls"]
    kept = list(folder.iterdir())
    assert [p.name.split("-")[0] for p in kept] == ["gated_swiglu_forward"]
    assert (first["serializeToURL"], first["found in an archive"]) == (1, 0)
    second = in_process(BARACUDA_CACHE_DIR=str(folder))["calls"]
    assert (second["serializeToURL"], second["found in an archive"]) == (0, 1)
    kept[0].write_bytes(b"\xff\xfe broken")
    third = in_process(BARACUDA_CACHE_DIR=str(folder))["calls"]
    assert third["serializeToURL"] == 1, "it is made anew"
    unwritable = in_process(BARACUDA_CACHE_DIR="/proc/nowhere")
    assert "y" in unwritable


@needs_emulator
@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ({"BARACUDA_FAKE_METAL_DEVICES": "0"}, "there is no Metal device here"),
        ({"BARACUDA_FAKE_METAL_3": "0"}, "emulated Metal device: want a GPU of the Metal 3 family"),
        ({"BARACUDA_FAKE_METAL_FAIL": "newCommandQueue:1,newBufferWithLength:1"}, "no command queue or no memory"),
    ],
)
def test_a_device_that_cannot_be_used(setting: dict[str, str], reason: str) -> None:
    found = in_process(**setting)
    assert not found["usable"]
    assert reason in found["reason"]


@needs_emulator
@pytest.mark.parametrize(
    ("setting", "error"),
    [
        ({"BARACUDA_FAKE_METAL_WIDE": "1"}, "gated_swiglu_forward: the GPU has SIMD groups of 64 threads, want 32"),
        ({"BARACUDA_FAKE_METAL_HUNGRY": "1"}, "bytes of threadgroup memory, there are 32768"),
        ({"BARACUDA_FAKE_METAL_FAIL": "newLibraryWithSource:1"}, "gated.metal: program_source:1:1: error"),
        ({"BARACUDA_FAKE_METAL_FAIL": "newFunctionWithName:1"}, "the Metal text has no kernel gated_swiglu_forward"),
        (
            {"BARACUDA_FAKE_METAL_FAIL": "newComputePipelineStateWithDescriptor:1"},
            "making a pipeline of gated_swiglu_forward: Compiler encountered an internal error",
        ),
    ],
)
def test_a_kernel_that_cannot_run(setting: dict[str, str], error: str) -> None:
    found = in_process(**setting)
    assert error in found.get("error", ""), found
