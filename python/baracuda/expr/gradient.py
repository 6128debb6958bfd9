"""Gradients of fused expressions, from the functions' own rules: the backward pass is an expression, too."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from baracuda.describe.errors import InvalidProblemError
from baracuda.expr.stand_in import Traced


class Tape:
    """What a function did to stand-ins, and how each step is pulled back."""

    def __init__(self) -> None:
        self.steps: list[tuple[tuple[Traced, ...], tuple[Traced, ...], Callable[[Any], Any]]] = []
        self.inside = False  # of a function's own rule, whose calls are none of the user's

    def call(self, fn: Any, named: dict[str, Any]) -> Any:
        """A call of a function that has a gradient."""
        parameters = fn.__signature__.parameters
        args = [x for n, x in named.items() if parameters[n].kind is not inspect.Parameter.KEYWORD_ONLY]
        options = {n: x for n, x in named.items() if parameters[n].kind is inspect.Parameter.KEYWORD_ONLY}
        self.inside = True
        try:
            y, pull = fn.vjp_rule(*args, **options)
        finally:
            self.inside = False
        made = tuple(y) if isinstance(y, (tuple, list)) else (y,)
        self.steps.append((made, tuple(x for x in args if isinstance(x, Traced)), pull))
        return y

    def view(self, made: Traced, of: Traced, pull: Callable[[Any], Any]) -> Traced:
        """A view, and how its gradient is seen from what it is a view of."""
        if made is not of and not self.inside:
            self.steps.append(((made,), (of,), pull))
        return made

    def gradients(self, y: Traced, dy: Traced, leaves: list[Traced]) -> list[Traced | None]:
        """Gradients of leaves; None where y does not depend on one."""
        from baracuda import functional as F
        from baracuda.ops.binary.binary import _sum_to

        known: dict[int, Any] = {id(y): dy}
        for made, tracked, pull in reversed(self.steps):
            if not any(id(x) in known for x in made):
                continue
            if any(id(x) not in known and x.element.is_float for x in made):
                raise InvalidProblemError(
                    "grad: got a function of several results of which some are not used, want all."
                )
            given = tuple(known[id(x)] for x in made if id(x) in known)
            found = pull(given[0] if len(made) == 1 else given)
            found = found if isinstance(found, (tuple, list)) else (found,)
            takers = [x for x in tracked if x.element.is_float]
            takers = takers if len(takers) >= len(found) else list(tracked)
            for x, gradient in zip(takers, found, strict=False):
                if x.element.is_float:
                    before, more = known.get(id(x)), _sum_to(gradient, x)
                    known[id(x)] = more if before is None else F.add(before, more)
        return [known.get(id(x)) for x in leaves]


def gradient_of(fn: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The function (dy, *arrays) -> gradients of the float arrays.

    Args:
        fn: A function of arrays with one result.
        name: What it is called in errors.
    """
    own = inspect.signature(fn).parameters.values()
    arrays = [p.name for p in own if p.kind is not p.KEYWORD_ONLY]
    if "dy" in arrays:
        raise InvalidProblemError(f"{name}.grad: got a parameter called dy, want another name: the gradient has one.")

    def gradient(dy: Traced, **given: Any) -> Any:
        trace, tape = dy.trace, Tape()
        trace.tape = tape
        try:
            y = fn(**given)
        finally:
            trace.tape = None
        if not isinstance(y, Traced):
            raise InvalidProblemError(f"{name}.grad: got several results, want one.")
        if dy.shape != y.shape:
            raise InvalidProblemError(f"{name}.grad: dy: got shape {dy.shape}, want {y.shape}, the result's.")
        names = [n for n in arrays if isinstance(given.get(n), Traced) and given[n].element.is_float]
        found = tape.gradients(y, dy, [given[n] for n in names])
        for n, x in zip(names, found, strict=True):
            if x is None:
                raise InvalidProblemError(
                    f"{name}.grad: got {n}, which has no gradient here, want it to be used, or not to be an argument."
                )
        return found[0] if len(found) == 1 else tuple(found)

    gradient.__name__ = f"{name}_grad"
    first = inspect.Parameter("dy", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    gradient.__signature__ = inspect.Signature([first, *own])  # type: ignore[attr-defined]
    return gradient
