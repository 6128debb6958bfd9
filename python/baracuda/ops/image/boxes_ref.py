"""Reference of the suppression of boxes, one after another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from baracuda.describe.elements import Element
from baracuda.ops.image.boxes import NmsDescriptor
from baracuda.prove.reference import Array, Case, Expected

# Numbers of boxes: none, one, about a word of bits, several words.
_COUNTS = (0, 1, 3, 63, 64, 65, 200)


def _overlaps(boxes: Array) -> Array:
    low, high = np.maximum(boxes[:, None, :2], boxes[None, :, :2]), np.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    both = np.prod(np.maximum(high - low, 0), axis=-1)
    area = np.prod(boxes[:, 2:] - boxes[:, :2], axis=-1)
    with np.errstate(all="ignore"):
        return np.asarray(both / (area[:, None] + area[None] - both))


def _boxes(count: int, rng: np.random.Generator) -> Array:
    """Whole numbers, which every element holds."""
    low = rng.integers(0, 24, (count, 2))
    return np.concatenate((low, low + rng.integers(1, 24, (count, 2))), axis=1).astype(float)


def _threshold(boxes: Array, wanted: float) -> float:
    """One near the wanted that no overlap is near to."""
    seen = np.unique(_overlaps(boxes))
    seen = np.concatenate(([0.0], seen[np.isfinite(seen)], [1.0]))
    middle, gap = (seen[1:] + seen[:-1]) / 2, np.diff(seen)
    good = middle[gap > min(2e-4, gap.max())]
    good = good if len(good) else middle[gap == gap.max()]
    return float(good[np.argmin(np.abs(good - wanted))])


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Boxes in any order, with and without groups, with high and low thresholds; empty boxes and NaN."""
    for count in _COUNTS:
        for wanted, grouped in ((0.5, False), (0.1, True), (0.8, False)):
            boxes = _boxes(count, rng)
            desc = NmsDescriptor(count, _threshold(boxes, wanted), grouped, element)
            given = {"boxes": boxes, "order": rng.permutation(count)}
            yield Case(desc, given | ({"groups": rng.integers(-1, 2, count)} if grouped else {}))
    boxes = np.array(
        [[0, 0, 0, 0], [0, 0, 0, 0], [1, 1, 4, 4], [1, 1, 4, 4], [np.nan, 0, 2, 2], [0, 0, np.inf, 2], [0, 0, 9, 2]]
    )
    desc = NmsDescriptor(len(boxes), 0.3, False, element)
    yield Case(desc, {"boxes": boxes, "order": np.arange(len(boxes))}, note="special values")


def reference(case: Case) -> dict[str, Expected]:
    """By the definition."""
    desc: Any = case.descriptor
    order = case.tensors["order"]
    groups = case.tensors.get("groups")
    overlaps = _overlaps(case.tensors["boxes"].astype(np.float64))
    kept: list[int] = []
    keep = np.zeros(len(order), bool)
    for i, box in enumerate(order):
        rivals = [k for k in kept if groups is None or groups[k] == groups[box]]
        keep[i] = not any(overlaps[k, box] > desc.iou_threshold for k in rivals)
        kept += [box] if keep[i] else []
    return {"keep": Expected(keep)}
