"""GGUF files as they are written: types of numbers that were read come back, and tensors lie as the metadata says."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from os import PathLike, getpid
from pathlib import Path
from typing import Any

import numpy as np

from baracuda.describe.errors import InvalidProblemError
from baracuda.memory.gguf import (
    ALIGNMENT,
    ALIGNMENT_KEY,
    BOOL,
    LIST,
    MOST_DIMS,
    NUMBERS,
    PLAIN,
    STRING,
    Array,
    GgufList,
    GgufTensor,
    GgufUnknown,
)
from baracuda.memory.tensor import asarray
from baracuda.ops.quant.quant import format_of

_I64, _U64, _F64 = 11, 10, 12
_KINDS = {np.dtype("<" + letter): kind for kind, letter in NUMBERS.items()}
_RANGES = {
    kind: (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)) for dtype, kind in _KINDS.items() if dtype.kind in "iu"
}


def save_gguf(
    path: str | PathLike[str],
    tensors: Mapping[Any, GgufTensor | GgufUnknown | Any],
    metadata: Mapping[Any, Any] | None = None,
) -> None:
    """Writes a GGUF file (version 3) that ggml, the `gguf` package and load_gguf read.

    The file is written beside its place and moved there when it is whole, so that tensors which load_gguf mapped from there may be
    among those written. What load_gguf found in a file is written as it was there: types of numbers, texts that are bytes,
    tensors of types that are not read.

    Args:
        path: Where to; what is there is replaced.
        tensors: By name: arrays of any framework in host memory, of f32, f16, bf16, f64, i8, i16, i32 or i64, or GgufTensors, as
            blocks have to be.
        metadata: By key: texts, booleans, numbers, and lists of one of these kinds or arrays. NumPy's numbers and arrays keep their
            type: ggml's tools want np.uint32(32) of most counts and np.float32(1e-5) of most numbers. Python's integers are i64, or
            u64 where they are larger, its floats f64. "general.alignment" is written as u32, and tensors begin at multiples of
            it. ggml's tools want "general.architecture".

    Raises:
        InvalidProblemError: A tensor or a value that the format has no type for.
    """
    entries = dict(metadata or {})
    alignment = _alignment(entries.get(ALIGNMENT_KEY, ALIGNMENT))
    if ALIGNMENT_KEY in entries:
        entries[ALIGNMENT_KEY] = np.uint32(alignment)
    head = bytearray(b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(entries)))
    for key, raw in _names(entries, "a key").items():
        kind, value = _typed(repr(key), entries[key])
        head += raw + struct.pack("<I", kind) + value
    offset, datas = 0, []
    for name, raw in _names(tensors, "a tensor's name").items():
        kind, shape, data = _stored(name, tensors[name])
        head += raw + struct.pack(f"<I{len(shape)}Q", len(shape), *reversed(shape)) + struct.pack("<IQ", kind, offset)
        datas.append(data)
        offset += -(-data.nbytes // alignment) * alignment
    _write(Path(path).resolve(), [bytes(head), *datas], alignment)


def _alignment(value: Any) -> int:
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        number = int(value)
        if 0 < number < 1 << 32 and not number & (number - 1):
            return number
    raise InvalidProblemError(f"save_gguf: {ALIGNMENT_KEY!r}: got {value!r}, want a power of 2 below 2**32.")


def _names(given: Mapping[Any, Any], what: str) -> dict[Any, bytes]:
    """Each key with its text in the file, of which none is there twice."""
    made = {name: _text(name, what) for name in given}
    if len(set(made.values())) < len(made):
        raise InvalidProblemError(f"save_gguf: {what}: got the same one as text and as bytes, want each once.")
    return made


def _write(path: Path, parts: list[bytes | Array], alignment: int) -> None:
    """Puts padded parts in place of what is there, which may be what they are read from."""
    if path.exists() and not path.is_file():
        raise InvalidProblemError(
            f"save_gguf: path: got {str(path)!r}, which is there and no file, want that of a file."
        )
    beside = path.with_name(f"{path.name}.{getpid()}.part")
    try:
        with beside.open("wb") as file:
            for part in parts:
                data = part if isinstance(part, bytes) else part.tobytes()
                file.write(data)
                file.write(bytes(-len(data) % alignment))
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _text(text: Any, what: str) -> bytes:
    try:
        raw: bytes = text if isinstance(text, bytes) else text.encode()
    except (AttributeError, UnicodeEncodeError):
        raise InvalidProblemError(f"save_gguf: {what}: got {text!r}, want text that UTF-8 has, or bytes.") from None
    return struct.pack("<Q", len(raw)) + raw


def _stored(name: Any, given: Any) -> tuple[int, tuple[int, ...], Array]:
    """The number of a tensor's type, the shape of its values, and what lies in the file."""
    if isinstance(given, GgufUnknown):
        return given.code, given.shape, given.raw
    values = given.data if isinstance(given, GgufTensor) else given
    data: Array = values if isinstance(values, np.ndarray) else asarray(values).numpy()
    shape, form = (given.shape, given.format) if isinstance(given, GgufTensor) else (data.shape, None)
    if len(shape) > MOST_DIMS:
        raise InvalidProblemError(f"save_gguf: {name!r}: got shape {shape}, want at most {MOST_DIMS} dimensions.")
    if form is None:
        if data.shape != tuple(shape):
            raise InvalidProblemError(
                f"save_gguf: {name!r}: got data of {data.shape} for shape {shape}, want it of that."
            )
        for kind, element in PLAIN.items():
            if np.dtype(element.numpy) == data.dtype:
                return kind, shape, np.ascontiguousarray(data)
        raise InvalidProblemError(f"save_gguf: {name!r}: got {data.dtype}, want {', '.join(map(str, PLAIN.values()))}.")
    f = format_of(f"save_gguf: {name!r}", form)
    if not shape or shape[-1] % f.block_values:
        want = f"a last size that is a multiple of {f.block_values}, the values of a block of {f.value}"
        raise InvalidProblemError(f"save_gguf: {name!r}: got shape {shape}, want {want}.")
    bytes_shape = (*shape[:-1], shape[-1] // f.block_values * f.block_bytes)
    if data.dtype != np.uint8 or data.shape != bytes_shape:
        got = f"got {data.dtype} {data.shape} for {shape} of {f.value}"
        raise InvalidProblemError(f"save_gguf: {name!r}: {got}, want uint8 {bytes_shape}.")
    return f.code, shape, np.ascontiguousarray(data)


def _kind_of(value: Any) -> int | None:
    """The type that a number has of its own: one that was read, or NumPy's. None for Python's."""
    kind = getattr(value, "kind", None)
    if isinstance(kind, int):
        return kind
    if isinstance(value, np.generic):
        dtype = value.dtype.newbyteorder("<")
        return _KINDS.get(np.dtype(np.float32) if dtype == np.float16 else dtype)
    return None


def _typed(what: str, value: Any) -> tuple[int, bytes]:
    """The type of a value and its bytes."""
    if isinstance(value, (bool, np.bool_)):
        return BOOL, bytes([bool(value)])
    if isinstance(value, (int, np.integer)):
        kind = _whole(what, [value])
        return kind, struct.pack("<" + NUMBERS[kind], int(value))
    if isinstance(value, (float, np.floating)):
        kind = _kind_of(value) or _F64
        return kind, struct.pack("<" + NUMBERS[kind], float(value))
    if isinstance(value, (str, bytes)):
        return STRING, _text(value, what)
    if isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.newbyteorder("<") in _KINDS:
        dtype = value.dtype.newbyteorder("<")
        return LIST, struct.pack("<IQ", _KINDS[dtype], len(value)) + value.astype(dtype).tobytes()
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return _typed(what, value[()])
    if isinstance(value, (list, tuple, np.ndarray)):
        return LIST, _listed(what, value)
    raise InvalidProblemError(
        f"save_gguf: {what}: got {type(value).__name__}, want text, bytes, numbers, booleans or a list."
    )


def _whole(what: str, values: Sequence[Any]) -> int:
    """The number of the type of integers: their own, where all have one; else i64, or u64."""
    own = {_kind_of(v) for v in values}
    kinds = [kind for kind in own if kind is not None] if len(own) == 1 else []
    for kind in (*kinds, _I64, _U64):
        least, most = _RANGES[kind]
        if all(least <= n <= most for n in values):
            return kind
    raise InvalidProblemError(
        f"save_gguf: {what}: got integers of {min(values)} to {max(values)}, want those that i64 or u64 holds."
    )


def _listed(what: str, values: Any) -> bytes:
    """The type, number and values of a list."""
    if not len(values):
        kind = values.kind if isinstance(values, GgufList) else STRING if _of_texts(values) else _I64
        return struct.pack("<IQ", kind, 0)
    if all(isinstance(v, (int, np.integer)) and not isinstance(v, bool) for v in values):
        kind = _whole(what, values)
        return struct.pack(f"<IQ{len(values)}{NUMBERS[kind]}", kind, len(values), *map(int, values))
    items = [_typed(what, v) for v in values]
    if len({kind for kind, _ in items}) > 1:
        raise InvalidProblemError(f"save_gguf: {what}: got values of several kinds, want those of a list to be of one.")
    return struct.pack("<IQ", items[0][0], len(items)) + b"".join(raw for _, raw in items)


def _of_texts(values: Any) -> bool:
    return isinstance(values, np.ndarray) and values.dtype.kind in "US"
