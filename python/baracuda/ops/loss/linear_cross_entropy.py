"""A linear layer and its cross-entropy, without its logits.

The CPU's kernels are in csrc/ops/loss/cpu_linear.cpp; on GPUs it is composed of other plans, for some rows at a time.
"""

from __future__ import annotations

from typing import Any

from baracuda import functional as F
from baracuda.call.compose import of_elements
from baracuda.call.op import Arg, Call, Op, Recipe, function
from baracuda.call.steps import made_of
from baracuda.describe.dims import Shape, Size, shape_text
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.spec import Descriptor, Param, Signature, descriptor, frame, output, scalar, tensor
from baracuda.ops.loss.linear_cross_entropy_chunked import chunked
from baracuda.ops.loss.linear_cross_entropy_unfused import _unfused, described, is_unfused, unfused_vjp
from baracuda.ops.loss.loss import Reduction


@frame
class _Linear(Descriptor):
    """Fields and checks that forward and backward share."""

    __slots__ = ()
    input_shape: Shape
    classes: Size
    element: Element = Element.F32
    target_element: Element = Element.I64
    reduction: Reduction = Reduction.MEAN
    ignore_index: int = -100
    bias: bool = False
    weighted: bool = False

    def validate(self) -> None:
        if len(self.input_shape) != 2:
            raise self.wrong("input_shape", self.input_shape, "(rows, features)")

    def aux_element(self) -> Element:
        return self.target_element

    def attributes(self) -> dict[str, int | float]:
        return {"reduction": list(Reduction).index(self.reduction), "ignore_index": self.ignore_index}

    def layer(self) -> tuple[Param, ...]:
        """input, target, the layer's weight and bias, and the classes' weights."""
        rows, features = self.input_shape
        return (
            tensor("input", self.input_shape, self.element),
            tensor("target", (rows,), self.target_element),
            tensor("linear_weight", (self.classes, features), self.element),
            tensor("linear_bias", (self.classes,), self.element, present=self.bias),
            tensor("weight", (self.classes,), self.element, present=self.weighted),
        )

    def gradients(self, input: bool, weight: bool, bias: bool) -> tuple[Param, ...]:
        """dinput, dlinear_weight and dlinear_bias."""
        return (
            output("dinput", self.input_shape, self.element, present=input),
            output("dlinear_weight", (self.classes, self.input_shape[1]), self.element, present=weight),
            output("dlinear_bias", (self.classes,), self.element, present=bias),
        )

    def loss_shape(self) -> Shape:
        """Shape of the loss."""
        return self.input_shape[:1] if self.reduction is Reduction.NONE else ()

    def lse(self, role: Any, present: bool) -> Param:
        """log(sum(exp(logits))) of each row."""
        made: Param = role("lse", self.input_shape[:1], self.element.statistic, present=present)
        return made


@descriptor(family="loss", op="linear_cross_entropy", enums={"reduction": Reduction})
class LinearCrossEntropyDescriptor(_Linear):
    """The cross_entropy of logits = input linear_weight^T + linear_bias, which are made for some rows at a time and never kept.

    Targets, weights of classes, ignore_index, the scalar `label_smoothing` and reductions as in CrossEntropyDescriptor. With
    `gradients_wanted` the same pass gives those of input, weight and bias, for a gradient of the loss that is the scalar
    `dloss` (1 unless given), with a product less than the backward plan takes. The workspace holds logits in f32 (f64 for
    f64), 8 M of them or those of 64 rows (half as many rows as features, up to 512, where the weights have a gradient), and in
    f32 the sums of the gradient of halves' weights, if there are more rows than that.

    On CPUs with dot products of bf16 there is a row that rounds the gradients of logits to bf16, as linear and cross_entropy one
    after the other do; `max_error=13` asks for the one that does not, whose products take twice as long.

    Args:
        input_shape: (rows, features).
        classes: Rows of the layer's weight, which is (classes, features).
        element: f16, bf16, f32 or f64, of all tensors but target and lse, which is f32, f64 for f64.
        target_element: i64 or i32, class indices.
        reduction: "none", "mean" or "sum".
        ignore_index: Target that is left out.
        bias: Whether the layer has a bias.
        weighted: Whether classes have weights.
        save: Whether lse is an output.
        gradients_wanted: Whether the gradients are outputs; not with reduction "none", whose losses have a dloss each: take
            the backward plan.
    """

    save: bool = True
    gradients_wanted: bool = False

    def validate(self) -> None:
        _Linear.validate(self)
        if self.gradients_wanted and self.reduction is Reduction.NONE:
            raise self.wrong("gradients_wanted", True, 'False with reduction "none": use the backward plan')

    def signature(self) -> Signature:
        wanted = self.gradients_wanted
        return Signature(
            *self.layer(),
            output("loss", self.loss_shape(), self.element),
            self.lse(output, self.save),
            *self.gradients(wanted, wanted, wanted and self.bias),
            scalar("label_smoothing", default=0.0),
            scalar("dloss", default=1.0),
        )


