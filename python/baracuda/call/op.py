"""What a family's module declares about each of its ops, beyond descriptors: names, gradient, functional functions."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from baracuda import _core
from baracuda.call.allocation import Allocation, allocation, of_numpy, strides_of
from baracuda.call.autograd import Pullable
from baracuda.call.tape import innermost, running, tracked_in
from baracuda.call.words import name_failure, refuse_numbers
from baracuda.choose.plan import plan as select_plan
from baracuda.describe.calls import respelt, spellings
from baracuda.describe.dims import largest
from baracuda.describe.elements import Element
from baracuda.describe.errors import BaracudaError, InvalidProblemError
from baracuda.describe.options import UNUSABLE, refuse_option, refuse_types, unusable, wanted
from baracuda.describe.order import SAME, Order
from baracuda.memory.device import CPU, Place, name_of
from baracuda.memory.results import foreign_converter, new_result

if TYPE_CHECKING:
    from baracuda.call.counted import Then
    from baracuda.describe.spec import Descriptor


@dataclass(frozen=True, slots=True)
class NotDifferentiable:
    """Why an op has no gradient."""

    why: str


@dataclass(frozen=True, slots=True)
class Op:
    """One op of a family.

    Attributes:
        name: The same for the SKU table, the functional function and capabilities().
        forward: Its descriptor class.
        backward: The gradient's descriptor class, or why there is none.
        summary: One line with the formula.
    """

    name: str
    forward: type[Descriptor]
    backward: type[Descriptor] | NotDifferentiable
    summary: str


@dataclass(frozen=True, slots=True)
class Arg:
    """An argument of a functional call, as its rule sees it: shape, element and place, but no data.

    `permute`, `insert` and `fit` give the plan a view of it; nothing is copied.
    """

    index: int
    name: str
    value: Any
    shape: tuple[int, ...] = ()
    element: Element = Element.F32
    is_tensor: bool = True
    dims: tuple[int, ...] | None = None
    fitted: bool = False
    place: Place = CPU

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def permute(self, *axes: int) -> Arg:
        """The dimensions in another order."""
        dims = self.dims or tuple(range(self.rank))
        return self._view(tuple(dims[a] for a in axes), tuple(self.shape[a] for a in axes))

    def insert(self, axis: int) -> Arg:
        """With a dimension of size 1 inserted before `axis`."""
        dims = self.dims or tuple(range(self.rank))
        return self._view((*dims[:axis], -1, *dims[axis:]), (*self.shape[:axis], 1, *self.shape[axis:]))

    def fit(self, shape: tuple[int, ...]) -> Arg:
        """Of another shape of the same rank: the first elements of each dimension, or one of size 1 broadcast."""
        return self._view(self.dims or tuple(range(self.rank)), shape, True)

    def source(self) -> Source:
        """Where the plan's argument comes from."""
        return (FROM_ARGUMENT, self.index, None, self.dims, self.shape if self.fitted else None)

    def _view(self, dims: tuple[int, ...], shape: tuple[int, ...], fitted: bool = False) -> Arg:
        again = self.fitted or fitted
        return Arg(self.index, self.name, self.value, shape, self.element, self.is_tensor, dims, again, self.place)


@dataclass(frozen=True, slots=True)
class ListArg:
    """A list of tensors, as a rule sees it."""

    index: int
    name: str
    items: tuple[Arg, ...]

    def source(self) -> Source:
        """Where the plan's argument comes from."""
        return (FROM_ARGUMENT, self.index, None, None, None)


Source: TypeAlias = tuple[int, int, Any, tuple[int, ...] | None, tuple[int, ...] | None]
FROM_ARGUMENT, FROM_CONSTANT, ALLOCATED, FROM_MEMBER, FROM_BEFORE = map(
    _core.recipe_sources.index, ("argument", "constant", "allocated", "member", "before")
)


