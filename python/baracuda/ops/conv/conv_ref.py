"""Reference of convolutions, tap by tap and in extended precision."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import Any

import numpy as np

from baracuda.describe.elements import Element
from baracuda.ops.conv.conv import (
    ConvBackwardDescriptor,
    ConvDescriptor,
    ConvTransposeBackwardDescriptor,
    ConvTransposeDescriptor,
)
from baracuda.prove.reference import Array, Case, Expected

# input, weight, stride, low, high, dilation, groups: channels and places on both sides of the kernels' tiles, sums of
# more than a block, phases without taps, padding wider than the kernel, empty batches, groups of one channel and of few, channels in lanes.
_CASES: list[tuple[Any, ...]] = [
    ((1, 1, 1), (1, 1, 1)),
    ((2, 3, 17), (5, 3, 3), (1,), (1,), (1,)),
    ((1, 2, 300), (9, 2, 5), (3,), (4,), (0,), (2,)),
    ((2, 300, 10), (4, 300, 1)),
    ((2, 3, 7, 9), (8, 3, 3, 3), (1, 1), (1, 1), (1, 1)),
    ((1, 3, 23, 21), (9, 3, 7, 7), (2, 2), (3, 3), (3, 3)),
    ((9, 2, 6, 6), (3, 2, 3, 3)),
    ((2, 70, 5, 5), (18, 70, 3, 3), (1, 1), (2, 0), (0, 1)),
    ((1, 4, 9, 8), (6, 2, 3, 2), (2, 3), (1, 0), (2, 1), (2, 1), 2),
    ((3, 16, 6, 7), (16, 1, 3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 16),
    ((2, 8, 9, 5), (16, 1, 2, 3), (2, 1), (0, 1), (1, 1), (1, 2), 8),
    ((1, 5, 6, 6), (4, 5, 1, 1), (3, 3)),
    ((2, 2, 5, 6), (65, 2, 2, 2), (3, 4), (5, 3), (2, 4)),
    ((0, 3, 5, 5), (4, 3, 3, 3), (1, 1), (1, 1), (1, 1)),
    ((1, 3, 12, 50), (10, 3, 1, 1)),
    ((2, 2, 4, 5, 6), (3, 2, 3, 2, 2), (1, 2, 1), (1, 0, 1), (1, 1, 0)),
    ((1, 4, 5, 4, 3), (6, 2, 2, 1, 3), (2, 1, 2), (0, 0, 1), (1, 0, 1), (2, 1, 1), 2),
    ((1, 40, 3, 4, 4), (9, 40, 2, 2, 2)),
    ((2, 28, 9, 11), (30, 28, 3, 3), (1, 1), (1, 1), (1, 1)),
    ((1, 32, 11, 31), (64, 16, 3, 3), (2, 2), (1, 1), (1, 1), (1, 2), 2),
]
_FIELDS = ("stride", "low", "high", "dilation", "groups")


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """All of _CASES with and without bias, sums that cancel, special values."""
    for i, (shape, weight, *rest) in enumerate(_CASES):
        desc: Any = _described(op, direction, element, shape, weight, rest, biased=i % 2 == 1)
        if desc is not None:
            yield Case(desc, {p.name: rng.normal(size=p.shape) for p in desc.signature().inputs})
    desc = _described(op, direction, element, (2, 32, 6, 6), (32, 32, 3, 3), [(1, 1), (1, 1), (1, 1)], biased=True)
    case = Case(
        desc,
        {p.name: rng.normal(size=p.shape) for p in desc.signature().inputs},
        note="sums that cancel",
        exact_gradient=False,
    )
    case.tensors["weight"][16:] = case.tensors["weight"][:16]
    case.tensors["weight"][:, 16:] = case.tensors["weight"][:, :16]
    for name in {"x", "dy"} & case.tensors.keys():
        case.tensors[name][:, 16:] = -case.tensors[name][:, :16]
        case.tensors[name][:, 31] *= 1.01  # else all places would have the same result, as if they were a batch
    yield case
    desc = _described(op, direction, element, (2, 3, 8, 9), (9, 3, 3, 3), [(1, 1)], biased=True)
    tensors = {p.name: rng.normal(size=p.shape) for p in desc.signature().inputs}
    for name in {"x", "dy"} & tensors.keys():
        tensors[name][0, 0, 2, 3], tensors[name][1, 2, 4, 1] = np.inf, np.nan
    yield Case(desc, tensors, note="NaN and inf", exact_gradient=False)


def _described(
    op: str, direction: str, element: Element, shape: Any, weight: Any, rest: list[Any], *, biased: bool
) -> Any:
    """A descriptor; for conv_transpose of the same image, which is then what it computes."""
    fields = dict(zip(_FIELDS, rest, strict=False))
    conv = ConvDescriptor(shape, weight, **fields, element=element, bias=biased)
    if op == "conv":
        return conv if direction == "forward" else conv.backward()
    axes = zip(shape[2:], weight[2:], conv.output_shape()[2:], conv.stride, conv.low, conv.dilation, strict=True)
    high = tuple((y - 1) * s + d * (k - 1) + 1 - low - n for n, k, y, s, low, d in axes)
    made = ConvTransposeDescriptor(conv.output_shape(), weight, **fields | {"high": high}, element=element, bias=biased)
    return made if direction == "forward" else made.backward()


class _Problem:
    """The arithmetic of a convolution between an image and a result."""

    def __init__(self, desc: Any) -> None:
        self.transposed = isinstance(desc, (ConvTransposeDescriptor, ConvTransposeBackwardDescriptor))
        given, made = desc.input_shape, desc.result_shape()
        self.image, self.result = (made, given) if self.transposed else (given, made)
        self.weight, self.groups = desc.weight_shape, desc.groups
        self.stride, self.low, self.dilation = desc.stride, desc.low, desc.dilation

    def _padded(self, tap: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[slice, ...]]:
        """The image's sizes with all padding, and where the results of a tap are in it."""
        axes = list(
            zip(
                self.image[2:], self.result[2:], self.weight[2:], self.stride, self.low, self.dilation, tap, strict=True
            )
        )
        sizes = tuple(max(n + low, (y - 1) * s + d * (k - 1) + 1) for n, y, k, s, low, d, _ in axes)
        parts = tuple(slice(t * d, t * d + (y - 1) * s + 1, s) for _, y, _, s, _, d, t in axes)
        return sizes, parts

    def _taps(self) -> Iterator[tuple[int, ...]]:
        return iter(np.ndindex(*self.weight[2:]))

    def _grouped(self, x: Array) -> Array:
        return x.reshape(x.shape[0], self.groups, x.shape[1] // self.groups, prod(x.shape[2:]))

    def _weights(self, weight: Array, tap: tuple[int, ...]) -> Array:
        at: tuple[Any, ...] = (slice(None), slice(None), *tap)
        part: Array = weight[at]
        found: Array = part.reshape(self.groups, part.shape[0] // self.groups, part.shape[1])
        return found

    def _inside(self) -> tuple[slice, ...]:
        return (
            slice(None),
            slice(None),
            *(slice(low, low + n) for n, low in zip(self.image[2:], self.low, strict=True)),
        )

    def _with_zeros(self, image: Array) -> Array:
        sizes, _ = self._padded((0,) * len(self.stride))
        out = np.zeros((*image.shape[:2], *sizes), np.longdouble)
        out[self._inside()] = image
        return out

    def to_result(self, image: Array, weight: Array) -> Array:
        padded, y = self._with_zeros(image), np.zeros(self.result, np.longdouble)
        for tap in self._taps():
            part = self._grouped(padded[(slice(None), slice(None), *self._padded(tap)[1])])
            y += np.einsum("ngip,goi->ngop", part, self._weights(weight, tap)).reshape(y.shape)
        return y

    def to_image(self, result: Array, weight: Array) -> Array:
        sizes, _ = self._padded((0,) * len(self.stride))
        out = np.zeros((*self.image[:2], *sizes), np.longdouble)
        for tap in self._taps():
            part = out[(slice(None), slice(None), *self._padded(tap)[1])]
            part += np.einsum("ngop,goi->ngip", self._grouped(result), self._weights(weight, tap)).reshape(part.shape)
        return out[self._inside()]

    def to_weight(self, image: Array, result: Array) -> Array:
        padded, dw = self._with_zeros(image), np.zeros(self.weight, np.longdouble)
        for tap in self._taps():
            part = self._grouped(padded[(slice(None), slice(None), *self._padded(tap)[1])])
            sums = np.einsum("ngip,ngop->goi", part, self._grouped(result))
            at: tuple[Any, ...] = (slice(None), slice(None), *tap)
            dw[at] = sums.reshape(self.weight[:2])
        return dw

    def given(self, x: Array, dy: Array) -> tuple[Array, Array]:
        """(image, result)."""
        return (dy, x) if self.transposed else (x, dy)


def _expected(compute: Callable[..., Array], terms: int, *factors: Array, bias: Array | None = None) -> Expected:
    wide = [f.astype(np.longdouble) for f in factors]
    with np.errstate(all="ignore"):
        value, magnitude = compute(*wide), compute(*(np.abs(f) for f in wide))
        if bias is not None:
            column = bias.reshape(-1, *(1,) * (value.ndim - 2))
            value, magnitude, terms = value + column, magnitude + np.abs(column), terms + 1
    return Expected(value.astype(np.float64), magnitude.astype(np.float64), max(terms, 1))


def reference(case: Case) -> dict[str, Expected]:
    """Results and gradients by the definition."""
    desc: Any = case.descriptor
    p, t = _Problem(desc), case.tensors
    taps = prod(desc.weight_shape[2:])
    read = desc.weight_shape[0] // desc.groups if p.transposed else desc.weight_shape[1]
    if isinstance(desc, (ConvDescriptor, ConvTransposeDescriptor)):
        compute = p.to_image if p.transposed else p.to_result
        return {"y": _expected(compute, read * taps, t["x"], t["weight"], bias=t.get("bias"))}
    image, result = p.given(t["x"], t["dy"])
    back = p.to_result if p.transposed else p.to_image
    made = desc.weight_shape[1] if p.transposed else desc.weight_shape[0] // desc.groups
    found = {
        "dx": _expected(back, made * taps, t["dy"], t["weight"]),
        "dweight": _expected(p.to_weight, prod(p.result[2:]) * p.result[0], image, result),
    }
    if desc.dbias:
        axes = (0, *range(2, t["dy"].ndim))
        found["dbias"] = _expected(lambda dy: dy.sum(axes), t["dy"].size // t["dy"].shape[1], t["dy"])
    return found


def forward_of(case: Case) -> Case:
    """The forward case of a gradient."""
    desc: Any = case.descriptor
    cls: Any = ConvDescriptor if isinstance(desc, ConvBackwardDescriptor) else ConvTransposeDescriptor
    names = ("input_shape", "weight_shape", *_FIELDS, "element")
    made = cls(**{n: getattr(desc, n) for n in names}, bias=desc.dbias)
    tensors = {"x": case.tensors["x"], "weight": case.tensors["weight"]}
    if desc.dbias:
        tensors["bias"] = np.random.default_rng(3).normal(size=desc.result_shape()[1:2])
    return Case(made, tensors)
