"""Normal numbers far from the mean: the inverse of the tail's distribution, as a polynomial for the limits of a call."""

from __future__ import annotations

from functools import lru_cache
from math import cos, erfc, exp, expm1, inf, log, pi, sqrt

import numpy as np

OPS = ()

# From here on numbers are drawn by the tail's own distribution: before, erf leaves 20 bits between its value and 1.
FAR = 2.0


def log_tail(x: float) -> float:
    """The logarithm of the probability that a normal number is above x >= 0."""
    if x == inf:
        return -inf
    if x < 8:
        return log(erfc(x / sqrt(2)) / 2)
    fraction = 0.0
    for k in range(60, 0, -1):  # Laplace's continued fraction of Mills' ratio
        fraction = k / (x + fraction)
    return -x * x / 2 - log(x + fraction) - log(2 * pi) / 2


def _above(low: float, t: float) -> float:
    """The number whose tail is exp((low^2 - t^2) / 2) times that of `low`."""
    wanted, x = log_tail(low) + (low - t) * (low + t) / 2, t
    for _ in range(50):
        now = log_tail(x)
        step = (now - wanted) * exp(now + x * x / 2 + log(2 * pi) / 2)
        x += step
        if abs(step) <= 1e-15 * x:
            break
    return x


@lru_cache(maxsize=64)
def tail_inverse(low: float, high: float, bits: int) -> tuple[float, float, tuple[float, ...]]:
    """How uniform numbers of so many bits become normal ones between two limits, FAR <= low < high.

    With t = sqrt(low^2 - 2 log1p(-share u)), which the number would be if the tail were exp(-x^2 / 2) / 2, it is t plus a
    polynomial in (t - low) / half - 1.

    Returns:
        share, half, and the polynomial's coefficients, the constant one first.
    """
    depth = log_tail(low) - log_tail(high)
    deepest = bits * log(2.0)
    top = sqrt(low * low + 2 * min(depth, deepest))
    middle, half = (low + top) / 2, (top - low) / 2
    degree = 8 if bits <= 24 else 24
    nodes = [cos(pi * (k + 0.5) / (degree + 4)) for k in range(degree + 4)]
    gaps = [_above(low, middle + half * node) - (middle + half * node) for node in nodes]
    series = np.polynomial.chebyshev.chebfit(nodes, gaps, degree)
    coefficients = np.polynomial.chebyshev.cheb2poly(series)
    return -expm1(-depth), half, tuple(map(float, coefficients))
