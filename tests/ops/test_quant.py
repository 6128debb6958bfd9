"""GGUF's blocks beside the `gguf` package, which must read what we write and write what we read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import baracuda as bc
import baracuda.functional as F
from baracuda.ops.quant.quant import BlockFormat

gguf = pytest.importorskip("gguf")

SAME = [
    *list(BlockFormat)[:5],
    BlockFormat.MXFP4,
    BlockFormat.TQ1_0,
    BlockFormat.TQ2_0,
]  # which the package writes, too
WRITTEN = [f for f in BlockFormat if f.written]
READ = [f for f in BlockFormat if f is not BlockFormat.Q8_K]  # which the package does not know


def _type(f: BlockFormat) -> Any:
    return gguf.GGMLQuantizationType(f.code)


@pytest.mark.parametrize("f", BlockFormat, ids=lambda f: f.value)
def test_names_and_sizes_are_those_of_ggml(f: BlockFormat) -> None:
    assert _type(f).name.lower() == f.value
    assert gguf.GGML_QUANT_SIZES[_type(f)] == (f.block_values, f.block_bytes)


@pytest.mark.parametrize("f", SAME, ids=lambda f: f.value)
def test_bytes_are_those_of_the_package(f: BlockFormat, rng: np.random.Generator) -> None:
    rows, columns = (4000, 96) if f.block_values == 32 else (1000, 512)
    x = (rng.normal(0, 1, (rows, columns)) * 10.0 ** rng.uniform(-6, 6, (rows, 1))).astype(np.float32)
    x[0], x[1], x[2, ::3] = 0, 1.5, 0
    x[3:200] = rng.integers(-16, 17, (197, columns))  # ties
    x[200:400] = rng.normal(0, 1, (200, columns)).astype(np.float16)
    with np.errstate(all="ignore"):
        expected = gguf.quantize(x, _type(f))
    assert np.array_equal(F.quantize(x, f.value), expected)
    halves = x[200:400].astype(np.float16)
    assert np.array_equal(F.quantize(halves, f.value), expected[200:400])


@pytest.mark.parametrize("f", READ, ids=lambda f: f.value)
def test_values_are_those_of_the_package(f: BlockFormat, rng: np.random.Generator) -> None:
    x = rng.integers(0, 256, (200, 3 * f.block_bytes)).astype(np.uint8)
    with np.errstate(all="ignore"):
        expected = gguf.dequantize(x, _type(f))
    np.testing.assert_array_equal(F.dequantize(x, f.value), expected)
    strided = np.repeat(x, 2, -1)[::-1, ::2]
    np.testing.assert_array_equal(F.dequantize(strided, f.value), expected[::-1])


def test_large_rows_are_written_past_the_caches(rng: np.random.Generator) -> None:
    x = rng.integers(0, 60, (2048, 4096 // 32 * 18)).astype(np.uint8)
    y = F.dequantize(x, "q4_0")
    assert np.array_equal(y, gguf.dequantize(x, _type(BlockFormat.Q4_0)))


def test_torch_tensors_and_halves(rng: np.random.Generator) -> None:
    x = torch.from_numpy(rng.normal(0, 1, (5, 64)).astype(np.float32)).bfloat16()
    blocks = F.quantize(x, "q8_0")
    assert blocks.dtype == torch.uint8 and blocks.shape == (5, 68)
    back = F.dequantize(blocks, "q8_0", "bf16")
    assert back.dtype == torch.bfloat16
    assert torch.equal(back, F.dequantize(blocks, "q8_0").bfloat16())
    assert (back.float() - x.float()).abs().max() < 0.03


def test_a_block_with_nan_or_infinity_reads_as_nan() -> None:
    x = np.ones((3, 64), np.float32)
    x[0, 3], x[1, 40], x[2, 63] = np.nan, np.inf, -np.inf
    for f in WRITTEN:
        if f is BlockFormat.MXFP4:
            continue
        n = f.block_values
        blocks = np.repeat(x, n // 32, -1)
        nan = np.isnan(F.dequantize(F.quantize(blocks, f.value), f.value))
        assert nan[0, :n].all() and nan[1:, n:].all() and not nan[0, n:].any() and not nan[1:, :n].any(), f


def test_mxfp4_takes_nan_as_zero_and_keeps_infinities() -> None:
    x = np.ones((2, 32), np.float32)
    x[0, 3], x[1, 4], x[1, 20] = np.nan, np.inf, -np.inf
    y = F.dequantize(F.quantize(x, "mxfp4"), "mxfp4")
    assert y[0, 3] == 0 and (np.delete(y[0], 3) == 1).all()
    assert y[1, 4] == np.inf and y[1, 20] == -np.inf and not np.delete(y[1], (4, 20)).any()


def test_mxfp4_below_powers_of_two_is_as_the_package_has_it() -> None:
    """The logarithm rounds up to a whole number there, and the scale is that of the power."""
    near = np.concatenate([2.0**n * (1 - np.arange(-3, 70) * 2.0**-24) for n in range(-120, 128)]).astype(np.float32)
    x = np.zeros((near.size, 32), np.float32)
    x[:, 7], x[:, 8:20] = near, near[:, None] * np.linspace(-1, 1, 12, dtype=np.float32)
    x = x[np.isfinite(near)]
    with np.errstate(over="ignore"):
        expected = gguf.quantize(x, _type(BlockFormat.MXFP4))
    assert np.array_equal(F.quantize(x, "mxfp4"), expected)


# The largest root of the sum of squared errors over the number of values that ggml's own test (test-quantize-fns) allows its encoders.
GGML_ALLOWS = dict.fromkeys(WRITTEN, 0.002) | {
    BlockFormat.Q2_K: 0.0075, BlockFormat.Q3_K: 0.004, BlockFormat.TQ1_0: 0.01, BlockFormat.TQ2_0: 0.01
}  # fmt: skip
# Of normal numbers: the share of their size that codes of so many bits may lose.
LOST = {
    BlockFormat.Q2_K: 0.37, BlockFormat.Q3_K: 0.21, BlockFormat.Q4_K: 0.085, BlockFormat.Q5_K: 0.043, BlockFormat.Q6_K: 0.022,
    BlockFormat.Q8_K: 0.011, BlockFormat.IQ4_NL: 0.1, BlockFormat.IQ4_XS: 0.1,
}  # fmt: skip


@pytest.mark.parametrize("f", WRITTEN, ids=lambda f: f.value)
def test_errors_are_within_what_ggml_allows_itself(f: BlockFormat) -> None:
    x = (0.1 + 2 * np.cos(np.arange(4096, dtype=np.float32))).astype(np.float32)
    error = F.dequantize(F.quantize(x, f.value), f.value).astype(np.float64) - x
    assert np.sqrt((error**2).sum()) / x.size < GGML_ALLOWS[f]


@pytest.mark.parametrize("f", LOST, ids=lambda f: f.value)
def test_packages_decoder_reads_what_is_written(f: BlockFormat, rng: np.random.Generator) -> None:
    x = (rng.normal(0, 1, (64, 1024)) * 10.0 ** rng.uniform(-3, 2, (64, 1))).astype(np.float32)
    made = F.quantize(x, f.value)
    values = F.dequantize(made, f.value) if f not in READ else gguf.dequantize(made, _type(f))
    lost = np.sqrt(((values - x) ** 2).sum(-1) / (x.astype(np.float64) ** 2).sum(-1))
    assert lost.max() < LOST[f]
    again = F.dequantize(F.quantize(values, f.value), f.value)
    assert np.sqrt(((again - x) ** 2).sum() / (x.astype(np.float64) ** 2).sum()) < 1.3 * LOST[f]


@pytest.mark.parametrize("f", BlockFormat, ids=lambda f: f.value)
def test_formats_are_named_as_ggml_spells_them(f: BlockFormat, tmp_path: Path) -> None:
    name, x = f.value.upper(), np.ones((2, 256), np.float32)
    w = np.zeros((2, 256 // f.block_values * f.block_bytes), np.uint8)
    if f.written:
        w = F.quantize(x, name)
        assert np.array_equal(w, F.quantize(x, f.value))
    assert np.array_equal(F.dequantize(w, name), F.dequantize(w, f.value))
    ids = np.array([[0]])
    assert np.array_equal(F.quant_embedding(w, ids, name), F.quant_embedding(w, ids, f.value))
    assert np.array_equal(F.quant_matmul(x, w, name), F.quant_matmul(x, w, f.value))
    assert np.array_equal(
        F.quant_matmul_ids(x[:, None], w[None], np.zeros((2, 1), int), name)[:, 0], F.quant_matmul(x, w, name)
    )
    for op in (F.quant_matmul, F.quant_matmul_ids):
        args = (x, w, name) if op is F.quant_matmul else (x[:1], w[None], ids[0], name)
        y, pull = bc.vjp(op, *args)
        assert pull(y).shape == args[0].shape
    for desc in (bc.QuantizeDescriptor, bc.DequantizeDescriptor)[not f.written :]:
        assert desc((2, 256), name) == desc((2, 256), f)
    assert bc.QuantMatmulDescriptor((2, 256), (2, 256), name).format is f
    bc.save_gguf(tmp_path / "a.gguf", {"w": bc.GgufTensor(w, x.shape, name)})
    assert bc.load_gguf(tmp_path / "a.gguf").tensors["w"].format == f.value


def test_wrong_calls_are_refused() -> None:
    x = np.zeros((2, 48), np.float32)
    with pytest.raises(bc.InvalidProblemError, match="multiple of 32, the values of a block of q4_0"):
        F.quantize(x, "q4_0")
    with pytest.raises(bc.InvalidProblemError, match="quantize: format: got 'q9', want one of q4_0, "):
        F.quantize(x, "q9")
    for f in set(BlockFormat) - set(WRITTEN):
        with pytest.raises(
            bc.InvalidProblemError, match=f"format: got '{f.value}', want one that is written: q4_0.*llama-quantize"
        ):
            F.quantize(np.zeros((2, 256), np.float32), f.value)
    with pytest.raises(bc.InvalidProblemError, match="input: got f32"):
        F.dequantize(x, "q4_0")
    with pytest.raises(bc.InvalidProblemError, match="last size is a multiple of 144"):
        F.dequantize(x.astype(np.uint8), "q4_k")
