"""Derives the polynomials of include/baracuda/math: weighted minimax fits (Remez exchange on a dense grid, mpmath).

Run `python tools/fit_polynomials.py [name ...]`; each line printed is one coefficient list, lowest order first, with
the largest weighted (relative) error of the fit in bits. Nothing is read and nothing is written.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from mpmath import mp, mpf  # type: ignore[import-untyped]

mp.dps = 60
Fn = Callable[[mpf], mpf]


def remez(g: Fn, w: Fn, a: mpf, b: mpf, degree: int) -> tuple[list[mpf], mpf]:
    """Minimises max |w(x) (g(x) - P(x))| over [a, b]."""
    count = 60 * (degree + 2)
    xs = [(a + b) / 2 - (b - a) / 2 * mp.cos(mp.pi * (mpf(i) + mpf("0.5")) / count) for i in range(count)]
    gs, ws = [g(x) for x in xs], [abs(w(x)) for x in xs]
    m = degree + 2
    ref = [min(max(i * (count - 1) // (m - 1), 0), count - 1) for i in range(m)]
    coefs: list[mpf] = []
    worst = mpf(0)
    for _ in range(40):
        rows, rhs = mp.matrix(m, m), mp.matrix(m, 1)
        for row, i in enumerate(ref):
            power = ws[i]
            for j in range(degree + 1):
                rows[row, j] = power
                power *= xs[i]
            rows[row, degree + 1] = (-1) ** row
            rhs[row] = ws[i] * gs[i]
        sol = mp.lu_solve(rows, rhs)
        coefs, level = [sol[j] for j in range(degree + 1)], abs(sol[degree + 1])
        err = [w_ * (g_ - mp.polyval(coefs[::-1], x)) for x, g_, w_ in zip(xs, gs, ws, strict=True)]
        worst = max(abs(e) for e in err)
        if worst <= level * mpf("1.0001"):
            break
        peaks: list[int] = []
        for i, e in enumerate(err):
            if e == 0:
                continue
            if peaks and (err[peaks[-1]] > 0) == (e > 0):
                if abs(e) > abs(err[peaks[-1]]):
                    peaks[-1] = i
            else:
                peaks.append(i)
        while len(peaks) > m:
            peaks.pop(0 if abs(err[peaks[0]]) < abs(err[peaks[-1]]) else -1)
        if len(peaks) < m:
            break
        ref = peaks
    return coefs, worst


def odd_tail(fn: Fn) -> Fn:
    """(fn(sqrt z) - sqrt z) / sqrt(z)^3 as a function of z, for odd fn with fn'(0) = 1."""
    return lambda z: (fn(mp.sqrt(z)) - mp.sqrt(z)) / mp.sqrt(z) ** 3


def odd_weight(fn: Fn) -> Fn:
    """The weight that makes the error of odd_tail(fn) relative to fn."""
    return lambda z: mp.sqrt(z) ** 3 / fn(mp.sqrt(z))


def erfc_scaled(k: mpf) -> Fn:
    """erfc(x) exp(x^2) (1 + 2x) in q = (x - k) / (x + k)."""

    def fn(q: mpf) -> mpf:
        x = k * (1 + q) / (1 - q)
        return mp.erfc(x) * mp.exp(x * x) * (1 + 2 * x)

    return fn


def normal_tail(k: mpf) -> Fn:
    """Phi(-t) exp(t^2 / 2) (t + k) in q = t / (t + k)."""

    def fn(q: mpf) -> mpf:
        t = k * q / (1 - q)
        return mp.ncdf(-t) * mp.exp(t * t / 2) * (t + k)

    return fn


def normal_weight(k: mpf) -> Fn:
    """Relative to the tail, with the units that the rounding of t^2 takes anyway."""
    return lambda q: 1 / (normal_tail(k)(q) * (1 + (k * q / (1 - q)) ** 2 / 2))