@dataclass(frozen=True, slots=True)
class Recipe:
    """How calls of one shape are carried out, by a plan or a program; the engine keeps it and runs it without Python."""

    plan: Any
    sources: tuple[Source, ...]
    allocations: tuple[Allocation, ...]
    returns: tuple[int, ...]
    listed: bool = False
    then: Then | None = None  # the next part, where only the data say how large results are

    def packed(self) -> tuple[Any, ...]:
        """What the engine keeps."""
        then = self.then and self.then.packed()
        return (self.plan, self.sources, self.allocations, self.returns, self.listed, then)


class Call:
    """Given to a functional rule: turns a descriptor and the arguments' places into a Recipe."""

    def __init__(self, args: tuple[Arg | None, ...], out: Arg | None) -> None:
        self.args = args
        self.out = out

    def first(self) -> Arg:
        """The first tensor among the arguments."""
        for arg in self.args:
            if arg is not None and arg.is_tensor:
                return arg
        raise InvalidProblemError("got only numbers, want at least one tensor. Wrap one with np.asarray().")

    def like(self) -> Any:
        """Its value: results are of its kind."""
        return self.first().value

    @property
    def device(self) -> str:
        """Where it lies."""
        return name_of(self.first().place)

    def steps(self, rule: Callable[..., Any], *arguments: Arg | ListArg | float | None, **options: Any) -> Recipe:
        """Plans several kernels as one program, for these shapes and strides.

        Args:
            rule: Is given a Composer, the arguments as Values (lists of them; numbers as Numbers), and the options.
            *arguments: What the steps are given.
            **options: What decides the steps.
        """
        from baracuda.call.compose import Composer

        composer = Composer(self.first().place, self.like())

        def seen(arg: Arg | ListArg | float | None) -> Any:
            if isinstance(arg, ListArg):
                places = ((FROM_MEMBER, arg.index, k, None, None) for k in range(len(arg.items)))
                named = zip(arg.items, places, strict=True)
                return [composer.argument(f"{arg.name}[{k}]", x.value, p) for k, (x, p) in enumerate(named)]
            if not isinstance(arg, Arg):
                return arg
            if not arg.is_tensor:
                return composer.number(arg.name, arg.source())
            return composer.argument(arg.name, arg.value, arg.source())

        made = rule(composer, *map(seen, arguments), **options)
        out = None if self.out is None else (self.out.index, self.out.value)
        return composer.recipe(made, self.like(), out)

    def _order(self, order: Order | None, by: Sequence[Any]) -> tuple[int, bool, tuple[Source, ...]] | None:
        """A rule, whether it is NumPy's, and the sources that decide the order of the results."""
        sources = tuple(x.source() for x in by if isinstance(x, Arg) and x.is_tensor)
        if order is None or not sources or foreign_converter(self.like()) is not None:
            return None
        return order.code, of_numpy(self.like()), sources

    def _check_out(self, shape: tuple[int, ...]) -> None:
        """Refuses an `out` of another shape where the plan sees only some of its dimensions, and cannot."""
        if self.out is not None and self.out.shape != shape:
            raise InvalidProblemError(
                f"out: got shape {self.out.shape}, want shape {shape}. Pass a tensor of this shape, or leave the function "
                "to make one."
            )

    def __call__(
        self,
        desc: Descriptor,
        *,
        returns: tuple[str, ...] | None = None,
        views: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] | None = None,
        as_lies: Arg | None = None,
        **given: Any,
    ) -> Recipe:
        """Plans one kernel.

        Args:
            desc: The problem.
            returns: Names of the outputs that the function returns; all by default.
            views: For outputs whose function shape differs from the plan's by dimensions of size 1: name to (shape of the
                result, dims of it that the plan sees, -1 for an inserted one).
            as_lies: A tensor of the result's shape in whose order it lies, where the plan is not given it.
            **given: Plan arguments: an Arg, a ListArg, or a number.
        """
        like, device = self.like(), self.device
        plan = select_plan(desc, device)
        signature = desc.signature()
        outputs = {p.name: p for p in signature.outputs if p.name not in given}
        ordered_by = desc.ordered_by(given) if as_lies is None else [as_lies]
        order = self._order(desc.order() or (None if as_lies is None else SAME), ordered_by)
        allocations: list[Allocation] = []
        places: dict[str, int] = {}
        sources: list[Source] = []
        for name in plan.arguments:
            value = given.get(name)
            if name in outputs:
                shape, dims = (views or {}).get(name, (tuple(map(largest, outputs[name].shape)), None))
                takes_out = self.out is not None and [name] == list(returns or outputs)
                if takes_out and dims is not None:
                    self._check_out(shape)
                places[name] = len(allocations)
                to = self.out.index if takes_out and self.out is not None else -1
                own = order if dims is None else None
                allocations.append(allocation(like, shape, outputs[name].element, device, to, own))
                sources.append((ALLOCATED, places[name], None, dims, None))
            elif isinstance(value, (Arg, ListArg)):
                sources.append(value.source())
            elif value is None:
                scalar = next((s for s in signature.numbers if s.name == name), None)
                if scalar is None:  # an option such as a dimension that is None has asked for it
                    raise InvalidProblemError(
                        f"{name}: got None, want a tensor for these options. Pass one, or change them."
                    )
                sources.append((FROM_CONSTANT, 0, scalar.default, None, None))
            else:
                sources.append((FROM_CONSTANT, 0, value, None, None))
        names = returns or tuple(places)
        if self.out is not None and len(names) != 1:
            raise InvalidProblemError(f"out: got a tensor, want None: {desc.op} returns {len(names)} results.")
        return Recipe(plan, tuple(sources), tuple(allocations), tuple(places[n] for n in names))


