"""4-bit integers in bytes beyond the generated tests: round trips, ml_dtypes' numbers, refusals."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

import baracuda as bc
import baracuda.functional as F


@pytest.mark.parametrize("name", ["s4", "u4"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64, np.int8])
def test_numbers_are_those_of_ml_dtypes(name: str, dtype: Any) -> None:
    x = np.arange(16, dtype=np.float64) - (8 if name == "s4" else 0)
    other = {"s4": ml_dtypes.int4, "u4": ml_dtypes.uint4}[name]
    codes = x.astype(other).view(np.uint8) & 15
    packed = F.pack_int4(x.astype(dtype), name)
    assert packed.dtype == np.uint8 and np.array_equal(packed, codes[::2] | codes[1::2] << 4)
    back = F.unpack_int4(packed, name, bc.Element.coerce(np.dtype(dtype), "dtype"))
    assert back.dtype == dtype and np.array_equal(back, x)


def test_ties_go_to_even_and_the_rest_to_the_ends() -> None:
    x = torch.tensor([0.5, 1.5, 2.5, -0.5, -1.5, 7.5, 1e30, -torch.inf, torch.nan, -8.6], dtype=torch.float32)
    assert F.unpack_int4(F.pack_int4(x)).tolist() == [0, 2, 2, 0, -2, 7, 7, -8, 0, -8]
    assert F.unpack_int4(F.pack_int4(x, "u4"), "u4").tolist() == [0, 2, 2, 0, 0, 8, 15, 0, 0, 0]
    halves = F.unpack_int4(F.pack_int4(x.bfloat16()), dtype="bf16")
    assert halves.dtype == torch.bfloat16 and halves.tolist() == [0, 2, 2, 0, -2, 7, 7, -8, 0, -8]


def test_odd_rows_end_with_half_a_byte(rng: np.random.Generator) -> None:
    x = rng.integers(-8, 8, (4, 6, 5)).astype(np.int8)[:, ::2]
    packed = F.pack_int4(x)
    assert packed.shape == (4, 3, 3) and (packed[..., -1] < 16).all()
    assert np.array_equal(F.unpack_int4(packed, dtype="i8", size=5), x)
    assert np.array_equal(F.unpack_int4(packed, dtype="i8")[..., :5], x)


def test_bytes_between_strided_outputs_stay(rng: np.random.Generator) -> None:
    x = rng.integers(-8, 8, (3, 9)).astype(np.float32)
    room = np.full((3, 10), 99, np.uint8)
    bc.plan(bc.PackInt4Descriptor((3, 9))).run(x=x, y=room[:, ::2])
    assert np.array_equal(room[:, ::2], F.pack_int4(x)) and (room[:, 1::2] == 99).all()


def test_wrong_calls_are_refused() -> None:
    x = np.zeros((2, 3), np.float32)
    with pytest.raises(bc.InvalidProblemError, match="packed_element: got 'f32', want s4 or u4"):
        F.pack_int4(x, "f32")
    with pytest.raises(bc.InvalidProblemError, match=r"got only numbers .* want at least one tensor"):
        F.pack_int4(x[0, 0])
    with pytest.raises(bc.InvalidProblemError, match="input: got f32"):
        F.unpack_int4(x)
    with pytest.raises(bc.InvalidProblemError, match="size: got 3, want 6, or one less, of 3 bytes"):
        F.unpack_int4(x.astype(np.uint8), size=3)
    with pytest.raises(bc.UnsupportedError):
        F.pack_int4(x.astype(np.int64))
