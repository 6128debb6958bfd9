"""tang's ComputeDevice and ComputeBuffer: buffers are tensors, flat ones or of the shape that the argument list gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from baracuda.describe.errors import InvalidProblemError, shown
from baracuda.engine.names import Name, Named, axis_of, elementwise, filled, sized, tensor
from baracuda.memory.device import Device

if TYPE_CHECKING:
    from baracuda.engine.engine import Engine


def _added(e: Engine, dst: Any, src: Any) -> Any:
    """In place."""
    target = tensor(dst)
    e.F.add(target, tensor(src).reshape(*target.shape), out=target)
    return dst


def _bias_add(e: Engine, matrix: Any, bias: Any, numel: int, dim: int) -> Any:
    if dim < 1 or numel % dim:
        raise InvalidProblemError(f"dim: got {dim}, want a divisor of numel, {numel}.")
    return e.F.add(sized("matrix", matrix, numel // dim, dim), sized("bias", bias, dim))


def _scaled(e: Engine, buf: Any, scale: float) -> Any:
    target = tensor(buf)
    e.F.mul(target, scale, out=target)
    return buf


def _copied(e: Engine, dst: Any, src: Any) -> Any:
    e.F.copy(src, out=dst)


def _host(data: Any, element: str) -> Any:
    """An array, or a list of numbers as one."""
    if not isinstance(data, (list, tuple)):
        return data
    try:
        return np.asarray(data, {"f32": np.float32, "u32": np.uint32}[element])
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidProblemError(
            f"data: got {shown(data)}, want an array, or a list of numbers of {element}."
        ) from error


def _upload(element: str) -> Callable[..., Any]:
    return lambda e, data: e.upload(_host(data, element), element)


def _uploaded(e: Engine, buf: Any, data: Any, element: str) -> Any:
    target = tensor(buf)
    if str(target.element) != element:
        raise InvalidProblemError(f"buf: got {target.element}, want {element}.")
    target.copy_from(e.upload(sized("data", _host(data, element), *target.shape), element))
    return buf


def _columns(buf: Any, batch: int, total_cols: int, col_start: int, col_count: int) -> Any:
    if not 0 <= col_start <= col_start + col_count <= total_cols:
        raise InvalidProblemError(
            f"col_start: got columns {col_start} to {col_start + col_count}, want some of {total_cols}."
        )
    return sized("buf", buf, batch, total_cols)[:, col_start : col_start + col_count]


def _range(name: str, buf: Any, offset: int, length: int) -> Any:
    flat = tensor(buf).reshape(-1)
    if not 0 <= offset <= offset + length <= flat.numel:
        raise InvalidProblemError(
            f"offset: got elements {offset} to {offset + length}, want some of {name}'s {flat.numel}."
        )
    return flat[offset : offset + length]


# --- norms and products ---------------------------------------------------------------------------------------------


def _product(a_shape: Callable[..., Any], b_shape: Callable[..., Any]) -> Callable[..., Any]:
    """A product of buffers: what they are reshaped to, and turned to [m, k] and [k, n]."""

    def run(e: Engine, a: Any, b: Any, m: int, k: int, n: int) -> Any:
        return e.F.matmul(a_shape(a, m, k), b_shape(b, k, n))

    return run


def _more(product: Callable[..., Any]) -> Callable[..., Any]:
    """The same, added to a buffer."""

    def run(e: Engine, a: Any, b: Any, c: Any, m: int, k: int, n: int) -> Any:
        return _added(e, c, product(e, a, b, m, k, n))

    return run


def _plain(x: Any, rows: int, cols: int) -> Any:
    return sized("buf", x, rows, cols)


def _turned(x: Any, rows: int, cols: int) -> Any:
    return sized("buf", x, cols, rows).T


_matmul, _matmul_bt, _matmul_at = _product(_plain, _plain), _product(_plain, _turned), _product(_turned, _plain)


def _rms_norm(e: Engine, data: Any, weight: Any, n_groups: int, dim: int, eps: float) -> Any:
    return e.F.rms_norm(sized("data", data, n_groups, dim), (dim,), sized("weight", weight, dim), eps)


def _rms_norm_residual(e: Engine, input: Any, residual: Any, weight: Any, n_groups: int, dim: int, eps: float) -> Any:
    x, more = sized("input", input, n_groups, dim), sized("residual", residual, n_groups, dim)
    return e.F.add_rms_norm(x, more, (dim,), sized("weight", weight, dim), eps)


def _rms_norm_backward(
    e: Engine, input: Any, weight: Any, grad_output: Any, n_groups: int, dim: int, eps: float
) -> Any:
    x, dy = sized("input", input, n_groups, dim), sized("grad_output", grad_output, n_groups, dim)
    return e.F.rms_norm_backward(dy, x, (dim,), sized("weight", weight, dim), eps)


def _rms_norm_backward_accumulate(e: Engine, *args: Any) -> Any:
    *given, grad_weight_acc = args
    dx, dw = _rms_norm_backward(e, *given)
    _added(e, grad_weight_acc, dw)
    return dx


def _rms_norm_backward_residual(
    e: Engine, input: Any, weight: Any, grad_output: Any, residual_grad: Any, n_groups: int, *rest: Any
) -> Any:
    dx = _rms_norm_backward_accumulate(e, input, weight, grad_output, n_groups, *rest)
    return e.F.add(dx, sized("residual_grad", residual_grad, *dx.shape))


# --- attention ------------------------------------------------------------------------------------------------------


def _heads(name: str, x: Any, batch: int, length: int, heads: int, width: int) -> Any:
    """[batch * length, heads * width] as [batch, heads, length, width]."""
    return sized(name, x, batch, length, heads, width).permute(0, 2, 1, 3)


def _rows(e: Engine, y: Any) -> Any:
    """The other way."""
    batch, heads, length, width = y.shape
    return e.F.copy(y.permute(0, 2, 1, 3)).reshape(batch * length, heads * width)


def _attention(
    e: Engine, q: Any, k: Any, v: Any, seq_len: int, batch_size: int, n_heads: int, n_kv_heads: int, head_dim: int
) -> Any:
    sizes = batch_size, seq_len
    query = _heads("q", q, *sizes, n_heads, head_dim)
    key, value = (_heads(n, x, *sizes, n_kv_heads, head_dim) for n, x in (("k", k), ("v", v)))
    return _rows(
        e, e.F.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=n_heads != n_kv_heads)
    )


def _attention_backward(
    e: Engine, grad_output: Any, q: Any, k: Any, v: Any, seq_len: int, batch_size: int, n_heads: int, *rest: int
) -> Any:
    n_kv_heads, head_dim = rest
    sizes = batch_size, seq_len
    dy, query = (_heads(n, x, *sizes, n_heads, head_dim) for n, x in (("grad_output", grad_output), ("q", q)))
    key, value = (_heads(n, x, *sizes, n_kv_heads, head_dim) for n, x in (("k", k), ("v", v)))
    how = {"is_causal": True, "enable_gqa": n_heads != n_kv_heads}
    y, lse = e.F.scaled_dot_product_attention_forward(query, key, value, **how)[:2]
    found = e.F.scaled_dot_product_attention_backward(dy, query, key, value, y, lse, **how)
    return tuple(_rows(e, g) for g in found[:3])


def _kv_attention(
    e: Engine,
    q: Any,
    k_cache: Any,
    v_cache: Any,
    cache_start: int,
    q_len: int,
    n_heads: int,
    n_kv_heads: int,
    *rest: int,
) -> Any:
    """Row i of q attends to the rows 0 to cache_start + i of the caches, which may have more."""
    (head_dim,) = rest
    length = cache_start + q_len
    caches = []
    for name, x in (("k_cache", k_cache), ("v_cache", v_cache)):
        used = _range(name, x, 0, length * n_kv_heads * head_dim)
        caches.append(_heads(name, used, 1, length, n_kv_heads, head_dim))
    y = e.F.scaled_dot_product_attention(
        _heads("q", q, 1, q_len, n_heads, head_dim), *caches, is_causal=True, causal_alignment="bottom_right",
        enable_gqa=n_heads != n_kv_heads,
    )  # fmt: skip
    return _rows(e, y)


def _rope(backward: bool) -> Callable[..., Any]:
    """Pairs (2i, 2i + 1) of each head, turned by the angles of `start_pos` and the positions after it."""

    def run(
        e: Engine,
        x: Any,
        cos: Any,
        sin: Any,
        total_rows: int,
        seq_len: int,
        n_heads: int,
        head_dim: int,
        start_pos: int,
    ) -> Any:
        if seq_len < 1 or total_rows % seq_len:
            raise InvalidProblemError(f"total_rows: got {total_rows}, want a multiple of seq_len, {seq_len}.")
        batch = total_rows // seq_len
        tables = (tensor(t).reshape(-1, head_dim // 2) for t in (cos, sin))
        fn = e.F.rope_backward if backward else e.F.rope
        return _rows(e, fn(_heads("input", x, batch, seq_len, n_heads, head_dim), *tables, start_pos, interleaved=True))

    return run


def _one(batched: Callable[..., Any], at: int) -> Callable[..., Any]:
    """A function of batches for one: `at` is where its size stands."""
    return lambda e, *args: batched(e, *args[:at], 1, *args[at:])


def _one_sequence(backward: bool) -> Callable[..., Any]:
    rope = _rope(backward)
    return lambda e, x, cos, sin, seq_len, *rest: rope(e, x, cos, sin, seq_len, seq_len, *rest)


# --- losses and steps -----------------------------------------------------------------------------------------------


def _cross_entropy(e: Engine, logits: Any, targets: Any, n_positions: int, vocab_size: int, pad_id: int) -> Any:
    """The mean loss as a number, and its gradient; 0 where every target is `pad_id`."""
    given = e.F.cast(sized("targets", targets, n_positions), "i64")
    loss, grad = e.F.cross_entropy_fused(sized("logits", logits, n_positions, vocab_size), given, pad_id)
    if bool(e.F.all(e.F.eq(given, pad_id))):
        return 0.0, filled(e, grad, 0)
    return float(loss), grad


def _sum(e: Engine, data: Any, shape: tuple[int, ...], axis: int) -> Any:
    return e.F.sum(sized("data", data, *shape), axis_of("reduce_sum", axis, len(shape)))


def _sum_of_squares(e: Engine, bufs: Any) -> Any:
    squares = [e.F.sum(e.F.square(tensor(x).reshape(-1))).reshape(1) for x in bufs]
    return e.F.sum(e.F.cat(squares)).reshape(1) if squares else e.F.zeros((1,))


def _noise(e: Engine, buf: Any, epsilon: float, seed: int, rows: int, cols: int) -> Any:
    from baracuda.memory.generator import Generator

    target = sized("buf", buf, rows, cols)
    norms = e.F.vector_norm(target, 2, 1, True)
    drawn = e.F.randn(rows, cols, generator=Generator(seed))
    e.F.add(target, e.F.mul(drawn, norms), alpha=epsilon, out=target)
    return buf


def _swiglu_backward(e: Engine, grad: Any, gate: Any, up: Any, numel: int) -> Any:
    return e.F.silu_mul_backward(sized("grad", grad, numel), sized("gate", gate, numel), sized("up", up, numel))


def _adamw(e: Engine, param: Any, grad: Any, m: Any, v: Any, *rest: Any) -> None:
    lr, beta1, beta2, eps, weight_decay, step_t = rest
    options = {"lr": lr, "beta1": beta1, "beta2": beta2, "eps": eps, "weight_decay": weight_decay}
    e.F.adamw_([param], [grad], [m], [v], step=step_t, **options)


def _free_bytes(e: Engine) -> int:
    return 0 if e.memory.limit is None else e.memory.limit - e.memory.allocated


def _dialect(e: Engine) -> str:
    backend = e.device.partition(":")[0]
    return "c" if backend == "cpu" else backend


_ATTENTION = "q k v seq_len# n_heads# n_kv_heads# head_dim#"
_BATCHED = "q k v seq_len# batch_size# n_heads# n_kv_heads# head_dim#"
_ROPE = "cos_table sin_table seq_len# n_heads# head_dim# start_pos#"
_ROPE_ROWS = "total_rows# seq_len# n_heads# head_dim# start_pos#"
_CE = "logits targets n_positions# vocab_size# pad_id#"
_NORM = "n_groups# dim# eps~"
_UNINITIALIZED = "holds zeros, not anything"
_IDS = "ids of u32, i32 or i64; one outside of the table is an error"
_TARGETS = "targets of any integer element; one outside of the vocabulary is an error"


class Tang(Named):
    """tang's ComputeDevice and its buffers' own methods."""

    system = "engine.tang"
    names: ClassVar[Mapping[str, Name]] = {
        # ComputeBuffer
        "len": Name("buf", lambda e, x: tensor(x).numel, "`x.numel`"),
        "is_empty": Name("buf", lambda e, x: tensor(x).numel == 0, "`x.numel == 0`"),
        "to_vec": Name("buf", lambda e, x: e.download(tensor(x)).reshape(-1).tolist(), "its numbers as a flat list"),
        # ComputeDevice
        "dialect": Name("", _dialect, 'what `expr`\'s `source(dialect=...)` takes: "c", "cuda" or "metal"', "a text, no enum"),
        "total_memory_bytes": Name("", lambda e: Device(e.device).memory, "`bc.Device(...).memory`"),
        "free_memory_bytes": Name("", _free_bytes, "what the engine's limit leaves",
            "of the limit; 0 without one, as tang has it where it does not know"),
        "pool_clear": Name("", lambda e: e.arena and e.arena.reset() and None, "`engine.arena.reset()`"),
        "peak_flops_f32": Name("", lambda e: None, "None: not known", "never known"),
        "upload": Name("data", _upload("f32"), "`engine.upload(data, \"f32\")`"),
        "upload_f32": Name("data", _upload("f32"), "the same"),
        "upload_u32": Name("data", _upload("u32"), "`engine.upload(data, \"u32\")`",
            "has the element u32; tang keeps the bits in a buffer of f32"),
        "alloc": Name("len#", lambda e, n: e.F.zeros((n,)), "`F.zeros`", _UNINITIALIZED),
        "alloc_f32": Name("len#", lambda e, n: e.F.zeros((n,)), "the same"),
        "alloc_uninit": Name("len#", lambda e, n: e.F.zeros((n,)), "the same", _UNINITIALIZED),
        "alloc_uninit_f32": Name("len#", lambda e, n: e.F.zeros((n,)), "the same", _UNINITIALIZED),
        "download": Name("buf", lambda e, x: e.download(tensor(x)), "`engine.download`: a NumPy array",
            "on a cpu the array shares the tensor's memory"),
        "upload_into_f32": Name("buf data", lambda e, x, data: _uploaded(e, x, data, "f32"), "`t.copy_from`"),
        "upload_into_u32": Name("buf data", lambda e, x, data: _uploaded(e, x, data, "u32"), "`t.copy_from`"),
        "elementwise": Name("inputs& numel# f", elementwise, "[`bc.expr.fuse`](expr.md)",
            "the functions of `bc.functional` and operators, each as itself: none is lowered to others"),
        "matmul": Name("a b m# k# n#", _matmul, "`F.matmul`"),
        "matmul_b_transposed": Name("a b m# k# n#", _matmul_bt, "`F.matmul(a, b.T)`"),
        "matmul_a_transposed": Name("a b m# k# n#", _matmul_at, "`F.matmul(a.T, b)`"),
        "matmul_accumulate": Name("a b c m# k# n#", _more(_matmul), "`c += matmul`"),
        "matmul_accumulate_a_transposed": Name("a b c m# k# n#", _more(_matmul_at), "`c += matmul_a_transposed`"),
        "softmax": Name("data n_rows# row_len#", lambda e, x, rows, n: e.F.softmax(sized("data", x, rows, n), 1), "`F.softmax`"),
        "softmax_backward": Name(
            "softmax_out grad_output n_rows# row_len#",
            lambda e, y, dy, rows, n: e.F.softmax_backward(sized("grad_output", dy, rows, n), sized("softmax_out", y, rows, n), 1),
            "`F.softmax_backward`, which has them the other way round"),
        "rms_norm": Name("data weight " + _NORM, _rms_norm, "`F.rms_norm`"),
        "rms_norm_residual": Name("input residual weight " + _NORM, _rms_norm_residual, "`F.add_rms_norm`"),
        "rms_norm_backward": Name("input weight grad_output " + _NORM, _rms_norm_backward, "`F.rms_norm_backward`"),
        "rms_norm_backward_accumulate": Name(f"input weight grad_output {_NORM} grad_weight_acc",
            _rms_norm_backward_accumulate, "the same; the weight's gradient is added"),
        "rms_norm_backward_residual_accumulate": Name(f"input weight grad_output residual_grad {_NORM} grad_weight_acc",
            _rms_norm_backward_residual, "the same, and `residual_grad` added to the input's"),
        "embedding": Name(
            "weight ids seq_len# dim#",
            lambda e, w, ids, n, dim: e.F.embedding(sized("ids", ids, n), tensor(w).reshape(-1, dim)), "`F.embedding`", _IDS),
        "embedding_backward": Name(
            "grad_output ids vocab_size# seq_len# dim#",
            lambda e, dy, ids, vocab, n, dim: e.F.embedding_backward(sized("grad_output", dy, n, dim), sized("ids", ids, n), vocab),
            "`F.embedding_backward`", _IDS),
        "reduce_sum": Name("data shape* axis$", lambda e, x, shape, axis: _sum(e, x, shape, axis), "`F.sum`"),
        "reduce_sum_accumulate": Name("data shape* axis$ dst", lambda e, x, shape, axis,
            out: _added(e, out, _sum(e, x, shape, axis)), "`dst += reduce_sum`"),
        "transpose_2d": Name("buf rows# cols#", lambda e, x, rows, cols: e.F.copy(sized("buf", x, rows, cols).T),
            "`F.copy(x.T)`"),
        "causal_attention": Name(_ATTENTION, _one(_attention, 4), "`F.scaled_dot_product_attention`"),
        "causal_attention_backward": Name("grad_output " + _ATTENTION, _one(_attention_backward, 5), "its gradients"),
        "causal_attention_backward_with_output": Name(
            "grad_output q k v output seq_len# n_heads# n_kv_heads# head_dim#",
            lambda e, dy, q, k, v, output, seq_len, *rest: _attention_backward(e, dy, q, k, v, seq_len, 1, *rest), "the same"),
        "batched_causal_attention": Name(_BATCHED, _attention, "`F.scaled_dot_product_attention`"),
        "batched_causal_attention_backward": Name(
            "grad_output q k v output seq_len# batch_size# n_heads# n_kv_heads# head_dim#",
            lambda e, dy, q, k, v, output, *rest: _attention_backward(e, dy, q, k, v, *rest), "its gradients"),
        "kv_attention": Name("q k_cache v_cache cache_start# q_len# n_heads# n_kv_heads# head_dim#", _kv_attention,
            "the same, aligned at the last key", "caches may have more rows than are used"),
        "rope_forward": Name("input " + _ROPE, _one_sequence(False), "`F.rope`, interleaved"),
        "rope_forward_cached": Name("input cos_buf sin_buf seq_len# n_heads# head_dim# start_pos#", _one_sequence(False),
            "the same"),
        "rope_backward": Name("grad_output " + _ROPE, _one_sequence(True), "`F.rope_backward`"),
        "rope_backward_batched": Name("grad_output cos_table sin_table " + _ROPE_ROWS, _rope(True), "the same"),
        "rope_backward_batched_cached": Name("grad_output cos_buf sin_buf " + _ROPE_ROWS, _rope(True), "the same"),
        "cross_entropy_forward_backward": Name(_CE, _cross_entropy,
            "`F.cross_entropy_fused`: the loss as a number, and the gradient", _TARGETS),
        "cross_entropy_forward_backward_counted": Name(_CE + " non_pad_count#", lambda e,
            *args: _cross_entropy(e, *args[:-1]), "the same", "counts itself"),
        "sync": Name("", lambda e: e.sync(), "`engine.sync()`"),
        "copy_buffer": Name("src", lambda e, src: e.F.copy(src), "`F.copy`"),
        "bias_add": Name(
            "matrix bias numel# dim#",
            _bias_add, "`F.add`"),
        "add_assign": Name("dst src", _added, "`F.add(dst, src, out=dst)`"),
        "zero_buffer": Name("buf", lambda e, x: filled(e, x, 0), "zeros in place"),
        "add_tensors_buf": Name("a b numel#", lambda e, a, b, n: e.F.add(sized("a", a, n), sized("b", b, n)), "`F.add`"),
        "swiglu_fused_buf": Name("gate up numel#", lambda e, a, b, n: e.F.silu_mul(sized("gate", a, n), sized("up", b, n)),
            "`F.silu_mul`"),
        "swiglu_backward_buf": Name("grad gate up numel#", _swiglu_backward, "`F.silu_mul_backward`"),
        "extract_columns": Name("buf batch# total_cols# col_start# col_count#", lambda e, *args: e.F.copy(_columns(*args)),
            "a slice, copied"),
        "concat_columns": Name(
            "dst src batch# total_cols# col_start# col_count#",
            lambda e, dst, src, batch, *rest: _copied(e, _columns(dst, batch, *rest), sized("src", src, batch, rest[-1])),
            "`F.copy` into a slice"),
        "slice_buffer": Name("buf offset# len#", lambda e, x, offset, n: e.F.copy(_range("buf", x, offset, n)),
            "a slice, copied"),
        "write_into": Name("dst offset# src", lambda e, dst, offset,
            src: _copied(e, _range("dst", dst, offset, tensor(src).numel), tensor(src).reshape(-1)),
            "`F.copy` into a slice"),
        "scale_buffer": Name("buf scale~", _scaled, "`F.mul(buf, scale, out=buf)`"),
        "reduce_sum_sq_accumulate": Name("src acc", lambda e, src, acc: _added(e, acc, _sum_of_squares(e, [src])),
            "the sum of squares, added"),
        "fused_sum_sq": Name("bufs&", _sum_of_squares, "that of all of them"),
        "clip_grad_norm": Name("bufs& max_norm~", lambda e, bufs, most: float(e.F.clip_grad_norm_(bufs, most)),
            "`F.clip_grad_norm_`"),
        "add_norm_relative_noise": Name("buf epsilon~ seed# rows# cols#", _noise, "`buf += epsilon * norms of rows * F.randn`",
            "numbers of `bc.Generator(seed)`"),
        "adamw_step": Name("param grad m v lr~ beta1~ beta2~ eps~ weight_decay~ step_t#", _adamw, "`F.adamw_`"),
    }  # fmt: skip
