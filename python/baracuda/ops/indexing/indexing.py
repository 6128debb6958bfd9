"""Elements collected by index. Kernels in csrc/ops/indexing, reference in indexing_ref.py.

Every index is checked before the first write; a bad one is an IndexOutOfRangeError. Values are moved bit for bit.
Gradients add up, in twice the precision and in the order of positions, what each element became.
"""

from __future__ import annotations

from math import prod
from typing import Any

from baracuda.call.compose import Composer, Value, with_indices
from baracuda.call.op import Arg, Call, Op, Recipe, function
from baracuda.call.steps import made_of
from baracuda.describe.dims import Dim, Shape, Size, check_axis
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError, shown
from baracuda.describe.spec import Descriptor, Signature, descriptor, frame, output, tensor


@frame
class Indexed(Descriptor):
    """Fields of descriptors of indices along an axis; the family's attributes begin with the axis."""

    __slots__ = ()
    shape: Shape
    index_shape: Shape
    axis: int = 0
    element: Element = Element.F32
    index_element: Element = Element.I64
    axis_of = "shape"

    def check_elements(self) -> None:
        """For an index per element: it is as large as the tensor, and but for the axis no larger."""
        if len(self.shape) != len(self.index_shape):
            raise self.wrong("index_shape", self.index_shape, f"rank {len(self.shape)}, as the input")
        for d, (size, index) in enumerate(zip(self.shape, self.index_shape, strict=True)):
            fits = index == size if isinstance(size, Dim) or isinstance(index, Dim) else index <= size
            if d != self.axis and not fits:
                raise self.wrong("index_shape", self.index_shape, f"at most {size} in dimension {d}")

    def check_vector(self) -> None:
        """For a vector of indices, each of which means a slice."""
        if len(self.index_shape) > 1:
            raise self.wrong("index_shape", self.index_shape, "rank 0 or 1")

    def check_slices(self) -> None:
        """For a vector of indices that has slices beside it: a tensor of rank 0 is one slice."""
        self.check_vector()
        if not self.shape and self.index_shape not in ((), (1,)):
            raise self.wrong(
                "index_shape", self.index_shape, "() or (1,) beside a tensor of rank 0, which has one slice"
            )

    def slices_shape(self) -> Shape:
        """Shape of what a vector of indices means."""
        if not self.shape:
            return ()
        size: Size = self.index_shape[0] if self.index_shape else 1
        return (*self.shape[: self.axis], size, *self.shape[self.axis + 1 :])


def _collects(desc: Descriptor, shape: Shape, index_shape: Shape, index_element: Element, result: Shape) -> Signature:
    """The signature of what collects elements of a tensor, or of its gradient."""
    e, index = desc.primary_element(), tensor("index", index_shape, index_element)
    if desc.direction == "backward":
        return Signature(tensor("dy", result, e), index, output("dx", shape, e))
    return Signature(tensor("x", shape, e), index, output("y", result, e))


@frame
class _Collect(Indexed):
    """What forward and backward share."""

    __slots__ = ()
    wrap: bool = False

    def result_shape(self) -> Shape:
        """Shape of y and dy."""
        return self.index_shape

    def signature(self) -> Signature:
        return _collects(self, self.shape, self.index_shape, self.index_element, self.result_shape())


class _Gather(_Collect):
    __slots__ = ()

    def validate(self) -> None:
        self.check_elements()


class _IndexSelect(_Collect):
    __slots__ = ()

    def validate(self) -> None:
        self.check_slices()

    def result_shape(self) -> Shape:
        return self.slices_shape()


@frame
class _Take(Descriptor):
    """What forward and backward share."""

    __slots__ = ()
    shape: Shape
    index_shape: Shape
    element: Element = Element.F32
    index_element: Element = Element.I64

    def result_shape(self) -> Shape:
        """Shape of y and dy."""
        return self.index_shape

    def signature(self) -> Signature:
        return _collects(self, self.shape, self.index_shape, self.index_element, self.index_shape)

    def attributes(self) -> dict[str, int | float]:
        return {"axis": 0, "wrap": 1}


@descriptor(family="indexing", op="gather")
class GatherDescriptor(_Gather):
    """y[i, j, k] = x[i, index[i, j, k], k] for axis 1, and likewise for others.

    Args:
        shape: Shape of x, rank 0-8.
        index_shape: Shape of index and y; of the rank of x, and but for the axis no larger.
        axis: The axis that indices count along; negative counts from the end.
        element: Any element of 1, 2, 4, 8 or 16 bytes.
        index_element: i64, i32 or u32.
        wrap: Whether negative indices count from the end; they are out of range otherwise, as in torch.gather.
    """


