"""One graph for every length: traced at a few sizes, with each number written as an expression of the `bc.Dim`s.

No rule and no function of the user's needs to know symbols: they see numbers, and what they make of them is fitted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from fractions import Fraction
from itertools import combinations
from math import lcm, prod
from typing import TYPE_CHECKING, Any

from baracuda.choose.plan import Plan, plan
from baracuda.describe.dims import Dim
from baracuda.describe.errors import BaracudaError, InvalidProblemError
from baracuda.describe.sizes import SizeExpr
from baracuda.graph.ends import same_at
from baracuda.graph.nodes import Draw, Launch, Node, Slot, View

if TYPE_CHECKING:
    from baracuda.graph.decisions import Condition
    from baracuda.graph.graph import ComputeGraph

Point = Mapping[str, int]
_SMALL = (13, 17, 22)  # sizes of 0 and 1 broadcast and lie in other ways than all others


@dataclass(frozen=True, slots=True)
class Samples:
    """Sizes to trace at: a first point, two beside it along each dim, one along each pair, and the maxima to verify."""

    dims: dict[str, int]  # and their maxima
    values: dict[str, tuple[int, int, int]]
    steps: dict[str, int]  # what the dims are multiples of

    @classmethod
    def of(cls, sizes: Sequence[Dim]) -> Samples:
        """For the dims of all shapes.

        Raises:
            InvalidProblemError: Two maxima of one name, or too few sizes below it.
        """
        dims: dict[str, int] = {}
        for dim in sizes:
            if dims.setdefault(dim.name, dim.max) != dim.max:
                raise InvalidProblemError(
                    f"bc.Dim({dim.name!r}): got max={dims[dim.name]} and max={dim.max}, want one maximum per name."
                )
        values, steps = {}, {}
        for name, most in dims.items():
            if not any(d == Dim(name, most) for d in sizes):
                seen = ", ".join(str(d) for d in sizes if d.name == name)
                raise InvalidProblemError(
                    f"trace: got sizes {seen}, want one that is {name} itself, which runs tell it by."
                )
            step = lcm(*(d.div for d in sizes if d.name == name))
            if most % step:
                raise InvalidProblemError(
                    f"bc.Dim({name!r}): got max={most}, want a multiple of {step}, as its sizes are."
                )
            wide = _SMALL[-1] * step < most
            first, second, third = (k * step for k in _SMALL) if wide else (most - k * step for k in (3, 2, 1))
            if first < 2:
                raise InvalidProblemError(
                    f"bc.Dim({name!r}): got max={most}, want at least {3 * step + 2}: trace short ones as fixed sizes."
                )
            values[name], steps[name] = (first, second, third), step
        return cls(dims, values, steps)

    def usual(self, name: str) -> int:
        """The least size of a dim but 0 and 1, which broadcast and lie in other ways than all others."""
        step = self.steps[name]
        return step * -(-2 // step)

    @property
    def points(self) -> list[dict[str, int]]:
        """All of them; the maxima last."""
        low = {n: v[0] for n, v in self.values.items()}
        found = [low]
        found += [low | {n: v[k]} for n, v in self.values.items() for k in (1, 2)]
        found += [low | {n: self.values[n][1], m: self.values[m][1]} for n, m in combinations(self.dims, 2)]
        return [*found, dict(self.dims)]

    def fit(self, values: Sequence[int]) -> int | SizeExpr:
        """What takes these values at the points: a sum of products of at most two dims.

        Raises:
            ValueError: None does.
        """
        if len(set(values)) == 1:
            return values[0]
        known = {tuple(p.items()): v for p, v in zip(self.points, values, strict=True)}
        low = {n: v[0] for n, v in self.values.items()}

        def at(**sizes: int) -> Fraction:
            return Fraction(known[tuple((low | sizes).items())])

        terms: dict[tuple[str, ...], Fraction] = {(): at()}

        def add(by: Fraction, *factors: tuple[str, int]) -> None:
            """Adds by * (n - c) * (m - d), multiplied out."""
            parts: dict[tuple[str, ...], Fraction] = {(): by}
            for name, less in factors:
                grown: dict[tuple[str, ...], Fraction] = {}
                for key, value in parts.items():
                    for more, times in (((name,), 1), ((), -less)):
                        joined = tuple(sorted(key + more))
                        grown[joined] = grown.get(joined, Fraction(0)) + value * times
                parts = grown
            for key, value in parts.items():
                terms[key] = terms.get(key, Fraction(0)) + value

        for n, (a, b, c) in self.values.items():  # Newton's form
            slope = (at(**{n: b}) - at()) / (b - a)
            bend = ((at(**{n: c}) - at(**{n: b})) / (c - b) - slope) / (c - a)
            add(slope, (n, a))
            add(bend, (n, a), (n, b))
        for n, m in combinations(self.dims, 2):
            (a, b, _), (c, d, _) = self.values[n], self.values[m]
            rest = at(**{n: b, m: d}) - at(**{n: b}) - at(**{m: d}) + at()
            add(rest / ((b - a) * (d - c)), (n, a), (m, c))
        for point, value in zip(self.points, values, strict=True):
            if sum(t * prod(point[n] for n in k) for k, t in terms.items()) != value:
                raise ValueError(values)
        divisor = lcm(*(t.denominator for t in terms.values()))
        return _number(SizeExpr({k: int(t * divisor) for k, t in terms.items()}, self.dims, divisor))


def at_point(shape: Sequence[Any], point: Point) -> tuple[int, ...]:
    """A shape at these sizes of the dims."""
    return tuple(s.at(point[s.name]) if isinstance(s, Dim) else s for s in shape)


def with_gradients(graph: ComputeGraph, outputs: Sequence[Any], wrt: Sequence[Any]) -> ComputeGraph:
    """ComputeGraph.grad of a graph with dims: that of each of its samples, fitted."""
    from baracuda.graph import gradient

    fitting = graph._samples
    samples, graphs = fitting.samples, fitting.graphs

    def at(given: Sequence[Any], known: tuple[Any, ...], name: str) -> list[int]:
        places = [next((i for i, x in enumerate(known) if x is g), -1) for g in given]
        if -1 in places:
            raise InvalidProblemError(f"grad: {name}: got a tensor that is not among graph.{name}, want some of those.")
        return places

    results, tensors = at(outputs, graph.results, "results"), at(wrt, graph.tensors, "tensors")

    def differentiated(g: ComputeGraph) -> ComputeGraph:
        of, by = tuple(g.results[i] for i in results), tuple(g.tensors[i] for i in tensors)
        return gradient.with_gradients(g, of, by, sampled=True)

    made = [differentiated(g) for g in graphs]
    return with_symbols(samples, made, [(p, differentiated(g)) for p, g in fitting.ends], graph._conditions)


def with_symbols(
    samples: Samples,
    graphs: list[ComputeGraph],
    ends: Sequence[tuple[Point, ComputeGraph]],
    conditions: Sequence[Condition],
) -> ComputeGraph:
    """The graph that is each of these at its point.

    Args:
        samples: Sizes.
        graphs: Those of their points.
        ends: Those of further points, at which it has to be the same, too.
        conditions: What runs are held to.

    Raises:
        InvalidProblemError: They differ in more than numbers, or a number is no expression of the sizes; names the node.
    """
    fitting = Fitting(samples, graphs, ends)
    made = fitting.fitted()
    made._conditions = list(conditions)
    for point, graph in ends:
        same_at(made, graph, point)
    return made


class Fitting:
    """Several graphs of one function, each of other sizes, and what stands for the slots of the last."""

    def __init__(
        self, samples: Samples, graphs: list[ComputeGraph], ends: Sequence[tuple[Point, ComputeGraph]]
    ) -> None:
        self.samples, self.graphs, self.ends = samples, graphs, ends
        self.slots: dict[Slot, Slot] = {}  # of the last graph, and what stands for them
        self.plans: dict[Any, Plan] = {}

    def fitted(self) -> ComputeGraph:
        """The graph for all sizes."""
        from baracuda.graph.graph import ComputeGraph

        last = self.graphs[-1]
        made = ComputeGraph(last.device)
        made._samples = self
        made._inputs, made._tree = last._inputs, last._tree
        made._leaves = list(self.graphs[0]._leaves)
        made._results = self.graphs[0]._results
        made._tracer.generator = last._tracer.generator
        names = [[node.name for node in g.nodes] for g in self.graphs]
        if any(n != names[0] for n in names):
            at = next((i for i, row in enumerate(zip(*names, strict=False)) if len(set(row)) > 1), min(map(len, names)))
            seen = {(n[at] if at < len(n) else "nothing") for n in names}
            raise InvalidProblemError(
                f"trace: node {at}: got {' and '.join(sorted(seen))} at different sizes, want the same functions at all. "
                "Trace the cases one by one."
            )
        for of_all in zip(*(g._tracer.slots for g in self.graphs), strict=True):
            if of_all[-1].kind != "constant":
                made._tracer.slots.append(self.slot(of_all))
            else:
                made._tracer.slots.append(of_all[-1])
        for nodes in zip(*(g.nodes for g in self.graphs), strict=True):
            made._tracer.nodes.append(self.node(nodes))
        made._tracer.draws = self.draws(made)
        made._views = [
            self.result(i, of_all) for i, of_all in enumerate(zip(*(g._views for g in self.graphs), strict=True))
        ]
        return made

    def number(self, where: str, what: str, values: Sequence[Any]) -> Any:
        """One number of all graphs."""
        if all(type(v) is int for v in values):
            try:
                return self.samples.fit(values)
            except ValueError:
                pass
        elif all(v == values[0] or (v != v and values[0] != values[0]) for v in values):
            return values[0]
        raise InvalidProblemError(
            f"trace: {where}: {what} is {', '.join(map(str, values))} at sizes {', '.join(map(_text, self.samples.points))}, "
            "want sums of products of the sizes. Give numbers that follow sizes otherwise as 0-d tensors."
        )

    def sizes(self, where: str, what: str, of_all: Sequence[tuple[int, ...]]) -> tuple[Any, ...]:
        """Shapes or strides of all graphs."""
        if len({len(s) for s in of_all}) > 1:
            raise InvalidProblemError(f"trace: {where}: {what} has another rank at other sizes, want one rank.")
        return tuple(self.number(where, what, values) for values in zip(*of_all, strict=True))

    def slot(self, of_all: tuple[Slot, ...]) -> Slot:
        """One slot of all graphs."""
        last = of_all[-1]
        shape = self.sizes(last.name, "its shape", [s.shape for s in of_all])
        strides = self.sizes(last.name, "its strides", [s.strides for s in of_all])
        self.slots[last] = Slot(last.number, last.kind, last.name, last.element, shape, strides)
        return self.slots[last]

    def view(self, where: str, of_all: tuple[View, ...]) -> View:
        """One view of all graphs."""
        last = of_all[-1]
        offsets = [v.offset for v in of_all]
        if last.slot.kind == "constant":  # each graph has captured as much as it saw of that memory
            size = last.element.nbytes
            offsets = [v.offset + (v.slot.address - last.slot.address) // size for v in of_all]
        return View(
            self.slots.get(last.slot, last.slot),
            self.number(where, "an offset", offsets),
            self.sizes(where, "a shape", [v.shape for v in of_all]),
            self.sizes(where, "strides", [v.strides for v in of_all]),
            last.element,
        )

    def node(self, of_all: tuple[Node, ...]) -> Node:
        """One node of all graphs; calls stay with those."""
        last = of_all[-1]
        made = Node(last.index, last.name, [], label=last.label)
        if len({len(n.launches) for n in of_all}) > 1:
            raise InvalidProblemError(f"trace: {last}: got other kernels at other sizes, want the same at all.")
        for launches in zip(*(n.launches for n in of_all), strict=True):
            made.launches.append(self.launch(str(last), launches))
        return made

    def launch(self, where: str, of_all: tuple[Launch, ...]) -> Launch:
        """One launch of all graphs."""
        tensors = tuple(self.view(where, views) for views in zip(*(x.tensors for x in of_all), strict=True))
        numbers = []
        for given in zip(*(x.numbers for x in of_all), strict=True):
            if all(isinstance(n, View) for n in given):
                numbers.append(self.view(where, given))
            elif all(isinstance(n, Draw) for n in given):
                numbers.append(given[-1])
            else:
                numbers.append(self.number(where, "a number", given))
        plan = self.plan(where, [x.plan for x in of_all])
        return Launch(plan, tensors, tuple(numbers), of_all[-1].node, of_all[-1].also)

    def launches(self, change: Callable[[ComputeGraph], list[Launch]]) -> list[Launch] | None:
        """What a change of each graph's launches comes to; None where it is not the same for all."""
        lists = [change(g) for g in self.graphs]
        if len(set(map(len, lists))) > 1:
            return None
        try:
            return [self.launch(f"launch {i}", launches) for i, launches in enumerate(zip(*lists, strict=True))]
        except BaracudaError:  # a kernel that does not take open sizes
            return None

    def plan(self, where: str, plans: list[Plan]) -> Plan:
        """The plan for any size."""
        if all(p.descriptor == plans[-1].descriptor for p in plans):
            return plans[-1]
        try:
            desc = self.field(where, "the problem", [p.descriptor for p in plans])
            if desc not in self.plans:
                self.plans[desc] = plan(desc, plans[-1].device)
        except BaracudaError as error:
            if not str(error).startswith("trace: "):
                error.args = (f"trace: {where}: {error}",)
            raise
        return self.plans[desc]

    def field(self, where: str, what: str, values: Sequence[Any]) -> Any:
        """A descriptor's field, or a part of one."""
        first = values[0]
        if is_dataclass(first) and not isinstance(first, type):
            if any(type(v) is not type(first) for v in values):
                raise InvalidProblemError(f"trace: {where}: got other kernels at other sizes, want the same at all.")
            names = [f.name for f in fields(first) if f.init]
            found = {n: self.field(where, n, [getattr(v, n) for v in values]) for n in names}
            return replace(first, **found)
        if isinstance(first, tuple) and all(isinstance(v, tuple) and len(v) == len(first) for v in values):
            return tuple(self.field(where, what, parts) for parts in zip(*values, strict=True))
        if all(v == first for v in values):
            return first
        return as_dim(where, what, self.number(where, what, values))

    def draws(self, made: ComputeGraph) -> list[Draw]:
        """Blocks as the plans that draw say."""
        blocks: dict[int, Any] = {}
        for node in made.nodes:
            for launch in node.launches:
                for n in launch.numbers:
                    if isinstance(n, Draw):
                        blocks[n.index] = launch.plan.descriptor.blocks()
        return [Draw(d.index, blocks.get(d.index, d.blocks)) for d in self.graphs[-1]._tracer.draws]

    def result(self, i: int, of_all: tuple[Any, ...]) -> Any:
        """One result of all graphs: a view, or what was captured."""
        if all(isinstance(v, View) for v in of_all):
            return self.view(f"result {i}", of_all)
        return of_all[-1]


def _text(point: Point) -> str:
    return "(" + ", ".join(f"{n}={v}" for n, v in point.items()) + ")"


def _number(size: SizeExpr) -> int | SizeExpr:
    fixed = size.fixed
    return size if fixed is None else fixed


def as_dim(where: str, what: str, size: int | SizeExpr) -> int | Dim:
    """A size of a plan: one dim, times and divided by numbers, plus one."""
    if isinstance(size, int):
        return size
    names = [k for k in size.terms if k]
    if len(names) != 1 or len(names[0]) != 1:
        raise InvalidProblemError(
            f"trace: {where}: {what} is {size}, want sizes of kernels that follow one bc.Dim. Give all others fixed sizes."
        )
    name = names[0][0]
    add, rest = divmod(size.terms.get((), 0), size.divisor)
    factor = Fraction(size.terms[names[0]], size.divisor)
    if rest or factor <= 0:
        raise InvalidProblemError(f"trace: {where}: {what} is {size}, want n * k // m + c of a bc.Dim n.")
    return Dim(name, size.most[name], factor.numerator, factor.denominator, add)
