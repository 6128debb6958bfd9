"""A host that is not Python's binding: the C interface of libbaracuda by ctypes, with DLPack tensors made by hand."""

from __future__ import annotations

import ctypes as c
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

import baracuda as bc
from baracuda.describe.elements import Element

STATUS = {
    "ok": 0, "misaligned": 1, "invalid_problem": 2, "unsupported": 3, "workspace": 4, "launch": 5, "index_out_of_range": 6,
    "integer_division": 7, "value_out_of_range": 8, "no_memory": 9,
}  # fmt: skip
FLOAT, INT, UNSIGNED, TENSOR, DEFAULT = range(5)
BODY = c.CFUNCTYPE(None, c.c_void_p, c.c_int64)
PARALLEL_FOR = c.CFUNCTYPE(None, c.c_void_p, c.c_int64, BODY, c.c_void_p)


class DLTensor(c.Structure):
    _fields_ = [
        ("data", c.c_void_p), ("device_type", c.c_int32), ("device_id", c.c_int32), ("ndim", c.c_int32), ("code", c.c_uint8),
        ("bits", c.c_uint8), ("lanes", c.c_uint16), ("shape", c.POINTER(c.c_int64)), ("strides", c.POINTER(c.c_int64)),
        ("byte_offset", c.c_uint64),
    ]  # fmt: skip


class Value(c.Union):
    _fields_ = [("f", c.c_double), ("i", c.c_int64), ("u", c.c_uint64), ("tensor", c.POINTER(DLTensor))]


class Scalar(c.Structure):
    _fields_ = [("kind", c.c_int32), ("value", Value)]


class RunOptions(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t), ("workspace", c.c_void_p), ("workspace_bytes", c.c_size_t), ("stream", c.c_void_p),
        ("read_only", c.c_void_p), ("threads", c.c_int32), ("parallel_for", PARALLEL_FOR), ("parallel_context", c.c_void_p),
    ]  # fmt: skip


ALLOCATE = c.CFUNCTYPE(
    c.c_void_p, c.c_void_p, c.c_size_t, c.POINTER(c.c_int64), c.c_int32, c.c_uint32, c.c_size_t
)  # DLDataType travels as four bytes


class ProgramOptions(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t), ("stream", c.c_void_p), ("read_only", c.c_void_p), ("threads", c.c_int32),
        ("parallel_for", PARALLEL_FOR), ("parallel_context", c.c_void_p), ("allocate", ALLOCATE), ("allocate_context", c.c_void_p),
    ]  # fmt: skip


class LoadOptions(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("sku", c.c_int32)]


lib = c.CDLL(bc.get_library())
for _name in ("message", "code", "reasons"):
    getattr(lib, f"bcu_error_{_name}").restype = c.c_char_p
lib.bcu_last_error.restype = lib.bcu_version.restype = c.c_char_p
lib.bcu_error_create.restype = c.c_void_p


class HostError(Exception):
    """A call that did not return BCU_OK."""

    def __init__(self, status: int, message: str, code: str, reasons: list[dict[str, str]]) -> None:
        super().__init__(message)
        self.status, self.code, self.reasons = status, code, reasons


class Error:
    """The caller's error object."""

    def __init__(self) -> None:
        self.handle = c.c_void_p(lib.bcu_error_create())

    def check(self, status: int) -> None:
        if status:
            texts = [getattr(lib, f"bcu_error_{n}")(self.handle).decode() for n in ("message", "code", "reasons")]
            raise HostError(status, texts[0], texts[1], json.loads(texts[2]))

    def __del__(self) -> None:
        lib.bcu_error_release(self.handle)


_CODES = {"bool": (6, 8), "bf16": (4, 16), "f8e4m3": (10, 8), "f8e5m2": (12, 8)}


def dl_type(element: Element) -> tuple[int, int]:
    """DLPack's type code and bits."""
    name = str(element)
    if name in _CODES:
        return _CODES[name]
    return {"u": 1, "i": 0, "f": 2, "c": 5}[name[0]], int(name[1:])


