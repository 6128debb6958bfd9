"""bc.vjp, bc.grad and bc.value_and_grad of functions that users write: beside torch's autograd, and what they refuse."""

from __future__ import annotations

import re
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from opinfo import entries

import baracuda as bc
import baracuda.functional as F
from baracuda.call.grad import Pulled
from baracuda.call.tape import element_of
from baracuda.prove.facts import collected
from conftest import SEED
from harness.differential import calls, functions

SAMPLES = collected("samples")

KINDS: dict[str, Callable[[Any], Any]] = {
    "numpy": np.asarray, "torch": torch.tensor, "bc": bc.asarray,
    "jax": lambda x: pytest.importorskip("jax").numpy.asarray(x),
}  # fmt: skip


def same(got: Any, want: Any) -> None:
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=2e-5, atol=2e-5)


# --- random functions

UNARY = (
    ("tanh", torch.tanh),
    ("sigmoid", torch.sigmoid),
    ("sin", torch.sin),
    ("softplus", torch.nn.functional.softplus),
)
BINARY = (("add", torch.add), ("sub", torch.sub), ("mul", torch.mul))


def random_function(rng: np.random.Generator) -> Callable[[Any, Any], Any]:
    """A function of two (4, 6) arrays, given a namespace: functions, operators, views, second uses; a number at the end."""
    steps = [(rng.integers(10), rng.integers(100), rng.integers(100), rng.integers(100)) for _ in range(8)]

    def f(ours: bool, a: Any, b: Any) -> Any:
        def call(name: tuple[str, Any], *args: Any) -> Any:
            return (getattr(F, name[0]) if ours else name[1])(*args)

        def square(x: Any) -> Any:  # back to (4, 6)
            return x if tuple(x.shape) == (4, 6) else (x if x.shape[0] == 4 else x.T)

        values = [a, b]
        for kind, i, j, k in steps:
            x, y = values[i % len(values)], values[j % len(values)]
            if kind < 2:
                made = call(UNARY[k % len(UNARY)], x)
            elif kind < 4:
                made = call(BINARY[k % len(BINARY)], x, y)
            elif kind == 4:
                made = x * 0.5 - y
            elif kind == 5:
                made = square(x.T) + y[k % 4]  # a row, broadcast
            elif kind == 6:
                made = x[::-1] * y if ours else x.flip(0) * y
            elif kind == 7:
                made = x.reshape(6, 4).T * y
            elif kind == 8:
                made = y + x[:, k % 6 : k % 6 + 1]
            else:
                made = (1.5 - x) * x
            values.append(made)
        total = values[-1] * values[2] + values[int(steps[0][1]) % len(values)]
        return F.sum(total) if ours else total.sum()

    return f


