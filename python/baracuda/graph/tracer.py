"""Takes launches down: the engine asks it for addresses of tensors without memory, and gives it every launch."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from baracuda import _core
from baracuda.call.program import Program
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.lines import user_line
from baracuda.graph.nodes import Draw, Launch, Node, Number, Shape, Slot, View
from baracuda.graph.watched import Watch
from baracuda.memory.device import name_of, place_of
from baracuda.memory.generator import Generator
from baracuda.memory.results import is_torch
from baracuda.memory.tensor import Tensor, outside_arenas
from baracuda.memory.views import contiguous_strides, reach

# Tensors without memory lie this far apart, above all addresses that a process can have.
_FIRST, _APART, _MOST = 1 << 60, 1 << 40, 7 << 20
_windows = itertools.count()
# A random step's offset that is not known yet: this, and the number of the draw.
_DRAWN = 1 << 63

Seen = tuple[Any, int, Shape, Shape, int]  # object, address, shape, strides, element


class Tracer:
    """What the engine calls while a graph is traced; holds the graph's slots and nodes."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.slots: list[Slot] = []
        self.nodes: list[Node] = []
        self.draws: list[Draw] = []
        self.generator: Generator | None = None
        self._at: dict[int, Slot] = {}  # by window
        self._leaf_name = ""
        self._open: Node | None = None
        self._held: dict[int, tuple[Any, Any]] = {}  # captured objects, and what keeps their memory
        self.watch: Watch | None = None  # where sizes are open

    # --- tensors without memory

    def address(self, shape: Shape, strides: Shape, element: int, backend: int, device: int) -> int:
        """Where a new tensor without memory lies."""
        if (where := name_of((backend, device))) != self.device:
            raise InvalidProblemError(f"trace: got a tensor on {where}, want all of them on {self.device}.")
        steps = strides if self._leaf_name else contiguous_strides(shape)
        name, kind = (self._leaf_name, "leaf") if self._leaf_name else (f"%{len(self.slots)}", "temporary")
        slot = Slot(len(self.slots), kind, name, Element(element), tuple(shape), tuple(steps))  # type: ignore[arg-type]
        if slot.nbytes >= _APART:
            raise InvalidProblemError(f"trace: got a tensor of {slot.nbytes} bytes, want less than 2**40.")
        self.slots.append(slot)
        window = next(_windows) % _MOST
        self._at[window] = slot
        return _FIRST + window * _APART

    def leaf(self, name: str, shape: Shape, strides: Shape | None, element: Element, read_only: bool) -> Any:
        """A tensor that runs are given."""
        from baracuda.memory.tensor import unbacked

        if strides is not None and any(s < 0 for s in strides):
            raise InvalidProblemError(f"{name}: got strides {strides}, want none below 0.")
        self._leaf_name = name
        with self.on():
            try:
                return unbacked(shape, element, strides, self.device, read_only=read_only)
            finally:
                self._leaf_name = ""

    def view_of(self, tensor: Any) -> View | None:
        """The view that a tensor without memory is; None for any other thing."""
        if not isinstance(tensor, _core.Tensor) or not tensor._unbacked:
            return None
        return self._view((tensor, tensor.address, tensor.shape, tensor.strides, tensor._element))

    def captured(self, tensor: Any) -> View:
        """The view of a real tensor's memory."""
        seen = _core.borrow(tensor)
        return self._view((tensor, seen.address, seen.shape, seen.strides, seen._element))

    # --- what the engine calls

    def launch(self, what: Any, caller: Any, values: Any, tensors: list[Seen], numbers: list[Any]) -> None:
        """A launch of a plan or a program, with the tensors and numbers that it is given."""
        node = Node(len(self.nodes), _name_of(caller, what), [])
        if values is not None:
            node.function, node.values = caller, tuple(values)
        for seen in (*tensors, *(n for n in numbers if isinstance(n, tuple))):
            self._view(seen)  # captured memory may be found to belong together: only then are views what they stay
        for constant in what.constants if isinstance(what, Program) else ():
            self.captured(constant)
        views = [self._view(seen) for seen in tensors]
        given = [self._number(number) for number in numbers]
        if isinstance(what, Program):
            node.launches = list(self._inlined(what, views, given))
        else:
            node.launches = [Launch(what, tuple(views), tuple(given), node.index)]
        self.nodes.append(node)
        self._open = node

    def returned(self, function: Any, results: Any) -> None:
        """What the function of the last launch returns."""
        if self._open is not None and self._open.function is function:
            self._open.results = tuple(results) if isinstance(results, (tuple, list)) else (results,)
        self._open = None

    def draw(self, generator: Generator, blocks: int) -> tuple[int, int]:
        """What stands for seed and offset of random numbers that are drawn when the graph runs."""
        if self.generator not in (None, generator):
            raise InvalidProblemError("trace: got two generators, want one for all random functions.")
        self.generator = generator
        self.draws.append(Draw(len(self.draws), blocks))
        return 0, _DRAWN + len(self.draws) - 1

    def zeros(self, out: Any) -> None:
        """Fills a new tensor with zeros when the graph runs."""
        from baracuda.choose.plan import plan
        from baracuda.ops.layout.layout import FillDescriptor

        plan(FillDescriptor(tuple(out.shape), out.element), self.device).run(value=0, y=out)

    @contextmanager
    def on(self) -> Iterator[None]:
        """Calls of this thread are taken down. Tensors that they make of numbers are the graph's, whose arena may be reset."""
        before, asked = _core.exchange_tracer(self), _core.exchange_inferring(True)
        try:
            with outside_arenas():
                yield
        finally:
            _core.exchange_tracer(before)
            _core.exchange_inferring(asked)

    # --- what the traced function sees of sizes

    def sizes(self, given: Any) -> Any:
        """A tensor's shape, strides or number of elements, as the caller shall see them."""
        return given if self.watch is None else self.watch.sizes(given)

    def length(self, n: int) -> None:
        """`len` of a tensor, or iteration over it."""
        if self.watch is not None:
            self.watch.length(n)

    def ones(self, shape: Shape) -> None:
        """`squeeze` of a tensor of this shape."""
        if self.watch is not None:
            self.watch.ones(shape)

    def key(self, shape: Shape, key: Any) -> None:
        """A view by a key of a tensor of this shape."""
        if self.watch is not None:
            self.watch.key(shape, key)

    def shared(self, a: Tensor, b: Tensor) -> bool:
        """Whether two tensors are of one memory, whatever parts of it they are at these sizes."""
        at = [(t.address - _FIRST) // _APART for t in (a, b)]
        return at[0] == at[1] if at[0] >= 0 or at[1] >= 0 else bool(_core.overlap(a, b))

    # --- what launches see

    def _view(self, seen: Seen) -> View:
        held, address, shape, strides, code = seen
        element = Element(code)
        if address >= _FIRST:
            window, within = divmod(address - _FIRST, _APART)
            slot = self._at.get(window)
            if slot is None:
                raise InvalidProblemError("trace: got a tensor of another trace, want those of this one.")
        else:
            slot = self._captured(held, address, shape, strides, element)
            within = address - slot.address
        if within % element.nbytes:
            raise InvalidProblemError(
                "trace: got captured tensors that share parts of their elements, want whole ones."
            )
        return View(slot, within // element.nbytes, tuple(shape), tuple(strides), element)

    def _captured(self, held: Any, address: int, shape: Shape, strides: Shape, element: Element) -> Slot:
        """The slot of a captured tensor's memory; overlapping ones share it."""
        first, end = reach(shape, strides)
        low, high = address + first * element.nbytes, address + end * element.nbytes
        touching = [
            s for s in self.slots if s.kind == "constant" and s.address < high and low < s.address + s.nbytes
        ]  # fmt: skip
        if low == high:  # nothing touches it, and each look at it has to find the same slot
            touching = [s for s in self.slots if s.kind == "constant" and s.held and (s.address, s.nbytes) == (low, 0)]
        same = next((s for s in touching if s.address <= low and high <= s.address + s.nbytes), None)
        if same is None and not touching:
            count = (high - low) // element.nbytes
            name = f"constant{sum(s.kind == 'constant' for s in self.slots)}"
            site = user_line(sys._getframe(1))
            same = Slot(len(self.slots), "constant", name, element, (count,), (1,), (), low, site)
            self.slots.append(same)
        if same is None:
            return self._widened(touching, held, low, high)
        self._hold(same, held)
        return same

    def _hold(self, slot: Slot, held: Any) -> None:
        """Keeps captured memory alive, and where it is: torch can give a tensor other memory."""
        from baracuda.memory.tensor import from_dlpack

        if id(held) not in self._held:
            self._held[id(held)] = (held, from_dlpack(held) if is_torch(held) else held)
        pinned = self._held[id(held)][1]
        if not any(h is pinned for h in slot.held):
            slot.held += (pinned,)

    def _widened(self, touching: list[Slot], held: Any, low: int, high: int) -> Slot:
        """One slot for memory that reaches into that of others, whose views are moved there."""
        first = touching[0]
        low, high = min(low, *(s.address for s in touching)), max(high, *(s.address + s.nbytes for s in touching))
        old = {s: (s.address - low) for s in touching}
        for node in self.nodes:
            for i, launch in enumerate(node.launches):
                tensors = tuple(_moved(v, first, old) for v in launch.tensors)
                numbers = tuple(_moved(n, first, old) if isinstance(n, View) else n for n in launch.numbers)
                node.launches[i] = replace(launch, tensors=tensors, numbers=numbers)
        first.address, first.shape = low, (-((low - high) // first.element.nbytes),)
        first.held = tuple(h for s in touching for h in s.held)
        self._hold(first, held)
        for s in touching[1:]:
            s.shape, s.held = (0,), ()
        return first

    def _number(self, given: Any) -> Number:
        if isinstance(given, tuple):
            return self._view(given)
        if isinstance(given, int) and given >= _DRAWN and given - _DRAWN < len(self.draws):
            return self.draws[given - _DRAWN]
        return given  # type: ignore[no-any-return]

    def _inlined(self, program: Program, views: list[View], numbers: list[Number]) -> Iterator[Launch]:
        """A program's steps, of the views that it is given and of new slots for its scratch."""
        document = json.loads(program.to_bytes())
        if document["dims"]:
            raise InvalidProblemError("trace: got a program whose sizes are bc.Dims, want one of fixed sizes.")
        constants, seen = iter(program.constants), iter(views)
        base: list[View] = []
        for value in document["values"]:
            shape, element = tuple(value["shape"]), Element.coerce(value["element"])
            if value["storage"] == "argument":
                base.append(next(seen))
            elif value["storage"] == "constant":
                base.append(self.captured(next(constants)))
            else:
                self.address(shape, contiguous_strides(shape), int(element), *place_of(self.device))
                base.append(View(self.slots[-1], 0, shape, self.slots[-1].strides, element))

        def view(entry: dict[str, Any]) -> View:
            on = base[entry["value"]]
            element = Element.coerce(entry["element"]) if "element" in entry else on.element
            shape = tuple(entry["shape"])
            start = on.offset * on.element.nbytes // element.nbytes + entry.get("offset", 0)
            strides = tuple(entry.get("strides", contiguous_strides(shape)))
            return View(on.slot, start, shape, strides, element)

        def number(entry: Any) -> Number:
            if not isinstance(entry, dict):
                return float(entry) if isinstance(entry, str) else entry
            if "view" in entry:
                return view(entry["view"])
            if "scalar" in entry:
                return numbers[entry["scalar"]]
            raise InvalidProblemError(f"trace: got a program with a number {entry}, want one without draws of its own.")

        for step in document["steps"]:
            plan = program.plans[step["plan"]]
            tensors, given = map(view, step["tensors"]), map(number, step["numbers"])
            yield Launch(plan, tuple(tensors), tuple(given), len(self.nodes))


def _moved(view: View, to: Slot, by: dict[Slot, int]) -> View:
    if view.slot not in by:
        return view
    return View(to, view.offset + by[view.slot] // view.element.nbytes, view.shape, view.strides, view.element)


def _name_of(caller: Any, what: Any) -> str:
    name = getattr(caller, "__name__", None)
    if name is not None:
        return str(name).lstrip("_")
    return "program" if isinstance(what, Program) else str(what.descriptor.op)
