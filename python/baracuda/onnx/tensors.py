"""Tensors of files as arrays: by reference where their bytes lie as an array's do, in the file of external data, too."""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from baracuda import InvalidProblemError
from baracuda.onnx.call import Array

PACKED = tuple(
    getattr(onnx.TensorProto, name)
    for name in ("INT4", "UINT4", "FLOAT4E2M1", "INT2", "UINT2", "FLOAT6E2M3", "FLOAT6E3M2")
    if hasattr(onnx.TensorProto, name)
)


def array_of(tensor: onnx.TensorProto, folder: str = "") -> Array:
    """The values of a tensor.

    Args:
        tensor: Of a file.
        folder: Where files of external data lie; empty where there is none.

    Raises:
        InvalidProblemError: Its bytes are not as many as its shape says, its element is unknown, or external data lies
            elsewhere than beside the file.
    """
    what = f"tensor {tensor.name!r}"
    shape = tuple(tensor.dims)
    if any(n < 0 for n in shape):
        raise InvalidProblemError(f"{what}: got shape {shape}, want sizes of 0 or more: the file is damaged.")
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        return _external(tensor, what, shape, folder)
    try:
        return onnx.numpy_helper.to_array(tensor)
    except (ValueError, TypeError, KeyError, MemoryError, UnicodeDecodeError) as error:
        raise InvalidProblemError(
            f"{what}: got shape {shape} of element type {tensor.data_type} with data of another size or kind ({error}): the "
            "file is damaged, or newer than the package onnx."
        ) from None


def _external(tensor: onnx.TensorProto, what: str, shape: tuple[int, ...], folder: str) -> Array:
    """The bytes of another file, mapped."""
    about = {e.key: e.value for e in tensor.external_data}
    path = beside(about.get("location", ""), folder, what)
    try:
        dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type))
        offset, length = int(about.get("offset", 0)), int(about.get("length", -1))
    except (KeyError, ValueError) as error:
        raise InvalidProblemError(f"{what}: got external data that is not described right ({error}).") from None
    packed = tensor.data_type in PACKED
    size = len(_bytes_of(path, what)) if packed else path.stat().st_size
    needed = prod(shape) * dtype.itemsize
    length = length if length >= 0 else size - offset
    if offset < 0 or offset + length > size or (not packed and length != needed):
        raise InvalidProblemError(
            f"{what}: got {length} bytes at {offset} of {path.name}, which has {size}, want {needed} for shape {shape} of "
            f"{dtype}: the file was cut, or is another model's."
        )
    if packed:
        whole = onnx.TensorProto(dims=shape, data_type=tensor.data_type, name=tensor.name)
        whole.raw_data = _bytes_of(path, what)[offset : offset + length]
        return array_of(whole)
    if not needed:
        return np.empty(shape, dtype)
    mapped = np.memmap(path, np.uint8, "r", offset, (length,))
    found: Any = (
        np.asarray(mapped).view(dtype) if offset % dtype.itemsize == 0 else np.frombuffer(mapped.tobytes(), dtype)
    )
    return np.asarray(found.reshape(shape))


def _bytes_of(path: Path, what: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidProblemError(f"{what}: {error}.") from None


def beside(location: str, folder: str, what: str) -> Path:
    """The file of external data: in the model's folder, or below it.

    Raises:
        InvalidProblemError: It is not there, or is named by a path that leads elsewhere.
    """
    if not folder:
        raise InvalidProblemError(
            f"{what}: got external data in {location!r} of a model that has no folder, want load(path) of its file."
        )
    root = Path(folder).resolve()
    path = (root / location).resolve()
    if not location or Path(location).is_absolute() or not path.is_relative_to(root):
        raise InvalidProblemError(
            f"{what}: got external data in {location!r}, want a file in the model's folder: others are not opened."
        )
    if not path.is_file():
        raise InvalidProblemError(f"{what}: got external data in {location!r}, which is not in {root}: copy it there.")
    return path
