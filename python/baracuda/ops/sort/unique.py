"""Each value once. Kernels in csrc/ops/sort, reference in unique_ref.py.

How many there are only the data says. A plan therefore has a capacity and a count: it writes what fits, in order, zeros
behind it, and how many there are. The functions hand out what was found.
"""

from __future__ import annotations

from math import prod
from typing import Any

import baracuda.functional as F
from baracuda import _core
from baracuda.call.compose import Composer, Value, composed
from baracuda.call.counted import Made, Parts
from baracuda.call.op import Arg, Call, NotDifferentiable, Op, Recipe, function
from baracuda.describe.dims import Dim, Size, check_axis
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.spec import Kinded, Signature, descriptor, output, tensor
from baracuda.ops.layout.layout import ArangeDescriptor, CopyDescriptor


@descriptor(family="sort", kinds=("unique", "unique_consecutive"))
class UniqueDescriptor(Kinded):
    """values = the values of x, each once: in the order of `sort`, or of each run of equal neighbours one.

    indices = where in x each was first, inverse = which of them each element of x is, counts = how many elements each
    stands for, count = how many there are. Zeros of both signs are equal, the first of them stays; a NaN is equal to
    nothing. values, indices and counts are 0 from `count` on; where there are more than `capacity`, the first ones are
    written.

    Args:
        kind: "unique" or "unique_consecutive".
        length: Size of x and inverse.
        capacity: Size of values, indices and counts.
        has_indices: Whether indices are wanted.
        has_inverse: Whether the inverse is.
        has_counts: Whether counts are.
        element: Any real element or bool. All else is i64.
    """

    length: Size
    capacity: Size
    has_indices: bool = False
    has_inverse: bool = False
    has_counts: bool = False
    element: Element = Element.F32

    def signature(self) -> Signature:
        made = (self.capacity,)
        return Signature(
            tensor("x", (self.length,), self.element),
            output("values", made, self.element),
            output("indices", made, Element.I64, present=self.has_indices),
            output("inverse", (self.length,), Element.I64, present=self.has_inverse),
            output("counts", made, Element.I64, present=self.has_counts),
            output("count", (), Element.I64),
        )


_WHOLE = NotDifferentiable("which values there are changes from place to place")
OPS = (
    Op("unique", UniqueDescriptor, _WHOLE, "values, indices, inverse, counts = each value of x once, in order"),
    Op("unique_consecutive", UniqueDescriptor, _WHOLE, "values, indices, inverse, counts = one of each run of x"),
)


def _each_once(call: Call, kind: str, input: Arg, index: bool, inverse: bool, counts: bool) -> Recipe:
    """What a plan finds in all elements: in memory for as many as there are, of which what was found is copied."""
    length = prod(input.shape)
    size = Dim("count", max=length)
    desc, parts = UniqueDescriptor(kind, length, length, index, inverse, counts, input.element), Parts(call, size)
    names = [p.name for p in desc.signature().outputs]

    def steps(c: Composer, x: Value) -> list[Value]:
        made = dict(zip(names, c(desc, x=c.reshape(x, (length,))), strict=True))
        if inverse:
            made["inverse"] = c.reshape(made["inverse"], input.shape)
        return list(made.values())

    of_function = "inverse" if inverse else ""
    if input.rank == 1:
        found = parts.run(desc, results=of_function, x=input)
    else:
        results = [names.index("inverse")] if inverse else []
        found = dict(zip(names, parts.steps(steps, input, results=results), strict=True))
    parts.read(found.pop("count"))

    def cut(x: Made) -> Made:
        return parts.run(CopyDescriptor((size,), x.element), results="y", x=x.counted())["y"]

    made = {name: x if name == "inverse" else cut(x) for name, x in found.items()}
    return parts.recipe(*made.values(), listed=len(made) > 1)


