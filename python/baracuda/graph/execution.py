"""Graphs that were compiled: one program, which is replayed without Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from baracuda.call.inference import spec_of
from baracuda.call.tree import Tree, parts_of
from baracuda.describe.errors import InvalidProblemError, MemoryLimitError, shown
from baracuda.graph.fold import fold_frozen
from baracuda.graph.lower import Lowered, Lowering
from baracuda.graph.nodes import Launch, Slot, View, listed
from baracuda.graph.passes import BY_CALLS, PASSES, Pass, merge_in_place
from baracuda.graph.recompute import Lives, recompute_one
from baracuda.memory.results import foreign_converter
from baracuda.memory.tensor import outside_arenas

if TYPE_CHECKING:
    from baracuda.call.program import Program
    from baracuda.graph.graph import ComputeGraph
    from baracuda.graph.profile import Profile
    from baracuda.memory.generator import Generator


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Bytes of one run, beside its arguments and results.

    Attributes:
        planned: Scratch, where values that are not alive at once share memory.
        unplanned: The same with memory for each value.
        lower_bound: The most that is alive at once.
        weights: Of captured tensors.
    """

    planned: int
    unplanned: int
    lower_bound: int
    weights: int


@dataclass(frozen=True, slots=True)
class Capture:
    """How a compiled graph's launches got to a GPU: `bool` of it is whether the last ones were one graph of the device.

    Attributes:
        graphs: Graphs that were captured and made ready. Metal has none: a run's launches share one command buffer, which
            is given to the GPU at its end, and counts as a replay.
        updated: Launches in them that were given other pointers, numbers or sizes.
        replays: Runs that were one launch of such a graph, or one command buffer.
        reason: Why runs are launched one kernel after the other, where they are, or as more than one command buffer.
    """

    graphs: int
    updated: int
    replays: int
    reason: str

    def __bool__(self) -> bool:
        return not self.reason

    def __str__(self) -> str:
        if self.reason:
            return f"launched one by one: {self.reason}"
        return f"captured {self.graphs} times, replayed {self.replays} times, {self.updated} launches updated in place"


