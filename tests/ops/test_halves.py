"""Functions of every half: those of many numbers, which have loops of their own, are those of float, rounded."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import baracuda as bc
import baracuda.functional as F


@pytest.mark.parametrize("element", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", ["sin", "cos", "exp", "tanh", "sigmoid", "square", "gelu"])
def test_all_halves(name: str, element: torch.dtype) -> None:
    function: Any = getattr(F, name)
    every = torch.arange(-(1 << 15), 1 << 15, dtype=torch.int32).to(torch.int16).view(element)
    # By magnitude, and in an order in which near and far ones are beside each other.
    for x in (every, every[(torch.arange(1 << 16) * 32771) % (1 << 16)]):
        got, want = function(x), function(x.float()).to(element)
        differ = (got.view(torch.int16) != want.view(torch.int16)) & ~(got.isnan() & want.isnan())
        assert not differ.any(), (x[differ][:5], got[differ][:5], want[differ][:5])


# Functions made of several steps, whose sums and powers no half holds, with the shapes of their tensors and other arguments.
STEPS: list[tuple[str, tuple[tuple[int, ...], ...], tuple[Any, ...]]] = [
    ("lp_pool1d", ((2, 3, 17),), (3.0, 3)),
    ("lp_pool2d", ((2, 3, 9, 8),), (2.0, 3, 2, True)),
    ("local_response_norm", ((2, 9, 5),), (3, 0.1)),
    ("cov", ((4, 40),), ()),
    ("corrcoef", ((4, 40),), ()),
    ("trapezoid", ((4, 40),), ()),
    ("trapezoid", ((4, 40), (4, 40)), ()),
    ("cumulative_trapezoid", ((4, 40), (40,)), ()),
    ("linalg.vecdot", ((4, 40), (40,)), ()),
]  # fmt: skip


@pytest.mark.parametrize("element", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("size", [0.01, 1.0, 300.0])
@pytest.mark.parametrize(("name", "shapes", "more"), STEPS, ids=lambda v: v if isinstance(v, str) else "")
def test_steps_of_halves_are_those_of_float(
    name: str, shapes: Any, more: Any, size: float, element: torch.dtype
) -> None:
    function: Any = F
    for part in name.split("."):
        function = getattr(function, part)
    made = torch.Generator().manual_seed(1)
    given = [(torch.randn(s, generator=made) * size).to(element) for s in shapes]
    got, want = function(*given, *more), function(*(x.float() for x in given), *more)
    assert got.dtype is element and torch.equal(got.nan_to_num(7), want.to(element).nan_to_num(7))
    if len(given) > 1 or name == "cov":
        return
    pulls = [bc.vjp(function, x, *more)[1] for x in (given[0], given[0].float())]
    dy = torch.randn(want.shape, generator=made).to(element)
    assert torch.equal(pulls[0](dy).nan_to_num(7), pulls[1](dy.float()).to(element).nan_to_num(7))
