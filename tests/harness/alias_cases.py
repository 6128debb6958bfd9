"""Calls of other systems' names by their own argument lists, and what NumPy makes of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from conftest import SEED

RNG = np.random.default_rng(SEED)
A, B = RNG.uniform(0.5, 2, (4, 6)).astype(np.float32), RNG.uniform(0.5, 2, (4, 6)).astype(np.float32)
M, TABLE = RNG.normal(size=(6, 3)).astype(np.float32), RNG.normal(size=(5, 8)).astype(np.float32)
WEIGHT = RNG.normal(size=6).astype(np.float32)
IDS = np.array([[1, 4], [0, 1]])
COS, SIN = (f(np.outer(np.arange(7), [0.1, 0.5])).astype(np.float32) for f in (np.cos, np.sin))
SEQUENCE = RNG.normal(size=(2, 7, 6)).astype(np.float32)
HALF = A.astype(np.float16)
H2 = np.array([[1, 1], [1, -1]]) / np.sqrt(2)
# 5 positions, 4 heads over 2 of keys and values, of width 8.
Q, K, V = (RNG.normal(size=(5, n)).astype(np.float32) for n in (32, 16, 16))
IMAGE, KERNEL = RNG.normal(size=(2, 4, 5, 6)).astype(np.float32), RNG.normal(size=(6, 2, 3, 2)).astype(np.float32)
CHANNELS = RNG.uniform(0.5, 1.5, (4, 4)).astype(np.float32)
CONV = (2, 1), (1, 0, 1, 0), (1, 2), 2


def softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def rms(x: np.ndarray, eps: float) -> np.ndarray:
    return 1 / np.sqrt((x.astype(np.float64) ** 2).mean(-1, keepdims=True) + eps)


def rms_norm_backward(dy: np.ndarray, x: np.ndarray, w: np.ndarray, eps: float) -> tuple[np.ndarray, np.ndarray]:
    r = rms(x, eps)
    return r * (dy * w - x * r**2 * (dy * w * x).mean(-1, keepdims=True)), (dy * x * r).sum(0)


def halves(x: np.ndarray) -> np.ndarray:
    """The first 4 of the width in halves of 2, by the row's angle."""
    a, b = x[..., :2], x[..., 2:4]
    return np.concatenate([a * COS - b * SIN, b * COS + a * SIN, x[..., 4:]], -1)


def pairs(x: np.ndarray, batch: int, heads: int, start: int, back: bool = False) -> np.ndarray:
    """Pairs (2i, 2i + 1) of each head, by the position's angle."""
    y = x.reshape(batch, -1, heads, 4).astype(np.float64)
    at = slice(start, start + y.shape[1])
    c, s = COS[at][:, None], SIN[at][:, None] * (-1 if back else 1)
    a, b = y[..., 0::2], y[..., 1::2]
    return np.stack([a * c - b * s, a * s + b * c], -1).reshape(x.shape)


def silu(x: np.ndarray) -> np.ndarray:
    return x / (1 + np.exp(-x))


def silu_slope(x: np.ndarray) -> np.ndarray:
    y = 1 / (1 + np.exp(-x))
    return y * (1 + x * (1 - y))


def attended(q: np.ndarray, k: np.ndarray, v: np.ndarray, start: int = 0) -> np.ndarray:
    """Row i of q over the rows 0 to start + i of k and v; 4 heads over 2, of width 8."""
    heads = q.reshape(-1, 4, 8).transpose(1, 0, 2).astype(np.float64)
    keys, values = (np.repeat(a.reshape(-1, 2, 8).transpose(1, 0, 2), 2, 0) for a in (k, v))
    scores = heads @ keys.transpose(0, 2, 1) / np.sqrt(8)
    seen = np.tril(np.ones(scores.shape[1:]), start)
    return (softmax(np.where(seen, scores, -np.inf)) @ values).transpose(1, 0, 2).reshape(q.shape)


def slopes(dy: np.ndarray, *args: np.ndarray) -> list[np.ndarray]:
    """Gradients of sum(dy * attended(q, k, v)) by differences."""
    found = []
    for i, x in enumerate(args):
        grad = np.zeros(x.shape)
        for at in np.ndindex(x.shape):
            moved = [np.asarray(a, np.float64).copy() for a in args]
            values = []
            for step in (1e-5, -1e-5):
                moved[i][at] = float(x[at]) + step
                values.append((attended(*moved) * dy).sum())
            grad[at] = (values[0] - values[1]) / 2e-5
        found.append(grad)
    return found


