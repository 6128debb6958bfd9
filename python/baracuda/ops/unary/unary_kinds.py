"""The table of the functions of one number: formula, reference, gradient and numbers of each. See unary.py."""

from __future__ import annotations

import re
from dataclasses import dataclass
from inspect import Parameter
from typing import Any


@dataclass(frozen=True, slots=True)
class Number:
    """A number that a function takes besides x.

    Attributes:
        name: As torch calls it.
        default: What is used where it is not given; None where it must be.
        public: The default that the functional function shows, where it is None instead.
        least: The smallest number that is taken, if not any.
    """

    name: str
    default: float | None = None
    public: float | None = None
    least: float | None = None

    def shown(self) -> Any:
        """The functional function's default."""
        return Parameter.empty if self.default is None else self.public


@dataclass(frozen=True, slots=True)
class Kind:
    """One function: what people, the gradient and the reference need to know of it; its kernel is in csrc/ops/unary/math.h.

    Attributes:
        text: One line with the formula.
        value: f(x), as the reference evaluates it: see baracuda.prove.reference.evaluate.
        slope: f'(x), in terms of y where the kernel's gradient uses y, else of x; empty where it is zero everywhere.
        smooth: A range of x on which the slope can be compared with differences.
        terms: sum |terms| of the slope, where its bound is of kind "sum".
        size: sum |terms| of the value, likewise.
        answers: The result is bool.
        activation: The function takes `inplace`, as in torch.nn.functional.
        promotes: torch promotes integers to floats; otherwise it refuses them.
        numbers: What it takes besides x.
        trials: Values of those numbers that are tested besides the defaults.
        of_torch: torch has a function of this name, which it is compared with.
    """

    text: str
    value: str
    slope: str = ""
    smooth: tuple[float, float] = (-3.0, 3.0)
    terms: str = ""
    size: str = ""
    answers: bool = False
    activation: bool = False
    promotes: bool = True
    numbers: tuple[Number, ...] = ()
    trials: tuple[tuple[float, ...], ...] = ()
    of_torch: bool = True

    @property
    def saves(self) -> str:
        """The tensor that the gradient is computed from; empty where there is none."""
        return "" if not self.slope else "y" if re.search(r"\by\b", self.slope) else "x"


