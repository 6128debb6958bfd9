"""Functions of one number against torch: special values, integers, promotion, gradients through bc.vjp."""

from __future__ import annotations

import pytest

import baracuda as bc
import baracuda.functional as F
from baracuda.elements import Element
from baracuda.errors import InvalidProblemError, UnsupportedError
from baracuda.ops.unary import SAVES, UnaryDescriptor, takes

torch = pytest.importorskip("torch")

INF, NAN = float("inf"), float("nan")
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1e-30, 1e30, -1e30, INF, -INF, NAN, -NAN]
ALL = sorted(UnaryDescriptor.kinds)
FLOAT_KINDS, INTEGER_KINDS, BOOL_KINDS = (
    [k for k in ALL if takes(k, e)] for e in (Element.F32, Element.I64, Element.BOOL)
)


def reference(name: str):
    return getattr(torch.nn.functional, name) if name in ("silu", "relu") else getattr(torch, name)


@pytest.mark.parametrize("name", FLOAT_KINDS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_special_values_as_torch(name: str, dtype: str) -> None:
    x = torch.tensor(SPECIAL, dtype=getattr(torch, dtype))
    got, want = getattr(F, name)(x), reference(name)(x)
    assert got.dtype == want.dtype
    torch.testing.assert_close(got, want, equal_nan=True, rtol=1e-6, atol=0.0)
    zero = want == 0
    assert torch.equal(torch.signbit(got[zero]), torch.signbit(want[zero])) or name in ("relu", "sign", "abs", "silu")


@pytest.mark.parametrize("name", INTEGER_KINDS)
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8"])
def test_integers_as_torch(name: str, dtype: str) -> None:
    info = torch.iinfo(getattr(torch, dtype))
    x = torch.tensor([info.min, info.min + 1, 0, 1, 2, 5, info.max - 1, info.max], dtype=getattr(torch, dtype))
    got, want = getattr(F, name)(x), reference(name)(x)
    assert got.dtype == want.dtype
    assert torch.equal(got, want)


@pytest.mark.parametrize("name", BOOL_KINDS)
def test_bool_as_torch(name: str) -> None:
    x = torch.tensor([False, True, True])
    got, want = getattr(F, name)(x), reference(name)(x)
    assert got.dtype == want.dtype
    assert torch.equal(got, want)


@pytest.mark.parametrize("name", sorted(set(ALL) - set(INTEGER_KINDS) - {"silu"}))
@pytest.mark.parametrize("dtype", ["int64", "uint8", "bool"])
def test_integers_are_promoted_as_torch(name: str, dtype: str) -> None:
    x = torch.tensor([0, 1, 1, 0], dtype=getattr(torch, dtype))
    got, want = getattr(F, name)(x), reference(name)(x)
    assert got.dtype == want.dtype == torch.float32
    torch.testing.assert_close(got, want, rtol=1e-6, atol=0.0)


@pytest.mark.parametrize("name", [*sorted(SAVES), "gelu", "gelu_tanh", "softplus"])
def test_gradient_as_torch(name: str) -> None:
    x = torch.rand(5, 7, dtype=torch.float64) * 0.8 + 0.1
    options = {"gelu_tanh": ("tanh",), "softplus": (2.0, 1.0)}.get(name, ())
    public = "gelu" if name == "gelu_tanh" else name
    torch_args = {"approximate": "tanh"} if name == "gelu_tanh" else {"beta": 2.0, "threshold": 1.0} if options else {}
    function = (
        getattr(torch.nn.functional, public)
        if public in ("gelu", "softplus", "silu", "relu")
        else getattr(torch, public)
    )
    dy = torch.randn(5, 7, dtype=torch.float64)
    y, pull = bc.vjp(getattr(F, public), x, *options)
    leaf = x.clone().requires_grad_()
    want = function(leaf, **torch_args)
    want.backward(dy)
    torch.testing.assert_close(y, want.detach())
    torch.testing.assert_close(pull(dy), leaf.grad)


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
