"""The names of ztensor's Engine, its optional interfaces and its free functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

import baracuda.engine.ztensor.fused as fused
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.engine.names import Name, Named, axis_of, elementwise, filled, tensor
from baracuda.engine.ztensor.context import Context
from baracuda.engine.ztensor.memory import MemoryTracker
from baracuda.engine.ztensor.ops import Ops

if TYPE_CHECKING:
    from baracuda.engine.engine import Engine


def _divided(e: Engine, a: Any, b: Any, out: Any = None) -> Any:
    """Of integers the quotient towards zero; a zero there is an error."""
    whole = Element.coerce(tensor(a).element).is_integer
    return e.F.div(a, b, rounding_mode="trunc" if whole else None, out=out)


def _reduced(name: str) -> Callable[..., Any]:
    """An axis below 0 is all of them, of which one element is left."""

    def run(e: Engine, a: Any, axis: int, keep_dims: bool = False, out: Any = None) -> Any:
        fn, keep = getattr(e.F, name), bool(keep_dims)
        rank = tensor(a).ndim
        if axis >= 0:
            return fn(a, axis_of(name, axis, rank), keep, out=out)
        if out is None:
            whole = fn(a, tuple(range(rank)), keep)
            return whole if keep else whole.reshape(1)
        if not keep and tuple(tensor(out).shape) != (1,):
            raise InvalidProblemError(f"dst: got shape {tuple(tensor(out).shape)}, want (1,).")
        fn(a, tuple(range(rank)), keep, out=tensor(out) if keep else tensor(out).reshape())
        return out

    return run


def _split(e: Engine, a: Any, n: int, axis: int) -> Any:
    size = tensor(a).shape[axis_of("Split", axis, tensor(a).ndim)]
    if n < 1 or size % n:
        raise InvalidProblemError(f"Split: got {n} parts of {size}, want equal ones.")
    return e.F.split_copy(a, size // n, axis)


def _tiled(e: Engine, a: Any, axis: int, n: int, out: Any = None) -> Any:
    """The whole again along the axis; RepeatInterleave is each element again."""
    counts = [1] * tensor(a).ndim
    counts[axis_of("Repeat", axis, len(counts))] = n
    return e.F.repeat(a, counts, out=out)


def _zeros(e: Engine, a: Any, shape: Any = None) -> Any:
    return filled(e, a, 0) if shape is None else e.F.zeros(tuple(shape), dtype=tensor(a).element)


def _copied(e: Engine, dst: Any, src: Any) -> Any:
    a, b = tuple(tensor(dst).shape), tuple(tensor(src).shape)
    if a != b:
        raise InvalidProblemError(f"Copy: got shapes {a} and {b}, want the same.")
    return e.F.copy(src, out=dst)


def _gathered(e: Engine, params: Any, indices: Any, output: Any = None) -> Any:
    table, at = tensor(params), tensor(indices)
    if table.ndim != 2:
        raise InvalidProblemError(f"params: got shape {tuple(table.shape)}, want [vocab, dim].")
    if output is None:
        return e.F.embedding(at, table)
    wanted, into = (*at.shape, table.shape[1]), tensor(output)
    if tuple(into.shape) != wanted:
        raise InvalidProblemError(f"output: got shape {tuple(into.shape)}, want {wanted}.")
    e.F.copy(e.F.embedding(at, table), out=into)
    return output


def _scattered(e: Engine, table: Any, indices: Any, rows: Any) -> Any:
    """Adds rows to the table's, in place."""
    target, at = tensor(table), tensor(indices).reshape(-1)
    if target.ndim != 2:
        raise InvalidProblemError(f"dEmbeddingTable: got shape {tuple(target.shape)}, want [vocab, dim].")
    e.F.index_add(target, 0, at, tensor(rows).reshape(-1, target.shape[1]), out=target)
    return table


def _softmax(e: Engine, a: Any, axis: int, out: Any = None) -> Any:
    return e.F.softmax(a, axis, out=out) if tensor(a).ndim else e.F.copy(e.F.ones_like(a), out=out)


