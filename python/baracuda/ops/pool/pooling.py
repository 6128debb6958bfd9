"""Functions of pooling, for one to three axes each; their descriptors are in pool.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from baracuda import functional as F
from baracuda.call.compose import Composer, Value, composed, refuse_tensors
from baracuda.call.inline import pulled_through
from baracuda.call.op import Arg, Call, Function, Op, Recipe, function
from baracuda.call.steps import made_of
from baracuda.describe.dims import shape_text
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.options import integers
from baracuda.ops.pool.pool import (
    AdaptiveAvgPoolDescriptor,
    AdaptiveMaxPoolDescriptor,
    AvgPoolDescriptor,
    MaxPoolDescriptor,
)

OPS: tuple[Op, ...] = ()

Axes = int | tuple[int, ...] | list[int]
_LETTERS = ("", "(N, C, L)", "(N, C, H, W)", "(N, C, D, H, W)")
_UNBATCHED = "An input without the first dimension is a batch of one, and so is its result."


def _per_axis(name: str, value: Any, axes: int) -> tuple[int, ...]:
    """An option as torch takes it: a number for all axes, or a list of one or of each."""
    refuse_tensors(name, value)
    numbers = integers(name, (value,) if hasattr(value, "__index__") else value)
    if isinstance(value, bool) or len(numbers) not in (1, axes):
        raise InvalidProblemError(f"{name}: got {value!r}, want an int, or {axes} of them, one per axis.")
    return numbers * axes if len(numbers) == 1 else numbers


def _window(axes: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> dict[str, Any]:
    """Fields of a window of some size, and torch's rule for its padding."""
    kernel, padded = _per_axis("kernel_size", kernel_size, axes), _per_axis("padding", padding, axes)
    steps = kernel if stride is None or stride in ((), []) else _per_axis("stride", stride, axes)
    apart = _per_axis("dilation", dilation, axes)
    for k, p, d in zip(kernel, padded, apart, strict=True):
        if not 0 <= p <= ((k - 1) * d + 1) // 2:
            raise InvalidProblemError(f"padding: got {padding!r}, want at most half of what the kernel spans.")
    made = {"kernel": kernel, "stride": steps, "low": padded, "high": padded, "ceil_mode": ceil_mode}
    return made | ({} if dilation == 1 else {"dilation": apart})


def _image(x: Arg, axes: int, name: str = "input") -> Arg:
    """As a batch."""
    if x.rank not in (axes + 1, axes + 2):
        want = f"{axes + 2} dimensions, or {axes + 1} for a batch of one"
        raise InvalidProblemError(f"{name}: got shape {shape_text(x.shape)}, want {want}.")
    return x if x.rank == axes + 2 else x.insert(0)


def _views(desc: Any, names: str, shape: tuple[int, ...], *, single: bool) -> Any:
    """Of results whose batch of one the function leaves out."""
    seen = (shape[1:], (-1, *range(len(shape) - 1)))
    return dict.fromkeys(names.split(), seen) if single else None


def _forward(call: Call, axes: int, made: Any, input: Arg, fields: dict[str, Any], **more: Any) -> Recipe:
    x = _image(input, axes)
    desc = made(input_shape=x.shape, **fields, **more, element=x.element)
    single = input.rank == axes + 1
    return call(desc, views=_views(desc, "y indices", desc.result_shape(), single=single), x=x)


def _backward(
    call: Call,
    axes: int,
    made: Any,
    dy: Arg,
    shape: Any,
    fields: dict[str, Any],
    indices: Arg | None = None,
    **more: Any,
) -> Recipe:
    sizes, single = integers("shape", shape), dy.rank == axes + 1
    given = _image(dy, axes, "dy")
    sizes = (1, *sizes) if single else sizes
    desc = made(input_shape=sizes, **fields, **more, element=dy.element).backward()
    where: dict[str, Any] = {} if indices is None else {"indices": _image(indices, axes, "indices")}
    return call(desc, views=_views(desc, "dx", sizes, single=single), dy=given, **where)


