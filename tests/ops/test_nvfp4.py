"""NVFP4 beside ml_dtypes' 4-bit and 8-bit floats."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import baracuda as bc
import baracuda.functional as F


def expected(x: Any, whole: Any) -> tuple[Any, Any]:
    """Codes and scales by ml_dtypes."""
    blocks = x.astype(np.float32).reshape(*x.shape[:-1], x.shape[-1] // 16, 16)
    with np.errstate(all="ignore"):
        wanted = np.minimum(np.abs(blocks).max(-1, initial=0) / np.float32(6) / whole, np.float32(448))
        scales = wanted.astype(ml_dtypes.float8_e4m3fn)
        each = scales.astype(np.float32)[..., None] * whole
        v = np.where(each > 0, blocks / np.where(each > 0, each, 1), np.float32(0))
        codes = np.clip(v, -6, 6).astype(ml_dtypes.float4_e2m1fn)
    return codes.reshape(x.shape), scales


@pytest.mark.parametrize("shape", [(16,), (3, 48), (2, 1, 5, 64), (0, 16), (4, 0)])
def test_codes_and_scales_are_those_of_ml_dtypes(shape: tuple[int, ...], rng: np.random.Generator) -> None:
    x = (rng.normal(0, 1, shape) * 10.0 ** rng.uniform(-6, 4, (*shape[:-1], 1))).astype(np.float32)
    if x.size:
        x.flat[:16] = np.array([0, -0.0, 0.25, 0.5, 0.75, 1.25, 1.75, 2.5, 3.5, 5, 6, -0.25, -1.75, -2.5, -5, -6])
        codes, scales, whole = F.nvfp4_quantize(x)
        assert whole == max(np.abs(x).max() / np.float32(2688), 0)
    for given in (np.float32(1), np.float32(0.0123)):
        codes, scales, whole = F.nvfp4_quantize(x, np.asarray(given))
        numbers, wanted = expected(x, given)
        assert np.array_equal(scales.view(np.uint8), wanted.view(np.uint8)) and whole == given
        unpacked = F.unpack_int4(codes, "u4", "u8") if x.size else np.zeros(shape, np.uint8)
        assert np.array_equal(unpacked, numbers.view(np.uint8))
        back = F.nvfp4_dequantize(codes, scales, whole)
        each = np.repeat(wanted.astype(np.float32) * given, 16, -1)
        assert np.array_equal(back, numbers.astype(np.float32) * each)


def test_what_is_not_finite_reads_as_nan(rng: np.random.Generator) -> None:
    x = rng.normal(0, 1, (4, 32)).astype(np.float32)
    x[0, 3], x[1, 20], x[2, :16] = np.nan, np.inf, 0
    back = F.nvfp4_dequantize(*F.nvfp4_quantize(x))
    assert np.isnan(back[0, :16]).all() and np.isnan(back[1, 16:]).all() and not back[2, :16].any()
    assert np.isfinite(back[3]).all() and np.isfinite(back[0, 16:]).all()


@pytest.mark.parametrize("shape", [(0, 16), (2, 0), (0, 3, 32)])
def test_nothing_is_quantized(shape: tuple[int, ...]) -> None:
    codes, scales, whole = F.nvfp4_quantize(np.zeros(shape, np.float32))
    assert codes.shape == (*shape[:-1], shape[-1] // 2) and scales.shape == (*shape[:-1], shape[-1] // 16)
    assert whole == 1 and F.nvfp4_dequantize(codes, scales, whole).shape == shape


def test_wrong_calls_are_refused() -> None:
    x = np.ones((2, 32), np.float32)
    codes, scales, whole = F.nvfp4_quantize(x)
    with pytest.raises(bc.InvalidProblemError, match=r"input: got f32 \(2, 24\), want f32, f16 or bf16"):
        F.nvfp4_quantize(x[:, :24])
    with pytest.raises(bc.InvalidProblemError, match=r"global_scale: got f32 \(1,\), want f32 without"):
        F.nvfp4_quantize(x, np.ones(1, np.float32))
    with pytest.raises(bc.InvalidProblemError, match=r"scale: got f8e4m3 \(2, 1\), want f8e4m3 \(2, 2\)"):
        F.nvfp4_dequantize(codes, np.ascontiguousarray(scales[:, :1]), whole)
    with pytest.raises(bc.InvalidProblemError, match=r"input: got u8 \(2, 12\), want u8"):
        F.nvfp4_dequantize(np.ascontiguousarray(codes[:, :12]), scales, whole)
    with pytest.raises(bc.InvalidProblemError, match="dtype: got i8, want f32, f16 or bf16"):
        F.nvfp4_dequantize(codes, scales, whole, "i8")
