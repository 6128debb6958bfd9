"""A token's rope and appends as one kernel of a compiled graph: with the bits of the four, and only where it is the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import baracuda as bc
import baracuda.functional as F
from test_graph import own_numbers, same  # noqa: F401

RNG = np.random.default_rng(11)
ROWS, HEADS, KV, DIM = 20, 4, 2, 8


def tables(element: Any) -> tuple[np.ndarray, np.ndarray]:
    angle = RNG.uniform(0, 6.3, (ROWS, DIM // 2))
    return np.cos(angle).astype(element), np.sin(angle).astype(element)


def rope(x: Any, cos: Any, sin: Any, position: Any, y: Any = None, **more: Any) -> None:
    desc = bc.RopeDescriptor(x.shape, cos.shape[0], element=x.element, table_element=cos.dtype, **more)
    bc.plan(desc).run(x=x, cos=cos, sin=sin, y=x if y is None else y, position=position)


def append(cache: Any, x: Any, position: Any) -> None:
    bc.plan(bc.KvCacheAppendDescriptor(cache.shape, x.shape, element=x.element)).run(
        cache=cache, x=x, position=position
    )


def parts(joint: Any, batch: int, length: int) -> tuple[Any, Any, Any]:
    heads = F.mul(joint, 2.0).reshape(batch, length, HEADS + 2 * KV, DIM).transpose(0, 2, 1, 3)
    return heads[:, :HEADS], heads[:, HEADS : HEADS + KV], heads[:, HEADS + KV :]


@pytest.mark.parametrize("element", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (1, 5)])
def test_four_launches_are_one(shape: tuple[int, int], element: Any) -> None:
    batch, length = shape
    cos, sin = tables(np.float64 if element == np.float64 else np.float32)

    def in_place(joint: Any, keys: Any, values: Any, position: Any) -> Any:
        q, k, v = parts(joint, batch, length)
        rope(q, cos, sin, position)
        rope(k, cos, sin, position)
        append(keys, k, position)
        append(values, v, position)
        return F.copy(q)

    def values_first(joint: Any, keys: Any, values: Any, position: Any) -> Any:
        q, k, v = parts(joint, batch, length)
        append(values, v, position)
        turned = F.rope(k, cos, sin, position)
        append(keys, turned, position)
        rope(q, cos, sin, position, layout="half")
        return F.copy(q)

    joint = RNG.normal(size=(batch * length, (HEADS + 2 * KV) * DIM)).astype(element)
    caches = [RNG.normal(size=(batch, KV, ROWS + 3, DIM)).astype(element) for _ in range(2)]
    for fn in (in_place, values_first):
        graph = bc.trace(fn, joint, *caches, np.array(0))
        plan, plain = graph.compile(), graph.compile(passes=("dead", "copies", "fuse", "in_place"))
        assert plain.launches - plan.launches == (0 if element is np.float16 else 3), plan.explain()
        for at in (0, 7, ROWS - length):
            eager = [c.copy() for c in caches]
            want = F.copy(joint), [c.copy() for c in caches], [c.copy() for c in caches]
            got = plan.run(want[0], *want[1], np.array(at)), plain.run(joint, *want[2], np.array(at))
            same(*got)
            for a, b, before in zip(want[1], want[2], eager, strict=True):
                same(a, b)
                assert not np.array_equal(a, before)
        with pytest.raises(bc.IndexOutOfRangeError):
            plan.run(joint, *[c.copy() for c in caches], np.array(ROWS - length + 1))


def fed(body: Callable[..., Any]) -> tuple[int, int]:
    """Launches with and without the pattern of a function of queries, keys, values, caches and a position; same bits."""
    cos, sin = tables(np.float32)

    def fn(joint: Any, keys: Any, values: Any, position: Any, other: Any) -> Any:
        return body(*parts(joint, 1, 1), keys, values, position, other, cos, sin)

    given = [RNG.normal(size=(1, (HEADS + 2 * KV) * DIM)).astype(np.float32)]
    given += [RNG.normal(size=(1, KV, ROWS, DIM)).astype(np.float32) for _ in range(2)]
    graph, found = bc.trace(fn, *given, np.array(0), np.array(0)), []
    plans = graph.compile(), graph.compile(passes=("dead", "copies", "fuse", "in_place"))
    for plan in plans:
        copies = [g.copy() for g in given]
        result = plan.run(*copies, np.array(3), np.array(5))
        found.append((*result, *copies))
    same(*found)
    return plans[0].launches, plans[1].launches


def test_what_keeps_them_apart() -> None:
    def usual(q: Any, k: Any, v: Any, keys: Any, values: Any, at: Any, other: Any, cos: Any, sin: Any) -> Any:
        rope(q, cos, sin, at)
        rope(k, cos, sin, at)
        append(keys, k, at)
        append(values, v, at)
        return F.copy(q), F.copy(v)

    def read_later(q: Any, k: Any, v: Any, keys: Any, values: Any, at: Any, other: Any, cos: Any, sin: Any) -> Any:
        usual(q, k, v, keys, values, at, other, cos, sin)
        return F.copy(q), F.copy(k)

    def handed_out(q: Any, k: Any, v: Any, keys: Any, values: Any, at: Any, other: Any, cos: Any, sin: Any) -> Any:
        usual(q, k, v, keys, values, at, other, cos, sin)
        return q, k

    def elsewhere(q: Any, k: Any, v: Any, keys: Any, values: Any, at: Any, other: Any, cos: Any, sin: Any) -> Any:
        rope(q, cos, sin, other)
        rope(k, cos, sin, at)
        append(keys, k, at)
        append(values, v, at)
        return F.copy(q), F.copy(v)

    def other_tables(q: Any, k: Any, v: Any, keys: Any, values: Any, at: Any, other: Any, cos: Any, sin: Any) -> Any:
        rope(q, sin, cos, at)
        rope(k, cos, sin, at)
        append(keys, k, at)
        append(values, v, at)
        return F.copy(q), F.copy(v)

    def interleaved(q: Any, k: Any, v: Any, keys: Any, values: Any, at: Any, other: Any, cos: Any, sin: Any) -> Any:
        rope(q, cos, sin, at, layout="interleaved")
        rope(k, cos, sin, at)
        append(keys, k, at)
        append(values, v, at)
        return F.copy(q), F.copy(v)

    def read_between(q: Any, k: Any, v: Any, keys: Any, values: Any, at: Any, other: Any, cos: Any, sin: Any) -> Any:
        before = F.copy(q[:, :1])
        rope(q, cos, sin, at)
        rope(k, cos, sin, at)
        append(keys, k, at)
        seen = F.sum(keys)
        append(values, v, at)
        return before, seen

    def written_between(q: Any, k: Any, v: Any, keys: Any, values: Any, at: Any, other: Any, cos: Any, sin: Any) -> Any:
        rope(q, cos, sin, at)
        rope(k, cos, sin, at)
        F.mul(keys, 2.0, out=keys)
        append(keys, k, at)
        F.neg(keys, out=keys)
        append(values, v, at)
        return F.copy(q), F.copy(v)

    def keys_as_values(q: Any, k: Any, v: Any, keys: Any, values: Any, at: Any, other: Any, cos: Any, sin: Any) -> Any:
        rope(q, cos, sin, at)
        rope(k, cos, sin, at)
        append(keys, k, at)
        append(values, k, at)
        return F.copy(q), F.copy(v)

    def one_cache(q: Any, k: Any, v: Any, keys: Any, values: Any, at: Any, other: Any, cos: Any, sin: Any) -> Any:
        rope(q, cos, sin, at)
        rope(k, cos, sin, at)
        append(keys, k, at)
        append(keys, v, at)
        return F.copy(q), F.copy(v)

    now, before = fed(usual)
    assert now == before - 3
    for body in (
        read_later, handed_out, elsewhere, other_tables, interleaved, read_between, written_between, keys_as_values,
        one_cache,
    ):  # fmt: skip
        now, before = fed(body)
        assert now == before, body.__name__
