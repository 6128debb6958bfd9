"""Reference of the functions of one number, in extended precision so that f64 kernels can be held to less than an ulp."""

from __future__ import annotations

from collections.abc import Iterator
from math import erf, erfc
from typing import Any

import numpy as np

from baracuda.elements import Element
from baracuda.ops.cast_ref import all_halves
from baracuda.ops.unary import (
    KINDS,
    SAVES,
    Approximate,
    GeluBackwardDescriptor,
    GeluDescriptor,
    SoftplusBackwardDescriptor,
    SoftplusDescriptor,
    UnaryBackwardDescriptor,
    UnaryDescriptor,
    takes,
)
from baracuda.reference import LARGEST, Array, Case, Expected, evaluate

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


_PI = 4 * np.arctan(Long(1))
# What the formulas of unary.py may use besides NumPy's functions.
_NAMES = {"erf": _erf, "erfc": _erfc, "sigmoid": sigmoid, "pi": _PI, "ln2": np.log(Long(2)), "ln10": np.log(Long(10))}


def _value(kind: str, x: Array) -> Array:
    return evaluate(KINDS[kind].value, x=x, **_NAMES)


def _slope(kind: str, saved: Array, element: Element) -> Array:
    def overflowing(slope: Array) -> Array:
        """As in torch, a derivative that overflows by itself does so before dy scales it."""
        return np.where(np.abs(slope) > LARGEST[element.compute], np.copysign(np.inf, slope), slope)

    return evaluate(KINDS[kind].slope, **{SAVES[kind]: saved, "overflowing": overflowing}, **_NAMES)


def _inverse(kind: str, y: Array) -> Array:
    """The x of the smooth range that gives y, by bisection: what is saved as y is monotonic there."""
    low, high = (np.full(y.shape, v, Long) for v in KINDS[kind].smooth)
    rising = _value(kind, high) > _value(kind, low)
    for _ in range(70):
        middle = (low + high) / 2
        above = (_value(kind, middle) > y) == rising
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return (low + high) / 2


def _spread(element: Element, n: int, rng: np.random.Generator) -> Array:
    """Random numbers over all exponents of the element."""
    largest = {Element.F16: 16, Element.BF16: 127, Element.F32: 127}.get(element, 1000)
    return rng.choice([-1.0, 1.0], n) * np.exp2(rng.uniform(-largest, largest, n))


def _inputs(op: str, element: Element, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    if element.is_integer:
        info = np.iinfo(element.numpy)
        low = max(info.min, -(2**31))
        return rng.integers(low, min(info.max, 2**31), shape, dtype=np.int64)
    return rng.uniform(*(KINDS[op].smooth if op in KINDS else (-3.0, 3.0)), shape)


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
    if direction == "forward" and op in KINDS and not takes(op, Element.I64):
        for from_element in (Element.I32, Element.BOOL, Element.U8, Element.BF16):
            yield Case(
                UnaryDescriptor(op, (3, 7), element, from_element),
                {"x": rng.integers(0, 2, (3, 7))},
                note="converted input",
            )


def _make(op: str, direction: str, element: Element, x: Array, rng: np.random.Generator, note: str) -> Iterator[Case]:
    smooth = not note
    if op in KINDS and direction == "forward":
        yield Case(UnaryDescriptor(op, x.shape, element), {"x": x}, note=note)
        return
    dy = rng.normal(0, 1, x.shape)
    if op in KINDS:
        with np.errstate(all="ignore"):
            saved = x if SAVES[op] == "x" else _value(op, x.astype(Long)).astype(np.float64)
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
            x = np.asarray(case.tensors["x"])
            if desc.element.is_float:
                return {"y": Expected(_value(desc.kind, x.astype(Long)))}
            return {"y": Expected(_value(desc.kind, x).astype(desc.signature()["y"].element.numpy))}
        if isinstance(desc, UnaryBackwardDescriptor):
            saved = np.asarray(case.tensors[SAVES[desc.kind]], Long)
            dy = np.asarray(case.tensors["dy"], Long)
            terms = KINDS[desc.kind].terms
            size = np.abs(dy) * evaluate(terms, x=saved, **_NAMES) if terms else None
            return {"dx": Expected(dy * _slope(desc.kind, saved, desc.element), size)}
        x = np.asarray(case.tensors["x"], Long)
        if isinstance(desc, (GeluDescriptor, GeluBackwardDescriptor)):
            value, slope, size, slope_size = _gelu(desc, x)
        else:
            value, slope, size, slope_size = _softplus(case, x)
        if desc.direction == "forward":
            return {"y": Expected(value, size)}
        dy = np.asarray(case.tensors["dy"], Long)
        return {"dx": Expected(dy * slope, np.abs(dy) * slope_size)}


def forward_of(case: Case) -> Case:
    """The forward case of a backward one; x is found from y where y was saved."""
    d = case.descriptor
    if isinstance(d, UnaryBackwardDescriptor):
        saved = np.asarray(case.tensors[SAVES[d.kind]])
        x = saved if SAVES[d.kind] == "x" else _inverse(d.kind, saved.astype(Long)).astype(np.float64)
        return Case(UnaryDescriptor(d.kind, d.shape, Element.F64), {"x": x})
    if isinstance(d, GeluBackwardDescriptor):
        return Case(GeluDescriptor(d.shape, d.approximate, Element.F64), {"x": case.tensors["x"]})
    assert isinstance(d, SoftplusBackwardDescriptor)
    return Case(SoftplusDescriptor(d.shape, Element.F64), {"x": case.tensors["x"]}, case.scalars)
