"""Engines by the names of other systems: each name by that system's own argument list against NumPy, and none without."""

from __future__ import annotations

import copy
import inspect
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alias_cases import (
    COS,
    DY4,
    ELSEWHERE,
    IDS,
    IMAGE,
    KERNEL,
    Q3,
    QK,
    SEQUENCE,
    SIN,
    TABLE,
    TANG,
    WEIGHT,
    WINDOW,
    ZTENSOR,
    A,
    B,
    Case,
    K,
    M,
    Q,
    V,
    attended,
    avg_backward,
    entropy,
    windows,
)

import baracuda as bc
import baracuda.functional as F
from baracuda.engine import ztensor as zt
from baracuda.engine.names import Name, Named, described
from baracuda.engine.tang import Tang
from conftest import FULL, SEED

TANG_ELSEWHERE = {"download", "total_memory_bytes"}
SYSTEMS: dict[type[Named], tuple[dict[str, Case], set[str]]] = {
    zt.Ztensor: (ZTENSOR, ELSEWHERE),
    Tang: (TANG, TANG_ELSEWHERE),
}
CALLS = [(s, n) for s, (cases, _) in SYSTEMS.items() for n in cases]
NAMED = pytest.mark.parametrize(("system", "name"), CALLS, ids=lambda x: x if isinstance(x, str) else x.__name__)
INTO = [n for n, row in zt.Ztensor.names.items() if row.arguments.endswith("dst?")]


def close(got: Any, want: Any) -> None:
    if isinstance(want, (list, tuple)) and not isinstance(got, bc.Tensor):
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            close(a, b)
    elif isinstance(want, float):
        assert isinstance(got, float) and got == pytest.approx(want, rel=1e-5)
    elif isinstance(want, (int, str)):
        assert type(got) is type(want) and got == want
    else:
        assert tuple(got.shape) == np.asarray(want).shape
        np.testing.assert_allclose(np.asarray(got), want, rtol=3e-5, atol=5e-6)


def rows(system: type[Named]) -> dict[str, Name]:
    return dict(system.names)


def test_every_name_is_tested() -> None:
    for system, (cases, elsewhere) in SYSTEMS.items():
        assert {*cases} | elsewhere == {*system.names} == {*dir(system(bc.Engine()))}
        assert not {*system.names} & {*system.absent}


@NAMED
@pytest.mark.parametrize("how", ["arrays", "tensors", "named"])
def test_each_name_by_its_own_words(system: type[Named], name: str, how: str) -> None:
    """By position and by name, with arrays and with tensors of the engine's."""
    case, engine = SYSTEMS[system][0][name], bc.Engine()
    args = list(copy.deepcopy(case.args))
    if how == "tensors":
        args = [engine.upload(x) if isinstance(x, np.ndarray) else x for x in args]
    call = getattr(system(engine), name)
    words = system.names[name].words
    got = call(**dict(zip(words, args, strict=False))) if how == "named" else call(*args)
    if case.want is not None:
        close(got, case.want)
    for at, want in case.changed.items():
        close(args[at], want)


@NAMED
def test_wrong_numbers_of_arguments(system: type[Named], name: str) -> None:
    words, marked = system.names[name].words, system.names[name].arguments.split()
    call = getattr(system(bc.Engine()), name)
    shown = re.escape(f"{system.system}.{name}") + r"\(\)"
    with pytest.raises(
        bc.UsageError, match=rf"{shown} takes at most {len(words)} positional arguments, got {len(words) + 1}"
    ):
        call(*[0] * (len(words) + 1))
    with pytest.raises(bc.UsageError, match=rf"{shown} got an unexpected keyword argument 'other'"):
        call(other=1)
    if words and "?" not in marked[0]:
        with pytest.raises(bc.UsageError, match=rf"{shown} misses its argument '{words[0]}'"):
            call()


@pytest.mark.parametrize("name", INTO)
@pytest.mark.parametrize("context", [False, True])
def test_results_go_into_dst(name: str, context: bool) -> None:
    """Last, by position, also behind a context; another shape is refused, and nothing is written."""
    case, z = ZTENSOR[name], bc.Engine().ztensor
    args = (*[zt.Context()] * context, *copy.deepcopy(case.args))
    for make in (np.array, lambda x: bc.Engine().upload(x)):
        dst = make(np.full(np.shape(case.want), 7, np.float32))
        assert getattr(z, name)(*args, dst) is dst
        close(dst, case.want)
    wrong = np.full((3, 5, 2), 7, np.float32)
    with pytest.raises(bc.InvalidProblemError):
        getattr(z, name)(*args, wrong)
    assert (wrong == 7).all()


