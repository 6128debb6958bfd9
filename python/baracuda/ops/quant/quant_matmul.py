"""Products with weights in GGUF's blocks. Kernels in csrc/ops/quant, reference in quant_matmul_ref.py."""

from __future__ import annotations

from baracuda.call.compose import Composer, Value, composed
from baracuda.call.op import Arg, Call, Op, Recipe, function
from baracuda.call.steps import made_of
from baracuda.describe.dims import Dim, Shape, shape_text
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.spec import Descriptor, Signature, descriptor, output, tensor
from baracuda.ops.matmul.matmul import MatmulDescriptor
from baracuda.ops.quant.quant import BlockFormat, format_of

ELEMENTS = (Element.F32, Element.F16, Element.BF16)


@descriptor(family="quant", op="quant_matmul", enums={"format": BlockFormat})
class QuantMatmulDescriptor(Descriptor):
    """y = x @ w.T, with the values of w's blocks: y[..., n] = sum_k x[..., k] w[n, k].

    In f32, sums in blocks of 256 products, then rounded to y's element. The error bound's sum of |terms| is that of
    |x[..., k] w[n, k]|. With `quantize_input`, as ggml multiplies, x is first replaced by integers times a scale: for a block of x,
    32 values long where the format's blocks are, else 256, the scale is s = max(abs(x)) / 127 in f32 and the values are s times the
    nearest integers to x (1 / s), both rounded to f32, halves away from zero (s = 0 where it would be below the smallest normal
    number). That moves each value by up to s / 2, which the bound does not count: it holds for the product with the values that x
    was replaced by.
    It then counts a format's minimum and the integer times its scale apart. There a block of x with NaN or an infinity makes its row of y
    NaN, and a scale of w that is not finite its column.

    Args:
        x_shape: (..., K), rank 1-8; K is a multiple of the format's block.
        w_shape: (N, K), the shape of the values; w has their bytes.
        format: One of BlockFormat.
        element: Of x and y: f16, bf16 or f32.
        quantize_input: Multiply with x rounded to 8-bit integers: one row of q4_0, q8_0 and q4_k takes half the time.
    """

    x_shape: Shape
    w_shape: Shape
    format: BlockFormat
    element: Element = Element.F32
    quantize_input: bool = False

    def validate(self) -> None:
        """Blocks are whole, and rows of x as long as those of w."""
        values = self.format.block_values
        if self.element not in ELEMENTS:
            raise self.wrong("element", self.element, "f32, f16 or bf16")
        if len(self.w_shape) != 2 or isinstance(self.w_shape[1], Dim) or self.w_shape[1] % values:
            want = f"(N, K), K a multiple of {values}, the values of a block of {self.format.value}"
            raise self.wrong("w_shape", self.w_shape, want)
        if not self.x_shape or self.x_shape[-1] != self.w_shape[1]:
            raise self.wrong("x_shape", self.x_shape, f"(..., {self.w_shape[1]}), as w_shape has rows")

    def attributes(self) -> dict[str, int | float]:
        return {"format": self.format.code, "quantize_input": int(self.quantize_input)}

    def output_shape(self) -> Shape:
        """(..., N)."""
        return (*self.x_shape[:-1], self.w_shape[0])

    def signature(self) -> Signature:
        depth = self.w_shape[1]
        assert isinstance(depth, int)
        w_bytes = depth // self.format.block_values * self.format.block_bytes
        return Signature(
            tensor("x", self.x_shape, self.element),
            tensor("w", (self.w_shape[0], w_bytes), Element.U8),
            output("y", self.output_shape(), self.element),
        )


OPS = (Op("quant_matmul", QuantMatmulDescriptor, MatmulDescriptor, "y = x @ w.T with the values of GGUF's blocks w"),)


@function(tensors="input weight")
def quant_matmul(
    call: Call, input: Arg, weight: Arg, format: str, *, quantize_input: bool = False, out: Arg | None = None
) -> Recipe:
    """The product of `input` with the transpose of a weight in blocks of a GGUF format, as `linear` with the weight's values.

    y[..., n] = sum_k input[..., k] w[n, k]. The weight is read where it lies, once for a few rows of `input`.

    Args:
        input: (..., K) of f16, bf16 or f32.
        weight: Bytes (u8), (N, the bytes of K values).
        format: As in `dequantize`.
        quantize_input: Round `input` to 8-bit integers with a scale for every 32 values (256 for the K formats), as ggml does:
            faster with few rows of q4_0, q8_0 and q4_k, with errors of up to 1/254 of the largest of these values.
        out: Where the result goes.

    Returns:
        (..., N), of the element of `input`.

    Raises:
        InvalidProblemError: A shape or an element does not fit; the message says which, and what would.
    """
    made = format_of("quant_matmul", format)
    if weight.rank != 2 or weight.element is not Element.U8 or weight.shape[-1] % made.block_bytes:
        raise InvalidProblemError(
            f"quant_matmul: weight: got {weight.element} {weight.shape}, want u8 with 2 dimensions, the last a multiple of "
            f"{made.block_bytes}, the bytes of a block of {made.value}."
        )
    depth = weight.shape[1] // made.block_bytes * made.block_values
    if input.rank == 0 or input.element not in ELEMENTS or input.shape[-1] != depth:
        got = f"got {input.element} {shape_text(input.shape)}"
        want = f"f32, f16 or bf16 (..., {depth}), the values of a row of the weight"
        raise InvalidProblemError(f"quant_matmul: input: {got}, want {want}.")
    desc = QuantMatmulDescriptor(input.shape, (weight.shape[0], depth), made, input.element, bool(quantize_input))
    return call(desc, x=input, w=weight)


@made_of("dequantize matmul")
@composed(tensors="dy weight")
def quant_matmul_backward(c: Composer, dy: Value, weight: Value, format: str) -> Value:
    """The gradient of quant_matmul with respect to its input, dy @ w. A quantized input has the gradient of one that is not.

    Args:
        dy: (..., N), the gradient with respect to the result.
        weight: The bytes.
        format: Their format.
    """
    from baracuda import functional

    values = c.of(functional.dequantize, weight, format, dy.element)
    found: Value = c.of(functional.matmul, dy, values)
    return found


quant_matmul.pulled_by(quant_matmul_backward)
