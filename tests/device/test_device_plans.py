"""Plans on the emulated cuda module's two devices: where tensors are, streams, faults, failures."""

from __future__ import annotations

import gc
import pickle
import threading
from typing import Any

import numpy as np
import pytest
from calls import cases_of
from fakecuda import calls, failing, live, on_devices, raw_stream

import baracuda as bc
import baracuda.functional as F
from baracuda import _index
from baracuda.choose.plan import rows
from baracuda.describe.elements import Element
from baracuda.memory.device import raise_fault
from baracuda.prove.verify import candidates

PLACES = ("cuda:0", "cuda:1")
X = np.linspace(-3, 3, 24, dtype=np.float32).reshape(4, 6)
DESC = bc.GatedActivationDescriptor("swiglu", (4, 6))
WANT = F.swiglu(X)


def host(t: bc.Tensor) -> np.ndarray[Any, Any]:
    return t.to("cpu").numpy()


class Ready:
    """A plan with its tensors on a device."""

    def __init__(self, place: str = "cuda:0") -> None:
        self.place = place
        self.plan = bc.plan(DESC, place)
        self.x = bc.asarray(X, device=place)
        self.y = bc.zeros((4, 3), device=place)
        bc.synchronize(place)

    def result(self) -> np.ndarray[Any, Any]:
        return host(self.y)

    def clear(self) -> None:
        self.y.copy_from(np.zeros((4, 3), np.float32))


def cuda_ops(wanted: Any) -> list[tuple[str, str]]:
    """Ops with a kernel for cuda here whose rows are `wanted`."""
    found = {(r["op"], r["direction"]): None for r in rows() if r["backend"] == "cuda" and wanted(r)}
    return [t for t in found if t[0] in _index.OPS]


# --- where tensors are ----------------------------------------------------------------------------------------------


@on_devices
@pytest.mark.parametrize("place", PLACES)
def test_a_plan_runs_on_its_device(place: str) -> None:
    r = Ready(place)
    assert r.plan.device == place
    assert r.plan.sku.backend == "cuda"
    assert r.plan.run(r.x, r.y) is r.y
    assert np.allclose(r.result(), WANT, rtol=1e-6)
    again = pickle.loads(pickle.dumps(r.plan))
    assert (again.device, again.sku) == (place, r.plan.sku)
    r.clear()
    again.run(x=r.x, y=r.y)
    assert np.allclose(r.result(), WANT, rtol=1e-6)
    assert place in r.plan.to_bytes().decode()
    assert "cuda" in str(r.plan.explain())


@on_devices
def test_names_of_the_first_device_mean_the_same() -> None:
    for ask in (
        lambda: bc.plan(DESC, "cuda"), lambda: bc.plan(DESC, bc.Device("cuda:0")),
        lambda: bc.plan(DESC, preference=bc.PlanPreference(backend="cuda")),
    ):  # fmt: skip
        assert ask().device == "cuda:0"
    with pytest.raises(bc.InvalidProblemError, match="backend"):
        bc.plan(DESC, "cuda:1", bc.PlanPreference(backend="cpu"))
    with pytest.raises(bc.BackendUnavailableError, match="2 devices") as caught:
        bc.plan(DESC, "cuda:2")
    assert "no_device" in {r.code for r in caught.value.refusals}
    support = bc.GatedActivationPlan.query(DESC, "cuda:2")
    assert not support and support.refusals[0].code == "no_device"


