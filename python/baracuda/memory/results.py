"""Results of functions: memory of the kind that the arguments are of."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from baracuda import _core
from baracuda.describe.errors import BaracudaError, DeviceMemoryError, InvalidProblemError, Refusal, shown
from baracuda.memory._torch import scalar_types

if TYPE_CHECKING:
    from baracuda.describe.dims import Size
    from baracuda.describe.elements import Element


def maker(
    like: Any, shape: tuple[Size, ...], element: Element, device: str
) -> tuple[Any, tuple[Any, ...], tuple[str, ...] | None]:
    """Callable, arguments and keyword names that make a result of the same kind as `like`."""
    if isinstance(like, (np.ndarray, np.generic)):
        return np.empty, (shape, element.numpy), None
    if is_torch(like):
        import torch

        name = {"bool": "bool", "bf16": "bfloat16"}.get(str(element)) or element.numpy.name
        dtype = getattr(torch, name)
        if device == "cpu" and (number := scalar_types().get(dtype)) is not None:
            return _core.torch_empty, (shape, number, dtype), None
        return torch.empty, (shape, dtype, like.device), ("dtype", "device")
    from baracuda.memory.tensor import empty

    return (empty, (shape, element), None) if device == "cpu" else (empty, (shape, element, device), ("device",))


def strided_maker(like: Any, element: Element, device: str) -> Any:
    """What takes the place of `maker`'s callable where a result has strides of its own: they come behind the shape."""
    if isinstance(like, (np.ndarray, np.generic)):
        return _core.numpy_empty
    if is_torch(like):
        import torch

        native = device == "cpu" and maker(like, (), element, device)[0] is _core.torch_empty
        return _core.torch_empty_strided if native else torch.empty_strided
    return _core.empty_strided


def allocated(
    make: Any,
    args: tuple[Any, ...],
    names: tuple[str, ...] | None = None,
    order: tuple[Any, tuple[int, ...]] | None = None,
) -> Any:
    """Calls what `maker` found, or with an order what `strided_maker` did, with these strides.

    Where only shapes are asked for it has no memory.

    Raises:
        DeviceMemoryError: There is no memory; what NumPy or torch said is its cause.
    """
    if _core.inferring():
        from baracuda.memory.tensor import unbacked

        return unbacked(args[0], args[1], order and order[1], args[2] if len(args) > 2 else "cpu")
    if order is not None:
        make, args = order[0], (args[0], order[1], *args[1:])
    split = len(args) - len(names or ())
    try:
        return make(*args[:split], **dict(zip(names or (), args[split:], strict=True)))
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, BaracudaError):
            raise
        why = f"no memory for a result of shape {args[0]}. Free tensors that are not needed any more, or ask for less"
        wanted = Refusal("device_memory", "", "", f"memory for shape {args[0]}", "free tensors, or ask for less")
        raise DeviceMemoryError(f"{why} ({shown(str(error))}).", [wanted]) from error


def new_result(
    like: Any, shape: tuple[int, ...], element: Element, device: str, strides: tuple[int, ...] | None = None
) -> Any:
    """A result of the kind of `like`; of strides that leave no gaps, or in C order."""
    order = None if strides is None else (strided_maker(like, element, device), strides)
    return allocated(*maker(like, shape, element, device), order)


def fresh(shape: tuple[Size, ...], element: Element, device: Any = None, out: Any = None) -> Any:
    """What a function without tensors writes to: `out`; a NumPy array; or a bc.Tensor, where a device is named.

    Raises:
        InvalidProblemError: `out` lies elsewhere.
    """
    from baracuda.memory.device import name_of, place_of
    from baracuda.memory.tensor import empty

    if out is not None:
        if device is not None and place_of(device) != tuple(_core.describe(out)[3:]):
            got = f"{name_of(place_of(device))} and out on {name_of(tuple(_core.describe(out)[3:]))}"
            raise InvalidProblemError(f"device: got {got}, want one of them. Leave device out.")
        return out
    if device is None:
        return allocated(np.empty, (shape, element.numpy))
    return allocated(empty, (shape, element, name_of(place_of(device))), ("device",))


def is_torch(like: Any) -> bool:
    """Whether it is a tensor of torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(like, torch.Tensor)


def foreign_converter(like: Any) -> Callable[[Any], Any] | None:
    """For results that have to be handed to another framework through DLPack."""
    if isinstance(like, (np.ndarray, np.generic, _core.Tensor)) or is_torch(like):
        return None
    root = type(like).__module__.partition(".")[0]
    if root in ("jax", "jaxlib"):
        import jax

        return jax.dlpack.from_dlpack
    converter = getattr(inspect.getmodule(type(like)), "from_dlpack", None)
    return converter if callable(converter) else None
