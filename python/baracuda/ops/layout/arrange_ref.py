"""Reference of what turns, cuts and writes into tensors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from baracuda.describe.elements import Element
from baracuda.ops.layout.arrange import (
    DiagBackwardDescriptor,
    DiagDescriptor,
    FlipDescriptor,
    RollDescriptor,
    TrilDescriptor,
    TriuDescriptor,
    WriteSliceDescriptor,
)
from baracuda.ops.layout.layout_ref import values
from baracuda.prove.reference import Array, Case, Expected

_FLIPS: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((), ()), ((5,), (0,)), ((0, 3), (0, 1)), ((33, 70), (-1,)), ((33, 70), (0,)), ((6, 5, 9), (0, 2)),
    ((2, 3, 2, 1, 2, 3, 2, 2), (0, 1, 2, 3, 4, 5, 6, 7)), ((4097,), (0,)),
]  # fmt: skip
_ROLLS: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((), ()), ((5,), (2,)), ((5,), (-12,)), ((0, 3), (1, 1)), ((33, 70), (0, 64)), ((6, 5, 9), (1, -2, 3)),
    ((2, 3, 2, 1, 2, 3, 2, 2), (1, 1, 0, 0, 1, 2, 0, 1)), ((4097,), (4096,)),
]  # fmt: skip
_TRIANGLES: list[tuple[tuple[int, ...], int]] = [
    ((3, 5), 0), ((5, 3), 1), ((4, 4), -2), ((2, 3, 40, 33), 7), ((0, 3), 0), ((3, 0), 1), ((2, 2), 9), ((2, 2), -9),
    ((130, 300), -100), ((1, 2, 1, 2, 2, 1, 3, 4), 1),
]  # fmt: skip
_DIAGS: list[tuple[tuple[int, ...], int]] = [
    ((4,), 0), ((3,), 2), ((3,), -1), ((0,), 1), ((4, 6), 0), ((6, 4), 1), ((6, 4), -5), ((3, 3), 7), ((60, 70), 3),
]  # fmt: skip
# shape, size, axis, step, start
_SLICES: list[tuple[tuple[int, ...], int, int, int, int]] = [
    ((5,), 2, 0, 1, 1), ((5,), 0, 0, 1, 5), ((33, 70), 20, 1, 3, 9), ((33, 70), 33, 0, 1, 0), ((6, 64), 2, 0, 1, 4),
    ((2, 3, 2, 1, 2, 3, 2, 4), 2, 7, 2, 1), ((4, 40, 64), 7, 1, 2, 20), ((0, 4), 2, 1, 1, 2),
]  # fmt: skip


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Ranks 0 to 8, empty axes, sizes around the tiles' own, shifts beyond an axis."""

    def draw(shape: tuple[int, ...]) -> Array:
        return values(element, shape, rng)

    if op == "write_slice":
        for shape, size, axis, step, start in _SLICES:
            source = (*shape[:axis], size, *shape[axis + 1 :])
            desc = WriteSliceDescriptor(shape, size, axis, step, element)
            yield Case(desc, {"x": draw(shape), "source": draw(source)}, {"start": start})
    else:
        yield from _simple(op, direction, element, draw)


def _simple(op: str, direction: str, element: Element, draw: Any) -> Iterator[Case]:
    if op == "diag" and direction == "backward":
        for shape, diagonal in _DIAGS:
            desc = DiagBackwardDescriptor(shape, diagonal, element)
            yield Case(desc, {"dy": draw(desc.other_shape())})
        return
    lists: dict[str, tuple[Any, Any]] = {
        "flip": (FlipDescriptor, _FLIPS),
        "roll": (RollDescriptor, _ROLLS),
        "tril": (TrilDescriptor, _TRIANGLES),
        "triu": (TriuDescriptor, _TRIANGLES),
        "diag": (DiagDescriptor, _DIAGS),
    }
    cls, problems = lists[op]
    for shape, field in problems:
        yield Case(cls(shape, field, element), {"x": draw(shape)})


def _diagonal(x: Array, shape: tuple[int, ...], k: int) -> Array:
    """np.diag with zeros around, or the diagonal; `shape` is the result's."""
    if x.ndim == 2:
        return np.diagonal(x, k) if -x.shape[0] <= k <= x.shape[1] else x.reshape(-1)[:0]
    out = np.zeros(shape, x.dtype)
    i = np.arange(len(x))
    out[i + max(-k, 0), i + max(k, 0)] = x
    return out


def reference(case: Case) -> dict[str, Expected]:
    """The same numbers in other places."""
    desc, t = case.descriptor, case.tensors
    if isinstance(desc, DiagBackwardDescriptor):
        return {"dx": Expected(_diagonal(np.asarray(t["dy"]), desc.shape, desc.diagonal))}  # type: ignore[arg-type]
    x = np.asarray(t["x"])
    if isinstance(desc, FlipDescriptor):
        return {"y": Expected(np.flip(x, desc.axes) if x.ndim else x)}
    if isinstance(desc, RollDescriptor):
        return {"y": Expected(np.roll(x, desc.shifts, tuple(range(x.ndim))) if x.ndim else x)}
    if isinstance(desc, DiagDescriptor):
        return {"y": Expected(_diagonal(x, desc.other_shape(), desc.diagonal))}  # type: ignore[arg-type]
    if isinstance(desc, WriteSliceDescriptor):
        y, source = x.copy(), t["source"]
        for i in range(source.shape[desc.axis]):
            at: Any = (slice(None),) * desc.axis
            y[(*at, int(case.scalars["start"]) + i * desc.step)] = source[(*at, i)]
        return {"y": Expected(y)}
    assert isinstance(desc, (TrilDescriptor, TriuDescriptor))
    made = np.tril(x, desc.diagonal) if isinstance(desc, TrilDescriptor) else np.triu(x, desc.diagonal)
    return {"y": Expected(made)}


def forward_of(case: Case) -> Case:
    """The forward case of a gradient."""
    desc = case.descriptor
    assert isinstance(desc, DiagBackwardDescriptor)
    x = np.random.default_rng(3).normal(size=desc.shape)  # type: ignore[arg-type]
    return Case(DiagDescriptor(desc.shape, desc.diagonal, desc.element), {"x": x})
