"""The node tests of the package `onnx`: its own generator, without the models and function bodies that it builds of them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np


class NotRun(Exception):
    """A case that is not run; says why."""


NO_OPTION = "for an option that the function does not have"


@dataclass(frozen=True)
class NodeCase:
    """One node with what it is given and what ONNX wants of it.

    Attributes:
        name: As ONNX calls the test.
        op: Operator, with its domain in front where that is not ONNX's own.
        attributes: Those that the node has.
        inputs: Values by place; None where an optional one is left out.
        outputs: Wanted values by place; None where nobody asks for one.
        opset: Version of the operators that the test is made for.
    """

    name: str
    op: str
    attributes: dict[str, Any]
    inputs: list[Any]
    outputs: list[Any]
    opset: int

    def get(self, name: str, default: Any = None) -> Any:
        """An attribute; text as text."""
        value = self.attributes.get(name, default)
        return value.decode() if isinstance(value, bytes) else value


def _placed(names: Any, values: Any) -> list[Any]:
    left = iter(values)
    return [next(left, None) if name else None for name in names]


@cache
def load() -> dict[str, list[NodeCase]]:
    """All node tests by operator."""
    import onnx
    from onnx.backend.test.case import base, node

    found: dict[str, list[NodeCase]] = {}

    def expect(proto: Any, inputs: Any, outputs: Any, name: str, **kwargs: Any) -> None:
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in proto.attribute}
        op = f"{proto.domain}.{proto.op_type}" if proto.domain else proto.op_type
        given = [o.version for o in kwargs.get("opset_imports", ()) if o.domain == proto.domain]
        opset = given[0] if given else onnx.defs.get_schema(proto.op_type, domain=proto.domain).since_version
        case = NodeCase(name, op, attributes, _placed(proto.input, inputs), _placed(proto.output, outputs), opset)
        found.setdefault(op, []).append(case)

    before = node.expect, base.process_snippet
    node.expect, base.process_snippet = expect, lambda *_: ("", "")
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            node.import_recursive(node)
    finally:
        node.expect, base.process_snippet = before
    return dict(sorted(found.items()))
