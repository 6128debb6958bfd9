"""Functions that take several plans. A rule sees views without data and asks for steps; calls of that shape repeat them.

    @composed(tensors="input")
    def roll(c: Composer, input: Value, shifts: Any, dims: Any = ()) -> Value: ...

What lies between the steps is new memory of the kind of the first tensor; views cost nothing. The steps are found once
per shape, strides, element, device and options, and kept.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, update_wrapper
from math import prod
from typing import Any, TypeAlias

from baracuda import _core, views
from baracuda.autograd import Pullable
from baracuda.device import Place, name_of
from baracuda.elements import Element
from baracuda.errors import BaracudaError, InvalidProblemError
from baracuda.op import WITHOUT_DOC, documentation, name_failure
from baracuda.options import UNUSABLE, refuse_option, unusable, wanted
from baracuda.plan import Plan, plan
from baracuda.results import allocated, foreign_converter, is_torch, maker
from baracuda.spec import Descriptor

Shape: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Value:
    """A view of an argument or of a step's result, as a rule sees it: where elements lie, but no data."""

    slot: int
    shape: Shape
    strides: Shape
    element: Element
    offset: int = 0

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
        try:
            sizes, steps = _core.reshape_layout(self.shape, self.strides, shape)
        except InvalidProblemError:
            return None
        return replace(self, shape=sizes, strides=steps)

    def __getitem__(self, key: Any) -> Value:
        offset, shape, strides = _core.index_layout(self.shape, self.strides, key)
        return replace(self, shape=shape, strides=strides, offset=self.offset + offset)


_Given: TypeAlias = tuple[Value | int | float | None, ...]


@dataclass(frozen=True, slots=True)
class _Step:
    plan: Plan
    given: _Given


class Composer:
    """Given to a rule: every call of it is one step, a plan for a descriptor, whose result the next steps may use."""

    def __init__(self, place: Place) -> None:
        self.device = name_of(place)
        self.steps: list[_Step] = []
        self.made: list[tuple[Shape, Element]] = []
        self.arguments = 0

    def argument(self, shape: Shape, strides: Shape, element: Element) -> Value:
        """The next argument; all of them come before the first step."""
        self.arguments += 1
        return Value(self.arguments - 1, shape, strides, element)

    def new(self, shape: Shape, element: Element) -> Value:
        """Memory for a step to write to."""
        self.made.append((shape, element))
        return Value(self.arguments + len(self.made) - 1, shape, views.contiguous_strides(shape), element)

    def __call__(self, desc: Descriptor, **given: Value | int | float | None) -> Any:
        """Runs the plan of `desc`; outputs that are not given are new. Returns the new outputs, one or a tuple."""
        made = plan(desc, self.device)
        found = []
        for p in made.signature.outputs:
            if p.name not in given:
                found.append(self.new(tuple(int(n) for n in p.shape), p.element))
                given[p.name] = found[-1]
        numbers = {s.name: s.default for s in made.signature.numbers}
        self.steps.append(_Step(made, tuple(given.get(n, numbers.get(n)) for n in made.arguments)))
        return found[0] if len(found) == 1 else tuple(found)

    def copy(self, x: Value) -> Value:
        """In new contiguous memory."""
        from baracuda.ops.layout import CopyDescriptor

        made: Value = self(CopyDescriptor(x.shape, x.element), x=x)
        return made

    def cast(self, x: Value, element: Element) -> Value:
        """In another element; itself where it is of that."""
        from baracuda.ops.cast import CastDescriptor

        if x.element is element:
            return x
        made: Value = self(CastDescriptor(x.shape, x.element, element, saturate=False), x=x)
        return made

    def reshape(self, x: Value, shape: Shape) -> Value:
        """In another shape, as a view where that can be."""
        seen = x.reshape(shape) or self.copy(x).reshape(shape)
        assert seen is not None, "contiguous memory has every shape"
        return seen

    def zeros(self, shape: Shape, element: Element) -> Value:
        """New memory of zeros."""
        from baracuda.ops.layout import FillDescriptor

        made = self.new(shape, element)
        part = {Element.C64: Element.F32, Element.C128: Element.F64}.get(element)
        if part is None:
            self(FillDescriptor(shape, element), value=0, y=made)
        else:
            numbers = (2 * prod(shape),)
            self(FillDescriptor(numbers, part), value=0, y=replace(made, shape=numbers, strides=(1,), element=part))
        return made

    def results(self, values: Sequence[Value]) -> tuple[tuple[int, Shape], ...]:
        """What is handed out: slots and their shapes; what is not the whole of new memory is copied before."""
        found: dict[int, Shape] = {}
        for x in values:
            whole = x.slot >= self.arguments and x.slot not in found and x.offset == 0
            if whole:
                whole = prod(self.made[x.slot - self.arguments][0]) == prod(x.shape)
            if not whole or not views.is_contiguous(x.shape, x.strides):
                x = self.copy(x)
            found[x.slot] = x.shape
        return tuple(found.items())


