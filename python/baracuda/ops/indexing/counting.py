"""How many there are of each: bincount and histograms. Kernels in csrc/ops/indexing, reference in counting_ref.py."""

from __future__ import annotations

from math import isfinite, prod
from typing import Any

import numpy as np

from baracuda import _core
from baracuda import functional as F
from baracuda.call.compose import Composer, Value, composed
from baracuda.call.counted import Made, Parts
from baracuda.call.op import Arg, Call, NotDifferentiable, Op, Recipe, composite, function, run_new
from baracuda.call.steps import made_of
from baracuda.choose.plan import plan
from baracuda.describe.dims import Dim, Shape, Size
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.spec import Descriptor, Signature, descriptor, output, scalar, tensor
from baracuda.memory.device import name_of
from baracuda.ops.cast.cast import CastDescriptor
from baracuda.ops.indexing.scatter import IndexAddDescriptor
from baracuda.ops.layout.layout import FillDescriptor, LinspaceDescriptor
from baracuda.ops.sort.search import SearchsortedDescriptor

MOST_BINS = 2**47  # sizes up to twice that have a workspace


@descriptor(family="indexing", op="bincount")
class BincountDescriptor(Descriptor):
    """y[b] = how many elements of index are b; size = how many bins the largest of them needs.

    What has no bin is left out. A negative index is an IndexOutOfRangeError.

    Args:
        shape: Shape of index, rank 0-8.
        bins: Size of y. y and size are i64.
        index_element: Any integer.
    """

    shape: Shape
    bins: Size
    index_element: Element = Element.I64

    def validate(self) -> None:
        if not self.index_element.is_integer:
            raise self.wrong("index_element", self.index_element, "an integer")

    def primary_element(self) -> Element:
        return Element.I64

    def signature(self) -> Signature:
        index = tensor("index", self.shape, self.index_element)
        return Signature(index, output("y", (self.bins,), Element.I64), output("size", (), Element.I64))


@descriptor(family="indexing", op="histc")
class HistcDescriptor(Descriptor):
    """y[b] = how many elements of x lie in bin b of those of one width from `low` to `high`, which the last one holds, too.

    The bin is the whole part of (x - low) bins / (high - low), in the compute element. What lies beside, and NaN, is left
    out.

    Args:
        shape: Shape of x, rank 0-8.
        bins: Size of y.
        element: Of x and y: f16, bf16, f32 or f64.
    """

    shape: Shape
    bins: Size
    element: Element = Element.F32

    def signature(self) -> Signature:
        x, y = tensor("x", self.shape, self.element), output("y", (self.bins,), self.element)
        return Signature(x, y, scalar("low", "float"), scalar("high", "float"))


_COUNTS = NotDifferentiable("counts do not change with the values but at steps")
OPS = (
    Op("bincount", BincountDescriptor, _COUNTS, "y[b] = how many elements of index are b"),
    Op("histc", HistcDescriptor, _COUNTS, "y[b] = how many elements of x lie in bin b of one width"),
)


def number_of(x: Any) -> Any:
    """The number in a tensor of one element, which a device is waited for."""
    return x.item() if hasattr(x, "item") else np.asarray(x).item()


@function(tensors="input weights")
def bincount(call: Call, input: Arg, weights: Arg | None = None, minlength: int = 0) -> Recipe:
    """How often each number occurs, or the sum of its weights, as torch.bincount.

    As many bins as the largest number needs, which a device is waited for, and `minlength` at least; plans of a fixed
    number of them do not wait: see BincountDescriptor. Sums are kept in twice the precision, in the order of positions.

    Args:
        input: Integers that are not negative, of rank 1.
        weights: A number for each; the result is f32 for those of f32, f64 for others.
        minlength: The least size of the result.

    Raises:
        InvalidProblemError: If the input is no vector of integers, weights are of another shape, or minlength is negative.
        IndexOutOfRangeError: If a number is negative.
    """
    if not input.element.is_integer or input.rank != 1:
        raise InvalidProblemError(
            f"bincount: input: got {input.element} of shape {input.shape}, want integers of rank 1."
        )
    if not isinstance(minlength, int) or minlength < 0:
        raise InvalidProblemError(f"bincount: minlength: got {minlength!r}, want a whole number that is not negative.")
    if minlength > MOST_BINS:
        raise InvalidProblemError(f"bincount: minlength: got {minlength}, want at most {MOST_BINS} bins.")
    if weights is not None and weights.shape != input.shape:
        raise InvalidProblemError(f"bincount: weights: got shape {weights.shape}, want {input.shape}, as the input.")
    bins = Dim("bins", max=MOST_BINS)
    desc, parts = BincountDescriptor(input.shape, bins, input.element), Parts(call, bins)
    size = parts.run(desc, index=input)["size"]
    parts.read(size, least=minlength, refuse=_refuse_bins)
    if weights is not None and input.shape[0]:
        return parts.recipe(_weighed(parts, bins, input, weights))
    return parts.recipe(parts.run(desc, results="y", index=input, size=size)["y"])  # i64 without numbers, as torch's


