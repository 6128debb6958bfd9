"""Nodes of torch's graphs, without the types that torch gives to what may be anything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.fx.node import map_arg


def filled_in(template: Any, value: Callable[[Any], Any]) -> Any:
    """Arguments with values in the place of nodes."""
    return map_arg(template, value)


def called(node: Any, value: Callable[[Any], Any]) -> Any:
    """What a node's function gives for its arguments, with values in the place of nodes."""
    return node.target(*filled_in(node.args, value), **filled_in(dict(node.kwargs), value))


def is_view(target: Any) -> bool:
    """Whether an overload's results share memory with its arguments."""
    schema = getattr(target, "_schema", None)
    shares = schema is not None and any(r.alias_info is not None for r in schema.returns)
    return shares or str(target) == "aten._unsafe_view.default"  # whose schema does not say so
