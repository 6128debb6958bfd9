"""Losses of an input and a target, element by element. Kernels in csrc/ops/loss, reference in pointwise_loss_ref.py.

A sum or mean is taken in one pass: the losses of the elements are never stored.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from baracuda.call.op import Arg, Call, Op, Recipe, function
from baracuda.describe.dims import Shape
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.order import ELEMENTWISE
from baracuda.describe.promotion import broadcast, result_element
from baracuda.describe.spec import Kinded, Param, ScalarParam, Signature, descriptor, frame, output, scalar, tensor
from baracuda.ops.binary.binary import _sum_to

KINDS = {
    "mse_loss": "loss = (input - target)^2",
    "l1_loss": "loss = |input - target|",
    "smooth_l1_loss": "loss = d^2 / (2 beta) where d = |input - target| < beta, else d - beta / 2",
    "huber_loss": "loss = d^2 / 2 where d = |input - target| <= delta, else delta (d - delta / 2)",
    "binary_cross_entropy": "loss = -weight (target log(input) + (1 - target) log(1 - input))",
    "binary_cross_entropy_with_logits": "loss = weight ((1 - target) input + ((pos_weight - 1) target + 1) log(1 + exp(-input)))",
    "kl_div": "loss = target (log(target) - input)",
}
NUMBERS = {"smooth_l1_loss": "beta", "huber_loss": "delta"}
_WEIGHTED = {"binary_cross_entropy": 1, "binary_cross_entropy_with_logits": 2}


class LossReduction(Enum):
    """What becomes of the losses: kept, averaged, added, or added and divided by the input's first size."""

    NONE = "none"
    MEAN = "mean"
    SUM = "sum"
    BATCHMEAN = "batchmean"


@frame
class _Pointwise(Kinded):
    """Fields and checks that forward and backward share."""

    __slots__ = ()
    input_shape: Shape
    target_shape: Shape
    element: Element = Element.F32
    reduction: LossReduction = LossReduction.MEAN
    weight_shape: Shape | None = None
    pos_weight_shape: Shape | None = None
    log_target: bool = False
    input_element: Element | None = None
    target_element: Element | None = None
    weight_element: Element | None = None
    pos_weight_element: Element | None = None

    def validate(self) -> None:
        full = self.full_shape()
        if self.kind in _WEIGHTED and tuple(self.input_shape) != tuple(self.target_shape):
            raise self.wrong("target_shape", self.target_shape, "the input's shape")
        for i, (name, shape) in enumerate((("weight", self.weight_shape), ("pos_weight", self.pos_weight_shape))):
            if shape is None:
                continue
            if i >= _WEIGHTED.get(self.kind, 0):
                raise self.wrong(f"{name}_shape", shape, f"None: {self.kind} has none")
            if tuple(broadcast(shape, full, type(self).__name__)) != tuple(full):
                raise self.wrong(f"{name}_shape", shape, "a shape that broadcasts to the input's")
        if self.reduction is LossReduction.BATCHMEAN and self.kind != "kl_div":
            raise self.wrong("reduction", "batchmean", "one of none, mean, sum: only kl_div has batchmean")
        if self.log_target and self.kind != "kl_div":
            raise self.wrong("log_target", True, "False: only kl_div takes logarithms as target")

    def full_shape(self) -> Shape:
        """The shape that input and target broadcast to."""
        return broadcast(self.input_shape, self.target_shape, type(self).__name__)

    def loss_shape(self) -> Shape:
        """Shape of the loss."""
        return self.full_shape() if self.reduction is LossReduction.NONE else ()

    def operands(self) -> tuple[list[Param], list[ScalarParam]]:
        """What both read: input, target, weights, and the loss's number."""
        shapes = {
            "input": (self.input_shape, self.input_element),
            "target": (self.target_shape, self.target_element),
            "weight": (self.weight_shape, self.weight_element),
            "pos_weight": (self.pos_weight_shape, self.pos_weight_element),
        }
        tensors = []
        for name, (shape, element) in shapes.items():
            given = self.element if element is None else element
            present = shape is not None
            tensors.append(tensor(name, shape or (), given, present=present, reads=given is not self.element))
        return tensors, [scalar(NUMBERS[self.kind], default=1.0)] if self.kind in NUMBERS else []

    def attributes(self) -> dict[str, int | float]:
        return {"reduction": list(LossReduction).index(self.reduction), "log_target": int(self.log_target)}