KINDS = {
    "neg": Kind("y = -x; integers wrap", "-x", "-1"),
    "abs": Kind("y = |x|; integers wrap", "abs(x)", "where(isnan(x), 0, sign(x))", (0.2, 3)),
    "sign": Kind("y = (x > 0) - (x < 0); 0 for NaN", "where(isnan(x), 0, 1 * (x > 0) - (x < 0))"),
    "step": Kind("y = x > 0 ? 1 : 0; 0 for NaN", "1 * (x > 0)", of_torch=False),
    "square": Kind("y = x * x; integers wrap", "x * x", "2 * x"),
    "relu": Kind(
        "y = max(x, 0); NaN is kept", "where(x <= 0, 0, x)", "where(y <= 0, 0, 1)", (0.2, 3), activation=True,
        promotes=False,
    ),
    "floor": Kind("the largest integer <= x", "floor(x)"),
    "ceil": Kind("the smallest integer >= x", "ceil(x)"),
    "round": Kind("the nearest integer, ties to even", "rint(x)"),
    "trunc": Kind("x without its fraction", "trunc(x)"),
    "frac": Kind("x - trunc(x)", "x - trunc(x)", "1", (0.1, 0.9), promotes=False),
    "round_decimals": Kind(
        "x to the nearest multiple of 1 / power, or of -power where power < 0; ties to even, the product rounded",
        "where((power > 0) & isinf(rounded(x * power)), x, where(power > 0, rint(rounded(x * power)) / abs(power),"
        " rint(rounded(x / abs(power))) * abs(power)))",
        promotes=False, numbers=(Number("power"),), trials=((100.0,), (-10.0,), (1e6,)),
    ),
    "isnan": Kind("y = x is NaN", "isnan(x)", answers=True),
    "isinf": Kind("y = x is infinite", "isinf(x)", answers=True),
    "isfinite": Kind("y = x is neither infinite nor NaN", "isfinite(x)", answers=True),
    "signbit": Kind("y = x has a minus sign, also as -0 and NaN", "copysign(1, x) < 0", answers=True),
    "logical_not": Kind("y = x == 0", "x == 0", answers=True),
    "bitwise_not": Kind("y = ~x; not x for bool", "~x"),
    "popcount": Kind("the number of one bits", "count(x)", of_torch=False),
    "clz": Kind("the number of zero bits above the highest one", "bits - length(x)", of_torch=False),
    "ctz": Kind("the number of zero bits below the lowest one", "where(x == 0, bits, length(x & -x) - 1)", of_torch=False),
    "cube": Kind("y = x * x * x", "x * x * x", "3 * x * x", of_torch=False),
    "cbrt": Kind("y = the real cube root of x", "cbrt(x)", "1 / (3 * y * y)", (0.2, 4), of_torch=False),
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
    "sinc": Kind(
        "y = sin(pi x) / (pi x); 1 for 0", "where(x == 0, 1, sinpi(x) / (pi * x))",
        "sinc_slope(x)",
        # The cosine's argument pi (x - n) is rounded.
        terms="where(abs(x) < 0.32, pi * pi * abs(x) / 3, (abs(cospi(x)) + pi * abs((x - rint(x)) * sinpi(x))"
        " + abs(sinpi(x) / (pi * x))) / abs(x))",
    ),
    "deg2rad": Kind("y = x pi / 180", "x * (pi / 180)", "pi / 180"),
    "rad2deg": Kind("y = x 180 / pi", "x * (180 / pi)", "180 / pi"),
    "sinh": Kind("y = sinh(x)", "sinh(x)", "overflowing(cosh(x))"),
    "cosh": Kind("y = cosh(x)", "cosh(x)", "overflowing(sinh(x))"),
    "tanh": Kind("y = tanh(x)", "tanh(x)", "(1 - y) * (1 + y)"),
    "asinh": Kind("y = arsinh(x)", "arcsinh(x)", "1 / hypot(1, x)"),
    "acosh": Kind("y = arcosh(x)", "arccosh(x)", "1 / (sqrt(x - 1) * sqrt(x + 1))", (1.2, 4)),
    "atanh": Kind("y = artanh(x)", "arctanh(x)", "1 / ((1 - x) * (1 + x))", (-0.9, 0.9)),
    "erfinv": Kind("y = the number with erf(y) = x", "erfinv(x)", "sqrt(pi) / 2 * exp(y * y)", (-0.9, 0.9)),
    "lgamma": Kind(
        "y = ln |gamma(x)|", "lgamma(x)", "digamma(x)", (0.2, 6), terms="digamma_size(x)",
        # Reflection subtracts two logarithms.
        size="where(x < 0, abs(lgamma(x)) + 2 * abs(lgamma(1 - x)), abs(lgamma(x)))",
    ),
    "digamma": Kind(
        "y = the derivative of ln |gamma(x)|", "digamma(x)", "overflowing(trigamma(x))", (0.2, 6), size="digamma_size(x)"
    ),
    "erf": Kind("y = erf(x)", "erf(x)", "2 / sqrt(pi) * exp(-x * x)"),
    "erfc": Kind("y = 1 - erf(x), right for large x", "erfc(x)", "-2 / sqrt(pi) * exp(-x * x)"),
    "sigmoid": Kind("y = 1 / (1 + e^-x)", "sigmoid(x)", "y * (1 - y)"),
    "silu": Kind(
        "y = x / (1 + e^-x)", "x * sigmoid(x)", "sigmoid(x) + x * sigmoid(x) * sigmoid(-x)",
        terms="sigmoid(x) + abs(x * sigmoid(x) * sigmoid(-x))", activation=True, promotes=False,
    ),
    "relu6": Kind(
        "y = min(max(x, 0), 6); NaN is kept", "where(x < 0, 0, where(x > 6, 6, x))",
        "where((x <= 0) | (x >= 6), 0, 1)", (0.2, 3), activation=True, promotes=False,
    ),
    "hardsigmoid": Kind(
        "y = min(max(x + 3, 0), 6) / 6", "where(x < -3, 0, where(x > 3, 6, rounded(x + 3))) / 6",
        "where((x > -3) & (x < 3), 1 / Long(6), 0)", (-2.5, 2.5), activation=True, promotes=False,
    ),
    "hardswish": Kind(
        "y = x min(max(x + 3, 0), 6) / 6", "x * where(x < -3, 0, where(x > 3, 6, x + 3)) / 6",
        "where(x <= -3, 0, where(x >= 3, 1, x / 3 + 0.5))", (-2.5, 2.5),
        terms="where(abs(x) < 3, abs(x) / 3 + 0.5, 1)", activation=True, promotes=False,
    ),
    "selu": Kind(
        "y = scale (x > 0 ? x : alpha (e^x - 1)), scale 1.0507009873554805, alpha 1.6732632423543772",
        "selu_scale * where(x > 0, x, selu_alpha * expm1(x))",
        "selu_scale * where(x > 0, 1, selu_alpha * exp(x))", (0.2, 3), activation=True, promotes=False,
    ),
    "mish": Kind(
        "y = x tanh(ln(1 + e^x))", "where(x == -inf, nan, x * mish_gate(x))",
        "mish_gate(x) + mish_bend(x)", terms="mish_gate(x) + abs(mish_bend(x))", activation=True, promotes=False,
    ),
    "softsign": Kind("y = x / (1 + |x|)", "x / (1 + abs(x))", "1 / (1 + abs(x)) ** 2", (0.2, 3)),
    "logsigmoid": Kind(
        "y = -ln(1 + e^-x)", "minimum(x, 0) - log1p(exp(-abs(x)))", "sigmoid(-x)", promotes=False
    ),
    "tanhshrink": Kind(
        "y = x - tanh(x)", "x_less_tanh(x)", "tanh(x) ** 2",
        size="where(abs(x) < 0.5, 3 * abs(x_less_tanh(x)), abs(x) + abs(tanh(x)))",
    ),
    "affine": Kind(
        "y = scale x + shift; integers wrap", "x * scale + shift", "scale", size="abs(x * scale) + abs(shift)",
        promotes=False, numbers=(Number("scale"), Number("shift")), trials=((3.0, -2.0), (1.0, 0.0)), of_torch=False,
    ),
    "hardtanh": Kind(
        "y = min(max(x, min_val), max_val); NaN is kept", "where(x > max_val, max_val, where(x < min_val, min_val, x))",
        "where((x <= min_val) | (x >= max_val), 0, 1)", (-0.9, 0.9), activation=True, promotes=False,
        numbers=(Number("min_val", -1.0, -1.0), Number("max_val", 1.0, 1.0)), trials=((-3.0, 2.0),),
    ),
    "threshold": Kind(
        "y = x > threshold ? x : value; NaN is kept", "where(x <= threshold, value, x)",
        "where(x <= threshold, 0, 1)", (0.6, 3), activation=True, promotes=False,
        numbers=(Number("threshold"), Number("value")), trials=((0.5, 2.0), (0.0, -1.0)),
    ),
    "leaky_relu": Kind(
        "y = x > 0 ? x : negative_slope x", "where(x > 0, x, x * negative_slope)",
        "where(x > 0, 1, negative_slope)", (0.2, 3), activation=True, promotes=False,
        numbers=(Number("negative_slope", 0.01, 0.01),), trials=((-1.5,), (0.0,)),
    ),
    "hardshrink": Kind(
        "y = |x| <= lambd ? 0 : x", "where((x >= -lambd) & (x <= lambd), 0, x)",
        "where((x >= -lambd) & (x <= lambd), 0, 1)", (0.6, 3), promotes=False,
        numbers=(Number("lambd", 0.5, 0.5),), trials=((0.0,), (1.25,)),
    ),
    "softshrink": Kind(
        "y = x > lambd ? x - lambd : x < -lambd ? x + lambd : 0; NaN is kept",
        "where(x > lambd, x - lambd, where(x < -lambd, x + lambd, x * 0))",
        "where((x >= -lambd) & (x <= lambd), 0, 1)", (0.6, 3), promotes=False,
        numbers=(Number("lambd", 0.5, 0.5, least=0.0),), trials=((0.0,), (1.25,)),
    ),
    "elu": Kind(
        "y = x > 0 ? x : alpha (e^x - 1)", "where(x > 0, x, alpha * expm1(x))", "where(x > 0, 1, alpha * exp(x))",
        (-3, -0.2), activation=True, promotes=False, numbers=(Number("alpha", 1.0, 1.0),), trials=((0.3,), (-2.0,)),
    ),
    "celu": Kind(
        "y = x > 0 ? x : alpha (e^(x / alpha) - 1)", "where(x > 0, x, alpha * expm1(x / alpha))",
        "where(x > 0, 1, exp(x / alpha))", (-3, -0.2), terms="where(x > 0, 1, exp(x / alpha) * (1 + abs(x / alpha)))",
        size="where(x > 0, x, abs(alpha * expm1(x / alpha)) * (1 + maximum(x / alpha, 0)))",
        activation=True, promotes=False, numbers=(Number("alpha", 1.0, 1.0),), trials=((0.3,), (-2.0,)),
    ),
    "softplus": Kind(
        "y = ln(1 + e^(beta x)) / beta; x where beta x > threshold",
        "where(x * beta > threshold, x, where(x * beta > 0, x, 0) + log1p(exp(-abs(x * beta))) / beta)",
        "where(x * beta > threshold, 1, sigmoid(x * beta))", promotes=False,
        # The product with beta is rounded, which costs |beta x| ulp of what is exponential in it.
        terms="where(x * beta > threshold, 1, sigmoid(x * beta) * (1 + finite(x * beta)))",
        size="where(x * beta > threshold, abs(x), abs(where(x * beta > 0, x, 0) + log1p(exp(-abs(x * beta))) / beta)"
        " * (1 + finite(x * beta)))",
        numbers=(Number("beta", 1.0, 1.0), Number("threshold", 20.0, 20.0)), trials=((0.5, 4.0), (-2.0, 3.0)),
    ),
    "logit": Kind(
        "y = ln(z / (1 - z)), z being x held within [eps, 1 - eps (rounded)] unless eps is negative",
        "logit_of(where(eps < 0, x, minimum(maximum(x, eps), rounded(1 - eps))))",
        "where((x < maximum(eps, 0)) | (x > rounded(1 - maximum(eps, 0))), where(eps < 0, nan, 0), 1 / (x * (1 - x)))",
        (0.2, 0.8), numbers=(Number("eps", -1.0),), trials=((1e-3,), (0.0,)),
    ),
    "nan_to_num": Kind(
        "x with other numbers for NaN, infinity and -infinity",
        "where(isnan(x), nan_number, where(isinf(x), where(x > 0, posinf, neginf), x))",
        "where(isfinite(x), 1, 0)", promotes=False,
        numbers=(Number("nan_number", 0.0, 0.0), Number("posinf"), Number("neginf")), trials=((0.0, 9.0, -8.0),),
    ),
}  # fmt: skip
