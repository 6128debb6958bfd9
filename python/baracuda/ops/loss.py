"""Losses: cross_entropy with class indices. Kernels in csrc/ops/loss, reference in loss_ref.py."""

from __future__ import annotations

from enum import Enum
from typing import Any

from baracuda.dims import Shape
from baracuda.elements import Element
from baracuda.errors import InvalidProblemError
from baracuda.op import Arg, Call, NotDifferentiable, Op, Recipe, composite, function
from baracuda.spec import Descriptor, Signature, descriptor, output, scalar, tensor


class Reduction(Enum):
    """What becomes of the targets' losses: kept, averaged over the counted targets, or added."""

    NONE = "none"
    MEAN = "mean"
    SUM = "sum"


_ENUMS = {"reduction": Reduction}


class _CrossEntropy(Descriptor):
    """Fields and checks that forward, backward and fused share."""

    __slots__ = ()
    logits_shape: Shape
    element: Element
    target_element: Element
    reduction: Reduction
    ignore_index: int

    def validate(self) -> None:
        if not self.logits_shape:
            raise self.wrong("logits_shape", self.logits_shape, "(classes,), (N, classes) or (N, classes, ...)")
        object.__setattr__(self, "ignore_index", int(self.ignore_index))

    def aux_element(self) -> Element:
        return self.target_element

    def target_shape(self) -> Shape:
        """Shape of the targets: the logits' without the class dimension."""
        return (*self.logits_shape[:1], *self.logits_shape[2:]) if len(self.logits_shape) > 1 else ()

    def loss_shape(self) -> Shape:
        """Shape of the loss."""
        return self.target_shape() if self.reduction is Reduction.NONE else ()

    def attributes(self) -> tuple[int, ...]:
        return (list(Reduction).index(self.reduction), self.ignore_index)


@descriptor(family="loss", op="cross_entropy", enums=_ENUMS)
class CrossEntropyDescriptor(_CrossEntropy):
    """loss = lse - logits[target], lse = log(sum(exp(logits))) over the classes; reduced over the targets.

    Targets equal to `ignore_index` count for nothing; a mean over no targets is NaN. Every target is checked before the
    first write: one outside the classes is an IndexOutOfRangeError. With the scalar `label_smoothing` s (0 unless
    given) the loss is (1 - s) of this plus s times lse - mean(logits).

    Args:
        logits_shape: (classes,), (N, classes) or (N, classes, ...).
        element: f16, bf16, f32 or f64, of logits and loss; lse is f32, f64 for f64.
        target_element: i64 or i32.
        reduction: "none", "mean" or "sum".
        ignore_index: Target that is left out.
        save: Whether lse is an output.
    """

    logits_shape: Shape
    element: Element = Element.F32
    target_element: Element = Element.I64
    reduction: Reduction = Reduction.MEAN
    ignore_index: int = -100
    save: bool = True

    def signature(self) -> Signature:
        return Signature(
            tensor("logits", self.logits_shape, self.element),
            tensor("target", self.target_shape(), self.target_element),
            output("loss", self.loss_shape(), self.element),
            output("lse", self.target_shape(), self.element.statistic, present=self.save),
            scalar("label_smoothing", default=0.0),
        )

    def backward(self) -> CrossEntropyBackwardDescriptor:
        """The gradient's descriptor."""
        return CrossEntropyBackwardDescriptor(
            self.logits_shape, self.element, self.target_element, self.reduction, self.ignore_index
        )


@descriptor(family="loss", op="cross_entropy", direction="backward", enums=_ENUMS)
class CrossEntropyBackwardDescriptor(_CrossEntropy):
    """dlogits = dloss (exp(logits - lse) - onehot(target)), divided by the counted targets for a mean; 0 where ignored.

    dlogits may be the same view as logits.

    Args:
        logits_shape: As in CrossEntropyDescriptor.
        element: f16, bf16, f32 or f64.
        target_element: i64 or i32.
        reduction: "none", "mean" or "sum".
        ignore_index: Target that is left out.
    """

    logits_shape: Shape
    element: Element = Element.F32
    target_element: Element = Element.I64
    reduction: Reduction = Reduction.MEAN
    ignore_index: int = -100

    def signature(self) -> Signature:
        return Signature(
            tensor("dloss", self.loss_shape(), self.element),
            tensor("logits", self.logits_shape, self.element),
            tensor("target", self.target_shape(), self.target_element),
            tensor("lse", self.target_shape(), self.element.statistic),
            output("dlogits", self.logits_shape, self.element),
            scalar("label_smoothing", default=0.0),
        )


