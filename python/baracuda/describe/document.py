"""Reading descriptors from JSON that may hold anything: what is wrong is an InvalidProblemError that names it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from importlib import import_module
from typing import Any

from baracuda import _index
from baracuda.describe.errors import InvalidProblemError, shown


def read_fields(name: str, values: Any, kind: type) -> dict[str, Any]:
    """The fields of a dataclass, by name."""
    if not isinstance(values, Mapping) or not all(isinstance(key, str) for key in values):
        raise InvalidProblemError(f"{name}: got {shown(values)}, want fields by name.")
    known = {f.name for f in fields(kind)}
    for key in values:
        if key not in known:
            raise InvalidProblemError(f"{name}: got the field {shown(key)}, want some of {', '.join(sorted(known))}.")
    return dict(values)


def read_descriptor(values: Any) -> Any:
    """The descriptor that `sku.describe` wrote: its class is looked for among the public ones only."""
    name = values.get("class") if isinstance(values, Mapping) else None
    if not isinstance(name, str) or name not in _index.DESCRIPTORS:
        raise InvalidProblemError(f"descriptor.class: got {shown(name)}, want the name of a descriptor.")
    kind = getattr(import_module(_index.DESCRIPTORS[name]), name)
    return kind.from_dict(values.get("fields"))
