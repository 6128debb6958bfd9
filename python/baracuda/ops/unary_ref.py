"""Reference of the functions of one number, in extended precision so that f64 kernels can be held to less than an ulp."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import erf, erfc
from typing import Any

import numpy as np

from baracuda.elements import Element
from baracuda.ops.cast_ref import all_halves
from baracuda.ops.unary import (
    SAVES,
    Approximate,
    GeluBackwardDescriptor,
    GeluDescriptor,
    SoftplusBackwardDescriptor,
    SoftplusDescriptor,
    UnaryBackwardDescriptor,
    UnaryDescriptor,
)
from baracuda.reference import LARGEST, Array, Case, Expected

Long = np.longdouble
SHAPES: list[tuple[int, ...]] = [
    (),
    (1,),
    (0,),
    (7,),
    (3, 0, 2),
    (5, 33),
    (4, 1, 130),
    (70, 65),
    (2, 3, 1, 2, 2, 1, 3, 2),
    (1, 2500),
]
SPECIAL = np.array(
    [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        2.5,
        -2.5,
        20.0,
        -20.0,
        90.0,
        -104.0,
        1e-3,
        1e-30,
        -1e-40,
        np.inf,
        -np.inf,
        np.nan,
    ]
)


def _precise(name: str, x: Array) -> Array:
    """Erf or erfc of extended-precision numbers, to their precision."""
    import mpmath

    mpmath.mp.dps = 30

    def one(v: Any) -> Any:
        if not abs(v) < 1000:
            return Long({"erf": erf, "erfc": erfc}[name](v))
        high = float(v)
        y = getattr(mpmath, name)(mpmath.mpf(high) + mpmath.mpf(float(v - Long(high))))
        return Long(float(y)) + Long(float(y - float(y)))

    return np.array([one(v) for v in x.ravel()], Long).reshape(x.shape)


def _erf(x: Array) -> Array:
    return (
        _precise("erf", x)
        if x.size < 5000
        else np.vectorize(erf, otypes=[np.float64])(x.astype(np.float64)).astype(Long)
    )


def _erfc(x: Array) -> Array:
    return (
        _precise("erfc", x)
        if x.size < 5000
        else np.vectorize(erfc, otypes=[np.float64])(x.astype(np.float64)).astype(Long)
    )


def sigmoid(x: Array) -> Array:
    """1 / (1 + e^-x) without overflow."""
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e))


_LN2, _LN10, _PI = np.log(Long(2)), np.log(Long(10)), 4 * np.arctan(Long(1))


@dataclass(frozen=True, slots=True)
class Function:
    """A function with its derivative in what is saved; `smooth` is where differences may check the derivative."""

    f: Callable[[Array], Array]
    df: Callable[[Array], Array] | None = None
    inverse: Callable[[Array], Array] | None = None
    smooth: tuple[float, float] = (-3.0, 3.0)


FUNCTIONS = {
    "neg": Function(np.negative, lambda x: -np.ones_like(x)),
    "abs": Function(np.abs, lambda x: np.where(np.isnan(x), 0, np.sign(x)), smooth=(0.2, 3)),
    "sign": Function(lambda x: np.where(np.isnan(x), 0, np.sign(x))),
    "square": Function(lambda x: x * x, lambda x: 2 * x),
    "relu": Function(lambda x: np.where(x <= 0, 0, x), lambda y: np.where(y <= 0, 0, 1), lambda y: y, (0.2, 3)),
    "floor": Function(np.floor),
    "ceil": Function(np.ceil),
    "round": Function(np.rint),
    "trunc": Function(np.trunc),
    "reciprocal": Function(lambda x: 1 / x, lambda y: -y * y, lambda y: 1 / y, (0.4, 3)),
    "sqrt": Function(np.sqrt, lambda y: 1 / (2 * y), lambda y: y * y, (0.3, 3)),
    "rsqrt": Function(lambda x: 1 / np.sqrt(x), lambda y: -(y**3) / 2, lambda y: 1 / (y * y), (0.4, 3)),
    "exp": Function(np.exp, lambda y: y, np.log),
    "exp2": Function(np.exp2, lambda y: y * _LN2, np.log2),
    "expm1": Function(np.expm1, lambda y: y + 1, np.log1p),
    "log": Function(np.log, lambda x: 1 / x, smooth=(0.3, 4)),
    "log2": Function(np.log2, lambda x: 1 / (x * _LN2), smooth=(0.3, 4)),
    "log10": Function(np.log10, lambda x: 1 / (x * _LN10), smooth=(0.3, 4)),
    "log1p": Function(np.log1p, lambda x: 1 / (1 + x), smooth=(-0.6, 4)),
    "sin": Function(np.sin, np.cos),
    "cos": Function(np.cos, lambda x: -np.sin(x)),
    "tan": Function(np.tan, lambda y: 1 + y * y, np.arctan, (-1.1, 1.1)),
    "sinh": Function(np.sinh, np.cosh),
    "cosh": Function(np.cosh, np.sinh),
    "tanh": Function(np.tanh, lambda y: (1 - y) * (1 + y), np.arctanh),
    "erf": Function(_erf, lambda x: 2 / np.sqrt(_PI) * np.exp(-x * x)),
    "erfc": Function(_erfc, lambda x: -2 / np.sqrt(_PI) * np.exp(-x * x)),
    "sigmoid": Function(sigmoid, lambda y: y * (1 - y), lambda y: np.log(y / (1 - y))),
    "silu": Function(
        lambda x: np.where(np.isneginf(x), np.nan, x * sigmoid(x)), lambda x: sigmoid(x) + x * sigmoid(x) * sigmoid(-x)
    ),
}


def _spread(element: Element, n: int, rng: np.random.Generator) -> Array:
    """Random numbers over all exponents of the element."""
    largest = {Element.F16: 16, Element.BF16: 127, Element.F32: 127}.get(element, 1000)
    return rng.choice([-1.0, 1.0], n) * np.exp2(rng.uniform(-largest, largest, n))


def _inputs(op: str, element: Element, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    if element.is_integer:
        info = np.iinfo(element.numpy)
        low = max(info.min, -(2**31))
        return rng.integers(low, min(info.max, 2**31), shape, dtype=np.int64)
    return rng.uniform(*(FUNCTIONS[op].smooth if op in FUNCTIONS else (-3.0, 3.0)), shape)


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Ranks 0 to 8, sizes 0 and 1, tiles and more; special values; numbers over all exponents; every number of a half type."""
    for shape in SHAPES:
        yield from _make(op, direction, element, _inputs(op, element, shape, rng), rng, "")
    if element.is_integer:
        return
    yield from _make(op, direction, element, SPECIAL, rng, "special values")
    yield from _make(op, direction, element, _spread(element, 1500, rng), rng, "all exponents")
    if element.is_half and direction == "forward":
        yield from _make(op, direction, element, all_halves(element).reshape(256, 256), rng, "every number")
    if (
        direction == "forward"
        and op in FUNCTIONS
        and op not in ("neg", "abs", "sign", "square", "relu", "floor", "ceil", "round", "trunc")
    ):
        for from_element in (Element.I32, Element.BOOL, Element.U8, Element.BF16):
            yield Case(
                UnaryDescriptor(op, (3, 7), element, from_element),
                {"x": rng.integers(0, 2, (3, 7))},
                note="converted input",
            )