@descriptor(family="loss", kinds=KINDS, enums={"reduction": LossReduction}, result_order=ELEMENTWISE)
class PointwiseLossDescriptor(_Pointwise):
    """loss = f(input, target), element by element, with broadcasting, reduced over all elements.

    A mean divides by the number of elements (of none it is NaN), "batchmean" by the input's first size. The scalars
    are torch's: beta >= 0 of "smooth_l1_loss" (0 is "l1_loss"), delta > 0 of "huber_loss".

    "binary_cross_entropy" wants input and target in [0, 1] (else ValueOutOfRangeError) and bounds its logarithms from
    below by -100; it and "binary_cross_entropy_with_logits" want target and input of one shape. In "kl_div" a target of
    0 has loss 0 where the input is finite.

    Args:
        kind: Which loss; each is an op of its own name.
        input_shape: Shape of the input, rank 0-8.
        target_shape: Shape of the target.
        element: In which is computed, and the loss's: f16, bf16, f32 or f64.
        reduction: "none", "mean" or "sum"; "batchmean" for "kl_div".
        weight_shape: Shape of a weight for each loss, of the binary cross entropies; None for none.
        pos_weight_shape: Shape of a weight for the positive part of "binary_cross_entropy_with_logits"; None for none.
        log_target: Whether the target of "kl_div" is given as its logarithm.
        input_element: Element of the input where it differs; converted while being read, as of the others.
        target_element: Element of the target where it differs.
        weight_element: Element of the weight where it differs.
        pos_weight_element: Element of the positive weight where it differs.
    """

    def signature(self) -> Signature:
        tensors, numbers = self.operands()
        return Signature(*tensors, output("loss", self.loss_shape(), self.element), *numbers)


@descriptor(gradient_of=PointwiseLossDescriptor, result_order=ELEMENTWISE)
class PointwiseLossBackwardDescriptor(_Pointwise):
    """dinput = dloss times the loss's derivative, divided as the mean is, in the shape that input and target broadcast to.

    The target counts as a constant. Where |input - target| has no derivative it is 0. "binary_cross_entropy" divides by
    max((1 - input) input, 1e-12) and, unlike the forward op, does not look whether its values are in [0, 1].

    Args:
        kind: Which loss.
        input_shape: Shape of the input.
        target_shape: Shape of the target.
        element: Of dloss and dinput: f16, bf16, f32 or f64.
        reduction: How the loss was reduced.
        weight_shape: Shape of the weight; None for none.
        pos_weight_shape: Shape of the positive weight; None for none.
        log_target: Whether the target of "kl_div" is given as its logarithm.
        input_element: Element of the input where it differs.
        target_element: Element of the target where it differs.
        weight_element: Element of the weight where it differs.
        pos_weight_element: Element of the positive weight where it differs.
    """

    def signature(self) -> Signature:
        tensors, numbers = self.operands()
        dloss, dinput = (
            tensor("dloss", self.loss_shape(), self.element),
            output("dinput", self.full_shape(), self.element),
        )
        return Signature(dloss, *tensors, dinput, *numbers)


OPS = tuple(Op(kind, PointwiseLossDescriptor, PointwiseLossBackwardDescriptor, text) for kind, text in KINDS.items())


def check_legacy(name: str, size_average: Any, reduce: Any) -> None:
    """Torch's two oldest arguments, for which `reduction` stands."""
    for field, value in (("size_average", size_average), ("reduce", reduce)):
        if value is not None:
            raise InvalidProblemError(f"{name}: {field}: got {value!r}, want None. Use reduction= instead.")


def _no_weight(name: str, weight: Any) -> None:
    if weight is not None:
        raise InvalidProblemError(
            f'{name}: weight: got a tensor, want None. Take reduction="none" and multiply the losses by it.'
        )


def _fields(kind: str, tensors: dict[str, Arg | None], element: Element | None, **more: Any) -> dict[str, Any]:
    """Fields of the descriptor. `element`: what dloss has; the forward op's follows from the arguments."""
    present = {n: a for n, a in tensors.items() if a is not None}
    if element is None:
        element = present["input"].element if kind == "huber_loss" else result_element(present.values())
        if kind == "binary_cross_entropy":
            for name, arg in present.items():
                if arg.element is not present["input"].element:
                    want = f"the input's, {present['input'].element}"
                    raise InvalidProblemError(f"{kind}: {name}: got element {arg.element}, want {want}.")
        if not element.is_float:
            raise InvalidProblemError(f"{kind}: input: got element {element}, want a float element. Cast it first.")
    fields: dict[str, Any] = {"kind": kind, "element": element} | more
    for name, arg in present.items():
        fields[f"{name}_shape"] = arg.shape
        fields[f"{name}_element"] = None if arg.element is element else arg.element
    return fields


