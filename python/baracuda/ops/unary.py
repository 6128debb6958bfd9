"""Functions of one number, element by element. Kernels in csrc/ops/unary, reference in unary_ref.py.

NaN stays NaN (sign, which gives 0, is the exception), half types compute in f32 and round once. Any strides, rank 0-8.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from baracuda.dims import Shape
from baracuda.elements import Element
from baracuda.errors import InvalidProblemError
from baracuda.op import Arg, Call, Function, NotDifferentiable, Op, Recipe, function
from baracuda.spec import Descriptor, Signature, descriptor, output, scalar, tensor

# kind: (what is saved for the gradient, formula)
_KINDS = {
    "neg": ("x", "y = -x; integers wrap"),
    "abs": ("x", "y = |x|; integers wrap"),
    "sign": ("", "y = (x > 0) - (x < 0); 0 for NaN"),
    "square": ("x", "y = x * x; integers wrap"),
    "relu": ("y", "y = max(x, 0); NaN is kept"),
    "floor": ("", "the largest integer <= x"),
    "ceil": ("", "the smallest integer >= x"),
    "round": ("", "the nearest integer, ties to even"),
    "trunc": ("", "x without its fraction"),
    "reciprocal": ("y", "y = 1 / x"),
    "sqrt": ("y", "y = sqrt(x)"),
    "rsqrt": ("y", "y = 1 / sqrt(x)"),
    "exp": ("y", "y = e^x"),
    "exp2": ("y", "y = 2^x"),
    "expm1": ("y", "y = e^x - 1, right for small x"),
    "log": ("x", "y = ln(x)"),
    "log2": ("x", "y = log2(x)"),
    "log10": ("x", "y = log10(x)"),
    "log1p": ("x", "y = ln(1 + x), right for small x"),
    "sin": ("x", "y = sin(x)"),
    "cos": ("x", "y = cos(x)"),
    "tan": ("y", "y = tan(x)"),
    "sinh": ("x", "y = sinh(x)"),
    "cosh": ("x", "y = cosh(x)"),
    "tanh": ("y", "y = tanh(x)"),
    "erf": ("x", "y = erf(x)"),
    "erfc": ("x", "y = 1 - erf(x), right for large x"),
    "sigmoid": ("y", "y = 1 / (1 + e^-x)"),
    "silu": ("x", "y = x / (1 + e^-x)"),
}
SAVES = {kind: saved for kind, (saved, _) in _KINDS.items() if saved}
INTEGER_KINDS = ("neg", "abs", "sign", "square", "relu", "floor", "ceil", "round", "trunc")


class Approximate(Enum):
    """How gelu's normal distribution is computed: by erf, or by the tanh approximation."""

    NONE = "none"
    TANH = "tanh"


def _input(shape: Shape, element: Element, input_element: Element | None) -> Any:
    given = element if input_element is None else input_element
    return tensor("x", shape, given, reads=given is not element)


@descriptor(family="unary", kinds=_KINDS)
class UnaryDescriptor(Descriptor):
    """y = f(x), element by element.

    Args:
        kind: Which function; each is an op of its own name.
        shape: Shape of x and y, rank 0-8.
        element: Element of y, in which is computed: f16, bf16, f32 or f64; neg, abs, sign, square, relu and roundings also integers.
        input_element: Element of x where it differs: any integer, bool or float, converted while being read.
    """

    kind: str
    shape: Shape
    element: Element = Element.F32
    input_element: Element | None = None

    def signature(self) -> Signature:
        return Signature(_input(self.shape, self.element, self.input_element), output("y", self.shape, self.element))

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
        Op(k, UnaryDescriptor, UnaryBackwardDescriptor if saved else _STEPS, text)
        for k, (saved, text) in _KINDS.items()
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
    if x.element.is_float or kind in INTEGER_KINDS:
        return x.element, None
    return Element.F32, x.element


def _refuse_in_place(name: str, inplace: bool) -> None:
    if inplace:
        raise InvalidProblemError(f"{name}: inplace=True is not supported. Pass out=input instead, which is the same.")


def _make(kind: str) -> tuple[Function, Function | None]:
    saved, text = _KINDS[kind]

    def rule(call: Call, input: Arg, *, out: Arg | None = None) -> Recipe:
        element, input_element = _elements(kind, input)
        return call(UnaryDescriptor(kind, input.shape, element, input_element), x=input)

    def activation(call: Call, input: Arg, inplace: bool = False, *, out: Arg | None = None) -> Recipe:
        _refuse_in_place(kind, inplace)
        return rule(call, input)

    chosen: Any = activation if kind in ("relu", "silu") else rule
    chosen.__name__, chosen.__doc__ = (
        kind,
        f"{text[0].upper()}{text[1:]}, as torch.{kind}. Integers are promoted as in torch.",
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


neg, neg_backward = _make("neg")
abs, abs_backward = _make("abs")
sign, _ = _make("sign")
square, square_backward = _make("square")
relu, relu_backward = _make("relu")
floor, _ = _make("floor")
ceil, _ = _make("ceil")
round, _ = _make("round")
trunc, _ = _make("trunc")
reciprocal, reciprocal_backward = _make("reciprocal")
sqrt, sqrt_backward = _make("sqrt")
rsqrt, rsqrt_backward = _make("rsqrt")
exp, exp_backward = _make("exp")
exp2, exp2_backward = _make("exp2")
expm1, expm1_backward = _make("expm1")
log, log_backward = _make("log")
log2, log2_backward = _make("log2")
log10, log10_backward = _make("log10")
log1p, log1p_backward = _make("log1p")
sin, sin_backward = _make("sin")
cos, cos_backward = _make("cos")
tan, tan_backward = _make("tan")
sinh, sinh_backward = _make("sinh")
cosh, cosh_backward = _make("cosh")
tanh, tanh_backward = _make("tanh")
erf, erf_backward = _make("erf")
erfc, erfc_backward = _make("erfc")
sigmoid, sigmoid_backward = _make("sigmoid")
silu, silu_backward = _make("silu")


@function(tensors="input")
def gelu(call: Call, input: Arg, approximate: str = "none") -> Recipe:
    """X * Phi(x), as torch.nn.functional.gelu; `approximate` is "none" or "tanh"."""
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
