"""Sampling by a grid: against torch, with its options and layouts, and the errors for what does not fit."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
import torch

import baracuda as bc
import baracuda.functional as F

nn = torch.nn.functional

MODES, PADDINGS = ("nearest", "bilinear", "bicubic"), ("zeros", "border", "reflection")


def _grid(n: int, size: tuple[int, ...], results: tuple[int, ...], align: bool) -> torch.Tensor:
    """Positions in and far outside of an image, at parts of places where nothing jumps."""
    rng = np.random.default_rng(1)
    grid = np.empty((n, *results, len(size)))
    for j, places in enumerate(reversed(size)):
        at = rng.integers(-2 * places, 3 * places, (n, *results)) + rng.uniform(0.1, 0.4, (n, *results))
        grid[..., j] = 2 * at / max(places - 1, 1) - 1 if align else (2 * at + 1) / places - 1
    return torch.from_numpy(grid)


@pytest.mark.parametrize("layout", ["first", "last", "strided"])
@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("size", [(5, 7), (1, 6), (3, 4, 5)], ids=str)
@pytest.mark.parametrize(("mode", "padding"), [*product(MODES, PADDINGS)])
def test_as_torch(mode: str, padding: str, size: tuple[int, ...], align: bool, layout: str) -> None:
    if mode == "bicubic" and len(size) == 3:
        pytest.skip("torch has it for two axes")
    torch.manual_seed(0)
    x = torch.randn(2, 21, *size, dtype=torch.float64)
    grid = _grid(2, size, (4, 37, 2)[: len(size)], align)
    if layout == "last":
        x = x.transpose(1, -1).contiguous().transpose(1, -1)
    elif layout == "strided":
        x, grid = x.repeat_interleave(2, -1)[..., ::2], grid.flip(-1).contiguous().flip(-1).transpose(1, 2)
    given, where = x.clone().requires_grad_(True), grid.clone().requires_grad_(True)
    want = nn.grid_sample(given, where, mode, padding, align)
    got, pull = bc.vjp(F.grid_sample, x, grid, mode, padding, align)
    torch.testing.assert_close(got, want.detach(), rtol=1e-10, atol=1e-10)
    dy = torch.randn_like(want)
    want.backward(dy)
    dx, dgrid = pull(dy)
    torch.testing.assert_close(dx, given.grad, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(dgrid, where.grad, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
def test_elements(dtype: torch.dtype) -> None:
    x, grid = torch.randn(1, 3, 6, 8).to(dtype), (torch.rand(1, 9, 40, 2) * 2.4 - 1.2).to(dtype)
    for mode, padding in product(MODES[1:], PADDINGS):
        want = nn.grid_sample(x.double(), grid.double(), mode, padding, False).to(dtype)
        near = 20 * torch.finfo(torch.float32).eps + 2 * torch.finfo(dtype).eps * (dtype != torch.float32)
        torch.testing.assert_close(F.grid_sample(x, grid, mode, padding, False), want, rtol=near, atol=near * 4)


def test_ties_go_to_even_places() -> None:
    x, grid = torch.arange(8.0).reshape(1, 1, 2, 4), torch.tensor([-1, -0.75, -0.5, -0.25, 0, 0.25, 0.5, 0.75, 1])
    grid = torch.stack((grid, torch.full_like(grid, 0.5)), -1)[None, None]
    for padding in PADDINGS:
        assert torch.equal(
            F.grid_sample(x, grid, "nearest", padding), nn.grid_sample(x, grid, "nearest", padding, False)
        )


def test_what_is_no_position_is_outside() -> None:
    """NaN, infinities and numbers whose places no integer holds; what lies outside is not read."""
    x = torch.full((1, 1, 4, 4), 3.0)
    for value, mode in product((float("nan"), float("inf"), -float("inf"), 1e30, -3e38), MODES):
        grid = torch.full((1, 1, 1, 2), value)
        assert F.grid_sample(x, grid, mode).item() == 0
        assert abs(F.grid_sample(x, grid, mode, "border").item() - 3) < 1e-5
        assert abs(F.grid_sample(x, grid, mode, "reflection").item() - 3) < 1e-5
    x[0, 0, 0] = float("inf")
    assert F.grid_sample(x, torch.tensor([[[[0.0, 0.9]]]]), "bilinear").isfinite().all()


def test_many_results_at_one_place() -> None:
    """Their sum is right to the last bit of f32: 2^20 terms of 0.1."""
    grid, dy = np.full((1, 1024, 1024, 2), -5, np.float32), np.full((1, 1, 1024, 1024), 0.1, np.float32)
    dx, _ = F.grid_sample_backward(dy, np.ones((1, 1, 3, 3), np.float32), grid, padding_mode="border")
    assert dx[0, 0, 0, 0] == np.float32(float(np.float32(0.1)) * 2**20)
    assert not dx[0, 0, 1:].any()


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("size", [(2, 3, 4, 5), (1, 1, 1, 7), (2, 1, 3, 2, 4)], ids=str)
@pytest.mark.filterwarnings("ignore:Since version 1.3.0")
def test_affine_grid(size: tuple[int, ...], align: bool) -> None:
    axes = len(size) - 2
    for dtype, near in ((torch.float64, 1e-13), (torch.float32, 1e-6), (torch.float16, 2e-3)):
        theta = torch.randn(size[0], axes, axes + 1, dtype=torch.float64).to(dtype)
        leaf = theta.double().clone().requires_grad_(True)
        want = nn.affine_grid(leaf, list(size), align)
        got, pull = bc.vjp(F.affine_grid, theta, size, align)
        assert got.dtype == dtype
        torch.testing.assert_close(got.double(), want.detach(), rtol=near, atol=2 * near)
        dy = torch.randn_like(want).to(dtype)
        want.backward(dy.double())
        torch.testing.assert_close(pull(dy).double(), leaf.grad, rtol=8 * near, atol=8 * near)


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda x, g: F.grid_sample(x[0], g), "N, C, H, W"),
        (lambda x, g: F.grid_sample(x, g[..., :1]), "grid: got shape"),
        (lambda x, g: F.grid_sample(x, g[:1]), "grid: got shape"),
        (lambda x, g: F.grid_sample(x, g.astype(np.float64)), "want f32, as input has"),
        (lambda x, g: F.grid_sample(x, g, "cubic"), "one of nearest, bilinear, bicubic"),
        (lambda x, g: F.grid_sample(x, g, "nearest", "wrap"), "one of zeros, border"),
        (lambda x, g: F.grid_sample(x[:, :, :0], g), "at least|1 to 2"),
        (lambda x, g: F.grid_sample(x.astype(np.int32), g.astype(np.int32)), "i32"),
        (lambda x, g: F.grid_sampler_2d(x, g, 3, 0, False), "want 0 to 2"),
        (lambda x, g: F.grid_sampler_3d(x, g, 0, 0, False), "5 dimensions"),
        (lambda x, g: F.affine_grid(x[:, 0, :2, :3], (3, 1, 4, 4)), "theta: got shape"),
        (lambda x, g: F.affine_grid(x[:, 0, :2, :3], (2, 1, 0, 4)), "at least 1"),
        (lambda x, g: F.affine_grid(x[:, 0, :2, :3].astype(np.int32), (2, 1, 4, 4)), "theta: got i32"),
        (lambda x, g: bc.GridSampleDescriptor((2, 3, 4), (3, 3)), "one per axis"),
        (lambda x, g: bc.GridSampleDescriptor((2, 3), ()), "one to three axes"),
        (lambda x, g: bc.GridSampleDescriptor((2, 3, 4), (3,), mode="area"), "nearest, linear, cubic"),
    ],
)
def test_errors_say_what_is_wrong(call: Any, what: str) -> None:
    with pytest.raises(bc.BaracudaError, match=what):
        call(np.ones((2, 4, 6, 6), np.float32), np.zeros((2, 3, 5, 2), np.float32))


def test_batches_may_be_dims() -> None:
    n = bc.Dim("n", max=5)
    made = bc.plan(bc.GridSampleDescriptor((n, 3, 8, 8), (4, 4)).backward())
    scratch = bc.empty(made.workspace_size, "u8")
    rng = np.random.default_rng(0)
    for count in (5, 0, 2):
        x, dy = (rng.normal(size=(count, 3, s, s)).astype(np.float32) for s in (8, 4))
        grid = rng.uniform(-1, 1, (count, 4, 4, 2)).astype(np.float32)
        dx, dgrid = np.empty_like(x), np.empty_like(grid)
        made.run(dy=dy, x=x, grid=grid, dx=dx, dgrid=dgrid, workspace=scratch)
        for got, want in zip((dx, dgrid), F.grid_sample_backward(dy, x, grid), strict=True):
            assert np.array_equal(got, want)


@pytest.mark.parametrize("channels", [1, 7, 8, 64, 65, 130])
@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_images_whose_channels_are_neighbours(mode: str, channels: int) -> None:
    """Their points are taken together; bits are those of other images."""
    x, grid = torch.randn(2, channels, 9, 13), torch.randn(2, 5, 37, 2)
    want = F.grid_sample(x, grid, mode)
    torch.testing.assert_close(want, torch.nn.functional.grid_sample(x, grid, mode, align_corners=False))
    assert torch.equal(F.grid_sample(x.to(memory_format=torch.channels_last), grid, mode), want)


@pytest.mark.parametrize("width", [1, 2, 15, 16, 17, 63, 64, 65])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_rows_of_any_length(mode: str, padding: str, width: int) -> None:
    """f32 takes vectors of results; the numbers are those of f64, whatever the strides of the image and of the grid."""
    torch.manual_seed(0)
    images = [torch.randn(2, 3, 7, 9), torch.randn(2, 7, 9, 3).movedim(-1, 1), torch.randn(2, 3, 7, 18)[..., ::2]]
    images += [images[0][:, :, :1, :1], torch.randn(2, 3, 7, 1).expand(2, 3, 7, 9)]
    grid = torch.rand(2, 3, width, 2) * 3 - 1.5
    for given in (grid, torch.cat((grid, grid), -1)[..., :2], grid.movedim(-1, 0).contiguous().movedim(0, -1)):
        for x in images:
            want = nn.grid_sample(x.double(), given.double(), mode, padding, False)
            got = F.grid_sample(x, given, mode, padding, False)
            torch.testing.assert_close(got.double(), want, rtol=1e-4, atol=1e-4)
    flipped = images[0].numpy()[:, :, ::-1, ::-1]
    want = nn.grid_sample(images[0].flip(2, 3).double(), grid.double(), mode, padding, True)
    got = F.grid_sample(flipped, grid.numpy(), mode, padding, True)
    np.testing.assert_allclose(got, want.numpy(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_what_is_outside_is_not_seen(mode: str) -> None:
    x = np.full((1, 1, 6, 6), np.nan, np.float32)
    grid = np.full((1, 2, 20, 2), -3.0, np.float32)
    grid[0, 0, 3], grid[0, 0, 4], grid[0, 0, 5] = np.inf, -np.inf, np.nan
    assert not F.grid_sample(x, grid, mode, "zeros", False).any()
