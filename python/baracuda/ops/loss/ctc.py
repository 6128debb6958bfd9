"""Connectionist temporal classification. Kernels in csrc/ops/loss, reference in ctc_ref.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from baracuda import _core
from baracuda import functional as F
from baracuda.call.compose import Composer, Value, composed
from baracuda.call.inline import pulled_through
from baracuda.call.op import Arg, Call, Op, Recipe, function
from baracuda.describe.dims import Dim, Shape, shape_text
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.options import integers
from baracuda.describe.spec import Descriptor, Param, Signature, descriptor, frame, output, tensor
from baracuda.memory.device import name_of
from baracuda.memory.tensor import asarray


@frame
class _Sequences(Descriptor):
    """Fields and checks that forward and backward share."""

    __slots__ = ()
    log_probs_shape: Shape
    targets_shape: Shape
    blank: int = 0
    zero_infinity: bool = False
    element: Element = Element.F32
    target_element: Element = Element.I64

    def validate(self) -> None:
        shape = self.log_probs_shape
        if len(shape) != 3:
            raise self.wrong("log_probs_shape", shape, "(steps, samples, classes)")
        if len(self.targets_shape) not in (1, 2) or self.targets_shape[:-1] not in ((), shape[1:2]):
            raise self.wrong("targets_shape", self.targets_shape, f"(labels of all,) or ({shape[1]}, most labels)")
        if self.blank < 0 or (not isinstance(shape[2], Dim) and self.blank >= shape[2]):
            raise self.wrong("blank", self.blank, f"one of {shape[2]} classes, counted from 0")

    def aux_element(self) -> Element:
        return self.target_element

    def given(self) -> tuple[Param, ...]:
        """The tensors that say what the labels are."""
        return (
            tensor("log_probs", self.log_probs_shape, self.element),
            tensor("targets", self.targets_shape, self.target_element),
            tensor("input_lengths", self.log_probs_shape[1:2], self.target_element),
            tensor("target_lengths", self.log_probs_shape[1:2], self.target_element),
        )


@descriptor(family="loss", op="ctc_loss")
class CtcLossDescriptor(_Sequences):
    """loss[n] = -ln of what the probabilities of all paths that spell the labels of sample n add up to.

    A path has a class for each of the sample's first input_lengths[n] steps; it spells what is left when repetitions and
    then blanks are taken out of it. Where no path does, as when there are more labels than steps, the loss is inf. The
    sums are kept in logarithms, in the compute element; a sample's do not depend on its neighbours.

    Lengths and the labels in use are checked before the first write: one that there is no room for, or no class, is an
    IndexOutOfRangeError, and so are lengths that do not add up to the labels of all.

    Args:
        log_probs_shape: (steps, samples, classes): logarithms of probabilities, as log_softmax gives them.
        targets_shape: (samples, most labels), of which the first target_lengths[n] count; or (labels of all,), one
            sample's behind another's, of which none may be left over.
        blank: The class that separates labels. A label may be the blank, as torch has it, and then is one like others.
        zero_infinity: Whether a loss of inf is 0 instead, and so its gradient.
        element: f16, bf16, f32 or f64, of log_probs and loss.
        target_element: i64 or i32, of targets and lengths.
    """

    def signature(self) -> Signature:
        return Signature(*self.given(), output("loss", self.log_probs_shape[1:2], self.element))


@descriptor(gradient_of=CtcLossDescriptor)
class CtcLossBackwardDescriptor(_Sequences):
    """dlog_probs = dloss (exp(log_probs) - the share of the paths that take this class at this step); 0 behind a sample.

    As in torch, this is the gradient along what log_softmax gives, whose exp sums to 1, and that of its input, too. It is
    NaN where the loss is infinite or NaN, or 0 where zero_infinity says so.

    Args:
        log_probs_shape: As in CtcLossDescriptor.
        targets_shape: As in CtcLossDescriptor.
        blank: As in CtcLossDescriptor.
        zero_infinity: As in CtcLossDescriptor.
        element: f16, bf16, f32 or f64.
        target_element: i64 or i32.
    """

    def signature(self) -> Signature:
        return Signature(
            tensor("dloss", self.log_probs_shape[1:2], self.element),
            *self.given(),
            output("dlog_probs", self.log_probs_shape, self.element),
        )


OPS = (
    Op(
        "ctc_loss",
        CtcLossDescriptor,
        CtcLossBackwardDescriptor,
        "loss = -log(sum over the paths that spell the targets)",
    ),
)

_REDUCTIONS = ("none", "mean", "sum")


def _described(log_probs: Arg, targets: Arg, blank: int, zero_infinity: bool) -> CtcLossDescriptor:
    if targets.rank not in (1, 2):
        got = f"targets: got shape {shape_text(targets.shape)}"
        raise InvalidProblemError(f"{got}, want (samples, most labels) or (labels of all,).")
    shapes = (log_probs.shape, targets.shape)
    return CtcLossDescriptor(*shapes, blank, bool(zero_infinity), log_probs.element, targets.element)


def _check(log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any) -> None:
    if not log_probs.element.is_float:
        raise InvalidProblemError(f"log_probs: got {log_probs.element}, want a float element. Cast it first.")
    for name, x in (("targets", targets), ("input_lengths", input_lengths), ("target_lengths", target_lengths)):
        if not x.element.is_integer or x.element is Element.BOOL:
            raise InvalidProblemError(f"{name}: got {x.element}, want integers.")
    if log_probs.rank not in (2, 3):
        got = f"log_probs: got shape {shape_text(log_probs.shape)}"
        raise InvalidProblemError(f"{got}, want (steps, samples, classes) or (steps, classes).")
    samples = log_probs.shape[1] if log_probs.rank == 3 else 1
    for name, x in (("input_lengths", input_lengths), ("target_lengths", target_lengths)):
        if x.shape != (samples,) and not (log_probs.rank == 2 and x.rank == 0):
            raise InvalidProblemError(f"{name}: got shape {shape_text(x.shape)}, want ({samples},).")


@composed(tensors="log_probs targets input_lengths target_lengths")
def _ctc(
    c: Composer,
    log_probs: Value,
    targets: Value,
    input_lengths: Value,
    target_lengths: Value,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Value:
    """ctc_loss of samples or one sample, of any integers, reduced."""
    single = log_probs.rank == 2
    if single:
        log_probs = log_probs[:, None]
    lengths = [c.cast(c.reshape(x, log_probs.shape[1:2]), Element.I64) for x in (input_lengths, target_lengths)]
    options: dict[str, Any] = {"blank": blank, "zero_infinity": zero_infinity}
    loss: Value = c.of(F.ctc_loss, log_probs, c.cast(targets, Element.I64), *lengths, reduction="none", **options)
    if reduction == "mean":
        loss = c.of(F.mean, c.of(F.div, loss, c.cast(c.of(F.clamp, lengths[1], min=1), log_probs.element)))
    elif reduction == "sum":
        loss = c.of(F.sum, loss)
    elif single:
        loss = c.reshape(loss, ())
    return loss


pulled_through(_ctc)


def _simple(log_probs: Arg, targets: Arg, input_lengths: Arg, target_lengths: Arg, reduction: str) -> bool:
    """Whether one plan does it."""
    if reduction not in _REDUCTIONS:
        raise InvalidProblemError(f'reduction: got {reduction!r}, want "none", "mean" or "sum".')
    _check(log_probs, targets, input_lengths, target_lengths)
    elements = {x.element for x in (targets, input_lengths, target_lengths)}
    return reduction == "none" and log_probs.rank == 3 and elements in ({Element.I64}, {Element.I32})


@function(tensors="log_probs targets input_lengths target_lengths")
def ctc_loss(
    call: Call,
    log_probs: Arg,
    targets: Arg,
    input_lengths: Arg,
    target_lengths: Arg,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Recipe:
    """Connectionist temporal classification, as torch.nn.functional.ctc_loss.

    A mean divides each loss by its number of labels, or 1, first. Lengths may be ints and lists of them, too.
    """
    if not _simple(log_probs, targets, input_lengths, target_lengths, reduction):
        given = (log_probs, targets, input_lengths, target_lengths)
        options = {"blank": blank, "reduction": reduction, "zero_infinity": zero_infinity}
        return call.steps(_ctc.miss.rule, *given, **options)
    desc = _described(log_probs, targets, blank, zero_infinity)
    return call(desc, log_probs=log_probs, targets=targets, input_lengths=input_lengths, target_lengths=target_lengths)


@function(tensors="dloss log_probs targets input_lengths target_lengths")
def ctc_loss_backward(
    call: Call,
    dloss: Arg,
    log_probs: Arg,
    targets: Arg,
    input_lengths: Arg,
    target_lengths: Arg,
    blank: int = 0,
    zero_infinity: bool = False,
) -> Recipe:
    """Gradient of ctc_loss without reduction by `log_probs` (steps, samples, classes)."""
    if not _simple(log_probs, targets, input_lengths, target_lengths, "none"):
        raise InvalidProblemError(
            "targets, input_lengths, target_lengths: want (steps, samples, classes) with i64 or i32 of one kind in all three."
        )
    desc = _described(log_probs, targets, blank, zero_infinity).backward()
    given: dict[str, Any] = {"targets": targets, "input_lengths": input_lengths, "target_lengths": target_lengths}
    return call(desc, dloss=dloss, log_probs=log_probs, **given)


def _is_listed(given: Any) -> bool:
    return isinstance(given, (list, tuple)) or (hasattr(given, "__index__") and not hasattr(given, "__dlpack__"))


def _lengths(log_probs: Any, name: str, given: Any) -> Any:
    """Ints and lists of them as a tensor where the scores are."""
    if not _is_listed(given):
        return given
    many = isinstance(given, (list, tuple))
    numbers = np.asarray(integers(name, given) if many else integers(name, [given])[0], np.int64)
    device = name_of(_core.borrow(log_probs)._place)
    return numbers if device == "cpu" else asarray(numbers, device=device)


def _listed(log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, *more: Any) -> Any:
    if not (_is_listed(input_lengths) or _is_listed(target_lengths)):
        return NotImplemented
    made = [_lengths(log_probs, *x) for x in (("input_lengths", input_lengths), ("target_lengths", target_lengths))]
    return ctc_loss(log_probs, targets, *made, *more)


ctc_loss.or_else(_listed)


@ctc_loss.vjp
def _ctc_loss_vjp(
    log_probs: Any,
    targets: Any,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> tuple[Any, Callable[..., Any]]:
    given = (
        targets,
        _lengths(log_probs, "input_lengths", input_lengths),
        _lengths(log_probs, "target_lengths", target_lengths),
    )
    elements = {Element(_core.describe(x)[1]) for x in given}
    if reduction != "none" or len(_core.describe(log_probs)[0]) != 3 or len(elements) > 1 or elements - _INDICES:
        rule: Any = _ctc.vjp_rule
        return rule(log_probs, *given, blank, reduction, zero_infinity)  # type: ignore[no-any-return]

    def pull(dloss: Any) -> Any:
        return ctc_loss_backward(dloss, log_probs, *given, blank, zero_infinity)

    return ctc_loss(log_probs, *given, blank, reduction, zero_infinity), pull


_INDICES = {Element.I64, Element.I32}