@descriptor(gradient_of=GatherDescriptor)
class GatherBackwardDescriptor(_Gather):
    """dx[i, j, k] = the sum of dy over the positions whose index names that element, 0 where there is none.

    Sums are kept in f64 (with Kahan's correction for f64; on GPUs in two numbers of the compute element) and rounded
    once. Needs 8 bytes of workspace per element of dx, 16 for f64; on GPUs 32 per index, and a little more.

    Args:
        shape: Shape of x and dx.
        index_shape: Shape of index and dy.
        axis: As in GatherDescriptor.
        element: f16, bf16, f32 or f64.
        index_element: i64, i32 or u32.
        wrap: As in GatherDescriptor.
    """


@descriptor(family="indexing", op="index_select")
class IndexSelectDescriptor(_IndexSelect):
    """y[i, j, k] = x[i, index[j], k] for axis 1, and likewise for others.

    Args:
        shape: Shape of x, rank 0-8.
        index_shape: Shape of index: (n,), or () for one index, which is all that an x of rank 0 takes.
        axis: The axis that indices count along; negative counts from the end. y has n elements there.
        element: Any element of 1, 2, 4, 8 or 16 bytes.
        index_element: i64, i32 or u32.
        wrap: Whether negative indices count from the end; they are out of range otherwise, as in torch.index_select.
    """


@descriptor(gradient_of=IndexSelectDescriptor)
class IndexSelectBackwardDescriptor(_IndexSelect):
    """dx[i, j, k] = the sum of dy over the positions whose index is j, 0 where there is none; see gather's gradient.

    Args:
        shape: Shape of x and dx.
        index_shape: Shape of index.
        axis: As in IndexSelectDescriptor.
        element: f16, bf16, f32 or f64.
        index_element: i64, i32 or u32.
        wrap: As in IndexSelectDescriptor.
    """


@descriptor(family="indexing", op="take")
class TakeDescriptor(_Take):
    """y[...] = x in logical order at index[...]. Negative indices count from the end, as in torch.take.

    Args:
        shape: Shape of x, rank 0-8.
        index_shape: Shape of index and y, rank 0-8.
        element: Any element of 1, 2, 4, 8 or 16 bytes.
        index_element: i64, i32 or u32.
    """


@descriptor(gradient_of=TakeDescriptor)
class TakeBackwardDescriptor(_Take):
    """Dx = in logical order the sums of dy over the positions that took an element; see gather's gradient.

    Args:
        shape: Shape of x and dx.
        index_shape: Shape of index and dy.
        element: f16, bf16, f32 or f64.
        index_element: i64, i32 or u32.
    """


OPS = (
    Op("gather", GatherDescriptor, GatherBackwardDescriptor, "y[i, j] = x[index[i, j], j] along an axis"),
    Op("index_select", IndexSelectDescriptor, IndexSelectBackwardDescriptor, "y[i, j] = x[index[i], j] along an axis"),
    Op("take", TakeDescriptor, TakeBackwardDescriptor, "y[i] = x.flat[index[i]]"),
)


def check_index(name: str, index: Arg, *elements: Element) -> None:
    """Refuses indices that torch refuses: i64, and i32 where it takes those."""
    allowed = elements or (Element.I64, Element.I32)
    if index.element not in allowed:
        want = " or ".join(map(str, allowed))
        raise InvalidProblemError(f"{name}: index: got {index.element}, want {want}. Cast it first.")


@function(tensors="input index")
def gather(call: Call, input: Arg, dim: int, index: Arg, *, out: Arg | None = None) -> Recipe:
    """Elements of `input` along `dim` at `index`, element by element, as torch.gather."""
    if made := with_indices(call, gather, "index", input=input, dim=dim, index=index):
        return made
    check_index("gather", index)
    x, i, views = same_rank(input, index)
    desc = GatherDescriptor(x.shape, i.shape, dim, input.element, index.element)
    return call(desc, x=x, index=i, views=views and {"y": views})


View = tuple[tuple[int, ...], tuple[int, ...]]


