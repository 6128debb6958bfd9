"""A linear layer and its cross-entropy, without its logits. Kernels in csrc/ops/loss/cpu_linear.cpp."""

from __future__ import annotations

from typing import Any

from baracuda.dims import Shape, Size, shape_text
from baracuda.elements import Element
from baracuda.errors import InvalidProblemError
from baracuda.op import Arg, Call, Op, Recipe, function
from baracuda.ops.loss import Reduction
from baracuda.spec import Descriptor, Param, Signature, descriptor, frame, output, scalar, tensor


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

    def validate(self) -> None:
        if len(self.input_shape) != 2:
            raise self.wrong("input_shape", self.input_shape, "(rows, features)")

    def aux_element(self) -> Element:
        return self.target_element

    def attributes(self) -> tuple[int, ...]:
        return (list(Reduction).index(self.reduction), self.ignore_index)

    def layer(self) -> tuple[Param, ...]:
        """input, target, weight and bias."""
        rows, features = self.input_shape
        return (
            tensor("input", self.input_shape, self.element),
            tensor("target", (rows,), self.target_element),
            tensor("weight", (self.classes, features), self.element),
            tensor("bias", (self.classes,), self.element, present=self.bias),
        )

    def gradients(self, input: bool, weight: bool, bias: bool) -> tuple[Param, ...]:
        """dinput, dweight and dbias."""
        return (
            output("dinput", self.input_shape, self.element, present=input),
            output("dweight", (self.classes, self.input_shape[1]), self.element, present=weight),
            output("dbias", (self.classes,), self.element, present=bias),
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
    """The cross_entropy of logits = input weight^T + bias, which are made for some rows at a time and never kept.

    Targets, ignore_index, the scalar `label_smoothing` and reductions as in CrossEntropyDescriptor. With
    `gradients_wanted` the same pass gives those of input, weight and bias, for a gradient of the loss that is the scalar
    `dloss` (1 unless given), with a product less than the backward plan takes. The workspace holds logits in f32 (f64 for
    f64), 8 M of them or those of 64 rows, and in f32 the sums of the gradient of halves' weights.

    Args:
        input_shape: (rows, features).
        classes: Rows of the weight, which is (classes, features).
        element: f16, bf16, f32 or f64, of all tensors but target and lse, which is f32, f64 for f64.
        target_element: i64 or i32, class indices.
        reduction: "none", "mean" or "sum".
        ignore_index: Target that is left out.
        bias: Whether there is a bias.
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

    dlogits = dloss (exp(logits - lse) - onehot(target)), divided by the counted targets for a mean, 0 where ignored;
    dinput = dlogits weight, dweight = dlogits^T input, dbias = sum of dlogits.

    Args:
        input_shape: (rows, features).
        classes: Rows of the weight.
        element: f16, bf16, f32 or f64.
        target_element: i64 or i32.
        reduction: "none", "mean" or "sum".
        ignore_index: Target that is left out.
        bias: Whether there is a bias, whose gradient is then an output.
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
        "loss = cross_entropy(input weight^T + bias)",
    ),
)


def _fields(
    input: Arg, weight: Arg, target: Arg, bias: Arg | None, reduction: str, ignore_index: int
) -> dict[str, Any]:
    """Fields of both descriptors."""
    name = "linear_cross_entropy"
    if input.rank != 2:
        raise InvalidProblemError(
            f"{name}: input: got shape {shape_text(input.shape)}, want (rows, features). Reshape it, and the target."
        )
    if target.element.is_float:
        raise InvalidProblemError(f"{name}: target: got {target.element}, want class indices (i64 or i32).")
    if weight.rank != 2 or weight.shape[1] != input.shape[1]:
        raise InvalidProblemError(
            f"{name}: weight: got shape {shape_text(weight.shape)}, want (classes, {input.shape[1]}), as of linear."
        )
    return {
        "input_shape": input.shape,
        "classes": weight.shape[0],
        "element": input.element,
        "target_element": target.element,
        "reduction": reduction,
        "ignore_index": ignore_index,
        "bias": bias is not None,
    }


_TENSORS = "input weight target bias"


@function(tensors=_TENSORS, scalars="label_smoothing")
def linear_cross_entropy(
    call: Call,
    input: Arg,
    weight: Arg,
    target: Arg,
    bias: Arg | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: Arg | float = 0.0,
) -> Recipe:
    """cross_entropy(linear(input, weight, bias), target) without keeping the logits.

    Args:
        input: (rows, features).
        weight: (classes, features).
        target: (rows,), class indices, i64 or i32.
        bias: (classes,).
        ignore_index: Target that counts for nothing.
        reduction: "none", "mean" or "sum".
        label_smoothing: As cross_entropy's.

    Returns:
        The loss.
    """
    desc = LinearCrossEntropyDescriptor(**_fields(input, weight, target, bias, reduction, ignore_index), save=False)
    return call(desc, input=input, target=target, weight=weight, bias=bias, label_smoothing=label_smoothing)


@function(tensors=_TENSORS, scalars="label_smoothing")
def linear_cross_entropy_forward(
    call: Call,
    input: Arg,
    weight: Arg,
    target: Arg,
    bias: Arg | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: Arg | float = 0.0,
) -> Recipe:
    """linear_cross_entropy with what its gradient needs: (loss, lse)."""
    desc = LinearCrossEntropyDescriptor(**_fields(input, weight, target, bias, reduction, ignore_index))
    return call(desc, input=input, target=target, weight=weight, bias=bias, label_smoothing=label_smoothing)


@function(tensors=_TENSORS, scalars="label_smoothing dloss")
def linear_cross_entropy_fused(
    call: Call,
    input: Arg,
    weight: Arg,
    target: Arg,
    bias: Arg | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: Arg | float = 0.0,
    dloss: Arg | float = 1.0,
) -> Recipe:
    """(loss, dinput, dweight) and with a bias dbias: the gradients, for `dloss`, in the pass that finds the loss."""
    fields = _fields(input, weight, target, bias, reduction, ignore_index)
    desc = LinearCrossEntropyDescriptor(**fields, save=False, gradients_wanted=True)
    given: dict[str, Any] = {"label_smoothing": label_smoothing, "dloss": dloss}
    return call(desc, input=input, target=target, weight=weight, bias=bias, **given)


@function(tensors="dloss input weight target lse bias", scalars="label_smoothing")
def linear_cross_entropy_backward(
    call: Call,
    dloss: Arg,
    input: Arg,
    weight: Arg,
    target: Arg,
    lse: Arg,
    bias: Arg | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: Arg | float = 0.0,
) -> Recipe:
    """Gradients (dinput, dweight), with a bias (dinput, dweight, dbias), from the lse of linear_cross_entropy_forward."""
    desc = LinearCrossEntropyBackwardDescriptor(**_fields(input, weight, target, bias, reduction, ignore_index))
    tensors: dict[str, Any] = {
        "dloss": dloss,
        "input": input,
        "target": target,
        "weight": weight,
        "bias": bias,
        "lse": lse,
    }
    return call(desc, label_smoothing=label_smoothing, **tensors)


@linear_cross_entropy.vjp
def _linear_cross_entropy_vjp(
    input: Any,
    weight: Any,
    target: Any,
    bias: Any = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> tuple[Any, Any]:
    options = (bias, ignore_index, reduction, label_smoothing)
    loss, lse = linear_cross_entropy_forward(input, weight, target, *options)
    return loss, lambda dloss: linear_cross_entropy_backward(dloss, input, weight, target, lse, *options)
