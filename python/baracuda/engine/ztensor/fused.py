"""What ztensor's fused and cuDNN names are, in functions of bc.functional."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from baracuda.describe.errors import InvalidProblemError, shown
from baracuda.engine.names import filled, sized, tensor
from baracuda.memory.generator import Generator

if TYPE_CHECKING:
    from baracuda.engine.engine import Engine

ACTIVATIONS = ("sigmoid", "relu", "tanh")  # in the order of ztensor's constants
# Of GPUFusedAdamW, by engine and parameter, which is kept so that no other one gets its id.
MOMENTS: WeakKeyDictionary[Engine, dict[int, tuple[Any, Any, Any]]] = WeakKeyDictionary()
POOLINGS = ("max", "average_include_pad", "average_exclude_pad")


def rope(e: Engine, x: Any, cos: Any, sin: Any, rotary_dim: int) -> Any:
    """Of [batch, length, width]: halves of the first `rotary_dim` turned, the rest as it is."""
    return e.F.rope(tensor(x).unsqueeze(1), cos, sin, rotary_dim=rotary_dim).squeeze(1)


def rms_norm(e: Engine, x: Any, weight: Any, epsilon: float) -> Any:
    """(output, scales)."""
    y, scales = e.F.rms_norm_forward(x, tensor(weight).shape, weight, epsilon)
    return y, scales.reshape(*tensor(x).shape[:-1], 1)


def add_rms_norm(e: Engine, x: Any, residual: Any, weight: Any, eps: float) -> Any:
    """(normed, sum, scales)."""
    y, total, scales = e.F.add_rms_norm_forward(x, residual, tensor(weight).shape, weight, eps)
    return y, total, scales.reshape(*tensor(x).shape[:-1], 1)


def norm_add(e: Engine, x: Any, weight: Any, residual: Any, eps: float) -> Any:
    """rms_norm(x) + residual."""
    return e.F.rms_norm_add(x, residual, tensor(weight).shape, weight, eps)


def qk_norm_rope(e: Engine, x: Any, weight_q: Any, weight_k: Any, cos: Any, sin: Any, eps: float, *sizes: int) -> Any:
    """Heads of queries, then those of keys, at one position."""
    heads, width, of_q, half = sizes
    if not 0 < of_q < heads:
        raise InvalidProblemError(f"numQHeads: got {of_q}, want 1 to {heads - 1} of {heads} heads.")
    rows = sized("input", x, 1, heads, 1, width)
    tables = (sized(n, t, 1, half) for n, t in (("cosAngles", cos), ("sinAngles", sin)))
    parts = e.F.qk_norm_rope(rows[:, :of_q], rows[:, of_q:], weight_q, weight_k, *tables, eps, rotary_dim=2 * half)
    return e.F.cat(list(parts), 1).reshape(heads, width)


def softmax_v(e: Engine, scores: Any, v: Any, scale: float) -> Any:
    """softmax(scores * scale) @ v."""
    return e.F.matmul(e.F.scaled_softmax(scores, -1, scale), v)


def paged(e: Engine, q: Any, k: Any, v: Any, indices: Any, *sizes: int) -> Any:
    """Blocks are [blocks, blockSize, numKVHeads, headDim]; one query of each sequence, all of one length."""
    length, block, width, heads, kv_heads, batch = sizes
    query = sized("Q", q, batch, 1, heads, width)
    pages = (tensor(x).reshape(-1, block, kv_heads, width) for x in (k, v))
    table = e.F.cast(tensor(indices).reshape(batch, -1), "i64")
    lengths = e.F.full((batch,), length, dtype="i64")
    y = e.F.paged_attention(query, *pages, table, lengths, enable_gqa=heads != kv_heads)
    return y.reshape(batch * heads, width)


def flash_decode(e: Engine, q: Any, k: Any, v: Any, o: Any, *sizes: int) -> Any:
    """One query of each head over all keys, into `o`."""
    batch, heads, kv_heads, length, width = sizes
    query = sized("Q", q, batch, heads, 1, width)
    kv = (sized(n, x, batch, length, kv_heads, width).permute(0, 2, 1, 3) for n, x in (("K", k), ("V", v)))
    y = e.F.scaled_dot_product_attention(query, *kv, enable_gqa=heads != kv_heads)
    e.F.copy(y.reshape(*tensor(o).shape), out=tensor(o))
    return o


def dropout(e: Engine, a: Any, p: float, seed: int, training: bool) -> Any:
    """By the stream of a seed, from its beginning."""
    return e.F.dropout(a, p, training, generator=Generator(seed)) if training else e.F.copy(a)


def dropout_backward(e: Engine, g: Any, p: float, seed: int, training: bool) -> Any:
    """By the same mask."""
    return e.F.dropout_backward(g, p, seed, 0) if training else e.F.copy(g)


def adamw(e: Engine, param: Any, grad: Any, beta1: float, beta2: float, *rest: Any) -> None:
    """Moments are the engine's; eps is added to the root that is not corrected; the gradient is zeroed."""
    eps, lr, weight_decay, t = rest
    if not (0 <= beta2 < 1 and t >= 1):
        raise InvalidProblemError(f"GPUFusedAdamW: got beta2 = {beta2} and t = {t}, want 0 <= beta2 < 1 and t >= 1.")
    moments = MOMENTS.setdefault(e, {})
    if id(param) not in moments:
        seen = tensor(param)
        element = "f64" if str(seen.element) == "f64" else "f32"
        m, v = (e.F.zeros(seen.shape, dtype=element) for _ in range(2))
        moments[id(param)] = param, m, v
    _, m, v = moments[id(param)]
    corrected = (1 - beta2**t) ** 0.5
    options = {"lr": lr, "beta1": beta1, "beta2": beta2, "eps": eps / corrected, "weight_decay": weight_decay}
    e.F.adamw_([param], [grad], [m], [v], step=t, **options)
    filled(e, grad, 0)