def _make(op: str, direction: str, element: Element, x: Array, rng: np.random.Generator, note: str) -> Iterator[Case]:
    smooth = not note
    if op in FUNCTIONS and direction == "forward":
        yield Case(UnaryDescriptor(op, x.shape, element), {"x": x}, note=note)
        return
    dy = rng.normal(0, 1, x.shape)
    if op in FUNCTIONS:
        with np.errstate(all="ignore"):
            saved = x if SAVES[op] == "x" else FUNCTIONS[op].f(x.astype(Long)).astype(np.float64)
        desc = UnaryBackwardDescriptor(op, x.shape, element)
        yield Case(desc, {"dy": dy, SAVES[op]: saved}, note=note, exact_gradient=smooth)
        return
    if op == "gelu":
        for how in Approximate:
            if direction == "forward":
                yield Case(GeluDescriptor(x.shape, how, element), {"x": x}, note=note)
            else:
                yield Case(
                    GeluBackwardDescriptor(x.shape, how, element), {"dy": dy, "x": x}, note=note, exact_gradient=smooth
                )
        return
    for beta, threshold in ((1.0, 20.0), (0.5, 4.0), (-2.0, 3.0)):
        numbers: dict[str, float | int] = {"beta": beta, "threshold": threshold}
        if direction == "forward":
            yield Case(SoftplusDescriptor(x.shape, element), {"x": x}, numbers, note=note)
        else:
            yield Case(
                SoftplusBackwardDescriptor(x.shape, element),
                {"dy": dy, "x": x},
                numbers,
                note=note,
                exact_gradient=smooth,
            )


