"""Reductions: what the generated tests do not reach."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import baracuda as bc
import baracuda.functional as F
from baracuda.ops.reduce.extrema import ArgReduceDescriptor
from baracuda.ops.reduce.reduce import ReduceDescriptor


def test_long_sum_keeps_its_bound_where_a_plain_f32_sum_does_not() -> None:
    x = np.full(1 << 24, 0.1, np.float32)
    exact = float(np.sum(x, dtype=np.float64))
    # 64 terms per lane and a tree of 6 additions; block sums are compensated.
    assert abs(float(F.sum(x)) - exact) <= 71 * 2.0**-24 * exact


def test_cancelling_sum_of_large_values() -> None:
    x = np.tile(np.array([1e8, 1.0, -1e8, 1.0], np.float32), 1 << 16)
    error = abs(float(F.sum(x)) - float(np.sum(x, dtype=np.float64)))
    assert error <= 2.0**-23 * np.sqrt(x.size) * float(np.sum(np.abs(x), dtype=np.float64))


@pytest.mark.parametrize("axis", [0, 1, None])
def test_sum_bits_do_not_depend_on_threads_when_cut_into_strips(axis: int | None) -> None:
    x = np.random.default_rng(0).normal(size=(517, 1031)).astype(np.float32)
    axes = None if axis is None else (axis,)
    plans = [
        bc.plan(ReduceDescriptor("sum", x.shape, axes), preference=bc.PlanPreference(threads=n)) for n in (1, 2, 3)
    ]
    results = []
    for plan in plans:
        y = np.empty(plan.signature.outputs[0].shape, np.float32)
        plan.run(x=x, y=y, workspace=bc.empty(plan.workspace_size, "u8") if plan.workspace_size else None)
        results.append(y.tobytes())
    assert len(set(results)) == 1


def test_max_of_only_minus_infinity_is_minus_infinity() -> None:
    x = np.full((3, 200), -np.inf, np.float32)
    assert (F.amax(x, 1) == -np.inf).all() and (F.amax(x, 0) == -np.inf).all()
    assert (F.argmax(x, 1) == 0).all() and (F.argmax(x, 0) == 0).all()


def test_argmax_finds_the_first_in_logical_order_of_a_permuted_tensor() -> None:
    x = np.zeros((300, 301), np.float32)
    x[7, 200] = x[8, 3] = 1
    assert int(F.argmax(np.ascontiguousarray(x.T).T)) == 7 * 301 + 200


@pytest.mark.parametrize("shape", [(200000,), (3, 70000), (70000, 3)])
def test_argmax_over_strips_keeps_the_first_tie_and_the_first_nan(shape: tuple[int, ...]) -> None:
    axis = int(np.argmax(shape))
    x = np.moveaxis(np.random.default_rng(1).normal(size=shape).astype(np.float32), axis, -1)
    x[..., [150 % x.shape[-1], -3]] = 9
    x = np.moveaxis(x, -1, axis)
    assert np.array_equal(F.argmax(x, axis), np.argmax(x, axis))
    np.moveaxis(x, axis, -1)[..., [40001, 50002]] = np.nan
    assert np.array_equal(F.argmin(x, axis), np.argmin(x, axis))


@pytest.mark.parametrize("shape", [(300, 4096), (283, 9001), (4111, 257)])
def test_argmax_of_rows_that_are_read_as_streams(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=shape).astype(np.float32)
    rows, length = np.arange(shape[0]), shape[1]
    for value in (9, 9, 0.0):
        x[rows, rng.integers(length, size=shape[0])] = value
    x[::5] = -np.abs(x[::5]) - 1
    x[::5, rng.integers(length, size=2)] = [-0.0, 0.0]
    x[1::7, rng.integers(length, size=2)] = np.nan
    x[2::11] = -np.inf
    for find, torch_like in ((F.argmax, np.argmax), (F.argmin, np.argmin)):
        assert np.array_equal(find(x, 1), torch_like(x, 1))
    values, places = F.max(x, 1)
    assert np.array_equal(values, np.max(x, 1), equal_nan=True) and np.array_equal(places, np.argmax(x, 1))


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64", "i32"])
def test_long_sums_read_as_streams_take_every_element_once(dtype: str) -> None:
    for length in (1 << 18, (1 << 20) + 77777):
        x = F.cast(np.zeros(length, np.float32), dtype)
        rng = np.random.default_rng(3)
        for at in [0, 1, length - 1, *rng.integers(length, size=20)]:
            x[at] = 1
            assert float(F.sum(x)) == 1
            x[at] = 0


def test_ties_share_the_gradient_evenly() -> None:
    x = np.array([[1.0, 3.0, 3.0, 2.0, 3.0]], np.float32)
    y, pull = bc.vjp(F.amax, x, 1)
    assert np.allclose(pull(np.array([6.0], np.float32)), [[0, 2, 2, 0, 2]])


def test_integers_sum_to_i64_and_wrap() -> None:
    assert F.sum(np.full(1000, 200, np.uint8)) == 200000
    assert F.sum(np.ones((4, 5), bool), 0).dtype == np.int64
    big = np.full(3, 2**62, np.int64)
    with np.errstate(over="ignore"):
        assert F.sum(big) == np.sum(big)


def test_empty_extremum_is_refused() -> None:
    with pytest.raises(bc.UnsupportedError, match="at least one element"):
        F.amax(np.zeros((0, 3), np.float32), 0)
    with pytest.raises(bc.UnsupportedError, match="at least one element"):
        F.argmax(np.zeros((2, 0), np.float32), 1)
    assert F.amax(np.zeros((0, 3), np.float32), 1).shape == (0,)


def test_one_plan_serves_all_lengths() -> None:
    n = bc.Dim("n", max=100000)
    plan = bc.plan(ReduceDescriptor("sum", (n,)))
    search = bc.plan(ArgReduceDescriptor("argmax", (n,)))
    workspace = bc.empty(max(plan.workspace_size, search.workspace_size), "u8")
    for length in (0, 1, 63, 65536, 99999):
        x = np.arange(length, dtype=np.float32)
        y, at = np.empty((), np.float32), np.empty((), np.int64)
        plan.run(x=x, y=y, workspace=workspace)
        assert y == pytest.approx(length * (length - 1) / 2, rel=1e-6)
        if length:
            search.run(x=x, y=at, workspace=workspace)
            assert at == length - 1


def test_sum_to_reverses_broadcasting() -> None:
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    y, pull = bc.vjp(F.sum_to, x, (3, 1))
    assert np.array_equal(y, x.sum((0, 2)).reshape(3, 1))
    assert np.array_equal(pull(y), np.broadcast_to(y, x.shape))
    with pytest.raises(bc.InvalidProblemError, match="broadcasts to"):
        F.sum_to(x, (2, 1))


@pytest.mark.parametrize("element", ["f32", "f64", "f16"])
@pytest.mark.parametrize("length", [1, 9, 16, 63, 64, 100, 256, 257, 1000, 1024, 1025, 5000])
def test_one_nan_anywhere_is_the_extremum_of_its_row_alone(length: int, element: str) -> None:
    dtype = {"f32": np.float32, "f64": np.float64, "f16": np.float16}[element]
    rng = np.random.default_rng(length)
    x = rng.normal(size=(37, length)).astype(dtype)
    x[5] = -np.inf
    x[7] = np.inf
    x[3::4, rng.integers(length)] = np.nan
    for name, fold in (("amax", np.max), ("amin", np.min)):
        assert np.array_equal(getattr(F, name)(x, 1), fold(x, 1), equal_nan=True)
        assert np.array_equal(getattr(F, name)(x[:21], 1), fold(x[:21], 1), equal_nan=True)
    assert np.array_equal(F.amax(-x, 1), -fold(x, 1), equal_nan=True)


@pytest.mark.parametrize("name", ["sum", "mean", "amax", "prod"])
@pytest.mark.parametrize("length", [9, 255, 300, 1000, 4095])
def test_a_short_row_has_the_same_bits_beside_others_and_alone(length: int, name: str) -> None:
    x = np.random.default_rng(length).normal(size=(33, length)).astype(np.float32)
    together = getattr(F, name)(x, 1)
    for rows in (1, 2, 17):
        assert np.array_equal(getattr(F, name)(x[:rows], 1), together[:rows])


@pytest.mark.parametrize("length", [255, 256, 300, 768, 1023, 1024, 1025])
def test_rows_of_bf16_have_the_same_bits_beside_others_and_alone(length: int) -> None:
    x = torch.from_numpy(np.random.default_rng(length).normal(size=(83, length)) + 0.5).bfloat16()
    x[3, 7], x[20, -1], x[40] = torch.inf, torch.nan, -0.0
    apart = torch.cat((x, torch.full((83, 5), torch.nan).bfloat16()), 1)[:, :length]  # rows of an odd number of bytes
    for f in (F.sum, F.mean):
        together = f(x, 1)
        alone = torch.stack([f(row) for row in x])
        assert torch.equal(together.nan_to_num(7e4), alone.nan_to_num(7e4))
        assert torch.equal(f(apart, 1).nan_to_num(7e4), together.nan_to_num(7e4))
        torch.testing.assert_close(together, f(x.double(), 1).bfloat16(), equal_nan=True)
