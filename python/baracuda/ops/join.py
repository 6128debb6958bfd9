"""Lists of tensors put together. Kernels in csrc/ops/layout, reference in join_ref.py."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from baracuda import _core
from baracuda.device import Place, name_of
from baracuda.dims import Dim, Shape, Size, check_axis
from baracuda.elements import Element
from baracuda.errors import InvalidProblemError
from baracuda.op import Op, composite, run_new
from baracuda.plan import Plan, plan
from baracuda.promotion import promote
from baracuda.spec import Descriptor, Signature, descriptor, output, tensors


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

    def attributes(self) -> tuple[int, ...]:
        return (self.axis,)


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

    def attributes(self) -> tuple[int, ...]:
        return (self.axis,)


OPS = (
    Op("cat", CatDescriptor, CatDescriptor, "y = the tensors one after the other along an axis"),
    Op("stack", StackDescriptor, StackDescriptor, "y = the tensors side by side along a new axis"),
)


@lru_cache(maxsize=256)
def _cat_plan(shapes: tuple[Shape, ...], axis: int, element: Element, place: Place) -> Plan:
    return plan(CatDescriptor(shapes, axis, element), name_of(place))


@lru_cache(maxsize=256)
def _stack_plan(shape: Shape, count: int, axis: int, element: Element, place: Place) -> Plan:
    return plan(StackDescriptor(shape, count, axis, element), name_of(place))


def _joined(name: str, tensors: Any) -> tuple[list[Any], list[Shape], Element, Place]:
    """The tensors of a list in the element that holds all of them, their shapes, that element and where they are."""
    from baracuda.ops.cast import cast

    if not isinstance(tensors, (list, tuple)) or not tensors:
        raise InvalidProblemError(f"{name}: tensors: got {tensors!r}, want a list of at least one tensor.")
    values = list(tensors)
    found = [_core.describe(v) for v in values]
    elements = [Element(d[1]) for d in found]
    element = elements[0]
    for e in elements[1:]:
        element = promote(element, e)
    return (
        [v if e is element else cast(v, element) for v, e in zip(values, elements, strict=True)],
        [tuple(d[0]) for d in found],
        element,
        (found[0][3], found[0][4]),
    )


def _copied(part: Any) -> Any:
    from baracuda.ops.layout import copy

    return copy(part)


@composite
def cat(tensors: Any, dim: int = 0, *, out: Any = None) -> Any:
    """The tensors one after the other along `dim`, as torch.cat: of the element that holds all of theirs.

    Empty tensors of shape (0,) are left out, whatever the shape of the others.

    Args:
        tensors: A list of tensors that differ in the size of `dim` at most.
        dim: Where they are joined.
        out: A tensor to write the result to.

    Raises:
        InvalidProblemError: If there is no tensor, or shapes differ elsewhere.
    """
    values, shapes, element, place = _joined("cat", tensors)
    kept = [i for i, s in enumerate(shapes) if s != (0,)] or [0]
    made = _cat_plan(tuple(shapes[i] for i in kept), dim, element, place)
    return run_new(made, tensors[0], out, tensors=[values[i] for i in kept])


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


cat.vjp_rule = _cat_vjp  # type: ignore[attr-defined]


@composite
def concat(tensors: Any, dim: int = 0, *, out: Any = None) -> Any:
    """The same as cat, as torch.concat.

    Args:
        tensors: A list of tensors that differ in the size of `dim` at most.
        dim: Where they are joined.
        out: A tensor to write the result to.
    """
    return cat(tensors, dim, out=out)


concat.vjp_rule = _cat_vjp  # type: ignore[attr-defined]


@composite
def stack(tensors: Any, dim: int = 0, *, out: Any = None) -> Any:
    """The tensors side by side along a new dimension, as torch.stack: of the element that holds all of theirs.

    Args:
        tensors: A list of tensors of one shape.
        dim: Where the new dimension stands.
        out: A tensor to write the result to.

    Raises:
        InvalidProblemError: If there is no tensor, or their shapes differ.
    """
    values, shapes, element, place = _joined("stack", tensors)
    if any(s != shapes[0] for s in shapes):
        raise InvalidProblemError(f"stack: tensors: got shapes {', '.join(map(str, shapes))}, want equal ones.")
    made = _stack_plan(shapes[0], len(values), dim, element, place)
    return run_new(made, tensors[0], out, tensors=values)


def _stack_vjp(tensors: Any, dim: int = 0) -> tuple[Any, Any]:
    def pull(dy: Any) -> tuple[Any, ...]:
        axis = check_axis(dim, len(_core.describe(dy)[0]), "stack: dim")
        return tuple(_copied(dy[(slice(None),) * axis + (i,)]) for i in range(len(tensors)))

    return stack(tensors, dim), pull


stack.vjp_rule = _stack_vjp  # type: ignore[attr-defined]
