"""Products of vectors and matrices, and statistics of them, made of matrix products, sums and elementwise functions."""

from __future__ import annotations

from typing import Any

from baracuda import functional as F
from baracuda.call.compose import Composer, Value, composed
from baracuda.call.inline import pulled_through
from baracuda.call.steps import made_of
from baracuda.describe.dims import check_axis
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.promotion import broadcast

OPS = ()


@pulled_through
@made_of("cast mul sum")
@composed(tensors="x y")
def vecdot(c: Composer, x: Value, y: Value, *, dim: int = -1, out: Any = None) -> Value:
    """Sums of products along `dim` of two tensors that broadcast, as torch.linalg.vecdot; elements are promoted."""
    alike = x.element is y.element
    product: Value = c.of(F.mul, c.wide(x), c.wide(y)) if alike else c.of(F.mul, x, y)
    if not product.rank:
        raise InvalidProblemError("x: got rank 0, want at least one dimension.")
    return c.cast(
        c.of(F.sum, product, (check_axis(dim, product.rank, "dim"),)), x.element if alike else product.element
    )


def _crossed(c: Composer, input: Value, other: Value, dim: int) -> Value:
    shape: Any = broadcast(input.shape, other.shape, "input and other")
    axis = check_axis(dim, len(shape), "dim")
    at = [axis - len(shape) + x.rank for x in (input, other)]
    if input.rank != other.rank or not shape or shape[axis] != 3:
        got = f"shapes {input.shape} and {other.shape}"
        raise InvalidProblemError(f"other: got {got}, want the same rank and size 3 of dimension {dim}.")
    seen = [x.expand(tuple(3 if i == axis else n for i, n in enumerate(x.shape))) for x in (input, other)]
    turned = [[c.of(F.roll, x, -k, d) for k in (1, 2)] for x, d in zip(seen, at, strict=True)]
    (a1, a2), (b1, b2) = turned
    made: Value = c.of(F.sub, c.of(F.mul, a1, b2), c.of(F.mul, a2, b1))
    return made


@pulled_through
@made_of("mul roll sub")
@composed(tensors="input other")
def cross(c: Composer, input: Value, other: Value, dim: int | None = None, *, out: Any = None) -> Value:
    """The cross product of vectors of three elements, as torch.cross: along the first dimension of size 3 by default."""
    if dim is None:
        shape = broadcast(input.shape, other.shape, "input and other")
        if 3 not in shape:
            raise InvalidProblemError(f"input: got shape {input.shape}, want a dimension of size 3.")
        dim = shape.index(3)
    return _crossed(c, input, other, dim)


@pulled_through
@made_of("mul roll sub")
@composed(tensors="input other")
def linalg_cross(c: Composer, input: Value, other: Value, *, dim: int = -1, out: Any = None) -> Value:
    """The cross product of vectors of three elements along `dim`, as torch.linalg.cross."""
    return _crossed(c, input, other, dim)


@pulled_through
@made_of("cast matmul")
@composed(tensors="tensors")
def multi_dot(c: Composer, *tensors: Value, out: Any = None) -> Value:
    """The product of matrices in the order that takes the fewest multiplications, as torch.linalg.multi_dot.

    The first may be a vector, as a row, and the last one, as a column; the result has one dimension less for each.
    """
    if len(tensors) < 2:
        raise InvalidProblemError(f"tensors: got {len(tensors)}, want at least two.")
    first, *middle, last = tensors
    row, column = first.rank == 1, last.rank == 1
    chain = [c.reshape(first, (1, *first.shape)) if row else first, *middle]
    chain.append(c.reshape(last, (*last.shape, 1)) if column else last)
    made: Value = c.of(F.chain_matmul, *chain)
    return c.reshape(made, made.shape[1 if row else 0 : 1 if column else 2]) if row or column else made


@pulled_through
@made_of("copy eye matmul")
@composed(tensors="A")
def matrix_power(c: Composer, A: Value, n: int, *, out: Any = None) -> Value:
    """Products of n equal matrices, as torch.linalg.matrix_power; n is at least 0: inverses are not built."""
    if A.rank < 2 or A.shape[-1] != A.shape[-2]:
        raise InvalidProblemError(f"A: got shape {A.shape}, want square matrices.")
    if n < 0:
        raise InvalidProblemError(f"n: got {n}, want at least 0: inverses are not built.")
    if n == 0:
        return c.eye(A.shape[-1], A.element).expand(A.shape)
    found, square = None, A
    while True:
        if n % 2:
            found = square if found is None else c.of(F.matmul, found, square)
        n //= 2
        if not n:
            assert found is not None, "some bit of n is set"
            return found
        square = c.of(F.matmul, square, square)


def _powers(c: Composer, x: Value, n: int) -> Value:
    """1, x, x^2, ... as the last dimension."""
    element = x.element if x.element.is_float else Element.I64
    first = c.cast(c.reshape(x, (*x.shape, 1)), element)
    ones: Value = c.of(F.ones_like, first)
    if n < 2:
        return ones[..., :n]
    made: Value = c.of(F.cat, [ones, c.of(F.cumprod, first.expand((*x.shape, n - 1)), -1)], -1)
    return made


@pulled_through
@made_of("cast cat cumprod fill")
@composed(tensors="x")
def linalg_vander(c: Composer, x: Value, *, N: int | None = None) -> Value:
    """Vandermonde's matrices: rows of 1, x, x^2, ..., as torch.linalg.vander; as many columns as rows by default."""
    rows = x.shape[-1] if x.rank else 1
    if N is not None and N < 2:
        raise InvalidProblemError(f"N: got {N}, want at least 2.")
    return _powers(c, x if x.rank else c.reshape(x, (1,)), rows if N is None else N)


