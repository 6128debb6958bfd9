"""Norms and gated activations whose results are codes, beside the float result quantized by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import baracuda as bc
import baracuda.functional as F

EIGHTS = {"f8e4m3": ml_dtypes.float8_e4m3fn, "f8e5m2": ml_dtypes.float8_e5m2}
Fused = Callable[..., Any]
# Functions with the ones that they are an epilogue of, as functions of x and of a weight as long as x's rows.
PAIRS: dict[str, tuple[Fused, Fused]] = {
    "rms_norm": (
        lambda x, w, **k: F.rms_norm_quantize(x, w, 1e-6, **k),
        lambda x, w: F.rms_norm(x, x.shape[-1:], w, 1e-6),
    ),
    "layer_norm": (
        lambda x, w, **k: F.layer_norm_quantize(x, w, w, **k),
        lambda x, w: F.layer_norm(x, x.shape[-1:], w, w),
    ),
    "glu": (lambda x, w, **k: F.glu_quantize(x, **k), lambda x, w: F.glu(x)),
    "reglu": (lambda x, w, **k: F.reglu_quantize(x, **k), lambda x, w: F.reglu(x)),
    "swiglu": (lambda x, w, **k: F.swiglu_quantize(x, **k), lambda x, w: F.swiglu(x)),
    "geglu": (lambda x, w, **k: F.geglu_quantize(x, **k), lambda x, w: F.geglu(x)),
    "silu_and_mul": (lambda x, w, **k: F.silu_and_mul_quantize(x, **k), lambda x, w: F.silu_and_mul(x)),
}


def places(codes: Any) -> Any:
    """Codes as whole numbers in the order of what they stand for, so that neighbours are 1 apart."""
    if codes.dtype == np.int8:
        return codes.astype(np.int64)
    bits = codes.view(np.uint8).astype(np.int64)
    return np.where(bits >= 128, 128 - bits, bits)


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("dtype", ["i8", "f8e4m3", "f8e5m2"])
@pytest.mark.parametrize("shape", [(3, 512), (2, 3, 8192), (1, 1156), (2, 40000)])
def test_f32_has_the_bits_of_the_result_quantized_by_itself(
    name: str, dtype: str, shape: tuple[int, ...], rng: np.random.Generator
) -> None:
    fused, plain = PAIRS[name]
    x, w = rng.normal(0, 2, shape).astype(np.float32), rng.normal(1, 0.2, shape[-1:]).astype(np.float32)
    y = plain(x, w)
    for group in (None, y.shape[-1] // 2, 2):
        codes, scale = fused(x, w, dtype=dtype, group=group)
        wanted, scales = F.dynamic_quantize(y, (*(1,) * (y.ndim - 1), group or -1), dtype)
        assert np.array_equal(scale, scales) and np.array_equal(codes.view(np.uint8), wanted.view(np.uint8))
    for one in (np.full((), 0.03, np.float32), np.full((1, 1), 0.03, np.float32), 0.03):
        codes = fused(x, w, dtype=dtype, scale=one)
        wanted = F.quantize_linear(y, np.full((), 0.03, np.float32), None, dtype)
        assert np.array_equal(codes.view(np.uint8), wanted.view(np.uint8))


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("dtype", ["i8", "f8e4m3", "f8e5m2"])
@pytest.mark.parametrize("element", [np.float16, ml_dtypes.bfloat16])
def test_halves_are_within_a_code_of_the_rounded_result(
    name: str, dtype: str, element: Any, rng: np.random.Generator
) -> None:
    fused, plain = PAIRS[name]
    x, w = rng.normal(0, 2, (9, 770)).astype(element), rng.normal(1, 0.2, 770).astype(element)
    codes, scale = fused(x, w, dtype=dtype)
    y = plain(x, w)
    wanted, scales = F.dynamic_quantize(y, (1, -1), dtype)
    normal = np.abs(y.astype(np.float32)) >= float(ml_dtypes.finfo(element).smallest_normal)
    assert np.abs(places(codes) - places(wanted))[normal].max() <= 1
    assert np.allclose(scale, scales, rtol=float(ml_dtypes.finfo(element).eps))


@pytest.mark.parametrize("norm", ["rms_norm", "layer_norm"])
def test_a_residual_is_added_before_and_the_sum_is_a_result(norm: str, rng: np.random.Generator) -> None:
    x, r, w = (rng.normal(0, 1, s).astype(ml_dtypes.bfloat16) for s in ((4, 300), (4, 300), (300,)))
    fused = getattr(F, f"{norm}_quantize")
    codes, scale, total = fused(x, w, residual=r)
    assert np.array_equal(total, F.add(x, r))
    again, scales = fused(total, w)
    assert np.array_equal(codes, again) and np.array_equal(scale, scales)
    only, total = fused(x, w, residual=r, scale=0.02)
    assert only.dtype == np.int8 and np.array_equal(total, F.add(x, r))
    desc = bc.NormQuantizeDescriptor(f"{norm}_quantize", x.shape, "bf16", residual=True)
    y, found = np.empty(x.shape, np.int8), np.empty((4, 1), np.float32)
    for place in (x.copy(), r.copy()):
        first, second = (place, r) if np.array_equal(place, x) else (x, place)
        bc.plan(desc).run(x=first, residual=second, weight=w, y=y, scale=found, sum=place, eps=1e-5)
        assert np.array_equal(place, F.add(x, r)) and np.array_equal(y, fused(x, w, eps=1e-5, residual=r)[0])


def test_weights_may_be_distances_from_one(rng: np.random.Generator) -> None:
    x, w = rng.normal(0, 1, (3, 400)).astype(np.float32), rng.normal(0, 0.1, 400).astype(np.float32)
    codes, _ = F.rms_norm_quantize(x, w, weight_offset=1.0)
    assert np.array_equal(codes, F.dynamic_quantize(F.rms_norm(x, (400,), w, weight_offset=1.0), (1, -1))[0])


def test_rows_are_coded_by_themselves_and_zeros_and_nan_show(rng: np.random.Generator) -> None:
    x = rng.normal(0, 1, (4, 64)).astype(np.float32)
    x[1], x[2, 5] = 0, np.nan
    codes, scale = F.rms_norm_quantize(x, group=16)
    assert scale.shape == (4, 4) and not scale[1].any() and not codes[1].any()
    assert np.isnan(scale[2]).all() and not codes[2].any() and np.isfinite(scale[[0, 3]]).all()
    codes, scale = F.swiglu_quantize(x, dtype="f8e4m3", group=8)
    assert np.isnan(scale[2, 0]) and np.isfinite(scale[2, 1:]).all()
    assert np.isnan(codes[2, :8].astype(np.float32)).all() and not codes[1].astype(np.float32).any()


def test_any_strides(rng: np.random.Generator) -> None:
    x = rng.normal(0, 1, (600, 5)).astype(np.float32).T
    plain = np.ascontiguousarray(x)
    for name, (fused, _) in PAIRS.items():
        got, want = fused(x[:, ::-1], plain[0]), fused(np.ascontiguousarray(plain[:, ::-1]), plain[0])
        assert all(np.array_equal(a, b) for a, b in zip(got, want, strict=True)), name


def test_skus_say_what_they_do_behind_the_result() -> None:
    sku = bc.plan(bc.NormQuantizeDescriptor("rms_norm_quantize", (2, 64))).sku
    assert sku.epilogue == ("quantize_tensor", "quantize_token", "quantize_group")
    assert sku.aux_element == bc.Element.I8


def test_wrong_calls_are_refused() -> None:
    x = np.ones((2, 64), np.float32)
    with pytest.raises(bc.InvalidProblemError, match=r"group: got 24, want a divisor of the last size, 64, or None"):
        F.rms_norm_quantize(x, group=24)
    with pytest.raises(bc.InvalidProblemError, match=r"group: got 16, want None with a scale that is given"):
        F.swiglu_quantize(x, scale=0.1, group=16)
    with pytest.raises(bc.InvalidProblemError, match=r"scale: got shape \(2,\), want one number for all values"):
        F.rms_norm_quantize(x, scale=np.ones(2, np.float32))
    with pytest.raises(bc.InvalidProblemError, match="dtype: got u8, want i8, f8e4m3 or f8e5m2"):
        F.geglu_quantize(x, dtype="u8")
    with pytest.raises(bc.InvalidProblemError, match="element: got 'f64', want f32, f16 or bf16"):
        F.layer_norm_quantize(x.astype(np.float64))
    with pytest.raises(bc.InvalidProblemError, match=r"got only numbers .* want at least one tensor"):
        F.rms_norm_quantize(x[0, 0])
