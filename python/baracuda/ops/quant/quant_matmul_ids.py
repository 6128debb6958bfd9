"""Products with the experts' weights in GGUF's blocks. Kernels in csrc/ops/quant, reference in quant_matmul_ids_ref.py."""

from __future__ import annotations

from typing import Any

from baracuda.call.compose import Composer, Value, composed
from baracuda.call.op import NotDifferentiable, Op
from baracuda.call.steps import made_of
from baracuda.describe.dims import Dim, Shape, shape_text
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.spec import Descriptor, Signature, descriptor, output, tensor
from baracuda.ops.quant.quant import BlockFormat, format_of
from baracuda.ops.quant.quant_matmul import ELEMENTS

INDICES = (Element.I64, Element.I32, Element.U32)


@descriptor(family="quant", op="quant_matmul_ids", enums={"format": BlockFormat})
class QuantMatmulIdsDescriptor(Descriptor):
    """y[..., n] = sum_k x[..., k] w[ids[...], n, k]: each row of x times the weight that its id names, as ggml's mul_mat_id.

    Sums, `quantize_input` and the bound are those of QuantMatmulDescriptor; on a cpu each row is multiplied by itself. Every id is checked
    before the first write: one that is negative or too large is an IndexOutOfRangeError.

    Args:
        x_shape: (..., K), rank 1-8; K is a multiple of the format's block.
        w_shape: (E, N, K), the shape of the values; w has their bytes.
        format: One of BlockFormat.
        element: Of x and y: f16, bf16 or f32.
        index_element: Of ids (...): i64, i32 or u32.
        quantize_input: Multiply with x rounded to 8-bit integers: one row of q4_0, q8_0 and q4_k takes half the time.
    """

    x_shape: Shape
    w_shape: Shape
    format: BlockFormat
    element: Element = Element.F32
    index_element: Element = Element.I64
    quantize_input: bool = False

    def validate(self) -> None:
        """Blocks are whole, and rows of x as long as those of w."""
        values = self.format.block_values
        if self.element not in ELEMENTS:
            raise self.wrong("element", self.element, "f32, f16 or bf16")
        if self.index_element not in INDICES:
            raise self.wrong("index_element", self.index_element, "i64, i32 or u32")
        if len(self.w_shape) != 3 or isinstance(self.w_shape[2], Dim) or self.w_shape[2] % values:
            want = f"(E, N, K), K a multiple of {values}, the values of a block of {self.format.value}"
            raise self.wrong("w_shape", self.w_shape, want)
        if not self.x_shape or self.x_shape[-1] != self.w_shape[2]:
            raise self.wrong("x_shape", self.x_shape, f"(..., {self.w_shape[2]}), as w_shape has rows")

    def attributes(self) -> dict[str, int | float]:
        return {"format": self.format.code, "quantize_input": int(self.quantize_input)}

    def signature(self) -> Signature:
        depth = self.w_shape[2]
        assert isinstance(depth, int)
        w_bytes = depth // self.format.block_values * self.format.block_bytes
        return Signature(
            tensor("x", self.x_shape, self.element),
            tensor("w", (*self.w_shape[:2], w_bytes), Element.U8),
            tensor("ids", self.x_shape[:-1], self.index_element),
            output("y", (*self.x_shape[:-1], self.w_shape[1]), self.element),
        )

    def aux_element(self) -> Element:
        return self.index_element


OPS = (
    Op(
        "quant_matmul_ids",
        QuantMatmulIdsDescriptor,
        NotDifferentiable("weights are codes; the function quant_matmul_ids has the gradient of its input"),
        "each row of x times the transpose of the weight that its id names, in GGUF's blocks",
    ),
)


@composed(tensors="input weight ids")
def quant_matmul_ids(
    c: Composer,
    input: Value,
    weight: Value,
    ids: Value,
    format: str,
    *,
    quantize_input: bool = False,
    out: Value | None = None,
) -> Value:
    """Products with experts' weights: y[..., n] = sum_k input[..., k] w[ids[...], n, k], as ggml's mul_mat_id.

    Args:
        input: (..., K) of f16, bf16 or f32, whose leading dimensions broadcast to those of `ids`: (tokens, 1, K) where ids are
            (tokens, experts of each).
        weight: Bytes (u8), (E, N, the bytes of K values).
        ids: i64, i32 or u32, from 0 to E - 1.
        format: As in `dequantize`.
        quantize_input: As in `quant_matmul`.
        out: Where the result goes.

    Returns:
        (*ids.shape, N), of the element of `input`.

    Raises:
        IndexOutOfRangeError: An id is none of a weight.
    """
    made = format_of("quant_matmul_ids", format)
    if weight.rank != 3 or weight.element is not Element.U8 or weight.shape[-1] % made.block_bytes:
        want = f"u8 with 3 dimensions, the last a multiple of {made.block_bytes}, the bytes of a block of {made.value}"
        raise InvalidProblemError(
            f"quant_matmul_ids: weight: got {weight.element} {shape_text(weight.shape)}, want {want}."
        )
    depth = weight.shape[2] // made.block_bytes * made.block_values
    if input.rank == 0 or input.element not in ELEMENTS or input.shape[-1] != depth:
        want = f"f32, f16 or bf16 (..., {depth}), the values of a row of the weight"
        raise InvalidProblemError(
            f"quant_matmul_ids: input: got {input.element} {shape_text(input.shape)}, want {want}."
        )
    rows = input.expand((*ids.shape, depth))
    shape = (*weight.shape[:2], depth)
    desc = QuantMatmulIdsDescriptor(rows.shape, shape, made, input.element, ids.element, bool(quantize_input))
    y: Value = c(desc, x=rows, w=weight, ids=ids)
    return y


@made_of("dequantize matmul eq where fill sum_to")
@composed(tensors="dy weight ids")
def quant_matmul_ids_backward(c: Composer, dy: Value, weight: Value, ids: Value, format: str, shape: Any) -> Value:
    """The gradient of quant_matmul_ids with respect to its input: each row of dy times the weight that its id names.

    One expert after another is decoded and multiplied with all rows, of which its own are kept. A quantized input has the gradient of one
    that is not.

    Args:
        dy: (*ids.shape, N), the gradient with respect to the result.
        weight: The bytes.
        ids: As in quant_matmul_ids.
        format: Of the bytes.
        shape: That of the input.
    """
    from baracuda import functional

    of_rows = c.reshape(ids, (*ids.shape, 1))
    made = format_of("quant_matmul_ids_backward", format)
    depth = weight.shape[2] // made.block_bytes * made.block_values
    found: Value = c.zeros((*ids.shape, depth), dy.element)
    for expert in range(weight.shape[0]):
        values = c.of(functional.dequantize, weight[expert], format, dy.element)
        own = c.of(functional.eq, of_rows, expert)
        found = c.of(functional.where, own, c.of(functional.matmul, dy, values), found)
    summed: Value = c.of(functional.sum_to, found, tuple(shape))
    return summed


quant_matmul_ids.pulled_by(quant_matmul_ids_backward)
