"""Variances, norms and cosine similarity. Kernels in csrc/ops/reduce, reference in variance_ref.py."""

from __future__ import annotations

import math
from typing import Any

from baracuda.call.halves import in_f32
from baracuda.call.op import Arg, Call, Op, Recipe, function
from baracuda.describe.dims import Shape
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.promotion import broadcast
from baracuda.describe.spec import Descriptor, Kinded, Signature, descriptor, frame, output, scalar, tensor
from baracuda.ops.reduce.reduce import Axes, ReduceShape, axes_of

KINDS = ("var", "std", "var_mean", "std_mean")


@frame
class _Variance(ReduceShape, Kinded):
    """Fields and attributes that forward and backward share."""

    __slots__ = ()
    correction: float = 1.0

    def attributes(self) -> dict[str, int | float]:
        return {**super().attributes(), "correction": float(self.correction)}


@descriptor(family="reduce", kinds=KINDS)
class VarianceDescriptor(_Variance):
    """y = sum((x - mean)^2) / max(count - correction, 0) over `axes`, or its square root.

    "var_mean" and "std_mean" give the mean, too. One pass over memory: blocks are centred on their own mean and merged
    (Chan), the mean being kept in two numbers, so that the error is of the size of eps var(x), however far from 0 x lies.
    Where a value is infinite or NaN all results are NaN.

    Args:
        kind: "var", "std", "var_mean" or "std_mean".
        input_shape: Shape of x, rank 0-8.
        axes: Axes that are folded; None folds all of them.
        keepdim: Whether the folded axes stay, with size 1.
        element: f16, bf16, f32 or f64.
        correction: What is taken from the count: 1 for a sample, 0 for a population.
    """

    def signature(self) -> Signature:
        reduced, e = self.reduced_shape(), self.element
        x = tensor("x", self.input_shape, e)
        if self.kind in ("var", "std"):
            return Signature(x, output("y", reduced, e))
        return Signature(x, output(self.kind[:3], reduced, e), output("mean", reduced, e))


@descriptor(gradient_of=VarianceDescriptor)
class VarianceBackwardDescriptor(_Variance):
    """dx = dy 2 (x - mean) / (count - correction); for a standard deviation y half of that over y, 0 where y is 0.

    The mean is computed again. With a gradient of the mean, dmean / count is added.

    Args:
        kind: As in VarianceDescriptor.
        input_shape: Shape of x and dx.
        axes: Axes that were folded.
        keepdim: Whether they stayed.
        element: f16, bf16, f32 or f64.
        correction: As in VarianceDescriptor.
    """

    def signature(self) -> Signature:
        reduced, e = self.reduced_shape(), self.element
        own, both = self.kind[:3], self.kind.endswith("mean")
        given = [tensor("d" + own if both else "dy", reduced, e)]
        given += [tensor("dmean", reduced, e)] if both else []
        given += [tensor("x", self.input_shape, e)]
        given += [tensor(own if both else "y", reduced, e)] if own == "std" else []
        return Signature(*given, output("dx", self.input_shape, e))


@frame
class _Norm(ReduceShape):
    """Fields and attributes that forward and backward share."""

    __slots__ = ()
    p: float = 2.0
    unbounded = frozenset({"p"})

    def attributes(self) -> dict[str, int | float]:
        return {**super().attributes(), "p": float(self.p)}


@descriptor(family="reduce", op="norm")
class VectorNormDescriptor(_Norm):
    """y = (sum |x|^p)^(1/p) over `axes`; max |x| for inf, min |x| for -inf, how many are not zero for p = 0.

    On cpu powers may leave the range of f32 (f64 for f64): such rows are done again over their largest element. On GPUs
    they overflow, or are lost, as in torch. Of nothing it is 0; an infinite or negative p is refused there.

    Args:
        input_shape: Shape of x, rank 0-8.
        axes: Axes that are folded; None folds all of them.
        keepdim: Whether the folded axes stay, with size 1.
        element: f16, bf16, f32 or f64.
        p: Any number, or infinite.
    """

    def validate(self) -> None:
        ReduceShape.validate(self)
        if math.isnan(self.p):
            raise self.wrong("p", self.p, "a number")

    def signature(self) -> Signature:
        return Signature(tensor("x", self.input_shape, self.element), output("y", self.reduced_shape(), self.element))


