"""Functions of two numbers, element by element, with broadcasting. Kernels in csrc/ops/binary, reference in binary_ref.py.

Inputs of other elements are converted while being read, and either input may be a number given to run instead of a tensor.
NaN follows torch: maximum and minimum keep it, comparisons with it are false. Integers wrap; dividing an integer by zero is an
IntegerDivisionError.
"""

from __future__ import annotations

from typing import Any

from baracuda import _core
from baracuda.call.compose import of_elements
from baracuda.call.op import Arg, Call, Function, NotDifferentiable, Op, Recipe, function
from baracuda.describe.dims import Shape
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.order import ELEMENTWISE, MIXED, Order
from baracuda.describe.promotion import broadcast, result_element
from baracuda.describe.spec import Kinded, Param, ScalarParam, Signature, descriptor, frame, output, scalar, tensor
from baracuda.ops.binary.binary_kinds import KINDS

_GRADIENTS = tuple(k for k, entry in KINDS.items() if entry.da)
# The gradients of these need dy only.
_SUMS = ("add", "sub")
# Integers that no element holds are taken as numbers where they are computed in 64 bits and the result is right, as it is
# of comparisons, too, or wraps as that of the same sum in torch.
_ANY_NUMBER = {"add", "sub", "mul", "fmod", "remainder", "floor_divide", "trunc_divide"} | {
    k for k, entry in KINDS.items() if entry.answers or k.startswith("bitwise")
}
# The low bits of these results, or whether two numbers are equal, follow from those of the operands; of all others the
# kernels, which compute in 64 bits without a sign, would have another number for a negative one.
_OF_ANY_SIGN = {"add", "sub", "mul", "bitwise_and", "bitwise_or", "bitwise_xor", "eq", "ne"} | {
    k for k in KINDS if k.startswith("logical")
}


def _number_kind(element: Element) -> str:
    return "float" if element.is_float else "unsigned" if element is Element.U64 else "int"


@frame
class _Binary(Kinded):
    """Fields and checks that forward and backward share."""

    __slots__ = ()
    a_shape: Shape | None
    b_shape: Shape | None
    element: Element = Element.F32
    a_element: Element | None = None
    b_element: Element | None = None

    def validate(self) -> None:
        if self.a_shape is None and self.b_shape is None:
            raise self.wrong("b_shape", None, "a shape: only one of the operands can be a number")
        self.full_shape()

    def full_shape(self) -> Shape:
        """The shape that both operands broadcast to."""
        return broadcast(self.a_shape or (), self.b_shape or (), type(self).__name__)

    def operands(self) -> tuple[list[Param], ScalarParam]:
        """The operands as tensors, and the number that stands for the one that is absent."""
        tensors = []
        for name, shape, element in (("a", self.a_shape, self.a_element), ("b", self.b_shape, self.b_element)):
            given = self.element if element is None else element
            tensors.append(tensor(name, shape or (), given, present=shape is not None, reads=given is not self.element))
        # Fractions are no integers.
        least = 0 if self.kind == "pow" and self.b_shape is None and not self.element.is_float else None
        if self.kind in _ANY_NUMBER - _OF_ANY_SIGN and self.element.is_unsigned:
            least = 0
        fits = None if self.kind in _ANY_NUMBER else self.element
        missing = self.a_shape is None or self.b_shape is None
        return tensors, scalar("number", _number_kind(self.element), least=least, fits=fits, present=missing)

    def numbers(self) -> list[ScalarParam]:
        """What the function takes besides its operands; alpha is the factor of b in sums."""
        how, least = _number_kind(self.element), {"rtol": 0, "atol": 0}
        fits = {"alpha": self.element}
        return [
            scalar(n, how, 1 if n == "alpha" else None, least.get(n), fits.get(n)) for n, _ in KINDS[self.kind].numbers
        ]


@descriptor(family="binary", kinds=KINDS)
class BinaryDescriptor(_Binary):
    """y = f(a, b), element by element, with broadcasting.

    Args:
        kind: Which function; each is an op of its own name. Comparisons and logical functions give bool.
        a_shape: Shape of a, rank 0-8; None if a is the number given to run.
        b_shape: Shape of b; None if b is the number given to run.
        element: In which is computed, and y's (but for bool results): what the table of SKUs says for each kind.
        a_element: Element of a where it differs; converted while being read.
        b_element: Element of b where it differs.
    """

    def order(self) -> Order | None:
        number = self.a_shape is None or self.b_shape is None
        if self.kind == "pow" and number:  # torch has functions of their own for these
            return ELEMENTWISE if self.b_shape is None else None
        return MIXED if number else ELEMENTWISE

    def signature(self) -> Signature:
        tensors, number = self.operands()
        result = Element.BOOL if KINDS[self.kind].answers else self.element
        return Signature(*tensors, output("y", self.full_shape(), result), number, *self.numbers())

    def backward(self) -> BinaryBackwardDescriptor:
        """The gradient's descriptor."""
        if self.kind not in _GRADIENTS:
            raise self.wrong("kind", self.kind, "one with a gradient: " + ", ".join(_GRADIENTS))
        return BinaryBackwardDescriptor(
            self.kind, self.a_shape, self.b_shape, self.element, self.a_element, self.b_element
        )


