"""bf16 and 8-bit floats in NumPy, where the package ml_dtypes is not installed.

Such an array has records of one field that is named as the element and holds its bits: `dtype([("bf16", "u2")])`. It goes
to plans by its address; the references read and round its numbers here, by the formats' definitions.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError

if TYPE_CHECKING:
    from baracuda.prove.reference import Array

# Bits of the fraction, the exponent's bias, and the code from which on there are no finite numbers.
FORMATS = {
    Element.BF16: (7, 127, 0x7F80),
    Element.F8E4M3: (3, 7, 0x7F),
    Element.F8E5M2: (2, 15, 0x7C),
}
_QUIET_NAN = {Element.BF16: 0x7FC0, Element.F8E4M3: 0x7F, Element.F8E5M2: 0x7E}


def storage(element: Element) -> np.dtype[Any]:
    """The NumPy dtype of an element's memory: its own, or records of its bits."""
    try:
        return element.numpy
    except InvalidProblemError:
        return records(element)


def records(element: Element) -> np.dtype[Any]:
    """The dtype of an element's bits."""
    return np.dtype([(str(element), f"u{element.nbytes}")])


def is_records(array: Array) -> bool:
    """Whether an array has no dtype of NumPy's own."""
    return array.dtype.names is not None


@cache
def _magnitudes(element: Element) -> Array:
    """The numbers of the codes without a sign, up to what would follow the largest finite one."""
    stored, bias, end = FORMATS[element]
    codes = np.arange(end + 1)
    fraction, exponent = codes & ((1 << stored) - 1), codes >> stored
    return np.asarray(np.ldexp(fraction + (exponent > 0) * float(1 << stored), np.maximum(exponent, 1) - bias - stored))


@cache
def numbers(element: Element) -> Array:
    """The number of each code."""
    stored, _, end = FORMATS[element]
    count, codes = 1 << element.bits - 1, np.arange(1 << element.bits - 1)
    found = np.full(count, np.nan)
    found[:end] = _magnitudes(element)[:end]
    if end >> stored << stored == end:  # the largest exponent is that of inf and NaN
        found[codes == end] = np.inf
    return np.concatenate([found, -found])


def decode(array: Array) -> Array:
    """The numbers of records, as float64."""
    name = (array.dtype.names or ("",))[0]
    return np.asarray(numbers(Element.coerce(name))[array[name]])


def encode(values: Array, element: Element) -> Array:
    """Records of the nearest numbers, ties to even; what is beyond the largest is the format's inf or NaN."""
    _, _, end = FORMATS[element]
    table, values = _magnitudes(element), np.asarray(values)
    sizes = np.abs(values if values.dtype.kind == "f" else values.astype(np.float64))
    above = np.clip(np.searchsorted(table, sizes), 1, end)  # the first number that is not smaller
    with np.errstate(invalid="ignore"):
        down, up = sizes - table[above - 1], table[above] - sizes
        codes = np.where((down > up) | ((down == up) & (above % 2 == 0)), above, above - 1)
    codes = np.where(np.isnan(sizes), _QUIET_NAN[element], codes) | np.signbit(values) << element.bits - 1
    out = np.empty(np.shape(values), records(element))
    out[str(element)] = codes
    return out


def next_after(values: Array, way: Array, element: Element) -> Array:
    """The neighbours of an element's numbers in the direction of `way`, as np.nextafter."""
    stored = str(element)
    codes, bits = encode(values, element)[stored].astype(np.int64), element.bits - 1
    ordered = np.where(codes >> bits, -(codes & (1 << bits) - 1), codes)
    ordered = ordered + (way > values).astype(np.int64) - (way < values)
    found = numbers(element)[np.abs(ordered)]
    return np.where(np.isnan(values), values, np.copysign(found, np.where(ordered == 0, values, ordered)))
