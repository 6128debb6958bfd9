"""Captured graphs: every row of cuda that says capture_safe is captured and replayed on other data, and what would break
a capture is refused before it does. On the emulated module, whose runtime refuses what CUDA refuses."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import emulated
import numpy as np
import pytest
from fakecuda import GLOBAL, RELAXED, THREAD_LOCAL, current_device, live, on_devices, raw_capture, raw_stream

import baracuda as bc
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
