"""What would break a capture, or a captured graph, is refused before it does; failures on the way, and what kernels find, are
told. On the emulated module, whose runtime refuses what CUDA refuses."""

from __future__ import annotations

import gc
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from fakecuda import GLOBAL, failing, live, on_devices, raw_capture, raw_stream
from test_device_graphs import DESC, PLACE, Ready, X, host

import baracuda as bc
import baracuda.functional as F

# --- what a capture forbids -----------------------------------------------------------------------------------------


@on_devices
def test_what_would_break_a_capture_is_refused_and_breaks_nothing() -> None:
    r = Ready()
    other, there = bc.Stream("cuda:0"), bc.zeros((4, 6), device="cuda:0")
    outside = bc.Event(PLACE)
    outside.record(r.stream)
    host_values = np.zeros((4, 6), np.float32)
    bound = r.plan.bind(r.x, r.y)
    forbidden = {
        "allocate": lambda: bc.empty(3, device=PLACE),
        "allocate elsewhere": lambda: bc.empty(3, device="cuda:0"),
        "wait for another device": lambda: bc.synchronize("cuda:0"),
        "wait for another stream": other.synchronize,
        "copy to another device": lambda: there.copy_from(r.x),
        "upload": lambda: bc.asarray(X, device=PLACE),
        "download": lambda: r.x.to("cpu"),
        "download in the stream": lambda: r.x.to("cpu", stream=r.stream),
        "upload in the stream": lambda: r.x.copy_from(host_values, stream=r.stream),
        "copy in the default stream": lambda: r.x.copy_from(r.y),
        "item": lambda: r.x[0, 0].item(),
        "wait for the stream": r.stream.synchronize,
        "ask the stream": r.stream.query,
        "wait for the device": lambda: bc.synchronize(PLACE),
        "check the device": lambda: bc.Device(PLACE).check(),
        "ask an event": outside.query,
        "wait for an event": outside.synchronize,
        "an event from outside": lambda: outside.wait(r.stream),
        "record in the default stream": outside.record,
        "capture again": lambda: bc.Stream.capture(r.stream).__enter__(),
        "launch without a stream": lambda: r.plan.run(r.x, r.y),
        "launch what was bound without one": bound,
        "a function": lambda: F.neg(r.x),
        "a function with out": lambda: F.neg(r.x, out=r.y),
    }
    with r.stream.capture() as graph:
        for what, ask in forbidden.items():
            with pytest.raises(bc.InvalidProblemError) as caught:
                ask()
            assert caught.value.code == "capture", what
            assert caught.value.refusals[0].hint, what
        with pytest.raises(bc.InvalidProblemError, match="has not ended"):
            graph.launch()
        bc.plan(DESC, PLACE)
        r.neg(r.x, r.y)
        doomed = bc.from_dlpack(X)
        del doomed
    assert graph.nodes == 1
    graph.launch()
    r.stream.synchronize()
    assert (host(r.y) == -X).all()
    for what, ask in forbidden.items():
        if what != "capture again":
            ask()


@on_devices
def test_memory_may_be_freed_while_a_stream_is_captured() -> None:
    r = Ready()
    gone = [bc.zeros(7, device=PLACE) for _ in range(3)]
    bc.synchronize(PLACE)
    before = live().allocations
    with r.stream.capture() as graph:
        r.neg(r.x, r.y)
        gone.pop()
    with raw_stream(1) as handle, raw_capture(handle, GLOBAL) as ended:
        r.neg(r.x, r.y, handle)
        gone.pop()
    assert ended == [0]
    assert live().allocations == before - 2
    graph.launch()
    r.stream.synchronize()
    assert (host(r.y) == -X).all()


@on_devices
def test_memory_that_was_freed_in_a_capture_leaves_it_watched() -> None:
    """In a thread of its own, which keeps CUDA's error for itself."""

    def break_one() -> None:
        r = Ready()
        gone = bc.zeros(7, device=PLACE)
        bc.synchronize(PLACE)
        with raw_stream(1) as handle, raw_capture(handle, GLOBAL) as ended:
            r.neg(r.x, r.y, handle)
            del gone
            with pytest.raises(bc.DeviceError):
                bc.zeros(7, device=PLACE)
        assert ended != [0]

    with ThreadPoolExecutor(1) as pool:
        pool.submit(break_one).result()


@on_devices
def test_a_graph_whose_memory_is_gone_is_an_error_of_the_device() -> None:
    r = Ready()
    with r.stream.capture() as graph:
        r.neg(r.x, r.y)
    r.x = r.y = bc.zeros(1, device=PLACE)
    gc.collect()
    graph.launch()
    with pytest.raises(bc.DeviceError, match="memory that has been freed"):
        r.stream.synchronize()


@on_devices
def test_a_body_that_raises_forgets_the_capture() -> None:
    r = Ready()
    before = live().graphs
    with pytest.raises(ZeroDivisionError), r.stream.capture() as graph:
        r.neg(r.x, r.y)
        raise ZeroDivisionError
    assert live().graphs == before
    with pytest.raises(bc.InvalidProblemError, match="a capture that failed"):
        graph.launch()
    r.neg(r.x, r.y)
    r.stream.synchronize()
    assert (host(r.y) == -X).all()


@on_devices
def test_a_capture_that_somebody_else_breaks() -> None:
    r = Ready(non_blocking=False)

    def elsewhere() -> None:
        with pytest.raises(bc.DeviceError, match="would wait for a stream that is being captured"):
            F.neg(r.x, out=r.z)

    with (
        pytest.raises(bc.DeviceError, match=r"ending a capture: cudaStreamEndCapture: .*default stream"),
        r.stream.capture(),
    ):
        r.neg(r.x, r.y)
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
    r = Ready()
    with r.stream.capture() as graph:
        r.neg(r.x, r.y)
        thread = threading.Thread(target=lambda: F.neg(r.x, out=r.z))  # a non-blocking stream is nobody's concern
        thread.start()
        thread.join()
    assert (host(r.z) == -X).all()
    graph.launch()
    r.stream.synchronize()
    assert (host(r.y) == -X).all()


