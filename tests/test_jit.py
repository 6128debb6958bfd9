"""bc.jit: one program for each kind of arguments, the numbers of plain calls, and what it says."""

from __future__ import annotations

import copy
import gc
import threading
import warnings
import weakref
from collections import OrderedDict, defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

import baracuda as bc
import baracuda.functional as F

RNG = np.random.default_rng(5)
X, W = RNG.normal(size=(8, 6)).astype(np.float32), RNG.normal(size=(6, 4)).astype(np.float32)


def test_calls_give_what_the_function_gives_and_one_program_serves_a_kind_of_arguments() -> None:
    def f(x: Any, w: Any, *, scale: float = 2.0) -> Any:
        return {"y": F.tanh(F.mul(F.matmul(x, w), scale)), "both": (x, 3)}

    fast = bc.jit(f)
    for x in (X, X[:3], X.astype(np.float64)[:, :6], X):
        w = W.astype(x.dtype)
        for scale in (2.0, -0.5):
            got, want = fast(x, w, scale=scale), f(x, w, scale=scale)
            np.testing.assert_array_equal(got["y"], want["y"])
            assert np.array_equal(got["both"][0], x) and got["both"][1] == 3
    assert fast.cache_size == 3 and fast(X, W)["y"].shape == (8, 4) and fast.cache_size == 4  # a default is a number
    fast.clear_cache()
    assert fast.cache_size == 0 and fast(X, W)["y"].shape == (8, 4)
    assert fast.__name__ == "f" and repr(fast) == "<compiled f, 1 programs>"


def test_layouts_and_kinds_of_arrays() -> None:
    fast = bc.jit(lambda x: F.exp(x[1:].T))
    want = np.exp(X[1:].T)
    for x in (X, np.asfortranarray(X), np.repeat(X, 2, 1)[:, ::2], torch.tensor(X), bc.asarray(X)):
        got = fast(x)
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-6)
        assert type(got) is type(x)
    with pytest.raises(bc.InvalidProblemError, match="strides"):
        fast(X[::-1])


def test_static_values_decide_and_numbers_do_not() -> None:
    traced = []

    def f(x: Any, axis: int, mode: str, flag: bool, factor: Any) -> Any:
        traced.append((axis, mode, flag))
        y = F.softmax(x, axis) if mode == "softmax" else F.cumsum(x, axis)
        return y * factor if flag else y

    fast = bc.jit(f, static_argnums=1)
    for axis, mode, flag, factor in (
        (0, "softmax", True, 2),
        (0, "softmax", True, 3),
        (1, "softmax", True, 2.5),
        (1, "", False, 1),
    ):
        got = fast(X, axis, mode, flag, factor)
        y = F.softmax(X, axis) if mode else F.cumsum(X, axis)
        np.testing.assert_array_equal(got, y * np.float32(factor) if flag else y)
    assert len(traced) == fast.cache_size == 3
    named = bc.jit(lambda x, axis: F.sum(x, axis), static_argnames="axis")
    np.testing.assert_array_equal(named(X, axis=0), F.sum(X, 0))
    np.testing.assert_array_equal(named(X, axis=1), F.sum(X, 1))
    with pytest.raises(
        bc.InvalidProblemError, match="axis, factor: numbers are tensors of each run; name those in static_argnums"
    ):
        bc.jit(f)(X, 0, "", False, 1)
    with pytest.raises(bc.InvalidProblemError, match=r"axis: got \[0\], want a value that can be hashed"):
        fast(X, [0], "", True, 1)


def test_donated_memory_holds_the_results() -> None:
    def step(w: Any, g: Any, lr: Any) -> Any:
        return w - lr * g

    w, g = W.copy(), np.ones_like(W)
    got = bc.jit(step, donate_argnums=0)(w, g, 0.5)
    assert got is w
    np.testing.assert_array_equal(w, W - np.float32(0.5))
    state = {"w": W.copy(), "m": W * 2}
    new = bc.jit(lambda s, g: {"w": s["m"] + g, "m": s["w"] * 2}, donate_argnums=0)(state, g)
    np.testing.assert_array_equal(new["w"], W * 2 + 1)
    np.testing.assert_array_equal(new["m"], W * 2)
    assert {id(new["w"]), id(new["m"])} == {id(state["w"]), id(state["m"])}
    # Results that are arguments, or views of them, have the values from before.
    for f in (lambda s: {"w": s["m"], "m": s["w"]}, lambda s: (s["w"] * 2, s["w"], s["m"].T, s["w"][::-1])):
        plain = f({"w": W, "m": W * 3})
        given = bc.jit(f, donate_argnums=0)({"w": W.copy(), "m": W * 3})
        for a, b in zip(*(list(r.values()) if isinstance(r, dict) else r for r in (plain, given)), strict=True):
            np.testing.assert_array_equal(a, b)
    got = bc.jit(lambda a, b: b * 2, donate_argnums=(0, 1))(X.copy(), W.copy())
    np.testing.assert_array_equal(got, W * 2)