def cosine_similarity(e: Engine, a: Any, b: Any) -> Any:
    """Of each row of a with each row of b."""
    return e.F.matmul(e.F.normalize(a, 2.0, 1), e.F.normalize(b, 2.0, 1).T)


# --- cuDNN's --------------------------------------------------------------------------------------------------------


def _named(what: str, mode: Any, names: tuple[str, ...]) -> str:
    """A mode by name, or by the number that ztensor's constant has."""
    if isinstance(mode, int) and not isinstance(mode, bool) and 0 <= mode < len(names):
        return names[mode]
    if isinstance(mode, str) and mode in names:
        return mode
    raise InvalidProblemError(f"{what}: got {shown(mode)}, want one of {', '.join(names)}, or 0 to {len(names) - 1}.")


def _options(strides: Any, pads: Any, dilations: Any, groups: int) -> dict[str, Any]:
    if len(pads) != 4 or pads[:2] != pads[2:]:
        raise InvalidProblemError(f"pads: got {pads}, want [top, left, bottom, right] with equal sides: F.pad first.")
    for name, x in (("strides", strides), ("dilations", dilations)):
        if len(x) != 2:
            raise InvalidProblemError(f"{name}: got {x}, want two numbers.")
    return {"stride": strides, "padding": pads[:2], "dilation": dilations, "groups": groups}


def _four(name: str, shape: Any) -> Any:
    if len(shape) != 4:
        raise InvalidProblemError(f"{name}: got {tuple(shape)}, want four sizes.")
    return shape


def conv2d(e: Engine, x: Any, w: Any, bias: Any, *how: Any) -> Any:
    """conv2d."""
    return e.F.conv2d(x, w, bias, **_options(*how))


def conv2d_data(e: Engine, w: Any, dy: Any, shape: Any, *how: Any) -> Any:
    """The gradient of the input: a transposed convolution."""
    options, given = _options(*how), {"w": tensor(w).shape, "dxShape": shape, "dy": tensor(dy).shape}
    kernel, size, out = (_four(name, x)[2:] for name, x in given.items())
    rest = [
        n - ((o - 1) * s - 2 * p + d * (k - 1) + 1)
        for n, o, s, p, d, k in zip(
            size, out, options["stride"], options["padding"], options["dilation"], kernel, strict=True
        )
    ]
    return e.F.conv_transpose2d(dy, w, output_padding=tuple(rest), **options)


def conv2d_filter(e: Engine, x: Any, dy: Any, shape: Any, *how: Any) -> Any:
    """The gradient of the weight."""
    return e.F.conv2d_backward(dy, x, e.F.zeros(_four("dwShape", shape), dtype=tensor(x).element), **_options(*how))[1]


def batch_norm(e: Engine, x: Any, scale: Any, bias: Any, mean: Any, variance: Any, epsilon: float) -> Any:
    """By given statistics."""
    return e.F.batch_norm(x, mean, variance, scale, bias, False, 0.0, epsilon)


def batch_norm_training(e: Engine, x: Any, scale: Any, bias: Any, mean: Any, variance: Any, *rest: float) -> Any:
    """(y, saveMean, saveInvVariance); running statistics change in place."""
    epsilon, factor = rest
    return e.F.native_batch_norm(x, scale, bias, mean, variance, True, factor, epsilon)


def batch_norm_backward(e: Engine, x: Any, dy: Any, scale: Any, mean: Any, rstd: Any) -> Any:
    """(dx, dScale, dBias)."""
    return e.F.batch_norm_backward(dy, x, scale, mean, rstd, True, True)


def activation(e: Engine, x: Any, mode: Any) -> Any:
    """By name or number."""
    return getattr(e.F, _named("mode", mode, ACTIVATIONS))(x)


def activation_backward(e: Engine, x: Any, y: Any, dy: Any, mode: Any) -> Any:
    """From the result."""
    return getattr(e.F, _named("mode", mode, ACTIVATIONS) + "_backward")(dy, y)


def _window(how: tuple[int, ...]) -> tuple[Any, Any, Any]:
    rows, cols, pad_rows, pad_cols, stride_rows, stride_cols = how
    return (rows, cols), (stride_rows, stride_cols), (pad_rows, pad_cols)


def pooling(e: Engine, x: Any, mode: Any, *how: int) -> Any:
    """Largest elements, or means with or without the padding."""
    name = _named("mode", mode, POOLINGS)
    if name == "max":
        return e.F.max_pool2d(x, *_window(how))
    return e.F.avg_pool2d(x, *_window(how), count_include_pad=name == POOLINGS[1])


def pooling_backward(e: Engine, x: Any, y: Any, dy: Any, mode: Any, *how: int) -> Any:
    """Its gradient; where the largest elements are is found again."""
    name, seen = _named("mode", mode, POOLINGS), tensor(x)
    if name == "max":
        indices = e.F.max_pool2d(x, *_window(how), return_indices=True)[1]
        return e.F.max_pool2d_backward(dy, indices, seen.shape, *_window(how))
    return e.F.avg_pool2d_backward(dy, seen.shape, *_window(how), count_include_pad=name == POOLINGS[1])


def scalar(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose result is given as a number."""
    return lambda e, *args: float(fn(e, *args))
