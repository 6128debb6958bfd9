"""Every function of the CUDA runtime that the module calls fails once: the error names function and code, and nothing is
left behind. The functions are read from the sources, so that a new one without a test fails here."""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakecuda import calls, failing, live, needs_emulator, on_devices
from test_device_capture import CAPTURING
from test_device_expr import LOADING

import baracuda as bc

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [*(ROOT / "csrc" / "backends" / "cuda").iterdir(), ROOT / "csrc" / "simt" / "submit_cuda.h"]
USED = {
    name
    for path in SOURCES
    for name in re.findall(r"\b(cuda[A-Z]\w+)(?=\(|, |\))", path.read_text())
    if not re.match(r"cuda(Error|Success|Memcpy\w*To|Stream(_t|Default|NonBlocking|Capture(Mode|Status))|Event(Default|Dis))", name)
}  # fmt: skip
PLACE = "cuda:1"
X = np.arange(24, dtype=np.float32).reshape(4, 6)
DESC = bc.UnaryDescriptor("neg", (4, 6))


class Ready:
    """What the calls below work on."""

    def __init__(self) -> None:
        self.plan = bc.plan(DESC, PLACE)
        self.x, self.y = bc.asarray(X, device=PLACE), bc.asarray(X, device=PLACE)
        self.there = bc.asarray(X, device="cuda:0")
        self.there.to(PLACE)  # peers are asked once
        self.stream, self.event = bc.Stream(PLACE, non_blocking=True), bc.Event(PLACE)
        self.event.record(self.stream)
        self.event.synchronize()
        with self.stream.capture() as self.graph:
            self.plan.run(self.x, self.y, stream=self.stream)
        bc.synchronize(PLACE)

    def capture(self) -> None:
        with self.stream.capture():
            self.plan.run(self.x, self.y, stream=self.stream)


# One call that reaches the function; of graphs and of compiled kernels: CAPTURING, LOADING.
REACH: dict[str, Callable[[Ready], Any]] = {
    "cudaDeviceSynchronize": lambda r: bc.synchronize(PLACE),
    "cudaEventCreateWithFlags": lambda r: bc.Event(PLACE),
    "cudaEventElapsedTime": lambda r: r.event.elapsed_time(r.event),
    "cudaEventQuery": lambda r: r.event.query(),
    "cudaEventRecord": lambda r: r.event.record(r.stream),
    "cudaEventSynchronize": lambda r: r.event.synchronize(),
    "cudaGetDevice": lambda r: bc.empty(3, device=PLACE),
    "cudaGraphDestroy": lambda r: r.capture(),
    "cudaGraphGetNodes": lambda r: r.capture(),
    "cudaGraphInstantiateWithFlags": lambda r: r.capture(),
    "cudaGraphLaunch": lambda r: r.graph.launch(),
    "cudaMalloc": lambda r: bc.empty(3, device=PLACE),
    "cudaMemcpyAsync": lambda r: r.x.to("cpu"),
    "cudaMemcpyPeerAsync": lambda r: r.there.to(PLACE),
    "cudaMemsetAsync": lambda r: bc.zeros(3, device=PLACE),
    "cudaSetDevice": lambda r: bc.empty(3, device=PLACE),
    "cudaStreamBeginCapture": lambda r: r.capture(),
    "cudaStreamCreateWithFlags": lambda r: bc.Stream(PLACE),
    "cudaStreamEndCapture": lambda r: r.capture(),
    "cudaStreamIsCapturing": lambda r: r.stream.query(),
    "cudaStreamQuery": lambda r: r.stream.query(),
    "cudaStreamSynchronize": lambda r: r.x.to("cpu"),
    "cudaStreamWaitEvent": lambda r: r.event.wait(r.stream),
    "cudaLaunchKernel": lambda r: r.plan.run(r.x, r.y),
}
# When a process looks for its devices, or first uses one; tested in processes of their own.
AT_START = {
    "cudaGetDeviceCount": "devices", "cudaGetDeviceProperties": "devices", "cudaDriverGetVersion": "devices",
    "cudaRuntimeGetVersion": "devices", "cudaMalloc": "use", "cudaMemset": "use", "cudaStreamSynchronize": "use",
    "cudaDeviceCanAccessPeer": "peers", "cudaDeviceEnablePeerAccess": "peers",
}  # fmt: skip
# Called when an object goes, which cannot raise; and for cudaThreadExchangeStreamCaptureMode before that.
AT_END = {
    "cudaFree": lambda r: r.__dict__.pop("y"),
    "cudaEventDestroy": lambda r: r.__dict__.pop("event"),
    "cudaGraphExecDestroy": lambda r: r.__dict__.pop("graph"),
    "cudaStreamDestroy": lambda r: [r.__dict__.pop(name) for name in ("graph", "stream")],
    "cudaThreadExchangeStreamCaptureMode": lambda r: r.__dict__.pop("y"),
}  # fmt: skip
# They report errors, and have none.
NEVER_FAIL = {"cudaGetLastError", "cudaPeekAtLastError", "cudaGetErrorString"}


