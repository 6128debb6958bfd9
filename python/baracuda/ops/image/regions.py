"""Means over regions of images. Kernels in csrc/ops/image, reference in regions_ref.py."""

from __future__ import annotations

from typing import Any

from baracuda import _core
from baracuda.call.op import Arg, Call, Function, Op, Recipe, function
from baracuda.describe.dims import Dim, Shape, Size, shape_text
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.options import integers
from baracuda.describe.spec import Descriptor, Signature, descriptor, frame, output, tensor
from baracuda.memory.device import name_of

_MOST, _BINS, _SAMPLES = 2**30, 2**16, 1024
_COUNTED = {Element.F16: 2**11, Element.BF16: 2**8}  # beyond which not every number is one of theirs


@frame
class _RoiAlign(Descriptor):
    """Fields and checks that forward and backward share."""

    __slots__ = ()
    input_shape: Shape
    regions: Size
    output_size: tuple[int, ...]
    spatial_scale: float = 1.0
    sampling_ratio: int = 0
    aligned: bool = False
    element: Element = Element.F32

    def validate(self) -> None:
        shape = self.input_shape
        if len(shape) != 4 or any(isinstance(n, Dim) or not 1 <= n < _MOST for n in shape[2:]):
            raise self.wrong("input_shape", shape, "(N, C, H, W) with axes of 1 to 2**30 - 1 places, which are no Dims")
        if len(self.output_size) != 2 or any(not 1 <= n < _BINS for n in self.output_size):
            raise self.wrong("output_size", list(self.output_size), "2 numbers of bins, 1 <= n < 65536")
        if not 0 <= self.sampling_ratio <= _SAMPLES:
            raise self.wrong("sampling_ratio", self.sampling_ratio, f"0 to {_SAMPLES}")

    def result_shape(self) -> Shape:
        """The shape of y and dy."""
        return (self.regions, self.input_shape[1], *self.output_size)


@descriptor(family="image", op="roi_align")
class RoiAlignDescriptor(_RoiAlign):
    """y[k, c, i, j] = the mean of image x[n, c] over the samples of bin (i, j) of region k.

    A region is (n, x1, y1, x2, y2), whose corners times `spatial_scale` are places; its bins are of one size, and it is
    at least one place wide and high unless `aligned`, which also moves it by half a place. The samples of a bin are a
    grid of sampling_ratio by sampling_ratio, or, for 0, of as many as the bin has places, rounded up. A sample takes of
    the four places around it what is opposite (bilinear); one within a place of an edge counts as on it, and one further
    outside gives 0.

    Args:
        input_shape: Shape of x, (N, C, H, W).
        regions: How many regions there are: rois has shape (regions, 5).
        output_size: How many bins there are along each axis.
        spatial_scale: Places of x per unit of the corners.
        sampling_ratio: Samples of a bin along each axis, at most 1024; 0 for as many as places.
        aligned: Whether corners are those of places, not their middles.
        element: f16, bf16, f32 or f64, of x, rois and y. A region whose n is no image is an error.
    """

    def signature(self) -> Signature:
        return Signature(
            tensor("x", self.input_shape, self.element),
            tensor("rois", (self.regions, 5), self.element),
            output("y", self.result_shape(), self.element),
        )


@descriptor(gradient_of=RoiAlignDescriptor)
class RoiAlignBackwardDescriptor(_RoiAlign):
    """dx = the sum of dy times what the samples of a bin take of a place, divided by their number; in a fixed order.

    Args:
        input_shape: Shape of dx.
        regions: How many regions there are.
        output_size: As in RoiAlignDescriptor.
        spatial_scale: As in RoiAlignDescriptor.
        sampling_ratio: As in RoiAlignDescriptor.
        aligned: As in RoiAlignDescriptor.
        element: f16, bf16, f32 or f64.
    """

    def signature(self) -> Signature:
        return Signature(
            tensor("dy", self.result_shape(), self.element),
            tensor("rois", (self.regions, 5), self.element),
            output("dx", self.input_shape, self.element),
        )


