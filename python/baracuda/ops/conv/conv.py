"""Convolutions and transposed convolutions over one to three axes. Kernels in csrc/ops/conv, reference in conv_ref.py.

Padding is zeros that are multiplied as other numbers are: an infinite or NaN weight makes NaN where it meets them.
"""

from __future__ import annotations

from math import prod
from typing import Any

from baracuda.call.op import Arg, Call, Op, Recipe, function
from baracuda.call.steps import made_of
from baracuda.describe.dims import Dim, Shape, Size, largest, shape_text
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError, shown
from baracuda.describe.options import integers
from baracuda.describe.order import channels_of
from baracuda.describe.spec import Descriptor, Signature, descriptor, frame, output, tensor

_STEP_LIMIT = 2**31


@frame
class _Conv(Descriptor):
    """Fields and checks that all convolutions share."""

    __slots__ = ()
    input_shape: Shape
    weight_shape: Shape
    stride: tuple[int, ...] = ()
    low: tuple[int, ...] = ()
    high: tuple[int, ...] = ()
    dilation: tuple[int, ...] = ()
    groups: int = 1
    element: Element = Element.F32

    def transposed(self) -> bool:
        """Whether the tensor that is given is what a convolution computes."""
        return self.op == "conv_transpose"

    def validate(self) -> None:
        rank = len(self.input_shape)
        if not 3 <= rank <= 5:
            raise self.wrong(
                "input_shape", self.input_shape, "(batch, channels, ...) with one to three axes behind them"
            )
        if len(self.weight_shape) != rank or any(isinstance(n, Dim) or n < 1 for n in self.weight_shape):
            want = f"{rank} plain sizes of at least 1, as input_shape has {rank} dimensions"
            raise self.wrong("weight_shape", self.weight_shape, want)
        for name, default in (("stride", 1), ("low", 0), ("high", 0), ("dilation", 1)):
            self._validate_axes(name, default)
        self._validate_channels()
        for i in range(rank - 2):
            if self._output_size(i) is None:
                self._refuse_size(i)
        if prod(max(1, n) for n in self._padded()) >= 2**55:
            raise self.wrong("input_shape", self.input_shape, "fewer than 2**55 elements with all padding")

    def _padded(self) -> list[int]:
        """The sizes of the image, which is x or, transposed, y, with its padding."""
        image = self.result_shape() if self.transposed() else self.input_shape
        around = (low + high for low, high in zip(self.low, self.high, strict=True))
        sizes = [largest(n) + more for n, more in zip(image[2:], around, strict=True)]
        return [largest(image[0]), max(largest(n) for n in (image[1], *self.weight_shape[:1])), *sizes]

    def _validate_axes(self, name: str, default: int) -> None:
        """One number for each axis; none stands for the default."""
        axes = len(self.input_shape) - 2
        given: tuple[int, ...] = getattr(self, name) or (default,) * axes
        least = -_STEP_LIMIT if name == "high" and self.transposed() else default
        if len(given) != axes or any(not least <= n < _STEP_LIMIT for n in given):
            raise self.wrong(name, list(given), f"{axes} numbers, one per axis, {least} <= n < 2**31")
        object.__setattr__(self, name, given)

    def _validate_channels(self) -> None:
        channels, (first, second) = self.input_shape[1], self.weight_shape[:2]
        if self.groups < 1 or first % self.groups:  # type: ignore[operator]
            raise self.wrong("groups", self.groups, f"a divisor of weight's first size, {first}")
        taken = first if self.transposed() else second * self.groups
        if channels != taken:
            rule = "weight's first size" if self.transposed() else "weight's second size times groups"
            raise self.wrong("input_shape", self.input_shape, f"{taken} channels, {rule}")

    def _output_size(self, i: int) -> Size | None:
        """The size of y along an axis; None where there is none."""
        size, around = self.input_shape[2 + i], self.low[i] + self.high[i]
        kernel = self.dilation[i] * (self.weight_shape[2 + i] - 1) + 1  # type: ignore[operator]
        if self.transposed():
            more = kernel - self.stride[i] - around
            made = size * self.stride[i] + more
            return made if isinstance(made, Dim) or (size > 0 and made >= 1) else None  # type: ignore[operator]
        if isinstance(size, Dim):
            return size + (around - kernel + 1) if self.stride[i] == 1 else None
        return (size + around - kernel) // self.stride[i] + 1 if size + around >= kernel else None

    def _refuse_size(self, i: int) -> None:
        size, kernel = self.input_shape[2 + i], self.weight_shape[2 + i]
        if isinstance(size, Dim):
            raise self.wrong("input_shape", self.input_shape, "plain sizes along axes with a stride above 1")
        if self.transposed():
            raise self.wrong(
                "input_shape", self.input_shape, f"sizes for which axis {2 + i} of y has at least 1; pad less"
            )
        reach = self.dilation[i] * (kernel - 1) + 1  # type: ignore[operator]
        padded = size + self.low[i] + self.high[i]
        want = (
            f"a kernel of at most {padded} along axis {2 + i}: it takes {reach} with dilation. Pad more, or dilate less"
        )
        raise self.wrong("weight_shape", self.weight_shape, want)

    def result_shape(self) -> Shape:
        """The shape of y and dy."""
        channels = self.weight_shape[1] * self.groups if self.transposed() else self.weight_shape[0]
        sizes = [self._output_size(i) for i in range(len(self.input_shape) - 2)]
        return (self.input_shape[0], channels, *(size for size in sizes if size is not None))

    def attributes(self) -> dict[str, int | float]:
        made: dict[str, int | float] = {}
        for name, default in (("stride", 1), ("low", 0), ("high", 0), ("dilation", 1)):
            values = getattr(self, name)
            made |= {f"{name}{i}": values[i] if i < len(values) else default for i in range(3)}
        made["groups"] = self.groups
        return made


