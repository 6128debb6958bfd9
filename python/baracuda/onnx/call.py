"""A node of a network, and one call of it: attributes, and inputs of which some are known before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

import baracuda as bc
from baracuda import InvalidProblemError, Refusal, UnsupportedError
from baracuda import functional as F

Array = np.ndarray[Any, Any]


class Known:
    """A value that is known when the network is loaded, or once its input's sizes are: weights, axes, shapes.

    Sizes that a graph leaves open are kept as they are: the array is of Python objects then.
    """

    __slots__ = ("__dict__", "array")

    def __init__(self, array: Any) -> None:
        if isinstance(array, int) and type(array) not in (int, bool):  # an open size
            self.array: Array = np.empty((), object)
            self.array[()] = array
        else:
            self.array = np.asarray(array)

    @cached_property
    def tensor(self) -> bc.Tensor:
        """The same memory, for functions."""
        array = self.array
        if array.dtype == object and array.size:
            return _filled(array)
        if not (array.dtype.isnative and array.flags.aligned):
            array = array.astype(array.dtype.newbyteorder("="))
        return bc.from_dlpack(array)

    @property
    def shape(self) -> tuple[int, ...]:
        """Its sizes."""
        shape: tuple[int, ...] = self.array.shape
        return shape

    @property
    def is_text(self) -> bool:
        """Whether it holds texts, which no kernel takes."""
        return self.array.dtype.kind in "USO" and any(isinstance(v, str) for v in self.array.flat[:1])


def _filled(sizes: Array) -> bc.Tensor:
    """A tensor of open sizes, which each run fills with its own."""
    parts = [F.full((1,), n, dtype="i64", device="cpu") for n in sizes.reshape(-1)]
    made: bc.Tensor = F.cat(parts).reshape(*sizes.shape)
    return made


@dataclass(frozen=True)
class Node:
    """A node: what is computed, of what, with which attributes.

    Attributes:
        op: The operator's name.
        domain: Whose operator it is; empty for ONNX's own.
        name: The node's own name, or that of its first output.
        inputs: Names of values; empty where an optional one is left out.
        outputs: Names of values; empty where nobody asks for one.
        attributes: By name; subgraphs as `graph.Block`s, tensors as arrays.
        opset: Version of its domain's operators.
        own: A function that the user gave for the operator: tensors in, then attributes by name.
    """

    op: str
    domain: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    opset: int = 0
    own: Callable[..., Any] | None = None

    @property
    def operator(self) -> str:
        """The operator's name with its domain, as the table has it."""
        return f"{self.domain}.{self.op}" if self.domain else self.op

    @property
    def where(self) -> str:
        """How messages name the node."""
        return f"node {self.name!r} ({self.operator})"


class Call:
    """One call of a node: what an operator's function is given besides the tensors.

    Args:
        node: The node.
        values: Its inputs: `Known`, tensors, lists of those, and None for what is left out.
    """

    __slots__ = ("node", "values")

    def __init__(self, node: Node, values: Sequence[Any]) -> None:
        self.node, self.values = node, values

    @property
    def op(self) -> str:
        """The operator's name."""
        return self.node.op

    @property
    def opset(self) -> int:
        """The version of the operators."""
        return self.node.opset

    @property
    def results(self) -> int:
        """How many outputs the node names."""
        return len(self.node.outputs)

    def wants(self, i: int) -> bool:
        """Whether anybody asks for an output."""
        return i < len(self.node.outputs) and bool(self.node.outputs[i])

    def get(self, name: str, default: Any = None) -> Any:
        """An attribute; text as text."""
        value = self.node.attributes.get(name, default)
        return value.decode() if isinstance(value, bytes) else value

    def has(self, i: int) -> bool:
        """Whether an input is given."""
        return i < len(self.values) and self.values[i] is not None

    def known(self, i: int) -> Array | None:
        """The numbers of an input, where they are known before anything runs; None where they are not, or it is left out."""
        value = self.values[i] if i < len(self.values) else None
        return value.array if isinstance(value, Known) else None

    def array(self, i: int) -> Array:
        """The numbers of an input that decides shapes.

        Raises:
            InvalidProblemError: They are not known while a graph is traced.
        """
        value = self.values[i]
        if isinstance(value, Known):
            return value.array
        try:
            return np.asarray(value.to("cpu").numpy())
        except (BufferError, bc.BaracudaError) as error:
            name = self.node.inputs[i]
            raise InvalidProblemError(
                f"{self.node.where}: input {name!r} depends on the data of this run, and decides shapes, which a compiled graph has "
                f"to know: load(..., constants={{...}}) the network's input that it comes from, or call run() without compile().",
                [Refusal("null_data", name, "a value of each run", "one that is known")],
            ) from error

    def ints(self, i: int) -> list[int]:
        """The integers of an input that decides shapes, in order."""
        return [n if isinstance(n, int) else int(n) for n in self.array(i).reshape(-1).tolist()]

    def number(self, i: int) -> Any:
        """The number of an input of one element, as Python has it; None where it is left out."""
        if not self.has(i):
            return None
        array = self.array(i)
        if array.size != 1:
            raise InvalidProblemError(
                f"{self.node.where}: input {self.node.inputs[i]!r}: got shape {array.shape}, want one element."
            )
        return array.reshape(-1)[0] if array.dtype == object else array.reshape(()).item()

    def scalar(self, i: int) -> Any:
        """The number of an input that is known and has one element; None for any other, and for what Python's numbers do not hold."""
        array = self.known(i)
        if array is None or array.size != 1 or array.dtype.kind not in "biufO":
            return None
        return array.reshape(-1)[0] if array.dtype == object else array.reshape(()).item()

    def refuse(self, got: str, want: str, hint: str = "", code: str = "option") -> NoReturn:
        """Says that no function here does what the node wants."""
        raise UnsupportedError(
            f"{self.node.where}: got {got}, want {want}." + (f" {hint}" if hint else ""),
            [Refusal(code, self.node.operator, got, want, hint)],
        )

    def wrong(self, got: str, want: str) -> NoReturn:
        """Says that the node is no question that has an answer."""
        raise InvalidProblemError(
            f"{self.node.where}: got {got}, want {want}.", [Refusal("problem", self.node.operator, got, want)]
        )
