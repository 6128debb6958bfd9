"""Reverse mode over a graph: its calls again, those on the way with their pulls, and these in reverse order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations_with_replacement
from math import prod
from typing import TYPE_CHECKING, Any

from baracuda import _core
from baracuda.call.autograd import vjp
from baracuda.call.inference import spec_of
from baracuda.describe.elements import Element
from baracuda.describe.errors import BaracudaError, InvalidProblemError
from baracuda.graph.nodes import Node, Slot, View
from baracuda.memory.views import is_contiguous

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
            got = _element_of(x) or type(x).__name__
            raise InvalidProblemError(f"grad: outputs: got {got}, want floats of this graph.")
    made = ComputeGraph(graph.device)
    again = _Again(graph, made, sampled)
    with made._tracer.on():
        again.forward([_slot(graph, x, "wrt") for x in wrt], [_slot(graph, x, "outputs") for x in outputs])
        gradients = again.backward(outputs, wrt)
        results = graph._tree.build([again.tensor(x) for x in graph._results]) if graph._results is not None else None
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
        self.old, self.new, self.sampled = old, new, sampled
        self.roots: dict[Slot, Any] = {}  # old slots, and the tensors of the new graph that hold what they do
        self.pulls: list[tuple[Node, Callable[..., Any]]] = []
        self.gradients: dict[Slot, Any] = {}  # of old slots
        self.parts: dict[Slot, list[tuple[View, Any]]] = {}  # gradients of views that are not added to these yet
        new._inputs = old._inputs
        for x in old._leaves:
            slot = old._tracer.view_of(x).slot  # type: ignore[union-attr]
            made = new._tracer.leaf(slot.name, slot.shape, slot.strides, slot.element, x.read_only)
            new._leaves.append(made)
            self.roots[slot] = made

    def tensor(self, x: Any) -> Any:
        """An old graph's tensor in the new one; what is no tensor of it stays as it is."""
        if isinstance(x, (list, tuple)):
            return type(x)(map(self.tensor, x))
        view = self.old._tracer.view_of(x)
        if view is None:
            return x
        if view.slot not in self.roots:
            raise InvalidProblemError(
                f"grad: got {view}, which no function returned: plans and in-place writes have no gradient."
            )
        return _viewed(self.roots[view.slot], view)

    def forward(self, wrt: list[Slot], outputs: list[Slot]) -> None:
        """Runs all nodes, those between `wrt` and `outputs` with their pulls."""
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

    def _run(self, node: Node, pulled: bool) -> None:
        if node.function is None:
            return self._relaunch(node, pulled)
        args, kwargs = node.call([self.tensor(v) for v in node.values])
        wanted = pulled and any(_is_float(x) for x in node.results)
        if not wanted:
            found = node.function(*args, **kwargs)
        else:
            if node.out is not None:
                raise InvalidProblemError(f"grad: {node}: got a write to out=, want a function that makes its result.")
            kwargs.pop("out", None)
            try:
                found, pull = vjp(node.function, *args, **kwargs)
            except BaracudaError as error:
                error.args = (f"grad: {node}: {error}",)
                raise
            except TypeError as error:  # a rule without one of the options
                raise InvalidProblemError(f"grad: {node}: its gradient takes no such call: {error}.") from error
            self.pulls.append((node, pull))
        for before, now in zip(node.results, found if isinstance(found, (tuple, list)) else (found,), strict=True):
            view = self.old._tracer.view_of(before)
            if view is not None and view.slot not in self.roots:
                self.roots[view.slot] = now

    def _relaunch(self, node: Node, pulled: bool) -> None:
        if pulled:
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
        return _viewed(self.roots[view.slot], view)

    def backward(self, outputs: tuple[Any, ...], wrt: tuple[Any, ...]) -> tuple[Any, ...]:
        """Pulls back from the outputs; the gradients of `wrt`."""
        from baracuda import functional as F

        for x in outputs:
            self._reached(self._view(x), F.ones_like(self.tensor(x)))
        for node, pull in reversed(self.pulls):
            results = [self.old._tracer.view_of(x) for x in node.results if _is_float(x)]
            if not any(v is not None and (v.slot in self.gradients or v.slot in self.parts) for v in results):
                continue
            dys = tuple(self._gradient(v) for v in results if v is not None)
            found = pull(dys[0] if len(dys) == 1 else dys)
            self._take(node, found if isinstance(found, (tuple, list)) else (found,))
        return tuple(self._gradient(self._view(x)) for x in wrt)

    def _view(self, x: Any) -> View:
        return self.old._tracer.view_of(x) or self.old._tracer.captured(x)

    def _take(self, node: Node, found: Sequence[Any]) -> None:
        """Adds a pull's gradients to those of the node's tensors that can have one, in their order."""
        old: list[Any] = []
        for value in node.values:
            old += value if isinstance(value, (list, tuple)) else [value]
        for x, gradient in zip(
            _takers(node, old, len(found)), found, strict=False
        ):  # the last may be constants, as targets are
            if gradient is not None and _is_float(x):
                self._reached(self._view(x), gradient)

    def _gradient(self, view: View) -> Any:
        """That of a view; zeros where nothing reached it."""
        from baracuda import functional as F

        whole = self._whole(view.slot)
        if whole is None:
            return F.zeros(view.shape, dtype=view.element, device=self.new.device)
        return _viewed(whole, view)

    def _reached(self, view: View, gradient: Any) -> None:
        """Adds to the gradient of a view."""
        from baracuda import functional as F
        from baracuda.ops.reduce.reduce import sum_to

        if not view.whole:
            self.parts.setdefault(view.slot, []).append((view, gradient))
            return
        known = self._whole(view.slot)
        contiguous = gradient if is_contiguous(gradient.shape, gradient.strides) else F.copy(gradient)
        contiguous = contiguous if tuple(contiguous.shape) == view.shape else sum_to(contiguous, view.shape)
        self.gradients[view.slot] = contiguous if known is None else F.add(known, contiguous)

    def _whole(self, slot: Slot) -> Any:
        """The gradient of a slot, with those of its views; None where nothing reached it."""
        from baracuda import functional as F

        known, parts = self.gradients.get(slot), self.parts.pop(slot, [])
        if not parts:
            return known
        apart = known is None and not self.sampled and _apart([view for view, _ in parts])
        if apart and sum(view.numel for view, _ in parts) == prod(slot.shape):
            whole = _core.empty(slot.shape, slot.element, device=self.new.device)
        else:
            whole = F.zeros(slot.shape, dtype=slot.element, device=self.new.device)
        whole = whole if known is None else F.add(known, whole)  # memory that nothing else is
        for view, gradient in parts:
            self._put(whole, view, gradient, add=not apart)
        self.gradients[slot] = whole
        return whole

    def _put(self, whole: Any, view: View, gradient: Any, *, add: bool) -> None:
        """Writes or adds a view's gradient to its place; elements that it shows more than once get the sum."""
        from baracuda import functional as F
        from baracuda.ops.reduce.reduce import sum_to

        once = tuple(1 if s == 0 else n for n, s in zip(view.shape, view.strides, strict=True))
        place = _viewed(whole, View(view.slot, view.offset, once, view.strides, view.element))
        gradient = gradient if tuple(gradient.shape) == once else sum_to(gradient, once)
        if add:
            F.add(place, gradient, out=place)
        else:
            F.copy(gradient, out=place)


