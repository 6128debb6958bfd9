"""Float64 reference of bags of rows and their gradients."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from baracuda.describe.elements import Element
from baracuda.ops.embedding.embedding_bag import BagMode, EmbeddingBagBackwardDescriptor, EmbeddingBagDescriptor
from baracuda.prove.reference import Array, Case, Expected
from baracuda.prove.straddle import threshold

# (rows, columns), sizes of bags, what comes behind the last one (None: the last offset is not given), element of ids,
# padding_idx
_LISTS: list[tuple[tuple[int, int], list[int], int | None, Element, int | None]] = [
    ((10, 4), [3, 1, 0, 5], None, Element.I64, None),
    ((1, 1), [4], 0, Element.I32, None),
    ((7, 5), [0, 0, 2, 9], 3, Element.U32, -2),
    ((5, 70), [300, 1, 60], None, Element.I64, 0),
    ((2, 3), [700, 5, 800, 2], 0, Element.I32, None),
    ((9, 1100), [4, 5], None, Element.I64, 8),
    ((3, 3), [1, 1, 1], None, Element.I64, 1),
    ((6, 0), [2, 1], None, Element.I64, None),
    ((6, 4), [0, 0], None, Element.I64, None),
    ((6, 4), [], 2, Element.I64, None),
]
# (rows, columns), shape of ids, element of ids, padding_idx
_MATRICES: list[tuple[tuple[int, int], tuple[int, int], Element, int | None]] = [
    ((10, 4), (3, 5), Element.I64, None),
    ((50, 33), (4, 1), Element.U32, 3),
    ((6, 40), (70, 9), Element.I32, 0),
    ((6, 4), (3, 0), Element.I64, None),
    ((0, 4), (0, 3), Element.I64, None),
]


def _problems(element: Element, rng: np.random.Generator) -> Iterator[tuple[dict[str, Any], dict[str, Array]]]:
    """Fields and index tensors."""
    chunk, strip = threshold("ids"), threshold("strip", "embedding")
    long = ((5, 2 * strip), [2 * chunk + 1, chunk, 1, chunk + 1], None, Element.I64, 0)
    for weight, sizes, rest, index, padding in [*_LISTS, long]:
        n = sum(sizes) + (rest or 0)
        offsets = np.cumsum([0, *sizes])[: None if rest is not None else -1]
        fields = {"weight_shape": weight, "ids_shape": (n,), "element": element, "index_element": index}
        fields |= {"padding_idx": padding, "offsets_shape": offsets.shape, "include_last_offset": rest is not None}
        yield fields, {"ids": rng.integers(0, max(weight[0], 1), n), "offsets": offsets}
    for weight, shape, index, padding in _MATRICES:
        fields = {"weight_shape": weight, "ids_shape": shape, "element": element, "index_element": index}
        yield fields | {"padding_idx": padding}, {"ids": rng.integers(0, max(weight[0], 1), shape)}


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Every mode, offsets and rows of ids, empty bags, padding, ids that come often, tables without rows or columns."""
    del op
    for fields, indices in _problems(element, rng):
        for mode, weighted in ((BagMode.SUM, False), (BagMode.SUM, True), (BagMode.MEAN, False), (BagMode.MAX, False)):
            scales = {"per_sample_weights": rng.normal(size=fields["ids_shape"])} if weighted else {}
            desc = EmbeddingBagDescriptor(**fields, mode=mode, weighted=weighted)
            weight = rng.normal(size=fields["weight_shape"])
            forward = Case(desc, indices | scales | {"weight": weight})
            if direction == "forward":
                yield forward
                continue
            tensors = indices | scales | {"dy": rng.normal(size=desc.bags_shape())}  # type: ignore[arg-type]
            if weighted:
                tensors["weight"] = weight
            if mode is BagMode.MAX:
                tensors["max_indices"] = reference(Case(desc, indices | {"weight": _table(desc)}))["max_indices"].value
            backward = EmbeddingBagBackwardDescriptor(**fields, mode=mode, weighted=weighted)
            yield Case(backward, tensors)
    if direction == "forward":
        special = np.array(
            [[0.0, -0.0, np.inf, -np.inf, np.nan], [np.nan, 1.0, np.inf, np.inf, 2.0], [3.0, 0, 0, 1, 1]]
        )
        for mode in BagMode:
            desc = EmbeddingBagDescriptor((3, 5), (2, 3), element, mode=mode)
            ids = np.array([[2, 0, 1], [1, 1, 2]])
            yield Case(desc, {"ids": ids, "weight": special}, note="special values", exact_gradient=False)


