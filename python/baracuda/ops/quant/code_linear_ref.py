"""Reference of products with weights of codes and scales, in extended precision."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from baracuda.describe.dims import largest
from baracuda.describe.elements import Element
from baracuda.ops.quant.code_linear import PACKS, QuantLinearDescriptor
from baracuda.ops.quant.scaled import EIGHTS, PACKED, RANGES
from baracuda.ops.quant.scaled_ref import spread
from baracuda.prove.narrow import numbers
from baracuda.prove.reference import Case, Expected

# Leading dimensions of x, columns, K, and scales for how many columns and values.
_SHAPES: tuple[tuple[tuple[int, ...], int, int, int, int], ...] = (
    ((1,), 1, 2, 1, 1), ((), 70, 96, 70, 1), ((3,), 37, 258, 37, 3), ((2, 3), 33, 320, 11, 10), ((19,), 65, 64, 1, 1),
    ((40,), 6, 512, 3, 4), ((0,), 5, 4, 5, 1), ((4,), 0, 4, 1, 1), ((2, 1, 2, 1, 2, 1, 2), 3, 14, 1, 7), ((6,), 5, 0, 5, 1),
    ((1,), 300, 544, 300, 17), ((9,), 64, 384, 64, 3),
)  # fmt: skip


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """All codes, with and without zero points and bias; few rows and many, sides of tiles, groups of all sizes, sizes of 0."""
    for j, code in enumerate((*RANGES, *EIGHTS, *PACKED)):
        for i, (rows, columns, depth, n, k) in enumerate(_SHAPES):
            if (i + j) % 2 and i > 5:
                continue
            zero, bias = code not in EIGHTS and (i + j) % 3 > 0, i % 2 == 0
            desc = QuantLinearDescriptor((*rows, depth), (columns, depth), (n, k), element, code, zero, bias)
            _, least, most = PACKED.get(code, (code, *RANGES.get(code, (0, 0))))
            w_shape = tuple(int(s) for s in desc.signature()["w"].shape)
            if code in EIGHTS:
                every = numbers(code)
                w = rng.choice(every[np.isfinite(every) & (np.abs(every) < 500)], w_shape)
            else:
                w = rng.integers(*((0, 255) if code in PACKED else (least, most)), w_shape, endpoint=True)
            tensors = {
                "x": rng.normal(0, 1, (*rows, depth)),
                "w": w,
                "scale": rng.uniform(0.5, 2, (n, k)) / max(most, 100),
            }
            if zero:
                tensors["zero_point"] = rng.integers(max(least, -100), min(most, 100), (n, k), endpoint=True)
            if bias:
                tensors["bias"] = rng.normal(0, 1, columns)
            yield Case(desc, tensors)


def reference(case: Case) -> dict[str, Expected]:
    """Gives x @ w.T + bias."""
    desc = case.descriptor
    assert isinstance(desc, QuantLinearDescriptor)
    x, codes = (np.asarray(case.tensors[n]) for n in ("x", "w"))
    shape = tuple(largest(n) for n in desc.w_shape)
    if kind := PACKS.get(desc.code_element, 0):
        whole = codes.astype(np.int64)
        codes = np.stack([whole & 15, whole >> 4], -1).reshape(shape)
        codes = (codes ^ 8) - 8 if kind == 2 else codes
    scale = spread(np.asarray(case.tensors["scale"]), shape).astype(np.longdouble)
    zero = (
        spread(np.asarray(case.tensors.get("zero_point", np.zeros(scale.shape))), shape)
        if "zero_point" in case.tensors
        else 0
    )
    with np.errstate(all="ignore"):
        values = (codes.astype(np.longdouble) - zero) * scale
        wide = x.astype(np.longdouble)
        value, magnitude = wide @ values.T, np.abs(wide) @ np.abs(values).T
        if "bias" in case.tensors:
            bias = np.asarray(case.tensors["bias"]).astype(np.longdouble)
            value, magnitude = value + bias, magnitude + np.abs(bias)
    return {"y": Expected(value.astype(np.float64), magnitude.astype(np.float64), max(1, shape[1]))}
