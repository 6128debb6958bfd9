"""Problems with sizes 0 and ranks 0, made from the cases that a family's reference has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from baracuda.dims import Dim, largest
from baracuda.errors import InvalidProblemError
from baracuda.reference import Case
from baracuda.spec import IN, INOUT, Descriptor

if TYPE_CHECKING:
    from baracuda.reference import Array

_MOST_EQUAL = 6  # of equal sizes, so many are tried one by one and with others
_MOST_TENSORS = 20  # of a case; what long lists have is like what short ones have
# A size of a problem: the field, which of its shapes (of a list), and which dimension; None: the field is the size.
Place = tuple[str, int | None, int | None]


def _places(desc: Descriptor) -> dict[Place, int]:
    """Every size that a descriptor's fields have."""
    found: dict[Place, int] = {}
    for f in fields(desc):
        value = getattr(desc, f.name)
        kind = str(f.type).removesuffix(" | None")
        if value is None:
            continue
        if kind == "Size":
            found[f.name, None, None] = largest(value)
        elif kind == "Shape":
            found |= {(f.name, None, d): largest(n) for d, n in enumerate(value)}
        elif kind == "tuple[Shape, ...]":
            found |= {(f.name, i, d): largest(n) for i, shape in enumerate(value) for d, n in enumerate(shape)}
    return found


def _with_zeros(desc: Descriptor, places: tuple[Place, ...]) -> dict[str, Any]:
    """The fields that change where these sizes become 0; named sizes become 0 under every name."""
    changes: dict[str, Any] = {}
    for name, part, d in places:
        value = changes.get(name, getattr(desc, name))
        if d is None:
            changes[name] = 0
        elif part is None:
            changes[name] = (*value[:d], 0, *value[d + 1 :])
        else:
            shape = value[part]
            changes[name] = (*value[:part], (*shape[:d], 0, *shape[d + 1 :]), *value[part + 1 :])
    return changes


def _asked(desc: Descriptor) -> Iterator[dict[str, Any]]:
    """What is tried: each size as 0 alone, with some that are equal, with all of them; shapes of rank 0."""
    places = _places(desc)
    for size in dict.fromkeys(places.values()):
        equal = tuple(p for p in places if places[p] == size)
        for count in (1, 2, 3):
            for some in combinations(equal[:_MOST_EQUAL], count):
                yield _with_zeros(desc, some)
        yield _with_zeros(desc, equal)
    shapes = [name for name, part, d in places if part is None and d is not None]
    for some in [*((n,) for n in dict.fromkeys(shapes)), tuple(dict.fromkeys(shapes))]:
        yield {name: () for name in some} | ({"axis": 0} if hasattr(desc, "axis") else {})


def _resized(value: Any, shape: tuple[Any, ...]) -> Array:
    """The first elements of each dimension, or all repeated."""
    array, sizes = np.asarray(value), tuple(map(largest, shape))
    if array.ndim == len(sizes) and all(n <= m for n, m in zip(sizes, array.shape, strict=True)):
        return array[tuple(slice(n) for n in sizes)]
    return np.resize(array, sizes) if array.size else np.zeros(sizes, array.dtype)


def emptied(case: Case) -> Iterator[Case]:
    """The problems that a case becomes with size 0 in each of its dimensions in turn, and with shapes of rank 0.

    What the descriptor refuses is left out. Inputs are parts of the case's, or theirs repeated.
    """
    shapes = [shape for p in case.descriptor.signature().present for shape in p.shapes]
    if len(shapes) > _MOST_TENSORS or any(isinstance(n, Dim) for shape in shapes for n in shape):
        return
    seen = {case.descriptor}
    for changes in _asked(case.descriptor):
        try:
            desc = replace(case.descriptor, **changes)
            signature = desc.signature()
        except InvalidProblemError:
            continue
        given = {p.name: p for p in signature.present if p.role in (IN, INOUT)}
        if desc in seen or given.keys() != case.tensors.keys():
            continue
        seen.add(desc)
        tensors = {
            name: [_resized(v, s) for v, s in zip(case.tensors[name], p.shapes, strict=False)]
            if p.variadic
            else _resized(case.tensors[name], p.shape)
            for name, p in given.items()
        }
        yield replace(case, descriptor=desc, tensors=tensors, note=f"{case.note} emptied")
