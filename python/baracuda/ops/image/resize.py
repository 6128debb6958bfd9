"""Resizing of one to three axes: what is asked of the kernels in csrc/ops/image. Reference in resize_ref.py.

Functions are in interpolate.py. Where results lie is said in integers, so that every backend finds the same places.
"""

from __future__ import annotations

from typing import Any

from baracuda.call.op import Op
from baracuda.describe.dims import Dim, Shape
from baracuda.describe.elements import Element
from baracuda.describe.order import channels_of
from baracuda.describe.spec import Descriptor, Signature, descriptor, frame, output, tensor

_MOST = 2**30
_REACH = 2**60


@frame
class _Resize(Descriptor):
    """What all resizing shares: result o of axis i lies at (start[i] + o step[i]) / den[i]."""

    __slots__ = ()
    input_shape: Shape
    output_size: tuple[int, ...]
    start: tuple[int, ...]
    step: tuple[int, ...]
    den: tuple[int, ...]

    def validate(self) -> None:
        shape = self.input_shape
        if not 3 <= len(shape) <= 5:
            raise self.wrong("input_shape", shape, "(batch, channels, ...) with one to three axes behind them")
        if any(isinstance(n, Dim) or not 1 <= n < _MOST for n in shape[2:]):
            raise self.wrong("input_shape", shape, "axes of 1 to 2**30 - 1 places; only batch and channels may be Dims")
        for name in ("output_size", "start", "step", "den"):
            if len(getattr(self, name)) != len(shape) - 2:
                raise self.wrong(name, list(getattr(self, name)), f"{len(shape) - 2} numbers, one per axis")
        if any(not 1 <= n < _MOST for n in self.output_size):
            raise self.wrong("output_size", list(self.output_size), "1 <= n < 2**30")
        for i, (start, step, den) in enumerate(zip(self.start, self.step, self.den, strict=True)):
            if den < 1 or 8 * (den + step) >= _REACH or int(self.input_shape[2 + i]) * den >= _REACH:  # type: ignore[arg-type]
                raise self.wrong("den", list(self.den), "at least 1, and less than 2**60 / places")
            if step < 0 or abs(start) + self.output_size[i] * step >= _REACH:
                raise self.wrong("step", list(self.step), "at least 0, and positions below 2**60 / den")

    def result_shape(self) -> Shape:
        """The shape of y and dy."""
        return (*self.input_shape[:2], *self.output_size)

    def attributes(self) -> dict[str, int | float]:
        made: dict[str, int | float] = {}
        for name, default in (("start", 0), ("step", 0), ("den", 1)):
            values = getattr(self, name)
            made |= {f"{name}{i}": values[i] if i < len(values) else default for i in range(3)}
        return made


@frame
class _Nearest(_Resize):
    """Of the place below."""

    __slots__ = ()
    rounded: bool = False
    element: Element = Element.F32

    def validate(self) -> None:
        super().validate()
        if self.rounded and any(n & (n - 1) for n in self.den):
            raise self.wrong("den", list(self.den), "powers of 2, as positions are rounded")

    def attributes(self) -> dict[str, int | float]:
        return super().attributes() | {"rounded": int(self.rounded)}


@frame
class _Filtered(_Resize):
    """Of the places that a filter reaches."""

    __slots__ = ()
    cubic: bool = False
    antialias: bool = False
    a: float = -0.75
    element: Element = Element.F32

    def validate(self) -> None:
        super().validate()
        if not -2 <= self.a <= 2:
            raise self.wrong("a", self.a, "-2 <= a <= 2")

    def attributes(self) -> dict[str, int | float]:
        more = {"cubic": int(self.cubic), "antialias": int(self.antialias), "a": self.a}
        return super().attributes() | more


def _signature(desc: Any) -> Signature:
    return Signature(tensor("x", desc.input_shape, desc.element), output("y", desc.result_shape(), desc.element))


def _backward_signature(desc: Any) -> Signature:
    return Signature(tensor("dy", desc.result_shape(), desc.element), output("dx", desc.input_shape, desc.element))


@descriptor(family="image", op="resize_nearest", result_order=channels_of("x"))
class ResizeNearestDescriptor(_Nearest):
    """y[n, c, o] = x[n, c, p], where p = floor((start + o step) / den) along each axis, at least 0 and at most the last.

    Args:
        input_shape: Shape of x, (batch, channels, ...) with one to three axes.
        output_size: How many results there are along each axis.
        start: Where the first result of each axis lies, in parts of a place.
        step: How far apart results are.
        den: How many parts a place has.
        rounded: Whether positions are rounded to f32 before they are rounded down, as torch does it; then `den` is a
            power of 2.
        element: f16, bf16, f32, f64 or an integer.
    """

    def signature(self) -> Signature:
        return _signature(self)


@descriptor(gradient_of=ResizeNearestDescriptor, result_order=channels_of("dy"))
class ResizeNearestBackwardDescriptor(_Nearest):
    """dx_p = the sum of dy_o over the results o that are x_p.

    Args:
        input_shape: Shape of dx.
        output_size: As in ResizeNearestDescriptor.
        start: As in ResizeNearestDescriptor.
        step: As in ResizeNearestDescriptor.
        den: As in ResizeNearestDescriptor.
        rounded: As in ResizeNearestDescriptor.
        element: f16, bf16, f32 or f64.
    """

    def signature(self) -> Signature:
        return _backward_signature(self)


@descriptor(family="image", op="resize", result_order=channels_of("x"))
class ResizeDescriptor(_Filtered):
    """y[n, c, o] = the sum over places p, along each axis, of w(|p - q|) x[n, c, p], where q = (start + o step) / den.

    w(t) = 1 - t for t < 1, or, if `cubic`, (a + 2) t^3 - (a + 3) t^2 + 1 for t <= 1 and a (t^3 - 5 t^2 + 8 t - 4) for
    t < 2. Places before the first are as the first, and those behind the last as the last. With `antialias` t is divided
    by the larger of 1 and step / den, places outside do not count, and the weights of a result are divided by their sum.

    Args:
        input_shape: Shape of x, (batch, channels, ...) with one to three axes.
        output_size: How many results there are along each axis.
        start: Where the first result of each axis lies, in parts of a place.
        step: How far apart results are.
        den: How many parts a place has.
        cubic: Whether the filter reaches two places, not one.
        antialias: Whether the filter is as wide as results are apart.
        a: Of a cubic filter.
        element: f16, bf16, f32 or f64.
    """

    def signature(self) -> Signature:
        return _signature(self)


@descriptor(gradient_of=ResizeDescriptor, result_order=channels_of("dy"))
class ResizeBackwardDescriptor(_Filtered):
    """dx_p = the sum of dy_o times what result o takes of place p.

    Args:
        input_shape: Shape of dx.
        output_size: As in ResizeDescriptor.
        start: As in ResizeDescriptor.
        step: As in ResizeDescriptor.
        den: As in ResizeDescriptor.
        cubic: As in ResizeDescriptor.
        antialias: As in ResizeDescriptor.
        a: As in ResizeDescriptor.
        element: f16, bf16, f32 or f64.
    """

    def signature(self) -> Signature:
        return _backward_signature(self)


OPS = (
    Op("resize_nearest", ResizeNearestDescriptor, ResizeNearestBackwardDescriptor, "y = the x whose place is below"),
    Op(
        "resize",
        ResizeDescriptor,
        ResizeBackwardDescriptor,
        "y = the sum of the x that a filter reaches, times weights",
    ),
)
