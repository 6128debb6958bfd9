"""Pooling over one to three axes: what is asked of the kernels in csrc/ops/pool. Reference in pool_ref.py.

Functions are in pooling.py. A window's places that are outside of the image do not count, unless the op says so.
"""

from __future__ import annotations

from math import prod
from typing import Any

from baracuda.call.op import Op
from baracuda.describe.dims import Dim, Shape
from baracuda.describe.elements import Element
from baracuda.describe.order import Order, channels_of
from baracuda.describe.spec import Descriptor, Signature, descriptor, frame, output, tensor

_LIMIT = 2**31


@frame
class _Pool(Descriptor):
    """What all pooling shares."""

    __slots__ = ()
    input_shape: Shape

    def _validate_image(self) -> None:
        shape = self.input_shape
        if not 3 <= len(shape) <= 5:
            raise self.wrong("input_shape", shape, "(batch, channels, ...) with one to three axes behind them")
        if any(isinstance(n, Dim) or not 1 <= n < _LIMIT for n in shape[2:]):
            raise self.wrong("input_shape", shape, "axes of 1 to 2**31 - 1 places; only batch and channels may be Dims")

    @property
    def axes(self) -> int:
        """How many axes windows go along."""
        return len(self.input_shape) - 2

    def _sizes(self) -> tuple[int, ...]:
        return tuple(int(n) for n in self.input_shape[2:])  # type: ignore[arg-type]

    def result_sizes(self) -> tuple[int, ...]:
        """How many windows there are along each axis."""
        raise NotImplementedError

    def result_shape(self) -> Shape:
        """The shape of y and dy."""
        return (*self.input_shape[:2], *self.result_sizes())


@frame
class _Windows(_Pool):
    """Windows of a size."""

    __slots__ = ()
    kernel: tuple[int, ...]
    stride: tuple[int, ...] = ()
    low: tuple[int, ...] = ()
    high: tuple[int, ...] = ()
    ceil_mode: bool = False

    def dilations(self) -> tuple[int, ...]:
        """Distances of a window's places, per axis."""
        return (1,) * self.axes

    def validate(self) -> None:
        self._validate_image()
        self._take_axes("kernel", 1, self.kernel)
        self._take_axes("stride", 1, self.kernel)
        self._take_axes("low", 0, (0,) * self.axes)
        self._take_axes("high", 0, (0,) * self.axes)
        if prod(self.kernel) >= _LIMIT:
            raise self.wrong("kernel", list(self.kernel), "fewer than 2**31 places in a window")
        self._validate_more()
        for i, (size, reach) in enumerate(zip(self._sizes(), self.reaches(), strict=True)):
            room = size + self.low[i] + self.high[i] + (self.stride[i] - 1 if self.ceil_mode else 0)
            if reach > room:
                want = f"at most {room} along axis {2 + i}: it takes {reach} places with dilation. Pad more"
                raise self.wrong("kernel", list(self.kernel), want)

    def _validate_more(self) -> None:
        """Checks of further fields."""

    def _take_axes(self, name: str, least: int, default: tuple[int, ...]) -> None:
        """One number for each axis; none stands for the default."""
        given: tuple[int, ...] = getattr(self, name) or default
        if len(given) != self.axes or any(not least <= n < _LIMIT for n in given):
            raise self.wrong(name, list(given), f"{self.axes} numbers, one per axis, {least} <= n < 2**31")
        object.__setattr__(self, name, given)

    def reaches(self) -> tuple[int, ...]:
        """How many places windows span, per axis."""
        return tuple((k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations(), strict=True))

    def result_sizes(self) -> tuple[int, ...]:
        found = []
        for i, (size, reach) in enumerate(zip(self._sizes(), self.reaches(), strict=True)):
            step, low = self.stride[i], self.low[i]
            n = (size + low + self.high[i] - reach + (step - 1 if self.ceil_mode else 0)) // step + 1
            found.append(n - 1 if self.ceil_mode and (n - 1) * step >= size + low else n)
        return tuple(found)

    def _numbers(self, names: tuple[tuple[str, int], ...]) -> dict[str, int | float]:
        made: dict[str, int | float] = {}
        for name, default in names:
            values = getattr(self, name)
            made |= {f"{name}{i}": values[i] if i < len(values) else default for i in range(3)}
        return made


_SIZES = (("kernel", 1), ("stride", 1), ("low", 0), ("high", 0))


