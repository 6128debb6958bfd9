"""Operators that show the same elements in another shape or order, or join and cut; and tensors of constants."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from baracuda import functional as F
from baracuda.onnx.call import Call, Known
from baracuda.onnx.operators.table import arange, axis_of, cast, element_of, full, moved, operator, reshaped

FARTHEST = 2**31 - 2  # ends of slices beyond it mean the end of the axis


def sizes_of(value: Any) -> Known:
    """The sizes of a value as a tensor of integers; open ones stay what they are."""
    shape = value.shape
    plain = all(type(n) is int for n in shape)
    array = np.empty(len(shape), np.int64 if plain else object)
    for i, n in enumerate(shape):
        array[i] = n
    return Known(array)


@operator("Shape", raw=True)
def _shape(c: Call, x: Any) -> Any:
    return Known(sizes_of(x).array[c.get("start", 0) : c.get("end")])


@operator("Size", raw=True)
def _size(c: Call, x: Any) -> Any:
    found = np.empty((), object if any(type(n) is not int for n in x.shape) else np.int64)
    found[()] = prod(x.shape)
    return Known(found)


@operator("Identity", view=True, raw=True)
def _identity(c: Call, x: Any) -> Any:
    return x


@operator("Reshape", view=True)
def _reshape(c: Call, x: Any, shape: Any = None) -> Any:
    sizes, zeros = c.ints(1), c.get("allowzero", 0)
    if not zeros and any(i >= x.ndim for i, n in enumerate(sizes) if n == 0):
        c.wrong(
            f"shape {sizes} for a tensor of {x.ndim} dimensions", "no 0, which keeps a size, behind the last of them"
        )
    return reshaped(x, [x.shape[i] if n == 0 and not zeros else n for i, n in enumerate(sizes)])


@operator("Flatten", view=True)
def _flatten(c: Call, x: Any) -> Any:
    axis = c.get("axis", 1)
    axis = axis + x.ndim if axis < 0 else axis
    return reshaped(x, (prod(x.shape[:axis]), prod(x.shape[axis:])))


@operator("Squeeze", view=True)
def _squeeze(c: Call, x: Any, axes: Any = None) -> Any:
    given = c.ints(1) if axes is not None else c.get("axes")
    where = [i for i, n in enumerate(x.shape) if n == 1] if given is None else [a % x.ndim for a in given]
    for a in sorted(where, reverse=True):
        if x.shape[a] != 1:
            c.wrong(f"axis {a} of size {x.shape[a]}", "a size of 1")
        x = x[(slice(None),) * a + (0,)]
    return x


@operator("Unsqueeze", view=True)
def _unsqueeze(c: Call, x: Any, axes: Any = None) -> Any:
    given = c.ints(1) if axes is not None else list(c.get("axes"))
    rank = x.ndim + len(given)
    for a in sorted(a % rank for a in given):
        x = x.unsqueeze(a)
    return x


@operator("Transpose", view=True)
def _transpose(c: Call, x: Any) -> Any:
    return x.permute(*c.get("perm", range(x.ndim)[::-1])) if x.ndim else x


def broadcast(a: Sequence[int], b: Sequence[int]) -> list[int]:
    """The shape of both."""
    rank = max(len(a), len(b))
    left, right = ([1] * (rank - len(s)) + list(s) for s in (a, b))
    return [_common(n, m) for n, m in zip(left, right, strict=True)]


def _common(n: int, m: int) -> int:
    """The size of both; of open ones nothing is asked that sizes of 1 would answer otherwise, where another way says it."""
    if type(m) is int and m == 1:
        return n
    if (type(n) is int and n == 1) or n == m:
        return m
    return m if n == 1 else n


@operator("Expand", view=True)
def _expand(c: Call, x: Any, shape: Any) -> Any:
    return x.broadcast_to(*broadcast(x.shape, c.ints(1)))


@operator("Concat")
def _concat(c: Call, *xs: Any) -> Any:
    return F.cat(list(xs), c.get("axis"))


@operator("Split", view=True)
def _split(c: Call, x: Any, sizes: Any = None) -> Any:
    axis, parts = axis_of(c, x), c.results
    given = c.ints(1) if sizes is not None else c.get("split")
    if not given:
        each = -(-x.shape[axis] // parts)
        given = [each] * (parts - 1) + [x.shape[axis] - each * (parts - 1)]
    elif sum(given) != x.shape[axis]:
        c.wrong(f"parts {list(given)} of an axis of size {x.shape[axis]}", "parts that sum to it")
    found, at = [], 0
    for n in given:
        found.append(x[(slice(None),) * axis + (slice(at, at + n),)])
        at = at + n
    return tuple(found)


@operator("Slice", view=True)
def _slice(c: Call, x: Any, starts: Any = None, ends: Any = None, axes: Any = None, steps: Any = None) -> Any:
    if starts is None:  # before opset 10
        low, high, where = c.get("starts"), c.get("ends"), c.get("axes")
    else:
        low, high, where = c.ints(1), c.ints(2), c.ints(3) if axes is not None else None
    where = range(len(low)) if where is None else where
    by = c.ints(4) if steps is not None else [1] * len(low)
    key = [slice(None)] * x.ndim
    for a, first, end, step in zip(where, low, high, by, strict=True):
        if not -x.ndim <= a < x.ndim or step == 0:
            c.wrong(
                f"axis {a} in steps of {step} for a tensor of {x.ndim} dimensions", "an axis, and a step that is not 0"
            )
        first, end = (max(-FARTHEST, min(FARTHEST, n)) if type(n) is int else n for n in (first, end))
        if step < 0:  # a start before the first element is the first one here, and an end before it takes it in
            first, end = 0 if first < -x.shape[a] else first, None if end < -x.shape[a] else end
        key[a] = slice(first, end, step)
    return x[tuple(key)]


@operator("Tile")
def _tile(c: Call, x: Any, times: Any) -> Any:
    return F.tile(x, tuple(c.ints(1)))


MODES = {"edge": "replicate", "wrap": "circular"}  # of `pad`, by ONNX's names


@operator("Pad", view=True)
def _pad(c: Call, x: Any, pads: Any = None, value: Any = None, axes: Any = None) -> Any:
    given = c.ints(1) if pads is not None else c.get("pads")
    where = [a % x.ndim for a in c.ints(3)] if axes is not None else list(range(x.ndim))
    if len(given) != 2 * len(where):
        c.wrong(f"{len(given)} pads", f"two for each of {len(where)} axes")
    low, high = [0] * x.ndim, [0] * x.ndim
    for i, a in enumerate(where):
        low[a], high[a] = given[i], given[i + len(where)]
    mode = c.get("mode", "constant")
    number = (c.number(2) if value is not None else c.get("value", 0.0)) if mode == "constant" else None
    return padded(x, low, high, MODES.get(mode, mode), number)


def padded(x: Any, low: Sequence[int], high: Sequence[int], mode: str = "constant", value: Any = 0.0) -> Any:
    """With so much before and behind each of the last dimensions; itself where that is nothing."""
    flat = [p for pair in zip(reversed(low), reversed(high), strict=True) for p in pair]
    while flat and type(flat[-1]) is int is type(flat[-2]) and flat[-2:] == [0, 0]:
        flat = flat[:-2]
    if not flat:
        return x
    if mode == "constant":
        return F.pad(x, flat, mode, value)
    if len(flat) > 6:  # one axis after the other, which comes to the same
        for a, (before, behind) in enumerate(zip(low, high, strict=True)):
            x = _padded_axis(x, a, before, behind, mode)
        return x
    rank = x.ndim
    while x.ndim < len(flat) // 2 + 2:  # these pad behind a batch and channels
        x = x.unsqueeze(0)
    y = F.pad(x, flat, mode)
    return y.reshape(*y.shape[y.ndim - rank :])


def _padded_axis(x: Any, axis: int, before: int, behind: int, mode: str) -> Any:
    if before == 0 and behind == 0:
        return x
    last = moved(x, axis, -1)
    y = F.pad(reshaped(last, (1, prod(last.shape[:-1]), last.shape[-1])), [before, behind], mode)
    return moved(y.reshape(*last.shape[:-1], y.shape[-1]), -1, axis)


@operator("CenterCropPad", view=True)
def _center(c: Call, x: Any, shape: Any) -> Any:
    low, high = [0] * x.ndim, [0] * x.ndim
    for a, size in zip(c.get("axes") or range(x.ndim), c.ints(1), strict=True):
        more = size - x.shape[a]
        low[a] = more // 2 if more > 0 else -(-more // 2)
        high[a] = more - low[a]
    return padded(x, low, high)


@operator("DepthToSpace")
def _depth_to_space(c: Call, x: Any) -> Any:
    n, (b, ch, h, w) = c.get("blocksize"), x.shape
    if c.get("mode", "DCR") == "DCR":
        seen = reshaped(x, (b, n, n, ch // n**2, h, w)).permute(0, 3, 4, 1, 5, 2)
    else:
        seen = reshaped(x, (b, ch // n**2, n, n, h, w)).permute(0, 1, 4, 2, 5, 3)
    return F.copy(seen).reshape(b, ch // n**2, h * n, w * n)


@operator("SpaceToDepth")
def _space_to_depth(c: Call, x: Any) -> Any:
    n, (b, ch, h, w) = c.get("blocksize"), x.shape
    axes = (0, 3, 5, 1, 2, 4) if c.get("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    seen = reshaped(x, (b, ch, h // n, n, w // n, n)).permute(*axes)
    return F.copy(seen).reshape(b, ch * n * n, h // n, w // n)


@operator("Trilu")
def _trilu(c: Call, x: Any, k: Any = None) -> Any:
    return (F.triu if c.get("upper", 1) else F.tril)(x, c.number(1) or 0)


@operator("ReverseSequence")
def _reverse_sequence(c: Call, x: Any, lengths: Any) -> Any:
    time, batch = axis_of(c, x, "time_axis", 0), axis_of(c, x, "batch_axis", 1)
    shape = [1] * x.ndim
    shape[time] = x.shape[time]
    at = arange(x.shape[time]).reshape(*shape)
    shape[time], shape[batch] = 1, x.shape[batch]
    ends = reshaped(lengths, shape)
    back = F.where(F.lt(at, ends), F.sub(F.sub(ends, 1), at), at)
    return F.gather(x, time, back.broadcast_to(*x.shape))


# --- constants


@operator("Range")
def _range(c: Call, start: Any, end: Any, step: Any) -> Any:
    return arange(c.number(0), c.number(1), c.number(2), dtype=start.element)


@operator("ConstantOfShape")
def _constant_of_shape(c: Call, shape: Any) -> Any:
    value = c.get("value")
    value = np.zeros(1, np.float32) if value is None else value
    return full(tuple(c.ints(0)), value.reshape(-1)[0].item(), dtype=value.dtype)


@operator("EyeLike")
def _eye_like(c: Call, x: Any) -> Any:
    element = element_of(c, c.get("dtype")) if c.get("dtype") is not None else x.element
    rows, columns = x.shape
    on = F.eq(F.add(arange(rows).unsqueeze(1), c.get("k", 0)), arange(columns))
    return cast(on, element)


@operator("OneHot")
def _one_hot(c: Call, index: Any, depth: Any, values: Any) -> Any:
    """Indices out of range give a row of the first value."""
    size = int(c.number(1))
    whole = cast(index, "i64")
    whole = F.where(F.lt(whole, 0), F.add(whole, size), whole)
    y = F.where(F.eq(whole.unsqueeze(whole.ndim), arange(size)), values[1], values[0])
    return moved(y, -1, c.get("axis", -1))
