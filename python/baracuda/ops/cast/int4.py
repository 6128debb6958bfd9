"""4-bit integers, two to a byte. Kernels in csrc/ops/cast, reference in int4_ref.py."""

from __future__ import annotations

from typing import Any

from baracuda.call.op import Arg, Call, NotDifferentiable, Op, Recipe, function
from baracuda.describe.dims import Dim, Shape
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.spec import Descriptor, Signature, descriptor, frame, output, tensor

INT4 = (Element.S4, Element.U4)


@frame
class _Int4(Descriptor):
    """Fields and checks that packing and unpacking share."""

    __slots__ = ()
    shape: Shape
    element: Element = Element.F32
    packed_element: Element = Element.S4

    def validate(self) -> None:
        if not self.shape or isinstance(self.shape[-1], Dim):
            raise self.wrong("shape", self.shape, "at least one dimension, the last an int")
        if self.packed_element not in INT4:
            raise self.wrong("packed_element", str(self.packed_element), "s4 or u4")

    def packed_shape(self) -> Shape:
        """Shape of the bytes."""
        last = self.shape[-1]
        assert isinstance(last, int)
        return (*self.shape[:-1], (last + 1) // 2)

    def attributes(self) -> dict[str, int | float]:
        return {"is_signed": int(self.packed_element is Element.S4)}


@descriptor(family="cast", op="pack_int4")
class PackInt4Descriptor(_Int4):
    """y[..., i] = code(x[..., 2i]) + 16 code(x[..., 2i + 1]): numbers become 4-bit integers, two to a byte.

    A number becomes the nearest integer, ties to even; what is beyond -8 to 7 (s4, two's complement) or 0 to 15 (u4),
    infinity too, the range's end, and NaN 0. The first element is in the low half, as in ONNX. Rows of odd length end
    with a byte whose high half is 0.

    Args:
        shape: Shape of x, rank 1-8; y has (n + 1) // 2 bytes for the n elements of the last dimension.
        element: Of x: f16, bf16, f32, f64, i8 or u8.
        packed_element: s4 or u4.
    """

    def signature(self) -> Signature:
        return Signature(tensor("x", self.shape, self.element), output("y", self.packed_shape(), Element.U8))


@descriptor(family="cast", op="unpack_int4")
class UnpackInt4Descriptor(_Int4):
    """y[..., 2i] and y[..., 2i + 1] are the integers of the low and the high half of x[..., i].

    Every element holds them exactly but u8, where negative ones become 256 more. Where rows are of odd length the last
    byte's high half is not looked at.

    Args:
        shape: Shape of y, rank 1-8; x has (n + 1) // 2 bytes for the n elements of the last dimension.
        element: Of y: f16, bf16, f32, f64, i8 or u8.
        packed_element: s4 or u4.
    """

    def signature(self) -> Signature:
        return Signature(tensor("x", self.packed_shape(), Element.U8), output("y", self.shape, self.element))


OPS = (
    Op(
        "pack_int4",
        PackInt4Descriptor,
        NotDifferentiable("whole numbers do not change with the input"),
        "two 4-bit integers to a byte: the nearest ones in range",
    ),
    Op(
        "unpack_int4",
        UnpackInt4Descriptor,
        NotDifferentiable("its input is whole"),
        "the 4-bit integers of bytes",
    ),
)


@function(tensors="input")
def pack_int4(call: Call, input: Arg, dtype: Any = "s4", *, out: Arg | None = None) -> Recipe:
    """`input` rounded to 4-bit integers, two to a byte along the last dimension: the first in the low half.

    Args:
        input: f16, bf16, f32, f64, i8 or u8, with at least one dimension.
        dtype: "s4" (-8 to 7) or "u4" (0 to 15); what is beyond becomes the range's end, NaN 0.
        out: Where the bytes go.

    Returns:
        (n + 1) // 2 bytes (u8) for n elements of the last dimension.
    """
    packed = Element.coerce(dtype, "pack_int4: dtype")
    return call(PackInt4Descriptor(input.shape, input.element, packed), x=input)


@function(tensors="input")
def unpack_int4(
    call: Call,
    input: Arg,
    packed: Any = "s4",
    dtype: Any = "f32",
    size: int | None = None,
    *,
    out: Arg | None = None,
) -> Recipe:
    """The 4-bit integers of bytes along the last dimension, as pack_int4 lays them.

    Args:
        input: Bytes (u8), with at least one dimension.
        packed: "s4" or "u4".
        dtype: Element of the result: f16, bf16, f32, f64, i8 or u8.
        size: Elements of the last dimension: twice its bytes, which is the default, or one less.
        out: Where the numbers go.

    Returns:
        The numbers.
    """
    if input.rank == 0 or input.element is not Element.U8:
        raise InvalidProblemError(
            f"unpack_int4: input: got {input.element} of {input.rank} dimensions, want u8 of at least one."
        )
    count = input.shape[-1]
    last = 2 * count if size is None else size
    if (last + 1) // 2 != count:
        raise InvalidProblemError(f"unpack_int4: size: got {size}, want {2 * count}, or one less, of {count} bytes.")
    element, kind = Element.coerce(dtype, "unpack_int4: dtype"), Element.coerce(packed, "unpack_int4: packed")
    return call(UnpackInt4Descriptor((*input.shape[:-1], last), element, kind), x=input)
