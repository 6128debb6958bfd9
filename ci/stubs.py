"""The texts of functional.pyi, every function with the types of its parameters, and of _descriptors.pyi."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from math import isfinite
from types import ModuleType
from typing import Any

HEAD = '''"""Written by ci/generate.py."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, Literal, ParamSpec, Protocol, SupportsIndex, TypeAlias

import numpy as np

from baracuda._core import Tensor as _Tensor
from baracuda.memory.generator import Generator as _Generator

class Array(Protocol):
    """What can be a tensor: an array of NumPy, torch or JAX, a bc.Tensor, or anything else that speaks DLPack."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_Whole: TypeAlias = SupportsIndex
_Number: TypeAlias = float | np.integer[Any] | np.floating[Any]
_Wholes: TypeAlias = SupportsIndex | Sequence[SupportsIndex]
_Reduction: TypeAlias = Literal["none", "mean", "sum", "batchmean"]
_P = ParamSpec("_P")

class _Function(Generic[_P]):
    __name__: str
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> Any: ...
    def infer(self, *args: Any, **kwargs: Any) -> Any:
        r"""Shapes and elements of the results, as `bc.TensorSpec`s, for arguments that need have no data."""

def _function(fn: Callable[_P, Any]) -> _Function[_P]: ...
'''

# What options are annotated with in the rules, as a caller may give it.
OPTIONS = {
    "int": "_Whole", "int | None": "_Whole | None", "float": "_Number", "float | None": "_Number | None", "bool": "bool",
    "bool | None": "bool | None", "str": "str", "str | None": "str | None", "float | str | None": "_Number | str | None",
    "Axes": "_Wholes", "Axes | None": "_Wholes | None", "Axes | str": "_Wholes | str", "Pair": "_Wholes", "Sizes": "_Wholes",
    "Number": "_Number | None", "tuple[int, int]": "Sequence[_Whole]", "tuple[int, ...] | int": "_Wholes",
    "Sequence[float]": "Sequence[_Number]",
}  # fmt: skip


def default_text(value: object) -> str:
    literal = value is None or isinstance(value, (bool, int, str)) or (isinstance(value, float) and isfinite(value))
    return repr(value) if literal else "..."


def type_of(p: inspect.Parameter, kind: str, annotation: Any, tensors: int) -> str:
    """The type that a caller gives a parameter.

    Args:
        p: Of the function's signature.
        kind: How the engine reads it: "tensor", "scalar", "attribute", "out", "list" or "rest".
        annotation: What the function's rule says.
        tensors: How many parameters are tensors: a number may stand for one of several.
    """
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "Any")
    if kind in ("tensor", "scalar", "out"):
        found = "Array" if kind == "out" or (kind == "tensor" and tensors == 1) else "Array | _Number"
        return found + (" | None" if p.default is None else "")
    if kind == "list":
        return "Sequence[Array]"
    if kind == "rest":
        return "Array | Sequence[Array]"
    if p.name == "reduction" and text == "str":
        return "_Reduction"
    if p.name == "generator":
        return "_Generator | None"
    if isinstance(p.default, bool):
        return "bool"
    found = OPTIONS.get(text, "Any")
    return found + (" | None" if p.default is None and found not in ("Any",) and "None" not in found else "")


def parameters(value: Any) -> list[tuple[inspect.Parameter, str]]:
    """Those of a function, with their types."""
    from baracuda import _core

    shown = list(inspect.signature(value).parameters.values())
    miss = getattr(value, "miss", None)
    if miss is None:  # a plain Python function, whose tensors are not declared
        return [(p, type_of(p, "attribute", p.annotation, 0)) for p in shown]
    kinds = {name: _core.param_kinds[kind] for name, kind, *_ in miss.params}
    rule = inspect.signature(miss.rule).parameters
    tensors = sum(kind == "tensor" for kind in kinds.values())
    return [
        (p, type_of(p, kinds[p.name], rule[p.name].annotation if p.name in rule else "Any", tensors)) for p in shown
    ]


def function_lines(name: str, value: Any) -> list[str]:
    parts, starred = [], False
    for p, kind in parameters(value):
        if p.kind is p.KEYWORD_ONLY and not starred:
            parts.append("*")
            starred = True
        starred = starred or p.kind is p.VAR_POSITIONAL
        prefix = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        parts.append(f"{prefix}{p.name}: {kind}" + ("" if p.default is p.empty else f" = {default_text(p.default)}"))
    summary = inspect.cleandoc(getattr(value, "_summary", value.__doc__)).partition("\n")[0]
    return ["@_function", f"def {name}({', '.join(parts)}) -> Any:", f'    r"""{summary}"""']


def room_lines() -> list[str]:
    """The functions of F.linalg and its kin; a class cannot name a function of the module by its own name."""
    from baracuda.call.rooms import ROOMS

    lines = []
    for room, names in ROOMS.items():
        lines += ["", *(f"_{room}_{name} = {own}" for name, own in sorted(names.items())), f"class {room}:"]
        lines += [f"    {name} = _{room}_{name}" for name in sorted(names)]
    return lines


def stub_text(modules: list[ModuleType], is_functional: Callable[..., bool]) -> str:
    lines = [HEAD]
    for module in modules:
        for name, value in sorted(vars(module).items()):
            if not name.startswith("_") and is_functional(value, module):
                lines += function_lines(name, value)
    return "\n".join([*lines, *room_lines()]) + "\n"


DESCRIPTORS_HEAD = '''"""Written by ci/generate.py: descriptors with what their fields are made from, and plans."""

from collections.abc import Sequence
from enum import Enum
from typing import Any, TypeAlias

from baracuda.choose.plan import Plan as _Plan
from baracuda.describe.dims import Dim
'''
DESCRIPTORS_TYPES = """
_Size: TypeAlias = int | Dim
_Shape: TypeAlias = int | Sequence[int | Dim]
_Ints: TypeAlias = int | Sequence[int]
_Mode: TypeAlias = str | Enum
_Element: TypeAlias = Any  # its name, or the dtype of any framework
"""
FIELDS = {
    "Element": "_Element", "Element | None": "_Element", "Shape": "_Shape", "Shape | None": "_Shape | None", "Size": "_Size",
    "Size | None": "_Size | None", "bool": "bool", "int": "int", "int | None": "int | None", "float": "float", "str": "str",
    "tuple[int, ...]": "_Ints", "tuple[int, ...] | None": "_Ints | None", "tuple[Shape, ...]": "Sequence[_Shape]",
    "tuple[Element, ...]": "Sequence[_Element]",
}  # fmt: skip


def descriptors_text() -> str:
    """What `baracuda` has by the names of descriptors and plans, which are imported and made when they are asked for."""
    from baracuda import _index

    modules = {m: f"_{m.rpartition('.')[2]}" for m in sorted(set(_index.DESCRIPTORS.values()))}
    lines = [
        DESCRIPTORS_HEAD.rstrip(),
        *(f"from {m.rpartition('.')[0]} import {n[1:]} as {n}" for m, n in modules.items()),
    ]
    lines.append(DESCRIPTORS_TYPES)
    for name, module in sorted(_index.DESCRIPTORS.items()):
        found = getattr(import_module(module), name)
        given = ["self"]
        for p in list(inspect.signature(found.__init__).parameters.values())[1:]:
            kind = FIELDS.get(p.annotation, "_Mode")
            given.append(f"{p.name}: {kind}" + ("" if p.default is p.empty else " = ..."))
        summary = inspect.cleandoc(found.__doc__ or "").partition("\n")[0]
        lines += [
            f"class {name}({modules[module]}.{name}):",
            f'    r"""{summary}"""',
            f"    def __init__({', '.join(given)}) -> None: ...",
        ]
        if name.endswith("Descriptor"):
            lines.append(f"class {name.removesuffix('Descriptor')}Plan(_Plan): ...")
    return "\n".join(lines) + "\n"
