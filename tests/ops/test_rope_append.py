"""rope_append beyond the generated tests: the bits of rope and kv_cache_append, positions, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import baracuda as bc
import baracuda.functional as F


def given(rng: np.random.Generator, dtype: Any, batch: int, length: int) -> dict[str, np.ndarray]:
    angle = rng.uniform(0, 6.3, (30, 4))
    wide = np.float64 if dtype is np.float64 else np.float32
    shapes = {"q": (batch, length, 6, 10), "k": (batch, length, 2, 10), "v": (batch, length, 2, 7)}
    tensors = {n: rng.normal(size=s).astype(dtype).transpose(0, 2, 1, 3) for n, s in shapes.items()}
    caches = {n: rng.normal(size=(batch, 2, 25, d)).astype(dtype) for n, d in (("k_cache", 10), ("v_cache", 7))}
    return {**tensors, "cos": np.cos(angle).astype(wide), "sin": np.sin(angle).astype(wide), **caches}


def plan_of(t: dict[str, np.ndarray], **more: Any) -> Any:
    element = {2: "f16", 4: "f32", 8: "f64"}[t["q"].itemsize]
    return bc.plan(
        bc.RopeAppendDescriptor(t["q"].shape, 30, 8, element=element, kv_heads=2, cache_rows=25, v_dim=7, **more)
    )


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 1), (3, 4)])
@pytest.mark.parametrize("layout", ["half", "interleaved"])
def test_bits_are_those_of_rope_and_append(
    shape: tuple[int, int], dtype: Any, layout: str, rng: np.random.Generator
) -> None:
    t = given(rng, dtype, *shape)
    want = {n: v.copy() for n, v in t.items()}
    turned = {"interleaved": layout == "interleaved", "rotary_dim": 8}
    q, k = (np.asarray(F.rope(want[n], want["cos"], want["sin"], 9, **turned)) for n in "qk")
    want["k_cache"][:, :, 9 : 9 + shape[1]], want["v_cache"][:, :, 9 : 9 + shape[1]] = k, want["v"]
    plan_of(t, layout=layout).run(**t, position=9)
    np.testing.assert_array_equal(t["q"], q)
    for name in ("k", "v", "k_cache", "v_cache"):
        np.testing.assert_array_equal(t[name], want[name])


def test_each_row_goes_where_its_position_is(rng: np.random.Generator) -> None:
    t = given(rng, np.float32, 2, 3)
    before = {n: t[n].copy() for n in ("k_cache", "v_cache")}
    at = np.array([[4, 0, 24], [7, 7, 2]])
    turned = np.asarray(F.rope(t["k"], t["cos"], t["sin"], positions=at, rotary_dim=8))
    plan_of(t, positions_shape=(2, 3)).run(**t, positions=at)
    for b in range(2):
        for s in (0, 1, 2) if b == 0 else (1, 2):  # of two rows with one position the later one
            np.testing.assert_array_equal(t["k_cache"][b, :, at[b, s]], turned[b, :, s])
            np.testing.assert_array_equal(t["v_cache"][b, :, at[b, s]], t["v"][b, :, s])
        others = [p for p in range(25) if p not in at[b]]
        for name, old in before.items():
            np.testing.assert_array_equal(t[name][b][:, others], old[b][:, others])


@pytest.mark.parametrize("at", [[[0, 1, 25]], [[-1, 2, 3]], 23, -1, 28])
def test_positions_are_checked_before_anything_is_written(at: Any, rng: np.random.Generator) -> None:
    t = given(rng, np.float32, 1, 3)
    before = {n: v.copy() for n, v in t.items()}
    scalar = isinstance(at, int)
    plan = plan_of(t, positions_shape=None if scalar else (1, 3))
    with pytest.raises(bc.IndexOutOfRangeError):
        plan.run(**t, **({"position": at} if scalar else {"positions": np.array(at)}))
    for name, old in before.items():
        np.testing.assert_array_equal(t[name], old)


def test_numbers_that_are_none(rng: np.random.Generator) -> None:
    t = given(rng, np.float32, 1, 2)
    t["v"][0, 0, 0, :3] = np.nan, np.inf, -0.0
    t["k"][0, 1, 1, 9] = np.nan  # behind what is rotated
    t["k"][0, 1, 0, 0] = np.inf
    plan_of(t).run(**t, position=3)
    np.testing.assert_array_equal(t["v_cache"][:, :, 3:5], t["v"])
    assert np.signbit(t["v_cache"][0, 0, 3, 2])
    assert np.isnan(t["k_cache"][0, 1, 4, 9]) and not np.isfinite(t["k_cache"][0, 1, 3, [0, 4]]).any()


def test_problems_are_refused(rng: np.random.Generator) -> None:
    with pytest.raises(bc.InvalidProblemError, match="four dimensions"):
        bc.RopeAppendDescriptor((2, 3, 8), 10)
    with pytest.raises(bc.InvalidProblemError, match="cache_rows"):
        bc.RopeAppendDescriptor((1, 2, 3, 8), 10, cache_rows=-1)
    t = given(rng, np.float32, 1, 3)
    with pytest.raises(bc.InvalidProblemError, match="k_cache"):
        plan_of(t).run(**t | {"k_cache": t["k_cache"][:, :, :20]}, position=0)
    with pytest.raises(bc.InvalidProblemError, match="q"):
        plan_of(t).run(**t | {"k": t["q"][:, :2]}, position=0)
    desc = bc.RopeAppendDescriptor((1, 2, 3, 8), 10)
    assert [p.shape for p in desc.signature().present if "cache" in p.name] == [(1, 2, 10, 8)] * 2