@dataclass(frozen=True, slots=True)
class _Program:
    """The steps of one call."""

    steps: tuple[_Step, ...]
    made: tuple[tuple[Shape, Element], ...]
    results: tuple[tuple[int, Shape], ...]
    single: bool
    device: str

    def run(self, borrowed: list[_core.Tensor], like: Any) -> Any:
        convert = foreign_converter(like)
        objects: dict[int, Any] = {}
        shapes = dict(self.results)
        memory = list(borrowed)
        for shape, element in self.made:
            size = shapes.get(len(memory), shape)
            objects[len(memory)] = made = _allocated(None if convert else like, size, element, self.device)
            memory.append(_core.borrow(made))
        stream = _stream(like) if self.device != "cpu" else None
        room = max((step.plan.workspace_size for step in self.steps), default=0)
        space = _allocated(None, (room,), Element.U8, self.device) if room else None
        for step in self.steps:
            self._launch(step, memory, space, stream)
        found = tuple(objects[slot] if convert is None else convert(objects[slot]) for slot, _ in self.results)
        return found[0] if self.single else found

    def _launch(self, step: _Step, memory: list[_core.Tensor], space: Any, stream: Any) -> None:
        given = [
            _core.view_of(memory[x.slot], x.offset, x.shape, x.strides, x.element) if isinstance(x, Value) else x
            for x in step.given
        ]
        step.plan.run(*given, workspace=space if step.plan.workspace_size else None, stream=stream)


def _allocated(like: Any, shape: Shape, element: Element, device: str) -> Any:
    from baracuda.tensor import empty

    if like is None:
        return empty(shape, element, device=device)
    return allocated(*maker(like, shape, element, device))


def _stream(like: Any) -> Any:
    """The stream that the caller's framework works on: views of its tensors do not tell."""
    return sys.modules["torch"].cuda.current_stream(like.device) if is_torch(like) else None


def _frozen(name: str, value: Any) -> Any:
    """An option as part of a key; 1, 1.0 and True are three."""
    if isinstance(value, (list, tuple)):
        return (type(value), tuple(_frozen(name, v) for v in value))
    if hasattr(value, "__dlpack__") or type(value).__hash__ is None:
        got = type(value).__name__
        raise InvalidProblemError(f"{name}: got {got}, want a number, text, or a list of them, not a tensor.")
    return (type(value), value)


@dataclass(frozen=True, slots=True, eq=False)
class _Options:
    """Options as the rule takes them, equal where they mean the same."""

    given: dict[str, Any]
    key: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Options) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


_Spec: TypeAlias = tuple[Shape, Shape, int]
_Layout: TypeAlias = tuple[tuple[str, int], ...]  # how many tensors a parameter has: -1 for a single one


