"""What a graph is made of: values, views of them, and nodes, each a call with the launches that it made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from baracuda.call.tape import spread
from baracuda.describe.elements import Element
from baracuda.describe.lines import Site
from baracuda.describe.spec import IN, OUT
from baracuda.memory.views import is_contiguous

if TYPE_CHECKING:
    from baracuda.choose.plan import Plan
    from baracuda.describe.spec import Param

Shape: TypeAlias = tuple[int, ...]
Kind: TypeAlias = Literal["leaf", "constant", "temporary"]


@dataclass(eq=False, slots=True)
class Slot:
    """Memory that a graph uses: a leaf's, a captured tensor's, or that of something computed.

    Attributes:
        number: Its place in the graph.
        kind: "leaf" (given to each run), "constant" (captured) or "temporary".
        name: What messages and pictures call it.
        element: Of what it was made to hold.
        shape: The same, of its sizes; of graphs with `bc.Dim`s they and all others are size expressions.
        strides: Of leaves that are not contiguous, in elements.
        held: Of constants, what keeps the memory alive; and the address.
        site: Of constants, the line that read it.
    """

    number: int
    kind: Kind
    name: str
    element: Element
    shape: Shape
    strides: Shape
    held: tuple[Any, ...] = ()
    address: int = 0
    site: Site = ("", 0)

    @property
    def count(self) -> Any:
        """Elements from the first to behind the last, those between them too; a size expression where the shape has some."""
        if 0 in self.shape:
            return 0
        if is_contiguous(self.shape, self.strides):
            return prod(self.shape)
        return sum(((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True)), 1)

    @property
    def nbytes(self) -> int:
        """Their bytes, where sizes follow `bc.Dim`s at the maxima."""
        count = self.count
        return (count if isinstance(count, int) else count.at(count.most)) * self.element.nbytes


@dataclass(frozen=True, slots=True)
class View:
    """Elements of a slot: what a launch reads or writes."""

    slot: Slot
    offset: int  # in elements of `element`
    shape: Shape
    strides: Shape
    element: Element

    @property
    def whole(self) -> bool:
        """Whether it is the slot as it was made."""
        same = self.shape == self.slot.shape and self.element is self.slot.element
        return same and self.offset == 0 and is_contiguous(self.shape, self.strides)

    @property
    def numel(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    def __str__(self) -> str:
        return f"{self.slot.name}: {self.element}{list(self.shape)}"


@dataclass(frozen=True, slots=True)
class Draw:
    """The random numbers of a launch: how manieth of the graph's draws, and how many blocks it takes."""

    index: int
    blocks: int


Number: TypeAlias = float | int | View | Draw


@dataclass(frozen=True)
class Launch:
    """A plan with all that it is given: its tensors in the signature's order, and its numbers.

    `node` is the index of the graph's node that it belongs to, -1 for a copy of a result; `also` are nodes before it whose
    work it does, too.
    """

    plan: Plan
    tensors: tuple[View, ...]
    numbers: tuple[Number, ...]
    node: int = -1
    also: tuple[int, ...] = ()

    def by_param(self) -> Iterator[tuple[Param, tuple[View, ...]]]:
        """The parameters of its plan that are given, each with its tensors: one, or all of a variadic one."""
        at = 0
        for p in self.plan.signature.present:
            yield p, self.tensors[at : at + len(p.shapes)]
            at += len(p.shapes)

    def arguments(self, tensor: Callable[[View], Any], number: Callable[[Any], Any]) -> dict[str, Any]:
        """What its plan's `run` is given, by name: views by `tensor`, those that are numbers too; others by `number`."""
        given: dict[str, Any] = {}
        for p, views in self.by_param():
            found = [tensor(v) for v in views]
            given[p.name] = found if p.variadic else found[0]
        for s, n in zip(self.plan.signature.numbers, self.numbers, strict=True):
            given[s.name] = tensor(n) if isinstance(n, View) else number(n)
        return given

    @property
    def nodes(self) -> tuple[int, ...]:
        """All nodes whose work it does."""
        return *self.also, self.node

    # All passes ask for these two, again and again.

    @cached_property
    def reads(self) -> tuple[View, ...]:
        """What it reads, numbers in memory too."""
        numbers = tuple(n for n in self.numbers if isinstance(n, View))
        return tuple(v for p, views in self.by_param() if p.role != OUT for v in views) + numbers

    @cached_property
    def writes(self) -> tuple[View, ...]:
        """What it writes."""
        return tuple(v for p, views in self.by_param() if p.role != IN for v in views)


@dataclass(eq=False, slots=True)
class Node:
    """One call: of a function, or of a plan or program by itself.

    Attributes:
        index: Its place among the graph's nodes.
        name: Of the function or the op; messages say `node 3 (softmax)`.
        launches: What it had kernels do.
        function: The function of bc.functional, or None.
        values: What its parameters were given, in the signature's order.
        results: What it returned, tensors without memory.
        label: The name that add_op was given.
    """

    index: int
    name: str
    launches: list[Launch]
    function: Any = None
    values: tuple[Any, ...] = ()
    results: tuple[Any, ...] = ()
    label: str = ""

    @property
    def out(self) -> Any:
        """What its function was told to write to; None where it made its results."""
        if self.function is None:
            return None
        parameters = zip(self.function.__signature__.parameters, self.values, strict=True)
        return next((value for name, value in parameters if name == "out"), None)

    def call(self, values: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        """Positional and keyword arguments that call its function with these values of its parameters."""
        return spread(list(self.function.__signature__.parameters.values()), values)

    @property
    def reads(self) -> list[View]:
        """What it reads that it has not made itself."""
        made: set[Slot] = set()
        found: dict[View, None] = {}
        for launch in self.launches:
            found |= dict.fromkeys(v for v in launch.reads if v.slot not in made)
            made |= {v.slot for v in launch.writes if v.slot.kind == "temporary"}
        return list(found)

    @property
    def writes(self) -> list[View]:
        """What it writes."""
        return list(dict.fromkeys(v for launch in self.launches for v in launch.writes))

    def __str__(self) -> str:
        return f"node {self.index} ({self.label or self.name})"


def listed(names: Sequence[str]) -> str:
    """Names for a text of one line."""
    most = 6
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
