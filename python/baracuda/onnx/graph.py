"""Graphs as they are run: nodes in order, values that are known, and when each value is needed last."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx

from baracuda import InvalidProblemError
from baracuda.onnx.call import Known, Node
from baracuda.onnx.tensors import array_of

OUTERMOST = 64  # graphs within graphs


@dataclass
class Block:
    """A graph, or one inside of a node.

    Attributes:
        name: Its name, for messages.
        inputs: Names of what it is given.
        outputs: Names of what it gives.
        nodes: In order.
        known: Initialisers and constants.
        ends: By node, the values that nothing behind it reads.
        empty: By output, its element and shape as declared, of results that no iteration made.
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: list[Node]
    known: dict[str, Known] = field(default_factory=dict)
    ends: list[tuple[str, ...]] = field(default_factory=list)
    empty: tuple[tuple[int, tuple[int, ...]] | None, ...] = ()

    def __call__(self, *given: Any) -> list[Any]:
        """What it gives for values of its inputs, in order, where it uses none from outside."""
        from baracuda.onnx.evaluate import run_block

        return run_block(self, dict(zip(self.inputs, given, strict=True)), None)

    def blocks(self) -> Iterator[Block]:
        """Those inside of nodes."""
        for node in self.nodes:
            yield from (a for a in node.attributes.values() if isinstance(a, Block))

    def all_nodes(self) -> Iterator[Node]:
        """Nodes of this one and of all inside."""
        yield from self.nodes
        for block in self.blocks():
            yield from block.all_nodes()

    def outside(self) -> set[str]:
        """Names that are used here and come from outside."""
        made, found = {*self.inputs, *self.known}, set[str]()
        for node in self.nodes:
            found |= {n for n in uses(node) if n and n not in made}
            made |= set(node.outputs)
        return found | {n for n in self.outputs if n not in made}

    def origins(self, name: str) -> list[str]:
        """The inputs that a value is made of."""
        made = {o: n for n in self.nodes for o in n.outputs}
        seen, ahead, found = {name}, [name], []
        while ahead:
            at = ahead.pop()
            if at in self.inputs and at not in self.known:
                found.append(at)
            for before in uses(made[at]) - seen if at in made else ():
                seen.add(before)
                ahead.append(before)
        return [i for i in self.inputs if i in found]

    def set_ends(self) -> None:
        """Notes after which node each value is done with."""
        last: dict[str, int] = {}
        for i, node in enumerate(self.nodes):
            for name in (*uses(node), *node.outputs):
                last[name] = i
        kept = {*self.outputs, *self.known, *self.inputs, ""}
        self.ends = [() for _ in self.nodes]
        for name, i in last.items():
            if name not in kept:
                self.ends[i] = (*self.ends[i], name)


def uses(node: Node) -> set[str]:
    """Names of values that a node reads, in graphs inside of it, too."""
    inner = (a.outside() for a in node.attributes.values() if isinstance(a, Block))
    return set(node.inputs).union(*inner)


