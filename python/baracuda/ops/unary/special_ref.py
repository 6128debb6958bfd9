"""Special functions in extended precision for references: whole arrays, by series whose terms hardly cancel.

Each is good to a few units of np.longdouble, at its roots too, which is far finer than f64; lgamma and digamma of negative
numbers to as much of the two terms that reflection subtracts.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from baracuda.prove.reference import Array

Long = np.longdouble
PI = 4 * np.arctan(Long(1))
_EULER = Long("0.57721566490153286060651209008240243")
# The root of digamma as a float and what is left.
_ROOT = (1.4616321449683622, Long("9.549995429965697715184e-17"))
_BERNOULLI = tuple(Long(n) / Long(d) for n, d in ((1, 6), (-1, 30), (1, 42), (-1, 30), (5, 66), (-691, 2730), (7, 6)))


def sinpi(x: Array) -> Array:
    """sin(pi x)."""
    n = np.rint(x)
    return np.asarray(np.where(n % 2 == 0, 1, -1) * np.sin(PI * (x - n)))


def cospi(x: Array) -> Array:
    """cos(pi x)."""
    n = np.rint(x)
    return np.asarray(np.where(n % 2 == 0, 1, -1) * np.cos(PI * (x - n)))


def _exp_minus_square(x: Array) -> Array:
    """e^(-x^2), the square's rounding put back."""
    high = x.astype(np.float32).astype(Long)
    return np.asarray(np.exp(-high * high) * np.exp(-(x - high) * (x + high)))


def _erf_below_1(a: Array) -> Array:
    """2 a / sqrt(pi) e^(-a^2) (1 + 2 a^2 / 3 + (2 a^2)^2 / (3 * 5) + ...)."""
    term = total = np.ones_like(a)
    for k in range(1, 30):
        term = term * (2 * a * a / (2 * k + 1))
        total = total + term
    return np.asarray(2 / np.sqrt(PI) * a * _exp_minus_square(a) * total)


def _erfc_from_1(a: Array) -> Array:
    """e^(-a^2) / sqrt(pi) / (a + (1/2) / (a + 1 / (a + (3/2) / ...)))."""
    value = a
    for k in range(300, 0, -1):
        value = a + Long(k) / 2 / value
    return np.asarray(_exp_minus_square(a) / np.sqrt(PI) / value)


def _erf_and_erfc(a: Array) -> tuple[Array, Array]:
    """Of 0 <= a and NaN."""
    y = np.where(np.isnan(a), a, 1)
    rest = np.where(np.isnan(a), a, 0)
    near, far = a < 1, (a >= 1) & (a < 1000)
    y[near] = _erf_below_1(a[near])
    rest[far] = _erfc_from_1(a[far])
    y[far], rest[near] = 1 - rest[far], 1 - y[near]
    return y, rest


def erf(x: Array) -> Array:
    """The error function."""
    x = np.array(x, Long)
    return np.asarray(np.copysign(_erf_and_erfc(np.abs(x))[0], x))


def erfc(x: Array) -> Array:
    """1 - erf(x)."""
    x = np.array(x, Long)
    y, rest = _erf_and_erfc(np.abs(x))
    return np.asarray(np.where(x < 0, 1 + y, rest))


def erfinv(x: Array) -> Array:
    """By Newton's method, on what is missing of 1 where that is less than half."""
    x = np.array(x, Long)
    a = np.abs(x)
    inside = np.where(a < 1, a, 0)
    w = -np.log1p(-inside * inside)
    y = np.where(inside < 0.9, inside * np.sqrt(PI) / 2, np.sqrt(np.maximum(w - np.log(w + 1) / 2, 0)))
    for _ in range(9):
        found, rest = _erf_and_erfc(y)
        missing = np.where(inside < 0.5, inside - found, rest - (1 - inside))
        y = y + missing * np.sqrt(PI) / 2 * np.exp(y * y)
    return np.asarray(np.copysign(np.where(a < 1, y, np.where(a == 1, np.inf, np.nan)), x))


