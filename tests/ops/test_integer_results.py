"""Reductions, scans and functions of masks of integers and bools: elements and values of their results, by torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import baracuda as bc
import baracuda.functional as F

pytestmark = pytest.mark.filterwarnings("ignore")
ELEMENTS = [
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.bool,
    torch.uint16,
    torch.uint32,
    torch.uint64,
]
WHOLE = [
    "sum", "prod", "nansum", "nanmean", "mean", "amax", "amin", "aminmax", "argmax", "argmin", "max", "min", "any", "all",
    "count_nonzero", "var", "std", "var_mean", "std_mean", "trace", "diff", "cumulative_trapezoid", "median", "mode",
    "nanmedian", "norm", "sort", "argsort", "msort", "unique", "cov", "corrcoef", "isreal",
]  # fmt: skip
ALONG = [
    "sum", "prod", "nansum", "amax", "amin", "argmax", "argmin", "max", "min", "any", "all", "count_nonzero", "median", "mode",
    "cumsum", "cumprod", "logcumsumexp", "cummax", "cummin", "logsumexp", "kthvalue", "topk", "softmax", "log_softmax", "diff",
    "var", "std",
]  # fmt: skip
MASKED = [
    "sum", "prod", "amax", "amin", "argmax", "argmin", "cumsum", "cumprod", "mean", "norm", "var", "std", "softmax",
    "log_softmax", "softmin", "logsumexp",
]  # fmt: skip
ALWAYS_ALONG = [
    "argmax", "argmin", "cumsum", "cumprod", "softmax", "log_softmax", "softmin",
]  # fmt: skip


def _numbers(rng: np.random.Generator, element: torch.dtype) -> torch.Tensor:
    """Small enough to be held by every element, so large that sums of a few are not."""
    return torch.from_numpy(rng.integers(0, 120, (4, 5))).to(element)


def _listed(value: Any) -> list[torch.Tensor]:
    return list(value) if isinstance(value, (tuple, list)) else [value]


def _compare(ours: Callable[..., Any], theirs: Callable[..., Any], what: str, *args: Any, **options: Any) -> str:
    """What differs; nothing where torch refuses."""
    try:
        want = _listed(theirs(*args, **options))
    except (RuntimeError, TypeError, IndexError, ValueError):
        return ""
    what = f"{what} {args[1:]}"
    try:
        got = _listed(ours(*args, **options))
    except bc.BaracudaError as error:
        return f"{what}: {error}"
    if [(x.dtype, x.shape) for x in got] != [(x.dtype, x.shape) for x in want]:
        return f"{what}: {[(x.dtype, tuple(x.shape)) for x in got]}, torch {[(x.dtype, tuple(x.shape)) for x in want]}"
    pairs = zip(got, want, strict=True)
    same = all(torch.allclose(g.double(), w.double(), 1e-5, 1e-5, equal_nan=True) for g, w in pairs)
    return "" if same else f"{what}: {got}, torch {want}"


def _sum_to_size(x: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    return x.sum_to_size(*shape)


@pytest.mark.parametrize("element", ELEMENTS, ids=str)
def test_results_are_of_torchs_elements(element: torch.dtype, rng: np.random.Generator) -> None:
    wrong = []
    for _ in range(2):
        x, mask = _numbers(rng, element), torch.from_numpy(rng.random((4, 5)) < 0.6)
        mask[:, 0] = True
        for name in WHOLE:
            wrong.append(_compare(getattr(F, name), getattr(torch, name), name, x))
        for name in ALONG:
            dim = (2, 1) if name in ("kthvalue", "topk") else (1,)
            wrong.append(_compare(getattr(F, name), getattr(torch, name), name, x, *dim))
        for name in MASKED:
            mine, own = getattr(F.masked, name), getattr(torch.masked, name)
            for args in [(1,)] if name in ALWAYS_ALONG else [(), (1,)]:
                given = (2.0, *args) if name == "norm" else args
                wrong += [_compare(mine, own, f"masked.{name}", x, *given, mask=m) for m in (mask, None)]
        for shape in ((1, 5), (4, 1), (5,), (1,), (4, 5), (1, 1)):
            wrong.append(_compare(F.sum_to, _sum_to_size, "sum_to", x, shape))
    wrong = [w for w in wrong if w]
    assert not wrong, "\n".join(wrong[:8])


@pytest.mark.parametrize("element", [e for e in ELEMENTS if e is not torch.bool], ids=str)
def test_trapezoids_do_not_wrap(element: torch.dtype, rng: np.random.Generator) -> None:
    x = torch.from_numpy(rng.integers(60, 120, (4, 5))).to(element)
    want = np.trapezoid(x.numpy().astype(np.float64), axis=1)
    np.testing.assert_allclose(F.trapezoid(x).numpy(), want, rtol=1e-6)


@pytest.mark.parametrize("element", [torch.complex64, torch.complex128], ids=str)
def test_isreal_of_complex_numbers(element: torch.dtype, rng: np.random.Generator) -> None:
    parts = np.array([0.0, -0.0, 1.0, -2.5, np.nan, np.inf, 1e-40])
    x = torch.complex(
        torch.from_numpy(rng.choice(parts, (6, 7, 4))), torch.from_numpy(rng.choice(parts, (6, 7, 4)))
    ).to(element)
    for seen in (x, x.mT, x[1:, ::2], x[2, 3], x[0, 0, 0], x[:0], x.permute(2, 0, 1)[1:, 1:]):
        assert torch.equal(F.isreal(seen), torch.isreal(seen))
        assert np.array_equal(F.isreal(seen.numpy()), torch.isreal(seen).numpy())