def _pairs(c: Composer, ranks: Value) -> Value:
    """One number for every two neighbours, in the order that both have; an odd last one stays as it is."""
    m, n = ranks.shape
    even, odd = ranks[0 : m // 2 * 2 : 2], ranks[1 : m // 2 * 2 : 2]
    made: Value = c.of(F.add, c.of(F.mul, even, n), odd)
    return c.of(F.cat, [made, ranks[m - 1 :]], 0) if m % 2 else made


@composed(tensors="input")
def _slice_keys(c: Composer, input: Value, dim: int, consecutive: bool) -> Value:
    """A number for each slice along `dim`: the same for equal ones, and in their order, where only neighbours count in theirs.

    For the order their elements are ranked, then pairs of ranks, until one is left. Slices with a NaN are equal to nothing.
    """
    n, others = input.shape[dim], [d for d in range(input.rank) if d != dim]
    rows = c.reshape(input.permute((*others, dim)), (prod(input.shape) // n, n))
    if consecutive:
        differ = c.of(F.any, c.of(F.ne, rows[:, 1:], rows[:, : n - 1]), 0)
        return c.of(F.cat, [c.zeros((1,), Element.I64), c.of(F.cumsum, differ, 0)], 0)  # type: ignore[no-any-return]
    ranks = rows
    while ranks is rows or ranks.shape[0] > 1:
        keys = rows if ranks is rows else _pairs(c, ranks)
        ranks = c.of(F.searchsorted, c.of(F.sort, keys, -1)[0], keys)
    found = c.reshape(ranks, (n,))
    if input.element.is_float:
        place = c(ArangeDescriptor((n,), Element.I64), start=0, step=1)
        apart = c.of(F.where, c.of(F.any, c.of(F.isnan, rows), 0), place, 0)
        found = c.of(F.add, c.of(F.mul, found, n), apart)
    return found


def _along(kind: str, input: Any, shape: tuple[int, ...], dim: int, inverse: bool, counts: bool) -> dict[str, Any]:
    """The slices along a dimension, each once."""
    dim = check_axis(dim, max(len(shape), 1), "dim")
    if not shape:
        input, shape = input.reshape((1,)), (1,)
    if not prod(n for d, n in enumerate(shape) if d != dim):
        raise InvalidProblemError(f"{kind}: input: got shape {shape}, want something in the slices along dim {dim}.")
    keys = _slice_keys(input, dim, kind != "unique") if shape[dim] else F.zeros_like(input.reshape(-1), dtype="i64")
    listed = _FUNCTIONS[kind](keys, return_inverse=inverse, return_counts=counts, return_index=True)
    found = dict(zip(_names(True, inverse, counts), listed, strict=True))
    found["values"] = F.index_select(input, dim, found["indices"])
    return found


def _names(index: bool, inverse: bool, counts: bool) -> list[str]:
    """The results, in their order."""
    wanted = {"values": True, "indices": index, "inverse": inverse, "counts": counts}
    return [name for name, is_wanted in wanted.items() if is_wanted]


def _slices(kind: str, input: Any, dim: int | None, index: bool, inverse: bool, counts: bool) -> Any:
    """The second form: the slices along a dimension."""
    if dim is None:
        return NotImplemented
    found = _along(kind, input, tuple(_core.describe(input)[0]), dim, inverse, counts)
    results = tuple(found[name] for name in _names(index, inverse, counts))
    return results if len(results) > 1 else results[0]


@function(tensors="input")
def unique(
    call: Call,
    input: Arg,
    sorted: bool = True,  # torch's name
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
    *,
    return_index: bool = False,
) -> Recipe:
    """Each value of `input` once, or each slice along `dim`, in order, as torch.unique: the results that are asked for.

    A NaN is equal to nothing. On a device this waits for the count. Plans of a fixed capacity do not: see UniqueDescriptor.

    Args:
        input: A tensor.
        sorted: Changes nothing: they are always in order, slices by their first elements, then by their next ones.
        return_inverse: Whether to give which of them each element, or slice, is.
        return_counts: Whether to give how often each is there.
        dim: The dimension whose slices are compared; None for elements.
        return_index: Whether to give where each was first, behind the values: as numpy.unique does.

    Raises:
        InvalidProblemError: If there is nothing in the slices.
    """
    del sorted, dim  # see _slices
    return _each_once(call, "unique", input, return_index, return_inverse, return_counts)


@function(tensors="input")
def unique_consecutive(
    call: Call,
    input: Arg,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
    *,
    return_index: bool = False,
) -> Recipe:
    """`input` without what is equal to its neighbour before it, as torch.unique_consecutive: the results that are asked for.

    A NaN is equal to nothing. On a device this waits for the count. Plans of a fixed capacity do not: see UniqueDescriptor.

    Args:
        input: A tensor.
        return_inverse: Whether to give the place in the result of each element, or slice.
        return_counts: Whether to give how many neighbours are one.
        dim: The dimension whose slices are compared; None for elements in their logical order.
        return_index: Whether to give where each was first, behind the values.

    Raises:
        InvalidProblemError: If there is nothing in the slices.
    """
    del dim  # see _slices
    return _each_once(call, "unique_consecutive", input, return_index, return_inverse, return_counts)


def _unique_slices(input: Any, sorted: bool, inverse: bool, counts: bool, dim: int | None, index: bool) -> Any:
    del sorted
    return _slices("unique", input, dim, index, inverse, counts)


def _consecutive_slices(input: Any, inverse: bool, counts: bool, dim: int | None, index: bool) -> Any:
    return _slices("unique_consecutive", input, dim, index, inverse, counts)


unique.or_else(_unique_slices)
unique_consecutive.or_else(_consecutive_slices)
_FUNCTIONS = {"unique": unique, "unique_consecutive": unique_consecutive}
