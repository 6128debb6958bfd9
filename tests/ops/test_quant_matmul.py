"""Products with GGUF's blocks: what the generated tests do not see: the package's values, layouts, many rows, gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import baracuda as bc
import baracuda.functional as F
from baracuda.ops.quant.quant import BlockFormat
from baracuda.ops.quant.quant_ref import blocks_with_scales

Array = np.ndarray[Any, Any]
FORMATS = pytest.mark.parametrize("f", BlockFormat, ids=lambda f: f.value)


def weight(f: BlockFormat, rows: int, blocks: int, rng: np.random.Generator) -> Array:
    """Bytes whose scales are small numbers."""
    return blocks_with_scales(f, (rows, blocks * f.block_bytes), rng).astype(np.uint8)


@FORMATS
@pytest.mark.parametrize("rows", [1, 4, 5, 70, 300])
def test_products_are_those_of_the_packages_values(f: BlockFormat, rows: int, rng: np.random.Generator) -> None:
    gguf = pytest.importorskip("gguf")
    w = weight(f, 50, 4, rng)
    values = F.dequantize(w, f.value)
    if f is not BlockFormat.Q8_K:  # which the package does not know
        np.testing.assert_array_equal(values, gguf.dequantize(w, gguf.GGMLQuantizationType(f.code)))
    x = rng.normal(0, 1, (rows, values.shape[1])).astype(np.float32)
    want = x.astype(np.float64) @ values.T
    size = np.abs(x).astype(np.float64) @ np.abs(values.T)
    assert (np.abs(F.quant_matmul(x, w, f.value) - want) <= 4e-6 * size).all()
    # Half a step of 1/127 of the largest of each block.
    block = 32 if f.block_values == 32 else 256
    step = np.abs(x).reshape(rows, -1, block).max(-1) / 127
    room = np.repeat(step / 2, block, -1) @ np.abs(values.T)
    got = F.quant_matmul(x, w, f.value, quantize_input=True)
    assert (np.abs(got - want) <= room + 1e-5 * size + 1e-4).all()
    assert np.abs(got - want).max() > 0 or not np.any(got)


@FORMATS
@pytest.mark.parametrize("quantize_input", [False, True])
def test_layouts_and_threads_change_no_bit(f: BlockFormat, quantize_input: bool, rng: np.random.Generator) -> None:
    for rows in (3, 40):
        w = weight(f, 67, 3, rng)
        x = rng.normal(0, 1, (rows, 3 * f.block_values)).astype(np.float32)
        want = F.quant_matmul(x, w, f.value, quantize_input=quantize_input)
        strided = np.repeat(np.repeat(w, 2, 0), 3, 1)[::2, ::3]
        apart = np.repeat(x, 2, -1)[:, ::2]
        out = np.full((67, rows), np.nan, np.float32).T
        made = F.quant_matmul(apart[::-1][::-1], strided, f.value, quantize_input=quantize_input, out=out)
        assert made is out
        np.testing.assert_array_equal(out, want)
        before = bc.get_num_threads()
        try:
            bc.set_num_threads(1)
            again = F.quant_matmul(x[None], w, f.value, quantize_input=quantize_input)
        finally:
            bc.set_num_threads(before)
        np.testing.assert_array_equal(again[0], want)


def test_a_block_that_is_not_finite_makes_its_row_nan(rng: np.random.Generator) -> None:
    w = weight(BlockFormat.Q4_0, 40, 4, rng)
    w[7, 18:20] = np.float16(np.inf).reshape(1).view(np.uint8)
    x = rng.normal(0, 1, (6, 128)).astype(np.float32)
    x[2, 100] = np.inf
    nan = np.isnan(F.quant_matmul(x, w, "q4_0", quantize_input=True))
    assert nan[2].all() and nan[:, 7].all() and nan.sum() == 40 + 6 - 1


@pytest.mark.parametrize("quantize_input", [False, True])
def test_gradients_are_those_of_the_values_product(quantize_input: bool, rng: np.random.Generator) -> None:
    w = torch.from_numpy(weight(BlockFormat.Q4_K, 30, 2, rng))
    x = torch.from_numpy(rng.normal(0, 1, (2, 3, 512)).astype(np.float32))
    y, pull = bc.vjp(F.quant_matmul, x, w, "q4_k", quantize_input=quantize_input)
    dy = torch.from_numpy(rng.normal(0, 1, y.shape).astype(np.float32))
    torch.testing.assert_close(pull(dy), dy @ F.dequantize(w, "q4_k"))


@FORMATS
def test_embeddings_are_rows_of_values(f: BlockFormat, rng: np.random.Generator) -> None:
    table = weight(f, 30, 2, rng)
    ids = rng.integers(0, 30, (3, 1, 4))
    np.testing.assert_array_equal(F.quant_embedding(table, ids, f.value), F.dequantize(table, f.value)[ids])
    halves = F.quant_embedding(torch.from_numpy(table), torch.from_numpy(ids), f.value, torch.float16)
    assert halves.dtype is torch.float16 and halves.shape == (3, 1, 4, 2 * f.block_values)
    assert F.quant_embedding(table, ids[:0], f.value).shape == (0, 1, 4, 2 * f.block_values)
    with pytest.raises(bc.IndexOutOfRangeError):
        F.quant_embedding(table, np.array(30), f.value)


def test_wrong_calls_are_refused() -> None:
    x, w = np.zeros((2, 64), np.float32), np.zeros((5, 36), np.uint8)
    with pytest.raises(bc.InvalidProblemError, match=r"weight: got u8 \(5, 36\), want u8 .* multiple of 34"):
        F.quant_matmul(x, w, "q8_0")
    with pytest.raises(bc.InvalidProblemError, match=r"input: got f32 \(2, 64\), want .* \(\.\.\., 32\)"):
        F.quant_matmul(x, w[:, :18], "q4_0")
    with pytest.raises(bc.InvalidProblemError, match="input: got f64"):
        F.quant_matmul(x.astype(np.float64), w, "q4_0")
    with pytest.raises(bc.InvalidProblemError, match="K a multiple of 32"):
        bc.QuantMatmulDescriptor((2, 40), (5, 40), "q4_0")
    with pytest.raises(bc.UnsupportedError, match="quantize_input"):
        desc = bc.QuantMatmulDescriptor((2, 64), (5, 64), "q4_0", "f32", True)
        bc.plan(desc, preference=bc.PlanPreference(sku="quant_matmul.forward.cpu.f32.floats"))


@pytest.mark.parametrize("quantize_input", [False, True])
@pytest.mark.parametrize("f", ["q4_0", "q4_k", "mxfp4"])
def test_experts_are_multiplied_as_each_alone(f: str, quantize_input: bool, rng: np.random.Generator) -> None:
    w = F.quantize(rng.normal(0, 1, (4, 33, 512)).astype(np.float32), f)
    x = rng.normal(0, 1, (5, 1, 512)).astype(np.float32)
    ids = rng.integers(0, 4, (5, 2))
    y = F.quant_matmul_ids(x, w, ids, f, quantize_input=quantize_input)
    assert y.shape == (5, 2, 33)
    for t, k in np.ndindex(5, 2):
        alone = F.quant_matmul(x[t], w[ids[t, k]], f, quantize_input=quantize_input)
        assert np.array_equal(y[t, k], alone[0])
    strided = np.repeat(w, 2, 1)[:, ::2], np.repeat(ids.astype(np.int32), 2, 1)[::-1, ::2]
    again = F.quant_matmul_ids(x[::-1], *strided, f, quantize_input=quantize_input)
    assert np.array_equal(again, y[::-1])
    for wrong in (4, -1):
        ids[3, 1] = wrong
        out = np.full((5, 2, 33), 7, np.float32)
        with pytest.raises(bc.IndexOutOfRangeError, match=str(wrong)):
            F.quant_matmul_ids(x, w, ids, f, quantize_input=quantize_input, out=out)
        assert (out == 7).all()
