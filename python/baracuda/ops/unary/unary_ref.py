"""Reference of the functions of one number, in extended precision so that f64 kernels can be held to less than an ulp."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import erf, erfc, factorial
from typing import Any

import numpy as np

from baracuda.describe.elements import Element
from baracuda.ops.cast.cast_ref import all_halves
from baracuda.ops.unary import special_ref as special
from baracuda.ops.unary.special_ref import PI
from baracuda.ops.unary.unary import (
    SAVES,
    Approximate,
    GeluBackwardDescriptor,
    GeluDescriptor,
    UnaryBackwardDescriptor,
    UnaryDescriptor,
    takes,
)
from baracuda.ops.unary.unary_kinds import KINDS
from baracuda.prove.reference import LARGEST, Array, Case, Expected, evaluate, gradient

Long = np.longdouble
# As many numbers need no more than f64: they are halves.
MANY = 5000
UNSIGNED = (Element.U8, Element.U16, Element.U32, Element.U64)
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


def _doubles(function: Callable[[float], float], x: Array) -> Array:
    return np.asarray(np.vectorize(function, otypes=[np.float64])(x.astype(np.float64)).astype(Long))


def _erf(x: Array) -> Array:
    return _doubles(erf, x) if x.size >= MANY else special.erf(x)


def _erfc(x: Array) -> Array:
    return _doubles(erfc, x) if x.size >= MANY else special.erfc(x)


def _digamma_size(x: Array) -> Array:
    """Reflection adds two terms that may cancel, pi / tan(pi r) with the rounding of pi r."""
    rounding = PI * PI * np.abs(x - np.rint(x)) / special.sinpi(x) ** 2
    other = 2 * np.abs(special.digamma(1 - x)) + rounding
    return np.abs(special.digamma(x)) + np.where(x < 0, other, 0)


def sigmoid(x: Array) -> Array:
    """1 / (1 + e^-x) without overflow."""
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e))


def _mish_gate(x: Array) -> Array:
    """tanh(ln(1 + e^x)) without cancellation."""
    e = np.exp(-np.abs(x))
    return np.asarray(np.where(x >= 0, (1 + 2 * e) / (1 + 2 * e + 2 * e * e), e * (2 + e) / (2 + e * (2 + e))))


def _mish_bend(x: Array) -> Array:
    """The derivative of the gate times x, 0 at infinity."""
    x = np.clip(x, -1000, 1000)
    e = np.exp(-np.abs(x))
    up, down = 4 * e * e * (1 + e) / (1 + 2 * e + 2 * e * e) ** 2, 4 * e * (1 + e) / (2 + e * (2 + e)) ** 2
    return np.asarray(x * np.where(x >= 0, up, down))


def _sinc_slope(x: Array) -> Array:
    """(cos(pi x) - sinc(x)) / x, by its series where that cancels."""
    z, total = (PI * np.where(np.abs(x) < 0.5, x, 0)) ** 2, np.zeros_like(x)
    for k in range(16, 0, -1):
        total = (-1) ** k * 2 * k / Long(factorial(2 * k + 1)) + z * total
    slope = (special.cospi(x) - special.sinpi(x) / (PI * x)) / x
    return np.asarray(np.where(np.abs(x) < 0.5, PI * PI * x * total, slope))


_TANH = (
    "1/3",
    "-2/15",
    "17/315",
    "-62/2835",
    "1382/155925",
    "-21844/6081075",
    "929569/638512875",
    "-6404582/10854718875",
)


def _x_less_tanh(x: Array) -> Array:
    """X - tanh(x), by its series where that cancels."""
    z, total = np.where(np.abs(x) < 0.1, x, 0) ** 2, np.zeros_like(x)
    for term in reversed(_TANH):
        numerator, denominator = map(Long, term.split("/"))
        total = numerator / denominator + z * total
    return np.asarray(np.where(np.abs(x) < 0.1, x * z * total, x - np.tanh(x)))


def _logit_of(z: Array) -> Array:
    return np.asarray(np.where(np.abs(z - 0.5) < 0.25, np.log1p((2 * z - 1) / (1 - z)), np.log(z / (1 - z))))


def _unsigned(x: Array, element: Element) -> Array:
    return x.astype(element.numpy).view(np.dtype(f"u{element.bits // 8}")).astype(np.uint64)


def _length(x: Array, element: Element) -> Array:
    """The number of bits from the highest one on down."""
    return np.array([int(v).bit_length() for v in _unsigned(x, element).ravel()]).reshape(x.shape)


# What the formulas of unary.py may use besides NumPy's functions.
_NAMES = {
    "erf": _erf, "erfc": _erfc, "sigmoid": sigmoid, "pi": PI, "ln2": np.log(Long(2)), "ln10": np.log(Long(10)),
    "erfinv": special.erfinv, "lgamma": special.lgamma, "digamma": special.digamma, "trigamma": special.trigamma,
    "digamma_size": _digamma_size, "sinpi": special.sinpi, "cospi": special.cospi, "mish_gate": _mish_gate,
    "mish_bend": _mish_bend, "logit_of": _logit_of, "sinc_slope": _sinc_slope, "x_less_tanh": _x_less_tanh,
    "Long": Long, "finite": lambda z: np.where(np.isfinite(z), np.abs(z), 0),
    "selu_scale": Long("1.0507009873554804934193349852946"), "selu_alpha": Long("1.6732632423543772848170429916717"),
}  # fmt: skip


def _evaluate(formula: str, kind: str, element: Element, numbers: Mapping[str, float | int], **given: Array) -> Array:
    """A formula of the spec, with the call's numbers as the kernel holds them."""
    compute = element.compute.numpy if element.is_float else np.int64

    def rounded(v: Array) -> Array:
        return np.asarray(v).astype(compute).astype(Long)

    def overflowing(slope: Array) -> Array:
        """As in torch, a derivative that overflows by itself does so before dy scales it."""
        return np.where(np.abs(slope) > LARGEST[element.compute], np.copysign(np.inf, slope), slope)

    values: dict[str, Any] = {n: np.asarray(v).astype(compute) for n, v in numbers.items()}
    if element.is_float:
        values = {n: v.astype(Long) for n, v in values.items()}
    else:
        values |= {"bits": element.bits, "length": lambda x: _length(x, element)}
        values |= {"count": lambda x: np.bitwise_count(_unsigned(x, element))}
    return evaluate(formula, **given, **values, rounded=rounded, overflowing=overflowing, **_NAMES)


