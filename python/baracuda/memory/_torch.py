"""torch's own C++ functions behind `is_neg`, `is_conj`, `is_inference`, `requires_grad`, the version counter and `empty`.

Each of these questions costs 30 to 100 ns when it is asked through Python, most of it for letting go of the interpreter
and taking it again; a call of a kernel asks two of them per tensor. `torch.empty` through Python takes 1,100 ns, and 250
this way. The functions are exported by torch's libraries, but are no part of a promised interface: they are used only with
the versions of torch that they were tested with, if it has them all, and all answer as Python does.
BARACUDA_TORCH_NATIVE=0 turns them off; 1 has them tried with other versions, too.
"""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from typing import Any

from baracuda import _core
from baracuda.describe.errors import InvalidProblemError, shown

TESTED = ("2.13",)  # versions of torch, major and minor

_QUESTIONS = (
    "_ZN2at6native6is_negERKNS_6TensorE",
    "_ZN2at6native7is_conjERKNS_6TensorE",
    "_ZN2at6native12is_inferenceERKNS_6TensorE",
    "_ZNK3c1010TensorImpl13requires_gradEv",
)
_BUMP = "_ZN5torch8autograd4impl12bump_versionERKN2at6TensorE"
_EMPTY = (
    "_ZN2at6detail9empty_cpuEN3c108ArrayRefIlEENS1_10ScalarTypeEbSt8optionalINS1_12MemoryFormatEE",
    "_Z16THPVariable_WrapON2at10TensorBaseE",
)
# c10::ScalarType of what elements are as dtypes.
_SCALAR_TYPES = {
    "uint8": 0,
    "int8": 1,
    "int16": 2,
    "int32": 3,
    "int64": 4,
    "float16": 5,
    "float32": 6,
    "float64": 7,
    "complex64": 9,
    "complex128": 10,
    "bool": 11,
    "bfloat16": 15,
    "float8_e5m2": 23,
    "float8_e4m3fn": 24,
    "uint16": 27,
    "uint32": 28,
    "uint64": 29,
}


def wanted() -> bool:
    """Whether torch's own functions are to be tried at all."""
    import torch

    switch = os.environ.get("BARACUDA_TORCH_NATIVE", "")
    if switch not in ("", "0", "1"):
        raise InvalidProblemError(f"BARACUDA_TORCH_NATIVE: got {shown(switch)}, want 0, 1 or nothing.")
    known = ".".join(torch.__version__.split("+")[0].split(".")[:2]) in TESTED
    return switch == "1" or (switch == "" and known)


def native_functions() -> tuple[int, ...] | None:
    """Addresses of is_neg, is_conj, is_inference, requires_grad and bump_version, and `_storage_places()`.

    The first three and the last take an `at::Tensor*`, which is a pointer to a pointer to the tensor's `TensorImpl`;
    `requires_grad` takes the `TensorImpl*`. None where Python is to be asked for all of it.
    """
    import torch

    if not wanted():
        return None
    try:
        functions = _functions(*_QUESTIONS, _BUMP)
        # Modes of the caller (fake tensors, inference, no_grad, a default device) must not reach the probes.
        with _without_modes(), torch.inference_mode(False), torch.enable_grad():
            if not _answer_as_python(functions):
                return None
            places = _storage_places()
    except Exception:  # whatever is different in this torch: it is asked through Python then
        return None
    return (*_addresses(functions), *places) if places else None


def _without_modes() -> AbstractContextManager[Any]:
    """No fake tensors, and nobody who traces."""
    import torch.utils._python_dispatch as dispatch

    return dispatch._disable_current_modes()