@on_devices
def test_captures_belong_to_a_thread() -> None:
    r = Ready()
    context = r.stream.capture()
    graph = context.__enter__()
    r.neg(r.x, r.y)
    problems: list[Exception] = []

    def end() -> None:
        try:
            graph._finish(True)
        except bc.InvalidProblemError as e:
            problems.append(e)

    thread = threading.Thread(target=end)
    thread.start()
    thread.join()
    assert len(problems) == 1 and "in another thread" in str(problems[0])
    context.__exit__(None, None, None)
    assert graph.nodes == 1


@on_devices
def test_a_dropped_capture_ends() -> None:
    r = Ready()
    graph = bc.Graph(r.stream)
    with pytest.raises(bc.InvalidProblemError, match="being captured"):
        bc.Graph(r.stream)
    del graph
    gc.collect()
    r.neg(r.x, r.y)
    assert (host(r.y) == X).all()
    r.stream.synchronize()
    assert (host(r.y) == -X).all()


@on_devices
def test_failures_of_captures() -> None:
    r = Ready()
    before = live().graphs
    with failing("cudaStreamBeginCapture:1"), pytest.raises(bc.DeviceError, match=": cudaStreamBeginCapture: "):
        r.stream.capture().__enter__()
    for api in ("cudaStreamEndCapture", "cudaGraphGetNodes", "cudaGraphInstantiateWithFlags", "cudaGraphDestroy"):
        with (
            failing(f"{api}:1"),
            pytest.raises(bc.DeviceError, match=rf": {api}: .*\(CUDA error 719\)"),
            r.stream.capture() as graph,
        ):
            r.neg(r.x, r.y)
        assert live().graphs == before and graph.nodes == 0
        with pytest.raises(bc.InvalidProblemError, match="a capture that failed"):
            graph.launch()
    with r.stream.capture() as graph:
        r.neg(r.x, r.y)
    with failing("cudaGraphLaunch:1"), pytest.raises(bc.DeviceError, match="launching a graph: cudaGraphLaunch"):
        graph.launch()
    graph.launch()
    r.stream.synchronize()
    assert (host(r.y) == -X).all()


def test_only_cuda_has_graphs() -> None:
    if not bc.Device("metal").usable:
        pytest.skip(bc.Device("metal").reason)
    with pytest.raises(bc.UnsupportedError, match="metal"), bc.Stream("metal").capture():
        pass


# --- what kernels find ----------------------------------------------------------------------------------------------


@on_devices
def test_each_launch_tells_of_its_own_bad_indices() -> None:
    weight = np.arange(12, dtype=np.float32).reshape(4, 3)
    table, ids = bc.asarray(weight, device=PLACE), bc.asarray(np.array([0, 3], np.int64), device=PLACE)
    y = bc.zeros((2, 3), device=PLACE)
    made = bc.plan(bc.EmbeddingDescriptor(ids_shape=(2,), weight_shape=(4, 3)), PLACE)
    stream = bc.Stream(PLACE, non_blocking=True)
    with stream.capture() as graph:
        made.run(ids, table, y, stream=stream)
    stream.synchronize()  # a capture found nothing: it ran nothing
    for asked in ([0, 3], [4, 0], [1, 2], [0, 9], [3, 3]):
        ids.copy_from(np.array(asked, np.int64))
        graph.launch()
        if max(asked) < 4:
            stream.synchronize()
            assert (host(y) == weight[asked]).all()
            continue
        position = int(np.argmax(asked))
        with pytest.raises(bc.IndexOutOfRangeError, match=f"ids: got index {asked[position]} at element {position}"):
            stream.synchronize()
        stream.synchronize()  # it is told once


@on_devices
@pytest.mark.parametrize("captured", [False, True])
def test_a_program_tells_which_of_its_steps_found_a_bad_index(captured: bool) -> None:
    """Two steps of one row, and a second program of the same."""
    made = bc.plan(bc.EmbeddingDescriptor(ids_shape=(2,), weight_shape=(4, 3)), PLACE)
    programs = []
    for names in (("first", "second"), ("left", "right")):
        builder = bc.ProgramBuilder(device=PLACE)
        table = builder.input("table", (4, 3), "f32")
        for name, ids in [(name, builder.input(name, (2,), "i64")) for name in names]:
            tensors = (ids, table, builder.output(f"{name}_rows", (2, 3), "f32"))
            builder.add(made, **{p.name: t for p, t in zip(made.signature.params, tensors, strict=True)})
        programs.append(builder.build())
    weight = bc.zeros((4, 3), device=PLACE)
    good, bad = (bc.asarray(np.array(x, np.int64), device=PLACE) for x in ([0, 3], [1, 4]))
    rows = [bc.zeros((2, 3), device=PLACE) for _ in range(2)]
    stream = bc.Stream(PLACE, non_blocking=True)
    for which, given, step in ((0, (bad, good), 0), (0, (good, bad), 1), (1, (good, bad), 1)):
        if captured:
            with stream.capture() as graph:
                programs[which].run(weight, *given, *rows, stream=stream)
            graph.launch()
        else:
            programs[which].run(weight, *given, *rows, stream=stream)
        said = rf"embedding forward \(step {step} of Program\(table, {('first', 'left')[which]}, .*\) on cuda"
        with pytest.raises(bc.IndexOutOfRangeError, match=said):
            stream.synchronize()
