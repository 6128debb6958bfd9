"""einsum and its kin against torch: random equations, gradients, elements, strides, refusals; and what composed functions do."""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import baracuda as bc
import baracuda.functional as F
from baracuda.call.compose import Composed

T64 = {"dtype": torch.float64}
LETTERS = "abcdeZY"


def values(shape: tuple[int, ...], dtype: torch.dtype = torch.float64, seed: int = 0) -> torch.Tensor:
    """Small whole numbers: sums of their products are exact in every element."""
    rng = np.random.default_rng([seed, *shape])
    return torch.from_numpy(rng.integers(-3, 4, shape)).to(dtype)


@st.composite
def problems(draw: st.DrawFn) -> tuple[str, list[tuple[int, ...]]]:
    """An equation and shapes for it: ellipses, repeated and broadcast letters, implicit results, empty dimensions."""
    sizes = {letter: draw(st.sampled_from([1, 2, 2, 3, 3, 4, 0])) for letter in LETTERS}
    batch = [draw(st.integers(1, 3)) for _ in range(draw(st.integers(0, 2)))]
    terms, shapes = [], []
    for _ in range(draw(st.integers(1, 4))):
        letters = draw(st.lists(st.sampled_from(LETTERS), max_size=4))
        shape = [sizes[n] for n in letters]
        if letters and draw(st.integers(0, 5)) == 0:  # broadcast one of them, all its places in the term
            one = draw(st.sampled_from(letters))
            shape = [1 if n == one else s for n, s in zip(letters, shape, strict=True)]
        term = "".join(letters)
        if draw(st.booleans()):
            at, covered = draw(st.integers(0, len(letters))), draw(st.integers(0, len(batch)))
            dots = [draw(st.sampled_from([n, 1])) for n in batch[len(batch) - covered :]]
            term, shape = term[:at] + "..." + term[at:], shape[:at] + dots + shape[at:]
        terms.append(term)
        shapes.append(tuple(shape))
    equation = ",".join(terms)
    if draw(st.booleans()):
        there = sorted(set(equation) & set(LETTERS))
        result = draw(st.lists(st.sampled_from(there), unique=True, max_size=5)) if there else []
        at = draw(st.integers(0, len(result)))
        dots = "..." if draw(st.integers(0, 3)) else ""
        equation += "->" + "".join(result[:at]) + dots + "".join(result[at:])
    return equation, shapes


