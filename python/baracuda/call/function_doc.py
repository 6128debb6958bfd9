"""Docstrings of functional functions: what the rule says, and what the SKU table promises about the CPU kernel behind it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from baracuda import _index
from baracuda.call.argument_doc import arguments
from baracuda.call.op import NotDifferentiable
from baracuda.choose.question import steps_of
from baracuda.choose.sku import make_sku, rows
from baracuda.describe.elements import Element

if TYPE_CHECKING:
    from baracuda.call.op import Op
    from baracuda.call.steps import Steps

_GENERAL = (
    "Tensors may be NumPy arrays, torch tensors, bc.Tensor or anything with __dlpack__, of any strides and rank up to 8; "
    "results are of the first one's kind."
)
_RAISES = """Raises:
    InvalidProblemError: An argument is wrong; names it and says what to do.
    UnsupportedError: No kernel takes these elements."""


def docstring(fn: Any, summary: str) -> str:
    """The whole docstring of a function, whose rule has the docstring `summary`."""
    name = fn.__name__
    if name not in _index.FUNCTIONS:
        return summary
    parts = [summary.strip(), *([] if "Args:" in summary else [arguments(fn)]), _GENERAL]
    steps = steps_of(name)
    op_name = name.removesuffix("_backward").removesuffix("_forward")
    if name in _index.OPS or steps == ((op_name, _direction(name)),):
        found: Op = next(o for o in import_module(_index.OPS[op_name]).OPS if o.name == op_name)
        parts.append("\n".join(_facts(name, found)))
    else:
        parts.append("\n".join(_facts_of_steps(steps)))
    return "\n\n".join(part for part in (*parts, _RAISES) if part)


def _promises(op: str, direction: str, prefix: str = "") -> list[str]:
    """What the op's rows promise on the CPU, for which elements."""
    lines = []
    for row in rows():
        if (row["op"], row["direction"], row["backend"]) != (op, direction, "cpu"):
            continue
        elements = [Element(e) for e in row["elements"]]
        promise = str(make_sku(row, elements[0]).precision_guarantee).rpartition(", accumulates")[0]
        lines.append(f"    {prefix}{' '.join(map(str, elements))}: {promise}")
    return lines


def _facts_of_steps(steps: Steps) -> list[str]:
    names = [f"{op}_backward" if direction == "backward" else op for op, direction in steps]
    lines = [
        f"Made of {', '.join(f'`{n}`' for n in names)}; what runs depends on the arguments. Bounds of the steps add up:"
    ]
    for name, (op, direction) in zip(names, steps, strict=True):
        lines += _promises(op, direction, f"{name}, ")
    return lines


def _direction(name: str) -> str:
    return "backward" if name.endswith("_backward") else "forward"


def _facts(name: str, op: Op) -> list[str]:
    direction = _direction(name)
    lines = _promises(op.name, direction)
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
