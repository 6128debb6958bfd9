"""Which call of bc.functional an ONNX operator is, with its attributes, and why others are not run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx_cases import NO_OPTION, NodeCase, NotRun
from onnx_images import CALLS as OF_IMAGES
from onnx_layers import CALLS as LAYERS
from onnx_places import CALLS as PLACES
from onnx_places import ints, number
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


def _axes(case: NodeCase) -> list[int] | None:
    """The axes of a reduction; all for none, unless that means that there is nothing to do."""
    given = case.attributes.get("axes")
    if len(case.inputs) > 1 and case.inputs[1] is not None:
        given = ints(case.inputs[1])
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
    given = ints(pads)
    where = [a % x.ndim for a in ints(axes)] if axes is not None else list(range(x.ndim))
    low, high = [0] * x.ndim, [0] * x.ndim
    for i, a in enumerate(where):
        low[a], high[a] = given[i], given[i + len(where)]
    flat = [p for a in reversed(range(x.ndim)) for p in (low[a], high[a])]
    while mode != "constant" and flat[-2:] == [0, 0]:  # torch pads the last dimensions
        flat = flat[:-2]
    return F.pad(x, flat, mode, number(value) if mode == "constant" else None)


def _gemm(F: Any, c: NodeCase, a: Any, b: Any, bias: Any = None) -> Any:
    a, b = a.T if c.get("transA", 0) else a, b.T if c.get("transB", 0) else b
    alpha, beta = c.get("alpha", 1.0), c.get("beta", 1.0)
    if bias is None:
        return F.mul(F.mm(a, b), alpha) if alpha != 1 else F.mm(a, b)
    return F.addmm(bias, a, b, beta=beta, alpha=alpha)


def _clip(F: Any, c: NodeCase, x: Any, low: Any = None, high: Any = None) -> Any:
    return F.copy(x) if low is None and high is None else F.clamp(x, number(low), number(high))


def _cumulative(name: str) -> Call:
    def call(F: Any, c: NodeCase, x: Any, axis: Any) -> Any:
        options = {option: bool(c.get(option, 0)) for option in ("reverse", "exclusive")}
        return _as(F, getattr(F, name)(x, int(number(axis)), **options), x)

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


def _range(F: Any, c: NodeCase, start: Any, end: Any, step: Any) -> Any:
    return F.arange(number(start), number(end), number(step), dtype=start.dtype)


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
    if training is not None and number(training) and (ratio is None or number(ratio)):
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
    return F.full(tuple(ints(shape)), value.reshape(()).item(), dtype=value.dtype)


def _swiglu(F: Any, c: NodeCase, a: Any, b: Any) -> Any:
    alpha = c.get("alpha", 1.0)
    return F.mul(F.silu(a) if alpha == 1 else F.mul(a, F.sigmoid(F.mul(a, alpha))), b)


CALLS: dict[str, Call] = {
    "ArgMax": _arg("argmax"),
    "ArgMin": _arg("argmin"),
    "BitShift": _shift,
    "Cast": _cast,
    "CastLike": _cast,
    "Clip": _clip,
    "Concat": lambda F, c, *xs: F.cat(list(xs), c.get("axis")),
    "BatchNormalization": _batch_norm,
    "ConstantOfShape": _constant,
    "CumProd": _cumulative("cumprod"),
    "CumSum": _cumulative("cumsum"),
    "Div": lambda F, c, a, b: F.div(a, b, rounding_mode=None if a.dtype.kind not in "iu" else "trunc"),
    "Dropout": _dropout,
    "Einsum": lambda F, c, *xs: F.einsum(c.get("equation"), *xs),
    "Expand": lambda F, c, x, shape: F.copy(np.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(ints(shape))))),
    "EyeLike": _eye_like,
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
    "Selu": lambda F, c, x: F.selu(x) if not c.attributes else F.mul(F.elu(x, c.get("alpha")), c.get("gamma")),
    "Shrink": _shrink,
    "SoftmaxCrossEntropyLoss": _cross_entropy,
    "Sum": _fold("add"),
    "SwiGLU": _swiglu,
    "Swish": lambda F, c, x: F.silu(x) if c.get("alpha", 1.0) == 1 else F.mul(x, F.sigmoid(F.mul(x, c.get("alpha")))),
    "ThresholdedRelu": lambda F, c, x: F.threshold(x, c.get("alpha", 1.0), 0.0),
    "Trilu": lambda F, c, x, k=None: (F.triu if c.get("upper", 1) else F.tril)(x, int(number(k) or 0)),
}

# Operators that are not run, by reason.
ABSENT: dict[str, Sequence[str]] = {
    "a shape, which arrays have themselves": (
        "Shape", "Size",
    ),
    "another convolution, which is to come": ("DeformConv",),
    "for images and signals, which are to come": (
        "DFT", "ImageDecoder",
        "MelWeightMatrix", "STFT", "Upsample",
    ),
    "linear algebra, which is to come": ("Det",),
    SEQUENCE: (
        "If", "Loop", "OptionalGetElement", "OptionalHasElement", "Scan", "SequenceInsert", "SequenceMap", "SplitToSequence",
    ),
    TEXT: (
        "RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit", "TfIdfVectorizer",
        "ai.onnx.ml.LabelEncoder", "ai.onnx.ml.TreeEnsemble",
    ),
    RANDOM: ("Bernoulli",),
    "a constant or the same bits, which arrays make themselves": ("BitCast", "Constant"),
}  # fmt: skip
CALLS |= LAYERS | PLACES | WITH_WINDOWS | OF_IMAGES | QUANTIZED | {"Resize": resize}
for _op, _name in SAME.items():
    CALLS[_op] = lambda F, c, *xs, name=_name: getattr(F, name)(*xs)
for _op, (_name, _options) in WITH_OPTIONS.items():
    CALLS[_op] = lambda F, c, *xs, name=_name, options=_options: getattr(F, name)(
        *xs, **{ours: c.get(theirs, default) for ours, theirs, default in options}
    )
for _op, _name in REDUCTIONS.items():
    CALLS.setdefault(_op, lambda F, c, x, *_, name=_name: _as(F, _reduced(getattr(F, name), c, x), x))
