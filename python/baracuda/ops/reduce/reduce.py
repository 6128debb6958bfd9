"""Reductions over any set of axes. Kernels in csrc/ops/reduce, reference in reduce_ref.py.

Sums add blocks of 64 terms per lane and the blocks with compensation, so that the error hardly grows with the length.
"""

from __future__ import annotations

import builtins
from typing import Any

from baracuda.call.compose import Composer, Value, of_elements
from baracuda.call.op import Arg, Call, NotDifferentiable, Op, Recipe, function
from baracuda.describe.dims import Shape, Size, check_axis, shape_text
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.spec import Descriptor, Kinded, Signature, descriptor, frame, output, tensor

DIFFERENTIABLE = ("sum", "mean", "amax", "amin", "prod", "nansum", "nanmean", "logsumexp")
KINDS = (*DIFFERENTIABLE, "count_nonzero", "any", "all")
Axes = int | tuple[int, ...] | list[int] | None


@frame
class ReduceShape(Descriptor):
    """Fields and checks that the reductions share."""

    __slots__ = ()
    input_shape: Shape
    axes: tuple[int, ...] | None = None
    keepdim: bool = False
    element: Element = Element.F32

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

    def attributes(self) -> dict[str, int | float]:
        assert self.axes is not None
        return {"axes": sum_of_bits(self.axes), "keepdim": int(self.keepdim)}


def sum_of_bits(axes: tuple[int, ...]) -> int:
    """Axes as a bit mask."""
    mask = 0
    for a in axes:
        mask |= 1 << a
    return mask


@descriptor(family="reduce", kinds=KINDS)
class ReduceDescriptor(ReduceShape, Kinded):
    """y = sum, product, mean, maximum, ... of x over `axes`.

    NaN propagates, except in "nansum" and "nanmean", which leave it out; the maximum of values that are all -inf is -inf.
    Of nothing the sum is 0, the product 1, the mean NaN, logsumexp -inf; an empty maximum or minimum is refused. Sums and
    products of integers or bool are i64 and wrap. For "count_nonzero", "any" and "all" NaN counts as not zero.

    Args:
        kind: "sum", "mean", "amax", "amin", "prod", "nansum", "nanmean", "logsumexp", "count_nonzero" (i64), "any" or
            "all" (bool; u8 for u8, as in torch).
        input_shape: Shape of x, rank 0-8.
        axes: Axes that are folded; None folds all of them.
        keepdim: Whether the folded axes stay, with size 1.
        element: f16, bf16, f32 or f64; integers and bool too, except for "mean", "nansum", "nanmean" and "logsumexp".
    """

    def signature(self) -> Signature:
        result = self.element
        if self.kind in ("any", "all"):
            result = Element.U8 if result is Element.U8 else Element.BOOL
        elif self.kind == "count_nonzero" or (self.kind in ("sum", "prod") and not result.is_float):
            result = Element.I64
        return Signature(tensor("x", self.input_shape, self.element), output("y", self.reduced_shape(), result))


@descriptor(gradient_of=ReduceDescriptor, kinds=DIFFERENTIABLE)
class ReduceBackwardDescriptor(ReduceShape, Kinded):
    """Dx: dy spread over the folded axes, divided by what a mean counts.

    For amax and amin all elements equal to the result share dy evenly; a NaN result gives NaN. For prod it is dy times the
    product of the other elements, right at zeros; for logsumexp dy exp(x - y), and where y is infinite equal shares for all
    elements that equal it; NaN gets 0 from nansum and nanmean.

    Args:
        kind: As in ReduceDescriptor.
        input_shape: Shape of x and dx.
        axes: Axes that were folded.
        keepdim: Whether y and dy have the folded axes.
        element: f16, bf16, f32 or f64.
    """

    def signature(self) -> Signature:
        reduced, e = self.reduced_shape(), self.element
        dx = output("dx", self.input_shape, e)
        if self.kind in ("sum", "mean"):
            return Signature(tensor("dy", reduced, e), dx)
        if self.kind in ("nansum", "nanmean"):
            return Signature(tensor("dy", reduced, e), tensor("x", self.input_shape, e), dx)
        return Signature(tensor("dy", reduced, e), tensor("x", self.input_shape, e), tensor("y", reduced, e), dx)


