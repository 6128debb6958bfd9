"""Functions of every half: those of many numbers, which have loops of their own, are those of float, rounded."""

from __future__ import annotations

from typing import Any

import pytest
import torch

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
