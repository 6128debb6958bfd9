"""Functions that take several plans. A rule sees views without data and asks for steps; calls of that shape repeat them.

    @composed(tensors="input")
    def roll(c: Composer, input: Value, shifts: Any, dims: Any = ()) -> Value: ...

The steps become one program, whose memory is planned; views cost nothing. It is made once per shape, strides, element,
device and options, and kept.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, TypeAlias, cast

from baracuda import _core
from baracuda.call.allocation import Allocation, allocation, of_numpy, orders
from baracuda.call.op import (
    ALLOCATED,
    FROM_ARGUMENT,
    FROM_MEMBER,
    OUT,
    REST,
    TENSOR,
    Arg,
    Call,
    Function,
    Miss,
    Recipe,
    Source,
    documentation,
    public_signature,
)  # fmt: skip
from baracuda.call.program import Program, ProgramBuilder
from baracuda.choose.plan import Plan, plan
from baracuda.describe.dims import MAX_RANK
from baracuda.describe.elements import Element
from baracuda.describe.errors import BaracudaError, InvalidProblemError
from baracuda.describe.options import refuse_option
from baracuda.describe.order import SAME, Order
from baracuda.describe.spec import Descriptor
from baracuda.memory import views
from baracuda.memory.device import Place, name_of

Shape: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Number:
    """A number that a call of the function gives, as a rule sees it."""

    index: int


@dataclass(frozen=True, slots=True)
class Value:
    """A view of an argument or of a step's result, as a rule sees it: where elements lie, but no data."""

    slot: int
    shape: Shape
    strides: Shape
    element: Element
    offset: int = 0

    def __post_init__(self) -> None:
        if len(self.shape) > MAX_RANK:
            raise InvalidProblemError(
                f"got a step of rank {len(self.shape)} on the way, want at most {MAX_RANK}. Pass tensors of fewer dimensions."
            )

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def permute(self, axes: Sequence[int]) -> Value:
        """Some of the dimensions in another order; -1 stands for a new one of size 1, what is left out has size 1."""
        shape = tuple(1 if a < 0 else self.shape[a] for a in axes)
        return replace(self, shape=shape, strides=tuple(0 if a < 0 else self.strides[a] for a in axes))

    def expand(self, shape: Shape) -> Value:
        """Broadcast to a shape.

        Raises:
            InvalidProblemError: Where it does not: nothing outside of the memory is ever seen.
        """
        lead = len(shape) - self.rank
        if lead < 0 or any(n not in (1, m) for n, m in zip(self.shape, shape[lead:], strict=True)):
            raise InvalidProblemError(f"got shape {self.shape}, want one that broadcasts to {shape}.")
        steps = (0 if n == 1 else s for n, s in zip(self.shape, self.strides, strict=True))
        return replace(self, shape=shape, strides=(*(0,) * lead, *steps))

    def reshape(self, shape: Shape) -> Value | None:
        """In another shape with as many elements; None where that takes a copy."""
        if len(shape) > MAX_RANK:
            return replace(self, shape=shape)  # refuses it
        try:
            sizes, steps = _core.reshape_layout(self.shape, self.strides, shape)
        except InvalidProblemError:
            return None
        return replace(self, shape=sizes, strides=steps)

    def __getitem__(self, key: Any) -> Value:
        offset, shape, strides = _core.index_layout(self.shape, self.strides, key)
        return replace(self, shape=shape, strides=strides, offset=self.offset + offset)