TENSOR, SCALAR, ATTRIBUTE, OUT, LIST, REST = map(
    _core.param_kinds.index, ("tensor", "scalar", "attribute", "out", "list", "rest")
)
Rule: TypeAlias = Callable[..., Recipe]


WITHOUT_DOC = tuple(name for name in functools.WRAPPER_ASSIGNMENTS if name != "__doc__")


def documentation(fn: Any) -> str:
    """The docstring of a function, made when it is asked for: nothing of it is needed to call the function."""
    from baracuda.call.function_doc import docstring

    return docstring(fn, inspect.cleandoc(fn._summary))


class Miss:
    """Called by the engine for calls of a new shape: asks the rule for a Recipe."""

    def __init__(self, rule: Rule, params: tuple[tuple[str, int, bool, bool, Any, tuple[str, ...]], ...]) -> None:
        self.rule = rule
        self.params = params
        given = inspect.signature(rule).parameters.values()
        # A parameter annotated as Arg alone takes a tensor or a number: rules need not look for None or lists there. What
        # may be None besides takes no list either.
        self.plain = {p.name for p in given if p.annotation in ("Arg", Arg)}
        self.single = self.plain | {p.name for p in given if p.annotation in ("Arg | None", Arg | None)}
        self.wanted = {p.name: found for p in given if (found := wanted(p))}
        self.other: Callable[..., Any] | None = None  # see Function.or_else

    def _check_plain(self, name: str, value: Any) -> None:
        if (name in self.plain and value is None) or (name in self.single and isinstance(value, (list, tuple))):
            raise InvalidProblemError(
                f"{name}: got {'a ' if value is not None else ''}{type(value).__name__}, want a tensor. "
                "Wrap numbers and lists with np.asarray()."
            )

    def __call__(self, values: tuple[Any, ...]) -> tuple[tuple[Any, ...] | None, Any]:
        """The same, with errors that name the function."""
        try:
            return self.answer(values)
        except BaracudaError as error:
            refuse_numbers(self.rule.__name__, self._given_tensors(values))
            name_failure(self.rule.__name__, error, [p[0] for p in self.params])
            raise
        except UNUSABLE as error:
            refuse_numbers(self.rule.__name__, self._given_tensors(values))
            raise unusable(self.rule.__name__, error) from error

    def _given_tensors(self, values: tuple[Any, ...]) -> dict[str, Any]:
        """What was given for parameters that are tensors."""
        return {p[0]: v for p, v in zip(self.params, values, strict=True) if p[1] == TENSOR and v is not None}

    def answer(self, values: tuple[Any, ...]) -> tuple[tuple[Any, ...] | None, Any]:
        """A recipe for arguments like these, or what a call of them gave."""
        if self.other is not None and (found := self.other(*values)) is not NotImplemented:
            return None, found
        args: list[Arg | None] = []
        passed: dict[str, Any] = {}
        out = None
        for i, ((name, kind, *_), value) in enumerate(zip(self.params, values, strict=True)):
            arg = None
            if kind in (TENSOR, SCALAR):
                self._check_plain(name, value)
            if kind == LIST:
                items = _list_items(i, name, value)
                args.extend(items)
                passed[name] = ListArg(i, name, items)
                continue
            if kind == ATTRIBUTE:
                refuse_option(name, value, self.wanted.get(name))
            if kind != ATTRIBUTE and value is not None:
                if isinstance(value, (int, float)):
                    arg = Arg(i, name, value, (), _element_of(value), is_tensor=False)
                elif isinstance(value, (list, tuple)):
                    passed[name] = value
                    continue
                else:
                    arg = _tensor_arg(i, name, value)
            if kind == OUT:
                out = arg
                continue
            if kind == TENSOR:
                args.append(arg)
            passed[name] = value if kind == ATTRIBUTE else arg
        call = Call(tuple(args), out)
        return self.rule(call, **passed).packed(), None


