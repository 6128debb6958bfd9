"""Elements written and folded by index. Kernels in csrc/ops/indexing, reference in scatter_ref.py.

Every index is checked before the first write; a bad one is an IndexOutOfRangeError. Where several positions name one
element they count in their order: the last one stays, sums and products are kept in twice the precision. y may be x
itself.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, ClassVar

from baracuda.call.halves import in_f32
from baracuda.call.op import Arg, Call, Op, Recipe, function
from baracuda.call.steps import made_of
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.spec import Param, ScalarParam, Signature, descriptor, output, scalar, tensor
from baracuda.ops.indexing.indexing import Indexed, check_index, masked_number, same_rank
from baracuda.ops.layout.layout import number_kind


class ScatterReduction(Enum):
    """What is made of the elements that one place gets: as in torch.scatter_reduce."""

    SUM = "sum"
    PROD = "prod"
    MEAN = "mean"
    AMAX = "amax"
    AMIN = "amin"


_ASSIGN = 0
_MODES = dict(zip(ScatterReduction, range(1, 6), strict=True))


class _Spread(Indexed):
    """What they share: y = x, but for what is written."""

    __slots__ = ()
    fold: ClassVar[int] = _ASSIGN
    wraps: ClassVar[bool] = False  # negative indices count from the end

    def source(self) -> Param | None:
        """What is written; None where it is one number."""
        return tensor("source", self.index_shape, self.element)

    def numbers(self) -> tuple[ScalarParam, ...]:
        """What is given besides tensors."""
        return ()

    def signature(self) -> Signature:
        e, source = self.element, self.source()
        return Signature(
            tensor("x", self.shape, e),
            tensor("index", self.index_shape, self.index_element),
            *([] if source is None else [source]),
            output("y", self.shape, e),
            *self.numbers(),
        )

    def attributes(self) -> dict[str, int | float]:
        return {"axis": self.axis, "wrap": int(self.wraps), "mode": self.fold, "include_self": 1}


class _SpreadSlices(_Spread):
    """Those with a vector of indices."""

    __slots__ = ()

    def validate(self) -> None:
        self.check_slices()

    def source(self) -> Param | None:
        return tensor("source", self.slices_shape(), self.element)


@descriptor(family="indexing", op="scatter")
class ScatterDescriptor(_Spread):
    """y = x, but y[i, index[i, j, k], k] = source[i, j, k] for axis 1, and likewise for others.

    Args:
        shape: Shape of x and y, rank 0-8.
        index_shape: Shape of index and source; of the rank of x, and but for the axis no larger.
        axis: The axis that indices count along; negative counts from the end.
        element: bool, any integer, f16, bf16, f32 or f64.
        index_element: i64, i32 or u32.
        has_source: False: the number `value` given to run is written everywhere.
    """

    has_source: bool = True

    def validate(self) -> None:
        self.check_elements()

    def source(self) -> Param | None:
        return tensor("source", self.index_shape, self.element, present=self.has_source)

    def numbers(self) -> tuple[ScalarParam, ...]:
        given = not self.has_source
        return (scalar("value", number_kind(self.element), fits=self.element, present=given),)


@descriptor(family="indexing", op="scatter_reduce", enums={"mode": ScatterReduction})
class ScatterReduceDescriptor(_Spread):
    """y = x folded with source: y[i, index[i, j, k], k] gets source[i, j, k] for axis 1, and likewise for others.

    Means of integers are rounded down; NaN propagates; sums and products of integers wrap, those of bool are or and and.
    Needs 8 bytes of workspace per element of x (16 for f64), and 4 more for means and without `include_self`; on GPUs 32
    per index, and a little more.

    Args:
        shape: Shape of x and y, rank 0-8.
        index_shape: Shape of index and source; of the rank of x, and but for the axis no larger.
        axis: The axis that indices count along; negative counts from the end.
        element: bool (no mean), any integer, f16, bf16, f32 or f64.
        index_element: i64, i32 or u32.
        mode: "sum", "prod", "mean", "amax" or "amin".
        include_self: Whether x counts where something is written; elsewhere it always stays.
    """

    mode: ScatterReduction = ScatterReduction.SUM
    include_self: bool = True

    def validate(self) -> None:
        self.check_elements()
        if self.mode is ScatterReduction.MEAN and self.element is Element.BOOL:
            raise self.wrong("mode", "mean", "another mode for bool")

    def attributes(self) -> dict[str, int | float]:
        mode, include_self = _MODES[self.mode], int(self.include_self)
        return {"axis": self.axis, "wrap": 0, "mode": mode, "include_self": include_self}


@descriptor(family="indexing", op="index_copy")
class IndexCopyDescriptor(_SpreadSlices):
    """y = x, but y[i, index[j], k] = source[i, j, k] for axis 1, and likewise for others.

    Args:
        shape: Shape of x and y, rank 0-8.
        index_shape: Shape of index: (n,), or () for one index, which is all that an x of rank 0 takes. source has n
            elements along the axis.
        axis: The axis that indices count along; negative counts from the end.
        element: Any element of 1, 2, 4, 8 or 16 bytes.
        index_element: i64, i32 or u32.
    """


@descriptor(family="indexing", op="index_add")
class IndexAddDescriptor(_SpreadSlices):
    """y = x, but y[i, index[j], k] += alpha source[i, j, k] for axis 1, and likewise for others.

    Needs 8 bytes of workspace per element of x, 16 for f64; on GPUs 32 per index, and a little more.

    Args:
        shape: Shape of x and y, rank 0-8.
        index_shape: Shape of index: (n,), or () for one index, which is all that an x of rank 0 takes. source has n
            elements along the axis.
        axis: The axis that indices count along; negative counts from the end.
        element: bool, any integer, f16, bf16, f32 or f64.
        index_element: i64, i32 or u32.
    """

    fold: ClassVar[int] = _MODES[ScatterReduction.SUM]

    def numbers(self) -> tuple[ScalarParam, ...]:
        e = self.element
        kind = "float" if e.is_float else "unsigned" if number_kind(e) == "unsigned" else "int"
        return (scalar("alpha", kind, default=1, fits=e),)


@descriptor(family="indexing", op="index_fill")
class IndexFillDescriptor(_SpreadSlices):
    """y = x, but y[i, index[j], k] = value for axis 1, and likewise for others. Negative indices count from the end.

    GPUs need 32 bytes of workspace per index, and a little more, as for scatter and index_copy.

    Args:
        shape: Shape of x and y, rank 0-8.
        index_shape: Shape of index: (n,), or () for one index.
        axis: The axis that indices count along; negative counts from the end.
        element: bool, any integer, f16, bf16, f32 or f64.
        index_element: i64, i32 or u32.
    """

    wraps: ClassVar[bool] = True

    def validate(self) -> None:
        self.check_vector()  # there are no slices that would have to be as many

    def source(self) -> Param | None:
        return None

    def numbers(self) -> tuple[ScalarParam, ...]:
        return (scalar("value", number_kind(self.element), fits=self.element),)


OPS = (
    Op("scatter", ScatterDescriptor, ScatterDescriptor, "y = x with y[index[i, j], j] = source[i, j]"),
    Op("scatter_reduce", ScatterReduceDescriptor, ScatterReduceDescriptor, "y[index[i, j], j] = fold of x and source"),
    Op("index_copy", IndexCopyDescriptor, IndexCopyDescriptor, "y = x with y[index[i], j] = source[i, j]"),
    Op("index_add", IndexAddDescriptor, IndexAddDescriptor, "y = x with y[index[i], j] += alpha source[i, j]"),
    Op("index_fill", IndexFillDescriptor, IndexFillDescriptor, "y = x with y[index[i], j] = value"),
)


def _same_element(name: str, input: Arg, source: Arg) -> None:
    if source.element is not input.element:
        raise InvalidProblemError(f"{name}: src: got {source.element}, want {input.element}. Cast it first.")


def _part_of(name: str, index: Arg, source: Arg) -> Arg:
    """The part of the source that is used: as large as the index."""
    if index.rank != source.rank or any(n > m for n, m in zip(index.shape, source.shape, strict=True)):
        got = f"shape {source.shape}"
        raise InvalidProblemError(f"{name}: src: got {got}, want at least {index.shape} everywhere, as index has.")
    return source if index.shape == source.shape else source.fit(index.shape)


_FOLDS = {"add": "sum", "multiply": "prod"}


@function(tensors="input index src")
def scatter(
    call: Call,
    input: Arg,
    dim: int,
    index: Arg,
    src: Arg | None = None,
    *,
    value: Any = None,
    reduce: str | None = None,
    out: Arg | None = None,
) -> Recipe:
    """`input` with elements of `src`, or one number, written to `index` along `dim`, as torch.scatter.

    Unlike torch, which leaves that open, the last of several positions that name one element stays. A number, which may
    also be given as `value`, must be a whole one for integers. With `reduce`, "add" or "multiply", elements of `src` are
    folded with those of `input` instead.
    """
    if (src is None) == (value is None):
        raise InvalidProblemError("scatter: src: want either a tensor or a number there, or a number as value.")
    if reduce is not None:
        if reduce not in _FOLDS or src is None or not src.is_tensor:
            got = f"{reduce!r}" if src is not None and src.is_tensor else "a number to fold"
            raise InvalidProblemError(f"scatter: reduce: got {got}, want 'add' or 'multiply', and a tensor as src.")
        return fold(call, "scatter", input, dim, index, src, _FOLDS[reduce], True)
    check_index("scatter", index)
    input, index, _ = same_rank(input, index)
    views: Any = {"y": ((), (-1,))} if input.dims == (-1,) else None
    if src is None:
        desc = ScatterDescriptor(input.shape, index.shape, dim, input.element, index.element, False)
        return call(desc, x=input, index=index, value=value, views=views)
    desc = ScatterDescriptor(input.shape, index.shape, dim, input.element, index.element, src.is_tensor)
    if not src.is_tensor:
        return call(desc, x=input, index=index, value=src, views=views)
    _same_element("scatter", input, src)
    return call(desc, x=input, index=index, source=_beside(index, src, "scatter"), views=views)


def _beside(index: Arg, src: Arg, name: str) -> Arg:
    """The source with the rank of the index, and the part of it that is used."""
    if (src.rank, index.rank) == (0, 1):
        src = src.insert(0)
    return _part_of(name, index, src)


def _used(src: Any, index: Any) -> Any:
    """The part of src that index names, of the index's shape."""
    shape = tuple(index.shape)
    if tuple(src.shape) == shape:
        return src
    return src.reshape(shape) if len(src.shape) != len(shape) else src[tuple(slice(0, n) for n in shape)]


