"""torch's type promotion, and broadcasting of shapes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from baracuda.describe.dims import shape_text
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError

if TYPE_CHECKING:
    from baracuda.call.op import Arg
    from baracuda.describe.dims import Shape, Size

_SIGNED = (Element.I8, Element.I16, Element.I32, Element.I64)


def promote(a: Element, b: Element) -> Element:
    """The element that holds both, as torch.promote_types.

    Raises:
        InvalidProblemError: For unsigned elements wider than 8 bits together with signed ones, as in torch.
    """
    if a is b:
        return a
    if a.is_float or b.is_float:
        if not (a.is_float and b.is_float):
            return a if a.is_float else b
        return Element.F32 if a.is_half and b.is_half else max(a, b, key=lambda e: e.bits)
    if Element.BOOL in (a, b):
        return b if a is Element.BOOL else a
    signed, unsigned = (a, b) if a in _SIGNED else (b, a)
    if (a in _SIGNED) == (b in _SIGNED):
        return max(a, b, key=lambda e: e.bits)
    if unsigned is not Element.U8:
        raise InvalidProblemError(
            f"promotion: got {a} and {b}, which no element of torch holds together. Cast one of them first."
        )
    return Element.I16 if signed is Element.I8 else signed


def _combine(higher: Element | None, lower: Element | None) -> Element | None:
    """Tensors with dimensions win over 0-d ones, and those over numbers, unless the kind (bool, integer, float) is lower."""
    if higher is None or lower is None:
        return higher if lower is None else lower
    if higher.is_float:
        return higher
    return promote(higher, lower) if higher is Element.BOOL or lower.is_float else higher


def result_element(args: Iterable[Arg]) -> Element:
    """What torch computes a mixture of tensors, 0-d tensors and numbers in."""
    groups: list[Element | None] = [None, None, None]
    for arg in args:
        group = 2 if not arg.is_tensor else 0 if arg.rank else 1
        before = groups[group]
        groups[group] = arg.element if before is None else promote(before, arg.element)
    result = _combine(_combine(groups[0], groups[1]), groups[2])
    assert result is not None, "at least one argument"
    return result


def broadcast(a: Shape, b: Shape, what: str) -> Shape:
    """The shape that both broadcast to.

    Raises:
        InvalidProblemError: If they do not broadcast; `what` says where.
    """
    rank = max(len(a), len(b))
    long_a: tuple[Size, ...] = (1,) * (rank - len(a)) + tuple(a)
    long_b: tuple[Size, ...] = (1,) * (rank - len(b)) + tuple(b)
    out: list[Size] = []
    for x, y in zip(long_a, long_b, strict=True):
        if x != y and 1 not in (x, y):
            raise InvalidProblemError(
                f"{what}: got shapes {shape_text(a)} and {shape_text(b)}, want shapes that broadcast: equal sizes, or 1, "
                "from the last dimension on. Insert dimensions of size 1 where they should meet."
            )
        out.append(y if x == 1 else x)
    return tuple(out)
