"""Writes to arguments: caches and running statistics are updated where they lie, not copied there and back."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.fx import Node

from baracuda.torch.fx import filled_in, is_view
from baracuda.torch.lowering.common import F, along, cast, wrapped

if TYPE_CHECKING:
    from baracuda.torch.segment import Segment

aten = torch.ops.aten
COPY = aten.copy_.default


def written_early(nodes: Sequence[Node]) -> dict[Node, Node]:
    """Values that may be written to an argument as soon as they are known, with the argument.

    AOTAutograd has arguments written at the end of a graph, by `copy_`. Nothing that shows the argument may be read
    between the two.
    """
    order = {node: i for i, node in enumerate(nodes)}
    found: dict[Node, Node] = {}
    for copy in nodes:
        if copy.target is not COPY:
            continue
        to, value = copy.args[:2]
        if not isinstance(to, Node) or not isinstance(value, Node) or to.op != "placeholder" or value in found:
            continue
        if value.op != "call_function" or is_view(value.target):
            continue
        readers = [u for u in _readers(to) if u is not copy]
        before = all(u.op != "output" and order.get(u, 0) <= order[value] for u in readers)
        if before and all(u.op != "output" for u in _readers(value)):
            found[value] = to
    return found


def _readers(value: Node) -> list[Node]:
    """What reads a value or a view of it."""
    shown = [value]
    for node in shown:
        shown += [u for u in node.users if is_view(u.target) or (node is not value and u.target is operator.getitem)]
    return [u for node in shown for u in node.users]


def write(segment: Segment, to: Any, node: Any) -> None:
    """Has a node's value written to a tensor: of scatters into that very tensor no more than what they change.

    What computed the whole value is left for others that read it; where there are none, it is dead.
    """
    base = node.args[0] if node.args else None
    in_place = _IN_PLACE.get(node.target)
    if in_place is not None and isinstance(base, Node) and _same(segment, segment.values.get(base), to):
        in_place(segment, to, node)
    else:
        segment.do(F.copy, cast(segment.value(node), str(to.element)), out=to)


def _same(segment: Segment, x: Any, y: Any) -> bool:
    view = segment.view_of(x) if x is not None else None
    return view is not None and view == segment.view_of(y)


def _slice(segment: Segment, to: Any, node: Any) -> None:
    given = (*node.args[2:], *(0, None, None, 1)[len(node.args) - 2 :])
    dim, start, end, step = (filled_in(n, segment.value) for n in given)
    _part(segment, along(to, wrapped(dim, len(to.shape)), slice(start, end, step)), node.args[1])


def _select(segment: Segment, to: Any, node: Any) -> None:
    dim, index = filled_in(node.args[2:4], segment.value)
    _part(segment, along(to, wrapped(dim, len(to.shape)), index), node.args[1])


def _part(segment: Segment, to: Any, source: Any) -> None:
    x = segment.value(source)
    if tuple(x.shape) == tuple(to.shape):
        write(segment, to, source)
    else:
        segment.do(F.copy, cast(x, str(to.element)).broadcast_to(*to.shape), out=to)


def _index_copy(segment: Segment, to: Any, node: Any) -> None:
    dim, index, source = filled_in(node.args[1:4], segment.value)
    segment.do(F.index_copy, to, dim, index, source, out=to)


def _index_put(segment: Segment, to: Any, node: Any) -> None:
    from baracuda.torch.lowering.indexing import keyed

    indices, values = filled_in(node.args[1:3], segment.value)
    accumulate = bool(node.args[3]) if len(node.args) > 3 else bool(node.kwargs.get("accumulate", False))
    segment.do(F.index_put_, to, keyed(indices), values, accumulate)


_IN_PLACE: dict[Any, Any] = {
    aten.slice_scatter.default: _slice,
    aten.select_scatter.default: _select,
    aten.index_copy.default: _index_copy,
    aten.index_put.default: _index_put,
}