def _gathered(dy: Any, dim: int, index: Any, src: Any) -> Any:
    """What elements of src became."""
    from baracuda.ops.indexing.indexing import gather

    return _behind(gather(dy, dim, index), src)


def _behind(found: Any, src: Any) -> Any:
    """A gradient of the used part of src with zeros behind it."""
    from baracuda.ops.layout.pad import pad

    if tuple(found.shape) == tuple(src.shape):
        return found
    if len(found.shape) != len(src.shape):
        return found.reshape(tuple(src.shape))
    behind = [m - n for m, n in zip(src.shape, found.shape, strict=True)]
    return pad(found, [p for n in reversed(behind) for p in (0, n)])


@scatter.vjp
def _scatter_vjp(
    input: Any, dim: int, index: Any, src: Any = None, *, value: Any = None, reduce: str | None = None
) -> tuple[Any, Any]:
    if reduce is not None:
        scatter(input, dim, index, src, value=value, reduce=reduce)  # refuses what is not to be folded
        return scatter_reduce.vjp_rule(input, dim, index, src, _FOLDS[reduce])  # type: ignore[misc]

    def pull(dy: Any) -> Any:
        dx = scatter(dy, dim, index, 0)
        return dx if src is None or isinstance(src, (int, float)) else (dx, _gathered(dy, dim, index, src))

    return scatter(input, dim, index, src, value=value), pull


