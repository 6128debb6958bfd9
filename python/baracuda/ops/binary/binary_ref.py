"""Reference of the functions of two numbers: extended precision for floats, wrapping 64-bit arithmetic for integers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from baracuda.describe.elements import Element
from baracuda.ops.binary.binary import BinaryBackwardDescriptor, BinaryDescriptor
from baracuda.ops.binary.binary_kinds import KINDS
from baracuda.prove.narrow import FORMATS, next_after
from baracuda.prove.reference import Array, Case, Expected, evaluate, gradient, round_to

Long = np.longdouble
Shapes = tuple[tuple[int, ...] | None, tuple[int, ...] | None]
SHAPES: list[Shapes] = [
    ((), ()), ((3,), (3,)), ((2, 1, 70), (5, 70)), ((5, 4, 1), (4, 33)), ((0, 3), (3,)), ((40, 65), None), (None, (7, 9)),
    ((2, 1, 3, 1, 2, 1, 2, 4), (1, 2, 3, 2, 1, 2, 1, 4)), ((1300,), ()), ((64, 3), (3,)), ((3, 1100), (3, 1)),
]  # fmt: skip
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.0, -7.5, 100.0, np.inf, -np.inf, np.nan])
_DIVISIONS = ("fmod", "remainder", "floor_divide", "trunc_divide")
_WHOLE_RANGE = (
    "add", "sub", "mul", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift", "gcd",
)  # fmt: skip


def _operand(
    op: str, which: str, element: Element, shape: tuple[int, ...], rng: np.random.Generator, small: bool = False
) -> Array:
    if element is Element.BOOL:
        return rng.integers(1 if which == "b" and op in _DIVISIONS else 0, 2, shape).astype(bool)
    if element.is_integer:
        info = np.iinfo(element.numpy)
        if op == "pow":
            low = 0 if info.min == 0 else -3
            return rng.integers(low, 6, shape)
        if op.endswith("_shift") and which == "b":
            return rng.integers(0 if info.min == 0 else -2, min(70, info.max), shape)
        if not small and op in _WHOLE_RANGE:
            return rng.integers(info.min, info.max, shape, dtype=element.numpy, endpoint=True)
        values = rng.integers(max(info.min, -12), 12, shape)
        return np.where(values == 0, 5, values) if which == "b" and op in _DIVISIONS else values
    entry = KINDS[op]
    span = entry.a_range if which == "a" else entry.b_range
    if span:
        return rng.uniform(*span, shape)
    if op in ("fmod", "remainder", "trunc_divide"):
        # Quotients stay away from integers, where the functions jump.
        if which == "b":
            return rng.integers(1, 3, shape) * 4.0
        return rng.integers(-3, 4, shape) * 8.0 + rng.uniform(0.5, 3.5, shape)
    if entry.answers or op == "heaviside":
        return rng.integers(-1, 2, shape).astype(np.float64)
    numbers = rng.normal(0, 2, shape)
    return np.where(np.abs(numbers) < 0.2, 1.5, numbers) if which == "b" and op in ("div", "floor_divide") else numbers


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Broadcasting of every kind, a number on either side, ranks 0 to 8, special values, converted operands."""
    for i, (a, b) in enumerate(SHAPES):
        yield _case(op, direction, element, a, b, rng, 3 if i % 2 else 1)
    if element.is_float:
        grid = _case(op, direction, element, (len(SPECIAL), 1), (len(SPECIAL),), rng, 1)
        if "a" in grid.tensors:
            grid.tensors["a"], grid.tensors["b"] = SPECIAL[:, None], SPECIAL
        grid.note, grid.exact_gradient = "special values", False
        yield grid
    wider = [
        e for e in (Element.BOOL, Element.U8, Element.I8, Element.I32, Element.F16, Element.F32) if _holds(element, e)
    ]
    for other in wider:
        mixed = _case(op, direction, element, (4, 50), (4, 1), rng, 1, other)
        mixed.note, mixed.exact_gradient = "converted operand", False
        yield mixed


def _holds(element: Element, other: Element) -> bool:
    """Whether every small number of `other` is one of `element` too."""
    if other is element or element is Element.BOOL:
        return False
    if element.is_float:
        return not (other is Element.F32 and element.is_half)
    if other.is_float:
        return False
    return other is Element.BOOL or (other.bits < element.bits and (other is Element.U8 or element >= Element.I8))


def _case(
    op: str,
    direction: str,
    element: Element,
    a: tuple[int, ...] | None,
    b: tuple[int, ...] | None,
    rng: np.random.Generator,
    alpha: int,
    b_element: Element | None = None,
) -> Case:
    cls = BinaryDescriptor if direction == "forward" else BinaryBackwardDescriptor
    desc = cls(op, a, b, element, None, b_element)
    signature = desc.signature()
    tensors: dict[str, Array] = {}
    for p in signature.inputs:
        if p.name == "dy":
            tensors["dy"] = rng.normal(size=p.shape)
        else:
            small = p.element is not element and p.element is not Element.BOOL
            source = Element.U8 if small else p.element
            tensors[p.name] = _operand(op, p.name, source, p.shape, rng, small)
    scalars: dict[str, float | int] = {}
    for s in signature.numbers:
        if s.name == "number":
            # Every element but i8 holds what u8 does; some kinds refuse a number that theirs does not hold.
            source = Element.U8 if element.is_integer and element is not Element.I8 else element
            value = _operand(op, "a" if a is None else "b", source, (), rng)
            scalars["number"] = float(value) if s.kind == "float" else int(value)
        elif s.name == "alpha":
            scalars["alpha"] = float(alpha) * 0.5 if s.kind == "float" and alpha != 1 else alpha
        else:
            scalars[s.name] = 1.0 if s.name == "equal_nan" and alpha != 1 else dict(KINDS[op].numbers)[s.name]
    return Case(desc, tensors, scalars)