def pulled(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[Any, Callable[[Any], tuple[Any, ...]]]:
    y, pull = bc.vjp(fn, *args, **kwargs)

    def all_of(dy: Any) -> tuple[Any, ...]:
        found = pull(dy)
        return found if isinstance(found, tuple) else (found,)

    return y, all_of


@settings(max_examples=150, deadline=None)
@given(problems(), st.sampled_from(["float64", "float32", "bfloat16", "float16", "int64", "int32", "uint8"]))
def test_random_equations_are_torchs(problem: tuple[str, list[tuple[int, ...]]], name: str) -> None:
    equation, shapes = problem
    dtype = getattr(torch, name)
    xs = [values(s, dtype, i) for i, s in enumerate(shapes)]
    wanted = torch.einsum(equation, *(x.to(torch.int64) for x in xs))
    got = F.einsum(equation, *xs)
    assert got.shape == wanted.shape
    if name in ("float64", "int64") or not wanted.numel() or wanted.abs().max() <= 256:
        assert torch.equal(got.to(torch.float64), wanted.to(torch.float64)) or name == "uint8"
    if not dtype.is_floating_point:
        return
    assert got.dtype == dtype
    leaves = [values(s, torch.float64, i).requires_grad_() for i, s in enumerate(shapes)]
    result = torch.einsum(equation, *leaves)
    dy = values(tuple(result.shape), seed=9)
    grads = torch.autograd.grad(result, leaves, dy)
    _, pull = pulled(F.einsum, equation, *(x.detach() for x in leaves))
    for a, b in zip(pull(dy), grads, strict=True):
        assert torch.equal(a, b)


EQUATIONS = [
    ("bqhd,bkhd->bhqk", (2, 5, 3, 4), (2, 6, 3, 4)),
    ("bhqk,bkhd->bqhd", (2, 3, 5, 6), (2, 6, 3, 4)),
    ("ijk,jkl->il", (3, 4, 5), (4, 5, 6)),
    ("ijk,kjl->li", (3, 4, 5), (5, 4, 6)),
    ("abcdefgh,abcdefgh->abcdefg", (2,) * 8, (2,) * 8),
    ("abcdefgh,hgfedcba", (2,) * 8, (2,) * 8),
    ("i,i", (7,), (7,)),
    ("abc,bd->dac", (3, 4, 5), (4, 6)),
    ("abc,cd->bda", (3, 4, 5), (5, 6)),
    ("abij,bajk->ibka", (2, 3, 4, 5), (3, 2, 5, 6)),
    ("ij,ij->j", (30, 4), (30, 4)),
    ("ij,jk,kl,lm->im", (2, 9), (9, 3), (3, 8), (8, 2)),
]


def summed_terms(equation: str, shapes: tuple[tuple[int, ...], ...]) -> int:
    left, arrow, right = equation.partition("->")
    sizes = dict(zip(left.replace(",", ""), (n for s in shapes for n in s), strict=True))
    kept = right if arrow else [n for n in sizes if left.count(n) == 1]
    return math.prod(n for letter, n in sizes.items() if letter not in kept)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize(("equation", "shapes"), [(e[0], e[1:]) for e in EQUATIONS])
def test_sums_keep_the_products_bound(equation: str, shapes: tuple[tuple[int, ...], ...], dtype: torch.dtype) -> None:
    """One matrix product for two operands: the row's own bound; of more every product adds a rounding."""
    torch.manual_seed(3)
    xs = [torch.randn(s).to(dtype) for s in shapes]
    exact = torch.einsum(equation, *(x.double() for x in xs))
    size = torch.einsum(equation, *(x.double().abs() for x in xs))
    got = F.einsum(equation, *xs)
    steps = len(xs) - 1
    promise = bc.plan(bc.MatmulDescriptor((2, 3), (3, 4), str(xs[0].dtype)[6:])).precision_guarantee
    rounding = 0.5 * torch.finfo(dtype).eps * (size * steps if steps > 1 else exact.abs()) + torch.finfo(dtype).tiny
    terms = summed_terms(equation, shapes)
    bound = steps * promise.c * torch.finfo(torch.float32).eps * terms**0.5 * size + rounding
    assert ((got.double() - exact).abs() <= bound).all()


def strided(x: torch.Tensor, how: int) -> torch.Tensor:
    if how == 0 and x.ndim:
        return x.transpose(0, -1).contiguous().transpose(0, -1)
    wide = torch.zeros([2 * n for n in x.shape], dtype=x.dtype)
    view = wide[tuple(slice(None, None, 2) for _ in x.shape)]
    return view.copy_(x)


@pytest.mark.parametrize("how", [0, 1])
@pytest.mark.parametrize(("equation", "shapes"), [(e[0], e[1:]) for e in EQUATIONS if len(e) == 3])
def test_strides(equation: str, shapes: tuple[tuple[int, ...], ...], how: int) -> None:
    xs = [values(s, seed=i) for i, s in enumerate(shapes)]
    want = torch.einsum(equation, *xs)
    assert torch.equal(F.einsum(equation, *(strided(x, how) for x in xs)), want)
    flipped = [x.numpy()[tuple(slice(None, None, -1) for _ in x.shape)] for x in xs]
    want = np.einsum(equation, *flipped)
    got = F.einsum(equation, *flipped)
    assert isinstance(got, np.ndarray) and np.array_equal(got, want)
    wide = torch.zeros([2 * n for n in want.shape], **T64)
    dy = wide[tuple(slice(None, None, 2) for _ in want.shape)]
    dy.copy_(values(tuple(want.shape), seed=4))
    leaves = [x.clone().requires_grad_() for x in xs]
    grads = torch.autograd.grad(torch.einsum(equation, *leaves), leaves, dy)
    for a, b in zip(pulled(F.einsum, equation, *xs)[1](dy), grads, strict=True):
        assert torch.equal(a, b)


def test_elements_are_torchs() -> None:
    i32, f32 = values((2, 3), torch.int32), values((3,), torch.float32)
    for equation, xs in (
        ("ij->i", (i32,)),
        ("ij,j->ij", (i32, f32)),
        ("ij,k->ik", (i32, i32[0])),
        ("ij->", (i32 > 0,)),
    ):
        want = torch.einsum(equation, *xs)
        got = F.einsum(equation, *xs)
        assert got.dtype == want.dtype and torch.equal(got, want)
    wide, low = values((2,), torch.float64).requires_grad_(), values((3,), torch.float32).requires_grad_()
    want = torch.einsum("i,j->ij", wide, low)
    dy = values((2, 3), seed=3)
    y, pull = pulled(F.einsum, "i,j->ij", wide.detach(), low.detach())
    assert y.dtype == torch.float64
    for a, b in zip(pull(dy), torch.autograd.grad(want, (wide, low), dy), strict=True):
        assert a.dtype == b.dtype and torch.equal(a, b)


X, V, S = values((2, 3, 4)), values((4,), seed=1), values(())
KIN: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("outer", (V, values((3,))), {}), ("ger", (V, V), {}), ("vdot", (V, V), {}), ("inner", (X, values((5, 4))), {}),
    ("inner", (S, X), {}), ("inner", (V, V), {}), ("tensordot", (X, values((3, 4, 5))), {}),
    ("tensordot", (X, values((4, 5, 3))), {"dims": ([1, -1], [2, 0])}), ("tensordot", (X, V), {"dims": 0}),
    ("tensordot", (X, values((1, 4))), {"dims": ((1, 2), (0, 1))}),
    ("kron", (X, values((2, 1, 3))), {}), ("kron", (V, values((2, 2))), {}), ("kron", (S, X), {}),
    ("kron", (values((2, 0)), values((2, 2))), {}), ("chain_matmul", (values((2, 7)), values((7, 3)), values((3, 9))), {}),
    ("chain_matmul", (values((9, 2)), values((2, 7)), values((7, 3)), values((3, 8)), values((8, 1))), {}),
    ("addr", (values((4, 3)), V, values((3,))), {"beta": 0.5, "alpha": -2}), ("addr", (S, V, V), {}),
    ("addmm", (V, values((5, 3)), values((3, 4))), {"beta": 2, "alpha": 0.5}), ("addmm", (S, X[0], X[1].T), {}),
    ("addmv", (values((3,)), X[0], V), {"alpha": 3}), ("baddbmm", (S, X, X.mT.contiguous()), {"beta": 3.0}),
    ("addbmm", (values((3, 3)), X, X.mT.contiguous()), {"alpha": 2.0}), ("addbmm", (V[:3], X, X.mT), {"beta": 0.0}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "args", "options"), KIN, ids=[f"{k[0]}-{i}" for i, k in enumerate(KIN)])