@descriptor(gradient_of=VectorNormDescriptor)
class VectorNormBackwardDescriptor(_Norm):
    """dx = dy sign(x) (|x| / y)^(p - 1), 0 where x is 0; infinite p: all |x| equal to y share dy evenly.

    Args:
        input_shape: Shape of x and dx.
        axes: Axes that were folded.
        keepdim: Whether they stayed.
        element: f16, bf16, f32 or f64.
        p: As in VectorNormDescriptor.
    """

    def signature(self) -> Signature:
        reduced, e = self.reduced_shape(), self.element
        given = (tensor("dy", reduced, e), tensor("x", self.input_shape, e), tensor("y", reduced, e))
        return Signature(*given, output("dx", self.input_shape, e))


@descriptor(family="reduce", op="cosine_similarity")
class CosineSimilarityDescriptor(Descriptor):
    """y = sum(x1 x2) / (max(|x1|, eps) max(|x2|, eps)) along an axis of their common shape, with the scalar eps.

    Args:
        x1_shape: Shape of x1.
        x2_shape: Shape of x2; both are broadcast to their common shape.
        axis: The axis that is folded.
        element: f16, bf16, f32 or f64.
    """

    x1_shape: Shape
    x2_shape: Shape
    axis: int = 1
    element: Element = Element.F32

    def validate(self) -> None:
        shape = broadcast(self.x1_shape, self.x2_shape, type(self).__name__)
        if not shape:
            raise self.wrong("x1_shape", self.x1_shape, "at least one dimension")
        self._count_axis("axis", shape)

    def signature(self) -> Signature:
        shape = broadcast(self.x1_shape, self.x2_shape, type(self).__name__)
        kept = tuple(s for i, s in enumerate(shape) if i != self.axis)
        return Signature(
            tensor("x1", self.x1_shape, self.element),
            tensor("x2", self.x2_shape, self.element),
            output("y", kept, self.element),
            scalar("eps", default=1e-8),
        )

    def backward(self) -> CosineSimilarityBackwardDescriptor:
        """The gradient's descriptor, with both shapes the same."""
        return CosineSimilarityBackwardDescriptor(self.x1_shape, self.axis, self.element)


@descriptor(family="reduce", op="cosine_similarity", direction="backward")
class CosineSimilarityBackwardDescriptor(Descriptor):
    """dx1 = dy (x2 / (|x1| |x2|) - y x1 / |x1|^2), and dx2 likewise; a length below eps counts as eps, a constant.

    Args:
        input_shape: Shape of x1, x2, dx1 and dx2.
        axis: The axis that was folded.
        element: f16, bf16, f32 or f64.
    """

    input_shape: Shape
    axis: int = 1
    element: Element = Element.F32
    axis_of = "input_shape"

    def validate(self) -> None:
        if not self.input_shape:
            raise self.wrong("input_shape", self.input_shape, "at least one dimension")

    def signature(self) -> Signature:
        kept = tuple(s for i, s in enumerate(self.input_shape) if i != self.axis)
        given = [tensor(n, self.input_shape, self.element) for n in ("x1", "x2")]
        made = [output(n, self.input_shape, self.element) for n in ("dx1", "dx2")]
        return Signature(tensor("dy", kept, self.element), *given, *made, scalar("eps", default=1e-8))


_VARIANCE = "sum((x - mean)^2) / (count - correction)"
OPS = (
    Op("var", VarianceDescriptor, VarianceBackwardDescriptor, f"y = {_VARIANCE} over axes"),
    Op("std", VarianceDescriptor, VarianceBackwardDescriptor, f"y = sqrt({_VARIANCE}) over axes"),
    Op(
        "var_mean", VarianceDescriptor, VarianceBackwardDescriptor, f"var, mean = {_VARIANCE}, sum(x) / count over axes"
    ),
    Op(
        "std_mean",
        VarianceDescriptor,
        VarianceBackwardDescriptor,
        f"std, mean = sqrt({_VARIANCE}), sum(x) / count over axes",
    ),
    Op("norm", VectorNormDescriptor, VectorNormBackwardDescriptor, "y = (sum |x|^p)^(1/p) over axes"),
    Op(
        "cosine_similarity",
        CosineSimilarityDescriptor,
        CosineSimilarityBackwardDescriptor,
        "y = sum(x1 x2) / (max(|x1|, eps) max(|x2|, eps)) along an axis",
    ),
)

Number = int | float | None


def _float(name: str, x: Arg) -> None:
    if not x.element.is_float:
        raise InvalidProblemError(f"{name}: input: got element {x.element}, want a float element. Cast it first.")


