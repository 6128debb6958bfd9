"""Norms over trailing dimensions: rms_norm, add_rms_norm, layer_norm.

Kernels in csrc/ops/norm, reference in norm_ref.py. Statistics are saved in f32 (f64 for f64), and the gradients of
weight and bias are summed in a fixed order.
"""

from __future__ import annotations

import math
from typing import Any

from baracuda.dims import Shape, shape_text
from baracuda.elements import Element
from baracuda.errors import InvalidProblemError
from baracuda.op import Arg, Call, Op, Recipe, composite, function
from baracuda.spec import Descriptor, Param, Signature, descriptor, output, scalar, tensor

KINDS = ("rms_norm", "add_rms_norm", "layer_norm")


class _Norm(Descriptor):
    """Fields and checks that all norms share."""

    __slots__ = ()
    input_shape: Shape
    normalized_shape: Shape
    element: Element

    def validate(self) -> None:
        dims = len(self.normalized_shape)
        if dims == 0 or tuple(self.input_shape[-dims:]) != tuple(self.normalized_shape):
            want = f"the last dimensions of {shape_text(self.input_shape)}, at least one"
            raise self.wrong("normalized_shape", self.normalized_shape, want)

    def attributes(self) -> tuple[int, ...]:
        return (len(self.normalized_shape),)

    def statistic(self, name: str) -> tuple[str, Shape, Element]:
        """Name, shape and element of a saved statistic: the normalised dimensions have size 1."""
        dims = len(self.normalized_shape)
        return name, (*self.input_shape[:-dims], *(1,) * dims), self.element.statistic

    def parameter(self, name: str, present: bool) -> Param:
        """A weight or a bias."""
        return tensor(name, self.normalized_shape, self.element, present=present)

    def gradient(self, name: str, present: bool) -> Param:
        """The gradient of a weight or of a bias."""
        return output(name, self.normalized_shape, self.element, present=present)

    def rows(self, name: str, *, present: bool = True) -> Param:
        """An input shaped like x."""
        return tensor(name, self.input_shape, self.element, present=present)

    def result(self, name: str) -> Param:
        """An output shaped like x."""
        return output(name, self.input_shape, self.element)


@descriptor(family="norm", op="rms_norm")
class RmsNormDescriptor(_Norm):
    """y = x rstd weight with rstd = 1 / sqrt(mean(x^2) + eps), over the trailing dimensions.

    y may be the same view as x. The scalar `eps` is 1e-5 unless given.

    Args:
        input_shape: Shape of x and y, rank 1-8.
        normalized_shape: The trailing dimensions that are normalised together; an int means one.
        element: f16, bf16, f32 or f64.
        weight: Whether there is a weight.
        save: Whether rstd is an output.
    """

    input_shape: Shape
    normalized_shape: Shape
    element: Element = Element.F32
    weight: bool = True
    save: bool = True

    def signature(self) -> Signature:
        return Signature(
            self.rows("x"),
            self.parameter("weight", self.weight),
            self.result("y"),
            output(*self.statistic("rstd"), present=self.save),
            scalar("eps", default=1e-5),
        )

    def backward(self) -> RmsNormBackwardDescriptor:
        """The gradient's descriptor."""
        return RmsNormBackwardDescriptor(
            self.input_shape, self.normalized_shape, self.element, self.weight, self.weight
        )


@descriptor(family="norm", op="rms_norm", direction="backward")
class RmsNormBackwardDescriptor(_Norm):
    """dx = rstd (g - xhat mean(g xhat)), g = dy weight, xhat = x rstd; dweight = sum over rows of dy xhat.

    dx may be the same view as dy or x.

    Args:
        input_shape: Shape of dy, x and dx.
        normalized_shape: The normalised dimensions.
        element: f16, bf16, f32 or f64.
        weight: Whether there is a weight.
        dweight: Whether its gradient is wanted.
    """

    input_shape: Shape
    normalized_shape: Shape
    element: Element = Element.F32
    weight: bool = True
    dweight: bool = True

    def signature(self) -> Signature:
        return Signature(
            self.rows("dy"),
            self.rows("x"),
            self.parameter("weight", self.weight),
            tensor(*self.statistic("rstd")),
            self.result("dx"),
            self.gradient("dweight", self.dweight),
        )


