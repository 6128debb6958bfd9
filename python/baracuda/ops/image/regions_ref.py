"""Reference of means over regions, sample by sample."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import ceil, floor
from typing import Any

import numpy as np

from baracuda.describe.elements import Element
from baracuda.ops.image.regions import RoiAlignDescriptor
from baracuda.prove.reference import Array, Case, Expected, round_to, to_reference

# Images, regions, bins: one place, rows, several images, many channels, nothing.
SHAPES: tuple[Any, ...] = (
    ((1, 1, 1, 1), 1, (1, 1)),
    ((2, 3, 7, 5), 6, (2, 3)),
    ((3, 17, 6, 9), 4, (3, 2)),
    ((1, 2, 30, 31), 3, (1, 1)),
    ((2, 2, 4, 4), 0, (2, 2)),
    ((1, 0, 4, 4), 2, (2, 2)),
)
_FIELDS = ("input_shape", "regions", "output_size", "spatial_scale", "sampling_ratio", "aligned")


def _rois(desc: Any, rng: np.random.Generator) -> Array:
    """Regions in and around images; of large ones the first, the others small."""
    n, _, height, width = desc.input_shape
    rois = np.empty((desc.regions, 5))
    for k in range(desc.regions):
        share = (1.0, 0.6, 0.2, 3.0)[k % 4]
        size = np.array((width, height)) * share * rng.uniform(0.6, 1.0, 2) / desc.spatial_scale
        low = rng.uniform(-0.4, 0.8, 2) * np.array((width, height)) / desc.spatial_scale
        rois[k] = (rng.integers(0, n), *low, *(low + size))
        while not _is_clear(desc, to_reference(round_to(rois[k], desc.element))):
            rois[k, 1:] += rng.uniform(0.0, 0.1, 4) / desc.spatial_scale
    return rois


def _is_clear(desc: Any, roi: Array) -> bool:
    """Whether no rounding decides how many samples a bin has, or whether one is inside of the image."""
    near = 1e-3
    for axis in (0, 1):
        low, high = roi[2 - axis] * desc.spatial_scale, roi[4 - axis] * desc.spatial_scale
        length = high - low if desc.aligned else max(high - low, 1.0)
        bins = desc.output_size[axis]
        width = length / bins
        least = not desc.aligned and high - low < 1 - near
        if not (desc.sampling_ratio or least) and abs(width - round(width)) < near:
            return False
        samples = bins * (desc.sampling_ratio or max(0, ceil(width)))
        at = low - (0.5 if desc.aligned else 0) + (np.arange(samples) + 0.5) * (length / max(samples, 1))
        if np.any(np.abs(at + 1) < near) or np.any(np.abs(at - desc.input_shape[2 + axis]) < near):
            return False
    return True


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """All of SHAPES with few, many and as many samples as places, aligned and not."""
    for (shape, regions, bins), (ratio, scale), aligned in product(
        SHAPES, ((0, 1.0), (2, 0.37), (9, 0.6)), (False, True)
    ):
        desc = RoiAlignDescriptor(shape, regions, bins, scale, ratio, aligned, element)
        yield _case(desc, direction, rng, _rois(desc, rng))
    desc = RoiAlignDescriptor((1, 2, 12, 10), 2, (2, 1), 1.0, 40, True, element)
    yield _case(desc, direction, rng, _rois(desc, rng))


def _case(desc: Any, direction: str, rng: np.random.Generator, rois: Array) -> Case:
    if direction == "forward":
        return Case(desc, {"x": rng.normal(size=desc.input_shape), "rois": rois}, exact_gradient=False)
    return Case(desc.backward(), {"dy": rng.normal(size=desc.result_shape()), "rois": rois})


def _weights(desc: Any, low: float, high: float, axis: int) -> tuple[Array, Array, int]:
    """What each bin takes of each place along an axis, how much of it is unsure, and how many samples it has."""
    size, bins = desc.input_shape[2 + axis], desc.output_size[axis]
    scale = np.longdouble(desc.spatial_scale)
    start = low * scale - (0.5 if desc.aligned else 0)
    length = (high - low) * scale
    width = (length if desc.aligned else max(length, np.longdouble(1))) / bins
    samples = desc.sampling_ratio or max(0, ceil(width))
    far = (abs(low) + abs(high)) * abs(scale) + 2
    found, unsure = np.zeros((bins, size), np.longdouble), np.zeros((bins, size), np.longdouble)
    for b, i in product(range(bins), range(samples)):
        at = start + b * width + (i + np.longdouble(0.5)) * width / samples
        if at < -1 or at > size:
            continue
        at = min(max(at, 0), size - 1)
        place = floor(at)
        beside = min(place + 1, size - 1)
        found[b, place] += 1 - (at - place)
        found[b, beside] += at - place
        unsure[b, place] += far
        unsure[b, beside] += far
    return found, unsure, samples


def reference(case: Case) -> dict[str, Expected]:
    """Means, or gradients, by the definition."""
    desc: Any = case.descriptor
    back = desc.direction == "backward"
    rois = case.tensors["rois"].astype(np.longdouble)
    given = case.tensors["dy" if back else "x"].astype(np.longdouble)
    shape = desc.input_shape if back else desc.result_shape()
    made, size, most = np.zeros(shape, np.longdouble), np.zeros(shape, np.longdouble), 1
    with np.errstate(all="ignore"):
        for k in range(desc.regions):
            n = int(rois[k, 0])
            rows, unsure_rows, high = _weights(desc, rois[k, 2], rois[k, 4], 0)
            columns, unsure_columns, wide = _weights(desc, rois[k, 1], rois[k, 3], 1)
            count = max(high * wide, 1)
            if back:
                n_terms, pattern, taken, to = count * desc.output_size[0] * desc.output_size[1], "cij,ih,jw->chw", k, n
            else:
                n_terms, pattern, taken, to = count, "chw,ih,jw->cij", n, k
            most = max(most, 4 * n_terms) if not back else most + 4 * n_terms
            x = given[taken]
            made[to] += np.einsum(pattern, x, rows, columns) / count
            for a, b in ((rows, columns), (unsure_rows, columns), (rows, unsure_columns)):
                size[to] += np.einsum(pattern, abs(x), a, b) / count
    found = Expected(made.astype(np.float64), size.astype(np.float64), most)
    if not back:
        found.reach = found.magnitude * most  # the sum, before it is divided
    return {"dx" if back else "y": found}


def forward_of(case: Case) -> Case:
    """The forward case of a gradient."""
    desc: Any = case.descriptor
    made = RoiAlignDescriptor(**{n: getattr(desc, n) for n in _FIELDS}, element=Element.F64)
    x = np.random.default_rng(3).normal(size=desc.input_shape)
    return Case(made, {"x": x, "rois": case.tensors["rois"]})
