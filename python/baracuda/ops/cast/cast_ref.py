"""Reference of element conversion."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from baracuda.describe.elements import Element
from baracuda.ops.cast.cast import CastDescriptor
from baracuda.prove.narrow import FORMATS, numbers
from baracuda.prove.reference import Array, Case, Expected

REAL = [e for e in Element if e <= Element.F64]
F8 = (Element.F8E4M3, Element.F8E5M2)


def _values(source: Element, target: Element, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Numbers that `source` has and, for an integer `target`, that fit into it after truncation."""
    if source is Element.BOOL:
        return rng.integers(0, 2, shape).astype(bool)
    if source.is_integer:
        info = np.iinfo(source.numpy)
        return rng.integers(info.min, info.max, shape, dtype=source.numpy, endpoint=True)
    if target is Element.BOOL:
        return rng.choice([0.0, -0.0, 1.0, 0.25, -3.0, np.inf, np.nan], shape)
    if target.is_integer:
        info = np.iinfo(target.numpy)
        largest = min(float(info.max), {Element.F16: 60000.0}.get(source, np.inf)) * 0.98
        return rng.uniform(max(float(info.min), -60000.0 if source is Element.F16 else -np.inf) * 0.98, largest, shape)
    return rng.normal(0, 3, shape)


def all_halves(element: Element) -> Array:
    """Every number of a half type, and one NaN for all of its NaNs."""
    with np.errstate(invalid="ignore"):
        codes = np.arange(65536, dtype=np.uint16)
        found = numbers(element) if element in FORMATS else codes.view(element.numpy).astype(np.float64)
    return np.where(np.isnan(found), np.nan, found)


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Every target element; ranks 0 to 8; for floats special values and, from half types, every number."""
    yield from _eight_bits(element, rng)
    for target in REAL if element in REAL else ():
        shapes: list[tuple[int, ...]] = [(), (0, 3), (3, 5, 70), (2, 1, 3, 2, 1, 2, 2, 4), (1300,)]
        for shape in shapes if target in (Element.F32, Element.BF16, Element.I8) else shapes[2:3]:
            yield Case(CastDescriptor(shape, element, target), {"x": _values(element, target, shape, rng)})
        if element.is_float and target.is_float:
            spread = rng.choice([-1.0, 1.0], 3000) * np.exp2(rng.uniform(-160, 160, 3000))
            special = [
                0.0,
                -0.0,
                np.inf,
                -np.inf,
                np.nan,
                65519.0,
                65520.0,
                1 + 2.0**-11,
                1 + 2.0**-11 + 2.0**-30,
                1 + 2.0**-8 + 2.0**-40,
                3.4e38,
            ]
            yield Case(
                CastDescriptor((3011,), element, target), {"x": np.concatenate([spread, special])}, note="all exponents"
            )
        if element.is_half:
            every = all_halves(element)
            if target.is_float or target is Element.BOOL:
                yield Case(CastDescriptor((65536,), element, target), {"x": every}, note="every number")


def _eight_bits(element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """From and to 8-bit floats: every number, every middle between two and what is beside it, what is out of range."""
    if element in F8:
        every = numbers(element)
        for target in (*REAL, *F8):
            whole = target.is_integer
            x = (
                every[np.isfinite(every) & (every >= 0) & (every < 120)]
                if whole
                else np.where(np.isnan(every), np.nan, every)
            )
            for saturate in (True, False):
                yield Case(CastDescriptor(x.shape, element, target, saturate), {"x": x}, note="every number")
            shape = (2, 3, 50)
            yield Case(CastDescriptor(shape, element, target), {"x": rng.choice(x, shape)})
        return
    for target in F8:
        every = numbers(target)[:128]
        every = np.unique(every[np.isfinite(every)])
        middles = np.concatenate([(every[1:] + every[:-1]) / 2, [464.0, 480.0, 61440.0, 65536.0, 2.0**-20]])
        beside = np.concatenate([np.nextafter(middles, 0), np.nextafter(middles, np.inf), middles * (1 + 2.0**-20)])
        chosen = np.concatenate([every, middles, beside, [1e30, 3e38, np.inf]])
        if element.is_float:
            x = np.concatenate([chosen, -chosen, [np.nan]])
        else:
            x = _values(element, target, (700,), rng)
            x[:100] = rng.integers(0, 2 if element is Element.BOOL else 100, 100)
        for saturate in (True, False):
            yield Case(CastDescriptor(x.shape, element, target, saturate), {"x": x}, note="middles")
        shape = (5, 4, 30)
        yield Case(CastDescriptor(shape, element, target), {"x": rng.choice(x, shape)})


def _to_eight_bits(x: Array, target: Element, saturate: bool) -> Array:
    """The nearest number; ties to even; what is beyond by the rule of CastDescriptor."""
    bits, least, largest = (3, -6, 448.0) if target is Element.F8E4M3 else (2, -14, 57344.0)
    a = np.abs(x.astype(np.longdouble))
    with np.errstate(all="ignore"):
        exponent = np.maximum(np.frexp(np.where(np.isfinite(a) & (a > 0), a, 1))[1] - 1, least)
        y = np.ldexp(np.rint(np.ldexp(a, bits - exponent)), exponent - bits)
        beyond = largest if saturate else np.nan if target is Element.F8E4M3 else np.inf
        y = np.where(np.isnan(a), np.nan, np.where(y > largest, beyond, y))
    return np.asarray(np.copysign(y, x.astype(np.float64)), np.float64)


def reference(case: Case) -> dict[str, Expected]:
    """The number itself, or what the integer or bool element makes of it."""
    desc = case.descriptor
    assert isinstance(desc, CastDescriptor)
    x, target = np.asarray(case.tensors["x"]), desc.output_element
    if target is Element.BOOL:
        return {"y": Expected(x != 0)}
    if target in F8 and desc.input_element is not target:
        return {"y": Expected(_to_eight_bits(x, target, desc.saturate))}
    if target.is_integer:
        exact = np.trunc(x) if x.dtype.kind == "f" else x
        return {"y": Expected(exact.astype(target.numpy))}
    return {"y": Expected(x.astype(np.float64 if target in F8 else np.longdouble))}
