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

from baracuda.choose.plan import plan
from baracuda.describe.elements import Element
from baracuda.describe.errors import BaracudaError, InvalidProblemError, UnsupportedError
from baracuda.describe.promotion import broadcast
from baracuda.expr.nodes import Made, NotFused
from baracuda.expr.rules import PLAIN, by_rule, kind_of
from baracuda.expr.stand_in import REDUCTIONS, Traced
from baracuda.memory.device import CPU, Place, name_of
from baracuda.memory.tensor import TensorSpec
from baracuda.ops.expr.expr import ExprDescriptor

# What the rows of programs without and with reductions want of the others.
_NO_REDUCTION, _REDUCTION = "no reduction", "a reduction"
MAX_FUNCTIONS = 64  # of one kernel, as in csrc/ops/expr/program.h

if TYPE_CHECKING:
    from baracuda.expr.gradient import Tape

Shape = tuple[int, ...]
Span = tuple[int, Shape]  # of a reduction: how many of the last axes, of which shape
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
        kept: Values that a step has written to memory, each with the shape that it has there, and the leaves that they are.
        cut: Reductions that kernels behind them read from memory.
    """

    place: Place = CPU
    values: list[Value] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    shared: int = 0
    _known: dict[Any, int] = field(default_factory=dict)
    kept: dict[tuple[int, Shape], int] = field(default_factory=dict)
    tape: Tape | None = None
    cut: set[int] = field(default_factory=set)
    _spans: dict[int, frozenset[Span]] = field(default_factory=dict)

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
        operands = self._one_span(operands)
        traced = [operands[x] if isinstance(x, str) else self.number(x, made.element) for x in made.operands]
        shape: Shape = ()
        for x in traced:
            if isinstance(x, Traced):
                shape = _sizes(broadcast(shape, x.shape, made.function or "copy"))
        ids = tuple(x.value if isinstance(x, Traced) else x for x in traced)
        if made.function is None:
            return Traced(self, ids[0], shape)
        own: Shape = ()  # whatever the operands were expanded to, since other uses of the value may not be
        for i in ids:
            own = _sizes(broadcast(own, self.values[i].shape, made.function))
        return Traced(self, self.value(made.function, made.element, ids, made.result, own), shape)

    def spans(self, value: int) -> frozenset[Span]:
        """The reductions that a value waits for."""
        found = self._spans.get(value)
        if found is None:
            v = self.values[value]
            found = frozenset().union(*(self.spans(a) for a in self._made_of(value)))
            found |= {(v.args[1], v.args[3])} if v.function in REDUCTIONS else set()
            self._spans[value] = found
        return found

    def per_row(self, value: int) -> bool:
        """Whether it is one value for a row: a reduction, or a function of those and of numbers."""
        v = self.values[value]
        if v.function in REDUCTIONS:
            return True
        of = [a for a in self._made_of(value) if self.values[a].function != "number"]
        return bool(of) and all(map(self.per_row, of))

    def _one_span(self, operands: dict[str, Traced]) -> dict[str, Traced]:
        """Operands of one function: what waits for other rows than the function is of is stored."""
        spans = frozenset().union(*(self.spans(x.value) for x in operands.values()))
        if not spans:
            return operands
        varying = [x for x in operands.values() if not self.per_row(x.value)]
        rows = [x for x in operands.values() if self.per_row(x.value)]
        fits = len(spans) == 1 and all(x.shape == self.values[x.value].shape for x in rows)
        if fits and varying:
            ((axes, full),) = spans
            shape: Shape = ()
            for x in operands.values():
                shape = _sizes(broadcast(shape, x.shape, "fuse"))
            kept = full[: len(full) - axes]
            fits = shape == full and all(x.shape == (*kept, *(1,) * axes) or kept == x.shape == () for x in rows)
        fits = fits and (bool(varying) or len({x.shape for x in rows}) == 1)
        return operands if fits else {name: self.whole(x) for name, x in operands.items()}

    def whole(self, x: Traced) -> Traced:
        """A value that functions can go on with, whatever rows they are of: what waits for reductions is stored."""
        return self.stored([x])[0] if self.spans(x.value) else x

    def stored(self, found: list[Traced], why: str = "") -> list[Traced]:
        """The same values as leaves: what is none yet is computed by a fused kernel."""
        groups: dict[Shape, dict[int, None]] = {}
        for x in found:
            if self.values[x.value].function != "leaf" and self.place_of(x.value, x.shape) is None:
                groups.setdefault(self._space(x), {})[x.value] = None
        for shape, wanted in groups.items():
            if why:
                self.notes.append(why)
            self.store(tuple(wanted), shape)
        return [x if self.values[x.value].function == "leaf" else self.seen(x.value, x.shape) for x in found]

    def _space(self, x: Traced) -> Shape:
        """What a kernel that stores a value goes over: all elements of its rows, where it still reduces them."""
        if not self.per_row(x.value):
            return x.shape
        if self._reduced_here(x.value):
            return self._span(x.value)[1]
        for v in self._reductions((x.value,)):  # beside others that kernels before have reduced
            self._before(v, "others that it is used with are")
        return self.values[x.value].shape

    def place_of(self, value: int, shape: Shape) -> int | None:
        """The leaf that a value is in this shape, where it is stored; what is one for a row is stored in its own."""
        return self.kept.get((value, self.values[value].shape if self.per_row(value) else shape))

    def seen(self, value: int, shape: Shape) -> Traced:
        """A value that is stored, in this shape."""
        leaf = self.place_of(value, shape)
        assert leaf is not None, "what was stored has a place"
        return Traced(self, leaf, shape)

    def store(self, wanted: tuple[int, ...], shape: Shape) -> None:
        """Has a fused kernel write values to memory, all in one shape."""
        if all(
            v.function in REDUCTIONS and self.values[v.args[0]].function == "leaf" for v in map(self._value, wanted)
        ):
            return self._reduce_apart(wanted, shape, "nothing is computed before it")
        try:
            desc, leaves = self._kernel(wanted, shape)
        except (UnsupportedError, InvalidProblemError) as error:
            refusals = getattr(error, "refusals", ())
            own = [r.want for r in refusals if r.field != "device" and r.want != _NO_REDUCTION]
            why = f"a fused one wants {own[0] if own else 'the cpu'}"
            if inner := self._taken(wanted):
                return self._store_behind(inner, wanted, shape, why if refusals else str(error))
            if isinstance(error, UnsupportedError) and any(self.per_row(v) for v in wanted):
                return self._reduce_apart(wanted, shape, f"a call of its own: {why}")
            raise

        def call(c: Any, *given: Any) -> Any:
            return c(desc, **{f"x{k}": x for k, x in enumerate(given)})

        self._step(Step(call, leaves, desc), wanted, shape)
        return None

    def _kernel(self, wanted: tuple[int, ...], shape: Shape) -> tuple[ExprDescriptor, tuple[int, ...]]:
        """A kernel that gives these values, and the leaves that it reads.

        Raises:
            UnsupportedError: There is none for these reductions.
            InvalidProblemError: It would be too large.
        """
        text, leaves = self.program(wanted)
        inputs = [self.values[v] for v in leaves]
        made = [self.values[v] for v in wanted]
        reduced = tuple(self._axes(v) if self._reduced_here(v) else 0 for v in wanted)
        shapes, elements = tuple(v.shape for v in inputs), tuple(v.element for v in inputs)
        desc = ExprDescriptor(
            text, shape, shapes, elements, tuple(v.result for v in made), reduced if any(reduced) else ()
        )
        if any(self._reductions(wanted)):
            plan(desc, name_of(self.place))
        return desc, leaves

    def _value(self, value: int) -> Value:
        return self.values[value]

    def _span(self, value: int) -> Span:
        return next(iter(self.spans(value)))

    def _reduced_here(self, value: int) -> bool:
        """`per_row`, of reductions of the same kernel."""
        if self.values[value].function in REDUCTIONS:
            return True
        of = [a for a in self.operands(value) if self.values[a].function != "number"]
        return bool(of) and all(map(self._reduced_here, of))

    def _axes(self, value: int) -> int:
        """How many axes a value of rows is one along, negative where they stay."""
        axes, full = self._span(value)
        return -axes if len(self.values[value].shape) == len(full) else axes

    def _reached(self, wanted: tuple[int, ...]) -> list[int]:
        """All values that a kernel computes, and its leaves, in order."""
        reached: set[int] = set()
        waiting = list(wanted)
        while waiting:
            v = waiting.pop()
            if v not in reached:
                reached.add(v)
                waiting += self.operands(v)
        return sorted(reached)

    def _reductions(self, wanted: tuple[int, ...]) -> list[int]:
        return [v for v in self._reached(wanted) if self.values[v].function in REDUCTIONS]

    def _taken(self, wanted: tuple[int, ...]) -> list[int]:
        """Reductions that functions of the same kernel take."""
        taken = {a for v in self._reached(wanted) for a in self.operands(v)}
        return [v for v in self._reductions(wanted) if v in taken]

    def _store_behind(self, inner: list[int], wanted: tuple[int, ...], shape: Shape, why: str) -> None:
        """Stores values whose reductions are kernels before, which this one reads."""
        for v in inner:
            self._before(v, why)
        left: dict[Shape, list[int]] = {}
        for v in (v for v in wanted if v not in self.cut):
            of_rows = self.per_row(v) and self.values[v].function not in REDUCTIONS  # which are no longer reduced here
            left.setdefault(self.values[v].shape if of_rows else shape, []).append(v)
        for own, values in left.items():
            self.store(tuple(values), own)

    def _before(self, reduction: int, why: str) -> None:
        """Has a kernel before those to come store a reduction, which they read."""
        self.notes.append(f"{self.values[reduction].function}: in a kernel before: {why}")
        if self.place_of(reduction, ()) is None:
            self.store((reduction,), self.values[reduction].args[3])
        self.cut.add(reduction)

    def _step(self, step: Step, wanted: tuple[int, ...], shape: Shape) -> None:
        """Adds a step, whose results are these values."""
        self.steps.append(step)
        for k, v in enumerate(wanted):
            value = self.values[v]
            own = value.shape if self.per_row(v) else shape
            self.kept[v, own] = self.leaf(("step", len(self.steps) - 1, k), (), own, value.result).value

    def _reduce_apart(self, wanted: tuple[int, ...], shape: Shape, why: str) -> None:
        """Reductions that the kernel does not take, of what is stored before them."""
        from baracuda.ops.reduce.reduce import ReduceDescriptor

        self.stored([Traced(self, v, shape) for v in wanted if self.values[v].function not in REDUCTIONS])
        for v in wanted:
            value = self.values[v]
            if value.function not in REDUCTIONS:
                continue
            operand, axes, keepdim, _ = value.args
            (x,) = self.stored([Traced(self, operand, shape)])
            self.notes.append(f"{value.function}: {why}")
            which = tuple(range(len(shape) - axes, len(shape)))
            desc = ReduceDescriptor(value.function, shape, which, keepdim, value.element)

            def call(c: Any, x: Any, desc: Any = desc) -> Any:
                return c(desc, x=x.expand(desc.input_shape))

            self._step(Step(call, (x.value,)), (v,), shape)

    def _made_of(self, value: int) -> tuple[int, ...]:
        v = self.values[value]
        return () if v.function in ("leaf", "number") else v.args[:1] if v.function in REDUCTIONS else v.args

    def operands(self, value: int) -> tuple[int, ...]:
        """The values that a value is made of; leaves for those that are read from memory."""
        return tuple(self.kept[a, self.values[a].shape] if a in self.cut else a for a in self._made_of(value))

    def program(self, wanted: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
        """A program's text, and the leaves that are its inputs."""
        order = self._reached(wanted)
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
        kinds = (fn, self.place[0], *map(kind_of, given))
        if None not in kinds and (plain := PLAIN.get(kinds)) is not None:
            return plain.applied(self, [x for x in given if isinstance(x, Traced)])
        try:
            if (refusal := refusal_of(self.place)) is not None:
                raise NotFused(refusal)
            if fn.miss.other is not None and (found := fn.miss.other(*given)) is not NotImplemented:
                return found
            return by_rule(self, fn, named, kinds)
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


def _sizes(shape: Any) -> Shape:
    return tuple(int(n) for n in shape)
