"""Float64 reference of the losses of classes, with sums in extended precision."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from baracuda.describe.elements import Element
from baracuda.ops.loss.loss import (
    CrossEntropyBackwardDescriptor,
    CrossEntropyDescriptor,
    CrossEntropyFusedDescriptor,
    NllLossBackwardDescriptor,
    NllLossDescriptor,
    Reduction,
)
from baracuda.prove.reference import Array, Case, Expected

SHAPES: list[tuple[int, ...]] = [
    (7,), (5, 10), (33, 100), (40, 65), (3, 4099), (4, 9, 5), (2, 7, 3, 4), (70, 1), (2, 3, 1, 2, 1, 2, 2, 2), (0, 4),
    (2, 300001),
]  # fmt: skip
SMOOTHING = 0.1


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Ranks 1 to 8, each reduction, weights, probabilities, ignored targets, smoothing, many classes, wide losses, NaN."""
    for i, shape in enumerate(SHAPES):
        for reduction in Reduction if np.prod(shape) < 10000 else (Reduction.MEAN,):
            yield _case(op, direction, element, shape, reduction, i, rng)
            if op == "cross_entropy_fused" or np.prod(shape) > 10000:
                continue
            heavy = _case(op, direction, element, shape, reduction, i, rng, weighted=True)
            if i % 2:  # of either sign, and some 0
                heavy.tensors["weight"][::2] *= -1
                heavy.tensors["weight"][3::4] = 0
                heavy.exact_gradient = False
            yield heavy
            if op == "cross_entropy":
                yield _case(op, direction, element, shape, reduction, i, rng, weighted=i % 2 == 0, indices=False)
    nothing = _case(op, direction, element, (4, 6), Reduction.MEAN, 1, rng)
    nothing.tensors["target"][:] = nothing.descriptor.ignore_index  # type: ignore[attr-defined]
    nothing.note, nothing.exact_gradient = "no counted target", False
    yield nothing
    special = _case(op, direction, element, (5, 70), Reduction.NONE, 0, rng)
    x = special.tensors["input" if op == "nll_loss" else "logits"]
    x[0, 3], x[1, 5], x[2, :], x[3, ::2], x[4] = np.nan, np.inf, -np.inf, -np.inf, np.linspace(-80, 80, 70)
    special.tensors["target"][:] = [1, 2, 3, 5, 60]
    special.note, special.exact_gradient = "special values", False
    if "lse" in special.tensors:
        special.tensors["lse"] = _lse(x)
    yield special
    for reduction in Reduction if element.is_half else ():
        for shape in ((5, 10), (3, 4099), (4, 9, 5)):
            wide = _case(op, direction, element, shape, reduction, 1, rng, weighted=op != "cross_entropy_fused")
            wide.descriptor = replace(wide.descriptor, out_element=Element.F32)  # type: ignore[type-var]
            wide.note = "a loss of f32"
            yield wide


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
    weighted: bool = False,
    indices: bool = True,
) -> Case:
    ignore = -100 if variant % 2 or not indices else 0
    index = element if not indices else Element.I32 if variant % 3 == 1 else Element.I64
    classes = shape[1] if len(shape) > 1 else shape[0]
    save = variant % 3 != 2
    desc: Any
    if op == "nll_loss":
        desc = NllLossDescriptor(shape, element, index, reduction, ignore, weighted)
    elif op == "cross_entropy_fused":
        desc = CrossEntropyFusedDescriptor(shape, element, index, reduction, ignore, save)
    else:
        desc = CrossEntropyDescriptor(shape, element, index, reduction, ignore, save, weighted)
    target = rng.integers(0, classes, desc.row_shape()) if indices else rng.uniform(0, 1, shape)
    if target.ndim == 0:  # counted, whatever is ignored
        target = np.asarray(3)
    if indices and ignore < 0 and target.size > 2:
        target.reshape(-1)[::3] = ignore
    scores = "input" if op == "nll_loss" else "logits"
    tensors = {scores: rng.normal(0, 3, shape), "target": target}
    if weighted:
        tensors["weight"] = rng.uniform(0.2, 2, classes)
    scalars = {"label_smoothing": SMOOTHING} if variant % 2 and op != "nll_loss" else {}
    if direction == "forward":
        return Case(desc, tensors, scalars)
    if op == "cross_entropy":
        tensors["lse"] = _lse(tensors["logits"])
    tensors["dloss"] = rng.normal(1, 0.2, desc.loss_shape())
    return Case(desc.backward(), tensors, scalars)


