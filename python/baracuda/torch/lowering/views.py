"""Views: arithmetic on sizes and strides, no launch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from baracuda.memory.views import is_contiguous
from baracuda.torch.lowering.common import F, along, reshaped, wrapped
from baracuda.torch.table import NotMapped, Want, lowers


@lowers("view _unsafe_view.default")
def view(want: Want, x: Any, *args: Any) -> Any:
    """The same elements in another shape."""
    if want.name == "view" and not isinstance(args[0], (list, tuple)):
        raise NotMapped("a view of the bits as another dtype")
    return reshaped(x, want.shape)


@lowers("detach.default alias.default lift_fresh.default")
def same(want: Want, x: Any) -> Any:
    """The tensor itself."""
    return x


@lowers("t.default")
def transposed(want: Want, x: Any) -> Any:
    """Dimensions in the reverse order."""
    return x.T


@lowers("transpose.int")
def transpose(want: Want, x: Any, a: int, b: int) -> Any:
    """Two dimensions change places."""
    order = list(range(len(x.shape)))
    if not order:
        return x
    order[a], order[b] = order[b], order[a]
    return x.permute(*order)


@lowers("permute.default")
def permute(want: Want, x: Any, dims: Sequence[int]) -> Any:
    """Dimensions in another order."""
    return x.permute(*[wrapped(d, len(x.shape)) for d in dims]) if dims else x


@lowers("expand.default")
def expand(want: Want, x: Any, size: Sequence[int], *, implicit: bool = False) -> Any:
    """Sizes of 1 repeated."""
    return x.expand(*want.shape) if want.shape else x


@lowers("unsqueeze.default")
def unsqueeze(want: Want, x: Any, dim: int) -> Any:
    """One more dimension of size 1."""
    return x.unsqueeze(wrapped(dim, len(x.shape) + 1))


@lowers("squeeze.default squeeze.dim squeeze.dims")
def squeeze(want: Want, x: Any, dims: Any = None) -> Any:
    """Without dimensions of size 1."""
    rank = len(x.shape)
    named = range(rank) if dims is None else [dims] if isinstance(dims, int) else dims
    gone = {wrapped(d, rank) for d in named}
    key = tuple(0 if i in gone and x.shape[i] == 1 else slice(None) for i in range(rank))
    return x[key] if any(k == 0 for k in key) else x


@lowers("slice.Tensor")
def slice_of(want: Want, x: Any, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Any:
    """Some places along a dimension."""
    return along(x, wrapped(dim, len(x.shape)), slice(start, end, step))


@lowers("select.int")
def select(want: Want, x: Any, dim: int, index: int) -> Any:
    """One place along a dimension."""
    return along(x, wrapped(dim, len(x.shape)), index)


@lowers("split.Tensor split_with_sizes.default unsafe_split.Tensor unsafe_split_with_sizes.default")
def split(want: Want, x: Any, sizes: Any, dim: int = 0) -> Any:
    """Parts along a dimension, one after the other."""
    dim, at, parts = wrapped(dim, len(x.shape)), 0, []
    for layout in want.results:
        if layout is None:
            raise NotMapped("a part that is no tensor")
        parts.append(along(x, dim, slice(at, at + layout.shape[dim])))
        at += layout.shape[dim]
    return tuple(parts)


@lowers("unbind.int")
def unbind(want: Want, x: Any, dim: int = 0) -> Any:
    """All places along a dimension."""
    dim = wrapped(dim, len(x.shape))
    return tuple(along(x, dim, i) for i in range(x.shape[dim]))


@lowers("as_strided.default")
def as_strided(
    want: Want, x: Any, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Any:
    """Only what is a view of elements that lie as torch's do, from their start on."""
    operand = want.operands[0]
    if operand is None or not operand.same_as(x.shape, x.strides) or not is_contiguous(x.shape, x.strides):
        raise NotMapped("as_strided of memory that is not contiguous")
    if storage_offset:
        raise NotMapped("as_strided with an offset")
    if is_contiguous(tuple(size), tuple(stride)) and x.numel >= want_count(size):
        return reshaped(x, (x.numel,))[: want_count(size)].reshape(tuple(size))
    raise NotMapped("as_strided with gaps")


def want_count(size: Sequence[int]) -> int:
    """Number of elements."""
    count = 1
    for n in size:
        count *= n
    return count


@lowers("diagonal.default")
def diagonal(want: Want, x: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """A copy: there is no such view here."""
    return F.diagonal_copy(x, offset, dim1, dim2)


@lowers(
    "view_copy.default transpose_copy.int permute_copy.default expand_copy.default unsqueeze_copy.default "
    "squeeze_copy.default squeeze_copy.dim squeeze_copy.dims slice_copy.Tensor select_copy.int alias_copy.default "
    "detach_copy.default t_copy.default"
)
def copied_view(want: Want, x: Any, *args: Any, **kwargs: Any) -> Any:
    """A copy of what the view of that name shows."""
    views = {
        "view": view, "transpose": transpose, "permute": permute, "expand": expand, "unsqueeze": unsqueeze,
        "squeeze": squeeze, "slice": slice_of, "select": select, "alias": same, "detach": same, "t": transposed,
    }  # fmt: skip
    return F.copy(views[want.name.removesuffix("_copy")](want, x, *args, **kwargs))