HOSTILE = [
    0, -1, 7, 2**40, 2**63, None, "x", 1.5, [], np.zeros((0,), np.float32), np.zeros((2, 3), np.int64), np.array(1.0), (1, 2),
    (0, -3, 2**40), True, float("nan"), object(), [None], {}, b"x",
]  # fmt: skip


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda x: x.__name__)
def test_wrong_arguments_are_errors_of_ours(system: type[Named]) -> None:
    """Each argument of each name: all of these in turn where everything is asked, else three that are drawn."""
    rng = np.random.default_rng(SEED)
    for name, case in SYSTEMS[system][0].items():
        for at in range(len(case.args)):
            for k in range(len(HOSTILE)) if FULL else rng.choice(len(HOSTILE), 3, replace=False):
                args = list(copy.deepcopy(case.args))
                args[at] = HOSTILE[k]
                try:
                    getattr(system(bc.Engine(memory_limit="64MiB")), name)(*args)
                except bc.BaracudaError:
                    pass
                except Exception as error:
                    raise AssertionError(f"{name}: {system.names[name].words[at]} = {HOSTILE[k]!r}") from error


def test_as_many_take_dst_as_of_ztensor() -> None:
    interface = list(zt.Ztensor.names)[: list(zt.Ztensor.names).index("FusedRMSNormGPU")]
    assert len([n for n in INTO if n in interface]) == 29  # 27 of version 0.2, ReduceMax and HadamardTransform


@pytest.mark.parametrize("name", ZTENSOR)
def test_a_context_stops_a_call_before_it_does_anything(name: str) -> None:
    case, z = ZTENSOR[name], bc.Engine().ztensor
    parent = zt.Context()
    ctx = zt.Context(parent=parent)
    args = copy.deepcopy(case.args)
    getattr(z, name)(ctx, *args)
    args = copy.deepcopy(case.args)
    parent.cancel()
    for refused in (ctx, parent, zt.Context(timeout=0)):
        with pytest.raises(zt.CancelledError, match=rf"{name}: got a c.*Nothing was done"):
            getattr(z, name)(refused, *args)
    for got, given in zip(args, case.args, strict=True):
        if isinstance(given, np.ndarray):
            assert np.array_equal(got, given)


def test_names_that_change_the_engine() -> None:
    engine = bc.Engine(arena="4KiB")
    z = engine.ztensor
    z.SetMemoryLimit(1 << 20)
    assert engine.memory.limit == z.MemoryTracker().Limit() == 1 << 20
    z.SetMemoryLimit(0)
    assert engine.memory.limit is None and z.MemoryTracker().Limit() == 0
    z.SetDType("bf16")
    assert z.DTypeValue() == "bf16" and z.Ops().FromFloat32(1.001) == 1
    with pytest.raises(bc.InvalidProblemError, match="compute"):
        z.SetDType("f8e4m3")
    weights = z.UploadWeights([A])
    scope = z.BeginStep()
    inside = engine.F.exp(A)
    assert z.ArenaUsedBytes() == 128
    z.MarkStepBoundary()
    engine.F.exp(A)
    scope.Close()
    scope.Close()
    z.ResetPool()
    assert z.ArenaUsedBytes() == 128
    z.SetArenaResetFloor(0)
    z.ResetPool()
    assert z.ArenaUsedBytes() == 0
    del inside, scope
    w, g = (engine.upload(x) for x in (A, B))
    z.GPUFusedAdamW(w, g, 0.9, 0.99, 1e-3, 0.1, 0.01, 1)
    assert z.Close().bytes == sum(x.nbytes for x in (weights[0], w, g)) + engine.memory.allocated * 0
    with pytest.raises(bc.InvalidProblemError, match="closed"):
        z.Add(A, A)
    t = bc.Engine(memory_limit=1000, arena=512).tang
    assert 0 < t.free_memory_bytes() <= 488 and t.total_memory_bytes() == bc.Device("cpu").memory
    t.pool_clear()
    assert isinstance(t.download(t.upload(A)), np.ndarray) and np.array_equal(t.download(t.upload(A)), A)


