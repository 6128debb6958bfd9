"""Random, often wrong, arguments: a call gives the right result or raises; it never crashes or writes where it must not."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import torch
from calls import ValidCall, call_of, directions, valid_call
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import baracuda as bc
import baracuda.functional as F
from baracuda.prove.layouts import LAYOUTS, REPEATED, SENTINEL, buffer
from baracuda.prove.reference import to_reference
from conftest import FULL

EXAMPLES = 20_000 if FULL else 300
TUNED = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
ALLOWED = (bc.BaracudaError, TypeError)
POOL_BYTES = 4096
DTYPES = ["f4", "f8", "f2", "i4", "i8", "u1", "?", ">f4", "c8", "S3", "O"]


@cache
def valid(op: str, direction: str) -> tuple[ValidCall, dict[str, list[bytes]]]:
    """A call with the bytes that it leaves behind."""
    call = valid_call(op, direction)
    done = call_of(call.case, call.plan)
    done.run()
    return call, done.bytes()


class Memory:
    """A few bytes that every random view of one example lies in, with a pattern outside the views."""

    def __init__(self) -> None:
        self.raw = np.full(POOL_BYTES + 64, SENTINEL, np.uint8)


@st.composite
def odd_values(draw: st.DrawFn, memory: Memory) -> Any:
    """Anything that a caller might pass by mistake."""
    kind = draw(st.sampled_from(["view", "view", "view", "array", "torch", "own", "other", "list"]))
    if kind == "other":
        return draw(
            st.sampled_from(
                [None, 0, 1.5, "x", b"", object(), np.float32(1), 10**30, -1, float("nan"), True, 1j, int, [], (), {}]
            )
        )
    if kind == "list":
        return [draw(odd_values(memory)) for _ in range(draw(st.integers(0, 3)))]
    shape = tuple(draw(st.lists(st.integers(0, 5), max_size=4)))
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    if kind == "array" or dtype.hasobject:
        made = np.zeros(shape, dtype)
        return np.ma.masked_array(made) if draw(st.integers(0, 9)) == 0 else made
    if kind == "torch":
        made = torch.zeros(shape, requires_grad=draw(st.booleans()))
        # No meta tensors: can_implement takes them where run does not.
        return made.detach().to_sparse() if draw(st.integers(0, 5)) == 0 and shape else made
    if kind == "own":
        return bc.zeros(shape, draw(st.sampled_from(["f32", "bf16", "i64"])))
    strides = tuple(draw(st.integers(-6, 6)) * draw(st.sampled_from([1, dtype.itemsize])) for _ in shape)
    low = sum(min(0, (n - 1) * s) for n, s in zip(shape, strides, strict=True) if n)
    high = sum(max(0, (n - 1) * s) for n, s in zip(shape, strides, strict=True) if n) + dtype.itemsize
    offset = draw(st.integers(-low, max(-low, min(POOL_BYTES - high, -low + 64))))
    view = np.ndarray(shape, dtype, memory.raw, offset, strides)
    view.flags.writeable = draw(st.integers(0, 7)) != 0
    return view


def same(a: dict[str, list[bytes]], b: dict[str, list[bytes]]) -> bool:
    return a == b


@TUNED
@given(st.sampled_from(directions()), st.data())
def test_random_arguments_of_plans(which: tuple[str, str], data: st.DataObject) -> None:
    """Some arguments of a valid call are replaced. What run accepts must agree with can_implement and be inside the views."""
    model, left = valid(*which)
    call = call_of(model.case, model.plan)
    memory = Memory()
    names = [*call.plan.arguments, "workspace", "stream", "nonsense", "out"]
    changes = {
        n: data.draw(odd_values(memory))
        for n in data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
    }
    arguments = {"workspace": call.workspace} | call.args | changes
    before, pool = call.bytes(), memory.raw.copy()
    try:
        answer = call.plan.can_implement(**arguments)
    except ALLOWED as e:
        answer = None
        assert isinstance(e, ALLOWED)
    try:
        call.plan.run(**arguments)
    except (bc.IndexOutOfRangeError, bc.IntegerDivisionError, bc.ValueOutOfRangeError, bc.DeviceError):
        return
    except ALLOWED as e:
        assert not answer or "numbers given to the call" in str(e), f"can_implement said yes, run said {e}"
        assert same(call.bytes(), before), "a refused call wrote to its tensors"
        assert (memory.raw == pool).all(), "a refused call wrote"
        return
    if answer is not None:
        assert answer, f"run accepted what can_implement refuses: {answer}"
    written = np.zeros(memory.raw.shape, bool)
    for p in call.outputs:
        value = changes.get(p.name)
        if isinstance(value, np.ndarray) and np.shares_memory(value, memory.raw) and value.size:
            start = value.__array_interface__["data"][0] - memory.raw.__array_interface__["data"][0]
            for index in np.ndindex(value.shape):
                at = start + sum(i * s for i, s in zip(index, value.strides, strict=True))
                written[at : at + value.itemsize] = True
    workspace = changes.get("workspace")
    if isinstance(workspace, np.ndarray) and np.shares_memory(workspace, memory.raw):
        written[:] = True
    value = changes.get("out")
    if isinstance(value, np.ndarray):
        written[:] = True
    assert (memory.raw[~written] == pool[~written]).all(), "bytes outside the outputs changed"


@TUNED
@given(st.sampled_from(directions()), st.data())
def test_random_layouts_of_plans(which: tuple[str, str], data: st.DataObject) -> None:
    """Every tensor in a layout of its own: the same bits as contiguous ones, and nothing beside the views."""
    model, left = valid(*which)
    call = call_of(model.case, model.plan)
    held = {}
    for p in call.tensors:
        parts = []
        for i, shape in enumerate(p.shapes):
            made = buffer(shape, p.element.numpy, data.draw(st.sampled_from(sorted(LAYOUTS.keys() - REPEATED.keys()))))
            source = call.args[p.name][i] if p.variadic else call.args[p.name]
            made.view[...] = source
            parts.append(made)
        held[p.name] = parts
    arguments = {
        n: [b.view for b in parts] if isinstance(call.args[n], list) else parts[0].view for n, parts in held.items()
    }
    call.run(**arguments)
    for p in call.tensors:
        assert sum(b.stray_writes() for b in held[p.name]) == 0, f"bytes beside {p.name} were written"
        if p.role == 0:
            assert [b.view.tobytes() for b in held[p.name]] == call.bytes()[p.name], f"the input {p.name} was written"
            continue
        if call.plan.precision_guarantee.bound == "exact":
            assert [b.view.tobytes() for b in held[p.name]] == left[p.name], f"{p.name} depends on the layout"
        for b, want in zip(held[p.name], left[p.name], strict=True):
            expected = np.frombuffer(want, p.element.numpy).reshape(b.view.shape)
            got, expected = to_reference(np.asarray(b.view)), to_reference(expected)
            loose = 1e-2 if p.element.is_half else 1e-4
            np.testing.assert_allclose(
                got,
                expected,
                rtol=loose,
                atol=loose
                * max(1.0, float(np.nanmax(np.abs(np.where(np.isfinite(expected), expected, 0)), initial=0))),
            )


@TUNED
@given(st.sampled_from(sorted(dir(F))), st.data())
def test_random_calls_of_functions(name: str, data: st.DataObject) -> None:
    memory = Memory()
    values = [data.draw(odd_values(memory)) for _ in range(data.draw(st.integers(0, 4)))]
    keywords = {}
    for key in data.draw(
        st.lists(st.sampled_from(["dim", "out", "keepdim", "axis", "nonsense", "alpha", "eps"]), max_size=1)
    ):
        keywords[key] = data.draw(odd_values(memory))
    pool = memory.raw.copy()
    try:
        getattr(F, name)(*values, **keywords)
    except (*ALLOWED, MemoryError):
        return
    # Only out= and the functions whose name says so may write to what they are given.
    if "out" not in keywords and not name.endswith("_") and not any(isinstance(v, np.ndarray) for v in values[2:]):
        assert (memory.raw == pool).all(), f"{name} wrote to its arguments"
