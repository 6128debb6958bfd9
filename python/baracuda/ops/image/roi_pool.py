"""Maxima of regions of images. Kernels in csrc/ops/image, reference in roi_pool_ref.py."""

from __future__ import annotations

from math import prod
from typing import Any

from baracuda import functional as F
from baracuda.call.compose import Composer, Value, composed
from baracuda.call.op import Arg, Call, NotDifferentiable, Op, Recipe, function
from baracuda.call.steps import made_of
from baracuda.describe.dims import Dim, Shape, Size, shape_text
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.options import integers
from baracuda.describe.spec import Descriptor, Signature, descriptor, output, tensor
from baracuda.ops.image.regions import Pair, takes_lists
from baracuda.ops.layout.layout import ArangeDescriptor

_MOST, _BINS = 2**30, 2**16


@descriptor(family="image", op="roi_pool")
class RoiPoolDescriptor(Descriptor):
    """y[k, c, i, j] = the largest value of image x[n, c] in bin (i, j) of region k, and where that is in the image.

    A region is (n, x1, y1, x2, y2), whose corners times `spatial_scale`, rounded (halves away from zero), are places that
    belong to it; it is at least one place wide and high. Its bins are of one size, and hold every place that they touch.
    A bin without places inside the image gives 0 and the place -1. The first of equal values counts; NaN is larger than
    every number.

    Args:
        input_shape: Shape of x, (N, C, H, W).
        regions: How many regions there are: rois has shape (regions, 5).
        output_size: How many bins there are along each axis.
        spatial_scale: Places of x per unit of the corners.
        element: f16, bf16, f32 or f64, of x, rois and y. A region whose n is no image is an error.
        save: Whether places are an output: i64, row W + column.
    """

    input_shape: Shape
    regions: Size
    output_size: tuple[int, ...]
    spatial_scale: float = 1.0
    element: Element = Element.F32
    save: bool = True

    def validate(self) -> None:
        shape = self.input_shape
        if len(shape) != 4 or any(isinstance(n, Dim) or not 1 <= n < _MOST for n in shape[2:]):
            raise self.wrong("input_shape", shape, "(N, C, H, W) with axes of 1 to 2**30 - 1 places, which are no Dims")
        if len(self.output_size) != 2 or any(not 1 <= n < _BINS for n in self.output_size):
            raise self.wrong("output_size", list(self.output_size), "2 numbers of bins, 1 <= n < 65536")

    def result_shape(self) -> Shape:
        """The shape of y and indices."""
        return (self.regions, self.input_shape[1], *self.output_size)

    def attributes(self) -> dict[str, int | float]:
        return {"spatial_scale": self.spatial_scale}

    def signature(self) -> Signature:
        return Signature(
            tensor("x", self.input_shape, self.element),
            tensor("rois", (self.regions, 5), self.element),
            output("y", self.result_shape(), self.element),
            output("indices", self.result_shape(), Element.I64, present=self.save),
        )


OPS = (
    Op(
        "roi_pool",
        RoiPoolDescriptor,
        NotDifferentiable("its gradient adds dy up at `indices`: roi_pool_backward"),
        "y, indices = the largest value of regions' bins, and its place",
    ),
)


def _described(input: Arg, boxes: Arg, size: Any, scale: float, save: bool) -> RoiPoolDescriptor:
    if input.rank != 4:
        raise InvalidProblemError(f"input: got shape {shape_text(input.shape)}, want (N, C, H, W).")
    if boxes.rank != 2 or boxes.shape[1] != 5:
        got = f"boxes: got shape {shape_text(boxes.shape)}"
        raise InvalidProblemError(f"{got}, want (regions, 5): image, x1, y1, x2, y2.")
    if boxes.element is not input.element:
        got = f"boxes: got {boxes.element}"
        raise InvalidProblemError(f"{got}, want {input.element}, as the image has. Cast one of them.")
    bins = integers("output_size", (size, size) if hasattr(size, "__index__") else size)
    return RoiPoolDescriptor(input.shape, boxes.shape[0], bins, float(scale), input.element, save)


@function(tensors="input boxes")
def roi_pool(call: Call, input: Arg, boxes: Arg, output_size: Pair, spatial_scale: float = 1.0) -> Recipe:
    """Maxima of regions (image, x1, y1, x2, y2) of (N, C, H, W) as (regions, C, bins, bins), as torchvision.ops.roi_pool.

    Boxes are one tensor of five columns, or a list of tensors (n, 4), one for each image. They have no gradient.
    """
    return call(_described(input, boxes, output_size, spatial_scale, False), x=input, rois=boxes)


@function(tensors="input boxes")
def roi_pool_forward(call: Call, input: Arg, boxes: Arg, output_size: Pair, spatial_scale: float = 1.0) -> Recipe:
    """roi_pool with what its gradient needs: (y, indices)."""
    return call(_described(input, boxes, output_size, spatial_scale, True), x=input, rois=boxes)


@made_of("add arange cast fill ge gt index_add logical_and lt mul where")
@composed(tensors="dy boxes indices")
def roi_pool_backward(c: Composer, dy: Value, boxes: Value, indices: Value, shape: Any) -> Value:
    """Gradient of roi_pool by its input of this shape: dy added up at `indices` of the images that boxes name."""
    sizes = integers("shape", shape)
    if len(sizes) != 4:
        raise InvalidProblemError(f"shape: got {list(sizes)}, want (N, C, H, W).")
    images, channels, height, width = sizes
    if boxes.rank != 2 or boxes.shape[1] != 5:
        got = f"boxes: got shape {shape_text(boxes.shape)}"
        raise InvalidProblemError(f"{got}, want (regions, 5): image, x1, y1, x2, y2.")
    for name, x in (("dy", dy), ("indices", indices)):
        if x.rank != 4 or x.shape[:2] != (boxes.shape[0], channels) or x.shape[2:] != dy.shape[2:]:
            got = f"{name}: got shape {shape_text(x.shape)}"
            raise InvalidProblemError(f"{got}, want ({boxes.shape[0]}, {channels}, bins, bins), both of one shape.")
    places, image = height * width, boxes[:, 0]
    exists = c.of(F.logical_and, c.of(F.gt, image, -1), c.of(F.lt, image, images))
    number = c.of(F.where, exists, c.cast(image, Element.I64), images)  # what there is not, is out of range
    first = c.of(F.mul, c.reshape(number, (boxes.shape[0], 1, 1, 1)), channels * places)
    inside = c.of(F.ge, indices, 0)
    given, at = c.of(F.where, inside, dy, 0.0), c.of(F.where, inside, indices, 0)
    planes = c(ArangeDescriptor((channels,), Element.I64), start=0, step=places)
    at = c.of(F.add, c.of(F.add, at, c.reshape(planes, (1, channels, 1, 1))), first)
    count = prod(dy.shape)
    zeros = c.zeros((images * channels * places,), dy.element)
    made = c.of(F.index_add, zeros, 0, c.reshape(at, (count,)), c.reshape(given, (count,)))
    return c.reshape(made, (images, channels, height, width))


roi_pool.without_gradient("boxes")


@roi_pool.vjp
def _roi_pool_vjp(input: Any, boxes: Any, output_size: Pair, spatial_scale: float = 1.0) -> tuple[Any, Any]:
    y, indices = roi_pool_forward(input, boxes, output_size, spatial_scale)
    shape = tuple(input.shape)
    return y, lambda dy: roi_pool_backward(dy, boxes, indices, shape)


takes_lists(roi_pool)
