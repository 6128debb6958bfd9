"""Functions made of others: options, out=, elements, devices and refusals; values and gradients are in test_opinfo.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import baracuda as bc
import baracuda.functional as F

X = np.linspace(-2, 3, 12, dtype=np.float32).reshape(3, 4)
T = torch.from_numpy(X)

# Functions with a result of X's shape or another one, the same of torch, and the shape.
WITH_OUT: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "hstack": (lambda **k: F.hstack([X, X], **k), lambda: torch.hstack([T, T])),
    "vstack": (lambda **k: F.vstack(X, X[0], **k), lambda: torch.vstack([T, T[0]])),
    "diff": (lambda **k: F.diff(X, 2, **k), lambda: torch.diff(T, 2)),
    "cross": (lambda **k: F.cross(X, X[:, ::-1], 0, **k), lambda: torch.cross(T, T.flip(1), 0)),
    "matrix_power": (lambda **k: F.matrix_power(X[:, :3], 3, **k), lambda: torch.linalg.matrix_power(T[:, :3], 3)),
    "entr": (lambda **k: F.entr(X, **k), lambda: torch.special.entr(T)),
    "vecdot": (lambda **k: F.vecdot(X, X, **k), lambda: torch.linalg.vecdot(T, T)),
    "rsub": (lambda **k: F.clamp_min(X, 0.5, **k), lambda: torch.clamp_min(T, 0.5)),
}


@pytest.mark.parametrize("name", WITH_OUT)
def test_out(name: str) -> None:
    ours, theirs = WITH_OUT[name]
    want = theirs().numpy()
    out = np.full_like(want, 7)
    assert ours(out=out) is out
    np.testing.assert_allclose(out, want, rtol=2e-5, atol=1e-6)
    with pytest.raises(bc.InvalidProblemError, match="out"):
        ours(out=np.zeros((5, 5, 5), np.float32))


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "rot90": (lambda: F.rot90(X, 1, (0, 0)), "dims: got .* want two different"),
    "meshgrid": (lambda: F.meshgrid(X[0], indexing="yx"), 'indexing: got .yx., want "ij" or "xy"'),
    "cartesian_prod": (lambda: F.cartesian_prod(X), "want vectors"),
    "select_scatter": (lambda: F.select_scatter(X, X[0], 0, 3), "index: got 3, want -3 <= index < 3"),
    "diagonal_scatter": (lambda: F.diagonal_scatter(X, X[0]), "src: got f32 of shape"),
    "view_copy": (lambda: F.view_copy(X, (5, -1)), "want a shape of 12 elements"),
    "permute_copy": (lambda: F.permute_copy(X, (0, 0)), "want every dimension once"),
    "narrow_copy": (lambda: F.narrow_copy(X, 0, 2, 2), "want a part of 3 slices"),
    "split_with_sizes_copy": (lambda: F.split_with_sizes_copy(X, [1, 1]), "want sizes whose sum is 3"),
    "unfold_copy": (lambda: F.unfold_copy(X, 0, 4, 1), "want 0 <= size <= 3"),
    "pixel_shuffle": (lambda: F.pixel_shuffle(np.ones((2, 3, 3), np.float32), 2), "want a multiple of 4"),
    "matrix_norm": (lambda: F.matrix_norm(X, 2), "need singular values"),
    "matrix_power": (lambda: F.matrix_power(X[:, :3], -1), "inverses are not built"),
    "cdist": (lambda: F.cdist(X, X[:, :2]), "x2: got shapes"),
    "cov": (lambda: F.cov(X, fweights=np.ones(4, np.float32)), "fweights: got f32 .* want a vector of 4 integers"),
    "cross": (lambda: F.cross(X, X, 1), "want the same rank and size 3"),
    "trapezoid": (lambda: F.trapezoid(X, X, dx=1.0), "dx: got a number beside x"),
    "masked_sum": (lambda: F.masked.sum(X, mask=X), "mask: got f32"),
    "masked_mean": (lambda: F.masked.mean(X.astype(np.int32)), "want a float element"),
    "unbiased": (lambda: F.var(X, 0, True, correction=0), "unbiased: got True and correction=0"),
    "dtype": (lambda: F.mean(X, dtype="i32"), "dtype: got i32, want a float element"),
    "device": (lambda: F.zeros_like(X, device="cuda"), "device: got cuda:0, want cpu"),
    "places": (lambda: F.zeros(3, device="cuda", out=X[0, :3].copy()), "device: got cuda:0 and out on cpu"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_name_the_argument(name: str) -> None:
    call, text = REFUSED[name]
    with pytest.raises(bc.InvalidProblemError, match=text):
        call()


def test_casts_before() -> None:
    half = T.to(torch.bfloat16)
    for name, args in (("sum", (1,)), ("mean", (1,)), ("prod", (1,)), ("cumsum", (1,)), ("softmax", (1,))):
        want = getattr(torch, name)(half, *args, dtype=torch.float64)
        got = getattr(F, name)(half, *args, dtype="f64")
        assert got.dtype is torch.float64
        torch.testing.assert_close(got, want, rtol=1e-12, atol=1e-12)
        y, pull = bc.vjp(getattr(F, name), half, *args, dtype=torch.float64)
        leaf = half.clone().requires_grad_()
        dy = torch.randn(want.shape, dtype=torch.float64)
        getattr(torch, name)(leaf, *args, dtype=torch.float64).backward(dy)
        dx = pull(dy)
        assert dx.dtype is torch.bfloat16
        torch.testing.assert_close(dx, leaf.grad, rtol=1e-2, atol=1e-2)


def test_older_words_of_variances() -> None:
    for name in ("var", "std", "var_mean", "std_mean"):
        ours, theirs = getattr(F, name), getattr(torch, name)
        for args in ((False,), (True,), (0, False), (1, True, True)):
            torch.testing.assert_close(ours(T, *args), theirs(T, *args))
    _, pull = bc.vjp(F.var, T, 0, False)
    leaf = T.clone().requires_grad_()
    torch.var(leaf, 0, False).sum().backward()
    torch.testing.assert_close(pull(torch.ones(4)), leaf.grad)


def test_devices_of_new_tensors() -> None:
    made = F.arange(5, device="cpu")
    assert isinstance(made, bc.Tensor) and made.tolist() == [0, 1, 2, 3, 4] and isinstance(F.arange(5), np.ndarray)
    for fn in (F.zeros, F.ones, F.rand, F.randn):
        assert fn(2, 3, device=torch.device("cpu"), dtype="f64").element is bc.Element.F64
    assert F.eye(2, device="cpu").tolist() == [[1, 0], [0, 1]] and F.randint(3, (4,), device="cpu").shape == (4,)
    assert F.linspace(0, 4, 3, dtype="i32", device="cpu").tolist() == [0, 2, 4]


def test_random_numbers_of_several_moments() -> None:
    mean, std = torch.tensor([0.0, 100.0]), torch.tensor([1.0, 0.0])
    drawn = F.normal(mean, std)
    assert drawn[1] == 100 and isinstance(drawn, torch.Tensor)
    many = F.normal(np.zeros((4, 1), np.float32), np.full(10_000, 2.0, np.float32))
    assert many.shape == (4, 10_000) and abs(many.std() - 2) < 0.05
    assert F.rand_like(X).dtype == X.dtype and F.randint_like(T, 3).max() <= 2


def test_max_and_min_of_two() -> None:
    for a, b in ((X, -X), (T, -T), (bc.asarray(X), bc.asarray(-X))):
        assert np.array_equal(np.asarray(F.max(a, b)), np.maximum(X, -X))
        assert np.array_equal(np.asarray(F.min(a, b)), np.minimum(X, -X))
    _, pull = bc.vjp(F.max, X, -X)
    da, db = pull(np.ones_like(X))
    assert np.array_equal(da, (X > 0).astype(np.float32)) and np.array_equal(db, (X < 0).astype(np.float32))


def test_rooms() -> None:
    assert F.linalg.vecdot is F.vecdot and F.special.expit is F.sigmoid and F.masked.sum is F.masked_sum
    assert "cross" in dir(F.linalg) and "linalg" in repr(F.linalg)
    with pytest.raises(AttributeError, match="linalg has no 'crossed'"):
        F.linalg.crossed  # noqa: B018
    for room in ("linalg", "special", "masked"):
        for name in dir(getattr(F, room)):
            assert callable(getattr(getattr(F, room), name)) and hasattr(getattr(torch, room), name)


def test_many_results_and_none() -> None:
    parts = F.unbind_copy(np.arange(40, dtype=np.float32))
    assert len(parts) == 40 and [float(p) for p in parts] == list(range(40))
    assert F.unbind_copy(np.ones((0, 3), np.float32)) == ()


@pytest.mark.parametrize("element", ["f16", "bf16", "f64"])
def test_other_elements(element: str) -> None:
    x = T.to({"f16": torch.float16, "bf16": torch.bfloat16, "f64": torch.float64}[element])
    tolerance = {"f16": 4e-3, "bf16": 3e-2, "f64": 1e-12}[element]
    for got, want in (
        (F.cdist(x, x + 1), torch.cdist(x.double(), (x + 1).double())),
        (F.corrcoef(x[:2]), torch.corrcoef(x[:2].double())),
        (F.trapezoid(x), torch.trapezoid(x.double())),
        (F.masked.var(x, 1, mask=x > -1), torch.masked.var(x.double(), 1, mask=x > -1)),
        (F.block_diag(x, x), torch.block_diag(x, x).double()),
    ):
        assert got.dtype is x.dtype
        torch.testing.assert_close(got.double(), want, rtol=tolerance, atol=tolerance, equal_nan=True)


def test_repeated_calls_run_one_program() -> None:
    """Another call of the same shape takes the engine's recipe, whose program has all of the steps."""
    first = F.cov(X)
    assert np.array_equal(first, F.cov(X.copy())) and np.allclose(first, np.cov(X), rtol=1e-5)


