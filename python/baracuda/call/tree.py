"""Arguments and results nested in tuples, lists, dicts and dataclasses: taken apart into tensors, and put together again."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any


@dataclass(slots=True)
class Tree:
    """How values are nested, with tensors as numbers of a flat list; anything else as it is."""

    kind: Any  # "leaf", "constant", dict, or the class of a list, a tuple or a dataclass
    children: list[Tree] = field(default_factory=list)
    keys: list[Any] = field(default_factory=list)  # of dicts and dataclasses
    value: Any = None  # of a leaf its number, of a constant what it is, of a dataclass the instance

    def build(self, flat: list[Any]) -> Any:
        """The nested thing, of these tensors."""
        if self.kind == "leaf":
            return flat[self.value]
        if self.kind == "constant":
            return self.value
        parts = [child.build(flat) for child in self.children]
        if self.kind is dict:
            return dict(zip(self.keys, parts, strict=True))
        if self.value is not None:
            made = copy.copy(self.value)
            for name, part in zip(self.keys, parts, strict=True):
                object.__setattr__(made, name, part)  # frozen ones, too
            return made
        named = hasattr(self.kind, "_fields")
        return self.kind(*parts) if named else self.kind(parts)

    def counted_from(self, first: int) -> Tree:
        """With the numbers of tensors counted from another one."""
        if self.kind == "leaf":
            return Tree("leaf", value=self.value + first)
        return Tree(self.kind, [child.counted_from(first) for child in self.children], self.keys, self.value)


def parts_of(value: Any) -> tuple[list[Any], list[Any]] | None:
    """What a nested value consists of, and the keys of that where it has some; None of what is not nested."""
    if isinstance(value, dict):
        return list(value.values()), list(value)
    if isinstance(value, (list, tuple)):
        return list(value), []
    if is_dataclass(value) and not isinstance(value, type):
        keys = [f.name for f in fields(value)]
        return [getattr(value, key) for key in keys], keys
    return None


def flatten(value: Any, is_leaf: Callable[[Any], bool], flat: list[Any], names: list[str], name: str) -> Tree:
    """Takes a nested thing apart: leaves are appended to `flat`, and what they are called to `names`."""
    if is_leaf(value):
        flat.append(value)
        names.append(name)
        return Tree("leaf", value=len(flat) - 1)
    found = parts_of(value)
    if found is None:
        return Tree("constant", value=value)
    parts, keys = found
    called = [f"{name}.{k}" for k in keys] or [f"{name}[{i}]" for i in range(len(parts))]
    children = [flatten(v, is_leaf, flat, names, n) for v, n in zip(parts, called, strict=True)]
    if isinstance(value, (dict, list, tuple)):
        return Tree(dict if isinstance(value, dict) else type(value), children, keys)
    if all(child.kind == "constant" for child in children):  # a descriptor, say: compared as it is
        return Tree("constant", value=value)
    return Tree(type(value), children, keys, value)
