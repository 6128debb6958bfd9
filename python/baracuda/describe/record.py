"""Frozen dataclasses as JSON-ready values and back: answers and questions that leave the process."""

from __future__ import annotations

import json
import math
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from baracuda.describe.document import read_fields
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError, shown

T = TypeVar("T")


def to_plain(value: Any) -> Any:
    """A value as JSON has it: elements by name, records by field."""
    if isinstance(value, Element):
        return str(value)
    if is_dataclass(value):
        return {f.name: to_plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, tuple):
        return [to_plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has no infinities
    return value


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def from_plain(kind: Any, value: Any, where: str) -> Any:
    """The inverse of `to_plain` for a value annotated with `kind`.

    Raises:
        InvalidProblemError: For anything that `to_plain` did not write; `where` says in which field.
    """
    if isinstance(kind, UnionType):
        return None if value is None else from_plain(next(k for k in get_args(kind) if k is not NoneType), value, where)
    if get_origin(kind) is tuple:
        inner = get_args(kind)
        many = inner[-1] is Ellipsis
        if not isinstance(value, list) or not (many or len(value) == len(inner)):
            raise InvalidProblemError(f"{where}: got {shown(value)}, want a list.")
        kinds = inner[:1] * len(value) if many else inner
        return tuple(from_plain(k, v, f"{where}[{i}]") for i, (k, v) in enumerate(zip(kinds, value, strict=True)))
    if kind is Element:
        return Element.coerce(value, where)
    if is_dataclass(kind):
        return read_record(kind, value, where)  # type: ignore[arg-type]
    if kind is float and value in ("inf", "-inf", "nan"):
        return float(value)
    exact = (int, float) if kind is float else kind
    if not isinstance(value, exact) or isinstance(value, bool) is not (kind is bool):
        raise InvalidProblemError(f"{where}: got {shown(value)}, want {kind.__name__}.")
    try:
        return kind(value)
    except OverflowError:
        raise InvalidProblemError(f"{where}: got {shown(value)}, want a number that a double holds.") from None


def read_record(kind: type[T], value: Any, where: str) -> T:
    """A dataclass from its fields; those with defaults may be missing."""
    hints = _hints(kind)  # type: ignore[arg-type]
    given = read_fields(where, value, kind)
    try:
        return kind(**{name: from_plain(hints[name], v, f"{where}.{name}") for name, v in given.items()})
    except TypeError as error:
        raise InvalidProblemError(f"{where}: got {', '.join(given)}, want all fields ({error}).") from None


def read_object(text: str | bytes, where: str) -> dict[str, Any]:
    """A JSON document that is an object.

    Raises:
        InvalidProblemError: For anything else.
    """
    try:
        found = json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise InvalidProblemError(f"{where}: got text that is no JSON ({error}), want what to_json() gave.") from None
    if not isinstance(found, dict):
        raise InvalidProblemError(f"{where}: got {shown(found)}, want what to_json() gave.")
    return found
