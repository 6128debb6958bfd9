"""Windows of images as columns, and columns added up to images. Kernels in csrc/ops/image, reference in fold_ref.py."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

from baracuda.call.compose import Composer, Value, composed
from baracuda.call.op import Arg, Call, NotDifferentiable, Op, Recipe, function
from baracuda.call.steps import made_of
from baracuda.describe.dims import Dim, Shape, shape_text
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.options import integers
from baracuda.describe.spec import Descriptor, Signature, descriptor, output, tensor

_LIMIT = 2**31
_FIELDS = (("kernel", 1), ("stride", 1), ("low", 0), ("high", 0), ("dilation", 1))


@descriptor(family="image", op="fold")
class FoldDescriptor(Descriptor):
    """y[n, c, p] = the sum of x[n, (c, t), o] over the windows o and their taps t that lie at place p.

    Tap t of window o lies at o stride - low + t dilation; there are (size + low + high - dilation (kernel - 1) - 1) //
    stride + 1 windows along an axis. What lies outside of the image is left out.

    Args:
        image_shape: Shape of y, (batch, channels, ...) with one to three axes; x has shape (batch, channels taps, windows).
        kernel: How many places of each axis a window has.
        stride: Distance of windows, per axis; () stands for ones.
        low: Padding before each axis; () for none.
        high: Padding behind each axis; () for none.
        dilation: Distance of a window's places, per axis; () stands for ones.
        element: f16, bf16, f32 or f64.
    """

    image_shape: Shape
    kernel: tuple[int, ...]
    stride: tuple[int, ...] = ()
    low: tuple[int, ...] = ()
    high: tuple[int, ...] = ()
    dilation: tuple[int, ...] = ()
    element: Element = Element.F32

    def validate(self) -> None:
        shape = self.image_shape
        if not 3 <= len(shape) <= 5:
            raise self.wrong("image_shape", shape, "(batch, channels, ...) with one to three axes behind them")
        if any(isinstance(n, Dim) or not 1 <= n < _LIMIT for n in shape[1:]) and not self._is_empty():
            raise self.wrong("image_shape", shape, "axes of 1 to 2**31 - 1 places; only the batch may be a Dim")
        for name, least in _FIELDS:
            given = getattr(self, name) or (least,) * (len(shape) - 2)
            if len(given) != len(shape) - 2 or any(not least <= n < _LIMIT for n in given):
                raise self.wrong(name, list(given), f"{len(shape) - 2} numbers, one per axis, {least} <= n < 2**31")
            object.__setattr__(self, name, given)
        if prod(self.kernel) >= _LIMIT:
            raise self.wrong("kernel", list(self.kernel), "fewer than 2**31 taps")
        if min(self.windows()) < 1:
            raise self.wrong(
                "kernel", list(self.kernel), f"windows that fit into axes of {shape_text(shape[2:])}. Pad more"
            )

    def _is_empty(self) -> bool:
        """Whether there are no channels, which is fine."""
        shape = self.image_shape
        return shape[1] == 0 and all(not isinstance(n, Dim) and 1 <= n < _LIMIT for n in shape[2:])

    def windows(self) -> tuple[int, ...]:
        """How many windows there are along each axis."""
        found = []
        for i, n in enumerate(self.image_shape[2:]):
            rest = int(n) + self.low[i] + self.high[i] - self.dilation[i] * (self.kernel[i] - 1) - 1  # type: ignore[arg-type]
            found.append(rest // self.stride[i] + 1)
        return tuple(found)

    def columns_shape(self) -> Shape:
        """The shape of x."""
        return (self.image_shape[0], int(self.image_shape[1]) * prod(self.kernel), prod(self.windows()))  # type: ignore[arg-type]

    def attributes(self) -> dict[str, int | float]:
        made: dict[str, int | float] = {}
        for name, _ in _FIELDS:
            values = getattr(self, name)
            made |= {f"{name}{i}": values[i] if i < len(values) else 0 for i in range(3)}
        return made

    def signature(self) -> Signature:
        return Signature(tensor("x", self.columns_shape(), self.element), output("y", self.image_shape, self.element))


OPS = (
    Op(
        "fold",
        FoldDescriptor,
        NotDifferentiable("linear; the gradient is `unfold`, a copy of dy's windows"),
        "y = the sum of what windows give each place",
    ),
)

Pair = int | tuple[int, ...] | list[int]


def _pair(name: str, value: Any, least: int) -> tuple[int, int]:
    given = integers(name, (value,) if hasattr(value, "__index__") else value)
    if isinstance(value, bool) or len(given) not in (1, 2) or min(given) < least:
        raise InvalidProblemError(f"{name}: got {value!r}, want an int of at least {least}, or two.")
    return (given[0], given[-1])


class _Windows:
    """Options of fold and unfold."""

    def __init__(self, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> None:
        self.kernel, self.dilation = _pair("kernel_size", kernel_size, 1), _pair("dilation", dilation, 1)
        self.padding, self.stride = _pair("padding", padding, 0), _pair("stride", stride, 1)

    def descriptor(self, batch: int, channels: int, size: tuple[int, ...], element: Element) -> FoldDescriptor:
        low = self.padding
        shape = (batch, channels, *size)
        return FoldDescriptor(shape, self.kernel, self.stride, low, low, self.dilation, element)


@function(tensors="input")
def fold(
    call: Call,
    input: Arg,
    output_size: Pair,
    kernel_size: Pair,
    dilation: Pair = 1,
    padding: Pair = 0,
    stride: Pair = 1,
) -> Recipe:
    """Columns (N, C kh kw, windows) added up to images (N, C, H, W), as torch.nn.functional.fold.

    An input without the first dimension is a batch of one, and so is its result.
    """
    if input.rank not in (2, 3):
        raise InvalidProblemError(f"input: got shape {shape_text(input.shape)}, want (N, C kh kw, windows).")
    options, size = _Windows(kernel_size, dilation, padding, stride), _pair("output_size", output_size, 1)
    x = input if input.rank == 3 else input.insert(0)
    taps = prod(options.kernel)
    if x.shape[1] % taps:
        raise InvalidProblemError(
            f"input: got {x.shape[1]} rows of columns, want a multiple of {taps}, the kernel's taps."
        )
    desc = options.descriptor(x.shape[0], x.shape[1] // taps, size, x.element)
    if x.shape != desc.columns_shape():
        want = f"{shape_text(desc.columns_shape())} for {' x '.join(map(str, desc.windows()))} windows"
        raise InvalidProblemError(f"input: got shape {shape_text(x.shape)}, want {want}.")
    views = {"y": (desc.image_shape[1:], (-1, 0, 1, 2))} if input.rank == 2 else None
    return call(desc, views=views, x=x)  # type: ignore[arg-type]


@made_of("copy pad")
@composed(tensors="input")
def unfold(
    c: Composer, input: Value, kernel_size: Pair, dilation: Pair = 1, padding: Pair = 0, stride: Pair = 1
) -> Value:
    """The windows of images (N, C, H, W) as columns (N, C kh kw, windows), as torch.nn.functional.unfold: a copy.

    An input without the first dimension is a batch of one, and so is its result.
    """
    from baracuda.ops.layout.pad import pad

    if input.rank not in (3, 4):
        raise InvalidProblemError(f"input: got shape {shape_text(input.shape)}, want (N, C, H, W).")
    options = _Windows(kernel_size, dilation, padding, stride)
    images = input if input.rank == 4 else input[None]
    n, channels, *size = images.shape
    windows = options.descriptor(n, channels, tuple(size), Element.F32).windows()
    (ph, pw), (sh, sw), (dh, dw) = options.padding, options.stride, options.dilation
    if ph or pw:
        images = c.of(pad, images, (pw, pw, ph, ph))
    outer, channel, row, column = images.strides
    seen = replace(
        images,
        shape=(n, channels, *options.kernel, *windows),
        strides=(outer, channel, row * dh, column * dw, row * sh, column * sw),
    )
    made = c.reshape(c.copy(seen), (n, channels * prod(options.kernel), prod(windows)))
    return made if input.rank == 4 else made[0]


@made_of("fold")
@composed(tensors="dy")
def unfold_backward(
    c: Composer,
    dy: Value,
    shape: Any,
    kernel_size: Pair,
    dilation: Pair = 1,
    padding: Pair = 0,
    stride: Pair = 1,
) -> Value:
    """Gradient of unfold by its input of this shape: `fold`."""
    made: Value = c.of(fold, dy, integers("shape", shape)[-2:], kernel_size, dilation, padding, stride)
    return made


@made_of("copy pad")
@composed(tensors="dy")
def fold_backward(
    c: Composer, dy: Value, kernel_size: Pair, dilation: Pair = 1, padding: Pair = 0, stride: Pair = 1
) -> Value:
    """Gradient of fold by its input: `unfold`."""
    made: Value = c.of(unfold, dy, kernel_size, dilation, padding, stride)
    return made


fold.pulled_by(fold_backward)
unfold.pulled_by(unfold_backward)