class Composed(_core.Opaque, Pullable):
    """A function of bc.functional that takes several plans."""

    __doc__ = property(documentation)
    is_functional = True
    __name__: str

    def __init__(self, rule: Callable[..., Any], tensors: tuple[str, ...]) -> None:
        update_wrapper(self, rule, WITHOUT_DOC)
        self._summary = rule.__doc__ or ""
        self.defined_in = rule.__module__
        self.rule = rule
        self.tensors = tensors
        full = inspect.signature(rule)
        self.parameters = list(full.parameters.values())[1:]
        plain = [p.replace(annotation=inspect.Parameter.empty) for p in self.parameters]
        self.__signature__ = full.replace(parameters=plain, return_annotation=inspect.Signature.empty)
        self.vjp_rule = None
        self.spelling: Callable[[tuple[Any, ...]], tuple[Any, ...]] = tuple
        self.program = lru_cache(maxsize=512)(self._build)

    def __repr__(self) -> str:
        return f"<baracuda function {self.__name__}{self.__signature__}>"

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        """Carries out the steps; finds them first where a shape is new."""
        try:
            call = self.__signature__.bind(*self.spelling(args), **kwargs)
            call.apply_defaults()
            return self._run(call.arguments)
        except BaracudaError as error:
            if not self.__name__.startswith("_"):  # a part of another function
                name_failure(self.__name__, error)
            raise
        except UNUSABLE as error:
            self.__signature__.bind(*args, **kwargs)  # says itself what is missing or too much
            raise unusable(self.__name__, error) from error

    def spelled_by(self, spelling: Callable[[tuple[Any, ...]], tuple[Any, ...]]) -> None:
        """Has `spelling` turn positional arguments of other forms into those of the signature, before anything else."""
        self.spelling = spelling

    def _run(self, given: dict[str, Any]) -> Any:
        borrowed: list[_core.Tensor] = []
        layout: list[tuple[str, int]] = []
        options: dict[str, Any] = {}
        like: Any = None
        for p in self.parameters:
            value = given[p.name]
            if p.name not in self.tensors or (value is None and p.default is None):
                if p.name != "out":
                    options[p.name] = value
                continue
            listed = p.kind is p.VAR_POSITIONAL
            if listed and len(value) == 1 and isinstance(value[0], (list, tuple)):
                value = value[0]
            for i, x in enumerate(value if listed else (value,)):
                like = x if not borrowed else like
                borrowed.append(_borrowed(f"{p.name}[{i}]" if listed else p.name, x))
            layout.append((p.name, len(value) if listed else -1))
        if not borrowed:
            raise InvalidProblemError(f"{self.tensors[0]}: got none, want at least one tensor.")
        specs = tuple((b.shape, b.strides, b._element) for b in borrowed)
        place = borrowed[0]._place
        kept = _Options(options, tuple((k, _frozen(k, v)) for k, v in options.items()))
        result = self.program(specs, tuple(layout), place, kept).run(borrowed, like)
        return result if given.get("out") is None else _written(result, given["out"])

    def _build(self, specs: tuple[_Spec, ...], layout: _Layout, place: Place, options: _Options) -> _Program:
        for p in self.parameters:
            if p.name in options.given and p.name not in self.tensors:
                refuse_option(p.name, options.given[p.name], wanted(p))
        composer = Composer(place)
        values = [composer.argument(shape, strides, Element(code)) for shape, strides, code in specs]
        passed: dict[str, Any] = dict(options.given)
        at = 0
        for name, count in layout:
            passed[name] = values[at] if count < 0 else tuple(values[at : at + count])
            at += abs(count)
        positional: list[Any] = []
        for p in self.parameters:
            if p.name != "out" and p.kind is p.VAR_POSITIONAL:
                positional.extend(passed.pop(p.name, ()))
            elif p.name != "out" and p.kind is p.POSITIONAL_OR_KEYWORD:
                positional.append(passed.pop(p.name))
        found = self.rule(composer, *positional, **passed)
        single = isinstance(found, Value)
        results = composer.results((found,) if single else found)
        return _Program(tuple(composer.steps), tuple(composer.made), results, single, composer.device)


def _borrowed(name: str, value: Any) -> _core.Tensor:
    if value is None or isinstance(value, (int, float, str, list, tuple)):
        got = "None" if value is None else f"a {type(value).__name__}"
        raise InvalidProblemError(f"{name}: got {got}, want a tensor. Wrap numbers and lists with np.asarray().")
    try:
        return _core.borrow(value)
    except BaracudaError as error:
        error.args = (f"{name}: {error}",)
        raise


def _written(result: Any, out: Any) -> Any:
    from baracuda.ops.layout import copy

    return copy(result, out=out)


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