@descriptor(family="loss", op="cross_entropy_fused", enums=_ENUMS)
class CrossEntropyFusedDescriptor(_CrossEntropy):
    """The loss of CrossEntropyDescriptor and, with one exp per logit, its gradient for dloss = 1.

    dlogits may be the same view as logits.

    Args:
        logits_shape: As in CrossEntropyDescriptor.
        element: f16, bf16, f32 or f64.
        target_element: i64 or i32.
        reduction: "none", "mean" or "sum".
        ignore_index: Target that is left out.
        save: Whether lse is an output.
    """

    logits_shape: Shape
    element: Element = Element.F32
    target_element: Element = Element.I64
    reduction: Reduction = Reduction.MEAN
    ignore_index: int = -100
    save: bool = False

    def signature(self) -> Signature:
        return Signature(
            tensor("logits", self.logits_shape, self.element),
            tensor("target", self.target_shape(), self.target_element),
            output("loss", self.loss_shape(), self.element),
            output("lse", self.target_shape(), self.element.statistic, present=self.save),
            output("dlogits", self.logits_shape, self.element),
            scalar("label_smoothing", default=0.0),
        )


OPS = (
    Op(
        "cross_entropy",
        CrossEntropyDescriptor,
        CrossEntropyBackwardDescriptor,
        "loss = log(sum(exp(logits))) - logits[target]",
    ),
    Op(
        "cross_entropy_fused",
        CrossEntropyFusedDescriptor,
        NotDifferentiable("it returns its gradient"),
        "loss of cross_entropy with its gradient, in one pass",
    ),
)


def _check(name: str, target: Arg, weight: Any, size_average: Any, reduce: Any) -> None:
    if weight is not None:
        raise InvalidProblemError(f"{name}: weight: got class weights, want None. There is no kernel for them yet.")
    for field, value in (("size_average", size_average), ("reduce", reduce)):
        if value is not None:
            raise InvalidProblemError(f"{name}: {field}: got {value!r}, want None. Use reduction= instead.")
    if target.element.is_float:
        raise InvalidProblemError(f"{name}: target: got element {target.element}, want class indices (i64 or i32).")


@function(tensors="input target weight", scalars="label_smoothing")
def cross_entropy(
    call: Call,
    input: Arg,
    target: Arg,
    weight: Arg | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: Arg | float = 0.0,
) -> Recipe:
    """Cross-entropy of logits with class indices, as torch.nn.functional.cross_entropy."""
    _check("cross_entropy", target, weight, size_average, reduce)
    desc = CrossEntropyDescriptor(
        input.shape,
        input.element,
        target.element,
        reduction,  # type: ignore[arg-type]
        ignore_index,
        False,
    )
    return call(desc, logits=input, target=target, label_smoothing=label_smoothing)


@function(tensors="input target", scalars="label_smoothing")
def cross_entropy_forward(
    call: Call,
    input: Arg,
    target: Arg,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: Arg | float = 0.0,
) -> Recipe:
    """cross_entropy with what its gradient needs: (loss, lse)."""
    _check("cross_entropy_forward", target, None, None, None)
    desc = CrossEntropyDescriptor(input.shape, input.element, target.element, reduction, ignore_index)  # type: ignore[arg-type]
    return call(desc, logits=input, target=target, label_smoothing=label_smoothing)


@function(tensors="dloss input target lse", scalars="label_smoothing")
def _cross_entropy_backward(
    call: Call,
    dloss: Arg,
    input: Arg,
    target: Arg,
    lse: Arg,
    ignore_index: int,
    reduction: str,
    label_smoothing: Arg | float,
) -> Recipe:
    """Gradient with respect to the logits."""
    desc = CrossEntropyBackwardDescriptor(input.shape, input.element, target.element, reduction, ignore_index)  # type: ignore[arg-type]
    return call(desc, dloss=dloss, logits=input, target=target, lse=lse, label_smoothing=label_smoothing)


@composite
def cross_entropy_backward(
    dloss: Any,
    input: Any,
    target: Any,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
    *,
    lse: Any = None,
) -> Any:
    """Gradient of cross_entropy with respect to `input`; `lse` is recomputed when it is not given."""
    if lse is None:
        _, lse = cross_entropy_forward(input, target, ignore_index, reduction, label_smoothing)
    return _cross_entropy_backward(dloss, input, target, lse, ignore_index, reduction, label_smoothing)


@function(tensors="input target", scalars="label_smoothing")
def cross_entropy_fused(
    call: Call,
    input: Arg,
    target: Arg,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: Arg | float = 0.0,
) -> Recipe:
    """(loss, dinput): cross_entropy with its gradient for dloss = 1, in one pass over the logits."""
    _check("cross_entropy_fused", target, None, None, None)
    desc = CrossEntropyFusedDescriptor(input.shape, input.element, target.element, reduction, ignore_index)  # type: ignore[arg-type]
    return call(desc, logits=input, target=target, label_smoothing=label_smoothing)


@cross_entropy.vjp
def _cross_entropy_vjp(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> tuple[Any, Any]:
    if weight is not None or size_average is not None or reduce is not None:
        cross_entropy(input, target, weight, size_average, ignore_index, reduce)  # raises, saying why
    loss, lse = cross_entropy_forward(input, target, ignore_index, reduction, label_smoothing)

    def pull(dloss: Any) -> Any:
        return _cross_entropy_backward(dloss, input, target, lse, ignore_index, reduction, label_smoothing)

    return loss, pull
