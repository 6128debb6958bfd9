"""A graph with open sizes as one program of `bc.Dim`s, where all of it can be one."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Node

import baracuda as bc
from baracuda import _core
from baracuda.torch.dropout import draw_mask
from baracuda.torch.fx import filled_in
from baracuda.torch.layout import Layout, dense_strides, order_of
from baracuda.torch.partition import calls_of
from baracuda.torch.report import current
from baracuda.torch.segment import Segment
from baracuda.torch.sizes import Key, Numbers, Symbols, is_number
from baracuda.torch.table import NotMapped


@dataclass(frozen=True, slots=True)
class _Source:
    """Where a result comes from: an input, or a root that the program makes, from this element on."""

    given: int | None
    root: int = 0
    offset: int = 0


Root = tuple[Node, tuple[int, ...]]  # whose value it is, and in which order its dimensions lie


class _TracedSegment(Segment):
    """Nodes that are called while `bc.trace` runs them."""

    given: dict[Node, Any]

    def leaf(self, node: Node, spec: bc.TensorSpec) -> Any:
        """What `bc.trace` gave for it."""
        return self.given[node]

    def do(self, fn: Any, *args: Any, **kwargs: Any) -> Any:
        """A plain call: the tracer takes it down."""
        return fn(*args, **kwargs)

    def view_of(self, x: Any) -> Any:
        """Where the tracer has it."""
        tracer: Any = _core.tracer()
        return tracer.view_of(x)


class OpenProgram:
    """One program for all sizes up to a maximum of each.

    Args:
        nodes: The graph's nodes.
        symbols: Its open sizes.
        most: The largest that it shall serve.
        passes: Names of passes; None for all.

    Raises:
        NotMapped: Not all of it can be one such program.
        BaracudaError: A kernel does not take such sizes.
    """

    def __init__(self, nodes: Sequence[Node], symbols: Symbols, most: Key, passes: Any) -> None:
        began = time.perf_counter()
        self.symbols, self.most = symbols, most
        self.params = [n for n in nodes if n.op == "placeholder"]
        if any(n.op == "get_attr" for n in nodes):
            raise NotMapped("tensors that the graph holds")
        output: Any = next(n for n in nodes if n.op == "output")
        self.results: list[Any] = list(output.args[0])
        calls = calls_of(nodes, symbols.at(most), {})
        self.drawn: list[Any] = [n for n in calls if n.target is draw_mask]
        self.calls = [n for n in calls if n.target is not draw_mask]
        used = {n for call in self.calls for n in call.all_input_nodes} | {
            r for r in self.results if isinstance(r, Node)
        }
        self.inputs = [n for n in (*self.params, *self.drawn) if n in used and not is_number(n.meta.get("val"))]
        self.said = self._said()
        self.sources: list[_Source] = []
        self.roots: list[Root] = []
        plan = bc.trace(self._interpret, *self._specs()).compile(passes=passes)
        self.program = plan.program
        self.sizes: dict[Key, _Sizes] = {}
        now = current()
        now.partitions += 1
        now.launches += plan.launches
        now.lowering += time.perf_counter() - began

    def _said(self) -> list[tuple[int, int]]:
        """Which dimension of which input each open size is."""
        found: dict[Any, tuple[int, int]] = {}
        for i, node in enumerate(self.inputs):
            value: Any = node.meta["val"]
            for dim, size in enumerate(value.shape):
                if not isinstance(size, int) and size.node.expr.is_Symbol:
                    found.setdefault(size.node.expr, (i, dim))
        if not all(symbol in found for symbol in self.symbols.sources):
            raise NotMapped("a size that no tensor has")
        return [found[symbol] for symbol in self.symbols.sources]

    def _specs(self) -> list[bc.TensorSpec]:
        dims = {s: bc.Dim(str(s), max=n) for s, n in zip(self.symbols.sources, self.most, strict=True)}
        specs = []
        for node in self.inputs:
            value: Any = node.meta["val"]
            fixed = all(isinstance(n, int) for n in value.stride())
            parted = _parted(value)
            if not value.is_contiguous() and not (fixed and len(parted) == value.ndim):
                raise NotMapped("an argument with open strides")
            shape: Any = tuple(n if isinstance(n, int) else dims[n] for n in parted)
            strides = None if value.is_contiguous() else tuple(map(int, value.stride()))
            specs.append(bc.TensorSpec(shape, value.dtype, strides))
        return specs

    def _interpret(self, *given: Any) -> tuple[Any, ...]:
        """The graph at the sizes of these tensors."""
        numbers = self.symbols.at(tuple(given[i].shape[dim] for i, dim in self.said))
        segment = _TracedSegment(numbers, {})
        whole = [_layout_of(n, numbers).shape for n in self.inputs]
        segment.given = {
            n: x if tuple(x.shape) == shape else x.reshape(*shape)
            for n, x, shape in zip(self.inputs, given, whole, strict=True)
        }
        for call in self.calls:
            segment.add(call)
        if segment.writes:
            raise NotMapped("it writes to arguments")
        self.roots = []
        sources = [self._source(segment, result) for result in self._tensors(numbers)]
        if self.sources not in ([], sources):
            raise NotMapped("a part of a result whose place follows sizes")
        self.sources = sources
        made = [(segment.values[node], order) for node, order in self.roots]
        return tuple(x.permute(*order) if order else x for x, order in made)

    def _tensors(self, numbers: Numbers) -> list[Node]:
        """The results that are tensors."""
        return [r for r in self.results if isinstance(r, Node) and not numbers.knows(r.meta.get("val"))]

    def _source(self, segment: _TracedSegment, result: Node) -> _Source:
        layout = _layout_of(result, segment.numbers)
        if result in self.inputs:
            return _Source(self.inputs.index(result))
        view = segment.view_of(segment.values[result])
        lies = view is not None and layout.same_as(view.shape, view.strides)
        if lies and view.slot.kind == "leaf":
            slots = [segment.view_of(segment.given[n]).slot for n in self.inputs]
            return _Source(slots.index(view.slot), 0, view.offset)
        whole: Any = segment.wholes.get(view.slot) if lies else None
        node = next((n for n, x in segment.values.items() if x is whole), None) if whole is not None else None
        if node is not None:
            order = order_of(whole.shape, whole.strides)
            return _Source(None, self._root((node, order)), view.offset)
        if not layout.dense:
            raise NotMapped("a result with gaps")
        return _Source(None, self._root((result, layout.order)))

    def _root(self, root: Root) -> int:
        if root not in self.roots:
            self.roots.append(root)
        return self.roots.index(root)

    def _sizes_at(self, key: Key) -> _Sizes:
        """What the sizes of a call decide."""
        found = self.sizes.get(key)
        if found is not None:
            return found
        numbers = self.symbols.at(key)
        results = self._tensors(numbers)
        layouts = [_layout_of(r, numbers) for r in results]
        for result, layout, source in zip(results, layouts, self.sources, strict=True):
            node, order = self.roots[source.root] if source.given is None else (None, ())
            if node is result and not layout.same_as(layout.shape, dense_strides(layout.shape, order)):
                raise NotMapped("a result that lies in another order at these sizes")
        roots = [(_layout_of(node, numbers), order) for node, order in self.roots]
        made = [(tuple(layout.shape[i] for i in order), layout.dtype) for layout, order in roots]
        given: list[tuple[int, ...] | None] = []
        for node in self.inputs:
            value: Any = node.meta["val"]
            parted = [n if isinstance(n, int) else int(numbers.known[n]) for n in _parted(value)]
            given.append(None if len(parted) == value.ndim else tuple(parted))
        return self.sizes.setdefault(key, _Sizes(numbers, given, made, layouts))

    def serves(self, key: Key) -> bool:
        """Whether it is for such sizes: those of 0 and 1 broadcast and lie in other ways."""
        return all(1 < n <= most for n, most in zip(key, self.most, strict=True))

    def __call__(self, args: list[Any], key: Key) -> list[Any]:
        """Runs it.

        Raises:
            InvalidProblemError: It is not for these arguments; nothing was written.
        """
        sizes = self._sizes_at(key)
        began, now, numbers = time.perf_counter(), current(), sizes.numbers
        known = dict(zip(self.params, args, strict=True))
        for node in self.drawn:
            shape, strides, keep = filled_in(node.args, lambda n: numbers.of(n.meta["val"]))
            known[node] = draw_mask(shape, strides, keep)
        whole = [known[n] for n in self.inputs]
        given = [x if parted is None else x.view(parted) for x, parted in zip(whole, sizes.given, strict=True)]
        made = [torch.empty(shape, dtype=dtype) for shape, dtype in sizes.made]
        self.program.run(*given, *made)
        args.clear()
        lying = zip(self.sources, sizes.layouts, strict=True)
        found = iter([_placed(made[s.root] if s.given is None else whole[s.given], at, s.offset) for s, at in lying])
        now.runs += 1
        now.seconds += time.perf_counter() - began
        return [_result(r, numbers, found) for r in self.results]


@dataclass(frozen=True, slots=True)
class _Sizes:
    """What one set of sizes decides: shapes that inputs are given in, those of what is made, and layouts of results."""

    numbers: Numbers
    given: list[tuple[int, ...] | None]
    made: list[tuple[tuple[int, ...], torch.dtype]]
    layouts: list[Layout]


def _layout_of(node: Node, numbers: Numbers) -> Layout:
    layout = numbers.layout(node.meta.get("val"))
    if layout is None:
        raise NotMapped("a value that is no tensor")
    return layout


def _parted(value: Any) -> list[Any]:
    """A shape with each product of open sizes as several: a program tells a `bc.Dim` by a size that is itself."""
    if not isinstance(value, torch.Tensor):
        raise NotMapped("an argument that is no tensor")
    sizes: list[Any] = []
    for size in value.shape:
        expression = None if isinstance(size, int) else size.node.expr
        factors = [size] if expression is None else expression.args if expression.is_Mul else [expression]
        if expression is not None and not all(f.is_Symbol or f.is_Integer for f in factors):
            raise NotMapped("a size that is an expression")
        sizes += [f if getattr(f, "is_Symbol", False) else int(f) for f in factors]
    return sizes


def _result(result: Any, numbers: Numbers, tensors: Iterator[torch.Tensor]) -> Any:
    if not isinstance(result, Node):
        return result
    value = result.meta.get("val")
    return numbers.of(value) if numbers.knows(value) else next(tensors)


def _placed(x: torch.Tensor, layout: Layout, offset: int) -> torch.Tensor:
    """A tensor as torch promised it."""
    if not offset and x.shape == layout.shape and x.stride() == layout.strides:
        return x
    return x.as_strided(layout.shape, layout.strides, x.storage_offset() + offset)
