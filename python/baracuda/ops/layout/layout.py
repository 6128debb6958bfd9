"""Copies between any strides, fills and sequences. Kernels in csrc/ops/layout, reference in layout_ref.py."""

from __future__ import annotations

from functools import lru_cache
from math import ceil, isfinite
from operator import index
from typing import Any

import numpy as np

from baracuda import _core
from baracuda.call.op import Arg, Call, NotDifferentiable, Op, Recipe, composite, function
from baracuda.call.steps import made_of
from baracuda.choose.plan import Plan, plan
from baracuda.describe.dims import Shape, Size, check_shape
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.spec import Descriptor, Signature, descriptor, output, scalar, tensor
from baracuda.memory.device import Place, name_of, place_of
from baracuda.memory.results import fresh


def number_kind(element: Element) -> str:
    """How a number that an element holds is given to run."""
    if element.is_integer:
        return "unsigned" if element in (Element.U8, Element.U16, Element.U32, Element.U64) else "int"
    return "float"


@descriptor(family="layout", op="copy")
class CopyDescriptor(Descriptor):
    """y = x, bit for bit, from any strides to any strides: also contiguous() and permute, given a permuted view.

    Args:
        shape: Shape of x and y, rank 0-8. x may be a broadcast view (zero strides).
        element: Any element of 1, 2, 4, 8 or 16 bytes, complex and fp8 included.
    """

    shape: Shape
    element: Element = Element.F32

    def signature(self) -> Signature:
        return Signature(tensor("x", self.shape, self.element), output("y", self.shape, self.element))


@descriptor(family="layout", op="fill")
class FillDescriptor(Descriptor):
    """y = value, rounded to y's element as cast does; value is a number given to run.

    Args:
        shape: Shape of y, rank 0-8.
        element: bool, any integer, f16, bf16, f32 or f64. For integers the value must be an integer.
    """

    shape: Shape
    element: Element = Element.F32

    def signature(self) -> Signature:
        return Signature(
            output("y", self.shape, self.element), scalar("value", number_kind(self.element), fits=self.element)
        )


@descriptor(family="layout", op="arange")
class ArangeDescriptor(Descriptor):
    """y[i] = start + i step, counted in logical order; start and step are numbers given to run. Integers wrap.

    Args:
        shape: Shape of y, rank 0-8.
        element: Any integer, f16, bf16, f32 or f64. Floats are computed in f64 on the CPU, in f32 or f64 on GPUs.
    """

    shape: Shape
    element: Element = Element.I64

    def signature(self) -> Signature:
        kind = "float" if self.element.is_float else "int"
        return Signature(output("y", self.shape, self.element), scalar("start", kind, 0), scalar("step", kind, 1))


@descriptor(family="layout", op="linspace")
class LinspaceDescriptor(Descriptor):
    """y = n evenly spaced numbers from start to end.

    y[i] = start + i s below n / 2 and end - (n - 1 - i) s from there on, with s = (end - start) / (n - 1). A single
    number is the start.

    Args:
        size: How many numbers.
        element: f16, bf16, f32 or f64.
    """

    size: Size
    element: Element = Element.F32

    def signature(self) -> Signature:
        return Signature(output("y", (self.size,), self.element), scalar("start"), scalar("end"))


@descriptor(family="layout", op="eye")
class EyeDescriptor(Descriptor):
    """y = 1 on the main diagonal, 0 elsewhere.

    Args:
        shape: Shape of y: (rows, columns).
        element: bool, any integer, f16, bf16, f32 or f64.
    """

    shape: Shape
    element: Element = Element.F32

    def validate(self) -> None:
        if len(self.shape) != 2:
            raise self.wrong("shape", self.shape, "(rows, columns)")

    def signature(self) -> Signature:
        return Signature(output("y", self.shape, self.element))


OPS = (
    Op(
        "copy",
        CopyDescriptor,
        NotDifferentiable("a copy of its input; the gradient is dy itself"),
        "y = x, between any strides",
    ),
    Op("fill", FillDescriptor, NotDifferentiable("does not depend on a tensor"), "y = value"),
    Op("arange", ArangeDescriptor, NotDifferentiable("does not depend on a tensor"), "y[i] = start + i step"),
    Op("linspace", LinspaceDescriptor, NotDifferentiable("does not depend on a tensor"), "y = evenly spaced numbers"),
    Op("eye", EyeDescriptor, NotDifferentiable("does not depend on a tensor"), "y[i, j] = i == j"),
)


@function(tensors="input")
def copy(call: Call, input: Arg, *, out: Arg | None = None) -> Recipe:
    """`input` in contiguous memory of its own, or in `out` whatever its strides, as torch.Tensor.copy_."""
    return call(CopyDescriptor(input.shape, input.element), x=input)


@copy.vjp
def _copy_vjp(input: Any) -> tuple[Any, Any]:
    return copy(input), lambda dy: dy


