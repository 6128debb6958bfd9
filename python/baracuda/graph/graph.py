"""Compute graphs: `bc.trace` runs a function with tensors without memory and takes down what it launches."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from baracuda import _core, _index
from baracuda.call.inference import spec_of
from baracuda.call.tree import Tree, flatten
from baracuda.describe.calls import parameter_names, signed
from baracuda.describe.dims import Dim
from baracuda.describe.elements import Element
from baracuda.describe.errors import BaracudaError, InvalidProblemError, Refusal, shown
from baracuda.describe.lines import is_own_file
from baracuda.graph.decisions import Condition, conditions
from baracuda.graph.ends import least_sizes
from baracuda.graph.nodes import Node, Slot, View, listed
from baracuda.graph.symbols import Samples, at_point, with_symbols
from baracuda.graph.tracer import Tracer
from baracuda.graph.watched import Watch
from baracuda.memory.device import name_of, place_of
from baracuda.memory.tensor import TensorSpec

if TYPE_CHECKING:
    from baracuda.graph.execution import ExecutionPlan


class ComputeGraph:
    """Calls on tensors without memory, in order: made by `bc.trace`, or by hand with `add_leaf` and `add_op`.

    Example:
        >>> graph = bc.ComputeGraph()
        >>> x, w = graph.add_leaf((64, 32), name="x"), graph.add_leaf((32, 16), name="w")
        >>> h = graph.add_op(F.relu, graph.add_op(F.matmul, x, w))
        >>> graph.outputs(h)
        >>> run = graph.compile()

    Args:
        device: Where all of it runs.
    """

    def __init__(self, device: Any = "cpu") -> None:
        self.device = name_of(place_of(device))
        self._tracer = Tracer(self.device)
        self._leaves: list[Any] = []
        self._inputs = Tree(tuple)
        self._results: list[Any] | None = None
        self._views: list[Any] = []  # of the results; of captured ones the tensors
        self._samples: Any = None  # of graphs whose sizes are bc.Dims
        self._conditions: list[Condition] = []  # which these have to meet
        self._tree = Tree("constant")

    # --- made by hand

    def add_leaf(self, shape: Any, element: Any = "f32", *, name: str = "", strides: Any = None) -> Any:
        """A tensor that each run is given.

        Args:
            shape: Sizes, or a `bc.TensorSpec`.
            element: Of its numbers, where that is no spec.
            name: What `run` and messages call it.
            strides: Where it is not contiguous, in elements.

        Returns:
            A tensor without memory, for `add_op`.
        """
        spec = shape if isinstance(shape, TensorSpec) else TensorSpec(shape, element, strides, self.device)
        return self._leaf(spec, name or f"input{len(self._leaves)}")

    def _leaf(self, spec: TensorSpec, name: str) -> Any:
        if name in self.leaf_names:
            raise InvalidProblemError(f"{name}: got the name twice, want one for each leaf.")
        if spec.device != self.device:
            raise InvalidProblemError(f"{name}: got a tensor on {spec.device}, want one on {self.device}.")
        made = self._tracer.leaf(name, spec.shape, spec.strides, Element.coerce(spec.element), spec.read_only)
        self._leaves.append(made)
        self._inputs.children.append(Tree("leaf", value=len(self._leaves) - 1))
        return made

    def add_op(self, fn: Callable[..., Any], *args: Any, name: str = "", **kwargs: Any) -> Any:
        """Calls a function, or a plan's `run`, on tensors of this graph; real ones are captured.

        Args:
            fn: A function of `bc.functional`, any function made of those, or `plan.run`.
            *args: Its arguments.
            name: What messages and pictures call the nodes that it makes.
            **kwargs: Its keyword arguments.

        Returns:
            What it returns: tensors without memory in the place of results.

        Raises:
            InvalidProblemError: What the call raises, named by node and label; or that it needs numbers that only a run
                has, with the line that asked for them.
        """
        if not callable(fn):
            raise InvalidProblemError(f"fn: got {shown(fn)}, want a function of arrays, such as one of bc.functional.")
        first = len(self._tracer.nodes)
        try:
            with self._tracer.on():
                found = fn(*args, **kwargs)
        except (BaracudaError, BufferError) as error:
            called = name or getattr(fn, "__name__", type(fn).__name__)
            where = f"node {len(self._tracer.nodes)} ({called})"
            if isinstance(error, BaracudaError) and not _lacks_numbers(error):
                line = _line_of(_own_frames(error))
                error.args = (f"{where}: {error}" + (f"\n  in {line}" if line else ""),)
                raise
            if isinstance(error, BufferError) and "without memory" not in str(error):
                raise
            raise _asked_for_numbers(where, error) from error
        for node in self._tracer.nodes[first:]:
            node.label = name and (name if len(self._tracer.nodes) == first + 1 else f"{name}.{node.name}")
        return found

    def outputs(self, *results: Any) -> None:
        """Says what runs return: tensors of this graph, nested in tuples, lists and dicts as wanted."""
        value = results[0] if len(results) == 1 else tuple(results)
        flat: list[Any] = []
        self._tree = flatten(value, lambda v: isinstance(v, _core.Tensor), flat, [], "result")
        self._views = [self._tracer.view_of(x) or x for x in flat]  # refuses those of others
        self._results = flat

    # --- what it is

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Calls, in order."""
        return tuple(self._tracer.nodes)

    @property
    def tensors(self) -> tuple[Any, ...]:
        """The leaves as tensors without memory, for `add_op` and `grad`."""
        return tuple(self._leaves)

    @property
    def results(self) -> tuple[Any, ...]:
        """What runs return, as tensors of this graph, in order."""
        return tuple(self._results or ())

    @property
    def leaves(self) -> tuple[Slot, ...]:
        """What each run is given."""
        return tuple(s for s in self._tracer.slots if s.kind == "leaf")

    @property
    def constants(self) -> tuple[Slot, ...]:
        """Tensors that were captured: by reference, so that runs see what they hold then."""
        return tuple(s for s in self._tracer.slots if s.kind == "constant" and s.held)

    @property
    def leaf_names(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(s.name for s in self.leaves)

    @property
    def n_leafs(self) -> int:
        """Number of leaves."""
        return len(self.leaves)

    @property
    def n_ops(self) -> int:
        """Number of nodes."""
        return len(self._tracer.nodes)

    def view_of(self, tensor: Any) -> View | None:
        """Where a tensor of this graph lies: its slot, offset, shape and strides; None for any other thing.

        Args:
            tensor: A leaf, what `add_op` returned, or a view of one.
        """
        return self._tracer.view_of(tensor)

    def grad(self, outputs: Any, wrt: Sequence[Any]) -> ComputeGraph:
        """A graph that also computes gradients, by the functions' own rules.

        Args:
            outputs: A tensor of this graph, or several: the sum of all their elements is what is differentiated.
            wrt: Leaves, or anything computed, or captured tensors.

        Returns:
            A new graph of the same leaves. It returns what this one does, and a tuple of gradients in the order of `wrt`;
            zeros for what the outputs do not depend on.

        Raises:
            InvalidProblemError: A function on the way has no gradient: the node is named.
        """
        from baracuda.graph import symbols
        from baracuda.graph.gradient import with_gradients

        if self._samples is not None:
            return symbols.with_gradients(self, outputs if isinstance(outputs, (list, tuple)) else (outputs,), wrt)
        return with_gradients(self, tuple(outputs) if isinstance(outputs, (list, tuple)) else (outputs,), tuple(wrt))

    def compile(
        self,
        *,
        memory_limit: int | None = None,
        passes: Sequence[str] | None = None,
        frozen: bool = False,
        capture: bool = True,
    ) -> ExecutionPlan:
        """Chooses kernels for this machine and plans the memory.

        Args:
            memory_limit: The most bytes of scratch: values are computed again instead of kept until it is enough.
            passes: Names of the passes to make; all by default. See `baracuda.graph.passes.PASSES`.
            frozen: Promises that captured tensors stay as they are now: what they alone decide (weights that are cast,
                transposed, joined) is computed once, here. Those that the graph itself writes are not meant.
            capture: On a GPU: runs are one launch of a graph that is captured once and updated in place, where that can be;
                `plan.capture` says what became of it.

        Raises:
            InvalidProblemError: Nothing was said to be returned, or a pass is unknown.
            MemoryLimitError: It takes more; says how much.
        """
        from baracuda.graph.execution import compiled

        if self._results is None:
            raise InvalidProblemError("compile: got a graph without outputs, want graph.outputs(...) before.")
        return compiled(self, passes, memory_limit, frozen, capture)

    def explain(self) -> str:
        """Its leaves, nodes and captured tensors, one line each."""
        from baracuda.graph.draw import explained

        return explained(self)

    def to_dot(self) -> str:
        """The graph in Graphviz's language."""
        from baracuda.graph.draw import dot

        return dot(self)

    def to_svg(self) -> str:
        """A picture: nodes with what they make, in the order in which they run."""
        from baracuda.graph.draw import svg

        return svg(self)

    _repr_svg_ = to_svg  # what notebooks show

    def __repr__(self) -> str:
        return f"<ComputeGraph ({listed(self.leaf_names)}), {self.n_ops} nodes on {self.device}>"


@signed
def trace(fn: Callable[..., Any], *specs: Any, **named: Any) -> ComputeGraph:
    """Runs a function with tensors without memory, and takes down every launch.

    Functions of `bc.functional`, `bc.vjp` and its pulls, plans, in-place functions, views and operators of `bc.Tensor` are
    traced. Python numbers become constants; what is a number of each run is a 0-d tensor. Random functions draw when the
    graph runs.

    Args:
        fn: The function. It is called once, where no size is a `bc.Dim`.
        *specs: Its arguments: `bc.TensorSpec`s, or tensors of any framework, of which shape and element are taken; these
            nested in tuples, lists and dicts. All other values are passed as they are. Sizes of specs may be `bc.Dim`s:
            the function is then called once for each of a few sizes, with numbers, and one graph serves all up to the
            maximum.
        **named: Keyword arguments, likewise.

    Raises:
        InvalidProblemError: The function needs the numbers of a tensor (`if x > 0`, `.item()`, `np.asarray(x)`, or a
            function whose result's size they decide); names the line.

    Example:
        >>> graph = bc.trace(lambda x, w: F.softmax(F.matmul(x, w), -1), bc.TensorSpec((8, 64)), bc.TensorSpec((64, 10)))
        >>> y = graph.compile().run(x, w)
    """
    given: list[Any] = []
    names: list[str] = []
    trees = [
        flatten(v, _is_tensor, given, names, name)
        for name, v in zip(parameter_names(fn, len(specs)), specs, strict=True)
    ]  # fmt: skip
    by_name = {name: flatten(v, _is_tensor, given, names, name) for name, v in named.items()}
    seen = [spec_of(v) for v in given]
    devices = {s.device for s in seen if s is not None}
    if len(devices) > 1:
        raise InvalidProblemError(f"trace: got tensors on {', '.join(sorted(devices))}, want them on one device.")

    def at(point: Mapping[str, int]) -> ComputeGraph:
        graph = ComputeGraph(*devices)
        graph._tracer.watch = Watch() if point else None
        fixed = [replace(s, shape=at_point(s.shape, point)) for s in seen if s is not None]
        stand_ins = [graph._leaf(s, name) for s, name in zip(fixed, names, strict=True)]
        graph._inputs = Tree(tuple, [*trees, *by_name.values()], list(by_name))
        args = [tree.build(stand_ins) for tree in trees]
        kwargs = {name: tree.build(stand_ins) for name, tree in by_name.items()}
        graph.outputs(graph.add_op(fn, *args, **kwargs))
        for node in graph.nodes:
            node.label = ""
        return graph

    sizes: list[Any] = [size for s in seen if s is not None for size in s.shape]
    dims = [size for size in sizes if isinstance(size, Dim)]
    if not dims:
        return at({})
    samples = Samples.of(dims)
    graphs = [at(point) for point in samples.points]
    held = conditions(samples, [g._tracer.watch.notes for g in graphs if g._tracer.watch is not None])
    ends, more = least_sizes(samples, at, held)
    return with_symbols(samples, graphs, ends, [*held, *more])


def _is_tensor(value: Any) -> bool:
    return spec_of(value) is not None


def _lacks_numbers(error: BaracudaError) -> bool:
    return any(r.code == "null_data" for r in error.refusals)


def _own_frames(error: Exception) -> list[traceback.FrameSummary]:
    """The user's frames that an error went through, where other libraries are between."""
    own = [f for f in traceback.extract_tb(error.__traceback__) if not is_own_file(f.filename)]
    return [f for f in own if "-packages" not in f.filename] or own


def _line_of(own: list[traceback.FrameSummary]) -> str:
    """The innermost of them: file, line and text."""
    return f"{own[-1].filename}:{own[-1].lineno}: {own[-1].line}" if own else ""


def _asked_for_numbers(where: str, error: Exception) -> InvalidProblemError:
    """The error that names the line of the user's that asked for the numbers of a tensor without memory."""
    own, frames = _own_frames(error), list(traceback.extract_tb(error.__traceback__))
    line = _line_of(own) or str(error)
    inner = frames[frames.index(own[-1]) + 1 :] if own else []
    # Functions that run without a Python frame name themselves.
    asked = [f.name for f in inner if not f.name.startswith(("_", "<"))] or [
        r.field for r in getattr(error, "refusals", ()) if r.field in _index.FUNCTIONS
    ]
    line += f"\n  ({asked[0]} needs them)" if asked else ""
    return InvalidProblemError(
        f"{where}: got a tensor without memory, want one with numbers, in\n  {line}\n"
        "A traced function knows shapes only: use F.where in the place of conditions, functions whose results' sizes "
        "do not depend on numbers, and no .item() or NumPy.",
        [Refusal("null_data", "", "a tensor without memory", "one with numbers")],
    )
