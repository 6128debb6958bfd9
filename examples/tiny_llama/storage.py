"""Where the model's arrays are: NumPy arrays on the cpu, bc.Tensor on a device. Kernels run where their arrays are."""

from __future__ import annotations

from typing import Any

import numpy as np

import baracuda as bc

Array = Any  # np.ndarray or bc.Tensor: both have shape, dtype, reshape and transpose


class Storage:
    """Makes arrays on one device, and moves values to and from them."""

    def __init__(self, device: str = "cpu") -> None:
        self.device = device

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Array:
        """Memory with unknown values."""
        return np.empty(shape, dtype) if self.device == "cpu" else bc.empty(shape, dtype, device=self.device)

    def zeros(self, shape: tuple[int, ...], dtype: Any) -> Array:
        """Memory of zeros."""
        return np.zeros(shape, dtype) if self.device == "cpu" else bc.zeros(shape, dtype, device=self.device)

    def scalar(self, value: float) -> Array:
        """A 0-d array for a number that changes from run to run without a new plan."""
        number = self.zeros((), np.float64 if isinstance(value, float) else np.int64)
        write(number, value)
        return number


def write(array: Array, values: Any) -> None:
    """Overwrites an array with values of the host."""
    if isinstance(array, np.ndarray):
        array[...] = values
    else:
        array.copy_from(np.array(np.broadcast_to(values, array.shape), array.dtype))


def read(array: Array) -> np.ndarray[Any, Any]:
    """An array's values on the host, once the work given to its device is done."""
    return array if isinstance(array, np.ndarray) else array.to("cpu").numpy()
