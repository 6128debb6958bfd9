"""rms_norm and rotary position embedding of heads in one pass. Kernels in csrc/ops/rope, reference in rms_norm_rope_ref.py."""

from __future__ import annotations

from typing import Any

from baracuda.call.compose import Composer
from baracuda.call.op import Arg, Call, Op, Recipe, function
from baracuda.call.steps import made_of
from baracuda.describe.dims import Shape, largest
from baracuda.describe.elements import Element
from baracuda.describe.spec import Param, Signature, descriptor, frame, output, scalar, tensor
from baracuda.ops.rope.rope import RopeLayout, Rotary, rotary_fields

MOST_COLUMNS = 2048


@frame
class _NormRope(Rotary):
    """Fields and checks that forward and backward share."""

    __slots__ = ()
    weight: bool = True

    def validate(self) -> None:
        super().validate()
        if largest(self.input_shape[-1]) > MOST_COLUMNS:
            raise self.wrong("input_shape", self.input_shape, f"a last dimension of at most {MOST_COLUMNS}")
        if self.offset() and not self.weight:
            raise self.wrong("weight_offset", self.offset(), "0 without a weight")

    def offset(self) -> float:
        """What is added to every weight."""
        return float(getattr(self, "weight_offset", 0.0))

    def attributes(self) -> dict[str, int | float]:
        return {**super().attributes(), "weight_offset": self.offset()}

    def statistic(self) -> tuple[str, Shape, Element]:
        """Name, shape and element of the saved statistic."""
        return "rstd", (*self.input_shape[:-1], 1), self.element.statistic

    def rows(self, name: str) -> Param:
        """An input shaped like x."""
        return tensor(name, self.input_shape, self.element)

    def scale(self) -> Param:
        """The weights."""
        return tensor("weight", self.input_shape[-1:], self.element, present=self.weight)


@descriptor(family="rope", op="rms_norm_rope", enums={"layout": RopeLayout})
class RmsNormRopeDescriptor(_NormRope):
    """y = rope(rms_norm(x)), rounded once: each row of x is normalised over its last dimension, then rotated.

    v = x rstd (weight + weight_offset), rstd = 1 / sqrt(mean(x^2) + eps); then pairs (a, b) of v become (a cos - b sin,
    b cos + a sin) as in RopeDescriptor, of which positions, layouts and partial rotation are. Heads of queries and keys
    before attention (Qwen 3, Gemma 3). y may be x. `eps` is 1e-5 unless given.

    Args:
        input_shape: [..., S, D], rank 2 to 8, D at most 2048; batch is the first dimension.
        table_rows: Rows of the tables: positions are 0 to table_rows - 1.
        rotary_dim: How many elements are rotated, even; all by default.
        layout: Which elements are a pair; see RopeLayout.
        positions_shape: (S,) or (B, S) for positions in a tensor; None for the scalar `position` (0 by default).
        positions_element: i64 or i32.
        table_element: Element of cos and sin; by default f32, or f64 for f64.
        element: f16, bf16, f32 or f64.
        weight: Whether there is a weight, of shape (D,).
        save: Whether rstd is an output, in f32 (f64 for f64).
        weight_offset: What is added to every weight.
    """

    save: bool = True
    weight_offset: float = 0.0

    def signature(self) -> Signature:
        return Signature(
            self.rows("x"),
            self.scale(),
            *self.tables(),
            output("y", self.input_shape, self.element),
            output(*self.statistic(), present=self.save),
            scalar("position", "int", 0),
            scalar("eps", default=1e-5),
        )


@descriptor(gradient_of=RmsNormRopeDescriptor)
class RmsNormRopeBackwardDescriptor(_NormRope):
    """g is dy rotated back; dx and dweight are those of rms_norm for g. The tables have no gradient.

    dx may be the same view as dy or x.

    Args:
        input_shape: As in the forward.
        table_rows: As in the forward.
        rotary_dim: As in the forward.
        layout: As in the forward.
        positions_shape: As in the forward.
        positions_element: i64 or i32.
        table_element: Element of cos and sin.
        element: f16, bf16, f32 or f64.
        weight: Whether there is a weight, whose gradient is then an output.
        weight_offset: What is added to every weight.
    """

    weight_offset: float = 0.0

    def signature(self) -> Signature:
        return Signature(
            self.rows("dy"),
            self.rows("x"),
            self.scale(),
            *self.tables(),
            tensor(*self.statistic()),
            output("dx", self.input_shape, self.element),
            output("dweight", self.input_shape[-1:], self.element, present=self.weight),
            scalar("position", "int", 0),
        )


OPS = (Op("rms_norm_rope", RmsNormRopeDescriptor, RmsNormRopeBackwardDescriptor, "y = rope(rms_norm(x))"),)

_TENSORS, _SCALARS = "input weight cos sin positions", "eps position"


def _plan(
    call: Call,
    input: Arg,
    weight: Arg | None,
    cos: Arg,
    sin: Arg,
    eps: Arg | None,
    position: Arg | int,
    positions: Arg | None,
    rotary: tuple[int | None, bool],
    **more: Any,
) -> Recipe:
    fields = rotary_fields(input, cos, positions, *rotary)
    desc = RmsNormRopeDescriptor(**fields, weight=weight is not None, **more)
    least = eps if eps is not None else 2.0**-52 if input.element is Element.F64 else 2.0**-23
    return call(desc, x=input, weight=weight, cos=cos, sin=sin, positions=positions, position=position, eps=least)


