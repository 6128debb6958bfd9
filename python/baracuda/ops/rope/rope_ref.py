"""Float64 reference of rotary position embeddings.

A rotated element is a sum of two products, |a cos| + |b sin|. A table entry is off by what f64 does to its angle, which
counts in units of the table's accumulator.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from baracuda.describe.dims import largest
from baracuda.describe.elements import Element
from baracuda.ops.rope.rope import RopeBackwardDescriptor, RopeDescriptor, RopeLayout, RopeTableDescriptor, Rotary
from baracuda.prove.reference import Array, Case, Expected, epsilon

_SHAPES: tuple[tuple[tuple[int, ...], int | None, str | None], ...] = (
    ((3, 8), None, None),
    ((2, 3, 7, 10), 6, "batch"),
    ((2, 5, 64), None, "seq"),
    ((2, 2, 2, 3, 2, 2, 3, 4), None, "batch"),
    ((1, 4, 2), 0, None),
    ((2, 0, 4), None, None),
    ((2, 3, 1101), 1100, "seq"),
)


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Both layouts, partial rotation, all forms of positions, ranks 2 to 8; tables of several sizes and bases."""
    if op == "rope_table":
        for table, base in (
            ((40, 16), 10000.0),
            ((3000, 4), 500000.0),
            ((0, 3), 10000.0),
            ((5, 0), 10000.0),
            ((1, 1), 2.5),
        ):
            yield Case(RopeTableDescriptor(table, element), {}, {"base": base})
        return
    for i, (shape, rotary, kind) in enumerate(_SHAPES):
        forms: dict[str | None, tuple[int, ...] | None]
        forms = {None: None, "seq": shape[-2:-1], "batch": (shape[0], shape[-2])}
        positions = forms[kind]
        layout = RopeLayout.INTERLEAVED if i % 2 else RopeLayout.HALF
        yield _case(direction, element, shape, rotary, layout, positions, i, rng)
        yield _case(
            direction,
            element,
            shape,
            rotary,
            RopeLayout.INTERLEAVED if i % 2 == 0 else RopeLayout.HALF,
            positions,
            0,
            rng,
        )


def _case(
    direction: str,
    element: Element,
    shape: tuple[int, ...],
    rotary: int | None,
    layout: RopeLayout,
    positions: tuple[int, ...] | None,
    start: int,
    rng: np.random.Generator,
) -> Case:
    rows = shape[-2] + 9
    cls = RopeDescriptor if direction == "forward" else RopeBackwardDescriptor
    table = Element.F16 if start == 4 else None
    desc = cls(shape, rows, rotary, layout, positions, Element.I32 if start % 2 else Element.I64, table, element)
    angle = rng.uniform(0, 6.3, (rows, (shape[-1] if rotary is None else rotary) // 2))
    tensors: dict[str, Array] = {"cos": np.cos(angle), "sin": np.sin(angle)}
    tensors["x" if direction == "forward" else "dy"] = rng.normal(0, 2, shape)
    if positions is not None:
        tensors["positions"] = rng.integers(0, rows, positions)
    return Case(desc, tensors, {} if positions else {"position": start})


def reference(case: Case) -> dict[str, Expected]:
    """Outputs in float64."""
    d = case.descriptor
    if isinstance(d, RopeTableDescriptor):
        return _table(d, case.scalars["base"])
    assert isinstance(d, (RopeDescriptor, RopeBackwardDescriptor))
    forward = isinstance(d, RopeDescriptor)
    x = np.asarray(case.tensors["x" if forward else "dy"], np.float64)
    value, size = rotate(d, case, x, 1.0 if forward else -1.0)
    return {"y" if forward else "dx": Expected(value, size, 2)}


def rotate(d: Rotary, case: Case, x: Array, sign: float) -> tuple[Array, Array]:
    """Rows of x turned by their positions, or back by them, with the terms' magnitudes (0 where nothing is rotated)."""
    if d.positions_shape is None:
        at = np.arange(x.shape[-2]) + int(case.scalars.get("position", 0))
    else:
        at = np.asarray(case.tensors["positions"], np.int64)
    cos, sin = (np.asarray(case.tensors[n], np.float64)[at] for n in ("cos", "sin"))
    if at.ndim == 2:
        cos, sin = (t.reshape(t.shape[0], *(1,) * (x.ndim - 3), *t.shape[1:]) for t in (cos, sin))
    rotary = d.rotary_dim or 0
    half = d.layout is RopeLayout.HALF
    first = slice(0, rotary // 2) if half else slice(0, rotary, 2)
    second = slice(rotary // 2, rotary) if half else slice(1, rotary, 2)
    a, b = x[..., first], x[..., second]
    value, size = x.copy(), np.zeros(x.shape)
    value[..., first], value[..., second] = a * cos - sign * b * sin, b * cos + sign * a * sin
    size[..., first], size[..., second] = np.abs(a * cos) + np.abs(b * sin), np.abs(b * cos) + np.abs(a * sin)
    return value, size


def _table(d: RopeTableDescriptor, base: float) -> dict[str, Expected]:
    rows, pairs = (largest(s) for s in d.table_shape)
    angle = np.arange(rows, dtype=np.longdouble)[:, None] * np.longdouble(base) ** (
        -np.arange(pairs, dtype=np.longdouble) / max(pairs, 1)
    )
    # Of the angle: the power (2 ulp), its exponent (|log base| ulp) and the product in f64; or pairs of f32.
    off = (4 + abs(np.log(base))) * epsilon(Element.F64) + (0 if d.element is Element.F64 else 2.0**-46)
    error = 1 + np.asarray(angle, np.float64) * off / epsilon(d.element.compute)
    return {
        "cos": Expected(np.asarray(np.cos(angle), np.float64), error),
        "sin": Expected(np.asarray(np.sin(angle), np.float64), error),
    }


def forward_of(case: Case) -> Case:
    """The forward case of a backward one."""
    d = case.descriptor
    assert isinstance(d, RopeBackwardDescriptor)
    desc = RopeDescriptor(
        d.input_shape,
        d.table_rows,
        d.rotary_dim,
        d.layout,
        d.positions_shape,
        d.positions_element,
        Element.F64,
        Element.F64,
    )
    tensors = {n: v for n, v in case.tensors.items() if n != "dy"}
    return Case(desc, {**tensors, "x": np.zeros_like(case.tensors["dy"])}, case.scalars)
