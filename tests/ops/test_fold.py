"""Windows as columns and back: against torch, with its options and layouts, and the errors for what does not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import baracuda as bc
import baracuda.functional as F

nn = torch.nn.functional

OPTIONS: tuple[dict[str, Any], ...] = (
    {"kernel_size": 1}, {"kernel_size": 3}, {"kernel_size": (2, 3), "padding": 1}, {"kernel_size": 2, "stride": 2},
    {"kernel_size": (3, 2), "dilation": (1, 3), "padding": (2, 0), "stride": (3, 1)}, {"kernel_size": 2, "stride": 7},
    {"kernel_size": [5, 4], "padding": 4, "dilation": 2},
)  # fmt: skip


@pytest.mark.parametrize("layout", ["first", "last"])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_as_torch(options: dict[str, Any], layout: str) -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 3, 11, 9, dtype=torch.float64)
    if layout == "last":
        x = x.to(memory_format=torch.channels_last)
    leaf = x.clone().requires_grad_(True)
    want = nn.unfold(leaf, **options)
    columns, pull = bc.vjp(F.unfold, x, **options)
    assert torch.equal(columns, want.detach())
    dy = torch.randn_like(columns)
    want.backward(dy)
    torch.testing.assert_close(pull(dy), leaf.grad, rtol=1e-13, atol=1e-13)

    leaf = columns.clone().requires_grad_(True)
    want = nn.fold(leaf, (11, 9), **options)
    seen = columns.transpose(1, 2).contiguous().transpose(1, 2) if layout == "last" else columns
    got, pull = bc.vjp(F.fold, seen, (11, 9), **options)
    torch.testing.assert_close(got, want.detach(), rtol=1e-13, atol=1e-13)
    dy = torch.randn_like(got)
    want.backward(dy)
    assert torch.equal(pull(dy), leaf.grad)


def test_without_a_batch() -> None:
    x = torch.randn(3, 6, 5)
    assert torch.equal(F.unfold(x, 2, stride=2), nn.unfold(x, 2, stride=2))
    columns = torch.randn(12, 6)
    torch.testing.assert_close(F.fold(columns, (6, 5), 2, stride=2), nn.fold(columns, (6, 5), 2, stride=2))
    for fn, ref, given, args in ((F.unfold, nn.unfold, x, (2,)), (F.fold, nn.fold, torch.randn(12, 20), ((6, 5), 2))):
        leaf = given.clone().requires_grad_(True)
        want = ref(leaf, *args)
        got, pull = bc.vjp(fn, given, *args)
        want.backward(torch.ones_like(want))
        torch.testing.assert_close(pull(torch.ones_like(got)), leaf.grad)


@pytest.mark.parametrize("dtype", [torch.bool, torch.int32, torch.float16, torch.complex64], ids=str)
def test_unfold_copies_any_element(dtype: torch.dtype) -> None:
    x = (torch.arange(2 * 3 * 5 * 4) % 7).reshape(2, 3, 5, 4).to(dtype)
    wide = x.to(torch.complex128)
    assert torch.equal(F.unfold(x, (3, 2)), nn.unfold(wide, (3, 2)).real.to(dtype))


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda x: F.fold(x[0, 0, 0], 4, 2), "N, C kh kw"),
        (lambda x: F.fold(x[0], 4, 2), "multiple of 4"),
        (lambda x: F.fold(x[0, :, :8, :5], 4, 2), "3 x 3 windows"),
        (lambda x: F.fold(np.ones((49, 1), np.float32), 4, 7), "fit"),
        (lambda x: F.fold(x[0], 4, (2, 2, 2)), "or two"),
        (lambda x: F.fold(x[0], 4, 2, stride=0), "at least 1"),
        (lambda x: F.fold(np.ones((4, 9), np.int32), 4, 2), "i32"),
        (lambda x: F.unfold(x, 7), "fit"),
        (lambda x: F.unfold(x, 0), "at least 1"),
        (lambda x: F.unfold(x, 2, padding=-1), "at least 0"),
        (lambda x: F.unfold(x[0, 0], 2), "N, C, H, W"),
        (lambda x: bc.FoldDescriptor((1, 2, 3), (2, 2)), "one per axis"),
        (lambda x: bc.FoldDescriptor((1, 2), ()), "one to three axes"),
        (lambda x: bc.FoldDescriptor((1, 2, 3), (4,)), "fit"),
    ],
)
def test_errors_say_what_is_wrong(call: Any, what: str) -> None:
    with pytest.raises(bc.BaracudaError, match=what):
        call(np.ones((2, 4, 9, 6), np.float32))
