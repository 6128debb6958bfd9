"""Losses between distributions and of preferences, made of elementwise functions and a reduction."""

from __future__ import annotations

from math import inf, log

from baracuda import functional as F
from baracuda.call.compose import Composer, Value, composed
from baracuda.call.inline import pulled_through
from baracuda.call.steps import made_of
from baracuda.describe.errors import InvalidProblemError

OPS = ()


def _reduced(c: Composer, losses: Value, reduction: str) -> Value:
    """`batchmean` is the sum over the size of the first dimension."""
    if reduction == "none":
        return losses
    if reduction not in ("mean", "sum", "batchmean"):
        raise InvalidProblemError(f'reduction: got {reduction!r}, want "none", "mean", "sum" or "batchmean".')
    made: Value = c.of(F.mean if reduction == "mean" else F.sum, losses)
    if reduction == "batchmean" and losses.rank:
        made = c.of(F.div, made, losses.shape[0])
    return made


def _floats(**given: Value | None) -> None:
    for name, x in given.items():
        if x is not None and not x.element.is_float:
            raise InvalidProblemError(f"{name}: got {x.element}, want a float element. Cast it first.")


def _within(name: str, value: float, low: float, high: float) -> None:
    if not low < value < high:
        raise InvalidProblemError(f"{name}: got {value}, want a number between {low:g} and {high:g}, exclusive.")


@pulled_through
@made_of("add div exp logaddexp mean mul sub sum")
@composed(tensors="input target")
def js_div(c: Composer, input: Value, target: Value, beta: float = 0.5, reduction: str = "batchmean") -> Value:
    """The generalised Jensen-Shannon divergence beta KL(p | m) + (1 - beta) KL(q | m), m = beta p + (1 - beta) q.

    input = ln q and target = ln p are finite log-probabilities, as log_softmax gives them. Both get gradients. The limits of
    beta = 0 and 1, divided by it, are the divergences kl_div gives. Terms are taken element by element; with "batchmean"
    their sum is divided by the size of the first dimension.

    Args:
        input: ln q.
        target: ln p, of the same shape.
        beta: What of the mixture m is p: above 0, below 1.
        reduction: "none", "mean", "sum" or "batchmean".
    """
    _floats(input=input, target=target)
    _within("beta", beta, 0, 1)
    mixed = c.of(F.logaddexp, c.of(F.add, target, log(beta)), c.of(F.add, input, log(1 - beta)))
    of_p = c.of(F.mul, c.of(F.mul, c.of(F.exp, target), c.of(F.sub, target, mixed)), float(beta))
    of_q = c.of(F.mul, c.of(F.mul, c.of(F.exp, input), c.of(F.sub, input, mixed)), 1 - float(beta))
    return _reduced(c, c.of(F.add, of_p, of_q), reduction)


@pulled_through
@made_of("abs div mean mul sub sum")
@composed(tensors="input target")
def tv_distance(c: Composer, input: Value, target: Value, reduction: str = "batchmean") -> Value:
    """The total variation distance |input - target| / 2 of probabilities, element by element, reduced.

    With "batchmean" the sum is divided by the size of the first dimension: the mean distance of rows of probabilities.
    """
    _floats(input=input, target=target)
    return _reduced(c, c.of(F.mul, c.of(F.abs, c.of(F.sub, input, target)), 0.5), reduction)


_FORMS = ("sigmoid", "hinge", "ipo")


@pulled_through
@made_of("div logsigmoid mean mul neg relu square sub sum")
@composed(tensors="chosen rejected reference_chosen reference_rejected")
def preference_loss(
    c: Composer,
    chosen: Value,
    rejected: Value,
    reference_chosen: Value | None = None,
    reference_rejected: Value | None = None,
    beta: float = 0.1,
    label_smoothing: float = 0.0,
    form: str = "sigmoid",
    reduction: str = "mean",
) -> Value:
    """Losses of pairs of answers of which one was preferred, from the log-probabilities of both.

    With d = chosen - rejected - (reference_chosen - reference_rejected) the form "sigmoid" (DPO, Rafailov et al. 2023) is
    -(1 - s) ln sigmoid(beta d) - s ln sigmoid(-beta d), s being `label_smoothing`; "hinge" (SLiC) is max(0, 1 - beta d); "ipo"
    (Azar et al. 2023) is (d - 1 / (2 beta))^2. Without a reference both of its terms are 0.

    Args:
        chosen: Log-probabilities of the preferred answers under the model that is trained, one for each pair.
        rejected: Those of the others.
        reference_chosen: Those of the preferred answers under the model that stays.
        reference_rejected: Those of the others.
        beta: How much the model is held to the reference; above 0.
        label_smoothing: Share of pairs whose preference may be wrong, of the form "sigmoid": at least 0, below 1/2.
        form: "sigmoid", "hinge" or "ipo".
        reduction: "none", "mean", "sum" or "batchmean".
    """
    _check_preference(beta, label_smoothing, form)
    references = {"reference_chosen": reference_chosen, "reference_rejected": reference_rejected}
    _floats(chosen=chosen, rejected=rejected, **references)
    if (reference_chosen is None) != (reference_rejected is None):
        missing = "reference_chosen" if reference_chosen is None else "reference_rejected"
        raise InvalidProblemError(f"{missing}: got None, want both references or neither.")
    d = c.of(F.sub, chosen, rejected)
    if reference_chosen is not None:
        d = c.of(F.sub, d, c.of(F.sub, reference_chosen, reference_rejected))
    if form == "ipo":
        return _reduced(c, c.of(F.square, c.of(F.sub, d, 0.5 / beta)), reduction)
    scaled = c.of(F.mul, d, float(beta))
    if form == "hinge":
        return _reduced(c, c.of(F.relu, c.of(F.sub, 1.0, scaled)), reduction)
    losses = c.of(F.mul, c.of(F.logsigmoid, scaled), label_smoothing - 1.0)
    if label_smoothing:
        wrong = c.of(F.logsigmoid, c.of(F.neg, scaled))
        losses = c.of(F.sub, losses, c.of(F.mul, wrong, float(label_smoothing)))
    return _reduced(c, losses, reduction)


def _check_preference(beta: float, label_smoothing: float, form: str) -> None:
    if form not in _FORMS:
        raise InvalidProblemError(f'form: got {form!r}, want "sigmoid", "hinge" or "ipo".')
    if not 0 < beta < inf:
        raise InvalidProblemError(f"beta: got {beta}, want a finite number above 0.")
    if not 0 <= label_smoothing < 0.5:
        raise InvalidProblemError(f"label_smoothing: got {label_smoothing}, want at least 0 and less than 0.5.")
    if label_smoothing and form != "sigmoid":
        raise InvalidProblemError(
            f'label_smoothing: got {label_smoothing} with form {form!r}, want 0, or form "sigmoid".'
        )
