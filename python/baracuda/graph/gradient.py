"""Reverse mode over a graph: its calls again, those on the way to the outputs on a tape, which is then walked back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from baracuda import _core
from baracuda.call.gradients import Gradients, Place, Root
from baracuda.call.tape import Tape, Tracked, element_of, stop_gradient
from baracuda.describe.errors import BaracudaError, InvalidProblemError
from baracuda.graph.nodes import Node, Slot, View
from baracuda.memory.views import contiguous_strides, is_contiguous

if TYPE_CHECKING:
    from baracuda.graph.graph import ComputeGraph


def with_gradients(
    graph: ComputeGraph, outputs: tuple[Any, ...], wrt: tuple[Any, ...], *, sampled: bool = False
) -> ComputeGraph:
    """The graph with gradients behind its results, see ComputeGraph.grad.

    One that was `sampled` at some sizes has the same nodes at all of them: none depends on how views lie.
    """
    from baracuda.graph.graph import ComputeGraph

    for x in outputs:
        if not _is_float(x):
            got = element_of(x) or type(x).__name__
            raise InvalidProblemError(f"grad: outputs: got {got}, want floats of this graph.")
    made = ComputeGraph(graph.device)
    again = _Again(graph, made, sampled)
    with made._tracer.on(), again.tape.on():
        again.forward([_slot(graph, x, "wrt") for x in wrt], [_slot(graph, x, "outputs") for x in outputs])
        gradients = again.backward(outputs, wrt)
        results = graph._tree.build([again.plain(x) for x in graph._results]) if graph._results is not None else None
    made.outputs((results, gradients))
    return made


def _slot(graph: ComputeGraph, x: Any, name: str) -> Slot:
    found = graph._tracer.view_of(x) if isinstance(x, _core.Tensor) else None
    returned = any(x is y for y in graph.results)  # as it was captured, or a view of it
    if found is None and (name == "wrt" or returned):
        found = graph._tracer.captured(x)
    if found is None:
        raise InvalidProblemError(f"grad: {name}: got {type(x).__name__}, want tensors of this graph.")
    return found.slot


class _Again:
    """The nodes of one graph, run once more in another."""

    def __init__(self, old: ComputeGraph, new: ComputeGraph, sampled: bool) -> None:
        self.old, self.new = old, new
        self.tape = Tape()
        self.tape.alike = sampled
        # Old slots, and what holds the same in the new graph: a tensor, tracked where a gradient passes.
        self.roots: dict[Slot, Any] = {}
        self.constants: dict[Slot, Root] = {}  # captured memory whose gradient is wanted
        self.wanted: set[Slot] = set()
        new._inputs = old._inputs
        for x in old._leaves:
            slot = old._tracer.view_of(x).slot  # type: ignore[union-attr]
            made = new._tracer.leaf(slot.name, slot.shape, slot.strides, slot.element, x.read_only)
            new._leaves.append(made)
            self.roots[slot] = made

    def tensor(self, x: Any) -> Any:
        """An old graph's tensor in the new one, on the tape where its gradient is wanted; anything else as it is."""
        if isinstance(x, (list, tuple)):
            return type(x)(map(self.tensor, x))
        view = self.old._tracer.view_of(x)
        if view is None:
            return self._captured(x)
        if view.slot not in self.roots:
            raise InvalidProblemError(
                f"grad: got {view}, which no function returned: plans and in-place writes have no gradient."
            )
        root = self.roots[view.slot]
        if not isinstance(root, Tracked):
            return _viewed(root, view)
        seen = _viewed(root.value, view)
        if view.element is not view.slot.element:  # the same bits as other numbers
            return seen
        return root if seen is root.value else Tracked(self.tape, root.root, _place(view), seen)

    def _captured(self, x: Any) -> Any:
        if not self.constants or not _is_float(x):
            return x
        view = self.old._tracer.captured(x)
        root = self.constants.get(view.slot)
        return x if root is None else Tracked(self.tape, root, Place(view.shape, view.strides, view.offset), x)

    def plain(self, x: Any) -> Any:
        """The same without gradient."""
        return stop_gradient(self.tensor(x))

    def forward(self, wrt: list[Slot], outputs: list[Slot]) -> None:
        """Runs all nodes, those between `wrt` and `outputs` on the tape."""
        self.wanted = set(wrt)
        for slot in self.wanted:
            if slot.kind == "constant":
                self.constants[slot] = Root(None, slot.shape, slot.element, self.new.device)
            elif slot in self.roots:
                self.roots[slot] = self.tape.leaf(self.roots[slot])
        seen = [(node, node.reads, node.writes) for node in self.old.nodes]
        depends, on_the_way = set(wrt), set()
        writers: dict[Slot, list[Node]] = {}
        for node, reads, writes in seen:
            if any(v.slot in depends for v in reads):
                depends |= {v.slot for v in writes}
                on_the_way.add(node)
            for slot in {v.slot for v in writes}:
                writers.setdefault(slot, []).append(node)
        needed = set(outputs)
        for node, reads, writes in reversed(seen):
            if any(v.slot in needed for v in writes):
                needed |= {v.slot for v in reads}
            else:
                on_the_way.discard(node)
        for node, reads, writes in seen:
            if node in on_the_way:
                _refuse_overwritten(node, (*reads, *writes), writers)
            self._run(node, node in on_the_way)

    def _run(self, node: Node, differentiated: bool) -> None:
        if node.function is None:
            return self._relaunch(node, differentiated)
        if not differentiated or not any(map(_is_float, node.results)):
            args, kwargs = node.call([self.plain(v) for v in node.values])
            found = node.function(*args, **kwargs)
        else:
            if node.out is not None:
                raise InvalidProblemError(f"grad: {node}: got a write to out=, want a function that makes its result.")
            self.tape.where = f"grad: {node}"
            try:
                found = self.tape.call(node.function, [self.tensor(v) for v in node.values])
            except BaracudaError as error:
                error.args = (f"grad: {node}: {error}",)
                raise
        for before, now in zip(node.results, found if isinstance(found, (tuple, list)) else (found,), strict=True):
            view = self.old._tracer.view_of(before)
            if view is not None and view.slot not in self.roots:
                tracked = view.slot in self.wanted and not isinstance(now, Tracked)
                self.roots[view.slot] = self.tape.leaf(now) if tracked else now

    def _relaunch(self, node: Node, differentiated: bool) -> None:
        if differentiated:
            raise InvalidProblemError(
                f"grad: {node}: got a plan, want a function of bc.functional: plans have no gradient rule."
            )
        for launch in node.launches:
            for v in launch.writes:
                if v.slot not in self.roots:
                    self.roots[v.slot] = _core.empty(v.slot.shape, v.slot.element, device=self.new.device)
            launch.plan.run(**launch.arguments(self._seen, lambda n: n))

    def _seen(self, view: View) -> Any:
        if view.slot.kind == "constant":
            return _core.from_pointer(
                view.slot.address + view.offset * view.element.nbytes, view.shape, view.element, view.strides,
                self.new.device, None, view.slot.held,
            )  # fmt: skip
        return _viewed(stop_gradient(self.roots[view.slot]), view)

    def backward(self, outputs: tuple[Any, ...], wrt: tuple[Any, ...]) -> tuple[Any, ...]:
        """Pulls back from the outputs; the gradients of `wrt`."""
        from baracuda import functional as F

        ends = [x for x in map(self.tensor, outputs) if isinstance(x, Tracked)]
        found = self.tape.gradients([(x, F.ones_like(x.value)) for x in ends])
        return tuple(self._gradient(found, self.tensor(x)) for x in wrt)

    def _gradient(self, found: Gradients, x: Tracked) -> Any:
        """That of a view; zeros where nothing reached it."""
        from baracuda import functional as F

        gradient = found.of(x.root, x.place)
        if gradient is not None:
            return gradient
        return F.zeros(tuple(x.value.shape), dtype=x.element, device=self.new.device)


