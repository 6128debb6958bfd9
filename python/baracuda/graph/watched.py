"""Sizes as a traced function sees them where some are `bc.Dim`s: numbers that take note of what is decided by them.

A graph for all sizes is right only if the function decides alike at all of them. So the sizes that it reads from tensors are
ints of a kind of their own: what it compares, or turns into numbers that are not watched, is noted with its line, and
`decisions.py` asks afterwards of which sizes it holds. The package's own code sees them as any other ints.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, floor, isfinite
from types import FrameType
from typing import Any, Literal

from baracuda import _core
from baracuda.describe.lines import Site, is_own, user_line

# What is asked of a number: whether it is at least 0, whether it is 0, how often another one goes into it, or nothing, where
# it must be the same at all sizes.
Kind = Literal["sign", "zero", "quotient", "same"]


@dataclass(frozen=True, slots=True)
class Note:
    """Something that a size decided.

    Attributes:
        site: The line of the user's.
        kind: What was asked.
        value: The number that it was asked of.
        what: In words, for messages.
        cut: Whether it is how far a slice or an index reaches, which runs may refuse by size.
        by: What it is divided by.
    """

    site: Site
    kind: Kind
    value: int
    what: str
    cut: bool = False
    by: int = 1


class Watch:
    """The notes of one trace."""

    def __init__(self) -> None:
        self.notes: list[Note] = []

    def sizes(self, given: Any) -> Any:
        """Sizes that a tensor says, as the user's code shall see them."""
        if is_own(sys._getframe(2)):
            return given
        return tuple(map(Size, given)) if isinstance(given, tuple) else Size(given)

    def length(self, n: int) -> None:
        """`len(x)`, or iteration: Python makes a plain int of it."""
        frame = sys._getframe(2)
        if not is_own(frame):
            self.add(frame, "same", n, "len() and iteration make a plain int of a size")

    def ones(self, shape: tuple[int, ...]) -> None:
        """`x.squeeze()`: sizes of 1 go."""
        for n in shape:
            self.add(sys._getframe(2), "zero", n - 1, "a size is asked whether it is 1")

    def key(self, shape: tuple[int, ...], key: Any) -> None:
        """`x[key]`: where a slice or an index reaches."""
        keys = key if isinstance(key, tuple) else (key,)
        used = sum(k is not None and k is not Ellipsis for k in keys)
        frame = sys._getframe(2)
        axis = 0
        for k in keys:
            if k is Ellipsis:
                axis += max(len(shape) - used, 0)
            elif k is not None and axis < len(shape):
                self._reach(frame, shape[axis], k)
                axis += 1

    def _reach(self, frame: FrameType, size: int, key: Any) -> None:
        if isinstance(key, slice):
            back = isinstance(key.step, int) and key.step < 0
            ends = [self._end(frame, size - back, bound) for bound in (key.start, key.stop)]
            start, stop = (end if end is not None else (0, size)[i] for i, end in enumerate(ends))
            if not back:
                self.add(frame, "sign", stop - start, "a slice may end before it starts", cut=True)
        elif isinstance(key, int) and not isinstance(key, bool):
            self._end(frame, size if key < 0 else size - 1, key)

    def _end(self, frame: FrameType, size: int, bound: Any) -> int | None:
        """Where a bound of a slice comes to lie; None where it is not given."""
        if bound is None or not hasattr(bound, "__index__"):
            return None
        at = int(bound.__index__())
        self.add(
            frame, "sign", at, "a slice or an index counts from the start or from the end, as a size decides", cut=True
        )
        left = size - at if at >= 0 else size + at
        self.add(frame, "sign", left, "a slice or an index reaches as far as a size allows", cut=True)
        return min(at, size) if at >= 0 else max(size + at, 0)

    def add(self, frame: FrameType, kind: Kind, value: int, what: str, *, cut: bool = False, by: int = 1) -> None:
        """Notes what is asked of a number."""
        plain, divisor = int.__index__(value), int.__index__(by)
        self.notes.append(Note(user_line(frame), kind, plain, what, cut, divisor))


def _asked(kind: Kind, value: int, what: str) -> bool:
    """Notes what the code that called a Size's method asks of a number; whether it is the user's and is traced."""
    frame = sys._getframe(2)
    if is_own(frame):
        return False
    watch = getattr(_core.tracer(), "watch", None)
    if watch is not None:
        watch.add(frame, kind, value, what)
    return watch is not None


