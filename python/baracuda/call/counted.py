"""Recipes in several parts, for functions whose results are as large as only the data say.

    def nonzero(call: Call, input: Arg) -> Recipe:
        size = Dim("count", max=prod(input.shape))
        desc, parts = NonzeroDescriptor(input.shape, size, input.element), Parts(call, size)
        count = parts.run(desc, x=input)["count"]  # y has no rows
        parts.read(count)
        y = parts.run(desc, results="y", x=input, count=count)["y"]
        return parts.recipe(y)

The first part counts, in memory of ours. What it counted is read, on a device once that work is done; then results of this
size are made and filled. The engine does it without a Python frame, for any count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from baracuda import _core
from baracuda.call.allocation import Allocation, allocation
from baracuda.call.compose import Composer, Value
from baracuda.call.op import ALLOCATED, FROM_BEFORE, FROM_CONSTANT, Arg, Call, Recipe, Source
from baracuda.choose.plan import plan
from baracuda.describe.errors import InvalidProblemError

if TYPE_CHECKING:
    from baracuda.describe.dims import Dim, Size
    from baracuda.describe.elements import Element
    from baracuda.describe.spec import Descriptor

COUNTED: int = _core.counted_size  # the size that is counted, in shapes of results and views


def _refuse(*numbers: int) -> None:
    raise InvalidProblemError(f"got sizes {numbers} from the data, want sizes that are not negative.")


@dataclass(frozen=True, slots=True)
class Then:
    """The next part of a recipe.

    Attributes:
        recipe: How it is carried out.
        numbers: Which results of the part before are read, an i64 each: the size, and what shows wrong data.
        least: The size is this where the number is smaller.
        most: The size is not larger.
        refuse: Raises, for numbers of which one is negative, or whose first is above `most`.
    """

    recipe: Recipe
    numbers: tuple[int, ...] = ()
    least: int = 0
    most: int = 0
    refuse: Callable[..., None] = _refuse

    def packed(self) -> tuple[Any, ...]:
        """What the engine keeps."""
        return (self.numbers, self.least, self.most, self.refuse, self.recipe.packed())


@dataclass(frozen=True, slots=True)
class Made:
    """What a part makes, as later parts see it."""

    index: int
    shape: tuple[int, ...]
    element: Element
    sizes: tuple[int, ...] | None = None

    def counted(self) -> Made:
        """Of its first dimension as much as was counted."""
        return replace(self, sizes=(COUNTED, *self.shape[1:]))

    def source(self) -> Source:
        """Where a plan's argument comes from."""
        dims = None if self.sizes is None else tuple(range(len(self.sizes)))
        return (FROM_BEFORE, self.index, None, dims, self.sizes)


class Parts:
    """Puts a recipe together, one kernel or program after the other.

    Args:
        call: The call of the function.
        size: The size that the data decide. Outputs of it have no elements before it is known.
    """

    def __init__(self, call: Call, size: Dim) -> None:
        self.call, self.size = call, size
        self._recipes: list[Recipe] = []
        self._reads: dict[int, Then] = {}  # by part: what is read behind it
        self._made: list[Made] = []
        self._first: list[Allocation] = []  # of the next part
        self._known = False

    def result(self, shape: tuple[int, ...], element: Element) -> Made:
        """A result of the function, made with the next kernel: before memory of ours, whose lack says less."""
        self._first.append(allocation(self.call.like(), shape, element, self.call.device))
        self._made.append(Made(len(self._made), shape, element))
        return self._made[-1]

    def run(self, desc: Descriptor, *, results: str = "", **given: Arg | Made | float) -> dict[str, Made]:
        """One kernel.

        Args:
            desc: The problem.
            results: Outputs that the function returns, which are of the kind of its arguments; others are ours.
            **given: Plan arguments; outputs, too, that are there already.

        Returns:
            The new outputs by name.
        """
        made = plan(desc, self.call.device)
        outputs = {p.name: p for p in desc.signature().outputs}
        sources: list[Source] = []
        allocations, self._first = self._first, []
        found: dict[str, Made] = {}
        for name in made.arguments:
            value = given.get(name)
            if isinstance(value, (Arg, Made)):
                sources.append(value.source())
            elif name not in outputs:
                sources.append((FROM_CONSTANT, 0, value, None, None))
            else:
                shape, element = tuple(map(self._at, outputs[name].shape)), outputs[name].element
                like = self.call.like() if name in results.split() else None
                sources.append((ALLOCATED, len(allocations), None, None, None))
                allocations.append(allocation(like, shape, element, self.call.device))
                found[name] = Made(len(self._made) + len(found), shape, element)
        self._made += found.values()
        self._recipes.append(Recipe(made, tuple(sources), tuple(allocations), ()))
        return found

    def steps(self, rule: Callable[..., Sequence[Value]], *arguments: Arg, results: Sequence[int] = ()) -> list[Made]:
        """Several kernels as one program, of fixed sizes: before the size is known.

        Args:
            rule: Is given a Composer and the arguments as Values.
            *arguments: Tensors of the call, whole.
            results: Which of what the rule returns the function returns, too.
        """
        composer = Composer(self.call.first().place)
        values = [composer.argument(x.name, x.value, x.source()) for x in arguments]
        found = rule(composer, *values)
        part = composer.recipe(found, None, None)
        allocations = list(part.allocations)
        for k in results:
            x = found[k]
            allocations[part.returns[k]] = allocation(self.call.like(), x.shape, x.element, self.call.device)
        before = len(self._made)
        made = [Made(before + i, x.shape, x.element) for i, x in zip(part.returns, found, strict=True)]
        self._made += sorted(made, key=lambda x: x.index)
        self._recipes.append(replace(part, allocations=tuple(allocations), returns=(), listed=False))
        return made

    def _at(self, n: Size) -> int:
        if isinstance(n, int):
            return n
        assert n == self.size, "sizes are counted as they are"
        return COUNTED if self._known else 0

    def read(
        self, count: Made, *others: Made, least: int = 0, most: int | None = None, refuse: Callable[..., None] = _refuse
    ) -> None:
        """Reads results of the last part, an i64 each, before the next one.

        Args:
            count: The size.
            *others: What is negative where the data are wrong.
            least: The size is this where the number is smaller.
            most: The size is not larger; that of the Dim by default.
            refuse: Raises, for numbers of which one is negative, or whose first is above `most`.
        """
        before = len(self._made) - len(self._recipes[-1].allocations)
        numbers = tuple(x.index - before for x in (count, *others))
        limit = self.size.max if most is None else most
        self._reads[len(self._recipes) - 1] = Then(self._recipes[-1], numbers, least, limit, refuse)
        self._known = True

    def recipe(self, *returns: Made, listed: bool = False) -> Recipe:
        """The whole: a result, or a tuple of them."""
        last = self._recipes[-1]
        before = len(self._made) - len(last.allocations)
        allocations, places = list(last.allocations), []
        for x in returns:
            if x.index >= before:
                places.append(x.index - before)
                continue
            places.append(len(allocations))  # what an earlier part made takes its place
            allocations.append((*allocation(self.call.like(), x.shape, x.element, self.call.device, -2 - x.index),))
        whole = replace(last, allocations=tuple(allocations), returns=tuple(places), listed=listed)
        for i in reversed(range(len(self._recipes) - 1)):
            then = self._reads.get(i, Then(whole))
            whole = replace(self._recipes[i], then=replace(then, recipe=whole))
        return whole
