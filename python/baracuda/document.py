"""Reading plans and descriptors from JSON that may hold anything: what is wrong is an InvalidProblemError that names it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from importlib import import_module
from typing import Any

from baracuda import _index
from baracuda.errors import InvalidProblemError, shown
from baracuda.sku import SCHEMA

# What a plan's document holds.
_PARTS: dict[str, type | tuple[type, ...]] = {
    "descriptor": dict,
    "sku": str,
    "device": str,
    "contiguous": bool,
    "alignment": int,
    "strides": dict,
    "preference": dict,
}


def read_document(data: Any) -> dict[str, Any]:
    """The parts of a plan's document, each of its type.

    Raises:
        InvalidProblemError: For anything else, and for documents of another schema.
    """
    try:
        document = json.loads(data)
    except (ValueError, TypeError, RecursionError) as e:
        raise InvalidProblemError(f"from_bytes: got data that is no plan ({e}), want what to_bytes() gave.") from None
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema != SCHEMA or isinstance(schema, bool):
        raise InvalidProblemError(f"schema: got {shown(schema)}, want {SCHEMA}. Make the plan anew with select().")
    for name, kind in _PARTS.items():
        if not isinstance(value := document.get(name), kind) or (kind is int and isinstance(value, bool)):
            raise InvalidProblemError(f"from_bytes: {name}: got {shown(value)}, want what to_bytes() gave.")
    return document  # type: ignore[no-any-return]


def read_fields(name: str, values: Any, kind: type) -> dict[str, Any]:
    """The fields of a dataclass, by name."""
    if not isinstance(values, Mapping) or not all(isinstance(key, str) for key in values):
        raise InvalidProblemError(f"{name}: got {shown(values)}, want fields by name.")
    known = {f.name for f in fields(kind)}
    for key in values:
        if key not in known:
            raise InvalidProblemError(f"{name}: got the field {shown(key)}, want some of {', '.join(sorted(known))}.")
    return dict(values)


def read_descriptor(values: Mapping[str, Any]) -> Any:
    """The descriptor that `sku.describe` wrote: its class is looked for in the modules of ops only."""
    from baracuda.spec import Descriptor

    module, name = values.get("module"), values.get("class")
    if not isinstance(module, str) or module not in {*_index.DESCRIPTORS.values(), *_index.OPS.values()}:
        raise InvalidProblemError(f"descriptor.module: got {shown(module)}, want a module of ops.")
    kind = getattr(import_module(module), name, None) if isinstance(name, str) else None
    if not isinstance(kind, type) or not issubclass(kind, Descriptor):
        raise InvalidProblemError(f"descriptor.class: got {shown(name)}, want a descriptor of {module}.")
    return kind.from_dict(values.get("fields"))  # type: ignore[arg-type]
