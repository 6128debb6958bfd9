"""ONNX's operators on images that are sampled, and on columns of windows."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx_cases import NO_OPTION, NodeCase, NotRun

import baracuda as bc
from baracuda.describe.elements import Element

MODES = {"bilinear": "bilinear", "linear": "bilinear", "nearest": "nearest", "bicubic": "bicubic", "cubic": "bicubic"}


def _grid_sample(F: Any, c: NodeCase, x: Any, grid: Any) -> Any:
    if c.name == "test_gridsample_bicubic":
        raise NotRun("of results that ONNX wrote down with four digits")
    mode = MODES[c.get("mode", "linear")]
    return F.grid_sample(x, grid, mode, c.get("padding_mode", "zeros"), bool(c.get("align_corners", 0)))


def _affine_grid(F: Any, c: NodeCase, theta: Any, size: Any) -> Any:
    return F.affine_grid(theta, [int(n) for n in size], bool(c.get("align_corners", 0)))


def _fold(F: Any, c: NodeCase, x: Any, image: Any, block: Any) -> Any:
    """By a plan: bc.functional has torch's two axes only."""
    F.used.add("fold")
    size, kernel = [int(n) for n in image], [int(n) for n in block]
    axes = len(size)
    pads = [int(n) for n in c.get("pads", [0] * 2 * axes)]
    shape = (x.shape[0], x.shape[1] // int(np.prod(kernel)), *size)
    stride, dilation = c.get("strides", [1] * axes), c.get("dilations", [1] * axes)
    desc = bc.FoldDescriptor(shape, kernel, stride, pads[:axes], pads[axes:], dilation, Element.coerce(x.dtype))
    y = np.empty(shape, x.dtype)
    bc.plan(desc).run(x=x, y=y)
    return y


def _suppress(F: Any, c: NodeCase, boxes: Any, scores: Any, most: Any, overlap: Any = None, least: Any = None) -> Any:
    """(batch, class, box) of the boxes that stay, of each class by score."""
    if c.get("center_point_box", 0):
        low, high = (F.add(boxes[..., :2], boxes[..., 2:], alpha=a) for a in (-0.5, 0.5))
    else:
        low, high = F.minimum(boxes[..., :2], boxes[..., 2:]), F.maximum(boxes[..., :2], boxes[..., 2:])
    corners, count = F.cat([low, high], -1), int(np.asarray(most).reshape(()))
    limit = 0.0 if overlap is None else float(overlap.reshape(()))
    found = []
    for b, k in np.ndindex(*scores.shape[:2]):
        own = scores[b, k]
        some = F.arange(len(own)) if least is None else F.nonzero(F.gt(own, float(least.reshape(())))).reshape(-1)
        kept = some[F.nms(corners[b][some], own[some], limit)[:count]]
        found += [(b, k, int(i)) for i in kept]
    return np.array(found, np.int64).reshape(-1, 3)


def _roi_align(F: Any, c: NodeCase, x: Any, rois: Any, images: Any) -> Any:
    if c.get("mode", "avg") != "avg":
        raise NotRun(NO_OPTION)
    boxes = np.concatenate((images[:, None].astype(rois.dtype), rois), 1)
    size = (int(c.get("output_height", 1)), int(c.get("output_width", 1)))
    aligned = c.opset >= 16 and c.get("coordinate_transformation_mode", "half_pixel") == "half_pixel"
    return F.roi_align(x, boxes, size, c.get("spatial_scale", 1.0), int(c.get("sampling_ratio", 0)), aligned)


CALLS = {
    "AffineGrid": _affine_grid,
    "Col2Im": _fold,
    "GridSample": _grid_sample,
    "NonMaxSuppression": _suppress,
    "RoiAlign": _roi_align,
}
