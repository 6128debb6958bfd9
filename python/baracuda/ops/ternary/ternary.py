"""Functions of three operands: where, clamp and sums of products. Kernels in csrc/ops/ternary, reference in ternary_ref.py."""

from __future__ import annotations

from typing import Any

from baracuda.call.compose import of_elements
from baracuda.call.op import Arg, Call, Function, Op, Recipe, function
from baracuda.describe.dims import Shape
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.order import ELEMENTWISE, MIXED, Order
from baracuda.describe.promotion import broadcast, result_element
from baracuda.describe.spec import (
    Descriptor,
    Kinded,
    Param,
    ScalarParam,
    Signature,
    descriptor,
    frame,
    output,
    scalar,
    tensor,
)
from baracuda.ops.binary.binary import wraps
from baracuda.ops.ternary.ternary_kinds import KINDS


def _number_kind(element: Element) -> str:
    return "float" if element.is_float else "unsigned" if element is Element.U64 else "int"


@frame
class _Where(Descriptor):
    """Fields and checks that forward and backward share."""

    __slots__ = ()
    condition_shape: Shape
    a_shape: Shape | None
    b_shape: Shape | None
    element: Element = Element.F32

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

    a_element: Element | None = None
    b_element: Element | None = None

    def order(self) -> Order:
        return MIXED if self.a_shape is None or self.b_shape is None else ELEMENTWISE

    def signature(self) -> Signature:
        tensors, numbers = [], []
        for name, shape, element in (("a", self.a_shape, self.a_element), ("b", self.b_shape, self.b_element)):
            given = self.element if element is None else element
            tensors.append(tensor(name, shape or (), given, present=shape is not None, reads=given is not self.element))
            kind = _number_kind(self.element)
            numbers.append(scalar(f"{name}_number", kind, fits=self.element, present=shape is None))
        condition = tensor("condition", self.condition_shape, Element.BOOL, reads=self.element is not Element.BOOL)
        return Signature(condition, *tensors, output("y", self.full_shape(), self.element), *numbers)


@descriptor(gradient_of=WhereDescriptor, result_order=ELEMENTWISE)
class WhereBackwardDescriptor(_Where):
    """da = dy where condition holds, else 0; db the other way round; both in the broadcast shape.

    Args:
        condition_shape: Shape of condition, which is bool.
        a_shape: Shape of a; None if it is a number, which has no gradient.
        b_shape: Shape of b; None if it is a number.
        element: Of dy, da and db: f16, bf16, f32 or f64.
    """

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


@frame
class _Clamp(Descriptor):
    """Fields and checks that forward and backward share."""

    __slots__ = ()
    shape: Shape
    element: Element = Element.F32
    has_min: bool = True
    has_max: bool = True

    def validate(self) -> None:
        if not (self.has_min or self.has_max):
            raise self.wrong("has_max", False, "at least one bound")

    def bounds(self) -> list[ScalarParam]:
        """The bounds, of which those that are not there are absent."""
        kind = _number_kind(self.element)
        given = (("min", self.has_min), ("max", self.has_max))
        return [scalar(n, kind, fits=self.element, present=there) for n, there in given]


@descriptor(family="ternary", op="clamp", result_order=ELEMENTWISE)
class ClampDescriptor(_Clamp):
    """y = min(max(x, min), max), the bounds being numbers given to run. NaN is kept; max wins over min.

    Args:
        shape: Shape of x and y, rank 0-8.
        element: Of y: any integer, f16, bf16, f32 or f64.
        has_min: Whether there is a lower bound.
        has_max: Whether there is an upper bound.
        input_element: Element of x where it differs; converted while being read.
    """

    input_element: Element | None = None

    def signature(self) -> Signature:
        given = self.element if self.input_element is None else self.input_element
        x = tensor("x", self.shape, given, reads=given is not self.element)
        return Signature(x, output("y", self.shape, self.element), *self.bounds())


