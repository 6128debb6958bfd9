"""Reference of the functions of three operands."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from baracuda.describe.dims import Shape as Sizes
from baracuda.describe.dims import largest
from baracuda.describe.elements import Element
from baracuda.ops.ternary.ternary import (
    ClampBackwardDescriptor,
    ClampDescriptor,
    TernaryBackwardDescriptor,
    TernaryDescriptor,
    WhereBackwardDescriptor,
    WhereDescriptor,
)
from baracuda.ops.ternary.ternary_kinds import KINDS
from baracuda.prove.reference import Array, Case, Expected, evaluate, gradient

Shape = tuple[int, ...]
WHERE_SHAPES: list[tuple[Shape, Shape | None, Shape | None]] = [
    ((), (), ()), ((5, 1), (1, 70), (5, 70)), ((3,), (4, 3), None), ((4, 3), None, (3,)), ((0, 2), (1, 2), ()), ((1300,), (1300,), (1,)),
    ((2, 1, 3, 1, 2, 1, 2, 4), (1, 2, 1, 2, 1, 2, 1, 4), (2, 1, 1, 1, 1, 1, 1, 1)),
]  # fmt: skip
THREE_SHAPES: list[tuple[Shape, Shape | None, Shape | None]] = [
    ((), (), ()), ((5, 1), (1, 70), (5, 70)), ((3,), (4, 3), None), ((4, 3), None, (3,)), ((0, 2), (1, 2), ()), ((1300,), (1300,), (1,)),
    ((2, 1, 3, 1, 2, 1, 2, 4), (1, 2, 1, 2, 1, 2, 1, 4), (2, 1, 1, 1, 1, 1, 1, 1)), ((40, 65), (40, 65), (40, 65)),
]  # fmt: skip
CLAMP_SHAPES: list[Shape] = [(), (0,), (7,), (33, 70), (2, 3, 1, 2, 2, 1, 3, 2), (1300,)]
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 1.5, -1.5, np.inf, -np.inf, np.nan])


def _values(element: Element, shape: Shape, rng: np.random.Generator) -> Array:
    if element is Element.BOOL:
        return rng.integers(0, 2, shape).astype(bool)
    if element.is_integer:
        return rng.integers(max(np.iinfo(element.numpy).min, -9), 100, shape)
    return rng.normal(0, 2, shape)


def cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    """Broadcasting, numbers in place of tensors, one bound or two, crossed bounds, special values."""
    if op in KINDS:
        yield from _three_cases(op, direction, element, rng)
        return
    if op == "where":
        for condition, a, b in WHERE_SHAPES:
            yield _where(direction, element, condition, a, b, rng)
        if direction == "forward":
            yield _where(direction, element, (3, 4), None, None, rng)
            yield _where(direction, element, (9,), (9,), (), rng, Element.BOOL)
        return
    for shape in CLAMP_SHAPES:
        for low, high in ((True, True), (True, False), (False, True)):
            yield _clamp(direction, element, _values(element, shape, rng), low, high, rng)
    if element.is_float:
        for numbers in (
            {"min": -1.0, "max": 1.0},
            {"min": 1.0, "max": -1.0},
            {"min": np.nan, "max": 1.0},
            {"min": -np.inf, "max": np.inf},
        ):
            case = _clamp(direction, element, SPECIAL, True, True, rng)
            case.scalars.update(numbers)
            case.note, case.exact_gradient = "special values", False
            yield case


def _three_cases(op: str, direction: str, element: Element, rng: np.random.Generator) -> Iterator[Case]:
    cls = TernaryDescriptor if direction == "forward" else TernaryBackwardDescriptor
    for shapes in THREE_SHAPES:
        yield _three(cls(op, *shapes, element), rng)
    for i in range(0 if element is Element.BOOL else 3):
        others: list[Element | None] = [None] * 3
        others[i] = Element.BOOL if element.is_integer else Element.F16 if element is not Element.F16 else Element.U8
        case = _three(cls(op, (4, 50), (4, 1), (50,), element, *others), rng)
        case.note, case.exact_gradient = "converted operand", False
        yield case
    if element.is_float:
        case = _three(cls(op, (len(SPECIAL), 1, 1), (len(SPECIAL), 1), (len(SPECIAL),), element), rng)
        for name, dims in (("a", (-1, 1, 1)), ("b", (-1, 1)), ("c", (-1,))):
            case.tensors[name] = SPECIAL.reshape(dims)
        case.note, case.exact_gradient = "special values", False
        yield case


def _three(desc: TernaryDescriptor | TernaryBackwardDescriptor, rng: np.random.Generator) -> Case:
    entry, signature = KINDS[desc.kind], desc.signature()

    def draw(name: str, element: Element, shape: Shape) -> Array:
        if element.is_float and name == "c":
            return rng.uniform(*entry.c_range, shape)
        # Bounds and what lies between them are no ties, which have no derivative.
        return _values(element, shape, rng)

    scalars: dict[str, float | int] = {}
    for s in signature.numbers:
        if s.name in dict(entry.numbers):
            scalars[s.name] = dict(entry.numbers)[s.name] if s.kind == "float" else 3
        else:
            value = draw(s.name[0], desc.element, ())
            scalars[s.name] = float(value) if s.kind == "float" else int(value)
    return Case(desc, {p.name: draw(p.name, p.element, _sizes(p.shape)) for p in signature.inputs}, scalars)


def _three_reference(case: Case, desc: TernaryDescriptor | TernaryBackwardDescriptor) -> dict[str, Expected]:
    entry, e = KINDS[desc.kind], desc.element
    held = np.longdouble if e.is_float else np.uint64 if Element.U8 <= e <= Element.U64 else np.int64
    names = {n: np.asarray(_number(case, e, n)).astype(held) for n in case.scalars}
    for name in "abc":
        names[name] = np.asarray(case.tensors[name]).astype(held) if name in case.tensors else names[f"{name}_number"]
    full = _sizes(desc.full_shape())
    with np.errstate(all="ignore"):
        if isinstance(desc, TernaryDescriptor):
            y = np.broadcast_to(evaluate(entry.value, **names), full)
            if not e.is_float:
                return {"y": Expected(y.astype(e.numpy))}
            size = evaluate(entry.size, **names) if entry.size else None
            return {"y": Expected(y, size, reach=evaluate(entry.formed, **names))}
        dy = np.asarray(case.tensors["dy"], np.longdouble)
        found = {}
        for n, slope in zip("abc", entry.slopes, strict=True):
            if desc.signature()[f"d{n}"].present:
                found[f"d{n}"] = gradient(dy, np.broadcast_to(evaluate(slope, **names), full))
                found[f"d{n}"].reach = np.maximum(found[f"d{n}"].reach, evaluate(entry.formed, **names))
        return found


def _where(
    direction: str,
    element: Element,
    condition: Shape,
    a: Shape | None,
    b: Shape | None,
    rng: np.random.Generator,
    a_element: Element | None = None,
) -> Case:
    desc: WhereDescriptor | WhereBackwardDescriptor
    if direction == "backward":
        desc = WhereBackwardDescriptor(condition, a, b, element)
    else:
        desc = WhereDescriptor(condition, a, b, element, a_element if a_element is not element else None)
    signature = desc.signature()
    scalars = {
        s.name: float(_values(element, (), rng)) if s.kind == "float" else int(_values(element, (), rng))
        for s in signature.numbers
    }
    return Case(desc, {p.name: _values(p.element, p.shape, rng) for p in signature.inputs}, scalars)


def _clamp(direction: str, element: Element, x: Array, low: bool, high: bool, rng: np.random.Generator) -> Case:
    bounds: dict[str, float | int] = {"min": -1.25, "max": 1.5} if element.is_float else {"min": 3, "max": 50}
    numbers = {n: v for n, v in bounds.items() if (n == "min" and low) or (n == "max" and high)}
    if direction == "forward":
        return Case(ClampDescriptor(x.shape, element, low, high), {"x": x}, numbers)
    return Case(ClampBackwardDescriptor(x.shape, element, low, high), {"dy": rng.normal(size=x.shape), "x": x}, numbers)


def reference(case: Case) -> dict[str, Expected]:
    """Outputs in the elements' own numbers: nothing is rounded here."""
    desc, t = case.descriptor, case.tensors
    if isinstance(desc, (TernaryDescriptor, TernaryBackwardDescriptor)):
        return _three_reference(case, desc)
    if isinstance(desc, WhereDescriptor):
        a, b = (np.asarray(t[n] if n in t else _number(case, desc.element, f"{n}_number")) for n in ("a", "b"))
        y = np.broadcast_to(np.where(t["condition"], a, b), _sizes(desc.full_shape()))
        return {"y": Expected(y if desc.element.is_float else y.astype(desc.element.numpy))}
    if isinstance(desc, WhereBackwardDescriptor):
        dy, full = t["dy"], _sizes(desc.full_shape())
        condition = np.broadcast_to(t["condition"], full)
        found = {"da": Expected(np.where(condition, dy, 0)), "db": Expected(np.where(condition, 0, dy))}
        return {n: e for n, e in found.items() if desc.signature()[n].present}
    assert isinstance(desc, (ClampDescriptor, ClampBackwardDescriptor))
    x = t["x"]
    low, high = (_number(case, desc.element, n) if n in case.scalars else None for n in ("min", "max"))
    if isinstance(desc, ClampBackwardDescriptor):
        inside = (np.ones(x.shape, bool) if low is None else x >= low) & (True if high is None else x <= high)
        return {"dx": Expected(np.where(inside, t["dy"], 0))}
    y = x if low is None else np.maximum(x, low)
    y = y if high is None else np.minimum(y, high)
    return {"y": Expected(y if desc.element.is_float else np.asarray(y).astype(desc.element.numpy))}