@pytest.mark.parametrize("number", range(60))
def test_random_functions_have_the_gradients_of_torch(number: int) -> None:
    rng = np.random.default_rng([SEED, number])
    f = random_function(rng)
    a, b = rng.normal(size=(2, 4, 6))  # doubles: what eight steps of floats round differs between processors
    layouts = (
        np.ascontiguousarray,
        np.asfortranarray,
        lambda x: np.repeat(x, 2, 1)[:, ::2],
        lambda x: x[::-1].copy()[::-1],
    )
    given = layouts[number % 4](a), layouts[number // 4 % 4](b)
    ta, tb = (torch.tensor(x, requires_grad=True) for x in (a, b))
    f(False, ta, tb).backward()
    want = [np.zeros_like(a) if x.grad is None else x.grad.numpy() for x in (ta, tb)]
    scale = max(1.0, *(float(np.abs(w).max()) for w in want))
    value, got = bc.value_and_grad(lambda a, b: f(True, a, b), argnums=(0, 1))(*given)
    for x, w in zip(got, want, strict=True):
        np.testing.assert_allclose(x / scale, w / scale, atol=1e-12)
    # Compiled, the same bits.
    compiled = bc.jit(bc.value_and_grad(lambda a, b: f(True, a, b), argnums=(0, 1)))(a, b)
    again = bc.value_and_grad(lambda a, b: f(True, a, b), argnums=(0, 1))(a, b)
    np.testing.assert_array_equal(compiled[0], again[0])
    for x, y in zip(compiled[1], again[1], strict=True):
        np.testing.assert_array_equal(x, y)
    assert isinstance(value, np.ndarray) and all(isinstance(x, np.ndarray) for x in got)


# --- every function: its gradients go to the arguments that they belong to

ENTRIES: dict[str, list[Any]] = {}  # torch's own samples
for _entry in entries.table():
    if torch.float32 in _entry.dtypes and (_fn := entries.function(_entry)) is not None:
        ENTRIES.setdefault(getattr(_fn, "__name__", ""), []).append(_entry)
NAMES = [n for n in dir(F) if getattr(getattr(F, n), "vjp_rule", None) is not None]


def samples(name: str) -> Any:
    if name in SAMPLES:
        yield SAMPLES[name]
    if name in functions.names():
        for number in range(12):
            call = calls.make(name, (SEED, number))
            yield call.arguments(calls.ours(call))
    for entry in ENTRIES.get(name, ()):
        yield from entries.samples(entry, torch.float32)[:8]


def floats(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [x for v in value for x in floats(v)]
    element = None if isinstance(value, np.generic) else element_of(value)
    return [value] if element is not None and element.is_float else []


def numbers(x: Any) -> np.ndarray:
    return np.asarray(F.cast(x, "f64"))


@pytest.mark.parametrize("name", NAMES)
def test_gradients_reach_the_arguments_that_they_belong_to(name: str) -> None:
    """By the tape, which knows the function's constants by name, and by its pull alone, in order."""
    fn, checked = getattr(F, name), 0
    parameters = list(fn.__signature__.parameters)
    for args, kwargs in samples(name):
        options = {k: v for k, v in kwargs.items() if k != "out"}
        try:
            bc.manual_seed(1)
            y, pull = bc.vjp(fn, *args, **options)
            dys = [F.ones_like(x) for x in floats(y)]
            found = pull(tuple(dys) if len(dys) > 1 else dys[0]) if dys else ()
        except (bc.BaracudaError, TypeError):
            continue
        want = [x for x in (found if isinstance(found, (list, tuple)) else (found,)) if x is not None]
        wanted = [
            i for i, x in enumerate(args) if floats(x) and parameters[min(i, len(parameters) - 1)] not in fn.constants
        ]
        if not wanted or len(want) != sum(len(floats(args[i])) for i in wanted):
            continue  # gradients of whole numbers, too, or of keywords
        bc.manual_seed(1)
        called = Pulled(lambda *a, options=options: fn(*a, **options), args, {}, wanted, "grad")
        if len(called.results) != len(dys):
            continue
        got = floats(called.pull(dys))
        for a, b in zip(got, want, strict=True):
            np.testing.assert_array_equal(numbers(a), numbers(b))
        checked += 1
        if checked == 3:
            return
    if not checked:
        pytest.skip("no sample of its facts or of random calls has gradients of its positional floats alone")


def test_batch_norm_of_stored_statistics_gives_weights_their_own_gradient() -> None:
    rng = np.random.default_rng(1)
    x, mean, var, weight, bias = (rng.uniform(1, 2, size=s).astype(np.float32) for s in ((8, 3, 4), 3, 3, 3, 3))

    def f(x: Any, weight: Any, bias: Any) -> Any:
        return F.sum(F.batch_norm(x, mean, var, weight, bias, training=False) ** 2)

    tx, tw, tb = (torch.tensor(v, requires_grad=True) for v in (x, weight, bias))
    (torch.nn.functional.batch_norm(tx, torch.tensor(mean), torch.tensor(var), tw, tb) ** 2).sum().backward()
    graph = bc.trace(f, x, weight, bias)
    _, compiled = graph.grad(graph.results, graph.tensors).compile().run(x, weight, bias)
    for got in (bc.grad(f, (0, 1, 2))(x, weight, bias), compiled):
        for g, t in zip(got, (tx, tw, tb), strict=True):
            np.testing.assert_allclose(g, t.grad.numpy(), rtol=2e-5, atol=1e-4)


# --- arguments and results

Pair = namedtuple("Pair", "w b")


@dataclass(frozen=True)
class Layer:
    w: Any
    b: Any
    name: str = "layer"


@pytest.mark.parametrize("kind", KINDS)
def test_arguments_are_nested_and_gradients_are_of_their_kind(kind: str) -> None:
    make, rng = KINDS[kind], np.random.default_rng(2)
    w, b, x = (rng.normal(size=s).astype(np.float32) for s in ((3, 4), 4, (5, 3)))
    params = {"first": Pair(make(w), make(b)), "more": [Layer(make(w), make(b)), 3]}

    def f(params: Any, x: Any) -> Any:
        layer = params["more"][0]
        assert isinstance(layer, Layer) and layer.name == "layer" and params["more"][1] == 3
        return F.mean(F.tanh(F.matmul(x, params["first"].w) + params["first"].b) * (F.matmul(x, layer.w) + layer.b))

    value, got = bc.value_and_grad(f)(params, make(x))
    tw, tb, tv, tc = (torch.tensor(v, requires_grad=True) for v in (w, b, w, b))
    tx = torch.tensor(x)
    loss = (torch.tanh(tx @ tw + tb) * (tx @ tv + tc)).mean()
    loss.backward()
    same(value, loss.detach())
    assert type(value) is type(make(x)) and isinstance(got["first"], Pair) and isinstance(got["more"][0], Layer)
    for g, t in ((got["first"].w, tw), (got["first"].b, tb), (got["more"][0].w, tv), (got["more"][0].b, tc)):
        assert type(g) is type(make(x))
        same(g, t.grad)
    assert got["more"][1] is None and got["more"][0].name is None


def test_python_decides_by_values() -> None:
    def f(x: Any) -> Any:
        total = x * 0.0
        while float(F.sum(total)) < 10:  # so many times, as the values say
            total = total + x * x
        return F.sum(total) if total[0] > 0 else F.sum(x)

    x = np.array([1.0, 2.0], np.float32)
    same(bc.grad(f)(x), 2 * 2 * x)


def test_results_are_nested_and_what_is_no_float_has_no_gradient() -> None:
    x = np.array([3.0, 1.0, 2.0], np.float32)
    y, pull = bc.vjp(lambda x: {"sorted": F.sort(x), "sum": (F.sum(x), "text")}, x)
    values, places = y["sorted"]
    assert values.tolist() == [1, 2, 3] and places.tolist() == [1, 2, 0] and y["sum"][1] == "text"
    dx = pull({"sorted": (np.array([1, 10, 100], np.float32), None), "sum": (np.array(1000, np.float32), None)})
    assert dx.tolist() == [1100, 1001, 1010]
    loss, more = bc.value_and_grad(lambda x: (F.sum(x), {"twice": x * 2}), has_aux=True)(x)[0]
    assert float(loss) == 6 and more["twice"].tolist() == [6, 2, 4]
    both = bc.value_and_grad(lambda x: (F.sum(x * x), F.histc(x)), has_aux=True)(
        x
    )  # which has no gradient, and needs none
    assert both[1].tolist() == [6, 2, 4] and both[0][1].sum() == 3


def test_gradients_are_in_memory_of_their_own() -> None:
    x, y = np.ones(3, np.float32), np.ones(3, np.float32)
    dy = np.full(3, 2, np.float32)
    _, pull = bc.vjp(lambda x, y: x + y, x, y)
    dx, second = pull(dy)
    assert not any(np.shares_memory(a, b) for a, b in ((dx, dy), (second, dy), (dx, second)))
    dx += 1
    assert pull(dy)[1].tolist() == second.tolist() == [2, 2, 2], "a pull can be called again"


def test_halves_and_numpys_operators() -> None:
    x = np.arange(1, 5, dtype=ml_dtypes.bfloat16)
    assert bc.grad(lambda x: F.sum(x * x))(x).astype(np.float32).tolist() == [2, 4, 6, 8]
    a, b = np.ones((2, 3), np.float32), np.arange(3, dtype=np.float32)
    same(bc.grad(lambda b: np.sum(b * b))(b), 2 * b)  # which calls the method
    got = bc.grad(lambda b: F.sum(a * b + np.float32(2) * b - a / (b + 1)))(b)
    same(got, 2 + 4 + 2 / (b + 1) ** 2)


def test_gradients_go_through_fused_jitted_and_engine_functions() -> None:
    fused, engine, x = bc.expr.fuse(lambda a, b: F.tanh(a) * b), bc.Engine(), np.array([0.5, -1.0, 2.0], np.float32)
    slope = 1 - np.tanh(x) ** 2
    same(bc.grad(lambda x: F.sum(fused(x, np.float32(3) * np.ones(3, np.float32))))(x), 3 * slope)
    same(bc.grad(lambda x: F.sum(bc.jit(lambda z: F.tanh(z) * 2)(x) - np.float32(2)))(x), 2 * slope)
    same(bc.grad(lambda x: F.sum(engine.F.tanh(x)))(x), slope)
    y, pull = bc.vjp(fused, x, x)
    same(y, np.tanh(x) * x)
    same(pull(np.ones_like(x))[1], np.tanh(x))
    graph = bc.trace(lambda x: F.sum(fused(x, x)), x)
    same(graph.grad(graph.results, graph.tensors).compile().run(x)[1][0], slope * x + np.tanh(x))


def test_methods_and_keys_with_arrays() -> None:
    x, i = np.arange(12, dtype=np.float32).reshape(3, 4), np.array([0, 2, 2])
    got = bc.grad(lambda x: (x[i] ** 2).sum() + x.mean() + x[[1, 2], [0, 3]].sum() + x[x.numpy() > 5].sum())(x)
    t = torch.tensor(x, requires_grad=True)
    ((t[i] ** 2).sum() + t.mean() + t[[1, 2], [0, 3]].sum() + t[t > 5].sum()).backward()
    same(got, t.grad)


def test_stopped_values_are_constants() -> None:
    x = np.array([2.0, 3.0], np.float32)
    same(bc.grad(lambda x: F.sum(bc.stop_gradient(x) * x))(x), x)
    assert bc.stop_gradient({"a": [x]})["a"][0] is x


# --- refusals

X = np.ones((2, 3), np.float32)
REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "no number": (lambda x: x, "want one number, of rank 0"),
    "a constant": (lambda x: 3.0, "depends on none of the arguments"),
    "values read": (lambda x: x.numpy().sum(), "depends on none of the arguments"),
    "several": (lambda x: (F.sum(x), F.sum(x)), "Say has_aux=True, or use bc.vjp"),
    "NumPy's function": (lambda x: F.sum(np.exp(x)), "np.exp: got a tensor whose gradient is taken"),
    "NumPy's matrix": (lambda x: np.linalg.inv(x), "NumPy: got a tensor whose gradient is taken"),
    "no gradient": (lambda x: F.sum(F.histc(x)), r"histc has no gradient.*\n  in .*test_grad.py:\d+: "),
    "a constant of the function": (lambda x: F.mse_loss(X, x), "target is a constant of mse_loss.*stop_gradient"),
    "out": (lambda x: F.sum(F.relu(x, out=X.copy())), "relu: out: got a tensor beside one whose gradient is taken"),
    "in place": (lambda x: F.sum(F.clip_grad_norm_([x], 1.0) * x), "clip_grad_norm_: .*may write to"),
    "assignment": (lambda x: x.__setitem__(0, 1), "want it to stay as it is"),
    "added to": (lambda x: x.__iadd__(1), r"Write x = x \+ y"),
    "of gradients": (lambda x: bc.grad(lambda z: F.sum(z * z))(x), "no gradients of gradients"),
    "a plan": (lambda x: bc.plan(bc.UnaryDescriptor("exp", (2, 3))).run(x), "Tracked"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_gradient_is_refused_by_name(name: str) -> None:
    fn, words = REFUSED[name]
    with pytest.raises((bc.BaracudaError, TypeError)) as found:
        bc.grad(fn)(X)
    assert re.search(words, str(found.value), re.DOTALL), found.value


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: bc.grad(3), "fn: got 3, want a function"),
        (lambda: bc.grad(F.sum, argnums="0"), "argnums: got '0'"),
        (lambda: bc.grad(F.add, argnums=(0, -2))(X, X), "want each argument once"),
        (lambda: bc.grad(F.sum, argnums=1)(X), "argnums: got 1 and 1 positional arguments"),
        (lambda: bc.grad(F.sum)(np.arange(3)), "input: got i64 of shape .3,., want a tensor of floats"),
        (lambda: bc.grad(F.sum)(2.0), "input: got 2.0, want a tensor of floats"),
        (lambda: bc.vjp(lambda x: x, 3), "want at least one tensor of floats"),
        (lambda: bc.vjp(lambda x: (x, x), X)[1](X), "nested as the results are"),
        (lambda: bc.vjp(lambda x: x, X)[1](X[0]), r"got f32 of shape \(3,\), want a float tensor of shape \(2, 3\)"),
    ],
)
def test_wrong_calls_are_refused_by_name(call: Callable[[], Any], words: str) -> None:
    with pytest.raises(bc.BaracudaError, match=words):
        call()


