"""Everything that a torch tensor may carry beside its data: taken where it means nothing to a kernel, refused by name where it does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.autograd.forward_ad as forward_ad
from imports import PLAN, N

import baracuda as bc
import baracuda.functional as F

# torch warns of much that it still has.
pytestmark = pytest.mark.filterwarnings("ignore")

PLAIN = torch.randn(4, 2 * N)


class _Sub(torch.Tensor):
    """A subclass that adds nothing."""


class _Wrapper(torch.Tensor):
    """A subclass that hides another tensor."""

    @staticmethod
    def __new__(cls, x: torch.Tensor) -> Any:
        return torch.Tensor._make_wrapper_subclass(cls, x.shape, dtype=x.dtype)  # type: ignore[attr-defined]

    @classmethod
    def __torch_dispatch__(cls, f: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError


def _inference() -> torch.Tensor:
    with torch.inference_mode():
        return PLAIN.clone()


def _freed() -> torch.Tensor:
    x = PLAIN.clone()
    x.untyped_storage().resize_(0)
    return x


def _inside(transform: Callable[..., Any]) -> Callable[[], Any]:
    """What a function sees of a tensor inside of a transformation of torch.func; it outlives it."""

    def make() -> Any:
        seen: list[Any] = []
        transform(lambda x: (seen.append(x), x.sum())[1])(PLAIN.clone())
        return seen[0]

    return make


def _fake() -> Any:
    from torch._subclasses.fake_tensor import FakeTensorMode

    return FakeTensorMode().from_tensor(PLAIN)


def _masked() -> Any:
    from torch.masked import masked_tensor

    return masked_tensor(PLAIN.clone(), PLAIN > 0)


def _nested(**layout: Any) -> Any:
    return torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], **layout)


COMPLEX = torch.ones(4, 2 * N, dtype=torch.complex64)
TAKEN: dict[str, Callable[[], Any]] = {
    "plain": lambda: PLAIN.clone(),
    "a view": lambda: torch.randn(5, 2 * N)[1:],
    "expanded": lambda: torch.ones(1).expand(4, 2 * N),
    "a parameter that needs no gradient": lambda: torch.nn.Parameter(PLAIN.clone(), requires_grad=False),
    "a buffer": lambda: torch.nn.Buffer(PLAIN.clone()),
    "of inference": _inference,
    "shared memory": lambda: PLAIN.clone().share_memory_(),
    "lazily cloned": lambda: torch._lazy_clone(PLAIN.clone()),
    "a subclass that adds nothing": lambda: PLAIN.clone().as_subclass(_Sub),
    "detached": lambda: (PLAIN.clone().requires_grad_() * 2).detach(),
}
REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "a gradient is wanted": (lambda: PLAIN.clone().requires_grad_(), "requires grad"),
    "a result on the tape": (lambda: PLAIN.clone().requires_grad_() * 2, "requires grad"),
    "a parameter": (lambda: torch.nn.Parameter(PLAIN.clone()), "requires grad"),
    "the conjugate bit": (lambda: COMPLEX.conj(), "conjugate bit"),
    "the negative bit": (lambda: torch._neg_view(PLAIN.clone()), "negative bit"),
    "the imaginary part of a conjugate": (lambda: COMPLEX.conj().imag, "negative bit"),
    "sparse coo": (lambda: PLAIN.to_sparse(), "sparse"),
    "sparse csr": (lambda: PLAIN.to_sparse_csr(), "sparse"),
    "sparse csc": (lambda: PLAIN.to_sparse_csc(), "sparse"),
    "sparse bsr": (lambda: PLAIN.to_sparse_bsr((2, 2)), "sparse"),
    "sparse bsc": (lambda: PLAIN.to_sparse_bsc((2, 2)), "sparse"),
    "nested": (_nested, "nested"),
    "nested and jagged": (lambda: _nested(layout=torch.jagged), "nested"),
    "quantized": (lambda: torch.quantize_per_tensor(PLAIN, 0.1, 0, torch.quint8), "quantized"),
    "quantized by channels": (
        lambda: torch.quantize_per_channel(PLAIN, torch.ones(4), torch.zeros(4), 0, torch.qint8), "quantized",
    ),
    "oneDNN": (lambda: PLAIN.to_mkldnn(), "oneDNN"),
    "meta": (lambda: PLAIN.to("meta"), "meta"),
    "fake": (_fake, "fake"),
    "zeros without memory": (lambda: torch._efficientzerotensor((4, 2 * N)), "zeros that has no memory"),
    "without storage": (_freed, "storage was freed"),
    "a wrapper": (lambda: _Wrapper(PLAIN), "wrapped"),
    "masked": (_masked, "wrapped"),
    "functional": (lambda: torch._to_functional_tensor(PLAIN), "wrapped"),
    "inside of vmap": (_inside(torch.vmap), "wrapped"),
    "inside of grad": (_inside(torch.func.grad), "wrapped"),
    "inside of jvp": (_inside(lambda f: lambda x: torch.func.jvp(f, (x,), (x,))), "wrapped"),
    "inside of vjp": (_inside(lambda f: lambda x: torch.func.vjp(f, x)), "wrapped"),
    "inside of jacfwd": (_inside(torch.func.jacfwd), "wrapped"),
    "inside of functionalize": (_inside(torch.func.functionalize), "wrapped"),
    "not made yet": (lambda: torch.nn.UninitializedBuffer(), "storage was freed"),  # type: ignore[no-untyped-call]
}  # fmt: skip


def _refused(x: Any, words: str) -> None:
    """By functions, plans and bound plans, as an input and as what is written to."""
    y = torch.full((4, N), 7.0)
    doors: list[Callable[[], Any]] = [
        lambda: F.exp(x), lambda: F.exp(PLAIN, out=x), lambda: F.add(PLAIN, x), lambda: PLAN.run(x, y), lambda: PLAN.bind(x, y),
    ]  # fmt: skip
    for door in doors:
        with pytest.raises(bc.BaracudaError, match=words):
            door()
    assert bool((y == 7).all())


@pytest.mark.parametrize("state", list(TAKEN))
def test_what_means_nothing_is_taken(state: str) -> None:
    x = TAKEN[state]()
    want = torch.exp(x.detach().as_subclass(torch.Tensor))
    torch.testing.assert_close(F.exp(x).as_subclass(torch.Tensor), want)
    assert PLAN.can_implement(x, torch.empty(4, N))


@pytest.mark.parametrize("state", list(REFUSED))
def test_what_a_kernel_would_lose_is_refused(state: str) -> None:
    make, words = REFUSED[state]
    _refused(make(), words)


def _dual(*shape: int) -> torch.Tensor:
    made: torch.Tensor = forward_ad.make_dual(torch.ones(*shape), torch.ones(*shape))
    return made


def test_tangents_are_refused() -> None:
    with forward_ad.dual_level():
        x, large = _dual(4, 2 * N), _dual(5, 2 * N)
        base = torch.zeros(5, 2 * N)
        part = base[:4]
        part.copy_(x)
        column = forward_ad.make_dual(torch.ones(4, 1), torch.ones(4, 1)).expand(4, 2 * N)
        for state in (x, large[1:], part, base[1:], column, x.as_subclass(_Sub), x.double().float()):
            _refused(state, "tangent")
            with torch.no_grad():  # which is of the other mode
                _refused(state, "tangent")
        primal = forward_ad.unpack_dual(x).primal
        for fine in (primal, torch.ones(4, 2 * N), torch.ones(5, 2 * N)[1:]):
            torch.testing.assert_close(F.exp(fine), torch.exp(torch.ones(4, 2 * N)))
        with forward_ad._set_fwd_grad_enabled(False):  # torch's functions lose it here, too
            F.exp(x)
    F.exp(x)
