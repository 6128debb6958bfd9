"""Gradients while they are added up: of whole tensors, and of views of them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import prod
from typing import Any

from baracuda import _core
from baracuda.describe.elements import Element
from baracuda.memory.device import name_of
from baracuda.memory.results import is_torch
from baracuda.memory.views import contiguous_strides, is_contiguous, is_dense

Shape = tuple[int, ...]
# Where a tensor is said to be whose elements nobody reads: a view of it says where its elements lie in the whole.
_SOMEWHERE = 1 << 40


class Root:
    """An argument, or what a function made: gradients are added up for it, whatever views of it are used.

    Attributes:
        value: The tensor, of whatever framework.
        shape: Its sizes.
        element: Of its numbers.
        device: Where it lies.
        constant: Whether no gradient flows through it, although it is on a tape.
        whole: Where all of it lies.
    """

    __slots__ = ("constant", "device", "element", "shape", "value", "whole")

    def __init__(self, value: Any, shape: Shape, element: Element, device: str) -> None:
        self.constant = False
        self.whole = Place(shape, contiguous_strides(shape), 0)
        self.value = value
        self.shape = shape
        self.element = element
        self.device = device

    @classmethod
    def of(cls, value: Any) -> Root:
        """That of a tensor of any framework."""
        shape, code, _, *place = _core.describe(value)
        return cls(value, tuple(shape), Element(code), name_of((place[0], place[1])))

    def pattern(self, place: Place) -> Any:
        """A tensor that lies as a view does, in memory that nobody reads: for arithmetic on views."""
        start = _SOMEWHERE + place.offset * self.element.nbytes
        return _core.from_pointer(start, place.shape, self.element, place.strides)

    def place(self, pattern: Any) -> Place:
        """Where a view of a pattern lies."""
        offset = (pattern.address - _SOMEWHERE) // self.element.nbytes
        return Place(tuple(pattern.shape), tuple(pattern.strides), offset)


@dataclass(frozen=True, slots=True)
class Place:
    """Elements of a root, as if that were contiguous."""

    shape: Shape
    strides: Shape
    offset: int

    def is_whole(self, root: Root) -> bool:
        """Whether these are all of its elements, in their order."""
        whole = root.whole
        if self is whole:
            return True
        return self.shape == whole.shape and self.offset == 0 and is_contiguous(self.shape, self.strides)


class Gradients:
    """Gradients of roots, added up in the order in which they are found.

    Args:
        alike: Whether the same has to be done however views lie: where a graph is traced at several sizes.
    """

    def __init__(self, alike: bool) -> None:
        self._alike = alike
        self._known: dict[Root, Any] = {}
        self._parts: dict[Root, list[tuple[Place, Any]]] = {}  # of views that are not added to these yet

    def reached(self, root: Root) -> bool:
        """Whether there is one."""
        return root in self._known or root in self._parts

    def add(self, root: Root, place: Place, gradient: Any) -> None:
        """Adds to the gradient of a view."""
        from baracuda import functional as F

        if not place.is_whole(root):
            self._parts.setdefault(root, []).append((place, gradient))
            return
        known = self._whole(root)
        made = _fitted(gradient, root.shape)
        self._known[root] = made if known is None else F.add(known, made)

    def of(self, root: Root, place: Place | None = None) -> Any:
        """That of a root or a view of it; None where nothing reached it."""
        whole = self._whole(root)
        if whole is None or place is None or place.is_whole(root):
            return whole
        self._known[root] = _in_c_order(whole)
        return strided(self._known[root], place)

    def _whole(self, root: Root) -> Any:
        from baracuda import functional as F

        known = self._known.get(root)
        parts = self._parts.pop(root, None)
        if not parts:
            return known
        apart = known is None and not self._alike and _apart(root, [place for place, _ in parts])
        covered = apart and sum(prod(place.shape) for place, _ in parts) == prod(root.shape)
        whole = _new(root, zero=not covered)
        whole = (
            whole if known is None else F.add(whole, _in_c_order(known))
        )  # memory that nothing else is, and can be written to
        for place, gradient in parts:
            _put(whole, place, gradient, add=not apart)
        self._known[root] = whole
        return whole


def strided(whole: Any, place: Place) -> Any:
    """The elements of a contiguous tensor that a view is."""
    if is_torch(whole):
        import torch

        return torch.as_strided(whole, place.shape, place.strides, whole.storage_offset() + place.offset)
    seen = _core.borrow(whole)
    return _core.view_of(seen, place.offset, place.shape, place.strides, seen._element)


def _new(root: Root, *, zero: bool) -> Any:
    """Memory for a gradient; torch's has the stream of torch's tensors."""
    from baracuda import functional as F

    if is_torch(root.value):
        import torch

        make = torch.zeros_like if zero else torch.empty_like
        return make(root.value, memory_format=torch.contiguous_format)
    if zero:
        return F.zeros(root.shape, dtype=root.element, device=root.device)
    return _core.empty(root.shape, root.element, device=root.device)


def _in_c_order(whole: Any) -> Any:
    """The same, or a copy whose elements lie as those of a fresh tensor do."""
    from baracuda import functional as F

    sizes, _, strides, *_ = _core.describe(whole)
    return whole if is_contiguous(sizes, strides) else F.copy(whole)


def _fitted(gradient: Any, shape: Shape) -> Any:
    """A gradient without gaps and of its tensor's shape, which may have been broadcast."""
    from baracuda.ops.reduce.reduce import sum_to

    sizes, _, strides, *_ = _core.describe(gradient)
    made = gradient if is_dense(sizes, strides) else _in_c_order(gradient)
    return made if sizes == shape else sum_to(made, shape)


def _put(whole: Any, place: Place, gradient: Any, *, add: bool) -> None:
    """Writes or adds a view's gradient to its place; elements that it shows more than once get the sum."""
    from baracuda import functional as F
    from baracuda.ops.reduce.reduce import sum_to

    once = tuple(1 if s == 0 else n for n, s in zip(place.shape, place.strides, strict=True))
    to = strided(whole, Place(once, place.strides, place.offset))
    gradient = gradient if tuple(gradient.shape) == once else sum_to(gradient, once)
    if add:
        F.add(to, gradient, out=to)
    else:
        F.copy(gradient, out=to)


def _apart(root: Root, places: list[Place]) -> bool:
    """Whether no element is in two of them, or twice in one."""
    pairs = combinations_with_replacement([root.pattern(place) for place in places if 0 not in place.shape], 2)
    return not any(_core.overlap(a, b) for a, b in pairs)
