"""ztensor's memory: names of bc.MemoryTracker and of bc.TensorPool, which its TensorArena is one of, too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import baracuda.engine.memory as memory
from baracuda import _core
from baracuda.engine.names import Name, Named


def _get(pool: memory.TensorPool, n: int) -> Any:
    return pool.acquire((n,), "f32") if n > 0 else None


def _put(pool: memory.TensorPool, buf: Any) -> None:
    if buf is not None:
        pool.release(buf)


class TensorArena(Named):
    """ztensor's TensorArena: buffers of f32 by size classes. bc.TensorArena is another thing: one block, emptied at once.

    Args:
        device: Where its buffers are.
    """

    system = "ztensor.TensorArena"
    names: ClassVar[Mapping[str, Name]] = {
        "Get": Name("n", _get, "`pool.acquire((n,))`: zeros, or None for n < 1", "size classes are four per power of two"),
        "Put": Name("buf", _put, "`pool.release(buf)`",
            "a buffer that is none of the arena's, or was put back already, is an error"),
        "Reset": Name("", lambda pool: pool.clear(), "`pool.clear()`"),
    }  # fmt: skip

    def __init__(self, device: Any = "cpu") -> None:
        super().__init__(memory.TensorPool(device))


class TensorPool(Named):
    """ztensor's TensorPool.

    Args:
        device: Where its tensors are.
    """

    system = "ztensor.TensorPool"
    names: ClassVar[Mapping[str, Name]] = {
        "Acquire": Name("shape", lambda pool, shape: pool.acquire(shape), "`pool.acquire(shape)`",
            "shapes of about a size share their memory; f32"),
        "Release": Name("t", _put, "`pool.release(t)`", "a tensor that is none of the pool's is an error"),
        "Len": Name("", lambda pool: len(pool), "`len(pool)`"),
    }  # fmt: skip

    def __init__(self, device: Any = "cpu") -> None:
        super().__init__(memory.TensorPool(device))


class MemoryTracker(Named):
    """ztensor's MemoryTracker.

    Args:
        limit: In bytes; 0 for none.
    """

    system = "ztensor.MemoryTracker"
    names: ClassVar[Mapping[str, Name]] = {
        "Alloc": Name("bytes", lambda m, n: m.alloc(n), "`tracker.alloc(bytes)`, a `MemoryLimitError` over the limit"),
        "Free": Name("bytes", lambda m, n: m.free(n), "`tracker.free(bytes)`"),
        "Allocated": Name("", lambda m: m.allocated, "`tracker.allocated`"),
        "Limit": Name("", lambda m: m.limit or 0, "`tracker.limit`, 0 for none"),
    }  # fmt: skip

    def __init__(self, limit: int = 0, tracker: _core.MemoryTracker | None = None) -> None:
        super().__init__(_core.MemoryTracker(limit or None) if tracker is None else tracker)
