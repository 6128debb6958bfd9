"""Whether what sizes decide in a traced function is decided alike at all of them, from the notes of its samples (`watched.py`).

Each number that something was asked of is written as a polynomial of the sizes, as all others are, and what was answered is
proven for every size up to the maxima, or refused with the line. Sizes of 0 and 1 are apart: what they alone would
decide otherwise, and slices that reach as far as a size allows, become conditions, which runs are held to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import ceil, floor
from typing import TYPE_CHECKING

from baracuda.describe.errors import InvalidProblemError, Refusal
from baracuda.describe.lines import Site, line_text
from baracuda.describe.sizes import SizeExpr
from baracuda.graph.watched import Note

if TYPE_CHECKING:
    from baracuda.graph.symbols import Samples

Box = Mapping[str, tuple[int, int]]  # from the least to the greatest of each dim
_CORNERS = 8  # dims whose ends are all taken together


@dataclass(frozen=True, slots=True)
class Condition:
    """What runs are held to: that this is at least 0 at their sizes, and the same in words."""

    size: SizeExpr
    want: str


def conditions(samples: Samples, notes: Sequence[list[Note]]) -> list[Condition]:
    """What a graph's sizes have to meet besides the maxima, from the notes at each of the samples' points.

    Raises:
        InvalidProblemError: Something is decided otherwise at other sizes; names the line.
    """
    for row in zip(*notes, strict=False):
        if len({(n.site, n.kind, n.cut) for n in row}) > 1:
            raise _refused(row[0], f"{row[0].what}: the function goes another way at other sizes")
    if len(set(map(len, notes))) > 1:
        longest, least = max(notes, key=len), min(map(len, notes))
        raise _refused(longest[least], f"{longest[least].what}: only at some sizes the function comes here")
    found: dict[tuple[Site, SizeExpr], Condition] = {}
    for row in zip(*notes, strict=True):
        for part in _divided(samples, row) if row[0].kind == "quotient" else [row]:
            made = _Decision(samples, part).condition()
            if made is not None:
                found.setdefault((row[0].site, made.size), made)
    return list(found.values())


def _divided(samples: Samples, row: tuple[Note, ...]) -> list[tuple[Note, ...]]:
    """What has to hold that a division gives a polynomial: the divisor leaves one rest, or the quotient is one number."""
    values, by = [n.value for n in row], row[0].by
    if len(set(values)) == 1 and len({n.by for n in row}) == 1:
        return []
    if by >= 1 and len({n.by for n in row}) == 1:
        try:
            size, often = (SizeExpr.of(samples.fit(v)) for v in (values, [v // by for v in values]))
        except ValueError:
            size = often = SizeExpr({}, {}, 2)
        if size.divisor == often.divisor == 1 and often.fixed is None and (size - often * by).fixed is not None:
            return []
        if often.divisor == 1 and often.fixed is not None:
            low = often.fixed * by
            ends = ([n.value - low for n in row], [low + by - 1 - n.value for n in row])
            return [tuple(replace(n, kind="sign", value=v) for n, v in zip(row, end, strict=True)) for end in ends]
    raise _refused(row[0], f"{row[0].what} by {by}: {_values(samples, values)}, of which the rest is not one number")


class _Decision:
    """One note at all points."""

    def __init__(self, samples: Samples, row: tuple[Note, ...]) -> None:
        self.samples, self.row, self.first = samples, row, row[0]

    def condition(self) -> Condition | None:
        """What has to be at least 0; None where it is at all sizes."""
        values = [n.value for n in self.row]
        if len(set(values)) == 1:
            return None
        if self.first.kind == "same":
            raise _refused(self.first, f"{self.first.what}, and what it decides is not seen. Use the size itself")
        answers = {v >= 0 if self.first.kind == "sign" else v == 0 for v in values}
        if len(answers) > 1:
            raise _refused(self.first, self._differs(values))
        try:
            size = SizeExpr.of(self.samples.fit(values))
        except ValueError:
            what = f"{self.first.what}: {_values(self.samples, values)} is no sum of products of the sizes"
            raise _refused(self.first, what) from None
        if self.first.kind == "zero" and len({v > 0 for v in values}) > 1:
            raise _refused(self.first, self._differs(values))
        # As a whole number that is at least 0 where it is decided as it was.
        whole = SizeExpr(size.terms, size.most)
        if self.first.kind == "zero":
            held = whole - 1 if values[0] > 0 else whole * -1 - 1
        else:
            held = whole if values[0] >= 0 else whole * -1 - 1
        most = self.samples.dims
        if least({n: (0, m) for n, m in most.items()}, held) >= 0:
            return None
        usual = {n: (self.samples.usual(n), m) for n, m in most.items()}
        if not self.first.cut and least(usual, held) < 0:
            raise _refused(self.first, self._elsewhere(usual, held))
        return Condition(held, f"{_at_least_0(held)}, for {line_text(self.first.site)}\n  ({self.first.what})")

    def _differs(self, values: Sequence[int]) -> str:
        points = [_point(p) for p in self.samples.points]
        other = next(i for i, v in enumerate(values) if self._side(v) != self._side(values[0]))
        return f"{self.first.what}: another way at {points[other]} than at {points[0]}"

    def _side(self, value: int) -> int:
        return (value > 0) - (value < 0) if self.first.kind == "zero" else int(value >= 0)

    def _elsewhere(self, box: Box, held: SizeExpr) -> str:
        """The line's other way, at sizes that take it, if such are at hand."""
        point = self.samples.points[0]
        for other in _corners(box):
            if held.at(other) < 0:
                return (
                    f"{self.first.what}: another way at {_point(_nearest(held, other, point))} than at {_point(point)}"
                )
        return f"{self.first.what}, and may go another way at other sizes up to the maximum"


