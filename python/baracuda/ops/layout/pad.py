"""Padding and repeating. Kernels in csrc/ops/layout, reference in pad_ref.py.

Both are copies and fills of parts: exact, from any strides to any strides. Gradients add up what an element became.
"""

from __future__ import annotations

from enum import Enum
from functools import partial
from math import prod
from typing import Any

from baracuda import _core
from baracuda import functional as F
from baracuda.call.compose import Composer, Value, composed
from baracuda.call.counted import COUNTED, Made, Parts
from baracuda.call.op import Arg, Call, Op, Recipe, function
from baracuda.call.steps import made_of
from baracuda.describe.dims import Dim, Shape, check_axis, check_shape
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.options import integers
from baracuda.describe.order import channels_of
from baracuda.describe.spec import Descriptor, Signature, descriptor, frame, output, scalar, tensor
from baracuda.ops.indexing.counting import MOST_BINS, BincountDescriptor
from baracuda.ops.indexing.indexing import IndexSelectDescriptor, TakeDescriptor
from baracuda.ops.layout.layout import number_kind
from baracuda.ops.scan.scan import ScanDescriptor


class PadMode(Enum):
    """What an axis is padded with: a number, its mirror image without the edge, its edge, or its other end."""

    CONSTANT = "constant"
    REFLECT = "reflect"
    REPLICATE = "replicate"
    CIRCULAR = "circular"


_MODES = tuple(PadMode)


def _eight(values: tuple[int, ...]) -> tuple[int, ...]:
    return (*values, *(0,) * (8 - len(values)))


@frame
class _Pad(Descriptor):
    """Fields and checks that forward and backward share."""

    __slots__ = ()
    shape: Shape
    low: tuple[int, ...]
    high: tuple[int, ...]
    mode: PadMode = PadMode.CONSTANT
    element: Element = Element.F32

    def validate(self) -> None:
        for name in ("low", "high"):
            if len(getattr(self, name)) != len(self.shape):
                raise self.wrong(name, list(getattr(self, name)), f"{len(self.shape)} numbers, one per axis")
        for size, low, high in zip(self.shape, self.low, self.high, strict=True):
            if isinstance(size, Dim):
                if low < 0 or high < 0 or (self.mode is not PadMode.CONSTANT and (low or high)):
                    raise self.wrong("shape", self.shape, "plain sizes where axes are cut, or padded by other elements")
                continue
            kept = size + min(low, 0) + min(high, 0)
            if kept < 0:
                raise self.wrong("low", list(self.low), "not more cut off than there is")
            most = {PadMode.REFLECT: kept - 1, PadMode.CIRCULAR: kept}.get(self.mode, 2**40 if kept else 0)
            if self.mode is not PadMode.CONSTANT and max(low, high, 0) > max(most, 0):
                raise self.wrong(
                    "low" if low > most else "high",
                    [low, high],
                    f"at most {max(most, 0)} for an axis of {kept} elements",
                )

    def padded_shape(self) -> Shape:
        """Shape of y and dy."""
        sizes = zip(self.shape, self.low, self.high, strict=True)
        return tuple(size + low + high if low + high else size for size, low, high in sizes)

    def attributes(self) -> dict[str, int | float]:
        return {"mode": _MODES.index(self.mode), **{f"low{d}": low for d, low in enumerate(_eight(self.low))}}


@descriptor(family="layout", op="pad", enums={"mode": PadMode}, result_order=channels_of("x"))
class PadDescriptor(_Pad):
    """y = x with `low` elements more in front of each axis and `high` behind it; negative numbers cut elements off.

    reflect mirrors without repeating the edge (pads smaller than the axis), replicate repeats the edge, circular takes
    the other end (pads at most the axis). Axes are cut first, and what is left counts.

    Args:
        shape: Shape of x, rank 0-8.
        low: Elements added before each axis.
        high: Elements added behind each axis.
        mode: "constant", "reflect", "replicate" or "circular".
        element: bool, any integer, f16, bf16, f32, f64, c64 or c128. "constant" takes the number `value` at run.
    """

    def signature(self) -> Signature:
        default = 0 if number_kind(self.element) != "float" else 0.0
        given = self.mode is PadMode.CONSTANT
        return Signature(
            tensor("x", self.shape, self.element),
            output("y", self.padded_shape(), self.element),
            scalar("value", number_kind(self.element), default, fits=self.element, present=given),
        )


