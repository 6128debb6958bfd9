"""Model files: read, checked as far as running them needs, and with local functions written out."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import onnx
from google.protobuf.message import DecodeError

from baracuda import InvalidProblemError
from baracuda.describe.errors import shown

OLDEST, NEWEST = 6, 28  # opsets of ONNX's own operators


def read(source: Any) -> tuple[onnx.ModelProto, str]:
    """A model, and the folder where its external data lies.

    Args:
        source: A path, the bytes of a file, or an `onnx.ModelProto`.

    Raises:
        InvalidProblemError: There is no such file, it is no model, or was cut.
    """
    folder = ""
    if isinstance(source, onnx.ModelProto):
        model = source
    elif isinstance(source, (bytes, bytearray, memoryview)):
        model = _parsed(bytes(source), "bytes")
    elif isinstance(source, (str, PathLike)):
        path = Path(source)
        if path.is_dir():
            raise InvalidProblemError(
                f"load: got the folder {str(path)!r}, want a file (CompiledModel.load reads what save wrote)."
            )
        try:
            model = _parsed(path.read_bytes(), str(path))
        except OSError as error:
            raise InvalidProblemError(f"load: {error}.") from None
        folder = str(path.parent)
    else:
        raise InvalidProblemError(f"load: got {shown(source)}, want a path, bytes of a file, or an onnx.ModelProto.")
    if not model.graph.node and not model.graph.output:
        raise InvalidProblemError(
            f"load: got a model without nodes and outputs of {'bytes' if not folder else source}, want a network: the file is empty or "
            "damaged."
        )
    return _without_functions(model), folder


def _parsed(data: bytes, what: str) -> onnx.ModelProto:
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except (DecodeError, ValueError, RuntimeError) as error:
        raise InvalidProblemError(
            f"load: got {len(data)} bytes of {what} that are no ONNX model ({error}), want a whole .onnx file: is it cut, or in "
            "another format? onnx.save(onnx.load(path), ...) writes other formats of ONNX as one."
        ) from None
    return model


def opsets_of(model: onnx.ModelProto) -> dict[str, int]:
    """Versions of operators by domain.

    Raises:
        InvalidProblemError: ONNX's own are older or newer than what is known here.
    """
    found = {"" if o.domain == "ai.onnx" else o.domain: o.version for o in model.opset_import}
    version = found.get("", 0)
    if "" in found and not OLDEST <= version <= NEWEST:
        raise InvalidProblemError(
            f"load: got operators of opset {version}, want {OLDEST} to {NEWEST}: onnx.version_converter.convert_version(model, "
            f"{min(max(version, OLDEST), NEWEST)}) converts many networks."
        )
    return found


def _without_functions(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with the bodies of its own functions in the place of their calls."""
    if not model.functions:
        return model
    bodies = {(f.domain, f.name): {(n.domain, n.op_type) for n in f.node} for f in model.functions}
    for start in bodies:
        _refuse_circle(start, bodies)
    import onnx.inliner

    try:
        return onnx.inliner.inline_local_functions(model)
    except Exception as error:
        raise InvalidProblemError(f"load: got functions of the model that cannot be written out ({error}).") from None


def _refuse_circle(start: tuple[str, str], bodies: dict[tuple[str, str], set[tuple[str, str]]]) -> None:
    seen: set[tuple[str, str]] = set()
    ahead = [c for c in bodies[start] if c in bodies]
    while ahead:
        name = ahead.pop()
        if name == start:
            raise InvalidProblemError(f"load: got function {start[1]!r} that calls itself, want functions that end.")
        if name not in seen:
            seen.add(name)
            ahead += [c for c in bodies[name] if c in bodies]