def _bags(case: Case) -> Iterator[tuple[int, Array]]:
    """Of every bag the positions that count."""
    desc: Any = case.descriptor
    ids = np.asarray(case.tensors["ids"]).astype(np.int64)
    flat = ids.reshape(-1)
    if desc.offsets_shape is None:
        starts = np.arange(ids.shape[0] + 1) * ids.shape[1]
    else:
        starts = np.asarray(case.tensors["offsets"]).astype(np.int64)
        starts = starts if desc.include_last_offset else np.append(starts, flat.size)
    for bag, (begin, end) in enumerate(pairwise(starts)):
        positions = np.arange(begin, end)
        yield bag, positions[flat[positions] != desc.padding()]


def _maxima(rows: Array, ids: Array) -> tuple[Array, Array]:
    """As torch: a NaN that is not first is not greater."""
    best, place = rows[0].copy(), np.full(rows.shape[1], ids[0])
    for row, id_ in zip(rows[1:], ids[1:], strict=True):
        greater = row > best
        best, place = np.where(greater, row, best), np.where(greater, id_, place)
    return best, place


def reference(case: Case) -> dict[str, Expected]:
    """Outputs in float64."""
    desc: Any = case.descriptor
    return _backward(case) if isinstance(desc, EmbeddingBagBackwardDescriptor) else _forward(case)


def _forward(case: Case) -> dict[str, Expected]:
    desc: Any = case.descriptor
    ids, weight = np.asarray(case.tensors["ids"]).astype(np.int64).reshape(-1), np.asarray(case.tensors["weight"])
    scales = np.asarray(case.tensors.get("per_sample_weights", np.ones(ids.shape))).reshape(-1)
    y, size = np.zeros(desc.bags_shape(), np.longdouble), np.zeros(desc.bags_shape())
    total = np.zeros(desc.bags_shape(), np.longdouble)  # before a mean divides it
    chosen = np.full(desc.bags_shape(), -1, np.int64)
    for bag, positions in _bags(case):
        if len(positions) == 0:
            continue
        rows = weight[ids[positions]].astype(np.longdouble) * scales[positions, None]
        if desc.mode is BagMode.MAX:
            y[bag], chosen[bag] = _maxima(rows, ids[positions])
            size[bag] = np.abs(y[bag])
            continue
        divisor = len(positions) if desc.mode is BagMode.MEAN else 1
        with np.errstate(invalid="ignore"):
            y[bag] = rows.sum(0) / divisor
            total[bag] = np.abs(rows).sum(0)
            size[bag] = total[bag] / divisor * np.sqrt(len(positions))
    found = {"y": Expected(y, size, reach=total)}
    return found | ({"max_indices": Expected(chosen)} if desc.mode is BagMode.MAX else {})


def _backward(case: Case) -> dict[str, Expected]:
    desc: Any = case.descriptor
    ids, dy = np.asarray(case.tensors["ids"]).astype(np.int64).reshape(-1), np.asarray(case.tensors["dy"])
    value, size = np.zeros(desc.weight_shape, np.longdouble), np.zeros(desc.weight_shape)
    terms = np.zeros(desc.weight_shape[0])
    scales = np.asarray(case.tensors.get("per_sample_weights", np.ones(ids.shape))).reshape(-1)
    dscales, scale_size = np.zeros(ids.shape, np.longdouble), np.zeros(ids.shape)
    for bag, positions in _bags(case):
        divisor = len(positions) if desc.mode is BagMode.MEAN else 1
        counted = positions
        if desc.mode is BagMode.MAX:
            counted = positions[np.sort(np.unique(ids[positions], return_index=True)[1])]
        for i in counted:
            term = dy[bag].astype(np.longdouble) * scales[i] / divisor
            if desc.mode is BagMode.MAX:
                term = np.where(np.asarray(case.tensors["max_indices"])[bag] == ids[i], term, 0)
            value[ids[i]] += term
            size[ids[i]] += np.abs(term)
            terms[ids[i]] += 1
            if desc.weighted:
                products = dy[bag].astype(np.longdouble) * np.asarray(case.tensors["weight"])[ids[i]]
                dscales[i], scale_size[i] = products.sum(), np.abs(products).sum() * np.sqrt(max(products.size, 1))
    found = {"dweight": Expected(value, size * np.sqrt(np.maximum(terms, 1))[:, None])}
    if desc.weighted:
        shape = desc.ids_shape
        found["dper_sample_weights"] = Expected(dscales.reshape(shape), scale_size.reshape(shape))
    return found


def _table(desc: Any) -> Array:
    """A table without equal elements."""
    return np.cos(np.arange(np.prod(desc.weight_shape), dtype=np.float64)).reshape(desc.weight_shape)


def forward_of(case: Case) -> Case:
    """The forward case of a backward one."""
    d: Any = case.descriptor
    fields = {name: getattr(d, name) for name in d.__dataclass_fields__}
    desc = EmbeddingBagDescriptor(**fields | {"element": Element.F64})
    given = {n: case.tensors[n] for n in ("ids", "offsets", "per_sample_weights", "weight") if n in case.tensors}
    return Case(desc, {"weight": _table(desc)} | given)
