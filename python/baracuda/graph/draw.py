"""Graphs as text and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from baracuda.describe.lines import line_text
from baracuda.graph.nodes import Launch, Node, Slot, View

if TYPE_CHECKING:
    from baracuda.graph.execution import ExecutionPlan
    from baracuda.graph.graph import ComputeGraph


def _type(view: View) -> str:
    return f"{view.element}[{', '.join(map(str, view.shape))}]"


def _line(node: Node) -> str:
    made = ", ".join(f"{v.slot.name} {_type(v)}" for v in node.writes if v in _results(node))
    read = ", ".join(v.slot.name for v in node.reads)
    numbers = [n for launch in node.launches for n in launch.numbers if isinstance(n, (int, float))]
    constants = f"  numbers {', '.join(f'{n:g}' for n in numbers)}" if numbers else ""
    steps = f"  ({len(node.launches)} launches)" if len(node.launches) != 1 else ""
    label = f" {node.label}" if node.label else ""
    return f"{node.index:4}  {node.name}{label}({read}) -> {made}{constants}{steps}"


def _results(node: Node) -> list[View]:
    """What it writes that is not its own scratch."""
    last = {v.slot: v for launch in node.launches for v in launch.writes}
    read = {v.slot for launch in node.launches for v in launch.reads}
    results = [v for s, v in last.items() if s.kind != "temporary" or s not in read]
    return results or list(last.values())[-1:]


def explained(graph: ComputeGraph) -> str:
    """Leaves, captured tensors and nodes, one line each."""
    lines = [f"{graph!r}"]
    lines += [f"leaf      {s.name} {s.element}{list(s.shape)}" for s in graph.leaves]
    for s in graph.constants:
        line = f", read in {line_text(s.site)}" if s.site[0] else ""
        lines.append(f"constant  {s.name} {s.element}{list(s.shape)}, captured by reference{line}")
    return "\n".join([*lines, *map(_line, graph.nodes)])


def _called(plan: ExecutionPlan, launch: Launch) -> str:
    """The nodes whose work a launch does, by name."""
    names = [plan._nodes.get(node, "copy of a result") for node in launch.nodes]
    return " + ".join(names)


def _step(plan: ExecutionPlan, i: int, launch: Launch) -> str:
    sku = launch.plan.sku
    shapes = ", ".join(_type(v) for v in launch.tensors)
    does = f"  for {_called(plan, launch)}" if launch.also else ""
    return f"{i:4}  {sku.name}({shapes})  {sku.precision_guarantee}{does}"


def explained_plan(plan: ExecutionPlan) -> str:
    """The launches of a compiled graph, each with its kernel and promise."""
    memory = plan.memory
    head = (
        f"{plan!r}\nscratch {memory.planned} bytes; {memory.unplanned} with memory for each value, "
        f"{memory.lower_bound} alive at once; captured {memory.weights} bytes"
    )
    if plan.device != "cpu":
        head += f"\n{plan.capture}"
    return "\n".join([head, *(_step(plan, i, launch) for i, launch in enumerate(plan._lowered.launches))])


Boxes: TypeAlias = dict[str, tuple[str, str]]  # by name: lines of text, and of which kind it is
Edges: TypeAlias = list[tuple[str, str, str]]


@dataclass(frozen=True, slots=True)
class _Part:
    """A node or a launch, as it is drawn."""

    name: str
    text: str
    kind: str
    reads: Sequence[View]
    writes: Sequence[View]


def _node_parts(graph: ComputeGraph) -> list[_Part]:
    found = []
    for node in graph.nodes:
        made = "\n".join(_type(v) for v in _results(node)[:2])
        text = f"{node.index}  {node.label or node.name}\n{made}"
        found.append(_Part(f"n{node.index}", text, "node", node.reads, node.writes))
    return found


def _launch_parts(plan: ExecutionPlan) -> list[_Part]:
    found = []
    for i, launch in enumerate(plan._lowered.launches):
        made = ", ".join(_type(v) for v in launch.writes[:2])
        text = f"{i}  {_called(plan, launch)}\n{made}\n{launch.plan.sku.name}"
        found.append(_Part(f"n{i}", text, "fused" if launch.also else "node", launch.reads, launch.writes))
    return found


def _drawn(sources: Sequence[Slot], parts: list[_Part], results: Sequence[Any]) -> tuple[Boxes, Edges]:
    """What is drawn, and the lines from what was made last to who reads it, with its type."""
    shown = {v.slot: v for part in reversed(parts) for v in reversed(part.reads) if v.numel == v.slot.count}
    boxes: Boxes = {}
    for s in sources:
        shape = shown[s].shape if s.kind == "constant" and s in shown else s.shape
        boxes[f"s{s.number}"] = (f"{s.name}\n{s.element}{list(shape)}", s.kind)
    boxes |= {part.name: (part.text, part.kind) for part in parts}
    made: dict[Slot, str] = {s: f"s{s.number}" for s in sources}
    edges: Edges = []
    for part in parts:
        edges += [(made[v.slot], part.name, _type(v)) for v in part.reads if v.slot in made]
        made |= {v.slot: part.name for v in part.writes}
    for i, v in enumerate(results):
        if isinstance(v, View) and v.slot in made:
            boxes[f"r{i}"] = (f"result {i}\n{_type(v)}", "result")
            edges.append((made[v.slot], f"r{i}", _type(v)))
    return boxes, edges


def _of_graph(graph: ComputeGraph) -> tuple[Boxes, Edges]:
    return _drawn((*graph.leaves, *graph.constants), _node_parts(graph), graph._views)


def _of_plan(plan: ExecutionPlan) -> tuple[Boxes, Edges]:
    launches = plan._lowered.launches
    used = dict.fromkeys(v.slot for launch in launches for v in launch.tensors)
    constants = [s for s in used if s.kind == "constant"]
    whole = {s: View(s, 0, s.shape, s.strides, s.element) for s in (*plan._leaves, *plan._lowered.handed_out)}
    made = sorted(plan._lowered.handed_out, key=lambda s: s.number)
    new = iter(whole[s] for s in made)
    results = [
        next(new, None) if kind == "made" else whole[plan._leaves[which]] if kind == "leaf" else None
        for kind, which in plan._lowered.results
    ]  # fmt: skip
    return _drawn((*plan._leaves, *constants), _launch_parts(plan), results)


FILL = {"leaf": "#dceefb", "constant": "#eeeeee", "node": "#ffffff", "fused": "#fff1cc", "result": "#e3f4e1"}


def svg(of: ComputeGraph | ExecutionPlan) -> str:
    """A picture."""
    from baracuda.graph.picture import picture

    return picture(*_boxes_of(of))


def dot(of: ComputeGraph | ExecutionPlan) -> str:
    """Graphviz's language."""

    def quoted(text: str) -> str:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'

    boxes, edges = _boxes_of(of)
    lines = ["digraph {", "  node [shape=box, style=filled, fontname=Helvetica];"]
    for name, (text, kind) in boxes.items():
        lines.append(f"  {name} [label={quoted(text)}, fillcolor={quoted(FILL[kind])}];")
    lines += [f"  {a} -> {b} [label={quoted(label)}];" for a, b, label in edges]
    return "\n".join([*lines, "}"])


def _boxes_of(of: ComputeGraph | ExecutionPlan) -> tuple[Boxes, Edges]:
    from baracuda.graph.execution import ExecutionPlan

    return _of_plan(of) if isinstance(of, ExecutionPlan) else _of_graph(of)
