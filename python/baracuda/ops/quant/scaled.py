"""Integers and 8-bit floats with scales. Kernels in csrc/ops/quant, reference in scaled_ref.py."""

from __future__ import annotations

from math import prod
from typing import Any

from baracuda.call.compose import Composer, Value, composed
from baracuda.call.op import NotDifferentiable, Op
from baracuda.describe.dims import Shape, check_axis, shape_text
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.spec import Descriptor, Param, Signature, descriptor, frame, output, tensor
from baracuda.ops.layout.layout import FillDescriptor

RANGES = {Element.I8: (-128, 127), Element.U8: (0, 255), Element.I16: (-32768, 32767), Element.U16: (0, 65535)}
EIGHTS = {Element.F8E4M3: 448, Element.F8E5M2: 57344}
PACKED = {Element.S4: (Element.I8, -8, 7), Element.U4: (Element.U8, 0, 15)}
CODED = (Element.F32, Element.F16, Element.BF16)
_ZEROS = (Element.I8, Element.U8, Element.I16, Element.U16, Element.I32)


@frame
class Scales(Descriptor):
    """Fields and checks that all of these share: scales for blocks, and elements."""

    __slots__ = ()
    shape: Shape
    scale_shape: Shape

    def validate(self) -> None:
        """Scales stand for whole blocks."""
        fits = len(self.shape) == len(self.scale_shape)
        pairs = list(zip(self.shape, self.scale_shape, strict=False))
        for n, m in pairs:
            fits &= n == m or m == 1 or (isinstance(n, int) and isinstance(m, int) and m >= 1 and n % m == 0)
        if not fits:
            want = f"as many sizes as {shape_text(self.shape)}, each a divisor of the one there"
            raise self.wrong("scale_shape", self.scale_shape, want)
        if len(pairs) + sum(m not in (1, n) for n, m in pairs) > 8:
            raise self.wrong("scale_shape", self.scale_shape, "at most 8 dimensions, counting the blocks of each")

    def _coded(self, element: Element, code: Element) -> None:
        if element not in CODED:
            raise self.wrong("element", element, "f32, f16 or bf16")
        if code not in RANGES and code not in EIGHTS:
            raise self.wrong("code_element", code, "i8, u8, i16, u16, f8e4m3 or f8e5m2")

    def check_codes(self, least: int, most: int, code: Element | None = None) -> None:
        """Refuses codes that do not go from below to above zero, within an element."""
        low, high = RANGES.get(code, (-32768, 65535)) if code is not None else (-32768, 65535)
        if not low <= least <= 0:
            raise self.wrong("least", least, f"{low} to 0")
        if not 0 < most <= high:
            raise self.wrong("most", most, f"1 to {high}")

    def scale_tensor(self) -> Param:
        """The argument `scale`."""
        return tensor("scale", self.scale_shape, Element.F32)

    def zero_tensor(self, present: bool) -> Param:
        """The argument `zero_point`."""
        return tensor("zero_point", self.scale_shape, Element.I32, present=present)


