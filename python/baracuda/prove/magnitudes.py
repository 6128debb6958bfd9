"""The reference's cases with inputs of every magnitude that their elements hold, for `verify`.

A family's `cases` draws its numbers from a generator. Given `Stretched` instead, they come out scaled by powers of two:
towards both ends of the element, the top binades and the subnormal numbers included, and to where squares and cubes pass
these ends. What a case saves (a norm, lse, a mean) is computed from them, as always. The bound stays the row's.
A module may say, as EXPONENTS, which share of an element's exponents its op promises to take.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from baracuda.describe.elements import Element
from baracuda.prove.reference import Array, Case, reference_module, round_to, to_reference

# The exponents of an element's least and largest numbers, the subnormal ones included.
_ENDS = {Element.F16: (-24, 15), Element.BF16: (-133, 127), Element.F32: (-149, 127), Element.F64: (-1074, 1023)}
_MOST = 4096  # a draw of more numbers belongs to a case that is too large anyway


class Stretched:
    """A random generator whose normal draws are scaled to magnitudes of an element, one power of two for each draw."""

    def __init__(self, rng: np.random.Generator, element: Element, share: float = 1.0) -> None:
        self._rng = rng
        self._ends = tuple(int(share * end) for end in _ENDS[element])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rng, name)

    def normal(self, loc: float = 0.0, scale: float = 1.0, size: Any = None) -> Any:
        """As numpy.random.Generator.normal, scaled."""
        values = np.asarray(self._rng.normal(loc, scale, size))
        return values if not 0 < values.size <= _MOST else self._stretch(values)

    def _stretch(self, values: Array) -> Array:
        low, high = self._ends
        pick = int(self._rng.integers(0, 10))
        if pick == 0:
            return values
        if pick == 1:  # every number elsewhere
            return np.asarray(np.ldexp(np.frexp(values)[0], self._rng.integers(low, high + 1, values.shape)))
        near = int(self._rng.integers(-3, 4))
        level = {
            2: high + 1, 3: high - int(self._rng.integers(0, 8)), 4: high // 2 + near, 5: high // 3 + near,
            6: low // 3 + near, 7: low // 2 + near, 8: low + int(self._rng.integers(8, 30)),
        }.get(pick, int(self._rng.integers(low, high + 2)))  # fmt: skip
        # frexp's exponent is one above that of the binade, whose largest number no draw may round beyond.
        by = min(level, high + 1) - int(np.frexp(np.max(np.abs(values)))[1])
        return np.asarray(np.ldexp(values, by))


def stretched_cases(op: str, direction: str, element: Element, seed: int, most_elements: int) -> Iterator[Case]:
    """Cases of a float element with inputs of every magnitude.

    Args:
        op: The op's name.
        direction: "forward" or "backward".
        element: The primary element.
        seed: Of the inputs.
        most_elements: Leaves out cases with a tensor of more elements.
    """
    if element not in _ENDS:
        return
    module = reference_module(op)
    own = np.random.default_rng([seed, *f"{op} {direction} {element}".encode()])
    rng = Stretched(own, element, getattr(module, "EXPONENTS", 1.0))
    with np.errstate(all="ignore"):
        for case in module.cases(op, direction, element, rng):
            given = [np.size(v) for t in case.tensors.values() for v in (t if isinstance(t, list) else [t])]
            small = sum(given) > 0 and max(given) <= most_elements
            if small and case.note in ("", "all exponents") and _finite(case):
                case.note = case.note or "every magnitude"
                yield case


def _finite(case: Case) -> bool:
    """Whether all inputs are numbers in their own elements, which may be narrower; saved values may have overflowed."""
    for p in case.descriptor.signature().present:
        values: Any = case.tensors.get(p.name, []) if p.element.is_float else []
        for v in values if p.variadic else [values]:
            if not np.all(np.isfinite(to_reference(round_to(v, p.element)))):
                return False
    return True


def some(cases: list[Case], most: int, rng: np.random.Generator) -> list[Case]:
    """At most so many of the cases, in their order."""
    if len(cases) <= most:
        return cases
    return [cases[i] for i in sorted(rng.choice(len(cases), most, replace=False))]
