"""Reference of products with experts' weights: that of each row's own product."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from baracuda.describe.elements import Element
from baracuda.ops.quant.quant import BlockFormat
from baracuda.ops.quant.quant_matmul import QuantMatmulDescriptor
from baracuda.ops.quant.quant_matmul_ids import INDICES, QuantMatmulIdsDescriptor
from baracuda.ops.quant.quant_matmul_ref import reference as product
from baracuda.ops.quant.quant_ref import blocks_with_scales
from baracuda.prove.reference import Case, Expected

# Shape of ids, experts, columns, blocks of a row.
_SHAPES: tuple[tuple[tuple[int, ...], int, int, int], ...] = (
    ((), 1, 1, 1), ((5,), 3, 9, 2), ((3, 2), 4, 37, 1), ((0,), 2, 3, 1), ((2,), 3, 0, 1), ((2, 1, 2, 1, 2, 1, 2), 2, 5, 1),
    ((3,), 2, 5, 0), ((0,), 0, 4, 1),
)  # fmt: skip


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """All formats with x as it is and quantized; all elements of ids; no rows, no columns, no experts."""
    for n, f in enumerate(BlockFormat):
        for i, (shape, experts, columns, blocks) in enumerate(_SHAPES):
            depth = blocks * f.block_values
            desc = QuantMatmulIdsDescriptor(
                (*shape, depth), (experts, columns, depth), f, element, INDICES[(i + n) % 3], bool((i + n) % 2)
            )
            w = blocks_with_scales(f, desc.signature()["w"].shape, rng)
            ids = rng.integers(0, max(experts, 1), shape)
            yield Case(desc, {"x": rng.normal(0, 1, (*shape, depth)), "w": w, "ids": ids})


def reference(case: Case) -> dict[str, Expected]:
    """Gives x @ w.T of each row."""
    desc, x, w = case.descriptor, np.asarray(case.tensors["x"]), np.asarray(case.tensors["w"])
    assert isinstance(desc, QuantMatmulIdsDescriptor)
    ids = np.asarray(case.tensors["ids"]).reshape(-1)
    shape = tuple(int(s) for s in desc.signature()["y"].shape)
    rows = x.reshape(len(ids), x.shape[-1])
    found = []
    for row, id in zip(rows, ids, strict=True):
        one = QuantMatmulDescriptor(row[None].shape, desc.w_shape[1:], desc.format, desc.element, desc.quantize_input)
        found.append(product(Case(one, {"x": row[None], "w": w[int(id)]}))["y"])
    if not found:
        return {"y": Expected(np.zeros(shape))}
    value, magnitude = (np.stack(v).reshape(shape) for v in ([e.value for e in found], [e.magnitude for e in found]))
    reach = None if found[0].reach is None else np.stack([e.reach for e in found]).reshape(shape)
    return {"y": Expected(value, magnitude, found[0].terms, reach, found[0].lost)}
