"""layer_norm, and group_norm made of it. Kernels in csrc/ops/norm, reference in norm_ref.py."""

from __future__ import annotations

import math
from typing import Any

from baracuda.call.compose import Composer, Value, composed
from baracuda.call.op import Arg, Call, Op, Recipe, function
from baracuda.call.steps import made_of
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.order import CHANNELS
from baracuda.describe.spec import Param, Signature, descriptor, output, scalar, tensor
from baracuda.ops.binary.binary import BinaryDescriptor
from baracuda.ops.layout.layout import CopyDescriptor
from baracuda.ops.norm.norm import Norm, Sizes, common_fields
from baracuda.ops.reduce.reduce import ReduceDescriptor


@descriptor(family="norm", op="layer_norm")
class LayerNormDescriptor(Norm):
    """y = (x - mean) rstd weight + bias with rstd = 1 / sqrt(mean((x - mean)^2) + eps), over the trailing dimensions.

    y may be the same view as x. `eps` is 1e-5 unless given.

    Args:
        input_shape: Shape of x and y, rank 1-8.
        normalized_shape: The normalised dimensions.
        element: f16, bf16, f32 or f64.
        weight: Whether there is a weight.
        bias: Whether there is a bias.
        save: Whether mean and rstd are outputs.
        weight_offset: What is added to every weight.
        weight_rows: How many dimensions before the normalised ones weight and bias have, too: 1 in a group norm, where
            x is (batch, groups, channels of a group, positions). Without a gradient, and on the cpu only.
    """

    bias: bool = True
    save: bool = True
    weight_offset: float = 0.0
    weight_rows: int = 0

    def validate(self) -> None:
        Norm.validate(self)
        if not 0 <= self.weight_rows <= len(self.input_shape) - len(self.normalized_shape):
            raise self.wrong("weight_rows", self.weight_rows, "0, or as many dimensions as stand before the normalised")

    def parameter(self, name: str, present: bool) -> Param:
        shape = self.input_shape[len(self.input_shape) - len(self.normalized_shape) - self.weight_rows :]
        return tensor(name, shape, self.element, present=present)

    def backward(self) -> Any:
        if self.weight_rows:
            raise self.wrong("weight_rows", self.weight_rows, "0 for a gradient")
        return Norm.backward(self)

    def signature(self) -> Signature:
        return Signature(
            self.rows("x"),
            self.parameter("weight", self.weight),
            self.parameter("bias", self.bias),
            self.result("y"),
            output(*self.statistic("mean"), present=self.save),
            output(*self.statistic("rstd"), present=self.save),
            scalar("eps", default=1e-5),
        )

    def gradients_wanted(self) -> dict[str, bool]:
        return {"dweight": self.weight, "dbias": self.bias}


@descriptor(gradient_of=LayerNormDescriptor)
class LayerNormBackwardDescriptor(Norm):
    """dx = rstd (g - mean(g) - xhat mean(g xhat)), g = dy (weight + weight_offset); dweight = sum of dy xhat, dbias of dy.

    dx may be the same view as dy or x.

    Args:
        input_shape: Shape of dy, x and dx.
        normalized_shape: The normalised dimensions.
        element: f16, bf16, f32 or f64.
        weight: Whether there is a weight.
        dweight: Whether its gradient is wanted.
        dbias: Whether the bias's gradient is wanted.
        weight_offset: What is added to every weight.
    """

    dweight: bool = True
    dbias: bool = True
    weight_offset: float = 0.0

    def signature(self) -> Signature:
        return Signature(
            self.rows("dy"),
            self.rows("x"),
            self.parameter("weight", self.weight),
            tensor(*self.statistic("mean")),
            tensor(*self.statistic("rstd")),
            self.result("dx"),
            self.gradient("dweight", self.dweight),
            self.gradient("dbias", self.dbias),
        )


OPS = (Op("layer_norm", LayerNormDescriptor, LayerNormBackwardDescriptor, "y = (x - mean) / std * weight + bias"),)


@function(tensors="input weight bias", scalars="eps")
def layer_norm(
    call: Call,
    input: Arg,
    normalized_shape: Sizes,
    weight: Arg | None = None,
    bias: Arg | None = None,
    eps: Arg | float = 1e-5,
    weight_offset: float = 0.0,
) -> Recipe:
    """(input - mean) / sqrt(var + eps) * weight + bias over the trailing dimensions, as torch.

    `weight_offset` is added to the weights in the compute element: 1 for models that store them around 0.
    """
    fields = common_fields(input, normalized_shape, weight, weight_offset)
    desc = LayerNormDescriptor(**fields, bias=bias is not None, save=False)
    return call(desc, x=input, weight=weight, bias=bias, eps=eps)


