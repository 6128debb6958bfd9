"""ONNX operators that place elements: by index, in other shapes, in order; and rules that make numbers of places."""

from __future__ import annotations

from collections.abc import Callable
from math import pi
from typing import Any

import numpy as np
from onnx_cases import NodeCase, NotRun

Call = Callable[..., Any]


def number(x: Any) -> Any:
    """The number in an array of one; None for none."""
    return None if x is None else np.asarray(x).reshape(()).item()


def ints(x: Any) -> list[int]:
    """All numbers of an array."""
    return [int(n) for n in np.asarray(x).reshape(-1)]


def _scatter(F: Any, c: NodeCase, x: Any, index: Any, updates: Any) -> Any:
    axis, how = c.get("axis", 0), c.get("reduction", "none")
    index = np.where(index < 0, index + x.shape[axis], index)  # ONNX counts from the end
    if how == "none":
        return F.scatter(x, axis, index, updates)
    names = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}
    return F.scatter_reduce(x, axis, index, updates, names[how])


def _gather_nd(F: Any, c: NodeCase, x: Any, index: Any) -> Any:
    """Coordinates of batches come in front of those that are given."""
    batch = index.shape[: c.get("batch_dims", 0)]
    own = np.indices(batch).reshape(len(batch), *batch, *(1,) * (index.ndim - len(batch) - 1))
    full = [np.broadcast_to(i, index.shape[:-1])[..., None] for i in own]
    return F.gather_nd(x, np.concatenate([*full, index], -1))


def _scatter_nd(F: Any, c: NodeCase, x: Any, index: Any, updates: Any) -> Any:
    names = {"none": None, "add": "sum", "mul": "prod", "max": "amax", "min": "amin"}
    return F.scatter_nd(x, index, updates, names[c.get("reduction", "none")])


def _gather(F: Any, c: NodeCase, x: Any, index: Any) -> Any:
    axis = c.get("axis", 0) % x.ndim
    rows = np.where(index < 0, index + x.shape[axis], index).reshape(-1)
    y = F.index_select(x, axis, rows)
    return y.reshape((*x.shape[:axis], *index.shape, *x.shape[axis + 1 :]))


def _one_hot(F: Any, c: NodeCase, index: Any, depth: Any, values: Any) -> Any:
    size = int(number(depth))
    found = np.asarray(index).astype(np.int64)
    if ((found < -size) | (found >= size)).any():
        raise NotRun("for indices out of range, which are errors here")
    hot = F.one_hot(np.where(found < 0, found + size, found), size)
    axis = c.get("axis", -1)
    y = F.where(F.ne(hot, 0), values[1:].reshape(()), values[:1].reshape(()))
    return np.moveaxis(y, -1, axis)


def _slice(F: Any, c: NodeCase, x: Any, starts: Any, ends: Any, axes: Any = None, steps: Any = None) -> Any:
    key = [slice(None)] * x.ndim
    where = ints(axes) if axes is not None else range(len(starts))
    by = ints(steps) if steps is not None else [1] * len(starts)
    for a, low, high, step in zip(where, ints(starts), ints(ends), by, strict=True):
        key[a] = slice(low, None if step < 0 and high < -x.shape[a] else high, step)
    return F.copy(x[tuple(key)])


