"""Functions of one number, element by element. Kernels in csrc/ops/unary, reference in unary_ref.py.

NaN stays NaN (sign, which gives 0, is the exception), half types compute in f32 and round once. Any strides, rank 0-8.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any

from baracuda.dims import Shape
from baracuda.elements import Element
from baracuda.errors import InvalidProblemError
from baracuda.op import Arg, Call, Function, NotDifferentiable, Op, Recipe, function
from baracuda.sku import rows
from baracuda.spec import Descriptor, Signature, descriptor, output, scalar, tensor


@dataclass(frozen=True, slots=True)
class Kind:
    """One function: what people, the gradient and the reference need to know of it; its kernel is in csrc/ops/unary/math.h.

    Attributes:
        text: One line with the formula.
        value: f(x), as the reference evaluates it: see baracuda.reference.evaluate.
        slope: f'(x), in terms of y where the kernel's gradient uses y, else of x; empty where it is zero everywhere.
        smooth: A range of x on which the slope can be compared with differences.
        terms: sum |terms| of the slope, where its bound is of kind "sum".
        answers: The result is bool.
        activation: The function takes `inplace`, as in torch.nn.functional.
    """

    text: str
    value: str
    slope: str = ""
    smooth: tuple[float, float] = (-3.0, 3.0)
    terms: str = ""
    answers: bool = False
    activation: bool = False

    @property
    def saves(self) -> str:
        """The tensor that the gradient is computed from; empty where there is none."""
        return "" if not self.slope else "y" if re.search(r"\by\b", self.slope) else "x"


KINDS = {
    "neg": Kind("y = -x; integers wrap", "-x", "-1"),
    "abs": Kind("y = |x|; integers wrap", "abs(x)", "where(isnan(x), 0, sign(x))", (0.2, 3)),
    "sign": Kind("y = (x > 0) - (x < 0); 0 for NaN", "where(isnan(x), 0, sign(x))"),
    "square": Kind("y = x * x; integers wrap", "x * x", "2 * x"),
    "relu": Kind(
        "y = max(x, 0); NaN is kept", "where(x <= 0, 0, x)", "where(y <= 0, 0, 1)", (0.2, 3), activation=True
    ),
    "floor": Kind("the largest integer <= x", "floor(x)"),
    "ceil": Kind("the smallest integer >= x", "ceil(x)"),
    "round": Kind("the nearest integer, ties to even", "rint(x)"),
    "trunc": Kind("x without its fraction", "trunc(x)"),
    "isnan": Kind("y = x is NaN", "isnan(x)", answers=True),
    "isinf": Kind("y = x is infinite", "isinf(x)", answers=True),
    "isfinite": Kind("y = x is neither infinite nor NaN", "isfinite(x)", answers=True),
    "signbit": Kind("y = x has a minus sign, also as -0 and NaN", "copysign(1, x) < 0", answers=True),
    "logical_not": Kind("y = x == 0", "x == 0", answers=True),
    "bitwise_not": Kind("y = ~x; not x for bool", "~x"),
    "reciprocal": Kind("y = 1 / x", "1 / x", "-y * y", (0.4, 3)),
    "sqrt": Kind("y = sqrt(x)", "sqrt(x)", "1 / (2 * y)", (0.3, 3)),
    "rsqrt": Kind("y = 1 / sqrt(x)", "1 / sqrt(x)", "-(y ** 3) / 2", (0.4, 3)),
    "exp": Kind("y = e^x", "exp(x)", "y"),
    "exp2": Kind("y = 2^x", "exp2(x)", "y * ln2"),
    "expm1": Kind("y = e^x - 1, right for small x", "expm1(x)", "y + 1"),
    "log": Kind("y = ln(x)", "log(x)", "1 / x", (0.3, 4)),
    "log2": Kind("y = log2(x)", "log2(x)", "1 / (x * ln2)", (0.3, 4)),
    "log10": Kind("y = log10(x)", "log10(x)", "1 / (x * ln10)", (0.3, 4)),
    "log1p": Kind("y = ln(1 + x), right for small x", "log1p(x)", "1 / (1 + x)", (-0.6, 4)),
    "sin": Kind("y = sin(x)", "sin(x)", "cos(x)"),
    "cos": Kind("y = cos(x)", "cos(x)", "-sin(x)"),
    "tan": Kind("y = tan(x)", "tan(x)", "1 + y * y", (-1.1, 1.1)),
    "asin": Kind("y = arcsin(x)", "arcsin(x)", "1 / sqrt((1 - x) * (1 + x))", (-0.9, 0.9)),
    "acos": Kind("y = arccos(x)", "arccos(x)", "-1 / sqrt((1 - x) * (1 + x))", (-0.9, 0.9)),
    "atan": Kind("y = arctan(x)", "arctan(x)", "1 / (1 + x * x)"),
    "deg2rad": Kind("y = x pi / 180", "x * (pi / 180)", "pi / 180"),
    "rad2deg": Kind("y = x 180 / pi", "x * (180 / pi)", "180 / pi"),
    "sinh": Kind("y = sinh(x)", "sinh(x)", "overflowing(cosh(x))"),
    "cosh": Kind("y = cosh(x)", "cosh(x)", "overflowing(sinh(x))"),
    "tanh": Kind("y = tanh(x)", "tanh(x)", "(1 - y) * (1 + y)"),
    "erf": Kind("y = erf(x)", "erf(x)", "2 / sqrt(pi) * exp(-x * x)"),
    "erfc": Kind("y = 1 - erf(x), right for large x", "erfc(x)", "-2 / sqrt(pi) * exp(-x * x)"),
    "sigmoid": Kind("y = 1 / (1 + e^-x)", "sigmoid(x)", "y * (1 - y)"),
    "silu": Kind(
        "y = x / (1 + e^-x)", "x * sigmoid(x)", "sigmoid(x) + x * sigmoid(x) * sigmoid(-x)",
        terms="sigmoid(x) + abs(x * sigmoid(x) * sigmoid(-x))", activation=True,
    ),
}  # fmt: skip
SAVES = {kind: entry.saves for kind, entry in KINDS.items() if entry.saves}


@cache
def takes(kind: str, element: Element) -> bool:
    """Whether the SKU table has the function for an element."""
    return any((r["op"], r["direction"]) == (kind, "forward") and int(element) in r["elements"] for r in rows())


class Approximate(Enum):
    """How gelu's normal distribution is computed: by erf, or by the tanh approximation."""

    NONE = "none"
    TANH = "tanh"


