"""Functions of three operands: where and clamp. Kernels in csrc/ops/ternary, reference in ternary_ref.py."""

from __future__ import annotations

from typing import Any

from baracuda.dims import Shape
from baracuda.elements import Element
from baracuda.errors import InvalidProblemError
from baracuda.op import Arg, Call, Op, Recipe, function
from baracuda.promotion import broadcast, result_element
from baracuda.spec import Descriptor, ScalarParam, Signature, descriptor, output, scalar, tensor


def _number_kind(element: Element) -> str:
    return "float" if element.is_float else "unsigned" if element is Element.U64 else "int"


class _Where(Descriptor):
    """Fields and checks that forward and backward share."""

    __slots__ = ()
    condition_shape: Shape
    a_shape: Shape | None
    b_shape: Shape | None

    def validate(self) -> None:
        self.full_shape()

    def full_shape(self) -> Shape:
        """The shape that all operands broadcast to."""
        name = type(self).__name__
        return broadcast(broadcast(self.condition_shape, self.a_shape or (), name), self.b_shape or (), name)


@descriptor(family="ternary", op="where")
class WhereDescriptor(_Where):
    """y = a where condition holds, b elsewhere, with broadcasting.

    Args:
        condition_shape: Shape of condition, which is bool.
        a_shape: Shape of a; None if it is the number `a_number` given to run.
        b_shape: Shape of b; None if it is the number `b_number` given to run.
        element: Element of y: any real one.
        a_element: Element of a where it differs; converted while being read.
        b_element: Element of b where it differs.
    """

    condition_shape: Shape
    a_shape: Shape | None
    b_shape: Shape | None
    element: Element = Element.F32
    a_element: Element | None = None
    b_element: Element | None = None

    def signature(self) -> Signature:
        tensors, numbers = [], []
        for name, shape, element in (("a", self.a_shape, self.a_element), ("b", self.b_shape, self.b_element)):
            given = self.element if element is None else element
            tensors.append(tensor(name, shape or (), given, present=shape is not None, reads=given is not self.element))
            if shape is None:
                numbers.append(scalar(f"{name}_number", _number_kind(self.element)))
        condition = tensor("condition", self.condition_shape, Element.BOOL, reads=self.element is not Element.BOOL)
        return Signature(condition, *tensors, output("y", self.full_shape(), self.element), *numbers)

    def backward(self) -> WhereBackwardDescriptor:
        """The gradient's descriptor."""
        return WhereBackwardDescriptor(self.condition_shape, self.a_shape, self.b_shape, self.element)


@descriptor(family="ternary", direction="backward", op="where")
class WhereBackwardDescriptor(_Where):
    """da = dy where condition holds, else 0; db the other way round; both in the broadcast shape.

    Args:
        condition_shape: Shape of condition, which is bool.
        a_shape: Shape of a; None if it is a number, which has no gradient.
        b_shape: Shape of b; None if it is a number.
        element: Of dy, da and db: f16, bf16, f32 or f64.
    """

    condition_shape: Shape
    a_shape: Shape | None
    b_shape: Shape | None
    element: Element = Element.F32

    def validate(self) -> None:
        if self.a_shape is None and self.b_shape is None:
            raise self.wrong("b_shape", None, "a shape: numbers have no gradient")
        self.full_shape()

    def signature(self) -> Signature:
        full, e = self.full_shape(), self.element
        return Signature(
            tensor("dy", full, e),
            tensor("condition", self.condition_shape, Element.BOOL, reads=True),
            output("da", full, e, present=self.a_shape is not None),
            output("db", full, e, present=self.b_shape is not None),
        )


class _Clamp(Descriptor):
    """Fields and checks that forward and backward share."""

    __slots__ = ()
    shape: Shape
    element: Element
    has_min: bool
    has_max: bool

    def validate(self) -> None:
        if not (self.has_min or self.has_max):
            raise self.wrong("has_max", False, "at least one bound")

    def attributes(self) -> tuple[int, ...]:
        return (int(self.has_min), int(self.has_max))

    def bounds(self) -> list[ScalarParam]:
        """The bounds that there are."""
        kind = _number_kind(self.element)
        return [scalar(n, kind) for n, there in (("min", self.has_min), ("max", self.has_max)) if there]