def test_kin_and_their_gradients_are_torchs(name: str, args: tuple[Any, ...], options: dict[str, Any]) -> None:
    leaves = [a.clone().requires_grad_() for a in args]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch would rather see chain_matmul elsewhere
        want = getattr(torch, name)(*leaves, **options)
    dy = values(tuple(want.shape), seed=8)
    grads = torch.autograd.grad(want, leaves, dy)
    y, pull = pulled(getattr(F, name), *args, **options)
    assert torch.equal(y, want.detach())
    for a, b in zip(pull(dy), grads, strict=True):
        assert a.shape == b.shape and torch.equal(a, b)
    for dtype in (torch.int64, torch.float32):
        if any(isinstance(o, float) for o in options.values()) and dtype is torch.int64:
            continue
        assert torch.equal(getattr(F, name)(*(a.to(dtype) for a in args), **options), y.to(dtype))
    out = torch.full(tuple(y.shape), 7.0, **T64)
    assert getattr(F, name)(*args, **options, out=out) is out and torch.equal(out, y)
    numpys = getattr(F, name)(*(a.numpy() for a in args), **options)
    assert isinstance(numpys, (np.ndarray, np.generic)) and np.array_equal(numpys, y.numpy())


def test_kin_are_promoted() -> None:
    for a, b in (("float32", "int64"), ("float64", "float32"), ("int8", "uint8"), ("bool", "int16")):
        x, y = values((3,)).to(getattr(torch, a)), values((2,)).to(getattr(torch, b))
        for name in ("outer", "ger", "kron"):
            want = getattr(torch, name)(x, y)
            got = getattr(F, name)(x, y)
            assert got.dtype == want.dtype and torch.equal(got, want)


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: F.einsum("ij,jk->ik", X[0]), "got 1 operands, want 2"),
    (lambda: F.einsum("ij->i", X), "got 3 dimensions, want an operand 0 with 2 dimensions"),
    (lambda: F.einsum("...ijkl->i", X), "at least 4 dimensions"),
    (lambda: F.einsum("i j k -> l", X), "the result has 'l'"),
    (lambda: F.einsum("ijk->ii", X), "'i' twice"),
    (lambda: F.einsum("iij->j", X), "sizes 2 and 3 for 'i'"),
    (lambda: F.einsum("ij,jk->ik", X[0], X[0]), "operand 1 has size 3 for 'j', want 4, as before, or 1"),
    (lambda: F.einsum("...i,...i", X, X[:, :2]), "for '...'"),
    (lambda: F.einsum("i1k->i", X), "got '1', want letters"),
    (lambda: F.einsum("....ijk", X), "got '.'"),
    (lambda: F.einsum("ij->k->i", X[0]), "got '-'"),
    (lambda: F.einsum(3, X), "equation: got int"),
    (lambda: F.einsum("i,j", 3.0, V), "operands[0]: got a float, want a tensor"),
    (lambda: F.einsum("i"), "operands: got none"),
    (lambda: F.einsum("ij,j->i", X[0], V.float()), "got f64 and f32, want one element"),
    (lambda: F.einsum("abcd,efgh,ijk->abcdefghijk", *[torch.ones(2, 2, 2, 2)] * 2, torch.ones(2, 2, 2)), "at most 8"),
    (lambda: F.einsum("i,i", V.clone().requires_grad_(), V), "requires grad"),
    (lambda: F.einsum_backward(V[:3], "i->i", V), "dy: got shape (3,), want (4,)"),
    (lambda: F.einsum_backward(V.float(), "i->i", V), "dy: got f32, want f64"),
    (lambda: F.einsum_backward(V.long(), "i->i", V.long()), "integers have no gradient"),
    (lambda: F.tensordot(X, V, 2), "dims: got 2, want 0 to 1"),
    (lambda: F.tensordot(X, V, ([0], [0])), "got sizes 2 in dimension 0 of a and 4"),
    (lambda: F.tensordot(X, X, ([0, 0], [0, 0])), "every dimension once"),
    (lambda: F.tensordot(X, X, np.array([[0], [0]])), "dims: got ndarray, want a number"),
    (lambda: F.take_along_dim_backward(torch.ones(9, **T64), V, torch.tensor([0, 1])), "dy: got shape (9,), want (2,)"),
    (
        lambda: F.take_along_dim_backward(torch.ones(9, 3, **T64), V[None, :3], torch.zeros(2, 2).long(), 1),
        "(9, 3)",
    ),
    (lambda: F.inner(X, V[:3]), "same size of the last dimension"),
    (lambda: F.outer(X, V), "input of shape (2, 3, 4), want 1 dimension"),
    (lambda: F.addr(X[0], V[:3], V.float()), "vec2: f32, want one element"),
    (lambda: F.kron(torch.ones((2,) * 5), torch.ones((2,) * 4)), "9 dimensions larger than 1"),
    (lambda: F.kron(2.0, V), "input: got a float, want a tensor"),
    (lambda: F.kron_backward(V, V, V), "dy: got shape (4,), want (16,)"),
    (lambda: F.chain_matmul_backward(X[0], []), "matrices: got none, want at least one"),
    (lambda: F.chain_matmul(X[0], X[0]), "matrices[1]: got shape (3, 4), want a matrix of 4 rows"),
    (lambda: F.tensordot(X, X, ([0], [0]), out=V), "out"),
]


