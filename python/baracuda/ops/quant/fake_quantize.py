"""What quantization makes of values, with gradients. Kernels in csrc/ops/quant, reference in fake_quantize_ref.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from baracuda.call.compose import Composer
from baracuda.call.op import Arg, Call, Op, Recipe, function
from baracuda.call.steps import made_of
from baracuda.describe.dims import Shape
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.order import ELEMENTWISE
from baracuda.describe.spec import Signature, descriptor, frame, output, tensor
from baracuda.ops.quant.scaled import Scales, block_scales, laid


@frame
class _Fake(Scales):
    """Fields that both directions share."""

    __slots__ = ()
    shape: Shape
    scale_shape: Shape
    least: int
    most: int
    element: Element = Element.F32
    zero_point: bool = False

    def validate(self) -> None:
        Scales.validate(self)
        self.check_codes(self.least, self.most)

    def attributes(self) -> dict[str, int | float]:
        return {"least": self.least, "most": self.most}


@descriptor(family="quant", op="fake_quantize", result_order=ELEMENTWISE)
class FakeQuantizeDescriptor(_Fake):
    """y = (min(max(round(x * (1 / scale)) + zero_point, least), most) - zero_point) scale: what quantization makes of x.

    In f32, or f64 for f64, with 1 / scale in f32, as torch's functions of that name; halves to even, and NaN becomes the value of
    the least code. y may be the same view as x.

    Args:
        shape: Shape of x and y, rank 0-8.
        scale_shape: As in QuantizeLinearDescriptor.
        least: The least code, -32768 to 0.
        most: The largest one, 1 to 65535.
        element: f16, bf16, f32 or f64.
        zero_point: There is a tensor `zero_point` of scale's shape (i32).
    """

    def signature(self) -> Signature:
        x, y = tensor("x", self.shape, self.element), output("y", self.shape, self.element)
        return Signature(x, self.scale_tensor(), self.zero_tensor(self.zero_point), y)


@descriptor(gradient_of=FakeQuantizeDescriptor, result_order=ELEMENTWISE)
class FakeQuantizeBackwardDescriptor(_Fake):
    """dx = dy where the code of x was within the range, else 0 (the straight-through estimate).

    Args:
        shape: Shape of dy, x and dx.
        scale_shape: As in QuantizeLinearDescriptor.
        least: The least code.
        most: The largest one.
        element: f16, bf16, f32 or f64.
        zero_point: There is a tensor `zero_point`.
    """

    def signature(self) -> Signature:
        dy, x = tensor("dy", self.shape, self.element), tensor("x", self.shape, self.element)
        return Signature(
            dy, x, self.scale_tensor(), self.zero_tensor(self.zero_point), output("dx", self.shape, self.element)
        )


OPS = (Op("fake_quantize", FakeQuantizeDescriptor, FakeQuantizeBackwardDescriptor, "what quantization makes of x"),)


def _faked(
    call: Call, name: str, desc: Any, axis: int | None, least: int, most: int, given: Mapping[str, Arg | None]
) -> Recipe:
    """Steps of fake quantization or its gradient, of scales and zero points as numbers or tensors."""
    for option, code, good, want in (
        ("quant_min", least, -32768 <= least <= 0, "-32768 to 0"),
        ("quant_max", most, 0 < most <= 65535, "1 to 65535"),
    ):
        if not good:
            raise InvalidProblemError(f"{option}: got {code}, want {want}.")
    present = {n: x for n, x in given.items() if x is not None}
    x, scale = present["x"], present["scale"]
    scales = block_scales(name, x.shape, scale.shape if scale.is_tensor else (), axis)
    made = desc(x.shape, scales, least, most, x.element, "zero_point" in present)
    elements = {"scale": Element.F32, "zero_point": Element.I32}

    def steps(c: Composer, *values: Any) -> Any:
        named = zip(present, values, strict=True)
        return c(made, **{n: laid(c, v, scales, elements[n]) if n in elements else v for n, v in named})

    return call.steps(steps, *present.values())


@function(tensors="input scale zero_point")
def fake_quantize(
    call: Call, input: Arg, scale: Arg, zero_point: Arg | None = None, quant_min: int = -128, quant_max: int = 127
) -> Recipe:
    """What quantization makes of `input`: (round(input * (1 / scale)) + zero_point, within the range, - zero_point) scale.

    Its gradient with respect to `input` is that of the identity where codes are in range, else 0.

    Args:
        input: f16, bf16, f32 or f64.
        scale: A number, or as in `quantize_linear`.
        zero_point: Integers of the scale's shape, i32 or narrower, or one.
        quant_min: The least code.
        quant_max: The largest one.

    Returns:
        Values of the shape and element of `input`.
    """
    given = {"x": input, "scale": scale, "zero_point": zero_point}
    return _faked(call, "fake_quantize", FakeQuantizeDescriptor, None, quant_min, quant_max, given)


@function(tensors="dy input scale zero_point")
def fake_quantize_backward(
    call: Call,
    dy: Arg,
    input: Arg,
    scale: Arg,
    zero_point: Arg | None = None,
    quant_min: int = -128,
    quant_max: int = 127,
) -> Recipe:
    """Gradient of fake_quantize with respect to `input`: dy where codes are in range, else 0."""
    given = {"dy": dy, "x": input, "scale": scale, "zero_point": zero_point}
    return _faked(call, "fake_quantize", FakeQuantizeBackwardDescriptor, None, quant_min, quant_max, given)


@made_of("fill fake_quantize")
@function(tensors="input scale zero_point")
def fake_quantize_per_tensor_affine(
    call: Call, input: Arg, scale: Arg, zero_point: Arg, quant_min: int, quant_max: int
) -> Recipe:
    """Fake quantization by one scale, number or tensor, as torch.fake_quantize_per_tensor_affine."""
    given = {"x": input, "scale": scale, "zero_point": zero_point}
    name = "fake_quantize_per_tensor_affine"
    return _faked(call, name, FakeQuantizeDescriptor, None, quant_min, quant_max, given)


@made_of("fill fake_quantize_backward")
@function(tensors="dy input scale zero_point")
def fake_quantize_per_tensor_affine_backward(
    call: Call, dy: Arg, input: Arg, scale: Arg, zero_point: Arg, quant_min: int, quant_max: int
) -> Recipe:
    """Gradient of fake_quantize_per_tensor_affine with respect to `input`."""
    given = {"dy": dy, "x": input, "scale": scale, "zero_point": zero_point}
    name = "fake_quantize_per_tensor_affine"
    return _faked(call, name, FakeQuantizeBackwardDescriptor, None, quant_min, quant_max, given)


@made_of("fake_quantize")
@function(tensors="input scale zero_point")
def fake_quantize_per_channel_affine(
    call: Call, input: Arg, scale: Arg, zero_point: Arg, axis: int, quant_min: int, quant_max: int
) -> Recipe:
    """Fake quantization by a scale for each index along `axis`, as torch.fake_quantize_per_channel_affine."""
    given = {"x": input, "scale": scale, "zero_point": zero_point}
    name = "fake_quantize_per_channel_affine"
    return _faked(call, name, FakeQuantizeDescriptor, axis, quant_min, quant_max, given)


@made_of("fake_quantize_backward")
@function(tensors="dy input scale zero_point")
def fake_quantize_per_channel_affine_backward(
    call: Call, dy: Arg, input: Arg, scale: Arg, zero_point: Arg, axis: int, quant_min: int, quant_max: int
) -> Recipe:
    """Gradient of fake_quantize_per_channel_affine with respect to `input`."""
    given = {"dy": dy, "x": input, "scale": scale, "zero_point": zero_point}
    name = "fake_quantize_per_channel_affine"
    return _faked(call, name, FakeQuantizeBackwardDescriptor, axis, quant_min, quant_max, given)


fake_quantize.pulled_by(fake_quantize_backward)
fake_quantize.without_gradient("scale zero_point")
fake_quantize_per_tensor_affine.pulled_by(fake_quantize_per_tensor_affine_backward)
fake_quantize_per_tensor_affine.without_gradient("scale zero_point")
fake_quantize_per_channel_affine.pulled_by(fake_quantize_per_channel_affine_backward)
fake_quantize_per_channel_affine.without_gradient("scale zero_point")
