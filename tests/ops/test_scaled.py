"""Integers and 8-bit floats with scales beside torch's: every granularity, odd sizes, strides, what is out of range."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import baracuda as bc
import baracuda.functional as F

ELEMENTS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


def _values(generator: torch.Generator, *shape: int) -> torch.Tensor:
    x = torch.randn(shape, generator=generator) * 8
    x.view(-1)[: min(5, x.numel())] = torch.tensor([0.25, -0.0, 1e9, -1e9, float("nan")])[: min(5, x.numel())]
    return x


@pytest.mark.parametrize("dtype", ELEMENTS, ids=str)
@pytest.mark.parametrize("limits", [(0, 255), (-128, 127), (-8, 7)])
def test_fake_quantization_is_torchs(dtype: torch.dtype, limits: tuple[int, int]) -> None:
    generator = torch.Generator().manual_seed(3)
    for shape in ((), (0,), (7,), (3, 0), (5, 33), (2, 3, 4, 5)):
        x = _values(generator, *shape).to(dtype)
        for scale, zero in ((0.1, 3), (0.37, -5), (2.0, 0)):
            zero = max(limits[0], min(limits[1], zero))
            wanted = torch.fake_quantize_per_tensor_affine(x, scale, zero, *limits)
            found = F.fake_quantize_per_tensor_affine(x, scale, zero, *limits)
            if dtype is torch.float64:  # torch has the codes' values in f32 here
                assert torch.equal(found.float(), wanted.float())
            else:
                assert torch.equal(found, wanted)
            assert torch.equal(F.fake_quantize(x, scale, zero, *limits), found)
            tensors = torch.tensor(scale), torch.tensor(zero, dtype=torch.int32)
            assert torch.equal(F.fake_quantize_per_tensor_affine(x, *tensors, *limits), found)
    x = _values(generator, 6, 4, 5).to(dtype).transpose(0, 2)[:, 1:]
    for axis, n in enumerate(x.shape):
        scale, zero = torch.rand(n, generator=generator) + 0.05, torch.arange(n, dtype=torch.int32) % 4
        wanted = torch.fake_quantize_per_channel_affine(x, scale, zero, axis, *limits)
        assert torch.equal(F.fake_quantize_per_channel_affine(x, scale, zero, axis, *limits), wanted)


@pytest.mark.parametrize("dtype", ELEMENTS, ids=str)
def test_gradients_go_straight_through_as_torchs(dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(4)
    x = _values(generator, 5, 33).to(dtype).requires_grad_()
    dy = torch.randn(5, 33, generator=generator).to(dtype)
    torch.fake_quantize_per_tensor_affine(x, 0.1, 3, 0, 255).backward(dy)
    _, pull = bc.vjp(F.fake_quantize_per_tensor_affine, x.detach(), 0.1, 3, 0, 255)
    assert torch.equal(_first(pull(dy)), x.grad)
    x.grad = None
    scale, zero = torch.rand(33, generator=generator) + 0.05, torch.arange(33, dtype=torch.int32)
    torch.fake_quantize_per_channel_affine(x, scale, zero, 1, 0, 255).backward(dy)
    _, pull = bc.vjp(F.fake_quantize_per_channel_affine, x.detach(), scale, zero, 1, 0, 255)
    assert torch.equal(_first(pull(dy)), x.grad)


def _first(found: Any) -> Any:
    return found[0] if isinstance(found, (tuple, list)) else found


@pytest.mark.filterwarnings("ignore:.*quantized tensor creation functions")
@pytest.mark.parametrize("kind", [(torch.qint8, torch.int8), (torch.quint8, torch.uint8)], ids=("i8", "u8"))
def test_codes_are_those_of_torchs_quantized_tensors(kind: tuple[torch.dtype, torch.dtype]) -> None:
    """Where x / scale is no tie: torch multiplies by the reciprocal."""
    generator = torch.Generator().manual_seed(5)
    x = torch.randn(9, 70, generator=generator) * 4
    code = str(kind[1]).replace("torch.uint", "u").replace("torch.int", "i")
    wanted = torch.quantize_per_tensor(x, 0.05, 3, kind[0])
    scale, zero = torch.tensor(0.05), torch.tensor(3, dtype=torch.int32)
    found = F.quantize_linear(x, scale, zero, code)
    assert found.dtype == kind[1] and torch.equal(found, wanted.int_repr())
    assert torch.equal(F.dequantize_linear(found, scale, zero), wanted.dequantize())
    for axis in (0, 1):
        n = x.shape[axis]
        scales, zeros = torch.rand(n, generator=generator) + 0.02, torch.arange(n, dtype=torch.int32) % 9
        each = torch.quantize_per_channel(x, scales.double(), zeros, axis, kind[0])
        assert torch.equal(F.quantize_linear(x, scales, zeros, code, axis), each.int_repr())


@pytest.mark.parametrize("dtype", ["i8", "u8", "i16", "u16", "f8e4m3", "f8e5m2", "s4", "u4"])
@pytest.mark.parametrize("block", [None, (1, -1), (-1, 1), (1, 32), (3, 16), (-1, 48)])
def test_what_is_quantized_reads_back_within_half_a_step(dtype: str, block: Any, rng: np.random.Generator) -> None:
    x = (rng.normal(0, 1, (6, 96)) * 10.0 ** rng.uniform(-3, 3, (6, 1))).astype(np.float32)
    x[2] = 0
    signed = dtype in ("i8", "i16", "s4") or dtype.startswith("f8")
    found = F.dynamic_quantize(x, block, dtype, symmetric=signed)
    packed = dtype if dtype in ("s4", "u4") else None
    back = F.dequantize_linear(*found, packed=packed)
    b = [n if k == -1 else k for n, k in zip(x.shape, block or (-1, -1), strict=True)]
    assert found[1].shape == tuple(n // k for n, k in zip(x.shape, b, strict=True))
    step = np.repeat(np.repeat(found[1], b[0], 0), b[1], 1)
    allowed = {"f8e4m3": np.abs(x) / 16 + step / 512, "f8e5m2": np.abs(x) / 8 + step / 2**16}.get(dtype, 0.501 * step)
    assert (np.abs(back - x) <= allowed * 1.0001 + 1e-12).all()
    again = F.quantize_linear(x, *found[1:], dtype=dtype)
    assert np.array_equal(np.asarray(again).view(np.uint8), np.asarray(found[0]).view(np.uint8))


def test_dynamic_codes_of_rows_longer_than_a_part_and_of_none(rng: np.random.Generator) -> None:
    x = rng.normal(0, 3, (2, 300_001)).astype(np.float32)
    y, scale = F.dynamic_quantize(x, (1, -1))
    wanted = np.abs(x).max(-1, keepdims=True) / np.float32(127)
    np.testing.assert_array_equal(scale, wanted)
    np.testing.assert_array_equal(y, np.rint(x / wanted).astype(np.int8))
    y, scale, zero = F.dynamic_quantize(np.zeros((3, 0), np.float32), (1, -1), "u8", symmetric=False)
    assert y.shape == (3, 0) and not scale.any() and not zero.any() and scale.shape == (3, 1)
    x[1, 5] = np.nan
    y, scale = F.dynamic_quantize(x, (1, -1))
    assert np.isnan(scale[1]) and not np.isnan(scale[0]) and not y[1].any()


def test_one_plan_for_all_numbers_of_rows(rng: np.random.Generator) -> None:
    rows = bc.Dim("rows", max=8)
    plan = bc.plan(bc.DynamicQuantizeDescriptor((rows, 64), (rows, 2)))
    for n in (1, 8):
        x, y, scale = (
            rng.normal(0, 1, (n, 64)).astype(np.float32),
            np.empty((n, 64), np.int8),
            np.empty((n, 2), np.float32),
        )
        plan.run(x=x, y=y, scale=scale)
        assert np.array_equal(scale, np.abs(x.reshape(n, 2, 32)).max(-1) / np.float32(127))


def test_wrong_calls_are_refused() -> None:
    x = np.zeros((4, 6), np.float32)
    with pytest.raises(bc.InvalidProblemError, match="scale: got \\(3,\\), want one number, 2 dimensions"):
        F.quantize_linear(x, np.ones(3, np.float32))
    with pytest.raises(bc.InvalidProblemError, match="scale_shape: got \\(4, 4\\), want as many sizes as \\(4, 6\\)"):
        F.quantize_linear(x, np.ones((4, 4), np.float32))
    with pytest.raises(bc.InvalidProblemError, match="block_size: got \\(1, 4\\), want a divisor"):
        F.dynamic_quantize(x, (1, 4))
    with pytest.raises(bc.InvalidProblemError, match="zero_point: got True, want False for f8e4m3"):
        F.quantize_linear(x, np.ones(1, np.float32), np.zeros(1, np.int32), "f8e4m3")
    with pytest.raises(bc.InvalidProblemError, match="code_element: got 'f16'"):
        F.quantize_linear(x, np.ones(1, np.float32), dtype="f16")
    for block in (3, (1.0, 1), (1,)):
        with pytest.raises(bc.InvalidProblemError, match="block_size: got"):
            F.dynamic_quantize(x, block)
    halves = np.full(6, 0.5, np.float32)  # which would be rounded to other codes than torch's
    for call in (
        lambda: F.fake_quantize_per_channel_affine(x, halves, halves, 1, -128, 127),
        lambda: F.quantize_linear(x, halves, halves, "i8", 1),
        lambda: F.dequantize_linear(x.astype(np.int8), halves, halves, 1),
    ):
        with pytest.raises(bc.InvalidProblemError, match="zero_point: got element f32, want integers"):
            call()
    for wide in (np.array([2**32 + 3]), np.array([3], np.uint32)):  # which would wrap
        with pytest.raises(
            bc.InvalidProblemError, match=r"zero_point: got element [iu](64|32), want integers that i32 holds"
        ):
            F.quantize_linear(x, np.ones(1, np.float32), wide)
    with pytest.raises(bc.InvalidProblemError, match="element: got 'f64', want f32"):
        F.dynamic_quantize(x.astype(np.float64))
    with pytest.raises(bc.InvalidProblemError, match="quant_max: got 0, want 1 to 65535"):
        F.fake_quantize(x, 0.1, 0, -5, 0)
    with pytest.raises(bc.InvalidProblemError, match="symmetric: got False, want True for f8e5m2"):
        F.dynamic_quantize(x, None, "f8e5m2", symmetric=False)


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_the_scale_of_zeros_has_no_sign(zero: float) -> None:
    for shape in ((3, 40), (3, 0)):
        codes, scale = F.dynamic_quantize(np.full(shape, zero, np.float32), (1, -1))
        assert not np.signbit(scale).any() and not scale.any() and not codes.any()
        assert not np.signbit(F.dequantize_linear(codes, scale)).any()


@pytest.mark.parametrize("dtype", ["i8", "u8", "u4"])
def test_numbers_whose_range_is_beyond_f32(dtype: str) -> None:
    x = np.array([[-3.4e38, 3.4e38, 1e38, 0, -1e38, 2e38]], np.float32)
    y, scale, zero = F.dynamic_quantize(x, (1, -1), dtype, symmetric=False)
    packed = dtype if dtype == "u4" else None
    steps = 15 if packed else 255
    np.testing.assert_allclose(scale, 6.8e38 / steps, rtol=1e-6)
    back = F.dequantize_linear(y, scale, zero, packed=packed).astype(np.float64)
    inside = np.isfinite(back)
    assert inside[0, 2:].all() and (np.abs(back - x)[inside] <= 0.5001 * scale[0]).all()
    x[0, 3] = np.inf
    assert np.isinf(F.dynamic_quantize(x, (1, -1), dtype, symmetric=False)[1]).all()
