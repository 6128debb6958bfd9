"""Folds of the elements of each segment, made of writes by index, which fold in the order of positions."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, prod
from typing import Any

import numpy as np

from baracuda import _core
from baracuda import functional as F
from baracuda.call.compose import Composer, Value, composed
from baracuda.call.op import composite
from baracuda.call.steps import made_of
from baracuda.describe.dims import check_axis
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.ops.indexing.counting import number_of
from baracuda.ops.indexing.scatter import IndexAddDescriptor, ScatterReduceDescriptor
from baracuda.ops.layout.layout import ArangeDescriptor, FillDescriptor
from baracuda.ops.sort.search import SearchsortedDescriptor

OPS = ()

_MODES = {"sum": "sum", "mean": "mean", "prod": "prod", "max": "amax", "min": "amin"}
_INDICES = (Element.I64, Element.I32)


def _neutral(element: Element, reduce: str) -> Any:
    """What a fold of nothing is; a mean of nothing is NaN."""
    if reduce in ("sum", "prod"):
        return int(reduce == "prod")
    if element.is_float:
        return {"mean": 0.0, "max": -inf, "min": inf}[reduce]
    if element is Element.BOOL:
        return int(reduce == "min")
    limits = np.iinfo(element.numpy)
    return int(limits.min if reduce == "max" else limits.max)


def _by_batch(c: Composer, x: Value, ids: Value) -> tuple[Value, Value]:
    """The tensor as (batch, elements, what lies behind), with ids of (batch, elements)."""
    lead = ids.shape[:-1]
    batch, n = prod(lead), ids.shape[-1]
    behind = prod(x.shape[ids.rank :])
    return c.reshape(x, (batch, n, behind)), c.reshape(ids, (batch, n))


def _spread(ids: Value, shape: tuple[int, ...]) -> Value:
    """Ids of (batch, elements) as one for each element of (batch, elements, behind), without a copy."""
    return ids.permute((0, 1, -1)).expand(shape)


def _wide(element: Element) -> Element:
    """What means and gradients are computed in: counts are exact there."""
    return Element.F64 if element is Element.F64 else Element.F32


def _start(c: Composer, shape: tuple[int, ...], element: Element, number: Any) -> Value:
    made: Value = c(FillDescriptor(shape, element), value=number)
    return made


def _fold(c: Composer, data: Value, ids: Value, segments: int, reduce: str, initial: Any) -> Value:
    """Folds of (batch, segments, behind), begun with a number where one is given."""
    x, at = _by_batch(c, data, ids)
    batch, n, behind = x.shape
    shape, e = (batch, segments, behind), x.element
    number = _neutral(e, reduce) if initial is None else initial
    mode: Any = _MODES["sum" if reduce == "mean" else reduce]
    start = _start(c, shape, e, number)
    if mode == "sum" and batch == 1:
        desc = IndexAddDescriptor(shape, (n,), 1, e, at.element)
        made = c(desc, x=start, index=at[0], source=x, alpha=1)
    else:
        folded = ScatterReduceDescriptor(shape, x.shape, 1, e, at.element, mode, True)
        made = c(folded, x=start, index=_spread(at, x.shape), source=x)
    if reduce != "mean":
        return made  # type: ignore[no-any-return]
    counts = _counts(c, at, segments, e)
    if initial is not None:
        counts = c.of(F.clamp, counts, 1.0)
    return c.of(F.div, made, counts)  # type: ignore[no-any-return]


def _counts(c: Composer, ids: Value, segments: int, element: Element) -> Value:
    """How many elements each segment has, as (batch, segments, 1)."""
    batch, n = ids.shape
    return _fold(c, _start(c, (1, 1, 1), element, 1).expand((batch, n, 1)), ids, segments, "sum", None)


def _named(c: Composer, of_segments: Value, ids: Value) -> Value:
    """What each element's segment has, as (batch, elements, behind)."""
    batch, _, behind = of_segments.shape
    shape = (batch, ids.shape[1], behind)
    return c.of(F.gather, of_segments, 1, _spread(ids, shape))  # type: ignore[no-any-return]


@composed(tensors="data segment_ids")
def _segments(
    c: Composer, data: Value, segment_ids: Value, segments: int, reduce: str, initial: float | None = None
) -> Value:
    """Folds of segments by segment_ids of the first dimensions."""
    e = data.element
    made = _fold(c, c.cast(data, _wide(e)) if reduce == "mean" else data, segment_ids, segments, reduce, initial)
    return c.reshape(c.cast(made, e), (*segment_ids.shape[:-1], segments, *data.shape[segment_ids.rank :]))


