"""Elementwise functions and differences made of others: `rsub`, `diff`, `trapezoid`, ..."""

from __future__ import annotations

from dataclasses import replace
from math import inf, log, pi, prod
from typing import Any

from baracuda import _core
from baracuda import functional as F
from baracuda.call.compose import Composer, Value, composed
from baracuda.call.inline import pulled_through
from baracuda.call.op import Arg, Call, Recipe, composite, function
from baracuda.call.steps import made_of
from baracuda.describe.dims import check_axis
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.promotion import promote
from baracuda.ops.binary import binary
from baracuda.ops.binary.binary import BinaryDescriptor
from baracuda.ops.ternary import ternary

OPS = ()


@made_of("sub")
@function(tensors="input other", scalars="alpha")
def rsub(call: Call, input: Arg, other: Arg, *, alpha: Any = 1) -> Recipe:
    """Other - alpha * input, as torch.rsub."""
    recipe: Recipe = binary.sub.miss.rule(call, other, input, alpha=alpha)  # type: ignore[attr-defined]
    return recipe


@rsub.vjp
def _rsub_vjp(input: Any, other: Any, *, alpha: Any = 1) -> tuple[Any, Any]:
    y, pull = F.sub.vjp_rule(other, input, alpha=alpha)  # type: ignore[attr-defined]

    def turned(dy: Any) -> Any:
        found = pull(dy)
        return found[::-1] if isinstance(found, tuple) else found

    return y, turned


@made_of("pow")
@function(tensors="input exponent")
def float_power(call: Call, input: Arg, exponent: Arg, *, out: Arg | None = None) -> Recipe:
    """Input ** exponent in f64, as torch.float_power."""
    given = binary._given(input, exponent)
    return call(BinaryDescriptor(**binary._describe("pow", input, exponent, Element.F64)), **given)


@float_power.vjp
def _float_power_vjp(input: Any, exponent: Any) -> tuple[Any, Any]:
    def wide(x: Any) -> Any:
        return x if isinstance(x, (int, float)) or x.dtype in ("f64",) else F.cast(x, "f64")

    y, pull = F.pow.vjp_rule(wide(input), wide(exponent))  # type: ignore[attr-defined]
    tensors = [x for x in (input, exponent) if not isinstance(x, (int, float))]

    def narrowed(dy: Any) -> Any:
        found = pull(dy)
        found = found if isinstance(found, tuple) else (found,)
        made = tuple(F.cast(g, x.dtype) for g, x in zip(found, tensors, strict=True))
        return made[0] if len(made) == 1 else made

    return y, narrowed


@made_of("clamp clamp_tensors")
@function(tensors="input min")
def clamp_min(call: Call, input: Arg, min: Arg, *, out: Arg | None = None) -> Recipe:
    """The larger one of `input` and a bound, a number or a tensor, as torch.clamp_min."""
    recipe: Recipe = ternary.clamp.miss.rule(call, input, min, None)
    return recipe


@made_of("clamp clamp_tensors")
@function(tensors="input max")
def clamp_max(call: Call, input: Arg, max: Arg, *, out: Arg | None = None) -> Recipe:
    """The smaller one of `input` and a bound, a number or a tensor, as torch.clamp_max."""
    recipe: Recipe = ternary.clamp.miss.rule(call, input, None, max)
    return recipe


@clamp_min.vjp
def _clamp_min_vjp(input: Any, min: Any) -> tuple[Any, Any]:
    found: tuple[Any, Any] = ternary._clamp_vjp(input, min, None)
    return found


@clamp_max.vjp
def _clamp_max_vjp(input: Any, max: Any) -> tuple[Any, Any]:
    found: tuple[Any, Any] = ternary._clamp_vjp(input, None, max)
    return found


@made_of("eq")
@function(tensors="input")
def isposinf(call: Call, input: Arg, *, out: Arg | None = None) -> Recipe:
    """Whether elements are positive infinity, as torch.isposinf."""
    return _is(call, input, inf)


@made_of("eq")
@function(tensors="input")
def isneginf(call: Call, input: Arg, *, out: Arg | None = None) -> Recipe:
    """Whether elements are negative infinity, as torch.isneginf."""
    return _is(call, input, -inf)


def _is(call: Call, input: Arg, value: float) -> Recipe:
    other = Arg(-1, "other", value, (), Element.F32, is_tensor=False)
    element = input.element if input.element.is_float else Element.F32
    desc = BinaryDescriptor(**binary._describe("eq", input, other, element))
    return call(desc, a=input, number=value)


@made_of("eq fill")
@composed(tensors="input")
def isreal(c: Composer, input: Value) -> Value:
    """Whether elements have no imaginary part, as torch.isreal: true for all that are not complex."""
    part = {Element.C64: Element.F32, Element.C128: Element.F64}.get(input.element)
    if part is None:
        return c.of(F.full_like, input, 1, dtype=Element.BOOL)  # type: ignore[no-any-return]
    steps, offset = tuple(2 * s for s in input.strides), 2 * input.offset + 1
    return c.of(F.eq, replace(input, strides=steps, offset=offset, element=part), 0)  # type: ignore[no-any-return]


