"""Rules of drawing by kind of function, which the families' facts name: how arguments grow with the size of a draw."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from baracuda.prove.draws import Arguments, Draws, Rule

Values = str | tuple[float, float]


def elementwise(values: Mapping[str, Values] | Values = "normal", **numbers: Any) -> Rule:
    """A tensor for each parameter that has to be given: the first of the full shape, the others of one that broadcasts."""

    def rule(d: Draws) -> Arguments:
        shape = d.shape()
        given: Arguments = {}
        for name in d.parameters:
            if name in numbers:
                continue
            kind = values if not isinstance(values, Mapping) else values.get(name, "normal")
            given[name] = d.tensor(d.part(shape) if given else shape, kind)
        return given | numbers

    return rule


def alike(values: Values = "normal", **numbers: Any) -> Rule:
    """Tensors of one shape for all parameters that have to be given."""

    def rule(d: Draws) -> Arguments:
        shape = d.shape()
        return {n: d.tensor(shape, values) for n in d.parameters if n not in numbers} | numbers

    return rule


def along(most: float = 1e6, least: int = 1, **numbers: Any) -> Rule:
    """A tensor, and the dimension along which it is scanned, normalised or sorted."""

    def rule(d: Draws) -> Arguments:
        shape, dim = d.along(most, least)
        return {d.parameters[0]: d.tensor(shape), "dim": dim} | numbers

    return rule


def reduction(least: int = 1, several: bool = False, whole: bool = True, repeated: bool = True) -> Rule:
    """A tensor and the dimension that is reduced: one, now and then all of them or two. Numbers all differ unless `repeated`."""

    def rule(d: Draws) -> Arguments:
        if not repeated and d.layout in ("row", "column"):
            d.layout = "contiguous"
        shape, dim = d.along(least=least)
        given: Arguments = {d.parameters[0]: d.tensor(shape)}
        kind = d.rng.random()
        if whole and kind < 0.15:
            return given
        if several and kind < 0.3 and len(shape) > 2:
            return given | {"dim": tuple(sorted({dim, len(shape) - 1}))}
        given["dim"] = dim
        return given | ({"keepdim": True} if kind > 0.8 else {})

    return rule


def whole(values: Values = "normal", low: int = 1, high: int = 5, **numbers: Any) -> Rule:
    """One tensor, nothing else but these numbers."""
    return lambda d: {d.parameters[0]: d.tensor(d.shape(low, high), values), **numbers}


def limited(d: Draws, elements: float) -> Draws:
    """The same draw of not more elements, where the work grows faster than the size."""
    d.count = min(d.count, int(elements))
    return d


def products(d: Draws, work: float = 2e9) -> tuple[int, int, int]:
    """Rows, inner extent and columns of a product of about the draw's size, and of not more multiplications than `work`."""
    m, k, n = d.split(float(d.count) ** 1.5, 3)
    while m * k * n > work or max(m * k, k * n, m * n) > max(d.count, 1) * 2:
        largest = max(m, k, n)
        m, k, n = ((x * 2 + 2) // 3 if x == largest else x for x in (m, k, n))
    return m, k, n


def planes(d: Draws, axes: int, least: int = 4) -> tuple[int, int, tuple[int, ...]]:
    """Batch, channels and extents of images: from a few pixels to some hundreds along each axis."""
    extents = tuple(d.between(least, min(256, max(least, d.count ** (0.8 / axes)))) for _ in range(axes))
    pixels = 1
    for n in extents:
        pixels *= n
    rest = max(1.0, d.count / pixels)
    channels = d.between(1, min(512, rest))
    return max(1, min(64, round(rest / channels))), channels, extents