@composed(tensors="dy data segment_ids result")
def _segments_backward(
    c: Composer, dy: Value, data: Value, segment_ids: Value, result: Value, reduce: str, initial: float | None = None
) -> Value:
    """Gradient of a fold: extremes share it among elements that are as large; products leave out the element itself."""
    wide = _wide(data.element)
    x, at = _by_batch(c, c.cast(data, wide), segment_ids)
    full = (x.shape[0], dy.shape[segment_ids.rank - 1], x.shape[2])
    grad, y = c.reshape(c.cast(dy, wide), full), c.reshape(c.cast(result, wide), full)
    made = _gradient(c, grad, x, y, at, reduce, initial)
    return c.cast(c.reshape(made, data.shape), data.element)


def _gradient(c: Composer, grad: Value, x: Value, y: Value, at: Value, reduce: str, initial: Any) -> Value:
    segments = grad.shape[1]
    if reduce == "mean":
        grad = c.of(F.div, grad, c.of(F.clamp, _counts(c, at, segments, x.element), 1.0))
    if reduce in ("sum", "mean"):
        return _named(c, grad, at)
    if reduce == "prod":
        return _product_gradient(c, grad, x, at, initial)
    theirs = _named(c, y, at)
    both_nan = c.of(F.logical_and, c.of(F.isnan, x), c.of(F.isnan, theirs))
    hit = c.of(F.logical_or, c.of(F.eq, x, theirs), both_nan)
    share = c.of(F.div, grad, _fold(c, c.cast(hit, x.element), at, segments, "sum", None))
    return c.of(F.where, hit, _named(c, share, at), 0.0)  # type: ignore[no-any-return]


def _product_gradient(c: Composer, grad: Value, x: Value, segment_ids: Value, initial: Any) -> Value:
    """Gradients dy times the product of the others: of a segment with one zero only that one's is not 0, with more none."""
    segments = grad.shape[1]
    zero = c.of(F.eq, x, 0.0)
    zeros = _named(c, _fold(c, c.cast(zero, x.element), segment_ids, segments, "sum", None), segment_ids)
    numbers = c.of(F.where, zero, 1.0, x)
    product = _named(c, c.of(F.mul, grad, _fold(c, numbers, segment_ids, segments, "prod", initial)), segment_ids)
    others = c.of(F.eq, c.of(F.sub, zeros, c.cast(zero, x.element)), 0.0)
    return c.of(F.where, others, c.of(F.div, product, numbers), 0.0)  # type: ignore[no-any-return]


def _pulled(data: Any, segment_ids: Any, segments: int, reduce: str, initial: float | None = None) -> tuple[Any, Any]:
    y = _segments(data, segment_ids, segments, reduce, initial)
    return y, lambda dy: _segments_backward(dy, data, segment_ids, y, reduce, initial)


def _checked(name: str, data: Any, segment_ids: Any, segments: int | None) -> int:
    """How many segments there are: as given, or one more than the largest id."""
    shape, code, *_ = _core.describe(data)
    own, id_code, *_ = _core.describe(segment_ids)
    if len(own) != 1 or not shape or own[0] != shape[0] or Element(id_code) not in _INDICES:
        got, want = f"{Element(id_code)} of shape {tuple(own)}", f"i64 or i32 of shape {tuple(shape[:1])}"
        raise InvalidProblemError(
            f"{name}: segment_ids: got {got}, want {want}: an id for each of data's first dimension."
        )
    if not Element(code).is_float and name in ("segment_mean", "segment_softmax"):
        raise InvalidProblemError(f"{name}: data: got element {Element(code)}, want a float. Cast it first.")
    element = Element(code)
    if not (element.is_float or element.is_integer or element is Element.BOOL):
        raise InvalidProblemError(f"{name}: data: got element {element}, want floats, integers or bool.")
    if segments is None:
        segments = number_of(F.amax(segment_ids)) + 1 if own[0] else 0
    if segments < 0:
        raise InvalidProblemError(f"{name}: num_segments: got {segments}, want a number that is not negative.")
    return segments


