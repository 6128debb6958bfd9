"""Memory of some layout, full of a pattern: what `verify` and the tests give to plans to see what else was read or written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

if TYPE_CHECKING:
    from baracuda.prove.reference import Array

SENTINEL = 0xA5


@dataclass(slots=True)
class Buffer:
    """A view of some layout inside memory that is filled with a pattern, to see what else was written."""

    view: Array
    raw: Array  # all bytes of the memory, one row of them per element
    written: Array  # bool: elements that belong to the view
    fill: int = SENTINEL

    def stray_writes(self) -> int:
        """Elements outside the view that are not the pattern any more."""
        changed = (self.raw != self.fill).any(axis=-1)
        return int(np.count_nonzero(changed & ~self.written))


def _strided(base: Array, shape: tuple[int, ...], strides: Any) -> Array:
    """A view with strides in bytes; NumPy makes none of the 8-bit floats, whose names it does not know."""
    return as_strided(base.view(f"V{base.itemsize}"), shape, strides).view(base.dtype)


def _contiguous(shape: tuple[int, ...]) -> tuple[tuple[int, ...], Callable[[Array], Array]]:
    """With torch's strides, which count a size of 0 as 1; NumPy's are 0 then."""
    n = int(np.prod(shape, dtype=np.int64))
    steps = [prod(max(1, s) for s in shape[d + 1 :]) for d in range(len(shape))]
    return (n + 34,), lambda base: _strided(base[17 : 17 + n], shape, [base.itemsize * s for s in steps])


def _dense(shape: tuple[int, ...]) -> tuple[tuple[int, ...], Callable[[Array], Array]]:
    """Contiguous, from where memory begins: aligned as an allocation is. With NumPy's strides."""
    return shape, lambda base: base[...]


def _transposed(shape: tuple[int, ...]) -> tuple[tuple[int, ...], Callable[[Array], Array]]:
    return shape[::-1], lambda base: base.T


def _sliced(shape: tuple[int, ...]) -> tuple[tuple[int, ...], Callable[[Array], Array]]:
    return tuple(2 * s + 1 for s in shape), lambda base: base[(*(slice(1, 2 * s + 1, 2) for s in shape), ...)]


def _negative(shape: tuple[int, ...]) -> tuple[tuple[int, ...], Callable[[Array], Array]]:
    return shape, lambda base: base[(*(slice(None, None, -1),) * len(shape), ...)]


def _rows_apart(shape: tuple[int, ...]) -> tuple[tuple[int, ...], Callable[[Array], Array]]:
    if not shape:
        return _contiguous(shape)
    return (*shape[:-1], shape[-1] + 5), lambda base: base[..., 3 : 3 + shape[-1]]


def _aligned(shape: tuple[int, ...]) -> tuple[tuple[int, ...], Callable[[Array], Array]]:
    """Rows that begin at multiples of 16 bytes, which kernels may read in packs."""
    if not shape:
        return _contiguous(shape)
    return (*shape[:-1], (shape[-1] + 15) // 16 * 16), lambda base: base[..., : shape[-1]]


def _one_row(shape: tuple[int, ...]) -> tuple[tuple[int, ...], Callable[[Array], Array]]:
    if not shape:
        return _contiguous(shape)
    return (1, *shape[1:]), lambda base: _strided(base, shape, (0, *base.strides[1:]))


def _one_column(shape: tuple[int, ...]) -> tuple[tuple[int, ...], Callable[[Array], Array]]:
    if not shape:
        return _contiguous(shape)
    return (*shape[:-1], 1), lambda base: _strided(base, shape, (*base.strides[:-1], 0))


LAYOUTS = {
    "contiguous": _contiguous,
    "dense": _dense,
    "transposed": _transposed,
    "sliced": _sliced,
    "negative": _negative,
    "rows_apart": _rows_apart,
    "aligned": _aligned,
    "one_row": _one_row,
    "one_column": _one_column,
}
# Stride 0 along the first or last dimension, where all values are the same then.
REPEATED = {"one_row": 0, "one_column": -1}


def buffer(shape: tuple[int, ...], dtype: np.dtype[Any], layout: str, fill: int = SENTINEL) -> Buffer:
    """Pattern-filled memory with a view of the given shape and layout."""
    base_shape, take = LAYOUTS[layout](tuple(shape))
    raw = np.full((*base_shape, dtype.itemsize), fill, np.uint8)
    base = np.ndarray(base_shape, dtype, raw)
    written = np.zeros(base_shape, bool)
    take(written)[...] = True
    return Buffer(take(base), raw, written, fill)