def _refuse_overwritten(node: Node, used: tuple[View, ...], writers: dict[Slot, list[Node]]) -> None:
    """Its pull runs behind all nodes and may need what it was given and what it made: none may be written until then."""
    found = [(w.index, v, w) for v in used for w in writers.get(v.slot, ()) if w.index > node.index]
    if found:
        _, view, later = min(found, key=lambda one: one[0])
        raise InvalidProblemError(
            f"grad: {node}: got {view}, which {later} overwrites before the gradient can read it. Write to a "
            "copy, or take the gradient before, in the traced function."
        )


def _viewed(root: Any, view: View) -> Any:
    """The elements of a root tensor that a view is."""
    if tuple(root.shape) == view.shape and view.offset == 0 and tuple(root.strides) == view.strides:
        return root
    return _core.view_of(root, view.offset, view.shape, view.strides, int(view.element))


def _place(view: View) -> Place:
    """Where a view lies in its slot, as if that were contiguous."""
    slot = view.slot
    if is_contiguous(slot.shape, slot.strides):
        return Place(view.shape, view.strides, view.offset)
    dense = contiguous_strides(slot.shape)
    axes = sorted((s, d) for n, s, d in zip(slot.shape, slot.strides, dense, strict=True) if n > 1)
    if any(s == 0 for s, _ in axes):
        raise InvalidProblemError(f"grad: got {view}, whose memory is broadcast, want a copy of it.")

    def moved(distance: int) -> int:
        """A distance in the slot's memory as one among its elements: so many steps along each axis, the longest first."""
        left, total = abs(distance), 0
        for step, packed in reversed(axes):
            count, left = divmod(left, step)
            total += count * packed
        return total if distance >= 0 else -total

    return Place(view.shape, tuple(map(moved, view.strides)), moved(view.offset))


def _is_float(x: Any) -> bool:
    element = element_of(x)
    return element is not None and element.is_float
