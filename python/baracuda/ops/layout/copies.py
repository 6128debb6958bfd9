"""Views of tensors as copies: what torch names `..._copy`. One copy each, from the view's strides."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

from baracuda.call.compose import Composer, Shape, Value, composed
from baracuda.call.inline import placed, pulled_through
from baracuda.call.steps import made_of
from baracuda.describe.dims import check_axis
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.options import integers
from baracuda.ops.layout.layout import copy
from baracuda.ops.layout.pad import pad

OPS = ()


def _sizes(shape: Shape, size: Any) -> Shape:
    """A shape of as many elements; -1 stands for what is left."""
    wanted = integers("size", size if isinstance(size, (list, tuple)) else (size,))
    known, count = prod(n for n in wanted if n != -1), prod(shape)
    if wanted.count(-1) == 1 and known > 0 and count % known == 0:
        wanted = tuple(count // known if n == -1 else n for n in wanted)
    if min(wanted, default=0) < 0 or prod(wanted) != count:
        raise InvalidProblemError(f"size: got {wanted} for shape {shape}, want a shape of {count} elements.")
    return wanted


@pulled_through
@made_of("copy")
@composed(tensors="input")
def view_copy(c: Composer, input: Value, size: Any) -> Value:
    """A copy of `input` in another shape, as torch.view_copy: one size may be -1."""
    return c.reshape(input, _sizes(input.shape, size))


@pulled_through
@made_of("copy")
@composed(tensors="input")
def expand_copy(c: Composer, input: Value, size: Any) -> Value:
    """A copy of `input` broadcast to a shape, as torch.expand_copy; -1 keeps a size."""
    wanted = integers("size", size)
    lead = len(wanted) - input.rank
    kept = tuple(input.shape[i - lead] if n == -1 and i >= lead >= 0 else n for i, n in enumerate(wanted))
    return input.expand(kept)


@pulled_through
@made_of("copy")
@composed(tensors="input")
def permute_copy(c: Composer, input: Value, dims: Any) -> Value:
    """A copy of `input` with its dimensions in another order, as torch.permute_copy."""
    axes = tuple(check_axis(d, input.rank, "dims") for d in integers("dims", dims)) if input.rank else ()
    if sorted(axes) != list(range(input.rank)):
        raise InvalidProblemError(f"dims: got {dims} for rank {input.rank}, want every dimension once.")
    return input.permute(axes)


def _swapped(input: Value, dim0: int, dim1: int) -> Value:
    a, b = (check_axis(d, input.rank, "dims") for d in (dim0, dim1))
    return input.permute([{a: b, b: a}.get(d, d) for d in range(input.rank)]) if input.rank else input


@pulled_through
@made_of("copy")
@composed(tensors="input")
def transpose_copy(c: Composer, input: Value, dim0: int, dim1: int) -> Value:
    """A copy of `input` with two dimensions swapped, as torch.transpose_copy."""
    return _swapped(input, dim0, dim1)


@pulled_through
@made_of("copy")
@composed(tensors="input")
def t_copy(c: Composer, input: Value) -> Value:
    """A transposed copy of a matrix, or a copy of a vector, as torch.t_copy."""
    if input.rank > 2:
        raise InvalidProblemError(f"input: got rank {input.rank}, want at most 2. Use transpose_copy.")
    return _swapped(input, 0, 1) if input.rank == 2 else input


@pulled_through
@made_of("copy")
@composed(tensors="input")
def squeeze_copy(c: Composer, input: Value, dim: Any = None) -> Value:
    """A copy of `input` without the dimensions of size 1, or without those of `dim` that have it, as torch.squeeze_copy."""
    given = range(input.rank) if dim is None else dim if isinstance(dim, (list, tuple)) else (dim,)
    axes = {check_axis(d, input.rank, "dim") for d in given}
    return c.reshape(input, tuple(n for i, n in enumerate(input.shape) if n != 1 or i not in axes))


@pulled_through
@made_of("copy")
@composed(tensors="input")
def unsqueeze_copy(c: Composer, input: Value, dim: int) -> Value:
    """A copy of `input` with a dimension of size 1 inserted, as torch.unsqueeze_copy."""
    axis = check_axis(dim, input.rank + 1, "dim")
    return c.reshape(input, (*input.shape[:axis], 1, *input.shape[axis:]))


def _axis(input: Value, dim: int) -> int:
    if not input.rank:
        raise InvalidProblemError("input: got rank 0, want at least one dimension.")
    return check_axis(dim, input.rank, "dim")


def _part(input: Value, axis: int, start: int, length: int) -> Value:
    return input[(slice(None),) * axis + (slice(start, start + length),)]


@pulled_through
@made_of("copy")
@composed(tensors="input")
def narrow_copy(c: Composer, input: Value, dim: int, start: int, length: int) -> Value:
    """A copy of `length` slices of a dimension from `start` on, as torch.narrow_copy; a negative start counts from the end."""
    axis = _axis(input, dim)
    size = input.shape[axis]
    first = start + size if start < 0 else start
    if not 0 <= first <= first + length <= size:
        raise InvalidProblemError(f"start: got {start} and length {length}, want a part of {size} slices.")
    return _part(input, axis, first, length)


def _split(input: Value, sizes: tuple[int, ...], axis: int) -> tuple[Value, ...]:
    if min(sizes, default=0) < 0 or sum(sizes) != input.shape[axis]:
        raise InvalidProblemError(f"split_sizes: got {sizes}, want sizes whose sum is {input.shape[axis]}.")
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    return tuple(_part(input, axis, at, n) for at, n in zip(starts, sizes, strict=True))


@pulled_through
@made_of("copy")
@composed(tensors="input")
def split_with_sizes_copy(c: Composer, input: Value, split_sizes: Any, dim: int = 0) -> tuple[Value, ...]:
    """Copies of the parts of a dimension, of these sizes, as torch.split_with_sizes_copy."""
    return _split(input, integers("split_sizes", split_sizes), _axis(input, dim))


@pulled_through
@made_of("copy")
@composed(tensors="input")
def split_copy(c: Composer, input: Value, split_size: int, dim: int = 0) -> tuple[Value, ...]:
    """Copies of the parts of a dimension, of one size but for the last, as torch.split_copy."""
    axis = _axis(input, dim)
    whole = input.shape[axis]
    if split_size < (whole > 0):
        raise InvalidProblemError(f"split_size: got {split_size}, want at least 1.")
    sizes = tuple(min(split_size, whole - at) for at in range(0, whole, split_size or 1)) or (0,)
    return _split(input, sizes, axis)


@pulled_through
@made_of("copy")
@composed(tensors="input")
def unbind_copy(c: Composer, input: Value, dim: int = 0) -> tuple[Value, ...]:
    """Copies of all slices of a dimension, without it, as torch.unbind_copy."""
    axis = _axis(input, dim)
    return tuple(input[(slice(None),) * axis + (i,)] for i in range(input.shape[axis]))


@made_of("copy")
@composed(tensors="input")
def unfold_copy(c: Composer, input: Value, dimension: int, size: int, step: int) -> Value:
    """Windows of a dimension, `step` apart, whose elements are the last dimension, as torch.unfold_copy."""
    axis = check_axis(dimension, input.rank, "dimension")
    shape, strides = input.shape or (1,), input.strides or (1,)
    if not 0 <= size <= shape[axis] or step < 1:
        want = f"0 <= size <= {shape[axis]} and step >= 1"
        raise InvalidProblemError(f"size: got {size} and step {step}, want {want}.")
    count = (shape[axis] - size) // step + 1
    seen = (*shape[:axis], count, *shape[axis + 1 :], size)
    steps = (*strides[:axis], strides[axis] * step, *strides[axis + 1 :], strides[axis])
    if input.rank == 0:
        seen, steps = (size,), (1,)
    return replace(input, shape=seen, strides=steps)


@unfold_copy.vjp
def _unfold_copy_vjp(input: Any, dimension: int, size: int, step: int) -> tuple[Any, Any]:
    from baracuda.ops.binary.binary import add  # type: ignore[attr-defined]

    shape = tuple(input.shape)

    def pull(dy: Any) -> Any:
        if not shape:
            return copy(dy.reshape(shape))
        axis = check_axis(dimension, len(shape), "dimension")
        steps = [prod(shape[i + 1 :]) for i in range(len(shape))]
        total = placed(dy[..., :0].reshape(-1), shape, 0, (1,))
        for k in range(size):  # the windows' elements of one number do not overlap
            strides = (*steps[:axis], steps[axis] * step, *steps[axis + 1 :])
            total = add(total, placed(dy[..., k], shape, k * steps[axis], strides))
        return total

    return unfold_copy(input, dimension, size, step), pull


@pulled_through
@made_of("pad")
@composed(tensors="input")
def constant_pad_nd(c: Composer, input: Value, pad_: Any, value: float = 0) -> Value:
    """`input` with numbers before and behind its last dimensions, as torch.constant_pad_nd."""
    made: Value = c.of(pad, input, pad_, "constant", value)
    return made


def _images(input: Value, factor: int, name: str) -> None:
    if input.rank < 3 or factor < 1:
        raise InvalidProblemError(f"{name}: got {factor} for rank {input.rank}, want at least 1, of rank 3 or more.")


@pulled_through
@made_of("copy")
@composed(tensors="input")
def pixel_shuffle(c: Composer, input: Value, upscale_factor: int) -> Value:
    """(..., C r^2, H, W) to (..., C, H r, W r), as torch.nn.functional.pixel_shuffle, with r the factor."""
    r = upscale_factor
    _images(input, r, "upscale_factor")
    *lead, depth, height, width = input.shape
    if depth % (r * r):
        raise InvalidProblemError(f"input: got {depth} channels, want a multiple of {r * r}.")
    n = len(lead)
    seen = c.reshape(input, (prod(lead), depth // (r * r), r, r, height, width)).permute((0, 1, 4, 2, 5, 3))
    return c.reshape(seen, (*lead[:n], depth // (r * r), height * r, width * r))


@pulled_through
@made_of("copy")
@composed(tensors="input")
def pixel_unshuffle(c: Composer, input: Value, downscale_factor: int) -> Value:
    """(..., C, H r, W r) to (..., C r^2, H, W), as torch.nn.functional.pixel_unshuffle, with r the factor."""
    r = downscale_factor
    _images(input, r, "downscale_factor")
    *lead, depth, height, width = input.shape
    if height % r or width % r:
        raise InvalidProblemError(f"input: got images of {height} by {width}, want multiples of {r}.")
    shape = (prod(lead), depth, height // r, r, width // r, r)
    seen = c.reshape(input, shape).permute((0, 1, 3, 5, 2, 4))
    return c.reshape(seen, (*lead, depth * r * r, height // r, width // r))


@pulled_through
@made_of("copy")
@composed(tensors="input")
def channel_shuffle(c: Composer, input: Value, groups: int) -> Value:
    """The channels of groups in turn: (N, g k, ...) seen as (N, g, k, ...), swapped, as torch's channel_shuffle."""
    _images(input, groups, "groups")
    n, depth, *rest = input.shape
    if depth % groups:
        raise InvalidProblemError(f"groups: got {groups} for {depth} channels, want a divisor.")
    seen = c.reshape(input, (n, groups, depth // groups, prod(rest))).permute((0, 2, 1, 3))
    return c.reshape(seen, input.shape)
