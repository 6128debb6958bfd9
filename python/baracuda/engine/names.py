"""Names of other systems: tables of rows, each with a system's own argument list and what it is of bc.functional."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from operator import index
from typing import Any, ClassVar

import numpy as np

from baracuda import _core
from baracuda.describe.calls import mistaken
from baracuda.describe.errors import InvalidProblemError, shown
from baracuda.describe.names import suggestion

# A function's name in bc.functional, or what takes the engine (or another owner) and the arguments.
Made = str | Callable[..., Any]
_KINDS = "#$*~!&"


@dataclass(frozen=True, slots=True)
class Name:
    """One name of another system.

    Attributes:
        arguments: Its arguments as that system has them. What stands behind a word: "?" that it may be left out, "#" a whole
            number of at least 0, "$" any whole number, "*" several, "~" a number, "!" True or False, "&" a list. A last one
            "dst?" takes the result.
        made: What is called with them.
        of: What that is, for the documents; by default the function of bc.functional.
        differs: What is not as in that system.
    """

    arguments: str
    made: Made
    of: str = ""
    differs: str = ""

    @property
    def words(self) -> list[str]:
        """The arguments' names."""
        return [w.rstrip("?" + _KINDS) for w in self.arguments.split()]

    def shown(self, name: str) -> str:
        """The call, as `Sum(a, axis, keepDims?, dst?)`."""
        marked = zip(self.words, self.arguments.split(), strict=True)
        return f"{name}({', '.join(word + '?' * ('?' in w) for word, w in marked)})"


