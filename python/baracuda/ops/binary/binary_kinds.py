"""The table of the functions of two numbers: formula, reference and gradients of each. See binary.py.

Formulas are what baracuda.prove.reference.evaluate takes: of a and b, and of the call's numbers.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kind:
    """One function: what people, the gradient and the reference need to know of it; its kernel is in csrc/ops/binary.

    Attributes:
        text: One line with the formula.
        value: f(a, b) of floats, and of integers unless `whole` says otherwise.
        size: sum |terms| of the value, where its bound is of kind "sum".
        whole: f(a, b) of integers, held in 64 bits.
        da: The derivative with respect to a; empty where the function has no gradient.
        db: The derivative with respect to b.
        da_size: sum |terms| of da, where the gradient's bound is of kind "sum"; |da| by default.
        db_size: The same for db.
        a_range: Where a is sampled; integers are sampled apart.
        b_range: Where b is sampled.
        answers: The result is bool.
        floats: torch promotes integers to floats.
        numbers: What it takes besides a and b, with the values that are tested first.
    """

    text: str
    value: str
    size: str = ""
    whole: str = ""
    da: str = ""
    db: str = ""
    da_size: str = ""
    db_size: str = ""
    a_range: tuple[float, float] | None = None
    b_range: tuple[float, float] | None = None
    answers: bool = False
    floats: bool = False
    numbers: tuple[tuple[str, float], ...] = ()


_LESS = "where(a == b, 0.5, 1) * where(a < b, 0, 1)"
_MORE = "where(a == b, 0.5, 1) * where(a > b, 0, 1)"
_ALPHA = (("alpha", 1.0),)
KINDS = {
    "add": Kind("y = a + alpha b", "a + alpha * b", "abs(a) + abs(alpha * b)", da="1", db="alpha", numbers=_ALPHA),
    "sub": Kind("y = a - alpha b", "a - alpha * b", "abs(a) + abs(alpha * b)", da="1", db="-alpha", numbers=_ALPHA),
    "mul": Kind("y = a * b", "a * b", da="b", db="a"),
    "div": Kind("y = a / b", "a / b", da="1 / b", db="-(a / b) / b", floats=True),
    "pow": Kind(
        "y = a^b", "power(a, b)", whole="whole_power(a, b)", a_range=(0.3, 3), b_range=(-2, 2),
        da="where((b == 0) | (power(a, b - 1) == 0), 0, b * power(a, b - 1))",
        db="where(((a == 0) & (b >= 0)) | ((power(a, b) == 0) & (a > 0)), 0, power(a, b) * log(a))",
        # The exponent b - 1 is rounded, which costs |log a| ulp.
        da_size="abs(where((b == 0) | (power(a, b - 1) == 0), 0, b * power(a, b - 1))) * (1 + finite(log(abs(a))))",
    ),
    "maximum": Kind("y = max(a, b); NaN is kept", "maximum(a, b)", da=_LESS, db=_MORE),
    "minimum": Kind("y = min(a, b); NaN is kept", "minimum(a, b)", da=_MORE, db=_LESS),
    "fmax": Kind(
        "y = max(a, b); of a number and NaN the number", "fmax(a, b)", da="where((a >= b) | (b != b), 1, 0)",
        db="where((a >= b) | (b != b), 0, 1)",
    ),
    "fmin": Kind(
        "y = min(a, b); of a number and NaN the number", "fmin(a, b)", da="where((a <= b) | (b != b), 1, 0)",
        db="where((a <= b) | (b != b), 0, 1)",
    ),
    "fmod": Kind(
        "the remainder of a / b with the sign of a", "fmod(a, b)", da="1",
        db="-where(b == 0, a / b, rint((a - fmod(a, b)) / b))",
    ),
    "remainder": Kind(
        "the remainder of a / b with the sign of b", "remainder(a, b)", da="1", db="-floor_divide(a, b)"
    ),
    "floor_divide": Kind("the largest integer <= a / b", "floor_divide(a, b)"),
    "trunc_divide": Kind("a / b, rounded, without its fraction", "trunc(rounded(a / b))", whole="fix_divide(a, b)"),
    "atan2": Kind(
        "y = the angle of the point (b, a)", "arctan2(a, b)", da="where((hypot(a, b) == 0) | isinf(hypot(a, b)), 0, b / hypot(a, b) ** 2)",
        db="where((hypot(a, b) == 0) | isinf(hypot(a, b)), 0, -a / hypot(a, b) ** 2)", floats=True,
    ),
    "hypot": Kind(
        "y = sqrt(a^2 + b^2)", "hypot(a, b)", da="where(isinf(a), copysign(1, a), a / hypot(a, b))",
        db="where(isinf(b), copysign(1, b), b / hypot(a, b))",
    ),
    "copysign": Kind(
        "y = |a| with the sign of b", "copysign(a, b)", da="where(a == 0, 0, copysign(1, a) * copysign(1, b))",
        db="0 * (a == a)", floats=True, b_range=(0.3, 3),
    ),
    "nextafter": Kind("the neighbour of a in its element, on the way to b", "neighbour(a, b)"),
    "heaviside": Kind("y = a < 0 ? 0 : a == 0 ? b : 1; 0 for NaN", "where(a == 0, b, 1 * (a > 0))"),
    "xlogy": Kind(
        "y = a ln(b); 0 where a is 0 and b not NaN", "where((a == 0) & (b == b), 0, a * log(b))", b_range=(0.3, 3),
        da="where((a == 0) & (b <= 0), 0, log(b))", db="a / b", floats=True,
    ),
    "logaddexp": Kind(
        "y = ln(e^a + e^b)", "logaddexp(a, b)", "abs(maximum(a, b)) + log(2)",
        da="sigmoid(apart(a, b))", db="sigmoid(apart(b, a))",
        # The difference is rounded, which costs |a - b| ulp of what is exponential in it.
        da_size="sigmoid(apart(a, b)) * (1 + finite(a - b))", db_size="sigmoid(apart(b, a)) * (1 + finite(a - b))",
    ),
    "logaddexp2": Kind(
        "y = log2(2^a + 2^b)", "logaddexp2(a, b)", "abs(maximum(a, b)) + 1",
        da="sigmoid(apart(a, b) * log(Two))", db="sigmoid(apart(b, a) * log(Two))",
        da_size="sigmoid(apart(a, b) * log(Two)) * (1 + finite(a - b))",
        db_size="sigmoid(apart(b, a) * log(Two)) * (1 + finite(a - b))",
    ),
    "ldexp": Kind(
        "y = a 2^b", "a * exp2(b)", da="exp2(b)", db="a * exp2(b) * log(Two)", floats=True, b_range=(-3, 3)
    ),
    "prelu": Kind("y = a > 0 ? a : b a", "where(a > 0, a, b * a)", da="where(a > 0, 1, b)", db="where(a > 0, 0, a)"),
    "isclose": Kind(
        "y = |a - b| <= atol + |rtol b|, or a == b, or both are NaN and equal_nan is not 0",
        "(a == b) | ((a != a) & (b != b) & (equal_nan != 0)) | (((rtol != 0) | (atol != 0)) & isfinite(a - b)"
        " & (rounded(abs(a - b)) <= rounded(atol + rounded(abs(rtol * b)))))",
        answers=True, numbers=(("rtol", 0.5), ("atol", 0.125), ("equal_nan", 0.0)),
    ),
    "eq": Kind("y = a == b", "a == b", answers=True),
    "ne": Kind("y = a != b", "a != b", answers=True),
    "lt": Kind("y = a < b", "a < b", answers=True),
    "le": Kind("y = a <= b", "a <= b", answers=True),
    "gt": Kind("y = a > b", "a > b", answers=True),
    "ge": Kind("y = a >= b", "a >= b", answers=True),
    "logical_and": Kind("y = (a != 0) and (b != 0)", "logical_and(a, b)", answers=True),
    "logical_or": Kind("y = (a != 0) or (b != 0)", "logical_or(a, b)", answers=True),
    "logical_xor": Kind("y = (a != 0) != (b != 0)", "logical_xor(a, b)", answers=True),
    "bitwise_and": Kind("y = a & b", "a & b"),
    "bitwise_or": Kind("y = a | b", "a | b"),
    "bitwise_xor": Kind("y = a ^ b", "a ^ b"),
    "bitwise_left_shift": Kind("y = a 2^b, cut to its bits; 0 for b < 0 and b >= its bits", "shifted(a, b)"),
    "bitwise_right_shift": Kind(
        "y = floor(a / 2^b); 0, or -1 where a < 0, for b < 0 and b >= its bits", "shifted_back(a, b)"
    ),
    "gcd": Kind("the greatest common divisor of |a| and |b|; gcd(0, 0) is 0", "gcd(a, b)"),
    "lcm": Kind("the least common multiple of |a| and |b|, 0 with 0; it wraps", "lcm(a, b)"),
}  # fmt: skip