class Composer:
    """Given to a rule: every call of it is one step, a plan for a descriptor, whose result the next steps may use."""

    def __init__(self, place: Place, like: Any = None) -> None:
        """Of steps in a place; results lie in the order that tensors of the kind of `like` have, without it in C order."""
        self.place = place
        self.in_order = orders(like)
        self.numpy = of_numpy(like)
        self.device = name_of(place)
        self.steps: list[tuple[Plan, dict[str, Value | int | float]]] = []
        self.arguments: list[tuple[str, Value, Source]] = []
        self.numbers: list[tuple[str, Source]] = []
        self.made: list[tuple[Shape, Element, Shape]] = []  # with strides
        self._called: dict[int, str] = {}

    def argument(self, name: str, value: Any, source: Source) -> Value:
        """The next argument, as it lies in memory; all of them come before the first step."""
        seen = _borrowed(name, value)
        made = Value(len(self.arguments), seen.shape, seen.strides, Element(seen._element))
        self.arguments.append((name, made, source))
        return made

    def number(self, name: str, source: Source) -> Number:
        """A number of the call, which steps are given as it is."""
        self.numbers.append((name, source))
        return Number(len(self.numbers) - 1)

    def new(self, shape: Shape, element: Element, strides: Shape | None = None) -> Value:
        """Memory for a step to write to: in C order, or of strides without gaps."""
        steps = views.contiguous_strides(shape) if strides is None else strides
        self.made.append((shape, element, steps))
        return Value(len(self.arguments) + len(self.made) - 1, shape, steps, element)

    def lying(self, order: Order, shape: Shape, *values: Value) -> Shape | None:
        """Strides of a result whose order these values decide; None for C order."""
        return order.strides(shape, [(x.shape, x.strides) for x in values], self.numpy) if self.in_order else None

    def ordered(
        self, desc: Descriptor, shape: Shape, given: dict[str, Any], as_lies: Value | None = None
    ) -> Shape | None:
        """Strides of a step's result, as its order has it, or as those of `as_lies` are; None for C order."""
        if as_lies is not None:
            return self.lying(desc.order() or SAME, shape, as_lies)
        order = desc.order()
        if order is None:
            return None
        return self.lying(order, shape, *(x for x in desc.ordered_by(given) if isinstance(x, Value)))

    def __call__(self, desc: Descriptor, **given: Any) -> Any:
        """Runs the plan of `desc`; outputs that are not given are new. Returns the new outputs, one or a tuple."""
        made = plan(desc, self.device)
        found = []
        for p in made.signature.outputs:
            if p.name not in given:
                shape = tuple(int(n) for n in p.shape)
                found.append(self.new(shape, p.element, self.ordered(desc, shape, given)))
                given[p.name] = found[-1]
        self.steps.append((made, {name: value for name, value in given.items() if value is not None}))
        return found[0] if len(found) == 1 else tuple(found)

    def of(self, fn: Any, *args: Any, **options: Any) -> Any:
        """What another function of bc.functional gives for Values and numbers, by its own rule."""
        from baracuda.call.inline import inlined

        return inlined(self, fn, *args, **options)

    def called(self, x: Value, name: str) -> Value:
        """The same; errors about what a step finds in it call it so."""
        self._called[x.slot] = name
        return x

    def copy(self, x: Value) -> Value:
        """In new contiguous memory."""
        from baracuda.ops.layout.layout import CopyDescriptor

        made: Value = self(CopyDescriptor(x.shape, x.element), x=x)
        return made

    def cast(self, x: Value, element: Element) -> Value:
        """In another element; itself where it is of that."""
        from baracuda.ops.cast.cast import CastDescriptor

        if x.element is element:
            return x
        made: Value = self(CastDescriptor(x.shape, x.element, element, saturate=False), x=x)
        return made

    def wide(self, x: Value) -> Value:
        """Halves in f32, for steps whose sums and powers a half would round or overflow; itself where it is none."""
        return self.cast(x, Element.F32) if x.element.is_half else x

    def reshape(self, x: Value, shape: Shape) -> Value:
        """In another shape, as a view where that can be."""
        seen = x.reshape(shape) or self.copy(x).reshape(shape)
        assert seen is not None, "contiguous memory has every shape"
        return seen

    def zeros(self, shape: Shape, element: Element) -> Value:
        """New memory of zeros."""
        from baracuda.ops.layout.layout import FillDescriptor

        made = self.new(shape, element)
        part = {Element.C64: Element.F32, Element.C128: Element.F64}.get(element)
        if part is None:
            self(FillDescriptor(shape, element), value=0, y=made)
        else:
            numbers = (2 * prod(shape),)
            self(FillDescriptor(numbers, part), value=0, y=replace(made, shape=numbers, strides=(1,), element=part))
        return made

    def eye(self, n: int, element: Element) -> Value:
        """A matrix of ones on the diagonal."""
        from baracuda.ops.layout.layout import EyeDescriptor

        made: Value = self(EyeDescriptor((n, n), element))
        return made

    def results(self, values: Sequence[Value]) -> dict[int, Value]:
        """What is handed out, by slots; what is not the whole of new memory in its order, or in C order, is copied before."""
        found: dict[int, Value] = {}
        for x in values:
            first = len(self.arguments)
            whole = x.slot >= first and x.slot not in found and x.offset == 0
            if whole:
                shape, element, strides = self.made[x.slot - first]
                whole = prod(shape) == prod(x.shape) and element is x.element
            if not whole or (x.shape, x.strides) != (shape, strides):
                dense = whole and views.is_contiguous(x.shape, x.strides)
                x = replace(x, strides=views.contiguous_strides(x.shape)) if dense else self.copy(x)
            found[x.slot] = x
        return found

    def program(self, names: dict[int, str], results: dict[int, Value], out: Value | None) -> Program:
        """The steps, with memory of their own for what is no argument and no result."""
        b = ProgramBuilder(self.device)
        numbers = [b.scalar(name, self._kind(i)) for i, (name, _) in enumerate(self.numbers)]
        seen = [b.input(name, x.shape, x.element, x.strides) for name, x, _ in self.arguments]
        for slot, (shape, element, _) in enumerate(self.made, len(self.arguments)):
            handed_out = slot in results and out is None
            seen.append(
                b.output(names[slot], results[slot].shape, element, results[slot].strides)
                if handed_out
                else b.scratch(shape, element, self._called.get(slot, ""))
            )
        if out is not None:
            seen.append(b.output("out", out.shape, out.element, out.strides))
            from baracuda.ops.layout.layout import CopyDescriptor

            copied = next(iter(results.values()))
            copy = plan(CopyDescriptor(copied.shape, out.element), self.device)
            self.steps.append((copy, {"x": copied, "y": replace(out, slot=len(seen) - 1)}))

        def seen_by(x: Any) -> Any:
            if isinstance(x, (list, tuple)):
                return [seen_by(part) for part in x]
            if isinstance(x, Number):
                return numbers[x.index]
            return seen[x.slot].as_strided(x.shape, x.strides, x.offset, x.element) if isinstance(x, Value) else x

        for made, given in self.steps:
            b.add(made, **{name: seen_by(x) for name, x in given.items()})
        return b.build()

    def _kind(self, index: int) -> str:
        """What kind of number the steps want; one that any of them counts with is whole."""
        wanted: Any = Number(index)
        kinds = {p.kind for made, given in self.steps for p in made.signature.scalars if given.get(p.name) == wanted}
        return next((kind for kind in _core.scalar_kinds if kind in kinds - {"float"}), "float")

    def recipe(self, found: Value | Sequence[Value], like: Any, out: Out) -> Recipe:
        """What a function's engine keeps: the program, where its arguments come from, and its results.

        Args:
            found: What the rule returned.
            like: A tensor that results shall be of the kind of.
            out: Parameter and value of a tensor to write the only result to, or None.
        """
        results = self.results((found,) if isinstance(found, Value) else found)
        target = None if out is None else self._target(out[1], results)
        called = "made" if any(name == "result" for name, *_ in self.arguments) else "result"
        names = {slot: f"{called}{i}" if len(results) > 1 else called for i, slot in enumerate(results)}
        made = self.program(names, results, target)
        slots = sorted(results)
        to = -1 if out is None else out[0]
        allocations = [self._allocation(like, results[slot], to) for slot in slots]
        sources = [source for *_, source in self.arguments]
        sources += [(ALLOCATED, i, None, None, None) for i in range(len(slots))]
        sources += [source for _, source in self.numbers]
        returns = tuple(map(slots.index, results))
        return Recipe(made, tuple(sources), tuple(allocations), returns, listed=not isinstance(found, Value))

    def _allocation(self, like: Any, x: Value, out: int) -> Allocation:
        element = self.made[x.slot - len(self.arguments)][1]
        order = None if x.strides == views.contiguous_strides(x.shape) else (x.strides,)
        return allocation(like, x.shape, element, self.device, out, order)

    def _target(self, out: Any, results: dict[int, Value]) -> Value:
        if len(results) != 1:
            raise InvalidProblemError(f"out: got a tensor, want None: there are {len(results)} results.")
        found, seen = next(iter(results.values())), _borrowed("out", out)
        shape, element = found.shape, self.made[found.slot - len(self.arguments)][1]
        if seen.shape != shape or Element(seen._element) is not element:
            got = f"{Element(seen._element)} of shape {seen.shape}"
            raise InvalidProblemError(
                f"out: got {got}, want {element} of shape {shape}. Pass such a tensor, or leave the function to make one."
            )
        return Value(0, seen.shape, seen.strides, element)


