"""Connectionist temporal classification: against torch, all paths of short samples, and the errors for what does not fit."""

from __future__ import annotations

from itertools import product
from math import inf, log
from typing import Any

import numpy as np
import pytest
import torch

import baracuda as bc
import baracuda.functional as F

GRID = list(product((1, 7, 33), (1, 4), (2, 9), (1, 3, 20), (0, 1)))[::5]


def _drawn(steps: int, samples: int, classes: int, most: int, blank: int, apart: bool) -> tuple[Any, ...]:
    rng = np.random.default_rng(steps * 100 + most)
    scores = torch.tensor(rng.normal(0, 2, (steps, samples, classes))).log_softmax(-1)
    counts = torch.tensor(rng.integers(0, most + 1, samples))
    lengths = torch.tensor(rng.integers(steps // 2, steps + 1, samples))
    labels = [c for c in range(classes) if c != blank]
    targets = torch.tensor(rng.choice(labels, (samples, most) if apart else (int(counts.sum()),)))
    return scores, targets, lengths, counts


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("zero_infinity", [False, True])
@pytest.mark.parametrize("apart", [False, True])
def test_as_torch(reduction: str, zero_infinity: bool, apart: bool) -> None:
    for steps, samples, classes, most, blank in GRID:
        scores, targets, lengths, counts = _drawn(steps, samples, classes, most, blank, apart)
        options = (blank, reduction, zero_infinity)
        of_torch = scores.clone().requires_grad_(True)
        want = torch.nn.functional.ctc_loss(of_torch, targets, lengths, counts, *options)
        dloss = torch.ones_like(want) * 0.7
        want.backward(dloss)
        got, pull = bc.vjp(F.ctc_loss, scores, targets, lengths, counts, *options)
        torch.testing.assert_close(got, want.detach(), rtol=1e-10, atol=1e-10)
        torch.testing.assert_close(pull(dloss), of_torch.grad, rtol=1e-9, atol=1e-9, equal_nan=True)
        narrow = F.ctc_loss(scores.float(), targets.int(), lengths.int(), counts.int(), *options)
        torch.testing.assert_close(narrow.double(), want.detach(), rtol=1e-5, atol=1e-5)
        listed = F.ctc_loss(scores, targets, lengths.tolist(), tuple(counts.tolist()), *options)
        torch.testing.assert_close(listed, got, rtol=0, atol=0, equal_nan=True)


def _spelled(path: tuple[int, ...], blank: int) -> list[int]:
    return [c for i, c in enumerate(path) if c != blank and (i == 0 or path[i - 1] != c)]


@pytest.mark.parametrize("labels", [[], [1], [1, 1], [1, 2], [2, 1, 1], [1, 2, 1]])
def test_all_paths(labels: list[int]) -> None:
    """The sum over every path that spells the labels, and the share of each class at each step."""
    rng = np.random.default_rng(len(labels))
    for steps in range(6):
        scores = np.asarray(torch.tensor(rng.normal(size=(steps, 1, 3))).log_softmax(-1))
        total, share = 0.0, np.zeros((steps, 3))
        for path in product(range(3), repeat=steps):
            if _spelled(path, 0) == labels:
                p = np.exp(sum(scores[t, 0, c] for t, c in enumerate(path)))
                total += p
                for t, c in enumerate(path):
                    share[t, c] += p
        given = (scores, np.array([labels], np.int64).reshape(1, -1), [steps], [len(labels)])
        loss, pull = bc.vjp(F.ctc_loss, *given, reduction="none")
        assert loss[0] == (pytest.approx(-log(total), abs=1e-12) if total else inf)
        if total and steps:
            want = np.exp(scores[:, 0]) - share / total
            np.testing.assert_allclose(pull(np.ones(1))[:, 0], want, atol=1e-12)


def test_differences_of_logits() -> None:
    """Through log_softmax the gradient is that of the loss."""
    rng = np.random.default_rng(1)
    x, targets = rng.normal(size=(8, 2, 5)), np.array([[1, 1, 3], [4, 2, 0]])
    given = (targets, [8, 6], [3, 2])

    def loss(x: Any) -> Any:
        return F.ctc_loss(F.log_softmax(x, -1), *given, reduction="sum")

    scores, through = bc.vjp(F.log_softmax, x, -1)
    _, pull = bc.vjp(F.ctc_loss, scores, *given, reduction="sum")
    got = through(pull(np.ones(())))
    for at in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[at] = 1e-5
        assert got[at] == pytest.approx((loss(x + step) - loss(x - step)) / 2e-5, abs=1e-8)


def test_layouts_and_one_sample() -> None:
    scores, targets, lengths, counts = (np.asarray(x) for x in _drawn(7, 4, 9, 3, 0, True))
    want = F.ctc_loss(scores, targets, lengths, counts, reduction="none")
    turned = np.ascontiguousarray(scores.transpose(2, 1, 0)).transpose(2, 1, 0)[::-1][::-1]
    strided = np.repeat(targets, 2, 1)[:, ::2]
    assert np.array_equal(F.ctc_loss(turned, strided, lengths[::-1].copy()[::-1], counts, reduction="none"), want)
    for n in range(4):
        alone = (scores[:, n], targets[n, : counts[n]], lengths[n], counts[n])
        assert F.ctc_loss(*alone, reduction="none") == want[n]
        assert F.ctc_loss(*alone) == pytest.approx(want[n] / max(counts[n], 1))
        loss, pull = bc.vjp(F.ctc_loss, *alone)
        assert pull(np.ones_like(loss)).shape == scores[:, n].shape


def test_halves_and_impossible_classes() -> None:
    scores, targets, lengths, counts = _drawn(20, 3, 9, 5, 0, True)
    want = F.ctc_loss(scores.half().float(), targets, lengths, counts, reduction="none")
    for element in (torch.float16, torch.bfloat16):
        got = F.ctc_loss(
            scores.half().to(element).to(torch.float16).to(element), targets, lengths, counts, reduction="none"
        )
        torch.testing.assert_close(got.float(), want, rtol=2e-2, atol=2e-2)
    x = np.asarray(scores[:5, :1]).copy()
    x[2, 0, 3:] = -inf  # a class of probability 0 takes part in no path, and its gradient is 0
    loss, pull = bc.vjp(F.ctc_loss, x, np.array([[1, 2]]), [5], [2], reduction="none")
    dx = pull(np.ones(1))
    assert np.isfinite(loss).all() and np.isfinite(dx).all() and not dx[2, 0, 3:].any()


def test_long_samples_keep_what_they_have() -> None:
    rng = np.random.default_rng(0)
    scores = np.asarray(torch.tensor(rng.normal(0, 3, (3000, 1, 40))).log_softmax(-1))
    targets = rng.integers(1, 40, (1, 900))
    wide = F.ctc_loss(scores, targets, [3000], [900], reduction="none")
    got = F.ctc_loss(scores.astype(np.float32), targets, [3000], [900], reduction="none")
    np.testing.assert_allclose(got, wide, rtol=2e-6)


X = np.full((4, 2, 3), -log(3), np.float32)
T = np.array([[1, 2], [1, 1]])


@pytest.mark.parametrize(
    ("call", "error", "what"),
    [
        (
            lambda: F.ctc_loss(X, T, [4, 5], [1, 1]),
            bc.IndexOutOfRangeError,
            r"input_lengths: got length 5 at element 1, want 0 <= length <= 4",
        ),
        (lambda: F.ctc_loss(X, T, [4, -1], [1, 1]), bc.IndexOutOfRangeError, "input_lengths"),
        (lambda: F.ctc_loss(X, T, [4, 4], [1, 3]), bc.IndexOutOfRangeError, "target_lengths"),
        (lambda: F.ctc_loss(X, T.reshape(-1), [4, 4], [3, 2]), bc.IndexOutOfRangeError, "target_lengths"),
        (
            lambda: F.ctc_loss(X, T.reshape(-1), [4, 4], [1, 1]),
            bc.IndexOutOfRangeError,
            "target_lengths: got a sum of 2, want a sum of 4",
        ),
        (lambda: F.ctc_loss(X, T + 1, [4, 4], [2, 2]), bc.IndexOutOfRangeError, "targets"),
        (lambda: F.ctc_loss(X, -T, [4, 4], [0, 1]), bc.IndexOutOfRangeError, "targets"),
        (lambda: F.ctc_loss(X, T, [4, 4], [1, 1], 3), bc.InvalidProblemError, "blank"),
        (lambda: F.ctc_loss(X, T, [4, 4], [1, 1], -1), bc.InvalidProblemError, "blank"),
        (lambda: F.ctc_loss(X, T, [4], [1, 1]), bc.InvalidProblemError, "input_lengths"),
        (lambda: F.ctc_loss(X, T, [4, 4], [1, 1.5]), bc.InvalidProblemError, "target_lengths"),
        (lambda: F.ctc_loss(X, T.astype(np.float32), [4, 4], [1, 1]), bc.InvalidProblemError, "targets"),
        (lambda: F.ctc_loss(X, T[:1], [4, 4], [1, 1]), bc.InvalidProblemError, "targets"),
        (lambda: F.ctc_loss(X.astype(np.int32), T, [4, 4], [1, 1]), bc.InvalidProblemError, "log_probs"),
        (lambda: F.ctc_loss(X[0, 0], T, [4, 4], [1, 1]), bc.InvalidProblemError, "log_probs"),
        (lambda: F.ctc_loss(X, T, [4, 4], [1, 1], 0, "batchmean"), bc.InvalidProblemError, "reduction"),
    ],
)
def test_errors_say_what_is_wrong(call: Any, error: Any, what: str) -> None:
    with pytest.raises(error, match=what):
        call()
