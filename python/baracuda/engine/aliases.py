"""What other systems call things: tables of names, each with the function of bc.functional or the few lines that it is.

Sources: ztensor's Engine interface with its optional ones, and tang's ComputeDevice. Deliberate differences: all elements
and any strides, checks with reasons, seeded random numbers, no copy through the host.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from baracuda import _core
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError, suggestion

if TYPE_CHECKING:
    from baracuda.engine.engine import Engine

Alias = str | Callable[..., Any]  # a function's name in bc.functional, or what takes the engine and the arguments


class Named:
    """An engine by the names of another system."""

    system: ClassVar[str]
    names: ClassVar[Mapping[str, Alias]]

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __getattr__(self, name: str) -> Callable[..., Any]:
        found = self.names.get(name)
        if found is None:
            hint = suggestion(name, list(self.names))
            raise AttributeError(f"engine.{self.system}: got {name!r}, want one of its names{hint}")
        if isinstance(found, str):
            return getattr(self._engine.F, found)  # type: ignore[no-any-return]
        engine, fn = self._engine, found
        return lambda *args, **kwargs: fn(engine, *args, **kwargs)

    def __dir__(self) -> list[str]:
        return sorted(self.names)


def _tensor(x: Any) -> Any:
    return x if isinstance(x, _core.Tensor) else _core.borrow(x)


def _same(dst: Any, src: Any, what: str) -> Any:
    if tuple(dst.shape) != tuple(src.shape):
        raise InvalidProblemError(f"{what}: got shapes {tuple(dst.shape)} and {tuple(src.shape)}, want the same.")
    return dst


# --- ztensor --------------------------------------------------------------------------------------------------------


def _divided(e: Engine, a: Any, b: Any) -> Any:
    """Of integers the quotient towards zero; a zero there is an error."""
    whole = Element.coerce(_tensor(a).element).is_integer
    return e.F.div(a, b, rounding_mode="trunc") if whole else e.F.div(a, b)


def _reduced(name: str) -> Alias:
    """An axis below 0 is all of them, of which one element is left."""

    def run(e: Engine, a: Any, axis: int, keep_dims: bool = False) -> Any:
        fn = getattr(e.F, name)
        if axis >= 0:
            return fn(a, axis, keep_dims)
        whole = fn(a, tuple(range(_tensor(a).ndim)), keep_dims)
        return whole if keep_dims else whole.reshape(1)

    return run


def _split(e: Engine, a: Any, n: int, axis: int) -> Any:
    size = _tensor(a).shape[axis]
    if n < 1 or size % n:
        raise InvalidProblemError(f"Split: got {n} parts of {size}, want equal ones.")
    return e.F.split_copy(a, size // n, axis)


def _tiled(e: Engine, a: Any, axis: int, n: int) -> Any:
    """The whole again along the axis; RepeatInterleave is each element again."""
    counts = [1] * _tensor(a).ndim
    counts[axis] = n
    return e.F.repeat(a, counts)


def _filled(e: Engine, a: Any, value: Any) -> Any:
    """In place."""
    from baracuda.choose.plan import plan
    from baracuda.ops.layout.layout import FillDescriptor

    target = _tensor(a)
    plan(FillDescriptor(target.shape, target.element), e.device).run(value=value, y=target)
    return a


def _zeros(e: Engine, a: Any, shape: Any = None) -> Any:
    return _filled(e, a, 0) if shape is None else e.F.zeros(tuple(shape), dtype=_tensor(a).element)


def _uniform(e: Engine, a: Any, low: float, high: float) -> Any:
    return e.F.uniform_(_tensor(a), min(low, high), max(low, high))


def _scattered(e: Engine, table: Any, indices: Any, rows: Any) -> Any:
    """Adds rows to the table's, in place."""
    at, width = _tensor(indices), _tensor(table).shape[1]
    target = _tensor(table)
    e.F.index_add(target, 0, at.reshape(-1), _tensor(rows).reshape(-1, width), out=target)
    return table