@descriptor(family="quant", op="quantize_linear")
class QuantizeLinearDescriptor(Scales):
    """y = the code of x: min(max(round(x / scale) + zero_point, least), most), or the nearest 8-bit float to x / scale.

    In f32, halves to even; NaN has the code of zero, in 8-bit floats NaN, and there zero is zero whatever its scale. Where x has n
    and scale m sizes, each of m stands for a block of n / m: (1, 1) is one scale for all, (N, 1) one for each row, (N, K / 128) one for
    each group of 128.

    Args:
        shape: Shape of x and y, rank 0-8.
        scale_shape: Shape of the f32 tensor `scale`, of x's rank; its sizes divide those of x.
        element: Of x: f32, f16 or bf16.
        code_element: Of y: i8, u8, i16, u16, f8e4m3 or f8e5m2.
        zero_point: There is a tensor `zero_point` of scale's shape (i32); not for 8-bit floats.
        least: The least code; that of the element by default.
        most: The largest one.
        saturate: 8-bit floats: what is beyond their range becomes their largest number; otherwise infinity (f8e5m2) or NaN.
    """

    shape: Shape
    scale_shape: Shape
    element: Element = Element.F32
    code_element: Element = Element.I8
    zero_point: bool = False
    least: int | None = None
    most: int | None = None
    saturate: bool = True

    def validate(self) -> None:
        """Scales fit, and codes are in the range of their element."""
        Scales.validate(self)
        self._coded(self.element, self.code_element)
        if self.zero_point and self.code_element in EIGHTS:
            raise self.wrong(
                "zero_point", self.zero_point, f"False for {self.code_element}, which has zero in the middle"
            )
        self.check_codes(*self.limits(), self.code_element)

    def limits(self) -> tuple[int, int]:
        """The least and the largest code."""
        least, most = RANGES.get(self.code_element, (-1, 1))
        return least if self.least is None else self.least, most if self.most is None else self.most

    def attributes(self) -> dict[str, int | float]:
        least, most = self.limits()
        return {"least": least, "most": most, "saturate": int(self.saturate)}

    def signature(self) -> Signature:
        x, y = tensor("x", self.shape, self.element), output("y", self.shape, self.code_element)
        return Signature(x, self.scale_tensor(), self.zero_tensor(self.zero_point), y)

    def aux_element(self) -> Element:
        return self.code_element


@descriptor(family="quant", op="dequantize_linear")
class DequantizeLinearDescriptor(Scales):
    """y = (x - zero_point) scale, for codes x as quantize_linear makes them.

    In f32, rounded once, then to the element of y.

    Args:
        shape: Shape of x and y, rank 0-8.
        scale_shape: As in QuantizeLinearDescriptor.
        element: Of y: f32, f16 or bf16.
        code_element: Of x: i8, u8, i16, u16, f8e4m3 or f8e5m2.
        zero_point: There is a tensor `zero_point` of scale's shape (i32); not for 8-bit floats.
    """

    shape: Shape
    scale_shape: Shape
    element: Element = Element.F32
    code_element: Element = Element.I8
    zero_point: bool = False

    def validate(self) -> None:
        """Scales fit, and elements are those that there are."""
        Scales.validate(self)
        self._coded(self.element, self.code_element)
        if self.zero_point and self.code_element in EIGHTS:
            raise self.wrong(
                "zero_point", self.zero_point, f"False for {self.code_element}, which has zero in the middle"
            )

    def signature(self) -> Signature:
        x, y = tensor("x", self.shape, self.code_element), output("y", self.shape, self.element)
        return Signature(x, self.scale_tensor(), self.zero_tensor(self.zero_point), y)

    def primary_element(self) -> Element:
        return self.element

    def aux_element(self) -> Element:
        return self.code_element


@descriptor(family="quant", op="dynamic_quantize")
class DynamicQuantizeDescriptor(Scales):
    """Finds a scale for each block of x, and with it y as quantize_linear does.

    Symmetric: scale = max(abs(x)) / most, where `most` is 448 for f8e4m3 and 57344 for f8e5m2. Otherwise, with high = max(x, 0) and
    low = min(x, 0): scale = (high - low) / (most - least) and zero_point = round(least - low / scale) in that range, as ONNX has it. In
    f32, each operation rounded; numbers whose range is beyond f32 have half of it divided by half of most - least, and the largest
    number for a scale that is beyond it, too. A block of zeros has the scale 0; one with NaN has the scale NaN.

    Args:
        shape: Shape of x and y, rank 0-8.
        scale_shape: Shape of scale and zero_point: as in QuantizeLinearDescriptor.
        element: Of x: f32, f16 or bf16.
        code_element: Of y: i8, u8, i16, u16, f8e4m3 or f8e5m2.
        symmetric: There is no zero point; always so for 8-bit floats.
        least: The least code; that of the element by default.
        most: The largest one.
    """

    shape: Shape
    scale_shape: Shape
    element: Element = Element.F32
    code_element: Element = Element.I8
    symmetric: bool = True
    least: int | None = None
    most: int | None = None

    def validate(self) -> None:
        """Scales fit, and codes are in the range of their element."""
        Scales.validate(self)
        self._coded(self.element, self.code_element)
        if self.code_element not in EIGHTS:
            self.check_codes(*self.limits(), self.code_element)
        elif not self.symmetric:
            raise self.wrong("symmetric", self.symmetric, f"True for {self.code_element}, which has zero in the middle")

    def limits(self) -> tuple[int, int]:
        """The least and the largest code."""
        if self.code_element in EIGHTS:
            return 0, EIGHTS[self.code_element]
        least, most = RANGES[self.code_element]
        return least if self.least is None else self.least, most if self.most is None else self.most

    def attributes(self) -> dict[str, int | float]:
        least, most = self.limits()
        return {"least": least, "most": most, "symmetric": int(self.symmetric)}

    def signature(self) -> Signature:
        return Signature(
            tensor("x", self.shape, self.element),
            output("y", self.shape, self.code_element),
            output("scale", self.scale_shape, Element.F32),
            output("zero_point", self.scale_shape, Element.I32, present=not self.symmetric),
        )

    def aux_element(self) -> Element:
        return self.code_element


