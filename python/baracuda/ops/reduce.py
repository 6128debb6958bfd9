"""Reductions over any set of axes. Kernels in csrc/ops/reduce, reference in reduce_ref.py.

Sums add blocks of 64 terms per lane and the blocks with compensation, so that the error hardly grows with the length.
"""

from __future__ import annotations

from typing import Any

from baracuda.dims import Shape, Size, check_axis, shape_text
from baracuda.elements import Element
from baracuda.errors import InvalidProblemError
from baracuda.op import Arg, Call, NotDifferentiable, Op, Recipe, function
from baracuda.spec import Descriptor, Signature, descriptor, output, tensor

KINDS = ("sum", "mean", "amax", "amin")
Axes = int | tuple[int, ...] | list[int] | None


class _Reduce(Descriptor):
    """Fields and checks that forward and backward share."""

    __slots__ = ()
    kind: str
    input_shape: Shape
    axes: tuple[int, ...] | None
    keepdim: bool
    element: Element

    def validate(self) -> None:
        rank, name = len(self.input_shape), f"{type(self).__name__}.axes"
        if self.axes is None:
            found = tuple(range(rank))
        else:
            given = self.axes if isinstance(self.axes, (tuple, list)) else (self.axes,)
            found = tuple(sorted(check_axis(a, rank, name) for a in given))
            if len(set(found)) != len(found):
                raise self.wrong("axes", self.axes, "every axis once")
        object.__setattr__(self, "axes", found if rank else ())
        object.__setattr__(self, "keepdim", bool(self.keepdim))

    def reduced_shape(self) -> Shape:
        """The result's shape."""
        assert self.axes is not None
        kept: list[Size] = []
        for i, size in enumerate(self.input_shape):
            if i not in self.axes:
                kept.append(size)
            elif self.keepdim:
                kept.append(1)
        return tuple(kept)

    def attributes(self) -> tuple[int, ...]:
        assert self.axes is not None
        return (sum_of_bits(self.axes), int(self.keepdim))


def sum_of_bits(axes: tuple[int, ...]) -> int:
    """Axes as a bit mask."""
    mask = 0
    for a in axes:
        mask |= 1 << a
    return mask


@descriptor(family="reduce", kinds=KINDS)
class ReduceDescriptor(_Reduce):
    """y = sum, mean, maximum or minimum of x over `axes`.

    NaN propagates; the maximum of values that are all -inf is -inf. Of nothing the sum is 0 and the mean NaN; an empty
    maximum or minimum is refused. The sum of integers or bool is i64 and wraps.

    Args:
        kind: "sum", "mean", "amax" or "amin".
        input_shape: Shape of x, rank 0-8.
        axes: Axes that are folded; None folds all of them.
        keepdim: Whether the folded axes stay, with size 1.
        element: f16, bf16, f32 or f64; integers and bool too, except for "mean".
    """

    kind: str
    input_shape: Shape
    axes: tuple[int, ...] | None = None
    keepdim: bool = False
    element: Element = Element.F32

    def signature(self) -> Signature:
        widened = self.kind == "sum" and not self.element.is_float
        return Signature(
            tensor("x", self.input_shape, self.element),
            output("y", self.reduced_shape(), Element.I64 if widened else self.element),
        )

    def backward(self) -> ReduceBackwardDescriptor:
        """The gradient's descriptor."""
        return ReduceBackwardDescriptor(self.kind, self.input_shape, self.axes, self.keepdim, self.element)


@descriptor(family="reduce", direction="backward", kinds=KINDS)
class ReduceBackwardDescriptor(_Reduce):
    """Dx: dy spread over the folded axes, divided by their size for a mean.

    For amax and amin all elements equal to the result share dy evenly; a NaN result gives NaN.

    Args:
        kind: As in ReduceDescriptor.
        input_shape: Shape of x and dx.
        axes: Axes that were folded.
        keepdim: Whether y and dy have the folded axes.
        element: f16, bf16, f32 or f64.
    """

    kind: str
    input_shape: Shape
    axes: tuple[int, ...] | None = None
    keepdim: bool = False
    element: Element = Element.F32

    def signature(self) -> Signature:
        reduced, e = self.reduced_shape(), self.element
        dx = output("dx", self.input_shape, e)
        if self.kind in ("sum", "mean"):
            return Signature(tensor("dy", reduced, e), dx)
        return Signature(tensor("dy", reduced, e), tensor("x", self.input_shape, e), tensor("y", reduced, e), dx)


