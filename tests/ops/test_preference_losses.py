"""Losses of distributions and preferences, and cross_entropy's cap and penalty, against formulas in torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import baracuda as bc
import baracuda.functional as F

RNG = np.random.default_rng(5)


def agree(
    name: str, formula: Callable[..., torch.Tensor], given: list[np.ndarray[Any, Any]], *rest: Any, **options: Any
) -> None:
    """Value and gradients of `given`, in f64, of a random gradient of the loss."""
    value, pull = bc.vjp(getattr(F, name), *given, *rest, **options)
    leaves = [torch.tensor(x, requires_grad=True) for x in given]
    want = formula(*leaves)
    dloss = np.asarray(RNG.normal(size=want.shape))
    want.backward(torch.tensor(dloss))
    np.testing.assert_allclose(value, want.detach().numpy(), rtol=1e-12, atol=1e-14)
    found = pull(dloss)
    found = found if isinstance(found, tuple) else (found,)
    for got, leaf in zip(found, leaves, strict=False):
        np.testing.assert_allclose(got, leaf.grad.numpy(), rtol=1e-11, atol=1e-14)
    assert len(found) >= len(leaves)


def reduced(losses: torch.Tensor, reduction: str) -> torch.Tensor:
    if reduction == "batchmean":
        return losses.sum() / losses.shape[0]
    return losses if reduction == "none" else getattr(losses, reduction)()


@pytest.mark.parametrize("reduction", ["none", "mean", "sum", "batchmean"])
@pytest.mark.parametrize("beta", [0.1, 0.5, 0.9])
def test_js_div(beta: float, reduction: str) -> None:
    def formula(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        p, q = y.exp(), x.exp()
        m = (beta * p + (1 - beta) * q).log()
        return reduced(beta * p * (y - m) + (1 - beta) * q * (x - m), reduction)

    x, y = (np.array(F.log_softmax(RNG.normal(size=(5, 9)), -1)) for _ in range(2))
    agree("js_div", formula, [x, y], beta=beta, reduction=reduction)


def test_js_div_of_equal_distributions_is_0_and_symmetric_at_a_half() -> None:
    x, y = (np.array(F.log_softmax(RNG.normal(size=(5, 9)) * 20, -1)) for _ in range(2))
    assert abs(F.js_div(x, x)) < 1e-15
    np.testing.assert_allclose(F.js_div(x, y), F.js_div(y, x), rtol=1e-13)
    assert 0 < F.js_div(x, y, reduction="batchmean") < np.log(2)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum", "batchmean"])
def test_tv_distance(reduction: str) -> None:
    x, y = (np.array(F.softmax(RNG.normal(size=(4, 6)), -1)) for _ in range(2))
    agree("tv_distance", lambda x, y: reduced((x - y).abs() / 2, reduction), [x, y], reduction=reduction)
    zero_one = np.eye(6)
    assert F.tv_distance(zero_one, zero_one[::-1]) == 1


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize(("form", "smoothing"), [("sigmoid", 0.0), ("sigmoid", 0.2), ("hinge", 0.0), ("ipo", 0.0)])
def test_preference_loss(form: str, smoothing: float, reduction: str) -> None:
    beta, log_sigmoid = 0.3, torch.nn.functional.logsigmoid

    def formula(*given: torch.Tensor) -> torch.Tensor:
        chosen, rejected, *reference = given
        d = chosen - rejected - (reference[0] - reference[1] if reference else 0)
        forms = {
            "sigmoid": -(1 - smoothing) * log_sigmoid(beta * d) - smoothing * log_sigmoid(-beta * d),
            "hinge": torch.relu(1 - beta * d),
            "ipo": (d - 1 / (2 * beta)) ** 2,
        }
        return reduced(forms[form], reduction)

    options = {"beta": beta, "label_smoothing": smoothing, "form": form, "reduction": reduction}
    given = [RNG.normal(size=7) * 30 for _ in range(4)]
    agree("preference_loss", formula, given, **options)
    agree("preference_loss", formula, given[:2], **options)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: F.js_div(x, x, beta=0), r"beta: got 0, want a number between 0 and 1"),
        (lambda x: F.js_div(x, x, beta=float("nan")), r"beta: got nan"),
        (lambda x: F.tv_distance(x, x, reduction="men"), r'reduction: got .men., want "none"'),
        (lambda x: F.preference_loss(x, x, x), r"reference_rejected: got None, want both"),
        (lambda x: F.preference_loss(x, x, form="dpo"), r'form: got .dpo., want "sigmoid", "hinge" or "ipo"'),
        (lambda x: F.preference_loss(x, x, beta=0.0), r"beta: got 0.0, want a finite number above 0"),
        (lambda x: F.preference_loss(x, x, label_smoothing=0.5), r"label_smoothing: got 0.5, want at least 0"),
        (lambda x: F.preference_loss(x, x, form="ipo", label_smoothing=0.1), r'want 0, or form "sigmoid"'),
        (lambda x: F.cross_entropy(x, np.array([1]), softcap=0.0), r"softcap: got 0.0, want a finite number"),
        (lambda x: F.cross_entropy(x, np.array([1]), softcap=float("inf")), r"softcap: got inf, want a finite number"),
        (lambda x: F.cross_entropy(x, np.array([1]), z_loss=-1.0), r"z_loss: got -1.0, want a finite factor above 0"),
    ],
)
def test_refusals(call: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(bc.InvalidProblemError, match=message):
        call(np.zeros((1, 3)))


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize(("softcap", "z_loss"), [(5.0, 0.0), (None, 1e-2), (3.0, 0.5)])
@pytest.mark.parametrize("kind", ["indices", "probabilities", "pictures", "one row"])
def test_capped_cross_entropy(kind: str, softcap: float | None, z_loss: float, reduction: str) -> None:
    shape = {"pictures": (3, 5, 4), "one row": (5,)}.get(kind, (6, 5))
    rows = shape[:1] + shape[2:] if len(shape) > 1 else ()
    indices = RNG.integers(0, 5, rows)
    if rows:
        indices.reshape(-1)[1] = -100
    target = np.array(F.softmax(RNG.normal(size=shape), 1)) if kind == "probabilities" else np.array(indices)
    weight = RNG.uniform(0.5, 2, 5)
    options: dict[str, Any] = {"reduction": reduction, "label_smoothing": 0.1}

    def formula(x: torch.Tensor) -> torch.Tensor:
        x = softcap * torch.tanh(x / softcap) if softcap else x
        loss = torch.nn.functional.cross_entropy(x, torch.tensor(target), torch.tensor(weight), **options)
        counted = torch.ones(rows) if kind == "probabilities" else torch.tensor(target != -100, dtype=torch.float64)
        penalty = z_loss * x.logsumexp(1 if rows else 0) ** 2 * counted
        return loss + (
            penalty if reduction == "none" else penalty.sum() / (counted.sum() if reduction == "mean" else 1)
        )

    caps = {"softcap": softcap, "z_loss": z_loss}
    agree("cross_entropy", formula, [RNG.normal(size=shape) * 4], target, weight, **caps, **options)


def test_capped_loss_of_halves_in_f32() -> None:
    x, target = torch.randn(6, 9).bfloat16(), torch.randint(0, 9, (6,))
    loss = F.cross_entropy(x, target, softcap=5.0, z_loss=0.1, out_element="f32")
    assert loss.dtype == torch.float32
    wide = F.cross_entropy(x.double(), target, softcap=5.0, z_loss=0.1)
    assert abs(loss.double() - wide) < 0.05 * wide


@pytest.mark.parametrize("call", [F.js_div, F.tv_distance, F.preference_loss])
def test_whole_numbers_are_refused(call: Any) -> None:
    x = np.arange(6).reshape(2, 3)
    with pytest.raises(bc.InvalidProblemError, match=r"(input|chosen): got i64, want a float element"):
        call(x, x)
    with pytest.raises(bc.InvalidProblemError, match=r"(target|rejected): got i64"):
        call(x.astype(np.float32), x)
