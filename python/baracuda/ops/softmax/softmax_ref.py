"""Float64 reference of the softmaxes, with sums in extended precision."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from baracuda.describe.elements import Element
from baracuda.ops.softmax.softmax import (
    ScaledSoftmaxBackwardDescriptor,
    ScaledSoftmaxDescriptor,
    SoftmaxBackwardDescriptor,
    SoftmaxDescriptor,
)
from baracuda.prove.reference import Array, Case, Expected

SHAPES: list[tuple[tuple[int, ...], int]] = [
    ((), 0), ((1,), 0), ((9,), 0), ((3, 70), 1), ((70, 3), 0), ((4, 5, 6), 1), ((2, 4100), 1), ((2, 9000), 1), ((4100, 3), 0),
    ((300, 20), 0), ((40, 4), 1), ((5, 512), 1), ((2, 640), 1), ((2, 9008), 1),
    ((2, 1, 3, 2, 4, 1, 2, 5), 4), ((0, 5), 1), ((5, 0), 1),
]  # fmt: skip


# Shapes of the mask for some of SHAPES, in turn.
SCALES = [0.125, -1.0, 2.5]


def _scaled_cases(direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    for i, (shape, axis) in enumerate(SHAPES):
        keep = None if i % 3 == 0 else rng.random(shape if i % 3 == 1 else shape[1:]) < 0.7
        yield _scaled(direction, element, axis, rng.normal(0, 3, shape), keep, SCALES[i % 2], rng)
    x, keep = rng.normal(0, 1, (6, 70)), rng.random((6, 70)) < 0.6
    x[1, 3], x[2, 5], x[3, ::2], x[4], x[5] = np.nan, np.inf, -np.inf, np.linspace(-300, 300, 70), -np.inf
    keep[0, :], keep[:, 9], keep[1, 3], keep[2, 5], keep[5, 1] = False, False, False, False, True
    for axis in (0, 1):
        special = _scaled(direction, element, axis, x, keep, 0.5, rng)
        special.note, special.exact_gradient = "special values", False
        yield special


def _scaled(
    direction: str, element: Element, axis: int, x: Array, keep: Array | None, scale: float, rng: np.random.Generator
) -> Case:
    made = ScaledSoftmaxDescriptor(x.shape, axis, element, None if keep is None else keep.shape)
    forward = Case(made, {"x": x} if keep is None else {"x": x, "mask": keep}, {"scale": scale})
    if direction == "forward":
        return forward
    given = {"dy": rng.normal(size=x.shape), "y": reference(forward)["y"].value}
    return Case(made.backward(), given, {"scale": scale}, exact_gradient=keep is None)


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Ranks 0 to 8, every place of the axis, rows longer than a tile, rows of infinities, NaN, far apart values."""
    if op == "scaled_softmax":
        yield from _scaled_cases(direction, element, rng)
        return
    for shape, axis in SHAPES:
        yield _case(op, direction, element, axis, rng.normal(0, 3, shape), rng)
    x = rng.normal(0, 1, (6, 70))
    x[0, :], x[1, 3], x[2, 5], x[3, ::2], x[4] = -np.inf, np.nan, np.inf, -np.inf, np.linspace(-300, 300, 70)
    for axis in (0, 1):
        special = _case(op, direction, element, axis, x, rng)
        special.note, special.exact_gradient = "special values", False
        yield special


def _case(op: str, direction: str, element: Element, axis: int, x: Array, rng: np.random.Generator) -> Case:
    forward = Case(SoftmaxDescriptor(op, x.shape, axis, element), {"x": x})
    if direction == "forward":
        return forward
    y = reference(forward)["y"].value
    return Case(SoftmaxBackwardDescriptor(op, x.shape, axis, element), {"dy": rng.normal(size=x.shape), "y": y})