Out: TypeAlias = tuple[int, Any] | None


def of_elements(call: Call, desc: Descriptor, to: Element | None = None, **given: Any) -> Recipe:
    """One plan, whose tensors are cast before to the elements that it takes, and whose result to another one.

    Args:
        call: The call of the function.
        desc: The problem.
        to: The element of the result; as the plan gives it by default.
        **given: Plan arguments, tensors and numbers.
    """
    signature = desc.signature()
    takes = {p.name: p.element for p in signature.present}
    given = {name: x for name, x in given.items() if x is not None}
    right = all(x.element is takes[n] for n, x in given.items() if isinstance(x, Arg) and x.is_tensor)
    if right and to in (None, signature.outputs[0].element):
        return call(desc, **given)

    def steps(c: Composer, *values: Any) -> Any:
        seen = zip(given, values, strict=True)
        made = c(desc, **{n: c.cast(x, takes[n]) if isinstance(x, Value) else x for n, x in seen})
        return made if to is None else c.cast(made, to)

    return call.steps(steps, *given.values())


def with_indices(call: Call, fn: Any, which: str, **given: Any) -> Recipe | None:
    """A function again, of indices cast to i64 where they are other integers than kernels take; None where they are not.

    Args:
        call: The call of the function.
        fn: The function.
        which: The argument that holds indices.
        **given: All arguments by their names.
    """
    index = given[which]
    if index is None or index.element in (Element.I64, Element.I32) or not index.element.is_integer:
        return None
    tensors = {name: x for name, x in given.items() if isinstance(x, Arg)}
    options = {name: x for name, x in given.items() if name not in tensors}

    def steps(c: Composer, *values: Any) -> Any:
        named = dict(zip(tensors, values, strict=True))
        return c.of(fn, **(named | {which: c.cast(named[which], Element.I64)}), **options)

    return call.steps(steps, *tensors.values())


