"""What in-place functions made of others share: checks before anything is changed, and changes that are rounded once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from math import inf
from numbers import Integral, Real
from typing import Any

from baracuda import _core
from baracuda import functional as F
from baracuda.describe.dims import shape_text
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError

OPS = ()

FLOATS = (Element.F16, Element.BF16, Element.F32, Element.F64)


def shape_of(x: Any) -> tuple[int, ...]:
    """The shape of an array of any framework."""
    made: tuple[int, ...] = _core.describe(x)[0]
    return made


def element_of(x: Any) -> Element:
    """Its element."""
    return Element(_core.describe(x)[1])


def is_number(x: Any) -> bool:
    """Whether it is a number of Python's; others are arrays."""
    return isinstance(x, (int, float))


def want_array(name: str, x: Any, elements: Sequence[Element], shape: tuple[int, ...] | None = None) -> None:
    """Raises where an array has another element, or another shape."""
    element, found = element_of(x), shape_of(x)
    if element not in elements:
        wanted = " or ".join(filter(None, (", ".join(map(str, elements[:-1])), str(elements[-1]))))
        raise InvalidProblemError(f"{name}: got {element}, want {wanted}. Cast it.")
    if shape is not None and found != shape:
        raise InvalidProblemError(f"{name}: got shape {shape_text(found)}, want {shape_text(shape)}.")


def want_writable(written: dict[str, Any], read: dict[str, Any]) -> None:
    """Raises where an array cannot be written, or shares memory with itself or another one; those of None are left out."""
    kept = {n: x for n, x in written.items() if x is not None}
    for name, x in kept.items():
        if _core.borrow(x).read_only:
            raise InvalidProblemError(f"{name}: got a read-only array, want a writable one. Pass a copy.")
        if _core.overlap(x, x):
            raise InvalidProblemError(
                f"{name}: got a view whose elements share memory, want one byte range per element. Pass a copy."
            )
    if _core.inferring():  # nothing has memory
        return
    pairs = [*combinations(kept.items(), 2), *((w, r) for w in kept.items() for r in read.items())]
    for (name, x), (other, y) in pairs:
        if x is y or _core.overlap(x, y):
            raise InvalidProblemError(f"{name}: got memory that {other} has, too, want arrays apart. Pass a copy.")


def scalar(
    name: str, value: Any, least: float = 0.0, most: float = inf, *, open_start: bool = False, open_end: bool = False
) -> Any:
    """A number as one of Python's, or a 0-d array, whose value is not looked at; raises outside of [least, most]."""
    if isinstance(value, Real):
        value = int(value) if isinstance(value, Integral) else float(value)
        if not least <= value <= most or (open_start and value == least) or (open_end and value == most):
            low = [f"{'above' if open_start else 'at least'} {least:g}"] if least > -inf else []
            high = [f"{'below' if open_end else 'at most'} {most:g}"] if most < inf else []
            wanted = ", ".join(["a number", *low, *high])
            raise InvalidProblemError(f"{name}: got {value}, want {wanted}.")
        return value
    if isinstance(value, (str, complex)) or value is None:
        raise InvalidProblemError(f"{name}: got {value!r}, want a number or a 0-d array.")
    element, shape = element_of(value), shape_of(value)
    if shape or not (element in FLOATS or element.is_integer):
        raise InvalidProblemError(f"{name}: got {element} of shape {shape_text(shape)}, want a number or a 0-d array.")
    return value


def reused(function: Callable[..., Any], x: Any, *by: Any) -> Any:
    """function(x, *by) in the memory of x, which nobody needs any more; in new memory in traces, which plan theirs."""
    return function(x, *by) if _core.inferring() else function(x, *by, out=x)


class Changes:
    """What becomes of arrays that a function changes in place: written when all that is needed for it is there.

    So an allocation that fails in the midst has changed nothing. Traces allocate nothing: there each change is made at once.
    """

    def __init__(self) -> None:
        self._new: dict[int, tuple[Any, Any]] = {}  # by id: an array, and what it becomes
        self._later: list[tuple[Callable[..., Any], Any, Any, Any]] = []

    def change(self, function: Callable[..., Any], x: Any, *by: Any) -> Any:
        """Has x become function(x, *by), of what it has become so far; returns that."""
        if _core.inferring():
            function(x, *by, out=x)
            return x
        _, now = self._new.get(id(x), (x, x))
        value = function(x, *by) if now is x else function(now, *by, out=now)
        self._new[id(x)] = x, value
        return value

    def later(self, function: Callable[..., Any], x: Any, by: Any) -> None:
        """The same as the last change of x, which takes no memory: x and `by` are of one element."""
        if _core.inferring():
            function(x, by, out=x)
        else:
            _, now = self._new.pop(id(x), (x, x))
            self._later.append((function, now, by, x))

    def seen(self, function: Callable[..., Any], x: Any, by: Any) -> Any:
        """The same, and what it gives, in memory that is the caller's: to compute x again costs less than to keep and copy it."""
        self.later(function, x, by)
        return x if _core.inferring() else function(x, by)

    def change_wide(self, function: Callable[..., Any], x: Any, by: Any, last: bool = False) -> None:
        """As `change`, or `later` where it is the last, in the element of x's statistics and rounded once; `by` is of any element."""
        element, wide = element_of(x), element_of(x).statistic
        if not is_number(by) and element_of(by) is not wide:
            by = F.cast(by, wide)
        if element is not wide:
            self.change(lambda now, **out: F.cast(reused(function, F.cast(now, wide), by), element, **out), x)
        elif last:
            self.later(function, x, by)
        else:
            self.change(function, x, by)

    def write(self) -> None:
        """Writes all of them; nothing is allocated any more."""
        for x, value in self._new.values():
            F.copy(value, out=x)
        for function, now, by, x in self._later:
            function(now, by, out=x)
