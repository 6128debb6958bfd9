"""Rotary position embeddings. Kernels in csrc/ops/rope, reference in rope_ref.py."""

from __future__ import annotations

from enum import Enum
from typing import Any

from baracuda.call.op import Arg, Call, NotDifferentiable, Op, Recipe, function
from baracuda.describe.dims import Dim, Shape, Size, check_shape
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.spec import Descriptor, Param, Signature, descriptor, frame, output, scalar, tensor


class RopeLayout(Enum):
    """Which elements are rotated together: HALF (i, i + rotary_dim / 2), INTERLEAVED (2i, 2i + 1)."""

    HALF = "half"
    INTERLEAVED = "interleaved"


_FLOATS = (Element.F16, Element.BF16, Element.F32, Element.F64)


@frame
class Rotary(Descriptor):
    """Fields and checks of everything that rotates rows by their positions."""

    __slots__ = ()
    input_shape: Shape
    table_rows: Size
    rotary_dim: int | None = None
    layout: RopeLayout = RopeLayout.HALF
    positions_shape: Shape | None = None
    positions_element: Element = Element.I64
    table_element: Element | None = None
    element: Element = Element.F32

    def validate(self) -> None:
        shape = self.input_shape
        if len(shape) < 2 or isinstance(shape[-1], Dim):
            raise self.wrong("input_shape", shape, "[..., sequence, dim] with an int as the last dimension")
        rotary = shape[-1] if self.rotary_dim is None else self.rotary_dim
        if isinstance(rotary, bool) or not isinstance(rotary, int) or rotary % 2 or not 0 <= rotary <= shape[-1]:
            raise self.wrong("rotary_dim", rotary, f"an even number of at most {shape[-1]}")
        object.__setattr__(self, "rotary_dim", rotary)
        (rows,) = check_shape((self.table_rows,), f"{type(self).__name__}.table_rows")
        object.__setattr__(self, "table_rows", rows)
        positions, seq = self.positions_shape, shape[-2]
        if positions is not None and positions != (seq,) and (len(shape) < 3 or positions != (shape[0], seq)):
            want = f"({seq},)" + (f" or ({shape[0]}, {seq})" if len(shape) > 2 else "")
            raise self.wrong("positions_shape", positions, want)
        if self.positions_element not in (Element.I64, Element.I32):
            raise self.wrong("positions_element", str(self.positions_element), "i64 or i32")
        if self.table_element is None:
            object.__setattr__(self, "table_element", Element.F64 if self.element is Element.F64 else Element.F32)
        elif self.table_element not in _FLOATS:
            raise self.wrong("table_element", str(self.table_element), "f16, bf16, f32 or f64")

    def tables(self) -> tuple[Param, Param, Param]:
        """cos, sin and the optional positions."""
        assert self.table_element is not None
        assert self.rotary_dim is not None
        shape = (self.table_rows, self.rotary_dim // 2)
        positions = self.positions_shape
        return (
            tensor("cos", shape, self.table_element),
            tensor("sin", shape, self.table_element),
            tensor("positions", positions or (), self.positions_element, present=positions is not None),
        )

    def attributes(self) -> dict[str, int | float]:
        return {"interleaved": int(self.layout is RopeLayout.INTERLEAVED), "rotary_dim": int(self.rotary_dim or 0)}


@descriptor(family="rope", op="rope", enums={"layout": RopeLayout})
class RopeDescriptor(Rotary):
    """Pairs (a, b) of x become (a cos - b sin, b cos + a sin), with the table row of their position.

    Row s of the sequence uses table row `position` + s, or positions[s], or positions[batch, s]; a position outside the
    table is IndexOutOfRangeError, before anything is written. Elements from rotary_dim on are copied. y may be x.

    Args:
        input_shape: [..., S, D], rank 2 to 8; batch is the first dimension.
        table_rows: Rows of the tables: positions are 0 to table_rows - 1.
        rotary_dim: How many elements are rotated, even; all by default.
        layout: Which elements are a pair; see RopeLayout.
        positions_shape: (S,) or (B, S) for positions in a tensor; None for the scalar `position` (0 by default).
        positions_element: i64 or i32.
        table_element: Element of cos and sin; by default f32, or f64 for f64.
        element: f16, bf16, f32 or f64.
    """

    def signature(self) -> Signature:
        return Signature(
            tensor("x", self.input_shape, self.element),
            *self.tables(),
            output("y", self.input_shape, self.element),
            scalar("position", "int", 0),
        )


@descriptor(gradient_of=RopeDescriptor)
class RopeBackwardDescriptor(Rotary):
    """dx is dy rotated back: pairs become (a cos + b sin, b cos - a sin). dx may be dy.

    Args:
        input_shape: [..., S, D], rank 2 to 8.
        table_rows: As in the forward.
        rotary_dim: As in the forward.
        layout: As in the forward.
        positions_shape: As in the forward.
        positions_element: i64 or i32.
        table_element: Element of cos and sin.
        element: f16, bf16, f32 or f64.
    """

    def signature(self) -> Signature:
        return Signature(
            tensor("dy", self.input_shape, self.element),
            *self.tables(),
            output("dx", self.input_shape, self.element),
            scalar("position", "int", 0),
        )


@descriptor(family="rope", op="rope_table")
class RopeTableDescriptor(Descriptor):
    """cos[p, i] = cos(p * base^(-2i / rotary_dim)), sin likewise: the tables of the usual, unscaled rotary embedding.

    Angles and functions are computed in f64 for every element, on Metal in pairs of f32 (angles to 2^-46 of themselves).
    The scalar `base` (theta) is 10000 by default.

    Args:
        table_shape: [positions, rotary_dim / 2].
        element: f16, bf16, f32 or f64.
    """

    table_shape: Shape
    element: Element = Element.F32

    def validate(self) -> None:
        if len(self.table_shape) != 2:
            raise self.wrong("table_shape", self.table_shape, "two dimensions [positions, rotary_dim / 2]")

    def signature(self) -> Signature:
        return Signature(
            output("cos", self.table_shape, self.element),
            output("sin", self.table_shape, self.element),
            scalar("base", "float", 10000.0),
        )


OPS = (
    Op("rope", RopeDescriptor, RopeBackwardDescriptor, "pairs (a, b) of x become (a cos - b sin, b cos + a sin)"),
    Op(
        "rope_table",
        RopeTableDescriptor,
        NotDifferentiable("it makes constants from positions"),
        "cos and sin of position * base^(-2i / rotary_dim)",
    ),
)


def rotary_fields(x: Arg, cos: Arg, positions: Arg | None, rotary_dim: int | None, interleaved: bool) -> dict[str, Any]:
    """Fields of a descriptor that rotates x."""
    if cos.rank != 2:
        raise InvalidProblemError(
            f"cos: got shape {cos.shape}, want (positions, rotary_dim / 2). Make it with bc.RopeTableDescriptor."
        )
    return {
        "input_shape": x.shape,
        "table_rows": cos.shape[0],
        "rotary_dim": 2 * cos.shape[-1] if rotary_dim is None else rotary_dim,
        "layout": RopeLayout.INTERLEAVED if interleaved else RopeLayout.HALF,
        "positions_shape": None if positions is None else positions.shape,
        "positions_element": Element.I64 if positions is None else positions.element,
        "table_element": cos.element,
        "element": x.element,
    }


def _rotate(
    cls: Any,
    call: Call,
    x: Arg,
    cos: Arg,
    sin: Arg,
    position: Arg | int,
    positions: Arg | None,
    rotary_dim: int | None,
    interleaved: bool,
) -> Recipe:
    desc = cls(**rotary_fields(x, cos, positions, rotary_dim, interleaved))
    given: dict[str, Any] = {"dy" if cls is RopeBackwardDescriptor else "x": x}
    return call(desc, cos=cos, sin=sin, positions=positions, position=position, **given)


@function(tensors="input cos sin positions", scalars="position")
def rope(
    call: Call,
    input: Arg,
    cos: Arg,
    sin: Arg,
    position: Arg | int = 0,
    positions: Arg | None = None,
    rotary_dim: int | None = None,
    interleaved: bool = False,
) -> Recipe:
    """Rotary position embedding of [..., S, D] with tables [positions, rotary_dim / 2].

    Args:
        input: [..., S, D].
        cos: Cosines, a row per position.
        sin: Sines.
        position: Position of the first row of the sequence, when `positions` is not given.
        positions: [S] or [B, S], i64 or i32.
        rotary_dim: How many elements are rotated; twice the tables' columns by default.
        interleaved: Whether pairs are (2i, 2i + 1); otherwise (i, i + rotary_dim / 2).

    Returns:
        The rotated tensor.
    """
    return _rotate(RopeDescriptor, call, input, cos, sin, position, positions, rotary_dim, interleaved)


@function(tensors="dy cos sin positions", scalars="position")
def rope_backward(
    call: Call,
    dy: Arg,
    cos: Arg,
    sin: Arg,
    position: Arg | int = 0,
    positions: Arg | None = None,
    rotary_dim: int | None = None,
    interleaved: bool = False,
) -> Recipe:
    """Gradient of rope with respect to `input`."""
    return _rotate(RopeBackwardDescriptor, call, dy, cos, sin, position, positions, rotary_dim, interleaved)


rope.pulled_by(rope_backward)
rope.without_gradient("cos sin")
