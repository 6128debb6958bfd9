"""What several rows need."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import torch

import baracuda as bc
from baracuda import functional
from baracuda.torch.layout import Layout, element_of, inverse
from baracuda.torch.table import NotMapped

F: Any = functional  # overloads of torch take what its schemas say, not what type checkers know of functions


def is_tensor(value: Any) -> bool:
    """Whether a row's argument is a tensor."""
    return isinstance(value, bc.Tensor)


def wrapped(dim: int, rank: int) -> int:
    """A dimension counted from the front; of rank 0 the dimensions are 0 and -1, as torch has it."""
    return dim + max(rank, 1) if dim < 0 else dim


def cast(x: Any, element: str) -> Any:
    """X in an element; itself where it is of that."""
    return x if str(x.element) == element else F.cast(x, element)


def reshaped(x: Any, shape: Sequence[int]) -> Any:
    """A view of another shape; of a contiguous copy where there is none."""
    sizes = list(shape)
    if -1 in sizes:
        known = prod(n for n in sizes if n != -1)
        sizes[sizes.index(-1)] = x.numel // known if known else 0
    try:
        return x.reshape(*sizes) if sizes else x.reshape(())
    except bc.BaracudaError:
        copied = F.copy(x)
        return copied.reshape(*sizes) if sizes else copied.reshape(())


def along(x: Any, dim: int, key: Any) -> Any:
    """A view by a key of one dimension."""
    return x[(*[slice(None)] * dim, key)]


def filled(layout: Layout, value: Any) -> Any:
    """A new tensor of one value."""
    dtype = layout.dtype
    if dtype == torch.bool:
        value = bool(value)
    elif not (dtype.is_floating_point or dtype.is_complex):
        value = int(value)
    return F.full(layout.shape, value, dtype=element_of(dtype), device="cpu")


def empty_as(layout: Layout) -> Any:
    """A new tensor without memory that lies as torch promised, for plans that write it."""
    if not layout.dense:
        raise NotMapped("a result with gaps")
    order = layout.order
    made = bc.empty(tuple(layout.shape[i] for i in order), layout.element)
    return made.permute(*inverse(order)) if order else made


_ROOM = 1 << 38  # bytes, of a tensor without memory


def run_plan(descriptor: Any, **arguments: Any) -> None:
    """Chooses a plan and has it run. Its workspace is the program's affair: the call only asks whether one is large enough."""
    plan = bc.plan(descriptor)
    workspace = bc.empty((_ROOM,), "u8") if plan.workspace_size else None
    plan.run(**{name: x for name, x in arguments.items() if x is not None}, workspace=workspace)


def ints(value: Any) -> tuple[int, ...]:
    """A list of sizes, or one of them, as a tuple."""
    return (value,) if isinstance(value, int) else tuple(value)
