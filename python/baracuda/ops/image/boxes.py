"""Suppression of boxes that overlap better ones. Kernels in csrc/ops/image, reference in boxes_ref.py."""

from __future__ import annotations

from typing import Any

from baracuda import _core
from baracuda.call.op import NotDifferentiable, Op, composite, run_new
from baracuda.call.steps import made_of
from baracuda.choose.plan import plan
from baracuda.describe.dims import Size, shape_text
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.spec import Descriptor, Signature, descriptor, output, tensor
from baracuda.memory.device import name_of


@descriptor(family="image", op="nms")
class NmsDescriptor(Descriptor):
    """keep[i] = whether no box that is kept before box order[i] overlaps it by more than the threshold.

    Two boxes overlap by the area that both have, divided by the area that either has; those of different groups do not.
    A box is (x1, y1, x2, y2) with x1 <= x2 and y1 <= y2. Overlaps are computed in f32, of f64 in f64; NaN is above nothing.

    Args:
        count: How many boxes there are: boxes has shape (count, 4), order, groups and keep (count,).
        iou_threshold: The largest overlap of boxes that are both kept.
        groups: Whether boxes have groups.
        element: f16, bf16, f32 or f64, of boxes.
        index_element: i64 or i32, of order and groups; an order that names no box is an error.
    """

    count: Size
    iou_threshold: float = 0.5
    groups: bool = False
    element: Element = Element.F32
    index_element: Element = Element.I64

    def attributes(self) -> dict[str, int | float]:
        return {"iou_threshold": self.iou_threshold}

    def signature(self) -> Signature:
        return Signature(
            tensor("boxes", (self.count, 4), self.element),
            tensor("order", (self.count,), self.index_element),
            tensor("groups", (self.count,), self.index_element, present=self.groups),
            output("keep", (self.count,), Element.BOOL),
        )


OPS = (
    Op(
        "nms",
        NmsDescriptor,
        NotDifferentiable("a choice of boxes"),
        "keep = whether no better box that is kept overlaps much",
    ),
)


def _kept(boxes: Any, scores: Any, groups: Any, threshold: float) -> Any:
    from baracuda import functional as F

    shape, code, _, *place = _core.describe(boxes)
    if len(shape) != 2 or shape[1] != 4:
        raise InvalidProblemError(f"boxes: got shape {shape_text(shape)}, want (boxes, 4).")
    for name, given in (("scores", scores), ("idxs", groups)):
        if given is not None and tuple(_core.describe(given)[0]) != (shape[0],):
            got = shape_text(_core.describe(given)[0])
            raise InvalidProblemError(f"{name}: got shape {got}, want ({shape[0]},), a number for each box.")
    if groups is not None and Element(_core.describe(groups)[1]) is not Element.I64:
        groups = F.cast(groups, Element.I64)
    order = F.argsort(scores, -1, True, stable=True)
    desc = NmsDescriptor(shape[0], float(threshold), groups is not None, Element(code))
    given = {"boxes": boxes, "order": order} | ({} if groups is None else {"groups": groups})
    keep = run_new(plan(desc, name_of((place[0], place[1]))), boxes, **given)
    return F.masked_select(order, keep)


@made_of("sort masked_select nms")
@composite
def nms(boxes: Any, scores: Any, iou_threshold: float) -> Any:
    """Numbers of the boxes that no better one overlaps by more than the threshold, best first, as torchvision.ops.nms.

    Of equal scores the first comes first. On a device this waits for the count; an NmsDescriptor's plan does not.

    Args:
        boxes: (boxes, 4): x1, y1, x2, y2.
        scores: A number for each box.
        iou_threshold: The largest overlap (intersection over union) of boxes that are both kept.
    """
    return _kept(boxes, scores, None, iou_threshold)


@made_of("cast sort masked_select nms")
@composite
def batched_nms(boxes: Any, scores: Any, idxs: Any, iou_threshold: float) -> Any:
    """`nms` of boxes that only others of their category may remove, as torchvision.ops.batched_nms.

    Args:
        boxes: (boxes, 4): x1, y1, x2, y2.
        scores: A number for each box.
        idxs: The category of each box, a whole number.
        iou_threshold: As in nms.
    """
    element = Element(_core.describe(idxs)[1])
    if not element.is_integer:
        raise InvalidProblemError(f"idxs: got {element}, want integers: one for each category.")
    return _kept(boxes, scores, idxs, iou_threshold)
