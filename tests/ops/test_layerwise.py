"""Muon, Adafactor, LAMB and the scaling of gradients, against torch's own and a formula in f64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import baracuda as bc
import baracuda.functional as F

SHAPES = [(6, 4), (4, 9), (5, 5), (1, 3)]


def gradients(shape: tuple[int, ...], steps: int = 5, dtype: torch.dtype = torch.float64) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    return [torch.randn(shape, generator=generator, dtype=dtype) for _ in range(steps)]


@pytest.mark.parametrize("adjust", [None, "original", "match_rms_adamw"])
@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_muon_follows_torch(shape: tuple[int, ...], nesterov: bool, adjust: str | None) -> None:
    ours, *grads = gradients(shape, 6, torch.float32)
    theirs, buffer = torch.nn.Parameter(ours.clone()), torch.zeros(shape)
    options: dict[str, Any] = {"lr": 0.05, "weight_decay": 0.1, "nesterov": nesterov, "adjust_lr_fn": adjust}
    optimizer = torch.optim.Muon([theirs], **options)
    for g in grads:
        theirs.grad = g.clone()
        optimizer.step()
        F.muon_(ours, g, buffer, **options)
    # The iteration rounds to bf16 at other places: singular values differ by some of its eps.
    torch.testing.assert_close(ours, theirs.detach(), rtol=0, atol=5 * 0.05 * 3 * 2**-7)


def test_muon_makes_singular_values_one() -> None:
    (g,) = gradients((40, 12), 1)
    p = torch.zeros(40, 12, dtype=torch.float64)
    options: dict[str, Any] = {"ns_coefficients": (2.0, -1.5, 0.5), "ns_steps": 40, "ns_element": "f64"}
    F.muon_(p, g, torch.zeros_like(p), lr=1.0, weight_decay=0.0, adjust_lr_fn="match_rms_adamw", **options)
    left, _, right = torch.linalg.svd(g, full_matrices=False)
    torch.testing.assert_close(p, -0.2 * 40**0.5 * left @ right, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
@pytest.mark.parametrize("shape", [*SHAPES, (7,), (), (2, 3, 4)])
def test_adafactor_follows_torch(shape: tuple[int, ...], weight_decay: float, maximize: bool) -> None:
    ours, *grads = gradients(shape, 6)
    theirs = torch.nn.Parameter(ours.clone())
    options: dict[str, Any] = {"lr": 0.05, "weight_decay": weight_decay, "maximize": maximize}
    optimizer = torch.optim.Adafactor([theirs], foreach=False, **options)
    zeros = [torch.zeros(s, dtype=torch.float64) for s in ((*shape[:-1], 1), (*shape[:-2], 1, *shape[-1:]), shape)]
    factors = [[x] for x in ((*zeros[:2], None) if len(shape) > 1 else (None, None, zeros[2]))]
    for i, g in enumerate(grads):
        theirs.grad = g.clone()
        optimizer.step()
        step = torch.tensor(i + 1) if i % 2 else i + 1
        F.adafactor_([ours], [g], *factors, step=step, **options)
        torch.testing.assert_close(ours, theirs.detach(), rtol=1e-5 if i else 1e-12, atol=1e-6 if i else 1e-12)


@pytest.mark.parametrize("bounds", [(0.0, 10.0), (0.9, 0.95)])
@pytest.mark.parametrize("shape", [(6, 4), (7,), ()])
def test_lamb(shape: tuple[int, ...], bounds: tuple[float, float]) -> None:
    ours, *grads = gradients(shape, 6)
    p, m, v = ours.clone(), torch.zeros_like(ours), torch.zeros_like(ours)
    moments = torch.zeros_like(ours), torch.zeros_like(ours)
    for i, g in enumerate(grads, 1):
        lr, step = (torch.tensor(0.1, dtype=torch.float64), np.array(i)) if i % 2 else (0.1, i)
        F.lamb_(ours, g, *moments, step=step, lr=lr, weight_decay=0.2, min_ratio=bounds[0], max_ratio=bounds[1])
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        u = m / (1 - 0.9**i) / ((v / (1 - 0.999**i)).sqrt() + 1e-6) + 0.2 * p
        p = p - 0.1 * (p.norm() / u.norm()).clamp(*bounds) * u
        torch.testing.assert_close(ours, p, rtol=1e-12, atol=1e-13)


def test_lamb_moves_parameters_that_are_0_and_leaves_those_without_gradients() -> None:
    p, m, v = (torch.zeros(3) for _ in range(3))
    F.lamb_(p, torch.tensor([1.0, -1, 2]), m, v, step=1, lr=0.1)
    torch.testing.assert_close(p, torch.tensor([-0.1, 0.1, -0.1]), rtol=1e-4, atol=0)
    q = torch.ones(3)
    F.lamb_([q], [torch.zeros(3)], [torch.zeros(3)], [torch.zeros(3)], step=1)
    assert torch.equal(q, torch.ones(3))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_halves_are_rounded_once(dtype: torch.dtype) -> None:
    wide, g = gradients((6, 4), 2, torch.float32)
    wide, g = wide.to(dtype).float(), g.to(dtype).float()
    half = wide.to(dtype)
    given = [torch.zeros(6, 4) for _ in range(4)]
    F.lamb_(half, g.to(dtype), *given[:2], step=1, lr=0.1)
    F.lamb_(wide, g, *given[2:], step=1, lr=0.1)
    assert torch.equal(half, wide.to(dtype))


@pytest.mark.parametrize("bad", [None, float("inf"), float("nan")])
def test_scaling_of_gradients_follows_torch(bad: float | None) -> None:
    grads = [torch.randn(3), torch.randn(2, 2).half(), torch.randn(0), torch.randn(5).bfloat16()]
    if bad is not None:
        grads[1][1, 0] = bad
    theirs = [g.clone() for g in grads]
    found, want = torch.zeros(()), torch.zeros(())
    F.unscale_grads_(grads, found, 0.25)
    for g in theirs:
        torch._amp_foreach_non_finite_check_and_unscale_([g], want, torch.tensor(0.25))
    assert found == want == (bad is not None)
    for a, b in zip(grads, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=0, equal_nan=True)
    ours = [torch.tensor(2.0**126), torch.tensor(1, dtype=torch.int32)]
    other = [x.clone() for x in ours]
    for i in range(9):
        now = found if i < 7 else torch.zeros(())
        F.update_scale_(*ours, now, 2.0, 0.5, 3)
        torch._amp_update_scale_(*other, now, 2.0, 0.5, 3)
        assert all(torch.equal(a, b) for a, b in zip(ours, other, strict=True))


def shares(shape: tuple[int, ...], dtype: torch.dtype) -> list[Any]:
    """Row, column and whole statistics of Adafactor for a parameter."""
    kept = torch.float64 if dtype == torch.float64 else torch.float32
    row, column, whole = (torch.zeros(s, dtype=kept) for s in ((*shape[:-1], 1), (*shape[:-2], 1, *shape[-1:]), shape))
    return [row, column, None] if len(shape) > 1 else [None, None, whole]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(3, 4), (5,), ()])
@pytest.mark.parametrize("array", [torch.tensor, np.float32, np.array, lambda v: torch.tensor(v, dtype=torch.float64)])
def test_numbers_of_a_step_may_be_of_any_kind(
    array: Callable[[Any], Any], shape: tuple[int, ...], dtype: torch.dtype
) -> None:
    x, g = (t.to(dtype) for t in gradients(shape, 2))
    for which in ("adafactor", "lamb", "muon", "unscale"):
        found = []
        for kind in (float, array):
            p, moments = x.clone(), [torch.zeros(shape, dtype=shares((), dtype)[2].dtype) for _ in range(2)]
            lr, wd, step = kind(0.125), kind(0.25), 3 if kind is float else kind(3)
            if which == "adafactor":
                F.adafactor_([p], [g], *([v] for v in shares(shape, dtype)), step=step, lr=lr, weight_decay=wd)
                F.adafactor_([p], [g], *([v] for v in shares(shape, dtype)), step=2, lr=lr)
            elif which == "lamb":
                F.lamb_(p, g, *moments, step=step, lr=lr)
            elif which == "unscale":
                F.unscale_grads_(p, torch.zeros(()), lr)
            elif len(shape) == 2:
                F.muon_(p, g, moments[0], lr=lr, weight_decay=wd)
            found.append(p)
        eps = torch.finfo(dtype).eps
        torch.testing.assert_close(found[0], found[1], rtol=8 * eps, atol=8 * eps)


def test_a_traced_step_is_the_step() -> None:
    def step(p: Any, g: Any, m: Any, v: Any, at: Any, lr: Any) -> None:
        F.lamb_(p, g, m, v, step=at, lr=lr)
        F.adafactor_(p, g, *[[None] * 2] * 2, v, step=at, lr=lr)

    generator = torch.Generator().manual_seed(5)
    lists = [
        [torch.randn(s, generator=generator) for s in ((7,), ())],
        *([torch.zeros(7), torch.zeros(())] for _ in "mv"),
    ]
    grads = [torch.randn(7, generator=generator), torch.ones(())]
    copies = [[t.clone() for t in x] for x in lists]
    plan = bc.trace(step, lists[0], grads, *lists[1:], torch.tensor(1), torch.tensor(0.1)).compile()
    for at in range(1, 4):
        for (p, *moments), call in ((lists, step), (copies, plan.run)):
            call(p, grads, *moments, torch.tensor(at), torch.tensor(0.1))
    assert all(torch.equal(a, b) for x, y in zip(lists, copies, strict=True) for a, b in zip(x, y, strict=True))


X, ROW, COLUMN = np.ones((4, 3)), np.zeros((4, 1)), np.zeros((1, 3))
FIXED, FOUND = np.broadcast_to(X, (4, 3)), np.zeros((), "f4")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: F.muon_(X[0], X[0], X[0]), r"params\[0\]: got shape \(3,\), want a matrix. Give others to adamw_"),
        (lambda: F.muon_([X], [X, X], [X]), r"got 1 params, 2 grads, 1 momentum_buffers, want lists of equal lengths"),
        (lambda: F.muon_(X, X.T, X), r"grads\[0\]: got shape \(3, 4\), want that of params\[0\]"),
        (lambda: F.muon_(X, X, X[:1]), r"momentum_buffers\[0\]: got shape \(1, 3\), want \(4, 3\)"),
        (lambda: F.muon_(X, X, X, adjust_lr_fn="adam"), r"adjust_lr_fn: got .adam., want None"),
        (lambda: F.muon_(X, X, X, ns_steps=100), r"ns_steps: got 100, want 0 to 99"),
        (lambda: F.muon_(X, X, X, ns_coefficients=(1, 2)), r"ns_coefficients: got 2 numbers, want 3"),
        (lambda: F.adafactor_(X, X, ROW, None, None, step=1), r"col_vars\[0\]: want arrays, and None in variances"),
        (lambda: F.adafactor_(X, X, ROW.T, COLUMN, None, step=1), r"row_vars\[0\]: got shape \(1, 4\), want \(4, 1\)"),
        (lambda: F.adafactor_(X[0], X[0], None, None, None, step=1), r"variances\[0\]: want an array"),
        (lambda: F.lamb_(X, X, X, X.astype("f4"), step=1), r"exp_avg_sqs\[0\]: got f32, want f64"),
        (lambda: F.lamb_(X, X, X, X, step=1, min_ratio=2, max_ratio=1), r"min_ratio: got 2 and max_ratio 1"),
        (lambda: F.lamb_([X] * 2, [X * 1] * 2, [X * 1] * 2, [X * 2, X[:1]], step=1), r"exp_avg_sqs\[1\]: got shape"),
        (
            lambda: F.lamb_([X] * 2, [X * 1] * 2, [X * 1, X * 2], [X * 1, X * 2], step=1),
            r"params\[1\]: got memory that params\[0\] has, too, want each parameter once",
        ),
        (lambda: F.muon_([X] * 2, [X * 1] * 2, [X * 1, X * 2]), r"params\[1\]: got memory that params\[0\] has"),
        (lambda: F.lamb_(X, X * 1, X * 1, X * 1, step=0), r"step: got 0, want a number, at least 1"),
        (
            lambda: F.lamb_(X, X * 1, X * 1, X * 1, step=1, beta2=1),
            r"beta2: got 1, want a number, at least 0, below 1",
        ),
        (
            lambda: F.lamb_(X, X * 1, X * 1, X * 1, step=1, lr=X[0]),
            r"lr: got f64 of shape \(3,\), want a number or a 0-d",
        ),
        (lambda: F.lamb_(X, X * 1, X * 1, X, step=1), r"params\[0\]: got memory that exp_avg_sqs\[0\] has, too"),
        (
            lambda: F.muon_([X, FIXED], [X * 1] * 2, [X * 1] * 2),
            r"params\[1\]: got a read-only array, want a writable one",
        ),
        (lambda: F.muon_([X] * 2, [X * 1] * 2, [X * 1, X.astype(int)]), r"momentum_buffers\[1\]: got i64, want f16"),
        (lambda: F.muon_(X, X * 1, X * 1, lr="1"), r"lr: got '1', want a number or a 0-d array"),
        (lambda: F.muon_(X, X * 1, X * 1, lr=float("nan")), r"lr: got nan, want a number, at least 0"),
        (lambda: F.muon_(X, X * 1, X * 1, ns_element="i32"), r"ns_element: got i32, want f16, bf16, f32 or f64"),
        (lambda: F.adafactor_(X, X * 1, ROW, COLUMN, None, step=-1), r"step: got -1, want a number, at least 1"),
        (lambda: F.adafactor_(X, X * 1, ROW, COLUMN, None, step=1, d=0), r"d: got 0, want a number, above 0"),
        (lambda: F.adafactor_(X, X * 1, ROW, COLUMN.astype("f4"), None, step=1), r"col_vars\[0\]: got f32, want f64"),
        (lambda: F.unscale_grads_([X, FIXED], FOUND, 0.5), r"grads\[1\]: got a read-only array, want a writable one"),
        (
            lambda: F.unscale_grads_([X, X[:1].astype(int)], FOUND, 0.5),
            r"grads\[1\]: got i64, want f16, bf16, f32 or f64",
        ),
        (lambda: F.unscale_grads_([X], X[0], 0.5), r"found_inf: got f64, want f32. Cast it"),
        (
            lambda: F.unscale_grads_([X], FOUND, X[0]),
            r"inv_scale: got f64 of shape \(3,\), want a number or a 0-d array",
        ),
        (lambda: F.update_scale_(FOUND, np.array(1), FOUND), r"growth_tracker: got i64, want i32. Cast it"),
        (lambda: F.update_scale_(FOUND, np.array(1, "i4"), FOUND), r"scale: got memory that found_inf has, too"),
        (lambda: F.update_scale_(FOUND, FOUND, FOUND, 0.5), r"growth_factor: got 0.5, want a number, above 1"),
    ],
)
def test_refusals_change_nothing(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(bc.InvalidProblemError, match=message):
        call()
    assert (X == 1).all() and not ROW.any() and not COLUMN.any() and not FOUND.any()
