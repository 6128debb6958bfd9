"""Reference of products of 8-bit elements: integers exactly, 8-bit floats and scales in extended precision."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from baracuda.describe.dims import largest
from baracuda.describe.elements import Element
from baracuda.ops.matmul.matmul import Activation
from baracuda.ops.matmul.matmul_ref import STEEPEST, activated
from baracuda.ops.matmul.scaled_matmul import OUTPUTS, ScaledMatmulDescriptor
from baracuda.prove.reference import Array, Case, Expected
from baracuda.prove.straddle import threshold

Shape = tuple[int, ...]

# (a, b): every side of the kernels' tiles, K that is no multiple of 4 and longer than a block, broadcasting, size 0.
SHAPES: list[tuple[Shape, Shape]] = [
    ((1, 1), (1, 1)), ((9, 17), (17, 33)), ((64, 64), (64, 64)), ((50, 302), (302, 100)), ((16, 2103), (2103, 20)),
    ((10, 4200), (4200, 9)), ((70, 33), (33, 1)), ((5, 0), (0, 7)), ((0, 4), (4, 3)), ((20, 4), (4, 0)),
    ((3, 20, 12), (3, 12, 15)), ((2, 1, 9, 4), (3, 4, 10)), ((40, 1, 3, 8), (8, 5)), ((12, 5, 9), (9, 11)),
    ((2, 1, 1, 2, 1, 2, 9, 3), (2, 2, 1, 3, 10)), ((24, 32), (32, 48)),
    ((threshold("block_rows", "matmul") + 140, 8), (8, 16)),
]  # fmt: skip


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Products of all SHAPES with scales of tensors, rows and columns, with and without a bias; the largest numbers."""
    for i, (a, b) in enumerate(SHAPES):
        for n, out in enumerate(OUTPUTS[element]):
            yield _case(a, b, element, out, rng, scales=(i + n) % 4, bias=(i + n) % 3 == 0)
    for n, activation in enumerate(list(Activation)[1:]):
        for out in OUTPUTS[element]:
            if out is not Element.I32:
                yield _case((30, 40), (40, 50), element, out, rng, n, bias=n % 2 == 0, activation=activation)
    for out in OUTPUTS[element]:
        extreme = _case((9, 4200), (4200, 20), element, out, rng)
        for name, x in extreme.tensors.items():
            x[: 5 if name == "a" else None] = 448.0 if element is Element.F8E4M3 else -128
        if out is not Element.F16:
            extreme.note = "sums as large as they get"
            yield extreme
    if element is Element.F8E4M3:
        special = _case((9, 40), (40, 20), element, Element.F32, rng, 1, bias=True)
        special.tensors["a"][0, 3] = special.tensors["b"][4, 5] = np.nan
        special.tensors["a"][1] = np.ldexp(np.arange(40) % 16 - 8.0, -9)
        special.note = "NaN and subnormal numbers"
        yield special


def _case(
    a: Shape,
    b: Shape,
    element: Element,
    out: Element,
    rng: np.random.Generator,
    scales: int = 0,
    *,
    bias: bool = False,
    activation: Activation = Activation.NONE,
) -> Case:
    """`scales`: 0 none, 1 of tensors, 2 of rows and columns, 3 of rows in each matrix of the batch and of one tensor."""
    batch = ScaledMatmulDescriptor(a, b, element, out).output_shape()[:-2]
    rows, columns = ((None, None), ((), ()), ((a[-2], 1), (1, b[-1])), ((*batch, a[-2], 1), (1,)))[scales]
    if out is Element.I32:
        rows = columns = None
    desc = ScaledMatmulDescriptor(a, b, element, out, rows, columns, bias, activation)
    tensors: dict[str, Array] = {}
    for p in desc.signature().inputs:
        if p.element is Element.I8:
            tensors[p.name] = rng.integers(-128, 128, p.shape)
        elif p.element is Element.I32:
            tensors[p.name] = rng.integers(-(2**31), 2**31, p.shape)
        elif p.name[:5] == "scale":
            tensors[p.name] = rng.uniform(0.001, 0.02, p.shape) * (0.05 if element is Element.I8 else 1)
        else:
            tensors[p.name] = rng.normal(0, 1, p.shape)
    return Case(desc, tensors)


def reference(case: Case) -> dict[str, Expected]:
    """Gives act(scale_a * scale_b * (a @ b) + bias)."""
    desc = case.descriptor
    assert isinstance(desc, ScaledMatmulDescriptor)
    integers = desc.element is Element.I8
    a, b = (case.tensors[n].astype(np.int64 if integers else np.longdouble) for n in "ab")
    with np.errstate(all="ignore"):
        product = a @ b
        if desc.output_element is Element.I32:
            return {"out": Expected((product + case.tensors.get("bias", 0)).astype(np.int32))}
        size = np.abs(product) if integers else np.abs(a) @ np.abs(b)
        value, magnitude = product.astype(np.longdouble), size.astype(np.longdouble)
        for name in ("scale_a", "scale_b"):
            scale = case.tensors.get(name, np.ones(()))
            value, magnitude = value * scale, magnitude * np.abs(scale)
        if desc.bias:
            value, magnitude = value + case.tensors["bias"], magnitude + np.abs(case.tensors["bias"])
        if desc.activation is not Activation.NONE:
            own = (3 if integers else 1) * np.abs(value)
            value, magnitude = activated(value, desc.activation), STEEPEST * magnitude + own
    terms = 1 if integers else largest(desc.a_shape[-1])
    return {"out": Expected(value.astype(np.float64), magnitude.astype(np.float64), terms)}
