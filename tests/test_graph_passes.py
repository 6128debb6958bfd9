"""What `compile` does to a graph's launches changes no bit, and what each pass is for happens."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import baracuda as bc
import baracuda.functional as F
from conftest import FULL, SEED
from test_graph import RNG, W, X, own_numbers, same, traced  # noqa: F401


def test_passes_change_no_bit() -> None:
    def f(x: Any) -> Any:
        F.exp(x)
        return F.softmax(F.copy(F.relu(x)), 1), F.copy(F.tanh(x))

    graph = bc.trace(f, X)
    plain, dead, both = (graph.compile(passes=p) for p in ((), ("dead",), None))
    assert (plain.launches, dead.launches, both.launches) == (6, 5, 4)
    for plan in (plain, dead, both):
        same(plan.run(X), f(X))


def test_outputs_take_over_memory_that_is_free() -> None:
    def f(x: Any) -> Any:
        h = F.exp(x)
        a = F.mul(h, 2.0)  # h is read again: not in its place
        b = F.add(a, h)  # in a's or h's
        c = F.sqrt(F.abs(b))
        return F.softmax(c, 1), F.sum(b), F.cumsum(c[:, :32], 1)

    graph = bc.trace(f, X)
    plain, merged = graph.compile(passes=("copies", "dead")), graph.compile()
    same(merged.run(X), f(X))
    same(plain.run(X), f(X))
    assert merged.memory.unplanned < plain.memory.unplanned and merged.memory.lower_bound <= plain.memory.lower_bound


def test_chains_of_elementwise_functions_are_one_kernel() -> None:
    rows, half = RNG.normal(size=64).astype(np.float32), X.astype(np.float16)

    def written(x: Any) -> Any:
        y = F.exp(x)
        F.mul(y, 2.0, out=y)
        return F.tanh(F.add(y, 1.0))

    same(traced(written, X), written(X))

    def chain(x: Any, s: Any) -> Any:
        h = F.sigmoid(F.add(F.mul(x, rows), s, alpha=0.5))
        return F.where(F.gt(h, 0.5), F.sub(h, 1.0), F.clamp(h, min=0.25)), F.softmax(F.exp(h), 1)

    s = np.array(2.0, np.float32)
    plan = bc.trace(chain, X, s).compile()
    same(plan.run(X, s), chain(X, s))
    assert plan.explain().count("expr.forward.cpu") >= 1, plan.explain()
    assert plan.launches < bc.trace(chain, X, s).compile(passes=("dead", "copies")).launches

    def straight(x: Any, y: Any) -> Any:
        return F.mul(F.tanh(F.add(F.square(x), y)), F.rsqrt(F.add(F.abs(y), 1.0)))

    for other, launches in ((X[::-1].copy(), 1), (rows, 2)):  # what is computed of a row alone is a kernel of its own
        one = bc.trace(straight, X, other).compile()
        assert one.launches == launches and "expr" in one.explain()
        same(one.run(X, other), straight(X, other))
    strided = bc.trace(lambda x: straight(x.T, x.T[:, 1:2]), X).compile()
    same(strided.run(X), straight(X.T, X.T[:, 1:2]))
    halves = bc.trace(straight, half, half).compile()  # they would be rounded once instead of each time
    assert halves.launches == 7
    same(halves.run(half, half), straight(half, half))

    def overwritten(x: Any) -> Any:
        a = F.exp(x)
        F.add(x, 1.0, out=x)  # between what reads x and what would read it in its place
        return F.neg(a)

    for f in (overwritten,):
        x, y = X.copy(), X.copy()
        same(bc.trace(f, x).compile().run(x), f(y))
        same(x, y)


@pytest.mark.parametrize("seed", range(30 if FULL else 10))
def test_random_graphs_keep_their_bits(seed: int) -> None:
    """Chains that fork, join, view and write in place, under every set of passes."""
    rng = np.random.default_rng([SEED, seed])
    unary, binary = (F.exp, F.relu, F.neg, F.tanh, F.copy, F.abs), (F.add, F.mul, F.sub, F.maximum)
    script = [(int(rng.integers(9)), *(int(v) for v in rng.integers(0, 1 << 30, 3))) for _ in range(25)]

    def f(x: Any, w: Any) -> Any:
        known = [x, w, F.copy(w), F.tanh(x)]
        for what, a, b, c in script:
            p, q = known[a % len(known)], known[b % len(known)]
            if what < 3:
                known.append(unary[c % len(unary)](F.clamp(p, -3, 3)))
            elif what < 5:
                known.append(binary[c % len(binary)](p, q))
            elif what == 5 and p is not x:
                binary[c % len(binary)](F.clamp(p, -3, 3), q, out=p)
            elif what == 6 and p is not x:
                F.neg(p[2:6], out=p[2:6])
            elif what == 7:
                known.append(F.copy(p))
            else:
                known.append(F.cat([p[:4], q[4:]], 0))
        return known[-1], known[-3][2:], known[len(known) // 2]

    x, w = RNG.normal(size=(8, 16)).astype(np.float32), RNG.normal(size=(8, 16)).astype(np.float32)
    graph, written = bc.trace(f, x, w), w.copy()
    want = f(x, written)
    for passes in (
        (),
        ("in_place",),
        ("copies", "in_place"),
        ("dead",),
        ("fuse",),
        ("fuse", "in_place"),
        ("patterns",),
        None,
    ):
        given = w.copy()
        same(graph.compile(passes=passes).run(x, given), want)
        same(given, written)


def test_what_frozen_tensors_decide_is_computed_once() -> None:
    """Casts, transposes and joins of weights; not what is written, drawn, of an open size, or handed out."""
    w, other, counts = W.copy(), W.copy(), np.zeros(3, np.float32)

    def f(x: Any) -> Any:
        half = F.cast(F.cast(F.cat([w, other], 1), "f16"), "f32")
        scale = F.exp(F.sum(half, 0))
        F.add(bc.from_dlpack(counts), 1.0, out=bc.from_dlpack(counts))
        drawn = F.dropout(w, 0.5)
        handed = F.mul(w, 3.0)
        y = F.mul(F.matmul(x, half), scale)
        return y, F.add(counts, 1.0), F.sum(drawn), handed, F.matmul(x, F.mul(handed, 2.0))[1:]

    for sizes in ((8, 64), (bc.Dim("n", max=40), 64)):
        graph = bc.trace(f, bc.TensorSpec(sizes))
        frozen, plain = graph.compile(frozen=True), graph.compile()
        assert frozen.launches <= plain.launches - 4
        for n in (8, 8) if sizes[0] == 8 else (8, 3):
            found = []
            for plan in (frozen, plain):
                counts[:] = n
                bc.manual_seed(n)
                found.append(plan.run(X[:n]))
            same(*found)
        w += 1
        assert not np.array_equal(frozen.run(X)[0], plain.run(X)[0]), "only the one sees what the weights are now"
        w -= 1
    assert frozen.run(X)[3] is not frozen.run(X)[3]


@pytest.mark.parametrize("seed", range(10))
def test_random_graphs_of_captured_tensors_keep_their_bits(seed: int) -> None:
    rng = np.random.default_rng([SEED, seed, 1])
    constants = [rng.normal(size=(8, 16)).astype(np.float32) for _ in range(3)]
    script = [(int(rng.integers(5)), *(int(v) for v in rng.integers(0, 1 << 30, 2))) for _ in range(20)]

    def f(x: Any) -> Any:
        known = [x, *map(bc.from_dlpack, constants)]
        for what, a, b in script:
            p, q = known[a % len(known)], known[b % len(known)]
            if what == 0 and p is not x:
                F.maximum(p, q, out=p)
            elif what == 1:
                known.append(F.cat([p[:4], q[4:]], 0))
            elif what == 2:
                known.append(F.copy(p.T).T)
            else:
                known.append((F.tanh if what == 3 else F.relu)(F.sub(p, q)))
        return known[-1], known[-2][2:], known[len(known) // 2]

    start, x = [c.copy() for c in constants], rng.normal(size=(8, 16)).astype(np.float32)
    graph, found = bc.trace(f, x), []
    for run in (graph.compile(frozen=True).run, graph.compile(frozen=True, passes=()).run, f):
        for c, s in zip(constants, start, strict=True):
            c[:] = s
        found.append([np.asarray(bc.from_dlpack(v).numpy()).copy() for v in (*run(x), *constants)])
    for a in found[:2]:
        same(a, found[2])


def test_frozen_graphs_are_saved_with_what_was_computed(tmp_path: Any) -> None:
    w = W.copy()
    plan = bc.trace(lambda x: F.matmul(x, F.mul(w, 2.0)), X).compile(frozen=True)
    want = plan.run(X)
    assert plan.launches == 1
    plan.save(tmp_path / "saved")
    w[:] = 0
    same(bc.ExecutionPlan.load(tmp_path / "saved").run(X), want)


def normal(*shape: int, element: Any = np.float32) -> np.ndarray:
    return RNG.normal(size=shape).astype(element)


GATED = (F.glu, F.swiglu, F.geglu, F.reglu, F.silu_and_mul)


@pytest.mark.parametrize("element", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(7, 33), (64, 256), (2, 3, 5, 48), (1, 64)])
def test_pairs_that_one_kernel_does_keep_their_bits(shape: tuple[int, ...], element: Any) -> None:
    width = shape[-1]
    x, r, w = normal(*shape, element=element), normal(*shape, element=element), normal(width, element=element)
    matrix, bias = normal(width, 40, element=element), normal(40, element=element)

    def residual(x: Any, r: Any) -> Any:
        total = F.add(x, r)
        y = F.rms_norm(total, (width,), w, 1e-5)
        return F.sub(total, F.add(y, F.rms_norm(F.add(y, x), (width,))))

    cases: list[tuple[Any, int]] = [(residual, 3)]
    for activation in (F.relu, F.gelu, F.silu, lambda v: F.gelu(v, approximate="tanh"), F.tanh, lambda v: v):
        merged = 1 if activation is not F.tanh else 2
        cases.append((lambda x, r, act=activation: act(F.add(F.matmul(x, matrix), bias)), merged))
        cases.append((lambda x, r, act=activation: act(F.add(bias, F.matmul(F.add(x, r), matrix))), merged + 1))
        cases.append((lambda x, r, act=activation: act(F.matmul(x, matrix)), merged))
    for fn, launches in cases:
        plan = bc.trace(fn, x, r).compile()
        assert plan.launches == launches, plan.explain()
        same(plan.run(x, r), fn(x, r))


@pytest.mark.parametrize("element", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("shape", [(1, 64), (2, 3, 48), (8, 33), (9, 33)])
def test_gated_products_of_few_rows_keep_their_bits(shape: tuple[int, ...], element: Any) -> None:
    """One launch; two of halves, which would be rounded once less, and of more rows than the kernel takes."""
    x, matrix, other = (normal(*s, element=element) for s in (shape, (shape[-1], 90), (shape[-1], 1, 90)))
    together = 1 if element is not np.float16 and shape[0] < 9 else 2

    def read_twice(x: Any) -> Any:
        h = F.matmul(x, matrix)
        return F.swiglu(h), h[..., :3]

    def other_axis(x: Any) -> Any:
        return F.glu(F.matmul(F.cat([x, x], 0), matrix), 0)

    cases: list[tuple[Any, int]] = [(lambda x, g=g: g(F.matmul(x, matrix)), together) for g in GATED]
    cases += [(lambda x: F.swiglu(F.matmul(x, other[:, 0])), together), (other_axis, 3)]
    cases += [(lambda x: F.swiglu(F.relu(F.matmul(x, matrix))), 3 if element is np.float16 else 2)]
    for fn, launches in cases:
        plan = bc.trace(fn, x).compile()
        assert plan.launches == launches, plan.explain()
        same(plan.run(x), fn(x))
    plan = bc.trace(read_twice, x).compile()
    assert "gated_matmul" not in plan.explain()
    same(plan.run(x), read_twice(x))


@pytest.mark.parametrize("element", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(2, 32, 14, 14), (2, 32, 9, 58), (2, 5, 6, 7)])
def test_convolutions_and_what_is_behind_them_keep_their_bits(shape: tuple[int, ...], element: Any) -> None:
    x, r = normal(*shape, element=element), normal(*shape, element=element)
    channels = shape[1]
    w, one, b = (
        normal(*s, element=element) for s in ((channels, channels, 3, 3), (channels, channels, 1, 1), (channels,))
    )
    mean, var, scale, shift = (normal(channels, element=element) for _ in range(4))
    var = np.abs(var)
    tiny = scale * np.finfo(element).tiny
    alone = normal(channels, 1, 3, 3, element=element)

    def conv(x: Any, scale: Any = scale, shift: Any = shift) -> Any:
        return F.batch_norm(F.conv2d(x, w, None, 1, 1), mean, var, scale, shift, training=False)

    def kept(x: Any, r: Any) -> Any:
        y = F.conv2d(x, w, None, 1, 1)
        return F.batch_norm(y, mean, var, training=False), y

    cases: list[tuple[Any, int]] = [
        (lambda x, r: conv(x), 1),
        (lambda x, r: F.relu(conv(x, tiny)), 1),
        (lambda x, r: F.relu(F.add(conv(x, None, None), r)), 2),
        (lambda x, r: F.relu(F.relu(conv(x))), 1),
        (lambda x, r: F.relu(F.add(F.batch_norm(F.conv2d(x, one, b), mean, var, training=False), conv(r))), 3),
        (lambda x, r: F.relu(F.batch_norm(F.conv2d(x, w, b, 2, 1), mean, var, scale, shift, training=False)), 1),
        (lambda x, r: F.batch_norm(F.conv2d(x, alone, b, 1, 1, 1, channels), mean, var, scale, training=False), 1),
        (lambda x, r: F.add(F.relu(conv(x)), r), 2),
        (lambda x, r: F.batch_norm(F.conv2d(x, w), mean, var, scale, shift, training=True), 2),
        (kept, 2),
    ]
    for fn, launches in cases:
        plan = bc.trace(fn, x, r).compile()
        assert plan.launches == launches, plan.explain()
        same(plan.run(x, r), fn(x, r))


def test_pairs_that_stay_two() -> None:
    """What comes between, or reads the value in between, keeps them apart; and the numbers are right."""
    m, bias, weight = normal(64, 64), normal(64), normal(64)

    def reader(x: Any) -> Any:
        h = F.matmul(x, m)
        return F.relu(h), h[:2]

    def written_between(x: Any) -> Any:
        h = F.matmul(x, m)
        F.mul(x, 2.0, out=x)
        return F.relu(h), F.exp(x)

    def weight_made_between(x: Any) -> Any:
        total = F.add(x, F.tanh(x))
        w = F.exp(F.cumsum(bias, 0))
        return F.rms_norm(total, (64,), w), w

    def scaled(x: Any) -> Any:
        return F.rms_norm(F.add(x, F.neg(x), alpha=0.5), (64,), weight), F.add(F.matmul(x, m), bias, alpha=2.0)

    def of_rows(x: Any) -> Any:
        return F.add(F.matmul(x, m), x[:, :1]), F.rms_norm(F.add(x, bias), (64,))

    def halves(x: Any) -> Any:
        h = F.cast(x, "f16")
        return F.relu(F.matmul(h, h.T)), F.rms_norm(F.add(h, h), (64,))

    def in_place(x: Any) -> Any:
        h = F.matmul(x, m)
        F.add(h, bias, out=h)
        return F.relu(h)

    for fn in (reader, written_between, weight_made_between, scaled, of_rows, halves, in_place):
        want_x, got_x = X.copy(), X.copy()
        want = fn(want_x)
        same(bc.trace(fn, X).compile().run(got_x), want)
        same(got_x, want_x)


def test_pairs_of_every_length() -> None:
    m, bias, weight = normal(64, 96), normal(96), normal(64)

    def f(x: Any) -> Any:
        return F.gelu(F.add(F.matmul(F.rms_norm(F.add(x, F.tanh(x)), (64,), weight), m), bias))

    plan = bc.trace(f, bc.TensorSpec((bc.Dim("n", max=300), 64))).compile()
    assert plan.launches == 3
    for n in (1, 2, 17, 64, 300):
        x = normal(n, 64)
        same(plan.run(x), f(x))
    for most, launches in ((8, 1), (9, 2)):
        gated = bc.trace(lambda x: F.swiglu(F.matmul(x, m)), bc.TensorSpec((bc.Dim("n", max=most), 64))).compile()
        assert gated.launches == launches
        for n in (1, 3, 8):
            x = normal(n, 64)
            np.testing.assert_allclose(gated.run(x), F.swiglu(F.matmul(x, m)), rtol=1e-5, atol=1e-5)
