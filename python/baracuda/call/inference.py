"""Shapes and elements of functions' results, without data: for fake tensors, meta tensors and `jax.eval_shape`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from baracuda import _core
from baracuda.describe.elements import Element
from baracuda.describe.errors import BaracudaError, InvalidProblemError, Refusal
from baracuda.memory.device import Device, name_of
from baracuda.memory.results import is_torch
from baracuda.memory.tensor import Tensor, TensorSpec, unbacked
from baracuda.memory.views import is_contiguous


def infer(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a function of `bc.functional` would return for these arguments, as `bc.TensorSpec`s. Nothing is computed.

    The function's own rules run, on tensors without memory; its kernels are selected and check their arguments, as in a
    call. Devices that cannot be used here are stood in for by the cpu.

    Args:
        fn: The function.
        args: Its arguments. Tensors are `bc.TensorSpec`, torch meta or fake tensors, `jax.ShapeDtypeStruct`, or real ones,
            whose data is not read.
        kwargs: Its keyword arguments.

    Returns:
        A `bc.TensorSpec` in the place of every tensor of the result.

    Raises:
        InvalidProblemError: What the call would raise, or that the result depends on data.
    """
    asked = _Asked()
    given = [asked.without_data(v) for v in args]
    named = {k: asked.without_data(v) for k, v in kwargs.items()}
    before, tracer = _core.exchange_inferring(True), _core.exchange_tracer(None)
    try:
        return asked.spec(fn(*given, **named))
    except BaracudaError as error:
        if any(r.code == "null_data" for r in error.refusals):
            _refuse_data(fn.__name__, error)
        raise
    finally:
        _core.exchange_inferring(before)
        _core.exchange_tracer(tracer)


def _refuse_data(name: str, error: BaracudaError) -> NoReturn:
    want = "a tensor with data"
    raise InvalidProblemError(
        f"{name}.infer(): got shapes, want {want}: what it returns depends on values, not only on shapes. Call {name} itself, "
        "outside of what is traced.",
        [Refusal("null_data", "", "a shape without memory", want)],
    ) from error


class _Asked:
    """What the arguments say about results: where they lie, and whether jax takes them over."""

    def __init__(self) -> None:
        self.stands_for = "cpu"  # the device that the cpu stands in for
        self.of_jax: bool | None = None  # whether the first tensor is jax's; None before there is one

    def without_data(self, value: Any) -> Any:
        """A tensor as its shape; what is no tensor stays as it is, and lists of that, too."""
        if isinstance(value, (list, tuple)):
            found = [self.without_data(v) for v in value]
            changed = any(a is not b for a, b in zip(found, value, strict=True))
            return (found if isinstance(value, list) else tuple(found)) if changed else value
        seen = spec_of(value)
        if seen is None:
            return value
        self.of_jax = _is_jax(value) if self.of_jax is None else self.of_jax
        device = seen.device
        if device != "cpu" and Device(device).reason:
            self.stands_for, device = device, "cpu"
        return unbacked(seen.shape, seen.element, seen.strides, device, read_only=seen.read_only)

    def spec(self, value: Any) -> Any:
        """A result with specs in the place of its tensors."""
        if isinstance(value, (list, tuple)):
            return type(value)([self.spec(v) for v in value])
        seen = None if isinstance(value, TensorSpec) else spec_of(value)
        if seen is None:
            return value
        element = Element.coerce(seen.element)
        if self.of_jax:  # which has no 64-bit numbers unless it is told to
            import jax

            element = Element.coerce(jax.dtypes.canonicalize_dtype(element.numpy))
        strides = None if seen.strides is None or is_contiguous(seen.shape, seen.strides) else seen.strides
        return TensorSpec(seen.shape, element, strides, self.stands_for if seen.device == "cpu" else seen.device)


def _is_jax(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] in ("jax", "jaxlib")


def spec_of(value: Any) -> TensorSpec | None:
    """What is known of a tensor without its data; None for what is none.

    Strides are those of our own tensors only: other frameworks copy where a view does not do.
    """
    if isinstance(value, TensorSpec):
        return value
    if isinstance(value, Tensor):
        return TensorSpec(value.shape, value.element, value.strides, value.device, value.read_only)
    if is_torch(value) and str(value.layout) == "torch.strided":
        where = "cpu" if value.is_meta else str(value.device)
        return TensorSpec(tuple(value.shape), value.dtype, None, where)
    if _is_jax(value) and hasattr(value, "shape"):
        return TensorSpec(tuple(value.shape), value.dtype, None, "cpu", read_only=True)
    if isinstance(value, np.generic) or not (hasattr(value, "__dlpack__") or type(value).__name__ == "PyCapsule"):
        return None
    shape, code, _, *place = _core.describe(value)
    read_only = isinstance(value, np.ndarray) and not value.flags.writeable
    return TensorSpec(shape, Element(code), None, name_of((place[0], place[1])), read_only)
