"""Reading and writing by indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from baracuda.torch.lowering.common import F, cast, filled, wrapped
from baracuda.torch.table import NotMapped, Want, lowers


@lowers("embedding.default")
def embedding(
    want: Want, weight: Any, ids: Any, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> Any:
    """Rows of a table."""
    return F.embedding(ids, weight)


@lowers("embedding_dense_backward.default")
def embedding_backward(want: Want, dy: Any, ids: Any, rows: int, padding_idx: int, scale_grad_by_freq: bool) -> Any:
    """Sums of the gradients of each row."""
    if scale_grad_by_freq:
        raise NotMapped("scale_grad_by_freq")
    return F.embedding_backward(dy, ids, rows, padding_idx=padding_idx if padding_idx >= 0 else None)


def places(index: Any) -> Any:
    """Indices of an element that functions take."""
    return index if str(index.element) in ("i64", "i32") else F.cast(index, "i64")


@lowers("gather.default")
def gather(want: Want, x: Any, dim: int, index: Any, *, sparse_grad: bool = False) -> Any:
    """One element for each index, along a dimension; an empty index may have another rank."""
    return F.gather(x, dim, places(index)) if index.numel else filled(want.result, 0)


@lowers("index_select.default")
def index_select(want: Want, x: Any, dim: int, index: Any) -> Any:
    """Places along a dimension."""
    return F.index_select(x, dim, index)


def keyed(indices: Sequence[Any]) -> tuple[Any, ...]:
    """Indices without masks, the sizes of whose results are in the data; None names a whole dimension."""
    if any(i is not None and str(i.element) in ("bool", "u8") for i in indices):
        raise NotMapped("a mask among the indices: how much it names is in the data")
    return tuple(indices)


@lowers("index.Tensor _unsafe_index.Tensor")
def index(want: Want, x: Any, indices: Sequence[Any]) -> Any:
    """By several indices at once, as keys of arrays."""
    key = keyed(indices)
    return F.index(x, key) if any(k is not None for k in key) else F.copy(x)


@lowers("index_put.default _unsafe_index_put.default")
def index_put(want: Want, x: Any, indices: Sequence[Any], values: Any, accumulate: bool = False) -> Any:
    """Writing by several indices at once; masks are fine, where one value is written."""
    given = [i for i in indices if i is not None]
    if len(given) == 1 and str(given[0].element) == "bool" and values.numel == 1 and not accumulate:
        mask, at = given[0], next(i for i, v in enumerate(indices) if v is not None)
        mask = mask[(..., *[None] * (len(x.shape) - at - len(mask.shape)))]
        return F.where(mask, values.reshape(()), x)
    return F.index_put(x, keyed(indices), values, accumulate)


@lowers("index_copy.default")
def index_copy(want: Want, x: Any, dim: int, index: Any, source: Any) -> Any:
    """Places along a dimension in a copy."""
    return F.index_copy(x, dim, index, source)


@lowers("index_add.default")
def index_add(want: Want, x: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Any:
    """Sums into places along a dimension."""
    return F.index_add(x, dim, index, source, alpha=alpha)


@lowers("index_fill.int_Scalar")
def index_fill(want: Want, x: Any, dim: int, index: Any, value: Any) -> Any:
    """A number at places along a dimension."""
    return F.index_fill(x, dim, index, value)


@lowers("scatter.src")
def scatter(want: Want, x: Any, dim: int, index: Any, src: Any) -> Any:
    """One element for each index, along a dimension."""
    return F.scatter(x, dim, places(index), src) if index.numel else F.copy(x)


@lowers("scatter.value")
def scatter_value(want: Want, x: Any, dim: int, index: Any, value: Any) -> Any:
    """A number for each index."""
    return F.scatter(x, dim, places(index), value=value) if index.numel else F.copy(x)


@lowers("scatter_add.default")
def scatter_add(want: Want, x: Any, dim: int, index: Any, src: Any) -> Any:
    """Sums for each index."""
    return F.scatter_add(x, dim, places(index), src) if index.numel else F.copy(x)


@lowers("scatter_reduce.two")
def scatter_reduce(
    want: Want, x: Any, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True
) -> Any:
    """A fold for each index."""
    if not index.numel:
        return F.copy(x)
    return F.scatter_reduce(x, dim, places(index), src, reduce, include_self=include_self)


@lowers("masked_scatter.default")
def masked_scatter(want: Want, x: Any, mask: Any, source: Any) -> Any:
    """Elements of another tensor, one after the other, where the mask says so."""
    return F.masked_scatter(x, mask, source)


@lowers("slice_scatter.default")
def slice_scatter(
    want: Want, x: Any, src: Any, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Any:
    """Some places along a dimension in a copy."""
    return F.slice_scatter(x, cast(src, want.element), dim, start, end, step)


@lowers("select_scatter.default")
def select_scatter(want: Want, x: Any, src: Any, dim: int, index: int) -> Any:
    """One place along a dimension in a copy."""
    return F.select_scatter(x, cast(src, want.element), dim, index)


@lowers("diagonal_scatter.default")
def diagonal_scatter(want: Want, x: Any, src: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """A diagonal in a copy."""
    return F.diagonal_scatter(x, src, offset, dim1, dim2)


@lowers("slice_backward.default")
def slice_backward(
    want: Want, dy: Any, sizes: Sequence[int], dim: int, start: int | None, end: int | None, step: int
) -> Any:
    """Dy among zeros."""
    dim = wrapped(dim, len(sizes))
    first, last, _ = slice(start, end).indices(sizes[dim])
    if step == 1:
        pad = [0, 0] * (len(sizes) - 1 - dim) + [first, sizes[dim] - max(last, first)]
        return F.constant_pad_nd(dy, tuple(pad), 0) if any(pad) else F.copy(dy)
    return F.slice_scatter(filled(want.result, 0), dy, dim, first, last, step)


@lowers("select_backward.default")
def select_backward(want: Want, dy: Any, sizes: Sequence[int], dim: int, index: int) -> Any:
    """Dy among zeros."""
    dim = wrapped(dim, len(sizes))
    index = wrapped(index, sizes[dim])
    pad = [0, 0] * (len(sizes) - 1 - dim) + [index, sizes[dim] - 1 - index]
    return F.constant_pad_nd(dy.unsqueeze(dim), tuple(pad), 0)


@lowers("diagonal_backward.default")
def diagonal_backward(want: Want, dy: Any, sizes: Sequence[int], offset: int, dim1: int, dim2: int) -> Any:
    """Dy among zeros."""
    return F.diagonal_backward(dy, tuple(sizes), offset, dim1, dim2)


@lowers("take.default")
def take(want: Want, x: Any, index: Any) -> Any:
    """By places in the flat order."""
    return F.take(x, index)


@lowers("searchsorted.Tensor bucketize.Tensor")
def search(want: Want, x: Any, y: Any, *, out_int32: bool = False, right: bool = False, **more: Any) -> Any:
    """Where elements would be inserted."""
    if more.get("sorter") is not None or more.get("side") is not None:
        raise NotMapped("sorter or side")
    return getattr(F, want.name)(x, y, out_int32=out_int32, right=right)


@lowers("isin.Tensor_Tensor")
def isin(want: Want, x: Any, among: Any, *, assume_unique: bool = False, invert: bool = False) -> Any:
    """Whether elements are among others."""
    return F.isin(x, among, assume_unique=assume_unique, invert=invert)
