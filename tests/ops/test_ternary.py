"""Functions of three operands against torch."""

from __future__ import annotations

import pytest

import baracuda as bc
import baracuda.functional as F
from baracuda.describe.errors import InvalidProblemError, UnsupportedError

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


@pytest.mark.parametrize("bounds", [((5,), (4, 1)), ((4, 5), None), (None, ()), ((1, 5), (5,))])
def test_clamp_by_tensors_as_torch(bounds) -> None:
    x = torch.randn(4, 5, dtype=torch.float64)
    low, high = (None if s is None else torch.randn(s, dtype=torch.float64) * 0.5 for s in bounds)
    leaves = [None if t is None else t.clone().requires_grad_() for t in (x, low, high)]
    want = torch.clamp(*leaves)
    dy = torch.randn(want.shape, dtype=torch.float64)
    want.backward(dy)
    y, pull = bc.vjp(F.clamp, x, low, high)
    assert torch.equal(y, want.detach())
    for got, leaf in zip(pull(dy), [v for v in leaves if v is not None], strict=True):
        torch.testing.assert_close(got, leaf.grad)


@pytest.mark.parametrize("dtype", [torch.int8, torch.int32, torch.int64, torch.uint8])
def test_clamp_integers_by_tensors(dtype) -> None:
    info = torch.iinfo(dtype)
    x = torch.tensor([info.min, 0, 3, 9, info.max], dtype=dtype)
    low, high = torch.tensor(2, dtype=dtype), torch.tensor([7], dtype=dtype)
    for a, b in ((low, high), (low, None), (None, high), (high, low.view(1))):
        assert torch.equal(F.clamp(x, a, b), torch.clamp(x, a, b))
    with pytest.raises(InvalidProblemError, match="two numbers"):
        F.clamp(x, low, 3)


def test_clamp_of_bools_by_tensors() -> None:
    x, yes, no = torch.tensor([True, False]), torch.tensor(True), torch.tensor(False)
    for a, b in ((yes, None), (no, None), (None, yes), (None, no)):
        assert torch.equal(F.clamp(x, a, b), torch.clamp(x, a, b))
    assert F.clamp(x, no, yes).tolist() == [True, False]  # torch refuses two bounds here


def test_clamp_special_values_by_tensors() -> None:
    x = torch.tensor([0.0, 1.0, -1.0, INF, -INF, NAN])
    for low, high in ((x[:, None, None], x[:, None]), (x[:, None], None)):
        torch.testing.assert_close(F.clamp(x, low, high), torch.clamp(x, low, high), equal_nan=True, rtol=0, atol=0)


@pytest.mark.parametrize("name", ["addcmul", "addcdiv"])
def test_sums_of_products_as_torch(name: str) -> None:
    tensors = [torch.rand(s, dtype=torch.float64) + 0.5 for s in ((4, 1), (5,), (2, 1, 5))]
    leaves = [t.clone().requires_grad_() for t in tensors]
    want = getattr(torch, name)(*leaves, value=0.7)
    dy = torch.randn(want.shape, dtype=torch.float64)
    want.backward(dy)
    y, pull = bc.vjp(getattr(F, name), *tensors, value=0.7)
    torch.testing.assert_close(y, want.detach())
    for got, leaf in zip(pull(dy), leaves, strict=True):
        torch.testing.assert_close(got, leaf.grad)
    out = torch.ones(5)
    want = getattr(torch, name)(out, out * 2, out * 3, value=2)
    assert getattr(F, name)(out, out * 2, out * 3, value=2, out=out) is out
    torch.testing.assert_close(out, want)


def test_addcmul_of_integers_and_promotion() -> None:
    a, b = torch.tensor([100, -128, 127], dtype=torch.int8), torch.tensor([3, 7, 2], dtype=torch.int8)
    assert torch.equal(F.addcmul(a, b, b, value=5), torch.addcmul(a, b, b, value=5))
    mixed = F.addcmul(a, b.float(), b), torch.addcmul(a, b.float(), b)
    assert mixed[0].dtype == mixed[1].dtype
    torch.testing.assert_close(*mixed)
    with pytest.raises(UnsupportedError):
        F.addcdiv(a, b, b)


def test_lerp_as_torch() -> None:
    a, b = torch.randn(4, 5, dtype=torch.float64), torch.randn(5, dtype=torch.float64)
    for weight in (0.0, 1.0, 0.3, -2.5, torch.rand(4, 1, dtype=torch.float64)):
        leaves = [a.clone().requires_grad_(), b.clone().requires_grad_()]
        at = weight.clone().requires_grad_() if isinstance(weight, torch.Tensor) else weight
        want = torch.lerp(*leaves, at)
        dy = torch.randn(4, 5, dtype=torch.float64)
        want.backward(dy)
        y, pull = bc.vjp(F.lerp, a, b, weight)
        torch.testing.assert_close(y, want.detach())
        leaves += [at] if isinstance(at, torch.Tensor) else []
        for got, leaf in zip(pull(dy), leaves, strict=True):
            torch.testing.assert_close(got, leaf.grad)
    with pytest.raises(InvalidProblemError, match="one element"):
        F.lerp(a, b.float(), 0.5)
    with pytest.raises(InvalidProblemError, match="float element"):
        F.lerp(torch.arange(3), torch.arange(3), 0.5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_all_operands_turned(dtype: torch.dtype) -> None:
    """Every input is read along its own runs, through buffers of the tile that must not meet."""
    make = torch.Generator().manual_seed(7)
    for shape in ((300, 300), (129, 517), (64, 64)):
        a, b, c = (torch.randn(shape[::-1], generator=make).to(dtype).T for _ in range(3))
        exact = a.double() + 0.5 * b.double() * c.double()
        got = F.addcmul(a, b, c, value=0.5).double()
        torch.testing.assert_close(got, exact, rtol=2.0**-7, atol=2.0**-7)
        assert torch.equal(F.addcmul(a.contiguous(), b.contiguous(), c.contiguous(), value=0.5).double(), got)
        mask = (a > 0).T.contiguous().T
        assert torch.equal(F.where(mask, b, c), torch.where(mask, b, c))
