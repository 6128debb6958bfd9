"""What `repr` says of a tensor: its values as NumPy writes them, of a large one those at the edges, and what it is."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from baracuda.describe.elements import Element
from baracuda.describe.errors import BaracudaError
from baracuda.memory.views import is_contiguous

if TYPE_CHECKING:
    from collections.abc import Callable

    from baracuda._core import Tensor

Array = np.ndarray[Any, Any]

# Digits behind the point of elements that hold fewer than NumPy's narrowest: an f8 is 0.1016 and no 0.1015625.
_FEW_DIGITS = 4


def text_of(tensor: Tensor, fetch: Callable[[Tensor], Tensor]) -> str:
    """The text of a tensor with memory.

    Args:
        tensor: On any device.
        fetch: Gives a dense copy on the host of a view of it. At most the edges of the tensor are fetched.
    """
    try:
        values = _values(tensor, fetch)
    except BaracudaError:  # a device that is lost, or whose work is being captured: there is still something to say
        return tensor._described()
    facts = [f"shape={tensor.shape}", f"element={tensor.element!r}"]
    if not is_contiguous(tensor.shape, tensor.strides):
        facts.append(f"strides={tensor.strides}")
    if tensor._place[0]:
        facts.append(f"device={tensor.device!r}")
    line = ", ".join(facts)
    between = ", " if "\n" not in values else ",\n" + " " * len("bc.Tensor(")
    return f"bc.Tensor({values}{between}{line})"


def _values(tensor: Tensor, fetch: Callable[[Tensor], Tensor]) -> str:
    options = np.get_printoptions()
    most, edge = options["threshold"], options["edgeitems"]
    short = tensor.numel > most
    array = _edges(tensor, edge, 0, fetch) if short else _numbers(tensor, fetch)
    narrow = tensor.element in (Element.BF16, Element.F8E4M3, Element.F8E5M2)
    return np.array2string(
        array,
        separator=", ",
        prefix="bc.Tensor(",
        threshold=0 if short else max(array.size, 1),
        edgeitems=edge,
        precision=min(options["precision"], _FEW_DIGITS) if narrow else None,
    )


def _edges(tensor: Tensor, edge: int, axis: int, fetch: Callable[[Tensor], Tensor]) -> Array:
    """The outer elements along each dimension, and one between them, for which NumPy writes three dots."""
    if axis == tensor.ndim:
        return _numbers(tensor, fetch)
    size = tensor.shape[axis]
    if size <= 2 * edge:
        return _edges(tensor, edge, axis + 1, fetch)
    before = (slice(None),) * axis
    ends = (tensor[(*before, slice(edge + 1))], tensor[(*before, slice(size - edge, None))])
    return np.concatenate([_edges(end, edge, axis + 1, fetch) for end in ends], axis)


def _numbers(tensor: Tensor, fetch: Callable[[Tensor], Tensor]) -> Array:
    """The elements as numbers that NumPy has, with ml_dtypes or without."""
    raw = (fetch(tensor) if tensor._place[0] else tensor)._opaque()
    found: Any
    match tensor.element:
        case Element.BF16:
            found = (raw.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
        case Element.F8E5M2:
            found = (raw.view(np.uint8).astype(np.uint16) << 8).view(np.float16)
        case Element.F8E4M3:
            found = _f8e4m3_numbers()[raw.view(np.uint8)]
        case element:
            found = raw.view(element.numpy)
    return np.asarray(found)


@cache
def _f8e4m3_numbers() -> Array:
    """The number of each code: 4 bits of exponent, 3 of mantissa, no infinity, and NaN where all of them are set."""
    codes = np.arange(256)
    exponent, mantissa = codes >> 3 & 15, codes & 7
    size = np.ldexp(mantissa + np.where(exponent, 8, 0), np.maximum(exponent, 1) - 10)
    size[(codes & 127) == 127] = np.nan
    return np.asarray(np.where(codes & 128, -size, size), np.float32)
