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
        outputs = [x for x in graph.results if x.element.is_float]
        of = zip(graph.tensors, graph.leaf_names, strict=True)
        wrt = [x for x, leaf in of if x.element.is_float and leaf.split("[")[0] not in function.constants]
        _, got = graph.grad(outputs, wrt).compile().run(*args, **kwargs)
        for a, b in zip(got, want, strict=False):  # the last ones may be constants, as targets are
            if b is not None:
                assert tuple(a.shape) == tuple(b.shape)
                np.testing.assert_array_equal(numbers(a), numbers(b))
        if (done := done + 1) == CALLS:
            return
    assert done, "no call was accepted"


def test_gradients_of_views_that_lie_apart_are_written_in_their_place() -> None:
    """Parts that cover a tensor need no zeros and no sums; those that overlap, or leave something out, get the same numbers."""
    x = RNG.normal(size=(6, 8)).astype(np.float32)

    def of(*parts: Any) -> Any:
        def f(x: Any) -> Any:
            y = F.mul(x, 2.0)
            return F.sum(F.cat([F.square(y[part]).reshape(-1) for part in parts], 0))

        return f

    left, right = (slice(None), slice(0, 4)), (slice(None), slice(4, None))
    for parts, fills, adds in (  # a fill is the loss's own gradient
        ((left, right), 1, 0),
        ((left,), 2, 0),
        ((left, right, (slice(1, 3), slice(2, 6))), 2, 3),
        (((slice(None, None, 2),), (slice(1, None, 2),)), 1, 0),
        (((0,), (slice(None),)), 2, 2),
    ):
        graph = bc.trace(of(*parts), x)
        graph = graph.grad(graph.results, graph.tensors)
        _, (dx,) = graph.compile().run(x)
        want = np.zeros_like(x)
        for part in parts:
            want[part] += 8 * x[part]
        np.testing.assert_allclose(dx, want, rtol=1e-6)
        ops = [launch.plan.descriptor.op for node in graph.nodes for launch in node.launches]
        assert (ops.count("fill"), ops.count("add")) == (fills, adds), ops