@frame
class _Forward(_Conv):
    """A convolution of either kind."""

    __slots__ = ()
    bias: bool = False

    def signature(self) -> Signature:
        result = self.result_shape()
        return Signature(
            tensor("x", self.input_shape, self.element),
            tensor("weight", self.weight_shape, self.element),
            tensor("bias", result[1:2], self.element, present=self.bias),
            output("y", result, self.element),
        )

    def backward(self) -> Any:
        made: Any = self.gradient_class
        names = ("input_shape", "weight_shape", "stride", "low", "high", "dilation", "groups", "element")
        return made(**{name: getattr(self, name) for name in names}, dbias=self.bias)


@frame
class _Backward(_Conv):
    """The gradients of either kind."""

    __slots__ = ()
    dx: bool = True
    dweight: bool = True
    dbias: bool = True

    def signature(self) -> Signature:
        result = self.result_shape()
        return Signature(
            tensor("dy", result, self.element),
            tensor("x", self.input_shape, self.element),
            tensor("weight", self.weight_shape, self.element),
            output("dx", self.input_shape, self.element, present=self.dx),
            output("dweight", self.weight_shape, self.element, present=self.dweight),
            output("dbias", result[1:2], self.element, present=self.dbias),
        )


@descriptor(family="conv", op="conv", result_order=channels_of("x", "weight"))
class ConvDescriptor(_Forward):
    """y[n, o, p] = bias[o] + sum over c, t of x[n, c, p stride + t dilation - low] weight[o, c, t]; x is 0 outside.

    c runs over the channels of o's group. The size of y along an axis is
    (size + low + high - dilation (taps - 1) - 1) // stride + 1. Sums of halves are kept in f32.

    Args:
        input_shape: Shape of x, (batch, channels, ...) with one to three axes; the batch may be 0.
        weight_shape: (channels of y, channels of x / groups, taps...).
        stride: One number per axis; () stands for ones.
        low: Zeros before each axis; () for none.
        high: Zeros behind each axis; () for none.
        dilation: Distance of taps, per axis; () stands for ones.
        groups: Channels are convolved in so many groups apart from each other; as many as channels is a depthwise one.
        element: f16, bf16, f32 or f64.
        bias: Whether there is a bias.
    """


