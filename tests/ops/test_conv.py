"""Convolutions: against torch, with its options and layouts, and the errors for what does not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import baracuda as bc
import baracuda.functional as F

nn = torch.nn.functional

# Function, input, weight, options.
CALLS: list[tuple[str, tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ("conv1d", (2, 4, 11), (6, 4, 3), {"padding": "same", "dilation": 2}),
    ("conv1d", (4, 11), (6, 2, 4), {"padding": "same", "groups": 2}),
    ("conv2d", (2, 6, 9, 10), (4, 3, 3, 2), {"stride": (2, 1), "padding": (1, 0), "groups": 2}),
    ("conv2d", (6, 9, 10), (4, 6, 3, 3), {"padding": "valid", "stride": [3]}),
    ("conv2d", (3, 40, 14, 14), (24, 40, 1, 1), {}),
    ("conv2d", (2, 32, 12, 13), (32, 1, 3, 3), {"padding": 1, "groups": 32}),
    ("conv2d", (2, 4, 3, 3), (4, 4, 3, 3), {"padding": 4}),
    ("conv3d", (1, 2, 5, 6, 7), (3, 2, 2, 3, 1), {"stride": 2, "padding": (1, 1, 0), "dilation": (2, 1, 1)}),
    ("conv_transpose1d", (2, 4, 7), (4, 3, 5), {"stride": 3, "padding": 2, "output_padding": 1}),
    ("conv_transpose2d", (2, 4, 5, 6), (4, 3, 3, 2), {"stride": (2, 3), "output_padding": (1, 2), "groups": 2}),
    ("conv_transpose2d", (4, 5, 6), (4, 3, 3, 3), {"dilation": 2, "padding": 1}),
    ("conv_transpose3d", (1, 2, 3, 4, 3), (2, 3, 2, 2, 3), {"stride": (1, 2, 1)}),
]


def _tensors(shape: tuple[int, ...], weight: tuple[int, ...], out: int, dtype: torch.dtype) -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [torch.randn(s, dtype=torch.float64).to(dtype) for s in (shape, weight, (out,))]


@pytest.mark.filterwarnings("ignore:Using padding='same'")
@pytest.mark.parametrize("last", [False, True], ids=["first", "last"])
@pytest.mark.parametrize(("name", "shape", "weight", "options"), CALLS)
def test_as_torch(
    name: str, shape: tuple[int, ...], weight: tuple[int, ...], options: dict[str, Any], last: bool
) -> None:
    out = weight[1] * options.get("groups", 1) if "transpose" in name else weight[0]
    x, w, b = _tensors(shape, weight, out, torch.float64)
    if last and x.ndim == 4:
        x = x.to(memory_format=torch.channels_last)
    leaves = [t.clone().requires_grad_(True) for t in (x, w, b)]
    want = getattr(nn, name)(*leaves, **options)
    got, pull = bc.vjp(getattr(F, name), x, w, b, **options)
    torch.testing.assert_close(got, want.detach(), rtol=1e-11, atol=1e-11)
    dy = torch.randn_like(want)
    want.backward(dy)
    for found, leaf in zip(pull(dy), leaves, strict=True):
        torch.testing.assert_close(found, leaf.grad, rtol=1e-11, atol=1e-11)
    torch.testing.assert_close(
        getattr(F, name)(x, w, **options), getattr(nn, name)(x, w, **options), rtol=1e-11, atol=1e-11
    )


# Of f32 and halves, with enough channels for the lanes of vectors: rows of one tile, of several and of a shared one.
WIDE: list[tuple[str, tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ("conv1d", (2, 16, 33), (48, 16, 3), {"stride": 2}),
    ("conv2d", (2, 16, 5, 5), (16, 16, 3, 3), {"padding": 1}),
    ("conv2d", (3, 40, 7, 6), (50, 40, 3, 3), {"padding": (1, 2)}),
    ("conv2d", (2, 48, 14, 15), (32, 24, 3, 3), {"padding": 1, "groups": 2}),
    ("conv2d", (1, 33, 9, 29), (61, 33, 2, 3), {"stride": (3, 2), "padding": (0, 1)}),
    ("conv2d", (2, 64, 15, 13), (32, 64, 1, 1), {"stride": 2}),
    ("conv2d", (2, 64, 7, 7), (96, 64, 1, 1), {}),
    ("conv2d", (1, 20, 11, 17), (16, 20, 3, 3), {"dilation": (1, 3), "padding": 2}),
    ("conv3d", (1, 16, 4, 5, 9), (16, 16, 2, 3, 3), {"stride": (1, 2, 1), "padding": 1}),
    ("conv_transpose2d", (2, 32, 7, 9), (32, 24, 3, 3), {"stride": 2, "padding": 1, "output_padding": 1}),
    ("conv_transpose2d", (2, 16, 8, 6), (16, 32, 3, 2), {"padding": 1}),
]


@pytest.mark.parametrize("last", [False, True], ids=["first", "last"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize(("name", "shape", "weight", "options"), WIDE)
def test_channels_in_lanes(
    name: str, shape: tuple[int, ...], weight: tuple[int, ...], options: dict[str, Any], dtype: torch.dtype, last: bool
) -> None:
    out = weight[1] * options.get("groups", 1) if "transpose" in name else weight[0]
    x, w, b = _tensors(shape, weight, out, dtype)
    if last:
        x, w = x.movedim(1, -1).contiguous().movedim(-1, 1), w.transpose(0, 1).contiguous().transpose(0, 1)
    want = getattr(nn, name)(x.double(), w.double(), b.double(), **options)
    got = getattr(F, name)(x, w, b, **options)
    torch.testing.assert_close(got, want.to(dtype), rtol=2 * torch.finfo(dtype).eps, atol=1e-4)
    assert torch.equal(getattr(F, name)(x[:1], w, b, **options), got[:1])


def test_lanes_may_be_those_of_the_result() -> None:
    x, w, b = _tensors((2, 40, 7, 10), (50, 40, 3, 3), 50, torch.float32)
    made = bc.plan(bc.ConvDescriptor(tuple(x.shape), tuple(w.shape), low=(1, 1), high=(1, 1), bias=True))
    y = torch.full((2, 7, 10, 50), torch.nan).movedim(-1, 1)
    made.run(x=x, weight=w, bias=b, y=y, workspace=bc.empty(made.workspace_size, "u8"))
    assert torch.equal(y, F.conv2d(x, w, b, padding=1))


def test_lanes_see_nothing_outside_of_a_window() -> None:
    x, w = np.zeros((1, 16, 7, 14), np.float32), np.ones((16, 16, 3, 3), np.float32)
    x[0, 3, 2, 13] = np.nan
    y = F.conv2d(x, w, padding=1)
    assert np.isnan(y[0, :, 1:4, 12:]).all() and np.isnan(y).sum() == 16 * 6


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
def test_long_sums_of_halves_are_rounded_once(dtype: torch.dtype) -> None:
    x, w, _ = _tensors((1, 512, 6, 6), (8, 512, 3, 3), 8, dtype)
    want = nn.conv2d(x.double(), w.double()).to(dtype)
    torch.testing.assert_close(F.conv2d(x, w), want, rtol=2 * torch.finfo(dtype).eps, atol=1e-4)


def test_frames_of_many_images_are_made_a_few_at_a_time() -> None:
    x, w, _ = _tensors((70, 8, 64, 66), (9, 8, 3, 3), 9, torch.float32)
    torch.testing.assert_close(F.conv2d(x, w, padding=1), nn.conv2d(x, w, padding=1), rtol=1e-4, atol=1e-4)
    dy = torch.randn(70, 9, 64, 66)
    got = F.conv2d_backward(dy, x, w, padding=1)
    want = torch.ops.aten.convolution_backward(
        dy.double(), x.double(), w.double(), None, (1, 1), (1, 1), (1, 1), False, (0, 0), 1, (True, True, False)
    )
    for found, expected in zip(got, want, strict=False):
        torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=5e-3)


def test_nothing_outside_of_a_window_is_seen() -> None:
    x = np.zeros((1, 1, 5, 70), np.float32)
    x[0, 0, 2, 30] = np.nan
    y = F.conv2d(x, np.ones((1, 1, 3, 3), np.float32), padding=1)
    assert np.isnan(y[0, 0, 1:4, 29:32]).all() and np.isnan(y).sum() == 9
    dy = np.ones((1, 1, 3, 68), np.float32)
    x[0, 0, 2, 30] = 0
    x[0, 0, 0, 69] = np.inf
    dw = F.conv2d_backward(dy, x, np.ones((1, 1, 3, 3), np.float32))[1]
    assert np.isinf(dw[0, 0, 0, 2]) and np.isfinite(dw).sum() == 8


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda x, w: F.conv2d(x, w[:, :, :, :1].repeat(9, 3)), "a kernel of at most 6 along axis 3"),
        (lambda x, w: F.conv2d(x, w, groups=2), "groups"),
        (lambda x, w: F.conv2d(x[:, :3], w), "4 channels"),
        (lambda x, w: F.conv2d(x, w, padding="same", stride=2), "stride 1"),
        (lambda x, w: F.conv2d(x, w, padding="full"), "'same' or 'valid'"),
        (lambda x, w: F.conv2d(x, w, stride=0), "stride"),
        (lambda x, w: F.conv2d(x, w, stride=(1, 1, 1)), "one per axis"),
        (lambda x, w: F.conv1d(x, w), "3 dimensions"),
        (lambda x, w: F.conv2d(x, w, np.ones(7, np.float32)), "bias"),
        (lambda x, w: F.conv_transpose2d(x, w[:, :4].repeat(2, 0)[:4], output_padding=1), "output_padding"),
    ],
)
def test_errors_say_what_is_wrong(call: Any, what: str) -> None:
    x, w = np.ones((2, 4, 6, 6), np.float32), np.ones((3, 4, 3, 3), np.float32)
    with pytest.raises(bc.BaracudaError, match=what):
        call(x, w)


def test_batches_may_be_dims() -> None:
    n = bc.Dim("n", max=5)
    made = bc.plan(bc.ConvDescriptor((n, 3, 8, 8), (4, 3, 3, 3), low=(1, 1), high=(1, 1)))
    w = np.random.default_rng(0).normal(size=(4, 3, 3, 3)).astype(np.float32)
    for count in (5, 0, 2):
        x, y = np.ones((count, 3, 8, 8), np.float32), np.empty((count, 4, 8, 8), np.float32)
        made.run(x=x, weight=w, y=y, workspace=bc.empty(made.workspace_size, "u8"))
        assert np.array_equal(y, F.conv2d(x, w, padding=1))
    with pytest.raises(bc.InvalidProblemError, match="stride above 1"):
        bc.ConvDescriptor((1, 3, n, 8), (4, 3, 3, 3), (2, 2))
