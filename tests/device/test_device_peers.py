"""Several devices, on the emulated cuda module: copies between them, and the calling thread's own device."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fakecuda import calls, failing, live, needs_emulator, on_devices, using_device

import baracuda as bc
import baracuda.functional as F

X = np.arange(24, dtype=np.float32).reshape(4, 6)
DESC = bc.UnaryDescriptor("neg", (4, 6))


def host(t: bc.Tensor) -> np.ndarray[Any, Any]:
    return t.to("cpu").numpy()


@on_devices
@pytest.mark.parametrize(("source", "target"), [("cuda:0", "cuda:1"), ("cuda:1", "cuda:0")])
def test_devices_copy_from_each_other_directly(source: str, target: str) -> None:
    x = bc.asarray(X, device=source)
    stream = bc.Stream(target, non_blocking=True)
    watched = ("cudaMemcpyPeerAsync", "cudaMemcpyAsync")
    before = [calls(api) for api in watched]
    moved = x.to(target, stream=stream)
    assert [calls(api) - n for api, n in zip(watched, before, strict=True)] == [1, 0], "not through the host"
    assert live().pending == 0, "the copy is done"
    assert moved.device == target and (host(moved) == X).all()
    enabled = calls("cudaDeviceEnablePeerAccess")
    x.to(target)
    assert calls("cudaDeviceEnablePeerAccess") == enabled, "access is asked for once"
    wide = bc.zeros((8, 13), device=target)
    wide[1::2, 12:0:-2].copy_from(x[:, ::-1])
    want = np.zeros((8, 13), np.float32)
    want[1::2, 12:0:-2] = X[:, ::-1]
    assert (host(wide) == want).all()
    assert (x.transpose().to(target).to("cpu").numpy() == X.T).all()
    assert bc.zeros((0, 3), device=source).to(target).shape == (0, 3)


@on_devices
def test_what_the_source_has_to_do_comes_first() -> None:
    x, stream = bc.asarray(X, device="cuda:0"), bc.Stream("cuda:0", non_blocking=True)
    views: tuple[Callable[[Any], Any], ...] = (lambda t: t, lambda t: t.transpose(), lambda t: t[::2, ::-1])
    for view in views:
        y = bc.zeros((4, 6), device="cuda:0")
        bc.synchronize("cuda:0")
        bc.plan(DESC, "cuda:0").run(x, y, stream=stream)
        assert live().pending == 1
        assert (host(view(y).to("cuda:1")) == view(-X)).all()
    z = bc.zeros((4, 6), device="cuda:1")
    bc.plan(DESC, "cuda:1").run(y.to("cuda:1"), z)
    assert (host(z.copy_from(y)) == -X).all()


@on_devices
def test_copies_between_devices_that_fail() -> None:
    x = bc.asarray(X, device="cuda:0")
    before = live()
    for api in ("cudaMemcpyPeerAsync", "cudaStreamSynchronize"):
        with failing(f"{api}:1"), pytest.raises(bc.DeviceError, match=rf": {api}: .*\(CUDA error 719\)"):
            x.to("cuda:1")
    assert live().allocations == before.allocations
    assert (host(x.to("cuda:1")) == X).all()


@needs_emulator
@pytest.mark.parametrize("peers", [True, False])
def test_devices_without_a_way_to_each_other(peers: bool) -> None:
    """In a process of its own: access is asked for once. Where there is none the driver goes through the host."""
    code = (
        "import sys; sys.path.insert(0, 'tests/harness')\n"
        "import numpy as np, baracuda as bc, fakecuda\n"
        "x = np.arange(6.0)\n"
        "t = bc.asarray(x, device='cuda:0')\n"
        "for api in ('cudaDeviceCanAccessPeer', 'cudaDeviceEnablePeerAccess'):\n"
        "    with fakecuda.failing(api):\n"
        "        try: t.to('cuda:1'); print('fine', api)\n"
        "        except bc.DeviceError as e: print('error', e)\n"
        "print((t.to('cuda:1').to('cpu').numpy() == x).all(), fakecuda.calls('cudaDeviceEnablePeerAccess'))\n"
        "print(fakecuda.current_device(), fakecuda.live().pending)\n"
    )
    env = os.environ | ({} if peers else {"BARACUDA_FAKE_CUDA_NO_PEERS": "1"})
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    first, second, third, fourth = done.stdout.splitlines()
    assert first.startswith("error cuda:1: asking for a peer: cudaDeviceCanAccessPeer: ") and "CUDA error 719" in first
    if peers:
        assert second.startswith("error cuda:1: reaching a peer: cudaDeviceEnablePeerAccess: ")
        assert third == "True 2"
    else:
        assert (second, third) == ("fine cudaDeviceEnablePeerAccess", "True 0")
    assert fourth == "0 0"


def everything(place: str, other: str) -> dict[str, Callable[[], Any]]:
    """One call of each kind, on a device."""
    x, y = bc.asarray(X, device=place), bc.zeros((4, 6), device=place)
    made, stream = bc.plan(DESC, place), bc.Stream(place, non_blocking=True)
    event = bc.Event(place)
    event.record(stream)
    with stream.capture() as graph:
        made.run(x, y, stream=stream)
    bound = made.bind(x, y, stream=stream)
    return {
        "describe": lambda: bc.Device(place).description, "allocate": lambda: bc.empty(3, device=place),
        "fill": lambda: bc.zeros(3, device=place), "upload": lambda: bc.asarray(X, device=place),
        "download": lambda: x.to("cpu"), "copy": lambda: y.copy_from(x), "strided copy": lambda: y[:, ::2].copy_from(x[:, 1::2]),
        "item": lambda: x[0, 0].item(), "to the other": lambda: x.to(other), "from the other": lambda: bc.zeros(3, device=other).to(place),
        "run": lambda: made.run(x, y), "run in a stream": lambda: made.run(x, y, stream=stream), "bound": bound,
        "function": lambda: F.neg(x), "select": lambda: bc.plan(DESC, place), "stream": lambda: bc.Stream(place),
        "synchronize": stream.synchronize, "query": stream.query, "check": lambda: bc.synchronize(place),
        "event": lambda: bc.Event(place), "record": lambda: event.record(stream), "wait": lambda: event.wait(stream),
        "ask": event.query, "synchronize event": event.synchronize, "elapsed": lambda: event.elapsed_time(event),
        "capture": lambda: stream.capture().__enter__().__class__, "launch": graph.launch,
        "dlpack": lambda: bc.from_dlpack(x.__dlpack__(stream=None)),
    }  # fmt: skip


@on_devices
@pytest.mark.parametrize("mine", [0, 1])
def test_the_threads_own_device_stays_what_it_is(mine: int) -> None:
    with using_device(mine):
        for place, other in (("cuda:0", "cuda:1"), ("cuda:1", "cuda:0")):
            for what, call in everything(place, other).items():
                with using_device(mine):
                    call()
                bc.synchronize(place)
                for api in ("cudaMalloc", "cudaMemcpyAsync", "cudaLaunchKernel", "cudaStreamCreateWithFlags"):
                    with using_device(mine), failing(f"{api}:1"):
                        try:
                            call()
                        except bc.BaracudaError:
                            assert what
            bc.synchronize(place)


@on_devices
def test_a_plan_and_its_tensors_are_of_one_device() -> None:
    made = bc.plan(DESC, "cuda:1")
    here, there = bc.asarray(X, device="cuda:1"), bc.asarray(X, device="cuda:0")
    for args in ((there, here), (here, there), (there, there)):
        with pytest.raises(bc.InvalidProblemError, match="got cuda:0, want cuda:1") as caught:
            made.run(*args)
        assert caught.value.code == "device"
    assert made.can_implement(here, bc.zeros((4, 6), device="cuda:1"))
