"""Elements read and written where several index tensors say, made of `take`, which checks indices, and rows."""

from __future__ import annotations

from math import prod
from typing import Any

from baracuda import _core
from baracuda import functional as F
from baracuda.call.compose import Composer, Value, composed
from baracuda.call.op import composite
from baracuda.call.steps import made_of
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.promotion import broadcast
from baracuda.memory.results import is_torch
from baracuda.ops.indexing.coordinates import written
from baracuda.ops.indexing.indexing import IndexSelectBackwardDescriptor, IndexSelectDescriptor, TakeDescriptor
from baracuda.ops.layout.layout import ArangeDescriptor

OPS = ()


def _indexed(indices: Any, shape: tuple[int, ...]) -> tuple[tuple[int, ...], list[Any]]:
    """The dimensions that are indexed, and the i64 or i32 index tensor of each: those of masks are their coordinates."""
    if not isinstance(indices, (tuple, list)):
        got = type(indices).__name__
        raise InvalidProblemError(f"indices: got {got}, want a tuple of tensors, None for a whole dimension.")
    dims: list[int] = []
    found: list[Any] = []
    d = 0
    for i, index in enumerate(indices):
        if index is None:
            d += 1
            continue
        own, code, *_ = _core.describe(index)
        element, name = Element(code), f"indices[{i}]"
        if element is Element.BOOL:
            if not own or tuple(own) != shape[d : d + len(own)]:
                want = f"the sizes of dimensions from {d} on of {shape}"
                raise InvalidProblemError(f"{name}: got a mask of shape {tuple(own)}, want {want}.")
            found += F.nonzero(index, as_tuple=True)
            dims += range(d, d + len(own))
            d += len(own)
            continue
        if element not in (Element.I64, Element.I32):
            raise InvalidProblemError(f"{name}: got {element}, want i64, i32 or bool. Cast it first.")
        found.append(index)
        dims.append(d)
        d += 1
    if not found or d > len(shape):
        got = f"{d} of them" if found else "none"
        raise InvalidProblemError(f"indices: got {got}, want at least one tensor, for at most {len(shape)} dimensions.")
    return tuple(dims), found


def _first(dims: tuple[int, ...]) -> int:
    """Where in the result of indexing the dimensions of the indices are: at the place of those they stand for, or in front."""
    return dims[0] if dims == tuple(range(dims[0], dims[0] + len(dims))) else 0


def _rows(
    c: Composer, x: Value, indices: tuple[Value, ...], dims: tuple[int, ...]
) -> tuple[Value, Value, tuple[int, ...]]:
    """The tensor as rows that the indices name, which of them they do, and the indices' common shape."""
    named = [x.shape[d] for d in dims]
    found: Value | None = None
    for k, (index, n) in enumerate(zip(indices, named, strict=True)):
        table = c(ArangeDescriptor((n,), Element.I64), start=0, step=prod(named[k + 1 :]))
        at = c(TakeDescriptor((n,), index.shape, Element.I64, index.element), x=table, index=index)
        found = at if found is None else c.of(F.add, found, at)
    assert found is not None
    size = prod(n for d, n in enumerate(x.shape) if d not in dims)
    seen = c.reshape(x.permute(_in_front(x.rank, dims)), (prod(named), size))
    return seen, c.reshape(found, (prod(found.shape),)), found.shape


def _moved(rank: int, count: int, first: int) -> tuple[int, ...]:
    """Axes that move the `count` dimensions from `first` on to the front."""
    return (*range(first, first + count), *range(first), *range(first + count, rank))


def _in_front(rank: int, dims: tuple[int, ...]) -> tuple[int, ...]:
    """The order of dimensions that has some of them in front."""
    return (*dims, *(d for d in range(rank) if d not in dims))


def _updates(input: Value, values: Value, common: tuple[int, ...], dims: tuple[int, ...]) -> Value:
    """The values of what is indexed, the indices' dimensions in front."""
    if values.element is not input.element:
        raise InvalidProblemError(f"values: got {values.element}, want {input.element}, as input. Cast it first.")
    others, first = tuple(n for d, n in enumerate(input.shape) if d not in dims), _first(dims)
    shape = (*others[:first], *common, *others[first:])
    try:
        full = values.expand(shape)
    except InvalidProblemError:
        raise InvalidProblemError(
            f"values: got shape {values.shape}, want one that broadcasts to {shape}, which is indexed."
        ) from None
    return full.permute(_moved(len(shape), len(common), first))


