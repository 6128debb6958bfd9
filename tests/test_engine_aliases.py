"""Engines by the names of other systems: each name against NumPy, and none without a test."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import baracuda as bc
import baracuda.functional as F
from baracuda.engine.aliases import Tang, Ztensor
from conftest import SEED

RNG = np.random.default_rng(SEED)
A, B = RNG.uniform(0.5, 2, (4, 6)).astype(np.float32), RNG.uniform(0.5, 2, (4, 6)).astype(np.float32)
M, TABLE = RNG.normal(size=(6, 3)).astype(np.float32), RNG.normal(size=(5, 8)).astype(np.float32)
WEIGHT = RNG.normal(size=6).astype(np.float32)
IDS = np.array([[1, 4], [0, 1]])
COS, SIN = (f(np.outer(np.arange(7), [0.1, 0.5])).astype(np.float32) for f in (np.cos, np.sin))
SEQUENCE = RNG.normal(size=(2, 7, 6)).astype(np.float32)


def softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def rms(x: np.ndarray, eps: float) -> np.ndarray:
    return 1 / np.sqrt((x.astype(np.float64) ** 2).mean(-1, keepdims=True) + eps)


def turned(x: np.ndarray) -> np.ndarray:
    """The first 4 of the width in halves of 2, by the row's angle."""
    a, b = x[..., :2], x[..., 2:4]
    return np.concatenate([a * COS - b * SIN, b * COS + a * SIN, x[..., 4:]], -1)


def silu(x: np.ndarray) -> np.ndarray:
    return x / (1 + np.exp(-x))


