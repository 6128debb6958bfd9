"""Float64 reference of rms_norm_rope: a norm of each row, and the rotation of rope_ref.py in both directions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from baracuda.describe.elements import Element
from baracuda.ops.rope.rms_norm_rope import RmsNormRopeBackwardDescriptor, RmsNormRopeDescriptor
from baracuda.ops.rope.rope import RopeLayout
from baracuda.ops.rope.rope_ref import rotate
from baracuda.prove.reference import Array, Case, Expected

EPS = 1e-3
# Shapes, rotated elements (None: all), form of the positions; more than 512 rows fill several strips.
_SHAPES: tuple[tuple[tuple[int, ...], int | None, str | None], ...] = (
    ((3, 8), None, None),
    ((2, 3, 7, 10), 6, "batch"),
    ((2, 5, 64), None, "seq"),
    ((2, 1, 2, 3, 1, 2, 3, 4), None, "batch"),
    ((1, 4, 3), 0, None),
    ((2, 0, 4), None, None),
    ((3, 230, 9), 8, "seq"),
    ((1, 2, 2048), 1024, None),
)


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Both layouts, partial rotation, all forms of positions, with and without weights and their offset."""
    for i, (shape, rotary, kind) in enumerate(_SHAPES):
        yield _case(direction, element, shape, rotary, kind, i, rng)
    for i in (3, 4):
        yield _case(direction, element, (2, 3, 5, 6), 4, "batch", i, rng)
    special = _case(direction, element, (5, 12), None, None, 2, rng)
    x = special.tensors["x"]
    x[1, 3], x[2, 5], x[3] = np.nan, np.inf, 0
    special.note, special.exact_gradient = "special values", False
    yield special


def _case(
    direction: str,
    element: Element,
    shape: tuple[int, ...],
    rotary: int | None,
    kind: str | None,
    i: int,
    rng: np.random.Generator,
) -> Case:
    forms: dict[str | None, tuple[int, ...] | None]
    forms = {None: None, "seq": shape[-2:-1], "batch": (shape[0], shape[-2])}
    positions, rows = forms[kind], shape[-2] + 9
    whole = shape[-1] if rotary is None else rotary
    fields: dict[str, Any] = {
        "input_shape": shape,
        "table_rows": rows,
        "rotary_dim": rotary,
        "layout": RopeLayout.INTERLEAVED if i % 2 else RopeLayout.HALF,
        "positions_shape": positions,
        "positions_element": Element.I32 if i % 3 else Element.I64,
        "table_element": Element.F16 if i == 4 else None,
        "element": element,
        "weight": i % 4 != 3,
        "weight_offset": float(i % 4 == 2),
    }
    angle = rng.uniform(0, 6.3, (rows, whole // 2))
    tensors: dict[str, Array] = {"x": rng.normal(0.3, 1, shape), "cos": np.cos(angle), "sin": np.sin(angle)}
    if fields["weight"]:
        tensors["weight"] = rng.normal(0, 1, shape[-1:])
    if positions is not None:
        tensors["positions"] = rng.integers(0, rows, positions)
    scalars: dict[str, float | int] = {} if positions else {"position": i}
    if direction == "forward":
        return Case(RmsNormRopeDescriptor(**fields, save=i % 3 != 1), tensors, scalars | {"eps": EPS})
    tensors["dy"] = rng.normal(0, 1, shape)
    tensors["rstd"] = 1 / np.sqrt((tensors["x"] ** 2).mean(-1, keepdims=True) + EPS)
    return Case(RmsNormRopeBackwardDescriptor(**fields), tensors, scalars)


def reference(case: Case) -> dict[str, Expected]:
    """Outputs in float64, with sums in extended precision."""
    desc: Any = case.descriptor
    names = {p.name for p in desc.signature().inputs}
    x = np.asarray(case.tensors["x"], np.longdouble)
    weight = np.ones(x.shape[-1:], np.longdouble)
    if "weight" in names:
        weight = np.asarray(case.tensors["weight"], np.longdouble) + desc.weight_offset
    n = max(x.shape[-1], 1)
    found: dict[str, tuple[Any, ...]]
    with np.errstate(all="ignore"):
        if desc.direction == "forward":
            rstd = 1 / np.sqrt((x**2).mean(-1, keepdims=True) + np.longdouble(case.scalars["eps"]))
            y, size = rotate(desc, case, x * rstd * weight, 1.0)
            size = np.where(np.arange(x.shape[-1]) < desc.rotary_dim, size, np.abs(y))
            # Lost may be x rstd, before weights multiply it; turned are products of weights, cosines and sines.
            reach = np.maximum(size, np.abs(x * rstd * weight).max(-1, keepdims=True, initial=0))
            found = {"y": (y, size, n, reach, 1 + 2 * np.abs(weight).max(initial=0)), "rstd": (rstd, rstd, n)}
        else:
            rstd = np.asarray(case.tensors["rstd"], np.longdouble)
            g, size = rotate(desc, case, np.asarray(case.tensors["dy"], np.longdouble), -1.0)
            size = np.where(np.arange(x.shape[-1]) < desc.rotary_dim, size, np.abs(g))
            xhat = x * rstd
            mean = (g * weight * xhat).mean(-1, keepdims=True)
            most = (size * np.abs(weight * xhat)).mean(-1, keepdims=True)
            rows = tuple(range(x.ndim - 1))
            total = size * np.abs(weight) + np.abs(xhat) * most
            reach = np.maximum(np.maximum(most * n, total), size.max(-1, keepdims=True, initial=0))
            reach = np.maximum(reach, (size * np.abs(weight)).max(-1, keepdims=True, initial=0))
            heavy = np.abs(weight).max(initial=0)
            lost = 1 + rstd * (1 + heavy) * (1 + np.abs(xhat)) * (
                1 + (size * (1 + np.abs(xhat))).mean(-1, keepdims=True)
            )
            found = {
                "dx": (rstd * (g * weight - xhat * mean), rstd * total, n, reach, lost),
                "dweight": (
                    (g * xhat).sum(rows), (size * np.abs(xhat)).sum(rows), max(x.size // n, 1),
                    size.max(rows, initial=0), 1 + (size + np.abs(xhat)).sum(rows),
                ),
            }  # fmt: skip
    with np.errstate(over="ignore"):
        made = {k: (n, [np.asarray(x, np.float64) for x in (v, m, *ends)]) for k, (v, m, n, *ends) in found.items()}
    return {k: Expected(v, m, n, *ends) for k, (n, (v, m, *ends)) in made.items()}


def forward_of(case: Case) -> Case:
    """The forward case of a backward one."""
    d: Any = case.descriptor
    fields = {name: getattr(d, name) for name in d.to_dict()} | {"element": Element.F64, "table_element": Element.F64}
    tensors = {name: v for name, v in case.tensors.items() if name not in ("dy", "rstd")}
    return Case(RmsNormRopeDescriptor(**fields), tensors, case.scalars | {"eps": EPS})
