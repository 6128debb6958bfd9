"""The table of the functions of three operands: formula and gradients of each. See ternary.py."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kind:
    """One function; its kernel is in csrc/ops/ternary, its formulas are what baracuda.prove.reference.evaluate takes.

    Attributes:
        text: One line with the formula.
        value: f(a, b, c).
        size: sum |terms| of the value, where its bound is of kind "sum".
        slopes: The derivatives with respect to a, b and c.
        bounds: An operand b or c that is not there is a bound that nothing lies beyond.
        numbers: What it takes besides, with the values that are tested.
        c_range: Where c is sampled.
        formed: The largest size of what is formed on the way to the value or a derivative, and must fit.
    """

    text: str
    value: str
    size: str = ""
    slopes: tuple[str, str, str] = ("", "", "")
    bounds: bool = False
    numbers: tuple[tuple[str, float], ...] = ()
    c_range: tuple[float, float] = (-3, 3)
    formed: str = "0"


_VALUE = (("value", 2.0),)
KINDS = {
    "addcmul": Kind(
        "y = a + value b c; integers wrap", "a + value * b * c", "abs(a) + abs(value * b * c)",
        ("1", "value * c", "value * b"), numbers=_VALUE, formed="abs(value * b)",
    ),
    "addcdiv": Kind(
        "y = a + value b / c", "a + value * b / c", "abs(a) + abs(value * b / c)",
        ("1", "value / c", "-value * b / (c * c)"), numbers=_VALUE, c_range=(0.4, 3),
        formed="maximum(abs(value * b), abs(value * b / c))",
    ),
    "lerp": Kind(
        "y = a + c (b - a), exact at c = 0 and c = 1",
        "where(abs(c) < 0.5, a + c * (b - a), b - (b - a) * (1 - c))",
        "abs(a) + abs(b) + abs(c * (b - a)) + abs((b - a) * (1 - c))", ("1 - c", "c", "b - a"),
    ),
    "clamp_tensors": Kind(
        "y = min(max(a, b), c); NaN is kept", "minimum(maximum(a, b), c)",
        slopes=("where((a >= b) & (a <= c), 1, 0)", "where((a < b) & (b < c), 1, 0)", "where((a > c) | (c < b), 1, 0)"),
        bounds=True,
    ),
}  # fmt: skip
