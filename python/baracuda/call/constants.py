"""Captured tensors in files of the format of safetensors: a length, a header in JSON, and the tensors' bytes.

The format's own library for NumPy has no bf16, 8-bit floats and complex numbers, so files are written and read here. Elements
that the format does not name are written as parts that it has: a complex number as two floats in a last dimension, and
what has less than 8 bits as bytes. Who reads them knows the element from the program's document.
"""

from __future__ import annotations

import json
from math import prod
from typing import TYPE_CHECKING, Any

from baracuda import _core
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

_NAMES = {
    Element.BOOL: "BOOL", Element.U8: "U8", Element.U16: "U16", Element.U32: "U32", Element.U64: "U64", Element.I8: "I8",
    Element.I16: "I16", Element.I32: "I32", Element.I64: "I64", Element.F16: "F16", Element.BF16: "BF16",
    Element.F32: "F32", Element.F64: "F64", Element.F8E4M3: "F8_E4M3", Element.F8E5M2: "F8_E5M2",
}  # fmt: skip
_PARTS = {Element.C64: Element.F32, Element.C128: Element.F64}
_COUNT, _LINE = 8, 8  # bytes of the header's length, and what the header's end is a multiple of

Kind = tuple[Element, tuple[int, ...]]  # of a tensor: its element and shape


def _written_as(element: Element, shape: tuple[int, ...]) -> tuple[str, list[int]]:
    """What a header says of a tensor: the name of its element, and its sizes."""
    part = _PARTS.get(element)
    return _NAMES.get(part or element, "U8"), [*shape, 2] if part else [*shape]


def _bytes_of(x: Any) -> Any:
    """The memory of a contiguous tensor on the host, as a NumPy array of bytes."""
    import numpy as np

    n = prod(x.shape) * Element(x._element).nbytes
    return np.from_dlpack(_core.from_pointer(x.address, (n,), "u8", None, "cpu", n, x)) if n else np.empty(0, "u1")


def write_tensors(path: Path, named: Mapping[str, Any]) -> None:
    """Writes contiguous tensors of any device and element by name."""
    header: dict[str, Any] = {}
    parts = []
    end = 0
    for name, given in named.items():
        x = _core.borrow(given)
        parts.append(_bytes_of(x if x.device == "cpu" else x.to("cpu")))
        element, shape = _written_as(Element(x._element), tuple(x.shape))
        header[name] = {"dtype": element, "shape": shape, "data_offsets": [end, end + parts[-1].nbytes]}
        end += parts[-1].nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % _LINE)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(_COUNT, "little") + text)
        for part in parts:
            file.write(part.data)


def read_tensors(path: Path, wanted: Iterable[tuple[str, Kind]], device: str) -> list[Any]:
    """The tensors of these names, elements and shapes, on a device.

    Raises:
        InvalidProblemError: One is not there, or is another.
    """
    import numpy as np

    from baracuda.memory.tensor import outside_arenas

    data = memoryview(path.read_bytes())
    first = _COUNT + int.from_bytes(data[:_COUNT], "little")
    header = json.loads(bytes(data[_COUNT:first]))
    found = []
    for name, (element, shape) in wanted:
        kind, sizes = _written_as(element, shape)
        seen = header.get(name, {})
        if seen.get("dtype") != kind or seen.get("shape") != sizes:
            got = f"{seen['dtype']} of shape {shown(seen['shape'])}" if seen else "nothing"
            raise InvalidProblemError(f"load: {name}: got {got}, want {kind} of shape {sizes}.")
        (start, end), nbytes = seen["data_offsets"], prod(shape) * element.nbytes
        if not 0 <= start <= end <= len(data) - first or end - start != nbytes:
            raise InvalidProblemError(
                f"load: {name}: got bytes {shown(start)} to {shown(end)}, want {nbytes} that the file has."
            )
        with outside_arenas():  # which take their memory back before the program is done with it
            made = _core.empty(shape, element)
            _bytes_of(made)[:] = np.frombuffer(data[first + start : first + end], "u1")
            found.append(made if device == "cpu" else made.to(device))
    return found
