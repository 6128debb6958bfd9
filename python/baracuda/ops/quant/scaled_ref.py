"""Reference of integers and 8-bit floats with scales and of fake quantization, in NumPy: f32 (f64 for f64), one rounding after another."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from baracuda.describe.elements import Element
from baracuda.ops.quant.fake_quantize import FakeQuantizeBackwardDescriptor, FakeQuantizeDescriptor
from baracuda.ops.quant.scaled import (
    EIGHTS,
    RANGES,
    DequantizeLinearDescriptor,
    DynamicQuantizeDescriptor,
    QuantizeLinearDescriptor,
)
from baracuda.prove.narrow import numbers
from baracuda.prove.reference import Array, Case, Expected

# Shapes with those of scales: one for all, for each, per channel, row and group, blocks of two dimensions, none, rank 8.
_SHAPES: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((), ()), ((7,), (1,)), ((6,), (6,)), ((3, 70), (3, 1)), ((5, 33), (1, 33)), ((4, 96), (4, 3)), ((6, 8, 10), (3, 1, 5)),
    ((0, 4), (1, 4)), ((4, 0), (4, 1)), ((2, 1, 3, 2, 1, 2, 2, 4), (2, 1, 1, 1, 1, 2, 1, 1)), ((3, 2600), (3, 1)),
)  # fmt: skip
_LONG = (2, 70000)


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """All granularities and codes; ties, what is out of range, zeros, NaN, infinities, tiny and huge values."""
    for i, (shape, scales) in enumerate(_SHAPES):
        for j, code in enumerate((*RANGES, *EIGHTS)):
            if (i + j) % 2 and i > 3:
                continue
            yield _case(op, direction, element, shape, scales, code, rng, zero=(i + j) % 3 > 0)
    if op == "dynamic_quantize":
        for code in (Element.I8, Element.F8E4M3):
            yield _case(op, direction, element, _LONG, (1, 1), code, rng, zero=True)
    yield from _special(op, direction, element)


def _case(
    op: str, direction: str, element: Element, shape: tuple[int, ...], scales: tuple[int, ...], code: Element,
    rng: np.random.Generator, *, zero: bool,
) -> Case:  # fmt: skip
    x = rng.normal(0, 4, shape)
    least, most = RANGES.get(code, (-20, 20))
    tensors: dict[str, Array] = {"x": x, "scale": rng.uniform(0.02, 0.2, scales) * (1 if most < 1000 else 1e-3)}
    zero = zero and code in RANGES
    if zero:
        tensors["zero_point"] = rng.integers(max(least, -100), min(most, 100), scales, endpoint=True)
    if op == "fake_quantize":
        kind = FakeQuantizeBackwardDescriptor if direction == "backward" else FakeQuantizeDescriptor
        if direction == "backward":
            tensors["dy"] = rng.normal(0, 1, shape)
        return Case(kind(shape, scales, least, most, element, zero), tensors, exact_gradient=False)
    if op == "quantize_linear":
        return Case(QuantizeLinearDescriptor(shape, scales, element, code, zero), tensors)
    if op == "dequantize_linear":
        if code in EIGHTS:
            every = numbers(code)
            tensors["x"] = rng.choice(every[np.isfinite(every)], shape)
        else:
            tensors["x"] = rng.integers(least, most, shape, endpoint=True)
        return Case(DequantizeLinearDescriptor(shape, scales, element, code, zero), tensors)
    return Case(DynamicQuantizeDescriptor(shape, scales, element, code, not zero), {"x": x})


def _special(op: str, direction: str, element: Element) -> Iterator[Case]:
    if op == "dequantize_linear":
        return
    rows = np.zeros((9, 40))
    rows[0] = (np.arange(40) - 20) / 2  # ties
    rows[1, :6] = (np.nan, np.inf, -np.inf, 1e4, -1e4, -0.0)
    rows[2, 3], rows[3, 4], rows[4, 5] = np.nan, np.inf, -np.inf
    rows[5], rows[6] = 1e-7, np.abs(rows[0]) + 1
    rows[7], rows[8] = -rows[6], 6e4 * np.sign(rows[0])
    if op == "dynamic_quantize" and element is not Element.F16:
        rows[6, :2] = -3e38, 3e38  # a range beyond f32
    scale = np.ones((9, 1))
    scale[5] = 0
    for code in (Element.I8, Element.U8, *EIGHTS):
        least, most = RANGES.get(code, (-5, 6))
        if op == "quantize_linear":
            for saturate in (True, False) if code in EIGHTS else (True,):
                desc = QuantizeLinearDescriptor(rows.shape, scale.shape, element, code, saturate=saturate)
                yield Case(desc, {"x": rows, "scale": scale}, note="special values")
        elif op == "dynamic_quantize":
            for symmetric in (True, False) if code in RANGES else (True,):
                desc = DynamicQuantizeDescriptor(rows.shape, scale.shape, element, code, symmetric)  # type: ignore[assignment]
                yield Case(desc, {"x": rows}, note="special values")
        elif direction == "backward":
            made = FakeQuantizeBackwardDescriptor(rows.shape, scale.shape, least, most, element)
            given = {"dy": np.ones(rows.shape), "x": rows, "scale": scale}
            yield Case(made, given, note="special values", exact_gradient=False)
        else:
            fake = FakeQuantizeDescriptor(rows.shape, scale.shape, least, most, element)
            yield Case(fake, {"x": rows, "scale": scale}, note="special values")


def spread(scale: Array, shape: tuple[int, ...]) -> Array:
    """Each value's own scale."""
    for axis, (n, m) in enumerate(zip(shape, scale.shape, strict=True)):
        scale = np.repeat(scale, n // m if m else 1, axis)
    return scale


def reference(case: Case) -> dict[str, Expected]:
    """Codes, values, gradients or scales."""
    desc = case.descriptor
    wide = np.float64 if getattr(desc, "element", None) is Element.F64 else np.float32
    x = np.asarray(case.tensors["x"]).astype(wide)
    with np.errstate(all="ignore"):
        if isinstance(desc, DynamicQuantizeDescriptor):
            return _dynamic(desc, x)
        scale = spread(np.asarray(case.tensors["scale"]).astype(wide), x.shape)
        zero = spread(np.asarray(case.tensors.get("zero_point", np.zeros(desc.scale_shape))).astype(wide), x.shape)  # type: ignore[attr-defined]
        if isinstance(desc, QuantizeLinearDescriptor):
            return {"y": Expected(coded(x, scale, zero, desc.code_element, desc.limits(), saturate=desc.saturate))}
        if isinstance(desc, DequantizeLinearDescriptor):
            return {"y": Expected(((x - zero) * scale).astype(np.float64))}
        assert isinstance(desc, (FakeQuantizeDescriptor, FakeQuantizeBackwardDescriptor))
        code = np.rint(x * (np.float32(1) / scale.astype(np.float32)).astype(wide)) + zero
        if isinstance(desc, FakeQuantizeBackwardDescriptor):
            inside = (code >= desc.least) & (code <= desc.most)
            return {"dx": Expected(np.where(inside, case.tensors["dy"], 0.0))}
        kept = np.clip(np.where(np.isnan(code), desc.least, code), desc.least, desc.most)
        return {"y": Expected(((kept - zero) * scale).astype(np.float64))}


def coded(
    x: Array, scale: Array, zero: Array, code: Element, limits: tuple[int, int], *, saturate: bool = True
) -> Array:
    """Codes in f32, as numbers."""
    from baracuda.ops.cast.cast_ref import _to_eight_bits

    v = x / scale
    if code in EIGHTS:
        return _to_eight_bits(np.where(x == 0, x, v).astype(np.float64), code, saturate)
    v = np.rint(v)
    made: Array = np.clip(np.where(np.isnan(v), zero, v + zero), *limits).astype(code.numpy)
    return made


def _dynamic(desc: DynamicQuantizeDescriptor, x: Array) -> dict[str, Expected]:
    parts: list[int] = []
    axes: list[int] = []
    for n, m in zip(desc.shape, desc.scale_shape, strict=True):
        assert isinstance(n, int) and isinstance(m, int)
        axes.append(len(parts) + 1)
        parts += [m, n // m if m else 1]
    blocks = x.reshape(parts)
    high, low = (f(blocks, axis=tuple(axes), initial=0) for f in (np.max, np.min))
    least, most = (np.float32(v) for v in desc.limits())
    if desc.symmetric:
        scale, zero = np.maximum(high, -low) / most, np.zeros_like(high)
    else:
        scale = (high - low) / (most - least)
        half = np.minimum((high / 2 - low / 2) / ((most - least) / 2), np.finfo(np.float32).max)
        scale = np.where(np.isinf(scale) & np.isfinite(high) & np.isfinite(low), half, scale)
        zero = np.rint(least - low / scale)
        zero = np.clip(np.where(np.isnan(zero), 0, zero), least, most).astype(np.float32)
    scale, zero = (np.asarray(v, np.float32).reshape(desc.scale_shape) for v in (scale, zero))  # type: ignore[arg-type]
    shape = x.shape
    y = coded(x, spread(scale, shape), spread(zero, shape), desc.code_element, desc.limits())
    found = {"y": Expected(y), "scale": Expected(scale.astype(np.float64))}
    return found if desc.symmetric else found | {"zero_point": Expected(zero.astype(np.int64))}
