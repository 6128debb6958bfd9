"""DLPack capsules made by hand, whose deleters are counted."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
capsule_name = ctypes.pythonapi.PyCapsule_GetName
capsule_name.restype, capsule_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
NAMES = {True: b"dltensor_versioned", False: b"dltensor"}


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64), ("tensor", DLTensor),
    ]  # fmt: skip


class Legacy(ctypes.Structure):
    _fields_ = [("tensor", DLTensor), ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


_deleter_of = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_kept: list[Any] = []  # C functions that others may call as long as the process lives


class Counted:
    """A producer of one capsule of an f32 array; `deleted` counts the calls of its deleter.

    The first call poisons the memory, so that whoever reads it afterwards is found out.
    """

    def __init__(self, array: np.ndarray, versioned: bool = True) -> None:
        self.memory, self.versioned, self.deleted = np.array(array, np.float32), versioned, 0
        self.sizes = (ctypes.c_int64 * 8)(*array.shape)
        tensor = DLTensor(
            self.memory.ctypes.data, (ctypes.c_int32 * 2)(1, 0), array.ndim, 2, 32, 1, self.sizes, None, 0
        )
        deleter = _deleter_of(self._delete)
        address = ctypes.cast(deleter, ctypes.c_void_p)
        self.managed = Versioned(1, 0, None, address, 0, tensor) if versioned else Legacy(tensor, None, address)
        _kept.append((deleter, self.managed, self.sizes))

    def _delete(self, _: int) -> None:
        self.deleted += 1
        self.memory.fill(np.nan)

    def capsule(self) -> Any:
        """As a producer makes it, but without a destructor: unconsumed, it is nobody's to delete."""
        return new_capsule(ctypes.addressof(self.managed), NAMES[self.versioned], None)
