"""A graph of torch's that was compiled: programs, and what torch runs between them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.utils._python_dispatch import _disable_current_modes

import baracuda as bc
from baracuda.torch.dropout import with_masks
from baracuda.torch.fx import called, filled_in
from baracuda.torch.open import OpenProgram
from baracuda.torch.partition import Group, calls_of, groups, tried
from baracuda.torch.report import Fallback, current
from baracuda.torch.segment import COPIED, Made, Part, Segment
from baracuda.torch.sizes import Key, Numbers, Symbols
from baracuda.torch.table import NotMapped
from baracuda.torch.writes import COPY

# Tensors of so many elements that depend on no argument are made when the graph is compiled.
_FOLDED = 1 << 16


@dataclass(frozen=True, slots=True)
class Options:
    """What `torch.compile(options=...)` may say.

    Attributes:
        passes: Names of the passes of compiled graphs; None for all of them.
        fallback: Whether torch runs what baracuda has nothing for; else that is an error.
    """

    passes: tuple[str, ...] | None = None
    fallback: bool = True


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a node's value lies in a run."""

    index: int


class _ByTorch:
    """A node that torch runs."""

    def __init__(self, node: Node, place: int, args: Any, counted: Fallback | None) -> None:
        self.node, self.place, self.counted = node, place, counted
        self.target: Any = node.target
        self.args, self.kwargs = args

    def run(self, values: list[Any]) -> None:
        began = time.perf_counter()
        args, kwargs = _filled(self.args, values), _filled(self.kwargs, values)
        values[self.place] = self.target(*args, **kwargs)
        if self.counted is not None:
            self.counted.calls += 1
            self.counted.seconds += time.perf_counter() - began


def _filled(template: Any, values: list[Any]) -> Any:
    """Arguments with values in their places."""
    if isinstance(template, _Place):
        return values[template.index]
    if isinstance(template, (list, tuple)):
        parts = [_filled(t, values) for t in template]
        return parts if isinstance(template, list) else tuple(parts)
    if isinstance(template, dict):
        return {key: _filled(t, values) for key, t in template.items()}
    if isinstance(template, slice):
        return slice(*[_filled(t, values) for t in (template.start, template.stop, template.step)])
    return template


class _Program:
    """A partition."""

    def __init__(self, part: Part, place: dict[Node, int], by_torch: Callable[[], list[_ByTorch]]) -> None:
        self.part, self.by_torch = part, by_torch
        self.inputs = [place[node] for node, _ in part.leaves]
        self.program = None if part.plan is None else part.plan.program
        made = [(place[m.node], m) for m in part.made]
        self.aliases = [(to, place[m.source], m) for to, m in made if isinstance(m.source, Node)]
        self.results = [(to, m.source, m) for to, m in made if not isinstance(m.source, Node)]

    def run(self, values: list[Any]) -> None:
        given = [values[i] for i in self.inputs]
        for to, source, made in self.aliases:
            values[to] = _placed(values[source], made)
        if self.program is None:
            return
        began, now = time.perf_counter(), current()
        outs = [torch.empty(shape, dtype=dtype) for shape, dtype in self.part.results]
        try:
            self.program.run(*given, *outs)
        except bc.InvalidProblemError as error:
            if not self._once_more(given, outs, error):
                for step in self.by_torch():
                    step.run(values)
                return
        for to, number, made in self.results:
            values[to] = _placed(outs[number], made)
        now.runs += 1
        now.seconds += time.perf_counter() - began

    def _once_more(self, given: list[Any], outs: list[Any], error: bc.InvalidProblemError) -> bool:
        """Whether it runs with arguments that were copied to lie as was promised."""
        now, written = current(), {n for n in self.part.nodes if n.target is COPY}
        moved = [
            x if layout.same_as(x.shape, x.stride()) or any(w.args[0] is node for w in written) else layout.made().copy_(x)
            for x, (node, layout) in zip(given, self.part.leaves, strict=True)
        ]  # fmt: skip
        changed = sum(a is not b for a, b in zip(moved, given, strict=True))
        if changed and self.program is not None:
            try:
                self.program.run(*moved, *outs)
                now.relaid += changed
                return True
            except bc.InvalidProblemError as other:
                error = other
        why = " ".join(str(error).split())[:300]
        now.refused[why] = now.refused.get(why, 0) + 1
        return False


def _placed(x: torch.Tensor, made: Made) -> torch.Tensor:
    """A value as torch promised it, out of the memory that it lies in."""
    if made.offset is None:
        return x
    layout = made.layout
    if made.offset == COPIED:
        return layout.made().copy_(x)
    return torch.as_strided(x, layout.shape, layout.strides, x.storage_offset() + made.offset)


