"""Partial results of attention over different keys as one. Kernels in csrc/ops/attention, reference in attention_merge_ref.py."""

from __future__ import annotations

from baracuda.dims import Shape, shape_text
from baracuda.elements import Element
from baracuda.errors import InvalidProblemError
from baracuda.op import Arg, Call, NotDifferentiable, Op, Recipe, function
from baracuda.spec import Descriptor, Signature, descriptor, output, tensor


@descriptor(family="attention", op="attention_merge")
class AttentionMergeDescriptor(Descriptor):
    """Two partial results over different keys as one: lse = log(exp(lse_a) + exp(lse_b)).

    out = exp(lse_a - lse) * out_a + exp(lse_b - lse) * out_b: what attention gives over the keys of both, so that keys may
    be spread over calls, devices or pages. A part with lse = -inf has seen no key and is left out bit for bit, whatever
    its out holds; two of them give zeros and -inf. NaN in either lse makes the row NaN. The bound's terms are the
    weighted parts, grown by what a rounding of lse_a - lse_b does to the weights; see attention_merge_ref.

    Gradients need no merge of their own: AttentionBackwardDescriptor of each part takes the merged out and lse.

    Args:
        shape: [..., D] of out_a, out_b and out; lse_a, lse_b and lse are without the last dimension.
        element: f16, bf16, f32 or f64; lse are f32, or f64 for f64.
    """

    shape: Shape
    element: Element = Element.F32

    def validate(self) -> None:
        if not self.shape:
            raise self.wrong("shape", self.shape, "at least one dimension")

    def signature(self) -> Signature:
        e, sums = self.element, Element.F64 if self.element is Element.F64 else Element.F32
        return Signature(
            tensor("out_a", self.shape, e),
            tensor("lse_a", self.shape[:-1], sums),
            tensor("out_b", self.shape, e),
            tensor("lse_b", self.shape[:-1], sums),
            output("out", self.shape, e),
            output("lse", self.shape[:-1], sums),
        )


OPS = (
    Op(
        "attention_merge",
        AttentionMergeDescriptor,
        NotDifferentiable("the backward of attention takes the merged out and lse for each part"),
        "out = exp(lse_a - lse) * out_a + exp(lse_b - lse) * out_b, with lse = log(exp(lse_a) + exp(lse_b))",
    ),
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
    want = Element.F64 if out_a.element is Element.F64 else Element.F32
    for x, shape, element in (
        (lse_a, out_a.shape[:-1], want),
        (out_b, out_a.shape, out_a.element),
        (lse_b, out_a.shape[:-1], want),
    ):
        if x.shape != shape or x.element is not element:
            raise InvalidProblemError(
                f"attention_merge: {x.name}: got {x.element} of shape {shape_text(x.shape)}, want {element} of shape "
                f"{shape_text(shape)}, as out_a is {out_a.element} of shape {shape_text(out_a.shape)}."
            )
    return call(
        AttentionMergeDescriptor(out_a.shape, out_a.element), out_a=out_a, lse_a=lse_a, out_b=out_b, lse_b=lse_b
    )
