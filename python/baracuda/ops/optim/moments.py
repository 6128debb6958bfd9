"""Steps of Adamax, NAdam, RAdam and Lion, over lists of tensors. Kernels in csrc/ops/optim, reference in moments_ref.py.

What follows from the scalars of a step alone is worked out in f64 and rounded once.
"""

from __future__ import annotations

from typing import Any

from baracuda.call.op import NotDifferentiable, Op, composite
from baracuda.describe.spec import ScalarParam, descriptor, scalar
from baracuda.ops.optim.rates import StepDescriptor, grad_scale, run_step


def _betas(second: float = 0.999) -> tuple[ScalarParam, ...]:
    return scalar("lr"), scalar("beta1", default=0.9), scalar("beta2", default=second)


@descriptor(family="optim", op="adamax")
class AdamaxDescriptor(StepDescriptor):
    """One step of Adamax, in place, over a list of tensors in a single launch; torch.optim.Adamax's formula.

    g = grad / grad_scale (negated with `maximize`) + weight_decay p; m = beta1 m + (1 - beta1) g;
    u = max(beta2 u, |g| + eps), NaN stays; p = p - lr / (1 - beta1^step) m / u.

    Scalars are what torch accepts: lr, eps and weight_decay >= 0, 0 <= betas < 1, step >= 1 (counted from 1), grad_scale not 0.
    Unlike torch, statistics of f16 and bf16 parameters are kept in f32.

    Args:
        shapes: Shape of each parameter; its gradient and its statistics have the same.
        element: Of parameters and gradients: f16, bf16, f32 or f64. Statistics are f32 (f64 for f64).
        maximize: Ascend instead of descend.
    """

    def lists(self) -> tuple[str, ...]:
        return "exp_avgs", "exp_infs"

    def numbers(self) -> tuple[ScalarParam, ...]:
        decays = scalar("eps", default=1e-8), scalar("weight_decay", default=0.0)
        return *_betas(), *decays, scalar("step", "int"), grad_scale()


@descriptor(family="optim", op="nadam")
class NAdamDescriptor(StepDescriptor):
    """One step of NAdam, in place, over a list of tensors in a single launch; torch.optim.NAdam's formula.

    g = grad / grad_scale (negated with `maximize`) + weight_decay p, without the latter where decay is decoupled and
    p = p (1 - lr weight_decay) first; m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2;
    r = sqrt(v / (1 - beta2^step)) + eps; mu(t) = beta1 (1 - 0.96^(t momentum_decay) / 2);
    p = p - lr (1 - mu(step)) / (1 - mu_product) g / r - lr mu(step + 1) / (1 - mu_product mu(step + 1)) m / r,
    with mu_product = mu(1) mu(2) ... mu(step), which the caller keeps.

    Scalars are what torch accepts: lr, eps, weight_decay and momentum_decay >= 0, 0 <= betas < 1, 0 <= mu_product < 1,
    step >= 1 (counted from 1), grad_scale not 0. Unlike torch, moments of f16 and bf16 parameters are kept in f32.

    Args:
        shapes: Shape of each parameter; its gradient and its moments have the same.
        element: Of parameters and gradients: f16, bf16, f32 or f64. Moments are f32 (f64 for f64).
        maximize: Ascend instead of descend.
        decoupled_weight_decay: Whether weight decay is as of AdamW.
    """

    decoupled_weight_decay: bool = False

    def lists(self) -> tuple[str, ...]:
        return "exp_avgs", "exp_avg_sqs"

    def numbers(self) -> tuple[ScalarParam, ...]:
        decays = (
            scalar("eps", default=1e-8),
            scalar("weight_decay", default=0.0),
            scalar("momentum_decay", default=4e-3),
        )
        return *_betas(), *decays, scalar("mu_product"), scalar("step", "int"), grad_scale()


