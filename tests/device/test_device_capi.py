"""The C interface on devices: what kernels found in the data, told as Python tells it; on metal, tensors by their buffers."""

from __future__ import annotations

import ctypes as c
import gc
from typing import Any

import host
import numpy as np
import pytest
from fakecuda import on_devices
from fakemetal import Producer, copy_in, failing, live, on_metal
from host import HostError, HostPlan, HostProgram, HostStream, check_device, options
from metal_work import X, no_metal_leaks, swiglu  # noqa: F401

import baracuda as bc
import baracuda.functional as F

SWIGLU = bc.GatedActivationDescriptor("swiglu", X.shape)
NORM = bc.RmsNormDescriptor(X.shape, X.shape[-1:])
WEIGHT = np.linspace(0.5, 2, X.shape[-1], dtype=np.float32)


def on_host(producer: Producer) -> host.DLTensor:
    """The producer's tensor as a C host has it; its memory stays the producer's."""
    return host.DLTensor.from_buffer(producer.managed.tensor)


def close(got: Any, want: Any) -> None:
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@on_metal
@pytest.mark.parametrize("before", [0, 8, 4096])
def test_a_plan_reads_and_writes_buffers_where_they_are(before: int) -> None:
    x, y = Producer(X, before), Producer(np.zeros((6, 32)), before)
    plan, count = HostPlan(bc.plan(SWIGLU, device="metal").to_bytes()), live()["FakeBuffer"]
    plan.run([on_host(x), on_host(y)], check=True)
    plan.run([on_host(x), on_host(y)])
    assert live()["FakeBuffer"] == count, "nothing is copied"
    check_device("metal")
    close(y.numbers(), swiglu(X))
    x.release(), y.release()


@on_metal
def test_buffers_may_be_let_go_while_work_uses_them() -> None:
    x, y = Producer(X, 16), Producer(np.zeros((6, 32)), 32)
    z = Producer(np.zeros((6, 32)), 32, handle=y.handle)
    plan = HostPlan(bc.plan(SWIGLU, device="metal").to_bytes())
    plan.run([on_host(x), on_host(z)])
    x.release()
    check_device("metal")
    close(z.numbers(), swiglu(X))
    y.release()


@on_metal
def test_numbers_and_workspaces_are_buffers_too() -> None:
    x, weight, y, rstd, eps = (
        Producer(a, 64) for a in (X, WEIGHT, np.zeros_like(X), np.zeros((6, 1)), np.array(0.25, np.float32))
    )
    desc = bc.RmsNormDescriptor(X.shape, X.shape[-1:])
    number = host.Scalar(host.TENSOR, host.Value(tensor=c.pointer(on_host(eps))))
    HostPlan(bc.plan(desc, device="metal").to_bytes()).run([on_host(t) for t in (x, weight, y, rstd)], [number])
    backward = bc.plan(desc.backward(), device="metal")
    assert backward.workspace_size > 0
    dy, dx, dweight = Producer(X + 1), Producer(np.zeros_like(X)), Producer(np.zeros_like(WEIGHT))
    memory = Producer(np.zeros(backward.workspace_size // 4))
    mine = HostPlan(backward.to_bytes())
    given = [on_host(t) for t in (dy, x, weight, rstd, dx, dweight)]
    with pytest.raises(HostError, match=r"options\.workspace: got a view at byte 0 that reaches out of its buffer"):
        mine.run(given, (), host.RunOptions(c.sizeof(host.RunOptions), memory.handle, 1 << 20))
    mine.run(given, (), host.RunOptions(c.sizeof(host.RunOptions), memory.handle, backward.workspace_size))
    check_device("metal")
    want_rstd = 1 / np.sqrt((X.astype(np.float64) ** 2).mean(-1, keepdims=True) + 0.25)
    close(y.numbers(), X * want_rstd * WEIGHT)
    close(dweight.numbers(), ((X + 1) * X * want_rstd).sum(0))
    for t in (x, weight, y, rstd, eps, dy, dx, dweight, memory):
        t.release()


@on_metal
def test_programs_hold_their_constants_and_take_results_from_an_allocator() -> None:
    held = Producer(WEIGHT, 128)
    weight = bc.asarray(WEIGHT, device="metal")
    graph = bc.trace(lambda x: F.softmax(F.mul(x, weight), -1), bc.TensorSpec(X.shape, device="metal"))
    program = graph.compile().program
    mine, made = HostProgram(program.to_bytes(), [on_host(held)]), []
    held.release()  # ours until the program goes
    assert mine.shape([host.tensor(X), None], 1) == X.shape, "sizes need no memory of the device"

    def allocate(_: Any, argument: int, shape: Any, rank: int, dtype: int, nbytes: int) -> int:
        made.append(Producer(np.zeros(shape[:rank])))
        return int(made[-1].handle)

    x = Producer(X, 24)
    given = host.ProgramOptions(c.sizeof(host.ProgramOptions), allocate=host.ALLOCATE(allocate))
    for _ in range(2):
        mine.run([on_host(x), None], (), given)
    check_device("metal")
    e = np.exp(X.astype(np.float64) * WEIGHT)
    for out in made:
        close(out.numbers(), e / e.sum(-1, keepdims=True))
    for t in (x, *made):
        t.release()
    del mine
    gc.collect()


@on_metal
@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"data": None}, "x: got no buffer"),
        ({"byte_offset": 4096}, "x: got a view at byte 4096 that reaches out of its buffer"),
        ({"data": 12}, r"x: got 0xc, which is the address of no MTLBuffer: offsets belong into byte_offset"),
    ],
)
def test_what_is_no_buffer_is_refused(change: dict[str, Any], says: str) -> None:
    x, y = Producer(X, 16), Producer(np.zeros((6, 32)))
    plan, bad = HostPlan(bc.plan(SWIGLU, device="metal").to_bytes()), on_host(x)
    was = {name: getattr(bad, name) for name in change}
    for name, value in change.items():
        setattr(bad, name, value)
    with pytest.raises(HostError, match=says) as caught:
        plan.run([bad, on_host(y)])
    assert caught.value.status == host.STATUS["invalid_problem"]
    for name, value in was.items():
        setattr(bad, name, value)
    bare = on_host(y)
    bare.data = None
    plan.run([bad, bare], check=True)  # tensors of a question need no memory
    x.release(), y.release()


