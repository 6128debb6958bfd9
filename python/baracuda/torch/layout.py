"""Where tensors lie: what torch's fake tensors promise, in baracuda's words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from baracuda.describe.elements import Element
from baracuda.memory.views import contiguous_strides, is_contiguous

Sizes = tuple[int, ...]


def element_of(dtype: torch.dtype) -> str:
    """The element of a dtype, in a word.

    Raises:
        InvalidProblemError: There is none.
    """
    return str(Element.coerce(dtype))


def order_of(shape: Sequence[int], strides: Sequence[int]) -> Sizes:
    """The dimensions from the outermost to the innermost in memory."""
    if is_contiguous(shape, strides):
        return tuple(range(len(shape)))
    far = [float("inf") if n == 1 else s for n, s in zip(shape, strides, strict=True)]
    return tuple(sorted(range(len(shape)), key=lambda i: (-far[i], i)))


def is_dense(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether elements have neither gaps between them nor places in common."""
    order = order_of(shape, strides)
    return is_contiguous([shape[i] for i in order], [strides[i] for i in order])


@dataclass(frozen=True, slots=True)
class Layout:
    """Shape, strides and dtype of a tensor that torch promised."""

    shape: Sizes
    strides: Sizes
    dtype: torch.dtype

    @property
    def element(self) -> str:
        """The element in a word."""
        return element_of(self.dtype)

    @property
    def contiguous(self) -> bool:
        """Whether it lies row after row."""
        return is_contiguous(self.shape, self.strides)

    @property
    def order(self) -> Sizes:
        """The dimensions from the outermost to the innermost in memory."""
        return order_of(self.shape, self.strides)

    @property
    def dense(self) -> bool:
        """Whether it has neither gaps nor elements in one place."""
        return is_dense(self.shape, self.strides)

    def same_as(self, shape: Sequence[int], strides: Sequence[int]) -> bool:
        """Whether elements of this shape and these strides lie likewise."""
        if tuple(shape) != self.shape:
            return False
        empty = 0 in self.shape
        return all(empty or n == 1 or a == b for n, a, b in zip(shape, strides, self.strides, strict=True))

    def made(self) -> torch.Tensor:
        """A new tensor that lies so."""
        return torch.empty_strided(self.shape, self.strides, dtype=self.dtype)


def inverse(order: Sequence[int]) -> Sizes:
    """The permutation that undoes one."""
    found = [0] * len(order)
    for place, dim in enumerate(order):
        found[dim] = place
    return tuple(found)


def dense_strides(shape: Sequence[int], order: Sequence[int]) -> Sizes:
    """Strides without gaps of a shape whose dimensions lie in this order."""
    steps = contiguous_strides([shape[i] for i in order])
    back = inverse(order)
    return tuple(steps[back[i]] for i in range(len(shape)))
