"""Reference of running sums and products: NumPy in extended precision."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from baracuda.describe.dims import largest
from baracuda.describe.elements import Element
from baracuda.ops.scan.scan import ScanBackwardDescriptor, ScanDescriptor
from baracuda.prove.reference import Array, Case, Expected, epsilon
from baracuda.prove.straddle import threshold, treacherous

# Shapes with the axis; the long ones take several tiles.
SHAPES: list[tuple[tuple[int, ...], int]] = [
    ((), 0), ((1,), 0), ((17,), 0), ((5, 7), 1), ((3, 70), 1), ((70, 3), 0), ((4, 5, 6), 1), ((2, 1030), 1),
    ((2, 3, 1, 2, 3, 2, 1, 4), 4), ((260, 40), 0), ((90, 20), 0), ((3, 5000), 1), ((1100, 18), 0), ((9, 2050), 0),
    ((0, 5), 0), ((5, 0), 0), ((1, 6), 0),
]  # fmt: skip


def _values(kind: str, shape: tuple[int, ...], axis: int, element: Element, rng: np.random.Generator) -> Array:
    if element is Element.BOOL:
        return rng.random(shape) < 0.8
    if not element.is_float:
        info = np.iinfo(element.numpy)
        return rng.integers(info.min, info.max, shape, element.numpy, endpoint=True)
    x = rng.normal(0, 2, shape)
    return x if kind == "cumsum" else 1 + x / max(8, shape[axis] if shape else 1)


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Ranks 0 to 8, every place of the axis, lines longer than a tile, zeros, NaN and infinities."""
    for shape, axis in SHAPES:
        yield _case(op, direction, element, axis, _values(op, shape, axis, element, rng), rng)
    if not element.is_float:
        return
    if op == "cumsum":
        length = 2 * threshold("tile", "scan") + 1
        for shape, axis in (((length, 18), 0), ((3, length), 1)):
            terms = treacherous(shape, axis, epsilon(element.compute), direction == "forward")
            long = _case(op, direction, element, axis, terms, rng)
            if direction == "backward":
                long.tensors["dy"] = terms
            long.note, long.exact_gradient = "terms that rounding loses", False
            yield long
    x = rng.normal(1, 0.3, (40, 20))
    x[3, 1], x[5, 2], x[9, 2], x[0, 3], x[39, 4], x[7, 5], x[8, 5], x[9, 5] = (0,) * 8
    for axis in (0, 1):
        zeros = _case(op, direction, element, axis, x, rng)
        zeros.note = "zeros"
        yield zeros
    x = rng.normal(1, 0.3, (40, 20))
    x[3, 1], x[5, 2], x[9, 3] = np.nan, np.inf, -np.inf
    for axis in (0, 1):
        special = _case(op, direction, element, axis, x, rng)
        special.note, special.exact_gradient = "special values", False
        yield special


def _case(op: str, direction: str, element: Element, axis: int, x: Array, rng: np.random.Generator) -> Case:
    forward = Case(ScanDescriptor(op, x.shape, axis, element), {"x": x})
    if direction == "forward":
        return forward
    given: dict[str, Any] = {"dy": rng.normal(size=x.shape)}
    if op == "cumprod":
        given |= {"x": x, "y": reference(forward)["y"].value}
    return Case(ScanBackwardDescriptor(op, x.shape, axis, element), given)


def reference(case: Case) -> dict[str, Expected]:
    """Outputs in extended precision."""
    desc = case.descriptor
    assert isinstance(desc, ScanDescriptor | ScanBackwardDescriptor)
    shape = tuple(map(largest, desc.shape))
    lines = {k: np.atleast_1d(v) for k, v in case.tensors.items()}
    terms = shape[desc.axis] if shape else 1
    with np.errstate(all="ignore"):
        if isinstance(desc, ScanDescriptor):
            x, name = lines["x"], "y"
            run = np.cumsum if desc.kind == "cumsum" else np.cumprod
            if not desc.element.is_float:
                return {"y": Expected(run(x.astype(np.int64), axis=desc.axis).reshape(shape))}
            value = run(x.astype(np.longdouble), axis=desc.axis)
            size = run(np.abs(x.astype(np.longdouble)), axis=desc.axis)
            size = size if desc.kind == "cumsum" else size * np.sqrt(max(terms, 1))
        else:
            name = "dx"
            value, size = _gradient({k: v.astype(np.longdouble) for k, v in lines.items()}, desc)
    found, magnitude = (np.asarray(v, np.float64).reshape(shape) for v in (value, size))
    return {name: Expected(found, magnitude, max(terms, 1))}


def _reversed(v: Array, axis: int) -> Array:
    """Sums of each element and those behind it."""
    return np.flip(np.cumsum(np.flip(v, axis), axis=axis), axis)


def _gradient(t: dict[str, Array], desc: ScanBackwardDescriptor) -> tuple[Array, Array]:
    axis = desc.axis
    if desc.kind == "cumsum":
        return _reversed(t["dy"], axis), _reversed(np.abs(t["dy"]), axis)
    dy, x, y = (np.moveaxis(t[k], axis, -1) for k in ("dy", "x", "y"))
    value, size = np.zeros(x.shape, np.longdouble), np.zeros(x.shape, np.longdouble)
    for at in np.ndindex(x.shape[:-1]):
        value[at], size[at] = _line(dy[at], x[at], y[at])
    factor = np.sqrt(np.longdouble(max(x.shape[-1], 1)))
    return np.moveaxis(value, -1, axis), np.moveaxis(size, -1, axis) * factor


def _line(dy: Array, x: Array, y: Array) -> tuple[Array, Array]:
    """Before the first zero from y; at it from the product of the others; behind it nothing."""
    value, size = np.zeros(x.shape, np.longdouble), np.zeros(x.shape, np.longdouble)
    zeros = np.flatnonzero(x == 0)
    z = int(zeros[0]) if len(zeros) else len(x)
    terms = (dy * y)[:z]
    value[:z], size[:z] = _reversed(terms, 0) / x[:z], np.abs(_reversed(np.abs(terms), 0) / x[:z])
    if len(zeros):
        others = np.cumprod(np.concatenate([y[z - 1 : z] if z else np.ones(1, np.longdouble), x[z + 1 :]]))
        parts = np.where(others == 0, 0, dy[z:] * others)
        value[z], size[z] = np.sum(parts), np.sum(np.abs(parts))
    return value, size


def forward_of(case: Case) -> Case:
    """The forward case of a backward one."""
    d = case.descriptor
    assert isinstance(d, ScanBackwardDescriptor)
    x = case.tensors["x"] if "x" in case.tensors else np.ones(tuple(map(largest, d.shape)))
    return Case(ScanDescriptor(d.kind, d.shape, d.axis, Element.F64), {"x": x})
