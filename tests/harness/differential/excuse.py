"""What an excuse for a difference from torch is, and what excuses are made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from baracuda.describe.elements import Element
from baracuda.prove.reference import LARGEST, to_reference
from differential import functions
from differential.calls import Call
from differential.values import T

if TYPE_CHECKING:
    from differential.judge import Finding

Array = np.ndarray[Any, Any]
PAGE = Path(__file__).resolve().parents[3] / "docs" / "not-like-torch.md"


@dataclass(frozen=True)
class Excuse:
    """A row of the page.

    Attributes:
        row: The first cell of the row.
        kinds: Of the findings that it excuses.
        when: Whether it excuses one.
        example: A call that needs it.
        where: For numbers: the places that it excuses, in an array that broadcasts to the result. There the op's
            reference is right.
        free: Whether the reference does not tell there, either.
        by_processor: Whether the example differs on some processors only, because of the order in which torch's library adds.
    """

    row: str
    kinds: str
    when: Callable[[Finding], bool]
    example: Callable[[], Call]
    where: Callable[[Call], Array] | None = None
    free: bool = False
    by_processor: bool = False


def t(values: Any, element: str = "f32", **more: Any) -> T:
    """A tensor of an example."""
    return T(np.asarray(values).astype(Element.coerce(element).numpy), **more)


def call(name: str, *, gradient: bool = False, **given: Any) -> Call:
    """The call of an example."""
    return Call(name, given, gradient=gradient)


def rows() -> set[str]:
    """The first cells of the page's tables."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    return {line.split(" | ")[0].removeprefix("| ") for line in lines}


def named(*names: str) -> Callable[[Finding], bool]:
    return lambda f: f.call.name in names


def says(*words: str) -> Callable[[Finding], bool]:
    return lambda f: all(w in f.detail for w in words)


def numbers_in(x: Any) -> Array:
    return np.asarray(to_reference(x.array)) if isinstance(x, T) else np.asarray(x)


def plain_numbers(f: Finding) -> list[float]:
    return [v for v in f.call.given.values() if isinstance(v, (int, float)) and not isinstance(v, bool)]


def elements(f: Finding) -> set[str]:
    return {x.element for x in f.call.tensors().values()}


def unlike(f: Finding) -> bool:
    return len(elements(f)) > 1


def input_nan(c: Call) -> Array:
    return np.isnan(numbers_in(c.given["input"]).astype(np.float64))


def gradient_of(*names: str) -> Callable[[Finding], bool]:
    return lambda f: f.call.gradient and f.call.name in names


def not_held(c: Call) -> Array:
    """Where a float is no number of the integer element that it is cast to."""
    info = np.iinfo(Element.coerce(c.given["dtype"].element).numpy)
    with np.errstate(invalid="ignore"):
        cut = np.trunc(numbers_in(c.given["input"]).astype(np.float64))
        return np.asarray(~((cut >= info.min) & (cut < float(info.max) + 1)))


def elementwise(c: Call) -> bool:
    return functions.family(c.name).__name__ in ("unary", "binary", "ternary")


def at_the_ends(c: Call) -> Array:
    """Where a number is not finite, or its square or inverse is not in the element; everywhere if shapes do not tell."""
    found: list[Array] = []
    for x in c.tensors().values():
        size = np.abs(numbers_in(x).astype(np.float64))
        most = LARGEST[Element.coerce(x.element)] if x.is_float else np.inf
        found.append(~((size == 0) | ((size > most**-0.5) & (size < most**0.5))))
    if not elementwise(c):
        return np.asarray(any(bool(x.any()) for x in found))
    try:
        return np.asarray(np.logical_or.reduce(np.broadcast_arrays(*found)))
    except ValueError:
        return np.asarray(any(bool(x.any()) for x in found))


def overflowing(c: Call) -> Array:
    """Whether terms may be so large that their sum is not finite in the element that is computed in."""
    sizes = [
        float(np.nanmax(np.abs(numbers_in(x)), initial=0)) for x in c.tensors().values() if x.is_float and x.array.size
    ]
    return np.asarray(any(s > 1e18 for s in sizes))


def everywhere(c: Call) -> Array:
    return np.asarray(True)


def accepted(row: str, when: Callable[[Finding], bool], example: Callable[[], Call]) -> Excuse:
    return Excuse(row, "accepted", when, example)


def refused(row: str, when: Callable[[Finding], bool], example: Callable[[], Call]) -> Excuse:
    return Excuse(row, "refused", when, example)
