"""Operators that read and write elements at places that other tensors name."""

from __future__ import annotations

from typing import Any

from baracuda import functional as F
from baracuda.onnx.call import Call
from baracuda.onnx.operators.table import arange, axis_of, cast, not_negative, operator, reshaped

FOLDS = {"none": None, "add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


@operator("Gather", view=True)
def _gather(c: Call, x: Any, index: Any) -> Any:
    axis, known = axis_of(c, x), c.known(1)
    if known is not None and not known.ndim and known.dtype != object:  # one slice is a view
        at = int(known)
        if not -x.shape[axis] <= at < x.shape[axis]:
            c.wrong(f"index {at} of an axis of size {x.shape[axis]}", "one that is in it")
        return x[(slice(None),) * axis + (at,)]
    rows = reshaped(not_negative(c, 1, index, x.shape[axis]), (-1,))
    y = F.index_select(x, axis, rows)
    return y if index.ndim == 1 else reshaped(y, (*x.shape[:axis], *index.shape, *x.shape[axis + 1 :]))


@operator("GatherElements")
def _gather_elements(c: Call, x: Any, index: Any) -> Any:
    axis = axis_of(c, x)
    return F.gather(x, axis, not_negative(c, 1, index, x.shape[axis]))


def _with_batches(index: Any, batches: int) -> Any:
    """Coordinates with those of their batch in front."""
    parts = []
    for d in range(batches):
        shape = [1] * index.ndim
        shape[d] = index.shape[d]
        own = arange(index.shape[d]).reshape(*shape)
        parts.append(own.broadcast_to(*index.shape[:-1], 1))
    return F.cat([*parts, index], -1)


@operator("GatherND")
def _gather_nd(c: Call, x: Any, index: Any) -> Any:
    batches = c.get("batch_dims", 0)
    return F.gather_nd(x, _with_batches(cast(index, "i64"), batches) if batches else index)


@operator("Scatter", "ScatterElements")
def _scatter(c: Call, x: Any, index: Any, updates: Any) -> Any:
    axis, how = axis_of(c, x), c.get("reduction", "none")
    index = not_negative(c, 1, index, x.shape[axis])
    if how == "none":
        return F.scatter(x, axis, index, updates)
    return F.scatter_reduce(x, axis, index, updates, FOLDS[how] or "sum")


@operator("ScatterND")
def _scatter_nd(c: Call, x: Any, index: Any, updates: Any) -> Any:
    return F.scatter_nd(x, index, updates, FOLDS[c.get("reduction", "none")])


@operator("TensorScatter")
def _tensor_scatter(c: Call, cache: Any, update: Any, starts: Any = None) -> Any:
    axis = axis_of(c, cache, default=-2)
    batch, count = cache.shape[0], update.shape[axis]
    at = arange(count).unsqueeze(0).broadcast_to(batch, count)
    if starts is not None:
        at = F.add(starts.unsqueeze(1), at)
    if c.get("mode", "linear") == "circular":
        at = F.remainder(at, cache.shape[axis])
    shape = [batch] + [count if d == axis else 1 for d in range(1, cache.ndim)]
    return F.scatter(cache, axis, reshaped(at, shape).broadcast_to(*update.shape), update)


@operator("Compress")
def _compress(c: Call, x: Any, condition: Any) -> Any:
    axis = c.get("axis")
    if axis is None:
        x, axis = reshaped(x, (-1,)), 0
    return F.index_select(x, axis, reshaped(F.nonzero(condition), (-1,)))


@operator("ai.onnx.ml.ArrayFeatureExtractor")
def _extract(c: Call, x: Any, index: Any) -> Any:
    return F.index_select(x, -1, reshaped(index, (-1,)))


@operator("ai.onnx.ml.Binarizer")
def _binarize(c: Call, x: Any) -> Any:
    return cast(F.gt(x, c.get("threshold", 0.0)), x.element)
