"""Arithmetic of shapes: small arrays that are known, computed by NumPy once and not by kernels.

Sizes that a graph leaves open are Python objects among the numbers of an array of objects. They stay that under what
polynomials are made of; what needs a plain number of them is refused by `bc.trace`, which names it.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import onnx

from baracuda.onnx.call import Array, Call, Known

MOST = 1 << 16  # elements of what is folded

Fold = Callable[..., Any]


def _open(*arrays: Any) -> bool:
    """Whether sizes that are open are among the numbers."""
    return any(a is not None and a.dtype == object for a in arrays)


def _div(c: Call, a: Array, b: Array) -> Any:
    if a.dtype.kind == "f":
        return np.divide(a, b)
    if _open(a, b):
        return a // b  # sizes are not negative
    if not b.all():
        return None
    return (np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))).astype(a.dtype)


def _mod(c: Call, a: Array, b: Array) -> Any:
    if a.dtype.kind == "f" or c.get("fmod", 0) or (not _open(a, b) and not b.all()):
        return None
    return a % b


def _cast(c: Call, x: Array) -> Any:
    target = onnx.helper.tensor_dtype_to_np_dtype(c.get("to"))
    if x.dtype == object:
        if target in (np.int64, np.int32):
            return x
        return np.array([float(n) for n in x.reshape(-1)], target).reshape(x.shape) if target.kind == "f" else None
    return x.astype(target) if x.dtype.kind in "biuf" and target.kind in "biuf" and np.isfinite(x).all() else None


def _squeeze(c: Call, x: Array, axes: Array | None = None) -> Any:
    given = c.get("axes") if axes is None else axes.tolist()
    return np.squeeze(x, None if given is None else tuple(given))


def _unsqueeze(c: Call, x: Array, axes: Array | None = None) -> Any:
    return np.expand_dims(x, tuple(c.get("axes") if axes is None else axes.reshape(-1).tolist()))


def _slice(c: Call, x: Array, *rest: Array | None) -> Any:
    if not rest or _open(*rest) or any(r is None for r in rest[:2]):
        return None
    low, high = (r.reshape(-1).tolist() for r in rest[:2] if r is not None)
    axes = rest[2].reshape(-1).tolist() if len(rest) > 2 and rest[2] is not None else range(len(low))
    steps = rest[3].reshape(-1).tolist() if len(rest) > 3 and rest[3] is not None else [1] * len(low)
    key = [slice(None)] * x.ndim
    for a, first, end, step in zip(axes, low, high, steps, strict=True):
        if step < 0:
            first, end = 0 if first < -x.shape[a] else first, None if end < -x.shape[a] else end
        key[a] = slice(first, end, step)
    return x[tuple(key)]


def _gather(c: Call, x: Array, index: Array) -> Any:
    return None if _open(index) else np.take(x, index, axis=c.get("axis", 0))


def _reduce(fn: Callable[..., Any]) -> Fold:
    def call(c: Call, x: Array, axes: Array | None = None) -> Any:
        given = c.get("axes") if axes is None else axes.reshape(-1).tolist()
        if not given and c.get("noop_with_empty_axes", 0):
            return x
        y = fn(x, axis=tuple(given) if given else None, keepdims=bool(c.get("keepdims", 1)))
        return np.asarray(y, x.dtype)

    return call


def _reshape(c: Call, x: Array, shape: Array) -> Any:
    if _open(shape):
        return None
    sizes = shape.reshape(-1).tolist()
    if not c.get("allowzero", 0):
        sizes = [x.shape[i] if n == 0 and i < x.ndim else n for i, n in enumerate(sizes)]
    return x.reshape(sizes)


def _range(c: Call, start: Array, end: Array, step: Array) -> Any:
    if _open(start, end, step) or start.dtype.kind not in "iu" or not step or abs((end - start) / step) > MOST:
        return None
    return np.arange(start.item(), end.item(), step.item(), dtype=start.dtype)


def _constant_of_shape(c: Call, shape: Array) -> Any:
    if _open(shape) or prod(shape.reshape(-1).tolist()) > MOST:
        return None
    value = c.get("value")
    value = np.zeros(1, np.float32) if value is None else value
    return np.full(shape.reshape(-1).tolist(), value.reshape(-1)[0], value.dtype)


def _expand(c: Call, x: Array, shape: Array) -> Any:
    if _open(shape):
        return None
    sizes = np.broadcast_shapes(x.shape, tuple(shape.reshape(-1).tolist()))
    return np.broadcast_to(x, sizes).copy() if prod(sizes) <= MOST else None


def _tile(c: Call, x: Array, times: Array) -> Any:
    return None if _open(times) or x.size * prod(times.tolist()) > MOST else np.tile(x, times.tolist())


def _where(c: Call, condition: Array, x: Array, y: Array) -> Any:
    return np.where(condition, x, y)


def _split(c: Call, x: Array, sizes: Array | None = None) -> Any:
    axis, given = c.get("axis", 0), c.get("split") if sizes is None else sizes.reshape(-1).tolist()
    if _open(sizes) or not given:
        return None
    return tuple(np.split(x, np.cumsum(given)[:-1], axis))


def _elementwise(fn: Callable[..., Any]) -> Fold:
    return lambda c, *xs: fn(*xs)


def _joined(fn: Callable[..., Any]) -> Fold:
    """A function of two, over any number of operands."""

    def call(c: Call, *xs: Array) -> Any:
        y = xs[0]
        for x in xs[1:]:
            y = fn(y, x)
        return y

    return call


FOLDS: dict[str, Fold] = {
    "Abs": _elementwise(np.abs), "Add": _elementwise(np.add), "And": _elementwise(np.logical_and), "Cast": _cast,
    "Ceil": _elementwise(np.ceil), "Concat": lambda c, *xs: np.concatenate(xs, c.get("axis")),
    "ConstantOfShape": _constant_of_shape, "Div": _div, "Equal": _elementwise(np.equal), "Expand": _expand,
    "Floor": _elementwise(np.floor), "Gather": _gather, "Greater": _elementwise(np.greater),
    "GreaterOrEqual": _elementwise(np.greater_equal), "Less": _elementwise(np.less),
    "LessOrEqual": _elementwise(np.less_equal), "Max": _joined(np.maximum), "Min": _joined(np.minimum), "Mod": _mod,
    "Mul": _elementwise(np.multiply), "Neg": _elementwise(np.negative), "Not": _elementwise(np.logical_not),
    "Or": _elementwise(np.logical_or), "Range": _range, "ReduceMax": _reduce(np.max), "ReduceMin": _reduce(np.min),
    "ReduceProd": _reduce(np.prod), "ReduceSum": _reduce(np.sum), "Reshape": _reshape, "Slice": _slice, "Split": _split,
    "Sqrt": _elementwise(np.sqrt), "Squeeze": _squeeze, "Sub": _elementwise(np.subtract), "Tile": _tile,
    "Transpose": lambda c, x: np.transpose(x, c.get("perm")), "Unsqueeze": _unsqueeze, "Where": _where,
}  # fmt: skip

_TRUTHS = ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "And", "Or", "Not")


def folded(c: Call) -> tuple[Known, ...] | None:
    """What a node of known, small inputs gives; None where kernels are to compute it."""
    rule = FOLDS.get(c.node.operator)
    arrays = [v.array if isinstance(v, Known) else None for v in c.values]
    if rule is None or not all(v is None or isinstance(v, Known) for v in c.values):
        return None
    given = [a for a in arrays if a is not None]
    if not given or sum(a.size for a in given) > MOST or any(a.dtype.kind not in "biufO" or _text(a) for a in given):
        return None
    with np.errstate(all="ignore"):
        try:
            made = rule(c, *arrays)
        except (ValueError, IndexError, TypeError):  # the operator's own rule says what is wrong
            return None
    if made is None:
        return None
    results = made if isinstance(made, tuple) else (made,)
    if c.op in _TRUTHS:
        results = tuple(np.asarray(r, bool) for r in results)
    return tuple(Known(r) for r in results)


def _text(a: Array) -> bool:
    return a.dtype == object and any(not isinstance(v, int) for v in a.reshape(-1))
