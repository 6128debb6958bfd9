"""The node tests of the package `onnx`: its own generator, without the models and function bodies that it builds of them."""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np


@dataclass(frozen=True)
class NodeCase:
    """One node with what it is given and what ONNX wants of it.

    Attributes:
        name: As ONNX calls the test.
        op: Operator, with its domain in front where that is not ONNX's own.
        node: The node.
        inputs: Values of the inputs that have names, in order.
        outputs: Wanted values of the outputs that have names, in order.
        opset: Version of the operators that the test is made for.
    """

    name: str
    op: str
    node: Any
    inputs: list[Any]
    outputs: list[Any]
    opset: int


def _forget() -> None:
    """Has the modules of tests, which register theirs when they are imported, be imported again."""
    for name in [n for n in sys.modules if n.startswith("onnx.backend.test.case.node.")]:
        del sys.modules[name]


@cache
def load() -> dict[str, list[NodeCase]]:
    """All node tests by operator."""
    import onnx
    from onnx.backend.test.case import base, node

    found: dict[str, list[NodeCase]] = {}

    def expect(proto: Any, inputs: Any, outputs: Any, name: str, **kwargs: Any) -> None:
        op = f"{proto.domain}.{proto.op_type}" if proto.domain else proto.op_type
        given = [o.version for o in kwargs.get("opset_imports", ()) if o.domain == proto.domain]
        opset = given[0] if given else onnx.defs.get_schema(proto.op_type, domain=proto.domain).since_version
        found.setdefault(op, []).append(NodeCase(name, op, proto, list(inputs), list(outputs), opset))

    _forget()
    before = node.expect, base.process_snippet
    node.expect, base.process_snippet = expect, lambda *_: ("", "")
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            node.import_recursive(node)
    finally:
        node.expect, base.process_snippet = before
        _forget()
    return dict(sorted(found.items()))