@frame
class _SumTo(Descriptor):
    """Fields and checks that forward and backward share."""

    __slots__ = ()
    input_shape: Shape
    target_shape: Shape
    element: Element = Element.F32

    def validate(self) -> None:
        lead = len(self.input_shape) - len(self.target_shape)
        pairs = zip(self.input_shape[max(lead, 0) :], self.target_shape, strict=False)
        if lead < 0 or builtins.any(t not in (1, s) for s, t in pairs):
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

    def signature(self) -> Signature:
        return Signature(tensor("x", self.input_shape, self.element), output("y", self.target_shape, self.element))


@descriptor(gradient_of=SumToDescriptor)
class SumToBackwardDescriptor(_SumTo):
    """Dx = dy broadcast to `input_shape`.

    Args:
        input_shape: Shape of dx.
        target_shape: Shape of dy.
        element: f16, bf16, f32 or f64.
    """

    def signature(self) -> Signature:
        return Signature(tensor("dy", self.target_shape, self.element), output("dx", self.input_shape, self.element))


@frame
class _Trace(Descriptor):
    """Fields and checks that forward and backward share."""

    __slots__ = ()
    input_shape: Shape
    element: Element = Element.F32

    def validate(self) -> None:
        if len(self.input_shape) != 2:
            raise self.wrong("input_shape", self.input_shape, "a matrix")


@descriptor(family="reduce", op="trace")
class TraceDescriptor(_Trace):
    """y = sum of a matrix's diagonal; i64 for integers and bool, which wraps.

    Args:
        input_shape: Shape of x, rank 2, not necessarily square.
        element: f16, bf16, f32, f64, an integer or bool.
    """

    def signature(self) -> Signature:
        result = self.element if self.element.is_float else Element.I64
        return Signature(tensor("x", self.input_shape, self.element), output("y", (), result))


@descriptor(gradient_of=TraceDescriptor)
class TraceBackwardDescriptor(_Trace):
    """Dx = dy on the diagonal, 0 elsewhere.

    Args:
        input_shape: Shape of dx, rank 2.
        element: f16, bf16, f32 or f64.
    """

    def signature(self) -> Signature:
        return Signature(tensor("dy", (), self.element), output("dx", self.input_shape, self.element))


_SUMMARIES = {
    "sum": "y = sum of x over axes",
    "mean": "y = mean of x over axes",
    "amax": "y = maximum of x over axes; NaN propagates",
    "amin": "y = minimum of x over axes; NaN propagates",
    "prod": "y = product of x over axes",
    "nansum": "y = sum of x over axes without NaN",
    "nanmean": "y = mean of x over axes without NaN",
    "logsumexp": "y = log(sum(exp(x))) over axes",
}
_TRUTHS = {
    "count_nonzero": "y = how many elements of x are not zero, over axes",
    "any": "y = whether some element of x is not zero, over axes",
    "all": "y = whether no element of x is zero, over axes",
}
OPS = (
    *(Op(kind, ReduceDescriptor, ReduceBackwardDescriptor, text) for kind, text in _SUMMARIES.items()),
    *(
        Op(kind, ReduceDescriptor, NotDifferentiable("the result is piecewise constant"), t)
        for kind, t in _TRUTHS.items()
    ),
    Op("trace", TraceDescriptor, TraceBackwardDescriptor, "y = sum of x[i, i]"),
    Op("sum_to", SumToDescriptor, SumToBackwardDescriptor, "y = x summed down to a shape that broadcasts to its own"),
)


def axes_of(dim: Axes) -> tuple[int, ...] | None:
    """Torch's `dim`: None and an empty tuple mean every axis."""
    axes = tuple(dim) if isinstance(dim, (tuple, list)) else () if dim is None else (dim,)
    return axes or None