ZTENSOR: dict[str, tuple[tuple[Any, ...], Any]] = {
    "Add": ((A, B), A + B), "Sub": ((A, B), A - B), "Mul": ((A, B), A * B), "Div": ((A, B), A / B), "Pow": ((A, B), A**B),
    "Exp": ((A,), np.exp(A)), "Log": ((A,), np.log(A)), "Sin": ((A,), np.sin(A)), "Cos": ((A,), np.cos(A)),
    "Tanh": ((A,), np.tanh(A)), "Sqrt": ((A,), np.sqrt(A)), "Rsqrt": ((A,), 1 / np.sqrt(A)), "MatMul": ((A, M), A @ M),
    "Concat": (([A, B], 0), np.concatenate([A, B])), "UnaryOp": ((A, lambda v: v * v + 1), A * A + 1),
    "TanhPrime": ((A, B), (1 - np.tanh(A) ** 2) * B), "Transpose": ((SEQUENCE, (2, 0, 1)), SEQUENCE.transpose(2, 0, 1)),
    "Reshape": ((A, (3, -1)), A.reshape(3, -1)), "Split": ((A, 2, 1), [A[:, :3], A[:, 3:]]),
    "Repeat": ((A, 1, 2), np.tile(A, (1, 2))), "RepeatInterleave": ((A, 1, 2), A.repeat(2, 1)),
    "Sum": ((A, 1), A.sum(1)), "ReduceSum": ((A, -1), A.sum().reshape(1)), "ReduceMean": ((A, 0, True), A.mean(0, keepdims=True)),
    "ReduceMax": ((A, -1, True), A.max().reshape(1, 1)), "Zeros": ((A, (2, 3)), np.zeros((2, 3))),
    "Gather": ((TABLE, IDS), TABLE[IDS]), "AddScalar": ((A, 2.5), A + np.float32(2.5)), "MulScalar": ((A, 3), A * 3),
    "DivScalar": ((A, 4), A / 4), "Softmax": ((A, -2), softmax(A, 0)), "OneHot": ((IDS, 5), np.eye(5)[IDS]),
    "HadamardMatrix": ((2,), np.array([[1, 1], [1, -1]]) / np.sqrt(2)),
    "HadamardTransform": ((TABLE[:, :2],), TABLE[:, :2] @ np.array([[1, 1], [1, -1]]) / np.sqrt(2)),
    "FusedRMSNorm": ((A, WEIGHT, 1e-5), (A * rms(A, 1e-5) * WEIGHT, rms(A, 1e-5))),
    "FusedRMSNormGPU": ((A, WEIGHT, 1e-5), (A * rms(A, 1e-5) * WEIGHT, rms(A, 1e-5))),
    "FusedAddRMSNorm": ((A, B, WEIGHT, 1e-5), ((A + B) * rms(A + B, 1e-5) * WEIGHT, A + B, rms(A + B, 1e-5))),
    "FusedNormAdd": ((A, WEIGHT, B, 1e-5), A * rms(A, 1e-5) * WEIGHT + B),
    "FusedRoPE": ((SEQUENCE, COS, SIN, 4), turned(SEQUENCE)),
    "FusedSiLUGate": ((A, B), silu(A) * B), "FusedSwiGLU": ((A, B), silu(A) * B),
    "FusedScaledSoftmax": ((A, 0.5, 1), softmax(A * 0.5)), "FusedSoftmaxVMul": ((A, M, 0.5), softmax(A * 0.5) @ M),
    "MatMulTransposeB": ((A, B), A @ B.T), "MatMulTransposeA": ((A, B), A.T @ B), "GPUArgmax": ((A,), int(A.argmax())),
    "ComputeAmax": ((-A,), A.max()), "ConvertFP16ToF32": ((A.astype(np.float16),), A.astype(np.float16).astype(np.float32)),
    "CosineSimilarity": ((A, B, 1), (A * B).sum(1) / np.linalg.norm(A, axis=1) / np.linalg.norm(B, axis=1)),
    "UploadWeights": (({"a": A},), {"a": A}), "Sync": ((), None), "DeviceID": ((), "cpu"), "OOMFallbackCount": ((), 0),
    "ArenaUsedBytes": ((), 0), "ArenaPinnedBytes": ((), 0), "ResetPool": ((), 0), "MarkStepBoundary": ((), 0),
}  # fmt: skip
# Tested below: they write to an argument, draw, or need an arena or pages.
ELSEWHERE = {
    "Zero", "Fill", "Copy", "RandomUniform", "ScatterAdd", "FusedQKNormRoPE", "PagedGQA", "Dropout", "GPUFusedAdamW",
    "SetArenaResetFloor",
}  # fmt: skip
TANG: dict[str, tuple[tuple[Any, ...], Any]] = {
    "upload": ((A.astype(np.float64),), A), "upload_u32": ((IDS,), IDS), "alloc": ((5,), np.zeros(5)),
    "sync": ((), None), "copy_buffer": ((A,), A), "bias_add": ((A, WEIGHT), A + WEIGHT),
    "elementwise": (([A, B], 24, lambda a, b: a * b + 1), A * B + 1),
    "matmul": ((A.ravel(), M.ravel(), 4, 6, 3), A @ M), "softmax": ((A.ravel(), 4, 6), softmax(A)),
    "rms_norm": ((A, WEIGHT, 6, 1e-5), A * rms(A, 1e-5) * WEIGHT), "embedding": ((IDS, TABLE), TABLE[IDS]),
    "embedding_backward": ((TABLE[:4].reshape(2, 2, 8), IDS, 5), F.embedding_backward(TABLE[:4].reshape(2, 2, 8), IDS, 5)),
    "rms_norm_backward": ((B, A, WEIGHT, 6, 1e-5), F.rms_norm_backward(B, A, (6,), WEIGHT, 1e-5)),
    "reduce_sum": ((A.ravel(), (4, 6), 0), A.sum(0)), "transpose_2d": ((A.ravel(), 4, 6), A.T),
    "softmax_backward": ((B, softmax(A)), softmax(A) * (B - (B * softmax(A)).sum(-1, keepdims=True))),
}  # fmt: skip
TANG_ELSEWHERE = {
    "zero_buffer", "add_assign", "causal_attention", "kv_attention", "causal_attention_backward",
    "cross_entropy_forward_backward", "adamw_step", "download", "to_vec",
}  # fmt: skip