@made_of("fill")
@function(tensors="input", scalars="value")
def fill(call: Call, input: Arg, value: Any) -> Recipe:
    """A tensor of the shape and element of `input`, filled with one number, as torch.fill."""
    from baracuda.ops.layout.layout import FillDescriptor

    return call(FillDescriptor(input.shape, input.element), value=value)


@made_of("any eq logical_not")
@composed(tensors="elements test_elements")
def isin(
    c: Composer, elements: Value, test_elements: Value, *, assume_unique: bool = False, invert: bool = False
) -> Value:
    """Whether each of the elements is one of `test_elements`, as torch.isin; all pairs are compared."""
    column = c.reshape(elements, (prod(elements.shape), 1))
    same = c.of(F.eq, column, c.reshape(test_elements, (-1,)) if test_elements.rank != 1 else test_elements)
    found = c.reshape(c.of(F.any, same, (1,)), elements.shape)
    return c.of(F.logical_not, found) if invert else found


def _held(answer: Any) -> bool:
    """A truth of rank 0 of any framework, as Python has it."""
    return bool(answer)


@made_of("all eq")
@composite
def equal(input: Any, other: Any) -> bool:
    """Whether two tensors have the same shape and elements, as torch.equal; waits for the answer."""
    if tuple(input.shape) != tuple(other.shape):
        return False
    return _held(F.all(F.eq(input, other)))