@made_of("scatter_reduce")
@function(tensors="input index src")
def scatter_add(call: Call, input: Arg, dim: int, index: Arg, src: Arg, *, out: Arg | None = None) -> Recipe:
    """`input` with elements of `src` added at `index` along `dim`, as torch.scatter_add."""
    return fold(call, "scatter_add", input, dim, index, src, "sum", True)


def fold(call: Call, name: str, input: Arg, dim: int, index: Arg, src: Arg, mode: str, include_self: bool) -> Recipe:
    """Elements of `src` folded into `input` at `index`."""
    check_index(name, index)
    _same_element(name, input, src)
    input, index, _ = same_rank(input, index)
    views: Any = {"y": ((), (-1,))} if input.dims == (-1,) else None
    kind: Any = mode
    desc = ScatterReduceDescriptor(input.shape, index.shape, dim, input.element, index.element, kind, include_self)
    return call(desc, x=input, index=index, source=_beside(index, src, name), views=views)


@scatter_add.vjp
def _scatter_add_vjp(input: Any, dim: int, index: Any, src: Any) -> tuple[Any, Any]:
    return scatter_add(input, dim, index, src), lambda dy: (dy, _gathered(dy, dim, index, src))


@function(tensors="input index src")
def scatter_reduce(
    call: Call,
    input: Arg,
    dim: int,
    index: Arg,
    src: Arg,
    reduce: str,
    *,
    include_self: bool = True,
    out: Arg | None = None,
) -> Recipe:
    """`input` folded with elements of `src` at `index` along `dim`, as torch.scatter_reduce: sum, prod, mean, amax, amin."""
    return fold(call, "scatter_reduce", input, dim, index, src, reduce, include_self)


