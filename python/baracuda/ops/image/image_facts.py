"""Facts of the image family's functions; prove/facts.py says what they are."""

from __future__ import annotations

import numpy as np

from baracuda.prove.draws import Arguments, Draws
from baracuda.prove.facts import IMAGE, Facts, because, call, floats, ramp
from baracuda.prove.rules import planes


def _image(d: Draws, axes: int = 2) -> tuple[int, ...]:
    batch, channels, extents = planes(d, axes)
    return (batch, channels, *extents)


def _scaled(d: Draws) -> Arguments:
    """To half the size, to twice the size, or to one that is no multiple."""
    shape = _image(d)
    factor = d.pick(0.5, 2, 1.5)
    size = tuple(max(1, int(n * factor)) for n in shape[2:])
    if d.name == "upsample_nearest":
        return {"input": d.floats(shape), "size": size}
    if d.name == "upsample_bilinear":
        return {"input": d.floats(shape), "size": size}
    mode = d.pick("nearest", "nearest", "bilinear", "bilinear", "bicubic", "area")
    more = {"align_corners": d.chance(0.3)} if mode in ("bilinear", "bicubic") else {}
    return {"input": d.floats(shape), "size": size, "mode": mode} | more


def _folded(d: Draws) -> Arguments:
    batch, channels, (height, width) = planes(d, 2)
    kernel = 2
    blocks = (height // kernel) * (width // kernel)
    height, width = (height // kernel) * kernel, (width // kernel) * kernel
    x = d.floats((batch, channels * kernel * kernel, blocks))
    return {"input": x, "output_size": (height, width), "kernel_size": kernel, "stride": kernel}


def _sampled(d: Draws) -> Arguments:
    axes = 3 if d.name.endswith("3d") else 2
    shape = _image(d, axes)
    grid = d.floats((shape[0], *shape[2:], axes), (-1.1, 1.1), plain=True)
    if d.name != "grid_sample":
        numbers = {"interpolation_mode": 0, "padding_mode": 0, "align_corners": False}
        return {"input": d.floats(shape), "grid": grid} | numbers
    mode, padding = d.pick("bilinear", "bilinear", "nearest"), d.pick("zeros", "border")
    return {"input": d.floats(shape), "grid": grid, "mode": mode, "padding_mode": padding, "align_corners": False}


FACTS = Facts(
    category="image",
    samples={
        "affine_grid": call(floats(2, 2, 3), (2, 1, 3, 4)),
        "affine_grid_backward": call(floats(2, 3, 4, 2), (2, 1, 3, 4)),
        "batched_nms": call(floats(5, 4), floats(5), np.zeros(5, np.int64), 0.5),
        "fold": call(floats(2, 12, 6), (4, 3), 2),
        "fold_backward": call(floats(2, 3, 4, 3), 2),
        "grid_sample": call(IMAGE, floats(2, 3, 2, 2), align_corners=False),
        "grid_sample_backward": call(floats(2, 3, 3, 2), IMAGE, floats(2, 3, 2, 2), align_corners=False),
        "grid_sampler_2d": call(IMAGE, floats(2, 3, 2, 2), 2, 1, True),
        "grid_sampler_3d": call(floats(2, 3, 2, 4, 5), floats(2, 3, 2, 2, 3), 0, 2, False),
        "interpolate": call(IMAGE, scale_factor=2.0),
        "interpolate_backward": call(floats(2, 3, 8, 10), IMAGE.shape, (8, 10), mode="bilinear"),
        "nms": call(floats(5, 4), floats(5), 0.5),
        "roi_align": call(IMAGE, np.array([[0, 0, 0, 2, 2], [1, 1, 0, 3, 2]], np.float32), 2),
        "roi_align_backward": call(floats(2, 3, 2, 2), np.zeros((2, 5), np.float32), IMAGE.shape, 2),
        "roi_pool": call(IMAGE, np.array([[0, 0, 0, 2, 2], [1, 1, 0, 3, 2]], np.float32), 2),
        "roi_pool_backward": call(
            floats(2, 3, 2, 2), np.zeros((2, 5), np.float32), np.zeros((2, 3, 2, 2), np.int64), IMAGE.shape
        ),
        "roi_pool_forward": call(IMAGE, np.array([[0, 0, 0, 2, 2], [1, 1, 0, 3, 2]], np.float32), 2),
        "unfold": call(IMAGE, 2, padding=1),
        "unfold_backward": call(floats(2, 12, 12), IMAGE.shape, 2),
        "upsample": call(IMAGE, (8, 10)),
        "upsample_bilinear": call(IMAGE, (8, 10)),
        "upsample_nearest": call(IMAGE, scale_factor=2),
    },
    steps={
        "affine_grid": [call(ramp(2, 2, 3), (2, 1, 3, 4))],
        "affine_grid_backward": [call(ramp(2, 3, 4, 2), (2, 1, 3, 4))],
        "batched_nms": [
            call(ramp(3, 4), ramp(3), np.zeros(3, np.int64), 0.5),
            call(ramp(3, 4), ramp(3), np.zeros(3, np.int32), 0.5),
        ],
        "fold_backward": [call(ramp(1, 2, 3, 3), 2, padding=1)],
        "grid_sampler_2d": [call(ramp(1, 2, 3, 3), ramp(1, 2, 2, 2), 0, 0, False)],
        "grid_sampler_3d": [call(ramp(1, 2, 3, 3, 2), ramp(1, 2, 2, 2, 3), 0, 0, False)],
        "interpolate": [
            call(ramp(1, 2, 3), 5),
            call(ramp(1, 2, 3), 5, mode="linear"),
            call(ramp(1, 2, 3), 5, mode="area"),
        ],
        "interpolate_backward": [
            call(ramp(1, 2, 5), (1, 2, 3), 5),
            call(ramp(1, 2, 5), (1, 2, 3), 5, mode="linear"),
            call(ramp(1, 2, 5), (1, 2, 3), 5, mode="area"),
        ],
        "nms": [call(ramp(3, 4), ramp(3), 0.5)],
        "roi_pool_backward": [
            call(ramp(1, 2, 2, 2), np.zeros((1, 5), np.float32), np.zeros((1, 2, 2, 2), np.int64), (1, 2, 3, 3))
        ],
        "unfold": [call(ramp(1, 2, 3, 3), 2, padding=1)],
        "unfold_backward": [call(ramp(1, 8, 4), (1, 2, 3, 3), 2)],
        "upsample": [
            call(ramp(1, 2, 3), 5),
            call(ramp(1, 2, 3), 5, mode="linear"),
            call(ramp(1, 2, 3), 5, mode="area"),
        ],
        "upsample_bilinear": [call(ramp(1, 2, 3, 3), 5)],
        "upsample_nearest": [call(ramp(1, 2, 3), 5)],
    },
    sampled=(
        "interpolate",
        "sample",
        "fold",
    ),
    alone=because(
        "of torchvision; compared with its algorithm in tests/ops",
        "nms batched_nms roi_align roi_pool roi_pool_forward",
    ),
    partly={
        "unfold": "torch.unfold is a view; this one is torch.nn.functional's",
    },
    sweep={
        "interpolate": _scaled,
        "unfold": lambda d: {
            "input": d.floats(_image(d)),
            "kernel_size": d.pick(2, 3),
            "padding": 1,
            "stride": d.pick(1, 2),
        },
        "fold": _folded,
        "affine_grid": lambda d: {
            "theta": d.floats((batch := d.between(1, 16), 2, 3), plain=True),
            "size": (batch, 1, *d.split(max(1.0, d.count / batch), 2)),
            "align_corners": False,
        },
        "grid_sample": _sampled,
        "grid_sampler_2d": _sampled,
        "grid_sampler_3d": _sampled,
    },
)