class ExecutionPlan:
    """A compiled graph: immutable and shared by threads, of which each has scratch of its own. Made by `ComputeGraph.compile`."""

    def __init__(
        self, inputs: Tree, tree: Tree, leaves: Sequence[Slot], lowered: Lowered, nodes: Mapping[int, str], device: str,
        generator: Generator | None,
    ) -> None:  # fmt: skip
        self._inputs, self._tree = inputs, tree
        self._leaves, self._names = tuple(leaves), tuple(s.name for s in leaves)
        self._lowered, self._nodes = lowered, dict(nodes)
        self._generator = generator
        self._captured = False
        self._flat_already = not inputs.keys and all(t.kind == "leaf" for t in inputs.children)
        self.device = device

    def __getstate__(self) -> dict[str, Any]:
        """A copy draws from the generator of `bc.manual_seed` where this one does, not from one that is as it was then."""
        from baracuda.memory.generator import default_generator

        return self.__dict__ | {"_generator": self._generator is default_generator or self._generator}

    def __setstate__(self, state: dict[str, Any]) -> None:
        from baracuda.memory.generator import default_generator

        drawn = default_generator if state["_generator"] is True else state["_generator"]
        self.__dict__.update(state | {"_generator": drawn})

    @property
    def program(self) -> Program:
        """What runs: `to_bytes` of it is for hosts without Python."""
        return self._lowered.program

    @property
    def launches(self) -> int:
        """Kernels of one run."""
        return int(self.program.launches)

    @property
    def memory(self) -> MemoryPlan:
        """Bytes of one run."""
        planned = self.program.memory
        return MemoryPlan(
            planned["scratch"],
            planned["unplanned"],
            Lives.of(self._lowered.launches, self._lowered.handed_out).most,
            self._lowered.weights,
        )

    def set_capture(self, on: bool) -> None:
        """Has runs be one launch of a captured graph from a thread's second one on, or one command buffer on metal, or not."""
        self._captured = on
        self.program.capture(on)

    @property
    def capture(self) -> Capture:
        """What became of it on a GPU."""
        graphs, updated, replays, reason = self.program.graphs
        if not self._captured:
            reason = "nobody asked for capture"
        elif self.device == "cpu":
            reason = "the cpu has no graphs"
        elif not reason and not graphs:
            reason = "the first run of each thread makes the kernels ready"
        return Capture(graphs, updated, replays, reason)

    def run(
        self, *args: Any, out: Any = None, generator: Generator | None = None, stream: Any = None, **kwargs: Any
    ) -> Any:
        """Runs all launches.

        Args:
            *args: What the traced function was given, with real tensors in the place of specs.
            out: Tensors that results are written to, in the order and number of the new results.
            generator: What random functions draw from; by default the one that they drew from when they were traced.
            stream: On a GPU: a `bc.Stream`, another library's, or a handle; by default the device's own, or that of the
                framework that the arguments are of.
            **kwargs: Keyword arguments of the traced function.

        Returns:
            What the traced function returned, in memory of the kind that the arguments are of.

        Raises:
            InvalidProblemError: An argument is missing, or its shape, element or device is another; the reason names it.
        """
        return self.run_flat(self._flat(args, kwargs), out=out, generator=generator, stream=stream)

    def run_flat(
        self, given: list[Any], *, out: Any = None, generator: Generator | None = None, stream: Any = None
    ) -> Any:
        """As `run`, of the tensors among the arguments alone, in the order of the leaves."""
        outs = () if out is None else tuple(out) if isinstance(out, (list, tuple)) else (out,)
        named: dict[str, Any] = {} if self._generator is None else {"generator": generator or self._generator}
        if stream is not None:
            named["stream"] = stream
        made = self.program.run(*given, *self._lowered.hidden, *outs, **named)
        return self._nested(given, made, foreign_converter(given[0]) if given and out is None else None)

    def bind(self, *args: Any, out: Any, stream: Any = None, **kwargs: Any) -> Callable[[], Any]:
        """Freezes the arguments, results and stream, for one thread: what it returns runs with the lowest cost."""
        if self._generator is not None:
            raise InvalidProblemError("bind: got a graph that draws random numbers, want run(generator=...).")
        outs = tuple(out) if isinstance(out, (list, tuple)) else (out,)
        named = {} if stream is None else {"stream": stream}
        bound: Callable[[], Any] = self.program.bind(*self._flat(args, kwargs), *self._lowered.hidden, *outs, **named)
        return bound

    def _flat(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
        """The tensors among the arguments, in the order of the leaves."""
        if self._flat_already and not kwargs and len(args) == len(self._names) and None not in map(_array, args):
            return list(args)
        trees, names = self._inputs.children, self._inputs.keys
        positional = trees[: len(trees) - len(names)]
        if unknown := [n for n in kwargs if n not in names]:
            raise InvalidProblemError(
                f"{unknown[0]}: got an unknown argument, want some of {', '.join(names) or 'none'}."
            )
        if len(args) > len(positional):
            raise InvalidProblemError(
                f"run: got {len(args)} positional arguments, want {len(positional)} ({listed(self._names)})."
            )
        lacking = [self._called(tree) for tree in positional[len(args) :]] + [n for n in names if n not in kwargs]
        if lacking:
            raise InvalidProblemError(f"{lacking[0]}: got nothing, want what the function was traced with.")
        found: list[Any] = []
        for value, tree in zip(args, positional, strict=True):
            _take(value, tree, found, self._names)
        for name, tree in zip(names, trees[len(positional) :], strict=True):
            _take(kwargs[name], tree, found, self._names)
        return found

    def _called(self, tree: Tree) -> str:
        """What a positional argument is called: by its first tensor, `x` of `x[0]`."""
        flat = [tree]
        while flat and flat[0].kind not in ("leaf", "constant"):
            flat[:1] = flat[0].children
        first = next((t for t in flat if t.kind == "leaf"), None)
        if first is None:
            return f"argument {self._inputs.children.index(tree)}"
        name: str = self._names[first.value]
        return name.split("[")[0].split(".")[0]

    def _nested(self, given: list[Any], made: Any, convert: Callable[[Any], Any] | None) -> Any:
        outs = made if isinstance(made, tuple) else (made,)  # what is written of the arguments, then what is made
        news = outs[len(outs) - sum(kind == "made" for kind, _ in self._lowered.results) :]
        news = tuple(map(convert, news)) if convert else news
        flat = [
            news[which] if kind == "made" else given[which] if kind == "leaf" else which
            for kind, which in self._lowered.results
        ]  # fmt: skip
        return self._tree.build(flat)

    def profile(self, *args: Any, runs: int = 20, **kwargs: Any) -> Profile:
        """Times every launch by itself, on copies of the arguments and of captured tensors.

        On a GPU by events before and behind each launch in a stream of its own: of kernels that take less time than a
        launch does they show the launch's.

        Args:
            *args: What `run` is given.
            runs: How often; the medians count.
            **kwargs: What `run` is given.

        Returns:
            Microseconds by launch and node; `print` shows a table, `to_svg` draws it.
        """
        from baracuda.graph.profile import profiled

        return profiled(self, self._flat(args, kwargs), runs)

    def save(self, path: str | Path) -> None:
        """Writes a folder: the program, what its arguments and results are, and captured tensors as safetensors.

        Raises:
            InvalidProblemError: Among arguments or results is something that is no tensor, number or text.
        """
        from baracuda.graph.storage import save

        save(self, path)

    @classmethod
    def load(cls, path: str | Path) -> ExecutionPlan:
        """Reads what `save` wrote. Random functions draw from the generator of `bc.manual_seed`, where `run` names none.

        Raises:
            InvalidProblemError: The folder is of another version, or was changed.
            UnsupportedError: A kernel is not here.
        """
        from baracuda.graph.storage import load

        return load(path)

    def to_dot(self) -> str:
        """The launches in Graphviz's language."""
        from baracuda.graph.draw import dot

        return dot(self)

    def to_svg(self) -> str:
        """A picture: launches with their kernels, those in yellow that do what several calls did."""
        from baracuda.graph.draw import svg

        return svg(self)

    _repr_svg_ = to_svg  # what notebooks show

    def explain(self) -> str:
        """Every launch with its kernel, what it promises, and the calls that it does at once; and the memory."""
        from baracuda.graph.draw import explained_plan

        return explained_plan(self)

    def __repr__(self) -> str:
        memory = self.memory
        return f"<ExecutionPlan ({listed(self._names)}), {self.launches} launches, {memory.planned} bytes of scratch>"


def _array(value: Any) -> bool | None:
    """True of what may be a tensor, and is looked at by the program; else None."""
    return None if value is None or isinstance(value, (bool, int, float, str, list, tuple, dict)) else True


def _take(value: Any, tree: Tree, found: list[Any], names: Sequence[str]) -> None:
    """Appends the tensors of one argument, which is nested as the traced one was."""
    if tree.kind == "leaf":
        if _array(value) is None:
            raise InvalidProblemError(f"{names[len(found)]}: got {shown(value)}, want a tensor.")
        found.append(value)
        return
    if tree.kind == "constant":
        if value is not tree.value and (spec_of(value) is not None or value != tree.value):
            raise InvalidProblemError(
                f"run: got {shown(value)} where the function was traced with {shown(tree.value)}. Numbers are constants of "
                "the graph: trace a 0-d tensor in its place, or trace again."
            )
        return
    parts, keys = parts_of(value) or (None, [])
    if parts is None or len(parts) != len(tree.children) or keys != tree.keys:
        raise InvalidProblemError(
            f"run: got {shown(value)}, want {len(tree.children)} values, nested as they were traced."
        )
    for part, child in zip(parts, tree.children, strict=True):
        _take(part, child, found, names)


@outside_arenas()
def compiled(
    graph: ComputeGraph, passes: Sequence[str] | None, memory_limit: int | None, frozen: bool, capture: bool
) -> ExecutionPlan:
    """The graph's launches, after the passes, as a program."""
    if passes is not None and not isinstance(passes, (list, tuple)):
        raise InvalidProblemError(f"passes: got {shown(passes)}, want None or a list of some of {', '.join(PASSES)}.")
    for name in passes or ():
        if not isinstance(name, str) or name not in PASSES:
            raise InvalidProblemError(f"passes: got {shown(name)}, want some of {', '.join(PASSES)}.")
    chosen = [name for name in PASSES if passes is None or name in passes]
    early = [PASSES[name] for name in chosen if name in BY_CALLS]
    late: list[Pass] = [fold_frozen] if frozen else []
    late += [PASSES[name] for name in chosen if name not in BY_CALLS and PASSES[name] is not merge_in_place]
    behind = [PASSES[name] for name in chosen if PASSES[name] is merge_in_place]
    results = list(graph._views)

    def by_calls(graph: ComputeGraph) -> list[Launch]:
        launches = [launch for node in graph.nodes for launch in node.launches]
        for change in early:
            launches = change(launches, list(graph._views), graph)
        return launches

    # Calls are known of the graphs of single sizes; where what they come to is not the same for all, it is left as it is.
    fitted = graph._samples.launches(by_calls) if graph._samples is not None else None
    launches = by_calls(graph) if fitted is None else fitted
    for change in late:
        launches = change(launches, results, graph)

    def lowered(launches: list[Launch]) -> Lowered:
        for change in behind:
            launches = change(launches, results, graph)
        made = Lowering(graph.device, launches, list(graph.leaves), graph._tracer.draws)
        return made.lower(results, graph._conditions)

    if not launches and not any(isinstance(v, View) for v in results):
        raise InvalidProblemError(
            "compile: got a graph that neither returns nor writes a tensor, want a function that does one of both."
        )
    found = lowered(launches)
    if memory_limit is not None:
        found = _within(memory_limit, found, launches, results, lowered)
    names = {node.index: node.label or node.name for node in graph.nodes}
    plan = ExecutionPlan(graph._inputs, graph._tree, graph.leaves, found, names, graph.device, graph._tracer.generator)
    plan.set_capture(capture)
    return plan


# How often values are computed again one after the other, though the most that is alive does not become less.
_MOST_IN_VAIN = 32


def _within(
    limit: int, found: Lowered, launches: list[Launch], results: list[Any], lowered: Callable[[list[Launch]], Lowered]
) -> Lowered:
    """With values computed again until the scratch is at most so many bytes."""
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 0:
        raise InvalidProblemError(f"memory_limit: got {shown(limit)}, want a number of bytes.")
    least, lowest, vain = found.program.scratch_bytes, Lives.within(launches, results).height, 0
    longest = 4 * len(launches) + 64
    while found.program.scratch_bytes > limit:
        again = recompute_one(launches, results)
        if again is None or len(again) > longest or vain == _MOST_IN_VAIN:
            raise MemoryLimitError(
                f"compile: got memory_limit={limit}, want at least {least} bytes of scratch: what is left cannot be computed "
                "again. Allow more, or make the problem smaller."
            )
        launches = again
        found = lowered(launches)
        height = Lives.within(launches, results).height
        lowest, vain = min(lowest, height), 0 if height < lowest else vain + 1
        least = min(least, found.program.scratch_bytes)
    return found