def entropy(x: np.ndarray, targets: np.ndarray, pad: int) -> tuple[float, np.ndarray]:
    counts = targets != pad
    rows = np.flatnonzero(counts)
    p = softmax(x.astype(np.float64))
    grad = p.copy()
    grad[rows, targets[rows]] -= 1
    return -np.log(p[rows, targets[rows]]).mean(), grad * counts[:, None] / len(rows)


def adam(w: np.ndarray, g: np.ndarray, eps: float = 1e-8, uncorrected: bool = False) -> np.ndarray:
    """The first step, of lr 0.1, betas 0.9 and 0.99 and weight decay 0.01, from moments 0."""
    w, g = w.astype(np.float64), g.astype(np.float64)
    if uncorrected:  # as ztensor has it: eps is added to the root of the moment itself
        return w - 0.1 * np.sqrt(0.01) / 0.1 * (0.1 * g) / (np.sqrt(0.01) * np.abs(g) + eps) - 0.1 * 0.01 * w
    return w * (1 - 0.1 * 0.01) - 0.1 * g / (np.abs(g) + eps)


def windows(x: np.ndarray) -> np.ndarray:
    """2 x 3 windows at steps of (2, 1), of (N, C, H, W) padded by (0, 1) with NaN: the last axis is a window's."""
    padded = np.pad(x, ((0, 0), (0, 0), (0, 0), (1, 1)), constant_values=np.nan)
    return np.lib.stride_tricks.sliding_window_view(padded, (2, 3), (2, 3))[:, :, ::2].reshape(2, 4, 2, 6, 6)


def convolved(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """By CONV: strides (2, 1), padding (1, 0), dilation (1, 2), 2 groups."""
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (0, 0)))
    y = np.zeros((2, 6, 3, 4))
    for c, i, j in np.ndindex(6, 3, 4):
        group = slice(0, 2) if c < 3 else slice(2, 4)
        y[:, c, i, j] = (padded[:, group, 2 * i : 2 * i + 3, j : j + 3 : 2] * w[c]).sum((1, 2, 3))
    return y


