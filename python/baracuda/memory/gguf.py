"""GGUF files: tensors by name where they lie in the file, and what the file says about itself."""

from __future__ import annotations

import struct
import warnings
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.ops.quant.quant import BlockFormat

Array = np.ndarray[Any, Any]

PLAIN = {
    0: Element.F32, 1: Element.F16, 24: Element.I8, 25: Element.I16, 26: Element.I32, 27: Element.I64, 28: Element.F64, 30: Element.BF16,
}  # fmt: skip
_BLOCKS = {f.code: f for f in BlockFormat}
# Further types that ggml has or had.
_OTHERS = {
    4: "q4_2", 5: "q4_3", 9: "q8_1", 31: "q4_0_4_4", 32: "q4_0_4_8", 33: "q4_0_8_8", 36: "iq4_nl_4_4", 37: "iq4_nl_4_8",
    38: "iq4_nl_8_8", 40: "nvfp4", 41: "q1_0",
}  # fmt: skip
NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 10: "Q", 11: "q", 12: "d"}
U32, BOOL, STRING, LIST = 4, 7, 8, 9
MOST_DIMS = 4  # as ggml has it
ALIGNMENT_KEY, ALIGNMENT = "general.alignment", 32  # of tensors, where a file says nothing
_VERSIONS = (2, 3)
_DEEPEST = 4  # lists in lists
_WIDEST = 16  # bytes of the widest element
_TOO_LARGE = 1 << 63  # for sizes, which are counted up to here even beside a size of 0


class GgufInt(int):
    """An integer of a file's metadata that is written again as the type that it had there, `kind` of ggml."""

    kind: int


class GgufFloat(float):
    """A number of a file's metadata that is written again as the type that it had there, `kind` of ggml."""

    kind: int


class GgufList(list[Any]):
    """A list of a file's metadata, of texts, booleans or lists. One without values is written again as of the same `kind`."""

    kind: int


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
class GgufUnknown:
    """A tensor of a GGUF file whose type is not read here: it is listed, and may be written again, but has no values.

    Attributes:
        name: Of the tensor.
        shape: Of the values, outermost dimension first.
        format: The type's name, or "type 77" where ggml had none yet.
        code: ggml's number of the type.
        raw: The bytes (u8) from its beginning to that of the next tensor, read-only.
    """

    name: str | bytes
    shape: tuple[int, ...]
    format: str
    code: int
    raw: Array

    @property
    def data(self) -> Array:
        """Refused.

        Raises:
            InvalidProblemError: Always, with what to do.
        """
        raise InvalidProblemError(
            f"load_gguf: the tensor {self.name!r} is of ggml's type {self.code} ({self.format}), which is not read; those that are "
            f"read are {READ}. Convert the file to one of these (llama-quantize --allow-requantize), or take the bytes of .raw."
        )


READ = ", ".join([*(str(e) for e in PLAIN.values()), *(f.value for f in BlockFormat)])


@dataclass(frozen=True, slots=True)
class GgufFile:
    """What load_gguf found.

    Attributes:
        tensors: By name, in the file's order. Those whose type is not read are GgufUnknown, whose `data` is refused.
        metadata: Numbers, texts, booleans, arrays of numbers (NumPy), and lists of the others, by key. save_gguf gives each the
            type again that it had in the file.
    """

    tensors: dict[str | bytes, GgufTensor | GgufUnknown]
    metadata: dict[str | bytes, Any]


def load_gguf(path: str | PathLike[str]) -> GgufFile:
    """The tensors of a GGUF file by name, mapped into memory and not copied, and its metadata.

    Pages are read when a kernel first touches them. The file must not be truncated or overwritten while its tensors are in use.
    Nothing in the file is trusted: each count, length, type and offset is held against what the file has. A tensor of a type that is
    not read is listed with its type's name and bytes. Texts, keys and names that are not UTF-8 are bytes; a warning says so.

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


def _typed(kind: int, value: Any) -> Any:
    """A number that knows the type which it had, where Python's own are not written as that."""
    if kind in (11, 12):
        return value
    made = GgufFloat(value) if isinstance(value, float) else GgufInt(value)
    made.kind = kind
    return made


