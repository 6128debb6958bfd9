"""Pooling: against torch, with its options and layouts, and the errors for what does not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import baracuda as bc
import baracuda.functional as F

nn = torch.nn.functional

# Function, input, options.
CALLS: list[tuple[str, tuple[int, ...], dict[str, Any]]] = [
    ("max_pool1d", (2, 3, 11), {"kernel_size": 3, "stride": 2, "padding": 1}),
    ("max_pool1d", (3, 11), {"kernel_size": [4], "ceil_mode": True}),
    ("max_pool2d", (2, 6, 9, 10), {"kernel_size": 3, "stride": 2, "padding": 1}),
    ("max_pool2d", (2, 20, 9, 10), {"kernel_size": (2, 3), "stride": (1, 4), "padding": (1, 0)}),
    ("max_pool2d", (6, 9, 10), {"kernel_size": 3, "dilation": (2, 3), "ceil_mode": True}),
    ("max_pool3d", (2, 3, 5, 6, 7), {"kernel_size": 2, "stride": (2, 1, 3), "padding": 1, "ceil_mode": True}),
    ("avg_pool1d", (2, 3, 11), {"kernel_size": 3, "stride": 2, "padding": 1, "count_include_pad": False}),
    ("avg_pool2d", (2, 20, 9, 10), {"kernel_size": 3, "stride": 2, "padding": 1}),
    ("avg_pool2d", (3, 9, 10), {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True, "count_include_pad": False}),
    ("avg_pool2d", (2, 3, 9, 10), {"kernel_size": (2, 3), "ceil_mode": True, "divisor_override": 5}),
    ("avg_pool3d", (2, 3, 5, 6, 7), {"kernel_size": (2, 3, 2), "stride": 2, "padding": (1, 1, 0), "ceil_mode": True}),
    ("adaptive_max_pool1d", (2, 3, 11), {"output_size": 4}),
    ("adaptive_max_pool2d", (2, 20, 9, 10), {"output_size": (4, 13)}),
    ("adaptive_max_pool3d", (3, 5, 6, 7), {"output_size": (2, None, 1)}),
    ("adaptive_avg_pool1d", (3, 11), {"output_size": 1}),
    ("adaptive_avg_pool2d", (2, 20, 9, 10), {"output_size": (None, 7)}),
    ("adaptive_avg_pool3d", (2, 3, 5, 6, 7), {"output_size": 1}),
    ("lp_pool1d", (2, 3, 11), {"norm_type": 2, "kernel_size": 3, "stride": 2}),
    ("lp_pool2d", (2, 3, 9, 10), {"norm_type": 3, "kernel_size": (2, 3), "ceil_mode": True}),
    ("lp_pool3d", (2, 3, 5, 6, 7), {"norm_type": 1.5, "kernel_size": 2}),
]  # fmt: skip


@pytest.mark.parametrize("last", [False, True], ids=["first", "last"])
@pytest.mark.parametrize(("name", "shape", "options"), CALLS)
def test_as_torch(name: str, shape: tuple[int, ...], options: dict[str, Any], last: bool) -> None:
    torch.manual_seed(0)
    x = torch.randn(shape, dtype=torch.float64)
    x = x.abs() + 0.1 if "lp" in name else x
    if last and x.ndim == 4:
        x = x.to(memory_format=torch.channels_last)
    leaf = x.clone().requires_grad_(True)
    want = getattr(nn, name)(leaf, **options)
    got, pull = bc.vjp(getattr(F, name), x, **options)
    torch.testing.assert_close(got, want.detach(), rtol=1e-12, atol=1e-12)
    dy = torch.randn_like(want)
    want.backward(dy)
    torch.testing.assert_close(pull(dy), leaf.grad, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(getattr(F, name)(x, **options), want.detach(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("last", [False, True], ids=["first", "last"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64], ids=str)
@pytest.mark.parametrize(("name", "shape", "options"), [c for c in CALLS if "max" in c[0]])
def test_indices_are_those_of_torch(
    name: str, shape: tuple[int, ...], options: dict[str, Any], last: bool, dtype: torch.dtype
) -> None:
    if dtype is torch.int64 and name != "max_pool2d":
        pytest.skip("torch pools integers in max_pool2d alone")
    torch.manual_seed(0)
    x = torch.randint(-3, 4, shape).to(dtype)
    if dtype.is_floating_point:
        x[torch.rand(shape) < 0.1], x[torch.rand(shape) < 0.1] = float("nan"), float("-inf")
        x[0] = float("-inf")
    if last and x.ndim == 4:
        x = x.to(memory_format=torch.channels_last)
    got, where = getattr(F, name)(x, **options, return_indices=True)
    want, places = getattr(nn, name)(x, **options, return_indices=True)
    torch.testing.assert_close(got, want, rtol=0, atol=0, equal_nan=True)
    assert torch.equal(where, places)
    torch.testing.assert_close(getattr(F, name)(x, **options), want, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_unpooling_puts_maxima_back(axes: int) -> None:
    pool, unpool = (getattr(nn, f"max_{n}pool{axes}d") for n in ("", "un"))
    ours = getattr(F, f"max_unpool{axes}d")
    even, odd = (8, 6, 4)[:axes], (9, 6, 5)[:axes]
    for shape, sizes in ((even, None), (odd, (2, 3, *odd)), (odd, odd)):
        x = torch.randn(2, 3, *shape, dtype=torch.float64)
        y, indices = pool(x, 2, return_indices=True)
        leaf = y.clone().requires_grad_(True)
        want = unpool(leaf, indices, 2, output_size=sizes)
        got, pull = bc.vjp(ours, y, indices, 2, output_size=sizes)
        assert torch.equal(got, want.detach())
        dy = torch.randn_like(want)
        want.backward(dy)
        assert torch.equal(pull(dy), leaf.grad)
    with pytest.raises(bc.InvalidProblemError, match="less than a stride"):
        ours(y, indices, 2, output_size=(12,) * axes)
    with pytest.raises(bc.IndexOutOfRangeError):
        ours(y, indices + 10**6, 2)


def test_nothing_outside_of_a_window_is_seen() -> None:
    x = np.zeros((1, 1, 5, 70), np.float32)
    x[0, 0, 2, 30] = np.nan
    for y in (F.max_pool2d(x, 3, 1, 1), F.avg_pool2d(x, 3, 1, 1)):
        assert np.isnan(y[0, 0, 1:4, 29:32]).all() and np.isnan(y).sum() == 9


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
def test_long_sums_are_rounded_once(dtype: torch.dtype) -> None:
    x = (torch.rand(1, 2, 70, 1500) + 1).to(dtype)
    want = x.double().mean((2, 3), keepdim=True).to(dtype)
    for found in (F.adaptive_avg_pool2d(x, 1), F.avg_pool2d(x, (70, 1500)), F.adaptive_avg_pool2d(x.mT, 1)):
        torch.testing.assert_close(found, want, rtol=torch.finfo(dtype).eps, atol=0)


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda x: F.max_pool2d(x, 9), "at most 6 along axis 2"),
        (lambda x: F.max_pool2d(x, 3, padding=2), "half"),
        (lambda x: F.max_pool2d(x, 2, dilation=0), "dilation"),
        (lambda x: F.max_pool2d(x, (2, 2, 2)), "one per axis"),
        (lambda x: F.max_pool2d(x[0, 0], 2), "4 dimensions, or 3"),
        (lambda x: F.avg_pool2d(x, 2, 0), "stride"),
        (lambda x: F.avg_pool2d(x, 2, divisor_override=0), "divisor_override"),
        (lambda x: F.avg_pool2d(x.astype(np.int32), 2), "i32"),
        (lambda x: F.adaptive_avg_pool2d(x, (1, 2, 3)), "output_size"),
        (lambda x: F.adaptive_max_pool2d(x, -1), "output_size"),
        (lambda x: F.max_pool2d_backward(x, np.full(x.shape, 10**6), (2, 4, 6, 6), 1), "0 <= "),
    ],
)
def test_errors_say_what_is_wrong(call: Any, what: str) -> None:
    with pytest.raises(bc.BaracudaError, match=what):
        call(np.ones((2, 4, 6, 6), np.float32))


def test_batches_may_be_dims() -> None:
    n = bc.Dim("n", max=5)
    made = bc.plan(bc.MaxPoolDescriptor((n, 3, 8, 8), (2, 2)))
    for count in (5, 0, 2):
        x = np.random.default_rng(0).normal(size=(count, 3, 8, 8)).astype(np.float32)
        y = np.empty((count, 3, 4, 4), np.float32)
        made.run(x=x, y=y)
        assert np.array_equal(y, F.max_pool2d(x, 2))
    with pytest.raises(bc.InvalidProblemError, match="only batch and channels"):
        bc.MaxPoolDescriptor((1, 3, n, 8), (2, 2))


@pytest.mark.parametrize("name", ["max_pool", "avg_pool", "lp_pool"])
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_whatever_windows_torch_takes(name: str, axes: int, rng: np.random.Generator) -> None:
    """Sizes of images and windows by chance, small enough that windows reach behind the image and its padding."""
    taken = 0
    for _ in range(120):
        kernel, stride = (rng.integers(1, 8, axes).tolist() for _ in range(2))
        options: dict[str, Any] = {
            "kernel_size": kernel,
            "stride": [kernel, stride][rng.integers(2)],
            "ceil_mode": bool(rng.integers(4)),
        }
        if name == "lp_pool":
            options |= {"norm_type": 2, "kernel_size": kernel if axes > 1 else kernel[0]}
        else:
            options["padding"] = [int(rng.integers(0, k // 2 + 1)) for k in kernel]
        if name == "avg_pool":
            options["count_include_pad"] = bool(rng.integers(2))
        x = torch.as_tensor(rng.uniform(0.1, 1, (2, 3, *rng.integers(1, 10, axes))))
        leaf = x.clone().requires_grad_(True)
        try:
            want = getattr(nn, f"{name}{axes}d")(leaf, **options)
        except RuntimeError:
            continue
        taken += 1
        got, pull = bc.vjp(getattr(F, f"{name}{axes}d"), x, **options)
        torch.testing.assert_close(got, want.detach(), rtol=1e-12, atol=1e-12, msg=lambda m, o=options: f"{o}: {m}")
        dy = torch.as_tensor(rng.normal(0, 1, want.shape))
        want.backward(dy)
        torch.testing.assert_close(pull(dy), leaf.grad, rtol=1e-12, atol=1e-12, msg=lambda m, o=options: f"{o}: {m}")
    assert taken > 10
