"""What a descriptor's kernel does, as instructions of a fused program (csrc/ops/expr/program.h)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from baracuda.describe.elements import Element
from baracuda.ops.unary.unary_kinds import KINDS as UNARY_KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from baracuda.describe.spec import Descriptor

Number: TypeAlias = int | float


class NotFused(Exception):
    """Why a function is not part of a fused kernel."""


@dataclass(frozen=True, slots=True)
class Made:
    """One result: a function of operands, each an argument of the plan by name or a number; no function: the operand."""

    function: str | None
    element: Element
    operands: tuple[str | Number, ...]
    result: Element


_COUNTS = ("popcount", "clz", "ctz")
_LOGICAL = {"bitwise_and": "logical_and", "bitwise_or": "logical_or", "bitwise_xor": "logical_xor"}


def made_by(desc: Descriptor, numbers: Mapping[str, Number]) -> tuple[Made, ...]:
    """The results of a plan's kernel.

    Args:
        desc: The plan's descriptor.
        numbers: The numbers that it is run with, by name.

    Raises:
        NotFused: The kernel is not one of elements, or depends on how they are stored.
    """
    find = _RULES.get(type(desc).__name__)
    if find is None:
        raise NotFused(f"{desc.op} is not a function of single elements")
    return find(desc, _Given(desc, numbers))


class _Given:
    """Operands of a call, with the defaults of the signature."""

    def __init__(self, desc: Any, numbers: Mapping[str, Number]) -> None:
        signature = desc.signature()
        self.tensors = [p.name for p in signature.inputs]
        self.named = {s.name: s.default if numbers.get(s.name) is None else numbers[s.name] for s in signature.numbers}

    def __call__(self, *names: str) -> tuple[str | Number, ...]:
        """Tensors by their name, numbers by their value."""
        return tuple(n if n in self.tensors else self.named[n] for n in names)

    def either(self, name: str, number: str) -> str | Number:
        """A tensor, or the number that stands for it."""
        return name if name in self.tensors else self.named[number]


def _gradients(desc: Any, name: str, operands: tuple[str | Number, ...]) -> tuple[Made, ...]:
    wanted = [p.name[-1] for p in desc.signature().outputs]
    return tuple(Made(f"{name}_backward_{k}", desc.element, operands, desc.element) for k in wanted)


def _unary(desc: Any, given: _Given) -> tuple[Made, ...]:
    kind, e = desc.kind, desc.element
    bits = (e.bits,) if kind in _COUNTS else ()
    name = "logical_not" if kind == "bitwise_not" and e is Element.BOOL else kind
    operands = given("x", *(n.name for n in UNARY_KINDS[kind].numbers))
    return (Made(name, e, (*operands, *bits), Element.BOOL if UNARY_KINDS[kind].answers else e),)


def _unary_backward(desc: Any, given: _Given) -> tuple[Made, ...]:
    names = (given.tensors[0], given.tensors[1], *(n.name for n in UNARY_KINDS[desc.kind].numbers))
    return (Made(f"{desc.kind}_backward", desc.element, given(*names), desc.element),)


def _gelu(desc: Any, given: _Given) -> tuple[Made, ...]:
    back = "_backward" if desc.direction == "backward" else ""
    name = "gelu" if desc.approximate.value == "none" else "gelu_tanh"
    return (Made(name + back, desc.element, tuple(given.tensors), desc.element),)


def _sum(kind: str, e: Element, a: str | Number, b: str | Number, alpha: Number) -> Made:
    alpha = alpha if kind == "add" else -alpha
    if alpha in (1, -1):
        return Made("add" if alpha == 1 else "sub", e, (a, b), e)
    return Made("add_scaled", e, (a, b, alpha), e)


def _binary(desc: Any, given: _Given) -> tuple[Made, ...]:
    from baracuda.ops.binary.binary_kinds import KINDS

    kind, e = desc.kind, desc.element
    a, b = given.either("a", "number"), given.either("b", "number")
    if kind in ("add", "sub"):
        return (_sum(kind, e, a, b, given.named["alpha"]),)
    if kind == "nextafter" and e.is_half:
        raise NotFused(f"nextafter of {e} depends on how its operands are stored")
    name = _LOGICAL.get(kind, kind) if e is Element.BOOL else kind
    more = (0,) if kind == "nextafter" else given(*(n for n, _ in KINDS[kind].numbers))
    return (Made(name, e, (a, b, *more), Element.BOOL if KINDS[kind].answers else e),)


def _binary_backward(desc: Any, given: _Given) -> tuple[Made, ...]:
    e = desc.element
    if desc.kind in ("add", "sub"):
        alpha = given.named["alpha"] * (1 if desc.kind == "add" else -1)
        made = {"da": Made(None, e, ("dy",), e)}
        made["db"] = made["da"] if alpha == 1 else Made("mul", e, (alpha, "dy"), e)
        return tuple(made[p.name] for p in desc.signature().outputs)
    return _gradients(desc, desc.kind, ("dy", given.either("a", "number"), given.either("b", "number")))


def _where(desc: Any, given: _Given) -> tuple[Made, ...]:
    operands = ("condition", given.either("a", "a_number"), given.either("b", "b_number"))
    return (Made("where", desc.element, operands, desc.element),)


def _where_backward(desc: Any, given: _Given) -> tuple[Made, ...]:
    return _gradients(desc, "where", ("dy", "condition"))


def _clamp(desc: Any, given: _Given) -> tuple[Made, ...]:
    e = desc.element
    if e.is_float:
        low, high = float("-inf"), float("inf")
    else:  # of the type that is computed in
        low, high = (0, 2**64 - 1) if e.name.startswith("U") else (-(2**63), 2**63 - 1)
    bounds = (given.named.get("min", low), given.named.get("max", high))
    back = "_backward" if desc.direction == "backward" else ""
    return (Made("clamp" + back, e, (*given.tensors, *bounds), e),)


def _three(desc: Any, given: _Given) -> tuple[str | Number, ...]:
    from baracuda.ops.ternary.ternary_kinds import KINDS

    more = given(*(n for n, _ in KINDS[desc.kind].numbers))
    return ("a", given.either("b", "b_number"), given.either("c", "c_number"), *more)


def _ternary(desc: Any, given: _Given) -> tuple[Made, ...]:
    return (Made(desc.kind, desc.element, _three(desc, given), desc.element),)


def _ternary_backward(desc: Any, given: _Given) -> tuple[Made, ...]:
    return _gradients(desc, desc.kind, ("dy", *_three(desc, given)))


def _cast(desc: Any, given: _Given) -> tuple[Made, ...]:
    source, to = desc.input_element, desc.output_element
    for e in (source, to):
        if e in (Element.F8E4M3, Element.F8E5M2):
            raise NotFused(f"cast of {e} is a kernel of its own")
    return (Made(None if source is to else "cast", to, ("x",), to),)


def _copy(desc: Any, given: _Given) -> tuple[Made, ...]:
    return (Made(None, desc.element, ("x",), desc.element),)


def _fill(desc: Any, given: _Given) -> tuple[Made, ...]:
    return (Made(None, desc.element, given("value"), desc.element),)


_RULES = {
    "UnaryDescriptor": _unary,
    "UnaryBackwardDescriptor": _unary_backward,
    "GeluDescriptor": _gelu,
    "GeluBackwardDescriptor": _gelu,
    "BinaryDescriptor": _binary,
    "BinaryBackwardDescriptor": _binary_backward,
    "WhereDescriptor": _where,
    "WhereBackwardDescriptor": _where_backward,
    "ClampDescriptor": _clamp,
    "ClampBackwardDescriptor": _clamp,
    "TernaryDescriptor": _ternary,
    "TernaryBackwardDescriptor": _ternary_backward,
    "CastDescriptor": _cast,
    "CopyDescriptor": _copy,
    "FillDescriptor": _fill,
}