def refuse_tensors(name: str, value: Any) -> None:
    """Refuses an option that is a tensor, or something else that has no value of its own."""
    for part in value if isinstance(value, (list, tuple)) else ():
        refuse_tensors(name, part)
    if not isinstance(value, list) and (hasattr(value, "__dlpack__") or type(value).__hash__ is None):
        got = type(value).__name__
        raise InvalidProblemError(f"{name}: got {got}, want a number, text, or a list of them, not a tensor.")


class _ComposedMiss(Miss):
    """Called by the engine for calls of a new kind: has the rule find steps."""

    function: Composed
    spelling: Callable[[tuple[Any, ...]], tuple[Any, ...]] | None = None

    def answer(self, values: tuple[Any, ...]) -> tuple[tuple[Any, ...] | None, Any]:
        """A recipe for these arguments; or the result, where they are a call in another form."""
        given = {name: value for (name, *_), value in zip(self.params, values, strict=True)}
        if self.spelling is not None:
            positional = self._positional(given)
            if (spelled := self.spelling(positional)) is not positional:
                return None, self.function(*spelled, **{n: given[n] for n in self.keywords})
        tensors = [self._tensors(i, *param[:5], given[param[0]]) for i, param in enumerate(self.params)]
        listed = [t for group in tensors for t in group]
        if not listed:
            first = next(name for name, kind, *_ in self.params if kind in (TENSOR, REST))
            raise InvalidProblemError(f"{first}: got none, want at least one tensor.")
        composer = Composer(_borrowed(listed[0][0], listed[0][1])._place, listed[0][1])
        out: Out = None
        for i, ((name, kind, *_), group) in enumerate(zip(self.params, tensors, strict=True)):
            found = tuple(composer.argument(*tensor) for tensor in group)
            if kind == OUT:
                out = None if given.pop(name) is None else (i, values[i])
            elif kind == REST or found:
                given[name] = found if kind == REST else found[0]
            elif kind != TENSOR:
                refuse_option(name, given[name], self.wanted.get(name))
                refuse_tensors(name, given[name])
        made: Any = self.rule(composer, *self._positional(given), **{n: given[n] for n in self.keywords if n in given})
        if isinstance(made, (tuple, list)) and not made:
            return None, ()  # nothing to make
        return composer.recipe(made, listed[0][1], out).packed(), None

    def _positional(self, given: dict[str, Any]) -> tuple[Any, ...]:
        found: list[Any] = []
        for name, kind, keyword_only, *_ in self.params:
            if kind == REST:
                found += given[name]
            elif not keyword_only and name in given:
                found.append(given[name])
        return tuple(found)

    @property
    def keywords(self) -> list[str]:
        """Parameters that are given by name."""
        return [name for name, _, keyword_only, *_ in self.params if keyword_only]

    @staticmethod
    def _tensors(
        index: int, name: str, kind: int, _: bool, optional: bool, default: Any, value: Any
    ) -> list[tuple[str, Any, Source]]:
        """Name, tensor and source of each tensor that a parameter has."""
        if kind == REST:
            if len(value) == 1 and isinstance(value[0], (list, tuple)):
                value = value[0]
            return [(f"{name}[{k}]", x, (FROM_MEMBER, index, k, None, None)) for k, x in enumerate(value)]
        if kind != TENSOR or (value is None and optional and default is None):
            return []
        return [(name, value, (FROM_ARGUMENT, index, None, None, None))]