def same_rank(input: Arg, index: Arg) -> tuple[Arg, Arg, View | None]:
    """0-d tensors count as vectors of one element beside vectors, as in torch; how a result of index's shape is seen then."""
    if (input.rank, index.rank) == (0, 1):
        return input.insert(0), index, None
    if (input.rank, index.rank) == (1, 0):
        return input, index.insert(0), ((), (-1,))
    return input, index, None


@function(tensors="dy index")
def gather_backward(call: Call, dy: Arg, index: Arg, shape: Any, dim: int, wrap: bool = False) -> Recipe:
    """Gradient of gather with respect to an input of `shape`; with `wrap` that of take_along_dim."""
    if made := with_indices(call, gather_backward, "index", dy=dy, index=index, shape=shape, dim=dim, wrap=wrap):
        return made
    sizes = tuple(shape)
    views: dict[str, View] | None = None
    if (len(sizes), index.rank) == (0, 1):
        views, sizes = {"dx": ((), (-1,))}, (1,)
    elif (len(sizes), index.rank) == (1, 0):
        dy, index = dy.insert(0), index.insert(0)
    desc = GatherBackwardDescriptor(sizes, index.shape, dim, dy.element, index.element, wrap)
    return call(desc, dy=dy, index=index, views=views)


gather.pulled_by(gather_backward)


@made_of("gather take")
@function(tensors="input indices")
def take_along_dim(call: Call, input: Arg, indices: Arg, dim: int | None = None, *, out: Arg | None = None) -> Recipe:
    """Elements of `input` along `dim` at `indices`, as torch.take_along_dim: negative ones count from the end.

    Beside `dim` the two broadcast. Without it both are taken as one row.
    """
    check_index("take_along_dim", indices, *(() if dim is None else (Element.I64,)))
    if dim is None:
        if indices.rank != 1:
            return call.steps(_taken_row, input, indices)
        desc: Descriptor = TakeDescriptor(input.shape, indices.shape, input.element, indices.element)
        return call(desc, x=input, index=indices)
    shape, index_shape, axis = _side_by_side(input, indices, dim)
    desc = GatherDescriptor(shape, index_shape, axis, input.element, indices.element, wrap=True)
    return call(desc, x=input.fit(shape), index=indices.fit(index_shape))


