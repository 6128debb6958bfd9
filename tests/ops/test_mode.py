"""mode, nonzero_static and histogramdd against torch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import baracuda as bc
import baracuda.functional as F

NAN = float("nan")


@pytest.mark.parametrize("element", [torch.float32, torch.bfloat16, torch.int64, torch.uint8, torch.bool], ids=str)
def test_modes_are_torchs(element: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    for shape in ((1,), (9,), (6, 40), (3, 7, 5), (), (0, 4), (300, 2)):
        for spread in (2, 4, 100):
            x = torch.randint(0, spread, shape, generator=generator).to(element)
            for dim in range(-1, x.ndim):
                for keepdim in (False, True):
                    if 0 in shape and not shape[dim]:
                        continue
                    ours, theirs = F.mode(x, dim, keepdim), torch.mode(x, dim, keepdim)
                    assert torch.equal(ours[0], theirs[0])
                    assert ours[1].shape == theirs[1].shape and ours[1].dtype == torch.int64
                    if x.ndim and x.numel():
                        at = ours[1] if keepdim else ours[1].unsqueeze(dim)
                        assert torch.equal(x.gather(dim, at), theirs[0] if keepdim else theirs[0].unsqueeze(dim))


def test_the_last_place_of_the_smallest() -> None:
    values, indices = F.mode(torch.tensor([[2.0, 1, 1, 2, 0, 2, 1], [NAN, NAN, 3, NAN, 4, 3, 3]]))
    assert values.tolist() == [1, 3] and indices.tolist() == [6, 6]
    assert F.mode(torch.tensor([NAN, 5.0, NAN]))[0] == 5
    values, indices = F.mode(torch.full((3,), NAN))
    assert values.isnan() and indices == 0
    with pytest.raises(bc.InvalidProblemError, match="none is most frequent"):
        F.mode(torch.zeros(2, 0))


@pytest.mark.parametrize("keepdim", [False, True])
def test_gradient_of_mode(keepdim: bool) -> None:
    x = torch.tensor([[2.0, 1, 1, 3], [5, 5, 4, 0]], requires_grad=True)
    dy = torch.tensor([[2.0], [3.0]]) if keepdim else torch.tensor([2.0, 3.0])
    _, pull = bc.vjp(F.mode, x.detach(), 1, keepdim)
    assert pull((dy, None)).tolist() == [[0, 0, 2, 0], [0, 3, 0, 0]]


@pytest.mark.parametrize("shape", [(), (0,), (7,), (4, 5), (2, 3, 4), (3, 0)])
def test_nonzero_static_is_torchs(shape: tuple[int, ...]) -> None:
    x = torch.randint(0, 2, shape, generator=torch.Generator().manual_seed(1))
    for given in (x, x.float(), x.bool()):
        for size in (0, 2, 30):
            for fill in (-1, 0, 7):
                want = torch.nonzero_static(given, size=size, fill_value=fill)
                assert torch.equal(F.nonzero_static(given, size=size, fill_value=fill), want)
    graph = bc.trace(lambda v: F.nonzero_static(v, size=3), bc.TensorSpec((4,), "f32")).compile()
    assert np.asarray(graph.run(np.array([0, 1, 0, 2], np.float32))).tolist() == [[1], [3], [-1]]
    with pytest.raises(bc.BaracudaError, match="size"):
        F.nonzero_static(x, size=-1)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("density", [False, True])
def test_grids_are_torchs(weighted: bool, density: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    for shape, bins in (((50, 2), 4), ((6, 5, 3), (2, 3, 4)), ((40, 1), (7,)), ((0, 2), 3)):
        x = torch.rand(shape, generator=generator, dtype=torch.float64)
        weight = torch.rand(shape[:-1], generator=generator, dtype=torch.float64) if weighted else None
        limits: Any = [v for d in range(shape[-1]) for v in (0.1 * d, 0.8)]
        edges = [torch.linspace(0.1, 0.9, 4 + d, dtype=torch.float64) for d in range(shape[-1])]
        many = [bins] * shape[-1] if isinstance(bins, int) else list(bins)
        for given, span in ((many, None), (many, limits), (edges, None)):
            want = torch.histogramdd(x, given, range=span, weight=weight, density=density)
            got = F.histogramdd(x, given, range=span, weight=weight, density=density)
            torch.testing.assert_close(got[0], want.hist, equal_nan=True)
            torch.testing.assert_close(got[1], tuple(want.bin_edges))
    points = torch.rand((9, 2), generator=generator)
    torch.testing.assert_close(F.histogramdd(points, 3)[0], torch.histogramdd(points, [3, 3]).hist)


def test_wrong_grids_are_refused() -> None:
    x = torch.rand(4, 2)
    for call, word in (
        (lambda: F.histogramdd(x[:, 0], 3), "rows of at least one coordinate"),
        (lambda: F.histogramdd(x, [3]), "for each of 2 coordinates"),
        (lambda: F.histogramdd(x, 3, range=[0.0, 1.0]), "for each of 2 coordinates"),
        (lambda: F.histogramdd(x, [3, 0]), "bins: got 0"),
        (lambda: F.histogramdd(x, [3, x.double()[:, 0]]), r"bins\[1\]"),
        (lambda: F.histogramdd(x, 3, weight=x), "weight: want f32 of shape"),
        (lambda: F.histogramdd(x.long(), 3), "got element i64"),
    ):
        with pytest.raises(bc.InvalidProblemError, match=word):
            call()
