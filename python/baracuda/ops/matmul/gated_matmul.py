"""A product and the gated activation of its halves in one pass. Kernels in csrc/ops/matmul, reference in gated_matmul_ref.py."""

from __future__ import annotations

from enum import Enum

from baracuda.call.op import NotDifferentiable, Op
from baracuda.describe.dims import Dim, Shape
from baracuda.describe.elements import Element
from baracuda.describe.spec import Descriptor, Signature, descriptor, output, tensor
from baracuda.ops.gated.gated import KINDS, GateHalf
from baracuda.ops.matmul.matmul import common_batch


class Gate(Enum):
    """The function of the gate: those of GatedActivationDescriptor."""

    GLU = "glu"
    REGLU = "reglu"
    SWIGLU = "swiglu"
    GEGLU = "geglu"

    @property
    def code(self) -> int:
        """The number that kernels know it by."""
        return KINDS.index(self.value)


@descriptor(family="matmul", op="gated_matmul", enums={"gate": Gate, "gate_half": GateHalf})
class GatedMatmulDescriptor(Descriptor):
    """out = value * g(gate), where value and gate are the halves of a @ b along its last dimension.

    The first half of a transformer's feed-forward block, of a decoding step's few rows. Sums are those of MatmulDescriptor,
    in the element that it accumulates in; the gate sees them so, and the result is rounded once: for f32 and f64 with the
    bits of matmul and the gated activation one after the other. The error bound counts value's sum of |terms| by the size
    of g(gate), gate's by 1.13 times the size of value and of value's own error bound, and the size of the result.

    Args:
        a_shape: (..., M, K), rank 2-8.
        b_shape: (K, 2 N).
        element: f16, bf16, f32 or f64, of all tensors.
        gate: "glu" (sigmoid), "reglu" (relu), "swiglu" (silu) or "geglu" (gelu with erf).
        gate_half: Which half of the columns is the gate; see GateHalf.
    """

    a_shape: Shape
    b_shape: Shape
    element: Element = Element.F32
    gate: Gate = Gate.SWIGLU
    gate_half: GateHalf = GateHalf.SECOND

    def attributes(self) -> dict[str, int | float]:
        return {"gate": self.gate.code, "gate_first": int(self.gate_half is GateHalf.FIRST)}

    def validate(self) -> None:
        """Inner sizes agree, and b's columns are two halves."""
        common_batch(self, self.a_shape, self.b_shape)
        if len(self.b_shape) != 2:
            raise self.wrong("b_shape", self.b_shape, "two dimensions (K, 2 N)")
        columns = self.b_shape[1]
        if isinstance(columns, Dim) or columns % 2:
            raise self.wrong("b_shape", self.b_shape, "an even number of columns, which are split in two halves")

    def signature(self) -> Signature:
        columns = self.b_shape[1]
        assert isinstance(columns, int)
        return Signature(
            tensor("a", self.a_shape, self.element),
            tensor("b", self.b_shape, self.element),
            output("out", (*self.a_shape[:-1], columns // 2), self.element),
        )


OPS = (
    Op(
        "gated_matmul",
        GatedMatmulDescriptor,
        NotDifferentiable("the gradient needs the halves: take those of matmul and of the gated activation"),
        "out = value * g(gate) of the halves of a @ b",
    ),
)