def _values(case: Case, kind: type) -> tuple[Array, Array]:
    number = case.scalars.get("number", 0)
    desc = case.descriptor
    if isinstance(number, float) and isinstance(desc, (BinaryDescriptor, BinaryBackwardDescriptor)):
        number = float(np.float64(number) if desc.element is Element.F64 else np.float32(number))
    a, b = (np.asarray(case.tensors.get(n, number)) for n in ("a", "b"))
    return a.astype(kind), b.astype(kind)


def reference(case: Case) -> dict[str, Expected]:
    """Outputs in extended precision; integers exactly."""
    desc = case.descriptor
    with np.errstate(all="ignore"):
        if isinstance(desc, BinaryBackwardDescriptor):
            return _gradients(case, desc)
        assert isinstance(desc, BinaryDescriptor)
        entry, names = KINDS[desc.kind], _names(case, desc.element)
        if desc.element.is_float:
            names["a"], names["b"] = _values(case, Long)
            size = evaluate(entry.size, **names) if entry.size else None
            return {"y": Expected(evaluate(entry.value, **names), size)}
        signed = desc.element >= Element.I8
        names["a"], names["b"] = _values(case, np.int64 if signed else np.uint64)
        y = evaluate(entry.whole or entry.value, **names)
        return {
            "y": Expected(y != 0 if desc.element is Element.BOOL else y.astype(desc.signature()["y"].element.numpy))
        }


def _names(case: Case, element: Element) -> dict[str, Any]:
    """What the formulas of binary_kinds.py may use besides a, b and NumPy's functions."""
    if element.is_float:
        compute = element.compute.numpy
        held: dict[str, Any] = {n: Long(compute.type(v)) for n, v in case.scalars.items()}
    else:
        held = {n: np.asarray(v, np.int64 if element >= Element.I8 else np.uint64) for n, v in case.scalars.items()}

    def rounded(v: Array) -> Array:
        return np.asarray(v).astype(compute).astype(Long)

    def neighbour(a: Array, b: Array) -> Array:
        # A number b is not rounded to the element: only its side of a counts.
        with np.errstate(all="ignore"):
            way = np.where(b > a, np.inf, -np.inf)
            if element in FORMATS:
                y = next_after(a.astype(np.float64), way, element).astype(Long)
            else:
                y = np.nextafter(round_to(a, element), round_to(way, element)).astype(Long)
        return np.where((a != a) | (b != b), np.nan, np.where(a == b, b, y))

    return {**held, **_FUNCTIONS, "rounded": rounded, "neighbour": neighbour}


def _sigmoid(x: Array) -> Array:
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e))


def _whole_power(a: Array, b: Array) -> Array:
    signed = a.dtype == np.int64
    power: Array = np.power(a, np.maximum(b, 0) if signed else b)
    if not signed:
        return power
    tiny = np.where(a == 1, 1, np.where(a == -1, 1 - 2 * (b & 1), 0))
    return np.asarray(np.where(b < 0, tiny, power))


def _fix_divide(a: Array, b: Array) -> Array:
    quotient = np.floor_divide(a, b)
    return np.asarray(quotient + ((np.remainder(a, b) != 0) & ((a < 0) != (b < 0))).astype(a.dtype))


def _shifted(a: Array, b: Array, back: bool = False) -> Array:
    """By a number of bits outside 0 to 63 all bits leave."""
    inside = (b >= 0) & (b < 64)
    by = np.where(inside, b, 0).astype(a.dtype)
    if back:
        return np.asarray(np.where(inside, a >> by, np.where(a < 0, -1, 0).astype(a.dtype)))
    return np.asarray(np.where(inside, a << by, np.zeros((), a.dtype)))


_FUNCTIONS: dict[str, Any] = {
    "sigmoid": _sigmoid, "apart": lambda a, b: np.where(a == b, 0, a - b),
    "whole_power": _whole_power, "fix_divide": _fix_divide, "shifted": _shifted,
    "shifted_back": lambda a, b: _shifted(a, b, True), "Two": Long(2), "finite": lambda z: np.where(np.isfinite(z), np.abs(z), 0),
}  # fmt: skip


def _gradients(case: Case, desc: BinaryBackwardDescriptor) -> dict[str, Expected]:
    entry, names = KINDS[desc.kind], _names(case, desc.element)
    dy = np.asarray(case.tensors["dy"], Long)
    if desc.kind not in ("add", "sub"):
        names["a"], names["b"] = _values(case, Long)
    found = {}
    for name, slope, size in (("da", entry.da, entry.da_size), ("db", entry.db, entry.db_size)):
        if not desc.signature()[name].present:
            continue
        by = np.broadcast_to(evaluate(slope, **names), dy.shape)
        found[name] = gradient(dy, by, evaluate(size, **names) if size else None)
    return found


def forward_of(case: Case) -> Case:
    """The forward case of a backward one."""
    d = case.descriptor
    assert isinstance(d, BinaryBackwardDescriptor)
    tensors = {k: v for k, v in case.tensors.items() if k != "dy"}
    if d.kind in ("add", "sub"):
        tensors = {n: np.ones(s) for n, s in (("a", d.a_shape), ("b", d.b_shape)) if s is not None}
    desc = BinaryDescriptor(d.kind, d.a_shape, d.b_shape, Element.F64)
    return Case(
        desc, tensors, {"number": 1.0, **case.scalars} if d.a_shape is None or d.b_shape is None else case.scalars
    )
