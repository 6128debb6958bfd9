"""Each value once. Kernels in csrc/ops/sort, reference in unique_ref.py.

How many there are only the data says. A plan therefore has a capacity and a count: it writes what fits, in order, zeros
behind it, and how many there are. The functions hand out what was found.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

import baracuda.functional as F
from baracuda import _core
from baracuda.call.compose import Composer, Value, composed
from baracuda.call.op import NotDifferentiable, Op, composite
from baracuda.choose.plan import Plan, plan
from baracuda.describe.dims import Size, check_axis, largest
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.spec import Kinded, Signature, descriptor, output, tensor
from baracuda.memory.device import Place, name_of
from baracuda.memory.results import allocated, foreign_converter, maker
from baracuda.ops.layout.layout import ArangeDescriptor


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


@lru_cache(maxsize=256)
def _plan(desc: UniqueDescriptor, place: Place) -> Plan:
    return plan(desc, name_of(place))


def _run(kind: str, row: Any, indices: bool, inverse: bool, counts: bool) -> dict[str, Any]:
    """What a plan finds in a vector, as arrays of its kind, each as long as there are values."""
    from baracuda.memory.tensor import empty

    (length,), code, _, *where = _core.describe(row)
    place = (where[0], where[1])
    made = _plan(UniqueDescriptor(kind, length, length, indices, inverse, counts, Element(code)), place)
    convert = foreign_converter(row)
    found: dict[str, Any] = {}
    for p in made.signature.outputs:
        shape = tuple(map(largest, p.shape))
        if convert is None and p.name != "count":
            found[p.name] = allocated(*maker(row, shape, p.element, made.device))
        else:
            found[p.name] = empty(shape, p.element, device=made.device)
    space = empty(made.workspace_size, "u8", device=made.device) if made.workspace_size else None
    made.run(x=row, workspace=space, **found)
    total = int(found.pop("count").item())
    for name, x in found.items():
        cut = x if name == "inverse" or total == length else F.copy(x[:total])
        found[name] = cut if convert is None else convert(cut)
    return found


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
    found = _run(kind, keys, True, inverse, counts)
    found["values"] = F.index_select(input, dim, found["indices"])
    return found


def _found(kind: str, input: Any, dim: int | None, index: bool, inverse: bool, counts: bool) -> Any:
    shape = tuple(_core.describe(input)[0])
    if dim is not None:
        found = _along(kind, input, shape, dim, inverse, counts)
    else:
        found = _run(kind, input if len(shape) == 1 else input.reshape((prod(shape),)), index, inverse, counts)
        if inverse and len(shape) != 1:
            found["inverse"] = found["inverse"].reshape(shape)
    wanted = {"values": True, "indices": index, "inverse": inverse, "counts": counts}
    results = tuple(found[name] for name, is_wanted in wanted.items() if is_wanted)
    return results if len(results) > 1 else results[0]


@composite
def unique(
    input: Any,
    sorted: bool = True,  # torch's name
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
    *,
    return_index: bool = False,
) -> Any:
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
    del sorted
    return _found("unique", input, dim, return_index, return_inverse, return_counts)


@composite
def unique_consecutive(
    input: Any,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
    *,
    return_index: bool = False,
) -> Any:
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
    return _found("unique_consecutive", input, dim, return_index, return_inverse, return_counts)
