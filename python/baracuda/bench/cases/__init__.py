"""All cases, by family. A case whose op is not in this build becomes a skipped row."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from baracuda.bench.case import Case

MODULES = (
    "gated", "call", "small", "rows", "elementwise", "classes", "fused", "products", "images",
    "attention", "quantized", "indexing", "sorting", "training", "draws", "llama", "compiled",
)  # fmt: skip


def all_cases(quick: bool) -> list[Case]:
    """Every case; `quick` makes them small."""
    found: list[Case] = []
    for name in MODULES:
        found += import_module(f"baracuda.bench.cases.{name}").cases(quick)
    return found
