"""Rows of a batch: what `batch_invariant` promises, found from the reference and checked for bits.

No op says which of its axes are batches. An axis of a problem is one when the reference's result for each position along
it is that of the position alone; so a new op is held to the promise by existing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from baracuda.describe.dims import largest
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.spec import IN, Descriptor
from baracuda.prove.narrow import decode, is_records
from baracuda.prove.reference import Case, Expected, reference_module

if TYPE_CHECKING:
    from baracuda.prove.reference import Array

# A size of a descriptor: its field, then the place in it; none where the field itself is the size.
Place = tuple[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Batch:
    """An axis along which a problem falls apart.

    Attributes:
        places: The sizes of the descriptor that count its positions.
        axes: By tensor (and entry of a list) the axis; tensors that all positions share are not in it.
        count: How many positions the problem has.
    """

    places: tuple[Place, ...]
    axes: Mapping[tuple[str, int], int]
    count: int

    def __str__(self) -> str:
        return ", ".join(f"{name}[{axis}]" for (name, _), axis in self.axes.items())


def _places(desc: Descriptor) -> Iterator[tuple[Place, int]]:
    for f in fields(desc):  # type: ignore[arg-type]
        value = getattr(desc, f.name)
        if f.name.endswith("shape") and value is not None:
            yield from (((f.name, (i,)), largest(size)) for i, size in enumerate(value))
        elif f.name.endswith("shapes"):
            for entry, shape in enumerate(value):
                yield from (((f.name, (entry, i)), largest(size)) for i, size in enumerate(shape))
        elif str(f.type) in ("Size", "Size | None") and value is not None:
            yield (f.name, ()), largest(value)


def _put(value: Any, path: tuple[int, ...], size: int) -> Any:
    if not path:
        return size
    return tuple(_put(v, path[1:], size) if i == path[0] else v for i, v in enumerate(value))


def resized(desc: Descriptor, places: tuple[Place, ...], size: int) -> Descriptor:
    """The descriptor with other sizes at some places."""
    changed: dict[str, Any] = {}
    for name, path in places:
        changed[name] = _put(changed.get(name, getattr(desc, name)), path, size)
    return replace(desc, **changed)  # type: ignore[type-var]


def groups(desc: Descriptor, least: int = 2) -> Iterator[tuple[tuple[Place, ...], int]]:
    """Places of equal size, at least `least`, that may be one axis: each, all, those at one place of a shape, pairs."""
    found = [(place, size) for place, size in _places(desc) if size >= least]
    for place, size in found:
        alike = [p for p, s in found if s == size]
        yield (place,), size
        if place != alike[0]:
            continue
        yield tuple(alike), size
        for i in sorted({p[1][-1] for p in alike if p[1]}):
            yield tuple(p for p in alike if p[1] and p[1][-1] == i), size
        for pair in combinations(alike[:6], 2):
            yield pair, size


def grown(desc: Descriptor, places: tuple[Place, ...], count: int) -> dict[tuple[str, int], int] | None:
    """The axes of tensors that grow with some places of size `count`; None where sizes follow in another way."""
    try:
        other = resized(desc, places, count + 1)
    except InvalidProblemError:
        return None
    axes: dict[tuple[str, int], int] = {}
    for p, q in zip(desc.signature().params, other.signature().params, strict=True):
        if p.present != q.present or len(p.shapes) != len(q.shapes):
            return None
        for entry, (a, b) in enumerate(zip(p.shapes, q.shapes, strict=True)) if p.present else ():
            longer = [i for i, (m, n) in enumerate(zip(a, b, strict=True)) if largest(m) != largest(n)]
            if len(longer) > 1 or any((largest(a[i]), largest(b[i])) != (count, count + 1) for i in longer):
                return None
            if longer:
                axes[p.name, entry] = longer[0]
    return axes


def _pick(name: str, value: Any, axes: Mapping[tuple[str, int], int], index: Array) -> Any:
    if isinstance(value, list):
        return [np.take(v, index, axes[name, i]) if (name, i) in axes else v for i, v in enumerate(value)]
    return np.take(value, index, axes[name, 0]) if (name, 0) in axes else value


def chosen(case: Case, batch: Batch, index: Array) -> Case:
    """The case with the positions `index` of a batch."""
    desc = resized(case.descriptor, batch.places, len(index))
    return replace(case, descriptor=desc, tensors={k: _pick(k, v, batch.axes, index) for k, v in case.tensors.items()})


def results(case: Case, batch: Batch) -> list[tuple[str, int]]:
    """The outputs that have a part for each position."""
    written = [p for p in case.descriptor.signature().present if p.role != IN]
    return [(p.name, i) for p in written for i in range(len(p.shapes)) if (p.name, i) in batch.axes]


def _value(found: Mapping[str, Any], name: str, entry: int) -> Array:
    part = found[name][entry] if isinstance(found[name], list) else found[name]
    return np.asarray(part.value if isinstance(part, Expected) else part)


def _falls_apart(case: Case, batch: Batch, whole: Mapping[str, Any]) -> bool:
    """Whether the reference gives positions alone, and more of them, what it gives them among the others."""
    reference = reference_module(case.descriptor.op).reference
    if not all(name in whole and np.any(_value(whole, name, entry)) for name, entry in results(case, batch)):
        return False  # of nothing but zeros any axis would seem to be one
    given = [np.asarray(v) for t in case.tensors.values() for v in (t if isinstance(t, list) else [t])]
    if given and all(v.dtype == bool for v in given) and sum(v.size for v in given) < 64:
        return False  # nor do so few bits tell
    last = batch.count - 1
    for index in ([0], [batch.count // 2], [last], np.arange(3 * batch.count + 40) % batch.count):
        try:
            with np.errstate(over="ignore"):
                part = reference(chosen(case, batch, np.asarray(index)))
        except (ValueError, IndexError):  # not a problem any more, such as indices of what is gone
            return False
        for name, entry in results(case, batch):
            want = np.take(_value(whole, name, entry), index, batch.axes[name, entry])
            wide = np.result_type(want, np.longdouble)  # exact for integers, too; complex stays complex
            want, got = want.astype(wide), _value(part, name, entry).astype(wide)
            if want.shape != got.shape or not np.allclose(got, want, rtol=1e-12, atol=1e-300, equal_nan=True):
                return False
    return True


def batches(case: Case, whole: Mapping[str, Any]) -> Iterator[Batch]:
    """The axes along which a case falls apart.

    Args:
        case: The problem, with inputs rounded to its elements.
        whole: What the reference gives for it.
    """
    seen = []
    for places, count in groups(case.descriptor):
        axes = grown(case.descriptor, places, count)
        if not axes or axes in seen:
            continue
        seen.append(axes)
        batch = Batch(places, axes, count)
        if results(case, batch) and _falls_apart(case, batch, whole):
            yield batch


# How many rows: around the numbers where kernels change what they do (lanes, tiles, chunks, strips).
COUNTS = (2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 129, 255, 257, 513, 1025, 4099)
MOST_ROWS = 4  # that are computed alone


def same_bits(a: Array, b: Array) -> bool:
    """Whether two arrays hold the same bits; which NaN it is does not count."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    if a.tobytes() == b.tobytes():
        return True
    if is_records(a):
        a, b = decode(a), decode(b)
    bits = np.dtype(f"u{a.dtype.itemsize}")
    with np.errstate(invalid="ignore"):
        return bool(((a.view(bits) == b.view(bits)) | ((a != a) & (b != b))).all())


def other_bits(
    case: Case, batch: Batch, counts: Iterable[int], rng: np.random.Generator, run: Callable[[Case], Mapping[str, Any]]
) -> Iterator[str]:
    """Where rows among others have other bits than alone.

    Args:
        case: A problem with inputs.
        batch: An axis along which it falls apart.
        counts: How many rows the problems have in which rows are looked at.
        rng: Says which rows, and where they stand.
        run: Gives the outputs of a case.
    """
    rows = rng.permutation(batch.count)[:MOST_ROWS]
    alone = {int(r): run(chosen(case, batch, np.array([r]))) for r in rows}
    for count in counts:
        index = rng.choice(rows, count)
        together = run(chosen(case, batch, index))
        for name, entry in results(case, batch):
            axis = batch.axes[name, entry]
            want = np.concatenate([_value(alone[int(r)], name, entry) for r in index], axis)
            if not same_bits(_value(together, name, entry), want):
                yield f"{name} of {count} rows along {batch} is not what they are alone"
