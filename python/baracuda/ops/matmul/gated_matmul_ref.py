"""Reference of gated_matmul: the product in extended precision, then the gate of gated_ref.py."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from baracuda.describe.elements import Element
from baracuda.ops.gated.gated import GateHalf
from baracuda.ops.gated.gated_ref import gate
from baracuda.ops.matmul.gated_matmul import Gate, GatedMatmulDescriptor
from baracuda.ops.matmul.matmul_ref import STEEPEST
from baracuda.prove.reference import Case, Expected, epsilon

C = 9  # of the rows' promise

# (a, b): one to eight rows, ranks 2 to 4, halves of one column, sums beyond a block, sizes 0.
_SHAPES: tuple[tuple[tuple[int, ...], tuple[int, int]], ...] = (
    ((1, 1), (1, 2)), ((1, 130), (130, 70)), ((3, 513), (513, 40)), ((8, 31), (31, 130)), ((2, 1, 300), (300, 34)),
    ((2, 2, 2, 9), (9, 11 * 2)), ((12, 40), (40, 6)), ((1, 600), (600, 1100)), ((5, 0), (0, 8)), ((0, 4), (4, 6)),
    ((4, 4), (4, 0)),
)  # fmt: skip


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Every gate and half, sums that cancel, NaN and infinities."""
    for i, (a, b) in enumerate(_SHAPES):
        for j, kind in enumerate(Gate):
            half = list(GateHalf)[(i + j) % 2]
            yield _case(GatedMatmulDescriptor(a, b, element, kind, half), rng)
    cancelling = _case(GatedMatmulDescriptor((3, 600), (600, 50), element), rng)
    cancelling.tensors["a"][:, 300:] = -cancelling.tensors["a"][:, :300]
    cancelling.tensors["b"][300:] = cancelling.tensors["b"][:300]
    cancelling.note = "sums that cancel"
    yield cancelling
    for kind in Gate:
        wild = _case(GatedMatmulDescriptor((2, 30), (30, 40), element, kind, GateHalf.FIRST), rng)
        a, b = wild.tensors["a"], wild.tensors["b"]
        a[0, 3], a[1, 5], a[1, 6] = np.nan, np.inf, 0.0
        b[6, 7], b[9, 8], b[5, 29] = np.inf, np.nan, -np.inf
        wild.note = "NaN and inf"
        yield wild


def _case(desc: GatedMatmulDescriptor, rng: np.random.Generator) -> Case:
    a, b = (rng.normal(0, 1, p.shape) for p in desc.signature().inputs)
    return Case(desc, {"a": a, "b": b / max(1, len(b)) ** 0.5})


def reference(case: Case) -> dict[str, Expected]:
    """Gives value * g(gate)."""
    desc = case.descriptor
    assert isinstance(desc, GatedMatmulDescriptor)
    a, b = (case.tensors[n].astype(np.longdouble) for n in "ab")
    terms = max(1, a.shape[-1])
    with np.errstate(all="ignore"):
        (value, x), (v_size, x_size) = (np.split(t, 2, axis=-1) for t in (a @ b, np.abs(a) @ np.abs(b)))
        if desc.gate_half is GateHalf.FIRST:
            value, x, v_size, x_size = x, value, x_size, v_size
        g, _, g_size, _ = gate(desc.gate.value, x)
        result = value * g
        both = C * epsilon(desc.element.compute) * terms**0.5 * v_size  # what value may be off by
        magnitude = g_size * v_size + STEEPEST * (np.abs(value) + both) * x_size + np.abs(result)
        found = (t.astype(np.float64) for t in (result, magnitude, np.maximum(v_size, x_size)))
        result, magnitude, reach = found
    return {"out": Expected(result, magnitude, terms, reach)}
