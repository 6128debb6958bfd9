"""Reference of sampling by a grid, from the definition: sums over the places that each position takes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod
from typing import Any

import numpy as np

from baracuda.describe.elements import Element
from baracuda.ops.image.sample import GridSampleDescriptor, SampleMode, SamplePadding
from baracuda.prove.reference import Array, Case, Expected

# Shapes and results: one place, one channel, rows longer than a piece, many channels, three axes, nothing.
_SHAPES: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((1, 1, 1), (1,)),
    ((2, 3, 7), (40,)),
    ((2, 3, 5, 7), (4, 9)),
    ((1, 17, 6, 4), (3, 35)),
    ((0, 2, 3, 3), (2, 2)),
    ((2, 0, 3, 3), (2, 2)),
    ((1, 2, 4, 3), (0, 5)),
    ((2, 2, 3, 4, 5), (2, 3, 4)),
    ((1, 3, 1, 6, 1), (3, 1, 5)),
)
_FIELDS = ("input_shape", "output_size", "mode", "padding", "align_corners")


def _grid(desc: Any, rng: np.random.Generator, wide: float) -> Array:
    """Positions in and around an image, away from those where what is taken changes: parts of a place are 0.1 to 0.4."""
    shape = desc.grid_shape()
    grid = np.empty(shape)
    for j in range(shape[-1]):
        size = desc.input_shape[len(desc.input_shape) - 1 - j]
        whole = rng.integers(-int(wide * size) - 1, int((1 + wide) * size) + 1, shape[:-1])
        at = whole + rng.uniform(0.1, 0.4, shape[:-1])
        if desc.align_corners:
            grid[..., j] = 2 * at / (size - 1) - 1 if size > 1 else at - 1
        else:
            grid[..., j] = (2 * at + 1) / size - 1
    return grid


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """All modes and paddings; positions inside, around and far away; many at one place; special values."""
    for (shape, size), mode, padding, align in product(_SHAPES, SampleMode, SamplePadding, (False, True)):
        desc = GridSampleDescriptor(shape, size, mode, padding, align, element)
        if element.is_half and mode is not SampleMode.LINEAR and len(shape) == 5:
            continue
        yield _case(desc, direction, rng, _grid(desc, rng, 0.5), "")
    for mode in SampleMode:
        desc = GridSampleDescriptor((1, 2, 6, 5), (20, 30), mode, SamplePadding.BORDER, False, element)
        yield _case(desc, direction, rng, _grid(desc, rng, 40.0), "most at the edge", exact=False)
    if direction == "forward":
        for padding in SamplePadding:
            yield _special(padding, element, rng)


def _special(padding: SamplePadding, element: Element, rng: np.random.Generator) -> Case:
    desc: Any = GridSampleDescriptor((1, 2, 4, 4), (3, 3), SampleMode.NEAREST, padding, False, element)
    grid = _grid(desc, rng, 0.0)
    x = rng.normal(size=desc.input_shape)
    x[0, 0, 1:3], x[0, 1, 0] = np.inf, np.nan
    if padding is SamplePadding.ZEROS:
        grid[0, 0, 0] = np.nan
    grid[0, 1, 1], grid[0, 2, 2, 1] = (1e4, -1e4), 0.25  # 0.25 stands for 2: no tie
    return Case(desc, {"x": x, "grid": grid}, note="special values", exact_gradient=False)


def _case(desc: Any, direction: str, rng: np.random.Generator, grid: Array, note: str, *, exact: bool = True) -> Case:
    given = {"x": rng.normal(size=desc.input_shape), "grid": grid}
    if direction == "forward":
        return Case(desc, given, note=note, exact_gradient=exact and desc.mode is not SampleMode.NEAREST)
    dy = rng.normal(size=desc.result_shape())
    return Case(desc.backward(), {"dy": dy, **given}, note=note, exact_gradient=exact)


def _mirrored(at: Array, low: float, span: float) -> tuple[Array, Array]:
    """Positions between low and low + span, and which way they go with the given ones."""
    if span == 0:
        return np.zeros_like(at), np.zeros_like(at)
    turns, rest = np.divmod(np.abs(at - low), span)
    odd = turns % 2 == 1
    return low + np.where(odd, span - rest, rest), np.where(odd, -1.0, 1.0) * np.where(at < low, -1.0, 1.0)


def _filter(mode: SampleMode, t: Array) -> list[tuple[Array, Array]]:
    """Weights of the taps and what they change with the position."""
    one = np.ones_like(t)
    if mode is SampleMode.NEAREST:
        return [(one, 0 * one)]
    if mode is SampleMode.LINEAR:
        return [(1 - t, -one), (t, one)]
    a = -0.75

    def near(s: Array) -> tuple[Array, Array]:
        return (a + 2) * s**3 - (a + 3) * s**2 + 1, 3 * (a + 2) * s**2 - 2 * (a + 3) * s

    def far(s: Array) -> tuple[Array, Array]:
        return a * (s**3 - 5 * s**2 + 8 * s - 4), a * (3 * s**2 - 10 * s + 8)

    found = [far(1 + t), near(t), near(1 - t), far(2 - t)]
    return [(w, d if i < 2 else -d) for i, (w, d) in enumerate(found)]


class _Axis:
    """What positions along an axis take: for each tap the place, whether it is inside, weight, slope and their errors."""

    def __init__(self, desc: Any, g: Array, size: int) -> None:
        g = g.astype(np.longdouble)
        align, mode, padding = desc.align_corners, desc.mode, desc.padding
        slope = np.full(g.shape, (size - 1) / 2 if align else size / 2, np.longdouble)
        at = (g + 1) * (size - 1) / 2 if align else ((g + 1) * size - 1) / 2
        far = np.abs(np.where(np.isfinite(at), at, 0)) + np.abs(np.where(np.isfinite(g), g, 0)) * size + 2
        low, span = (0.0, size - 1.0) if align else (-0.5, float(size))
        cubic = mode is SampleMode.CUBIC
        if padding is not SamplePadding.ZEROS and not cubic:
            if padding is SamplePadding.REFLECTION:
                at, way = _mirrored(at, low, span)
                slope = slope * way
            slope = np.where((at > 0) & (at < size - 1), slope, 0)
            at = np.clip(at, 0, size - 1)
        at = np.where(np.isfinite(at), at, -1e6)
        whole = np.rint(at) if mode is SampleMode.NEAREST else np.floor(at)
        t = at - whole
        self.taps: list[tuple[Array, Array, Array, Array, Array, Array]] = []
        for k, (w, d) in enumerate(_filter(mode, t)):
            place = whole - cubic + k
            if cubic and padding is SamplePadding.BORDER:
                place = np.clip(place, 0, size - 1)
            if cubic and padding is SamplePadding.REFLECTION:
                place = np.clip(np.rint(_mirrored(place, low, span)[0]), 0, size - 1)
            inside = (place >= 0) & (place < size)
            unsure = 9 * far if cubic else 0 * far
            sized = (np.abs(w) + np.abs(d) * far, np.abs(slope) * (np.abs(d) + unsure))
            self.taps.append((np.where(inside, place, 0).astype(np.int64), inside, w, d * slope, *sized))


def reference(case: Case) -> dict[str, Expected]:
    """Results and gradients by the definition."""
    desc: Any = case.descriptor
    x, grid = (case.tensors[n].astype(np.longdouble) for n in ("x", "grid"))
    sizes = desc.input_shape[2:]
    axes = len(sizes)
    shape = (desc.input_shape[0], prod(desc.output_size))
    lines = [_Axis(desc, grid[..., axes - 1 - i].reshape(shape), sizes[i]) for i in range(axes)]
    flat = x.reshape(*x.shape[:2], prod(sizes))
    rows = np.arange(shape[0])[:, None]
    back = desc.direction == "backward"
    dy = case.tensors["dy"].astype(np.longdouble).reshape(*x.shape[:2], shape[1]) if back else None
    made = _Sums(flat, shape, axes)
    with np.errstate(all="ignore"):
        for taken in product(*(line.taps for line in lines)):
            place = np.zeros(shape, np.int64)
            inside = np.ones(shape, bool)
            for (at, within, *_), n in zip(taken, sizes, strict=True):
                place, inside = place * n + at, inside & within
            values = np.where(inside[:, None], np.moveaxis(flat[rows, :, place], 2, 1), 0)
            made.add(values, taken, inside, rows, place, dy)
    return made.results(desc, dy)


class _Sums:
    """Results, or gradients, and the sizes of their terms."""

    def __init__(self, flat: Array, shape: tuple[int, int], axes: int) -> None:
        results = (shape[0], flat.shape[1], shape[1])
        self.y, self.size = np.zeros(results, np.longdouble), np.zeros(results, np.longdouble)
        self.dx, self.dx_size = np.zeros_like(flat), np.zeros_like(flat)
        self.dgrid, self.dgrid_size = (np.zeros((axes, *shape), np.longdouble) for _ in range(2))
        self.most = np.zeros(shape, np.longdouble)  # of sums over channels, before they meet slopes
        self.taps, self.given = 0, np.zeros((flat.shape[0], flat.shape[2]), np.int64)

    def add(self, values: Array, taken: Any, inside: Array, rows: Array, place: Array, dy: Array | None) -> None:
        weight = np.prod([w for *_, w, _, _, _ in taken], axis=0) if taken else np.ones_like(inside)
        sized = np.prod([s for *_, s, _ in taken], axis=0)
        self.taps += 1
        if dy is None:
            within = inside[:, None]
            self.y += np.where(within, weight[:, None] * values, 0)
            self.size += np.where(within, sized[:, None] * np.abs(values), 0)
            return
        np.add.at(self.given, (rows, place), inside)
        for to, w, v in ((self.dx, weight, dy), (self.dx_size, sized, np.abs(dy))):
            np.add.at(
                to.swapaxes(1, 2), (rows, place), np.where(inside[..., None], np.moveaxis(w[:, None] * v, 1, 2), 0)
            )
        total, most = (dy * values).sum(axis=1), np.abs(dy * values).sum(axis=1)
        self.most += most
        for i in range(len(taken)):
            slope = np.prod([t[3] if j == i else t[2] for j, t in enumerate(taken)], axis=0)
            size = np.prod([t[5] if j == i else t[4] for j, t in enumerate(taken)], axis=0)
            self.dgrid[i] += slope * total
            self.dgrid_size[i] += size * most

    def results(self, desc: Any, dy: Array | None) -> dict[str, Expected]:
        def expected(value: Array, size: Array, shape: Any, terms: int) -> Expected:
            return Expected(
                value.reshape(shape).astype(np.float64), size.reshape(shape).astype(np.float64), max(1, terms)
            )

        if dy is None:
            return {"y": expected(self.y, self.size, desc.result_shape(), self.taps)}
        dgrid, size = (np.moveaxis(d[::-1], 0, -1) for d in (self.dgrid, self.dgrid_size))
        found = expected(dgrid, size, desc.grid_shape(), self.taps * max(1, desc.input_shape[1]))
        found.reach = np.broadcast_to(self.most[..., None], dgrid.shape).reshape(desc.grid_shape()).astype(np.float64)
        return {
            "dx": expected(self.dx, self.dx_size, desc.input_shape, int(self.given.max(initial=1))),
            "dgrid": found,
        }


def forward_of(case: Case) -> Case:
    """The forward case of a gradient."""
    desc: Any = case.descriptor
    made = GridSampleDescriptor(**{n: getattr(desc, n) for n in _FIELDS}, element=Element.F64)
    return Case(made, {n: case.tensors[n] for n in ("x", "grid")})