class Function(_core.Function, Pullable):
    """A function of bc.functional. A call of a shape seen before runs without a Python frame."""

    __doc__ = property(documentation)
    __name__: str
    miss_type: type[Miss] = Miss
    miss: Any

    def __new__(cls, rule: Rule, signature: inspect.Signature, kinds: dict[str, int]) -> Function:
        """Makes the C++ side of the function; `rule` answers for shapes that it has not seen."""
        params = []
        others = spellings(signature.parameters)
        for p in signature.parameters.values():
            has_default = p.default is not p.empty
            params.append(
                (
                    p.name,
                    kinds.get(p.name, ATTRIBUTE),
                    p.kind is p.KEYWORD_ONLY,
                    has_default,
                    p.default if has_default else None,
                    tuple(sys.intern(other) for other, name in others.items() if name == p.name),
                )
            )
        miss = cls.miss_type(rule, tuple(params))
        made: Function = super().__new__(cls, miss, tuple(params))
        made.miss = miss
        return made

    def __init__(self, rule: Rule, signature: inspect.Signature, kinds: dict[str, int]) -> None:
        self.__name__ = self.__qualname__ = rule.__name__
        self._summary = rule.__doc__ or ""
        self.__module__ = "baracuda.functional"
        self.defined_in = rule.__module__
        self.__signature__ = signature
        self.vjp_rule = None

    def or_else(self, other: Callable[..., Any]) -> None:
        """Has `other` answer calls of a second form that the signature has room for; of others it is NotImplemented."""
        self.miss.other = other

    def __repr__(self) -> str:
        return f"<baracuda function {self.__name__}{self.__signature__}>"


def _list_items(index: int, name: str, value: Any) -> tuple[Arg, ...]:
    if not isinstance(value, (list, tuple)) or not value:
        got = "an empty list" if isinstance(value, (list, tuple)) else f"an object of type {type(value).__name__}"
        raise InvalidProblemError(f"{name}: got {got}, want a list of at least one tensor.")
    return tuple(_tensor_arg(index, name, v) for v in value)


def _element_of(number: float) -> Element:
    return Element.BOOL if isinstance(number, bool) else Element.I64 if isinstance(number, int) else Element.F32


def _tensor_arg(index: int, name: str, value: Any) -> Arg:
    shape, code, _, backend, number = _core.describe(value)
    return Arg(index, name, value, shape, Element(code), place=(backend, number))