@on_metal
def test_streams_order_work_and_the_hosts_own_behind_it() -> None:
    """swiglu in one stream, the host's copy of its result in that stream's queue, swiglu of the copy in a second one."""
    x, wide = Producer(X), np.zeros((6, 32))
    half, copied, quarter, late = Producer(wide), Producer(wide), Producer(wide[:, :16]), Producer(wide[:, :16])
    first = HostPlan(bc.plan(SWIGLU, device="metal").to_bytes())
    second = HostPlan(bc.plan(bc.GatedActivationDescriptor("swiglu", (6, 32)), device="metal").to_bytes())
    one, two = HostStream("metal", non_blocking=True), HostStream("metal", non_blocking=True)
    assert one.done() and one.handle != two.handle and one.queue() != two.queue()
    first.run([on_host(x), on_host(half)], (), options(stream=one.handle))
    copy_in(one.queue(), half, copied)
    second.run([on_host(copied), on_host(quarter)], (), options(stream=one.handle))
    assert not one.done(), "nobody has waited for it"
    two.wait(one)
    second.run([on_host(half), on_host(late)], (), options(stream=two.handle))
    one.release()  # its work goes on
    check_device("metal", two.handle)
    assert two.done()
    once = swiglu(X).astype(np.float32)
    close(late.numbers(), swiglu(once))
    check_device("metal")
    close(copied.numbers(), once)
    close(quarter.numbers(), swiglu(once))
    two.release()
    for t in (x, half, copied, quarter, late):
        t.release()


@on_metal
def test_programs_take_streams() -> None:
    graph = bc.trace(lambda x: F.softmax(F.exp(x), -1), bc.TensorSpec(X.shape, device="metal"))
    mine, stream = HostProgram(graph.compile().program.to_bytes()), HostStream("metal")
    x, y = Producer(X), Producer(np.zeros_like(X))
    given = host.ProgramOptions(c.sizeof(host.ProgramOptions), stream=stream.handle)
    mine.run([on_host(x), on_host(y)], (), given)
    check_device("metal", stream.handle)
    e = np.exp(np.exp(X.astype(np.float64)))
    close(y.numbers(), e / e.sum(-1, keepdims=True))
    stream.release()
    with pytest.raises(HostError, match="is no stream of baracuda's: bcu_stream_create makes them"):
        mine.run([on_host(x), on_host(y)], (), given)
    x.release(), y.release()
    del mine
    gc.collect()


@on_metal
def test_what_is_no_stream_is_refused() -> None:
    x, y, stream = Producer(X), Producer(np.zeros((6, 32))), HostStream("metal")
    plan, queue = HostPlan(bc.plan(SWIGLU, device="metal").to_bytes()), stream.queue()
    says = "is no stream of baracuda's: bcu_stream_create makes them"
    with pytest.raises(HostError, match=says) as caught:
        plan.run([on_host(x), on_host(y)], (), options(stream=queue))
    assert caught.value.status == host.STATUS["launch"]
    with pytest.raises(HostError, match=says):
        check_device("metal", queue)
    stream.release()
    with pytest.raises(HostError, match=says):
        stream.done()
    with failing("newCommandQueue:1"), pytest.raises(HostError, match="creating a stream"):
        HostStream("metal")
    with pytest.raises(HostError, match="device: got cpu, want a device with streams"):
        HostStream("cpu")
    with pytest.raises(HostError, match="device: got metal:3, want a device that can be used"):
        HostStream("metal:3")
    x.release(), y.release()


@on_devices
def test_streams_of_cuda_are_its_own() -> None:
    stream = HostStream("cuda:0")
    assert stream.queue() == stream.handle
    stream.wait(None)
    check_device("cuda:0", stream.handle)
    assert stream.done()
    stream.release()


@on_devices
def test_what_kernels_find_is_told_as_python_tells_it() -> None:
    place = "cuda:0"
    x, y, out = (
        bc.asarray(v, device=place) for v in (np.arange(6, dtype=np.int32), np.zeros(6, np.int32), np.ones(6, np.int32))
    )
    plan = bc.plan(bc.BinaryDescriptor("remainder", (6,), (6,), "i32"), device=place)

    def divide() -> None:
        HostPlan(plan.to_bytes()).run([as_address(v) for v in (x, y, out)], (), options())

    divide()
    with pytest.raises(HostError, match="integer divisor of zero at element") as mine:
        check_device(place)
    assert mine.value.status == host.STATUS["integer_division"]
    divide()
    with pytest.raises(bc.IntegerDivisionError) as wanted:
        bc.Device(place).check()
    assert str(wanted.value) == str(mine.value)
    check_device(place)  # it is told once
    check_device("cpu")
    with pytest.raises(HostError, match="device: got cuda:77") as unknown:
        check_device("cuda:77")
    assert unknown.value.status == host.STATUS["unsupported"]


def as_address(x: bc.Tensor) -> host.DLTensor:
    """A tensor of cuda as a C host has it."""
    made = host.tensor(np.empty(x.shape, np.int32))
    made.data, made.device_type = x.address, 2
    return made
