"""Means over regions: against torchvision's algorithm, sample by sample, and the errors for what does not fit."""

from __future__ import annotations

from itertools import product
from math import ceil
from typing import Any

import numpy as np
import pytest

import baracuda as bc
import baracuda.functional as F

Taps = list[tuple[int, int, float]]


def _sample(y: float, x: float, height: int, width: int) -> Taps:
    """As torchvision's bilinear_interpolate: places and weights."""
    if y < -1 or y > height or x < -1 or x > width:
        return []
    y, x = max(y, 0.0), max(x, 0.0)
    row, column = int(y), int(x)
    if row >= height - 1:
        row, below, y = height - 1, height - 1, float(height - 1)
    else:
        below = row + 1
    if column >= width - 1:
        column, right, x = width - 1, width - 1, float(width - 1)
    else:
        right = column + 1
    v, u = y - row, x - column
    return [
        (row, column, (1 - v) * (1 - u)),
        (row, right, (1 - v) * u),
        (below, column, v * (1 - u)),
        (below, right, v * u),
    ]


def _bins(shape: Any, roi: Any, bins: tuple[int, int], scale: float, ratio: int, aligned: bool) -> Any:
    """The taps of each bin, and the number of its samples."""
    shift = 0.5 if aligned else 0.0
    x1, y1, x2, y2 = roi[1:] * scale - shift
    width, height = (x2 - x1, y2 - y1) if aligned else (max(x2 - x1, 1.0), max(y2 - y1, 1.0))
    high, wide = height / bins[0], width / bins[1]
    rows, columns = (ratio, ratio) if ratio > 0 else (ceil(high), ceil(wide))
    for i, j in product(range(bins[0]), range(bins[1])):
        taps: Taps = []
        for p, q in product(range(rows), range(columns)):
            y, x = y1 + i * high + (p + 0.5) * high / rows, x1 + j * wide + (q + 0.5) * wide / columns
            taps += _sample(y, x, *shape[2:])
        yield i, j, taps, max(rows * columns, 1)


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize(("ratio", "scale"), [(-1, 1.0), (0, 0.3), (2, 0.5), (7, 1.0), (30, 0.7)])
def test_as_torchvision(ratio: int, scale: float, aligned: bool) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3, 19, 9, 12))
    low = rng.uniform(-4, 10, (8, 2)) / scale
    rois = np.concatenate((rng.integers(0, 3, (8, 1)), low, low + rng.uniform(-2, 12, (8, 2)) / scale), 1)
    rois[3] = (1, -1e6, 3, 1e6, 5) if ratio > 0 else (1, -40, 3, 90, 5)
    for bins in ((3, 2), (1, 1), (7, 7)):
        dy = rng.normal(size=(8, 19, *bins))
        y, dx = np.zeros(dy.shape), np.zeros(x.shape)
        for k, roi in enumerate(rois):
            n = int(roi[0])
            for i, j, taps, count in _bins(x.shape, roi, bins, scale, ratio, aligned):
                for row, column, weight in taps:
                    y[k, :, i, j] += weight * x[n, :, row, column] / count
                    dx[n, :, row, column] += weight * dy[k, :, i, j] / count
        for image in (x, np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)):
            got, pull = bc.vjp(F.roi_align, image, rois, bins, scale, ratio, aligned)
            np.testing.assert_allclose(got, y, rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(pull(dy), dx, rtol=1e-9, atol=1e-9)


def test_what_is_no_region() -> None:
    """Of NaN and infinities there are no samples, or none inside; huge regions end."""
    x = np.ones((1, 2, 5, 5), np.float32)
    for roi in ((0, np.nan, 0, 2, 2), (0, 1e30, 0, 3e30, 2), (0, 0, 0, np.inf, 2)):
        assert not np.nan_to_num(F.roi_align(x, np.array([roi], np.float32), 2)).any()
    huge = F.roi_align(x, np.array([(0, -1e8, -1e8, 1e8, 1e8)], np.float32), 1)
    assert 0 <= huge.max() < 1e-6


@pytest.mark.parametrize("value", [-1.0, 2.0, 1e30])
def test_images_that_there_are_not_are_errors(value: float) -> None:
    x, rois = np.ones((2, 1, 4, 4), np.float32), np.array([(0, 0, 0, 2, 2), (value, 0, 0, 2, 2)], np.float32)
    with pytest.raises(bc.IndexOutOfRangeError, match="boxes"):
        F.roi_align(x, rois, 2)
    with pytest.raises(bc.IndexOutOfRangeError, match="boxes"):
        F.roi_align_backward(np.ones((2, 1, 2, 2), np.float32), rois, x.shape, 2)


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda x, r: F.roi_align(x[0], r, 2), "N, C, H, W"),
        (lambda x, r: F.roi_align(x, r[:, 1:], 2), "image, x1, y1, x2, y2"),
        (lambda x, r: F.roi_align(x, r.astype(np.float64), 2), "want f32"),
        (lambda x, r: F.roi_align(x, r, (2, 2, 2)), "2 numbers of bins"),
        (lambda x, r: F.roi_align(x, r, 0), "1 <= n"),
        (lambda x, r: F.roi_align(x, r, 2, float("nan")), "finite"),
        (lambda x, r: F.roi_align(x, r, 2, 1.0, 5000), "1024"),
        (lambda x, r: F.roi_align(x.astype(np.int32), r.astype(np.int32), 2), "i32"),
        (lambda x, r: F.roi_align(x[:, :, :0], r, 2), "1 to 2"),
    ],
)
def test_errors_say_what_is_wrong(call: Any, what: str) -> None:
    with pytest.raises(bc.BaracudaError, match=what):
        call(np.ones((2, 3, 4, 4), np.float32), np.zeros((1, 5), np.float32))