def block_of(
    graph: onnx.GraphProto,
    opsets: Mapping[str, int],
    folder: str = "",
    depth: int = 0,
    outer: frozenset[str] = frozenset(),
) -> Block:
    """Reads a graph.

    Args:
        graph: Of a model, or of a node.
        opsets: Versions of operators by domain.
        folder: Where external data lies.
        depth: How deep it is inside of others.
        outer: Names of values outside that it may use.

    Raises:
        InvalidProblemError: A value is used before anything makes it, is made twice, or a tensor is damaged.
    """
    if depth > OUTERMOST:
        raise InvalidProblemError(f"graph {graph.name!r}: got more than {OUTERMOST} graphs within graphs, want fewer.")
    known = {t.name: Known(array_of(t, folder)) for t in graph.initializer}
    known |= {t.values.name: Known(_dense(t, folder)) for t in graph.sparse_initializer}
    inputs = tuple(i.name for i in graph.input)
    made = {*known, *inputs}
    nodes = []
    for proto in graph.node:
        inner = any(a.type == onnx.AttributeProto.GRAPH for a in proto.attribute)
        node = _node_of(proto, opsets, folder, depth, outer | made if inner else outer)
        for name in node.inputs:
            if name and name not in made and name not in outer:
                raise InvalidProblemError(
                    f"{node.where}: got input {name!r}, which nothing before it makes: the file is damaged, or its nodes are not "
                    "in order (onnx.checker.check_model says more)."
                )
        if node.operator == "Constant":
            known[node.outputs[0]] = _constant(node)
        else:
            nodes.append(node)
        if twice := [n for n in node.outputs if n and n in made]:
            raise InvalidProblemError(f"{node.where}: got output {twice[0]!r} a second time, want each name made once.")
        made |= set(node.outputs)
    outputs = tuple(o.name for o in graph.output)
    for name in outputs:
        if name not in made and name not in outer:
            raise InvalidProblemError(
                f"graph {graph.name!r}: got output {name!r}, which no node makes, want one of a node."
            )
    empty = tuple(_declared(o) for o in graph.output)
    block = Block(graph.name, inputs, outputs, nodes, known, empty=empty)
    block.set_ends()
    return block


def _declared(value: onnx.ValueInfoProto) -> tuple[int, tuple[int, ...]] | None:
    kind = value.type.tensor_type
    if not kind.HasField("shape") or any(not d.HasField("dim_value") for d in kind.shape.dim):
        return None
    return kind.elem_type, tuple(d.dim_value for d in kind.shape.dim)


def _node_of(proto: onnx.NodeProto, opsets: Mapping[str, int], folder: str, depth: int, outer: frozenset[str]) -> Node:
    domain = "" if proto.domain == "ai.onnx" else proto.domain
    name = proto.name or next(filter(None, proto.output), proto.op_type)
    attributes: dict[str, Any] = {}
    for a in proto.attribute:
        if a.type == onnx.AttributeProto.TENSOR:
            attributes[a.name] = array_of(a.t, folder)
        elif a.type == onnx.AttributeProto.GRAPH:
            attributes[a.name] = block_of(a.g, opsets, folder, depth + 1, outer)
        else:
            try:
                attributes[a.name] = onnx.helper.get_attribute_value(a)
            except ValueError as error:
                raise InvalidProblemError(f"node {name!r} ({proto.op_type}): attribute {a.name!r}: {error}") from None
    version = opsets.get(domain, 0)
    return Node(proto.op_type, domain, name, tuple(proto.input), tuple(proto.output), attributes, version)


def _constant(node: Node) -> Known:
    """The value of a Constant, in whichever way it is written."""
    kinds = {"value_int": np.int64, "value_ints": np.int64, "value_float": np.float32, "value_floats": np.float32}
    for name, value in node.attributes.items():
        if name == "value":
            return Known(value)
        if name in kinds:
            return Known(np.array(value, kinds[name]))
        if name in ("value_string", "value_strings"):
            texts = [v.decode() for v in (value if isinstance(value, (list, tuple)) else [value])]
            return Known(np.array(texts if name.endswith("s") else texts[0], object))
    raise InvalidProblemError(f"{node.where}: got no value that is read here, want a tensor, numbers or texts.")


def _dense(sparse: onnx.SparseTensorProto, folder: str) -> Any:
    """A sparse tensor with its zeros."""
    values, places = array_of(sparse.values, folder), array_of(sparse.indices, folder)
    shape = tuple(sparse.dims)
    y = np.zeros(shape, values.dtype)
    try:
        if places.ndim == 1:
            y.reshape(-1)[places] = values
        else:
            y[tuple(places.T)] = values
    except (IndexError, ValueError) as error:
        raise InvalidProblemError(f"initialiser {sparse.values.name!r}: {error}: the file is damaged.") from None
    return y