@descriptor(family="optim", op="radam")
class RAdamDescriptor(StepDescriptor):
    """One step of RAdam, in place, over a list of tensors in a single launch; torch.optim.RAdam's formula.

    g = grad / grad_scale (negated with `maximize`) + weight_decay p, without the latter where decay is decoupled and
    p = p (1 - lr weight_decay) first; m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2. With
    L = 2 / (1 - beta2) - 1 and l = L - 2 step beta2^step / (1 - beta2^step): where l > 5,
    p = p - lr m / (1 - beta1^step) sqrt((l - 4) (l - 2) L / ((L - 4) (L - 2) l)) sqrt(1 - beta2^step) / (sqrt(v) + eps),
    else p = p - lr m / (1 - beta1^step).

    Scalars are what torch accepts: lr, eps and weight_decay >= 0, 0 <= betas < 1, step >= 1 (counted from 1), grad_scale not 0.
    Unlike torch, moments of f16 and bf16 parameters are kept in f32.

    Args:
        shapes: Shape of each parameter; its gradient and its moments have the same.
        element: Of parameters and gradients: f16, bf16, f32 or f64. Moments are f32 (f64 for f64).
        maximize: Ascend instead of descend.
        decoupled_weight_decay: Whether weight decay is as of AdamW.
    """

    decoupled_weight_decay: bool = False

    def lists(self) -> tuple[str, ...]:
        return "exp_avgs", "exp_avg_sqs"

    def numbers(self) -> tuple[ScalarParam, ...]:
        decays = scalar("eps", default=1e-8), scalar("weight_decay", default=0.0)
        return *_betas(), *decays, scalar("step", "int"), grad_scale()


@descriptor(family="optim", op="lion")
class LionDescriptor(StepDescriptor):
    """One step of Lion, in place, over a list of tensors in a single launch.

    g = grad / grad_scale (negated with `maximize`); p = p (1 - lr weight_decay) - lr sign(beta1 m + (1 - beta1) g);
    m = beta2 m + (1 - beta2) g. The sign of 0 is 0, of NaN NaN.

    Source: Chen et al., Symbolic Discovery of Optimization Algorithms, 2023. Scalars: lr and weight_decay >= 0,
    0 <= betas < 1, grad_scale not 0. The momentum of f16 and bf16 parameters is kept in f32.

    Args:
        shapes: Shape of each parameter; its gradient and its momentum have the same.
        element: Of parameters and gradients: f16, bf16, f32 or f64. Momentum is f32 (f64 for f64).
        maximize: Ascend instead of descend.
    """

    def lists(self) -> tuple[str, ...]:
        return ("exp_avgs",)

    def numbers(self) -> tuple[ScalarParam, ...]:
        return *_betas(0.99), scalar("weight_decay", default=0.0), grad_scale()


_IN_PLACE = NotDifferentiable("an optimizer step changes parameters in place")
OPS = (
    Op("adamax", AdamaxDescriptor, _IN_PLACE, "p = p - lr / (1 - beta1^t) m / u, u the largest gradient, which decays"),
    Op("nadam", NAdamDescriptor, _IN_PLACE, "adam with Nesterov's momentum"),
    Op("radam", RAdamDescriptor, _IN_PLACE, "adam whose first steps are rectified"),
    Op("lion", LionDescriptor, _IN_PLACE, "p = p (1 - lr wd) - lr sign(beta1 m + (1 - beta1) g)"),
)


@composite
def adamax_(
    params: Any,
    grads: Any,
    exp_avgs: Any,
    exp_infs: Any,
    *,
    step: Any,
    lr: Any = 2e-3,
    beta1: Any = 0.9,
    beta2: Any = 0.999,
    eps: Any = 1e-8,
    weight_decay: Any = 0.0,
    grad_scale: Any = 1.0,
    maximize: bool = False,
) -> None:
    """One Adamax step in place, over one array or a list of them; see AdamaxDescriptor for the formula.

    Lists may mix elements and devices: parameters of one element on one device are updated in one launch.

    Args:
        params: Parameters.
        grads: Their gradients, of the same elements.
        exp_avgs: First moments, f32 (f64 for f64 parameters).
        exp_infs: The largest gradients, which decay, likewise.
        step: Number of this step, from 1; a number or a 0-d array, as all scalars.
        lr: Learning rate.
        beta1: Decay of the first moment.
        beta2: Decay of the largest gradient.
        eps: Added to magnitudes of gradients.
        weight_decay: What of the parameter is added to its gradient.
        grad_scale: What gradients are divided by.
        maximize: Ascend instead of descend.
    """
    lists = {"grads": grads, "params": params, "exp_avgs": exp_avgs, "exp_infs": exp_infs}
    scalars = (lr, beta1, beta2, eps, weight_decay, step, grad_scale)
    run_step("adamax_", lists, lambda g: AdamaxDescriptor(g.shapes, g.element, maximize), *scalars)