def _forward(call: Call, kind: str, tensors: dict[str, Arg | None], numbers: dict[str, Any], **more: Any) -> Recipe:
    desc = PointwiseLossDescriptor(**_fields(kind, tensors, None, **more))
    given: dict[str, Any] = {n: a for n, a in tensors.items() if a is not None}
    return call(desc, **given, **numbers)


def _backward(
    call: Call, kind: str, dloss: Arg, tensors: dict[str, Arg | None], numbers: dict[str, Any], **more: Any
) -> Recipe:
    desc = PointwiseLossBackwardDescriptor(**_fields(kind, tensors, dloss.element, **more))
    given: dict[str, Any] = {n: a for n, a in tensors.items() if a is not None}
    return call(desc, dloss=dloss, **given, **numbers)


def _as_input(gradient: Any, given: dict[str, Any]) -> Any:
    """The gradient, summed to the shape of the input."""
    return _sum_to(gradient, given["input"])


@function(tensors="input target weight")
def mse_loss(
    call: Call,
    input: Arg,
    target: Arg,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Arg | None = None,
) -> Recipe:
    """(input - target)^2, as torch.nn.functional.mse_loss."""
    check_legacy("mse_loss", size_average, reduce)
    _no_weight("mse_loss", weight)
    return _forward(call, "mse_loss", {"input": input, "target": target}, {}, reduction=reduction)


@function(tensors="dloss input target")
def mse_loss_backward(call: Call, dloss: Arg, input: Arg, target: Arg, reduction: str = "mean") -> Recipe:
    """Gradient of mse_loss with respect to `input`, in the shape that input and target broadcast to."""
    return _backward(call, "mse_loss", dloss, {"input": input, "target": target}, {}, reduction=reduction)


mse_loss.pulled_by(mse_loss_backward, "loss", _as_input)
mse_loss.without_gradient("target weight")


@function(tensors="input target weight")
def l1_loss(
    call: Call,
    input: Arg,
    target: Arg,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Arg | None = None,
) -> Recipe:
    """|input - target|, as torch.nn.functional.l1_loss."""
    check_legacy("l1_loss", size_average, reduce)
    _no_weight("l1_loss", weight)
    return _forward(call, "l1_loss", {"input": input, "target": target}, {}, reduction=reduction)


@function(tensors="dloss input target")
def l1_loss_backward(call: Call, dloss: Arg, input: Arg, target: Arg, reduction: str = "mean") -> Recipe:
    """Gradient of l1_loss with respect to `input`, in the shape that input and target broadcast to."""
    return _backward(call, "l1_loss", dloss, {"input": input, "target": target}, {}, reduction=reduction)


l1_loss.pulled_by(l1_loss_backward, "loss", _as_input)
l1_loss.without_gradient("target weight")


@function(tensors="input target", scalars="beta")
def smooth_l1_loss(
    call: Call,
    input: Arg,
    target: Arg,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: Arg | float = 1.0,
) -> Recipe:
    """Squares up to `beta`, then magnitudes, as torch.nn.functional.smooth_l1_loss."""
    check_legacy("smooth_l1_loss", size_average, reduce)
    return _forward(call, "smooth_l1_loss", {"input": input, "target": target}, {"beta": beta}, reduction=reduction)


@function(tensors="dloss input target", scalars="beta")
def smooth_l1_loss_backward(
    call: Call, dloss: Arg, input: Arg, target: Arg, reduction: str = "mean", beta: Arg | float = 1.0
) -> Recipe:
    """Gradient of smooth_l1_loss with respect to `input`, in the shape that input and target broadcast to."""
    tensors: dict[str, Arg | None] = {"input": input, "target": target}
    return _backward(call, "smooth_l1_loss", dloss, tensors, {"beta": beta}, reduction=reduction)


smooth_l1_loss.pulled_by(smooth_l1_loss_backward, "loss", _as_input)
smooth_l1_loss.without_gradient("target")


