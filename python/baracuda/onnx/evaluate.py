"""Runs the nodes of a graph, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import baracuda as bc
from baracuda import BaracudaError, InvalidProblemError, Refusal, UnsupportedError
from baracuda.onnx.call import Call, Known, Node
from baracuda.onnx.fold import folded
from baracuda.onnx.graph import Block, uses
from baracuda.onnx.operators import TABLE, Operator

MAYBE = ("Identity", "Optional", "OptionalGetElement", "SequenceAt")  # operators whose value may be nothing


class Scope(dict[str, Any]):
    """Values by name, of this graph and of those around it."""

    def __init__(self, outer: Scope | None) -> None:
        super().__init__()
        self.outer = outer

    def __missing__(self, name: str) -> Any:
        if self.outer is None:
            raise InvalidProblemError(
                f"value {name!r}: got nothing that makes it, want a graph whose nodes are in order."
            )
        return self.outer[name]


def run_block(block: Block, given: Mapping[str, Any], outer: Scope | None) -> list[Any]:
    """What a graph gives.

    Args:
        block: The graph.
        given: Values of its inputs.
        outer: Values around it, which it may use.
    """
    scope = Scope(outer)
    scope.update(block.known)
    scope.update(given)
    for node, ends in zip(block.nodes, block.ends, strict=True):
        results = run_node(node, [scope[name] if name else None for name in node.inputs], scope)
        for name, value in zip(node.outputs, results, strict=False):
            if name:
                scope[name] = value
        lacking = [n for n in node.outputs[len(results) :] if n]
        if lacking:
            raise UnsupportedError(f"{node.where}: got {len(results)} results, want {lacking[0]!r} as well.")
        for name in ends:
            scope.pop(name, None)
    return [scope[name] for name in block.outputs]


def run_node(node: Node, values: list[Any], scope: Scope | None = None) -> tuple[Any, ...]:
    """What a node gives.

    Raises:
        UnsupportedError: Nothing here computes its operator.
        BaracudaError: What its function raises, with the node named.
    """
    from baracuda.onnx.control import CONTROL

    while values and values[-1] is None:
        values.pop()
    call = Call(node, values)
    if node.operator in CONTROL:
        return CONTROL[node.operator](call, scope)
    known = None if node.own else folded(call)
    if known is not None:
        return known
    entry = Operator(_users(node.own)) if node.own else TABLE.get(node.operator)
    if entry is None:
        raise lacks({node.operator: [node.name]})
    try:
        inputs = values if entry.raw else [_tensor(call, i) for i in range(len(values))]
        made = entry.rule(call, *inputs)
    except BaracudaError as error:
        if not str(error).startswith(node.where):
            error.args = (f"{node.where} of {_shapes(values)}: {error}",)
        raise
    except BufferError:
        raise
    except Exception as error:
        raise InvalidProblemError(
            f"{node.where} of {_shapes(values)}: {type(error).__name__}: {error}. Are its inputs and attributes those of the operator? "
            "onnx.checker.check_model says more.",
            [Refusal("problem", node.operator, str(error), "a node as ONNX describes it")],
        ) from error
    results = made if isinstance(made, tuple) else (made,)
    if node.op not in MAYBE:
        for i, value in enumerate(results):
            if value is None and call.wants(i):
                call.refuse(f"output {node.outputs[i]!r}", "its first outputs alone")
    return results


def _users(function: Callable[..., Any]) -> Callable[..., Any]:
    """A user's function as a rule."""
    return lambda c, *xs: function(*xs, **{name: c.get(name) for name in c.node.attributes})


def _tensor(call: Call, i: int) -> Any:
    value = call.values[i]
    if isinstance(value, Known):
        if value.is_text:
            call.refuse("an input of texts", "numbers", code="element")
        try:
            return value.tensor
        except BaracudaError:
            call.refuse(f"elements of type {value.array.dtype}", "one that kernels here take", code="element")
    if isinstance(value, list):
        call.wrong("a sequence", "a tensor")
    return value


def _shapes(values: list[Any]) -> str:
    """The inputs, for messages."""
    return ", ".join(_shape(v) for v in values) or "no inputs"


def _shape(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, list):
        return f"a sequence of {len(value)}"
    element = value.array.dtype if isinstance(value, Known) else value.element
    return f"{element} {tuple(map(int, value.shape)) if isinstance(value, Known) else value.shape}"


def lacks(missing: Mapping[str, list[str]]) -> UnsupportedError:
    """The error that names operators that are not here, with their nodes."""
    lines = []
    for op, nodes in missing.items():
        more = f" and {len(nodes) - 3} more" if len(nodes) > 3 else ""
        lines.append(f"  {op}: node {', '.join(map(repr, nodes[:3]))}{more}")
    text = "\n".join(lines)
    return UnsupportedError(
        f"model: got operators that nothing here computes:\n{text}\nExport the network without them (another opset, or without the "
        "optimizations that made them), or give a function of your own: load(..., operators={name: function}). docs/onnx-networks.md "
        "lists the operators that there are.",
        [Refusal("operator", op, "an operator without a function", "one of the table") for op in missing],
    )


def constants_first(block: Block) -> None:
    """Runs what depends on known values alone, once: their nodes become known values.

    What makes much of little (`Expand`, `ConstantOfShape`) is left for the run, and so is what is refused.
    """
    from baracuda.onnx.control import CONTROL

    kept = []
    for node in block.nodes:
        plain = node.operator in TABLE and node.operator not in CONTROL and node.op not in _GROWING
        if plain and node.inputs and all(not n or n in block.known for n in node.inputs):
            try:
                results = run_node(node, [block.known[n] if n else None for n in node.inputs])
            except BaracudaError:
                kept.append(node)
                continue
            found = {n: _as_known(v) for n, v in zip(node.outputs, results, strict=False) if n}
            if len(found) == sum(map(bool, node.outputs)) and None not in found.values():
                block.known.update({n: v for n, v in found.items() if v is not None})
                continue
        kept.append(node)
    block.nodes = kept
    used = {name for node in kept for name in uses(node)} | set(block.outputs)
    block.known = {name: value for name, value in block.known.items() if name in used}
    block.set_ends()


_GROWING = ("ConstantOfShape", "Expand", "EyeLike", "OneHot", "Pad", "Range", "Resize", "Tile", "Upsample")


def _as_known(value: Any) -> Known | None:
    if isinstance(value, Known):
        return value
    if isinstance(value, bc.Tensor):
        made = Known(value.numpy())
        made.__dict__["tensor"] = value
        return made
    return None
