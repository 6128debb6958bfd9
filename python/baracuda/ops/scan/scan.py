"""Running sums and products along an axis. Kernels in csrc/ops/scan, reference in scan_ref.py."""

from __future__ import annotations

from typing import Any

from baracuda.call.op import Arg, Call, Op, Recipe, function
from baracuda.describe.dims import Shape
from baracuda.describe.elements import Element
from baracuda.describe.spec import Kinded, Signature, descriptor, frame, output, tensor
from baracuda.ops.scan.ways import MakeDescriptor, scanned

KINDS = ("cumsum", "cumprod")


@frame
class _Scan(Kinded):
    """Fields that forward and backward share."""

    __slots__ = ()
    shape: Shape
    axis: int = -1
    element: Element = Element.F32
    axis_of = "shape"


@descriptor(family="scan", kinds=KINDS)
class ScanDescriptor(_Scan):
    """y_i = x_0 + ... + x_i along an axis, or the product.

    Integers and bool give i64, which wraps. On a CPU f16, bf16 and f32 are accumulated in f64, on a GPU in f32 with the
    rounding errors of sums beside them. For floats y may be the same view as x.

    Args:
        kind: "cumsum" or "cumprod".
        shape: Shape of x and y, rank 0-8.
        axis: The axis; negative counts from the end.
        element: f16, bf16, f32, f64, an integer or bool.
    """

    def signature(self) -> Signature:
        result = self.element if self.element.is_float else Element.I64
        return Signature(tensor("x", self.shape, self.element), output("y", self.shape, result))


@descriptor(gradient_of=ScanDescriptor)
class ScanBackwardDescriptor(_Scan):
    """Cumsum: dx_i = dy_i + dy_(i + 1) + ...; cumprod: sum over j >= i of dy_j y_j / x_i, right at zeros.

    Args:
        kind: "cumsum" or "cumprod".
        shape: Shape of all tensors.
        axis: The axis.
        element: f16, bf16, f32 or f64.
    """

    def signature(self) -> Signature:
        e = self.element
        dy, dx = tensor("dy", self.shape, e), output("dx", self.shape, e)
        if self.kind == "cumsum":
            return Signature(dy, dx)
        return Signature(dy, tensor("x", self.shape, e), tensor("y", self.shape, e), dx)


OPS = (
    Op("cumsum", ScanDescriptor, ScanBackwardDescriptor, "y_i = x_0 + ... + x_i along an axis"),
    Op("cumprod", ScanDescriptor, ScanBackwardDescriptor, "y_i = x_0 * ... * x_i along an axis"),
)


def _plain(kind: str, element: Element) -> MakeDescriptor:
    return lambda shape, axis: ScanDescriptor(kind, shape, axis, element)


def _gradient(kind: str, element: Element) -> MakeDescriptor:
    return lambda shape, axis: ScanBackwardDescriptor(kind, shape, axis, element)


@function(tensors="input")
def cumsum(
    call: Call,
    input: Arg,
    dim: int,
    *,
    dtype: Any = None,
    reverse: bool = False,
    exclusive: bool = False,
    out: Arg | None = None,
) -> Recipe:
    """Running sum along `dim`, as torch.cumsum; integers and bool give i64. Cast to `dtype` before, if it is given.

    With `reverse` it begins at the end; with `exclusive` each sum leaves out the element at its own place.
    """
    to = None if dtype is None else Element.coerce(dtype, "dtype")
    return scanned(call, _plain("cumsum", to or input.element), dim, to, reverse, exclusive, 0, x=input)


@function(tensors="dy input")
def cumsum_backward(
    call: Call, dy: Arg, dim: int, input: Arg | None = None, *, reverse: bool = False, exclusive: bool = False
) -> Recipe:
    """Gradient of cumsum with respect to its input, of whose element it is where `input` is given."""
    to = None if input is None else input.element
    return scanned(call, _gradient("cumsum", dy.element), dim, to, reverse, exclusive, 0, dy=dy)


@function(tensors="input")
def cumprod(
    call: Call,
    input: Arg,
    dim: int,
    *,
    dtype: Any = None,
    reverse: bool = False,
    exclusive: bool = False,
    out: Arg | None = None,
) -> Recipe:
    """Running product along `dim`, as torch.cumprod; integers and bool give i64. Cast to `dtype` before, if it is given.

    With `reverse` it begins at the end; with `exclusive` each product leaves out the element at its own place.
    """
    to = None if dtype is None else Element.coerce(dtype, "dtype")
    return scanned(call, _plain("cumprod", to or input.element), dim, to, reverse, exclusive, 1, x=input)


@function(tensors="dy input result")
def cumprod_backward(
    call: Call, dy: Arg, input: Arg, result: Arg, dim: int, *, reverse: bool = False, exclusive: bool = False
) -> Recipe:
    """Gradient of cumprod with respect to `input`, given its result; right where elements are zero."""
    make = _gradient("cumprod", dy.element)
    return scanned(call, make, dim, input.element, reverse, exclusive, 0, dy=dy, x=input, y=result)


cumsum.pulled_by(cumsum_backward)
cumprod.pulled_by(cumprod_backward)
