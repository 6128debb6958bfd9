"""Normalisations and their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from functools import wraps
from typing import Any

from baracuda.torch.lowering.common import F, cast, filled, is_tensor
from baracuda.torch.table import NotMapped, Row, Want, lowers


def in_one_element(row: Row) -> Row:
    """Has a row see numbers of one element where those of halves come with parameters in f32; results are as promised.

    Torch computes so, too: in f32, rounded at the end.
    """

    @wraps(row)
    def run(want: Want, *args: Any) -> Any:
        given = {str(a.element) for a in args if is_tensor(a)}
        if len(given) > 1:
            wide = "f64" if "f64" in given else "f32"
            args = tuple(cast(a, wide) if is_tensor(a) else a for a in args)
        return tuple(
            x if x is None or layout is None else cast(x, layout.element)
            for x, layout in zip(row(want, *args), want.results, strict=True)
        )

    return run


@lowers("native_layer_norm.default")
@in_one_element
def layer_norm(want: Want, x: Any, shape: Sequence[int], weight: Any, bias: Any, eps: float) -> Any:
    """With the means and reciprocal deviations that its gradient reads."""
    if 0 in x.shape:
        raise NotMapped("an empty tensor")
    y, mean, rstd = F.layer_norm_forward(x, tuple(shape), weight, bias, eps)
    return y, _statistic(want, 1, mean), _statistic(want, 2, rstd)


def _statistic(want: Want, at: int, x: Any) -> Any:
    layout = want.results[at]
    return x if layout is None else x.reshape(layout.shape)


@lowers("native_layer_norm_backward.default")
@in_one_element
def layer_norm_backward(
    want: Want,
    dy: Any,
    x: Any,
    shape: Sequence[int],
    mean: Any,
    rstd: Any,
    weight: Any,
    bias: Any,
    mask: Sequence[bool],
) -> Any:
    """By x, weight and bias."""
    if 0 in x.shape:
        raise NotMapped("an empty tensor")
    wide = "f64" if str(x.element) == "f64" else "f32"
    found = F.layer_norm_backward(
        dy, x, tuple(shape), weight, cast(mean, wide), cast(rstd, wide), bias=bias is not None
    )
    return _present(found, weight is not None, bias is not None)


def _present(found: Any, weight: bool, bias: bool) -> tuple[Any, Any, Any]:
    """The gradients by x, weight and bias: None where there is no such argument."""
    parts = list(found) if isinstance(found, (tuple, list)) else [found]
    dx = parts.pop(0)
    return dx, parts.pop(0) if weight else None, parts.pop(0) if bias else None


@lowers("_fused_rms_norm.default")
@in_one_element
def rms_norm(want: Want, x: Any, shape: Sequence[int], weight: Any, eps: float | None) -> Any:
    """With the reciprocal deviations that its gradient reads."""
    y, rstd = F.rms_norm_forward(x, tuple(shape), weight, eps)
    return y, _statistic(want, 1, rstd)


@lowers("_fused_rms_norm_backward.default")
@in_one_element
def rms_norm_backward(
    want: Want, dy: Any, x: Any, shape: Sequence[int], rstd: Any, weight: Any, mask: Sequence[bool]
) -> Any:
    """By x and weight."""
    found = F.rms_norm_backward(dy, x, tuple(shape), weight, rstd=rstd)
    return tuple(found) if isinstance(found, (tuple, list)) else (found, None)


@lowers("_native_batch_norm_legit_no_training.default")
@in_one_element
def batch_norm_by_running(
    want: Want, x: Any, weight: Any, bias: Any, mean: Any, var: Any, momentum: float, eps: float
) -> Any:
    """By running statistics; nothing is saved."""
    empty = [None if layout is None else filled(layout, 0) for layout in want.results[1:]]
    return F.batch_norm(x, mean, var, weight, bias, False, momentum, eps), *empty


@lowers("_native_batch_norm_legit_functional.default")
@in_one_element
def batch_norm(
    want: Want, x: Any, weight: Any, bias: Any, mean: Any, var: Any, training: bool, momentum: float, eps: float
) -> Any:
    """By the batch's own statistics, with new running ones; or by running ones, which stay."""
    if not training:
        y, *empty = batch_norm_by_running(want, x, weight, bias, mean, var, momentum, eps)
        return y, *empty[:2], F.copy(mean), F.copy(var)
    mean, var = F.copy(mean), F.copy(var)
    return *F.batch_norm_forward(x, mean, var, weight, bias, True, momentum, eps), mean, var


