"""Captured graphs: every row of cuda that says capture_safe is captured and replayed on other data, and what would break
a capture is refused before it does. On the emulated module, whose runtime refuses what CUDA refuses."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any

import emulated
import numpy as np
import pytest
from fakecuda import GLOBAL, RELAXED, THREAD_LOCAL, current_device, failing, live, on_devices, raw_capture, raw_stream

import baracuda as bc
import baracuda.functional as F
from baracuda import _index
from baracuda.choose.plan import Plan, Request, judge, plan
from baracuda.choose.sku import PlanPreference, rows
from baracuda.describe.spec import IN, INOUT, Param
from baracuda.prove.reference import Case, reference_module, round_to
from baracuda.prove.verify import count_elements
from conftest import SEED

PLACE = "cuda:1"
DESC = bc.UnaryDescriptor("neg", (4, 6))
X = np.arange(24, dtype=np.float32).reshape(4, 6)
ROWS = {
    f"{r['op']}-{r['direction']}-{r['variant']}-{r['index']}": r
    for r in rows()
    if r["backend"] == "cuda" and r["op"] in _index.OPS
}

# --- every row ------------------------------------------------------------------------------------------------------


def found_cases(row: Mapping[str, Any]) -> Iterator[tuple[Plan, Case, Case]]:
    """Plans of this row, each with a case and one of the same descriptor with other data."""
    preference = PlanPreference(sku=row["variant"], math_precision=row["math"])
    for element in emulated.chosen(row, False, SEED):
        make = reference_module(row["op"]).cases
        both = [make(row["op"], row["direction"], element, np.random.default_rng([SEED, i])) for i in range(2)]
        for case, other in zip(*both, strict=True):
            empty = any(0 in shape for p in case.descriptor.signature().present for shape in p.shapes)
            if empty or case.descriptor != other.descriptor or count_elements(case) > 16384:
                continue
            judged = judge(case.descriptor, Request.of(case.descriptor.signature(), PLACE, preference, None, 0))
            if next((c.row for c in judged if c.support), None) == row["index"]:
                yield plan(case.descriptor, PLACE, preference), case, other


class OnDevice:
    """A call's tensors on the device, made once and filled again and again."""

    def __init__(self, made: Plan, case: Case) -> None:
        self.plan, self.scalars = made, dict(case.scalars)
        self.tensors = {
            p.name: [bc.empty(s, p.element, device=PLACE) for s in p.shapes]
            for p in made.signature.present
        }  # fmt: skip
        self.workspace = bc.empty(made.workspace_size, "u8", device=PLACE) if made.workspace_size else None

    def fill(self, case: Case) -> None:
        """Inputs of a case; outputs get a pattern."""
        for p in self.plan.signature.present:
            for i, tensor in enumerate(self.tensors[p.name]):
                raw = np.full((*tensor.shape, p.element.numpy.itemsize), 0xA5, np.uint8)
                array = np.ndarray(tensor.shape, p.element.numpy, raw)
                if p.role in (IN, INOUT):
                    values = case.tensors[p.name][i] if p.variadic else case.tensors[p.name]
                    array[...] = round_to(values, p.element)
                tensor.copy_from(array)

    def run(self, stream: Any) -> None:
        args = {p.name: self._argument(p) for p in self.plan.signature.present}
        self.plan.run(**args, **self.scalars, workspace=self.workspace, stream=stream)

    def results(self) -> list[bytes]:
        outputs = [p for p in self.plan.signature.present if p.role != IN]
        return [t.to("cpu").numpy().tobytes() for p in outputs for t in self.tensors[p.name]]

    def _argument(self, p: Param) -> Any:
        return self.tensors[p.name] if p.variadic else self.tensors[p.name][0]


@on_devices
@pytest.mark.parametrize("name", ROWS)
def test_row_is_captured_and_replayed(name: str) -> None:
    row = ROWS[name]
    assert row["capture_safe"], "a row that is not has to be tested to be refused"
    cases = list(islice(found_cases(row), 4))
    assert cases, "no small case is accepted by this row"
    made, case, other = cases[-1]
    stream = bc.Stream(PLACE, non_blocking=True)
    direct, captured = OnDevice(made, case), OnDevice(made, case)
    want = []
    for data in (case, other):
        direct.fill(data)
        direct.run(None)
        want.append(direct.results())
    captured.fill(case)
    untouched = captured.results()
    with stream.capture() as graph:
        captured.run(stream)
    bc.synchronize(PLACE)
    assert captured.results() == untouched, "a capture runs nothing"
    assert graph.nodes >= 1
    with raw_stream(1) as handle:
        for mode in (GLOBAL, THREAD_LOCAL, RELAXED):
            with raw_capture(handle, mode) as ended:
                captured.run(handle)
            assert ended == [0], "another library's capture goes on"
    assert captured.results() == untouched
    for data, wanted in ((other, want[1]), (case, want[0]), (other, want[1])):
        captured.fill(data)
        graph.launch()
        stream.synchronize()
        assert captured.results() == wanted
    assert current_device() == 0


