"""Sorting, selecting, searching, counting."""

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


def _topk(k: int, *shape: int) -> Sides:
    x = noise(*shape)
    values, theirs = (space(shape[0], k) for _ in range(2))
    indices, their_indices = (space(shape[0], k, element="i64") for _ in range(2))
    made = plan(bc.TopkDescriptor(shape, k))
    ours = bind(made, x=x, values=values, indices=indices)
    return Sides.calls(ours, lambda: torch.topk(x, k, out=(theirs, their_indices))[:1], made, lambda: [values])


def _median(n: int) -> Sides:
    x, values, index = noise(n), space(), space(element="i64")
    made = plan(bc.RankDescriptor("median", (n,)))
    return Sides.calls(bind(made, x=x, values=values, indices=index), lambda: torch.median(x), made, lambda: [values])


def _unique(element: str, n: int) -> Sides:
    x = there(torch.randint(0, n, (n,), generator=torch.Generator().manual_seed(0))) if element == "i64" else noise(n)
    values, count = space(n, element=element), space(element="i64")
    made = plan(bc.UniqueDescriptor("unique", n, n, element=element))
    run = bind(made, x=x, values=values, count=count)
    found: list[torch.Tensor] = []

    def theirs() -> list[torch.Tensor]:
        found[:] = [torch.unique(x)]
        return found

    return Sides.calls(run, theirs, made, lambda: [values[: len(found[0])]])


def _searchsorted(n: int) -> Sides:
    sequence, x = noise(n).sort().values, noise(n, seed=1)
    y, theirs = (space(n, element="i64") for _ in range(2))
    made = plan(bc.SearchsortedDescriptor((n,), (n,)))
    ours = bind(made, sequence=sequence, values=x, y=y)
    return Sides.calls(ours, lambda: torch.searchsorted(sequence, x, out=theirs), made, lambda: [y])


def _bincount(n: int) -> Sides:
    x = there(torch.randint(0, 1000, (n,), generator=torch.Generator().manual_seed(0)))
    y, size = space(1000, element="i64"), space(element="i64")
    made = plan(bc.BincountDescriptor((n,), 1000))
    return Sides.calls(bind(made, index=x, y=y, size=size), lambda: torch.bincount(x), made, lambda: [y])


def _histc(n: int) -> Sides:
    x, y, theirs = noise(n), space(100), space(100)
    made = plan(bc.HistcDescriptor((n,), 100))
    ours = bind(made, x=x, y=y, low=-3.0, high=3.0)
    return Sides.calls(ours, lambda: torch.histc(x, 100, -3, 3, out=theirs), made, lambda: [y])


def cases(quick: bool) -> list[Case]:
    """A long line, and lines side by side."""
    line, lines = ((5000,), (8, 1000)) if quick else ((1 << 20,), (64, 32000))
    rows = (4, 3000) if quick else (32, 32000)
    n = line[0]
    many = 5000 if quick else 1 << 24
    others = [
        Case(
            "bincount",
            "indexing",
            "i64",
            text((many,)),
            "torch bincount",
            partial(_bincount, many),
            required=1.4,
            goal=2.5,
        ),
        Case("histc", "indexing", "f32", text(line), "torch histc out=", partial(_histc, n), required=2),
        Case("topk 50", "sort", "f32", text(rows), "torch topk out=", partial(_topk, 50, *rows), required=2.5, goal=5),
        Case("median", "sort", "f32", text(line), "torch median", partial(_median, n), required=6, goal=12),
        Case("unique", "sort", "f32", text(line), "torch unique", partial(_unique, "f32", n), required=6, goal=10),
        Case("unique", "sort", "i64", text(line), "torch unique", partial(_unique, "i64", n), required=1.5, goal=2.5),
        Case("searchsorted", "sort", "f32", text((n, n)), "torch out=", partial(_searchsorted, n), required=3, goal=6),
    ]
    return others + [
        Case(name, "sort", e, text(shape), "torch sort out=", partial(_sort, e, *shape), required=required, goal=goal)
        for name, e, shape, required, goal in (
            ("sort", "f32", line, 6, 12),
            ("sort", "i64", line, 1.5, 2.5),
            ("sort of lines", "f32", lines, 6, None),
        )
    ]