@descriptor(family="ternary", op="clamp")
class ClampDescriptor(_Clamp):
    """y = min(max(x, min), max), the bounds being numbers given to run. NaN is kept; max wins over min.

    Args:
        shape: Shape of x and y, rank 0-8.
        element: Of y: any integer, f16, bf16, f32 or f64.
        has_min: Whether there is a lower bound.
        has_max: Whether there is an upper bound.
        input_element: Element of x where it differs; converted while being read.
    """

    shape: Shape
    element: Element = Element.F32
    has_min: bool = True
    has_max: bool = True
    input_element: Element | None = None

    def signature(self) -> Signature:
        given = self.element if self.input_element is None else self.input_element
        x = tensor("x", self.shape, given, reads=given is not self.element)
        return Signature(x, output("y", self.shape, self.element), *self.bounds())

    def backward(self) -> ClampBackwardDescriptor:
        """The gradient's descriptor."""
        return ClampBackwardDescriptor(self.shape, self.element, self.has_min, self.has_max)


@descriptor(family="ternary", direction="backward", op="clamp")
class ClampBackwardDescriptor(_Clamp):
    """dx = dy where x lies within the bounds (a tie with a bound counts as within), else 0.

    Args:
        shape: Shape of all tensors.
        element: f16, bf16, f32 or f64.
        has_min: Whether there is a lower bound.
        has_max: Whether there is an upper bound.
    """

    shape: Shape
    element: Element = Element.F32
    has_min: bool = True
    has_max: bool = True

    def signature(self) -> Signature:
        s, e = self.shape, self.element
        return Signature(tensor("dy", s, e), tensor("x", s, e), output("dx", s, e), *self.bounds())


OPS = (
    Op("where", WhereDescriptor, WhereBackwardDescriptor, "y = condition ? a : b"),
    Op("clamp", ClampDescriptor, ClampBackwardDescriptor, "y = min(max(x, min), max)"),
)


@function(tensors="condition input other")
def where(call: Call, condition: Arg, input: Arg, other: Arg, *, out: Arg | None = None) -> Recipe:
    """`input` where `condition` holds, else `other`, as torch.where, with broadcasting and type promotion."""
    if condition.element is not Element.BOOL:
        raise InvalidProblemError(
            f"where: condition: got {condition.element}, want bool. Compare it with something first."
        )
    element = result_element((input, other))
    shapes = [x.shape if x.is_tensor else None for x in (input, other)]
    elements = [x.element if x.is_tensor and x.element is not element else None for x in (input, other)]
    desc = WhereDescriptor(condition.shape, shapes[0], shapes[1], element, *elements)
    given: dict[str, Any] = {
        ("a" if input.is_tensor else "a_number"): input,
        ("b" if other.is_tensor else "b_number"): other,
    }
    return call(desc, condition=condition, **given)


@function(tensors="dy condition input other")
def where_backward(call: Call, dy: Arg, condition: Arg, input: Arg, other: Arg) -> Recipe:
    """Gradients of where with respect to the choices that are tensors, in the broadcast shape."""
    shapes = [x.shape if x.is_tensor else None for x in (input, other)]
    return call(WhereBackwardDescriptor(condition.shape, shapes[0], shapes[1], dy.element), dy=dy, condition=condition)


@where.vjp
def _where_vjp(condition: Any, input: Any, other: Any) -> tuple[Any, Any]:
    from baracuda.ops.binary import _is_tensor, _sum_to

    def pull(dy: Any) -> Any:
        found = where_backward(dy, condition, input, other)
        tensors = [x for x in (input, other) if _is_tensor(x)]
        made = tuple(
            _sum_to(g, x) for g, x in zip(found if isinstance(found, tuple) else (found,), tensors, strict=True)
        )
        return made[0] if len(made) == 1 else made

    return where(condition, input, other), pull


@function(tensors="input", scalars="min max")
def clamp(call: Call, input: Arg, min: Any = None, max: Any = None, *, out: Arg | None = None) -> Recipe:
    """`input` held between two numbers, as torch.clamp; either may be None."""
    given = {n: v for n, v in (("min", min), ("max", max)) if v is not None}
    element = result_element((input, *given.values()))
    before = input.element if input.element is not element else None
    return call(ClampDescriptor(input.shape, element, min is not None, max is not None, before), x=input, **given)


@function(tensors="dy input", scalars="min max")
def clamp_backward(call: Call, dy: Arg, input: Arg, min: Any = None, max: Any = None) -> Recipe:
    """Gradient of clamp."""
    given = {n: v for n, v in (("min", min), ("max", max)) if v is not None}
    return call(
        ClampBackwardDescriptor(input.shape, input.element, min is not None, max is not None), dy=dy, x=input, **given
    )


@clamp.vjp
def _clamp_vjp(input: Any, min: Any = None, max: Any = None) -> tuple[Any, Any]:
    return clamp(input, min, max), lambda dy: clamp_backward(dy, input, min, max)
