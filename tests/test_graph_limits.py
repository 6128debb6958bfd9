"""Graphs with less memory than they would take: there is an end to the search, the same bits, or the least that it takes."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import baracuda as bc
import baracuda.functional as F
from conftest import FULL, SEED

pytestmark = pytest.mark.timeout(1800 if FULL else 120)

GRAPHS = 1000 if FULL else 100
N = 16


def drawn(rng: np.random.Generator, steps: int) -> list[tuple[int, int, int, int]]:
    return [tuple(int(n) for n in rng.integers(0, 1 << 16, 4)) for _ in range(steps)]  # type: ignore[misc]


def computed(script: list[tuple[int, int, int, int]], *given: Any) -> Any:
    """Functions of values that were made before, many of which are used far behind, and more than once."""
    known = list(given)
    for what, a, b, c in script:
        # Values of arguments alone can be computed again, and the joins of old ones make them wait.
        p = known[a // 3 % (len(given) if a % 3 == 0 else len(known))]
        q = known[-1 - b // 2 % (3 if b % 2 else len(known)) % len(known)]
        calls = [
            lambda p=p: F.softmax(p, -1),
            lambda p=p, c=c: F.cumsum(p, c % 2),
            lambda p=p, q=q: F.add(p, q),
            lambda p=p, q=q: F.maximum(p, q),
            lambda p=p, q=q: F.matmul(p, q),
            lambda p=p: F.exp(F.neg(F.square(p))),
            lambda p=p, q=q: F.where(F.gt(p, q), p, q),
            lambda p=p, c=c: F.sub(p, F.mean(p, c % 2, True)),
            lambda p=p, q=q, c=c: F.cat([p, q], c % 2)[: p.shape[0], : p.shape[1]],
            lambda p=p: F.sort(p, -1)[0],
            lambda p=p: F.tanh(F.copy(p.T)),
        ]
        known.append(calls[what % len(calls)]())
    return tuple(known[-1 - c % len(known)] for *_, c in script[:3])


def test_any_limit_comes_to_an_end() -> None:
    """Results are the same bit for bit where one fits; where none does, what is said to be the least is enough."""
    again = refused = 0
    for number in range(GRAPHS):
        rng = np.random.default_rng([SEED, number])
        script = drawn(rng, int(rng.integers(3, 24)))
        given = [rng.normal(size=(N, N)).astype(np.float32) for _ in range(2)]
        graph = bc.trace(lambda *xs, script=script: computed(script, *xs), *given)
        free = graph.compile()
        want = free.run(*given)
        planned = free.memory.planned
        for limit in {0, 1000, int(rng.integers(0, planned + 1)), int(planned * 0.8), planned}:
            try:
                plan = graph.compile(memory_limit=limit)
            except bc.MemoryLimitError as error:
                said = re.search(r"want at least (\d+) bytes", str(error))
                assert said and limit < int(said[1]) <= planned, error
                refused += 1
                plan = graph.compile(memory_limit=int(said[1]))
                limit = int(said[1])
            assert plan.memory.planned <= limit
            again += plan.launches > free.launches
            for a, b in zip(plan.run(*given), want, strict=True):
                assert a.tobytes() == b.tobytes(), (number, limit)
    assert again and refused, (again, refused)


def test_one_value_is_computed_again_in_two_places() -> None:
    """Behind each of two launches that take much memory."""

    def twice(x: Any) -> Any:
        kept, total = F.softmax(x, -1), x
        for _ in range(2):
            large = F.cat([F.cumsum(total, 0)] * 8, 0)
            total = F.add(F.matmul(F.cumsum(large, 0)[:16], total), kept)
        return total

    x = np.random.default_rng(SEED).normal(size=(16, 16)).astype(np.float32)
    graph = bc.trace(twice, x)
    free = graph.compile()
    with pytest.raises(bc.MemoryLimitError) as caught:
        graph.compile(memory_limit=0)
    tight = graph.compile(memory_limit=int(re.findall(r"least (\d+)", str(caught.value))[0]))
    assert tight.launches > free.launches and tight.memory.planned < free.memory.planned
    assert tight.run(x).tobytes() == free.run(x).tobytes()


def test_softmax_and_cumsum_with_less_than_they_take() -> None:
    graph = bc.trace(lambda x: F.add(F.softmax(x, -1), F.cumsum(x, 0)), bc.TensorSpec((16, 16)))
    for limit in (0, 1000, 2000):
        with pytest.raises(bc.MemoryLimitError, match=f"memory_limit={limit}, want at least 2048 bytes"):
            graph.compile(memory_limit=limit)
    assert graph.compile(memory_limit=2048).memory.planned == 2048
