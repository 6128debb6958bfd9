"""Losses of classes: cross_entropy and nll_loss. Kernels in csrc/ops/loss, reference in loss_ref.py."""

from __future__ import annotations

from enum import Enum
from typing import Any

from baracuda.call.compose import Composer, Value, with_indices
from baracuda.call.op import Arg, Call, NotDifferentiable, Op, Recipe, function
from baracuda.describe.dims import Shape, Size
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.spec import Descriptor, Param, Signature, descriptor, output, scalar, tensor
from baracuda.ops.loss.cross_entropy_capped import _capped
from baracuda.ops.loss.pointwise_loss import check_legacy


class Reduction(Enum):
    """What becomes of the targets' losses: kept, averaged over the counted targets, or added."""

    NONE = "none"
    MEAN = "mean"
    SUM = "sum"


_ENUMS = {"reduction": Reduction}


class _Classes(Descriptor):
    """Fields and checks that the losses of classes share."""

    __slots__ = ()
    element: Element
    target_element: Element
    reduction: Reduction
    ignore_index: int
    out_element: Element | None

    def scores(self) -> tuple[str, Shape]:
        """The field that holds the shape of what has a number for every class, and that shape."""
        name = "logits_shape" if hasattr(self, "logits_shape") else "input_shape"
        return name, getattr(self, name)

    def validate(self) -> None:
        name, shape = self.scores()
        if not shape:
            raise self.wrong(name, shape, "(classes,), (N, classes) or (N, classes, ...)")
        if self.target_element.is_float and self.op != "cross_entropy":
            raise self.wrong("target_element", str(self.target_element), "class indices: i64 or i32")
        if self.target_element.is_float and self.ignore_index >= 0:
            raise self.wrong("ignore_index", self.ignore_index, "a negative one: probabilities are never ignored")
        wide = self.element.statistic
        if self.out_element not in (None, self.element, wide):
            raise self.wrong(
                "out_element", str(self.out_element), f"{self.element}{f' or {wide}' * self.element.is_half}"
            )

    def aux_element(self) -> Element:
        return self.target_element

    def row_shape(self) -> Shape:
        """Shape of one loss for each row: the logits' without the class dimension."""
        _, shape = self.scores()
        return (*shape[:1], *shape[2:]) if len(shape) > 1 else ()

    def classes(self) -> Size:
        """How many classes there are."""
        _, shape = self.scores()
        return shape[1] if len(shape) > 1 else shape[0]

    def target_shape(self) -> Shape:
        """Shape of the targets: one class for each row, or a number for every class."""
        return self.scores()[1] if self.target_element.is_float else self.row_shape()

    def loss_shape(self) -> Shape:
        """Shape of the loss."""
        return self.row_shape() if self.reduction is Reduction.NONE else ()

    def loss_element(self) -> Element:
        """Element of the loss, and of its gradient."""
        return self.element if self.out_element is None else self.out_element

    def weight(self) -> Param:
        """What each class weighs."""
        present = getattr(self, "weighted", False)
        return tensor("weight", (self.classes(),), self.element, present=present)

    def attributes(self) -> dict[str, int | float]:
        return {"reduction": list(Reduction).index(self.reduction), "ignore_index": self.ignore_index}


@descriptor(family="loss", op="cross_entropy", enums=_ENUMS)
class CrossEntropyDescriptor(_Classes):
    """loss = lse - logits[target], lse = log(sum(exp(logits))) over the classes; reduced over the targets.

    Targets equal to `ignore_index` count for nothing; a mean over no targets is NaN. Every target is checked before the
    first write: one outside the classes is an IndexOutOfRangeError. With weights w of the classes a loss counts
    w[target] times, in the divisor of a mean too. With the scalar `label_smoothing` 0 <= s <= 1 (0 unless given) the
    loss is (1 - s) of this plus s times mean(w (lse - logits)).

    With a float `target_element` targets are probabilities q of all classes: loss = sum(w q (lse - logits)), with
    smoothing (1 - s) q + s / classes in the place of q; a mean divides by the number of rows.

    Args:
        logits_shape: (classes,), (N, classes) or (N, classes, ...).
        element: f16, bf16, f32 or f64, of logits, weights and loss; lse is f32, f64 for f64.
        target_element: i64 or i32; `element` for probabilities, of the logits' shape.
        reduction: "none", "mean" or "sum".
        ignore_index: Target that is left out; negative for probabilities.
        save: Whether lse is an output.
        weighted: Whether classes have weights.
        out_element: Of the loss: f32 for the loss of f16 and bf16 before it is rounded to them; `element` by default.
    """

    logits_shape: Shape
    element: Element = Element.F32
    target_element: Element = Element.I64
    reduction: Reduction = Reduction.MEAN
    ignore_index: int = -100
    save: bool = True
    weighted: bool = False
    out_element: Element | None = None

    def signature(self) -> Signature:
        return Signature(
            tensor("logits", self.logits_shape, self.element),
            tensor("target", self.target_shape(), self.target_element),
            self.weight(),
            output("loss", self.loss_shape(), self.loss_element()),
            output("lse", self.row_shape(), self.element.statistic, present=self.save),
            scalar("label_smoothing", default=0.0),
        )