def tensor(array: Any, element: Element | None = None, *, strides: bool = True) -> DLTensor:
    """A NumPy array as its owner would describe it; without strides, a contiguous one."""
    code, bits = dl_type(element or Element.coerce(array.dtype))
    shape = (c.c_int64 * array.ndim)(*array.shape)
    steps = (c.c_int64 * array.ndim)(*(s // array.itemsize for s in array.strides)) if strides else None
    made = DLTensor(array.ctypes.data, 1, 0, array.ndim, code, bits, 1, shape, steps, 0)
    made.keep = (array, shape, steps)
    return made


def scalar(value: Any) -> Scalar:
    """A Python number or a 0-d array; None takes the default."""
    if value is None:
        return Scalar(DEFAULT)
    if isinstance(value, np.ndarray):
        held = tensor(value)
        made = Scalar(TENSOR, Value(tensor=c.pointer(held)))
        made.keep = held
        return made
    if isinstance(value, float):
        return Scalar(FLOAT, Value(f=value))
    return Scalar(INT, Value(i=value)) if value < 2**63 else Scalar(UNSIGNED, Value(u=value))


def options(workspace: Any = None, **fields: Any) -> RunOptions:
    made = RunOptions(c.sizeof(RunOptions))
    if workspace is not None:
        memory = np.asarray(workspace)
        made.workspace, made.workspace_bytes = memory.ctypes.data, memory.nbytes
    for name, value in fields.items():
        setattr(made, name, value)
    made.keep = (workspace, fields)
    return made


def check_device(name: str, stream: int | None = None) -> None:
    """Waits for a device, or for one of its streams, and raises what its kernels found."""
    error = Error()
    error.check(lib.bcu_device_check(name.encode(), c.c_void_p(stream), error.handle))


class HostStream:
    """A stream that the host made."""

    def __init__(self, device: str, *, non_blocking: bool = False) -> None:
        self.device, made = device.encode(), c.c_void_p()
        self._call("create", int(non_blocking), c.byref(made))
        self.handle = made.value

    def _call(self, name: str, *args: Any) -> None:
        error = Error()
        error.check(getattr(lib, f"bcu_stream_{name}")(self.device, *args, error.handle))

    def wait(self, other: HostStream | None) -> None:
        self._call("wait", c.c_void_p(self.handle), c.c_void_p(other.handle if other else None))

    def done(self) -> bool:
        found = c.c_int32(-1)
        self._call("done", c.c_void_p(self.handle), c.byref(found))
        return bool(found.value)

    def queue(self) -> int | None:
        found = c.c_void_p()
        self._call("queue", c.c_void_p(self.handle), c.byref(found))
        return found.value

    def release(self) -> None:
        self._call("release", c.c_void_p(self.handle))


class HostPlan:
    """A plan that was loaded from bytes."""

    def __init__(self, data: bytes, sku: int = 0) -> None:
        self.handle, self.error = c.c_void_p(), Error()
        load = LoadOptions(c.sizeof(LoadOptions), sku)
        self.error.check(
            lib.bcu_plan_load(data, c.c_size_t(len(data)), c.byref(load), c.byref(self.handle), self.error.handle)
        )

    def info(self) -> dict[str, Any]:
        text = c.c_char_p()
        self.error.check(lib.bcu_plan_info(self.handle, c.byref(text), self.error.handle))
        found: dict[str, Any] = json.loads(text.value or b"")
        lib.bcu_free(text)
        return found

    def workspace(self, tensors: Sequence[DLTensor] = ()) -> int:
        found = c.c_size_t()
        pointers = (c.POINTER(DLTensor) * len(tensors))(*map(c.pointer, tensors))
        self.error.check(
            lib.bcu_plan_workspace(self.handle, pointers, c.c_size_t(len(tensors)), c.byref(found), self.error.handle)
        )
        return found.value

    def run(
        self,
        tensors: Sequence[DLTensor],
        scalars: Sequence[Scalar] = (),
        given: RunOptions | None = None,
        *,
        check: bool = False,
    ) -> None:
        pointers = (c.POINTER(DLTensor) * len(tensors))(*map(c.pointer, tensors))
        numbers = (Scalar * len(scalars))(*scalars)
        fn, error = (lib.bcu_plan_check if check else lib.bcu_plan_run), Error()
        error.check(
            fn(
                self.handle, pointers, c.c_size_t(len(tensors)), numbers, c.c_size_t(len(scalars)),
                None if given is None else c.byref(given), error.handle,
            )
        )  # fmt: skip

    def __del__(self) -> None:
        lib.bcu_plan_release(self.handle)


class HostProgram:
    """A program that was loaded from bytes."""

    def __init__(self, data: bytes, constants: Sequence[DLTensor] = (), sku: int = 0) -> None:
        self.handle, self.error, self.keep = c.c_void_p(), Error(), constants
        load = LoadOptions(c.sizeof(LoadOptions), sku)
        held = (c.POINTER(DLTensor) * len(constants))(*map(c.pointer, constants))
        self.error.check(
            lib.bcu_program_load(
                data, c.c_size_t(len(data)), held, c.c_size_t(len(constants)), c.byref(load), c.byref(self.handle), self.error.handle
            )
        )  # fmt: skip

    def info(self) -> dict[str, Any]:
        text = c.c_char_p()
        self.error.check(lib.bcu_program_info(self.handle, c.byref(text), self.error.handle))
        found: dict[str, Any] = json.loads(text.value or b"")
        lib.bcu_free(text)
        return found

    def shape(self, tensors: Sequence[DLTensor | None], argument: int) -> tuple[int, ...]:
        sizes, rank = (c.c_int64 * 8)(), c.c_int32()
        self.error.check(
            lib.bcu_program_shape(
                self.handle, _pointers(tensors), c.c_size_t(len(tensors)), c.c_size_t(argument), sizes, c.byref(rank), self.error.handle
            )
        )  # fmt: skip
        return tuple(sizes[: rank.value])

    def blocks(self, tensors: Sequence[DLTensor | None]) -> int:
        found, error = c.c_uint64(), Error()
        error.check(
            lib.bcu_program_blocks(
                self.handle, _pointers(tensors), c.c_size_t(len(tensors)), c.byref(found), error.handle
            )
        )
        return found.value

    def run(
        self, tensors: Sequence[DLTensor | None], scalars: Sequence[Scalar] = (), given: ProgramOptions | None = None
    ) -> None:
        numbers, error = (Scalar * len(scalars))(*scalars), Error()
        error.check(
            lib.bcu_program_run(
                self.handle, _pointers(tensors), c.c_size_t(len(tensors)), numbers, c.c_size_t(len(scalars)),
                None if given is None else c.byref(given), error.handle,
            )
        )  # fmt: skip

    def __del__(self) -> None:
        lib.bcu_program_release(self.handle)


def _pointers(tensors: Sequence[DLTensor | None]) -> Any:
    return (c.POINTER(DLTensor) * len(tensors))(*(None if t is None else c.pointer(t) for t in tensors))
