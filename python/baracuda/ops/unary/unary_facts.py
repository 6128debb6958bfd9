"""Facts of the unary family's functions; prove/facts.py says what they are."""

from __future__ import annotations

from baracuda.ops.unary.unary_kinds import KINDS, Kind
from baracuda.prove.draws import Arguments, Draws
from baracuda.prove.facts import OWN, Facts, because


def _drawn(d: Draws) -> Arguments:
    """Numbers from where the function is smooth, 0.5 for those that have no default."""
    kind = KINDS.get(d.name.replace("arc", "a"), Kind("", ""))
    given: Arguments = {"input": d.tensor(d.shape(), kind.smooth)}
    return given | {n: 0.5 for n in d.parameters if n not in ("input", "x")}


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
    sweep={
        "unary": _drawn,
    },
)
