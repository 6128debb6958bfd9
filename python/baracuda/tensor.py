"""bc.Tensor: a minimal owner of device memory, and TensorSpec, a tensor without memory."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np

from baracuda import _core
from baracuda.dims import check_shape
from baracuda.elements import Element
from baracuda.errors import BufferTooSmallError, InvalidProblemError

if TYPE_CHECKING:
    from collections.abc import Sequence


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Row-major strides in elements."""
    out, step = [], 1
    for size in reversed(shape):
        out.append(step)
        step *= size
    return tuple(reversed(out))


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """Shape, element and strides of a tensor that need not exist; `can_implement` takes it in a tensor's place."""

    shape: tuple[int, ...]
    element: Element | str = Element.F32
    strides: tuple[int, ...] | None = None
    device: str = "cpu"
    read_only: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "element", Element.coerce(self.element, "TensorSpec.element"))
        object.__setattr__(self, "shape", _sizes(self.shape, "TensorSpec.shape"))
        if self.strides is not None:
            object.__setattr__(self, "strides", _steps(self.strides, self.shape, "TensorSpec.strides"))
        if _backend(self.device) is None:
            raise InvalidProblemError(
                f"TensorSpec.device: got {self.device!r}, want 'cpu', 'cuda', 'cuda:0' or 'metal'."
            )


def _backend(device: object) -> int | None:
    names = ("cpu", "cuda", "metal")
    name = str(device).partition(":")[0]
    return names.index(name) if name in names else None


def stand_in(value: Any) -> Any:
    """What the checker sees for a tensor without memory: its shape, element and strides; anything else as it is."""
    backend, read_only = 0, False
    if isinstance(value, TensorSpec):
        shape, element, strides, read_only = value.shape, value.element, value.strides, value.read_only
        backend = _backend(value.device) or 0
    elif getattr(value, "is_meta", False) or type(value).__name__ == "FakeTensor":
        if str(value.layout) != "torch.strided":
            return value
        shape, element, strides = tuple(value.shape), Element.coerce(value.dtype), tuple(value.stride())
    elif type(value).__name__ == "ShapeDtypeStruct":
        shape, element, strides = tuple(value.shape), Element.coerce(value.dtype), None
    elif isinstance(value, (list, tuple)):
        return [stand_in(v) for v in value]
    else:
        return value
    if len(shape) > 8:
        raise InvalidProblemError(f"shape: got rank {len(shape)}, want at most 8.")
    steps = contiguous_strides(shape) if strides is None else strides
    return _core.TensorBase(0, int(element), shape, steps, None, -1, read_only, True, backend)


class Tensor(_core.TensorBase):
    """Memory with a shape, strides and an element, exchanged with every framework through DLPack.

    Make one with `empty`, `zeros`, `asarray`, `from_dlpack` or `from_pointer`. Slicing gives views.
    """

    __slots__ = ()

    @property
    def element(self) -> Element:
        """The element kind."""
        return Element(self._element)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The element as a NumPy dtype."""
        return self.element.numpy

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def numel(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes that the elements take."""
        return self.numel * self.element.nbytes

    @property
    def device(self) -> str:
        """Where the memory is."""
        return "cpu"

    def numpy(self) -> np.ndarray[Any, Any]:
        """A NumPy array of the same memory; bf16 and fp8 need ml_dtypes."""
        size = self.element.nbytes
        low = sum(min(0, (n - 1) * s) for n, s in zip(self.shape, self.strides, strict=True)) if self.numel else 0
        high = sum(max(0, (n - 1) * s) for n, s in zip(self.shape, self.strides, strict=True)) + 1 if self.numel else 0
        raw = _as_bytes(self.address + low * size, (high - low) * size, self)
        if self.read_only:
            raw.flags.writeable = False
        return np.ndarray(self.shape, self.dtype, raw, -low * size, tuple(s * size for s in self.strides))

    def item(self) -> Any:
        """The only element, as a Python number."""
        if self.numel != 1:
            raise InvalidProblemError(f"item: got {self.numel} elements, want 1.")
        return self.numpy().reshape(()).item()

    def __getitem__(self, key: Any) -> Tensor:
        part = self.numpy()[key]
        if not isinstance(part, np.ndarray):
            part = self.numpy()[(*(key if isinstance(key, tuple) else (key,)), ...)]
        if part.size and not np.shares_memory(part, self.numpy()):
            raise InvalidProblemError(
                "index: got a key that copies, want slices and ints. Use F.index_select for a list of indices."
            )
        return _view(part, self, self.read_only)

    def transpose(self, *axes: int) -> Tensor:
        """The dimensions in another order; all reversed by default."""
        return _view(self.numpy().transpose(*axes), self, self.read_only)

    def reshape(self, *shape: int) -> Tensor:
        """Another shape of the same memory; refused where that would need a copy."""
        array = self.numpy()
        made = array.reshape(*shape)
        if array.size and not np.shares_memory(made, array):
            raise InvalidProblemError(
                f"reshape: {self.shape} with strides {self.strides} cannot be seen as {shape} without a copy."
            )
        return _view(made, self, self.read_only)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.asarray(self.numpy(), dtype=dtype, copy=copy)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-d tensor")
        return int(self.shape[0])

    def __repr__(self) -> str:
        return f"bc.Tensor(shape={self.shape}, element={self.element!r}, strides={self.strides})"


