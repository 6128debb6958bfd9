"""Tensors turned, cut and written into. Kernels in csrc/ops/layout, reference in arrange_ref.py.

All are copies and fills of parts: exact, of any element, from any strides to any strides.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

from baracuda.call.compose import Composer, Value, composed
from baracuda.call.op import Arg, Call, Op, Recipe, function
from baracuda.call.steps import made_of
from baracuda.describe.dims import Dim, Shape, Size, check_axis
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.options import integers
from baracuda.describe.order import as_one, channels_of
from baracuda.describe.spec import Descriptor, Signature, descriptor, frame, output, scalar, tensor
from baracuda.ops.layout.layout import CopyDescriptor


@descriptor(family="layout", op="flip", result_order=as_one("x"))
class FlipDescriptor(Descriptor):
    """y[..., i, ...] = x[..., n - 1 - i, ...] along each of `axes`.

    Args:
        shape: Shape of x and y, rank 0-8.
        axes: Axes that are turned round, each once.
        element: Any element of 1, 2, 4, 8 or 16 bytes.
    """

    shape: Shape
    axes: tuple[int, ...] = ()
    element: Element = Element.F32

    def validate(self) -> None:
        axes = tuple(sorted(check_axis(a, len(self.shape), f"{type(self).__name__}.axes") for a in self.axes))
        if len(set(axes)) != len(axes):
            raise self.wrong("axes", self.axes, "every axis once")
        object.__setattr__(self, "axes", axes)

    def signature(self) -> Signature:
        return Signature(tensor("x", self.shape, self.element), output("y", self.shape, self.element))

    def attributes(self) -> dict[str, int | float]:
        return {"axes": sum(1 << a for a in self.axes)}


@descriptor(family="layout", op="roll", result_order=channels_of("x"))
class RollDescriptor(Descriptor):
    """y[..., (i + shift) mod n, ...] = x[..., i, ...] along every axis.

    Args:
        shape: Shape of x and y, rank 0-8.
        shifts: One shift per axis; any integers, 0 for an axis that stays.
        element: Any element of 1, 2, 4, 8 or 16 bytes.
    """

    shape: Shape
    shifts: tuple[int, ...]
    element: Element = Element.F32

    def validate(self) -> None:
        if len(self.shifts) != len(self.shape):
            raise self.wrong("shifts", list(self.shifts), f"{len(self.shape)} numbers, one per axis")

    def signature(self) -> Signature:
        return Signature(tensor("x", self.shape, self.element), output("y", self.shape, self.element))

    def attributes(self) -> dict[str, int | float]:
        return {f"shift{d}": shift for d, shift in enumerate((*self.shifts, *(0,) * (8 - len(self.shifts))))}


@frame
class _Triangle(Descriptor):
    """Fields and checks that both triangles share."""

    __slots__ = ()
    shape: Shape
    diagonal: int = 0
    element: Element = Element.F32

    def validate(self) -> None:
        if len(self.shape) < 2:
            raise self.wrong("shape", self.shape, "rank 2-8: matrices in the last two dimensions")

    def signature(self) -> Signature:
        return Signature(tensor("x", self.shape, self.element), output("y", self.shape, self.element))


@descriptor(family="layout", op="tril")
class TrilDescriptor(_Triangle):
    """y[..., i, j] = x[..., i, j] where j - i <= diagonal, else 0.

    Args:
        shape: Shape of x and y, rank 2-8.
        diagonal: The last one that is kept; 0 is the main one, positive ones lie above it.
        element: Any element of 1, 2, 4, 8 or 16 bytes.
    """


@descriptor(family="layout", op="triu")
class TriuDescriptor(_Triangle):
    """y[..., i, j] = x[..., i, j] where j - i >= diagonal, else 0.

    Args:
        shape: Shape of x and y, rank 2-8.
        diagonal: The first one that is kept; 0 is the main one, positive ones lie above it.
        element: Any element of 1, 2, 4, 8 or 16 bytes.
    """


@frame
class _Diag(Descriptor):
    """Fields and checks that forward and backward share."""

    __slots__ = ()
    shape: Shape
    diagonal: int = 0
    element: Element = Element.F32

    def validate(self) -> None:
        if len(self.shape) not in (1, 2) or any(isinstance(s, Dim) for s in self.shape):
            raise self.wrong("shape", self.shape, "a vector or a matrix of plain sizes")
        if abs(self.diagonal) >= 2**40:
            raise self.wrong("diagonal", self.diagonal, "|diagonal| < 2**40")

    def other_shape(self) -> Shape:
        """Shape of y and dy."""
        sizes, k = [int(s) for s in self.shape], self.diagonal  # type: ignore[arg-type]
        if len(sizes) == 1:
            return (sizes[0] + abs(k),) * 2
        return (max(0, min(sizes[0] - max(-k, 0), sizes[1] - max(k, 0))),)


@descriptor(family="layout", op="diag")
class DiagDescriptor(_Diag):
    """y = the matrix that has the vector x as its diagonal and is 0 elsewhere, or the diagonal of a matrix x.

    Args:
        shape: Shape of x: (n,) or (rows, columns).
        diagonal: Which one; 0 is the main one, positive ones lie above it.
        element: Any element of 1, 2, 4, 8 or 16 bytes.
    """

    def signature(self) -> Signature:
        return Signature(tensor("x", self.shape, self.element), output("y", self.other_shape(), self.element))


@descriptor(gradient_of=DiagDescriptor)
class DiagBackwardDescriptor(_Diag):
    """dx = the diagonal of dy, or 0 with dy on the diagonal.

    Args:
        shape: Shape of x and dx.
        diagonal: As in DiagDescriptor.
        element: f16, bf16, f32 or f64.
    """

    def signature(self) -> Signature:
        return Signature(tensor("dy", self.other_shape(), self.element), output("dx", self.shape, self.element))


@descriptor(family="layout", op="write_slice")
class WriteSliceDescriptor(Descriptor):
    """y = x, but y[..., start + i * step, ...] = source[..., i, ...] along `axis`. y may be x itself.

    `start` is given to run: a number, or a 0-d tensor of the device, which a captured graph reads anew. A start below 0
    or from which the slice would not fit is an IndexOutOfRangeError; on the CPU nothing is written then.

    Args:
        shape: Shape of x and y, rank 1-8.
        size: Elements of `source` along the axis; elsewhere it has the sizes of x.
        axis: The axis; negative counts from the end.
        step: Distance of the elements written, at least 1.
        element: Any element of 1, 2, 4, 8 or 16 bytes.
    """

    shape: Shape
    size: Size
    axis: int = 0
    step: int = 1
    element: Element = Element.F32

    def validate(self) -> None:
        if not self.shape:
            raise self.wrong("shape", self.shape, "rank 1-8")
        object.__setattr__(self, "axis", check_axis(self.axis, len(self.shape), f"{type(self).__name__}.axis"))
        if not 1 <= self.step < 2**31:
            raise self.wrong("step", self.step, "1 <= step < 2**31")
        whole = self.shape[self.axis]
        if isinstance(self.size, Dim) or isinstance(whole, Dim):
            return
        if not self.size >= 0 or (self.size and (self.size - 1) * self.step >= whole):
            raise self.wrong("size", self.size, f"a slice that fits into {whole} elements")

    def signature(self) -> Signature:
        s, a = self.shape, self.axis
        source = tensor("source", (*s[:a], self.size, *s[a + 1 :]), self.element)
        return Signature(
            tensor("x", s, self.element), source, output("y", s, self.element), scalar("start", "int", default=0)
        )


OPS = (
    Op("flip", FlipDescriptor, FlipDescriptor, "y[i] = x[n - 1 - i] along some axes"),
    Op("roll", RollDescriptor, RollDescriptor, "y[(i + shift) mod n] = x[i] along some axes"),
    Op("tril", TrilDescriptor, TrilDescriptor, "y[i, j] = x[i, j] where j - i <= diagonal, else 0"),
    Op("triu", TriuDescriptor, TriuDescriptor, "y[i, j] = x[i, j] where j - i >= diagonal, else 0"),
    Op("diag", DiagDescriptor, DiagBackwardDescriptor, "y = a matrix with diagonal x, or the diagonal of x"),
    Op("write_slice", WriteSliceDescriptor, WriteSliceDescriptor, "y = x with a slice replaced"),
)


def _axes(dims: Any) -> tuple[int, ...]:
    return tuple(dims) if isinstance(dims, (list, tuple)) else (dims,)


@function(tensors="input")
def flip(call: Call, input: Arg, dims: Any, *, out: Arg | None = None) -> Recipe:
    """`input` with the order of elements turned round along `dims`, as torch.flip."""
    return call(FlipDescriptor(input.shape, _axes(dims), input.element), x=input)


@flip.vjp
def _flip_vjp(input: Any, dims: Any) -> tuple[Any, Any]:
    return flip(input, dims), lambda dy: flip(dy, dims)


@function(tensors="input")
def roll(call: Call, input: Arg, shifts: Any, dims: Any = (), *, out: Arg | None = None) -> Recipe:
    """`input` shifted along `dims`, what leaves one end coming in at the other, as torch.roll.

    Without `dims` the tensor is taken as one row.
    """
    given, axes = integers("roll: shifts", _axes(shifts)), _axes(dims)
    if not axes:
        if len(given) != 1:
            raise InvalidProblemError(f"roll: dims: got none for {len(given)} shifts, want one per shift.")
        if input.rank > 1:
            return call.steps(_rolled_row, input, shift=given[0])
        axes = (0,) * input.rank
        given = given[: input.rank]
    if len(axes) != len(given):
        raise InvalidProblemError(f"roll: shifts: got {len(given)}, want one per dim: {len(axes)}.")
    total = [0] * input.rank
    for shift, axis in zip(given, axes, strict=True):
        at = check_axis(axis, input.rank, "roll: dims")
        if not input.rank:
            raise InvalidProblemError(f"roll: dims: got {axis} for rank 0, want none: one element stays where it is.")
        total[at] = (total[at] + int(shift)) % max(input.shape[at], 1)
    return call(RollDescriptor(input.shape, tuple(total), input.element), x=input)


def _rolled_row(c: Composer, input: Value, shift: int) -> Value:
    row = c.reshape(input, (prod(input.shape),))
    total = (int(shift) % max(row.shape[0], 1),)
    return c.reshape(c(RollDescriptor(row.shape, total, row.element), x=row), input.shape)


@roll.vjp
def _roll_vjp(input: Any, shifts: Any, dims: Any = ()) -> tuple[Any, Any]:
    return roll(input, shifts, dims), lambda dy: roll(dy, tuple(-s for s in _axes(shifts)), dims)


@function(tensors="input")
def tril(call: Call, input: Arg, diagonal: int = 0, *, out: Arg | None = None) -> Recipe:
    """`input` with what lies above a diagonal set to 0, as torch.tril."""
    return call(TrilDescriptor(input.shape, diagonal, input.element), x=input)


@tril.vjp
def _tril_vjp(input: Any, diagonal: int = 0) -> tuple[Any, Any]:
    return tril(input, diagonal), lambda dy: tril(dy, diagonal)


@function(tensors="input")
def triu(call: Call, input: Arg, diagonal: int = 0, *, out: Arg | None = None) -> Recipe:
    """`input` with what lies below a diagonal set to 0, as torch.triu."""
    return call(TriuDescriptor(input.shape, diagonal, input.element), x=input)


@triu.vjp
def _triu_vjp(input: Any, diagonal: int = 0) -> tuple[Any, Any]:
    return triu(input, diagonal), lambda dy: triu(dy, diagonal)


@function(tensors="input")
def diag(call: Call, input: Arg, diagonal: int = 0, *, out: Arg | None = None) -> Recipe:
    """The matrix that has the vector `input` as a diagonal, or a diagonal of the matrix `input`, as torch.diag."""
    return call(DiagDescriptor(input.shape, diagonal, input.element), x=input)


@function(tensors="dy")
def diag_backward(call: Call, dy: Arg, shape: Any, diagonal: int = 0) -> Recipe:
    """Gradient of diag with respect to an input of `shape`."""
    return call(DiagBackwardDescriptor(tuple(shape), diagonal, dy.element), dy=dy)


diag.pulled_by(diag_backward)


def _embedded(rank: int, offset: int, dim1: int, dim2: int) -> tuple[int, int, int]:
    """The two dimensions of the matrices, and how far their diagonal is from the main one."""
    rows, columns = (check_axis(d, rank + 1, "diag_embed: dims") for d in (dim1, dim2))
    if rows == columns:
        raise InvalidProblemError(f"diag_embed: dim2: got {dim2}, want another dimension than dim1 {dim1}.")
    return rows, columns, abs(offset)


def _matrix_diagonal(x: Value, offset: int, rows: int, columns: int) -> Value:
    """A view of a diagonal of matrices, as the last dimension."""
    size = x.shape[rows] - abs(offset)
    at = x.strides[columns] * offset if offset > 0 else -x.strides[rows] * offset
    rest = [d for d in range(x.rank) if d not in (rows, columns)]
    step = x.strides[rows] + x.strides[columns]
    shape, strides = (*(x.shape[d] for d in rest), size), (*(x.strides[d] for d in rest), step)
    return replace(x, shape=shape, strides=strides, offset=x.offset + (at if size > 0 else 0))


@made_of("copy fill")
@composed(tensors="input")
def diag_embed(c: Composer, input: Value, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Value:
    """Matrices that have the last dimension of `input` as a diagonal and are 0 elsewhere, as torch.diag_embed."""
    if not 1 <= input.rank <= 7:
        raise InvalidProblemError(f"diag_embed: input: got rank {input.rank}, want 1-7.")
    rows, columns, far = _embedded(input.rank, offset, dim1, dim2)
    shape = list(input.shape[:-1])
    for d in sorted((rows, columns)):
        shape.insert(d, input.shape[-1] + far)
    y = c.zeros(tuple(shape), input.element)
    c(CopyDescriptor(input.shape, input.element), x=input, y=_matrix_diagonal(y, offset, rows, columns))
    return y


@made_of("copy")
@composed(tensors="dy")
def diag_embed_backward(c: Composer, dy: Value, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Value:
    """Gradient of diag_embed: the diagonals of dy."""
    rows, columns, far = _embedded(dy.rank - 1, offset, dim1, dim2)
    if dy.shape[rows] != dy.shape[columns] or dy.shape[rows] < far:
        raise InvalidProblemError(f"diag_embed_backward: dy: got shape {dy.shape}, want that of the result.")
    return _matrix_diagonal(dy, offset, rows, columns)


diag_embed.pulled_by(diag_embed_backward)


@made_of("write_slice")
@function(tensors="input src")
def slice_scatter(
    call: Call, input: Arg, src: Arg, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Recipe:
    """`input` with `input[..., start:end:step, ...]` along `dim` replaced by `src`, as torch.slice_scatter."""
    axis = check_axis(dim, input.rank, "slice_scatter: dim")
    if not input.rank or step < 1:
        raise InvalidProblemError(f"slice_scatter: got rank {input.rank} and step {step}, want rank 1-8 and step >= 1.")
    first, last, _ = slice(start, end, step).indices(int(input.shape[axis]))
    size = len(range(first, last, step))
    wanted = (*input.shape[:axis], size, *input.shape[axis + 1 :])
    if src.shape != wanted or src.element is not input.element:
        raise InvalidProblemError(
            f"slice_scatter: src: got {src.element} of shape {src.shape}, want {input.element} of shape {wanted}."
        )
    desc = WriteSliceDescriptor(input.shape, size, axis, step, input.element)
    return call(desc, x=input, source=src, start=first if size else 0)


@slice_scatter.vjp
def _slice_scatter_vjp(
    input: Any, src: Any, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> tuple[Any, Any]:
    from baracuda.ops.layout.layout import copy, zeros_like

    def pull(dy: Any) -> tuple[Any, Any]:
        axis = check_axis(dim, len(dy.shape), "slice_scatter: dim")
        part = dy[(slice(None),) * axis + (slice(start, end, step),)]
        return slice_scatter(dy, zeros_like(src), dim, start, end, step), copy(part)

    return slice_scatter(input, src, dim, start, end, step), pull
