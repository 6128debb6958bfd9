"""Float64 reference of the embedding lookup and its gradient."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from baracuda.describe.elements import Element
from baracuda.ops.embedding.embedding import EmbeddingBackwardDescriptor, EmbeddingDescriptor
from baracuda.prove.reference import Array, Case, Expected

# (rows, columns), shape of ids, element of ids, padding_idx
_PROBLEMS: list[tuple[tuple[int, int], tuple[int, ...], Element, int | None]] = [
    ((10, 4), (3,), Element.I64, None),
    ((1, 1), (4,), Element.I32, None),
    ((7, 5), (), Element.I64, -2),
    ((50, 33), (2, 2, 3, 2, 2, 2, 2), Element.U32, 3),
    ((5, 70), (300,), Element.I64, 0),
    ((3000, 3), (2, 2100), Element.I32, None),
    ((9, 1100), (4, 5), Element.I64, None),
    ((40, 2), (40000,), Element.I32, None),
    ((3, 3), (4000,), Element.I64, 1),
    ((6, 0), (3,), Element.I64, None),
    ((6, 4), (0, 2), Element.I64, None),
    ((0, 4), (0,), Element.I64, None),
]


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Ranks 0 to 7, every index element, duplicates, tables of one row and more than one radix digit, empty tensors."""
    del op
    for weight, shape, index, padding in _PROBLEMS:
        ids = rng.integers(0, max(weight[0], 1), shape)
        if direction == "forward":
            values = rng.normal(size=weight)
            yield Case(EmbeddingDescriptor(weight, shape, element, index, padding), {"ids": ids, "weight": values})
            continue
        dy = rng.normal(size=(*shape, weight[1]))
        for accumulate in (False, True):
            gradient = EmbeddingBackwardDescriptor(weight, shape, element, index, padding, accumulate)
            tensors = {"dy": dy, "ids": ids} | ({"dweight": rng.normal(size=weight)} if accumulate else {})
            # The padding row has a derivative that the gradient leaves out by definition.
            yield Case(gradient, tensors, exact_gradient=padding is None and not accumulate)
    if direction == "forward":
        special = np.array([[0.0, -0.0, np.inf, -np.inf, np.nan]] * 3)
        desc = EmbeddingDescriptor((3, 5), (2,), element)
        yield Case(desc, {"ids": np.array([2, 0]), "weight": special}, note="special values", exact_gradient=False)


def _padding(desc: EmbeddingBackwardDescriptor) -> int:
    return -1 if desc.padding_idx is None else desc.padding_idx


def reference(case: Case) -> dict[str, Expected]:
    """Outputs in float64."""
    desc, ids = case.descriptor, np.asarray(case.tensors["ids"]).astype(np.int64)
    if isinstance(desc, EmbeddingDescriptor):
        return {"y": Expected(case.tensors["weight"][ids])}
    assert isinstance(desc, EmbeddingBackwardDescriptor)
    columns = desc.signature()["dweight"].shape[1]
    dy = np.asarray(case.tensors["dy"]).reshape(-1, columns) if columns else np.zeros((ids.size, 0))
    flat = ids.reshape(-1)
    kept = flat != _padding(desc)
    start: Array = case.tensors["dweight"] if desc.accumulate else np.zeros(desc.signature()["dweight"].shape)
    value, magnitude = np.array(start, np.longdouble), np.abs(np.array(start, np.float64))
    np.add.at(value, flat[kept], dy[kept])
    np.add.at(magnitude, flat[kept], np.abs(dy[kept]))
    # Each row has as many terms as its id has positions.
    terms = np.bincount(flat[kept], minlength=len(magnitude)) + int(desc.accumulate)
    return {"dweight": Expected(value.astype(np.float64), magnitude * np.sqrt(np.maximum(terms, 1))[:, None])}


def forward_of(case: Case) -> Case:
    """The forward case of a backward one; any weight does, as the lookup is linear in it."""
    d = case.descriptor
    assert isinstance(d, EmbeddingBackwardDescriptor)
    desc = EmbeddingDescriptor(d.weight_shape, d.ids_shape, Element.F64, d.index_element, d.padding_idx)
    weight = np.cos(np.arange(np.prod(desc.signature()["weight"].shape), dtype=np.float64)).reshape(
        desc.signature()["weight"].shape
    )
    return Case(desc, {"ids": case.tensors["ids"], "weight": weight})
