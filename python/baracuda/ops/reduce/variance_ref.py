"""Reference of variances, norms and cosine similarity: NumPy in extended precision."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from baracuda.describe.dims import largest
from baracuda.describe.elements import Element
from baracuda.ops.reduce.reduce_ref import EMPTY, SHAPES, _count, _expected
from baracuda.ops.reduce.variance import (
    CosineSimilarityBackwardDescriptor,
    CosineSimilarityDescriptor,
    VarianceBackwardDescriptor,
    VarianceDescriptor,
    VectorNormBackwardDescriptor,
    VectorNormDescriptor,
)
from baracuda.prove.reference import Array, Case, Expected, epsilon

POWERS = [2.0, 1.0, np.inf, -np.inf, 0.0, 3.0, 0.5, 1.5, -1.0]
# Rows and columns that are folded in one piece and in strips, for values far from 0.
FAR: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((300, 20), (0,)), ((20, 300), (1,)), ((5, 70, 9), (1,)), ((5, 4, 70), (0, 2)), ((66000,), (0,)), ((3300, 20), (0,)),
]  # fmt: skip
PAIRS: list[tuple[tuple[int, ...], tuple[int, ...], int]] = [
    ((5,), (5,), 0), ((3, 70), (3, 70), 1), ((70, 3), (70, 3), 0), ((4, 5, 6), (4, 5, 6), 1), ((2, 9000), (2, 9000), 1),
    ((3, 1, 8), (1, 4, 8), 2), ((4, 8), (8,), 1), ((0, 5), (0, 5), 1), ((5, 0), (5, 0), 1), ((2, 1), (1, 7), 1),
]  # fmt: skip


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Ranks 0 to 8, any axes, long axes, means far from 0, empty and single-element slices, zeros, NaN and infinities."""
    if op == "cosine_similarity":
        yield from _pairs(direction, element, rng)
        return
    for i, (shape, axes) in enumerate(SHAPES + EMPTY):
        p = POWERS[i % len(POWERS)]
        if op == "norm" and not 0 <= p < np.inf and 0 in [shape[a] for a in axes]:
            p = 2.0
        yield _case(op, direction, element, axes, bool(i % 2), rng.normal(0, 2, shape) + (i % 3), p, i % 3)
    if op != "norm":
        for i, (shape, axes) in enumerate(FAR if element is Element.F32 else FAR[:-2]):
            # As far as deviations of 1 to 16 are still held, from numbers like the mean to some that are far from it, too.
            far = 2.0 ** -(i % 5) / epsilon(element)
            x = far + rng.normal(0, 1, shape)
            x.reshape(-1)[:: 97 if i % 2 else x.size] *= 0.75
            case = _case(op, direction, element, axes, bool(i % 2), x, 2.0, i % 3)
            case.note, case.exact_gradient = "far from 0", False
            yield case
    x = rng.normal(0, 1, (6, 70))
    x[1, 3], x[2, 5], x[3, 7], x[4], x[5, ::2] = np.nan, np.inf, -np.inf, 0, 0
    for axis in (0, 1):
        for p in POWERS if op == "norm" else POWERS[:1]:
            special = _case(op, direction, element, (axis,), True, x, p, 1)
            special.note, special.exact_gradient = "special values", False
            yield special


def _case(
    op: str, direction: str, element: Element, axes: tuple[int, ...], keepdim: bool, x: Array, p: float, correction: int
) -> Case:
    made: VectorNormDescriptor | VarianceDescriptor
    if op == "norm":
        made = VectorNormDescriptor(x.shape, axes, keepdim, element, p)
    else:
        made = VarianceDescriptor(op, x.shape, axes, keepdim, element, float(correction))
    forward = Case(made, {"x": x})
    if direction == "forward":
        return forward
    back = made.backward()
    found, given = reference(forward), {}
    for param in back.signature().inputs:
        if param.name == "x":
            given["x"] = x
        elif param.name in found:
            given[param.name] = found[param.name].value
        else:
            given[param.name] = np.resize(np.array([0.5, -1.25, 3.0, 2.0, -0.75]), tuple(map(largest, param.shape)))
    # The other norms have kinks, and so has a deviation of 0.
    values = next(iter(found.values())).value
    smooth = p in (2.0, 3.0) if op == "norm" else bool(np.all(np.isfinite(values) & (values > 0)))
    return Case(back, given, exact_gradient=smooth)