def _one_hot(e: Engine, indices: Any, depth: int, out: Any = None) -> Any:
    element = Element.F32 if out is None else tensor(out).element
    made = e.F.cast(e.F.one_hot(e.F.cast(indices, "i64"), depth), element)
    return made if out is None else e.F.copy(made, out=out)


def _hadamard_matrix(e: Engine, n: int) -> Any:
    if n < 1 or n & (n - 1) or n > 512:
        raise InvalidProblemError(f"HadamardMatrix: got {n}, want a power of two of at most 512.")
    bits = np.arange(n)
    odd = np.array([[(i & j).bit_count() & 1 for j in range(n)] for i in bits.tolist()])
    return e.upload((np.where(odd, -1.0, 1.0) / np.sqrt(n)).astype(np.float32))


def _hadamard(e: Engine, a: Any, out: Any = None) -> Any:
    seen = tensor(a)
    return e.F.matmul(a, _hadamard_matrix(e, seen.shape[-1] if seen.ndim else 0), out=out)


def _transposed(e: Engine, a: Any, axes: Any = None, out: Any = None) -> Any:
    seen = tensor(a)
    return e.F.copy(seen.permute(tuple(range(seen.ndim))[::-1] if axes is None else tuple(axes)), out=out)


def _amax(e: Engine, ops: Any, t: Any) -> Any:
    return e.F.amax(e.F.abs(t)) if tensor(t).numel else 0.0


def _scale_for_fp8(e: Engine, ops: Any, t: Any) -> float:
    most = float(_amax(e, ops, t))
    return 448.0 / most if most else float("inf")


class StepScope:
    """What BeginStep gives: `Close` resets the arena, once."""

    def __init__(self, e: Engine) -> None:
        self._step = e.step()
        self._step.__enter__()
        self._open = True

    def Close(self) -> None:
        """Resets the arena to where it was."""
        if self._open:
            self._open = False
            self._step.__exit__(None, None, None)


def _set_compute(e: Engine, dtype: Any) -> None:
    from baracuda.engine.engine import compute_of

    e.compute = compute_of(dtype)


def _set_limit(e: Engine, limit: int) -> None:
    e.memory.limit = limit or None


def _reset_pool(e: Engine) -> None:
    if e.arena:
        e.arena.reset()


def _stream(e: Engine) -> int | None:
    return None if e.device == "cpu" else 0


def _closed(e: Engine) -> Any:
    fused.MOMENTS.pop(e, None)
    return e.close()


def _floor(e: Engine, at: int | None = None) -> None:
    if e.arena:
        e.arena.set_floor(at)


def _row(words: str, name: str, differs: str = "") -> Name:
    return Name(words, name, differs=differs)


_ONE, _TWO, _SUM = "a dst?", "a b dst?", "a axis$ keepDims!? dst?"
_MODE = "by name, or the number of ztensor's constant"
_ANY = "any elements; ztensor's are f32"
_NEW = "a new tensor where `shape` is given: tensors keep their shapes"
_CONV = "strides* pads* dilations* groups#"
_POOL = "mode windowH# windowW# padH# padW# strideH# strideW#"


