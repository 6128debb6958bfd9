"""Reference of norms whose results are codes: that of the norms, in units of scales."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from baracuda.describe.elements import Element
from baracuda.ops.norm.layer_norm import LayerNormDescriptor
from baracuda.ops.norm.norm import RmsNormDescriptor
from baracuda.ops.norm.norm_quantize import NormQuantizeDescriptor
from baracuda.ops.norm.norm_ref import EPS
from baracuda.ops.norm.norm_ref import reference as norm_reference
from baracuda.ops.quant.epilogue import CODES
from baracuda.ops.quant.epilogue_ref import coded
from baracuda.prove.reference import Array, Case, Expected, round_to, to_reference

# Shapes with groups: none, one for each value, several in a tile and across tiles, longer than what kernels keep.
SHAPES: tuple[tuple[tuple[int, ...], int | None], ...] = (
    ((1,), None), ((7,), 7), ((3, 70), None), ((5, 33), 11), ((4, 5, 6), 1), ((2, 4100), 820), ((40, 130), 65), ((3, 1024), 128),
    ((2, 8448), None), ((2, 36000), 18000), ((1, 20000), None), ((600, 24), 24), ((0, 5), None), ((3, 0), None),
    ((2, 1, 3, 2, 4, 1, 2, 6), 3),
)  # fmt: skip


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Scales for rows, for groups and given, with and without each optional tensor; NaN, infinities, zeros."""
    for i, (shape, group) in enumerate(SHAPES):
        for j, code in enumerate(CODES):
            if (i + j) % 2 and max(shape) > 300:
                continue
            yield _case(op, element, code, shape, None if i % 4 == 3 else group, i + j, rng, given=i % 4 == 3)
    for code in CODES:
        special = _case(op, element, code, (5, 33), None, 2, rng, given=False)
        x = special.tensors["x"]
        x[1, 3], x[2, 5], x[3] = np.nan, np.inf, 0
        special.note = "special values"
        yield special


def _case(
    op: str, element: Element, code: Element, shape: tuple[int, ...], group: int | None, variant: int,
    rng: np.random.Generator, *, given: bool,
) -> Case:  # fmt: skip
    weight, residual, bias = variant % 2 == 1, variant % 3 == 0, op == "layer_norm_quantize" and variant % 4 < 2
    offset = float(weight and variant % 4 == 3)
    desc = NormQuantizeDescriptor(op, shape, element, code, weight, bias, residual, given, group, offset)
    tensors: dict[str, Array] = {
        p.name: rng.normal(0.3, 1, tuple(int(n) for n in p.shape)) for p in desc.signature().inputs if p.name != "given"
    }
    if given:
        tensors["given"] = np.asarray(0.02 if code is Element.I8 else 0.003)
    return Case(desc, tensors, {"eps": EPS})


def reference(case: Case) -> dict[str, Expected]:
    """Values of the norm over their scales, the scales, and the sum."""
    desc = case.descriptor
    assert isinstance(desc, NormQuantizeDescriptor)
    tensors: dict[str, Any] = {n: t for n, t in case.tensors.items() if n in ("x", "weight", "bias")}
    found: dict[str, Expected] = {}
    if desc.residual:
        with np.errstate(all="ignore"):
            total = np.asarray(case.tensors["x"]) + np.asarray(case.tensors["residual"])
        found["sum"] = Expected(total)
        tensors["x"] = to_reference(round_to(total, desc.element))
    made: Any = (
        LayerNormDescriptor(desc.input_shape, desc.input_shape[-1:], Element.F32, desc.weight, desc.bias, False, desc.weight_offset)
        if desc.kind == "layer_norm_quantize"
        else RmsNormDescriptor(desc.input_shape, desc.input_shape[-1:], Element.F32, desc.weight, False, desc.weight_offset)
    )  # fmt: skip
    empty = np.zeros(np.shape(case.tensors["x"]))
    y = norm_reference(Case(made, tensors, case.scalars))["y"] if empty.size else Expected(empty, empty)
    return found | coded(y, desc.code_element, desc.group, case.tensors.get("given"))
