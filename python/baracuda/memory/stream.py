"""Streams, events and graphs: the order of a device's work, its time, and work that is launched again and again."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from baracuda import _core
from baracuda.describe.errors import InvalidProblemError, UnsupportedError, shown
from baracuda.memory.device import CPU, Device, Place, name_of, place_of, raise_fault, refuse_place

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self


def _place_with_streams(device: Any, what: str) -> Place:
    place = place_of(device)
    if place == CPU:
        raise InvalidProblemError(f"{what}: got device='cpu', want a device with streams: a cpu plan runs at once.")
    if Device(name_of(place)).reason:
        refuse_place(place)
    return place


class Stream(_core.StreamBase):
    """A queue of a device's work: launches and copies given to it follow one another.

    Plans take it as `run(..., stream=s)`; other libraries by `__cuda_stream__`.

    Args:
        device: "cuda", "cuda:1" or "metal".
        non_blocking: The stream is not ordered with the device's default stream, where everything runs that names no
            stream: copies with `to`, `copy_from` and `item` too, unless they are given this stream.
    """

    __slots__ = ()

    def __new__(cls, device: Any = "cuda", *, non_blocking: bool = False) -> Self:
        """Makes a stream on a device."""
        made: Self = super().__new__(cls, *_place_with_streams(device, "Stream"), not non_blocking)
        return made

    @property
    def device(self) -> str:
        """The device whose work it orders."""
        return name_of(self._place)

    def synchronize(self) -> None:
        """Waits for the stream's work, and raises what the device's kernels have found since the last check.

        Raises:
            IndexOutOfRangeError: A kernel met an index outside the indexed dimension.
            InvalidProblemError: The stream is being captured.
            DeviceError: The device failed.
        """
        raise_fault(self._place, _core.device_take_fault(*self._place, self.handle))

    def query(self) -> bool:
        """Whether all work that was given to the stream is done; waits for nothing."""
        return bool(_core.stream_done(*self._place, self.handle))

    def wait(self, other: Event | Stream) -> None:
        """Lets work given to this stream from now on wait for an event, or for what another stream has to do now.

        Returns at once: the device waits, not the caller. The two may be of different devices.

        Raises:
            InvalidProblemError: `other` is neither; for another library's stream record an event in it.
        """
        if not isinstance(other, Event | Stream):
            raise InvalidProblemError(
                f"Stream.wait: got {type(other).__name__}, want a bc.Event or bc.Stream: record an event in it."
            )
        if isinstance(other, Stream):
            behind = Event(other.device, timing=False)
            behind.record(other)
            other = behind
        other.wait(self)

    @contextmanager
    def capture(self) -> Iterator[Graph]:
        """Captures what is given to the stream into a graph, instead of running it.

            with stream.capture() as graph:
                plan.run(x, y, stream=stream)
            graph.launch()

        Inside, this thread may give work to the stream (plans whose SKU is `capture_safe`, copies on the device, events)
        and to streams that wait for an event recorded in it, if it waits for them before the end. It may not allocate
        on a device, copy to or from the host or another device, wait, or use the device's default stream, as functions
        of `bc.functional` do. Such calls are refused and break nothing. When the body raises, what was captured is
        forgotten. Best capture a stream made with non_blocking=True: the others break the capture when any thread uses
        the default stream.

        Raises:
            UnsupportedError: The device's backend has no graphs.
            InvalidProblemError: The stream is being captured already.
            DeviceError: The capture was broken; says by what.
        """
        graph = Graph(self)
        try:
            yield graph
        except BaseException:
            graph._finish(False)
            raise
        graph._finish(True)

    def __repr__(self) -> str:
        return f"bc.Stream({self.device!r}, handle={self.handle:#x})"


class Event(_core.EventBase):
    """A point in a stream's work, for others to wait for, to ask for, and to read the time between two of them.

    Args:
        device: "cuda", "cuda:1" or "metal".
        timing: Whether it notes the time; without, waiting costs less.
    """

    __slots__ = ()

    def __init__(self, device: Any = "cuda", *, timing: bool = True) -> None:
        """Makes an event on a device; it counts as done until it is recorded."""
        super().__init__(*_place_with_streams(device, "Event"), timing)

    @property
    def device(self) -> str:
        """The device whose streams can record it."""
        return name_of(self._place)

    def record(self, stream: Any = None) -> None:
        """Puts the event behind what a stream of its device has to do now; None is the default stream."""
        self._record(stream)

    def wait(self, stream: Any = None) -> None:
        """Lets work given to a stream from now on wait for the event: for its last record, if there is one.

        Returns at once. A bc.Stream may be one of another device; others are taken to be of the event's device, and
        None is its default stream.
        """
        self._wait(stream)

    def query(self) -> bool:
        """Whether the work before the last record is done; waits for nothing."""
        return bool(self._query())

    def synchronize(self) -> None:
        """Waits for the work before the last record. What kernels found is told by `Stream.synchronize` and others.

        Raises:
            InvalidProblemError: The event was recorded in a capture.
            DeviceError: The device failed.
        """
        self._synchronize()

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds from this event to a later one of the device, both done.

        Raises:
            InvalidProblemError: An event has no timing, was not recorded, or has not happened.
        """
        return float(self._elapsed(end))

    def __repr__(self) -> str:
        return f"bc.Event({self.device!r}, handle={self.handle:#x})"


class Graph(_core.GraphBase):
    """Work that `Stream.capture` captured: launches and copies with the tensors' addresses and the numbers of the calls.

    A launch runs all of it on what the memory holds by then; numbers that are to change are given to the plans as 0-d
    tensors on the device. The tensors must live as long as the graph is launched, as those of any call of `run` until
    it is done.

    What kernels find in the data (an index out of range) is told as ever by `Stream.synchronize` and `Device.check`,
    once for each launch that found something and was followed by a check.

    Attributes:
        nodes: How many launches and copies it holds.
    """

    __slots__ = ("stream",)

    def __init__(self, stream: Stream) -> None:
        """Begins the capture of a stream; `Stream.capture` is the way to do that."""
        if not isinstance(stream, Stream):
            raise InvalidProblemError(f"stream: got {shown(stream)}, want a bc.Stream.")
        if stream._place[0] != 1:
            raise UnsupportedError(f"capture: got a stream of {stream.device}, want one of cuda: it alone has graphs.")
        super().__init__(*stream._place, stream.handle)
        self.stream = stream

    @property
    def device(self) -> str:
        """The device that its work is for."""
        return name_of(self._place)

    def launch(self, stream: Any = None) -> None:
        """Gives all of the work to a stream: None is the one that was captured. Nothing is allocated or checked.

        Raises:
            InvalidProblemError: The capture has not ended well, or the stream is one of another device.
            DeviceError: The launch failed.
        """
        self._launch(self.stream if stream is None else stream)

    def __repr__(self) -> str:
        return f"bc.Graph({self.device!r}, {self.nodes} nodes)"
