"""Moving values between the host and devices: copies are made here and nowhere else."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from baracuda import _core
from baracuda.describe.errors import InvalidProblemError, Refusal
from baracuda.memory.views import is_contiguous, reach

if TYPE_CHECKING:
    from baracuda.memory.tensor import Tensor

TO_DEVICE, TO_HOST, ON_DEVICE = 0, 1, 2


def need_data(what: str, *tensors: Tensor) -> None:
    """Refuses tensors without memory."""
    if any(t._unbacked for t in tensors):
        raise InvalidProblemError(
            f"{what}: got a shape without memory, want a tensor with data.",
            [Refusal("null_data", "", "a shape without memory", "a tensor with data")],
        )


def download(tensor: Tensor, stream: Any = None) -> Tensor:
    """A contiguous copy on the host. A view with gaps is fetched with what lies between its elements."""
    from baracuda.memory.tensor import empty

    place, size = tensor._place, tensor.element.nbytes
    need_data("to", tensor)
    handle = _core.stream_handle(*place, stream)
    out = empty(tensor.shape, tensor.element)
    if is_contiguous(tensor.shape, tensor.strides):
        _core.device_copy(*place, out.address, tensor.address, tensor.nbytes, TO_HOST, handle)
        return out
    low, high = reach(tensor.shape, tensor.strides)
    raw = empty((high - low) * size, "u8")
    _core.device_copy(*place, raw.address, tensor.address + low * size, raw.nbytes, TO_HOST, handle)
    held = out._opaque()
    steps = tuple(s * size for s in tensor.strides)
    held[...] = np.ndarray(tensor.shape, held.dtype, raw.numpy(), -low * size, steps)
    return out


def upload(tensor: Tensor, device: str, stream: Any = None) -> Tensor:
    """A contiguous copy of a host tensor on a device."""
    from baracuda.memory.tensor import empty

    out = empty(tensor.shape, tensor.element, device=device)
    assign(out, tensor, stream)
    return out


def assign(target: Tensor, source: Tensor, stream: Any = None) -> None:
    """Copies values between tensors of one shape and element, wherever they are and whatever their strides."""
    if (target.shape, target.element) != (source.shape, source.element):
        raise InvalidProblemError(
            f"copy_from: got {source.element!r} of shape {source.shape}, want {target.element!r} of shape {target.shape}."
        )
    if target.read_only:
        raise InvalidProblemError("copy_from: the tensor is read-only.")
    need_data("copy_from", target, source)
    here, there = target._place, source._place
    if here[0] == 0:
        host = source if there[0] == 0 else download(source, stream)
        target._opaque()[...] = host._opaque()
    elif there[0] == 0:
        _from_host(target, source, stream)
    elif here == there:
        _on_device(target, source, stream)
    elif here[0] == there[0]:
        _between(target, source, stream)
    else:
        # The stream is one of the target's device; what the source's device has to do first is waited for.
        _core.device_synchronize(*there, 0)
        _from_host(target, download(source), stream)


def _from_host(target: Tensor, source: Tensor, stream: Any) -> None:
    from baracuda.memory.tensor import empty

    place = target._place
    if not is_contiguous(source.shape, source.strides):
        dense = empty(source.shape, source.element)
        dense._opaque()[...] = source._opaque()
        source = dense
    if is_contiguous(target.shape, target.strides):
        handle = _core.stream_handle(*place, stream)
        _core.device_copy(*place, target.address, source.address, source.nbytes, TO_DEVICE, handle)
        return
    staging = upload(source, target.device, stream)
    _on_device(target, staging, stream)
    _core.device_synchronize(*place, _core.stream_handle(*place, stream))  # the staging memory goes now


def _between(target: Tensor, source: Tensor, stream: Any) -> None:
    """Between two devices of a backend, directly where they reach each other. Done when this returns."""
    from baracuda.memory.tensor import empty

    here, there = target._place, source._place
    handle = _core.stream_handle(*here, stream)
    _core.device_synchronize(*there, 0)  # the stream is one of the target's device
    if not is_contiguous(source.shape, source.strides):
        dense = empty(source.shape, source.element, device=source.device)
        _on_device(dense, source, None)
        _core.device_synchronize(*there, 0)
        source = dense
    dense_target = is_contiguous(target.shape, target.strides)
    landing = target if dense_target else empty(target.shape, target.element, device=target.device)
    _core.device_copy_between(*here, landing.address, there[1], source.address, source.nbytes, handle)
    if not dense_target:
        _on_device(target, landing, stream)
        _core.device_synchronize(*here, handle)  # the memory in between goes now


def _on_device(target: Tensor, source: Tensor, stream: Any) -> None:
    """By one copy, by a kernel, or where the backend has none by a copy per run of neighbours."""
    place = target._place
    handle = _core.stream_handle(*place, stream)
    dense = is_contiguous(target.shape, target.strides) and is_contiguous(source.shape, source.strides)
    if dense:
        _core.device_copy(*place, target.address, source.address, target.nbytes, ON_DEVICE, handle)
        return
    from baracuda.ops.layout.layout import CopyDescriptor

    desc = CopyDescriptor(target.shape, target.element)
    if CopyDescriptor.plan_class.query(desc, target.device):
        CopyDescriptor.plan_class.select(desc, target.device).run(x=source, y=target, stream=stream)
        return
    size = target.element.nbytes
    inner = _common_run(target, source)
    outer = target.shape[: len(target.shape) - inner]
    nbytes = prod(target.shape[len(outer) :]) * size
    for position in product(*map(range, outer)):
        to = target.address + sum(i * s for i, s in zip(position, target.strides, strict=False)) * size
        at = source.address + sum(i * s for i, s in zip(position, source.strides, strict=False)) * size
        _core.device_copy(*place, to, at, nbytes, ON_DEVICE, handle)


def _common_run(a: Tensor, b: Tensor) -> int:
    """How many of the last dimensions lie without gaps in both tensors."""
    count = 0
    while count < len(a.shape):
        at = len(a.shape) - count - 1
        if not all(is_contiguous(t.shape[at:], t.strides[at:]) for t in (a, b)):
            break
        count += 1
    return count
