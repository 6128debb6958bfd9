"""Gated activations whose results are codes. Kernels in csrc/ops/gated, reference in gated_quantize_ref.py."""

from __future__ import annotations

from typing import Any

from baracuda.call.op import Arg, Call, Op, Recipe, function
from baracuda.call.steps import made_of
from baracuda.describe.dims import Shape
from baracuda.describe.elements import Element
from baracuda.describe.spec import Kinded, Signature, descriptor, tensor
from baracuda.ops.gated.gated import GatedActivationDescriptor, GateHalf
from baracuda.ops.quant.epilogue import WHOLE, check_codes, code_of, coded, coded_params

KINDS = ("glu_quantize", "reglu_quantize", "swiglu_quantize", "geglu_quantize")


@descriptor(family="gated", kinds=KINDS, enums={"gate_half": GateHalf})
class GatedQuantizeDescriptor(Kinded):
    """y = the codes of value * g(gate), where value and gate are the halves of x, or two tensors.

    A scale is given (one f32, and codes are those of quantize_linear), or found for each row or group of a row along the last
    dimension of y as dynamic_quantize does: scale = max(abs(values)) / most, where `most` is 127, 448 (f8e4m3) or 57344
    (f8e5m2). Codes are of the values in f32, which are not rounded to the element of x before: a code is the nearest one to
    value / scale for values and scale within their bound, so that it is at most one off where that lies between two. A row
    with NaN has the scale NaN and in integers codes of 0; zeros have the scale 0.

    Args:
        kind: "glu_quantize" (sigmoid), "reglu_quantize", "swiglu_quantize" or "geglu_quantize" (gelu with erf).
        input_shape: Shape of x, rank 1-8; the split dimension is even. With `split_dim=None`, the shape of value and of gate.
        split_dim: Dimension that is split; None for the form with two tensors.
        element: Of the inputs: f16, bf16 or f32.
        gate_half: Which half is the gate; see GateHalf.
        code_element: Of y: i8, f8e4m3 or f8e5m2.
        given: Whether the scale is given.
        group: How many values along the last dimension share a scale; None: all of a row. scale is (..., K / group), or (..., 1).
    """

    input_shape: Shape
    split_dim: int | None = -1
    element: Element = Element.F32
    gate_half: GateHalf = GateHalf.SECOND
    code_element: Element = Element.I8
    given: bool = False
    group: int | None = None

    def validate(self) -> None:
        plain = self._plain()
        if self.split_dim is not None:
            self._count_axis("split_dim", self.input_shape)
        check_codes(self, plain.half_shape(), self.element, self.code_element, self.group, self.given)

    def _plain(self) -> GatedActivationDescriptor:
        kind = self.kind.removesuffix("_quantize")
        return GatedActivationDescriptor(kind, self.input_shape, self.split_dim, self.element, self.gate_half)

    def attributes(self) -> dict[str, int | float]:
        return {**self._plain().attributes(), "group": self.group or 0}

    def signature(self) -> Signature:
        plain = self._plain().signature()
        half = plain["y"].shape
        joined = self.split_dim is not None
        return Signature(
            tensor("x", self.input_shape, self.element, present=joined),
            tensor("value", half, self.element, present=not joined),
            tensor("gate", half, self.element, present=not joined),
            *coded_params(half, self.code_element, self.group, self.given),
        )

    def aux_element(self) -> Element:
        return self.code_element


OPS = tuple(
    Op(kind, GatedQuantizeDescriptor, WHOLE, f"codes of {kind.removesuffix('_quantize')}, with a scale given or found")
    for kind in KINDS
)


def _coded(
    call: Call, kind: str, x: Arg, dim: int, half: GateHalf, dtype: Any, scale: Arg | None, group: int | None
) -> Recipe:
    code = code_of(kind, dtype)
    desc = GatedQuantizeDescriptor(kind, x.shape, dim, x.element, half, code, scale is not None, group)
    return coded(call, desc, scale, x=x)


@function(tensors="input scale")
def glu_quantize(
    call: Call, input: Arg, dim: int = -1, dtype: Any = "i8", *, scale: Arg | None = None, group: int | None = None
) -> Recipe:
    """Codes of `glu(input, dim)` in one pass, as `swiglu_quantize`."""
    return _coded(call, "glu_quantize", input, dim, GateHalf.SECOND, dtype, scale, group)


@function(tensors="input scale")
def reglu_quantize(
    call: Call, input: Arg, dim: int = -1, dtype: Any = "i8", *, scale: Arg | None = None, group: int | None = None
) -> Recipe:
    """Codes of `reglu(input, dim)` in one pass, as `swiglu_quantize`."""
    return _coded(call, "reglu_quantize", input, dim, GateHalf.SECOND, dtype, scale, group)


@function(tensors="input scale")
def swiglu_quantize(
    call: Call, input: Arg, dim: int = -1, dtype: Any = "i8", *, scale: Arg | None = None, group: int | None = None
) -> Recipe:
    """Codes of `swiglu(input, dim)` in one pass: no values are written.

    Args:
        input: f32, f16 or bf16; the gate is the second half.
        dim: Dimension that is split.
        dtype: "i8", "f8e4m3" or "f8e5m2".
        scale: One for all, as `quantize_linear` takes it; otherwise scales are found as `dynamic_quantize` does.
        group: How many values along the last dimension share a scale; None: all of a row.

    Returns:
        The codes, and the scales (f32, (..., 1) or (..., K / group)) if they are found.
    """
    return _coded(call, "swiglu_quantize", input, dim, GateHalf.SECOND, dtype, scale, group)


@function(tensors="input scale")
def geglu_quantize(
    call: Call, input: Arg, dim: int = -1, dtype: Any = "i8", *, scale: Arg | None = None, group: int | None = None
) -> Recipe:
    """Codes of `geglu(input, dim)` in one pass, as `swiglu_quantize`."""
    return _coded(call, "geglu_quantize", input, dim, GateHalf.SECOND, dtype, scale, group)


@made_of("fill swiglu_quantize")
@function(tensors="input scale")
def silu_and_mul_quantize(
    call: Call, input: Arg, dim: int = -1, dtype: Any = "i8", *, scale: Arg | None = None, group: int | None = None
) -> Recipe:
    """Codes of `silu_and_mul(input, dim)` in one pass: as `swiglu_quantize`, but the gate is the first half."""
    return _coded(call, "swiglu_quantize", input, dim, GateHalf.FIRST, dtype, scale, group)
