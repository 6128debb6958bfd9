"""A network of a file: what it is given and gives, what it lacks, and runs of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import baracuda as bc
from baracuda import Dim, InvalidProblemError
from baracuda import functional as F
from baracuda.describe.errors import shown
from baracuda.onnx.call import Known, Node
from baracuda.onnx.control import CONTROL
from baracuda.onnx.evaluate import constants_first, lacks, run_block
from baracuda.onnx.graph import Block, block_of
from baracuda.onnx.operators import TABLE
from baracuda.onnx.ports import Port, checked_sizes, is_tensor, like, open_names, taken
from baracuda.onnx.reading import opsets_of, read

if TYPE_CHECKING:
    from baracuda.onnx.compiled import CompiledModel


class Model:
    """A network, made by `baracuda.onnx.load`.

    Attributes:
        inputs: What `run` is given: `Port`s with name, element and shape.
        outputs: What it gives.
        missing: Operators that nothing here computes, with the names of their nodes: empty where the network runs.
        opset: The version of ONNX's own operators that it is made of.
    """

    def __init__(self, block: Block, inputs: Sequence[Port], outputs: Sequence[Port], opset: int) -> None:
        self._block = block
        self.inputs, self.outputs, self.opset = tuple(inputs), tuple(outputs), opset
        self.missing = _missing(block)
        if not self.missing:
            constants_first(block)

    def all_nodes(self) -> Iterator[Node]:
        """The nodes of a run, with those of graphs inside of nodes; what constants decide is computed already."""
        yield from self._block.all_nodes()

    @property
    def nodes(self) -> int:
        """How many nodes a run has."""
        return sum(1 for _ in self.all_nodes())

    @property
    def weight_bytes(self) -> int:
        """Bytes of the values that are known."""
        return sum(v.array.nbytes for v in self._block.known.values())

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """Runs the network, one function after the other.

        Args:
            feeds: Arrays by the names of inputs, of any library: NumPy, torch, JAX, `bc.Tensor`, or numbers and lists.

        Returns:
            Outputs by name, in memory of their own, as arrays of the first input's library; sequences as lists of those.

        Raises:
            InvalidProblemError: A name, shape or element is another than `inputs` says; or a node is given what its operator
                does not take: names the node.
            UnsupportedError: An operator or an option of it is not here: names the node, and what to do.
        """
        if self.missing:
            raise lacks(self.missing)
        values = taken(feeds, self.inputs)
        tensors = [_tensor(v) for v in values]
        made = self._results(tensors)
        convert = like(next((v for v in values if v is not None and not isinstance(v, list)), None))
        return {p.name: _converted(value, convert) for p, value in zip(self.outputs, made, strict=True)}

    def _results(self, tensors: Sequence[Any]) -> list[Any]:
        """Values of the outputs, which are no views of anything."""
        found = run_block(self._block, self._given(tensors), None)
        held = [_range(v) for v in tensors if isinstance(v, bc.Tensor)] + self._held
        return [_own(value, held) for value in found]

    @cached_property
    def _held(self) -> list[range]:
        """Addresses of the values that are known."""
        return [_range(v.tensor) for v in self._block.known.values() if is_tensor(v.array)]

    def _given(self, tensors: Sequence[Any]) -> dict[str, Any]:
        return {p.name: v for p, v in zip(self.inputs, tensors, strict=True)}

    def compile(self, dims: Mapping[str, int | Dim] | None = None, **options: Any) -> CompiledModel:
        """Makes one program of the network, which runs without Python.

        Args:
            dims: Sizes that the file leaves open, by name, where `load` was not given them: a number, or a
                `bc.Dim(name, max=...)` for any size up to that.
            **options: Of `ComputeGraph.compile`: `frozen=True` computes once what weights alone decide, and packs them.

        Raises:
            InvalidProblemError: A size is open, an input has no shape, or values of a run decide shapes: names the node.
            UnsupportedError: An operator is not here.
        """
        from baracuda.onnx.compiled import CompiledModel

        if self.missing:
            raise lacks(self.missing)
        sizes = checked_sizes(dims or {}, self.inputs)
        ports = [p.with_sizes(sizes) for p in self.inputs]
        if names := open_names(ports):
            example = ", ".join(f'"{n}": 1' for n in names)
            raise InvalidProblemError(
                f"compile: got open sizes {', '.join(names)}, want numbers or bc.Dims: compile(dims={{{example}}}), or "
                f"bc.Dim({names[0]!r}, max=...) in the place of 1 for any size up to that."
            )
        for p in ports:
            if p.shape is None or not p.element:
                raise InvalidProblemError(
                    f"compile: input {p.name!r}: got no shape or element in the file, want both: use run()."
                )
        specs = [bc.TensorSpec(p.shape, p.element) for p in ports]  # type: ignore[arg-type]
        try:
            graph = bc.trace(self._traced, *specs)
        except InvalidProblemError as error:
            raise self._explained(error) from error
        return CompiledModel(graph.compile(**options), ports, self.outputs)

    def _explained(self, error: InvalidProblemError) -> InvalidProblemError:
        """The error of the node, where a value of each run decides shapes, with the inputs that it comes from."""
        inner = error.__cause__
        if not isinstance(inner, InvalidProblemError) or not inner.refusals or inner.refusals[0].code != "null_data":
            return error
        origins = self._block.origins(inner.refusals[0].field) or [p.name for p in self.inputs]
        text = f"{inner} It comes from {', '.join(map(repr, origins))}."
        return InvalidProblemError(text, inner.refusals)

    def _traced(self, *tensors: Any) -> tuple[Any, ...]:
        """Tensors of the outputs: of those that are views a graph makes copies by itself."""
        found = run_block(self._block, self._given(tensors), None)
        for p, value in zip(self.outputs, found, strict=True):
            if value is None or isinstance(value, list):
                raise InvalidProblemError(
                    f"output {p.name!r}: got a sequence, which a compiled graph does not give: use run()."
                )
        return tuple(F.copy(_tensor(v)) if isinstance(v, Known) or any(v is t for t in tensors) else v for v in found)

    def save(self, folder: str | Path, **options: Any) -> None:
        """Compiles the network, with `compile`'s options, and writes a folder that `CompiledModel.load` reads."""
        self.compile(**options).save(folder)

    def __repr__(self) -> str:
        lacking = f", {len(self.missing)} operators missing" if self.missing else ""
        given, made = ("; ".join(map(str, ports)) for ports in (self.inputs, self.outputs))
        return f"<Model ({given}) -> ({made}), {self.nodes} nodes, opset {self.opset}{lacking}>"


