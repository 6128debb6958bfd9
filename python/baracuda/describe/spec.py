"""What an op is, declared once: descriptor fields, signature, attributes; everything else follows from it."""

from __future__ import annotations

import inspect
import math
import struct
from dataclasses import MISSING, dataclass, fields
from enum import Enum
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, dataclass_transform

import numpy as np

from baracuda import _core
from baracuda.choose.sku import rows
from baracuda.describe.calls import Signed
from baracuda.describe.dims import Dim, Shape, check_axis, check_shape, is_plain, shape_text
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError, is_text, shown, whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from baracuda.choose.plan import Plan
    from baracuda.describe.order import Order

ROLES: tuple[str, ...] = _core.roles
IN = ROLES.index("in")
INOUT = ROLES.index("in-out")
OUT = ROLES.index("out")
MAX_SYMBOLS = 8  # names of sizes that one signature may have


@dataclass(frozen=True, slots=True)
class Param:
    """A tensor argument of `run`.

    Attributes:
        name: Keyword of `run`.
        shape: Its planned shape; for a variadic argument a tuple of shapes, one per tensor in the list.
        element: Its element.
        role: IN, INOUT or OUT, by number.
        present: False for an optional tensor that this descriptor does not have.
        reads: The element is converted while being read, so the row must list it as convertible.
        variadic: The argument is a list of tensors.
    """

    name: str
    shape: Any
    element: Element
    role: int = IN
    present: bool = True
    reads: bool = False
    variadic: bool = False

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """The shapes of its tensors: one, or one per entry of a list."""
        return tuple(self.shape) if self.variadic else (self.shape,)


@dataclass(frozen=True, slots=True)
class ScalarParam:
    """A number argument of `run`: a Python number, or a 0-d tensor read when the kernel runs.

    A Python number below `least` is refused; a tensor's is not looked at. A number that the integer element `fits` does
    not hold is refused, a tensor's too where it lies in the host's memory. One that is not `present` is no argument of this
    descriptor's `run`.
    """

    name: str
    kind: str = "float"
    default: float | int | None = None
    least: float | int | None = None
    fits: Element | None = None
    present: bool = True


def tensor(name: str, shape: Shape, element: Element, *, present: bool = True, reads: bool = False) -> Param:
    """An input."""
    return Param(name, shape, element, IN, present, reads)


def inout(name: str, shape: Shape, element: Element, *, present: bool = True) -> Param:
    """A tensor that is read and overwritten."""
    return Param(name, shape, element, INOUT, present)


def output(name: str, shape: Shape, element: Element, *, present: bool = True) -> Param:
    """An output, allocated by the caller."""
    return Param(name, shape, element, OUT, present)


def tensors(name: str, shapes: Iterable[Shape], element: Element, role: int = IN, *, present: bool = True) -> Param:
    """A list of tensors."""
    return Param(name, tuple(shapes), element, role, present, variadic=True)


def scalar(
    name: str,
    kind: str = "float",
    default: float | int | None = None,
    least: float | int | None = None,
    fits: Element | None = None,
    *,
    present: bool = True,
) -> ScalarParam:
    """A number given to `run`; `kind` is one of `_core.scalar_kinds`."""
    return ScalarParam(name, kind, default, least, fits if fits is not None and fits.is_integer else None, present)


