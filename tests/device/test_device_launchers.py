"""What launchers on devices decide: tiles and packs of copies, and numbers that only the device knows, or nobody gave."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest

import baracuda as bc
import baracuda.functional as F
from baracuda.memory.device import Device


@pytest.fixture(params=["cuda", "metal"])
def place(request: pytest.FixtureRequest) -> str:
    if not Device(request.param).usable:
        pytest.skip(f"{request.param}: {Device(request.param).reason}")
    return str(request.param)


def numbers(shape: tuple[int, ...], dtype: Any) -> Any:
    return (np.arange(np.prod(shape)) % 251).reshape(shape).astype(dtype)


@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.float32, np.int64])
def test_every_order_of_four_dimensions(place: str, dtype: Any) -> None:
    """Two dimensions are long enough for tiles; the others are walked beside them."""
    whole = numbers((3, 20, 2, 18), dtype)
    there = bc.asarray(whole, device=place)
    for order in permutations(range(4)):
        turned = there.permute(*order)
        np.testing.assert_array_equal(F.copy(turned).to("cpu").numpy(), whole.transpose(order), str(order))
        back = np.argsort(order)
        into = bc.empty(tuple(np.take(whole.shape, order)), bc.Element.coerce(np.dtype(dtype)), device=place).permute(
            *back
        )
        assert F.copy(there, out=into) is into
        np.testing.assert_array_equal(F.copy(into).to("cpu").numpy(), whole, str(order))


@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.float32])
def test_views_that_start_anywhere(place: str, dtype: Any) -> None:
    """Packs need an aligned start and strides that are whole packs."""
    whole = numbers((24, 40, 36), dtype)
    there = bc.asarray(whole, device=place)
    for at in ((0, 0, 0), (0, 0, 1), (1, 2, 3), (3, 1, 4), (2, 5, 8)):
        for step in (1, 2):
            cut = (slice(at[0], None, step), slice(at[1], None), slice(at[2], -1))
            for order in ((0, 1, 2), (2, 1, 0), (0, 2, 1), (1, 2, 0)):
                got = F.copy(there[cut].permute(*order)).to("cpu").numpy()
                np.testing.assert_array_equal(got, whole[cut].transpose(order), f"{at} {step} {order}")


@pytest.mark.parametrize("columns", range(1, 10))
def test_rows_of_every_length(place: str, columns: int) -> None:
    """Rows that lie 16 elements apart are taken in packs only where they are whole packs."""
    for dtype in (np.float16, np.float32, np.float64) if place == "cuda" else (np.float16, np.float32):
        x = numbers((9, 16), dtype)
        index = np.array([8, 0, 3, 3, -9 + 9, 7])
        out = bc.zeros((6, 16), bc.Element.coerce(np.dtype(dtype)), device=place)
        there = bc.asarray(x, device=place)
        F.index_select(there[:, :columns], 0, bc.asarray(index, device=place), out=out[:, :columns])
        want = np.zeros((6, 16), dtype)
        want[:, :columns] = x[index, :columns]
        np.testing.assert_array_equal(out.to("cpu").numpy(), want)


@pytest.mark.parametrize("columns", range(1, 10))
def test_rows_of_a_table(place: str, columns: int) -> None:
    """Of a part of its columns, into a part of others: in packs only where all of it is whole packs."""
    weight, ids = numbers((9, 16), np.float32), np.array([8, 0, 3, 3, 1])
    table, out = bc.asarray(weight, device=place), bc.zeros((5, 16), "f32", device=place)
    plan = bc.plan(bc.EmbeddingDescriptor((9, columns), (5,)), device=place)
    plan.run(bc.asarray(ids, device=place), table[:, :columns], out[:, :columns])
    want = np.zeros((5, 16), np.float32)
    want[:, :columns] = weight[ids, :columns]
    np.testing.assert_array_equal(out.to("cpu").numpy(), want)


def test_numbers_that_the_device_knows(place: str) -> None:
    """Large integers, numbers between 0 and 1 as bools, and one of two bounds, given as tensors there."""
    index = bc.asarray(np.array([1, 3]), device=place)
    whole = bc.asarray(np.array(2**40 + 7), device=place)
    got = F.index_fill(bc.asarray(np.zeros(5, np.int64), device=place), 0, index, whole)
    np.testing.assert_array_equal(got.to("cpu").numpy(), [0, 2**40 + 7, 0, 2**40 + 7, 0])
    half = bc.asarray(np.array(0.5, np.float32), device=place)
    got = F.index_fill(bc.asarray(np.zeros(5, bool), device=place), 0, index, half)
    np.testing.assert_array_equal(got.to("cpu").numpy(), [False, True, False, True, False])
    y = bc.empty((64,), "f32", device=place)
    for low, high in ((half, 0.75), (0.25, half), (0.25, 0.75)):
        F.uniform_(y, low, high, generator=bc.Generator(3))
        drawn = y.to("cpu").numpy()
        least, most = (0.5 if n is half else n for n in (low, high))
        assert (drawn >= least).all() and (drawn < most).all() and np.ptp(drawn) > (most - least) / 2


@pytest.mark.parametrize("step", [1, 2])
def test_the_first_step_of_an_optimizer(place: str, step: int) -> None:
    rng = np.random.default_rng(step)
    lists = [rng.uniform(0.1, 1, 33).astype(np.float32) for _ in range(4)]
    here = [x.copy() for x in lists]
    F.adam_(*here, step=step, lr=1e-2)
    for given in (step, bc.asarray(np.array(step), device=place)):
        there = [bc.asarray(x, device=place) for x in lists]
        F.adam_(*there, step=given, lr=1e-2)
        Device(place).check()
        for a, b in zip(there, here, strict=True):
            np.testing.assert_allclose(a.to("cpu").numpy(), b, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8])
def test_one_bound_of_integers(place: str, dtype: Any) -> None:
    """The bound that is not given is the element's own."""
    low = 0 if dtype is np.uint8 else -100
    x = np.arange(low, 100).astype(dtype)
    for bounds in ({"min": 3}, {"max": 7}, {"min": 3, "max": 7}):
        got = F.clamp(bc.asarray(x, device=place), **bounds).to("cpu").numpy()
        np.testing.assert_array_equal(got, np.clip(x, bounds.get("min"), bounds.get("max")))