def run_new(made: Any, like: Any, out: Any = None, **given: Any) -> Any:
    """Runs a plan for its first output, which is `out` or new and of the kind of `like`: for composites.

    Args:
        made: The plan.
        like: A tensor that the result shall be of the kind of.
        out: A tensor to write to; returned as it is.
        **given: The plan's other arguments.
    """
    from baracuda.memory.tensor import empty

    result = made.signature.outputs[0]
    shape = tuple(map(largest, result.shape))
    convert = foreign_converter(like) if out is None else None
    if out is None and convert is None:
        out = new_result(like, shape, result.element, made.device, strides_of(made.descriptor, shape, given, like))
    elif out is None:
        out = empty(shape, result.element, device=made.device)
    if made.workspace_size:
        given["workspace"] = empty(made.workspace_size, "u8", device=made.device)
    made.run(**given, **{result.name: out})
    return out if convert is None else convert(out)


def public_signature(rule: Callable[..., Any]) -> inspect.Signature:
    """That of the function which a rule makes: without the rule's first parameter and without annotations."""
    _, *rest = inspect.signature(rule).parameters.values()
    return inspect.Signature([p.replace(annotation=inspect.Parameter.empty) for p in rest])


def function(*, tensors: str = "", scalars: str = "", lists: str = "") -> Callable[[Rule], Function]:
    """Makes a rule a functional function.

    The rule's first parameter is the Call; the others are the public signature (torch's names, order and defaults).
    Tensor and scalar parameters arrive as Arg (or None), lists of tensors as ListArg, all others as they were given and
    decide the plan.

    Args:
        tensors: Names of parameters that are tensors, separated by spaces.
        scalars: Names of parameters that are numbers passed on to `run`.
        lists: Names of parameters that are lists of at least one tensor.
    """
    kinds = {"out": OUT}
    for names, kind in ((tensors, TENSOR), (scalars, SCALAR), (lists, LIST)):
        kinds |= dict.fromkeys(names.split(), kind)

    def make(rule: Rule) -> Function:
        return Function(rule, public_signature(rule), kinds)

    return make


class Composite(_core.Opaque, Pullable):
    """A plain Python function as one of bc.functional."""

    __doc__ = property(documentation)
    is_functional = True
    __name__: str

    def __init__(self, fn: Callable[..., Any]) -> None:
        functools.update_wrapper(self, fn, WITHOUT_DOC)
        self._summary = fn.__doc__ or ""
        self.fn = fn
        self.defined_in = fn.__module__
        self.__signature__ = inspect.signature(fn)
        self.wanted = {p.name: found for p in self.__signature__.parameters.values() if (found := wanted(p))}
        self.others = spellings(self.__signature__.parameters)
        self.vjp_rule = None

    def __repr__(self) -> str:
        return f"<baracuda function {self.__name__}{self.__signature__}>"

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        if running.count and next(tracked_in((args, kwargs)), None) is not None:
            return self._recorded(args, kwargs)
        if kwargs and not self.others.keys().isdisjoint(kwargs):
            kwargs = respelt(self.others, kwargs)
        for name in kwargs.keys() & self.wanted:
            refuse_option(f"{self.__name__}: {name}", kwargs[name], self.wanted[name])
        try:
            return self.fn(*args, **kwargs)
        except BaracudaError as error:
            name_failure(self.__name__, error, self.__signature__.parameters)
            raise
        except (*UNUSABLE, RuntimeError) as error:
            if not refuse_types(self.__name__, self.__signature__, args, kwargs):
                raise self._mistaken(args, kwargs) from None
            if isinstance(error, UNUSABLE):
                raise unusable(self.__name__, error) from error
            raise

    def _recorded(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of what is differentiated."""
        try:
            call = self.__signature__.bind(*args, **respelt(self.others, kwargs))
        except TypeError:
            raise self._mistaken(args, kwargs) from None
        call.apply_defaults()
        return innermost((args, kwargs)).call(self, tuple(call.arguments.values()))


F = TypeVar("F", bound=Callable[..., Any])


def composite(fn: F) -> F:
    """Makes a plain Python function one of bc.functional, for calls that a single Recipe cannot describe."""
    return cast(F, Composite(fn))