class Signature:
    """The arguments of `run`, in order: tensors, then scalars.

    Attributes:
        params: All tensor arguments.
        present: Those that this descriptor has.
        scalars: Numbers.
    """

    __slots__ = ("params", "present", "scalars")

    def __init__(self, *args: Param | ScalarParam) -> None:
        self.params = tuple([a for a in args if isinstance(a, Param)])
        self.scalars = tuple([a for a in args if isinstance(a, ScalarParam)])
        self.present = tuple([p for p in self.params if p.present])

    @property
    def numbers(self) -> tuple[ScalarParam, ...]:
        """The scalar arguments that this descriptor has."""
        return tuple([s for s in self.scalars if s.present])

    @property
    def inputs(self) -> tuple[Param, ...]:
        """Tensors that are read only."""
        return tuple([p for p in self.present if p.role == IN])

    @property
    def outputs(self) -> tuple[Param, ...]:
        """Tensors that are written: what `run` returns."""
        return tuple([p for p in self.present if p.role != IN])

    def __getitem__(self, name: str) -> Param:
        for p in self.params:
            if p.name == name:
                return p
        raise KeyError(name)

    def __str__(self) -> str:
        parts = []
        for p in self.present:
            shape = ", ".join(f"({', '.join(map(str, s))})" for s in p.shapes)
            parts.append(f"{p.name}: {p.element}[{shape}] {ROLES[p.role]}")
        for s in self.numbers:
            parts.append(f"{s.name}: {s.kind}" + (f" = {s.default}" if s.default is not None else ""))
        return "(" + "; ".join(parts) + ")"


D = TypeVar("D", bound="Descriptor")


def _made_once(signature: Callable[[Any], Signature]) -> Callable[[Any], Signature]:
    """A descriptor's `signature`, which a whole one keeps: selection asks for it again and again."""

    @wraps(signature)
    def kept(self: Any) -> Signature:
        found = getattr(self, "_signature", _UNFINISHED)
        if isinstance(found, Signature):
            return found
        made = signature(self)
        if found is None:
            object.__setattr__(self, "_signature", made)
        return made

    return kept


_UNFINISHED = object()  # fields may still be changed, by a descriptor's own checks


