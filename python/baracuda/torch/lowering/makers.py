"""Copies, casts, joins, and tensors that are made of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from baracuda.torch.lowering.common import F, cast, filled, ints, wrapped
from baracuda.torch.table import NotMapped, Want, lowers


@lowers("clone.default lift_fresh_copy.default lift.default")
def clone(want: Want, x: Any, *, memory_format: Any = None) -> Any:
    """Memory of its own; how it lies is decided where it leaves the program."""
    return F.copy(x)


@lowers("_to_copy.default")
def to_copy(want: Want, x: Any, **kwargs: Any) -> Any:
    """A cast, or a copy."""
    device = kwargs.get("device")
    if device is not None and torch.device(device).type != "cpu":
        raise NotMapped("another device")
    return F.cast(x, want.element) if str(x.element) != want.element else F.copy(x)


@lowers("copy.default")
def copy(want: Want, x: Any, src: Any, non_blocking: bool = False) -> Any:
    """The second in the first one's dtype and shape."""
    return F.copy(cast(src, want.element).broadcast_to(*want.shape)) if want.shape else F.copy(cast(src, want.element))


@lowers("cat.default")
def cat(want: Want, tensors: Sequence[Any], dim: int = 0) -> Any:
    """One behind the other; empty ones of rank 1 are passed over, as torch does."""
    parts = [cast(x, want.element) for x in tensors if tuple(x.shape) != (0,) or len(want.shape) == 1]
    return F.copy(parts[0]) if len(parts) == 1 else F.cat(parts, dim)


@lowers("stack.default")
def stack(want: Want, tensors: Sequence[Any], dim: int = 0) -> Any:
    """Along a new dimension."""
    return F.stack([cast(x, want.element) for x in tensors], dim)


@lowers("constant_pad_nd.default")
def constant_pad(want: Want, x: Any, pad: Sequence[int], value: Any = 0) -> Any:
    """With a number around it; less of it where a width is negative."""
    if not want.result.dtype.is_floating_point:
        value = bool(value) if want.element == "bool" else int(value)
    return F.constant_pad_nd(x, tuple(pad), value)


@lowers("full.default full_like.default new_full.default scalar_tensor.default fill.Scalar")
def full(want: Want, *args: Any, **kwargs: Any) -> Any:
    """One number everywhere."""
    return filled(want.result, kwargs.get("fill_value", args[-1] if args else kwargs.get("s")))


@lowers("fill.Tensor")
def fill_by_tensor(want: Want, x: Any, value: Any) -> Any:
    """A tensor's only element everywhere."""
    value = cast(value, want.element)
    return F.copy(value.expand(*want.shape)) if want.shape else F.copy(value)


@lowers(
    "zeros.default zeros_like.default new_zeros.default empty.memory_format empty_like.default new_empty.default "
    "empty_strided.default new_empty_strided.default empty_permuted.default"
)
def zeros(want: Want, *args: Any, **kwargs: Any) -> Any:
    """Zeros; in the place of anything, too."""
    return filled(want.result, 0)


@lowers("ones.default ones_like.default new_ones.default")
def ones(want: Want, *args: Any, **kwargs: Any) -> Any:
    """Ones."""
    return filled(want.result, 1)


@lowers("arange.default arange.start arange.start_step")
def arange(want: Want, *args: Any, **kwargs: Any) -> Any:
    """Equally far numbers."""
    numbers = [kwargs[n] for n in ("start", "end", "step") if n in kwargs]
    return F.arange(*args, *numbers, dtype=want.element, device="cpu")


@lowers("linspace.default")
def linspace(want: Want, start: Any, end: Any, steps: int, **kwargs: Any) -> Any:
    """So many numbers from one to another."""
    return F.linspace(start, end, steps, dtype=want.element, device="cpu")


@lowers("eye.default eye.m")
def eye(want: Want, *args: Any, **kwargs: Any) -> Any:
    """Ones on the diagonal."""
    return F.eye(*want.shape, dtype=want.element, device="cpu")


@lowers("tril.default triu.default")
def triangle(want: Want, x: Any, diagonal: int = 0) -> Any:
    """What is on one side of a diagonal."""
    return getattr(F, want.name)(x, diagonal)


@lowers("flip.default")
def flip(want: Want, x: Any, dims: Sequence[int]) -> Any:
    """Backwards along dimensions."""
    return F.flip(x, tuple(dims)) if dims and x.shape else F.copy(x)


@lowers("roll.default")
def roll(want: Want, x: Any, shifts: Any, dims: Any = ()) -> Any:
    """What leaves at one end comes in at the other."""
    return F.roll(x, ints(shifts), ints(dims)) if ints(dims) else F.roll(x, ints(shifts))


@lowers("repeat.default")
def repeat(want: Want, x: Any, repeats: Sequence[int]) -> Any:
    """Several times along each dimension."""
    return F.repeat(x, tuple(repeats)) if repeats else F.copy(x)


@lowers("unfold.default")
def unfold(want: Want, x: Any, dim: int, size: int, step: int) -> Any:
    """A copy of the windows along a dimension: such a view is none here."""
    return F.unfold_copy(x, wrapped(dim, len(x.shape)), size, step)
