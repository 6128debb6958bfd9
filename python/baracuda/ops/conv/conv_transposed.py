"""Functions of transposed convolutions; their descriptors are in conv.py."""

from __future__ import annotations

from baracuda.call.op import Arg, Call, Op, Recipe, function
from baracuda.call.steps import made_of
from baracuda.ops.conv.conv import (
    ALL,
    Axes,
    ConvTransposeBackwardDescriptor,
    ConvTransposeDescriptor,
    Mask,
    backward,
    forward,
)

OPS: tuple[Op, ...] = ()


@made_of("conv_transpose")
@function(tensors="input weight bias")
def conv_transpose1d(
    call: Call,
    input: Arg,
    weight: Arg,
    bias: Arg | None = None,
    stride: Axes = 1,
    padding: Axes = 0,
    output_padding: Axes = 0,
    groups: int = 1,
    dilation: Axes = 1,
) -> Recipe:
    """The gradient of conv1d by its input, as torch.nn.functional.conv_transpose1d; weight is (C, channels / groups, ...).

    `padding` is cut off from both sides of each axis; `output_padding` adds to the end.
    """
    made = ConvTransposeDescriptor
    return forward(call, made, 1, input, weight, bias, stride, padding, dilation, groups, output_padding)


@made_of("conv_transpose_backward")
@function(tensors="dy input weight bias")
def conv_transpose1d_backward(
    call: Call,
    dy: Arg,
    input: Arg,
    weight: Arg,
    bias: Arg | None = None,
    stride: Axes = 1,
    padding: Axes = 0,
    output_padding: Axes = 0,
    groups: int = 1,
    dilation: Axes = 1,
    *,
    output_mask: Mask = ALL,
) -> Recipe:
    """Gradients (dinput, dweight) of conv_transpose1d and, with a `bias`, dbias: those that `output_mask` wants."""
    made = ConvTransposeBackwardDescriptor
    return backward(
        call, made, 1, dy, input, weight, bias, output_mask, stride, padding, dilation, groups, output_padding
    )


@made_of("conv_transpose")
@function(tensors="input weight bias")
def conv_transpose2d(
    call: Call,
    input: Arg,
    weight: Arg,
    bias: Arg | None = None,
    stride: Axes = 1,
    padding: Axes = 0,
    output_padding: Axes = 0,
    groups: int = 1,
    dilation: Axes = 1,
) -> Recipe:
    """The gradient of conv2d by its input, as torch.nn.functional.conv_transpose2d; weight is (C, channels / groups, ...).

    `padding` is cut off from both sides of each axis; `output_padding` adds to the end.
    """
    made = ConvTransposeDescriptor
    return forward(call, made, 2, input, weight, bias, stride, padding, dilation, groups, output_padding)


@made_of("conv_transpose_backward")
@function(tensors="dy input weight bias")
def conv_transpose2d_backward(
    call: Call,
    dy: Arg,
    input: Arg,
    weight: Arg,
    bias: Arg | None = None,
    stride: Axes = 1,
    padding: Axes = 0,
    output_padding: Axes = 0,
    groups: int = 1,
    dilation: Axes = 1,
    *,
    output_mask: Mask = ALL,
) -> Recipe:
    """Gradients (dinput, dweight) of conv_transpose2d and, with a `bias`, dbias: those that `output_mask` wants."""
    made = ConvTransposeBackwardDescriptor
    return backward(
        call, made, 2, dy, input, weight, bias, output_mask, stride, padding, dilation, groups, output_padding
    )


@made_of("conv_transpose")
@function(tensors="input weight bias")
def conv_transpose3d(
    call: Call,
    input: Arg,
    weight: Arg,
    bias: Arg | None = None,
    stride: Axes = 1,
    padding: Axes = 0,
    output_padding: Axes = 0,
    groups: int = 1,
    dilation: Axes = 1,
) -> Recipe:
    """The gradient of conv3d by its input, as torch.nn.functional.conv_transpose3d; weight is (C, channels / groups, ...).

    `padding` is cut off from both sides of each axis; `output_padding` adds to the end.
    """
    made = ConvTransposeDescriptor
    return forward(call, made, 3, input, weight, bias, stride, padding, dilation, groups, output_padding)


@made_of("conv_transpose_backward")
@function(tensors="dy input weight bias")
def conv_transpose3d_backward(
    call: Call,
    dy: Arg,
    input: Arg,
    weight: Arg,
    bias: Arg | None = None,
    stride: Axes = 1,
    padding: Axes = 0,
    output_padding: Axes = 0,
    groups: int = 1,
    dilation: Axes = 1,
    *,
    output_mask: Mask = ALL,
) -> Recipe:
    """Gradients (dinput, dweight) of conv_transpose3d and, with a `bias`, dbias: those that `output_mask` wants."""
    made = ConvTransposeBackwardDescriptor
    return backward(
        call, made, 3, dy, input, weight, bias, output_mask, stride, padding, dilation, groups, output_padding
    )


conv_transpose1d.pulled_by(conv_transpose1d_backward)
conv_transpose2d.pulled_by(conv_transpose2d_backward)
conv_transpose3d.pulled_by(conv_transpose3d_backward)