@composite
def nadam_(
    params: Any,
    grads: Any,
    exp_avgs: Any,
    exp_avg_sqs: Any,
    *,
    step: Any,
    mu_product: Any,
    lr: Any = 2e-3,
    beta1: Any = 0.9,
    beta2: Any = 0.999,
    eps: Any = 1e-8,
    weight_decay: Any = 0.0,
    momentum_decay: Any = 4e-3,
    grad_scale: Any = 1.0,
    decoupled_weight_decay: bool = False,
    maximize: bool = False,
) -> None:
    """One NAdam step in place, over one array or a list of them; see NAdamDescriptor for the formula.

    Lists may mix elements and devices: parameters of one element on one device are updated in one launch.

    Args:
        params: Parameters.
        grads: Their gradients, of the same elements.
        exp_avgs: First moments, f32 (f64 for f64 parameters).
        exp_avg_sqs: Second moments, likewise.
        step: Number of this step, from 1; a number or a 0-d array, as all scalars.
        mu_product: Product of beta1 (1 - 0.96^(t momentum_decay) / 2) over the steps t = 1 to `step`.
        lr: Learning rate.
        beta1: Decay of the first moment.
        beta2: Decay of the second moment.
        eps: Added to the root of the second moment.
        weight_decay: What of the parameter is added to its gradient.
        momentum_decay: How fast the momentum grows to beta1.
        grad_scale: What gradients are divided by.
        decoupled_weight_decay: Whether weight decay is as of AdamW.
        maximize: Ascend instead of descend.
    """
    lists = {"grads": grads, "params": params, "exp_avgs": exp_avgs, "exp_avg_sqs": exp_avg_sqs}
    scalars = (lr, beta1, beta2, eps, weight_decay, momentum_decay, mu_product, step, grad_scale)
    flags = (maximize, decoupled_weight_decay)
    run_step("nadam_", lists, lambda g: NAdamDescriptor(g.shapes, g.element, *flags), *scalars)


@composite
def radam_(
    params: Any,
    grads: Any,
    exp_avgs: Any,
    exp_avg_sqs: Any,
    *,
    step: Any,
    lr: Any = 1e-3,
    beta1: Any = 0.9,
    beta2: Any = 0.999,
    eps: Any = 1e-8,
    weight_decay: Any = 0.0,
    grad_scale: Any = 1.0,
    decoupled_weight_decay: bool = False,
    maximize: bool = False,
) -> None:
    """One RAdam step in place, over one array or a list of them; see RAdamDescriptor for the formula.

    Lists may mix elements and devices: parameters of one element on one device are updated in one launch.

    Args:
        params: Parameters.
        grads: Their gradients, of the same elements.
        exp_avgs: First moments, f32 (f64 for f64 parameters).
        exp_avg_sqs: Second moments, likewise.
        step: Number of this step, from 1; a number or a 0-d array, as all scalars.
        lr: Learning rate.
        beta1: Decay of the first moment.
        beta2: Decay of the second moment.
        eps: Added to the root of the second moment.
        weight_decay: What of the parameter is added to its gradient.
        grad_scale: What gradients are divided by.
        decoupled_weight_decay: Whether weight decay is as of AdamW.
        maximize: Ascend instead of descend.
    """
    lists = {"grads": grads, "params": params, "exp_avgs": exp_avgs, "exp_avg_sqs": exp_avg_sqs}
    scalars = (lr, beta1, beta2, eps, weight_decay, step, grad_scale)
    flags = (maximize, decoupled_weight_decay)
    run_step("radam_", lists, lambda g: RAdamDescriptor(g.shapes, g.element, *flags), *scalars)


@composite
def lion_(
    params: Any,
    grads: Any,
    exp_avgs: Any,
    *,
    lr: Any = 1e-4,
    beta1: Any = 0.9,
    beta2: Any = 0.99,
    weight_decay: Any = 0.0,
    grad_scale: Any = 1.0,
    maximize: bool = False,
) -> None:
    """One Lion step in place, over one array or a list of them; see LionDescriptor for the formula.

    Lists may mix elements and devices: parameters of one element on one device are updated in one launch.

    Args:
        params: Parameters.
        grads: Their gradients, of the same elements.
        exp_avgs: Momentum, f32 (f64 for f64 parameters).
        lr: Learning rate; a number or a 0-d array, as all scalars.
        beta1: Share of the momentum in the direction.
        beta2: Decay of the momentum.
        weight_decay: Decoupled weight decay.
        grad_scale: What gradients are divided by.
        maximize: Ascend instead of descend.
    """
    lists = {"grads": grads, "params": params, "exp_avgs": exp_avgs}
    scalars = (lr, beta1, beta2, weight_decay, grad_scale)
    run_step("lion_", lists, lambda g: LionDescriptor(g.shapes, g.element, maximize), *scalars)
