"""Convolutions, pools and resizing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import baracuda as bc
from baracuda.torch.lowering.common import F, empty_as, ints, run_plan
from baracuda.torch.table import NotMapped, Want, lowers


def _fields(
    x: Any, weight: Any, stride: Any, padding: Any, dilation: Any, transposed: bool, extra: Any, groups: int
) -> dict[str, Any]:
    """A convolution's options as fields of its descriptor."""
    axes = len(x.shape) - 2
    if not 1 <= axes <= 3:
        raise NotMapped("neither one nor two nor three axes")
    wide = {name: ints(v) * (axes if len(ints(v)) == 1 else 1) for name, v in
            (("stride", stride), ("padding", padding), ("dilation", dilation), ("extra", extra))}  # fmt: skip
    high = tuple(p - e for p, e in zip(wide["padding"], wide["extra"], strict=True)) if transposed else wide["padding"]
    return {
        "input_shape": tuple(x.shape), "weight_shape": tuple(weight.shape), "stride": wide["stride"],
        "low": wide["padding"], "high": high, "dilation": wide["dilation"], "groups": groups, "element": str(x.element),
    }  # fmt: skip


@lowers("convolution.default")
def convolution(
    want: Want, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool, extra: Any,
    groups: int,
) -> Any:  # fmt: skip
    """A call where the result is contiguous, which passes know; else a plan that writes as torch promised."""
    fields = _fields(x, weight, stride, padding, dilation, transposed, extra, groups)
    if want.result.contiguous:
        options = [fields["stride"], fields["low"]]
        options += [ints(extra), groups, fields["dilation"]] if transposed else [fields["dilation"], groups]
        fn = getattr(F, f"conv{'_transpose' if transposed else ''}{len(x.shape) - 2}d")
        return fn(x, weight, bias, *options)
    y = empty_as(want.result)
    made = bc.ConvTransposeDescriptor if transposed else bc.ConvDescriptor
    run_plan(made(**fields, bias=bias is not None), x=x, weight=weight, bias=bias, y=y)
    return y


@lowers("convolution_backward.default")
def convolution_backward(
    want: Want, dy: Any, x: Any, weight: Any, bias_sizes: Any, stride: Any, padding: Any, dilation: Any,
    transposed: bool, extra: Any, groups: int, mask: Sequence[bool],
) -> Any:  # fmt: skip
    """By x, weight and bias, of those that are wanted."""
    fields = _fields(x, weight, stride, padding, dilation, transposed, extra, groups)
    wanted = [on and layout is not None for on, layout in zip(mask, want.results, strict=True)]
    made = [empty_as(layout) if on and layout else None for on, layout in zip(wanted, want.results, strict=True)]
    descriptor = bc.ConvTransposeBackwardDescriptor if transposed else bc.ConvBackwardDescriptor
    names = ("dx", "dweight", "dbias")
    problem = descriptor(**fields, **dict(zip(names, wanted, strict=True)))
    run_plan(problem, dy=dy, x=x, weight=weight, **dict(zip(names, made, strict=True)))
    return tuple(made)


