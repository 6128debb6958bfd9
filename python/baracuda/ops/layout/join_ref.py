"""Reference of what puts lists of tensors together."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from baracuda.describe.elements import Element
from baracuda.ops.layout.join import CatDescriptor, StackDescriptor
from baracuda.ops.layout.layout_ref import values
from baracuda.prove.reference import Array, Case, Expected

_CATS: list[tuple[tuple[tuple[int, ...], ...], int]] = [
    (((2, 3), (2, 5), (2, 0), (2, 1)), -1),
    (((5,),), 0),
    (((70, 33), (1, 33), (64, 33)), 0),
    (((0, 4), (0, 4)), 1),
    (((2, 1, 2, 1, 3, 2, 2, 2), (2, 1, 2, 3, 3, 2, 2, 2)), 3),
    (((4100,), (3,), (9000,)), 0),
    (tuple((3, k % 4) for k in range(70)), 1),
]
_STACKS: list[tuple[tuple[int, ...], int, int]] = [
    ((), 3, 0), ((5,), 2, 1), ((4, 3), 1, -1), ((2, 3, 1, 2, 2, 1, 3), 3, 4), ((40, 129), 2, 0), ((0, 2), 3, 1),
]  # fmt: skip


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Lists of one to 70 tensors, ranks 0 to 8, empty ones among them, sizes around the tiles' own."""
    del direction

    def draw(shape: tuple[int, ...]) -> Array:
        return values(element, shape, rng)

    if op == "cat":
        for shapes, axis in _CATS:
            yield Case(CatDescriptor(shapes, axis, element), {"tensors": [draw(s) for s in shapes]})
    else:
        for shape, count, axis in _STACKS:
            yield Case(StackDescriptor(shape, count, axis, element), {"tensors": [draw(shape) for _ in range(count)]})


def reference(case: Case) -> dict[str, Expected]:
    """The same numbers in other places."""
    desc, t = case.descriptor, case.tensors
    if isinstance(desc, CatDescriptor):
        return {"y": Expected(np.concatenate(t["tensors"], desc.axis))}
    assert isinstance(desc, StackDescriptor)
    return {"y": Expected(np.stack(t["tensors"], desc.axis))}