def test_a_training_step_learns_and_is_one_program() -> None:
    x = RNG.normal(size=(64, 6)).astype(np.float32)
    target = (x[:, 0] > 0).astype(np.int64)
    params = {"w": W[:, :2].copy(), "b": np.zeros(2, np.float32)}

    def loss(params: Any, x: Any, target: Any) -> Any:
        return F.cross_entropy(F.matmul(x, params["w"]) + params["b"], target)

    @bc.jit
    def step(params: Any, x: Any, target: Any, lr: float) -> Any:
        value, grads = bc.value_and_grad(loss)(params, x, target)
        return value, {k: params[k] - lr * grads[k] for k in params}

    losses = []
    for i in range(60):
        value, params = step(params, x, target, 1.0 / (1 + i / 50))
        losses.append(float(value))
    assert losses[-1] < 0.3 * losses[0] and step.cache_size == 1
    plain, gradient = bc.value_and_grad(loss)(params, x, target)
    fast, compiled = bc.jit(bc.value_and_grad(loss))(params, x, target)
    np.testing.assert_array_equal(fast, plain)
    for k in params:
        np.testing.assert_array_equal(compiled[k], gradient[k])


@dataclass
class Scale:
    weight: Any
    bias: Any


class Model:
    def __init__(self) -> None:
        self.weight = W.copy()

    @bc.jit
    def forward(self, x: Any) -> Any:
        return F.matmul(x, self.weight)


def test_models_with_attributes_say_what_they_capture() -> None:
    one, other = Model(), Model()
    other.weight *= 2
    np.testing.assert_array_equal(one.forward(X) * 2, other.forward(X))
    one.weight += 1  # captured by reference
    np.testing.assert_array_equal(one.forward(X), F.matmul(X, W + 1))
    text = one.forward.lower(X).explain()
    assert "captured by reference, read in" in text and "return F.matmul(x, self.weight)" in text
    with pytest.warns(UserWarning, match="got no tensor among its arguments"):
        bc.jit(lambda: F.relu(X))()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = bc.jit(lambda s, x: x * s.weight + s.bias)(Scale(X, 1.0), X)
    np.testing.assert_array_equal(got, X * X + 1)


@dataclass
class Line:
    """Compares by value, has no hash, and is copied with all that it has."""

    slope: float

    @bc.jit
    def at(self, x: Any) -> Any:
        return x * self.slope


def test_methods_of_copies_and_of_equal_instances_are_their_own() -> None:
    one = Line(2.0)
    np.testing.assert_array_equal(one.at(X), X * 2)
    other, equal = copy.deepcopy(one), Line(2.0)
    other.slope = 3.0
    np.testing.assert_array_equal(other.at(X), X * 3)
    np.testing.assert_array_equal(equal.at(X), X * 2)
    assert one.at is one.at and one.at is not equal.at
    alive = weakref.ref(one)
    del one
    gc.collect()
    assert alive() is None


def test_numbers_of_numpy_are_numbers_and_kinds_of_dicts_are_dicts() -> None:
    fast = bc.jit(lambda p, rate: {k: v * rate for k, v in p.items()})
    for p in ({"a": X, "b": W}, OrderedDict(b=W, a=X), defaultdict(list, a=X, b=W)):
        for rate in (np.float32(0.5), np.float64(2), 3.0, np.asarray(0.5)):
            got = fast(p, rate)
            np.testing.assert_array_equal(got["a"], X * np.float32(rate))
            np.testing.assert_array_equal(got["b"], W * np.float32(rate))
    assert fast.cache_size <= 2


def test_random_numbers_are_drawn_at_each_run_once_for_both_passes() -> None:
    fast = bc.jit(bc.value_and_grad(lambda x: F.sum(F.dropout(x, 0.5))))
    x = np.ones(1000, np.float32)
    bc.manual_seed(3)
    first, second = fast(x), fast(x)
    bc.manual_seed(3)
    again = fast(x)
    assert float(first[0]) == float(first[1].sum()) != float(second[0])
    np.testing.assert_array_equal(first[1], again[1])


def test_lowering_takes_specs() -> None:
    graph = bc.jit(lambda x, w: F.matmul(x, w)).lower(bc.TensorSpec((3, 6)), W)
    assert graph.leaf_names == ("x", "w") and "matmul" in graph.explain()


def test_errors_of_a_call_are_its_own() -> None:
    fast = bc.jit(lambda i: F.embedding(i, W))
    fast(np.array([1, 2]))
    with pytest.raises(bc.IndexOutOfRangeError):
        fast(np.array([1, 99]))
    with pytest.raises(bc.InvalidProblemError, match=r"test_jit\.py"):
        bc.jit(lambda x: x if x[0, 0] > 0 else -x)(X)
    for wrong, words in (((3,), "fn: got 3"), ((F.sum, "x"), "static_argnums: got 'x'")):
        with pytest.raises(bc.InvalidProblemError, match=words):
            bc.jit(*wrong)


def test_threads_share_the_programs() -> None:
    fast = bc.jit(lambda x: F.softmax(x * 2, -1))
    found: list[Any] = []
    threads = [threading.Thread(target=lambda n=n: found.append((n, fast(X[: n % 3 + 1])))) for n in range(24)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert fast.cache_size == 3 and len(found) == 24
    for n, y in found:
        np.testing.assert_array_equal(y, F.softmax(X[: n % 3 + 1] * 2, -1))
