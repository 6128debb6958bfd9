"""Views by arithmetic alone: sizes, strides and an offset in elements. No memory is touched."""

from __future__ import annotations

from itertools import pairwise
from math import prod
from operator import index as to_int
from typing import TYPE_CHECKING, Any

from baracuda.dims import MAX_RANK
from baracuda.errors import IndexOutOfRangeError, InvalidProblemError

if TYPE_CHECKING:
    from collections.abc import Sequence

Sizes = tuple[int, ...]


def contiguous_strides(shape: Sequence[int]) -> Sizes:
    """Row-major strides in elements."""
    out, step = [], 1
    for size in reversed(shape):
        out.append(step)
        step *= size
    return tuple(reversed(out))


def reach(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, int]:
    """The elements that a view touches, as a half-open range around its first; (0, 0) for an empty one."""
    if 0 in shape:
        return 0, 0
    steps = [(n - 1) * s for n, s in zip(shape, strides, strict=True)]
    return sum(min(0, s) for s in steps), sum(max(0, s) for s in steps) + 1


def is_contiguous(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether the elements lie row after row without gaps; what dimensions of size 1 carry does not matter."""
    if 0 in shape:
        return True
    wanted = contiguous_strides(shape)
    return all(n == 1 or s == w for n, s, w in zip(shape, strides, wanted, strict=True))


def _expand(key: Any, rank: int) -> list[Any]:
    """The key as one entry per dimension and one None per new dimension."""
    keys = list(key) if isinstance(key, tuple) else [key]
    ellipses = [i for i, k in enumerate(keys) if k is Ellipsis]
    used = sum(k is not None and k is not Ellipsis for k in keys)
    if len(ellipses) > 1 or used > rank:
        raise IndexOutOfRangeError(f"index: got {used} indices, want at most one per dimension and one '...': {rank}.")
    at = ellipses[0] if ellipses else len(keys)
    return [*keys[:at], *[slice(None)] * (rank - used), *keys[at + len(ellipses) :]]


def index(shape: Sizes, strides: Sizes, key: Any) -> tuple[int, Sizes, Sizes]:
    """(offset, shape, strides) of `x[key]` for ints, slices, None and `...`."""
    offset, sizes, steps, at = 0, [], [], 0
    for k in _expand(key, len(shape)):
        if k is None:
            sizes.append(1)
            steps.append(0)
            continue
        size, step = shape[at], strides[at]
        at += 1
        if isinstance(k, slice):
            start, stop, stride = k.indices(size)
            length = len(range(start, stop, stride))
            offset += start * step if length else 0
            sizes.append(length)
            steps.append(step * stride)
            continue
        if (
            isinstance(k, bool)
            or type(k).__name__ == "bool"
            or not hasattr(k, "__index__")
            or getattr(k, "ndim", 0) > 0
        ):
            raise InvalidProblemError(
                "index: got a key that copies, want slices and ints. Use F.index_select for a list of indices."
            )
        i = to_int(k)
        if not -size <= i < size:
            raise IndexOutOfRangeError(f"index {i} is out of bounds for dimension {at - 1} with size {size}.")
        offset += (i % size) * step
    if len(sizes) > MAX_RANK:
        raise InvalidProblemError(f"index: got a key that gives {len(sizes)} dimensions, want at most {MAX_RANK}.")
    return offset, tuple(sizes), tuple(steps)


def transpose(shape: Sizes, strides: Sizes, axes: tuple[Any, ...]) -> tuple[Sizes, Sizes]:
    """(shape, strides) with the dimensions in another order; all reversed without axes."""
    rank = len(shape)
    given: Any = axes[0] if len(axes) == 1 and not hasattr(axes[0], "__index__") else axes or None
    if given is None:
        given = range(rank - 1, -1, -1)
    try:
        order = [to_int(a) + rank if to_int(a) < 0 else to_int(a) for a in given]
    except TypeError:
        order = []
    if sorted(order) != list(range(rank)):
        raise InvalidProblemError(f"transpose: got {axes}, want each of the {rank} dimensions once.")
    return tuple(shape[a] for a in order), tuple(strides[a] for a in order)


def _complete(shape: Sizes, wanted: tuple[Any, ...]) -> Sizes:
    """The wanted sizes with a -1 resolved."""
    if len(wanted) == 1 and isinstance(wanted[0], (tuple, list)):
        wanted = tuple(wanted[0])
    try:
        sizes = [to_int(n) for n in wanted]
    except TypeError:
        raise InvalidProblemError(f"reshape: got {wanted}, want ints.") from None
    count, known = prod(shape), prod(n for n in sizes if n != -1)
    if sizes.count(-1) == 1 and known > 0 and count % known == 0:
        sizes[sizes.index(-1)] = count // known
    if len(sizes) > MAX_RANK:
        raise InvalidProblemError(f"reshape: got {len(sizes)} sizes, want at most {MAX_RANK}.")
    if any(n < 0 for n in sizes) or prod(sizes) != count:
        raise InvalidProblemError(f"reshape: got {wanted} for {shape}, want sizes with {count} elements together.")
    return tuple(sizes)


def reshape(shape: Sizes, strides: Sizes, wanted: tuple[Any, ...]) -> tuple[Sizes, Sizes]:
    """(shape, strides) of the same memory in another shape; refused where that would need a copy."""
    sizes = _complete(shape, wanted)
    if 0 in sizes:
        return sizes, contiguous_strides(sizes)
    old = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    steps = [1] * len(sizes)
    at = 0  # the next new dimension
    while old:
        # The fewest leading dimensions of both that have as many elements.
        n, taken, count, end = old[0][0], 1, 1, at
        while n != count:
            if n < count:
                n, taken = n * old[taken][0], taken + 1
            else:
                count, end = count * sizes[end], end + 1
        if any(a[1] != b[0] * b[1] for a, b in pairwise(old[:taken])):
            raise InvalidProblemError(
                f"reshape: {shape} with strides {strides} cannot be seen as {sizes} without a copy."
            )
        step = old[taken - 1][1]
        for i in range(end - 1, at - 1, -1):
            steps[i] = step
            step *= sizes[i]
        old, at = old[taken:], end
    return sizes, tuple(steps)
