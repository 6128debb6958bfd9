"""Optimizer steps over lists of tensors. Kernels in csrc/ops/optim, reference in optim_ref.py."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from baracuda import _core
from baracuda.device import Place, name_of
from baracuda.dims import Shape
from baracuda.elements import Element
from baracuda.errors import InvalidProblemError
from baracuda.op import NotDifferentiable, Op, composite
from baracuda.plan import Plan, plan
from baracuda.spec import INOUT, Descriptor, Signature, descriptor, scalar, tensors


@descriptor(family="optim", op="adamw")
class AdamWDescriptor(Descriptor):
    """One step of AdamW, in place, over a list of tensors in a single launch; torch.optim.AdamW's formula.

    g = grad / grad_scale (negated with `maximize`); m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2;
    p = p (1 - lr weight_decay) - lr / (1 - beta1^step) m / (sqrt(v) / sqrt(1 - beta2^step) + eps).

    What follows from the scalars alone is worked out in f64 and rounded once. Scalars are what torch accepts: lr, eps
    and weight_decay >= 0, 0 <= betas < 1, step >= 1 (counted from 1), grad_scale not 0. Gradients are not written.

    Unlike torch, the moments of f16 and bf16 parameters are kept in f32.

    Args:
        shapes: Shape of each parameter; its gradient and both moments have the same.
        element: Of parameters and gradients: f16, bf16, f32 or f64. Moments are f32 (f64 for f64).
        maximize: Ascend instead of descend.
    """

    shapes: tuple[Shape, ...]
    element: Element = Element.F32
    maximize: bool = False

    def validate(self) -> None:
        if not self.shapes:
            raise self.wrong("shapes", self.shapes, "at least one shape")

    def signature(self) -> Signature:
        e, s = self.element, self.element.statistic
        return Signature(
            tensors("grads", self.shapes, e),
            tensors("params", self.shapes, e, INOUT),
            tensors("exp_avgs", self.shapes, s, INOUT),
            tensors("exp_avg_sqs", self.shapes, s, INOUT),
            scalar("lr"),
            scalar("beta1", default=0.9),
            scalar("beta2", default=0.999),
            scalar("eps", default=1e-8),
            scalar("weight_decay", default=0.01),
            scalar("step", "int"),
            scalar("grad_scale", default=1.0),
        )

    def attributes(self) -> tuple[int, ...]:
        return (int(self.maximize),)


OPS = (
    Op(
        "adamw",
        AdamWDescriptor,
        NotDifferentiable("an optimizer step changes parameters in place"),
        "p = p (1 - lr wd) - lr / (1 - beta1^t) m / (sqrt(v / (1 - beta2^t)) + eps), moments m and v of the gradient",
    ),
)


@lru_cache(maxsize=64)
def _plan(shapes: tuple[tuple[int, ...], ...], element: Element, maximize: bool, place: Place) -> Plan:
    return plan(AdamWDescriptor(shapes, element, maximize), name_of(place))


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


@composite
def adamw_(
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
    weight_decay: Any = 1e-2,
    grad_scale: Any = 1.0,
    maximize: bool = False,
) -> None:
    """One AdamW step in place, over one array or a list of them; see AdamWDescriptor for the formula.

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
        weight_decay: Decoupled weight decay.
        grad_scale: What gradients are divided by.
        maximize: Ascend instead of descend.
    """
    lists = [_list(grads), _list(params), _list(exp_avgs), _list(exp_avg_sqs)]
    groups: dict[tuple[Element, Place], tuple[list[int], list[tuple[int, ...]]]] = {}
    for i, p in enumerate(lists[1]):
        shape, code, _, *place = _core.describe(p)
        places, shapes = groups.setdefault((Element(code), (place[0], place[1])), ([], []))
        places.append(i)
        shapes.append(shape)
    whole = len(groups) == 1
    if not whole and len({len(v) for v in lists}) > 1:
        raise InvalidProblemError(
            f"adamw_: got lists of {[len(v) for v in lists]} (grads, params, moments), want equal lengths."
        )
    for (element, where), (places, shapes) in groups.items():
        parts = lists if whole else [[v[i] for i in places] for v in lists]
        _plan(tuple(shapes), element, maximize, where).run(
            *parts, lr, beta1, beta2, eps, weight_decay, step, grad_scale
        )