def test_every_function_that_is_called_is_made_to_fail() -> None:
    assert {*REACH, *AT_START, *AT_END, *CAPTURING, *LOADING} | NEVER_FAIL == USED


@on_devices
@pytest.mark.parametrize("api", REACH)
def test_a_call_that_fails_is_an_error_and_leaves_nothing(api: str) -> None:
    r = Ready()
    before, asked = live(), calls(api)
    code = 2 if api == "cudaMalloc" else 719
    with failing(f"{api}:1"), pytest.raises(bc.DeviceError) as caught:
        REACH[api](r)
    assert calls(api) > asked
    name = "kernel launch" if api == "cudaLaunchKernel" else api
    text = str(caught.value)
    assert f"{name}: " in text and f"(CUDA error {code})" in text and ("cuda:1" in text or "cuda:0" in text)
    assert caught.value.code == ("device_memory" if api == "cudaMalloc" else "launch_failed")
    del caught
    gc.collect()
    bc.synchronize(PLACE)
    now = live()
    assert (now.allocations, now.streams, now.events, now.graphs) == (
        before.allocations, before.streams, before.events, before.graphs,
    )  # fmt: skip
    REACH[api](r)
    r.plan.run(r.x, r.y)
    assert (r.y.to("cpu").numpy() == -X).all(), "and the device works on"


SCRIPT = """
import sys; sys.path.insert(0, 'tests/harness')
import baracuda as bc, fakecuda
what = sys.argv[1]
try:
    if what == 'devices': print([d.reason for d in bc.devices() if d.backend == 'cuda'])
    if what == 'use': bc.empty(3, device='cuda:1')
    if what == 'peers': bc.zeros(3, device='cuda:0').to('cuda:1')
except bc.DeviceError as e: print(type(e).__name__, e)
print(fakecuda.live().allocations if what == 'use' else 0)
if what != 'devices': print(bc.zeros(3, device='cuda:0').to('cuda:1').to('cpu').numpy().tolist())
"""


@needs_emulator
@pytest.mark.parametrize("api", AT_START)
def test_functions_of_the_start(api: str) -> None:
    env = os.environ | {"BARACUDA_FAKE_CUDA_FAIL": f"{api}:1"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, AT_START[api]], env=env, capture_output=True, text=True, check=True, cwd=ROOT
    )
    told, left, *works = done.stdout.splitlines()
    code = 2 if api == "cudaMalloc" else 719
    assert f"{api}: " in told and f"(CUDA error {code})" in told
    assert left == "0"
    assert works == ([] if AT_START[api] == "devices" else ["[0.0, 0.0, 0.0]"])


@on_devices
@pytest.mark.parametrize("api", AT_END)
def test_functions_of_the_end_raise_nothing(api: str) -> None:
    r = Ready()
    asked = calls(api)
    with failing(f"{api}:1"):
        AT_END[api](r)
        gc.collect()
        assert calls(api) > asked
    fresh = Ready()
    fresh.plan.run(fresh.x, fresh.y)
    assert (fresh.y.to("cpu").numpy() == -X).all()