def _pairs(direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    for a, b, axis in PAIRS:
        if direction == "backward" and a != b:
            continue
        x1, x2 = rng.normal(0, 2, a), rng.normal(0, 2, b)
        yield _pair(direction, element, axis, x1, x2)
    x1, x2 = rng.normal(0, 1, (5, 70)), rng.normal(0, 1, (5, 70))
    x1[1], x1[2, 3], x2[3, 4], x1[4], x2[4] = 0, np.nan, np.inf, 1e-3, -1e-3
    special = _pair(direction, element, 1, x1, x2)
    special.note, special.exact_gradient = "special values", False
    yield special


def _pair(direction: str, element: Element, axis: int, x1: Array, x2: Array) -> Case:
    scalars: dict[str, float | int] = {"eps": 1e-6}
    made = CosineSimilarityDescriptor(x1.shape, x2.shape, axis, element)
    if direction == "forward":
        return Case(made, {"x1": x1, "x2": x2}, scalars)
    dy = np.resize(np.array([0.5, -1.25, 3.0]), tuple(map(largest, made.signature()["y"].shape)))
    return Case(made.backward(), {"dy": dy, "x1": x1, "x2": x2}, scalars)


def reference(case: Case) -> dict[str, Expected]:
    """Outputs in extended precision."""
    desc = case.descriptor
    wide = {k: np.asarray(v, np.longdouble) for k, v in case.tensors.items()}
    with np.errstate(all="ignore"):
        if isinstance(desc, VarianceDescriptor):
            return _variance(wide["x"], desc)
        if isinstance(desc, VarianceBackwardDescriptor):
            return {"dx": _variance_gradient(wide, desc)}
        if isinstance(desc, VectorNormDescriptor):
            return {"y": _norm(wide["x"], desc)}
        if isinstance(desc, VectorNormBackwardDescriptor):
            return {"dx": _norm_gradient(wide, desc)}
        if isinstance(desc, CosineSimilarityDescriptor):
            return {"y": _cosine(wide, desc, np.longdouble(case.scalars["eps"]))}
        assert isinstance(desc, CosineSimilarityBackwardDescriptor)
        return _cosine_gradient(wide, desc, np.longdouble(case.scalars["eps"]))


def _deviations(x: Array, axes: tuple[int, ...] | None) -> Array:
    """X less its mean: less its first value before, since far from 0 the mean of f64 would be rounded here, too."""
    near = (
        x - x[tuple(slice(0, 1) if axes is None or i in axes else slice(None) for i in range(x.ndim))] if x.size else x
    )
    found: Array = near - np.sum(near, axis=axes, keepdims=True) / np.longdouble(_count(x, axes))
    return found


def _variance(x: Array, desc: VarianceDescriptor) -> dict[str, Expected]:
    how: dict[str, Any] = {"axis": desc.axes, "keepdims": desc.keepdim}
    n = _count(x, desc.axes)
    count = np.longdouble(n)
    squares = np.sum(_deviations(x, desc.axes) ** 2, **how)
    by = np.longdouble(max(n - desc.correction, 0))
    value = squares / by
    own = desc.kind[:3]
    if own == "std":
        value = np.sqrt(value)
    # The deviations' own size: how far from 0 they lie costs nothing.
    found = {own if desc.kind.endswith("mean") else "y": _expected(value, value, n)}
    if desc.kind.endswith("mean"):
        finite = np.all(np.isfinite(x), **how)
        found["mean"] = _expected(
            np.where(finite, np.sum(x, **how) / count, np.nan), np.sum(np.abs(x), **how) / count, n
        )
    return found


def _spread(v: Array, desc: VarianceBackwardDescriptor | VectorNormBackwardDescriptor) -> Array:
    shape = tuple(map(largest, desc.input_shape))
    return np.asarray(v).reshape(tuple(1 if i in (desc.axes or ()) else s for i, s in enumerate(shape)))


def _variance_gradient(wide: dict[str, Array], desc: VarianceBackwardDescriptor) -> Expected:
    x, n = wide["x"], _count(wide["x"], desc.axes)
    count, own, both = np.longdouble(n), desc.kind[:3], desc.kind.endswith("mean")
    apart = _deviations(x, desc.axes)
    apart = np.where(np.isfinite(np.sum(apart, axis=desc.axes, keepdims=True)), apart, np.nan)
    size = np.sum(np.abs(apart), axis=desc.axes, keepdims=True) / count
    dy = _spread(wide["d" + own if both else "dy"], desc)
    scale = np.longdouble(2) / np.maximum(count - np.longdouble(desc.correction), 0)
    slope = dy * scale
    if own == "std":
        y = _spread(wide["std" if both else "y"], desc)
        dy, scale = np.where(y == 0, 0, dy / np.where(y == 0, 1, y)), scale / 2
    value, magnitude = dy * scale * apart, np.abs(dy * scale) * (np.abs(apart) + size)
    if both:
        dmean = _spread(wide["dmean"], desc) / count
        value, magnitude = value + dmean, magnitude + np.abs(dmean)
    found = _expected(value, magnitude, n)
    # The distance from the mean, over y where there is one, before dy multiplies it.
    found.reach, found.lost = _f64(np.abs(apart) + size), _f64(1 + np.abs(slope) + np.abs(dy * scale))
    return found


def _norm(x: Array, desc: VectorNormDescriptor) -> Expected:
    how: dict[str, Any] = {"axis": desc.axes, "keepdims": desc.keepdim}
    n, p = _count(x, desc.axes), desc.p
    if np.isinf(p):
        return _expected((np.max if p > 0 else np.min)(np.abs(x), **how), np.zeros(()), 1)
    if p == 0:
        return _expected(np.sum(x != 0, **how), np.zeros(()), 1)
    powers = np.sum(np.abs(x) ** np.longdouble(p), **how)
    value = powers ** (np.longdouble(1) / np.longdouble(p))
    # Powers and the root have a relative error each, the terms' weighed by 1 / p.
    found = _expected(value, value * (1 + 1 / abs(p) + np.abs(np.log(np.where(value > 0, value, 1)))), n)
    if p not in (1, 2):
        found.reach, found.lost = _f64(powers), _f64(1 + np.where(powers > 0, n * value / (abs(p) * powers), 0))
    return found


def _norm_gradient(wide: dict[str, Array], desc: VectorNormBackwardDescriptor) -> Expected:
    x, p = wide["x"], desc.p
    dy, y = (_spread(wide[k], desc) for k in ("dy", "y"))
    if np.isinf(p):
        equal = np.abs(x) == y
        count = np.sum(equal, axis=desc.axes, keepdims=True)
        value = np.where(equal, np.sign(x) * dy / count, np.longdouble(0) / count * np.sign(x))
        return _expected(value, np.abs(value), 1)
    share = (np.abs(x) / y) ** np.longdouble(p - 1)
    value = dy * np.sign(x) * share
    if p == 1:
        value = dy * np.sign(x)
    if p == 2:
        value = np.where(y == 0, 0, dy * (x / y))
    elif p != 1:
        value = np.where((x == 0) | (p == 0), 0, value)
    found = _expected(value, np.abs(value) * (1 + abs(p - 1)), 1)
    if p != 1:
        # A share of the norm that is lost, or whose power leaves the range, before dy multiplies it.
        found.lost, found.reach = _f64(1 + np.abs(dy)), _f64(np.maximum(np.abs(share), 4 * (p < 1) * y / np.abs(x)))
    return found


def _f64(values: Any) -> Array:
    return np.asarray(values, np.float64)


def _lengths(wide: dict[str, Array], axis: int, eps: Any) -> tuple[Array, Array, Array]:
    a, b = wide["x1"], wide["x2"]
    shape = np.broadcast_shapes(a.shape, b.shape)
    a, b = np.broadcast_to(a, shape), np.broadcast_to(b, shape)
    n1, n2 = (np.sqrt(np.sum(v * v, axis=axis, keepdims=True)) for v in (a, b))
    return n1, n2, np.maximum(n1, eps) * np.maximum(n2, eps)


def _cosine(wide: dict[str, Array], desc: CosineSimilarityDescriptor, eps: Any) -> Expected:
    _, _, both = _lengths(wide, desc.axis, eps)
    products = wide["x1"] * wide["x2"]
    both, n = np.squeeze(both, desc.axis), int(products.shape[desc.axis])
    size = np.sum(np.abs(products), axis=desc.axis) / both
    return _expected(np.sum(products, axis=desc.axis) / both, size, n)


def _cosine_gradient(wide: dict[str, Array], desc: CosineSimilarityBackwardDescriptor, eps: Any) -> dict[str, Expected]:
    axis = desc.axis
    n1, n2, both = _lengths(wide, axis, eps)
    dy, products = np.expand_dims(wide["dy"], axis), wide["x1"] * wide["x2"]
    y, size = (np.sum(v, axis=axis, keepdims=True) / both for v in (products, np.abs(products)))
    found = {}
    for name, x, other, n in (("dx1", wide["x1"], wide["x2"], n1), ("dx2", wide["x2"], wide["x1"], n2)):
        own = np.where(n > eps, dy * x / np.where(n > eps, n, 1) ** 2, 0)
        cross = dy * other / both
        found[name] = _expected(cross - own * y, np.abs(cross) + np.abs(own) * size, int(x.shape[axis]))
        found[name].lost = _f64(1 + np.abs(dy) / np.maximum(n, eps) + 0 * x)
    return found


def forward_of(case: Case) -> Case:
    """The forward case of a backward one."""
    d, t = case.descriptor, case.tensors
    if isinstance(d, CosineSimilarityBackwardDescriptor):
        made = CosineSimilarityDescriptor(d.input_shape, d.input_shape, d.axis, Element.F64)
        return Case(made, {"x1": t["x1"], "x2": t["x2"]}, case.scalars)
    if isinstance(d, VectorNormBackwardDescriptor):
        return Case(VectorNormDescriptor(d.input_shape, d.axes, d.keepdim, Element.F64, d.p), {"x": t["x"]})
    assert isinstance(d, VarianceBackwardDescriptor)
    forward = VarianceDescriptor(d.kind, d.input_shape, d.axes, d.keepdim, Element.F64, d.correction)
    return Case(forward, {"x": t["x"]})