def _missing(block: Block) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for node in block.all_nodes():
        if node.operator not in TABLE and node.operator not in CONTROL and node.own is None:
            found.setdefault(node.operator, []).append(node.name)
    return found


def _tensor(value: Any) -> Any:
    if isinstance(value, Known):
        return value.tensor
    if isinstance(value, list):
        return [_tensor(v) for v in value]
    if value is None or isinstance(value, bc.Tensor):
        return value
    return Known(value) if isinstance(value, np.ndarray) and not is_tensor(value) else bc.from_dlpack(value)


def _own(value: Any, held: Sequence[range]) -> Any:
    """A result in memory of its own: a copy of what lies in that of an input or a weight, or has gaps."""
    if value is None:
        return None
    if isinstance(value, list):
        return [_own(v, held) for v in value]
    if isinstance(value, Known):
        return F.copy(value.tensor) if is_tensor(value.array) else Known(value.array.copy())
    if not _is_contiguous(value) or any(value.address in h for h in held):
        return F.copy(value)
    return value


def _is_contiguous(x: Any) -> bool:
    expected = 1
    for n, step in zip(reversed(x.shape), reversed(x.strides), strict=True):
        if n != 1 and step != expected:
            return False
        expected *= n
    return True


def _range(x: bc.Tensor) -> range:
    return range(x.address, x.address + max(x.nbytes, 1))


def _converted(value: Any, convert: Callable[[Any], Any]) -> Any:
    if isinstance(value, list):
        return [_converted(v, convert) for v in value]
    if isinstance(value, Known):
        return value.array
    return value if value is None else convert(value)


def load(
    source: Any,
    *,
    dims: Mapping[str, int | Dim] | None = None,
    constants: Mapping[str, Any] | None = None,
    operators: Mapping[str, Callable[..., Any]] | None = None,
) -> Model:
    """Reads a network.

    Args:
        source: A path of an .onnx file, its bytes, or an `onnx.ModelProto`.
        dims: Sizes that the file leaves open, by name: numbers, or `bc.Dim`s for `compile`. `Port.shape` shows the names;
            an axis without one is called by its input and place: "x.0".
        constants: Values of inputs that are the same in all runs, by name: they are no inputs any more, and what they
            decide (branches, shapes) is decided at once.
        operators: Functions for operators that are not here, or in the place of ours, by name ("com.example.Scale"):
            `fn(*tensors, **attributes)` gives a tensor, or a tuple of them.

    Returns:
        The network; nothing has run but what constants alone decide. `missing` says what it lacks.

    Raises:
        InvalidProblemError: The file is no ONNX model, was cut or damaged, or is of an opset that is not known here.

    Example:
        >>> m = baracuda.onnx.load("model.onnx")
        >>> y = m.run({"x": x})["y"]
    """
    proto, folder = read(source)
    opsets = opsets_of(proto)
    block = block_of(proto.graph, opsets, folder)
    if operators:
        _give(block, operators)
    ports = [Port.of(i) for i in proto.graph.input if i.name not in block.known]
    _fix(block, ports, constants or {})
    ports = [p for p in ports if p.name not in block.known]
    sizes = checked_sizes(dims or {}, ports)
    outputs = [Port.of(o).with_sizes(sizes) for o in proto.graph.output]
    return Model(block, [p.with_sizes(sizes) for p in ports], outputs, opsets.get("", 0))


def _give(block: Block, operators: Mapping[str, Callable[..., Any]]) -> None:
    """Nodes of these operators are to call the user's functions."""
    block.nodes = [replace(n, own=operators.get(n.operator)) for n in block.nodes]
    for inner in block.blocks():
        _give(inner, operators)


def _fix(block: Block, ports: Sequence[Port], constants: Mapping[str, Any]) -> None:
    """Makes inputs known values."""
    by_name = {p.name: p for p in ports}
    for name, value in constants.items():
        if name not in by_name:
            raise InvalidProblemError(
                f"constants: got {shown(name)}, want some of the inputs {', '.join(by_name) or '(none)'}."
            )
        array = taken({name: value}, [by_name[name]])[0]
        block.known[name] = Known(array if isinstance(array, np.ndarray) else bc.asarray(array).numpy())
