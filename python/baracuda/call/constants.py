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


def _parts(path: Path) -> tuple[dict[str, Any], memoryview]:
    """A file's header, and the bytes behind it."""
    data = memoryview(path.read_bytes())
    first = _COUNT + int.from_bytes(data[:_COUNT], "little")
    try:
        header = json.loads(bytes(data[_COUNT:first]))
    except ValueError:  # neither UTF-8 nor JSON
        header = None
    if not isinstance(header, dict):
        raise InvalidProblemError(f"load: got {path.name} without a header, want a file as `save` writes it.")
    return header, data[first:]


def _place(given: Any, most: int) -> tuple[int, int] | None:
    """The start and the end of some of so many bytes, as a header has them; None where it has something else."""
    if not isinstance(given, list) or len(given) != 2 or not all(type(n) is int for n in given):
        return None
    start, end = given
    return (start, end) if 0 <= start <= end <= most else None


def read_tensors(path: Path, wanted: Iterable[tuple[str, Kind]], device: str) -> list[Any]:
    """The tensors of these names, elements and shapes, on a device.

    Raises:
        InvalidProblemError: The file is no such file, or a tensor is not there or is another.
    """
    import numpy as np

    from baracuda.memory.tensor import outside_arenas

    header, data = _parts(path)
    found = []
    for name, (element, shape) in wanted:
        kind, sizes = _written_as(element, shape)
        seen = header.get(name)
        if not isinstance(seen, dict) or seen.get("dtype") != kind or seen.get("shape") != sizes:
            got = (
                f"{shown(seen.get('dtype'))} of shape {shown(seen.get('shape'))}"
                if isinstance(seen, dict)
                else "nothing"
            )
            raise InvalidProblemError(f"load: {name}: got {got}, want {kind} of shape {sizes} in {path.name}.")
        place, nbytes = _place(given := seen.get("data_offsets"), len(data)), prod(shape) * element.nbytes
        if place is None or place[1] - place[0] != nbytes:
            raise InvalidProblemError(f"load: {name}: got bytes {shown(given)}, want {nbytes} that {path.name} has.")
        start, end = place
        with outside_arenas():  # which take their memory back before the program is done with it
            made = _core.empty(shape, element)
            _bytes_of(made)[:] = np.frombuffer(data[start:end], "u1")
            found.append(made if device == "cpu" else made.to(device))
    return found
