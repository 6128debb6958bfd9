"""ztensor's numeric.Arithmetic: functions of single numbers, which expressions of arrays may call, too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from baracuda import functional as F
from baracuda.describe.elements import Element
from baracuda.engine.names import Name, Named


def _of(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function of numbers, rounded to the element; of arrays, and of what stands for them in UnaryOp, itself."""

    def run(element: Element, *args: Any) -> Any:
        if not all(isinstance(x, (int, float, np.generic)) for x in args):
            return fn(*args)
        return np.asarray(fn(*(np.asarray(x, element.numpy) for x in args))).item()

    return run


def _leaky(x: Any, alpha: Any) -> Any:
    return F.where(F.gt(x, 0), x, F.mul(x, alpha))


def _leaky_grad(x: Any, alpha: Any) -> Any:
    return F.where(F.gt(x, 0), F.ones_like(x), F.mul(F.ones_like(x), alpha))


def _sigmoid_grad(x: Any) -> Any:
    y = F.sigmoid(x)
    return F.sub(y, F.mul(y, y))


def _one(x: Any) -> Any:
    return F.add(F.mul(x, 0), 1)


def _row(words: str, name: str) -> Name:
    return Name(words, _of(getattr(F, name)), f"`F.{name}`")


class Ops(Named):
    """Arithmetic of one element, as `engine.ztensor.Ops()` gives it.

    Functions of Python numbers give the number that the element has; in `UnaryOp(a, ops.Tanh)` they are the functions of
    bc.functional.

    Args:
        element: Of the numbers.
    """

    system = "ztensor.Arithmetic"
    names: ClassVar[Mapping[str, Name]] = {
        "Add": _row("a b", "add"), "Sub": _row("a b", "sub"), "Mul": _row("a b", "mul"), "Div": _row("a b", "div"),
        "Tanh": _row("x", "tanh"), "Sigmoid": _row("x", "sigmoid"), "ReLU": _row("x", "relu"),
        "LeakyReLU": Name("x alpha", _of(_leaky), "`F.leaky_relu`"),
        "TanhGrad": Name("x", _of(lambda x: F.sub(1, F.square(F.tanh(x)))), "1 - tanh(x)^2"),
        "SigmoidGrad": Name("x", _of(_sigmoid_grad), "y (1 - y) of y = sigmoid(x)"),
        "ReLUGrad": Name("x", _of(lambda x: _leaky_grad(x, 0)), "1 above 0, else 0"),
        "LeakyReLUGrad": Name("x alpha", _of(_leaky_grad), "1 above 0, else alpha"),
        "FromFloat32": Name("f", _of(lambda x: x), "the number that the element has"),
        "FromFloat64": Name("f", _of(lambda x: x), "the same"),
        "One": Name("", lambda element: np.asarray(1, element.numpy).item(), "1"),
        "IsZero": Name("v", _of(lambda x: F.eq(x, 0)), "`F.eq(v, 0)`"),
        "Abs": _row("x", "abs"),
        "Sum": Name("s", lambda element, s: np.asarray(F.sum(np.asarray(s, element.numpy), dtype=element)).item(), "`F.sum`"),
        "Exp": _row("x", "exp"), "Log": _row("x", "log"), "Pow": _row("base exponent", "pow"), "Sqrt": _row("x", "sqrt"),
        "GreaterThan": _row("a b", "gt"),
    }  # fmt: skip

    def __init__(self, element: Any = "f32") -> None:
        super().__init__(Element.coerce(element))
