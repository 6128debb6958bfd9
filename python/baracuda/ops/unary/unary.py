"""Functions of one number, element by element. Kernels in csrc/ops/unary, reference in unary_ref.py.

NaN stays NaN (sign, which gives 0, is the exception), half types compute in f32 and round once. Any strides, rank 0-8.
"""

from __future__ import annotations

from enum import Enum
from functools import cache
from inspect import Parameter
from inspect import Signature as InspectedSignature
from typing import Any

from baracuda.call.op import Arg, Call, Function, NotDifferentiable, Op, Recipe, function
from baracuda.call.steps import made_of
from baracuda.choose.sku import rows
from baracuda.describe.dims import Shape
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.order import ELEMENTWISE
from baracuda.describe.spec import Descriptor, ScalarParam, Signature, descriptor, output, scalar, tensor
from baracuda.ops.cast.cast import CastDescriptor
from baracuda.ops.unary.unary_kinds import KINDS, Number

SAVES = {kind: entry.saves for kind, entry in KINDS.items() if entry.saves}


@cache
def takes(kind: str, element: Element) -> bool:
    """Whether the SKU table has the function for an element."""
    return any((r["op"], r["direction"]) == (kind, "forward") and int(element) in r["elements"] for r in rows())


class Approximate(Enum):
    """How gelu's normal distribution is computed: by erf, or by the tanh approximation."""

    NONE = "none"
    TANH = "tanh"


def number_kind(element: Element) -> str:
    """How numbers travel to a kernel that computes in an element."""
    return "float" if element.is_float else "unsigned" if element < Element.I8 else "int"


def _numbers(kind: str, element: Element) -> list[ScalarParam]:
    how = number_kind(element)

    def default(n: Number) -> float | int | None:
        if n.default is None or (how == "unsigned" and n.default < 0):
            return None
        return n.default if element.is_float else int(n.default)

    return [scalar(n.name, how, default(n), n.least, element) for n in KINDS[kind].numbers]


def _input(shape: Shape, element: Element, input_element: Element | None) -> Any:
    given = element if input_element is None else input_element
    return tensor("x", shape, given, reads=given is not element)


@descriptor(family="unary", kinds=KINDS, result_order=ELEMENTWISE)
class UnaryDescriptor(Descriptor):
    """y = f(x), element by element.

    Args:
        kind: Which function; each is an op of its own name.
        shape: Shape of x and y, rank 0-8.
        element: Element in which is computed, and y's (but for bool results): what the table of SKUs says for each kind.
        input_element: Element of x where it differs: any integer, bool or float, converted while being read.
    """

    kind: str
    shape: Shape
    element: Element = Element.F32
    input_element: Element | None = None

    def signature(self) -> Signature:
        result = Element.BOOL if KINDS[self.kind].answers else self.element
        return Signature(
            _input(self.shape, self.element, self.input_element),
            output("y", self.shape, result),
            *_numbers(self.kind, self.element),
        )

    def backward(self) -> UnaryBackwardDescriptor:
        """The gradient's descriptor."""
        if self.kind not in SAVES:
            raise self.wrong("kind", self.kind, "one with a gradient: " + ", ".join(SAVES))
        return UnaryBackwardDescriptor(self.kind, self.shape, self.element)


@descriptor(family="unary", direction="backward", kinds=SAVES, result_order=ELEMENTWISE)
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
        return Signature(
            tensor("dy", s, e), tensor(SAVES[self.kind], s, e), output("dx", s, e), *_numbers(self.kind, e)
        )


@descriptor(family="unary", op="gelu", enums={"approximate": Approximate}, result_order=ELEMENTWISE)
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

    def attributes(self) -> dict[str, int | float]:
        return {"approximate": int(self.approximate is Approximate.TANH)}

    def signature(self) -> Signature:
        return Signature(_input(self.shape, self.element, self.input_element), output("y", self.shape, self.element))


@descriptor(gradient_of=GeluDescriptor, result_order=ELEMENTWISE)
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

    def attributes(self) -> dict[str, int | float]:
        return {"approximate": int(self.approximate is Approximate.TANH)}

    def signature(self) -> Signature:
        s, e = self.shape, self.element
        return Signature(tensor("dy", s, e), tensor("x", s, e), output("dx", s, e))