class Descriptor(metaclass=Signed):
    """A problem, apart from any kernel: frozen, hashable, comparable.

    Subclasses are made with `@descriptor(...)`. They declare their fields, `signature()`, and what of it travels to the
    kernel as attributes. What several share is in a class marked with `@frame`, whose fields are theirs, too.
    """

    __slots__ = ("_signature",)
    family: ClassVar[str]
    direction: ClassVar[str] = "forward"
    kinds: ClassVar[tuple[str, ...]] = ()
    op_name: ClassVar[str] = ""
    enums: ClassVar[Mapping[str, type[Enum]]] = {}
    unbounded: ClassVar[frozenset[str]] = frozenset()  # float fields that may be infinite or NaN
    result_order: ClassVar[Order | None] = None  # of the results' elements; None: C order
    axis_of: ClassVar[str] = ""  # the shape whose axis the field `axis` is: it is checked, and counted from the start
    gradient_class: ClassVar[type[Descriptor] | None] = None  # the descriptor that is declared as this one's gradient
    plan_class: ClassVar[type[Plan]]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        own = cls.__dict__.get("signature")
        if own is not None and not hasattr(own, "__wrapped__"):
            cls.signature = _made_once(own)  # type: ignore[assignment,method-assign]

    def __post_init__(self) -> None:
        for name, kind, optional, settled in self._coercions():
            value = getattr(self, name)
            if type(value) is settled or (optional and value is None):
                continue
            fixed = self._coerce(name, kind, value)
            if fixed is not value:
                object.__setattr__(self, name, fixed)
        if self.axis_of:
            self._count_axis("axis", getattr(self, self.axis_of))
        self.validate()
        object.__setattr__(self, "_signature", None)
        self._check_signature()

    @classmethod
    @cache
    def _coercions(cls) -> tuple[tuple[str, str, bool, type | None], ...]:
        """Names of the fields, the words of their annotations, which may be None, and of which type nothing is wrong."""
        found = []
        for f in fields(cls):  # type: ignore[arg-type]
            kind = str(f.type).removesuffix(" | None")
            settled = {"Element": Element, "bool": bool}.get(kind, cls.enums.get(f.name))
            found.append((f.name, kind, kind != str(f.type), settled))
        return tuple(found)

    def _coerce(self, name: str, kind: str, value: Any) -> Any:
        """A field's value as what it is annotated as: a wrong one would reach the kernel as other bits."""
        if name == "kind":
            if not isinstance(value, str) or value not in self.kinds:
                raise self.wrong("kind", value, "one of " + ", ".join(self.kinds))
            return str(value)
        if kind == "Shape" and is_plain(value):
            return value
        where = f"{type(self).__name__}.{name}"
        if kind == "Shape":
            return check_shape(value, where)
        if kind == "Element":
            return Element.coerce(value, where)
        if kind == "str":
            if not is_text(value):
                raise self.wrong(name, value, "a text")
            return str(value)
        if kind == "tuple[Shape, ...]":
            if not isinstance(value, (tuple, list)):
                raise self.wrong(name, value, "a list of shapes")
            return tuple(check_shape(s, f"{where}[{i}]") for i, s in enumerate(value))
        if kind == "tuple[Element, ...]":
            if isinstance(value, str) or not hasattr(value, "__iter__"):
                raise self.wrong(name, value, "a list of elements")
            return tuple(Element.coerce(v, f"{where}[{i}]") for i, v in enumerate(value))
        if kind == "tuple[int, ...]":
            if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
                raise self.wrong(name, value, "a list of ints")
            return tuple(self._coerce_number(name, "int", v) for v in value)
        if name in self.enums:
            wanted = self.enums[name]
            try:
                return value if isinstance(value, wanted) else wanted(value)
            except (ValueError, TypeError):
                raise self.wrong(name, value, "one of " + ", ".join(str(m.value) for m in wanted)) from None
        return self._coerce_number(name, kind, value)

    def _coerce_number(self, name: str, kind: str, value: Any) -> Any:
        if kind == "bool":
            if not isinstance(value, (bool, np.bool_)):
                raise self.wrong(name, value, "True or False")
            return bool(value)
        if kind == "int" or (kind == "Size" and not isinstance(value, Dim)):
            if (found := whole(value)) is None or not -(2**63) <= found < 2**63:
                raise self.wrong(name, value, "an int" if found is None else "-2**63 <= n < 2**63")
            return found
        if kind == "float":
            if isinstance(value, (bool, np.bool_, str, complex, np.complexfloating)) or not hasattr(value, "__float__"):
                raise self.wrong(name, value, "a real number")
            try:
                number = float(value)
            except (OverflowError, TypeError, ValueError):
                raise self.wrong(name, value, "a number that a double holds") from None
            if not math.isfinite(number) and name not in self.unbounded:
                raise self.wrong(name, value, "a finite number")
            return number
        return value

    def _check_signature(self) -> None:
        """Also shapes that follow from the fields, such as a product's, and names of sizes must be sound."""
        where = type(self).__name__
        limits: dict[Any, Any] = {}
        for p in self.signature().present:
            for shape in p.shapes:
                if is_plain(shape):
                    continue
                check_shape(shape, f"{where}: shape of {p.name}")
                for size in (s for s in shape if isinstance(s, Dim)):
                    if limits.setdefault(size.name, size.max) != size.max:
                        raise InvalidProblemError(
                            f"{where}: got Dim({size.name!r}) with max={limits[size.name]} and max={size.max}, want one maximum per name."
                        )
        if len(limits) > MAX_SYMBOLS:
            raise InvalidProblemError(f"{where}: got {len(limits)} names of sizes, want at most {MAX_SYMBOLS}.")

    def _count_axis(self, name: str, shape: Shape) -> None:
        """Checks an axis of a shape, and makes the field count from the start."""
        object.__setattr__(self, name, check_axis(getattr(self, name), len(shape), f"{type(self).__name__}.{name}"))

    def validate(self) -> None:
        """Checks fields against each other; raises InvalidProblemError through `wrong`."""

    def wrong(self, field: str, got: object, want: str) -> InvalidProblemError:
        """The error for a bad field, to be raised by the caller."""
        from baracuda.describe.errors import Refusal

        name = type(self).__name__
        is_shape = isinstance(got, tuple) and any(isinstance(size, (int, Dim)) for size in got)
        text = shape_text(got) if is_shape else shown(got)  # type: ignore[arg-type]
        return InvalidProblemError(f"{name}.{field}: got {text}, want {want}.", [Refusal("problem", field, text, want)])

    def __repr__(self) -> str:
        """The call that makes an equal descriptor."""
        given = (f"{f.name}={_argument(getattr(self, f.name))}" for f in fields(self))  # type: ignore[arg-type]
        return f"{type(self).__name__}({', '.join(given)})"

    @property
    def op(self) -> str:
        """The op's name: the same for the plan, the functional function and capabilities()."""
        return self.op_name or str(self.kind)  # type: ignore[attr-defined]

    def signature(self) -> Signature:
        """The arguments of `run` for this problem."""
        raise NotImplementedError

    def attributes(self) -> dict[str, Any]:
        """The attributes that the family's BCU_ATTRS declares: here those that are fields."""
        kinds = {"f64": float, "text": str}
        return {
            name: kinds.get(kind, int)(getattr(self, name))
            for kind, name in _declared_attributes(self.op, self.direction)
        }

    def order(self) -> Order | None:
        """What decides the order of the results' elements; None for C order."""
        return self.result_order

    def ordered_by(self, given: Mapping[str, Any]) -> list[Any]:
        """Those of a plan's arguments that decide the order of its results."""
        order = self.order()
        if order is None:
            return []
        names = order.of or [p.name for p in self.signature().inputs]
        return [given[name] for name in names if given.get(name) is not None]

    def primary_element(self) -> Element:
        """The element that rows are chosen by."""
        return self.element  # type: ignore[attr-defined,no-any-return]

    def aux_element(self) -> Element | None:
        """The second element that rows are chosen by, where the op has one: that of indices, if they are all it has."""
        return getattr(self, "index_element", None)

    def backward(self) -> Descriptor:
        """The gradient's descriptor: with the fields that both have."""
        made = self.gradient_class
        if made is None:
            raise InvalidProblemError(f"{type(self).__name__}.backward: {self.op} has no gradient of its own.")
        return made(**{f.name: getattr(self, f.name) for f in fields(made) if hasattr(self, f.name)})  # type: ignore[arg-type]

    def output_shape(self) -> Shape:
        """The first output's shape."""
        return self.signature().outputs[0].shape  # type: ignore[no-any-return]

    def packed_attributes(self) -> list[int | str]:
        """Attributes as 8-byte slots, and texts as they are."""
        out: list[int | str] = []
        for value in self.attributes().values():
            if isinstance(value, float):
                value = struct.unpack("<q", struct.pack("<d", value))[0]
            out.append(value if isinstance(value, str) else int(value))
        return out

    def to_dict(self) -> dict[str, Any]:
        """Fields as JSON-ready values."""
        return {f.name: _to_json(getattr(self, f.name)) for f in fields(self)}  # type: ignore[arg-type]

    @classmethod
    def from_dict(cls: type[D], values: Mapping[str, Any]) -> D:
        """The inverse of `to_dict`.

        Raises:
            InvalidProblemError: For fields that are unknown, missing, or of values that nothing wrote.
        """
        from baracuda.describe.document import read_fields

        given = read_fields(cls.__name__, values, cls)
        for f in fields(cls):  # type: ignore[arg-type]
            if f.name not in given and f.default is MISSING:
                raise InvalidProblemError(f"{cls.__name__}.{f.name}: got nothing, want a value.")
        for name in cls.unbounded & given.keys():
            if given[name] in ("inf", "-inf", "nan"):
                given[name] = float(given[name])
        return cls(**{k: _from_json(v, f"{cls.__name__}.{k}") for k, v in given.items()})


