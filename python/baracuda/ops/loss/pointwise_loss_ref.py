"""Float64 reference of the elementwise losses, in extended precision."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from baracuda.describe.elements import Element
from baracuda.ops.loss.pointwise_loss import (
    NUMBERS,
    LossReduction,
    PointwiseLossBackwardDescriptor,
    PointwiseLossDescriptor,
)
from baracuda.prove.reference import Array, Case, Expected

_WEIGHTS = {"binary_cross_entropy": 1, "binary_cross_entropy_with_logits": 2}
# Input and target; the last two only for losses that broadcast.
_SHAPES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((5,), (5,)), ((), ()), ((3, 700), (3, 700)), ((2, 3, 1, 2, 1, 2, 2, 2), (2, 3, 1, 2, 1, 2, 2, 2)),
    ((0, 4), (0, 4)), ((70, 1001), (70, 1001)), ((4, 1, 6), (5, 1)), ((7,), (300, 7)),
]  # fmt: skip


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Ranks 0 to 8, broadcasting, each reduction, weights, numbers; NaN, infinities and the ends of the range."""
    for i, shapes in enumerate(_SHAPES):
        if op in _WEIGHTS and shapes[0] != shapes[1]:
            continue
        for j, reduction in enumerate(LossReduction):
            if (reduction is LossReduction.BATCHMEAN and op != "kl_div") or (i >= 5 and j == i % 3):
                continue
            yield _case(op, direction, element, shapes, reduction, i + j, rng)
    special = _case(op, direction, element, ((4, 6), (4, 6)), LossReduction.NONE, 2, rng)
    special.note, special.exact_gradient = "special values", False
    x, t = special.tensors["input"], special.tensors["target"]
    if op == "binary_cross_entropy":
        x[0], t[0] = [0, 1, 0, 1, 0.5, 1e-30], [0, 1, 1, 0, 0, 1]
    else:
        x[0], t[1] = [np.nan, np.inf, -np.inf, 0, 100, -100], [0, 0, 1, 1, 0, np.inf]
        x[2] = t[2]
    yield special


def _case(
    op: str,
    direction: str,
    element: Element,
    shapes: tuple[tuple[int, ...], tuple[int, ...]],
    reduction: LossReduction,
    variant: int,
    rng: np.random.Generator,
) -> Case:
    # Weights of every shape that broadcasts: whole, last dimension, one number; now and then none.
    full = shapes[0]
    some: list[Any] = [None, full, full[-1:], ()]
    weights = [some[(variant + k) % 4] for k in range(_WEIGHTS.get(op, 0))] + [None, None]
    log_target = op == "kl_div" and variant % 2 == 1
    cls: Any = PointwiseLossDescriptor if direction == "forward" else PointwiseLossBackwardDescriptor
    desc = cls(op, *shapes, element, reduction, *weights[:2], log_target)
    tensors = {"input": _draw(op, shapes[0], rng), "target": _draw(op, shapes[1], rng)}
    if op == "kl_div":
        p = rng.uniform(0.05, 1, shapes[1])
        tensors["target"] = np.asarray(np.log(p) if log_target else np.where(p < 0.1, 0.0, p))
    elif op == "binary_cross_entropy_with_logits":
        tensors["target"] = np.asarray(rng.uniform(0, 1, shapes[1]))
    for name, shape in zip(("weight", "pos_weight"), weights, strict=False):
        if shape is not None:
            tensors[name] = np.asarray(rng.uniform(0.5, 2, shape))
    if direction == "backward":
        tensors["dloss"] = np.asarray(rng.normal(1, 0.2, desc.loss_shape()))
    return Case(desc, tensors, {NUMBERS[op]: (1.0, 0.3, 2.5)[variant % 3]} if op in NUMBERS else {})


