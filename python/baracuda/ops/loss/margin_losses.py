"""Losses made of elementwise functions, distances and a reduction, as torch.nn.functional has them."""

from __future__ import annotations

from math import log, pi
from typing import Any

from baracuda import functional as F
from baracuda.call.compose import Composer, Value, composed
from baracuda.call.inline import pulled_through
from baracuda.call.kinks import at_least
from baracuda.call.op import Function
from baracuda.call.steps import made_of
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.ops.loss.pointwise_loss import check_legacy
from baracuda.ops.reduce.distances import pairwise_distance

OPS = ()


def _reduced(c: Composer, losses: Value, reduction: str) -> Value:
    if reduction not in ("none", "mean", "sum"):
        raise InvalidProblemError(f'reduction: got {reduction!r}, want "none", "mean" or "sum".')
    made: Value = losses if reduction == "none" else c.of(F.mean if reduction == "mean" else F.sum, losses)
    return made


def _floats(**given: Value) -> None:
    for name, x in given.items():
        if not x.element.is_float:
            raise InvalidProblemError(f"{name}: got {x.element}, want a float element. Cast it first.")


def _above(c: Composer, x: Any, margin: float, sign: int) -> Value:
    """max(0, margin + sign * x), whose gradient at 0 is that from above, as torch's."""
    made: Value = c.of(F.clamp, c.of(F.add, float(margin), x, alpha=sign), 0.0)
    return made


def _beyond(c: Composer, x: Any, margin: float, sign: int) -> Value:
    """The same, whose gradient at 0 is 0, as torch's of these losses."""
    made: Value = c.of(F.relu, c.of(F.add, float(margin), x, alpha=sign))
    return made


