"""Reductions of bc.functional against torch: elements, axes, keepdim, empty slices, ties, NaN, refusals, gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import baracuda as bc
import baracuda.functional as F

INTS = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
HALVES = [torch.float16, torch.bfloat16]
FLOATS = [*HALVES, torch.float32, torch.float64]
DIMS: list[Any] = [None, 0, -1, (0, 2), (0, 1, 2)]


def values(dtype: torch.dtype, shape: tuple[int, ...] = (3, 4, 5)) -> torch.Tensor:
    x = torch.from_numpy(np.random.default_rng(3).normal(0, 2, shape))
    return x > 0 if dtype == torch.bool else x.abs().to(dtype) if dtype == torch.uint8 else x.to(dtype)


def same(got: Any, want: Any) -> None:
    if isinstance(want, tuple):
        assert len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            same(g, w)
        return
    assert got.dtype == want.dtype and got.shape == want.shape
    loose = {torch.float16: 2e-3, torch.bfloat16: 2e-2, torch.float32: 1e-5}.get(want.dtype, 1e-10)
    assert torch.allclose(got, want, rtol=loose, atol=loose, equal_nan=True), (got, want)


def both(name: str, x: torch.Tensor, *args: Any, **kwargs: Any) -> None:
    same(getattr(F, name)(x, *args, **kwargs), getattr(torch, name)(x, *args, **kwargs))


@pytest.mark.parametrize("dtype", INTS + FLOATS, ids=str)
@pytest.mark.parametrize("name", ["any", "all", "count_nonzero", "nansum"])
@pytest.mark.parametrize("dim", DIMS, ids=str)
def test_every_element(name: str, dtype: torch.dtype, dim: Any) -> None:
    if dim is None:
        both(name, values(dtype))
    elif name == "count_nonzero":
        both(name, values(dtype), dim)
    else:
        both(name, values(dtype), dim, keepdim=True)


@pytest.mark.parametrize("dtype", INTS + FLOATS, ids=str)
def test_along_one_axis(dtype: torch.dtype) -> None:
    x = values(dtype)
    both("prod", x)
    for dim in (0, 1, -1):
        both("prod", x, dim)
        for name in ("max", "min"):
            found, want = getattr(F, name)(x, dim), getattr(torch, name)(x, dim)
            same(tuple(found), (want.values, want.indices))
    for name in ("max", "min"):
        same(getattr(F, name)(x), getattr(torch, name)(x))
    for dim in (None, 0, 2):
        same(tuple(F.aminmax(x, dim=dim, keepdim=True)), tuple(torch.aminmax(x, dim=dim, keepdim=True)))
    if dtype is not torch.bool:
        both("trace", x[0])


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("dim", DIMS, ids=str)
@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
def test_floats(dtype: torch.dtype, dim: Any) -> None:
    x = values(dtype)
    for name in ("var", "std", "var_mean", "std_mean"):
        for correction in (0, 1, 3):
            both(name, x, dim, correction=correction, keepdim=True)
    both("logsumexp", x, (0, 1, 2) if dim is None else dim, True)
    x[1, 2, 3] = float("nan")
    both("nanmean", x, dim, True)


@pytest.mark.parametrize("p", ["nuc", [], torch.zeros(0), np.array([1.0, 2.0]), 10**400])
def test_norms_want_a_number(p: Any) -> None:
    for call in (lambda: F.norm(np.ones(3), p), lambda: F.norm_backward(np.ones(()), np.ones(3), np.ones(()), p)):
        with pytest.raises(bc.InvalidProblemError, match=r": p: got"):
            call()


@pytest.mark.parametrize("p", ["fro", 0, 1, 2, 3, 0.5, -1, float("inf"), -float("inf")])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_norms(p: Any, dtype: torch.dtype) -> None:
    x = values(dtype)
    wide = x.double()
    for dim in (0, -1, (0, 2)):
        want = torch.linalg.vector_norm(wide, 2 if p == "fro" else p, dim).to(dtype)
        same(F.norm(x, p, dim), want)
        same(F.vector_norm(x, 2 if p == "fro" else p, dim), want)


def test_cosine_similarity_broadcasts() -> None:
    a, b = torch.randn(3, 1, 8), torch.randn(4, 8)
    same(F.cosine_similarity(a, b, -1), torch.nn.functional.cosine_similarity(a, b, -1))
    same(F.cosine_similarity(a, b, 1), torch.nn.functional.cosine_similarity(a, b, 1))


def test_slices_of_nothing() -> None:
    x = torch.zeros(2, 0)
    for name in ("prod", "any", "all", "nansum", "nanmean", "count_nonzero"):
        both(name, x, 1)
    both("logsumexp", x, 1)
    assert torch.isnan(F.var(x, 1)).all() and torch.isnan(F.var_mean(x, 1)[1]).all()
    for refused in (lambda: F.max(x, 1), lambda: F.aminmax(x, dim=1), lambda: F.norm(x, float("inf"), 1)):
        with pytest.raises(bc.UnsupportedError, match="at least one element"):
            refused()
    assert F.max(torch.zeros(0, 3), 1)[1].shape == (0,)


def test_refusals() -> None:
    x = np.ones((2, 3), np.int32)
    for call in (F.var, F.nanmean, F.norm, F.mean, lambda v: F.mean(v, dtype="i64")):
        with pytest.raises(bc.InvalidProblemError, match="want a float element"):
            call(x)
    with pytest.raises(bc.InvalidProblemError, match="a matrix"):
        F.trace(np.ones(3, np.float32))
    with pytest.raises(bc.InvalidProblemError, match="axis"):
        F.max(np.ones((2, 3), np.float32), 2)
    with pytest.raises(bc.InvalidProblemError, match="fro"):
        F.norm(np.ones((2, 3), np.float32), "nuc")


def test_the_first_of_equals_and_the_first_nan_win() -> None:
    x = torch.tensor([[1.0, 5, 5, 2], [1, float("nan"), 3, float("nan")]])
    for transposed in (False, True):
        v = x.T.contiguous().T if transposed else x
        assert F.max(v, 1)[1].tolist() == [1, 1] and F.min(v, 1)[1].tolist() == [0, 1]


@pytest.mark.parametrize("name", ["prod", "logsumexp", "nansum", "nanmean", "var", "std", "max", "min", "norm"])
@pytest.mark.parametrize("dim", [0, 1])
def test_gradients(name: str, dim: int) -> None:
    x = values(torch.float64, (5, 6))
    x[1, 2] = x[3, 2] = x[4, 0] = 0
    args: dict[str, Any] = {"p": 3.0, "dim": dim} if name == "norm" else {"dim": dim}
    y, pull = bc.vjp(getattr(F, name), x, **args)
    leaf = x.clone().requires_grad_(True)
    want = getattr(torch, name)(leaf, **args)
    want = want[0] if isinstance(want, tuple) else want
    dy = torch.arange(1.0, want.numel() + 1, dtype=torch.float64).reshape(want.shape)
    want.backward(dy)
    assert leaf.grad is not None
    same(pull(dy), leaf.grad)


@pytest.mark.parametrize("name", ["var_mean", "std_mean", "aminmax"])
def test_gradients_of_two_results(name: str) -> None:
    x = values(torch.float64, (5, 6))
    args: dict[str, Any] = {"dim": 1}
    _, pull = bc.vjp(getattr(F, name), x, **args)
    leaf = x.clone().requires_grad_(True)
    first, second = getattr(torch, name)(leaf, **args)
    dy = (torch.arange(1.0, 6, dtype=torch.float64), torch.arange(2.0, 7, dtype=torch.float64))
    torch.autograd.backward((first, second), dy)
    assert leaf.grad is not None
    same(pull(dy), leaf.grad)


def test_gradient_of_cosine_similarity() -> None:
    a, b = values(torch.float64, (3, 8)), values(torch.float64, (3, 8)).flip(0)
    _, pull = bc.vjp(F.cosine_similarity, a, b)
    leaves = [v.clone().requires_grad_(True) for v in (a, b)]
    dy = torch.tensor([1.0, -2, 3], dtype=torch.float64)
    torch.nn.functional.cosine_similarity(*leaves).backward(dy)
    for got, leaf in zip(pull(dy), leaves, strict=True):
        assert leaf.grad is not None
        same(got, leaf.grad)


def test_a_position_out_of_range_is_refused_before_anything_is_written() -> None:
    plan = bc.plan(bc.IndexedExtremumBackwardDescriptor("max", (2, 3), 1))
    dx = np.full((2, 3), 7, np.float32)
    with pytest.raises(bc.IndexOutOfRangeError):
        plan.run(dvalues=np.ones(2, np.float32), indices=np.array([1, 3]), dx=dx)
    assert (dx == 7).all()


@pytest.mark.parametrize("axis", [0, 1, None])
def test_variance_keeps_its_bound_far_from_zero(axis: int | None) -> None:
    """One pass over memory, without the cancellation of mean(x^2) - mean(x)^2."""
    x = (np.random.default_rng(0).normal(size=(700, 900)) + 1000).astype(np.float32)
    wide = x.astype(np.longdouble)
    want = np.var(wide, axis=axis, ddof=1)
    error = np.abs(np.asarray(F.var(x, axis), np.longdouble) - want)
    assert (error <= 4 * 2.0**-23 * np.sqrt(x.size if axis is None else x.shape[axis]) * np.sqrt(want) * 1001).all()


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, float("inf")])
def test_normalize(p: float) -> None:
    x = values(torch.float64, (4, 5, 6))
    x[1, :, 2] = 0
    leaf = x.clone().requires_grad_(True)
    want = torch.nn.functional.normalize(leaf, p, 1)
    dy = values(torch.float64, (4, 5, 6)).flip(0)
    want.backward(dy)
    y, pull = bc.vjp(F.normalize, x, p, 1)
    assert leaf.grad is not None
    same(y, want.detach())
    same(pull(dy), leaf.grad)


@pytest.mark.parametrize("shape", [(3, 70), (2, 5000), (70, 30), (700, 130)])
@pytest.mark.parametrize("axis", [0, 1, None])
def test_equal_values_have_no_variance(shape: tuple[int, ...], axis: int | None) -> None:
    for dtype in (np.float32, np.float64):
        x = np.full(shape, 0.1, dtype)
        var, mean = F.var_mean(x, axis)
        assert (np.asarray(var) == 0).all() and (np.asarray(mean) == x[0, 0]).all()


@pytest.mark.parametrize("scale", [1e30, 1e-30, 1e-38])
@pytest.mark.parametrize("count", [7, 1024, 1025, 5000])
def test_long_rows_of_extreme_values(count: int, scale: float) -> None:
    """Squares beyond f32 are summed once more, scaled: every piece and run of the row."""
    rng = np.random.default_rng(count)
    whole = rng.uniform(0.5, 1.5, (3, 2, count)) * rng.choice([-1.0, 1.0], (3, 2, count)) * np.linspace(1, 3, count)
    exact = whole.astype(np.float64)
    x = torch.from_numpy((whole * scale).astype(np.float32))
    layouts = {
        "rows": (x, (1, 2)),
        "turned": (x.permute(2, 0, 1).contiguous().permute(1, 2, 0), (1, 2)),
        "every second": (torch.stack([x, x * 0], -1)[..., 0], (1, 2)),
        "two of three": (x, (0, 2)),
        "backwards": (torch.from_numpy(np.ascontiguousarray(x.numpy()[:, :, ::-1])[:, :, ::-1].copy()), (1, 2)),
    }
    for name, (seen, dims) in layouts.items():
        for got, want in (
            (F.norm(seen, dim=dims), np.sqrt((exact**2).sum(dims))),
            (F.std(seen, dims), exact.std(dims, ddof=1)),
        ):
            np.testing.assert_allclose(np.asarray(got, np.float64) / scale, want, rtol=2e-5, err_msg=name)