def test_arguments_that_may_be_left_out() -> None:
    z = bc.Engine().ztensor
    x = A.copy()
    made = z.Zeros(x, (2, 3))
    assert made.shape == (2, 3) and not made.numpy().any() and np.array_equal(x, A)
    close(z.Transpose(SEQUENCE), SEQUENCE.T)
    close(z.Gather(TABLE, IDS), TABLE[IDS])
    close(z.Gather(TABLE, IDS[:, :, None]), TABLE[IDS[:, :, None]])
    close(z.Sum(A, 0), A.sum(0))
    one = np.zeros((2, 2, 5), np.int64)
    assert z.OneHot(IDS, 5, one) is one and np.array_equal(one, np.eye(5, dtype=np.int64)[IDS])
    close(z.UploadWeights({"a": A})["a"], A)


def test_drawn_numbers() -> None:
    z, t = bc.Engine().ztensor, bc.Engine().tang
    x = A.copy()
    z.RandomUniform(x, 3.0, 1.0)  # bounds the other way round
    assert 1 <= x.min() < x.max() <= 3
    ones = np.ones((64, 64), np.float32)
    y = z.Dropout(ones, 0.25, 7, True)
    assert np.array_equal(y, z.DropoutBackward(ones, 0.25, 7, True)) and not np.array_equal(
        y, z.Dropout(ones, 0.25, 8, True)
    )
    assert {*np.unique(y.numpy())} == {0, np.float32(1 / 0.75)} and 0.2 < (y.numpy() == 0).mean() < 0.3
    noisy = ones.copy()
    t.add_norm_relative_noise(noisy, 0.5, 7, 64, 64)
    assert (noisy - ones).std() == pytest.approx(0.5 * 8, rel=0.1)
    same = ones.copy()
    t.add_norm_relative_noise(same, 0.5, 7, 64, 64)
    assert np.array_equal(noisy, same)


def test_pooling_modes_and_gradients() -> None:
    z, counts = bc.Engine().ztensor, np.isfinite(windows(IMAGE)).sum(-1)
    sums = np.nansum(windows(IMAGE), -1)
    for mode, include in ((1, True), ("average_exclude_pad", False)):
        y = sums / (6 if include else counts)
        close(z.CudnnPoolingForward(IMAGE, mode, *WINDOW), y)
        close(z.CudnnPoolingBackward(IMAGE, y, DY4, mode, *WINDOW), avg_backward(include))


def test_paged_attention_of_several_sequences() -> None:
    """Blocks of 2 positions in any order."""
    rng, z = np.random.default_rng(SEED + 1), bc.Engine().ztensor
    table = rng.permutation(6).reshape(2, 3)
    k, v = (rng.normal(size=(6, 2, 2, 8)).astype(np.float32) for _ in range(2))
    q = rng.normal(size=(8, 8)).astype(np.float32)
    got = z.PagedGQA(q, k, v, table.ravel(), 5, 2, 8, 4, 2, 2).numpy()
    for b in range(2):
        keys, values = (x[table[b]].reshape(6, 16)[:5] for x in (k, v))
        close(got[4 * b : 4 * b + 4], attended(q[4 * b : 4 * b + 4].reshape(1, 32), keys, values, 4).reshape(4, 8))


def test_all_targets_padded() -> None:
    loss, grad = bc.Engine().tang.cross_entropy_forward_backward(A, np.full(4, 5, np.uint32), 4, 6, 5)
    assert loss == 0 and not grad.numpy().any()
    loss, grad = bc.Engine().tang.cross_entropy_forward_backward(A, np.arange(4, dtype=np.uint32), 4, 6, 2**32 - 1)
    close((loss, grad), entropy(A, np.arange(4), -1))


@pytest.mark.parametrize("element", ["f32", "f64"])
def test_adamw_goes_on_where_it_was(element: str) -> None:
    """The engine keeps the moments; they are the parameter's, also where another had its address."""
    engine = bc.Engine()
    plain = [A.astype(np.float64), np.zeros_like(A, np.float64), np.zeros_like(A, np.float64)]
    w = engine.upload(A, element)
    for t in (1, 2, 3):
        g = engine.upload(B * t, element)
        engine.ztensor.GPUFusedAdamW(w, g, 0.9, 0.99, 1e-3, 0.1, 0.01, t)
        p, m, v = plain
        m, v = 0.9 * m + 0.1 * B * t, 0.99 * v + 0.01 * (B * t) ** 2
        alpha = 0.1 * np.sqrt(1 - 0.99**t) / (1 - 0.9**t)
        plain = [p - alpha * m / (np.sqrt(v) + 1e-3) - 0.1 * 0.01 * p, m, v]
        close(w, plain[0])
        assert not g.numpy().any()


