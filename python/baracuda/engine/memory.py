"""Memory that is used again: an arena that is emptied at once, and a pool by size classes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from typing import Any

from baracuda import _core
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError, shown
from baracuda.memory.device import name_of, place_of
from baracuda.memory.tensor import Tensor, _sizes, outside_arenas

# All its bits are set: a NaN of every float that has one, -1 or the largest whole number.
POISON = 0xFF
_UNITS = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


def bytes_of(size: int | str, name: str) -> int:
    """A number of bytes, or a text like `"2GiB"`.

    Raises:
        InvalidProblemError: It is neither.
    """
    if isinstance(size, int) and not isinstance(size, bool) and size >= 0:
        return size
    text = size.replace(" ", "") if isinstance(size, str) else ""
    number = text.rstrip("KMGTiB")
    unit = text[len(number) :]
    if unit in _UNITS and number.replace(".", "", 1).isdecimal():
        return int(float(number) * _UNITS[unit])
    raise InvalidProblemError(f"{name}: got {shown(size)}, want a number of bytes, or a text like '512MiB' or '2GiB'.")


class TensorArena(_core.ArenaBase):
    """One block of memory that tensors are cut from, one behind the other, and that is emptied at once.

    Its tensors are ordinary ones. They keep the block alive, but not what is in it: after `reset` new tensors lie where they
    were. With `poison` all bits are set there then, so that who still reads them finds NaN.

    Args:
        nbytes: Its size: a number, or a text like "512MiB".
        device: Where it is.
        poison: Overwrites what `reset` gives free.

    Raises:
        DeviceMemoryError: The device has not that much left.

    Example:
        >>> arena = bc.TensorArena("64MiB")
        >>> with arena.use():
        ...     y = F.softmax(F.matmul(x, w), -1)  # of bc.Tensors
        >>> arena.reset()
    """

    _device: str
    _poison: bool
    _floor: int
    _pins: dict[tuple[int, int], int]

    def __new__(cls, nbytes: int | str, device: Any = "cpu", *, poison: bool = False) -> TensorArena:
        """Allocates the block."""
        where = name_of(place_of(device))
        with outside_arenas():
            block = _core.empty((bytes_of(nbytes, "nbytes"),), Element.U8, device=where)
        made: TensorArena = super().__new__(cls, block)
        made._device, made._poison, made._floor, made._pins = where, poison, 0, {}
        return made

    @property
    def device(self) -> str:
        """Where it is."""
        return self._device

    @property
    def size(self) -> int:
        """Bytes of the block."""
        return int(self._block.nbytes)

    @contextmanager
    def use(self) -> Iterator[TensorArena]:
        """Has the calling thread's new tensors lie here; what does not fit gets memory of its own (`overflows`)."""
        before = _core.exchange_arena(self)
        try:
            yield self
        finally:
            _core.exchange_arena(before)

    def empty(self, shape: Any, element: Any = "f32") -> Tensor:
        """A tensor of memory of the arena that holds anything."""
        with self.use():
            return _core.empty(shape, element, device=self._device)

    def mark(self) -> int:
        """Where it is now, for `reset`."""
        return int(self.used)

    @property
    def floor(self) -> int:
        """How far `reset` goes at most."""
        return self._floor

    def set_floor(self, at: int | None = None) -> None:
        """Protects all that was made until now, or until a mark: weights, say."""
        at = self.mark() if at is None else at
        if not 0 <= at <= self.used:
            raise InvalidProblemError(f"set_floor: got {shown(at)}, want a mark of at most {self.used}.")
        self._floor = self._aligned(at)

    def _aligned(self, at: int) -> int:
        """The next place where a tensor may begin."""
        return int(min(self.used, -(-at // 64) * 64))

    def _reached(self, tensor: Tensor, name: str) -> tuple[int, int]:
        extent = self._extent(tensor) if isinstance(tensor, Tensor) else None
        if extent is None:
            raise InvalidProblemError(f"{name}: got a tensor that is not in the arena, want one of its own.")
        return extent

    def pin(self, tensor: Tensor) -> None:
        """Protects a tensor, and all before it, from `reset` until it is unpinned as often.

        Of a view that is from its first element to its last in memory, with what lies between.
        """
        extent = self._reached(tensor, "pin")
        self._pins[extent] = self._pins.get(extent, 0) + 1

    def unpin(self, tensor: Tensor) -> None:
        """Undoes one `pin`."""
        extent = self._reached(tensor, "unpin")
        left = self._pins.get(extent, 0) - 1
        if left < 0:
            raise InvalidProblemError("unpin: got a tensor that is not pinned, want one that pin was called with.")
        if left:
            self._pins[extent] = left
        else:
            del self._pins[extent]

    @property
    def pinned_bytes(self) -> int:
        """Of all pinned tensors, with what lies between their elements."""
        return sum(end - start for start, end in tuple(self._pins))

    def reset(self, to: int = 0) -> int:
        """Gives free what was made since a mark, but for what is below the floor or pinned; where it is then.

        Kernels of other streams that still use the memory have to be waited for before.
        """
        if isinstance(to, bool) or not isinstance(to, int) or not 0 <= to <= self.used:
            raise InvalidProblemError(f"reset: got {shown(to)}, want a mark of at most {self.used}.")
        before = self.used
        to = self._aligned(max([to, self._floor, *(end for _, end in tuple(self._pins))]))
        # Before it is given free: a finaliser that runs meanwhile may make tensors, which must not be overwritten.
        if self._poison and before > to:
            freed = _core.view_of(self._block, to, (before - to,), (1,), int(Element.U8))
            _poisoned(freed)
        self._rewind(to)
        return to

    def __repr__(self) -> str:
        return f"<TensorArena {self.used} of {self.size} bytes in use on {self._device}>"


def _poisoned(block: Tensor) -> None:
    if block._place[0]:
        _core.device_fill(*block._place, block.address, POISON, block.nbytes, 0)
    else:
        block.numpy()[...] = POISON


class TensorPool:
    """Tensors that were given back, by the size of their memory, for the next ones of about that size.

    Sizes are classes, four per power of two. What `acquire` gives holds zeros, and never lies in an arena: the pool keeps it
    for longer than until a reset. Threads and finalisers may share a pool.

    Args:
        device: Where its tensors are.
    """

    def __init__(self, device: Any = "cpu") -> None:
        self.device = name_of(place_of(device))
        # There is no lock: a collection in the midst of a method may run a finaliser that uses the pool, too. Each change
        # is one call of a list or dict, which no other thread divides.
        self._free: dict[int, list[Tensor]] = {}
        self._lent: dict[int, tuple[Tensor, Tensor]] = {}  # by id: the tensor, and the block that it is a view of

    @staticmethod
    def class_of(nbytes: int) -> int:
        """The bytes that a tensor of so many bytes takes."""
        if nbytes <= 64:
            return 64
        step = 1 << max((nbytes - 1).bit_length() - 3, 4)
        return -(-nbytes // step) * step

    def acquire(self, shape: Any, element: Any = "f32") -> Tensor:
        """A tensor of zeros."""
        sizes, kind = _sizes(shape), Element.coerce(element)
        size = self.class_of(prod(sizes) * kind.nbytes)
        try:
            block = self._free[size].pop()
        except (KeyError, IndexError):
            with outside_arenas():
                block = _core.empty((size,), Element.U8, device=self.device)
        strides = [prod(sizes[i + 1 :]) for i in range(len(sizes))]
        made = _core.view_of(block, 0, sizes, tuple(strides), int(kind))
        if block._place[0]:
            _core.device_fill(*block._place, block.address, 0, block.nbytes, 0)
        else:
            _core.clear(block)
        self._lent[id(made)] = made, block
        return made

    def release(self, tensor: Tensor) -> None:
        """Gives a tensor back: nobody may use it any more.

        Raises:
            InvalidProblemError: It is none of the pool's, or was given back already.
        """
        # What is lent is kept alive, so that no other tensor has its id.
        found = self._lent.pop(id(tensor), None)
        if found is None:
            raise InvalidProblemError("release: got a tensor that acquire did not give, want one of the pool's, once.")
        self._free.setdefault(int(found[1].nbytes), []).append(found[1])

    def __len__(self) -> int:
        """Blocks that wait to be used again."""
        return sum(map(len, tuple(self._free.values())))

    def clear(self) -> None:
        """Lets go of them."""
        self._free.clear()