@frame
class _MaxPool(_Windows):
    """Windows of maxima."""

    __slots__ = ()
    dilation: tuple[int, ...] = ()
    element: Element = Element.F32

    def dilations(self) -> tuple[int, ...]:
        """Distances of a window's places, per axis."""
        return self.dilation

    def _validate_more(self) -> None:
        self._take_axes("dilation", 1, (1,) * self.axes)

    def attributes(self) -> dict[str, int | float]:
        return self._numbers((*_SIZES, ("dilation", 1))) | {"ceil_mode": int(self.ceil_mode)}


@frame
class _AvgPool(_Windows):
    """Windows of means."""

    __slots__ = ()
    count_include_pad: bool = True
    divisor: int = 0
    element: Element = Element.F32

    def attributes(self) -> dict[str, int | float]:
        more = {"count_include_pad": int(self.count_include_pad), "divisor": self.divisor}
        return self._numbers(_SIZES) | {"ceil_mode": int(self.ceil_mode)} | more


@frame
class _Adaptive(_Pool):
    """Parts of the whole."""

    __slots__ = ()
    output_size: tuple[int, ...]
    element: Element = Element.F32

    def validate(self) -> None:
        self._validate_image()
        given = self.output_size
        if len(given) != self.axes or any(not 0 <= n < _LIMIT for n in given):
            raise self.wrong("output_size", list(given), f"{self.axes} numbers, one per axis, 0 <= n < 2**31")

    def result_sizes(self) -> tuple[int, ...]:
        return self.output_size


def _max_signature(desc: Any) -> Signature:
    made = desc.result_shape()
    return Signature(
        tensor("x", desc.input_shape, desc.element),
        output("y", made, desc.element),
        output("indices", made, Element.I64, present=desc.indices),
    )


def _max_backward_signature(desc: Any) -> Signature:
    made = desc.result_shape()
    dy, indices = tensor("dy", made, desc.element), tensor("indices", made, Element.I64)
    return Signature(dy, indices, output("dx", desc.input_shape, desc.element))


def _mean_signature(desc: Any) -> Signature:
    return Signature(tensor("x", desc.input_shape, desc.element), output("y", desc.result_shape(), desc.element))


def _mean_backward_signature(desc: Any) -> Signature:
    return Signature(tensor("dy", desc.result_shape(), desc.element), output("dx", desc.input_shape, desc.element))


@descriptor(family="pool", op="max_pool", result_order=channels_of("x"))
class MaxPoolDescriptor(_MaxPool):
    """y[n, c, o] = the largest x[n, c, o stride - low + t dilation] of the taps t that are inside.

    There are (size + low + high - dilation (kernel - 1) - 1) // stride + 1 results along an axis; with ceil_mode that is
    rounded up, without a last window that would begin behind the image. NaN is the largest. Of a window all of which is
    outside y is -inf, or the least integer.

    Args:
        input_shape: Shape of x, (batch, channels, ...) with one to three axes.
        kernel: How many places of each axis a window has.
        stride: One number per axis; () stands for the kernel.
        low: Padding before each axis, which is never the largest; () for none.
        high: Padding behind each axis; () for none.
        ceil_mode: Whether windows may end behind the padding.
        dilation: Distance of a window's places, per axis; () stands for ones.
        element: f16, bf16, f32, f64 or an integer.
        indices: Whether positions of the maxima are wanted as well: in the plane, counted along its last axis first; of
            equals the first, of NaN the last, 0 of a window that is outside.
    """

    indices: bool = False

    def signature(self) -> Signature:
        return _max_signature(self)


@descriptor(gradient_of=MaxPoolDescriptor, result_order=channels_of("dy"))
class MaxPoolBackwardDescriptor(_MaxPool):
    """dx_i = the sum of dy_o over the windows o that hold place i and whose index is i.

    Indices are those of max_pool. One outside of the plane is an error; one that is elsewhere than in its window adds
    nothing, or to the place that it names.

    Args:
        input_shape: Shape of dx.
        kernel: As in MaxPoolDescriptor.
        stride: As in MaxPoolDescriptor.
        low: As in MaxPoolDescriptor.
        high: As in MaxPoolDescriptor.
        ceil_mode: As in MaxPoolDescriptor.
        dilation: As in MaxPoolDescriptor.
        element: f16, bf16, f32 or f64.
    """

    def signature(self) -> Signature:
        return _max_backward_signature(self)