def _softmax(e: Engine, a: Any, axis: int) -> Any:
    return e.F.softmax(a, axis) if _tensor(a).ndim else e.F.ones_like(a)


def _one_hot(e: Engine, indices: Any, depth: int) -> Any:
    return e.F.cast(e.F.one_hot(e.F.cast(indices, "i64"), depth), "f32")


def _hadamard_matrix(e: Engine, n: int) -> Any:
    if n < 1 or n & (n - 1) or n > 512:
        raise InvalidProblemError(f"HadamardMatrix: got {n}, want a power of two of at most 512.")
    bits = np.arange(n)
    odd = np.array([[(i & j).bit_count() & 1 for j in range(n)] for i in bits.tolist()])
    return e.upload((np.where(odd, -1.0, 1.0) / np.sqrt(n)).astype(np.float32))


def _rope(e: Engine, x: Any, cos: Any, sin: Any, rotary_dim: int) -> Any:
    """Of [batch, length, width]: halves of the first `rotary_dim` turned, the rest as it is."""
    seen = _tensor(x)
    return e.F.rope(seen.unsqueeze(1), cos, sin, rotary_dim=rotary_dim).squeeze(1)


def _fused_rms_norm(e: Engine, x: Any, weight: Any, eps: float = 1e-6) -> Any:
    y, scales = e.F.rms_norm_forward(x, _tensor(weight).shape, weight, eps)
    return y, scales.reshape(*_tensor(x).shape[:-1], 1)


def _fused_add_rms_norm(e: Engine, x: Any, residual: Any, weight: Any, eps: float = 1e-6) -> Any:
    y, total, scales = e.F.add_rms_norm_forward(x, residual, _tensor(weight).shape, weight, eps)
    return y, total, scales.reshape(*_tensor(x).shape[:-1], 1)


def _norm_add(e: Engine, x: Any, weight: Any, residual: Any, eps: float = 1e-6) -> Any:
    return e.F.rms_norm_add(x, residual, _tensor(weight).shape, weight, eps)


def _map(e: Engine, x: Any, fn: Callable[..., Any]) -> Any:
    return elementwise(e, [x], None, fn)


def elementwise(e: Engine, inputs: Any, numel: int | None, fn: Callable[..., Any]) -> Any:
    """One kernel of an expression of all inputs, see bc.expr.fuse."""
    from baracuda.expr import fuse

    if numel is not None and any(_tensor(x).numel != numel for x in inputs):
        raise InvalidProblemError(
            f"elementwise: got inputs of {[_tensor(x).numel for x in inputs]}, want {numel} each."
        )
    with e:
        return fuse(fn)(*map(_tensor, inputs))


def _softmax_v(e: Engine, scores: Any, v: Any, scale: float = 1.0) -> Any:
    return e.F.matmul(e.F.scaled_softmax(scores, -1, scale), v)


def _reset_pool(e: Engine) -> int:
    return e.arena.reset() if e.arena else 0