@descriptor(gradient_of=ConvDescriptor, result_order=channels_of("x", "weight"))
class ConvBackwardDescriptor(_Backward):
    """Gradients of conv: dx by x, dweight by weight (summed over images and places), dbias the sums of dy's channels.

    Args:
        input_shape: Shape of x and dx.
        weight_shape: Shape of weight and dweight.
        stride: As in ConvDescriptor.
        low: As in ConvDescriptor.
        high: As in ConvDescriptor.
        dilation: As in ConvDescriptor.
        groups: As in ConvDescriptor.
        element: f16, bf16, f32 or f64.
        dx: Whether the gradient by x is wanted.
        dweight: Whether the gradient by weight is wanted.
        dbias: Whether the gradient by bias is wanted.
    """


@descriptor(family="conv", op="conv_transpose", result_order=channels_of("x", "weight"))
class ConvTransposeDescriptor(_Forward):
    """y[n, o, q] = bias[o] + sum of x[n, c, p] weight[c, o, t] over all c, p, t with p stride + t dilation - low = q.

    The gradient of conv by its input. The size of y along an axis is
    (size - 1) stride + dilation (taps - 1) + 1 - low - high.

    Args:
        input_shape: Shape of x, (batch, channels, ...) with one to three axes; the batch may be 0.
        weight_shape: (channels of x, channels of y / groups, taps...).
        stride: One number per axis; () stands for ones.
        low: What is cut off before each axis; () for nothing.
        high: What is cut off behind each axis; negative numbers add places (torch's output_padding); () for nothing.
        dilation: Distance of taps, per axis; () stands for ones.
        groups: Channels are convolved in so many groups apart from each other.
        element: f16, bf16, f32 or f64.
        bias: Whether there is a bias.
    """


@descriptor(gradient_of=ConvTransposeDescriptor, result_order=channels_of("x", "weight"))
class ConvTransposeBackwardDescriptor(_Backward):
    """Gradients of conv_transpose: dx is conv of dy, dweight and dbias are sums over images and places.

    Args:
        input_shape: Shape of x and dx.
        weight_shape: Shape of weight and dweight.
        stride: As in ConvTransposeDescriptor.
        low: As in ConvTransposeDescriptor.
        high: As in ConvTransposeDescriptor.
        dilation: As in ConvTransposeDescriptor.
        groups: As in ConvTransposeDescriptor.
        element: f16, bf16, f32 or f64.
        dx: Whether the gradient by x is wanted.
        dweight: Whether the gradient by weight is wanted.
        dbias: Whether the gradient by bias is wanted.
    """


OPS = (
    Op("conv", ConvDescriptor, ConvBackwardDescriptor, "y = sums of x times weight over a window, + bias"),
    Op("conv_transpose", ConvTransposeDescriptor, ConvTransposeBackwardDescriptor, "y = conv's gradient of x, + bias"),
)

Axes = int | tuple[int, ...] | list[int]
Mask = tuple[bool, bool, bool] | list[bool]
ALL: Mask = (True, True, True)


def _per_axis(name: str, value: Any, axes: int) -> tuple[int, ...]:
    """An option as torch takes it: a number for all axes, or a list of one or of each."""
    given = (value,) if hasattr(value, "__index__") else value
    numbers = integers(name, given)
    if isinstance(value, bool) or len(numbers) not in (1, axes):
        raise InvalidProblemError(f"{name}: got {value!r}, want an int, or {axes} of them, one per axis.")
    return numbers * axes if len(numbers) == 1 else numbers


