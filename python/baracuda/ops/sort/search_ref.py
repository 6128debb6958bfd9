"""Reference of searches: NumPy's, by numbers that stand for the values in their order."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from baracuda.describe.elements import Element
from baracuda.ops.layout.layout_ref import values
from baracuda.ops.sort.search import SearchsortedDescriptor
from baracuda.ops.sort.sort_ref import special
from baracuda.prove.reference import Case, Expected

# Of the sequences and of the values.
SHAPES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((1,), ()), ((7,), (5,)), ((0,), (4,)), ((130,), (3, 50)), ((3, 40), (3, 70)), ((2, 1, 9), (2, 1, 1)),
    ((70000,), (3000,)), ((5,), (2, 3, 1, 2, 1, 2, 1, 3)), ((4, 0), (4, 3)), ((6,), (0, 2)), ((2, 3, 33), (2, 3, 2100)),
]  # fmt: skip


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """One sequence and several, values among them and beside, ties, NaN and infinities."""
    for i, (sequence, shape) in enumerate(SHAPES):
        index = Element.I32 if i % 3 == 2 else Element.I64
        for right in (False, True):
            made, wanted = values(element, sequence, rng), values(element, shape, rng)
            note = ""
            if i % 2 and element.is_float:
                made, wanted, note = special(rng, sequence), special(rng, shape), "special values"
            elif i % 2 and element is not Element.BOOL:
                made, wanted, note = rng.integers(0, 9, sequence), rng.integers(0, 9, shape), "ties"
            desc = SearchsortedDescriptor(sequence, shape, right, element, index)
            yield Case(desc, {"sequence": np.sort(made, -1), "values": wanted}, note=note)


def reference(case: Case) -> dict[str, Expected]:
    """Counts of what comes before."""
    desc = case.descriptor
    assert isinstance(desc, SearchsortedDescriptor)
    sequence, wanted = (np.asarray(case.tensors[n]) for n in ("sequence", "values"))
    _, codes = np.unique(np.concatenate([sequence.ravel(), wanted.ravel()]), return_inverse=True)
    rows = codes[: sequence.size].reshape(sequence.shape)
    asked, side = codes[sequence.size :].reshape(wanted.shape), "right" if desc.right else "left"
    if sequence.ndim == 1:
        return {"y": Expected(np.asarray(np.searchsorted(rows, asked, side)))}  # type: ignore[call-overload]
    found = np.zeros(asked.shape, np.int64)
    for at in np.ndindex(sequence.shape[:-1]):
        found[at] = np.searchsorted(rows[at], asked[at], side)  # type: ignore[call-overload]
    return {"y": Expected(found)}
