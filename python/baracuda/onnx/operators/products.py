"""Operators that multiply matrices."""

from __future__ import annotations

from typing import Any

from baracuda import functional as F
from baracuda.onnx.call import Call
from baracuda.onnx.operators.table import operator


@operator("MatMul")
def _matmul(c: Call, a: Any, b: Any) -> Any:
    return F.matmul(a, b)


@operator("Gemm")
def _gemm(c: Call, a: Any, b: Any, bias: Any = None) -> Any:
    if a.ndim != 2 or b.ndim != 2:
        c.wrong(f"tensors of {a.ndim} and {b.ndim} dimensions", "matrices")
    alpha, beta = c.get("alpha", 1.0), c.get("beta", 1.0)
    a, columns = a.T if c.get("transA", 0) else a, b.T if c.get("transB", 0) else b
    if alpha == 1 and beta == 1 and bias is not None and bias.shape == columns.shape[1:] and a.element.is_float:
        return F.linear(a, columns.T, bias)
    b = columns
    if bias is None:
        return F.mul(F.mm(a, b), alpha) if alpha != 1 else F.mm(a, b)
    return F.addmm(bias, a, b, beta=beta, alpha=alpha)
