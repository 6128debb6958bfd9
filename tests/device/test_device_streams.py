"""Events and the order of streams, on the emulated cuda module's two devices: nothing there runs before it must."""

from __future__ import annotations

import gc
import time
from typing import Any

import numpy as np
import pytest
from fakecuda import calls, current_device, failing, live, on_devices, raw_stream

import baracuda as bc

PLACES = ("cuda:0", "cuda:1")
DESC = bc.UnaryDescriptor("neg", (4, 6))
X = np.arange(24, dtype=np.float32).reshape(4, 6)


class Chain:
    """y = -x and z = -y on a device, by one plan."""

    def __init__(self, place: str) -> None:
        self.plan = bc.plan(DESC, place)
        self.x, self.y, self.z = (
            bc.asarray(X, device=place),
            bc.zeros((4, 6), device=place),
            bc.zeros((4, 6), device=place),
        )
        bc.synchronize(place)

    def holds(self, tensor: bc.Tensor, want: np.ndarray[Any, Any], stream: bc.Stream) -> bool:
        """Looks at memory in a stream of its own, which waits for nobody."""
        return bool((tensor.to("cpu", stream=stream).numpy() == want).all())


@on_devices
@pytest.mark.parametrize("place", PLACES)
def test_a_stream_waits_for_an_event(place: str) -> None:
    c = Chain(place)
    first, second, apart = (bc.Stream(place, non_blocking=True) for _ in range(3))
    c.plan.run(c.x, c.y, stream=first)
    c.plan.run(c.y, c.z, stream=second)
    second.synchronize()
    assert not c.holds(c.z, X, apart), "without an event the second stream runs ahead"
    event = bc.Event(place)
    c.plan.run(c.x, c.y, stream=first)
    event.record(first)
    event.wait(second)
    c.plan.run(c.y, c.z, stream=second)
    second.synchronize()
    assert c.holds(c.z, X, apart)
    assert current_device() == 0


@on_devices
@pytest.mark.parametrize("place", PLACES)
def test_streams_wait_for_streams_and_for_the_default_one(place: str) -> None:
    c = Chain(place)
    first, second, apart = (bc.Stream(place, non_blocking=True) for _ in range(3))
    c.plan.run(c.x, c.y, stream=first)
    second.wait(first)
    c.plan.run(c.y, c.z, stream=second)
    second.synchronize()
    assert c.holds(c.z, X, apart)
    assert live().events == 0, "what wait made for itself is gone"
    c.plan.run(c.z, c.y)  # in the default stream
    event = bc.Event(place, timing=False)
    event.record()
    second.wait(event)
    second.synchronize()
    assert c.holds(c.y, -X, apart)
    c.plan.run(c.x, c.z, stream=first)
    event.record(first)
    event.wait()
    bc.zeros(1, device=place).item()  # what waits for the default stream waits for the event
    assert c.holds(c.z, -X, apart)


@on_devices
def test_only_the_last_record_counts_and_none_is_done() -> None:
    c = Chain("cuda:0")
    first, second = bc.Stream("cuda:0", non_blocking=True), bc.Stream("cuda:0", non_blocking=True)
    event = bc.Event("cuda:0")
    assert event.query()
    event.synchronize()
    event.wait(second)
    c.plan.run(c.x, c.y, stream=first)
    event.record(first)
    event.wait(second)
    c.plan.run(c.x, c.z, stream=first)
    event.record(first)
    second.synchronize()
    apart = bc.Stream("cuda:0", non_blocking=True)
    assert c.holds(c.y, -X, apart) and not c.holds(c.z, -X, apart), "the wait was for the first record"
    assert not event.query()
    event.synchronize()
    assert event.query() and c.holds(c.z, -X, apart)


@on_devices
def test_devices_wait_for_each_other() -> None:
    here, there = Chain("cuda:0"), Chain("cuda:1")
    first, second = bc.Stream("cuda:0", non_blocking=True), bc.Stream("cuda:1", non_blocking=True)
    here.plan.run(here.x, here.y, stream=first)
    event = bc.Event("cuda:0")
    event.record(first)
    event.wait(second)
    there.plan.run(there.x, there.y, stream=second)
    second.synchronize()
    assert here.holds(here.y, -X, bc.Stream("cuda:0", non_blocking=True)), "the other device's work came first"
    assert there.holds(there.y, -X, second)
    here.plan.run(here.y, here.z, stream=first)
    second.wait(first)
    second.synchronize()
    assert live().pending == 0
    assert current_device() == 0
    for wrong in (lambda: event.record(second), lambda: bc.Event("cuda:1").record(first)):
        with pytest.raises(bc.InvalidProblemError, match="a stream of cuda") as caught:
            wrong()
        assert caught.value.code == "stream"