def _draw(op: str, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    return np.asarray(rng.uniform(0.02, 0.98, shape) if op == "binary_cross_entropy" else rng.normal(0, 1.5, shape))


def reference(case: Case) -> dict[str, Expected]:
    """Outputs in float64."""
    desc: Any = case.descriptor
    t = {k: np.asarray(v, np.longdouble) for k, v in case.tensors.items()}
    number = np.longdouble(case.scalars.get(NUMBERS.get(desc.kind, ""), 1.0))
    one = np.ones((), np.longdouble)
    w, positive = t.get("weight", one), t.get("pos_weight", one)
    x, target = np.broadcast_arrays(t["input"], t["target"])
    by = {
        LossReduction.MEAN: np.longdouble(x.size),
        LossReduction.BATCHMEAN: np.longdouble(t["input"].shape[0] if t["input"].ndim else 1),
    }.get(desc.reduction, one)
    with np.errstate(all="ignore"):
        if isinstance(desc, PointwiseLossBackwardDescriptor):
            slope, size = _slope(desc, x, target, w, positive, number)
            scale = t["dloss"] / by
            # The slope is formed before dloss multiplies it.
            lost = _f64(1 + np.abs(scale) + size)
            return {"dinput": Expected(_f64(scale * slope), _f64(np.abs(scale) * size), 1, _f64(size), lost)}
        each, size = _each(desc, x, target, w, positive, number)
        if desc.reduction is LossReduction.NONE:
            return {"loss": Expected(_f64(each), _f64(size))}
        total = size.sum()
        return {"loss": Expected(_f64(each.sum() / by), _f64(total / by), max(x.size, 1), _f64(total))}


def _each(desc: Any, x: Array, t: Array, w: Array, positive: Array, number: Any) -> tuple[Array, Array]:
    """Losses, and the magnitudes of what they are made of."""
    d = np.abs(x - t)
    if desc.kind == "mse_loss":
        return d * d, d * d
    if desc.kind == "l1_loss":
        return d, d
    if desc.kind == "smooth_l1_loss":
        each = np.where(d < number, d * d / number / 2, d - number / 2) if number else d
        return each, np.where(d < number, each, d + number / 2)
    if desc.kind == "huber_loss":
        each = np.where(d <= number, d * d / 2, number * (d - number / 2))
        return each, np.where(d <= number, each, number * (d + number / 2))
    if desc.kind == "binary_cross_entropy":
        yes, no = np.maximum(np.log(x), -100), np.maximum(np.log1p(-x), -100)
        return w * ((t - 1) * no - t * yes), np.abs(w) * np.abs((t - 1) * no) + np.abs(w * t * yes)
    if desc.kind == "binary_cross_entropy_with_logits":
        tail = np.log1p(np.exp(-np.abs(x))) + np.maximum(-x, 0)
        each = w * ((1 - t) * x + ((positive - 1) * t + 1) * tail)
        size = np.abs(w) * ((1 + np.abs(t)) * np.abs(x) + ((np.abs(positive) + 1) * np.abs(t) + 1) * tail)
        return each, np.asarray(size)
    if desc.log_target:
        return np.exp(t) * (t - x), np.exp(t) * (np.abs(t) + np.abs(x))
    own = np.where(t == 0, 0, t * np.log(np.where(t == 0, 1, t)))
    return own - t * x, np.abs(own) + np.abs(t * x)


def _slope(desc: Any, x: Array, t: Array, w: Array, positive: Array, number: Any) -> tuple[Array, Array]:
    """Derivatives with respect to the input, and their magnitudes."""
    d = x - t
    if desc.kind == "mse_loss":
        return 2 * d, np.abs(2 * d)
    if desc.kind == "l1_loss":
        sign = np.where(d == d, np.sign(d), 0)
        return sign, np.abs(sign)
    if desc.kind == "smooth_l1_loss":
        slope = np.where(np.abs(d) < number, d / number, np.sign(d)) if number else np.sign(d)
        return slope, np.abs(slope)
    if desc.kind == "huber_loss":
        slope = np.where(np.abs(d) <= number, d, number * np.sign(d))
        return slope, np.abs(slope)
    if desc.kind == "binary_cross_entropy":
        slope = w * d / np.maximum((1 - x) * x, 1e-12)
        return slope, np.abs(slope)
    if desc.kind == "binary_cross_entropy_with_logits":
        hit = positive * t
        sigmoid = 1 / (1 + np.exp(-x))
        return w * ((hit + (1 - t)) * sigmoid - hit), np.abs(w) * (
            (np.abs(hit) + 1 + np.abs(t)) * sigmoid + np.abs(hit)
        )
    slope = -np.exp(t) if desc.log_target else -t
    return slope, np.abs(slope)


def _f64(x: Any) -> Array:
    return np.asarray(x, np.float64)


def forward_of(case: Case) -> Case:
    """The forward case of a backward one."""
    d = case.descriptor
    assert isinstance(d, PointwiseLossBackwardDescriptor)
    desc = PointwiseLossDescriptor(
        d.kind,
        d.input_shape,
        d.target_shape,
        Element.F64,
        d.reduction,
        d.weight_shape,
        d.pos_weight_shape,
        d.log_target,
    )
    return Case(desc, {k: v for k, v in case.tensors.items() if k != "dloss"}, case.scalars)