def _input(shape: Shape, element: Element, input_element: Element | None) -> Any:
    given = element if input_element is None else input_element
    return tensor("x", shape, given, reads=given is not element)


@descriptor(family="unary", kinds=KINDS)
class UnaryDescriptor(Descriptor):
    """y = f(x), element by element.

    Args:
        kind: Which function; each is an op of its own name.
        shape: Shape of x and y, rank 0-8.
        element: Element in which is computed, and y's (but for bool results): f16, bf16, f32 or f64; neg, abs, sign,
            square, relu, roundings and questions (isnan) also integers.
        input_element: Element of x where it differs: any integer, bool or float, converted while being read.
    """

    kind: str
    shape: Shape
    element: Element = Element.F32
    input_element: Element | None = None

    def signature(self) -> Signature:
        result = Element.BOOL if KINDS[self.kind].answers else self.element
        return Signature(_input(self.shape, self.element, self.input_element), output("y", self.shape, result))

    def backward(self) -> UnaryBackwardDescriptor:
        """The gradient's descriptor."""
        if self.kind not in SAVES:
            raise self.wrong("kind", self.kind, "one with a gradient: " + ", ".join(SAVES))
        return UnaryBackwardDescriptor(self.kind, self.shape, self.element)


@descriptor(family="unary", direction="backward", kinds=SAVES)
class UnaryBackwardDescriptor(Descriptor):
    """dx = dy * f'(x), from the saved x, or from the saved y where that is enough.

    For sinh and cosh the derivative overflows before dy scales it, as in torch.

    Args:
        kind: Which function.
        shape: Shape of all tensors.
        element: f16, bf16, f32 or f64.
    """

    kind: str
    shape: Shape
    element: Element = Element.F32

    def signature(self) -> Signature:
        s, e = self.shape, self.element
        return Signature(tensor("dy", s, e), tensor(SAVES[self.kind], s, e), output("dx", s, e))


