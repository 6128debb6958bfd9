"""Functions of two numbers against torch: promotion, integers, numbers on either side, gradients of broadcast operands."""

from __future__ import annotations

from itertools import product

import pytest

import baracuda as bc
import baracuda.functional as F
from baracuda.describe.errors import IntegerDivisionError, InvalidProblemError, UnsupportedError
from baracuda.ops.binary.binary import BinaryDescriptor

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


MORE = [
    "fmax",
    "fmin",
    "atan2",
    "hypot",
    "copysign",
    "nextafter",
    "heaviside",
    "xlogy",
    "logaddexp",
    "logaddexp2",
    "ldexp",
]


@pytest.mark.parametrize("name", [*ARITHMETIC, "pow", "fmod", "remainder", "floor_divide", *COMPARISONS, *MORE])
def test_special_values_as_torch(name: str) -> None:
    a = torch.tensor(SPECIAL)[:, None].expand(len(SPECIAL), len(SPECIAL))
    got, want = getattr(F, name)(a, a.T), getattr(torch, name)(a, a.T)
    # Where two numbers cancel, 1e-8 is what torch's own rounding leaves.
    torch.testing.assert_close(got, want, equal_nan=True, rtol=1e-6, atol=2e-8 if name == "logaddexp2" else 0.0)


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


INTEGERS = [torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8]


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", ["bitwise_left_shift", "bitwise_right_shift"])
def test_shifts_as_torch(name: str, dtype) -> None:
    info = torch.iinfo(dtype)
    a = torch.tensor([info.min, info.min + 1, 0, 1, 5, 77, info.max - 1, info.max], dtype=dtype)[:, None]
    b = [-1, -100, 0, 1, 6, 7, 8, 9, 15, 16, 31, 32, 62, 63, 64, 65, 127]
    by = torch.tensor([v for v in b if info.min <= v <= info.max], dtype=dtype)
    assert torch.equal(getattr(F, name)(a, by), getattr(torch, name)(a, by))


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8])
@pytest.mark.parametrize("name", ["gcd", "lcm", "fmax", "fmin", "heaviside", "maximum", "bitwise_and", "bitwise_or"])
def test_every_pair_of_bytes_as_torch(name: str, dtype) -> None:
    every = torch.arange(256, dtype=torch.int32).to(dtype)
    if name in ("gcd", "lcm"):
        every = every[every != -128]  # its absolute value does not exist, and torch may give a negative divisor
    assert torch.equal(getattr(F, name)(every[:, None], every), getattr(torch, name)(every[:, None], every))


@pytest.mark.parametrize("dtype", [torch.int16, torch.int32, torch.int64])
def test_divisors_of_the_smallest_integers(dtype) -> None:
    info = torch.iinfo(dtype)
    a = torch.tensor([info.min, info.min, info.max, 0, 0, -12], dtype=dtype)
    b = torch.tensor([info.min, 0, info.max, 0, info.min, 18], dtype=dtype)
    assert torch.equal(F.gcd(a, b), torch.gcd(a, b))
    assert F.gcd(torch.tensor([info.min], dtype=dtype), 6).item() == 2


@pytest.mark.parametrize("dtype", INTEGERS)
def test_truncating_division_as_torch(dtype) -> None:
    info = torch.iinfo(dtype)
    a = torch.tensor([info.min, info.min + 1, -7, 0, 7, info.max], dtype=torch.int64).to(dtype)[:, None]
    b = torch.tensor([1, 2, 3, -2, -3, info.max], dtype=torch.int64).to(dtype)
    assert torch.equal(F.div(a, b, rounding_mode="trunc"), torch.div(a, b, rounding_mode="trunc"))
    if dtype is not torch.uint8:
        smallest = torch.tensor([info.min], dtype=dtype)
        assert F.div(smallest, -1, rounding_mode="trunc").item() == info.min  # it wraps
    with pytest.raises(IntegerDivisionError):
        F.div(a, 0, rounding_mode="trunc")


