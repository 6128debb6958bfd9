"""What is particular to topk, ranks and searches; everything else is generated from their table and their specs."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import baracuda as bc
import baracuda.functional as F

SPECIAL = torch.tensor([1.0, float("nan"), -0.0, float("inf"), 0.0, -float("inf"), -float("nan"), -1.0, 0.0, 1.0])
ELEMENTS = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.uint8]
SHAPES = [((9,), 0), ((3, 39), 1), ((700, 3), 0), ((3, 2500), -1), ((70000,), 0)]


def made(element: torch.dtype, *shape: int, spread: int = 50) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    if element.is_floating_point and spread == 0:
        return SPECIAL[torch.randint(0, len(SPECIAL), shape, generator=generator)].to(element)
    return torch.randint(0, spread or 3, shape, generator=generator).to(element)


def equal(ours: Any, theirs: Any) -> None:
    torch.testing.assert_close(ours, theirs, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("element", ELEMENTS, ids=str)
@pytest.mark.parametrize("spread", [0, 50])
def test_parts_of_an_order_are_those_of_the_whole(element: torch.dtype, spread: int) -> None:
    for shape, dim in SHAPES:
        x = made(element, *shape, spread=spread)
        for largest in (False, True):
            values, indices = torch.sort(x, dim=dim, descending=largest, stable=True)
            for k in (0, 1, 3, x.shape[dim] // 200, x.shape[dim]):
                equal(F.topk(x, k, dim, largest), (values.narrow(dim, 0, k), indices.narrow(dim, 0, k)))
        values, indices = torch.sort(x, dim=dim, stable=True)
        for k in (1, x.shape[dim] // 2, x.shape[dim]):
            equal(F.kthvalue(x, k, dim), (values.select(dim, k - 1), indices.select(dim, k - 1)))
        for ours, theirs in ((F.median, torch.median), (F.nanmedian, torch.nanmedian)):
            equal(ours(x, dim, True)[0], theirs(x, dim, True)[0])
            equal(x.gather(dim, ours(x, dim, True)[1]), theirs(x, dim, True)[0])
            equal(ours(x), theirs(x))


def test_medians_of_nan_and_of_nothing() -> None:
    nan = torch.full((3, 2), float("nan"))
    assert F.median(nan, 1)[0].isnan().all() and F.nanmedian(nan, 1)[0].isnan().all()
    assert F.nanmedian(torch.tensor([float("nan"), 2.0, 1.0])) == 1
    for fn in (F.median, F.nanmedian):
        with pytest.raises(bc.BaracudaError):
            fn(torch.zeros(0))
        with pytest.raises(bc.BaracudaError):
            fn(torch.zeros(3, 0), 1)


@pytest.mark.parametrize("k", [-1, 6])
def test_k_beyond_the_axis_is_refused(k: int) -> None:
    with pytest.raises(bc.InvalidProblemError, match="k"):
        F.topk(torch.zeros(5), k)
    with pytest.raises(bc.InvalidProblemError, match="k"):
        F.kthvalue(torch.zeros(5), k)


def test_gradients_are_torchs() -> None:
    x = torch.randn(5, 30, generator=torch.Generator().manual_seed(0), requires_grad=True)
    for ours, theirs, args in (
        (F.topk, torch.topk, (4, 1, True)),
        (F.topk, torch.topk, (4, 0, False)),
        (F.kthvalue, torch.kthvalue, (3, 1)),
        (F.kthvalue, torch.kthvalue, (3, 0, True)),
        (F.median, torch.median, (1,)),
        (F.nanmedian, torch.nanmedian, (0, True)),
    ):
        found, pull = bc.vjp(ours, x.detach(), *args)
        dy = torch.randn(found[0].shape)
        theirs(x, *args).values.backward(dy)
        equal(pull((dy, None)), x.grad)
        x.grad = None
    found, pull = bc.vjp(F.median, x.detach())
    torch.median(x).backward()
    equal(pull(torch.tensor(1.0)), x.grad)


@pytest.mark.parametrize("element", ELEMENTS, ids=str)
@pytest.mark.parametrize("right", [False, True])
def test_searches(element: torch.dtype, right: bool) -> None:
    values = made(element, 3, 77)
    for n in (0, 1, 2, 100, 5000):
        sequence = made(element, n).sort().values
        equal(F.searchsorted(sequence, values, right=right), torch.searchsorted(sequence, values, right=right))
        ours = F.bucketize(values, sequence, right=right, out_int32=True)
        equal(ours, torch.bucketize(values, sequence, right=right, out_int32=True))
        strided = sequence.repeat_interleave(2)[::2]
        equal(
            F.searchsorted(strided, values.T, right=right),
            torch.searchsorted(sequence, values.T.contiguous(), right=right),
        )
    rows = made(element, 3, 50)
    order = F.argsort(rows)
    found = torch.searchsorted(rows, values, sorter=order, right=right)
    equal(F.searchsorted(rows, values, sorter=order, side="right" if right else "left"), found)


def test_nan_belongs_behind_every_number() -> None:
    sequence = torch.tensor([1.0, 2.0, float("nan"), float("nan")])
    for element in (torch.float32, torch.float64, torch.float16):
        asked = torch.tensor([2.0, float("inf"), float("nan")], dtype=element)
        assert F.searchsorted(sequence.to(element), asked).tolist() == [1, 2, 2]
        assert F.searchsorted(sequence.to(element), asked, right=True).tolist() == [2, 2, 4]


def test_searches_refuse_what_does_not_fit() -> None:
    x = torch.zeros(3)
    for call, named in (
        (lambda: F.searchsorted(x, x.double()), "input"),
        (lambda: F.searchsorted(x, x, side="middle"), "side"),
        (lambda: F.searchsorted(x, x, side="left", right=True), "side"),
        (lambda: F.searchsorted(x, x, sorter=x), "sorter"),
        (lambda: F.bucketize(x, x.reshape(1, 3)), "boundaries"),
        (lambda: F.searchsorted(torch.zeros(2, 3), torch.zeros(3, 3)), "input: got"),
    ):
        with pytest.raises(bc.InvalidProblemError, match=named):
            call()