_STEPS = NotDifferentiable("piecewise constant: its gradient is zero")
OPS = (
    *(
        Op(k, UnaryDescriptor, UnaryBackwardDescriptor if k in SAVES else _STEPS, entry.text)
        for k, entry in KINDS.items()
    ),
    Op("gelu", GeluDescriptor, GeluBackwardDescriptor, "y = x (1 + erf(x / sqrt(2))) / 2, or its tanh approximation"),
)


def _elements(kind: str, x: Arg) -> tuple[Element, Element | None]:
    """The result's element, and the input's where it differs: torch promotes integers to the default float, or refuses."""
    if x.element.is_float or takes(kind, Element.I64):
        return (Element.I64, x.element) if kind == "square" and x.element is Element.BOOL else (x.element, None)
    return (Element.F32, x.element) if kind in KINDS and KINDS[kind].promotes else (x.element, None)


def _refuse_in_place(name: str, inplace: bool) -> None:
    if inplace:
        raise InvalidProblemError(f"{name}: inplace=True is not supported. Pass out=input instead, which is the same.")


def _with_signature(
    rule: Any, name: str, doc: str, tensors: str, numbers: tuple[Number, ...], rest: str = ""
) -> Function:
    """Names a rule that takes keywords, and gives it the parameters that its function shows."""
    some, only = Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY
    params = [Parameter(n, some, annotation="Arg") for n in ("call", *tensors.split())]
    params += [Parameter(n.name, some, default=n.shown()) for n in numbers]
    params += [Parameter("inplace", some, default=False)] if "inplace" in rest else []
    params += [Parameter("out", only, default=None)] if "out" in rest else []
    rule.__name__, rule.__doc__, rule.__signature__ = name, doc, InspectedSignature(params)
    return function(tensors=tensors, scalars=" ".join(n.name for n in numbers))(rule)


_OF_FUNCTIONAL = ("tanhshrink", "softsign", "logsigmoid", "hardshrink", "softshrink", "softplus")


def _source(kind: str) -> str:
    if not KINDS[kind].of_torch:
        return ""
    return f", as torch.{'nn.functional.' if KINDS[kind].activation or kind in _OF_FUNCTIONAL else ''}{kind}"


def _make(kind: str) -> tuple[Function, Function | None]:
    entry, saved = KINDS[kind], KINDS[kind].saves
    count = len(entry.numbers)

    def given(numbers: dict[str, Any]) -> dict[str, Any]:
        """What a number that was given as None stands for is the kernel's default."""
        return {n.name: n.default if numbers[n.name] is None else numbers[n.name] for n in entry.numbers}

    def rule(call: Call, input: Arg, inplace: bool = False, out: Arg | None = None, **numbers: Any) -> Recipe:
        _refuse_in_place(kind, inplace)
        element, input_element = _elements(kind, input)
        return call(UnaryDescriptor(kind, input.shape, element, input_element), x=input, **given(numbers))

    handling = " Integers are promoted as in torch." if entry.promotes else ""
    rest = "inplace out" if entry.activation else "out"
    forward = _with_signature(rule, kind, f"{entry.text}{_source(kind)}.{handling}", "input", entry.numbers, rest)
    if not saved:
        return forward, None

    def rule_back(call: Call, dy: Arg, **args: Any) -> Recipe:
        x = args.pop("input" if saved == "x" else "output")
        return call(UnaryBackwardDescriptor(kind, x.shape, x.element), dy=dy, **{saved: x}, **given(args))

    source = "input" if saved == "x" else "output"
    backward = _with_signature(
        rule_back, kind + "_backward", f"Gradient of {kind} from its {source}.", f"dy {source}", entry.numbers
    )

    @forward.vjp
    def _pull(input: Any, *args: Any, **named: Any) -> tuple[Any, Any]:
        y = forward(input, *args, **named)
        named.pop("inplace", None)
        return y, lambda dy: backward(dy, input if saved == "x" else y, *args[:count], **named)

    return forward, backward