@on_devices
def test_query_lets_a_device_get_on() -> None:
    c = Chain("cuda:1")
    stream, event = bc.Stream("cuda:1", non_blocking=True), bc.Event("cuda:1")
    assert stream.query()
    for _ in range(3):
        c.plan.run(c.x, c.y, stream=stream)
    event.record(stream)
    c.plan.run(c.y, c.z, stream=stream)
    assert not event.query() and not stream.query()
    until = time.monotonic() + 10
    while not event.query():
        assert time.monotonic() < until
    assert not stream.query()
    while not stream.query():
        assert time.monotonic() < until
    assert live().pending == 0


@on_devices
@pytest.mark.parametrize("place", PLACES)
def test_time_between_events(place: str) -> None:
    c = Chain(place)
    stream = bc.Stream(place, non_blocking=True)
    start, end = bc.Event(place), bc.Event(place)
    start.record(stream)
    for _ in range(5):
        c.plan.run(c.x, c.y, stream=stream)
    end.record(stream)
    with pytest.raises(bc.InvalidProblemError, match="start: got an event that has not happened") as caught:
        start.elapsed_time(end)
    assert caught.value.code == "event"
    end.synchronize()
    assert start.elapsed_time(end) == 5.0, "the emulator's clock counts what was run"
    assert end.elapsed_time(start) == -5.0 and start.elapsed_time(start) == 0.0
    other = PLACES[1 - PLACES.index(place)]
    apart, silent, fresh = bc.Event(other), bc.Event(place, timing=False), bc.Event(place)
    apart.record()
    apart.synchronize()
    silent.record(stream)
    silent.synchronize()
    for wrong, text in ((silent, "without timing"), (fresh, "never recorded"), (apart, f"an event of {other}")):
        with pytest.raises(bc.InvalidProblemError, match=f"end: got .*{text}"):
            start.elapsed_time(wrong)


@on_devices
def test_events_take_streams_of_other_libraries() -> None:
    c = Chain("cuda:1")
    with raw_stream(1) as handle:
        event = bc.Event("cuda:1")
        c.plan.run(c.x, c.y, stream=handle)
        event.record(handle)
        event.synchronize()
        assert c.holds(c.y, -X, bc.Stream("cuda:1", non_blocking=True))
        event.wait(handle)
        for ask in (event.record, event.wait):
            with pytest.raises(bc.InvalidProblemError, match="ambiguous"):
                ask(0)
            with pytest.raises(bc.InvalidProblemError, match="got str"):
                ask("s")
        bc.synchronize("cuda:1")


@on_devices
def test_events_go_with_their_objects() -> None:
    before = live()
    c = Chain("cuda:0")
    event = bc.Event("cuda:0")
    assert event.device == "cuda:0" and hex(event.handle) in repr(event)
    assert live().events == before.events + 1
    c.plan.run(c.x, c.y)
    event.record()
    event.wait(bc.Stream("cuda:0", non_blocking=True))
    del event  # while its work waits
    gc.collect()
    bc.synchronize("cuda:0")
    del c
    gc.collect()
    assert live() == before


@on_devices
def test_streams_wait_for_streams_and_events_alone() -> None:
    stream = bc.Stream("cuda:0")
    for wrong in (0, None, "cuda"):
        with pytest.raises(bc.InvalidProblemError, match=f"got {type(wrong).__name__}, want a bc.Event or bc.Stream"):
            stream.wait(wrong)  # type: ignore[arg-type]


def test_the_cpu_has_no_events() -> None:
    with pytest.raises(bc.InvalidProblemError, match="Event: got device='cpu'"):
        bc.Event("cpu")
    with pytest.raises(bc.InvalidProblemError, match="device"):
        bc.Event("tpu")


@on_devices
def test_a_failed_kernel_is_told_by_whoever_waits_for_the_event() -> None:
    c = Chain("cuda:0")
    event = bc.Event("cuda:0")
    before = calls("cudaEventSynchronize")
    with (
        failing("cudaEventSynchronize:1"),
        pytest.raises(bc.DeviceError, match=r"waiting for an event: cudaEventSynch"),
    ):
        c.plan.run(c.x, c.y)
        event.record()
        event.synchronize()
    assert calls("cudaEventSynchronize") == before + 1
