"""Operators on quantized values: each as its function of their numbers, which are rounded to codes again."""

from __future__ import annotations

from typing import Any

from baracuda import functional as F
from baracuda.onnx.call import Call
from baracuda.onnx.operators.quantized import whole_product
from baracuda.onnx.operators.table import Rule, axis_of, cast, operator, zeros
from baracuda.onnx.operators.windows import average_pool, requantized


def values(x: Any, scale: Any, zero: Any) -> Any:
    """(x - zero) scale, in f32."""
    wide = cast(x, "f32")
    if zero is not None:
        wide = F.sub(wide, cast(zero, "f32"))
    return F.mul(wide, scale)


def codes(y: Any, scale: Any, zero: Any) -> Any:
    """Numbers as codes of a scale."""
    return requantized(F.div(y, scale), zero)


def _pair(name: str) -> Rule:
    def call(c: Call, a: Any, ra: Any, za: Any, b: Any, rb: Any, zb: Any, ry: Any, zy: Any = None) -> Any:
        zy = zeros((), dtype=a.element) if zy is None else zy
        return codes(getattr(F, name)(values(a, ra, za), values(b, rb, zb)), ry, zy)

    return call


operator("com.microsoft.QLinearAdd")(_pair("add"))
operator("com.microsoft.QLinearMul")(_pair("mul"))


def _one(fn: Rule) -> Rule:
    def call(c: Call, x: Any, rx: Any, zx: Any, ry: Any, zy: Any = None) -> Any:
        zy = zeros((), dtype=x.element) if zy is None else zy
        return codes(fn(c, values(x, rx, zx)), ry, zy)

    return call


def _global_average(c: Call, x: Any) -> Any:
    axes = range(1, x.ndim - 1) if c.get("channels_last", 0) else range(2, x.ndim)
    return F.mean(x, tuple(axes), True)


def _average(c: Call, x: Any) -> Any:
    if not c.get("channels_last", 0):
        return average_pool(c, x)
    y = average_pool(c, x.permute(0, x.ndim - 1, *range(1, x.ndim - 1)))
    return F.copy(y.permute(0, *range(2, x.ndim), 1))


operator("com.microsoft.QLinearSigmoid")(_one(lambda c, x: F.sigmoid(x)))
operator("com.microsoft.QLinearLeakyRelu")(_one(lambda c, x: F.leaky_relu(x, c.get("alpha", 0.01))))
operator("com.microsoft.QLinearSoftmax")(_one(lambda c, x: F.softmax(x, axis_of(c, x, default=-1))))
operator("com.microsoft.QLinearGlobalAveragePool")(_one(_global_average))
operator("com.microsoft.QLinearAveragePool")(_one(_average))


@operator("com.microsoft.QLinearConcat")
def _concat(c: Call, ry: Any, zy: Any, *parts: Any) -> Any:
    numbers = [values(*parts[i : i + 3]) for i in range(0, len(parts), 3)]
    return codes(F.cat(numbers, c.get("axis")), ry, zy)


def _scaled(whole: Any, left: Any, right: Any, bias: Any) -> Any:
    y = F.mul(cast(whole, "f32"), F.mul(left, right))
    return y if bias is None else F.add(y, bias)


@operator("com.microsoft.MatMulIntegerToFloat")
def _to_float(c: Call, a: Any, b: Any, ra: Any, rb: Any, za: Any = None, zb: Any = None, bias: Any = None) -> Any:
    return _scaled(whole_product(c, a, b, za, zb), ra, rb, bias)


@operator("com.microsoft.DynamicQuantizeMatMul")
def _dynamic(c: Call, x: Any, b: Any, rb: Any, zb: Any = None, bias: Any = None) -> Any:
    """The input is rounded to codes of its own range first."""
    a, ra, za = F.dynamic_quantize(x, None, "u8", symmetric=False)
    return _scaled(whole_product(c, a, b, cast(za.reshape(), "u8"), zb), ra.reshape(), rb, bias)


@operator("com.microsoft.QGemm")
def _gemm(
    c: Call, a: Any, ra: Any, za: Any, b: Any, rb: Any, zb: Any, bias: Any = None, ry: Any = None, zy: Any = None
) -> Any:
    """A product of codes; of floats where no scale of results is given."""
    a = a.T if c.get("transA", 0) else a
    if c.get("transB", 0):
        b = b.T
    whole = whole_product(c, a, b, za, zb)
    whole = whole if bias is None else F.add(whole, bias)
    y = F.mul(cast(whole, "f32"), F.mul(F.mul(ra, rb), c.get("alpha", 1.0)))
    return y if ry is None else codes(y, ry, zy)
