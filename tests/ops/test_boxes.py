"""Suppression of boxes: against torchvision's algorithm in NumPy, ties, empty boxes, and the errors for what does not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import baracuda as bc
import baracuda.functional as F


def _wanted(boxes: np.ndarray, scores: np.ndarray, threshold: float) -> list[int]:
    """As torchvision's kernel for cpus goes about it, in the elements of the boxes."""
    x1, y1, x2, y2 = boxes.T
    areas, gone, kept = (x2 - x1) * (y2 - y1), np.zeros(len(boxes), bool), []
    order = np.argsort(-scores, kind="stable")
    for at, i in enumerate(order):
        if gone[i]:
            continue
        kept.append(int(i))
        for j in order[at + 1 :]:
            width = max(0, min(x2[i], x2[j]) - max(x1[i], x1[j]))
            both = width * max(0, min(y2[i], y2[j]) - max(y1[i], y1[j]))
            gone[j] |= both / (areas[i] + areas[j] - both) > threshold
    return kept


def _boxes(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    low = rng.uniform(0, 20, (count, 2))
    return np.concatenate((low, low + rng.uniform(1, 20, (count, 2))), 1), rng.integers(0, 50, count) / 8


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.7, 1.0])
def test_as_torchvision(threshold: float, dtype: Any) -> None:
    for count in (1, 2, 63, 64, 65, 130, 400):
        boxes, scores = _boxes(count, count)
        boxes, scores = boxes.astype(dtype), scores.astype(dtype)
        assert F.nms(boxes, scores, threshold).tolist() == _wanted(boxes, scores, threshold)
        turned = np.asfortranarray(boxes[::-1])[::-1]
        assert F.nms(turned, scores, threshold).tolist() == _wanted(boxes, scores, threshold)


def test_categories_do_not_meet() -> None:
    boxes, scores = _boxes(150)
    idxs = np.random.default_rng(1).integers(-2, 3, 150)
    found = F.batched_nms(boxes, scores, idxs, 0.3)
    want = [np.flatnonzero(idxs == c)[_wanted(boxes[idxs == c], scores[idxs == c], 0.3)] for c in set(idxs.tolist())]
    assert sorted(found.tolist()) == sorted(np.concatenate(want).tolist())
    assert (np.diff(scores[found]) <= 0).all()
    assert np.array_equal(F.batched_nms(boxes, scores, idxs.astype(np.int32), 0.3), found)


def test_a_threshold_is_taken_as_it_is() -> None:
    """An overlap of f32 that is the threshold rounded is above it where rounding made it larger."""
    boxes = torch.tensor([[0, 0, 10, 1], [0, 0, 7, 1]], dtype=torch.float32)  # 0.7, which f32 rounds down
    scores = torch.tensor([2.0, 1.0])
    assert F.nms(boxes, scores, float(np.float32(0.7))).tolist() == [0, 1]
    assert F.nms(boxes, scores, np.nextafter(float(np.float32(0.7)), 0)).tolist() == [0]
    boxes[1, 2] = 6  # 0.6, which f32 rounds up
    assert F.nms(boxes, scores, 0.6).tolist() == [0]


def test_nothing_and_boxes_without_area() -> None:
    for like in (np, torch):
        assert F.nms(like.zeros((0, 4)), like.zeros(0), 0.5).shape == (0,)
    boxes = np.array([[1, 1, 1, 1], [1, 1, 1, 1], [0, 0, np.nan, 2], [0, 0, 1, 1]])
    assert F.nms(boxes, np.array([4.0, 3, 2, 1]), 0.0).tolist() == [0, 1, 2, 3]


def test_orders_that_name_no_box_are_errors() -> None:
    made = bc.plan(bc.NmsDescriptor(3))
    space = bc.empty(made.workspace_size, "u8")
    with pytest.raises(bc.IndexOutOfRangeError, match="order"):
        made.run(np.ones((3, 4), np.float32), np.array([0, 3, 1]), np.empty(3, bool), workspace=space)


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda b, s: F.nms(b[:, :3], s, 0.5), r"want \(boxes, 4\)"),
        (lambda b, s: F.nms(b, s[:2], 0.5), "scores: got shape"),
        (lambda b, s: F.batched_nms(b, s, np.zeros(2, int), 0.5), "idxs: got shape"),
        (lambda b, s: F.nms(b, s, float("nan")), "finite"),
        (lambda b, s: F.nms(b.astype(int), s, 0.5), "i64"),
    ],
)
def test_errors_say_what_is_wrong(call: Any, what: str) -> None:
    with pytest.raises(bc.BaracudaError, match=what):
        call(np.ones((3, 4)), np.ones(3))
