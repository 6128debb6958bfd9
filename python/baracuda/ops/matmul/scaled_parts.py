"""Products of 8-bit elements with zero points, and with scales for blocks, of other functions' steps. No kernels of their own."""

from __future__ import annotations

from typing import Any

from baracuda.call.compose import Composer, Value
from baracuda.describe.dims import Shape
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.ops.matmul.matmul import broadcasts_to

OPS = ()
BYTES = (Element.I8, Element.U8)
MOST_WITH_ZEROS = 2**31 // 255**2  # products of integers of 9 bits whose sum always fits 32 bits


def in_blocks(scale: Shape | None, factor: Shape, depth_axis: int) -> bool:
    """Whether there are scales for parts of K, which lies at this axis, or for blocks of rows or columns."""
    if scale is None or len(scale) < 2 or len(factor) < 2:
        return False
    lines = -3 - depth_axis
    n, m = factor[lines], scale[lines]
    return scale[depth_axis] != 1 or (isinstance(n, int) and isinstance(m, int) and 1 < m < n and n % m == 0)


def check_parts(name: str, left: Any, right: Any, zeros: dict[str, Any]) -> None:
    """Zero points are those of their factors' elements and of their rows or columns, and sums fit."""
    for (which, zero), factor in zip(zeros.items(), (left, right), strict=True):
        if zero is None:
            continue
        if factor.element not in BYTES or zero.element is not factor.element:
            got = f"got {zero.element} for factors of {factor.element}"
            raise InvalidProblemError(f"{name}: {which}: {got}, want i8 or u8, one element for both.")
        full = (*factor.shape[:-1], 1) if which == "zero_a" else (*factor.shape[:-2], 1, factor.shape[-1])
        if not broadcasts_to(zero.shape, full):
            want = f"a shape that broadcasts to {full}"
            raise InvalidProblemError(f"{name}: {which}: got {zero.shape}, want {want}.")
    if left.rank == 0 or left.shape[-1] > MOST_WITH_ZEROS:
        want = f"at most {MOST_WITH_ZEROS} products of integers less their zero points, whose sum fits 32 bits"
        raise InvalidProblemError(f"{name}: input: got {left.shape}, want {want}.")


def _signed(c: Composer, x: Value) -> Value:
    """Bytes less 128, as i8."""
    from baracuda import functional

    return x if x.element is Element.I8 else c.cast(c.of(functional.bitwise_xor, x, 128), Element.I8)


def whole_product(c: Composer, left: Value, right: Value, left_zero: Value | None, right_zero: Value | None) -> Value:
    """(left - zero) @ (right - zero) of 8-bit integers in i32, exact: a product of i8, and sums of its rows and columns."""
    from baracuda import functional as F

    product: Value = c.of(F.scaled_matmul, _signed(c, left), _signed(c, right))
    zeros: list[Any] = []
    for x, zero in ((left, left_zero), (right, right_zero)):
        less = 128 if x.element is Element.U8 else 0
        zeros.append(-less if zero is None else c.of(F.sub, c.cast(zero, Element.I32), less))
    (za, zb), depth = zeros, left.shape[-1]
    wide = [c.cast(_signed(c, x), Element.I32) for x in (left, right)]
    if not isinstance(zb, int) or zb:
        rows = c.cast(c.of(F.sum, wide[0], -1, True), Element.I32)
        product = c.of(F.sub, product, c.of(F.mul, rows, zb))
    if not isinstance(za, int) or za:
        columns = c.cast(c.of(F.sum, wide[1], -2, True), Element.I32)
        if isinstance(zb, int):
            rest = c.of(F.sub, columns, depth * zb) if zb else columns
        else:
            rest = c.of(F.sub, columns, c.of(F.mul, zb, depth))
        product = c.of(F.sub, product, c.of(F.mul, rest, za))
    return product


def blocks_product(c: Composer, left: Value, right: Value, scales: tuple[Value | None, Value | None]) -> Value:
    """The product of the values of codes in f32, with scales for blocks of any of their dimensions."""
    from baracuda import functional as F

    values = []
    for x, scale in zip((left, right), scales, strict=True):
        if scale is None:
            values.append(c.cast(x, Element.F32))
            continue
        whole = c.reshape(scale, (1,) * (x.rank - scale.rank) + scale.shape) if 0 < scale.rank < x.rank else scale
        values.append(c.of(F.dequantize_linear, x, whole))
    found: Value = c.of(F.matmul, *values)
    return found


def finished(c: Composer, y: Value, bias: Value | None, activation: str, element: Element) -> Value:
    """act(y + bias), rounded once."""
    from baracuda import functional as F

    if bias is not None:
        if bias.shape != y.shape[-1:]:
            raise InvalidProblemError(f"scaled_matmul: bias: got {bias.shape}, want {y.shape[-1:]}.")
        y = c.of(F.add, y, c.cast(bias, Element.F32))
    if activation.startswith("gelu"):
        y = c.of(F.gelu, y, "tanh" if activation == "gelu_tanh" else "none")
    elif activation != "none":
        y = c.of(getattr(F, activation), y)
    return c.cast(y, element)
