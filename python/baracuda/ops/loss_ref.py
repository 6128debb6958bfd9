"""Float64 reference of the losses, with sums in extended precision."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from baracuda.elements import Element
from baracuda.ops.loss import (
    CrossEntropyBackwardDescriptor,
    CrossEntropyDescriptor,
    CrossEntropyFusedDescriptor,
    Reduction,
)
from baracuda.reference import Array, Case, Expected

SHAPES: list[tuple[int, ...]] = [
    (7,), (5, 10), (33, 100), (40, 65), (3, 4099), (4, 9, 5), (2, 7, 3, 4), (70, 1), (2, 3, 1, 2, 1, 2, 2, 2), (0, 4),
    (2, 300001),
]  # fmt: skip
SMOOTHING = 0.1


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Ranks 1 to 8, each reduction, ignored and only ignored targets, smoothing, many classes, NaN and infinities."""
    for i, shape in enumerate(SHAPES):
        for reduction in Reduction if np.prod(shape) < 10000 else (Reduction.MEAN,):
            yield _case(op, direction, element, shape, reduction, i, rng)
    nothing = _case(op, direction, element, (4, 6), Reduction.MEAN, 1, rng)
    nothing.tensors["target"][:] = nothing.descriptor.ignore_index  # type: ignore[attr-defined]
    nothing.note, nothing.exact_gradient = "no counted target", False
    yield nothing
    special = _case(op, direction, element, (5, 70), Reduction.NONE, 0, rng)
    x = special.tensors["logits"]
    x[0, 3], x[1, 5], x[2, :], x[3, ::2], x[4] = np.nan, np.inf, -np.inf, -np.inf, np.linspace(-80, 80, 70)
    special.tensors["target"][:] = [1, 2, 3, 5, 60]
    special.note, special.exact_gradient = "special values", False
    if "lse" in special.tensors:
        special.tensors["lse"] = _lse(x)
    yield special


def _lse(x: Array) -> Array:
    axis = 1 if x.ndim > 1 else 0
    with np.errstate(all="ignore"):
        top = np.max(x, axis=axis, keepdims=True) if x.shape[axis] else np.zeros((1,))
        return np.asarray(np.log(np.sum(np.exp(x - top), axis=axis)) + np.squeeze(top, axis))


def _case(
    op: str,
    direction: str,
    element: Element,
    shape: tuple[int, ...],
    reduction: Reduction,
    variant: int,
    rng: np.random.Generator,
) -> Case:
    cls: Any = CrossEntropyFusedDescriptor if op == "cross_entropy_fused" else CrossEntropyDescriptor
    ignore = -100 if variant % 2 else 0
    index = Element.I32 if variant % 3 == 1 else Element.I64
    desc = cls(shape, element, index, reduction, ignore, variant % 3 != 2)
    scalars = {"label_smoothing": SMOOTHING} if variant % 2 else {}
    classes = shape[1] if len(shape) > 1 else shape[0]
    target = rng.integers(0, classes, desc.target_shape())
    if target.ndim == 0:  # counted, whatever is ignored
        target = np.asarray(3)
    if ignore < 0 and target.size > 2:
        target.reshape(-1)[::3] = ignore
    tensors = {"logits": rng.normal(0, 3, shape), "target": target}
    if direction == "forward":
        return Case(desc, tensors, scalars)
    back = CrossEntropyBackwardDescriptor(shape, element, index, reduction, ignore)
    tensors["lse"] = _lse(tensors["logits"])
    tensors["dloss"] = rng.normal(1, 0.2, desc.loss_shape())
    return Case(back, tensors, scalars)


def reference(case: Case) -> dict[str, Expected]:
    """Outputs in float64."""
    desc: Any = case.descriptor
    t = case.tensors
    x = np.moveaxis(np.asarray(t["logits"], np.longdouble), 1 if t["logits"].ndim > 1 else 0, -1)
    s = np.longdouble(case.scalars.get("label_smoothing", 0.0))
    counted = t["target"] != desc.ignore_index
    hot = np.zeros(x.shape, np.longdouble)
    at: Array = np.where(counted, t["target"], 0)[..., None]
    np.put_along_axis(hot, at, 1, axis=-1)
    out: dict[str, Expected] = {}
    with np.errstate(all="ignore"):
        if not isinstance(desc, CrossEntropyBackwardDescriptor):
            out |= _losses(desc, x, at, counted, s)
        if not isinstance(desc, CrossEntropyDescriptor):
            out["dlogits"] = _gradient(desc, t, x, hot, counted, s)
    return out


def _losses(desc: Any, x: Array, at: Array, counted: Array, s: Any) -> dict[str, Expected]:
    top = np.max(x, axis=-1, keepdims=True)
    log_sum = np.log(np.sum(np.exp(x - top), axis=-1))
    to_target = (top - np.take_along_axis(x, at, -1))[..., 0]
    below = np.mean(top - x, axis=-1) if s else np.zeros(x.shape[:-1], np.longdouble)
    each = (1 - s) * (log_sum + to_target) + s * (log_sum + below)
    size = log_sum + np.abs(to_target) + s * below + 1
    each = np.asarray(np.where(counted, each, 0))
    size = np.asarray(np.where(counted, size, 0))
    n = max(x.shape[-1], 1) * max(each.size, 1)
    lse = Expected(_f64(top[..., 0] + log_sum), _f64(np.abs(top[..., 0]) + log_sum + 1), x.shape[-1])
    if desc.reduction is Reduction.NONE:
        return {"loss": Expected(_f64(each), _f64(size), x.shape[-1]), "lse": lse}
    by = np.longdouble(np.count_nonzero(counted)) if desc.reduction is Reduction.MEAN else np.longdouble(1)
    return {"loss": Expected(_f64(each.sum() / by), _f64(size.sum() / by), n), "lse": lse}


def _gradient(desc: Any, t: dict[str, Any], x: Array, hot: Array, counted: Array, s: Any) -> Expected:
    classes = x.shape[-1]
    if "lse" in t:
        lse = np.asarray(t["lse"], np.longdouble)[..., None]
        dloss = np.asarray(t["dloss"], np.longdouble)
    else:
        top = np.max(x, axis=-1, keepdims=True)
        lse, dloss = np.log(np.sum(np.exp(x - top), axis=-1, keepdims=True)) + top, np.ones((), np.longdouble)
    if desc.reduction is Reduction.MEAN:
        dloss = np.asarray(dloss / np.longdouble(np.count_nonzero(counted)))
    weight = np.broadcast_to(dloss, counted.shape)[..., None]
    p = np.exp(x - lse)
    value = weight * (p - (1 - s) * hot - s / classes)
    # x - lse is rounded, so exp has a relative error that grows with both.
    size = np.abs(weight) * (p * (1 + np.abs(x - lse) + np.abs(lse)) + hot + s / classes)
    keep = counted[..., None]
    axis = 1 if x.ndim > 1 else 0
    return Expected(
        _f64(np.moveaxis(np.where(keep, value, 0), -1, axis)),
        _f64(np.moveaxis(np.where(keep, size, 0), -1, axis)),
        max(classes, 1),
    )


def _f64(x: Any) -> Array:
    return np.asarray(x, np.float64)


def forward_of(case: Case) -> Case:
    """The forward case of a backward one."""
    d = case.descriptor
    assert isinstance(d, CrossEntropyBackwardDescriptor)
    desc = CrossEntropyDescriptor(d.logits_shape, Element.F64, d.target_element, d.reduction, d.ignore_index)
    return Case(desc, {k: case.tensors[k] for k in ("logits", "target")}, case.scalars)