@descriptor(gradient_of=PadDescriptor, result_order=channels_of("dy"))
class PadBackwardDescriptor(_Pad):
    """dx = the sum of dy over all places that an element of x went to, rounded once; 0 where it was cut off.

    Args:
        shape: Shape of x and dx.
        low: As in PadDescriptor.
        high: As in PadDescriptor.
        mode: As in PadDescriptor.
        element: f16, bf16, f32 or f64.
    """

    def signature(self) -> Signature:
        dy = tensor("dy", self.padded_shape(), self.element)
        return Signature(dy, output("dx", self.shape, self.element))


@frame
class _Repeat(Descriptor):
    """Fields and checks that forward and backward share."""

    __slots__ = ()
    shape: Shape
    repeats: tuple[int, ...]
    each: bool = False
    element: Element = Element.F32

    def validate(self) -> None:
        if len(self.repeats) < len(self.shape) or len(self.repeats) > 8:
            raise self.wrong(
                "repeats", list(self.repeats), f"{len(self.shape)} to 8 numbers, the last one for the last axis"
            )
        if any(not 0 <= n < 2**31 for n in self.repeats):
            raise self.wrong("repeats", list(self.repeats), "0 <= n < 2**31")
        if 0 in self.repeats and any(isinstance(s, Dim) for s in self.shape):
            raise self.wrong("repeats", list(self.repeats), "numbers above 0 where sizes are Dims")

    def repeated_shape(self) -> Shape:
        """Shape of y and dy."""
        sizes = (*(1,) * (len(self.repeats) - len(self.shape)), *self.shape)
        return tuple(s * n for s, n in zip(sizes, self.repeats, strict=True))


@descriptor(family="layout", op="repeat")
class RepeatDescriptor(_Repeat):
    """y = x repeated along each axis: as a whole (a b a b), or with `each` element by element (a a b b).

    Args:
        shape: Shape of x, rank 0-8.
        repeats: How often, per axis of y; y has as many axes, those that x lacks in front.
        each: Whether each element is repeated by itself.
        element: Any element of 1, 2, 4, 8 or 16 bytes.
    """

    def signature(self) -> Signature:
        return Signature(tensor("x", self.shape, self.element), output("y", self.repeated_shape(), self.element))


@descriptor(gradient_of=RepeatDescriptor)
class RepeatBackwardDescriptor(_Repeat):
    """dx = the sum of dy over the repetitions of each element, rounded once.

    Args:
        shape: Shape of x and dx.
        repeats: As in RepeatDescriptor.
        each: As in RepeatDescriptor.
        element: f16, bf16, f32 or f64.
    """

    def signature(self) -> Signature:
        return Signature(tensor("dy", self.repeated_shape(), self.element), output("dx", self.shape, self.element))


OPS = (
    Op("pad", PadDescriptor, PadBackwardDescriptor, "y = x with more elements around it, or fewer"),
    Op("repeat", RepeatDescriptor, RepeatBackwardDescriptor, "y = x repeated along axes, whole or element by element"),
)


