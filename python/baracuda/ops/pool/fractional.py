"""Fractional max pooling: windows at places that random numbers choose, made of a gather and a maximum."""

from __future__ import annotations

from math import prod
from typing import Any

from baracuda import _core
from baracuda import functional as F
from baracuda.call.compose import Composer, Value, composed
from baracuda.call.op import composite
from baracuda.call.steps import made_of
from baracuda.describe.dims import shape_text
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.options import integers
from baracuda.ops.layout.layout import ArangeDescriptor, FillDescriptor
from baracuda.ops.random.random import run_like, uniform_

OPS = ()


def _starts(c: Composer, sample: Value, size: int, out: int, kernel: int) -> Value:
    """Where the windows of each plane begin along an axis: floor((i + u) alpha) - floor(u alpha), the last at the end."""
    last = size - kernel
    if out == 1:
        return c(FillDescriptor((*sample.shape[:-1], 1), Element.I64), value=last)  # type: ignore[no-any-return]
    places = c(ArangeDescriptor((out,), Element.I64), start=0, step=1)
    number = c.cast(places, sample.element)
    alpha = c.of(F.div, c(FillDescriptor((1,), sample.element), value=last), float(out - 1))
    at = c.of(F.floor, c.of(F.mul, c.of(F.add, number, sample), alpha))
    at = c.of(F.sub, at, c.of(F.floor, c.of(F.mul, sample, alpha)))
    found = c.of(F.clamp, c.cast(at, Element.I64), 0, last)
    return c.of(F.where, c.of(F.eq, places, out - 1), last, found)  # type: ignore[no-any-return]


@composed(tensors="input samples")
def _pooled(c: Composer, input: Value, samples: Value, kernel: tuple[int, ...], size: tuple[int, ...]) -> Any:
    """(values, indices) of the largest value of each window, and where it is in its plane."""
    axes = len(kernel)
    lead, spatial = input.shape[:-axes], input.shape[-axes:]
    planes = (input.shape[0] if input.rank == axes + 2 else 1, input.shape[-axes - 1])
    wide = c.cast(samples, samples.element.compute)
    order = (1, 0) if axes == 2 else (0, 1, 2)  # as torch takes them
    at: Any = None
    for d in range(axes):
        start = _starts(c, wide[:, :, order[d] : order[d] + 1], spatial[d], size[d], kernel[d])
        shape = (*planes, *(size[d] if k == d else 1 for k in range(axes)), *(1,) * axes)
        inside = c.reshape(
            c(ArangeDescriptor((kernel[d],), Element.I64), start=0, step=1),
            (*(1,) * (2 + axes), *(kernel[d] if k == d else 1 for k in range(axes))),
        )
        place = c.of(F.mul, c.of(F.add, c.reshape(start, shape), inside), prod(spatial[d + 1 :]))
        at = place if at is None else c.of(F.add, at, place)
    windows = (*planes, prod(size), prod(kernel))
    flat = c.reshape(at, (*planes, prod(size) * prod(kernel)))
    values = c.of(F.gather, c.reshape(input, (*planes, prod(spatial))), 2, flat)
    values, chosen = c.of(F.max, c.reshape(values, windows), 3)
    found = c.of(F.gather, c.reshape(flat, windows), 3, c.reshape(chosen, (*windows[:3], 1)))
    return c.reshape(values, (*lead, *size)), c.reshape(found, (*lead, *size))


@composed(tensors="dy indices")
def _spread(c: Composer, dy: Value, indices: Value, shape: tuple[int, ...], axes: int) -> Value:
    """The gradient: dy added up where the values were."""
    lead = shape[:-axes]
    rows = (prod(lead), prod(dy.shape[-axes:]))
    zeros = c.zeros((rows[0], prod(shape[-axes:])), dy.element)
    made = c.of(F.scatter_add, zeros, 1, c.reshape(indices, rows), c.reshape(dy, rows))
    return c.reshape(made, shape)


