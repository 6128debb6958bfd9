"""Operators with windows that go over images: convolutions and pooling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from baracuda import functional as F
from baracuda.onnx.call import Call
from baracuda.onnx.operators.shapes import padded
from baracuda.onnx.operators.table import arange, cast, operator


@dataclass
class Windows:
    """How windows go over the axes of an image."""

    kernel: list[int]
    stride: list[int]
    dilation: list[int]
    low: list[int]
    high: list[int]

    @classmethod
    def of(cls, c: Call, size: Sequence[int], kernel: Sequence[int] | None = None) -> Windows:
        """Those of a node, over axes of these sizes."""
        taps = [int(k) for k in kernel or c.get("kernel_shape") or ()]
        n = len(taps)
        stride, dilation = list(c.get("strides") or [1] * n), list(c.get("dilations") or [1] * n)
        pads, auto = list(c.get("pads") or [0] * 2 * n), c.get("auto_pad", "NOTSET")
        if not n or len(size) != n or len(stride) != n or len(dilation) != n or len(pads) != 2 * n:
            c.wrong(
                f"kernel {taps}, strides {stride}, dilations {dilation} and pads {pads} for an image of {len(size)} axes",
                "one of each for every axis, and two pads",
            )
        low, high = pads[:n], pads[n:]
        if auto.startswith("SAME"):
            missing = (
                max(0, (-(-m // s) - 1) * s + (k - 1) * d + 1 - m)
                for m, s, k, d in zip(size, stride, taps, dilation, strict=True)
            )
            parts = [(m // 2, m - m // 2) for m in missing]
            low, high = ([p[i if auto == "SAME_UPPER" else 1 - i] for p in parts] for i in (0, 1))
        elif auto == "VALID":
            low, high = [0] * n, [0] * n
        return cls(taps, stride, dilation, low, high)

    @property
    def even(self) -> bool:
        """Whether both ends are padded alike, by no negative number."""
        return self.low == self.high and min(self.low) >= 0

    @property
    def pooled(self) -> bool:
        """Whether pooling functions take this padding."""
        return self.even and all(2 * p <= k for p, k in zip(self.low, self.kernel, strict=True))

    def pad(self, x: Any, value: float) -> Any:
        """The image with its padding."""
        return padded(x, self.low, self.high, value=value)

    def results(self, size: Sequence[int], ceil: bool) -> list[int]:
        """How many results ONNX has along each axis."""
        made = []
        for m, k, s, d, low, high in zip(
            size, self.kernel, self.stride, self.dilation, self.low, self.high, strict=True
        ):
            room = m + low + high - (k - 1) * d - 1
            n = -(-room // s) + 1 if ceil else room // s + 1
            made.append(n - 1 if ceil and (n - 1) * s >= m + low else n)
        return made


def of_axes(c: Call, name: str, x: Any) -> Any:
    """The function of that name for as many axes as the image has: `conv{}d`."""
    if not 3 <= x.ndim <= 5:
        c.refuse(f"a tensor of {x.ndim} dimensions", "a batch and channels, then one to three axes")
    return getattr(F, name.format(x.ndim - 2))


@operator("Conv")
def conv(c: Call, x: Any, w: Any, b: Any = None) -> Any:
    """A convolution; what is padded unevenly, or by negative numbers, is padded before."""
    fn = of_axes(c, "conv{}d", x)
    at = Windows.of(c, x.shape[2:], w.shape[2:])
    return fn(
        x if at.even else at.pad(x, 0.0), w, b, at.stride, at.low if at.even else 0, at.dilation, c.get("group", 1)
    )


def _total(c: Call, at: Windows, size: Sequence[int], more: list[int]) -> tuple[list[int], list[int], list[int]]:
    """Padding before and behind, and additional results, of a transposed convolution whose results' number is given."""
    whole = [
        (m - 1) * s + (k - 1) * d + 1 + e
        for m, s, k, d, e in zip(size, at.stride, at.kernel, at.dilation, more, strict=True)
    ]
    wanted = c.get("output_shape")
    if wanted is None:
        wanted = [m * s for m, s in zip(size, at.stride, strict=True)]
    total = [n - m for n, m in zip(whole, wanted[-len(size) :], strict=True)]
    more = [e - min(t, 0) for e, t in zip(more, total, strict=True)]
    total = [max(t, 0) for t in total]
    half = [t // 2 for t in total]
    rest = [t - h for t, h in zip(total, half, strict=True)]
    return (half, rest, more) if c.get("auto_pad", "NOTSET") == "SAME_UPPER" else (rest, half, more)


@operator("ConvTranspose")
def _conv_transpose(c: Call, x: Any, w: Any, b: Any = None) -> Any:
    fn, n = of_axes(c, "conv_transpose{}d", x), x.ndim - 2
    auto = c.get("auto_pad", "NOTSET")
    pads = list(c.get("pads") or [0] * 2 * n)
    at = Windows(
        list(w.shape[2:]), list(c.get("strides") or [1] * n), list(c.get("dilations") or [1] * n), pads[:n], pads[n:]
    )
    more = list(c.get("output_padding") or [0] * n)
    if c.get("output_shape") is not None or auto.startswith("SAME"):
        at.low, at.high, more = _total(c, at, x.shape[2:], more)
    if at.even and all(e < max(s, d) for e, s, d in zip(more, at.stride, at.dilation, strict=True)):
        return fn(x, w, b, at.stride, at.low, more, c.get("group", 1), at.dilation)
    # Results at the ends that are not to be are cut off, and those beyond all windows are the bias alone.
    made = fn(x, w, b, at.stride, 0, 0, c.get("group", 1), at.dilation)
    if any(more):
        if b is not None:
            made = fn(x, w, None, at.stride, 0, 0, c.get("group", 1), at.dilation)
        made = padded(made, [0] * n, more)
        made = made if b is None else F.add(made, b.reshape(-1, *[1] * n))
    ends = [slice(low, m - high) for low, high, m in zip(at.low, at.high, made.shape[2:], strict=True)]
    return F.copy(made[(slice(None), slice(None), *ends)])


def _cut(c: Call, y: Any, results: list[int]) -> Any:
    """Without the results that ONNX does not have."""
    if list(y.shape[2:]) == results:
        return y
    if any(n < m for n, m in zip(y.shape[2:], results, strict=True)):
        c.refuse(f"results {results} for windows with ceil_mode", f"no more than {list(y.shape[2:])}")
    return F.copy(y[(slice(None), slice(None), *[slice(0, n) for n in results])])


@operator("MaxPool")
def max_pool(c: Call, x: Any) -> Any:
    """The largest of each window, and where it is, where that is asked for."""
    at, ceil = Windows.of(c, x.shape[2:]), bool(c.get("ceil_mode", 0))
    fn, indexed = of_axes(c, "max_pool{}d", x), c.wants(1)
    if indexed and (not at.pooled or c.get("storage_order", 0)):
        c.refuse("indices with uneven padding or storage_order=1", "even padding, and places in row order")
    results = at.results(x.shape[2:], ceil)
    least = float("-inf") if x.element.is_float else x.element.limits[0]
    x = x if at.pooled else at.pad(x, least)
    made = fn(x, at.kernel, at.stride, at.low if at.pooled else 0, at.dilation, ceil, indexed)
    if not indexed:
        return _cut(c, made, results)
    planes = arange(x.shape[0] * x.shape[1]).reshape(*x.shape[:2], *[1] * (x.ndim - 2))
    first = F.mul(planes, x.numel // max(x.shape[0] * x.shape[1], 1))
    return _cut(c, made[0], results), F.add(_cut(c, made[1], results), first)


@operator("AveragePool")
def average_pool(c: Call, x: Any) -> Any:
    """Means of windows; of those at the edges of what they see of the image, or with the padding."""
    at, ceil = Windows.of(c, x.shape[2:]), bool(c.get("ceil_mode", 0))
    if any(d != 1 for d in at.dilation):
        c.refuse(f"dilations {at.dilation}", "1 along each axis")
    whole, results = bool(c.get("count_include_pad", 0)), at.results(x.shape[2:], ceil)
    fn = of_axes(c, "avg_pool{}d", x)
    if at.pooled:
        return _cut(c, fn(x, at.kernel, at.stride, at.low, ceil, whole), results)
    sums = fn(at.pad(x, 0.0), at.kernel, at.stride, 0, ceil)
    if not whole:
        seen = F.ones_like(x[:1, :1])
        sums = F.div(sums, fn(at.pad(seen, 0.0), at.kernel, at.stride, 0, ceil))
    return _cut(c, sums, results)


@operator("LpPool")
def _lp_pool(c: Call, x: Any) -> Any:
    at = Windows.of(c, x.shape[2:])
    if any(d != 1 for d in at.dilation):
        c.refuse(f"dilations {at.dilation}", "1 along each axis")
    x = at.pad(F.abs(x), 0.0)
    return of_axes(c, "lp_pool{}d", x)(x, float(c.get("p", 2)), at.kernel, at.stride, bool(c.get("ceil_mode", 0)))


@operator("GlobalAveragePool")
def _global_average(c: Call, x: Any) -> Any:
    return F.mean(x, tuple(range(2, x.ndim)), True)


@operator("GlobalMaxPool")
def _global_max(c: Call, x: Any) -> Any:
    return F.amax(x, tuple(range(2, x.ndim)), True)


@operator("GlobalLpPool")
def _global_lp(c: Call, x: Any) -> Any:
    return F.vector_norm(x, float(c.get("p", 2)), tuple(range(2, x.ndim)), True)


@operator("MaxUnpool")
def _max_unpool(c: Call, x: Any, index: Any, shape: Any = None) -> Any:
    at = Windows.of(c, x.shape[2:])
    usual = [
        (n - 1) * s + k - low - high
        for n, s, k, low, high in zip(x.shape[2:], at.stride, at.kernel, at.low, at.high, strict=True)
    ]
    wanted = usual if shape is None else c.ints(2)[2:]
    plane = 1
    for n in usual:
        plane *= n
    index = F.remainder(index, plane)
    if wanted != usual:  # ONNX's places are those of the usual size
        index = _places_of(index, usual, wanted)
    return of_axes(c, "max_unpool{}d", x)(x, index, at.kernel, at.stride, at.low, wanted)


def _places_of(index: Any, old: list[int], new: list[int]) -> Any:
    """Places in a plane of one size as those in a plane of another."""
    places, steps = F.zeros_like(index), 1
    for n, m in zip(reversed(old), reversed(new), strict=True):
        places = F.add(places, F.mul(F.remainder(index, n), steps))
        index, steps = F.floor_divide(index, n), steps * m
    return places


# --- of quantized values


def less_zero(x: Any, zero: Any) -> Any:
    """Integers less their zero points, of which one may belong to each output channel, in f64, which holds their sums."""
    wide = cast(x, "f64")
    if zero is None:
        return wide
    zero = zero.reshape(*zero.shape, *(1,) * (x.ndim - 1)) if zero.ndim and zero.numel > 1 else zero.reshape()
    return F.sub(wide, cast(zero, "f64"))


@operator("ConvInteger")
def whole_conv(c: Call, x: Any, w: Any, x_zero: Any = None, w_zero: Any = None) -> Any:
    """Sums of products of integers: in f64, whose numbers hold them, and exact."""
    return cast(conv(c, less_zero(x, x_zero), less_zero(w, w_zero)), "i32")


@operator("QLinearConv")
def _quantized_conv(
    c: Call, x: Any, rx: Any, zx: Any, w: Any, rw: Any, zw: Any, ry: Any, zy: Any, b: Any = None
) -> Any:
    whole = whole_conv(c, x, w, zx, zw)
    each = (-1, *(1,) * (x.ndim - 2))
    whole = whole if b is None else F.add(whole, b.reshape(*each))
    rate = F.div(F.mul(cast(rx, "f32"), cast(rw, "f32")), cast(ry, "f32")).reshape(*each)
    return requantized(F.mul(cast(whole, "f32"), rate), zy)


def requantized(y: Any, zero: Any) -> Any:
    """Numbers of a scale as codes: rounded, about their zero point, within the range of its element."""
    low, high = zero.element.limits
    y = F.add(F.round(y), cast(zero.reshape() if zero.numel == 1 else zero, "f32"))
    return cast(F.clamp(y, float(low), float(high)), zero.element)