def _segment_fold(reduce: str, what: str, nothing: str) -> Callable[..., Any]:
    name = f"segment_{reduce}"

    def fold(data: Any, segment_ids: Any, num_segments: int | None = None) -> Any:
        return _segments(data, segment_ids, _checked(name, data, segment_ids, num_segments), reduce)

    fold.__name__ = name
    fold.__doc__ = f"""{what} of the slices of each segment: y[s] is that of all data[i] whose segment_ids[i] is s.

    Ids need no order. Slices are folded in the order of positions and in twice the precision: one result on every run. As
    jax.ops.{name}, but that an id out of range is an error.

    Args:
        data: A tensor.
        segment_ids: i64 or i32, an id for each slice along the first dimension.
        num_segments: How many segments there are; by default one more than the largest id, which a device is waited for.

    Raises:
        InvalidProblemError: If there is not one id for each slice.
        IndexOutOfRangeError: If an id is negative, or not below the number of segments.

    A segment of nothing gives {nothing}.
    """
    steps = {"sum": "index_add", "mean": "index_add cast div"}.get(reduce, "scatter_reduce")
    made: Any = made_of(f"amax fill {steps}")(composite(fold))

    def pulled(data: Any, segment_ids: Any, num_segments: int | None = None) -> tuple[Any, Any]:
        return _pulled(data, segment_ids, _checked(name, data, segment_ids, num_segments), reduce)

    made.vjp_rule = pulled
    return made  # type: ignore[no-any-return]


segment_sum = _segment_fold("sum", "The sum", "0")
segment_mean = _segment_fold("mean", "The mean", "NaN")
segment_prod = _segment_fold("prod", "The product", "1")
segment_max = _segment_fold("max", "The largest", "-inf, or the least of an integer element")
segment_min = _segment_fold("min", "The smallest", "inf, or the greatest of an integer element")


@composed(tensors="data segment_ids")
def _softmax(c: Composer, data: Value, segment_ids: Value, segments: int) -> Value:
    x, at = _by_batch(c, c.cast(data, _wide(data.element)), segment_ids)
    most = _named(c, _fold(c, x, at, segments, "max", None), at)
    e = c.of(F.exp, c.of(F.sub, x, most))
    made = c.of(F.div, e, _named(c, _fold(c, e, at, segments, "sum", None), at))
    return c.cast(c.reshape(made, data.shape), data.element)


@composed(tensors="dy result segment_ids")
def _softmax_backward(c: Composer, dy: Value, result: Value, segment_ids: Value, segments: int) -> Value:
    """Gradient y (dy - the sum of dy y over the segment)."""
    wide = _wide(dy.element)
    grad, at = _by_batch(c, c.cast(dy, wide), segment_ids)
    y, _ = _by_batch(c, c.cast(result, wide), segment_ids)
    total = _named(c, _fold(c, c.of(F.mul, grad, y), at, segments, "sum", None), at)
    made = c.of(F.mul, y, c.of(F.sub, grad, total))
    return c.cast(c.reshape(made, dy.shape), dy.element)


@made_of("amax fill index_add scatter_reduce cast gather sub exp div")
@composite
def segment_softmax(data: Any, segment_ids: Any, num_segments: int | None = None) -> Any:
    """exp(data[i] - m) / the sum of these over the segment of i, where m is its largest: a softmax of each segment.

    Args:
        data: f16, bf16, f32 or f64; each place behind the first dimension is one of its own.
        segment_ids: i64 or i32, an id for each slice along the first dimension, in any order.
        num_segments: How many segments there are; by default one more than the largest id, which a device is waited for.

    Raises:
        InvalidProblemError: If there is not one id for each slice, or data are no floats.
        IndexOutOfRangeError: If an id is negative, or not below the number of segments.
    """
    return _softmax(data, segment_ids, _checked("segment_softmax", data, segment_ids, num_segments))


def _softmax_vjp(data: Any, segment_ids: Any, num_segments: int | None = None) -> tuple[Any, Any]:
    segments = _checked("segment_softmax", data, segment_ids, num_segments)
    y = _softmax(data, segment_ids, segments)
    return y, lambda dy: _softmax_backward(dy, y, segment_ids, segments)


segment_softmax.vjp_rule = _softmax_vjp  # type: ignore[attr-defined]


@composed(tensors="ends")
def _ids(c: Composer, ends: Value, size: int) -> Value:
    """Which segment each of so many positions is in, where they end at `ends`."""
    batch = prod(ends.shape[:-1])
    places = c(ArangeDescriptor((size,), Element.I64), start=0, step=1)
    flat = c.cast(c.reshape(ends, (batch, ends.shape[-1])), Element.I64)
    desc = SearchsortedDescriptor(flat.shape, (batch, size), True, Element.I64)
    made = c(desc, sequence=flat, values=places.expand((batch, size)))
    return c.reshape(made, (*ends.shape[:-1], size))


