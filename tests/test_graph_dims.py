"""Graphs of sizes that are bc.Dims: one for all lengths, with the numbers of the eager calls, or an error that names the node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import baracuda as bc
import baracuda.functional as F
from baracuda.describe.sizes import SizeExpr
from baracuda.graph.symbols import Samples
from conftest import SEED
from test_graph import own_numbers, same  # noqa: F401

RNG = np.random.default_rng(SEED)
N = bc.Dim("n", max=512)
TABLE, W = RNG.normal(size=(512, 64)).astype(np.float32), RNG.normal(size=(64, 96)).astype(np.float32)
LENGTHS = (1, 2, 13, 17, 64, 511, 512)


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def elementwise(x: Any) -> Any:
    h = F.add(x, TABLE[: x.shape[0]])
    return F.relu(h)[1:].T, F.softmax(h.reshape(-1, 4, 16), -1), F.cumsum(h, 0), h[-1]


def test_one_graph_serves_every_length() -> None:
    plan = bc.trace(elementwise, bc.TensorSpec((N, 64))).compile()
    for n in (*LENGTHS, 0, 3):
        x = normal(n, 64)
        if n:
            same(plan.run(x), elementwise(x))
        else:
            with pytest.raises(
                bc.InvalidProblemError, match=r"got n = 0, want n >= 1, for .*test_graph_dims.py:\d+: return F.relu"
            ):  # of n - 1 rows
                plan.run(x)
    with pytest.raises(bc.InvalidProblemError, match="513"):
        plan.run(normal(513, 64))


def attention(x: Any) -> Any:
    q = F.matmul(x, W)
    a, b, c = q[:, :32], q[:, 32:64], q[:, 64:]
    return F.matmul(F.softmax(F.mul(F.matmul(a, b.T), 0.2), -1), c)


def test_products_of_a_length_with_itself() -> None:
    graph = bc.trace(attention, bc.TensorSpec((N, 64)))
    assert "f32[n, n]" in graph.explain()
    plan = graph.compile()
    assert 0 < plan.memory.lower_bound <= plan.memory.planned < plan.memory.unplanned
    for n in LENGTHS:  # a product of any length may take another kernel than one of this length
        x = normal(n, 64)
        np.testing.assert_allclose(plan.run(x), attention(x), rtol=1e-5, atol=1e-5)


def test_batch_and_length() -> None:
    b, t = bc.Dim("b", max=64), bc.Dim("t", max=128)
    graph = bc.trace(lambda x: F.softmax(F.bmm(x, x.mT), -1), bc.TensorSpec((b, t, 64)))
    plan = graph.compile()
    for shape in ((3, 20, 64), (64, 128, 64), (1, 1, 64), (2, 5, 64)):
        x = normal(*shape)
        np.testing.assert_allclose(plan.run(x), F.softmax(F.bmm(x, x.swapaxes(1, 2)), -1), rtol=1e-5, atol=1e-6)
    with pytest.raises(bc.InvalidProblemError, match=r"node 0 \(matmul\).*follow one bc.Dim"):
        bc.trace(lambda x: F.matmul(x.reshape(-1, 64), W), bc.TensorSpec((b, t, 64)))


def test_sizes_that_follow_a_dim() -> None:
    n = bc.Dim("n", max=64)
    specs = [bc.TensorSpec(s) for s in ((n * 2 + 1, 3), (n * 2 + 1, 4), (n,))]
    plan = bc.trace(lambda x, y, z: (F.cat([x, y], 1), F.exp(z)), *specs).compile()
    for k in (0, 1, 9, 64):
        x, y, z = normal(2 * k + 1, 3), normal(2 * k + 1, 4), normal(k)
        same(plan.run(x, y, z), (np.concatenate([x, y], 1), F.exp(z)))
    with pytest.raises(bc.InvalidProblemError, match="x: "):
        plan.run(normal(4, 3), normal(4, 4), normal(2))
    with pytest.raises(bc.InvalidProblemError, match=r"trace: got sizes n\*2\+1, want one that is n itself"):
        bc.trace(F.exp, specs[0])


def test_chains_are_fused_for_every_length() -> None:
    row = np.linspace(-1, 1, 64, dtype=np.float32)

    def f(x: Any, y: Any) -> Any:
        return F.softmax(F.mul(F.tanh(F.add(F.square(x), row)), F.rsqrt(F.add(F.abs(y), 1.0))), 1)

    plan = bc.trace(f, bc.TensorSpec((N, 64)), bc.TensorSpec((N, 64))).compile()
    assert plan.launches == 2 and "expr.forward.cpu.f32.fused(f32[n, 64]" in plan.explain()
    for n in (*LENGTHS, 0):
        x, y = normal(n, 64), normal(n, 64)
        same(plan.run(x, y), f(x, y))


def test_gradients_for_every_length() -> None:
    def loss(x: Any, w: Any, t: Any) -> Any:
        return F.cross_entropy(F.matmul(F.relu(x), w), t)

    graph = bc.trace(loss, bc.TensorSpec((N, 64)), bc.TensorSpec((64, 10)), bc.TensorSpec((N,), "i64"))
    plan = graph.grad(graph.results, graph.tensors[:2]).compile()
    for n in LENGTHS:
        x, w, t = normal(n, 64), W[:, :10].copy(), RNG.integers(0, 10, n)
        value, (dx, dw) = plan.run(x, w, t)
        a, b = (torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (x, w))
        want = torch.nn.functional.cross_entropy(torch.relu(a) @ b, torch.tensor(t))
        want.backward()
        np.testing.assert_allclose(value, want.item(), rtol=1e-5)
        np.testing.assert_allclose(dx, a.grad, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(dw, b.grad, rtol=1e-4, atol=1e-6)
    with pytest.raises(bc.InvalidProblemError, match=r"grad: tensors: .*want some of those"):
        graph.grad(graph.results, [W])


def test_random_numbers_of_every_length() -> None:
    plan = bc.trace(lambda x: (F.dropout(x, 0.5), F.dropout(x[:, :3], 0.5)), bc.TensorSpec((N, 7))).compile()
    for n in (1, 5, 13, 512):
        x = normal(n, 7)
        bc.manual_seed(n)
        want = F.dropout(x, 0.5), F.dropout(np.ascontiguousarray(x[:, :3]), 0.5), F.dropout(x, 0.5)
        bc.manual_seed(n)
        same((*plan.run(x), plan.run(x)[0]), want)


@pytest.mark.parametrize(
    ("fn", "why"),
    [
        (
            lambda x: F.mul(F.exp(x), 1 / x.shape[0]),
            r"test_graph_dims.py:\d+: lambda x: F.mul\(F.exp\(x\), 1 / x(?s:.*)a size becomes a float",
        ),
        (
            lambda x: x if x.shape[0] > 100 else F.exp(x),
            r"test_graph_dims.py:\d+: lambda x: x if x(?s:.*)compared: another way at n=512 than at n=13",
        ),
        (
            lambda x: F.exp(x[: x.shape[0] // 2]),
            r"test_graph_dims.py:\d+: lambda x: F.exp(?s:.*) divided by 2: 13, 17, 22, 512 at sizes \(n=13\)",
        ),
        (lambda x: F.add(x, TABLE[:100][: x.shape[0]]), r"node 0 .*\(512, 64\) and \(100, 64\)"),
        (lambda x: F.cat([x, x], 0), r"node 0 \(cat\): CatDescriptor.shapes"),
    ],
)
def test_what_no_expression_of_the_sizes_is(fn: Callable[..., Any], why: str) -> None:
    with pytest.raises(bc.InvalidProblemError, match=why):
        bc.trace(fn, bc.TensorSpec((N, 64)))


def test_dims_that_cannot_be_sampled() -> None:
    for sizes, why in (
        ((bc.Dim("n", max=4), 2), "want at least 5"),
        ((bc.Dim("n", max=9), bc.Dim("n", max=10)), "one maximum per name"),
        ((bc.Dim("n", max=9), bc.Dim("n", max=9) // 2), "a multiple of 2"),
    ):
        with pytest.raises(bc.InvalidProblemError, match=why):
            bc.trace(F.exp, bc.TensorSpec(sizes))
    short = bc.trace(F.exp, bc.TensorSpec((bc.Dim("n", max=5), 2))).compile()
    for n in range(6):
        x = normal(n, 2)
        same(short.run(x), F.exp(x))


def test_what_is_fitted_is_what_was_meant() -> None:
    """Random polynomials of two dims come back, and what is none is refused."""
    n, m = bc.Dim("n", max=400), bc.Dim("m", max=90)
    samples = Samples.of([n, m, m * 2])
    for _ in range(200):
        c = [int(v) for v in RNG.integers(-5, 6, 6)]
        want = SizeExpr(
            {(): c[0], ("n",): c[1], ("m",): c[2], ("m", "n"): c[3], ("n", "n"): c[4], ("m", "m"): c[5]}, samples.dims
        )
        values = [want.at(p) for p in samples.points]
        assert SizeExpr.of(samples.fit(values)) == want
        values[int(RNG.integers(len(values)))] += 1
        with pytest.raises(ValueError):
            samples.fit(values)
    assert samples.fit([(p["n"] * 6) // 3 for p in samples.points]) == SizeExpr.of(n) * 2