@descriptor(gradient_of=CrossEntropyDescriptor)
class CrossEntropyBackwardDescriptor(_Classes):
    """dlogits = dloss (exp(logits - lse) - onehot(target)), divided by the counted targets for a mean; 0 where ignored.

    Weights of classes, smoothing and probabilities as in CrossEntropyDescriptor; these targets have no gradient.
    dlogits may be the same view as logits where targets are indices.

    Args:
        logits_shape: As in CrossEntropyDescriptor.
        element: f16, bf16, f32 or f64.
        target_element: i64 or i32; `element` for probabilities.
        reduction: "none", "mean" or "sum".
        ignore_index: Target that is left out; negative for probabilities.
        weighted: Whether classes have weights.
        out_element: Of dloss, as in CrossEntropyDescriptor.
    """

    logits_shape: Shape
    element: Element = Element.F32
    target_element: Element = Element.I64
    reduction: Reduction = Reduction.MEAN
    ignore_index: int = -100
    weighted: bool = False
    out_element: Element | None = None

    def signature(self) -> Signature:
        return Signature(
            tensor("dloss", self.loss_shape(), self.loss_element()),
            tensor("logits", self.logits_shape, self.element),
            tensor("target", self.target_shape(), self.target_element),
            self.weight(),
            tensor("lse", self.row_shape(), self.element.statistic),
            output("dlogits", self.logits_shape, self.element),
            scalar("label_smoothing", default=0.0),
        )


@descriptor(family="loss", op="cross_entropy_fused", enums=_ENUMS)
class CrossEntropyFusedDescriptor(_Classes):
    """The loss of CrossEntropyDescriptor and, with one exp per logit, its gradient for dloss = 1.

    dlogits may be the same view as logits.

    Args:
        logits_shape: As in CrossEntropyDescriptor.
        element: f16, bf16, f32 or f64.
        target_element: i64 or i32.
        reduction: "none", "mean" or "sum".
        ignore_index: Target that is left out.
        save: Whether lse is an output.
        out_element: Of the loss, as in CrossEntropyDescriptor.
    """

    logits_shape: Shape
    element: Element = Element.F32
    target_element: Element = Element.I64
    reduction: Reduction = Reduction.MEAN
    ignore_index: int = -100
    save: bool = False
    out_element: Element | None = None

    def signature(self) -> Signature:
        return Signature(
            tensor("logits", self.logits_shape, self.element),
            tensor("target", self.target_shape(), self.target_element),
            output("loss", self.loss_shape(), self.loss_element()),
            output("lse", self.row_shape(), self.element.statistic, present=self.save),
            output("dlogits", self.logits_shape, self.element),
            scalar("label_smoothing", default=0.0),
        )


@descriptor(family="loss", op="nll_loss", enums=_ENUMS)
class NllLossDescriptor(_Classes):
    """loss = -weight[target] input[target], the input being logarithms of probabilities; reduced over the targets.

    Targets equal to `ignore_index` count for nothing; a mean divides by what the counted targets weigh and over none is
    NaN. Every target is checked before the first write: one outside the classes is an IndexOutOfRangeError.

    Args:
        input_shape: (classes,), (N, classes) or (N, classes, ...).
        element: f16, bf16, f32 or f64.
        target_element: i64 or i32.
        reduction: "none", "mean" or "sum".
        ignore_index: Target that is left out.
        weighted: Whether classes have weights.
        out_element: Of the loss, as in CrossEntropyDescriptor.
    """

    input_shape: Shape
    element: Element = Element.F32
    target_element: Element = Element.I64
    reduction: Reduction = Reduction.MEAN
    ignore_index: int = -100
    weighted: bool = False
    out_element: Element | None = None

    def signature(self) -> Signature:
        return Signature(
            tensor("input", self.input_shape, self.element),
            tensor("target", self.row_shape(), self.target_element),
            self.weight(),
            output("loss", self.loss_shape(), self.loss_element()),
        )


