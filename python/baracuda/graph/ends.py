"""The least sizes that a function takes, at which a graph of open sizes has to be what the function is there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from baracuda.describe.dims import Dim
from baracuda.describe.errors import InvalidProblemError, shown
from baracuda.describe.sizes import SizeExpr
from baracuda.graph.decisions import Condition
from baracuda.graph.nodes import View

if TYPE_CHECKING:
    from baracuda.graph.graph import ComputeGraph
    from baracuda.graph.nodes import Launch
    from baracuda.graph.symbols import Samples

Point = Mapping[str, int]


def least_sizes(
    samples: Samples, at: Callable[[Point], ComputeGraph], held: Sequence[Condition]
) -> tuple[list[tuple[Point, ComputeGraph]], list[Condition]]:
    """The function at the least size of each dim that it takes, from 2 on, and conditions where it does not take 2.

    Args:
        samples: The others.
        at: Traces it.
        held: Conditions that are known: what they refuse is not asked for.
    """
    low = samples.points[0]
    found: list[tuple[Point, ComputeGraph]] = []
    more: list[Condition] = []
    for name, step in samples.steps.items():
        bad, good = samples.usual(name) - step, low[name]
        graph: ComputeGraph | None = None
        why = ""
        size = samples.usual(name)
        while bad + step < good:  # what it takes, it takes larger, too
            point = low | {name: size}
            if any(c.size.at(point) < 0 for c in held):
                bad = size
            else:
                try:
                    graph, good = at(point), size
                except Exception as error:  # whatever the user's function raises
                    bad, why = size, f"at {name}={size} the function raises {type(error).__name__}: {shown(str(error))}"
            size = (bad // step + good // step) // 2 * step
        if graph is not None:
            found.append((low | {name: good}, graph))
        if why and not any(c.size.at(low | {name: bad}) < 0 for c in held):
            more.append(
                Condition(SizeExpr({(name,): 1, (): -good}, {name: samples.dims[name]}), f"{name} >= {good}: {why}")
            )
    return found, more


def same_at(made: ComputeGraph, graph: ComputeGraph, point: Point) -> None:
    """Refuses a graph of open sizes that is not, at these sizes, what was traced there.

    Raises:
        InvalidProblemError: Names the node.
    """
    sizes = ", ".join(f"{n}={v}" for n, v in point.items())
    for i in range(max(len(made.nodes), len(graph.nodes))):
        pair = [g.nodes[i] if i < len(g.nodes) else None for g in (made, graph)]
        names = [node.name if node else "nothing" for node in pair]
        usual, now = (node.launches if node else [] for node in pair)
        if names[0] != names[1] or len(usual) != len(now) or not all(map(_Same(point).launches, usual, now)):
            what = f"got {' and '.join(sorted(set(names)))}" + " of other numbers" * (names[0] == names[1])
            raise InvalidProblemError(
                f"trace: node {i} ({names[0]}): {what} at different sizes, with the least ones at {sizes}: want the same "
                "functions, of numbers that follow the sizes, at all. Trace the cases one by one."
            )


class _Same:
    """Whether what follows sizes is, at these, what it is there."""

    def __init__(self, point: Point) -> None:
        self.point = point

    def launches(self, usual: Launch, now: Launch) -> bool:
        """Two launches."""
        one, other = [*usual.tensors, *usual.numbers], [*now.tensors, *now.numbers]
        same = len(one) == len(other) and self.fields(usual.plan.descriptor, now.plan.descriptor)
        return same and all(map(self.arguments, one, other))

    def arguments(self, usual: Any, now: Any) -> bool:
        """Two views, or two numbers."""
        if not isinstance(usual, View) or not isinstance(now, View):
            return type(usual) is type(now) if hasattr(usual, "blocks") else self.fields(usual, now)
        if usual.element is not now.element or not self.fields(usual.shape, now.shape):
            return False
        # What a size of 1 steps by says nothing, and captured memory is known by each trace as far as it saw it.
        strides = all(
            n == 1 or self.fields(a, b) for n, a, b in zip(now.shape, usual.strides, now.strides, strict=True)
        )
        place = usual.slot.kind == "constant" or self.fields(usual.offset, now.offset)
        return strides and place

    def fields(self, usual: Any, now: Any) -> bool:
        """Sizes, numbers, tuples of them, and descriptors."""
        if isinstance(usual, (Dim, SizeExpr)):
            n = usual.at(self.point[usual.name]) if isinstance(usual, Dim) else usual.at(self.point)
            return bool(n == now)
        if isinstance(usual, tuple):
            return isinstance(now, tuple) and len(usual) == len(now) and all(map(self.fields, usual, now))
        if is_dataclass(usual) and not isinstance(usual, type):
            return type(usual) is type(now) and all(
                self.fields(getattr(usual, f.name), getattr(now, f.name)) for f in fields(usual)
            )
        return bool(usual == now or (usual != usual and now != now))