UNFUSED: dict[str, tuple[tuple[int, ...], tuple[int, ...], Any, tuple[int, ...] | None]] = {
    "one row": ((5,), (3, 5), torch.tensor(2), (3,)),
    "several losses of a row": ((4, 5), (3, 2, 5), torch.randint(0, 3, (4, 2)), (3, 2)),
    "probabilities": ((4, 5), (3, 5), torch.softmax(torch.randn(4, 3), 1), (3,)),
}


@pytest.mark.parametrize("name", UNFUSED)
def test_linear_cross_entropy_of_other_forms(name: str) -> None:
    shape, matrix, target, bias = UNFUSED[name]
    given = [torch.randn(n, dtype=torch.float64) for n in (shape, matrix, bias)]
    given[2] = given[2] if bias else None
    target = target.double() if target.is_floating_point() else target
    leaves = [x.clone().requires_grad_() for x in given]
    options = {"label_smoothing": 0.1, "reduction": "sum"}
    torch.nn.functional.linear_cross_entropy(leaves[0], leaves[1], target, linear_bias=leaves[2], **options).backward()
    loss, pull = bc.vjp(F.linear_cross_entropy, given[0], given[1], target, linear_bias=given[2], **options)
    torch.testing.assert_close(
        loss, torch.nn.functional.linear_cross_entropy(given[0], given[1], target, linear_bias=given[2], **options)
    )
    for got, leaf in zip(pull(torch.ones((), dtype=torch.float64)), leaves, strict=True):
        torch.testing.assert_close(got, leaf.grad)