@on_devices
@pytest.mark.parametrize("place", [*PLACES, "cpu"])
def test_tensors_elsewhere_are_refused_by_name(place: str) -> None:
    made = bc.plan(DESC, place)
    x, y = bc.asarray(X, device=place), bc.zeros((4, 3), device=place)
    for other in {*PLACES, "cpu"} - {place}:
        for name, wrong in (("x", bc.asarray(X, device=other)), ("y", bc.zeros((4, 3), device=other))):
            before = live()
            with pytest.raises(bc.InvalidProblemError, match=f"{name}: got {other}, want {place}") as caught:
                made.run(**{"x": x, "y": y, name: wrong})
            assert (caught.value.code, caught.value.refusals[0].field) == ("device", name)
            assert "copy it there" in caught.value.refusals[0].hint
            assert live() == before, "nothing was launched"
            answer = made.can_implement(**{"x": x, "y": y, name: wrong})
            assert [(r.code, r.field) for r in answer.refusals] == [("device", name)]
            with pytest.raises(bc.InvalidProblemError, match=name):
                made.bind(**{"x": x, "y": y, name: wrong})
        spec = bc.TensorSpec((4, 6), "f32", device=other)
        assert [r.code for r in made.can_implement(spec, y).refusals] == ["device"]
    assert not host(y).any()
    assert made.can_implement(bc.TensorSpec((4, 6), "f32", device=place), y)


@on_devices
def test_shapes_without_a_device_are_taken_to_be_on_the_plans() -> None:
    torch = pytest.importorskip("torch")
    made = bc.plan(DESC, "cuda:1")
    assert made.can_implement(torch.empty(4, 6, device="meta"), torch.empty(4, 3, device="meta"))
    both = made.can_implement(torch.empty(4, 6), np.zeros((4, 3), np.float32))
    assert [(r.code, r.field) for r in both.refusals] == [("device", "x"), ("device", "y")]


@on_devices
def test_workspace_must_be_on_the_plans_device() -> None:
    made = bc.plan(DESC, "cuda:1")
    x, y = bc.asarray(X, device="cuda:1"), bc.zeros((4, 3), device="cuda:1")
    for place in ("cpu", "cuda:0"):
        with pytest.raises(bc.InvalidProblemError, match=f"workspace: got {place}, want cuda:1"):
            made.run(x, y, workspace=bc.empty(64, "u8", device=place))
    made.run(x, y, workspace=bc.empty(64, "u8", device="cuda:1"))
    bc.synchronize("cuda:1")


@on_devices
def test_run_does_nothing_but_launch() -> None:
    r = Ready("cuda:1")
    r.plan.run(r.x, r.y)
    bound = r.plan.bind(r.x, r.y)
    watched = ("cudaMalloc", "cudaFree", "cudaMemcpyAsync", "cudaMemsetAsync")
    watched += ("cudaMemcpy", "cudaStreamSynchronize", "cudaDeviceSynchronize")
    before = {api: calls(api) for api in (*watched, "cudaLaunchKernel")}
    for _ in range(3):
        r.plan.run(x=r.x, y=r.y)
        bound()
    assert {api: calls(api) - before[api] for api in watched} == dict.fromkeys(watched, 0)
    assert calls("cudaLaunchKernel") - before["cudaLaunchKernel"] == 6
    bc.synchronize("cuda:1")


@on_devices
def test_overlap_is_found_by_address_on_devices_too() -> None:
    memory = bc.zeros(40, device="cuda:0")
    made = bc.plan(DESC, "cuda:0")
    x = memory[:24].reshape(4, 6)
    with pytest.raises(bc.InvalidProblemError) as caught:
        made.run(x, memory[20:32].reshape(4, 3))
    assert caught.value.code == "overlap"
    made.run(x, memory[24:36].reshape(4, 3))
    bc.synchronize("cuda:0")


# --- streams --------------------------------------------------------------------------------------------------------


class Protocol:
    """Another library's stream."""

    def __init__(self, handle: Any, version: int = 0) -> None:
        self.pair = (version, handle)

    def __cuda_stream__(self) -> Any:
        return self.pair


class TorchLike:
    """A stream as torch before 2.7 had it."""

    def __init__(self, handle: int, device_index: int) -> None:
        self.cuda_stream, self.device_index = handle, device_index


