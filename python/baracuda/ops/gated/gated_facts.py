"""Facts of the gated family's functions; prove/facts.py says what they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from baracuda.prove.draws import Arguments, Draws
from baracuda.prove.facts import ONE, SCALES, Facts, X, because, call, ramp
from baracuda.prove.rules import alike


def _gated(name: str, gate: int) -> Callable[[Any], Callable[..., Any]]:
    """Torch's formula: a function of one half, times the other one."""

    def given(torch: Any) -> Callable[..., Any]:
        activation = getattr(torch.nn.functional, name)
        return lambda input, dim=-1: activation(input.chunk(2, dim)[gate]) * input.chunk(2, dim)[1 - gate]

    return given


def _halves(d: Draws) -> Arguments:
    shape, dim = d.along(least=2)
    return {"input": d.floats((*shape[:dim], shape[dim] + shape[dim] % 2, *shape[dim + 1 :])), "dim": dim}


FACTS = Facts(
    category="gated_activation",
    samples={
        "geglu_quantize": call(X, 0, "f8e5m2", scale=ONE),
        "glu_quantize": call(X, group=3),
        "reglu_quantize": call(X, group=3),
        "silu_and_mul_quantize": call(X, 0, "f8e5m2", scale=ONE),
        "swiglu_quantize": call(X, group=3),
    },
    steps={
        "silu_and_mul_backward": [call(ramp(2, 4), ramp(2, 8))],
        "silu_and_mul_quantize": [call(ramp(2, 4)), call(ramp(2, 4), scale=0.1)],
        "silu_mul_backward": [call(ramp(4), ramp(4), ramp(4))],
    },
    drawn={
        "gated": "gated",
    },
    peers={
        "silu_mul": lambda torch: lambda gate, value: torch.nn.functional.silu(gate) * value,
        "silu_and_mul": _gated("silu", 0),
        "swiglu": _gated("silu", 1),
        "geglu": _gated("gelu", 1),
        "reglu": _gated("relu", 1),
    },
    alone=because(
        SCALES,
        "glu_quantize reglu_quantize swiglu_quantize geglu_quantize silu_and_mul_quantize",
    ),
    sweep={
        "gated": _halves,
        "silu_mul": alike(),
    },
)
