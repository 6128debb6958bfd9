"""Functions of one number against torch: special values, integers, promotion, gradients through bc.vjp."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import baracuda as bc
import baracuda.functional as F
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError, UnsupportedError
from baracuda.ops.unary import special_ref
from baracuda.ops.unary.unary import SAVES, UnaryDescriptor, takes
from baracuda.ops.unary.unary_kinds import KINDS
from baracuda.prove.reference import epsilon, ulp

torch = pytest.importorskip("torch")

INF, NAN = float("inf"), float("nan")
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1e-30, 1e30, -1e30, INF, -INF, NAN, -NAN]
# Numbers that have no default; and formulas for functions that torch does not have.
ARGS = {"threshold": (1.0, 2.0), "affine": (2.0, -3.0)}
OWN: dict[str, Callable[..., Any]] = {
    "step": lambda x: (x > 0).to(x.dtype),
    "cube": lambda x: x * x * x if x.is_floating_point() else x.float() ** 3,
    "cbrt": lambda x: x.sign() * x.abs().pow(1 / 3) if x.is_floating_point() else x.float().pow(1 / 3),
    "affine": lambda x, scale, shift: x * scale + shift,
    "popcount": lambda x: torch.tensor([t.count("1") for t in _binary(x)], dtype=x.dtype),
    "clz": lambda x: torch.tensor([_bits(x) - len(t) for t in _binary(x)], dtype=x.dtype),
    "ctz": lambda x: torch.tensor([len(t) - len(t.rstrip("0")) if t else _bits(x) for t in _binary(x)], dtype=x.dtype),
}
ALL = sorted(k for k in KINDS if k in dir(F) and (KINDS[k].of_torch or k in OWN))
FLOAT_KINDS, INTEGER_KINDS, BOOL_KINDS = (
    [k for k in ALL if takes(k, e)] for e in (Element.F32, Element.I64, Element.BOOL)
)


def _bits(x: torch.Tensor) -> int:
    return torch.iinfo(x.dtype).bits


def _binary(x: torch.Tensor) -> list[str]:
    """Binary digits from the highest one on."""
    return [f"{v % 2 ** _bits(x):b}".lstrip("0") for v in x.tolist()]


def reference(name: str) -> Callable[..., Any]:
    own = OWN.get(name) or getattr(torch.nn.functional, name, None)
    return own or getattr(torch, name)


def both(name: str, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    args = ARGS.get(name, ())
    if not x.is_floating_point():
        low = -1 if x.dtype.is_signed else 0
        args = tuple(map(int, args)) or ((low, 1) if name == "hardtanh" else ())
    return getattr(F, name)(x, *args), reference(name)(x, *args)


@pytest.mark.parametrize("name", FLOAT_KINDS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_special_values_as_torch(name: str, dtype: str) -> None:
    x = torch.tensor(SPECIAL, dtype=getattr(torch, dtype))
    got, want = both(name, x)
    assert got.dtype == want.dtype
    if name in INEXACT:
        torch.testing.assert_close(got, want, equal_nan=True, rtol=1e-5, atol=1e-6)
        return
    torch.testing.assert_close(got, want, equal_nan=True, rtol=2e-6, atol=0.0)
    zero = want == 0
    assert torch.equal(torch.signbit(got[zero]), torch.signbit(want[zero])) or name in SIGN_OF_ZERO


# Where torch, or the formula above, is less exact: near zero, near roots, for large -x.
INEXACT = ("mish", "tanhshrink", "cbrt", "sinc", "digamma", "lgamma")
# Zeros that torch gives another sign, of functions that have no sign there.
SIGN_OF_ZERO = ("relu", "sign", "abs", "silu", "hardtanh", "relu6", "hardshrink", "softshrink", "threshold", "frac")


@pytest.mark.parametrize("name", INTEGER_KINDS)
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8"])
def test_integers_as_torch(name: str, dtype: str) -> None:
    info = torch.iinfo(getattr(torch, dtype))
    x = torch.tensor([info.min, info.min + 1, 0, 1, 2, 5, info.max - 1, info.max], dtype=getattr(torch, dtype))
    if name == "affine" and dtype == "uint8":
        with pytest.raises(InvalidProblemError):
            F.affine(x, -1, 0)
        assert torch.equal(F.affine(x, 2, 3), x * 2 + 3)
        return
    got, want = both(name, x)
    assert got.dtype == want.dtype
    assert torch.equal(got, want)


@pytest.mark.parametrize("name", BOOL_KINDS)
def test_bool_as_torch(name: str) -> None:
    x = torch.tensor([False, True, True])
    got, want = both(name, x)
    assert got.dtype == want.dtype
    assert torch.equal(got, want)


@pytest.mark.parametrize("name", [k for k in FLOAT_KINDS if k not in INTEGER_KINDS])
@pytest.mark.parametrize("dtype", ["int64", "uint8", "bool"])
def test_integers_are_promoted_or_refused_as_torch(name: str, dtype: str) -> None:
    x = torch.tensor([0, 1, 1, 0], dtype=getattr(torch, dtype))
    if name == "nan_to_num":
        return  # a copy
    if not KINDS[name].promotes:
        with pytest.raises((UnsupportedError, InvalidProblemError)):
            getattr(F, name)(x, *ARGS.get(name, ()))
        if name not in OWN:
            with pytest.raises((RuntimeError, NotImplementedError)):
                reference(name)(x, *ARGS.get(name, ()))
        return
    if dtype == "bool" and name in ("tanhshrink", "softsign"):
        return  # torch makes them of ops that it refuses for bool
    got, want = both(name, x)
    assert got.dtype == want.dtype == torch.float32
    torch.testing.assert_close(got, want, rtol=2e-6, atol=1e-7 if name in INEXACT else 0.0, equal_nan=True)


GRADIENTS: list[tuple[str, dict[str, Any]]] = [
    *((k, {}) for k in sorted(SAVES) if k in ALL and k not in ("affine", "threshold")),
    ("gelu", {}), ("gelu", {"approximate": "tanh"}), ("softplus", {"beta": 2.0, "threshold": 1.0}),
    ("threshold", {"threshold": 0.4, "value": 2.0}), ("affine", {"scale": 2.0, "shift": -1.0}), ("celu", {"alpha": 0.3}),
    ("elu", {"alpha": 2.0}), ("leaky_relu", {"negative_slope": 0.3}), ("hardtanh", {"min_val": 0.2, "max_val": 0.6}),
    ("hardshrink", {"lambd": 0.3}), ("softshrink", {"lambd": 0.3}), ("logit", {"eps": 0.2}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "options"), GRADIENTS, ids=[f"{n}-{o}" for n, o in GRADIENTS])
def test_gradient_as_torch(name: str, options: dict[str, Any]) -> None:
    x = torch.rand(5, 7, dtype=torch.float64) * 0.8 + 0.1
    if name == "acosh":
        x = x + 1
    elif name not in ("log", "log2", "log10", "sqrt", "rsqrt", "logit", "cbrt", "lgamma", "digamma"):
        x[::2] *= -1
    if name in ("relu6", "hardswish", "hardsigmoid", "mish"):
        x = x * 9
    dy = torch.randn(5, 7, dtype=torch.float64)
    y, pull = bc.vjp(getattr(F, name), x, **options)
    leaf = x.clone().requires_grad_()
    want = reference(name)(leaf, **options)
    want.backward(dy)
    torch.testing.assert_close(y, want.detach())
    torch.testing.assert_close(pull(dy), leaf.grad)


def test_round_to_decimals_as_torch() -> None:
    x = torch.tensor([0.125, 2.675, -1.005, 123.456, 1e30, INF, NAN, -0.004, 15.0, 25.0])
    for decimals in (2, 1, -1, -2):
        for dtype in (torch.float32, torch.float64):
            got, want = F.round(x.to(dtype), decimals=decimals), torch.round(x.to(dtype), decimals=decimals)
            assert torch.equal(got.isnan(), want.isnan())
            torch.testing.assert_close(got, want, rtol=0, atol=0, equal_nan=True)
    with pytest.raises(UnsupportedError):
        F.round(torch.arange(3), decimals=1)


def test_nan_to_num_as_torch() -> None:
    x = torch.tensor([INF, -INF, NAN, 1.5])
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        for options in ({}, {"nan": 7.0}, {"posinf": 3.0}, {"neginf": -2.0, "nan": -1.0}):
            assert torch.equal(F.nan_to_num(x.to(dtype), **options), torch.nan_to_num(x.to(dtype), **options))
    _, pull = bc.vjp(F.nan_to_num, x)
    assert pull(torch.ones(4)).tolist() == [0, 0, 0, 1]
    assert torch.equal(F.nan_to_num(torch.arange(3)), torch.arange(3))
    assert torch.equal(F.positive(torch.arange(3)), torch.arange(3))


def test_numbers_out_of_range_are_refused_however_often_they_come() -> None:
    x = torch.randn(5)
    for _ in range(2):
        torch.testing.assert_close(F.softshrink(x, 0.25), torch.nn.functional.softshrink(x, 0.25))
        for wrong in (-0.25, NAN):
            with pytest.raises(InvalidProblemError, match=r"lambd: got .*, want a number >= 0"):
                F.softshrink(x, wrong)


def test_slope_of_mish_far_below_zero() -> None:
    x = torch.tensor([-60.0, -70.0, -90.0, -104.0, -1e30])
    wide = x.double().requires_grad_()
    torch.nn.functional.mish(wide).sum().backward()
    torch.testing.assert_close(F.mish_backward(torch.ones(5), x).double(), wide.grad, rtol=1e-5, atol=1e-44)


def test_small_differences_are_kept() -> None:
    x = torch.tensor([1e-3, 1e-2, 0.1], dtype=torch.float32)
    wide = x.double()
    torch.testing.assert_close(F.tanhshrink(x).double(), wide - torch.tanh(wide), rtol=1e-6, atol=0)
    torch.testing.assert_close(F.logit(0.5 + x).double(), torch.logit((0.5 + x).double()), rtol=5e-7, atol=0)


@pytest.mark.parametrize("name", ["erf", "erfc", "erfinv", "lgamma", "digamma", "trigamma"])
def test_special_references_as_mpmath(name: str) -> None:
    import mpmath
    import numpy as np

    mpmath.mp.dps = 40
    rng = np.random.default_rng(7)
    ends = {"erf": (-3, 3), "erfc": (-6, 26), "erfinv": (-1, 1)}.get(name, (0.01, 30))
    x = np.concatenate([rng.uniform(*ends, 60), rng.uniform(0.1, 0.9999, 20), 1e-30 * rng.uniform(1, 2, 3)])
    if name in ("lgamma", "digamma"):  # near the roots
        x = np.concatenate([x, 1 + 1e-9 * x, 2 - 1e-9 * x, 1.4616321449683622 + 1e-3 * x])
    own = {"lgamma": lambda v: mpmath.re(mpmath.loggamma(v)), "trigamma": lambda v: mpmath.psi(1, v)}
    function = own.get(name) or getattr(mpmath, name)
    for at, y in zip(x, getattr(special_ref, name)(x), strict=True):
        want = function(mpmath.mpf(float(at)))
        high = float(y)
        assert abs(mpmath.mpf(high) + mpmath.mpf(float(y - high)) - want) <= 1e-17 * abs(want), at


def test_spacing_of_floats() -> None:
    for element, least in ((Element.F16, 2.0**-24), (Element.F32, 2.0**-149), (Element.F64, 2.0**-1074)):
        assert ulp([0.0, least, 1.0], element).tolist() == [least, least, epsilon(element)]


def test_in_place_and_out() -> None:
    x = torch.randn(300, dtype=torch.bfloat16)
    want = torch.exp(x.float()).to(torch.bfloat16)
    assert F.exp(x, out=x) is x
    torch.testing.assert_close(x, want)
    with pytest.raises(InvalidProblemError, match="out=input"):
        F.relu(x, inplace=True)


def test_no_meaning_for_these_elements() -> None:
    with pytest.raises(UnsupportedError):
        bc.plan(UnaryDescriptor("exp", (3,), "i32"))
    for name, x in (("neg", torch.ones(3) > 0), ("bitwise_not", torch.ones(3))):
        with pytest.raises(UnsupportedError):
            getattr(F, name)(x)
    with pytest.raises(InvalidProblemError, match="gradient"):
        UnaryDescriptor("floor", (3,)).backward()


def test_other_names_and_squares_of_bools() -> None:
    x = torch.tensor([-0.5, 0.25])
    for alias, name in (
        ("absolute", "abs"),
        ("negative", "neg"),
        ("sgn", "sign"),
        ("fix", "trunc"),
        ("arctanh", "atanh"),
    ):
        assert torch.equal(getattr(F, alias)(x), getattr(F, name)(x))
    flags = torch.tensor([True, False])
    assert F.square(flags).dtype == torch.square(flags).dtype == torch.int64
    assert torch.equal(F.square(flags), torch.square(flags))
