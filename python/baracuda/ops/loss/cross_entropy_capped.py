"""cross_entropy of logits that are capped, or with a penalty on what they sum to."""

from __future__ import annotations

from math import inf, prod
from typing import Any

from baracuda import functional as F
from baracuda.call.compose import Composer, Number, Value, composed
from baracuda.call.inline import pulled_through
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError

OPS = ()


def _positive(name: str, value: float, least: str) -> None:
    if not 0 < value < inf:
        raise InvalidProblemError(f"{name}: got {value}, want {least}.")


@composed(tensors="input target weight")
def _capped(
    c: Composer,
    input: Value,
    target: Value,
    weight: Value | None = None,
    label_smoothing: Number | float = 0.0,
    ignore_index: int = -100,
    reduction: str = "mean",
    out_element: Any = None,
    softcap: float | None = None,
    z_loss: float = 0.0,
) -> Value:
    """cross_entropy(softcap tanh(input / softcap), target) + z_loss logsumexp(...)^2 of the targets that count."""
    if softcap is not None:
        _positive("softcap", softcap, "a finite number above 0, or None for no cap")
        input = c.of(F.mul, c.of(F.tanh, c.of(F.mul, input, 1 / softcap)), float(softcap))
    options: dict[str, Any] = {"ignore_index": ignore_index, "reduction": reduction, "out_element": out_element}
    loss: Value = c.of(F.cross_entropy, input, target, weight, label_smoothing=label_smoothing, **options)
    if not z_loss:
        return loss
    _positive("z_loss", z_loss, "a finite factor above 0, or 0 for no penalty")
    lse = c.of(F.logsumexp, c.cast(input, input.element.statistic), 0 if input.rank == 1 else 1)
    penalty = c.of(F.mul, c.of(F.square, lse), float(z_loss))
    counted = None
    if not target.element.is_float:
        counted = c.of(F.ne, target, ignore_index)
        penalty = c.of(F.where, counted, penalty, 0.0)
    if reduction != "none":
        penalty = c.of(F.sum, penalty)
    if reduction == "mean":
        rows = prod(lse.shape) if counted is None else c.of(F.sum, c.cast(counted, Element.I64))
        penalty = c.of(F.div, penalty, rows)
    return c.of(F.add, loss, c.cast(penalty, loss.element))  # type: ignore[no-any-return]


pulled_through(_capped)