class Size(int):
    """A size that a traced function reads from a tensor: an int whose comparisons are noted."""

    __slots__ = ()

    def __lt__(self, other: Any) -> Any:
        if (bound := _bound(other, ceil)) is not None:
            _asked("sign", bound - 1 - int.__index__(self), "a size is compared")
        return int.__lt__(self, other)

    def __le__(self, other: Any) -> Any:
        if (bound := _bound(other, floor)) is not None:
            _asked("sign", bound - int.__index__(self), "a size is compared")
        return int.__le__(self, other)

    def __gt__(self, other: Any) -> Any:
        if (bound := _bound(other, floor)) is not None:
            _asked("sign", int.__index__(self) - bound - 1, "a size is compared")
        return int.__gt__(self, other)

    def __ge__(self, other: Any) -> Any:
        if (bound := _bound(other, ceil)) is not None:
            _asked("sign", int.__index__(self) - bound, "a size is compared")
        return int.__ge__(self, other)

    def __eq__(self, other: Any) -> Any:
        if (bound := _bound(other, ceil)) is not None and bound == other:
            _asked("zero", int.__index__(self) - bound, "a size is compared")
        return int.__eq__(self, other)

    def __ne__(self, other: Any) -> Any:
        if (bound := _bound(other, ceil)) is not None and bound == other:
            _asked("zero", int.__index__(self) - bound, "a size is compared")
        return int.__ne__(self, other)

    __hash__ = int.__hash__

    def __bool__(self) -> bool:
        _asked("zero", int.__index__(self), "a size is asked whether it is 0")
        return int.__bool__(self)

    def __abs__(self) -> int:
        _asked("sign", int.__index__(self), "the absolute value of a size is taken")
        return Size(int.__abs__(self))

    def __int__(self) -> int:
        _asked("same", int.__index__(self), "int() makes a plain int of a size")
        return int.__index__(self)

    def __float__(self) -> float:
        _asked("same", int.__index__(self), "a size becomes a float")
        return int.__float__(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return int, (int.__index__(self),)


def _bound(other: Any, rounded: Callable[[float], int]) -> int | None:
    """The whole number that a comparison with a number is one with; None for what is no number, or none that is finite."""
    if isinstance(other, int):
        return int.__index__(other)
    return rounded(other) if isinstance(other, float) and isfinite(other) else None


def _operator(name: str) -> Callable[..., Any]:
    """An operator of ints whose result is a Size for the user's code; what is no polynomial of sizes is noted."""
    plain = getattr(int, f"__{name}__")

    def method(self: Size, *others: Any) -> Any:
        found = plain(self, *others)
        frame = sys._getframe(1)
        if is_own(frame):
            return found
        watch = getattr(_core.tracer(), "watch", None)
        if watch is not None:
            _note_result(watch, frame, name, found, (self, *others))
        if found is NotImplemented or isinstance(found, float):
            return found
        return tuple(map(Size, found)) if isinstance(found, tuple) else Size(found)

    method.__name__ = f"__{name}__"
    return method


def _note_result(watch: Watch, frame: FrameType, name: str, found: Any, given: tuple[Any, ...]) -> None:
    """Notes what an operator makes of sizes that is no polynomial of them."""
    floats = isinstance(found, float) or any(isinstance(n, float) for n in given)
    if floats or name in _BITWISE:
        what = "a size becomes a float" if floats else "the bits of a size are taken"
        for n in given:
            if isinstance(n, Size):
                watch.add(frame, "same", n, what)
    elif name in _DIVIDING and found is not NotImplemented:
        value, by = (given[1], given[0]) if name.startswith("r") and name != "rshift" else given[:2]
        by = 1 << by if name.endswith("shift") else by
        watch.add(frame, "quotient", value, "a size is divided", by=by)


_DIVIDING = ("floordiv", "mod", "divmod", "rshift", "rfloordiv", "rmod", "rdivmod", "rrshift")
_BITWISE = ("and", "or", "xor", "rand", "ror", "rxor", "lshift", "rlshift", "rpow")
_WITH_ONE = ("add", "sub", "mul", "floordiv", "mod", "divmod", "pow", "truediv", "and", "or", "xor", "lshift", "rshift")
for _name in (*_WITH_ONE, *(f"r{n}" for n in _WITH_ONE), "neg", "pos", "invert"):
    setattr(Size, f"__{_name}__", _operator(_name))


def _itself(self: Size, *digits: Any) -> Size:
    return self


for _name in ("trunc", "floor", "ceil", "round"):
    setattr(Size, f"__{_name}__", _itself)
