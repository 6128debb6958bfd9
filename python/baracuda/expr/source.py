"""The text that a fused kernel is made from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from baracuda import _core
from baracuda.choose.plan import Request
from baracuda.choose.sku import NO_PREFERENCE, rows
from baracuda.describe.errors import InvalidProblemError, shown
from baracuda.expr.c_text import c_text
from baracuda.memory.device import BACKENDS, place_of

if TYPE_CHECKING:
    from baracuda.ops.expr.expr import ExprDescriptor


DIALECTS = ("program", "c", "cuda", "metal")


def dialect_of(dialect: str | None, device: Any) -> str:
    """What a text is written in.

    Raises:
        InvalidProblemError: It is none of the dialects.
    """
    backend = BACKENDS[place_of(device)[0]]
    if dialect is None:
        return "program" if backend == "cpu" else backend
    if dialect not in DIALECTS:
        raise InvalidProblemError(f"dialect: got {shown(dialect)}, want one of {', '.join(DIALECTS)}.")
    return dialect


def text_of(desc: ExprDescriptor, dialect: str, whole: bool, name: str = "expression") -> str:
    """A kernel in a dialect.

    Args:
        desc: The kernel's descriptor.
        dialect: One of DIALECTS; no device needs to be there.
        whole: Of cuda and metal, also what every text begins with: the functions themselves, thousands of lines.
        name: Of the function in C.
    """
    if dialect == "program":
        return desc.program
    if dialect == "c":
        return c_text(desc, name)
    backend = BACKENDS.index(dialect)
    row = next(r["index"] for r in rows() if r["op"] == "expr" and r["backend"] == "cuda")  # whose text Metal's is, too
    signature = desc.signature()
    request = Request.of(signature, dialect, NO_PREFERENCE, None, 0)
    return str(_core.source(row, backend, whole, *request.question(desc, signature)))