@function(tensors="input weight bias", scalars="eps")
def layer_norm_forward(
    call: Call,
    input: Arg,
    normalized_shape: Sizes,
    weight: Arg | None = None,
    bias: Arg | None = None,
    eps: Arg | float = 1e-5,
    weight_offset: float = 0.0,
) -> Recipe:
    """layer_norm with what its gradient needs: (y, mean, rstd)."""
    desc = LayerNormDescriptor(**common_fields(input, normalized_shape, weight, weight_offset), bias=bias is not None)
    return call(desc, x=input, weight=weight, bias=bias, eps=eps)


@function(tensors="dy input weight mean rstd")
def layer_norm_backward(
    call: Call,
    dy: Arg,
    input: Arg,
    normalized_shape: Sizes,
    weight: Arg | None,
    mean: Arg,
    rstd: Arg,
    bias: bool = False,
    weight_offset: float = 0.0,
) -> Recipe:
    """(dx, dweight, dbias) without those that do not exist; `bias` says whether dbias is wanted."""
    fields = common_fields(input, normalized_shape, weight, weight_offset)
    desc = LayerNormBackwardDescriptor(**fields, dweight=weight is not None, dbias=bias)
    return call(desc, dy=dy, x=input, weight=weight, mean=mean, rstd=rstd)


@layer_norm.vjp
def _layer_norm_vjp(
    input: Any,
    normalized_shape: Sizes,
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
    weight_offset: float = 0.0,
) -> tuple[Any, Any]:
    y, mean, rstd = layer_norm_forward(input, normalized_shape, weight, bias, eps, weight_offset)
    gradient = bias is not None
    return y, lambda dy: layer_norm_backward(dy, input, normalized_shape, weight, mean, rstd, gradient, weight_offset)


