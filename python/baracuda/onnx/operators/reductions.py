"""Operators that make few elements of many: sums, extremes, running sums, and the order of elements."""

from __future__ import annotations

from math import inf
from typing import Any

from baracuda import Element
from baracuda import functional as F
from baracuda.onnx.call import Call
from baracuda.onnx.operators.table import Rule, axis_of, cast, full, operator, reshaped


def axes_of(c: Call, x: Any) -> list[int] | None:
    """The axes of a reduction; None for all, and none at all where no axes mean that there is nothing to do."""
    given = c.ints(1) if c.has(1) else c.get("axes")
    if not given:
        return [] if c.get("noop_with_empty_axes", 0) else None
    for a in given:
        if not -x.ndim <= a < x.ndim:
            c.wrong(f"axis {a} for a tensor of {x.ndim} dimensions", f"{-x.ndim} to {x.ndim - 1}")
    return [a % x.ndim for a in given]


def reduced(c: Call, x: Any, name: str, before: Rule | None = None, after: Rule | None = None) -> Any:
    """A function over the axes of a node, in the element of its input."""
    axes = axes_of(c, x)
    y = before(x) if before else x
    if axes != []:
        fn = getattr(F, name)
        dims = tuple(range(x.ndim)) if axes is None else tuple(axes)
        if name in EMPTY and any(x.shape[d] == 0 for d in dims):
            return _of_nothing(x, dims, bool(c.get("keepdims", 1)), EMPTY[name])
        y = fn(y, dims, bool(c.get("keepdims", 1))) if x.ndim else fn(y, ())
    return cast(after(y) if after else y, x.element)


EMPTY = {"amax": 0, "amin": 1}  # which of the element's limits the extreme of nothing is


def _of_nothing(x: Any, dims: tuple[int, ...], keep: bool, which: int) -> Any:
    """The least number there is as the maximum of none, and the greatest as the minimum."""
    shape = [1 if d in dims else n for d, n in enumerate(x.shape) if keep or d not in dims]
    if x.element.is_float:
        return full(shape, (-inf, inf)[which], x.element)
    return full(shape, bool(which) if x.element is Element.BOOL else x.element.limits[which], x.element)


def _reduction(name: str, before: str = "", after: str = "") -> Rule:
    def call(c: Call, x: Any, axes: Any = None) -> Any:
        steps = (getattr(F, step) if step else None for step in (before, after))
        return reduced(c, x, name, *steps)

    return call


operator("ReduceSum", view=True)(_reduction("sum"))
operator("ReduceMean", view=True)(_reduction("mean"))
operator("ReduceL1", view=True)(_reduction("sum", "abs"))
operator("ReduceL2", view=True)(_reduction("sum", "square", "sqrt"))
operator("ReduceLogSum", view=True)(_reduction("sum", "", "log"))
operator("ReduceLogSumExp", view=True)(_reduction("logsumexp"))
operator("ReduceSumSquare", view=True)(_reduction("sum", "square"))
operator("ReduceMax", view=True)(_reduction("amax"))
operator("ReduceMin", view=True)(_reduction("amin"))


@operator("ReduceProd", view=True)
def _product(c: Call, x: Any, axes: Any = None) -> Any:
    """`prod` folds one axis, or all."""
    dims, keep = axes_of(c, x), bool(c.get("keepdims", 1))
    if dims is None:
        y = F.prod(x)
        y = reshaped(y, (1,) * x.ndim) if keep else y
    else:
        y = x
        for d in sorted(dims, reverse=True):
            y = F.prod(y, d, keep)
    return cast(y, x.element)


def _arg(name: str) -> Rule:
    def call(c: Call, x: Any) -> Any:
        axis, keep = axis_of(c, x), bool(c.get("keepdims", 1))
        fn = getattr(F, name)
        if not c.get("select_last_index", 0):
            return fn(x, axis, keep)
        return F.sub(x.shape[axis] - 1, fn(F.flip(x, axis), axis, keep))

    return call


operator("ArgMax")(_arg("argmax"))
operator("ArgMin")(_arg("argmin"))


def _cumulative(name: str) -> Rule:
    def call(c: Call, x: Any, axis: Any) -> Any:
        options = {option: bool(c.get(option, 0)) for option in ("reverse", "exclusive")}
        return cast(getattr(F, name)(x, c.number(1), **options), x.element)

    return call


operator("CumSum")(_cumulative("cumsum"))
operator("CumProd")(_cumulative("cumprod"))


@operator("TopK")
def _topk(c: Call, x: Any, k: Any = None) -> Any:
    count = c.number(1) if k is not None else c.get("k")  # before opset 10
    return F.topk(x, count, axis_of(c, x, default=-1), bool(c.get("largest", 1)), bool(c.get("sorted", 1)))


@operator("Unique")
def _unique(c: Call, x: Any) -> Any:
    """Values, where each was first, the inverse and counts; in the order of first places where they are not sorted."""
    axis = c.get("axis")
    y, first, inverse, counts = F.unique(x, True, True, True, axis, return_index=True)
    inverse = reshaped(inverse, (-1,))
    if not c.get("sorted", 1):
        order = F.argsort(first)
        y, first, counts = (F.index_select(v, axis or 0, order) if v is y else F.index_select(v, 0, order)
                            for v in (y, first, counts))  # fmt: skip
        inverse = F.index_select(F.argsort(order), 0, inverse)
    return y, first, inverse, counts


@operator("NonZero")
def _nonzero(c: Call, x: Any) -> Any:
    return F.copy(F.nonzero(x).T)


@operator("Einsum")
def _einsum(c: Call, *xs: Any) -> Any:
    return F.einsum(c.get("equation"), *xs)