class _Memory:
    """Raw memory for NumPy's array interface, with a reference to its owner."""

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, address: int, nbytes: int, owner: object) -> None:
        self.__array_interface__ = {"shape": (nbytes,), "typestr": "|u1", "data": (address, False), "version": 3}
        self.owner = owner


def _as_bytes(address: int, nbytes: int, owner: object) -> np.ndarray[Any, Any]:
    return np.asarray(_Memory(address, nbytes, owner)) if nbytes else np.empty(0, np.uint8)


def _view(array: np.ndarray[Any, Any], owner: Tensor, read_only: bool) -> Tensor:
    element = owner.element
    strides = tuple(s // element.nbytes for s in array.strides)
    return Tensor(array.ctypes.data, int(element), array.shape, strides, owner, -1, read_only)


def _sizes(shape: int | Sequence[int], field: str = "shape") -> tuple[int, ...]:
    sizes = check_shape(shape, field)
    if not all(isinstance(s, int) for s in sizes):
        raise InvalidProblemError(f"{field}: got {sizes}, want ints: memory has one size.")
    return sizes  # type: ignore[return-value]


def _steps(strides: Sequence[int], shape: tuple[int, ...], field: str = "strides") -> tuple[int, ...]:
    try:
        steps = tuple(index(s) for s in strides)
    except TypeError:
        raise InvalidProblemError(f"{field}: got {strides!r}, want a tuple of ints.") from None
    if len(steps) != len(shape) or not all(-(2**62) < s < 2**62 for s in steps):
        raise InvalidProblemError(f"{field}: got {steps}, want one stride below 2**62 for each of the sizes {shape}.")
    return steps


def empty(shape: int | Sequence[int], element: Any = Element.F32, *, device: str = "cpu") -> Tensor:
    """A tensor of uninitialised memory, 64-byte aligned; large ones ask for huge pages."""
    if device != "cpu":
        raise InvalidProblemError(f"device: got {device!r}, want 'cpu' (the only backend built here).")
    sizes = _sizes(shape)
    kind = Element.coerce(element)
    nbytes = prod(sizes) * kind.nbytes
    memory = _core.allocate(nbytes)
    return Tensor(_core.memory_address(memory), int(kind), sizes, contiguous_strides(sizes), memory, nbytes, False)


def zeros(shape: int | Sequence[int], element: Any = Element.F32, *, device: str = "cpu") -> Tensor:
    """A tensor of zeros."""
    out = empty(shape, element, device=device)
    _as_bytes(out.address, out.nbytes, out)[:] = 0
    return out


def asarray(value: Any, element: Any = None, *, device: str = "cpu") -> Tensor:
    """A tensor with a copy of numbers, nested lists or any tensor's values."""
    array = np.asarray(value) if element is None else np.asarray(value, Element.coerce(element).numpy)
    out = empty(array.shape, array.dtype, device=device)
    out.numpy()[...] = array
    return out


def from_dlpack(value: Any) -> Tensor:
    """A tensor of the same memory as any framework's tensor; nothing is copied."""
    address, shape, element, strides, read_only, keep = _core.borrow(value)
    return Tensor(address, element, shape, strides, keep, -1, read_only)


def from_pointer(
    ptr: int,
    shape: Sequence[int],
    element: Any,
    strides: Sequence[int] | None = None,
    device: str = "cpu",
    nbytes: int | None = None,
    owner: object = None,
) -> Tensor:
    """A tensor of memory that somebody else holds.

    Args:
        ptr: Address of the first element.
        shape: Sizes.
        element: Element kind.
        strides: In elements; row-major by default.
        device: Where the memory is.
        nbytes: Bytes known to be valid from `ptr` on; checked against what the view reaches.
        owner: An object that keeps the memory alive.

    Raises:
        BufferTooSmallError: If the view reaches past `nbytes`, or before `ptr`.
    """
    if device != "cpu":
        raise InvalidProblemError(f"device: got {device!r}, want 'cpu' (the only backend built here).")
    sizes, kind = _sizes(shape), Element.coerce(element)
    steps = contiguous_strides(sizes) if strides is None else _steps(strides, sizes)
    if isinstance(ptr, bool) or not isinstance(ptr, int) or not 0 <= ptr < 2**63 or (ptr == 0 and 0 not in sizes):
        raise InvalidProblemError(f"from_pointer: got ptr={ptr!r}, want the address of the first element.")
    if nbytes is not None and 0 not in sizes:
        reach = sum(max(0, (n - 1) * s) for n, s in zip(sizes, steps, strict=True)) + 1
        low = sum(min(0, (n - 1) * s) for n, s in zip(sizes, steps, strict=True))
        if reach * kind.nbytes > nbytes or low < 0:
            raise BufferTooSmallError(
                f"from_pointer: the view reaches from byte {low * kind.nbytes} to {reach * kind.nbytes}, "
                f"but {nbytes} bytes are valid from ptr on. Pass a smaller shape, other strides or the right nbytes.",
                needed=reach * kind.nbytes,
                got=nbytes,
            )
    return Tensor(ptr, int(kind), sizes, steps, owner, -1 if nbytes is None else nbytes, False)