@descriptor(family="norm", op="add_rms_norm")
class AddRmsNormDescriptor(_Norm):
    """sum = x + residual, rounded to the element; y = rms_norm(sum).

    sum may be the same view as x or residual: the residual stream updated in place. `eps` is 1e-5 unless given.

    Args:
        input_shape: Shape of x, residual, y and sum.
        normalized_shape: The normalised dimensions.
        element: f16, bf16, f32 or f64.
        weight: Whether there is a weight.
        save: Whether rstd is an output.
    """

    input_shape: Shape
    normalized_shape: Shape
    element: Element = Element.F32
    weight: bool = True
    save: bool = True

    def signature(self) -> Signature:
        return Signature(
            self.rows("x"),
            self.rows("residual"),
            self.parameter("weight", self.weight),
            self.result("y"),
            self.result("sum"),
            output(*self.statistic("rstd"), present=self.save),
            scalar("eps", default=1e-5),
        )

    def backward(self) -> AddRmsNormBackwardDescriptor:
        """The gradient's descriptor."""
        return AddRmsNormBackwardDescriptor(
            self.input_shape, self.normalized_shape, self.element, self.weight, self.weight
        )


@descriptor(family="norm", op="add_rms_norm", direction="backward")
class AddRmsNormBackwardDescriptor(_Norm):
    """dx of both x and residual: the gradient of rms_norm at sum, plus dsum; dweight as for rms_norm.

    Args:
        input_shape: Shape of dy, dsum, sum and dx.
        normalized_shape: The normalised dimensions.
        element: f16, bf16, f32 or f64.
        weight: Whether there is a weight.
        dweight: Whether its gradient is wanted.
        dsum: Whether there is a gradient of sum.
    """

    input_shape: Shape
    normalized_shape: Shape
    element: Element = Element.F32
    weight: bool = True
    dweight: bool = True
    dsum: bool = True

    def signature(self) -> Signature:
        return Signature(
            self.rows("dy"),
            self.rows("dsum", present=self.dsum),
            self.rows("sum"),
            self.parameter("weight", self.weight),
            tensor(*self.statistic("rstd")),
            self.result("dx"),
            self.gradient("dweight", self.dweight),
        )


@descriptor(family="norm", op="layer_norm")
class LayerNormDescriptor(_Norm):
    """y = (x - mean) rstd weight + bias with rstd = 1 / sqrt(mean((x - mean)^2) + eps), over the trailing dimensions.

    y may be the same view as x. `eps` is 1e-5 unless given.

    Args:
        input_shape: Shape of x and y, rank 1-8.
        normalized_shape: The normalised dimensions.
        element: f16, bf16, f32 or f64.
        weight: Whether there is a weight.
        bias: Whether there is a bias.
        save: Whether mean and rstd are outputs.
    """

    input_shape: Shape
    normalized_shape: Shape
    element: Element = Element.F32
    weight: bool = True
    bias: bool = True
    save: bool = True

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

    def backward(self) -> LayerNormBackwardDescriptor:
        """The gradient's descriptor."""
        return LayerNormBackwardDescriptor(
            self.input_shape, self.normalized_shape, self.element, self.weight, self.weight, self.bias
        )


@descriptor(family="norm", op="layer_norm", direction="backward")
class LayerNormBackwardDescriptor(_Norm):
    """dx = rstd (g - mean(g) - xhat mean(g xhat)), g = dy weight; dweight = sum of dy xhat, dbias of dy.

    dx may be the same view as dy or x.

    Args:
        input_shape: Shape of dy, x and dx.
        normalized_shape: The normalised dimensions.
        element: f16, bf16, f32 or f64.
        weight: Whether there is a weight.
        dweight: Whether its gradient is wanted.
        dbias: Whether the bias's gradient is wanted.
    """

    input_shape: Shape
    normalized_shape: Shape
    element: Element = Element.F32
    weight: bool = True
    dweight: bool = True
    dbias: bool = True

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


