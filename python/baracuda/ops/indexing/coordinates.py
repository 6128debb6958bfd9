"""Elements read and written by coordinates, made of `take`, which checks them, `index_select` and writes by index."""

from __future__ import annotations

from math import prod
from typing import Any

from baracuda import functional as F
from baracuda.call.compose import Composer, Value, composed
from baracuda.call.steps import made_of
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.ops.indexing.indexing import IndexSelectDescriptor, TakeDescriptor
from baracuda.ops.indexing.scatter import IndexAddDescriptor, IndexCopyDescriptor, ScatterReduceDescriptor
from baracuda.ops.layout.layout import ArangeDescriptor

OPS = ()

_FOLDS = ("sum", "prod", "amax", "amin", "mean")


def _places(c: Composer, input: Value, indices: Value) -> tuple[Value, tuple[int, ...], tuple[int, ...]]:
    """Which row of the input each of `indices` names, the shape of the rows, and that of one.

    Each coordinate is looked up in a table of what it counts for, which wraps the negative ones and refuses others.
    """
    if indices.element not in (Element.I64, Element.I32):
        raise InvalidProblemError(f"indices: got {indices.element}, want i64 or i32. Cast it first.")
    if not indices.rank or not 1 <= indices.shape[-1] <= input.rank:
        want = f"a last dimension of 1 to {input.rank} coordinates"
        raise InvalidProblemError(f"indices: got shape {indices.shape}, want {want}.")
    depth, count = indices.shape[-1], prod(indices.shape[:-1])
    named, row = input.shape[:depth], input.shape[depth:]
    flat = c.reshape(indices, (count, depth))
    found: Value | None = None
    for d, n in enumerate(named):
        table = c(ArangeDescriptor((n,), Element.I64), start=0, step=prod(named[d + 1 :]))
        at = c(TakeDescriptor((n,), (count,), Element.I64, indices.element), x=table, index=flat[:, d])
        found = at if found is None else c.of(F.add, found, at)
    assert found is not None
    return found, (prod(named), prod(row)), row


@made_of("add arange copy index_select take")
@composed(tensors="input indices")
def gather_nd(c: Composer, input: Value, indices: Value) -> Value:
    """Slices of `input` at coordinates: y[i, ...] = input[indices[i, 0], indices[i, 1], ..., ...].

    The last dimension of `indices` (i64 or i32) holds coordinates of the input's first dimensions, negative ones counting
    from the end. The result has the shape of its others and that of a slice.
    """
    place, rows, row = _places(c, input, indices)
    desc = IndexSelectDescriptor(rows, place.shape, 0, input.element)
    made = c(desc, x=c.reshape(input, rows), index=place)
    return c.reshape(made, (*indices.shape[:-1], *row))


@gather_nd.vjp
def _gather_nd_vjp(input: Any, indices: Any) -> tuple[Any, Any]:
    return gather_nd(input, indices), lambda dy: scatter_nd(F.zeros_like(input), indices, dy, "sum")


@made_of("add arange copy index_add index_copy scatter_reduce take")
@composed(tensors="input indices updates")
def scatter_nd(c: Composer, input: Value, indices: Value, updates: Value, reduce: str | None = None) -> Value:
    """`input` with slices of `updates` at coordinates: y[indices[i, 0], indices[i, 1], ..., ...] = updates[i, ...].

    Coordinates are as in gather_nd. The last of equal ones stays; with `reduce`, "sum", "prod", "mean", "amax" or "amin",
    slices are folded into those of the input, in the order of positions and in twice the precision.
    """
    if reduce is not None and reduce not in _FOLDS:
        raise InvalidProblemError(f"reduce: got {reduce!r}, want None or one of {', '.join(_FOLDS)}.")
    place, rows, row = _places(c, input, indices)
    shape = (*indices.shape[:-1], *row)
    if updates.shape != shape or updates.element is not input.element:
        got = f"{updates.element} of shape {updates.shape}"
        raise InvalidProblemError(f"updates: got {got}, want {input.element} of shape {shape}.")
    return written(c, input, place, rows, updates, reduce)


def written(
    c: Composer, input: Value, place: Value, rows: tuple[int, ...], updates: Value, reduce: str | None
) -> Value:
    """The input, seen as rows, with those of `updates` written to, or folded into, the rows that `place` names."""
    count, e = prod(place.shape), input.element
    x, source = c.reshape(input, rows), c.reshape(updates, (count, rows[1]))
    given: dict[str, Any] = {"x": x, "index": place, "source": source}
    if reduce is None:
        made = c(IndexCopyDescriptor(rows, (count,), 0, e), **given)
    elif reduce == "sum":
        made = c(IndexAddDescriptor(rows, (count,), 0, e), **given, alpha=1)
    else:
        fold: Any = reduce
        given["index"] = c.reshape(place, (count, 1)).expand((count, rows[1]))
        made = c(ScatterReduceDescriptor(rows, (count, rows[1]), 0, e, Element.I64, fold, True), **given)
    return c.reshape(made, input.shape)


@scatter_nd.vjp
def _scatter_nd_vjp(input: Any, indices: Any, updates: Any, reduce: str | None = None) -> tuple[Any, Any]:
    if reduce not in (None, "sum"):
        raise InvalidProblemError(
            f"reduce: got {reduce!r}, want None or 'sum': others have gradients as scatter_reduce."
        )

    def pull(dy: Any) -> tuple[Any, Any]:
        dx = dy if reduce else scatter_nd(dy, indices, F.zeros_like(updates))
        return dx, gather_nd(dy, indices)

    return scatter_nd(input, indices, updates, reduce), pull


@made_of("arange copy index_add index_copy take")
@composed(tensors="input index source")
def put(c: Composer, input: Value, index: Value, source: Value, accumulate: bool = False) -> Value:
    """`input` with elements of `source` at `index` of its logical order, as torch.put: negative ones count from the end.

    The last of equal indices stays; with `accumulate` elements are added, in the order of positions.
    """
    if prod(source.shape) != prod(index.shape) or source.element is not input.element:
        got = f"{source.element} of shape {source.shape}"
        raise InvalidProblemError(
            f"source: got {got}, want {input.element}, as many as index has: {prod(index.shape)}."
        )
    row = c.reshape(input, (prod(input.shape),))
    place, rows, _ = _places(c, row, c.reshape(index, (prod(index.shape), 1)))
    return c.reshape(written(c, row, place, rows, source, "sum" if accumulate else None), input.shape)


@put.vjp
def _put_vjp(input: Any, index: Any, source: Any, accumulate: bool = False) -> tuple[Any, Any]:
    def pull(dy: Any) -> tuple[Any, Any]:
        dx = dy if accumulate else put(dy, index, F.zeros_like(source))
        picked = gather_nd(dy.reshape((prod(dy.shape),)), index.reshape((prod(index.shape), 1)))
        return dx, picked.reshape(tuple(source.shape))

    return put(input, index, source, accumulate), pull
