"""Problems with sizes 0 and ranks 0, made from the cases that a family's reference has, and rows' answers to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from baracuda.choose.plan import plan
from baracuda.choose.sku import PlanPreference
from baracuda.describe.dims import Dim, Size, largest
from baracuda.describe.elements import Element
from baracuda.describe.errors import BaracudaError, InvalidProblemError
from baracuda.describe.spec import IN, INOUT, Descriptor
from baracuda.prove.reference import LARGEST, Case, reference_module
from baracuda.prove.verify import Report, compare, count_elements, execute, expect

if TYPE_CHECKING:
    from baracuda.prove.reference import Array

# Layouts in which an empty tensor has torch's strides, NumPy's, those of a slice of something larger, negative ones.
LAYOUTS = ("contiguous", "dense", "sliced", "negative")
LARGEST_CASE = 20_000  # elements of a case that problems are made from
_MOST_EQUAL = 6  # of equal sizes, so many are tried one by one and with others
_MOST_TENSORS = 20  # of a case; what long lists have is like what short ones have
# A size of a problem: the field, which of its shapes (of a list), and which dimension; None: the field is the size.
Place = tuple[str, int | None, int | None]


def places(desc: Descriptor) -> dict[Place, int]:
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


def with_sizes(desc: Descriptor, sizes: Mapping[Place, Size]) -> dict[str, Any]:
    """The fields that change where these sizes do."""
    changes: dict[str, Any] = {}
    for (name, part, d), size in sizes.items():
        value = changes.get(name, getattr(desc, name))
        if d is None:
            changes[name] = size
        elif part is None:
            changes[name] = (*value[:d], size, *value[d + 1 :])
        else:
            shape = value[part]
            changes[name] = (*value[:part], (*shape[:d], size, *shape[d + 1 :]), *value[part + 1 :])
    return changes


def _with_zeros(desc: Descriptor, some: tuple[Place, ...]) -> dict[str, Any]:
    """The fields that change where these sizes become 0; named sizes become 0 under every name."""
    return with_sizes(desc, dict.fromkeys(some, 0))


def _asked(desc: Descriptor) -> Iterator[dict[str, Any]]:
    """What is tried: each size as 0 alone, with some that are equal, with all of them; shapes of rank 0."""
    sizes = places(desc)
    for size in dict.fromkeys(sizes.values()):
        equal = tuple(p for p in sizes if sizes[p] == size)
        for count in (1, 2, 3):
            for some in combinations(equal[:_MOST_EQUAL], count):
                yield _with_zeros(desc, some)
        yield _with_zeros(desc, equal)
    shapes = [name for name, part, d in sizes if part is None and d is not None]
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


def makes_something(case: Case) -> bool:
    """Whether an output has elements although an input has none: what nobody writes would show."""
    signature = case.descriptor.signature()
    outputs = {p.name for p in signature.outputs}

    def empty(shape: Any) -> bool:
        return any(largest(n) == 0 for n in shape)

    inputs = [s for p in signature.present if p.name not in outputs for s in p.shapes]
    return any(map(empty, inputs)) and not all(empty(s) for p in signature.outputs for s in p.shapes)


def problems(
    op: str, direction: str, element: Element, rng: np.random.Generator, most: tuple[int, int] | None
) -> list[Case]:
    """All problems that an op's cases become, or so many of those that make something and of the others."""
    found: dict[Any, Case] = {}
    for case in reference_module(op).cases(op, direction, element, rng):
        if count_elements(case) <= LARGEST_CASE:
            found |= {made.descriptor: made for made in emptied(case)}
    if most is None:
        return list(found.values())
    telling = [c for c in found.values() if makes_something(c)]
    others = [c for c in found.values() if not makes_something(c)]
    kept = []
    for some, count in ((telling, most[0]), (others, most[1])):
        kept += [some[i] for i in rng.permutation(len(some))[:count]]
    return kept


def in_range(case: Case, expected: dict[str, Any]) -> bool:
    """Whether the results are numbers that elements hold: parts of saved statistics may make them anything."""
    element = case.descriptor.primary_element()
    most = LARGEST.get(element.compute if element.is_float else element, np.inf)
    every = [e for found in expected.values() for e in (found if isinstance(found, list) else [found])]
    values = [np.abs(np.asarray(e.value, np.longdouble)) for e in every]
    return not any(((v > most) & np.isfinite(v)).any() for v in values)


def check(case: Case, variant: str, layout: str, fill: int, device: str = "cpu") -> list[str]:
    """What is wrong with a row's answer to a problem, if it takes it."""
    preference = PlanPreference(sku=variant)
    if not type(case.descriptor).plan_class.query(case.descriptor, device, preference):
        return []
    made = plan(case.descriptor, device, preference)
    report = Report(variant, "")
    label = f"{case.descriptor} by {variant} of {device}, {layout}, memory full of {fill:#04x}"
    try:
        outcome = execute(case, made, layout, fill=fill)
    except BaracudaError:  # an index into what is empty now, above all
        return []
    expected = expect(case, device)
    if in_range(case, expected):
        compare(case, outcome, made, report, label, expected)
    return report.problems
