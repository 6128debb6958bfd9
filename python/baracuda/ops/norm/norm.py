"""Norms over trailing dimensions: rms_norm, add_rms_norm, rms_norm_add.

Kernels in csrc/ops/norm, reference in norm_ref.py. Statistics are saved in f32 (f64 for f64), and the gradients of
weight and bias are summed in a fixed order.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from baracuda.call.compose import Composer, Value
from baracuda.call.op import Arg, Call, Op, Recipe, function
from baracuda.describe.dims import Shape, shape_text
from baracuda.describe.elements import Element
from baracuda.describe.spec import Descriptor, Param, Signature, descriptor, frame, output, scalar, tensor


@frame
class Norm(Descriptor):
    """Fields and checks that all norms share."""

    __slots__ = ()
    input_shape: Shape
    normalized_shape: Shape
    element: Element = Element.F32
    weight: bool = True

    def validate(self) -> None:
        dims = len(self.normalized_shape)
        if dims == 0 or tuple(self.input_shape[-dims:]) != tuple(self.normalized_shape):
            want = f"the last dimensions of {shape_text(self.input_shape)}, at least one"
            raise self.wrong("normalized_shape", self.normalized_shape, want)
        if self.offset() and not self.weight:
            raise self.wrong("weight_offset", self.offset(), "0 without a weight")

    def offset(self) -> float:
        """What is added to every weight."""
        return float(getattr(self, "weight_offset", 0.0))

    def attributes(self) -> dict[str, int | float]:
        return {"dims": len(self.normalized_shape), "weight_offset": self.offset()}

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

    def gradients_wanted(self) -> dict[str, bool]:
        """What the gradient's descriptor is told about the outputs."""
        return {"dweight": self.weight}

    def backward(self) -> Any:
        """The gradient's descriptor: with all gradients of tensors that there are."""
        return replace(super().backward(), **self.gradients_wanted())  # type: ignore[type-var]


@descriptor(family="norm", op="rms_norm")
class RmsNormDescriptor(Norm):
    """y = x rstd (weight + weight_offset) with rstd = 1 / sqrt(mean(x^2) + eps), over the trailing dimensions.

    y may be the same view as x. The scalar `eps` is 1e-5 unless given. A sum with weight_offset is rounded to the
    compute element.

    Args:
        input_shape: Shape of x and y, rank 1-8.
        normalized_shape: The trailing dimensions that are normalised together; an int means one.
        element: f16, bf16, f32 or f64.
        weight: Whether there is a weight.
        save: Whether rstd is an output.
        weight_offset: What is added to every weight: 1 for weights that are stored as distances from 1 (Gemma).
    """

    save: bool = True
    weight_offset: float = 0.0

    def signature(self) -> Signature:
        return Signature(
            self.rows("x"),
            self.parameter("weight", self.weight),
            self.result("y"),
            output(*self.statistic("rstd"), present=self.save),
            scalar("eps", default=1e-5),
        )


@frame
class _RmsNormGradient(Norm):
    """Fields and arguments of the gradients of rms_norm and rms_norm_add."""

    __slots__ = ()
    dweight: bool = True
    weight_offset: float = 0.0

    def signature(self) -> Signature:
        return Signature(
            self.rows("dy"),
            self.rows("x"),
            self.parameter("weight", self.weight),
            tensor(*self.statistic("rstd")),
            self.result("dx"),
            self.gradient("dweight", self.dweight),
        )


@descriptor(gradient_of=RmsNormDescriptor)
class RmsNormBackwardDescriptor(_RmsNormGradient):
    """dx = rstd (g - xhat mean(g xhat)), g = dy (weight + weight_offset), xhat = x rstd; dweight = sum of dy xhat.

    dx may be the same view as dy or x.

    Args:
        input_shape: Shape of dy, x and dx.
        normalized_shape: The normalised dimensions.
        element: f16, bf16, f32 or f64.
        weight: Whether there is a weight.
        dweight: Whether its gradient is wanted.
        weight_offset: What is added to every weight.
    """


@descriptor(family="norm", op="add_rms_norm")
class AddRmsNormDescriptor(Norm):
    """sum = x + residual, rounded to the element; y = rms_norm(sum).

    sum may be the same view as x or residual: the residual stream updated in place. `eps` is 1e-5 unless given.

    Args:
        input_shape: Shape of x, residual, y and sum.
        normalized_shape: The normalised dimensions.
        element: f16, bf16, f32 or f64.
        weight: Whether there is a weight.
        save: Whether rstd is an output.
        weight_offset: What is added to every weight.
    """

    save: bool = True
    weight_offset: float = 0.0

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


@descriptor(gradient_of=AddRmsNormDescriptor)
class AddRmsNormBackwardDescriptor(Norm):
    """dx of both x and residual: the gradient of rms_norm at sum, plus dsum; dweight as for rms_norm.

    Args:
        input_shape: Shape of dy, dsum, sum and dx.
        normalized_shape: The normalised dimensions.
        element: f16, bf16, f32 or f64.
        weight: Whether there is a weight.
        dweight: Whether its gradient is wanted.
        dsum: Whether there is a gradient of sum.
        weight_offset: What is added to every weight.
    """

    dweight: bool = True
    dsum: bool = True
    weight_offset: float = 0.0

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


