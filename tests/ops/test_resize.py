"""Resizing: against torch, with its options and layouts, and the errors for what does not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import baracuda as bc
import baracuda.functional as F

nn = torch.nn.functional

MODES = (
    ("nearest", 1), ("nearest", 2), ("nearest", 3), ("nearest-exact", 2), ("linear", 1), ("bilinear", 2), ("bicubic", 2),
    ("trilinear", 3), ("area", 2), ("area", 3),
)  # fmt: skip
SIZES: tuple[dict[str, Any], ...] = (
    {"size": (13, 7, 5)}, {"size": (3, 21, 41)}, {"size": 1}, {"scale_factor": 2}, {"scale_factor": 2.3}, {"scale_factor": 0.6},
    {"scale_factor": 0.6, "recompute_scale_factor": True}, {"scale_factor": (1.7, 0.5, 3.0)},
)  # fmt: skip


@pytest.mark.parametrize("last", [False, True], ids=["first", "last"])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize(("mode", "axes"), MODES)
def test_as_torch(mode: str, axes: int, sizes: dict[str, Any], last: bool) -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 5, *(11, 9, 6)[:axes], dtype=torch.float64)
    if last:
        x = x.transpose(1, -1).contiguous().transpose(1, -1)
    options = {k: v[:axes] if isinstance(v, tuple) else v for k, v in sizes.items()} | {"mode": mode}
    for align in (False, True) if "linear" in mode or "cubic" in mode else (None,):
        for antialias in (False, True) if mode in ("bilinear", "bicubic") else (False,):
            more = {"align_corners": align, "antialias": antialias}
            leaf = x.clone().requires_grad_(True)
            want = nn.interpolate(leaf, **options, **more)
            got, pull = bc.vjp(F.interpolate, x, **options, **more)
            torch.testing.assert_close(got, want.detach(), rtol=1e-11, atol=1e-11)
            dy = torch.randn_like(want)
            want.backward(dy)
            torch.testing.assert_close(pull(dy), leaf.grad, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("dtype", [torch.float32, torch.uint8], ids=str)
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
def test_nearest_places_are_those_of_torch(mode: str, dtype: torch.dtype) -> None:
    """Also where a ratio of f32 is off; of nearest-exact where positions are not whole, as torch's come from a fused product."""
    for places in (1, 2, 3, 5, 7, 41, 49, 100, 255):
        x = (torch.arange(places) % 256).to(dtype)[None, None]
        for results in (1, 2, 3, 6, 10, 41, 49, 82, 98, 123, 205, 510, 41 * 25):
            got, want = (f(x, results, mode=mode) for f in (F.interpolate, nn.interpolate))
            whole = (2 * torch.arange(results) + 1) * places % (2 * results) == 0
            same = (got == want) | (whole if mode == "nearest-exact" else False)
            assert same.all()
        for factor in (1.05, 0.31, 2.0, 2.5, 3.3):
            if int(places * factor) > 0:
                got, want = (f(x, scale_factor=factor, mode=mode) for f in (F.interpolate, nn.interpolate))
                assert torch.equal(got, want)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_rows_of_every_length(mode: str, dtype: torch.dtype) -> None:
    """Those of vectors and what is left over, of several strips, and stretched so far that a vector has one place."""
    for width, results in ((1, 40), (7, 15), (16, 33), (17, 16), (600, 1201), (1100, 700), (3, 1000), (40, 3)):
        x = torch.randn(1, 2, 3, width).to(dtype)
        want = nn.interpolate(x.double(), (5, results), mode=mode).to(dtype)
        got = F.interpolate(x, (5, results), mode=mode)
        torch.testing.assert_close(got, want, rtol=4 * torch.finfo(dtype).eps, atol=4 * torch.finfo(dtype).eps)


