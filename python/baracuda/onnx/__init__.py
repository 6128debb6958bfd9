"""ONNX networks, run by baracuda's functions: `baracuda.onnx.load("model.onnx").run({"x": x})`. See docs/onnx-networks.md."""

try:
    import onnx as _onnx  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "onnx":
        raise
    raise ModuleNotFoundError(
        "baracuda.onnx needs the package onnx, which reads the files: pip install 'baracuda[onnx]' (or pip install onnx).",
        name="onnx",
    ) from None

from baracuda.onnx.backend import Backend, BackendRep
from baracuda.onnx.compiled import CompiledModel
from baracuda.onnx.model import Model, load
from baracuda.onnx.ports import Port

__all__ = ["Backend", "BackendRep", "CompiledModel", "Model", "Port", "load"]
