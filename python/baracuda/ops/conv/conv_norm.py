"""A convolution with the batch norm and the relu behind it. Kernel in csrc/ops/conv, reference in conv_norm_ref.py."""

from __future__ import annotations

from typing import Any

from baracuda.call.op import NotDifferentiable, Op
from baracuda.describe.elements import Element
from baracuda.describe.order import channels_of
from baracuda.describe.spec import Signature, descriptor, output, scalar, tensor
from baracuda.ops.conv.conv import _Conv


@descriptor(family="conv", op="conv_norm", result_order=channels_of("x", "weight"))
class ConvNormDescriptor(_Conv):
    """y = relu((conv(x) - mean) rstd scale + shift) with rstd = 1 / sqrt(var + eps), for each channel of y.

    A layer of a convolutional network in use: conv as ConvDescriptor has it, a batch norm by its running statistics, and
    relu, with the bits of these one after the other. `eps` is 1e-5 unless given. The error bound counts conv's sum of
    |terms| and |mean|, times |rstd scale|, and the size of shift.

    Args:
        input_shape: Shape of x, as in ConvDescriptor.
        weight_shape: As in ConvDescriptor.
        stride: As in ConvDescriptor.
        low: As in ConvDescriptor.
        high: As in ConvDescriptor.
        dilation: As in ConvDescriptor.
        groups: As in ConvDescriptor.
        element: f32 or f64, of all tensors.
        bias: Whether conv has a bias.
        scale: Whether the norm has a weight, (channels,).
        shift: Whether the norm has a bias, (channels,).
        relu: Whether results below 0 become 0.
    """

    bias: bool = False
    scale: bool = True
    shift: bool = True
    relu: bool = False

    def validate(self) -> None:
        _Conv.validate(self)
        if self.element not in (Element.F32, Element.F64):
            raise self.wrong("element", self.element, "f32 or f64: halves are rounded behind the convolution")

    def attributes(self) -> dict[str, int | float]:
        return _Conv.attributes(self) | {"relu": int(self.relu)}

    def signature(self) -> Signature:
        result = self.result_shape()
        channels: Any = result[1:2]
        return Signature(
            tensor("x", self.input_shape, self.element),
            tensor("weight", self.weight_shape, self.element),
            tensor("bias", channels, self.element, present=self.bias),
            tensor("mean", channels, self.element),
            tensor("var", channels, self.element),
            tensor("scale", channels, self.element, present=self.scale),
            tensor("shift", channels, self.element, present=self.shift),
            output("y", result, self.element),
            scalar("eps", default=1e-5),
        )


OPS = (
    Op(
        "conv_norm",
        ConvNormDescriptor,
        NotDifferentiable("take the gradients of conv, of batch_norm and of what is behind them"),
        "y = relu((conv(x) - mean) / sqrt(var + eps) * scale + shift)",
    ),
)
