"""One partition: nodes of torch's graph that become one program."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import Node

import baracuda as bc
import baracuda.functional as F
from baracuda.torch.fx import filled_in, is_view
from baracuda.torch.layout import Layout, dense_strides, is_dense, order_of
from baracuda.torch.sizes import Numbers, is_number
from baracuda.torch.table import ROWS, NotMapped, Want
from baracuda.torch.writes import COPY, write


@dataclass(frozen=True, slots=True)
class Made:
    """How a value that leaves a partition is found in what its program made, or in an argument.

    Attributes:
        node: Whose value it is.
        source: The number of the result, or the argument's node.
        layout: What torch promised.
        offset: Of its first element in the source; None where the source is as promised, and -1 where it has to be copied
            to what was promised.
    """

    node: Node
    source: int | Node
    layout: Layout
    offset: int | None


COPIED = -1


@dataclass(slots=True)
class Part:
    """A partition that is ready to run.

    Attributes:
        nodes: What it does.
        plan: Its program; None where it has none but views.
        leaves: The values that it is given, and how they lie.
        results: Shapes and dtypes of what it makes.
        made: What leaves it.
    """

    nodes: list[Node]
    plan: Any
    leaves: list[tuple[Node, Layout]]
    results: list[tuple[tuple[int, ...], torch.dtype]]
    made: list[Made] = field(default_factory=list)


class Segment:
    """Takes nodes down as launches of one graph.

    Args:
        numbers: What open sizes are.
        constants: Tensors that are known already, by node.
        early: Values that are written to arguments as soon as they are known, with these.
    """

    def __init__(
        self, numbers: Numbers, constants: Mapping[Node, torch.Tensor], early: Mapping[Node, Node] | None = None
    ) -> None:
        self.early = early or {}
        self.numbers = numbers
        self.graph = bc.ComputeGraph()
        self.nodes: list[Node] = []
        self.values: dict[Node, Any] = {}
        self.leaves: list[tuple[Node, Layout]] = []
        self.wholes: dict[Any, Any] = {}  # of each slot a tensor that is all of it
        self.constants = constants
        self.writes = False

    # --- taking down

    def value(self, node: Node) -> Any:
        """What stands for a node's value: a tensor without memory, or a number."""
        if node in self.values:
            return self.values[node]
        known = node.meta.get("val")
        if is_number(known):
            return self.numbers.of(known)
        if node in self.constants:
            self.values[node] = bc.from_dlpack(self.constants[node])
            return self.values[node]
        layout = self.numbers.layout(known)
        if layout is None:
            raise NotMapped(f"an argument that is a {type(known).__name__}")
        spec = bc.TensorSpec(layout.shape, layout.element, layout.strides)
        self.values[node] = self.leaf(node, spec)
        self.leaves.append((node, layout))
        return self.values[node]

    def leaf(self, node: Node, spec: bc.TensorSpec) -> Any:
        """What stands for an argument."""
        return self.graph.add_leaf(spec, name=node.name)

    def do(self, fn: Any, *args: Any, **kwargs: Any) -> Any:
        """Takes a call down."""
        return self.graph.add_op(fn, *args, name="", **kwargs)

    def view_of(self, x: Any) -> Any:
        """Where a tensor lies; None of one that has memory."""
        return self.graph.view_of(x)

    def add(self, node: Node) -> None:
        """One more node.

        Raises:
            NotMapped: There is no row for it, or the row has nothing for this call.
            BaracudaError: A function refuses the call.
        """
        if node.target is operator.getitem:
            self._part_of(node)
        elif node.target is COPY:
            self._write(node)
        else:
            self._call(node)
        self.nodes.append(node)

    def _part_of(self, node: Any) -> None:
        self.values[node] = self.values[node.args[0]][node.args[1]]

    def _call(self, node: Node) -> None:
        row = ROWS.get(node.target)
        if row is None:
            raise NotMapped("baracuda has no row for it")
        promised = node.meta.get("val")
        results = tuple(map(self.numbers.layout, promised if isinstance(promised, (tuple, list)) else (promised,)))
        operands = tuple(self.numbers.layout(a.meta.get("val")) if isinstance(a, Node) else None for a in node.args)
        args, kwargs = filled_in((node.args, dict(node.kwargs)), self.value)
        got = self.do(row, Want(node.target, results, operands), *args, **kwargs)
        got = self._kept(node, results, got, [args, kwargs])
        self.values[node] = got
        if node in self.early:
            target = self.value(self.early[node])
            write(self, target, node)
            self.values[node] = target
            self.writes = True

    def _kept(self, node: Node, results: tuple[Layout | None, ...], got: Any, given: Any) -> Any:
        """Results that are what was promised, in memory of their own where torch's are."""
        several = isinstance(node.meta.get("val"), (tuple, list))
        parts = list(got) if several and isinstance(got, (tuple, list)) else [got]
        if len(parts) != len(results):
            raise NotMapped(f"{len(parts)} results, where torch has {len(results)}")
        shared = is_view(node.target)
        lent = set() if shared else {self._slot(x) for x in _tensors(given)}
        for i, (x, layout) in enumerate(zip(parts, results, strict=True)):
            if x is None or layout is None:
                continue
            if tuple(x.shape) != layout.shape or str(x.element) != layout.element:
                got_text = f"{x.element}{list(x.shape)}"
                raise NotMapped(f"got {got_text}, where torch has {layout.element}{list(layout.shape)}")
            if not shared and self._slot(x) in lent:
                parts[i] = self.do(F.copy, x)
            lent.add(self._slot(parts[i]))
            self._remember(parts[i])
        return tuple(parts) if several else parts[0]

    def _slot(self, x: Any) -> Any:
        view = self.view_of(x)
        return x if view is None else view.slot

    def _remember(self, x: Any) -> None:
        view = self.view_of(x)
        if view is None or view.slot.kind != "temporary" or view.numel != view.slot.count:
            return
        if is_dense(view.shape, view.strides):
            self.wholes.setdefault(view.slot, x)

    def _write(self, node: Node) -> None:
        """`copy_` of a value to an argument, where that lies."""
        to, source = node.args[:2]
        if not isinstance(to, Node) or not isinstance(source, Node) or to.op != "placeholder":
            raise NotMapped("it writes to what is no argument, or a number")
        target = self.value(to)
        if self.early.get(source) is not to:
            value = self.value(source)
            if str(value.element) != str(target.element) or tuple(value.shape) != tuple(target.shape):
                raise NotMapped("it casts or broadcasts")
            self.do(F.copy, value, out=target)
        self.values[node] = target
        self.writes = True

    # --- what leaves it

    def finish(self, leaving: Sequence[Node], passes: Any) -> Part:
        """The program of what was taken down, and how its results become what torch promised."""
        results: list[tuple[Any, torch.dtype]] = []
        made: list[Made] = []
        by_slot: dict[Any, list[tuple[Node, Any, Any, Layout]]] = {}
        for node in leaving:
            layout = self.numbers.layout(node.meta["val"])
            x = self.values[node]
            if layout is None or x is None:
                raise AssertionError(f"{node} leaves, but is no tensor")
            view = self.view_of(x)
            if view is not None and view.slot.kind == "leaf" and layout.same_as(view.shape, view.strides):
                leaf, own = next((n, at) for n, at in self.leaves if self._slot(self.values[n]) is view.slot)
                as_is = own.same_as(view.shape, view.strides) and view.offset == 0
                made.append(Made(node, leaf, layout, None if as_is else view.offset))
                continue
            by_slot.setdefault(node if view is None or view.slot.kind != "temporary" else view.slot, []).append(
                (node, x, view, layout)
            )
        for slot, users in by_slot.items():
            made += self._results_of(slot, users, results)
        plan = None
        if results or self.writes:
            self.graph.outputs(*[x for x, _ in results])
            plan = self.graph.compile(passes=passes)
        shapes = [(tuple(x.shape), dtype) for x, dtype in results]
        return Part(self.nodes, plan, self.leaves, shapes, made)

    def _results_of(
        self, slot: Any, users: list[tuple[Node, Any, Any, Layout]], results: list[tuple[Any, torch.dtype]]
    ) -> Iterable[Made]:
        """All of a value's memory as one result that others are views of, or a result for each."""
        whole = self.wholes.get(slot)
        if whole is not None and all(layout.same_as(view.shape, view.strides) for _, _, view, layout in users):
            order = order_of(whole.shape, whole.strides)
            flat = whole.permute(*order) if order else whole
            results.append((flat, users[0][3].dtype))
            shape = tuple(flat.shape)
            for node, _, view, layout in users:
                as_is = layout.shape == shape and layout.contiguous and view.offset == 0
                yield Made(node, len(results) - 1, layout, None if as_is else view.offset)
            return
        for node, x, _, layout in users:
            yield self._result(node, x, layout, results)

    def _result(self, node: Node, x: Any, layout: Layout, results: list[tuple[Any, torch.dtype]]) -> Made:
        once = tuple(1 if s == 0 and n > 1 else n for n, s in zip(layout.shape, layout.strides, strict=True))
        base = Layout(once, layout.strides, layout.dtype)
        if once != layout.shape:
            x = x[tuple(slice(0, 1) if n != m else slice(None) for n, m in zip(layout.shape, once, strict=True))]
        order = base.order
        results.append((x.permute(*order) if order and base.dense else x, layout.dtype))
        if not base.dense:
            return Made(node, len(results) - 1, layout, COPIED)
        lies = dense_strides(once, order)
        as_is = once == layout.shape and base.contiguous and base.same_as(once, lies)
        return Made(node, len(results) - 1, layout, None if as_is else 0)


def _tensors(value: Any) -> list[Any]:
    if isinstance(value, bc.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [x for part in value for x in _tensors(part)] if isinstance(value, (list, tuple)) else []
