"""Products of bf16 of whole numbers, which f32 sums exactly: every kernel gives the same bits, whatever it reads in place.

What lies where, and which rows go another way for their subnormal numbers, is what kernels could get wrong here.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import baracuda as bc

BF16 = bc.Element.BF16.numpy
LEAST = 2.0**-133  # bf16's least number
# Batch, rows, columns, depth: single ones, last ones of tiles, groups and blocks of sums, odd depths, more than a
# thread's share.
SIZES = [
    (1, 1, 40, 3), (1, 9, 33, 1), (1, 64, 64, 64), (1, 33, 193, 65), (2, 7, 300, 257), (1, 70, 16, 511), (1, 16, 70, 1025),
    (3, 47, 49, 512), (1, 300, 64, 300), (12, 40, 48, 64), (40, 65, 50, 31), (40, 13, 65, 64),
]  # fmt: skip
LAYOUTS = ("rows", "columns", "cut")


def whole(rng: np.random.Generator, *shape: int, layout: str = "rows") -> np.ndarray:
    """Numbers of -4 to 4, contiguous along rows, along columns, or in a larger matrix of NaN."""
    values = rng.integers(-4, 5, shape).astype(BF16)
    if layout == "columns":
        return np.ascontiguousarray(values.swapaxes(-1, -2)).swapaxes(-1, -2)
    if layout == "cut":
        wide = np.full((*shape[:-2], shape[-2] + 2, shape[-1] + 3), np.nan, BF16)
        wide[..., 1:-1, 1:-2] = values
        return wide[..., 1:-1, 1:-2]
    return values


def check(a: np.ndarray, b: np.ndarray) -> None:
    """Each row's product of `a` and `b`, with one thread and two."""
    want = (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32).astype(BF16)
    desc = bc.MatmulDescriptor(a.shape, b.shape, "bf16")
    for sku, threads in itertools.product(("thin", "bf16_dot", "packed"), (1, 2)):
        preference = bc.PlanPreference(sku=sku, threads=threads)
        if not bc.MatmulPlan.query(desc, preference=preference):
            continue
        made, out = bc.plan(desc, preference=preference), np.full(want.shape, np.nan, BF16)
        made.run(a, b, out, workspace=bc.empty(made.workspace_size, "u8") if made.workspace_size else None)
        np.testing.assert_array_equal(
            out.astype(np.float32), want.astype(np.float32), err_msg=f"{sku}, {threads} threads"
        )


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_layouts(sizes: tuple[int, int, int, int]) -> None:
    batch, m, n, k = sizes
    rng = np.random.default_rng([*sizes])
    for left, right in itertools.product(LAYOUTS, LAYOUTS):
        check(whole(rng, batch, m, k, layout=left), whole(rng, batch, k, n, layout=right))


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("sizes", [(1, 100, 40, 70), (1, 200, 9, 515), (20, 70, 33, 65)], ids=str)
def test_subnormal_numbers_are_kept(sizes: tuple[int, int, int, int], turned: bool) -> None:
    batch, m, n, k = sizes
    rng = np.random.default_rng([*sizes])
    for where in (
        (),
        (0,),
        (-1, slice(40, 47)),
        (slice(None), slice(None), k - 1),
        (slice(None), slice(None, None, 50)),
    ):
        a, b = whole(rng, batch, m, k), whole(rng, batch, k, n, layout="columns")
        a[where] = (a[where].astype(np.float64) * LEAST).astype(BF16)
        if where == (slice(None), slice(None), k - 1):
            a[..., :-1] = 0
        check(b.swapaxes(1, 2), a.swapaxes(1, 2)) if turned else check(a, b)


def test_small_products_are_kept() -> None:
    rng = np.random.default_rng(0)
    a, b = whole(rng, 90, 64), whole(rng, 64, 40, layout="columns")
    a[50:] = (a[50:].astype(np.float64) * 2.0**-70).astype(BF16)
    b = (b.astype(np.float64) * 2.0**-60).astype(BF16)
    check(a, b)
    check(b.T, a.T)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("k", [64, 65])
def test_neighbours_of_nan_and_infinity(k: int, value: float) -> None:
    """They reach the rows that they are in, and no others, at the end of a row, too."""
    rng = np.random.default_rng(k)
    a, b = (np.maximum(np.abs(x), BF16.type(1)) for x in (whole(rng, 41, k), whole(rng, k, 50, layout="columns")))
    a[17, 0] = a[40, k - 1] = value
    check(a, b)
    check(b.T, a.T)


@pytest.mark.parametrize("layout", ["rows", "columns"])
@pytest.mark.parametrize("sizes", [(70, 40, 64), (40, 260, 257), (9, 300, 64)], ids=str)
def test_additions_in_place(sizes: tuple[int, int, int], layout: str) -> None:
    m, n, k = sizes
    rng = np.random.default_rng([*sizes])
    a, b, bias = whole(rng, m, k), whole(rng, k, n, layout="columns"), whole(rng, n)
    a[:5] = (a[:5].astype(np.float64) * LEAST).astype(BF16)
    out = whole(rng, m, n, layout=layout)
    sums = 0.5 * (a.astype(np.float64) @ b.astype(np.float64)) + 2 * out.astype(np.float64) + bias.astype(np.float64)
    want = np.maximum(sums, 0).astype(np.float32).astype(BF16)
    desc = bc.MatmulDescriptor(a.shape, b.shape, "bf16", c_shape=out.shape, bias=True, activation="relu")
    for sku in ("thin", "bf16_dot", "packed"):
        if not bc.MatmulPlan.query(desc, preference=bc.PlanPreference(sku=sku)):
            continue
        made = bc.plan(desc, preference=bc.PlanPreference(sku=sku))
        target = np.array(out, order="K")
        made.run(a, b, target, bias, target, alpha=0.5, beta=2, workspace=bc.empty(made.workspace_size, "u8"))
        np.testing.assert_array_equal(target.astype(np.float32), want.astype(np.float32), err_msg=sku)