def _named(name: str, summary: str, *more: str) -> Callable[[Any], Any]:
    """Names a rule, which is one of several that differ in their axes."""

    def mark(rule: Any) -> Any:
        rule.__name__ = rule.__qualname__ = name
        rule.__doc__ = "\n".join([summary, "", *more] if more else [summary])
        return rule

    return mark


def _pulled_by_indices(fn: Function, backward: Function) -> None:
    """The gradient of maxima goes to where they were."""

    @fn.vjp
    def rule(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        call = fn.__signature__.bind(*args, **kwargs)
        call.apply_defaults()
        given = dict(call.arguments)
        both = given.pop("return_indices")
        y, indices = fn(**given, return_indices=True)
        shape = tuple(given.pop("input").shape)

        def pull(dy: Any) -> Any:
            return backward(dy[0] if isinstance(dy, tuple) else dy, indices, shape, **given)

        return ((y, indices) if both else y), pull


def _max_pool(axes: int) -> tuple[Function, Function]:
    name = f"max_pool{axes}d"

    @made_of("max_pool")
    @function(tensors="input")
    @_named(
        name,
        f"The largest of each window of {_LETTERS[axes]}, as torch.nn.functional.{name}; with `return_indices` also where it is.",
        f"Padding never is the largest; NaN always is. {_UNBATCHED}",
    )
    def forward(
        call: Call,
        input: Arg,
        kernel_size: Axes,
        stride: Axes | None = None,
        padding: Axes = 0,
        dilation: Axes = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Recipe:
        fields = _window(axes, kernel_size, stride, padding, dilation, ceil_mode)
        return _forward(call, axes, MaxPoolDescriptor, input, fields, indices=return_indices)

    @made_of("max_pool_backward")
    @function(tensors="dy indices")
    @_named(f"{name}_backward", f"Gradient of {name} by its input of this shape, given the indices that it returned.")
    def backward(
        call: Call,
        dy: Arg,
        indices: Arg,
        shape: Axes,
        kernel_size: Axes,
        stride: Axes | None = None,
        padding: Axes = 0,
        dilation: Axes = 1,
        ceil_mode: bool = False,
    ) -> Recipe:
        fields = _window(axes, kernel_size, stride, padding, dilation, ceil_mode)
        return _backward(call, axes, MaxPoolDescriptor, dy, shape, fields, indices)

    _pulled_by_indices(forward, backward)
    return forward, backward


def _avg_pool(axes: int) -> tuple[Function, Function]:
    name = f"avg_pool{axes}d"

    @made_of("avg_pool")
    @function(tensors="input")
    @_named(
        name,
        f"The mean of each window of {_LETTERS[axes]}, as torch.nn.functional.{name}.",
        "Sums are divided by the places of the window, with padding unless `count_include_pad` is False, or by",
        f"`divisor_override`. {_UNBATCHED}",
    )
    def forward(
        call: Call,
        input: Arg,
        kernel_size: Axes,
        stride: Axes | None = None,
        padding: Axes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Recipe:
        fields = _window(axes, kernel_size, stride, padding, 1, ceil_mode) | _divided(
            count_include_pad, divisor_override
        )
        return _forward(call, axes, AvgPoolDescriptor, input, fields)

    @made_of("avg_pool_backward")
    @function(tensors="dy")
    @_named(f"{name}_backward", f"Gradient of {name} by its input of this shape.")
    def backward(
        call: Call,
        dy: Arg,
        shape: Axes,
        kernel_size: Axes,
        stride: Axes | None = None,
        padding: Axes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Recipe:
        fields = _window(axes, kernel_size, stride, padding, 1, ceil_mode) | _divided(
            count_include_pad, divisor_override
        )
        return _backward(call, axes, AvgPoolDescriptor, dy, shape, fields)

    forward.pulled_by(backward)
    return forward, backward


def _divided(count_include_pad: bool, divisor: int | None) -> dict[str, Any]:
    if divisor == 0:
        raise InvalidProblemError("divisor_override: got 0, want another number, or None.")
    return {"count_include_pad": count_include_pad, "divisor": divisor or 0}


def _parts(input_sizes: tuple[int, ...], axes: int, output_size: Any) -> dict[str, Any]:
    """Results along each axis; None keeps the size of the input."""
    refuse_tensors("output_size", output_size)
    given = output_size if isinstance(output_size, (tuple, list)) else (output_size,) * axes
    if len(given) != axes:
        raise InvalidProblemError(f"output_size: got {output_size!r}, want an int, or {axes} of them, one per axis.")
    kept = [n if size is None else size for n, size in zip(input_sizes[-axes:], given, strict=True)]
    return {"output_size": integers("output_size", kept)}


def _adaptive_max_pool(axes: int) -> tuple[Function, Function]:
    name = f"adaptive_max_pool{axes}d"

    @made_of("adaptive_max_pool")
    @function(tensors="input")
    @_named(
        name,
        f"The largest of each of `output_size` parts of {_LETTERS[axes]}, as torch.nn.functional.{name}.",
        f"With `return_indices` also where it is. {_UNBATCHED}",
    )
    def forward(call: Call, input: Arg, output_size: Any, return_indices: bool = False) -> Recipe:
        fields = _parts(_image(input, axes).shape, axes, output_size)
        return _forward(call, axes, AdaptiveMaxPoolDescriptor, input, fields, indices=return_indices)

    @made_of("adaptive_max_pool_backward")
    @function(tensors="dy indices")
    @_named(f"{name}_backward", f"Gradient of {name} by its input of this shape, given the indices that it returned.")
    def backward(call: Call, dy: Arg, indices: Arg, shape: Axes, output_size: Any) -> Recipe:
        fields = _parts(integers("shape", shape), axes, output_size)
        return _backward(call, axes, AdaptiveMaxPoolDescriptor, dy, shape, fields, indices)

    _pulled_by_indices(forward, backward)
    return forward, backward


def _adaptive_avg_pool(axes: int) -> tuple[Function, Function]:
    name = f"adaptive_avg_pool{axes}d"

    @made_of("adaptive_avg_pool")
    @function(tensors="input")
    @_named(
        name,
        f"The mean of each of `output_size` parts of {_LETTERS[axes]}, as torch.nn.functional.{name}.",
        f"None for an axis keeps its size. {_UNBATCHED}",
    )
    def forward(call: Call, input: Arg, output_size: Any) -> Recipe:
        fields = _parts(_image(input, axes).shape, axes, output_size)
        return _forward(call, axes, AdaptiveAvgPoolDescriptor, input, fields)

    @made_of("adaptive_avg_pool_backward")
    @function(tensors="dy")
    @_named(f"{name}_backward", f"Gradient of {name} by its input of this shape.")
    def backward(call: Call, dy: Arg, shape: Axes, output_size: Any) -> Recipe:
        fields = _parts(integers("shape", shape), axes, output_size)
        return _backward(call, axes, AdaptiveAvgPoolDescriptor, dy, shape, fields)

    forward.pulled_by(backward)
    return forward, backward


max_pool1d, max_pool1d_backward = _max_pool(1)
max_pool2d, max_pool2d_backward = _max_pool(2)
max_pool3d, max_pool3d_backward = _max_pool(3)
avg_pool1d, avg_pool1d_backward = _avg_pool(1)
avg_pool2d, avg_pool2d_backward = _avg_pool(2)
avg_pool3d, avg_pool3d_backward = _avg_pool(3)
adaptive_max_pool1d, adaptive_max_pool1d_backward = _adaptive_max_pool(1)
adaptive_max_pool2d, adaptive_max_pool2d_backward = _adaptive_max_pool(2)
adaptive_max_pool3d, adaptive_max_pool3d_backward = _adaptive_max_pool(3)
adaptive_avg_pool1d, adaptive_avg_pool1d_backward = _adaptive_avg_pool(1)
adaptive_avg_pool2d, adaptive_avg_pool2d_backward = _adaptive_avg_pool(2)
adaptive_avg_pool3d, adaptive_avg_pool3d_backward = _adaptive_avg_pool(3)


def _lp_pool(axes: int) -> Any:
    name, mean = f"lp_pool{axes}d", f"avg_pool{axes}d"

    @pulled_through
    @made_of("abs avg_pool cast mul pow relu sign")
    @composed(tensors="input")
    @_named(name, f"(sum of x**norm_type)**(1 / norm_type) of each window, as torch.nn.functional.{name}.")
    def lp_pool(
        c: Composer,
        input: Value,
        norm_type: float,
        kernel_size: Axes,
        stride: Axes | None = None,
        ceil_mode: bool = False,
    ) -> Value:
        power = c.of(F.pow, c.wide(input), norm_type)
        means = c.of(getattr(F, mean), power, kernel_size, stride, 0, ceil_mode)
        taps = 1
        for n in _per_axis("kernel_size", kernel_size, axes):
            taps *= n
        # torch's words: the sum of odd powers may be negative, and where it is 0 so shall the gradient be.
        size = c.of(F.mul, c.of(F.sign, means), c.of(F.relu, c.of(F.abs, means)))
        return c.cast(c.of(F.pow, c.of(F.mul, size, taps), 1.0 / norm_type), input.element)

    return lp_pool


def _unpooled(
    sizes: tuple[int, ...], axes: int, output_size: Any, kernel: Any, stride: Any, padding: Any
) -> tuple[int, ...]:
    """The sizes of a plane before pooling: torch's default, or what is given, if pooling would give `sizes` of it."""
    window = _window(axes, kernel, stride, padding, 1, False)
    least = [
        (n - 1) * s + k - 2 * p
        for n, s, k, p in zip(sizes, window["stride"], window["kernel"], window["low"], strict=True)
    ]
    if output_size is None:
        return tuple(least)
    given = integers("output_size", output_size)[-axes:]
    fits = len(given) == axes and all(a - s < n < a + s for n, a, s in zip(given, least, window["stride"], strict=True))
    if not fits:
        want = f"sizes less than a stride {list(window['stride'])} from {least}"
        raise InvalidProblemError(f"output_size: got {output_size!r}, want {want}.")
    return given


def _max_unpool(axes: int) -> Any:
    name = f"max_unpool{axes}d"

    @pulled_through
    @made_of("fill scatter")
    @composed(tensors="input indices")
    @_named(
        name,
        f"Zeros with `input` at the places that `indices` name, as torch.nn.functional.{name}.",
        "Indices are those of max_pool; where several are one place, one of them is there.",
    )
    def max_unpool(
        c: Composer,
        input: Value,
        indices: Value,
        kernel_size: Axes,
        stride: Axes | None = None,
        padding: Axes = 0,
        output_size: Any = None,
    ) -> Value:
        if input.rank not in (axes + 1, axes + 2) or indices.shape != input.shape or indices.element is not Element.I64:
            got = f"input {shape_text(input.shape)} and indices {shape_text(indices.shape)} of {indices.element}"
            raise InvalidProblemError(
                f"{name}: got {got}, want {axes + 2} dimensions, and i64 indices of the same shape."
            )
        lead, sizes = input.shape[:-axes], input.shape[-axes:]
        plane = _unpooled(sizes, axes, output_size, kernel_size, stride, padding)
        count, places = 1, 1
        for n, m in zip(sizes, plane, strict=True):
            count, places = count * n, places * m
        flat, where = c.reshape(input, (*lead, count)), c.reshape(indices, (*lead, count))
        zeros = c.zeros((*lead, places), input.element)
        return c.reshape(c.of(F.scatter, zeros, len(lead), where, flat), (*lead, *plane))

    return max_unpool


lp_pool1d, lp_pool2d, lp_pool3d = (_lp_pool(n) for n in (1, 2, 3))
max_unpool1d, max_unpool2d, max_unpool3d = (_max_unpool(n) for n in (1, 2, 3))
