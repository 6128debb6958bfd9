"""Generated expressions (tests/harness/expressions.py): fused, traced, compiled, saved and loaded, they have the bits of the calls
one after the other, and gradients have torch's numbers in f64.

    BARACUDA_EXPRESSIONS=20000 python -m pytest tests/test_expressions.py

Expressions change with the day. A failure names the number that `check` takes.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from expressions import ELEMENTS, Expression, drawn

import baracuda as bc
import baracuda.functional as F
from baracuda.graph.passes import PASSES
from conftest import FULL

COUNT = int(os.environ.get("BARACUDA_EXPRESSIONS", "2000" if FULL else "160"))
PARTS = 4
FIRST = int(os.environ.get("BARACUDA_TEST_SEED", datetime.now(UTC).strftime("%Y%m%d")))
SAVED = 8  # every so manieth is written to files


def numbers(x: Any) -> np.ndarray:
    return x.numpy() if isinstance(x, bc.Tensor) else np.asarray(x)


def differ(got: tuple[Any, ...], want: tuple[Any, ...]) -> list[str]:
    """Which results have another shape, element or other bits; NaN is NaN."""
    found = []
    for k, (a, b) in enumerate(zip(map(numbers, got), map(numbers, want), strict=True)):
        if a.shape != b.shape or a.dtype != b.dtype:
            found.append(f"result {k}: {a.dtype}{a.shape}, want {b.dtype}{b.shape}")
        elif a[a == a].tobytes() != b[b == b].tobytes() or not np.array_equal(a == a, b == b):
            found.append(f"result {k}: other bits")
    return found


def apart(got: tuple[Any, ...], want: tuple[Any, ...]) -> list[str]:
    """Which are not what torch has, up to the roundings of some functions of f64 one after the other."""
    found = []
    for k, (a, b) in enumerate(zip(map(numbers, got), want, strict=True)):
        scale = np.max(np.abs(b), initial=1.0, where=np.isfinite(b))
        if a.shape != b.shape or not np.allclose(a, b, rtol=0, atol=2**-24 * scale, equal_nan=True):
            found.append(f"{k}: {a.shape} {a.ravel()[:4]}, want {b.shape} {b.ravel()[:4]}")
    return found


def theirs(e: Expression) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
    """Results in f64, and the gradients of the sum of all of them by each argument."""
    arrays = [torch.tensor(a, dtype=torch.float64, requires_grad=True) for a in e.arrays]
    made = e.of(arrays, [torch.tensor(a, dtype=torch.float64) for a in e.captured], theirs=True)
    total = sum((y.sum() for y in made), torch.zeros((), dtype=torch.float64))
    found = torch.autograd.grad(total, arrays, allow_unused=True)
    slopes = (torch.zeros_like(a) if g is None else g for a, g in zip(arrays, found, strict=True))
    return tuple(y.detach().numpy() for y in made), tuple(g.numpy() for g in slopes)


def fused_slopes(e: Expression, given: list[Any]) -> tuple[Any, ...] | None:
    """Gradients of the fused function, of one result and of arguments that it uses; None where it says why not."""
    if len(e.results) != 1 or not set(range(len(given))) <= e.used:
        return None
    try:
        found = bc.expr.fuse(e.function).grad(F.ones_like(e.of(given)[0]), *given)
    except bc.InvalidProblemError as error:
        if "grad: " in str(error):  # views and functions that are not pulled back
            return None
        raise
    return found if isinstance(found, tuple) else (found,)


def check(number: int, folder: Path) -> list[str]:
    """What is wrong with the expression of this number."""
    rng = np.random.default_rng(number)
    element = ELEMENTS[number % len(ELEMENTS)]
    e = drawn(rng, element)
    arrays, held = [bc.asarray(a) for a in e.arrays], [bc.asarray(a) for a in e.captured]
    want = e.of(arrays, held)
    wrong = []

    def said(what: str, found: list[str]) -> None:
        wrong.extend(f"{number}, {what}: {f}\n  {e}" for f in found)

    if element not in ("f16", "bf16"):  # which are rounded less often
        made = bc.expr.fuse(e.function)(*arrays, *held)
        said("fused", differ(made if isinstance(made, tuple) else (made,), want))
    graph = bc.trace(lambda *xs: e.of(xs, held), *arrays)
    some = [name for name in PASSES if rng.random() < 0.7]
    plans = {
        "compiled": graph.compile(),
        f"compiled with {some}": graph.compile(passes=some, frozen=bool(rng.integers(2))),
    }
    if number % SAVED == 0 and all(graph._tracer.view_of(x) for x in graph.results):  # none is captured as it is
        plans["compiled"].save(folder)
        plans["loaded"] = bc.ExecutionPlan.load(folder)
    for what, plan in plans.items():
        for _ in range(2):
            said(what, differ(plan.run(*arrays), want))
    if element in ("f32", "f64", "f16", "bf16"):
        values, grads = graph.grad(graph.results, graph.tensors).compile().run(*arrays)
        said("with gradients", differ(values, want))
    if element == "f64":
        results, by_torch = theirs(e)
        said("results", apart(want, results))
        said("gradients", apart(grads, by_torch))
        if (found := fused_slopes(e, [*arrays, *held])) is not None:
            said("gradients of fused ones", apart(found[: len(arrays)], by_torch))
    return wrong


@pytest.mark.parametrize("part", range(PARTS))
def test_generated_expressions(part: int, tmp_path: Path) -> None:
    wrong = []
    for k in range(part, COUNT, PARTS):
        try:
            wrong += check(FIRST * 10**6 + k, tmp_path)
        except Exception as error:
            wrong.append(f"{FIRST * 10**6 + k}: {type(error).__name__}: {error}")
    assert not wrong, f"{len(wrong)}: " + "\n".join(wrong[:10])


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: F.mul(x, F.sum(x, -1).unsqueeze(-1)),
        lambda x: F.mul(F.sum(F.exp(x), -1, True), x).permute(1, 0),
        lambda x: F.sum(F.mul(x, F.sum(x, -1, True)).permute(1, 0), -1),
    ],
)
def test_gradients_through_views_of_what_waits_for_a_reduction(fn: Any) -> None:
    x, step = np.random.default_rng(0).standard_normal((4, 5)), 1e-6
    fused = bc.expr.fuse(fn)
    dy = np.random.default_rng(1).standard_normal(fused(x).shape)
    for place in np.ndindex(x.shape):
        moved = np.zeros_like(x)
        moved[place] = step
        slope = ((fused(x + moved) - fused(x - moved)) * dy).sum() / (2 * step)
        assert abs(fused.grad(dy, x)[place] - slope) < 1e-7