def _refuse_overwritten(node: Node, used: tuple[View, ...], writers: dict[Slot, list[Node]]) -> None:
    """Its pull runs behind all nodes and may need what it was given and what it made: none may be written until then."""
    found = [(w.index, v, w) for v in used for w in writers.get(v.slot, ()) if w.index > node.index]
    if found:
        _, view, later = min(found, key=lambda one: one[0])
        raise InvalidProblemError(
            f"grad: {node}: got {view}, which {later} overwrites before the gradient can read it. Write to a "
            "copy, or take the gradient before, in the traced function."
        )


def _apart(views: list[View]) -> bool:
    """Whether no element is in two of them, or twice in one."""
    somewhere = 1 << 40  # nothing is read there
    places = [
        _core.from_pointer(somewhere + v.offset * v.element.nbytes, v.shape, v.element, v.strides)
        for v in views
        if v.numel
    ]
    pairs = combinations_with_replacement(places, 2)
    return all(v.element is v.slot.element for v in views) and not any(_core.overlap(a, b) for a, b in pairs)


def _takers(node: Node, given: list[Any], count: int) -> list[Any]:
    """The tensors whose gradients a pull gives: floats; whole numbers, too, where the function computes with them as floats."""
    tensors = [x for x in given if _element_of(x) is not None]
    for takers in (
        [x for x in tensors if _is_float(x)], [x for x in tensors if _element_of(x) is not Element.BOOL], tensors,
    ):  # fmt: skip
        if len(takers) >= count:
            return takers
    raise InvalidProblemError(f"grad: {node}: got {count} gradients of {len(tensors)} tensors, want floats alone.")


def _viewed(root: Any, view: View) -> Any:
    """The elements of a root tensor that a view is."""
    if tuple(root.shape) == view.shape and view.offset == 0 and tuple(root.strides) == view.strides:
        return root
    return _core.view_of(root, view.offset, view.shape, view.strides, int(view.element))


def _element_of(x: Any) -> Element | None:
    """Of a tensor; None for anything else."""
    seen = spec_of(x)
    return None if seen is None else Element.coerce(seen.element)


def _is_float(x: Any) -> bool:
    element = _element_of(x)
    return element is not None and element.is_float
