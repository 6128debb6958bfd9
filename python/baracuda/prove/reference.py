"""What a family's reference module (`ops/<family>/<part>_ref.py`) provides, and how a guarantee becomes a tolerance.

Imported by `verify` and the tests only.

A reference module defines:

    def cases(op, direction, element, rng) -> Iterator[Case]
        Problems with inputs: small ones of different ranks and sizes, special values among them. Inputs are float64 (or
        integer, bool) arrays; the harness rounds them to the plan's elements before either side sees them.

    def reference(case) -> dict[str, Expected]
        The outputs in float64, from the rounded inputs.

and, where the op has a gradient:

    def forward_of(case) -> Case
        For a backward case: the forward case with the same inputs. Gradients are then checked by differences: output `dx`
        is the gradient with respect to input `x`, and input `dy` belongs to output `y`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from baracuda import _index
from baracuda.describe.elements import Element
from baracuda.prove.narrow import decode, encode, is_records, storage

if TYPE_CHECKING:
    from types import CodeType, ModuleType

    from baracuda.choose.sku import PrecisionGuarantee
    from baracuda.describe.spec import Descriptor

Array = np.ndarray[Any, Any]


@dataclass(slots=True)
class Case:
    """A problem with its inputs.

    Attributes:
        descriptor: The problem.
        tensors: Inputs and in-out tensors by name; a list of arrays for a variadic argument.
        scalars: Numbers by name.
        note: What is special about it, for messages.
        exact_gradient: Whether finite differences make sense here (no kinks or ties at the inputs).
    """

    descriptor: Descriptor
    tensors: dict[str, Any]
    scalars: dict[str, float | int] = field(default_factory=dict)
    note: str = ""
    exact_gradient: bool = True


@dataclass(slots=True)
class Expected:
    """An output in float64 with what its error bound needs.

    Attributes:
        value: The result; integers for integer outputs, extended precision (np.longdouble) where f64 must be held to an ulp.
        magnitude: sum |terms|, for bounds of kind "sum"; |value| by default.
        terms: K, the number of terms that are summed.
        reach: The largest size of what the formula forms on its way, where that is more than the magnitude: a sum that is
            divided, a product before it is scaled. Where the compute element cannot hold it nothing is promised.
        lost: What a term below the smallest normal number counts for in the result, where that is not once.
        step: Where results within the bound are rounded to codes (integers, 8-bit floats): the distance between the codes near
            the value.
    """

    value: Any
    magnitude: Any = None
    terms: int = 1
    reach: Any = None
    lost: Any = None
    step: Any = None


def gradient(dy: Array, slope: Array, size: Array | None = None) -> Expected:
    """Of a function of single numbers: dy times a derivative, which alone must fit; either may be lost before it is multiplied.

    Args:
        dy: The gradient with respect to the result.
        slope: The derivative.
        size: The magnitudes of its terms.
    """
    lost = 1 + np.abs(dy) + np.abs(slope)
    return Expected(dy * slope, None if size is None else np.abs(dy) * size, reach=np.abs(slope), lost=lost)


def reference_module(op: str) -> ModuleType:
    """The reference module of an op's family."""
    return import_module(_index.OPS[op] + "_ref")


def evaluate(formula: str, **names: Any) -> Array:
    """The value of a formula such as "1 / (1 + x)" that a spec carries.

    Args:
        formula: A Python expression of `names` and of what NumPy calls its functions.
        **names: Arrays, and functions besides NumPy's.
    """
    return np.asarray(eval(_compiled(formula), {"__builtins__": {}, **vars(np), **names}))


@cache
def _compiled(formula: str) -> CodeType:
    return compile(formula, f"<{formula}>", "eval")


def round_to(values: Array, element: Element) -> Array:
    """Values rounded to an element, as the array that a plan is given."""
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        dtype = storage(element)
        return encode(np.asarray(values), element) if dtype.names else np.asarray(values).astype(dtype)


def to_reference(values: Array) -> Array:
    """A plan's array as the reference sees it: float64 for floats, unchanged otherwise."""
    if is_records(values):
        return decode(values)
    if values.dtype.kind in "fV" or values.dtype.name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        return values.astype(np.float64)
    return values


_MANTISSA = {
    Element.F16: 10, Element.BF16: 7, Element.F32: 23, Element.F64: 52, Element.F8E4M3: 3, Element.F8E5M2: 2,
}  # fmt: skip
_LEAST_EXPONENT = {
    Element.F16: -14, Element.BF16: -126, Element.F32: -126, Element.F64: -1022, Element.F8E4M3: -6, Element.F8E5M2: -14,
}  # fmt: skip
LARGEST = {
    Element.F16: 65504.0,
    Element.BF16: 3.3895313892515355e38,
    Element.F32: 3.4028234663852886e38,
    Element.F64: 1.7976931348623157e308,
}


