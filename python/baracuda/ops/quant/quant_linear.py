"""Layers with quantized weights, and the weights of other tools in our layout. No kernels of their own."""

from __future__ import annotations

from math import prod
from typing import Any

from baracuda.call.compose import Composer, Value, composed
from baracuda.call.steps import made_of
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.ops.layout.layout import ArangeDescriptor
from baracuda.ops.quant.code_linear import QuantLinearDescriptor
from baracuda.ops.quant.scaled import PACKED, block_scales, laid

OPS = ()
_CODES = (Element.I8, Element.F8E4M3)  # that are multiplied as they are


@made_of("quant_linear dynamic_quantize scaled_matmul index_select")
@composed(tensors="input weight scale zero_point bias order")
def quant_linear(
    c: Composer,
    input: Value,
    weight: Value,
    scale: Value,
    zero_point: Value | None = None,
    bias: Value | None = None,
    order: Value | None = None,
    *,
    packed: Any = None,
    quantize_input: bool = False,
    out: Value | None = None,
) -> Value:
    """Gives input @ w.T + bias, where w = (weight - zero_point) scale: `linear` with a weight that quantize_linear made.

    Without `quantize_input` the weight's values are found in f32 while they are multiplied (W8A16, W4A16, 8-bit floats). With it
    each row of `input` is rounded to codes of the weight's element by its own scale, as dynamic_quantize does, and codes are multiplied
    (W8A8): sums of i8 are exact. Its gradients are those with respect to `input`, of one that is not rounded, and `bias`.

    Args:
        input: (..., K) of f32, f16 or bf16.
        weight: Codes (N, K), or with `packed` bytes (N, K / 2) of two.
        scale: One number, or two sizes that divide N and K: (N, 1), (N, K / group); with `quantize_input` not in groups.
        zero_point: Integers of the scale's shape; not with `quantize_input`.
        bias: (N,), of the element of `input`.
        order: i64 or i32 (K,): the columns of `input` in the order of the weight's, as repack_gptq gives them for act-order.
        packed: "s4" or "u4": the weight is bytes.
        quantize_input: Multiply codes; the weight is i8 or f8e4m3.
        out: Where the result goes.

    Returns:
        (..., N), of the element of `input`.
    """
    from baracuda import functional

    if order is not None:
        _check_order(order, input.shape[-1] if input.rank else 0)
        input = c.of(functional.index_select, input, input.rank - 1, order)
    if not quantize_input:
        return _by_values(c, input, weight, scale, zero_point, bias, packed)
    if weight.rank != 2 or weight.element not in _CODES or packed is not None or zero_point is not None:
        want = "i8 or f8e4m3 with 2 dimensions, neither packed nor with zero points"
        raise InvalidProblemError(f"quant_linear: weight: got {weight.element} {weight.shape}, want {want}.")
    if scale.shape not in ((), (1,), (1, 1), (weight.shape[0], 1)):
        want = f"one number or ({weight.shape[0]}, 1), for sums of codes have one scale"
        raise InvalidProblemError(f"quant_linear: scale: got {scale.shape}, want {want}.")
    lines = input if input.rank != 1 else c.reshape(input, (1, *input.shape))
    rows = (1,) * (lines.rank - 1) + (-1,)
    codes, each = c.of(functional.dynamic_quantize, lines, rows, weight.element)
    other = c.reshape(c.cast(scale, Element.F32), (1, prod(scale.shape)))
    options = {"out_dtype": input.element}
    product: Value = c.of(functional.scaled_matmul, codes, weight.permute((1, 0)), each, other, bias, **options)
    return product if input.rank != 1 else c.reshape(product, product.shape[1:])


