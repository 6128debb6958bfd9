"""Reference of pooling, window by window and in extended precision."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np

from baracuda.describe.elements import Element
from baracuda.ops.pool.pool import (
    AdaptiveAvgPoolDescriptor,
    AdaptiveMaxPoolDescriptor,
    AvgPoolDescriptor,
    MaxPoolDescriptor,
)
from baracuda.prove.reference import Array, Case, Expected

# Shapes with kernel, stride, low, high, dilation, ceil_mode: windows that are cut off at both ends, that miss the image,
# that are longer than a block of sums or than a strip, or than the padded image; strides beyond the kernel; rows of several strips.
_SIZED: list[tuple[Any, ...]] = [
    ((1, 1, 1), (1,)),
    ((2, 3, 17), (3,), (2,), (1,), (1,)),
    ((1, 2, 300), (5,), (1,), (2,), (0,), (3,)),
    ((1, 2, 2500), (3,), (2,), (1,), (1,), (), True),
    ((2, 1, 900), (700,), (50,), (20,)),
    ((1, 1, 90), (4,), (70,)),
    ((2, 3, 7, 9), (3, 3), (2, 2), (1, 1), (1, 1)),
    ((2, 3, 8, 9), (2, 3), (2, 2), (0, 1), (1, 1), (), True),
    ((1, 20, 6, 5), (2, 2), (1, 3)),
    ((1, 2, 23, 21), (20, 18), (3, 1)),
    ((2, 3, 9, 8), (3, 2), (2, 1), (2, 1), (1, 0), (2, 3), True),
    ((1, 2, 1, 2), (2, 2), (1, 1), (2, 2), (2, 2), (3, 3)),
    ((0, 3, 5, 5), (2, 2)),
    ((2, 0, 5, 5), (2, 2)),
    ((2, 2, 4, 5, 6), (2, 3, 2), (1, 2, 2), (1, 0, 1), (1, 1, 0)),
    ((1, 33, 3, 4, 4), (2, 2, 2), (2, 2, 2), (), (), (), True),
    ((2, 3, 1), (3,), (3,), (), (), (), True),
    ((1, 17, 2, 3), (4, 7), (3, 6), (0, 1), (0, 1), (), True),
    ((1, 3, 1, 5, 2), (2, 3, 4), (2, 1, 3), (), (), (), True),
]
_PARTS: list[tuple[Any, ...]] = [
    ((1, 1, 1), (1,)), ((2, 3, 17), (5,)), ((1, 2, 3000), (1,)), ((1, 2, 2500), (3,)), ((2, 3, 4), (7,)), ((2, 3, 8, 9), (1, 1)),
    ((2, 3, 14, 14), (7, 7)), ((1, 20, 5, 7), (3, 4)), ((2, 3, 5, 6), (0, 2)), ((0, 3, 5, 6), (2, 2)), ((2, 2, 4, 5, 6), (2, 7, 1)),
]  # fmt: skip
_FIELDS = ("kernel", "stride", "low", "high", "dilation", "ceil_mode")
FORWARD: dict[str, Any] = {
    "max_pool": MaxPoolDescriptor,
    "avg_pool": AvgPoolDescriptor,
    "adaptive_max_pool": AdaptiveMaxPoolDescriptor,
    "adaptive_avg_pool": AdaptiveAvgPoolDescriptor,
}


def _descriptors(op: str, element: Element) -> Iterator[Any]:
    if op.startswith("adaptive"):
        for i, (shape, size) in enumerate(_PARTS):
            yield FORWARD[op](shape, size, element, **({"indices": i % 3 != 1} if "max" in op else {}))
        return
    for i, (shape, *rest) in enumerate(_SIZED):
        fields = dict(zip(_FIELDS, rest, strict=False))
        if op == "avg_pool":
            fields.pop("dilation", None)
            yield AvgPoolDescriptor(
                shape, **fields, count_include_pad=i % 2 == 0, divisor=-7 * (i % 3 == 2), element=element
            )
        else:
            yield MaxPoolDescriptor(shape, **fields, element=element, indices=i % 3 != 1)


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """All of _SIZED or _PARTS, equal values, NaN and infinities, whole windows of -inf."""
    for desc in _descriptors(op, element):
        yield _case(desc, direction, _values(desc, element))
    like = (2, 3, 6, 7)
    window: dict[str, Any] = {"output_size": (3, 4)}
    if not op.startswith("adaptive"):
        window = {"kernel": (3, 3), "stride": (2, 2), "low": (1, 1), "high": (1, 1)}
    for indices in (True, False) if "max" in op else (None,):
        more = {} if indices is None else {"indices": indices}
        desc = FORWARD[op](like, **window, element=element, **more)
        ties = _case(
            desc,
            direction,
            rng.integers(0, 3, like).astype(np.float64 if element.is_float else element.numpy),
            note="equal values",
        )
        yield ties
        if not element.is_float:
            continue
        x = rng.normal(size=like)
        x[0, 0, 2, 3], x[0, 0, 3, 3], x[1, 2, 4, 1], x[0, 1], x[1, 0, 0] = np.nan, np.nan, np.inf, -np.inf, np.nan
        yield _case(desc, direction, x, note="special values")


def _values(desc: Any, element: Element) -> Array:
    """Numbers that are all different, always the same ones of a shape."""
    n = prod(desc.input_shape)
    x = np.random.default_rng(n).permutation(n).reshape(desc.input_shape)
    return (
        (x - n // 2) / 64 if element.is_float else (x % 251 - 100 * (element.numpy.kind == "i")).astype(element.numpy)
    )


def _case(desc: Any, direction: str, x: Array, note: str = "") -> Case:
    forward = Case(desc, {"x": x}, note=note, exact_gradient=not note)
    if direction == "forward":
        return forward
    rng = np.random.default_rng(5)
    given: dict[str, Any] = {"dy": rng.normal(size=desc.result_shape())}
    exact = not note
    if "max" in desc.op:
        y, given["indices"] = _Problem(desc).largest(np.asarray(x))
        exact = exact and bool(np.isfinite(y).all())
    return Case(desc.backward(), given, note=note, exact_gradient=exact)


def _whole(at: tuple[int, ...]) -> tuple[Any, ...]:
    """A place of all images and channels."""
    return (..., *at)


class _Problem:
    """The windows of a descriptor."""

    def __init__(self, desc: Any) -> None:
        self.desc, self.size, self.results = desc, desc.input_shape[2:], desc.result_sizes()
        self.adaptive = desc.op.startswith("adaptive")

    def _along(self, axis: int, o: int) -> tuple[list[int], int]:
        """The places of a result along an axis, and how many it counts as."""
        size, d = self.size[axis], self.desc
        if self.adaptive:
            places = list(range(o * size // self.results[axis], -(-(o + 1) * size // self.results[axis])))
            return places, len(places)
        first = o * d.stride[axis] - d.low[axis]
        taps = range(first, first + d.kernel[axis] * d.dilations()[axis], d.dilations()[axis])
        places = [i for i in taps if 0 <= i < size]
        padded = not hasattr(d, "count_include_pad") or d.count_include_pad
        return places, sum(i < size + d.high[axis] for i in taps) if padded else len(places)

    def windows(self) -> Iterator[tuple[tuple[int, ...], Any, float]]:
        """Each result with the positions of its window in the plane, and what its sum is divided by."""
        for at in np.ndindex(*self.results):
            along = [self._along(i, o) for i, o in enumerate(at)]
            grid = np.meshgrid(*(np.asarray(p, np.int64) for p, _ in along), indexing="ij")
            flat = np.ravel_multi_index(grid, self.size).reshape(-1)
            yield at, flat, getattr(self.desc, "divisor", 0) or prod(n for _, n in along)

    def largest(self, x: Array) -> tuple[Array, Array]:
        whole = not self.desc.element.is_float
        least = np.iinfo(self.desc.element.numpy).min if whole else -np.inf
        shape = (*x.shape[:2], *self.results)
        y, indices = np.full(shape, least, x.dtype), np.zeros(shape, np.int64)
        plane = x.reshape(*x.shape[:2], prod(self.size))
        for at, flat, _ in self.windows():
            if flat.size == 0:
                continue
            seen = plane[..., flat]
            nan = np.zeros(seen.shape, bool) if whole else np.isnan(seen)
            last = flat.size - 1 - nan[..., ::-1].argmax(-1)
            best = np.where(nan.any(-1), last, np.where(nan, least, seen).argmax(-1))
            y[_whole(at)] = np.take_along_axis(seen, best[..., None], -1)[..., 0]
            indices[_whole(at)] = flat[best]
        return y, indices

    def mean(self, x: Array) -> Expected:
        shape = (*x.shape[:2], *self.results)
        value, size, sums = (np.zeros(shape, np.longdouble) for _ in range(3))
        plane, terms = x.reshape(*x.shape[:2], prod(self.size)).astype(np.longdouble), 1
        for at, flat, divisor in self.windows():
            where = _whole(at)
            total, sums[where] = plane[..., flat].sum(-1), np.abs(plane[..., flat]).sum(-1)
            value[where], size[where] = total / divisor, sums[where] / abs(divisor)
            terms = max(terms, flat.size)
        return _expected(value, size, terms, sums)

    def gradient(self, dy: Array, indices: Array | None) -> Expected:
        planes = (*dy.shape[:2], prod(self.size))
        value, size, count = (np.zeros(planes, np.longdouble) for _ in range(3))
        for at, flat, divisor in self.windows():
            given = dy[_whole(at)].astype(np.longdouble)[..., None]
            part = given / divisor if indices is None else np.where(indices[_whole(at)][..., None] == flat, given, 0)
            value[..., flat] += part
            size[..., flat] += np.abs(part)
            count[..., flat] += 1
        shape = (*dy.shape[:2], *self.size)
        return _expected(value.reshape(shape), size.reshape(shape), int(count.max(initial=1)))


def _expected(value: Array, size: Array, terms: int, reach: Array | None = None) -> Expected:
    found, magnitude = value.astype(np.float64), size.astype(np.float64)
    return Expected(found, magnitude, max(1, terms), reach=None if reach is None else reach.astype(np.float64))


def reference(case: Case) -> dict[str, Expected]:
    """Results and gradients by the definition."""
    desc: Any = case.descriptor
    p, t = _Problem(desc), case.tensors
    with np.errstate(all="ignore"):
        if desc.direction == "backward":
            return {"dx": p.gradient(t["dy"], t.get("indices"))}
        if "avg" in desc.op:
            return {"y": p.mean(t["x"])}
        y, indices = p.largest(t["x"])
    return {"y": Expected(y)} | ({"indices": Expected(indices)} if desc.indices else {})


def forward_of(case: Case) -> Case:
    """The forward case of a gradient."""
    desc: Any = case.descriptor
    names = ("input_shape", "output_size", *_FIELDS, "count_include_pad", "divisor")
    made = FORWARD[desc.op](**{n: getattr(desc, n) for n in names if hasattr(desc, n)}, element=Element.F64)
    return Case(made, {"x": _values(made, Element.F64)})
