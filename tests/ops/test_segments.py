"""Folds of segments against torch's and jax's, with gradients."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
import torch

import baracuda as bc
import baracuda.functional as F

FOLDS = ("sum", "mean", "prod", "max", "min")
SHAPES = [(0,), (7,), (40, 3), (9, 2, 5), (6, 0)]


def _ids(n: int, segments: int, ordered: bool) -> np.ndarray:
    found = np.random.default_rng(n).integers(0, segments, n)
    return np.sort(found) if ordered else found


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("reduce", FOLDS)
def test_as_jax(reduce: str, ordered: bool) -> None:
    rng = np.random.default_rng(0)
    for shape in SHAPES:
        for element in ("f4", "i4"):
            if reduce == "mean":
                continue
            x = (rng.normal(size=shape) * 3).astype(element)
            ids = _ids(shape[0], 5, ordered)
            want = np.asarray(getattr(jax.ops, f"segment_{reduce}")(x, ids, 6))
            got = getattr(F, f"segment_{reduce}")(x, ids, 6)
            assert got.dtype == x.dtype
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
            np.testing.assert_array_equal(got, getattr(F, f"segment_{reduce}")(x, ids.astype("i4"), 6))
            if shape[0] and reduce in ("sum", "prod"):
                most = int(ids.max()) + 1
                np.testing.assert_array_equal(getattr(F, f"segment_{reduce}")(x, ids), got[:most])


def test_means() -> None:
    for element in (np.float32, np.float16):
        x = np.random.default_rng(0).normal(size=(9, 2)).astype(element)
        ids = np.array([3, 0, 0, 2, 3, 3, 0, 2, 0])
        want = np.stack([x[ids == s].astype("f8").mean(0) if (ids == s).any() else [np.nan] * 2 for s in range(5)])
        np.testing.assert_allclose(F.segment_mean(x, ids, 5), want, rtol=4e-3 if element is np.float16 else 1e-6)
    many = np.ones(5000, np.float16)
    assert F.segment_mean(many, np.zeros(5000, np.int64), 1).tolist() == [1]


def _reference(x: torch.Tensor, ids: torch.Tensor, segments: int, reduce: str) -> torch.Tensor:
    rows = [x[ids == s] for s in range(segments)]
    fold: dict[str, Any] = {
        "sum": lambda r: r.sum(0),
        "mean": lambda r: r.mean(0),
        "prod": lambda r: r.prod(0),
        "max": lambda r: r.amax(0) if len(r) else r.sum(0) - torch.inf,
        "min": lambda r: r.amin(0) if len(r) else r.sum(0) + torch.inf,
    }
    return torch.stack([fold[reduce](r) for r in rows])


@pytest.mark.parametrize("reduce", FOLDS)
def test_gradients(reduce: str) -> None:
    rng = np.random.default_rng(0)
    for shape in ((7,), (40, 3), (9, 2, 5)):
        ids = torch.from_numpy(_ids(shape[0], 5, False))
        for x in (rng.normal(size=shape), rng.integers(0, 3, shape).astype("f8")):  # ties, and products with zeros
            leaf = torch.from_numpy(x).requires_grad_(True)
            want = _reference(leaf, ids, 6, reduce)
            dy = torch.from_numpy(rng.normal(size=tuple(want.shape)))
            dy[want.isnan() | want.isinf()] = 0
            want.backward(dy)
            got, pull = bc.vjp(getattr(F, f"segment_{reduce}"), leaf.detach(), ids, 6)
            torch.testing.assert_close(got, want.detach(), equal_nan=True)
            torch.testing.assert_close(pull(dy), leaf.grad.nan_to_num())


def test_softmax() -> None:
    rng = np.random.default_rng(0)
    for shape in ((1,), (30,), (40, 3), (9, 2, 5)):
        ids = torch.from_numpy(_ids(shape[0], 5, False))
        x = torch.from_numpy(rng.normal(size=shape) * 50).requires_grad_(True)
        want = torch.zeros(shape, dtype=torch.float64)
        for s in range(5):
            want = want.masked_scatter(
                (ids == s).reshape(-1, *(1,) * (len(shape) - 1)).expand(shape), x[ids == s].softmax(0)
            )
        dy = torch.from_numpy(rng.normal(size=shape))
        want.backward(dy)
        got, pull = bc.vjp(F.segment_softmax, x.detach(), ids)
        torch.testing.assert_close(got, want.detach())
        torch.testing.assert_close(pull(dy), x.grad)
        half = F.segment_softmax(x.detach().to(torch.bfloat16), ids, 7)
        assert half.dtype == torch.bfloat16
    extreme = F.segment_softmax(np.array([3e38, -3e38, -np.inf, 1.0], np.float32), np.array([0, 0, 1, 1]), 2)
    assert extreme.tolist() == [1, 0, 0, 1]


def _lengths(rng: np.random.Generator, lead: tuple[int, ...], size: int, segments: int) -> np.ndarray:
    cuts = np.sort(rng.integers(0, size + 1, (*lead, segments - 1)), -1)
    return np.diff(cuts, prepend=0, append=size)


@pytest.mark.parametrize("initial", [None, 0.5])
@pytest.mark.parametrize("reduce", FOLDS)
@pytest.mark.parametrize("axis", [0, 1])
def test_neighbours_as_torch(axis: int, reduce: str, initial: float | None) -> None:
    rng = np.random.default_rng(0)
    for shape in ((6, 9), (5, 30, 2), (4, 1, 3)):
        x = torch.from_numpy(rng.integers(-2, 3, shape).astype("f8"))
        lengths = torch.from_numpy(_lengths(rng, shape[:axis], shape[axis], 4))
        offsets = torch.cat([torch.zeros_like(lengths[..., :1]), lengths.cumsum(-1)], -1)
        leaf = x.clone().requires_grad_(True)
        want = torch.segment_reduce(leaf, reduce, lengths=lengths, axis=axis, initial=initial)
        dy = torch.from_numpy(rng.normal(size=tuple(want.shape)))
        dy = dy.abs() if reduce in ("max", "min") else dy  # torch shares positive gradients only
        dy[want.isnan() | want.isinf()] = 0
        want.backward(dy)
        options: dict[str, Any] = {"axis": axis, "initial": initial}
        got, pull = bc.vjp(F.segment_reduce, x, reduce, lengths=lengths, **options)
        torch.testing.assert_close(got, want.detach(), equal_nan=True)
        if initial is None:  # torch divides by what is 0 where a fold begins with another number
            torch.testing.assert_close(pull(dy), leaf.grad.nan_to_num())
        for given in ({"lengths": lengths.int()}, {"offsets": offsets}, {"offsets": offsets, "unsafe": True}):
            torch.testing.assert_close(F.segment_reduce(x, reduce, **given, **options), got, equal_nan=True)


def test_wrong_calls_are_refused() -> None:
    x, ids = np.ones((4, 2), np.float32), np.array([0, 1, 1, 3])
    for bad in (np.array([0, 1, 1, 4]), np.array([0, -1, 1, 3])):
        with pytest.raises(bc.IndexOutOfRangeError, match="segment_ids: got index"):
            F.segment_sum(x, bad, 4)
        with pytest.raises(bc.IndexOutOfRangeError, match="segment_ids: got index"):
            F.segment_max(x, bad, 4)
    for call, word in (
        (lambda: F.segment_sum(x, ids[:3]), "segment_ids: got i64 of shape"),
        (lambda: F.segment_sum(x, x[:, 0]), "segment_ids: got f32"),
        (lambda: F.segment_sum(x, ids, -1), "num_segments: got -1"),
        (lambda: F.segment_mean(ids, ids), "data: got element i64"),
        (lambda: F.segment_reduce(x, "amax", lengths=ids), "reduce: got 'amax'"),
        (lambda: F.segment_reduce(x, "sum"), "want either lengths or offsets"),
        (lambda: F.segment_reduce(x, "sum", lengths=np.array([2, 1])), "together the 4"),
        (lambda: F.segment_reduce(x, "sum", lengths=np.array([5, -1])), "negative"),
        (lambda: F.segment_reduce(x, "sum", offsets=np.array([1, 4])), "together the 4"),
        (lambda: F.segment_reduce(x, "sum", lengths=np.array([[2, 2]])), "lengths: got i64 of shape"),
        (lambda: F.segment_reduce(ids, "sum", lengths=np.array([4])), "data: got element i64"),
        (
            lambda: F.segment_reduce(x, "sum", lengths=np.array([1 << 62] * 4 + [4])),
            "together the 4",
        ),  # the sum wraps to 4
        (lambda: F.segment_reduce(np.array(1, np.float32), "sum", lengths=ids), "data: got a 0-d tensor"),
        (lambda: F.segment_max(x.astype(np.complex64), ids), "data: got element c64"),
    ):
        with pytest.raises(bc.InvalidProblemError, match=word):
            call()


def test_extremes_of_bools_are_any_and_all() -> None:
    data, ids = np.array([[True, False], [False, False], [True, True]]), np.array([0, 0, 2])
    np.testing.assert_array_equal(F.segment_max(data, ids, 4), [[1, 0], [0, 0], [1, 1], [0, 0]])
    np.testing.assert_array_equal(F.segment_min(data, ids, 4), [[0, 0], [1, 1], [1, 1], [1, 1]])


def test_errors_name_no_part_of_a_function() -> None:
    x = np.ones((2, 3), np.float32)
    for call in (lambda: F.segment_sum(x, np.array([0, 5]), 2), lambda: F.index_put(x, (np.array([9]),), x[:1])):
        with pytest.raises(bc.IndexOutOfRangeError) as told:
            call()
        assert " _" not in str(told.value)
    with pytest.raises(bc.InvalidProblemError, match=r"num_samples: got 5, want at most the 3 categories"):
        F.multinomial(x[0], 5)
    with pytest.raises(bc.InvalidProblemError, match=r"quant_min: got 3, want -32768 to 0"):
        F.fake_quantize(x, 1.0, quant_min=3)