def erfinv_over_x(w: mpf) -> mpf:
    """erfinv(x) / x at w = -log(1 - x^2)."""
    if w == 0:
        return mp.sqrt(mp.pi) / 2
    x = mp.sqrt(-mp.expm1(-w))
    # Newton's method on the logarithm of the tail, from the leading term.
    y = mp.erfinv(x) if w < 3 else mp.sqrt(w - mp.log(w) / 2)
    tail = mp.exp(-w) / (1 + x)
    for _ in range(0 if w < 3 else 9):
        y += (mp.erfc(y) / tail - 1) * mp.sqrt(mp.pi) / 2 * mp.exp(y * y) * tail
    return y / x


DIGAMMA_ROOT = mp.findroot(mp.digamma, mpf("1.4616"))


def gamma_log_over_roots(f: mpf) -> mpf:
    """log(gamma(x)) / ((x - 1) (x - 2)) at x = 1.5 + f."""
    x = mpf("1.5") + f
    if x in (1, 2):
        x += mpf(10) ** -25
    return mp.loggamma(x) / ((x - 1) * (x - 2))


def digamma_over_root(f: mpf) -> mpf:
    """digamma(x) / (x - root) at x = 1.5 + f."""
    x = mpf("1.5") + f
    return mp.digamma(x) / (x - DIGAMMA_ROOT)


LN2 = mp.log(2)
TINY = mpf(2) ** -40
ROOT = mp.sqrt(2)
ZS = ((ROOT - 1) / (ROOT + 1)) ** 2 * mpf("1.001")
T8 = (ROOT - 1) ** 2 * mpf("1.001")
QUARTER = (mp.pi / 4) ** 2 * mpf("1.001")
HALF_LN2 = LN2 / 2 * mpf("1.001")

