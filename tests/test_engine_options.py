"""Every option of an engine with `out=`, gradients and traces, of every function: done, or an error, never left undone."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
import torch
from differential import calls, functions

import baracuda as bc
import baracuda.functional as F
from baracuda.engine.functions import PRODUCTS
from conftest import FULL, SEED
from test_engine import equal, tensors_of
from test_graph import dense, numbers
from test_infer import NEEDS_DATA

CALLS = 10 if FULL else 1
WRITING = sorted(
    n for n in {*functions.names()} - NEEDS_DATA if "out" in inspect.signature(getattr(F, n), eval_str=False).parameters
)
ENGINES: dict[str, Any] = {
    "plain": dict,
    "bf16": lambda: {"compute": "bf16"},
    "f16": lambda: {"compute": "f16"},
    "cpu where memory lacks": lambda: {"on_no_memory": "cpu"},
    "an arena": lambda: {"arena": "1MiB"},
    "a limit": lambda: {"memory_limit": "64MiB"},
}


def made(name: str, count: int) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Calls that the function accepts, without `out`."""
    found: list[Any] = []
    for number in range(20 * count):
        call = calls.make(name, (SEED, number))
        args, kwargs = call.arguments(calls.ours(call))
        args, kwargs = dense(args), {k: dense(v) for k, v in kwargs.items() if k != "out"}
        try:
            want = getattr(F, name)(*args, **kwargs)
        except (bc.BaracudaError, TypeError):
            continue
        if len(tensors_of(wrapped(want))) == 1:
            found.append((args, kwargs))
        if len(found) == count:
            break
    return found


def drawn(name: str) -> dict[str, Any]:
    """Two of the options."""
    rng = np.random.default_rng([SEED, *name.encode()])
    return {k: ENGINES[k] for k in rng.choice(list(ENGINES), 2, replace=False)}


def wrapped(value: Any) -> Any:
    """With arrays of any framework as bc.Tensors."""
    if isinstance(value, (list, tuple)):
        return [wrapped(v) for v in value]
    return bc.from_dlpack(value) if hasattr(value, "__dlpack__") and not isinstance(value, np.generic) else value


@pytest.mark.parametrize("name", WRITING)
def test_out_is_written_whatever_the_engine_s_options(name: str) -> None:
    """And holds the bits that the engine gives without it."""
    for args, kwargs in made(name, CALLS):
        options_of = ENGINES if FULL or name in PRODUCTS else drawn(name)
        for option, options in options_of.items():
            engine = bc.Engine(**options())
            seen: list[str] = []
            engine.add_hook(lambda name, *_, seen=seen: seen.append(name))
            fn = getattr(engine.F, name)
            want = wrapped(fn(*args, **kwargs))
            for out in (bc.zeros(want.shape, want.element), zeros_of("np", want), zeros_of("torch", want)):
                if out is None:
                    continue
                got = fn(*args, out=out, **kwargs)
                assert got is out, option
                np.testing.assert_array_equal(numbers(out), numbers(want), err_msg=option)
            assert set(seen) == {name} and len(seen) >= 2
            if engine.arena is not None:
                with engine.step():
                    out = bc.zeros(want.shape, want.element)
                    assert fn(*args, out=out, **kwargs) is out
                    np.testing.assert_array_equal(numbers(out), numbers(want))


def zeros_of(kind: str, like: bc.Tensor) -> Any:
    """A tensor of NumPy's or torch's to write to, or None where it has no such element."""
    try:
        if kind == "np":
            return np.zeros(like.shape, like.element.numpy)
        return torch.zeros(like.shape, dtype=getattr(torch, str(like.dtype)))
    except (AttributeError, TypeError):
        return None


def mapped(change: Any, value: Any) -> Any:
    """With the tensors in it changed."""
    if isinstance(value, (list, tuple)):
        return type(value)(mapped(change, v) for v in value)
    if isinstance(value, dict):
        return {k: mapped(change, v) for k, v in value.items()}
    return change(bc.from_dlpack(value)) if tensors_of(wrapped(value)) else value


@pytest.mark.parametrize("compute", ["f16", "bf16"])
@pytest.mark.parametrize("name", sorted(PRODUCTS & {*functions.names()}))
def test_products_compute_in_the_engine_s_element_by_every_door(name: str, compute: str) -> None:
    """By calls, gradients and traces: what the function gives of rounded operands, in f32."""
    engine, done = bc.Engine(compute=compute), 0
    fn, plain = getattr(engine.F, name), getattr(F, name)

    def narrow(value: Any) -> Any:
        return mapped(lambda x: F.cast(x, compute) if str(x.element) in ("f32", "bf16", "f16") else x, value)

    def wide(value: Any) -> Any:
        return mapped(lambda x: F.cast(x, "f32") if str(x.element) == compute else x, wrapped(value))

    for number in range(60):
        call = calls.make(name, (SEED, number))
        args, kwargs = call.arguments(calls.ours(call))
        args, kwargs = dense(args), {k: dense(v) for k, v in kwargs.items() if k != "out"}
        given = [t.element for t in tensors_of(wrapped([*args, *kwargs.values()]))]
        if bc.Element.F32 not in given or {"f64", "c64", "c128"} & {str(e) for e in given}:
            continue
        try:
            want = wide(plain(*narrow(args), **{k: narrow(v) for k, v in kwargs.items()}))
        except bc.BaracudaError:
            continue
        equal(fn(*args, **kwargs), want)
        traced = bc.trace(lambda *xs, kwargs=kwargs: fn(*xs, **kwargs), *args).compile().run(*args)
        equal(wrapped(traced), want)
        if getattr(plain, "vjp_rule", None) is not None:
            y, pull = bc.vjp(fn, *args, **kwargs)
            equal(y, want)
            _, pull_narrow = bc.vjp(plain, *narrow(args), **{k: narrow(v) for k, v in kwargs.items()})
            ones = mapped(F.ones_like, wrapped(y))
            equal(wrapped(pull(ones)), wide(pull_narrow(narrow(ones))))
        done += 1
        if done == CALLS:
            return
    assert done, "no call was accepted"


def test_what_is_written_is_never_a_copy_that_a_fallback_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arguments that were left on the cpu are copied to the device for a call; as if all of them were."""
    engine = bc.Engine(on_no_memory="cpu")
    monkeypatch.setattr(engine, "gathered", lambda v: mapped(lambda x: bc.from_dlpack(x, copy=True), v))
    x, out, state = bc.asarray([1.0, 2.0]), bc.zeros((2,), "f64"), bc.asarray([[3.0, 4.0]], "f32")
    assert engine.F.add(x, x, out=out) is out and out.tolist() == [2, 4]
    assert engine.F.tensordot(x, x, 1, total := bc.zeros((), "f64")) is total and total.item() == 5
    before = state.tolist()
    engine.F.uniform_(state)
    assert state.tolist() != before
    engine.F.sgd_([state], [state * 0 + 1], lr=1.0)
    assert state.tolist() != before