@descriptor(gradient_of=NllLossDescriptor)
class NllLossBackwardDescriptor(_Classes):
    """dinput[target] = -dloss weight[target], divided by what the counted targets weigh for a mean; 0 elsewhere.

    Args:
        input_shape: As in NllLossDescriptor.
        element: f16, bf16, f32 or f64.
        target_element: i64 or i32.
        reduction: "none", "mean" or "sum".
        ignore_index: Target that is left out.
        weighted: Whether classes have weights.
        out_element: Of dloss, as in CrossEntropyDescriptor.
    """

    input_shape: Shape
    element: Element = Element.F32
    target_element: Element = Element.I64
    reduction: Reduction = Reduction.MEAN
    ignore_index: int = -100
    weighted: bool = False
    out_element: Element | None = None

    def signature(self) -> Signature:
        return Signature(
            tensor("dloss", self.loss_shape(), self.loss_element()),
            tensor("input", self.input_shape, self.element),
            tensor("target", self.row_shape(), self.target_element),
            self.weight(),
            output("dinput", self.input_shape, self.element),
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
    Op("nll_loss", NllLossDescriptor, NllLossBackwardDescriptor, "loss = -input[target]"),
)


def want_indices(name: str, target: Arg) -> None:
    """Refuses targets that are no class indices."""
    if target.element.is_float:
        raise InvalidProblemError(f"{name}: target: got element {target.element}, want class indices (i64 or i32).")


def of_scores(name: str, input: Arg, weight: Arg | None) -> bool:
    """Whether there are weights, which must be of the input's element."""
    if weight is not None and weight.element is not input.element:
        raise InvalidProblemError(f"{name}: weight: got element {weight.element}, want the input's, {input.element}.")
    return weight is not None


def loss_fields(scores: Arg, target: Arg, reduction: str, ignore_index: int) -> dict[str, Any]:
    """The fields that all descriptors have."""
    if target.element.is_float and target.shape != scores.shape:
        places = scores.shape[:1] * (len(scores.shape) > 1) + scores.shape[2:]
        raise InvalidProblemError(
            f"target: got {target.element} of shape {target.shape}, want class indices (i64 or i32) of shape {places}, or "
            f"probabilities of shape {scores.shape}. Cast indices with astype('int64')."
        )
    elements = {"element": scores.element, "target_element": target.element}
    return {**elements, "reduction": reduction, "ignore_index": ignore_index}


def of_gradient(dloss: Arg, input: Arg) -> dict[str, Any]:
    """A gradient comes in the element that the loss was asked for in."""
    return {} if dloss.element is input.element else {"out_element": dloss.element}


def given_only(**arguments: Any) -> dict[str, Any]:
    """The arguments that there are."""
    return {n: a for n, a in arguments.items() if a is not None}


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
    *,
    out_element: Any = None,
    softcap: float | None = None,
    z_loss: float = 0.0,
) -> Recipe:
    """Cross-entropy of logits with class indices or probabilities, as torch.nn.functional.cross_entropy.

    `out_element="f32"` gives the loss of f16 and bf16 logits before it is rounded to their element. With `softcap`, logits
    are softcap * tanh(logits / softcap) first; with `z_loss`, z_loss * logsumexp(logits)^2 is added to the loss of each
    target that counts. Either takes some more kernels.
    """
    check_legacy("cross_entropy", size_average, reduce)
    more: dict[str, Any] = {"ignore_index": ignore_index, "reduction": reduction, "out_element": out_element}
    if softcap is not None or z_loss:
        caps = {"softcap": softcap, "z_loss": z_loss}
        return call.steps(_capped.miss.rule, input, target, weight, label_smoothing, **more, **caps)
    more["label_smoothing"] = label_smoothing
    if made := with_indices(call, cross_entropy, "target", input=input, target=target, weight=weight, **more):
        return made
    return _cross_entropy(
        call, input, target, weight, ignore_index, reduction, label_smoothing, out_element, save=False
    )


