"""Optimizer steps over lists of tensors. Kernels in csrc/ops/optim, reference in optim_ref.py.

What follows from the scalars of a step alone is worked out in f64 and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from baracuda import _core
from baracuda.call.op import NotDifferentiable, Op, composite
from baracuda.choose.plan import Plan, plan
from baracuda.describe.dims import Shape
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.spec import INOUT, Descriptor, Signature, descriptor, frame, scalar, tensors
from baracuda.memory.device import Place, name_of


@frame
class ListDescriptor(Descriptor):
    """Fields and checks that all ops over lists share."""

    __slots__ = ()
    shapes: tuple[Shape, ...]
    element: Element = Element.F32

    def check_list(self) -> None:
        """Raises where there is no tensor."""
        if not self.shapes:
            raise self.wrong("shapes", self.shapes, "at least one shape")

    def validate(self) -> None:
        self.check_list()


@frame
class _Adam(ListDescriptor):
    """The fields and the signature of adam and adamw."""

    __slots__ = ()
    maximize: bool = False
    amsgrad: bool = False

    def signature(self) -> Signature:
        e, s = self.element, self.element.statistic
        return Signature(
            tensors("grads", self.shapes, e),
            tensors("params", self.shapes, e, INOUT),
            tensors("exp_avgs", self.shapes, s, INOUT),
            tensors("exp_avg_sqs", self.shapes, s, INOUT),
            tensors("max_exp_avg_sqs", self.shapes, s, INOUT, present=self.amsgrad),
            scalar("lr"),
            scalar("beta1", default=0.9),
            scalar("beta2", default=0.999),
            scalar("eps", default=1e-8),
            scalar("weight_decay", default=0.01 if self.op == "adamw" else 0.0),
            scalar("step", "int"),
            scalar("grad_scale", default=1.0),
        )


@descriptor(family="optim", op="adamw")
class AdamWDescriptor(_Adam):
    """One step of AdamW, in place, over a list of tensors in a single launch; torch.optim.AdamW's formula.

    g = grad / grad_scale (negated with `maximize`); m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2;
    p = p (1 - lr weight_decay) - lr / (1 - beta1^step) m / (sqrt(v) / sqrt(1 - beta2^step) + eps). With `amsgrad`
    max_exp_avg_sqs = max(max_exp_avg_sqs, v) takes the place of v in p; NaN stays.

    What follows from the scalars alone is worked out in f64 and rounded once. Scalars are what torch accepts: lr, eps
    and weight_decay >= 0, 0 <= betas < 1, step >= 1 (counted from 1), grad_scale not 0. Gradients are not written.

    Unlike torch, the moments of f16 and bf16 parameters are kept in f32.

    Args:
        shapes: Shape of each parameter; its gradient and its moments have the same.
        element: Of parameters and gradients: f16, bf16, f32 or f64. Moments are f32 (f64 for f64).
        maximize: Ascend instead of descend.
        amsgrad: Whether the largest second moments so far are kept, in a further list.
    """


@descriptor(family="optim", op="adam")
class AdamDescriptor(_Adam):
    """One step of Adam, in place, over a list of tensors in a single launch; torch.optim.Adam's formula.

    As AdamWDescriptor, but weight decay is part of the gradient: g = grad / grad_scale + weight_decay p, and
    p = p - lr / (1 - beta1^step) m / (sqrt(v) / sqrt(1 - beta2^step) + eps).

    Args:
        shapes: Shape of each parameter; its gradient and its moments have the same.
        element: Of parameters and gradients: f16, bf16, f32 or f64. Moments are f32 (f64 for f64).
        maximize: Ascend instead of descend.
        amsgrad: Whether the largest second moments so far are kept, in a further list.
    """


@descriptor(family="optim", op="sgd")
class SGDDescriptor(ListDescriptor):
    """One step of SGD, in place, over a list of tensors in a single launch; torch.optim.SGD's formula.

    g = grad / grad_scale (negated with `maximize`) + weight_decay p. Without momentum buffers p = p - lr g. With them
    b = momentum b + (1 - dampening) g, in the first step b = g whatever it held before; p = p - lr b, or with
    `nesterov` p = p - lr (g + momentum b).

    Scalars are what torch accepts: lr, momentum and weight_decay >= 0, step >= 1 (counted from 1), grad_scale not 0;
    momentum 0 without buffers; momentum > 0 and dampening 0 with `nesterov`. Gradients are not written.

    Unlike torch, the momentum of f16 and bf16 parameters is kept in f32.

    Args:
        shapes: Shape of each parameter; its gradient and its momentum have the same.
        element: Of parameters and gradients: f16, bf16, f32 or f64. Momentum is f32 (f64 for f64).
        has_momentum: Whether there are momentum buffers.
        nesterov: Nesterov's momentum.
        maximize: Ascend instead of descend.
    """

    has_momentum: bool = True
    nesterov: bool = False
    maximize: bool = False

    def validate(self) -> None:
        self.check_list()
        if self.nesterov and not self.has_momentum:
            raise self.wrong("nesterov", True, "False without momentum buffers")

    def signature(self) -> Signature:
        e = self.element
        return Signature(
            tensors("grads", self.shapes, e),
            tensors("params", self.shapes, e, INOUT),
            tensors("momentum_buffers", self.shapes, e.statistic, INOUT, present=self.has_momentum),
            scalar("lr"),
            scalar("momentum", default=None if self.has_momentum else 0.0),
            scalar("dampening", default=0.0),
            scalar("weight_decay", default=0.0),
            scalar("step", "int", None if self.has_momentum else 1),
            scalar("grad_scale", default=1.0),
        )


_IN_PLACE = NotDifferentiable("an optimizer step changes parameters in place")
OPS = (
    Op(
        "adamw",
        AdamWDescriptor,
        _IN_PLACE,
        "p = p (1 - lr wd) - lr / (1 - beta1^t) m / (sqrt(v / (1 - beta2^t)) + eps), moments m and v of the gradient",
    ),
    Op(
        "adam",
        AdamDescriptor,
        _IN_PLACE,
        "p = p - lr / (1 - beta1^t) m / (sqrt(v / (1 - beta2^t)) + eps), moments m and v of the gradient + wd p",
    ),
    Op("sgd", SGDDescriptor, _IN_PLACE, "p = p - lr b, b = momentum b + (1 - dampening) (gradient + wd p)"),
)


@lru_cache(maxsize=64)
def plan_of(desc: Descriptor, place: Place) -> Plan:
    """The plan of a problem on a device, kept."""
    return plan(desc, name_of(place))


def as_list(value: Any) -> list[Any]:
    """One array as a list of it."""
    return list(value) if isinstance(value, (list, tuple)) else [value]


@dataclass(frozen=True, slots=True)
class Group:
    """Parts of lists whose tensors are of one element on one device."""

    element: Element
    place: Place
    shapes: tuple[tuple[int, ...], ...]
    parts: list[list[Any]]
    places: tuple[int, ...] | None  # where they stand in the lists; None: these are the whole lists


def groups_of(name: str, lists: dict[str, list[Any]], by: str) -> list[Group]:
    """Lists of equal length by element and device of those called `by`."""
    found: dict[tuple[Element, Place], tuple[list[int], list[tuple[int, ...]]]] = {}
    for i, p in enumerate(lists[by]):
        shape, code, _, *place = _core.describe(p)
        places, shapes = found.setdefault((Element(code), (place[0], place[1])), ([], []))
        places.append(i)
        shapes.append(shape)
    lengths = {n: len(v) for n, v in lists.items()}
    if len(found) > 1 and len(set(lengths.values())) > 1:
        text = ", ".join(f"{count} {n}" for n, count in lengths.items())
        raise InvalidProblemError(f"{name}: got {text}, want lists of equal lengths.")
    whole = list(lists.values())
    if len(found) == 1:
        return [Group(e, place, tuple(shapes), whole, None) for (e, place), (_, shapes) in found.items()]
    return [
        Group(e, place, tuple(shapes), [[v[i] for i in places] for v in whole], tuple(places))
        for (e, place), (places, shapes) in found.items()
    ]


def run_groups(groups: list[Group], desc: Callable[[Group], Descriptor], *besides: Any) -> None:
    """Runs a plan for every group, on its lists and what comes besides; a wrong tensor in any of them changes none."""
    _core.run_group([(plan_of(desc(g), g.place), (*g.parts, *besides), g.places) for g in groups])


def _adam(
    name: str,
    cls: type[AdamWDescriptor] | type[AdamDescriptor],
    lists: dict[str, Any],
    flags: tuple[bool, bool],
    scalars: tuple[Any, ...],
) -> None:
    maximize, amsgrad = flags
    if amsgrad != (lists["max_exp_avg_sqs"] is not None):
        raise InvalidProblemError(
            f"{name}: max_exp_avg_sqs: got {'None' if amsgrad else 'arrays'}, want "
            f"{'a list of arrays with amsgrad' if amsgrad else 'None without amsgrad'}."
        )
    given = {n: as_list(v) for n, v in lists.items() if v is not None}
    run_groups(groups_of(name, given, "params"), lambda g: cls(g.shapes, g.element, maximize, amsgrad), *scalars)


@composite
def adamw_(
    params: Any,
    grads: Any,
    exp_avgs: Any,
    exp_avg_sqs: Any,
    max_exp_avg_sqs: Any = None,
    *,
    step: Any,
    lr: Any = 1e-3,
    beta1: Any = 0.9,
    beta2: Any = 0.999,
    eps: Any = 1e-8,
    weight_decay: Any = 1e-2,
    grad_scale: Any = 1.0,
    maximize: bool = False,
    amsgrad: bool = False,
) -> None:
    """One AdamW step in place, over one array or a list of them; see AdamWDescriptor for the formula.

    Lists may mix elements and devices: parameters of one element on one device are updated in one launch.

    Args:
        params: Parameters.
        grads: Their gradients, of the same elements.
        exp_avgs: First moments, f32 (f64 for f64 parameters).
        exp_avg_sqs: Second moments, likewise.
        max_exp_avg_sqs: The largest second moments so far, likewise; with `amsgrad`.
        step: Number of this step, from 1; a number or a 0-d array, as all scalars.
        lr: Learning rate.
        beta1: Decay of the first moment.
        beta2: Decay of the second moment.
        eps: Added to the root of the second moment.
        weight_decay: Decoupled weight decay.
        grad_scale: What gradients are divided by.
        maximize: Ascend instead of descend.
        amsgrad: Divide by the largest second moments so far.
    """
    lists = {"grads": grads, "params": params, "exp_avgs": exp_avgs, "exp_avg_sqs": exp_avg_sqs}
    scalars = (lr, beta1, beta2, eps, weight_decay, step, grad_scale)
    _adam("adamw_", AdamWDescriptor, lists | {"max_exp_avg_sqs": max_exp_avg_sqs}, (maximize, amsgrad), scalars)


@composite
def adam_(
    params: Any,
    grads: Any,
    exp_avgs: Any,
    exp_avg_sqs: Any,
    max_exp_avg_sqs: Any = None,
    *,
    step: Any,
    lr: Any = 1e-3,
    beta1: Any = 0.9,
    beta2: Any = 0.999,
    eps: Any = 1e-8,
    weight_decay: Any = 0.0,
    grad_scale: Any = 1.0,
    maximize: bool = False,
    amsgrad: bool = False,
) -> None:
    """One Adam step in place, over one array or a list of them; see AdamDescriptor for the formula.

    Lists may mix elements and devices: parameters of one element on one device are updated in one launch.

    Args:
        params: Parameters.
        grads: Their gradients, of the same elements.
        exp_avgs: First moments, f32 (f64 for f64 parameters).
        exp_avg_sqs: Second moments, likewise.
        max_exp_avg_sqs: The largest second moments so far, likewise; with `amsgrad`.
        step: Number of this step, from 1; a number or a 0-d array, as all scalars.
        lr: Learning rate.
        beta1: Decay of the first moment.
        beta2: Decay of the second moment.
        eps: Added to the root of the second moment.
        weight_decay: What of the parameter is added to its gradient.
        grad_scale: What gradients are divided by.
        maximize: Ascend instead of descend.
        amsgrad: Divide by the largest second moments so far.
    """
    lists = {"grads": grads, "params": params, "exp_avgs": exp_avgs, "exp_avg_sqs": exp_avg_sqs}
    scalars = (lr, beta1, beta2, eps, weight_decay, step, grad_scale)
    _adam("adam_", AdamDescriptor, lists | {"max_exp_avg_sqs": max_exp_avg_sqs}, (maximize, amsgrad), scalars)


@composite
def sgd_(
    params: Any,
    grads: Any,
    momentum_buffers: Any = None,
    *,
    step: Any = None,
    lr: Any = 1e-3,
    momentum: Any = 0.0,
    dampening: Any = 0.0,
    weight_decay: Any = 0.0,
    grad_scale: Any = 1.0,
    nesterov: bool = False,
    maximize: bool = False,
) -> None:
    """One SGD step in place, over one array or a list of them; see SGDDescriptor for the formula.

    Lists may mix elements and devices: parameters of one element on one device are updated in one launch.

    Args:
        params: Parameters.
        grads: Their gradients, of the same elements.
        momentum_buffers: Momentum, f32 (f64 for f64 parameters); None for none. The first step sets it.
        step: Number of this step, from 1; a number or a 0-d array, as all scalars. Needed with momentum buffers.
        lr: Learning rate.
        momentum: Decay of the momentum.
        dampening: How much less than the gradient is added to the momentum.
        weight_decay: What of the parameter is added to its gradient.
        grad_scale: What gradients are divided by.
        nesterov: Nesterov's momentum.
        maximize: Ascend instead of descend.
    """
    moves = momentum_buffers is not None
    if moves and step is None:
        raise InvalidProblemError("sgd_: step: got None, want the number of this step, from 1, with momentum buffers.")
    given = {"grads": as_list(grads), "params": as_list(params)}
    if moves:
        given["momentum_buffers"] = as_list(momentum_buffers)
    scalars = (lr, momentum, dampening, weight_decay, 1 if step is None else step, grad_scale)
    groups = groups_of("sgd_", given, "params")
    run_groups(groups, lambda g: SGDDescriptor(g.shapes, g.element, moves, nesterov, maximize), *scalars)