def reference(case: Case) -> dict[str, Expected]:
    """Outputs in float64."""
    desc: Any = case.descriptor
    t = case.tensors
    scores = t["input"] if desc.op == "nll_loss" else t["logits"]
    axis = 1 if scores.ndim > 1 else 0
    x = np.moveaxis(np.asarray(scores, np.longdouble), axis, -1)
    s = np.longdouble(case.scalars.get("label_smoothing", 0.0))
    w = np.asarray(t.get("weight", np.ones(x.shape[-1])), np.longdouble)
    # What each class of each row counts for, the target's own part apart, and what a row adds to a mean's divisor.
    if desc.target_element.is_float:
        hot = np.zeros(x.shape, np.longdouble)
        rest = (np.moveaxis(np.asarray(t["target"], np.longdouble), axis, -1) * (1 - s) + s / max(x.shape[-1], 1)) * w
        counted, by = np.ones(x.shape[:-1], bool), np.ones(x.shape[:-1], np.longdouble)
    else:
        counted = t["target"] != desc.ignore_index
        at: Array = np.where(counted, t["target"], 0)[..., None]
        hot = np.zeros(x.shape, np.longdouble)
        if x.size:
            np.put_along_axis(hot, at, 1, axis=-1)
        hot, rest = hot * w * (1 - s), np.broadcast_to(w * s / max(x.shape[-1], 1), x.shape)
        by = np.asarray(np.where(counted, w[at[..., 0]], 0)) if x.size else np.zeros(counted.shape, np.longdouble)
    out: dict[str, Expected] = {}
    with np.errstate(all="ignore"):
        share = by.sum() if desc.reduction is Reduction.MEAN else np.longdouble(1)
        if desc.op == "nll_loss":
            return _likelihood(desc, t, x, hot, counted, share, axis)
        if not isinstance(desc, CrossEntropyBackwardDescriptor):
            out |= _losses(desc, x, hot, rest, counted, share)
        if not isinstance(desc, CrossEntropyDescriptor):
            out["dlogits"] = _gradient(desc, t, x, hot, rest, counted, share)
    return out


def _where(some: Array, values: Array) -> Array:
    """Products that are 0 where one factor is, however large the other: kernels do not multiply there."""
    return np.asarray(np.where(some != 0, some * values, 0))


def _losses(desc: Any, x: Array, hot: Array, rest: Array, counted: Array, share: Any) -> dict[str, Expected]:
    top = np.max(x, axis=-1, keepdims=True, initial=-np.inf)
    log_sum = np.log(np.sum(np.exp(x - top), axis=-1))
    below = top - x
    spread = rest * below if np.any(rest) else np.zeros_like(rest)
    each = np.sum(hot + rest, axis=-1) * log_sum + np.sum(_where(hot, below) + spread, axis=-1)
    parts = np.sum(np.abs(_where(hot, below)) + np.abs(spread), axis=-1)
    # What is summed before a weight or a share of smoothing multiplies it.
    formed = np.max(np.sum(np.where(np.isfinite(spread), np.abs(below), 0), axis=-1) if np.any(rest) else 0, initial=0)
    size = np.sum(np.abs(hot) + np.abs(rest), axis=-1) * (np.abs(log_sum) + 1) + parts
    each = np.asarray(np.where(counted, each, 0))
    size = np.asarray(np.where(counted, size, 0))
    n = max(x.shape[-1], 1) * max(each.size, 1)
    lse = Expected(_f64(top[..., 0] + log_sum), _f64(np.abs(top[..., 0]) + log_sum + 1), x.shape[-1])
    if desc.reduction is Reduction.NONE:
        return {"loss": Expected(_f64(each), _f64(size), x.shape[-1], _f64(formed)), "lse": lse}
    total = size.sum()
    return {
        "loss": Expected(_f64(each.sum() / share), _f64(total / np.abs(share)), n, _f64(np.maximum(total, formed))),
        "lse": lse,
    }


