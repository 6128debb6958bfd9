"""Partial results of attention over different keys as one. Kernels in csrc/ops/attention, reference in attention_merge_ref.py."""

from __future__ import annotations

from baracuda.call.op import Arg, Call, Op, Recipe, function
from baracuda.describe.dims import Shape, shape_text
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.spec import Descriptor, Param, Signature, descriptor, frame, output, tensor


@frame
class _Merge(Descriptor):
    """Fields that forward and backward share."""

    __slots__ = ()
    shape: Shape
    element: Element = Element.F32

    def validate(self) -> None:
        if not self.shape:
            raise self.wrong("shape", self.shape, "at least one dimension")

    def parts(self) -> tuple[Param, ...]:
        """What is merged."""
        e, sums = self.element, self.element.statistic
        return (
            tensor("out_a", self.shape, e),
            tensor("lse_a", self.shape[:-1], sums),
            tensor("out_b", self.shape, e),
            tensor("lse_b", self.shape[:-1], sums),
        )


@descriptor(family="attention", op="attention_merge")
class AttentionMergeDescriptor(_Merge):
    """Two partial results over different keys as one: lse = log(exp(lse_a) + exp(lse_b)).

    out = exp(lse_a - lse) * out_a + exp(lse_b - lse) * out_b: what attention gives over the keys of both, so that keys may
    be spread over calls, devices or pages. A part with lse = -inf has seen no key and is left out bit for bit, whatever
    its out holds; two of them give zeros and -inf. NaN in either lse makes the row NaN. The bound's terms are the
    weighted parts, grown by what a rounding of lse_a - lse_b does to the weights; see attention_merge_ref.

    The gradients of attention need none of merging: AttentionBackwardDescriptor of each part takes the merged out and lse.

    Args:
        shape: [..., D] of out_a, out_b and out; lse_a, lse_b and lse are without the last dimension.
        element: f16, bf16, f32 or f64; lse are f32, or f64 for f64.
    """

    def signature(self) -> Signature:
        return Signature(
            *self.parts(),
            output("out", self.shape, self.element),
            output("lse", self.shape[:-1], self.element.statistic),
        )


@descriptor(gradient_of=AttentionMergeDescriptor)
class AttentionMergeBackwardDescriptor(_Merge):
    """Gradients of attention_merge with respect to both parts.

    With the weights a = exp(lse_a - lse) and b = exp(lse_b - lse): dout_a = a * dout, dout_b = b * dout,
    dlse_a = a * dlse + s and dlse_b = b * dlse - s, where s = a * b * sum(dout * (out_a - out_b)) over the last
    dimension. A part with lse = -inf gets zeros, whatever its out holds.

    Args:
        shape: As in the forward.
        element: f16, bf16, f32 or f64; lse and their gradients are f32, or f64 for f64.
    """

    def signature(self) -> Signature:
        e, sums = self.element, self.element.statistic
        return Signature(
            tensor("dout", self.shape, e),
            tensor("dlse", self.shape[:-1], sums),
            *self.parts(),
            output("dout_a", self.shape, e),
            output("dlse_a", self.shape[:-1], sums),
            output("dout_b", self.shape, e),
            output("dlse_b", self.shape[:-1], sums),
        )


OPS = (
    Op(
        "attention_merge",
        AttentionMergeDescriptor,
        AttentionMergeBackwardDescriptor,
        "out = exp(lse_a - lse) * out_a + exp(lse_b - lse) * out_b, with lse = log(exp(lse_a) + exp(lse_b))",
    ),
)


def _check_like(name: str, x: Arg, like: Arg, shape: Shape, element: Element) -> None:
    if x.shape != shape or x.element is not element:
        raise InvalidProblemError(
            f"{name}: {x.name}: got {x.element} of shape {shape_text(x.shape)}, want {element} of shape "
            f"{shape_text(shape)}, as {like.name} is {like.element} of shape {shape_text(like.shape)}."
        )


@function(tensors="out_a lse_a out_b lse_b")
def attention_merge(call: Call, out_a: Arg, lse_a: Arg, out_b: Arg, lse_b: Arg) -> Recipe:
    """(out, lse) of attention over the keys of two partial results, of scaled_dot_product_attention_forward for example.

    Args:
        out_a: [..., D].
        lse_a: [...], f32 (f64 for f64); -inf where the part has seen no key.
        out_b: As out_a.
        lse_b: As lse_a.

    Returns:
        out like out_a, and lse like lse_a.
    """
    rows, sums = out_a.shape[:-1], out_a.element.statistic
    _check_like("attention_merge", lse_a, out_a, rows, sums)
    _check_like("attention_merge", out_b, out_a, out_a.shape, out_a.element)
    _check_like("attention_merge", lse_b, out_a, rows, sums)
    return call(
        AttentionMergeDescriptor(out_a.shape, out_a.element), out_a=out_a, lse_a=lse_a, out_b=out_b, lse_b=lse_b
    )


@function(tensors="dout dlse out_a lse_a out_b lse_b")
def attention_merge_backward(
    call: Call, dout: Arg, dlse: Arg, out_a: Arg, lse_a: Arg, out_b: Arg, lse_b: Arg
) -> Recipe:
    """Gradients (dout_a, dlse_a, dout_b, dlse_b) of attention_merge."""
    rows, sums, name = out_a.shape[:-1], out_a.element.statistic, "attention_merge_backward"
    for x in (dout, out_b):
        _check_like(name, x, out_a, out_a.shape, out_a.element)
    for x in (dlse, lse_a, lse_b):
        _check_like(name, x, out_a, rows, sums)
    desc = AttentionMergeBackwardDescriptor(out_a.shape, out_a.element)
    return call(desc, dout=dout, dlse=dlse, out_a=out_a, lse_a=lse_a, out_b=out_b, lse_b=lse_b)


attention_merge.pulled_by(attention_merge_backward, "out lse")
