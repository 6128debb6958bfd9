"""Extrema with their positions, and both extrema at once. Kernels in csrc/ops/reduce, reference in extrema_ref.py."""

from __future__ import annotations

from typing import Any, cast

from baracuda.call.op import Arg, Call, Function, NotDifferentiable, Op, Recipe, function
from baracuda.describe.dims import Shape, check_axis
from baracuda.describe.elements import Element
from baracuda.describe.spec import Descriptor, Kinded, Signature, descriptor, frame, output, tensor
from baracuda.ops.reduce import reduce
from baracuda.ops.reduce.reduce import Axes, ReduceDescriptor, ReduceShape, axes_of


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

    def signature(self) -> Signature:
        axes = range(len(self.input_shape)) if self.axis is None else (self.axis,)
        sizes = [1 if i in axes else s for i, s in enumerate(self.input_shape) if self.keepdim or i not in axes]
        return Signature(tensor("x", self.input_shape, self.element), output("y", tuple(sizes), self.index_element))

    def attributes(self) -> dict[str, int | float]:
        return {"axis": -1 if self.axis is None else self.axis, "keepdim": int(self.keepdim)}


@frame
class _Indexed(Kinded):
    """Fields that forward and backward share."""

    __slots__ = ()
    input_shape: Shape
    axis: int = -1
    keepdim: bool = False
    element: Element = Element.F32
    index_element: Element = Element.I64
    axis_of = "input_shape"

    def reduced_shape(self) -> Shape:
        """The results' shape."""
        sizes = [1 if i == self.axis else s for i, s in enumerate(self.input_shape) if self.keepdim or i != self.axis]
        return tuple(sizes)

    def attributes(self) -> dict[str, int | float]:
        return {"axis": self.axis if self.input_shape else -1, "keepdim": int(self.keepdim)}


@descriptor(family="reduce", kinds=("max", "min"))
class IndexedExtremumDescriptor(_Indexed):
    """values = maximum or minimum of x along an axis, indices = its first position.

    The first NaN wins over every number. An empty axis is refused.

    Args:
        kind: "max" or "min".
        input_shape: Shape of x, rank 0-8.
        axis: The axis that is folded.
        keepdim: Whether it stays, with size 1.
        element: Any real element.
        index_element: i64 or i32.
    """

    def signature(self) -> Signature:
        return Signature(
            tensor("x", self.input_shape, self.element),
            output("values", self.reduced_shape(), self.element),
            output("indices", self.reduced_shape(), self.index_element),
        )


@descriptor(gradient_of=IndexedExtremumDescriptor)
class IndexedExtremumBackwardDescriptor(_Indexed):
    """dx = dvalues at the returned positions, 0 elsewhere. Positions outside of the axis are an IndexOutOfRangeError.

    Args:
        kind: "max" or "min".
        input_shape: Shape of dx.
        axis: The axis that was folded.
        keepdim: Whether it stayed.
        element: f16, bf16, f32 or f64.
        index_element: i64 or i32.
    """

    def signature(self) -> Signature:
        return Signature(
            tensor("dvalues", self.reduced_shape(), self.element),
            tensor("indices", self.reduced_shape(), self.index_element),
            output("dx", self.input_shape, self.element),
        )


@descriptor(family="reduce", op="aminmax")
class MinMaxDescriptor(ReduceShape):
    """Minimum and maximum of x over `axes`, as amin and amax give them.

    Args:
        input_shape: Shape of x, rank 0-8.
        axes: Axes that are folded; None folds all of them.
        keepdim: Whether the folded axes stay, with size 1.
        element: Any real element.
    """

    def signature(self) -> Signature:
        reduced, e = self.reduced_shape(), self.element
        return Signature(tensor("x", self.input_shape, e), output("min", reduced, e), output("max", reduced, e))


@descriptor(gradient_of=MinMaxDescriptor)
class MinMaxBackwardDescriptor(ReduceShape):
    """dx: all elements equal to the minimum share dmin evenly, those equal to the maximum dmax.

    Args:
        input_shape: Shape of x and dx.
        axes: Axes that were folded.
        keepdim: Whether they stayed.
        element: f16, bf16, f32 or f64.
    """

    def signature(self) -> Signature:
        reduced, e = self.reduced_shape(), self.element
        given = (tensor("dmin", reduced, e), tensor("dmax", reduced, e), tensor("x", self.input_shape, e))
        return Signature(
            *given, tensor("min", reduced, e), tensor("max", reduced, e), output("dx", self.input_shape, e)
        )


