"""What callers are handed: tensors of the kind that they gave, in memory of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from baracuda import _core
from baracuda.call.gradients import Gradients
from baracuda.call.tape import Tracked
from baracuda.describe.elements import Element
from baracuda.memory.results import foreign_converter, is_torch
from baracuda.memory.views import reach


class Handed:
    """Gradients for the caller: each in memory of its own."""

    def __init__(self, dys: Sequence[Any]) -> None:
        self._extents = [_extent(dy) for dy in dys]

    def gradient(self, found: Gradients, leaf: Tracked, like: Any) -> Any:
        """That of a leaf, of the kind of `like`; zeros where nothing reached it."""
        from baracuda import functional as F

        gradient = found.of(leaf.root)
        if gradient is None:
            gradient = F.zeros_like(leaf.value)
        if _core.tracer() is not None:
            return handed(gradient, like)
        low, high = _extent(gradient)
        if any(low < b and a < high for a, b in self._extents):
            gradient = F.clone(gradient)
            low, high = _extent(gradient)
        self._extents.append((low, high))
        return handed(gradient, like)


def _extent(x: Any) -> tuple[int, int]:
    """Addresses of the first byte of a tensor and of that behind its last."""
    if isinstance(x, Tracked):
        return 0, 0
    seen = _core.borrow(x)
    low, high = reach(seen.shape, seen.strides)
    size = Element(seen._element).nbytes
    return seen.address + low * size, seen.address + high * size


def handed(value: Any, like: Any) -> Any:
    """A tensor as one of the kind that another one is of; the same memory."""
    if isinstance(like, np.ndarray):
        return value.numpy() if isinstance(value, _core.Tensor) and not value._unbacked else value
    if is_torch(like):
        if is_torch(value):
            return value
        import torch

        return torch.utils.dlpack.from_dlpack(value)
    if type(value) is type(like):
        return value
    convert = foreign_converter(like)
    if convert is None:
        return value if isinstance(value, Tracked) else _core.borrow(value)
    from baracuda import functional as F

    return convert(F.copy(_core.borrow(value)))


def as_like(x: Any, like: Any) -> Any:
    """A tensor in new memory, of the kind of another one."""
    from baracuda import functional as F

    return handed(F.copy(x if is_torch(x) and is_torch(like) else _core.borrow(x)), like)
