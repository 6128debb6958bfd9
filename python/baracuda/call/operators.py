"""Python's operators as functions of bc.functional, for values that stand for arrays; those of bc.Tensor are the engine's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

C = TypeVar("C", bound=type)

_BINARY = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "floordiv": "floor_divide", "mod": "remainder", "pow": "pow",
    "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift", "matmul": "matmul",
}  # fmt: skip
_COMPARISONS = ("lt", "le", "eq", "ne", "gt", "ge")
_UNARY = {"neg": "neg", "abs": "abs", "invert": "bitwise_not"}
# Methods, with the tensor first; as bc.Tensor has them.
METHODS = {
    "sum": "sum", "mean": "mean", "prod": "prod", "max": "max", "min": "min", "argmax": "argmax", "argmin": "argmin",
    "all": "all", "any": "any", "std": "std", "var": "var", "abs": "abs", "exp": "exp", "log": "log", "sqrt": "sqrt",
    "clip": "clip", "astype": "cast",
}  # fmt: skip
CONVERSIONS = {"float": "f32", "int": "i32"}


# What NumPy calls them: its arrays on the left of an operator ask for these.
OF_NUMPY = {
    "add": "add", "subtract": "sub", "multiply": "mul", "divide": "div", "floor_divide": "floor_divide",
    "remainder": "remainder", "power": "pow", "matmul": "matmul", "bitwise_and": "bitwise_and", "bitwise_or": "bitwise_or",
    "bitwise_xor": "bitwise_xor", "left_shift": "bitwise_left_shift", "right_shift": "bitwise_right_shift", "less": "lt",
    "less_equal": "le", "equal": "eq", "not_equal": "ne", "greater": "gt", "greater_equal": "ge",
}  # fmt: skip


def with_operators(kind: C) -> C:
    """Class decorator: `a + b` is `F.add(a, b)`, `a.sum()` is `F.sum(a)`, and so on."""
    for name, function in METHODS.items():
        setattr(kind, name, _method(function))
    for name, element in CONVERSIONS.items():
        setattr(kind, name, _conversion(element))
    for name, function in _BINARY.items():
        setattr(kind, f"__{name}__", _binary(function))
        setattr(kind, f"__r{name}__", _binary(function, swapped=True))
    for name in _COMPARISONS:
        setattr(kind, f"__{name}__", _binary(name))
    for name, function in _UNARY.items():
        setattr(kind, f"__{name}__", _unary(function))
    return kind


def _binary(name: str, swapped: bool = False) -> Callable[..., Any]:
    def method(self: Any, other: Any) -> Any:
        from baracuda import functional as F

        return getattr(F, name)(other, self) if swapped else getattr(F, name)(self, other)

    return method


def _method(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **options: Any) -> Any:
        from baracuda import functional as F

        return getattr(F, name)(self, *args, **options)

    return method


def _conversion(element: str) -> Callable[..., Any]:
    def method(self: Any) -> Any:
        from baracuda import functional as F

        return self if str(self.element) == element else F.cast(self, element)

    return method


def _unary(name: str) -> Callable[..., Any]:
    def method(self: Any) -> Any:
        from baracuda import functional as F

        return getattr(F, name)(self)

    return method
