"""layer_norm, and group_norm made of it. Kernels in csrc/ops/norm, reference in norm_ref.py."""

from __future__ import annotations

import math
from typing import Any

from baracuda.elements import Element
from baracuda.errors import InvalidProblemError
from baracuda.op import Arg, Call, Op, Recipe, composite, function
from baracuda.ops.norm import Norm, Sizes, common_fields
from baracuda.spec import Signature, descriptor, output, scalar, tensor
from baracuda.steps import made_of


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
    """

    bias: bool = True
    save: bool = True
    weight_offset: float = 0.0

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


def _groups(input: Any, num_groups: int, *channelwise: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shape with one axis per group, and that of a weight beside the input."""
    shape = tuple(input.shape)
    if len(shape) < 2 or num_groups < 1 or shape[1] % num_groups:
        raise InvalidProblemError(
            f"group_norm: num_groups: got {num_groups} for an input of shape {shape}, want (N, C, ...) and a divisor of C."
        )
    for given in channelwise:
        if given is not None and (found := tuple(given.shape)) != shape[1:2]:
            raise InvalidProblemError(f"group_norm: weight or bias: got shape {found}, want {shape[1:2]}.")
        if given is not None and (one := Element.coerce(given.dtype)) is not (want := Element.coerce(input.dtype)):
            raise InvalidProblemError(f"group_norm: weight or bias: got {one}, want the input's {want}. Cast it first.")
    members = shape[1] // num_groups
    return (shape[0], num_groups, members * math.prod(shape[2:])), (1, shape[1], *(1 for _ in shape[2:]))


@made_of("add layer_norm mul")
@composite
def group_norm(input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    """(input - mean) / sqrt(var + eps) * weight + bias over groups of channels, as torch's group_norm.

    A layer_norm of the groups, then a product and a sum: half results are rounded after each. No plan of its own.
    """
    from baracuda.functional import add, mul

    grouped, beside = _groups(input, num_groups, weight, bias)
    y = layer_norm(input.reshape(grouped), grouped[2:], eps=eps).reshape(tuple(input.shape))
    y = y if weight is None else mul(y, weight.reshape(beside))
    return y if bias is None else add(y, bias.reshape(beside))


def _group_norm_vjp(
    input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> tuple[Any, Any]:
    from baracuda.functional import add, mul, sum

    shape = tuple(input.shape)
    grouped, beside = _groups(input, num_groups, weight, bias)
    plain, mean, rstd = layer_norm_forward(input.reshape(grouped), grouped[2:], eps=eps)
    plain = plain.reshape(shape)
    y = plain if weight is None else mul(plain, weight.reshape(beside))
    y = y if bias is None else add(y, bias.reshape(beside))
    others = (0, *range(2, len(shape)))

    def pull(dy: Any) -> Any:
        dplain = dy if weight is None else mul(dy, weight.reshape(beside))
        dx = layer_norm_backward(dplain.reshape(grouped), input.reshape(grouped), grouped[2:], None, mean, rstd)
        found = [dx.reshape(shape)]
        found += [] if weight is None else [sum(mul(dy, plain), others)]
        found += [] if bias is None else [sum(dy, others)]
        return found[0] if len(found) == 1 else tuple(found)

    return y, pull


_marks: Any = group_norm
_marks.vjp_rule = _group_norm_vjp
