"""where and clamp against torch."""

from __future__ import annotations

import pytest

import baracuda as bc
import baracuda.functional as F
from baracuda.errors import InvalidProblemError

torch = pytest.importorskip("torch")

NAN, INF = float("nan"), float("inf")


def test_where_promotes_and_broadcasts_as_torch() -> None:
    condition = torch.rand(4, 1) > 0.5
    for a, b in (
        (torch.ones(5), torch.zeros(4, 1, dtype=torch.float64)),
        (torch.arange(5), 2.5),
        (1, torch.rand(5)),
        (True, torch.arange(5)),
    ):
        got, want = F.where(condition, a, b), torch.where(condition, a, b)
        assert got.dtype == want.dtype
        assert torch.equal(got, want)
    with pytest.raises(InvalidProblemError, match="bool"):
        F.where(torch.ones(3), torch.ones(3), torch.ones(3))


def test_where_keeps_other_branches_out() -> None:
    x = torch.tensor([NAN, 1.0, INF])
    assert F.where(torch.isfinite(x), x, 0.0).tolist() == [0.0, 1.0, 0.0]


def test_where_gradient_as_torch() -> None:
    condition = torch.rand(4, 5) > 0.5
    a, b, dy = torch.rand(5), torch.rand(4, 1), torch.randn(4, 5)
    _, pull = bc.vjp(F.where, condition, a, b)
    la, lb = a.clone().requires_grad_(), b.clone().requires_grad_()
    torch.where(condition, la, lb).backward(dy)
    da, db = pull(dy)
    torch.testing.assert_close(da, la.grad)
    torch.testing.assert_close(db, lb.grad)


@pytest.mark.parametrize("bounds", [(-1.0, 1.0), (None, 0.5), (0.5, None), (1.0, -1.0), (NAN, 1.0), (-INF, INF)])
def test_clamp_as_torch(bounds) -> None:
    x = torch.tensor([0.0, -0.0, 0.5, 1.0, -1.0, 2.0, -2.0, INF, -INF, NAN])
    torch.testing.assert_close(F.clamp(x, *bounds), torch.clamp(x, *bounds), equal_nan=True, rtol=0, atol=0)
    leaf = x.clone().requires_grad_()
    torch.clamp(leaf, *bounds).sum().backward()
    _, pull = bc.vjp(F.clamp, x, *bounds)
    assert torch.equal(pull(torch.ones_like(x)), leaf.grad)


def test_clamp_integers_and_promotion() -> None:
    x = torch.arange(-5, 6)
    assert torch.equal(F.clamp(x, -2, 3), torch.clamp(x, -2, 3))
    got, want = F.clamp(x, -1.5, 2), torch.clamp(x, -1.5, 2)
    assert got.dtype == want.dtype
    assert torch.equal(got, want)
    with pytest.raises(InvalidProblemError, match="bound"):
        F.clamp(x)
