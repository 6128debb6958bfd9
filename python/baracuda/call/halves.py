"""Gradients of several steps, of halves: computed in f32 and rounded once."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from baracuda import _core
from baracuda.call.autograd import VjpRule
from baracuda.describe.elements import Element
from baracuda.describe.errors import BaracudaError


def _element(x: Any) -> Element | None:
    """Of a tensor; None for what is none."""
    if x is None or isinstance(x, (bool, int, float, str)):
        return None
    try:
        return Element(_core.describe(x)[1])
    except BaracudaError:
        return None


def in_f32(rule: VjpRule) -> VjpRule:
    """Has a rule see halves as f32: its results and gradients, each in the half of the tensors, are those of f32, rounded.

    Args:
        rule: (*args) -> (y, pull), where one function's steps would round each. Its float tensors are all of one element.
    """

    @wraps(rule)
    def rounded_once(*args: Any, **kwargs: Any) -> tuple[Any, Callable[..., Any]]:
        from baracuda import functional as F

        halves = {e for x in (*args, *kwargs.values()) if (e := _element(x)) is not None and e.is_half}
        if len(halves) != 1:
            return rule(*args, **kwargs)
        (own,) = halves

        def wide(x: Any) -> Any:
            return F.cast(x, Element.F32) if _element(x) is own else x

        def narrow(x: Any) -> Any:
            if isinstance(x, tuple):
                return tuple(map(narrow, x))
            return F.cast(x, own) if _element(x) is Element.F32 else x

        y, pull = rule(*map(wide, args), **{name: wide(x) for name, x in kwargs.items()})

        def pull_halves(dy: Any) -> Any:
            return narrow(pull(tuple(map(wide, dy)) if isinstance(dy, tuple) else wide(dy)))

        return narrow(y), pull_halves

    return rounded_once
