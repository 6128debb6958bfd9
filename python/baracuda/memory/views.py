"""Sizes and strides by arithmetic alone; that of views is the engine's."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

Sizes = tuple[int, ...]


def contiguous_strides(shape: Sequence[int]) -> Sizes:
    """Row-major strides in elements."""
    out, step = [], 1
    for size in reversed(shape):
        out.append(step)
        step *= size
    out.reverse()
    return tuple(out)


def reach(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, int]:
    """The elements that a view touches, as a half-open range around its first; (0, 0) for an empty one."""
    if 0 in shape:
        return 0, 0
    steps = [(n - 1) * s for n, s in zip(shape, strides, strict=True)]
    return sum(min(0, s) for s in steps), sum(max(0, s) for s in steps) + 1


def is_contiguous(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether the elements lie row after row without gaps; what dimensions of size 1 carry does not matter."""
    step = 1
    for n, s in zip(reversed(shape), reversed(strides), strict=True):
        if n != 1:
            if s != step:
                return 0 in shape
            step *= n
    return True


def is_dense(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether the elements fill their memory once, in whatever order of dimensions."""
    want = 1
    for step, n in sorted((s, n) for n, s in zip(shape, strides, strict=True) if n != 1):
        if step != want:
            return 0 in shape
        want *= n
    return True
