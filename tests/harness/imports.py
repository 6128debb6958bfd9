"""One op, and whether it takes a tensor: for the tests of importing tensors."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import baracuda as bc

N = 6
PLAN = bc.plan(bc.GatedActivationDescriptor("swiglu", (4, 2 * N)))
BF16 = bc.plan(bc.GatedActivationDescriptor("swiglu", (4, 2 * N), element="bf16"))
X = np.random.default_rng(1).normal(size=(4, 2 * N)).astype(np.float32)


def swiglu(x: np.ndarray) -> np.ndarray:
    a, b = np.split(np.asarray(x, np.float64), 2, axis=-1)
    return a * b / (1 + np.exp(-b))


WANT = swiglu(X)


def out() -> np.ndarray:
    return np.full((4, N), 7, np.float32)


def accepted(x: Any, again: Callable[[], Any] | None = None) -> None:
    """By every door; `again` makes another one of what can be used once only."""
    y = out()
    assert PLAN.can_implement(x, y)
    assert PLAN.run(x, y) is y
    np.testing.assert_allclose(y, WANT, rtol=1e-5)
    z = out()
    PLAN.bind(again() if again else x, z)()
    assert z.tobytes() == y.tobytes()


def refused(code: str, x: Any, *, plan: Any = PLAN, cls: type[Exception] = bc.InvalidProblemError) -> bc.BaracudaError:
    y = out() if plan is PLAN else np.zeros((4, N), ml_dtypes.bfloat16)
    before = y.tobytes()
    for call in (plan.run, plan.bind):
        given = x() if isinstance(x, FunctionType) else x  # something that can be used once only
        with pytest.raises(cls) as caught:
            call(given, y)
        error = caught.value
        assert isinstance(error, bc.BaracudaError)
        assert error.code == code, f"{error}"
        assert error.refusals[0].field == "x"
        assert error.refusals[0].got and error.refusals[0].want and error.refusals[0].hint
        assert "x: got" in str(error)
    assert y.tobytes() == before
    return error


def refused_as_output(code: str, y: Any, cls: type[Exception] = bc.InvalidProblemError) -> None:
    with pytest.raises(cls) as caught:
        PLAN.run(X, y)
    assert isinstance(caught.value, bc.BaracudaError)
    assert (caught.value.code, caught.value.refusals[0].field) == (code, "y")
