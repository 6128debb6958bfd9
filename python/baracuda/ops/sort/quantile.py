"""Quantiles, made of `sort`, `gather` and `lerp`."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from baracuda import functional as F
from baracuda.call.compose import Composer, Number, Value, composed
from baracuda.call.inline import pulled_through
from baracuda.call.op import Arg, Call, Function, Recipe, function
from baracuda.call.steps import made_of
from baracuda.describe.dims import check_axis
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError

OPS = ()

INTERPOLATIONS = ("linear", "lower", "higher", "nearest", "midpoint")
# Up to so many values places are computed in their own element, as torch's are, beyond in f64, which counts them all.
MOST_NARROW = 1 << 20


def _check(input: Any, q: Any, interpolation: str) -> None:
    for name, given, want in (("input", input, "a tensor"), ("q", q, "a number of 0 to 1 or a tensor of them")):
        if not isinstance(given, Arg) or not (given.is_tensor or given is q):
            got = type(given.value if isinstance(given, Arg) else given).__name__
            raise InvalidProblemError(
                f"{name}: got an object of type {got}, want {want}. Wrap lists with np.asarray()."
            )
    if input.element not in (Element.F32, Element.F64):
        raise InvalidProblemError(f"input: got element {input.element}, want f32 or f64. Cast it first.")
    if q.is_tensor and (q.element is not input.element or len(q.shape) > 1):
        got = f"{q.element} of shape {q.shape}"
        raise InvalidProblemError(f"q: got {got}, want a number, or {input.element} of rank 0 or 1.")
    if interpolation not in INTERPOLATIONS:
        raise InvalidProblemError(f"interpolation: got {interpolation!r}, want one of {', '.join(INTERPOLATIONS)}.")


def _is_number(q: Any) -> bool:
    return isinstance(q, (Number, int, float))


def _places(c: Composer, ordered: Value, q: Any, nan_too: bool) -> Value:
    """Where along the last axis the quantiles lie, of each row: q (n - 1), with NaN at the end where it counts."""
    n = ordered.shape[-1]
    element = ordered.element if n <= MOST_NARROW else Element.F64
    wanted = q if _is_number(q) else c.cast(q, element)
    if nan_too:
        last = ordered[..., n - 1 :]
        most = c.of(F.full_like, last, float(n - 1), dtype=element)
        return c.of(F.where, c.of(F.isnan, last), most, c.of(F.mul, most, wanted))  # type: ignore[no-any-return]
    numbers = c.of(F.sum, c.of(F.logical_not, c.of(F.isnan, ordered)), (-1,), True)
    most = c.of(F.clamp, c.of(F.sub, c.cast(numbers, element), 1.0), 0.0)
    return c.of(F.mul, most, wanted)  # type: ignore[no-any-return]


def _between(c: Composer, ordered: Value, place: Value, interpolation: str) -> Value:
    """The value at a place, by the two that it lies between."""

    def at(whole: Value) -> Value:
        return c.of(F.gather, ordered, -1, c.cast(whole, Element.I64))  # type: ignore[no-any-return]

    if interpolation in ("lower", "higher", "nearest"):
        return at(c.of({"lower": F.floor, "higher": F.ceil, "nearest": F.round}[interpolation], place))
    below = c.of(F.floor, place)
    low, high = at(below), at(c.of(F.ceil, place))
    weight = 0.5 if interpolation == "midpoint" else c.cast(c.of(F.sub, place, below), ordered.element)
    # Nothing lies between equal values, infinite ones among them, whose difference is NaN.
    return c.of(F.where, c.of(F.eq, low, high), low, c.of(F.lerp, low, high, weight))  # type: ignore[no-any-return]


def _steps(nan_too: bool) -> Callable[..., Value]:
    def quantile(
        c: Composer,
        input: Value,
        q: Any,
        dim: int | None = None,
        keepdim: bool = False,
        *,
        interpolation: str = "linear",
    ) -> Value:
        row = c.reshape(input, (prod(input.shape),)) if dim is None or not input.rank else input
        axis = 0 if dim is None else check_axis(dim, max(input.rank, 1), "dim")
        if not row.shape[axis]:
            raise InvalidProblemError(f"input: got no elements along dim {dim}, want one at least: none has quantiles.")
        others = tuple(i for i in range(row.rank) if i != axis)
        ordered = c.of(F.sort, row.permute((*others, axis)), -1)[0]
        made = _between(c, ordered, _places(c, ordered, q, nan_too), interpolation)  # (others, quantiles)
        first = () if _is_number(q) or not q.rank else made.shape[-1:]
        kept = tuple(1 if dim is None or i == axis else n for i, n in enumerate(input.shape))
        shape = (*first, *(kept if keepdim else made.shape[:-1]))
        return c.reshape(made.permute((made.rank - 1, *range(made.rank - 1))), shape)

    return quantile


def _quantile(name: str, about: str, nan_too: bool) -> Function:
    rule = _steps(nan_too)

    def quantile(
        call: Call,
        input: Arg,
        q: Any,
        dim: int | None = None,
        keepdim: bool = False,
        *,
        interpolation: str = "linear",
        out: Any = None,
    ) -> Recipe:
        del out
        _check(input, q, interpolation)
        return call.steps(rule, input, q, dim=dim, keepdim=keepdim, interpolation=interpolation)

    quantile.__name__ = name
    quantile.__doc__ = f"""Quantiles {about}, as torch.{name}: the values at q (n - 1) of the order.

    Args:
        input: f32 or f64.
        q: A number of 0 to 1, or a vector of them, whose quantiles come first in the result.
        dim: The dimension whose values are asked about; None for all.
        keepdim: Whether it stays, with size 1.
        interpolation: Between two values "linear", "midpoint", or one of them: "lower", "higher" or "nearest", the even
            one of two as near.
        out: A tensor to write the result to.

    Raises:
        IndexOutOfRangeError: A q below 0 or above 1, as the place that it stands for.

    Where both values are the same infinity that is the result; torch's is NaN.
    """
    steps = "cast floor ceil sub gather eq where lerp mul isnan sort round copy" + (
        " fill" if nan_too else " sum clamp logical_not"
    )
    made = made_of(steps)(function(tensors="input q")(quantile))
    of_numbers = pulled_through(composed(tensors="input")(rule)).vjp_rule
    of_tensors = pulled_through(composed(tensors="input q")(rule)).vjp_rule
    assert of_numbers and of_tensors

    @made.vjp
    def gradient(*args: Any, out: Any = None, **options: Any) -> Any:
        given = made.__signature__.bind(*args, **options)
        pulled = of_numbers if _is_number(given.arguments["q"]) else of_tensors
        return pulled(*given.args, **given.kwargs)

    return made


quantile = _quantile("quantile", "along `dim`, NaN where there is any", nan_too=True)
nanquantile = _quantile("nanquantile", "of the numbers along `dim`, NaN where there are none", nan_too=False)
