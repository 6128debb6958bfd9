"""Float64 reference of batch norms, with sums in extended precision."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from baracuda.describe.elements import Element
from baracuda.ops.norm.batch_norm import BatchNormBackwardDescriptor, BatchNormDescriptor
from baracuda.prove.reference import Array, Case, Expected

EPS = 1e-3
# (shape, layout): channels behind images, or side by side. Channels and positions on both sides of tiles, blocks and strips,
# of one value, and none.
SHAPES: list[tuple[tuple[int, ...], bool]] = [
    ((3, 2, 5), False), ((70, 3), False), ((4, 5, 3, 2), False), ((2, 2, 70, 61), False), ((2, 1, 20000), False),
    ((300, 20), True), ((2, 140, 7, 11), True), ((150, 17, 2), True), ((1, 1), False), ((0, 3, 4), False),
    ((3, 0, 2), False), ((2, 18, 1, 3, 2, 3), False), ((40, 3, 5, 6), True), ((1, 20, 300), False), ((2, 2, 3, 260), False),
]  # fmt: skip


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Both layouts, training and not, of channels and of instances, with and without each optional tensor; NaN and infinities."""
    for i, (shape, side) in enumerate(SHAPES):
        for each in (False, True):
            training = each or i % 3 != 2
            yield _case(direction, element, shape, side, training, each, i + each, rng)
    yield _case(direction, element, (5, 3, 4), False, False, False, 1, rng)
    special = _case(direction, element, (4, 5, 33), False, True, False, 1, rng)
    x = special.tensors["x"]
    x[1, 3, 5], x[2, 4, 5], x[:, 2] = np.nan, np.inf, 0
    special.note, special.exact_gradient = "special values", False
    yield special


def _case(
    direction: str, element: Element, shape: tuple[int, ...], side: bool, training: bool, each: bool, variant: int,
    rng: np.random.Generator,
) -> Case:  # fmt: skip
    weight, bias, running = variant % 2 == 1, variant % 3 != 0, not training or variant % 4 != 2
    own = element.statistic if variant % 5 < 2 else element
    if direction == "forward":
        desc: Any = BatchNormDescriptor(
            shape, element, training, each, weight, own, bias, running, element.statistic if variant % 2 else element,
            variant % 3 != 1,
        )  # fmt: skip
        tensors = {p.name: rng.normal(0.3, 1, p.shape) for p in desc.signature().inputs}
        if running:
            tensors["running_var"] = np.abs(tensors["running_var"])
        numbers = {"eps": EPS} | ({"momentum": 0.25} if running and training else {})
        return Case(desc, _placed(tensors, side), numbers)
    desc = BatchNormBackwardDescriptor(shape, element, training, each, weight, own, weight or variant % 4 == 0, bias)
    tensors = {p.name: rng.normal(0.3, 1, p.shape) for p in desc.signature().inputs}
    mean, var, _ = _statistics(tensors["x"], each)
    if training:
        tensors["mean"], tensors["rstd"] = mean, 1 / np.sqrt(var + EPS)
    else:
        tensors["rstd"] = 1 / np.sqrt(np.abs(tensors["rstd"]) + EPS)
    return Case(desc, _placed(tensors, side), exact_gradient=training)


def _placed(tensors: dict[str, Array], side: bool) -> dict[str, Array]:
    """With channels side by side in memory, where that is wanted."""
    if side:
        for name in {"x", "dy"} & set(tensors):
            tensors[name] = np.moveaxis(np.ascontiguousarray(np.moveaxis(tensors[name], 1, -1)), -1, 1)
    return tensors


def _axes(rank: int, each: bool) -> tuple[int, ...]:
    return tuple(range(2, rank)) if each else (0, *range(2, rank))


def _statistics(x: Array, each: bool) -> tuple[Array, Array, int]:
    """Mean, variance, and of how many values each is."""
    axes = _axes(x.ndim, each)
    count = int(np.prod([x.shape[a] for a in axes], dtype=np.int64))
    kept = x.shape[:2] if each else x.shape[1:2]
    if count == 0:
        return np.full(kept, np.nan), np.full(kept, np.nan), 0
    mean = x.mean(axes, keepdims=True)
    return mean.reshape(kept), ((x - mean) ** 2).mean(axes).reshape(kept), count


def _over(v: Array, rank: int) -> Array:
    """A value of each channel (or of each image's) beside x."""
    lead = v.shape if v.ndim == 2 else (1, *v.shape)
    return v.reshape(*lead, *(1,) * (rank - 2))


def reference(case: Case) -> dict[str, Expected]:
    """Outputs in float64."""
    desc: Any = case.descriptor
    t = {k: np.asarray(v, np.longdouble) for k, v in case.tensors.items()}
    with np.errstate(all="ignore"):
        found = _forward(case, desc, t) if desc.direction == "forward" else _backward(desc, t)
        made = {k: (n, [np.asarray(x, np.float64) for x in (v, m, *ends)]) for k, (v, m, n, *ends) in found.items()}
    wanted = {p.name for p in desc.signature().outputs}
    return {k: Expected(v, m, n, *ends) for k, (n, (v, m, *ends)) in made.items() if k in wanted}