class Ztensor(Named):
    """ztensor's Engine interface, its optional interfaces and its free functions."""

    system = "ztensor"
    names: ClassVar[Mapping[str, Alias]] = {
        "Add": "add", "Sub": "sub", "Mul": "mul", "Div": _divided, "Pow": "pow", "Exp": "exp", "Log": "log", "Sin": "sin",
        "Cos": "cos", "Tanh": "tanh", "Sqrt": "sqrt", "Rsqrt": "rsqrt", "MatMul": "matmul", "Concat": "cat",
        "UnaryOp": _map,
        "TanhPrime": lambda e, a, upstream: e.F.tanh_backward(upstream, e.F.tanh(a)),
        "Transpose": lambda e, a, axes=None: e.F.permute_copy(a, axes or tuple(range(_tensor(a).ndim))[::-1]),
        "Reshape": lambda e, a, shape: _tensor(a).reshape(*shape),
        "Split": _split, "Repeat": _tiled,
        "RepeatInterleave": lambda e, a, axis, n: e.F.repeat_interleave(a, n, axis),
        "Sum": _reduced("sum"), "ReduceSum": _reduced("sum"), "ReduceMean": _reduced("mean"), "ReduceMax": _reduced("amax"),
        "Zero": lambda e, a: _filled(e, a, 0), "Zeros": _zeros, "Fill": _filled,
        "Copy": lambda e, dst, src: e.F.copy(src, out=_same(_tensor(dst), _tensor(src), "Copy")),
        "RandomUniform": _uniform, "Gather": lambda e, table, indices: e.F.embedding(indices, table),
        "ScatterAdd": _scattered, "AddScalar": "add", "MulScalar": "mul", "DivScalar": _divided, "Softmax": _softmax,
        "OneHot": _one_hot,
        "HadamardMatrix": _hadamard_matrix,
        "HadamardTransform": lambda e, a: e.F.matmul(a, _hadamard_matrix(e, _tensor(a).shape[-1])),
        "FusedRMSNorm": _fused_rms_norm, "FusedRMSNormGPU": _fused_rms_norm, "FusedAddRMSNorm": _fused_add_rms_norm,
        "FusedNormAdd": _norm_add, "FusedRoPE": _rope, "FusedQKNormRoPE": "qk_norm_rope",
        "FusedSiLUGate": "silu_mul", "FusedSwiGLU": "silu_mul",
        "FusedScaledSoftmax": lambda e, x, scale, axis: e.F.scaled_softmax(x, axis, scale),
        "FusedSoftmaxVMul": _softmax_v, "PagedGQA": "paged_attention",
        "MatMulTransposeB": lambda e, a, b: e.F.matmul(a, _tensor(b).mT),
        "MatMulTransposeA": lambda e, a, b: e.F.matmul(_tensor(a).mT, b),
        "GPUArgmax": lambda e, a: int(e.F.argmax(a)), "ComputeAmax": lambda e, a: e.F.amax(e.F.abs(a)),
        "ConvertFP16ToF32": lambda e, a: e.F.cast(a, "f32"), "Dropout": "dropout",
        "CosineSimilarity": "cosine_similarity", "GPUFusedAdamW": "adamw_",
        "UploadWeights": lambda e, weights, element=None: e.upload_weights(weights, element),
        "ResetPool": _reset_pool, "MarkStepBoundary": _reset_pool,
        "ArenaUsedBytes": lambda e: e.stats().arena_used, "ArenaPinnedBytes": lambda e: e.arena.pinned_bytes if e.arena else 0,
        "SetArenaResetFloor": lambda e, at=None: e.arena.set_floor(at),
        "OOMFallbackCount": lambda e: e.fallbacks, "Sync": lambda e: e.sync(), "DeviceID": lambda e: e.device,
    }  # fmt: skip


# --- tang -----------------------------------------------------------------------------------------------------------


def _heads(x: Any, heads: int) -> Any:
    """[length, heads * width] as [1, heads, length, width]."""
    seen = _tensor(x)
    return seen.reshape(seen.shape[0], heads, -1).permute(1, 0, 2).unsqueeze(0)


def _rows(y: Any) -> Any:
    """The other way."""
    _, heads, length, width = y.shape
    return y.squeeze(0).permute(1, 0, 2).reshape(length, heads * width)


def _causal_attention(e: Engine, q: Any, k: Any, v: Any, heads: int, kv_heads: int | None = None) -> Any:
    of = kv_heads or heads
    y = e.F.scaled_dot_product_attention(
        _heads(q, heads), _heads(k, of), _heads(v, of), is_causal=True, enable_gqa=of != heads
    )
    return _rows(e.F.copy(y.permute(0, 2, 1, 3)).permute(0, 2, 1, 3))


