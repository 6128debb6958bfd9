"""Products with weights of codes and scales. Kernels in csrc/ops/quant, reference in code_linear_ref.py."""

from __future__ import annotations

from typing import Any

from baracuda.call.op import NotDifferentiable, Op
from baracuda.describe.dims import Dim, Shape, shape_text
from baracuda.describe.elements import Element
from baracuda.describe.spec import Descriptor, Signature, descriptor, output, tensor
from baracuda.ops.quant.scaled import CODED, EIGHTS, RANGES

PACKS: dict[Any, int] = {None: 0, Element.U4: 1, Element.S4: 2}


@descriptor(family="quant", op="quant_linear")
class QuantLinearDescriptor(Descriptor):
    """y = x @ w.T + bias, with the values w = (codes - zero_point) scale of a weight, which are found while it is multiplied.

    In f32: values as dequantize_linear finds them, sums in blocks of 256 products, the bias last; then rounded to y's element. The error
    bound's sum of |terms| is that of |x[..., k] w[n, k]| and |bias[n]|.

    Args:
        x_shape: (..., K), rank 1-8.
        w_shape: (N, K); where two codes share a byte, w is (N, K / 2) bytes.
        scale_shape: Shape of the f32 tensor `scale`, of two sizes that divide N and K: (N, K / 128) is one for each group of 128.
        element: Of x, bias and y: f16, bf16 or f32.
        code_element: Of the codes: i8, u8, i16, u16, f8e4m3, f8e5m2, or u4 or s4, two to a byte, the first in its lower half.
        zero_point: There is a tensor `zero_point` of scale's shape (i32); not for 8-bit floats.
        bias: There is a tensor `bias` of shape (N,).
    """

    x_shape: Shape
    w_shape: Shape
    scale_shape: Shape
    element: Element = Element.F32
    code_element: Element = Element.I8
    zero_point: bool = False
    bias: bool = False

    def validate(self) -> None:
        """Rows are of one length, scales stand for whole blocks, and elements are those that there are."""
        if self.element not in CODED:
            raise self.wrong("element", self.element, "f32, f16 or bf16")
        if self.code_element not in (*RANGES, *EIGHTS, *PACKS):
            raise self.wrong("code_element", self.code_element, "i8, u8, i16, u16, f8e4m3, f8e5m2, u4 or s4")
        if len(self.w_shape) != 2 or isinstance(self.w_shape[1], Dim) or (self._packed() and self.w_shape[1] % 2):
            raise self.wrong("w_shape", self.w_shape, "(N, K), K even where two codes share a byte")
        if not self.x_shape or self.x_shape[-1] != self.w_shape[1]:
            raise self.wrong("x_shape", self.x_shape, f"(..., {self.w_shape[1]}), as w_shape has rows")
        fits = len(self.scale_shape) == 2
        for n, m in zip(self.w_shape, self.scale_shape, strict=False):
            fits &= n == m or m == 1 or (isinstance(n, int) and isinstance(m, int) and m >= 1 and n % m == 0)
        if not fits:
            raise self.wrong("scale_shape", self.scale_shape, f"two divisors of {shape_text(self.w_shape)}")
        if self.zero_point and self.code_element in EIGHTS:
            raise self.wrong(
                "zero_point", self.zero_point, f"False for {self.code_element}, which has zero in the middle"
            )

    def _packed(self) -> int:
        return PACKS.get(self.code_element, 0)

    def attributes(self) -> dict[str, int | float]:
        return {"packed": self._packed()}

    def signature(self) -> Signature:
        rows, depth = self.w_shape
        assert isinstance(depth, int)
        return Signature(
            tensor("x", self.x_shape, self.element),
            tensor("w", (rows, depth // 2 if self._packed() else depth), self.aux_element()),
            tensor("scale", self.scale_shape, Element.F32),
            tensor("zero_point", self.scale_shape, Element.I32, present=self.zero_point),
            tensor("bias", (rows,), self.element, present=self.bias),
            output("y", (*self.x_shape[:-1], rows), self.element),
        )

    def aux_element(self) -> Element:
        return Element.U8 if self._packed() else self.code_element


OPS = (
    Op(
        "quant_linear",
        QuantLinearDescriptor,
        NotDifferentiable("the weight is codes; the function quant_linear has the gradients of its input and bias"),
        "y = x @ w.T + bias, with the values of codes w",
    ),
)