@pytest.mark.parametrize("results", [480, 500, 520, 733, 1030])
def test_rows_that_are_shrunk_to_about_half(results: int) -> None:
    """What a piece of results takes is longer than the piece."""
    x = torch.randn(1, 1, 2, 2200, dtype=torch.float64)
    for mode in ("bilinear", "bicubic", "nearest"):
        torch.testing.assert_close(
            F.interpolate(x, (2, results), mode=mode), nn.interpolate(x, (2, results), mode=mode)
        )
    whole = torch.arange(4400).reshape(1, 1, 2, 2200).to(torch.int32)
    assert torch.equal(F.interpolate(whole, (2, results)).double(), nn.interpolate(whole.double(), (2, results)))


def test_large_results_are_whole() -> None:
    """They are written past the caches."""
    x = torch.randn(3, 8, 251, 301)
    for mode, options in (("bilinear", {"align_corners": False}), ("nearest", {})):
        torch.testing.assert_close(
            F.interpolate(x, scale_factor=2, mode=mode), nn.interpolate(x, scale_factor=2, mode=mode, **options)
        )


@pytest.mark.filterwarnings("ignore:.*deprecated")
def test_older_names() -> None:
    x = torch.randn(1, 2, 5, 6)
    for name, more in (("upsample", {"mode": "bicubic"}), ("upsample_nearest", {}), ("upsample_bilinear", {})):
        torch.testing.assert_close(getattr(F, name)(x, 9, **more), getattr(nn, name)(x, 9, **more))


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda x: F.interpolate(x), "either it or scale_factor"),
        (lambda x: F.interpolate(x, 3, 2), "either it or scale_factor"),
        (lambda x: F.interpolate(x, 3, mode="linear"), "3 dimensions"),
        (lambda x: F.interpolate(x, 3, mode="best"), "one of nearest"),
        (lambda x: F.interpolate(x, (3, 3, 3)), "one per axis"),
        (lambda x: F.interpolate(x, 0), "at least 1"),
        (lambda x: F.interpolate(x, scale_factor=-1), "above 0"),
        (lambda x: F.interpolate(x, scale_factor=(1, 2, 3)), "one per axis"),
        (lambda x: F.interpolate(x, scale_factor=float("nan")), "above 0"),
        (lambda x: F.interpolate(x, 3, align_corners=True), "align_corners"),
        (lambda x: F.interpolate(x, 3, antialias=True), "antialias"),
        (lambda x: F.interpolate(x, 3, recompute_scale_factor=True), "recompute_scale_factor"),
        (lambda x: F.interpolate(x.astype(np.int32), 3, mode="bilinear"), "i32"),
        (lambda x: F.interpolate(x[0, 0], 3), "dimensions"),
        (lambda x: bc.ResizeNearestDescriptor(x.shape, (2, 2), (0, 0), (1, 1), (3, 3), rounded=True), "powers of 2"),
        (lambda x: bc.ResizeDescriptor(x.shape, (2, 2), (0, 0), (1, -1), (3, 3)), "step"),
        (lambda x: bc.ResizeDescriptor(x.shape, (2, 2), (0,), (1, 1), (3, 3)), "one per axis"),
        (lambda x: bc.ResizeDescriptor(x.shape, (2, 2), (2**60, 0), (1, 1), (3, 3)), "2\\*\\*60"),
    ],
)
def test_errors_say_what_is_wrong(call: Any, what: str) -> None:
    with pytest.raises(bc.BaracudaError, match=what):
        call(np.ones((2, 4, 6, 6), np.float32))


def test_batches_may_be_dims() -> None:
    n = bc.Dim("n", max=5)
    made = bc.plan(bc.ResizeDescriptor((n, 3, 8, 8), (16, 16), (-1, -1), (2, 2), (4, 4)))
    scratch = bc.empty(made.workspace_size, "u8")
    for count in (5, 0, 2):
        x = np.random.default_rng(0).normal(size=(count, 3, 8, 8)).astype(np.float32)
        y = np.empty((count, 3, 16, 16), np.float32)
        made.run(x=x, y=y, workspace=scratch)
        assert np.array_equal(y, F.interpolate(x, 16, mode="bilinear"))