@on_devices
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("bound", [False, True], ids=["run", "bind"])
def test_work_waits_in_the_stream_that_was_named(place: str, bound: bool) -> None:
    r, index = Ready(place), PLACES.index(place)
    mine = bc.Stream(place, non_blocking=True)
    assert (mine.device, mine.__cuda_stream__()) == (place, (0, mine.handle))
    with raw_stream(index) as handle:
        for stream in (mine, handle, Protocol(handle), Protocol(mine.handle), TorchLike(handle, index)):
            r.clear()
            if bound:
                r.plan.bind(r.x, r.y, stream=stream)()
            else:
                assert r.plan.run(r.x, r.y, stream=stream) is r.y
            assert live().pending == 1
            assert not r.result().any(), "the default stream does not wait for a non-blocking one"
            bc.synchronize(PLACES[1 - index])
            bc.Stream(place).synchronize()
            assert live().pending == 1, "other streams and devices have nothing to do with it"
            if stream is mine:
                mine.synchronize()
                assert live().pending == 0
            else:
                bc.synchronize(place)
            assert np.allclose(r.result(), WANT, rtol=1e-6)


@on_devices
def test_rebind_changes_the_stream_and_keeps_it() -> None:
    r = Ready()
    first, second = bc.Stream("cuda:0", non_blocking=True), bc.Stream("cuda:0", non_blocking=True)
    call = r.plan.bind(r.x, r.y, stream=first)
    assert call.rebind(x=r.x) is call
    call()
    second.synchronize()
    assert live().pending == 1
    first.synchronize()
    assert live().pending == 0
    call.rebind(stream=second)
    call()
    first.synchronize()
    assert live().pending == 1
    streams = live().streams
    del first, second
    gc.collect()
    assert live().streams == streams - 1, "the bound plan keeps its stream"
    bc.synchronize("cuda:0")
    call.rebind(stream=None)()
    assert np.allclose(r.result(), WANT, rtol=1e-6)


@on_devices
def test_without_a_stream_it_is_the_default_one() -> None:
    r = Ready()
    blocking = bc.Stream("cuda:0")
    r.plan.run(r.x, r.y)
    assert live().pending == 1
    assert np.allclose(r.result(), WANT, rtol=1e-6), "copies follow in the default stream"
    r.clear()
    r.plan.run(r.x, r.y, stream=blocking)
    assert np.allclose(r.result(), WANT, rtol=1e-6), "the default stream follows blocking ones"
    r.clear()
    r.plan.run(r.x, r.y, stream=Protocol(0))  # a framework's name for its default stream
    assert np.allclose(r.result(), WANT, rtol=1e-6)
    elsewhere = bc.Stream("cuda:0", non_blocking=True)
    r.clear()
    r.plan.run(r.x, r.y, stream=elsewhere)
    assert np.allclose(r.y.to("cpu", stream=elsewhere).numpy(), WANT, rtol=1e-6)


@on_devices
def test_streams_that_are_refused() -> None:
    r = Ready()
    other = bc.Stream("cuda:1")
    for bad, text in (
        (0, "ambiguous"), (False, "bool"), (True, "bool"), (-1, "negative"), (2**70, "too large"),
        ("s", "str"), (1.5, "float"), (object(), "object"),
        (other, "stream of cuda:1"), (TorchLike(1, 1), "stream of device 1"), (Protocol("x"), "str"), (Protocol(None), "NoneType"),
    ):  # fmt: skip
        for ask in (r.plan.run, r.plan.bind):
            with pytest.raises(bc.InvalidProblemError, match=text) as caught:
                ask(r.x, r.y, stream=bad)
            assert (caught.value.code, caught.value.refusals[0].field) == ("stream", "stream")
        assert [c.code for c in r.plan.can_implement(r.x, r.y, stream=bad).refusals] == ["stream"]
    broken = Protocol(1)
    broken.pair = 7
    with pytest.raises(bc.InvalidProblemError, match="version, handle"):
        r.plan.run(r.x, r.y, stream=broken)
    on_cpu = bc.plan(DESC)
    with pytest.raises(bc.InvalidProblemError, match="cpu plan has no stream"):
        on_cpu.run(X, np.zeros((4, 3), np.float32), stream=other)
    assert live().pending == 0
    assert not r.result().any()