def _kv_attention(
    e: Engine, q: Any, k_cache: Any, v_cache: Any, length: int, heads: int, kv_heads: int | None = None
) -> Any:
    """One token's queries [heads * width] over the first `length` rows of caches."""
    of = kv_heads or heads
    k, v = _tensor(k_cache)[:length], _tensor(v_cache)[:length]
    y = e.F.scaled_dot_product_attention(
        _tensor(q).reshape(1, heads, 1, -1), _heads(k, of), _heads(v, of), enable_gqa=of != heads
    )
    return y.reshape(-1)


def _causal_attention_backward(
    e: Engine, dy: Any, q: Any, k: Any, v: Any, heads: int, kv_heads: int | None = None
) -> Any:
    of = kv_heads or heads
    args = _heads(q, heads), _heads(k, of), _heads(v, of)
    options = {"is_causal": True, "enable_gqa": of != heads}
    y, lse = e.F.scaled_dot_product_attention_forward(*args, **options)[:2]
    found = e.F.scaled_dot_product_attention_backward(_heads(dy, heads), *args, y, lse, **options)
    return tuple(_rows(e.F.copy(g.permute(0, 2, 1, 3)).permute(0, 2, 1, 3)) for g in found[:3])


def _cross_entropy(e: Engine, logits: Any, targets: Any) -> Any:
    """The mean loss as a number, and its gradient."""
    loss = e.F.cross_entropy(logits, targets)
    return float(loss), e.F.cross_entropy_backward(e.F.ones_like(loss), logits, targets)


def _softmax_rows(e: Engine, x: Any, rows: int, length: int) -> Any:
    return e.F.softmax(_tensor(x).reshape(rows, length), 1)


def _matmul(e: Engine, a: Any, b: Any, m: int, k: int, n: int) -> Any:
    return e.F.matmul(_tensor(a).reshape(m, k), _tensor(b).reshape(k, n))


class Tang(Named):
    """tang's ComputeDevice: buffers are tensors, errors are errors."""

    system = "tang"
    names: ClassVar[Mapping[str, Alias]] = {
        "upload": lambda e, x: e.upload(x, "f32"), "upload_u32": lambda e, x: e.upload(x, "u32"),
        "alloc": lambda e, n: e.F.zeros((n,)), "download": lambda e, x: e.download(x), "to_vec": lambda e, x: x.tolist(),
        "sync": lambda e: e.sync(), "copy_buffer": lambda e, src: e.F.copy(src),
        "zero_buffer": lambda e, x: _filled(e, x, 0),
        "add_assign": lambda e, x, y: e.F.add(_tensor(x), y, out=_tensor(x)),
        "bias_add": "add", "elementwise": elementwise, "matmul": _matmul, "softmax": _softmax_rows,
        "rms_norm": lambda e, x, w, dim, eps=1e-6: e.F.rms_norm(_tensor(x).reshape(-1, dim), (dim,), w, eps),
        "rms_norm_backward": lambda e, dy, x, w, dim, eps=1e-6: e.F.rms_norm_backward(dy, x, (dim,), w, eps),
        "embedding": lambda e, ids, table: e.F.embedding(ids, table),
        "embedding_backward": lambda e, dy, ids, vocab: e.F.embedding_backward(dy, ids, vocab),
        "reduce_sum": lambda e, x, shape, axis: e.F.sum(_tensor(x).reshape(*shape), axis),
        "transpose_2d": lambda e, x, rows, cols: e.F.copy(_tensor(x).reshape(rows, cols).T),
        "softmax_backward": lambda e, dy, y: e.F.softmax_backward(dy, y, -1),
        "causal_attention": _causal_attention, "kv_attention": _kv_attention,
        "causal_attention_backward": _causal_attention_backward, "cross_entropy_forward_backward": _cross_entropy,
        "adamw_step": lambda e, w, g, m, v, **options: e.F.adamw_([w], [g], [m], [v], **options),
    }  # fmt: skip