def _side_by_side(input: Arg, indices: Arg, dim: int) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Both shapes, broadcast beside an axis, and the axis."""
    axis = check_axis(dim, input.rank, "take_along_dim: dim")
    if input.rank != indices.rank:
        raise InvalidProblemError(f"take_along_dim: indices: got rank {indices.rank}, want {input.rank}.")
    both = []
    for d, (m, n) in enumerate(zip(input.shape, indices.shape, strict=True)):
        if d != axis and m != n and 1 not in (m, n):
            got = f"shape {indices.shape} for {input.shape}"
            raise InvalidProblemError(
                f"take_along_dim: indices: got {got}, want sizes that are equal beside dimension {axis}, or 1."
            )
        both.append(n if m == 1 else m)
    shape, index_shape = (tuple(x.shape[d] if d == axis else n for d, n in enumerate(both)) for x in (input, indices))
    return shape, index_shape, axis


def _taken_row(c: Composer, input: Value, indices: Value) -> Value:
    index = c.reshape(indices, (prod(indices.shape),))
    made: Value = c(TakeDescriptor(input.shape, index.shape, input.element, index.element), x=input, index=index)
    return made


@made_of("gather_backward sum_to take_backward")
@function(tensors="dy input indices")
def take_along_dim_backward(call: Call, dy: Arg, input: Arg, indices: Arg, dim: int | None = None) -> Recipe:
    """Gradient of take_along_dim with respect to `input`."""
    if dim is None:
        return call.steps(_row_backward, dy, indices, shape=input.shape)
    shape, index_shape, axis = _side_by_side(input, indices, dim)
    if shape != input.shape:
        return call.steps(_broadcast_backward, dy, indices, small=input.shape, shape=shape, axis=axis)
    desc = GatherBackwardDescriptor(shape, index_shape, axis, dy.element, indices.element, True)
    return call(desc, dy=dy, index=indices.fit(index_shape))


def _row_backward(c: Composer, dy: Value, indices: Value, shape: Any) -> Value:
    if dy.shape != (prod(indices.shape),):
        raise InvalidProblemError(f"dy: got shape {dy.shape}, want {(prod(indices.shape),)}, as the result.")
    index = c.reshape(indices, dy.shape)
    made: Value = c(TakeBackwardDescriptor(tuple(shape), index.shape, dy.element, index.element), dy=dy, index=index)
    return made


def _broadcast_backward(c: Composer, dy: Value, indices: Value, small: Any, shape: Any, axis: int) -> Value:
    """Summed over the dimensions along which the input was broadcast."""
    from baracuda.ops.reduce.reduce import SumToDescriptor

    desc = GatherBackwardDescriptor(tuple(shape), dy.shape, axis, dy.element, indices.element, True)
    full = c(desc, dy=dy, index=indices.expand(dy.shape))
    made: Value = c(SumToDescriptor(tuple(shape), tuple(small), dy.element), x=full)
    return made


take_along_dim.pulled_by(take_along_dim_backward)


@function(tensors="input index")
def index_select(call: Call, input: Arg, dim: int, index: Arg, *, out: Arg | None = None) -> Recipe:
    """Slices of `input` along `dim` at the indices of a vector, as torch.index_select."""
    if made := with_indices(call, index_select, "index", input=input, dim=dim, index=index):
        return made
    check_index("index_select", index)
    desc = IndexSelectDescriptor(input.shape, index.shape, dim, input.element, index.element)
    return call(desc, x=input, index=index)


@function(tensors="dy index")
def index_select_backward(call: Call, dy: Arg, index: Arg, shape: Any, dim: int) -> Recipe:
    """Gradient of index_select with respect to an input of `shape`."""
    if made := with_indices(call, index_select_backward, "index", dy=dy, index=index, shape=shape, dim=dim):
        return made
    desc = IndexSelectBackwardDescriptor(tuple(shape), index.shape, dim, dy.element, index.element)
    return call(desc, dy=dy, index=index)


index_select.pulled_by(index_select_backward)


@function(tensors="input index")
def take(call: Call, input: Arg, index: Arg, *, out: Arg | None = None) -> Recipe:
    """Elements of `input`, taken as one row, at `index`, as torch.take: negative indices count from the end."""
    if made := with_indices(call, take, "index", input=input, index=index):
        return made
    check_index("take", index, Element.I64)
    return call(TakeDescriptor(input.shape, index.shape, input.element, index.element), x=input, index=index)


@function(tensors="dy index")
def take_backward(call: Call, dy: Arg, index: Arg, shape: Any) -> Recipe:
    """Gradient of take with respect to an input of `shape`."""
    if made := with_indices(call, take_backward, "index", dy=dy, index=index, shape=shape):
        return made
    return call(TakeBackwardDescriptor(tuple(shape), index.shape, dy.element, index.element), dy=dy, index=index)


take.pulled_by(take_backward)


@made_of("where")
@function(tensors="input mask")
def masked_fill(call: Call, input: Arg, mask: Arg, value: Any) -> Recipe:
    """`input` with `value` where `mask` holds, as torch.masked_fill: of the element of `input`, with broadcasting."""
    from baracuda.ops.ternary.ternary import WhereDescriptor

    if mask.element is not Element.BOOL:
        raise InvalidProblemError(f"masked_fill: mask: got {mask.element}, want bool. Compare it with something first.")
    number = masked_number(value, input.element)
    desc = WhereDescriptor(mask.shape, None, input.shape, input.element)
    return call(desc, condition=mask, b=input, a_number=number)


def masked_number(value: Any, element: Element, name: str = "value") -> float | int:
    """A number as an element holds it: integers are cut towards zero, bool is any number but zero."""
    number = value.item() if hasattr(value, "item") and getattr(value, "shape", ()) == () else value
    if isinstance(number, complex) or not isinstance(number, (int, float)):
        raise InvalidProblemError(f"{name}: got {shown(value)}, want a real number.")
    if element is Element.BOOL:
        return int(number != 0)
    try:
        if not element.is_integer:
            return float(number)
        whole, (least, most) = int(number), element.limits
        if least <= whole <= most:
            return whole
        want = f"a number that {element} holds, {least} <= n <= {most}"
    except (OverflowError, ValueError):  # infinite, NaN, or an int beyond the floats
        want = f"a number that {element} holds"
    raise InvalidProblemError(f"{name}: got {shown(value)}, want {want}.")


@masked_fill.vjp
def _masked_fill_vjp(input: Any, mask: Any, value: Any) -> tuple[Any, Any]:
    def pull(dy: Any) -> Any:
        from baracuda.ops.binary.binary import _sum_to

        return _sum_to(masked_fill(dy, mask, 0), input)

    return masked_fill(input, mask, value), pull
