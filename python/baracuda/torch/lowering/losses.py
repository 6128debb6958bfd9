"""Losses and their gradients."""

from __future__ import annotations

from typing import Any

from baracuda.torch.lowering.common import F, cast
from baracuda.torch.table import Want, lowers

REDUCTIONS = ("none", "mean", "sum")


@lowers("nll_loss_forward.default nll_loss2d_forward.default")
def nll_loss(want: Want, x: Any, target: Any, weight: Any, reduction: int, ignore_index: int) -> Any:
    """The negative logarithms of the targets, and the sum of their weights, by which means are divided."""
    kept = F.ne(target, ignore_index)
    loss = F.nll_loss(x, target, weight, None, ignore_index, None, REDUCTIONS[reduction])
    if reduction == 0:
        return loss, F.zeros(dtype=want.element, device="cpu")
    if weight is None:
        return loss, F.sum(F.cast(kept, want.element))
    flat = F.where(kept, target, 0).reshape(-1) if target.shape else F.where(kept, target, 0).reshape(1)
    weights = F.index_select(weight, 0, flat).reshape(tuple(target.shape))
    return loss, F.sum(F.where(kept, weights, 0.0))


@lowers("nll_loss_backward.default nll_loss2d_backward.default")
def nll_loss_backward(
    want: Want, dy: Any, x: Any, target: Any, weight: Any, reduction: int, ignore_index: int, total: Any
) -> Any:
    """Its gradient."""
    return F.nll_loss_backward(dy, x, target, weight, ignore_index, REDUCTIONS[reduction])


@lowers("mse_loss.default")
def pointwise_loss(want: Want, x: Any, target: Any, reduction: int = 1) -> Any:
    """Squares of differences."""
    return F.mse_loss(x, target, reduction=REDUCTIONS[reduction])


@lowers("mse_loss_backward.default")
def mse_loss_backward(want: Want, dy: Any, x: Any, target: Any, reduction: int) -> Any:
    """Its gradient."""
    return cast(F.mse_loss_backward(dy, x, target, REDUCTIONS[reduction]), want.element)


@lowers("smooth_l1_loss.default huber_loss.default")
def bent_loss(want: Want, x: Any, target: Any, reduction: int = 1, beta: float = 1.0, **more: Any) -> Any:
    """Squares near 0, lines beyond."""
    given = {"beta" if want.name == "smooth_l1_loss" else "delta": more.get("delta", more.get("beta", beta))}
    return getattr(F, want.name)(x, target, reduction=REDUCTIONS[reduction], **given)


@lowers("smooth_l1_loss_backward.default huber_loss_backward.default")
def bent_loss_backward(want: Want, dy: Any, x: Any, target: Any, reduction: int, beta: float) -> Any:
    """Their gradients."""
    return getattr(F, want.name)(dy, x, target, REDUCTIONS[reduction], beta)


@lowers("binary_cross_entropy.default")
def binary_cross_entropy(want: Want, x: Any, target: Any, weight: Any = None, reduction: int = 1) -> Any:
    """Of probabilities."""
    return F.binary_cross_entropy(x, target, weight, reduction=REDUCTIONS[reduction])


@lowers("binary_cross_entropy_backward.default")
def binary_cross_entropy_backward(
    want: Want, dy: Any, x: Any, target: Any, weight: Any = None, reduction: int = 1
) -> Any:
    """Its gradient."""
    return F.binary_cross_entropy_backward(dy, x, target, weight, REDUCTIONS[reduction])


@lowers("binary_cross_entropy_with_logits.default")
def logits_cross_entropy(
    want: Want, x: Any, target: Any, weight: Any = None, pos_weight: Any = None, reduction: int = 1
) -> Any:
    """Of logits."""
    return F.binary_cross_entropy_with_logits(x, target, weight, reduction=REDUCTIONS[reduction], pos_weight=pos_weight)


@lowers("soft_margin_loss.default")
def soft_margin_loss(want: Want, x: Any, target: Any, reduction: int = 1) -> Any:
    """log(1 + exp(-target x))."""
    return F.soft_margin_loss(x, target, reduction=REDUCTIONS[reduction])
