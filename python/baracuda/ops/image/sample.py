"""Sampling of images by a grid of positions. Kernels in csrc/ops/image, reference in sample_ref.py."""

from __future__ import annotations

from enum import Enum
from math import prod
from typing import Any

from baracuda.call.compose import Composer, Value, composed
from baracuda.call.inline import pulled_through
from baracuda.call.op import Arg, Call, Op, Recipe, function
from baracuda.call.steps import made_of
from baracuda.describe.dims import Dim, Shape, shape_text
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.options import integers
from baracuda.describe.spec import Descriptor, Signature, descriptor, frame, output, tensor

_MOST = 2**30


class SampleMode(Enum):
    """What a position takes: the nearest place, those on both sides, or two on each side."""

    NEAREST = "nearest"
    LINEAR = "linear"
    CUBIC = "cubic"


class SamplePadding(Enum):
    """What lies outside of an image: zeros, its edge, or its mirror image."""

    ZEROS = "zeros"
    BORDER = "border"
    REFLECTION = "reflection"


@frame
class _GridSample(Descriptor):
    """Fields and checks that forward and backward share."""

    __slots__ = ()
    input_shape: Shape
    output_size: tuple[int, ...]
    mode: SampleMode = SampleMode.LINEAR
    padding: SamplePadding = SamplePadding.ZEROS
    align_corners: bool = False
    element: Element = Element.F32

    def validate(self) -> None:
        shape = self.input_shape
        if not 3 <= len(shape) <= 5:
            raise self.wrong("input_shape", shape, "(batch, channels, ...) with one to three axes behind them")
        if any(isinstance(n, Dim) or not 1 <= n < _MOST for n in shape[2:]):
            raise self.wrong("input_shape", shape, "axes of 1 to 2**30 - 1 places; only batch and channels may be Dims")
        if len(self.output_size) != len(shape) - 2 or any(not 0 <= n < _MOST for n in self.output_size):
            raise self.wrong(
                "output_size", list(self.output_size), f"{len(shape) - 2} numbers below 2**30, one per axis"
            )

    def result_shape(self) -> Shape:
        """The shape of y and dy."""
        return (*self.input_shape[:2], *self.output_size)

    def grid_shape(self) -> Shape:
        """The shape of grid and dgrid."""
        return (self.input_shape[0], *self.output_size, len(self.output_size))

    def attributes(self) -> dict[str, int | float]:
        return {
            "mode": list(SampleMode).index(self.mode),
            "padding": list(SamplePadding).index(self.padding),
            "align_corners": int(self.align_corners),
        }


_ENUMS = {"mode": SampleMode, "padding": SamplePadding}


@descriptor(family="image", op="grid_sample", enums=_ENUMS)
class GridSampleDescriptor(_GridSample):
    """y[n, c, o] = x[n, c] at the position grid[n, o], whose numbers are for the axes of x from the last to the first.

    A number g stands for place ((g + 1) size - 1) / 2 of its axis: -1 and 1 are the image's ends; or, with
    `align_corners`, for (g + 1) (size - 1) / 2: they are the middles of the first and the last place. Positions between
    places take what is beside them: "linear" w(t) = 1 - t of both, with t the distance, "cubic" of two on each side
    (the filter of ResizeDescriptor with a = -0.75), "nearest" the nearest one, of two equally near the even one.

    Outside there are zeros; or, with "border", the edge goes on; or, with "reflection", positions are mirrored at the
    ends ("cubic": taps are). A position that is NaN is outside, and an infinite one is the far end, or NaN where it
    would be mirrored; with "border" and "reflection" NaN stands for a place inside.

    Args:
        input_shape: Shape of x, (batch, channels, ...) with one to three axes.
        output_size: How many results there are along each axis.
        mode: "nearest", "linear" or "cubic".
        padding: "zeros", "border" or "reflection".
        align_corners: What -1 and 1 are.
        element: f16, bf16, f32 or f64, of x, grid and y.
    """

    def signature(self) -> Signature:
        return Signature(
            tensor("x", self.input_shape, self.element),
            tensor("grid", self.grid_shape(), self.element),
            output("y", self.result_shape(), self.element),
        )


