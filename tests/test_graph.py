"""bc.trace: a traced function gives the bits of its eager calls, on any inputs, and says what it cannot take down."""

from __future__ import annotations

import pickle
import re
import threading
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from differential import calls, functions

import baracuda as bc
import baracuda.functional as F
from conftest import FULL, SEED
from test_infer import NEEDS_DATA

CALLS = 20 if FULL else 3
RNG = np.random.default_rng(SEED)
X, W = RNG.normal(size=(8, 64)).astype(np.float32), RNG.normal(size=(64, 10)).astype(np.float32)
CLASSES = np.arange(8) % 10


@pytest.fixture(autouse=True)
def own_numbers(request: pytest.FixtureRequest) -> None:
    """Every test draws numbers of its own, whichever ran before it."""
    seed = [SEED, *request.node.name.encode()]
    request.module.RNG.bit_generator.state = np.random.default_rng(seed).bit_generator.state


def dense(value: Any) -> Any:
    """With contiguous arrays: a traced tensor is one, unless its spec has strides."""
    if isinstance(value, (list, tuple)):
        return type(value)(map(dense, value))
    if isinstance(value, torch.Tensor):
        return value.contiguous()
    if isinstance(value, np.ndarray):
        return np.ascontiguousarray(value).reshape(value.shape)
    return F.copy(value) if isinstance(value, bc.Tensor) else value


def numbers(x: Any) -> np.ndarray:
    found = bc.from_dlpack(x).numpy()
    return found.astype(np.float64) if found.dtype.kind == "V" or found.dtype.name == "bfloat16" else found


def same(a: Any, b: Any) -> None:
    """Equal bits, but for which NaN it is, in the same structure."""
    if isinstance(b, dict):
        assert isinstance(a, dict) and list(a) == list(b)
        a, b = [*a.values()], [*b.values()]
    if isinstance(b, (list, tuple)):
        assert isinstance(a, type(b)) and len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            same(x, y)
    elif hasattr(b, "__dlpack__") and not isinstance(b, np.generic):
        assert type(a) is type(b)
        assert bc.from_dlpack(a).element is bc.from_dlpack(b).element and a.shape == b.shape
        np.testing.assert_array_equal(numbers(a), numbers(b))
    else:
        assert a is b or a == b


