"""Reference of gated activations whose results are codes: that of the activations, in units of scales."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from baracuda.describe.elements import Element
from baracuda.ops.gated.gated import GatedActivationDescriptor, GateHalf
from baracuda.ops.gated.gated_quantize import GatedQuantizeDescriptor
from baracuda.ops.gated.gated_ref import SPECIAL
from baracuda.ops.gated.gated_ref import reference as gated_reference
from baracuda.ops.quant.epilogue import CODES
from baracuda.ops.quant.epilogue_ref import coded
from baracuda.prove.reference import Case, Expected

# Shapes, what is split, and groups: in a tile and across tiles, longer than what kernels keep.
SHAPES: tuple[tuple[tuple[int, ...], int | None, int | None], ...] = (
    ((2,), -1, None), ((64,), 0, 8), ((3, 10), -1, 1), ((4, 7), 0, None), ((5, 6, 130), 2, 13), ((2, 2050), 1, None),
    ((3, 2048), 1, 128), ((3, 4, 5), 1, 5), ((0, 4), -1, None), ((3, 0), None, None), ((2, 1, 3, 2, 1, 2, 2, 4), 3, 2),
    ((7, 33), None, 11), ((2, 9000), 0, 4500),
    ((2, 18000), None, None), ((600, 24), None, 24),
)  # fmt: skip


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Splits of every axis, both halves, pairs; scales for rows, for groups and given; special values."""
    for i, (shape, dim, group) in enumerate(SHAPES):
        for j, code in enumerate(CODES):
            if (i + j) % 2 and (max(shape) > 300 or len(shape) > 3):
                continue
            half, given = GateHalf.FIRST if i % 2 else GateHalf.SECOND, i % 4 == 3
            desc = GatedQuantizeDescriptor(op, shape, dim, element, half, code, given, None if given else group)
            tensors = {p.name: rng.normal(0, 2, tuple(int(n) for n in p.shape)) for p in desc.signature().inputs}
            if given:
                tensors["given"] = np.asarray(0.02 if code is Element.I8 else 0.003)
            yield Case(desc, tensors)
    for code in CODES:
        n = len(SPECIAL)
        x = rng.normal(0, 2, (n, 2 * n))
        x[: n // 2, n:] = np.where(np.isnan(SPECIAL), 1, SPECIAL)
        x[n // 2 :, n:] = np.where(np.abs(SPECIAL) > 100, 1, SPECIAL)  # zeros stay zeros where the scale is NaN
        yield Case(GatedQuantizeDescriptor(op, x.shape, 1, element, code_element=code), {"x": x}, note="special values")


def reference(case: Case) -> dict[str, Expected]:
    """Values of the activation over their scales, and the scales."""
    desc = case.descriptor
    assert isinstance(desc, GatedQuantizeDescriptor)
    kind = desc.kind.removesuffix("_quantize")
    plain = GatedActivationDescriptor(kind, desc.input_shape, desc.split_dim, Element.F32, desc.gate_half)
    y = gated_reference(Case(plain, {n: t for n, t in case.tensors.items() if n != "given"}))["y"]
    return coded(y, desc.code_element, desc.group, case.tensors.get("given"))
