"""Runs a function with stand-ins and writes down what it does to single elements.

A stand-in goes through the functions of bc.functional by their own rules, which name the plans that they would run. What
those plans do to single elements becomes nodes of a program; what they do otherwise stays a call of its own, which is
given what it takes in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from baracuda.call.compose import Composed
from baracuda.call.op import LIST, OUT, SCALAR, TENSOR, Arg, Call, Function, Recipe
from baracuda.choose.plan import plan
from baracuda.describe.elements import Element
from baracuda.describe.errors import BaracudaError, InvalidProblemError, UnsupportedError
from baracuda.describe.promotion import broadcast
from baracuda.describe.spec import Descriptor
from baracuda.expr.nodes import Made, NotFused, made_by
from baracuda.expr.stand_in import REDUCTIONS, Traced
from baracuda.memory.device import CPU, Place, name_of
from baracuda.memory.tensor import TensorSpec
from baracuda.ops.expr.expr import ExprDescriptor

# What the rows of programs without and with reductions want of the others.
_NO_REDUCTION, _REDUCTION = "no output that is reduced", "an output that is reduced"
MAX_FUNCTIONS = 64  # of one kernel, as in csrc/ops/expr/program.h

if TYPE_CHECKING:
    from baracuda.expr.gradient import Tape

Shape = tuple[int, ...]
# Where a leaf comes from: an argument of the traced function, or a result of a step.
Source = tuple[str, int, int]
# What is done to it before it is read: ("permute", axes with -1 for a new one), ("index", key), ("reshape", shape).
View = tuple[str, Any]


@dataclass(frozen=True, slots=True)
class Value:
    """A leaf, a number, or what a function makes.

    Attributes:
        function: "leaf", "number", or the function's name.
        element: In which is computed.
        args: Numbers of the operands' values; of a leaf its source and views, of a number the number, of a reduction its
            operand, how many axes, whether they stay, and the shape that is reduced.
        result: The element of the result.
        shape: Its own shape, before it is broadcast.
    """

    function: str
    element: Element
    args: tuple[Any, ...]
    result: Element
    shape: Shape


@dataclass(slots=True)
class Step:
    """One call: a fused kernel, or a function that could not be fused.

    Attributes:
        made: Given a Composer and the values of leaves, makes its results.
        leaves: The leaves that it reads.
        descriptor: Of a fused kernel.
    """

    made: Callable[..., Any]
    leaves: tuple[int, ...]
    descriptor: ExprDescriptor | None = None


@dataclass(slots=True)
class Trace:
    """What a function did.

    Attributes:
        place: The device.
        values: All values, each once.
        steps: What is to be called, in order.
        notes: What was not fused, and why.
        shared: How often a value was found to be there already.
        tape: Where calls are written down that are to be pulled back.
        kept: Values that a step has written to memory, and the leaves that they are there.
    """

    place: Place = CPU
    values: list[Value] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    shared: int = 0
    _known: dict[Any, int] = field(default_factory=dict)
    kept: dict[int, int] = field(default_factory=dict)
    tape: Tape | None = None

    def value(self, function: str, element: Element, args: tuple[Any, ...], result: Element, shape: Shape) -> int:
        """The number of a value, which may be there already."""
        # By their texts -0.0 is not 0.0, NaN is itself, and slices can be kept.
        key = (function, element, repr(args) if function in ("leaf", "number") else args)
        found = self._known.setdefault(key, len(self.values))
        if found == len(self.values):
            self.values.append(Value(function, element, args, result, shape))
        elif function not in ("leaf", "number"):
            self.shared += 1
        return found

    def leaf(self, source: Source, views: tuple[View, ...], shape: Shape, element: Element) -> Traced:
        """A tensor in memory."""
        return Traced(self, self.value("leaf", element, (source, views), element, shape), shape)

    def argument(self, index: int, shape: Shape, element: Element) -> Traced:
        """An argument of the function."""
        return self.leaf(("argument", index, 0), (), shape, element)

    def number(self, number: Any, element: Element) -> int:
        """A constant, as the compute type has it."""
        number = float(number) if element.is_float else int(number)
        if element < Element.I8:  # unsigned, or bool
            number %= 2**64
        return self.value("number", element, (number,), element, ())

    def apply(self, made: Made, operands: dict[str, Traced]) -> Traced:
        """What a function makes of its operands."""
        operands = {name: self.whole(x) for name, x in operands.items()}
        traced = [operands[x] if isinstance(x, str) else self.number(x, made.element) for x in made.operands]
        shape: Shape = ()
        for x in traced:
            if isinstance(x, Traced):
                shape = _sizes(broadcast(shape, x.shape, made.function or "copy"))
        ids = tuple(x.value if isinstance(x, Traced) else x for x in traced)
        if made.function is None:
            return Traced(self, ids[0], shape)
        return Traced(self, self.value(made.function, made.element, ids, made.result, shape), shape)

    def whole(self, x: Traced) -> Traced:
        """A value that functions can go on with: reductions are stored."""
        return self.stored([x])[0] if self.values[x.value].function in REDUCTIONS else x

    def stored(self, found: list[Traced], why: str = "") -> list[Traced]:
        """The same values as leaves: what is none yet is computed by a fused kernel."""
        groups: dict[Shape, dict[int, None]] = {}
        for x in found:
            v = self.values[x.value]
            reduces = v.function in REDUCTIONS
            known = self.kept.get(x.value)
            if v.function == "leaf" or (known is not None and (reduces or self.values[known].shape == x.shape)):
                continue
            groups.setdefault(v.args[-1] if reduces else x.shape, {})[x.value] = None
        for shape, wanted in groups.items():
            if why:
                self.notes.append(why)
            self.store(tuple(wanted), shape)
        return [
            x if self.values[x.value].function == "leaf" else Traced(self, self.kept[x.value], x.shape) for x in found
        ]

    def store(self, wanted: tuple[int, ...], shape: Shape) -> None:
        """Has a fused kernel write values to memory, all in one shape."""
        text, leaves = self.program(wanted)
        inputs = [self.values[v] for v in leaves]
        made = [self.values[v] for v in wanted]
        reductions = [v for v in made if v.function in REDUCTIONS]
        reduced = tuple((-v.args[1] if v.args[2] else v.args[1]) if v in reductions else 0 for v in made)
        shapes, elements = tuple(v.shape for v in inputs), tuple(v.element for v in inputs)
        results = tuple(v.result for v in made)
        desc = ExprDescriptor(text, shape, shapes, elements, results, reduced if reductions else ())
        if reductions:
            try:
                plan(desc, name_of(self.place))
            except UnsupportedError as error:
                own = (r.want for r in error.refusals if r.field != "device" and r.want != _NO_REDUCTION)
                return self._reduce_apart(wanted, shape, next(own, "the cpu"))

        def call(c: Any, *given: Any) -> Any:
            return c(desc, **{f"x{k}": x for k, x in enumerate(given)})

        self._step(Step(call, leaves, desc), wanted, shape)

    def _step(self, step: Step, wanted: tuple[int, ...], shape: Shape) -> None:
        """Adds a step, whose results are these values."""
        self.steps.append(step)
        for k, v in enumerate(wanted):
            value = self.values[v]
            own = value.shape if value.function in REDUCTIONS else shape
            self.kept[v] = self.leaf(("step", len(self.steps) - 1, k), (), own, value.result).value

    def _reduce_apart(self, wanted: tuple[int, ...], shape: Shape, want: str) -> None:
        """Reductions that the kernel does not take, of what is stored before them."""
        from baracuda.ops.reduce.reduce import ReduceDescriptor

        self.stored([Traced(self, v, shape) for v in wanted if self.values[v].function not in REDUCTIONS])
        for v in wanted:
            value = self.values[v]
            if value.function not in REDUCTIONS:
                continue
            operand, axes, keepdim, _ = value.args
            (x,) = self.stored([Traced(self, operand, shape)])
            self.notes.append(f"{value.function}: a call of its own: a fused one wants {want}")
            which = tuple(range(len(shape) - axes, len(shape)))
            desc = ReduceDescriptor(value.function, shape, which, keepdim, value.element)

            def call(c: Any, x: Any, desc: Any = desc) -> Any:
                return c(desc, x=x.expand(desc.input_shape))

            self._step(Step(call, (x.value,)), (v,), shape)

    def operands(self, value: int) -> tuple[int, ...]:
        """The values that a value is made of."""
        v = self.values[value]
        return () if v.function in ("leaf", "number") else v.args[:1] if v.function in REDUCTIONS else v.args

    def program(self, wanted: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
        """A program's text, and the leaves that are its inputs."""
        reached: set[int] = set()
        waiting = list(wanted)
        while waiting:
            v = waiting.pop()
            if v not in reached:
                reached.add(v)
                waiting += self.operands(v)
        order = sorted(reached)
        leaves = tuple(v for v in order if self.values[v].function == "leaf")
        functions = sum(self.values[v].function not in ("leaf", "number", "cast") for v in order)
        if functions > MAX_FUNCTIONS:
            raise InvalidProblemError(
                f"fuse: got {functions} functions, want at most {MAX_FUNCTIONS} in one kernel. Fuse parts of the expression."
            )
        if not leaves:
            raise InvalidProblemError("fuse: got a result that depends on no argument, want one that does.")
        at = {v: k for k, v in enumerate(leaves)}
        text = [f"inputs {len(leaves)};"]
        for v in order:
            value = self.values[v]
            if value.function == "leaf":
                continue
            at[v] = len(at)
            operands = (
                list(map(repr, value.args)) if value.function == "number" else [str(at[a]) for a in self.operands(v)]
            )
            operands += [str(value.args[1])] if value.function in REDUCTIONS else []
            text.append(f"{value.function} {value.element} {' '.join(operands)};")
        text += [f"out {at[v]};" for v in wanted]
        return " ".join(text), leaves

    def call(self, fn: Any, given: tuple[Any, ...]) -> Any:
        """A call of a function of bc.functional with stand-ins among its arguments."""
        named = {name: x for (name, *_), x in zip(fn.miss.params, given, strict=True)}
        if named.get("out") is not None:
            raise InvalidProblemError(f"fuse: {fn.__name__}: out: got a tensor, want None: results are new values.")
        named.pop("out", None)
        if (inner := getattr(fn, "fused", None)) is not None:  # a fused function in another one
            return inner(**named)
        if self.tape is not None and not self.tape.inside and getattr(fn, "vjp_rule", None) is not None:
            return self.tape.call(fn, named)
        kinds = (fn, self.place[0], *map(_kind, given))
        if None not in kinds and (plain := _PLAIN.get(kinds)) is not None:
            return plain.applied(self, [x for x in given if isinstance(x, Traced)])
        try:
            if (refusal := refusal_of(self.place)) is not None:
                raise NotFused(refusal)
            if fn.miss.other is not None and (found := fn.miss.other(*given)) is not NotImplemented:
                return found
            return _rule(self, fn, named, kinds)
        except NotFused as why:
            return self._apart(fn, named, f"{fn.__name__}: {why}")

    def _apart(self, fn: Any, named: dict[str, Any], why: str) -> Any:
        """A call of its own, of what it takes in memory."""
        if self.tape is not None and not self.tape.inside:
            raise InvalidProblemError(f"grad: {fn.__name__} has no gradient. Call it outside.")
        self.notes.append(why)
        leaves: list[int] = []
        device = name_of(self.place)

        def spec(x: Any) -> Any:
            if isinstance(x, (list, tuple)):
                return type(x)(map(spec, x))
            return TensorSpec(x.shape, x.element, device=device) if isinstance(x, Traced) else x

        def stored(x: Any) -> Any:
            if isinstance(x, (list, tuple)):
                return type(x)(map(stored, x))
            if not isinstance(x, Traced):
                return x
            (x,) = self.stored([x])
            leaves.append(x.value)
            return _Place(len(leaves) - 1, x.shape)

        found = fn.infer(**{name: spec(x) for name, x in named.items()})
        places = {name: stored(x) for name, x in named.items()}

        def made(c: Any, *values: Any) -> Any:
            return c.of(fn, **{name: _placed(x, values) for name, x in places.items()})

        self.steps.append(Step(made, tuple(leaves)))
        several = isinstance(found, (list, tuple))
        specs = found if several else (found,)
        results = [
            self.leaf(("step", len(self.steps) - 1, k), (), s.shape, Element.coerce(s.element))
            for k, s in enumerate(specs)
        ]
        return tuple(results) if several else results[0]


