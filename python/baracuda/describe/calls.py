"""Calls that a signature does not allow: their errors, and the other names under which arguments are taken."""

from __future__ import annotations

import functools
import inspect
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar, cast

from baracuda.describe.errors import Refusal, UsageError
from baracuda.describe.names import suggestion

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

F = TypeVar("F", bound="Callable[..., Any]")

# What NumPy calls these parameters; torch takes most of these names, too. The first parameter that a signature has is meant.
SPELLINGS: dict[str, tuple[str, ...]] = {
    "axis": ("dim", "dims"),
    "axes": ("dims", "dim"),
    "dim": ("axis", "dims"),
    "keepdims": ("keepdim",),
    "keepdim": ("keepdims",),
    "x": ("input",),
    "a": ("input",),
    "x1": ("input",),
    "x2": ("other",),
}


def spellings(names: Iterable[str]) -> dict[str, str]:
    """Other names that a signature with these parameters takes, with the parameters' own."""
    own = set(names)
    found = {}
    for other, meant in SPELLINGS.items():
        if other not in own and (mine := next((m for m in meant if m in own), None)):
            found[other] = mine
    return found


def parameter_names(fn: Callable[..., Any], count: int) -> list[str]:
    """What a function calls its positional parameters, so many of them."""
    found: list[str] = []
    with suppress(TypeError, ValueError):  # a function without a signature
        given = inspect.signature(fn).parameters.values()
        found = [p.name for p in given if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return (found + [f"input{i}" for i in range(len(found), count)])[:count]


def respelt(other: dict[str, str], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Keyword arguments by the parameters' own names, where nothing has that name already."""
    return {other[k] if k in other and other[k] not in kwargs else k: v for k, v in kwargs.items()}


# What arguments are called elsewhere, with what they may be here.
ELSEWHERE: dict[str, tuple[str, ...]] = {
    "causal": ("is_causal",),
    "ddof": ("correction",),
    "dtype": ("element",),
    "epsilon": ("eps",),
    "kernel": ("kernel_size",),
    "mask": ("attn_mask",),
    "momentum": ("beta1",),
    "name": ("op",),
    "size": ("shape",),
}


def meant(key: str, known: list[str]) -> str:
    """The argument that a name which is none was for: the end of a sentence, or nothing."""
    other = next((k for k in (*ELSEWHERE.get(key, ()), *SPELLINGS.get(key, ())) if k in known), None)
    return f"; did you mean {other!r}" if other else suggestion(key, known).rstrip("?")


def mistaken(
    name: str, signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any], *, respelt: bool = False
) -> UsageError:
    """The error for arguments that a signature does not take: names the first one that is wrong.

    Args:
        name: What is called.
        signature: What it takes.
        args: What it was given.
        kwargs: By name.
        respelt: It takes other names of its arguments, too.
    """
    parameters = signature.parameters
    positional = [p for p in parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    any_number = any(p.kind is p.VAR_POSITIONAL for p in parameters.values())
    any_name = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    taken = {p.name for p in positional[: len(args)]}
    by_name = {n for n, p in parameters.items() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    other = spellings(by_name) if respelt else {}
    for key in kwargs:
        mine = key if key in by_name else other.get(key, key)
        if mine in taken or (mine != key and mine in kwargs):
            return _error(name, signature, "unknown_argument", mine, f"got {mine!r} twice", "it once")
        if mine not in by_name and not any_name:
            said = f"got an unexpected keyword argument {key!r}{meant(key, sorted(by_name))}"
            return _error(name, signature, "unknown_argument", key, said, "none")
    if len(args) > len(positional) and not any_number:
        said = f"takes at most {len(positional)} positional arguments, got {len(args)}"
        return _error(name, signature, "unknown_argument", "", said, f"at most {len(positional)}")
    given = taken | {other.get(k, k) if k not in by_name else k for k in kwargs}
    needed = [
        p.name
        for p in parameters.values()
        if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) and p.name not in given
    ]
    lacking = needed[0] if needed else ""
    return _error(name, signature, "missing_argument", lacking, f"misses its argument {lacking!r}", "a value")


def _error(name: str, signature: inspect.Signature, code: str, field: str, said: str, want: str) -> UsageError:
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    asked = f"{name}{inspect.Signature(bare)}"
    text = f"{name}() {said}. It is called as {asked if len(asked) <= 400 else asked[:400] + ' ...'}."
    return UsageError(text, [Refusal(code, field, said, want)])


def _own_mistake(error: TypeError) -> bool:
    """Whether the call itself failed: then no frame of what was called has been entered."""
    trace = error.__traceback__
    return trace is not None and trace.tb_next is None and not isinstance(error, UsageError)


def signed(fn: F) -> F:
    """Makes calls of a public function that its signature does not allow raise UsageError."""
    signature, name = inspect.signature(fn), fn.__name__

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return fn(*args, **kwargs)
        except TypeError as error:
            if not _own_mistake(error):
                raise
            raise mistaken(name, signature, args, kwargs) from None

    return cast(F, call)


class Signed(type):
    """The class of public classes: calls of them that their signatures do not allow raise UsageError."""

    @property
    def __signature__(cls) -> inspect.Signature:
        """That of `__init__`, which `inspect` would not look for behind `__call__`."""
        _, *parameters = inspect.signature(cls.__init__).parameters.values()  # type: ignore[misc]
        return inspect.Signature(parameters)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """An instance."""
        try:
            return super().__call__(*args, **kwargs)
        except TypeError as error:
            if not _own_mistake(error):
                raise
            raise mistaken(cls.__name__, cls.__signature__, args, kwargs) from None