class _File:
    """Reads a file from its beginning, a piece at a time."""

    def __init__(self, name: str, data: Array) -> None:
        self.name, self.data, self.at = name, data.view(np.ndarray), 0
        self.raw_texts: list[tuple[int, str]] = []  # that are not UTF-8

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

    def text(self, what: str) -> str | bytes:
        at = self.at
        raw = bytes(self.take(self.number("Q", f"the length of {what}"), what))
        try:
            return raw.decode()
        except UnicodeDecodeError:
            self.raw_texts.append((at, what))
            return raw

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
        metadata: dict[str | bytes, Any] = {}
        alignment = ALIGNMENT
        for _ in range(self.counted(13, "entries of metadata")):
            at, key = self.at, self.text("a key")
            if key in metadata:
                raise self.wrong(at, f"the key {key!r} is there twice")
            kind = self.number("I", f"the type of {key!r}")
            metadata[key] = self.value(kind, repr(key), 0)
            if key == ALIGNMENT_KEY:
                alignment = self.alignment(at, kind, metadata[key])
        made = GgufFile(self.mapped(self.places(tensors), alignment), metadata)
        self.warn()
        return made

    def alignment(self, at: int, kind: int, value: Any) -> int:
        """What tensors' offsets are multiples of."""
        if kind != U32 or value < 1 or value & (value - 1):
            raise self.wrong(at, f"{ALIGNMENT_KEY} is {value!r} of type {kind}, want a power of 2 of type {U32} (u32)")
        return int(value)

    def warn(self) -> None:
        """Of texts that are bytes, once for a file."""
        if self.raw_texts:
            at, what = self.raw_texts[0]
            count = f" and {len(self.raw_texts) - 1} more" if len(self.raw_texts) > 1 else ""
            text = f"load_gguf: {self.name!r}: {what} at byte {at}{count} is not UTF-8; such texts are given as bytes."
            warnings.warn(text, UserWarning, stacklevel=4)

    def value(self, kind: int, what: str, depth: int) -> Any:
        """An entry of metadata."""
        at = self.at
        if kind in NUMBERS:
            return _typed(kind, self.number(NUMBERS[kind], what))
        if kind == BOOL:
            if (flag := self.number("B", what)) > 1:
                raise self.wrong(at, f"{what} is a boolean of value {flag}")
            return bool(flag)
        if kind == STRING:
            return self.text(what)
        if kind != LIST or depth == _DEEPEST:
            got = f"lists nested {depth} deep" if kind == LIST else f"type {kind}, which there is not"
            raise self.wrong(at, f"{what} is of {got}")
        inner = self.number("I", f"the type of {what}")
        if inner in NUMBERS:
            dtype = np.dtype("<" + NUMBERS[inner])
            return self.take(self.counted(dtype.itemsize, what) * dtype.itemsize, what).view(dtype).copy()
        least = {BOOL: 1, STRING: 8, LIST: 12}.get(inner, 1)
        made = GgufList(self.value(inner, what, depth + 1) for _ in range(self.counted(least, what)))
        made.kind = inner
        return made

    def places(self, count: int) -> dict[str | bytes, tuple[int, tuple[int, ...], int, int]]:
        """Of each tensor: where its entry is, its shape, type, and offset."""
        found: dict[str | bytes, tuple[int, tuple[int, ...], int, int]] = {}
        for _ in range(count):
            at, name = self.at, self.text("a tensor's name")
            if name in found:
                raise self.wrong(at, f"the tensor {name!r} is there twice")
            dims = self.number("I", f"the rank of {name!r}")
            if dims > MOST_DIMS:
                raise self.wrong(at, f"{name!r} has {dims} dimensions, want at most {MOST_DIMS}")
            sizes = tuple(self.number("Q", f"a size of {name!r}") for _ in range(dims))
            kind = self.number("I", f"the type of {name!r}")
            found[name] = (at, sizes[::-1], kind, self.number("Q", f"the offset of {name!r}"))
        return found

    def mapped(
        self, found: Mapping[str | bytes, tuple[int, tuple[int, ...], int, int]], alignment: int
    ) -> dict[str | bytes, GgufTensor | GgufUnknown]:
        """The tensors in the file's memory, none of which lies outside it or in another."""
        start = -(-self.at // alignment) * alignment
        room = max(0, len(self.data) - start)
        begins = sorted({offset for *_, offset in found.values()})
        taken: list[tuple[int, int, str | bytes]] = []
        tensors: dict[str | bytes, GgufTensor | GgufUnknown] = {}
        for name, (at, shape, kind, offset) in found.items():
            known = kind in PLAIN or kind in _BLOCKS
            stored, dtype, form = self.stored(at, name, shape, kind)
            if any(n >= _TOO_LARGE for n in shape) or prod(n for n in stored if n) * dtype.itemsize >= _TOO_LARGE:
                raise self.wrong(at, f"{name!r} has shape {shape}, want sizes whose product is below 2**63")
            if offset % alignment:
                raise self.wrong(at, f"{name!r} begins at offset {offset}, want a multiple of {alignment}")
            size = prod(stored) * dtype.itemsize
            if not known and size:  # up to the next one
                end = begins[bisect_right(begins, offset)] if begins[-1] > offset else room
                size = max(1, min(end, room) - offset)
            if offset + size > room:
                raise self.wrong(at, f"{name!r} has {size} bytes at offset {offset}, the file's data only {room}")
            if prod(n for n in shape if n) * _WIDEST >= _TOO_LARGE:  # blocks become values of any element
                raise self.wrong(at, f"{name!r} has shape {shape}, want sizes whose product is below 2**63")
            if size:
                taken.append((offset, offset + size, name))
            raw = self.data[start + offset : start + offset + size]
            if known:
                tensors[name] = GgufTensor(raw.view(dtype).reshape(stored), shape, form)
            else:
                tensors[name] = GgufUnknown(name, shape, form or "", kind, raw)
        taken.sort(key=lambda t: t[:2])
        for (_, end, name), (begin, _, other) in pairwise(taken):
            if begin < end:
                raise self.wrong(found[other][0], f"{other!r} begins at offset {begin}, before {name!r} ends at {end}")
        return tensors

    def stored(
        self, at: int, name: str | bytes, shape: tuple[int, ...], kind: int
    ) -> tuple[tuple[int, ...], np.dtype[Any], str | None]:
        """Shape and element of what lies in the file, and the format of blocks; of a type that is not read bytes of any number."""
        if kind in PLAIN:
            return shape, np.dtype(PLAIN[kind].numpy), None
        if kind not in _BLOCKS:
            return shape, np.dtype(np.uint8), _OTHERS.get(kind, f"type {kind}")
        f = _BLOCKS[kind]
        if not shape or shape[-1] % f.block_values:
            want = f"a last size that is a multiple of {f.block_values}, the values of a block of {f.value}"
            raise self.wrong(at, f"{name!r} has shape {shape}, want {want}")
        return (*shape[:-1], shape[-1] // f.block_values * f.block_bytes), np.dtype(np.uint8), f.value
