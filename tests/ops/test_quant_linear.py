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


def gptq(codes: Any, zeros: Any, bits: int = 4, version: str = "gptq") -> tuple[Any, Any]:
    """What AutoGPTQ's pack makes of codes (K, N) along K and zeros (groups, N) along N: bits one after another; of the
    first version zeros less one."""

    def packed(x: Any) -> Any:
        """Along the last dimension."""
        places = (x[..., None].astype(np.uint8) >> np.arange(bits) & 1).astype(np.uint8)
        return np.packbits(places.reshape(len(x), -1), -1, "little").view(np.int32)

    stored = zeros - 1 & 2**bits - 1 if version == "gptq" else zeros
    return np.ascontiguousarray(packed(codes.T).T), packed(stored)


def gptq_values(qweight: Any, qzeros: Any, scales: Any, g_idx: Any, bits: int, version: str) -> Any:
    """The weight (K, N) as the packages' layers without kernels find it, in torch and of the words alone."""
    words, zeros = torch.from_numpy(qweight), torch.from_numpy(qzeros)
    most = 2**bits - 1
    if bits == 3:  # 10 codes and a part, the rest, 10 and a part, the rest, 10

        def three(x: Any) -> Any:
            a, b, c = (x[..., i::3] for i in range(3))
            tens = [[w >> 3 * j + first & 7 for j in range(10)] for w, first in ((a, 0), (b, 1), (c, 2))]
            tenth, one = a >> 30 & 3 | b << 2 & 4, b >> 31 & 1 | c << 1 & 6
            return torch.stack([*tens[0], tenth, *tens[1], one, *tens[2]], -1).reshape(len(x), -1)

        weight, zeros = three(words.T).T, three(zeros)
    else:
        places = torch.arange(0, 32, bits, dtype=torch.int32)
        weight = (words[:, None] >> places[:, None] & most).reshape(-1, words.shape[1])
        zeros = (zeros[:, :, None] >> places & most).reshape(len(zeros), -1)
    if version == "gptq":
        zeros = zeros + 1 & most
    groups = torch.from_numpy(g_idx).long()
    return (torch.from_numpy(scales).float()[groups] * (weight - zeros[groups])).numpy()


@pytest.mark.parametrize("version", ["gptq", "gptq_v2"])
@pytest.mark.parametrize("bits", [2, 3, 4, 8])
def test_any_words_of_gptq_are_the_values_of_the_packages(bits: int, version: str, rng: np.random.Generator) -> None:
    for groups, each, columns in ((1, 32, 32), (3, 64, 96), (4, 32, 32), (2, 128, 64)):
        depth = groups * each
        qweight = rng.integers(-(2**31), 2**31, (depth * bits // 32, columns)).astype(np.int32)
        qzeros = rng.integers(-(2**31), 2**31, (groups, columns * bits // 32)).astype(np.int32)
        qzeros[:, 0] = -1  # the largest zero points
        scales = rng.uniform(0.01, 0.1, (groups, columns)).astype(np.float16)
        options, packed = {"bits": bits, "checkpoint_format": version}, {"packed": "u4"} if bits < 8 else {}
        x = rng.normal(0, 1, (3, depth)).astype(np.float32)
        plain = np.repeat(np.arange(groups), each).astype(np.int32)
        made = F.repack_gptq(qweight, qzeros, scales, **options)
        wanted = gptq_values(qweight, qzeros, scales, plain, bits, version)
        np.testing.assert_array_equal(F.dequantize_linear(*made, **packed), wanted.T)
        assert (made[2][: 32 // bits] == (0 if version == "gptq" else 2**bits - 1)).all() or bits == 3
        g_idx = rng.permutation(plain)
        *made, order = F.repack_gptq(qweight, qzeros, scales, g_idx, **options)
        wanted = gptq_values(qweight, qzeros, scales, g_idx, bits, version)
        np.testing.assert_array_equal(F.dequantize_linear(*made, **packed), wanted.T[:, order])
        y = F.quant_linear(x, *made, order=order, **packed)
        size = np.abs(x) @ np.abs(wanted)
        assert (np.abs(y - x.astype(np.float64) @ wanted) <= 4e-6 * size).all()


def test_any_words_of_awq_are_the_values_of_the_package(rng: np.random.Generator) -> None:
    """AutoAWQ reads the codes of a word from its lowest bits, and takes them in the order 0 4 1 5 2 6 3 7."""
    for groups, each, columns in ((1, 8, 8), (3, 64, 40), (2, 128, 64)):
        qweight = rng.integers(-(2**31), 2**31, (groups * each, columns // 8)).astype(np.int32)
        qzeros = rng.integers(-(2**31), 2**31, (groups, columns // 8)).astype(np.int32)
        scales = rng.uniform(0.01, 0.1, (groups, columns)).astype(np.float16)
        weight, zeros = (
            (x[:, :, None] >> 4 * np.array([0, 4, 1, 5, 2, 6, 3, 7]) & 15).reshape(len(x), -1)
            for x in (qweight, qzeros)
        )
        wanted = (weight - np.repeat(zeros, each, 0)) * np.repeat(scales.astype(np.float32), each, 0)
        made = F.repack_awq(qweight, qzeros, scales)
        np.testing.assert_array_equal(F.dequantize_linear(*made, packed="u4"), wanted.T.astype(np.float32))


def test_wrong_checkpoints_of_gptq_are_refused() -> None:
    words, zeros, scales = np.zeros((8, 32), np.int32), np.zeros((1, 4), np.int32), np.ones((1, 32), np.float16)
    for options, message in (
        ({"bits": 5}, "bits: got 5, want one of 2, 3, 4, 8"),
        ({"bits": True}, "bits: got True"),
        ({"checkpoint_format": "marlin"}, "checkpoint_format: got 'marlin', want 'gptq'"),
        ({"bits": 3}, r"qweight: got \(8, 32\), want \(3 words for every 32 codes of 3 bits"),
        ({"bits": 8}, r"qzeros: got \(1, 4\), want \(1, 8\), 4 to a word"),
    ):
        with pytest.raises(bc.InvalidProblemError, match=message):
            F.repack_gptq(words, zeros, scales, **options)
    with pytest.raises(bc.InvalidProblemError, match=r"want \(1, 3\), 32 to 3 words"):
        F.repack_gptq(words[:6], zeros, scales, bits=3)
    assert F.repack_gptq(words, zeros, scales, checkpoint_format="GPTQ_v2")[2].max() == 0


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
    zeros = rng.integers(0, 16, (depth // group, columns))
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
    codes, zeros = rng.integers(0, 16, (depth, columns)), rng.integers(0, 16, (4, columns))
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
