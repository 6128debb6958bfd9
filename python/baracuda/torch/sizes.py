"""Sizes that torch left open: which they are, where a call says what they are, and what expressions of them come to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from sympy import Integer
from torch.fx import Node

from baracuda.torch.layout import Layout
from baracuda.torch.table import NotMapped

Symbol = Any  # sympy.Symbol
Key = tuple[int, ...]
_SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)


def is_number(value: Any) -> bool:
    """Whether a node's value is a number, open or not."""
    return isinstance(value, (*_SYMBOLIC, bool, int, float))


def _parts(value: Any) -> Iterator[Any]:
    """The symbolic numbers in a node's value."""
    if isinstance(value, _SYMBOLIC):
        yield value
    elif isinstance(value, torch.Tensor):
        if value.layout is torch.strided:
            for number in (*value.shape, *value.stride()):
                yield from _parts(number)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _parts(part)


def _symbols(value: Any) -> set[Symbol]:
    return {s for part in _parts(value) for s in part.node.expr.free_symbols}


class Symbols:
    """The open sizes of a graph that its arguments say, in the order in which keys have them.

    Args:
        placeholders: The graph's arguments.
        nodes: All of its nodes.
    """

    def __init__(self, placeholders: Sequence[Node], nodes: Sequence[Node]) -> None:
        self.sources: dict[Symbol, tuple[int, int | None]] = {}
        for i, node in enumerate(placeholders):
            value = node.meta.get("val")
            if isinstance(value, torch.SymInt) and value.node.expr.is_Symbol:
                self.sources.setdefault(value.node.expr, (i, None))
            elif isinstance(value, torch.Tensor):
                for dim, size in enumerate(value.shape):
                    if isinstance(size, torch.SymInt) and size.node.expr.is_Symbol:
                        self.sources.setdefault(size.node.expr, (i, dim))
        used = {s for node in nodes for s in _symbols(node.meta.get("val"))}
        self.sources = {s: at for s, at in self.sources.items() if s in used}

    def key(self, args: Sequence[Any]) -> Key:
        """What they are in a call."""
        return tuple(int(args[i]) if dim is None else int(args[i].shape[dim]) for i, dim in self.sources.values())

    def at(self, key: Key) -> Numbers:
        """What expressions of them come to."""
        return Numbers(dict(zip(self.sources, map(Integer, key), strict=True)))


class Numbers:
    """Numbers in the place of symbols."""

    def __init__(self, known: Mapping[Symbol, Integer]) -> None:
        self.known = known

    def of(self, value: Any) -> Any:
        """A number, whatever of it is open.

        Raises:
            NotMapped: Only a run knows it.
        """
        if not isinstance(value, _SYMBOLIC):
            return value
        found = value.node.expr.xreplace(self.known) if self.known else value.node.expr
        if found.free_symbols:
            raise NotMapped("a number or a size that only a run knows")
        kind = int if isinstance(value, torch.SymInt) else float if isinstance(value, torch.SymFloat) else bool
        return kind(found)

    def knows(self, value: Any) -> bool:
        """Whether a node's value is a number that is known before it runs."""
        return is_number(value) and not (_symbols(value) - self.known.keys())

    def layout(self, value: Any) -> Layout | None:
        """What torch promises of a tensor; None of anything else."""
        if not isinstance(value, torch.Tensor):
            return None
        if value.layout is not torch.strided:
            raise NotMapped(f"a tensor of layout {value.layout}")
        if value.device.type != "cpu":
            raise NotMapped(f"a tensor on {value.device}")
        return Layout(tuple(map(self.of, value.shape)), tuple(map(self.of, value.stride())), value.dtype)
