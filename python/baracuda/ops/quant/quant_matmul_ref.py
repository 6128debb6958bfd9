"""Reference of products with GGUF's blocks, in extended precision."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from baracuda.describe.dims import largest
from baracuda.describe.elements import Element
from baracuda.ops.quant.quant import BlockFormat
from baracuda.ops.quant.quant_matmul import QuantMatmulDescriptor
from baracuda.ops.quant.quant_ref import blocks_with_scales, decoded, parts
from baracuda.prove.reference import Array, Case, Expected

# Leading dimensions of x, columns, blocks of a row: few rows and many, sides of tiles, K in parts of chunks, sizes of 0.
_SHAPES: tuple[tuple[tuple[int, ...], int, int], ...] = (
    ((1,), 1, 1), ((), 70, 3), ((3,), 37, 9), ((2, 3), 33, 5), ((19,), 65, 2), ((40,), 7, 8), ((0,), 5, 1), ((4,), 0, 1),
    ((2, 1, 2, 1, 2, 1, 2), 3, 1), ((6,), 5, 0), ((1,), 300, 17),
)  # fmt: skip


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """All formats with x as it is and quantized; any bytes; x with zeros, ties, NaN, infinities, tiny and huge blocks."""
    for n, f in enumerate(BlockFormat):
        for quantize_input in (False, True):
            for i, (rows, columns, blocks) in enumerate(_SHAPES):
                if (f.block_values == 256 and blocks > 9) or ((i + n) % 2 and i > 3):
                    continue
                shape = (*rows, blocks * f.block_values)
                desc = QuantMatmulDescriptor(shape, (columns, shape[-1]), f, element, quantize_input)
                w = blocks_with_scales(f, desc.signature()["w"].shape, rng)
                yield Case(desc, {"x": rng.normal(0, 1, shape), "w": w})
            for many in (2, 11):
                desc = QuantMatmulDescriptor((many, 512), (40, 512), f, element, quantize_input)
                w = rng.integers(0, 256, desc.signature()["w"].shape)
                yield Case(desc, {"x": rng.normal(0, 1, (many, 512)), "w": w}, note="any bytes")
            desc = QuantMatmulDescriptor((9, 512), (20, 512), f, element, quantize_input)
            w = blocks_with_scales(f, desc.signature()["w"].shape, rng)
            yield Case(desc, {"x": _special(element, rng), "w": w}, note="special values")


def _special(element: Element, rng: np.random.Generator) -> Array:
    x = rng.normal(0, 1, (9, 512))
    x[0], x[0, 300] = 0, -0.0
    x[1] = (np.arange(512) % 255 - 127) / 2  # ties
    x[2, 3], x[3, 400], x[4, 256:260] = np.nan, np.inf, (-np.inf, np.inf, 1, 2)
    x[5] *= 1e4 if element is Element.F16 else 1e37
    x[6] *= 1e-6 if element is Element.F16 else 1e-38
    x[7, :256] *= 1e-7 if element is Element.F16 else 1e-40
    x[8] = np.where(np.arange(512) % 2, 1, -1)
    return x


def reference(case: Case) -> dict[str, Expected]:
    """Gives x @ w.T, of x as it is or as it is quantized."""
    desc, x, w = case.descriptor, case.tensors["x"], np.asarray(case.tensors["w"])
    assert isinstance(desc, QuantMatmulDescriptor)
    f, depth = desc.format, desc.w_shape[1]
    assert isinstance(depth, int)
    reach = None
    with np.errstate(all="ignore"):
        values = decoded(w, f)
        size = np.abs(values)
        if desc.quantize_input:
            x, codes = quantized(x, f)
            steps, lows = parts(w, f)
            size = np.abs(steps) + np.abs(lows)
            values = np.where(np.isfinite(values).all(-1, keepdims=True), values, np.nan)
            values = np.where(np.isfinite(size).all(-1, keepdims=True), values, np.nan)
            x = np.where(np.isfinite(x).all(-1, keepdims=True), x, np.nan)
            reach = (np.abs(codes) @ size.T).astype(np.float64)
        x = x.astype(np.longdouble)
        value, magnitude = x @ values.T.astype(np.longdouble), np.abs(x) @ size.T.astype(np.longdouble)
    terms = max(1, largest(depth))
    return {"y": Expected(value.astype(np.float64), magnitude.astype(np.float64), terms, reach, float(terms))}


def quantized(x: Array, f: BlockFormat) -> tuple[Array, Array]:
    """The values that x is replaced by, in float64, and their integers."""
    blocks = x.astype(np.float32).reshape(-1, f.block_values)
    most = np.abs(blocks).max(-1, keepdims=True, initial=0)
    scale = most / np.float32(127)
    scale = np.where(scale < np.finfo(np.float32).tiny, np.float32(0), scale)
    by = np.where(scale == 0, np.float32(0), np.float32(1) / scale)
    v = np.nan_to_num(np.abs(blocks * by), nan=0, posinf=127)
    codes = np.copysign(np.minimum(np.floor(v) + (v - np.floor(v) >= 0.5), 127), blocks).astype(np.float64)
    scale = np.where(np.isfinite(most), scale, np.float32(np.nan))
    return (codes * scale).reshape(x.shape), codes.reshape(x.shape)