def close(got: Any, want: Any) -> None:
    if isinstance(want, (list, tuple)):
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            close(a, b)
    elif isinstance(want, dict):
        assert list(got) == list(want)
        close([*got.values()], [*want.values()])
    elif isinstance(want, (int, str, type(None))):
        assert got == want
    else:
        assert isinstance(got, bc.Tensor) and tuple(got.shape) == np.asarray(want).shape
        np.testing.assert_allclose(got.numpy(), want, rtol=2e-5, atol=2e-6)


def test_every_name_is_tested() -> None:
    assert {*ZTENSOR} | ELSEWHERE == {*Ztensor.names} == {*dir(bc.Engine().ztensor)}
    assert {*TANG} | TANG_ELSEWHERE == {*Tang.names}


@pytest.mark.parametrize("name", ZTENSOR)
def test_names_of_ztensor(name: str) -> None:
    args, want = ZTENSOR[name]
    close(getattr(bc.Engine().ztensor, name)(*args), want)


@pytest.mark.parametrize("name", TANG)
def test_names_of_tang(name: str) -> None:
    args, want = TANG[name]
    close(getattr(bc.Engine().tang, name)(*args), want)


def test_names_of_ztensor_that_write_or_draw() -> None:
    engine = bc.Engine(arena="4KiB")
    z = engine.ztensor
    x = engine.upload(A)
    z.Fill(x, 2.0)
    close(x, np.full((4, 6), 2.0))
    z.Copy(x, B)
    close(x, B)
    z.Zero(x)
    close(x, np.zeros((4, 6)))
    z.Copy(x, B)
    z.Zeros(x)
    close(x, np.zeros((4, 6)))
    z.RandomUniform(x, 3.0, 1.0)  # bounds the other way round
    assert 1 <= x.numpy().min() < x.numpy().max() <= 3
    table = engine.upload(TABLE)
    z.ScatterAdd(table, IDS, TABLE[:4].reshape(2, 2, 8))
    want = TABLE.copy()
    np.add.at(want, IDS.ravel(), TABLE[:4])
    close(table, want)
    q = RNG.normal(size=(1, 2, 3, 8)).astype(np.float32)
    w, tables = np.ones(8, np.float32), np.ones((3, 4), np.float32)
    got = z.FusedQKNormRoPE(q, q, w, w, tables, tables)
    for a, b in zip(got, F.qk_norm_rope(q, q, w, w, tables, tables), strict=True):
        close(a, b)
    assert z.Dropout(A, 0.0).numpy().tolist() == A.tolist()
    pages, page_table = RNG.normal(size=(2, 4, 1, 8)).astype(np.float32), np.array([[0, 1]], np.int32)
    lengths, one = np.array([5], np.int32), q[:, :1, :1]
    close(z.PagedGQA(one, pages, pages, page_table, lengths), F.paged_attention(one, pages, pages, page_table, lengths))
    state = [engine.upload(a) for a in (A, B, np.zeros_like(A), np.zeros_like(A))]
    plain = [a.copy() for a in (A, B, np.zeros_like(A), np.zeros_like(A))]
    z.GPUFusedAdamW(*([t] for t in state), step=1)
    F.adamw_(*([t] for t in plain), step=1)
    close(state, plain)
    with engine.step():
        engine.F.exp(A)
        z.SetArenaResetFloor()
    assert z.ArenaUsedBytes() == 128 and z.ResetPool() == 128


