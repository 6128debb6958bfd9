"""bc.Tensor: a minimal owner of device memory, and TensorSpec, a tensor without memory."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from math import prod
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np

from baracuda import _core, views
from baracuda.device import Device, name_of, place_of, refuse_place
from baracuda.dims import check_shape
from baracuda.elements import Element
from baracuda.errors import BufferTooSmallError, InvalidProblemError
from baracuda.transfer import as_array, as_bytes, assign, download, upload
from baracuda.views import contiguous_strides

if TYPE_CHECKING:
    from collections.abc import Sequence


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
        object.__setattr__(self, "device", name_of(place_of(self.device, "TensorSpec.device")))


def stand_in(value: Any, device: str = "cpu") -> Any:
    """What the checker sees for a tensor without memory: its shape, element and strides; anything else as it is.

    Shapes of other frameworks are on no device yet: they are taken to be on `device`.
    """
    place, read_only = place_of(device), False
    if isinstance(value, TensorSpec):
        shape, element, strides, read_only = value.shape, value.element, value.strides, value.read_only
        place = place_of(value.device)
    elif getattr(value, "is_meta", False) or type(value).__name__ == "FakeTensor":
        if str(value.layout) != "torch.strided":
            return value
        shape, element, strides = tuple(value.shape), Element.coerce(value.dtype), tuple(value.stride())
    elif type(value).__name__ == "ShapeDtypeStruct":
        shape, element, strides = tuple(value.shape), Element.coerce(value.dtype), None
    elif isinstance(value, (list, tuple)):
        return [stand_in(v, device) for v in value]
    else:
        return value
    if len(shape) > 8:
        raise InvalidProblemError(f"shape: got rank {len(shape)}, want at most 8.")
    steps = contiguous_strides(shape) if strides is None else strides
    return _core.TensorBase(0, int(element), shape, steps, None, -1, read_only, True, *place)


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
        """Where the memory is: "cpu", "cuda:1", "metal"."""
        return name_of(self._place)

    def numpy(self) -> np.ndarray[Any, Any]:
        """A NumPy array of the same memory; bf16 and fp8 need ml_dtypes."""
        if self._place[0]:
            raise InvalidProblemError(
                f"numpy: the tensor is on {self.device}, which NumPy cannot read. Copy it: t.to('cpu').numpy()."
            )
        return as_array(self, self.dtype)

    def to(self, device: Any, *, stream: Any = None) -> Tensor:
        """The tensor on a device: itself where it is there already, else a contiguous copy.

        The copy is done when this returns, and comes after the work given to `stream`: None is the device's default
        stream, which follows all streams that were not made with non_blocking=True. Between two cuda devices the values
        go directly where the devices reach each other; the source's device is waited for, and `stream` is the target's.
        """
        place = place_of(device)
        if place == self._place:
            return self
        if place[0] == 0:
            return download(self, stream)
        return upload(self, name_of(place), stream)

    def copy_from(self, source: Any, *, stream: Any = None) -> Tensor:
        """Overwrites the values with those of a tensor of the same shape and element; returns the tensor itself.

        `source` is on any device, of any framework and any strides. A copy from the host is done when this returns; one
        on the device is done when `stream` is.
        """
        assign(self, source if isinstance(source, Tensor) else _borrowed(source), stream)
        return self

    def item(self) -> Any:
        """The only element, as a Python number; fetched from the device after the work of its default stream."""
        if self.numel != 1:
            raise InvalidProblemError(f"item: got {self.numel} elements, want 1.")
        return self.to("cpu").numpy().reshape(()).item()

    def __getitem__(self, key: Any) -> Tensor:
        offset, shape, strides = views.index(self.shape, self.strides, key)
        return self._view(offset, shape, strides)

    def transpose(self, *axes: Any) -> Tensor:
        """The dimensions in another order; all reversed by default."""
        return self._view(0, *views.transpose(self.shape, self.strides, axes))

    def reshape(self, *shape: Any) -> Tensor:
        """Another shape of the same memory; refused where that would need a copy."""
        return self._view(0, *views.reshape(self.shape, self.strides, shape))

    def _view(self, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> Tensor:
        address = self.address + offset * self.element.nbytes
        return Tensor(address, self._element, shape, strides, self, -1, self.read_only, False, *self._place)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.asarray(self.numpy(), dtype=dtype, copy=copy)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-d tensor")
        return int(self.shape[0])

    def __repr__(self) -> str:
        where = f", device={self.device!r}" if self._place[0] else ""
        return f"bc.Tensor(shape={self.shape}, element={self.element!r}, strides={self.strides}{where})"


_core.set_tensor_class(Tensor)


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


def empty(shape: int | Sequence[int], element: Any = Element.F32, *, device: Any = "cpu") -> Tensor:
    """A tensor of uninitialised memory, at least 64-byte aligned; large ones on the cpu ask for huge pages.

    Raises:
        DeviceMemoryError: The device has not that much memory left.
    """
    sizes = _sizes(shape)
    kind = Element.coerce(element)
    place = place_of(device)
    nbytes = prod(sizes) * kind.nbytes
    memory = _core.device_allocate(*place, nbytes) if place[0] else _core.allocate(nbytes)
    address = _core.memory_address(memory)
    return Tensor(address, int(kind), sizes, contiguous_strides(sizes), memory, nbytes, False, False, *place)


def zeros(shape: int | Sequence[int], element: Any = Element.F32, *, device: Any = "cpu") -> Tensor:
    """A tensor of zeros."""
    out = empty(shape, element, device=device)
    if out._place[0]:
        _core.device_fill(*out._place, out.address, 0, out.nbytes, 0)
        _core.device_synchronize(*out._place, 0)  # streams may use it that do not follow the default one
    else:
        as_bytes(out.address, out.nbytes, out)[:] = 0
    return out


def asarray(value: Any, element: Any = None, *, device: Any = "cpu") -> Tensor:
    """A tensor with a copy of numbers, nested lists or any tensor's values, from whatever device."""
    array = _host_values(value)
    if element is not None:
        array = np.asarray(array, Element.coerce(element).numpy)
    out = empty(array.shape, array.dtype)
    out.numpy()[...] = array
    return out.to(device)


