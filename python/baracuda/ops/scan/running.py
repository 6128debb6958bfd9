"""Running extremes and logarithms of running sums of exponentials. Kernels in csrc/ops/scan, reference in running_ref.py."""

from __future__ import annotations

from math import inf

from baracuda import functional as F
from baracuda.call.compose import Composer, Value
from baracuda.call.op import Arg, Call, Op, Recipe, function
from baracuda.describe.dims import Shape, check_axis
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.spec import Descriptor, Kinded, Signature, descriptor, frame, output, tensor
from baracuda.ops.indexing.indexing import GatherBackwardDescriptor
from baracuda.ops.scan.ways import scanned
from baracuda.ops.sort.sort import pulled_from_positions


@descriptor(family="scan", kinds=("cummax", "cummin"))
class CumulativeExtremeDescriptor(Kinded):
    """values_i = the largest, or smallest, of x_0 to x_i along an axis, indices_i = where along it that was.

    Of values that tie, 0 and -0 among them, the last one counts. NaN is larger and smaller than every number.

    Args:
        kind: "cummax" or "cummin".
        shape: Shape of x, values and indices, rank 0-8.
        axis: The axis; negative counts from the end.
        element: Any real element or bool. indices are i64.
    """

    shape: Shape
    axis: int = -1
    element: Element = Element.F32
    axis_of = "shape"

    def signature(self) -> Signature:
        return Signature(
            tensor("x", self.shape, self.element),
            output("values", self.shape, self.element),
            output("indices", self.shape, Element.I64),
        )


@frame
class _LogCumSumExp(Descriptor):
    """Fields that forward and backward share."""

    __slots__ = ()
    shape: Shape
    axis: int = -1
    element: Element = Element.F32
    axis_of = "shape"


@descriptor(family="scan", op="logcumsumexp")
class LogCumSumExpDescriptor(_LogCumSumExp):
    """y_i = log(exp(x_0) + ... + exp(x_i)) along an axis, without overflow.

    Sums are kept in units of the exponential of the largest value so far: on a CPU in f64, on a GPU in the compute element.

    Args:
        shape: Shape of x and y, rank 0-8.
        axis: The axis; negative counts from the end.
        element: f16, bf16, f32 or f64.
    """

    def signature(self) -> Signature:
        return Signature(tensor("x", self.shape, self.element), output("y", self.shape, self.element))


@descriptor(gradient_of=LogCumSumExpDescriptor)
class LogCumSumExpBackwardDescriptor(_LogCumSumExp):
    """dx_i = the sum over j >= i of dy_j exp(x_i - y_j).

    Args:
        shape: Shape of all tensors.
        axis: The axis.
        element: f16, bf16, f32 or f64.
    """

    def signature(self) -> Signature:
        names = ("dy", "x", "y")
        return Signature(*(tensor(n, self.shape, self.element) for n in names), output("dx", self.shape, self.element))


OPS = (
    Op(
        "cummax",
        CumulativeExtremeDescriptor,
        GatherBackwardDescriptor,
        "values_i, indices_i = the largest of x_0 to x_i along an axis",
    ),
    Op(
        "cummin",
        CumulativeExtremeDescriptor,
        GatherBackwardDescriptor,
        "values_i, indices_i = the smallest of x_0 to x_i along an axis",
    ),
    Op(
        "logcumsumexp",
        LogCumSumExpDescriptor,
        LogCumSumExpBackwardDescriptor,
        "y_i = log(exp(x_0) + ... + exp(x_i)) along an axis",
    ),
)


def _extremes(call: Call, kind: str, input: Arg, dim: int, reverse: bool) -> Recipe:
    if not reverse:
        return call(CumulativeExtremeDescriptor(kind, input.shape, dim, input.element), x=input)
    axis = check_axis(dim, max(input.rank, 1), "dim")

    def steps(c: Composer, x: Value) -> tuple[Value, Value]:
        shape = x.shape or (1,)
        back = (slice(None),) * axis + (slice(None, None, -1),)
        values, places = c.new(shape, x.element), c.new(shape, Element.I64)
        desc = CumulativeExtremeDescriptor(kind, shape, axis, x.element)
        c(desc, x=c.reshape(x, shape)[back], values=values[back], indices=places[back])
        indices = c.of(F.sub, shape[axis] - 1, places)  # which count from where the scan begins
        return c.reshape(values, x.shape), c.reshape(indices, x.shape)

    return call.steps(steps, input)


@function(tensors="input")
def cummax(call: Call, input: Arg, dim: int, *, reverse: bool = False) -> Recipe:
    """(values, indices) of the largest so far along `dim`, as torch.cummax: the last of values that tie; NaN stays.

    With `reverse` it begins at the end, and the last one to be met is the first along `dim`.
    """
    return _extremes(call, "cummax", input, dim, reverse)


@function(tensors="input")
def cummin(call: Call, input: Arg, dim: int, *, reverse: bool = False) -> Recipe:
    """(values, indices) of the smallest so far along `dim`, as torch.cummin: the last of values that tie; NaN stays.

    With `reverse` it begins at the end, and the last one to be met is the first along `dim`.
    """
    return _extremes(call, "cummin", input, dim, reverse)


pulled_from_positions(cummax)
pulled_from_positions(cummin)


@function(tensors="input")
def logcumsumexp(
    call: Call, input: Arg, dim: int, *, reverse: bool = False, exclusive: bool = False, out: Arg | None = None
) -> Recipe:
    """Logarithm of the running sum of exponentials along `dim`, as torch.logcumsumexp.

    With `reverse` it begins at the end; with `exclusive` each sum leaves out the element at its own place, and the first
    one, of nothing, is -inf.
    """
    if not input.element.is_float:
        raise InvalidProblemError(f"input: got element {input.element}, want f16, bf16, f32 or f64. Cast it first.")

    def make(shape: Shape, axis: int) -> Descriptor:
        return LogCumSumExpDescriptor(shape, axis, input.element)

    return scanned(call, make, dim, None, reverse, exclusive, -inf, x=input)


@function(tensors="dy input result")
def logcumsumexp_backward(
    call: Call, dy: Arg, input: Arg, result: Arg, dim: int, *, reverse: bool = False, exclusive: bool = False
) -> Recipe:
    """Gradient of logcumsumexp with respect to `input`, given its result."""

    def make(shape: Shape, axis: int) -> Descriptor:
        return LogCumSumExpBackwardDescriptor(shape, axis, dy.element)

    return scanned(call, make, dim, input.element, reverse, exclusive, 0, dy=dy, x=input, y=result)


logcumsumexp.pulled_by(logcumsumexp_backward)
