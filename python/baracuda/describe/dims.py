"""Sizes that are known only when a plan runs."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd, prod
from typing import TYPE_CHECKING, TypeAlias

from baracuda.describe.calls import Signed
from baracuda.describe.errors import InvalidProblemError, is_text, shown, whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True, slots=True, repr=False)
class Dim(metaclass=Signed):
    """A size read from the tensors at run time, at most `max`; equal names are equal sizes.

    `n * 2`, `n // 2` and `n + 1` give sizes that follow it.

    Example:
        >>> kv = Dim("kv", max=8192)
    """

    name: str
    max: int
    mul: int = 1
    div: int = 1
    add: int = 0

    def __post_init__(self) -> None:
        if not is_text(self.name) or not self.name:
            raise InvalidProblemError(f"Dim: got name={self.name!r}, want a word.")
        for field, least, most in (("max", 0, 2**59), ("mul", 1, 2**31), ("div", 1, 2**31), ("add", -(2**59), 2**59)):
            value = getattr(self, field)
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value < most:
                raise InvalidProblemError(
                    f"Dim({self.name!r}): got {field}={shown(value)}, want an int, {least} <= {field} < {most}."
                )

    def __mul__(self, k: int) -> Dim:
        self._factor(k)
        common = gcd(self.mul * k, self.div)
        return Dim(self.name, self.max, self.mul * k // common, self.div // common, self.add * k)

    __rmul__ = __mul__

    def __floordiv__(self, k: int) -> Dim:
        """Exact: `run` refuses sizes that leave a remainder."""
        self._factor(k)
        if self.add % k:
            raise InvalidProblemError(f"{self}: cannot be divided by {k} exactly.")
        common = gcd(self.mul, self.div * k)
        return Dim(self.name, self.max, self.mul // common, self.div * k // common, self.add // k)

    def __add__(self, k: int) -> Dim:
        return Dim(self.name, self.max, self.mul, self.div, self.add + k)

    def _factor(self, k: object) -> None:
        if isinstance(k, bool) or not isinstance(k, int) or k < 1:
            raise InvalidProblemError(
                f"Dim({self.name!r}): got a factor or divisor {shown(k)}, want an int of at least 1."
            )

    __radd__ = __add__

    @property
    def largest(self) -> int:
        """The size at the maximum."""
        return self.max * self.mul // self.div + self.add

    def at(self, n: int) -> int:
        """The size where the name stands for `n`.

        Raises:
            InvalidProblemError: A division leaves a remainder, or the size is below 0.
        """
        value = whole(n)
        found, rest = divmod((value or 0) * self.mul, self.div)
        if value is None or rest or found + self.add < 0:
            raise InvalidProblemError(
                f"{self.name}: got {shown(n)}, want one for which {self} is a whole number of at least 0."
            )
        return found + self.add

    def __repr__(self) -> str:
        plain = (("mul", self.mul, 1), ("div", self.div, 1), ("add", self.add, 0))
        changed = "".join(f", {name}={value}" for name, value, default in plain if value != default)
        return f"Dim({self.name!r}, max={self.max}{changed})"

    def __str__(self) -> str:
        text = self.name
        text += f"*{self.mul}" if self.mul != 1 else ""
        text += f"//{self.div}" if self.div != 1 else ""
        return text + (f"{self.add:+d}" if self.add else "")


Size: TypeAlias = int | Dim
Shape: TypeAlias = tuple[Size, ...]

MAX_RANK = 8
# So that even 16-byte elements take fewer than 2**63 bytes, and no product of sizes can overflow.
MAX_ELEMENTS = 2**59


def largest(size: Size) -> int:
    """The size, or the maximum of a Dim."""
    return size.largest if isinstance(size, Dim) else size


def size_at(size: Size, values: Mapping[str, int]) -> int:
    """The size where the names of Dims have these values."""
    return size.at(values[size.name]) if isinstance(size, Dim) else size


def check_values(limits: Mapping[str, int], given: Mapping[str, object]) -> dict[str, int]:
    """Values of Dims by name, in the order of `limits`, which says the largest of each.

    Raises:
        InvalidProblemError: A name is unknown or missing, or its value is no size or too large.
    """
    for name in given.keys() - limits.keys():
        names = ", ".join(limits) or "none: no size of this plan is a bc.Dim"
        raise InvalidProblemError(f"{name}: got a size of this name, want one of {names}.")
    found = {}
    for name, most in limits.items():
        if name not in given:
            raise InvalidProblemError(f"{name}: got nothing, want its size: a value for each bc.Dim of the plan.")
        value = whole(given[name])
        if value is None or not 0 <= value <= most:
            raise InvalidProblemError(f"{name}: got {shown(given[name])}, want an int, 0 <= {name} <= {most}.")
        found[name] = value
    return found


def shape_text(shape: Iterable[Size]) -> str:
    """A shape for a message: sizes as numbers, Dims by name."""
    sizes = [str(s) if isinstance(s, Dim) else shown(s) for s in shape]
    return f"({sizes[0]},)" if len(sizes) == 1 else f"({', '.join(sizes)})"


def is_plain(shape: object) -> bool:
    """Whether this is a tuple of ints that check_shape takes as it is; what most shapes are."""
    if type(shape) is not tuple or len(shape) > MAX_RANK:
        return False
    count = 1
    for size in shape:
        if type(size) is not int or size < 0:
            return False
        count *= size or 1
    return count < MAX_ELEMENTS


def check_shape(shape: object, field: str) -> Shape:
    """A shape as a tuple of sizes, or InvalidProblemError naming the field."""
    if isinstance(shape, (str, bytes, set, dict)):
        raise InvalidProblemError(f"{field}: got {shown(shape)}, want a tuple of ints or bc.Dim.")
    if isinstance(shape, (int, Dim)):
        shape = (shape,)
    try:
        sizes = tuple(s if isinstance(s, Dim) else int(s.__index__()) for s in shape)  # type: ignore[attr-defined]
    except (TypeError, AttributeError):
        raise InvalidProblemError(f"{field}: got {shown(shape)}, want a tuple of ints or bc.Dim.") from None
    if len(sizes) > MAX_RANK:
        raise InvalidProblemError(f"{field}: got rank {len(sizes)}, want at most {MAX_RANK}. Merge dimensions first.")
    for size in sizes:
        if largest(size) < 0:
            raise InvalidProblemError(
                f"{field}: got size {shown(size)} in {shape_text(sizes)}, want sizes of at least 0."
            )
    if prod(max(largest(s), 1) for s in sizes) >= MAX_ELEMENTS:
        raise InvalidProblemError(
            f"{field}: got {shape_text(sizes)}, want fewer than 2**59 elements (2**63 bytes of the widest element)."
        )
    return sizes


def check_axis(axis: object, rank: int, field: str) -> int:
    """An axis normalised to 0 <= axis < rank; a 0-d tensor counts as having one."""
    value = whole(axis)
    if value is None:
        raise InvalidProblemError(f"{field}: got {shown(axis)}, want an int.")
    span = max(rank, 1)
    if not -span <= value < span:
        raise InvalidProblemError(f"{field}: got {shown(value)}, want {-span} <= axis < {span} for rank {rank}.")
    return value % span