OPS = {
    "Add": (2.5, 0.5), "Sub": (2.5, 0.5), "Mul": (2.5, 0.5), "Div": (2.5, 0.5), "Tanh": (0.3,), "Sigmoid": (0.3,), "ReLU": (-2.0,),
    "LeakyReLU": (-2.0, 0.1), "TanhGrad": (0.3,), "SigmoidGrad": (0.3,), "ReLUGrad": (0.3,), "LeakyReLUGrad": (-2.0, 0.1),
    "FromFloat32": (0.1,), "FromFloat64": (0.1,), "One": (), "IsZero": (0.0,), "Abs": (-2.0,), "Sum": ([1.5, 2.0, -1.0],),
    "Exp": (0.3,), "Log": (0.3,), "Pow": (1.5, 3.0), "Sqrt": (0.3,), "GreaterThan": (2.0, 1.0),
}  # fmt: skip
OPS_WANT = {
    "Add": 3.0, "Sub": 2.0, "Mul": 1.25, "Div": 5.0, "Tanh": np.tanh(0.3), "Sigmoid": 1 / (1 + np.exp(-0.3)), "ReLU": 0.0,
    "LeakyReLU": -0.2, "TanhGrad": 1 - np.tanh(0.3) ** 2, "SigmoidGrad": 1 / (2 + np.exp(0.3) + np.exp(-0.3)), "ReLUGrad": 1.0,
    "LeakyReLUGrad": 0.1, "FromFloat32": 0.1, "FromFloat64": 0.1, "One": 1.0, "IsZero": True, "Abs": 2.0, "Sum": 2.5,
    "Exp": np.exp(0.3), "Log": np.log(0.3), "Pow": 3.375, "Sqrt": np.sqrt(0.3), "GreaterThan": True,
}  # fmt: skip


@pytest.mark.parametrize("element", ["f32", "f64", "f16"])
def test_arithmetic(element: str) -> None:
    """Of numbers, rounded to the element, and of arrays where UnaryOp asks."""
    assert {*OPS} == {*OPS_WANT} == {*zt.Ops.names}
    ops, z = zt.Ops(element), bc.Engine().ztensor
    for name, args in OPS.items():
        got, want = getattr(ops, name)(*args), OPS_WANT[name]
        assert type(got) is type(want) or isinstance(got, float), name
        assert got == pytest.approx(want, rel={"f32": 1e-6, "f64": 1e-15, "f16": 2e-3}[element]), name
        if element == "f32" and len(args) == 1 and name not in ("Sum", "IsZero", "FromFloat32", "FromFloat64"):
            x = np.full((3,), args[0], np.float32)
            close(z.UnaryOp(x, getattr(ops, name)), np.full((3,), want))
    assert zt.Ops("i32").Div(7, -2) in (-3.5, -3)
    assert float(np.float32(0.1)) == zt.Ops().FromFloat64(0.1) and zt.Ops("f64").FromFloat64(0.1) == 0.1


def test_a_proxy_writes_calls_down() -> None:
    engine = bc.Engine()
    weight, x = engine.upload(M), engine.upload(A)
    proxy, tracer = zt.EngineProxy(engine), zt.Tracer([weight])
    assert proxy.Real() is engine
    close(proxy.Add(A, B), A + B)  # nobody is told
    proxy.StartTracing(tracer)
    y = proxy.MatMul(zt.Context(), x, weight)
    dst = engine.F.zeros_like(y)
    proxy.Softmax(y, 1, dst)
    parts = proxy.Split(x, 2, 1)
    proxy.Concat(parts, 1)
    proxy.Fill(y, 0.0)
    proxy.Copy(y, dst)
    proxy.Gather(x, IDS % 4, engine.F.zeros((2, 2, 6)))
    assert not tracer.HasOpaqueOps()
    proxy.UnaryOp(x, lambda v: v + 1)
    proxy.ArenaUsedBytes()
    with pytest.raises(bc.BaracudaError):
        proxy.Add(x, M)  # what fails is not written down
    proxy.StopTracing()
    proxy.Add(x, x)
    ops = tracer.TracedOps()
    assert [op.OpName for op in ops] == ["MatMul", "Softmax", "Split", "Concat", "Fill", "Copy", "Gather", "UnaryOp"]
    assert tracer.HasOpaqueOps() and tracer.FrozenSlots() == [tracer.SlotFor(weight)] == [0]
    assert ops[0].InputIDs == [tracer.SlotFor(x), 0] and ops[0].OutputID == tracer.SlotFor(y)
    assert ops[1].ExtraArgs == {"axis": 1} and ops[1].OutputID == tracer.SlotFor(dst)
    assert ops[2].OutputIDs == ops[3].InputIDs == [tracer.SlotFor(p) for p in parts]
    assert ops[4].InputIDs == [ops[4].OutputID] == [tracer.SlotFor(y)] == [ops[5].OutputID]
    assert tracer.SlotShapes()[ops[6].OutputID] == (2, 2, 6) and tracer.NextSlot() == len(tracer.SlotShapes())
    assert {*dir(proxy)} == {*zt.Ztensor.names, "Real", "StartTracing", "StopTracing"}
    tracer.RecordGather(x, IDS, y)
    tracer.RecordMultiOutput("Other", [x], [])
    assert tracer.TracedOps()[-1].OutputID == -1 and tracer.TracedOps()[-2].OpName == "Gather"


