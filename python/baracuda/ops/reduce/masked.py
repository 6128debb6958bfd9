"""Functions of the elements that a mask keeps, as in torch.masked: bc.functional.masked.sum is masked_sum here.

What a mask leaves out counts as what changes nothing: 0 in a sum, -inf in a maximum. A mask is bool, true keeps, and
broadcasts to the input; without one every element counts.
"""

from __future__ import annotations

from math import inf
from typing import Any, cast

from baracuda import functional as F
from baracuda.call.compose import Composed, Composer, Value, composed
from baracuda.call.inline import pulled_through
from baracuda.call.kinks import root
from baracuda.call.steps import made_of
from baracuda.describe.dims import check_axis
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError

OPS = ()


def _checked(input: Value, mask: Value | None, name: str = "mask") -> None:
    if mask is None:
        return
    lead = input.rank - mask.rank
    fits = lead >= 0 and all(m in (1, n) for m, n in zip(mask.shape, input.shape[max(lead, 0) :], strict=True))
    if mask.element is not Element.BOOL or not fits:
        got, want = f"{mask.element} of shape {mask.shape}", f"bool of a shape that broadcasts to {input.shape}"
        raise InvalidProblemError(f"{name}: got {got}, want {want}.")


def _kept(c: Composer, input: Value, mask: Value | None, other: float | int, dtype: Any = None) -> Value:
    """`input`, cast to `dtype`, with a number in the place of what the mask leaves out."""
    _checked(input, mask)
    x = input if dtype is None else c.cast(input, Element.coerce(dtype, "dtype"))
    if mask is None:
        return x
    if x.element is Element.BOOL:
        return c.of(F.logical_and if not other else F.logical_or, x, mask if not other else c.of(F.logical_not, mask))  # type: ignore[no-any-return]
    made: Value = c.of(F.where, mask, x, other)
    return made


def _least(x: Element, sign: int) -> float | int:
    """What no element is above (sign 1) or below (sign -1)."""
    if x.is_float:
        return sign * inf
    limits = (0, 1) if x is Element.BOOL else x.limits
    return limits[1 if sign > 0 else 0]


def _axes(input: Value, dim: Any) -> tuple[int, ...]:
    """All dimensions for None."""
    given = range(input.rank) if dim is None else dim if isinstance(dim, (list, tuple)) else (dim,)
    axes = tuple(sorted(check_axis(d, input.rank, "dim") for d in given))
    if len(set(axes)) != len(axes):
        raise InvalidProblemError(f"dim: got {dim}, want every dimension once.")
    return axes if input.rank else ()


def _wide(x: Value, dtype: Any) -> Any:
    """The element of sums: f32 for halves is inside of the kernel; of integers i64."""
    if dtype is not None:
        return dtype
    return x.element if x.element.is_float else Element.I64


@pulled_through
@made_of("cast sum where")
@composed(tensors="input mask")
def masked_sum(
    c: Composer, input: Value, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Value | None = None
) -> Value:
    """The sum of the elements that the mask keeps, as torch.masked.sum; 0 where it keeps none."""
    x = _kept(c, input, mask, 0, _wide(input, dtype))
    made: Value = c.of(F.sum, x, _axes(input, dim), keepdim)
    return c.cast(made, x.element)


@pulled_through
@made_of("cast copy prod where")
@composed(tensors="input mask")
def masked_prod(
    c: Composer, input: Value, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Value | None = None
) -> Value:
    """The product of the elements that the mask keeps, as torch.masked.prod; 1 where it keeps none."""
    x = _kept(c, input, mask, 1, _wide(input, dtype))
    made = c.cast(c.of(F.prod, x), x.element) if dim is not None and not input.rank else x
    for axis in reversed(_axes(input, dim)):
        made = c.cast(c.of(F.prod, made, axis, keepdim), x.element)
    return made


def _extremum(c: Composer, fn: Any, sign: int, input: Value, dim: Any, keepdim: bool, mask: Value | None) -> Value:
    made: Value = c.of(fn, _kept(c, input, mask, _least(input.element, sign)), _axes(input, dim), keepdim)
    return made


@pulled_through
@made_of("amax cast logical_and where")
@composed(tensors="input mask")
def masked_amax(
    c: Composer, input: Value, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Value | None = None
) -> Value:
    """The maximum of the elements that the mask keeps, as torch.masked.amax; the least number where it keeps none."""
    return _extremum(c, F.amax, -1, _kept(c, input, None, 0, dtype), dim, keepdim, mask)


