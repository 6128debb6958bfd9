"""What is measured: a cell is one random call of a function, drawn by the function's facts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np

from baracuda.prove import peers
from baracuda.prove.draws import BYTES, FLOATS, Arguments, Array, Draws, Dtype, arrays, parameters


@dataclass(frozen=True, slots=True)
class Cell:
    """One call.

    Attributes:
        name: The function.
        number: Which of its calls: with the seed, it says all the rest.
        gradient: The call and its gradient are measured, in the place of the call.
        out: Both sides are given `out=`, where the peer has it, too.
        arguments: By parameter; "*name" is spread.
        element: That was drawn.
        elements: Those that come in its place where one side does not take it.
        layout: Of the main tensor.
    """

    name: str
    number: int
    gradient: bool
    out: bool
    arguments: Arguments
    element: str
    elements: tuple[str, ...]
    layout: str

    @property
    def family(self) -> str:
        """The function's."""
        return peers.families()[self.name]

    @property
    def nbytes(self) -> int:
        """Of all tensors that are given."""
        return sum(a.nbytes for a in arrays(self.arguments))

    @property
    def size(self) -> int:
        """Elements of all tensors that are given."""
        return sum(a.size for a in arrays(self.arguments))

    @property
    def text(self) -> str:
        """The call, for people."""
        shown = [f"{k}={_shown(v)}" if not isinstance(v, Array) else f"{k} {v}" for k, v in self.arguments.items()]
        return ", ".join(shown)


def _shown(value: Any) -> str:
    if isinstance(value, Array):
        return str(value)
    if isinstance(value, (list, tuple)):
        return f"({', '.join(map(_shown, value))})"
    return value if isinstance(value, Dtype) else repr(value)


def draw(
    name: str,
    seed: int,
    number: int,
    *,
    gradient: bool = False,
    largest: float = 1e8,
    element: str | None = None,
    nbytes: float | None = None,
    layout: str | None = None,
) -> Cell:
    """The call of this number: the same for the same seed, whatever else is drawn."""
    d = Draws(name, (seed, number), largest=largest, element=element, nbytes=nbytes, layout=layout)
    elements = tuple(e for e in d.elements if e in FLOATS) if gradient else d.elements
    if element is None and elements[0] != d.element:
        return draw(
            name, seed, number, gradient=gradient, largest=largest, element=elements[0], nbytes=nbytes, layout=layout
        )
    given = peers.rules()[name](d)
    has_out = "out" in parameters(name) and not gradient
    main = next(iter(arrays(given)), None)
    out = has_out and d.chance(0.4)
    return Cell(name, number, gradient, out, given, d.element, elements, main.layout if main else "contiguous")


def chosen(words: str, gradients: bool = False) -> list[str]:
    """Functions of this name or family; all of them for "". With `gradients`, those that have one.

    Raises:
        LookupError: If there is none.
    """
    import baracuda.functional as F

    names = [n for n in peers.rules() if not words or words in (n, peers.families()[n])]
    if gradients:
        names = [n for n in names if getattr(getattr(F, n), "vjp_rule", None) is not None]
    if not names:
        known = ", ".join(sorted({peers.families()[n] for n in peers.rules()}))
        raise LookupError(f"--sweep {words}: no function or family with a peer has this name; families: {known}")
    return names


def order(names: Sequence[str], seed: int) -> Iterator[tuple[str, int]]:
    """(function, number) without end: all functions in a random order, again and again with the next number."""
    number = 0
    while True:
        rng = np.random.default_rng((seed, number, crc32(b"order")))
        yield from ((names[int(i)], number) for i in rng.permutation(len(names)))
        number += 1


__all__ = ["BYTES", "Cell", "chosen", "draw", "order"]