@pulled_through
@made_of("mean mul neg softplus sum")
@composed(tensors="input target")
def soft_margin_loss(
    c: Composer, input: Value, target: Value, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Value:
    """ln(1 + exp(-target * input)), reduced, of targets 1 and -1, as torch's soft_margin_loss."""
    check_legacy("soft_margin_loss", size_average, reduce)
    _floats(input=input)
    # From 40 on ln(1 + exp(x)) is x, in f64, too; torch's softplus says so from 20 on.
    return _reduced(c, c.of(F.softplus, c.of(F.neg, c.of(F.mul, target, input)), 1.0, 40.0), reduction)


@pulled_through
@made_of("add clamp mean mul sub sum")
@composed(tensors="input1 input2 target")
def margin_ranking_loss(
    c: Composer,
    input1: Value,
    input2: Value,
    target: Value,
    margin: float = 0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Value:
    """max(0, margin - target * (input1 - input2)), reduced, as torch's margin_ranking_loss."""
    check_legacy("margin_ranking_loss", size_average, reduce)
    apart = c.of(F.mul, target, c.of(F.sub, input1, input2))
    return _reduced(c, _above(c, apart, margin, -1), reduction)


@pulled_through
@made_of("add clamp mean ne sum where")
@composed(tensors="input target")
def hinge_embedding_loss(
    c: Composer,
    input: Value,
    target: Value,
    margin: float = 1.0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Value:
    """Input where target is 1, max(0, margin - input) where it is -1, reduced, as torch's hinge_embedding_loss."""
    check_legacy("hinge_embedding_loss", size_average, reduce)
    far = c.of(F.where, c.of(F.ne, target, 1), _above(c, input, margin, -1), 0.0)
    near = c.of(F.where, c.of(F.ne, target, -1), input, 0.0)
    return _reduced(c, c.of(F.add, far, near), reduction)


@pulled_through
@made_of("add cast clamp cosine_similarity eq mean sub sum where")
@composed(tensors="input1 input2 target")
def cosine_embedding_loss(
    c: Composer,
    input1: Value,
    input2: Value,
    target: Value,
    margin: float = 0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Value:
    """1 - cos(input1, input2) where target is 1, max(0, cos - margin) where it is -1, as torch's cosine_embedding_loss."""
    check_legacy("cosine_embedding_loss", size_average, reduce)
    x, y = (z if z.element.is_float else c.cast(z, Element.F32) for z in (input1, input2))
    cosine = c.of(F.cosine_similarity, x, y, x.rank - 1, 1e-6)
    near = c.of(F.where, c.of(F.eq, target, 1), c.of(F.sub, 1.0, cosine), 0.0)
    far = c.of(F.where, c.of(F.eq, target, -1), _above(c, cosine, -margin, 1), 0.0)
    return _reduced(c, c.of(F.add, near, far), reduction)


@pulled_through
@made_of("add clamp div log mean mul square sub sum")
@composed(tensors="input target var")
def gaussian_nll_loss(
    c: Composer,
    input: Value,
    target: Value,
    var: Value,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Value:
    """(ln v + (input - target)^2 / v) / 2 with v = max(var, eps), reduced, as torch's gaussian_nll_loss.

    Args:
        input: Means.
        target: What was observed.
        var: Variances, not negative: of the input's shape, of size 1 in its last dimension, or without that.
        full: Whether ln(2 pi) / 2 is added.
        eps: The smallest variance; gradients pass it as if `var` were that.
        reduction: "none", "mean" or "sum".
    """
    _floats(input=input, var=var)
    if var.rank == input.rank - 1 and var.shape == input.shape[:-1]:
        var = c.reshape(var, (*var.shape, 1))
    wide = c.of(at_least, var, float(eps))
    apart = c.of(F.div, c.of(F.square, c.of(F.sub, input, target)), wide)
    losses = c.of(F.mul, c.of(F.add, c.of(F.log, wide), apart), 0.5)
    return _reduced(c, c.of(F.add, losses, 0.5 * log(2 * pi)) if full else losses, reduction)


@pulled_through
@made_of("add cast exp gt log mean mul sub sum where")
@composed(tensors="input target")
def poisson_nll_loss(
    c: Composer,
    input: Value,
    target: Value,
    log_input: bool = True,
    full: bool = False,
    size_average: Any = None,
    eps: float = 1e-8,
    reduce: Any = None,
    reduction: str = "mean",
) -> Value:
    """exp(input) - target * input, or input - target * ln(input + eps), reduced, as torch's poisson_nll_loss.

    Args:
        input: Logarithms of the rates, or the rates.
        target: Counts.
        log_input: Whether the input holds logarithms.
        full: Whether Stirling's ln(target!) is added, of targets above 1.
        size_average: None.
        eps: Added to rates.
        reduce: None.
        reduction: "none", "mean" or "sum".
    """
    check_legacy("poisson_nll_loss", size_average, reduce)
    x = input if input.element.is_float else c.cast(input, Element.F32)
    rate = c.of(F.exp, x) if log_input else x
    logarithm = x if log_input else c.of(F.log, c.of(F.add, x, float(eps)))
    losses = c.of(F.sub, rate, c.of(F.mul, target, logarithm))
    if full:
        root = c.of(F.mul, c.of(F.log, c.of(F.mul, target, 2 * pi)), 0.5)
        stirling = c.of(F.add, c.of(F.sub, c.of(F.mul, target, c.of(F.log, target)), target), root)
        losses = c.of(F.add, losses, c.of(F.where, c.of(F.gt, target, 1), stirling, 0.0))
    return _reduced(c, losses, reduction)


def _triplet(c: Composer, near: Value, far: Value, between: Value | None, margin: float, reduction: str) -> Value:
    if between is not None:
        far = c.of(F.minimum, far, between)
    return _reduced(c, _above(c, c.of(F.sub, near, far), margin, 1), reduction)


@pulled_through
@made_of("add cast clamp mean minimum norm sub sum")
@composed(tensors="anchor positive negative")
def triplet_margin_loss(
    c: Composer,
    anchor: Value,
    positive: Value,
    negative: Value,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Value:
    """max(0, margin + |anchor - positive| - |anchor - negative|), reduced, as torch's triplet_margin_loss.

    Args:
        anchor: Points, (..., features).
        positive: Points that shall be near.
        negative: Points that shall be far.
        margin: How much farther.
        p: Which norm.
        eps: Added to differences.
        swap: Whether the distance of the negative counts from the positive, where that is shorter.
        size_average: None.
        reduce: None.
        reduction: "none", "mean" or "sum".
    """
    check_legacy("triplet_margin_loss", size_average, reduce)
    near, far = (c.of(pairwise_distance, anchor, x, p, eps) for x in (positive, negative))
    between = c.of(pairwise_distance, positive, negative, p, eps) if swap else None
    return _triplet(c, near, far, between, margin, reduction)


@pulled_through
@made_of("add logsigmoid mean mul neg sub sum")
@composed(tensors="input target weight")
def multilabel_soft_margin_loss(
    c: Composer,
    input: Value,
    target: Value,
    weight: Value | None = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Value:
    """-mean over classes of target * logsigmoid(x) + (1 - target) * logsigmoid(-x), as torch's multilabel_soft_margin_loss."""
    check_legacy("multilabel_soft_margin_loss", size_average, reduce)
    _floats(input=input)
    yes = c.of(F.mul, target, c.of(F.logsigmoid, input))
    no = c.of(F.mul, c.of(F.sub, 1.0, target), c.of(F.logsigmoid, c.of(F.neg, input)))
    losses = c.of(F.neg, c.of(F.add, yes, no))
    weighted = losses if weight is None else c.of(F.mul, losses, weight)
    return _reduced(c, c.of(F.mean, weighted, (-1,)), reduction)


@pulled_through
@made_of("add cast clamp mean minimum norm sub sum")
@composed(tensors="anchor positive negative")
def triplet_margin_with_distance_loss(
    c: Composer,
    anchor: Value,
    positive: Value,
    negative: Value,
    *,
    distance_function: Any = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Value:
    """max(0, margin + d(anchor, positive) - d(anchor, negative)), reduced, as torch's triplet_margin_with_distance_loss.

    Args:
        anchor: Points, (..., features).
        positive: Points that shall be near.
        negative: Points that shall be far.
        distance_function: A function of bc.functional that takes two arrays; pairwise_distance by default.
        margin: How much farther, above 0.
        swap: Whether the distance of the negative counts from the positive, where that is shorter.
        reduction: "none", "mean" or "sum".
    """
    if not margin > 0:
        raise InvalidProblemError(f"margin: got {margin}, want a number above 0.")
    distance = pairwise_distance if distance_function is None else distance_function
    if not isinstance(distance, Function):
        raise InvalidProblemError(f"distance_function: got {distance!r}, want a function of bc.functional, or None.")
    near, far = c.of(distance, anchor, positive), c.of(distance, anchor, negative)
    between = c.of(distance, positive, negative) if swap else None
    return _triplet(c, near, far, between, margin, reduction)


def _rows(c: Composer, input: Value) -> Value:
    """The input with its classes last, of rank 2."""
    _floats(input=input)
    if input.rank > 2 or (input.rank > 0 and input.shape[-1] == 0):
        raise InvalidProblemError(f"input: got shape {input.shape}, want (rows, classes) or (classes), with a class.")
    return input if input.rank == 2 else c.reshape(input, (1, input.shape[0] if input.rank else 1))


def _whole(**given: Value) -> None:
    for name, x in given.items():
        if not x.element.is_integer:
            raise InvalidProblemError(f"{name}: got {x.element}, want an integer element: it holds classes.")


@pulled_through
@made_of("add cast div gather index_select mean mul relu scatter square sub sum")
@composed(tensors="input target weight")
def multi_margin_loss(
    c: Composer,
    input: Value,
    target: Value,
    p: int = 1,
    margin: float = 1.0,
    weight: Value | None = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Value:
    """Sum over classes j but y of max(0, margin - x[y] + x[j])^p weight[y] / classes, as torch's multi_margin_loss.

    Args:
        input: Scores, (rows, classes) or (classes).
        target: The class of each row, integers. One out of range is IndexOutOfRangeError.
        p: 1 or 2.
        margin: By how much the target's score shall be higher.
        weight: One for each class; None for 1.
        size_average: None.
        reduce: None.
        reduction: "none", "mean" or "sum".
    """
    check_legacy("multi_margin_loss", size_average, reduce)
    _whole(target=target)
    if p not in (1, 2):
        raise InvalidProblemError(f"p: got {p}, want 1 or 2.")
    x = _rows(c, input)
    n, classes = x.shape
    if target.rank > 1 or (target.shape or (1,)) != (n,):
        raise InvalidProblemError(f"target: got shape {target.shape}, want {(n,)}: one class for each row.")
    if weight is not None and weight.shape != (classes,):
        raise InvalidProblemError(f"weight: got shape {weight.shape}, want {(classes,)}: one number for each class.")
    flat = c.cast(c.reshape(target, (n,)), Element.I64)
    at = c.reshape(flat, (n, 1))
    short = _beyond(c, c.of(F.sub, x, c.of(F.gather, x, 1, at)), margin, 1)
    short = short if p == 1 else c.of(F.square, short)
    if weight is not None:
        short = c.of(F.mul, short, c.reshape(c.of(F.index_select, weight, 0, flat), (n, 1)))
    others = c.of(F.scatter, short, 1, at, 0.0)
    losses = c.of(F.div, c.of(F.sum, others, (1,)), float(classes))
    plain = input.rank < 2 and target.rank == 0
    return _reduced(c, c.reshape(losses, ()) if plain else losses, reduction)


@pulled_through
@made_of("add cast cumsum div eq fill gather lt logical_and mean relu scatter_reduce sub sum where")
@composed(tensors="input target")
def multilabel_margin_loss(
    c: Composer,
    input: Value,
    target: Value,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Value:
    """Sum of max(0, 1 - x[y] + x[j]) / classes over targets y and other classes j, as torch's multilabel_margin_loss.

    Args:
        input: Scores, (rows, classes) or (classes).
        target: The classes of each row, of the input's shape, integers; the first -1 ends them. Others out of range are
            IndexOutOfRangeError.
        size_average: None.
        reduce: None.
        reduction: "none", "mean" or "sum".

    Memory between the steps grows with the square of the number of classes.
    """
    check_legacy("multilabel_margin_loss", size_average, reduce)
    _whole(target=target)
    if target.shape != input.shape:
        raise InvalidProblemError(f"target: got shape {target.shape}, want the input's, {input.shape}.")
    x = _rows(c, input)
    n, classes = x.shape
    labels = c.cast(c.reshape(target, (n, classes)), Element.I64)
    ends = c.of(F.eq, labels, -1)
    given = c.of(F.lt, c.of(F.cumsum, c.cast(ends, Element.I64), 1), 1)
    at = c.of(F.where, ends, 0, labels)
    times = c.of(F.scatter_add, c.zeros((n, classes), Element.I64), 1, at, c.cast(given, Element.I64))
    counted = c.of(F.logical_and, c.reshape(given, (n, classes, 1)), c.of(F.eq, c.reshape(times, (n, 1, classes)), 0))
    apart = c.of(F.sub, c.reshape(x, (n, 1, classes)), c.reshape(c.of(F.gather, x, 1, at), (n, classes, 1)))
    short = c.of(F.where, counted, _beyond(c, apart, 1.0, 1), 0.0)
    losses = c.of(F.div, c.of(F.sum, short, (1, 2)), float(classes))
    return _reduced(c, losses if input.rank == 2 else c.reshape(losses, ()), reduction)