@descriptor(family="unary", op="gelu", enums={"approximate": Approximate})
class GeluDescriptor(Descriptor):
    """y = x Phi(x), Phi the normal distribution's cumulative function.

    Args:
        shape: Shape of x and y, rank 0-8.
        approximate: "none" for (1 + erf(x / sqrt(2))) / 2, "tanh" for (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2.
        element: f16, bf16, f32 or f64.
        input_element: Element of x where it differs.
    """

    shape: Shape
    approximate: Approximate = Approximate.NONE
    element: Element = Element.F32
    input_element: Element | None = None

    def attributes(self) -> tuple[int, ...]:
        return (int(self.approximate is Approximate.TANH),)

    def signature(self) -> Signature:
        return Signature(_input(self.shape, self.element, self.input_element), output("y", self.shape, self.element))

    def backward(self) -> GeluBackwardDescriptor:
        """The gradient's descriptor."""
        return GeluBackwardDescriptor(self.shape, self.approximate, self.element)


@descriptor(family="unary", direction="backward", op="gelu", enums={"approximate": Approximate})
class GeluBackwardDescriptor(Descriptor):
    """dx = dy (Phi(x) + x Phi'(x)), or the derivative of the tanh approximation.

    Args:
        shape: Shape of all tensors.
        approximate: As in GeluDescriptor.
        element: f16, bf16, f32 or f64.
    """

    shape: Shape
    approximate: Approximate = Approximate.NONE
    element: Element = Element.F32

    def attributes(self) -> tuple[int, ...]:
        return (int(self.approximate is Approximate.TANH),)

    def signature(self) -> Signature:
        s, e = self.shape, self.element
        return Signature(tensor("dy", s, e), tensor("x", s, e), output("dx", s, e))


_SOFTPLUS_NUMBERS = (scalar("beta", default=1.0), scalar("threshold", default=20.0))


@descriptor(family="unary", op="softplus")
class SoftplusDescriptor(Descriptor):
    """y = ln(1 + e^(beta x)) / beta, and x itself where beta x > threshold; beta and threshold are numbers given to run.

    Args:
        shape: Shape of x and y, rank 0-8.
        element: f16, bf16, f32 or f64.
        input_element: Element of x where it differs.
    """

    shape: Shape
    element: Element = Element.F32
    input_element: Element | None = None

    def signature(self) -> Signature:
        return Signature(
            _input(self.shape, self.element, self.input_element),
            output("y", self.shape, self.element),
            *_SOFTPLUS_NUMBERS,
        )

    def backward(self) -> SoftplusBackwardDescriptor:
        """The gradient's descriptor."""
        return SoftplusBackwardDescriptor(self.shape, self.element)


@descriptor(family="unary", direction="backward", op="softplus")
class SoftplusBackwardDescriptor(Descriptor):
    """dx = dy sigmoid(beta x), and dy where beta x > threshold.

    Args:
        shape: Shape of all tensors.
        element: f16, bf16, f32 or f64.
    """

    shape: Shape
    element: Element = Element.F32

    def signature(self) -> Signature:
        s, e = self.shape, self.element
        return Signature(tensor("dy", s, e), tensor("x", s, e), output("dx", s, e), *_SOFTPLUS_NUMBERS)


_STEPS = NotDifferentiable("piecewise constant: its gradient is zero")
OPS = (
    *(
        Op(k, UnaryDescriptor, UnaryBackwardDescriptor if k in SAVES else _STEPS, entry.text)
        for k, entry in KINDS.items()
    ),
    Op("gelu", GeluDescriptor, GeluBackwardDescriptor, "y = x (1 + erf(x / sqrt(2))) / 2, or its tanh approximation"),
    Op(
        "softplus",
        SoftplusDescriptor,
        SoftplusBackwardDescriptor,
        "y = ln(1 + e^(beta x)) / beta; x where beta x > threshold",
    ),
)


def _elements(kind: str, x: Arg) -> tuple[Element, Element | None]:
    """The result's element, and the input's where it differs: torch promotes integers to the default float."""
    if x.element.is_float or takes(kind, Element.I64):
        return x.element, None
    return Element.F32, x.element