@pulled_through
@made_of("amin cast logical_not logical_or where")
@composed(tensors="input mask")
def masked_amin(
    c: Composer, input: Value, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Value | None = None
) -> Value:
    """The minimum of the elements that the mask keeps, as torch.masked.amin; the largest number where it keeps none."""
    return _extremum(c, F.amin, 1, _kept(c, input, None, 0, dtype), dim, keepdim, mask)


def _position(c: Composer, fn: Any, sign: int, input: Value, dim: Any, keepdim: bool, mask: Value | None) -> Value:
    made: Value = c.of(fn, _kept(c, input, mask, _least(input.element, sign)), dim, keepdim)
    return c.cast(made, input.element)


@made_of("argmax cast logical_and where")
@composed(tensors="input mask")
def masked_argmax(
    c: Composer,
    input: Value,
    dim: int | None = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Value | None = None,
) -> Value:
    """The position of the first maximum among the elements that the mask keeps, in the input's element, as torch.masked.argmax."""
    return _position(c, F.argmax, -1, _kept(c, input, None, 0, dtype), dim, keepdim, mask)


@made_of("argmin cast logical_not logical_or where")
@composed(tensors="input mask")
def masked_argmin(
    c: Composer,
    input: Value,
    dim: int | None = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Value | None = None,
) -> Value:
    """The position of the first minimum among the elements that the mask keeps, in the input's element, as torch.masked.argmin."""
    return _position(c, F.argmin, 1, _kept(c, input, None, 0, dtype), dim, keepdim, mask)


def _along(name: str, scan: str, other: float, words: str) -> Composed:
    """A function along one dimension of what is kept, with a number for the rest."""

    def rule(c: Composer, input: Value, dim: int, *, dtype: Any = None, mask: Value | None = None) -> Value:
        x = _kept(c, input, mask, other, dtype or (input.element if input.element.is_float else _whole(scan)))
        made: Value = c.of(getattr(F, scan), x, dim)
        # torch keeps the element of integers here, and wraps; dtype= asks for a wider one.
        keeps = dtype is None and x.element is Element.I64 and input.element is not Element.BOOL
        return c.cast(made, input.element if keeps else x.element)

    rule.__name__ = rule.__qualname__ = f"masked_{name}"
    rule.__doc__ = f"{words}, as torch.masked.{name}."
    return pulled_through(made_of(f"cast {'scaled_softmax' if scan == 'softmin' else scan} where")(_composed(rule)))


def _whole(scan: str) -> Element:
    return Element.I64 if scan.startswith("cum") else Element.F32


def _composed(rule: Any) -> Composed:
    return composed(tensors="input mask")(rule)


masked_cumsum = _along("cumsum", "cumsum", 0, "Running sum along `dim` of the elements that the mask keeps")
masked_cumprod = _along("cumprod", "cumprod", 1, "Running product along `dim` of the elements that the mask keeps")
masked_softmax = _along(
    "softmax", "softmax", -inf, "Softmax along `dim` of the elements that the mask keeps; 0 elsewhere"
)
masked_log_softmax = _along(
    "log_softmax", "log_softmax", -inf, "Log-softmax along `dim` of the elements that the mask keeps; -inf elsewhere"
)
masked_softmin = _along("softmin", "softmin", inf, "Softmax of -input along `dim` where the mask keeps it; 0 elsewhere")


@pulled_through
@made_of("cast logical_and logsumexp where")
@composed(tensors="input mask")
def masked_logsumexp(
    c: Composer, input: Value, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Value | None = None
) -> Value:
    """log(sum(exp(x))) of the elements that the mask keeps, as torch.masked.logsumexp; the least number where it keeps none."""
    x = _kept(c, input, None, 0, dtype)
    kept = _kept(c, x, mask, _least(x.element, -1))
    return c.cast(c.of(F.logsumexp, kept, _axes(input, dim), keepdim), x.element)


@pulled_through
@made_of("cast logaddexp logical_not logical_or where")
@composed(tensors="input other input_mask other_mask")
def masked_logaddexp(
    c: Composer,
    input: Value,
    other: Value,
    *,
    dtype: Any = None,
    input_mask: Value | None = None,
    other_mask: Value | None = None,
) -> Value:
    """log(exp(input) + exp(other)) of what the masks keep, as torch.masked.logaddexp."""
    left, right = _kept(c, input, input_mask, -inf, dtype), _kept(c, other, other_mask, -inf, dtype)
    made: Value = c.of(F.logaddexp, left, right)
    return made


@pulled_through
@made_of("cast norm where")
@composed(tensors="input mask")
def masked_norm(
    c: Composer,
    input: Value,
    ord: float | None = 2.0,
    dim: Any = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Value | None = None,
) -> Value:
    """The norm of the elements that the mask keeps, as torch.masked.norm."""
    power = 2.0 if ord is None else float(ord)
    x = _kept(c, input, mask, inf if power < 0 else 0.0, dtype)
    made: Value = c.of(F.norm, x, power, _axes(input, dim), keepdim)
    return made