def _ends(name: str, given: Any, from_zero: bool, shape: tuple[int, ...], axis: int, unsafe: bool) -> Any:
    """Where segments end that have given lengths, or begin at given offsets and end at the last of them."""
    own, code, *_ = _core.describe(given)
    if len(own) != axis + 1 or tuple(own[:-1]) != shape[:axis] or Element(code) not in _INDICES or own[-1] < from_zero:
        got, want = f"{Element(code)} of shape {tuple(own)}", f"i64 or i32 of shape {(*shape[:axis], 'segments')}"
        raise InvalidProblemError(f"segment_reduce: {name}: got {got}, want {want}.")
    lengths = F.sub(given[..., 1:], given[..., :-1]) if from_zero else given
    ends = F.cumsum(lengths, -1)
    if unsafe or not prod(own):
        return ends
    whole = _all(F.eq(given[..., :1], 0)) if from_zero else True
    if prod(lengths.shape):
        whole = (
            whole
            and _all(F.ge(lengths, 0))
            and _all(F.le(lengths, shape[axis]))
            and _all(F.eq(ends[..., -1:], shape[axis]))
        )
    if not whole or (not lengths.shape[-1] and shape[axis]):
        want = f"segments that are together the {shape[axis]} elements of dimension {axis}"
        raise InvalidProblemError(f"segment_reduce: {name}: got others, want {want}, none of a negative length.")
    return ends


def _all(x: Any) -> bool:
    return bool(number_of(F.all(x)))


def _asked(
    data: Any, reduce: str, lengths: Any, indices: Any, offsets: Any, axis: int, unsafe: bool, initial: Any
) -> tuple[Any, Any, int, str, float | None]:
    """What _segments is given for a call of segment_reduce."""
    shape, code, *_ = _core.describe(data)
    if reduce not in _MODES:
        raise InvalidProblemError(f"segment_reduce: reduce: got {reduce!r}, want one of {', '.join(_MODES)}.")
    if not Element(code).is_float:
        raise InvalidProblemError(f"segment_reduce: data: got element {Element(code)}, want a float. Cast it first.")
    if indices is not None or (lengths is None) == (offsets is None):
        want = "lengths or offsets; functions segment_sum and kin take ids"
        raise InvalidProblemError(f"segment_reduce: got neither or too many of them, want either {want}.")
    if not shape:
        raise InvalidProblemError(
            "segment_reduce: data: got a 0-d tensor, want at least one dimension to find segments in."
        )
    axis = check_axis(axis, len(shape), "axis")
    name, given = ("lengths", lengths) if offsets is None else ("offsets", offsets)
    ends = _ends(name, given, offsets is not None, tuple(shape), axis, unsafe)
    return data, _ids(ends, shape[axis]), ends.shape[-1], reduce, None if initial is None else float(initial)


@made_of("fill index_add scatter_reduce cast cumsum searchsorted arange sub eq ge le all div clamp")
@composite
def segment_reduce(
    data: Any,
    reduce: str,
    *,
    lengths: Any = None,
    indices: Any = None,
    offsets: Any = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: float | None = None,
) -> Any:
    """Folds of neighbours along `axis`, as torch.segment_reduce: each segment begins where the one before it ends.

    Args:
        data: f16, bf16, f32 or f64.
        reduce: "sum", "mean", "prod", "max" or "min".
        lengths: How many elements each segment has, i64 or i32; of the shape of data's dimensions before the axis and one more.
        indices: Not taken, as by torch.
        offsets: Where segments begin, from 0 on, and where the last one ends, in the place of lengths.
        axis: The dimension that segments lie along.
        unsafe: Whether to leave out the check that they are together what that dimension has, which a device is waited for.
        initial: A number that each fold begins with, means before they are divided. Without it a segment of nothing gives
            0 or 1, an infinity, or, as mean, NaN.

    Raises:
        InvalidProblemError: If segments do not fit the data.
    """
    return _segments(*_asked(data, reduce, lengths, indices, offsets, axis, unsafe, initial))


def _segment_reduce_vjp(
    data: Any,
    reduce: str,
    *,
    lengths: Any = None,
    indices: Any = None,
    offsets: Any = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: float | None = None,
) -> tuple[Any, Any]:
    return _pulled(*_asked(data, reduce, lengths, indices, offsets, axis, unsafe, initial))


segment_reduce.vjp_rule = _segment_reduce_vjp  # type: ignore[attr-defined]