@on_devices
def test_a_stream_that_was_destroyed_is_an_error() -> None:
    r = Ready()
    with raw_stream(0) as handle:
        pass
    with pytest.raises(bc.DeviceError, match="no such stream"):
        r.plan.run(r.x, r.y, stream=handle)
    assert not r.result().any()


# --- numbers on the device ------------------------------------------------------------------------------------------


@on_devices
def test_numbers_may_be_tensors_on_the_plans_device() -> None:
    found = cuda_ops(lambda r: True)
    checked = 0
    for op, direction in found:
        if not candidates(op, direction, Element.F32, "cuda:1"):
            continue
        for case in cases_of(op, direction, Element.F32)[:3]:
            signature = case.descriptor.signature()
            if not signature.numbers or any(p.variadic for p in signature.present):
                continue
            made = bc.plan(case.descriptor, "cuda:1")
            args = {
                p.name: bc.asarray(case.tensors[p.name], p.element, device="cuda:1")
                if p.name in case.tensors
                else bc.zeros(p.shape, p.element, device="cuda:1")
                for p in signature.present
            }
            if made.workspace_size:
                args["workspace"] = bc.empty(made.workspace_size, "u8", device="cuda:1")
            numbers = {s.name: case.scalars.get(s.name, s.default) for s in signature.numbers}
            kinds = {s.name: {"float": "f32", "int": "i64", "unsigned": "i64"}[s.kind] for s in signature.numbers}
            on_it = {n: bc.asarray(v, kinds[n], device="cuda:1") for n, v in numbers.items()}
            results = []
            for scalars in (numbers, on_it):
                made.run(**args, **scalars)
                results.append([host(args[p.name]).tobytes() for p in signature.outputs])
            if all(np.float32(v) == v for v in numbers.values()):
                assert results[0] == results[1], f"{case.descriptor}"
            for place in ("cpu", "cuda:0"):
                name = signature.numbers[0].name
                wrong = bc.asarray(numbers[name], kinds[name], device=place)
                with pytest.raises(bc.InvalidProblemError, match="on the plan's device") as caught:
                    made.run(**args, **(numbers | {name: wrong}))
                assert (caught.value.code, caught.value.refusals[0].field) == ("scalar", name)
            checked += 1
            break
    assert checked, "no op with numbers has a kernel for cuda"


# --- faults ---------------------------------------------------------------------------------------------------------


def test_a_fault_is_told_in_the_plans_words() -> None:
    index = next(r["index"] for r in rows() if (r["op"], r["direction"]) == ("embedding", "forward"))
    desc = next(iter(cases_of("embedding", "forward", Element.F32))).descriptor
    place = (1, 1)
    raise_fault(place, None)
    names = [p.name for p in desc.signature().params]
    with pytest.raises(
        bc.IndexOutOfRangeError, match=f"embedding forward on cuda:1: {names[1]}: .*index 9 at element 5"
    ) as caught:
        raise_fault(place, (index, 0, 1, 5, 9, 7))
    refusal = caught.value.refusals[0]
    assert (refusal.code, refusal.field, refusal.needed, refusal.actual) == ("index_out_of_range", names[1], 7, 9)
    assert isinstance(caught.value, IndexError)
    with pytest.raises(bc.IndexOutOfRangeError, match="tensor 99"):
        raise_fault(place, (index, 0, 99, 5, 9, 7))
    with pytest.raises(bc.IndexOutOfRangeError, match="row -7"):
        raise_fault(place, (-7, 0, 0, 5, 9, 7))
    with pytest.raises(
        bc.IndexOutOfRangeError, match=r"embedding forward \(a step of a program that is gone\) on cuda:1"
    ):
        raise_fault(place, (index, 2**31 - 1, 1, 5, 9, 7))