_WHOLE = NotDifferentiable("codes do not change with the input; fake_quantize has a gradient")
OPS = (
    Op("quantize_linear", QuantizeLinearDescriptor, _WHOLE, "codes of x with given scales and zero points"),
    Op(
        "dequantize_linear",
        DequantizeLinearDescriptor,
        NotDifferentiable("its input is codes"),
        "y = (x - zero_point) scale",
    ),
    Op("dynamic_quantize", DynamicQuantizeDescriptor, _WHOLE, "codes of x, with scales that it finds"),
)


def block_scales(name: str, shape: Shape, scale: Shape, axis: int | None) -> Shape:
    """The sizes of a scale with the rank of the input."""
    if len(scale) <= 1 and prod(scale) == 1:
        return (1,) * len(shape)
    if axis is not None and len(scale) == 1:
        at = check_axis(axis, len(shape), f"{name}: axis")
        return tuple(scale[0] if i == at else 1 for i in range(len(shape)))
    if len(scale) != len(shape):
        want = f"one number, {len(shape)} dimensions as the input has, or one dimension and `axis`"
        raise InvalidProblemError(f"{name}: scale: got {shape_text(scale)}, want {want}.")
    return scale


def laid(c: Composer, x: Any, shape: Shape, element: Element) -> Value:
    """A scale or zero point, tensor or number, of that shape."""
    if isinstance(x, Value):
        if [n for n in x.shape if n != 1] != [n for n in shape if n != 1]:
            raise InvalidProblemError(f"zero_point: got shape {x.shape}, want that of scale, {shape}.")
        if element is Element.I32 and x.element not in _ZEROS:
            want = "integers that i32 holds: i32 or a narrower element. Round and cast it first"
            raise InvalidProblemError(f"zero_point: got element {x.element}, want {want}.")
        return c.reshape(c.cast(x, element), shape)  # type: ignore[arg-type]
    made: Value = c(FillDescriptor(shape, element), value=x)
    return made


@composed(tensors="input scale zero_point")
def quantize_linear(
    c: Composer,
    input: Value,
    scale: Value,
    zero_point: Value | None = None,
    dtype: Any = "i8",
    axis: int | None = None,
    *,
    saturate: bool = True,
    out: Value | None = None,
) -> Value:
    """Codes of `input` with given scales, as ONNX's QuantizeLinear: round(input / scale) + zero_point, within their range.

    Args:
        input: f32, f16 or bf16.
        scale: One number, one for each index along `axis`, or for blocks: as many dimensions as `input` has, of sizes that divide
            its sizes.
        zero_point: Integers of the scale's shape, i32 or narrower; none for 8-bit floats.
        dtype: "i8", "u8", "i16", "u16", "f8e4m3", "f8e5m2", or "s4" or "u4": then two codes to a byte, as pack_int4 has them.
        axis: Where a scale of one dimension belongs.
        saturate: 8-bit floats: what is beyond their range becomes their largest number.
        out: Where the codes go.

    Returns:
        Codes of the shape of `input`; of 4 bits as bytes, half as many along the last dimension.
    """
    from baracuda import functional

    code = Element.coerce(dtype, "quantize_linear: dtype")
    held, least, most = PACKED.get(code, (code, None, None))
    scales = block_scales("quantize_linear", input.shape, scale.shape, axis)
    desc = QuantizeLinearDescriptor(
        input.shape, scales, input.element, held, zero_point is not None, least, most, bool(saturate)
    )
    zero = None if zero_point is None else laid(c, zero_point, scales, Element.I32)
    y: Value = c(desc, x=input, scale=laid(c, scale, scales, Element.F32), zero_point=zero)
    return c.of(functional.pack_int4, y, code) if code in PACKED else y