class Compiled:
    """A graph at one set of sizes.

    Args:
        gm: The graph.
        numbers: What its open sizes are.
        options: What the user asked for.
    """

    def __init__(self, gm: GraphModule, numbers: Numbers, options: Options) -> None:
        began = time.perf_counter()
        self.gm, self.numbers, self.options = gm, numbers, options
        nodes = list(gm.graph.nodes)
        self.params = [n for n in nodes if n.op == "placeholder"]
        self.output = next(n for n in nodes if n.op == "output")
        self.held: dict[Node, Any] = {n: _attribute(gm, str(n.target)) for n in nodes if n.op == "get_attr"}
        for node, attribute in self.held.items():
            node.meta.setdefault("val", attribute)
        folded = self._folded(nodes)
        calls = calls_of(nodes, numbers, folded)
        self.place = {n: i for i, n in enumerate([*self.params, *self.held, *folded, *calls])}
        self.steps: list[_ByTorch | _Program] = []
        self._make(calls, folded)
        self.initial = [*self.held.values(), *folded.values()]
        self.results = [self._result(r, folded) for r in _results(self.output)]
        self.gone = self._last_uses()
        current().lowering += time.perf_counter() - began

    def _folded(self, nodes: Sequence[Node]) -> dict[Node, torch.Tensor]:
        """The values of what depends on no argument."""
        found: dict[Node, torch.Tensor] = {}
        for node in nodes:
            value: Any = node.meta.get("val")
            known = node.op == "call_function" and isinstance(value, torch.Tensor) and node not in found
            known = known and all(n in found or self.numbers.knows(n.meta.get("val")) for n in node.all_input_nodes)
            if not known or not _pure(node) or not all(map(self.numbers.knows, value.shape)):
                continue
            if _count(self.numbers.of(n) for n in value.shape) > _FOLDED:
                continue
            with torch.inference_mode(False), torch.no_grad():
                made = called(node, lambda n: found[n] if n in found else self.numbers.of(n.meta["val"]))
            if isinstance(made, torch.Tensor):
                found[node] = made
        return found

    def _make(self, calls: list[Node], folded: dict[Node, torch.Tensor]) -> None:
        now = current()
        now.graphs += 1
        now.nodes += len(calls)
        segment, refused = tried(calls, self.numbers, folded)
        if refused and not self.options.fallback:
            node, why = next(iter(refused.items()))
            raise NotImplementedError(
                f"baracuda has nothing for {node.target} ({why}). Leave options={{'fallback': False}} out to have torch run it."
            )
        if not refused:
            self._add(Group(calls, by_torch=False), segment)
            return
        counted = {node: now.fallback(_name(node.target), why) for node, why in refused.items()}
        for group in groups(calls, refused, [*self.params, *self.held, *folded]):
            if group.by_torch:
                self.steps += [self._by_torch(n, counted.get(n)) for n in group.nodes]
                continue
            segment = Segment(self.numbers, folded)
            for node in group.nodes:
                segment.add(node)
            self._add(group, segment)

    def _add(self, group: Group, segment: Segment) -> None:
        inside = set(group.nodes)
        leaving = [
            n for n in group.nodes
            if isinstance(n.meta.get("val"), torch.Tensor) and segment.values[n] is not None and n.target is not COPY
            and any(u not in inside for u in n.users)
        ]  # fmt: skip
        part = segment.finish(leaving, self.options.passes)
        now = current()
        if part.plan is not None:
            now.partitions += 1
            now.launches += part.plan.launches
        if part.plan is not None or part.made:
            self.steps.append(_Program(part, self.place, lambda: [self._by_torch(n, None) for n in group.nodes]))

    def _by_torch(self, node: Node, counted: Fallback | None) -> _ByTorch:
        args = filled_in(
            (node.args, dict(node.kwargs)),
            lambda n: _Place(self.place[n]) if n in self.place else self.numbers.of(n.meta["val"]),
        )
        return _ByTorch(node, self.place[node], args, counted)

    def _result(self, result: Any, folded: dict[Node, torch.Tensor]) -> Any:
        """Where a result lies, or the number that it is; what was made when the graph was compiled is copied."""
        if not isinstance(result, Node):
            return result
        if result in folded:
            return folded[result].clone
        return _Place(self.place[result]) if result in self.place else self.numbers.of(result.meta["val"])

    def _last_uses(self) -> list[list[int]]:
        """What nobody needs behind each step."""
        kept = {r.index for r in self.results if isinstance(r, _Place)}
        kept |= set(range(len(self.params), len(self.params) + len(self.initial)))
        last: dict[int, int] = {}
        for at, step in enumerate(self.steps):
            nodes = [step.node] if isinstance(step, _ByTorch) else step.part.nodes
            for node in nodes:
                last |= {self.place[n]: at for n in (node, *node.all_input_nodes) if n in self.place}
        return [[i for i, at in last.items() if at == step and i not in kept] for step in range(len(self.steps))]

    def __call__(self, args: list[Any]) -> list[Any]:
        """Runs it; the list is emptied, so that nobody holds on to what it was given."""
        values = [*args, *self.initial, *[None] * (len(self.place) - len(args) - len(self.initial))]
        args.clear()
        for step, gone in zip(self.steps, self.gone, strict=True):
            step.run(values)
            for i in gone:
                values[i] = None
        return [values[r.index] if isinstance(r, _Place) else r() if callable(r) else r for r in self.results]