@lowers("_native_batch_norm_legit.no_stats")
@in_one_element
def batch_norm_alone(want: Want, x: Any, weight: Any, bias: Any, training: bool, momentum: float, eps: float) -> Any:
    """By the batch's own statistics."""
    return tuple(F.batch_norm_forward(x, None, None, weight, bias, True, momentum, eps))


@lowers("native_batch_norm_backward.default")
@in_one_element
def batch_norm_backward(
    want: Want, dy: Any, x: Any, weight: Any, running_mean: Any, running_var: Any, mean: Any, rstd: Any, training: bool,
    eps: float, mask: Sequence[bool],
) -> Any:  # fmt: skip
    """By x, weight and bias."""
    if not training:
        mean, rstd = running_mean, F.rsqrt(F.add(running_var, eps))
    found = F.batch_norm_backward(dy, x, weight, mean, rstd, training, bias=bool(mask[2]))
    return _present(found, weight is not None, bool(mask[2]))


@lowers("native_group_norm.default")
@in_one_element
def group_norm(
    want: Want, x: Any, weight: Any, bias: Any, n: int, channels: int, rest: int, groups: int, eps: float
) -> Any:
    """As a batch norm of groups, then a scale and a shift of each channel."""
    if 0 in x.shape:
        raise NotMapped("an empty tensor")
    flat = F.copy(x).reshape(n * groups, (channels // groups) * rest)
    y, mean, rstd = F.layer_norm_forward(flat, (flat.shape[1],), None, None, eps)
    y = y.reshape(want.shape)
    of_channel = (1, channels, *[1] * (len(want.shape) - 2))
    if weight is not None:
        y = F.mul(y, weight.reshape(of_channel))
    if bias is not None:
        y = F.add(y, bias.reshape(of_channel))
    return y, _statistic(want, 1, mean), _statistic(want, 2, rstd)


@lowers("native_group_norm_backward.default")
@in_one_element
def group_norm_backward(
    want: Want, dy: Any, x: Any, mean: Any, rstd: Any, weight: Any, n: int, channels: int, rest: int, groups: int,
    mask: Sequence[bool],
) -> Any:  # fmt: skip
    """By x, weight and bias: that of rows of groups, and sums over images and places."""
    if 0 in x.shape:
        raise NotMapped("an empty tensor")
    wide = "f64" if str(x.element) == "f64" else "f32"
    mean, rstd = (cast(s, wide).reshape(n * groups, 1) for s in (mean, rstd))
    dy3, x3 = (F.copy(t).reshape(n, channels, rest) for t in (dy, x))
    scaled = dy3 if weight is None else F.mul(dy3, weight.reshape(1, channels, 1))
    rows = (n * groups, (channels // groups) * rest)
    dx = F.layer_norm_backward(F.copy(scaled).reshape(rows), x3.reshape(rows), rows[1:], None, mean, rstd, bias=False)
    dx = dx[0] if isinstance(dx, (tuple, list)) else dx
    normal = F.mul(F.sub(x3.reshape(rows), cast(mean, str(x.element))), cast(rstd, str(x.element)))
    dweight = F.sum(F.mul(dy3, normal.reshape(n, channels, rest)), (0, 2)) if mask[1] else None
    return dx.reshape(want.shape), dweight, F.sum(dy3, (0, 2)) if mask[2] else None