@pulled_through
@made_of("cast cat cumprod fill flip")
@composed(tensors="x")
def vander(c: Composer, x: Value, N: int | None = None, increasing: bool = False) -> Value:
    """Vandermonde's matrix of a vector, by falling powers or rising ones, as torch.vander."""
    if x.rank != 1:
        raise InvalidProblemError(f"x: got shape {x.shape}, want a vector.")
    made = _powers(c, x, x.shape[0] if N is None else N)
    return made if increasing else c.of(F.flip, made, (1,))


def _weights(c: Composer, fweights: Value | None, aweights: Value | None, count: int, element: Element) -> Value | None:
    found = None
    for name, x in (("fweights", fweights), ("aweights", aweights)):
        if x is None:
            continue
        if x.shape != (count,) or x.element.is_float != (name == "aweights"):
            want = f"a vector of {count} {'floats' if name == 'aweights' else 'integers'}"
            raise InvalidProblemError(f"{name}: got {x.element} of shape {x.shape}, want {want}.")
        seen = c.cast(x, element)
        found = seen if found is None else c.of(F.mul, found, seen)
    return found


def _count(c: Composer, w: Value, aweights: Value | None, correction: int, element: Element) -> Value:
    """What sums of weighted squares are divided by; in f64, because the correction cancels digits."""
    wide = c.cast(w, Element.F64)
    total = c.of(F.sum, wide)
    lost: Any = float(correction)
    if aweights is not None and correction:
        square = c.of(F.sum, c.of(F.mul, wide, c.cast(aweights, Element.F64)))
        lost = c.of(F.mul, c.of(F.div, square, total), float(correction))
    return c.cast(c.of(F.clamp, c.of(F.sub, total, lost), 0.0), element)


def _covariance(c: Composer, input: Value, correction: int, fweights: Value | None, aweights: Value | None) -> Value:
    """The matrix of covariances of a matrix's rows, in f32 or f64."""
    if input.rank > 2:
        raise InvalidProblemError(f"input: got rank {input.rank}, want at most 2.")
    element = input.element.statistic
    shape = input.shape if input.rank == 2 else (1, input.shape[0] if input.rank else 1)
    x = c.reshape(c.cast(input, element), shape)
    w = _weights(c, fweights, aweights, shape[1], element)
    # Twice: far from 0 what rounding the mean leaves over may be as large as the deviations.
    if w is None:
        apart = c.of(F.sub, x, c.of(F.mean, x, (1,), True))
        apart = c.of(F.sub, apart, c.of(F.mean, apart, (1,), True))
        by: Any = float(max(shape[1] - correction, 0))
        weighted = apart
    else:
        total = c.of(F.sum, w)
        apart = x
        for _ in range(2):
            apart = c.of(F.sub, apart, c.of(F.div, c.of(F.sum, c.of(F.mul, apart, w), (1,), True), total))
        weighted, by = c.of(F.mul, apart, w), _count(c, w, aweights, correction, element)
    made: Value = c.of(F.div, c.of(F.matmul, weighted, apart.permute((1, 0))), by)
    return made


@pulled_through
@made_of("cast clamp div matmul mean mul sub sum")
@composed(tensors="input fweights aweights")
def cov(
    c: Composer,
    input: Value,
    *,
    correction: int = 1,
    fweights: Value | None = None,
    aweights: Value | None = None,
) -> Value:
    """Covariances of a matrix's rows, of which each column is an observation, as torch.cov.

    Args:
        input: (variables, observations), or one variable.
        correction: What is taken from the number of observations.
        fweights: How often each observation counts, integers.
        aweights: Weights of the observations, floats.
    """
    made = _covariance(c, input, correction, fweights, aweights)
    made = c.cast(made, input.element) if input.element.is_float else made
    return made if input.rank == 2 and made.shape != (1, 1) else c.reshape(made, ())


@pulled_through
@made_of("cast clamp div matmul mean sqrt sub")
@composed(tensors="input")
def corrcoef(c: Composer, input: Value) -> Value:
    """Correlations of a matrix's rows, as torch.corrcoef: covariances over both standard deviations, within -1 and 1."""
    made = _covariance(c, input, 1, None, None)
    element = input.element if input.element.is_float else made.element
    if input.rank < 2 or made.shape == (1, 1):
        return c.cast(c.reshape(c.of(F.div, made, made), ()), element)
    n = made.shape[0]
    deviation = c.of(F.sqrt, c.of(F.diagonal_copy, made))
    scaled = c.of(F.div, c.of(F.div, made, c.reshape(deviation, (n, 1))), deviation)
    return c.cast(c.of(F.clamp, scaled, -1.0, 1.0), element)


@pulled_through
@made_of("add cast copy matmul")
@composed(tensors="input1 input2 weight bias")
def bilinear(c: Composer, input1: Value, input2: Value, weight: Value, bias: Value | None = None) -> Value:
    """x1^T W_o x2 + b_o for every output o, as torch's bilinear, over the last dimension of both inputs.

    Args:
        input1: (..., n).
        input2: (..., m), of the same leading dimensions.
        weight: (outputs, n, m).
        bias: (outputs,).
    """
    if weight.rank != 3 or (*input1.shape[:-1], *weight.shape[1:]) != (
        *input2.shape[:-1],
        input1.shape[-1],
        input2.shape[-1],
    ):
        got = f"shapes {input1.shape}, {input2.shape} and {weight.shape}"
        raise InvalidProblemError(f"weight: got {got}, want (..., n), (..., m) and (outputs, n, m).")
    made: Value = c.of(F.einsum, "...n,onm,...m->...o", input1, weight, input2)
    return made if bias is None else c.of(F.add, made, bias)