def _pure(node: Node) -> bool:
    """Whether it gives the same at each call, and writes nothing."""
    tags, schema = getattr(node.target, "tags", ()), getattr(node.target, "_schema", None)
    if schema is None or schema.is_mutable or "empty" in schema.name:
        return False
    return torch.Tag.nondeterministic_seeded not in tags


def _results(output: Any) -> list[Any]:
    return list(output.args[0])


def _name(target: Any) -> str:
    """What reports call what a node calls."""
    return str(target) if hasattr(target, "_schema") else str(getattr(target, "__name__", target))


def _count(sizes: Any) -> int:
    count = 1
    for n in sizes:
        count *= n
    return count


def _attribute(gm: GraphModule, path: str) -> Any:
    found: Any = gm
    for name in path.split("."):
        found = getattr(found, name)
    return found


class OpenGraph:
    """A graph with open sizes: a program for each of the first sizes, then one for all that are not much larger.

    Where the graph cannot be one program of open sizes, each further size is compiled for itself.

    Args:
        gm: The graph.
        symbols: Its open sizes.
        options: What the user asked for.
    """

    def __init__(self, gm: GraphModule, symbols: Symbols, options: Options) -> None:
        self.gm, self.symbols, self.options = gm, symbols, options
        self.compiled: dict[Key, Compiled] = {}
        self.open: OpenProgram | None = None
        self.closed = False  # there is none

    def __call__(self, args: list[Any]) -> list[Any]:
        """Runs it at the sizes of the arguments."""
        key = self.symbols.key(args)
        found = self.compiled.get(key)
        if found is not None:
            return found(args)
        with _disable_current_modes():
            program = self._program(key)
        if program is not None:
            try:
                return program(args, key)
            except (bc.InvalidProblemError, NotMapped):
                pass  # not for these arguments: a program of their own says whether anything is wrong with them
        current().sizes += 1
        if len(self.compiled) >= _MOST_SIZES:
            del self.compiled[next(iter(self.compiled))]
        with _disable_current_modes():
            found = self.compiled[key] = Compiled(self.gm, self.symbols.at(key), self.options)
        return found(args)

    def _program(self, key: Key) -> OpenProgram | None:
        """The program of open sizes that serves these, made where enough sizes came that it is worth its time."""
        if self.open is not None and self.open.serves(key):
            return self.open
        if self.closed or len(self.compiled) < _FIRST_SIZES or min(key, default=0) < 2:
            return None
        most = tuple(max(_LEAST_MOST, 1 << (n - 1).bit_length()) for n in key)
        if self.open is not None:
            most = tuple(map(max, most, self.open.most))
        try:
            self.open = OpenProgram(list(self.gm.graph.nodes), self.symbols, most, self.options.passes)
        except Exception as error:  # whatever it is, there is another way
            self.closed = True
            why = " ".join(str(error).split())[:300]
            current().closed[why] = current().closed.get(why, 0) + 1
            return None
        return self.open


# Of how many sizes programs are kept; after how many one of open sizes is tried; and the least maximum of that.
_MOST_SIZES, _FIRST_SIZES, _LEAST_MOST = 64, 2, 64


def compile_graph(gm: GraphModule, options: Options) -> Callable[[list[Any]], list[Any]]:
    """A graph that AOTAutograd made, as a function of a list of its arguments, which it empties."""
    with_masks(gm)
    nodes = list(gm.graph.nodes)
    try:
        symbols = Symbols([n for n in nodes if n.op == "placeholder"], nodes)
        with _disable_current_modes():
            call = OpenGraph(gm, symbols, options) if symbols.sources else Compiled(gm, Numbers({}), options)
    except NotMapped as error:
        call = _whole(gm, str(error))

    def run(args: list[Any]) -> list[Any]:
        return call(args)

    vars(run)["_boxed_call"] = True
    return run


def _whole(gm: GraphModule, why: str) -> Any:
    """A graph that torch runs as a whole."""
    now = current()
    now.whole[why] = now.whole.get(why, 0) + 1

    def call(args: list[Any]) -> list[Any]:
        given = list(args)
        args.clear()
        return list(gm(*given))

    return call
