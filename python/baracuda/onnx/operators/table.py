"""The table of operators: which function of tensors each one is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import baracuda as bc
from baracuda import InvalidProblemError
from baracuda import functional as F
from baracuda.onnx.call import Call, Known

Rule = Callable[..., Any]


@dataclass(frozen=True)
class Operator:
    """One entry.

    Attributes:
        rule: `(call, *inputs)` to a result, or a tuple of them.
        view: Whether results may be views of inputs, or inputs themselves.
        raw: Whether inputs are given as they are (`Known`, lists), not as tensors.
        first: The first opset whose operator this is.
    """

    rule: Rule
    view: bool = False
    raw: bool = False
    first: int = 7


TABLE: dict[str, Operator] = {}


def operator(*names: str, view: bool = False, raw: bool = False) -> Callable[[Rule], Rule]:
    """Makes a function the rule of operators."""

    def note(rule: Rule) -> Rule:
        for name in names:
            if name in TABLE:
                raise AssertionError(f"{name} has two rules")
            TABLE[name] = Operator(rule, view, raw)
        return rule

    return note


# --- what several rules need


def arange(start: Any, end: Any = None, step: Any = 1, dtype: Any = None) -> Any:
    """`bc.functional.arange`, as a tensor."""
    return F.arange(start, end, step, dtype=dtype, device="cpu")


def full(size: Any, value: Any, dtype: Any = None) -> Any:
    """`bc.functional.full`, as a tensor."""
    return F.full(size, value, dtype=dtype, device="cpu")


def zeros(size: Any, dtype: Any = "f32") -> Any:
    """`bc.functional.zeros`, as a tensor."""
    return F.zeros(size, dtype=dtype, device="cpu")


def cast(x: Any, element: Any) -> Any:
    """`x` in an element: itself where it is of that."""
    wanted = bc.Element.coerce(element)
    return x if x.element is wanted else F.cast(x, wanted)


def reshaped(x: Any, shape: Any) -> Any:
    """A view in another shape, or a copy where there is none."""
    sizes = tuple(shape)
    try:
        return x.reshape(*sizes)
    except InvalidProblemError:
        return F.copy(x).reshape(*sizes)


def moved(x: Any, source: int, target: int) -> Any:
    """A view with a dimension at another place."""
    axes = [a for a in range(x.ndim) if a != source % x.ndim]
    axes.insert(target % x.ndim, source % x.ndim)
    return x.permute(*axes)


def swapped(x: Any, a: int, b: int) -> Any:
    """A view with two dimensions swapped."""
    axes = list(range(x.ndim))
    axes[a], axes[b] = axes[b], axes[a]
    return x.permute(*axes)


def not_negative(c: Call, i: int, index: Any, size: int) -> Any:
    """Indices that count from the end, counted from the front."""
    known = c.known(i)
    if known is not None:
        return Known(np.where(known < 0, known + size, known)).tensor
    return F.where(F.lt(index, 0), F.add(index, size), index)


def axis_of(c: Call, x: Any, name: str = "axis", default: int = 0) -> int:
    """An axis attribute, counted from the front."""
    axis = c.get(name, default)
    if not -x.ndim <= axis < x.ndim:
        c.wrong(f"{name}={axis} for a tensor of {x.ndim} dimensions", f"{-x.ndim} to {x.ndim - 1}")
    found: int = axis % x.ndim
    return found


def is_whole(x: Any) -> bool:
    """Whether a tensor holds integers or truths."""
    return x.element.is_integer or x.element is bc.Element.BOOL


def element_of(c: Call, code: int) -> Any:
    """The element that a number of ONNX's types stands for."""
    import onnx

    try:
        return bc.Element.coerce(onnx.helper.tensor_dtype_to_np_dtype(code))
    except (KeyError, bc.BaracudaError):
        kinds = onnx.TensorProto.DataType
        name = kinds.Name(code) if code in kinds.values() else code
        c.refuse(f"elements of type {name}", "one that kernels here take", code="element")