def _pads(shape: Shape, pad: Any, mode: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The list as torch takes it, which starts with the last dimension, as what comes before and behind each axis."""
    given = integers("pad", pad)
    rank = len(shape)
    if len(given) % 2 or len(given) > 2 * rank:
        raise InvalidProblemError(f"pad: got {len(given)} numbers, want two for each of at most {rank} dimensions.")
    if mode != "constant" and (len(given) // 2, rank) not in ((1, 2), (1, 3), (2, 3), (2, 4), (3, 4), (3, 5)):
        raise InvalidProblemError(
            f"pad: got {len(given)} numbers for rank {rank} and mode {mode!r}, want two for each of all dimensions but "
            "the first one or two. Use bc.PadDescriptor for others."
        )
    low, high = [0] * rank, [0] * rank
    for i in range(len(given) // 2):
        low[rank - 1 - i], high[rank - 1 - i] = given[2 * i : 2 * i + 2]
    if mode == "replicate":
        for i, n in enumerate(shape):
            if isinstance(n, int):
                low[i], high[i] = _with_an_end(n, low[i], high[i])
    return tuple(low), tuple(high)


def _with_an_end(size: int, low: int, high: int) -> tuple[int, int]:
    """The same, but where all elements are cut off at one end the last of them stays, to be repeated at the other."""
    behind = size + low + high - 1
    if size and behind >= 0 and low <= -size:
        return 1 - size, behind
    return (behind, 1 - size) if size and behind >= 0 and high <= -size else (low, high)


@function(tensors="input")
def pad(
    call: Call, input: Arg, pad: Any, mode: str = "constant", value: float | None = None, *, out: Arg | None = None
) -> Recipe:
    """`input` with elements added before and behind its last dimensions, as torch.nn.functional.pad."""
    desc = PadDescriptor(input.shape, *_pads(input.shape, pad, mode), mode, input.element)  # type: ignore[arg-type]
    if mode != "constant":
        if value:
            raise InvalidProblemError(f"pad: value: got {value!r}, want None for mode {mode!r}.")
        return call(desc, x=input)
    number = value or 0
    return call(desc, x=input, value=int(number) if input.element.is_integer else float(number))


@function(tensors="dy")
def pad_backward(call: Call, dy: Arg, shape: Any, pad: Any, mode: str = "constant") -> Recipe:
    """Gradient of pad with respect to an input of `shape`."""
    sizes = tuple(shape)
    return call(PadBackwardDescriptor(sizes, *_pads(sizes, pad, mode), mode, dy.element), dy=dy)  # type: ignore[arg-type]


pad.pulled_by(pad_backward)


@function(tensors="input")
def repeat(call: Call, input: Arg, repeats: Any, *, out: Arg | None = None) -> Recipe:
    """`input` repeated as a whole along each dimension, as torch.Tensor.repeat: at least one number per dimension."""
    times = tuple(repeats) if isinstance(repeats, (list, tuple)) else (repeats,)
    return call(RepeatDescriptor(input.shape, times, False, input.element), x=input)


@function(tensors="dy")
def repeat_backward(call: Call, dy: Arg, shape: Any, repeats: Any, each: bool = False) -> Recipe:
    """Gradient of repeat with respect to an input of `shape`; with `each` that of repeat_interleave."""
    times = tuple(repeats) if isinstance(repeats, (list, tuple)) else (repeats,)
    return call(RepeatBackwardDescriptor(tuple(shape), times, each, dy.element), dy=dy)


repeat.pulled_by(repeat_backward)


def _tiled(rank: int, dims: Any) -> tuple[int, ...]:
    times = tuple(dims) if isinstance(dims, (list, tuple)) else (dims,)
    return (*(1,) * (rank - len(times)), *times)


@made_of("repeat")
@function(tensors="input")
def tile(call: Call, input: Arg, dims: Any, *, out: Arg | None = None) -> Recipe:
    """`input` repeated as a whole along its last dimensions, as torch.tile."""
    return call(RepeatDescriptor(input.shape, _tiled(input.rank, dims), False, input.element), x=input)


@tile.vjp
def _tile_vjp(input: Any, dims: Any) -> tuple[Any, Any]:
    shape = tuple(input.shape)
    return tile(input, dims), lambda dy: repeat_backward(dy, shape, _tiled(len(shape), dims))


def _axis(shape: Shape, dim: int) -> int:
    return check_axis(dim, max(len(shape), 1), "repeat_interleave: dim")


def _times(shape: Shape, count: int, axis: int) -> tuple[int, ...]:
    return tuple(count if i == axis else 1 for i in range(max(len(shape), 1)))


@function(tensors="input")
def _interleave(call: Call, input: Arg, count: int, dim: int) -> Recipe:
    x = input if input.rank else input.insert(0)
    return call(RepeatDescriptor(x.shape, _times(x.shape, count, _axis(x.shape, dim)), True, x.element), x=x)


@composed(tensors="input")
def _row(c: Composer, input: Value) -> Value:
    """All elements in a row."""
    return c.reshape(input, (prod(input.shape),))


def _count(repeats: Any, output_size: int | None, size: int) -> int | None:
    """How often every element is repeated; None where a tensor says it for each."""
    if hasattr(repeats, "__index__") and not isinstance(repeats, bool) and not hasattr(repeats, "__dlpack__"):
        count = int(repeats)
    elif not hasattr(repeats, "__dlpack__") or Element(_core.describe(repeats)[1]) not in (Element.I64, Element.I32):
        raise InvalidProblemError(f"repeat_interleave: repeats: got {repeats!r}, want an int, or i64 or i32 ones.")
    elif prod(shape := tuple(_core.describe(repeats)[0])) == 1 and len(shape) <= 1:
        told = output_size is not None and _core.inferring()
        count = (output_size or 0) // max(size, 1) if told else int(repeats.reshape(()).item())
    elif len(shape) != 1 or shape[0] != size:
        raise InvalidProblemError(f"repeat_interleave: repeats: got shape {shape}, want () or ({size},).")
    else:
        return None
    if count < 0:
        raise InvalidProblemError(f"repeat_interleave: repeats: got {count}, want at least 0.")
    if output_size not in (None, count * size):
        got = f"repeat_interleave: output_size: got {output_size}"
        raise InvalidProblemError(f"{got}, want {count * size}, the sum of repeats.")
    return count


def _check_alone(input: Any) -> None:
    shape, element = _core.describe(input)[:2]
    if len(shape) != 1 or Element(element) not in (Element.I64, Element.I32):
        got = f"repeat_interleave: input: got {Element(element)} of shape {tuple(shape)}"
        raise InvalidProblemError(f"{got}, want a vector of i64 or i32 where there are no repeats.")


def _refuse_total(output_size: int | None, total: int, least: int, least_end: int, *_: int) -> None:
    if least < 0:
        raise InvalidProblemError("repeat_interleave: repeats: got a negative number, want at least 0.")
    if least_end < 0:  # the first sum beyond 2**63 wraps to a negative one
        raise InvalidProblemError("repeat_interleave: repeats: got a sum of 2**63 or more, want a size.")
    check_shape((total,), "repeat_interleave: sum of repeats")
    if output_size is not None:
        got = f"repeat_interleave: output_size: got {output_size}"
        raise InvalidProblemError(f"{got}, want {total}, the sum of repeats.")
    raise InvalidProblemError(f"repeat_interleave: sum of repeats: got {total}, want at most {MOST_BINS}.")


def _ends(parts: Parts, repeats: Arg, output_size: int | None) -> Made:
    """Behind which place each element ends; the last one of them is what is counted."""

    def sums(c: Composer, x: Value) -> list[Value]:
        counts = c.cast(x, Element.I64)
        ends = c.of(F.cumsum, counts, 0)
        last = ends[x.shape[0] - 1 :]
        told = [] if output_size is None else [c.of(F.sub, last, output_size)]  # no less than it, and below no more
        return [last, c.of(F.amin, counts), c.of(F.amin, ends), *told, ends]

    *numbers, ends = parts.steps(sums, repeats)
    parts.read(*numbers, most=output_size, refuse=partial(_refuse_total, output_size))
    return ends


def _positions(parts: Parts, total: Dim, ends: Made, y: Made | None = None) -> Made:
    """Index k as often as repeats[k] says, in order, in memory of ours or in y: before each place so many elements end."""
    marks = parts.run(BincountDescriptor(ends.shape, total), index=ends)["y"]
    desc = ScanDescriptor("cumsum", (total,), 0, Element.I64)
    if y is None:
        return parts.run(desc, x=marks)["y"]
    parts.run(desc, x=marks, y=y)
    return y


@made_of("amin bincount cast copy cumsum index_select repeat sub take")
@function(tensors="input repeats")
def repeat_interleave(
    call: Call, input: Arg, repeats: Arg | None = None, dim: int | None = None, *, output_size: int | None = None
) -> Recipe:
    """Every element of `input` repeated along `dim`, as torch.repeat_interleave.

    With a tensor as `repeats` this waits for a device: its sum is the size of the result.

    Args:
        input: A tensor. Alone it is taken as repeats: the result is index k as often as element k says.
        repeats: How often: an int, or a vector of i64 or i32 with a number for each element along `dim`.
        dim: A dimension; without one the input is taken as one row.
        output_size: The sum of repeats, if known; checked.
    """
    total = Dim("total", max=MOST_BINS)
    parts = Parts(call, total)
    ends = _ends(parts, input if repeats is None else repeats, output_size)
    if repeats is None:
        return parts.recipe(_positions(parts, total, ends, parts.result((COUNTED,), Element.I64)))
    if dim is None:
        desc: Descriptor = TakeDescriptor(input.shape, (total,), input.element)
        y = parts.result((COUNTED,), input.element)
    else:
        axis = _axis(input.shape, dim)
        desc = IndexSelectDescriptor(input.shape, (total,), axis, input.element)
        y = parts.result((*input.shape[:axis], COUNTED, *input.shape[axis + 1 :]), input.element)
    parts.run(desc, x=input, index=_positions(parts, total, ends), y=y)
    return parts.recipe(y)


def _told(repeats: Any, output_size: int | None) -> Any:
    """Positions where there is nothing to sum; where there are no data, as many as is told."""
    none = F.cast(repeats, "i64")[:0]
    if _core.inferring() and output_size is not None:
        return F.pad(F.zeros_like(none), (0, output_size))
    if output_size not in (None, 0):
        raise InvalidProblemError(f"repeat_interleave: output_size: got {output_size}, want 0, the sum of repeats.")
    return F.zeros_like(none)


def _without_sum(input: Any, repeats: Any, dim: int | None, output_size: int | None) -> Any:
    """The second form: all elements as often as one number says, or no size that data say."""
    told = _core.inferring() and output_size is not None
    if repeats is None:
        _check_alone(input)
        return _told(input, output_size) if told or not _core.describe(input)[0][0] else NotImplemented
    shape = tuple(_core.describe(input)[0])
    seen = (prod(shape),) if dim is None else shape
    axis = _axis(seen, 0 if dim is None else dim)
    size = seen[axis] if seen else 1
    count = _count(repeats, output_size, size)
    if count is None and size and not told:
        return NotImplemented
    rows = _row(input) if dim is None else input
    return (
        _interleave(rows, count, axis) if count is not None else F.index_select(rows, axis, _told(repeats, output_size))
    )


repeat_interleave.or_else(_without_sum)


@repeat_interleave.vjp
def _repeat_interleave_vjp(
    input: Any, repeats: Any = None, dim: int | None = None, *, output_size: int | None = None
) -> tuple[Any, Any]:
    y = repeat_interleave(input, repeats, dim, output_size=output_size)
    if repeats is None:
        raise InvalidProblemError("vjp: repeat_interleave of repeats alone gives positions, which have no gradient.")
    shape = tuple(_core.describe(input)[0])
    seen = (prod(shape),) if dim is None else shape
    axis = _axis(seen, 0 if dim is None else dim)

    def pull(dy: Any) -> Any:
        count = _count(repeats, None, seen[axis] if seen else 1)
        if count is None:
            found = F.index_select_backward(dy, repeat_interleave(repeats), seen, axis)
        else:
            found = repeat_backward(dy, seen or (1,), _times(seen, count, axis), True)
        return found.reshape(shape)

    return y, pull