@lowers("max_pool2d_with_indices.default max_pool3d_with_indices.default")
def max_pool(
    want: Want, x: Any, kernel: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> Any:
    """Largest elements of windows, and where they are."""
    fn = getattr(F, want.name.removesuffix("_with_indices"))
    return tuple(fn(x, ints(kernel), ints(stride) or None, ints(padding), ints(dilation), ceil_mode, True))


@lowers("max_pool2d_with_indices_backward.default max_pool3d_with_indices_backward.default")
def max_pool_backward(
    want: Want, dy: Any, x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, indices: Any
) -> Any:
    """Dy where the largest elements were."""
    fn = getattr(F, want.name.replace("_with_indices", ""))
    options = ints(kernel), ints(stride) or None, ints(padding), ints(dilation), ceil_mode
    return fn(dy, indices, tuple(x.shape), *options)


@lowers("avg_pool1d.default avg_pool2d.default avg_pool3d.default")
def avg_pool(
    want: Want, x: Any, kernel: Any, stride: Any = (), padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: int | None = None,
) -> Any:  # fmt: skip
    """Means of windows."""
    options = ints(padding), ceil_mode, count_include_pad, divisor_override
    return getattr(F, want.name)(x, ints(kernel), ints(stride) or None, *options)


@lowers("avg_pool2d_backward.default avg_pool3d_backward.default")
def avg_pool_backward(
    want: Want, dy: Any, x: Any, kernel: Any, stride: Any, padding: Any, ceil_mode: bool, count_include_pad: bool,
    divisor_override: int | None,
) -> Any:  # fmt: skip
    """Shares of dy."""
    options = ints(padding), ceil_mode, count_include_pad, divisor_override
    return getattr(F, want.name)(dy, tuple(x.shape), ints(kernel), ints(stride) or None, *options)


@lowers("_adaptive_avg_pool2d.default _adaptive_avg_pool3d.default adaptive_avg_pool1d.default")
def adaptive_avg_pool(want: Want, x: Any, size: Any) -> Any:
    """Means of as many windows as the result has elements."""
    return getattr(F, want.name.removeprefix("_"))(x, ints(size))


@lowers("_adaptive_avg_pool2d_backward.default _adaptive_avg_pool3d_backward.default")
def adaptive_avg_pool_backward(want: Want, dy: Any, x: Any) -> Any:
    """Shares of dy."""
    axes = int(want.name[len("_adaptive_avg_pool")])
    return getattr(F, want.name.removeprefix("_"))(dy, tuple(x.shape), tuple(dy.shape[-axes:]))


@lowers("adaptive_max_pool2d.default adaptive_max_pool3d.default")
def adaptive_max_pool(want: Want, x: Any, size: Any) -> Any:
    """Largest elements of as many windows as the result has elements, and where they are."""
    return tuple(getattr(F, want.name)(x, ints(size), True))


@lowers("adaptive_max_pool2d_backward.default adaptive_max_pool3d_backward.default")
def adaptive_max_pool_backward(want: Want, dy: Any, x: Any, indices: Any) -> Any:
    """Dy where the largest elements were."""
    axes = int(want.name[len("adaptive_max_pool")])
    return getattr(F, want.name)(dy, indices, tuple(x.shape), tuple(dy.shape[-axes:]))


@lowers("upsample_nearest1d.vec upsample_nearest2d.vec upsample_nearest3d.vec")
def upsample_nearest(want: Want, x: Any, size: Any, scales: Any) -> Any:
    """The nearest element of each place."""
    return F.interpolate(x, tuple(size) if size is not None else None, _scale(size, scales), "nearest")


@lowers("upsample_linear1d.vec upsample_bilinear2d.vec upsample_trilinear3d.vec upsample_bicubic2d.vec")
def upsample(want: Want, x: Any, size: Any, align_corners: bool, scales: Any) -> Any:
    """Between neighbours, by weights."""
    mode = want.name.removeprefix("upsample_")[:-2]
    return F.interpolate(x, tuple(size) if size is not None else None, _scale(size, scales), mode, align_corners)


def _scale(size: Any, scales: Any) -> Any:
    return None if size is not None else tuple(scales)


@lowers("upsample_nearest2d.default")
def upsample_nearest_to(want: Want, x: Any, size: Any, *scales: float | None) -> Any:
    """The nearest element of each place of a size; scales that are given decide where places lie."""
    return F.interpolate(x, *_resize(x, size, scales), "nearest")


@lowers("upsample_bilinear2d.default upsample_bicubic2d.default")
def upsample_to(want: Want, x: Any, size: Any, align_corners: bool, *scales: float | None) -> Any:
    """Between neighbours, to a size."""
    mode = want.name.removeprefix("upsample_")[:-2]
    return F.interpolate(x, *_resize(x, size, scales), mode, align_corners)


def _resize(x: Any, size: Any, scales: Sequence[float | None]) -> tuple[Any, Any]:
    """Size or scales, whichever says where places lie."""
    given = [s for s in scales if s is not None]
    if not given:
        return tuple(size), None
    if len(given) != len(size) or [int(n * s) for n, s in zip(x.shape[2:], given, strict=True)] != list(size):
        raise NotMapped("scales that do not give the size")
    return None, tuple(given)


@lowers("upsample_nearest2d_backward.default")
def upsample_nearest_backward(want: Want, dy: Any, size: Any, shape: Sequence[int], *scales: float | None) -> Any:
    """Sums of what went to each place."""
    return _resized_backward(dy, size, shape, scales, "nearest", None)


@lowers("upsample_bilinear2d_backward.default upsample_bicubic2d_backward.default")
def upsample_backward(
    want: Want, dy: Any, size: Any, shape: Sequence[int], align_corners: bool, *scales: float | None
) -> Any:
    """Sums of the shares that went to each place."""
    mode = want.name.removeprefix("upsample_").removesuffix("_backward")[:-2]
    return _resized_backward(dy, size, shape, scales, mode, align_corners)


def _resized_backward(
    dy: Any, size: Any, shape: Sequence[int], scales: Sequence[float | None], mode: str, align_corners: bool | None
) -> Any:
    given = [s for s in scales if s is not None]
    if given and [int(n * s) for n, s in zip(shape[2:], given, strict=True)] != list(size):
        raise NotMapped("scales that do not give the size")
    to = (None, tuple(given)) if given else (tuple(size), None)
    return F.interpolate_backward(dy, tuple(shape), *to, mode, align_corners)


@lowers("grid_sampler_2d.default grid_sampler_3d.default")
def grid_sampler(want: Want, x: Any, grid: Any, interpolation: int, padding: int, align_corners: bool) -> Any:
    """Elements at the places that a grid names."""
    return getattr(F, want.name)(x, grid, interpolation, padding, align_corners)


@lowers("reflection_pad1d.default reflection_pad2d.default reflection_pad3d.default")
def reflection_pad(want: Want, x: Any, pad: Sequence[int]) -> Any:
    """Mirrored at the edges."""
    return F.pad(x, tuple(pad), "reflect")


@lowers("replication_pad1d.default replication_pad2d.default replication_pad3d.default")
def replication_pad(want: Want, x: Any, pad: Sequence[int]) -> Any:
    """The edges repeated."""
    return F.pad(x, tuple(pad), "replicate")


@lowers(
    "reflection_pad1d_backward.default reflection_pad2d_backward.default reflection_pad3d_backward.default "
    "replication_pad1d_backward.default replication_pad2d_backward.default replication_pad3d_backward.default"
)
def pad_backward(want: Want, dy: Any, x: Any, pad: Sequence[int]) -> Any:
    """Sums of what came from each place."""
    return F.pad_backward(dy, tuple(x.shape), tuple(pad), "reflect" if "reflection" in want.name else "replicate")


@lowers("im2col.default")
def im2col(want: Want, x: Any, kernel: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    """Windows as columns."""
    return F.unfold(x, ints(kernel), ints(dilation), ints(padding), ints(stride))


@lowers("col2im.default")
def col2im(want: Want, x: Any, size: Any, kernel: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    """Columns summed to where their windows are."""
    return F.fold(x, ints(size), ints(kernel), ints(dilation), ints(padding), ints(stride))


@lowers("pixel_shuffle.default pixel_unshuffle.default channel_shuffle.default")
def shuffle(want: Want, x: Any, factor: int) -> Any:
    """Channels to places and back."""
    return getattr(F, want.name)(x, factor)