@descriptor(family="pool", op="avg_pool")
class AvgPoolDescriptor(_AvgPool):
    """y[n, c, o] = the sum of x[n, c, o stride - low + t] over the taps t that are inside, divided by their number.

    Args:
        input_shape: Shape of x, (batch, channels, ...) with one to three axes.
        kernel: How many places of each axis a window has.
        stride: One number per axis; () stands for the kernel.
        low: Zeros before each axis; () for none.
        high: Zeros behind each axis; () for none.
        ceil_mode: Whether windows may end behind the padding; what is there never counts.
        count_include_pad: Whether padding counts in the number of taps.
        divisor: What sums are divided by instead, or 0.
        element: f16, bf16, f32 or f64.
    """

    def order(self) -> Order | None:
        return channels_of("x") if len(self.input_shape) == 4 else None  # torch's volumes are in C order

    def signature(self) -> Signature:
        return _mean_signature(self)


@descriptor(gradient_of=AvgPoolDescriptor)
class AvgPoolBackwardDescriptor(_AvgPool):
    """dx_i = the sum of dy_o, divided as the sum of window o is, over the windows o that hold place i.

    Args:
        input_shape: Shape of dx.
        kernel: As in AvgPoolDescriptor.
        stride: As in AvgPoolDescriptor.
        low: As in AvgPoolDescriptor.
        high: As in AvgPoolDescriptor.
        ceil_mode: As in AvgPoolDescriptor.
        count_include_pad: As in AvgPoolDescriptor.
        divisor: As in AvgPoolDescriptor.
        element: f16, bf16, f32 or f64.
    """

    def order(self) -> Order | None:
        return channels_of("dy") if len(self.input_shape) == 4 else None  # torch's volumes are in C order

    def signature(self) -> Signature:
        return _mean_backward_signature(self)


@descriptor(family="pool", op="adaptive_max_pool")
class AdaptiveMaxPoolDescriptor(_Adaptive):
    """y[n, c, o] = the largest x of the places floor(o size / results) to ceil((o + 1) size / results) - 1.

    Args:
        input_shape: Shape of x, (batch, channels, ...) with one to three axes.
        output_size: How many results there are along each axis.
        element: f16, bf16, f32, f64 or an integer.
        indices: Whether positions of the maxima are wanted as well, as those of MaxPoolDescriptor.
    """

    indices: bool = False

    def order(self) -> Order | None:
        return channels_of("x") if len(self.input_shape) == 4 else None  # torch's volumes are in C order

    def signature(self) -> Signature:
        return _max_signature(self)


@descriptor(gradient_of=AdaptiveMaxPoolDescriptor)
class AdaptiveMaxPoolBackwardDescriptor(_Adaptive):
    """dx_i = the sum of dy_o over the parts o that hold place i and whose index is i.

    Args:
        input_shape: Shape of dx.
        output_size: How many results there are along each axis.
        element: f16, bf16, f32 or f64.
    """

    def order(self) -> Order | None:
        return channels_of("dy") if len(self.input_shape) == 4 else None  # torch's volumes are in C order

    def signature(self) -> Signature:
        return _max_backward_signature(self)


@descriptor(family="pool", op="adaptive_avg_pool")
class AdaptiveAvgPoolDescriptor(_Adaptive):
    """y[n, c, o] = the mean of x over the places floor(o size / results) to ceil((o + 1) size / results) - 1.

    Args:
        input_shape: Shape of x, (batch, channels, ...) with one to three axes.
        output_size: How many results there are along each axis.
        element: f16, bf16, f32 or f64.
    """

    def order(self) -> Order | None:
        return channels_of("x") if len(self.input_shape) == 4 else None  # torch's volumes are in C order

    def signature(self) -> Signature:
        return _mean_signature(self)


@descriptor(gradient_of=AdaptiveAvgPoolDescriptor)
class AdaptiveAvgPoolBackwardDescriptor(_Adaptive):
    """dx_i = the sum over the parts o that hold place i of dy_o, divided by their sizes.

    Args:
        input_shape: Shape of dx.
        output_size: How many results there are along each axis.
        element: f16, bf16, f32 or f64.
    """

    def order(self) -> Order | None:
        return channels_of("dy") if len(self.input_shape) == 4 else None  # torch's volumes are in C order

    def signature(self) -> Signature:
        return _mean_backward_signature(self)


OPS = (
    Op("max_pool", MaxPoolDescriptor, MaxPoolBackwardDescriptor, "y = the largest x of a window"),
    Op("avg_pool", AvgPoolDescriptor, AvgPoolBackwardDescriptor, "y = the mean x of a window"),
    Op(
        "adaptive_max_pool", AdaptiveMaxPoolDescriptor, AdaptiveMaxPoolBackwardDescriptor, "y = the largest x of a part"
    ),
    Op("adaptive_avg_pool", AdaptiveAvgPoolDescriptor, AdaptiveAvgPoolBackwardDescriptor, "y = the mean x of a part"),
)
