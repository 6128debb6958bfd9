"""Several operators in one: products, convolutions, activations and norms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from baracuda import functional as F
from baracuda.onnx.call import Call
from baracuda.onnx.operators.elementwise import scaled_silu
from baracuda.onnx.operators.table import cast, full, operator, reshaped, swapped, zeros
from baracuda.onnx.operators.windows import conv, max_pool

DOMAIN = "com.microsoft"


def activation(c: Call, name: str, params: list[float]) -> Callable[[Any], Any]:
    """The function of a fused activation."""
    alpha, beta = (*params, None, None)[:2]
    known: dict[str, Callable[[Any], Any]] = {
        "": lambda x: x,
        "Relu": lambda x: F.relu(x),
        "Sigmoid": lambda x: F.sigmoid(x),
        "Tanh": lambda x: F.tanh(x),
        "Softplus": lambda x: F.softplus(x),
        "LeakyRelu": lambda x: F.leaky_relu(x, 0.01 if alpha is None else alpha),
        "Clip": lambda x: F.clamp(x, alpha, beta),
        "HardSigmoid": lambda x: F.clamp(
            F.affine(x, 0.2 if alpha is None else alpha, 0.5 if beta is None else beta), 0.0, 1.0
        ),
    }
    if name not in known:
        c.refuse(f"activation {name!r}", f"one of {', '.join(filter(None, known))}")
    return known[name]


@operator("com.microsoft.FusedConv")
def _fused_conv(c: Call, x: Any, w: Any, b: Any = None, z: Any = None) -> Any:
    y = conv(c, x, w, b)
    y = y if z is None else F.add(y, z)
    return activation(c, c.get("activation", ""), list(c.get("activation_params") or []))(y)


@operator("com.microsoft.FusedMatMul", "com.microsoft.TransposeMatMul")
def _fused_matmul(c: Call, a: Any, b: Any) -> Any:
    if c.get("transBatchA", 0) or c.get("transBatchB", 0):
        c.refuse("transBatchA or transBatchB", "products whose batches stay in front")
    a = swapped(a, -1, -2) if c.get("transA", 0) and a.ndim > 1 else a
    b = swapped(b, -1, -2) if c.get("transB", 0) and b.ndim > 1 else b
    y, alpha = F.matmul(a, b), c.get("alpha", 1.0)
    return y if alpha == 1 else F.mul(y, alpha)


@operator("com.microsoft.FusedGemm")
def _fused_gemm(c: Call, a: Any, b: Any, bias: Any = None) -> Any:
    a, b = a.T if c.get("transA", 0) else a, b.T if c.get("transB", 0) else b
    alpha, beta = c.get("alpha", 1.0), c.get("beta", 1.0)
    y = F.addmm(bias, a, b, beta=beta, alpha=alpha) if bias is not None else F.mul(F.mm(a, b), alpha)
    params = [c.get(name) for name in ("activation_alpha", "activation_beta")]
    return activation(c, c.get("activation", ""), params)(y)


@operator("com.microsoft.Gelu")
def _gelu(c: Call, x: Any) -> Any:
    return F.gelu(x)


@operator("com.microsoft.BiasGelu")
def _bias_gelu(c: Call, x: Any, bias: Any) -> Any:
    return F.gelu(F.add(x, bias))


@operator("com.microsoft.FastGelu")
def _fast_gelu(c: Call, x: Any, bias: Any = None) -> Any:
    return F.gelu(x if bias is None else F.add(x, bias), "tanh")


@operator("com.microsoft.QuickGelu")
def _quick_gelu(c: Call, x: Any) -> Any:
    return scaled_silu(x, c.get("alpha", 1.702))


@operator("com.microsoft.BiasAdd")
def _bias_add(c: Call, x: Any, bias: Any, skip: Any) -> Any:
    return F.add(F.add(x, bias), skip)


def _with_skip(x: Any, skip: Any, bias: Any) -> Any:
    y = F.add(x, skip)
    return y if bias is None else F.add(y, bias)


@operator("com.microsoft.SkipLayerNormalization")
def _skip_layer_norm(c: Call, x: Any, skip: Any, scale: Any, shift: Any = None, bias: Any = None) -> Any:
    """Results: the norm, two statistics that nobody reads at inference, and the sum."""
    total = _with_skip(x, skip, bias)
    y = F.layer_norm(total, x.shape[-1:], scale, shift, c.get("epsilon", 1e-12))
    return y, None, None, total


@operator("com.microsoft.SkipSimplifiedLayerNormalization")
def _skip_rms_norm(c: Call, x: Any, skip: Any, scale: Any, bias: Any = None) -> Any:
    total = _with_skip(x, skip, bias)
    return F.rms_norm(total, x.shape[-1:], scale, c.get("epsilon", 1e-12)), None, None, total


@operator("com.microsoft.EmbedLayerNormalization")
def _embed(
    c: Call, ids: Any, segments: Any, words: Any, positions: Any, kinds: Any = None, scale: Any = None, shift: Any = None,
    mask: Any = None, places: Any = None,
) -> Any:  # fmt: skip
    """The sum of the rows of three tables, normalised; and how many tokens the mask has."""
    total = F.embedding(ids, words)
    own = positions[: ids.shape[1]] if places is None else F.embedding(places, positions)
    total = F.add(total, own)
    total = total if segments is None else F.add(total, F.embedding(segments, kinds))
    y = F.layer_norm(total, words.shape[-1:], scale, shift, c.get("epsilon", 1e-12))
    used = zeros((ids.shape[0],), dtype="i32") if mask is None else cast(F.sum(mask, 1), "i32")
    return y, used, total


@operator("com.microsoft.ExpandDims", view=True)
def _expand_dims(c: Call, x: Any, axis: Any) -> Any:
    return x.unsqueeze(c.number(1))


@operator("com.microsoft.Trilu")
def _trilu(c: Call, x: Any, k: Any = None) -> Any:
    return (F.triu if c.get("upper", 1) else F.tril)(x, c.number(1) or 0)


@operator("com.microsoft.NhwcMaxPool")
def _nhwc_max_pool(c: Call, x: Any) -> Any:
    """Channels last."""
    y = max_pool(c, x.permute(0, x.ndim - 1, *range(1, x.ndim - 1)))
    return F.copy(y.permute(0, *range(2, x.ndim), 1))


@operator("com.microsoft.MatMulNBits")
def _matmul_bits(
    c: Call, x: Any, codes: Any, scales: Any, zeros: Any = None, order: Any = None, bias: Any = None
) -> Any:
    """A product with a weight of 4 or 8 bits, with a scale for each block of a row."""
    rows, depth, bits, size = c.get("N"), c.get("K"), c.get("bits", 4), c.get("block_size")
    blocks = -(-depth // size)
    if bits not in (4, 8) or order is not None:
        c.refuse(f"bits={bits}" if order is None else "an order of columns (g_idx)", "weights of 4 or 8 bits in order")
    if zeros is not None and zeros.element.is_float:
        c.refuse("zero points of floats", "packed integers", code="element")
    packed = "u4" if bits == 4 else None
    zero = full((rows, blocks), 2 ** (bits - 1), dtype="i32")
    if zeros is not None:
        flat = reshaped(zeros, (rows, zeros.numel // rows))
        zero = cast(F.unpack_int4(flat, "u4", "u8", blocks) if bits == 4 else flat, "i32")
    scale = reshaped(scales, (rows, blocks))
    flat = reshaped(codes, (rows, codes.numel // rows))
    if depth % size == 0:
        return F.quant_linear(x, flat, cast(scale, "f32"), zero, bias, packed=packed)
    wide = F.unpack_int4(flat, "u4", "f32", blocks * size) if bits == 4 else cast(flat, "f32")
    wide = F.mul(
        F.sub(wide.reshape(rows, blocks, size), cast(zero, "f32").unsqueeze(2)), cast(scale, "f32").unsqueeze(2)
    )
    weight = wide.reshape(rows, blocks * size)[:, :depth]
    return F.linear(x, cast(weight, x.element), bias)
