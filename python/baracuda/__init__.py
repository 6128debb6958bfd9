"""baracuda: primitive tensor kernels behind one protocol, Descriptor -> Plan.select() -> can_implement() -> run()."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from baracuda import _core, _index
from baracuda._core import MemoryTracker
from baracuda.call.autograd import vjp
from baracuda.call.grad import grad, value_and_grad
from baracuda.call.program import Program, ProgramBuilder
from baracuda.call.tape import stop_gradient
from baracuda.choose.capability import Capabilities, Capability, capabilities
from baracuda.choose.plan import Plan, plan
from baracuda.choose.question import Question
from baracuda.choose.sku import Explanation, KernelSku, PlanPreference, PrecisionGuarantee, Support
from baracuda.config import get_include, get_library
from baracuda.describe import errors as errors
from baracuda.describe.dims import Dim
from baracuda.describe.elements import Element
from baracuda.describe.errors import (
    BackendUnavailableError,
    BaracudaError,
    BufferTooSmallError,
    DeviceError,
    DeviceMemoryError,
    IndexOutOfRangeError,
    IntegerDivisionError,
    InvalidProblemError,
    MemoryLimitError,
    MisalignedOperandError,
    Refusal,
    UnsupportedError,
    UsageError,
    ValueOutOfRangeError,
    WorkspaceTooSmallError,
)
from baracuda.describe.names import suggestion as _suggestion
from baracuda.memory import _fork as _fork
from baracuda.memory.device import Device, devices, synchronize
from baracuda.memory.generator import Generator, manual_seed
from baracuda.memory.stream import Event, Graph, Stream
from baracuda.memory.tensor import Tensor, TensorSpec, asarray, empty, from_dlpack, from_pointer, zeros
from baracuda.memory.threads import get_num_threads, set_num_threads

if TYPE_CHECKING:
    from baracuda import engine as engine
    from baracuda import expr as expr
    from baracuda import functional as functional
    from baracuda import graph as graph
    from baracuda import info as info
    from baracuda import llm as llm
    from baracuda import onnx as onnx
    from baracuda import testing as testing
    from baracuda._descriptors import *  # noqa: F403  # written by ci/generate.py, one name each
    from baracuda.engine import Engine as Engine
    from baracuda.engine import TensorArena as TensorArena
    from baracuda.engine import TensorPool as TensorPool
    from baracuda.graph import ComputeGraph as ComputeGraph
    from baracuda.graph import ExecutionPlan as ExecutionPlan
    from baracuda.graph import jit as jit
    from baracuda.graph import trace as trace
    from baracuda.memory.gguf import GgufFile as GgufFile
    from baracuda.memory.gguf import GgufTensor as GgufTensor
    from baracuda.memory.gguf import GgufUnknown as GgufUnknown
    from baracuda.memory.gguf import load_gguf as load_gguf
    from baracuda.memory.gguf_write import save_gguf as save_gguf
    from baracuda.ops.quant.quant import BlockFormat as BlockFormat
    from baracuda.ops.rope.scaling import rope_frequencies as rope_frequencies
    from baracuda.ops.rope.scaling import rope_tables as rope_tables
    from baracuda.prove import verify as verify

__version__: str = _core.__version__

__all__ = [
    "BackendUnavailableError", "BaracudaError", "BlockFormat", "BufferTooSmallError", "Capabilities", "Capability", "ComputeGraph",
    "Device", "DeviceError", "DeviceMemoryError", "Dim", "Element", "Engine", "Event", "ExecutionPlan", "Explanation", "Generator",
    "GgufFile", "GgufTensor", "GgufUnknown", "Graph", "IndexOutOfRangeError", "IntegerDivisionError", "InvalidProblemError", "KernelSku",
    "MemoryLimitError", "MemoryTracker", "MisalignedOperandError", "Plan", "PlanPreference", "PrecisionGuarantee", "Program",
    "ProgramBuilder", "Question", "Refusal", "Stream", "Support", "Tensor", "TensorArena", "TensorPool", "TensorSpec",
    "UnsupportedError", "UsageError", "ValueOutOfRangeError", "WorkspaceTooSmallError", "__version__", "asarray", "capabilities", "devices",
    "empty", "engine", "errors", "expr", "from_dlpack", "from_pointer", "functional", "get_include", "get_library",
    "get_num_threads", "grad", "jit", "load_gguf", "manual_seed", "plan", "rope_frequencies", "rope_tables", "save_gguf",
    "set_num_threads", "stop_gradient", "synchronize", "trace", "value_and_grad", "vjp", "zeros",
]  # fmt: skip

_core.set_wheel_folders([folder for folder in sys.path if folder.startswith("/")])


if not TYPE_CHECKING:  # a type checker knows all names, and says which are not there

    def __getattr__(name: str) -> Any:
        """Descriptors, plans and submodules are imported when first used: no op family is loaded by `import baracuda`."""
        if name in ("engine", "expr", "functional", "graph", "llm", "onnx", "testing", "info"):
            return import_module(f"baracuda.{name}")
        if name in ("ComputeGraph", "ExecutionPlan", "jit", "trace"):
            return getattr(import_module("baracuda.graph"), name)
        if name in ("Engine", "TensorArena", "TensorPool"):
            return getattr(import_module("baracuda.engine"), name)
        if name == "BlockFormat":
            return import_module("baracuda.ops.quant.quant").BlockFormat
        if name in ("GgufFile", "GgufTensor", "GgufUnknown", "load_gguf", "save_gguf"):
            return getattr(import_module(f"baracuda.memory.gguf{'_write' if name == 'save_gguf' else ''}"), name)
        if name in ("rope_frequencies", "rope_tables"):
            return getattr(import_module("baracuda.ops.rope.scaling"), name)
        if name == "verify":
            return import_module("baracuda.prove.verify")
        module = _index.DESCRIPTORS.get(name.removesuffix("Plan") + "Descriptor" if name.endswith("Plan") else name)
        if module is None:
            hint = "" if name.startswith("_") else _elsewhere(name) or _suggestion(name, __dir__())
            raise AttributeError(f"module 'baracuda' has no attribute {name!r}{hint}")
        found = getattr(
            import_module(module), name.removesuffix("Plan") + "Descriptor" if name.endswith("Plan") else name
        )
        value = found.plan_class if name.endswith("Plan") else found
        globals()[name] = value
        return value


def _elsewhere(name: str) -> str:
    """Where a name is that is not here: the end of a message, or nothing."""
    if name in _index.FUNCTIONS:
        return f"; it is a function of baracuda.functional: F.{name}"
    return "; bc.asarray makes tensors of what is given" if name in ("tensor", "array", "as_tensor") else ""


def __dir__() -> list[str]:
    plans = [n.removesuffix("Descriptor") + "Plan" for n in _index.DESCRIPTORS if n.endswith("Descriptor")]
    return sorted([*__all__, *_index.DESCRIPTORS, *plans])
