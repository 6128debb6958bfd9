"""GGUF files: tensors by name where they lie in the file, and what the file says about itself."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from os import PathLike, fspath, getpid
from pathlib import Path
from typing import Any

import numpy as np

from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.memory.tensor import asarray
from baracuda.ops.quant.quant import BlockFormat

Array = np.ndarray[Any, Any]

_PLAIN = {
    0: Element.F32, 1: Element.F16, 24: Element.I8, 25: Element.I16, 26: Element.I32, 27: Element.I64, 28: Element.F64, 30: Element.BF16,
}  # fmt: skip
_BLOCKS = {f.code: f for f in BlockFormat}
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 10: "Q", 11: "q", 12: "d"}
_BOOL, _STRING, _LIST = 7, 8, 9
_VERSIONS = (2, 3)
_MOST_DIMS = 4  # as ggml has it
_DEEPEST = 4  # lists in lists
_ALIGNMENT = 32  # of tensors, where a file says nothing
_TOO_LARGE = 1 << 63  # for sizes, which are counted up to here even beside a size of 0


@dataclass(frozen=True, slots=True)
class GgufTensor:
    """A tensor of a GGUF file.

    Attributes:
        data: Its memory in the file, read-only. Of plain elements the values; of blocks their bytes (u8), whose last dimension is
            the only one that differs from `shape`'s: what `F.quant_matmul`, `F.quant_embedding` and `F.dequantize` take.
        shape: Of the values, outermost dimension first (files have it the other way round).
        format: Of blocks their name, as these functions take it; None for plain elements.
    """

    data: Array
    shape: tuple[int, ...]
    format: str | None


@dataclass(frozen=True, slots=True)
class GgufFile:
    """What load_gguf found.

    Attributes:
        tensors: By name, in the file's order.
        metadata: Numbers, texts, booleans, arrays of numbers (NumPy), and lists of the others, by key.
    """

    tensors: dict[str, GgufTensor]
    metadata: dict[str, Any]


def load_gguf(path: str | PathLike[str]) -> GgufFile:
    """The tensors of a GGUF file by name, mapped into memory and not copied, and its metadata.

    Pages are read when a kernel first touches them. The file must not be truncated or overwritten while its tensors are in use.
    Nothing in the file is trusted: each count, length, type and offset is held against what the file has.

    Args:
        path: A file of version 2 or 3, little endian.

    Returns:
        Tensors and metadata.

    Raises:
        InvalidProblemError: The file is damaged, or holds what is not read here; the message says at which byte.
        OSError: It cannot be opened.
    """
    name = fspath(path)
    size = Path(name).stat().st_size
    data: Array = np.memmap(name, np.uint8, "r") if size else np.empty(0, np.uint8)
    return _File(name, data).read()


class _File:
    """Reads a file from its beginning, a piece at a time."""

    def __init__(self, name: str, data: Array) -> None:
        self.name, self.data, self.at = name, data.view(np.ndarray), 0

    def wrong(self, at: int, what: str) -> InvalidProblemError:
        return InvalidProblemError(f"load_gguf: {self.name!r}, byte {at}: {what}.")

    def take(self, count: int, what: str) -> Array:
        """The next bytes."""
        left = len(self.data) - self.at
        if count > left:
            raise self.wrong(self.at, f"{what} has {count} bytes, the file only {left} more; it is damaged or cut off")
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, kind: str, what: str) -> Any:
        return struct.unpack("<" + kind, bytes(self.take(struct.calcsize("<" + kind), what)))[0]

    def text(self, what: str) -> str:
        at = self.at
        raw = bytes(self.take(self.number("Q", f"the length of {what}"), what))
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise self.wrong(at, f"{what} is not UTF-8: {raw[:40]!r}") from None

    def counted(self, least: int, what: str) -> int:
        """How many things of at least so many bytes follow."""
        at, count = self.at, int(self.number("Q", f"the number of {what}"))
        if count * least > len(self.data) - at:
            raise self.wrong(at, f"{count} {what} do not fit the {len(self.data) - at} bytes that are left")
        return count

    def read(self) -> GgufFile:
        magic = bytes(self.take(4, "the magic number"))
        if magic != b"GGUF":
            raise self.wrong(0, f"got {magic!r}, want b'GGUF'; this is no GGUF file")
        version = self.number("I", "the version")
        if version not in _VERSIONS:
            why = "the file is big endian" if version >= 1 << 16 else "write it again as version 3"
            raise self.wrong(4, f"got version {version}, want 2 or 3; {why}")
        tensors = self.counted(24, "tensors")
        metadata: dict[str, Any] = {}
        for _ in range(self.counted(13, "entries of metadata")):
            at, key = self.at, self.text("a key")
            if key in metadata:
                raise self.wrong(at, f"the key {key!r} is there twice")
            metadata[key] = self.value(self.number("I", f"the type of {key!r}"), key, 0)
        found = self.places(tensors)
        alignment = metadata.get("general.alignment", _ALIGNMENT)
        if not isinstance(alignment, int) or alignment < 1 or alignment & (alignment - 1):
            raise self.wrong(self.at, f"general.alignment is {alignment!r}, want a power of 2")
        return GgufFile(self.mapped(found, alignment), metadata)

    def value(self, kind: int, key: str, depth: int) -> Any:
        """An entry of metadata."""
        at = self.at
        if kind in _NUMBERS:
            return self.number(_NUMBERS[kind], repr(key))
        if kind == _BOOL:
            if (flag := self.number("B", repr(key))) > 1:
                raise self.wrong(at, f"{key!r} is a boolean of value {flag}")
            return bool(flag)
        if kind == _STRING:
            return self.text(repr(key))
        if kind != _LIST or depth == _DEEPEST:
            what = f"lists nested {depth} deep" if kind == _LIST else f"type {kind}, which there is not"
            raise self.wrong(at, f"{key!r} is of {what}")
        inner = self.number("I", f"the type of {key!r}")
        if inner in _NUMBERS:
            dtype = np.dtype("<" + _NUMBERS[inner])
            return self.take(self.counted(dtype.itemsize, repr(key)) * dtype.itemsize, repr(key)).view(dtype).copy()
        least = {_BOOL: 1, _STRING: 8, _LIST: 12}.get(inner, 1)
        return [self.value(inner, key, depth + 1) for _ in range(self.counted(least, repr(key)))]

    def places(self, count: int) -> dict[str, tuple[int, tuple[int, ...], int, int]]:
        """Of each tensor: where its entry is, its shape, type, and offset."""
        found: dict[str, tuple[int, tuple[int, ...], int, int]] = {}
        for _ in range(count):
            at, name = self.at, self.text("a tensor's name")
            if name in found:
                raise self.wrong(at, f"the tensor {name!r} is there twice")
            dims = self.number("I", f"the rank of {name!r}")
            if dims > _MOST_DIMS:
                raise self.wrong(at, f"{name!r} has {dims} dimensions, want at most {_MOST_DIMS}")
            sizes = tuple(self.number("Q", f"a size of {name!r}") for _ in range(dims))
            kind = self.number("I", f"the type of {name!r}")
            found[name] = (at, sizes[::-1], kind, self.number("Q", f"the offset of {name!r}"))
        return found

    def mapped(
        self, found: Mapping[str, tuple[int, tuple[int, ...], int, int]], alignment: int
    ) -> dict[str, GgufTensor]:
        """The tensors in the file's memory, none of which lies outside it or in another."""
        start = -(-self.at // alignment) * alignment
        taken: list[tuple[int, int, str]] = []
        tensors: dict[str, GgufTensor] = {}
        for name, (at, shape, kind, offset) in found.items():
            stored, dtype, form = self.stored(at, name, shape, kind)
            if any(n >= _TOO_LARGE for n in shape) or prod(n for n in stored if n) * dtype.itemsize >= _TOO_LARGE:
                raise self.wrong(at, f"{name!r} has shape {shape}, want sizes whose product is below 2**63")
            size = prod(stored) * dtype.itemsize
            if offset % alignment:
                raise self.wrong(at, f"{name!r} begins at offset {offset}, want a multiple of {alignment}")
            if start + offset + size > len(self.data):
                room = max(0, len(self.data) - start)
                raise self.wrong(at, f"{name!r} has {size} bytes at offset {offset}, the file's data only {room}")
            if size:
                taken.append((offset, offset + size, name))
            data = self.data[start + offset : start + offset + size].view(dtype).reshape(stored)
            tensors[name] = GgufTensor(data, shape, form)
        taken.sort()
        for (_, end, name), (begin, _, other) in pairwise(taken):
            if begin < end:
                raise self.wrong(found[other][0], f"{other!r} begins at offset {begin}, before {name!r} ends at {end}")
        return tensors

    def stored(
        self, at: int, name: str, shape: tuple[int, ...], kind: int
    ) -> tuple[tuple[int, ...], np.dtype[Any], str | None]:
        """Shape and element of what lies in the file, and the format of blocks."""
        if kind in _PLAIN:
            return shape, np.dtype(_PLAIN[kind].numpy), None
        if kind not in _BLOCKS:
            names = ", ".join([*(str(e) for e in _PLAIN.values()), *(f.value for f in BlockFormat)])
            raise self.wrong(at, f"{name!r} is of ggml's type {kind}; those that are read are {names}")
        f = _BLOCKS[kind]
        if not shape or shape[-1] % f.block_values:
            want = f"a last size that is a multiple of {f.block_values}, the values of a block of {f.value}"
            raise self.wrong(at, f"{name!r} has shape {shape}, want {want}")
        return (*shape[:-1], shape[-1] // f.block_values * f.block_bytes), np.dtype(np.uint8), f.value


def save_gguf(
    path: str | PathLike[str], tensors: Mapping[str, GgufTensor | Any], metadata: Mapping[str, Any] | None = None
) -> None:
    """Writes a GGUF file (version 3) that ggml, the `gguf` package and load_gguf read.

    The file is written beside its place and moved there when it is whole, so that tensors which load_gguf mapped from there may be
    among those written.

    Args:
        path: Where to; what is there is replaced.
        tensors: By name: arrays of any framework in host memory, of f32, f16, bf16, f64, i8, i16, i32 or i64, or GgufTensors, as
            blocks have to be.
        metadata: By key: texts, booleans, integers (as i64, or u64 where they are larger), floats (as f64), and lists of one of
            these kinds. ggml's tools want "general.architecture".

    Raises:
        InvalidProblemError: A tensor or a value that the format has no type for.
    """
    head = bytearray()
    entries = dict(metadata or {})
    head += b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(entries))
    for key, value in entries.items():
        head += _text(key, "a key") + _value(key, value)
    offset, datas = 0, []
    for name, given in tensors.items():
        t = given if isinstance(given, GgufTensor) else _plain(name, given)
        head += _text(name, "a tensor's name") + struct.pack("<I", len(t.shape))
        head += b"".join(struct.pack("<Q", size) for size in reversed(t.shape))
        head += struct.pack("<IQ", _kind(name, t), offset)
        data = np.ascontiguousarray(t.data)
        datas.append(data)
        offset += -(-data.nbytes // _ALIGNMENT) * _ALIGNMENT
    _write(Path(path).resolve(), [bytes(head), *datas])


def _write(path: Path, parts: list[bytes | Array]) -> None:
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
                file.write(bytes(-len(data) % _ALIGNMENT))
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _plain(name: str, given: Any) -> GgufTensor:
    """An array of any framework, as NumPy's."""
    array = given if isinstance(given, np.ndarray) else asarray(given).numpy()
    return GgufTensor(array, array.shape, None)


def _text(text: Any, what: str) -> bytes:
    try:
        raw: bytes = text.encode()
    except (AttributeError, UnicodeEncodeError):
        raise InvalidProblemError(f"save_gguf: {what}: got {text!r}, want text that UTF-8 has.") from None
    return struct.pack("<Q", len(raw)) + raw


def _kind(name: str, t: GgufTensor) -> int:
    """The number that ggml has for a tensor's type."""
    if len(t.shape) > _MOST_DIMS:
        raise InvalidProblemError(f"save_gguf: {name!r}: got shape {t.shape}, want at most {_MOST_DIMS} dimensions.")
    if t.format is None:
        for kind, element in _PLAIN.items():
            if np.dtype(element.numpy) == t.data.dtype:
                return kind
        raise InvalidProblemError(
            f"save_gguf: {name!r}: got {t.data.dtype}, want {', '.join(map(str, _PLAIN.values()))}."
        )
    f = BlockFormat(t.format)
    want = (*t.shape[:-1], t.shape[-1] // f.block_values * f.block_bytes)
    if t.data.dtype != np.uint8 or t.data.shape != want or t.shape[-1] % f.block_values:
        got = f"got {t.data.dtype} {t.data.shape} for {t.shape} of {f.value}"
        raise InvalidProblemError(f"save_gguf: {name!r}: {got}, want uint8 {want}.")
    return f.code


def _value(key: str, value: Any) -> bytes:
    """An entry's type and value."""
    kind, raw = _typed(key, value)
    return struct.pack("<I", kind) + raw


def _typed(key: str, value: Any) -> tuple[int, bytes]:
    if isinstance(value, (bool, np.bool_)):
        return _BOOL, bytes([bool(value)])
    if isinstance(value, (int, np.integer)):
        kind = _whole(key, [value])
        return kind, struct.pack("<" + _NUMBERS[kind], value)
    if isinstance(value, (float, np.floating)):
        return 12, struct.pack("<d", value)
    if isinstance(value, str):
        return _STRING, _text(value, repr(key))
    if isinstance(value, (list, tuple, np.ndarray)):
        return _LIST, _listed(key, value.tolist() if isinstance(value, np.ndarray) else value)
    raise InvalidProblemError(
        f"save_gguf: {key!r}: got {type(value).__name__}, want text, numbers, booleans or a list."
    )


def _whole(key: str, values: Sequence[Any]) -> int:
    """The number of the type of integers: i64, or u64."""
    for kind, least, most in ((11, -(1 << 63), (1 << 63) - 1), (10, 0, (1 << 64) - 1)):
        if all(least <= n <= most for n in values):
            return kind
    raise InvalidProblemError(
        f"save_gguf: {key!r}: got integers of {min(values)} to {max(values)}, want those that i64 or u64 holds."
    )


def _listed(key: str, values: Sequence[Any]) -> bytes:
    """The type, number and values of a list."""
    if all(isinstance(v, (int, np.integer)) and not isinstance(v, bool) for v in values):
        kind = _whole(key, values)
        return struct.pack(f"<IQ{len(values)}{_NUMBERS[kind]}", kind, len(values), *values)
    items = [_typed(key, v) for v in values]
    if len({kind for kind, _ in items}) > 1:
        raise InvalidProblemError(
            f"save_gguf: {key!r}: got values of several kinds, want those of a list to be of one."
        )
    return struct.pack("<IQ", items[0][0], len(items)) + b"".join(raw for _, raw in items)
