"""Lists of tensors put together. Kernels in csrc/ops/layout, reference in join_ref.py."""

from __future__ import annotations

from functools import reduce
from typing import Any

from baracuda import _core
from baracuda.call.compose import Composer, Value
from baracuda.call.op import Arg, Call, ListArg, Op, Recipe, function
from baracuda.call.steps import made_of
from baracuda.describe.dims import Dim, Shape, Size, check_axis
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.promotion import promote
from baracuda.describe.spec import Descriptor, Signature, descriptor, output, tensors


@descriptor(family="layout", op="cat")
class CatDescriptor(Descriptor):
    """y = the tensors one after the other along `axis`, bit for bit.

    Args:
        shapes: Shape of each tensor, rank 1-8; equal but for the axis.
        axis: Where they are joined; negative counts from the end.
        element: Any element of 1, 2, 4, 8 or 16 bytes.
    """

    shapes: tuple[Shape, ...]
    axis: int = 0
    element: Element = Element.F32

    def validate(self) -> None:
        if not self.shapes or not self.shapes[0]:
            raise self.wrong("shapes", self.shapes, "at least one shape of rank 1-8")
        axis = check_axis(self.axis, len(self.shapes[0]), f"{type(self).__name__}.axis")
        object.__setattr__(self, "axis", axis)
        first = self.shapes[0]
        for shape in self.shapes:
            if (*shape[:axis], *shape[axis + 1 :]) != (*first[:axis], *first[axis + 1 :]) or len(shape) != len(first):
                raise self.wrong("shapes", self.shapes, f"shapes that differ in dimension {axis} at most")
            if isinstance(shape[axis], Dim) and len(self.shapes) > 1:
                raise self.wrong("shapes", self.shapes, f"plain sizes in dimension {axis}")

    def signature(self) -> Signature:
        first, a = self.shapes[0], self.axis
        size: Size = first[a]
        if len(self.shapes) > 1:
            size = sum(int(s[a]) for s in self.shapes)  # type: ignore[arg-type,misc]
        y = output("y", (*first[:a], size, *first[a + 1 :]), self.element)
        return Signature(tensors("tensors", self.shapes, self.element), y)


@descriptor(family="layout", op="stack")
class StackDescriptor(Descriptor):
    """y = the tensors side by side along a new axis, bit for bit.

    Args:
        shape: Shape of every tensor, rank 0-7.
        count: How many there are.
        axis: Where the new axis stands in y; negative counts from the end.
        element: Any element of 1, 2, 4, 8 or 16 bytes.
    """

    shape: Shape
    count: int
    axis: int = 0
    element: Element = Element.F32

    def validate(self) -> None:
        if not 1 <= self.count <= 2**20:
            raise self.wrong("count", self.count, "1 <= count <= 2**20")
        if len(self.shape) > 7:
            raise self.wrong("shape", self.shape, "rank 0-7: y has one dimension more")
        axis = check_axis(self.axis, len(self.shape) + 1, f"{type(self).__name__}.axis")
        object.__setattr__(self, "axis", axis)

    def signature(self) -> Signature:
        s, a = self.shape, self.axis
        y = output("y", (*s[:a], self.count, *s[a:]), self.element)
        return Signature(tensors("tensors", (s,) * self.count, self.element), y)


OPS = (
    Op("cat", CatDescriptor, CatDescriptor, "y = the tensors one after the other along an axis"),
    Op("stack", StackDescriptor, StackDescriptor, "y = the tensors side by side along a new axis"),
)


def _in_one(tensors: ListArg) -> Element:
    """The element that holds all of a list's."""
    return reduce(promote, (t.element for t in tensors.items))


def _joined(c: Composer, tensors: list[Value], dim: int, element: Element) -> Value:
    """Without those of shape (0,), of which the shape says nothing."""
    kept = [c.cast(x, element) for x in tensors if x.shape != (0,)] or [c.cast(tensors[0], element)]
    made: Value = c(CatDescriptor(tuple(x.shape for x in kept), dim, element), tensors=kept)
    return made


