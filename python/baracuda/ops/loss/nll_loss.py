"""nll_loss as a function; its plans are in loss.py."""

from __future__ import annotations

from typing import Any

from baracuda.call.compose import with_indices
from baracuda.call.op import Arg, Call, Recipe, function
from baracuda.ops.loss.loss import (
    NllLossBackwardDescriptor,
    NllLossDescriptor,
    given_only,
    loss_fields,
    of_gradient,
    of_scores,
    want_indices,
)
from baracuda.ops.loss.pointwise_loss import check_legacy

OPS = ()


@function(tensors="input target weight")
def nll_loss(
    call: Call,
    input: Arg,
    target: Arg,
    weight: Arg | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    *,
    out_element: Any = None,
) -> Recipe:
    """Negative log-likelihood of class indices, as torch.nn.functional.nll_loss.

    `out_element="f32"` gives the loss of f16 and bf16 input before it is rounded to their element.
    """
    check_legacy("nll_loss", size_average, reduce)
    want_indices("nll_loss", target)
    more = {"weight": weight, "ignore_index": ignore_index, "reduction": reduction, "out_element": out_element}
    if made := with_indices(call, nll_loss, "target", input=input, target=target, **more):
        return made
    weighted = of_scores("nll_loss", input, weight)
    fields = loss_fields(input, target, reduction, ignore_index)
    desc = NllLossDescriptor(input.shape, **fields, weighted=weighted, out_element=out_element)
    return call(desc, **given_only(input=input, target=target, weight=weight))


@function(tensors="dloss input target weight")
def nll_loss_backward(
    call: Call,
    dloss: Arg,
    input: Arg,
    target: Arg,
    weight: Arg | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Recipe:
    """Gradient of nll_loss with respect to `input`, of which only the shape matters."""
    want_indices("nll_loss_backward", target)
    known = {"dloss": dloss, "input": input, "target": target, "weight": weight}
    more = {"ignore_index": ignore_index, "reduction": reduction}
    if made := with_indices(call, nll_loss_backward, "target", **known, **more):
        return made
    weighted = of_scores("nll_loss_backward", input, weight)
    fields = loss_fields(input, target, reduction, ignore_index) | of_gradient(dloss, input)
    desc = NllLossBackwardDescriptor(input.shape, **fields, weighted=weighted)
    return call(desc, **given_only(dloss=dloss, input=input, target=target, weight=weight))


nll_loss.pulled_by(nll_loss_backward, "loss")
nll_loss.without_gradient("weight")