_NO_GRADIENT = NotDifferentiable("positions are piecewise constant")
_FIRST = "first position along an axis; the first NaN wins"
OPS = (
    Op("argmax", ArgReduceDescriptor, _NO_GRADIENT, "y = position of the first maximum; the first NaN wins"),
    Op("argmin", ArgReduceDescriptor, _NO_GRADIENT, "y = position of the first minimum; the first NaN wins"),
    *(
        Op(
            kind,
            IndexedExtremumDescriptor,
            IndexedExtremumBackwardDescriptor,
            f"values, indices = {word} and its {_FIRST}",
        )
        for kind, word in (("max", "maximum"), ("min", "minimum"))
    ),
    Op("aminmax", MinMaxDescriptor, MinMaxBackwardDescriptor, "min, max = minimum and maximum of x over axes"),
)


def _make(kind: str, word: str) -> tuple[Function, ...]:
    """Argmax, max and its gradient, or those of minima."""
    general = f"a{kind}"

    def position(
        call: Call, input: Arg, dim: int | None = None, keepdim: bool = False, *, out: Arg | None = None
    ) -> Recipe:
        return call(ArgReduceDescriptor(f"arg{kind}", input.shape, dim, keepdim, input.element), x=input)

    def extremum(call: Call, input: Arg, dim: int | None = None, keepdim: bool = False) -> Recipe:
        if dim is None:
            return call(ReduceDescriptor(general, input.shape, None, False, input.element), x=input)
        return call(IndexedExtremumDescriptor(kind, input.shape, dim, keepdim, input.element), x=input)

    def backward(call: Call, dvalues: Arg, indices: Arg, input: Arg, dim: int, keepdim: bool = False) -> Recipe:
        desc = IndexedExtremumBackwardDescriptor(kind, input.shape, dim, keepdim, input.element, indices.element)
        return call(desc, dvalues=dvalues, indices=indices)

    position.__name__, extremum.__name__, backward.__name__ = f"arg{kind}", kind, f"{kind}_backward"
    position.__doc__ = (
        f"Position of the first {word} along `dim`, or in the flattened tensor, as torch.arg{kind} (i64)."
    )
    extremum.__doc__ = f"The {word} of all elements, or ({word}, its first position) along `dim`, as torch.{kind}; for two tensors: {word}."
    backward.__doc__ = f"Gradient of {kind} along `dim` with respect to `input`, of which only the shape matters."
    forward, gradient = function(tensors="input")(extremum), function(tensors="dvalues indices input")(backward)

    def of_two(input: Any, dim: Any, keepdim: bool) -> Any:
        from baracuda import functional as F

        return getattr(F, f"{kind}imum")(input, dim) if hasattr(dim, "__dlpack__") else NotImplemented

    forward.or_else(of_two)

    @forward.vjp
    def _pull(input: Any, dim: Any = None, keepdim: bool = False) -> tuple[Any, Any]:
        if hasattr(dim, "__dlpack__"):
            from baracuda import functional as F

            return cast(tuple[Any, Any], getattr(F, f"{kind}imum").vjp_rule(input, dim))
        found = forward(input, dim, keepdim)
        if dim is None:
            share = reduce.amax_backward if kind == "max" else reduce.amin_backward
            return found, lambda dy: share(dy, input, found)
        return found, lambda dy: gradient(dy[0] if isinstance(dy, tuple) else dy, found[1], input, dim, keepdim)

    return function(tensors="input")(position), forward, gradient


argmax, max, max_backward = _make("max", "maximum")
argmin, min, min_backward = _make("min", "minimum")


@function(tensors="input")
def aminmax(call: Call, input: Arg, *, dim: Axes = None, keepdim: bool = False) -> Recipe:
    """(minimum, maximum) over `dim` (all axes by default), as torch.aminmax."""
    return call(MinMaxDescriptor(input.shape, axes_of(dim), keepdim, input.element), x=input)


@function(tensors="dmin dmax input min max")
def aminmax_backward(
    call: Call, dmin: Arg, dmax: Arg, input: Arg, min: Arg, max: Arg, dim: Axes = None, keepdim: bool = False
) -> Recipe:
    """Gradient of aminmax with respect to `input`, given both results; ties share evenly."""
    desc = MinMaxBackwardDescriptor(input.shape, axes_of(dim), keepdim, input.element)
    return call(desc, dmin=dmin, dmax=dmax, x=input, min=min, max=max)


aminmax.pulled_by(aminmax_backward, "min max")