Found = dict[str, tuple[Any, ...]]  # value, magnitude and terms; reach and lost where they matter


def _forward(case: Case, desc: Any, t: dict[str, Array]) -> Found:
    x, rank = t["x"], t["x"].ndim
    eps = np.longdouble(case.scalars["eps"])
    if desc.training:
        mean, var, count = _statistics(x, desc.per_instance)
        size = np.abs(x).mean(_axes(rank, desc.per_instance)).reshape(mean.shape) if count else mean
    else:
        mean, var, count, size = t["running_mean"], t["running_var"], 1, np.abs(t["running_mean"])
    rstd, n = 1 / np.sqrt(var + eps), max(count, 1)
    one = np.ones(x.shape[1:2], np.longdouble)
    weight, bias = _over(t.get("weight", one), rank), _over(t.get("bias", 0 * one), rank)
    centred, scale = x - _over(mean, rank), _over(rstd, rank)
    error = (np.abs(centred) + _over(size, rank)) * scale
    reach = np.abs(centred) * scale
    out: Found = {
        "y": (centred * scale * weight + bias, error * np.abs(weight) + np.abs(bias), n, reach, 1 + np.abs(weight)),
        # A mean that is off by a rounding moves the variance by its square only.
        "rstd": (rstd, rstd * (1 + size * size * rstd * rstd * 2.0**-20), n),
        "mean": (mean, size, n),
    }
    if desc.training and desc.running:
        momentum = np.longdouble(case.scalars["momentum"])
        for name, own, sizes in (("mean", mean, size), ("var", *_unbiased(var, size, count))):
            old = t[f"running_{name}"]
            if x.size == 0:
                out[f"next_{name}"] = (old, np.abs(old), 1)
                continue
            own, sizes = (own.mean(0), sizes.mean(0)) if own.ndim == 2 else (own, sizes)
            terms = n * (x.shape[0] if desc.per_instance else 1)
            out[f"next_{name}"] = (
                (1 - momentum) * old + momentum * own, np.abs(1 - momentum) * np.abs(old) + momentum * sizes, terms
            )  # fmt: skip
    return out


def _unbiased(var: Array, size: Array, count: int) -> tuple[Array, Array]:
    """The variance as running statistics have it, and what its rounding counts from."""
    by = np.longdouble(count) / np.longdouble(count - 1) if count != 1 else np.longdouble(np.nan)
    return np.where(np.isnan(by), np.longdouble(0) / np.longdouble(0) + 0 * var, var * by), (
        var + size * size * 2.0**-20
    ) * by


def _backward(desc: Any, t: dict[str, Array]) -> Found:
    dy, x, rank = t["dy"], t["x"], t["x"].ndim
    axes, over = _axes(rank, desc.per_instance), _axes(rank, False)
    mean, rstd = _over(t["mean"], rank), _over(t["rstd"], rank)
    n = max(int(np.prod([x.shape[a] for a in axes], dtype=np.int64)), 1)
    every = max(int(np.prod([x.shape[a] for a in over], dtype=np.int64)), 1)
    weight = _over(t.get("weight", np.ones(x.shape[1:2], np.longdouble)), rank)
    xhat, xsize = (x - mean) * rstd, (np.abs(x) + np.abs(mean)) * np.abs(rstd)
    inner, size = dy, np.abs(dy)
    if desc.training and x.size:
        inner = dy - dy.mean(axes, keepdims=True) - xhat * (dy * xhat).mean(axes, keepdims=True)
        size = size + np.abs(dy).mean(axes, keepdims=True) + xsize * (np.abs(dy) * xsize).mean(axes, keepdims=True)
    scale = np.abs(rstd) * np.abs(weight)
    # What is formed on the way: sums, products, and the result before its weight.
    reach = np.maximum(np.maximum(size, size * np.abs(rstd)), np.abs(x) + np.abs(mean))
    if x.size:
        reach = np.maximum(reach, np.abs(dy).sum(axes, keepdims=True) + (np.abs(dy) * xsize).sum(axes, keepdims=True))
    most = np.abs(dy).mean(axes, keepdims=True) if x.size else np.abs(dy)
    lost = 1 + np.abs(weight) + scale * (1 + xsize) * (1 + most * (1 + xsize))
    far = (np.abs(x) + np.abs(mean)).max(over, initial=0)
    return {
        "dx": (inner * rstd * weight, size * scale, n, reach, lost),
        "dweight": ((dy * xhat).sum(over), (np.abs(dy) * xsize).sum(over), every, far, 1 + np.abs(dy).sum(over)),
        "dbias": (dy.sum(over), np.abs(dy).sum(over), every),
    }


def forward_of(case: Case) -> Case:
    """The forward case of a backward one."""
    d: Any = case.descriptor
    channels = d.input_shape[1:2]
    weight = "weight" in case.tensors or d.dweight
    tensors = {"x": case.tensors["x"]}
    if weight:
        tensors["weight"] = case.tensors.get("weight", np.ones(channels))
    if d.dbias:
        tensors["bias"] = np.zeros(channels)
    desc = BatchNormDescriptor(
        d.input_shape, Element.F64, True, d.per_instance, weight, None, d.dbias, running=False, save=False
    )
    return Case(desc, tensors, {"eps": EPS})
