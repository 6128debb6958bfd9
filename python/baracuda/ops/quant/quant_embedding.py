"""Rows of tables in GGUF's blocks, by index: bytes are gathered, then decoded. No kernel of its own."""

from __future__ import annotations

from typing import Any

from baracuda.call.compose import Composer, Value, composed
from baracuda.call.steps import made_of
from baracuda.ops.quant.quant import format_of

OPS = ()


@made_of("index_select dequantize")
@composed(tensors="weight input")
def quant_embedding(
    c: Composer, weight: Value, input: Value, format: str, dtype: Any = "f32", *, out: Value | None = None
) -> Value:
    """Rows of a table in blocks of a GGUF format, at the indices `input`: y[..., :] = dequantize(weight)[input[...], :].

    Only the rows that are asked for are decoded.

    Args:
        weight: Bytes (u8), (N, the bytes of K values).
        input: Indices (i32 or i64) from 0 to N - 1, of any shape.
        format: As in `dequantize`.
        dtype: Element of the result: f16, bf16, f32 or f64.
        out: Where the values go.

    Returns:
        (..., K): the shape of `input`, then the values of a row.

    Raises:
        IndexOutOfRangeError: An index is none of a row.
    """
    from baracuda import functional

    made = format_of("quant_embedding", format)
    count = 1
    for size in input.shape:
        count *= size
    rows = c.of(functional.index_select, weight, 0, c.reshape(input, (count,)))
    values = c.of(functional.dequantize, rows, made.value, dtype)
    return c.reshape(values, (*input.shape, values.shape[-1]))
