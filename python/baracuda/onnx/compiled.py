"""Networks that were compiled to one program."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import baracuda as bc
from baracuda import Dim, ExecutionPlan, InvalidProblemError
from baracuda.onnx.ports import Port, taken

FILE = "network.json"


class CompiledModel:
    """A network as one program, which runs without Python: made by `Model.compile`, shared by threads.

    Attributes:
        inputs: What `run` is given.
        outputs: What it gives.
        plan: The `bc.ExecutionPlan`: `explain()`, `profile()`, `memory`, `bind()`.
    """

    def __init__(self, plan: ExecutionPlan, inputs: Sequence[Port], outputs: Sequence[Port]) -> None:
        self.plan, self.inputs, self.outputs = plan, tuple(inputs), tuple(outputs)

    @property
    def missing(self) -> dict[str, list[str]]:
        """Nothing: what lacks an operator is not compiled."""
        return {}

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """Runs the program.

        Args:
            feeds: Arrays by the names of inputs, as `Model.run` takes them.

        Returns:
            Outputs by name, as arrays of the first input's library.

        Raises:
            InvalidProblemError: A name, shape or element is another than `inputs` says.
        """
        values = taken(feeds, self.inputs)
        made = self.plan.run(*values)
        results = made if isinstance(made, tuple) else (made,)
        return {p.name: y for p, y in zip(self.outputs, results, strict=True)}

    def save(self, folder: str | Path) -> None:
        """Writes a folder: the program, its weights as safetensors, and names of inputs and outputs."""
        self.plan.save(folder)
        about = {"inputs": [_written(p) for p in self.inputs], "outputs": [_written(p) for p in self.outputs]}
        (Path(folder) / FILE).write_text(json.dumps(about, indent=1))

    @classmethod
    def load(cls, folder: str | Path) -> CompiledModel:
        """Reads what `save` wrote.

        Raises:
            InvalidProblemError: The folder is no such one, of another version, or was changed.
        """
        try:
            about = json.loads((Path(folder) / FILE).read_text())
            ports = [[_port(p) for p in about[kind]] for kind in ("inputs", "outputs")]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InvalidProblemError(
                f"load: got folder {str(folder)!r} without a network ({error}), want one of save()."
            ) from None
        return cls(bc.ExecutionPlan.load(folder), *ports)

    def __repr__(self) -> str:
        given, made = ("; ".join(map(str, ports)) for ports in (self.inputs, self.outputs))
        return f"<CompiledModel ({given}) -> ({made}), {self.plan.launches} launches>"


def _written(port: Port) -> dict[str, Any]:
    sizes = None if port.shape is None else [
        {"name": n.name, "max": n.max, "mul": n.mul, "div": n.div, "add": n.add} if isinstance(n, Dim) else n
        for n in port.shape
    ]  # fmt: skip
    return {"name": port.name, "element": port.element, "shape": sizes}


def _port(about: Any) -> Port:
    shape = about["shape"]
    sizes = None if shape is None else tuple(Dim(**n) if isinstance(n, dict) else n for n in shape)
    return Port(about["name"], about["element"], sizes)