@descriptor(gradient_of=GridSampleDescriptor, enums=_ENUMS)
class GridSampleBackwardDescriptor(_GridSample):
    """dx = the sum of dy times what a result takes of a place; dgrid = the sum of dy times what y changes with the position.

    Where a position is clamped to the edge dgrid is 0, and so it is for "nearest". Sums of dx are in twice the precision.

    Args:
        input_shape: Shape of x and dx.
        output_size: As in GridSampleDescriptor.
        mode: As in GridSampleDescriptor.
        padding: As in GridSampleDescriptor.
        align_corners: As in GridSampleDescriptor.
        element: f16, bf16, f32 or f64.
    """

    def signature(self) -> Signature:
        return Signature(
            tensor("dy", self.result_shape(), self.element),
            tensor("x", self.input_shape, self.element),
            tensor("grid", self.grid_shape(), self.element),
            output("dx", self.input_shape, self.element),
            output("dgrid", self.grid_shape(), self.element),
        )


OPS = (Op("grid_sample", GridSampleDescriptor, GridSampleBackwardDescriptor, "y = x at the positions of a grid"),)

_MODES = {"nearest": "nearest", "bilinear": "linear", "bicubic": "cubic"}
_PADDINGS = tuple(p.value for p in SamplePadding)


def _described(x: Arg, grid: Arg, mode: str, padding_mode: str, align: bool | None) -> GridSampleDescriptor:
    if mode not in _MODES:
        raise InvalidProblemError(f"mode: got {mode!r}, want one of {', '.join(_MODES)}.")
    if padding_mode not in _PADDINGS:
        raise InvalidProblemError(f"padding_mode: got {padding_mode!r}, want one of {', '.join(_PADDINGS)}.")
    if x.rank not in (4, 5):
        raise InvalidProblemError(f"input: got shape {shape_text(x.shape)}, want (N, C, H, W) or (N, C, D, H, W).")
    axes = x.rank - 2
    if grid.rank != x.rank or grid.shape[0] != x.shape[0] or grid.shape[-1] != axes:
        want = f"({x.shape[0]}, {', '.join('DHW'[3 - axes :])}, {axes})"
        raise InvalidProblemError(f"grid: got shape {shape_text(grid.shape)}, want {want}.")
    if grid.element is not x.element:
        raise InvalidProblemError(f"grid: got {grid.element}, want {x.element}, as input has. Cast one of them.")
    return GridSampleDescriptor(x.shape, grid.shape[1:-1], _MODES[mode], padding_mode, bool(align), x.element)  # type: ignore[arg-type]