def _value(kind: str, x: Array, element: Element = Element.F64, numbers: Mapping[str, float | int] = {}) -> Array:
    return _evaluate(KINDS[kind].value, kind, element, numbers, x=x)


def _inverse(kind: str, y: Array) -> Array:
    """The x of the smooth range that gives y, by bisection: what is saved as y is monotonic there."""
    if kind == "erfinv":
        return _erf(y)
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
                _trials(op, element)[0],
                note="converted input",
            )


def _trials(kind: str, element: Element) -> list[dict[str, float | int]]:
    """The numbers to try: the defaults, then those of the spec."""
    entry = KINDS[kind]
    if not entry.numbers:
        return [{}]
    defaults = [n.default for n in entry.numbers if n.default is not None]
    trials = ([tuple(defaults)] if len(defaults) == len(entry.numbers) else []) + list(entry.trials)
    kept = [t for t in trials if element.is_float or all(v == int(v) for v in t)]
    as_kind = float if element.is_float else (lambda v: max(int(v), 0)) if element in UNSIGNED else int
    return [{n.name: as_kind(v) for n, v in zip(entry.numbers, t, strict=True)} for t in kept]


def _make(op: str, direction: str, element: Element, x: Array, rng: np.random.Generator, note: str) -> Iterator[Case]:
    smooth = not note
    dy = rng.normal(0, 1, x.shape)
    if op in KINDS:
        trials = _trials(op, element)
        for numbers in trials[: None if note or x.ndim == 2 else 1]:
            if direction == "forward":
                yield Case(UnaryDescriptor(op, x.shape, element), {"x": x}, numbers, note=note)
                continue
            with np.errstate(all="ignore"):
                saved = x if SAVES[op] == "x" else _value(op, x.astype(Long)).astype(np.float64)
            desc = UnaryBackwardDescriptor(op, x.shape, element)
            fits = smooth and numbers == trials[0]
            yield Case(desc, {"dy": dy, SAVES[op]: saved}, numbers, note=note, exact_gradient=fits)
        return
    for how in Approximate:
        if direction == "forward":
            yield Case(GeluDescriptor(x.shape, how, element), {"x": x}, note=note)
        else:
            yield Case(
                GeluBackwardDescriptor(x.shape, how, element), {"dy": dy, "x": x}, note=note, exact_gradient=smooth
            )