def _padding(padding: Any, weight: Arg, stride: tuple[int, ...], dilation: tuple[int, ...]) -> Any:
    """(low, high) of conv's padding, which may be a word."""
    axes = len(stride)
    if not isinstance(padding, str):
        low = _per_axis("padding", padding, axes)
        return low, low
    if padding == "valid":
        return (0,) * axes, (0,) * axes
    if padding != "same":
        raise InvalidProblemError(f"padding: got {padding!r}, want an int, a list of ints, 'same' or 'valid'.")
    if any(s != 1 for s in stride):
        raise InvalidProblemError(f"padding: got 'same' with stride {stride}, want stride 1, or padding as numbers.")
    total = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:], strict=True)]
    return tuple(n // 2 for n in total), tuple(n - n // 2 for n in total)


def _check(name: str, axes: int, input: Arg, weight: Arg, bias: Arg | None) -> Arg:
    """The input as a batch."""
    if input.rank not in (axes + 1, axes + 2) or weight.rank != axes + 2:
        got = f"{name}: got input {shape_text(input.shape)} and weight {shape_text(weight.shape)}"
        raise InvalidProblemError(f"{got}, want {axes + 2} dimensions each; an input of {axes + 1} is a batch of one.")
    if bias is not None and bias.rank != 1:
        raise InvalidProblemError(
            f"bias: got shape {bias.shape}, want one dimension: a number for each output channel."
        )
    return input.insert(0) if input.rank == axes + 1 else input


def _fields(
    axes: int, x: Arg, weight: Arg, stride: Any, padding: Any, dilation: Any, groups: int, extra: Any = None
) -> dict[str, Any]:
    """What a function's options are as a descriptor's fields; `extra` is conv_transpose's output_padding."""
    strides, dilations = _per_axis("stride", stride, axes), _per_axis("dilation", dilation, axes)
    if extra is None:
        low, high = _padding(padding, weight, strides, dilations)
    else:
        low, more = _per_axis("padding", padding, axes), _per_axis("output_padding", extra, axes)
        for n, s, d in zip(more, strides, dilations, strict=True):
            if not 0 <= n < max(s, d):
                raise InvalidProblemError(f"output_padding: got {extra!r}, want less than the stride or the dilation.")
        high = tuple(a - b for a, b in zip(low, more, strict=True))
    return {
        "input_shape": x.shape,
        "weight_shape": weight.shape,
        "stride": strides,
        "low": low,
        "high": high,
        "dilation": dilations,
        "groups": groups,
        "element": x.element,
    }


def _masked(mask: Mask, bias: Arg | None) -> tuple[bool, bool, bool]:
    """Which gradients are made."""
    if not isinstance(mask, (tuple, list)) or len(mask) != 3 or not all(isinstance(m, bool) for m in mask):
        raise InvalidProblemError(
            f"output_mask: got {shown(mask)}, want three bools: whether the gradients of input, weight and bias are wanted."
        )
    dx, dweight, dbias = mask[0], mask[1], mask[2] and bias is not None
    if not (dx or dweight or dbias):
        raise InvalidProblemError(
            f"output_mask: got {shown(mask)}{'' if bias else ' and no bias'}, want at least one gradient."
        )
    return dx, dweight, dbias


def _views(name: str, shape: tuple[int, ...], *, single: bool) -> Any:
    """Of a result whose batch of one the function leaves out."""
    return {name: (shape[1:], (-1, *range(len(shape) - 1)))} if single else None


def forward(
    call: Call, made: type[_Forward], axes: int, input: Arg, weight: Arg, bias: Arg | None, *options: Any
) -> Recipe:
    """A convolution's plan and arguments."""
    x = _check(made.op_name, axes, input, weight, bias)
    desc: Any = made(**_fields(axes, x, weight, *options), bias=bias is not None)
    views = _views("y", desc.output_shape(), single=input.rank == axes + 1)
    return call(desc, views=views, x=x, weight=weight, bias=bias)


def backward(
    call: Call,
    made: type[_Backward],
    axes: int,
    dy: Arg,
    input: Arg,
    weight: Arg,
    bias: Arg | None,
    mask: Mask,
    *options: Any,
) -> Recipe:
    """A gradient's plan and arguments."""
    dx, dweight, dbias = _masked(mask, bias)
    x = _check(made.op_name, axes, input, weight, bias)
    single = input.rank == axes + 1
    desc: Any = made(**_fields(axes, x, weight, *options), dx=dx, dweight=dweight, dbias=dbias)
    views = _views("dx", x.shape, single=single) if dx else None
    return call(desc, views=views, dy=dy.insert(0) if single else dy, x=x, weight=weight)


@made_of("conv")
@function(tensors="input weight bias")
def conv1d(
    call: Call,
    input: Arg,
    weight: Arg,
    bias: Arg | None = None,
    stride: Axes = 1,
    padding: Axes | str = 0,
    dilation: Axes = 1,
    groups: int = 1,
) -> Recipe:
    """Convolves (N, C, L) with weight (channels, C / groups, ...), as torch.nn.functional.conv1d.

    `padding` is zeros on both sides of each axis, "valid" for none, or "same" for a result of the input's size. An input
    without the first dimension is a batch of one, and so is its result.
    """
    return forward(call, ConvDescriptor, 1, input, weight, bias, stride, padding, dilation, groups)


@made_of("conv_backward")
@function(tensors="dy input weight bias")
def conv1d_backward(
    call: Call,
    dy: Arg,
    input: Arg,
    weight: Arg,
    bias: Arg | None = None,
    stride: Axes = 1,
    padding: Axes | str = 0,
    dilation: Axes = 1,
    groups: int = 1,
    *,
    output_mask: Mask = ALL,
) -> Recipe:
    """Gradients (dinput, dweight) of conv1d and, with a `bias`, dbias: those that `output_mask` wants."""
    return backward(
        call, ConvBackwardDescriptor, 1, dy, input, weight, bias, output_mask, stride, padding, dilation, groups
    )


@made_of("conv")
@function(tensors="input weight bias")
def conv2d(
    call: Call,
    input: Arg,
    weight: Arg,
    bias: Arg | None = None,
    stride: Axes = 1,
    padding: Axes | str = 0,
    dilation: Axes = 1,
    groups: int = 1,
) -> Recipe:
    """Convolves (N, C, H, W) with weight (channels, C / groups, ...), as torch.nn.functional.conv2d.

    `padding` is zeros on both sides of each axis, "valid" for none, or "same" for a result of the input's size. An input
    without the first dimension is a batch of one, and so is its result.
    """
    return forward(call, ConvDescriptor, 2, input, weight, bias, stride, padding, dilation, groups)


@made_of("conv_backward")
@function(tensors="dy input weight bias")
def conv2d_backward(
    call: Call,
    dy: Arg,
    input: Arg,
    weight: Arg,
    bias: Arg | None = None,
    stride: Axes = 1,
    padding: Axes | str = 0,
    dilation: Axes = 1,
    groups: int = 1,
    *,
    output_mask: Mask = ALL,
) -> Recipe:
    """Gradients (dinput, dweight) of conv2d and, with a `bias`, dbias: those that `output_mask` wants."""
    return backward(
        call, ConvBackwardDescriptor, 2, dy, input, weight, bias, output_mask, stride, padding, dilation, groups
    )


@made_of("conv")
@function(tensors="input weight bias")
def conv3d(
    call: Call,
    input: Arg,
    weight: Arg,
    bias: Arg | None = None,
    stride: Axes = 1,
    padding: Axes | str = 0,
    dilation: Axes = 1,
    groups: int = 1,
) -> Recipe:
    """Convolves (N, C, D, H, W) with weight (channels, C / groups, ...), as torch.nn.functional.conv3d.

    `padding` is zeros on both sides of each axis, "valid" for none, or "same" for a result of the input's size. An input
    without the first dimension is a batch of one, and so is its result.
    """
    return forward(call, ConvDescriptor, 3, input, weight, bias, stride, padding, dilation, groups)


@made_of("conv_backward")
@function(tensors="dy input weight bias")
def conv3d_backward(
    call: Call,
    dy: Arg,
    input: Arg,
    weight: Arg,
    bias: Arg | None = None,
    stride: Axes = 1,
    padding: Axes | str = 0,
    dilation: Axes = 1,
    groups: int = 1,
    *,
    output_mask: Mask = ALL,
) -> Recipe:
    """Gradients (dinput, dweight) of conv3d and, with a `bias`, dbias: those that `output_mask` wants."""
    return backward(
        call, ConvBackwardDescriptor, 3, dy, input, weight, bias, output_mask, stride, padding, dilation, groups
    )


conv1d.pulled_by(conv1d_backward)
conv2d.pulled_by(conv2d_backward)
conv3d.pulled_by(conv3d_backward)
