"""Which call of bc.functional an ONNX operator is, with its attributes, and why others are not run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx_cases import NO_OPTION, NodeCase, NotRun
from onnx_images import CALLS as OF_IMAGES
from onnx_quantized import CALLS as QUANTIZED
from onnx_resize import resize
from onnx_windows import CALLS as WITH_WINDOWS

import baracuda as bc
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError

Call = Callable[..., Any]


NO_ELEMENT = "of elements that no kernel here takes"
SEQUENCE = "control flow or of sequences, which are no kernels"
TEXT = "of text, tables or trees, which are no tensors of numbers"
RANDOM = "for random numbers of another stream"

# The inputs are the arguments.
SAME: dict[str, str] = {
    "Abs": "abs", "Acos": "acos", "Acosh": "acosh", "Add": "add", "And": "logical_and", "Asin": "asin", "Asinh": "asinh",
    "Atan": "atan", "Atanh": "atanh", "BitwiseAnd": "bitwise_and", "BitwiseNot": "bitwise_not", "BitwiseOr": "bitwise_or",
    "BitwiseXor": "bitwise_xor", "Ceil": "ceil", "Cos": "cos", "Cosh": "cosh", "Equal": "eq", "Erf": "erf", "Exp": "exp",
    "Floor": "floor", "Greater": "gt", "GreaterOrEqual": "ge", "HardSwish": "hardswish", "Identity": "copy",
    "IsNaN": "isnan", "Less": "lt", "LessOrEqual": "le", "Log": "log", "MatMul": "matmul", "Mish": "mish", "Mul": "mul",
    "Neg": "neg", "Not": "logical_not", "Or": "logical_or", "Reciprocal": "reciprocal", "Relu": "relu",
    "Round": "round", "Sigmoid": "sigmoid", "Sign": "sign", "Sin": "sin", "Sinh": "sinh", "Softplus": "softplus",
    "Softsign": "softsign", "Sqrt": "sqrt", "Sub": "sub", "Tan": "tan", "Tanh": "tanh", "Where": "where",
    "Xor": "logical_xor",
}  # fmt: skip

# Inputs, then options: name of the function's option, ONNX's attribute and its default.
WITH_OPTIONS: dict[str, tuple[str, tuple[tuple[str, str, Any], ...]]] = {
    "Celu": ("celu", (("alpha", "alpha", 1.0),)),
    "Elu": ("elu", (("alpha", "alpha", 1.0),)),
    "Gelu": ("gelu", (("approximate", "approximate", "none"),)),
    "LeakyRelu": ("leaky_relu", (("negative_slope", "alpha", 0.01),)),
    "LogSoftmax": ("log_softmax", (("dim", "axis", -1),)),
    "Softmax": ("softmax", (("dim", "axis", -1),)),
}

# A reduction over axes: the function.
REDUCTIONS: dict[str, str] = {
    "ReduceLogSumExp": "logsumexp", "ReduceMax": "amax", "ReduceMean": "mean", "ReduceMin": "amin", "ReduceProd": "prod",
    "ReduceSum": "sum",
}  # fmt: skip


def _number(x: Any) -> Any:
    return None if x is None else np.asarray(x).reshape(()).item()


def _ints(x: Any) -> list[int]:
    return [int(n) for n in np.asarray(x).reshape(-1)]


def _axes(case: NodeCase) -> list[int] | None:
    """The axes of a reduction; all for none, unless that means that there is nothing to do."""
    given = case.attributes.get("axes")
    if len(case.inputs) > 1 and case.inputs[1] is not None:
        given = _ints(case.inputs[1])
    if given:
        return list(given)
    return [] if case.get("noop_with_empty_axes", 0) else None


def _reduced(fn: Call, case: NodeCase, x: Any, before: Call | None = None) -> Any:
    axes = _axes(case)
    x = before(x) if before else x
    if axes == []:
        return x
    dims = tuple(range(x.ndim)) if axes is None else tuple(axes)
    if not x.ndim:
        return fn(x)
    if case.op in ("ReduceMax", "ReduceMin") and any(x.shape[d] == 0 for d in dims):
        raise NotRun("the maximum of nothing, which is an error here")
    return fn(x, dims, bool(case.get("keepdims", 1)))


def _product(F: Any, c: NodeCase, x: Any, *_: Any) -> Any:
    # prod folds one axis or all of them.
    axes = _axes(c)
    keep = bool(c.get("keepdims", 1))
    if axes is None:
        y = F.prod(x)
        return y.reshape((1,) * x.ndim) if keep else y
    if len(axes) != 1:
        raise NotRun(NO_OPTION)
    return F.prod(x, axes[0], keep)


def _as(F: Any, y: Any, x: Any) -> Any:
    """A sum of integers in the element of its terms, as ONNX has it."""
    return y if y.dtype == x.dtype else F.cast(y, x.dtype)


def _arg(name: str) -> Call:
    def call(F: Any, c: NodeCase, x: Any) -> Any:
        axis, keep = c.get("axis", 0), bool(c.get("keepdims", 1))
        if not c.get("select_last_index", 0):
            return getattr(F, name)(x, axis, keep)
        last = getattr(F, name)(np.flip(x, axis), axis, keep)
        return F.sub(x.shape[axis] - 1, last)

    return call


def _fold(name: str) -> Call:
    """An operator of any number of inputs, as a function of two."""

    def call(F: Any, c: NodeCase, *xs: Any) -> Any:
        y = xs[0] if len(xs) > 1 else F.copy(xs[0])
        for x in xs[1:]:
            y = getattr(F, name)(y, x)
        return y

    return call


def _pad(F: Any, c: NodeCase, x: Any, pads: Any, value: Any = None, axes: Any = None) -> Any:
    mode = {"edge": "replicate", "wrap": "circular"}.get(c.get("mode", "constant"), c.get("mode", "constant"))
    given = _ints(pads)
    where = [a % x.ndim for a in _ints(axes)] if axes is not None else list(range(x.ndim))
    low, high = [0] * x.ndim, [0] * x.ndim
    for i, a in enumerate(where):
        low[a], high[a] = given[i], given[i + len(where)]
    flat = [p for a in reversed(range(x.ndim)) for p in (low[a], high[a])]
    while mode != "constant" and flat[-2:] == [0, 0]:  # torch pads the last dimensions
        flat = flat[:-2]
    return F.pad(x, flat, mode, _number(value) if mode == "constant" else None)


def _scatter(F: Any, c: NodeCase, x: Any, index: Any, updates: Any) -> Any:
    axis, how = c.get("axis", 0), c.get("reduction", "none")
    index = np.where(index < 0, index + x.shape[axis], index)  # ONNX counts from the end
    if how == "none":
        return F.scatter(x, axis, index, updates)
    names = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}
    return F.scatter_reduce(x, axis, index, updates, names[how])


def _gather_nd(F: Any, c: NodeCase, x: Any, index: Any) -> Any:
    """Coordinates of batches come in front of those that are given."""
    batch = index.shape[: c.get("batch_dims", 0)]
    own = np.indices(batch).reshape(len(batch), *batch, *(1,) * (index.ndim - len(batch) - 1))
    full = [np.broadcast_to(i, index.shape[:-1])[..., None] for i in own]
    return F.gather_nd(x, np.concatenate([*full, index], -1))


def _scatter_nd(F: Any, c: NodeCase, x: Any, index: Any, updates: Any) -> Any:
    names = {"none": None, "add": "sum", "mul": "prod", "max": "amax", "min": "amin"}
    return F.scatter_nd(x, index, updates, names[c.get("reduction", "none")])


def _gather(F: Any, c: NodeCase, x: Any, index: Any) -> Any:
    axis = c.get("axis", 0) % x.ndim
    rows = np.where(index < 0, index + x.shape[axis], index).reshape(-1)
    y = F.index_select(x, axis, rows)
    return y.reshape(*x.shape[:axis], *index.shape, *x.shape[axis + 1 :])


def _gemm(F: Any, c: NodeCase, a: Any, b: Any, bias: Any = None) -> Any:
    a, b = a.T if c.get("transA", 0) else a, b.T if c.get("transB", 0) else b
    alpha, beta = c.get("alpha", 1.0), c.get("beta", 1.0)
    if bias is None:
        return F.mul(F.mm(a, b), alpha) if alpha != 1 else F.mm(a, b)
    return F.addmm(bias, a, b, beta=beta, alpha=alpha)


def _clip(F: Any, c: NodeCase, x: Any, low: Any = None, high: Any = None) -> Any:
    return F.copy(x) if low is None and high is None else F.clamp(x, _number(low), _number(high))


def _cumulative(name: str) -> Call:
    def call(F: Any, c: NodeCase, x: Any, axis: Any) -> Any:
        dim = int(_number(axis))
        seen = np.flip(x, dim) if c.get("reverse", 0) else x
        if c.get("exclusive", 0):  # the first one has none before it
            whole = np.moveaxis(seen, dim, -1)
            none = np.full_like(whole[..., :1], int(name == "cumprod"))
            seen = np.moveaxis(F.cat([none, whole[..., :-1]], -1), -1, dim)
        y = _as(F, getattr(F, name)(seen, dim), x)
        return np.flip(y, dim) if c.get("reverse", 0) else y

    return call


def _nll(F: Any, c: NodeCase, x: Any, target: Any, weight: Any = None) -> Any:
    ignored = c.get("ignore_index", -100)
    return F.nll_loss(x, target, weight, ignore_index=ignored, reduction=c.get("reduction", "mean"))


def _cross_entropy(F: Any, c: NodeCase, x: Any, target: Any, weight: Any = None) -> Any:
    ignored = c.get("ignore_index", -100)
    y = F.cross_entropy(x, target, weight, ignore_index=ignored, reduction=c.get("reduction", "mean"))
    return (y, F.log_softmax(x, 1)) if len(c.outputs) > 1 else y


def _layer_norm(F: Any, c: NodeCase, x: Any, scale: Any, bias: Any = None) -> Any:
    axis = c.get("axis", -1) % x.ndim
    return F.layer_norm(x, x.shape[axis:], scale, bias, c.get("epsilon", 1e-5))


def _rms_norm(F: Any, c: NodeCase, x: Any, scale: Any) -> Any:
    axis = c.get("axis", -1) % x.ndim
    return F.rms_norm(x, x.shape[axis:], scale, c.get("epsilon", 1e-5))


def _instance_norm(F: Any, c: NodeCase, x: Any, scale: Any, bias: Any) -> Any:
    return F.instance_norm(x, None, None, scale, bias, eps=c.get("epsilon", 1e-5))


def _batch_norm(F: Any, c: NodeCase, x: Any, scale: Any, bias: Any, mean: Any, var: Any) -> Any:
    eps, keep = c.get("epsilon", 1e-5), c.get("momentum", 0.9)
    if not c.get("training_mode", 0):
        return F.batch_norm(x, mean, var, scale, bias, False, 0.0, eps)
    # Running variances are of the batch's own, biased one.
    axes = (0, *range(2, x.ndim))
    new_var, new_mean = F.var_mean(x, axes, correction=0)
    y = F.batch_norm(x, None, None, scale, bias, True, 0.0, eps)
    return y, F.lerp(new_mean, mean, keep), F.lerp(new_var, var, keep)


def _mean_variance_norm(F: Any, c: NodeCase, x: Any) -> Any:
    if tuple(c.get("axes", (0, 2, 3))) != (0, *range(2, x.ndim)):
        raise NotRun(NO_OPTION)
    return F.batch_norm(x, None, None, training=True, eps=1e-18)


def _rope(F: Any, c: NodeCase, x: Any, cos: Any, sin: Any, positions: Any = None) -> Any:
    if positions is None:
        raise NotRun(NO_OPTION)
    heads = c.get("num_heads", 0)
    seen = x if x.ndim == 4 else x.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3)
    dim = c.get("rotary_embedding_dim", 0) or None
    y = F.rope(seen, cos, sin, positions=positions, rotary_dim=dim, interleaved=bool(c.get("interleaved", 0)))
    return y if x.ndim == 4 else y.transpose(0, 2, 1, 3).reshape(x.shape)


def _attention(F: Any, c: NodeCase, q: Any, k: Any, v: Any, *rest: Any) -> Any:
    mask, past_k, past_v, used = (*rest, None, None, None, None)[:4]
    options = ("softcap", "softmax_precision", "left_window_size", "right_window_size")
    if used is not None or len(c.outputs) > 3 or any(c.get(o, 0) not in (0, 0.0, -1) for o in options):
        raise NotRun(NO_OPTION)
    flat = q.ndim == 3
    if flat:
        heads = c.get("q_num_heads"), c.get("kv_num_heads"), c.get("kv_num_heads")
        q, k, v = (x.reshape(*x.shape[:2], h, -1).transpose(0, 2, 1, 3) for x, h in zip((q, k, v), heads, strict=True))
    if past_k is not None:
        k, v = F.cat([past_k, k], 2), F.cat([past_v, v], 2)
    causal = bool(c.get("is_causal", 0))
    if causal and (past_k is not None or mask is not None):
        raise NotRun(NO_OPTION)
    if mask is not None and mask.shape[-1] != k.shape[2]:
        raise NotRun(NO_OPTION)
    y = F.scaled_dot_product_attention(
        q, k, v, mask, is_causal=causal, scale=c.get("scale"), enable_gqa=q.shape[1] != k.shape[1]
    )
    y = y.transpose(0, 2, 1, 3).reshape(y.shape[0], y.shape[2], -1) if flat else y
    return (y, k, v)[: len(c.outputs)]


def _one_hot(F: Any, c: NodeCase, index: Any, depth: Any, values: Any) -> Any:
    size = int(_number(depth))
    found = np.asarray(index).astype(np.int64)
    if ((found < -size) | (found >= size)).any():
        raise NotRun("for indices out of range, which are errors here")
    hot = F.one_hot(np.where(found < 0, found + size, found), size)
    axis = c.get("axis", -1)
    y = F.where(F.ne(hot, 0), values[1:].reshape(()), values[:1].reshape(()))
    return np.moveaxis(y, -1, axis)


def _range(F: Any, c: NodeCase, start: Any, end: Any, step: Any) -> Any:
    return F.arange(_number(start), _number(end), _number(step), dtype=start.dtype)


def _slice(F: Any, c: NodeCase, x: Any, starts: Any, ends: Any, axes: Any = None, steps: Any = None) -> Any:
    key = [slice(None)] * x.ndim
    where = _ints(axes) if axes is not None else range(len(starts))
    by = _ints(steps) if steps is not None else [1] * len(starts)
    for a, low, high, step in zip(where, _ints(starts), _ints(ends), by, strict=True):
        key[a] = slice(low, None if step < 0 and high < -x.shape[a] else high, step)
    return F.copy(x[tuple(key)])


def _split(F: Any, c: NodeCase, x: Any, sizes: Any = None) -> Any:
    axis, parts = c.get("axis", 0), len(c.outputs)
    whole = x.shape[axis]
    each = -(-whole // parts)
    cuts = np.cumsum(_ints(sizes))[:-1] if sizes is not None else [each * i for i in range(1, parts)]
    return tuple(F.copy(part) for part in np.split(x, cuts, axis))


def _to_space(F: Any, c: NodeCase, x: Any) -> Any:
    n, (b, ch, h, w) = c.get("blocksize"), x.shape
    if c.op == "SpaceToDepth":
        if c.get("mode", "DCR") != "DCR":
            raise NotRun(NO_OPTION)
        seen = x.reshape(b, ch, h // n, n, w // n, n).transpose(0, 3, 5, 1, 2, 4)
        return F.copy(seen).reshape(b, ch * n * n, h // n, w // n)
    if c.get("mode", "DCR") == "DCR":
        seen = x.reshape(b, n, n, ch // n**2, h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        seen = x.reshape(b, ch // n**2, n, n, h, w).transpose(0, 1, 4, 2, 5, 3)
    return F.copy(seen).reshape(b, ch // n**2, h * n, w * n)


def _cast(F: Any, c: NodeCase, x: Any, like: Any = None) -> Any:
    import onnx

    target = like.dtype if like is not None else onnx.helper.tensor_dtype_to_np_dtype(c.get("to"))
    try:
        before, after = Element.coerce(x.dtype), Element.coerce(target)
    except InvalidProblemError:
        raise NotRun(NO_ELEMENT) from None
    # The function takes torch's rule for 8-bit floats; the plan has ONNX's as well.
    desc = bc.CastDescriptor(x.shape, before, after, saturate=bool(c.get("saturate", 1)))
    if not bc.CastPlan.query(desc):
        raise NotRun(NO_ELEMENT)
    F.used.add("cast")
    y = np.empty(x.shape, target)
    bc.plan(desc).run(x, y)
    return y


def _dropout(F: Any, c: NodeCase, x: Any, ratio: Any = None, training: Any = None) -> Any:
    if training is not None and _number(training) and (ratio is None or _number(ratio)):
        raise NotRun(RANDOM)
    y = F.dropout(x, training=False)
    return (y, F.ones_like(x, dtype="bool")) if len(c.outputs) > 1 else y


def _mod(F: Any, c: NodeCase, a: Any, b: Any) -> Any:
    return F.fmod(a, b) if c.get("fmod", 0) else F.remainder(a, b)


def _shift(F: Any, c: NodeCase, a: Any, b: Any) -> Any:
    return F.bitwise_left_shift(a, b) if c.get("direction") == "LEFT" else F.bitwise_right_shift(a, b)


def _is_inf(F: Any, c: NodeCase, x: Any) -> Any:
    low, high = c.get("detect_negative", 1), c.get("detect_positive", 1)
    if low and high:
        return F.isinf(x)
    return F.eq(x, float("-inf" if low else "inf")) if low or high else F.zeros_like(x, dtype="bool")


def _compress(F: Any, c: NodeCase, x: Any, condition: Any) -> Any:
    axis = c.get("axis")
    if axis is None:
        x, axis = x.reshape(-1), 0
    return F.index_select(x, axis, F.nonzero(condition).reshape(-1))


def _shrink(F: Any, c: NodeCase, x: Any) -> Any:
    lam, bias = c.get("lambd", 0.5), c.get("bias", 0.0)
    if bias not in (0.0, lam):
        raise NotRun(NO_OPTION)
    return F.softshrink(x, lam) if bias else F.hardshrink(x, lam)


def _eye_like(F: Any, c: NodeCase, x: Any) -> Any:
    import onnx

    kind = onnx.helper.tensor_dtype_to_np_dtype(c.get("dtype")) if "dtype" in c.attributes else x.dtype
    k = c.get("k", 0)
    if k and x.shape[0] + k > x.shape[1]:
        raise NotRun(NO_OPTION)
    eye = F.eye(*x.shape, dtype=kind)
    return F.pad(eye[:, : x.shape[1] - k], (k, 0)) if k else eye


def _constant(F: Any, c: NodeCase, shape: Any) -> Any:
    import onnx

    value = onnx.numpy_helper.to_array(c.get("value"))
    return F.full(tuple(_ints(shape)), value.reshape(()).item(), dtype=value.dtype)


def _swiglu(F: Any, c: NodeCase, a: Any, b: Any) -> Any:
    if c.get("alpha", 1.0) != 1:
        raise NotRun(NO_OPTION)
    return F.mul(F.silu(a), b)


CALLS: dict[str, Call] = {
    "ArgMax": _arg("argmax"),
    "ArgMin": _arg("argmin"),
    "Attention": _attention,
    "BitShift": _shift,
    "Cast": _cast,
    "CastLike": _cast,
    "Clip": _clip,
    "Compress": _compress,
    "Concat": lambda F, c, *xs: F.cat(list(xs), c.get("axis")),
    "BatchNormalization": _batch_norm,
    "ConstantOfShape": _constant,
    "CumProd": _cumulative("cumprod"),
    "CumSum": _cumulative("cumsum"),
    "DepthToSpace": _to_space,
    "Div": lambda F, c, a, b: F.div(a, b, rounding_mode=None if a.dtype.kind not in "iu" else "trunc"),
    "Dropout": _dropout,
    "Einsum": lambda F, c, *xs: F.einsum(c.get("equation"), *xs),
    "Expand": lambda F, c, x, shape: F.copy(np.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(_ints(shape))))),
    "EyeLike": _eye_like,
    "Gather": _gather,
    "GatherElements": lambda F, c, x, i: (
        F.take_along_dim(x, i, c.get("axis", 0))
        if x.shape != i.shape
        else F.gather(x, c.get("axis", 0), np.where(i < 0, i + x.shape[c.get("axis", 0)], i))
    ),
    "GatherND": _gather_nd,
    "Gemm": _gemm,
    "GroupNormalization": lambda F, c, x, s, b: F.group_norm(x, c.get("num_groups"), s, b, c.get("epsilon", 1e-5)),
    "HardSigmoid": lambda F, c, x: F.clamp(F.affine(x, c.get("alpha", 0.2), c.get("beta", 0.5)), 0.0, 1.0),
    "InstanceNormalization": _instance_norm,
    "IsInf": _is_inf,
    "LayerNormalization": _layer_norm,
    "LpNormalization": lambda F, c, x: F.normalize(x, float(c.get("p", 2)), c.get("axis", -1)),
    "Max": _fold("maximum"),
    "MeanVarianceNormalization": _mean_variance_norm,
    "Mean": lambda F, c, *xs: F.div(_fold("add")(F, c, *xs), len(xs)),
    "Min": _fold("minimum"),
    "Mod": _mod,
    "NegativeLogLikelihoodLoss": _nll,
    "NonZero": lambda F, c, x: F.nonzero(x).T,
    "OneHot": _one_hot,
    "PRelu": lambda F, c, x, slope: F.where(F.gt(x, 0), x, F.mul(x, slope)),
    "Pad": _pad,
    "Pow": lambda F, c, x, y: _as(F, F.pow(x, y), x),
    "RMSNormalization": _rms_norm,
    "Range": _range,
    "ReduceL1": lambda F, c, x, *_: _as(F, _reduced(F.sum, c, x, F.abs), x),
    "ReduceL2": lambda F, c, x, *_: F.sqrt(_reduced(F.sum, c, x, F.square)),
    "ReduceLogSum": lambda F, c, x, *_: F.log(_reduced(F.sum, c, x)),
    "ReduceProd": _product,
    "ReduceSumSquare": lambda F, c, x, *_: _as(F, _reduced(F.sum, c, x, F.square), x),
    "RotaryEmbedding": _rope,
    "ScatterElements": _scatter,
    "Scatter": _scatter,
    "ScatterND": _scatter_nd,
    "Selu": lambda F, c, x: F.selu(x) if not c.attributes else F.mul(F.elu(x, c.get("alpha")), c.get("gamma")),
    "Shrink": _shrink,
    "Slice": _slice,
    "SoftmaxCrossEntropyLoss": _cross_entropy,
    "SpaceToDepth": _to_space,
    "Split": _split,
    "Sum": _fold("add"),
    "SwiGLU": _swiglu,
    "Swish": lambda F, c, x: F.silu(x) if c.get("alpha", 1.0) == 1 else F.mul(x, F.sigmoid(F.mul(x, c.get("alpha")))),
    "ThresholdedRelu": lambda F, c, x: F.threshold(x, c.get("alpha", 1.0), 0.0),
    "Tile": lambda F, c, x, times: F.tile(x, tuple(_ints(times))),
    "TopK": lambda F, c, x, k: F.topk(x, int(_number(k)), c.get("axis", -1), bool(c.get("largest", 1))),
    "Transpose": lambda F, c, x: F.copy(np.transpose(x, c.attributes.get("perm"))),
    "Trilu": lambda F, c, x, k=None: (F.triu if c.get("upper", 1) else F.tril)(x, int(_number(k) or 0)),
}

# Operators that are not run, by reason.
ABSENT: dict[str, Sequence[str]] = {
    "a view, which arrays make themselves": (
        "Flatten", "Reshape", "Shape", "Size", "Squeeze", "Unsqueeze",
    ),
    "another convolution, which is to come": ("CausalConvWithState", "ConvInteger", "DeformConv"),
    "sorted, which is to come": ("Hardmax", "NonMaxSuppression", "Unique"),
    "for images and signals, which are to come": (
        "BlackmanWindow", "CenterCropPad", "DFT", "HammingWindow", "HannWindow", "ImageDecoder",
        "MelWeightMatrix", "RoiAlign", "STFT", "Upsample",
    ),
    "a product of quantized numbers, which is to come": ("MatMulInteger", "QLinearConv", "QLinearMatMul"),
    "linear algebra, which is to come": ("Det",),
    "a recurrent or another attention layer, which are to come": (
        "GRU", "LSTM", "LinearAttention", "RNN", "ai.onnx.preview.FlexAttention",
    ),
    "indexed by lengths or positions of each batch, which is to come": ("ReverseSequence", "TensorScatter"),
    SEQUENCE: (
        "If", "Loop", "OptionalGetElement", "OptionalHasElement", "Scan", "SequenceInsert", "SequenceMap", "SplitToSequence",
    ),
    TEXT: (
        "RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit", "TfIdfVectorizer",
        "ai.onnx.ml.ArrayFeatureExtractor", "ai.onnx.ml.Binarizer", "ai.onnx.ml.LabelEncoder", "ai.onnx.ml.TreeEnsemble",
    ),
    RANDOM: ("Bernoulli",),
    "an optimizer by another rule than torch's": (
        "ai.onnx.preview.training.Adagrad", "ai.onnx.preview.training.Adam", "ai.onnx.preview.training.Momentum",
    ),
    "a constant or the same bits, which arrays make themselves": ("BitCast", "Constant"),
}  # fmt: skip
CALLS |= WITH_WINDOWS | OF_IMAGES | QUANTIZED | {"Resize": resize}
for _op, _name in SAME.items():
    CALLS[_op] = lambda F, c, *xs, name=_name: getattr(F, name)(*xs)
for _op, (_name, _options) in WITH_OPTIONS.items():
    CALLS[_op] = lambda F, c, *xs, name=_name, options=_options: getattr(F, name)(
        *xs, **{ours: c.get(theirs, default) for ours, theirs, default in options}
    )
for _op, _name in REDUCTIONS.items():
    CALLS.setdefault(_op, lambda F, c, x, *_, name=_name: _as(F, _reduced(getattr(F, name), c, x), x))