def _gelu(desc: GeluDescriptor | GeluBackwardDescriptor, x: Array) -> tuple[Array, Array, Array, Array]:
    """(value, derivative, sum |terms| of either)."""
    if desc.approximate is Approximate.TANH:
        c = 2 * np.sqrt(2 / PI)
        z = c * (x + Long("0.044715") * x**3)
        slope = c * (1 + 3 * Long("0.044715") * x * x)
        s, r = sigmoid(z), sigmoid(-z)
        d = np.where(s * r == 0, s, s + x * s * r * slope)
        # z is rounded, which costs |z| ulp of the second term.
        return x * s, d, np.abs(x), s + np.where(s * r == 0, 0, np.abs(x * s * r * slope) * (1 + np.abs(z)))
    cdf, pdf = _erfc(-x / np.sqrt(Long(2))) / 2, np.exp(-x * x / 2) / np.sqrt(2 * PI)
    xpdf = np.where(pdf == 0, 0, x * pdf)
    return x * cdf, cdf + xpdf, np.abs(x), 1 + np.where(pdf == 0, 0, np.abs(xpdf) * (1 + x * x))


def reference(case: Case) -> dict[str, Expected]:
    """Outputs in extended precision; integers exactly."""
    desc = case.descriptor
    with np.errstate(all="ignore"):
        if isinstance(desc, UnaryDescriptor):
            x = np.asarray(case.tensors["x"])
            if desc.element.is_float:
                y, terms = _value(desc.kind, x.astype(Long), desc.element, case.scalars), KINDS[desc.kind].size
                wide = _evaluate(terms, desc.kind, desc.element, case.scalars, x=x.astype(Long)) if terms else None
                return {"y": Expected(y, wide)}
            y = _value(desc.kind, x, desc.element, case.scalars)
            return {"y": Expected(np.asarray(y).astype(desc.signature()["y"].element.numpy))}
        if isinstance(desc, UnaryBackwardDescriptor):
            kind, e, entry = desc.kind, desc.element, KINDS[desc.kind]
            saved = {SAVES[kind]: np.asarray(case.tensors[SAVES[kind]], Long)}
            dy = np.asarray(case.tensors["dy"], Long)
            slope = _evaluate(entry.slope, kind, e, case.scalars, **saved)
            wide = _evaluate(entry.terms, kind, e, case.scalars, **saved) if entry.terms else None
            return {"dx": gradient(dy, slope, wide)}
        assert isinstance(desc, (GeluDescriptor, GeluBackwardDescriptor))
        x = np.asarray(case.tensors["x"], Long)
        value, slope, size, slope_size = _gelu(desc, x)
        if desc.direction == "forward":
            return {"y": Expected(value, size)}
        dy = np.asarray(case.tensors["dy"], Long)
        return {"dx": gradient(dy, slope, slope_size)}


def forward_of(case: Case) -> Case:
    """The forward case of a backward one; x is found from y where y was saved."""
    d = case.descriptor
    if isinstance(d, UnaryBackwardDescriptor):
        saved = np.asarray(case.tensors[SAVES[d.kind]])
        x = saved if SAVES[d.kind] == "x" else _inverse(d.kind, saved.astype(Long)).astype(np.float64)
        return Case(UnaryDescriptor(d.kind, d.shape, Element.F64), {"x": x}, case.scalars)
    assert isinstance(d, GeluBackwardDescriptor)
    return Case(GeluDescriptor(d.shape, d.approximate, Element.F64), {"x": case.tensors["x"]})
