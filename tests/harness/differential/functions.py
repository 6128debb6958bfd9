"""Which functions are compared, with which of torch's, and why the others are not."""

from __future__ import annotations

import inspect
from functools import cache

import baracuda.functional as F
from baracuda import _index
from baracuda.prove.facts import collected, facts
from differential import shapes as s
from differential import shapes_data as d

# What the families' facts say (python/baracuda/prove/facts.py): how arguments of a module's functions are drawn,
DRAWN: dict[str, str] = collected("drawn")
# what torch has no function of this name for (prove/peers.py has the formula),
FORMULAS = frozenset(collected("peers"))
# whose functions are compared, with their gradients, on torch's own samples instead, in tests/test_opinfo.py,
SAMPLED = frozenset(m for found in facts().values() for m in found.sampled)
# and which are compared with nothing, and why.
ABSENT: dict[str, str] = collected("alone") | {
    n: "of SAMPLED" for n in dir(F) if not n.endswith("_backward") and _index.FUNCTIONS[n].rpartition(".")[2] in SAMPLED
}


@cache
def names() -> tuple[str, ...]:
    """The functions that are compared."""
    return tuple(n for n in dir(F) if n not in ABSENT and not n.endswith("_backward"))


def family(name: str) -> s.Family:
    drawn = DRAWN[_index.FUNCTIONS[name].rpartition(".")[2]]
    found: s.Family = getattr(s, drawn, None) or getattr(d, drawn)
    return found


def parameters(name: str) -> dict[str, inspect.Parameter]:
    return dict(
        getattr(F, name).__signature__.parameters
        if hasattr(getattr(F, name), "__signature__")
        else inspect.signature(getattr(F, name)).parameters
    )


def has_gradient(name: str) -> bool:
    return getattr(getattr(F, name), "vjp_rule", None) is not None