@descriptor(family="norm", op="rms_norm_add")
class RmsNormAddDescriptor(Norm):
    """y = residual + rms_norm(x), rounded once: a norm behind a layer, whose result joins the residual stream.

    y may be the same view as x or residual. `eps` is 1e-5 unless given.

    Args:
        input_shape: Shape of x, residual and y.
        normalized_shape: The normalised dimensions.
        element: f16, bf16, f32 or f64.
        weight: Whether there is a weight.
        save: Whether rstd is an output.
        weight_offset: What is added to every weight.
    """

    save: bool = True
    weight_offset: float = 0.0

    def signature(self) -> Signature:
        return Signature(
            self.rows("x"),
            self.rows("residual"),
            self.parameter("weight", self.weight),
            self.result("y"),
            output(*self.statistic("rstd"), present=self.save),
            scalar("eps", default=1e-5),
        )


@descriptor(gradient_of=RmsNormAddDescriptor)
class RmsNormAddBackwardDescriptor(_RmsNormGradient):
    """dx and dweight of rms_norm; the gradient of residual is dy itself.

    dx may be the same view as dy or x.

    Args:
        input_shape: Shape of dy, x and dx.
        normalized_shape: The normalised dimensions.
        element: f16, bf16, f32 or f64.
        weight: Whether there is a weight.
        dweight: Whether its gradient is wanted.
        weight_offset: What is added to every weight.
    """


OPS = (
    Op("rms_norm", RmsNormDescriptor, RmsNormBackwardDescriptor, "y = x / sqrt(mean(x^2) + eps) * weight"),
    Op("add_rms_norm", AddRmsNormDescriptor, AddRmsNormBackwardDescriptor, "sum = x + residual; y = rms_norm(sum)"),
    Op("rms_norm_add", RmsNormAddDescriptor, RmsNormAddBackwardDescriptor, "y = residual + rms_norm(x)"),
)

Sizes = int | tuple[int, ...] | list[int]


def _eps(x: Arg, eps: Arg | None) -> Any:
    """Torch's default: the epsilon of the element that is computed in."""
    return eps if eps is not None else 2.0**-52 if x.element is Element.F64 else 2.0**-23


def common_fields(input: Arg, shape: Sizes, weight: Arg | None, offset: float) -> dict[str, Any]:
    """Fields of every norm's descriptor."""
    return {
        "input_shape": input.shape,
        "normalized_shape": shape,
        "element": input.element,
        "weight": weight is not None,
        "weight_offset": offset,
    }


@function(tensors="input weight", scalars="eps")
def rms_norm(
    call: Call,
    input: Arg,
    normalized_shape: Sizes,
    weight: Arg | None = None,
    eps: Arg | None = None,
    weight_offset: float = 0.0,
) -> Recipe:
    """`input / sqrt(mean(input^2) + eps) * weight` over the trailing dimensions, as torch.nn.functional.rms_norm.

    `weight_offset` is added to the weights in the compute element: 1 for models that store them around 0.
    """
    desc = RmsNormDescriptor(**common_fields(input, normalized_shape, weight, weight_offset), save=False)
    return call(desc, x=input, weight=weight, eps=_eps(input, eps))


@function(tensors="input weight", scalars="eps")
def rms_norm_forward(
    call: Call,
    input: Arg,
    normalized_shape: Sizes,
    weight: Arg | None = None,
    eps: Arg | None = None,
    weight_offset: float = 0.0,
) -> Recipe:
    """rms_norm with what its gradient needs: (y, rstd)."""
    desc = RmsNormDescriptor(**common_fields(input, normalized_shape, weight, weight_offset))
    return call(desc, x=input, weight=weight, eps=_eps(input, eps))


@function(tensors="dy input weight rstd", scalars="eps")
def rms_norm_backward(
    call: Call,
    dy: Arg,
    input: Arg,
    normalized_shape: Sizes,
    weight: Arg | None = None,
    eps: Arg | None = None,
    weight_offset: float = 0.0,
    *,
    rstd: Arg | None = None,
) -> Recipe:
    """Gradients (dx, dweight) of rms_norm, or dx alone without a weight; `rstd` is recomputed when it is not given."""

    def steps(c: Composer, dy: Value, input: Value, weight: Value | None, eps: Any) -> Any:
        _, rstd = c.of(rms_norm_forward, input, normalized_shape, weight, eps, weight_offset)
        return c.of(rms_norm_backward, dy, input, normalized_shape, weight, eps, weight_offset, rstd=rstd)

    if rstd is None:
        return call.steps(steps, dy, input, weight, eps)
    fields = common_fields(input, normalized_shape, weight, weight_offset)
    desc = RmsNormBackwardDescriptor(**fields, dweight=weight is not None)
    return call(desc, dy=dy, x=input, weight=weight, rstd=rstd)


