"""Functions of two numbers, element by element, with broadcasting. Kernels in csrc/ops/binary, reference in binary_ref.py.

Inputs of other elements are converted while being read, and either input may be a number given to run instead of a tensor.
NaN follows torch: maximum and minimum keep it, comparisons with it are false. Integers wrap; dividing an integer by zero is an
IntegerDivisionError.
"""

from __future__ import annotations

from typing import Any

from baracuda.dims import Shape
from baracuda.elements import Element
from baracuda.errors import InvalidProblemError
from baracuda.op import Arg, Call, Function, NotDifferentiable, Op, Recipe, function
from baracuda.promotion import broadcast, result_element
from baracuda.spec import Descriptor, Param, ScalarParam, Signature, descriptor, output, scalar, tensor

_GRADIENTS = {
    "add": "y = a + alpha b",
    "sub": "y = a - alpha b",
    "mul": "y = a * b",
    "div": "y = a / b",
    "pow": "y = a^b",
    "maximum": "y = max(a, b); NaN is kept",
    "minimum": "y = min(a, b); NaN is kept",
    "fmod": "the remainder of a / b with the sign of a",
    "remainder": "the remainder of a / b with the sign of b",
}
_STEPS = {"floor_divide": "the largest integer <= a / b"}
_COMPARISONS = {
    "eq": "y = a == b",
    "ne": "y = a != b",
    "lt": "y = a < b",
    "le": "y = a <= b",
    "gt": "y = a > b",
    "ge": "y = a >= b",
    "logical_and": "y = (a != 0) and (b != 0)",
    "logical_or": "y = (a != 0) or (b != 0)",
    "logical_xor": "y = (a != 0) != (b != 0)",
}
_BITS = {"bitwise_and": "y = a & b", "bitwise_or": "y = a | b", "bitwise_xor": "y = a ^ b"}
_KINDS = {**_GRADIENTS, **_STEPS, **_COMPARISONS, **_BITS}
_SUMS = ("add", "sub")


def _number_kind(element: Element) -> str:
    return "float" if element.is_float else "unsigned" if element is Element.U64 else "int"


class _Binary(Descriptor):
    """Fields and checks that forward and backward share."""

    __slots__ = ()
    kind: str
    a_shape: Shape | None
    b_shape: Shape | None
    element: Element
    a_element: Element | None
    b_element: Element | None

    def validate(self) -> None:
        if self.a_shape is None and self.b_shape is None:
            raise self.wrong("b_shape", None, "a shape: only one of the operands can be a number")
        self.full_shape()

    def full_shape(self) -> Shape:
        """The shape that both operands broadcast to."""
        return broadcast(self.a_shape or (), self.b_shape or (), type(self).__name__)

    def operands(self) -> tuple[list[Param], list[ScalarParam]]:
        """The operands as tensors, and the number that stands for one of them."""
        tensors, numbers = [], []
        for name, shape, element in (("a", self.a_shape, self.a_element), ("b", self.b_shape, self.b_element)):
            given = self.element if element is None else element
            tensors.append(tensor(name, shape or (), given, present=shape is not None, reads=given is not self.element))
            if shape is None:
                numbers.append(scalar("number", _number_kind(self.element)))
        return tensors, numbers

    def alpha(self) -> list[ScalarParam]:
        """The factor of b in sums."""
        return [scalar("alpha", _number_kind(self.element), 1)] if self.kind in _SUMS else []


@descriptor(family="binary", kinds=_KINDS)
class BinaryDescriptor(_Binary):
    """y = f(a, b), element by element, with broadcasting.

    Args:
        kind: Which function; each is an op of its own name. Comparisons and logical functions give bool.
        a_shape: Shape of a, rank 0-8; None if a is the number given to run.
        b_shape: Shape of b; None if b is the number given to run.
        element: In which is computed, and y's (but for bool results): floats; all but div also integers; sums, products,
            maximum, minimum, comparisons and bitwise functions also bool (not sub).
        a_element: Element of a where it differs; converted while being read.
        b_element: Element of b where it differs.
    """

    kind: str
    a_shape: Shape | None
    b_shape: Shape | None
    element: Element = Element.F32
    a_element: Element | None = None
    b_element: Element | None = None

    def signature(self) -> Signature:
        tensors, numbers = self.operands()
        result = Element.BOOL if self.kind in _COMPARISONS else self.element
        return Signature(*tensors, output("y", self.full_shape(), result), *numbers, *self.alpha())

    def backward(self) -> BinaryBackwardDescriptor:
        """The gradient's descriptor."""
        if self.kind not in _GRADIENTS:
            raise self.wrong("kind", self.kind, "one with a gradient: " + ", ".join(_GRADIENTS))
        return BinaryBackwardDescriptor(
            self.kind, self.a_shape, self.b_shape, self.element, self.a_element, self.b_element
        )