def _gradient(desc: Any, t: dict[str, Any], x: Array, hot: Array, rest: Array, counted: Array, share: Any) -> Expected:
    classes = x.shape[-1]
    if "lse" in t:
        lse = np.asarray(t["lse"], np.longdouble)[..., None]
        dloss = np.asarray(t["dloss"], np.longdouble)
    else:
        top = np.max(x, axis=-1, keepdims=True, initial=-np.inf)
        lse, dloss = np.log(np.sum(np.exp(x - top), axis=-1, keepdims=True)) + top, np.ones((), np.longdouble)
    weight = np.broadcast_to(np.asarray(dloss / share), counted.shape)[..., None]
    share_of_class = np.exp(x - lse)
    p = share_of_class * np.sum(hot + rest, axis=-1, keepdims=True)
    p_size = share_of_class * np.sum(np.abs(hot) + np.abs(rest), axis=-1, keepdims=True)
    value = weight * (p - hot - rest)
    # x - lse is rounded, so exp has a relative error that grows with both.
    size = np.abs(weight) * (p_size * (1 + np.abs(x - lse) + np.abs(lse)) + np.abs(hot) + np.abs(rest))
    keep = counted[..., None]
    axis = 1 if x.ndim > 1 else 0
    # The weights of a row together, before a probability multiplies them.
    heavy = (
        np.maximum(np.abs(weight), np.max(np.abs(dloss), initial=0))
        * np.sum(np.abs(hot) + np.abs(rest), axis=-1, keepdims=True)
        + 0 * size
    )

    def laid(values: Array) -> Array:
        return _f64(np.moveaxis(np.where(keep, values, 0), -1, axis))

    return Expected(laid(value), laid(size), max(classes, 1), laid(heavy), laid(1 + heavy))


def _likelihood(
    desc: Any, t: dict[str, Any], x: Array, hot: Array, counted: Array, share: Any, axis: int
) -> dict[str, Expected]:
    if isinstance(desc, NllLossBackwardDescriptor):
        dloss = np.broadcast_to(np.asarray(np.asarray(t["dloss"], np.longdouble) / share), counted.shape)[..., None]
        value = np.where(counted[..., None] & (hot != 0), -dloss * hot, 0)
        # Either factor of the quotient, or both, before the other one.
        given = np.max(np.abs(np.asarray(t["dloss"], np.longdouble)), initial=0)
        formed = np.maximum(given, np.abs(dloss)) * np.maximum(1, np.abs(hot))
        return {"dinput": Expected(_f64(np.moveaxis(value, -1, axis)), reach=_f64(np.moveaxis(formed, -1, axis)))}
    each = np.where(counted, -np.sum(_where(hot, x), axis=-1), 0)
    if desc.reduction is Reduction.NONE:
        return {"loss": Expected(_f64(each))}
    total = np.abs(each).sum()
    return {"loss": Expected(_f64(each.sum() / share), _f64(total / np.abs(share)), max(each.size, 1), _f64(total))}


def _f64(x: Any) -> Array:
    return np.asarray(x, np.float64)


def forward_of(case: Case) -> Case:
    """The forward case of a backward one."""
    d: Any = case.descriptor
    index = Element.F64 if d.target_element.is_float else d.target_element
    if isinstance(d, NllLossBackwardDescriptor):
        desc: Any = NllLossDescriptor(d.input_shape, Element.F64, index, d.reduction, d.ignore_index, d.weighted)
    else:
        desc = CrossEntropyDescriptor(d.logits_shape, Element.F64, index, d.reduction, d.ignore_index, True, d.weighted)
    return Case(desc, {k: v for k, v in case.tensors.items() if k not in ("dloss", "lse")}, case.scalars)