@function(tensors="input residual weight", scalars="eps")
def add_rms_norm(
    call: Call,
    input: Arg,
    residual: Arg,
    normalized_shape: Sizes,
    weight: Arg | None = None,
    eps: Arg | None = None,
    weight_offset: float = 0.0,
) -> Recipe:
    """(rms_norm(input + residual), input + residual) in one pass; the sum is rounded to the element first."""
    desc = AddRmsNormDescriptor(**common_fields(input, normalized_shape, weight, weight_offset), save=False)
    return call(desc, x=input, residual=residual, weight=weight, eps=_eps(input, eps))


@function(tensors="input residual weight", scalars="eps")
def add_rms_norm_forward(
    call: Call,
    input: Arg,
    residual: Arg,
    normalized_shape: Sizes,
    weight: Arg | None = None,
    eps: Arg | None = None,
    weight_offset: float = 0.0,
) -> Recipe:
    """add_rms_norm with what its gradient needs: (y, sum, rstd)."""
    desc = AddRmsNormDescriptor(**common_fields(input, normalized_shape, weight, weight_offset))
    return call(desc, x=input, residual=residual, weight=weight, eps=_eps(input, eps))


@function(tensors="dy dsum sum weight rstd")
def add_rms_norm_backward(
    call: Call,
    dy: Arg,
    dsum: Arg | None,
    sum: Arg,
    normalized_shape: Sizes,
    weight: Arg | None,
    rstd: Arg,
    weight_offset: float = 0.0,
) -> Recipe:
    """(dx, dweight), or dx alone without a weight; dx is the gradient of input and of residual. dsum may be None."""
    fields = common_fields(sum, normalized_shape, weight, weight_offset)
    desc = AddRmsNormBackwardDescriptor(**fields, dweight=weight is not None, dsum=dsum is not None)
    return call(desc, dy=dy, dsum=dsum, sum=sum, weight=weight, rstd=rstd)


@function(tensors="input residual weight", scalars="eps")
def rms_norm_add(
    call: Call,
    input: Arg,
    residual: Arg,
    normalized_shape: Sizes,
    weight: Arg | None = None,
    eps: Arg | None = None,
    weight_offset: float = 0.0,
) -> Recipe:
    """`residual + rms_norm(input)` in one pass, rounded once."""
    desc = RmsNormAddDescriptor(**common_fields(input, normalized_shape, weight, weight_offset), save=False)
    return call(desc, x=input, residual=residual, weight=weight, eps=_eps(input, eps))


@function(tensors="input residual weight", scalars="eps")
def rms_norm_add_forward(
    call: Call,
    input: Arg,
    residual: Arg,
    normalized_shape: Sizes,
    weight: Arg | None = None,
    eps: Arg | None = None,
    weight_offset: float = 0.0,
) -> Recipe:
    """rms_norm_add with what its gradient needs: (y, rstd)."""
    desc = RmsNormAddDescriptor(**common_fields(input, normalized_shape, weight, weight_offset))
    return call(desc, x=input, residual=residual, weight=weight, eps=_eps(input, eps))


@function(tensors="dy input weight rstd")
def rms_norm_add_backward(
    call: Call,
    dy: Arg,
    input: Arg,
    normalized_shape: Sizes,
    weight: Arg | None,
    rstd: Arg,
    weight_offset: float = 0.0,
) -> Recipe:
    """(dx, dweight), or dx alone without a weight; the gradient of residual is dy."""
    fields = common_fields(input, normalized_shape, weight, weight_offset)
    desc = RmsNormAddBackwardDescriptor(**fields, dweight=weight is not None)
    return call(desc, dy=dy, x=input, weight=weight, rstd=rstd)


rms_norm.pulled_by(rms_norm_backward, "y rstd", forward=rms_norm_forward)


@add_rms_norm.vjp
def _add_rms_norm_vjp(
    input: Any,
    residual: Any,
    normalized_shape: Sizes,
    weight: Any = None,
    eps: float | None = None,
    weight_offset: float = 0.0,
) -> tuple[Any, Any]:
    y, total, rstd = add_rms_norm_forward(input, residual, normalized_shape, weight, eps, weight_offset)

    def pull(dys: Any) -> Any:
        dy, dsum = dys
        found = add_rms_norm_backward(dy, dsum, total, normalized_shape, weight, rstd, weight_offset)
        return (found, found) if weight is None else (found[0], found[0], found[1])

    return (y, total), pull


@rms_norm_add.vjp
def _rms_norm_add_vjp(
    input: Any,
    residual: Any,
    normalized_shape: Sizes,
    weight: Any = None,
    eps: float | None = None,
    weight_offset: float = 0.0,
) -> tuple[Any, Any]:
    y, rstd = rms_norm_add_forward(input, residual, normalized_shape, weight, eps, weight_offset)

    def pull(dy: Any) -> Any:
        found = rms_norm_add_backward(dy, input, normalized_shape, weight, rstd, weight_offset)
        return (found, dy) if weight is None else (found[0], dy, found[1])

    return y, pull