def test_truncating_division_of_floats_as_torch() -> None:
    a = torch.tensor(SPECIAL)[:, None]
    got, want = F.div(a, a.T, rounding_mode="trunc"), torch.div(a, a.T, rounding_mode="trunc")
    torch.testing.assert_close(got, want, equal_nan=True, rtol=0, atol=0)


@pytest.mark.parametrize("name", ["atan2", "copysign", "xlogy", "ldexp"])
@pytest.mark.parametrize("dtype", [torch.bool, torch.int32, torch.uint8])
def test_integers_are_promoted_to_float_as_torch(name: str, dtype) -> None:
    a, b = torch.tensor([0, 1, 1]).to(dtype), torch.tensor([1, 1, 2]).to(dtype)
    got, want = getattr(F, name)(a, b), getattr(torch, name)(a, b)
    assert got.dtype == want.dtype == torch.float32
    torch.testing.assert_close(got, want)


@pytest.mark.parametrize("name", ["hypot", "nextafter", "logaddexp", "logaddexp2"])
def test_integers_are_refused_as_torch(name: str) -> None:
    a = torch.arange(3)
    with pytest.raises(UnsupportedError):
        getattr(F, name)(a, a)
    with pytest.raises((RuntimeError, NotImplementedError)):
        getattr(torch, name)(a, a)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_nextafter_of_every_half(dtype) -> None:
    every = torch.arange(65536, dtype=torch.int32).to(torch.int16).view(dtype)
    for to in (INF, -INF, 0.0, NAN):
        b = torch.full_like(every, to)
        got, want = F.nextafter(every, b), torch.nextafter(every, b)
        number = ~want.isnan()
        assert torch.equal(got.isnan(), want.isnan())
        assert torch.equal(got[number].view(torch.int16), want[number].view(torch.int16))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_nextafter_as_torch(dtype) -> None:
    tiny, largest = torch.finfo(dtype).tiny, torch.finfo(dtype).max
    a = torch.tensor([0.0, -0.0, tiny, -tiny, 1.0, -1.0, largest, -largest, INF, -INF, NAN], dtype=dtype)
    a = torch.cat([a, torch.nextafter(a, a.new_zeros(1)), torch.randn(50, dtype=dtype)])
    assert torch.equal(F.nextafter(a[:, None], a).nan_to_num(7.0), torch.nextafter(a[:, None], a).nan_to_num(7.0))


@pytest.mark.parametrize("equal_nan", [False, True])
@pytest.mark.parametrize("tolerances", [(), (0.0, 0.0), (0.1, 0.0), (0.0, 0.2), (1e-3, 1e-2)])
def test_isclose_as_torch(tolerances, equal_nan: bool) -> None:
    for dtype in (torch.float32, torch.float64, torch.int32, torch.int8, torch.bool):
        values = torch.tensor([*SPECIAL, 1 + 1e-6, 0.99, 1.1, 2**24 + 1])
        a = values if dtype.is_floating_point else torch.tensor([0, 1, 2, 100, -3]).to(dtype)
        a = a.to(dtype)
        got = F.isclose(a[:, None], a, *tolerances, equal_nan=equal_nan)
        assert torch.equal(got, torch.isclose(a[:, None], a, *tolerances, equal_nan=equal_nan)), dtype
    with pytest.raises(InvalidProblemError, match="one element"):
        F.isclose(torch.ones(2), torch.ones(2).double())
    for wrong in ({"rtol": -1e-3}, {"atol": -1.0}, {"rtol": NAN}):
        with pytest.raises(InvalidProblemError, match="want a number >= 0"):
            F.isclose(torch.ones(2), torch.ones(2), **wrong)


def test_prelu_as_torch() -> None:
    for shape, count in (((2, 3, 4, 5), 3), ((2, 3), 3), ((2, 3, 4), 1), ((7,), 1), ((), 1)):
        x, w = torch.randn(shape, dtype=torch.float64), torch.rand(count, dtype=torch.float64)
        lx, lw = x.clone().requires_grad_(), w.clone().requires_grad_()
        want = torch.nn.functional.prelu(lx, lw)
        dy = torch.randn(shape, dtype=torch.float64)
        want.backward(dy)
        y, pull = bc.vjp(F.prelu, x, w)
        dx, dw = pull(dy)
        torch.testing.assert_close(y, want.detach())
        torch.testing.assert_close(dx, lx.grad)
        torch.testing.assert_close(dw, lw.grad)
    with pytest.raises(InvalidProblemError, match="channels"):
        F.prelu(torch.ones(2, 3), torch.ones(2))


