"""batch_norm and instance_norm: norms of channels over a batch. Kernels in csrc/ops/norm, reference in batch_norm_ref.py."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from baracuda.call.compose import Composer, Value
from baracuda.call.op import Arg, Call, Op, Recipe, function
from baracuda.call.steps import made_of
from baracuda.describe.dims import Shape, shape_text
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.order import Order, channels_of
from baracuda.describe.spec import Descriptor, Param, Signature, descriptor, frame, output, scalar, tensor


@frame
class _ChannelNorm(Descriptor):
    """Fields and checks that a batch norm and its gradient share."""

    __slots__ = ()
    input_shape: Shape
    element: Element = Element.F32
    training: bool = True
    per_instance: bool = False
    weight: bool = True
    parameter_element: Element | None = None

    def validate(self) -> None:
        if len(self.input_shape) < 2:
            raise self.wrong("input_shape", self.input_shape, "at least 2 dimensions: images and channels")
        if self.per_instance and not self.training:
            raise self.wrong("per_instance", True, "False without training: running statistics are of channels")
        self.own_element("parameter_element")

    def own_element(self, name: str) -> None:
        """Makes the element's field x's element where it is None, and refuses one that kernels do not take."""
        given = getattr(self, name)
        if given not in (None, self.element, self.element.statistic):
            raise self.wrong(name, given, f"{self.element} or {self.element.statistic}")
        object.__setattr__(self, name, given or self.element)

    def attributes(self) -> dict[str, int | float]:
        return {"training": int(self.training), "per_instance": int(self.per_instance)}

    def order(self) -> Order | None:
        return None if self.per_instance else channels_of("x")

    def statistic(self, name: str) -> tuple[str, Shape, Element]:
        """Name, shape and element of a saved statistic: (channels,), or (images, channels)."""
        return name, self.input_shape[: 2 if self.per_instance else 0] or self.channels, self.element.statistic

    @property
    def channels(self) -> Shape:
        """The shape of what there is one of for each channel."""
        return self.input_shape[1:2]

    def parameter(self, name: str, present: bool) -> Param:
        """A weight or a bias."""
        return tensor(name, self.channels, self.parameter_element or self.element, present=present)


@descriptor(family="norm", op="batch_norm")
class BatchNormDescriptor(_ChannelNorm):
    """y = (x - mean) rstd weight + bias with rstd = 1 / sqrt(var + eps), for each channel of (images, channels, ...).

    In training mean and var are the batch's own, over images and positions; with per_instance each image has its own.
    next_mean = (1 - momentum) running_mean + momentum mean, and next_var the same of var with count / (count - 1), both
    averaged over images where those have their own; they may be the same views as running_mean and running_var, and are
    these unchanged for an empty batch. Without training mean and var are the running ones. Any strides: channels may
    come second or last in memory. y may be the same view as x. `eps` is 1e-5 unless given, `momentum` 0.1; one divided by
    the number of batches so far makes cumulative averages.

    Args:
        input_shape: Shape of x and y: (images, channels, positions ...), rank 2-8.
        element: f16, bf16, f32 or f64.
        training: Whether the statistics are x's own.
        per_instance: Whether each image has statistics of its own: an instance norm.
        weight: Whether there is a weight, (channels,).
        parameter_element: Of weight and bias: that of x, or of saved statistics (f32, f64 for f64); x's by default.
        bias: Whether there is a bias, (channels,).
        running: Whether there are running statistics, (channels,).
        running_element: Of the running statistics, as for weights.
        save: Whether mean and rstd are outputs.
    """

    bias: bool = True
    running: bool = True
    running_element: Element | None = None
    save: bool = True

    def validate(self) -> None:
        _ChannelNorm.validate(self)
        self.own_element("running_element")
        if not self.training and not self.running:
            raise self.wrong("running", False, "True without training")

    def signature(self) -> Signature:
        running = self.running_element or self.element
        updates = self.running and self.training
        return Signature(
            tensor("x", self.input_shape, self.element),
            self.parameter("weight", self.weight),
            self.parameter("bias", self.bias),
            tensor("running_mean", self.channels, running, present=self.running),
            tensor("running_var", self.channels, running, present=self.running),
            output("y", self.input_shape, self.element),
            output(*self.statistic("mean"), present=self.save),
            output(*self.statistic("rstd"), present=self.save),
            output("next_mean", self.channels, running, present=updates),
            output("next_var", self.channels, running, present=updates),
            scalar("eps", default=1e-5),
            scalar("momentum", default=0.1, present=updates),
        )

    def backward(self) -> Any:
        """The gradient's descriptor: with all gradients of tensors that there are."""
        return replace(_ChannelNorm.backward(self), dweight=self.weight, dbias=self.bias)  # type: ignore[type-var]