@descriptor(gradient_of=LinearCrossEntropyDescriptor)
class LinearCrossEntropyBackwardDescriptor(_Linear):
    """Gradients of input, weight and bias; the logits are made again, some rows at a time.

    dlogits as CrossEntropyBackwardDescriptor's; dinput = dlogits linear_weight, dlinear_weight = dlogits^T input, dlinear_bias = sum of
    dlogits. Class weights have no gradient.

    Args:
        input_shape: (rows, features).
        classes: Rows of the layer's weight.
        element: f16, bf16, f32 or f64.
        target_element: i64 or i32.
        reduction: "none", "mean" or "sum".
        ignore_index: Target that is left out.
        bias: Whether the layer has a bias, whose gradient is then an output.
        weighted: Whether classes have weights.
    """

    def signature(self) -> Signature:
        return Signature(
            tensor("dloss", self.loss_shape(), self.element),
            *self.layer(),
            self.lse(tensor, True),
            *self.gradients(True, True, self.bias),
            scalar("label_smoothing", default=0.0),
        )


OPS = (
    Op(
        "linear_cross_entropy",
        LinearCrossEntropyDescriptor,
        LinearCrossEntropyBackwardDescriptor,
        "loss = cross_entropy(input linear_weight^T + linear_bias)",
    ),
)


def _fields(
    input: Arg,
    linear_weight: Arg,
    target: Arg,
    linear_bias: Arg | None,
    weight: Arg | None,
    reduction: str,
    ignore_index: int,
) -> dict[str, Any]:
    """Fields of both descriptors."""
    name = "linear_cross_entropy"
    if input.rank != 2:
        raise InvalidProblemError(
            f"{name}: input: got shape {shape_text(input.shape)}, want (rows, features). Reshape it, and the target."
        )
    if target.element.is_float:
        raise InvalidProblemError(f"{name}: target: got {target.element}, want class indices (i64 or i32).")
    if linear_weight.rank != 2 or linear_weight.shape[1] != input.shape[1]:
        got, want = shape_text(linear_weight.shape), f"(classes, {input.shape[1]})"
        raise InvalidProblemError(f"{name}: linear_weight: got shape {got}, want {want}, as of linear.")
    return {
        "input_shape": input.shape,
        "classes": linear_weight.shape[0],
        "element": input.element,
        "target_element": target.element if target.element is Element.I32 else Element.I64,
        "reduction": reduction,
        "ignore_index": ignore_index,
        "bias": linear_bias is not None,
        "weighted": weight is not None,
    }


def _planned(
    call: Call,
    desc: _Linear,
    wanted: str,
    layer: tuple[Arg | None, ...],
    label_smoothing: Arg | float,
    **more: Any,
) -> Recipe:
    """One plan on the CPU, and several elsewhere."""
    if call.device == "cpu":
        names = ("input", "linear_weight", "target", "linear_bias", "weight")
        given: dict[str, Any] = {n: a for n, a in zip(names, layer, strict=True) if a is not None}
        given |= {"label_smoothing": label_smoothing, **more}
        return of_elements(call, desc, **given)
    shared = LinearCrossEntropyDescriptor(**{n: getattr(desc, n) for n in _Linear.__annotations__})
    return call.steps(chunked, *layer, label_smoothing, *more.values(), desc=shared, wanted=wanted)


_TENSORS = "input linear_weight target linear_bias weight"