@scatter_reduce.vjp
@in_f32
def _scatter_reduce_vjp(
    input: Any, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True
) -> tuple[Any, Any]:
    from baracuda.ops.binary.binary import div
    from baracuda.ops.indexing.indexing import gather
    from baracuda.ops.layout.layout import ones_like, zeros_like
    from baracuda.ops.ternary.ternary import where

    y = scatter_reduce(input, dim, index, src, reduce, include_self=include_self)

    def pull(dy: Any) -> tuple[Any, Any]:
        from baracuda.functional import eq

        used = _used(src, index)
        # Elements of x that count neither as themselves nor as untouched ones.
        keep = ones_like(input) if include_self else scatter(ones_like(input), dim, index, 0)
        if reduce == "prod":
            dx, dsource = _prod_gradients(dy, input, dim, index, used, y, include_self)
        elif reduce in ("amax", "amin"):
            return _extremum_gradients(dy, input, dim, index, src, used, y, keep)
        else:
            if reduce == "mean":
                counts = scatter_add(keep, dim, index, ones_like(used))
                dy = div(dy, where(eq(counts, 0.0), 1.0, counts))
            dx, dsource = dy, gather(dy, dim, index)
        return where(eq(keep, 0.0), zeros_like(dx), dx), _behind(dsource, src)

    return y, pull


def _extremum_gradients(
    dy: Any, input: Any, dim: int, index: Any, src: Any, used: Any, y: Any, keep: Any
) -> tuple[Any, Any]:
    """All elements that are the result share its gradient."""
    from baracuda.functional import eq
    from baracuda.ops.binary.binary import div
    from baracuda.ops.cast.cast import cast
    from baracuda.ops.indexing.indexing import gather
    from baracuda.ops.ternary.ternary import where

    own, theirs = eq(input, y), eq(used, gather(y, dim, index))
    shares_x = where(own, keep, 0.0)
    share = div(dy, scatter_add(shares_x, dim, index, cast(theirs, src.dtype)))
    dsource = where(theirs, gather(share, dim, index), 0.0)
    return where(eq(shares_x, 0.0), 0.0, share), _behind(dsource, src)


