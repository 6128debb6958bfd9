"""Norms of matrices, and distances between points, made of `norm` and elementwise functions."""

from __future__ import annotations

from math import inf
from typing import Any

from baracuda import functional as F
from baracuda.call.compose import Composer, Value, composed
from baracuda.call.inline import pulled_through
from baracuda.call.kinks import root
from baracuda.call.steps import made_of
from baracuda.describe.dims import check_axis
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.promotion import promote
from baracuda.ops.reduce.vector_norm import vector_norm

OPS = ()


def _matrices(x: Value, dim: Any) -> tuple[int, int]:
    axes = tuple(dim) if isinstance(dim, (list, tuple)) else (dim,)
    if len(axes) != 2 or x.rank < 2:
        raise InvalidProblemError(f"dim: got {dim} for rank {x.rank}, want two dimensions of it.")
    rows, columns = (check_axis(d, x.rank, "dim") for d in axes)
    if rows == columns:
        raise InvalidProblemError(f"dim: got {dim}, want two different dimensions.")
    return rows, columns


@pulled_through
@made_of("abs amax amin cast norm sum")
@composed(tensors="A")
def matrix_norm(
    c: Composer,
    A: Value,
    ord: float | str | None = "fro",
    dim: Any = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: Any = None,
    out: Any = None,
) -> Value:
    """Norms of the matrices in two dimensions, as torch.linalg.matrix_norm.

    Args:
        A: Matrices.
        ord: "fro", the square root of the sum of squares; 1 and -1, the largest and smallest sum of a column's absolute
            values; inf and -inf, of a row's. Norms by singular values (2, -2, "nuc") are refused.
        dim: The dimensions of rows and columns.
        keepdim: Whether they stay, with size 1.
        dtype: What A is cast to before.
        out: A tensor to write the result to.
    """
    rows, columns = _matrices(A, dim)
    x = A if dtype is None else c.cast(A, Element.coerce(dtype, "dtype"))
    if not x.element.is_float:
        raise InvalidProblemError(f"A: got element {x.element}, want a float element. Cast it first.")
    if ord == "fro":
        return c.of(vector_norm, x, 2.0, (rows, columns), keepdim)  # type: ignore[no-any-return]
    if isinstance(ord, str) or ord is None or abs(ord) not in (1, inf):
        raise InvalidProblemError(f'ord: got {ord!r}, want "fro", 1, -1, inf or -inf: others need singular values.')
    summed, folded = (rows, columns) if abs(ord) == 1 else (columns, rows)
    sums = c.of(F.sum, c.of(F.abs, x), (summed,), True)
    made: Value = c.of(F.amax if ord > 0 else F.amin, sums, (folded,), True)
    if keepdim:
        return made
    return c.reshape(made, tuple(n for i, n in enumerate(made.shape) if i not in (rows, columns)))


def _one_element(c: Composer, a: Value, b: Value) -> tuple[Value, Value]:
    element = promote(a.element, b.element)
    return c.cast(a, element), c.cast(b, element)


@pulled_through
@made_of("cast norm sub")
@composed(tensors="input other")
def dist(c: Composer, input: Value, other: Value, p: float = 2) -> Value:
    """The norm of input - other, over all elements, as torch.dist."""
    made: Value = c.of(F.norm, c.of(F.sub, *_one_element(c, input, other)), float(p))
    return made