def ulp(values: Array, element: Element) -> Array:
    """The distance between neighbouring numbers of an element at |values|."""
    with np.errstate(all="ignore"):
        mantissa, exponent = np.frexp(np.abs(values))
    exponent = np.where(mantissa == 0, _LEAST_EXPONENT[element], np.maximum(exponent - 1, _LEAST_EXPONENT[element]))
    spacing: Array = np.ldexp(1.0, exponent - _MANTISSA[element])
    return spacing


def epsilon(element: Element) -> float:
    """Spacing of an element at 1."""
    return float(2.0 ** -_MANTISSA[element])


def tolerance(guarantee: PrecisionGuarantee, element: Element, stored: Element, expected: Expected) -> Array:
    """The largest |error| that a guarantee allows, element by element.

    Args:
        guarantee: The row's promise.
        element: The plan's primary element; its compute element counts the ulp.
        stored: The output's own element, to which the result is rounded once more.
        expected: The reference.
    """
    value = _wide(expected.value)
    compute = element.compute if element.is_float else Element.F64
    finest = stored if stored.is_half else compute
    rounding = 0.5 * ulp(value, stored) if stored.is_float and finest != compute else np.zeros_like(value)
    codes = np.zeros(()) if expected.step is None else 0.5 * (1 + 2.0**-20) * _wide(expected.step)
    if guarantee.bound == "exact":
        # The reference itself is rounded, which matters where the result lies half-way between two numbers.
        return 0.5 * (1 + 2.0**-8) * ulp(value, stored) if stored.is_float else np.zeros_like(value)
    if not element.is_float and guarantee.accumulator.is_float:  # 8-bit elements
        compute = guarantee.accumulator
    magnitude = _wide(np.abs(expected.value) if expected.magnitude is None else expected.magnitude)
    if guarantee.bound == "ulp":
        error, lost, sizes = guarantee.c * ulp(value, compute) + rounding, np.zeros(()), []
    else:
        error = guarantee.c * epsilon(compute) * np.sqrt(max(expected.terms, 1)) * magnitude
        error, lost, sizes = error + 0.5 * ulp(value, stored if stored.is_float else compute), np.ones(()), [magnitude]
    if expected.lost is not None:
        lost = _wide(expected.lost)
    if expected.reach is not None:
        sizes.append(_wide(expected.reach))
    # Terms below the smallest normal number may be lost, and sums of sizes that overflow are not promised; where it is
    # an input that is infinite, the result is.
    with np.errstate(all="ignore"):
        error = error + lost * 2.0 ** _LEAST_EXPONENT[compute]
        for size in sizes:
            error = np.where((size > LARGEST[compute]) & (np.isfinite(size) | np.isfinite(value)), np.inf, error)
    return np.asarray(error + codes)


def _wide(values: Any) -> Array:
    with np.errstate(over="ignore"):
        return np.asarray(values, np.float64)


def worst(
    actual: Array, expected: Expected, guarantee: PrecisionGuarantee, element: Element, stored: Element
) -> tuple[float, str]:
    """The largest error in units of what is allowed (at most 1 is kept), and a description of where it is."""
    value = np.asarray(expected.value)
    if actual.shape != value.shape:
        return float("inf"), f"shape {actual.shape}, want {value.shape}"
    if actual.size == 0:
        return 0.0, ""
    got = to_reference(actual)
    if not stored.is_float and expected.step is None:
        wrong = (got != value) & ~((got != got) & (value != value))
        where = np.argwhere(wrong)
        return (
            (float("inf"), f"at {where[0].tolist()}: {got[tuple(where[0])]}, want {value[tuple(where[0])]}")
            if len(where)
            else (0.0, "")
        )
    value = value if value.dtype == np.longdouble else value.astype(np.float64)
    for name in ("magnitude", "reach", "lost"):
        size = getattr(expected, name)
        if size is not None and np.any(_wide(size) < 0):
            return float("inf"), f"the reference gives a negative {name}: {np.min(size)}"
    allowed = tolerance(guarantee, element, stored, expected)
    with np.errstate(all="ignore"):
        error = np.abs(got - value)
        share = np.where(error == 0, 0.0, error / np.maximum(allowed, 5e-324))
        same = (np.isnan(got) & np.isnan(value)) | (got == value)
        kept = same | np.isposinf(allowed)
        if stored.is_float:
            kept |= (
                np.isinf(got)
                & (np.abs(value) + allowed + 0.5 * ulp(value, stored) >= LARGEST[stored])
                & (np.sign(got) == np.sign(value))
            )
            kept |= np.isinf(value) & np.isfinite(got) & (np.abs(got) >= LARGEST[stored]) & (allowed > 0)
        share = np.where(kept, 0.0, np.where(np.isfinite(got) & np.isfinite(value), share, np.inf))
    at = np.unravel_index(int(np.argmax(share)), share.shape)
    text = f"at {list(map(int, at))}: got {got[at]!r}, want {value[at]!r}, allowed error {np.broadcast_to(allowed, value.shape)[at]:.3g}"
    return float(share[at]), text
