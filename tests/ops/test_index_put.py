"""index_put against torch's, with gradients: masks, whole dimensions, indices that broadcast."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import baracuda as bc
import baracuda.functional as F

RNG = np.random.default_rng(0)


def _ints(high: int, *shape: int) -> torch.Tensor:
    return torch.from_numpy(RNG.integers(-high, high, shape))


def _mask(*shape: int) -> torch.Tensor:
    return torch.from_numpy(RNG.random(shape) < 0.4)


# The shape, indices of its dimensions, and the shape of values.
CASES: list[tuple[tuple[int, ...], tuple[Any, ...], tuple[int, ...]]] = [
    ((5,), (_ints(5, 3),), (3,)),
    ((5,), (_ints(5),), ()),
    ((5, 4), (_ints(5, 3),), (4,)),
    ((5, 4), (None, _ints(4, 2)), (5, 2)),
    ((5, 4), (None, _ints(4, 2, 3)), (1, 2, 3)),
    ((5, 4), (_ints(5, 3, 1), _ints(4, 2)), (3, 2)),
    ((5, 4), (_ints(5, 3, 1), _ints(4, 2)), ()),
    ((4, 3, 2), (_ints(4, 6), None, _ints(2, 6)), (6, 3)),
    ((4, 3, 2), (_ints(4, 6), None, _ints(2, 1)), (1, 3)),
    ((4, 3, 2), (None, _ints(3, 2), _ints(2, 2)), (4, 2)),
    ((4, 3, 2), (None, None, _ints(2)), (4, 1)),
    ((4, 3, 2), (_ints(4, 0),), (3, 2)),
    ((4, 3, 2), (_ints(4, 2).int(), _ints(3, 2)), (1, 2)),
    ((4, 3, 2), (_mask(4, 3),), ()),
    ((4, 3, 2), (_mask(4),), (3, 2)),
    ((4, 3, 2), (None, torch.zeros(3, dtype=torch.bool)), ()),
    ((2, 3, 2, 2), (_ints(2, 3), None, torch.tensor([True, False]), _ints(2, 3, 1)), (3, 3, 3)),
    ((0, 3), (_ints(1, 0),), (3,)),
]


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("case", range(len(CASES)))
def test_as_torch(case: int, accumulate: bool) -> None:
    shape, indices, given = CASES[case]
    x, values = torch.from_numpy(RNG.normal(size=shape)), torch.from_numpy(RNG.normal(size=given))
    if not accumulate:  # torch leaves open which of several stays
        values = torch.full(given, 0.5, dtype=torch.float64)
    a, b = x.clone().requires_grad_(True), values.clone().requires_grad_(True)
    want = torch.ops.aten.index_put(a, indices, b, accumulate)
    dy = torch.from_numpy(RNG.normal(size=shape))
    want.backward(dy)
    for seen in (x, x.mT.contiguous().mT if x.ndim > 1 else x):
        got, pull = bc.vjp(F.index_put, seen, indices, values, accumulate)
        torch.testing.assert_close(got, want.detach(), rtol=1e-14, atol=1e-14)
        for ours, leaf in zip(pull(dy), (a, b), strict=True):
            torch.testing.assert_close(ours, leaf.grad, rtol=1e-13, atol=1e-13)
    place = x.clone()
    assert F.index_put_(place, indices, values, accumulate) is place
    assert torch.equal(place, F.index_put(x, indices, values, accumulate))


@pytest.mark.parametrize("element", [torch.int64, torch.bool, torch.bfloat16, torch.uint8], ids=str)
def test_elements(element: torch.dtype) -> None:
    x, index = torch.arange(12).reshape(3, 4).to(element), (torch.tensor([2, 0]), torch.tensor([1, -1]))
    values = torch.tensor([1, 0]).to(element)
    assert torch.equal(F.index_put(x, index, values), torch.index_put(x, index, values))
    assert torch.equal(F.index_put(x, index, values, True), torch.index_put(x, index, values, True))


def test_the_last_of_equal_places_stays() -> None:
    y = F.index_put(np.zeros(3, np.float32), (np.array([1, 1, 2, 1]),), np.array([1, 2, 3, 4], np.float32))
    assert y.tolist() == [0, 4, 3]


def test_wrong_calls_are_refused() -> None:
    x, one = np.zeros((4, 5), np.float32), np.ones(1, np.float32)
    for indices in ((np.array([4]),), (np.array([-5]),), (None, np.array([5])), (np.array([3]), np.array([-6]))):
        with pytest.raises(bc.IndexOutOfRangeError, match="got index"):
            F.index_put(x, indices, one)
    at = np.zeros(2, np.int64)
    for indices, values, word in (
        ((), one, "at least one tensor"),
        ((None, None), one, "at least one tensor"),
        ((at, at, at), one, "at most 2 dimensions"),
        ((at.astype("f4"),), one, r"indices\[0\]: got f32"),
        ((np.zeros((4, 4), bool),), one, "a mask of shape"),
        ((at, np.zeros(3, np.int64)), one, "indices"),
        ((at,), np.ones(3, np.float32), "values: got shape"),
        ((at,), np.ones(5), "values: got f64"),
        (at, one, "a tuple of tensors"),
    ):
        with pytest.raises(bc.InvalidProblemError, match=word):
            F.index_put(x, indices, values)


def test_what_index_puts_names_is_read_by_index_with_gradients() -> None:
    x = torch.randn(4, 3, 2, dtype=torch.float64)
    i, j = torch.tensor([0, -1, 3, 0]), torch.tensor([1, 0, -2, 1])
    for key in ((i,), (None, j), (i, j), (i, None, j % 2), (None, j, j % 2), (x[:, 0, 0] > 0,), (None, None, i[:0])):
        leaf = x.clone().requires_grad_(True)
        want = torch.ops.aten.index(leaf, key)
        dy = torch.randn_like(want)
        want.backward(dy)
        y, pull = bc.vjp(F.index, x, key)
        torch.testing.assert_close(y, want.detach(), rtol=0, atol=0)
        torch.testing.assert_close(pull(dy), leaf.grad, rtol=1e-14, atol=1e-14)