@descriptor(gradient_of=BatchNormDescriptor)
class BatchNormBackwardDescriptor(_ChannelNorm):
    """dx = (dy - mean(dy) - xhat mean(dy xhat)) rstd weight, xhat = (x - mean) rstd; dweight = sum of dy xhat, dbias of dy.

    Without training dx = dy rstd weight: the statistics do not depend on x. dx may be the same view as dy or x.

    Args:
        input_shape: Shape of dy, x and dx.
        element: f16, bf16, f32 or f64.
        training: Whether the statistics were x's own.
        per_instance: Whether each image has statistics of its own.
        weight: Whether there is a weight.
        parameter_element: Of weight, dweight and dbias.
        dweight: Whether the weight's gradient is wanted.
        dbias: Whether the bias's gradient is wanted.
    """

    dweight: bool = True
    dbias: bool = True

    def signature(self) -> Signature:
        own = self.parameter_element or self.element
        return Signature(
            tensor("dy", self.input_shape, self.element),
            tensor("x", self.input_shape, self.element),
            self.parameter("weight", self.weight),
            tensor(*self.statistic("mean")),
            tensor(*self.statistic("rstd")),
            output("dx", self.input_shape, self.element),
            output("dweight", self.channels, own, present=self.dweight),
            output("dbias", self.channels, own, present=self.dbias),
        )


OPS = (
    Op(
        "batch_norm",
        BatchNormDescriptor,
        BatchNormBackwardDescriptor,
        "y = (x - mean) / sqrt(var + eps) * weight + bias for each channel",
    ),
)


class _Norm:
    """A call of a norm of channels, checked as torch checks it."""

    def __init__(
        self,
        input: Arg,
        running: tuple[Arg | None, Arg | None],
        weight: Arg | None,
        bias: Arg | None,
        training: bool,
        momentum: Any,
        *,
        per_instance: bool = False,
    ) -> None:
        self.input, self.running, self.weight, self.bias, self.momentum = input, running, weight, bias, momentum
        self.training = training
        if (running[0] is None) != (running[1] is None) or (not training and running[0] is None):
            want = "both, or neither" if training else "both, where the statistics are not the input's own"
            raise InvalidProblemError(
                f"running_mean, running_var: got {_given(running[0])} and {_given(running[1])}, want {want}."
            )
        if momentum is None:
            raise InvalidProblemError(
                "momentum: got None, want a number. For cumulative averages pass 1 / the number of batches so far."
            )
        if input.rank < 2:
            raise InvalidProblemError(f"input: got shape {shape_text(input.shape)}, want at least 2 dimensions.")
        count = math.prod(input.shape[2:]) * (1 if per_instance else input.shape[0])
        if training and count == 1:
            raise InvalidProblemError(
                f"input: got shape {shape_text(input.shape)}, want more than one value for each channel in training."
            )
        self.per_instance = per_instance and training

    def recipe(self, call: Call, eps: Any, *, save: bool) -> Recipe:
        """y, and with `save` mean and rstd."""
        parameter, (mean, var) = self.weight or self.bias, self.running
        desc = BatchNormDescriptor(
            self.input.shape,
            self.input.element,
            self.training,
            self.per_instance,
            self.weight is not None,
            None if parameter is None else parameter.element,
            self.bias is not None,
            mean is not None,
            None if mean is None else mean.element,
            save,
        )
        tensors: dict[str, Any] = {
            "x": self.input,
            "weight": self.weight,
            "bias": self.bias,
            "running_mean": mean,
            "running_var": var,
        }
        if mean is not None and self.training:
            tensors |= {"next_mean": mean, "next_var": var}
            return call(desc, **tensors, eps=eps, momentum=self.momentum)
        return call(desc, **tensors, eps=eps)


def _given(x: Arg | None) -> str:
    return "None" if x is None else "a tensor"


def _nothing(input: Arg) -> bool:
    """Whether torch leaves an input alone that has no channels."""
    return input.rank == 1 and input.shape[0] == 0


@function(tensors="input running_mean running_var weight bias", scalars="momentum eps")
def batch_norm(
    call: Call,
    input: Arg,
    running_mean: Arg | None,
    running_var: Arg | None,
    weight: Arg | None = None,
    bias: Arg | None = None,
    training: bool = False,
    momentum: Arg | float = 0.1,
    eps: Arg | float = 1e-5,
) -> Recipe:
    """(input - mean) / sqrt(var + eps) * weight + bias for each channel of (images, channels, ...), as torch.

    In training mean and var are the input's own, and running_mean and running_var are updated in place: by `momentum` of
    the mean and of the unbiased variance. Cumulative averages come of a momentum of 1 / the number of batches so far.
    Without training mean and var are the running ones. Weights and running statistics are of the input's element, or of
    f32 for halves.
    """
    if _nothing(input):
        return call.steps(lambda c, x: c.copy(x), input)
    norm = _Norm(input, (running_mean, running_var), weight, bias, training, momentum)
    return norm.recipe(call, eps, save=False)


@function(tensors="input running_mean running_var weight bias", scalars="momentum eps")
def batch_norm_forward(
    call: Call,
    input: Arg,
    running_mean: Arg | None,
    running_var: Arg | None,
    weight: Arg | None = None,
    bias: Arg | None = None,
    training: bool = False,
    momentum: Arg | float = 0.1,
    eps: Arg | float = 1e-5,
) -> Recipe:
    """batch_norm with what its gradient needs: (y, mean, rstd)."""
    norm = _Norm(input, (running_mean, running_var), weight, bias, training, momentum)
    return norm.recipe(call, eps, save=True)


