"""What may come behind a convolution: a batch norm by running statistics, then relu."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from baracuda.describe.spec import Descriptor
    from baracuda.graph.nodes import Launch, View

Named = tuple["dict[str, View]", "dict[str, Any]"]  # a launch's tensors and numbers, by its parameters
Merged = tuple["Descriptor", "dict[str, View]", "dict[str, Any]"]


def behind_convolution(first: Launch, second: Launch, at: View, own: Named, given: Named) -> Merged | None:
    """The descriptor, tensors and numbers of one kernel for both; None where there is none.

    Args:
        first: What makes `at`.
        second: What alone reads it.
        at: The value in between.
        own: The first one's tensors and numbers.
        given: The second one's.
    """
    from baracuda.ops.conv.conv import ConvDescriptor
    from baracuda.ops.conv.conv_norm import ConvNormDescriptor
    from baracuda.ops.unary.unary import UnaryDescriptor

    conv, d = first.plan.descriptor, second.plan.descriptor
    if isinstance(conv, ConvDescriptor):
        return _normed(conv, d, at, own, given)
    if not isinstance(conv, ConvNormDescriptor):
        return None
    tensors, numbers = own
    if isinstance(d, UnaryDescriptor) and str(d.kind) == "relu" and d.direction == "forward":
        return replace(conv, relu=True), tensors | {"y": given[0]["y"]}, numbers
    return None


def _normed(conv: Any, d: Any, at: View, own: Named, given: Named) -> Merged | None:
    from baracuda.memory.views import is_contiguous
    from baracuda.ops.conv.conv_norm import ConvNormDescriptor
    from baracuda.ops.norm.batch_norm import BatchNormDescriptor

    if not isinstance(d, BatchNormDescriptor) or d.training or d.per_instance or d.save:
        return None
    tensors, norm = own[0], given[0]
    alone = conv.groups == conv.weight_shape[0]
    if norm.get("x") != at or (alone and not is_contiguous(tensors["x"].shape, tensors["x"].strides)):
        return None  # channels that lie side by side are convolved by themselves along these
    options = {f.name: getattr(conv, f.name) for f in fields(conv)}
    desc = ConvNormDescriptor(**options, scale=d.weight, shift=d.bias)
    made = tensors | {"mean": norm["running_mean"], "var": norm["running_var"], "y": norm["y"]}
    made |= {to: norm[name] for to, name in (("scale", "weight"), ("shift", "bias")) if name in norm}
    return desc, made, {"eps": given[1]["eps"]}
