"""ONNX's own interface of backends: `onnx.backend.base.Backend`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import onnx
import onnx.backend.base

from baracuda import BaracudaError, InvalidProblemError
from baracuda.onnx.model import Model, load


class BackendRep(onnx.backend.base.BackendRep):
    """A network that was prepared."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Runs it.

        Args:
            inputs: Values in the order of inputs, by name, or one value.
            **kwargs: Nothing is known here.

        Returns:
            Outputs in order, also by name.
        """
        if kwargs:
            raise InvalidProblemError(f"run: got {next(iter(kwargs))!r}, want the inputs alone.")
        ports = self.model.inputs
        if not isinstance(inputs, Mapping):
            values = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
            if len(values) > len(ports):
                raise InvalidProblemError(
                    f"run: got {len(values)} inputs, want {len(ports)}: {'; '.join(map(str, ports))}."
                )
            inputs = {p.name: v for p, v in zip(ports, values, strict=False)}
        found = self.model.run(inputs)
        named = onnx.backend.base.namedtupledict("Outputs", list(found))
        made: tuple[Any, ...] = named(*found.values())
        return made


class Backend(onnx.backend.base.Backend):
    """baracuda as a backend of ONNX, on the cpu."""

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether the model can be loaded here, and lacks no operator."""
        try:
            return cls.supports_device(device) and not load(model).missing
        except BaracudaError:
            return False

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> BackendRep:
        """Loads a model.

        Args:
            model: The model.
            device: "CPU".
            **kwargs: Options of `baracuda.onnx.load`.
        """
        if not cls.supports_device(device):
            raise InvalidProblemError(f"device: got {device!r}, want 'CPU'.")
        return BackendRep(load(model, **kwargs))

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[Any, tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """Runs one node.

        Args:
            node: The node.
            inputs: Values of its inputs, in order, or by name.
            device: "CPU".
            outputs_info: Not needed here.
            **kwargs: `opset_version`: of its domain; by default the newest.
        """
        version = (
            kwargs.pop("opset_version", None) or onnx.defs.get_schema(node.op_type, domain=node.domain).since_version
        )
        names = [n for n in node.input if n]
        if not isinstance(inputs, Mapping):
            inputs = dict(zip(names, inputs if isinstance(inputs, (list, tuple)) else [inputs], strict=False))
        unknown = [onnx.helper.make_value_info(n, onnx.TypeProto()) for n in names]
        wanted = [onnx.helper.make_value_info(n, onnx.TypeProto()) for n in node.output if n]
        graph = onnx.helper.make_graph([node], node.name or node.op_type, unknown, wanted)
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid(node.domain, version)])
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether networks run there: "CPU"."""
        return device.partition(":")[0] == "CPU"
