"""Rows too short for a vector's worth of folding are done many at once: none may depend on the rows beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import baracuda.functional as F

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "softmax": lambda x, w: F.softmax(x, -1),
    "log_softmax": lambda x, w: F.log_softmax(x, -1),
    "softmax_backward": lambda x, w: F.softmax_backward(x, x.flip(-1), -1),
    "log_softmax_backward": lambda x, w: F.log_softmax_backward(x, x.flip(-1), -1),
    "rms_norm": lambda x, w: F.rms_norm(x, w.shape, w),
    "layer_norm": lambda x, w: F.layer_norm(x, w.shape, w, w.flip(0)),
    "add_rms_norm": lambda x, w: F.add_rms_norm(x, x.flip(-1), w.shape, w)[0],
    "rms_norm_add": lambda x, w: F.rms_norm_add(x, x.flip(-1), w.shape, w),
    "sum": lambda x, w: F.sum(x, -1),
    "norm": lambda x, w: F.norm(x, 2, -1),
    "amax": lambda x, w: F.amax(x, -1),
    "amin": lambda x, w: F.amin(x, -1),
    "prod": lambda x, w: F.prod(x, -1),
}
LENGTHS = [2, 3, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 100, 129, 255, 256]


def rows_of(rows: int, n: int, element: str) -> tuple[torch.Tensor, torch.Tensor]:
    made = torch.Generator().manual_seed(rows * 1000 + n)
    x = torch.randn(rows, n, generator=made)
    x[1 % rows, n // 2], x[2 % rows, 0] = torch.nan, torch.inf
    x[3 % rows] = -torch.inf
    return x.to(getattr(torch, element)), (torch.rand(n, generator=made) + 0.5).to(getattr(torch, element))


def same(a: torch.Tensor, b: torch.Tensor) -> bool:
    return torch.equal(a.isnan(), b.isnan()) and torch.equal(a.nan_to_num(), b.nan_to_num())


@pytest.mark.parametrize("element", ["float32", "bfloat16", "float64", "float16"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_row_is_the_same_alone_and_among_others(name: str, element: str) -> None:
    f = FUNCTIONS[name]
    for n in LENGTHS:
        x, w = rows_of(37, n, element)
        together = f(x, w)
        alone = torch.cat([f(x[i : i + 1], w) for i in range(len(x))])
        assert same(together, alone), n
        apart = torch.zeros(37, n + 3, dtype=x.dtype)[:, :n].copy_(x)
        assert same(f(apart, w), together), n
        assert same(f(x.view(37, 1, n), w).reshape(together.shape), together), n


@pytest.mark.parametrize("element", ["float32", "bfloat16", "float64"])
@pytest.mark.parametrize("name", ["softmax", "layer_norm", "rms_norm_add", "log_softmax_backward"])
def test_results_that_go_past_the_caches_are_the_same(name: str, element: str) -> None:
    """Of more than 16 MiB, and not starting at a line."""
    n = 100
    x, w = rows_of(90_001, n, element)
    x[:, 1] = x[:, 0]
    whole = FUNCTIONS[name](x, w)
    for part in (slice(0, 5), slice(44_990, 45_010), slice(89_990, None)):
        assert same(whole[part], FUNCTIONS[name](x[part], w)), part


@pytest.mark.parametrize("n", LENGTHS)
def test_short_rows_in_place(n: int) -> None:
    x, _ = rows_of(37, n, "float32")
    want = F.softmax(x, -1)
    assert same(F.softmax(x, -1, out=x), want)


def test_extremes_of_integers() -> None:
    for dtype in (np.int8, np.int32, np.int64, np.uint8):
        info = np.iinfo(dtype)
        x = np.random.default_rng(3).integers(info.min, info.max, (37, 19), dtype, endpoint=True)
        np.testing.assert_array_equal(F.amax(x, 1), x.max(1))
        np.testing.assert_array_equal(F.amin(x, 1), x.min(1))
        np.testing.assert_array_equal(F.sum(x, 1), x.sum(1, dtype=np.int64))
