"""The most frequent values, made of `sort` and of where runs of equal ones begin."""

from __future__ import annotations

import baracuda.functional as F
from baracuda.call.compose import Composer, Value, composed
from baracuda.call.steps import made_of
from baracuda.describe.dims import check_axis
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.ops.layout.layout import ArangeDescriptor
from baracuda.ops.sort.selection import pulled_from_places

OPS = ()


@made_of("sort ne where pad cummax sub argmax gather arange")
@composed(tensors="input")
def mode(c: Composer, input: Value, dim: int = -1, keepdim: bool = False) -> tuple[Value, Value]:
    """(values, indices) of the most frequent along `dim`, as torch.mode: the smallest of those as frequent, at its last place.

    A NaN is equal to nothing.
    """
    axis = check_axis(dim, max(input.rank, 1), "dim")
    x = input if input.rank else c.reshape(input, (1,))
    n = x.shape[axis]
    if not n:
        raise InvalidProblemError(f"input: got no elements along dim {dim}, want one at least: none is most frequent.")
    others = tuple(d for d in range(x.rank) if d != axis)
    ordered, at = c.of(F.sort, x.permute((*others, axis)), -1)
    places = c(ArangeDescriptor((n,), Element.I64), start=0, step=1)
    begins = c.of(F.where, c.of(F.ne, ordered[..., 1:], ordered[..., : n - 1]), places[1:], 0)
    first = c.of(F.cummax, c.of(F.pad, begins, (1, 0)), -1)[0]
    best = c.of(F.argmax, c.of(F.sub, places, first), -1, True)
    kept = tuple(1 if d == axis else m for d, m in enumerate(input.shape) if keepdim or d != axis)
    values, indices = (c.of(F.gather, found, -1, best) for found in (ordered, at))
    return c.reshape(values, kept), c.reshape(indices, kept)


pulled_from_places(mode)
