"""torch's own C++ functions behind `is_neg`, `is_conj`, `is_inference`, `requires_grad`, the version counter and `empty`.

Each of these questions costs 30 to 100 ns when it is asked through Python, most of it for letting go of the interpreter
and taking it again; a call of a kernel asks two of them per tensor. `torch.empty` through Python takes 870 ns, and 150 this
way, in memory of our pool. Plain tensors of the CPU are read where torch has them: by DLPack's C functions, the three of an
addition take 90 ns more. The functions are exported by torch's libraries, but are no part of a promised interface, and the
places are none at all: they are used only with the versions of torch that they were tested with, if it has them all, and all
answer as Python does.
BARACUDA_TORCH_NATIVE=0 turns them off; 1 has them tried with other versions, too.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from typing import Any

from baracuda import _core
from baracuda.describe.elements import Element
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
    "_ZN2at6detail13empty_genericEN3c108ArrayRefIlEEPNS1_9AllocatorENS1_14DispatchKeySetENS1_10ScalarTypeESt8optionalINS1_12MemoryFormatEE",
    "_ZN2at6detail21empty_strided_genericEN3c108ArrayRefIlEES3_PNS1_9AllocatorENS1_14DispatchKeySetENS1_10ScalarTypeE",
    "_Z16THPVariable_WrapON2at10TensorBaseE",
    "_ZN3c1015GetCPUAllocatorEv",
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


def native_functions() -> tuple[Any, ...] | None:
    """Addresses of is_neg, is_conj, is_inference, requires_grad and bump_version, `_storage_places()`, `_plain_places()`.

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
            return (*_addresses(functions), *places, _plain_places(*places)) if places else None
    except Exception:  # whatever is different in this torch: it is asked through Python then
        return None


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


def _plain_places(storage_at: int, data_at: int, bytes_at: int) -> tuple[Any, ...] | None:
    """`_find_plain_places`, or None where this torch lacks what is looked for with."""
    try:
        return _find_plain_places(storage_at, data_at, bytes_at)
    except Exception:
        return None


def _find_plain_places(storage_at: int, data_at: int, bytes_at: int) -> tuple[Any, ...] | None:
    """Where a plain tensor of the CPU has what a call asks of it, for csrc/bindings/import_torch.cpp; None if unknown.

    They are looked for where they differ from all else. Then that file's reader is held to what torch says of plain
    tensors, and has to leave alone those that are special.
    """
    import torch

    held = torch.arange(44 * 7 * 15 * 2, device="cpu").to(torch.float32)
    plain = [
        held,
        held.view(44, 7, 15, 2)[3:, 2:, ::3],
        held.to(torch.int16)[5:],
        held.to(torch.float64).view(22, -1)[3:].mT,
    ]
    fresh = [torch.zeros(n, device="cpu") for n in (3, 4099)]
    asking = [torch.zeros(3, device="cpu", requires_grad=True), torch.nn.Parameter(torch.zeros(5, device="cpu"))]
    special, watched = _special_tensors(), _watched_tensors()

    def found(holds: Callable[[int], bool], places: range) -> int:
        return next(filter(holds, places), 0)

    def words(x: torch.Tensor, at: int, n: int = 1) -> tuple[int, ...]:
        return tuple(_word(x._cdata + at + 8 * i) for i in range(n))

    def check_of(x: torch.Tensor, at: int) -> int:
        return ctypes.c_uint8.from_address(x.untyped_storage()._cdata + at).value

    places = range(storage_at + 8, 240, 8)
    at = [
        storage_at,
        data_at,
        found(
            lambda at: not any(check_of(x, at) for x in plain + fresh) and all(check_of(x, at) for x in watched),
            range(bytes_at + 8, bytes_at + 24),  # what is before has gaps, in which there may be anything
        ),
        found(
            lambda at: (
                len({words(x, at) for x in plain}) == 1 and not any(words(x, at) == words(held, at) for x in special)
            ),
            places,
        ),
        found(lambda at: all(words(x, at, 1 + x.ndim) == (x.ndim, *x.shape) for x in plain), places),
        found(lambda at: all(words(x, at) == (x.storage_offset(),) for x in plain), places),
        found(
            lambda at: all(words(x, at)[0] % 65536 == _SCALAR_TYPES[str(x.dtype)[6:]] for x in plain),
            range(storage_at + 8, 240, 2),
        ),
        found(lambda at: not any(words(x, at)[0] for x in fresh) and all(words(x, at)[0] for x in asking), places),
    ]
    if not all(at):
        return None
    looks = (*at, words(held, at[3])[0], _elements_by_number())
    return looks if _reads_as_python(looks, plain + fresh, special + watched) else None


def _elements_by_number() -> bytes:
    elements = bytearray(b"\xff" * 64)
    for name, number in _SCALAR_TYPES.items():
        elements[number] = Element.coerce(name)
    return bytes(elements)


def _special_tensors() -> list[Any]:
    """Tensors that a kernel must not take as they are, and one of no version."""
    import torch

    held = torch.zeros(4, device="cpu")
    turned = torch.zeros(2, device="cpu", dtype=torch.complex64).conj()
    with torch.inference_mode():
        inference = torch.zeros(2, device="cpu")
    return [torch._neg_view(held), turned, turned.imag, inference, held.to("meta"), held.to_sparse()]


def _watched_tensors() -> list[Any]:
    """Tensors whose storages have to be asked for their memory: shared until it is written to, or not to be written to."""
    import torch

    shared = torch.zeros(4, device="cpu")
    kept = torch.zeros(4, device="cpu")
    torch._C._set_throw_on_mutable_data_ptr(kept)
    return [torch._lazy_clone(shared), shared, kept]


def _reads_as_python(places: tuple[Any, ...], plain: list[Any], special: list[Any]) -> bool:
    import torch

    def read(x: Any) -> Any:
        return _core.plain_torch_tensor(places, x)

    deep = torch.zeros((2, 1, 3, 1, 1, 2, 1, 2), device="cpu")
    more = [
        deep,
        deep[1, :, 1:].permute(6, 5, 4, 3, 2, 1, 0),
        deep[0, 0, 0, 0],
        deep[0],
        deep[0, 0, 0, 0, 0, 0, 0, 1],
        deep[:0],
    ]
    kinds = [torch.zeros(5, device="cpu", dtype=getattr(torch, n))[1:] for n in _SCALAR_TYPES if hasattr(torch, n)]
    for x in plain + more + kinds:
        said = (x.data_ptr(), Element.coerce(x.dtype), tuple(x.shape), tuple(x.stride()))
        if read(x) != said:
            return False
    freed = torch.zeros(4, device="cpu")
    freed.untyped_storage().resize_(0)
    return all(read(x) is None for x in [*special, freed])


def _word(address: int) -> int:
    return ctypes.c_size_t.from_address(address).value


@cache
def scalar_types() -> dict[Any, int]:
    """Torch's number of each dtype that `_core.torch_empty(_strided)` makes tensors of; none where torch's own are to be called."""
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
                if _is_plain(_core.torch_empty((3, 2), code, dtype), dtype, (2, 1))
                and _is_plain(_core.torch_empty_strided((3, 2), (1, 3), code, dtype), dtype, (1, 3))
            }
    except Exception:
        return {}


def _is_plain(made: Any, dtype: Any, strides: tuple[int, int]) -> bool:
    said = (made.shape, made.stride(), made.dtype, made.device.type, made.requires_grad, made.is_leaf, made._version)
    return said == ((3, 2), strides, dtype, "cpu", False, True, 0)


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