@composed(tensors="input values indices")
def _put(
    c: Composer, input: Value, values: Value, *indices: Value, dims: tuple[int, ...], accumulate: bool, out: Any = None
) -> Value:
    """`input` with `values` where the indices of some dimensions say."""
    rows, place, common = _rows(c, input, indices, dims)
    updates = _updates(input, values, common, dims)
    made = written(c, rows, place, rows.shape, updates, "sum" if accumulate else None)
    order = _in_front(input.rank, dims)
    whole = c.reshape(made, tuple(input.shape[d] for d in order))
    return whole.permute([order.index(d) for d in range(input.rank)])


@composed(tensors="input values indices")
def _placed(c: Composer, input: Value, values: Value, *indices: Value, dims: tuple[int, ...]) -> tuple[Value, Value]:
    """Which of the input's rows the indices name, and the rows of values for them."""
    rows, place, common = _rows(c, input, indices, dims)
    updates = _updates(input, values, common, dims)
    return place, c.reshape(updates, (*place.shape, rows.shape[1]))


@composed(tensors="input indices")
def _get(c: Composer, input: Value, *indices: Value, dims: tuple[int, ...]) -> Value:
    """What the indices of some dimensions name."""
    if len(dims) == 1:
        (d,), (index,) = dims, indices
        flat = c.reshape(index, (prod(index.shape),))
        desc = IndexSelectDescriptor(input.shape, flat.shape, d, input.element, index.element, wrap=True)
        return c.reshape(c(desc, x=input, index=flat), (*input.shape[:d], *index.shape, *input.shape[d + 1 :]))
    rows, place, common = _rows(c, input, indices, dims)
    others = tuple(n for d, n in enumerate(input.shape) if d not in dims)
    made = c(IndexSelectDescriptor(rows.shape, place.shape, 0, input.element), x=rows, index=place)
    found = c.reshape(made, (*common, *others))
    moved = _moved(found.rank, len(common), _first(dims))
    return found.permute([moved.index(d) for d in range(found.rank)])


@composed(tensors="dy indices")
def _get_backward(c: Composer, dy: Value, *indices: Value, shape: tuple[int, ...], dims: tuple[int, ...]) -> Value:
    """The gradient of what is indexed, which has this shape: elements that were named several times have the sum."""
    if len(dims) > 1:
        zeros = c.zeros(shape, dy.element)
        return c.of(_put, zeros, dy, *indices, dims=dims, accumulate=True)  # type: ignore[no-any-return]
    (d,), (index,) = dims, indices
    flat = c.reshape(index, (prod(index.shape),))
    desc = IndexSelectBackwardDescriptor(shape, flat.shape, d, dy.element, index.element, wrap=True)
    made: Value = c(desc, dy=c.reshape(dy, (*shape[:d], *flat.shape, *shape[d + 1 :])), index=flat)
    return made


@_get.vjp
def _get_vjp(input: Any, *indices: Any, dims: tuple[int, ...]) -> tuple[Any, Any]:
    shape = tuple(_core.describe(input)[0])
    return _get(input, *indices, dims=dims), lambda dy: _get_backward(dy, *indices, shape=shape, dims=dims)


@_put.vjp
def _put_vjp(input: Any, values: Any, *indices: Any, dims: tuple[int, ...], accumulate: bool) -> tuple[Any, Any]:
    def pull(dy: Any) -> tuple[Any, Any]:
        kept = dy if accumulate else _put(dy, F.zeros_like(values), *indices, dims=dims, accumulate=False)
        return kept, F.sum_to(_get(dy, *indices, dims=dims), tuple(values.shape))

    return _put(input, values, *indices, dims=dims, accumulate=accumulate), pull


def _common(found: list[Any]) -> list[Any]:
    """Index tensors that broadcast with each other."""
    if len(found) == 1:
        return found
    shape = tuple(_core.describe(found[0])[0])
    for index in found[1:]:
        shape = tuple(int(n) for n in broadcast(shape, tuple(_core.describe(index)[0]), "indices"))  # type: ignore[arg-type]
    return found


_STEPS = "add arange copy index_add index_copy take nonzero"


