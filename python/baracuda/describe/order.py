"""In which order the elements of results lie: a descriptor says which of its tensors decide, csrc/bindings/order.cpp how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from baracuda import _core

Strides = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Order:
    """What decides the order of a result.

    Attributes:
        rule: One of `_core.order_rules`.
        of: Names of the tensors that decide; all that are read by default.
    """

    rule: str
    of: tuple[str, ...] = ()

    @property
    def code(self) -> int:
        """The rule as the engine has it."""
        return _core.order_rules.index(self.rule)

    def strides(self, shape: Strides, operands: Sequence[tuple[Strides, Strides]], numpy: bool) -> Strides | None:
        """Strides of a result of a shape; None for C order.

        Args:
            shape: Its sizes.
            operands: Shapes and strides of the tensors that decide.
            numpy: Whether NumPy's rules hold, not torch's.
        """
        return _core.result_strides(self.code, numpy, shape, tuple(operands)) if operands else None


ELEMENTWISE = Order("elementwise")
MIXED = Order("mixed")  # elementwise, of which one operand is a number
CHANNELS = Order("channels")


SAME = Order("same")


def as_one(name: str) -> Order:
    """That of one tensor, which has the result's shape."""
    return Order("same", (name,))


def channels_of(*names: str) -> Order:
    """Channels last where one of these tensors has them so."""
    return Order("channels", names)
