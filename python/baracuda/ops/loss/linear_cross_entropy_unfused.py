"""linear_cross_entropy of probabilities, of vectors and of several losses of a row: a product, then cross_entropy."""

from __future__ import annotations

from math import prod
from typing import Any

from baracuda import _core
from baracuda import functional as F
from baracuda.call.compose import Composer, Number, Value, composed
from baracuda.call.inline import pulled_through
from baracuda.call.op import Arg
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError

OPS = ()


def is_unfused(input: Arg, linear_weight: Arg, target: Arg) -> bool:
    """Whether a call is not one of class indices for the rows of a matrix."""
    return input.rank == 1 or linear_weight.rank > 2 or target.element.is_float


def described(x: Any) -> Arg:
    """What a rule sees of a tensor."""
    shape, code, *_ = _core.describe(x)
    return Arg(0, "", None, shape, Element(code))


@composed(tensors="input linear_weight target linear_bias weight")
def _unfused(
    c: Composer,
    input: Value,
    linear_weight: Value,
    target: Value,
    linear_bias: Value | None = None,
    weight: Value | None = None,
    label_smoothing: Number | float = 0.0,
    reduction: str = "mean",
    ignore_index: int = -100,
) -> Value:
    """cross_entropy(linear(input, linear_weight, linear_bias), target), with all logits in memory."""
    if input.rank not in (1, 2) or linear_weight.rank < 2 or linear_weight.shape[-1] != input.shape[-1]:
        got, want = f"shapes {input.shape} and {linear_weight.shape}", "(rows, features) and (classes, ..., features)"
        raise InvalidProblemError(f"linear_weight: got {got} of input and weight, want {want}.")
    *outer, features = linear_weight.shape
    matrix = c.reshape(linear_weight, (prod(outer), features))
    bias = None if linear_bias is None else c.reshape(linear_bias, (prod(linear_bias.shape),))
    logits = c.reshape(c.of(F.linear, input, matrix, bias), (*input.shape[:-1], *outer))
    options: Any = {"ignore_index": ignore_index, "reduction": reduction, "label_smoothing": label_smoothing}
    loss: Value = c.of(F.cross_entropy, logits, target, weight, **options)
    return loss


pulled_through(_unfused)


def unfused_vjp(input: Any, linear_weight: Any, target: Any, options: dict[str, Any]) -> tuple[Any, Any]:
    """The loss, and what pulls gradients back to input, linear_weight and, where there is one, linear_bias."""
    rule: Any = _unfused.vjp_rule
    loss, pull = rule(input, linear_weight, target, **options)
    places = [0, 1]
    if options.get("linear_bias") is not None:
        places.append(3 if described(target).element.is_float else 2)

    def pulled(dloss: Any) -> Any:
        found = pull(dloss)
        return tuple(found[i] for i in places)

    return loss, pulled
