"""Operators that compute each element by itself."""

from __future__ import annotations

from typing import Any

from baracuda import functional as F
from baracuda.onnx.call import Call, Known
from baracuda.onnx.operators.table import Rule, cast, element_of, is_whole, operator, reshaped

# The inputs are the arguments.
SAME: dict[str, str] = {
    "Abs": "abs", "Acos": "acos", "Acosh": "acosh", "Asin": "asin", "Asinh": "asinh", "Atan": "atan", "Atanh": "atanh",
    "BitwiseNot": "bitwise_not", "Ceil": "ceil", "Cos": "cos", "Cosh": "cosh", "Erf": "erf", "Exp": "exp", "Floor": "floor",
    "HardSwish": "hardswish", "IsNaN": "isnan", "Log": "log", "Mish": "mish", "Neg": "neg", "Not": "logical_not",
    "Reciprocal": "reciprocal", "Relu": "relu", "Round": "round", "Sigmoid": "sigmoid", "Sin": "sin",
    "Sinh": "sinh", "Softplus": "softplus", "Softsign": "softsign", "Sqrt": "sqrt", "Tan": "tan", "Tanh": "tanh",
}  # fmt: skip

# Of two operands.
PAIRS: dict[str, str] = {
    "Add": "add", "And": "logical_and", "BitwiseAnd": "bitwise_and", "BitwiseOr": "bitwise_or", "BitwiseXor": "bitwise_xor",
    "Equal": "eq", "Greater": "gt", "GreaterOrEqual": "ge", "Less": "lt", "LessOrEqual": "le", "Mul": "mul",
    "Or": "logical_or", "Sub": "sub", "Xor": "logical_xor",
}  # fmt: skip

# Inputs, then options: name of the function's option, ONNX's attribute and its default.
WITH_OPTIONS: dict[str, tuple[str, tuple[tuple[str, str, Any], ...]]] = {
    "Celu": ("celu", (("alpha", "alpha", 1.0),)),
    "Elu": ("elu", (("alpha", "alpha", 1.0),)),
    "Gelu": ("gelu", (("approximate", "approximate", "none"),)),
    "LeakyRelu": ("leaky_relu", (("negative_slope", "alpha", 0.01),)),
}


def numbers(c: Call, a: Any, b: Any) -> tuple[Any, Any]:
    """Two operands: a known one of one element as a number, which becomes a part of the kernel."""
    if c.opset < 7 and not c.node.domain and c.get("broadcast", 0):
        return a, _from_axis(a, b, c.get("axis"))
    if isinstance(c.values[0], Known) is isinstance(c.values[1], Known):
        return a, b
    if isinstance(c.values[1], Known):
        number = c.scalar(1)
        return a, b if number is None or b.ndim > a.ndim else number
    number = c.scalar(0)
    if number is None or a.ndim > b.ndim:
        return a, b
    return reshaped(a, ()), b  # on the left it stays a tensor, and gives no dimension


def _from_axis(a: Any, b: Any, axis: int | None) -> Any:
    """Before opset 7: the right operand's dimensions are those of the left one from an axis on, or its last ones."""
    first = a.ndim - b.ndim if axis is None else axis % a.ndim
    return reshaped(b, (*b.shape, *[1] * (a.ndim - first - b.ndim)))


def _one(name: str) -> Rule:
    return lambda c, x: getattr(F, name)(x)


def _pair(name: str) -> Rule:
    return lambda c, a, b: getattr(F, name)(*numbers(c, a, b))


def _with_options(name: str, options: tuple[tuple[str, str, Any], ...]) -> Rule:
    return lambda c, *xs: getattr(F, name)(*xs, **{ours: c.get(theirs, default) for ours, theirs, default in options})


for _op, _name in SAME.items():
    operator(_op)(_one(_name))
for _op, _name in PAIRS.items():
    operator(_op)(_pair(_name))
for _op, (_name, _options) in WITH_OPTIONS.items():
    operator(_op)(_with_options(_name, _options))


def _fold(name: str) -> Rule:
    """An operator of any number of inputs, as a function of two."""

    def call(c: Call, *xs: Any) -> Any:
        y = xs[0]
        for x in xs[1:]:
            y = getattr(F, name)(y, x)
        return y

    return call


operator("Max", view=True)(_fold("maximum"))
operator("Min", view=True)(_fold("minimum"))
operator("Sum", view=True)(_fold("add"))


@operator("Mean")
def _mean(c: Call, *xs: Any) -> Any:
    return F.div(_fold("add")(c, *xs), len(xs))


@operator("Sign")
def _sign(c: Call, x: Any) -> Any:
    """That of NaN is NaN here."""
    return F.where(F.isnan(x), x, F.sign(x)) if x.element.is_float else F.sign(x)


@operator("Div")
def _div(c: Call, a: Any, b: Any) -> Any:
    if is_whole(a):
        return F.div(a, b, rounding_mode="trunc")
    return F.div(*numbers(c, a, b))


@operator("Pow")
def _pow(c: Call, x: Any, y: Any) -> Any:
    if c.opset < 7:
        return F.pow(*numbers(c, x, y))
    exponent = c.scalar(1) if y.ndim <= x.ndim else None
    if exponent == 2 and not is_whole(x):
        return F.square(x)
    if exponent is not None and (isinstance(exponent, int) or not is_whole(x)):
        return F.pow(x, exponent)
    return cast(F.pow(x, y), x.element)


