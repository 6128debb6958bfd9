"""Operators that normalise, and softmax."""

from __future__ import annotations

from math import prod
from typing import Any

from baracuda import functional as F
from baracuda.onnx.call import Call
from baracuda.onnx.operators.table import Rule, arange, axis_of, cast, moved, operator, reshaped

NONE: Any = None  # no running statistics: those of the batch


def _along(fn: Rule) -> Rule:
    """A function along an axis; before opset 13 it is one over all dimensions from the axis on."""

    def call(c: Call, x: Any) -> Any:
        axis = axis_of(c, x, default=1 if c.opset < 13 else -1) if x.ndim else 0
        if c.opset >= 13 or axis == x.ndim - 1:
            return fn(x, axis)
        rows = reshaped(x, (prod(x.shape[:axis]), prod(x.shape[axis:])))
        return fn(rows, 1).reshape(*x.shape)

    return call


def _hardmax(x: Any, axis: int) -> Any:
    hot = F.eq(F.argmax(x, axis).unsqueeze(x.ndim - 1), arange(x.shape[axis]))
    return moved(cast(hot, x.element), -1, axis)


operator("Softmax")(_along(lambda x, axis: F.softmax(x, axis)))
operator("LogSoftmax")(_along(lambda x, axis: F.log_softmax(x, axis)))
operator("Hardmax")(_along(_hardmax))


@operator("LayerNormalization")
def _layer_norm(c: Call, x: Any, scale: Any, bias: Any = None) -> Any:
    shape, eps = x.shape[axis_of(c, x, default=-1) :], c.get("epsilon", 1e-5)
    y = F.layer_norm(x, shape, scale, bias, eps)
    if not c.wants(1) and not c.wants(2):
        return y
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    var, mean = F.var_mean(cast(x, "f32"), axes, correction=0, keepdim=True)
    return y, mean, F.rsqrt(F.add(var, eps))


@operator("RMSNormalization", "SimplifiedLayerNormalization")
def _rms_norm(c: Call, x: Any, scale: Any) -> Any:
    return F.rms_norm(x, x.shape[axis_of(c, x, default=-1) :], scale, c.get("epsilon", 1e-5))


@operator("InstanceNormalization")
def _instance_norm(c: Call, x: Any, scale: Any, bias: Any) -> Any:
    return F.instance_norm(x, None, None, scale, bias, eps=c.get("epsilon", 1e-5))


@operator("GroupNormalization")
def _group_norm(c: Call, x: Any, scale: Any, bias: Any) -> Any:
    groups = c.get("num_groups")
    if c.opset < 21 and groups != x.shape[1]:  # scale and bias are of groups
        scale, bias = (F.repeat_interleave(v, x.shape[1] // groups, 0) for v in (scale, bias))
    return F.group_norm(x, groups, scale, bias, c.get("epsilon", 1e-5))


@operator("BatchNormalization")
def _batch_norm(c: Call, x: Any, scale: Any, bias: Any, mean: Any, var: Any) -> Any:
    eps, keep = c.get("epsilon", 1e-5), c.get("momentum", 0.9)
    if not c.get("spatial", 1):
        c.refuse("spatial=0", "statistics of channels, as opset 9 and later have them")
    if c.opset < 7 and not c.get("is_test", 0):
        c.refuse("is_test=0", "a network for inference", "Export it in evaluation mode.")
    if not c.get("training_mode", 0):
        if c.wants(1) and c.opset < 14:
            c.refuse("outputs of training", "a network for inference", "Export it in evaluation mode.")
        return F.batch_norm(x, mean, var, scale, bias, False, 0.0, eps)
    # Running variances are of the batch's own, biased one.
    axes = (0, *range(2, x.ndim))
    new_var, new_mean = F.var_mean(x, axes, correction=0)
    y = F.batch_norm(x, NONE, NONE, scale, bias, True, 0.0, eps)
    return y, F.lerp(new_mean, mean, keep), F.lerp(new_var, var, keep)


@operator("MeanVarianceNormalization")
def _mean_variance_norm(c: Call, x: Any) -> Any:
    axes = tuple(a % x.ndim for a in c.get("axes", (0, 2, 3)))
    if axes == (0, *range(2, x.ndim)):
        return F.batch_norm(x, NONE, NONE, training=True, eps=1e-18)
    var, mean = F.var_mean(x, axes, correction=0, keepdim=True)
    return F.div(F.sub(x, mean), F.add(F.sqrt(var), 1e-9))


@operator("LpNormalization")
def _lp_norm(c: Call, x: Any) -> Any:
    return F.normalize(x, float(c.get("p", 2)), c.get("axis", -1))


@operator("LRN")
def _local_response(c: Call, x: Any) -> Any:
    return F.local_response_norm(x, c.get("size"), c.get("alpha", 1e-4), c.get("beta", 0.75), c.get("bias", 1.0))