@pytest.mark.parametrize("element", [torch.uint8, torch.uint32, torch.int16])
def test_indices_of_other_integers(element: torch.dtype) -> None:
    at = torch.tensor([2, 0, 1])
    few = at.to(element)
    assert torch.equal(F.index_select(T, 1, few), T.index_select(1, at))
    assert torch.equal(F.take(T, few), T.take(at)) and torch.equal(F.gather(T[0], 0, few), T[0].gather(0, at))
    for name in ("cross_entropy", "nll_loss"):
        ours, theirs = getattr(F, name), getattr(torch.nn.functional, name)
        leaf = T.clone().requires_grad_()
        theirs(leaf, at).backward()
        loss, pull = bc.vjp(ours, T, few)
        torch.testing.assert_close(loss, theirs(T, at))
        torch.testing.assert_close(pull(torch.ones(())), leaf.grad)
    _, pull = bc.vjp(F.gather, T[0], 0, few)
    assert torch.equal(pull(torch.ones(3)), torch.tensor([1.0, 1, 1, 0]))
    with pytest.raises(bc.IndexOutOfRangeError):
        F.index_select(T, 1, torch.tensor([4]).to(element))


def test_replicate_where_all_is_cut_at_one_end() -> None:
    x = T[None]
    for pads in ((-4, 5), (6, -4), (-5, 9), (-4, 1)):
        want = torch.nn.functional.pad(x, pads, "replicate") if pads != (-5, 9) else x[..., -1:].expand(1, 3, 8)
        assert torch.equal(F.pad(x, pads, "replicate"), want)
    _, pull = bc.vjp(F.pad, x, (-4, 5), "replicate")
    assert pull(torch.ones(1, 3, 5))[0, 0].tolist() == [0, 0, 0, 5]
    with pytest.raises(bc.InvalidProblemError, match="cut off"):
        F.pad(x, (-4, -1), "replicate")


def test_whole_floats_are_integers() -> None:
    x = torch.arange(-4, 5)
    assert torch.equal(F.hardtanh(x), torch.nn.functional.hardtanh(x))
    assert torch.equal(F.add(x, x, alpha=2.0), torch.add(x, x, alpha=2))
    m = x[:4].reshape(2, 2)
    assert torch.equal(F.addmm(m, m, m, beta=2.0, alpha=3.0), torch.addmm(m, m, m, beta=2, alpha=3))
    for wrong in (0.5, float("nan"), float("inf"), 1e30):
        with pytest.raises(bc.InvalidProblemError, match="alpha"):
            F.addmm(m, m, m, alpha=wrong)


@pytest.mark.parametrize(("shape", "dim"), [((3, 4, 5), 0), ((3, 4, 5), 2), ((3, 4, 5), -1), ((6,), 0), ((2, 3), 1)])
def test_weight_norm(shape: tuple[int, ...], dim: int) -> None:
    v = torch.randn(*shape, dtype=torch.float64).requires_grad_(True)
    g = torch.randn([n if d == dim else 1 for d, n in enumerate(shape)], dtype=torch.float64).requires_grad_(True)
    want = v * (g / torch.norm_except_dim(v, 2, dim))
    got, pull = bc.vjp(F.weight_norm, v.detach(), g.detach(), dim)
    torch.testing.assert_close(got, torch._weight_norm(v, g, dim).detach())
    dy = torch.randn_like(got)
    want.backward(dy)
    torch.testing.assert_close(pull(dy), (v.grad, g.grad))
    with pytest.raises(bc.InvalidProblemError, match="a length for each slice"):
        F.weight_norm(v.detach(), torch.ones(7, dtype=torch.float64), dim)