@made_of(_STEPS)
@composite
def index_put(input: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """`input` with `values` where indices of its dimensions say, as torch.index_put: a copy with x[indices] = values.

    Of several values for one element the last in the order of positions stays; with `accumulate` they are added to it in
    that order and in twice the precision. A mask waits for a device.

    Args:
        input: A tensor.
        indices: For its first dimensions i64 or i32 tensors that broadcast with each other, negative ones counting from the
            end, None for a whole dimension, or masks of the sizes of one dimension or several.
        values: What is written, of input's element; it broadcasts to the shape of what is indexed.
        accumulate: Whether to add.

    Raises:
        InvalidProblemError: If shapes do not go together, or an element is another one.
        IndexOutOfRangeError: If an index is not of its dimension.
    """
    dims, found = _indexed(indices, tuple(_core.describe(input)[0]))
    return _put(input, values, *_common(found), dims=dims, accumulate=bool(accumulate))


@made_of(_STEPS)
@composite
def index_put_(input: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """Writes `values` into `input` where indices of its dimensions say, as torch.Tensor.index_put_; see index_put.

    Args:
        input: A tensor, which is changed and returned.
        indices: As for index_put.
        values: What is written.
        accumulate: Whether to add.
    """
    shape = tuple(_core.describe(input)[0])
    dims, found = _indexed(indices, shape)
    write_named(input, shape, values, dims, found, bool(accumulate))
    return input


def read_named(input: Any, dims: tuple[int, ...], found: list[Any]) -> Any:
    """What index tensors of some dimensions name."""
    return _get(input, *_common(found), dims=dims)


def write_named(
    input: Any, shape: tuple[int, ...], values: Any, dims: tuple[int, ...], found: list[Any], accumulate: bool = False
) -> None:
    """Writes values where index tensors of some dimensions of the input, which has this shape, say: in place where it can be."""
    rows = _rows_of(input, shape, dims)
    if rows is None:
        _put(input, values, *_common(found), dims=dims, accumulate=accumulate, out=input)
        return
    place, updates = _placed(input, values, *_common(found), dims=dims)
    write = F.index_add if accumulate else F.index_copy
    write(rows, 0, place, updates, out=rows)


def _rows_of(input: Any, shape: tuple[int, ...], dims: tuple[int, ...]) -> Any:
    """The memory of a tensor as rows that indices of some dimensions name; None where its strides allow none."""
    if len(shape) == 2 and dims == (0,):
        return input
    order = _in_front(len(shape), dims)
    sizes = (prod(shape[d] for d in dims), prod(n for d, n in enumerate(shape) if d not in dims))
    try:
        if is_torch(input):  # its own view, which counts writes
            return input.permute(order).view(sizes)
        return _core.borrow(input).permute(order).reshape(sizes)
    except (InvalidProblemError, RuntimeError):
        return None


def _index_put_vjp(input: Any, indices: Any, values: Any, accumulate: bool = False) -> tuple[Any, Any]:
    dims, found = _indexed(indices, tuple(_core.describe(input)[0]))
    return _put_vjp(input, values, *_common(found), dims=dims, accumulate=bool(accumulate))


index_put.vjp_rule = _index_put_vjp  # type: ignore[attr-defined]


@made_of("add arange copy index_select take nonzero")
@composite
def index(input: Any, indices: Any) -> Any:
    """Elements of `input` where indices of its dimensions say, as x[indices] of torch and NumPy: a copy.

    The dimensions of the indices, broadcast with each other, stand in the result where those that they name stood; in front,
    where these are not side by side. A mask waits for a device. What `bc.Tensor` makes of a key: docs/tensors.md.

    Args:
        input: A tensor.
        indices: As for index_put: for its first dimensions i64 or i32 tensors that broadcast with each other, negative ones
            counting from the end, None for a whole dimension, or masks of the sizes of one dimension or several.

    Raises:
        InvalidProblemError: If shapes do not go together, or an element is another one.
        IndexOutOfRangeError: If an index is not of its dimension.
    """
    return read_named(input, *_indexed(indices, tuple(_core.describe(input)[0])))


def _index_vjp(input: Any, indices: Any) -> tuple[Any, Any]:
    dims, found = _indexed(indices, tuple(_core.describe(input)[0]))
    return _get_vjp(input, *_common(found), dims=dims)


index.vjp_rule = _index_vjp  # type: ignore[attr-defined]