def test_failures_on_purpose() -> None:
    testable, result = zt.TestableEngine(bc.Engine()), zt.FailableTensor(np.zeros((4, 3), np.float32))
    assert {*dir(testable)} == {"TestableMatMul", "TestableTranspose", "TestableSum"}
    testable.TestableMatMul(A, M, result)
    close(result.tensor, A @ M)
    result.tensor[...] = 0
    result.SetFailOnSetAfter(4)
    with pytest.raises(bc.DeviceError, match="asked for, in call 4"):
        testable.TestableMatMul(A, M, result)
    assert (result.tensor != 0).sum() == 3
    turned = zt.FailableTensor(np.zeros((6, 4), np.float32))
    turned.SetFailOnSet(True)
    with pytest.raises(bc.DeviceError, match="asked for"):
        testable.TestableTranspose(A, turned)
    turned.SetFailOnSet(False)
    testable.TestableTranspose(A, turned)
    close(turned.tensor, A.T)
    with pytest.raises(bc.InvalidProblemError, match=r"result: got shape \(6, 4\), want \(4, 3\)"):
        testable.TestableMatMul(A, M, turned)
    zeroer, total = zt.FailableZeroer(bc.Engine()), np.full((1,), 7, np.float32)
    zeroer.SetFailOnZero(True)
    with pytest.raises(bc.DeviceError, match="Zero"):
        testable.TestableSum(A, -1, False, zeroer, total)
    assert total[0] == 7
    zeroer.SetFailOnZero(False)
    testable.TestableSum(A, -1, False, zeroer, total)
    close(total, A.sum().reshape(1))


def test_memory_by_its_names() -> None:
    arena, pool, tracker = zt.TensorArena(), zt.TensorPool(), zt.MemoryTracker(100)
    assert [sorted(x.names) for x in (arena, pool, tracker)] == [dir(arena), dir(pool), dir(tracker)]
    assert arena.Get(0) is None and arena.Get(-1) is None
    buf = arena.Get(100)
    buf.numpy()[:] = 7
    at = buf.address
    arena.Put(buf)
    arena.Put(None)
    again = arena.Get(99)
    assert again.address == at and again.shape == (99,) and not again.numpy().any()
    with pytest.raises(bc.InvalidProblemError, match="release"):
        arena.Put(buf)
    arena.Put(again)
    arena.Reset()
    t = pool.Acquire((4, 5))
    assert t.shape == (4, 5) and not t.numpy().any() and pool.Len() == 0
    pool.Release(t)
    assert pool.Len() == 1
    tracker.Alloc(60)
    with pytest.raises(bc.MemoryLimitError):
        tracker.Alloc(41)
    assert tracker.Allocated() == 60 and tracker.Limit() == 100 and zt.MemoryTracker().Limit() == 0
    tracker.Free(60)
    assert tracker.Allocated() == 0


def test_optional_interfaces_are_asked_for_by_isinstance() -> None:
    protocols = [v for v in vars(zt).values() if getattr(v, "_is_protocol", False)]
    assert len(protocols) == 18
    for protocol in protocols:
        for x in (bc.Engine().ztensor, zt.EngineProxy(bc.Engine())):
            assert isinstance(x, protocol)
        assert not isinstance(bc.Engine(), protocol)
        for name in (n for n in vars(protocol) if not n.startswith("_")):  # the same words as in the table
            row = zt.Ztensor.names[name]
            words = list(inspect.signature(getattr(protocol, name)).parameters)[1:]
            assert words == row.words


