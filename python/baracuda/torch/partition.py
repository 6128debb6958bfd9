"""Which nodes of a graph become programs, and which torch runs between them."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Node

from baracuda.describe.errors import BaracudaError
from baracuda.torch.dropout import DRAWS
from baracuda.torch.segment import Segment
from baracuda.torch.sizes import Numbers
from baracuda.torch.table import ROWS, NotMapped
from baracuda.torch.writes import COPY, written_early

_ASSERTIONS = frozenset([torch.ops.aten._assert_tensor_metadata.default])


@dataclass(frozen=True, slots=True)
class Group:
    """Nodes that run one after the other, in one program or in torch."""

    nodes: list[Node]
    by_torch: bool


def calls_of(nodes: Sequence[Node], numbers: Numbers, constants: Mapping[Node, Any]) -> list[Node]:
    """The nodes that have to run: neither known, nor numbers, nor facts about fake tensors."""
    return [
        n for n in nodes
        if n.op == "call_function" and n not in constants and not numbers.knows(n.meta.get("val")) and n.target not in _ASSERTIONS
    ]  # fmt: skip


def tried(calls: Sequence[Node], numbers: Numbers, constants: dict[Node, Any]) -> tuple[Segment, dict[Node, str]]:
    """All nodes in one segment, and those that baracuda has nothing for, with the reasons."""
    segment, refused = Segment(numbers, constants, written_early(calls)), dict[Node, str]()
    for node in calls:
        source = node.args[0] if node.target is operator.getitem else None
        if isinstance(source, Node) and source not in segment.values:
            continue  # a part of what torch makes
        if is_random(node):
            refused[node] = "drawn by torch, from its generator, so that numbers are eager's"
            continue
        try:
            segment.add(node)
        except NotMapped as error:
            refused[node] = str(error)
        except BaracudaError as error:
            refused[node] = " ".join(str(error).split())[:300]
        except Exception as error:  # a row that is wrong for this call must not end the user's: torch has it
            refused[node] = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    return segment, refused


def is_random(node: Node) -> bool:
    """Whether it draws numbers: it is of the kind that does, and torch's generator is what it draws from."""
    return node.target not in ROWS and torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())


def _mutates(node: Node) -> bool:
    """Whether it writes to something else than an argument of the graph at its end."""
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return node.target is not operator.getitem and node.target not in DRAWS and not _counts(node)
    return bool(schema.is_mutable) and node.target is not COPY


def _counts(node: Node) -> bool:
    """Whether it computes with sizes that only a run knows."""
    return isinstance(node.meta.get("val"), (torch.SymInt, torch.SymFloat, torch.SymBool))


def groups(calls: Sequence[Node], refused: Mapping[Node, str], known: Sequence[Node]) -> list[Group]:
    """As few programs as there can be: each takes all that is ready, then torch does what is ready for it, and so on.

    Random functions keep their order, so that they draw what eager torch does; they come first where they wait for
    nothing. Writes to arguments come last. Where torch's functions write to values, all nodes keep their order.
    """
    made_by_torch = set(refused)
    for node in calls:
        if node.target is operator.getitem and node.args[0] in made_by_torch:
            made_by_torch.add(node)
    if any(map(_mutates, calls)):
        return _runs(calls, made_by_torch)
    last = [n for n in calls if n.target is COPY]
    body = [n for n in calls if n.target is not COPY]
    found = _reordered(body, made_by_torch, set(known))
    return [*found, Group(last, by_torch=True)] if last else found


def _runs(calls: Sequence[Node], by_torch: set[Node]) -> list[Group]:
    found: list[Group] = []
    for node in calls:
        mine = node in by_torch or _mutates(node) or node.target is COPY
        if not found or found[-1].by_torch != mine:
            found.append(Group([], mine))
        found[-1].nodes.append(node)
    return found


def _reordered(calls: Sequence[Node], by_torch: set[Node], done: set[Node]) -> list[Group]:
    before: dict[Node, Node] = {}  # of each random function the one before it
    drawn: Node | None = None
    for node in filter(is_random, calls):
        if drawn is not None:
            before[node] = drawn
        drawn = node
    here = set(calls)
    found: list[Group] = []
    left = list(calls)
    turn = True  # torch's: random functions draw first
    while left:
        taken: list[Node] = []
        later: list[Node] = []
        for node in left:
            waits = [n for n in (*node.all_input_nodes, *([before[node]] if node in before else [])) if n in here]
            mine = (node in by_torch) == turn and all(n in done for n in waits)
            (taken if mine else later).append(node)
            if mine:
                done.add(node)
        if taken:
            found.append(Group(taken, turn))
        left, turn = later, not turn
    return found
