"""Chains of elementwise functions as one kernel each, by `bc.expr`."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from baracuda.describe.elements import Element
from baracuda.describe.errors import BaracudaError
from baracuda.graph.nodes import Launch, Node, Slot, View
from baracuda.memory.device import place_of
from baracuda.memory.tensor import TensorSpec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from baracuda.choose.plan import Plan
    from baracuda.graph.graph import ComputeGraph

FAMILIES = ("binary", "ternary", "unary")
# Halves would be rounded once instead of after every function: other bits than those of the calls.
ELEMENTS = (Element.F32, Element.F64)
INPUTS = 16


@dataclass(eq=False, slots=True)
class _Chain:
    """Launches that become one: the last one's result is the kernel's."""

    launches: list[tuple[int, Launch]]  # with their places
    inputs: dict[View, None] = field(default_factory=dict)

    @property
    def result(self) -> View:
        return self.launches[-1][1].writes[0]


def fuse_chains(launches: list[Launch], results: list[Any], graph: ComputeGraph) -> list[Launch]:
    """Has chains of elementwise functions, whose values in between nothing else reads, run as one kernel."""
    from baracuda.expr.trace import refusal_of

    if refusal_of(place_of(graph.device)) is not None:
        return launches
    readers: dict[Slot, set[int]] = {}
    writes: dict[Slot, list[int]] = {}
    for i, launch in enumerate(launches):
        for v in launch.reads:
            readers.setdefault(v.slot, set()).add(i)
        for v in launch.writes:
            writes.setdefault(v.slot, []).append(i)
    handed_out = {v.slot for v in results if isinstance(v, View)}
    chains: dict[Slot, _Chain] = {}  # by the slot of their results
    for i, launch in enumerate(launches):
        node = graph.nodes[launch.node] if launch.node >= 0 else None
        if node is None or not _fusable(node, launch) or len(writes[launch.writes[0].slot]) > 1:
            continue
        chain = _Chain([(i, launch)], dict.fromkeys(launch.reads))
        for v in launch.reads:
            before = chains.get(v.slot)
            alone = before is not None and readers[v.slot] == {i} and v.slot not in handed_out
            if before is None or not alone or v.shape != launch.writes[0].shape:
                continue
            if not all(_same(x, before.result) for x in launch.reads if x.slot is v.slot):  # also seen in another way
                continue
            inputs = dict.fromkeys(x for x in (*before.inputs, *chain.inputs) if x != v)
            first = before.launches[0][0]
            still = all(not first < at < i for x in before.inputs for at in writes.get(x.slot, ()))
            if len(inputs) <= INPUTS and still:
                chain = _Chain(sorted([*before.launches, *chain.launches], key=lambda pair: pair[0]), inputs)
                del chains[v.slot]
        chains[launch.writes[0].slot] = chain
    return _replaced(launches, [c for c in chains.values() if len(c.launches) > 1], graph)


def _same(a: View, b: View) -> bool:
    """Whether a read sees what was written, as it was."""
    return (a.slot, a.offset, a.shape, a.strides, a.element) == (b.slot, b.offset, b.shape, b.strides, b.element)


def _fusable(node: Node, launch: Launch) -> bool:
    """Whether it is a call of one elementwise kernel, of numbers that do not round in between."""
    views = (*launch.reads, *launch.writes)
    one = node.function is not None and node.out is None and len(node.launches) == 1 and len(launch.writes) == 1
    right = one and launch.plan.sku.family in FAMILIES and launch.plan.descriptor.direction == "forward"
    whole = right and launch.writes[0].whole and launch.writes[0].slot.kind == "temporary"
    return whole and all(v.element in ELEMENTS for v in views)


def _replaced(launches: list[Launch], chains: list[_Chain], graph: ComputeGraph) -> list[Launch]:
    gone: set[int] = set()
    made: dict[int, Launch] = {}
    for chain in chains:
        found = _kernel(chain, graph)
        if found is not None:
            gone |= {i for i, _ in chain.launches[:-1]}
            made[chain.launches[-1][0]] = found
    return [made.get(i, launch) for i, launch in enumerate(launches) if i not in gone]


def _kernel(chain: _Chain, graph: ComputeGraph) -> Launch | None:
    """The chain's launch; None where it is no single kernel of its inputs as they are."""
    from baracuda.expr import fuse

    arguments = _arguments(chain, graph)
    names = [f"x{i}" for i in range(len(arguments))]

    def body(**given: Any) -> Any:
        known = dict(zip(arguments, given.values(), strict=True))

        def seen(value: Any) -> Any:
            view = graph._tracer.view_of(value) or _captured(graph, value)
            return value if view is None else known[_key(view)]

        for _, launch in chain.launches:
            node = graph.nodes[launch.node]
            args, kwargs = node.call([seen(v) for v in node.values])
            found = node.function(*args, **kwargs)
            known[_key(launch.writes[0])] = found
        return found

    parameters = [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in names]
    body.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    specs = [TensorSpec(v.shape, v.element, device=graph.device) for v in arguments.values()]
    try:
        plan, order = fuse(body).kernel(*specs, device=graph.device)
    except BaracudaError:
        return None
    return _launch(plan, [list(arguments.values())[i] for i in order], chain)


def _launch(plan: Plan, inputs: Sequence[View], chain: _Chain) -> Launch | None:
    shapes = [shape for p in plan.signature.present for shape in p.shapes]
    given = [*inputs, chain.result]
    if [v.shape for v in given] != [tuple(s) for s in shapes] or plan.signature.numbers:
        return None
    *before, last = (launch.node for _, launch in chain.launches)
    return Launch(plan, tuple(given), (), last, tuple(before))


def _key(view: View) -> tuple[Any, ...]:
    return view.slot, view.offset, view.shape, view.strides, view.element


def _captured(graph: ComputeGraph, value: Any) -> View | None:
    """The view of a captured tensor that a call was given; None for numbers and options."""
    from baracuda.call.inference import spec_of

    if spec_of(value) is None:
        return None
    return graph._tracer.captured(value)


def _arguments(chain: _Chain, graph: ComputeGraph) -> dict[tuple[Any, ...], View]:
    """What calls of the chain were given that the chain does not make, as it was given: kernels see it broadcast."""
    made = {_key(launch.writes[0]) for _, launch in chain.launches}
    found: dict[tuple[Any, ...], View] = {}
    for _, launch in chain.launches:
        for value in graph.nodes[launch.node].values:
            view = graph._tracer.view_of(value) or _captured(graph, value)
            if view is not None and _key(view) not in made:
                found[_key(view)] = view
    return found