@made_of("all isclose")
@composite
def allclose(input: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether all elements are close, as torch.allclose and isclose have it; waits for the answer."""
    return _held(F.all(F.isclose(input, other, rtol, atol, equal_nan)))


@made_of("lt neg where xlogy")
@composed(tensors="input")
def entr(c: Composer, input: Value, *, out: Any = None) -> Value:
    """-x ln x, 0 at 0 and -inf below, as torch.special.entr."""
    made: Value = c.of(F.where, c.of(F.lt, input, 0), -inf, c.of(F.neg, c.of(F.xlogy, input, input)))
    return made


def _entr_vjp(input: Any) -> tuple[Any, Any]:
    def pull(dy: Any) -> Any:
        slope = F.sub(-1.0, F.log(input))
        return F.mul(dy, F.where(F.lt(input, 0), 0.0, slope))

    return entr(input), pull


entr.vjp_rule = _entr_vjp


@made_of("eq isnan log1p logical_and logical_not mul where")
@composed(tensors="input other")
def xlog1py(c: Composer, input: Value, other: Value, *, out: Any = None) -> Value:
    """Input * ln(1 + other), 0 where input is 0 and other is no NaN, as torch.special.xlog1py."""
    zero = c.of(F.logical_and, c.of(F.eq, input, 0), c.of(F.logical_not, c.of(F.isnan, other)))
    made: Value = c.of(F.where, zero, 0.0, c.of(F.mul, input, c.of(F.log1p, other)))
    return made


def _xlog1py_vjp(input: Any, other: Any) -> tuple[Any, Any]:
    def pull(dy: Any) -> tuple[Any, Any]:
        ended = F.logical_and(F.eq(input, 0), F.le(other, -1))  # where the value is 0 whatever `other` is
        by_input = F.mul(dy, F.where(ended, 0.0, F.log1p(other)))
        by_other = F.mul(dy, F.div(input, F.add(other, 1.0)))
        return binary._sum_to(by_input, input), binary._sum_to(by_other, other)

    return xlog1py(input, other), pull


xlog1py.vjp_rule = _xlog1py_vjp


@pulled_through
@made_of("add cast lgamma sub")
@composed(tensors="input")
def mvlgamma(c: Composer, input: Value, p: int, *, out: Any = None) -> Value:
    """Ln of the multivariate gamma function of dimension p, as torch.mvlgamma: NaN or infinite at (p - 1) / 2 and below."""
    if p < 1:
        raise InvalidProblemError(f"p: got {p}, want at least 1.")
    x = input if input.element.is_float else c.cast(input, Element.F32)
    made: Value = c.of(F.lgamma, x)
    for j in range(1, p):
        made = c.of(F.add, made, c.of(F.lgamma, c.of(F.sub, x, j / 2)))
    return c.of(F.add, made, p * (p - 1) / 4 * log(pi)) if p > 1 else made


@pulled_through
@made_of("cast erfc mul")
@composed(tensors="input")
def ndtr(c: Composer, input: Value, *, out: Any = None) -> Value:
    """The normal distribution function, erfc(-x / sqrt(2)) / 2, as torch.special.ndtr."""
    x = input if input.element.is_float else c.cast(input, Element.F32)
    made: Value = c.of(F.mul, c.of(F.erfc, c.of(F.mul, x, -(0.5**0.5))), 0.5)
    return made


def _sides(x: Value, axis: int) -> tuple[Value, Value]:
    """All slices but the first, and all but the last."""
    lead = (slice(None),) * axis
    return x[(*lead, slice(1, None))], x[(*lead, slice(None, -1))]


@pulled_through
@made_of("cast cat copy logical_xor sub")
@composed(tensors="input prepend append")
def diff(
    c: Composer,
    input: Value,
    n: int = 1,
    dim: int = -1,
    prepend: Value | None = None,
    append: Value | None = None,
    *,
    out: Any = None,
) -> Value:
    """The n-th differences of neighbours along `dim`, as torch.diff; of bools whether they differ.

    Args:
        input: A tensor of at least one dimension.
        n: How often differences are taken.
        dim: Along which dimension.
        prepend: What is put before `input`.
        append: What is put behind it.
        out: A tensor to write the result to.
    """
    if not input.rank or n < 0:
        raise InvalidProblemError(f"input: got rank {input.rank} and n={n}, want at least rank 1 and n >= 0.")
    axis = check_axis(dim, input.rank, "dim")
    parts = [x for x in (prepend, input, append) if x is not None and (n or x is input)]
    made: Value = c.of(F.cat, parts, axis) if len(parts) > 1 else input
    for _ in range(min(n, made.shape[axis])):
        step = F.logical_xor if made.element is Element.BOOL else F.sub
        made = c.of(step, *_sides(made, axis))
    return made


def _trapezes(c: Composer, y: Value, x: Value | None, dx: Any, dim: int) -> tuple[Value, int]:
    """The areas between neighbours, and the dimension."""
    if not y.rank:
        raise InvalidProblemError("y: got rank 0, want at least one dimension.")
    if x is not None and dx is not None:
        raise InvalidProblemError("dx: got a number beside x, want one of them.")
    axis = check_axis(dim, y.rank, "dim")
    y, x = c.wide(y), None if x is None else c.wide(x)
    sums = c.of(F.add, *_sides(y, axis))
    if x is None:
        return c.of(F.mul, sums, 0.5 * float(1 if dx is None else dx)), axis
    if x.rank == 1 and y.rank != 1:
        x = c.reshape(x, (*x.shape, *(1,) * (y.rank - axis - 1)))
    at = axis - y.rank + x.rank
    if at < 0 or x.shape[at] != y.shape[axis]:
        raise InvalidProblemError(f"x: got shape {x.shape}, want one that goes with y {y.shape}.")
    return c.of(F.mul, c.of(F.mul, sums, c.of(F.sub, *_sides(x, at))), 0.5), axis


def _rounded(c: Composer, found: Value, y: Value, x: Value | None) -> Value:
    """In a half, where all of them are."""
    element = y.element if x is None else promote(y.element, x.element)
    return c.cast(found, element) if found.element is Element.F32 and element.is_float else found


@pulled_through
@made_of("add cast mul sub sum")
@composed(tensors="y x")
def trapezoid(c: Composer, y: Value, x: Value | None = None, *, dx: float | None = None, dim: int = -1) -> Value:
    """The integral along `dim` by the trapezoidal rule, of samples at x or dx apart, as torch.trapezoid."""
    if x is None and not y.element.is_float:  # neighbours may have a sum that their element does not hold
        y = c.cast(y, Element.F32)
    areas, axis = _trapezes(c, y, x, dx, dim)
    return _rounded(c, c.of(F.sum, areas, (axis,)), y, x)


trapz = trapezoid


@pulled_through
@made_of("add cast cumsum mul sub")
@composed(tensors="y x")
def cumulative_trapezoid(
    c: Composer, y: Value, x: Value | None = None, *, dx: float | None = None, dim: int = -1
) -> Value:
    """The running integral along `dim` by the trapezoidal rule, as torch.cumulative_trapezoid."""
    areas, axis = _trapezes(c, y, x, dx, dim)
    return _rounded(c, c.of(F.cumsum, areas, axis), y, x)


@made_of("cast linspace pow")
@composite
def logspace(
    start: Any, end: Any, steps: int, base: float = 10.0, *, dtype: Any = None, device: Any = None, out: Any = None
) -> Any:
    """`steps` powers of a base whose exponents are evenly spaced, both ends included, as torch.logspace; computed in f64.

    For integers both ends are cut to whole numbers, and so are the powers.

    Args:
        start: The first exponent.
        end: The last exponent.
        steps: How many.
        base: The base.
        dtype: Element of the result; f32 by default, or that of `out`.
        device: Where a bc.Tensor is made; by default it is a NumPy array.
        out: Array to fill instead of making one.
    """
    element = Element.coerce(dtype, "dtype") if dtype is not None else Element.F32
    if dtype is None and out is not None:
        element = Element(_core.describe(out)[1])
    if not element.is_float:
        start, end = int(start), int(end)  # as torch cuts them
    powers = F.pow(float(base), F.linspace(start, end, steps, dtype=Element.F64, device=device))
    return F.cast(powers, element, out=out)
