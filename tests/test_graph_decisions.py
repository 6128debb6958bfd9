"""Sizes that are bc.Dims and decide something in the traced function: at every size a graph gives what the function gives, or an
error; never the other branch's numbers. Errors of trace name the line."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

import baracuda as bc
import baracuda.functional as F
from baracuda.graph.watched import Size
from conftest import FULL

COUNT = int(os.environ.get("BARACUDA_DECISIONS", "4000" if FULL else "150"))
SEED = int(os.environ.get("BARACUDA_TEST_SEED", datetime.now(UTC).strftime("%Y%m%d")))
MOST, WIDE = 40, 3
N, M = bc.Dim("n", max=MOST), bc.Dim("m", max=24)
HERE = __file__


def traced(fn: Callable[..., Any], *sizes: Any) -> Any:
    return bc.trace(fn, *(bc.TensorSpec((n, WIDE)) for n in sizes or (N,)))


# --- what is asked, each with a size at which the answer changes


def less(x: Any) -> Any:
    return F.exp(x) if x.shape[0] < 10 else F.neg(x)


def clipped(x: Any) -> Any:
    return F.mul(x, max(0, 8 - x.shape[0]))


def fewer(x: Any) -> Any:
    return F.mul(x, min(x.shape[0], 30))


def equal(x: Any) -> Any:
    return F.exp(x) if x.shape == (37, WIDE) else F.neg(x)


def among(x: Any) -> Any:
    return F.exp(x) if x.shape[0] in (5, 6) else F.neg(x)


def truth(x: Any) -> Any:
    return F.exp(x) if max(0, x.shape[0] - 9) else F.neg(x)


def halved(x: Any) -> Any:
    return F.exp(x) if x.shape[0] // 2 > 4 else F.neg(x)


def rest(x: Any) -> Any:
    return F.exp(x) if x.shape[0] % 8 == 0 else F.neg(x)


def quotient(x: Any) -> Any:
    return F.exp(x) if x.shape[0] / 4 > 2 else F.neg(x)


def as_float(x: Any) -> Any:
    return F.exp(x) if float(x.shape[0]) > 9.5 else F.neg(x)


def as_int(x: Any) -> Any:
    return F.exp(x) if int(x.shape[0]) > 9 else F.neg(x)


def by_len(x: Any) -> Any:
    return F.exp(x) if len(x) > 9 else F.neg(x)


def by_numel(x: Any) -> Any:
    return F.exp(x) if x.numel > 30 else F.neg(x)


def by_strides(x: Any) -> Any:
    return F.exp(x) if F.copy(x.T).strides[0] > 9 else F.neg(x)


def absolute(x: Any) -> Any:
    return F.mul(x, abs(x.shape[0] - 8))


def window(x: Any) -> Any:
    return F.exp(x) if 25 < x.shape[0] < 29 else F.neg(x)


def by_result(x: Any) -> Any:
    return F.exp(x) if F.cat((x, x[:2]), 0)[2:].shape[0] < 10 else F.neg(x)


ASKED = (
    less, clipped, fewer, equal, among, truth, halved, rest, quotient, as_float, as_int, by_len, by_numel, by_strides, absolute,
    window,
)  # fmt: skip


@pytest.mark.parametrize("fn", ASKED, ids=lambda fn: fn.__name__)
def test_the_line_that_asked_is_named(fn: Callable[..., Any]) -> None:
    with pytest.raises(bc.InvalidProblemError) as caught:
        traced(fn)
    line = fn.__code__.co_firstlineno + 1
    assert f"{HERE}:{line}: return F." in str(caught.value)


def test_two_sizes_are_compared() -> None:
    def longer(x: Any, y: Any) -> Any:
        return F.neg(x) if x.shape[0] >= y.shape[0] else F.exp(x)

    with pytest.raises(
        bc.InvalidProblemError,
        match=r"x\.shape\[0\] >= y\.shape\[0\] else F\.exp\(x\)\n  a size is compared: another way at n=",
    ):
        traced(longer, N, M)
    together = bc.trace(longer, bc.TensorSpec((N, WIDE)), bc.TensorSpec((N, WIDE))).compile()
    x = np.ones((7, WIDE), np.float32)
    np.testing.assert_array_equal(together.run(x, x), -x)


def test_what_all_sizes_answer_alike_is_no_question() -> None:
    def model(x: Any) -> Any:
        n, wide = x.shape
        assert n <= MOST and wide == WIDE and x.shape == (n, WIDE) and n * 2 + 1 > n and x.shape[-1] ** 0.5 < 2
        scale = 1 / float(wide)
        table = np.ones((MOST, WIDE), np.float32)[:n]
        return F.mul(F.add(x, bc.from_dlpack(TABLE)[:n]), scale), x.reshape(-1), max(n, 0) * table.shape[1]

    plan = traced(lambda x: model(x)[:2]).compile()
    for n in range(MOST + 1):
        x = np.full((n, WIDE), 2, np.float32)
        for got, want in zip(plan.run(x), model(bc.asarray(x))[:2], strict=True):
            np.testing.assert_array_equal(got, want.numpy())


TABLE = np.linspace(0, 1, MOST * WIDE, dtype=np.float32).reshape(MOST, WIDE)


def test_sizes_of_0_and_1_are_refused_by_runs() -> None:
    def step(x: Any) -> Any:
        if x.shape[0] > 1:
            return F.neg(x)
        return F.exp(x)

    plan = traced(step).compile()
    np.testing.assert_array_equal(plan.run(TABLE[:2]), -TABLE[:2])
    for n in (0, 1):
        with pytest.raises(
            bc.InvalidProblemError, match=rf"got n = {n}, want n >= 2, for .*test_graph_decisions.py:\d+: if x.shape"
        ):
            plan.run(TABLE[:n])
    again = bc.Program.from_bytes(plan.program.to_bytes())
    with pytest.raises(bc.InvalidProblemError, match=r"got n = 1, want .*if x\.shape"):
        again.run(TABLE[:1])
    slopes = traced(step)
    with pytest.raises(bc.InvalidProblemError, match=r"got n = 1, want .*if x\.shape"):
        slopes.grad(slopes.results, slopes.tensors).compile().run(TABLE[:1])


def test_slices_that_are_cut_short_are_refused_by_runs() -> None:
    plan = traced(lambda x: F.neg(x[-2:][1:])).compile()
    np.testing.assert_array_equal(plan.run(TABLE[:5]), -TABLE[4:5])
    with pytest.raises(bc.InvalidProblemError, match=rf"want n >= 2, for {HERE}:\d+: plan = traced"):
        plan.run(TABLE[:1])


def test_what_a_function_cannot_do_at_small_sizes_is_refused_by_runs() -> None:
    kernel = np.ones((1, 1, 5), np.float32)
    plan = bc.trace(lambda x: F.conv1d(x, kernel), bc.TensorSpec((1, 1, N))).compile()
    for n in range(MOST + 1):
        x = np.arange(n, dtype=np.float32).reshape(1, 1, n)
        try:
            want = F.conv1d(x, kernel)
        except bc.BaracudaError:
            with pytest.raises(bc.InvalidProblemError):
                plan.run(x)
        else:
            np.testing.assert_array_equal(plan.run(x), want)


# --- generated


def number(rng: np.random.Generator, depth: int = 2) -> Callable[[int], int]:
    """A number that may follow a size."""
    c = int(rng.integers(-4, 30))
    if depth == 0 or rng.random() < 0.35:
        return (lambda n: c) if rng.random() < 0.5 else lambda n: n
    f, g, k = number(rng, depth - 1), number(rng, depth - 1), int(rng.integers(1, 5))
    kinds: tuple[Callable[[int], int], ...] = (
        lambda n: f(n) + g(n), lambda n: f(n) - g(n), lambda n: -f(n), lambda n: min(f(n), g(n)), lambda n: max(f(n), g(n)),
        lambda n: f(n) // k, lambda n: f(n) % k, lambda n: abs(f(n)), lambda n: f(n) * k, lambda n: f(n) if f(n) > c else g(n),
        lambda n: sorted((f(n), g(n)))[0], lambda n: int(f(n) == c), lambda n: round(f(n) / k), lambda n: divmod(f(n), k)[0],
    )  # fmt: skip
    return kinds[int(rng.integers(len(kinds)))]


def instruction(rng: np.random.Generator) -> Callable[[Any], Any]:
    """A function of a tensor that sizes decide something in."""
    f, g = number(rng), number(rng)
    kinds: tuple[Callable[[Any], Any], ...] = (
        lambda x: x[f(x.shape[0]) :],
        lambda x: x[: f(x.shape[0])],
        lambda x: x[f(x.shape[0]) : g(x.shape[0])],
        lambda x: F.add(x, x[f(x.shape[0])]),
        lambda x: F.neg(x) if f(x.shape[0]) < g(x.shape[0]) else F.exp(x),
        lambda x: F.mul(x, f(x.shape[0])),
        lambda x: F.add(x, bc.from_dlpack(TABLE)[: x.shape[0]]),
        lambda x: x.squeeze() if f(x.numel) > 2 else x,
        lambda x: F.cat((x, x[f(x.shape[0]) :]), 0),
        lambda x: x[::2],
        lambda x: F.softmax(x, 0),
    )
    return kinds[int(rng.integers(len(kinds)))]


def same_or_refused(fn: Callable[..., Any], plan: Any, n: int) -> str:
    """What a run at a size came to."""
    x = TABLE[:n].copy()
    try:
        want: Any = fn(bc.asarray(x)).numpy()
    except Exception as error:  # the function itself takes no such size
        want = error
    try:
        got = plan.run(x)
    except bc.BaracudaError:
        return "refused"
    if isinstance(want, Exception):
        return f"the function raises {want!r}, the graph gives {got.shape}"
    if got.shape != want.shape or not np.allclose(got, want, rtol=1e-5, atol=1e-6, equal_nan=True):
        return f"got {got.shape}, want {want.shape}"
    return "same"


def test_generated_decisions() -> None:
    """At every size the function's own numbers, or an error; where nothing is decided, most sizes are served."""
    seen: Counter[str] = Counter()
    wrong = []
    for k in range(COUNT):
        rng = np.random.default_rng((SEED, k))
        steps = [instruction(rng) for _ in range(int(rng.integers(1, 4)))]

        def fn(x: Any, steps: list[Any] = steps) -> Any:
            for step in steps:
                x = step(x)
            return F.mul(x, 2.0)

        try:
            plan = traced(fn).compile()
        except Exception as error:
            ours = isinstance(error, bc.BaracudaError)
            seen["refused by trace" if ours else "raises"] += 1
            continue
        for n in range(MOST + 1):
            found = same_or_refused(fn, plan, n)
            seen[found if found in ("same", "refused") else "wrong"] += 1
            if found not in ("same", "refused"):
                wrong.append(f"{(SEED, k)}, n={n}: {found}")
                break
    assert not wrong, f"{len(wrong)} of {COUNT}: " + "\n".join(wrong[:10])
    assert seen["same"] > 3 * COUNT and seen["refused by trace"] > COUNT // 8, seen


def test_sizes_are_ints_everywhere_else() -> None:
    held: list[Any] = []
    traced(lambda x: held.append(x.shape) or F.neg(x))
    n = held[0][0]
    assert type(n) is Size and n == 13 and n < 14 and hash(n) == hash(13) and {13: "there"}[n] == "there"
    assert type(n + 1) is Size and repr(held[0]) == "(13, 3)" and f"{n:03d}" == "013" and list(range(n))[-1] == 12
    assert (
        type(int(n)) is int and type(abs(-n)) is Size and divmod(n, 5) == (2, 3) and round(n / 2) == 6 and n / 2 == 6.5
    )
    import json
    import pickle

    assert json.dumps(n) == "13" and type(pickle.loads(pickle.dumps(n))) is int and np.zeros(n).shape == (13,)
