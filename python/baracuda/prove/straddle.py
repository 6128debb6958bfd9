"""Cases whose sizes straddle the thresholds of kernels: their blocks, tiles, chunks and what they do with short rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import inf, prod
from typing import TYPE_CHECKING, Any

import numpy as np

from baracuda import _core
from baracuda.describe.dims import largest
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.spec import IN, Descriptor
from baracuda.prove.batches import Place, groups, grown, resized
from baracuda.prove.reference import Case, epsilon, reference_module

if TYPE_CHECKING:
    from baracuda.prove.reference import Array


def threshold(name: str, family: str = "") -> int:
    """One of them, by name."""
    return next(int(value) for of, at, value in _core.thresholds() if (of, at) == (family, name))


def thresholds(family: str) -> list[int]:
    """Sizes at which the loaded kernels of a family change what they do."""
    return sorted({int(value) for name, _, value in _core.thresholds() if name in ("", family)})


def _elements(desc: Descriptor, places: tuple[Place, ...], size: int) -> float:
    """How many elements all tensors have with another size; none such is infinitely many."""
    try:
        other = resized(desc, places, size)
    except InvalidProblemError:
        return inf
    return sum(prod(map(largest, shape)) for p in other.signature().present for shape in p.shapes)


def treacherous(shape: tuple[int, ...], axis: int, loss: float, first: bool = True) -> Array:
    """A one and terms of less than half of `loss`, the spacing at 1, that a sum loses unless it keeps rounding errors."""
    terms = np.full(shape, 0.45 * loss)
    np.moveaxis(terms, axis, 0)[0 if first else -1] = 1
    return terms


def straddling(case: Case, most: int, rng: np.random.Generator) -> Iterator[Case]:
    """The case with one size after another at or beside a threshold that is drawn.

    Args:
        case: A problem with inputs, whose values are repeated.
        most: Elements that all tensors may have together.
        rng: Says which thresholds, and whether the values are such that an uncompensated sum loses many of them.
    """
    desc = case.descriptor
    known = thresholds(desc.family)
    seen: list[Any] = []
    for places, count in groups(desc, least=1):
        axes = grown(desc, places, count)
        if not axes or axes in seen:
            continue
        seen.append(axes)
        sizes = [s for t in known for s in (t - 1, t, t + 1, 2 * t + 1) if s > 0]
        fitting = [s for s in sizes if _elements(desc, places, s) <= most]
        if not fitting:
            continue
        size = int(rng.choice(fitting))
        index = np.arange(size) % count
        tensors: dict[str, Any] = {}
        hard, first = rng.random() < 0.4, bool(rng.random() < 0.5)
        for name, value in case.tensors.items():
            entries = value if isinstance(value, list) else [value]
            taken = [np.take(v, index, axes[name, i]) if (name, i) in axes else v for i, v in enumerate(entries)]
            p = desc.signature()[name]
            if hard and p.role == IN and p.element.is_float and not p.element.is_half:
                loss = epsilon(p.element.compute)
                taken = [
                    treacherous(v.shape, axes[name, i], loss, first) if (name, i) in axes else v
                    for i, v in enumerate(taken)
                ]
            tensors[name] = taken if isinstance(value, list) else taken[0]
        note = f"{case.note} {size} along " + ", ".join(f"{name}[{axis}]" for (name, _), axis in axes.items())
        yield _consistent(replace(case, descriptor=resized(desc, places, size), tensors=tensors, note=note))


def _consistent(case: Case) -> Case:
    """A gradient's case with what its own forward pass saves."""
    module = reference_module(case.descriptor.op)
    if case.descriptor.direction == "forward" or not hasattr(module, "forward_of"):
        return case
    try:
        saved = module.reference(module.forward_of(case))
    except (ValueError, IndexError, KeyError):
        return case  # no problem any more, which whoever runs it is told
    return replace(case, tensors=case.tensors | {k: v.value for k, v in saved.items() if k in case.tensors})
