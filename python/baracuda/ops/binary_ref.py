"""Reference of the functions of two numbers: extended precision for floats, wrapping 64-bit arithmetic for integers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from baracuda.elements import Element
from baracuda.ops.binary import BinaryBackwardDescriptor, BinaryDescriptor
from baracuda.reference import Array, Case, Expected

Long = np.longdouble
Shapes = tuple[tuple[int, ...] | None, tuple[int, ...] | None]
SHAPES: list[Shapes] = [
    ((), ()), ((3,), (3,)), ((2, 1, 70), (5, 70)), ((5, 4, 1), (4, 33)), ((0, 3), (3,)), ((40, 65), None), (None, (7, 9)),
    ((2, 1, 3, 1, 2, 1, 2, 4), (1, 2, 3, 2, 1, 2, 1, 4)), ((1300,), ()), ((64, 3), (3,)), ((3, 1100), (3, 1)),
]  # fmt: skip
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.0, -7.5, 100.0, np.inf, -np.inf, np.nan])
_DIVISIONS = ("fmod", "remainder", "floor_divide")


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
        if not small and op in ("add", "sub", "mul", "bitwise_and", "bitwise_or", "bitwise_xor"):
            return rng.integers(info.min, info.max, shape, dtype=element.numpy, endpoint=True)
        values = rng.integers(max(info.min, -12), 12, shape)
        return np.where(values == 0, 5, values) if which == "b" and op in _DIVISIONS else values
    if op == "pow":
        return rng.uniform(0.3, 3, shape) if which == "a" else rng.uniform(-2, 2, shape)
    if op in ("fmod", "remainder"):
        # Quotients stay away from integers, where the functions jump.
        if which == "b":
            return rng.integers(1, 3, shape) * 4.0
        return rng.integers(-3, 4, shape) * 8.0 + rng.uniform(0.5, 3.5, shape)
    if op in ("eq", "ne", "lt", "le", "gt", "ge") or op.startswith("logical"):
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
    for s in signature.scalars:
        if s.name == "number":
            value = _operand(op, "a" if a is None else "b", Element.U8 if element.is_integer else element, (), rng)
            scalars["number"] = float(value) if s.kind == "float" else int(value)
        else:
            scalars["alpha"] = float(alpha) * 0.5 if s.kind == "float" and alpha != 1 else alpha
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
        if desc.element.is_float:
            return {"y": _float(case, desc)}
        signed = desc.element >= Element.I8
        a, b = _values(case, np.int64 if signed else np.uint64)
        y = _integer(desc.kind, a, b, case.scalars.get("alpha", 1), signed)
        return {
            "y": Expected(y != 0 if desc.element is Element.BOOL else y.astype(desc.signature()["y"].element.numpy))
        }


_SIMPLE = {
    "mul": np.multiply, "div": np.true_divide, "pow": np.power, "maximum": np.maximum, "minimum": np.minimum, "fmod": np.fmod,
    "remainder": np.remainder, "floor_divide": np.floor_divide, "eq": np.equal, "ne": np.not_equal, "lt": np.less,
    "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "logical_and": np.logical_and, "logical_or": np.logical_or,
    "logical_xor": np.logical_xor, "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
}  # fmt: skip


def _float(case: Case, desc: BinaryDescriptor) -> Expected:
    a, b = _values(case, Long)
    if desc.kind in ("add", "sub"):
        term = Long(case.scalars["alpha"]) * b
        return Expected(a + term if desc.kind == "add" else a - term, np.abs(a) + np.abs(term))
    return Expected(_SIMPLE[desc.kind](a, b))


def _integer(kind: str, a: Array, b: Array, alpha: float | int, signed: bool) -> Array:
    if kind in ("add", "sub"):
        term: Array = np.asarray(alpha, a.dtype) * b
        return a + term if kind == "add" else a - term
    if kind == "pow":
        power: Array = np.power(a, np.maximum(b, 0) if signed else b)
        if not signed:
            return power
        tiny = np.where(a == 1, 1, np.where(a == -1, 1 - 2 * (b & 1), 0))
        return np.asarray(np.where(b < 0, tiny, power))
    return np.asarray(_SIMPLE[kind](a, b))


def _gradients(case: Case, desc: BinaryBackwardDescriptor) -> dict[str, Expected]:
    dy = np.asarray(case.tensors["dy"], Long)
    if desc.kind in ("add", "sub"):
        alpha = Long(case.scalars["alpha"])
        found = {"da": Expected(dy), "db": Expected((alpha if desc.kind == "add" else -alpha) * dy)}
    else:
        a, b = _values(case, Long)
        found = _slopes(desc.kind, dy, a, b)
    full = dy.shape
    return {
        n: Expected(np.broadcast_to(e.value, full), e.magnitude)
        for n, e in found.items()
        if desc.signature()[n].present
    }


def _slopes(kind: str, dy: Array, a: Array, b: Array) -> dict[str, Expected]:
    if kind == "mul":
        return {"da": Expected(dy * b), "db": Expected(dy * a)}
    if kind == "div":
        return {"da": Expected(dy / b), "db": Expected(-dy * ((a / b) / b))}
    if kind == "pow":
        da = np.where(b == 0, 0, dy * (b * np.power(a, b - 1)))
        db = np.where((a == 0) & (b >= 0), 0, dy * (np.power(a, b) * np.log(a)))
        # The exponent b - 1 is rounded, which costs |log a| ulp.
        return {"da": Expected(da, np.abs(da) * (1 + np.abs(np.log(np.abs(a))))), "db": Expected(db)}
    if kind in ("maximum", "minimum"):
        less, more = (a < b, a > b) if kind == "maximum" else (a > b, a < b)
        share = np.where(a == b, dy / 2, dy)
        return {"da": Expected(np.where(less, 0, share)), "db": Expected(np.where(more, 0, share))}
    quotient = np.where(b == 0, a / b, np.rint((a - np.fmod(a, b)) / b)) if kind == "fmod" else np.floor_divide(a, b)
    return {"da": Expected(dy), "db": Expected(-dy * quotient)}


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