def _argument(value: Any) -> str:
    """A field as one would write it in a call."""
    if isinstance(value, Element):
        return repr(str(value))
    return repr(value.value if isinstance(value, Enum) else value)


def _to_json(value: Any) -> Any:
    if isinstance(value, Element):
        return str(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Dim):
        return {"dim": [value.name, value.max, value.mul, value.div, value.add]}
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has no infinities
    if isinstance(value, tuple):
        return [_to_json(v) for v in value]
    return value


def _from_json(value: Any, field: str, depth: int = 0) -> Any:
    if isinstance(value, dict):
        parts = value.get("dim")
        if len(value) != 1 or not isinstance(parts, list) or len(parts) != 5:
            raise InvalidProblemError(f"{field}: got {shown(value)}, want a size as to_dict() writes it.")
        return Dim(*parts)
    if isinstance(value, list):
        if depth > 3:  # lists of shapes are the deepest that there is
            raise InvalidProblemError(f"{field}: got lists in lists, want fewer of them.")
        return tuple(_from_json(v, field, depth + 1) for v in value)
    return value


@dataclass_transform(frozen_default=True)
def frame(cls: type[D]) -> type[D]:
    """Marks a class that descriptors share: they have its fields, with their defaults, in front of their own."""
    cls.frame_fields = tuple(cls.__annotations__)  # type: ignore[attr-defined]
    return cls