def _stacked(c: Composer, tensors: list[Value], dim: int, element: Element) -> Value:
    desc = StackDescriptor(tensors[0].shape, len(tensors), dim, element)
    made: Value = c(desc, tensors=[c.cast(x, element) for x in tensors])
    return made


def _cat(call: Call, tensors: ListArg, dim: int) -> Recipe:
    element = _in_one(tensors)
    shapes = tuple(t.shape for t in tensors.items)
    if any(t.element is not element for t in tensors.items) or (len(shapes) > 1 and (0,) in shapes):
        return call.steps(_joined, tensors, dim=dim, element=element)
    return call(CatDescriptor(shapes, dim, element), tensors=tensors)


def _copied(part: Any) -> Any:
    from baracuda.ops.layout.layout import copy

    return copy(part)


@function(lists="tensors")
def cat(call: Call, tensors: ListArg, dim: int = 0, *, out: Arg | None = None) -> Recipe:
    """The tensors one after the other along `dim`, as torch.cat: of the element that holds all of theirs.

    Empty tensors of shape (0,) are left out, whatever the shape of the others.

    Args:
        tensors: A list of tensors that differ in the size of `dim` at most.
        dim: Where they are joined.
        out: A tensor to write the result to.

    Raises:
        InvalidProblemError: If there is no tensor, or shapes differ elsewhere.
    """
    return _cat(call, tensors, dim)


@cat.vjp
def _cat_vjp(tensors: Any, dim: int = 0) -> tuple[Any, Any]:
    shapes = [tuple(_core.describe(t)[0]) for t in tensors]

    def pull(dy: Any) -> tuple[Any, ...]:
        grads, at = [], 0
        axis = check_axis(dim, len(_core.describe(dy)[0]), "cat: dim")
        for shape in shapes:
            size = 0 if shape == (0,) else int(shape[axis])
            part = dy[(slice(None),) * axis + (slice(at, at + size),)]
            grads.append(_copied(part if shape != (0,) else dy.reshape(-1)[:0]))
            at += size
        return tuple(grads)

    return cat(tensors, dim), pull


@made_of("cast cat")
@function(lists="tensors")
def concat(call: Call, tensors: ListArg, dim: int = 0, *, out: Arg | None = None) -> Recipe:
    """The same as cat, as torch.concat.

    Args:
        tensors: A list of tensors that differ in the size of `dim` at most.
        dim: Where they are joined.
        out: A tensor to write the result to.
    """
    return _cat(call, tensors, dim)


concat.vjp(_cat_vjp)


@function(lists="tensors")
def stack(call: Call, tensors: ListArg, dim: int = 0, *, out: Arg | None = None) -> Recipe:
    """The tensors side by side along a new dimension, as torch.stack: of the element that holds all of theirs.

    Args:
        tensors: A list of tensors of one shape.
        dim: Where the new dimension stands.
        out: A tensor to write the result to.

    Raises:
        InvalidProblemError: If there is no tensor, or their shapes differ.
    """
    element = _in_one(tensors)
    shapes = [t.shape for t in tensors.items]
    if any(s != shapes[0] for s in shapes):
        raise InvalidProblemError(f"tensors: got shapes {', '.join(map(str, shapes))}, want equal ones.")
    if any(t.element is not element for t in tensors.items):
        return call.steps(_stacked, tensors, dim=dim, element=element)
    return call(StackDescriptor(shapes[0], len(shapes), dim, element), tensors=tensors)


@stack.vjp
def _stack_vjp(tensors: Any, dim: int = 0) -> tuple[Any, Any]:
    def pull(dy: Any) -> tuple[Any, ...]:
        axis = check_axis(dim, len(_core.describe(dy)[0]), "stack: dim")
        return tuple(_copied(dy[(*(slice(None),) * axis, i, ...)]) for i in range(len(tensors)))

    return stack(tensors, dim), pull
