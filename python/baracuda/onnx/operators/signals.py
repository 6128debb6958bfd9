"""Windows of signals."""

from __future__ import annotations

from math import pi
from typing import Any

from baracuda import functional as F
from baracuda.onnx.call import Call
from baracuda.onnx.operators.table import Rule, arange, cast, element_of, full, operator


def _window(*terms: float) -> Rule:
    """A sum of cosines of the place in a window, in f64."""

    def call(c: Call, size: Any) -> Any:
        n = c.number(0)
        turn = F.mul(arange(n, dtype="f64"), 2 * pi / (n if c.get("periodic", 1) else n - 1))
        y = full((n,), terms[0], dtype="f64")
        for k, term in enumerate(terms[1:], 1):
            y = F.add(y, F.mul(F.cos(F.mul(turn, float(k))), term))
        return cast(y, element_of(c, c.get("output_datatype", 1)))

    return call


operator("BlackmanWindow")(_window(0.42, -0.5, 0.08))
operator("HammingWindow")(_window(25 / 46, -21 / 46))
operator("HannWindow")(_window(0.5, -0.5))
