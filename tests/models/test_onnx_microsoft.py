"""Operators of ONNX Runtime's own, on random inputs, against ONNX Runtime: run by ci/models.sh, where that is installed."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

if os.environ.get("BARACUDA_MODELS") != "1":
    pytest.skip("asked for by ci/models.sh", allow_module_level=True)

import onnx
import onnxruntime
from onnx import TensorProto, helper

import baracuda.onnx

KINDS = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.uint8): TensorProto.UINT8, np.dtype(np.int8): TensorProto.INT8,
         np.dtype(np.int32): TensorProto.INT32, np.dtype(np.int64): TensorProto.INT64}  # fmt: skip
RNG = np.random.default_rng(5)


def f(*shape: int) -> Any:
    return RNG.normal(size=shape).astype(np.float32)


def u(*shape: int, low: int = 0, high: int = 256) -> Any:
    return RNG.integers(low, high, shape).astype(np.uint8)


def s(value: float) -> Any:
    return np.array(value, np.float32)


def z(value: int = 128) -> Any:
    return np.array(value, np.uint8)


MASK = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
TURN = (
    np.cos(np.outer(np.arange(16), np.arange(1, 5))).astype(np.float32),
    np.sin(np.outer(np.arange(16), np.arange(1, 5))).astype(np.float32),
)
IDS = u(2, 5, high=9).astype(np.int32)
WIDE = [np.ascontiguousarray(np.concatenate([t, t[:, ::-1]], 1)) for t in TURN]
LENGTHS = np.array([6, 6], np.int32)
# Operator, inputs, attributes, number of outputs compared.
CASES: list[tuple[str, list[Any], dict[str, Any], int]] = [
    ("Gelu", [f(3, 7)], {}, 1), ("FastGelu", [f(3, 7), f(7)], {}, 1), ("QuickGelu", [f(3, 7)], {"alpha": 1.702}, 1),
    ("BiasGelu", [f(3, 7), f(7)], {}, 1),
    ("FusedMatMul", [f(2, 4, 3), f(2, 5, 4)], {"transA": 1, "transB": 1, "alpha": 0.5}, 1),
    ("FusedGemm", [f(3, 4), f(4, 5), f(5)], {"activation": "Relu"}, 1),
    ("FusedConv", [f(1, 3, 6, 6), f(4, 3, 3, 3), f(4)], {"activation": "LeakyRelu", "activation_params": [0.2], "pads": [1, 0, 1, 2]}, 1),
    ("SkipLayerNormalization", [f(2, 3, 8), f(2, 3, 8), f(8), f(8), f(8)], {"epsilon": 1e-5}, 1),
    ("SkipSimplifiedLayerNormalization", [f(2, 3, 8), f(2, 3, 8), f(8)], {"epsilon": 1e-5}, 1),
    ("EmbedLayerNormalization", [IDS, IDS % 2, f(9, 8), f(7, 8), f(2, 8), f(8), f(8), MASK], {"epsilon": 1e-5}, 2),
    ("Attention", [f(2, 5, 8), f(8, 24), f(24)], {"num_heads": 2}, 1),
    ("Attention", [f(2, 5, 8), f(8, 24), f(24), MASK], {"num_heads": 2}, 1),
    ("Attention", [f(2, 5, 8), f(8, 24), f(24), np.array([3, 5], np.int32)], {"num_heads": 2}, 1),
    ("Attention", [f(2, 5, 8), f(8, 24), f(24)], {"num_heads": 2, "unidirectional": 1}, 1),
    ("Attention", [f(2, 3, 8), f(8, 24), f(24), None, f(2, 2, 2, 4, 4)], {"num_heads": 2, "unidirectional": 1}, 2),
    ("MultiHeadAttention", [f(2, 3, 8), f(2, 5, 8), f(2, 5, 8), f(24)], {"num_heads": 2}, 1),
    ("MultiHeadAttention", [f(2, 3, 8), f(2, 5, 8), f(2, 5, 8), None, MASK], {"num_heads": 2}, 1),
    ("MultiHeadAttention", [f(2, 5, 8), f(2, 5, 8), f(2, 5, 8), None, None, f(1, 2, 5, 5)], {"num_heads": 2}, 1),
    ("RotaryEmbedding", [f(2, 3, 5, 8), np.array([2], np.int64), *TURN], {}, 1),
    ("RotaryEmbedding", [f(2, 5, 24), np.arange(10).reshape(2, 5), *TURN], {"interleaved": 1}, 1),
    ("GroupQueryAttention", [f(2, 7, 64), f(2, 7, 32), f(2, 7, 32), None, None, LENGTHS, np.array(7, np.int32)],
     {"num_heads": 4, "kv_num_heads": 2}, 3),
    ("GroupQueryAttention", [f(2, 1, 64), f(2, 1, 32), f(2, 1, 32), f(2, 2, 6, 16), f(2, 2, 6, 16), LENGTHS, np.array(7, np.int32), *WIDE],
     {"num_heads": 4, "kv_num_heads": 2, "do_rotary": 1}, 3),
    ("GroupQueryAttention", [f(2, 7, 64), f(2, 7, 32), f(2, 7, 32), None, None, LENGTHS, np.array(7, np.int32), *WIDE],
     {"num_heads": 4, "kv_num_heads": 2, "do_rotary": 1, "local_window_size": 3}, 3),
    ("MatMulNBits", [f(3, 64), u(5, 2, 16), f(5, 2)], {"K": 64, "N": 5, "bits": 4, "block_size": 32}, 1),
    ("MatMulNBits", [f(3, 64), u(5, 2, 16), f(5, 2), u(5, 1)], {"K": 64, "N": 5, "bits": 4, "block_size": 32}, 1),
    ("DynamicQuantizeMatMul", [f(3, 4), u(4, 5), s(0.1), z(120), f(5)], {}, 1),
    ("MatMulIntegerToFloat", [u(3, 4), u(4, 5), s(0.1), s(0.2), z(3), z(120), f(5)], {}, 1),
    ("QLinearAdd", [u(3, 5), s(0.1), z(), u(3, 5), s(0.2), z(100), s(0.3), z(110)], {}, 1),
    ("QLinearMul", [u(3, 5), s(0.1), z(), u(3, 5), s(0.2), z(100), s(3.0), z(110)], {}, 1),
    ("QLinearSigmoid", [u(3, 5), s(0.1), z(), s(1 / 256), z(0)], {}, 1),
    ("QLinearLeakyRelu", [u(3, 5), s(0.1), z(), s(0.1), z(20)], {"alpha": 0.1}, 1),
    ("QLinearSoftmax", [u(3, 5), s(0.1), z(), s(1 / 256), z(0)], {"axis": -1, "opset": 13}, 1),
    ("QLinearGlobalAveragePool", [u(2, 3, 4, 4), s(0.1), z(), s(0.05), z(120)], {"channels_last": 0}, 1),
    ("QLinearAveragePool", [u(2, 3, 5, 5), s(0.1), z(), s(0.1), z(120)], {"kernel_shape": [2, 2], "strides": [1, 2]}, 1),
    ("QLinearConcat", [s(0.2), z(90), u(2, 3), s(0.1), z(), u(2, 4), s(0.3), z(80)], {"axis": 1}, 1),
    ("QGemm", [u(3, 4), s(0.1), z(), u(4, 5), s(0.2), z(7), RNG.integers(-99, 99, 5).astype(np.int32), s(2.0), z(100)], {}, 1),
    ("NhwcMaxPool", [u(1, 6, 6, 3)], {"kernel_shape": [2, 2], "strides": [2, 2]}, 1),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=[f"{i}-{c[0]}" for i, c in enumerate(CASES)])
def test_operators_give_what_onnxruntime_gives(case: Any) -> None:
    op, inputs, attributes, count = case
    names = [f"x{i}" if x is not None else "" for i, x in enumerate(inputs)]
    outputs = [f"y{i}" for i in range(count)]
    node = helper.make_node(op, names, outputs, name="it", domain="com.microsoft", **attributes)
    given = [helper.make_tensor_value_info(n, KINDS[x.dtype], x.shape) for n, x in zip(names, inputs, strict=True) if n]
    made = [helper.make_value_info(n, onnx.TypeProto()) for n in outputs]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(helper.make_graph([node], "g", given, made), opset_imports=opsets, ir_version=8)
    feeds = {n: x for n, x in zip(names, inputs, strict=True) if n}
    wanted = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(
        None, feeds
    )
    for got, want in zip(baracuda.onnx.load(model).run(feeds).values(), wanted, strict=True):
        assert got.dtype == want.dtype and got.shape == want.shape
        if want.dtype.kind in "iu":  # one rounding may fall on the other side
            assert np.abs(got.astype(int) - want.astype(int)).max() <= 1
        else:
            atol = 2e-4 if op == "FastGelu" or "MatMul" in op else 2e-5
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=atol)
