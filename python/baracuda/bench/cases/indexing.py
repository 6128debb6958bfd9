"""Reading and adding by index, and bags of embeddings."""

from __future__ import annotations

import warnings
from functools import partial

import torch

import baracuda as bc
import baracuda.functional as functional
from baracuda.bench.case import Case, Sides, Statement
from baracuda.bench.cases._tools import SIZE, bind, noise, plan, space, text, there


def _indices(limit: int, *shape: int, element: str = "i64") -> torch.Tensor:
    made = torch.randint(0, limit, shape, generator=torch.Generator().manual_seed(0))
    return there(made.int() if element == "i32" else made)


def _gather(element: str, rows: int, columns: int, taken: int) -> Sides:
    x, index = noise(rows, columns, element=element), _indices(columns, rows, taken)
    y, theirs = space(rows, taken, element=element), space(rows, taken, element=element)
    made = plan(bc.GatherDescriptor((rows, columns), (rows, taken), 1, element))
    ours = bind(made, x=x, index=index, y=y)
    return Sides.calls(ours, lambda: torch.gather(x, 1, index, out=theirs), made, lambda: [y])


def _index_select(element: str, rows: int, columns: int, taken: int, index_element: str = "i64") -> Sides:
    x, index = noise(rows, columns, element=element), _indices(rows, taken, element=index_element)
    y, theirs = space(taken, columns, element=element), space(taken, columns, element=element)
    made = plan(bc.IndexSelectDescriptor((rows, columns), (taken,), 0, element, index_element=index_element))
    ours = bind(made, x=x, index=index, y=y)
    return Sides.calls(ours, lambda: torch.index_select(x, 0, index, out=theirs), made, lambda: [y])


def _index_columns(element: str, rows: int, columns: int, taken: int) -> Sides:
    x, index = noise(rows, columns, element=element), _indices(columns, taken)
    y, theirs = space(rows, taken, element=element), space(rows, taken, element=element)
    made = plan(bc.IndexSelectDescriptor((rows, columns), (taken,), 1, element))
    ours = bind(made, x=x, index=index, y=y)
    return Sides.calls(ours, lambda: torch.index_select(x, 1, index, out=theirs), made, lambda: [y])


def _embedding(element: str, rows: int, columns: int, taken: int) -> Sides:
    ids, weight = _indices(rows, taken), noise(rows, columns, element=element)
    y, theirs = space(taken, columns, element=element), space(taken, columns, element=element)
    made = plan(bc.EmbeddingDescriptor((rows, columns), (taken,), element))
    ours = bind(made, ids=ids, weight=weight, y=y)
    return Sides.calls(ours, lambda: torch.index_select(weight, 0, ids, out=theirs), made, lambda: [y])


def _take(element: str, size: int, taken: int) -> Sides:
    x, index = noise(size, element=element), _indices(size, taken)
    y, theirs = space(taken, element=element), space(taken, element=element)
    made = plan(bc.TakeDescriptor((size,), (taken,), element))
    ours = bind(made, x=x, index=index, y=y)
    return Sides.calls(ours, lambda: torch.take(x, index, out=theirs), made, lambda: [y])


def _scatter_add(element: str, rows: int, columns: int, taken: int) -> Sides:
    x, source = noise(rows, columns, element=element), noise(rows, taken, element=element, seed=1)
    index = _indices(columns, rows, taken)
    y, theirs = space(rows, columns, element=element), space(rows, columns, element=element)
    made = plan(bc.ScatterReduceDescriptor((rows, columns), (rows, taken), 1, element))
    ours = bind(made, x=x, index=index, source=source, y=y)
    return Sides.calls(ours, lambda: torch.scatter_add(x, 1, index, source, out=theirs), made, lambda: [y])


def _embedding_bag(element: str, rows: int, columns: int, bags: int, size: int) -> Sides:
    ids, offsets = _indices(rows, bags * size), there(torch.arange(0, bags * size, size))
    weight, y = noise(rows, columns, element=element), space(bags, columns, element=element)
    made = plan(bc.EmbeddingBagDescriptor((rows, columns), ids.shape, element, offsets_shape=offsets.shape, mode="sum"))
    ours = bind(made, ids=ids, weight=weight, offsets=offsets, y=y)
    return Sides.calls(
        ours, lambda: torch.nn.functional.embedding_bag(ids, weight, offsets, mode="sum"), made, lambda: [y]
    )


def _index_reduce(element: str, rows: int, columns: int, taken: int) -> Sides:
    x, source = noise(rows, columns, element=element), noise(taken, columns, element=element, seed=1)
    index = _indices(rows, taken)
    y = space(rows, columns, element=element)

    def ours() -> object:
        return functional.index_reduce(x, 0, index, source, "amax", out=y)

    theirs = torch.empty_like(x)

    def peer() -> torch.Tensor:
        return torch.index_reduce(x, 0, index, source, "amax", out=theirs)

    def results() -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        ours()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch calls it beta, once
            return [y], [peer()]

    return Sides(Statement.call(ours), Statement.call(peer), (), results)