def _sizes(shape: Sizes) -> Shape:
    return tuple(map(largest, shape))


def _number(case: Case, element: Element, name: str) -> float | int:
    """A number as the kernel's compute type holds it."""
    value = case.scalars[name]
    return float(np.float32(value)) if element.compute is Element.F32 else value


def forward_of(case: Case) -> Case:
    """The forward case of a backward one."""
    d = case.descriptor
    if isinstance(d, TernaryBackwardDescriptor):
        tensors = {n: v for n, v in case.tensors.items() if n != "dy"}
        return Case(TernaryDescriptor(d.kind, d.a_shape, d.b_shape, d.c_shape, Element.F64), tensors, case.scalars)
    if isinstance(d, WhereBackwardDescriptor):
        tensors = {"condition": case.tensors["condition"]} | {
            n: np.ones(_sizes(s)) for n, s in (("a", d.a_shape), ("b", d.b_shape)) if s is not None
        }
        return Case(
            WhereDescriptor(d.condition_shape, d.a_shape, d.b_shape, Element.F64),
            tensors,
            {"a_number": 1.0, "b_number": 1.0},
        )
    assert isinstance(d, ClampBackwardDescriptor)
    return Case(ClampDescriptor(d.shape, Element.F64, d.has_min, d.has_max), {"x": case.tensors["x"]}, case.scalars)