@function(tensors="input target weight", scalars="delta")
def huber_loss(
    call: Call,
    input: Arg,
    target: Arg,
    reduction: str = "mean",
    delta: Arg | float = 1.0,
    weight: Arg | None = None,
) -> Recipe:
    """Squares up to `delta`, then magnitudes times it, as torch.nn.functional.huber_loss."""
    _no_weight("huber_loss", weight)
    return _forward(call, "huber_loss", {"input": input, "target": target}, {"delta": delta}, reduction=reduction)


@function(tensors="dloss input target", scalars="delta")
def huber_loss_backward(
    call: Call, dloss: Arg, input: Arg, target: Arg, reduction: str = "mean", delta: Arg | float = 1.0
) -> Recipe:
    """Gradient of huber_loss with respect to `input`, in the shape that input and target broadcast to."""
    tensors: dict[str, Arg | None] = {"input": input, "target": target}
    return _backward(call, "huber_loss", dloss, tensors, {"delta": delta}, reduction=reduction)


huber_loss.pulled_by(huber_loss_backward, "loss", _as_input)
huber_loss.without_gradient("target weight")


@function(tensors="input target weight")
def binary_cross_entropy(
    call: Call,
    input: Arg,
    target: Arg,
    weight: Arg | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Recipe:
    """Cross entropy of probabilities, as torch.nn.functional.binary_cross_entropy."""
    check_legacy("binary_cross_entropy", size_average, reduce)
    tensors = {"input": input, "target": target, "weight": weight}
    return _forward(call, "binary_cross_entropy", tensors, {}, reduction=reduction)


@function(tensors="dloss input target weight")
def binary_cross_entropy_backward(
    call: Call, dloss: Arg, input: Arg, target: Arg, weight: Arg | None = None, reduction: str = "mean"
) -> Recipe:
    """Gradient of binary_cross_entropy with respect to `input`."""
    tensors = {"input": input, "target": target, "weight": weight}
    return _backward(call, "binary_cross_entropy", dloss, tensors, {}, reduction=reduction)


binary_cross_entropy.pulled_by(binary_cross_entropy_backward, "loss", _as_input)
binary_cross_entropy.without_gradient("target weight")


@function(tensors="input target weight pos_weight")
def binary_cross_entropy_with_logits(
    call: Call,
    input: Arg,
    target: Arg,
    weight: Arg | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Arg | None = None,
) -> Recipe:
    """Cross entropy of sigmoid(input), as torch.nn.functional.binary_cross_entropy_with_logits."""
    check_legacy("binary_cross_entropy_with_logits", size_average, reduce)
    tensors = {"input": input, "target": target, "weight": weight, "pos_weight": pos_weight}
    return _forward(call, "binary_cross_entropy_with_logits", tensors, {}, reduction=reduction)


@function(tensors="dloss input target weight pos_weight")
def binary_cross_entropy_with_logits_backward(
    call: Call,
    dloss: Arg,
    input: Arg,
    target: Arg,
    weight: Arg | None = None,
    reduction: str = "mean",
    pos_weight: Arg | None = None,
) -> Recipe:
    """Gradient of binary_cross_entropy_with_logits with respect to `input`."""
    tensors = {"input": input, "target": target, "weight": weight, "pos_weight": pos_weight}
    return _backward(call, "binary_cross_entropy_with_logits", dloss, tensors, {}, reduction=reduction)


binary_cross_entropy_with_logits.pulled_by(binary_cross_entropy_with_logits_backward, "loss", _as_input)
binary_cross_entropy_with_logits.without_gradient("target weight pos_weight")


@function(tensors="input target")
def kl_div(
    call: Call,
    input: Arg,
    target: Arg,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Recipe:
    """Kullback-Leibler divergence of log-probabilities from a target, as torch.nn.functional.kl_div."""
    check_legacy("kl_div", size_average, reduce)
    tensors: dict[str, Arg | None] = {"input": input, "target": target}
    return _forward(call, "kl_div", tensors, {}, reduction=reduction, log_target=log_target)


@function(tensors="dloss input target")
def kl_div_backward(
    call: Call, dloss: Arg, input: Arg, target: Arg, reduction: str = "mean", log_target: bool = False
) -> Recipe:
    """Gradient of kl_div with respect to `input`, in the shape that input and target broadcast to."""
    tensors: dict[str, Arg | None] = {"input": input, "target": target}
    return _backward(call, "kl_div", dloss, tensors, {}, reduction=reduction, log_target=log_target)


kl_div.pulled_by(kl_div_backward, "loss", _as_input)
kl_div.without_gradient("target")