class Composed(Function):
    """A function of bc.functional that takes several plans."""

    __doc__ = property(documentation)
    miss_type = _ComposedMiss

    def __new__(cls, rule: Callable[..., Any], tensors: tuple[str, ...]) -> Composed:
        """Makes the C++ side of the function; `rule` answers for calls of a new kind."""
        public = public_signature(rule)
        named = {p.name: p.kind for p in public.parameters.values() if p.name in tensors}
        kinds = {n: REST if kind is inspect.Parameter.VAR_POSITIONAL else TENSOR for n, kind in named.items()}
        made: Any = super().__new__(cls, rule, public, {"out": OUT} | kinds)
        made.miss.function = made
        return cast(Composed, made)

    def __init__(self, rule: Callable[..., Any], tensors: tuple[str, ...]) -> None:
        super().__init__(rule, public_signature(rule), {})

    def spelled_by(self, spelling: Callable[[tuple[Any, ...]], tuple[Any, ...]]) -> None:
        """Has `spelling` turn positional arguments of other forms into those of the signature; it returns others as they are."""
        self.miss.spelling = spelling


def _borrowed(name: str, value: Any) -> _core.Tensor:
    if value is None or isinstance(value, (int, float, str, list, tuple)):
        got = "None" if value is None else f"a {type(value).__name__}"
        raise InvalidProblemError(f"{name}: got {got}, want a tensor. Wrap numbers and lists with np.asarray().")
    try:
        return _core.borrow(value)
    except BaracudaError as error:
        error.args = (f"{name}: {error}",)
        raise


def composed(*, tensors: str) -> Callable[[Callable[..., Any]], Composed]:
    """Makes a rule a function of several plans.

    The rule's first parameter is the Composer; the others are the public signature. Parameters that are tensors arrive
    as Value (or None), all others as they were given; `*operands` may be one list. What it returns is handed out, in new
    memory, or copied to the tensor given as `out`, which the rule does not see.

    Args:
        tensors: Names of parameters that are tensors, separated by spaces.
    """
    names = tuple(tensors.split())
    return lambda rule: Composed(rule, names)
