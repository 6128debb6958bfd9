"""graph.grad of every function that has a gradient gives the bits of its pull."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from differential import calls, functions

import baracuda as bc
import baracuda.functional as F
from baracuda.describe.elements import Element
from conftest import FULL, SEED
from test_graph import RNG, dense, numbers, own_numbers  # noqa: F401
from test_infer import NEEDS_DATA

CALLS = 10 if FULL else 2
NAMES = sorted(n for n in {*functions.names()} - NEEDS_DATA if getattr(getattr(F, n), "vjp_rule", None) is not None)


def is_float(x: Any) -> bool:
    return Element.coerce(bc.from_dlpack(x).element).is_float


def flat(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [x for v in value for x in flat(v)]
    return [value] if hasattr(value, "__dlpack__") and not isinstance(value, np.generic) else []


def pulled(function: Any, args: Any, kwargs: Any) -> list[Any]:
    """The gradients of the sum of all results."""
    y, pull = bc.vjp(function, *args, **kwargs)
    dys = tuple(F.ones_like(x) for x in flat(y) if is_float(x))
    if not dys:
        raise TypeError("results of whole numbers")
    found = pull(dys[0] if len(dys) == 1 else dys)
    return [*found] if isinstance(found, (list, tuple)) else [found]


def of_floats(want: list[Any], args: Any, kwargs: Any) -> list[Any]:
    """Pulls give gradients of whole numbers, too, where these were computed with as floats: without them."""
    given = flat([*args, *kwargs.values()])
    if len(want) <= sum(map(is_float, given)):
        return want
    whole = [x for x in given if Element.coerce(bc.from_dlpack(x).element) is not Element.BOOL]
    taken = whole if len(whole) >= len(want) else given
    return [g for x, g in zip(taken, want, strict=False) if is_float(x)]


@pytest.mark.parametrize("name", NAMES)
def test_gradients_of_every_function(name: str) -> None:
    function, done = getattr(F, name), 0
    for number in range(15 * CALLS):
        call = calls.make(name, (SEED, number))
        args, kwargs = call.arguments(calls.ours(call))
        if any(isinstance(x, np.generic) for x in (*args, *kwargs.values())):
            continue  # a number of NumPy's
        args, kwargs = dense(args), {k: dense(v) for k, v in kwargs.items() if k != "out"}
        try:
            want = of_floats(pulled(function, args, kwargs), args, kwargs)
        except (bc.BaracudaError, TypeError):
            continue
        graph = bc.trace(function, *args, **kwargs)
        outputs, wrt = ([x for x in of if x.element.is_float] for of in (graph.results, graph.tensors))
        _, got = graph.grad(outputs, wrt).compile().run(*args, **kwargs)
        for a, b in zip(got, want, strict=False):  # the last ones may be constants, as targets are
            if b is not None:
                assert tuple(a.shape) == tuple(b.shape)
                np.testing.assert_array_equal(numbers(a), numbers(b))
        if (done := done + 1) == CALLS:
            return
    assert done, "no call was accepted"
