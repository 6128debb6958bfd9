"""Adagrad, RMSprop, Adadelta, Adamax, NAdam, RAdam and Lion: torch's trajectories, scalars, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import baracuda as bc
import baracuda.functional as F
from ops.test_optim import SHAPES, follow

STATES = {
    "Adagrad": 1, "RMSprop": 1, "Adadelta": 2, "Adamax": 2, "NAdam": 2, "RAdam": 2,
}  # fmt: skip
OPTIONS: list[tuple[str, dict[str, Any]]] = [
    ("Adagrad", {}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.02, "weight_decay": 0.1, "eps": 1e-5, "maximize": True}),
    ("RMSprop", {}),
    ("RMSprop", {"lr": 3e-3, "alpha": 0.9, "weight_decay": 0.1, "eps": 1e-6, "maximize": True}),
    ("RMSprop", {"momentum": 0.8}),
    ("RMSprop", {"centered": True, "eps": 1e-4}),
    ("RMSprop", {"centered": True, "momentum": 0.8, "eps": 1e-4}),
    ("Adadelta", {}),
    ("Adadelta", {"lr": 0.5, "rho": 0.8, "weight_decay": 0.1, "eps": 1e-4, "maximize": True}),
    ("Adamax", {}),
    ("Adamax", {"lr": 0.01, "betas": (0.8, 0.95), "weight_decay": 0.1, "eps": 1e-5, "maximize": True}),
    ("NAdam", {}),
    ("NAdam", {"lr": 0.01, "betas": (0.8, 0.95), "momentum_decay": 0.05, "weight_decay": 0.1, "maximize": True}),
    ("NAdam", {"decoupled_weight_decay": True, "weight_decay": 0.1}),
    ("RAdam", {}),
    ("RAdam", {"lr": 0.01, "betas": (0.8, 0.95), "weight_decay": 0.1, "eps": 1e-5, "maximize": True}),
    ("RAdam", {"decoupled_weight_decay": True, "weight_decay": 0.1}),
]


def filled(value: float = 0.0) -> list[np.ndarray[Any, Any]]:
    return [np.full(s, value) for s in SHAPES]


@pytest.mark.parametrize(("name", "options"), OPTIONS, ids=str)
def test_steps_follow_torch(name: str, options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(3)
    params = [np.asarray(rng.normal(size=s)) for s in SHAPES]
    theirs = [torch.tensor(p, requires_grad=True) for p in params]
    torch_step = getattr(torch.optim, name)(theirs, **options)
    states = [filled() for _ in range(STATES[name])]
    defaults = torch_step.defaults
    mine = {k: v for k, v in options.items() if k not in ("centered", "betas")} | {"lr": float(defaults["lr"])}
    if "betas" in defaults:
        mine |= dict(zip(("beta1", "beta2"), defaults["betas"], strict=True))
    if name == "RMSprop":
        states += [filled() if options.get("momentum") else None, filled() if options.get("centered") else None]
    update, product = getattr(F, f"{name.lower()}_"), 1.0

    def ours(step: int, grads: list[np.ndarray[Any, Any]]) -> None:
        nonlocal product
        more: dict[str, Any] = {"step": step} if name not in ("RMSprop", "Adadelta") else {}
        if name == "NAdam":
            product *= mine["beta1"] * (1 - 0.5 * 0.96 ** (step * defaults["momentum_decay"]))
            more["mu_product"] = product
        update(params, grads, *states, **mine, **more)

    torch.set_default_dtype(torch.float64)  # of NAdam's product
    try:
        follow(torch_step, theirs, params, ours)
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("maximize", [False, True])
def test_lion_follows_its_formula(maximize: bool) -> None:
    rng = np.random.default_rng(4)
    p, m = rng.normal(size=50), np.zeros(50)
    want, kept = p.copy(), m.copy()
    for _ in range(30):
        g = rng.normal(size=50)
        F.lion_(p, g, m, lr=0.01, beta1=0.8, beta2=0.9, weight_decay=0.1, grad_scale=4.0, maximize=maximize)
        g = (-g if maximize else g) / 4
        want = want * (1 - 0.01 * 0.1) - 0.01 * np.sign(0.8 * kept + 0.2 * g)
        kept = 0.9 * kept + 0.1 * g
    np.testing.assert_allclose(p, want, rtol=1e-12)
    np.testing.assert_allclose(m, kept, rtol=1e-12)


def test_zero_gradients_do_not_move_lion() -> None:
    p = np.array([1.0, -2.0], np.float32)
    F.lion_(p, np.zeros(2, np.float32), np.zeros(2, np.float32), lr=0.5)
    assert p.tolist() == [1.0, -2.0]


@pytest.mark.parametrize("step", [1, 2, 5, 6, 7, 50, 5000])
@pytest.mark.parametrize("beta2", [0.0, 0.5, 0.9, 0.99, 0.999, 1 - 1e-7])
def test_rectification_of_any_step_and_beta(step: int, beta2: float) -> None:
    """Against exact arithmetic: in f64 it is a small difference of large numbers."""
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(60):
        b = mpmath.mpf(beta2)
        most = 2 / (1 - b) - 1
        length = most - 2 * step * b**step / (1 - b**step)
        factor = mpmath.mpf(1)
        if length > 5:
            share = (length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length)
            factor = mpmath.sqrt(share * (1 - b**step) / b)
    p = np.zeros(1)
    F.radam_(p, np.zeros(1), np.ones(1), np.ones(1), step=step, lr=1.0, beta1=0.5, beta2=beta2, eps=0.0)
    want = -0.5 / (1 - 0.5**step) * float(factor)
    np.testing.assert_allclose(p, [want], rtol=1e-13)


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda x: F.adagrad_(x(), x(), x(), step=0), "step"),
        (lambda x: F.adagrad_(x(), x(), x(), step=1, lr_decay=-1.0), "lr_decay"),
        (lambda x: F.rmsprop_(x(), x(), x(), momentum=0.9), "momentum"),
        (lambda x: F.rmsprop_(x(), x(), x(), alpha=-0.1), "alpha"),
        (lambda x: F.adadelta_(x(), x(), x(), x(), rho=1.1), "rho"),
        (lambda x: F.adamax_(x(), x(), x(), x(), step=1, beta1=1.0), "beta1"),
        (lambda x: F.nadam_(x(), x(), x(), x(), step=1, mu_product=1.0), "mu_product"),
        (lambda x: F.nadam_(x(), x(), x(), x(), step=1, mu_product=0.5, momentum_decay=-1.0), "momentum_decay"),
        (lambda x: F.radam_(x(), x(), x(), x(), step=1, weight_decay=np.nan), "weight_decay"),
        (lambda x: F.lion_(x(), x(), x(), grad_scale=0.0), "grad_scale"),
    ],
)
def test_wrong_scalars_change_nothing(call: Any, word: str) -> None:
    given: list[np.ndarray[Any, Any]] = []

    def fresh() -> np.ndarray[Any, Any]:
        given.append(np.ones(3, np.float32))
        return given[-1]

    with pytest.raises(bc.InvalidProblemError, match=word):
        call(fresh)
    assert all((x == 1).all() for x in given)