def _options(kind: str, dim: Any, unbiased: Any, correction: Number) -> tuple[Axes, float]:
    """Dimensions and correction: `unbiased` says the latter in torch's older words, also in the place of `dim`."""
    if isinstance(dim, bool) and unbiased is None:
        dim, unbiased = None, dim
    if unbiased is None:
        return dim, 1.0 if correction is None else float(correction)
    if not isinstance(unbiased, bool) or correction is not None:
        got = f"{unbiased!r} and correction={correction}"
        raise InvalidProblemError(f"{kind}: unbiased: got {got}, want True or False, or a correction instead.")
    return dim, float(unbiased)


def _variance(
    call: Call, kind: str, x: Arg, dim: Axes, unbiased: bool | None, correction: Number, keepdim: bool
) -> Recipe:
    _float(kind, x)
    dim, by = _options(kind, dim, unbiased, correction)
    return call(VarianceDescriptor(kind, x.shape, axes_of(dim), keepdim, x.element, by), x=x)


def _variance_gradient(
    call: Call,
    kind: str,
    x: Arg,
    dim: Axes,
    correction: Number,
    keepdim: bool,
    unbiased: bool | None,
    **given: Any,
) -> Recipe:
    dim, by = _options(kind, dim, unbiased, correction)
    return call(VarianceBackwardDescriptor(kind, x.shape, axes_of(dim), keepdim, x.element, by), x=x, **given)


@function(tensors="input")
def var(
    call: Call,
    input: Arg,
    dim: Axes = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: Number = None,
    out: Arg | None = None,
) -> Recipe:
    """Variance over `dim` (all axes by default), as torch.var: over the count less `correction`, 1 by default.

    `unbiased` says 1 or 0, also in the place of `dim`.
    """
    return _variance(call, "var", input, dim, unbiased, correction, keepdim)


@function(tensors="input")
def std(
    call: Call,
    input: Arg,
    dim: Axes = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: Number = None,
    out: Arg | None = None,
) -> Recipe:
    """Standard deviation over `dim` (all axes by default), as torch.std: over the count less `correction`, 1 by default.

    `unbiased` says 1 or 0, also in the place of `dim`.
    """
    return _variance(call, "std", input, dim, unbiased, correction, keepdim)


@function(tensors="input")
def var_mean(
    call: Call,
    input: Arg,
    dim: Axes = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: Number = None,
) -> Recipe:
    """(variance, mean) over `dim` (all axes by default), as torch.var_mean: over the count less `correction`, 1 by default.

    `unbiased` says 1 or 0, also in the place of `dim`.
    """
    return _variance(call, "var_mean", input, dim, unbiased, correction, keepdim)


@function(tensors="input")
def std_mean(
    call: Call,
    input: Arg,
    dim: Axes = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: Number = None,
) -> Recipe:
    """(standard deviation, mean) over `dim` (all axes by default), as torch.std_mean: over the count less `correction`, 1 by default.

    `unbiased` says 1 or 0, also in the place of `dim`.
    """
    return _variance(call, "std_mean", input, dim, unbiased, correction, keepdim)


@function(tensors="dy input")
def var_backward(
    call: Call,
    dy: Arg,
    input: Arg,
    dim: Axes = None,
    correction: Number = None,
    keepdim: bool = False,
    unbiased: bool | None = None,
) -> Recipe:
    """Gradient of var with respect to `input`."""
    return _variance_gradient(call, "var", input, dim, correction, keepdim, unbiased, dy=dy)


@function(tensors="dy input result")
def std_backward(
    call: Call,
    dy: Arg,
    input: Arg,
    result: Arg,
    dim: Axes = None,
    correction: Number = None,
    keepdim: bool = False,
    unbiased: bool | None = None,
) -> Recipe:
    """Gradient of std with respect to `input`, given its result."""
    return _variance_gradient(call, "std", input, dim, correction, keepdim, unbiased, dy=dy, y=result)


@function(tensors="dvar dmean input")
def var_mean_backward(
    call: Call,
    dvar: Arg,
    dmean: Arg,
    input: Arg,
    dim: Axes = None,
    correction: Number = None,
    keepdim: bool = False,
    unbiased: bool | None = None,
) -> Recipe:
    """Gradient of var_mean with respect to `input`."""
    return _variance_gradient(call, "var_mean", input, dim, correction, keepdim, unbiased, dvar=dvar, dmean=dmean)


