"""Compiled graphs in folders: the program with its constants, and what its arguments and results are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from baracuda import _core
from baracuda.call.constants import Kind, read_tensors, write_tensors
from baracuda.call.program import Program
from baracuda.call.tree import Tree
from baracuda.describe.elements import Element
from baracuda.describe.errors import BaracudaError, InvalidProblemError, shown
from baracuda.describe.sizes import AnySize, SizeExpr, contiguous_strides, simple
from baracuda.graph.lower import Lowered
from baracuda.graph.nodes import Draw, Launch, Number, Slot, View
from baracuda.memory.generator import default_generator

if TYPE_CHECKING:
    from baracuda.graph.execution import ExecutionPlan

SCHEMA = 2
# What reading something else than `save` wrote ends in.
_UNREADABLE = (
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    StopIteration,
    OSError,
    OverflowError,
    RecursionError,
)
_KINDS = {"tuple": tuple, "list": list, "dict": dict}


def save(plan: ExecutionPlan, path: str | Path) -> None:
    """ExecutionPlan.save."""
    lowered = plan._lowered
    if any(kind == "held" for kind, _ in lowered.results):
        raise InvalidProblemError(
            "save: got a graph that returns a captured tensor itself, want F.copy of it returned."
        )
    document = {
        "schema": SCHEMA,
        "kind": "graph",
        "inputs": _tree_json(plan._inputs),
        "outputs": _tree_json(plan._tree),
        "results": [list(r) for r in lowered.results],
        "nodes": [[*launch.nodes] for launch in lowered.launches],
        "names": [[node, name] for node, name in plan._nodes.items()],
        "hidden": len(lowered.hidden),
    }
    folder = Path(path)
    lowered.program.save(folder)
    write_tensors(folder / "hidden.safetensors", {f"hidden{i}": x for i, x in enumerate(lowered.hidden)})
    (folder / "graph.json").write_text(json.dumps(document))


def load(path: str | Path) -> ExecutionPlan:
    """ExecutionPlan.load."""
    try:
        return _loaded(Path(path))
    except _UNREADABLE as error:
        if isinstance(error, BaracudaError):
            raise
        raise InvalidProblemError(
            f"load: {path}: got {type(error).__name__}: {shown(str(error))}, want a folder as ExecutionPlan.save writes it."
        ) from error


def _loaded(folder: Path) -> ExecutionPlan:
    from baracuda.graph.execution import ExecutionPlan

    document = json.loads((folder / "graph.json").read_text())
    if document.get("kind") != "graph" or document.get("schema") != SCHEMA:
        raise InvalidProblemError(
            f"load: got schema {shown(document.get('schema'))}, want {SCHEMA}, as this version writes it."
        )
    program = Program.load(folder)
    device = program.plans[0].device if program.plans else "cpu"
    read = _Read(program, document)
    read.hold(read_tensors(folder / "hidden.safetensors", read.wanted(), device))
    inputs, outputs = _tree(document["inputs"]), _tree(document["outputs"])
    _check_numbers("inputs", [t.value for t in _leaves(inputs)], len(read.leaves), every=True)
    _check_numbers("outputs", [t.value for t in _leaves(outputs)], len(document["results"]))
    for kind, limit in (("made", len(read.made)), ("leaf", len(read.leaves))):
        _check_numbers("results", [which for k, which in document["results"] if k == kind], limit)
    if any(kind not in ("made", "leaf") for kind, _ in document["results"]):
        raise InvalidProblemError("load: results: got another kind, want made or leaf.")
    names = {int(node): str(name) for node, name in document["names"]}
    generator = default_generator if read.random else None
    plan = ExecutionPlan(inputs, outputs, read.leaves, read.lowered(), names, read.document["device"], generator)
    plan.set_capture(True)
    return plan


def _leaves(tree: Tree) -> list[Tree]:
    if tree.kind == "leaf":
        return [tree]
    return [leaf for child in tree.children for leaf in _leaves(child)]


def _check_numbers(what: str, found: list[Any], limit: int, *, every: bool = False) -> None:
    """Refuses numbers that name nothing; with `every`, those that are not all of them in order."""
    right = all(isinstance(n, int) and not isinstance(n, bool) and 0 <= n < limit for n in found)
    if not right or (every and found != list(range(limit))):
        want = f"0 to {limit - 1} in order" if every else f"numbers below {limit}"
        raise InvalidProblemError(f"load: {what}: got {shown(found)}, want {want}.")


def _tree_json(tree: Tree) -> Any:
    if tree.kind == "leaf":
        return {"leaf": tree.value}
    if tree.kind == "constant":
        if not isinstance(tree.value, (bool, int, float, str, type(None))):
            raise InvalidProblemError(
                f"save: got {shown(tree.value)} among arguments or results, want tensors, numbers and texts."
            )
        return {"constant": tree.value}
    kind = next((name for name, made in _KINDS.items() if issubclass(tree.kind, made)), None)
    if kind is None:
        raise InvalidProblemError(
            f"save: got a {tree.kind.__name__} among arguments or results, want tuples, lists and dicts."
        )
    if not all(isinstance(k, str) for k in tree.keys):
        raise InvalidProblemError(f"save: got keys {tree.keys}, want texts.")
    return {"kind": kind, "children": [_tree_json(c) for c in tree.children], "keys": tree.keys}


def _tree(document: Any) -> Tree:
    if "leaf" in document:
        return Tree("leaf", value=document["leaf"])
    if "constant" in document:
        return Tree("constant", value=document["constant"])
    return Tree(_KINDS[document["kind"]], [_tree(c) for c in document["children"]], list(document["keys"]))


class _Read:
    """A program's document as slots and launches again."""

    def __init__(self, program: Program, graph: dict[str, Any]) -> None:
        self.program, self.graph = program, graph
        self.hidden: list[Any] = []
        self.document = json.loads(program.to_bytes())
        self.random = "random" in self.document
        self.leaves: list[Slot] = []
        self.made: set[Slot] = set()
        constants = iter(program.constants)
        given = [v for v in self.document["values"] if v["storage"] == "argument" and v["role"] != "out"]
        _check_numbers("hidden", [graph["hidden"]], len(given) + 1)
        n_leaves = len(given) - graph["hidden"]
        self.slots = [self._slot(i, v, constants) for i, v in enumerate(self.document["values"])]
        arguments = [s for s, v in zip(self.slots, self.document["values"], strict=True) if v in given]
        self.leaves, self.written = arguments[:n_leaves], arguments[n_leaves:]

    def wanted(self) -> list[tuple[str, Kind]]:
        """The captured tensors that it writes, as they are called in their file."""
        return [(f"hidden{i}", (s.element, tuple(s.shape))) for i, s in enumerate(self.written)]

    def hold(self, hidden: list[Any]) -> None:
        """Takes those tensors."""
        self.hidden = hidden
        for slot, held in zip(self.written, hidden, strict=True):
            slot.kind, slot.held, slot.address = "constant", (held,), held.address

    def _size(self, size: Any) -> AnySize:
        return simple(SizeExpr.read(size, self.document["dims"]))

    def _slot(self, number: int, value: dict[str, Any], constants: Any) -> Slot:
        shape = tuple(self._size(s) for s in value["shape"])
        strides = tuple(self._size(s) for s in value.get("strides", ())) or tuple(
            map(simple, contiguous_strides(shape))
        )
        kind = "leaf" if value["storage"] == "argument" else "temporary"
        if value.get("role") == "out":
            kind = "temporary"
        made = Slot(number, kind, value["name"], Element.coerce(value["element"]), shape, strides)  # type: ignore[arg-type]
        if value["storage"] == "constant":
            held = next(constants)
            made.kind, made.held, made.address = "constant", (held,), _core.borrow(held).address
        if value.get("role") == "out":
            self.made.add(made)
        return made

    def _view(self, entry: dict[str, Any]) -> View:
        slot = self.slots[entry["value"]]
        shape = tuple(self._size(s) for s in entry["shape"])
        strides = tuple(self._size(s) for s in entry.get("strides", ())) or tuple(
            map(simple, contiguous_strides(shape))
        )
        element = Element.coerce(entry.get("element", slot.element))
        return View(slot, self._size(entry.get("offset", 0)), shape, strides, element)  # type: ignore[arg-type]

    def _number(self, entry: Any) -> Number:
        if not isinstance(entry, dict):
            return float(entry) if isinstance(entry, str) else entry
        if "view" in entry:
            return self._view(entry["view"])
        if "size" in entry and "scalar" not in entry:
            return self._size(entry["size"])  # type: ignore[return-value]
        return Draw(entry.get("draw", 0), 0)

    def lowered(self) -> Lowered:
        """The program with what its arguments and results are."""
        launches = []
        for step, (*also, node) in zip(self.document["steps"], self.graph["nodes"], strict=True):
            tensors, numbers = map(self._view, step["tensors"]), map(self._number, step["numbers"])
            launches.append(
                Launch(
                    self.program.plans[step["plan"]], tuple(tensors), tuple(numbers), int(node), tuple(map(int, also))
                )
            )
        weights = sum(s.nbytes for s in self.slots if s.kind == "constant")
        results = tuple((kind, which) for kind, which in self.graph["results"])
        return Lowered(self.program, tuple(self.hidden), results, tuple(launches), frozenset(self.made), weights)
