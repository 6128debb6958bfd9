"""Graphs as text and pictures."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, TypeAlias

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
    lines += [f"constant  {s.name} {s.element}{list(s.shape)}, captured by reference" for s in graph.constants]
    return "\n".join([*lines, *map(_line, graph.nodes)])


def _step(i: int, launch: Launch) -> str:
    sku = launch.plan.sku
    shapes = ", ".join(_type(v) for v in launch.tensors)
    return f"{i:4}  {sku.name}({shapes})  {sku.precision_guarantee}"


def explained_plan(plan: ExecutionPlan) -> str:
    """The launches of a compiled graph, each with its kernel and promise."""
    memory = plan.memory
    head = (
        f"{plan!r}\nscratch {memory.planned} bytes; {memory.unplanned} with memory for each value, "
        f"{memory.lower_bound} alive at once; captured {memory.weights} bytes"
    )
    if plan.device != "cpu":
        head += f"\n{plan.capture}"
    return "\n".join([head, *(_step(i, launch) for i, launch in enumerate(plan._lowered.launches))])


def _edges(graph: ComputeGraph) -> Edges:
    """From what was made last to who reads it, with its type."""
    made: dict[Slot, str] = {s: f"s{s.number}" for s in (*graph.leaves, *graph.constants)}
    found = []
    for node in graph.nodes:
        for v in node.reads:
            if v.slot in made:
                found.append((made[v.slot], f"n{node.index}", _type(v)))
        for v in node.writes:
            made[v.slot] = f"n{node.index}"
    results = [v for v in graph._views if isinstance(v, View)]
    found += [(made[v.slot], f"r{i}", _type(v)) for i, v in enumerate(results) if v.slot in made]
    return found


def _boxes(graph: ComputeGraph) -> Boxes:
    """What is drawn, by its name in the picture: its text, and of which kind it is."""
    boxes: Boxes = {
        f"s{s.number}": (f"{s.name}\n{s.element}{list(s.shape)}", s.kind) for s in (*graph.leaves, *graph.constants)
    }
    for node in graph.nodes:
        made = "\n".join(_type(v) for v in _results(node)[:3])
        boxes[f"n{node.index}"] = (f"{node.index}  {node.label or node.name}\n{made}", "node")
    results = (v for v in graph._views if isinstance(v, View))
    return boxes | {f"r{i}": (f"result {i}\n{_type(v)}", "result") for i, v in enumerate(results)}


_FILL = {"leaf": "#dceefb", "constant": "#eeeeee", "node": "#ffffff", "result": "#e3f4e1"}


def dot(graph: ComputeGraph) -> str:
    """Graphviz's language."""

    def quoted(text: str) -> str:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'

    lines = ["digraph {", "  node [shape=box, style=filled, fontname=Helvetica];"]
    for name, (text, kind) in _boxes(graph).items():
        lines.append(f"  {name} [label={quoted(text)}, fillcolor={quoted(_FILL[kind])}];")
    lines += [f"  {a} -> {b} [label={quoted(label)}];" for a, b, label in _edges(graph)]
    return "\n".join([*lines, "}"])


_WIDE, _HIGH, _GAP = 190, 46, 34
_MOST = 5  # leaves that only one node reads are drawn one by one; more of them are one box

Boxes: TypeAlias = dict[str, tuple[str, str]]
Edges: TypeAlias = list[tuple[str, str, str]]


