"""Steps of a tape, and how they are pulled back: of every argument, or of those alone whose gradients are asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from baracuda.describe.elements import Element
from baracuda.describe.errors import BaracudaError, InvalidProblemError
from baracuda.describe.lines import line_text

if TYPE_CHECKING:
    from baracuda.call.gradients import Root
    from baracuda.call.tape import Tracked


class Pull:
    """Gives the gradients of a call's arguments; those of some of them for less work than all take.

    Args:
        whole: Is given the gradient of the results; gives those of all arguments.
        some: Is given that and names of arguments; gives the gradients of these, in their order.
    """

    __slots__ = ("_whole", "some")

    def __init__(self, whole: Callable[[Any], Any], some: Callable[[Any, Sequence[str]], Sequence[Any]]) -> None:
        self._whole = whole
        self.some = some

    def __call__(self, dy: Any) -> Any:
        """The gradients of all arguments."""
        return self._whole(dy)


@dataclass(frozen=True, slots=True)
class Taken:
    """A tensor that a call was given.

    Attributes:
        name: Of its parameter.
        element: Of its numbers.
        tracked: Where gradients go; None for constants.
    """

    name: str
    element: Element
    tracked: Tracked | None


@dataclass(frozen=True, slots=True)
class Step:
    """A call on the tape: the float results in order, what it was given, and how it is pulled back."""

    fn: Any
    results: tuple[Root, ...]
    taken: tuple[Taken, ...]
    pull: Callable[[Any], Any] | None
    where: str | tuple[str, int]


def pulled(step: Step, dy: Any) -> list[tuple[Taken, Any]]:
    """The gradients of a step's arguments, of those alone that are wanted where its pull can leave out the others."""
    if isinstance(step.pull, Pull):
        wanted = [t for t in step.taken if t.tracked is not None]
        if len(wanted) < len(step.taken):
            return list(zip(wanted, step.pull.some(dy, [t.name for t in wanted]), strict=True))
    assert step.pull is not None, "steps without one are refused before"
    made = step.pull(dy)
    return _matched(step, tuple(made) if isinstance(made, (list, tuple)) else (made,))


def _matched(step: Step, gradients: tuple[Any, ...]) -> list[tuple[Taken, Any]]:
    """A pull's gradients with the tensors that they are of: all that are no constants of the function, or the floats of them.

    Where a pull has None in the place of a constant, it is left out.
    """
    constants: frozenset[str] = getattr(step.fn, "constants", frozenset())
    for t in step.taken:
        if t.name in constants and t.tracked is not None:
            error = InvalidProblemError(f"{t.name} is a constant of {step.fn.__name__} and has no gradient")
            raise at(step, error, "Give it by bc.stop_gradient, or compute this by functions that have one.")
    able = [t for t in step.taken if t.name not in constants]
    floats = [t for t in able if t.element.is_float]
    for found in (gradients, tuple(g for g in gradients if g is not None)):
        for takers in (able, floats):
            if len(takers) == len(found):
                return list(zip(takers, found, strict=True))
    names = ", ".join(t.name for t in floats)
    got = f"got {len(gradients)} gradients of {len(floats)} tensors ({names})"
    raise at(step, InvalidProblemError(f"{step.fn.__name__}: {got}"))


def at(step: Step, error: BaracudaError, hint: str = "") -> BaracudaError:
    """The error with the place of the call."""
    text = str(error).rstrip(".") + (f". {hint}" if hint else ".")
    if isinstance(step.where, str):
        return type(error)(f"{step.where}: {text}", error.refusals)
    return type(error)(f"{text}\n  in {line_text(step.where)}", error.refusals)