def _asked(
    name: str, axes: int, input: Any, kernel_size: Any, output_size: Any, output_ratio: Any, samples: Any
) -> tuple[Any, Any, tuple[int, ...], tuple[int, ...]]:
    """What _pooled is given."""
    shape, code, *_ = _core.describe(input)
    element = Element(code)
    if len(shape) not in (axes + 1, axes + 2):
        got = f"input: got shape {shape_text(shape)}"
        raise InvalidProblemError(f"{got}, want (N, C, ...) or (C, ...) with {axes} axes behind.")
    if not element.is_float:
        raise InvalidProblemError(f"input: got {element}, want a float element.")

    def each(option: str, given: Any) -> tuple[int, ...]:
        found = integers(option, (given,) * axes if hasattr(given, "__index__") else given)
        if len(found) != axes or min(found) < 1:
            raise InvalidProblemError(f"{option}: got {given}, want {axes} numbers of at least 1.")
        return found

    kernel = each("kernel_size", kernel_size)
    if (output_size is None) == (output_ratio is None):
        raise InvalidProblemError("output_size: want it or output_ratio, and not both.")
    if output_size is None:
        ratios = (output_ratio,) * axes if isinstance(output_ratio, (int, float)) else tuple(output_ratio)
        if len(ratios) != axes or not all(0 < r < 1 for r in ratios):
            raise InvalidProblemError(f"output_ratio: got {output_ratio}, want {axes} numbers between 0 and 1.")
        output_size = tuple(int(n * r) for n, r in zip(shape[-axes:], ratios, strict=True))
    size = each("output_size", output_size)
    for n, m, k in zip(shape[-axes:], size, kernel, strict=True):
        if m + k - 1 > n:
            raise InvalidProblemError(
                f"output_size: got {m} windows of {k}, want at most {n - k + 1} along an axis of {n}."
            )
    planes = (shape[0] if len(shape) == axes + 2 else 1, shape[-axes - 1], axes)
    if samples is None:
        samples = run_like(input, planes, lambda y: uniform_(y))
    own, own_code, *_ = _core.describe(samples)
    if tuple(own) != planes or Element(own_code) is not element:
        got = f"_random_samples: got {Element(own_code)} of shape {shape_text(own)}"
        raise InvalidProblemError(f"{got}, want {element} of shape {shape_text(planes)}.")
    return input, samples, kernel, size


def _make(axes: int) -> Any:
    name = f"fractional_max_pool{axes}d"

    def pool(
        input: Any,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Any = None,
    ) -> Any:
        given = _asked(name, axes, input, kernel_size, output_size, output_ratio, _random_samples)
        found = _pooled(*given)
        return tuple(found) if return_indices else found[0]

    pool.__name__ = pool.__qualname__ = name
    pool.__doc__ = f"""The largest value of windows at places that random numbers choose, as torch.nn.functional.{name}.

    Along an axis window i begins at floor((i + u) a) - floor(u a), a = (size - kernel) / (windows - 1), and the last at the end;
    u is the plane's random number. Not torch's stream: pass `_random_samples` for torch's result. The first of equal
    values counts, and the first NaN.

    Args:
        input: (N, C, ...) or (C, ...) with {axes} axes behind; floats.
        kernel_size: Size of the windows: a number, or one for each axis.
        output_size: How many windows: a number, or one for each axis.
        output_ratio: Or that as a share of the input's size, between 0 and 1.
        return_indices: Whether to give (values, indices); these count the places of a plane.
        _random_samples: u of each plane and axis in [0, 1): (N, C, {axes}), of the input's element.
    """
    made: Any = made_of("add arange cast clamp div eq fill floor gather max mul sub uniform where")(composite(pool))

    def rule(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        bound = made.__signature__.bind(*args, **kwargs)
        bound.apply_defaults()
        a = bound.arguments
        options = (a["output_size"], a["output_ratio"], a["_random_samples"])
        given = _asked(name, axes, a["input"], a["kernel_size"], *options)
        values, indices = _pooled(*given)
        shape = tuple(a["input"].shape)

        def pull(dy: Any) -> Any:
            return _spread(dy[0] if isinstance(dy, tuple) else dy, indices, shape, axes)

        return ((values, indices) if a["return_indices"] else values), pull

    made.vjp_rule = rule
    return made


fractional_max_pool2d, fractional_max_pool3d = _make(2), _make(3)
