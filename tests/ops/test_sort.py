"""What is particular to sorting; everything else is generated from its table and its spec."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import baracuda as bc
import baracuda.functional as F

SPECIAL = torch.tensor([1.0, float("nan"), -0.0, float("inf"), 0.0, -float("inf"), -float("nan"), -1.0, 0.0, 1.0])
ELEMENTS = [
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.int64,
    torch.int32,
    torch.uint8,
    torch.bool,
]


def made(element: torch.dtype, *shape: int) -> torch.Tensor:
    """Many ties; floats with NaN, infinities and zeros of both signs."""
    generator = torch.Generator().manual_seed(0)
    if element.is_floating_point:
        return SPECIAL[torch.randint(0, len(SPECIAL), shape, generator=generator)].to(element)
    return torch.randint(0, 50, shape, generator=generator).to(element)


def same(ours: Any, theirs: Any) -> None:
    """Equal bit for bit, but for payloads of NaN."""
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=0, equal_nan=True)
        if a.dtype.is_floating_point:
            assert torch.equal(torch.signbit(a)[~a.isnan()], torch.signbit(b)[~b.isnan()])


@pytest.mark.parametrize("element", ELEMENTS, ids=str)
@pytest.mark.parametrize("descending", [False, True])
def test_sorts_as_torch_sorts_stably(element: torch.dtype, descending: bool) -> None:
    for shape, dim in (
        ((9,), 0),
        ((3, 39), 1),
        ((700, 3), 0),
        ((3, 2050), -1),
        ((70000,), 0),
        ((), 0),
        ((0, 4), 1),
        ((4, 0), 1),
    ):
        x = made(element, *shape)
        same(F.sort(x, dim, descending), torch.sort(x, dim=dim, descending=descending, stable=True))
        assert torch.equal(F.argsort(x, dim, descending), torch.argsort(x, dim=dim, descending=descending, stable=True))


def test_long_lines_of_few_and_of_all_values() -> None:
    """Wide keys: all in one bucket, buckets of pairs, sorted and reversed, and one value apart from the others."""
    n = 70000
    rng = torch.Generator().manual_seed(1)
    apart = torch.full((n,), 7)
    apart[n // 3] = -(2**62)
    for x in (
        torch.randint(-(2**63), 2**63 - 1, (n,), generator=rng),
        torch.randint(0, 10**6, (n,), generator=rng),
        torch.arange(n),
        torch.arange(n).flip(0),
        torch.zeros(n, dtype=torch.int64),
        apart,
        torch.rand(n, generator=rng, dtype=torch.float64),
        torch.randn(n, generator=rng, dtype=torch.float64) * 1e-300,
    ):
        same(F.sort(x), torch.sort(x, stable=True))
        same(
            F.sort(x.to(torch.float32), descending=True), torch.sort(x.to(torch.float32), stable=True, descending=True)
        )


def test_views() -> None:
    x = made(torch.float32, 6, 500, 4)
    for view in (x.permute(2, 0, 1), x[:, 1::3], x[:1].expand(3, 500, 4)):
        for dim in range(3):
            same(F.sort(view, dim), torch.sort(view, dim=dim, stable=True))
    back = np.arange(12.0)[::-1]
    values, indices = F.sort(back)
    assert list(values) == sorted(back) and list(indices) == list(range(11, -1, -1))


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_change_nothing(threads: int) -> None:
    x = made(torch.float32, 200001)
    before = bc.get_num_threads()
    bc.set_num_threads(threads)
    try:
        same(F.sort(x), torch.sort(x, stable=True))
        same(F.sort(x.double()), torch.sort(x.double(), stable=True))
    finally:
        bc.set_num_threads(before)


def test_results_may_not_lie_over_the_input() -> None:
    x = np.arange(8, dtype=np.float32)
    plan = bc.plan(bc.SortDescriptor((8,)))
    space = np.empty(plan.workspace_size, np.uint8)
    with pytest.raises(bc.BaracudaError, match="values"):
        plan.run(x, x, np.empty(8, np.int64), workspace=space)


def test_gradient_goes_where_values_were() -> None:
    x = torch.randn(5, 30, generator=torch.Generator().manual_seed(0), requires_grad=True)
    for descending in (False, True):
        (values, _), pull = bc.vjp(F.sort, x.detach(), 1, descending)
        dy = torch.randn(5, 30)
        torch.sort(x, dim=1, descending=descending, stable=True).values.backward(dy)
        assert torch.equal(pull((dy, None)), x.grad) and torch.equal(pull(dy), x.grad)
        x.grad = None


def test_msort() -> None:
    x = made(torch.float32, 40, 3)
    same([F.msort(x)], [torch.sort(x, dim=0, stable=True).values])


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_several_keys_as_numpy(dim: int) -> None:
    rng = np.random.default_rng(0)
    for shape in ((40, 3), (1, 7), (0, 4), (5, 30)):
        keys = [rng.integers(0, 3, shape), rng.integers(0, 2, shape).astype(np.float32), rng.integers(0, 2, shape) > 0]
        for some in (keys, keys[:1], keys[::-1]):
            np.testing.assert_array_equal(F.lexsort(*some, dim=dim), np.lexsort(tuple(some), axis=dim))
            np.testing.assert_array_equal(F.lexsort(some, dim=dim), np.lexsort(tuple(some), axis=dim))
    with pytest.raises(bc.InvalidProblemError, match="want one shape"):
        F.lexsort(np.zeros(3), np.zeros(4))
