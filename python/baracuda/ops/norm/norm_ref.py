"""Float64 reference of the norms, with sums in extended precision."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from baracuda.describe.elements import Element
from baracuda.ops.norm.layer_norm import LayerNormBackwardDescriptor, LayerNormDescriptor
from baracuda.ops.norm.norm import (
    AddRmsNormBackwardDescriptor,
    AddRmsNormDescriptor,
    RmsNormAddBackwardDescriptor,
    RmsNormAddDescriptor,
    RmsNormBackwardDescriptor,
    RmsNormDescriptor,
)
from baracuda.prove.reference import Array, Case, Expected, round_to, to_reference

EPS = 1e-3
# Shapes with the number of normalised dimensions; more than 512 rows fill several strips and blocks of rows.
SHAPES: list[tuple[tuple[int, ...], int]] = [
    ((1,), 1), ((7,), 1), ((3, 70), 1), ((4, 5, 6), 2), ((4, 5, 6), 3), ((2, 4100), 1), ((2600, 12), 1), ((40, 130), 1),
    ((2600, 24), 1), ((5, 512), 1), ((3, 1024), 1), ((2, 8448), 1), ((0, 5), 1), ((2, 1, 3, 2, 4, 1, 2, 5), 3),
]  # fmt: skip
# Group norms as (batch, groups, channels, positions), and over how many of the last dimensions a weight is one number.
GROUPS: list[tuple[tuple[int, ...], int]] = [
    ((2, 3, 4, 5), 1), ((2, 3, 2, 49), 1), ((3, 2, 3, 1500), 1), ((2, 2, 1, 9000), 1), ((2, 4, 6, 1), 0), ((1, 3, 70), 0),
    ((2, 5, 40), 1),
]  # fmt: skip
FORWARD: dict[str, Any] = {
    "rms_norm": RmsNormDescriptor,
    "add_rms_norm": AddRmsNormDescriptor,
    "rms_norm_add": RmsNormAddDescriptor,
    "layer_norm": LayerNormDescriptor,
}
BACKWARD: dict[str, Any] = {
    "rms_norm": RmsNormBackwardDescriptor,
    "add_rms_norm": AddRmsNormBackwardDescriptor,
    "rms_norm_add": RmsNormAddBackwardDescriptor,
    "layer_norm": LayerNormBackwardDescriptor,
}


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """One to three normalised dimensions, with and without each optional tensor, NaN and infinities.

    Some weights have an offset. rms_norm_add, whose gradient runs rms_norm's kernels, has fewer shapes.
    """
    for i, (shape, dims) in enumerate(SHAPES):
        if op == "rms_norm_add" and i % 2 == 0 and 0 not in shape:
            continue
        yield _case(op, direction, element, shape, dims, i, rng)
    for i in range(2):
        yield _case(op, direction, element, (5, 33), 1, i, rng)
    if op == "layer_norm" and direction == "forward":
        for i, (shape, spread) in enumerate(GROUPS):
            yield _grouped(element, shape, spread, i, rng)
    special = _case(op, direction, element, (5, 33), 1, 1, rng)
    x = special.tensors["sum" if "sum" in special.tensors else "x"]
    x[1, 3], x[2, 5], x[3] = np.nan, np.inf, 0
    special.note, special.exact_gradient = "special values", False
    yield special


def _case(
    op: str, direction: str, element: Element, shape: tuple[int, ...], dims: int, variant: int, rng: np.random.Generator
) -> Case:
    ends, odd = shape[len(shape) - dims :], bool(variant % 2)
    offset = float(variant % 4 == 3)
    if direction == "forward":
        bias = (variant % 3 != 0,) if op == "layer_norm" else ()
        desc = FORWARD[op](shape, ends, element, odd, *bias, variant % 3 != 1, offset)
        tensors = {p.name: rng.normal(0.3, 1, p.shape) for p in desc.signature().inputs}
        return Case(desc, tensors, {"eps": EPS})
    last = (variant % 3 != 0,) if op in ("add_rms_norm", "layer_norm") else ()
    desc = BACKWARD[op](shape, ends, element, odd, odd or variant % 4 == 0, *last, weight_offset=offset)
    tensors = {p.name: rng.normal(0.3, 1, p.shape) for p in desc.signature().inputs}
    x = tensors["sum" if op == "add_rms_norm" else "x"]
    axes = tuple(range(len(shape) - dims, len(shape)))
    mean = x.mean(axes, keepdims=True) if op == "layer_norm" else np.zeros(())
    tensors["rstd"] = 1 / np.sqrt(((x - mean) ** 2).mean(axes, keepdims=True) + EPS)
    if op == "layer_norm":
        tensors["mean"] = mean
    return Case(desc, tensors)


def _grouped(element: Element, shape: tuple[int, ...], spread: int, variant: int, rng: np.random.Generator) -> Case:
    weight, bias = variant % 3 != 1, variant % 3 != 2
    offset = float(weight and variant % 2)
    desc = LayerNormDescriptor(shape, shape[2:], element, weight, bias, variant % 2 == 0, offset, weight_rows=1)
    tensors = {p.name: rng.normal(0.3, 1, p.shape) for p in desc.signature().inputs}
    for name in {"weight", "bias"} & set(tensors):
        one = tensors[name][(..., *(slice(1) for _ in range(spread)))]
        tensors[name] = np.broadcast_to(one, tensors[name].shape)
    return Case(desc, tensors, {"eps": EPS})


def reference(case: Case) -> dict[str, Expected]:
    """Outputs in float64."""
    desc: Any = case.descriptor
    t = {k: np.asarray(v, np.longdouble) for k, v in case.tensors.items()}
    dims = len(desc.normalized_shape)
    axes = tuple(range(len(desc.input_shape) - dims, len(desc.input_shape)))
    with np.errstate(all="ignore"):
        found = _forward(case, desc, t, axes) if desc.direction == "forward" else _backward(desc, t, axes)
    with np.errstate(over="ignore"):
        made = {k: (n, [np.asarray(x, np.float64) for x in (v, m, *ends)]) for k, (v, m, n, *ends) in found.items()}
    return {k: Expected(v, m, n, *ends) for k, (n, (v, m, *ends)) in made.items()}


# Value, magnitude and terms; reach and lost where they matter.
Found = dict[str, tuple[Any, ...]]


def _length(desc: Any) -> int:
    return max(int(np.prod(desc.normalized_shape, dtype=np.int64)), 1)


def _weight(desc: Any, t: dict[str, Array]) -> Array:
    return np.asarray(t["weight"] + desc.weight_offset if "weight" in t else np.ones((), np.longdouble))


def _forward(case: Case, desc: Any, t: dict[str, Array], axes: tuple[int, ...]) -> Found:
    out: Found = {}
    x, n = t["x"], _length(desc)
    if "sum" in {p.name for p in desc.signature().outputs}:
        total = x + t["residual"]
        out["sum"] = (total, np.abs(total), 1)
        # What is normalised is the sum as it was stored.
        x = to_reference(round_to(np.asarray(total, np.float64), desc.element)).astype(np.longdouble)
    centred = isinstance(desc, LayerNormDescriptor)
    mean = x.mean(axes, keepdims=True) if centred else np.zeros((), np.longdouble)
    size = np.abs(x).mean(axes, keepdims=True) if centred else mean
    rstd = 1 / np.sqrt(((x - mean) ** 2).mean(axes, keepdims=True) + np.longdouble(case.scalars["eps"]))
    scaled, error = (x - mean) * rstd, (np.abs(x - mean) + size) * rstd
    weight, bias = _weight(desc, t), t.get("bias", np.zeros((), np.longdouble))
    if isinstance(desc, RmsNormAddDescriptor):
        bias = t["residual"]
    out["y"] = (scaled * weight + bias, error * np.abs(weight) + np.abs(bias), n, 0, 1 + np.abs(weight))
    # A mean that is off by a rounding moves the variance by its square only.
    out["rstd"] = (rstd, rstd * (1 + size * size * rstd * rstd * 2.0**-20), n)
    if centred:
        out["mean"] = (mean, size, n)
    return out


def _backward(desc: Any, t: dict[str, Array], axes: tuple[int, ...]) -> Found:
    dy, x, rstd, n = t["dy"], t["sum"] if "sum" in t else t["x"], t["rstd"], _length(desc)
    rows = tuple(range(len(desc.input_shape) - len(desc.normalized_shape)))
    count = max(int(np.prod([desc.input_shape[a] for a in rows], dtype=np.int64)), 1)
    centred = isinstance(desc, LayerNormBackwardDescriptor)
    mean = t["mean"] if centred else np.zeros((), np.longdouble)
    xhat, xsize = (x - mean) * rstd, (np.abs(x) + np.abs(mean)) * np.abs(rstd)
    g = dy * _weight(desc, t)
    dx = g - xhat * (g * xhat).mean(axes, keepdims=True)
    size = np.abs(g) + xsize * (np.abs(g) * xsize).mean(axes, keepdims=True)
    if centred:
        dx, size = dx - g.mean(axes, keepdims=True), size + np.abs(g).mean(axes, keepdims=True)
    more = t.get("dsum", np.zeros((), np.longdouble))
    # Lost may be g, xhat and their products.
    total, most = (np.abs(g) * xsize).sum(axes, keepdims=True), np.abs(g).mean(axes, keepdims=True)
    lost = 1 + np.abs(rstd) * (1 + xsize) * (1 + most * (1 + xsize))
    reach = np.maximum(np.maximum(total, size), np.abs(g).max(axes, keepdims=True, initial=0))
    if centred:
        reach = np.maximum(reach, np.abs(g).sum(axes, keepdims=True))
        reach = np.maximum(reach, np.abs(x) + np.abs(mean))
    out: Found = {"dx": (dx * rstd + more, size * np.abs(rstd) + np.abs(more), n, reach, lost)}
    if desc.dweight:
        reach = (np.abs(x) + np.abs(mean)).max(rows, initial=0)
        out["dweight"] = (
            (dy * xhat).sum(rows), (np.abs(dy) * np.abs(xsize)).sum(rows), count, reach, 1 + np.abs(dy).sum(rows)
        )  # fmt: skip
    if centred and desc.dbias:
        out["dbias"] = (dy.sum(rows), np.abs(dy).sum(rows), count)
    return out


def forward_of(case: Case) -> Case:
    """The forward case of a backward one, residuals being zeros."""
    d: Any = case.descriptor
    op = d.op_name
    x = case.tensors["sum"] if op == "add_rms_norm" else case.tensors["x"]
    weight = "weight" in case.tensors or d.dweight
    tensors = {"x": x, **({} if op in ("rms_norm", "layer_norm") else {"residual": np.zeros_like(x)})}
    if weight:
        tensors["weight"] = case.tensors.get("weight", np.ones(d.normalized_shape))
    bias = (d.dbias,) if op == "layer_norm" else ()
    if bias == (True,):
        tensors["bias"] = np.zeros(d.normalized_shape)
    desc = FORWARD[op](d.input_shape, d.normalized_shape, Element.F64, weight, *bias, weight_offset=d.weight_offset)
    return Case(desc, tensors, {"eps": EPS})
