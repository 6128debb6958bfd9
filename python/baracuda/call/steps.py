"""Functions that have no row of their own in the SKU table: of which ops' rows they are made."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
Steps = tuple[tuple[str, str], ...]  # ops and directions


def made_of(steps: str) -> Callable[[F], F]:
    """Declares the steps of a function whose name is no op's; tests/test_steps.py compares them with what runs.

    Args:
        steps: Names of ops, separated by spaces; with "_backward" behind the op's where it is its gradient.
    """

    def mark(fn: F) -> F:
        fn.steps = steps  # type: ignore[attr-defined]
        return fn

    return mark


def declared_steps(name: str, fn: Any, table: Container[tuple[str, str]]) -> Steps:
    """The steps of the function `name`: declared ones, or what its name says; empty for neither.

    Args:
        name: What it is called in bc.functional.
        fn: The function, which may be called otherwise itself.
        table: Ops and directions of the SKU table.
    """
    if words := getattr(fn, "steps", "").split():
        return tuple(sorted(_step(word, table) for word in words))
    for called in (name, fn.__name__):
        for op in (called, called.removesuffix("_"), called.removesuffix("_forward")):
            if (op, "forward") in table:
                return ((op, "forward"),)
        if (op := called.removesuffix("_backward")) != called and (op, "backward") in table:
            return ((op, "backward"),)
    return ()


def _step(word: str, table: Container[tuple[str, str]]) -> tuple[str, str]:
    op = word.removesuffix("_backward")
    found = (op, "backward") if op != word else (word, "forward")
    assert found in table, f"{word} is no op of the SKU table"
    return found