# name: (function, weight, from, to, degree for f32, for f64; 0: not needed)
FITS: dict[str, tuple[Fn, Fn, mpf, mpf, int, int]] = {
    "exp": (lambda r: (mp.exp(r) - 1 - r) / r**2, lambda r: r**2 / mp.exp(r), -HALF_LN2, HALF_LN2, 4, 9),
    "expm1": (lambda r: (mp.exp(r) - 1 - r) / r**2, lambda r: r**2 / mp.expm1(r), -HALF_LN2, HALF_LN2, 4, 10),
    "exp2": (lambda r: (2**r - 1) / r, lambda r: r / 2**r, mpf("-0.5005"), mpf("0.5005"), 5, 11),
    "exp_weight": (lambda r: (2**r - 1) / r, lambda r: r / 2**r, mpf("-0.5005"), mpf("0.5005"), 4, 0),
    "log": (
        lambda f: (mp.log1p(f) - f + f * f / 2) / f**3,
        lambda f: f**3 / mp.log1p(f),
        1 / ROOT - 1 - mpf("1e-4"),
        ROOT - 1 + mpf("1e-4"),
        8,
        19,
    ),
    "log_s": (odd_tail(mp.atanh), odd_weight(mp.atanh), TINY, ZS, 2, 6),
    "pow_log2": (
        lambda f: mp.log1p(f) / f / LN2 if f else 1 / LN2,
        lambda f: f * LN2 / mp.log1p(f) if f else mpf(1),
        1 / ROOT - 1 - mpf("1e-4"),
        ROOT - 1 + mpf("1e-4"),
        0,
        12,
    ),
    "pow_exp2": (lambda r: (2**r - 1) / r, lambda r: r / 2**r, mpf("-0.5005"), mpf("0.5005"), 0, 6),
    "pow_log": (
        lambda z: (mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 1 - z / 3) / z**2,
        lambda z: z**2,
        TINY,
        ZS,
        3,
        8,
    ),
    "sin": (odd_tail(mp.sin), odd_weight(mp.sin), TINY, QUARTER, 2, 5),
    "cos": (
        lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2,
        lambda z: z**2 / mp.cos(mp.sqrt(z)),
        TINY,
        QUARTER,
        2,
        5,
    ),
    "tan": (odd_tail(mp.tan), odd_weight(mp.tan), TINY, QUARTER, 5, 13),
    "tanh": (odd_tail(mp.tanh), odd_weight(mp.tanh), TINY, mpf("0.55") ** 2, 4, 10),
    "sinh": (odd_tail(mp.sinh), odd_weight(mp.sinh), TINY, mpf(1), 3, 7),
    "asin": (odd_tail(mp.asin), odd_weight(mp.asin), TINY, mpf("0.2501"), 4, 12),
    "atan": (odd_tail(mp.atan), odd_weight(mp.atan), TINY, T8, 4, 11),
    "erf": (
        lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1,
        lambda z: mp.sqrt(z) / mp.erf(mp.sqrt(z)),
        TINY,
        mpf(1),
        6,
        12,
    ),
    "erfc_f32": (erfc_scaled(mpf(3)), lambda q: 1 / erfc_scaled(mpf(3))(q), mpf(-1), mpf("0.542"), 10, 0),
    "erfc_f64": (erfc_scaled(mpf(4)), lambda q: 1 / erfc_scaled(mpf(4))(q), mpf(-1), mpf("0.7452"), 0, 23),
    "normal_tail": (normal_tail(mpf("3.4")), normal_weight(mpf("3.4")), mpf(0), mpf("14.5") / mpf("17.9"), 7, 0),
    "normal_log": (
        lambda t: (mp.log(mp.ncdf(-t)) / LN2 + 1) / t,
        lambda t: t,
        TINY,
        mpf("6.50065"),
        8,
        0,
    ),
    "erfinv_near_f32": (
        lambda t: erfinv_over_x(t + mpf("2.5")),
        lambda t: 1 / erfinv_over_x(t + mpf("2.5")),
        mpf("-2.5"),
        mpf("2.51"),
        9,
        0,
    ),
    "erfinv_far_f32": (
        lambda t: erfinv_over_x((t + 3) ** 2),
        lambda t: 1 / erfinv_over_x((t + 3) ** 2),
        mpf("-0.77"),
        mpf(1),
        9,
        0,
    ),
    "erfinv_near_f64": (
        lambda t: erfinv_over_x(t + mpf("3.125")),
        lambda t: 1 / erfinv_over_x(t + mpf("3.125")),
        mpf("-3.125"),
        mpf("3.126"),
        0,
        23,
    ),
    "erfinv_middle_f64": (
        lambda t: erfinv_over_x((t + mpf("3.25")) ** 2),
        lambda t: 1 / erfinv_over_x((t + mpf("3.25")) ** 2),
        mpf("-0.751"),
        mpf("0.751"),
        0,
        19,
    ),
    "erfinv_far_f64": (
        lambda t: erfinv_over_x((t + 5) ** 2),
        lambda t: 1 / erfinv_over_x((t + 5) ** 2),
        mpf("-1.001"),
        mpf("1.02"),
        0,
        17,
    ),
    "lgamma": (gamma_log_over_roots, lambda f: 1 / gamma_log_over_roots(f), mpf("-0.5"), mpf("0.5"), 9, 21),
    "digamma": (digamma_over_root, lambda f: 1 / digamma_over_root(f), mpf("-0.5"), mpf("0.5"), 10, 22),
    "log_erfc": (
        lambda x: mp.log(mp.erfc(x)) / x,
        lambda x: mp.erfc(x) * x / mp.erf(x),
        mpf("0.9"),
        mpf(4),
        7,
        0,
    ),
}


def main() -> None:
    """Prints the fits that were asked for, or all."""
    for name in sys.argv[1:] or FITS:
        g, w, a, b, d32, d64 = FITS[name]
        for kind, degree in ((np.float32, d32), (np.float64, d64)):
            if degree == 0:
                continue
            coefs, worst = remez(g, w, a, b, degree)
            suffix = "f" if kind is np.float32 else ""
            text = ", ".join(f"{kind(str(c)):.{9 if suffix else 17}g}{suffix}" for c in coefs)
            print(f"{name} {kind.__name__} degree {degree} error 2^{float(mp.log(worst, 2)):.1f}: {text}", flush=True)


if __name__ == "__main__":
    main()
