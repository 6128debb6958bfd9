"""Random arguments of any size: what a family's facts draw a function's calls with, for `bench --sweep`.

A draw is one call. It has a number of bytes, an element and a layout; a rule (`prove/rules.py`, and the families' facts) makes arguments
of them. Arrays are described here and made by the library that measures.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias
from zlib import crc32

import numpy as np

Shape: TypeAlias = tuple[int, ...]
Arguments: TypeAlias = dict[str, Any]

BYTES = {"f32": 4, "bf16": 2, "f16": 2, "f64": 8, "i64": 8, "i32": 4, "u8": 1, "i8": 1, "i16": 2, "bool": 1}
FLOATS = ("f32", "bf16", "f16", "f64")
_OFTEN = (0.34, 0.2, 0.12, 0.12, 0.07, 0.06, 0.03, 0.02, 0.02, 0.02)
LAYOUTS = ("contiguous", "permuted", "channels_last", "strided", "row", "column")
_LAID = (0.6, 0.1, 0.06, 0.1, 0.07, 0.07)


@dataclass(frozen=True)
class Array:
    """A tensor to be made.

    Attributes:
        shape: Its sizes.
        element: Of its numbers.
        layout: "contiguous"; "permuted": dense in another order of dimensions; "channels_last"; "strided": every second of the
            last dimension; "row", "column": repeated along the first, along the last dimension by a stride of 0.
        values: "normal"; "index": below `bound`; "order": as index, no two alike along `dim`; "places": no two alike in all dimensions
            from `dim` on; "rising": sorted along the last dimension; "sparse": mostly 0; or a range of uniform numbers.
        bound: What indices stay below.
        dim: Along which indices differ.
        order: Dimensions from the outermost to the innermost in memory, where permuted.
    """

    shape: Shape
    element: str
    layout: str = "contiguous"
    values: str | tuple[float, float] = "normal"
    bound: int = 0
    dim: int = 0
    order: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def nbytes(self) -> int:
        """Of its elements, repeated ones too."""
        return self.size * BYTES[self.element]

    def __str__(self) -> str:
        more = "" if self.layout == "contiguous" else f" {self.layout}"
        return f"{self.element}[{'x'.join(map(str, self.shape))}]{more}"


class Dtype(str):
    """The name of an element that is given as a dtype."""


@cache
def parameters(name: str) -> Mapping[str, inspect.Parameter]:
    """Of a function of bc.functional."""
    import baracuda.functional as F

    return inspect.signature(getattr(F, name)).parameters


def _odd(n: int, rng: np.random.Generator) -> int:
    """The nearest prime above, mostly; n itself now and then, and powers of two as people have them."""
    kind = rng.random()
    if n < 3 or kind < 0.3:
        return n
    if kind < 0.5:
        return int(2 ** round(np.log2(n)))
    n |= 1
    while n < 100_000 and any(n % k == 0 for k in range(3, int(n**0.5) + 1, 2)):
        n += 2
    return n


class Draws:
    """What one call is drawn from: (function, seed, number) give the same call each time, whatever else is drawn."""

    def __init__(
        self,
        name: str,
        seed: Sequence[int],
        *,
        largest: float = 1e8,
        nbytes: float | None = None,
        element: str | None = None,
        layout: str | None = None,
    ) -> None:
        """Draws size, element and layout; what is given here takes the place of what was drawn."""
        self.name = name
        self.rng = np.random.default_rng([*seed, crc32(name.encode())])
        self.nbytes = float(10 ** self.rng.uniform(2, np.log10(largest)))
        self.elements = tuple(str(e) for e in self.rng.choice(list(BYTES), len(BYTES), replace=False, p=_OFTEN))
        self.layout = str(self.rng.choice(LAYOUTS, p=_LAID))
        self.nbytes = nbytes or self.nbytes
        self.element = element or self.elements[0]
        self.layout = layout or self.layout
        self.count = max(1, int(self.nbytes / BYTES[self.element]))

    @property
    def parameters(self) -> list[str]:
        """The function's parameters without a default."""
        found = parameters(self.name).values()
        return [p.name for p in found if p.default is p.empty and p.kind is not p.VAR_KEYWORD]

    @property
    def real(self) -> str:
        """The call's element, or f32 where that is no float."""
        return self.element if self.element in FLOATS else "f32"

    def chance(self, p: float) -> bool:
        """True with this probability."""
        return bool(self.rng.random() < p)

    def pick(self, *of: Any) -> Any:
        """One of them."""
        return of[int(self.rng.integers(len(of)))]

    def between(self, low: int, high: float) -> int:
        """A number of which small ones are as likely as large ones."""
        high = max(low, int(high))
        return min(high, int(np.exp(self.rng.uniform(np.log(max(low, 0.5)), np.log(high + 1))) + 0.5))

    def split(self, count: float, parts: int) -> Shape:
        """Extents whose product is about `count`, odd and prime ones mostly."""
        if parts == 0:
            return ()
        shares = self.rng.dirichlet(np.ones(parts))
        found = [max(1, _odd(int(count**s), self.rng)) for s in shares]
        last = int(self.rng.integers(parts))
        found[last] = max(1, round(count / max(1, int(np.prod([*found[:last], *found[last + 1 :]])))))
        return tuple(found)

    def shape(self, low: int = 1, high: int = 5, count: float | None = None) -> Shape:
        """Of a rank from low to high, of as many elements as the draw has."""
        rank = int(self.rng.integers(low, high + 1))
        return self.split(self.count if count is None else count, rank)

    def along(self, most: float = 1e6, least: int = 1) -> tuple[Shape, int]:
        """A shape, and the dimension that the function works along: its extent is from 1 to a million, first, middle or last."""
        extent = _odd(self.between(least, min(most, self.count)), self.rng)
        rest = max(1.0, self.count / extent)
        before = self.pick(0, 1, 1, 2)
        after = self.pick(0, 0, 0, 1, 2)
        outer, inner = rest, 1.0
        if before and after:
            inner = float(np.exp(self.rng.uniform(0, np.log(rest))))
            outer = rest / inner
        elif after:
            outer, inner = 1.0, rest
        elif not before:
            extent = max(least, min(int(most), self.count))
        lead, tail = self.split(outer, before), self.split(inner, after)
        return (*lead, extent, *tail), len(lead)

    def tensor(
        self,
        shape: Shape,
        values: str | tuple[float, float] = "normal",
        element: str | None = None,
        *,
        plain: bool = False,
    ) -> Array:
        """Of the draw's element and layout, where the rank has it and it is not to be `plain`."""
        layout = "contiguous" if plain or not shape else self.layout
        if (layout == "permuted" and len(shape) < 2) or (layout == "channels_last" and len(shape) not in (4, 5)):
            layout = "contiguous"
        order = tuple(int(i) for i in self.rng.permutation(len(shape))) if layout == "permuted" else ()
        return Array(tuple(shape), element or self.element, layout, values, order=order)

    def floats(self, shape: Shape, values: str | tuple[float, float] = "normal", *, plain: bool = False) -> Array:
        """A tensor of floats, whatever the draw's element is."""
        return self.tensor(shape, values, self.real, plain=plain)

    def mask(self, shape: Shape) -> Array:
        """A tensor of bool."""
        return self.tensor(shape, element="bool")

    def indices(self, shape: Shape, bound: int, values: str = "index", dim: int = 0) -> Array:
        """A contiguous tensor of i64 below `bound`."""
        return Array(tuple(shape), "i64", values=values, bound=bound, dim=dim)

    def part(self, shape: Shape) -> Shape:
        """A shape that broadcasts to this one: itself mostly, a row, a column or one element."""
        kind = self.rng.random()
        if kind < 0.55 or not shape:
            return shape
        if kind < 0.75:
            return shape[-1:]
        return (*shape[:-1], 1) if kind < 0.95 else (1,) * len(shape)


Rule: TypeAlias = Callable[[Draws], Arguments]


def arrays(value: Any) -> list[Array]:
    """All arrays of some arguments."""
    if isinstance(value, Array):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [a for v in value for a in arrays(v)] if isinstance(value, (list, tuple)) else []
