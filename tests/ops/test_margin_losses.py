"""Losses of margins and classes: torch's values and gradients where its samples do not reach, and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import baracuda as bc
import baracuda.functional as F

RNG = np.random.default_rng(11)


def agree(name: str, x: np.ndarray[Any, Any], *rest: Any, **options: Any) -> None:
    """Value and gradient in f64, of a random gradient of the loss."""
    ours, pull = bc.vjp(getattr(F, name), x, *rest, **options)
    leaf = torch.tensor(x, requires_grad=True)
    given = [torch.tensor(a) if isinstance(a, np.ndarray) else a for a in rest]
    options = {k: torch.tensor(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}
    theirs = getattr(torch.nn.functional, name)(leaf, *given, **options)
    weights = np.asarray(RNG.normal(size=theirs.shape))
    theirs.backward(torch.tensor(weights))
    assert np.shape(ours) == tuple(theirs.shape)
    np.testing.assert_allclose(ours, theirs.detach().numpy(), rtol=1e-12, atol=1e-14)
    found = pull(weights)
    np.testing.assert_allclose(
        found[0] if isinstance(found, tuple) else found, leaf.grad.numpy(), rtol=1e-12, atol=1e-14
    )


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_multi_margin_follows_torch(reduction: str, p: int, weighted: bool) -> None:
    weight = RNG.uniform(0.1, 2, 7) if weighted else None
    options = {"p": p, "margin": 0.7, "weight": weight, "reduction": reduction}
    agree("multi_margin_loss", RNG.normal(size=(9, 7)), RNG.integers(0, 7, 9), **options)
    if reduction == "none":
        agree("multi_margin_loss", RNG.normal(size=(0, 7)), np.zeros(0, np.int64), **options)
    elif reduction == "sum":  # torch does not write it, and its memory is 0 only as a rule
        assert F.multi_margin_loss(np.zeros((0, 7)), np.zeros(0, np.int64), **options) == 0
    agree("multi_margin_loss", RNG.normal(size=(7, 9)).T[:, ::1], RNG.integers(0, 7, 9), **options)


@pytest.mark.parametrize("target", [np.array(3), np.array([3])])
def test_multi_margin_of_one_row(target: np.ndarray[Any, Any]) -> None:
    agree("multi_margin_loss", RNG.normal(size=5), target, reduction="none")


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_multilabel_margin_follows_torch(reduction: str) -> None:
    target = np.array([[2, 0, -1, 4, 1], [-1, 3, 3, 3, 3], [0, 1, 2, 3, 4], [1, 1, 1, -1, 0], [4, 4, 2, 2, -1]])
    agree("multilabel_margin_loss", RNG.normal(size=(5, 5)), target, reduction=reduction)
    agree("multilabel_margin_loss", RNG.normal(size=5), target[0], reduction=reduction)
    if reduction != "mean":  # torch's sum of no rows is memory that nobody wrote
        nothing = F.multilabel_margin_loss(np.empty((0, 5)), target[:0], reduction=reduction)
        np.testing.assert_array_equal(nothing, np.zeros((0,) if reduction == "none" else ()))


def test_mean_over_no_row_is_nan() -> None:
    assert np.isnan(F.multilabel_margin_loss(np.zeros((0, 5)), np.zeros((0, 5), np.int64)))
    assert np.isnan(F.multi_margin_loss(np.zeros((0, 5)), np.zeros(0, np.int64)))


def test_what_torch_refuses_is_refused() -> None:
    x, target = RNG.normal(size=(3, 5)), np.array([0, 1, 2])
    for bad in (5, -1):
        with pytest.raises(bc.IndexOutOfRangeError):
            F.multi_margin_loss(x, np.array([0, 1, bad]))
        with pytest.raises(bc.IndexOutOfRangeError):
            F.multilabel_margin_loss(x[0], np.array([1, -1, 7 if bad == 5 else -2, 0, 0]))
    for call, word in (
        (lambda: F.multi_margin_loss(x, target, p=3), "p: got 3, want 1 or 2"),
        (lambda: F.multi_margin_loss(x, target[:2]), "target: got shape"),
        (lambda: F.multi_margin_loss(x, x), "integer element"),
        (lambda: F.multi_margin_loss(x, target, weight=np.ones(4)), "weight: got shape"),
        (lambda: F.multi_margin_loss(x[:, :0], target), "input: got shape"),
        (lambda: F.multi_margin_loss(x[None], target), "input: got shape"),
        (lambda: F.multilabel_margin_loss(x, np.zeros((3, 4), np.int64)), "target: got shape"),
        (lambda: F.multilabel_margin_loss(x, np.zeros((3, 5), np.int64), reduction="max"), "reduction"),
        (lambda: F.triplet_margin_with_distance_loss(x, x, x, margin=0.0), "margin: got 0.0"),
        (lambda: F.triplet_margin_with_distance_loss(x, x, x, distance_function=print), "distance_function"),
    ):
        with pytest.raises(bc.InvalidProblemError, match=word):
            call()


@pytest.mark.parametrize("swap", [False, True])
def test_triplets_take_any_distance(swap: bool) -> None:
    a, p, n = (RNG.normal(size=(4, 6)) for _ in range(3))
    ours = F.triplet_margin_with_distance_loss(
        a, p, n, distance_function=F.cosine_similarity, margin=0.5, swap=swap, reduction="none"
    )
    theirs = torch.nn.functional.triplet_margin_with_distance_loss(
        *map(torch.tensor, (a, p, n)),
        distance_function=torch.nn.functional.cosine_similarity,
        margin=0.5,
        swap=swap,
        reduction="none",
    )
    np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-12)
    np.testing.assert_array_equal(
        F.triplet_margin_with_distance_loss(a, p, n, swap=swap), F.triplet_margin_loss(a, p, n, swap=swap)
    )


@pytest.mark.parametrize("size", [1e-6, 1.0, 20.0, 100.0])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize(
    "name",
    ["soft_margin_loss", "hinge_embedding_loss", "multilabel_soft_margin_loss", "binary_cross_entropy_with_logits"],
)
def test_losses_of_two_classes_follow_torch(name: str, reduction: str, size: float) -> None:
    x, target = RNG.normal(0, size, (7, 33)), RNG.choice((-1.0, 1.0), (7, 33))
    agree(
        name, x, target if "embedding" in name or name == "soft_margin_loss" else (target + 1) / 2, reduction=reduction
    )
