"""Operators on images that are sampled, on boxes, and on columns of windows."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

import baracuda as bc
from baracuda import functional as F
from baracuda.onnx.call import Call, Known
from baracuda.onnx.operators.table import arange, cast, operator

MODES = {"bilinear": "bilinear", "linear": "bilinear", "nearest": "nearest", "bicubic": "bicubic", "cubic": "bicubic"}


@operator("GridSample")
def _grid_sample(c: Call, x: Any, grid: Any) -> Any:
    mode = MODES[c.get("mode", "linear")]
    return F.grid_sample(x, grid, mode, c.get("padding_mode", "zeros"), bool(c.get("align_corners", 0)))


@operator("AffineGrid")
def _affine_grid(c: Call, theta: Any, size: Any) -> Any:
    return F.affine_grid(theta, c.ints(1), bool(c.get("align_corners", 0)))


@operator("Col2Im")
def _fold(c: Call, x: Any, image: Any, block: Any) -> Any:
    """By a plan: `fold` has torch's two axes only."""
    size, kernel = c.ints(1), c.ints(2)
    axes = len(size)
    pads = list(c.get("pads") or [0] * 2 * axes)
    shape = (x.shape[0], x.shape[1] // prod(kernel), *size)
    stride, dilation = c.get("strides") or [1] * axes, c.get("dilations") or [1] * axes
    desc = bc.FoldDescriptor(shape, kernel, stride, pads[:axes], pads[axes:], dilation, x.element)
    y = bc.empty(shape, x.element)
    bc.plan(desc).run(x=x, y=y)
    return y


@operator("NonMaxSuppression")
def _suppress(c: Call, boxes: Any, scores: Any, most: Any = None, overlap: Any = None, least: Any = None) -> Any:
    """(batch, class, box) of the boxes that stay, of each class by score."""
    if c.get("center_point_box", 0):
        low, high = (F.add(boxes[..., :2], boxes[..., 2:], alpha=a) for a in (-0.5, 0.5))
    else:
        low, high = F.minimum(boxes[..., :2], boxes[..., 2:]), F.maximum(boxes[..., :2], boxes[..., 2:])
    corners, count = F.cat([low, high], -1), c.number(2) or 0
    limit, bound = c.number(3) or 0.0, c.number(4)
    found = []
    for b, k in np.ndindex(*scores.shape[:2]):
        own = scores[b, k]
        some = arange(own.shape[0]) if bound is None else F.nonzero(F.gt(own, bound)).reshape(-1)
        kept = F.nms(F.index_select(corners[b], 0, some), F.index_select(own, 0, some), limit)[:count]
        found += [(b, k, i) for i in F.index_select(some, 0, kept).tolist()]
    return Known(np.array(found, np.int64).reshape(-1, 3)).tensor


@operator("RoiAlign")
def _roi_align(c: Call, x: Any, rois: Any, images: Any) -> Any:
    if c.get("mode", "avg") != "avg":
        c.refuse("mode='max'", "means")
    boxes = F.cat([cast(images.unsqueeze(1), rois.element), rois], 1)
    size = (c.get("output_height", 1), c.get("output_width", 1))
    aligned = c.opset >= 16 and c.get("coordinate_transformation_mode", "half_pixel") == "half_pixel"
    return F.roi_align(x, boxes, size, c.get("spatial_scale", 1.0), c.get("sampling_ratio", 0), aligned)


@operator("MaxRoiPool")
def _max_roi_pool(c: Call, x: Any, rois: Any) -> Any:
    return F.roi_pool(x, rois, list(c.get("pooled_shape")), c.get("spatial_scale", 1.0))
