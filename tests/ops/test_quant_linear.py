"""Layers with quantized weights beside the products of their values; layouts of other tools beside their own packing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import baracuda as bc
import baracuda.functional as F


@pytest.mark.parametrize("dtype", ["i8", "u8", "s4", "u4", "f8e4m3", "f8e5m2"])
@pytest.mark.parametrize("block", [(-1, -1), (1, -1), (1, 32)])
def test_it_is_the_product_with_the_values(dtype: str, block: tuple[int, int], rng: np.random.Generator) -> None:
    w, x = rng.normal(0, 1, (9, 64)).astype(np.float32), rng.normal(0, 1, (3, 5, 64)).astype(np.float32)
    bias = rng.normal(0, 1, 9).astype(np.float32)
    made = F.dynamic_quantize(w, block, dtype, symmetric=not dtype.startswith("u"))
    packed = dtype if dtype in ("s4", "u4") else None
    values = F.dequantize_linear(*made, packed=packed).astype(np.float64)
    zero = made[2] if len(made) > 2 else None
    y = F.quant_linear(x, *made[:2], zero, bias, packed=packed)
    np.testing.assert_allclose(y, x.astype(np.float64) @ values.T + bias, rtol=1e-5, atol=1e-5)
    half = torch.from_numpy(x).bfloat16()
    found = F.quant_linear(half, made[0], made[1], zero, packed=packed)
    assert found.dtype == torch.bfloat16
    np.testing.assert_allclose(found.float(), half.double().numpy() @ values.T, rtol=0.02, atol=0.2)


@pytest.mark.parametrize("block", [(-1, -1), (1, -1)])
def test_codes_are_multiplied_exactly(block: tuple[int, int], rng: np.random.Generator) -> None:
    w, x = rng.normal(0, 1, (33, 130)).astype(np.float32), rng.normal(0, 1, (2, 7, 130)).astype(np.float32)
    bias = rng.normal(0, 1, 33).astype(np.float32)
    codes, scale = F.dynamic_quantize(w, block)
    rounded, each = F.dynamic_quantize(x, (1, 1, -1))
    wanted = (
        (rounded.astype(np.int64) @ codes.T.astype(np.int64))
        * each.astype(np.float64)
        * scale.reshape(-1).astype(np.float64)
    )
    y = F.quant_linear(x, codes, scale, None, bias, quantize_input=True)
    np.testing.assert_allclose(y, wanted + bias, rtol=1e-6, atol=1e-6)
    lost = np.linalg.norm(y - (x @ w.T + bias)) / np.linalg.norm(x @ w.T)
    assert lost < 0.02
    eights = F.dynamic_quantize(torch.from_numpy(w), block, "f8e4m3")
    y = F.quant_linear(torch.from_numpy(x), *eights, quantize_input=True).numpy()
    assert np.linalg.norm(y - x @ w.T) / np.linalg.norm(x @ w.T) < 0.06


def test_a_vector_is_one_row(rng: np.random.Generator) -> None:
    x, bias = rng.normal(0, 1, (3, 64)).astype(np.float32), rng.normal(0, 1, 9).astype(np.float32)
    codes, scale = F.dynamic_quantize(rng.normal(0, 1, (9, 64)).astype(np.float32), (1, -1))
    out = np.empty(9, np.float32)
    for rounded in (False, True):
        y = F.quant_linear(x[1], codes, scale, None, bias, quantize_input=rounded, out=out)
        assert y is out
        wanted = F.quant_linear(x[1:2], codes, scale, None, bias, quantize_input=rounded)
        assert np.array_equal(y, wanted[0])
        assert bc.vjp(F.quant_linear, x[1], codes, scale, quantize_input=rounded)[1](y).shape == (64,)


def gptq(codes: Any, zeros: Any) -> tuple[Any, Any]:
    """AutoGPTQ's QuantLinear.pack: codes (K, N) along K, zeros (groups, N) less one along N."""
    depth, columns = codes.shape
    qweight, qzeros = np.zeros((depth // 8, columns), np.uint32), np.zeros((len(zeros), columns // 8), np.uint32)
    for k in range(depth):
        qweight[k // 8] |= codes[k].astype(np.uint32) << 4 * (k % 8)
    for n in range(columns):
        qzeros[:, n // 8] |= (zeros[:, n] - 1).astype(np.uint32) << 4 * (n % 8)
    return qweight.view(np.int32), qzeros.view(np.int32)


def awq(codes: Any, zeros: Any) -> tuple[Any, Any]:
    """AutoAWQ's WQLinear_GEMM.from_linear: codes (K, N) and zeros (groups, N), both along N in its order."""
    order = (0, 2, 4, 6, 1, 3, 5, 7)
    found = []
    for x in (codes, zeros):
        words = np.zeros((len(x), x.shape[1] // 8), np.uint32)
        for col in range(words.shape[1]):
            for i in range(8):
                words[:, col] |= x[:, col * 8 + order[i]].astype(np.uint32) << (i * 4)
        found.append(words.view(np.int32))
    return found[0], found[1]


@pytest.mark.parametrize(("pack", "repack"), [(gptq, "repack_gptq"), (awq, "repack_awq")])
@pytest.mark.parametrize("shape", [(8, 8, 8), (64, 24, 32), (128, 40, 128)])
def test_weights_of_other_tools(pack: Any, repack: str, shape: tuple[int, int, int], rng: np.random.Generator) -> None:
    depth, columns, group = shape
    codes = rng.integers(0, 16, (depth, columns))
    zeros = rng.integers(1, 17 if pack is gptq else 16, (depth // group, columns))
    scales = rng.uniform(0.01, 0.1, zeros.shape).astype(np.float16)
    values = (codes - np.repeat(zeros, group, 0)) * np.repeat(scales.astype(np.float32), group, 0)
    made = getattr(F, repack)(*pack(codes, zeros), scales)
    assert np.array_equal(F.unpack_int4(made[0], "u4", "u8"), codes.T)
    assert np.array_equal(made[2], zeros.T) and np.array_equal(made[1], scales.T.astype(np.float32))
    np.testing.assert_array_equal(F.dequantize_linear(*made, packed="u4"), values.T.astype(np.float32))
    x = rng.normal(0, 1, (3, depth)).astype(np.float32)
    np.testing.assert_allclose(F.quant_linear(x, *made, packed="u4"), x @ values, rtol=1e-4, atol=1e-4)


def test_wrong_calls_are_refused() -> None:
    x, w = np.zeros((2, 64), np.float32), np.zeros((8, 64), np.int8)
    with pytest.raises(bc.InvalidProblemError, match="scale: got \\(8, 2\\), want one number or \\(8, 1\\)"):
        F.quant_linear(x, w, np.ones((8, 2), np.float32), quantize_input=True)
    with pytest.raises(bc.InvalidProblemError, match=r"weight: got u8 .*want i8 or f8e4m3"):
        F.quant_linear(x, w.view(np.uint8), np.ones(1, np.float32), quantize_input=True)
    with pytest.raises(bc.InvalidProblemError, match=r"scale: got \(8,\), want one number, or two sizes"):
        F.quant_linear(x, w, np.ones(8, np.float32))
    for zero in (np.zeros((4, 8), np.int32), np.zeros((8, 2), np.int32)):
        with pytest.raises(bc.InvalidProblemError, match=r"zero_point: got shape .*, want that of scale, \(8, 4\)"):
            F.quant_linear(x, w, np.ones((8, 4), np.float32), zero)
    words = np.zeros((8, 8), np.int32)
    with pytest.raises(bc.InvalidProblemError, match="qweight: got f32 of 2 dimensions, want i32"):
        F.repack_gptq(x, words, np.ones((1, 8), np.float16))
    with pytest.raises(
        bc.InvalidProblemError, match="scales: got \\(3, 8\\), want \\(groups, 8\\), groups dividing 64"
    ):
        F.repack_gptq(words, words[:3, :1], np.ones((3, 8), np.float16))
    with pytest.raises(bc.InvalidProblemError, match="qzeros: got \\(1, 2\\), want \\(1, 8\\)"):
        F.repack_awq(words, words[:1, :2], np.ones((1, 64), np.float16))


@pytest.mark.parametrize("packed", [None, "s4", "u4"])
def test_the_gradient_is_the_product_with_the_values(packed: str | None, rng: np.random.Generator) -> None:
    w, x = rng.normal(0, 1, (9, 64)).astype(np.float32), rng.normal(0, 1, (3, 5, 64)).astype(np.float32)
    dy, bias = rng.normal(0, 1, (3, 5, 9)).astype(np.float32), np.zeros(9, np.float32)
    made = F.dynamic_quantize(w, (1, 32), packed or "i8", symmetric=packed != "u4")
    zero = made[2] if len(made) > 2 else None
    values = F.dequantize_linear(*made, packed=packed)
    y, pull = bc.vjp(F.quant_linear, x, made[0], made[1], zero, bias, packed=packed)
    assert np.array_equal(y, F.quant_linear(x, made[0], made[1], zero, bias, packed=packed))
    dx, dbias = pull(dy)
    np.testing.assert_allclose(dx, dy @ values, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(dbias, dy.sum((0, 1)), rtol=1e-5, atol=1e-5)
    order = rng.permutation(64)
    dx = bc.vjp(F.quant_linear, x, made[0], made[1], zero, order=order, packed=packed)[1](dy)
    np.testing.assert_allclose(dx[..., order], dy @ values, rtol=1e-5, atol=1e-5)
    codes, scale = F.dynamic_quantize(w, (1, -1))
    rounded = bc.vjp(F.quant_linear, x, codes, scale, quantize_input=True)[1](dy)
    np.testing.assert_allclose(rounded, dy @ (codes * scale), rtol=1e-5, atol=1e-5)


def test_act_order_sorts_columns_by_their_groups(rng: np.random.Generator) -> None:
    depth, columns, group = 64, 24, 16
    g_idx = rng.permutation(np.repeat(np.arange(4), group)).astype(np.int32)
    codes, zeros = rng.integers(0, 16, (depth, columns)), rng.integers(1, 17, (4, columns))
    scales = rng.uniform(0.01, 0.1, zeros.shape).astype(np.float16)
    values = (codes - zeros[g_idx]) * scales.astype(np.float32)[g_idx]
    *made, order = F.repack_gptq(*gptq(codes, zeros), scales, g_idx)
    x = rng.normal(0, 1, (3, depth)).astype(np.float32)
    np.testing.assert_allclose(F.quant_linear(x, *made, order=order, packed="u4"), x @ values, rtol=1e-4, atol=1e-4)
    plain = np.repeat(np.arange(4), group)
    assert np.array_equal(F.repack_gptq(*gptq(codes, zeros), scales, plain)[3], np.arange(depth))
    for wrong in (np.minimum(g_idx, 2), g_idx + 1):
        with pytest.raises(
            bc.IndexOutOfRangeError, match=r"repack_gptq\(\): g_idx, of which 4 groups of 16 are wanted"
        ):
            F.repack_gptq(*gptq(codes, zeros), scales, wrong)
    with pytest.raises(bc.InvalidProblemError, match=r"g_idx: got i32 \(63,\), want i32 or i64 \(64,\)"):
        F.repack_gptq(*gptq(codes, zeros), scales, g_idx[1:])
    with pytest.raises(bc.InvalidProblemError, match=r"order: got \(63,\), want \(64,\)"):
        F.quant_linear(x, *made, order=order[1:], packed="u4")
    with pytest.raises(bc.InvalidProblemError, match=r"quant_linear_backward: bias: got f32 \(3,\), want f32 \(2,\)"):
        F.quant_linear_backward(np.ones((3, 2), "f4"), np.ones((2, 4), "i1"), np.ones((), "f4"), None, np.ones(3, "f4"))
    with pytest.raises(bc.IndexOutOfRangeError, match=r"quant_linear\(\): order: got index 64"):
        F.quant_linear(x, *made, order=order + 1, packed="u4")


@pytest.mark.parametrize("ids_shape", [(5,), (4, 2)])
def test_the_gradient_of_products_with_experts(ids_shape: tuple[int, ...], rng: np.random.Generator) -> None:
    blocks = np.stack([F.quantize(rng.normal(0, 1, (7, 64)).astype(np.float32), "q8_0") for _ in range(3)])
    blocks[1, 0, :2] = np.array([np.inf], np.float16).view(np.uint8)  # of no other expert's rows
    ids = rng.integers(0, 3, ids_shape)
    ids[ids == 1] = 2
    x = rng.normal(0, 1, (*ids_shape[:-1], 1, 64)).astype(np.float32)
    y, pull = bc.vjp(F.quant_matmul_ids, x, blocks, ids, "q8_0")
    dy = rng.normal(0, 1, y.shape).astype(np.float32)
    values = F.dequantize(blocks, "q8_0")
    wanted = np.einsum("...n,...nk->...k", dy, values[ids]).sum(-2, keepdims=True)
    np.testing.assert_allclose(pull(dy), wanted, rtol=1e-4, atol=1e-4)
