"""What `pull` of bc.vjp refuses: too few and too many gradients, other shapes, and what is no tensor, by name for every function."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import baracuda as bc
import baracuda.functional as F
from baracuda.describe.elements import Element
from harness.differential import calls, functions

NAMES = [name for name in functions.names() if getattr(getattr(F, name), "vjp_rule", None) is not None]
CALLS, TRIES = 1, 8


def _pulled(name: str, seed: int) -> tuple[Any, Any] | None:
    """A random call of NumPy arrays, pulled; None where the function refuses it."""
    made = calls.make(name, (seed,))
    positional, keywords = made.arguments(calls.ours(made))
    keywords.pop("out", None)
    try:
        y, pull = bc.vjp(getattr(F, name), *positional, **keywords)
    except bc.BaracudaError:
        return None
    return y, pull


def _wrong(ones: list[Any]) -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    """What stands in the place of gradients `ones`."""
    several, first = len(ones) > 1, ones[0]
    yield "none", (), {}
    yield "too many", (*ones, first), {}
    yield "a tuple of too many", ((*ones, first),), {}
    yield "a name", (), {"dy": first}
    yield "a name beside", (tuple(ones) if several else first,), {"dy": first}
    if several:
        yield "too few", (tuple(ones[:-1]),), {}
        yield "one of several", (first,), {}
    for at in range(len(ones)):
        for what, other in (
            ("None", None), ("a number", 1.5), ("text", "dy"), ("a list", [1.0]), ("an object", object()),
            ("integers", np.ones(first.shape, np.int64)), ("bools", np.ones(first.shape, bool)),
            ("complex", np.ones(first.shape, np.complex64)), ("a longer one", np.ones((*first.shape, 2), np.float32)),
            ("another size", np.ones((*first.shape[:-1], first.shape[-1] + 1) if first.shape else (2,), np.float32)),
            ("text in an array", np.array(["a"])), ("a type", np.float32),
        ):  # fmt: skip
            given = tuple(other if i == at else one for i, one in enumerate(ones))
            yield f"{what} as number {at}", (given if several else given[0],), {}


@pytest.mark.parametrize("name", NAMES)
def test_wrong_gradients_are_refused_by_name(name: str) -> None:
    found, escaped = 0, []
    for seed in range(TRIES):
        made = _pulled(name, seed)
        if made is None or found == CALLS:
            continue
        y, pull = made
        listed = [
            x if isinstance(x, np.ndarray) else bc.asarray(x).numpy()
            for x in (y if isinstance(y, (tuple, list)) else (y,))
        ]
        ones = [np.ones(x.shape, x.dtype) for x in listed if Element.coerce(x.dtype).is_float]
        if not ones:
            continue
        found += 1
        for what, positional, named in _wrong(ones):
            try:
                pull(*positional, **named)
                escaped.append(f"{what}: taken")
            except bc.InvalidProblemError as error:
                if f"pull of {name.rpartition('.')[2]}" not in str(
                    error
                ) and f"pull of {getattr(F, name).__name__}" not in str(error):
                    escaped.append(f"{what}: {error}")
            except Exception as error:
                escaped.append(f"{what}: {type(error).__name__}: {error}")
        try:
            pull(ones[0] if len(ones) == 1 else tuple(ones))
            pull(*ones)
        except bc.UnsupportedError:  # the gradient by an integer
            pass
    assert not escaped, "\n".join(escaped[:5])