def _grouped(boxes: Boxes, edges: Edges) -> tuple[Boxes, Edges]:
    """Many leaves and captured tensors of one reader as one box."""
    readers: dict[str, set[str]] = {}
    for a, b, _ in edges:
        readers.setdefault(a, set()).add(b)
    of_one: dict[tuple[str, str], list[str]] = {}
    for name, (_, kind) in boxes.items():
        if kind in ("leaf", "constant") and len(readers.get(name, ())) == 1:
            of_one.setdefault((next(iter(readers[name])), kind), []).append(name)
    group = {name: f"g{names[0]}" for names in of_one.values() if len(names) > _MOST for name in names}
    found: Boxes = {}
    for name, (text, kind) in boxes.items():
        if name not in group:
            found[name] = (text, kind)
        elif group[name] not in found:
            more = sum(g == group[name] for g in group.values()) - 1
            found[group[name]] = (f"{text.split(chr(10))[0]}\nand {more} more", kind)
    return found, list(dict.fromkeys((group.get(a, a), b, "" if a in group else label) for a, b, label in edges))


def _ranks(boxes: Boxes, edges: Edges) -> dict[str, int]:
    """Rows: what reads something comes below it."""
    ranks = dict.fromkeys(boxes, 0)
    for a, b, _ in edges:  # in the order of the nodes, so that what is read has its place already
        ranks[b] = max(ranks[b], ranks[a] + 1)
    for name, (_, kind) in boxes.items():
        readers = [ranks[b] for a, b, _ in edges if a == name]
        if kind in ("leaf", "constant") and readers:
            ranks[name] = min(readers) - 1
    return ranks


def svg(graph: ComputeGraph) -> str:
    """A picture: rows from above to below, each box with what it makes."""
    boxes, edges = _grouped(_boxes(graph), _edges(graph))
    ranks = _ranks(boxes, edges)
    rows: dict[int, list[str]] = {}
    for name in boxes:
        rows.setdefault(ranks[name], []).append(name)
    at = {
        name: (20 + i * (_WIDE + 24), 20 + row * (_HIGH + _GAP))
        for row, names in rows.items()
        for i, name in enumerate(names)
    }
    width = 40 + max((len(names) for names in rows.values()), default=0) * (_WIDE + 24)
    height = 40 + (max(rows, default=-1) + 1) * (_HIGH + _GAP)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'font-family="Helvetica, Arial, sans-serif" font-size="11">',
        '<defs><marker id="a" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="6" markerHeight="6" orient="auto">'
        '<path d="M0 0 L8 4 L0 8 z" fill="#777"/></marker></defs>',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for a, b, _ in sorted(edges, key=lambda e: ranks[e[0]] - ranks[e[1]]):  # those that go far first, below the others
        far = ranks[b] > ranks[a] + 2
        (x0, y0), (x1, y1) = at[a], at[b]
        if ranks[b] > ranks[a] + 1:  # past other boxes: from one's right side to the other's
            x0, y0, x1, y1 = x0 + _WIDE, y0 + _HIGH // 2, x1 + _WIDE, y1 + _HIGH // 2
            aside = max(x0, x1) + 24
            curve = f"M{x0} {y0} C{aside} {y0} {aside} {y1} {x1} {y1}"
        else:
            x0, y0, x1 = x0 + _WIDE // 2, y0 + _HIGH, x1 + _WIDE // 2
            middle = (y0 + y1) // 2
            curve = f"M{x0} {y0} C{x0} {middle} {x1} {middle} {x1} {y1}"
        pen = 'stroke="#ccc" stroke-width="0.7"' if far else 'stroke="#777"'
        lines.append(f'<path d="{curve}" fill="none" {pen} marker-end="url(#a)"/>')
    for name, (text, kind) in boxes.items():
        x, y = at[name]
        lines.append(
            f'<rect x="{x}" y="{y}" width="{_WIDE}" height="{_HIGH}" rx="5" fill="{_FILL[kind]}" stroke="#456"/>'
        )
        for i, part in enumerate(text.split("\n")[:3]):
            weight = ' font-weight="bold"' if i == 0 else ""
            most = 26 if i == 0 else 30
            shown = part if len(part) <= most else part[: most - 1] + "\u2026"
            lines.append(f'<text x="{x + 8}" y="{y + 16 + 13 * i}"{weight}>{escape(shown)}</text>')
    return "\n".join([*lines, "</svg>"])
