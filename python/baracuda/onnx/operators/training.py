"""Losses, and rules that train."""

from __future__ import annotations

from typing import Any

from baracuda import functional as F
from baracuda.onnx.call import Call
from baracuda.onnx.operators.table import Rule, operator


@operator("NegativeLogLikelihoodLoss")
def _nll(c: Call, x: Any, target: Any, weight: Any = None) -> Any:
    ignored = c.get("ignore_index", -100)
    return F.nll_loss(x, target, weight, ignore_index=ignored, reduction=c.get("reduction", "mean"))


@operator("SoftmaxCrossEntropyLoss")
def _cross_entropy(c: Call, x: Any, target: Any, weight: Any = None) -> Any:
    ignored = c.get("ignore_index", -100)
    y = F.cross_entropy(x, target, weight, ignore_index=ignored, reduction=c.get("reduction", "mean"))
    return (y, F.log_softmax(x, 1)) if c.wants(1) else y


def _optimizer(rule: Rule, each: int) -> Rule:
    """A rule for one tensor, for the tensors, gradients and states that are given."""

    def call(c: Call, rate: Any, step: Any, *tensors: Any) -> Any:
        many = len(tensors) // each
        made = [rule(c, c.number(0), c.number(1), *tensors[i::many]) for i in range(many)]
        return tuple(one[k] for k in range(each - 1) for one in made)

    return call


def _regular(c: Call, x: Any, g: Any) -> Any:
    return F.add(g, x, alpha=c.get("norm_coefficient", 0.0))


def _adagrad(c: Call, rate: float, step: int, x: Any, g: Any, h: Any) -> Any:
    g = _regular(c, x, g)
    h = F.addcmul(h, g, g)
    below = F.add(F.sqrt(h), c.get("epsilon", 0.0))
    return F.addcdiv(x, g, below, value=-rate / (1 + step * c.get("decay_factor", 0.0))), h


def _adam(c: Call, rate: float, step: int, x: Any, g: Any, v: Any, h: Any) -> Any:
    alpha, beta = c.get("alpha", 0.9), c.get("beta", 0.999)
    g = _regular(c, x, g)
    v, h = F.lerp(g, v, alpha), F.lerp(F.mul(g, g), h, beta)
    if step > 0:
        rate = rate * (1 - beta**step) ** 0.5 / (1 - alpha**step)
    x = F.addcdiv(x, v, F.add(F.sqrt(h), c.get("epsilon", 0.0)), value=-rate)
    return F.mul(x, 1 - c.get("norm_coefficient_post", 0.0)), v, h


def _momentum(c: Call, rate: float, step: int, x: Any, g: Any, v: Any) -> Any:
    alpha, beta = c.get("alpha"), c.get("beta") if step > 0 else 1.0
    g = _regular(c, x, g)
    v = F.add(F.mul(v, alpha), g, alpha=beta)
    way = v if c.get("mode") == "standard" else F.add(g, v, alpha=alpha)
    return F.add(x, way, alpha=-rate), v


operator("ai.onnx.preview.training.Adagrad")(_optimizer(_adagrad, 3))
operator("ai.onnx.preview.training.Adam")(_optimizer(_adam, 4))
operator("ai.onnx.preview.training.Momentum")(_optimizer(_momentum, 3))