for _kind in (k for k in KINDS if k not in ("round", "round_decimals", "nan_to_num")):
    globals()[_kind], _gradient = _make(_kind)
    if _gradient is not None:
        globals()[_gradient.__name__] = _gradient
_ALIASES = {
    "absolute": "abs", "negative": "neg", "sgn": "sign", "fix": "trunc", "arccos": "acos", "arcsin": "asin", "arctan": "atan",
    "arccosh": "acosh", "arcsinh": "asinh", "arctanh": "atanh",
}  # fmt: skip
globals().update({alias: globals()[name] for alias, name in _ALIASES.items()})


@function(tensors="input")
def round(call: Call, input: Arg, *, decimals: int = 0, out: Arg | None = None) -> Recipe:
    """The nearest multiple of 10^-decimals, ties to even, as torch.round; `decimals` needs a float element."""
    if isinstance(decimals, bool) or not isinstance(decimals, int) or not -300 <= decimals <= 300:
        raise InvalidProblemError(f"round: decimals: got {decimals!r}, want an int from -300 to 300.")
    if not decimals:
        return call(UnaryDescriptor("round", input.shape, input.element), x=input)
    power = 10.0**decimals if decimals > 0 else -(10.0**-decimals)
    return call(UnaryDescriptor("round_decimals", input.shape, input.element), x=input, power=power)


_LARGEST = {Element.F16: 65504.0, Element.BF16: 3.3895313892515355e38, Element.F32: 3.4028234663852886e38}


def _ends(element: Element, posinf: Any, neginf: Any) -> dict[str, Any]:
    largest = _LARGEST.get(element, 1.7976931348623157e308)
    return {"posinf": largest if posinf is None else posinf, "neginf": -largest if neginf is None else neginf}


@function(tensors="input", scalars="nan posinf neginf")
def nan_to_num(
    call: Call, input: Arg, nan: Any = 0.0, posinf: Any = None, neginf: Any = None, *, out: Arg | None = None
) -> Recipe:
    """NaN and infinities replaced by numbers, infinities by the largest ones where none is given, as torch.nan_to_num."""
    e = input.element
    if not e.is_float:
        return call(CastDescriptor(input.shape, e, e), x=input)
    number = 0.0 if nan is None else nan
    return call(UnaryDescriptor("nan_to_num", input.shape, e), x=input, nan_number=number, **_ends(e, posinf, neginf))


@function(tensors="dy input")
def nan_to_num_backward(call: Call, dy: Arg, input: Arg) -> Recipe:
    """Gradient of nan_to_num: zero where its input is not finite."""
    unused: dict[str, Any] = {"nan_number": 0.0, "posinf": 0.0, "neginf": 0.0}
    return call(UnaryBackwardDescriptor("nan_to_num", input.shape, input.element), dy=dy, x=input, **unused)


nan_to_num.pulled_by(nan_to_num_backward)


@made_of("cast")
@function(tensors="input")
def positive(call: Call, input: Arg) -> Recipe:
    """A copy of the input, which must be a number, as torch.positive."""
    if input.element is Element.BOOL:
        raise InvalidProblemError("positive: got bool, want an integer or a float. Cast it first.")
    return call(CastDescriptor(input.shape, input.element, input.element), x=input)


@positive.vjp
def _positive_vjp(input: Any) -> tuple[Any, Any]:
    return positive(input), lambda dy: dy


@function(tensors="input")
def gelu(call: Call, input: Arg, approximate: str = "none") -> Recipe:
    """`x * Phi(x)`, as torch.nn.functional.gelu; `approximate` is "none" or "tanh"."""
    element, input_element = _elements("gelu", input)
    return call(GeluDescriptor(input.shape, approximate, element, input_element), x=input)  # type: ignore[arg-type]


@function(tensors="dy input")
def gelu_backward(call: Call, dy: Arg, input: Arg, approximate: str = "none") -> Recipe:
    """Gradient of gelu from its input."""
    return call(GeluBackwardDescriptor(input.shape, approximate, input.element), dy=dy, x=input)  # type: ignore[arg-type]


gelu.pulled_by(gelu_backward)
