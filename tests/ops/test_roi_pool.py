"""Maxima over regions: against torchvision's algorithm, place by place, lists of boxes, and what does not fit."""

from __future__ import annotations

from math import ceil, floor
from typing import Any

import numpy as np
import pytest
import torch

import baracuda as bc
import baracuda.functional as F


def _round(x: float) -> int:
    return floor(abs(x) + 0.5) * (1 if x >= 0 else -1)


def _bins(low: float, high: float, scale: float, bins: int, size: int) -> list[range]:
    """As torchvision's roi_pool kernel."""
    start, end = _round(low * scale), _round(high * scale)
    each = max(end - start + 1, 1) / bins
    spans = [(floor(i * each) + start, ceil((i + 1) * each) + start) for i in range(bins)]
    return [range(min(max(a, 0), size), min(max(b, 0), size)) for a, b in spans]


@pytest.mark.parametrize("scale", [1.0, 0.25, 0.3])
def test_as_torchvision(scale: float) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3, 5, 9, 12))
    low = rng.uniform(-4, 10, (12, 2)) / scale
    rois = np.concatenate((rng.integers(0, 3, (12, 1)), low, low + rng.uniform(-2, 12, (12, 2)) / scale), 1)
    for bins in ((3, 2), (1, 1), (7, 7)):
        y, places = np.zeros((12, 5, *bins)), np.full((12, 5, *bins), -1)
        dy, dx = rng.normal(size=y.shape), np.zeros(x.shape)
        for k, (n, x1, y1, x2, y2) in enumerate(rois):
            rows, columns = _bins(y1, y2, scale, bins[0], 9), _bins(x1, x2, scale, bins[1], 12)
            for c, i, j in np.ndindex(y.shape[1:]):
                inside = [(x[int(n), c, h, w], -(h * 12 + w)) for h in rows[i] for w in columns[j]]
                if inside:
                    y[k, c, i, j], place = max(inside)
                    places[k, c, i, j] = -place
                    dx[int(n), c].reshape(-1)[-place] += dy[k, c, i, j]
        for image in (x, np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)):
            got, pull = bc.vjp(F.roi_pool, image, rois, bins, scale)
            assert np.array_equal(got, y)
            assert np.array_equal(F.roi_pool_forward(image, rois, bins, scale)[1], places)
            np.testing.assert_allclose(pull(dy), dx, rtol=1e-12, atol=1e-12)
            assert np.array_equal(F.roi_pool(image, rois, bins, scale), y)


@pytest.mark.parametrize("fn", [F.roi_align, F.roi_pool])
def test_a_list_of_more_images_than_halves_count(fn: Any) -> None:
    """Image 257 in bf16 would be image 256."""
    x = torch.arange(259.0, dtype=torch.bfloat16)[:, None, None, None].expand(259, 1, 2, 2)
    boxes = [torch.zeros(0, 4, dtype=torch.bfloat16)] * 256 + [torch.zeros(1, 4, dtype=torch.bfloat16)]
    assert fn(x, boxes, 1).item() == 256
    with pytest.raises(bc.InvalidProblemError, match="boxes of image 257, want images to 256, as far as bf16 counts"):
        fn(x, [*boxes, boxes[-1]], 1)


@pytest.mark.parametrize("fn", [F.roi_align, F.roi_pool])
def test_a_list_has_boxes_of_each_image(fn: Any) -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(3, 2, 8, 8)).astype(np.float32)
    boxes = [rng.uniform(0, 7, (n, 4)).astype(np.float32) for n in (2, 0, 3)]
    one = np.concatenate([np.insert(own, 0, i, 1) for i, own in enumerate(boxes)])
    want, pull = bc.vjp(fn, x, one, 2)
    got, same = bc.vjp(fn, x, boxes, 2)
    assert np.array_equal(fn(x, boxes, 2), want) and np.array_equal(got, want)
    dy = rng.normal(size=want.shape).astype(np.float32)
    assert np.array_equal(same(dy), pull(dy))
    for wrong, what in (([one], r"boxes\[0\]"), ([], "empty")):
        with pytest.raises(bc.InvalidProblemError, match=what):
            fn(x, wrong, 2)


def test_nan_and_infinities() -> None:
    x = np.full((1, 1, 4, 4), -np.inf, np.float32)
    roi = np.float32([[0, 0, 0, 3, 3]])
    y, places = F.roi_pool_forward(x, roi, 1)
    assert y.item() == -np.inf and places.item() == 0
    x[0, 0, 2, 1] = x[0, 0, 3, 3] = np.nan
    y, places = F.roi_pool_forward(x, roi, 1)
    assert np.isnan(y.item()) and places.item() == 9
    for far in (np.inf, 1e30, -1e30):
        assert F.roi_pool(x, np.float32([[0, far, 0, far, 3]]), 2).shape == (1, 1, 2, 2)


@pytest.mark.parametrize("fn", [F.roi_align, F.roi_pool])
def test_images_that_there_are_not(fn: Any) -> None:
    x = np.ones((2, 1, 4, 4), np.float32)
    for value, error, what in (
        (-1.0, bc.IndexOutOfRangeError, "index -1"), (2.0, bc.IndexOutOfRangeError, "index 2"),
        (np.nan, bc.ValueOutOfRangeError, "boxes: got nan at element 5, want a finite number"),
        (np.inf, bc.ValueOutOfRangeError, "boxes: got inf"),
    ):  # fmt: skip
        with pytest.raises(error, match=what):
            fn(x, np.float32([(0, 0, 0, 2, 2), (value, 0, 0, 2, 2)]), 2)


def test_gradients_of_images_that_there_are_not() -> None:
    given = np.ones((1, 1, 1, 1), np.float32), np.zeros((1, 1, 1, 1), np.int64)
    for value in (np.nan, np.inf, -1.0, 2.0):
        with pytest.raises(bc.IndexOutOfRangeError):
            F.roi_pool_backward(given[0], np.float32([[value, 0, 0, 2, 2]]), given[1], (2, 1, 4, 4))
    for wrong in ((2, 1, 4), (2, 3, 4, 4)):
        with pytest.raises(bc.InvalidProblemError, match=r"shape|dy"):
            F.roi_pool_backward(given[0], np.zeros((1, 5), np.float32), given[1], wrong)


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda x, r: F.roi_pool(x[0], r, 2), "N, C, H, W"),
        (lambda x, r: F.roi_pool(x, r[:, 1:], 2), "image, x1, y1, x2, y2"),
        (lambda x, r: F.roi_pool(x, r.astype(np.float64), 2), "want f32"),
        (lambda x, r: F.roi_pool(x, r, 0), "1 <= n"),
        (lambda x, r: F.roi_pool(x, r, 2, float("nan")), "finite"),
        (lambda x, r: F.roi_pool(x[:, :, :0], r, 2), "1 to 2"),
    ],
)
def test_errors_say_what_is_wrong(call: Any, what: str) -> None:
    with pytest.raises(bc.BaracudaError, match=what):
        call(np.ones((2, 3, 4, 4), np.float32), np.zeros((1, 5), np.float32))