OPS = (
    Op(
        "roi_align",
        RoiAlignDescriptor,
        RoiAlignBackwardDescriptor,
        "y = the mean of x over the samples of regions' bins",
    ),
)

Pair = int | tuple[int, ...] | list[int]


def _described(
    element: Element, shape: tuple[int, ...], boxes: Arg, size: Any, scale: float, ratio: int, aligned: bool
) -> RoiAlignDescriptor:
    if len(shape) != 4:
        raise InvalidProblemError(f"input: got shape {shape_text(shape)}, want (N, C, H, W).")
    if boxes.rank != 2 or boxes.shape[1] != 5:
        raise InvalidProblemError(
            f"boxes: got shape {shape_text(boxes.shape)}, want (regions, 5): image, x1, y1, x2, y2."
        )
    if boxes.element is not element:
        raise InvalidProblemError(f"boxes: got {boxes.element}, want {element}, as the image has. Cast one of them.")
    bins = integers("output_size", (size, size) if hasattr(size, "__index__") else size)
    return RoiAlignDescriptor(shape, boxes.shape[0], bins, float(scale), max(0, ratio), bool(aligned), element)


@function(tensors="input boxes")
def roi_align(
    call: Call,
    input: Arg,
    boxes: Arg,
    output_size: Pair,
    spatial_scale: float = 1.0,
    sampling_ratio: int = -1,
    aligned: bool = False,
) -> Recipe:
    """Means of regions (image, x1, y1, x2, y2) of (N, C, H, W) as (regions, C, bins, bins), as torchvision.ops.roi_align.

    Boxes are one tensor of five columns, or a list of tensors (n, 4), one for each image. They have no gradient.
    """
    desc = _described(input.element, input.shape, boxes, output_size, spatial_scale, sampling_ratio, aligned)
    return call(desc, x=input, rois=boxes)


@function(tensors="dy boxes")
def roi_align_backward(
    call: Call,
    dy: Arg,
    boxes: Arg,
    shape: Any,
    output_size: Pair,
    spatial_scale: float = 1.0,
    sampling_ratio: int = -1,
    aligned: bool = False,
) -> Recipe:
    """Gradient of roi_align by its input of this shape."""
    sizes = integers("shape", shape)
    desc = _described(dy.element, sizes, boxes, output_size, spatial_scale, sampling_ratio, aligned).backward()
    return call(desc, dy=dy, rois=boxes)


roi_align.pulled_by(roi_align_backward)
roi_align.without_gradient("boxes")


def boxes_of(boxes: Any) -> Any:
    """Boxes of a list, a tensor (n, 4) for each image, as one of five columns."""
    from baracuda import functional as F

    rows = []
    for i, own in enumerate(boxes):
        shape, code, _, *place = _core.describe(own)
        if len(shape) != 2 or shape[1] != 4:
            got = f"boxes[{i}]: got shape {shape_text(shape)}"
            raise InvalidProblemError(f"{got}, want (regions, 4) of each image: x1, y1, x2, y2.")
        if i > _COUNTED.get(Element(code), i):
            most = f"images to {_COUNTED[Element(code)]}, as far as {Element(code)} counts"
            raise InvalidProblemError(f"boxes: got boxes of image {i}, want {most}. Cast image and boxes to f32.")
        images = F.full((shape[0], 1), float(i), dtype=Element(code), device=name_of((place[0], place[1])))
        rows.append(F.cat([images, own], 1))
    if not rows:
        raise InvalidProblemError("boxes: got an empty list, want boxes of one image at least.")
    return F.cat(rows, 0)


def takes_lists(fn: Function) -> None:
    """Has a function of (input, boxes, ...) take boxes in a list, too."""

    def listed(input: Any, boxes: Any, *more: Any) -> Any:
        return fn(input, boxes_of(boxes), *more) if isinstance(boxes, (list, tuple)) else NotImplemented

    fn.or_else(listed)
    rule: Any = fn.vjp_rule

    @fn.vjp
    def _pull(input: Any, boxes: Any, *args: Any, **kwargs: Any) -> Any:
        return rule(input, boxes_of(boxes) if isinstance(boxes, (list, tuple)) else boxes, *args, **kwargs)


takes_lists(roi_align)
