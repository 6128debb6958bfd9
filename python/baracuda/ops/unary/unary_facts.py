"""Facts of the unary family's functions; prove/facts.py says what they are."""

from __future__ import annotations

from baracuda.ops.unary.unary_kinds import KINDS
from baracuda.prove.facts import OWN, Facts, because

FACTS = Facts(
    category="unary_elementwise",
    alone=because(OWN, " ".join(name for name, kind in KINDS.items() if not kind.of_torch)),
    drawn={
        "unary": "unary",
    },
    partly={
        "nn.functional.silu.complex": "no complex numbers",
        "nn.functional.hardtanh": "bounds of integers have to be integers",
    },
)