@function(tensors=_TENSORS, scalars="label_smoothing")
def linear_cross_entropy(
    call: Call,
    input: Arg,
    linear_weight: Arg,
    target: Arg,
    *,
    linear_bias: Arg | None = None,
    weight: Arg | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: Arg | float = 0.0,
    options: Any = None,
) -> Recipe:
    """cross_entropy(linear(input, linear_weight, linear_bias), target) without keeping the logits, as torch's.

    Args:
        input: (rows, features), or (features,).
        linear_weight: (classes, features), or (classes, ..., features) for several losses of a row.
        target: (rows, ...), class indices, or (rows, classes, ...), probabilities in the input's element.
        linear_bias: (classes, ...).
        weight: (classes,), what each class weighs.
        reduction: "none", "mean" or "sum".
        ignore_index: Target that counts for nothing; -100 for None.
        label_smoothing: As cross_entropy's.
        options: How torch splits the rows; not needed here.

    Returns:
        The loss.
    """
    ignored = -100 if ignore_index is None else ignore_index
    if is_unfused(input, linear_weight, target):
        given = (input, linear_weight, target, linear_bias, weight, label_smoothing)
        return call.steps(_unfused.miss.rule, *given, reduction=reduction, ignore_index=ignored)
    fields = _fields(input, linear_weight, target, linear_bias, weight, reduction, ignored)
    layer = (input, linear_weight, target, linear_bias, weight)
    return _planned(call, LinearCrossEntropyDescriptor(**fields, save=False), "loss", layer, label_smoothing)


@function(tensors=_TENSORS, scalars="label_smoothing")
def linear_cross_entropy_forward(
    call: Call,
    input: Arg,
    linear_weight: Arg,
    target: Arg,
    *,
    linear_bias: Arg | None = None,
    weight: Arg | None = None,
    reduction: str = "mean",
    ignore_index: int = -100,
    label_smoothing: Arg | float = 0.0,
) -> Recipe:
    """linear_cross_entropy with what its gradient needs: (loss, lse)."""
    fields = _fields(input, linear_weight, target, linear_bias, weight, reduction, ignore_index)
    layer = (input, linear_weight, target, linear_bias, weight)
    return _planned(call, LinearCrossEntropyDescriptor(**fields), "loss lse", layer, label_smoothing)


@made_of("linear_cross_entropy")
@function(tensors=_TENSORS, scalars="label_smoothing dloss")
def linear_cross_entropy_fused(
    call: Call,
    input: Arg,
    linear_weight: Arg,
    target: Arg,
    *,
    linear_bias: Arg | None = None,
    weight: Arg | None = None,
    reduction: str = "mean",
    ignore_index: int = -100,
    label_smoothing: Arg | float = 0.0,
    dloss: Arg | float = 1.0,
) -> Recipe:
    """(loss, dinput, dlinear_weight) and with a bias dlinear_bias: the gradients, for `dloss`, in the pass that finds the loss."""
    fields = _fields(input, linear_weight, target, linear_bias, weight, reduction, ignore_index)
    desc = LinearCrossEntropyDescriptor(**fields, save=False, gradients_wanted=True)
    layer = (input, linear_weight, target, linear_bias, weight)
    return _planned(call, desc, "loss gradients", layer, label_smoothing, dloss=dloss)


@function(tensors="dloss input linear_weight target lse linear_bias weight", scalars="label_smoothing")
def linear_cross_entropy_backward(
    call: Call,
    dloss: Arg,
    input: Arg,
    linear_weight: Arg,
    target: Arg,
    lse: Arg,
    *,
    linear_bias: Arg | None = None,
    weight: Arg | None = None,
    reduction: str = "mean",
    ignore_index: int = -100,
    label_smoothing: Arg | float = 0.0,
) -> Recipe:
    """Gradients (dinput, dlinear_weight) and, with a bias, dlinear_bias, from linear_cross_entropy_forward's lse."""
    fields = _fields(input, linear_weight, target, linear_bias, weight, reduction, ignore_index)
    layer = (input, linear_weight, target, linear_bias, weight)
    desc = LinearCrossEntropyBackwardDescriptor(**fields)
    return _planned(call, desc, "gradients", layer, label_smoothing, dloss=dloss, lse=lse)


linear_cross_entropy.without_gradient("target weight")


@linear_cross_entropy.vjp
def _linear_cross_entropy_vjp(
    input: Any, linear_weight: Any, target: Any, *, ignore_index: int | None = None, options: Any = None, **more: Any
) -> tuple[Any, Any]:
    known = {"ignore_index": -100 if ignore_index is None else ignore_index, **more}
    if is_unfused(*map(described, (input, linear_weight, target))):
        return unfused_vjp(input, linear_weight, target, known)
    if known.get("reduction", "mean") != "none" and described(input).element is not Element.F16:
        # A product less than making the logits again. In f16 a gradient may need a large dloss in order not to vanish.
        loss, *gradients = linear_cross_entropy_fused(input, linear_weight, target, **known)
        return loss, lambda dloss: tuple(F.mul(g, dloss) for g in gradients)
    loss, lse = linear_cross_entropy_forward(input, linear_weight, target, **known)
    return loss, lambda dloss: linear_cross_entropy_backward(dloss, input, linear_weight, target, lse, **known)