OPS = (
    Op("rms_norm", RmsNormDescriptor, RmsNormBackwardDescriptor, "y = x / sqrt(mean(x^2) + eps) * weight"),
    Op("add_rms_norm", AddRmsNormDescriptor, AddRmsNormBackwardDescriptor, "sum = x + residual; y = rms_norm(sum)"),
    Op("layer_norm", LayerNormDescriptor, LayerNormBackwardDescriptor, "y = (x - mean) / std * weight + bias"),
)

Sizes = int | tuple[int, ...] | list[int]


def _eps(x: Arg, eps: Arg | None) -> Any:
    """Torch's default: the epsilon of the element that is computed in."""
    return eps if eps is not None else 2.0**-52 if x.element is Element.F64 else 2.0**-23


@function(tensors="input weight", scalars="eps")
def rms_norm(
    call: Call, input: Arg, normalized_shape: Sizes, weight: Arg | None = None, eps: Arg | None = None
) -> Recipe:
    """`input / sqrt(mean(input^2) + eps) * weight` over the trailing dimensions, as torch.nn.functional.rms_norm."""
    desc = RmsNormDescriptor(input.shape, normalized_shape, input.element, weight is not None, False)  # type: ignore[arg-type]
    return call(desc, x=input, weight=weight, eps=_eps(input, eps))


@function(tensors="input weight", scalars="eps")
def rms_norm_forward(
    call: Call, input: Arg, normalized_shape: Sizes, weight: Arg | None = None, eps: Arg | None = None
) -> Recipe:
    """rms_norm with what its gradient needs: (y, rstd)."""
    desc = RmsNormDescriptor(input.shape, normalized_shape, input.element, weight is not None)  # type: ignore[arg-type]
    return call(desc, x=input, weight=weight, eps=_eps(input, eps))


@function(tensors="dy input weight rstd")
def _rms_norm_backward(
    call: Call, dy: Arg, input: Arg, normalized_shape: Sizes, weight: Arg | None, rstd: Arg
) -> Recipe:
    """(dx, dweight), or dx alone without a weight."""
    given = weight is not None
    desc = RmsNormBackwardDescriptor(input.shape, normalized_shape, input.element, given, given)  # type: ignore[arg-type]
    return call(desc, dy=dy, x=input, weight=weight, rstd=rstd)


@composite
def rms_norm_backward(
    dy: Any, input: Any, normalized_shape: Sizes, weight: Any = None, eps: float | None = None, *, rstd: Any = None
) -> Any:
    """Gradients (dx, dweight) of rms_norm, or dx alone without a weight; `rstd` is recomputed when it is not given."""
    if rstd is None:
        _, rstd = rms_norm_forward(input, normalized_shape, weight, eps)
    return _rms_norm_backward(dy, input, normalized_shape, weight, rstd)


@function(tensors="input residual weight", scalars="eps")
def add_rms_norm(
    call: Call, input: Arg, residual: Arg, normalized_shape: Sizes, weight: Arg | None = None, eps: Arg | None = None
) -> Recipe:
    """(rms_norm(input + residual), input + residual) in one pass; the sum is rounded to the element first."""
    desc = AddRmsNormDescriptor(input.shape, normalized_shape, input.element, weight is not None, False)  # type: ignore[arg-type]
    return call(desc, x=input, residual=residual, weight=weight, eps=_eps(input, eps))