class Named:
    """An object by the names of another system."""

    system: ClassVar[str]
    names: ClassVar[Mapping[str, Name]]
    absent: ClassVar[Mapping[str, str]] = {}  # names of the system that are not here, and what is there instead

    def __init__(self, owner: Any) -> None:
        self._owner = owner

    def __init_subclass__(cls) -> None:
        for name, row in cls.__dict__.get("names", {}).items():
            setattr(cls, name, _method(cls.system, name, row))

    def _entered(self, name: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Arguments of a call that begins: without what says whether it may."""
        return args

    def __getattr__(self, name: str) -> Any:
        if name in self.absent:
            raise AttributeError(f"{self.system}: got {name!r}, which is not here; there is {self.absent[name]}")
        raise AttributeError(f"{self.system}: got {name!r}, want one of its names{suggestion(name, list(self.names))}")

    def __dir__(self) -> list[str]:
        return sorted(self.names)


def _method(system: str, name: str, row: Name) -> Callable[..., Any]:
    marked = row.arguments.split()
    words = row.words
    least = sum("?" not in w for w in marked)
    kind, empty = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.empty
    parameters = [
        inspect.Parameter(n, kind, default=None if "?" in w else empty) for n, w in zip(words, marked, strict=True)
    ]
    signature = inspect.Signature(parameters)
    checks = [(i, mark, "?" in w) for i, w in enumerate(marked) for mark in w if mark in _KINDS]
    into = len(words) - 1 if row.arguments.endswith("dst?") else None
    writes = not isinstance(row.made, str) and "out" in inspect.signature(row.made).parameters

    def method(self: Named, *args: Any, **kwargs: Any) -> Any:
        args = self._entered(name, args)
        if kwargs or not least <= len(args) <= len(words):
            try:
                bound = signature.bind(*args, **kwargs)
            except TypeError:
                raise mistaken(f"{system}.{name}", signature, args, kwargs) from None
            bound.apply_defaults()
            args = bound.args
        for i, mark, optional in checks:
            if i < len(args) and not (optional and args[i] is None):
                args = (*args[:i], _checked(mark, f"{system}.{name}: {words[i]}", args[i]), *args[i + 1 :])
        dst, args = (args[into], args[:into]) if into is not None and len(args) > into else (None, args)
        if isinstance(row.made, str):
            fn = getattr(self._owner.F, row.made)
            return _into(self._owner, fn, "out" in fn.__signature__.parameters, args, dst)
        return _into(self._owner, row.made, writes, (self._owner, *args), dst)

    method.__name__, method.__qualname__ = name, f"{system}.{name}"
    method.__signature__ = inspect.Signature([inspect.Parameter("self", kind), *parameters])  # type: ignore[attr-defined]
    method.__doc__ = f"{row.shown(name)}: {described(row)}." + f" Differs: {row.differs}." * bool(row.differs)
    return method


def _checked(kind: str, what: str, x: Any) -> Any:
    """An argument of a kind, whole numbers as ints.

    Raises:
        InvalidProblemError: It is of another one.
    """
    if kind == "*":
        if not isinstance(x, (list, tuple)):
            raise InvalidProblemError(f"{what}: got {shown(x)}, want a list of whole numbers.")
        return tuple(_checked("$", what, n) for n in x)
    wants = {
        "&": "a list",
        "!": "True or False",
        "~": "a number",
        "#": "a whole number of at least 0",
        "$": "a whole number",
    }
    with suppress(TypeError, ValueError, OverflowError):
        if kind == "&" and isinstance(x, (list, tuple, dict)):
            return x
        if kind == "!" and (isinstance(x, (bool, np.bool_)) or (isinstance(x, int) and x in (0, 1))):
            return bool(x)
        if kind == "~" and not isinstance(x, (bool, str)) and np.ndim(x) == 0:
            float(x)
            return x
        if kind in "#$" and not isinstance(x, (bool, np.bool_)) and (kind == "$" or index(x) >= 0):
            return index(x)
    raise InvalidProblemError(f"{what}: got {shown(x)}, want {wants[kind]}.")


def described(row: Name) -> str:
    """What a name is."""
    return row.of or f"`F.{row.made}`"


def _into(owner: Any, fn: Callable[..., Any], writes: bool, args: tuple[Any, ...], dst: Any) -> Any:
    """The result, in `dst` where one is given: at once, or by a copy of a function's that makes its result itself."""
    if dst is None:
        return fn(*args)
    return fn(*args, out=dst) if writes else owner.F.copy(fn(*args), out=dst)


def tensor(x: Any) -> Any:
    """A bc.Tensor of the same memory."""
    return x if isinstance(x, _core.Tensor) else _core.borrow(x)


def axis_of(name: str, axis: int, rank: int) -> int:
    """An axis of a tensor.

    Raises:
        InvalidProblemError: It has no such one.
    """
    if not -rank <= axis < rank:
        raise InvalidProblemError(f"{name}: got axis {axis}, want one of {rank}.")
    return axis


def sized(name: str, x: Any, *shape: int) -> Any:
    """A buffer of any shape as a tensor of this one.

    Raises:
        InvalidProblemError: It has another number of elements.
    """
    seen = tensor(x)
    numel = 1
    for n in shape:
        numel *= n
    if seen.numel != numel:
        sizes = " x ".join(map(str, shape))
        raise InvalidProblemError(f"{name}: got {seen.numel} elements {tuple(seen.shape)}, want {sizes}.")
    return seen.reshape(*shape)


def filled(e: Any, x: Any, value: Any) -> Any:
    """In place."""
    from baracuda.choose.plan import plan
    from baracuda.ops.layout.layout import FillDescriptor

    target = tensor(x)
    plan(FillDescriptor(target.shape, target.element), e.device).run(value=value, y=target)
    return x


def elementwise(e: Any, inputs: Any, numel: int | None, f: Callable[[list[Any]], Any], out: Any = None) -> Any:
    """One kernel of an expression of all inputs, which `f` is given as a list; see bc.expr.fuse."""
    from baracuda.expr import fuse

    sizes = [tensor(x).numel for x in inputs]
    if numel is not None and any(n != numel for n in sizes):
        raise InvalidProblemError(f"elementwise: got inputs of {sizes}, want {numel} each.")

    def listed(**arrays: Any) -> Any:
        return f(list(arrays.values()))

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    listed.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(f"x{i}", kind) for i in range(len(sizes))]
    )
    with e:
        return fuse(listed)(*map(tensor, inputs), **({} if out is None else {"out": out}))
