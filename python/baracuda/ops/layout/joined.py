"""Joining, turning and taking apart of tensors, made of copies. They have no kernels of their own."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

from baracuda.call.compose import Composer, Value, composed
from baracuda.call.inline import pulled_through
from baracuda.call.op import composite
from baracuda.call.steps import made_of
from baracuda.describe.dims import check_axis
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.options import integers
from baracuda.ops.cast.cast import cast
from baracuda.ops.indexing.compact import nonzero
from baracuda.ops.layout.arrange import diag_embed, flip, slice_scatter, tril, triu
from baracuda.ops.layout.join import cat, stack
from baracuda.ops.layout.layout import CopyDescriptor, copy, ones, zeros_like
from baracuda.ops.layout.pad import pad

OPS = ()


def _at_least(c: Composer, x: Value, rank: int) -> Value:
    """With dimensions of size 1 before, as far as two, and after it, as torch inserts them."""
    if x.rank >= rank:
        return x
    shape = {1: (1,), 2: (1, *(x.shape or (1,))), 3: (x.shape if x.rank == 2 else (1, *(x.shape or (1,)))) + (1,)}
    return c.reshape(x, shape[rank])


def _all_at_least(c: Composer, tensors: tuple[Value, ...], rank: int) -> Any:
    made = tuple(_at_least(c, x, rank) for x in tensors)
    return made[0] if len(made) == 1 else made


@pulled_through
@made_of("copy")
@composed(tensors="tensors")
def atleast_1d(c: Composer, *tensors: Value) -> Any:
    """The tensors with at least one dimension, as torch.atleast_1d; copies."""
    return _all_at_least(c, tensors, 1)


@pulled_through
@made_of("copy")
@composed(tensors="tensors")
def atleast_2d(c: Composer, *tensors: Value) -> Any:
    """The tensors with at least two dimensions, as torch.atleast_2d; copies."""
    return _all_at_least(c, tensors, 2)


@pulled_through
@made_of("copy")
@composed(tensors="tensors")
def atleast_3d(c: Composer, *tensors: Value) -> Any:
    """The tensors with at least three dimensions, as torch.atleast_3d; copies."""
    return _all_at_least(c, tensors, 3)


@pulled_through
@made_of("cast cat")
@composed(tensors="tensors")
def hstack(c: Composer, *tensors: Value, out: Any = None) -> Value:
    """The tensors side by side: along the second dimension, the first one of vectors, as torch.hstack."""
    seen = [_at_least(c, x, 1) for x in tensors]
    made: Value = c.of(cat, seen, 0 if seen[0].rank == 1 else 1)
    return made


@pulled_through
@made_of("cast cat")
@composed(tensors="tensors")
def vstack(c: Composer, *tensors: Value, out: Any = None) -> Value:
    """The tensors one below the other, vectors as rows, as torch.vstack."""
    made: Value = c.of(cat, [_at_least(c, x, 2) for x in tensors], 0)
    return made


@pulled_through
@made_of("cast cat")
@composed(tensors="tensors")
def dstack(c: Composer, *tensors: Value, out: Any = None) -> Value:
    """The tensors one behind the other, along the third dimension, as torch.dstack."""
    made: Value = c.of(cat, [_at_least(c, x, 3) for x in tensors], 2)
    return made


@pulled_through
@made_of("cast cat")
@composed(tensors="tensors")
def column_stack(c: Composer, *tensors: Value, out: Any = None) -> Value:
    """Vectors as columns, and tensors of more dimensions, side by side, as torch.column_stack."""
    made: Value = c.of(cat, [c.reshape(x, (prod(x.shape), 1)) if x.rank < 2 else x for x in tensors], 1)
    return made


row_stack = vstack


def _flipped(c: Composer, input: Value, axis: int, least: int) -> Value:
    if input.rank < least:
        raise InvalidProblemError(f"input: got rank {input.rank}, want at least {least}.")
    made: Value = c.of(flip, input, (axis,))
    return made


@pulled_through
@made_of("flip")
@composed(tensors="input")
def fliplr(c: Composer, input: Value) -> Value:
    """`input` with the order of its columns turned round, as torch.fliplr."""
    return _flipped(c, input, 1, 2)


@pulled_through
@made_of("flip")
@composed(tensors="input")
def flipud(c: Composer, input: Value) -> Value:
    """`input` with the order of its rows turned round, as torch.flipud."""
    return _flipped(c, input, 0, 1)


@pulled_through
@made_of("copy flip")
@composed(tensors="input")
def rot90(c: Composer, input: Value, k: int = 1, dims: Any = (0, 1)) -> Value:
    """`input` turned by k times 90 degrees in the plane of two dimensions, from the first towards the second, as torch.rot90."""
    axes = integers("dims", dims)
    if len(axes) != 2 or input.rank < 2:
        raise InvalidProblemError(f"dims: got {dims} for rank {input.rank}, want two dimensions of it.")
    a, b = (check_axis(d, input.rank, "dims") for d in axes)
    if a == b:
        raise InvalidProblemError(f"dims: got {dims}, want two different ones.")
    order = [{a: b, b: a}.get(d, d) for d in range(input.rank)]
    turns = k % 4
    if turns == 0:
        return c.copy(input)
    seen = input.permute(order) if turns == 3 else input
    made: Value = c.of(flip, seen, (a, b) if turns == 2 else (b,))
    return made.permute(order) if turns == 1 else made


@pulled_through
@made_of("copy")
@composed(tensors="tensors")
def meshgrid(c: Composer, *tensors: Value, indexing: str = "ij") -> Any:
    """The coordinates of a grid's points, one tensor for each of the vectors, as torch.meshgrid; copies.

    Args:
        *tensors: Vectors or numbers of rank 0.
        indexing: "ij", or "xy" for the first two dimensions swapped.
    """
    if indexing not in ("ij", "xy"):
        raise InvalidProblemError(f'indexing: got {indexing!r}, want "ij" or "xy".')
    if any(x.rank > 1 for x in tensors):
        raise InvalidProblemError(f"tensors: got shapes {', '.join(str(x.shape) for x in tensors)}, want vectors.")
    swapped = indexing == "xy" and len(tensors) > 1
    order = [1, 0, *range(2, len(tensors))] if swapped else list(range(len(tensors)))
    rows = [c.reshape(x, (prod(x.shape),)) for x in tensors]
    shape = tuple(rows[i].shape[0] for i in order)
    made = []
    for i, x in enumerate(rows):
        lead = tuple(x.shape[0] if order[d] == i else 1 for d in range(len(rows)))
        made.append(c.reshape(x, lead).expand(shape))
    return tuple(made)


@pulled_through
@made_of("cast cat pad")
@composed(tensors="tensors")
def block_diag(c: Composer, *tensors: Value) -> Value:
    """Matrices along the diagonal of a matrix of zeros, as torch.block_diag; vectors are rows, elements are promoted."""
    if any(x.rank > 2 for x in tensors):
        raise InvalidProblemError(f"tensors: got shapes {', '.join(str(x.shape) for x in tensors)}, want matrices.")
    blocks = [_at_least(c, x, 2) for x in tensors]
    width, at, bands = sum(x.shape[1] for x in blocks), 0, []
    for x in blocks:
        bands.append(c.of(pad, x, (at, width - at - x.shape[1])))
        at += x.shape[1]
    made: Value = c.of(cat, bands, 0)
    return made


@pulled_through
@made_of("cast copy stack")
@composed(tensors="tensors")
def cartesian_prod(c: Composer, *tensors: Value) -> Value:
    """All combinations of one element of each of the vectors, as rows of a matrix, as torch.cartesian_prod.

    Of one vector it is the vector itself.
    """
    if any(x.rank != 1 for x in tensors):
        raise InvalidProblemError(f"tensors: got shapes {', '.join(str(x.shape) for x in tensors)}, want vectors.")
    if len(tensors) == 1:
        return tensors[0]
    shape = tuple(x.shape[0] for x in tensors)
    grid = [c.reshape(x, (*x.shape, *(1,) * (len(shape) - i - 1))).expand(shape) for i, x in enumerate(tensors)]
    return c.reshape(c.of(stack, grid, len(shape)), (prod(shape), len(shape)))


@pulled_through
@made_of("copy fill")
@composed(tensors="input")
def diagflat(c: Composer, input: Value, offset: int = 0) -> Value:
    """The matrix that has all elements of `input`, in their order, as a diagonal, as torch.diagflat."""
    made: Value = c.of(diag_embed, c.reshape(input, (prod(input.shape),)), offset)
    return made


@pulled_through
@made_of("write_slice")
@composed(tensors="input src")
def select_scatter(c: Composer, input: Value, src: Value, dim: int, index: int) -> Value:
    """`input` with `src` at one index of a dimension, as torch.select_scatter."""
    axis = check_axis(dim, input.rank, "dim")
    size = input.shape[axis] if input.rank else 0
    if not -size <= index < size:
        raise InvalidProblemError(f"index: got {index}, want {-size} <= index < {size}.")
    at = index % size
    if src.rank != input.rank - 1:
        raise InvalidProblemError(
            f"src: got shape {src.shape}, want that of input {input.shape} without dimension {axis}."
        )
    seen = c.reshape(src, (*src.shape[:axis], 1, *src.shape[axis:]))
    made: Value = c.of(slice_scatter, input, seen, axis, at, at + 1)
    return made


def _diagonal(input: Value, offset: int, dim1: int, dim2: int) -> Value:
    rows, columns = (check_axis(d, input.rank, "dims") for d in (dim1, dim2))
    if input.rank < 2 or rows == columns:
        raise InvalidProblemError(f"dims: got {dim1} and {dim2} for rank {input.rank}, want two different dimensions.")
    size = min(input.shape[rows] + min(offset, 0), input.shape[columns] - max(offset, 0))
    if size < 0 and not -input.shape[rows] <= offset <= input.shape[columns]:
        size = 0
    at = input.strides[columns] * offset if offset > 0 else -input.strides[rows] * offset
    rest = [d for d in range(input.rank) if d not in (rows, columns)]
    shape = (*(input.shape[d] for d in rest), max(size, 0))
    strides = (*(input.strides[d] for d in rest), input.strides[rows] + input.strides[columns])
    return replace(input, shape=shape, strides=strides, offset=input.offset + (at if size > 0 else 0))


@made_of("copy")
@composed(tensors="input")
def diagonal_copy(c: Composer, input: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
    """A diagonal of the matrices in two dimensions, as the last dimension, as torch.diagonal_copy."""
    return _diagonal(input, offset, dim1, dim2)


@made_of("copy")
@composed(tensors="input")
def linalg_diagonal(c: Composer, input: Value, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Value:
    """A copy of a diagonal of the matrices in the last two dimensions, as torch.linalg.diagonal."""
    return _diagonal(input, offset, dim1, dim2)


@made_of("copy")
@composed(tensors="input src")
def diagonal_scatter(c: Composer, input: Value, src: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
    """`input` with `src` on a diagonal of the matrices in two dimensions, as torch.diagonal_scatter."""
    made = c.copy(input)
    seen = _diagonal(made, offset, dim1, dim2)
    if src.shape != seen.shape or src.element is not input.element:
        want = f"{input.element} of shape {seen.shape}"
        raise InvalidProblemError(f"src: got {src.element} of shape {src.shape}, want {want}. Cast or expand it.")
    c(CopyDescriptor(src.shape, src.element), x=src, y=seen)
    return made


@made_of("copy fill")
@composed(tensors="dy")
def diagonal_backward(c: Composer, dy: Value, shape: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
    """Gradient of diagonal_copy with respect to an input of `shape`."""
    made = c.zeros(tuple(shape), dy.element)
    seen = _diagonal(made, offset, dim1, dim2)
    if dy.shape != seen.shape:
        raise InvalidProblemError(f"dy: got shape {dy.shape}, want {seen.shape}, as the result.")
    c(CopyDescriptor(dy.shape, dy.element), x=dy, y=seen)
    return made


diagonal_copy.pulled_by(diagonal_backward)
linalg_diagonal.pulled_by(diagonal_backward)


@diagonal_scatter.vjp
def _diagonal_scatter_vjp(input: Any, src: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> tuple[Any, Any]:
    def pull(dy: Any) -> tuple[Any, Any]:
        kept = diagonal_scatter(dy, zeros_like(src), offset, dim1, dim2)
        return kept, diagonal_copy(dy, offset, dim1, dim2)

    return diagonal_scatter(input, src, offset, dim1, dim2), pull


@made_of("cast copy fill nonzero tril")
@composite
def tril_indices(row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None) -> Any:
    """Rows and columns of the elements on and below a diagonal of a (row, col) matrix, as torch.tril_indices.

    Args:
        row: Rows of the matrix.
        col: Columns of the matrix.
        offset: The diagonal; 0 is the main one, positive ones are above it.
        dtype: Element of the result, i64 by default.
        device: Where it is made, as in zeros.
    """
    return _places(tril(ones(row, col, dtype="bool", device=device), offset), dtype)


@made_of("cast copy fill nonzero triu")
@composite
def triu_indices(row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None) -> Any:
    """Rows and columns of the elements on and above a diagonal of a (row, col) matrix, as torch.triu_indices.

    Args:
        row: Rows of the matrix.
        col: Columns of the matrix.
        offset: The diagonal; 0 is the main one, positive ones are above it.
        dtype: Element of the result, i64 by default.
        device: Where it is made, as in zeros.
    """
    return _places(triu(ones(row, col, dtype="bool", device=device), offset), dtype)


def _places(kept: Any, dtype: Any) -> Any:
    found = copy(nonzero(kept).T)
    return found if dtype is None else cast(found, dtype)
