"""Memory between pages that nobody may touch: whoever reads or writes beside it ends the process."""

from __future__ import annotations

import ctypes
import mmap
from math import prod
from typing import Any

import numpy as np

import baracuda as bc
from baracuda.describe.elements import Element

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
_PAGE = mmap.PAGESIZE


class Guarded:
    """`bytes` bytes, which end where the next page begins, or, with `low`, begin where one ends."""

    def __init__(self, nbytes: int, low: bool = False, align: int = 1) -> None:
        pages = max(1, -(-nbytes // _PAGE)) * _PAGE
        self._map = mmap.mmap(-1, pages + 2 * _PAGE)
        self._whole = np.frombuffer(self._map, np.uint8)
        start = self._whole.ctypes.data
        for fence in (start, start + _PAGE + pages):
            assert _LIBC.mprotect(fence, _PAGE, 0) == 0
        first = _PAGE if low else _PAGE + (pages - nbytes) // align * align
        self.bytes = self._whole[first : first + nbytes]
        self.address = start + first

    def close(self) -> None:
        """Gives the memory back; nothing may refer to it any more."""
        _LIBC.mprotect(self._whole.ctypes.data, len(self._whole), mmap.PROT_READ | mmap.PROT_WRITE)
        del self.bytes, self._whole
        self._map.close()


def guarded(shape: tuple[int, ...], element: Element, values: Any, low: bool) -> tuple[Any, Guarded]:
    """A contiguous tensor in such memory, of values or of bytes 0xA5."""
    memory = Guarded(prod(shape) * element.numpy.itemsize, low)
    memory.bytes[...] = 0xA5
    if values is not None:
        memory.bytes.view(element.numpy).reshape(shape)[...] = values
    made = bc.from_pointer(memory.address, shape, element, nbytes=len(memory.bytes), owner=memory)
    return made, memory
