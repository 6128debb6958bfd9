"""The MX formats beside ml_dtypes' small floats."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import baracuda as bc
import baracuda.functional as F

# The element of codes, the exponent of its largest number, and that number.
FLOATS: dict[str, tuple[Any, int, float]] = {
    "mxfp8_e4m3": (ml_dtypes.float8_e4m3fn, 8, 448.0),
    "mxfp8_e5m2": (ml_dtypes.float8_e5m2, 15, 57344.0),
    "mxfp6_e2m3": (ml_dtypes.float6_e2m3fn, 2, 7.5),
    "mxfp6_e3m2": (ml_dtypes.float6_e3m2fn, 4, 28.0),
    "mxfp4": (ml_dtypes.float4_e2m1fn, 2, 6.0),
}
FORMATS = [*FLOATS, "mxint8"]


def expected(x: Any, name: str) -> tuple[Any, Any, Any]:
    """Codes as bytes, one each, scales, and the values of both."""
    blocks = x.astype(np.float64).reshape(*x.shape[:-1], x.shape[-1] // 32, 32)
    most = np.abs(blocks).max(-1, initial=0)
    exponent = np.frexp(np.where(most > 0, most, 2.0**-149))[1] - 1
    top = FLOATS[name][1] if name in FLOATS else 0
    power = np.maximum(exponent - top, -127)
    v = (blocks / np.exp2(power)[..., None]).reshape(x.shape)
    if name in FLOATS:
        kind, _, largest = FLOATS[name]
        codes = np.clip(v, -largest, largest).astype(np.float32).astype(kind)
        numbers = codes.astype(np.float64)
    else:
        codes = np.clip(np.rint(v * 64), -127, 127).astype(np.int8)
        numbers = codes / 64.0
    back = numbers.reshape(blocks.shape) * np.exp2(power)[..., None]
    return codes.view(np.uint8), (power + 127).astype(np.uint8), back.reshape(x.shape).astype(np.float32)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("shape", [(32,), (3, 96), (2, 1, 5, 64), (0, 32), (4, 0)])
def test_codes_and_scales_are_those_of_ml_dtypes(name: str, shape: tuple[int, ...], rng: np.random.Generator) -> None:
    x = (rng.normal(0, 1, shape) * 2.0 ** rng.uniform(-140, 120, (*shape[:-1], 1))).astype(np.float32)
    codes, scales = F.mx_quantize(x, name)
    if name == "mxfp4" and x.size:
        codes = F.unpack_int4(codes, "u4", "u8")
    if x.size:
        wanted, powers, back = expected(x, name)
        assert np.array_equal(scales, powers) and np.array_equal(codes.view(np.uint8), wanted)
        assert np.array_equal(F.mx_dequantize(*F.mx_quantize(x, name), name), back)
    assert scales.shape == (*shape[:-1], shape[-1] // 32) and scales.dtype == np.uint8


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("element", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_ties_ends_and_zeros(name: str, element: Any) -> None:
    top = FLOATS[name][2] if name in FLOATS else 127 / 64
    x = np.zeros((4, 32), np.float32)
    x[0] = np.linspace(-1, 1, 32) * top
    x[1] = (np.arange(32) - 15) * top / 64  # ties of all binades
    x[2, :4] = top, -top, -0.0, top * 2.0**-9
    codes, scales = F.mx_quantize(x.astype(element), name)
    if name == "mxfp4":
        codes = F.unpack_int4(codes, "u4", "u8")
    wanted, powers, _ = expected(x.astype(element).astype(np.float32), name)
    assert np.array_equal(codes.view(np.uint8), wanted) and np.array_equal(scales, powers)
    assert not scales[3].any()


@pytest.mark.parametrize("name", list(FLOATS)[2:4])
def test_every_code_is_read(name: str) -> None:
    codes = np.arange(64, dtype=np.uint8).reshape(2, 32)
    for scale in (0, 1, 127, 200, 254):
        y = F.mx_dequantize(codes, np.full((2, 1), scale, np.uint8), name)
        wanted = codes.view(FLOATS[name][0]).astype(np.float64) * 2.0 ** (scale - 127)
        with np.errstate(over="ignore"):
            assert np.array_equal(y, wanted.astype(np.float32))


@pytest.mark.parametrize("name", FORMATS)
def test_what_is_not_finite_reads_as_nan(name: str, rng: np.random.Generator) -> None:
    x = rng.normal(0, 1, (3, 64)).astype(np.float32)
    x[0, 3], x[1, 40] = np.nan, -np.inf
    codes, scales = F.mx_quantize(x, name)
    assert scales[0, 0] == 255 and scales[1, 1] == 255
    for dtype in ("f32", "f16", "bf16"):
        back = F.mx_dequantize(codes, scales, name, dtype).astype(np.float32)
        assert np.isnan(back[0, :32]).all() and np.isnan(back[1, 32:]).all()
        assert np.isfinite(back[2]).all() and np.isfinite(back[0, 32:]).all()


def test_wrong_calls_are_refused() -> None:
    x = np.ones((2, 64), np.float32)
    codes, scales = F.mx_quantize(x)
    with pytest.raises(bc.InvalidProblemError, match="format: got 'mxfp5', want one of mxfp8_e4m3, "):
        F.mx_quantize(x, "mxfp5")
    with pytest.raises(bc.InvalidProblemError, match=r"input: got f32 \(2, 48\), want f32, f16 or bf16"):
        F.mx_quantize(x[:, :48])
    with pytest.raises(bc.InvalidProblemError, match=r"input: got f8e4m3 \(2, 64\), want i8"):
        F.mx_dequantize(codes, scales, "mxint8")
    with pytest.raises(bc.InvalidProblemError, match=r"scale: got u8 \(2, 1\), want u8 \(2, 2\)"):
        F.mx_dequantize(codes, np.ascontiguousarray(scales[:, :1]))
    with pytest.raises(bc.InvalidProblemError, match="dtype: got i8, want f32, f16 or bf16"):
        F.mx_dequantize(codes, scales, dtype="i8")