def _reduce(call: Call, kind: str, x: Arg, dim: Axes, keepdim: bool, dtype: Any = None) -> Recipe:
    to = None if dtype is None else Element.coerce(dtype, "dtype")
    element = to or x.element
    if kind == "logsumexp" and not element.is_float:
        element = Element.F32
    if kind == "nansum" and not element.is_float:
        kind = "sum"
    if kind in ("mean", "nanmean") and not (element if kind == "mean" else x.element).is_float:
        what = f"dtype: got {to}" if to else f"input: got element {element}"
        raise InvalidProblemError(f"{kind}: {what}, want a float element. Cast the input first.")
    axes = axes_of(dim)
    if kind in ("any", "all") and dim is not None and axes is None:
        axes = ()  # in torch an empty list is no axis for these two, and every axis for the others
    return of_elements(call, ReduceDescriptor(kind, x.shape, axes, keepdim, element), to, x=x)


def _spread(call: Call, kind: str, dy: Arg, x: Arg, dim: Axes, keepdim: bool) -> Recipe:
    desc = ReduceBackwardDescriptor(kind, x.shape, axes_of(dim), keepdim, dy.element)
    return of_elements(call, desc, x.element, dy=dy)


def _share(call: Call, kind: str, dy: Arg, x: Arg, y: Arg, dim: Axes, keepdim: bool) -> Recipe:
    desc = ReduceBackwardDescriptor(kind, x.shape, axes_of(dim), keepdim, dy.element)
    return of_elements(call, desc, x.element, dy=dy, x=x, y=y)


def _masked(call: Call, kind: str, dy: Arg, x: Arg, dim: Axes, keepdim: bool) -> Recipe:
    desc = ReduceBackwardDescriptor(kind, x.shape, axes_of(dim), keepdim, dy.element)
    return of_elements(call, desc, x.element, dy=dy, x=x)


@function(tensors="input")
def sum(
    call: Call, input: Arg, dim: Axes = None, keepdim: bool = False, *, dtype: Any = None, out: Arg | None = None
) -> Recipe:
    """Sum over `dim` (all axes by default), as torch.sum; integers and bool give i64; of `input` cast to `dtype`."""
    return _reduce(call, "sum", input, dim, keepdim, dtype)


@function(tensors="dy input")
def sum_backward(call: Call, dy: Arg, input: Arg, dim: Axes = None, keepdim: bool = False) -> Recipe:
    """Gradient of sum with respect to `input`, of which only the shape matters."""
    return _spread(call, "sum", dy, input, dim, keepdim)


@function(tensors="input")
def mean(
    call: Call, input: Arg, dim: Axes = None, keepdim: bool = False, *, dtype: Any = None, out: Arg | None = None
) -> Recipe:
    """Mean over `dim` (all axes by default), as torch.mean; of `input` cast to `dtype`."""
    return _reduce(call, "mean", input, dim, keepdim, dtype)


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
def prod(
    call: Call, input: Arg, dim: int | None = None, keepdim: bool = False, *, dtype: Any = None, out: Arg | None = None
) -> Recipe:
    """Product along `dim` (of all elements by default), as torch.prod; integers and bool give i64; of `input` cast to `dtype`."""
    return _reduce(call, "prod", input, dim, keepdim, dtype)


@function(tensors="dy input result")
def prod_backward(
    call: Call, dy: Arg, input: Arg, result: Arg, dim: int | None = None, keepdim: bool = False
) -> Recipe:
    """Gradient of prod with respect to `input`, right where elements are zero."""
    return _share(call, "prod", dy, input, result, dim, keepdim)


@function(tensors="input")
def nansum(
    call: Call, input: Arg, dim: Axes = None, keepdim: bool = False, *, dtype: Any = None, out: Arg | None = None
) -> Recipe:
    """Sum over `dim` without NaN, as torch.nansum; integers and bool give i64; of `input` cast to `dtype`."""
    return _reduce(call, "nansum", input, dim, keepdim, dtype)


@function(tensors="dy input")
def nansum_backward(call: Call, dy: Arg, input: Arg, dim: Axes = None, keepdim: bool = False) -> Recipe:
    """Gradient of nansum with respect to `input`."""
    return _masked(call, "nansum", dy, input, dim, keepdim)


@function(tensors="input")
def nanmean(
    call: Call, input: Arg, dim: Axes = None, keepdim: bool = False, *, dtype: Any = None, out: Arg | None = None
) -> Recipe:
    """Mean over `dim` of the elements that are no NaN, as torch.nanmean; NaN where there are none; of `input` cast to `dtype`."""
    return _reduce(call, "nanmean", input, dim, keepdim, dtype)


