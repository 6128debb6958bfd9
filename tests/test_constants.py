"""Captured tensors in files (baracuda/call/constants.py): every element, and files that somebody damaged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors import deserialize

import baracuda as bc
from baracuda import _core
from baracuda.call.constants import _bytes_of, read_tensors, write_tensors
from baracuda.describe.elements import Element

WHOLE = [e for e in Element if e.nbytes]  # what tensors have


@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)])
@pytest.mark.parametrize("element", WHOLE)
def test_tensors_of_all_elements_come_back(element: Element, shape: tuple[int, ...], tmp_path: Path) -> None:
    x, path = bc.empty(shape, element), tmp_path / "x.safetensors"
    _bytes_of(x)[:] = np.random.default_rng(3).integers(0, 2, x.nbytes)
    write_tensors(path, {"other": bc.zeros(5), "x": x})
    (y,) = read_tensors(path, [("x", (element, shape))], "cpu")
    assert _core.describe(y)[:2] == _core.describe(x)[:2]
    assert _bytes_of(y).tobytes() == _bytes_of(x).tobytes()
    found = dict(deserialize(path.read_bytes()))  # the format's own library reads it
    assert found["x"]["data"] == _bytes_of(x).tobytes()


def _damaged() -> list[bytes]:
    text = b'{"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}'

    def of(header: bytes, data: bytes = bytes(8)) -> bytes:
        return len(header).to_bytes(8, "little") + header + data

    changed = [
        (b"8]", b"9]"), (b"0, 8", b"-8, 0"), (b"0, 8", b"0"), (b"[0, 8]", b"null"), (b"0, 8", b"0.0, 8.0"), (b"data_offsets", b"data"),
        (b"F32", b"F64"), (b"[2]", b"[3]"), (b'"dtype"', b'"type"'), (b'"x"', b'"y"'),
    ]  # fmt: skip
    return [
        b"", b"123", b"\xff" * 40, of(b"[]"), of(b"null"), of(b"{"), of(b'{"x": 3}'), of(text, bytes(7)),
        *(of(text.replace(*change)) for change in changed),
    ]  # fmt: skip


@pytest.mark.parametrize("damaged", _damaged(), ids=str)
def test_damaged_files_are_refused(damaged: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(damaged)
    with pytest.raises(bc.InvalidProblemError, match=r"load: .*, want .*"):
        read_tensors(path, [("x", (Element.F32, (2,)))], "cpu")
