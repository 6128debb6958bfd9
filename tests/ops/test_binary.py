"""Functions of two numbers against torch: promotion, integers, numbers on either side, gradients of broadcast operands."""

from __future__ import annotations

from itertools import product

import pytest

import baracuda as bc
import baracuda.functional as F
from baracuda.errors import IntegerDivisionError, InvalidProblemError, UnsupportedError
from baracuda.ops.binary import BinaryDescriptor

torch = pytest.importorskip("torch")

INF, NAN = float("inf"), float("nan")
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.0, -7.5, 100.0, INF, -INF, NAN]
ARITHMETIC = ["add", "sub", "mul", "div", "maximum", "minimum"]
COMPARISONS = ["eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor"]
DTYPES = [
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
]


def small(dtype, shape=(4, 5)):
    return torch.randint(0, 2 if dtype is torch.bool else 7, shape).to(dtype)


@pytest.mark.parametrize("name", [*ARITHMETIC, "pow", "fmod", "remainder", "floor_divide", *COMPARISONS])
def test_special_values_as_torch(name: str) -> None:
    a = torch.tensor(SPECIAL)[:, None].expand(len(SPECIAL), len(SPECIAL))
    got, want = getattr(F, name)(a, a.T), getattr(torch, name)(a, a.T)
    torch.testing.assert_close(got, want, equal_nan=True, rtol=1e-6, atol=0.0)


@pytest.mark.parametrize("name", [*ARITHMETIC, "eq", "lt"])
def test_promotion_as_torch(name: str) -> None:
    for da, db in product(DTYPES, DTYPES):
        if name == "sub" and torch.bool in (da, db):
            continue  # torch refuses bool here whatever the other element is
        a, b = small(da), small(db, (5,))
        b = b.clone().fill_(1) if name == "div" else b
        got, want = getattr(F, name)(a, b), getattr(torch, name)(a, b)
        assert got.dtype == want.dtype, (da, db)
        torch.testing.assert_close(
            got, want, rtol=2e-2 if want.dtype in (torch.float16, torch.bfloat16) else 1e-6, atol=0
        )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("number", [True, 3, 2.5])
def test_numbers_as_torch(dtype, number) -> None:
    a = small(dtype)
    for name in ("add", "mul", "eq", "lt"):
        got, want = getattr(F, name)(a, number), getattr(torch, name)(a, number)
        assert got.dtype == want.dtype
        torch.testing.assert_close(
            got, want, rtol=1e-2 if want.dtype in (torch.float16, torch.bfloat16) else 1e-6, atol=0
        )


def test_zero_dimensional_tensors_do_not_promote() -> None:
    a, zero_d = torch.ones(3, dtype=torch.float16), torch.tensor(2.0, dtype=torch.float64)
    assert F.add(a, zero_d).dtype == (a + zero_d).dtype == torch.float16
    assert F.add(torch.ones(3, dtype=torch.int32), zero_d).dtype == torch.float64


def test_number_on_the_left() -> None:
    a = torch.rand(6) + 0.5
    torch.testing.assert_close(F.sub(2.0, a), 2.0 - a)
    torch.testing.assert_close(F.div(2.0, a), 2.0 / a)
    torch.testing.assert_close(F.pow(2.0, a), torch.pow(2.0, a))


@pytest.mark.parametrize("name", ["fmod", "remainder", "floor_divide"])
@pytest.mark.parametrize("dtype", [torch.int8, torch.int32, torch.int64, torch.uint8])
def test_integer_division(name: str, dtype) -> None:
    low = 0 if dtype is torch.uint8 else -9
    a, b = (
        torch.arange(low, 10).to(dtype)[:, None],
        torch.tensor([1, 2, 3, 7] + ([] if low == 0 else [-1, -2, -5])).to(dtype),
    )
    assert torch.equal(getattr(F, name)(a, b), getattr(torch, name)(a, b))
    with pytest.raises(IntegerDivisionError):
        getattr(F, name)(a, torch.zeros(1, dtype=dtype))
    with pytest.raises(IntegerDivisionError):
        getattr(F, name)(a, 0)


def test_smallest_integer_by_minus_one() -> None:
    a = torch.tensor([-(2**63)])
    assert F.remainder(a, -1).item() == 0
    assert F.fmod(a, -1).item() == 0
    assert F.floor_divide(a, -1).item() == -(2**63)


def test_integer_powers() -> None:
    a, b = torch.arange(-4, 5)[:, None], torch.arange(0, 7)
    assert torch.equal(F.pow(a, b), torch.pow(a, b))
    assert torch.equal(F.pow(a[a != 0], torch.tensor(-3)), torch.pow(a[a != 0], torch.tensor(-3)))
    with pytest.raises(InvalidProblemError, match="exponent"):
        F.pow(a, -1)


def test_bool_arithmetic() -> None:
    a, b = torch.tensor([False, False, True, True]), torch.tensor([False, True, False, True])
    for name in ("add", "mul", "maximum", "bitwise_xor"):
        assert torch.equal(getattr(F, name)(a, b), getattr(torch, name)(a, b))
    with pytest.raises(UnsupportedError):
        F.sub(a, b)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "pow", "maximum", "minimum", "fmod", "remainder"])
def test_gradient_of_broadcast_operands_as_torch(name: str) -> None:
    a, b = torch.rand(2, 1, 5, dtype=torch.float64) + 0.5, torch.rand(3, 1, dtype=torch.float64) + 0.5
    dy = torch.randn(2, 3, 5, dtype=torch.float64)
    y, pull = bc.vjp(getattr(F, name), a, b)
    la, lb = a.clone().requires_grad_(), b.clone().requires_grad_()
    want = getattr(torch, name)(la, lb)
    want.backward(dy)
    torch.testing.assert_close(y, want.detach())
    da, db = pull(dy)
    torch.testing.assert_close(da, la.grad)
    torch.testing.assert_close(db, lb.grad)


def test_tied_maximum_halves_the_gradient() -> None:
    a = torch.ones(4)
    _, pull = bc.vjp(F.maximum, a, a.clone())
    assert [g.tolist() for g in pull(torch.ones(4))] == [[0.5] * 4] * 2


def test_alpha_and_in_place() -> None:
    a, b = torch.randn(9), torch.randn(9)
    torch.testing.assert_close(F.add(a, b, alpha=0.5), torch.add(a, b, alpha=0.5))
    torch.testing.assert_close(F.sub(a, b, alpha=3), torch.sub(a, b, alpha=3))
    want = a * b
    assert F.mul(a, b, out=a) is a
    torch.testing.assert_close(a, want)


def test_wrong_problems() -> None:
    with pytest.raises(InvalidProblemError, match="broadcast"):
        BinaryDescriptor("add", (3,), (4,))
    with pytest.raises(InvalidProblemError, match="only one"):
        BinaryDescriptor("add", None, None)
