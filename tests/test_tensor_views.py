"""Views of bc.Tensor against NumPy's of the same memory, of every rank and every stride."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import baracuda as bc
from baracuda import _core
from baracuda.memory.tensor import stand_in

SIZES = st.lists(st.integers(0, 3), max_size=8).filter(lambda s: math.prod(s) <= 3000)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[np.ndarray[Any, Any], bc.Tensor]:
    """An array of any layout, and a tensor of its memory: with other orders, gaps, and steps backwards."""
    sizes = draw(SIZES)
    steps = [draw(st.sampled_from([1, 2, -1, -2])) for _ in sizes]
    whole = np.arange(math.prod(n * abs(s) for n, s in zip(sizes, steps, strict=True)), dtype=np.int32)
    key = (*(slice(None, None, s) for s in steps), ...)
    x = whole.reshape([n * abs(s) for n, s in zip(sizes, steps, strict=True)])[key]
    x = x.transpose(draw(st.permutations(range(x.ndim))))
    strides = tuple(s // 4 for s in x.strides)
    return x, bc.from_pointer(x.ctypes.data or whole.ctypes.data, x.shape, "i32", strides, owner=whole)


def same(got: bc.Tensor, want: np.ndarray[Any, Any]) -> None:
    assert (got.shape, got.ndim, got.numel) == (want.shape, want.ndim, want.size)
    assert (got.numpy() == want).all()
    if want.size:
        assert got.address == want.ctypes.data, "a view, not a copy"
        kept = [n > 1 for n in want.shape]
        assert [s for s, k in zip(got.strides, kept, strict=True) if k] == [
            s // 4 for s, k in zip(want.strides, kept, strict=True) if k
        ]


@settings(max_examples=300, deadline=None)
@given(pairs(), st.data())
def test_keys(pair: tuple[np.ndarray[Any, Any], bc.Tensor], data: st.DataObject) -> None:
    x, t = pair
    bound = st.one_of(st.none(), st.integers(-5, 5), st.sampled_from([2**70, -(2**70)]))
    step = st.sampled_from([None, 1, 2, 3, -1, -2, 2**70, -(2**70)])
    keys = data.draw(
        st.lists(
            st.one_of(st.integers(-3, 3), st.builds(slice, bound, bound, step), st.none(), st.just(...)), max_size=6
        )
    )
    key = tuple(keys)
    try:
        want = x[(*key, ...)] if ... not in keys else x[key]
    except IndexError:
        with pytest.raises(IndexError):
            t[key]
        return
    if want.ndim > 8:
        with pytest.raises(bc.InvalidProblemError, match="at most 8"):
            t[key]
    else:
        same(t[key], want)
        if len(keys) == 1:
            same(t[keys[0]], want)


@settings(max_examples=200, deadline=None)
@given(pairs(), st.data())
def test_orders(pair: tuple[np.ndarray[Any, Any], bc.Tensor], data: st.DataObject) -> None:
    x, t = pair
    order = data.draw(st.permutations(range(x.ndim)))
    signed = [a - x.ndim * data.draw(st.booleans()) for a in order]
    for made in (t.permute(*signed), t.permute(signed), t.transpose(*signed) if order else t.transpose(())):
        same(made, x.transpose(order))
    for made in (t.T, t.transpose(), t.transpose(None)):
        same(made, x.T)
    if x.ndim > 1:
        same(t.mT, np.swapaxes(x, -1, -2))


@settings(max_examples=300, deadline=None)
@given(pairs(), st.data())
def test_shapes(pair: tuple[np.ndarray[Any, Any], bc.Tensor], data: st.DataObject) -> None:
    x, t = pair
    factors = [f for n in x.shape for f in ([n] if n else [0])]
    wanted = data.draw(st.permutations(factors)) if factors else []
    if wanted and data.draw(st.booleans()):
        at = data.draw(st.integers(0, len(wanted) - 1))
        wanted = [*wanted[:at], math.prod(wanted[at:])]
    if wanted and 0 not in wanted and data.draw(st.booleans()):
        wanted[data.draw(st.integers(0, len(wanted) - 1))] = -1
    want = x.reshape(wanted)
    if want.size and not np.shares_memory(want, x):
        with pytest.raises(bc.InvalidProblemError, match="without a copy"):
            t.reshape(wanted)
        return
    same(t.reshape(wanted), want)
    same(t.reshape(*wanted) if wanted else t.reshape(()), want)


@settings(max_examples=200, deadline=None)
@given(pairs(), st.data())
def test_dimensions_of_size_one(pair: tuple[np.ndarray[Any, Any], bc.Tensor], data: st.DataObject) -> None:
    x, t = pair
    same(t.squeeze(), x.squeeze())
    ones = [i - x.ndim * data.draw(st.booleans()) for i, n in enumerate(x.shape) if n == 1]
    same(t.squeeze(tuple(ones)), x.squeeze(tuple(ones)))
    others = [i for i, n in enumerate(x.shape) if n != 1]
    same(t.squeeze(*others) if others else t.squeeze(()), x)
    if x.ndim < 8:
        at = data.draw(st.integers(-x.ndim - 1, x.ndim))
        same(t.unsqueeze(at), np.expand_dims(x, at))
        wide = tuple(data.draw(st.integers(0, 4)) if n == 1 else n for n in x.shape)
        lead = tuple(data.draw(st.lists(st.integers(0, 3), max_size=8 - x.ndim)))
        want = np.broadcast_to(x, lead + wide)
        for made in (t.broadcast_to(lead + wide), t.expand(*lead, *wide) if lead + wide else t.expand(())):
            assert made.shape == want.shape
            assert (made.numpy() == want).all()
        kept = tuple(-1 if n == m else m for n, m in zip(x.shape, wide, strict=True))
        assert t.expand(lead + kept).shape == want.shape


def test_views_are_torchs_where_numpy_has_others() -> None:
    x = torch.arange(24).reshape(2, 1, 3, 4)
    t = bc.from_dlpack(x)
    for made, want in (
        (t.squeeze(0), x.squeeze(0)), (t.squeeze(1), x.squeeze(1)), (t.squeeze((0, 1)), x.squeeze((0, 1))),
        (t.expand(5, 2, -1, -1, 4), x.expand(5, 2, -1, -1, 4)), (t.mT, x.mT), (t.unsqueeze(-1), x.unsqueeze(-1)),
    ):  # fmt: skip
        assert made.shape == tuple(want.shape)
        assert (made.numpy() == want.numpy()).all()


X = np.arange(24, dtype=np.float32).reshape(4, 6)
WRONG: dict[str, tuple[Callable[[bc.Tensor], Any], str]] = {
    "an order": (lambda t: t.permute(0), r"permute: got 0, want each of the 2 dimensions once"),
    "a text": (lambda t: t.transpose("ab"), "transpose: got 'ab'"),
    "a float": (lambda t: t.reshape(4.0, 6), "reshape: got"),
    "two open sizes": (lambda t: t.reshape(-1, -1), "24 elements"),
    "an open size of nothing": (lambda t: t[:0].reshape(0, -1), "0 elements"),
    "a size beyond all": (lambda t: t.reshape(2**62, 8), "24 elements"),
    "a size beyond ints": (lambda t: t.reshape(2**80), "reshape: got"),
    "nine sizes": (lambda t: t.reshape((1,) * 9), "at most 8"),
    "a copy": (lambda t: t.T.reshape(-1), r"\(6, 4\) with strides \(1, 6\)"),
    "a size that is there": (lambda t: t.expand(4, 7), r"\(4, 6\) broadcasts to"),
    "fewer sizes": (lambda t: t.expand(6), "broadcasts to"),
    "an open size in front": (lambda t: t.expand(-1, 4, 6), "broadcasts to"),
    "an open size of broadcast_to": (lambda t: t.broadcast_to(-1, 6), "broadcasts to"),
    "a dimension": (lambda t: t.squeeze(2), "dimensions from -2 to 1"),
    "a dimension twice": (lambda t: t.squeeze((0, -2)), "each once"),
    "a dimension to insert": (lambda t: t.unsqueeze(3), "dimensions from -3 to 2"),
    "too many dimensions": (lambda t: t.reshape((1,) * 6 + (4, 6)).unsqueeze(0), "rank 8"),
    "mT of a vector": (lambda t: t[0].mT, "at least 2 dimensions"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_no_view_is(name: str) -> None:
    act, text = WRONG[name]
    with pytest.raises(bc.InvalidProblemError, match=text):
        act(bc.asarray(X))


def test_indices_outside() -> None:
    t = bc.asarray(X)
    for key, text in (
        (4, "got 4 for dimension 0, want -4 <= index < 4"),
        ((0, 2**80), "dimension 1"),
        ((0, 0, 0), "3 indices"),
    ):
        with pytest.raises(bc.IndexOutOfRangeError, match=text):
            t[key]
    with pytest.raises(IndexError, match="its size is 0"):
        t[:0][0]
    with pytest.raises(TypeError):
        t["a":]  # type: ignore[misc]
    assert t[bc.asarray(np.int64(2)), np.int8(-1)].item() == X[2, -1]
    assert t[bc.asarray(np.int64(1)) :, torch.tensor(3)].shape == (3,)


def test_steps_that_nobody_takes_may_be_of_any_length() -> None:
    for step in (2**62 - 1, 1 - 2**62):
        t = bc.from_pointer(X.ctypes.data, (1, 6), "f32", (step, 1), owner=X)
        assert t.strides == (step, 1) and t.numpy().tolist() == X[:1].tolist()
        for key in (slice(None, None, step), slice(None, None, 2), (slice(None), slice(None, None, step))):
            made = t[key]
            assert made.numpy().tolist() == X[:1][key].tolist()
            assert max(map(abs, made.strides)) < 2**62


def test_rows() -> None:
    t = bc.asarray(X)
    assert [r.tolist() for r in t] == X.tolist()
    assert len(t) == 4 and len(t[:0]) == 0 and list(t[:, :0]) != []
    with pytest.raises(TypeError, match="0-d"):
        iter(t[0, 0])
    with pytest.raises(TypeError, match="0-d"):
        len(t[0, 0])


def test_views_of_shapes_without_memory_stay_without() -> None:
    shape = stand_in(bc.TensorSpec((4, 6), read_only=True))
    plan = bc.plan(bc.GatedActivationDescriptor("swiglu", (4, 6)))
    for t in (shape, shape[:], shape.T.T, shape.reshape(4, 6), shape.unsqueeze(0)[0], shape.expand(4, 6)):
        assert (t.shape, t.read_only) == ((4, 6), True)
        for ask in (
            t.__dlpack__, t.numpy, t.tolist, t[0, 0].item, t[0, 0].__bool__, t[0, 0].__float__, lambda t=t: np.asarray(t),
            lambda t=t: np.from_dlpack(t), lambda t=t: bc.from_dlpack(t), lambda t=t: bc.zeros((4, 6)).copy_from(t),
            lambda t=t: bc.asarray(t), lambda t=t: t + 1, lambda t=t: memoryview(t), lambda t=t: t.rebase(64),
        ):  # fmt: skip
            with pytest.raises((bc.InvalidProblemError, BufferError, TypeError)):
                ask()
        with pytest.raises(bc.InvalidProblemError) as caught:
            plan.run(t, bc.zeros((4, 3)))
        assert caught.value.code == "null_data"
        assert plan.can_implement(t, bc.zeros((4, 3)))
    assert not plan.can_implement(shape, shape[:, :3]), "read-only shapes are no outputs"


def test_layouts_by_themselves_are_those_of_tensors() -> None:
    t = bc.zeros((4, 6))
    offset, shape, strides = _core.index_layout(t.shape, t.strides, (slice(1, None), None, -1))
    view = t[1:, None, -1]
    assert (t.address + 4 * offset, shape, strides) == (view.address, view.shape, view.strides)
    assert _core.reshape_layout((4, 6), (6, 1), (-1, 2)) == ((12, 2), (2, 1))