@descriptor(family="binary", direction="backward", kinds=_GRADIENTS)
class BinaryBackwardDescriptor(_Binary):
    """da and db, both in the shape that a and b broadcast to; sum them to the operands' own shapes.

    add and sub need only dy. Ties of maximum and minimum get half of dy each.

    Args:
        kind: Which function.
        a_shape: Shape of a; None if it is a number, which has no gradient.
        b_shape: Shape of b; None if it is a number.
        element: Of dy, da and db: f16, bf16, f32 or f64.
        a_element: Element of a where it differs.
        b_element: Element of b where it differs.
    """

    kind: str
    a_shape: Shape | None
    b_shape: Shape | None
    element: Element = Element.F32
    a_element: Element | None = None
    b_element: Element | None = None

    def signature(self) -> Signature:
        full, e = self.full_shape(), self.element
        results = (
            output("da", full, e, present=self.a_shape is not None),
            output("db", full, e, present=self.b_shape is not None),
        )
        if self.kind in _SUMS:
            return Signature(tensor("dy", full, e), *results, *self.alpha())
        tensors, numbers = self.operands()
        return Signature(tensor("dy", full, e), *tensors, *results, *numbers)


_FLAT = NotDifferentiable("piecewise constant: its gradient is zero")
OPS = tuple(
    Op(k, BinaryDescriptor, BinaryBackwardDescriptor if k in _GRADIENTS else _FLAT, text) for k, text in _KINDS.items()
)


def _describe(kind: str, a: Arg, b: Arg, element: Element) -> dict[str, Any]:
    fields: dict[str, Any] = {"kind": kind, "a_shape": None, "b_shape": None, "element": element}
    for name, arg in (("a", a), ("b", b)):
        if arg.is_tensor:
            fields[name + "_shape"] = arg.shape
            fields[name + "_element"] = None if arg.element is element else arg.element
    return fields


def _given(a: Arg, b: Arg) -> dict[str, Any]:
    given: dict[str, Any] = {("a" if a.is_tensor else "number"): a}
    given["b" if b.is_tensor else "number"] = b
    return given


def _element(kind: str, a: Arg, b: Arg) -> Element:
    element = result_element((a, b))
    return Element.F32 if kind == "div" and not element.is_float else element


def _forward(call: Call, kind: str, a: Arg, b: Arg, **numbers: Any) -> Recipe:
    if kind == "pow" and not b.is_tensor and not _element(kind, a, b).is_float and b.value < 0:
        raise InvalidProblemError(
            f"pow: got exponent {b.value} for integers, want one >= 0. Cast the base to a float element first."
        )
    return call(BinaryDescriptor(**_describe(kind, a, b, _element(kind, a, b))), **_given(a, b), **numbers)


def _sum_to(gradient: Any, like: Any) -> Any:
    """A gradient summed over the dimensions that broadcasting added, in the operand's own element."""
    from baracuda import functional as F

    if tuple(gradient.shape) != tuple(like.shape):
        lead = len(gradient.shape) - len(like.shape)
        dims = [
            d for d in range(len(gradient.shape)) if d < lead or (like.shape[d - lead] == 1 and gradient.shape[d] != 1)
        ]
        if dims:
            gradient = F.sum(gradient, tuple(dims), keepdim=True)
        gradient = gradient.reshape(tuple(like.shape))
    return gradient if gradient.dtype == like.dtype else F.cast(gradient, like.dtype)


def _is_tensor(x: Any) -> bool:
    return not isinstance(x, (int, float))


def _pull_with(backward: Function, a: Any, b: Any) -> Any:
    """Gradients of the operands that are tensors."""

    def pull(dy: Any) -> Any:
        found = backward(dy, a, b)
        found = found if isinstance(found, tuple) else (found,)
        tensors = [x for x in (a, b) if _is_tensor(x)]
        made = tuple(_sum_to(g, x) for g, x in zip(found, tensors, strict=True))
        return made[0] if len(made) == 1 else made

    return pull