@function(tensors="dstd dmean input std")
def std_mean_backward(
    call: Call,
    dstd: Arg,
    dmean: Arg,
    input: Arg,
    std: Arg,
    dim: Axes = None,
    correction: Number = None,
    keepdim: bool = False,
    unbiased: bool | None = None,
) -> Recipe:
    """Gradient of std_mean with respect to `input`, given the standard deviation."""
    return _variance_gradient(
        call, "std_mean", input, dim, correction, keepdim, unbiased, dstd=dstd, dmean=dmean, std=std
    )


def _power(p: float | str | None) -> float:
    if p is None or (isinstance(p, str) and p == "fro"):
        return 2.0
    try:
        if not isinstance(p, str):
            return float(p)
    except OverflowError:
        pass
    raise InvalidProblemError(f'norm: p: got {p!r}, want a number, "inf" as float("inf"), or "fro".')


@function(tensors="input")
def norm(
    call: Call,
    input: Arg,
    p: float | str | None = "fro",
    dim: Axes = None,
    keepdim: bool = False,
    out: Arg | None = None,
) -> Recipe:
    """(sum |input|^p)^(1/p) over `dim` (all axes by default), as torch.norm; p "fro" is 2."""
    _float("norm", input)
    return call(VectorNormDescriptor(input.shape, axes_of(dim), keepdim, input.element, _power(p)), x=input)


@function(tensors="dy input result")
def norm_backward(
    call: Call,
    dy: Arg,
    input: Arg,
    result: Arg,
    p: float | str | None = "fro",
    dim: Axes = None,
    keepdim: bool = False,
) -> Recipe:
    """Gradient of norm with respect to `input`, given its result."""
    desc = VectorNormBackwardDescriptor(input.shape, axes_of(dim), keepdim, input.element, _power(p))
    return call(desc, dy=dy, x=input, y=result)


@function(tensors="x1 x2")
def cosine_similarity(call: Call, x1: Arg, x2: Arg, dim: int = 1, eps: float = 1e-8) -> Recipe:
    """Cosine of the angle between x1 and x2 along `dim` of their common shape, as torch's cosine_similarity."""
    if x1.element is not x2.element:
        raise InvalidProblemError(f"cosine_similarity: x2: got element {x2.element}, want {x1.element}. Cast one.")
    _float("cosine_similarity", x1)
    if not x1.rank and not x2.rank:
        x1, x2 = x1.insert(0), x2.insert(0)
    return call(CosineSimilarityDescriptor(x1.shape, x2.shape, dim, x1.element), x1=x1, x2=x2, eps=float(eps))


@function(tensors="dy x1 x2")
def cosine_similarity_backward(call: Call, dy: Arg, x1: Arg, x2: Arg, dim: int = 1, eps: float = 1e-8) -> Recipe:
    """Gradients of cosine_similarity with respect to x1 and x2, in their common shape."""
    shape: Any = broadcast(x1.shape, x2.shape, "cosine_similarity")
    desc = CosineSimilarityBackwardDescriptor(shape or (1,), dim, x1.element)
    views: Any = {} if shape else {n: ((), (-1,)) for n in ("dx1", "dx2")}
    seen = [_in_shape(x, shape or (1,)) for x in (x1, x2)]
    return call(desc, views=views, dy=dy, x1=seen[0], x2=seen[1], eps=float(eps))


def _in_shape(x: Arg, shape: tuple[int, ...]) -> Arg:
    """Broadcast to a shape."""
    for _ in range(len(shape) - x.rank):
        x = x.insert(0)
    return x.fit(shape)


def _as_given(found: Any, known: dict[str, Any]) -> Any:
    """Gradients summed over the dimensions along which the vectors were broadcast."""
    from baracuda.ops.binary.binary import _sum_to

    return tuple(_sum_to(g, known[name]) for g, name in zip(found, ("x1", "x2"), strict=True))


var.pulled_by(var_backward)
std.pulled_by(std_backward)
var_mean.pulled_by(var_mean_backward, "var mean")
std_mean.pulled_by(std_mean_backward, "std mean")
norm.pulled_by(norm_backward)
cosine_similarity.pulled_by(cosine_similarity_backward, fit=_as_given)
_of_one_shape: Any = cosine_similarity.vjp_rule


@cosine_similarity.vjp
def _cosine_similarity_vjp(x1: Any, x2: Any, *args: Any, **options: Any) -> tuple[Any, Any]:
    """Halves that broadcast are rounded behind the sums of their gradients."""
    rule = _of_one_shape if tuple(x1.shape) == tuple(x2.shape) else in_f32(_of_one_shape)
    found: tuple[Any, Any] = rule(x1, x2, *args, **options)
    return found
