"""Reference of maxima over regions, bin by bin; corners times the scale are rounded as the elements compute them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from baracuda.describe.elements import Element
from baracuda.ops.image.regions_ref import SHAPES
from baracuda.ops.image.roi_pool import RoiPoolDescriptor
from baracuda.prove.reference import Array, Case, Expected

# Those of means, and more bins than places.
_SHAPES = (*SHAPES, ((2, 2, 4, 6), 5, (7, 7)))


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Regions inside, across and outside of images, fewer places than bins, ties, NaN, with and without places."""
    del op, direction
    for i, ((shape, regions, bins), scale) in enumerate(product(_SHAPES, (1.0, 0.25))):
        desc = RoiPoolDescriptor(shape, regions, bins, scale, element, i % 3 != 2)
        rois = np.empty((regions, 5))
        for k in range(regions):
            extent = (np.array((shape[3], shape[2])) / scale).astype(np.int64)
            low = rng.integers(-4, extent + 1)
            rois[k] = (rng.integers(0, shape[0]), *low, *(low + rng.integers(-2, extent + 1) * (1, 0.25, 2)[k % 3]))
        x = rng.normal(size=shape)
        x.reshape(-1)[3::7] = 0.5
        if i % 2 and x.size > 20:
            x.reshape(-1)[[5, 11]] = np.nan
        yield Case(desc, {"x": x, "rois": rois})


def _whole(x: Any) -> Any:
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


def reference(case: Case) -> dict[str, Expected]:
    """Maxima and their places, by the definition."""
    desc: Any = case.descriptor
    number: Any = np.float64 if desc.element is Element.F64 else np.float32
    x, rois = case.tensors["x"], case.tensors["rois"].astype(number)
    y, places = np.zeros(desc.result_shape()), np.full(desc.result_shape(), -1, np.int64)
    for k in range(desc.regions):
        image = x[int(rois[k, 0])]
        spans: list[list[tuple[int, int]]] = []
        for axis in (0, 1):
            low, high = (_whole(rois[k, c - axis] * number(desc.spatial_scale)) for c in (2, 4))
            bins, size = desc.output_size[axis], x.shape[2 + axis]
            each = max(high - low + 1, number(1)) / number(bins)
            ends = [(np.floor(number(b) * each) + low, np.ceil(number(b + 1) * each) + low) for b in range(bins)]
            spans.append([(int(np.clip(a, 0, size)), int(np.clip(b, 0, size))) for a, b in ends])
        for (i, (top, bottom)), (j, (left, right)) in product(enumerate(spans[0]), enumerate(spans[1])):
            window: Array = image[:, top:bottom, left:right]
            for c in range(window.shape[0] if window.size else 0):
                at = int(np.argmax(window[c]))
                y[k, c, i, j] = window[c].reshape(-1)[at]
                places[k, c, i, j] = (top + at // (right - left)) * x.shape[3] + left + at % (right - left)
    return {"y": Expected(y), "indices": Expected(places)} if desc.save else {"y": Expected(y)}