@composed(tensors="input scale zero_point")
def dequantize_linear(
    c: Composer,
    input: Value,
    scale: Value,
    zero_point: Value | None = None,
    axis: int | None = None,
    dtype: Any = "f32",
    *,
    packed: Any = None,
    out: Value | None = None,
) -> Value:
    """The values of codes, as ONNX's DequantizeLinear: (input - zero_point) scale.

    Args:
        input: Codes (i8, u8, i16, u16, f8e4m3 or f8e5m2), or bytes (u8) of two codes each, with `packed`.
        scale: As in `quantize_linear`.
        zero_point: As in `quantize_linear`.
        axis: Where a scale of one dimension belongs.
        dtype: Element of the result: f32, f16 or bf16.
        packed: "s4" or "u4": bytes are pairs of codes.
        out: Where the values go.

    Returns:
        The values.
    """
    from baracuda import functional

    if packed is not None:
        kind = Element.coerce(packed, "dequantize_linear: packed")
        if kind not in PACKED:
            raise InvalidProblemError(f"dequantize_linear: packed: got {kind}, want s4 or u4.")
        input = c.of(functional.unpack_int4, input, kind, PACKED[kind][0])
    scales = block_scales("dequantize_linear", input.shape, scale.shape, axis)
    element = Element.coerce(dtype, "dequantize_linear: dtype")
    desc = DequantizeLinearDescriptor(input.shape, scales, element, input.element, zero_point is not None)
    zero = None if zero_point is None else laid(c, zero_point, scales, Element.I32)
    y: Value = c(desc, x=input, scale=laid(c, scale, scales, Element.F32), zero_point=zero)
    return y


@composed(tensors="input")
def dynamic_quantize(
    c: Composer, input: Value, block_size: Any = None, dtype: Any = "i8", *, symmetric: bool = True
) -> tuple[Value, ...]:
    """Codes of `input` and the scales that their blocks need; with symmetric=False and "u8" ONNX's DynamicQuantizeLinear.

    Args:
        input: f32, f16 or bf16.
        block_size: For each dimension how many values share a scale, -1 for all: (1, -1) is one scale for each row of a matrix (token,
            output channel), (1, 128) one for each group of 128. None: one for the tensor.
        dtype: As in `quantize_linear`.
        symmetric: Without zero points; 8-bit floats have none.

    Returns:
        The codes and their scales (f32), and without `symmetric` zero points (i32), with a size for each block.
    """
    from baracuda import functional

    code = Element.coerce(dtype, "dynamic_quantize: dtype")
    held, least, most = PACKED.get(code, (code, None, None))
    sizes = (-1,) * input.rank if block_size is None else block_size
    good = isinstance(sizes, (tuple, list)) and len(sizes) == input.rank and all(isinstance(b, int) for b in sizes)
    good = good and all(b == -1 or (b >= 1 and n % b == 0) for n, b in zip(input.shape, sizes, strict=True))
    if not good:
        want = f"a divisor of each size of {shape_text(input.shape)}, or -1, as a tuple of ints"
        raise InvalidProblemError(f"dynamic_quantize: block_size: got {block_size!r}, want {want}.")
    scales = tuple(1 if b in (-1, n) else n // b for n, b in zip(input.shape, sizes, strict=True))
    desc = DynamicQuantizeDescriptor(input.shape, scales, input.element, held, bool(symmetric), least, most)
    y, *found = c(desc, x=input)
    return (c.of(functional.pack_int4, y, code) if code in PACKED else y, *found)