@descriptor(family="reduce", kinds=("argmax", "argmin"))
class ArgReduceDescriptor(Descriptor):
    """Y = position of the first maximum or minimum along an axis, or in the whole tensor in logical order.

    The first NaN wins over every number. An empty axis is refused.

    Args:
        kind: "argmax" or "argmin".
        input_shape: Shape of x, rank 0-8.
        axis: The searched axis; None searches the whole tensor.
        keepdim: Whether the searched axes stay, with size 1.
        element: Any real element.
        index_element: i64 or i32.
    """

    kind: str
    input_shape: Shape
    axis: int | None = None
    keepdim: bool = False
    element: Element = Element.F32
    index_element: Element = Element.I64

    def validate(self) -> None:
        if self.axis is not None:
            axis = check_axis(self.axis, len(self.input_shape), f"{type(self).__name__}.axis")
            object.__setattr__(self, "axis", axis if self.input_shape else None)

    def aux_element(self) -> Element:
        return self.index_element

    def signature(self) -> Signature:
        axes = range(len(self.input_shape)) if self.axis is None else (self.axis,)
        sizes = [1 if i in axes else s for i, s in enumerate(self.input_shape) if self.keepdim or i not in axes]
        return Signature(tensor("x", self.input_shape, self.element), output("y", tuple(sizes), self.index_element))

    def attributes(self) -> tuple[int, ...]:
        return (-1 if self.axis is None else self.axis, int(self.keepdim))


class _SumTo(Descriptor):
    """Fields and checks that forward and backward share."""

    __slots__ = ()
    input_shape: Shape
    target_shape: Shape

    def validate(self) -> None:
        lead = len(self.input_shape) - len(self.target_shape)
        pairs = zip(self.input_shape[max(lead, 0) :], self.target_shape, strict=False)
        if lead < 0 or any(t not in (1, s) for s, t in pairs):
            want = f"a shape that broadcasts to {shape_text(self.input_shape)}"
            raise self.wrong("target_shape", self.target_shape, want)


@descriptor(family="reduce", op="sum_to")
class SumToDescriptor(_SumTo):
    """Y = x summed over the dimensions along which `target_shape` was broadcast: the reverse of broadcasting.

    Args:
        input_shape: Shape of x.
        target_shape: Shape of y, which broadcasts to `input_shape`.
        element: f16, bf16, f32 or f64.
    """

    input_shape: Shape
    target_shape: Shape
    element: Element = Element.F32

    def signature(self) -> Signature:
        return Signature(tensor("x", self.input_shape, self.element), output("y", self.target_shape, self.element))

    def backward(self) -> SumToBackwardDescriptor:
        """The gradient's descriptor."""
        return SumToBackwardDescriptor(self.input_shape, self.target_shape, self.element)


@descriptor(family="reduce", op="sum_to", direction="backward")
class SumToBackwardDescriptor(_SumTo):
    """Dx = dy broadcast to `input_shape`.

    Args:
        input_shape: Shape of dx.
        target_shape: Shape of dy.
        element: f16, bf16, f32 or f64.
    """

    input_shape: Shape
    target_shape: Shape
    element: Element = Element.F32

    def signature(self) -> Signature:
        return Signature(tensor("dy", self.target_shape, self.element), output("dx", self.input_shape, self.element))


_SUMMARIES = {
    "sum": "y = sum of x over axes",
    "mean": "y = mean of x over axes",
    "amax": "y = maximum of x over axes; NaN propagates",
    "amin": "y = minimum of x over axes; NaN propagates",
}
_NO_GRADIENT = NotDifferentiable("positions are piecewise constant")
OPS = (
    *(Op(kind, ReduceDescriptor, ReduceBackwardDescriptor, text) for kind, text in _SUMMARIES.items()),
    Op("argmax", ArgReduceDescriptor, _NO_GRADIENT, "y = position of the first maximum; the first NaN wins"),
    Op("argmin", ArgReduceDescriptor, _NO_GRADIENT, "y = position of the first minimum; the first NaN wins"),
    Op("sum_to", SumToDescriptor, SumToBackwardDescriptor, "y = x summed down to a shape that broadcasts to its own"),
)


def _axes(dim: Axes) -> tuple[int, ...] | None:
    """Torch's `dim`: None and an empty tuple mean every axis."""
    axes = tuple(dim) if isinstance(dim, (tuple, list)) else () if dim is None else (dim,)
    return axes or None


def _reduce(call: Call, kind: str, x: Arg, dim: Axes, keepdim: bool) -> Recipe:
    if kind == "mean" and not x.element.is_float:
        raise InvalidProblemError(f"mean: input: got element {x.element}, want a float element. Cast it first.")
    return call(ReduceDescriptor(kind, x.shape, _axes(dim), keepdim, x.element), x=x)


def _spread(call: Call, kind: str, dy: Arg, x: Arg, dim: Axes, keepdim: bool) -> Recipe:
    return call(ReduceBackwardDescriptor(kind, x.shape, _axes(dim), keepdim, x.element), dy=dy)


def _share(call: Call, kind: str, dy: Arg, x: Arg, y: Arg, dim: Axes, keepdim: bool) -> Recipe:
    return call(ReduceBackwardDescriptor(kind, x.shape, _axes(dim), keepdim, x.element), dy=dy, x=x, y=y)