@function(tensors="input residual weight", scalars="eps")
def add_rms_norm_forward(
    call: Call, input: Arg, residual: Arg, normalized_shape: Sizes, weight: Arg | None = None, eps: Arg | None = None
) -> Recipe:
    """add_rms_norm with what its gradient needs: (y, sum, rstd)."""
    desc = AddRmsNormDescriptor(input.shape, normalized_shape, input.element, weight is not None)  # type: ignore[arg-type]
    return call(desc, x=input, residual=residual, weight=weight, eps=_eps(input, eps))


@function(tensors="dy dsum sum weight rstd")
def add_rms_norm_backward(
    call: Call, dy: Arg, dsum: Arg | None, sum: Arg, normalized_shape: Sizes, weight: Arg | None, rstd: Arg
) -> Recipe:
    """(dx, dweight), or dx alone without a weight; dx is the gradient of input and of residual. dsum may be None."""
    given = weight is not None
    desc = AddRmsNormBackwardDescriptor(
        sum.shape,
        normalized_shape,  # type: ignore[arg-type]
        sum.element,
        given,
        given,
        dsum is not None,
    )
    return call(desc, dy=dy, dsum=dsum, sum=sum, weight=weight, rstd=rstd)


@function(tensors="input weight bias", scalars="eps")
def layer_norm(
    call: Call,
    input: Arg,
    normalized_shape: Sizes,
    weight: Arg | None = None,
    bias: Arg | None = None,
    eps: Arg | float = 1e-5,
) -> Recipe:
    """(input - mean) / sqrt(var + eps) * weight + bias over the trailing dimensions, as torch."""
    shape: Any = normalized_shape
    desc = LayerNormDescriptor(input.shape, shape, input.element, weight is not None, bias is not None, False)
    return call(desc, x=input, weight=weight, bias=bias, eps=eps)


@function(tensors="input weight bias", scalars="eps")
def layer_norm_forward(
    call: Call,
    input: Arg,
    normalized_shape: Sizes,
    weight: Arg | None = None,
    bias: Arg | None = None,
    eps: Arg | float = 1e-5,
) -> Recipe:
    """layer_norm with what its gradient needs: (y, mean, rstd)."""
    shape: Any = normalized_shape
    desc = LayerNormDescriptor(input.shape, shape, input.element, weight is not None, bias is not None)
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
) -> Recipe:
    """(dx, dweight, dbias) without those that do not exist; `bias` says whether dbias is wanted."""
    shape: Any = normalized_shape
    given = weight is not None
    desc = LayerNormBackwardDescriptor(input.shape, shape, input.element, given, given, bias)
    return call(desc, dy=dy, x=input, weight=weight, mean=mean, rstd=rstd)


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
    members = shape[1] // num_groups
    return (shape[0], num_groups, members * math.prod(shape[2:])), (1, shape[1], *(1 for _ in shape[2:]))


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


@rms_norm.vjp
def _rms_norm_vjp(input: Any, normalized_shape: Sizes, weight: Any = None, eps: float | None = None) -> tuple[Any, Any]:
    y, rstd = rms_norm_forward(input, normalized_shape, weight, eps)
    return y, lambda dy: _rms_norm_backward(dy, input, normalized_shape, weight, rstd)


@add_rms_norm.vjp
def _add_rms_norm_vjp(
    input: Any, residual: Any, normalized_shape: Sizes, weight: Any = None, eps: float | None = None
) -> tuple[Any, Any]:
    y, total, rstd = add_rms_norm_forward(input, residual, normalized_shape, weight, eps)

    def pull(dy: Any, dsum: Any = None) -> Any:
        found = add_rms_norm_backward(dy, dsum, total, normalized_shape, weight, rstd)
        return (found, found) if weight is None else (found[0], found[0], found[1])

    return (y, total), pull


@layer_norm.vjp
def _layer_norm_vjp(
    input: Any, normalized_shape: Sizes, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> tuple[Any, Any]:
    y, mean, rstd = layer_norm_forward(input, normalized_shape, weight, bias, eps)
    return y, lambda dy: layer_norm_backward(dy, input, normalized_shape, weight, mean, rstd, bias is not None)