@cache
def refusal_of(place: Place) -> str | None:
    """Why a device runs no fused kernels; None where it does."""
    if place == CPU:
        return None
    probe = ExprDescriptor("inputs 1; abs f32 0; out 1;", (1,), ((1,),), (Element.F32,), (Element.F32,))
    try:
        plan(probe, name_of(place))
    except BaracudaError as error:
        wanted = [r.want for r in getattr(error, "refusals", ()) if r.field == "program" and r.want != _REDUCTION]
        return f"{name_of(place)} has no fused kernels: {f'want {wanted[0]}' if wanted else error}"
    return None


@dataclass(frozen=True, slots=True)
class _Place:
    """The place of a leaf among what a step is given, in a shape that it broadcasts to."""

    index: int
    shape: Shape


def _placed(x: Any, values: tuple[Any, ...]) -> Any:
    if isinstance(x, (list, tuple)):
        return type(x)(_placed(part, values) for part in x)
    return values[x.index].expand(x.shape) if isinstance(x, _Place) else x


@dataclass(frozen=True, slots=True)
class _Plain:
    """What a function made of arguments of some elements, whatever their shapes: its rule need not be asked again."""

    made: tuple[Made, ...]
    operands: tuple[tuple[str, int], ...]  # names of the plan's arguments, and which of the call's arrays they are

    def applied(self, trace: Trace, arrays: list[Traced]) -> Any:
        operands = {name: arrays[k] for name, k in self.operands}
        found = tuple(trace.apply(m, operands) for m in self.made)
        return found[0] if len(found) == 1 else found