def _prod_gradients(dy: Any, input: Any, dim: int, index: Any, src: Any, y: Any, include_self: bool) -> tuple[Any, Any]:
    """Torch's rule: dy times the product of the others, for the only zero among src computed without it."""
    from baracuda.functional import eq, logical_and, mul
    from baracuda.ops.binary.binary import div
    from baracuda.ops.cast.cast import cast
    from baracuda.ops.indexing.indexing import gather
    from baracuda.ops.layout.layout import zeros_like
    from baracuda.ops.ternary.ternary import where

    def product(x: Any, source: Any) -> Any:
        return scatter_reduce(x, dim, index, source, "prod", include_self=include_self)

    x = where(eq(input, 0.0), 1.0, input)
    dx = div(mul(dy, product(x, src)), x)
    zero = eq(src, 0.0)
    zeros = scatter_add(zeros_like(input), dim, index, cast(zero, src.dtype))
    only = logical_and(zero, eq(gather(zeros, dim, index), 1.0))
    without = product(input, where(only, 1.0, src))
    others = div(gather(mul(dy, y), dim, index), where(zero, 1.0, src))
    return dx, where(only, gather(mul(dy, without), dim, index), others)


@function(tensors="input index source")
def index_copy(call: Call, input: Arg, dim: int, index: Arg, source: Arg, *, out: Arg | None = None) -> Recipe:
    """`input` with slices of `source` written to `index` along `dim`, as torch.index_copy; the last of equal ones stays."""
    check_index("index_copy", index, Element.I64)
    _same_element("index_copy", input, source)
    views: Any = None
    if (input.rank, source.rank) == (0, 1):
        input, views = input.insert(0), {"y": ((), (-1,))}
    elif (input.rank, source.rank) == (1, 0):
        source = source.insert(0)
    desc = IndexCopyDescriptor(input.shape, index.shape, dim, input.element, index.element)
    _check_slices("index_copy", source, desc)
    return call(desc, x=input, index=index, source=source, views=views)


def _check_slices(name: str, source: Arg, desc: _Spread) -> None:
    if source.shape != desc.slices_shape():
        raise InvalidProblemError(f"{name}: source: got shape {source.shape}, want {desc.slices_shape()}.")


@index_copy.vjp
def _index_copy_vjp(input: Any, dim: int, index: Any, source: Any) -> tuple[Any, Any]:
    from baracuda.ops.indexing.indexing import index_select

    def pull(dy: Any) -> tuple[Any, Any]:
        return index_fill(dy, dim, index, 0), index_select(dy, dim, index).reshape(tuple(source.shape))

    return index_copy(input, dim, index, source), pull


@function(tensors="input index source")
def index_add(
    call: Call, input: Arg, dim: int, index: Arg, source: Arg, *, alpha: Any = 1, out: Arg | None = None
) -> Recipe:
    """`input` with `alpha` times slices of `source` added at `index` along `dim`, as torch.index_add."""
    check_index("index_add", index)
    _same_element("index_add", input, source)
    desc = IndexAddDescriptor(input.shape, index.shape, dim, input.element, index.element)
    _check_slices("index_add", source, desc)
    return call(desc, x=input, index=index, source=source, alpha=masked_number(alpha, input.element, "alpha"))


@index_add.vjp
def _index_add_vjp(input: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> tuple[Any, Any]:
    from baracuda.functional import mul
    from baracuda.ops.indexing.indexing import index_select

    def pull(dy: Any) -> tuple[Any, Any]:
        picked = index_select(dy, dim, index)
        return dy, picked if alpha == 1 else mul(picked, float(alpha))

    return index_add(input, dim, index, source, alpha=alpha), pull


@function(tensors="input index")
def index_fill(call: Call, input: Arg, dim: int, index: Arg, value: Any) -> Recipe:
    """`input` with `value` at the slices `index` along `dim`, as torch.index_fill: negative ones count from the end."""
    check_index("index_fill", index, Element.I64)
    desc = IndexFillDescriptor(input.shape, index.shape, dim, input.element, index.element)
    return call(desc, x=input, index=index, value=masked_number(value, input.element))


@index_fill.vjp
def _index_fill_vjp(input: Any, dim: int, index: Any, value: Any) -> tuple[Any, Any]:
    return index_fill(input, dim, index, value), lambda dy: index_fill(dy, dim, index, 0)
