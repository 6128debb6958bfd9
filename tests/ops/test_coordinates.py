"""Reading and writing by coordinates: against torch's indexing, with gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import baracuda as bc
import baracuda.functional as F

SHAPES = [
    ((5,), (3, 1)),
    ((5, 4), (3, 1)),
    ((5, 4), (2, 3, 2)),
    ((4, 3, 2), (7, 2)),
    ((4, 3, 2), (3,)),
    ((3, 2), (0, 2)),
]


def _given(shape: tuple[int, ...], indices: tuple[int, ...]) -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.normal(size=shape))
    columns = [rng.integers(-n, n, indices[:-1]) for n in shape[: indices[-1]]]
    index = torch.from_numpy(np.stack(columns, -1))
    updates = torch.from_numpy(rng.normal(size=(*indices[:-1], *shape[indices[-1] :])))
    return x, index, tuple(index.unbind(-1)), updates


@pytest.mark.parametrize(("shape", "indices"), SHAPES)
def test_as_torchs_indexing(shape: tuple[int, ...], indices: tuple[int, ...]) -> None:
    x, index, key, updates = _given(shape, indices)
    assert torch.equal(F.gather_nd(x, index), x[key])
    assert torch.equal(F.gather_nd(x.float(), index.int()), x.float()[key])
    want = x.clone()
    for i in np.ndindex(indices[:-1]):  # in order: the last one stays
        want[tuple(int(k[i]) for k in key)] = updates[i]
    assert torch.equal(F.scatter_nd(x, index, updates), want)
    assert torch.allclose(F.scatter_nd(x, index, updates, "sum"), x.index_put(key, updates, accumulate=True))
    for reduce, fold in (("amax", torch.maximum), ("amin", torch.minimum), ("prod", torch.mul)):
        want = x.clone()
        for i in np.ndindex(indices[:-1]):
            at = tuple(int(k[i]) for k in key)
            want[at] = fold(want[at], updates[i])
        assert torch.allclose(F.scatter_nd(x, index, updates, reduce), want)


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize(("shape", "indices"), SHAPES)
def test_gradients_as_torch(shape: tuple[int, ...], indices: tuple[int, ...], accumulate: bool) -> None:
    x, index, key, updates = _given(shape, indices)
    a, b = x.clone().requires_grad_(True), updates.clone().requires_grad_(True)
    y = torch.index_put(a, key, b, accumulate=accumulate)
    dy = torch.from_numpy(np.random.default_rng(1).normal(size=tuple(y.shape)))
    y.backward(dy)
    _, pull = bc.vjp(F.scatter_nd, x, index, updates, "sum" if accumulate else None)
    assert all(torch.allclose(got, leaf.grad) for got, leaf in zip(pull(dy), (a, b), strict=True))
    leaf = x.clone().requires_grad_(True)
    y = leaf[key]
    dy = torch.from_numpy(np.random.default_rng(2).normal(size=tuple(y.shape)))
    y.backward(dy)
    _, pull = bc.vjp(F.gather_nd, x, index)
    assert torch.allclose(pull(dy), leaf.grad)


@pytest.mark.parametrize("accumulate", [False, True])
def test_put_as_torch(accumulate: bool) -> None:
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.normal(size=(6, 5)))
    places = rng.integers(-30, 30, (4, 3)) if accumulate else rng.permutation(30)[:12].reshape(4, 3) - 15
    index, source = torch.from_numpy(places), torch.from_numpy(rng.normal(size=(4, 3)))
    a, b = x.clone().requires_grad_(True), source.clone().requires_grad_(True)
    want, dy = torch.put(a, index, b, accumulate), torch.from_numpy(rng.normal(size=(6, 5)))
    want.backward(dy)
    for given in (x, x.T.contiguous().T):
        for at in (index, index.int()):
            got, pull = bc.vjp(F.put, given, at, source, accumulate)
            assert torch.allclose(got, want.detach())
            assert all(torch.allclose(g, leaf.grad) for g, leaf in zip(pull(dy), (a, b), strict=True))


def test_each_coordinate_is_checked() -> None:
    """Also where the place that several make is one that there is."""
    x = np.zeros((4, 5), np.float32)
    for bad in ([0, 5], [0, -6], [4, 0], [-5, 0]):
        with pytest.raises(bc.IndexOutOfRangeError, match="got index"):
            F.gather_nd(x, np.array([[1, 1], bad]))
        with pytest.raises(bc.IndexOutOfRangeError, match="got index"):
            F.scatter_nd(x, np.array([[1, 1], bad]), np.ones(2, np.float32))
    with pytest.raises(bc.IndexOutOfRangeError, match="got index 20"):
        F.put(x, np.array([20]), np.ones(1, np.float32))
    for call, word in (
        (lambda: F.gather_nd(x, np.zeros((2, 3), np.int64)), "a last dimension of 1 to 2"),
        (lambda: F.gather_nd(x, np.zeros((2, 2), np.float32)), "indices: got f32"),
        (lambda: F.scatter_nd(x, np.zeros((2, 2), np.int64), np.ones(3, np.float32)), "updates: got f32 of shape"),
        (lambda: F.scatter_nd(x, np.zeros((2, 2), np.int64), np.ones(2, np.float32), "max"), "reduce: got 'max'"),
        (lambda: F.put(x, np.zeros(2, np.int64), np.ones(3, np.float32)), "source: got f32"),
    ):
        with pytest.raises(bc.InvalidProblemError, match=word):
            call()
