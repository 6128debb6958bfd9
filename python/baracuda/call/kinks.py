"""Steps of compositions with another gradient than that of the functions that they are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from baracuda import functional as F
from baracuda.call.compose import Composer, Value, composed


@composed(tensors="input")
def root(c: Composer, input: Value) -> Value:
    """The square root of a sum of squares, whose gradient is 0 where it is 0: that of a length there."""
    made: Value = c.of(F.sqrt, input)
    return made


def _root_vjp(input: Any) -> tuple[Any, Callable[[Any], Any]]:
    y = F.sqrt(input)
    return y, lambda dy: F.where(F.eq(y, 0), 0.0, F.div(dy, F.mul(y, 2.0)))


@composed(tensors="input")
def at_least(c: Composer, input: Value, least: float) -> Value:
    """The larger one of `input` and a number, whose gradient is that of `input` everywhere."""
    made: Value = c.of(F.clamp, input, least)
    return made


def _at_least_vjp(input: Any, least: float) -> tuple[Any, Callable[[Any], Any]]:
    return F.clamp(input, least), lambda dy: dy


root.vjp_rule = _root_vjp
at_least.vjp_rule = _at_least_vjp
