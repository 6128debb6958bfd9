"""Scans that begin at the other end, or leave an element itself out: the same plans on views of their tensors."""

from __future__ import annotations

from collections.abc import Callable

from baracuda.call.compose import Composer, Value, of_elements
from baracuda.call.op import Arg, Call, Recipe
from baracuda.describe.dims import Shape, check_axis
from baracuda.describe.elements import Element
from baracuda.describe.spec import Descriptor
from baracuda.ops.layout.layout import FillDescriptor

OPS = ()

MakeDescriptor = Callable[[Shape, int], Descriptor]
_BACK, _FIRST, _ALL_BUT_LAST, _LATER = slice(None, None, -1), slice(0, 1), slice(0, -1), slice(1, None)


def scanned(
    call: Call,
    make: MakeDescriptor,
    dim: int,
    to: Element | None,
    reverse: bool,
    exclusive: bool,
    nothing: float,
    **given: Arg | None,
) -> Recipe:
    """A scan, or the gradient of one, in the order and of the elements that are asked for.

    Args:
        call: The call of the function.
        make: Gives the plan's descriptor for a shape and an axis.
        dim: The dimension.
        to: The element of the result; as the plan gives it by default.
        reverse: Whether to begin at the end.
        exclusive: Whether each result leaves out the element at its own place.
        nothing: The result of no element; 0 of a gradient, whose last element counts for nothing.
        **given: The plan's arguments; the result is dx where dy is among them.
    """
    tensors = {name: x for name, x in given.items() if x is not None}
    shape = next(iter(tensors.values())).shape
    if not reverse and not exclusive:
        return of_elements(call, make(shape, dim), to, **tensors)
    axis = check_axis(dim, max(len(shape), 1), "dim")

    def steps(c: Composer, *values: Value) -> Value:
        full = shape or (1,)
        signature = make(full, axis).signature()
        takes = {p.name: p.element for p in signature.present}
        seen = {n: c.reshape(c.cast(v, takes[n]), full) for n, v in zip(tensors, values, strict=True)}
        result = signature.outputs[0]
        made = c.new(full, result.element)
        _run(c, make, axis, seen | {result.name: made}, result.name, reverse, exclusive, nothing)
        made = c.reshape(made, shape)
        return made if to is None else c.cast(made, to)

    return call.steps(steps, *tensors.values())


def _run(
    c: Composer,
    make: MakeDescriptor,
    axis: int,
    tensors: dict[str, Value],
    result: str,
    reverse: bool,
    exclusive: bool,
    nothing: float,
) -> None:
    """Scans views; with `exclusive` what x has but at the end belongs to what y has but at the beginning."""

    def along(v: Value, part: slice) -> Value:
        return v[(slice(None),) * axis + (part,)]

    if reverse:
        tensors = {name: along(v, _BACK) for name, v in tensors.items()}
    if exclusive and tensors[result].shape[axis]:
        made, back = tensors[result], result == "dx"
        rest = along(made, slice(-1, None) if back else _FIRST)
        c(FillDescriptor(rest.shape, rest.element), value=nothing, y=rest)
        tensors = {n: along(v, _ALL_BUT_LAST if n in ("x", "dx") else _LATER) for n, v in tensors.items()}
    c(make(tensors[result].shape, axis), **tensors)