def _host_values(value: Any) -> np.ndarray[Any, Any]:
    """The values as an array, fetched from a device after all of its work where they are on one."""
    where = None if isinstance(value, (np.ndarray, list, tuple)) else getattr(value, "__dlpack_device__", None)
    if where is None or where()[0] in _HOST_DEVICES:
        return np.asarray(value)
    tensor = value if isinstance(value, Tensor) else _borrowed(value)
    if tensor._place[0]:
        _core.device_synchronize(*tensor._place, 0)
    return tensor.to("cpu").numpy()


_HOST_DEVICES = (1, 3)  # DLPack's cpu and pinned memory


def from_dlpack(value: Any) -> Tensor:
    """A tensor of the same memory as any framework's tensor, on its device; nothing is copied or waited for.

    A bare capsule is consumed. Memory of a torch tensor on the cpu can no longer be resized by torch, as after
    `x.numpy()`.
    """
    torch = sys.modules.get("torch")
    storage = _held_storage(torch, value) if torch and isinstance(value, torch.Tensor) else None
    return _borrowed(value, storage)


def _borrowed(value: Any, *held: Any) -> Tensor:
    """A tensor of the same memory, for as long as `value` and its memory stay as they are."""
    address, shape, element, strides, read_only, keep, *place = _core.borrow(value)
    return Tensor(address, element, shape, strides, (keep, *held), -1, read_only, False, *place)


def _held_storage(torch: Any, tensor: Any) -> Any:
    """The storage of torch's, which outlives `x.data = ...` and `x.set_(...)`, and is not resized in place any more."""
    try:
        with torch.inference_mode(False):
            storage = tensor.untyped_storage()
            whole = torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)
            return whole.numpy() if storage.device.type == "cpu" else storage
    except (RuntimeError, NotImplementedError, TypeError):  # no storage of its own: a meta tensor, a wrapper
        return None


def from_pointer(
    ptr: int,
    shape: Sequence[int],
    element: Any,
    strides: Sequence[int] | None = None,
    device: Any = "cpu",
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
    place = place_of(device)
    if Device(name_of(place)).reason:
        refuse_place(place)
    sizes, kind = _sizes(shape), Element.coerce(element)
    steps = contiguous_strides(sizes) if strides is None else _steps(strides, sizes)
    if isinstance(ptr, bool) or not isinstance(ptr, int) or not 0 <= ptr < 2**63 or (ptr == 0 and 0 not in sizes):
        raise InvalidProblemError(f"from_pointer: got ptr={ptr!r}, want the address of the first element.")
    if nbytes is not None and 0 not in sizes:
        low, high = views.reach(sizes, steps)
        if high * kind.nbytes > nbytes or low < 0:
            raise BufferTooSmallError(
                f"from_pointer: the view reaches from byte {low * kind.nbytes} to {high * kind.nbytes}, "
                f"but {nbytes} bytes are valid from ptr on. Pass a smaller shape, other strides or the right nbytes.",
                needed=high * kind.nbytes,
                got=nbytes,
            )
    return Tensor(ptr, int(kind), sizes, steps, owner, -1 if nbytes is None else nbytes, False, False, *place)