@descriptor(gradient_of=ClampDescriptor, result_order=ELEMENTWISE)
class ClampBackwardDescriptor(_Clamp):
    """dx = dy where x lies within the bounds (a tie with a bound counts as within), else 0.

    Args:
        shape: Shape of all tensors.
        element: f16, bf16, f32 or f64.
        has_min: Whether there is a lower bound.
        has_max: Whether there is an upper bound.
    """

    def signature(self) -> Signature:
        s, e = self.shape, self.element
        return Signature(tensor("dy", s, e), tensor("x", s, e), output("dx", s, e), *self.bounds())


@frame
class _Three(Kinded):
    """Fields and checks that forward and backward share."""

    __slots__ = ()
    a_shape: Shape
    b_shape: Shape | None
    c_shape: Shape | None
    element: Element = Element.F32
    a_element: Element | None = None
    b_element: Element | None = None
    c_element: Element | None = None

    def validate(self) -> None:
        self.full_shape()

    def full_shape(self) -> Shape:
        """The shape that all operands broadcast to."""
        name = type(self).__name__
        return broadcast(broadcast(self.a_shape, self.b_shape or (), name), self.c_shape or (), name)

    def operands(self) -> tuple[list[Param], list[ScalarParam]]:
        """The operands as tensors, and the numbers that stand for some of them, with those that the function takes besides."""
        tensors, numbers = [], []
        bounds, how = KINDS[self.kind].bounds, _number_kind(self.element)
        for name, shape, element, end in zip(
            "abc",
            (self.a_shape, self.b_shape, self.c_shape),
            (self.a_element, self.b_element, self.c_element),
            (None, *_ends(self.element)),
            strict=True,
        ):
            given = self.element if element is None else element
            tensors.append(tensor(name, shape or (), given, present=shape is not None, reads=given is not self.element))
            if name != "a":
                default = end if bounds else None
                numbers.append(scalar(f"{name}_number", how, default, fits=self.element, present=shape is None))
        return tensors, [*numbers, *(scalar(n, how, fits=self.element) for n, _ in KINDS[self.kind].numbers)]


def _ends(element: Element) -> tuple[float | int, float | int]:
    """Bounds that nothing lies beyond; of elements that no kernel takes, some."""
    if element.is_float:
        return float("-inf"), float("inf")
    return element.limits if element.is_integer else (0, 1)


@descriptor(family="ternary", kinds=KINDS, result_order=ELEMENTWISE)
class TernaryDescriptor(_Three):
    """y = f(a, b, c), element by element, with broadcasting.

    Args:
        kind: Which function; each is an op of its own name.
        a_shape: Shape of a, rank 0-8.
        b_shape: Shape of b; None if it is the number `b_number` given to run, which is no bound by default.
        c_shape: Shape of c; None if it is the number `c_number` given to run.
        element: In which is computed, and y's: f16, bf16, f32, f64, for addcmul any integer,
            for clamp_tensors bool too.
        a_element: Element of a where it differs; converted while being read.
        b_element: Element of b where it differs.
        c_element: Element of c where it differs.
    """

    def signature(self) -> Signature:
        tensors, numbers = self.operands()
        return Signature(*tensors, output("y", self.full_shape(), self.element), *numbers)


@descriptor(gradient_of=TernaryDescriptor, result_order=ELEMENTWISE)
class TernaryBackwardDescriptor(_Three):
    """da, db and dc, all in the shape that the operands broadcast to; sum them to the operands' own shapes.

    Args:
        kind: Which function.
        a_shape: Shape of a.
        b_shape: Shape of b; None if it is a number, which has no gradient.
        c_shape: Shape of c; None if it is a number.
        element: Of dy and the gradients: f16, bf16, f32 or f64.
        a_element: Element of a where it differs.
        b_element: Element of b where it differs.
        c_element: Element of c where it differs.
    """

    def signature(self) -> Signature:
        full, e = self.full_shape(), self.element
        tensors, numbers = self.operands()
        results = (output("d" + p.name, full, e, present=p.present) for p in tensors)
        return Signature(tensor("dy", full, e), *tensors, *results, *numbers)


