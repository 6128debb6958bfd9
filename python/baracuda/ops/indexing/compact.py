"""Elements kept in order, and indices spelled out. Kernels in csrc/ops/indexing, reference in compact_ref.py.

How much is kept only the data says. A plan therefore has a capacity and a count: it writes what fits, in order, zeros
behind it, and how many there are. The functions count first and then make a result of the right size.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from baracuda import _core
from baracuda import functional as F
from baracuda.call.compose import Composer, Value, composed
from baracuda.call.counted import Parts
from baracuda.call.op import Arg, Call, NotDifferentiable, Op, Recipe, composite, function, run_new
from baracuda.call.steps import made_of
from baracuda.choose.plan import plan
from baracuda.describe.dims import Dim, Shape, Size, largest
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.promotion import broadcast
from baracuda.describe.spec import Descriptor, Signature, descriptor, output, tensor
from baracuda.memory.device import name_of
from baracuda.memory.views import is_contiguous
from baracuda.ops.layout.layout import ArangeDescriptor


@descriptor(family="indexing", op="nonzero")
class NonzeroDescriptor(Descriptor):
    """y[k, :] = the coordinates of the k-th element of x, in logical order, that is not zero; count = how many there are.

    Rows of y from `count` on are 0; where there are more than `capacity`, the first ones are written. NaN is not zero.

    Args:
        shape: Shape of x, rank 0-8.
        capacity: Rows of y.
        element: bool, any integer, f16, bf16, f32 or f64. y and count are i64.
    """

    shape: Shape
    capacity: Size
    element: Element = Element.F32

    def signature(self) -> Signature:
        return Signature(
            tensor("x", self.shape, self.element),
            output("y", (self.capacity, len(self.shape)), Element.I64),
            output("count", (), Element.I64),
        )


@descriptor(family="indexing", op="masked_select")
class MaskedSelectDescriptor(Descriptor):
    """y[k] = the k-th element of x, in logical order, where mask holds; count = how many there are.

    y is 0 from `count` on; where there are more than `capacity`, the first ones are written.

    Args:
        shape: Shape of mask and x, rank 0-8.
        capacity: Size of y.
        element: Any element of 1, 2, 4, 8 or 16 bytes. mask is bool, count i64.
    """

    shape: Shape
    capacity: Size
    element: Element = Element.F32

    def signature(self) -> Signature:
        return Signature(
            tensor("mask", self.shape, Element.BOOL),
            tensor("x", self.shape, self.element),
            output("y", (self.capacity,), self.element),
            output("count", (), Element.I64),
        )


@descriptor(family="indexing", op="one_hot")
class OneHotDescriptor(Descriptor):
    """y[..., c] = 1 where index[...] is c, else 0. An index outside of the classes is an IndexOutOfRangeError.

    Args:
        shape: Shape of index, rank 0-7; y has the classes appended.
        classes: How many there are.
        element: Of y: bool, any integer, f16, bf16, f32 or f64.
        index_element: i64, i32 or u32.
    """

    shape: Shape
    classes: Size
    element: Element = Element.I64
    index_element: Element = Element.I64

    def validate(self) -> None:
        if len(self.shape) > 7:
            raise self.wrong("shape", self.shape, "rank 0-7: y has one dimension more")

    def signature(self) -> Signature:
        y = output("y", (*self.shape, self.classes), self.element)
        return Signature(tensor("index", self.shape, self.index_element), y)


_WHOLE = NotDifferentiable("the result is made of positions, not of values")
OPS = (
    Op("nonzero", NonzeroDescriptor, _WHOLE, "y[k] = coordinates of the k-th element that is not 0"),
    Op("masked_select", MaskedSelectDescriptor, MaskedSelectDescriptor, "y[k] = the k-th element where mask holds"),
    Op("one_hot", OneHotDescriptor, _WHOLE, "y[..., c] = index[...] == c"),
)


def _rows(call: Call, input: Arg) -> Recipe:
    size = Dim("count", max=prod(input.shape))
    desc, parts = NonzeroDescriptor(input.shape, size, input.element), Parts(call, size)
    count = parts.run(desc, x=input)["count"]
    parts.read(count)
    return parts.recipe(parts.run(desc, results="y", x=input, count=count)["y"])


@made_of("nonzero")
@function(tensors="input")
def argwhere(call: Call, input: Arg) -> Recipe:
    """The same as nonzero, as torch.argwhere.

    Args:
        input: A tensor.
    """
    return _rows(call, input)


@function(tensors="input")
def nonzero(call: Call, input: Arg, *, as_tuple: bool = False) -> Recipe:
    """Coordinates of the elements that are not zero, in logical order, one row for each, as torch.nonzero.

    On a device this waits for the count. Plans of a fixed capacity do not: see NonzeroDescriptor.

    Args:
        input: A tensor.
        as_tuple: Whether to give one array for each dimension instead of one of rows.
    """
    del as_tuple  # see _columns
    return _rows(call, input)


def _columns(input: Any, as_tuple: bool) -> Any:
    """The second form: one array for each dimension."""
    from baracuda.ops.layout.layout import copy

    if not isinstance(as_tuple, int) or not as_tuple:
        return NotImplemented
    rows = nonzero(input if _core.describe(input)[0] else input.reshape(1))
    return tuple(copy(rows[:, d]) for d in range(rows.shape[1]))


nonzero.or_else(_columns)


@made_of("nonzero arange lt where")
@composed(tensors="input")
def nonzero_static(c: Composer, input: Value, *, size: int, fill_value: int = -1) -> Value:
    """The first `size` rows of nonzero, as torch.nonzero_static, without waiting for the count: others hold `fill_value`."""
    if size < 0:
        raise InvalidProblemError(f"size: got {size}, want a number that is not negative.")
    for name, number in (("size", size), ("fill_value", fill_value)):
        if not -(2**63) <= number < 2**63:
            raise InvalidProblemError(f"{name}: got {number}, want -2**63 <= {name} < 2**63, which i64 holds.")
    found, count = c(NonzeroDescriptor(input.shape, size, input.element), x=input)
    places = c(ArangeDescriptor((size,), Element.I64), start=0, step=1).permute((0, -1))
    return c.of(F.where, c.of(F.lt, places, count), found, fill_value)  # type: ignore[no-any-return]


@function(tensors="input mask")
def masked_select(call: Call, input: Arg, mask: Arg) -> Recipe:
    """Elements of `input` where `mask` holds, in logical order, as torch.masked_select; the two broadcast.

    On a device this waits for the count. Plans of a fixed capacity do not: see MaskedSelectDescriptor.

    Args:
        input: A tensor.
        mask: Bools of a shape that broadcasts with the input's.

    Raises:
        InvalidProblemError: If the mask is not bool, or of a shape that does not broadcast.
    """
    if mask.element is not Element.BOOL:
        raise InvalidProblemError(f"masked_select: mask: got {mask.element}, want bool. Compare it with something.")
    shape = tuple(map(largest, broadcast(input.shape, mask.shape, "masked_select: mask")))
    size = Dim("count", max=prod(shape))
    desc, parts = MaskedSelectDescriptor(shape, size, input.element), Parts(call, size)
    mask, x = _wide(mask, shape), _wide(input, shape)
    count = parts.run(desc, mask=mask, x=x)["count"]
    parts.read(count)
    return parts.recipe(parts.run(desc, results="y", mask=mask, x=x, count=count)["y"])


def _wide(arg: Arg, shape: tuple[int, ...]) -> Arg:
    """Broadcast to a shape."""
    if arg.shape == shape:
        return arg
    for _ in range(len(shape) - arg.rank):
        arg = arg.insert(0)
    return arg.fit(shape)


def expanded(value: Any, shape: tuple[int, ...], behind: int = 0) -> Any:
    """A view that is broadcast to a shape, after so many dimensions of size 1 are put behind its own."""
    memory = _core.borrow(value)
    found, strides = (*memory.shape, *(1,) * behind), (*memory.strides, *(0,) * behind)
    lead = len(shape) - len(found)
    steps = (*(0,) * lead, *(0 if n == 1 else s for n, s in zip(found, strides, strict=True)))
    return _core.view_of(memory, 0, shape, steps, memory._element)


def _flat(x: Any) -> Any:
    """All elements in C order."""
    from baracuda.functional import copy

    sizes, _, strides, *_ = _core.describe(x)
    return (x if is_contiguous(sizes, strides) else copy(x)).reshape(-1)


@masked_select.vjp
def _masked_select_vjp(input: Any, mask: Any) -> tuple[Any, Any]:
    from baracuda.functional import logical_or, sum_to, where, zeros_like
    from baracuda.ops.indexing.scatter import scatter

    def pull(dy: Any) -> Any:
        zeros = where(mask, zeros_like(input), zeros_like(input))  # in the shape that both broadcast to
        whole = logical_or(mask, zeros_like(zeros, dtype="bool"))
        found = scatter(_flat(zeros), 0, nonzero(_flat(whole)).reshape(-1), dy)
        return sum_to(found.reshape(tuple(zeros.shape)), tuple(input.shape))

    return masked_select(input, mask), pull


@composite
def one_hot(tensor: Any, num_classes: int = -1) -> Any:
    """A row of zeros with a one at each index of `tensor`, as torch.nn.functional.one_hot: i64.

    Args:
        tensor: Indices, i64.
        num_classes: How many; by default one more than the largest index, which a device is then waited for.

    Raises:
        InvalidProblemError: If the indices are not i64, or nothing says how many classes there are.
        IndexOutOfRangeError: If an index is negative, or not below the number of classes.
    """
    from baracuda.ops.reduce.reduce import amax

    shape, code, _, *where = _core.describe(tensor)
    if Element(code) is not Element.I64:
        raise InvalidProblemError(f"one_hot: tensor: got {Element(code)}, want i64. Cast it first.")
    if num_classes == -1:
        if not prod(shape):
            raise InvalidProblemError("one_hot: num_classes: got -1, want a number where there are no indices.")
        largest = amax(tensor)
        num_classes = int(largest.item() if hasattr(largest, "item") else np.asarray(largest)) + 1
    if num_classes < (1 if prod(shape) else 0):
        raise InvalidProblemError(f"one_hot: num_classes: got {num_classes}, want a number above all indices.")
    made = plan(OneHotDescriptor(shape, num_classes, Element.I64), name_of((where[0], where[1])))
    return run_new(made, tensor, index=tensor)
