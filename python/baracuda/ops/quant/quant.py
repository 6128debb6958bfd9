"""GGUF's blocks of quantized values. Kernels in csrc/ops/quant, reference in quant_ref.py."""

from __future__ import annotations

from enum import Enum
from typing import Any

from baracuda.call.op import Arg, Call, NotDifferentiable, Op, Recipe, function
from baracuda.describe.dims import Dim, Shape
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.spec import Descriptor, Signature, descriptor, frame, output, tensor


class BlockFormat(Enum):
    """How GGUF files hold values: blocks of bytes, along the last dimension, with scales in them.

    A block of 32 or 256 values is so many bytes (`block_bytes`); where its scale is d, and m its minimum, a value is d q or
    d q + m of a small integer q. The K and IQ formats (but iq4_nl) are blocks of 256 whose groups of 16 or 32 have scales of their own;
    iq1, iq2 and iq3 hold 4 or 8 values as their number in a table, and are read only. TQ formats hold -1, 0 and 1. All numbers are
    little endian, and lie as ggml has them.
    """

    Q4_0 = "q4_0"
    Q4_1 = "q4_1"
    Q5_0 = "q5_0"
    Q5_1 = "q5_1"
    Q8_0 = "q8_0"
    Q2_K = "q2_k"
    Q3_K = "q3_k"
    Q4_K = "q4_k"
    Q5_K = "q5_k"
    Q6_K = "q6_k"
    Q8_K = "q8_k"
    IQ4_NL = "iq4_nl"
    MXFP4 = "mxfp4"
    IQ4_XS = "iq4_xs"
    IQ3_S = "iq3_s"
    IQ3_XXS = "iq3_xxs"
    IQ2_S = "iq2_s"
    IQ2_XS = "iq2_xs"
    IQ2_XXS = "iq2_xxs"
    IQ1_M = "iq1_m"
    IQ1_S = "iq1_s"
    TQ2_0 = "tq2_0"
    TQ1_0 = "tq1_0"

    @classmethod
    def _missing_(cls, value: object) -> BlockFormat | None:
        """Names as ggml spells them, too: "Q4_K"."""
        return next((f for f in cls if isinstance(value, str) and f.value == value.lower()), None)

    @property
    def code(self) -> int:
        """The number that ggml, files and kernels know it by."""
        return _SIZES[self.value][0]

    @property
    def written(self) -> bool:
        """Whether `quantize` makes it. Of iq1, iq2 and iq3 the codes are found by a search with a calibration, which llama-quantize has."""
        return self.value[:3] not in ("iq1", "iq2", "iq3")

    @property
    def block_values(self) -> int:
        """Values of a block."""
        return _SIZES[self.value][1]

    @property
    def block_bytes(self) -> int:
        """Bytes of a block."""
        return _SIZES[self.value][2]


_SIZES = {
    "q4_0": (2, 32, 18), "q4_1": (3, 32, 20), "q5_0": (6, 32, 22), "q5_1": (7, 32, 24), "q8_0": (8, 32, 34),
    "q2_k": (10, 256, 84), "q3_k": (11, 256, 110), "q4_k": (12, 256, 144), "q5_k": (13, 256, 176), "q6_k": (14, 256, 210),
    "q8_k": (15, 256, 292), "iq4_nl": (20, 32, 18), "mxfp4": (39, 32, 17), "iq4_xs": (23, 256, 136), "iq3_s": (21, 256, 110),
    "iq3_xxs": (18, 256, 98), "iq2_s": (22, 256, 82), "iq2_xs": (17, 256, 74), "iq2_xxs": (16, 256, 66), "iq1_m": (29, 256, 56),
    "iq1_s": (19, 256, 50), "tq2_0": (35, 256, 66), "tq1_0": (34, 256, 54),
}  # fmt: skip