@function(tensors=_TENSORS, scalars=_SCALARS)
def rms_norm_rope(
    call: Call,
    input: Arg,
    weight: Arg | None,
    cos: Arg,
    sin: Arg,
    eps: Arg | None = None,
    position: Arg | int = 0,
    positions: Arg | None = None,
    rotary_dim: int | None = None,
    interleaved: bool = False,
    weight_offset: float = 0.0,
) -> Recipe:
    """rope(rms_norm(input, weight), cos, sin) over the last dimension of [..., S, D], in one pass and rounded once.

    Args:
        input: [..., S, D].
        weight: [D], or None.
        cos: Cosines, a row per position.
        sin: Sines.
        eps: As rms_norm's, with its default.
        position: Position of the first row of the sequence, when `positions` is not given.
        positions: [S] or [B, S], i64 or i32.
        rotary_dim: How many elements are rotated; twice the tables' columns by default.
        interleaved: Whether pairs are (2i, 2i + 1); otherwise (i, i + rotary_dim / 2).
        weight_offset: Added to the weights: 1 for models that store them around 0.

    Returns:
        The rotated tensor.
    """
    rotary, more = (rotary_dim, interleaved), {"save": False, "weight_offset": weight_offset}
    return _plan(call, input, weight, cos, sin, eps, position, positions, rotary, **more)


@function(tensors=_TENSORS, scalars=_SCALARS)
def rms_norm_rope_forward(
    call: Call,
    input: Arg,
    weight: Arg | None,
    cos: Arg,
    sin: Arg,
    eps: Arg | None = None,
    position: Arg | int = 0,
    positions: Arg | None = None,
    rotary_dim: int | None = None,
    interleaved: bool = False,
    weight_offset: float = 0.0,
) -> Recipe:
    """rms_norm_rope with what its gradient needs: (y, rstd)."""
    rotary = (rotary_dim, interleaved)
    return _plan(call, input, weight, cos, sin, eps, position, positions, rotary, weight_offset=weight_offset)


@function(tensors="dy input weight cos sin rstd positions", scalars="position")
def rms_norm_rope_backward(
    call: Call,
    dy: Arg,
    input: Arg,
    weight: Arg | None,
    cos: Arg,
    sin: Arg,
    rstd: Arg,
    position: Arg | int = 0,
    positions: Arg | None = None,
    rotary_dim: int | None = None,
    interleaved: bool = False,
    weight_offset: float = 0.0,
) -> Recipe:
    """Gradients (dx, dweight) of rms_norm_rope, or dx alone without a weight."""
    fields = rotary_fields(input, cos, positions, rotary_dim, interleaved)
    desc = RmsNormRopeBackwardDescriptor(**fields, weight=weight is not None, weight_offset=weight_offset)
    given: dict[str, Any] = {
        "dy": dy,
        "x": input,
        "weight": weight,
        "cos": cos,
        "sin": sin,
        "positions": positions,
        "rstd": rstd,
    }
    return call(desc, position=position, **given)


rms_norm_rope.pulled_by(rms_norm_rope_backward, "y rstd", forward=rms_norm_rope_forward)
rms_norm_rope.without_gradient("cos sin")


@made_of("rms_norm_rope")
@function(tensors="q k q_weight k_weight cos sin positions", scalars="eps position")
def qk_norm_rope(
    call: Call,
    q: Arg,
    k: Arg,
    q_weight: Arg | None,
    k_weight: Arg | None,
    cos: Arg,
    sin: Arg,
    eps: Arg | None = None,
    position: Arg | int = 0,
    positions: Arg | None = None,
    rotary_dim: int | None = None,
    interleaved: bool = False,
    weight_offset: float = 0.0,
) -> Recipe:
    """(q, k) with each head normalised and rotated: rms_norm_rope of both, which may have different numbers of heads."""

    def steps(c: Composer, *given: Any) -> Any:
        q, k, q_weight, k_weight, cos, sin, eps, position, positions = given
        options = (cos, sin, eps, position, positions, rotary_dim, interleaved, weight_offset)
        return c.of(rms_norm_rope, q, q_weight, *options), c.of(rms_norm_rope, k, k_weight, *options)

    return call.steps(steps, q, k, q_weight, k_weight, cos, sin, eps, position, positions)


def _qk_norm_rope_vjp(q: Any, k: Any, q_weight: Any, k_weight: Any, *given: Any, **options: Any) -> tuple[Any, Any]:
    rotated_q, pull_q = rms_norm_rope.vjp_rule(q, q_weight, *given, **options)  # type: ignore[misc]
    rotated_k, pull_k = rms_norm_rope.vjp_rule(k, k_weight, *given, **options)  # type: ignore[misc]

    def pull(dys: Any) -> Any:
        dq, dk = dys
        found_q, found_k = pull_q(dq), pull_k(dk)
        q_parts = (found_q, None) if q_weight is None else found_q
        k_parts = (found_k, None) if k_weight is None else found_k
        wanted = (q_parts[0], k_parts[0], q_parts[1], k_parts[1])
        return tuple(part for part in wanted if part is not None)

    return (rotated_q, rotated_k), pull


_marks: Any = qk_norm_rope
_marks.vjp_rule = _qk_norm_rope_vjp
qk_norm_rope.without_gradient("cos sin")
