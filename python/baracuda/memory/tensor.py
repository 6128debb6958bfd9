"""bc.Tensor: a minimal owner of device memory, and TensorSpec, a tensor without memory."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from dataclasses import dataclass
from operator import index
from pickle import PickleBuffer
from typing import TYPE_CHECKING, Any

import numpy as np

from baracuda import _core
from baracuda._core import Tensor as Tensor
from baracuda._core import empty as empty
from baracuda._core import from_pointer as from_pointer
from baracuda.describe.calls import Signed, signed
from baracuda.describe.dims import check_shape
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError, shown
from baracuda.memory.device import Device, Place, name_of, place_of, refuse_place
from baracuda.memory.text import text_of
from baracuda.memory.transfer import assign, download, need_data, upload

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@dataclass(frozen=True, slots=True)
class TensorSpec(metaclass=Signed):
    """Shape, element and strides of a tensor that need not exist; `can_implement` takes it in a tensor's place.

    Sizes may be `bc.Dim`s for `bc.trace`.
    """

    shape: tuple[int, ...]
    element: Element | str = Element.F32
    strides: tuple[int, ...] | None = None
    device: str = "cpu"
    read_only: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "element", Element.coerce(self.element, "TensorSpec.element"))
        object.__setattr__(self, "shape", check_shape(self.shape, "TensorSpec.shape"))
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
    return unbacked(shape, element, strides, name_of(place), read_only=read_only)


def _to(tensor: Tensor, device: Any, *, stream: Any = None) -> Tensor:
    try:
        place = place_of(device)
    except InvalidProblemError as error:
        if not _is_element(device):
            raise
        got = shown(device)
        raise InvalidProblemError(f"to: got {got}, want a device. x.astype({got}) is x in that element.") from error
    if place == tensor._place:
        return tensor
    if place[0] == 0:
        return download(tensor, stream)
    return upload(tensor, name_of(place), stream)


def _is_element(value: Any) -> bool:
    try:
        Element.coerce(value)
    except InvalidProblemError:
        return False
    return True


def _copy_from(tensor: Tensor, source: Any, *, stream: Any = None) -> Tensor:
    assign(tensor, source if isinstance(source, Tensor) else _core.borrow(source), stream)
    return tensor


def _as_array(tensor: Tensor, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
    return np.asarray(tensor.numpy(), dtype=dtype, copy=copy)


def _tolist(tensor: Tensor) -> Any:
    return tensor.to("cpu").numpy().tolist()


@contextmanager
def _with_values() -> Iterator[None]:
    """Has `empty` give memory, and records no launch: the values are known, even where a function is traced."""
    asked, tracer = _core.exchange_inferring(False), _core.exchange_tracer(None)
    try:
        yield
    finally:
        _core.exchange_inferring(asked)
        _core.exchange_tracer(tracer)


def _copy(tensor: Tensor, memo: Any = None) -> Tensor:
    need_data("copy", tensor)
    with _with_values():
        out = empty(tensor.shape, tensor.element, device=tensor.device)
        assign(out, tensor)
    return out


def _raw(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The bytes of elements in their logical order: of dense ones without a copy."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _reduce(tensor: Tensor, protocol: int) -> tuple[Any, ...]:
    need_data("pickle", tensor)
    with _with_values():
        raw = _raw(tensor.to("cpu")._opaque())
    held = PickleBuffer(raw.data) if protocol >= 5 else raw.tobytes()
    return unpickled, (held, tensor.shape, str(tensor.element), tensor.device)


def unpickled(held: Any, shape: tuple[int, ...], element: str, device: str) -> Tensor:
    """The tensor of pickled bytes: memory of its own, on the device where it was."""
    place = _usable(device)
    with _with_values():
        out = empty(shape, element)
        if (came := memoryview(held).nbytes) != out.nbytes:
            got, want = f"{came} bytes", f"{out.nbytes} for {element} of shape {shape}"
            raise InvalidProblemError(f"pickle: got {got}, want {want}: the data is damaged.")
        if out.nbytes:
            _raw(out._opaque())[...] = np.frombuffer(held, np.uint8)
        return out.to(name_of(place))


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


def _usable(device: Any) -> Place:
    place = place_of(device)
    if Device(name_of(place)).reason:
        refuse_place(place)
    return place


_core.tensor_hooks(
    Element,
    tuple(Element),
    Element.coerce,
    _sizes,
    _steps,
    _usable,
    _to,
    _copy_from,
    _as_array,
    _tolist,
    _copy,
    _reduce,
    lambda tensor: text_of(tensor, lambda part: _copy(part).to("cpu")),
)


def unbacked(
    shape: Sequence[int],
    element: Any,
    strides: Sequence[int] | None = None,
    device: str = "cpu",
    *,
    read_only: bool = False,
) -> Tensor:
    """A tensor without memory: its shape and element, for checks and for shapes of results."""
    return _core.stand_in(tuple(shape), strides, element, read_only, *place_of(device))


@contextmanager
def outside_arenas() -> Iterator[None]:
    """Has the calling thread's new tensors get memory of their own, as those need that are kept for longer than a step."""
    before = _core.exchange_arena(None)
    try:
        yield
    finally:
        _core.exchange_arena(before)