def test_names_of_tang_that_write_or_attend() -> None:
    engine = bc.Engine()
    t, x = engine.tang, engine.upload(A)
    t.add_assign(x, B)
    close(x, A + B)
    assert t.to_vec(x) == t.download(x).tolist() == (A + B).tolist()
    t.zero_buffer(x)
    close(x, np.zeros((4, 6)))
    q, k, v = (RNG.normal(size=(5, n)).astype(np.float32) for n in (32, 16, 16))
    heads = q.reshape(5, 4, 8).transpose(1, 0, 2)
    keys, values = (np.repeat(a.reshape(5, 2, 8).transpose(1, 0, 2), 2, 0) for a in (k, v))
    scores = heads @ keys.transpose(0, 2, 1) / np.sqrt(8)
    masked = np.where(np.tril(np.ones((5, 5))), scores, -np.inf)
    want = (softmax(masked) @ values).transpose(1, 0, 2).reshape(5, 32)
    close(t.causal_attention(q, k, v, 4, 2), want)
    close(t.kv_attention(q[4], k, v, 5, 4, 2), want[4])
    grads = t.causal_attention_backward(q, q, k, v, 4, 2)
    assert [g.shape for g in grads] == [(5, 32), (5, 16), (5, 16)]
    step = np.float32(1e-2)
    for x, g in ((q, grads[0]), (k, grads[1]), (v, grads[2])):  # against differences of <y, q>
        given = {"q": q, "k": k, "v": v}
        name = next(n for n, a in given.items() if a is x)

        def at(sign: float, x: np.ndarray = x, name: str = name, given: dict[str, Any] = given) -> float:
            moved = x.copy()
            moved[2, 3] += sign * step
            y = t.causal_attention(*(given | {name: moved}).values(), 4, 2)
            return float((y.numpy().astype(np.float64) * q).sum())

        assert g.numpy()[2, 3] == pytest.approx((at(1) - at(-1)) / (2 * step), rel=2e-2, abs=2e-3)
    loss, grad = t.cross_entropy_forward_backward(A, np.arange(4))
    assert loss == pytest.approx(-np.log(softmax(A)[np.arange(4), np.arange(4)]).mean(), rel=1e-5)
    close(grad, (softmax(A) - np.eye(6, dtype=np.float32)[:4]) / 4)
    state = [engine.upload(a) for a in (A, B, np.zeros_like(A), np.zeros_like(A))]
    plain = [a.copy() for a in (A, B, np.zeros_like(A), np.zeros_like(A))]
    t.adamw_step(*state, step=1)
    F.adamw_(*([t] for t in plain), step=1)
    close(state, plain)


def test_wrong_calls_by_name() -> None:
    z, t = bc.Engine().ztensor, bc.Engine().tang
    for call, error, why in (
        (lambda: z.Split(A, 4, 1), bc.InvalidProblemError, "Split: got 4 parts of 6"),
        (lambda: z.Copy(bc.zeros((2, 3)), A), bc.InvalidProblemError, r"Copy: got shapes \(2, 3\) and \(4, 6\)"),
        (lambda: z.Div(IDS, np.zeros_like(IDS)), bc.IntegerDivisionError, "div"),
        (lambda: z.Gather(TABLE, np.array([7])), bc.IndexOutOfRangeError, "7"),
        (lambda: z.OneHot(np.array([5]), 3), bc.BaracudaError, "5"),
        (lambda: z.HadamardTransform(A), bc.InvalidProblemError, "got 6, want a power of two"),
        (lambda: z.Matmul, AttributeError, "engine.ztensor: got 'Matmul'.*did you mean 'MatMul'"),
        (lambda: t.elementwise([A, M], 24, F.add), bc.InvalidProblemError, r"elementwise: got inputs of \[24, 18\]"),
        (lambda: t.matmul(A, M, 4, 6, 4), bc.BaracudaError, "reshape"),
    ):
        with pytest.raises(error, match=why):
            call()
    close(z.Div(np.array([7, -7]), np.array([2, 2])), np.array([3, -3]))
    close(z.Softmax(np.array(3.0, np.float32), 0), np.array(1.0))
