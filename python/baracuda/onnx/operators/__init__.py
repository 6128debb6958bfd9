"""ONNX's operators as functions of `bc.functional`: one table for networks that are run and for the tests of conformance."""

from baracuda.onnx.operators import (
    attention,
    elementwise,
    images,
    indexing,
    norms,
    products,
    quantized,
    recurrent,
    reductions,
    resize,
    sequences,
    shapes,
    signals,
    table,
    training,
    windows,
)
from baracuda.onnx.operators.microsoft import attention as microsoft_attention
from baracuda.onnx.operators.microsoft import fused as microsoft_fused
from baracuda.onnx.operators.microsoft import quantized as microsoft_quantized
from baracuda.onnx.operators.table import TABLE, Operator

MODULES = (
    attention, elementwise, images, indexing, norms, products, quantized, recurrent, reductions, resize, sequences, shapes,
    signals, table, training, windows, microsoft_attention, microsoft_fused, microsoft_quantized,
)  # fmt: skip

__all__ = ["MODULES", "TABLE", "Operator"]