@function(tensors="dy input")
def nanmean_backward(call: Call, dy: Arg, input: Arg, dim: Axes = None, keepdim: bool = False) -> Recipe:
    """Gradient of nanmean with respect to `input`."""
    return _masked(call, "nanmean", dy, input, dim, keepdim)


@function(tensors="input")
def logsumexp(call: Call, input: Arg, dim: Axes, keepdim: bool = False, *, out: Arg | None = None) -> Recipe:
    """log(sum(exp(input))) over `dim`, without overflow, as torch.logsumexp; of integers in f32."""
    return _reduce(call, "logsumexp", input, dim, keepdim)


@function(tensors="dy input result")
def logsumexp_backward(call: Call, dy: Arg, input: Arg, result: Arg, dim: Axes, keepdim: bool = False) -> Recipe:
    """Gradient of logsumexp with respect to `input`, from its result."""
    return _share(call, "logsumexp", dy, input, result, dim, keepdim)


@function(tensors="input")
def count_nonzero(call: Call, input: Arg, dim: Axes = None) -> Recipe:
    """How many elements along `dim` (of all by default) are not zero, as torch.count_nonzero (i64)."""
    return _reduce(call, "count_nonzero", input, dim, False)


@function(tensors="input")
def any(call: Call, input: Arg, dim: Axes = None, keepdim: bool = False, *, out: Arg | None = None) -> Recipe:
    """Whether some element along `dim` is not zero, as torch.any; u8 for u8. An empty list of dimensions folds none."""
    return _reduce(call, "any", input, dim, keepdim)


@function(tensors="input")
def all(call: Call, input: Arg, dim: Axes = None, keepdim: bool = False, *, out: Arg | None = None) -> Recipe:
    """Whether no element along `dim` is zero, as torch.all; u8 for u8. An empty list of dimensions folds none."""
    return _reduce(call, "all", input, dim, keepdim)


@function(tensors="input")
def trace(call: Call, input: Arg) -> Recipe:
    """Sum of the diagonal of a matrix, as torch.trace; integers give i64."""
    return call(TraceDescriptor(input.shape, input.element), x=input)


@function(tensors="dy input")
def trace_backward(call: Call, dy: Arg, input: Arg) -> Recipe:
    """Gradient of trace with respect to `input`, of which only the shape matters."""
    return call(TraceBackwardDescriptor(input.shape, input.element), dy=dy)


@function(tensors="input")
def sum_to(call: Call, input: Arg, shape: tuple[int, ...] | int) -> Recipe:
    """`input` summed down to `shape`, which broadcasts to its shape, as torch.Tensor.sum_to_size; sums of integers are i64."""
    wanted = (shape,) if isinstance(shape, int) else tuple(shape)
    if not input.element.is_float:
        return call.steps(_sum_to_of_integers, input, wanted=wanted)
    return call(SumToDescriptor(input.shape, wanted, input.element), x=input)


def _sum_to_of_integers(c: Composer, input: Value, wanted: tuple[int, ...]) -> Value:
    SumToDescriptor(input.shape, wanted)  # checks the shapes
    lead = input.rank - len(wanted)
    axes = tuple(i for i, n in enumerate(input.shape) if i < lead or (wanted[i - lead] == 1 and n != 1))
    return c.reshape(c.of(sum, input, axes, True) if axes else input, wanted)


@function(tensors="dy input")
def sum_to_backward(call: Call, dy: Arg, input: Arg, shape: tuple[int, ...] | int = ()) -> Recipe:
    """Gradient of sum_to with respect to `input`: dy broadcast to its shape."""
    return call(SumToBackwardDescriptor(input.shape, dy.shape, input.element), dy=dy)


for _function, _gradient in (
    (sum, sum_backward),
    (mean, mean_backward),
    (amax, amax_backward),
    (amin, amin_backward),
    (sum_to, sum_to_backward),
    (prod, prod_backward),
    (nansum, nansum_backward),
    (nanmean, nanmean_backward),
    (logsumexp, logsumexp_backward),
    (trace, trace_backward),
):
    _function.pulled_by(_gradient)
