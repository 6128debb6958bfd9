"""Asks the rules of bc.functional's functions, with stand-ins for arrays, which plans they would run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from baracuda.call.compose import Composed
from baracuda.call.op import LIST, OUT, SCALAR, TENSOR, Arg, Call, Function, Recipe
from baracuda.describe.elements import Element
from baracuda.describe.errors import InvalidProblemError
from baracuda.describe.spec import Descriptor
from baracuda.expr.nodes import Made, NotFused, made_by
from baracuda.expr.stand_in import REDUCTIONS, Traced

if TYPE_CHECKING:
    from baracuda.expr.trace import Trace


@dataclass(frozen=True, slots=True)
class Plain:
    """What a function made of arguments of some elements, whatever their shapes: its rule need not be asked again."""

    made: tuple[Made, ...]
    operands: tuple[tuple[str, int], ...]  # names of the plan's arguments, and which of the call's arrays they are

    def applied(self, trace: Trace, arrays: list[Traced]) -> Any:
        """The values that it makes of these arrays."""
        operands = {name: arrays[k] for name, k in self.operands}
        found = tuple(trace.apply(m, operands) for m in self.made)
        return found[0] if len(found) == 1 else found


PLAIN: dict[Any, Plain] = {}
_MOST_PLAIN = 4096


def kind_of(x: Any) -> Any:
    """What of an argument decides the nodes; None for what is not known to."""
    if isinstance(x, Traced):
        return (x.element, not x.shape)
    if isinstance(x, (bool, int, float, str)):
        return (type(x), repr(x))
    return () if x is None else None


def by_rule(trace: Trace, fn: Any, named: dict[str, Any], kinds: tuple[Any, ...]) -> Any:
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
    call = TracedCall(trace, tuple(args), traced)
    found = fn.miss.rule(call, **passed)
    if call.plain is not None and None not in kinds:
        if len(PLAIN) >= _MOST_PLAIN:
            PLAIN.clear()
        PLAIN[kinds] = call.plain
    return found


class TracedCall(Call):
    """Given to a function's rule instead of a Call: the plan's results become values."""

    def __init__(self, trace: Trace, args: tuple[Arg | None, ...], traced: list[Traced]) -> None:
        super().__init__(args, None)
        self.trace, self.traced = trace, traced
        self.plain: Plain | None = None

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
        outputs = {p.name: tuple(map(int, p.shape)) for p in desc.signature().outputs}
        made = dict(zip(outputs, made_by(desc, numbers), strict=True))
        wanted = tuple(returns or made)
        found = tuple(self.trace.apply(made[n], operands).expand(outputs[n]) for n in wanted)
        if tensors and all(x.dims is None and not x.fitted for x in tensors.values()):
            self.plain = Plain(tuple(made[n] for n in wanted), tuple((n, x.index) for n, x in tensors.items()))
        return found[0] if len(found) == 1 else found

    def _reduced(self, desc: Any, given: Arg) -> Traced:
        """A reduction over the last axes, of something that is computed."""
        trace, axes, rank = self.trace, desc.axes, len(desc.input_shape)
        if desc.kind not in REDUCTIONS or not desc.element.is_float:
            raise NotFused(f"{desc.kind} of {desc.element} is not a function of single elements")
        if not axes or axes != tuple(range(rank - len(axes), rank)):
            raise NotFused("only the last axes are reduced in a fused kernel")
        x = self._seen(given)
        if trace.per_row(x.value) or not trace.spans(x.value) <= {(len(axes), x.shape)}:
            x = trace.whole(x)
        if trace.values[x.value].shape != x.shape:  # rows of a kernel are of what its inputs broadcast to
            x = x.copied()
        args = (x.value, len(axes), desc.keepdim, x.shape)
        shape = tuple(map(int, desc.reduced_shape()))
        return Traced(trace, trace.value(desc.kind, desc.element, args, desc.element, shape), shape)

    def _seen(self, x: Arg) -> Traced:
        traced = self.traced[x.index]
        if x.dims is not None:
            traced = traced.permute(x.dims)
        return traced.expand(x.shape) if x.fitted else traced