# --- graphs ---------------------------------------------------------------------------------------------------------


class Ready:
    """y = -x and z = -y on a device."""

    def __init__(self, place: str = PLACE, *, non_blocking: bool = True) -> None:
        self.plan = bc.plan(DESC, place)
        self.x, self.y, self.z = (bc.asarray(X, device=place) for _ in range(3))
        self.stream = bc.Stream(place, non_blocking=non_blocking)

    def neg(self, x: bc.Tensor, y: bc.Tensor, stream: Any = None) -> None:
        self.plan.run(x, y, stream=stream or self.stream)


def host(t: bc.Tensor) -> np.ndarray[Any, Any]:
    return t.to("cpu").numpy()


@on_devices
@pytest.mark.parametrize("place", ["cuda:0", "cuda:1"])
def test_a_graph_holds_launches_copies_and_bound_plans(place: str) -> None:
    r = Ready(place)
    bound = r.plan.bind(r.y, r.z, stream=r.stream)
    with r.stream.capture() as graph:
        assert "0 nodes" in repr(graph)
        r.neg(r.x, r.y)
        bound()
        r.y.copy_from(r.z, stream=r.stream)
    assert (graph.device, graph.nodes, graph.stream) == (place, 3, r.stream)
    assert (host(r.y) == X).all()
    other = bc.Stream(place, non_blocking=True)
    for stream, x in ((None, X + 1), (r.stream, X + 2), (other, X + 3)):
        r.x.copy_from(x)
        before = live().pending
        graph.launch(stream)
        assert live().pending == before + 1
        (stream or r.stream).synchronize()
        assert (host(r.z) == x).all() and (host(r.y) == x).all()
    wrong = bc.Stream("cuda:0" if place == "cuda:1" else "cuda:1")
    with pytest.raises(bc.InvalidProblemError, match="a stream of cuda"):
        graph.launch(wrong)
    assert current_device() == 0


@on_devices
def test_graphs_go_with_their_objects() -> None:
    before = live()
    r = Ready()
    with r.stream.capture() as graph:
        r.neg(r.x, r.y)
    assert live().graphs == before.graphs + 1, "what is not launched is not kept"
    graph.launch()
    del graph
    gc.collect()
    assert live().graphs == before.graphs
    r.stream.synchronize()
    assert (host(r.y) == -X).all()
    del r
    gc.collect()
    assert live() == before


@on_devices
def test_numbers_on_the_device_change_between_launches() -> None:
    case = next(with_scalar())
    made = bc.plan(case.descriptor, PLACE)
    on = OnDevice(made, case)
    name = made.signature.numbers[0].name
    number = bc.asarray(np.float32(case.scalars[name]), device=PLACE)
    stream = bc.Stream(PLACE, non_blocking=True)
    on.scalars = case.scalars | {name: number}
    with stream.capture() as graph:
        on.run(stream)
    for value in (0.5, 2.0):
        number.copy_from(np.asarray(np.float32(value)))
        on.fill(case)
        graph.launch()
        stream.synchronize()
        got = on.results()
        on.scalars = case.scalars | {name: value}
        on.fill(case)
        on.run(None)
        assert got == on.results()


def with_scalar() -> Iterator[Case]:
    """Cases of an op with a float scalar that cuda has."""
    for row in ROWS.values():
        if row["op"] != "adamw":
            continue
        for made, case, _ in found_cases(row):
            if made.signature.numbers and made.signature.numbers[0].kind == "float":
                yield case


@on_devices
def test_streams_fork_and_join_in_a_capture() -> None:
    r = Ready()
    side = bc.Stream(PLACE, non_blocking=True)
    event = bc.Event(PLACE)
    with r.stream.capture() as graph:
        r.neg(r.x, r.y)
        event.record(r.stream)
        event.wait(side)
        r.neg(r.y, r.z, side)
        r.stream.wait(side)
        r.neg(r.z, r.x)
    assert graph.nodes == 3
    for ask in (event.query, event.synchronize, lambda: event.elapsed_time(event)):
        with pytest.raises(bc.InvalidProblemError, match="recorded in a capture") as caught:
            ask()
        assert caught.value.code == "capture"
    graph.launch()
    r.stream.synchronize()
    assert (host(r.x) == -X).all(), "in the order of the events"
    with pytest.raises(bc.DeviceError, match=r"cudaStreamEndCapture.*not joined back"), r.stream.capture():
        event.record(r.stream)
        event.wait(side)
        r.neg(r.x, r.y, side)
    r.neg(r.x, r.y)
    r.stream.synchronize()


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