class _Grouped:
    """A group_norm in the making: its input as one row per group, and its parameters beside the input."""

    def __init__(self, c: Composer, input: Value, num_groups: int, weight: Value | None, bias: Value | None) -> None:
        shape = input.shape
        if len(shape) < 2 or num_groups < 1 or shape[1] % num_groups:
            got = f"num_groups: got {num_groups} for an input of shape {shape}"
            raise InvalidProblemError(f"group_norm: {got}, want (N, C, ...) and a divisor of C.")
        for name, given in (("weight", weight), ("bias", bias)):
            if given is not None and given.shape != shape[1:2]:
                raise InvalidProblemError(f"group_norm: {name}: got shape {given.shape}, want {shape[1:2]}.")
            if given is not None and given.element is not input.element:
                want = f"the input's {input.element}. Cast it first"
                raise InvalidProblemError(f"group_norm: {name}: got {given.element}, want {want}.")
        self.c, self.input, self.shape = c, input, shape
        self.given = weight, bias
        self.weight, self.bias = (None if given is None else self._beside(given) for given in (weight, bias))
        self.rows = (shape[0], num_groups, shape[1] // num_groups * math.prod(shape[2:]))
        self.fields: dict[str, Any] = {
            "input_shape": self.rows,
            "normalized_shape": self.rows[2:],
            "element": input.element,
            "weight": False,
        }

    def _beside(self, channels: Value) -> Value:
        return channels.permute((-1, 0, *(-1 for _ in self.shape[2:])))

    def of_groups(self, x: Value) -> Value:
        """A tensor of the input's shape as one row per group."""
        return self.c.reshape(x, self.rows)

    def plain(self, eps: float, save: bool) -> tuple[Value, ...]:
        """The normalised input, and with `save` its mean and rstd."""
        desc = LayerNormDescriptor(**self.fields, bias=False, save=save)
        made = self.c(desc, x=self.of_groups(self.input), eps=eps)
        y, *saved = made if save else (made,)
        return self.c.reshape(y, self.shape), *saved

    def by(self, kind: str, x: Value, parameter: Value | None) -> Value:
        """X times or plus a parameter, where there is one."""
        if parameter is None:
            return x
        made: Value = self.c(BinaryDescriptor(kind, x.shape, parameter.shape, x.element), a=x, b=parameter)
        return made

    def result(self, eps: float, save: bool) -> tuple[Value, ...]:
        """The result, and with `save` the mean and rstd of its groups: one plan on the CPU, and several elsewhere."""
        if self.c.device != "cpu" or self.given == (None, None):
            plain, *saved = self.plain(eps, save)
            return self.by("add", self.by("mul", plain, self.weight), self.bias), *saved
        groups, channels = self.rows[1], self.shape[1] // self.rows[1]
        shape = (self.shape[0], groups, channels, math.prod(self.shape[2:]))
        beside = (None if given is None else given.reshape(shape[1:3]) for given in self.given)
        weight, bias = (None if row is None else row.permute((0, 1, -1)).expand(shape[1:]) for row in beside)
        desc = LayerNormDescriptor(
            shape, shape[2:], self.input.element, weight is not None, bias is not None, save, weight_rows=1
        )
        last = self.c.lying(CHANNELS, self.shape, self.input) is not None
        x = self.c.reshape(self.c.copy(self.input) if last else self.input, shape)
        made = self.c(desc, x=x, weight=weight, bias=bias, eps=eps)
        y, *saved = made if save else (made,)
        return self.c.reshape(y, self.shape), *(self.c.reshape(s, (*self.rows[:2], 1)) for s in saved)

    def in_order(self, y: Value) -> Value:
        """The result with its channels last where the input has them so: kernels read and write whole groups faster."""
        strides = self.c.lying(CHANNELS, self.shape, self.input)
        if strides is None:
            return y
        made = self.c.new(y.shape, y.element, strides)
        self.c(CopyDescriptor(y.shape, y.element), x=y, y=made)
        return made

    def over_channels(self, x: Value) -> Value:
        """Summed over everything but the channels."""
        axes = (0, *range(2, len(self.shape)))
        made: Value = self.c(ReduceDescriptor("sum", x.shape, axes, element=x.element), x=x)
        return made


@made_of("copy layer_norm")
@composed(tensors="input weight bias")
def group_norm(
    c: Composer,
    input: Value,
    num_groups: int,
    weight: Value | None = None,
    bias: Value | None = None,
    eps: float = 1e-5,
) -> Value:
    """(input - mean) / sqrt(var + eps) * weight + bias over groups of channels, as torch's group_norm.

    A layer_norm of the groups on the cpu; elsewhere a product and a sum follow it, and half results are rounded after
    each. No plan of its own.
    """
    grouped = _Grouped(c, input, num_groups, weight, bias)
    return grouped.in_order(grouped.result(eps, save=False)[0])


@composed(tensors="input weight bias")
def _group_norm_forward(
    c: Composer,
    input: Value,
    num_groups: int,
    weight: Value | None = None,
    bias: Value | None = None,
    eps: float = 1e-5,
) -> tuple[Value, ...]:
    grouped = _Grouped(c, input, num_groups, weight, bias)
    y, *saved = grouped.result(eps, save=True)
    return grouped.in_order(y), *saved


@composed(tensors="dy input mean rstd weight")
def _group_norm_backward(
    c: Composer, dy: Value, input: Value, mean: Value, rstd: Value, num_groups: int,
    weight: Value | None = None, bias: bool = False, eps: float = 1e-5,
) -> tuple[Value, ...]:  # fmt: skip
    if dy.shape != input.shape:
        raise InvalidProblemError(f"group_norm: dy: got shape {dy.shape}, want {input.shape}, as the result.")
    own = input.element
    if weight is not None:  # halves are rounded once, behind the products and sums
        dy, input, weight = c.wide(dy), c.wide(input), c.wide(weight)
    grouped = _Grouped(c, input, num_groups, weight, None)
    desc = LayerNormBackwardDescriptor(**grouped.fields, dweight=False, dbias=False)
    dplain = grouped.of_groups(grouped.by("mul", dy, grouped.weight))
    dx = c(desc, dy=dplain, x=grouped.of_groups(input), mean=mean, rstd=rstd)
    found = [c.reshape(dx, input.shape)]
    if weight is not None:
        (plain,) = grouped.plain(eps, save=False)
        found.append(grouped.over_channels(grouped.by("mul", dy, plain)))
    if bias:
        found.append(grouped.over_channels(dy))
    return tuple(c.cast(x, own) for x in found)


@group_norm.vjp
def _group_norm_vjp(
    input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> tuple[Any, Any]:
    y, *saved = _group_norm_forward(input, num_groups, weight, bias, eps)

    def pull(dy: Any) -> Any:
        found = _group_norm_backward(dy, input, *saved, num_groups, weight, bias is not None, eps)
        return found[0] if len(found) == 1 else found

    return y, pull