_SEVERAL = {
    "matmul": ((3, 5), (5, 4)), "mm": ((3, 5), (5, 4)), "bmm": ((2, 3, 5), (2, 5, 4)), "mv": ((3, 5), (5,)),
    "dot": ((5,), (5,)), "vdot": ((5,), (5,)), "linear": ((2, 3, 5), (4, 5), (4,)),
    "addmm": ((3, 4), (3, 5), (5, 4)), "baddbmm": ((2, 3, 4), (2, 3, 5), (2, 5, 4)),
    "addbmm": ((3, 4), (2, 3, 5), (2, 5, 4)), "addmv": ((3,), (3, 5), (5,)),
    "conv1d": ((2, 3, 9), (4, 3, 3), (4,)), "conv2d": ((2, 3, 9, 8), (4, 3, 3, 2), (4,)),
    "conv3d": ((1, 2, 4, 5, 6), (3, 2, 2, 2, 2), (3,)), "conv_transpose1d": ((2, 3, 9), (3, 4, 3), (4,)),
    "conv_transpose2d": ((2, 3, 4, 5), (3, 4, 3, 2), (4,)), "conv_transpose3d": ((1, 2, 2, 3, 2), (2, 3, 2, 2, 2), (3,)),
}  # fmt: skip


@pytest.mark.parametrize("name", _SEVERAL)
def test_gradients_that_nobody_asked_for_are_not_computed(name: str) -> None:
    rng = np.random.default_rng([SEED, 5])
    fn = getattr(F, name)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in _SEVERAL[name]]

    def loss(*given: Any) -> Any:
        return F.sum(F.square(fn(*given)))

    everything = tuple(range(len(arrays)))
    whole = bc.grad(loss, everything)(*arrays)
    size = len(bc.jit(bc.grad(loss, everything)).lower(*arrays).explain())
    for chosen in everything:
        only = bc.grad(loss, chosen)
        same(only(*arrays), whole[chosen])
        assert len(bc.jit(only).lower(*arrays).explain()) < size
    if len(arrays) == 3:
        for found, want in zip(bc.grad(loss, (1, 2))(*arrays), whole[1:], strict=True):
            same(found, want)


@pytest.mark.parametrize("mask", [(False, False, True), (1, 0, 1), (True, True), True, (False, False, False), "xyz"])
def test_masks_of_convolutions_gradients_are_checked(mask: Any) -> None:
    x, w = np.ones((1, 2, 5, 5), np.float32), np.ones((3, 2, 3, 3), np.float32)
    with pytest.raises(bc.InvalidProblemError, match="output_mask: got"):
        F.conv2d_backward(np.ones((1, 3, 3, 3), np.float32), x, w, output_mask=mask)


@pytest.mark.parametrize("kind", KINDS)
def test_values_that_are_used_whole_and_as_views_get_the_sum(kind: str) -> None:
    x = KINDS[kind](np.arange(6, dtype=np.float32).reshape(3, 2))
    want = 2 * np.arange(6).reshape(3, 2) + np.array([[1], [0], [0]])
    same(bc.grad(lambda x: F.add(F.sum(F.mul(x, x)), F.sum(x[0])))(x), want)
    same(bc.grad(lambda x: F.add(F.sum(x[0]), F.sum(F.mul(x, x))))(x), want)
