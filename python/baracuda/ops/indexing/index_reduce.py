"""Slices folded into a tensor at indices, and elements put where a mask holds: functions of the plans of indexing."""

from __future__ import annotations

from math import prod
from typing import Any

from baracuda.call.compose import Composer, Value, composed
from baracuda.call.op import Arg, Call, Recipe, function
from baracuda.call.steps import made_of
from baracuda.describe.dims import check_axis
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.promotion import broadcast
from baracuda.ops.binary.binary import BinaryDescriptor
from baracuda.ops.indexing.compact import expanded
from baracuda.ops.indexing.indexing import TakeBackwardDescriptor, TakeDescriptor, check_index
from baracuda.ops.indexing.scatter import fold
from baracuda.ops.layout.layout import CopyDescriptor
from baracuda.ops.reduce.reduce import SumToDescriptor
from baracuda.ops.scan.scan import ScanDescriptor
from baracuda.ops.ternary.ternary import WhereDescriptor

OPS = ()
_MODES = ("prod", "mean", "amax", "amin")


def _refuse(what: str, got: Any, want: str) -> InvalidProblemError:
    return InvalidProblemError(f"index_reduce: {what}: got {got}, want {want}.")


@made_of("scatter_reduce")
@function(tensors="input index source")
def index_reduce(
    call: Call,
    input: Arg,
    dim: int,
    index: Arg,
    source: Arg,
    reduce: str,
    *,
    include_self: bool = True,
    out: Arg | None = None,
) -> Recipe:
    """`input` folded with slices of `source` at `index` along `dim`, as torch.index_reduce.

    Args:
        input: Floats or integers.
        dim: The dimension.
        index: (n,), or () for one index, i64 or i32: the slice of `input` that each slice of `source` is folded into.
        source: Of the input's shape, but n along `dim`; of rank 0 beside an input of rank 0.
        reduce: "prod", "mean", "amax" or "amin".
        include_self: Whether what `input` holds counts where something is folded into it.
        out: Where the result goes.

    Returns:
        The result; slices that no index names are those of `input`.
    """
    check_index("index_reduce", index)
    if reduce not in _MODES:
        raise _refuse("reduce", repr(reduce), " or ".join(map(repr, _MODES)))
    if index.rank > 1:
        raise _refuse("index", f"rank {index.rank}", "at most 1")
    if index.rank == 0:
        index = index.insert(0)
    if input.rank == 0:
        if source.rank > 0:
            raise _refuse("source", f"rank {source.rank}", "0, as input")
        input, source = input.insert(0), source.insert(0)
    axis = check_axis(dim, input.rank, "index_reduce: dim")
    want = (*input.shape[:axis], index.shape[0], *input.shape[axis + 1 :])
    if source.shape != want or source.element is not input.element:
        raise _refuse("source", f"{source.element} of shape {source.shape}", f"{input.element} of {want}")
    for _ in range(axis):
        index = index.insert(0)
    while index.rank < input.rank:
        index = index.insert(index.rank)
    return fold(call, "index_reduce", input, axis, index.fit(want), source, reduce, include_self)


@index_reduce.vjp
def _index_reduce_vjp(
    input: Any, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True
) -> tuple[Any, Any]:
    from baracuda.ops.indexing.scatter import scatter_reduce

    y = index_reduce(input, dim, index, source, reduce, include_self=include_self)

    def pull(dy: Any) -> Any:
        rank = len(input.shape)
        behind = rank - 1 - dim % max(rank, 1)
        wide = expanded(index, tuple(source.shape), behind) if rank else index.reshape(())
        rule = scatter_reduce.vjp_rule
        assert rule is not None
        return rule(input, dim, wide, source, reduce, include_self=include_self)[1](dy)

    return y, pull


def _places(c: Composer, mask: Value, shape: tuple[int, ...]) -> Value:
    """For every element of the mask the element of the source that it takes, counted from 1; 0 where it takes none."""
    wide = c.cast(mask.expand(shape), Element.I64)
    row = c.reshape(wide, (prod(shape),))
    counts = c(ScanDescriptor("cumsum", row.shape, 0, Element.I64), x=row)
    made: Value = c(BinaryDescriptor("mul", row.shape, row.shape, Element.I64), a=row, b=counts)
    return c.reshape(made, shape)


def _masked_shape(input: Value, mask: Value) -> tuple[int, ...]:
    if mask.element is not Element.BOOL:
        raise InvalidProblemError(f"mask: got {mask.element}, want bool. Compare it with something.")
    return tuple(int(n) for n in broadcast(input.shape, mask.shape, "mask"))  # type: ignore[arg-type]


@made_of("cast copy cumsum fill mul take where")
@composed(tensors="input mask source")
def masked_scatter(c: Composer, input: Value, mask: Value, source: Value, *, out: Any = None) -> Value:
    """`input` with the elements of `source`, in order, where `mask` holds, as torch.masked_scatter.

    Args:
        input: Any real element.
        mask: Bools; broadcast with `input`.
        source: Of the input's element, with at least as many elements as the mask has that hold.
        out: Where the result goes.

    Raises:
        IndexOutOfRangeError: If the source has too few elements: the index is one more than the count of those asked for.
    """
    shape = _masked_shape(input, mask)
    if source.element is not input.element:
        raise InvalidProblemError(f"source: got {source.element}, want {input.element}. Cast it first.")
    count, e = prod(source.shape), input.element
    row = c.zeros((count + 1,), e)
    c(CopyDescriptor((count,), e), x=c.reshape(source, (count,)), y=row[1:])
    taken = c(TakeDescriptor(row.shape, shape, e, Element.I64), x=row, index=_places(c, mask, shape))
    made: Value = c(WhereDescriptor(mask.shape, shape, input.shape, e), condition=mask, a=taken, b=input)
    return made


@made_of("cast copy cumsum mul take_backward where")
@composed(tensors="dy input mask source")
def masked_scatter_backward(c: Composer, dy: Value, input: Value, mask: Value, source: Value) -> tuple[Value, ...]:
    """Gradients (dinput, dsource) of masked_scatter; elements of the source that were not used have 0."""
    shape, e = _masked_shape(input, mask), dy.element
    if dy.shape != shape:
        raise InvalidProblemError(f"dy: got shape {dy.shape}, want {shape}, as the result.")
    kept = c(WhereDescriptor(mask.shape, None, shape, e), condition=mask, a_number=0, b=dy)
    dinput = kept if shape == input.shape else c(SumToDescriptor(shape, input.shape, e), x=kept)
    desc = TakeBackwardDescriptor((prod(source.shape) + 1,), shape, e, Element.I64)
    row = c(desc, dy=dy, index=_places(c, mask, shape))
    return dinput, c.reshape(row[1:], source.shape)


masked_scatter.pulled_by(masked_scatter_backward)