def _make(kind: str, second: str = "other") -> tuple[Function, Function | None]:
    def rule(call: Call, input: Arg, other: Arg, *, out: Arg | None = None) -> Recipe:
        return _forward(call, kind, input, other)

    def power(call: Call, input: Arg, exponent: Arg, *, out: Arg | None = None) -> Recipe:
        return _forward(call, kind, input, exponent)

    def sums(call: Call, input: Arg, other: Arg, *, alpha: Any = 1, out: Arg | None = None) -> Recipe:
        return _forward(call, kind, input, other, alpha=alpha)

    chosen: Any = sums if kind in _SUMS else power if second == "exponent" else rule
    text = _KINDS[kind]
    chosen.__name__, chosen.__doc__ = (
        kind,
        f"{text}, as torch.{kind}, with broadcasting and torch's type promotion.",
    )
    forward = function(tensors="input " + second, scalars="alpha" if kind in _SUMS else "")(chosen)
    if kind not in _GRADIENTS or kind in _SUMS:
        return forward, None

    def rule_back(call: Call, dy: Arg, input: Arg, other: Arg) -> Recipe:
        return call(
            BinaryBackwardDescriptor(**_describe(kind, input, other, dy.element)), dy=dy, **_given(input, other)
        )

    rule_back.__name__ = kind + "_backward"
    rule_back.__doc__ = f"Gradients of {kind} with respect to the operands that are tensors, in the broadcast shape."
    backward = function(tensors="dy input other")(rule_back)

    @forward.vjp
    def _pull(input: Any, other: Any) -> tuple[Any, Any]:
        return forward(input, other), _pull_with(backward, input, other)

    return forward, backward


def _sum_vjp(forward: Function, sign: int) -> None:
    @forward.vjp
    def _pull(input: Any, other: Any, *, alpha: Any = 1) -> tuple[Any, Any]:
        def pull(dy: Any) -> Any:
            from baracuda import functional as F

            made = []
            if _is_tensor(input):
                made.append(_sum_to(dy, input))
            if _is_tensor(other):
                made.append(_sum_to(dy if sign * alpha == 1 else F.mul(dy, sign * alpha), other))
            return made[0] if len(made) == 1 else tuple(made)

        return forward(input, other, alpha=alpha), pull


add, _ = _make("add")
sub, _ = _make("sub")
_sum_vjp(add, 1)
_sum_vjp(sub, -1)
mul, mul_backward = _make("mul")
maximum, maximum_backward = _make("maximum")
minimum, minimum_backward = _make("minimum")
fmod, fmod_backward = _make("fmod")
remainder, remainder_backward = _make("remainder")
pow, pow_backward = _make("pow", "exponent")
floor_divide, _ = _make("floor_divide")
eq, _ = _make("eq")
ne, _ = _make("ne")
lt, _ = _make("lt")
le, _ = _make("le")
gt, _ = _make("gt")
ge, _ = _make("ge")
logical_and, _ = _make("logical_and")
logical_or, _ = _make("logical_or")
logical_xor, _ = _make("logical_xor")
bitwise_and, _ = _make("bitwise_and")
bitwise_or, _ = _make("bitwise_or")
bitwise_xor, _ = _make("bitwise_xor")


@function(tensors="input other")
def div(call: Call, input: Arg, other: Arg, *, rounding_mode: str | None = None, out: Arg | None = None) -> Recipe:
    """`a / b`, as torch.div, with broadcasting and type promotion; `rounding_mode` is None or "floor"."""
    if rounding_mode not in (None, "floor"):
        raise InvalidProblemError(f'div: rounding_mode: got {rounding_mode!r}, want None or "floor".')
    return _forward(call, "div" if rounding_mode is None else "floor_divide", input, other)


@function(tensors="dy input other")
def div_backward(call: Call, dy: Arg, input: Arg, other: Arg) -> Recipe:
    """Gradients of div with respect to the operands that are tensors, in the broadcast shape."""
    return call(BinaryBackwardDescriptor(**_describe("div", input, other, dy.element)), dy=dy, **_given(input, other))


@div.vjp
def _div_vjp(input: Any, other: Any, *, rounding_mode: str | None = None) -> tuple[Any, Any]:
    if rounding_mode is not None:
        raise InvalidProblemError("div: with a rounding mode it is piecewise constant and has no gradient but zero.")
    return div(input, other), _pull_with(div_backward, input, other)
