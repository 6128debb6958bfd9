"""Gradient clipping over lists of tensors. Kernels in csrc/ops/optim, reference in clip_ref.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from baracuda import _core
from baracuda.call.op import NotDifferentiable, Op, composite, run_new
from baracuda.call.steps import made_of
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.spec import INOUT, Signature, descriptor, output, scalar, tensor, tensors
from baracuda.ops.optim.optim import Group, ListDescriptor, as_list, groups_of, plan_of, run_groups


@descriptor(family="optim", op="get_total_norm")
class TotalNormDescriptor(ListDescriptor):
    """The p-norm of all elements of a list of tensors together: (sum |x|^p)^(1/p), or max |x| for an infinite p.

    NaN gives NaN; a list without elements has norm 0. The order of the sum depends on sizes alone. With
    `error_if_nonfinite` a norm that is infinite or NaN is a ValueOutOfRangeError: at once on cpu, when the device is
    asked (Device.check) on GPUs.

    Args:
        shapes: Shape of each tensor.
        element: f16, bf16, f32 or f64; the norm is f32 (f64 for f64).
        p: Above 0; math.inf for the largest magnitude.
        error_if_nonfinite: Whether a norm that is not finite is an error.
    """

    p: float = 2.0
    error_if_nonfinite: bool = False
    unbounded = frozenset({"p"})

    def validate(self) -> None:
        self.check_list()
        if not self.p > 0:
            raise self.wrong("p", self.p, "p > 0")

    def signature(self) -> Signature:
        return Signature(
            tensors("tensors", self.shapes, self.element), output("total_norm", (), self.element.statistic)
        )


@descriptor(family="optim", op="clip_grads_with_norm")
class ClipGradsWithNormDescriptor(ListDescriptor):
    """Grads *= min(1, max_norm / (total_norm + 1e-6)), in place, over a list of tensors in a single launch.

    The norm is read when the kernel runs, wherever it is. An infinite norm makes finite gradients 0; NaN makes all NaN.

    Args:
        shapes: Shape of each gradient.
        element: f16, bf16, f32 or f64.
        norm_element: f32 or f64; what get_total_norm gives for `element` by default.
    """

    norm_element: Element | None = None

    def signature(self) -> Signature:
        return Signature(
            tensors("grads", self.shapes, self.element, INOUT),
            tensor("total_norm", (), self.norm_element or self.element.statistic, reads=True),
            scalar("max_norm"),
        )


@descriptor(family="optim", op="clip_grad_value")
class ClipGradValueDescriptor(ListDescriptor):
    """Grads cut to [-clip_value, clip_value], in place, over a list of tensors in a single launch; NaN stays.

    The scalar clip_value is any number but NaN.

    Args:
        shapes: Shape of each gradient.
        element: f16, bf16, f32 or f64.
    """

    def signature(self) -> Signature:
        return Signature(tensors("grads", self.shapes, self.element, INOUT), scalar("clip_value"))


_IN_PLACE = NotDifferentiable("gradients are changed in place")
OPS = (
    Op(
        "get_total_norm",
        TotalNormDescriptor,
        NotDifferentiable("it is for gradients, which have none of their own; see F.norm"),
        "total_norm = (sum over all tensors |x|^p)^(1/p)",
    ),
    Op(
        "clip_grads_with_norm",
        ClipGradsWithNormDescriptor,
        _IN_PLACE,
        "grads = grads min(1, max_norm / (total_norm + 1e-6))",
    ),
    Op("clip_grad_value", ClipGradValueDescriptor, _IN_PLACE, "grads = min(max(grads, -clip_value), clip_value)"),
)


def _groups(name: str, values: Any) -> list[Group]:
    found = groups_of(name, {"grads": as_list(values)}, "grads")
    if len({g.place for g in found}) > 1:
        raise InvalidProblemError(f"{name}: got tensors on several devices, want all on one: a norm has one device.")
    return found


def _norm(groups: list[Group], p: float, error_if_nonfinite: bool) -> Any:
    """The norm of groups of one element each; of their norms, where there are several."""
    if not groups:
        return np.zeros((), np.float32)
    norms = []
    for g in groups:
        made = plan_of(TotalNormDescriptor(g.shapes, g.element, p, error_if_nonfinite), g.place)
        norms.append(run_new(made, g.parts[0][0], tensors=g.parts[0]))
    if len(norms) == 1:
        return norms[0]
    if any(g.element is Element.F64 for g in groups):
        raise InvalidProblemError("grads: got f64 and other elements, want one of both: a norm has one element.")
    made = plan_of(TotalNormDescriptor(((),) * len(norms), Element.F32, p, error_if_nonfinite), groups[0].place)
    return run_new(made, norms[0], tensors=norms)


@composite
def get_total_norm(tensors: Any, norm_type: float = 2.0, error_if_nonfinite: bool = False) -> Any:
    """The norm of all elements of one array or a list of them together, as torch.nn.utils.get_total_norm.

    Nothing waits for a device: with `error_if_nonfinite` a GPU reports when it is asked.

    Args:
        tensors: Arrays of f16, bf16 and f32, or of f64, on one device.
        norm_type: p of the p-norm, above 0; math.inf for the largest magnitude.
        error_if_nonfinite: Whether a norm that is infinite or NaN is an error.

    Returns:
        A 0-d array, f32 (f64 for f64).
    """
    return _norm(_groups("get_total_norm", tensors), float(norm_type), error_if_nonfinite)


@composite
def clip_grads_with_norm_(grads: Any, max_norm: Any, total_norm: Any) -> None:
    """Scales gradients in place by min(1, max_norm / (total_norm + 1e-6)), as torch.nn.utils.clip_grads_with_norm_.

    Args:
        grads: The gradients: one array or a list of them.
        max_norm: The largest norm wanted; a number or a 0-d array.
        total_norm: What get_total_norm gave; a 0-d array.
    """
    _scale(_groups("clip_grads_with_norm_", grads), max_norm, total_norm)


def _scale(groups: list[Group], max_norm: Any, total_norm: Any) -> None:
    found = Element(_core.describe(total_norm)[1])
    run_groups(groups, lambda g: ClipGradsWithNormDescriptor(g.shapes, g.element, found), total_norm, max_norm)


@made_of("get_total_norm clip_grads_with_norm")
@composite
def clip_grad_norm_(grads: Any, max_norm: Any, norm_type: float = 2.0, error_if_nonfinite: bool = False) -> Any:
    """Scales gradients in place so that their norm together is at most `max_norm`, as torch.nn.utils.clip_grad_norm_.

    Takes the gradients themselves, not parameters that have some. Nothing waits for a device: the norm stays there.

    Args:
        grads: The gradients: one array or a list of them, of f16, bf16 and f32, or of f64, on one device.
        max_norm: The largest norm wanted; a number or a 0-d array.
        norm_type: p of the p-norm, above 0; math.inf for the largest magnitude.
        error_if_nonfinite: Whether a norm that is infinite or NaN is an error: on cpu before a gradient is changed, on
            GPUs when the device is asked, and the gradients are then scaled all the same.

    Returns:
        The norm before clipping, a 0-d array, f32 (f64 for f64).
    """
    groups = _groups("clip_grad_norm_", grads)
    total = _norm(groups, float(norm_type), error_if_nonfinite)
    _scale(groups, max_norm, total)
    return total


@composite
def clip_grad_value_(grads: Any, clip_value: Any) -> None:
    """Cuts gradients to [-clip_value, clip_value] in place, as torch.nn.utils.clip_grad_value_.

    Takes the gradients themselves, not parameters that have some. They may mix elements and devices.

    Args:
        grads: The gradients: one array or a list of them.
        clip_value: The largest magnitude wanted; a number or a 0-d array.
    """
    groups = groups_of("clip_grad_value_", {"grads": as_list(grads)}, "grads")
    run_groups(groups, lambda g: ClipGradValueDescriptor(g.shapes, g.element), clip_value)