def test_integer_powers() -> None:
    a, b = torch.arange(-4, 5)[:, None], torch.arange(0, 7)
    assert torch.equal(F.pow(a, b), torch.pow(a, b))
    assert torch.equal(F.pow(a[a != 0], torch.tensor(-3)), torch.pow(a[a != 0], torch.tensor(-3)))
    for exponent in (2, -1, 3, -2):  # of calls that the engine knows already, too
        if exponent > 0:
            assert torch.equal(F.pow(a, exponent), torch.pow(a, exponent))
            continue
        with pytest.raises(InvalidProblemError, match=r"exponent: got .*, want a number >= 0"):
            F.pow(a, exponent)


def test_bool_arithmetic() -> None:
    a, b = torch.tensor([False, False, True, True]), torch.tensor([False, True, False, True])
    for name in ("add", "mul", "maximum", "bitwise_xor"):
        assert torch.equal(getattr(F, name)(a, b), getattr(torch, name)(a, b))
    for left, right in ((a, b), (a, 1), (torch.ones(4), b), (a, torch.ones(4))):  # as torch
        with pytest.raises(InvalidProblemError, match="sub: got bool"):
            F.sub(left, right)


DIFFERENTIABLE = [
    "add", "sub", "mul", "div", "pow", "maximum", "minimum", "fmod", "remainder", "fmax", "fmin", "atan2", "hypot",
    "copysign", "xlogy", "logaddexp", "logaddexp2", "ldexp",
]  # fmt: skip


@pytest.mark.parametrize("name", DIFFERENTIABLE)
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


def test_gradient_of_xlogy_is_zero_where_dy_is() -> None:
    a, b, dy = torch.tensor([1.0, 0.0, 2.0]), torch.tensor([0.0, 0.0, 3.0]), torch.tensor([0.0, 1.0, 1.0])
    leaf = a.clone().requires_grad_()
    torch.xlogy(leaf, b).backward(dy)
    _, pull = bc.vjp(F.xlogy, a, b)
    torch.testing.assert_close(pull(dy)[0], leaf.grad)


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


def test_floor_divide_has_torchs_zeros() -> None:
    values = torch.tensor([0.0, -0.0, 1, -1, 2.5, -2.5, 1e-30, -1e-30, 3e7, torch.inf, -torch.inf])
    for dtype in (torch.float32, torch.float64):
        x = values.to(dtype)
        got, want = F.floor_divide(x[:, None], x), torch.floor_divide(x[:, None], x)
        assert torch.equal(got.nan_to_num(7.0), want.nan_to_num(7.0))
        assert torch.equal(torch.signbit(got)[~want.isnan()], torch.signbit(want)[~want.isnan()])


@pytest.mark.parametrize("element", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_powers_have_the_same_bits_beside_special_cases(element: torch.dtype) -> None:
    """Runs of positive bases and finite exponents leave out what the others need."""
    generator = torch.Generator().manual_seed(4)
    a = torch.exp2(20 * torch.randn(3000, generator=generator)).to(element)
    b = (3 * torch.randn(3000, generator=generator)).to(element)
    plain = (a > 0) & a.isfinite()
    a, b = a[plain], b[plain]
    a[::7], b[::5], b[1::5] = 1, 2, 0
    want = F.pow(a, b)
    for special in ((-2.0, 3.0), (0.0, -1.0), (INF, 0.5), (NAN, 1.0), (2.0, INF)):
        x, y = (torch.stack((t, torch.full_like(t, s)), 1).flatten() for t, s in zip((a, b), special, strict=True))
        assert torch.equal(F.pow(x, y)[::2], want)
    torch.testing.assert_close(want, torch.pow(a.double(), b.double()).to(element))