def _split(F: Any, c: NodeCase, x: Any, sizes: Any = None) -> Any:
    axis, parts = c.get("axis", 0), len(c.outputs)
    whole = x.shape[axis]
    each = -(-whole // parts)
    cuts = np.cumsum(ints(sizes))[:-1] if sizes is not None else [each * i for i in range(1, parts)]
    return tuple(F.copy(part) for part in np.split(x, cuts, axis))


def _to_space(F: Any, c: NodeCase, x: Any) -> Any:
    n, (b, ch, h, w) = c.get("blocksize"), x.shape
    if c.op == "SpaceToDepth":
        axes = (0, 3, 5, 1, 2, 4) if c.get("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
        seen = x.reshape(b, ch, h // n, n, w // n, n).transpose(axes)
        return F.copy(seen).reshape(b, ch * n * n, h // n, w // n)
    if c.get("mode", "DCR") == "DCR":
        seen = x.reshape(b, n, n, ch // n**2, h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        seen = x.reshape(b, ch // n**2, n, n, h, w).transpose(0, 1, 4, 2, 5, 3)
    return F.copy(seen).reshape(b, ch // n**2, h * n, w * n)


def _compress(F: Any, c: NodeCase, x: Any, condition: Any) -> Any:
    axis = c.get("axis")
    if axis is None:
        x, axis = x.reshape(-1), 0
    return F.index_select(x, axis, F.nonzero(condition).reshape(-1))


def _unique(F: Any, c: NodeCase, x: Any) -> Any:
    """Values, where each was first, the inverse and counts; in the order of first places where they are not sorted."""
    y, first, inverse, counts = F.unique(x, True, True, True, c.attributes.get("axis"), return_index=True)
    inverse = inverse.reshape(-1)
    if not c.get("sorted", 1):
        order = F.argsort(first)
        y, first, counts = (F.index_select(v, c.get("axis", 0), order) for v in (y, first, counts))
        inverse = F.index_select(F.argsort(order), 0, inverse)
    return (y, first, inverse, counts)[: len(c.outputs)]


def _reverse_sequence(F: Any, c: NodeCase, x: Any, lengths: Any) -> Any:
    time, batch = c.get("time_axis", 0), c.get("batch_axis", 1)
    shape = [1] * x.ndim
    shape[time] = x.shape[time]
    at = F.arange(x.shape[time]).reshape(shape)
    shape[time], shape[batch] = 1, x.shape[batch]
    ends = lengths.reshape(shape)
    back = F.where(F.lt(at, ends), F.sub(F.sub(ends, 1), at), np.broadcast_to(at, np.broadcast_shapes(at.shape, shape)))
    return F.gather(x, time, np.broadcast_to(back, x.shape))


def _tensor_scatter(F: Any, c: NodeCase, cache: Any, update: Any, starts: Any = None) -> Any:
    axis = c.get("axis", -2) % cache.ndim
    count = update.shape[axis]
    starts = np.zeros(len(cache), np.int64) if starts is None else starts
    at = F.add(starts[:, None], F.arange(count))
    at = F.remainder(at, cache.shape[axis]) if c.get("mode", "linear") == "circular" else at
    shape = [len(cache)] + [count if d == axis else 1 for d in range(1, cache.ndim)]
    return F.scatter(cache, axis, np.broadcast_to(at.reshape(shape), update.shape), update)


def _center(F: Any, c: NodeCase, x: Any, shape: Any) -> Any:
    axes = c.attributes.get("axes") or range(x.ndim)
    pads = [(0, 0)] * x.ndim
    for a, size in zip(axes, ints(shape), strict=True):
        more = size - x.shape[a]
        low = more // 2 if more > 0 else -(-more // 2)
        pads[a % x.ndim] = (low, more - low)
    flat = [p for pair in reversed(pads) for p in pair]
    return F.pad(x, flat)


def _hardmax(F: Any, c: NodeCase, x: Any) -> Any:
    axis = c.get("axis", -1)
    hot = F.one_hot(F.argmax(x, axis), x.shape[axis])
    return F.cast(np.moveaxis(hot, -1, axis), x.dtype)


def _reshape(F: Any, c: NodeCase, x: Any, shape: Any) -> Any:
    kept = [x.shape[i] if n == 0 and not c.get("allowzero", 0) else n for i, n in enumerate(ints(shape))]
    return F.copy(x.reshape(kept))


def _flatten(F: Any, c: NodeCase, x: Any) -> Any:
    axis = c.get("axis", 1)
    axis = axis + x.ndim if axis < 0 else axis
    return F.copy(x.reshape(int(np.prod(x.shape[:axis])), -1))


def _unsqueeze(F: Any, c: NodeCase, x: Any, axes: Any) -> Any:
    return F.copy(np.expand_dims(x, tuple(ints(axes))))


def _window(*terms: float) -> Call:
    """A sum of cosines of the place in a window; ONNX's gives f32."""

    def call(F: Any, c: NodeCase, size: Any) -> Any:
        n = number(size)
        turn = F.mul(F.arange(n, dtype="f64"), 2 * pi / (n if c.get("periodic", 1) else n - 1))
        y = F.full((n,), terms[0], dtype="f64")
        for k, term in enumerate(terms[1:], 1):
            y = F.add(y, F.mul(F.cos(F.mul(turn, float(k))), term))
        return F.cast(y, "f32")

    return call


def _optimizer(rule: Call, each: int) -> Call:
    """A rule for one tensor, for the tensors, gradients and states that are given."""

    def call(F: Any, c: NodeCase, rate: Any, step: Any, *tensors: Any) -> Any:
        many = len(tensors) // each
        made = [rule(F, c, number(rate), number(step), *tensors[i::many]) for i in range(many)]
        return tuple(one[k] for k in range(each - 1) for one in made)

    return call


def _regular(F: Any, c: NodeCase, x: Any, g: Any) -> Any:
    return F.add(g, x, alpha=c.get("norm_coefficient", 0.0))


def _adagrad(F: Any, c: NodeCase, rate: float, step: int, x: Any, g: Any, h: Any) -> Any:
    g = _regular(F, c, x, g)
    h = F.addcmul(h, g, g)
    below = F.add(F.sqrt(h), c.get("epsilon", 0.0))
    return F.addcdiv(x, g, below, value=-rate / (1 + step * c.get("decay_factor", 0.0))), h


def _adam(F: Any, c: NodeCase, rate: float, step: int, x: Any, g: Any, v: Any, h: Any) -> Any:
    alpha, beta = c.get("alpha", 0.9), c.get("beta", 0.999)
    g = _regular(F, c, x, g)
    v, h = F.lerp(g, v, alpha), F.lerp(F.mul(g, g), h, beta)
    if step > 0:
        rate = rate * (1 - beta**step) ** 0.5 / (1 - alpha**step)
    x = F.addcdiv(x, v, F.add(F.sqrt(h), c.get("epsilon", 0.0)), value=-rate)
    return F.mul(x, 1 - c.get("norm_coefficient_post", 0.0)), v, h


def _momentum(F: Any, c: NodeCase, rate: float, step: int, x: Any, g: Any, v: Any) -> Any:
    alpha, beta = c.get("alpha"), c.get("beta") if step > 0 else 1.0
    g = _regular(F, c, x, g)
    v = F.add(F.mul(v, alpha), g, alpha=beta)
    way = v if c.get("mode") == "standard" else F.add(g, v, alpha=alpha)
    return F.add(x, way, alpha=-rate), v


CALLS: dict[str, Call] = {
    "BlackmanWindow": _window(0.42, -0.5, 0.08),
    "CenterCropPad": _center,
    "Compress": _compress,
    "DepthToSpace": _to_space,
    "Flatten": _flatten,
    "Gather": _gather,
    "GatherElements": lambda F, c, x, i: (
        F.take_along_dim(x, i, c.get("axis", 0))
        if x.shape != i.shape
        else F.gather(x, c.get("axis", 0), np.where(i < 0, i + x.shape[c.get("axis", 0)], i))
    ),
    "GatherND": _gather_nd,
    "HammingWindow": _window(25 / 46, -21 / 46),
    "HannWindow": _window(0.5, -0.5),
    "Hardmax": _hardmax,
    "NonZero": lambda F, c, x: F.nonzero(x).T,
    "OneHot": _one_hot,
    "Reshape": _reshape,
    "ReverseSequence": _reverse_sequence,
    "Scatter": _scatter,
    "ScatterElements": _scatter,
    "ScatterND": _scatter_nd,
    "Slice": _slice,
    "SpaceToDepth": _to_space,
    "Split": _split,
    "Squeeze": lambda F, c, x, axes: F.copy(np.squeeze(x, tuple(ints(axes)))),
    "TensorScatter": _tensor_scatter,
    "Tile": lambda F, c, x, times: F.tile(x, tuple(ints(times))),
    "TopK": lambda F, c, x, k: F.topk(x, int(number(k)), c.get("axis", -1), bool(c.get("largest", 1))),
    "Transpose": lambda F, c, x: F.copy(np.transpose(x, c.attributes.get("perm"))),
    "Unique": _unique,
    "Unsqueeze": _unsqueeze,
    "ai.onnx.ml.ArrayFeatureExtractor": lambda F, c, x, index: F.index_select(x, -1, index),
    "ai.onnx.ml.Binarizer": lambda F, c, x: F.cast(F.gt(x, c.get("threshold", 0.0)), x.dtype),
    "ai.onnx.preview.training.Adagrad": _optimizer(_adagrad, 3),
    "ai.onnx.preview.training.Adam": _optimizer(_adam, 4),
    "ai.onnx.preview.training.Momentum": _optimizer(_momentum, 3),
}
