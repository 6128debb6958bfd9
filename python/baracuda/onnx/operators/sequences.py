"""Operators of sequences and optional values: lists of values, and None."""

from __future__ import annotations

from typing import Any

from baracuda import functional as F
from baracuda.onnx.call import Call, Known
from baracuda.onnx.operators.table import axis_of, operator


def _tensor(x: Any) -> Any:
    return x.tensor if isinstance(x, Known) else x


@operator("SequenceConstruct", view=True, raw=True)
def _construct(c: Call, *xs: Any) -> Any:
    return list(xs)


@operator("SequenceEmpty", raw=True)
def _empty(c: Call) -> Any:
    return []


def _place(c: Call, values: list[Any], i: int, most: int) -> int:
    at = c.number(i)
    if not -len(values) <= at <= most:
        c.wrong(f"position {at} in a sequence of {len(values)}", f"{-len(values)} to {most}")
    return int(at) if at >= 0 else int(at) + len(values)


@operator("SequenceAt", view=True, raw=True)
def _at(c: Call, values: list[Any], at: Any) -> Any:
    return values[_place(c, values, 1, len(values) - 1)]


@operator("SequenceInsert", view=True, raw=True)
def _insert(c: Call, values: list[Any], x: Any, at: Any = None) -> Any:
    where = len(values) if at is None else _place(c, values, 2, len(values))
    return [*values[:where], x, *values[where:]]


@operator("SequenceErase", view=True, raw=True)
def _erase(c: Call, values: list[Any], at: Any = None) -> Any:
    where = len(values) - 1 if at is None else _place(c, values, 1, len(values) - 1)
    return [*values[:where], *values[where + 1 :]]


@operator("SequenceLength", raw=True)
def _length(c: Call, values: list[Any]) -> Any:
    return Known(len(values))


@operator("ConcatFromSequence", raw=True)
def _concat(c: Call, values: list[Any]) -> Any:
    tensors = [_tensor(x) for x in values]
    return (F.stack if c.get("new_axis", 0) else F.cat)(tensors, c.get("axis"))


@operator("SplitToSequence", view=True, raw=True)
def _split(c: Call, x: Any, sizes: Any = None) -> Any:
    x = _tensor(x)
    axis = axis_of(c, x)
    whole = x.shape[axis]
    if sizes is None:
        parts = [1] * whole
    elif c.array(1).ndim:
        parts = c.ints(1)
    else:
        each = c.number(1)
        parts = [each] * (whole // each) + ([whole % each] if whole % each else [])
    found, at = [], 0
    for n in parts:
        one = x[(slice(None),) * axis + (slice(at, at + n),)]
        found.append(one.squeeze(axis) if sizes is None and not c.get("keepdims", 1) else one)
        at += n
    return found


@operator("Optional", view=True, raw=True)
def _optional(c: Call, x: Any = None) -> Any:
    return x


@operator("OptionalHasElement", raw=True)
def _has(c: Call, x: Any = None) -> Any:
    return Known(x is not None)


@operator("OptionalGetElement", view=True, raw=True)
def _element(c: Call, x: Any = None) -> Any:
    if x is None:
        c.wrong("an optional value that is not there", "one that is")
    return x