_PLAIN: dict[Any, _Plain] = {}
_MOST_PLAIN = 4096


def _kind(x: Any) -> Any:
    """What of an argument decides the nodes; None for what is not known to."""
    if isinstance(x, Traced):
        return (x.element, not x.shape)
    if isinstance(x, (bool, int, float, str)):
        return (type(x), repr(x))
    return () if x is None else None


def _rule(trace: Trace, fn: Any, named: dict[str, Any], kinds: tuple[Any, ...]) -> Any:
    """The nodes that a function's own rule asks for.

    Raises:
        NotFused: One of its plans is none of single elements.
    """
    if not isinstance(fn, Function) or isinstance(fn, Composed):
        raise NotFused("it takes several kernels")
    traced: list[Traced] = []
    args: list[Arg | None] = []
    passed: dict[str, Any] = {}

    def arg(index: int, name: str, x: Any) -> Any:
        if isinstance(x, Traced):
            traced.append(x)
            return Arg(len(traced) - 1, name, x, x.shape, x.element, place=trace.place)
        if isinstance(x, (int, float)):
            element = Element.BOOL if isinstance(x, bool) else Element.I64 if isinstance(x, int) else Element.F32
            return Arg(index, name, x, (), element, is_tensor=False)
        if x is None or isinstance(x, (list, tuple)):
            return x
        raise InvalidProblemError(
            f"fuse: {fn.__name__}: {name}: got a {type(x).__name__} that is no argument of the fused function, want one. Pass it to "
            "the function, too."
        )

    for i, (name, kind, *_) in enumerate(fn.miss.params):
        if kind == LIST:
            raise NotFused("it takes a list")
        if kind == OUT:
            continue
        if kind not in (TENSOR, SCALAR) and isinstance(named[name], Traced):
            raise InvalidProblemError(f"fuse: {fn.__name__}: {name}: got an array, want a number or an option.")
        passed[name] = arg(i, name, named[name]) if kind in (TENSOR, SCALAR) else named[name]
        args += [passed[name]] if kind == TENSOR else []
    call = _TracedCall(trace, tuple(args), traced)
    found = fn.miss.rule(call, **passed)
    if call.plain is not None and None not in kinds:
        if len(_PLAIN) >= _MOST_PLAIN:
            _PLAIN.clear()
        _PLAIN[kinds] = call.plain
    return found