@cache
def _zeta(s: int, q: np.longdouble) -> np.longdouble:
    """Hurwitz's zeta function, the sum of (q + n)^-s, by the Euler-Maclaurin formula."""
    total, end = Long(0), q + 30
    for n in range(30):
        total += (q + n) ** -s
    total += end ** (1 - s) / (s - 1) + end**-s / 2
    factor = Long(s) / 2 * end ** (-s - 1)
    for k, b in enumerate(_BERNOULLI, 1):
        total += b * factor
        factor *= Long((s + 2 * k - 1) * (s + 2 * k)) / ((2 * k + 1) * (2 * k + 2)) / (end * end)
    return total


def _lgamma_near_2(t: Array) -> Array:
    """lgamma(2 + t) for |t| <= 1/2."""
    total = np.zeros_like(t)
    for k in range(40, 1, -1):
        total = (total + (-1) ** k * _zeta(k, Long(2)) / k) * t
    return np.asarray(t * (1 - _EULER) + total * t)


def _lgamma_positive(x: Array) -> Array:
    """Of x > 1/4."""
    large = np.where(x < 24, 24, x)
    series = sum(b / (2 * k * (2 * k - 1)) / large ** (2 * k - 1) for k, b in enumerate(_BERNOULLI, 1))
    far = (large - 0.5) * (np.log(large) - 1) + (np.log(2 * PI) - 1) / 2 + series
    # gamma(x) = (x - 1) (x - 2) ... (2 + t) gamma(2 + t), |t| <= 1/2; below 3/2 divided by x (x + 1) ... (1 + t)
    small = np.where(x < 24, x, 2)
    n = np.rint(small) - 2
    product = np.ones_like(x)
    for k in range(1, 23):
        product = np.where(n >= k, product * (small - k), product)
    t = small - np.rint(small)
    rest = np.where(n == -1, -np.log1p(t), np.log(np.where(n == -2, 1 / (small * (small + 1)), product)))
    return np.where(x < 24, _lgamma_near_2(t) + rest, far)


def lgamma(x: Array) -> Array:
    """The logarithm of |gamma(x)|."""
    x = np.array(x, Long)
    with np.errstate(all="ignore"):
        y = _lgamma_positive(np.where(x > 0.25, x, 1 - x))
        y = np.where(x > 0.25, y, np.log(PI / np.abs(sinpi(x))) - y)
    pole = ((x <= 0) & (np.rint(x) == x)) | np.isinf(x)
    return np.where(pole, np.inf, np.where(np.isnan(x), x, y))


def _digamma_near_root(x: Array) -> Array:
    """The Taylor series."""
    t = (x - _ROOT[0]) - _ROOT[1]
    total = np.zeros_like(t)
    for k in range(45, 0, -1):
        total = (total - (-1) ** k * _zeta(k + 1, Long(_ROOT[0]) + _ROOT[1])) * t
    return total


def _polygamma(x: Array, order: int) -> Array:
    """Digamma (0) or trigamma (1): recurrence, asymptotic series, reflection."""
    v = np.where(x < 0, 1 - x, x)
    total = np.zeros_like(v)
    for _ in range(24):
        low = v < 24
        total = total + np.where(low, 1 / v if order == 0 else 1 / (v * v), 0)
        v = np.where(low, v + 1, v)
    if order == 0:
        y = np.log(v) - 1 / (2 * v) - sum(b / (2 * k) / v ** (2 * k) for k, b in enumerate(_BERNOULLI, 1)) - total
        reflected = y - PI * cospi(x) / sinpi(x)
        pole = np.where(x == 0, np.copysign(np.inf, -x), np.nan)
    else:
        y = 1 / v + 1 / (2 * v * v) + sum(b / v ** (2 * k + 1) for k, b in enumerate(_BERNOULLI, 1)) + total
        reflected = (PI / sinpi(x)) ** 2 - y
        pole = np.full_like(v, np.inf)
    y = np.where(x < 0, reflected, y)
    return np.where((x <= 0) & (np.rint(x) == x), np.where(np.isinf(x), np.nan, pole), y)


def digamma(x: Array) -> Array:
    """The derivative of lgamma."""
    x = np.array(x, Long)
    with np.errstate(all="ignore"):
        near = np.abs(x - _ROOT[0]) < 0.2
        return np.where(near, _digamma_near_root(np.where(near, x, 1.5)), _polygamma(x, 0))


def trigamma(x: Array) -> Array:
    """The derivative of digamma."""
    with np.errstate(all="ignore"):
        return _polygamma(np.array(x, Long), 1)
