"""How results of functions are made: of the kind that the arguments are of, and in their order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from baracuda import _core
from baracuda.memory.results import foreign_converter, maker, strided_maker

if TYPE_CHECKING:
    from baracuda.describe.elements import Element
    from baracuda.describe.spec import Descriptor

# What makes a result, as `maker` finds it; the parameter `out` that takes its place, or -1; what hands it to another
# framework, or None; what `strided_maker` finds, and strides or what decides them, or None for C order.
Allocation: TypeAlias = tuple[Any, tuple[Any, ...], tuple[str, ...] | None, int, Any, Any]


def allocation(
    like: Any,
    shape: tuple[Any, ...],
    element: Element,
    device: str,
    out: int = -1,
    order: tuple[Any, ...] | None = None,
) -> Allocation:
    """A result of the kind that `like` is of.

    Args:
        like: A tensor.
        shape: Sizes of the result.
        element: Of its numbers.
        device: Where it lies.
        out: The parameter that takes its place.
        order: Its strides as `(strides,)`; or `(rule, whether NumPy's, sources that decide)`; C order by default.
    """
    convert = foreign_converter(like)
    ordered = None if order is None else (strided_maker(like, element, device), *order)
    return (*maker(like, shape, element, device), out, convert, ordered)


def orders(like: Any) -> bool:
    """Whether results of this kind may lie in other orders than C's: those for another framework do not."""
    return like is not None and foreign_converter(like) is None


def of_numpy(like: Any) -> bool:
    """Whether NumPy's rules hold for the order of results."""
    return isinstance(like, (np.ndarray, np.generic))


def strides_of(desc: Descriptor, shape: tuple[int, ...], given: dict[str, Any], like: Any) -> Any:
    """Strides of a new result of a plan that is given these tensors; None for C order."""
    order = desc.order()
    if order is None or not orders(like):
        return None
    seen = [_core.describe(x) for x in desc.ordered_by(given)]
    return order.strides(shape, [(sizes, strides) for sizes, _, strides, *_ in seen], of_numpy(like))