class Ztensor(Named):
    """ztensor's Engine interface, its optional interfaces and its free functions."""

    system = "engine.ztensor"
    names: ClassVar[Mapping[str, Name]] = {
        # Engine
        "Ops": Name("", lambda e: Ops(e.compute or "f32"), "`ztensor.Ops(element)`, whose names are below"),
        "UnaryOp": Name("a op dst?", lambda e, a, op, out=None: elementwise(e, [a], None, lambda x: op(x[0]), out),
            "[`bc.expr.fuse(op)(a)`](expr.md)",
            "op is traced once with a stand-in, and compiled; it may not look at numbers"),
        "Add": _row(_TWO, "add"), "Sub": _row(_TWO, "sub"), "Mul": _row(_TWO, "mul"),
        "Div": Name(_TWO, _divided, "`F.div`; of integers towards zero"),
        "MatMul": _row(_TWO, "matmul"),
        "Transpose": Name("a axes*? dst?", _transposed, "`F.copy(a.permute(axes))`"),
        "Sum": Name(_SUM, _reduced("sum"), "`F.sum`; an axis below 0 is all of them"),
        "Exp": _row(_ONE, "exp"), "Log": _row(_ONE, "log"), "Sin": _row(_ONE, "sin"), "Cos": _row(_ONE, "cos"),
        "Tanh": _row(_ONE, "tanh"),
        "TanhPrime": Name("a upstream dst?", lambda e, a, dy: e.F.tanh_backward(dy, e.F.tanh(a)), "`F.tanh_backward`"),
        "Pow": _row("base exponent dst?", "pow"),
        "Zero": Name("a", lambda e, a: filled(e, a, 0), "zeros in place"),
        "Zeros": Name("a shape*?", _zeros, "zeros in place", _NEW),
        "Copy": Name("dst src", _copied, "`F.copy(src, out=dst)`"),
        "Gather": Name("params indices output?", _gathered, "`F.embedding(indices, params)`",
            "`output` may be left out; indices of any rank"),
        "ScatterAdd": Name("dEmbeddingTable indices dOut", _scattered, "`F.index_add` in place"),
        "RandomUniform": Name("t minVal~ maxVal~", lambda e, a, low,
            high: e.F.uniform_(tensor(a), min(low, high), max(low, high)), "`F.uniform_`",
            "`bc.manual_seed` decides the numbers"),
        "Fill": Name("t value~", filled, "a number in place"),
        "MulScalar": _row("a scalar dst?", "mul"), "DivScalar": Name("a scalar dst?", _divided,
            "`F.div`; of integers towards zero"),
        "Softmax": Name("a axis$ dst?", _softmax, "`F.softmax`; 1 of rank 0"),
        "ReduceSum": Name(_SUM, _reduced("sum"), "`Sum`"), "ReduceMax": Name(_SUM, _reduced("amax"), "`F.amax`, as `Sum`"),
        "AddScalar": _row("a scalar dst?", "add"), "Sqrt": _row(_ONE, "sqrt"),
        "Split": Name("a numSplits# axis$", _split, "`F.split_copy`"),
        "Concat": _row("tensors& axis$ dst?", "cat"),
        "Repeat": Name("a axis$ repetitions# dst?", _tiled, "`F.repeat`: the whole again, as ztensor 0.2",
            "from ztensor 0.6.3 on this is `RepeatInterleave`"),
        "OneHot": Name("input depth# dst?", _one_hot, "`F.one_hot`, as f32 or dst's element"),
        "Reshape": Name("a shape* dst?", lambda e, a, shape: tensor(a).reshape(*shape), "`a.reshape(*shape)`"),
        "ReduceMean": Name(_SUM, _reduced("mean"), "`F.mean`, as `Sum`"), "Rsqrt": _row(_ONE, "rsqrt"),
        "HadamardTransform": Name(_ONE, _hadamard, "`F.matmul(a, HadamardMatrix(n))`"),
        # optional interfaces
        "FusedRMSNormGPU": Name("input weight epsilon~", fused.rms_norm, "`F.rms_norm_forward`", _ANY),
        "GPUFusedAddRMSNorm": Name("input residual weight eps~", fused.add_rms_norm, "`F.add_rms_norm_forward`"),
        "GPUFusedNormAdd": Name("input weight residual eps~", fused.norm_add, "`F.rms_norm_add`"),
        "GPUFusedQKNormRoPE": Name("input weightQ weightK cosAngles sinAngles eps~ totalHeads# headDim# numQHeads# halfRotary#",
            fused.qk_norm_rope, "`F.qk_norm_rope`"),
        "GPUFusedRoPE": Name("input cosAngles sinAngles rotaryDim#", fused.rope, "`F.rope`"),
        "GPUScaledSoftmax": Name("input scale axis$", lambda e, x, scale, axis: e.F.scaled_softmax(x, axis, scale),
            "`F.scaled_softmax`"),
        "GPUFusedSwiGLU": Name("w1 w3", "silu_mul"),
        "GPUFusedSoftmaxVMul": Name("scores V scale", fused.softmax_v, "`F.matmul(F.scaled_softmax(scores), V)`",
            "any number of queries"),
        "GPUFusedAdamW": Name("param grad beta1~ beta2~ eps~ lr~ weightDecay~ t#", fused.adamw,
            "`F.adamw_` and zeros into `grad`",
            "moments are f32 and go by the tensor, not by its address"),
        "GPUArgmax": Name("t", lambda e, t: int(e.F.argmax(t)), "`int(F.argmax(t))`"),
        "ConvertFP16ToF32": Name("t", lambda e, t: e.F.cast(t, "f32"), '`F.cast(t, "f32")`'),
        "MatMulTransposeB": Name(_TWO, lambda e, a, b, out=None: e.F.matmul(a, tensor(b).mT, out=out), "`F.matmul(a, b.mT)`"),
        "MatMulTransposeA": Name(_TWO, lambda e, a, b, out=None: e.F.matmul(tensor(a).mT, b, out=out), "`F.matmul(a.mT, b)`"),
        "Dropout": Name("a p~ seed# training! dst?", fused.dropout, "`F.dropout` of `bc.Generator(seed)`",
            "other numbers than ztensor's of a seed"),
        "DropoutBackward": Name("g p~ seed# training! dst?", fused.dropout_backward, "`F.dropout_backward`"),
        "PagedGQA": Name("Q blockPtrsK blockPtrsV blockIndices seqLen# blockSize# headDim# numQHeads# numKVHeads# batch#",
            fused.paged, "`F.paged_attention`",
            "blocks are one tensor [blocks, blockSize, numKVHeads, headDim] in the place of pointers"),
        "IsPagedGQASupported": Name("", lambda e: True, "True"),
        "UploadWeights": Name("tensors&", lambda e, tensors: e.upload_weights(tensors), "`engine.upload_weights`: copies",
            "gives copies; ztensor's tensors change where they are"),
        "ResetPool": Name("", _reset_pool, "`engine.arena.reset()`"),
        "Stream": Name("", _stream, "the handle of the device's default stream, where all functions run: 0; None on a cpu"),
        "GPUStream": Name("", _stream, "the same"),
        # GPUEngine and CPUEngine
        "Conv2dForward": Name("x w bias " + _CONV, fused.conv2d, "`F.conv2d`", _ANY),
        "Conv2dBackwardData": Name("w dy dxShape* " + _CONV, fused.conv2d_data, "`F.conv_transpose2d`"),
        "Conv2dBackwardFilter": Name("x dy dwShape* " + _CONV, fused.conv2d_filter, "`F.conv2d_backward`"),
        "BatchNormForwardInference": Name("x scale bias mean variance epsilon~", fused.batch_norm, "`F.batch_norm`"),
        "BatchNormForwardTraining": Name("x scale bias runningMean runningVariance epsilon~ expAvgFactor~",
            fused.batch_norm_training, "`F.native_batch_norm`"),
        "CudnnBatchNormBackward": Name("x dy scale saveMean saveInvVariance", fused.batch_norm_backward,
            "`F.batch_norm_backward`"),
        "CudnnActivationForward": Name("x mode", fused.activation, "`F.sigmoid`, `F.relu`, `F.tanh`", _MODE),
        "CudnnActivationBackward": Name("x y dy mode", fused.activation_backward, "their gradients", _MODE),
        "CudnnPoolingForward": Name("x " + _POOL, fused.pooling, "`F.max_pool2d`, `F.avg_pool2d`", _MODE),
        "CudnnPoolingBackward": Name("x y dy " + _POOL, fused.pooling_backward, "their gradients", _MODE),
        "CudnnSoftmaxForward": Name("x", lambda e, x: e.F.softmax(x, 1), "`F.softmax(x, 1)`"),
        "CosineSimilarity": Name(_TWO, fused.cosine_similarity, "`F.normalize(a) @ F.normalize(b).T`"),
        "RepeatInterleave": Name("a axis$ reps# dst?", lambda e, a, axis, n: e.F.repeat_interleave(a, n, axis),
            "`F.repeat_interleave`"),
        "SetDType": Name("d", _set_compute, '`bc.Engine(compute=d)`: "f32", "f16" or "bf16"', "no f8: weights of f8 need none"),
        "DTypeValue": Name("", lambda e: str(e.compute or Element.F32), "`engine.compute`, as text"),
        "IsManagedMemory": Name("", lambda e: not e.device.startswith("cuda"), "whether the host reads the tensors' memory",
            "no memory of cuda is managed"),
        "ArenaUsedBytes": Name("", lambda e: e.stats().arena_used, "`engine.stats().arena_used`"),
        "ArenaPinnedBytes": Name("", lambda e: e.arena.pinned_bytes if e.arena else 0, "`engine.arena.pinned_bytes`",
            "without the most that was pinned"),
        "SetArenaResetFloor": Name("floor#", _floor, "`engine.arena.set_floor(floor)`"),
        "MarkStepBoundary": Name("", _floor, "`engine.arena.set_floor()`"),
        "BeginStep": Name("", StepScope, "`engine.step()`, entered; its `Close()` leaves it"),
        "OOMFallbackCount": Name("", lambda e: e.fallbacks, "`engine.fallbacks`"),
        "SetMemoryLimit": Name("bytes#", _set_limit, "`engine.memory.limit = bytes`; 0 for none",
            "of what is alive, not of all that ever was"),
        "MemoryTracker": Name("", lambda e: MemoryTracker(tracker=e.memory), "`engine.memory`, by its names below"),
        "Sync": Name("", lambda e: e.sync(), "`engine.sync()`"), "DeviceID": Name("", lambda e: e.device, "`engine.device`",
            "a text"),
        "Close": Name("", _closed, "`engine.close()`", "says what is alive"),
        # free functions
        "FusedRMSNorm": Name("input weight epsilon~", fused.rms_norm, "`F.rms_norm_forward`", _ANY),
        "FusedRoPE": Name("input cosAngles sinAngles rotaryDim#", fused.rope, "`F.rope`", _ANY),
        "FusedSiLUGate": Name("gate up", "silu_mul"),
        "FlashDecode": Name("Q K V O batch# numQHeads# numKVHeads# kvLen# headDim#", fused.flash_decode,
            "`F.scaled_dot_product_attention` into O"),
        "FlashDecodeSplitKV": Name("Q K V O batch# numQHeads# numKVHeads# kvLen# headDim# chunkSize#", lambda e,
            *args: fused.flash_decode(e, *args[:-1]), "the same", "the kernel splits as it likes"),
        "HadamardMatrix": Name("n#", _hadamard_matrix, "of +-1 / sqrt(n)"),
        "ComputeAmax": Name("ops t", fused.scalar(_amax), "`F.amax(F.abs(t))` as a number"),
        "ScaleForFP8": Name("ops t", _scale_for_fp8, "448 / ComputeAmax"),
    }  # fmt: skip
    absent: ClassVar[Mapping[str, str]] = {
        "BeginCapture": "bc.trace, or `with bc.Stream().capture()`", "EndCapture": "bc.trace, or `with bc.Stream().capture()`",
        "ReplayGraph": "bc.Graph.launch", "DestroyGraph": "a bc.Graph goes with its last name", "WithCapture": "bc.trace(fn)",
        "CaptureAllocCount": "a captured bc.Graph allocates nothing",
        "FusedEncoderAvailable": "bc.trace of the layer", "FusedEncoderForward": "bc.trace of the layer",
        "FusedEncoderBackward": "bc.vjp of the layer", "AllocDeviceFloat32": "bc.empty((n,), device=...)",
        "CopyToDevice": "t.copy_from(source)", "UploadWeightsT": "UploadWeights, of any element",
        "SetMaxAllocBytes": "bc.Engine(memory_limit=...)", "MaxAllocBytes": "bc.Engine(memory_limit=...)",
        "SetLogger": 'logging.getLogger("baracuda.engine")', "SetCollector": "engine.add_hook",
        "TernaryGEMV": "F.quant_matmul of packed weights", "TernaryGEMVGPU": "F.quant_matmul of packed weights",
        "MatMulW4A16": "F.quant_matmul of packed weights", "TryW4A16MatMul": "F.quant_matmul of packed weights",
        "DequantW4ToFP16": "F.dequantize",
    }  # fmt: skip

    def _entered(self, name: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
        if args and isinstance(args[0], Context):
            args[0].check(f"{self.system}.{name}")
            return args[1:]
        return args