def _by_values(
    c: Composer, input: Value, weight: Value, scale: Value, zero_point: Value | None, bias: Value | None, packed: Any
) -> Value:
    """The product with the weight's values as one kernel."""
    code, twice = weight.element, 1
    if packed is not None:
        code, twice = Element.coerce(packed, "quant_linear: packed"), 2
        if code not in PACKED or weight.element is not Element.U8:
            want = "s4 or u4, and a weight of u8"
            raise InvalidProblemError(f"quant_linear: packed: got {code} and {weight.element}, want {want}.")
    if weight.rank != 2 or input.rank == 0 or input.shape[-1] != twice * weight.shape[1]:
        got = f"input {input.shape} and weight {weight.shape}"
        raise InvalidProblemError(
            f"quant_linear: got {got}, want (..., K) and (N, {'K' if packed is None else 'K / 2'})."
        )
    shape = (weight.shape[0], twice * weight.shape[1])
    if scale.shape not in ((), (1,)) and scale.rank != 2:
        want = "one number, or two sizes that divide those of the weight: (N, 1) is one for each row"
        raise InvalidProblemError(f"quant_linear: scale: got {scale.shape}, want {want}.")
    scales = block_scales("quant_linear", shape, scale.shape, None)
    if bias is not None:
        _check_bias("quant_linear", bias, shape[0], input.element)
    desc = QuantLinearDescriptor(
        input.shape, shape, scales, input.element, code, zero_point is not None, bias is not None
    )
    zero = None if zero_point is None else laid(c, zero_point, scales, Element.I32)
    y: Value = c(desc, x=input, w=weight, scale=laid(c, scale, scales, Element.F32), zero_point=zero, bias=bias)
    return y


def _check_bias(name: str, bias: Value, columns: int, element: Element) -> None:
    if bias.shape != (columns,) or bias.element is not element:
        got, want = f"{bias.element} {bias.shape}", f"{element} ({columns},)"
        raise InvalidProblemError(f"{name}: bias: got {got}, want {want}.")


def _check_order(order: Value, depth: int) -> None:
    if order.shape != (depth,):
        raise InvalidProblemError(f"quant_linear: order: got {order.shape}, want ({depth},), the columns of the input.")


@made_of("dequantize_linear unpack_int4 matmul sum index_select_backward")
@composed(tensors="dy weight scale zero_point bias order")
def quant_linear_backward(
    c: Composer,
    dy: Value,
    weight: Value,
    scale: Value,
    zero_point: Value | None = None,
    bias: Value | None = None,
    order: Value | None = None,
    *,
    packed: Any = None,
) -> Value | tuple[Value, Value]:
    """The gradient of quant_linear with respect to its input, dy @ w, and to its bias where there is one: sums of dy.

    Args:
        dy: (..., N), the gradient with respect to the result.
        weight: As in quant_linear.
        scale: As in quant_linear.
        zero_point: As in quant_linear.
        bias: As in quant_linear.
        order: As in quant_linear.
        packed: As in quant_linear.
    """
    from baracuda import functional

    options = {} if packed is None else {"packed": packed}
    values = c.of(functional.dequantize_linear, weight, scale, zero_point, None, dy.element, **options)
    found: Value = c.of(functional.matmul, dy, values)
    if order is not None:
        _check_order(order, found.shape[-1])
        found = c.of(functional.index_select_backward, found, order, found.shape, found.rank - 1)
    if bias is None:
        return found
    _check_bias("quant_linear_backward", bias, values.shape[0], dy.element)
    rows = tuple(range(dy.rank - 1))
    return found, c.of(functional.sum, dy, rows) if rows else dy


quant_linear.pulled_by(quant_linear_backward)
quant_linear.without_gradient("scale zero_point")


def _words(name: str, x: Value) -> Value:
    if x.rank != 2 or x.element is not Element.I32:
        raise InvalidProblemError(f"{name}: got {x.element} of {x.rank} dimensions, want i32 of 2.")
    return x


