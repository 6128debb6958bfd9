"""Float64 reference of the gated activations."""

from __future__ import annotations

from collections.abc import Iterator
from math import erf as _erf
from math import pi

import numpy as np

from baracuda.describe.elements import Element
from baracuda.ops.gated.gated import GatedActivationBackwardDescriptor, GatedActivationDescriptor, GateHalf
from baracuda.prove.reference import Array, Case, Expected

erf = np.vectorize(_erf, otypes=[np.float64])

SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 20.0, -20.0, 88.0, -88.0, 103.0, -104.0, 1e-3, -1e-30, np.nan])


def sigmoid(b: Array) -> Array:
    """1 / (1 + exp(-b)), without overflow."""
    e = np.exp(-np.abs(b))
    return np.where(b >= 0, 1 / (1 + e), e / (1 + e))


def gate(kind: str, b: Array) -> tuple[Array, Array, Array, Array]:
    """(g, g', sum |terms| of g, sum |terms| of g')."""
    if kind == "glu":
        s = sigmoid(b)
        return s, s * sigmoid(-b), s, s * sigmoid(-b)
    if kind == "reglu":
        g, d = np.where(b <= 0, 0, b), np.where(b <= 0, 0.0, 1.0)
        return g, d, np.abs(g), d
    if kind == "swiglu":
        s, r = sigmoid(b), sigmoid(-b)
        return b * s, s + b * s * r, np.abs(b * s), s + np.abs(b) * s * r
    cdf, pdf = (1 + erf(b / np.sqrt(2))) / 2, np.exp(-b * b / 2) / np.sqrt(2 * pi)
    # The argument of erfc and the exponent are rounded, which far out in the tail costs |b|^2 ulp of tiny values.
    return b * cdf, cdf + b * pdf, np.abs(b), 1 + np.abs(b) * pdf * (1 + b * b)


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Splits of every axis, ranks 1 to 8, both halves, pairs, sizes 0 and 1, special values."""
    shapes: list[tuple[tuple[int, ...], int | None]] = [
        ((2,), -1), ((64,), 0), ((3, 10), -1), ((4, 7), 0), ((5, 6, 130), 2), ((2, 2050), 1), ((3, 4, 5), 1), ((0, 4), -1), ((3, 0), 1),
        ((2, 1, 3, 2, 1, 2, 2, 4), 3), ((7, 33), None), ((), None), ((2, 3, 1, 2, 1, 2, 3, 2), None),
    ]  # fmt: skip
    for i, (shape, dim) in enumerate(shapes):
        half = GateHalf.FIRST if i % 2 else GateHalf.SECOND
        yield _case(op, direction, element, shape, dim, half, rng)
    special = _case(op, direction, element, (len(SPECIAL), 2 * len(SPECIAL)), 1, GateHalf.SECOND, rng)
    special.tensors["x"][:, len(SPECIAL) :] = SPECIAL
    special.note, special.exact_gradient = "special values", False
    yield special


def _case(
    op: str,
    direction: str,
    element: Element,
    shape: tuple[int, ...],
    dim: int | None,
    half: GateHalf,
    rng: np.random.Generator,
) -> Case:
    cls = GatedActivationDescriptor if direction == "forward" else GatedActivationBackwardDescriptor
    desc = cls(op, shape, dim, element, half)
    names = [p.name for p in desc.signature().inputs]
    tensors = {n: rng.normal(0, 2, desc.signature()[n].shape) for n in names}
    # Away from relu's kink, so that differences see its derivative.
    return Case(desc, {n: np.where(np.abs(v) < 0.05, 0.5, v) for n, v in tensors.items()})


def _halves(case: Case, desc: GatedActivationDescriptor | GatedActivationBackwardDescriptor) -> tuple[Array, Array]:
    if desc.split_dim is None:
        return case.tensors["value"], case.tensors["gate"]
    first, second = np.split(case.tensors["x"], 2, axis=desc.split_dim)
    return (second, first) if desc.gate_half is GateHalf.FIRST else (first, second)


def reference(case: Case) -> dict[str, Expected]:
    """Outputs in float64."""
    desc = case.descriptor
    assert isinstance(desc, (GatedActivationDescriptor, GatedActivationBackwardDescriptor))
    a, b = _halves(case, desc)
    with np.errstate(all="ignore"):
        g, dg, g_size, dg_size = gate(desc.kind, b)
        if isinstance(desc, GatedActivationDescriptor):
            return {"y": Expected(a * g, np.abs(a) * g_size)}
        dy = case.tensors["dy"]
        product = np.where(dg == 0, 0, a * dg)  # a far gate's slope is 0 also times infinity
        da, db = Expected(dy * g, np.abs(dy) * g_size), Expected(dy * product, np.abs(dy) * (np.abs(a) * dg_size))
        da.lost = db.lost = 1 + np.abs(dy)  # the gate, or its product with the value, before dy multiplies it
    if desc.split_dim is None:
        return {"dvalue": da, "dgate": db}
    pair = (db, da) if desc.gate_half is GateHalf.FIRST else (da, db)

    def joined(parts: list[Array]) -> Array:
        shaped = [np.broadcast_to(x, p.value.shape) for x, p in zip(parts, pair, strict=True)]
        return np.concatenate(shaped, desc.split_dim)

    return {
        "dx": Expected(
            joined([p.value for p in pair]), joined([p.magnitude for p in pair]), lost=joined([p.lost for p in pair])
        )
    }


def forward_of(case: Case) -> Case:
    """The forward case of a backward one."""
    d = case.descriptor
    assert isinstance(d, GatedActivationBackwardDescriptor)
    desc = GatedActivationDescriptor(d.kind, d.input_shape, d.split_dim, Element.F64, d.gate_half)
    return Case(desc, {k: v for k, v in case.tensors.items() if k != "dy"})
