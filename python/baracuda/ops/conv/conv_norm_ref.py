"""Reference of conv_norm: the convolution of conv_ref.py in extended precision, then what is behind it."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np

from baracuda.describe.elements import Element
from baracuda.ops.conv.conv_norm import ConvNormDescriptor
from baracuda.ops.conv.conv_ref import _Problem
from baracuda.prove.reference import Array, Case, Expected

EPS = 1e-3
# input, weight, stride, low, high, dilation, groups: places and channels in lanes, rows of one tile and more, pieces in
# place, few channels, channels that are convolved alone, empty batches.
_CASES: list[tuple[Any, ...]] = [
    ((1, 1, 1), (1, 1, 1)),
    ((2, 3, 7, 9), (9, 3, 3, 3), (1, 1), (1, 1), (1, 1)),
    ((2, 28, 7, 7), (30, 28, 3, 3), (1, 1), (1, 1), (1, 1)),
    ((1, 32, 11, 31), (64, 16, 3, 3), (2, 2), (1, 1), (1, 1), (1, 1), 2),
    ((2, 64, 8, 9), (32, 64, 1, 1), (2, 2)),
    ((1, 40, 7, 7), (48, 40, 1, 1)),
    ((1, 3, 12, 50), (10, 3, 1, 1)),
    ((3, 16, 6, 7), (16, 1, 3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 16),
    ((2, 2, 4, 5, 6), (3, 2, 3, 2, 2), (1, 2, 1), (1, 0, 1), (1, 1, 0)),
    ((0, 3, 5, 5), (4, 3, 3, 3), (1, 1), (1, 1), (1, 1)),
]
_FIELDS = ("stride", "low", "high", "dilation", "groups")


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """All of _CASES with and without each optional part; NaN and infinities."""
    for i, (shape, weight, *rest) in enumerate(_CASES):
        for j in (i, i + 3):
            fields = dict(zip(_FIELDS, rest, strict=False))
            yield _case(
                ConvNormDescriptor(
                    shape, weight, **fields, element=element, bias=j % 2 == 1, scale=j % 3 != 0, shift=j % 4 != 1,
                    relu=j % 2 == 0,
                ), rng,
            )  # fmt: skip
    wild = _case(ConvNormDescriptor((2, 3, 8, 9), (9, 3, 3, 3), low=(1, 1), element=element), rng)
    wild.tensors["x"][0, 0, 2, 3], wild.tensors["x"][1, 2, 4, 1] = np.inf, np.nan
    wild.note = "NaN and inf"
    yield wild


def _case(desc: ConvNormDescriptor, rng: np.random.Generator) -> Case:
    tensors = {p.name: rng.normal(size=p.shape) for p in desc.signature().inputs}
    tensors["var"] = np.abs(tensors["var"])
    return Case(desc, tensors, {"eps": EPS})


def reference(case: Case) -> dict[str, Expected]:
    """Gives y."""
    desc: Any = case.descriptor
    t = {k: np.asarray(v, np.longdouble) for k, v in case.tensors.items()}
    column = (-1, *(1,) * (len(desc.input_shape) - 2))
    p, terms = _Problem(desc), desc.weight_shape[1] * prod(desc.weight_shape[2:]) + 1

    def of(name: str, none: float) -> Array:
        return np.asarray(t.get(name, np.full(desc.result_shape()[1], none, np.longdouble))).reshape(column)

    with np.errstate(all="ignore"):
        bias, mean, scale, shift = of("bias", 0), of("mean", 0), of("scale", 1), of("shift", 0)
        factor = scale / np.sqrt(of("var", 0) + np.longdouble(case.scalars["eps"]))
        centred = p.to_result(t["x"], t["weight"]) + bias - mean
        size = p.to_result(np.abs(t["x"]), np.abs(t["weight"])) + np.abs(bias) + np.abs(mean)
        y, magnitude = centred * factor + shift, size * np.abs(factor) + np.abs(shift)
        y = np.where(y <= 0, 0, y) if desc.relu else y
        rstd = np.abs(factor / np.where(scale == 0, 1, scale))
        reach = np.maximum(size, size * rstd)
        found = [np.asarray(a, np.float64) for a in (y, magnitude, reach, 1 + np.abs(scale) * (1 + rstd))]
    return {"y": Expected(found[0], found[1], terms, *(np.broadcast_to(a, y.shape) for a in found[2:]))}