def _refuse_bins(size: int) -> None:
    number = size % 2**64 - 1  # 2**63 bins wrap
    raise InvalidProblemError(
        f"bincount: input: got {number}, want numbers below {MOST_BINS}, so many bins there can be."
    )


def _weighed(parts: Parts, bins: Dim, input: Arg, weights: Arg) -> Made:
    """Sums of weights by number."""
    to = Element.F32 if weights.element is Element.F32 else Element.F64

    def cast(x: Arg, element: Element) -> Arg | Made:
        same = x.element is element
        return x if same else parts.run(CastDescriptor(x.shape, x.element, element, saturate=False), x=x)["y"]

    index, terms = cast(input, Element.I64), cast(weights, to)
    y = parts.run(FillDescriptor((bins,), to), results="y", value=0)["y"]
    desc = IndexAddDescriptor((bins,), input.shape, 0, to)
    parts.run(desc, x=y, index=index, source=terms, alpha=1, y=y)
    return y


def _sums(c: Composer, index: Value, terms: Value, bins: int) -> Value:
    desc = IndexAddDescriptor((bins,), index.shape, 0, terms.element)
    made: Value = c(desc, x=c.zeros((bins,), terms.element), index=index, source=terms, alpha=1)
    return made


def _limits(name: str, input: Any, given: tuple[float, float] | None, beside: float) -> tuple[float, float]:
    """Where the first bin begins and the last one ends: as given or as the data has it, `beside` it where these are equal."""
    from baracuda.functional import aminmax

    if given is not None:
        low, high = given
    else:
        low, high = (float(number_of(x)) for x in aminmax(input)) if all(_core.describe(input)[0]) else (0.0, 0.0)
    if high < low:
        raise InvalidProblemError(f"{name}: got bins from {low} to {high}, want them to end where they begin or above.")
    if not (isfinite(low) and isfinite(high)):
        raise InvalidProblemError(f"{name}: input: got values from {low} to {high}, want finite ones, or min and max.")
    return (low - beside, high + beside) if low == high else (low, high)


def _checked(name: str, input: Any, bins: Any) -> Element:
    element = Element(_core.describe(input)[1])
    if not element.is_float:
        raise InvalidProblemError(f"{name}: input: got element {element}, want a float. Cast it first.")
    if not isinstance(bins, int) or bins < 1:
        raise InvalidProblemError(f"{name}: bins: got {bins!r}, want a whole number from 1 on.")
    return element


@composite
def histc(input: Any, bins: int = 100, min: float = 0, max: float = 0, *, out: Any = None) -> Any:
    """How many values lie in each of `bins` bins of one width from `min` to `max`, as torch.histc.

    Where both are the same, the bins go from the least to the largest value, which a device is then waited for. What lies
    beside them, and NaN, is left out.

    Args:
        input: f16, bf16, f32 or f64.
        bins: How many.
        min: Where the first one begins.
        max: Where the last one ends; it belongs to it.
        out: A tensor to write the result to, of the input's element.

    Raises:
        InvalidProblemError: If there are no bins, or no finite limits.
    """
    element = _checked("histc", input, bins)
    low, high = _limits("histc", input, None if min == max else (float(min), float(max)), 1.0)
    shape, _, _, *where = _core.describe(input)
    return run_new(
        plan(HistcDescriptor(shape, bins, element), name_of((where[0], where[1]))),
        input,
        out,
        x=input,
        low=low,
        high=high,
    )