def reference(case: Case) -> dict[str, Expected]:
    """Outputs in float64."""
    desc = case.descriptor
    wide = {k: np.atleast_1d(np.asarray(v, np.longdouble)) for k, v in case.tensors.items()}
    with np.errstate(all="ignore"):
        if isinstance(desc, SoftmaxDescriptor):
            found = _forward(wide["x"], desc)
        elif isinstance(desc, SoftmaxBackwardDescriptor):
            found = _backward(wide["dy"], wide["y"], desc)
        else:
            assert isinstance(desc, ScaledSoftmaxDescriptor | ScaledSoftmaxBackwardDescriptor)
            found = _scaled_values(wide, desc, np.longdouble(case.scalars["scale"]))
        # What is summed over a row before the result multiplies it.
        reach = np.zeros(()) if "dy" not in wide else np.abs(wide["dy"]).sum(desc.axis, keepdims=True)
    value, magnitude = (np.asarray(v, np.float64).reshape(desc.shape) for v in found)  # type: ignore[arg-type]
    terms = int(desc.shape[desc.axis]) if desc.shape else 1  # type: ignore[arg-type]
    reach = np.broadcast_to(np.asarray(reach, np.float64), found[0].shape).reshape(desc.shape)  # type: ignore[arg-type]
    return {"y" if desc.direction == "forward" else "dx": Expected(value, magnitude, max(terms, 1), reach)}


def _forward(x: Array, desc: SoftmaxDescriptor) -> tuple[Array, Array]:
    below = x - (np.max(x, axis=desc.axis, keepdims=True) if x.size else 0)
    total = np.sum(np.exp(below), axis=desc.axis, keepdims=True)
    # x - max is rounded, so exp has a relative error that grows with it.
    if desc.kind == "softmax":
        y = np.exp(below) / total
        return y, y * (1 + np.abs(below))
    return below - np.log(total), np.abs(below) + np.log(total) + 1


def _scaled_values(
    t: dict[str, Array], desc: ScaledSoftmaxDescriptor | ScaledSoftmaxBackwardDescriptor, scale: np.longdouble
) -> tuple[Array, Array]:
    if isinstance(desc, ScaledSoftmaxBackwardDescriptor):
        value, size = _backward(t["dy"], t["y"], SoftmaxBackwardDescriptor("softmax", desc.shape, desc.axis))
        return value * scale, size * abs(scale)
    x = t["x"] * scale
    keep = np.broadcast_to(t["mask"] != 0, x.shape) if "mask" in t else np.ones(x.shape, bool)
    below = np.where(keep, x, -np.inf)
    below = below - (np.max(below, axis=desc.axis, keepdims=True) if x.size else 0)
    terms = np.exp(below)
    y = terms / np.sum(terms, axis=desc.axis, keepdims=True)
    nothing = ~np.any(keep, axis=desc.axis, keepdims=True)
    y = np.where(nothing, 0, y)
    # scale x and x - max are rounded, so exp has a relative error that grows with them.
    return y, np.where(y > 0, y * (1 + np.abs(below) + np.abs(x)), 0)


def _backward(dy: Array, y: Array, desc: SoftmaxBackwardDescriptor) -> tuple[Array, Array]:
    if desc.kind == "softmax":
        products = np.sum(y * dy, axis=desc.axis, keepdims=True)
        size = np.sum(np.abs(y * dy), axis=desc.axis, keepdims=True)
        return y * (dy - products), np.abs(y) * (np.abs(dy) + size)
    total, size = (np.sum(v, axis=desc.axis, keepdims=True) for v in (dy, np.abs(dy)))
    return dy - np.exp(y) * total, np.abs(dy) + np.exp(y) * size


def forward_of(case: Case) -> Case:
    """The forward case of a backward one: any x with this result, such as its logarithm."""
    d = case.descriptor
    if isinstance(d, ScaledSoftmaxBackwardDescriptor):
        x = np.log(case.tensors["y"]) / case.scalars["scale"]
        return Case(ScaledSoftmaxDescriptor(d.shape, d.axis, Element.F64), {"x": x}, case.scalars)
    assert isinstance(d, SoftmaxBackwardDescriptor)
    y = case.tensors["y"]
    return Case(SoftmaxDescriptor(d.kind, d.shape, d.axis, Element.F64), {"x": np.log(y) if d.kind == "softmax" else y})
