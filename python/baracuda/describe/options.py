"""What options of bc.functional take, and the errors for what they do not take."""

from __future__ import annotations

import inspect
from operator import index
from typing import Any, TypeAlias

import numpy as np

from baracuda.describe.errors import InvalidProblemError, shown

Wanted: TypeAlias = tuple[str, tuple[type, ...]]  # in words, and as types

# What options with these annotations take.
_INT, _FLOAT = (int, np.integer), (int, float, np.integer, np.floating)
_NO_TENSOR = ". Pass a number, not a tensor or text."
_BOOL = ("a bool. Pass True or False.", (int, np.bool_))
_NUMBERS: dict[Any, Wanted] = {
    "int": ("an int" + _NO_TENSOR, _INT),
    "float": ("a number" + _NO_TENSOR, _FLOAT),
    "int | None": ("an int or None" + _NO_TENSOR, (*_INT, type(None))),
    "float | None": ("a number or None" + _NO_TENSOR, (*_FLOAT, type(None))),
    "float | str | None": ("a number, a name or None" + _NO_TENSOR, (*_FLOAT, str, type(None))),
}


def wanted(p: inspect.Parameter) -> Wanted | None:
    """What an option takes, in words and as types; None: what it is annotated with is not known here."""
    return _BOOL if isinstance(p.default, bool) else _NUMBERS.get(p.annotation)


def refuse_option(name: str, value: Any, want: Wanted | None) -> None:
    """Raises for an option of another type: arrays have no truth value, or one that nobody meant."""
    if want is not None and not isinstance(value, want[1]):
        raise InvalidProblemError(f"{name}: got {type(value).__name__}, want {want[0]}")


# What Python raises for values that a rule can do nothing with: no rule looks for all that may come.
UNUSABLE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


def unusable(name: str, error: Exception) -> InvalidProblemError:
    """The error for a function whose rule failed at what it was given."""
    why = shown(str(error)) if str(error) else "no reason"
    text = f"{name}(): got arguments that cannot be used ({type(error).__name__}: {why}), want those of its signature."
    return InvalidProblemError(f"{text} help(baracuda.functional.{name}) describes them.")


def refuse_types(name: str, signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Names the argument of a function that failed because it is of a type that nothing can be done with.

    Returns:
        Whether the arguments are those of the signature at all.
    """
    try:
        given = signature.bind(*args, **kwargs).arguments
    except TypeError:  # says what is missing or too much
        return False
    for key, value in given.items():
        p = signature.parameters[key]
        want = wanted(p)
        if p.annotation == "Any" and p.default is p.empty and (value is None or isinstance(value, str)):
            want = ("a tensor. Pass one.", ())
        refuse_option(f"{name}: {key}", value, want)
    return True


def integers(name: str, value: Any) -> tuple[int, ...]:
    """A list of integers as an option takes it."""
    try:
        return tuple(index(v) for v in value)
    except TypeError:
        got = (
            shown(value)
            if isinstance(value, (list, tuple, str, int, float))
            else f"an object of type {type(value).__name__}"
        )
        raise InvalidProblemError(f"{name}: got {got}, want a list of integers.") from None