def test_wrong_calls_by_name() -> None:
    z, t = bc.Engine().ztensor, bc.Engine().tang
    for call, error, why in (
        (lambda: z.Split(A, 4, 1), bc.InvalidProblemError, "Split: got 4 parts of 6"),
        (lambda: z.Copy(bc.zeros((2, 3)), A), bc.InvalidProblemError, r"Copy: got shapes \(2, 3\) and \(4, 6\)"),
        (lambda: z.Div(IDS, np.zeros_like(IDS)), bc.IntegerDivisionError, "div"),
        (lambda: z.Gather(TABLE, np.array([7])), bc.IndexOutOfRangeError, "7"),
        (lambda: z.Gather(TABLE, IDS, A), bc.InvalidProblemError, r"output: got shape \(4, 6\), want \(2, 2, 8\)"),
        (lambda: z.OneHot(np.array([5]), 3), bc.BaracudaError, "5"),
        (lambda: z.HadamardTransform(A), bc.InvalidProblemError, "got 6, want a power of two"),
        (
            lambda: z.Conv2dForward(IMAGE, KERNEL, None, (1, 1), (1, 0, 0, 0), (1, 1), 2),
            bc.InvalidProblemError,
            "pads: got",
        ),
        (
            lambda: z.CudnnActivationForward(A, "gelu"),
            bc.InvalidProblemError,
            "mode: got 'gelu', want one of sigmoid, relu",
        ),
        (lambda: z.GPUFusedQKNormRoPE(QK, *[QK[0]] * 4, 1e-5, 6, 4, 6, 2), bc.InvalidProblemError, "numQHeads: got 6"),
        (lambda: z.Matmul, AttributeError, "engine.ztensor: got 'Matmul'.*did you mean 'MatMul'"),
        (lambda: z.WithCapture, AttributeError, r"WithCapture', which is not here; there is bc.trace\(fn\)"),
        (
            lambda: t.elementwise([A, M], 24, lambda ids: ids[0]),
            bc.InvalidProblemError,
            r"elementwise: got inputs of \[24, 18\]",
        ),
        (lambda: t.matmul(A, M, 4, 6, 4), bc.InvalidProblemError, r"got 18 elements \(6, 3\), want 6 x 4"),
        (
            lambda: t.rms_norm(A, WEIGHT, 4, 5, 1e-5),
            bc.InvalidProblemError,
            r"data: got 24 elements \(4, 6\), want 4 x 5",
        ),
        (lambda: t.softmax_backward(A, B[:2], 4, 6), bc.InvalidProblemError, "grad_output: got 12 elements"),
        (lambda: t.kv_attention(Q3, K, V, 3, 3, 4, 2, 8), bc.InvalidProblemError, "k_cache's 80"),
        (lambda: t.embedding(TABLE, np.array([5]), 1, 8), bc.IndexOutOfRangeError, "5"),
        (
            lambda: t.extract_columns(A, 4, 6, 4, 3),
            bc.InvalidProblemError,
            "col_start: got columns 4 to 7, want some of 6",
        ),
        (lambda: t.upload_into_u32(A, [1] * 24), bc.InvalidProblemError, "buf: got f32, want u32"),
        (lambda: t.rope_backward_batched(Q, COS, SIN, 5, 2, 8, 4, 0), bc.InvalidProblemError, "total_rows: got 5"),
    ):
        with pytest.raises(error, match=why):
            call()
    close(z.Div(np.array([7, -7]), np.array([2, 2])), np.array([3, -3]))
    close(z.Softmax(np.array(3.0, np.float32), 0), np.array(1.0))


def test_functions_that_the_tables_name_are_there() -> None:
    """And the page lists every name; ci/generate.py writes it."""
    page = (Path(__file__).parent.parent / "docs" / "engine.md").read_text()
    for system in (zt.Ztensor, Tang, zt.Ops, zt.TensorArena, zt.TensorPool, zt.MemoryTracker, zt.TestableEngine):
        for name, row in system.names.items():
            assert f"`{row.shown(name)}`" in page
            for fn in re.findall(r"\bF\.(\w+)", described(row) + row.differs):
                assert fn in dir(F)
    for instead in zt.Ztensor.absent.values():
        for fn in re.findall(r"\bF\.(\w+)", instead):
            assert fn in dir(F)
