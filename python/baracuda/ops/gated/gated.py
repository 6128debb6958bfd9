"""Gated activations: y = value * g(gate). Kernels in csrc/ops/gated, reference in gated_ref.py.

They are the middle of a transformer's feed-forward block; fusing gate and product halves the memory traffic.
"""

from __future__ import annotations

from enum import Enum

from baracuda.call.op import Arg, Call, Op, Recipe, function
from baracuda.call.steps import made_of
from baracuda.describe.dims import Dim, Shape, Size, largest
from baracuda.describe.elements import Element
from baracuda.describe.order import ELEMENTWISE
from baracuda.describe.spec import Kinded, Signature, descriptor, frame, output, tensor

KINDS = ("glu", "reglu", "swiglu", "geglu")


class GateHalf(Enum):
    """Which half the gate function is applied to.

    SECOND is GLU as in torch: y = first * g(second). FIRST is silu_and_mul of inference engines: y = g(first) * second.
    """

    FIRST = "first"
    SECOND = "second"


@frame
class _Gated(Kinded):
    """Fields and checks that forward and backward share."""

    __slots__ = ()
    input_shape: Shape
    split_dim: int | None = -1
    element: Element = Element.F32
    gate_half: GateHalf = GateHalf.SECOND

    def validate(self) -> None:
        if self.split_dim is None:
            return
        if not self.input_shape:
            raise self.wrong("input_shape", self.input_shape, "at least one dimension to split")
        self._count_axis("split_dim", self.input_shape)
        size = self.input_shape[self.split_dim]
        even = size.mul % (2 * size.div) == 0 and size.add % 2 == 0 if isinstance(size, Dim) else size % 2 == 0
        if not even:
            want = f"an even size in dimension {self.split_dim}, which is split in two halves"
            raise self.wrong("input_shape", self.input_shape, want)

    def half_shape(self) -> Shape:
        """The output's shape: the split dimension halved, or the pair's own shape."""
        if self.split_dim is None:
            return self.input_shape
        sizes: list[Size] = list(self.input_shape)
        sizes[self.split_dim] = sizes[self.split_dim] // 2
        return tuple(sizes)

    def attributes(self) -> dict[str, int | float]:
        return {"split_dim": self.split_dim or 0, "gate_first": int(self.gate_half is GateHalf.FIRST)}


@descriptor(family="gated", kinds=KINDS, enums={"gate_half": GateHalf}, result_order=ELEMENTWISE)
class GatedActivationDescriptor(_Gated):
    """y = value * g(gate), where value and gate are the halves of x, or two tensors.

    Args:
        kind: "glu" (sigmoid), "reglu" (relu), "swiglu" (silu) or "geglu" (gelu with erf).
        input_shape: Shape of x, rank 1-8; the split dimension is even. With `split_dim=None`, the shape of value and of gate.
        split_dim: Dimension that is split; None for the form with two tensors.
        element: f16, bf16, f32 or f64.
        gate_half: Which half is the gate; see GateHalf.
    """

    def signature(self) -> Signature:
        joined, half = self.split_dim is not None, self.half_shape()
        return Signature(
            tensor("x", self.input_shape, self.element, present=joined),
            tensor("value", half, self.element, present=not joined),
            tensor("gate", half, self.element, present=not joined),
            output("y", half, self.element),
        )


@descriptor(gradient_of=GatedActivationDescriptor)
class GatedActivationBackwardDescriptor(_Gated):
    """dvalue = dy * g(gate), dgate = dy * value * g'(gate), written to the halves of dx or to two tensors.

    Args:
        kind: As in GatedActivationDescriptor.
        input_shape: Shape of x and dx, or of each tensor of the pair.
        split_dim: Dimension that is split; None for the form with two tensors.
        element: f16, bf16, f32 or f64.
        gate_half: Which half is the gate.
    """

    def signature(self) -> Signature:
        joined, half, e = self.split_dim is not None, self.half_shape(), self.element
        return Signature(
            tensor("dy", half, e),
            tensor("x", self.input_shape, e, present=joined),
            tensor("value", half, e, present=not joined),
            tensor("gate", half, e, present=not joined),
            output("dx", self.input_shape, e, present=joined),
            output("dvalue", half, e, present=not joined),
            output("dgate", half, e, present=not joined),
        )


_SUMMARIES = {
    "glu": "y = value * sigmoid(gate)",
    "reglu": "y = value * max(gate, 0); NaN is kept",
    "swiglu": "y = value * gate * sigmoid(gate)",
    "geglu": "y = value * gate * (1 + erf(gate / sqrt(2))) / 2",
}
OPS = tuple(
    Op(kind, GatedActivationDescriptor, GatedActivationBackwardDescriptor, text) for kind, text in _SUMMARIES.items()
)


