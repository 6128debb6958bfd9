"""What is particular to unique; everything else is generated from its table and its spec."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import baracuda as bc
import baracuda.functional as F

NAN = float("nan")
SPECIAL = torch.tensor([1.0, NAN, -0.0, float("inf"), 0.0, -float("inf"), -NAN, -1.0, 0.0, 1.0])
ELEMENTS = [
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.int64,
    torch.int32,
    torch.uint8,
    torch.bool,
]
SHAPES = [(0,), (1,), (9,), (3, 39), (5, 0), (70, 3, 4), (70000,), ()]


def made(element: torch.dtype, shape: tuple[int, ...], spread: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    if element.is_floating_point and spread == 0:
        return SPECIAL[torch.randint(0, len(SPECIAL), shape, generator=generator)].to(element)
    return torch.randint(0, spread or 3, shape, generator=generator).to(element)


def equal(ours: Any, theirs: Any) -> None:
    torch.testing.assert_close(ours, theirs, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("element", ELEMENTS, ids=str)
@pytest.mark.parametrize("spread", [0, 2, 50])
def test_elements_are_torchs(element: torch.dtype, spread: int) -> None:
    for shape in SHAPES:
        x = made(element, shape, spread)
        for given in (x, x.mT if x.ndim > 1 else x, x[::2] if x.ndim else x):
            for inverse, counts in ((False, False), (True, False), (False, True), (True, True)):
                ours, theirs = F.unique(given, True, inverse, counts), torch.unique(given, True, inverse, counts)
                if inverse and spread == 0 and x.dtype.is_floating_point:  # which NaN is which, torch leaves open
                    equal(ours[0][ours[1]], given)
                    ours, theirs = (ours[0], *ours[2:]), (theirs[0], *theirs[2:])
                equal(ours, theirs)
                theirs = torch.unique_consecutive(given, return_inverse=inverse, return_counts=counts)
                equal(F.unique_consecutive(given, inverse, counts), theirs)


@pytest.mark.parametrize("element", [torch.float32, torch.bfloat16, torch.int64, torch.bool], ids=str)
@pytest.mark.parametrize("shape", [(40, 1), (40, 2), (6, 5, 3), (3, 1, 64), (64, 7, 2), (0, 3), (2500, 3), (1,)])
def test_slices_are_torchs(element: torch.dtype, shape: tuple[int, ...]) -> None:
    x = made(element, shape, 2)
    for given in (x, x.flip(0), x.mT.contiguous().mT if x.ndim > 1 else x):
        for dim in range(-1, x.ndim):
            if 0 in shape and shape[dim]:
                continue
            equal(F.unique(given, True, True, True, dim), torch.unique(given, True, True, True, dim))
            equal(F.unique_consecutive(given, True, True, dim), torch.unique_consecutive(given, True, True, dim))


def test_a_nan_is_equal_to_nothing() -> None:
    x = torch.tensor([[1.0, NAN], [0.0, 2.0], [1.0, NAN], [-0.0, 2.0], [1.0, 3.0]])
    equal(F.unique(x, dim=0), torch.tensor([[0.0, 2.0], [1.0, 3.0], [1.0, NAN], [1.0, NAN]]))
    values, counts = F.unique(x, return_counts=True)
    equal(values, torch.tensor([0.0, 1.0, 2.0, 3.0, NAN, NAN]))
    equal(counts, torch.tensor([2, 3, 2, 1, 1, 1]))
    assert len(F.unique_consecutive(torch.full((3,), NAN))) == 3


def test_where_each_was_first_as_numpy() -> None:
    x = np.random.default_rng(0).integers(0, 30, (20, 7))
    ours, theirs = F.unique(x, True, True, True, return_index=True), np.unique(x, True, True, True)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b)
    ours, theirs = F.unique(x % 2, dim=0, return_index=True), np.unique(x % 2, True, axis=0)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(F.unique_consecutive(np.array([3, 3, 1, 3]), return_index=True)[1], [0, 2, 3])


def test_arrays_of_each_kind_give_their_own() -> None:
    import jax

    x = np.array([[3, 1], [3, 3]], np.float32)
    for make, kind in ((np.copy, np.ndarray), (torch.from_numpy, torch.Tensor), (jax.numpy.asarray, jax.Array)):
        for found in (*F.unique(make(x), True, True, True), *F.unique(make(x), True, True, True, 1)):
            assert isinstance(found, kind)
    values, inverse = F.unique(bc.asarray(x), return_inverse=True)
    assert isinstance(values, bc.Tensor)
    assert values.numpy().tolist() == [1, 3] and inverse.numpy().tolist() == [[1, 0], [1, 1]]


def test_slices_of_nothing_are_refused() -> None:
    for fn in (F.unique, F.unique_consecutive):
        with pytest.raises(bc.InvalidProblemError, match="something in the slices"):
            fn(torch.zeros(3, 0), dim=0)
        with pytest.raises(bc.InvalidProblemError, match="dim"):
            fn(torch.zeros(3, 2), dim=2)