def _gelu(desc: GeluDescriptor | GeluBackwardDescriptor, x: Array) -> tuple[Array, Array, Array, Array]:
    """(value, derivative, sum |terms| of either)."""
    if desc.approximate is Approximate.TANH:
        c = 2 * np.sqrt(2 / _PI)
        z = c * (x + Long("0.044715") * x**3)
        slope = c * (1 + 3 * Long("0.044715") * x * x)
        s, r = sigmoid(z), sigmoid(-z)
        d = np.where(s * r == 0, s, s + x * s * r * slope)
        # z is rounded, which costs |z| ulp of the second term.
        return x * s, d, np.abs(x), s + np.where(s * r == 0, 0, np.abs(x * s * r * slope) * (1 + np.abs(z)))
    cdf, pdf = _erfc(-x / np.sqrt(Long(2))) / 2, np.exp(-x * x / 2) / np.sqrt(2 * _PI)
    xpdf = np.where(pdf == 0, 0, x * pdf)
    return x * cdf, cdf + xpdf, np.abs(x), 1 + np.where(pdf == 0, 0, np.abs(xpdf) * (1 + x * x))


def _softplus(case: Case, x: Array) -> tuple[Array, Array, Array, Array]:
    beta, threshold = Long(case.scalars["beta"]), Long(case.scalars["threshold"])
    z = x * beta
    value = np.where(z > threshold, x, np.log1p(np.exp(np.minimum(z, threshold))) / beta)
    slope = np.where(z > threshold, 1, sigmoid(z))
    # z is rounded, which costs |z| ulp of what is exponential in it.
    bend = 1 + np.where(np.isfinite(z), np.abs(z), 0)
    return value, slope, np.abs(value) * bend, np.abs(slope) * bend


def reference(case: Case) -> dict[str, Expected]:
    """Outputs in extended precision; integers exactly."""
    desc = case.descriptor
    with np.errstate(all="ignore"):
        if isinstance(desc, UnaryDescriptor):
            x = case.tensors["x"]
            if desc.element.is_integer:
                return {"y": Expected(_integer(desc.kind, x).astype(desc.element.numpy))}
            return {"y": Expected(FUNCTIONS[desc.kind].f(np.asarray(x, Long)))}
        if isinstance(desc, UnaryBackwardDescriptor):
            saved = np.asarray(case.tensors[SAVES[desc.kind]], Long)
            dy = np.asarray(case.tensors["dy"], Long)
            derivative = FUNCTIONS[desc.kind].df
            assert derivative is not None
            slope = np.asarray(derivative(saved))
            if desc.kind in ("sinh", "cosh"):  # as in torch, the derivative overflows before dy scales it
                slope = np.where(np.abs(slope) > LARGEST[desc.element.compute], np.copysign(np.inf, slope), slope)
            value = np.where(slope == 0, 0, dy * slope) if desc.kind in ("relu", "abs") else dy * slope
            magnitude = (
                np.abs(dy) * (sigmoid(saved) + np.abs(saved * sigmoid(saved) * sigmoid(-saved)))
                if desc.kind == "silu"
                else None
            )
            return {"dx": Expected(value, magnitude)}
        x = np.asarray(case.tensors["x"], Long)
        if isinstance(desc, (GeluDescriptor, GeluBackwardDescriptor)):
            value, slope, size, slope_size = _gelu(desc, x)
        else:
            value, slope, size, slope_size = _softplus(case, x)
        if desc.direction == "forward":
            return {"y": Expected(value, size)}
        dy = np.asarray(case.tensors["dy"], Long)
        return {"dx": Expected(dy * slope, np.abs(dy) * slope_size)}


def _integer(kind: str, x: Array) -> Array:
    if kind in ("neg", "abs", "sign", "square"):
        return {"neg": np.negative, "abs": np.abs, "sign": np.sign, "square": np.square}[kind](x)
    return np.maximum(x, 0) if kind == "relu" else x


def forward_of(case: Case) -> Case:
    """The forward case of a backward one; x is found from y where y was saved."""
    d = case.descriptor
    if isinstance(d, UnaryBackwardDescriptor):
        saved = np.asarray(case.tensors[SAVES[d.kind]])
        inverse = FUNCTIONS[d.kind].inverse
        x = saved if inverse is None else inverse(saved.astype(Long)).astype(np.float64)
        return Case(UnaryDescriptor(d.kind, d.shape, Element.F64), {"x": x})
    if isinstance(d, GeluBackwardDescriptor):
        return Case(GeluDescriptor(d.shape, d.approximate, Element.F64), {"x": case.tensors["x"]})
    assert isinstance(d, SoftplusBackwardDescriptor)
    return Case(SoftplusDescriptor(d.shape, Element.F64), {"x": case.tensors["x"]}, case.scalars)