@on_devices
def test_an_index_out_of_range_is_raised_when_the_device_is_asked() -> None:
    weight = np.arange(12, dtype=np.float32).reshape(4, 3)
    good = np.array([0, 3], np.int64)
    for place in PLACES:
        table, asked = bc.asarray(weight, device=place), bc.asarray(good, device=place)
        assert (host(F.embedding(asked, table)) == weight[good]).all()
        bad = bc.asarray(np.array([0, 4], np.int64), device=place)
        stream = bc.Stream(place)
        for wait in (lambda p=place: bc.Device(p).check(), lambda p=place: bc.synchronize(p), stream.synchronize):
            F.embedding(bad, table)
            with pytest.raises(bc.IndexOutOfRangeError, match="index 4 at element 1, want 0 <= index < 4"):
                wait()
            wait()  # it is raised once
        bc.synchronize(PLACES[1 - PLACES.index(place)])
        assert (host(F.embedding(asked, table)) == weight[good]).all(), "the device works on"


@on_devices
def test_an_integer_division_by_zero_is_raised_when_the_device_is_asked() -> None:
    a = np.arange(-12, 12, dtype=np.int32).reshape(4, 6)
    b = np.array([[3], [-2], [5], [7]], np.int32)
    zero = b.copy()
    zero[2] = 0
    for place in PLACES:
        x, good, bad = (bc.asarray(v, device=place) for v in (a, b, zero))
        for f, want in ((F.remainder, a % b), (F.fmod, np.fmod(a, b)), (F.floor_divide, a // b)):
            assert (host(f(x, good)) == want).all()
            f(x, bad)
            with pytest.raises(bc.IntegerDivisionError, match="an integer divisor of zero at element 2, want non-zero"):
                bc.synchronize(place)
            bc.synchronize(place)  # it is raised once
            with pytest.raises(bc.IntegerDivisionError):
                f(x, 0)  # a number is looked at before the launch
            f(bc.asarray(a.astype(np.float32), device=place), 0.0)
        bc.synchronize(place)


# --- failures -------------------------------------------------------------------------------------------------------


@on_devices
def test_a_launch_that_fails_is_an_error() -> None:
    r = Ready("cuda:1")
    bound = r.plan.bind(r.x, r.y)
    for ask in (lambda: r.plan.run(r.x, r.y), bound, lambda: F.swiglu(r.x)):
        with (
            failing("cudaLaunchKernel:1"),
            pytest.raises(bc.DeviceError, match="kernel launch: a failure that a test asked for") as caught,
        ):
            ask()
        assert caught.value.code == "launch_failed"
        assert caught.value.refusals[0].field == "cuda:1"
        assert not isinstance(caught.value, MemoryError)
    assert not r.result().any()
    bound()
    assert np.allclose(r.result(), WANT, rtol=1e-6), "and the next one runs"


@on_devices
def test_results_that_cannot_be_made() -> None:
    x = bc.asarray(X, device="cuda:0")
    F.swiglu(x)
    bc.synchronize("cuda:0")
    gc.collect()
    before = live()
    with failing("cudaMalloc:1"), pytest.raises(bc.DeviceMemoryError):
        F.swiglu(x)
    gc.collect()
    assert live() == before


@on_devices
def test_plans_and_tensors_are_shared_between_threads() -> None:
    problems: list[str] = []

    def work(place: str, seed: int) -> None:
        x = np.random.default_rng(seed).normal(size=(4, 6)).astype(np.float32)
        want = F.swiglu(x)
        made, stream = plans[place], bc.Stream(place, non_blocking=True)
        t, y = bc.asarray(x, device=place), bc.zeros((4, 3), device=place)
        for _ in range(20):
            made.run(t, y, stream=stream)
            got = y.to("cpu", stream=stream).numpy()
            if not np.allclose(got, want, rtol=1e-6) or not np.allclose(host(F.swiglu(t)), want, rtol=1e-6):
                problems.append(f"{place}, seed {seed}")

    plans = {place: bc.plan(DESC, place) for place in PLACES}
    threads = [threading.Thread(target=work, args=(PLACES[i % 2], i)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not problems
