"""Running sums and products: against torch, and what the generated tests do not reach."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import baracuda as bc
import baracuda.functional as F

DTYPES = [
    getattr(torch, n)
    for n in ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]
]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_as_torch(name: str, dtype: torch.dtype, dim: int) -> None:
    x = torch.from_numpy(np.random.default_rng(0).normal(0, 3, (7, 6, 5)))
    x = x > 0 if dtype == torch.bool else x.abs().to(dtype) if dtype == torch.uint8 else x.to(dtype)
    got, want = getattr(F, name)(x, dim), getattr(torch, name)(x, dim)
    assert got.dtype == want.dtype
    loose = {torch.float16: 4e-3, torch.bfloat16: 4e-2, torch.float32: 1e-5}.get(dtype, 1e-12)
    assert torch.allclose(got, want, rtol=loose, atol=loose)


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
@pytest.mark.parametrize("dim", [0, 1])
def test_gradient_as_torch(name: str, dim: int) -> None:
    x = torch.from_numpy(np.random.default_rng(0).normal(0, 1, (6, 7)))
    x[1, 2] = x[4, 2] = x[5, 3] = x[0, 4] = 0
    leaf = x.clone().requires_grad_(True)
    dy = torch.from_numpy(np.random.default_rng(1).normal(size=(6, 7)))
    getattr(torch, name)(leaf, dim).backward(dy)
    _, pull = bc.vjp(getattr(F, name), x, dim)
    assert torch.allclose(pull(dy), leaf.grad, rtol=1e-10, atol=1e-12)


def test_a_long_sum_of_equal_numbers_does_not_drift() -> None:
    """Rounding errors of equal terms all point one way: a plain running sum is off by far more than sqrt(n)."""
    n = 1 << 20
    for dtype, eps in ((np.float32, 2.0**-24), (np.float64, 2.0**-53)):
        x = np.full((n,), 0.1, dtype)
        exact = np.arange(1, n + 1, dtype=np.longdouble) * np.longdouble(x[0])
        assert (np.abs(F.cumsum(x, 0).astype(np.longdouble) - exact) <= 2 * eps * exact).all()


@pytest.mark.parametrize("shape", [(40, 3000), (3000, 40)])
def test_in_place(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    for axis in (0, 1):
        plan = bc.plan(bc.ScanDescriptor("cumsum", shape, axis))
        y, inside = np.empty_like(x), x.copy()
        plan.run(x=x, y=y)
        plan.run(x=inside, y=inside)
        assert y.tobytes() == inside.tobytes()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int32], ids=str)
@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_bits_do_not_depend_on_where_a_line_lies(name: str, dtype: torch.dtype) -> None:
    """Lines are taken along or side by side, some positions at a time: never in another order."""
    run = getattr(F, name)
    for length in (*range(1, 10), 17, 1023, 1026, 2051):
        x = torch.from_numpy(np.random.default_rng(length).normal(1, 0.5, (20, length))).mul(3).to(dtype)
        x = x if name == "cumsum" else (x / 3).to(dtype)
        want = run(x, 1)
        wide = torch.zeros(20, length + 3, dtype=dtype)
        wide[:, 3:] = x
        flipped = bc.from_dlpack(x.flip(0))
        for found in (
            run(x.T.contiguous(), 0).T,
            run(x.T.contiguous()[:, :3], 0).T,
            run(x.T, 0).T,
            run(wide[:, 3:], 1),
            run(torch.stack([x, x], 2), 1)[:, :, 1],
            run(x.reshape(20, 1, length), 2)[:, 0],
            torch.stack([run(row, 0) for row in x]),
            torch.from_dlpack(run(flipped, 1)).flip(0),
        ):
            assert torch.equal(found, want[: len(found)]), length


def test_products_of_extremes_leave_the_range_only_where_the_result_does() -> None:
    """Parts of a product are joined before they meet what came before."""
    x = np.tile(np.float32([1e38] * 7 + [3e37] + [1e-44] * 7), 3)
    want = np.cumprod(x.astype(np.longdouble))
    assert np.abs(want).max() < 1e308 and np.abs(want).min() > 1e-300
    got = F.cumprod(x, 0)
    with np.errstate(over="ignore", under="ignore"):
        np.testing.assert_allclose(got, want.astype(np.float32), rtol=2e-7, atol=2.0**-149)


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "logcumsumexp"])
@pytest.mark.parametrize(("reverse", "exclusive"), [(True, False), (False, True), (True, True)])
def test_from_the_other_end_and_without_the_own_element(name: str, reverse: bool, exclusive: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    first = {"cumsum": 0.0, "cumprod": 1.0, "logcumsumexp": -torch.inf}[name]
    for shape, dim in (((7,), 0), ((3, 5), 1), ((4, 3, 2), 0), ((4, 3, 2), -2), ((1,), 0), ((3, 0), 1), ((0, 3), 1)):
        x = torch.randn(shape, generator=generator, dtype=torch.float64)
        x[x < -1] = 0
        leaf = x.clone().requires_grad_(True)
        seen = leaf.flip(dim) if reverse else leaf
        if exclusive and shape[dim]:
            begin = torch.full_like(seen.narrow(dim, 0, 1), first)
            rest = getattr(torch, name)(seen.narrow(dim, 0, shape[dim] - 1), dim)
            want = torch.cat([begin, rest], dim)
        else:
            want = getattr(torch, name)(seen, dim)
        want = want.flip(dim) if reverse else want
        dy = torch.randn(shape, generator=generator, dtype=torch.float64)
        if want.requires_grad:
            want.backward(dy)
        got, pull = bc.vjp(getattr(F, name), x, dim, reverse=reverse, exclusive=exclusive)
        torch.testing.assert_close(got, want.detach())
        torch.testing.assert_close(pull(dy), torch.zeros_like(x) if leaf.grad is None else leaf.grad)
    whole = torch.tensor([2, 3, 4])
    if name != "logcumsumexp":
        theirs = getattr(torch, name)(whole.flip(0) if reverse else whole, 0)
        theirs = torch.cat([torch.tensor([int(first)]), theirs[:-1]]) if exclusive else theirs
        assert torch.equal(
            getattr(F, name)(whole, 0, reverse=reverse, exclusive=exclusive), theirs.flip(0) if reverse else theirs
        )
        assert getattr(F, name)(torch.tensor(2.0), 0, exclusive=True) == first