@made_of("searchsorted eq where bincount cast index_add fill sum sub div copy linspace aminmax")
@composite
def histogram(
    input: Any, bins: Any, *, range: Any = None, weight: Any = None, density: bool = False
) -> tuple[Any, Any]:
    """How many values lie between edges, or the sums of their weights, and the edges, as torch.histogram.

    The last bin holds its upper edge, too. What lies beside the edges, and NaN, is left out.

    Args:
        input: f16, bf16, f32 or f64.
        bins: A number of bins of one width, or a vector of edges that rise.
        range: Where bins of one width begin and end; the least and the largest value by default, which a device is waited
            for.
        weight: A number for each value, of its shape and element.
        density: Whether to divide by the sum and by the bins' widths.

    Raises:
        InvalidProblemError: If there are no bins, or no finite limits, or edges or weights are not of the input's element.
    """
    shape, code, *_ = _core.describe(input)
    if weight is not None and (tuple(_core.describe(weight)[0]), _core.describe(weight)[1]) != (tuple(shape), code):
        raise InvalidProblemError(f"histogram: weight: want {Element(code)} of shape {tuple(shape)}, as the input.")
    if isinstance(bins, int):
        _checked("histogram", input, bins)
        given = None if range is None else (float(range[0]), float(range[1]))
        low, high = _limits("histogram", input, given if given or all(shape) else (0.0, 1.0), 0.5)
        found = _between_numbers(input, low, high, weight, bins=bins, density=density)
    else:
        _checked("histogram", input, 1)
        found = _between_edges(input, bins, weight, density=density)
    return found[0], found[1]


@function(tensors="input low high weight")
def _between_numbers(
    call: Call, input: Arg, low: Arg, high: Arg, weight: Arg | None = None, bins: int = 1, density: bool = False
) -> Recipe:
    """Of bins of one width."""
    return call.steps(_of_one_width, input, low, high, weight, bins=bins, density=density)


def _of_one_width(
    c: Composer, input: Value, low: Any, high: Any, weight: Value | None, bins: int, density: bool
) -> tuple[Value, Value]:
    edges = c(LinspaceDescriptor(bins + 1, input.element), start=low, end=high)
    return _histogram(c, input, edges, weight, density)


@composed(tensors="input edges weight")
def _between_edges(
    c: Composer, input: Value, edges: Value, weight: Value | None = None, density: bool = False
) -> tuple[Value, Value]:
    """Of bins between edges."""
    if edges.element is not input.element or edges.rank != 1 or edges.shape[0] < 2:
        got = f"{edges.element} of shape {edges.shape}"
        raise InvalidProblemError(f"histogram: bins: got {got}, want a number, or a vector of {input.element} edges.")
    return _histogram(c, input, edges, weight, density)


def _histogram(c: Composer, input: Value, edges: Value, weight: Value | None, density: bool) -> tuple[Value, Value]:
    """Counts beside the edges on both sides, too, which are then left out."""
    bins = edges.shape[0] - 1
    x = c.reshape(input, (prod(input.shape),))
    found = _counted(c, _bin_of(c, x, edges), weight, bins + 2, x.element)[1 : bins + 1]
    if density:
        widths = c.of(F.sub, edges[1:], edges[:bins])
        found = c.of(F.div, c.of(F.div, found, c.of(F.sum, found)), widths)
    return found, edges


def _bin_of(c: Composer, x: Value, edges: Value) -> Value:
    """Which bin each value is in: 0 below the edges, above them one more than there are."""
    place = c(SearchsortedDescriptor(edges.shape, x.shape, True, x.element), sequence=edges, values=x)
    last = edges.shape[0] - 1
    return c.of(F.where, c.of(F.eq, x, edges[last:]), last, place)  # type: ignore[no-any-return]


def _counted(c: Composer, place: Value, weight: Value | None, bins: int, element: Element) -> Value:
    """How many values each bin has, or the sum of their weights."""
    if weight is None:
        return c.cast(c(BincountDescriptor(place.shape, bins), index=place)[0], element)
    return _sums(c, place, c.reshape(weight, place.shape), bins)