@function(tensors="input")
def sum(call: Call, input: Arg, dim: Axes = None, keepdim: bool = False, *, out: Arg | None = None) -> Recipe:
    """Sum over `dim` (all axes by default), as torch.sum; integers and bool give i64."""
    return _reduce(call, "sum", input, dim, keepdim)


@function(tensors="dy input")
def sum_backward(call: Call, dy: Arg, input: Arg, dim: Axes = None, keepdim: bool = False) -> Recipe:
    """Gradient of sum with respect to `input`, of which only the shape matters."""
    return _spread(call, "sum", dy, input, dim, keepdim)


@function(tensors="input")
def mean(call: Call, input: Arg, dim: Axes = None, keepdim: bool = False, *, out: Arg | None = None) -> Recipe:
    """Mean over `dim` (all axes by default), as torch.mean."""
    return _reduce(call, "mean", input, dim, keepdim)


@function(tensors="dy input")
def mean_backward(call: Call, dy: Arg, input: Arg, dim: Axes = None, keepdim: bool = False) -> Recipe:
    """Gradient of mean with respect to `input`, of which only the shape matters."""
    return _spread(call, "mean", dy, input, dim, keepdim)


@function(tensors="input")
def amax(call: Call, input: Arg, dim: Axes = (), keepdim: bool = False, *, out: Arg | None = None) -> Recipe:
    """Maximum over `dim` (all axes by default), as torch.amax."""
    return _reduce(call, "amax", input, dim, keepdim)


@function(tensors="dy input result")
def amax_backward(call: Call, dy: Arg, input: Arg, result: Arg, dim: Axes = (), keepdim: bool = False) -> Recipe:
    """Gradient of amax with respect to `input`, given its result; ties share evenly."""
    return _share(call, "amax", dy, input, result, dim, keepdim)


@function(tensors="input")
def amin(call: Call, input: Arg, dim: Axes = (), keepdim: bool = False, *, out: Arg | None = None) -> Recipe:
    """Minimum over `dim` (all axes by default), as torch.amin."""
    return _reduce(call, "amin", input, dim, keepdim)


@function(tensors="dy input result")
def amin_backward(call: Call, dy: Arg, input: Arg, result: Arg, dim: Axes = (), keepdim: bool = False) -> Recipe:
    """Gradient of amin with respect to `input`, given its result; ties share evenly."""
    return _share(call, "amin", dy, input, result, dim, keepdim)


@function(tensors="input")
def argmax(call: Call, input: Arg, dim: int | None = None, keepdim: bool = False, *, out: Arg | None = None) -> Recipe:
    """Position of the first maximum along `dim`, or in the flattened tensor, as torch.argmax (i64)."""
    return call(ArgReduceDescriptor("argmax", input.shape, dim, keepdim, input.element), x=input)


@function(tensors="input")
def argmin(call: Call, input: Arg, dim: int | None = None, keepdim: bool = False, *, out: Arg | None = None) -> Recipe:
    """Position of the first minimum along `dim`, or in the flattened tensor, as torch.argmin (i64)."""
    return call(ArgReduceDescriptor("argmin", input.shape, dim, keepdim, input.element), x=input)


@function(tensors="input")
def sum_to(call: Call, input: Arg, shape: tuple[int, ...]) -> Recipe:
    """`input` summed down to `shape`, which broadcasts to its shape, as torch.Tensor.sum_to_size."""
    return call(SumToDescriptor(input.shape, shape, input.element), x=input)


@function(tensors="dy input")
def sum_to_backward(call: Call, dy: Arg, input: Arg, shape: tuple[int, ...] = ()) -> Recipe:
    """Gradient of sum_to with respect to `input`: dy broadcast to its shape."""
    return call(SumToBackwardDescriptor(input.shape, dy.shape, input.element), dy=dy)


@sum.vjp
def _sum_vjp(input: Any, dim: Axes = None, keepdim: bool = False) -> tuple[Any, Any]:
    return sum(input, dim, keepdim), lambda dy: sum_backward(dy, input, dim, keepdim)


@mean.vjp
def _mean_vjp(input: Any, dim: Axes = None, keepdim: bool = False) -> tuple[Any, Any]:
    return mean(input, dim, keepdim), lambda dy: mean_backward(dy, input, dim, keepdim)


@amax.vjp
def _amax_vjp(input: Any, dim: Axes = (), keepdim: bool = False) -> tuple[Any, Any]:
    y = amax(input, dim, keepdim)
    return y, lambda dy: amax_backward(dy, input, y, dim, keepdim)


@amin.vjp
def _amin_vjp(input: Any, dim: Axes = (), keepdim: bool = False) -> tuple[Any, Any]:
    y = amin(input, dim, keepdim)
    return y, lambda dy: amin_backward(dy, input, y, dim, keepdim)


@sum_to.vjp
def _sum_to_vjp(input: Any, shape: tuple[int, ...]) -> tuple[Any, Any]:
    return sum_to(input, shape), lambda dy: sum_to_backward(dy, input, shape)