def _codes_of(c: Composer, x: Value, bits: int) -> Value:
    """The codes (rows, codes; u8) of rows of 32-bit words, lowest bits first; those of 3 bits go on in the next word."""
    from baracuda import functional

    rows, words = x.shape
    if bits == 3:  # 8 codes have 3 bytes
        octets = c.reshape(_fields(c, x, 4, 8, 255), (rows, words * 4 // 3, 3))
        places = c(ArangeDescriptor((3,), Element.I32), start=0, step=8)
        moved = c.of(functional.bitwise_left_shift, octets, places)
        low = c.of(functional.bitwise_or, moved[..., 0], moved[..., 1])
        x, words = c.of(functional.bitwise_or, low, moved[..., 2]), words * 4 // 3
    count = 8 if bits == 3 else 32 // bits
    return c.cast(c.reshape(_fields(c, x, count, bits, 2**bits - 1), (rows, words * count)), Element.U8)


def _fields(c: Composer, x: Value, count: int, step: int, mask: int) -> Value:
    """`count` runs of bits of each word, along a new last dimension."""
    from baracuda import functional

    places = c(ArangeDescriptor((count,), Element.I32), start=0, step=step)
    moved = c.of(functional.bitwise_right_shift, x.permute((0, 1, -1)), places)
    found: Value = c.of(functional.bitwise_and, moved, mask)
    return found


def _check(name: str, depth: int, columns: int, zeros: Value, scales: Value, bits: int) -> None:
    groups = scales.shape[0] if scales.rank == 2 else 0
    if scales.rank != 2 or scales.shape[1] != columns or not groups or depth % groups:
        want = f"(groups, {columns}), groups dividing {depth}"
        raise InvalidProblemError(f"{name}: scales: got {scales.shape}, want {want}.")
    if zeros.shape != (groups, columns * bits // 32) or columns * bits % (96 if bits == 3 else 32):
        each = "32 to 3 words" if bits == 3 else f"{32 // bits} to a word"
        raise InvalidProblemError(f"{name}: qzeros: got {zeros.shape}, want {(groups, columns * bits // 32)}, {each}.")


def _order_of(c: Composer, g_idx: Value, depth: int, groups: int) -> Value:
    """The rows of a weight by their groups; one that does not exist where these are not of one size."""
    from baracuda import functional

    if g_idx.shape != (depth,) or g_idx.element not in (Element.I32, Element.I64):
        raise InvalidProblemError(
            f"repack_gptq: g_idx: got {g_idx.element} {g_idx.shape}, want i32 or i64 ({depth},), the group of each row."
        )
    sorted_groups, order = c.of(functional.sort, g_idx, 0, stable=True)
    each = c.reshape(c(ArangeDescriptor((groups,), g_idx.element), start=0, step=1), (groups, 1))
    wanted = c.reshape(c.copy(each.expand((groups, depth // groups))), (depth,))
    found: Value = c.of(functional.where, c.of(functional.eq, sorted_groups, wanted), order, depth)
    return c.called(found, f"g_idx, of which {groups} groups of {depth // groups} are wanted")


_GPTQ_BITS = (2, 3, 4, 8)
_GPTQ_FORMATS = ("gptq", "gptq_v2")


@made_of(
    "arange bitwise_right_shift bitwise_and bitwise_left_shift bitwise_or cast copy pack_int4 add sort eq where index_select"
)
@composed(tensors="qweight qzeros scales g_idx")
def repack_gptq(
    c: Composer,
    qweight: Value,
    qzeros: Value,
    scales: Value,
    g_idx: Value | None = None,
    *,
    bits: int = 4,
    checkpoint_format: str = "gptq",
) -> tuple[Value, ...]:
    """A GPTQ checkpoint's layer as quant_linear takes it: `quant_linear(x, *repack_gptq(...), packed="u4")`.

    Words hold codes with the first in the lowest bits; those of 3 bits go on in the next word. In the format "gptq", which AutoGPTQ writes,
    zero points are stored less one: a stored z means (z + 1) & (2**bits - 1), so that the largest means 0. In "gptq_v2", which
    GPTQModel writes besides, they are stored as they are. The file's quantization config names both: "bits" and "checkpoint_format".
    Codes of 8 bits come as bytes, for `quant_linear` without `packed`. Without `g_idx` groups lie one after another. With it (act-order)
    columns of the weight are sorted by their groups, and `order` says how those of the input are to be:
    `w, scale, zero, order = repack_gptq(..., g_idx)`, `quant_linear(x, w, scale, zero, order=order, packed="u4")`.

    Args:
        qweight: i32 (K bits / 32, N), codes of a column one after another.
        qzeros: i32 (groups, N bits / 32), codes of a group one after another.
        scales: f16, bf16, f32 or f64 (groups, N), rounded to f32.
        g_idx: i32 or i64 (K,), the group of each row of the weight; each has K / groups of them.
        bits: Of a code: 2, 3, 4 or 8.
        checkpoint_format: "gptq" or "gptq_v2".

    Returns:
        Bytes (N, K / 2) of two codes (u4), of 8 bits (N, K) of one; scales (N, groups) in f32 and zero points (N, groups) in i32; with
        `g_idx` i64 (K,), the order.

    Raises:
        InvalidProblemError: A shape or an element does not fit, or the number of bits or the format is none of these.
        IndexOutOfRangeError: Groups of `g_idx` are not of one size, or are none.
    """
    from baracuda import functional

    version = _gptq_version(bits, checkpoint_format)
    words = _words("repack_gptq: qweight", qweight).shape[0]
    columns, depth = qweight.shape[1], words * 32 // bits
    if bits == 3 and words % 3:
        raise InvalidProblemError(
            f"repack_gptq: qweight: got {qweight.shape}, want (3 words for every 32 codes of 3 bits, N)."
        )
    _check("repack_gptq", depth, columns, _words("repack_gptq: qzeros", qzeros), scales, bits)
    codes = _codes_of(c, qweight.permute((1, 0)), bits)
    order = None if g_idx is None else _order_of(c, g_idx, depth, scales.shape[0])
    if order is not None:
        codes = c.of(functional.index_select, codes, 1, order)
    packed = codes if bits == 8 else c.of(functional.pack_int4, codes, "u4")
    zero = c.copy(c.cast(_codes_of(c, qzeros, bits), Element.I32).permute((1, 0)))
    if version == "gptq":
        zero = c.of(functional.bitwise_and, c.of(functional.add, zero, 1), 2**bits - 1)
    made = packed, c.copy(c.cast(scales, Element.F32).permute((1, 0))), zero
    return made if order is None else (*made, c.copy(order))


def _gptq_version(bits: Any, checkpoint_format: Any) -> str:
    if bits not in _GPTQ_BITS or isinstance(bits, bool):
        raise InvalidProblemError(f"repack_gptq: bits: got {bits!r}, want one of {', '.join(map(str, _GPTQ_BITS))}.")
    version = checkpoint_format.lower() if isinstance(checkpoint_format, str) else checkpoint_format
    if version not in _GPTQ_FORMATS:
        want = "'gptq', of AutoGPTQ and by default, or 'gptq_v2', as the checkpoint's quantization config says"
        raise InvalidProblemError(f"repack_gptq: checkpoint_format: got {checkpoint_format!r}, want {want}.")
    return str(version)


@made_of("arange bitwise_right_shift bitwise_and cast copy pack_int4")
@composed(tensors="qweight qzeros scales")
def repack_awq(c: Composer, qweight: Value, qzeros: Value, scales: Value) -> tuple[Value, Value, Value]:
    """An AWQ checkpoint's 4-bit layer as quant_linear takes it: `quant_linear(x, *repack_awq(...), packed="u4")`.

    The layout of AutoAWQ's gemm version: a word holds columns 0, 2, 4, 6, 1, 3, 5, 7 of 8, first in the lowest bits.

    Args:
        qweight: i32 (K, N / 8).
        qzeros: i32 (groups, N / 8).
        scales: f16, bf16, f32 or f64 (groups, N), rounded to f32.

    Returns:
        Bytes (N, K / 2) of two codes (u4), scales (N, groups) in f32 and zero points (N, groups) in i32.
    """
    from baracuda import functional

    def columns_first(name: str, x: Value) -> Value:
        """Codes (N, rows) as bytes."""
        rows, words = _words(name, x).shape
        codes = _codes_of(c, x, 4)  # of each word the even columns, then the odd ones
        split = c.reshape(codes, (rows, words, 2, 4)).permute((1, 3, 2, 0))
        return c.reshape(c.copy(split), (8 * words, rows))

    weight = columns_first("repack_awq: qweight", qweight)
    _check("repack_awq", qweight.shape[0], weight.shape[0], qzeros, scales, 4)
    zero = c.cast(columns_first("repack_awq: qzeros", qzeros), Element.I32)
    packed = c.of(functional.pack_int4, weight, "u4")
    return packed, c.copy(c.cast(scales, Element.F32).permute((1, 0))), zero