def _cross_entropy(
    call: Call, input: Arg, target: Arg, weight: Arg | None, ignore_index: int, reduction: str, label_smoothing: Arg | float,
    out_element: Any, save: bool,
) -> Recipe:  # fmt: skip
    weighted = of_scores("cross_entropy", input, weight)
    fields = loss_fields(input, target, reduction, ignore_index)
    desc = CrossEntropyDescriptor(input.shape, **fields, save=save, weighted=weighted, out_element=out_element)
    return call(desc, **given_only(logits=input, target=target, weight=weight, label_smoothing=label_smoothing))


@function(tensors="input target weight", scalars="label_smoothing")
def cross_entropy_forward(
    call: Call,
    input: Arg,
    target: Arg,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: Arg | float = 0.0,
    weight: Arg | None = None,
    *,
    out_element: Any = None,
) -> Recipe:
    """cross_entropy with what its gradient needs: (loss, lse)."""
    more: dict[str, Any] = {"ignore_index": ignore_index, "reduction": reduction, "label_smoothing": label_smoothing}
    more["out_element"] = out_element
    if made := with_indices(call, cross_entropy_forward, "target", input=input, target=target, weight=weight, **more):
        return made
    return _cross_entropy(call, input, target, weight, ignore_index, reduction, label_smoothing, out_element, save=True)


@function(tensors="dloss input target weight lse", scalars="label_smoothing")
def cross_entropy_backward(
    call: Call,
    dloss: Arg,
    input: Arg,
    target: Arg,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: Arg | float = 0.0,
    weight: Arg | None = None,
    *,
    lse: Arg | None = None,
) -> Recipe:
    """Gradient of cross_entropy with respect to `input`; `lse` is recomputed when it is not given."""
    known = {"dloss": dloss, "input": input, "target": target, "weight": weight, "lse": lse}
    more = {"ignore_index": ignore_index, "reduction": reduction, "label_smoothing": label_smoothing}
    if made := with_indices(call, cross_entropy_backward, "target", **known, **more):
        return made

    def steps(c: Composer, dloss: Value, input: Value, target: Value, smoothing: Any, weight: Value | None) -> Any:
        options = (ignore_index, reduction, smoothing, weight)
        _, lse = c.of(cross_entropy_forward, input, target, *options)
        return c.of(cross_entropy_backward, dloss, input, target, *options, lse=lse)

    if lse is None:
        return call.steps(steps, dloss, input, target, label_smoothing, weight)
    weighted = of_scores("cross_entropy_backward", input, weight)
    fields = loss_fields(input, target, reduction, ignore_index) | of_gradient(dloss, input)
    desc = CrossEntropyBackwardDescriptor(input.shape, **fields, weighted=weighted)
    given = given_only(
        dloss=dloss, logits=input, target=target, weight=weight, lse=lse, label_smoothing=label_smoothing
    )
    return call(desc, **given)


@function(tensors="input target", scalars="label_smoothing")
def cross_entropy_fused(
    call: Call,
    input: Arg,
    target: Arg,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: Arg | float = 0.0,
    *,
    out_element: Any = None,
) -> Recipe:
    """(loss, dinput): cross_entropy with its gradient for dloss = 1, in one pass over the logits."""
    want_indices("cross_entropy_fused", target)
    fields = loss_fields(input, target, reduction, ignore_index)
    desc = CrossEntropyFusedDescriptor(input.shape, **fields, out_element=out_element)
    return call(desc, logits=input, target=target, label_smoothing=label_smoothing)


cross_entropy.without_gradient("target weight")


@cross_entropy.vjp
def _cross_entropy_vjp(
    input: Any, target: Any, weight: Any = None, size_average: Any = None, ignore_index: int = -100, reduce: Any = None,
    reduction: str = "mean", label_smoothing: float = 0.0, *, out_element: Any = None, softcap: float | None = None,
    z_loss: float = 0.0,
) -> tuple[Any, Any]:  # fmt: skip
    check_legacy("cross_entropy", size_average, reduce)
    if softcap is not None or z_loss:
        rule: Any = _capped.vjp_rule
        given = (input, target, weight, label_smoothing, ignore_index, reduction, out_element, softcap, z_loss)
        return rule(*given)  # type: ignore[no-any-return]
    loss, lse = cross_entropy_forward(
        input, target, ignore_index, reduction, label_smoothing, weight, out_element=out_element
    )

    def pull(dloss: Any) -> Any:
        return cross_entropy_backward(dloss, input, target, ignore_index, reduction, label_smoothing, weight, lse=lse)

    return loss, pull
