"""Sorting."""

from __future__ import annotations

from functools import partial

import torch

import baracuda as bc
from baracuda.bench.case import Case, Sides
from baracuda.bench.cases._tools import bind, noise, plan, space, text, there


def _whole(*shape: int, element: str = "i64") -> torch.Tensor:
    """Integers of the whole range."""
    info = torch.iinfo(torch.int64)
    made = torch.randint(info.min, info.max, shape, generator=torch.Generator().manual_seed(0))
    return there(made if element == "i64" else made.int())


def _sort(element: str, *shape: int) -> Sides:
    x = _whole(*shape) if element == "i64" else noise(*shape, element=element)
    values, theirs = (torch.empty_like(x) for _ in range(2))
    indices, their_indices = (space(*shape, element="i64") for _ in range(2))
    made = plan(bc.SortDescriptor(shape, -1, False, element))
    ours = bind(made, x=x, values=values, indices=indices)
    return Sides.calls(ours, lambda: torch.sort(x, -1, out=(theirs, their_indices))[:1], made, lambda: [values])


def cases(quick: bool) -> list[Case]:
    """A long line, and lines side by side."""
    line, lines = ((5000,), (8, 1000)) if quick else ((1 << 20,), (64, 32000))
    return [
        Case(name, "sort", e, text(shape), "torch sort out=", partial(_sort, e, *shape), required=required, goal=goal)
        for name, e, shape, required, goal in (
            ("sort", "f32", line, 6, 12),
            ("sort", "i64", line, 1.5, 2.5),
            ("sort of lines", "f32", lines, 6, None),
        )
    ]