def _storage_places() -> tuple[int, int, int] | None:
    """Byte offsets of the `StorageImpl*` in a `TensorImpl`, and in that of its memory's address and size; None if unknown.

    A vtable and a count of references come before the first members of both. They are looked for where they differ from
    all else: in storages of odd sizes, which are views, resized and given to a tensor later, too.
    """
    import torch

    probes = [torch.zeros(n, dtype=torch.uint8, device="cpu") for n in (4099, 7, 70001)]
    probes.append(probes[0][3:])
    probes.append(torch.zeros(12347, dtype=torch.uint8, device="cpu").resize_(29))
    probes.append(torch.zeros(3, dtype=torch.uint8, device="cpu").resize_(12343))
    probes.append(torch.nn.Parameter(torch.zeros(17, 5, device="cpu")))
    probes[1].data = torch.zeros(4127, dtype=torch.uint8, device="cpu")
    storages = [x.untyped_storage() for x in probes]
    head, words = 16, range(16, 80, 8)

    def found(values: list[int], bases: list[int], places: Any) -> int:
        return next((at for at in places if all(_word(b + at) == v for b, v in zip(bases, values, strict=True))), 0)

    impls = [s._cdata for s in storages]
    storage_at = found(impls, [x._cdata for x in probes], [head])
    data_at = found([s.data_ptr() for s in storages], impls, [head])
    bytes_at = found([s.nbytes() for s in storages], impls, words)
    return (storage_at, data_at, bytes_at) if storage_at and data_at and bytes_at else None


def _word(address: int) -> int:
    return ctypes.c_size_t.from_address(address).value


@cache
def scalar_types() -> dict[Any, int]:
    """Torch's number of each dtype that `_core.torch_empty` makes tensors of; none where torch.empty is to be called."""
    import torch

    if not wanted():
        return {}
    try:
        _core.set_torch_empty(*_addresses(_functions(*_EMPTY)))
        with _without_modes(), torch.inference_mode(False):
            numbers = {getattr(torch, name): code for name, code in _SCALAR_TYPES.items() if hasattr(torch, name)}
            return {
                dtype: code
                for dtype, code in numbers.items()
                if _is_plain(_core.torch_empty((3, 2), code, dtype), dtype)
            }
    except Exception:
        return {}


def _is_plain(made: Any, dtype: Any) -> bool:
    said = (made.shape, made.stride(), made.dtype, made.device.type, made.requires_grad, made.is_leaf, made._version)
    return said == ((3, 2), (2, 1), dtype, "cpu", False, True, 0)


def _functions(*symbols: str) -> list[Any]:
    import torch

    name = "libtorch_python.dylib" if sys.platform == "darwin" else "libtorch_python.so"
    library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / name))
    return [getattr(library, symbol) for symbol in symbols]


def _addresses(functions: list[Any]) -> tuple[int, ...]:
    addresses = (ctypes.cast(f, ctypes.c_void_p).value for f in functions)
    return tuple(a for a in addresses if a is not None)


def _probes() -> list[Any]:
    import torch

    plain = torch.zeros(2, device="cpu")
    with torch.inference_mode():
        inference = torch.zeros(2, device="cpu")
    return [
        plain,
        torch.nn.Parameter(torch.zeros(2, device="cpu")),
        torch.zeros(2, device="cpu", requires_grad=True),
        torch.zeros(2, device="cpu", dtype=torch.complex64),
        torch.zeros(2, device="cpu", dtype=torch.complex64).conj(),
        torch.zeros(2, device="cpu", dtype=torch.complex64).conj().imag,
        torch._neg_view(plain),
        inference,
    ]


def _answer_as_python(functions: list[Any]) -> bool:
    *questions, bump = functions
    for question in questions:
        question.restype = ctypes.c_bool
    bump.restype = None
    head = object.__basicsize__
    for x in _probes():
        impl = ctypes.c_void_p(x._cdata)
        if ctypes.c_void_p.from_address(id(x) + head).value != impl.value:
            return False
        *of_tensor, of_impl = questions
        answers = [question(ctypes.byref(impl)) for question in of_tensor] + [of_impl(impl)]
        if answers != [x.is_neg(), x.is_conj(), x.is_inference(), x.requires_grad]:
            return False
        if not x.is_inference():
            before = x._version
            bump(ctypes.byref(impl))
            if x._version != before + 1:
                return False
    return True