def _nearest(held: SizeExpr, other: Mapping[str, int], point: Mapping[str, int]) -> dict[str, int]:
    """Of the sizes from one that is decided otherwise to one that is not, the last on its side."""
    wrong, right = dict(other), dict(point)
    while True:
        middle = {n: (wrong[n] + right[n]) // 2 for n in wrong}
        if middle in (wrong, right):
            return wrong
        if held.at(middle) < 0:
            wrong = middle
        else:
            right = middle


def _corners(box: Box) -> Iterator[dict[str, int]]:
    for ends in product(*box.values()):
        yield dict(zip(box, ends, strict=True))


def least(box: Box, size: SizeExpr) -> Fraction | int:
    """The least that a polynomial of the second degree can be in a box: exactly of one dim, or where no dim is squared.

    Of several, of which some are squared, it is a bound: its parts may be least at different sizes.
    """
    names = sorted({n for key in size.terms for n in key})
    if not names:
        return size.terms.get((), 0)
    squared = [n for n in names if (n, n) in size.terms]
    if len(names) == 1:
        return _least_of_one(box[names[0]], *(size.terms.get((names[0],) * k, 0) for k in (0, 1, 2)))
    if not squared and len(names) <= _CORNERS:
        return min(size.at(corner) for corner in _corners({n: box[n] for n in names}))
    total: Fraction | int = size.terms.get((), 0)
    for n in names:
        total += _least_of_one(box[n], 0, size.terms.get((n,), 0), size.terms.get((n, n), 0))
    for key, factor in size.terms.items():
        if len(set(key)) > 1:
            total += min(factor * a * b for a, b in product(box[key[0]], box[key[1]]))
    return total


def _least_of_one(ends: tuple[int, int], constant: int, slope: int, bend: int) -> int:
    """That of constant + slope n + bend n^2 for whole n from one end to the other."""
    low, high = ends
    places = {low, high}
    if bend:
        turn = Fraction(-slope, 2 * bend)
        places |= {min(max(n, low), high) for n in (floor(turn), ceil(turn))}
    return min(constant + slope * n + bend * n * n for n in places)


def _values(samples: Samples, values: Sequence[int]) -> str:
    points = ", ".join(f"({_point(p)})" for p in samples.points)
    return f"{', '.join(map(str, values))} at sizes {points}"


def _point(point: Mapping[str, int]) -> str:
    return ", ".join(f"{n}={v}" for n, v in point.items())


def _at_least_0(size: SizeExpr) -> str:
    """The condition in words: `n >= 2` where it is as simple."""
    names = [key for key in size.terms if key]
    if len(names) == 1 and len(names[0]) == 1 and abs(size.terms[names[0]]) == 1:
        constant = size.terms.get((), 0)
        return f"{names[0][0]} >= {-constant}" if size.terms[names[0]] > 0 else f"{names[0][0]} <= {constant}"
    return f"{size} >= 0"


def _refused(note: Note, what: str) -> InvalidProblemError:
    return InvalidProblemError(
        f"trace: {line_text(note.site)}\n  {what}.\n"
        "A graph whose sizes are bc.Dims does the same at all of them, up to the maximum. Trace the cases one by one, each by a "
        "function that asks nothing, or with a smaller maximum or fixed sizes.",
        [Refusal("dim", "", what, "the same at all sizes")],
    )
