"""Reference of element conversion."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from baracuda.elements import Element
from baracuda.ops.cast import CastDescriptor
from baracuda.reference import Array, Case, Expected

REAL = [e for e in Element if e <= Element.F64]


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
        numbers = np.arange(65536, dtype=np.uint16).view(element.numpy).astype(np.float64)
    return np.where(np.isnan(numbers), np.nan, numbers)


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Every target element; ranks 0 to 8; for floats special values and, from half types, every number."""
    for target in REAL:
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


def reference(case: Case) -> dict[str, Expected]:
    """The number itself, or what the integer or bool element makes of it."""
    desc = case.descriptor
    assert isinstance(desc, CastDescriptor)
    x, target = np.asarray(case.tensors["x"]), desc.output_element
    if target is Element.BOOL:
        return {"y": Expected(x != 0)}
    if target.is_integer:
        exact = np.trunc(x) if x.dtype.kind == "f" else x
        return {"y": Expected(exact.astype(target.numpy))}
    return {"y": Expected(x.astype(np.longdouble))}