@composed(tensors="input weight edges")
def _between_grids(c: Composer, input: Value, weight: Value | None = None, *edges: Value, density: bool) -> Value:
    """Of cells between the edges of each coordinate."""
    count = prod(input.shape[:-1])
    points, place = c.reshape(input, (count, len(edges))), None
    shape = tuple(e.shape[0] + 1 for e in edges)  # with what is below and above
    for d, own in enumerate(edges):
        at = _bin_of(c, points[:, d], own)
        place = at if place is None else c.of(F.add, c.of(F.mul, place, shape[d]), at)
    assert place is not None
    found = c.reshape(_counted(c, place, weight, prod(shape), input.element), shape)
    found = found[tuple(slice(1, n - 1) for n in shape)]
    if density:
        found = c.of(F.div, found, c.of(F.sum, found))
        for d, own in enumerate(edges):
            widths = c.of(F.sub, own[1:], own[: own.shape[0] - 1])
            found = c.of(F.div, found, widths.permute((0, *(-1,) * (len(edges) - 1 - d))))
    return found


def _rising(what: str, edges: Any) -> None:
    """Refuses edges of which one is NaN or less than the one before; a device is waited for."""
    if _core.inferring() or bool(number_of(F.all(F.le(edges[:-1], edges[1:])))):
        return
    raise InvalidProblemError(f"{what}: got edges that fall, or NaN, want a vector of edges that rise.")


def _grid(name: str, input: Any, bins: Any, range: Any) -> list[Any]:
    """The edges of each coordinate."""
    shape = tuple(_core.describe(input)[0])
    if len(shape) < 2 or not shape[-1]:
        raise InvalidProblemError(f"{name}: input: got shape {shape}, want rows of at least one coordinate.")
    many = shape[-1]
    if many > 8:
        raise InvalidProblemError(
            f"{name}: input: got {many} coordinates, want at most 8, which the grid has dimensions for."
        )
    each = list(bins) if isinstance(bins, (list, tuple)) else [bins] * many
    if len(each) != many or (range is not None and len(range) != 2 * many):
        raise InvalidProblemError(
            f"{name}: bins: want one number or vector, and two limits, for each of {many} coordinates."
        )
    edges = []
    for d, own in enumerate(each):
        column = input[..., d]
        if not isinstance(own, int):
            found, code, *_ = _core.describe(own)
            if len(found) != 1 or found[0] < 2 or Element(code) is not _checked(name, input, 1):
                raise InvalidProblemError(
                    f"{name}: bins[{d}]: want a number, or a vector of edges of the input's element."
                )
            _rising(f"{name}: bins[{d}]", own)
            edges.append(own)
            continue
        element = _checked(name, input, own)
        given = None if range is None else (float(range[2 * d]), float(range[2 * d + 1]))
        low, high = _limits(name, column, given if given or all(shape) else (0.0, 1.0), 0.5)
        place = _core.describe(input)[2:]
        edges.append(
            run_new(
                plan(LinspaceDescriptor(own + 1, element), name_of((place[1], place[2]))), input, start=low, end=high
            )
        )
    return edges


@made_of("searchsorted eq where add mul bincount cast index_add fill sum sub div copy linspace aminmax le all")
@composite
def histogramdd(
    input: Any, bins: Any, *, range: Any = None, weight: Any = None, density: bool = False
) -> tuple[Any, tuple[Any, ...]]:
    """How many points lie in each cell of a grid, or the sums of their weights, and the grid's edges, as torch.histogramdd.

    The last cell of each coordinate holds its upper edge, too. What lies beside the edges, and NaN, is left out.

    Args:
        input: f16, bf16, f32 or f64; coordinates of points along the last dimension.
        bins: A number of bins of one width, one for each coordinate, or a vector of edges that rise for each, which a
            device is waited for.
        range: Where bins of one width begin and end, two numbers for each coordinate; the least and the largest value by
            default, which a device is waited for.
        weight: A number for each point, of the input's element.
        density: Whether to divide by the sum and by the cells' volumes.

    Raises:
        InvalidProblemError: If there are no bins, or no finite limits, or edges or weights do not fit the input.
    """
    edges = _grid("histogramdd", input, bins, range)
    shape, code, *_ = _core.describe(input)
    if weight is not None and (tuple(_core.describe(weight)[0]), _core.describe(weight)[1]) != (
        tuple(shape[:-1]),
        code,
    ):
        raise InvalidProblemError(
            f"histogramdd: weight: want {Element(code)} of shape {tuple(shape[:-1])}, as the points."
        )
    return _between_grids(input, weight, *edges, density=bool(density)), tuple(edges)
