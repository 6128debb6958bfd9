"""Which functions of bc.functional have a function of torch's or NumPy's beside them, and which."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from baracuda.prove.draws import Rule
from baracuda.prove.facts import collected, facts

# Rooms of torch whose functions have their room's name in front here.
_ROOMED = ("masked", "linalg", "special")


def _modules() -> dict[str, str]:
    from baracuda import _index

    return {n: m.rpartition(".")[2] for n, m in _index.FUNCTIONS.items()}


@cache
def torch_function(name: str) -> Callable[..., Any]:
    """Torch's function of this name, where bc.functional says that it looks for it.

    Raises:
        LookupError: If torch has none, and the family's facts give no formula.
    """
    torch = import_module("torch")
    formulas = collected("peers")
    if name in formulas:
        formula: Callable[..., Any] = formulas[name](torch)
        return formula
    room, _, inner = name.partition("_")
    places = [(torch.nn.functional, name), (torch, name), (torch.linalg, name), (torch.special, name)]
    if room in _ROOMED:
        places.insert(0, (import_module(f"torch.{room}"), inner))
    for place, called in places:
        if hasattr(place, called):
            found: Callable[..., Any] = getattr(place, called)
            return found
    raise LookupError(f"torch has no {name}: give it a formula, or a reason to be absent")


@cache
def with_peers() -> tuple[str, ...]:
    """Functions that have one in torch; not gradients, and not those that change their argument."""
    import baracuda.functional as F

    absent = collected("alone")
    names = (n for n in dir(F) if n not in absent and not n.endswith(("_backward", "_")))
    return tuple(n for n in names if _has_peer(n))


def _has_peer(name: str) -> bool:
    try:
        torch_function(name)
    except LookupError:
        return False
    return True


@cache
def families() -> dict[str, str]:
    """By function: its family."""
    from baracuda import _index

    return {n: m.split(".")[2] for n, m in _index.FUNCTIONS.items()}


@cache
def rules() -> dict[str, Rule]:
    """By function with a peer: how its calls are drawn.

    Raises:
        LookupError: If the family's facts do not say it.
    """
    modules, found = _modules(), {}
    for name in with_peers():
        said = facts()[families()[name]].sweep
        rule = said.get(name) or said.get(modules[name])
        if rule is None:
            raise LookupError(
                f"{families()[name]}_facts.py says under sweep neither how {name} is drawn nor {modules[name]}"
            )
        found[name] = rule
    return found