class _TracedCall(Call):
    """Given to a function's rule instead of a Call: the plan's results become values."""

    def __init__(self, trace: Trace, args: tuple[Arg | None, ...], traced: list[Traced]) -> None:
        super().__init__(args, None)
        self.trace, self.traced = trace, traced
        self.plain: _Plain | None = None

    def steps(self, rule: Callable[..., Any], *arguments: Any, **options: Any) -> Recipe:
        """Several kernels."""
        raise NotFused("it takes several kernels for these arguments")

    def __call__(self, desc: Descriptor, *, returns: Any = None, views: Any = None, **given: Any) -> Any:
        """One kernel."""
        if type(desc).__name__ == "ReduceDescriptor":
            return self._reduced(desc, given["x"])
        numbers: dict[str, Any] = {}
        tensors: dict[str, Arg] = {}
        for name, x in given.items():
            if isinstance(x, Arg) and x.is_tensor:
                tensors[name] = x
            else:
                numbers[name] = x.value if isinstance(x, Arg) else x
        operands = {name: self._seen(x) for name, x in tensors.items()}
        outputs = {p.name: _sizes(p.shape) for p in desc.signature().outputs}
        made = dict(zip(outputs, made_by(desc, numbers), strict=True))
        wanted = tuple(returns or made)
        found = tuple(self.trace.apply(made[n], operands).expand(outputs[n]) for n in wanted)
        if tensors and all(x.dims is None and not x.fitted for x in tensors.values()):
            self.plain = _Plain(tuple(made[n] for n in wanted), tuple((n, x.index) for n, x in tensors.items()))
        return found[0] if len(found) == 1 else found

    def _reduced(self, desc: Any, given: Arg) -> Traced:
        """A reduction over the last axes, of something that is computed."""
        trace, axes, rank = self.trace, desc.axes, len(desc.input_shape)
        if desc.kind not in REDUCTIONS or not desc.element.is_float:
            raise NotFused(f"{desc.kind} of {desc.element} is not a function of single elements")
        if not axes or axes != tuple(range(rank - len(axes), rank)):
            raise NotFused("only the last axes are reduced in a fused kernel")
        x = trace.whole(self._seen(given))
        if trace.values[x.value].function == "leaf":
            raise NotFused("nothing is computed before it")
        args = (x.value, len(axes), desc.keepdim, x.shape)
        shape = _sizes(desc.reduced_shape())
        return Traced(trace, trace.value(desc.kind, desc.element, args, desc.element, shape), shape)

    def _seen(self, x: Arg) -> Traced:
        traced = self.traced[x.index]
        if x.dims is not None:
            traced = traced.permute(x.dims)
        return traced.expand(x.shape) if x.fitted else traced


def _sizes(shape: Any) -> Shape:
    return tuple(int(n) for n in shape)