@pulled_through
@made_of("add cast norm sub")
@composed(tensors="x1 x2")
def pairwise_distance(
    c: Composer, x1: Value, x2: Value, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Value:
    """The norm of x1 - x2 + eps along the last dimension, as torch's pairwise_distance."""
    apart = c.of(F.add, c.of(F.sub, *_one_element(c, x1, x2)), float(eps))
    made: Value = c.of(F.norm, apart, float(p), -1, keepdim)
    return made


_MODES = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")


def _batches(c: Composer, x1: Value, x2: Value) -> tuple[Value, Value]:
    if x1.rank < 2 or x2.rank < 2 or x1.shape[-1] != x2.shape[-1]:
        raise InvalidProblemError(f"x2: got shapes {x1.shape} and {x2.shape}, want (..., P, M) and (..., R, M).")
    return _one_element(c, x1, x2)


def _distances(c: Composer, x1: Value, x2: Value, p: float) -> Value:
    """Norms of all differences, which are in memory for it."""
    a = c.reshape(x1, (*x1.shape[:-1], 1, x1.shape[-1]))
    b = c.reshape(x2, (*x2.shape[:-2], 1, *x2.shape[-2:]))
    made: Value = c.of(F.norm, c.of(F.sub, a, b), p, -1)
    return made


def _by_product(c: Composer, a: Value, b: Value) -> Value:
    """The square root of |a|^2 + |b|^2 - 2 a b, of one matrix product."""
    squares = [c.of(F.sum, c.of(F.square, x), (-1,), True) for x in (a, b)]
    back = [*range(b.rank - 2), b.rank - 1, b.rank - 2]
    apart = c.of(F.add, squares[0], squares[1].permute(back))
    product = c.of(F.matmul, a, b.permute(back))
    made: Value = c.of(root, c.of(F.clamp, c.of(F.sub, apart, product, alpha=2), 0.0))
    return made


@pulled_through
@made_of("add cast clamp matmul norm sqrt square sub sum")
@composed(tensors="x1 x2")
def cdist(
    c: Composer,
    x1: Value,
    x2: Value,
    p: float = 2.0,
    compute_mode: str | None = "use_mm_for_euclid_dist_if_necessary",
) -> Value:
    """Distances between all rows of x1 (..., P, M) and all of x2 (..., R, M), as torch.cdist: (..., P, R).

    Args:
        x1: Points.
        x2: Points of as many dimensions.
        p: Which norm.
        compute_mode: For p = 2: by a matrix product where P or R is above 25 (the default, which loses digits of small
            distances as torch's does), always ("use_mm_for_euclid_dist") or never ("donot_use_mm_for_euclid_dist").
    """
    a, b = _batches(c, x1, x2)
    if compute_mode is not None and compute_mode not in _MODES:
        raise InvalidProblemError(f"compute_mode: got {compute_mode!r}, want one of {', '.join(_MODES)}.")
    many = compute_mode in (None, _MODES[0]) and max(a.shape[-2], b.shape[-2]) > 25
    if p == 2 and (many or compute_mode == _MODES[1]) and 0 not in (*a.shape, *b.shape):
        return _by_product(c, a, b)
    return _distances(c, a, b, float(p))


@pulled_through
@made_of("cat fill norm sub")
@composed(tensors="input")
def pdist(c: Composer, input: Value, p: float = 2.0) -> Value:
    """Distances between all pairs of different rows, as torch's pdist: (0, 1), (0, 2), ..., (1, 2), ..."""
    if input.rank != 2 or not input.element.is_float:
        raise InvalidProblemError(f"input: got {input.element} of shape {input.shape}, want a matrix of floats.")
    n = input.shape[0]
    if n < 2:
        return c.zeros((0,), input.element)
    whole = _distances(c, input, input, float(p))
    made: Value = c.of(F.cat, [whole[i, i + 1 :] for i in range(n - 1)], 0)
    return made


@pulled_through
@made_of("add div gt mul norm where")
@composed(tensors="input")
def renorm(c: Composer, input: Value, p: float, dim: int, maxnorm: float) -> Value:
    """`input` with those slices along `dim` made shorter whose norm is above `maxnorm`, as torch.renorm."""
    if input.rank < 2:
        raise InvalidProblemError(f"input: got rank {input.rank}, want at least 2.")
    axis = check_axis(dim, input.rank, "dim")
    others = tuple(d for d in range(input.rank) if d != axis)
    length = c.of(F.norm, input, float(p), others, True)
    shorter = c.of(F.div, float(maxnorm), c.of(F.add, length, 1e-7))
    made: Value = c.of(F.mul, input, c.of(F.where, c.of(F.gt, length, float(maxnorm)), shorter, 1.0))
    return made


@pulled_through
@made_of("abs div mul norm")
@composed(tensors="v g")
def weight_norm(c: Composer, v: Value, g: Value, dim: int = 0) -> Value:
    """`v` with slices along `dim` of the lengths `g`, g v / |v|, as torch._weight_norm.

    Args:
        v: Directions.
        g: Lengths: of v's shape with 1 for all dimensions but `dim`; of one element for -1.
        dim: The dimension of slices; -1 for v as a whole.
    """
    if v.rank == 0 or not v.element.is_float:
        raise InvalidProblemError(f"v: got {v.element} of shape {v.shape}, want floats of rank 1 or more.")
    axis = -1 if dim == -1 else check_axis(dim, v.rank, "dim")
    others = tuple(d for d in range(v.rank) if d != axis)
    want = tuple(n if d == axis else 1 for d, n in enumerate(v.shape))
    if g.shape not in ((want,) if axis >= 0 else (want, (), (1,))):
        raise InvalidProblemError(f"g: got shape {g.shape}, want {want}: a length for each slice.")
    length = c.of(F.norm, v, 2.0, others, True) if others else c.of(F.abs, v)
    made: Value = c.of(F.mul, v, c.of(F.div, g, length))
    return made