def conv_gradients(dy: np.ndarray, x: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of convolved, which is linear in each."""
    dx = np.zeros((4, 5, 6))
    for at in np.ndindex(dx.shape):
        unit = np.zeros((2, 4, 5, 6))
        unit[0][at] = 1
        dx[at] = (convolved(unit, w)[0] * dy[0]).sum()
    dw = np.zeros(w.shape)
    for at in np.ndindex(dw.shape):
        unit = np.zeros(w.shape)
        unit[at] = 1
        dw[at] = (convolved(x, unit) * dy).sum()
    return dx, dw


@dataclass
class Case:
    """A call by the system's own words.

    Attributes:
        args: In their order.
        want: What it returns; None is not asked.
        changed: What arguments are afterwards, by their place.
    """

    args: tuple[Any, ...] = ()
    want: Any = None
    changed: dict[int, Any] = field(default_factory=dict)


def _moments() -> tuple[np.ndarray, np.ndarray]:
    return np.zeros_like(A), np.zeros_like(A)


DY = RNG.normal(size=(5, 32)).astype(np.float32)
DY4, DYC = RNG.normal(size=(2, 4, 2, 6)).astype(np.float32), RNG.normal(size=(2, 6, 3, 4)).astype(np.float32)
Q3, KV5 = Q[2:], (K, V)
PAGES = [np.stack([np.zeros((3, 2, 8), np.float32), *(x.reshape(5, 2, 8)[i : i + 3] for i in (0,))]) for x in KV5]
MEAN, VAR = IMAGE.mean((0, 2, 3)), IMAGE.var((0, 2, 3))
HAT = (IMAGE - MEAN[:, None, None]) / np.sqrt(VAR + 1e-3)[:, None, None]


def _scaled(hat: np.ndarray) -> np.ndarray:
    return hat * CHANNELS[0][:, None, None] + CHANNELS[1][:, None, None]


def _batch_norm_backward(dy: np.ndarray) -> tuple[np.ndarray, ...]:
    scale, axes = (CHANNELS[0] / np.sqrt(VAR + 1e-3))[:, None, None], (0, 2, 3)
    mean = dy.mean(axes)[:, None, None] + HAT * (dy * HAT).mean(axes)[:, None, None]
    return scale * (dy - mean), (dy * HAT).sum(axes), dy.sum(axes)


def avg_backward(include: bool) -> np.ndarray:
    grad, counts = np.zeros((2, 4, 5, 8)), np.isfinite(windows(IMAGE)).sum(-1)
    for i, j in np.ndindex(2, 6):
        share = DY4[:, :, i, j] / (6 if include else counts[:, :, i, j])
        grad[:, :, 2 * i : 2 * i + 2, j : j + 3] += share[..., None, None]
    return grad[..., 1:-1]


def _max_backward() -> np.ndarray:
    grad, found = np.zeros((2, 4, 5, 8)), np.nan_to_num(windows(IMAGE), nan=-np.inf).argmax(-1)
    for n, c, i, j in np.ndindex(2, 4, 2, 6):
        at = found[n, c, i, j]
        grad[n, c, 2 * i + at // 3, j + at % 3] += DY4[n, c, i, j]
    return grad[..., 1:-1]


WINDOW = (2, 3, 0, 1, 2, 1)
NORMED = A * rms(A, 1e-5) * WEIGHT
SUMMED = (A + B) * rms(A + B, 1e-5) * WEIGHT
POOLED = np.nanmax(windows(IMAGE), -1)
QK = RNG.normal(size=(6, 4)).astype(np.float32)
TURNED = np.concatenate([x * rms(x, 1e-5) * w[:4] for x, w in ((QK[:4], TABLE[0]), (QK[4:], TABLE[1]))])
TURNED = np.concatenate(
    [TURNED[:, :2] * COS[3] - TURNED[:, 2:] * SIN[3], TURNED[:, 2:] * COS[3] + TURNED[:, :2] * SIN[3]], -1
)
ZTENSOR = {
    "UnaryOp": Case((A, lambda v: v * v + 1), A * A + 1), "Add": Case((A, B), A + B), "Sub": Case((A, B), A - B),
    "Mul": Case((A, B), A * B), "Div": Case((A, B), A / B), "MatMul": Case((A, M), A @ M),
    "Transpose": Case((SEQUENCE, (2, 0, 1)), SEQUENCE.transpose(2, 0, 1)), "Sum": Case((A, 1, False), A.sum(1)),
    "Exp": Case((A,), np.exp(A)), "Log": Case((A,), np.log(A)), "Sin": Case((A,), np.sin(A)), "Cos": Case((A,), np.cos(A)),
    "Tanh": Case((A,), np.tanh(A)), "TanhPrime": Case((A, B), (1 - np.tanh(A) ** 2) * B), "Pow": Case((A, B), A**B),
    "Zero": Case((A,), changed={0: A * 0}), "Zeros": Case((A,), changed={0: A * 0}), "Copy": Case((A, B), changed={0: B}),
    "Gather": Case((TABLE, IDS, np.zeros((2, 2, 8), np.float32)), TABLE[IDS], {2: TABLE[IDS]}),
    "ScatterAdd": Case((TABLE, IDS, TABLE[:4]), changed={0: TABLE + np.eye(5)[IDS.ravel()].T @ TABLE[:4]}),
    "RandomUniform": Case((A, 3.0, 3.0), changed={0: A * 0 + 3}), "Fill": Case((A, 2.0), changed={0: A * 0 + 2}),
    "MulScalar": Case((A, 3), A * 3), "DivScalar": Case((A, 4), A / 4), "Softmax": Case((A, -2), softmax(A, 0)),
    "ReduceSum": Case((A, -1, False), A.sum().reshape(1)), "ReduceMax": Case((A, -1, True), A.max().reshape(1, 1)),
    "AddScalar": Case((A, 2.5), A + np.float32(2.5)), "Sqrt": Case((A,), np.sqrt(A)), "Split": Case((A, 2, 1), [A[:, :3], A[:, 3:]]),
    "Concat": Case(([A, B], 0), np.concatenate([A, B])), "Repeat": Case((A, 1, 2), np.tile(A, (1, 2))),
    "OneHot": Case((IDS, 5), np.eye(5)[IDS]), "Reshape": Case((A, (3, -1)), A.reshape(3, -1)),
    "ReduceMean": Case((A, 0, True), A.mean(0, keepdims=True)), "Rsqrt": Case((A,), 1 / np.sqrt(A)),
    "HadamardTransform": Case((TABLE[:, :2],), TABLE[:, :2] @ H2),
    "FusedRMSNormGPU": Case((A, WEIGHT, 1e-5), (NORMED, rms(A, 1e-5))), "FusedRMSNorm": Case((A, WEIGHT, 1e-5), (NORMED, rms(A, 1e-5))),
    "GPUFusedAddRMSNorm": Case((A, B, WEIGHT, 1e-5), (SUMMED, A + B, rms(A + B, 1e-5))),
    "GPUFusedNormAdd": Case((A, WEIGHT, B, 1e-5), NORMED + B),
    "GPUFusedQKNormRoPE": Case((QK, TABLE[0, :4], TABLE[1, :4], COS[3], SIN[3], 1e-5, 6, 4, 4, 2), TURNED),
    "GPUFusedRoPE": Case((SEQUENCE, COS, SIN, 4), halves(SEQUENCE)), "FusedRoPE": Case((SEQUENCE, COS, SIN, 4), halves(SEQUENCE)),
    "GPUScaledSoftmax": Case((A, 0.5, 1), softmax(A * 0.5)), "GPUFusedSwiGLU": Case((A, B), silu(A) * B),
    "FusedSiLUGate": Case((A, B), silu(A) * B),
    "GPUFusedSoftmaxVMul": Case((A[:, None], SEQUENCE[:1, :6].repeat(4, 0), 0.5), softmax(A[:, None] * 0.5) @ SEQUENCE[0, :6]),
    "GPUFusedAdamW": Case((A, B, 0.9, 0.99, 1e-3, 0.1, 0.01, 1), changed={0: adam(A, B, 1e-3, True), 1: A * 0}),
    "GPUArgmax": Case((A,), int(A.argmax())), "ConvertFP16ToF32": Case((HALF,), HALF.astype(np.float32)),
    "MatMulTransposeB": Case((A, B), A @ B.T), "MatMulTransposeA": Case((A, B), A.T @ B),
    "Dropout": Case((A, 0.5, 7, False), A), "DropoutBackward": Case((A, 0.0, 7, True), A),
    "PagedGQA": Case((Q[4].reshape(4, 8), *PAGES, np.array([1]), 3, 3, 8, 4, 2, 1), attended(Q[4:], K[:3], V[:3], 2).reshape(4, 8)),
    "IsPagedGQASupported": Case((), True), "UploadWeights": Case(([A, HALF],), [A, HALF.astype(np.float32)]),
    "ResetPool": Case(), "Stream": Case(), "GPUStream": Case(),
    "Conv2dForward": Case((IMAGE, KERNEL, None, *CONV), convolved(IMAGE, KERNEL)),
    "Conv2dBackwardData": Case((KERNEL, DYC[:1], (1, 4, 5, 6), *CONV), conv_gradients(DYC, IMAGE, KERNEL)[0][None]),
    "Conv2dBackwardFilter": Case((IMAGE, DYC, (6, 2, 3, 2), *CONV), conv_gradients(DYC, IMAGE, KERNEL)[1]),
    "BatchNormForwardInference": Case(
        (IMAGE, *CHANNELS, 1e-3), _scaled((IMAGE - CHANNELS[2][:, None, None]) / np.sqrt(CHANNELS[3] + 1e-3)[:, None, None])),
    "BatchNormForwardTraining": Case(
        (IMAGE, *CHANNELS, 1e-3, 0.25), (_scaled(HAT), MEAN, 1 / np.sqrt(VAR + 1e-3)),
        {3: 0.75 * CHANNELS[2] + 0.25 * MEAN, 4: 0.75 * CHANNELS[3] + 0.25 * VAR * 60 / 59}),
    "CudnnBatchNormBackward": Case((IMAGE, IMAGE[::-1], CHANNELS[0], MEAN, 1 / np.sqrt(VAR + 1e-3)), _batch_norm_backward(IMAGE[::-1])),
    "CudnnActivationForward": Case((A, "relu"), A), "CudnnActivationBackward": Case((A, np.tanh(A), B, 2), (1 - np.tanh(A) ** 2) * B),
    "CudnnPoolingForward": Case((IMAGE, 0, *WINDOW), POOLED),
    "CudnnPoolingBackward": Case((IMAGE, POOLED, DY4, "max", *WINDOW), _max_backward()),
    "CudnnSoftmaxForward": Case((IMAGE,), softmax(IMAGE, 1)),
    "CosineSimilarity": Case((A, B[:3]), (A @ B[:3].T) / np.outer(np.linalg.norm(A, axis=1), np.linalg.norm(B[:3], axis=1))),
    "RepeatInterleave": Case((A, 1, 2), A.repeat(2, 1)), "DTypeValue": Case((), "f32"), "IsManagedMemory": Case((), True),
    "ArenaUsedBytes": Case((), 0), "ArenaPinnedBytes": Case((), 0), "SetArenaResetFloor": Case((0,)), "MarkStepBoundary": Case(),
    "OOMFallbackCount": Case((), 0), "Sync": Case(), "DeviceID": Case((), "cpu"),
    "FlashDecode": Case((Q[4], K, V, Q[3], 1, 4, 2, 5, 8), changed={3: attended(Q[4:], K, V, 4)[0]}),
    "FlashDecodeSplitKV": Case((Q[4], K, V, Q[3], 1, 4, 2, 5, 8, 2), changed={3: attended(Q[4:], K, V, 4)[0]}),
    "HadamardMatrix": Case((2,), H2), "ComputeAmax": Case((None, -A), float(A.max())),
    "ScaleForFP8": Case((None, -A), 448 / float(A.max())),
}  # fmt: skip
ELSEWHERE = {"Ops", "SetDType", "BeginStep", "SetMemoryLimit", "MemoryTracker", "Close"}  # tested below

GRADS = slopes(DY, Q, K, V)
TARGETS = np.array([3, 5, 0, 5], np.uint32)
LOSS = entropy(A, TARGETS, 5)
NORM = 4, 6, 1e-5
HEADS = 5, 4, 2, 8
BOTH = [np.concatenate([x, x[::-1]]) for x in (DY, Q, K, V)]  # two sequences
BOTH_Y = np.concatenate([attended(Q, K, V), attended(Q[::-1], K[::-1], V[::-1])])
BOTH_G = [np.concatenate(x) for x in zip(GRADS, slopes(DY[::-1], Q[::-1], K[::-1], V[::-1]), strict=True)]
DX, DW = rms_norm_backward(B, A, WEIGHT, 1e-5)
ROPE = Q[:3], COS, SIN
TANG = {
    "len": Case((A,), 24), "is_empty": Case((A[:0],), True), "to_vec": Case((A,), A.ravel().tolist()), "dialect": Case((), "c"),
    "free_memory_bytes": Case((), 0), "pool_clear": Case(), "peak_flops_f32": Case(), "upload": Case((A.astype(np.float64),), A),
    "upload_f32": Case((A,), A), "upload_u32": Case((IDS,), IDS),
    **dict.fromkeys(("alloc", "alloc_f32", "alloc_uninit", "alloc_uninit_f32"), Case((5,), np.zeros(5))),
    "upload_into_f32": Case((A, B.ravel().tolist()), changed={0: B}),
    "upload_into_u32": Case((TARGETS, [1, 2, 3, 4]), changed={0: np.arange(1, 5)}),
    "elementwise": Case(([A, B], 24, lambda ids: ids[0] * ids[1] + 1), A * B + 1), "matmul": Case((A.ravel(), M.ravel(), 4, 6, 3), A @ M),
    "matmul_b_transposed": Case((A.ravel(), B.ravel(), 4, 6, 4), A @ B.T),
    "matmul_a_transposed": Case((A.ravel(), B.ravel(), 6, 4, 6), A.T @ B),
    "matmul_accumulate": Case((A.ravel(), M, TABLE[:4, :3], 4, 6, 3), changed={2: TABLE[:4, :3] + A @ M}),
    "matmul_accumulate_a_transposed": Case((A, B, A.T @ A, 6, 4, 6), changed={2: A.T @ A + A.T @ B}),
    "softmax": Case((A.ravel(), 4, 6), softmax(A)),
    "softmax_backward": Case((softmax(A).ravel(), B.ravel(), 4, 6), softmax(A) * (B - (B * softmax(A)).sum(-1, keepdims=True))),
    "rms_norm": Case((A.ravel(), WEIGHT, *NORM), NORMED), "rms_norm_residual": Case((A, B.ravel(), WEIGHT, *NORM), (SUMMED, A + B)),
    "rms_norm_backward": Case((A, WEIGHT, B.ravel(), *NORM), (DX, DW)),
    "rms_norm_backward_accumulate": Case((A, WEIGHT, B, *NORM, WEIGHT), DX, {6: WEIGHT + DW}),
    "rms_norm_backward_residual_accumulate": Case((A, WEIGHT, B, A.ravel(), *NORM, WEIGHT), DX + A, {7: WEIGHT + DW}),
    "embedding": Case((TABLE.ravel(), IDS.ravel(), 4, 8), TABLE[IDS.ravel()]),
    "embedding_backward": Case((TABLE[:4].ravel(), IDS.astype(np.uint32), 5, 4, 8), np.eye(5)[IDS.ravel()].T @ TABLE[:4]),
    "reduce_sum": Case((A.ravel(), (4, 6), 0), A.sum(0)),
    "reduce_sum_accumulate": Case((A.ravel(), (2, 2, 6), 1, B[:2]), changed={3: B[:2] + A.reshape(2, 2, 6).sum(1)}),
    "transpose_2d": Case((A.ravel(), 4, 6), A.T), "causal_attention": Case((Q.ravel(), K, V, *HEADS), attended(Q, K, V)),
    "causal_attention_backward": Case((DY, Q, K, V, *HEADS), GRADS),
    "causal_attention_backward_with_output": Case((DY, Q, K, V, attended(Q, K, V), *HEADS), GRADS),
    "batched_causal_attention": Case((*BOTH[1:], 5, 2, 4, 2, 8), BOTH_Y),
    "batched_causal_attention_backward": Case((*BOTH, BOTH_Y, 5, 2, 4, 2, 8), BOTH_G),
    "kv_attention": Case((Q3, BOTH[2], BOTH[3], 2, 3, 4, 2, 8), attended(Q, K, V)[2:]),
    "rope_forward": Case((*ROPE, 3, 8, 4, 2), pairs(Q[:3], 1, 8, 2)),
    "rope_forward_cached": Case((*ROPE, 3, 8, 4, 2), pairs(Q[:3], 1, 8, 2)),
    "rope_backward": Case((*ROPE, 3, 8, 4, 2), pairs(Q[:3], 1, 8, 2, True)),
    "rope_backward_batched": Case((Q[:4], COS, SIN, 4, 2, 8, 4, 3), pairs(Q[:4], 2, 8, 3, True)),
    "rope_backward_batched_cached": Case((Q[:4], COS, SIN, 4, 2, 8, 4, 3), pairs(Q[:4], 2, 8, 3, True)),
    "cross_entropy_forward_backward": Case((A.ravel(), TARGETS, 4, 6, 5), LOSS),
    "cross_entropy_forward_backward_counted": Case((A, TARGETS, 4, 6, 5, 2), LOSS),
    "sync": Case(), "copy_buffer": Case((A,), A), "bias_add": Case((A.ravel(), WEIGHT, 24, 6), A + WEIGHT),
    "add_assign": Case((A, B.ravel()), changed={0: A + B}),
    "zero_buffer": Case((A,), changed={0: A * 0}), "add_tensors_buf": Case((A, B, 24), (A + B).ravel()),
    "swiglu_fused_buf": Case((A, B, 24), (silu(A) * B).ravel()),
    "swiglu_backward_buf": Case((A, B, A, 24), ((A * A * silu_slope(B)).ravel(), (A * silu(B)).ravel())),
    "extract_columns": Case((A.ravel(), 4, 6, 1, 3), A[:, 1:4]),
    "concat_columns": Case((A.ravel(), M[:4], 4, 6, 2, 3), changed={0: np.concatenate([A[:, :2], M[:4], A[:, 5:]], 1).ravel()}),
    "slice_buffer": Case((A, 5, 7), A.ravel()[5:12]),
    "write_into": Case((A, 5, WEIGHT), changed={0: np.concatenate([A.ravel()[:5], WEIGHT, A.ravel()[11:]]).reshape(4, 6)}),
    "scale_buffer": Case((A, 3.0), changed={0: A * 3}),
    "reduce_sum_sq_accumulate": Case((A, WEIGHT[:1]), changed={1: WEIGHT[:1] + (A**2).sum()}),
    "fused_sum_sq": Case(([A, M],), [(A**2).sum() + (M**2).sum()]),
    "clip_grad_norm": Case(([A, B], 1e9), float(np.sqrt((A**2).sum() + (B**2).sum()))),
    "add_norm_relative_noise": Case((A, 0.0, 7, 4, 6), changed={0: A}),
    "adamw_step": Case((A, B, *_moments(), 0.1, 0.9, 0.99, 1e-8, 0.01, 1), changed={0: adam(A, B), 2: 0.1 * B, 3: 0.01 * B**2}),
}  # fmt: skip