@made_of("copy")
@function(tensors="input")
def clone(call: Call, input: Arg, *, out: Arg | None = None) -> Recipe:
    """`input` in memory of its own and in the order of its strides, as torch.clone."""
    return call(CopyDescriptor(input.shape, input.element), as_lies=input, x=input)


@clone.vjp
def _clone_vjp(input: Any) -> tuple[Any, Any]:
    return clone(input), clone


alias_copy = clone


def _of(input: Arg, dtype: Any, device: Any) -> Element:
    if device is not None and place_of(device) != input.place:
        got, here = name_of(place_of(device)), name_of(input.place)
        raise InvalidProblemError(f"device: got {got}, want {here}, where input lies. Use full, zeros or ones.")
    return input.element if dtype is None else Element.coerce(dtype, "dtype")


@made_of("fill")
@function(tensors="input", scalars="fill_value")
def full_like(call: Call, input: Arg, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Recipe:
    """A tensor of the shape of `input`, and of its element or of `dtype`, filled with one value, as torch.full_like."""
    return call(FillDescriptor(input.shape, _of(input, dtype, device)), as_lies=input, value=fill_value)


@made_of("fill")
@function(tensors="input")
def zeros_like(call: Call, input: Arg, *, dtype: Any = None, device: Any = None) -> Recipe:
    """Zeros of the shape of `input`, and of its element or of `dtype`, as torch.zeros_like."""
    return call(FillDescriptor(input.shape, _of(input, dtype, device)), as_lies=input, value=0)


@made_of("fill")
@function(tensors="input")
def ones_like(call: Call, input: Arg, *, dtype: Any = None, device: Any = None) -> Recipe:
    """Ones of the shape of `input`, and of its element or of `dtype`, as torch.ones_like."""
    return call(FillDescriptor(input.shape, _of(input, dtype, device)), as_lies=input, value=1)


@lru_cache(maxsize=256)
def _plan(make: Any, shape: tuple[int, ...], element: Element, place: Place) -> Plan:
    return plan(make(shape, element), name_of(place))


def _made(make: Any, shape: tuple[int, ...], element: Element, out: Any, device: Any, *numbers: Any) -> Any:
    """Runs the plan of make(shape, element) into `out`, or into a new array."""
    out = fresh(shape, element, device, out)
    found, code, _, *place = _core.describe(out)
    if tuple(found) != shape:
        raise InvalidProblemError(f"out: got shape {tuple(found)}, want {shape}.")
    _plan(make, shape, Element(code), (place[0], place[1])).run(out, *numbers)
    return out


def _spaced(shape: tuple[int, ...], element: Element) -> Descriptor:
    return LinspaceDescriptor(shape[0], element)


def _element(dtype: Any, out: Any, *numbers: Any) -> Element:
    """What is asked for, else torch's default for numbers: bool, i64 or f32."""
    held = None if out is None else Element(_core.describe(out)[1])
    if dtype is not None:
        asked = Element.coerce(dtype, "dtype")
        if held not in (None, asked):
            raise InvalidProblemError(f"out: got {held}, want {asked}, which dtype asks for. Leave one of them out.")
        return asked
    if held is not None:
        return held
    if all(isinstance(n, (bool, np.bool_)) for n in numbers):
        return Element.BOOL
    return Element.I64 if all(hasattr(n, "__index__") for n in numbers) else Element.F32


@made_of("fill")
@composite
def full(size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None, out: Any = None) -> Any:
    """A new array filled with one number, as torch.full.

    Args:
        size: Its shape.
        fill_value: The number; its kind gives the element where dtype is None: bool, i64 or f32.
        dtype: Element of the result.
        device: Where a bc.Tensor is made; by default it is a NumPy array.
        out: Array to fill instead of making one; of any framework and device.
    """
    from baracuda.ops.indexing.indexing import masked_number

    if dtype is None and out is None and getattr(fill_value, "shape", None) == ():
        dtype = Element(_core.describe(fill_value)[1])
    element = _element(dtype, out, fill_value)
    return _made(FillDescriptor, _shape(size), element, out, device, masked_number(fill_value, element, "fill_value"))


@made_of("fill")
@composite
def zeros(*size: Any, dtype: Any = None, device: Any = None, out: Any = None) -> Any:
    """A new array of zeros, as torch.zeros.

    Args:
        *size: Its shape, as numbers or a list of them.
        dtype: Element of the result; f32 by default.
        device: Where a bc.Tensor is made; by default it is a NumPy array.
        out: Array to fill instead of making one; of any framework and device.
    """
    return _filled(size, 0, dtype, device, out)


@made_of("fill")
@composite
def ones(*size: Any, dtype: Any = None, device: Any = None, out: Any = None) -> Any:
    """A new array of ones, as torch.ones.

    Args:
        *size: Its shape, as numbers or a list of them.
        dtype: Element of the result; f32 by default.
        device: Where a bc.Tensor is made; by default it is a NumPy array.
        out: Array to fill instead of making one; of any framework and device.
    """
    return _filled(size, 1, dtype, device, out)


def _filled(size: tuple[Any, ...], value: int, dtype: Any, device: Any, out: Any) -> Any:
    shape = size[0] if len(size) == 1 and isinstance(size[0], (list, tuple)) else size
    return full(shape, value, dtype=Element.F32 if dtype is None and out is None else dtype, device=device, out=out)


def _shape(size: Any) -> tuple[int, ...]:
    return tuple(check_shape(size if isinstance(size, (list, tuple)) else (size,), "size"))  # type: ignore[arg-type]


def _count(n: Any, name: str) -> int:
    try:
        count = -1 if isinstance(n, bool) else index(n)
    except TypeError:
        count = -1
    if count < 0:
        raise InvalidProblemError(f"{name}: got {n!r}, want an int of at least 0.")
    return count


MOST_NUMBERS = 1 << 40


def _number(value: Any, name: str) -> int | float:
    """A finite number as Python has it; arrays of rank 0 are numbers."""
    if getattr(value, "shape", ()) == () and not isinstance(value, (str, bytes)):
        try:
            return index(value)
        except TypeError:
            pass
        try:
            if isfinite(number := float(value)):
                return number
        except (TypeError, ValueError):
            pass
    raise InvalidProblemError(f"arange: {name}: got {value!r}, want a finite number.")


@composite
def arange(
    start: Any, end: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None, out: Any = None
) -> Any:
    """start, start + step, ... below end (above it for a negative step), as torch.arange.

    Args:
        start: The first number; the end, counted from 0, where it is the only argument.
        end: Where to stop; not included.
        step: Distance of the numbers, not 0.
        dtype: Element of the result; i64 or, where a number is a float, f32 by default.
        device: Where a bc.Tensor is made; by default it is a NumPy array.
        out: Array to fill instead of making one; of the right size, and of any framework and device.

    Raises:
        InvalidProblemError: If the step is 0, or leads away from the end.
    """
    first, last = (0, _number(start, "end")) if end is None else (_number(start, "start"), _number(end, "end"))
    by = _number(step, "step")
    if by == 0 or (last > first if by < 0 else last < first):
        raise InvalidProblemError(f"arange: step: got {step!r}, want a step that leads from {first!r} to {last!r}.")
    element = _element(dtype, out, first, last, by)
    distance = last - first
    if element is Element.I64:  # of which torch cuts all three before it counts, and of others afterwards
        distance = int(last) - int(first)
    if not element.is_float:
        first, by = int(first), int(by)
    if by == 0:
        raise InvalidProblemError(f"arange: step: got {step!r}, want at least 1 (or at most -1) for {element}.")
    try:
        whole = isinstance(distance, int) and isinstance(by, int)
        size = -(-distance // by) if whole else ceil(distance / by)
    except OverflowError:
        size = MOST_NUMBERS
    if size >= MOST_NUMBERS:
        raise InvalidProblemError(f"arange: end: got {last!r}, want fewer than 2^40 numbers. Make the step larger.")
    return _made(ArangeDescriptor, (int(size),), element, out, device, first, by)


@composite
def linspace(start: Any, end: Any, steps: int, *, dtype: Any = None, device: Any = None, out: Any = None) -> Any:
    """`steps` evenly spaced numbers from start to end, both included, as torch.linspace.

    For integers both are cut to whole numbers, and what lies between is computed in f64 and cut.

    Args:
        start: The first number.
        end: The last number.
        steps: How many.
        dtype: Element of the result; f32 by default.
        device: Where a bc.Tensor is made; by default it is a NumPy array.
        out: Array to fill instead of making one; of any framework and device.
    """
    element = Element.F32 if dtype is None and out is None else _element(dtype, out)
    shape = _shape(_count(steps, "steps"))
    if element.is_float:
        return _made(_spaced, shape, element, out, device, start, end)
    from baracuda.memory.tensor import empty
    from baracuda.ops.cast.cast import cast
    from baracuda.ops.indexing.indexing import masked_number

    if element is Element.BOOL:
        raise InvalidProblemError("linspace: dtype: got bool, want an integer or a float.")
    made = fresh(shape, element, device, out)
    place = _core.describe(made)[3:]
    fine = empty(shape, Element.F64, device=name_of((place[0], place[1])))
    ends = (masked_number(start, element, "start"), masked_number(end, element, "end"))
    _made(_spaced, shape, Element.F64, fine, None, *ends)
    return cast(fine, element, out=made)


@composite
def eye(n: int, m: int | None = None, *, dtype: Any = None, device: Any = None, out: Any = None) -> Any:
    """Ones on the diagonal of an (n, m) matrix of zeros, as torch.eye.

    Args:
        n: Rows.
        m: Columns; as many as rows by default.
        dtype: Element of the result; f32 by default.
        device: Where a bc.Tensor is made; by default it is a NumPy array.
        out: Array to fill instead of making one; of any framework and device.
    """
    element = Element.F32 if dtype is None and out is None else _element(dtype, out)
    shape = _shape((_count(n, "n"), _count(n if m is None else m, "m")))
    return _made(EyeDescriptor, shape, element, out, device)