OPS = (
    *(Op(k, TernaryDescriptor, TernaryBackwardDescriptor, entry.text) for k, entry in KINDS.items()),
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
    from baracuda.ops.binary.binary import _is_tensor, _sum_to

    def pull(dy: Any) -> Any:
        found = where_backward(dy, condition, input, other)
        tensors = [x for x in (input, other) if _is_tensor(x)]
        made = tuple(
            _sum_to(g, x) for g, x in zip(found if isinstance(found, tuple) else (found,), tensors, strict=True)
        )
        return made[0] if len(made) == 1 else made

    return where(condition, input, other), pull


def _three(kind: str, args: tuple[Arg | None, ...], element: Element) -> tuple[dict[str, Any], dict[str, Any]]:
    """Fields of a descriptor, and what to run it with."""
    fields: dict[str, Any] = {"kind": kind, "element": element}
    given: dict[str, Any] = {}
    for name, arg in zip("abc", args, strict=True):
        there = arg is not None and arg.is_tensor
        fields[name + "_shape"] = arg.shape if arg is not None and there else None
        fields[name + "_element"] = arg.element if arg is not None and there and arg.element is not element else None
        if arg is not None:
            given[name if there else name + "_number"] = arg
    return fields, given


def _plan_three(call: Call, kind: str, args: tuple[Arg | None, ...], **numbers: Any) -> Recipe:
    element = result_element(x for x in args if x is not None)
    fields, given = _three(kind, args, element)
    wrapped = [n for n, x in given.items() if n in "abc" and KINDS[kind].bounds and wraps(x, element)]
    if not wrapped:
        return call(TernaryDescriptor(**fields), **given, **numbers)
    fields |= {f"{n}_element": None for n in wrapped}
    return of_elements(call, TernaryDescriptor(**fields), **given, **numbers)


def _plan_three_back(call: Call, kind: str, dy: Arg, args: tuple[Arg | None, ...], **numbers: Any) -> Recipe:
    fields, given = _three(kind, args, dy.element)
    return call(TernaryBackwardDescriptor(**fields), dy=dy, **given, **numbers)


def _pull_three(backward: Function, tensors: tuple[Any, ...], **numbers: Any) -> Any:
    """Gradients of the operands that are tensors, None of one that is not there."""
    from baracuda.ops.binary.binary import _is_tensor, _sum_to, wide_for_sums

    def pull(dy: Any) -> Any:
        found = backward(*wide_for_sums(dy, *tensors), **numbers)
        there = [x for x in tensors if x is not None and _is_tensor(x)]
        made = tuple(_sum_to(g, x) for g, x in zip(found if isinstance(found, tuple) else (found,), there, strict=True))
        return made[0] if len(made) == 1 else made

    return pull


@function(tensors="input tensor1 tensor2", scalars="value")
def addcmul(call: Call, input: Arg, tensor1: Arg, tensor2: Arg, *, value: Any = 1, out: Arg | None = None) -> Recipe:
    """`input + value * tensor1 * tensor2`, as torch.addcmul, with broadcasting and type promotion."""
    return _plan_three(call, "addcmul", (input, tensor1, tensor2), value=value)


@function(tensors="dy input tensor1 tensor2", scalars="value")
def addcmul_backward(call: Call, dy: Arg, input: Arg, tensor1: Arg, tensor2: Arg, *, value: Any = 1) -> Recipe:
    """Gradients of addcmul with respect to its tensors, in the broadcast shape."""
    return _plan_three_back(call, "addcmul", dy, (input, tensor1, tensor2), value=value)


@addcmul.vjp
def _addcmul_vjp(input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> tuple[Any, Any]:
    tensors = (input, tensor1, tensor2)
    return addcmul(*tensors, value=value), _pull_three(addcmul_backward, tensors, value=value)


@function(tensors="input tensor1 tensor2", scalars="value")
def addcdiv(call: Call, input: Arg, tensor1: Arg, tensor2: Arg, *, value: Any = 1, out: Arg | None = None) -> Recipe:
    """`input + value * tensor1 / tensor2`, as torch.addcdiv: of floats only, as there."""
    return _plan_three(call, "addcdiv", (input, tensor1, tensor2), value=value)


@function(tensors="dy input tensor1 tensor2", scalars="value")
def addcdiv_backward(call: Call, dy: Arg, input: Arg, tensor1: Arg, tensor2: Arg, *, value: Any = 1) -> Recipe:
    """Gradients of addcdiv with respect to its tensors, in the broadcast shape."""
    return _plan_three_back(call, "addcdiv", dy, (input, tensor1, tensor2), value=value)


@addcdiv.vjp
def _addcdiv_vjp(input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> tuple[Any, Any]:
    tensors = (input, tensor1, tensor2)
    return addcdiv(*tensors, value=value), _pull_three(addcdiv_backward, tensors, value=value)


@function(tensors="input end weight")
def lerp(call: Call, input: Arg, end: Arg, weight: Arg, *, out: Arg | None = None) -> Recipe:
    """`input + weight * (end - input)`, as torch.lerp; `weight` is a number or a tensor, all of one element."""
    tensors = [x for x in (input, end, weight) if x.is_tensor]
    if any(x.element is not input.element for x in tensors):
        raise InvalidProblemError(
            f"lerp: got {', '.join(str(x.element) for x in tensors)}, want one element. Cast them to one first."
        )
    if not input.element.is_float:
        raise InvalidProblemError(f"lerp: got {input.element}, want a float element. Cast the tensors first.")
    return _plan_three(call, "lerp", (input, end, weight))


@function(tensors="dy input end weight")
def lerp_backward(call: Call, dy: Arg, input: Arg, end: Arg, weight: Arg) -> Recipe:
    """Gradients of lerp with respect to its tensors, in the broadcast shape."""
    return _plan_three_back(call, "lerp", dy, (input, end, weight))


@lerp.vjp
def _lerp_vjp(input: Any, end: Any, weight: Any) -> tuple[Any, Any]:
    return lerp(input, end, weight), _pull_three(lerp_backward, (input, end, weight))


def _are_tensors(min: Arg | None, max: Arg | None) -> bool:
    """Whether clamp's bounds are tensors; torch does not take one of each kind."""
    kinds = {x.is_tensor for x in (min, max) if x is not None}
    if len(kinds) == 2:
        raise InvalidProblemError("clamp: got a tensor and a number as bounds, want two tensors or two numbers.")
    return kinds == {True}


@function(tensors="input min max")
def clamp(call: Call, input: Arg, min: Arg | None = None, max: Arg | None = None, *, out: Arg | None = None) -> Recipe:
    """`input` held between two bounds, as torch.clamp; they are numbers or tensors that broadcast, either may be None."""
    if _are_tensors(min, max):
        return _plan_three(call, "clamp_tensors", (input, min, max))
    if min is None and max is None:
        raise InvalidProblemError("clamp: min, max: got None for both, want a bound. Pass one or both.")
    given: dict[str, Any] = {n: v for n, v in (("min", min), ("max", max)) if v is not None}
    element = result_element((input, *given.values()))
    before = input.element if input.element is not element else None
    return call(ClampDescriptor(input.shape, element, min is not None, max is not None, before), x=input, **given)


@function(tensors="dy input min max")
def clamp_backward(call: Call, dy: Arg, input: Arg, min: Arg | None = None, max: Arg | None = None) -> Recipe:
    """Gradient of clamp; of the bounds, too, where they are tensors."""
    if _are_tensors(min, max):
        return _plan_three_back(call, "clamp_tensors", dy, (input, min, max))
    given: dict[str, Any] = {n: v for n, v in (("min", min), ("max", max)) if v is not None}
    return call(
        ClampBackwardDescriptor(input.shape, input.element, min is not None, max is not None), dy=dy, x=input, **given
    )


@clamp.vjp
def _clamp_vjp(input: Any, min: Any = None, max: Any = None) -> tuple[Any, Any]:
    return clamp(input, min, max), _pull_three(clamp_backward, (input, min, max))


clip = clamp