def traced(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return bc.trace(fn, *args, **kwargs).compile().run(*args, **kwargs)


@pytest.mark.parametrize("name", sorted({*functions.names()} - NEEDS_DATA))
def test_every_function_gives_the_bits_of_its_call(name: str) -> None:
    function, done = getattr(F, name), 0
    for number in range(10 * CALLS):
        call = calls.make(name, (SEED, number))
        args, kwargs = call.arguments(calls.ours(call))
        args, kwargs = dense(args), {k: dense(v) for k, v in kwargs.items()}
        try:
            want = function(*args, **kwargs)
        except (bc.BaracudaError, TypeError) as error:
            with pytest.raises(type(error)):
                traced(function, *args, **kwargs)
            continue
        same(traced(function, *args, **kwargs), want)
        if (done := done + 1) == CALLS:
            return
    assert done, "no call was accepted"


def training_step(x: Any, w: Any, b: Any, target: Any, rate: Any) -> Any:
    y, pull = bc.vjp(F.matmul, x, w)
    z, pull_add = bc.vjp(F.add, y, b)
    loss, pull_loss = bc.vjp(F.cross_entropy, z, target)
    dz, db = pull_add(pull_loss(F.ones_like(loss)))
    _, dw = pull(dz)
    F.sub(w, F.mul(dw, rate), out=w)
    F.sub(b, F.mul(db, rate), out=b)
    return loss


def test_a_training_step_writes_its_parameters() -> None:
    b, rate = np.zeros(10, np.float32), np.array(0.5, np.float32)
    run = bc.trace(training_step, X, W, b, CLASSES, rate).compile()
    ours, eager = (W.copy(), b.copy()), (W.copy(), b.copy())
    for step in range(3):
        rate = np.array(0.5 / (step + 1), np.float32)
        same(run.run(X, *ours, CLASSES, rate), training_step(X, *eager, CLASSES, rate))
        same(ours, eager)
    assert run.memory.planned <= run.memory.unplanned and run.memory.lower_bound <= run.memory.planned


def test_views_results_and_nesting() -> None:
    def f(a: Any, *, d: dict[str, Any]) -> Any:
        h = F.relu(F.matmul(a, d["w"]))
        part = h.reshape(8, 2, 5)[:, 1].T
        return {"h": h, "part": part, "again": h, "a": a, "rows": a[2:4], "n": 3}, [F.sum(part)]

    got = traced(f, X, d={"w": W})
    h = F.relu(F.matmul(X, W))
    part = h.reshape(8, 2, 5)[:, 1].T
    same(
        got, ({"h": h, "part": part, "again": h, "a": X, "rows": X[2:4], "n": 3}, [F.sum(bc.from_dlpack(part)).numpy()])
    )
    assert got[0]["h"] is not got[0]["again"]


def test_captured_tensors_are_seen_as_they_are_at_the_run() -> None:
    bias, table = np.ones(10, np.float32), RNG.normal(size=(4, 6)).astype(np.float32)
    run = bc.trace(lambda x: (F.add(F.matmul(x, W), bias), F.exp(bias), F.add(table[:3], table.T[:3, :3].sum())), X)
    plan = run.compile()
    bias[:] = 2
    table[0] = 3
    y, e, _ = plan.run(X)
    same((y, e), (F.add(F.matmul(X, W), bias), F.exp(bias)))
    assert plan.memory.weights >= W.nbytes + bias.nbytes and len(run.constants) == 3
    # Views of one array, of which the later ones reach further, and a write to it.
    cache = np.zeros((6, 4), np.float32)
    write = bc.trace(
        lambda x: (F.add(cache[1:3], x, out=bc.from_dlpack(cache)[1:3]), F.sum(cache))[1], X[:2, :4]
    ).compile()
    for k in (1, 2):
        assert write.run(np.ones((2, 4), np.float32)) == 8 * k
        np.testing.assert_array_equal(cache[1:3], k)


def test_captured_views_that_overlap_in_one_call() -> None:
    """Whichever comes first: later ones may begin before it, or join two."""
    a = RNG.normal(size=(9, 4)).astype(np.float32)

    def f(x: Any) -> Any:
        return (
            F.add(a[4:6], a[3:5]), F.cat([a[7:9], a[0:2], x]), F.add(a[1:8], 1.0), F.add(F.add(a[2:4], a[0:2]), a[::4][:2]),
            F.sum(a.T[1:3]), F.add(a[5:3:-1], a[4:6]),
        )  # fmt: skip

    graph = bc.trace(f, X[:1, :4].copy())
    assert len(graph.constants) == 1
    plan = graph.compile()
    for _ in range(2):
        same(plan.run(X[:1, :4].copy()), f(X[:1, :4].copy()))
        a += 1
    mixed = np.zeros(8, np.uint8)
    odd = np.frombuffer(mixed.data, np.float32, 1, 1)
    with pytest.raises(bc.BaracudaError):
        bc.trace(lambda x: (F.add(mixed, 1), F.add(odd, x)), X[0, :1].copy()).compile()


def test_captured_torch_tensors_stay_where_they_are() -> None:
    weight = torch.ones(64, 10)
    plan = bc.trace(lambda x: F.matmul(x, weight), torch.tensor(X)).compile()
    want = F.matmul(torch.tensor(X), weight)
    assert torch.equal(plan.run(torch.tensor(X)), want)
    with pytest.raises(RuntimeError, match="resize"):
        weight.resize_(1000, 1000)
    weight.data = torch.zeros(64, 10)  # the graph keeps the memory that it has captured
    assert torch.equal(plan.run(torch.tensor(X)), want)


def test_random_functions_draw_at_each_run() -> None:
    def f(x: Any) -> Any:
        return F.dropout(x, 0.5), F.dropout(F.exp(x), 0.25)

    plan = bc.trace(f, X).compile()
    bc.manual_seed(7)
    want = [f(X), f(X)]
    bc.manual_seed(7)
    got = [plan.run(X), plan.run(X)]
    same(got, want)
    own = bc.Generator(3)
    assert not np.array_equal(plan.run(X, generator=own)[0], got[0][0]) and own.get_state()[1] > 0


def test_pickled_plans_draw_from_the_generator_that_manual_seed_seeds() -> None:
    own = bc.Generator(5)
    for generator in (None, own):
        plan = bc.trace(lambda x, g=generator: F.sample_tokens(x, generator=g), X).compile()
        copied = pickle.loads(pickle.dumps(plan))
        bc.manual_seed(7), own.manual_seed(5)
        want = [plan.run(X), plan.run(X)]
        bc.manual_seed(7)
        same([copied.run(X), copied.run(X)], want)
    assert pickle.loads(pickle.dumps(bc.trace(lambda x: F.exp(x), X).compile())).run(X).shape == X.shape


def test_gradients_of_a_graph() -> None:
    def loss(x: Any, w: Any, t: Any) -> Any:
        h = F.gelu(F.matmul(x[:, :32], w[:32]))
        return F.cross_entropy(F.add(h, F.mul(h, h)), t)

    graph = bc.trace(loss, X, W, CLASSES)
    value, (dx, dw) = graph.grad(graph.results, graph.tensors[:2]).compile().run(X, W, CLASSES)
    x, w = (torch.tensor(a, dtype=torch.float64, requires_grad=True) for a in (X, W))
    h = torch.nn.functional.gelu(x[:, :32] @ w[:32])
    want = torch.nn.functional.cross_entropy(h + h * h, torch.tensor(CLASSES))
    want.backward()
    np.testing.assert_allclose(value, want.item(), rtol=1e-5)
    np.testing.assert_allclose(dx, x.grad, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(dw, w.grad, rtol=1e-4, atol=1e-6)


def test_gradients_of_captured_tensors_and_of_what_nothing_depends_on() -> None:
    bias = RNG.normal(size=10).astype(np.float32)
    graph = bc.trace(lambda x, unused: F.mul(F.add(x, bias), F.add(x, bias[None])), X[:, :10].copy(), W)
    _, (db, du) = graph.grad(graph.results, (bias, graph.tensors[1])).compile().run(X[:, :10].copy(), W)
    np.testing.assert_allclose(db, 2 * (X[:, :10] + bias).sum(0), rtol=1e-5)
    assert not du.any() and du.shape == W.shape
    floor = bc.trace(lambda x: F.argmax(F.exp(x), 1), X)
    with pytest.raises(bc.InvalidProblemError, match="grad: outputs: got i64"):
        floor.grad(floor.results, floor.tensors)


def test_gradients_see_what_was_there() -> None:
    """A pull reads what its function was given: where a later node writes there, the gradient is refused, not wrong."""

    def f(x: Any, w: Any) -> Any:
        y = F.sum(F.mul(x, w))
        F.mul(w, 2.0, out=w)
        return y

    graph = bc.trace(f, X, X)
    with pytest.raises(bc.InvalidProblemError, match=r"grad: node 0 \(mul\): got w.*, which node 2 \(mul\) overwrites"):
        graph.grad(graph.results, graph.tensors[:1])

    def kept(x: Any, w: Any) -> Any:
        y = F.sum(F.mul(x, F.copy(w)))
        F.mul(w, 2.0, out=w)
        return y

    graph, w = bc.trace(kept, X, X), X.copy()
    _, (dx,) = graph.grad(graph.results, graph.tensors[:1]).compile().run(X, w)
    same(dx, X)
    same(w, X * 2)


def test_leaves_added_after_nodes() -> None:
    graph = bc.ComputeGraph()
    x = graph.add_leaf((8, 64), name="x")
    y = graph.add_op(F.exp, x)
    z = graph.add_leaf((8, 64), name="z")
    graph.add_op(F.add, z, y, out=z)
    graph.outputs(z, x)
    z0 = np.ones_like(X)
    found, given = graph.compile().run(X, z0)
    assert found is z0
    same(z0, F.add(np.ones_like(X), F.exp(X)))
    same(given, X)


def test_made_by_hand() -> None:
    graph = bc.ComputeGraph()
    x, w = graph.add_leaf((8, 64), name="x"), graph.add_leaf((64, 10), name="w")
    h = graph.add_op(F.matmul, x, w, name="project")
    low, at = graph.add_op(F.min, h, 1, name="smallest")
    plan = bc.plan(bc.SoftmaxDescriptor("softmax", (8, 10)))
    y = bc.empty((8, 10))
    y = graph.add_op(lambda: plan.run(x=h, y=bc.empty((8, 10))))
    graph.outputs(y, (low, at))
    assert (graph.n_leafs, graph.n_ops, graph.leaf_names) == (2, 3, ("x", "w"))
    assert [n.label for n in graph.nodes] == ["project", "smallest", ""]
    want = F.matmul(X, W)
    same(graph.compile().run(X, W), (F.softmax(want, 1), F.min(want, 1)))
    with pytest.raises(bc.InvalidProblemError, match=r"node 3 \(second\): matmul\(\)"):
        graph.add_op(F.matmul, w, w, name="second")
    with pytest.raises(bc.InvalidProblemError, match="x: got the name twice"):
        graph.add_leaf((3,), name="x")
    other = bc.ComputeGraph().add_leaf((3,))
    with pytest.raises(bc.InvalidProblemError, match="of another trace"):
        graph.add_op(F.exp, other)
    with pytest.raises(bc.InvalidProblemError, match="of another trace"):
        graph.outputs(other)
    with pytest.raises(bc.InvalidProblemError, match="without outputs"):
        bc.ComputeGraph().compile()
    with pytest.raises(bc.InvalidProblemError, match="a shape without memory"):
        F.exp(h)


@pytest.mark.parametrize(
    ("fn", "why"),
    [
        (lambda x: F.nonzero(x), "nonzero needs them"),
        (lambda x: x if F.any(x) else F.exp(x), "if F.any"),
        (lambda x: np.exp(x), "np.exp"),
        (lambda x: F.mul(x, float(x[0, 0])), "float"),
        (lambda x: F.mul(x, x[0, 0].item()), "item"),
        (lambda x: torch.from_dlpack(x), "from_dlpack"),
        (lambda x: F.masked_select(x, F.gt(x, 0)), "masked_select needs them"),
        (lambda x: F.one_hot(F.argmax(x, 1)), "one_hot needs them"),
    ],
)
def test_what_needs_numbers_names_the_line(fn: Callable[..., Any], why: str) -> None:
    with pytest.raises(bc.BaracudaError, match=rf"(?s)test_graph.py:\d+: .*{why}"):
        bc.trace(fn, X)
    same(F.exp(X), F.exp(X))  # nothing of the trace is left in what real calls use


@pytest.mark.parametrize(
    ("fn", "why"),
    [
        (lambda x: F.exp(x) if x > 0 else x, "bool: got a tensor of 512 elements"),
        (lambda x: F.exp(x) if x == 1 else x, "bool: got a tensor of 512 elements"),
        (lambda x: x.item(), "item: got 512 elements"),
        (lambda x: F.matmul(F.exp(x), x), r"node 1 \(<lambda>\): matmul"),
    ],
)
def test_what_goes_wrong_names_node_and_line(fn: Callable[..., Any], why: str) -> None:
    with pytest.raises(bc.BaracudaError, match=r"(?s)node \d \(<lambda>\): .*in .*test_graph.py:\d+: ") as caught:
        bc.trace(fn, X)
    assert re.search(why, str(caught.value))


def test_runs_refuse_other_arguments() -> None:
    run = bc.trace(lambda x, n, w: F.matmul(F.mul(x, n), w), X, 2.0, W).compile()
    same(run.run(X, 2.0, W), F.matmul(F.mul(X, 2.0), W))
    for args, why in (
        ((X, 2.0), "w: got nothing"),
        ((X,), "argument 1: got nothing"),
        ((X, 2.0, W, W), "got 4 positional arguments, want 3"),
        ((X, 3.0, W), "traced with 2.0"),
        ((X, 2.0, None), "w: got None"),
        ((X[:4], 2.0, W), "x: "),
        ((X.astype(np.float64), 2.0, W), "x: "),
    ):
        with pytest.raises(bc.InvalidProblemError, match=why):
            run.run(*args)
    nested = bc.trace(lambda d, *, x: F.matmul(x, d["w"][0]), {"w": [W]}, x=X).compile()
    for args, kwargs, why in (((), {"x": X}, "d: got nothing"), (({"w": [W]},), {}, "x: got nothing")):
        with pytest.raises(bc.InvalidProblemError, match=why):
            nested.run(*args, **kwargs)
    for fn in (lambda x: None, lambda x: len(x), lambda x: (F.exp(x), "text")[1]):
        with pytest.raises(bc.InvalidProblemError, match="neither returns nor writes a tensor"):
            bc.trace(fn, X).compile()
    with pytest.raises(bc.InvalidProblemError, match="passes: got 'fast'"):
        bc.trace(F.exp, X).compile(passes=["fast"])


def test_out_bind_and_threads() -> None:
    graph = bc.trace(lambda x, w: F.softmax(F.matmul(F.tanh(x), w), 1), X, W)
    plan = graph.compile()
    want, out = F.softmax(F.matmul(F.tanh(X), W), 1), np.empty((8, 10), np.float32)
    assert plan.run(X, W, out=out) is out
    same(out, want)
    out[:] = 0
    plan.bind(X, W, out=out)()
    same(out, want)
    got: list[Any] = [None] * 4

    def work(i: int) -> None:
        for _ in range(50):
            got[i] = plan.run(X, W)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    same(got, [want] * 4)
    again = bc.Program.from_bytes(plan.program.to_bytes(), plan.program.constants)
    same(again.run(X, W), want)


def test_pictures_and_texts() -> None:
    graph = bc.trace(lambda x, w: F.softmax(F.matmul(x, w) + W[0], 1), X, W)
    text = graph.explain()
    assert "leaf      x f32[8, 64]" in text and "constant0" in text and "softmax(%" in text
    root = ElementTree.fromstring(graph.to_svg())
    words = " ".join(root.itertext())
    assert all(word in words for word in ("0  matmul", "2  softmax", "x", "result 0", "f32[8, 10]"))
    assert graph.to_dot().count("->") == 6 and "digraph" in graph.to_dot()
    joined = bc.trace(lambda x, w, b: F.tanh(F.exp(F.relu(F.matmul(x, w) + b))), X, W, W[0]).compile()
    assert (joined.launches, "fused" in joined.explain()) == (2, True)
    assert "for matmul + add + relu" in joined.explain() and "for exp + tanh" in joined.explain()
    words = " ".join(ElementTree.fromstring(joined.to_svg()).itertext())
    assert all(word in words for word in ("0  matmul + add + relu", "1  exp + tanh", "x", "result 0", "f32[8, 10]"))
    assert joined.to_dot().count("->") == 5 and "exp + tanh" in joined.to_dot()
    plan = graph.compile()
    assert "softmax.forward.cpu.f32" in plan.explain() and f"scratch {plan.memory.planned} bytes" in plan.explain()


def test_profile_times_every_launch_on_copies() -> None:
    bias = np.ones(10, np.float32)

    def f(x: Any, w: Any) -> Any:
        y = F.add(F.matmul(x, w), bias)
        F.add(w, 1.0, out=w)
        return F.softmax(y, 1), y[1:3]

    plan = bc.trace(f, X, W).compile(passes=("dead", "in_place"))
    w = W.copy()
    found = plan.profile(X, w, runs=3)
    assert len(found.launches) == plan.launches and all(t.microseconds > 0 for t in found.launches)
    assert [t.name for t in found.launches] == ["matmul", "add", "add", "softmax", "copy of a result"]
    np.testing.assert_array_equal(w, W)
    assert "softmax.forward.cpu.f32" in str(found) and f"{len(found.launches)} launches" in str(found)
    words = " ".join(ElementTree.fromstring(found.to_svg()).itertext())
    assert "0 matmul" in words and "us" in words
    any_length = bc.trace(lambda x: F.softmax(F.matmul(x, x.T), 1), bc.TensorSpec((bc.Dim("n", max=99), 64))).compile()
    assert any_length.profile(X, runs=1).launches[0].bytes == (2 * X.size + 64) * 4
    for x, why in (
        (X[:, :63], r"x: got f32\[8, 63\] on cpu, want f32\[8, 64\]"),
        (X.astype(np.float64), r"x: got f64\[8, 64\]"),
        (X[0], "x: got rank 1, want 2"),
        (np.zeros((100, 64), np.float32), "x: got n = 100, want at most 99"),
    ):
        with pytest.raises(bc.InvalidProblemError, match=why):
            any_length.profile(x, runs=1)


def test_many_replays_leave_nothing_behind() -> None:
    import resource

    plan = bc.trace(lambda x, w: F.softmax(F.matmul(F.tanh(x), w), 1), X, W).compile()
    for _ in range(2000):
        plan.run(X, W)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(100_000 if FULL else 20_000):
        plan.run(X, W)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 4096  # KiB


def test_zeros_asarray_and_inference_inside() -> None:
    def f(x: Any) -> Any:
        z = bc.zeros(x.shape)
        shape = F.matmul.infer(x, bc.TensorSpec((64, 3))).shape
        return F.add(z, x, out=z), F.mul(x, bc.asarray([2.0] * 64, "f32")), F.full(shape, 3.0), F.arange(4)

    got = traced(f, X)
    same(got[:2], (X, X * 2))
    same(got[2:], (np.full((8, 3), 3.0, got[2].dtype), np.arange(4)))