@function(tensors="input grid")
def grid_sample(
    call: Call,
    input: Arg,
    grid: Arg,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Recipe:
    """(N, C, H, W) or (N, C, D, H, W) at the positions of grid (N, ..., axes), as torch.nn.functional.grid_sample.

    "bicubic" is taken for three axes, too. Positions that are NaN are outside.
    """
    return call(_described(input, grid, mode, padding_mode, align_corners), x=input, grid=grid)


@function(tensors="dy input grid")
def grid_sample_backward(
    call: Call,
    dy: Arg,
    input: Arg,
    grid: Arg,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Recipe:
    """Gradients (dinput, dgrid) of grid_sample."""
    desc = _described(input, grid, mode, padding_mode, align_corners).backward()
    return call(desc, dy=dy, x=input, grid=grid)


grid_sample.pulled_by(grid_sample_backward)


def _sampler(c: Composer, axes: int, input: Value, grid: Value, mode: int, padding: int, align: bool) -> Value:
    if input.rank != axes + 2:
        raise InvalidProblemError(f"input: got shape {shape_text(input.shape)}, want {axes + 2} dimensions.")
    if mode not in range(len(_MODES)) or padding not in range(len(_PADDINGS)):
        raise InvalidProblemError(f"interpolation_mode: got {mode} and padding {padding}, want 0 to 2.")
    name = ("bilinear", "nearest", "bicubic")[mode]
    made: Value = c.of(grid_sample, input, grid, name, _PADDINGS[padding], align)
    return made


@pulled_through
@made_of("grid_sample")
@composed(tensors="input grid")
def grid_sampler_2d(
    c: Composer, input: Value, grid: Value, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Value:
    """`grid_sample` of (N, C, H, W) by numbers, as torch.grid_sampler_2d: modes 0 bilinear, 1 nearest, 2 bicubic."""
    return _sampler(c, 2, input, grid, interpolation_mode, padding_mode, align_corners)


@pulled_through
@made_of("grid_sample")
@composed(tensors="input grid")
def grid_sampler_3d(
    c: Composer, input: Value, grid: Value, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Value:
    """`grid_sample` of (N, C, D, H, W) by numbers, as torch.grid_sampler_3d."""
    return _sampler(c, 3, input, grid, interpolation_mode, padding_mode, align_corners)


def _places(c: Composer, sizes: tuple[int, ...], align: bool | None, element: Element) -> Value:
    """(x, y, 1) of all places of an image, a row each."""
    from baracuda.ops.layout.layout import CopyDescriptor, FillDescriptor, LinspaceDescriptor

    places = sizes[2:]
    axes = len(places)
    made = c.new((*places, axes + 1), element)
    for i, n in enumerate(reversed(places)):
        end = 0.0 if n == 1 else 1.0 if align else (n - 1) / n
        line = c(LinspaceDescriptor(n, element), start=-end, end=end)
        seen = line.permute([0 if axis == axes - 1 - i else -1 for axis in range(axes)]).expand(places)
        c(CopyDescriptor(places, element), x=seen, y=made[..., i])
    c(FillDescriptor(places, element), value=1.0, y=made[..., axes])
    return c.reshape(made, (prod(places), axes + 1))


def _affine_sizes(size: Any, theta: tuple[int, ...] | None) -> tuple[int, ...]:
    sizes = integers("size", size)
    axes = len(sizes) - 2
    if axes not in (2, 3) or any(n < 1 for n in sizes):
        raise InvalidProblemError(f"size: got {sizes}, want (N, C, H, W) or (N, C, D, H, W), all of at least 1.")
    want = (sizes[0], axes, axes + 1)
    if theta is not None and theta != want:
        raise InvalidProblemError(f"theta: got shape {shape_text(theta)}, want {shape_text(want)}.")
    return sizes


def _floats(name: str, x: Value) -> None:
    if not x.element.is_float:
        raise InvalidProblemError(f"{name}: got {x.element}, want f16, bf16, f32 or f64.")


@made_of("copy fill linspace matmul")
@composed(tensors="theta")
def affine_grid(c: Composer, theta: Value, size: Any, align_corners: bool | None = None) -> Value:
    """The positions theta[n] (x, y, 1) of the places of an image of `size`, as torch.nn.functional.affine_grid.

    theta (N, 2, 3) and size (N, C, H, W) make (N, H, W, 2); theta (N, 3, 4) and size (N, C, D, H, W) make (N, D, H, W, 3).
    """
    from baracuda import functional as F

    _floats("theta", theta)
    sizes = _affine_sizes(size, theta.shape)
    made = c.of(F.matmul, _places(c, sizes, align_corners, theta.element), theta.permute((0, 2, 1)))
    return c.reshape(made, (sizes[0], *sizes[2:], len(sizes) - 2))


@made_of("copy fill linspace matmul")
@composed(tensors="dy")
def affine_grid_backward(c: Composer, dy: Value, size: Any, align_corners: bool | None = None) -> Value:
    """Gradient of affine_grid by theta."""
    from baracuda import functional as F

    _floats("dy", dy)
    sizes = _affine_sizes(size, None)
    axes, want = len(sizes) - 2, (sizes[0], *sizes[2:], len(sizes) - 2)
    if dy.shape != want:
        raise InvalidProblemError(f"dy: got shape {shape_text(dy.shape)}, want {shape_text(want)}.")
    given = c.reshape(dy, (sizes[0], prod(sizes[2:]), axes)).permute((0, 2, 1))
    made: Value = c.of(F.matmul, given, _places(c, sizes, align_corners, dy.element))
    return made


affine_grid.pulled_by(affine_grid_backward)