@operator("Mod")
def _mod(c: Call, a: Any, b: Any) -> Any:
    return F.fmod(a, b) if c.get("fmod", 0) else F.remainder(a, b)


@operator("BitShift")
def _shift(c: Call, a: Any, b: Any) -> Any:
    return F.bitwise_left_shift(a, b) if c.get("direction") == "LEFT" else F.bitwise_right_shift(a, b)


@operator("Where")
def _where(c: Call, condition: Any, x: Any, y: Any) -> Any:
    """Numbers on either side become a part of the kernel, where the other one says the element."""
    left, right = (c.scalar(i) if t.ndim <= condition.ndim else None for i, t in ((1, x), (2, y)))
    if right is not None:
        return F.where(condition, x, right)
    return F.where(condition, x if left is None else left, y)


@operator("Clip", view=True)
def _clip(c: Call, x: Any, low: Any = None, high: Any = None) -> Any:
    if low is None and high is None:
        low, high = c.get("min"), c.get("max")  # before opset 11
        return x if low is None and high is None else F.clamp(x, low, high)
    bounds = [c.scalar(i) for i in (1, 2)]
    if (low is None or bounds[0] is not None) and (high is None or bounds[1] is not None):
        return F.clamp(x, *bounds)
    if low is not None:
        x = F.maximum(x, reshaped(low, ()))
    return x if high is None else F.minimum(x, reshaped(high, ()))


@operator("HardSigmoid")
def _hard_sigmoid(c: Call, x: Any) -> Any:
    return F.clamp(F.affine(x, c.get("alpha", 0.2), c.get("beta", 0.5)), 0.0, 1.0)


@operator("Selu")
def _selu(c: Call, x: Any) -> Any:
    if not c.node.attributes:
        return F.selu(x)
    return F.mul(F.elu(x, c.get("alpha", 1.6732632)), c.get("gamma", 1.050701))


@operator("Shrink")
def _shrink(c: Call, x: Any) -> Any:
    lam, bias = c.get("lambd", 0.5), c.get("bias", 0.0)
    if not bias:
        return F.hardshrink(x, lam)
    if bias == lam:
        return F.softshrink(x, lam)
    inner = F.where(F.gt(x, lam), F.sub(x, bias), F.zeros_like(x))
    return F.where(F.lt(x, -lam), F.add(x, bias), inner)


@operator("Swish")
def _swish(c: Call, x: Any) -> Any:
    return scaled_silu(x, c.get("alpha", 1.0))


def scaled_silu(x: Any, alpha: float) -> Any:
    """Gives x sigmoid(alpha x)."""
    return F.silu(x) if alpha == 1 else F.mul(x, F.sigmoid(F.mul(x, alpha)))


@operator("SwiGLU")
def _swiglu(c: Call, a: Any, b: Any) -> Any:
    return F.mul(scaled_silu(a, c.get("alpha", 1.0)), b)


@operator("ThresholdedRelu")
def _thresholded(c: Call, x: Any) -> Any:
    return F.where(F.gt(x, c.get("alpha", 1.0)), x, 0.0)  # 0 for NaN, too


@operator("PRelu")
def _prelu(c: Call, x: Any, slope: Any) -> Any:
    if c.opset < 7 and slope.ndim == 1:  # one of each channel
        slope = reshaped(slope, (-1, *[1] * (x.ndim - 2)))
    return F.where(F.gt(x, 0), x, F.mul(x, slope))


@operator("IsInf")
def _is_inf(c: Call, x: Any) -> Any:
    low, high = c.get("detect_negative", 1), c.get("detect_positive", 1)
    if low and high:
        return F.isinf(x)
    return F.eq(x, float("-inf" if low else "inf")) if low or high else F.zeros_like(x, dtype="bool")


@operator("Dropout", view=True)
def _dropout(c: Call, x: Any, ratio: Any = None, training: Any = None) -> Any:
    if c.opset < 7 and not c.get("is_test", 0):
        c.refuse("is_test=0", "a network for inference", "Export it in evaluation mode.", "random")
    if c.number(2) and (ratio is None or c.number(1)):
        c.refuse("training_mode of Dropout", "a network for inference", "Export it in evaluation mode.", "random")
    return (x, F.ones_like(x, dtype="bool")) if c.wants(1) else x


@operator("Cast", "CastLike", view=True)
def _cast(c: Call, x: Any, like: Any = None) -> Any:
    target = like.element if like is not None else element_of(c, c.get("to"))
    return cast_as_onnx(c, x, target)


def cast_as_onnx(c: Call, x: Any, target: Any) -> Any:
    """By a plan for 8-bit floats, which has ONNX's rule; the function has torch's."""
    import baracuda as bc

    if target.bits < 8:
        c.refuse(f"a cast to {target}", "an element of 8 bits or more", code="element")
    small = [str(e) for e in (x.element, target) if str(e).startswith("f8")]
    if not small:
        return cast(x, target)
    desc = bc.CastDescriptor(x.shape, x.element, target, saturate=bool(c.get("saturate", 1)))
    if not bc.CastPlan.query(desc):
        c.refuse(f"a cast from {x.element} to {target}", "one that a kernel here does", code="element")
    y = bc.empty(x.shape, target)
    bc.plan(desc).run(x, y)
    return y
