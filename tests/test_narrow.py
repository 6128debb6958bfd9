"""bf16 and 8-bit floats without ml_dtypes: the same numbers as with it, and every row of theirs is verified."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from baracuda.describe.elements import Element
from baracuda.prove.narrow import FORMATS, decode, encode, is_records, next_after, numbers, records, storage

DTYPES = {
    Element.BF16: ml_dtypes.bfloat16,
    Element.F8E4M3: ml_dtypes.float8_e4m3fn,
    Element.F8E5M2: ml_dtypes.float8_e5m2,
}
EACH = pytest.mark.parametrize("element", FORMATS, ids=str)


def same(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    nan = np.isnan(a)
    return bool(
        np.array_equal(nan, np.isnan(b)) and np.all((a == b) | nan) and np.all((np.signbit(a) == np.signbit(b)) | nan)
    )


def wide(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    with np.errstate(invalid="ignore"):  # ml_dtypes says so of NaN
        return np.asarray(x.astype(np.float64))


def codes(element: Element) -> np.ndarray[Any, Any]:
    return np.arange(1 << element.bits).astype(f"u{element.nbytes}")


@EACH
def test_numbers_of_all_codes(element: Element) -> None:
    wanted = wide(codes(element).view(DTYPES[element]))
    assert same(numbers(element), wanted)
    assert same(decode(codes(element).view(records(element))), wanted)


@EACH
def test_nearest_numbers_ties_to_even(element: Element) -> None:
    """Values are of f32: ml_dtypes rounds twice where they are not."""
    rng, every = np.random.default_rng(1), numbers(element)
    every = np.unique(every[np.isfinite(every)])
    middles = ((every[1:] + every[:-1]) / 2).astype(np.float32)
    beside = [np.nextafter(middles, np.float32(side)) for side in (np.inf, -np.inf)]
    ends = np.array([464, 465, 480, 61440, 61441, 65536, 3.4e38, np.inf, 0, 1e-45], np.float32)
    any_size = np.ldexp(rng.normal(size=20000), rng.integers(-148, 126, 20000)).astype(np.float32)
    x = np.concatenate([every.astype(np.float32), middles, *beside, ends, -ends, [np.float32(np.nan)], any_size])
    with np.errstate(over="ignore", invalid="ignore"):
        wanted = x.astype(DTYPES[element])
    found = encode(x.astype(np.float64), element)
    assert is_records(found) and found.dtype.itemsize == element.nbytes
    assert same(decode(found), wide(wanted))
    held = found[str(element)]
    numeric = ~np.isnan(wide(wanted))
    assert np.array_equal(held[numeric], wanted.view(held.dtype)[numeric])
    assert same(decode(encode(np.array([3, -1, 0]), element)), np.array([3.0, -1.0, 0.0])), "integers, too"


def test_neighbours() -> None:
    x = codes(Element.BF16).view(ml_dtypes.bfloat16)
    for way in (np.inf, -np.inf):
        with np.errstate(invalid="ignore"):
            wanted = np.nextafter(x, ml_dtypes.bfloat16(way))
        assert same(next_after(wide(x), np.full(x.shape, way), Element.BF16), wide(wanted))


def test_elements_that_numpy_has_are_stored_as_they_are() -> None:
    assert storage(Element.F16) == np.dtype(np.float16) and not is_records(np.zeros(2, storage(Element.BF16)))


PROBE = """
import json, sys
if {without}: sys.modules["ml_dtypes"] = None
from baracuda.describe.elements import Element
from baracuda.prove.narrow import storage
from baracuda.prove.verify import candidates, verify
print(storage(Element.BF16).names)
found = {{}}
for op in "cast add nextafter swiglu rms_norm_add uniform scaled_matmul scaled_dot_product_attention cat adamw".split():
    for direction in ("forward", "backward"):
        for element in (Element.F32, Element.BF16, Element.F8E4M3, Element.F8E5M2):
            for variant in candidates(op, direction, element):
                r = verify(op, direction, element, variant, most_elements=1 << 12, stretched=4, batched=1)
                found[r.sku] = [r.cases, r.worst_error, r.problems]
print(json.dumps(found))
"""


def test_rows_are_verified_without_ml_dtypes() -> None:
    """As many cases, and bit for bit the same errors, as where it is installed."""
    env = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    said = [
        subprocess.check_output([sys.executable, "-c", PROBE.format(without=w)], text=True, env=env).splitlines()
        for w in (False, True)
    ]
    assert [s[0] for s in said] == ["None", "('bf16',)"]
    with_it, without = (json.loads(s[1]) for s in said)
    assert without == with_it
    assert [k for k, (_, _, problems) in without.items() if problems] == []
    assert sum(cases for cases, _, _ in without.values()) > 400
    assert {k.split(".")[3] for k in without} == {"f32", "bf16", "f8e4m3", "f8e5m2"}
