"""Sizes of programs: sums of products of `bc.Dim`s, for shapes, strides and offsets that follow a length."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

from baracuda.describe.dims import Dim
from baracuda.describe.errors import InvalidProblemError, shown, whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class SizeExpr:
    """A constant plus products of dims, the whole divided: `4 * n * m + 1`, `(n + 3) / 4` rounded up.

    Attributes:
        terms: Coefficients by the dims that they are multiplied with; the constant's are ().
        divisor: What the sum is divided by, exactly unless `up`.
        up: Rounds up.
        most: The maxima of the dims, by name.
    """

    __slots__ = ("divisor", "most", "terms", "up")

    def __init__(
        self, terms: Mapping[tuple[str, ...], int], most: Mapping[str, int], divisor: int = 1, up: bool = False
    ) -> None:
        self.terms = {k: v for k, v in terms.items() if v}
        self.most = dict(most)
        self.divisor, self.up = divisor, up

    @classmethod
    def of(cls, size: AnySize) -> SizeExpr:
        """A size of any kind as an expression."""
        if isinstance(size, SizeExpr):
            return size
        if isinstance(size, Dim):
            made = cls({(size.name,): size.mul, (): size.add * size.div}, {size.name: size.max}, size.div)
            return made
        number = whole(size)
        if number is None:
            raise InvalidProblemError(f"size: got {shown(size)}, want an int, a bc.Dim or a product of them.")
        return cls({(): number}, {})

    @classmethod
    def read(cls, document: Any, most: Mapping[str, int]) -> SizeExpr:
        """What `json` wrote, of dims with these maxima."""
        if isinstance(document, int):
            return cls({(): document}, {})
        terms = {tuple(names): factor for factor, *names in document.get("terms", ())}
        used = {n: most[n] for names in terms for n in names}
        return cls(
            terms | {(): document.get("constant", 0)}, used, document.get("divide", 1), document.get("up", False)
        )

    def _joined(self, other: SizeExpr) -> dict[str, int]:
        for name in self.most.keys() & other.most.keys():
            if self.most[name] != other.most[name]:
                raise InvalidProblemError(
                    f"bc.Dim({name!r}): got max={self.most[name]} and max={other.most[name]}, want one maximum per name."
                )
        return self.most | other.most

    def __add__(self, other: AnySize) -> SizeExpr:
        other = SizeExpr.of(other)
        a, b = (self, other) if self.divisor != 1 else (other, self)
        if b.divisor != 1 or (a.divisor != 1 and b.fixed is None):
            raise InvalidProblemError("size: got a sum with a rounded or divided part, want it divided last.")
        total = dict(a.terms)
        for key, value in b.terms.items():
            total[key] = total.get(key, 0) + value * a.divisor
        return SizeExpr(total, self._joined(other), a.divisor, a.up)

    def __mul__(self, other: AnySize) -> SizeExpr:
        other = SizeExpr.of(other)
        if (self.divisor, other.divisor) != (1, 1):
            if 1 in (self.fixed, other.fixed):
                return other if self.fixed == 1 else self
            raise InvalidProblemError("size: got a product with a divided part, want it divided last.")
        total: dict[tuple[str, ...], int] = {}
        for a, x in self.terms.items():
            for b, y in other.terms.items():
                key = tuple(sorted(a + b))
                total[key] = total.get(key, 0) + x * y
        return SizeExpr(total, self._joined(other))

    __radd__, __rmul__ = __add__, __mul__

    def __sub__(self, other: AnySize) -> SizeExpr:
        return self + SizeExpr.of(other) * -1

    def __rsub__(self, other: AnySize) -> SizeExpr:
        return SizeExpr.of(other) + self * -1

    def __floordiv__(self, k: int) -> SizeExpr:
        """Exact: a run with a size that leaves a remainder is refused."""
        return SizeExpr(self.terms, self.most, self.divisor * k)

    def ceil(self, k: int) -> SizeExpr:
        """Divided and rounded up."""
        if self.divisor != 1:
            raise InvalidProblemError("size: got a size that is divided already, want it divided once.")
        return SizeExpr(self.terms, self.most, k, True)

    @property
    def fixed(self) -> int | None:
        """The number, where no dim is in it."""
        if len(self.terms) > (() in self.terms):
            return None
        return self.terms.get((), 0) // self.divisor

    def at(self, sizes: Mapping[str, int]) -> int:
        """The number at these sizes of the dims."""
        total = sum(v * prod(sizes[n] for n in k) for k, v in self.terms.items())
        return -(-total // self.divisor) if self.up else total // self.divisor

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (SizeExpr, Dim, int)):
            return NotImplemented
        other = SizeExpr.of(other)
        return (self.terms, self.divisor, self.up) == (other.terms, other.divisor, other.up)

    def __hash__(self) -> int:
        return hash((frozenset(self.terms.items()), self.divisor, self.up))

    def json(self) -> Any:
        """As the engine reads it."""
        if self.fixed is not None and self.divisor == 1:
            return self.fixed
        out: dict[str, Any] = {"terms": [[v, *k] for k, v in self.terms.items() if k]}
        if () in self.terms:
            out["constant"] = self.terms[()]
        if self.divisor != 1:
            out["divide"] = self.divisor
        return out | {"up": True} if self.up else out

    def __repr__(self) -> str:
        parts = ["*".join([str(v)] * (v != 1 or not k) + list(k)) for k, v in self.terms.items()]
        text = " + ".join(parts) or "0"
        return text if self.divisor == 1 else f"{'ceil' * self.up}(({text}) / {self.divisor})"


AnySize: TypeAlias = int | Dim | SizeExpr


def simple(size: AnySize) -> AnySize:
    """An int where it is one."""
    number = size.fixed if isinstance(size, SizeExpr) else None
    return size if number is None else number


def product(sizes: Iterable[AnySize]) -> SizeExpr:
    """The product of sizes."""
    out = SizeExpr.of(1)
    for size in sizes:
        out = out * size
    return out


def contiguous_strides(shape: Iterable[AnySize]) -> tuple[SizeExpr, ...]:
    """Strides of a contiguous tensor, in elements."""
    sizes, out, step = list(shape), [], SizeExpr.of(1)
    for size in reversed(sizes):
        out.append(step)
        step = step * size
    return tuple(reversed(out))
