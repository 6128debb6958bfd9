"""Facts of the quant family's functions; prove/facts.py says what they are."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from baracuda.prove.facts import (
    CODES,
    LAYER,
    LENGTHS,
    ONE,
    ROWS,
    SCALES,
    TARGET,
    WORDS,
    Facts,
    X,
    because,
    call,
    floats,
    ramp,
)

BLOCKS = np.arange(102, dtype=np.uint8).reshape(3, 34) % 60  # three rows of one block
NVFP4 = np.ones((2, 16), np.uint8), np.ones((2, 2), ml_dtypes.float8_e4m3fn), np.ones((), np.float32)

FACTS = Facts(
    category="quantization",
    samples={
        "dequantize": call(np.arange(68, dtype=np.uint8).reshape(2, 34), "q8_0"),
        "dequantize_linear": call(CODES, ONE),
        "dynamic_quantize": call(X, (1, 2), "u8", symmetric=False),
        "fake_quantize": call(X, 0.1, 3, 0, 255),
        "fake_quantize_backward": call(X, X, 0.1, 3, 0, 255),
        "fake_quantize_per_channel_affine": call(X, np.abs(ROWS) + 0.1, LENGTHS[:1].repeat(len(ROWS)), 0, 0, 255),
        "fake_quantize_per_channel_affine_backward": call(
            X, X, np.abs(ROWS) + 0.1, LENGTHS[:1].repeat(len(ROWS)), 0, 0, 255
        ),
        "fake_quantize_per_tensor_affine": call(X, 0.1, 3, 0, 255),
        "fake_quantize_per_tensor_affine_backward": call(X, X, 0.1, 3, 0, 255),
        "mx_dequantize": call(
            np.arange(64, dtype=np.uint8).reshape(2, 32), np.full((2, 1), 127, np.uint8), "mxfp6_e2m3"
        ),
        "mx_quantize": call(floats(2, 32), "mxfp6_e3m2"),
        "nvfp4_dequantize": call(
            CODES.view(np.uint8)[:2, :1].repeat(16, 1), np.ones((2, 2), ml_dtypes.float8_e4m3fn), ONE
        ),
        "nvfp4_quantize": call(floats(2, 32)),
        "quant_embedding": call(np.arange(68, dtype=np.uint8).reshape(2, 34), TARGET % 2, "q8_0"),
        "quant_linear": call(X, CODES, ONE, None, LAYER[0, :1].repeat(4)),
        "quant_linear_backward": call(floats(3, 4), CODES, ONE, None, LAYER[0, :1].repeat(4)),
        "quant_matmul": call(floats(2, 32), np.arange(102, dtype=np.uint8).reshape(3, 34) % 60, "q8_0"),
        "quant_matmul_backward": call(floats(2, 3), np.arange(102, dtype=np.uint8).reshape(3, 34) % 60, "q8_0"),
        "quant_matmul_ids": call(
            floats(2, 32), np.arange(136, dtype=np.uint8).reshape(2, 2, 34) % 60, TARGET[:2] % 2, "q8_0"
        ),
        "quant_matmul_ids_backward": call(
            floats(2, 2), np.arange(136, dtype=np.uint8).reshape(2, 2, 34) % 60, TARGET[:2] % 2, "q8_0", (2, 32)
        ),
        "quantize": call(floats(2, 32), "q4_0"),
        "quantize_linear": call(X, np.abs(ROWS) + 0.1, dtype="u4", axis=0),
        "repack_awq": call(WORDS, WORDS[:1], np.ones((1, 64), np.float16)),
        "repack_gptq": call(WORDS, WORDS[:1, :1], np.ones((1, 8), np.float16)),
    },
    steps={
        "fake_quantize_per_channel_affine": [call(ramp(2, 3), ramp(2), np.zeros(2, np.int32), 0, 0, 255)],
        "fake_quantize_per_channel_affine_backward": [
            call(ramp(2, 3), ramp(2, 3), ramp(2), np.zeros(2, np.int32), 0, 0, 255)
        ],
        "fake_quantize_per_tensor_affine": [call(ramp(4), 0.1, 3, 0, 255)],
        "fake_quantize_per_tensor_affine_backward": [call(ramp(4), ramp(4), 0.1, 3, 0, 255)],
        "mx_dequantize": [
            call(np.ones((2, 32), np.uint8), np.ones((2, 1), np.uint8), "mxfp6_e3m2"),
            call(np.ones((2, 16), np.uint8), np.ones((2, 1), np.uint8), "mxfp4", "f16"),
            call(np.ones((2, 32), np.int8), np.ones((2, 1), np.uint8), "mxint8", "bf16"),
        ],
        "mx_quantize": [
            call(ramp(2, 32)),
            call(ramp(2, 32).astype(np.float16), "mxfp6_e2m3"),
            call(ramp(2, 32), "mxfp4"),
            call(ramp(2, 32), "mxint8"),
        ],
        "nvfp4_dequantize": [call(*NVFP4, "f16")],
        "nvfp4_quantize": [
            call(ramp(2, 32)),
            call(ramp(2, 32).astype(np.float16), np.ones((), np.float32)),
            call(ramp(2, 32)[:0]),
        ],
        "quant_embedding": [call(BLOCKS, np.array([1, 0]), "q8_0")],
        "quant_linear": [
            call(ramp(2, 4), np.ones((3, 4), np.int8), ramp(1)),
            call(ramp(2, 4), np.ones((3, 2), np.uint8), ramp(1), packed="u4"),
            call(ramp(2, 4), np.ones((3, 4), np.int8), ramp(1), quantize_input=True),
            call(ramp(2, 4), np.ones((3, 4), np.int8), ramp(1), order=np.arange(4)),
        ],
        "quant_linear_backward": [
            call(ramp(2, 3), np.ones((3, 4), np.int8), ramp(1), None, ramp(3), np.arange(4)),
            call(ramp(2, 3), np.ones((3, 2), np.uint8), ramp(1), packed="u4"),
        ],
        "quant_matmul_backward": [call(ramp(2, 3), BLOCKS, "q8_0")],
        "quant_matmul_ids_backward": [call(ramp(5, 3), np.stack([BLOCKS] * 2), np.arange(5) % 2, "q8_0", (1, 32))],
        "repack_awq": [call(WORDS, WORDS[:1], np.ones((1, 64), np.float16))],
        "repack_gptq": [
            call(WORDS, WORDS[:1, :1], np.ones((1, 8), np.float16)),
            call(np.zeros((6, 32), np.int32), np.zeros((1, 3), np.int32), np.ones((1, 32), np.float16), bits=3),
            call(WORDS, WORDS[:1, :1], np.ones((1, 8), np.float16), np.zeros(64, np.int32)),
        ],
    },
    alone=because(
        "of GGUF's blocks; compared with the gguf package in tests/ops",
        "quantize dequantize quant_matmul quant_matmul_ids quant_embedding",
    )
    | because(
        SCALES,
        "quantize_linear dequantize_linear dynamic_quantize fake_quantize fake_quantize_per_tensor_affine "
        "fake_quantize_per_channel_affine quant_linear repack_awq repack_gptq nvfp4_quantize nvfp4_dequantize "
        "mx_quantize mx_dequantize",
    ),
)