@signed
def zeros(shape: int | Sequence[int], element: Any = Element.F32, *, device: Any = "cpu") -> Tensor:
    """A tensor of zeros."""
    out = empty(shape, element, device=device)
    if out._unbacked:
        if (tracer := _core.tracer()) is not None:
            tracer.zeros(out)
        return out
    if out._place[0]:
        _core.device_fill(*out._place, out.address, 0, out.nbytes, 0)
        _core.device_synchronize(*out._place, 0)  # streams may use it that do not follow the default one
    else:
        _core.clear(out)
    return out


@signed
def asarray(value: Any, element: Any = None, *, device: Any = "cpu") -> Tensor:
    """A tensor with a copy of numbers, nested lists or any tensor's values, from whatever device."""
    array = _host_values(value)
    if element is not None:
        array = np.asarray(array, Element.coerce(element).numpy)
    elif not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    with _with_values():
        out = empty(array.shape, array.dtype)
    out.numpy()[...] = array
    return out if device == "cpu" else out.to(device)


def _host_values(value: Any) -> np.ndarray[Any, Any]:
    """The values as an array, fetched from a device after all of its work where they are on one."""
    where = None if isinstance(value, (np.ndarray, list, tuple)) else getattr(value, "__dlpack_device__", None)
    if where is None:
        return np.asarray(value)
    tensor = value if isinstance(value, Tensor) else _core.borrow(value)
    if tensor._place[0]:
        _core.device_synchronize(*tensor._place, 0)
    return tensor.to("cpu").numpy()


@signed
def from_dlpack(value: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor of the same memory as any framework's tensor; nothing is waited for, and nothing copied on its own device.

    A bare capsule is consumed. Memory of a torch tensor on the cpu can no longer be resized by torch, as after
    `x.numpy()`. On metal, memory of the host that begins at a page (of an `mmap`, say) is used where it is, where host
    and GPU share memory: wait for work with `bc.synchronize("metal")` before the host looks at it again.

    Args:
        value: An array or tensor, or a capsule of one.
        device: Where it shall be; by default where it is.
        copy: True: always new memory. False: never, which is an error where the device cannot use the memory as it is.
            None: where it has to be.

    Raises:
        InvalidProblemError: `copy=False`, and a copy is needed: it says why.
    """
    tensor = _borrowed(value)
    place = tensor._place if device is None else _usable(device)
    if copy:
        out = empty(tensor.shape, tensor.element, device=name_of(place))
        out.copy_from(tensor)
        return out
    if place == tensor._place:
        return tensor
    shared = "the device has memory of its own" if tensor._place[0] else _core.share(tensor, *place)
    if isinstance(shared, Tensor):
        return shared
    if copy is False:
        raise InvalidProblemError(
            f"from_dlpack: got memory of {tensor.device} with copy=False, want memory that {name_of(place)} can use: {shared} "
            "(leave copy out)."
        )
    return tensor.to(name_of(place))


def _borrowed(value: Any) -> Tensor:
    torch = sys.modules.get("torch")
    if torch and isinstance(value, torch.Tensor):
        return _core.borrow(value, _held_storage(torch, value))
    return _core.borrow(value)


def _held_storage(torch: Any, tensor: Any) -> Any:
    """The storage of torch's, which outlives `x.data = ...` and `x.set_(...)`, and is not resized in place any more."""
    try:
        with torch.inference_mode(False):
            storage = tensor.untyped_storage()
            whole = torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)
            return whole.numpy() if storage.device.type == "cpu" else storage
    except (RuntimeError, NotImplementedError, TypeError):  # no storage of its own: a meta tensor, a wrapper
        return None