@descriptor(family="binary", direction="backward", kinds=_GRADIENTS, result_order=ELEMENTWISE)
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

    def signature(self) -> Signature:
        full, e = self.full_shape(), self.element
        results = (
            output("da", full, e, present=self.a_shape is not None),
            output("db", full, e, present=self.b_shape is not None),
        )
        if self.kind in _SUMS:
            return Signature(tensor("dy", full, e), *results, *self.numbers())
        tensors, number = self.operands()
        return Signature(tensor("dy", full, e), *tensors, *results, number)


_FLAT = NotDifferentiable("piecewise constant: its gradient is zero")
OPS = tuple(
    Op(k, BinaryDescriptor, BinaryBackwardDescriptor if entry.da else _FLAT, entry.text) for k, entry in KINDS.items()
)


def wraps(arg: Arg, element: Element) -> bool:
    """Whether an operand is a 0-d tensor of integers that `element`, an integer one, may not hold: as in torch they wrap."""
    return (
        not arg.shape
        and arg.is_tensor
        and element.is_integer
        and arg.element.is_integer
        and (arg.element.limits[0] < element.limits[0] or arg.element.limits[1] > element.limits[1])
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
    return Element.F32 if KINDS[kind].floats and not element.is_float else element


def _forward(call: Call, kind: str, a: Arg, b: Arg, **numbers: Any) -> Recipe:
    element = _element(kind, a, b)
    fields, given = _describe(kind, a, b, element), _given(a, b)
    exact = kind in (_OF_ANY_SIGN if element.is_unsigned else _ANY_NUMBER)
    wrapped = [n for n in ("a", "b") if not exact and n in given and wraps(given[n], element)]
    if not wrapped:
        return call(BinaryDescriptor(**fields), **given, **numbers)
    fields |= {f"{n}_element": None for n in wrapped}
    return of_elements(call, BinaryDescriptor(**fields), **given, **numbers)


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


def wide_for_sums(dy: Any, *operands: Any) -> tuple[Any, ...]:
    """Dy and operands, halves in f32 where gradients are summed over what broadcasting added: they are rounded behind it."""
    from baracuda import functional as F

    if not any(_is_tensor(x) and x is not None and tuple(x.shape) != tuple(dy.shape) for x in operands):
        return dy, *operands

    def wide(x: Any) -> Any:
        if x is None or not _is_tensor(x):
            return x
        own = getattr(x, "element", None)  # of stand-ins, too, which have no memory to describe
        half = (Element(_core.describe(x)[1]) if own is None else Element.coerce(own)).is_half
        return F.cast(x, Element.F32) if half else x

    return tuple(map(wide, (dy, *operands)))


def _pull_with(backward: Function, a: Any, b: Any) -> Any:
    """Gradients of the operands that are tensors."""

    def pull(dy: Any) -> Any:
        found = backward(*wide_for_sums(dy, a, b))
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
        if kind == "sub" and Element.BOOL in (input.element, other.element):
            raise InvalidProblemError("sub: got bool, want numbers, as in torch. Use bitwise_xor, or cast it first.")
        return _forward(call, kind, input, other, alpha=alpha)

    chosen: Any = sums if kind in _SUMS else power if second == "exponent" else rule
    text = KINDS[kind].text
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

    def _pull(input: Any, other: Any) -> tuple[Any, Any]:
        return forward(input, other), _pull_with(backward, input, other)

    def _pull_power(input: Any, exponent: Any) -> tuple[Any, Any]:
        return _pull(input, exponent)

    forward.vjp(_pull_power if second == "exponent" else _pull)

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


_OWN = ("div", "prelu", "isclose", "trunc_divide")
for _kind in KINDS:
    if _kind in _OWN:
        continue
    globals()[_kind], _gradient = _make(_kind, "exponent" if _kind == "pow" else "other")
    if _gradient is not None:
        globals()[_gradient.__name__] = _gradient
_sum_vjp(globals()["add"], 1)
_sum_vjp(globals()["sub"], -1)


@function(tensors="input other")
def div(call: Call, input: Arg, other: Arg, *, rounding_mode: str | None = None, out: Arg | None = None) -> Recipe:
    """`a / b`, as torch.div, with broadcasting and type promotion; `rounding_mode` is None, "floor" or "trunc"."""
    kinds = {None: "div", "floor": "floor_divide", "trunc": "trunc_divide"}
    if not (rounding_mode is None or isinstance(rounding_mode, str)) or rounding_mode not in kinds:
        raise InvalidProblemError(f'div: rounding_mode: got {rounding_mode!r}, want None, "floor" or "trunc".')
    return _forward(call, kinds[rounding_mode], input, other)


@function(tensors="dy input other")
def div_backward(call: Call, dy: Arg, input: Arg, other: Arg) -> Recipe:
    """Gradients of div with respect to the operands that are tensors, in the broadcast shape."""
    return call(BinaryBackwardDescriptor(**_describe("div", input, other, dy.element)), dy=dy, **_given(input, other))


@div.vjp
def _div_vjp(input: Any, other: Any, *, rounding_mode: str | None = None) -> tuple[Any, Any]:
    if rounding_mode is not None:
        raise InvalidProblemError("div: with a rounding mode it is piecewise constant and has no gradient but zero.")
    return div(input, other), _pull_with(div_backward, input, other)


def _beside(input: Arg, weight: Arg) -> Arg:
    """Prelu's weight with dimensions inserted, so that it lies along the input's second one."""
    channels = input.shape[1] if input.rank > 1 else 1
    if weight.rank > 1 or (weight.rank == 1 and weight.shape[0] not in (1, channels)):
        raise InvalidProblemError(
            f"prelu: weight: got shape {weight.shape}, want one number, or one for each of the {channels} channels of "
            f"input {input.shape}."
        )
    if input.rank == 0 and weight.rank == 1:
        return weight.permute()
    for _ in range(input.rank - 2 if weight.rank and weight.shape[0] != 1 else 0):
        weight = weight.insert(weight.rank)
    return weight


@function(tensors="input weight")
def prelu(call: Call, input: Arg, weight: Arg) -> Recipe:
    """`input` where it is above zero, elsewhere `weight * input`, as torch.nn.functional.prelu; weights per dimension 1."""
    if weight.element is not input.element:
        raise InvalidProblemError(
            f"prelu: weight: got {weight.element}, want {input.element} as the input. Cast one of them."
        )
    weight = _beside(input, weight)
    return call(BinaryDescriptor("prelu", input.shape, weight.shape, input.element), a=input, b=weight)


@function(tensors="dy input weight")
def prelu_backward(call: Call, dy: Arg, input: Arg, weight: Arg) -> Recipe:
    """Gradients of prelu with respect to input and, in the input's shape, to weight."""
    weight = _beside(input, weight)
    return call(BinaryBackwardDescriptor("prelu", input.shape, weight.shape, dy.element), dy=dy, a=input, b=weight)


@prelu.vjp
def _prelu_vjp(input: Any, weight: Any) -> tuple[Any, Any]:
    def pull(dy: Any) -> tuple[Any, Any]:
        from baracuda import functional as F

        da, db = prelu_backward(*wide_for_sums(dy, input, weight))
        shared = len(weight.shape) == 0 or weight.shape[0] == 1
        dims = tuple(d for d in range(len(input.shape)) if shared or d != 1)
        db = (F.sum(db, dims) if dims else db).reshape(tuple(weight.shape))
        return _sum_to(da, input), _sum_to(db, weight)

    return prelu(input, weight), pull


@function(tensors="input other", scalars="rtol atol")
def isclose(
    call: Call, input: Arg, other: Arg, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False
) -> Recipe:
    """|input - other| <= atol + |rtol * other|, as torch.isclose; integers of 32 bits and more are compared in f64."""
    if input.is_tensor and other.is_tensor and input.element is not other.element:
        raise InvalidProblemError(
            f"isclose: got {input.element} and {other.element}, want one element. Cast one of them."
        )
    element = result_element((input, other))
    if not element.is_float:
        element = Element.F64 if element.bits > 16 else Element.F32
    desc = BinaryDescriptor(**_describe("isclose", input, other, element))
    return call(desc, **_given(input, other), rtol=rtol, atol=atol, equal_nan=float(bool(equal_nan)))


_ALIASES = {
    "subtract": "sub", "multiply": "mul", "divide": "div", "true_divide": "div", "arctan2": "atan2", "greater": "gt",
    "greater_equal": "ge", "less": "lt", "less_equal": "le", "not_equal": "ne",
}  # fmt: skip
globals().update({alias: globals()[name] for alias, name in _ALIASES.items()})