def test_partial_sums_that_are_folded_in_strips(place: str) -> None:
    """So many partial gradients of a weight that adding them up takes memory of its own."""
    rng = np.random.default_rng(4)
    x, dy = (rng.normal(size=(1, 1, 300, 256)).astype(np.float32) for _ in range(2))
    angle = rng.uniform(0, 6, (300, 128))
    given = (
        x,
        rng.uniform(0.5, 1.5, 256).astype(np.float32),
        np.cos(angle).astype(np.float32),
        np.sin(angle).astype(np.float32),
    )
    _, pull = bc.vjp(F.rms_norm_rope, *given)
    _, pull_there = bc.vjp(F.rms_norm_rope, *(bc.asarray(v, device=place) for v in given))
    for got, want in zip(pull_there(bc.asarray(dy, device=place)), pull(dy), strict=True):
        np.testing.assert_allclose(got.to("cpu").numpy(), want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_copies_of_elements_without_a_kernel(place: str, dtype: Any) -> None:
    """Runs of neighbours are copied one by one where a backend has no kernel for the element."""
    whole = numbers((3, 4, 5), dtype)
    source = bc.asarray(whole, device=place)
    for cut, order in (
        ((slice(None), slice(1, 3)), (0, 1, 2)),
        ((slice(None), slice(None)), (1, 0, 2)),
        ((slice(2),), (2, 0, 1)),
    ):
        seen, want = source[cut].permute(*order), whole[cut].transpose(order)
        target = bc.zeros(want.shape[::-1], bc.Element.coerce(np.dtype(dtype)), device=place).permute(2, 1, 0)
        assert target.copy_from(seen) is target
        np.testing.assert_array_equal(np.asarray(target.to("cpu").numpy()), want)
