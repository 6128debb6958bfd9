"""The text that a fused kernel is made from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from baracuda import _core
from baracuda.choose.plan import Request
from baracuda.choose.sku import NO_PREFERENCE, rows
from baracuda.memory.device import BACKENDS, place_of

if TYPE_CHECKING:
    from baracuda.ops.expr.expr import ExprDescriptor


def text_of(desc: ExprDescriptor, device: Any, whole: bool) -> str:
    """The program of a kernel on a cpu; on a GPU the text that is compiled for it.

    Args:
        desc: The kernel's descriptor.
        device: It need not be there.
        whole: Also what every text begins with: the functions themselves, thousands of lines.
    """
    backend = place_of(device)[0]
    if BACKENDS[backend] == "cpu":
        return desc.program
    row = next(r["index"] for r in rows() if r["op"] == "expr" and r["backend"] == "cuda")  # whose text Metal's is, too
    signature = desc.signature()
    request = Request.of(signature, device, NO_PREFERENCE, None, 0)
    return str(_core.source(row, backend, whole, *request.question(desc, signature)))
