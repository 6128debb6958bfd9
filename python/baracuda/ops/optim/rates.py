"""Steps of Adagrad, RMSprop and Adadelta, over lists of tensors. Kernels in csrc/ops/optim, reference in rates_ref.py.

What follows from the scalars of a step alone is worked out in f64 and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from baracuda.call.op import NotDifferentiable, Op, composite
from baracuda.describe.spec import INOUT, Descriptor, ScalarParam, Signature, descriptor, frame, scalar, tensors
from baracuda.ops.optim.optim import ListDescriptor, as_list, groups_of, run_groups


@frame
class StepDescriptor(ListDescriptor):
    """What steps share: gradients, parameters, lists of statistics, then scalars."""

    __slots__ = ()
    maximize: bool = False

    def lists(self) -> tuple[str, ...]:
        """The lists of statistics."""
        raise NotImplementedError

    def numbers(self) -> tuple[ScalarParam, ...]:
        """The scalars."""
        raise NotImplementedError

    def has(self, name: str) -> bool:
        """Whether the optimizer is given a list of this name."""
        return bool(name)

    def signature(self) -> Signature:
        e = self.element
        return Signature(
            tensors("grads", self.shapes, e),
            tensors("params", self.shapes, e, INOUT),
            *(tensors(n, self.shapes, e.statistic, INOUT, present=self.has(n)) for n in self.lists()),
            *self.numbers(),
        )


def grad_scale() -> ScalarParam:
    """What gradients are divided by."""
    return scalar("grad_scale", default=1.0)


@descriptor(family="optim", op="adagrad")
class AdagradDescriptor(StepDescriptor):
    """One step of Adagrad, in place, over a list of tensors in a single launch; torch.optim.Adagrad's formula.

    g = grad / grad_scale (negated with `maximize`) + weight_decay p; s = s + g^2;
    p = p - lr / (1 + (step - 1) lr_decay) g / (sqrt(s) + eps).

    Scalars are what torch accepts: lr, lr_decay, eps and weight_decay >= 0, step >= 1 (counted from 1), grad_scale not 0.
    Unlike torch, sums of f16 and bf16 parameters are kept in f32.

    Args:
        shapes: Shape of each parameter; its gradient and its sum have the same.
        element: Of parameters and gradients: f16, bf16, f32 or f64. Sums are f32 (f64 for f64).
        maximize: Ascend instead of descend.
    """

    def lists(self) -> tuple[str, ...]:
        return ("state_sums",)

    def numbers(self) -> tuple[ScalarParam, ...]:
        decays = scalar("lr_decay", default=0.0), scalar("eps", default=1e-10), scalar("weight_decay", default=0.0)
        return scalar("lr"), *decays, scalar("step", "int"), grad_scale()


@descriptor(family="optim", op="rmsprop")
class RMSpropDescriptor(StepDescriptor):
    """One step of RMSprop, in place, over a list of tensors in a single launch; torch.optim.RMSprop's formula.

    g = grad / grad_scale (negated with `maximize`) + weight_decay p; s = alpha s + (1 - alpha) g^2; d = g / (sqrt(s) + eps),
    where with `centered` a = alpha a + (1 - alpha) g and s - a^2 takes the place of s. p = p - lr d, or with momentum
    b = momentum b + d; p = p - lr b. As torch's, s - a^2 is NaN in its root where rounding makes it negative.

    Scalars are what torch accepts: lr, alpha, eps, momentum and weight_decay >= 0, grad_scale not 0; momentum 0 without buffers.
    Unlike torch, statistics of f16 and bf16 parameters are kept in f32.

    Args:
        shapes: Shape of each parameter; its gradient and its statistics have the same.
        element: Of parameters and gradients: f16, bf16, f32 or f64. Statistics are f32 (f64 for f64).
        maximize: Ascend instead of descend.
        centered: Whether gradients are divided by their deviation from their mean, which is a further list.
        has_momentum: Whether there are momentum buffers.
    """

    centered: bool = False
    has_momentum: bool = False

    def has(self, name: str) -> bool:
        return {"momentum_buffers": self.has_momentum, "grad_avgs": self.centered}.get(name, True)

    def lists(self) -> tuple[str, ...]:
        return "square_avgs", "momentum_buffers", "grad_avgs"

    def attributes(self) -> dict[str, int | float]:
        return {"maximize": int(self.maximize)}

    def numbers(self) -> tuple[ScalarParam, ...]:
        momentum = scalar("momentum", default=None if self.has_momentum else 0.0)
        rates = scalar("lr"), scalar("alpha", default=0.99), scalar("eps", default=1e-8)
        return *rates, momentum, scalar("weight_decay", default=0.0), grad_scale()


@descriptor(family="optim", op="adadelta")
class AdadeltaDescriptor(StepDescriptor):
    """One step of Adadelta, in place, over a list of tensors in a single launch; torch.optim.Adadelta's formula.

    g = grad / grad_scale (negated with `maximize`) + weight_decay p; s = rho s + (1 - rho) g^2;
    d = sqrt(a + eps) / sqrt(s + eps) g; a = rho a + (1 - rho) d^2; p = p - lr d.

    Scalars are what torch accepts: lr, eps and weight_decay >= 0, 0 <= rho <= 1, grad_scale not 0.
    Unlike torch, means of f16 and bf16 parameters are kept in f32.

    Args:
        shapes: Shape of each parameter; its gradient and its means have the same.
        element: Of parameters and gradients: f16, bf16, f32 or f64. Means are f32 (f64 for f64).
        maximize: Ascend instead of descend.
    """

    def lists(self) -> tuple[str, ...]:
        return "square_avgs", "acc_deltas"

    def numbers(self) -> tuple[ScalarParam, ...]:
        decays = scalar("rho", default=0.9), scalar("eps", default=1e-6), scalar("weight_decay", default=0.0)
        return scalar("lr", default=1.0), *decays, grad_scale()


_IN_PLACE = NotDifferentiable("an optimizer step changes parameters in place")
OPS = (
    Op("adagrad", AdagradDescriptor, _IN_PLACE, "p = p - lr g / (sqrt(s) + eps), s the sum of g^2"),
    Op("rmsprop", RMSpropDescriptor, _IN_PLACE, "p = p - lr g / (sqrt(s) + eps), s the mean of g^2, with momentum"),
    Op(
        "adadelta",
        AdadeltaDescriptor,
        _IN_PLACE,
        "p = p - lr d, d = g sqrt(mean of d^2 + eps) / sqrt(mean of g^2 + eps)",
    ),
)


def run_step(name: str, lists: dict[str, Any], make: Callable[[Any], Descriptor], *scalars: Any) -> None:
    """One step of the function `name`, for every group of its lists."""
    given = {n: as_list(v) for n, v in lists.items() if v is not None}
    run_groups(groups_of(name, given, "params"), make, *scalars)


@composite
def adagrad_(
    params: Any,
    grads: Any,
    state_sums: Any,
    *,
    step: Any,
    lr: Any = 1e-2,
    lr_decay: Any = 0.0,
    eps: Any = 1e-10,
    weight_decay: Any = 0.0,
    grad_scale: Any = 1.0,
    maximize: bool = False,
) -> None:
    """One Adagrad step in place, over one array or a list of them; see AdagradDescriptor for the formula.

    Lists may mix elements and devices: parameters of one element on one device are updated in one launch.

    Args:
        params: Parameters.
        grads: Their gradients, of the same elements.
        state_sums: Sums of squared gradients, f32 (f64 for f64 parameters).
        step: Number of this step, from 1; a number or a 0-d array, as all scalars.
        lr: Learning rate.
        lr_decay: How fast the learning rate falls.
        eps: Added to the root of the sum.
        weight_decay: What of the parameter is added to its gradient.
        grad_scale: What gradients are divided by.
        maximize: Ascend instead of descend.
    """
    lists = {"grads": grads, "params": params, "state_sums": state_sums}
    scalars = (lr, lr_decay, eps, weight_decay, step, grad_scale)
    run_step("adagrad_", lists, lambda g: AdagradDescriptor(g.shapes, g.element, maximize), *scalars)


@composite
def rmsprop_(
    params: Any,
    grads: Any,
    square_avgs: Any,
    momentum_buffers: Any = None,
    grad_avgs: Any = None,
    *,
    lr: Any = 1e-2,
    alpha: Any = 0.99,
    eps: Any = 1e-8,
    momentum: Any = 0.0,
    weight_decay: Any = 0.0,
    grad_scale: Any = 1.0,
    maximize: bool = False,
) -> None:
    """One RMSprop step in place, over one array or a list of them; see RMSpropDescriptor for the formula.

    Lists may mix elements and devices: parameters of one element on one device are updated in one launch.

    Args:
        params: Parameters.
        grads: Their gradients, of the same elements.
        square_avgs: Means of squared gradients, f32 (f64 for f64 parameters).
        momentum_buffers: Momentum, likewise; None for none.
        grad_avgs: Means of gradients, likewise: gradients are then divided by their deviation from these; None for none.
        lr: Learning rate; a number or a 0-d array, as all scalars.
        alpha: Decay of the means.
        eps: Added to the root.
        momentum: Decay of the momentum.
        weight_decay: What of the parameter is added to its gradient.
        grad_scale: What gradients are divided by.
        maximize: Ascend instead of descend.
    """
    means = {"square_avgs": square_avgs, "momentum_buffers": momentum_buffers, "grad_avgs": grad_avgs}
    centered, moves = grad_avgs is not None, momentum_buffers is not None
    run_step(
        "rmsprop_",
        {"grads": grads, "params": params} | means,
        lambda g: RMSpropDescriptor(g.shapes, g.element, maximize, centered, moves),
        *(lr, alpha, eps, momentum, weight_decay, grad_scale),
    )


@composite
def adadelta_(
    params: Any,
    grads: Any,
    square_avgs: Any,
    acc_deltas: Any,
    *,
    lr: Any = 1.0,
    rho: Any = 0.9,
    eps: Any = 1e-6,
    weight_decay: Any = 0.0,
    grad_scale: Any = 1.0,
    maximize: bool = False,
) -> None:
    """One Adadelta step in place, over one array or a list of them; see AdadeltaDescriptor for the formula.

    Lists may mix elements and devices: parameters of one element on one device are updated in one launch.

    Args:
        params: Parameters.
        grads: Their gradients, of the same elements.
        square_avgs: Means of squared gradients, f32 (f64 for f64 parameters).
        acc_deltas: Means of squared updates, likewise.
        lr: Learning rate; a number or a 0-d array, as all scalars.
        rho: Decay of the means.
        eps: Added to both means.
        weight_decay: What of the parameter is added to its gradient.
        grad_scale: What gradients are divided by.
        maximize: Ascend instead of descend.
    """
    lists = {"grads": grads, "params": params, "square_avgs": square_avgs, "acc_deltas": acc_deltas}
    scalars = (lr, rho, eps, weight_decay, grad_scale)
    run_step("adadelta_", lists, lambda g: AdadeltaDescriptor(g.shapes, g.element, maximize), *scalars)
