"""Which function of `bc.functional` does what an overload of torch's does: one row for each.

A row is a function `(want, *args, **kwargs)`: the overload's arguments, with tensors without memory in the place of
tensors, behind what its results have to be (`Want`). It calls `bc.functional`, views, or plans, and returns a tensor or a
tuple of them, None where nobody reads one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch

from baracuda.torch.layout import Layout

Overload: TypeAlias = Any  # torch._ops.OpOverload
Row: TypeAlias = Callable[..., Any]
ROWS: dict[Overload, Row] = {}


class NotMapped(Exception):
    """A call that baracuda has nothing for: torch runs it. Says why."""


@dataclass(frozen=True, slots=True)
class Want:
    """What the results of a call have to be, and which overload is called.

    Attributes:
        target: The overload.
        results: Of each result what torch promised; None for what is no tensor.
        operands: Of each argument that is a tensor, the same.
    """

    target: Overload
    results: tuple[Layout | None, ...]
    operands: tuple[Layout | None, ...] = ()

    @property
    def result(self) -> Layout:
        """The only, or the first one."""
        if not self.results or self.results[0] is None:
            raise NotMapped("the result is no tensor")
        return self.results[0]

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""
        return self.result.shape

    @property
    def element(self) -> str:
        """Its element."""
        return self.result.element

    @property
    def name(self) -> str:
        """The overload's name without its namespace, as `add` of `aten.add.Tensor`."""
        return str(self.target._schema.name.partition("::")[2])


def overloads(names: str) -> Iterator[Overload]:
    """The overloads that names stand for: `add.Tensor`, or `add` for all that write to none of their arguments."""
    for name in names.split():
        packet, _, one = name.partition(".")
        found = getattr(torch.ops.aten, packet)
        for overload in [one] if one else found.overloads():
            op = getattr(found, overload)
            if one or not op._schema.is_mutable:
                yield op


def lowers(names: str) -> Callable[[Row], Row]:
    """Has a function be the row of these overloads of aten."""

    def put(row: Row) -> Row:
        for op in overloads(names):
            if op in ROWS:
                raise AssertionError(f"{op} has two rows")
            ROWS[op] = row
        return row

    return put