@pytest.mark.parametrize(("call", "text"), REFUSED, ids=[r[1] for r in REFUSED])
def test_refusals_say_what_is_wanted(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(bc.BaracudaError) as caught:
        call()
    assert text in str(caught.value)
    assert str(caught.value).partition(":")[0].partition("(")[0] in vars(F)


def test_results_are_of_the_first_ones_kind() -> None:
    jax = pytest.importorskip("jax")
    want = (X[0] @ X[1].T).numpy()
    for make in (lambda t: t, lambda t: t.numpy(), lambda t: bc.asarray(t.numpy())):
        for _ in range(2):
            got = F.einsum("ij,kj->ik", make(X[0]), make(X[1]))
            assert isinstance(got, type(make(X))) and np.array_equal(np.asarray(got), want)
    single = [jax.numpy.asarray(t.numpy().astype(np.float32)) for t in (X[0], X[1])]
    got, pull = pulled(F.einsum, "ij,kj->ik", *single)
    assert isinstance(got, jax.Array) and np.array_equal(got, want)
    assert all(isinstance(g, jax.Array) for g in pull(got))
    assert F.einsum("ij,kj->ik", [X[0], X[1]]).equal(torch.from_numpy(want))  # a list, as torch takes it
    half = F.einsum("ij,kj->ik", X[0].bfloat16(), X[1].bfloat16())
    assert half.dtype == torch.bfloat16


def test_identities_are_copies() -> None:
    for equation in ("ijk->ijk", "ijk->kji", "ijk"):
        got = F.einsum(equation, X)
        got += 1
        assert torch.equal(X, values((2, 3, 4)))


def test_steps_are_found_once_per_shape() -> None:
    fn = F.einsum
    assert isinstance(fn, Composed)
    fn("ab,bc", X[0], X[1].T)
    before = fn._cache_size
    for _ in range(3):
        fn("ab,bc", X[1], X[0].T)
    assert fn._cache_size == before
    fn("ab,bc", X[1].T.contiguous().T, X[0].T)
    assert fn._cache_size == before + 1
    assert "einsum" in repr(fn) and "ij,jk->ik" in fn.__doc__


def test_threads_share_steps() -> None:
    found: list[bool] = []
    xs = [values((17, 9), seed=i) for i in range(3)]
    want = torch.einsum("ij,kj,kl->il", *xs)

    def work() -> None:
        found.append(all(torch.equal(F.einsum("ij,kj,kl->il", *xs), want) for _ in range(20)))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == [True] * 6


LISTS: list[tuple[Any, ...]] = [
    ([0, 1], [1, 2], [0, 2]),
    ([30, 2], [2, 1]),
    ([..., 4], [4, 7], [7, ...]),
    ([0, 0], [0, 1], []),
]


@pytest.mark.parametrize("lists", LISTS, ids=str)
def test_labels_in_lists(lists: tuple[Any, ...], rng: np.random.Generator) -> None:
    xs = [torch.from_numpy(rng.normal(size=(3, 3))).requires_grad_() for _ in range(2)]
    args = [xs[0], lists[0], xs[1], *lists[1:]]
    want = torch.einsum(*args)
    y, pull = bc.vjp(F.einsum, *(a.detach() if isinstance(a, torch.Tensor) else a for a in args))
    torch.testing.assert_close(y, want.detach())
    dy = torch.ones_like(want)
    for got, wanted in zip(pull(dy), torch.autograd.grad(want, xs, dy), strict=True):
        torch.testing.assert_close(got, wanted)


def test_wrong_labels_in_lists(rng: np.random.Generator) -> None:
    x = rng.normal(size=(3, 3))
    for args, match in (
        ((x, [0, 52]), "got 52, want numbers from 0 to 51"),
        ((x, [0, 1], x, [1, True]), "got True"),
        ((x, [0, 1], x, x, x), "want a list of numbers after every operand"),
        ((x, [0, 1], x), "got"),
    ):
        with pytest.raises(bc.InvalidProblemError, match=match):
            F.einsum(*args)
