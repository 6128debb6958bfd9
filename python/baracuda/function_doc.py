"""Docstrings of functional functions: what the rule says, and what the SKU table promises about the CPU kernel behind it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from baracuda import _index
from baracuda.elements import Element
from baracuda.op import NotDifferentiable
from baracuda.sku import make_sku, rows

if TYPE_CHECKING:
    from baracuda.op import Op

_GENERAL = (
    "Tensors may be NumPy arrays, torch tensors, bc.Tensor or anything with __dlpack__, of any strides and rank up to 8; "
    "results are of the first one's kind."
)
_RAISES = """Raises:
    InvalidProblemError: An argument is wrong; names it and says what to do.
    UnsupportedError: No kernel takes these elements."""


def docstring(name: str, summary: str) -> str:
    """The whole docstring of the function `name`, whose rule has the docstring `summary`."""
    op_name = name if name in _index.OPS else name.removesuffix("_backward").removesuffix("_forward")
    parts = [summary.strip(), _GENERAL]
    if op_name in _index.OPS:
        op: Op = next(o for o in import_module(_index.OPS[op_name]).OPS if o.name == op_name)
        parts.append("\n".join(_facts(name, op)))
    return "\n\n".join([*parts, _RAISES])


def _facts(name: str, op: Op) -> list[str]:
    direction = "backward" if name.endswith("_backward") else "forward"
    lines = []
    for row in rows():
        if (row["op"], row["direction"], row["backend"]) != (op.name, direction, "cpu"):
            continue
        elements = [Element(e) for e in row["elements"]]
        sku = make_sku(row, elements[0])
        promise = str(sku.precision_guarantee).rpartition(", accumulates")[0]
        lines.append(f"    {' '.join(map(str, elements))}: {promise}")
    if lines:
        lines.insert(0, "Elements, error bounds and bits (docs/guarantees.md):")
    if name == op.name:
        if isinstance(op.backward, NotDifferentiable):
            lines.append(f"No gradient: {op.backward.why.rstrip('.')}.")
        else:
            lines.append(f"Gradient: `y, pull = bc.vjp(F.{name}, ...)`.")
    descriptor = op.forward if direction == "forward" else op.backward
    if not isinstance(descriptor, NotDifferentiable):
        kind = f'kind="{op.name}", ' if descriptor.kinds else ""
        lines.append(f"As a plan, with its rules for shapes and special values: `bc.{descriptor.__name__}({kind}...)`.")
    return lines