@function(tensors="dy input weight mean rstd")
def batch_norm_backward(
    call: Call,
    dy: Arg,
    input: Arg,
    weight: Arg | None,
    mean: Arg,
    rstd: Arg,
    training: bool = True,
    bias: bool = False,
) -> Recipe:
    """(dx, dweight, dbias) of batch_norm, without those of what is not there; `bias`: whether its gradient is wanted.

    mean and rstd are those of batch_norm_forward, (channels,), or (images, channels) for instance_norm.
    """
    desc = BatchNormBackwardDescriptor(
        input.shape,
        input.element,
        training,
        mean.rank == 2,
        weight is not None,
        None if weight is None else weight.element,
        weight is not None,
        bias,
    )
    return call(desc, dy=dy, x=input, weight=weight, mean=mean, rstd=rstd)


@made_of("batch_norm")
@function(tensors="input running_mean running_var weight bias", scalars="momentum eps")
def instance_norm(
    call: Call,
    input: Arg,
    running_mean: Arg | None = None,
    running_var: Arg | None = None,
    weight: Arg | None = None,
    bias: Arg | None = None,
    use_input_stats: bool = True,
    momentum: Arg | float = 0.1,
    eps: Arg | float = 1e-5,
) -> Recipe:
    """(input - mean) / sqrt(var + eps) * weight + bias for each channel of each image, as torch's instance_norm.

    running_mean and running_var are updated in place by the images' averages; without `use_input_stats` they are mean and
    var. A batch_norm with statistics per instance, no op of its own.
    """
    running = (running_mean, running_var)
    norm = _Norm(input, running, weight, bias, use_input_stats, momentum, per_instance=True)
    return norm.recipe(call, eps, save=False)


@made_of("batch_norm")
@function(tensors="input running_mean running_var weight bias", scalars="momentum eps")
def instance_norm_forward(
    call: Call,
    input: Arg,
    running_mean: Arg | None = None,
    running_var: Arg | None = None,
    weight: Arg | None = None,
    bias: Arg | None = None,
    use_input_stats: bool = True,
    momentum: Arg | float = 0.1,
    eps: Arg | float = 1e-5,
) -> Recipe:
    """instance_norm with what its gradient needs: (y, mean, rstd)."""
    running = (running_mean, running_var)
    norm = _Norm(input, running, weight, bias, use_input_stats, momentum, per_instance=True)
    return norm.recipe(call, eps, save=True)


@made_of("batch_norm")
@function(tensors="input weight bias running_mean running_var", scalars="momentum eps")
def native_batch_norm(
    call: Call,
    input: Arg,
    weight: Arg | None,
    bias: Arg | None,
    running_mean: Arg | None,
    running_var: Arg | None,
    training: bool,
    momentum: Arg | float,
    eps: Arg | float,
) -> Recipe:
    """(batch_norm, mean, 1 / sqrt(var + eps)) as torch.native_batch_norm; without training the last two are empty."""
    if training:
        made: Recipe = batch_norm_forward.miss.rule(
            call, input, running_mean, running_var, weight, bias, True, momentum, eps
        )
        return made

    def steps(
        c: Composer, input: Value, mean: Value, var: Value, weight: Any, bias: Any, momentum: Any, eps: Any
    ) -> Any:
        y = c.of(batch_norm, input, mean, var, weight, bias, False, momentum, eps)
        return y, c.new((0,), mean.element), c.new((0,), mean.element)

    return call.steps(steps, input, running_mean, running_var, weight, bias, momentum, eps)


def _pulled(
    forward: Any, head: tuple[Any, ...], weight: Any, bias: Any, training: bool, rest: tuple[Any, ...]
) -> tuple[Any, Any]:
    y, mean, rstd = forward(*head, weight, bias, training, *rest)

    def pull(dy: Any) -> Any:
        found = batch_norm_backward(dy, head[0], weight, mean, rstd, training, bias is not None)
        return found[0] if isinstance(found, tuple) and len(found) == 1 else found

    return y, pull


batch_norm.without_gradient("running_mean running_var")


@batch_norm.vjp
def _batch_norm_vjp(
    input: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: Any = 0.1,
    eps: Any = 1e-5,
) -> tuple[Any, Any]:
    head = (input, running_mean, running_var)
    return _pulled(batch_norm_forward, head, weight, bias, training, (momentum, eps))


instance_norm.without_gradient("running_mean running_var")


@instance_norm.vjp
def _instance_norm_vjp(
    input: Any,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Any = None,
    bias: Any = None,
    use_input_stats: bool = True,
    momentum: Any = 0.1,
    eps: Any = 1e-5,
) -> tuple[Any, Any]:
    head = (input, running_mean, running_var)
    return _pulled(instance_norm_forward, head, weight, bias, use_input_stats, (momentum, eps))
