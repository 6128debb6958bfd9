"""Facts of the binary family's functions; prove/facts.py says what they are."""

from __future__ import annotations

import numpy as np

from baracuda.ops.binary.binary_kinds import KINDS
from baracuda.prove.draws import Arguments, Draws
from baracuda.prove.facts import Facts, X, call, ones, ramp
from baracuda.prove.rules import alike, along, elementwise

_BY_NUMBERS = frozenset(["add", "sub", "mul", "div", "pow", "floor_divide", "remainder", "fmod", "eq", "lt", "gt"])


def _drawn(d: Draws) -> Arguments:
    """Numbers from where the function is sampled; the second operand is of the first one's shape, a row, a column or a number."""
    kind = KINDS.get(d.name)
    first, second = (kind.a_range, kind.b_range) if kind else (None, None)
    shift = "shift" in d.name or d.name == "ldexp"
    shape, (a, b) = d.shape(), d.parameters[:2]
    other = d.tensor(d.part(shape), (0.0, 6.0) if shift else second or "normal")
    return {a: d.tensor(shape, first or "normal"), b: 2 if d.chance(0.1) and d.name in _BY_NUMBERS else other}


FACTS = Facts(
    category="binary_elementwise",
    samples={
        "logspace": call(0, 2, 5),
        "mvlgamma": call(X, 2),
    },
    steps={
        "clamp_max": [call(ramp(3), 0.5)],
        "clamp_min": [call(ramp(3), 0.5)],
        "cumulative_trapezoid": [call(ramp(2, 3).astype(np.float16))],
        "isin": [call(ones(3), ones(2), invert=True)],
        "isreal": [call(ramp(3)), call(ramp(3).astype(np.complex64))],
        "trapezoid": [call(ramp(2, 3).astype(np.float16))],
        "trapz": [call(ramp(2, 3).astype(np.float16))],
    },
    drawn={
        "binary": "binary",
    },
    sampled=("arithmetic",),
    sweep={
        "binary": _drawn,
        "prelu": lambda d: {"input": d.floats(shape := d.shape(2, 5)), "weight": d.floats((shape[1],), plain=True)},
        "arithmetic": elementwise(),
        "allclose": alike((0.5, 0.6), rtol=1.0),
        "clamp_max": elementwise(max=0.5),
        "clamp_min": elementwise(min=-0.5),
        "cumulative_trapezoid": along(),
        "diff": along(least=2),
        "entr": elementwise((0.0, 2.0)),
        "equal": alike((0.5, 0.5)),
        "fill": elementwise(value=2),
        "isin": lambda d: {
            "elements": d.tensor(d.shape(), (0, 1000)),
            "test_elements": d.tensor((d.between(1, min(1000, d.count)),), (0, 1000), plain=True),
        },
        "logspace": lambda d: {"start": 0.0, "end": 2.0, "steps": d.count},
        "mvlgamma": elementwise((3.0, 9.0), p=3),
        "trapezoid": along(),
        "trapz": along(),
        "xlog1py": elementwise((0.5, 2.0)),
    },
)