def _split(call: Call, kind: str, x: Arg, dim: int, half: GateHalf) -> Recipe:
    desc = GatedActivationDescriptor(kind, x.shape, dim, x.element, half)
    return call(desc, as_lies=x.fit(tuple(map(largest, desc.half_shape()))), x=x)


def _split_backward(call: Call, kind: str, dy: Arg, x: Arg, dim: int, half: GateHalf) -> Recipe:
    return call(GatedActivationBackwardDescriptor(kind, x.shape, dim, x.element, half), dy=dy, x=x)


@function(tensors="input")
def glu(call: Call, input: Arg, dim: int = -1) -> Recipe:
    """`value * sigmoid(gate)` over the halves of `input` along `dim`, as torch.nn.functional.glu."""
    return _split(call, "glu", input, dim, GateHalf.SECOND)


@function(tensors="dy input")
def glu_backward(call: Call, dy: Arg, input: Arg, dim: int = -1) -> Recipe:
    """Gradient of glu with respect to `input`."""
    return _split_backward(call, "glu", dy, input, dim, GateHalf.SECOND)


@function(tensors="input")
def reglu(call: Call, input: Arg, dim: int = -1) -> Recipe:
    """`value * relu(gate)` over the halves of `input` along `dim`; the gate is the second half."""
    return _split(call, "reglu", input, dim, GateHalf.SECOND)


@function(tensors="dy input")
def reglu_backward(call: Call, dy: Arg, input: Arg, dim: int = -1) -> Recipe:
    """Gradient of reglu with respect to `input`."""
    return _split_backward(call, "reglu", dy, input, dim, GateHalf.SECOND)


@function(tensors="input")
def swiglu(call: Call, input: Arg, dim: int = -1) -> Recipe:
    """`value * silu(gate)` over the halves of `input` along `dim`; the gate is the second half."""
    return _split(call, "swiglu", input, dim, GateHalf.SECOND)


@function(tensors="dy input")
def swiglu_backward(call: Call, dy: Arg, input: Arg, dim: int = -1) -> Recipe:
    """Gradient of swiglu with respect to `input`."""
    return _split_backward(call, "swiglu", dy, input, dim, GateHalf.SECOND)


@function(tensors="input")
def geglu(call: Call, input: Arg, dim: int = -1) -> Recipe:
    """`value * gelu(gate)` over the halves of `input` along `dim`; the gate is the second half."""
    return _split(call, "geglu", input, dim, GateHalf.SECOND)


@function(tensors="dy input")
def geglu_backward(call: Call, dy: Arg, input: Arg, dim: int = -1) -> Recipe:
    """Gradient of geglu with respect to `input`."""
    return _split_backward(call, "geglu", dy, input, dim, GateHalf.SECOND)


@made_of("swiglu")
@function(tensors="input")
def silu_and_mul(call: Call, input: Arg, dim: int = -1) -> Recipe:
    """silu(first half) * second half, as inference engines lay out their gate and up projections."""
    return _split(call, "swiglu", input, dim, GateHalf.FIRST)


@made_of("swiglu_backward")
@function(tensors="dy input")
def silu_and_mul_backward(call: Call, dy: Arg, input: Arg, dim: int = -1) -> Recipe:
    """Gradient of silu_and_mul with respect to `input`."""
    return _split_backward(call, "swiglu", dy, input, dim, GateHalf.FIRST)


@made_of("swiglu")
@function(tensors="gate value")
def silu_mul(call: Call, gate: Arg, value: Arg) -> Recipe:
    """silu(gate) * value for two tensors."""
    return call(GatedActivationDescriptor("swiglu", value.shape, None, value.element), value=value, gate=gate)


@made_of("swiglu_backward")
@function(tensors="dy gate value")
def silu_mul_backward(call: Call, dy: Arg, gate: Arg, value: Arg) -> Recipe:
    """Gradients (dgate, dvalue) of silu_mul."""
    desc = GatedActivationBackwardDescriptor("swiglu", value.shape, None, value.element)
    return call(desc, returns=("dgate", "dvalue"), dy=dy, value=value, gate=gate)


glu.pulled_by(glu_backward)
reglu.pulled_by(reglu_backward)
swiglu.pulled_by(swiglu_backward)
geglu.pulled_by(geglu_backward)
silu_and_mul.pulled_by(silu_and_mul_backward)
silu_mul.pulled_by(silu_mul_backward)