def _masked_scatter(element: str, rows: int, columns: int) -> Sides:
    x, source = noise(rows, columns, element=element), noise(rows, columns, element=element, seed=1)
    mask = noise(rows, columns, seed=2) > 0
    y = space(rows, columns, element=element)

    def ours() -> object:
        return functional.masked_scatter(x, mask, source, out=y)

    def results() -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        ours()
        return [y], [torch.masked_scatter(x, mask, source)]

    peer = Statement.call(lambda: torch.masked_scatter(x, mask, source))
    return Sides(Statement.call(ours), peer, (), results)


def _short_rows(quick: bool) -> list[Case]:
    """Half a million rows of 16, 24 and 64 bytes of a table that the caches hold or not; single elements."""
    out = []
    few, many, taken = (50, 100, 40) if quick else (100_000, 1_000_000, 500_000)
    for e, rows, columns, index in (
        ("f32", few, 4, "i64"), ("f32", few, 4, "i32"), ("f32", few, 6, "i64"), ("f32", many, 16, "i64"), ("bf16", few, 8, "i64"),
    ):  # fmt: skip
        bytes_ = SIZE[e] * columns
        out.append(Case(f"index_select {bytes_}-byte rows by {index}", "indexing", e, f"{text((rows, columns))}, {taken} rows",
                        "torch index_select(out=)", partial(_index_select, e, rows, columns, taken, index),
                        bytes=taken * (2 * bytes_ + int(index[1:]) // 8), ceiling="memory", required=1.5, goal=2))  # fmt: skip
    for rows, columns in ((few, 4), (many, 16)):
        out.append(Case(f"embedding {4 * columns}-byte rows", "embedding", "f32", f"{text((rows, columns))}, {taken} rows",
                        "torch index_select(out=)", partial(_embedding, "f32", rows, columns, taken),
                        bytes=taken * (8 * columns + 8), ceiling="memory", required=1.5, goal=2))  # fmt: skip
    out.append(Case("take", "indexing", "f32", f"{many} elements, {taken} taken", "torch take(out=)",
                    partial(_take, "f32", many, taken), bytes=16 * taken, ceiling="memory"))  # fmt: skip
    return out


def cases(quick: bool) -> list[Case]:
    """A quarter of 4096 x 4096 elements by index, 8192 rows of 1024, bags of 32 rows of 128."""
    out = _short_rows(quick)
    rows, columns, taken = (16, 64, 16) if quick else (4096, 4096, 1024)
    table, width, picked = (100, 16, 24) if quick else (100_000, 1024, 8192)
    entries, length, bags, size = (100, 16, 8, 4) if quick else (1_000_000, 128, 2048, 32)
    for e in ("f32", "bf16"):
        n, s = rows * taken, SIZE[e]
        sizes = f"{text((rows, columns))}, {text((rows, taken))} indices"
        out.append(Case("gather", "indexing", e, sizes, "torch gather(out=)",
                        partial(_gather, e, rows, columns, taken), bytes=n * (8 + 2 * s), ceiling="memory",
                        required=1.2, goal=1.6))  # fmt: skip
        out.append(Case("index_select", "indexing", e, f"{text((table, width))}, {picked} rows",
                        "torch index_select(out=)", partial(_index_select, e, table, width, picked),
                        bytes=2 * picked * width * s + 8 * picked, ceiling="memory"))  # fmt: skip
        out.append(Case("index_select columns", "indexing", e, f"{text((rows, columns))}, {taken} columns",
                        "torch index_select(out=)", partial(_index_columns, e, rows, columns, taken),
                        bytes=2 * n * s + 8 * taken, ceiling="memory"))  # fmt: skip
        out.append(Case("scatter_add", "indexing", e, sizes, "torch scatter_add(out=)",
                        partial(_scatter_add, e, rows, columns, taken),
                        bytes=2 * rows * columns * s + n * (8 + s), flops=n, ceiling="memory"))  # fmt: skip
        out.append(Case("embedding_bag", "embedding", e, text((entries, length)) + f", {bags} bags of {size}",
                        "torch embedding_bag(mode='sum')", partial(_embedding_bag, e, entries, length, bags, size),
                        bytes=bags * (size + 1) * length * s, flops=bags * size * length, ceiling="memory"))  # fmt: skip
        out.append(Case("index_reduce amax", "indexing", e, f"{text((rows, columns))}, {taken} rows",
                        "torch index_reduce(out=)", partial(_index_reduce, e, rows, columns, taken),
                        bytes=(2 * rows + taken) * columns * s, flops=taken * columns, ceiling="memory"))  # fmt: skip
        out.append(Case("masked_scatter", "indexing", e, text((rows, columns)), "torch masked_scatter",
                        partial(_masked_scatter, e, rows, columns), bytes=rows * columns * (3 * s + 1),
                        ceiling="memory"))  # fmt: skip
    return out