@frame
class _Blocks(Descriptor):
    """Fields and checks that reading and writing blocks share."""

    __slots__ = ()
    shape: Shape
    format: BlockFormat
    element: Element = Element.F32

    def validate(self) -> None:
        values = self.format.block_values
        if not self.shape or isinstance(self.shape[-1], Dim) or self.shape[-1] % values:
            want = (
                f"at least one dimension, the last a multiple of {values}, the values of a block of {self.format.value}"
            )
            raise self.wrong("shape", self.shape, want)

    def blocks_shape(self) -> Shape:
        """Shape of the bytes."""
        last = self.shape[-1]
        assert isinstance(last, int)
        return (*self.shape[:-1], last // self.format.block_values * self.format.block_bytes)

    def attributes(self) -> dict[str, int | float]:
        return {"format": self.format.code}


@descriptor(family="quant", op="dequantize", enums={"format": BlockFormat})
class DequantizeDescriptor(_Blocks):
    """y = the values of the blocks x: scales times small integers, as ggml and the `gguf` package read them.

    In f32, correctly rounded, then rounded to the element of y. A scale that is NaN or infinite gives NaN or infinite
    values. Every sequence of bytes is legal.

    Args:
        shape: Shape of y, rank 1-8; the last size is a multiple of the format's block. x has the bytes of these blocks.
        format: One of BlockFormat.
        element: Of y: f16, bf16, f32 or f64.
    """

    def signature(self) -> Signature:
        return Signature(tensor("x", self.blocks_shape(), Element.U8), output("y", self.shape, self.element))


@descriptor(family="quant", op="quantize", enums={"format": BlockFormat})
class QuantizeDescriptor(_Blocks):
    """y = the blocks that hold x; of q4_0, q4_1, q5_0, q5_1, q8_0, mxfp4, tq1_0 and tq2_0 bit for bit as ggml and `gguf` have them.

    With a block's value of the largest size v: q8_0 has d = abs(v) / 127 and the nearest integers to x / d, halves away from zero;
    q4_0 and q5_0 have d = -v / 8 and -v / 16, and floor(x / d + 1/2). q4_1 and q5_1 have m = min(x), d = (max(x) - m) / 15 and
    / 31, and floor((x - m) / d + 1/2). All in f32, by a reciprocal of d before d and m are rounded to f16; f64 is rounded
    to f32 first. A block with NaN or an infinity has a scale that is NaN or infinite, and reads as NaN.

    mxfp4 has d = 2^(e - 127) with e = floor(log2(abs(v))) + 125, of the logarithm rounded to f32 and within 0 to 253, and the nearest
    of 0, 1/2, 1, 3/2, 2, 3, 4 and 6 times d, of two the smaller one. Its scales have no NaN, so that NaN becomes 0; infinities stay, and
    beside them there are only zeros.

    The K formats' groups of 16 or 32 have the scale of their range: (max(x) - min(0, min(x))) / (the most code) above the minimum
    min(0, min(x)) in q2_k, q4_k and q5_k, -v / 4 in q3_k, -v / 32 in q6_k. Scales and minima become the nearest integers to their
    largest over 15 (q2_k), 63 (q4_k, q5_k), -32 (q3_k) or -128 (q6_k), and codes the nearest ones for what these stand for. ggml
    searches for better scales and has somewhat smaller errors; any reader of the formats reads both. q8_k has d = -v / 127 and the
    nearest integers, halves to even, as ggml has it; iq4_nl has d = -v / 127 and the nearest entries of its table, iq4_xs the
    same for groups of 32, with scales of 6 bits as those of q3_k. tq1_0 and tq2_0 have d = abs(v) and -1, 0 or 1, the nearest
    to x / d, halves away from zero.

    Args:
        shape: Shape of x, rank 1-8; the last size is a multiple of the format's block. y has the bytes of these blocks.
        format: One of BlockFormat that is written.
        element: Of x: f16, bf16, f32 or f64.
    """

    def validate(self) -> None:
        """Blocks are whole, and of a format that is written."""
        _Blocks.validate(self)
        if not self.format.written:
            names = ", ".join(f.value for f in BlockFormat if f.written)
            raise self.wrong(
                "format", self.format.value, f"one that is written: {names}; llama-quantize makes the others"
            )

    def signature(self) -> Signature:
        return Signature(tensor("x", self.shape, self.element), output("y", self.blocks_shape(), Element.U8))


OPS = (
    Op("dequantize", DequantizeDescriptor, NotDifferentiable("its input is codes"), "the values of GGUF's blocks"),
    Op(
        "quantize",
        QuantizeDescriptor,
        NotDifferentiable("codes do not change with the input"),
        "GGUF's blocks of values",
    ),
)


def format_of(name: str, given: Any) -> BlockFormat:
    """The format that an argument of a function names."""
    try:
        return BlockFormat(given)
    except ValueError:
        names = ", ".join(f.value for f in BlockFormat)
        raise InvalidProblemError(f"{name}: format: got {given!r}, want one of {names}.") from None


@function(tensors="input")
def quantize(call: Call, input: Arg, format: str, *, out: Arg | None = None) -> Recipe:
    """The blocks of a GGUF format that hold `input`, as bytes along the last dimension.

    Args:
        input: f16, bf16, f32 or f64; the last size is a multiple of 32, of 256 for the K, TQ and IQ formats but iq4_nl.
        format: As in `dequantize`, but iq1, iq2 and iq3, which are read only.
        out: Where the bytes go.

    Returns:
        Bytes (u8): `BlockFormat.block_bytes` for every block of values.
    """
    return call(QuantizeDescriptor(input.shape, format_of("quantize", format), input.element), x=input)


@function(tensors="input")
def dequantize(call: Call, input: Arg, format: str, dtype: Any = "f32", *, out: Arg | None = None) -> Recipe:
    """The values of blocks of a GGUF format.

    Args:
        input: Bytes (u8): whole blocks along the last dimension.
        format: "q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "q8_k", "iq4_nl", "mxfp4",
            "iq4_xs", "iq3_s", "iq3_xxs", "iq2_s", "iq2_xs", "iq2_xxs", "iq1_m", "iq1_s", "tq2_0" or "tq1_0", in letters of any size.
        dtype: Element of the result: f16, bf16, f32 or f64.
        out: Where the values go.

    Returns:
        The values.
    """
    made = format_of("dequantize", format)
    if input.rank == 0 or input.element is not Element.U8 or input.shape[-1] % made.block_bytes:
        raise InvalidProblemError(
            f"dequantize: input: got {input.element} {input.shape}, want u8 whose last size is a multiple of "
            f"{made.block_bytes}, the bytes of a block of {made.value}."
        )
    shape = (*input.shape[:-1], input.shape[-1] // made.block_bytes * made.block_values)
    return call(DequantizeDescriptor(shape, made, Element.coerce(dtype, "dequantize: dtype")), x=input)