def _refuse_in_place(name: str, inplace: bool) -> None:
    if inplace:
        raise InvalidProblemError(f"{name}: inplace=True is not supported. Pass out=input instead, which is the same.")


def _make(kind: str) -> tuple[Function, Function | None]:
    saved, text = KINDS[kind].saves, KINDS[kind].text

    def rule(call: Call, input: Arg, *, out: Arg | None = None) -> Recipe:
        element, input_element = _elements(kind, input)
        return call(UnaryDescriptor(kind, input.shape, element, input_element), x=input)

    def activation(call: Call, input: Arg, inplace: bool = False, *, out: Arg | None = None) -> Recipe:
        _refuse_in_place(kind, inplace)
        return rule(call, input)

    chosen: Any = activation if KINDS[kind].activation else rule
    chosen.__name__, chosen.__doc__ = (
        kind,
        f"{text}, as torch.{kind}. Integers are promoted as in torch.",
    )
    forward = function(tensors="input")(chosen)
    if not saved:
        return forward, None

    def from_input(call: Call, dy: Arg, input: Arg) -> Recipe:
        return call(UnaryBackwardDescriptor(kind, input.shape, input.element), dy=dy, x=input)

    def from_output(call: Call, dy: Arg, output: Arg) -> Recipe:
        return call(UnaryBackwardDescriptor(kind, output.shape, output.element), dy=dy, y=output)

    rule_back: Any = from_input if saved == "x" else from_output
    rule_back.__name__ = kind + "_backward"
    rule_back.__doc__ = f"Gradient of {kind} from its {'input' if saved == 'x' else 'output'}."
    backward = function(tensors="dy input" if saved == "x" else "dy output")(rule_back)

    @forward.vjp
    def _pull(input: Any, *args: Any) -> tuple[Any, Any]:
        y = forward(input, *args)
        return y, lambda dy: backward(dy, input if saved == "x" else y)

    return forward, backward


for _kind in KINDS:
    globals()[_kind], _gradient = _make(_kind)
    if _gradient is not None:
        globals()[_gradient.__name__] = _gradient


@function(tensors="input")
def gelu(call: Call, input: Arg, approximate: str = "none") -> Recipe:
    """`x * Phi(x)`, as torch.nn.functional.gelu; `approximate` is "none" or "tanh"."""
    element, input_element = _elements("gelu", input)
    return call(GeluDescriptor(input.shape, approximate, element, input_element), x=input)  # type: ignore[arg-type]


@function(tensors="dy input")
def gelu_backward(call: Call, dy: Arg, input: Arg, approximate: str = "none") -> Recipe:
    """Gradient of gelu from its input."""
    return call(GeluBackwardDescriptor(input.shape, approximate, input.element), dy=dy, x=input)  # type: ignore[arg-type]


@gelu.vjp
def _gelu_vjp(input: Any, approximate: str = "none") -> tuple[Any, Any]:
    return gelu(input, approximate), lambda dy: gelu_backward(dy, input, approximate)


@function(tensors="input", scalars="beta threshold")
def softplus(call: Call, input: Arg, beta: Any = 1.0, threshold: Any = 20.0) -> Recipe:
    """Ln(1 + e^(beta x)) / beta, as torch.nn.functional.softplus."""
    element, input_element = _elements("softplus", input)
    return call(SoftplusDescriptor(input.shape, element, input_element), x=input, beta=beta, threshold=threshold)


@function(tensors="dy input", scalars="beta threshold")
def softplus_backward(call: Call, dy: Arg, input: Arg, beta: Any = 1.0, threshold: Any = 20.0) -> Recipe:
    """Gradient of softplus from its input."""
    return call(SoftplusBackwardDescriptor(input.shape, input.element), dy=dy, x=input, beta=beta, threshold=threshold)


@softplus.vjp
def _softplus_vjp(input: Any, beta: Any = 1.0, threshold: Any = 20.0) -> tuple[Any, Any]:
    return softplus(input, beta, threshold), lambda dy: softplus_backward(dy, input, beta, threshold)