@pulled_through
@made_of("cast clamp div norm")
@composed(tensors="input mask")
def masked_normalize(
    c: Composer,
    input: Value,
    ord: float,
    dim: int,
    *,
    eps: float = 1e-12,
    dtype: Any = None,
    mask: Value | None = None,
) -> Value:
    """What the mask keeps over max(its norm along `dim`, eps), 0 elsewhere, as torch.masked.normalize."""
    x = _kept(c, input, mask, 0.0, dtype)
    wide = c.wide(x)
    length = c.of(masked_norm, wide, ord, dim, keepdim=True, mask=mask)
    return c.cast(c.of(F.div, wide, c.of(F.clamp, length, float(eps))), x.element)


def _count(c: Composer, input: Value, mask: Value | None, axes: tuple[int, ...], element: Element) -> Any:
    """How many elements are kept: a tensor with the folded dimensions, or a number."""
    if mask is None:
        sizes = [n for i, n in enumerate(input.shape) if i in (axes or range(input.rank))]
        count = 1
        for n in sizes:
            count *= n
        return float(count)
    return c.cast(c.of(F.sum, mask.expand(input.shape), axes, True), element)


def _mean(c: Composer, x: Value, input: Value, mask: Value | None, axes: tuple[int, ...]) -> tuple[Value, Any]:
    """The mean with the folded dimensions, and how many elements there are."""
    count = _count(c, input, mask, axes, x.element)
    return c.of(F.div, c.of(F.sum, x, axes, True), count), count


def _without(c: Composer, x: Value, axes: tuple[int, ...], rank: int) -> Value:
    folded = axes or tuple(range(rank))
    return c.reshape(x, tuple(n for i, n in enumerate(x.shape) if i not in folded))


@pulled_through
@made_of("cast div sum where")
@composed(tensors="input mask")
def masked_mean(
    c: Composer, input: Value, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Value | None = None
) -> Value:
    """The mean of the elements that the mask keeps, as torch.masked.mean; NaN where it keeps none."""
    x, axes = _kept(c, input, mask, 0, dtype), _axes(input, dim)
    if not x.element.is_float:
        raise InvalidProblemError(f"input: got {x.element}, want a float element. Cast it first, or give dtype.")
    made, _ = _mean(c, x, input, mask, axes)
    return made if keepdim else _without(c, made, axes, input.rank)


def _variance(
    c: Composer,
    input: Value,
    dim: Any,
    unbiased: bool | None,
    correction: float | None,
    keepdim: bool,
    dtype: Any,
    mask: Value | None,
) -> Value:
    if unbiased is not None and correction is not None:
        raise InvalidProblemError(f"unbiased: got {unbiased} beside a correction, want one of them.")
    by = 1.0 if correction is None else float(correction)
    by = by if unbiased is None else float(unbiased)
    axes = _axes(input, dim)
    to = dtype or (input.element if input.element.is_float else Element.F32)
    apart, count = c.wide(c.cast(input, Element.coerce(to, "dtype"))), cast(Any, None)
    for _ in range(2):  # far from 0 what rounding the mean leaves over may be as large as the deviations
        mean, count = _mean(c, _kept(c, apart, mask, 0), input, mask, axes)
        apart = c.of(F.sub, apart, mean)
    total = c.of(F.sum, _kept(c, c.of(F.square, apart), mask, 0.0), axes, True)
    less: Any = max(count - by, 0.0) if mask is None else c.of(F.clamp, c.of(F.sub, count, by), 0.0)
    made = c.cast(c.of(F.div, total, less), Element.coerce(to, "dtype"))
    return made if keepdim else _without(c, made, axes, input.rank)


@pulled_through
@made_of("cast clamp div square sub sum where")
@composed(tensors="input mask")
def masked_var(
    c: Composer,
    input: Value,
    dim: Any = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Value | None = None,
) -> Value:
    """The variance of the elements that the mask keeps, as torch.masked.var."""
    return _variance(c, input, dim, unbiased, correction, keepdim, dtype, mask)


@pulled_through
@made_of("cast clamp div sqrt square sub sum where")
@composed(tensors="input mask")
def masked_std(
    c: Composer,
    input: Value,
    dim: Any = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Value | None = None,
) -> Value:
    """The standard deviation of the elements that the mask keeps, as torch.masked.std."""
    made: Value = c.of(root, _variance(c, input, dim, unbiased, correction, keepdim, dtype, mask))
    return made