@frame
class Kinded(Descriptor):
    """What descriptors of several ops have first: the field `kind` says which."""

    __slots__ = ()
    kind: str


def _take_fields(cls: type[Descriptor]) -> None:
    """Makes the fields of a class's frames its own: slots are laid out once, where nothing inherits from them."""
    own: dict[str, Any] = inspect.get_annotations(cls)
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__[1:]):
        for name in base.__dict__.get("frame_fields", ()):
            found[name] = base.__annotations__[name]
    cls.__annotations__ = found | own


@dataclass_transform(frozen_default=True)
def descriptor(
    *,
    family: str = "",
    direction: str = "",
    op: str = "",
    kinds: Iterable[str] = (),
    enums: Mapping[str, type[Enum]] | None = None,
    gradient_of: type[Descriptor] | None = None,
    result_order: Order | None = None,
) -> Callable[[type[D]], type[D]]:
    """Makes a class a descriptor and gives it its Plan class, named alike.

    Args:
        family: The folder in csrc/ops.
        direction: "forward" (the default) or "backward".
        op: The op's name, when there is only one; else the descriptor has a field `kind`.
        kinds: Values of the field `kind`.
        enums: Fields that are enums and accept their strings.
        gradient_of: The forward descriptor, whose `backward()` then gives this one. The direction is "backward"; family,
            op, kinds and enums are the forward's unless they are given.
        result_order: What decides in which order the results' elements lie.
    """

    def make(cls: type[D]) -> type[D]:
        from baracuda.choose.plan import Plan

        _take_fields(cls)
        made = dataclass(frozen=True, slots=True, repr=False)(cls)
        made.family, made.direction, made.op_name = family, direction or "forward", op
        made.kinds, made.enums, made.gradient_class = tuple(kinds), enums or {}, None
        if result_order is not None:
            made.result_order = result_order
        if gradient_of is not None:
            made.family, made.direction = family or gradient_of.family, "backward"
            made.op_name = op or gradient_of.op_name
            made.kinds, made.enums = made.kinds or gradient_of.kinds, made.enums or gradient_of.enums
            gradient_of.gradient_class = made
        name = cls.__name__.removesuffix("Descriptor") + "Plan"
        doc = f"A kernel selected for a {cls.__name__}."
        body = {"__slots__": (), "__module__": cls.__module__, "__doc__": doc, "descriptor_class": made}
        made.plan_class = type(name, (Plan,), body)
        return made

    return make


@cache
def _declared_attributes(op: str, direction: str) -> tuple[tuple[str, str], ...]:
    """Types and names of an op's attributes, from the SKU table."""
    return next((tuple(r["attributes"]) for r in rows() if (r["op"], r["direction"]) == (op, direction)), ())
